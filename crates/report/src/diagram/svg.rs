//! SVG output of a diagram: a standalone file with a background of its own, which is readable on any page.

use maud::{Markup, PreEscaped, html};

use super::gather::Span;
use super::layout::{
    BOX, Bar, Content, Entry, FLAG, LEFT, LINE, LOW_BOX, Layout, MIN_WIDTH, Mark, RIGHT, Row, STRIP, SWING, WIDTH,
    text_width,
};

/// Style sheet. It has plain rules and no variables, because some SVG converters support nothing else.
const STYLE: &str = include_str!("style.css");

/// Patterns of the boxes: name, tile size, and path.
const PATTERNS: [(&str, u32, &str); 6] = [
    ("switch", 4, "M2,0V4"),
    ("data-in", 8, "M-2,6L2,10M-2,-2L10,10M6,-2L10,2"),
    ("data-out", 8, "M-2,2L2,-2M-2,10L10,-2M6,10L10,6"),
    ("read", 6, "M3,2.5V3.5"),
    ("program", 64, ""),
    ("erase", 8, "M0,4H8M4,0V8"),
];

const END: PreEscaped<&str> = PreEscaped("\n");

/// Writes a diagram.
pub fn svg(layout: &Layout) -> String {
    let size = format!("0 0 {} {}", px(WIDTH), px(layout.height));
    // The borders of boxes that end exactly at the axis are visible. Those of longer boxes lie outside the clip area.
    let plot = (LEFT - 1.0, 30.0, RIGHT - LEFT + 2.0, layout.bottom - 30.0);
    let document = html! {
        svg class="timing" xmlns="http://www.w3.org/2000/svg" viewBox=(size) width=(px(WIDTH))
            height=(px(layout.height)) role="img" aria-labelledby="timing-title timing-text" {
            (END) title id="timing-title" { (layout.title) }
            (END) desc id="timing-text" { (layout.described) }
            (END) style { (PreEscaped(STYLE)) }
            (END) defs {
                @for (name, size, lines) in PATTERNS { (pattern(name, size, lines)) }
                (END) clipPath id="timing-plot" {
                    rect x=(px(plot.0)) y=(px(plot.1)) width=(px(plot.2)) height=(px(plot.3)) {}
                }
            }
            (END) rect class="ground" width=(px(WIDTH)) height=(px(layout.height)) rx="4" {}
            (END) text class="title" x="12" y="22" { (layout.title) }
            (grid(layout))
            @for row in &layout.rows { (label(row)) }
            (END) g clip-path="url(#timing-plot)" {
                @for row in &layout.rows { (content(layout, row)) }
            (END) }
            @for row in &layout.rows { (flags(layout, row)) }
            @for entry in &layout.legend { (legend(entry)) }
            @for (index, note) in layout.notes.iter().rev().enumerate() {
                (END) text class="note" x="12" y=(px(layout.height - 12.0 - LINE * index as f64)) { (note) }
            }
        (END) }
        (END)
    };
    document.into_string()
}

