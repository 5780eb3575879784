//! `floatgate run`: a workload on a device.

pub mod cost;
pub mod detail;
pub mod interrupt;
mod iolog;
pub mod progress;
pub mod report;
mod seeds;
mod several;
pub mod trace;
mod why;
mod workload;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use floatgate_core::config::{self, DeviceConfig};
use floatgate_core::device::{Device, Options};
use floatgate_core::metrics::counters::{Counters, ProgramCause};
use floatgate_core::metrics::summary::{About, Named, Precondition, Summary};
use floatgate_core::precondition::{Layout, lay_out as lay_out_for};
use floatgate_core::run::{RunError, RunOptions, run_with};
use floatgate_core::sim::time::Time;
use floatgate_core::workload::{Source, readable};
use floatgate_report::columns::Origin;

use crate::device::Selection;
use crate::failure::{Failure, say};
use crate::output::Directory;
use cost::Stopwatch;
use detail::{Detail, DetailArgs};
use interrupt::Interrupt;
use progress::{Monitor, Reporter};
use seeds::Seeds;
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
}

/// Runs the command.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    args.check()?;
    let interrupt = Interrupt::install()?;
    match &args.seeds {
        Some(seeds) => seeds::run(args, seeds, &interrupt),
        None => run_one(args, &interrupt),
    }
}

/// Runs with one seed.
fn run_one(args: &RunArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let config = args.device.load().map_err(Failure::mistake)?;
    let mut device = new_device(args, &config)?;
    let mut workload = several::open(&args.workloads, &args.trace, &config, args.seed)?;
    let mut warnings = Warnings::default();
    warnings.add(workload.warnings());
    let directory = args.out.as_deref().map(Directory::open).transpose().map_err(Failure::Fault)?;
    let streams = workload.streams();
    let origin = Origin {
        config_digest: config.digest(),
        device: config.name.clone(),
        workload: workload.named().name,
        seed: args.seed,
    };
    let detail = Detail::open(directory.as_ref(), &args.detail, &device, &streams, &origin);
    let mut detail = detail.map_err(Failure::Fault)?;
    let mut precondition = precondition(&args.precondition, &args.trace, args.seed, &mut device, interrupt)?;
    lay_out(args, &mut device, &mut precondition, interrupt)?;
    warnings.add(not_steady(&precondition));
    workload.begin_logs()?;
    let stopwatch = Stopwatch::start();
    device.array_mut().set_probe(detail.probe());
    let outcome = measure(&mut device, &mut workload.sources, &mut detail, interrupt)?;
    let (wall_s, cpu_s) = stopwatch.read();
    warnings.add(workload.warnings());
    warnings.add(detail.warnings(outcome.elapsed));
    if !outcome.complete {
        // The user knows, and the page says it where it says how long the run was.
        warnings.said.push(report::INTERRUPTED.to_owned());
    }
    warnings.add(partial_pages(&precondition, &device, &outcome.counters));
    if outcome.results.all().count() == 0 && outcome.complete {
        warnings.add([nothing_measured(&workload)]);
    }
    let about = About {
        seed: args.seed,
        device: Named { name: config.name.clone(), digest: plain_digest(&args.device, &config) },
        workload: workload.named(),
        precondition,
        warnings: warnings.said,
        base: config::base_of(&args.device.device),
        arguments: seeds::arguments(args.seed),
    };
    let mut summary = Summary::new(about, &outcome.measurement(&device));
    summary.set_cost(wall_s, cpu_s, cost::peak_rss_bytes());
    if let Some(directory) = &directory {
        directory.write(&summary, detail).map_err(Failure::Fault)?;
    }
    workload.finish_logs()?;
    print(args, &summary, &workload)?;
    if outcome.complete { Ok(()) } else { Err(Failure::Ended) }
}

