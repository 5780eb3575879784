//! Section on the run over simulated time.

use maud::html;
use serde_json::{Value, json};

use floatgate_core::metrics::counters::MergeKind;
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;

use crate::columns::series::{OperationRow, Row};
use crate::figure::{Figure, Style, axis, log_axis, seconds, trace, with_lone_points};
use crate::page::Page;
use crate::words::words;

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
    /// Share of the victims' mapping units that did not have to be moved; `None` without victims.
    pub cleaning_efficiency: Option<f64>,
    /// Write amplification; `None` without writes.
    pub write_amplification: Option<f64>,
    /// Merges: switch, partial and full.
    pub merges: [u64; 3],
    /// Mean number of logical blocks of the log blocks that were reclaimed; `None` if none was.
    pub associativity: Option<f64>,
}

/// Requests of one operation that completed in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesOperation {
    /// The operation.
    pub operation: String,
    /// Requests per second.
    pub iops: f64,
    /// MiB per second.
    pub mib_per_s: f64,
    /// Mean latency in microseconds; `None` without requests.
    pub latency_mean_us: Option<f64>,
    /// 99th percentile of the latency, in microseconds.
    pub latency_p99_us: Option<f64>,
    /// Maximum latency, in microseconds.
    pub latency_max_us: Option<f64>,
}

/// Maximum number of points in a figure. More points than a screen has columns only make the page larger.
pub const MOST_POINTS: usize = 1024;

/// Returns a point per window, with the operations that occur in any window. If there are too many windows, adjacent
/// ones are merged.
pub fn points(windows: &[Row]) -> Vec<SeriesPoint> {
    let together = windows.len().div_ceil(MOST_POINTS);
    if together > 1 {
        return points(&windows.chunks(together).map(merged).collect::<Vec<_>>());
    }
    let there = |operation: &Operation| windows.iter().any(|row| row.operations[operation.index()].count > 0);
    let there: Vec<Operation> = Operation::ALL.into_iter().filter(there).collect();
    let point = |row: &Row| SeriesPoint {
        start_s: Time(row.start_ps).as_s(),
        end_s: Time(row.end_ps).as_s(),
        operations: there.iter().map(|operation| point_of(*operation, &row.operations[operation.index()])).collect(),
        free_blocks_min: Some(row.free_blocks_min as f64),
        free_blocks_mean: row.free_blocks_mean,
        cleaning_efficiency: row.efficiency,
        write_amplification: row.write_amplification,
        merges: row.merges,
        associativity: row.associativity,
    };
    windows.iter().map(point).collect()
}

/// Merges adjacent windows, as far as the figures need it. The merged percentile is the maximum over the windows, which
/// is an upper bound.
pub fn merged(windows: &[Row]) -> Row {
    let mut all = windows[0].clone();
    all.end_ps = windows[windows.len() - 1].end_ps;
    let seconds = Time(all.end_ps - all.start_ps).as_s().max(f64::MIN_POSITIVE);
    for (index, operation) in all.operations.iter_mut().enumerate() {
        let rows = || windows.iter().map(|row| &row.operations[index]);
        let most = |of: fn(&OperationRow) -> Option<f64>| rows().filter_map(of).reduce(f64::max);
        let latencies: f64 = rows().map(|row| row.mean_us.unwrap_or_default() * row.count as f64).sum();
        let (count, bytes) = (rows().map(|row| row.count).sum::<u64>(), rows().map(|row| row.bytes).sum::<u64>());
        *operation = OperationRow {
            count,
            bytes,
            iops: Some(count as f64 / seconds),
            bytes_per_s: Some(bytes as f64 / seconds),
            mean_us: (count > 0).then(|| latencies / count as f64),
            p99_us: most(|row| row.p99_us),
            max_us: most(|row| row.max_us),
            ..OperationRow::default()
        };
    }
    let sum = |of: fn(&Row) -> f64| windows.iter().map(of).sum::<f64>();
    let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    all.write_amplification = ratio(sum(|row| row.units_programmed as f64), sum(|row| row.host_units as f64));
    let spared = sum(|row| row.efficiency.unwrap_or_default() * row.victims as f64);
    all.efficiency = ratio(spared, sum(|row| row.victims as f64));
    all.merges = std::array::from_fn(|kind| windows.iter().map(|row| row.merges[kind]).sum());
    let logical = sum(|row| row.associativity.unwrap_or_default() * row.logs_reclaimed as f64);
    all.associativity = ratio(logical, sum(|row| row.logs_reclaimed as f64));
    all.logs_reclaimed = windows.iter().map(|row| row.logs_reclaimed).sum();
    all.free_blocks_min = windows.iter().map(|row| row.free_blocks_min).min().unwrap_or_default();
    all.free_blocks_mean = ratio(sum(|row| row.free_blocks_mean.unwrap_or_default()), windows.len() as f64);
    all
}

