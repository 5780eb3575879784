//! `floatgate compare`: compares results with one another.
//!
//! Runs that differ only in their seed form a group, whose values are means with confidence intervals.

mod demerit;
mod html;
mod inputs;
mod intervals;
mod metrics;
mod parts;
mod text;

pub use inputs::{InputError, grouped, groups, labeled_group};
pub use parts::{Cell, Compared, Comparison, Group, NOISE_UNKNOWN, Row, Run};
use parts::{same_but_seed, same_workload};

use std::collections::BTreeMap;
use std::path::Path;

use floatgate_core::summary::Summary;

use crate::metric::{full_name, new_name, short_name};

/// Number of metrics in the table of a comparison, unless others are requested.
pub const MOST_DIFFERENT: usize = 10;

/// Value of `schema` in comparisons of this version.
pub const SCHEMA: &str = "floatgate-comparison-2";

impl Comparison {
    /// Compares each group with the first.
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
        let compared = compared.collect();
        let mut metrics = metrics::rows(groups);
        let tested = Row::judge(&mut metrics);
        Comparison { schema: SCHEMA, warnings: warnings(groups), groups: compared, tested, metrics }
    }

    /// Returns the comparison as JSON, with a trailing newline.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.unwrap_or_else(|error| unreachable!("strings and numbers always serialize: {error}")) + "\n"
    }

    /// Returns the comparison as a table for a terminal, with these metrics.
    pub fn text(&self, shown: &[&Row]) -> String {
        text::text(self, shown)
    }

    /// Returns the metrics that differ most, at most `limit`: those beyond noise first, then by their ratio. Returns
    /// all metrics if there is only one group.
    pub fn most_different(&self, limit: usize) -> Vec<&Row> {
        if self.groups.len() == 1 {
            return self.metrics.iter().collect();
        }
        let metrics = self.metrics.iter().filter(|row| !row.is_distance());
        let mut rows: Vec<_> = metrics.filter_map(|row| Some((row.distance()?, row))).collect();
        rows.sort_by(|((a_beyond, a), _), ((b_beyond, b), _)| b_beyond.cmp(a_beyond).then(b.total_cmp(a)));
        rows.into_iter().take(limit).map(|(_, row)| row).collect()
    }

    /// Returns the metric of a name, as in [`full_name`](crate::metric::full_name). Fails if the comparison has none.
    pub fn metric(&self, name: &str) -> Result<&Row, String> {
        let path = full_name(name);
        let row = self.metrics.iter().find(|row| row.metric == path);
        row.ok_or_else(|| {
            let names: Vec<&str> = self.metrics.iter().map(|row| short_name(&row.metric)).collect();
            let hint = new_name(&path).map(|new| format!(", which is now `{new}`")).unwrap_or_default();
            format!("unknown metric `{name}`{hint}: expected one of {}", names.join(", "))
        })
    }

    /// Returns the comparison as one HTML file. `groups` are the groups that were compared.
    pub fn html(&self, groups: &[Group]) -> String {
        html::page(self, groups)
    }

    /// Explains the judgment of differences in a sentence.
    pub fn judgment(&self) -> String {
        format!(
            "Differences are tested by Welch's t-test and corrected for their number, {}, by Holm's method, so that with a \
             probability of 95% none is called significant by chance.",
            self.tested
        )
    }

    /// Returns `true` if the noise of any group is unknown, because the group has a single run.
    pub fn has_single_runs(&self) -> bool {
        self.groups.iter().any(|group| group.files.len() == 1)
    }
}

/// Returns a warning for each directory whose seeds are from different runs. A run that replaced only some of them
/// leaves such a directory.
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
                format!("{} and {} differ in more than their seed; remove the outdated one", first.path, run.path)
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
            warnings.push(format!("the runs of {label} differ in more than their seed: intervals do not show noise"));
        }
        if let Some(run) = group.runs.iter().find(|run| !run.summary.complete) {
            warnings.push(format!("{} was interrupted: its values cover only part of the workload", run.path));
        }
        let mut differs = |what: &str, here: &str, there: &str| {
            let of = &groups[0].label;
            warnings.push(format!("the {what} of {label} differs from that of {of}: `{here}`, not `{there}`"));
        };
        if !same_workload(summary, first) {
            let named = |summary: &Summary| format!("{}, digest {}", summary.workload.name, summary.workload.digest);
            differs("workload", &named(summary), &named(first));
        }
        if summary.precondition.requested != first.precondition.requested {
            differs("state before the run", &summary.precondition.requested, &first.precondition.requested);
        }
        if summary.version != first.version {
            differs("version of Floatgate", &summary.version, &first.version);
        }
    }
    warnings
}
