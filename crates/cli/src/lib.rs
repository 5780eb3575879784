//! The `floatgate` command as a library: reads arguments, calls the other crates, and prints.
//!
//! The program `floatgate` and the wheel of the Python package share it.

mod color;
mod compare;
mod complete;
#[cfg(feature = "live")]
mod ctl;
mod device;
mod draw;
mod examples;
mod explain;
mod failure;
mod generated;
#[cfg_attr(not(feature = "live"), path = "without_live.rs")]
mod live;
mod output;
mod python;
mod report;
mod run;
#[cfg(feature = "live")]
mod serve;
mod signal;
mod state;
#[cfg(feature = "live")]
mod top;
mod trace;
mod trace_args;
#[cfg(feature = "live")]
mod vm;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use device::Selection;
use failure::Failure;
use floatgate_core::policies::Externals;
#[cfg(feature = "live")]
use floatgate_workload::file::Stop;
use output::print;

/// A fast, deterministic simulator of flash SSDs
#[derive(Parser)]
#[command(name = "floatgate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a workload on a device and report the results
    ///
    /// Ctrl-C or SIGTERM ends a run within 5 seconds: outstanding requests complete, unless they take too long, and the
    /// result is marked as incomplete. A second Ctrl-C stops at once. Exit status: 0 for success, 1 for a failure, 2
    /// for invalid arguments or input, 130 after Ctrl-C, 143 after SIGTERM.
    Run(Box<run::RunArgs>),
    #[command(flatten)]
    Live(live::Command),
    /// Write the report of a result again: DIR/report.html from DIR/summary.json
    Report(report::ReportArgs),
    /// Compare results in a table, and on a page with overlaid distributions
    ///
    /// The first result is the baseline. Runs that differ only in their seed form a group, with mean values and
    /// confidence intervals. Differences within noise are marked. See docs/report.md.
    Compare(compare::CompareArgs),
    /// Explain one request's latency: what it waited for and what delayed it
    Explain(explain::ExplainArgs),
    /// Draw a timing diagram of channels, chips and planes as SVG
    ///
    /// The diagram has boxes for command, data and cell times, the ready/busy signals of the chips, and the requests.
    /// There is room for a few hundred phases. If the span has more, the error proposes a shorter one. See
    /// docs/reference/timeline.md.
    Draw(draw::DrawArgs),
    /// List the built-in devices, show one, or check a device file
    Device(device::Args),
    /// Inspect and check a saved state of a device
    State(state::Args),
    /// Analyze a trace, fit a synthetic workload to it, or convert it
    Trace(Box<trace::Args>),
    /// Run many devices, workloads and seeds from a file [Python package]
    ///
    /// The file lists devices, workloads and values of parameters. Every combination is simulated with each seed, and
    /// stored, so that a repeated command continues an interrupted sweep. See docs/sweeps.md.
    #[command(after_long_help = python::HELP)]
    Sweep(python::Args),
    /// Search for the best devices, with several objectives [Python package]
    ///
    /// The file lists ranges of parameters, and the metrics to minimize or maximize. Optuna chooses the devices to
    /// simulate. The result has the best trade-offs between the objectives. See docs/sweeps.md.
    #[command(after_long_help = python::HELP)]
    Optimize(python::Args),
    /// Fit a device to measurements of a drive [Python package]
    ///
    /// Values that follow directly from the measurements are inferred, and a search finds the others. The device file
    /// says of each value whether it is measured, fitted or assumed. `fit probe` writes jobs of fio that measure a
    /// drive. See docs/fit.md.
    #[command(after_long_help = python::HELP)]
    Fit(python::Args),
    /// Simulate one device per volume of a trace: wear and lifetime [Python package]
    ///
    /// A trace, or a directory of traces, is divided into volumes, and each volume is replayed on a device of its own.
    /// The table has the write amplification, the wear and the lifetime of each. See docs/sweeps.md.
    #[command(after_long_help = python::HELP)]
    Fleet(python::Args),
    /// Find the channels and chips that an SSD needs for a speed [Python package]
    ///
    /// Formulas of Hu et al. 2013 give the number of channels, chips and pins for a read and a write speed. The design
    /// is then simulated. See docs/design-guide.md.
    #[command(after_long_help = python::HELP)]
    Design(python::Args),
    /// Reproduce studies of papers, and compare the results [Python package]
    ///
    /// A study repeats the figures and tables of a paper, and writes a page with a verdict for each claim. `study list`
    /// lists all studies. See docs/studies/index.md.
    #[command(after_long_help = python::HELP)]
    Study(python::Args),
    /// Print a script that completes commands, options and their values in a shell
    ///
    /// The script asks the program for the values: devices, paths of parameters and their values, states and formats.
    /// The Python package installs the scripts by itself. docs/install.md has the directories of all shells.
    Completions {
        /// Shell that reads the script
        shell: Shell,
    },
    /// Write man pages for all commands to a directory
    ///
    /// The Python package installs the pages by itself.
    Man {
        /// Directory, which is created if it is missing
        directory: PathBuf,
    },
}

