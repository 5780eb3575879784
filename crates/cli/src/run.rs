//! `floatgate run`: simulates a workload on a device.

pub mod interrupt;
mod lifetime_text;
pub mod progress;

use std::io::IsTerminal;
use std::num::NonZero;
use std::path::PathBuf;

use clap::ValueEnum;
use clap_complete::ArgValueCompleter;
use floatgate_core::device_file::Duration;
use floatgate_core::endurance::{Lifetime, Until};
use floatgate_core::preparation::Prewrite;
use floatgate_core::summary::Summary;
use floatgate_run::device::LoadedDevice;
use floatgate_run::frontend::{Frontend, Stopped};
use floatgate_run::jobs;
use floatgate_run::lifetime;
use floatgate_run::seeds::SeedRuns;
use floatgate_run::session::{Finished, Session};
use floatgate_run::span::Span;
use floatgate_run::spec::{DetailSpec, Extent, RequestFormat, RunSpec, Seeds, StateSpec, Windows};
use floatgate_run::text::seeds;
use floatgate_run::text::summary::{self, Around};
use floatgate_run::traces::{TraceSpec, Traces};
use floatgate_run::workload::depth_note;

use crate::color;
use crate::complete;
use crate::device::Selection;
use crate::failure::{Failure, say};
use crate::output::print;
use crate::trace_args::{TraceArgs, whole};
use interrupt::Interrupt;
use progress::{Quiet, Terminal};

/// `floatgate run`.
#[derive(Clone, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub(crate) device: Selection,
    /// Jobs in fio syntax, fio job files, models or traces, which run concurrently
    ///
    /// A job is one argument, such as 'rw=randread bs=4k iodepth=32 number_ios=100k'. `-` is a trace on standard input.
    /// Each workload has streams with results of their own.
    ///
    /// A trace can have options of its own, also in one argument: 'trace=PATH offset=10GiB size=20% start=5s name=db'.
    /// They set its region on the device, its start, and the name of its stream (default: the name of the file). They
    /// also include the options for traces below, with an underscore, such as time_scale=0.5 or devices=merge, which
    /// override the options for all traces. See docs/reference/traces.md.
    #[arg(required = true, value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    workloads: Vec<String>,
    /// Initial state of the device: none, fill, aged=V, invalid=V, steady or a workload
    ///
    /// aged=V: filled, with a share V of each block invalid. invalid=V: without valid data, with a share V of the pages
    /// written and invalid. steady: overwritten at random until the write amplification is stable. A job or trace is
    /// served without simulated time. See docs/model/preconditioning.md.
    #[arg(long, value_name = "STATE", default_value = "fill", add = ArgValueCompleter::new(complete::preconditions))]
    precondition: String,
    /// Before the run, write the data that the workload reads before writing it
    ///
    /// none: off. even: evenly over channels, chips, dies and planes. allocation: where the device itself would write
    /// the data.
    ///
    /// This reads the whole workload once before the run. It is refused after `--precondition fill`, `aged` and
    /// `steady`, because all data is written then.
    #[arg(long, value_name = "HOW", default_value = "none")]
    prewrite: Prewrite,
    /// Save the preconditioned state of the device to FILE, for --load-state
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    save_state: Option<PathBuf>,
    /// Load the state of the device from FILE, instead of --precondition
    ///
    /// FILE was written by --save-state, for this device or for one that differs only in options that do not affect
    /// states: times, bus, scheduler, controller, buffer and host. See docs/reference/state.md.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["precondition", "save_state"])]
    load_state: Option<PathBuf>,
    /// Set KEY of all jobs of the job files, such as runtime=10, size=1g or number_ios=100k; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set_job: Vec<String>,
    /// Leave out keys of job files that are unknown or not supported, with a warning
    #[arg(long)]
    ignore_unknown: bool,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_hyphen_values = true)]
    seed: u64,
    /// Run with seeds 1 to N, A to B, or A,B,..., and print means with confidence intervals
    ///
    /// Each result is written to DIR/seed-N, if there is --out.
    #[arg(long, value_name = "N|A..B|A,B", conflicts_with_all = ["seed", "json"])]
    seeds: Option<Seeds>,
    /// Number of seeds that run in parallel
    #[arg(long, value_name = "N", default_value_t = NonZero::<usize>::MIN, requires = "seeds", conflicts_with = "until")]
    jobs: NonZero<usize>,
    /// Repeat the workload without simulated time until EVENT, and show how the device wears out
    ///
    /// worn-out: too few good blocks are left for the data of the host. first-expiry: a block has to be erased more
    /// often than it endures. erases=N: N blocks were erased. drive-writes=N: the host has written the capacity N
    /// times. The result is printed, and written to DIR/lifetime.json. See docs/model/wear.md.
    #[arg(long, value_name = "EVENT")]
    until: Option<Until>,
    /// Multiply nand.endurance by SCALE, to shorten the lifetime of --until
    #[arg(long, value_name = "SCALE", default_value_t = 1.0, requires = "until")]
    endurance_scale: f64,
    /// Write the result to DIR/summary.json and DIR/report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Skip the latency breakdown (up to 20% faster)
    #[arg(long)]
    no_attribution: bool,
    #[command(flatten)]
    detail: DetailArgs,
    /// Print all values, instead of the main ones
    #[arg(long, conflicts_with_all = ["json", "seeds", "until"])]
    details: bool,
    /// Print the result as JSON instead
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
}

