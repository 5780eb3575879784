//! Preparation of a single SSD: builds it, and brings it into the state before a run.

use floatgate_array as array;
use floatgate_core::device::{Device, Options};
use floatgate_core::metrics::summary::Precondition;
use floatgate_core::precondition::{Prewrite, prewrite as prewrite_for};
use floatgate_workload::quantity::readable;

use crate::chosen::Chosen;
use crate::failure::Failure;
use crate::frontend::{Frontend, Stopped, Subject, unless_ended};
use crate::memory::{self, Use};
use crate::spec::{RunSpec, StateSpec};
use crate::traces::{TraceSpec, Traces};
use crate::workload::{self, Workload};
use crate::{several, state};

/// Returns the options of the array of a run.
pub fn array_options(seed: u64, attribution: bool) -> array::Options {
    array::Options { seed, attribution, ..array::Options::default() }
}

/// Returns the options of the device of a run.
pub fn device_options(seed: u64, attribution: bool) -> Options {
    Options { seed, attribution, ..Options::default() }
}

/// Builds a new device, which will be brought into the state `requested`. Fails if the device needs more memory than is
/// available.
pub fn new_device(chosen: &Chosen, seed: u64, attribution: bool, requested: &str) -> Result<Device, Stopped> {
    use floatgate_core::precondition::Precondition as State;
    chosen.check_single("this").map_err(Subject::Device.stop())?;
    let usage = match requested.parse() {
        Ok(State::Fill | State::Aged(_) | State::Steady) => Use::Filled,
        _ => Use::Sparse,
    };
    let options = device_options(seed, attribution);
    memory::check(&chosen.config, &options, usage).map_err(Subject::Device.stop())?;
    Device::new(chosen.config.clone(), options)
        .map_err(|error| Subject::Device.stopped(Failure::mistake(format!("{}: {error}", chosen.spec.called()))))
}

/// Builds the device of a specification, and brings it into the state before its run.
pub(crate) fn prepared_device(
    spec: &RunSpec,
    traces: &Traces,
    chosen: &Chosen,
    frontend: &dyn Frontend,
) -> Result<Device, Stopped> {
    match &spec.state {
        StateSpec::Saved(path) => {
            chosen.check_single("this").map_err(Subject::Device.stop())?;
            let loaded = state::load(path, chosen, array_options(spec.seed, false), frontend);
            let (loaded, _) = loaded.map_err(Subject::Precondition.stop())?;
            Ok(loaded.into_device().expect("the state of a single SSD"))
        }
        StateSpec::Precondition(text) => {
            let mut device = new_device(chosen, spec.seed, false, text)?;
            let reached = precondition(text, traces, spec.seed, &mut device, frontend);
            reached.map_err(Subject::Precondition.stop())?;
            Ok(device)
        }
    }
}

/// Brings a new device into the state `requested`, for callers that do not run a session.
pub fn prepare(
    requested: &str,
    seed: u64,
    device: &mut Device,
    frontend: &dyn Frontend,
) -> Result<Precondition, Stopped> {
    let traces = Traces::new(TraceSpec::default(), frontend.stop());
    precondition(requested, &traces, seed, device, frontend).map_err(Subject::Precondition.stop())
}

/// Brings the device into the state `requested`.
pub(crate) fn precondition(
    requested: &str,
    traces: &Traces,
    seed: u64,
    device: &mut Device,
    frontend: &dyn Frontend,
) -> Result<Precondition, Failure> {
    frontend.begin("preconditioning");
    let on_progress = &mut |share: f64| {
        frontend.share(share);
        !frontend.wants_end()
    };
    let requested = requested.to_owned();
    let reached = match requested.parse() {
        Ok(state) => floatgate_core::precondition::precondition(device, state, seed, on_progress),
        Err(error) if !workload::looks_like_workload(&requested) => return Err(Failure::mistake(error)),
        Err(_) => {
            // Another seed is used, so that a job like the measured one does not access the same addresses in the same
            // order.
            let seed = workload::preconditioning_seed(seed);
            let workload = Workload::open(&requested, traces, device.config(), seed).and_then(Workload::without_logs);
            let mut workload = workload.map_err(|failure| unless_ended(failure, frontend))?;
            floatgate_core::precondition::precondition_with(device, &mut workload.sources, on_progress)
                .map_err(|error| error.to_string())
        }
    };
    frontend.end();
    if let Some(fault) = device.fault() {
        return Err(Failure::Fault(fault.clone().into()));
    }
    match reached {
        Ok(reached) => Ok(Precondition { requested, reached }),
        Err(_) if frontend.wants_end() => {
            Err(Failure::Interrupted("preconditioning was stopped, so there is no result"))
        }
        Err(error) => Err(Failure::mistake(format!("--precondition {error}"))),
    }
}

/// If prewriting is requested, writes the data that the workload reads before writing it, and adds that to the state.
pub(crate) fn prewrite(
    spec: &RunSpec,
    traces: &Traces,
    device: &mut Device,
    state: &mut Precondition,
    frontend: &dyn Frontend,
) -> Result<(), Failure> {
    if spec.prewrite == Prewrite::None {
        return Ok(());
    }
    frontend.begin("prewriting");
    let on_progress = &mut |share: f64| {
        frontend.share(share);
        !frontend.wants_end()
    };
    let workload = several::open(&spec.workloads, traces, device.config(), spec.seed);
    let mut workload = workload.map_err(|failure| unless_ended(failure, frontend))?;
    let written = prewrite_for(device, &mut workload.sources, spec.prewrite, &mut state.reached, on_progress);
    frontend.end();
    if let Some(fault) = device.fault() {
        return Err(Failure::Fault(fault.clone().into()));
    }
    match written {
        Ok(units) => {
            let how = if spec.prewrite == Prewrite::Even { "evenly" } else { "by allocation" };
            let bytes = readable(u128::from(units) * u128::from(device.config().unit_bytes()));
            state.requested = format!("{}, with {bytes} of read data prewritten {how}", state.requested);
            Ok(())
        }
        Err(_) if frontend.wants_end() => Err(Failure::Interrupted("prewriting was stopped, so there is no result")),
        Err(error) => Err(Failure::mistake(format!("--prewrite: {error}"))),
    }
}