fn point_of(operation: Operation, row: &OperationRow) -> SeriesOperation {
    SeriesOperation {
        operation: operation.name().to_owned(),
        iops: row.iops.unwrap_or_default(),
        mib_per_s: row.bytes_per_s.unwrap_or_default() / 1_048_576.0,
        latency_mean_us: row.mean_us,
        latency_p99_us: row.p99_us,
        latency_max_us: row.max_us,
    }
}

/// Adds the section if there are any points.
pub fn section(page: &mut Page, series: &[SeriesPoint]) {
    if series.is_empty() {
        return;
    }
    page.section("over-time", "Over time");
    page.figures(vec![throughput(series), latency(series)]);
    let merges = merges(series);
    let reclaim = if merges.is_some() { merges } else { free_blocks(series) };
    let gc = [reclaim, amplification(series)];
    page.figures(gc.into_iter().flatten().collect());
}

/// Returns the middle of each window.
fn times(series: &[SeriesPoint]) -> Vec<f64> {
    series.iter().map(|point| f64::midpoint(point.start_s, point.end_s)).collect()
}

/// Returns the names of the operations, with their indices.
fn operations(series: &[SeriesPoint]) -> impl Iterator<Item = (usize, &str)> {
    series[0].operations.iter().map(|of| of.operation.as_str()).enumerate()
}

fn values(series: &[SeriesPoint], of: impl Fn(&SeriesPoint) -> Option<f64>) -> Vec<Option<f64>> {
    series.iter().map(of).collect()
}

fn throughput(series: &[SeriesPoint]) -> Figure {
    let x = times(series);
    let lines = operations(series).map(|(place, name)| {
        let y = values(series, |point| point.operations.get(place).map(|of| of.mib_per_s));
        let iops = values(series, |point| point.operations.get(place).map(|of| of.iops));
        let hover = "%{x:.4~g} s: %{y:.4~g} MiB/s, %{customdata:.4~s} IOPS";
        let more = json!({ "x": x, "y": y, "customdata": iops, "hovertemplate": hover });
        trace(&words(name), Style::of_operation(name).line(), more)
    });
    let caption = html! {
        "MiB per second of each operation, by completion time. Each point is a window of simulated time; hover "
        "over it to see requests per second. If the throughput falls and stays low, the device has run out of free "
        "blocks."
    };
    let layout = json!({ "showlegend": true, "xaxis": axis("simulated time, s"), "yaxis": from_zero("MiB/s") });
    Figure::new("throughput-over-time", "Throughput over time", caption, lines.collect(), layout)
}

fn latency(series: &[SeriesPoint]) -> Figure {
    let x = times(series);
    let mut lines = Vec::new();
    for (place, name) in operations(series) {
        let style = Style::of_operation(name);
        // Distinguishable without color: operations by their markers, statistics by their dashes.
        let mut add = |what: &str, dash: &str, width: f64, of: &dyn Fn(&SeriesOperation) -> Option<f64>| {
            let y = values(series, |point| point.operations.get(place).and_then(of).map(seconds));
            let mut options = style.line();
            options["line"]["width"] = width.into();
            options["line"]["dash"] = dash.into();
            let more = json!({ "x": x, "y": y, "hovertemplate": "%{x:.4~g} s: %{y:.4~s}s" });
            lines.push(trace(&format!("{}, {what}", words(name)), options, more));
        };
        add("mean", "solid", 2.5, &|of| of.latency_mean_us);
        add("p99", "dash", 1.5, &|of| of.latency_p99_us);
        add("max", "dot", 1.0, &|of| of.latency_max_us);
    }
    let of_all = series.iter().flat_map(|point| &point.operations);
    let times = of_all.flat_map(|of| [of.latency_mean_us, of.latency_p99_us, of.latency_max_us]).flatten();
    let caption = html! {
        "Latency of the requests that completed in each window, on a logarithmic axis: the mean as a thick line, p99 "
        "dashed, the maximum dotted. Each operation has its own marker. A window without neighbors is a single marker. "
        "Peaks that coincide with few free blocks, or with merges, are requests that waited for them."
    };
    let layout = json!({ "xaxis": axis("simulated time, s"), "yaxis": log_axis("latency", times) });
    Figure::new("latency-over-time", "Latency over time", caption, with_lone_points(lines), layout)
}

