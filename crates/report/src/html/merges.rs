//! Merges: their kinds, writes by kind of log block, and associativity. They are shown in place of garbage collection
//! if the mapping scheme merges blocks.

use floatgate_core::results::MergeKind;
use floatgate_core::summary::{LogBlocks, Merges, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Style, axis, trace};
use crate::number::{grouped, or_dash};

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
    let parts: Vec<(String, u64)> =
        MergeKind::ALL.iter().zip([switch, partial, full]).map(|((_, name), n)| ((*name).to_owned(), n)).collect();
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
