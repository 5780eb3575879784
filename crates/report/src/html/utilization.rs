//! Utilization section: busy times of channels, dies and chips.

use floatgate_core::device_file::Concurrency;
use floatgate_core::summary::{Each, Summary};
use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Style, axis, trace};
use crate::page::Page;

/// Maximum number of cells in a heat map with labels.
const LABELED: usize = 160;

/// Adds the section on utilization.
pub fn section(page: &mut Page, summary: &Summary) {
    let each = &summary.utilization.each;
    if each.channel_data.is_empty() {
        return;
    }
    page.section("utilization", "Utilization");
    let mut figures = vec![channels(each)];
    figures.extend(dies(each, summary.config.geometry.dies));
    figures.extend(chips(summary));
    page.figures(figures);
}

fn channels(each: &Each) -> Figure {
    let names: Vec<String> = (0..each.channel_data.len()).map(|channel| channel.to_string()).collect();
    let bar = |index: usize, name: &str, shares: &[f64]| {
        let more = json!({ "x": names, "y": shares, "hovertemplate": "channel %{x}: %{y:.1%}" });
        trace(name, Style::of(index).bars(), more)
    };
    let traces = vec![bar(0, "data", &each.channel_data), bar(1, "commands and switching", &each.channel_command)];
    let mut x = axis("channel");
    x["type"] = "category".into();
    let layout = json!({ "barmode": "stack", "xaxis": x, "yaxis": share_axis("share of the measured time") });
    let caption = html! {
        "Share of the measured time that each channel transferred data, or commands and addresses. If all channels are "
        "near 100%, they are the bottleneck. If channels differ, the allocation distributes the load unevenly."
    };
    Figure::new("channel-utilization", "Channels", caption, traces, layout)
}

/// Returns the map of all dies, which are chips if each chip has one die.
fn dies(each: &Each, dies_of_chip: u32) -> Option<Figure> {
    let (word, plural) = if dies_of_chip == 1 { ("chip", "Chips") } else { ("die", "Dies") };
    let channels = each.channel_data.len();
    let dies = each.die_cell.len() / channels;
    if dies == 0 {
        return None;
    }
    let held: Vec<&[f64]> = each.die_register_held.chunks(dies).collect();
    let mut map = heat_map(&each.die_cell, channels, "cells busy");
    map["customdata"] = json!(held);
    map["hovertemplate"] = format!(
        "channel %{{y}}, {word} %{{x}}: cells busy %{{z:.1%}}, held for transfers %{{customdata:.1%}}<extra></extra>"
    )
    .into();
    let caption = html! {
        "Share of the measured time that the cells of each " (word) " were busy. A row is a channel, a column is a "
        (word) " of it, and darker is busier. Hover over a " (word) " to see the time that it was held with idle cells, "
        "while its data moved or waited for the channel. Single dark cells are hot spots, where requests queue."
    };
    let layout = map_layout(word, channels, dies);
    Some(Figure::new("die-utilization", plural, caption, vec![map], layout).high(map_height(channels)))
}

/// Returns the map of all chips or packages, if they execute one command at a time and have several dies.
fn chips(summary: &Summary) -> Option<Figure> {
    let busy = &summary.utilization.chips.as_ref()?.each;
    let channels = summary.utilization.each.channel_data.len();
    let columns = busy.len() / channels;
    if columns == 0 {
        return None;
    }
    let (word, plural) = chip_words(summary);
    let mut map = heat_map(busy, channels, "busy");
    map["hovertemplate"] = format!("channel %{{y}}, {word} %{{x}}: busy %{{z:.1%}}<extra></extra>").into();
    let caption = html! {
        "Share of the measured time that an operation occupied each " (word) ", which executes one command at a time. A "
        "row is a channel, a column is a " (word) " of it. A busy " (word) " may have dies with idle cells, because its "
        "other dies work or data moves."
    };
    let layout = map_layout(word, channels, columns);
    Some(Figure::new("chip-utilization", plural, caption, vec![map], layout).high(map_height(channels)))
}

/// Returns the word for what executes one command at a time, and its plural.
fn chip_words(summary: &Summary) -> (&'static str, &'static str) {
    match summary.config.nand.concurrency {
        Concurrency::Chip => ("package", "Packages"),
        _ => ("chip", "Chips"),
    }
}

/// Returns a heat map of shares, with a row for each channel.
fn heat_map(shares: &[f64], channels: usize, quantity: &str) -> Value {
    let rows: Vec<&[f64]> = shares.chunks(shares.len() / channels).collect();
    let mut map = json!({
        "type": "heatmap", "z": rows, "zmin": 0, "zmax": 1, "xgap": 1, "ygap": 1,
        "colorscale": "Cividis", "reversescale": true,
        "colorbar": { "tickformat": ".0%", "title": { "text": quantity, "side": "right" }, "outlinewidth": 0.5 },
    });
    if shares.len() <= LABELED {
        map["texttemplate"] = "%{z:.0%}".into();
    }
    map
}

fn map_layout(word: &str, channels: usize, columns: usize) -> Value {
    let whole = |title: &str, count: usize| {
        let mut axis = axis(title);
        axis["dtick"] = count.div_ceil(16).into();
        axis["showgrid"] = false.into();
        axis
    };
    let mut y = whole("channel", channels);
    y["autorange"] = "reversed".into();
    json!({ "xaxis": whole(&format!("{word} of the channel"), columns), "yaxis": y })
}

fn map_height(channels: usize) -> u32 {
    (150 + 24 * channels as u32).clamp(300, 800)
}

fn share_axis(title: &str) -> Value {
    let mut axis = axis(title);
    axis["tickformat"] = ".0%".into();
    axis["range"] = json!([0, 1]);
    axis
}
