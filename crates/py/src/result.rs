//! Results: checks, reports and comparisons.

use std::path::{Path, PathBuf};

use arrow_pyarrow::{PyArrowType, Table as PyTable};
use floatgate_core::summary::Summary;
use floatgate_report::columns::run_in;
use floatgate_report::columns::series::{Row, read_rows};
use floatgate_report::compare::{Comparison, Group, MOST_DIFFERENT, Run, grouped, groups, labeled_group};
use floatgate_report::digests::{self, Checked};
use floatgate_report::{html, metric};
use pyo3::prelude::*;

use crate::errors::exception;
use crate::tables::Read;

/// Parses a summary. `name` is its name in errors.
pub fn read(py: Python<'_>, name: &str, json: &str) -> PyResult<Summary> {
    Summary::from_json(json).map_err(|error| exception(py, "ResultError", &format!("{name}: {error}")))
}

/// Fails if a text is not a summary in the format of this version. `name` is its name in errors.
#[pyfunction]
pub fn check_summary(py: Python<'_>, name: &str, json: &str) -> PyResult<()> {
    read(py, name, json).map(|_| ())
}

/// Fails if the summary at `path`, whose text is `summary`, has changed since its run wrote it.
#[pyfunction]
pub fn check_result(py: Python<'_>, path: PathBuf, summary: &str) -> PyResult<()> {
    checked(py, &path, summary).map(|_| ())
}

/// Fails if a Parquet file next to the summary at `path` is damaged, or belongs to another run.
#[pyfunction]
pub fn check_table(py: Python<'_>, path: PathBuf, summary: &str, table: PathBuf) -> PyResult<()> {
    let checked = checked(py, &path, summary)?;
    let check = || -> anyhow::Result<()> {
        checked.file(&table)?;
        checked.run(&table, run_in(&table)?.as_deref())
    };
    py.detach(check).map_err(|error| exception(py, "ResultError", &format!("{error:#}")))
}

fn checked(py: Python<'_>, path: &Path, summary: &str) -> PyResult<Checked> {
    Checked::of_summary(path, summary).map_err(|error| exception(py, "ResultError", &format!("{error:#}")))
}

/// Returns the text of `digests.json` for a directory to which a summary and these files have just been written.
/// Removes files of other runs.
#[pyfunction]
pub fn seal(py: Python<'_>, directory: PathBuf, summary: &str, written: Vec<String>) -> PyResult<String> {
    let sealed = py.detach(|| digests::seal(&directory, summary, &written));
    sealed.map(|digests| digests.to_json()).map_err(|error| exception(py, "OutputError", &format!("{error:#}")))
}

/// Returns the page of a result.
#[pyfunction]
pub fn report(py: Python<'_>, summary: &str, series: Option<PyArrowType<PyTable>>) -> PyResult<String> {
    let summary = read(py, "summary", summary)?;
    let mut rows: Vec<Row> = Vec::new();
    for batch in series.iter().flat_map(|series| series.0.record_batches()) {
        let read = read_rows(&Read(batch));
        rows.extend(read.map_err(|error| exception(py, "ResultError", &format!("series: {error:#}")))?);
    }
    Ok(py.detach(|| html::report(&summary, &html::points(&rows))))
}

/// Results for a comparison: their label, `true` if the user made them a group, and the path and summary of each.
type Labeled = (String, bool, Vec<(String, String)>);

/// Returns a comparison as JSON, as text and as a page. Results that the user did not group, and that differ only in
/// their seed, become one group.
#[pyfunction]
pub fn compare(py: Python<'_>, results: Vec<Labeled>) -> PyResult<(String, String, String)> {
    let (mut groups, mut others) = (Vec::new(), Vec::new());
    for (label, is_group, runs) in results {
        let run = |(path, json): (String, String)| Ok(Run { summary: read(py, &path, &json)?, path, note: None });
        let runs = runs.into_iter().map(run).collect::<PyResult<Vec<Run>>>()?;
        if is_group {
            let group = labeled_group(&label, runs);
            groups.push(group.map_err(|error| exception(py, "ResultError", &error.to_string()))?);
        } else {
            others.extend(runs.into_iter().map(|run| (label.clone(), run)));
        }
    }
    groups.extend(grouped(others));
    Ok(py.detach(|| {
        let comparison = Comparison::new(&groups);
        let shown = comparison.most_different(MOST_DIFFERENT);
        (comparison.to_json(), comparison.text(&shown), comparison.html(&groups))
    }))
}

/// Returns the labels and the files of the results that arguments of `floatgate compare` name.
#[pyfunction]
pub fn grouped_files(py: Python<'_>, arguments: Vec<String>) -> PyResult<Vec<(String, Vec<String>)>> {
    let groups = groups(&arguments).map_err(|error| exception(py, "ResultError", &error.to_string()))?;
    let files = |group: Group| (group.label, group.runs.into_iter().map(|run| run.path).collect());
    Ok(groups.into_iter().map(files).collect())
}

/// Returns the new name of a metric that was renamed before the first release.
#[pyfunction]
pub fn new_name(old: &str) -> Option<String> {
    metric::new_name(old)
}

/// Returns the full name, the label and the unit of a metric.
#[pyfunction]
#[pyo3(name = "metric")]
pub fn described(name: &str) -> (String, String, &'static str) {
    let path = metric::full_name(name);
    let label = metric::label(&path);
    let unit = metric::unit(&path);
    (path, label, unit)
}