/// Options for the files that a run writes in addition to its summary.
#[derive(Clone, clap::Args)]
pub struct DetailArgs {
    /// Write every request to DIR/requests.parquet or DIR/requests.csv
    ///
    /// Requests are in the order of completion. The columns are the number, stream, operation, status, address and
    /// length of the request, its arrival, start and completion, and the parts of its latency. During the run, the
    /// files in DIR are named NAME.*.partial. See docs/reference/requests.md.
    #[arg(long, value_name = "FORMAT")]
    requests: Option<Requests>,
    /// Length of the windows of simulated time in DIR/series.parquet, such as 10ms
    ///
    /// Default: a length that results in at most 1024 windows, with 200 requests or more on average. A file has at most
    /// a million windows. See docs/reference/series.md.
    #[arg(long, value_name = "WINDOW", num_args = 0..=1, require_equals = true)]
    series: Option<Option<Duration>>,
    /// Write a timeline of channels, planes and requests to DIR/timeline.pftrace.gz
    ///
    /// Open it in ui.perfetto.dev. With a span of simulated time, such as --timeline=10ms..12ms, all of the span is
    /// written. Without a span, the timeline ends when it has 256 MiB before compression. See
    /// docs/reference/timeline.md.
    #[arg(long, value_name = "FROM..TO", num_args = 0..=1, require_equals = true)]
    timeline: Option<Option<Span>>,
}

/// Format of `--requests`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Requests {
    /// Typed, compressed columns; read by DuckDB, pandas, Polars and others
    Parquet,
    /// Values separated by commas, in a line per request
    Csv,
}

/// Form in which a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The main values.
    Main,
    /// All values.
    Details,
    /// JSON.
    Json,
}

impl RunArgs {
    /// Returns the form in which the result is printed.
    fn shown(&self) -> Shown {
        match (self.json, self.details) {
            (true, _) => Shown::Json,
            (false, true) => Shown::Details,
            (false, false) => Shown::Main,
        }
    }

    /// Returns the specification of the run. `command` is the command line without the name of the program.
    pub(crate) fn spec(&self, command: Vec<String>) -> RunSpec {
        let state = match &self.load_state {
            Some(path) => StateSpec::Saved(path.clone()),
            None => StateSpec::Precondition(self.precondition.clone()),
        };
        RunSpec {
            traces: TraceSpec {
                set_job: self.set_job.clone(),
                ignore_unknown: self.ignore_unknown,
                ..self.trace.spec()
            },
            state,
            prewrite: self.prewrite,
            save_state: self.save_state.clone(),
            seed: self.seed,
            seeds: self.seeds.clone(),
            until: self.until,
            endurance_scale: self.endurance_scale,
            attribution: !self.no_attribution,
            out: self.out.clone(),
            detail: self.detail.spec(),
            command: Some(command),
            ..RunSpec::new(self.device.spec(), self.workloads.clone())
        }
    }

