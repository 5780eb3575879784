//! Section on the run over simulated time. Lines are smoothed, with the windows faint behind them.

use floatgate_core::results::MergeKind;
use maud::html;
use serde_json::{Value, json};

use super::smooth::Smoother;
use super::windows::{SeriesOperation, SeriesPoint};
use crate::figure::{Figure, MIN_US, Style, axis, log_axis, seconds, trace, with, with_lone_points};
use crate::page::Page;
use crate::words::words;

/// Adds the section if there are any points.
pub fn section(page: &mut Page, series: &[SeriesPoint]) {
    if series.is_empty() {
        return;
    }
    page.section("over-time", "Over time");
    page.add(&html! { p.note { (windows(series)) } });
    let merges = merges(series);
    let reclaim = if merges.is_some() { merges } else { free_blocks(series) };
    for pair in [[throughput(series), latency(series)], [amplification(series), reclaim]] {
        page.figures(pair.into_iter().flatten().collect());
    }
}

/// Describes the windows, and how lines follow from them.
fn windows(series: &[SeriesPoint]) -> String {
    let count = series.len();
    match Smoother::new(count) {
        Some(_) => format!(
            "The run is divided into {count} windows of simulated time, which are drawn faint. The lines in front of \
             them are moving averages."
        ),
        None => format!("Each marker is one of {count} windows of simulated time."),
    }
}

/// Returns the middle of each window.
fn times(series: &[SeriesPoint]) -> Vec<f64> {
    // Windows are wider than the microsecond at which times are rounded, or there are few.
    series.iter().map(|point| (f64::midpoint(point.start_s, point.end_s) * 1e7).round() / 1e7).collect()
}

/// Returns the names of the operations, with their indices.
fn operations(series: &[SeriesPoint]) -> impl Iterator<Item = (usize, &str)> {
    series[0].operations.iter().map(|of| of.operation.as_str()).enumerate()
}

fn values(series: &[SeriesPoint], of: impl FnMut(&SeriesPoint) -> Option<f64>) -> Vec<Option<f64>> {
    series.iter().map(of).collect()
}

fn weights(series: &[SeriesPoint], of: impl Fn(&SeriesPoint) -> f64) -> Vec<f64> {
    series.iter().map(of).collect()
}

/// Lines of a figure: smoothed, with the windows behind them.
struct Lines {
    x: Vec<f64>,
    smoother: Option<Smoother>,
    /// The windows, which are drawn first.
    windows: Vec<Value>,
    averages: Vec<Value>,
}

/// Significant digits of values in a figure. More would only make the page larger.
const DIGITS: f64 = 5.0;

/// Rounds a value to [`DIGITS`].
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = libm::pow(10.0, DIGITS - 1.0 - libm::floor(libm::log10(value.abs())));
    (value * unit).round() / unit
}

/// A quantity to draw: its name and style, the value and the weight of each window, and the text on hover.
struct Quantity<'a> {
    name: &'a str,
    style: Style,
    values: Vec<Option<f64>>,
    weights: Vec<f64>,
    hover: &'a str,
    /// More options of its lines, such as their axis.
    more: Value,
}

impl Lines {
    fn new(series: &[SeriesPoint]) -> Lines {
        Lines { x: times(series), smoother: Smoother::new(series.len()), windows: Vec::new(), averages: Vec::new() }
    }

    /// Adds the lines of a quantity. Returns the values of the line in front.
    fn add(&mut self, quantity: Quantity, logarithmic: bool) -> Vec<Option<f64>> {
        let Quantity { name, style, values, weights, hover, more } = quantity;
        let smoother = self.smoother.as_ref();
        let data = |y: &[Option<f64>], what: &str| {
            let y: Vec<_> = y.iter().map(|value| value.map(rounded)).collect();
            json!({ "x": self.x, "y": y, "legendgroup": name, "hovertemplate": format!("%{{x:.4~g}} s{what}: {hover}") })
        };
        let of =
            |options: Value, y: &[Option<f64>], what: &str| trace(name, with(options, data(y, what)), more.clone());
        let Some(smoother) = smoother else {
            self.averages.push(of(style.line(), &values, ""));
            return values;
        };
        let mean = if logarithmic { Smoother::log_mean } else { Smoother::mean };
        let average = mean(smoother, &values, &weights);
        self.windows.push(of(style.faint(), &values, ""));
        self.averages.push(of(style.line(), &average, ", average"));
        average
    }

    /// Returns all lines, in the order in which they are drawn.
    fn traces(self) -> Vec<Value> {
        with_lone_points(self.windows.into_iter().chain(self.averages).collect())
    }
}

