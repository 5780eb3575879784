//! Latency breakdown section: breakdowns of all requests, and of slow requests.

use floatgate_core::results::Part;
use floatgate_core::summary::{Attribution, Requests, Summary};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::figure::{Figure, Style, axis, plain, seconds, time_axis, trace, with};
use crate::number::{percent, time};
use crate::page::Page;
use crate::words::{self, words};

/// Groups of requests of an operation: all of them, and those whose latency is near a percentile.
const LEVELS: [&str; 4] = ["all requests", "requests near p50", "requests near p99", "requests near p99.9"];

/// Latency breakdown of a group of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Stream and operation.
    pub name: String,
    /// Index in [`LEVELS`].
    pub level: usize,
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
    let merges = summary.config.merges_blocks();
    page.section("attribution", "Where the time goes");
    page.add(&largest_causes(&groups, merges));
    if groups.iter().all(|group| group.latency() == 0.0) {
        return;
    }
    let caption = html! {
        "The parts of the latency, on average. Each panel has its own scale. The parts of a bar add up to its latency. "
        "Compare a bar of slow requests with the bar of all requests: the part that grows is what makes them slow. Parts "
        "follow the critical path of a request: time in which it waits for several things counts for the one that ends "
        "last. The table explains the parts."
    };
    page.figures(vec![bars(
        "attribution",
        "Where the time goes: all requests and slow ones",
        caption,
        &groups,
        merges,
    )]);
    page.add(&causes(&groups, merges));
    if summary.streams.len() > 1 {
        of_streams(page, summary);
    }
}

/// Returns the name of a part. `merges` is true if the mapping scheme merges blocks.
fn name_of(part: Part, merges: bool) -> String {
    if merges && part == Part::Gc { words::reclaim(true).to_owned() } else { words(part.name()) }
}

/// Returns a sentence for each operation: its largest cause of latency, of all requests and of the slowest.
fn largest_causes(groups: &[Group], merges: bool) -> Markup {
    let mut names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    names.dedup();
    let of = |name: &str, level: usize| {
        groups.iter().find(|group| group.name == name && group.level == level && group.latency() > 0.0)
    };
    let cause = |group: &Group, when: &str| {
        let (part, share) = group.largest();
        let what = words::part(part, merges);
        html! { b { (time(group.latency())) } " " (when) ", of which " (percent(Some(share))) " is " (what) }
    };
    let (timed, at_once): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| (0..LEVELS.len()).any(|level| of(name, level).is_some()));
    html! {
        ul.causes {
            @for name in timed {
                li {
                    b { (name) } ": "
                    @if let Some(all) = of(name, 0) { (cause(all, "on average")) }
                    @if let Some(slow) = of(name, LEVELS.len() - 1) { "; " (cause(slow, "near p99.9")) }
                    "."
                }
            }
            @if !at_once.is_empty() { li { (at_once.join(", ")) ": completed at once." } }
        }
    }
}

/// Returns the meaning of a part.
fn meaning(part: Part, merges: bool) -> String {
    let text = match part {
        Part::HostQueue => "waiting for a slot in the device's queue",
        Part::Link => "the host link, including waiting for it",
        Part::Firmware => "the controller's firmware, including waiting for a core",
        Part::Throttle => "delay of host writes, because few blocks are free",
        Part::Buffer => "the controller's memory: waiting for space in it, and access",
        Part::Order => "waiting for an older write of the same unit",
        Part::MapFetch => "waiting for the map entry, which holds the physical address",
        Part::Fill => "waiting for other writes that fill the same program",
        Part::Die => "waiting for a die held by other host requests",
        Part::Channel => "waiting for a channel held by other host requests",
        Part::Gc if merges => "waiting for a log block or a free block, or for a die or channel held by merges",
        Part::Gc => "waiting for a free block, or for a die or channel held by garbage collection",
        Part::Rmw => "the read that completes a partial write",
        Part::Bus => "the request's own transfers",
        Part::Cell => "the work of the flash cells for the request",
        Part::Ecc => "error correction: decoding, and reads that were repeated",
        Part::Rebuild => "the rebuild of an uncorrectable page from its stripe",
    };
    text.to_owned()
}

/// Returns the parts that occur in any of these groups.
fn occurring(groups: &[Group]) -> impl Iterator<Item = Part> {
    Part::ALL.into_iter().filter(|part| groups.iter().any(|group| group.parts[*part as usize].1 > 0.0))
}

