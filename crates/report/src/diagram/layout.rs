//! Layout of a diagram: positions rows from top to bottom, and time from left to right. Lengths are in CSS pixels.

use std::collections::{BTreeMap, BTreeSet};

use floatgate_core::sim::time::Time;

use super::gather::{Gathered, Place, Requesting, Span, Step};
use super::{MAX_REQUEST_ROWS, Requested, Sort};
use crate::number::{decimal, exact, grouped};
use crate::words;

/// Width of the diagram.
pub const WIDTH: f64 = 900.0;
/// Left and right ends of the time axis.
pub const LEFT: f64 = 124.0;
pub const RIGHT: f64 = WIDTH - 22.0;
/// Height of a box in its own row.
pub const BOX: f64 = 30.0;
/// Height of the space above the boxes of a channel, for labels that do not fit into their boxes.
pub const FLAG: f64 = 13.0;
/// Height of the strip that shows when the register is in use.
pub const STRIP: f64 = 7.0;
/// Height of the box of a request.
pub const LOW_BOX: f64 = 20.0;
/// Height of the ready/busy signal.
pub const SWING: f64 = 15.0;
/// Minimum width of a box. A narrower box would be invisible.
pub const MIN_WIDTH: f64 = 2.0;

/// Line height of the legend and the notes.
pub const LINE: f64 = 19.0;
/// Distance by which a box extends past the end of the axis if its time does. Its border is then clipped.
const BEYOND: f64 = 4.0;
const GAP: f64 = 7.0;
const BETWEEN_CHANNELS: f64 = 10.0;
const HEAD: f64 = 38.0;

/// A box.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Time span. May start before the axis and end after it.
    pub span: Span,
    /// Style class.
    pub class: &'static str,
    /// Labels, longest first. The first that fits is drawn in the box.
    pub labels: Vec<Vec<String>>,
    /// Label above the box if none fits into it.
    pub flag: Option<&'static str>,
    /// Full description.
    pub reported: String,
    /// Id of the operation in the timeline.
    pub op: Option<u64>,
}

/// Content of a row.
#[derive(Clone, Debug)]
pub enum Content {
    /// Requests of the host.
    Requests(Vec<Bar>),
    /// A channel.
    Channel(Vec<Bar>),
    /// Ready/busy signal of a chip: the spans in which it is busy.
    Busy(Vec<Span>),
    /// A plane: its cells, its register, and the spans in which operations hold it.
    Plane { cells: Vec<Bar>, register: Vec<Bar>, held: Vec<Span> },
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    pub label: String,
    /// Indentation level of the label.
    pub depth: u32,
    pub content: Content,
    pub top: f64,
    pub height: f64,
}

/// An entry of the legend.
#[derive(Clone, Debug)]
pub struct Entry {
    pub mark: Mark,
    pub name: &'static str,
    pub text: String,
    pub x: f64,
    pub y: f64,
}

/// Symbol of an entry of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Box(&'static str),
    Strip,
    Line,
    Swing,
}

/// A diagram with all positions, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Layout {
    pub title: String,
    pub described: String,
    pub axis: Span,
    pub rows: Vec<Row>,
    /// Lower end of the rows.
    pub bottom: f64,
    /// Marks of the axis: time and label.
    pub ticks: Vec<(u64, String)>,
    /// Title of the axis.
    pub unit: String,
    pub legend: Vec<Entry>,
    pub notes: Vec<String>,
    pub height: f64,
}

impl Layout {
    /// Returns the horizontal position of a time.
    pub fn x(&self, at: u64) -> f64 {
        let (from, to) = self.axis;
        LEFT + (RIGHT - LEFT) * (at as f64 - from as f64) / (to - from) as f64
    }

    /// Returns the left and right ends of a box. They lie slightly outside the axis if its time does.
    pub fn extent(&self, span: Span) -> (f64, f64) {
        let (from, to) = self.axis;
        let left = if span.0 < from { LEFT - BEYOND } else { self.x(span.0) };
        let right = if span.1 > to { RIGHT + BEYOND } else { self.x(span.1) };
        (left, right.max(left + MIN_WIDTH))
    }
}

