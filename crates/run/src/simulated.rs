//! Simulated SSD of a run: a single one, or an array.

use std::ops::{Deref, DerefMut};

use floatgate_array::config::ArrayConfig;
use floatgate_array::{self as array, SsdArray};
use floatgate_core::config::DeviceConfig;
use floatgate_core::device::Device;
use floatgate_core::metrics::counters::Counters;
use floatgate_core::metrics::summary::{About, Named, Precondition, Reached, Summary};
use floatgate_core::nand::probe::Probe;
use floatgate_core::precondition::{self, Prewrite};
use floatgate_core::run::{Outcome, RunError, RunOptions, Watcher, replay, run_with};
use floatgate_core::sim::id::PlaneId;
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::ssd::Ssd;

use crate::chosen::Chosen;
use crate::failure::Failure;
use crate::frontend::{Frontend, Stopped, Subject};
use crate::memory::{self, Use};
use crate::preparation::{self, device_options};
use crate::spec::{RunSpec, StateSpec};
use crate::traces::{TraceSpec, Traces};
use crate::warnings::partial_pages;

/// Simulated SSD of a run. It dereferences to the interface that both kinds have.
#[derive(Clone)]
pub enum Simulated {
    /// Single SSD.
    Device(Box<Device>),
    /// Array, with the SSD that has the flash of all members.
    Array(Box<SsdArray>, Box<DeviceConfig>),
}

impl From<Device> for Simulated {
    fn from(device: Device) -> Simulated {
        Simulated::Device(Box::new(device))
    }
}

impl Deref for Simulated {
    type Target = dyn Ssd;

    fn deref(&self) -> &Self::Target {
        match self {
            Simulated::Device(device) => &**device,
            Simulated::Array(array, _) => &**array,
        }
    }
}

impl DerefMut for Simulated {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Simulated::Device(device) => &mut **device,
            Simulated::Array(array, _) => &mut **array,
        }
    }
}

/// Refuses options that need a single SSD.
pub fn check_array(spec: &RunSpec, config: &ArrayConfig) -> Result<(), Failure> {
    let refuse = |option: &str, instead: &str| {
        Err(Failure::mistake(format!("{option} is not supported for an array; {instead}")))
    };
    if spec.save_state.is_some() {
        return refuse("--save-state", "give --precondition to bring all members into a state");
    }
    if spec.prewrite != Prewrite::None {
        return refuse("--prewrite", "give --precondition fill to write all data of the members");
    }
    if spec.detail.timeline.is_some() && !config.is_uniform() {
        return refuse("--timeline", "its members have different geometries; run one of them alone, or give --series");
    }
    match &spec.state {
        StateSpec::Saved(_) => refuse("--load-state", "give --precondition to bring all members into a state"),
        StateSpec::Precondition(text) if text.parse::<precondition::Precondition>().is_err() => {
            refuse(&format!("--precondition {text}"), "give none, fill, aged=V, invalid=V or steady")
        }
        StateSpec::Precondition(_) => Ok(()),
    }
}

impl Simulated {
    /// Builds an array. Fails if it needs more memory than is available.
    pub fn array(
        chosen: &Chosen,
        config: &ArrayConfig,
        options: array::Options,
        usage: Use,
    ) -> Result<Simulated, Stopped> {
        memory::check(&chosen.config, &device_options(options.seed, options.attribution), usage)
            .map_err(Subject::Device.stop())?;
        let array = SsdArray::new(config.clone(), options)
            .map_err(|error| Subject::Device.stopped(Failure::mistake(format!("{}: {error}", chosen.spec.called()))))?;
        Ok(Simulated::Array(Box::new(array), Box::new(chosen.config.clone())))
    }

    /// Returns the configuration. For an array: an SSD with the flash of all members.
    pub fn config(&self) -> &DeviceConfig {
        match self {
            Simulated::Device(device) => device.config(),
            Simulated::Array(_, config) => config,
        }
    }

