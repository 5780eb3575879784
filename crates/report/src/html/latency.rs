//! Latency section: latency distributions and their tails.

use floatgate_core::metrics::summary::{LatencyCurve, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Style, axis, log_axis, log_share_axis, seconds, trace};
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
    page.figures(curves("latency", &drawn.collect::<Vec<_>>()));
}

/// Returns two figures of the same distributions: the cumulative distribution, and the tail.
pub fn curves(id: &str, curves: &[Curve]) -> Vec<Figure> {
    let times = || curves.iter().flat_map(|curve| curve.points.us.iter().copied());
    let cdf = curves.iter().map(|curve| {
        let (mut us, longer) = shares(curve.points);
        us.insert(0, us[0]);
        let no_longer: Vec<f64> = std::iter::once(0.0).chain(longer.iter().map(|share| 1.0 - share)).collect();
        line(curve, &us, &no_longer, "%{x:.4~s}s: %{y:.2%} took no longer")
    });
    let cdf = Figure::new(
        &format!("{id}-cdf"),
        "Latency, cumulative",
        html! {
            "The share of requests (vertical) whose latency was at most the time on the horizontal axis, which is "
            "logarithmic (1000 ns = 1 µs, 1000 µs = 1 ms). Curves further to the left are faster. Where a curve "
            "climbs steeply, many requests took about that time. It crosses the median at 50%. If a curve does not "
            "start at 0, some requests completed at once, left of the axis."
        },
        cdf.collect(),
        json!({ "showlegend": true, "xaxis": log_axis("latency", times()), "yaxis": no_longer_axis() }),
    );
    let tail = curves.iter().map(|curve| {
        let (mut us, mut longer) = shares(curve.points);
        // No request took longer than the slowest, and a logarithmic axis has no 0. Therefore the last step is level.
        if let [.., before, last] = longer.as_mut_slice() {
            *last = *before;
        }
        us.insert(0, us[0]);
        longer.insert(0, 1.0);
        line(curve, &us, &longer, "%{x:.4~s}s: %{y:.3~%} of all took longer")
    });
    let tail = Figure::new(
        &format!("{id}-tail"),
        "Latency, the tail",
        html! {
            "The share of requests that took longer than the time on the horizontal axis. Both axes are logarithmic: "
            "p99.9 is at 0.1%, p99.99 at 0.01%. A curve that falls steeply has no tail. A shelf is a group of requests "
            "that were delayed by something slow, such as an erase. The curve ends at the slowest request."
        },
        tail.collect(),
        json!({ "showlegend": true, "xaxis": log_axis("latency", times()), "yaxis": log_share_axis("share that took longer") }),
    );
    vec![cdf, tail]
}

/// Returns times in seconds, and the shares of the requests that took longer.
fn shares(points: &LatencyCurve) -> (Vec<f64>, Vec<f64>) {
    let count = points.requests.max(1) as f64;
    // A logarithmic axis has no 0. Distributions have a resolution of 1 ns.
    let us = points.us.iter().map(|us| seconds(us.max(0.001))).collect();
    (us, points.longer.iter().map(|longer| *longer as f64 / count).collect())
}

fn line(curve: &Curve, us: &[f64], shares: &[f64], hover: &str) -> Value {
    let mut options = curve.style.line();
    options["line"]["shape"] = "hv".into();
    let hover = format!("{hover}<extra>{}</extra>", crate::figure::plain(&curve.name));
    trace(&curve.name, options, json!({ "x": us, "y": shares, "hovertemplate": hover }))
}

fn no_longer_axis() -> Value {
    let mut axis = axis("share that took no longer");
    axis["range"] = json!([0, 1.02]);
    axis["tickformat"] = ".0%".into();
    axis
}
