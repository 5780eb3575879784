//! `floatgate run`: a workload on a device.

pub mod cost;
pub(crate) mod detail;
pub mod files;
pub mod interrupt;
mod iolog;
pub mod progress;
pub mod report;
mod seeds;
pub mod session;
mod several;
pub(crate) mod trace;
mod why;
mod workload;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use floatgate_core::metrics::summary::Summary;
use floatgate_core::precondition::Layout;
use floatgate_workload::file::Stop;

use crate::device::Selection;
use crate::failure::Failure;
use crate::output::Directory;
pub use detail::windows_warning;
use detail::{Detail, DetailArgs};
use interrupt::Interrupt;
use progress::Terminal;
use seeds::Seeds;
use session::{Chosen, Finished, Front, Session, Stopped, Subject, unless_stopped};
use trace::TraceArgs;
use workload::Workload;

/// `floatgate run`.
#[derive(Clone, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    device: Selection,
    /// A job in fio's words, like 'rw=randread bs=4k iodepth=32 number_ios=100k', a job file of fio's, or a trace file
    /// (- for standard input); or several of them, which run beside each other
    ///
    /// Each is a stream with results of its own. A trace may have words of its own, in one pair of quotes: 'trace=PATH
    /// offset=10GiB size=20% start=5s name=db', where it works on the device, when it starts and what its stream is
    /// called (without a name, by its file), and the options for traces below with an underscore, like time_scale=0.5
    /// or devices=merge, which override those given for all. See docs/reference/traces.md.
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// State of the device before the run: none, fill, aged=V (this share of each block is superseded), stale=V (empty,
    /// with this share of its pages written and stale), steady (overwritten at random until write amplification stands
    /// still), or a job or trace, which is served without time
    #[arg(long, value_name = "STATE", default_value = "fill")]
    precondition: String,
    /// Put what the workload reads and has not written by then in flash before the run: none, even (evenly over
    /// channels, chips, dies and planes) or allocation (where the device would write it)
    ///
    /// The workload is read through once before, for that. After `--precondition fill`, `aged` and `steady` the device
    /// holds everything, and nothing is left to lay out.
    #[arg(long, value_name = "HOW", default_value = "none")]
    layout: Layout,
    /// Write the state that --precondition has brought the device into to FILE, for --load-state
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    save_state: Option<PathBuf>,
    /// Begin with the state in FILE in the place of --precondition
    ///
    /// --save-state has written it, of this device or of one that differs in nothing that shapes a state: times, bus,
    /// scheduler, controller, buffer and host may be others. See docs/reference/state.md.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["precondition", "save_state"])]
    load_state: Option<PathBuf>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = trace::whole, allow_hyphen_values = true)]
    seed: u64,
    /// Run with several seeds, each into DIR/seed-N, and say how much the figures vary: N for seeds 1 to N, or A..B
    #[arg(long, value_name = "N|A..B", conflicts_with_all = ["seed", "json"], requires = "out")]
    seeds: Option<Seeds>,
    /// Write the result to DIR/summary.json, and as a page to DIR/report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Do not tell what the time of the requests went into; makes a run up to a fifth faster
    #[arg(long)]
    no_attribution: bool,
    #[command(flatten)]
    detail: DetailArgs,
    /// Print the result as JSON instead
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
    /// What the command line was, for the result.
    #[arg(skip)]
    given: Vec<String>,
}

/// Runs the command.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    args.check()?;
    // Until here Ctrl-C ends the process: its file may be a pipe.
    let chosen = Chosen::load(&args.device.device, &args.device.overrides).map_err(Failure::mistake)?;
    let interrupt = Interrupt::install()?;
    let args = args.clone().stopped_by(interrupt.stop());
    let terminal = Terminal::new(interrupt);
    match &args.seeds {
        Some(seeds) => seeds::run(&args, seeds, &chosen, &terminal),
        None => run_one(&args, chosen, &terminal),
    }
}

/// Runs with one seed, and prints the result.
fn run_one(args: &RunArgs, chosen: Chosen, terminal: &Terminal) -> Result<(), Failure> {
    let Finished { summary, workload } = into_directory(args, Session::open(args, chosen, terminal)?, terminal)?;
    print(args, &summary, &workload)?;
    if summary.complete { Ok(()) } else { Err(Failure::Ended) }
}