/// Returns the command line without the name of the program, for the result.
fn given(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Returns `true` if the arguments request the long help of `floatgate serve`, which lists the running servers.
fn is_help_of_serve(arguments: &[OsString]) -> bool {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    match words.as_slice() {
        ["serve", options @ ..] => !options.contains(&"-h"),
        words => words == ["help", "serve"],
    }
}

/// Options that were renamed before the first release: command, old and new name.
const RENAMED: [(&str, &str, &str); 3] =
    [("run", "--layout", "--prewrite"), ("vm", "--front", "--interface"), ("vm", "--with", "--package")];

/// Makes the error about a renamed option suggest its new name.
fn suggest_new_name(error: &mut clap::Error, arguments: &[OsString]) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return };
    let is_meant = |(command, old, _): &&(&str, &str, &str)| {
        given.split('=').next() == Some(old) && arguments.get(1).is_some_and(|name| name == command)
    };
    if let Some((_, _, new)) = RENAMED.iter().find(is_meant) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String((*new).to_owned()));
    }
}

impl Command {
    /// Returns the selected device, if there is one.
    fn selection(&mut self) -> Option<&mut Selection> {
        match self {
            Command::Run(args) => Some(&mut args.device),
            Command::Live(command) => command.selection(),
            Command::Device(args) => args.selection(),
            _ => None,
        }
    }

    /// Allows the selected device, if there is one, to name external policies of the program. Returns `true` if it
    /// needs policies in Python, and the program has none.
    fn allow_externals(&mut self, makers: &Externals) -> bool {
        let Some(selection) = self.selection() else { return false };
        selection.makers = makers.clone();
        !selection.policies.is_empty() && *makers == Externals::default()
    }
}

/// Returns the declaration of the command line.
fn cli() -> clap::Command {
    examples::add(Cli::command())
}

/// Runs a command line, which starts with the name of the program. Returns the exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    main_with(Externals::default(), arguments)
}

/// Runs a command line like [`main`], in a program with external policies.
///
/// Devices name these policies like built-in ones, in files and with `--set`. They are not available in commands of the
/// Python package and in `floatgate state`.
pub fn main_with(makers: Externals, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    if output::is_closed() {
        failure::say(
            "error: standard output is closed, so no result could be printed; redirect it, such as to /dev/null",
        );
        return 1;
    }
    signal::survive_file_limits();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(status) = generated::complete(cli, &arguments) {
        return status;
    }
    let parsed = cli().try_get_matches_from(&arguments).and_then(|found| Cli::from_arg_matches(&found));
    let mut command = match parsed {
        Ok(cli) => cli.command,
        Err(mut error) => {
            suggest_new_name(&mut error, &arguments);
            // Help is also returned as an error. A failure to print it cannot be reported.
            let _ = error.print();
            if error.kind() == ErrorKind::DisplayHelp && is_help_of_serve(&arguments) {
                live::end_help_of_serve();
            }
            return error.exit_code().try_into().unwrap_or(2);
        }
    };
    let needs_python = command.allow_externals(&makers);
    let done = match command {
        _ if needs_python => python::forward(&arguments[1..]),
        Command::Run(args) => run::run(&args, given(&arguments)),
        Command::Live(command) => command.run(),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args, &arguments[1..]),
        Command::Explain(args) => explain::run(&args),
        Command::Draw(args) => draw::run(&args),
        Command::Device(args) => device::run(args, &makers),
        Command::State(args) => state::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Sweep(args) => python::run("sweep", &args, cli),
        Command::Optimize(args) => python::run("optimize", &args, cli),
        Command::Fit(args) => python::run("fit", &args, cli),
        Command::Fleet(args) => python::run("fleet", &args, cli),
        Command::Design(args) => python::run("design", &args, cli),
        Command::Study(args) => python::run("study", &args, cli),
        Command::Completions { shell } => generated::completions(shell).map_err(Failure::from).and_then(print),
        Command::Man { directory } => generated::write_man_pages(cli(), &directory).map_err(Failure::from),
    };
    let status = failure::exit_status(done);
    // A caller that continues after this, such as Python, would not flush the buffer.
    let _ = std::io::stdout().flush();
    status
}

