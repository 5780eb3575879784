//! Runs: executes a workload on a device, with the options of Python.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use arrow_pyarrow::{PyArrowType, Table as PyTable};
use floatgate_core::device_file::DeviceConfig as Config;
use floatgate_core::results::{Breakdown, Sample, Series};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_report::columns::requests::{self, RequestsWriter};
use floatgate_report::columns::series::{self, Row, RowsWriter};
use floatgate_report::digests::run_of;
use floatgate_run::detail::windows_warning;
use floatgate_run::failure::Failure;
use floatgate_run::frontend::{Frontend as _, Observer, Stopped, Subject};
use floatgate_run::session::Session;
use floatgate_run::shared::SharedState;
use floatgate_run::spec::{DetailSpec, RequestFormat, RunSpec, StateSpec, Windows};
use floatgate_run::traces::{Tables, Traces};
use floatgate_workload::trace::TableOptions;
use pyo3::prelude::*;

use crate::device::{DeviceConfig, calls_python};
use crate::errors::enter_as;
use crate::memory::Requests;
use crate::simulator::{Simulator, State};
use crate::tables::{BATCH, Batches};

/// Result: the summary as JSON, and the requests and windows if they were requested.
type RunResult = (String, Option<PyArrowType<PyTable>>, Option<PyArrowType<PyTable>>);

/// Options of a run, with their names in Python. Python passes all of them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    workloads: Vec<String>,
    precondition: Option<String>,
    /// File with a saved state, which replaces `precondition`.
    saved: Option<PathBuf>,
    prewrite: String,
    seed: u64,
    attribution: bool,
    out: Option<PathBuf>,
    requests: bool,
    series: Option<String>,
    timeline: Option<String>,
    /// Workloads in memory, by their texts.
    tables: BTreeMap<String, InMemory>,
}

/// A workload in memory, and its options with their names in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct InMemory {
    requests: Py<Requests>,
    name: Option<String>,
    replay: Option<String>,
    fit: Option<String>,
    limit: Option<u64>,
}

impl Options {
    /// Returns the workloads in memory, by their texts.
    fn tables(&self) -> Result<Tables, Stopped> {
        let table = |(text, table): (&String, &InMemory)| {
            let options = TableOptions {
                name: table.name.clone(),
                replay: table.replay.as_deref().map(|text| value("replay", text)).transpose()?.unwrap_or_default(),
                fit: table.fit.as_deref().map(|text| value("fit", text)).transpose()?.unwrap_or_default(),
                limit: table.limit,
            };
            Ok((text.clone(), (Arc::clone(&table.requests.get().table), options)))
        };
        self.tables.iter().map(table).collect()
    }

    /// Returns the windows of simulated time to record.
    fn windows(&self) -> Result<Option<Windows>, Stopped> {
        self.series.as_deref().map(|text| value("series", text)).transpose()
    }

    /// Returns the specification of the run.
    fn spec(&self, device: &DeviceConfig) -> Result<RunSpec, Stopped> {
        let timeline = self.timeline.as_deref().map(|text| value("timeline", text)).transpose()?;
        let detail = match self.out {
            Some(_) => DetailSpec {
                requests: self.requests.then_some(RequestFormat::Parquet),
                series: self.windows()?,
                timeline,
            },
            None => DetailSpec { timeline, ..DetailSpec::default() },
        };
        let state = match (&self.saved, &self.precondition) {
            (Some(path), _) => StateSpec::Saved(path.clone()),
            (None, Some(text)) => StateSpec::Precondition(text.clone()),
            (None, None) => StateSpec::default(),
        };
        Ok(RunSpec {
            state,
            prewrite: value("prewrite", &self.prewrite)?,
            seed: self.seed,
            attribution: self.attribution,
            out: self.out.clone(),
            detail,
            ..RunSpec::new(device.chosen.spec.clone(), self.workloads.clone())
        })
    }
}

/// Options of a lifetime, with their names in Python. Python passes all of them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct LifetimeOptions {
    workloads: Vec<String>,
    until: String,
    precondition: Option<String>,
    endurance_scale: f64,
    seed: u64,
    seeds: Option<String>,
    out: Option<PathBuf>,
}

impl LifetimeOptions {
    /// Returns the specification of the lifetime.
    fn spec(&self, device: &DeviceConfig) -> Result<RunSpec, Stopped> {
        Ok(RunSpec {
            state: self.precondition.clone().map_or_else(StateSpec::default, StateSpec::Precondition),
            seed: self.seed,
            until: Some(value("until", &self.until)?),
            endurance_scale: self.endurance_scale,
            seeds: self.seeds.as_deref().map(|text| value("seeds", text)).transpose()?,
            out: self.out.clone(),
            ..RunSpec::new(device.chosen.spec.clone(), self.workloads.clone())
        })
    }
}

/// Wears a device out. Returns the result as JSON.
#[pyfunction]
#[pyo3(signature = (device, options, *, progress))]
pub fn lifetime(
    py: Python<'_>,
    device: &DeviceConfig,
    options: LifetimeOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    enter_as(py, calls_python(&device.chosen.config), progress, |frontend| {
        let spec = options.spec(device)?;
        let traces = Traces::new(spec.traces.clone(), frontend.stop());
        Ok(floatgate_run::lifetime::run(&spec, &traces, &device.chosen, frontend)?.to_json())
    })
}