/// Lays out the data of a diagram.
pub fn lay_out(gathered: &Gathered, requested: &Requested) -> Layout {
    let axis = axis_of(gathered, requested.span);
    let (rows, mut notes) = rows_of(gathered);
    let (ticks, unit) = ticks(axis);
    let title = requested
        .title
        .clone()
        .unwrap_or_else(|| format!("{}, {} to {}", gathered.device, exact(axis.0), exact(axis.1)));
    let mut layout = Layout {
        title: printable(&title),
        described: String::new(),
        axis,
        rows,
        bottom: HEAD,
        ticks,
        unit,
        legend: Vec::new(),
        notes: Vec::new(),
        height: 0.0,
    };
    layout.stack();
    let narrowest = (axis.1 - axis.0) as f64 / (RIGHT - LEFT) * MIN_WIDTH;
    let is_narrow = |step: &&Step| ((step.span.1 - step.span.0) as f64) < narrowest;
    if gathered.steps.iter().any(|step| is_narrow(&step)) {
        notes.push(format!("Boxes shorter than {} are drawn with this length.", exact(rounded(narrowest))));
    }
    layout.described = describe(&layout);
    layout.legend(gathered, notes);
    layout
}

/// Rounds a number of picoseconds down to two significant digits.
fn rounded(ps: f64) -> u64 {
    let ps = ps as u64;
    let unit = 10_u64.pow(ps.max(1).ilog10().saturating_sub(1));
    ps / unit * unit
}

/// Returns the text with characters that are invalid in XML replaced.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c }).collect()
}

/// Returns the start and end of the axis.
fn axis_of(gathered: &Gathered, span: (Time, Time)) -> Span {
    let requests = requests_shown(gathered);
    let spans = || gathered.steps.iter().map(|step| step.span).chain(requests.iter().map(|requesting| requesting.span));
    let first = spans().map(|span| span.0).min().unwrap_or(0);
    let last = spans().map(|span| span.1).max().unwrap_or(0);
    let from = if span.0 == Time::ZERO { first } else { span.0.ps() };
    let to = if span.1 == Time::NEVER { last } else { span.1.ps() };
    (from, to.max(from + 1))
}

/// Returns the requests to draw: all, or none if there are too many.
fn requests_shown(gathered: &Gathered) -> &[Requesting] {
    let rows: BTreeSet<u64> = gathered.requests.iter().map(|requesting| requesting.thread).collect();
    let few = gathered.of_requests == gathered.requests.len() && rows.len() <= MAX_REQUEST_ROWS;
    if few { &gathered.requests } else { &[] }
}

/// Returns the rows, without positions, and notes on what is left out.
fn rows_of(gathered: &Gathered) -> (Vec<Row>, Vec<String>) {
    let requests = requests_shown(gathered);
    let mut numbers: BTreeSet<u64> = requests.iter().map(|requesting| requesting.number).collect();
    numbers.extend(gathered.steps.iter().flat_map(|step| step.requests.iter()));
    let named = numbers.len() > 1;
    let mut rows = request_rows(requests, named);
    let mut notes = Vec::new();
    if requests.len() < gathered.of_requests {
        let count = grouped(gathered.of_requests as u64);
        notes.push(format!("The {count} requests in flight are not shown, because there are too many."));
    }
    let mut channels: BTreeMap<u64, Vec<&Step>> = BTreeMap::new();
    for step in &gathered.steps {
        channels.entry(step.place.channel).or_default().push(step);
    }
    for (channel, steps) in channels {
        rows.extend(channel_rows(channel, &steps, named));
    }
    notes.extend(marks(&gathered.steps, named));
    (rows, notes)
}

/// Returns a note that explains the marks in the labels.
fn marks(steps: &[Step], named: bool) -> Option<String> {
    let has = |mark: &str| steps.iter().any(|step| purpose_of(step, named).contains(mark));
    let all = [("#", "#: request number"), ("RMW", "RMW: read-modify-write"), ("GC", "GC: garbage collection")];
    let reported: Vec<&str> = all.into_iter().filter(|(mark, _)| has(mark)).map(|(_, text)| text).collect();
    (!reported.is_empty()).then(|| format!("{}.", reported.join("; ")))
}

fn row(label: String, depth: u32, content: Content) -> Row {
    Row { label, depth, content, top: 0.0, height: 0.0 }
}

