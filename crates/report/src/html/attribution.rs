//! Where the time of requests went: of all, and of the slow ones.

use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Look, axis, plain, trace, words};
use crate::page::Page;

/// What the time of a group of requests went into.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Whose requests: an operation, or a stream's.
    pub name: String,
    /// Which of them: `mean`, `p50`, `p99`, `p99_9`.
    pub level: String,
    /// The parts with their times in microseconds, in the order in which a request meets them.
    pub parts: Vec<(String, f64)>,
}

/// The levels of an attribution, and what they are called.
const LEVELS: [(&str, &str); 4] = [("mean", "all"), ("p50", "near p50"), ("p99", "near p99"), ("p99_9", "near p99.9")];

/// The most bars of a figure: streams are without bound.
const BARS: usize = 64;

/// The section; none where no request was attributed.
pub fn section(page: &mut Page, attribution: &Value) {
    let mut groups = groups(attribution);
    if groups.is_empty() {
        return;
    }
    groups.truncate(BARS);
    let names: Vec<String> = groups.iter().map(label).collect();
    let caption = html! {
        "What the time of requests went into, on average, in microseconds: of all requests, and of those whose latency "
        "is near a percentile. The parts of a bar add up to its latency. Compare a bar of slow requests with that of all: "
        "the part that grows is what makes them slow. Parts are along the critical path of a request: "
        "time in which it waits for several things counts for the one that "
        "ends last."
    };
    page.section("attribution", "Where the time goes");
    page.figures(vec![bars(
        "attribution",
        "Where the time goes: all requests and slow ones",
        caption,
        &groups,
        &names,
    )]);
}

/// All groups that an attribution tells of, at any depth: of operations, and of streams.
pub fn groups(attribution: &Value) -> Vec<Group> {
    let mut found = Vec::new();
    collect(attribution, "", &mut found);
    found
}

fn collect(value: &Value, name: &str, found: &mut Vec<Group>) {
    let of_levels = LEVELS.iter().filter_map(|(key, _)| Some((*key, parts(&value[*key])?)));
    let before = found.len();
    found.extend(of_levels.map(|(level, parts)| Group { name: words(name), level: level.to_owned(), parts }));
    if found.len() > before {
        return;
    }
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}: {key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| collect(value, &below(key), found)),
        Value::Array(items) => {
            for item in items {
                collect(item, &below(item["name"].as_str().unwrap_or_default()), found);
            }
        }
        _ => {}
    }
}

/// The parts of a level: its own numbers, or those under `parts`.
fn parts(level: &Value) -> Option<Vec<(String, f64)>> {
    let parts = level.get("parts").unwrap_or(level).as_object()?;
    let parts: Vec<_> = parts.iter().filter_map(|(name, us)| Some((name.clone(), us.as_f64()?))).collect();
    (!parts.is_empty()).then_some(parts)
}

/// What a bar is called.
pub fn label(group: &Group) -> String {
    let level = LEVELS.iter().find(|(key, _)| *key == group.level).map_or(group.level.as_str(), |(_, name)| name);
    format!("{} {level}", plain(&group.name))
}

/// Bars of groups, one above the other.
pub fn bars(id: &str, title: &str, caption: maud::Markup, groups: &[Group], labels: &[String]) -> Figure {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in groups.iter().flat_map(|group| &group.parts) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let time = |group: &Group, name: &str| group.parts.iter().find(|(part, _)| part == name).map_or(0.0, |(_, us)| *us);
    let traces = names.iter().enumerate().filter(|(_, name)| groups.iter().any(|group| time(group, name) > 0.0));
    let traces = traces.map(|(index, name)| {
        let x: Vec<f64> = groups.iter().map(|group| time(group, name)).collect();
        let more = json!({ "x": x, "y": labels, "orientation": "h", "hovertemplate": "%{x:.4~g} us" });
        trace(&words(name), Look::of(index).bars(), more)
    });
    let y = json!({ "autorange": "reversed", "type": "category" });
    let layout = json!({ "barmode": "stack", "xaxis": axis("time, us"), "yaxis": y });
    let height = 130 + 34 * groups.len() as u32;
    Figure::new(id, title, caption, traces.collect(), layout).wide().high(height.max(260))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_at_any_depth() {
        let attribution = json!({
            "read": {
                "count": 3,
                "mean": { "die": 1.0, "cell": 25.0 },
                "p99": { "latency_us": 90.0, "count": 1, "parts": { "die": 65.0, "cell": 25.0 } },
            },
            "write": null,
            "streams": [{ "name": "job1", "write": { "mean": { "cell": 200.0 } } }],
        });
        let groups = groups(&attribution);
        let labels: Vec<String> = groups.iter().map(label).collect();
        assert_eq!(labels, ["read all", "read near p99", "streams: job1: write all"]);
        assert_eq!(groups[1].parts, [("die".to_owned(), 65.0), ("cell".to_owned(), 25.0)]);
        assert_eq!(super::groups(&Value::Null), []);
    }
}
