//! Values of a run by window of simulated time, as far as figures show them.

use floatgate_core::results::{Counters, Derived, Statistics};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;

use crate::columns::series::{OperationRow, Row};

/// Values of a window of simulated time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesPoint {
    /// Start of the window, in seconds.
    pub start_s: f64,
    /// End of the window, in seconds.
    pub end_s: f64,
    /// Operations that occur in any window, in the same order for all points.
    pub operations: Vec<SeriesOperation>,
    /// Free blocks at the end of the window, in the plane with the fewest.
    pub free_blocks_min: Option<f64>,
    /// Free blocks at the end of the window, averaged over the planes.
    pub free_blocks_mean: Option<f64>,
    /// Number of victims of garbage collection.
    pub victims: f64,
    /// Share of the victims' mapping units that did not have to be moved; `None` without victims.
    pub cleaning_efficiency: Option<f64>,
    /// Mapping units written by the host.
    pub host_units: f64,
    /// Mapping units programmed.
    pub units_programmed: f64,
    /// Merges: switch, partial and full.
    pub merges: [u64; 3],
    /// Log blocks reclaimed.
    pub logs_reclaimed: f64,
    /// Mean number of logical blocks of the log blocks that were reclaimed; `None` if none was.
    pub associativity: Option<f64>,
}

/// Requests of one operation that completed in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesOperation {
    /// The operation.
    pub operation: String,
    /// Number of requests.
    pub count: f64,
    /// Requests per second.
    pub iops: f64,
    /// MiB per second.
    pub mib_per_s: f64,
    /// Median latency in microseconds; `None` without requests.
    pub latency_p50_us: Option<f64>,
    /// 99th percentile of the latency, in microseconds.
    pub latency_p99_us: Option<f64>,
    /// Maximum latency, in microseconds.
    pub latency_max_us: Option<f64>,
}

/// Maximum number of points in a figure. More points than a screen has columns only make the page larger.
pub const MAX_POINTS: usize = 1024;

/// Returns a point per window, with the operations that occur in any window. If there are too many windows, adjacent
/// ones are merged. A last window that is much shorter than the others is merged into the one before it, because its
/// rates would depend on a few requests.
pub fn points(windows: &[Row]) -> Vec<SeriesPoint> {
    let width = |row: &Row| row.end_ps - row.start_ps;
    if let [first, .., before, last] = windows
        && width(last) < width(first) / 2
    {
        let together = merged(&[before.clone(), last.clone()]);
        return points(&[&windows[..windows.len() - 2], &[together]].concat());
    }
    let together = windows.len().div_ceil(MAX_POINTS);
    if together > 1 {
        return points(&windows.chunks(together).map(merged).collect::<Vec<_>>());
    }
    let there = |operation: &Operation| windows.iter().any(|row| row.operations[operation.index()].count > 0);
    let there: Vec<Operation> = Operation::ALL.into_iter().filter(there).collect();
    let point = |row: &Row| SeriesPoint {
        start_s: Time(row.start_ps).as_s(),
        end_s: Time(row.end_ps).as_s(),
        operations: there.iter().map(|operation| point_of(*operation, &row.operations[operation.index()])).collect(),
        free_blocks_min: Some(row.statistics.derived.free_blocks_min as f64),
        free_blocks_mean: row.statistics.derived.free_blocks_mean,
        victims: row.statistics.counters.victims as f64,
        cleaning_efficiency: row.statistics.derived.efficiency,
        host_units: row.statistics.counters.host_units as f64,
        units_programmed: row.statistics.derived.units_programmed as f64,
        merges: row.statistics.counters.merges,
        logs_reclaimed: row.statistics.counters.log_blocks.reclaimed as f64,
        associativity: row.statistics.derived.associativity,
    };
    windows.iter().map(point).collect()
}