fn request_rows(requests: &[Requesting], named: bool) -> Vec<Row> {
    // Rows are in the order of first arrivals.
    let mut rows: Vec<u64> = Vec::new();
    let mut threads: Vec<Vec<Bar>> = Vec::new();
    for requesting in requests {
        let row = rows.iter().position(|thread| *thread == requesting.thread).unwrap_or_else(|| {
            rows.push(requesting.thread);
            threads.push(Vec::new());
            rows.len() - 1
        });
        let name = words::words(requesting.operation.name());
        let number = if named { format!(" #{}", requesting.number) } else { String::new() };
        let took = exact(requesting.span.1 - requesting.span.0);
        threads[row].push(Bar {
            span: requesting.span,
            class: "request",
            labels: vec![
                vec![format!("{name}{number}: {took}")],
                vec![format!("{name}{number}")],
                vec![number.trim().to_owned()],
            ],
            flag: None,
            reported: format!("request {}, {name}: {}", requesting.number, span_text(requesting.span)),
            op: None,
        });
    }
    let label = |index: usize| if index > 0 { String::new() } else { "host".to_owned() };
    threads.into_iter().enumerate().map(|(index, bars)| row(label(index), 0, Content::Requests(bars))).collect()
}

/// Returns the rows of a channel, its chips and their planes.
fn channel_rows(channel: u64, steps: &[&Step], named: bool) -> Vec<Row> {
    let on_channel = steps.iter().filter(|step| !in_cells(step)).map(|step| bar(step, named)).collect();
    let mut rows = vec![row(format!("channel {channel}"), 0, Content::Channel(on_channel))];
    let places: BTreeSet<Place> = steps.iter().map(|step| step.place).collect();
    let chips: BTreeSet<u32> = places.iter().map(|place| place.chip).collect();
    for chip in chips {
        let of_chip = |step: &&&Step| step.place.chip == chip && in_cells(step);
        let busy = united(steps.iter().filter(of_chip).map(|step| step.span).collect());
        rows.push(row(format!("chip {chip} R/B"), 1, Content::Busy(busy)));
        for place in places.iter().filter(|place| place.chip == chip) {
            let here: Vec<&Step> = steps.iter().filter(|step| step.place == *place).copied().collect();
            let label = format!("die {} plane {}", place.die, place.plane);
            rows.push(row(label, 2, plane_row(&here, named)));
        }
    }
    rows
}

fn plane_row(steps: &[&Step], named: bool) -> Content {
    let cells = steps.iter().filter(|step| in_cells(step)).map(|step| bar(step, named)).collect();
    let moved = steps.iter().filter(|step| matches!(step.sort, Sort::DataIn | Sort::DataOut));
    let register = moved.map(|step| Bar { class: "register", labels: Vec::new(), flag: None, ..bar(step, named) });
    let register = register.collect();
    let mut held: BTreeMap<u64, Span> = BTreeMap::new();
    for step in steps {
        let span = held.entry(step.op).or_insert(step.span);
        *span = (span.0.min(step.span.0), span.1.max(step.span.1));
    }
    Content::Plane { cells, register, held: united(held.into_values().collect()) }
}

fn in_cells(step: &Step) -> bool {
    step.phase == floatgate_core::timeline::Phase::Cell
}

/// Merges spans that overlap or touch.
fn united(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut whole: Vec<Span> = Vec::new();
    for span in spans {
        match whole.last_mut() {
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => whole.push(span),
        }
    }
    whole
}

/// Returns the box of a phase.
fn bar(step: &Step, named: bool) -> Bar {
    let name = step.sort.label().to_owned();
    let purpose = purpose_of(step, named);
    let long = if purpose.is_empty() { name.clone() } else { format!("{name} {purpose}") };
    let took = exact(step.span.1 - step.span.0);
    let took = if step.resumed { format!("{took}, resumed") } else { took };
    let requests = match step.of_requests {
        0 => String::new(),
        1 => format!(" for request {}", step.requests[0]),
        more => format!(" for {more} requests, starting with request {}", step.requests[0]),
    };
    let Place { channel, chip, die, plane } = step.place;
    let page = step.page.map(|page| format!(", page {page}")).unwrap_or_default();
    let reported = format!(
        "{name}, {}{}: {}; {}{requests} (operation {}), channel {channel}, chip {chip}, die {die}, plane {plane}, \
         block {}{page}",
        step.sort.meaning(),
        if step.resumed { ", resumed" } else { "" },
        span_text(step.span),
        words::operation(step.what),
        step.op,
        step.block
    );
    let labels = vec![vec![long.clone(), took], vec![long], vec![name]];
    let flag = Some(step.sort.label());
    Bar { span: step.span, class: step.sort.class(), labels, flag, reported, op: Some(step.op) }
}

