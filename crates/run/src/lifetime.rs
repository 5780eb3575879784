//! Lifetimes: repeat the workloads of a specification without time, until the device is worn out.

use floatgate_core::endurance::{Lifetime, Repeated, Until, live};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::{Source, SourceError};
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::summary::Named;
use floatgate_report::statistics::Sample;
use serde::Serialize;

use crate::concurrent;
use crate::cost::Stopwatch;
use crate::device::LoadedDevice;
use crate::failure::Failure;
use crate::files;
use crate::frontend::{Frontend, Stopped, Subject, unless_ended, unless_stopped};
use crate::output::{LIFETIME, Lock, write_whole};
use crate::preparation::prepared_device;
use crate::spec::RunSpec;
use crate::traces::Traces;
use crate::workload::Workload;

/// Lifetimes of a device with one or more seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Lifetimes {
    /// Format of the result.
    pub schema: &'static str,
    /// Version of Floatgate.
    pub version: &'static str,
    /// Arguments of the command that repeats the lifetimes.
    pub arguments: Vec<String>,
    /// Data that the host wrote, in bytes: the mean over the seeds, with its confidence interval.
    pub written_bytes: Option<Sample>,
    /// Data that the host wrote before the first block expired, in bytes, over the seeds with such a block.
    pub first_expiry_bytes: Option<Sample>,
    /// Result for each seed.
    pub runs: Vec<Lifetime>,
}

impl Lifetimes {
    fn new(spec: &RunSpec, runs: Vec<Lifetime>) -> Lifetimes {
        let written: Vec<f64> = runs.iter().map(|run| run.written.bytes as f64).collect();
        let first = |run: &Lifetime| Some(run.expiry?.first_after_bytes? as f64);
        Lifetimes {
            schema: Lifetime::SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            arguments: spec.arguments(),
            written_bytes: Sample::of(&written),
            first_expiry_bytes: Sample::of(&runs.iter().filter_map(first).collect::<Vec<f64>>()),
            runs,
        }
    }

    /// Returns the result as JSON, with a line feed at the end.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|error| unreachable!("a tree of numbers: {error}")) + "\n"
    }
}

/// Runs a lifetime for each seed of a specification, and writes the result to its directory, if it has one. After an
/// interruption, the result ends with the lifetime that was interrupted.
pub fn run(
    spec: &RunSpec,
    traces: &Traces,
    chosen: &LoadedDevice,
    frontend: &dyn Frontend,
) -> Result<Lifetimes, Stopped> {
    spec.check().map_err(Subject::Options.stop())?;
    let Some(until) = spec.until else {
        return Err(Subject::Options.stopped(Failure::mistake("a lifetime needs an event that ends it: --until")));
    };
    chosen.check_single("--until").map_err(Subject::Device.stop())?;
    files::check(spec, traces, chosen, None).map_err(Subject::Output.stop())?;
    let chosen = &scaled(chosen, spec.endurance_scale).map_err(Subject::Device.stop())?;
    until.check(&chosen.config).map_err(|error| Subject::Device.stopped(Failure::mistake(error)))?;
    let lock = spec.out.as_deref().map(Lock::of).transpose();
    let _lock = lock.map_err(|error| Subject::Output.stopped(Failure::Fault(error)))?;
    let seeds = spec.seeds.as_ref().map_or_else(|| vec![spec.seed], |seeds| seeds.all().to_vec());
    let mut runs = Vec::new();
    for seed in seeds {
        let one = RunSpec { seed, seeds: None, ..spec.clone() };
        runs.push(live_once(&one, until, traces, chosen, frontend)?);
        if runs.last().is_some_and(Lifetime::was_interrupted) {
            break;
        }
    }
    let lifetimes = Lifetimes::new(spec, runs);
    if let Some(out) = &spec.out {
        let written = write_whole(&out.join(LIFETIME), lifetimes.to_json().as_bytes(), &frontend.wait());
        written.map_err(|error| Subject::Output.stopped(unless_stopped(error, frontend)))?;
    }
    Ok(lifetimes)
}

/// Returns a device whose blocks endure fewer or more erases.
fn scaled(chosen: &LoadedDevice, scale: f64) -> Result<LoadedDevice, Failure> {
    let mut scaled = chosen.clone();
    let endurance = chosen.config.endurance();
    if scale == 1.0 {
        return Ok(scaled);
    }
    if endurance == 0 {
        let what = "--endurance-scale: blocks of this device endure any number of erases; give nand.endurance";
        return Err(Failure::mistake(what));
    }
    scaled.config.nand.endurance = Some((f64::from(endurance) * scale).round().max(1.0) as u32);
    Ok(scaled)
}

/// Runs the lifetime of one seed.
fn live_once(
    spec: &RunSpec,
    until: Until,
    traces: &Traces,
    chosen: &LoadedDevice,
    frontend: &dyn Frontend,
) -> Result<Lifetime, Stopped> {
    let mut device = prepared_device(spec, traces, chosen, frontend)?;
    let mut workloads = Workloads { spec, traces, chosen, frontend, open: None, first: None };
    let stopwatch = Stopwatch::start();
    frontend.begin("wearing out");
    let lived = live(&mut device, &mut workloads, until, &mut |share| {
        frontend.share(share);
        !frontend.wants_end()
    });
    frontend.end();
    let lived = lived.map_err(|error| failure_of(error, &device, frontend))?;
    let (_, cpu_s) = stopwatch.read();
    Ok(Lifetime::new(&device, workloads.named(), spec.seed, until.to_string(), &lived, cpu_s))
}

/// Workloads of a specification, which are opened for each repetition.
struct Workloads<'a> {
    spec: &'a RunSpec,
    traces: &'a Traces,
    chosen: &'a LoadedDevice,
    frontend: &'a dyn Frontend,
    open: Option<Workload>,
    /// Name and digest of the first repetition, once it has ended.
    first: Option<Named>,
}

impl Workloads<'_> {
    /// Returns the name, and the digest of the first repetition, or of its part that was read.
    fn named(&self) -> Named {
        let open = || self.open.as_ref().map(Workload::named);
        self.first.clone().or_else(open).unwrap_or_else(|| unreachable!("a lifetime opens its workloads"))
    }
}

impl Repeated for Workloads<'_> {
    /// Opens the workloads. Each repetition of a job has random numbers of its own.
    fn open(&mut self, repetition: u32) -> Result<&mut [Box<dyn Source>], SourceError> {
        if repetition == 1 {
            self.first = self.open.as_ref().map(Workload::named);
        }
        let seed = match repetition {
            0 => self.spec.seed,
            again => Rng::new(self.spec.seed, &format!("lifetime/{again}")).next_u64(),
        };
        let opened = concurrent::open(&self.spec.workloads, self.traces, &self.chosen.config, seed);
        let opened = opened.and_then(Workload::without_logs);
        let opened = opened.map_err(|failure| SourceError(unless_ended(failure, self.frontend).to_string()))?;
        Ok(&mut self.open.insert(opened).sources)
    }
}

fn failure_of(error: SourceError, device: &Device, frontend: &dyn Frontend) -> Stopped {
    Subject::Run.stopped(match device.fault() {
        Some(fault) => Failure::Fault(fault.clone().into()),
        None if frontend.wants_end() => Failure::Interrupted("the lifetime was stopped, so there is no result"),
        None => Failure::mistake(error),
    })
}
