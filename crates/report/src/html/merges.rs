//! Merges section, in place of that on garbage collection if the mapping scheme merges blocks: merges by kind, writes by
//! kind of log block, and associativity.

use floatgate_core::metrics::summary::{LogBlocks, Merges, Summary};
use maud::html;
use serde_json::{Value, json};

use super::over_time::{SeriesPoint, from_zero, times, values};
use crate::figure::{Figure, Style, axis, trace, with_lone_points};
use crate::number::{grouped, or_dash};

/// Kinds of merges, in the order of their cost.
const KINDS: [&str; 3] = ["switch", "partial", "full"];

/// Returns the rows of the table of a device that merges blocks.
pub fn rows(summary: &Summary) -> Vec<(String, String)> {
    let Merges { switch, partial, full } = summary.gc.merges;
    let mut rows = vec![("merges: switch, partial, full".to_owned(), [switch, partial, full].map(grouped).join(", "))];
    if let Some(logs) = &summary.gc.log_blocks {
        let mean = "associativity: mean number of logical blocks with valid units in a reclaimed log block";
        rows.extend([
            ("log blocks reclaimed".to_owned(), grouped(logs.reclaimed)),
            (mean.to_owned(), or_dash(logs.associativity)),
            ("units not copied because they were trimmed".to_owned(), grouped(logs.copies_saved)),
            ("trimmed units that no merge has skipped yet".to_owned(), grouped(logs.trim_list)),
        ]);
        let written = |kind: &str| format!("units written to {kind} log blocks");
        rows.extend(logs.writes.iter().map(|of| (written(&of.kind), grouped(of.units))));
    }
    rows
}

/// Returns the figures of the whole run.
pub fn figures(summary: &Summary) -> Vec<Figure> {
    if !summary.config.merges_blocks() {
        return Vec::new();
    }
    [by_kind(summary), summary.gc.log_blocks.as_ref().and_then(writes)].into_iter().flatten().collect()
}

/// Returns bars of shares of a total, one after another.
fn bar(parts: &[(String, u64)], unit: &str) -> Option<Vec<Value>> {
    let parts = parts.iter().enumerate().filter(|(_, (_, count))| *count > 0);
    let traces: Vec<Value> = parts
        .map(|(index, (name, count))| {
            let hover = format!("%{{x:,d}} {unit}");
            let more = json!({ "x": [count], "y": [""], "orientation": "h", "hovertemplate": hover });
            trace(&format!("{name} {}", grouped(*count)), Style::of(index).bars(), more)
        })
        .collect();
    (!traces.is_empty()).then_some(traces)
}

fn layout(title: &str) -> Value {
    json!({ "barmode": "stack", "showlegend": true, "xaxis": axis(title),
        "yaxis": { "showticklabels": false, "ticks": "" } })
}

fn by_kind(summary: &Summary) -> Option<Figure> {
    let Merges { switch, partial, full } = summary.gc.merges;
    let parts: Vec<(String, u64)> = KINDS.map(str::to_owned).into_iter().zip([switch, partial, full]).collect();
    let caption = html! {
        "Merges by kind. A switch copies nothing, a partial merge copies the end of a logical block, and a full merge "
        "copies all of its units."
    };
    Some(Figure::new("merges", "Merges, by kind", caption, bar(&parts, "merges")?, layout("merges")).high(220))
}

fn writes(logs: &LogBlocks) -> Option<Figure> {
    let parts: Vec<(String, u64)> = logs.writes.iter().map(|of| (of.kind.clone(), of.units)).collect();
    let caption = html! { "Mapping units that the host wrote, by kind of the log block that took them." };
    let traces = bar(&parts, "units")?;
    Some(Figure::new("log-writes", "Host writes, by kind of log block", caption, traces, layout("units")).high(220))
}

/// Returns merges per second and associativity over time, if there were merges.
pub fn over_time(series: &[SeriesPoint]) -> Option<Figure> {
    if series.iter().all(|point| point.merges.iter().all(|count| *count == 0)) {
        return None;
    }
    let x = times(series);
    let mut lines: Vec<Value> = KINDS
        .iter()
        .enumerate()
        .map(|(index, kind)| {
            let rate = |point: &SeriesPoint| {
                let seconds = point.end_s - point.start_s;
                (seconds > 0.0).then(|| point.merges[index] as f64 / seconds)
            };
            let more = json!({ "x": x, "y": values(series, rate), "hovertemplate": "%{x:.4~g} s: %{y:.4~s} merges/s" });
            trace(kind, Style::of(index).line(), more)
        })
        .collect();
    let mut layout = json!({ "xaxis": axis("simulated time, s"), "yaxis": from_zero("merges per second") });
    let associativity = values(series, |point| point.associativity);
    if associativity.iter().any(Option::is_some) {
        let more = json!({ "x": x, "y": associativity, "yaxis": "y2", "hovertemplate": "%{x:.4~g} s: %{y:.4~g}" });
        lines.push(trace("associativity (right)", Style::of(3).line(), more));
        layout["yaxis2"] = json!({ "title": { "text": "logical blocks per log block" }, "overlaying": "y",
            "side": "right", "rangemode": "tozero", "showgrid": false });
    }
    let caption = html! {
        "Merges per second by kind (left), and associativity (right): the mean number of logical blocks with valid units "
        "in the log blocks that were reclaimed in a window. Each of these logical blocks needs a full merge."
    };
    Some(Figure::new("merges-over-time", "Merges over time", caption, with_lone_points(lines), layout))
}