/// Returns a short text for the purpose of an operation.
fn purpose_of(step: &Step, named: bool) -> String {
    let numbers: Vec<String> = step.requests.iter().map(|number| format!("#{number}")).collect();
    let rest = step.of_requests - step.requests.len().min(step.of_requests);
    let more = if rest > 0 { format!(" +{rest}") } else { String::new() };
    let numbers = if named { format!("{}{more}", numbers.join(" ")) } else { String::new() };
    let purpose = match step.what {
        "erase" | "host read" | "host write" => "",
        "rmw read" => "RMW",
        what if what.starts_with("GC ") => "GC",
        what if what.contains("merge ") => what.rsplit_once(' ').map_or(what, |(purpose, _)| purpose),
        what => what.split(' ').next().unwrap_or_default(),
    };
    [purpose, &numbers].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn span_text(span: Span) -> String {
    format!("{} to {}", exact(span.0), exact(span.1))
}

/// Returns the marks of the axis, counted from its start, and the title of the axis. There are at most ten marks, at
/// multiples of 1, 2 or 5 times a power of ten.
fn ticks((from, to): Span) -> (Vec<(u64, String)>, String) {
    let span = to - from;
    let steps = (0..19).flat_map(|zeros| [1, 2, 5].map(|digit| digit * 10_u64.pow(zeros)));
    let step = steps.into_iter().find(|step| span / step <= 9).unwrap_or(span);
    let (unit, in_unit) = match span {
        span if span >= 10_000_000_000_000 => ("s", 1_000_000_000_000),
        span if span >= 10_000_000_000 => ("ms", 1_000_000_000),
        span if span >= 2_000_000 => ("us", 1_000_000),
        _ => ("ns", 1_000),
    };
    let ticks = (0..=span / step).map(|index| (from + index * step, decimal(index * step, in_unit))).collect();
    let unit = if from == 0 { format!("time in {unit}") } else { format!("{unit} after {}", exact(from)) };
    (ticks, unit)
}

impl Layout {
    /// Sets the positions of the rows.
    fn stack(&mut self) {
        let mut y = HEAD;
        for (index, row) in self.rows.iter_mut().enumerate() {
            if index > 0 && row.depth == 0 && matches!(row.content, Content::Channel(_)) {
                y += BETWEEN_CHANNELS;
            }
            row.top = y;
            row.height = match row.content {
                Content::Requests(_) => LOW_BOX,
                Content::Channel(_) => FLAG + BOX,
                Content::Busy(_) => SWING,
                Content::Plane { .. } => BOX + STRIP,
            };
            y += row.height + GAP;
        }
        self.bottom = y;
    }

    /// Adds the legend below the axis, and the notes below the legend.
    fn legend(&mut self, gathered: &Gathered, notes: Vec<String>) {
        const MARGIN: f64 = 12.0;
        let entries = entries(gathered, &self.rows);
        let (mut x, mut y) = (MARGIN, self.bottom + 56.0);
        for (mark, name, text) in entries {
            let width = 30.0 + text_width(name, 11.5) + text_width(&text, 11.5) + 24.0;
            if x + width > WIDTH && x > MARGIN {
                (x, y) = (MARGIN, y + LINE);
            }
            self.legend.push(Entry { mark, name, text, x, y });
            x += width;
        }
        self.height = y + 14.0 + LINE * notes.len() as f64;
        self.notes = notes.iter().map(|note| printable(note)).collect();
    }
}

/// Returns the entries of the legend: the kinds of boxes, with their durations.
fn entries(gathered: &Gathered, rows: &[Row]) -> Vec<(Mark, &'static str, String)> {
    let mut sorts: BTreeMap<Sort, BTreeSet<u64>> = BTreeMap::new();
    for step in &gathered.steps {
        sorts.entry(step.sort).or_default().insert(step.span.1 - step.span.0);
    }
    let mut entries = Vec::new();
    for (sort, spans) in sorts {
        let spans: Vec<String> = match spans.len() {
            1..=3 => spans.into_iter().map(exact).collect(),
            _ => {
                let ends = [spans.first(), spans.last()].map(|end| exact(end.copied().unwrap_or(0)));
                vec![ends.join(" to ")]
            }
        };
        let text = format!("{}, {}", sort.meaning(), spans.join(", "));
        entries.push((Mark::Box(sort.class()), sort.label(), text));
    }
    let has = |is: fn(&Content) -> bool| rows.iter().any(|row| is(&row.content));
    if has(|content| matches!(content, Content::Busy(busy) if !busy.is_empty())) {
        entries.push((Mark::Swing, "R/B", "low while cells of the chip work".to_owned()));
    }
    if has(|content| matches!(content, Content::Plane { register, .. } if !register.is_empty())) {
        entries.push((Mark::Strip, "register", "transfers data".to_owned()));
    }
    if has(|content| matches!(content, Content::Plane { .. })) {
        entries.push((Mark::Line, "held", "from the first phase of an operation to its last".to_owned()));
    }
    entries
}

/// Estimates the width of a text in the widest of the style sheet's fonts.
pub fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        ' ' | '.' | ',' | ':' | ';' | 'i' | 'j' | 'l' | 't' | 'f' | 'I' | '/' | '(' | ')' => 0.33,
        'm' | 'w' | 'M' | 'W' => 0.9,
        'A'..='Z' | '#' => 0.76,
        _ => 0.6,
    };
    text.chars().map(width).sum::<f64>() * size
}