/// Returns the table of parts: their meaning, and their shares of the latency of all operations together.
fn causes(groups: &[Group], merges: bool) -> Markup {
    let last = groups.last().map(|group| group.name.as_str());
    let all: Vec<&Group> =
        groups.iter().filter(|group| Some(group.name.as_str()) == last && group.latency() > 0.0).collect();
    let levels: Vec<&str> = all.iter().map(|group| LEVELS[group.level].trim_start_matches("requests ")).collect();
    html! {
        div.scroll { table.stack {
            caption { "Share of each part in the latency" @if let Some(name) = last { " (" (name) ")" } }
            tr { th.text { "part" } th.text { "meaning" } @for level in &levels { th { (level) } } }
            @for part in occurring(groups) {
                tr {
                    td { (name_of(part, merges)) }
                    td.text { (meaning(part, merges)) }
                    @for (group, level) in all.iter().zip(&levels) {
                        td data-name=(level) { (percent(Some(group.parts[part as usize].1 / group.latency()))) }
                    }
                }
            }
        } }
    }
}

/// Adds the breakdowns of each stream, in several figures if necessary.
fn of_streams(page: &mut Page, summary: &Summary) {
    let groups = summary.streams.iter().flat_map(|stream| self::groups(&stream.name, &stream.requests));
    let groups: Vec<Group> = groups.filter(|group| group.latency() > 0.0).collect();
    for (index, groups) in groups.chunks(BARS).take(FIGURES).enumerate() {
        let caption = html! {
            "The same breakdowns by stream, as shares of the latency. Each stream has percentiles of its own. The "
            "label of a bar contains its mean latency, so that fast and slow streams can be compared."
        };
        let id = format!("attribution-streams-{}", index + 1);
        let merges = summary.config.merges_blocks();
        page.figures(vec![shares(&id, "Where the time goes, by stream", caption, groups, merges)]);
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
        for (level, parts) in [mean, p50, p99, p99_9].into_iter().enumerate() {
            let stream = if stream.is_empty() { String::new() } else { format!("{stream}: ") };
            let name = format!("{stream}{}", words(operation));
            groups.push(Group { name, level, requests: parts.requests, parts: parts.by_name() });
        }
    }
    groups
}

impl Group {
    /// Returns the mean latency, in microseconds.
    fn latency(&self) -> f64 {
        self.parts.iter().map(|(_, us)| us).sum()
    }

    /// Returns the part that takes most of the latency, and its share.
    fn largest(&self) -> (Part, f64) {
        let of = |part: Part| self.parts[part as usize].1;
        let largest = Part::ALL.into_iter().max_by(|one, other| of(*one).total_cmp(&of(*other)));
        let largest = largest.unwrap_or(Part::Cell);
        (largest, of(largest) / self.latency().max(f64::MIN_POSITIVE))
    }

    /// Returns the mean of several groups, weighted by their number of requests.
    pub fn pooled(name: &str, groups: &[&Group]) -> Group {
        let requests: u64 = groups.iter().map(|group| group.requests).sum();
        let mean = |part: usize| {
            let sum: f64 = groups.iter().map(|group| group.parts[part].1 * group.requests as f64).sum();
            sum / requests.max(1) as f64
        };
        let parts = Part::ALL.map(|part| (part.name(), mean(part as usize)));
        Group { name: name.to_owned(), level: groups.first().map_or(0, |group| group.level), requests, parts }
    }
}

/// Heights in CSS pixels: of a bar, of the title and the axis of a panel, and of everything around the panels.
const BAR: u32 = 30;
const AROUND_PANEL: u32 = 58;
const AROUND_PANELS: u32 = 70;

/// Returns a figure with a panel for all requests and one for each percentile. A panel has a bar per group that takes
/// time, as long as its latency. `merges` is true if the mapping scheme merges blocks.
pub fn bars(id: &str, title: &str, caption: Markup, groups: &[Group], merges: bool) -> Figure {
    let panels = (0..LEVELS.len())
        .map(|level| groups.iter().filter(|group| group.level == level && group.latency() > 0.0).collect::<Vec<_>>());
    let panels: Vec<Vec<&Group>> = panels.filter(|panel| !panel.is_empty()).collect();
    let height_of = |panel: &[&Group]| BAR * panel.len() as u32 + AROUND_PANEL;
    let height: u32 = panels.iter().map(|panel| height_of(panel)).sum();
    let (mut traces, mut titles, mut layout) =
        (Vec::new(), Vec::new(), json!({ "barmode": "stack", "showlegend": true }));
    let mut named: Vec<Part> = Vec::new();
    let mut top = 1.0;
    for (index, panel) in panels.iter().enumerate() {
        let number = if index == 0 { String::new() } else { (index + 1).to_string() };
        let share = |pixels: u32| f64::from(pixels) / f64::from(height);
        // The title is above the bars, and the axis below them.
        let (end, start) = (top - share(AROUND_PANEL / 2), top - share(AROUND_PANEL / 2 + BAR * panel.len() as u32));
        top -= share(height_of(panel));
        let mut x = time_axis("");
        x["anchor"] = format!("y{number}").into();
        layout[format!("xaxis{number}")] = x;
        layout[format!("yaxis{number}")] =
            json!({ "autorange": "reversed", "type": "category", "domain": [start, end] });
        titles.push(json!({ "text": format!("<b>{}</b>", LEVELS[panel[0].level]), "showarrow": false, "xref": "paper",
            "yref": "paper", "x": 0, "y": end, "xanchor": "left", "yanchor": "bottom" }));
        let owned: Vec<Group> = panel.iter().map(|group| (*group).clone()).collect();
        for part in occurring(&owned) {
            let new = !named.contains(&part);
            named.push(part);
            let y: Vec<String> = panel.iter().map(|group| plain(&group.name)).collect();
            let x: Vec<f64> = panel.iter().map(|group| seconds(group.parts[part as usize].1)).collect();
            let more = json!({ "x": x, "y": y, "xaxis": format!("x{number}"), "yaxis": format!("y{number}"),
                "showlegend": new, "hovertemplate": hover(part, merges, "%{x:.4~s}s") });
            traces.push(bar(part, merges, more));
        }
    }
    layout["annotations"] = titles.into();
    Figure::new(id, title, caption, traces, layout).wide().high(height + AROUND_PANELS)
}

