//! Write amplification section: units and pages programmed, by cause.

use floatgate_core::summary::Summary;
use maud::html;
use serde_json::{Value, json};

use super::merges;
use crate::figure::{Figure, Style, axis, trace};
use crate::number::{grouped, or_dash, percent, short};
use crate::page::Page;

/// Adds the section on write amplification and garbage collection.
pub fn section(page: &mut Page, summary: &Summary) {
    let merges_blocks = summary.config.merges_blocks();
    let title =
        if merges_blocks { "Write amplification and merges" } else { "Write amplification and garbage collection" };
    page.section("amplification", title);
    let figures = [units(summary), pages(summary)].into_iter().flatten();
    page.figures(figures.chain(merges::figures(summary)).collect());
    let gc = &summary.gc;
    let victims = [
        ("victims (blocks reclaimed)", grouped(gc.victims)),
        ("pages moved", short(gc.pages_moved)),
        ("cleaning efficiency: share of victims that did not have to be moved", percent(gc.efficiency)),
        ("free blocks of the plane when a victim was chosen", or_dash(gc.free_blocks)),
    ];
    let reclaimed = if merges_blocks { merges::rows(summary) } else { named(victims) };
    let amplification = [
        ("write amplification, in mapping units", or_dash(summary.write_amplification)),
        ("write amplification, in bytes", or_dash(summary.write_amplification_bytes)),
    ];
    let rest = [
        ("wasted copies: overwritten by the host during the move", grouped(gc.wasted_copies)),
        ("blocks erased", grouped(summary.flash.blocks_erased)),
        ("updates of a whole unit (covered)", grouped(summary.updates.covered)),
        ("updates of part of a unit, which is read first (un-covered)", grouped(summary.updates.uncovered)),
        ("first writes of a unit", grouped(summary.updates.first)),
    ];
    let rows = named(amplification).into_iter().chain(reclaimed).chain(named(rest));
    page.add(&html! { table { @for (name, value) in rows { tr { td { (name) } td { (value) } } } } });
}

fn named<const N: usize>(rows: [(&str, String); N]) -> Vec<(String, String)> {
    rows.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Returns the figure of write amplification as a sum over causes.
fn units(summary: &Summary) -> Option<Figure> {
    let parts = summary.amplification_by_cause()?;
    let there = parts.iter().enumerate().filter(|(_, (_, share))| *share >= 0.0005);
    let traces = there.map(|(index, (name, share))| {
        let more = json!({ "x": [share], "y": [""], "orientation": "h", "hovertemplate": "%{x:.4~f}" });
        trace(&format!("{name} {}", short(*share)), Style::of(index).bars(), more)
    });
    let caption = html! {
        "Mapping units programmed per mapping unit written by the host, by cause, such as the host's own data, data "
        "moved by garbage collection, block summaries, padding, and translation pages. Their sum is the write "
        "amplification; 1 means no amplification."
    };
    let layout = json!({ "barmode": "stack", "showlegend": true, "xaxis": axis("units programmed per unit written"),
        "yaxis": { "showticklabels": false, "ticks": "" } });
    Some(
        Figure::new("amplification-units", "Write amplification, by cause", caption, traces.collect(), layout)
            .high(220),
    )
}

/// Returns the figure of pages programmed and read, by cause.
fn pages(summary: &Summary) -> Option<Figure> {
    let (programs, reads) = (&summary.flash.programs_by_cause, &summary.flash.reads_by_cause);
    let bars = ["programmed", "read"];
    let causes = [
        ("host", [programs.host, reads.host]),
        ("garbage collection", [programs.gc, reads.gc]),
        ("wear leveling", [programs.wear, reads.wear]),
        ("folding", [programs.fold, reads.fold]),
        ("refresh", [programs.refresh, reads.refresh]),
        ("summaries", [programs.summary, 0]),
        ("padding", [programs.padding, 0]),
        ("read-modify-write", [0, reads.rmw]),
        ("map", [programs.map, reads.map]),
        ("merges", [programs.merge, reads.merge]),
        ("trim journal", [programs.journal, 0]),
        ("checkpoint", [programs.checkpoint, 0]),
        ("parity", [programs.parity, 0]),
    ];
    let there = causes.iter().enumerate().filter(|(_, (_, pages))| pages.iter().any(|count| *count > 0));
    // A run may have read or programmed nothing.
    let is_drawn = [0, 1].map(|bar: usize| causes.iter().any(|(_, pages)| pages[bar] > 0));
    let traces: Vec<Value> = there
        .map(|(index, (name, pages))| {
            let drawn = || bars.iter().zip(pages).zip(is_drawn).filter(|(_, is_drawn)| *is_drawn);
            let (x, y): (Vec<u64>, Vec<&str>) = drawn().map(|((bar, pages), _)| (*pages, *bar)).unzip();
            let more = json!({ "x": x, "y": y, "orientation": "h", "hovertemplate": "%{x:,d} pages" });
            trace(name, Style::of(index).bars(), more)
        })
        .collect();
    let caption = html! {
        "Flash pages programmed and read in the run, by cause. Pages not caused by the host are the overhead of the "
        "translation layer."
    };
    let layout =
        json!({ "barmode": "stack", "showlegend": true, "xaxis": axis("pages"), "yaxis": { "type": "category" } });
    (!traces.is_empty())
        .then(|| Figure::new("pages-by-cause", "Pages of flash, by cause", caption, traces, layout).high(220))
}
