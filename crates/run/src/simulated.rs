//! Simulated SSD of a run: a single one, or an array.

use floatgate_array::config::ArrayConfig;
use floatgate_array::{self as array, AnySsd, SsdArray};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::preparation::Precondition as State;
use floatgate_core::results::Counters;
use floatgate_core::simulation::{Device, Outcome, RunError};
use floatgate_core::summary::{About, Named, Precondition, Reached, Summary};

use crate::device::LoadedDevice;
use crate::failure::Failure;
use crate::frontend::{Frontend, Stopped, Subject};
use crate::memory::{self, Use};
use crate::preparation;
use crate::spec::RunSpec;
use crate::traces::{TraceSpec, Traces};
use crate::warnings::partial_pages;

/// Refuses options that need a single SSD.
pub fn check_array(spec: &RunSpec, config: &ArrayConfig) -> Result<(), Failure> {
    if spec.detail.timeline.is_some() && !config.is_uniform() {
        Err(Failure::mistake(
            "--timeline is not supported for an array; its members have different geometries; run one of them alone, \
             or give --series",
        ))
    } else {
        Ok(())
    }
}

/// Builds an array. Fails if it needs more memory than is available.
pub fn build_array(
    chosen: &LoadedDevice,
    config: &ArrayConfig,
    options: array::Options,
    usage: Use,
) -> Result<AnySsd, Stopped> {
    memory::check(chosen, &options.of_member(options.seed), usage).map_err(Subject::Device.stop())?;
    let array = SsdArray::new(config.clone(), options)
        .map_err(|error| Subject::Device.stopped(Failure::mistake(format!("{}: {error}", chosen.spec.called()))))?;
    Ok(array.into())
}

/// Brings an SSD into the state `text`. Members of an array are brought into it one after the other, except those that
/// have failed. A workload is one of the array.
pub(crate) fn precondition_any(
    ssd: &mut AnySsd,
    text: &str,
    traces: &Traces,
    seed: u64,
    frontend: &dyn Frontend,
) -> Result<Precondition, Failure> {
    let array = match ssd {
        AnySsd::Device(device) => return preparation::precondition(text, traces, seed, device, frontend),
        AnySsd::Array(array, _) => array,
    };
    let mut reached = Vec::new();
    if text.parse::<State>().is_err() {
        reached = preparation::precondition_array(text, traces, seed, array, frontend)?;
        return Ok(Precondition { requested: text.to_owned(), reached: mean(&reached) });
    }
    for member in (0..array.config().members.len()).filter(|&member| !array.has_failed(member)).collect::<Vec<_>>() {
        // Each member has a seed of its own, so that their states differ.
        let seed = seed.wrapping_add((member as u64) << 32);
        reached.push(preparation::precondition(text, traces, seed, array.member_mut(member), frontend)?.reached);
    }
    Ok(Precondition { requested: text.to_owned(), reached: mean(&reached) })
}

/// Returns the warnings about the state of an SSD after a run.
pub(crate) fn state_warnings(ssd: &AnySsd, state: &Precondition, counters: &Counters) -> Vec<String> {
    match ssd {
        AnySsd::Device(device) => {
            let worn = device.ftl().wear_warning(device.config());
            partial_pages(state, device, counters).into_iter().chain(worn).collect()
        }
        AnySsd::Array(array, _) => {
            let members = (0..array.config().members.len()).map(|member| (member, array.member(member)));
            let warning = |(number, device): (usize, &Device)| {
                device.ftl().wear_warning(device.config()).map(|warning| format!("member {number}: {warning}"))
            };
            members.filter_map(warning).collect()
        }
    }
}

/// Builds the summary of a run. Fails if a member of an array did more work than it can, which is a defect.
pub fn summary_of_any(ssd: &AnySsd, about: About, outcome: &Outcome) -> Result<Summary, RunError> {
    match ssd {
        AnySsd::Device(device) => Ok(Summary::new(about, &outcome.measurement(device))),
        AnySsd::Array(array, config) => summary_of_array(array, config, about, outcome),
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
    chosen: &LoadedDevice,
    config: &ArrayConfig,
    options: array::Options,
    requested: &str,
    frontend: &dyn Frontend,
) -> Result<(SsdArray, Precondition), Stopped> {
    match prepare_any(chosen, Some(config), options, requested, frontend)? {
        (AnySsd::Array(array, _), state) => Ok((*array, state)),
        (AnySsd::Device(_), _) => unreachable!("an array was built"),
    }
}

/// Builds a single SSD, or an array, and brings it into the state `requested`, for callers that do not run a session.
pub fn prepare_any(
    chosen: &LoadedDevice,
    config: Option<&ArrayConfig>,
    options: array::Options,
    requested: &str,
    frontend: &dyn Frontend,
) -> Result<(AnySsd, Precondition), Stopped> {
    let usage = if requested == "none" { Use::Sparse } else { Use::Filled };
    let mut ssd = match config {
        Some(config) => build_array(chosen, config, options.clone(), usage)?,
        None => preparation::new_device(chosen, options.seed, options.attribution, requested)?.into(),
    };
    let traces = Traces::new(TraceSpec::default(), frontend.stop());
    let state = precondition_any(&mut ssd, requested, &traces, options.seed, frontend);
    Ok((ssd, state.map_err(Subject::Precondition.stop())?))
}

/// Builds the summary of a run of an array. Fails if a member did more work than it can, which is a defect.
fn summary_of_array(
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