    /// Returns the LUN of each plane. Those of members follow each other.
    pub(crate) fn luns(&self) -> Vec<u32> {
        let mut luns = Vec::new();
        for device in self.devices() {
            let before = luns.iter().max().map_or(0, |lun| lun + 1);
            luns.extend(
                (0..device.config().total_planes()).map(|plane| before + device.array().lun_of(PlaneId(plane)).0),
            );
        }
        luns
    }

    /// Returns the devices: one, or the members.
    pub fn devices(&self) -> Vec<&Device> {
        match self {
            Simulated::Device(device) => vec![device],
            Simulated::Array(array, _) => {
                (0..array.config().members.len()).map(|number| array.member(number)).collect()
            }
        }
    }

    /// Brings the SSD into the state `text`. Members of an array are brought into it one after the other, except those
    /// that have failed.
    pub(crate) fn precondition(
        &mut self,
        text: &str,
        traces: &Traces,
        seed: u64,
        frontend: &dyn Frontend,
    ) -> Result<Precondition, Failure> {
        let array = match self {
            Simulated::Device(device) => return preparation::precondition(text, traces, seed, device, frontend),
            Simulated::Array(array, _) => array,
        };
        let mut reached = Vec::new();
        for member in (0..array.config().members.len()).filter(|&member| !array.has_failed(member)).collect::<Vec<_>>()
        {
            // Each member has a seed of its own, so that their states differ.
            let seed = seed.wrapping_add((member as u64) << 32);
            reached.push(preparation::precondition(text, traces, seed, array.member_mut(member), frontend)?.reached);
        }
        Ok(Precondition { requested: text.to_owned(), reached: mean(&reached) })
    }

    /// Attaches a probe.
    pub(crate) fn set_probe(&mut self, probe: Option<Probe>) {
        match self {
            Simulated::Device(device) => device.array_mut().set_probe(probe),
            Simulated::Array(array, _) => array.set_probe(probe.as_ref()),
        }
    }

    /// Runs the sources.
    pub(crate) fn run(
        &mut self,
        sources: &mut [Box<dyn Source>],
        watcher: &mut dyn Watcher,
        options: RunOptions,
    ) -> Result<Outcome, RunError> {
        match self {
            Simulated::Device(device) => run_with(device, sources, watcher, options),
            Simulated::Array(array, _) => replay(array.as_mut(), sources, watcher, options),
        }
    }

    /// Returns the warnings about the state after a run.
    pub(crate) fn warnings(&self, state: &Precondition, counters: &Counters) -> Vec<String> {
        match self {
            Simulated::Device(device) => {
                partial_pages(state, device, counters).into_iter().chain(device.wear_warning()).collect()
            }
            Simulated::Array(array, _) => {
                let members = (0..array.config().members.len()).map(|member| (member, array.member(member)));
                let warning = |(number, device): (usize, &Device)| {
                    device.wear_warning().map(|warning| format!("member {number}: {warning}"))
                };
                members.filter_map(warning).collect()
            }
        }
    }

    /// Returns the time at which a single SSD became read-only, if it did.
    pub(crate) fn read_only_since(&self) -> Option<Time> {
        match self {
            Simulated::Device(device) => device.read_only_since(),
            Simulated::Array(..) => None,
        }
    }

    /// Builds the summary of a run. Fails if a member of an array did more work than it can, which is a defect.
    pub(crate) fn summary(&self, about: About, outcome: &Outcome) -> Result<Summary, RunError> {
        match self {
            Simulated::Device(device) => Ok(Summary::new(about, &outcome.measurement(device))),
            Simulated::Array(array, config) => summary_of_array(array, config, about, outcome),
        }
    }
}

