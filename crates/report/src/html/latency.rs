//! Latency section: latency distributions and their tails.

use floatgate_core::summary::{LatencyCurve, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, MIN_US, Style, axis, log_axis, log_share_axis, seconds, trace};
use crate::page::Page;
use crate::words::words;

/// A distribution to draw.
#[derive(Debug)]
pub struct Curve<'a> {
    /// Name of the curve.
    pub name: String,
    /// Style of the curve.
    pub style: Style,
    /// Points of the curve.
    pub points: &'a LatencyCurve,
}

/// Adds the section on latencies.
pub fn section(page: &mut Page, summary: &Summary) {
    let latency = &summary.distributions.latency;
    if latency.is_empty() {
        return;
    }
    page.section("latency", "Latency");
    let drawn = latency.iter().map(|points| Curve {
        name: words(&points.operation),
        style: Style::of_operation(&points.operation),
        points,
    });
    let figures = curves("latency", &drawn.collect::<Vec<_>>());
    if figures.is_empty() {
        page.add(&html! { p { "All requests completed at once." } });
    }
    page.figures(figures);
}

/// Returns two figures of the same distributions: the cumulative distribution, and the tail. Curves of requests that
/// all completed at once are left out.
pub fn curves(id: &str, curves: &[Curve]) -> Vec<Figure> {
    let (there, at_once): (Vec<&Curve>, Vec<&Curve>) =
        curves.iter().partition(|curve| curve.points.us.last().is_some_and(|us| *us >= MIN_US));
    if there.is_empty() {
        return Vec::new();
    }
    let mut at_once: Vec<&str> = at_once.into_iter().map(|curve| curve.name.as_str()).collect();
    at_once.dedup();
    vec![cumulative(id, &there, &at_once), tail(id, &there)]
}

fn cumulative(id: &str, curves: &[&Curve], at_once: &[&str]) -> Figure {
    let axis = time_axis_of(curves);
    let lines = curves.iter().map(|curve| {
        let (us, longer) = shares(curve.points, left_of(&axis));
        let no_longer: Vec<f64> = longer.iter().map(|share| 1.0 - share).collect();
        line(curve, &us, &no_longer, "%{x:.4~s}s: %{y:.2%} took no longer")
    });
    let caption = html! {
        "The share of requests (vertical) whose latency was at most the time on the horizontal axis, which is "
        "logarithmic (1000 ns = 1 µs, 1000 µs = 1 ms). Curves further to the left are faster. Where a curve climbs "
        "steeply, many requests took about that time. It crosses the median at 50%. Requests that completed at once are "
        "at the left edge."
        @if !at_once.is_empty() { " Not drawn, because all of them completed at once: " (at_once.join(", ")) "." }
    };
    let layout = json!({ "showlegend": true, "xaxis": axis, "yaxis": no_longer_axis() });
    Figure::new(&format!("{id}-cdf"), "Latency, cumulative", caption, lines.collect(), layout)
}

fn tail(id: &str, curves: &[&Curve]) -> Figure {
    let axis = time_axis_of(curves);
    let lines = curves.iter().map(|curve| {
        let (us, mut longer) = shares(curve.points, left_of(&axis));
        // No request took longer than the slowest, and a logarithmic axis has no 0: its share is half of a request.
        if let Some(last) = longer.last_mut() {
            *last = 0.5 / curve.points.requests.max(1) as f64;
        }
        line(curve, &us, &longer, "%{x:.4~s}s: %{y:.3~%} of all took longer")
    });
    let caption = html! {
        "The share of requests that took longer than the time on the horizontal axis. Both axes are logarithmic: p99.9 "
        "is at 0.1%, p99.99 at 0.01%. A curve that falls steeply has no tail. A shelf is a group of requests that were "
        "delayed by something slow, such as an erase. The curve ends at the slowest request."
    };
    let most = curves.iter().map(|curve| curve.points.requests).max().unwrap_or(1).max(1);
    let mut y = log_share_axis("share that took longer");
    y["range"] = json!([-libm::log10(2.5 * most as f64), 0.05]);
    let layout = json!({ "showlegend": true, "xaxis": axis, "yaxis": y });
    Figure::new(&format!("{id}-tail"), "Latency, the tail", caption, lines.collect(), layout)
}

/// Returns the axis of times for these curves.
fn time_axis_of(curves: &[&Curve]) -> Value {
    log_axis("latency", curves.iter().flat_map(|curve| curve.points.us.iter().copied()))
}

/// Returns the left end of a logarithmic axis.
fn left_of(axis: &Value) -> f64 {
    libm::pow(10.0, axis["range"][0].as_f64().unwrap_or(0.0))
}

/// Least number of requests with one latency that are drawn as a step.
const STEP: u64 = 2;

/// Returns the points of a line in seconds, at least `left`, and the shares of the requests that took longer.
///
/// Latencies between two points are taken to grow linearly with the share, except for requests with one latency, which
/// are a step.
fn shares(points: &LatencyCurve, left: f64) -> (Vec<f64>, Vec<f64>) {
    let count = points.requests.max(1);
    let share = |longer: u64| longer as f64 / count as f64;
    let first = points.us.first().map_or(left, |us| seconds(*us).max(left));
    let (mut times, mut shares, mut before) = (vec![first], vec![1.0], count);
    for (us, longer) in points.us.iter().zip(&points.longer) {
        let time = seconds(*us).max(left);
        let taken = before - longer;
        // The curve has a point at least every 0.5% of the requests, and every tenth of the rest, apart from steps.
        if taken >= STEP && (taken > count / 100 || taken > before / 5) {
            times.push(time);
            shares.push(share(before));
        }
        times.push(time);
        shares.push(share(*longer));
        before = *longer;
    }
    (times, shares)
}

fn line(curve: &Curve, us: &[f64], shares: &[f64], hover: &str) -> Value {
    let hover = format!("{hover}<extra>{}</extra>", crate::figure::plain(&curve.name));
    trace(&curve.name, curve.style.line(), json!({ "x": us, "y": shares, "hovertemplate": hover }))
}

fn no_longer_axis() -> Value {
    let mut axis = axis("share that took no longer");
    axis["range"] = json!([0, 1.02]);
    axis["tickformat"] = ".0%".into();
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_one_latency_are_a_step() {
        let curve = |us: &[f64], longer: &[u64]| LatencyCurve {
            operation: "read".to_owned(),
            requests: 1000,
            us: us.to_vec(),
            longer: longer.to_vec(),
        };
        // 4 requests between 1 and 2 s, and 990 of exactly 3 s.
        let (times, shares) = shares(&curve(&[1e6, 2e6, 3e6], &[994, 990, 0]), 1e-9);
        assert_eq!(times, [1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(shares, [1.0, 0.994, 0.99, 0.99, 0.0]);
        // Requests that completed at once start at the left edge.
        let (times, shares) = self::shares(&curve(&[0.0, 2e6], &[500, 0]), 0.1);
        assert_eq!((times, shares), (vec![0.1, 0.1, 0.1, 2.0, 2.0], vec![1.0, 1.0, 0.5, 0.5, 0.0]));
    }
}
