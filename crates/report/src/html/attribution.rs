//! Where the time of requests went: of all, and of the slow ones.

use floatgate_core::metrics::attribution::Part;
use floatgate_core::metrics::summary::{Attribution, Requests, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Look, axis, plain, seconds, time_axis, trace};
use crate::number::time;
use crate::page::Page;
use crate::words::words;

/// What the time of a group of requests went into.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Whose requests, and which of them.
    pub name: String,
    /// How many they are.
    pub requests: u64,
    /// The parts with their times in microseconds, in the order in which a request meets them.
    pub parts: [(&'static str, f64); Part::COUNT],
}

/// The most bars of a figure, which then fits a page of paper.
const BARS: usize = 24;

/// The most figures of streams, which are without bound.
const FIGURES: usize = 4;

/// The section; none where no request was attributed.
pub fn section(page: &mut Page, summary: &Summary) {
    let groups = groups("", &summary.requests);
    if groups.is_empty() {
        return;
    }
    let caption = html! {
        "What the time of requests went into, on average: of all requests, and of those whose latency is near a "
        "percentile. The parts of a bar add up to its latency. Compare a bar of slow requests with that of all: "
        "the part that grows is what makes them slow. Parts are along the critical path of a request: time in which it "
        "waits for several things counts for the one that ends last. " (meanings())
    };
    page.section("attribution", "Where the time goes");
    page.figures(vec![bars("attribution", "Where the time goes: all requests and slow ones", caption, &groups)]);
    if summary.streams.len() > 1 {
        of_streams(page, summary);
    }
}

/// What the parts mean.
fn meanings() -> &'static str {
    "host queue: waiting for a place in the device's queue. link: the host link, waiting for it included. buffer: waiting \
     for room in the controller's memory. order: waiting for an older write of the same unit. map fetch: waiting \
     for the entry of the map that tells the place. die, channel: waiting for \
     what other requests of the host hold. cleaning: waiting for a free block, or for what cleaning holds. rmw: the read \
     that completes a partial write. bus, cell: its own transfers, and the flash cells' work for it."
}

/// The same for each stream, over several figures where one does not hold them.
fn of_streams(page: &mut Page, summary: &Summary) {
    let groups: Vec<Group> =
        summary.streams.iter().flat_map(|stream| self::groups(&stream.name, &stream.requests)).collect();
    for (index, groups) in groups.chunks(BARS).take(FIGURES).enumerate() {
        let caption = html! {
            "The same by stream, each of which has percentiles of its own, as shares of the latency: what it is on "
            "average stands behind the name. Fast streams can so be read beside slow ones."
        };
        let id = format!("attribution-streams-{}", index + 1);
        page.figures(vec![shares(&id, "Where the time goes, by stream", caption, groups)]);
    }
    if groups.len() > BARS * FIGURES {
        page.add(&html! { p.note { "Those of further streams are in summary.json." } });
    }
}

/// The groups of a stream's requests, or of all: for each operation all of them, and the slow ones.
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
    /// The mean latency, in microseconds.
    fn latency(&self) -> f64 {
        self.parts.iter().map(|(_, us)| us).sum()
    }

    /// The mean of several groups of this name, each counted by its requests.
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

/// Bars of groups, one above the other, as long as their latencies.
pub fn bars(id: &str, title: &str, caption: maud::Markup, groups: &[Group]) -> Figure {
    let labels: Vec<String> = groups.iter().map(|group| plain(&group.name)).collect();
    let of = |group: &Group, part: usize| seconds(group.parts[part].1);
    figure(id, title, caption, (groups, &labels), (&of, "%{x:.4~s}s", time_axis("time")))
}

/// The same as shares: each bar is as long as the others, and says in its label how long its latency is.
fn shares(id: &str, title: &str, caption: maud::Markup, groups: &[Group]) -> Figure {
    let label = |group: &Group| plain(&format!("{}, {}", group.name, time(group.latency())));
    let labels: Vec<String> = groups.iter().map(label).collect();
    let of = |group: &Group, part: usize| group.parts[part].1 / group.latency().max(f64::MIN_POSITIVE);
    let mut x = axis("share of the latency");
    x["tickformat"] = ".0%".into();
    x["range"] = json!([0, 1]);
    figure(id, title, caption, (groups, &labels), (&of, "%{x:.1%}, %{customdata:.4~s}s", x))
}

/// What a bar's part is as a length, how that is told when hovered over, and its axis.
type Lengths<'a> = (&'a dyn Fn(&Group, usize) -> f64, &'a str, Value);

fn figure(id: &str, title: &str, caption: maud::Markup, bars: (&[Group], &[String]), lengths: Lengths) -> Figure {
    let ((groups, labels), (length, hover, x)) = (bars, lengths);
    let there = Part::ALL.iter().enumerate().filter(|(part, _)| groups.iter().any(|group| group.parts[*part].1 > 0.0));
    let traces = there.map(|(index, part)| {
        let x: Vec<f64> = groups.iter().map(|group| length(group, index)).collect();
        let times: Vec<f64> = groups.iter().map(|group| seconds(group.parts[index].1)).collect();
        let more = json!({ "x": x, "y": labels, "customdata": times, "orientation": "h", "hovertemplate": hover });
        trace(&words(part.name()), Look::of(index).bars(), more)
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
        // 3 requests of 10 us and 1 of 50 us: 80 us in 4; and of waiting 4 us in 4.
        let pooled = Group::pooled("reads", &[&group(3, 10.0, 0.0), &group(1, 50.0, 4.0)]);
        assert_eq!((pooled.requests, pooled.latency()), (4, 21.0));
        assert_eq!(pooled.parts[Part::Cell as usize], ("cell", 20.0));
        assert_eq!(pooled.parts[Part::Die as usize], ("die", 1.0));
        let one = group(5, 10.0, 2.0);
        assert_eq!(Group::pooled("read", &[&one]), one);
    }
}
