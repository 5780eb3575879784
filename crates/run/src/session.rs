//! Session of a run, from a specification to its result. All frontends use it.

use std::io;
use std::path::PathBuf;

use floatgate_array::AnySsd;
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::preparation::Prewrite;
use floatgate_core::results::{Breakdown, Sample};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Outcome, Progress, RunError, RunOptions, Watcher};
use floatgate_core::summary::{About, Named, Precondition, Summary};
use floatgate_core::timeline::{CoreWork, Slice};
use floatgate_report::columns::Origin;

use crate::cost::{self, Stopwatch};
use crate::detail::Detail;
use crate::device::LoadedDevice;
use crate::failure::Failure;
use crate::frontend::{Frontend, Observer, Stopped, Subject, unless_ended, unless_stopped};
use crate::memory::Use;
use crate::output::Directory;
use crate::preparation::prewrite;
pub use crate::preparation::{array_options, device_options, new_device, prepare};
use crate::shared::SharedState;
use crate::simulated::{self, build_array, precondition_any, state_warnings, summary_of_any};
use crate::spec::{RunSpec, StateSpec};
use crate::traces::Traces;
use crate::warnings::{
    INTERRUPTED, Warnings, arrivals_outran, depends_on_load, not_served, not_steady, nothing_measured, unfinished,
    used_up_space,
};
use crate::workload::{self, Workload};
use crate::{concurrent, files, no_effect, state};

/// Run that is ready to start.
pub struct Session<'a> {
    spec: &'a RunSpec,
    traces: &'a Traces,
    chosen: LoadedDevice,
    device: AnySsd,
    state: State<'a>,
    shared: Option<&'a SharedState>,
    /// File that the state before the run is written to.
    place: Option<state::Place>,
    workload: Workload,
    warnings: Warnings,
}

/// State of the device before the run.
enum State<'a> {
    /// Preconditioning that the run does first.
    Wanted(&'a str),
    /// State that the device is already in.
    Reached(Precondition),
}

/// Run that has ended.
pub struct Finished {
    /// Result of the run.
    pub summary: Summary,
    /// Workload of the run.
    pub workload: Workload,
    /// Real time of preconditioning and prewriting, in seconds; `None` if the device was in its state already.
    pub prepared_s: Option<f64>,
    /// Files of the result, with the report first.
    pub written: Vec<PathBuf>,
}

