//! HTML page of a comparison.

use floatgate_core::summary::LatencyCurve;
use maud::{Markup, html};
use serde_json::Value;

use super::text::Form;
use super::{Comparison, Group, NOISE_UNKNOWN, Run, intervals};
use crate::figure::Style;
use crate::html::{AttributionGroup, Curve, attribution_bars, attribution_groups, curves};
use crate::page::Page;
use crate::words::words;

/// Maximum number of curves drawn per group. More seeds would not show more.
const CURVES: usize = 8;

/// Maximum number of bars in a figure.
const BARS: usize = 64;

/// Returns the page.
pub fn page(comparison: &Comparison, groups: &[Group]) -> String {
    let mut page = Page::default();
    page.section("metrics", "Metrics");
    page.figures(intervals::figure(comparison).into_iter().collect());
    page.add(&metrics(comparison));
    latencies(&mut page, groups);
    attribution(&mut page, groups);
    configurations(&mut page, groups);
    page.section("runs", "Runs");
    page.add(&runs(comparison));
    let labels: Vec<&str> = comparison.groups.iter().map(|group| group.label.as_str()).collect();
    let title = format!("Comparison: {}", labels.join(", "));
    let head = html! {
        h1 { (title) }
        p.soft { "Each group is compared with the first. Floatgate " (env!("CARGO_PKG_VERSION")) "." }
        @for warning in &comparison.warnings { div.warning { b { "Warning: " } (warning) } }
        @if comparison.has_single_runs() { div.warning { b { "Noise unknown: " } (NOISE_UNKNOWN) "." } }
    };
    page.finish(&title, &head)
}

fn metrics(comparison: &Comparison) -> Markup {
    html! {
        div.scroll { table.stack {
            caption {
                "After +-: half of the 95% confidence interval of the mean over seeds (Student's t). Differences are "
                "relative to the first column: x2 is twice its value, and +2 pp is two percentage points more. (~) "
                "marks a difference within noise."
                @if comparison.tested > 0 { " " (comparison.judgment()) }
            }
            tr {
                th.text { "metric" }
                th.text { "unit" }
                @for (index, group) in comparison.groups.iter().enumerate() {
                    th { (group.label) }
                    @if index > 0 { th { "difference" } }
                }
            }
            @for row in &comparison.metrics {
                @let form = Form::of(row);
                tr {
                    td title=(row.metric) { (row.label) }
                    td.unit { (form.unit()) }
                    @for (cell, group) in row.values.iter().zip(&comparison.groups) {
                        td data-name=(group.label) { (form.value(cell.as_ref())) }
                        @if group.label != comparison.groups[0].label {
                            td data-name="difference" { (form.difference(cell.as_ref())) }
                        }
                    }
                }
            }
        } }
    }
}

/// Adds the latency distributions of all groups, one figure per operation.
fn latencies(page: &mut Page, groups: &[Group]) {
    let mut operations: Vec<&str> = Vec::new();
    let all = groups.iter().flat_map(|group| &group.runs).flat_map(|run| &run.summary.distributions.latency);
    for LatencyCurve { operation, .. } in all {
        if !operations.contains(&operation.as_str()) {
            operations.push(operation);
        }
    }
    if operations.is_empty() {
        return;
    }
    page.section("latency", "Latency");
    for operation in operations {
        let drawn: Vec<Curve> = groups.iter().enumerate().flat_map(|(i, group)| of(i, group, operation)).collect();
        let mut figures = curves(&format!("latency-{operation}"), &drawn);
        for figure in &mut figures {
            figure.title = format!("{}: {}", words(operation), figure.title);
            one_entry_each(&mut figure.data);
        }
        page.figures(figures);
    }
}

/// Returns the curves of a group.
fn of<'a>(index: usize, group: &'a Group, operation: &'a str) -> impl Iterator<Item = Curve<'a>> {
    let curves = group.runs.iter().take(CURVES).flat_map(|run| &run.summary.distributions.latency);
    let curves = curves.filter(move |points| points.operation == operation);
    curves.map(move |points| Curve { name: group.label.clone(), style: Style::of(index), points })
}

