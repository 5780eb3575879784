//! `floatgate run`: a workload on a device.

pub mod interrupt;
pub mod progress;
pub mod report;
mod why;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use floatgate_core::config::units::Duration;
use floatgate_core::metrics::summary::Summary;
use floatgate_core::precondition::Prewrite;
use floatgate_core::sim::text::escaped_lines;
use floatgate_run::chosen::Chosen;
use floatgate_run::seeds::SeedRuns;
use floatgate_run::session::{Finished, Session};
use floatgate_run::span::Span;
use floatgate_run::spec::{DetailSpec, Extent, RequestFormat, RunSpec, Seeds, StateSpec, Windows};
use floatgate_run::traces::Traces;
use floatgate_run::workload::Workload;

use crate::device::Selection;
use crate::failure::{Failure, say};
use crate::trace_args::{TraceArgs, whole};
use interrupt::Interrupt;
use progress::Terminal;

/// `floatgate run`.
#[derive(Clone, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub(crate) device: Selection,
    /// A job in fio's words, like 'rw=randread bs=4k iodepth=32 number_ios=100k', a job file of fio's, or a trace file
    /// (- for standard input); or several of them, which run beside each other
    ///
    /// Each is a stream with results of its own. A trace may have words of its own, in one pair of quotes: 'trace=PATH
    /// offset=10GiB size=20% start=5s name=db', where it works on the device, when it starts and what its stream is
    /// called (without a name, by its file), and the options for traces below with an underscore, like time_scale=0.5
    /// or devices=merge, which override those given for all. See docs/reference/traces.md.
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// State of the device before the run: none, fill, aged=V (this share of each block is superseded), invalid=V (empty,
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
    prewrite: Prewrite,
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
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_hyphen_values = true)]
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
}

/// Options for the files that a run writes in addition to its summary.
#[derive(Clone, clap::Args)]
pub struct DetailArgs {
    /// Write every request to DIR/requests.parquet or DIR/requests.csv, in the order of completion
    ///
    /// The columns are the number, stream, operation, status, address and length of the request, its arrival, start and
    /// completion, and the parts of its latency. See docs/reference/requests.md. During the run the files of DIR are
    /// named *.partial.
    #[arg(long, value_name = "FORMAT")]
    requests: Option<Requests>,
    /// Length of the windows of simulated time in DIR/series.parquet, like 10ms
    ///
    /// Without it they are as long as needed for 512 to 1024 of them. A file has a million windows at most. See
    /// docs/reference/series.md.
    #[arg(long, value_name = "WINDOW", num_args = 0..=1, require_equals = true)]
    series: Option<Option<Duration>>,
    /// Write what every channel, plane and request did when to DIR/timeline.json.gz, for ui.perfetto.dev
    ///
    /// With a span of simulated time, like --timeline=10ms..12ms, that is written whole; without, what fits 256 MiB
    /// before compression. See docs/reference/timeline.md.
    #[arg(long, value_name = "FROM..TO", num_args = 0..=1, require_equals = true)]
    timeline: Option<Option<Span>>,
}

/// Format of `--requests`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Requests {
    /// Columns with types, compressed; read by DuckDB, pandas, polars and others
    Parquet,
    /// One line each, separated by commas
    Csv,
}

impl RunArgs {
    /// Returns the specification of the run. `command` is the command line, without the name of the program.
    pub(crate) fn spec(&self, command: Vec<String>) -> RunSpec {
        let state = match &self.load_state {
            Some(path) => StateSpec::Saved(path.clone()),
            None => StateSpec::Precondition(self.precondition.clone()),
        };
        RunSpec {
            traces: self.trace.spec(),
            state,
            prewrite: self.prewrite,
            save_state: self.save_state.clone(),
            seed: self.seed,
            seeds: self.seeds,
            attribution: !self.no_attribution,
            out: self.out.clone(),
            detail: self.detail.spec(),
            command: Some(command),
            ..RunSpec::new(self.device.spec(), self.workloads.clone())
        }
    }

    /// Refuses the value of an option that was written after a blank, and so taken for a workload.
    fn check_values(&self) -> Result<(), Failure> {
        for text in &self.workloads {
            if let Some(option) = self.detail.value_behind_a_blank(text) {
                return Err(Failure::mistake(format!(
                    "`{text}` stands where a workload does; as the value of {option} it is written {option}={text}"
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

    /// Returns the option whose value was written after a blank, and so taken for the workload `text`.
    fn value_behind_a_blank(&self, text: &str) -> Option<&'static str> {
        let options = [
            ("--series", self.series == Some(None) && text.parse::<Duration>().is_ok()),
            ("--timeline", self.timeline == Some(None) && text.parse::<Span>().is_ok()),
        ];
        options.into_iter().find(|(_, is_value)| *is_value).map(|(option, _)| option)
    }
}

/// Runs the command. `given` is the command line, without the name of the program.
pub fn run(args: &RunArgs, given: Vec<String>) -> Result<(), Failure> {
    args.check_values()?;
    let spec = args.spec(given);
    spec.check()?;
    // Until here Ctrl-C ends the process: its file may be a pipe.
    let chosen = spec.device.load().map_err(Failure::mistake)?;
    let interrupt = Interrupt::install()?;
    let traces = Traces::new(spec.traces.clone(), interrupt.stop());
    let terminal = Terminal::new(interrupt);
    match &spec.seeds {
        Some(_) => run_seeds(&spec, &traces, &chosen, &terminal),
        None => run_one(&spec, &traces, chosen, &terminal, args.json),
    }
}

/// Runs with one seed, and prints the result, as JSON if `json`.
fn run_one(spec: &RunSpec, traces: &Traces, chosen: Chosen, terminal: &Terminal, json: bool) -> Result<(), Failure> {
    let session = Session::open(spec, traces, chosen, terminal)?;
    let Finished { summary, workload } = session.run_into_directory(terminal)?;
    print(&summary, &workload, json)?;
    if summary.complete { Ok(()) } else { Err(Failure::Ended) }
}

/// Runs with each seed, and prints the figures with their confidence intervals.
fn run_seeds(spec: &RunSpec, traces: &Traces, chosen: &Chosen, terminal: &Terminal) -> Result<(), Failure> {
    let runs = SeedRuns::open(spec, traces, chosen)?;
    let (first, last) = runs.range();
    for spec in runs.specs() {
        let place = spec.out.as_deref().unwrap_or(Path::new("")).display();
        say(&format!("seed {} of {first} to {last}: {place}", spec.seed));
        run_one(spec, traces, chosen.clone(), terminal, false)?;
    }
    write(&escaped_lines(&runs.comparison()?.text()))
}

/// Prints the result.
fn print(summary: &Summary, workload: &Workload, json: bool) -> Result<(), Failure> {
    // On a screen that shows both, warnings have just been said.
    let with_warnings = !(std::io::stdout().is_terminal() && std::io::stderr().is_terminal());
    match json {
        true => write(&summary.to_json()),
        false => write(&report::text(summary, &workload.descriptions(), with_warnings)),
    }
}

/// Writes a text to standard output.
fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::of_stdout)
}
