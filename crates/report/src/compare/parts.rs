//! Data of a comparison: groups, runs, metrics and cells.

use floatgate_core::summary::Summary;
use floatgate_workload::synthetic::looks_like_job;
use serde::Serialize;

use super::demerit;
use crate::metric;
use crate::statistics::{self, CONFIDENCE, Difference, Sample, Welch, compare, holm};

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
    /// Number of differences that were tested, for which each is corrected.
    pub tested: usize,
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
    /// Name of the metric: its path in a summary.
    pub metric: String,
    /// Label of the metric in words.
    pub label: String,
    /// Unit of the metric, or empty. Shares are displayed in percent, and their differences in percentage points.
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
    /// Probability of such a difference by chance, by Welch's test; null if nothing was tested.
    pub p: Option<f64>,
    /// The probability, corrected for the number of differences in the comparison by Holm's method.
    pub p_corrected: Option<f64>,
    /// Confidence interval of the difference from the mean of the first group, corrected in the same way.
    pub interval: Option<[f64; 2]>,
    /// The test, until it is corrected.
    #[serde(skip)]
    test: Option<Welch>,
}

/// Note on single runs: how to measure noise.
pub const NOISE_UNKNOWN: &str = "a single run does not show how much results vary by chance; run each configuration \
    with several seeds, such as `floatgate run ... --seeds 5 --out DIR`, and compare those";

impl Row {
    pub(super) fn new(metric: String, values: &[Vec<f64>]) -> Row {
        let samples: Vec<Option<Sample>> = values.iter().map(|values| Sample::of(values)).collect();
        let first = samples[0];
        let cell = |(index, sample): (usize, &Option<Sample>)| {
            let sample = (*sample)?;
            let mut cell =
                Cell { sample, ratio: None, difference: None, p: None, p_corrected: None, interval: None, test: None };
            let Some(first) = first.filter(|_| index > 0) else { return Some(cell) };
            cell.ratio = (first.mean != 0.0).then(|| sample.mean / first.mean);
            match compare(&first, &sample) {
                statistics::Compared::Plain(difference) => cell.difference = Some(difference),
                statistics::Compared::Tested(test) => (cell.test, cell.p) = (Some(test), Some(test.p)),
            }
            Some(cell)
        };
        let (label, unit) = (metric::label(&metric), metric::unit(&metric));
        Row { metric, label, unit, values: samples.iter().enumerate().map(cell).collect() }
    }

    /// Returns `true` for a distance between two results, which is not a metric of one result.
    pub(super) fn is_distance(&self) -> bool {
        demerit::KEYS.iter().any(|key| self.metric.ends_with(key))
    }

    /// Returns how much the metric differs between the groups: whether a difference is beyond noise as far as that is
    /// known, and the greatest ratio or its inverse. Returns `None` if it does not differ.
    pub(super) fn distance(&self) -> Option<(bool, f64)> {
        let of = |cell: &Cell| match cell.difference? {
            Difference::Same => None,
            difference => Some((
                difference != Difference::WithinNoise,
                cell.ratio.filter(|ratio| *ratio > 0.0).map_or(f64::INFINITY, |ratio| ratio.max(1.0 / ratio)),
            )),
        };
        self.values.iter().flatten().filter_map(of).max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
    }

    /// Judges the tested differences of all rows, corrected for their number. Returns this number. Metrics in
    /// proportion to one another, such as requests and bytes per second of a job, are one test.
    pub(super) fn judge(rows: &mut [Row]) -> usize {
        let tested = |cell: &&mut Cell| cell.test.is_some();
        let firsts: Vec<f64> = rows.iter().map(|row| row.values[0].map_or(0.0, |first| first.sample.mean)).collect();
        let cells = rows.iter_mut().zip(firsts);
        let mut cells: Vec<(&mut Cell, f64)> = cells
            .flat_map(|(row, first)| row.values.iter_mut().flatten().filter(tested).map(move |cell| (cell, first)))
            .collect();
        let mut tests: Vec<f64> = cells.iter().filter_map(|(cell, _)| cell.p).collect();
        tests.sort_by(f64::total_cmp);
        tests.dedup_by(|one, other| same(*one, *other));
        let corrected = holm(&tests);
        for (cell, first) in &mut cells {
            let test = tests.iter().position(|p| cell.p.is_some_and(|of| same(*p, of)));
            let Some(corrected) = test.map(|test| corrected[test]) else { continue };
            let is_significant = corrected.p < 1.0 - CONFIDENCE;
            cell.difference = Some(if is_significant { Difference::Significant } else { Difference::WithinNoise });
            cell.p_corrected = Some(corrected.p);
            let (difference, test) = (cell.sample.mean - *first, cell.test);
            let half = test.map_or(0.0, |test| test.half_width(corrected.significance));
            cell.interval = Some([difference - half, difference + half]);
        }
        corrected.len()
    }
}

/// Returns `true` if two probabilities are equal, except for rounding.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.max(other)
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
