//! Data of a comparison: groups, runs, metrics and cells.

use floatgate_core::metrics::summary::Summary;
use floatgate_workload::synthetic::looks_like_job;
use serde::Serialize;

use crate::statistics::{Difference, Sample, difference};

/// Unit of shares. They are displayed in percent, and their differences in percentage points.
pub const SHARE: &str = "share";

/// A result, and the file that it was read from.
#[derive(Clone, Debug)]
pub struct Run {
    /// Path of the file.
    pub path: String,
    /// The result.
    pub summary: Summary,
    /// Note about the file, such as a missing checksum.
    pub note: Option<String>,
}

/// Runs that are evaluated together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Label of the group.
    pub label: String,
    /// Runs of the group; at least one.
    pub runs: Vec<Run>,
}

/// A comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Schema of this file.
    pub schema: &'static str,
    /// Warnings about the comparison.
    pub warnings: Vec<String>,
    /// Groups compared.
    pub groups: Vec<Compared>,
    /// Metrics, a row each.
    pub metrics: Vec<Row>,
}

/// Description of a group.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Label of the group.
    pub label: String,
    /// The device.
    pub device: String,
    /// Digest of the device with its overrides.
    pub config_digest: String,
    /// The workload.
    pub workload: String,
    /// Paths of the runs.
    pub files: Vec<String>,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
}

/// A metric, with its value in each group.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the metric.
    pub metric: String,
    /// Unit of the metric, or empty.
    pub unit: &'static str,
    /// Values in the order of the groups; null if no run of a group has the metric.
    pub values: Vec<Option<Cell>>,
}

/// The value of a metric in a group.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    /// Mean and spread over the runs.
    #[serde(flatten)]
    pub sample: Sample,
    /// Mean divided by the mean of the first group; null for the first group, and if its mean is 0 or missing.
    pub ratio: Option<f64>,
    /// Significance of the difference from the first group; null for the first group, and if that has no value.
    pub difference: Option<Difference>,
    /// Probability of such a difference by chance.
    pub p: Option<f64>,
}

/// Note on single runs: how to measure noise.
pub const NOISE_UNKNOWN: &str = "a single run does not show how much results vary by chance; run each configuration \
    with several seeds, such as `floatgate run ... --seeds 5 --out DIR`, and compare those";

impl Row {
    pub(super) fn new(metric: String, unit: &'static str, values: &[Vec<f64>]) -> Row {
        let samples: Vec<Option<Sample>> = values.iter().map(|values| Sample::of(values)).collect();
        let first = samples[0];
        let cell = |(index, sample): (usize, &Option<Sample>)| {
            let sample = (*sample)?;
            let Some(first) = first.filter(|_| index > 0) else {
                return Some(Cell { sample, ratio: None, difference: None, p: None });
            };
            let (difference, p) = difference(&first, &sample);
            let ratio = (first.mean != 0.0).then(|| sample.mean / first.mean);
            Some(Cell { sample, ratio, difference: Some(difference), p })
        };
        Row { metric, unit, values: samples.iter().enumerate().map(cell).collect() }
    }
}

/// Returns `true` if two results differ only in their seed.
pub(super) fn same_but_seed(a: &Summary, b: &Summary) -> bool {
    same_workload(a, b)
        && a.config_digest == b.config_digest
        && a.precondition.requested == b.precondition.requested
        && a.version == b.version
        && a.complete == b.complete
}

/// Returns `true` if two results have the same workload, ignoring seeds.
pub(super) fn same_workload(a: &Summary, b: &Summary) -> bool {
    // The digest of a job covers its text and seed. The digest of a trace covers its requests.
    let same_job = looks_like_job(&a.workload.name) && a.workload.name == b.workload.name;
    a.workload.digest == b.workload.digest || same_job
}
