//! Metrics of a comparison.

use floatgate_core::summary::Summary;
use serde_json::Value;

use super::demerit::{KEYS, demerit};
use super::{Group, Row, Run};

/// Metrics of the requests of an operation: paths in its part of a summary.
const OF_OPERATIONS: [&str; 9] = [
    "iops",
    "mib_per_s",
    "latency_us.mean",
    "latency_us.p50",
    "latency_us.p99",
    "latency_us.p99_9",
    "latency_us.p99_99",
    "latency_us.max",
    "waiting_us.mean",
];

/// Metrics of the device: paths in a summary.
const OF_THE_DEVICE: [&str; 13] = [
    "write_amplification",
    "write_amplification_bytes",
    "gc.efficiency",
    "gc.pages_moved",
    "gc.free_blocks",
    "flash.pages.read",
    "flash.pages.programmed",
    "flash.blocks_erased",
    "wear.blocks.max",
    "utilization.channels.data.mean",
    "utilization.channels.command.mean",
    "utilization.dies.cell.mean",
    "measured_s",
];

/// Returns all metrics for which a group has a value.
pub fn rows(groups: &[Group]) -> Vec<Row> {
    let json = |run: &Run| serde_json::to_value(&run.summary).unwrap_or_default();
    let runs: Vec<Vec<Value>> = groups.iter().map(|group| group.runs.iter().map(json).collect()).collect();
    let mut rows = Vec::new();
    let mut add = |path: String, values: Vec<Vec<f64>>| {
        if values.iter().any(|values| !values.is_empty()) {
            rows.push(Row::new(path, &values));
        }
    };
    let of_path = |path: &str| runs.iter().map(|runs| runs.iter().filter_map(|run| at(run, path)).collect()).collect();
    let operations = operations(groups);
    let all = (operations.len() > 1).then_some("all");
    for path in operations.iter().flat_map(|operation| OF_OPERATIONS.map(|path| format!("requests.{operation}.{path}")))
    {
        let values = of_path(&path);
        add(path, values);
    }
    for operation in operations.iter().copied().chain(all) {
        for (metric, share) in [(KEYS[0], false), (KEYS[1], true)] {
            let of = |run: &Run| demerit_of(&groups[0].runs[0].summary, &run.summary, operation, share);
            let values = groups.iter().map(|group| group.runs.iter().filter_map(of).collect()).collect();
            add(format!("requests.{operation}.{metric}"), values);
        }
    }
    let of_all = all.map(|all| OF_OPERATIONS.map(|path| format!("requests.{all}.{path}")));
    for path in of_all.into_iter().flatten().chain(OF_THE_DEVICE.map(str::to_owned)) {
        let values = of_path(&path);
        add(path, values);
    }
    rows
}

/// Returns the number at a path of a summary.
fn at(summary: &Value, path: &str) -> Option<f64> {
    path.split('.').try_fold(summary, |value, key| value.get(key))?.as_f64()
}

/// Returns the demerit of the latencies of an operation, in microseconds or as a share of the mean of `first`. The
/// first run has none, because it is the reference.
fn demerit_of(first: &Summary, run: &Summary, operation: &str, share: bool) -> Option<f64> {
    if std::ptr::eq(first, run) {
        return None;
    }
    let curve = |summary: &Summary| summary.distributions.latency.iter().position(|curve| curve.operation == operation);
    let (of_first, of_run) = (&first.distributions.latency[curve(first)?], &run.distributions.latency[curve(run)?]);
    let distance = demerit(of_first, of_run)?;
    let mut operations = first.requests.by_operation().into_iter();
    let mean = match operations.find(|(name, _)| *name == operation) {
        Some((_, of)) => of.latency_us.mean,
        None => first.requests.all.latency_us.mean,
    };
    if share { mean.filter(|mean| *mean > 0.0).map(|mean| distance / mean) } else { Some(distance) }
}

/// Returns the operations that occur in any run.
fn operations(groups: &[Group]) -> Vec<&'static str> {
    let runs = || groups.iter().flat_map(|group| &group.runs);
    let there = |place: usize| runs().any(|run| run.summary.requests.by_operation()[place].1.count > 0);
    let names = groups[0].runs[0].summary.requests.by_operation().map(|(name, _)| name);
    names.into_iter().enumerate().filter(|(place, _)| there(*place)).map(|(_, name)| name).collect()
}