/// Formats a length, rounded to a hundredth of a pixel.
fn px(length: f64) -> String {
    let text = format!("{length:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn pattern(name: &str, size: u32, lines: &str) -> Markup {
    html! {
        (END) pattern id={ "timing-" (name) } width=(size) height=(size) patternUnits="userSpaceOnUse" {
            rect class=(name) width=(size) height=(size) {}
            @if !lines.is_empty() { path class="hatch" d=(lines) {} }
        }
    }
}

/// Draws the axis and its marks.
fn grid(layout: &Layout) -> Markup {
    let bottom = layout.bottom;
    html! {
        @for (at, text) in &layout.ticks {
            @let x = px(layout.x(*at));
            (END) path class="grid" d={ "M" (x) ",32V" (px(bottom)) } {}
            (END) text class="tick" x=(x) y=(px(bottom + 16.0)) { (text) }
        }
        (END) path class="axis" d={ "M" (px(LEFT)) "," (px(bottom)) "H" (px(RIGHT)) } {}
        (END) text class="unit" x=(px((LEFT + RIGHT) / 2.0)) y=(px(bottom + 32.0)) { (layout.unit) }
    }
}

fn label(row: &Row) -> Markup {
    let middle = match row.content {
        Content::Requests(_) => LOW_BOX / 2.0,
        Content::Channel(_) => FLAG + BOX / 2.0,
        Content::Busy(_) => SWING / 2.0,
        Content::Plane { .. } => BOX / 2.0,
    };
    let x = 12.0 + 10.0 * f64::from(row.depth);
    let class = if row.depth == 0 { "row first" } else { "row" };
    let y = px(row.top + middle + 4.0);
    html! { @if !row.label.is_empty() { (END) text class=(class) x=(px(x)) y=(y) { (row.label) } } }
}

fn content(layout: &Layout, row: &Row) -> Markup {
    match &row.content {
        Content::Requests(bars) => html! { @for bar in bars { (boxed(layout, bar, row.top, LOW_BOX)) } },
        Content::Channel(bars) => html! {
            (END) path class="lane" d={ "M" (px(LEFT)) "," (px(row.top + FLAG + BOX)) "H" (px(RIGHT)) } {}
            // Narrow boxes are drawn last, because they may be drawn wider than they are.
            @for bar in bars.iter().filter(|bar| !is_narrow(layout, bar)) { (boxed(layout, bar, row.top + FLAG, BOX)) }
            @for bar in bars.iter().filter(|bar| is_narrow(layout, bar)) { (boxed(layout, bar, row.top + FLAG, BOX)) }
        },
        Content::Busy(busy) => swing(layout, busy, row.top),
        Content::Plane { cells, register, held } => html! {
            @let middle = row.top + BOX + STRIP / 2.0;
            @for span in held {
                @let (left, right) = layout.extent(*span);
                (END) path class="held" d={ "M" (px(left)) "," (px(middle)) "H" (px(right)) } {}
            }
            @for bar in register { (boxed(layout, bar, row.top + BOX, STRIP)) }
            @for bar in cells { (boxed(layout, bar, row.top, BOX)) }
        },
    }
}

fn is_narrow(layout: &Layout, bar: &Bar) -> bool {
    layout.x(bar.span.1) - layout.x(bar.span.0) < MIN_WIDTH
}

/// Draws a box with its label.
fn boxed(layout: &Layout, bar: &Bar, top: f64, height: f64) -> Markup {
    let (left, right) = layout.extent(bar.span);
    let lines = written(bar, right.min(RIGHT) - left.max(LEFT));
    let middle = (left.max(LEFT) + right.min(RIGHT)) / 2.0;
    let first = top + height / 2.0 + if lines.len() > 1 { -2.0 } else { 4.0 };
    html! {
        (END) g class={ "box " (bar.class) } data-from-ps=(bar.span.0) data-to-ps=(bar.span.1) data-op=[bar.op] {
            title { (bar.reported) }
            rect x=(px(left)) y=(px(top)) width=(px(right - left)) height=(px(height)) fill=[fill(bar.class)] {}
            @for (index, line) in lines.iter().enumerate() {
                @let class = if index == 0 { "what" } else { "long" };
                text class=(class) x=(px(middle)) y=(px(first + 12.0 * index as f64)) { (line) }
            }
        }
    }
}

/// Returns the pattern of a box, if it has one.
fn fill(class: &str) -> Option<String> {
    PATTERNS.iter().any(|(name, _, _)| *name == class).then(|| format!("url(#timing-{class})"))
}

/// Returns the longest label that fits into a box of this width.
fn written(bar: &Bar, width: f64) -> &[String] {
    const MARGIN: f64 = 6.0;
    let wide = |lines: &&Vec<String>| {
        let sizes = lines.iter().zip([12.0, 11.0]).map(|(line, size)| text_width(line, size));
        sizes.fold(0.0, f64::max) + MARGIN <= width
    };
    bar.labels.iter().find(wide).map_or(&[], Vec::as_slice)
}

/// Draws labels above the boxes of a channel that are too narrow for a label. Labels that would overlap are left out.
fn flags(layout: &Layout, row: &Row) -> Markup {
    let Content::Channel(bars) = &row.content else { return html! {} };
    let mut free = f64::MIN;
    let mut flags = Vec::new();
    for bar in bars {
        let (left, right) = layout.extent(bar.span);
        let Some(flag) = bar.flag.filter(|_| written(bar, right - left).is_empty()) else { continue };
        let half = text_width(flag, 10.0) / 2.0;
        // A label may move to the right while it still starts above its box.
        let from = free.max((left + right) / 2.0 - half);
        if from <= right {
            flags.push((from + half, flag));
            free = from + 2.0 * half + 2.0;
        }
    }
    let y = px(row.top + FLAG - 3.0);
    html! { @for (x, flag) in flags { (END) text class="flag" x=(px(x)) y=(y) { (flag) } } }
}

/// Draws the ready/busy signal, which is low while cells of the chip are busy.
fn swing(layout: &Layout, busy: &[Span], top: f64) -> Markup {
    let (high, low) = (px(top + 1.0), px(top + SWING - 1.0));
    let mut path = format!("M{},{high}", px(LEFT));
    for span in busy {
        let (left, right) = layout.extent(*span);
        path.push_str(&format!("H{}V{low}H{}V{high}", px(left), px(right)));
    }
    path.push_str(&format!("H{}", px(RIGHT)));
    html! {
        (END) path class="swing" d=(path) {}
        @for span in busy {
            @let (left, right) = layout.extent(*span);
            @if right - left > 40.0 {
                @let middle = (left.max(LEFT) + right.min(RIGHT)) / 2.0;
                (END) text class="busy" x=(px(middle)) y=(px(top + SWING - 4.0)) { "busy" }
            }
        }
    }
}

fn legend(entry: &Entry) -> Markup {
    let Entry { mark, name, text, x, y } = entry;
    let at = |dx: f64, dy: f64| format!("{},{}", px(x + dx), px(y + dy));
    html! {
        (END) g class="legend" {
            @match mark {
                Mark::Box(class) => {
                    g class={ "mark " (class) } {
                        rect x=(px(*x)) y=(px(y - 10.0)) width="22" height="13" fill=[fill(class)] {}
                    }
                }
                Mark::Strip => {
                    g class="mark register" {
                        rect x=(px(*x)) y=(px(y - 7.0)) width="22" height=(px(STRIP)) {}
                    }
                }
                Mark::Line => { path class="held" d={ "M" (at(0.0, -3.5)) "h22" } {} }
                Mark::Swing => { path class="swing" d={ "M" (at(0.0, -9.5)) "h5v11h12v-11h5" } {} }
            }
            text x=(px(x + 28.0)) y=(px(*y)) { tspan class="name" { (name) } " " (text) }
        }
    }
}
