//! Figure of the differences between groups: an interval for each metric.

use maud::html;
use serde_json::{Value, json};

use super::{Cell, Comparison, Row};
use crate::figure::{Figure, Style, axis, plain, trace};
use crate::metric::SHARE;
use crate::statistics::Difference;

/// Height of a metric in CSS pixels, and of everything around the metrics.
const ROW: u32 = 20;
const AROUND: u32 = 130;

/// Difference from the first group, relative to its mean.
struct Relative {
    metric: String,
    /// The difference, and half the width of its interval, if there is one.
    by: f64,
    half: Option<f64>,
    significant: bool,
}

/// Returns the figure of all metrics that differ, or `None` if there are no differences.
pub fn figure(comparison: &Comparison) -> Option<Figure> {
    let others = 1..comparison.groups.len();
    // Demerits are distances already.
    let rows: Vec<&Row> = comparison.metrics.iter().filter(|row| !row.is_distance()).collect();
    let groups: Vec<Vec<Relative>> =
        others.map(|group| rows.iter().filter_map(|row| relative(row, group)).collect()).collect();
    let drawn = |name: &String| groups.iter().flatten().any(|relative| relative.metric == *name);
    let metrics: Vec<String> = rows.iter().map(|row| name_of(row)).filter(drawn).collect();
    let limit = limit(groups.iter().flatten())?;
    let traces: Vec<Value> = groups
        .iter()
        .zip(&comparison.groups[1..])
        .enumerate()
        .map(|(index, (of_group, group))| points(index, &group.label, of_group, limit))
        .collect();
    let first = &comparison.groups[0].label;
    let mut x = axis(&format!("difference from {first}"));
    (x["tickformat"], x["range"], x["zerolinewidth"]) = ("+.0~%".into(), json!([-limit, limit]), 2.into());
    let order: Vec<String> = metrics.iter().map(|metric| plain(metric)).collect();
    let y = json!({ "type": "category", "autorange": "reversed", "categoryorder": "array", "categoryarray": order,
        "tickmode": "linear", "dtick": 1 });
    let layout = json!({ "showlegend": true, "xaxis": x, "yaxis": y, "scattermode": "group", "scattergap": 0.4 });
    let caption = html! {
        "The difference of each metric from " b { (first) } ", relative to its mean. "
        @if comparison.tested > 0 {
            "An interval that excludes 0 is a significant difference, whose marker is filled. " (comparison.judgment())
            " Intervals that end at the edge of the figure are longer."
        } @else {
            "There are no intervals, because a single run does not show how much results vary by chance."
        }
    };
    let height = AROUND + ROW * (metrics.len() * groups.len().max(1)) as u32;
    Some(Figure::new("differences", "Differences", caption, traces, layout).wide().high(height.min(1600)))
}

/// Returns the label of a metric with its unit, because two metrics can have one label and different units.
fn name_of(row: &Row) -> String {
    match row.unit {
        "" | SHARE => row.label.clone(),
        unit => format!("{}, {unit}", row.label),
    }
}

/// Returns the difference of a metric between a group and the first, if it has one that can be drawn.
fn relative(row: &Row, group: usize) -> Option<Relative> {
    let first = row.values[0].filter(|first| first.sample.mean != 0.0)?;
    let cell: Cell = row.values[group]?;
    let significant = match cell.difference? {
        Difference::Same => return None,
        Difference::Significant => true,
        Difference::NoiseUnknown | Difference::WithinNoise => false,
    };
    let mean = first.sample.mean;
    let half = cell.interval.map(|[from, to]| (to - from) / 2.0 / mean.abs());
    Some(Relative { metric: name_of(row), by: (cell.sample.mean - mean) / mean.abs(), half, significant })
}

/// Returns the end of the axis: all differences fit, and most intervals.
fn limit<'a>(all: impl Iterator<Item = &'a Relative>) -> Option<f64> {
    let mut most = 0.0f64;
    let mut extents = Vec::new();
    for relative in all {
        most = most.max(relative.by.abs());
        extents.push(relative.by.abs() + relative.half.unwrap_or(0.0));
    }
    extents.sort_by(f64::total_cmp);
    let usual = *extents.get(extents.len().checked_sub(1)? * 2 / 3)?;
    Some(1.15 * usual.max(most).max(1e-6))
}