/// Describes the boxes of each row as text, for screen readers.
fn describe(layout: &Layout) -> String {
    let mut text = String::new();
    for row in &layout.rows {
        let (bars, spans): (&[Bar], &[Span]) = match &row.content {
            Content::Requests(bars) | Content::Channel(bars) => (bars, &[]),
            Content::Plane { cells, .. } => (cells, &[]),
            Content::Busy(busy) => (&[], busy),
        };
        let label = if row.label.is_empty() { "host" } else { &row.label };
        let name = |bar: &Bar| bar.labels.iter().rev().nth(1).map(|label| label.join(" ")).unwrap_or_default();
        let bars = bars.iter().map(|bar| format!("{} {}", name(bar), span_text(bar.span)));
        let all: Vec<String> = bars.chain(spans.iter().map(|span| format!("busy {}", span_text(*span)))).collect();
        let all = if all.is_empty() { "nothing".to_owned() } else { all.join("; ") };
        text.push_str(&format!("{label}: {all}. "));
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_marks() {
        let marks = |span| {
            let (ticks, unit) = ticks(span);
            (ticks.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>().join(" "), unit)
        };
        let us = |us: u64| us * 1_000_000;
        assert_eq!(marks((0, us(251))), ("0 50 100 150 200 250".to_owned(), "time in us".to_owned()));
        assert_eq!(marks((us(5), us(5) + 1_700_000)).0, "0 200 400 600 800 1000 1200 1400 1600");
        assert_eq!(marks((us(5), us(6))).1, "ns after 5 us");
        assert_eq!(marks((0, us(15_000))), ("0 2 4 6 8 10 12 14".to_owned(), "time in ms".to_owned()));
        assert_eq!(marks((7, 8)), ("0 0.001".to_owned(), "ns after 0.007 ns".to_owned()));
        let (ticks, _) = super::ticks((0, u64::MAX));
        assert!(ticks.len() < 12, "{ticks:?}");
    }

    #[test]
    fn spans_are_united() {
        assert_eq!(united(vec![(5, 7), (0, 2), (2, 3), (6, 6)]), [(0, 3), (5, 7)]);
        assert_eq!(rounded(2_345_678.9), 2_300_000);
        assert_eq!((rounded(0.5), rounded(7.0), rounded(12.0)), (0, 7, 12));
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a\u{1}b\tc & <d>"), "a\u{fffd}b\u{fffd}c & <d>");
    }
}
