//! Utilization section: busy times of channels and dies.

use floatgate_core::metrics::summary::{Each, Summary};
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
    let busy: Vec<Vec<f64>> = each.die_cell.chunks(dies).map(<[f64]>::to_vec).collect();
    let held: Vec<&[f64]> = each.die_register_held.chunks(dies).collect();
    let mut map = json!({
        "type": "heatmap", "z": busy, "customdata": held, "zmin": 0, "zmax": 1, "xgap": 1, "ygap": 1,
        "colorscale": "Cividis", "reversescale": true,
        "colorbar": { "tickformat": ".0%", "title": { "text": "cells busy", "side": "right" }, "outlinewidth": 0.5 },
        "hovertemplate": format!(
            "channel %{{y}}, {word} %{{x}}: cells busy %{{z:.1%}}, held for transfers %{{customdata:.1%}}<extra></extra>"
        ),
    });
    if each.die_cell.len() <= LABELED {
        map["texttemplate"] = "%{z:.0%}".into();
    }
    let whole = |title: &str, count: usize| {
        let mut axis = axis(title);
        axis["dtick"] = count.div_ceil(16).into();
        axis["showgrid"] = false.into();
        axis
    };
    let mut y = whole("channel", channels);
    y["autorange"] = "reversed".into();
    let layout = json!({ "xaxis": whole(&format!("{word} of the channel"), dies), "yaxis": y });
    let caption = html! {
        "Share of the measured time that the cells of each " (word) " were busy. A row is a channel, a column is a "
        (word) " of it, and darker is busier. Hover over a " (word) " to see the time that it was held with idle cells, "
        "while its data moved or waited for the channel. Single dark cells are hot spots, where requests queue."
    };
    Some(
        Figure::new("die-utilization", plural, caption, vec![map], layout)
            .high((150 + 24 * channels as u32).clamp(300, 800)),
    )
}

fn share_axis(title: &str) -> Value {
    let mut axis = axis(title);
    axis["tickformat"] = ".0%".into();
    axis["range"] = json!([0, 1]);
    axis
}
