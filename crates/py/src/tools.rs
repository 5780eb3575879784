//! Tools around runs: traces, checks of workloads, texts, explanations and timing diagrams.

use std::path::{Path, PathBuf};

use floatgate_report::explain::{self as explanations, Choice};
use floatgate_run::failure::Failure;
use floatgate_run::frontend::{Frontend as _, Stopped, Subject};
use floatgate_run::import;
use floatgate_run::span::Span;
use floatgate_run::text;
use floatgate_run::text::summary::Around;
use floatgate_run::tool::{convert, draw as diagrams, fit, profile};
use floatgate_run::traces::{TraceSpec, Traces};
use floatgate_run::workload;
use floatgate_workload::file::Stop;
use floatgate_workload::objects;
use floatgate_workload::synthetic::Changes;
use floatgate_workload::trace::Format;
use pyo3::prelude::*;

use crate::errors::{enter, exception};
use crate::result::read;

/// Fails if the options of a workload are invalid on every device. Opens no traces.
#[pyfunction]
pub fn check_workload(py: Python<'_>, text: &str) -> PyResult<()> {
    enter(py, None, |_| {
        let subject = if workload::is_trace(text) { Subject::Trace } else { Subject::Workload };
        workload::check(text, &Changes::default()).map_err(subject.stop())
    })
}

/// Simulator, text of the device file or job file, and keys that it does not carry over, each with the consequence.
type ImportedConfig = (&'static str, String, Vec<(String, String)>);

/// Imports a configuration of another simulator from the text of a file that is `called` so. Without a text, reads the
/// file with this path.
#[pyfunction]
#[pyo3(signature = (text, called, scenario))]
pub fn import_config(py: Python<'_>, text: Option<&str>, called: &str, scenario: usize) -> PyResult<ImportedConfig> {
    let imported = match text {
        Some(text) => import::from_text(text, called, scenario),
        None => import::from_file(Path::new(called), scenario),
    };
    let imported = imported.map_err(|failure| exception(py, "ConfigError", &failure.to_string()))?;
    let lost = imported.lost.into_iter().map(|lost| (lost.key, lost.consequence)).collect();
    Ok((imported.simulator.name(), imported.text, lost))
}

/// Fails if a precondition is invalid on every device. Opens no traces.
#[pyfunction]
pub fn check_precondition(py: Python<'_>, text: &str) -> PyResult<()> {
    enter(py, None, |_| workload::check_precondition(text).map_err(Subject::Precondition.stop()))
}

/// Returns the traces with options that Python passes as JSON.
fn traces(options: &str, stop: Stop) -> Result<Traces, Stopped> {
    let spec: TraceSpec = serde_json::from_str(options).map_err(|error| mistake(&error))?;
    Ok(Traces::new(spec, stop))
}

fn mistake(error: &dyn std::fmt::Display) -> Stopped {
    Subject::Options.stopped(Failure::mistake(error))
}

/// Returns the profile of an object trace, as JSON.
#[pyfunction]
pub fn object_info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    enter(py, None, |frontend| {
        let profile =
            objects::profile(&path, &frontend.stop()).map_err(Failure::mistake).map_err(Subject::Trace.stop())?;
        Ok(profile.to_json())
    })
}

/// Returns the profile of a trace, as JSON and as text.
#[pyfunction]
#[pyo3(signature = (path, options, *, progress))]
pub fn trace_info(
    py: Python<'_>,
    path: PathBuf,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    enter(py, progress, |frontend| {
        let traces = traces(options, frontend.stop())?;
        let profile = profile::profile(&path, &traces, frontend).map_err(Subject::Trace.stop())?;
        Ok((profile.to_json(), text::profile::text(&profile)))
    })
}

/// Options of a fit, with their names in Python. Python passes all of them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct FitOptions {
    out: Option<PathBuf>,
    requests: Option<std::num::NonZeroU64>,
    scale_rate: Option<f64>,
    scale_footprint: Option<f64>,
    seed: u64,
}

/// Fits a workload to a trace. Returns the model, the comparison as JSON, and the comparison as text.
#[pyfunction]
#[pyo3(signature = (path, options, fitting, *, progress))]
pub fn trace_synth(
    py: Python<'_>,
    path: PathBuf,
    options: &str,
    fitting: FitOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String, String)> {
    enter(py, progress, |frontend| {
        let traces = traces(options, frontend.stop())?;
        let FitOptions { out, requests, scale_rate, scale_footprint, seed } = fitting;
        let basis = fit::Basis::Trace(path);
        let spec = fit::FitSpec { basis, out, requests, scale_rate, scale_footprint, seed };
        let fit = fit::fit(spec, &traces, frontend).map_err(|failure| match failure {
            Failure::Fault(_) => Subject::Output.stopped(failure),
            failure => Subject::Trace.stopped(failure),
        })?;
        Ok((fit.model(), fit.to_json(), fit.text()))
    })
}

/// Writes a trace to a file in another format. Returns a description of the conversion, and warnings.
#[pyfunction]
#[pyo3(signature = (path, options, output, to, *, progress))]
pub fn trace_convert(
    py: Python<'_>,
    path: PathBuf,
    options: &str,
    output: PathBuf,
    to: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    enter(py, progress, |frontend| {
        let traces = traces(options, frontend.stop())?;
        let format = Format::written(to).map_err(|error| mistake(&error))?;
        let converted = convert::to_file(&path, &output, format, &traces, frontend);
        let converted = converted.map_err(|failure| match failure {
            Failure::Fault(_) => Subject::Output.stopped(failure),
            failure => Subject::Trace.stopped(failure),
        })?;
        Ok((convert::described(&converted, format), converted.warnings))
    })
}

/// Returns a summary as text, like that of `floatgate run`, with `--details` if `with_details`.
#[pyfunction]
pub fn summary_text(py: Python<'_>, json: &str, with_details: bool) -> PyResult<String> {
    let summary = read(py, "summary", json)?;
    Ok(text::summary::text(
        &summary,
        &Around { descriptions: &[], prepared_s: None, written: &[], with_warnings: true, with_details },
    ))
}

/// Explains a request of a result. Returns the explanation as JSON and as text, and a note if there is one.
#[pyfunction]
pub fn explain(py: Python<'_>, directory: PathBuf, request: &str) -> PyResult<(String, String, Option<String>)> {
    enter(py, None, |_| {
        let choice: Choice = request.parse().map_err(|error| mistake(&error))?;
        let explanation = explanations::explain(&directory, &choice);
        let explanation = explanation.map_err(|error| Subject::Result.stopped(Failure::Mistake(error)))?;
        let json = serde_json::to_string(&explanation).map_err(|error| mistake(&error))?;
        Ok((json, text::explanation::text(&explanation, &directory, &choice), explanation.note))
    })
}

/// Draws a span of the timeline of a result. Returns the path of the diagram.
#[pyfunction]
pub fn draw(
    py: Python<'_>,
    directory: PathBuf,
    span: Option<&str>,
    title: Option<String>,
    out: Option<PathBuf>,
) -> PyResult<PathBuf> {
    enter(py, None, |frontend| {
        let span = span.map(str::parse::<Span>).transpose().map_err(|error| mistake(&error))?;
        diagrams::draw(Path::new(&directory), span, title, out, &frontend.wait()).map_err(|failure| match failure {
            Failure::Fault(_) => Subject::Output.stopped(failure),
            failure => Subject::Result.stopped(failure),
        })
    })
}
