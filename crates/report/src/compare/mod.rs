//! `floatgate compare`: results beside each other.
//!
//! Runs that differ in nothing but their seed are one group, whose values are means with confidence intervals.

mod html;
mod inputs;
mod metrics;
mod text;

pub use inputs::{InputError, group, grouped, groups, labelled_group};

use std::collections::BTreeMap;
use std::path::Path;

use floatgate_core::metrics::summary::Summary;
use floatgate_workload::synthetic::looks_like_job;
use serde::Serialize;

use crate::statistics::{Difference, Sample, difference};

/// The value of `schema` in comparisons of this form.
pub const SCHEMA: &str = "floatgate-comparison-1";

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

impl Comparison {
    /// Compares groups, each with the first.
    pub fn new(groups: &[Group]) -> Comparison {
        let compared = groups.iter().map(|group| {
            let first = &group.runs[0].summary;
            Compared {
                label: group.label.clone(),
                device: first.device.name.clone(),
                config_digest: first.config_digest.clone(),
                workload: first.workload.name.clone(),
                files: group.runs.iter().map(|run| run.path.clone()).collect(),
                seeds: group.runs.iter().map(|run| run.summary.seed).collect(),
            }
        });
        let (groups_said, metrics) = (compared.collect(), metrics::rows(groups));
        Comparison { schema: SCHEMA, warnings: warnings(groups), groups: groups_said, metrics }
    }

    /// As JSON, with a line feed at the end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.unwrap_or_else(|error| unreachable!("a tree of strings and numbers: {error}")) + "\n"
    }

    /// As a table for a terminal.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// As one HTML file; `groups` are those that it was made of.
    pub fn html(&self, groups: &[Group]) -> String {
        html::page(self, groups)
    }

    /// Whether the noise of any group is unknown.
    pub fn has_single_runs(&self) -> bool {
        self.groups.iter().any(|group| group.files.len() == 1)
    }
}

/// How to find out what is noise.
pub const NOISE_UNKNOWN: &str = "a single run does not tell how much its figures vary by chance: run each configuration \
     with several seeds, such as `floatgate run ... --seeds 5 --out DIR`, and compare those";

impl Row {
    fn new(metric: String, unit: &'static str, values: &[Vec<f64>]) -> Row {
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

/// Whether two results are of the same workload, seeds aside.
fn same_workload(a: &Summary, b: &Summary) -> bool {
    // The digest of a job is of its text and seed, and that of a trace of its requests.
    let same_job = looks_like_job(&a.workload.name) && a.workload.name == b.workload.name;
    a.workload.digest == b.workload.digest || same_job
}

/// Whether two results differ in nothing but their seed.
fn same_but_seed(a: &Summary, b: &Summary) -> bool {
    same_workload(a, b)
        && a.config_digest == b.config_digest
        && a.precondition.asked == b.precondition.asked
        && a.version == b.version
        && a.complete == b.complete
}

/// Returns a warning for each directory whose seeds are of different runs, as one leaves it that replaced only some.
fn mixed(groups: &[Group]) -> Vec<String> {
    let mut first_of: BTreeMap<&Path, &Run> = BTreeMap::new();
    let mut mixed = BTreeMap::new();
    for run in groups.iter().flat_map(|group| &group.runs) {
        let Some(seed) = Path::new(&run.path).parent() else { continue };
        let name = seed.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("seed-"));
        let (Some(all), true) = (seed.parent(), name.is_some_and(|seed| seed.parse::<u64>().is_ok())) else { continue };
        let first = first_of.entry(all).or_insert(run);
        if !same_but_seed(&first.summary, &run.summary) {
            mixed.entry(all).or_insert_with(|| {
                format!("{} and {} differ in more than their seed: remove what is stale", first.path, run.path)
            });
        }
    }
    mixed.into_values().collect()
}

fn warnings(groups: &[Group]) -> Vec<String> {
    let mut warnings = mixed(groups);
    let first = &groups[0].runs[0].summary;
    for group in groups {
        let (label, summary) = (&group.label, &group.runs[0].summary);
        if group.runs.iter().any(|run| !same_but_seed(&run.summary, summary)) {
            warnings
                .push(format!("the runs of {label} differ in more than their seed: its intervals are not of noise"));
        }
        if let Some(run) = group.runs.iter().find(|run| !run.summary.complete) {
            warnings.push(format!("{} was interrupted: its figures are those of a part of the workload", run.path));
        }
        let mut differs = |what: &str, here: &str, there: &str| {
            let of = &groups[0].label;
            warnings.push(format!("the {what} of {label} is not that of {of}: `{here}`, not `{there}`"));
        };
        if !same_workload(summary, first) {
            let named = |summary: &Summary| format!("{}, digest {}", summary.workload.name, summary.workload.digest);
            differs("workload", &named(summary), &named(first));
        }
        if summary.precondition.asked != first.precondition.asked {
            differs("state before the run", &summary.precondition.asked, &first.precondition.asked);
        }
        if summary.version != first.version {
            differs("version of Floatgate", &summary.version, &first.version);
        }
    }
    warnings
}
