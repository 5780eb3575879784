//! What the requests were like.

use floatgate_core::metrics::summary::{ChannelCounts, IntervalCounts, SizeCounts, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Look, axis, trace};
use crate::number::{bytes, nanoseconds};
use crate::page::Page;
use crate::words::words;

/// The section on requests.
pub fn section(page: &mut Page, summary: &Summary) {
    let distributions = &summary.distributions;
    let figures = [
        distributions.size.as_deref().and_then(sizes),
        distributions.inter_arrival.as_ref().and_then(intervals),
        distributions.channels.as_deref().and_then(channels),
    ];
    let figures: Vec<Figure> = figures.into_iter().flatten().collect();
    if figures.is_empty() {
        return;
    }
    page.section("requests", "Requests");
    page.figures(figures);
}

fn sizes(counts: &[SizeCounts]) -> Option<Figure> {
    let mut classes: Vec<u64> = counts.iter().flat_map(|of| of.up_to_bytes.iter().copied()).collect();
    classes.sort_unstable();
    classes.dedup();
    let labels: Vec<String> = classes.iter().map(|size| bytes(*size)).collect();
    let traces = counts.iter().map(|of| {
        let count = |class: &u64| of.up_to_bytes.iter().position(|size| size == class).map_or(0, |at| of.requests[at]);
        let y: Vec<u64> = classes.iter().map(count).collect();
        let more = json!({ "x": labels, "y": y, "hovertemplate": "up to %{x}: %{y:,d} requests" });
        trace(&words(&of.operation), Look::of_operation(&of.operation).bars(), more)
    });
    let caption = html! {
        "Requests by size. Each class holds the sizes up to the one named, above that of the class before: 4 KiB is more "
        "than 2 KiB and up to 4 KiB (compare Yoo et al. 2013, Figure 10)."
    };
    let layout =
        json!({ "barmode": "group", "showlegend": true, "xaxis": category("size, up to"), "yaxis": axis("requests") });
    (!classes.is_empty())
        .then(|| Figure::new("request-sizes", "Request sizes", caption, traces.collect(), layout).high(300))
}

fn intervals(counts: &IntervalCounts) -> Option<Figure> {
    let labels: Vec<String> = counts.from_ns.iter().map(|ns| nanoseconds(*ns as f64)).collect();
    let more = json!({ "x": labels, "y": counts.requests, "hovertemplate": "from %{x}: %{y:,d} requests" });
    let caption = html! {
        "Requests by the time since the one before, over all streams. Each class begins at the time named and ends at "
        "twice that; 0 ns holds those that arrived together. A heap at the left is a burst; in a closed loop (a job "
        "with an iodepth) these times are the device's, not the workload's."
    };
    let layout = json!({ "bargap": 0.05, "xaxis": category("time since the request before, from"),
        "yaxis": axis("requests") });
    let bars = vec![trace("requests", Look::of(0).bars(), more)];
    let figure = || Figure::new("inter-arrival", "Time between requests", caption, bars, layout).high(300);
    (!labels.is_empty()).then(figure)
}

fn channels(counts: &[ChannelCounts]) -> Option<Figure> {
    let most = counts.iter().map(|of| of.requests.len()).max().filter(|most| *most > 0)?;
    let labels: Vec<String> = (0..most).map(|channels| channels.to_string()).collect();
    let traces = counts.iter().map(|of| {
        let total = of.requests.iter().sum::<u64>().max(1) as f64;
        let share = |place: usize| of.requests.get(place).map_or(0.0, |count| *count as f64 / total);
        let y: Vec<f64> = (0..most).map(share).collect();
        let more = json!({ "x": labels, "y": y, "hovertemplate": "%{x} channels: %{y:.2%}" });
        trace(&words(&of.operation), Look::of_operation(&of.operation).bars(), more)
    });
    let caption = html! {
        "Channels that a request used, as shares of the requests of each operation: Figure 11 of Yoo et al. 2013 "
        "(VSSIM). At 0 are those that the controller answered without the flash. Small requests use one channel "
        "whatever the device; large ones that use few are badly spread by the allocation."
    };
    let mut y = axis("share of requests");
    y["tickformat"] = ".0%".into();
    let layout = json!({ "barmode": "group", "showlegend": true, "xaxis": category("channels used"), "yaxis": y });
    Some(Figure::new("channels-used", "Channels used by a request", caption, traces.collect(), layout).high(300))
}

fn category(title: &str) -> Value {
    let mut axis = axis(title);
    axis["type"] = "category".into();
    axis
}