impl<'a> Session<'a> {
    /// Checks the specification, builds the device, and opens the workloads. `chosen` is the loaded device of `spec`.
    /// `traces` has the options of `spec`, and is shared by all runs that read the same standard input.
    pub fn open(
        spec: &'a RunSpec,
        traces: &'a Traces,
        chosen: LoadedDevice,
        frontend: &dyn Frontend,
    ) -> Result<Session<'a>, Stopped> {
        spec.check().map_err(Subject::Options.stop())?;
        if let Some(array) = &chosen.array {
            simulated::check_array(spec, array).map_err(Subject::Options.stop())?;
        }
        let options = array_options(&chosen, spec.seed, spec.attribution);
        match &spec.state {
            StateSpec::Saved(path) => {
                let loaded = state::load(path, &chosen, options, frontend).map_err(Subject::Precondition.stop())?;
                Session::of(spec, traces, chosen, loaded.0, State::Reached(loaded.1), frontend)
            }
            StateSpec::Precondition(text) => {
                let device = match &chosen.array {
                    Some(array) => build_array(&chosen, array, options, Use::Filled)?,
                    None => new_device(&chosen, spec.seed, spec.attribution, text)?.into(),
                };
                Session::of(spec, traces, chosen, device, State::Wanted(text), frontend)
            }
        }
    }

    /// Opens the workloads of `spec` for a device that [`prepare`] has brought into a state.
    pub fn on_prepared(
        spec: &'a RunSpec,
        traces: &'a Traces,
        chosen: LoadedDevice,
        device: AnySsd,
        state: Precondition,
        frontend: &dyn Frontend,
    ) -> Result<Session<'a>, Stopped> {
        spec.check().map_err(Subject::Options.stop())?;
        Session::of(spec, traces, chosen, device, State::Reached(state), frontend)
    }

    fn of(
        spec: &'a RunSpec,
        traces: &'a Traces,
        chosen: LoadedDevice,
        device: AnySsd,
        state: State<'a>,
        frontend: &dyn Frontend,
    ) -> Result<Session<'a>, Stopped> {
        let workload = concurrent::open(&spec.workloads, traces, &chosen.config, spec.seed);
        let workload = workload.map_err(|failure| subject_of(spec).stopped(unless_ended(failure, frontend)))?;
        files::check(spec, traces, &chosen, None).map_err(Subject::Output.stop())?;
        let mut warnings = Warnings::default();
        warnings.add(workload.warnings(), frontend);
        let place = spec.save_state.as_deref().map(|path| state::Place::open(path, frontend)).transpose();
        let place = place.map_err(Subject::Output.stop())?;
        Ok(Session { spec, traces, chosen, device, state, shared: None, place, workload, warnings })
    }

    /// Shares the state before the run with runs that have other seeds.
    pub fn with_shared(self, shared: Option<&'a SharedState>) -> Session<'a> {
        Session { shared, ..self }
    }

    /// Returns the configuration of the device. For an array: an SSD with the flash of all members.
    pub fn config(&self) -> &DeviceConfig {
        &self.chosen.config
    }

    /// Returns the names of the streams.
    pub fn streams(&self) -> Vec<String> {
        self.workload.streams()
    }

    /// Returns the origin for the files of the result: device, workload and seed.
    pub fn origin(&self) -> Origin {
        Origin {
            config_digest: self.chosen.digest(),
            device: self.chosen.config.name.clone(),
            workload: self.workload.named().name,
            seed: self.spec.seed,
        }
    }

    /// Runs the workload, and writes the result and its details to the directory of the specification, if it has one.
    pub fn run_into_directory(self, frontend: &dyn Frontend) -> Result<Finished, Stopped> {
        let written = |error| Subject::Output.stopped(unless_stopped(error, frontend));
        let out = self.spec.out.as_deref();
        let directory = out.map(|out| Directory::open(out, &frontend.wait())).transpose().map_err(written)?;
        let detail = Detail::open(directory.as_ref(), &self.spec.detail, &self.device, &self.streams(), &self.origin());
        let mut detail = detail.map_err(written)?;
        let mut finished = self.run(&mut detail, frontend)?;
        if let Some(directory) = &directory {
            let files = directory.write(&finished.summary, |run| detail.finish(run)).map_err(written)?;
            let of_members = directory.write_members(&finished.summary, &frontend.wait()).map_err(written)?;
            finished.written = files.into_iter().chain(of_members).collect();
        }
        finished.workload.finish_logs(frontend).map_err(Subject::Output.stop())?;
        Ok(finished)
    }

    /// Brings the device into the requested state, and runs the workload.
    pub fn run(self, observer: &mut dyn Observer, frontend: &dyn Frontend) -> Result<Finished, Stopped> {
        let Session { spec, traces, chosen, mut device, state, shared, place, mut workload, mut warnings } = self;
        let is_prepared = matches!(state, State::Reached(_)) && spec.prewrite == Prewrite::None;
        let stopwatch = Stopwatch::start();
        let mut precondition = match state {
            State::Reached(state) => state,
            State::Wanted(text) => {
                let prepare = |ssd: &mut AnySsd| precondition_any(ssd, text, traces, spec.seed, frontend);
                let reached = match shared {
                    Some(shared) => shared.bring(&mut device, &chosen, spec, prepare),
                    None => prepare(&mut device),
                };
                reached.map_err(Subject::Precondition.stop())?
            }
        };
        if let Some(place) = place {
            place.write(&device, &precondition, frontend).map_err(Subject::Output.stop())?;
        }
        prewrite(spec, traces, &mut device, &mut precondition, frontend).map_err(Subject::Precondition.stop())?;
        let prepared_s = (!is_prepared).then(|| stopwatch.read().0);
        warnings.add(not_steady(&precondition), frontend);
        warnings.add(depends_on_load(&precondition, device.config()), frontend);
        workload.begin_logs(frontend).map_err(Subject::Output.stop())?;
        let stopwatch = Stopwatch::start();
        device.set_probe(observer.probe());
        let outcome = measure(&mut device, &mut workload.sources, observer, frontend);
        let outcome = outcome.map_err(|error| failure_of(spec, error, frontend))?;
        let (wall_s, cpu_s) = stopwatch.read();
        warnings.add(workload.warnings(), frontend);
        warnings.add(observer.warnings(outcome.elapsed), frontend);
        if !outcome.complete {
            // The user requested the end, and the text of the result reports it with the length of the run.
            warnings.add_silently(INTERRUPTED);
        }
        warnings.add(unfinished(outcome.unfinished), frontend);
        warnings.add(state_warnings(&device, &precondition, &outcome.counters), frontend);
        warnings.add(outcome.backlogs.iter().map(arrivals_outran), frontend);
        let (served, refused) = (outcome.results.all().count(), outcome.results.all().errors);
        let read_only_since = match &device {
            AnySsd::Device(device) => device.ftl().read_only_since(),
            AnySsd::Array(..) => None,
        };
        warnings.add(not_served(served, refused, read_only_since), frontend);
        if served + refused == 0 && outcome.complete {
            warnings.add([nothing_measured(&workload)], frontend);
        }
        let about = About {
            seed: spec.seed,
            device: Named { name: chosen.config.name.clone(), digest: chosen.plain_digest.clone() },
            workload: workload.named(),
            precondition,
            warnings: warnings.into_texts(),
            base: chosen.base.clone(),
            arguments: spec.arguments(),
        };
        let mut summary =
            summary_of_any(&device, about, &outcome).map_err(|error| failure_of(spec, error, frontend))?;
        let mut late = Warnings::default();
        late.add(no_effect::lines(&chosen, &workload, &summary), frontend);
        late.add(used_up_space(&summary), frontend);
        summary.objects = workload.objects();
        summary.warnings.extend(late.into_texts());
        summary.set_cost(wall_s, cpu_s, cost::peak_rss_bytes());
        Ok(Finished { summary, workload, prepared_s, written: Vec::new() })
    }
}