/// Merges adjacent windows, as far as the figures need it. The merged median is the mean over the requests of the
/// medians of their windows. The merged p99 is the maximum over the windows, which is an upper bound.
pub fn merged(windows: &[Row]) -> Row {
    let mut all = windows[0].clone();
    all.end_ps = windows[windows.len() - 1].end_ps;
    let seconds = Time(all.end_ps - all.start_ps).as_s().max(f64::MIN_POSITIVE);
    for (index, operation) in all.operations.iter_mut().enumerate() {
        let rows = || windows.iter().map(|row| &row.operations[index]);
        let most = |of: fn(&OperationRow) -> Option<f64>| rows().filter_map(of).reduce(f64::max);
        let (count, bytes) = (rows().map(|row| row.count).sum::<u64>(), rows().map(|row| row.bytes).sum::<u64>());
        let mean = |of: fn(&OperationRow) -> Option<f64>| {
            let sum: f64 = rows().map(|row| of(row).unwrap_or_default() * row.count as f64).sum();
            (count > 0).then(|| sum / count as f64)
        };
        *operation = OperationRow {
            count,
            bytes,
            iops: Some(count as f64 / seconds),
            bytes_per_s: Some(bytes as f64 / seconds),
            p50_us: mean(|row| row.p50_us),
            p99_us: most(|row| row.p99_us),
            max_us: most(|row| row.max_us),
            ..OperationRow::default()
        };
    }
    all.statistics = merged_statistics(windows);
    all
}

fn merged_statistics(windows: &[Row]) -> Statistics {
    let statistics = || windows.iter().map(|row| &row.statistics);
    let counters = statistics().fold(Counters::default(), |sum, of| sum.plus(&of.counters));
    let mean = |of: fn(&Statistics) -> (Option<f64>, f64)| {
        let (sum, weights) = statistics().map(of).fold((0.0, 0.0), |(sum, weights), (value, weight)| {
            (sum + value.unwrap_or_default() * weight, weights + weight)
        });
        (weights > 0.0).then(|| sum / weights)
    };
    let derived = Derived {
        units_programmed: statistics().map(|of| of.derived.units_programmed).sum(),
        efficiency: mean(|of| (of.derived.efficiency, of.counters.victims as f64)),
        associativity: mean(|of| (of.derived.associativity, of.counters.log_blocks.reclaimed as f64)),
        free_blocks_min: statistics().map(|of| of.derived.free_blocks_min).min().unwrap_or_default(),
        free_blocks_mean: mean(|of| (of.derived.free_blocks_mean, 1.0)),
        ..Derived::default()
    };
    Statistics { counters, derived, ..Statistics::default() }
}

fn point_of(operation: Operation, row: &OperationRow) -> SeriesOperation {
    SeriesOperation {
        operation: operation.name().to_owned(),
        count: row.count as f64,
        iops: row.iops.unwrap_or_default(),
        mib_per_s: row.bytes_per_s.unwrap_or_default() / 1_048_576.0,
        latency_p50_us: row.p50_us,
        latency_p99_us: row.p99_us,
        latency_max_us: row.max_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_windows_are_merged() {
        let row = |number: u64| {
            let mut row = Row { start_ps: number * 1_000_000, end_ps: (number + 1) * 1_000_000, ..Row::default() };
            let (count, latency) = (number % 2 * 3, number as f64);
            row.operations[0] = OperationRow {
                count,
                bytes: count * 4096,
                p50_us: (count > 0).then_some(latency),
                p99_us: (count > 0).then_some(latency),
                ..OperationRow::default()
            };
            let Statistics { counters, derived, .. } = &mut row.statistics;
            (counters.host_units, derived.units_programmed, derived.free_blocks_min) = (1, 3, number % 4);
            (counters.merges, counters.log_blocks.reclaimed) = ([1, 0, number % 2], number % 4);
            derived.associativity = (!number.is_multiple_of(4)).then_some(number as f64);
            row
        };
        let rows: Vec<Row> = (0..4096).map(row).collect();
        let points = points(&rows);
        assert_eq!(points.len(), 1024);
        let first = &points[0];
        assert_eq!((first.start_s, first.end_s), (0.0, 4e-6));
        let reads = &first.operations[0];
        // Windows 1 and 3 have three requests each. Windows 0 and 2 have none.
        assert_eq!((reads.iops, reads.latency_p50_us, reads.latency_p99_us), (6.0 / 4e-6, Some(2.0), Some(3.0)));
        assert_eq!((first.host_units, first.units_programmed, first.free_blocks_min), (4.0, 12.0, Some(0.0)));
        // Windows 1, 2 and 3 reclaimed 1, 2 and 3 log blocks, of 1, 2 and 3 logical blocks each.
        assert_eq!((first.merges, first.associativity), ([4, 0, 2], Some(14.0 / 6.0)));
    }
}