fn throughput(series: &[SeriesPoint]) -> Option<Figure> {
    let mut lines = Lines::new(series);
    for (place, name) in operations(series) {
        let values = values(series, |point| point.operations.get(place).map(|of| of.mib_per_s));
        if values.iter().all(|value| value.unwrap_or_default() == 0.0) {
            continue;
        }
        let iops = weights(series, |point| rounded(point.operations[place].iops));
        let style = Style::of_operation(name);
        let weights = vec![1.0; series.len()];
        let name = words(name);
        let hover = "%{y:.4~g} MiB/s, %{customdata:.4~s} requests/s in the window";
        lines.add(Quantity { name: &name, style, values, weights, hover, more: json!({ "customdata": iops }) }, false);
    }
    let caption = html! {
        "MiB per second of each operation, by completion time. If the throughput falls and stays low, the device has "
        "run out of free blocks."
    };
    let layout = json!({ "showlegend": true, "xaxis": axis("simulated time, s"), "yaxis": from_zero("MiB/s") });
    let lines = lines.traces();
    (!lines.is_empty()).then(|| Figure::new("throughput-over-time", "Throughput over time", caption, lines, layout))
}

/// Height of a panel of latencies, in CSS pixels.
const PANEL: u32 = 170;

/// Returns a figure with a panel for each operation that takes time.
fn latency(series: &[SeriesPoint]) -> Option<Figure> {
    let slow =
        |place: usize| series.iter().any(|point| point.operations[place].latency_max_us.is_some_and(|us| us >= MIN_US));
    let there: Vec<(usize, &str)> = operations(series).filter(|(place, _)| slow(*place)).collect();
    let mut layout = json!({ "showlegend": true, "xaxis": axis("simulated time, s") });
    let mut traces = Vec::new();
    for (panel, (place, name)) in there.iter().enumerate() {
        let y = if panel == 0 { "y".to_owned() } else { format!("y{}", panel + 1) };
        let latencies = |point: &SeriesPoint| {
            let of = &point.operations[*place];
            [of.latency_p50_us, of.latency_p99_us, of.latency_max_us]
        };
        let mut axis = log_axis(&words(name), series.iter().flat_map(latencies).flatten());
        let height = 1.0 / there.len() as f64;
        let top = 1.0 - panel as f64 * height;
        axis["domain"] = json!([if panel + 1 == there.len() { 0.0 } else { top - 0.9 * height }, top]);
        layout[format!("yaxis{}", y.trim_start_matches('y'))] = axis;
        layout["xaxis"]["anchor"] = y.as_str().into();
        traces.extend(panel_of(series, *place, &y, panel == 0));
    }
    let caption = html! {
        "Latency of the requests that completed in each window, with a panel and a logarithmic axis for each operation "
        "that takes time. Half of the requests took longer than the solid line, and one in a hundred longer than the "
        "dashed line; the dots are the slowest requests. Peaks that coincide with few free blocks, or with merges, are "
        "requests that waited for them."
    };
    let figure = || Figure::new("latency-over-time", "Latency over time", caption, traces, layout);
    (!there.is_empty()).then(|| figure().high((90 + PANEL * there.len() as u32).max(340)))
}

/// Returns the traces of a panel: maxima, the area from p50 to p99, and its edges. `named` is true if they are in the
/// legend.
fn panel_of(series: &[SeriesPoint], place: usize, y: &str, named: bool) -> Vec<Value> {
    let mut lines = Lines::new(series);
    let style = Style::of(0);
    let more = |dash: &str, width: f64| json!({ "yaxis": y, "line": { "color": style.color(), "width": width, "dash": dash } });
    let of = |of: fn(&SeriesOperation) -> Option<f64>| {
        values(series, |point| of(&point.operations[place]).filter(|us| *us >= MIN_US).map(seconds))
    };
    let mut add = |name, values, more: Value| {
        let weights = weights(series, |point| point.operations[place].count);
        lines.add(Quantity { name, style, values, weights, hover: "%{y:.4~s}s", more }, true)
    };
    let low = add("median", of(|of| of.latency_p50_us), more("solid", 2.2));
    let high = add("p99", of(|of| of.latency_p99_us), more("dash", 1.2));
    if lines.smoother.is_some() {
        lines.windows.iter_mut().for_each(|line| line["line"] = style.faint()["line"].clone());
    }
    let (band_x, band_y) = outline(&lines.x, &low, &high);
    let band = json!({ "x": band_x, "y": band_y, "yaxis": y, "legendgroup": "p50 to p99" });
    let slowest = json!({ "x": lines.x, "y": of(|of| of.latency_max_us.map(rounded)), "yaxis": y, "legendgroup": "maximum",
        "hovertemplate": "%{x:.4~g} s: %{y:.4~s}s" });
    let back = [trace("maximum", Style::of(1).dots(), slowest), trace("p50 to p99", style.area(), band)];
    let mut traces: Vec<Value> = back.into_iter().chain(lines.traces()).collect();
    if !named {
        traces.iter_mut().for_each(|trace| trace["showlegend"] = false.into());
    }
    traces
}