/// Returns a bar of a part.
fn bar(part: Part, merges: bool, more: Value) -> Value {
    let about = json!({ "orientation": "h", "legendgroup": part.name(), "meta": meaning(part, merges) });
    trace(&name_of(part, merges), Style::of(part as usize).bars(), with(about, more))
}

/// Returns the text that is shown when a pointer is over a part of a bar.
fn hover(part: Part, merges: bool, value: &str) -> String {
    format!("%{{y}}: {value}<br>{}<extra>{}</extra>", plain(&meaning(part, merges)), plain(&name_of(part, merges)))
}

/// Returns a figure with bars of equal length, whose parts are shares. The labels contain the latencies.
fn shares(id: &str, title: &str, caption: Markup, groups: &[Group], merges: bool) -> Figure {
    let label = |group: &Group| match group.level {
        0 => plain(&format!("{}, {}", group.name, time(group.latency()))),
        level => plain(&format!(
            "{}, {}, {}",
            group.name,
            LEVELS[level].trim_start_matches("requests "),
            time(group.latency())
        )),
    };
    let labels: Vec<String> = groups.iter().map(label).collect();
    let mut x = axis("share of the latency");
    x["tickformat"] = ".0%".into();
    x["range"] = json!([0, 1]);
    let traces = occurring(groups).map(|part| {
        let of = |group: &Group| group.parts[part as usize].1;
        let shares: Vec<f64> = groups.iter().map(|group| of(group) / group.latency().max(f64::MIN_POSITIVE)).collect();
        let times: Vec<f64> = groups.iter().map(|group| seconds(of(group))).collect();
        let hover = hover(part, merges, "%{x:.1%}, %{customdata:.4~s}s");
        let more = json!({ "x": shares, "y": labels, "customdata": times, "hovertemplate": hover });
        bar(part, merges, more)
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
            Group { name: "read".to_owned(), level: 0, requests, parts: Part::ALL.map(|part| (part.name(), us(part))) }
        };
        // 3 requests of 10 us and 1 of 50 us take 80 us in total. The waits take 4 us in total.
        let pooled = Group::pooled("reads", &[&group(3, 10.0, 0.0), &group(1, 50.0, 4.0)]);
        assert_eq!((pooled.requests, pooled.latency()), (4, 21.0));
        assert_eq!(pooled.parts[Part::Cell as usize], ("cell", 20.0));
        assert_eq!(pooled.parts[Part::Die as usize], ("die", 1.0));
        let one = group(5, 10.0, 2.0);
        assert_eq!(Group::pooled("read", &[&one]), one);
    }

    #[test]
    fn bars_without_time_are_left_out() {
        let group = |name: &str, level: usize, cell: f64| {
            let parts = Part::ALL.map(|part| (part.name(), if part == Part::Cell { cell } else { 0.0 }));
            Group { name: name.to_owned(), level, requests: 1, parts }
        };
        // Flushes take no time, and half of the writes complete at once.
        let groups = [
            group("write", 0, 5.0),
            group("write", 1, 0.0),
            group("write", 2, 500.0),
            group("flush", 0, 0.0),
            group("flush", 2, 0.0),
        ];
        let figure = bars("attribution", "", html! {}, &groups, false);
        let traces = figure.data.as_array().unwrap();
        let drawn: Vec<_> = traces.iter().map(|trace| (&trace["y"], &trace["x"], &trace["xaxis"])).collect();
        let write = json!(["write"]);
        let of = [json!([5e-6]), json!([5e-4])];
        assert_eq!(drawn, [(&write, &of[0], &json!("x")), (&write, &of[1], &json!("x2"))]);
        assert_eq!((&traces[0]["showlegend"], &traces[1]["showlegend"]), (&json!(true), &json!(false)));
        let text = largest_causes(&groups, false).0;
        assert!(text.contains("5.000 us</b> on average, of which 100.0 % is the flash cells' work for it"), "{text}");
        assert!(text.contains("flush: completed at once."), "{text}");
    }
}