    /// Refuses the value of an option that follows a blank instead of `=` and was therefore parsed as a workload.
    fn check_values(&self) -> Result<(), Failure> {
        for text in &self.workloads {
            if let Some(option) = self.detail.value_behind_a_blank(text) {
                return Err(Failure::mistake(format!(
                    "`{text}` was taken as a workload; to pass it to {option}, write {option}={text}"
                )));
            }
        }
        Ok(())
    }
}

impl DetailArgs {
    /// Returns the options for the specification of the run.
    fn spec(&self) -> DetailSpec {
        DetailSpec {
            requests: self.requests.map(|format| match format {
                Requests::Parquet => RequestFormat::Parquet,
                Requests::Csv => RequestFormat::Csv,
            }),
            series: self.series.map(|width| width.map_or(Windows::Adaptive, Windows::Fixed)),
            timeline: self.timeline.map(|span| span.map_or(Extent::Limited, Extent::Within)),
        }
    }

    /// Returns the option whose value follows a blank and was therefore parsed as the workload `text`.
    fn value_behind_a_blank(&self, text: &str) -> Option<&'static str> {
        let options = [
            ("--series", self.series == Some(None) && text.parse::<Duration>().is_ok()),
            ("--timeline", self.timeline == Some(None) && text.parse::<Span>().is_ok()),
        ];
        options.into_iter().find(|(_, is_value)| *is_value).map(|(option, _)| option)
    }
}

/// Runs the command. `given` is the command line without the name of the program.
pub fn run(args: &RunArgs, given: Vec<String>) -> Result<(), Failure> {
    args.check_values()?;
    let spec = args.spec(given);
    spec.check()?;
    // Signals are handled only from here on, so that Ctrl-C ends the process while it waits for a device file that is a
    // pipe.
    let chosen = spec.device.load().map_err(Failure::mistake)?;
    chosen.scale_notes().iter().for_each(|note| say(&format!("note: {note}")));
    let interrupt = Interrupt::install()?;
    let traces = Traces::new(spec.traces.clone(), interrupt.stop());
    let terminal = Terminal::new(interrupt);
    if spec.until.is_some() {
        return run_lifetimes(&spec, &traces, &chosen, &terminal, args.json);
    }
    match &spec.seeds {
        Some(_) => run_seeds(&spec, &traces, &chosen, &terminal, args.jobs.get()),
        None => run_one(&spec, &traces, chosen, &terminal, args.shown()),
    }
}

/// Runs with one seed, and prints the result.
fn run_one(
    spec: &RunSpec,
    traces: &Traces,
    chosen: LoadedDevice,
    terminal: &Terminal,
    shown: Shown,
) -> Result<(), Failure> {
    let session = Session::open(spec, traces, chosen, terminal)?;
    note_depth(spec);
    let finished = session.run_into_directory(terminal)?;
    print_result(&finished, shown)?;
    if finished.summary.complete { Ok(()) } else { Err(Failure::Ended) }
}

/// Prints a note if a workload keeps a depth that fio would limit.
fn note_depth(spec: &RunSpec) {
    if let Some(note) = depth_note(&spec.workloads) {
        say(&format!("note: {note}"));
    }
}

/// Data about the run of a seed: its result, the descriptions of its workloads, its preparation time and its files.
type OfSeed = (Summary, Vec<String>, Option<f64>, Vec<PathBuf>);