/// Runs with one seed, and writes the result to the directory that the options name, if they do.
pub fn into_directory(args: &RunArgs, session: Session, front: &dyn Front) -> Result<Finished, Stopped> {
    let written = |error| Subject::Output.stopped(unless_stopped(error, front));
    let directory = args.out.as_deref().map(|out| Directory::open(out, &front.stop())).transpose().map_err(written)?;
    let streams = session.streams();
    let detail = Detail::open(directory.as_ref(), &args.detail, session.device(), &streams, &session.origin());
    let mut detail = detail.map_err(written)?;
    let mut finished = session.run(&mut detail, front)?;
    if let Some(directory) = &directory {
        directory.write(&finished.summary, detail).map_err(written)?;
    }
    finished.workload.finish_logs(front).map_err(Subject::Output.stop())?;
    Ok(finished)
}

impl RunArgs {
    /// With what the command line was.
    pub(crate) fn given(self, given: Vec<String>) -> RunArgs {
        RunArgs { given, ..self }
    }

    /// With what ends the reading of traces.
    pub fn stopped_by(self, stop: Stop) -> RunArgs {
        RunArgs { trace: self.trace.stopped_by(stop), ..self }
    }

    /// Where nothing that a user could type gives the result again.
    pub fn without_command_line(self) -> RunArgs {
        self.given(Vec::new())
    }

    /// Options that would do nothing are mistakes.
    pub fn check(&self) -> Result<(), Failure> {
        for text in &self.workloads {
            if let Some(option) = self.detail.value_behind_a_blank(text) {
                return Err(Failure::mistake(format!(
                    "`{text}` stands where a workload does; as the value of {option} it is written {option}={text}"
                )));
            }
        }
        self.detail.check(self.out.is_some())?;
        self.trace.check()?;
        self.check_pipes()?;
        use floatgate_core::precondition::Precondition as State;
        let state = self.precondition.parse();
        let made_here = self.load_state.is_none();
        let wants = made_here && self.layout != Layout::None;
        if wants && matches!(state, Ok(State::Fill | State::Aged(_) | State::Steady)) {
            return Err(Failure::mistake(format!(
                "--layout is for what was never written, and with --precondition {} everything was: give --precondition \
                 none for a new device, or stale=V for a used one",
                self.precondition
            )));
        }
        let given = self.trace.given();
        let mut texts = self.workloads.iter().chain([&self.precondition]);
        if given.is_empty() || texts.any(|text| workload::is_trace(text)) {
            return Ok(());
        }
        let (verb, options) = (if given.len() == 1 { "is" } else { "are" }, given.join(", "));
        let jobs = self.workloads.join("`, `");
        Err(Failure::mistake(format!("{options} {verb} for traces, and the workload is a job: `{jobs}`")))
    }
}

impl RunArgs {
    /// Refuses a pipe that would have to be read more than once: the second time it is empty, or never opens.
    fn check_pipes(&self) -> Result<(), Failure> {
        let layout = (self.layout != Layout::None).then_some(&self.workloads).into_iter().flatten();
        let texts = self.workloads.iter().chain([&self.precondition]).chain(layout);
        let mut pipes: Vec<PathBuf> = texts.filter_map(|text| workload::pipe(text, &self.trace)).collect();
        let all = pipes.len();
        pipes.sort();
        let twice = pipes.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| &pair[0]);
        let (path, why) = match (twice, self.seeds) {
            (Some(path), _) => (path, "more than once"),
            (None, Some(_)) if all > 0 => (&pipes[0], "once for each of --seeds"),
            _ => return Ok(()),
        };
        Err(Failure::mistake(format!(
            "{}: must be read {why}, and is no regular file: write it into a file first, or give it as standard input, \
             `-`, which is kept in a file",
            path.display()
        )))
    }
}

/// Prints the result.
fn print(args: &RunArgs, summary: &Summary, workload: &Workload) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    // On a screen that shows both, warnings have just been said.
    let with_warnings = !(stdout.is_terminal() && std::io::stderr().is_terminal());
    let text =
        if args.json { summary.to_json() } else { report::text(summary, &workload.descriptions(), with_warnings) };
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::of_stdout)
}
