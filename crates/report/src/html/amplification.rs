//! What was written, and for what.

use floatgate_core::metrics::summary::{Merges, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Look, axis, trace};
use crate::number::{grouped, or_dash, percent, short};
use crate::page::Page;

/// The section on write amplification and cleaning.
pub fn section(page: &mut Page, summary: &Summary) {
    page.section("amplification", "Write amplification and cleaning");
    let figures = [units(summary), pages(summary)].into_iter().flatten().collect();
    page.figures(figures);
    let gc = &summary.gc;
    let Merges { switch, partial, full } = gc.merges;
    let merged = (switch + partial + full > 0)
        .then(|| ("merges: switch, partial, full", [switch, partial, full].map(grouped).join(", ")));
    let rows = [
        ("write amplification, in mapping units", or_dash(summary.write_amplification)),
        ("write amplification, in bytes", or_dash(summary.write_amplification_bytes)),
        ("victims (blocks reclaimed)", grouped(gc.victims)),
        ("pages moved", short(gc.pages_moved)),
        ("cleaning efficiency: share of victims that need not be moved", percent(gc.efficiency)),
        ("free blocks of the plane when a victim was chosen", or_dash(gc.free_blocks)),
        ("copies that the host overwrote meanwhile", grouped(gc.wasted_copies)),
        ("blocks erased", grouped(summary.flash.blocks_erased)),
        ("updates of a whole unit (covered)", grouped(summary.updates.covered)),
        ("updates of a part, read before (un-covered)", grouped(summary.updates.uncovered)),
        ("first writes of a unit", grouped(summary.updates.first)),
    ];
    let rows = rows.into_iter().chain(merged);
    page.add(&html! { table { @for (name, value) in rows { tr { td { (name) } td { (value) } } } } });
}

/// Write amplification as a sum.
fn units(summary: &Summary) -> Option<Figure> {
    let parts = summary.amplification_by_cause()?;
    let there = parts.iter().enumerate().filter(|(_, (_, share))| *share >= 0.0005);
    let traces = there.map(|(index, (name, share))| {
        let more = json!({ "x": [share], "y": [""], "orientation": "h", "hovertemplate": "%{x:.4~f}" });
        trace(&format!("{name} {}", short(*share)), Look::of(index).bars(), more)
    });
    let caption = html! {
        "Mapping units programmed for each one that the host wrote, by what they were programmed for: the host's own "
        "data, data moved by cleaning, summaries of blocks, places left unfilled, and translation pages. Their sum is the write "
        "amplification; 1 would be none."
    };
    let layout = json!({ "barmode": "stack", "showlegend": true, "xaxis": axis("units programmed for each unit written"),
        "yaxis": { "showticklabels": false, "ticks": "" } });
    Some(
        Figure::new("amplification-units", "Write amplification, by cause", caption, traces.collect(), layout)
            .high(220),
    )
}

/// Pages programmed and read, by cause.
fn pages(summary: &Summary) -> Option<Figure> {
    let (programs, reads) = (&summary.flash.programs_by_cause, &summary.flash.reads_by_cause);
    let bars = ["programmed", "read"];
    let causes = [
        ("host", [programs.host, reads.host]),
        ("gc", [programs.gc, reads.gc]),
        ("summaries", [programs.summary, 0]),
        ("padding", [programs.padding, 0]),
        ("read-modify-write", [0, reads.rmw]),
        ("map", [programs.map, reads.map]),
        ("merges", [programs.merge, reads.merge]),
        ("trim journal", [programs.journal, 0]),
        ("checkpoint", [programs.checkpoint, 0]),
    ];
    let there = causes.iter().enumerate().filter(|(_, (_, pages))| pages.iter().any(|count| *count > 0));
    let traces: Vec<Value> = there
        .map(|(index, (name, pages))| {
            let more = json!({ "x": pages, "y": bars, "orientation": "h", "hovertemplate": "%{x:,d} pages" });
            trace(name, Look::of(index).bars(), more)
        })
        .collect();
    let caption = html! {
        "Flash pages programmed and read in the run, by cause. What is not the host's is the price of the translation "
        "layer."
    };
    let layout =
        json!({ "barmode": "stack", "showlegend": true, "xaxis": axis("pages"), "yaxis": { "type": "category" } });
    (!traces.is_empty())
        .then(|| Figure::new("pages-by-cause", "Pages of flash, by cause", caption, traces, layout).high(220))
}