/// Points of an outline; nulls separate its parts.
type Outline = (Vec<Option<f64>>, Vec<Option<f64>>);

/// Returns the outline of the area between two lines. Each part of the area ends at a gap of either line.
fn outline(x: &[f64], low: &[Option<f64>], high: &[Option<f64>]) -> Outline {
    let (mut outline, mut part): (Outline, Vec<(f64, f64, f64)>) = Default::default();
    let mut close = |part: &mut Vec<(f64, f64, f64)>| {
        let there = part.iter().map(|(x, low, _)| (*x, *low));
        let back = part.iter().rev().map(|(x, _, high)| (*x, *high));
        for (x, y) in there.chain(back) {
            outline.0.push(Some(x));
            outline.1.push(Some(rounded(y)));
        }
        if !part.is_empty() {
            outline.0.push(None);
            outline.1.push(None);
        }
        part.clear();
    };
    for (x, edges) in x.iter().zip(low.iter().zip(high)) {
        match edges {
            (Some(low), Some(high)) => part.push((*x, *low, *high)),
            _ => close(&mut part),
        }
    }
    close(&mut part);
    outline
}

fn free_blocks(series: &[SeriesPoint]) -> Option<Figure> {
    let [least, mean] = [values(series, |point| point.free_blocks_min), values(series, |point| point.free_blocks_mean)];
    if least.iter().chain(&mean).all(Option::is_none) {
        return None;
    }
    let mut lines = Lines::new(series);
    let even = || vec![1.0; series.len()];
    for (index, name, values) in [(0, "free blocks, mean", mean), (1, "free blocks, minimum", least)] {
        let hover = "%{y:.5~g} free blocks";
        let style = Style::of(index);
        lines.add(Quantity { name, style, values, weights: even(), hover, more: json!({}) }, false);
    }
    let efficiency = values(series, |point| point.cleaning_efficiency);
    let is_collected = efficiency.iter().any(Option::is_some);
    let mut layout =
        json!({ "showlegend": true, "xaxis": axis("simulated time, s"), "yaxis": from_zero("free blocks") });
    if is_collected {
        let quantity = Quantity {
            name: "cleaning efficiency (right)",
            style: Style::of(2),
            values: efficiency,
            weights: weights(series, |point| point.victims),
            hover: "%{y:.1%}",
            more: json!({ "yaxis": "y2" }),
        };
        lines.add(quantity, false);
        layout["yaxis2"] = json!({ "title": { "text": "efficiency" }, "overlaying": "y", "side": "right",
            "range": [0, 1.02], "dtick": 0.25, "tickformat": ".0%", "showgrid": false });
    }
    let caption = html! {
        "Free blocks of a plane. "
        @if is_collected {
            "Cleaning efficiency (right): the share of a victim's units that did not have to be moved. "
        }
        "Garbage collection keeps the free blocks at its threshold. The minimum shows how close the device came to having "
        "none."
    };
    Some(Figure::new("gc-over-time", "Garbage collection over time", caption, lines.traces(), layout))
}

/// Returns merges per second and associativity over time, if there were merges.
fn merges(series: &[SeriesPoint]) -> Option<Figure> {
    if series.iter().all(|point| point.merges.iter().all(|count| *count == 0)) {
        return None;
    }
    let mut lines = Lines::new(series);
    for (index, (_, name)) in MergeKind::ALL.iter().enumerate() {
        let rate = |point: &SeriesPoint| {
            let seconds = point.end_s - point.start_s;
            (seconds > 0.0).then(|| point.merges[index] as f64 / seconds)
        };
        let (values, weights) = (values(series, rate), vec![1.0; series.len()]);
        let style = Style::of(index);
        let hover = "%{y:.4~s} merges/s";
        lines.add(Quantity { name, style, values, weights, hover, more: json!({}) }, false);
    }
    let mut layout =
        json!({ "showlegend": true, "xaxis": axis("simulated time, s"), "yaxis": from_zero("merges per second") });
    let associativity = values(series, |point| point.associativity);
    if associativity.iter().any(Option::is_some) {
        let quantity = Quantity {
            name: "associativity (right)",
            style: Style::of(3),
            values: associativity,
            weights: weights(series, |point| point.logs_reclaimed),
            hover: "%{y:.4~g}",
            more: json!({ "yaxis": "y2" }),
        };
        lines.add(quantity, false);
        layout["yaxis2"] = json!({ "title": { "text": "logical blocks per log block" }, "overlaying": "y",
            "side": "right", "rangemode": "tozero", "showgrid": false });
    }
    let caption = html! {
        "Merges per second by kind (left), and associativity (right): the mean number of logical blocks with valid units "
        "in the log blocks that were reclaimed in a window. In a shared log block, each of them needs a full merge."
    };
    Some(Figure::new("merges-over-time", "Merges over time", caption, lines.traces(), layout))
}

