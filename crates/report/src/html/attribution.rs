//! Latency breakdown section: breakdowns of all requests, and of slow requests.

use floatgate_core::metrics::attribution::Part;
use floatgate_core::metrics::summary::{Attribution, Requests, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Style, axis, plain, seconds, time_axis, trace};
use crate::number::time;
use crate::page::Page;
use crate::words::{self, words};

/// Latency breakdown of a group of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name of the group: stream, operation and percentile.
    pub name: String,
    /// Number of requests.
    pub requests: u64,
    /// Parts with their times in microseconds, in the order in which they occur in a request.
    pub parts: [(&'static str, f64); Part::COUNT],
}

/// Maximum number of bars in a figure, which then fits on a printed page.
const BARS: usize = 24;

/// Maximum number of figures of streams, because the number of streams is unlimited.
const FIGURES: usize = 4;

/// Adds the section, unless no request has a latency breakdown.
pub fn section(page: &mut Page, summary: &Summary) {
    let groups = groups("", &summary.requests);
    if groups.is_empty() {
        return;
    }
    let caption = html! {
        "The parts of the latency, on average: over all requests, and over those whose latency is near a percentile. "
        "The parts of a bar add up to its latency. Compare a bar of slow requests with the bar of all requests: the "
        "part that grows is what makes them slow. Parts follow the critical path of a request: time in which it "
        "waits for several things counts for the one that ends last. " (meanings(summary.config.merges_blocks()))
    };
    page.section("attribution", "Where the time goes");
    let title = "Where the time goes: all requests and slow ones";
    page.figures(vec![bars("attribution", title, caption, &groups, summary.config.merges_blocks())]);
    if summary.streams.len() > 1 {
        of_streams(page, summary);
    }
}

/// Returns the name of a part. `merges` is true if the mapping scheme merges blocks.
fn name_of(part: Part, merges: bool) -> String {
    if merges && part == Part::Gc { words::reclaim(true).to_owned() } else { words(part.name()) }
}

/// Returns the meanings of the parts.
fn meanings(merges: bool) -> String {
    let (name, reclaim) = (name_of(Part::Gc, merges), words::reclaim(merges));
    let room = if merges { "log block or a free block" } else { "free block" };
    format!(
        "host queue: waiting for a slot in the device's queue. link: the host link, including waiting for it. buffer: \
     waiting for space in the controller's memory. order: waiting for an older write of the same unit. map fetch: \
     waiting for the map entry, which holds the physical address. die, channel: waiting for dies and channels held by \
     other host requests. {name}: waiting for a {room}, or for a die or channel held by {reclaim}. rmw: the read that \
     completes a partial write. bus, cell: the request's own transfers, and the flash cells' work for it."
    )
}

/// Adds the breakdowns of each stream, in several figures if necessary.
fn of_streams(page: &mut Page, summary: &Summary) {
    let groups: Vec<Group> =
        summary.streams.iter().flat_map(|stream| self::groups(&stream.name, &stream.requests)).collect();
    for (index, groups) in groups.chunks(BARS).take(FIGURES).enumerate() {
        let caption = html! {
            "The same breakdowns by stream, as shares of the latency. Each stream has percentiles of its own. The "
            "label of a bar contains its mean latency, so that fast and slow streams can be compared."
        };
        let id = format!("attribution-streams-{}", index + 1);
        page.figures(vec![shares(
            &id,
            "Where the time goes, by stream",
            caption,
            groups,
            summary.config.merges_blocks(),
        )]);
    }
    if groups.len() > BARS * FIGURES {
        page.add(&html! { p.note { "The breakdowns of further streams are in summary.json." } });
    }
}

/// Returns the groups of all requests, or of a stream: for each operation, all of its requests and the slow ones.
pub fn groups(stream: &str, requests: &Requests) -> Vec<Group> {
    let there: Vec<_> = requests.by_operation().into_iter().filter(|(_, of)| of.count > 0).collect();
    let all = (there.len() > 1 && stream.is_empty()).then_some(("all", &requests.all));
    let mut groups = Vec::new();
    for (operation, of) in there.into_iter().chain(all) {
        let Some(Attribution { mean, p50, p99, p99_9 }) = &of.attribution else { continue };
        for (level, parts) in [("", mean), (" near p50", p50), (" near p99", p99), (" near p99.9", p99_9)] {
            let stream = if stream.is_empty() { String::new() } else { format!("{stream}: ") };
            let name = format!("{stream}{}{level}", words(operation));
            groups.push(Group { name, requests: parts.requests, parts: parts.by_name() });
        }
    }
    groups
}

impl Group {
    /// Returns the mean latency, in microseconds.
    fn latency(&self) -> f64 {
        self.parts.iter().map(|(_, us)| us).sum()
    }

    /// Returns the mean of several groups, weighted by their number of requests.
    pub fn pooled(name: &str, groups: &[&Group]) -> Group {
        let requests: u64 = groups.iter().map(|group| group.requests).sum();
        let mean = |part: usize| {
            let sum: f64 = groups.iter().map(|group| group.parts[part].1 * group.requests as f64).sum();
            sum / requests.max(1) as f64
        };
        let parts = Part::ALL.map(|part| (part.name(), mean(part as usize)));
        Group { name: name.to_owned(), requests, parts }
    }
}

/// Returns a figure with a bar per group, as long as its latency.
/// `merges` is true if the mapping scheme merges blocks.
pub fn bars(id: &str, title: &str, caption: maud::Markup, groups: &[Group], merges: bool) -> Figure {
    let labels: Vec<String> = groups.iter().map(|group| plain(&group.name)).collect();
    let of = |group: &Group, part: usize| seconds(group.parts[part].1);
    figure(id, title, caption, (groups, &labels, merges), (&of, "%{x:.4~s}s", time_axis("time")))
}

/// Returns a figure with bars of equal length, whose parts are shares. The labels contain the latencies.
fn shares(id: &str, title: &str, caption: maud::Markup, groups: &[Group], merges: bool) -> Figure {
    let label = |group: &Group| plain(&format!("{}, {}", group.name, time(group.latency())));
    let labels: Vec<String> = groups.iter().map(label).collect();
    let of = |group: &Group, part: usize| group.parts[part].1 / group.latency().max(f64::MIN_POSITIVE);
    let mut x = axis("share of the latency");
    x["tickformat"] = ".0%".into();
    x["range"] = json!([0, 1]);
    figure(id, title, caption, (groups, &labels, merges), (&of, "%{x:.1%}, %{customdata:.4~s}s", x))
}

/// Length of a part of a bar, its hover text, and the axis of lengths.
type Lengths<'a> = (&'a dyn Fn(&Group, usize) -> f64, &'a str, Value);

fn figure(id: &str, title: &str, caption: maud::Markup, bars: (&[Group], &[String], bool), lengths: Lengths) -> Figure {
    let ((groups, labels, merges), (length, hover, x)) = (bars, lengths);
    let there = Part::ALL.iter().enumerate().filter(|(part, _)| groups.iter().any(|group| group.parts[*part].1 > 0.0));
    let traces = there.map(|(index, part)| {
        let x: Vec<f64> = groups.iter().map(|group| length(group, index)).collect();
        let times: Vec<f64> = groups.iter().map(|group| seconds(group.parts[index].1)).collect();
        let more = json!({ "x": x, "y": labels, "customdata": times, "orientation": "h", "hovertemplate": hover });
        trace(&name_of(*part, merges), Style::of(index).bars(), more)
    });
    let y = json!({ "autorange": "reversed", "type": "category" });
    let layout = json!({ "barmode": "stack", "showlegend": true, "xaxis": x, "yaxis": y });
    let height = 130 + 34 * groups.len() as u32;
    Figure::new(id, title, caption, traces.collect(), layout).wide().high(height.max(260))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_pooled_by_their_requests() {
        let group = |requests, cell, die| {
            let us = |part| {
                if part == Part::Cell {
                    cell
                } else if part == Part::Die {
                    die
                } else {
                    0.0
                }
            };
            Group { name: "read".to_owned(), requests, parts: Part::ALL.map(|part| (part.name(), us(part))) }
        };
        // 3 requests of 10 us and 1 of 50 us take 80 us in total. The waits take 4 us in total.
        let pooled = Group::pooled("reads", &[&group(3, 10.0, 0.0), &group(1, 50.0, 4.0)]);
        assert_eq!((pooled.requests, pooled.latency()), (4, 21.0));
        assert_eq!(pooled.parts[Part::Cell as usize], ("cell", 20.0));
        assert_eq!(pooled.parts[Part::Die as usize], ("die", 1.0));
        let one = group(5, 10.0, 2.0);
        assert_eq!(Group::pooled("read", &[&one]), one);
    }
}
