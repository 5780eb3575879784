//! Metrics of a comparison.

use floatgate_core::metrics::summary::{Operations, Summary};

use super::demerit::demerit;
use super::{Group, Row, SHARE};
use crate::words::words;

/// A metric of a result.
type Metric = (&'static str, &'static str, fn(&Summary) -> Option<f64>);

/// A metric of the requests of an operation.
type OperationMetric = (&'static str, &'static str, fn(&Operations) -> Option<f64>);

const OF_OPERATIONS: [OperationMetric; 9] = [
    ("throughput", "IOPS", |of| of.iops),
    ("throughput", "MiB/s", |of| of.mib_per_s),
    ("mean latency", "us", |of| of.latency_us.mean),
    ("p50 latency", "us", |of| of.latency_us.p50),
    ("p99 latency", "us", |of| of.latency_us.p99),
    ("p99.9 latency", "us", |of| of.latency_us.p99_9),
    ("p99.99 latency", "us", |of| of.latency_us.p99_99),
    ("greatest latency", "us", |of| of.latency_us.max),
    ("mean waiting", "us", |of| of.waiting_us.mean),
];

const OF_THE_DEVICE: [Metric; 13] = [
    ("write amplification", "", |s| s.write_amplification),
    ("write amplification, bytes", "", |s| s.write_amplification_bytes),
    ("cleaning efficiency", SHARE, |s| s.gc.efficiency),
    ("pages moved by cleaning", "", |s| Some(s.gc.pages_moved)),
    ("free blocks at cleaning", "", |s| s.gc.free_blocks),
    ("pages read", "", |s| Some(s.flash.pages.read as f64)),
    ("pages programmed", "", |s| Some(s.flash.pages.programmed as f64)),
    ("blocks erased", "", |s| Some(s.flash.blocks_erased as f64)),
    ("erases of the most worn block", "", |s| Some(s.wear.blocks.max as f64)),
    ("channels carry data", SHARE, |s| s.utilization.channels.data.mean),
    ("channels carry commands", SHARE, |s| s.utilization.channels.command.mean),
    ("dies, cells work", SHARE, |s| s.utilization.dies.cell.mean),
    ("simulated time", "s", |s| Some(s.measured_s)),
];

/// Returns all metrics for which a group has a value.
pub fn rows(groups: &[Group]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: String, unit, of: &dyn Fn(&Summary) -> Option<f64>| {
        let values = |group: &Group| group.runs.iter().filter_map(|run| of(&run.summary)).collect::<Vec<f64>>();
        let values: Vec<Vec<f64>> = groups.iter().map(values).collect();
        if values.iter().any(|values| !values.is_empty()) {
            rows.push(Row::new(name, unit, &values));
        }
    };
    let operations = operations(groups);
    let several = operations.len() > 1;
    for (name, place) in operations.iter().map(|(place, name)| (*name, *place)) {
        for (metric, unit, of) in OF_OPERATIONS {
            add(format!("{}: {metric}", words(name)), unit, &|s| of(s.requests.by_operation()[place].1));
        }
    }
    for name in operations.iter().map(|(_, name)| *name).chain(several.then_some("all")) {
        for (metric, unit, share) in [("demerit", "us", false), ("demerit, share of the mean", SHARE, true)] {
            let of = |summary: &Summary| demerit_of(&groups[0].runs[0].summary, summary, name, share);
            add(format!("{}: {metric}", words(name)), unit, &of);
        }
    }
    if several {
        for (metric, unit, of) in OF_OPERATIONS {
            add(format!("all: {metric}"), unit, &|s| of(&s.requests.all));
        }
    }
    for (metric, unit, of) in OF_THE_DEVICE {
        add(metric.to_owned(), unit, &of);
    }
    rows
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

/// Returns the operations that occur in any run, with their indices.
fn operations(groups: &[Group]) -> Vec<(usize, &'static str)> {
    let runs = || groups.iter().flat_map(|group| &group.runs);
    let there = |place: usize| runs().any(|run| run.summary.requests.by_operation()[place].1.count > 0);
    let names = groups[0].runs[0].summary.requests.by_operation().map(|(name, _)| name);
    names.into_iter().enumerate().filter(|(place, _)| there(*place)).collect()
}