/// Returns the mean of the states of members.
fn mean(reached: &[Reached]) -> Reached {
    let count = reached.len().max(1) as f64;
    let mean = |of: &dyn Fn(&Reached) -> f64| reached.iter().map(of).sum::<f64>() / count;
    let optional = |of: fn(&Reached) -> Option<f64>| {
        reached.iter().any(|one| of(one).is_some()).then(|| mean(&|one| of(one).unwrap_or_default()))
    };
    Reached {
        drive_writes: mean(&|one| one.drive_writes),
        write_amplification: optional(|one| one.write_amplification),
        write_amplification_at_hard: optional(|one| one.write_amplification_at_hard),
        mapped: mean(&|one| one.mapped),
        converged: reached.iter().map(|one| one.converged).reduce(|one, other| Some(one? && other?)).flatten(),
    }
}

/// Builds an array, and brings its members into the state `requested`, for callers that do not run a session.
pub fn prepare_array(
    chosen: &Chosen,
    config: &ArrayConfig,
    options: array::Options,
    requested: &str,
    frontend: &dyn Frontend,
) -> Result<(SsdArray, Precondition), Stopped> {
    match prepare_any(chosen, Some(config), options, requested, frontend)? {
        (Simulated::Array(array, _), state) => Ok((*array, state)),
        (Simulated::Device(_), _) => unreachable!("an array was built"),
    }
}

/// Builds a single SSD, or an array, and brings it into the state `requested`, for callers that do not run a session.
pub fn prepare_any(
    chosen: &Chosen,
    config: Option<&ArrayConfig>,
    options: array::Options,
    requested: &str,
    frontend: &dyn Frontend,
) -> Result<(Simulated, Precondition), Stopped> {
    let usage = if requested == "none" { Use::Sparse } else { Use::Filled };
    let mut ssd = match config {
        Some(config) => Simulated::array(chosen, config, options, usage)?,
        None => preparation::new_device(chosen, options.seed, options.attribution, requested)?.into(),
    };
    let traces = Traces::new(TraceSpec::default(), frontend.stop());
    let state = ssd.precondition(requested, &traces, options.seed, frontend);
    Ok((ssd, state.map_err(Subject::Precondition.stop())?))
}

/// Builds the summary of a run of an array. Fails if a member did more work than it can, which is a defect.
pub fn summary_of_array(
    array: &SsdArray,
    config: &DeviceConfig,
    about: About,
    outcome: &Outcome,
) -> Result<Summary, RunError> {
    let members = (0..array.config().members.len()).zip(&outcome.members);
    let members = members.map(|(number, [first, last])| {
        let device = array.member(number);
        let results = array.member_results(number).clone();
        let outcome = Outcome {
            elapsed: outcome.elapsed,
            ..Outcome::between(first, last.clone(), results, None, outcome.complete)
        };
        let measurement = outcome.measurement(device);
        measurement.work().check(outcome.elapsed)?;
        let about = About {
            device: Named { name: device.config().name.clone(), digest: device.config().digest() },
            workload: Named {
                name: format!("member {number} of {}: {}", about.device.name, about.workload.name),
                ..about.workload.clone()
            },
            warnings: Vec::new(),
            base: None,
            ..about.clone()
        };
        Ok(Summary::new(about, &measurement))
    });
    let members = members.collect::<Result<Vec<_>, RunError>>()?;
    let erases = (0..members.len()).flat_map(|number| {
        let blocks = array.member(number).ftl().blocks.all().iter();
        blocks.map(|block| block.erases).collect::<Vec<_>>()
    });
    let mut summary = Summary::new(about, &outcome.measurement_of(config, erases.collect(), None));
    let usage = array.usage();
    // The members count the writes that the array sends them. Results of the array are per write of the host.
    let by_array = |member: Option<f64>| Some(member? * usage.write_amplification?);
    summary.write_amplification = by_array(summary.write_amplification);
    summary.write_amplification_bytes = by_array(summary.write_amplification_bytes);
    summary.config_digest = array.config().digest();
    summary.array = Some(usage);
    summary.members = members;
    Ok(summary)
}
