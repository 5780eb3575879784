//! Wear section: erase counts of blocks.

use floatgate_core::summary::Summary;
use maud::html;
use serde_json::json;

use crate::figure::{Figure, Style, axis, trace};
use crate::number::{percent, short};
use crate::page::Page;

/// Adds the section on wear.
pub fn section(page: &mut Page, summary: &Summary) {
    let wear = &summary.wear;
    let histogram = &wear.histogram;
    if histogram.blocks.is_empty() {
        return;
    }
    page.section("wear", "Wear");
    let classes = 0..histogram.blocks.len() as u64;
    let from: Vec<u64> = classes.map(|class| histogram.from + class * histogram.width).collect();
    let hover: Vec<String> = from.iter().map(|from| range(*from, histogram.width)).collect();
    let more = json!({ "x": from, "y": histogram.blocks, "customdata": hover, "offset": 0, "width": histogram.width,
        "hovertemplate": "%{customdata} erases: %{y:,d} blocks" });
    let bars = vec![trace("blocks", Style::of(0).bars(), more)];
    let caption = html! {
        "Blocks by erase count since the device was new, including preconditioning. Mean "
        (short(wear.blocks.mean)) ", standard deviation " (short(wear.blocks.stddev)) ", maximum " (wear.blocks.max)
        @if let Some(used) = wear.life_used { " (" (percent(Some(used))) " of the endurance)" }
        ". A single narrow peak means even wear. A second peak at the left means blocks whose data never changes."
        @if let Some(faults) = &summary.faults {
            " Bad blocks: " (faults.blocks_bad.factory) " from the factory, " (faults.blocks_bad.grown) " since."
            @if let Some(since) = faults.read_only_since_s { " The device became read-only at " (short(since)) " s." }
        }
    };
    let mut x = axis("erases");
    if histogram.width * histogram.blocks.len() as u64 <= 16 {
        // Whole numbers only.
        x["dtick"] = 1.into();
    }
    let layout = json!({ "xaxis": x, "yaxis": axis("blocks") });
    page.figures(vec![Figure::new("wear-histogram", "Erases per block", caption, bars, layout).high(280)]);
}

fn range(from: u64, width: u64) -> String {
    if width == 1 { from.to_string() } else { format!("{from} to {}", from + width - 1) }
}