/// Gives the seeds of a group one legend entry, so that they are shown and hidden together.
fn one_entry_each(traces: &mut Value) {
    let mut before = Value::Null;
    for trace in traces.as_array_mut().into_iter().flatten() {
        trace["legendgroup"] = trace["name"].clone();
        trace["showlegend"] = (trace["name"] != before).into();
        if trace["name"] == before {
            trace["mode"] = "lines".into();
            if let Some(trace) = trace.as_object_mut() {
                trace.remove("marker");
            }
            trace["opacity"] = 0.5.into();
        }
        before = trace["name"].clone();
    }
}

fn attribution(page: &mut Page, groups: &[Group]) {
    let mut bars = attributed(groups);
    if bars.is_empty() {
        return;
    }
    let left_out = bars.len().saturating_sub(BARS);
    bars.truncate(BARS);
    let caption = html! {
        "The parts of the latency, on average, with a panel and a scale for all requests, and for those whose latency is "
        "near a percentile. Point at a part or its name for its meaning. For a group with several seeds, each bar is the mean over the requests of all its runs. Each "
        "run has percentiles of its own. If a bar is longer than another, its longer parts explain why."
        @if left_out > 0 { " " (left_out) " more bars do not fit here: compare fewer groups to see them." }
    };
    let merges = groups.iter().all(|group| group.runs[0].summary.config.merges_blocks());
    page.section("attribution", "Where the time goes");
    page.figures(vec![attribution_bars("attribution", "Where the time goes", caption, &bars, merges)]);
}

/// Returns the latency breakdowns of all groups. Groups are adjacent for each kind of request, and the runs of a group
/// are pooled.
fn attributed(groups: &[Group]) -> Vec<AttributionGroup> {
    let of_run = |run: &Run| attribution_groups("", &run.summary.requests);
    let of_groups: Vec<Vec<AttributionGroup>> =
        groups.iter().map(|group| group.runs.iter().flat_map(of_run).collect()).collect();
    let mut names: Vec<(&str, usize)> = Vec::new();
    for bar in of_groups.iter().flatten() {
        if !names.contains(&(bar.name.as_str(), bar.level)) {
            names.push((&bar.name, bar.level));
        }
    }
    let mut bars = Vec::new();
    for (name, level) in names {
        for (group, runs) in groups.iter().zip(&of_groups) {
            let of = |bar: &&AttributionGroup| bar.name == name && bar.level == level;
            let runs: Vec<&AttributionGroup> = runs.iter().filter(of).collect();
            if !runs.is_empty() {
                bars.push(AttributionGroup::pooled(&format!("{name}: {}", group.label), &runs));
            }
        }
    }
    bars
}

/// Adds the device parameters that are not the same in all groups.
fn configurations(page: &mut Page, groups: &[Group]) {
    let figures: Vec<_> = groups.iter().map(|group| group.runs[0].summary.config.figures()).collect();
    let mut paths: Vec<&str> = Vec::new();
    for figure in figures.iter().flatten() {
        if !paths.contains(&figure.path.as_str()) {
            paths.push(&figure.path);
        }
    }
    let value = |group: usize, path: &str| figures[group].iter().find(|f| f.path == path).map(|f| &f.value);
    paths.retain(|path| (1..groups.len()).any(|group| value(group, path) != value(0, path)));
    page.section("configuration", "What differs in the devices");
    page.add(&html! {
        @if paths.is_empty() { p { "Nothing." } } @else {
            table.stack {
                tr { th.text { "key" } @for group in groups { th.text { (group.label) } } }
                @for path in &paths {
                    tr {
                        td.key { code { (path) } }
                        @for (index, group) in groups.iter().enumerate() {
                            @let shown = value(index, path).map_or_else(|| "-".to_owned(), crate::html::shown);
                            td.text data-name=(group.label) { (shown) }
                        }
                    }
                }
            }
        }
    });
}

fn runs(comparison: &Comparison) -> Markup {
    html! {
        table.stack {
            tr { th.text { "group" } th.text { "device" } th.text { "workload" } th { "seed" } th.text { "file" } }
            @for group in &comparison.groups {
                @for (file, seed) in group.files.iter().zip(&group.seeds) {
                    tr {
                        td { (group.label) }
                        td.text { (group.device) ", digest " (group.config_digest) }
                        td.text { (group.workload) }
                        td data-name="seed" { (seed) }
                        td.text { (file) }
                    }
                }
            }
        }
    }
}
