//! Configuration section: the simulated device, and the command that reproduces the result.

use floatgate_core::summary::Summary;
use maud::{Markup, html};
use serde_json::Value;

use crate::command;
use crate::number::{bytes, or_dash};
use crate::page::Page;

/// Adds the section on the device.
pub fn section(page: &mut Page, summary: &Summary) {
    page.section("configuration", "Configuration");
    page.add(&changes(summary));
    page.add(&html! {
        @if !summary.config.description.is_empty() { p { (summary.config.description) } }
        details {
            summary { "All parameters of the device, with their sources" }
            table.stack {
                tr { th.text { "key" } th.text { "value" } th.text { "source" } }
                @for figure in summary.config.figures() {
                    tr {
                        td.key { code { (figure.path) } }
                        td.text { (shown(&figure.value)) }
                        td.text data-name="source" { (figure.source.unwrap_or("default")) }
                    }
                }
            }
        }
    });
}

fn changes(summary: &Summary) -> Markup {
    let Some(changes) = &summary.changes else {
        return html! { p { "The device is not based on a built-in one." } };
    };
    if changes.figures.is_empty() {
        return html! { p { "The device is the built-in device " b { (changes.base) } ", unchanged." } };
    }
    html! {
        p { "Differences from the built-in device " b { (changes.base) } ":" }
        table.stack {
            tr { th.text { "key" } th.text { "here" } th.text { (changes.base) } }
            @for change in &changes.figures {
                tr {
                    td.key { code { (change.path) } }
                    td.text data-name="here" { (shown(&change.value)) }
                    td.text data-name=(changes.base) { (shown(&change.base)) }
                }
            }
        }
    }
}

/// Returns a value without JSON quotes.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Adds the section on how to reproduce the result.
pub fn reproduce(page: &mut Page, summary: &Summary) {
    page.section("reproduce", "How to reproduce");
    let cost = summary.run.as_ref();
    let rows = [
        ("version of Floatgate", summary.version.clone()),
        ("seed", summary.seed.to_string()),
        ("device", format!("{}, digest {}", summary.device.name, summary.device.digest)),
        ("device with all overrides", format!("digest {}", summary.config_digest)),
        ("workload", format!("{}, digest {}", summary.workload.name, summary.workload.digest)),
        ("precondition", summary.precondition.requested.clone()),
    ];
    page.add(&html! {
        @if let Some(command) = command::again(summary) {
            p { "With the same version of Floatgate, this command gives exactly the same result:" }
            pre { (command) }
        }
        table { @for (name, value) in &rows { tr { td { (name) } td.text { (value) } } } }
        @if let Some(cost) = cost {
            p.note {
                "The simulation took " (or_dash(Some(cost.wall_s))) " s"
                @if let Some(peak) = cost.peak_rss_bytes { " and at most " (bytes(peak)) " of memory" }
                "."
            }
        }
    });
}
