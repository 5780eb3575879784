//! Runs, and the command.

use std::ffi::OsString;
use std::io;

use arrow_pyarrow::{PyArrowType, Table as PyTable};
use floatgate_cli::failure::Failure;
use floatgate_cli::run::session::{Front as _, Observer, Session, Stopped, Subject};
use floatgate_cli::run::{into_directory, windows_warning};
use floatgate_core::config::DeviceConfig as Config;
use floatgate_core::config::units::Duration;
use floatgate_core::metrics::attribution::Breakdown;
use floatgate_core::metrics::series::{Sample, Series, Width};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_report::columns::requests::{self, RequestsWriter};
use floatgate_report::columns::series::{self, Row, RowsWriter};
use floatgate_report::digests::run_of;
use pyo3::prelude::*;

use crate::device::DeviceConfig;
use crate::errors::enter;
use crate::simulator::Simulator;
use crate::tables::{BATCH, Batches};

/// Does what a command line asks for, and returns the status to exit with.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| floatgate_cli::main(arguments))
}

/// A result: its summary as JSON, its requests and its windows, where those were asked for.
type RunResult = (String, Option<PyArrowType<PyTable>>, Option<PyArrowType<PyTable>>);

/// Runs `floatgate run` with these arguments, on this device; or on a copy of one that is in its state already, and
/// that no request was sent to. What is written to a directory is not returned as well.
#[pyfunction]
#[pyo3(signature = (device, arguments, *, prepared, requests, series, progress))]
pub fn run(
    py: Python<'_>,
    device: &DeviceConfig,
    arguments: Vec<String>,
    prepared: Option<PyRef<'_, Simulator>>,
    requests: bool,
    series: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<RunResult> {
    let has_directory = arguments.iter().any(|argument| argument.starts_with("--out="));
    let prepared = prepared.as_deref().map(Simulator::prepared);
    let (summary, requests, windows) = enter(py, progress, |front| {
        let options = Subject::Options.stop();
        let mut args = floatgate_cli::run_args(&arguments).map_err(&options)?;
        if device.is_text {
            args = args.without_command_line();
        }
        args = args.stopped_by(front.stop());
        args.check().map_err(&options)?;
        let chosen = device.chosen.clone();
        let session = match prepared {
            Some((device, state)) => Session::on_prepared(&args, chosen, device.clone(), state.clone(), front)?,
            None => Session::open(&args, chosen, front)?,
        };
        if has_directory {
            return Ok((into_directory(&args, session, front)?.summary.to_json(), None, None));
        }
        let mut kept = Kept::new(&session, requests, series)?;
        let mut finished = session.run(&mut kept, front)?;
        finished.workload.finish_logs(front).map_err(Subject::Output.stop())?;
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

/// What is kept of a run in memory.
struct Kept {
    requests: Option<RequestsWriter<Batches>>,
    windows: Option<(Series, RowsWriter<Batches>)>,
    config: Config,
}

impl Kept {
    fn new(session: &Session, requests: bool, series: Option<&str>) -> Result<Kept, Stopped> {
        let origin = session.origin();
        let table = || Batches::new(&requests::fields(), requests::metadata(&origin));
        let width = |text: &str| match text {
            "auto" => Ok(Width::Adaptive),
            text => match text.parse::<Duration>() {
                Ok(Duration(0)) => Err("a window of no length holds nothing".to_owned()),
                Ok(width) => Ok(Width::Fixed(width.time())),
                Err(error) => Err(error),
            },
        };
        let width = series.map(width).transpose();
        let width = width.map_err(|error| Subject::Options.stopped(Failure::mistake(format!("series: {error}"))))?;
        let rows = || RowsWriter::to(Batches::new(&series::fields(), series::metadata(&origin)));
        Ok(Kept {
            requests: requests.then(|| RequestsWriter::to(table(), &session.streams(), BATCH)),
            windows: width.map(|width| (Series::new(width), rows())),
            config: session.device().config().clone(),
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

    fn next_look(&self) -> Time {
        self.windows.as_ref().map_or(Time::NEVER, |(series, _)| series.next_look())
    }

    fn look(&mut self, sample: &Sample) -> io::Result<()> {
        let Some((series, _)) = &mut self.windows else { return Ok(()) };
        series.look(sample);
        if series.is_streamed() { self.write_windows() } else { Ok(()) }
    }

    fn last_look(&mut self, sample: &Sample) -> io::Result<()> {
        if let Some((series, _)) = &mut self.windows {
            series.last_look(sample);
        }
        self.write_windows()
    }

    fn warnings(&self, elapsed: Time) -> Vec<String> {
        self.windows.iter().filter_map(|(series, _)| windows_warning(series, elapsed)).collect()
    }
}