fn free_blocks(series: &[SeriesPoint]) -> Option<Figure> {
    let x = times(series);
    let [least, mean] = [values(series, |point| point.free_blocks_min), values(series, |point| point.free_blocks_mean)];
    let efficiency = values(series, |point| point.cleaning_efficiency);
    if least.iter().chain(&mean).all(Option::is_none) {
        return None;
    }
    let more = |y: &[Option<f64>], hover: &str| json!({ "x": x, "y": y, "hovertemplate": hover });
    let mut lines = vec![
        trace("free blocks, mean", Style::of(0).line(), more(&mean, "%{x:.4~g} s: %{y:.5~g} free blocks")),
        trace("free blocks, minimum", Style::of(1).line(), more(&least, "%{x:.4~g} s: %{y:.5~g} free blocks")),
    ];
    let mut second = more(&efficiency, "%{x:.4~g} s: %{y:.1%}");
    second["yaxis"] = "y2".into();
    lines.push(trace("cleaning efficiency (right)", Style::of(2).line(), second));
    let right = json!({ "title": { "text": "efficiency" }, "overlaying": "y", "side": "right", "range": [0, 1], "dtick": 0.25,
        "tickformat": ".0%", "showgrid": false });
    let layout = json!({ "xaxis": axis("simulated time, s"), "yaxis": from_zero("free blocks"), "yaxis2": right });
    let caption = html! {
        "Free blocks of a plane in each window (left), and cleaning efficiency (right): the share of a victim's units "
        "that did not have to be moved. Garbage collection keeps the free blocks at its threshold. The minimum shows "
        "how close the device came to having none."
    };
    Some(Figure::new("gc-over-time", "Garbage collection over time", caption, with_lone_points(lines), layout))
}

/// Returns merges per second and associativity over time, if there were merges.
fn merges(series: &[SeriesPoint]) -> Option<Figure> {
    if series.iter().all(|point| point.merges.iter().all(|count| *count == 0)) {
        return None;
    }
    let x = times(series);
    let mut lines: Vec<Value> = MergeKind::ALL
        .iter()
        .enumerate()
        .map(|(index, (_, kind))| {
            let rate = |point: &SeriesPoint| {
                let seconds = point.end_s - point.start_s;
                (seconds > 0.0).then(|| point.merges[index] as f64 / seconds)
            };
            let more = json!({ "x": x, "y": values(series, rate), "hovertemplate": "%{x:.4~g} s: %{y:.4~s} merges/s" });
            trace(kind, Style::of(index).line(), more)
        })
        .collect();
    let mut layout = json!({ "xaxis": axis("simulated time, s"), "yaxis": from_zero("merges per second") });
    let associativity = values(series, |point| point.associativity);
    if associativity.iter().any(Option::is_some) {
        let more = json!({ "x": x, "y": associativity, "yaxis": "y2", "hovertemplate": "%{x:.4~g} s: %{y:.4~g}" });
        lines.push(trace("associativity (right)", Style::of(3).line(), more));
        layout["yaxis2"] = json!({ "title": { "text": "logical blocks per log block" }, "overlaying": "y",
            "side": "right", "rangemode": "tozero", "showgrid": false });
    }
    let caption = html! {
        "Merges per second by kind (left), and associativity (right): the mean number of logical blocks with valid units "
        "in the log blocks that were reclaimed in a window. In a shared log block, each of them needs a full merge."
    };
    Some(Figure::new("merges-over-time", "Merges over time", caption, with_lone_points(lines), layout))
}

fn amplification(series: &[SeriesPoint]) -> Option<Figure> {
    let y = values(series, |point| point.write_amplification);
    if y.iter().all(Option::is_none) {
        return None;
    }
    let more = json!({ "x": times(series), "y": y, "hovertemplate": "%{x:.4~g} s: %{y:.4~g}" });
    let caption = html! {
        "Mapping units programmed per mapping unit written by the host, by window. A level line means a steady state. "
        "A rising line means that the run started before the steady state."
    };
    let layout = json!({ "xaxis": axis("simulated time, s"), "yaxis": from_zero("write amplification") });
    let line: Vec<Value> = vec![trace("write amplification", Style::of(0).line(), more)];
    Some(Figure::new(
        "amplification-over-time",
        "Write amplification over time",
        caption,
        with_lone_points(line),
        layout,
    ))
}

fn from_zero(title: &str) -> Value {
    let mut axis = axis(title);
    axis["rangemode"] = "tozero".into();
    axis
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
                mean_us: (count > 0).then_some(latency),
                p99_us: (count > 0).then_some(latency),
                ..OperationRow::default()
            };
            (row.host_units, row.units_programmed, row.free_blocks_min) = (1, 3, number % 4);
            (row.merges, row.logs_reclaimed) = ([1, 0, number % 2], number % 4);
            row.associativity = (!number.is_multiple_of(4)).then_some(number as f64);
            row
        };
        let rows: Vec<Row> = (0..4096).map(row).collect();
        let points = points(&rows);
        assert_eq!(points.len(), 1024);
        let first = &points[0];
        assert_eq!((first.start_s, first.end_s), (0.0, 4e-6));
        let reads = &first.operations[0];
        // Windows 1 and 3 have three requests each. Windows 0 and 2 have none.
        assert_eq!((reads.iops, reads.latency_mean_us, reads.latency_p99_us), (6.0 / 4e-6, Some(2.0), Some(3.0)));
        assert_eq!((first.write_amplification, first.free_blocks_min), (Some(3.0), Some(0.0)));
        // Windows 1, 2 and 3 reclaimed 1, 2 and 3 log blocks, of 1, 2 and 3 logical blocks each.
        assert_eq!((first.merges, first.associativity), ([4, 0, 2], Some(14.0 / 6.0)));
    }
}