/// Reads the value of an option.
fn value<T: FromStr<Err = String>>(name: &str, text: &str) -> Result<T, Stopped> {
    text.parse().map_err(|error| Subject::Options.stopped(Failure::mistake(format!("{name}={text}: {error}"))))
}

/// State before the runs of several seeds, which the first run prepares if it does not depend on the seed.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Shared(Option<SharedState>);

#[pymethods]
impl Shared {
    #[new]
    fn new(py: Python<'_>, device: &DeviceConfig, precondition: String) -> Shared {
        Shared(py.detach(|| SharedState::new(&device.chosen, &StateSpec::Precondition(precondition))))
    }
}

/// Runs workloads on this device, or on a copy of a prepared device, to which no request was sent. `shared` is the
/// state that runs with other seeds share. Tables that are written to a directory are not returned.
#[pyfunction]
#[pyo3(signature = (device, options, *, prepared, shared, progress))]
pub fn run(
    py: Python<'_>,
    device: &DeviceConfig,
    options: Options,
    prepared: Option<PyRef<'_, Simulator>>,
    shared: Option<PyRef<'_, Shared>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<RunResult> {
    let prepared = prepared.as_deref().map(|simulator| simulator.read(py)).transpose()?;
    let prepared = prepared.as_deref().map(State::prepared);
    let shared = shared.as_deref().and_then(|shared| shared.0.as_ref());
    let calls_python = calls_python(&device.chosen.config);
    let (summary, requests, windows) = enter_as(py, calls_python, progress, |frontend| {
        let spec = options.spec(device)?;
        let traces = Traces::new(spec.traces.clone(), frontend.stop()).with_tables(options.tables()?);
        let chosen = device.chosen.clone();
        let session = match prepared {
            Some((device, state)) => {
                Session::on_prepared(&spec, &traces, chosen, device.clone(), state.clone(), frontend)?
            }
            None => Session::open(&spec, &traces, chosen, frontend)?.with_shared(shared),
        };
        if spec.out.is_some() {
            return Ok((session.run_into_directory(frontend)?.summary.to_json(), None, None));
        }
        let mut kept = Kept::new(&session, options.requests, options.windows()?)?;
        let mut finished = session.run(&mut kept, frontend)?;
        finished.workload.finish_logs(frontend).map_err(Subject::Output.stop())?;
        let summary = finished.summary.to_json();
        let run = run_of(&summary).map_err(|error| Subject::Output.stopped(Failure::Fault(error)))?;
        let (requests, windows) = kept.finish(&run).map_err(in_memory)?;
        Ok((summary, requests, windows))
    })?;
    Ok((summary, requests.map(PyArrowType), windows.map(PyArrowType)))
}

fn in_memory(error: io::Error) -> Stopped {
    Subject::Output.stopped(Failure::fault(error))
}

/// Data of a run that are kept in memory.
struct Kept {
    requests: Option<RequestsWriter<Batches>>,
    windows: Option<(Series, RowsWriter<Batches>)>,
    config: Config,
}

impl Kept {
    fn new(session: &Session, requests: bool, series: Option<Windows>) -> Result<Kept, Stopped> {
        let origin = session.origin();
        let table = || Batches::new(&requests::fields(), requests::metadata(&origin));
        let width = series.map(Windows::width).transpose();
        let width = width.map_err(|error| Subject::Options.stopped(Failure::mistake(format!("series: {error}"))))?;
        let rows = || RowsWriter::to(Batches::new(&series::fields(), series::metadata(&origin)));
        Ok(Kept {
            requests: requests.then(|| RequestsWriter::to(table(), &session.streams(), BATCH)),
            windows: width.map(|width| (Series::new(width), rows())),
            config: session.config().clone(),
        })
    }

    fn write_windows(&mut self) -> io::Result<()> {
        let Some((series, rows)) = &mut self.windows else { return Ok(()) };
        series.take_closed().iter().try_for_each(|window| rows.write(Row::new(window, &self.config)))
    }

    fn finish(self, run: &str) -> io::Result<(Option<PyTable>, Option<PyTable>)> {
        let requests = self.requests.map(|requests| requests.finish(Some(run))).transpose()?;
        Ok((requests, self.windows.map(|(_, rows)| rows.finish(Some(run))).transpose()?))
    }
}

impl Observer for Kept {
    fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> io::Result<()> {
        if let Some(requests) = &mut self.requests {
            requests.write(completion, breakdown)?;
        }
        if let Some((series, _)) = &mut self.windows {
            series.completed(completion, breakdown);
        }
        Ok(())
    }

    fn next_sample(&self) -> Time {
        self.windows.as_ref().map_or(Time::NEVER, |(series, _)| series.next_sample())
    }

    fn record(&mut self, sample: &Sample) -> io::Result<()> {
        let Some((series, _)) = &mut self.windows else { return Ok(()) };
        series.record(sample);
        if series.is_streamed() { self.write_windows() } else { Ok(()) }
    }

    fn record_last(&mut self, sample: &Sample) -> io::Result<()> {
        if let Some((series, _)) = &mut self.windows {
            series.record_last(sample);
        }
        self.write_windows()
    }

    fn warnings(&self, elapsed: Time) -> Vec<String> {
        self.windows.iter().filter_map(|(series, _)| windows_warning(series, elapsed)).collect()
    }
}