/// Returns the write amplification from the start of the run until each window, with that of the windows behind it.
fn amplification(series: &[SeriesPoint]) -> Option<Figure> {
    let ratio = |programmed: f64, host: f64| (host > 0.0).then(|| programmed / host);
    let windows = values(series, |point| ratio(point.units_programmed, point.host_units));
    let mut so_far = (0.0, 0.0);
    let since_start = values(series, |point| {
        so_far = (so_far.0 + point.units_programmed, so_far.1 + point.host_units);
        ratio(so_far.0, so_far.1)
    });
    let top = top_of_amplification(series, &since_start)?;
    let x = times(series);
    let style = Style::of(0);
    let data = |y: &[Option<f64>], what: &str| json!({ "x": x, "y": y, "legendgroup": what, "hovertemplate": format!("%{{x:.4~g}} s, {what}: %{{y:.4~g}}") });
    let mut behind = trace("in the window", style.faint(), data(&windows, "in the window"));
    behind["showlegend"] = true.into();
    let lines = vec![behind, trace("since the start", style.line(), data(&since_start, "since the start"))];
    let cut_off = windows.iter().flatten().filter(|value| **value > top).count();
    let caption = html! {
        "Mapping units programmed per mapping unit written by the host, from the start of the run until each time, and "
        "faint in each window. A line that has become level means a steady state. Windows with few writes vary, because "
        "writes count before they are programmed."
        @if cut_off > 0 { " " (cut_off) " windows are above the figure." }
    };
    let mut y = axis("write amplification");
    y["range"] = json!([0, top]);
    let layout = json!({ "showlegend": true, "xaxis": axis("simulated time, s"), "yaxis": y });
    let id = "amplification-over-time";
    Some(Figure::new(id, "Write amplification over time", caption, with_lone_points(lines), layout))
}

/// Share of the host's writes after which the write amplification since the start is no longer dominated by a few
/// writes.
const SETTLED: f64 = 0.05;

/// Returns the end of the axis of write amplification, which leaves out short peaks. Returns `None` without writes.
fn top_of_amplification(series: &[SeriesPoint], since_start: &[Option<f64>]) -> Option<f64> {
    let all: f64 = series.iter().map(|point| point.host_units).sum();
    let mut written = 0.0;
    let settled = series.iter().zip(since_start).filter(|(point, _)| {
        written += point.host_units;
        written >= SETTLED * all
    });
    settled.filter_map(|(_, ratio)| *ratio).reduce(f64::max).map(|most| (1.4 * most).max(1.4))
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
    fn peaks_of_amplification_do_not_set_the_axis() {
        let point =
            |host_units: f64, units_programmed: f64| SeriesPoint { host_units, units_programmed, ..Default::default() };
        let mut series = vec![point(100.0, 200.0); 50];
        // A window that programs what was written before, and a first window with almost nothing written.
        series[20] = point(1.0, 112.0);
        series[0] = point(1.0, 50.0);
        let figure = amplification(&series).unwrap();
        let top = figure.layout["yaxis"]["range"][1].as_f64().unwrap();
        assert!((3.0..3.1).contains(&top), "{top}");
        assert!(figure.caption.0.contains(" 2 windows are above the figure."), "{}", figure.caption.0);
        let last = figure.data[1]["y"].as_array().unwrap().last().unwrap().as_f64().unwrap();
        assert!((last - 9762.0 / 4802.0).abs() < 1e-12, "{last}");
        assert!(amplification(&[point(0.0, 5.0)]).is_none(), "nothing was written");
    }

    #[test]
    fn areas_end_at_gaps() {
        let (x, y) = outline(&[1.0, 2.0, 3.0], &[Some(1.0), None, Some(2.0)], &[Some(5.0), Some(5.0), Some(6.0)]);
        assert_eq!(x, [Some(1.0), Some(1.0), None, Some(3.0), Some(3.0), None]);
        assert_eq!(y, [Some(1.0), Some(5.0), None, Some(2.0), Some(6.0), None]);
    }
}
