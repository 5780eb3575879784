//! The `floatgate` command as a library: for its program, and for the wheel of the Python package, which has the same
//! command. It reads arguments and prints; what it does is in the libraries that it calls.

mod compare;
mod ctl;
mod device;
mod draw;
mod explain;
mod failure;
mod python;
mod report;
mod run;
mod serve;
mod signal;
mod state;
mod text;
mod top;
mod trace;
mod trace_args;
mod vm;

use std::ffi::OsString;
use std::io::Write;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use failure::Failure;
use floatgate_core::external::Externals;

/// An SSD you can take apart: a fast, deterministic simulator of flash SSDs.
#[derive(Parser)]
#[command(name = "floatgate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a workload on a device, and say how it was served
    ///
    /// Ctrl-C or SIGTERM ends a run early: what has been issued is completed, and the result says that it is not
    /// complete; the exit status is 130 then. A second Ctrl-C stops at once. The exit status is 2 where what was asked
    /// for cannot be, and 1 where something went wrong.
    Run(Box<run::RunArgs>),
    /// Attach the SSD: serve it as a real block device, in real time, to fio, QEMU and the kernel
    ///
    /// Clients connect by NBD; what they have to be called with is printed when the device is there, and stands in
    /// docs/live.md. Ctrl-C or SIGTERM ends: what is in progress is answered, sockets are removed, and the result is
    /// printed. A second Ctrl-C stops at once. Data live in memory and go with the program, unless
    /// `--image` keeps them in a file.
    #[command(after_long_help = serve::clients::HELP)]
    Serve(Box<serve::ServeArgs>),
    /// Ask a running server, or change it: status, speed, trim-all, power-cut, fail
    #[command(after_long_help = ctl::HELP)]
    Ctl(ctl::CtlArgs),
    /// Watch a running server in a terminal
    #[command(after_long_help = top::HELP)]
    Top(top::TopArgs),
    /// Boot a small Linux machine with the SSD as its disk, run a command in it, and hand its exit status back
    ///
    /// The machine is put together of Debian's packages, which apt brings into a cache of yours: no root, nothing is
    /// installed. What the command prints goes to standard output, the result of the SSD to standard error. See
    /// docs/live.md.
    #[command(after_long_help = vm::HELP)]
    Vm(Box<vm::VmArgs>),
    /// Write the report of a result again: DIR/report.html, from DIR/summary.json
    Report(report::ReportArgs),
    /// Compare results: a table, and a page with their distributions over each other
    ///
    /// The first is what the others are compared with. Runs that differ in nothing but their seed are taken together,
    /// and their figures get confidence intervals; a difference that is within noise is marked. See docs/report.md.
    Compare(compare::CompareArgs),
    /// Tell the story of one request of a result: what it waited for and behind whom
    Explain(explain::ExplainArgs),
    /// Draw a timing diagram: what channels, chips and planes did in a span of a timeline, as SVG
    ///
    /// It has boxes for command, data and cell times, ready and busy of the chips, and the requests. A diagram has room
    /// for a few hundred phases; where the span has more, one is named that has not. See docs/reference/timeline.md.
    Draw(draw::DrawArgs),
    /// The SSDs that can be simulated: list them, show one, check a file
    Device(device::Args),
    /// Saved states of devices: say what one holds, and check it
    State(state::Args),
    /// Traces: say what one is like, make a synthetic workload of it, or write it in another format
    Trace(Box<trace::Args>),
    /// Run many devices, workloads and seeds from a file, on this machine or a cluster [Python package]
    Sweep(python::Args),
    /// Search for the best devices: several objectives, and the front between them [Python package]
    Optimize(python::Args),
    /// One device for each volume of traces: write amplification, wear and lifetime [Python package]
    Fleet(python::Args),
    /// How many channels and chips an SSD needs for a speed, checked by simulation [Python package]
    Design(python::Args),
    /// Redo the studies of papers, with their figures beside ours [Python package]
    Study(python::Args),
}

