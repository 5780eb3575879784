//! Preparation of an SSD: builds it, and brings it into the state before a run.

use std::fmt::Display;

use floatgate_array as array;
use floatgate_array::{AnySsd, SsdArray};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::policies::Fault;
use floatgate_core::preparation::{Precondition as State, Prewrite, prewrite as prewrite_for};
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::summary::{Precondition, Reached};
use floatgate_workload::quantity::readable;

use crate::device::LoadedDevice;
use crate::failure::Failure;
use crate::frontend::{Frontend, Stopped, Subject, unless_ended};
use crate::memory::{self, Use};
use crate::spec::{RunSpec, StateSpec};
use crate::traces::{TraceSpec, Traces};
use crate::workload::{self, Workload};
use crate::{concurrent, state};

/// Returns the options of the array of a run.
pub fn array_options(chosen: &LoadedDevice, seed: u64, attribution: bool) -> array::Options {
    array::Options { seed, attribution, externals: chosen.spec.makers.clone(), ..array::Options::default() }
}

/// Returns the options of the device of a run.
pub fn device_options(chosen: &LoadedDevice, seed: u64, attribution: bool) -> Options {
    array_options(chosen, seed, attribution).of_member(seed)
}

/// Builds a new device, which will be brought into the state `requested`. Fails if the device needs more memory than is
/// available.
pub fn new_device(chosen: &LoadedDevice, seed: u64, attribution: bool, requested: &str) -> Result<Device, Stopped> {
    chosen.check_single("this").map_err(Subject::Device.stop())?;
    let usage = match requested.parse() {
        Ok(State::Fill | State::Aged(_) | State::Steady) => Use::Filled,
        _ => Use::Sparse,
    };
    let options = device_options(chosen, seed, attribution);
    memory::check(chosen, &options, usage).map_err(Subject::Device.stop())?;
    Device::new(chosen.config.clone(), options)
        .map_err(|error| Subject::Device.stopped(Failure::mistake(format!("{}: {error}", chosen.spec.called()))))
}

/// Builds the device of a specification, and brings it into the state before its run.
pub(crate) fn prepared_device(
    spec: &RunSpec,
    traces: &Traces,
    chosen: &LoadedDevice,
    frontend: &dyn Frontend,
) -> Result<Device, Stopped> {
    match &spec.state {
        StateSpec::Saved(path) => {
            chosen.check_single("this").map_err(Subject::Device.stop())?;
            let loaded = state::load(path, chosen, array_options(chosen, spec.seed, false), frontend);
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
    let reached = match requested.parse() {
        Ok(state) => floatgate_core::preparation::precondition(device, state, seed, &mut shares(frontend)),
        Err(_) => {
            let mut workload = preconditioning_workload(requested, traces, device.config(), seed, frontend)?;
            floatgate_core::preparation::precondition_with(device, &mut workload.sources, &mut shares(frontend))
                .map_err(|error| error.to_string())
        }
    };
    frontend.end();
    let reached = check(reached, "preconditioning", "--precondition ", device.fault(), frontend)?;
    Ok(Precondition { requested: requested.to_owned(), reached })
}

/// Brings the members of an array into the state that a workload of the array leaves.
pub(crate) fn precondition_array(
    requested: &str,
    traces: &Traces,
    seed: u64,
    array: &mut SsdArray,
    frontend: &dyn Frontend,
) -> Result<Vec<Reached>, Failure> {
    frontend.begin("preconditioning");
    let config = array.config().as_one_ssd();
    let mut workload = preconditioning_workload(requested, traces, &config, seed, frontend)?;
    let reached = array.precondition_with(&mut workload.sources, &mut shares(frontend));
    frontend.end();
    check(reached, "preconditioning", "--precondition ", array.fault(), frontend)
}

/// Returns a function that reports the progress of a step, and returns `false` if the user stops it.
fn shares(frontend: &dyn Frontend) -> impl FnMut(f64) -> bool + '_ {
    |share| {
        frontend.share(share);
        !frontend.wants_end()
    }
}

/// Opens a workload that is the precondition. Another seed is used, so that a job like the measured one does not access
/// the same addresses in the same order.
fn preconditioning_workload(
    requested: &str,
    traces: &Traces,
    config: &DeviceConfig,
    seed: u64,
    frontend: &dyn Frontend,
) -> Result<Workload, Failure> {
    if let (Err(error), false) = (requested.parse::<State>(), workload::looks_like_workload(requested)) {
        return Err(Failure::mistake(error));
    }
    let seed = workload::preconditioning_seed(seed);
    let workload = Workload::open(requested, traces, config, seed).and_then(Workload::without_logs);
    workload.map_err(|failure| unless_ended(failure, frontend))
}

/// Converts the error of a step. `option` names the option in errors of the user.
fn check<T, E: Display>(
    result: Result<T, E>,
    step: &str,
    option: &str,
    fault: Option<&Fault>,
    frontend: &dyn Frontend,
) -> Result<T, Failure> {
    match (fault, result) {
        (Some(fault), _) => Err(Failure::Fault(fault.clone().into())),
        (None, Ok(result)) => Ok(result),
        (None, Err(_)) if frontend.wants_end() => Err(Failure::Interrupted(match step {
            "prewriting" => "prewriting was stopped, so there is no result",
            _ => "preconditioning was stopped, so there is no result",
        })),
        (None, Err(error)) => Err(Failure::mistake(format!("{option}{error}"))),
    }
}

/// If prewriting is requested, writes the data that the workload reads before writing it, and adds that to the state.
pub(crate) fn prewrite(
    spec: &RunSpec,
    traces: &Traces,
    ssd: &mut AnySsd,
    state: &mut Precondition,
    frontend: &dyn Frontend,
) -> Result<(), Failure> {
    if spec.prewrite == Prewrite::None {
        return Ok(());
    }
    frontend.begin("prewriting");
    let workload = concurrent::open(&spec.workloads, traces, ssd.config(), spec.seed);
    let mut workload = workload.map_err(|failure| unless_ended(failure, frontend))?;
    let sources = &mut workload.sources;
    let on_progress = &mut shares(frontend);
    let written = match ssd {
        AnySsd::Device(device) => {
            let bytes = device.config().unit_bytes();
            let units = prewrite_for(device, sources, spec.prewrite, &mut state.reached, on_progress);
            units.map(|units| units * bytes)
        }
        AnySsd::Array(array, _) => array.prewrite(sources, spec.prewrite, &mut state.reached, on_progress),
    };
    frontend.end();
    let bytes = check(written, "prewriting", "--prewrite: ", ssd.fault(), frontend)?;
    let how = if spec.prewrite == Prewrite::Even { "evenly" } else { "by allocation" };
    let bytes = readable(u128::from(bytes));
    state.requested = format!("{}, with {bytes} of read data prewritten {how}", state.requested);
    Ok(())
}
