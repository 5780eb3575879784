//! What a comparison consists of.

use floatgate_core::metrics::summary::Summary;
use floatgate_workload::synthetic::looks_like_job;
use serde::Serialize;

use crate::statistics::{Difference, Sample, difference};

/// The unit of shares. They are told in per cent, and their differences in percentage points.
pub const SHARE: &str = "share";

/// A result, and where it is from.
#[derive(Clone, Debug)]
pub struct Run {
    /// The file that it was read from.
    pub path: String,
    /// The result.
    pub summary: Summary,
    /// What should be known of the file.
    pub note: Option<String>,
}

/// Runs that are taken together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is called.
    pub label: String,
    /// Its runs; at least one.
    pub runs: Vec<Run>,
}

/// A comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Which form this is.
    pub schema: &'static str,
    /// What has to be known of it.
    pub warnings: Vec<String>,
    /// What is compared.
    pub groups: Vec<Compared>,
    /// What of it, a row each.
    pub metrics: Vec<Row>,
}

/// What is said of a group itself.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// What it is called.
    pub label: String,
    /// The device.
    pub device: String,
    /// Digest of the device with its overrides.
    pub config_digest: String,
    /// The workload.
    pub workload: String,
    /// The files.
    pub files: Vec<String>,
    /// Their seeds.
    pub seeds: Vec<u64>,
}

/// A metric of all groups.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is.
    pub metric: String,
    /// Its unit; empty where it has none.
    pub unit: &'static str,
    /// The values, in the order of the groups; null where no run of a group has it.
    pub values: Vec<Option<Cell>>,
}

/// The value of a metric in a group.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    /// Mean and spread over the runs.
    #[serde(flatten)]
    pub sample: Sample,
    /// The mean divided by that of the first group; null for the first itself, and where that is 0 or not there.
    pub ratio: Option<f64>,
    /// How it differs from the first group; null for that itself, and where that has no value.
    pub difference: Option<Difference>,
    /// The probability of such a difference by chance.
    pub p: Option<f64>,
}

/// How to find out what is noise.
pub const NOISE_UNKNOWN: &str = "a single run does not tell how much its figures vary by chance: run each configuration \
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

/// Whether two results differ in nothing but their seed.
pub(super) fn same_but_seed(a: &Summary, b: &Summary) -> bool {
    same_workload(a, b)
        && a.config_digest == b.config_digest
        && a.precondition.requested == b.precondition.requested
        && a.version == b.version
        && a.complete == b.complete
}

/// Whether two results are of the same workload, seeds aside.
pub(super) fn same_workload(a: &Summary, b: &Summary) -> bool {
    // The digest of a job is of its text and seed, and that of a trace of its requests.
    let same_job = looks_like_job(&a.workload.name) && a.workload.name == b.workload.name;
    a.workload.digest == b.workload.digest || same_job
}