/// Serves a device like `floatgate serve` until `stop` is requested, in a program that handles signals itself.
/// `arguments` are those after `serve`. `ready` is called with the commands of clients when they are served.
///
/// Returns the result as JSON.
///
/// # Errors
///
/// Returns the exit status of the command, and the error, which is a [`Fault`](floatgate_core::policies::Fault) if a
/// policy failed.
#[cfg(feature = "live")]
pub fn serve(
    makers: Externals,
    arguments: impl IntoIterator<Item = OsString>,
    stop: Stop,
    ready: impl FnOnce(String),
) -> Result<String, (u8, anyhow::Error)> {
    let words = ["floatgate", "serve", "--json"].into_iter().map(OsString::from);
    let mut command = Cli::try_parse_from(words.chain(arguments)).map_err(|error| (2, error.into()))?.command;
    command.allow_externals(&makers);
    let Command::Live(live::Command::Serve(args)) = command else { unreachable!("the command is `serve`") };
    let mut result = Vec::new();
    serve::run_until(&args, stop, &mut result, ready).map_err(failure::parts)?;
    Ok(String::from_utf8_lossy(&result).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_run::device::DeviceSpec;
    use floatgate_run::spec::{RequestFormat, RunSpec, StateSpec};

    /// Returns the specification of a command line.
    fn parsed(arguments: &[String]) -> RunSpec {
        let all = ["floatgate".to_owned()].into_iter().chain(arguments.iter().cloned());
        match Cli::try_parse_from(all).unwrap_or_else(|error| panic!("{arguments:?}: {error}")).command {
            Command::Run(args) => RunSpec { command: None, ..args.spec(arguments.to_vec()) },
            _ => panic!("{arguments:?} is another command"),
        }
    }

    /// Returns a specification in which every option that affects a result has a value other than its default.
    fn full() -> RunSpec {
        let mut spec = RunSpec::new(
            DeviceSpec::named("tiny", &["gc.victim=fifo".to_owned(), "geometry.channels=4".to_owned()]),
            vec!["rw=read bs=4k; rw=write".to_owned(), "trace=a.csv limit=3".to_owned(), "-".to_owned()],
        );
        spec.device.scale = "3/16".parse().ok();
        spec.state = StateSpec::Precondition("invalid=0.5".to_owned());
        spec.prewrite = "even".parse().unwrap();
        spec.seed = u64::MAX;
        spec.attribution = false;
        let traces = &mut spec.traces;
        traces.format =
            Some("delimited:columns=op,offset,size;offset=bytes;size=bytes;read=R;write=W".parse().unwrap());
        traces.action = Some("Q".parse().unwrap());
        traces.time_unit = Some("100ns".parse().unwrap());
        traces.time_scale = Some("0.5".parse().unwrap());
        traces.max_gap = Some("1500ms".parse().unwrap());
        traces.replay = Some("depth=32".parse().unwrap());
        traces.fit = Some("wrap".parse().unwrap());
        traces.devices = Some("select=a,b".parse().unwrap());
        traces.limit = "7".parse().ok();
        traces.sort_window = Some(8);
        traces.skip_bad_lines = Some(9);
        traces.set_job = vec!["runtime=10".to_owned(), "size=1g".to_owned()];
        traces.ignore_unknown = true;
        spec
    }

    #[test]
    fn arguments_of_a_specification_parse_to_the_same_specification() {
        let loaded = RunSpec { state: StateSpec::Saved("a b.fgstate".into()), ..full() };
        let short = RunSpec::new(DeviceSpec::named("./mine.toml", &[]), vec!["trace.csv".to_owned()]);
        for spec in [full(), loaded, short] {
            assert_eq!(parsed(&spec.arguments()), spec);
        }
        let text = DeviceSpec::text("base = \"tiny\"\n", "device.toml", &[]);
        assert!(RunSpec::new(text, vec!["rw=read".to_owned()]).arguments().is_empty());
    }

    #[test]
    fn a_typed_command_is_kept_without_its_outputs() {
        let typed = "run tiny rw=read --seed 3 --out a --set gc.victim=fifo --series=1ms";
        let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
        let spec = RunSpec { command: Some(typed.clone()), ..parsed(&typed) };
        assert_eq!(spec.arguments().join(" "), "run tiny rw=read --set gc.victim=fifo --seed 3");
    }

    #[test]
    fn a_specification_can_be_stored() {
        let mut spec = full();
        (spec.out, spec.seeds, spec.save_state) = (Some("out".into()), "2..5".parse().ok(), Some("state".into()));
        spec.detail.requests = Some(RequestFormat::Csv);
        spec.detail.series = Some("10ms".parse().unwrap());
        spec.detail.timeline = Some("10ms..12ms".parse().unwrap());
        let automatic = RunSpec {
            command: Some(vec!["run".to_owned()]),
            ..parsed(&{
                let words = "run tiny rw=read --out a --series --timeline --requests parquet";
                words.split(' ').map(str::to_owned).collect::<Vec<_>>()
            })
        };
        for spec in [spec, automatic] {
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<RunSpec>(&json).unwrap(), spec, "{json}");
        }
        let least = r#"{ "device": { "source": { "named": "tiny" } }, "workloads": ["rw=read"] }"#;
        let expected = RunSpec::new(DeviceSpec::named("tiny", &[]), vec!["rw=read".to_owned()]);
        assert_eq!(serde_json::from_str::<RunSpec>(least).unwrap(), expected);
        let wrong = least.replace("} }", "} }, \"prewrite\": \"odd\"");
        let error = serde_json::from_str::<RunSpec>(&wrong).unwrap_err().to_string();
        assert!(error.contains("invalid value `odd`: expected none, even or allocation"), "{error}");
    }
}