impl RunArgs {
    /// Options that would do nothing are mistakes.
    fn check(&self) -> Result<(), Failure> {
        for text in &self.workloads {
            if let Some(option) = self.detail.value_behind_a_blank(text) {
                return Err(Failure::mistake(format!(
                    "`{text}` stands where a workload does; as the value of {option} it is written {option}={text}"
                )));
            }
        }
        self.detail.check(self.out.is_some())?;
        self.trace.check()?;
        use floatgate_core::precondition::Precondition as State;
        let state = self.precondition.parse();
        if self.layout != Layout::None && matches!(state, Ok(State::Fill | State::Aged(_) | State::Steady)) {
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

/// The device as it leaves the factory.
fn new_device(args: &RunArgs, config: &DeviceConfig) -> Result<Device, Failure> {
    let options = Options { seed: args.seed, attribution: !args.no_attribution, ..Options::default() };
    Device::new(config.clone(), options).map_err(|error| Failure::mistake(format!("{}: {error}", args.device.device)))
}

/// The digest of the device without the overrides.
pub fn plain_digest(selection: &Selection, config: &DeviceConfig) -> String {
    // A file that needs the overrides to be a device at all has no other digest.
    let Selection { device, overrides } = selection;
    let plain = if overrides.is_empty() { None } else { config::load(device, &[]).ok() };
    plain.as_ref().unwrap_or(config).digest()
}

/// The warning where a steady state was asked for and not reached.
pub fn not_steady(state: &Precondition) -> Option<String> {
    let writes = state.reached.drive_writes;
    (state.reached.converged == Some(false)).then(|| {
        format!(
            "preconditioning to a steady state gave up: after {writes:.0} drive writes, write amplification still moved \
             by more than 1 % from one to the next"
        )
    })
}

/// Brings the device into the state that was asked for; `trace` says how traces are read.
pub fn precondition(
    asked: &str,
    trace: &TraceArgs,
    seed: u64,
    device: &mut Device,
    interrupt: &Interrupt,
) -> Result<Precondition, Failure> {
    let reporter = Reporter::new("preconditioning");
    let on_progress = &mut |share: f64| {
        reporter.share(share);
        !interrupt.requested()
    };
    let reached = match asked.parse() {
        Ok(state) => floatgate_core::precondition::precondition(device, state, seed, on_progress),
        Err(error) if !workload::looks_like_workload(asked) => return Err(Failure::mistake(error)),
        Err(_) => {
            // Not the run's seed: a job like the one that is measured would use the same blocks in the same order.
            let seed = workload::preconditioning_seed(seed);
            let mut workload = Workload::open(asked, trace, device.config(), seed)?.without_logs()?;
            floatgate_core::precondition::precondition_with(device, &mut workload.sources, on_progress)
                .map_err(|error| error.to_string())
        }
    };
    reporter.finish();
    match reached {
        Ok(reached) => Ok(Precondition { asked: asked.to_owned(), reached }),
        Err(_) if interrupt.requested() => Err(Failure::Interrupted("preconditioning was stopped, there is no result")),
        Err(error) => Err(Failure::mistake(format!("--precondition {error}"))),
    }
}

/// Puts what the workload reads and never wrote in flash, where that was asked for, and adds that to the state.
fn lay_out(
    args: &RunArgs,
    device: &mut Device,
    state: &mut Precondition,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if args.layout == Layout::None {
        return Ok(());
    }
    let reporter = Reporter::new("laying out");
    let on_progress = &mut |share: f64| {
        reporter.share(share);
        !interrupt.requested()
    };
    let mut workload = several::open(&args.workloads, &args.trace, device.config(), args.seed)?;
    let laid = lay_out_for(device, &mut workload.sources, args.layout, &mut state.reached, on_progress);
    reporter.finish();
    match laid {
        Ok(units) => {
            let how = if args.layout == Layout::Even { "evenly" } else { "by allocation" };
            let bytes = readable(u128::from(units) * u128::from(device.config().unit_bytes()));
            state.asked = format!("{}, with {bytes} to read laid out {how}", state.asked);
            Ok(())
        }
        Err(_) if interrupt.requested() => Err(Failure::Interrupted("laying out was stopped, there is no result")),
        Err(error) => Err(Failure::mistake(format!("--layout: {error}"))),
    }
}

/// Runs the workload.
fn measure(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    detail: &mut Detail,
    interrupt: &Interrupt,
) -> Result<floatgate_core::run::Outcome, Failure> {
    let reporter = Reporter::new("running");
    let stop_at = sources.iter().filter_map(|source| source.stop_at()).max();
    let mut monitor = Monitor::new(&reporter, interrupt, stop_at, detail);
    let outcome = run_with(device, sources, &mut monitor, RunOptions { profile: true });
    reporter.finish();
    outcome.map_err(|error| match error {
        RunError::Source(error) => Failure::mistake(error),
        RunError::TooLong | RunError::Standstill(_) => Failure::mistake(error),
        RunError::Lost { .. } | RunError::OverBound(_) => {
            Failure::fault(format!("{error}\nThis is a defect of the simulator: please report it."))
        }
        RunError::Observer(error) => Failure::fault(error),
    })
}

/// The warning where writes leave parts of their pages empty, on a device whose state was reached by full ones.
fn partial_pages(precondition: &Precondition, device: &Device, counters: &Counters) -> Option<String> {
    /// The share of the places in the pages written that may be empty, as some are at the end of every run.
    const NEGLIGIBLE: f64 = 0.1;
    let config = device.config();
    let pages = counters.pages_programmed[ProgramCause::Host as usize];
    let places = (pages * u64::from(config.units_per_page())) as f64;
    let empty = 1.0 - counters.host_units as f64 / places.max(1.0);
    let is_steady = precondition.reached.converged.is_some();
    (is_steady && config.units_per_page() > 1 && counters.host_units > 0 && empty > NEGLIGIBLE).then(|| {
        format!(
            "{:.0} % of the places in the pages that the host wrote stayed empty, for its writes are smaller than a \
             page of {}; --precondition steady fills pages, so that write amplification begins below that of these writes: \
             look at it over time, or precondition with the job itself (docs/model/preconditioning.md)",
            empty * 100.0,
            readable(u128::from(config.geometry.page_size.0))
        )
    })
}

/// The warning where no request was measured.
fn nothing_measured(workload: &Workload) -> String {
    let ramp = workload.sources.iter().map(|source| source.measure_from()).max().unwrap_or(Time::ZERO);
    let why = match ramp > Time::ZERO {
        true => format!("the workload ended within its ramp_time of {} s", ramp.as_s()),
        false => "the workload has no requests".to_owned(),
    };
    format!("nothing arrived in the measured part: {why}")
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

/// Warnings, each of which is said once.
#[derive(Debug, Default)]
struct Warnings {
    said: Vec<String>,
}

impl Warnings {
    fn add(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            if !self.said.contains(&warning) {
                say(&format!("warning: {warning}"));
                self.said.push(warning);
            }
        }
    }
}