/// Runs with each seed, up to `jobs` at the same time, and prints one summary of all results with confidence
/// intervals.
fn run_seeds(
    spec: &RunSpec,
    traces: &Traces,
    chosen: &LoadedDevice,
    terminal: &Terminal,
    jobs: usize,
) -> Result<(), Failure> {
    let runs = SeedRuns::open(spec, traces, chosen)?;
    note_depth(spec);
    let wanted = runs.specs().len();
    let mut finished: Vec<(usize, OfSeed)> = Vec::new();
    let (mut failure, mut is_ended) = (None, false);
    let mut keep = |index: usize, result: Result<OfSeed, Stopped>| {
        let seed = runs.specs()[index].seed;
        match result {
            Err(stopped) if stopped.is_interrupted() => {
                say(&format!("seed {seed}: {}", stopped.failure));
                is_ended = true;
            }
            Err(stopped) => failure = failure.take().or(Some(stopped)),
            Ok(of_seed) => {
                let (number, cost) = (finished.len() + 1, summary::real_time(&of_seed.0, of_seed.2));
                say(&format!("seed {seed}, {number} of {wanted}: {cost}"));
                is_ended |= !of_seed.0.complete;
                if of_seed.0.complete {
                    finished.push((index, of_seed));
                }
            }
        }
        failure.is_none() && !is_ended
    };
    if jobs == 1 {
        let mut results = runs.specs().iter().map(|spec| run_seed(spec, &runs, traces, chosen, terminal)).enumerate();
        while results.next().is_some_and(|(index, result)| keep(index, result)) {}
    } else {
        let interrupt = terminal.interrupt();
        let quiet = |seed| Quiet { interrupt: interrupt.clone(), seed };
        let work = |spec: &RunSpec| run_seed(spec, &runs, traces, chosen, &quiet(spec.seed));
        jobs::each(jobs, runs.specs(), work, keep);
    }
    if let Some(stopped) = failure {
        return Err(stopped.into());
    }
    finished.sort_by_key(|(index, _)| *index);
    let descriptions = finished.first().map(|(_, of_seed)| of_seed.1.clone()).unwrap_or_default();
    let reports = finished.iter().filter_map(|(_, of_seed)| of_seed.3.first().cloned()).collect();
    let summaries: Vec<Summary> = finished.into_iter().map(|(_, of_seed)| of_seed.0).collect();
    print(color::labels(seeds::text(&summaries, &descriptions, reports, wanted)))?;
    if is_ended { Err(Failure::Ended) } else { Ok(()) }
}

/// Runs with one of the seeds of `runs`.
fn run_seed(
    spec: &RunSpec,
    runs: &SeedRuns,
    traces: &Traces,
    chosen: &LoadedDevice,
    frontend: &dyn Frontend,
) -> Result<OfSeed, Stopped> {
    let session = Session::open(spec, traces, chosen.clone(), frontend)?.with_shared(runs.shared());
    let Finished { summary, workload, prepared_s, written } = session.run_into_directory(frontend)?;
    Ok((summary, workload.descriptions(), prepared_s, written))
}

/// Wears the device out with each seed, and prints the result, as JSON if `json`.
fn run_lifetimes(
    spec: &RunSpec,
    traces: &Traces,
    chosen: &LoadedDevice,
    terminal: &Terminal,
    json: bool,
) -> Result<(), Failure> {
    let lifetimes = lifetime::run(spec, traces, chosen, terminal)?;
    print(&if json { lifetimes.to_json() } else { lifetime_text::text(&lifetimes) })?;
    if lifetimes.runs.iter().any(Lifetime::was_interrupted) { Err(Failure::Ended) } else { Ok(()) }
}

/// Prints the result.
fn print_result(finished: &Finished, shown: Shown) -> Result<(), Failure> {
    // If both streams go to a terminal, the warnings are already visible there.
    let with_warnings = !(std::io::stdout().is_terminal() && std::io::stderr().is_terminal());
    let Finished { summary, workload, prepared_s, written } = finished;
    if shown == Shown::Json {
        return print(summary.to_json());
    }
    let descriptions = &workload.descriptions();
    let with_details = shown == Shown::Details;
    let around = Around { descriptions, prepared_s: *prepared_s, written, with_warnings, with_details };
    print(color::labels(summary::text(summary, &around)))
}