/// Returns the markers of a group, with their intervals.
fn points(index: usize, label: &str, all: &[Relative], limit: f64) -> Value {
    let style = Style::of(index);
    let x: Vec<f64> = all.iter().map(|relative| relative.by).collect();
    let y: Vec<String> = all.iter().map(|relative| plain(&relative.metric)).collect();
    let half: Vec<f64> = all.iter().map(|relative| relative.half.unwrap_or(0.0).min(4.0 * limit)).collect();
    let hover: Vec<String> = all.iter().map(told).collect();
    let symbols: Vec<String> = all
        .iter()
        .map(|relative| format!("{}{}", style.marker(), if relative.significant { "" } else { "-open" }))
        .collect();
    let more = json!({
        "x": x, "y": y, "customdata": hover, "hovertemplate": "%{y}: %{customdata}", "mode": "markers",
        "offsetgroup": label, "marker": { "color": style.color(), "size": 8, "symbol": symbols },
        "error_x": { "type": "data", "array": half, "color": style.color(), "thickness": 1.6, "width": 4 },
    });
    trace(label, more, json!({}))
}

/// Returns a difference as text.
fn told(relative: &Relative) -> String {
    let percent = |share: f64| format!("{:+.2}%", share * 100.0);
    match relative.half {
        Some(half) => {
            format!("{}, from {} to {}", percent(relative.by), percent(relative.by - half), percent(relative.by + half))
        }
        None => percent(relative.by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(values: &[(&str, [Vec<f64>; 2])]) -> Comparison {
        let row = |(metric, values): &(&str, [Vec<f64>; 2])| Row::new((*metric).to_owned(), values);
        let mut metrics: Vec<Row> = values.iter().map(row).collect();
        let tested = Row::judge(&mut metrics);
        let group = |label: &str| super::super::Compared {
            label: label.to_owned(),
            device: String::new(),
            config_digest: String::new(),
            workload: String::new(),
            files: Vec::new(),
            seeds: Vec::new(),
        };
        Comparison { schema: "", warnings: Vec::new(), groups: vec![group("a"), group("b")], tested, metrics }
    }

    #[test]
    fn differences_have_corrected_intervals() {
        let five = |middle: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|off| middle + off).to_vec();
        let compared = comparison(&[
            ("far_us", [five(100.0), five(150.0)]),
            ("near_us", [five(100.0), five(101.0)]),
            ("same_us", [vec![1.0], vec![1.0]]),
        ]);
        assert_eq!(compared.tested, 2);
        let figure = figure(&compared).unwrap();
        let group = &figure.data[0];
        assert_eq!(group["y"], json!(["far, us", "near, us"]));
        assert_eq!(group["marker"]["symbol"], json!(["circle", "circle-open"]));
        // Standard error 1 with 8 degrees of freedom: t(0.9875; 8) = 2.7515 for the first of two tests, and
        // t(0.975; 8) = 2.306 for the second.
        for (half, expected) in [(&group["error_x"]["array"][0], 0.027_515), (&group["error_x"]["array"][1], 0.023_06)]
        {
            assert!((half.as_f64().unwrap() - expected).abs() < 1e-5, "{half}");
        }
        assert_eq!(group["customdata"][1], "+1.00%, from -1.31% to +3.31%");
    }

    #[test]
    fn single_runs_have_no_intervals() {
        let compared = comparison(&[("x_us", [vec![100.0], vec![110.0]]), ("zero_us", [vec![0.0], vec![5.0]])]);
        let figure = figure(&compared).unwrap();
        assert_eq!((&figure.data[0]["x"], &figure.data[0]["y"]), (&json!([0.1]), &json!(["x, us"])));
        assert!(figure.caption.0.contains("There are no intervals"));
        assert!(super::figure(&comparison(&[("x_us", [vec![1.0], vec![1.0]])])).is_none());
    }
}
