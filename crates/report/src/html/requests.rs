//! Request section: sizes, inter-arrival times, and channels used.

use floatgate_core::summary::{ChannelCounts, IntervalCounts, SizeCounts, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Style, axis, trace};
use crate::number::{bytes, nanoseconds};
use crate::page::Page;
use crate::words::words;

/// Adds the section on requests.
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
        trace(&words(&of.operation), Style::of_operation(&of.operation).bars(), more)
    });
    let caption = html! {
        "Requests by size. Each class contains the sizes above the previous class, up to its label: the class 4 KiB "
        "contains sizes above 2 KiB and up to 4 KiB (compare Yoo et al. 2013, Figure 10)."
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
        "Requests by the time since the previous request, over all streams. Each class starts at its label and ends at "
        "twice that time; 0 ns contains requests that arrived together. A peak at the left is a burst. In a closed "
        "loop (a job with an iodepth), these times depend on the device, not on the workload."
    };
    let layout = json!({ "bargap": 0.05, "xaxis": category("time since the previous request, from"),
        "yaxis": axis("requests") });
    let bars = vec![trace("requests", Style::of(0).bars(), more)];
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
        trace(&words(&of.operation), Style::of_operation(&of.operation).bars(), more)
    });
    let caption = html! {
        "Number of channels used by a request, as shares of the requests of each operation (Yoo et al. 2013, VSSIM, "
        "Figure 11). Requests at 0 were completed by the controller without the flash. Small requests use one channel "
        "on any device. If large requests use few channels, the allocation distributes them poorly."
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