/// Returns the subject of failures in the workloads: a trace, if one of them is a trace.
fn subject_of(spec: &RunSpec) -> Subject {
    if spec.workloads.iter().any(|text| workload::is_trace(text)) { Subject::Trace } else { Subject::Workload }
}

/// Runs the workload.
fn measure(
    device: &mut AnySsd,
    sources: &mut [Box<dyn Source>],
    observer: &mut dyn Observer,
    frontend: &dyn Frontend,
) -> Result<Outcome, RunError> {
    frontend.begin("running");
    let stop_at = sources.iter().filter_map(|source| source.stop_at()).max();
    let mut monitor = Monitor { frontend, stop_at, observer };
    let outcome = device.run(sources, &mut monitor, RunOptions { profile: true });
    frontend.end();
    outcome
}

/// Converts the error of a run into the failure that the user sees.
fn failure_of(spec: &RunSpec, error: RunError, frontend: &dyn Frontend) -> Stopped {
    match error {
        // The user ended the run while it waited for the reader of a log.
        RunError::Source(error) if frontend.wants_end() => {
            Subject::Output.stopped(unless_stopped(anyhow::anyhow!(error), frontend))
        }
        RunError::Source(error) => subject_of(spec).stopped(Failure::mistake(error)),
        RunError::TooLong | RunError::Standstill(_) => Subject::Run.stopped(Failure::mistake(error)),
        RunError::Lost { .. } | RunError::Stuck { .. } | RunError::OverBound(_) => Subject::Run
            .stopped(Failure::fault(format!("{error}\nThis is a defect of the simulator: please report it."))),
        RunError::Policy(fault) => Subject::Run.stopped(Failure::Fault(fault.into())),
        RunError::Observer(error) => Subject::Output.stopped(unless_stopped(anyhow::anyhow!(error), frontend)),
    }
}

/// Watcher of a run: reports its progress, passes its details to the observer, and ends it if the user requests that.
struct Monitor<'a> {
    frontend: &'a dyn Frontend,
    stop_at: Option<Time>,
    observer: &'a mut dyn Observer,
}

impl Watcher for Monitor<'_> {
    fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> Result<(), String> {
        self.observer.completed(completion, breakdown).map_err(reported)
    }

    fn progress(&mut self, progress: Progress) -> bool {
        let of_time = self.stop_at.map(|at| progress.now.as_s() / at.as_s());
        // The workload ends with its requests or with its time, whichever is first.
        let share = [progress.share, of_time].into_iter().flatten().reduce(f64::max);
        self.frontend.progress(&progress, share);
        !self.frontend.wants_end()
    }

    fn is_overdue(&self) -> bool {
        self.frontend.is_overdue()
    }

    fn next_sample(&self) -> Time {
        self.observer.next_sample()
    }

    fn record(&mut self, sample: &Sample) -> Result<(), String> {
        self.observer.record(sample).map_err(reported)
    }

    fn record_last(&mut self, sample: &Sample) -> Result<(), String> {
        self.observer.record_last(sample).map_err(reported)
    }

    fn wants_slices(&self) -> bool {
        self.observer.wants_slices()
    }

    fn slices(&mut self, slices: &[Slice]) -> Result<(), String> {
        self.observer.slices(slices).map_err(reported)
    }

    fn works(&mut self, works: &[CoreWork]) -> Result<(), String> {
        self.observer.works(works).map_err(reported)
    }
}

fn reported(error: io::Error) -> String {
    format!("cannot write {error}")
}