/// What is kept of the command line for a result: all but the program's name.
fn given(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Whether this asks for all that there is to say of `floatgate serve`, which includes what runs.
fn is_help_of_serve(arguments: &[OsString]) -> bool {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    match words.as_slice() {
        ["serve", options @ ..] => !options.contains(&"-h"),
        words => words == ["help", "serve"],
    }
}

impl Command {
    /// Lets the device that is selected, if there is one, name policies of the program.
    fn bring(&mut self, makers: &Externals) {
        let selection = match self {
            Command::Run(args) => Some(&mut args.device),
            Command::Serve(args) => Some(&mut args.device),
            Command::Vm(args) => Some(&mut args.serve.device),
            Command::Device(args) => args.selection(),
            _ => None,
        };
        if let Some(selection) = selection {
            selection.makers = makers.clone();
        }
    }
}

/// Options that were renamed before the first release: command, old and new name.
const RENAMED: [(&str, &str, &str); 3] =
    [("run", "--layout", "--prewrite"), ("vm", "--front", "--interface"), ("vm", "--with", "--package")];

/// Lets the error about an option that was renamed suggest the new name.
fn suggest_new_name(error: &mut clap::Error, arguments: &[OsString]) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return };
    let is_meant = |(command, old, _): &&(&str, &str, &str)| {
        given.split('=').next() == Some(old) && arguments.get(1).is_some_and(|name| name == command)
    };
    if let Some((_, _, new)) = RENAMED.iter().find(is_meant) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String((*new).to_owned()));
    }
}

/// Does what the command line asks for, the program's name before it, and returns the status to exit with.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    main_with(Externals::default(), arguments)
}

/// As [`main`], for a program with policies of its own: devices name them like built-in ones, in files and by `--set`.
///
/// Commands of the Python package run without them, and so do states and images that are inspected.
pub fn main_with(makers: Externals, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut command = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli.command,
        Err(mut error) => {
            suggest_new_name(&mut error, &arguments);
            // Help, too, comes this way. Where nobody reads it, there is nobody to tell.
            let _ = error.print();
            if error.kind() == ErrorKind::DisplayHelp && is_help_of_serve(&arguments) {
                let _ = std::io::stdout().write_all(serve::clients::of_running().as_bytes());
            }
            return error.exit_code().try_into().unwrap_or(2);
        }
    };
    command.bring(&makers);
    let done = match command {
        Command::Run(args) => run::run(&args, given(&arguments)),
        Command::Serve(args) => serve::run(&args),
        Command::Ctl(args) => ctl::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Vm(args) => vm::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Draw(args) => draw::run(&args),
        Command::Device(args) => device::run(args, &makers).map_err(Failure::from),
        Command::State(args) => state::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Sweep(args) => python::run("sweep", &args),
        Command::Optimize(args) => python::run("optimize", &args),
        Command::Fleet(args) => python::run("fleet", &args),
        Command::Design(args) => python::run("design", &args),
        Command::Study(args) => python::run("study", &args),
    };
    let status = failure::exit_status(done);
    // A program that goes on after this, as Python does, does not write what is left in the buffer.
    let _ = std::io::stdout().flush();
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_run::chosen::DeviceSpec;
    use floatgate_run::spec::{RequestFormat, RunSpec, StateSpec};

    /// Returns the specification that a command line stands for.
    fn parsed(arguments: &[String]) -> RunSpec {
        let all = ["floatgate".to_owned()].into_iter().chain(arguments.iter().cloned());
        match Cli::try_parse_from(all).unwrap_or_else(|error| panic!("{arguments:?}: {error}")).command {
            Command::Run(args) => RunSpec { command: None, ..args.spec(arguments.to_vec()) },
            _ => panic!("{arguments:?} is another command"),
        }
    }

    /// Returns a specification with a value other than the default for all that shapes a result.
    fn full() -> RunSpec {
        let mut spec = RunSpec::new(
            DeviceSpec::named("tiny", &["gc.victim=fifo".to_owned(), "geometry.channels=4".to_owned()]),
            vec!["rw=read bs=4k; rw=write".to_owned(), "trace=a.csv limit=3".to_owned(), "-".to_owned()],
        );
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
        spec
    }

    #[test]
    fn the_command_that_repeats_a_run_has_its_specification() {
        let loaded = RunSpec { state: StateSpec::Saved("a b.fgstate".into()), ..full() };
        let short = RunSpec::new(DeviceSpec::named("./mine.toml", &[]), vec!["trace.csv".to_owned()]);
        for spec in [full(), loaded, short] {
            assert_eq!(parsed(&spec.arguments()), spec);
        }
        let text = DeviceSpec::text("base = \"tiny\"\n", "device.toml", &[]);
        assert!(RunSpec::new(text, vec!["rw=read".to_owned()]).arguments().is_empty());
    }

    #[test]
    fn a_command_that_was_typed_stays_as_it_is() {
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
        assert!(error.contains("invalid prewrite `odd`: expected none, even or allocation"), "{error}");
    }
}
