//! Screen of `floatgate top`: layout, counters, curves and block map.

use std::collections::VecDeque;

use floatgate_report::number::{bytes, grouped, short, time};
use floatgate_serve::monitor::blocks::{BlockMap, FREE};
use floatgate_serve::monitor::frame::{Client, Flash, Frame, Info};

use super::screen::{Area, BOLD, PLAIN, REVERSED, Screen, Style};
use super::source::News;

/// Number of frames kept for the curves: as many as a wide terminal can show.
const MAX_FRAMES: usize = 400;

/// Operations, in the order in which the key `o` selects them.
const OPERATIONS: [&str; 5] = ["read", "write", "trim", "write_zeroes", "flush"];

/// Smallest width at which the table and the counters are next to each other.
const WIDE: usize = 120;

/// Smallest width of a curve with its title.
const NARROWEST: usize = 19;

/// Maximum number of clients that are named.
const CLIENTS: usize = 4;

/// Block property that the block map shows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Kind,
    Valid,
    Erases,
    Writes,
    Age,
}

impl Mode {
    const ALL: [Mode; 5] = [Mode::Kind, Mode::Valid, Mode::Erases, Mode::Writes, Mode::Age];

    fn name(self) -> &'static str {
        match self {
            Mode::Kind => "kind",
            Mode::Valid => "valid share",
            Mode::Erases => "erases",
            Mode::Writes => "units written",
            Mode::Age => "time since erase",
        }
    }
}

/// Style of alerts: bold and white on red.
const ALARMING: Style = "1;37;41";

/// Returns the symbol of a kind of block, and its color.
fn symbol_of(kind: &str) -> (char, Style) {
    match kind {
        "free" => ('.', PLAIN),
        "data" => ('░', PLAIN),
        "awaiting erase" => ('a', "90"),
        "bad" => ('B', "31"),
        "target of a full merge" => ('T', "35"),
        "sequential log" => ('S', "34"),
        "cold log" => ('C', "36"),
        "hot log" => ('H', "91"),
        other => (other.chars().next().unwrap_or('?').to_ascii_uppercase(), "33"),
    }
}

/// State of the screen.
#[derive(Default)]
pub struct View {
    info: Info,
    frames: VecDeque<Frame>,
    blocks: BlockMap,
    operation: usize,
    mode: usize,
    paused: bool,
}

impl View {
    /// Updates the state. Returns `true` if the screen changes.
    pub fn take(&mut self, news: News) -> bool {
        match news {
            News::Info(info) => self.info = *info,
            _ if self.paused => return false,
            News::Frame(frame) => {
                if self.frames.len() == MAX_FRAMES {
                    self.frames.pop_front();
                }
                self.frames.push_back(*frame);
            }
            News::Blocks(blocks) => self.blocks = *blocks,
            News::Ended(_) => return false,
        }
        true
    }

    /// Handles a key. Returns `true` if the screen changes.
    pub fn key(&mut self, key: char) -> bool {
        match key {
            'o' => self.operation = (self.operation + 1) % OPERATIONS.len(),
            'b' => self.mode = (self.mode + 1) % self.modes().len(),
            'p' => self.paused = !self.paused,
            _ => return false,
        }
        true
    }

    /// Draws the screen. If there is not enough room, less important parts are omitted first.
    pub fn draw(&self, screen: &mut Screen) {
        let area = screen.area();
        let Some(frame) = self.frames.back() else {
            return screen.text(area, &[" waiting for the server ...".to_owned()], PLAIN);
        };
        let width = area.width;
        let alerts = alerts(frame, width.saturating_sub(2));
        let is_wide = width >= WIDE;
        let left = if is_wide { width * 3 / 5 } else { 0 };
        let (table, facts) = if is_wide {
            (table(frame, left - 3), packed(&facts(frame), width - left - 3))
        } else {
            (table(frame, width.saturating_sub(2)), packed(&facts(frame), width.saturating_sub(2)))
        };
        // A wide screen has frames around the table and the counters.
        let figures = if is_wide { table.len().max(facts.len()) + 2 } else { table.len() + facts.len() };
        let rows = Rows::new(area.height, alerts.len(), figures);
        let [head, alert, mut top, curves, mut busy, map, foot] = rows.areas(area);
        screen.text(head, &[self.head(frame, width)], BOLD);
        screen.text(alert, &indented(alerts), ALARMING);
        if is_wide {
            let inner = screen.frame(top.cut_columns(left), "Requests");
            screen.text(inner, &indented(table), PLAIN);
            let inner = screen.frame(top, "Flash and host");
            screen.text(inner, &indented(facts), PLAIN);
        } else {
            screen.text(top, &indented(table.into_iter().chain(facts).collect()), PLAIN);
        }
        self.curves(screen, curves);
        let titles =
            if is_wide { ["Channels: data and commands", "Dies: cells busy, or held"] } else { ["Channels", "Dies"] };
        bars(screen, busy.cut_columns(busy.width / 4), titles[0], &frame.channels);
        bars(screen, busy, titles[1], &frame.dies);
        let inner = screen.frame(map, &self.map_title(width));
        self.map(screen, inner);
        screen.text(foot, &[" q quit   o operation   b blocks   p pause".to_owned()], REVERSED);
    }

    /// Returns the title line: the device and its time, as far as there is room.
    fn head(&self, frame: &Frame, width: usize) -> String {
        let mut parts = vec![self.info.device.clone()];
        parts.extend(self.paused.then(|| "PAUSED".to_owned()));
        parts.push(frame.speed.map_or("as fast as possible".to_owned(), |speed| format!("speed {speed}")));
        parts.push(format!("up {:.0} s", frame.wall_s));
        parts.push(format!("simulated {:.2} s", frame.simulated_s));
        parts.push(bytes(self.info.logical_bytes));
        let line = packed(&parts, width.saturating_sub(2)).into_iter().next().unwrap_or_default();
        format!(" {line}")
    }

    fn curves(&self, screen: &mut Screen, mut area: Area) {
        type Of<'a> = &'a dyn Fn(&Frame) -> Option<f64>;
        let operation = OPERATIONS[self.operation];
        let latency = move |frame: &Frame| frame.requests.get(operation).and_then(|requests| requests.p99_us);
        let last = |of: Of| self.frames.back().and_then(of);
        let (iops, mib) = (|frame: &Frame| Some(frame.all().1), |frame: &Frame| Some(frame.all().2));
        let late = |frame: &Frame| frame.lateness.p99_us;
        let us = |value: Option<f64>| value.map_or("-".to_owned(), time);
        let number = |value: Option<f64>| value.map_or("-".to_owned(), short);
        let name = if operation == "write_zeroes" { "zeroes" } else { operation };
        let mut all: Vec<(String, Of)> = vec![
            (format!("IOPS {}", number(last(&iops))), &iops),
            (format!("MiB/s {}", number(last(&mib))), &mib),
            (format!("p99 {name} {}", us(last(&latency))), &latency),
            (format!("p99 late {}", us(last(&late))), &late),
        ];
        // Titles must fit. The lateness is also among the counters, so that its curve can be omitted.
        all.truncate(if area.width < 4 * NARROWEST { 3 } else { 4 });
        let count = all.len();
        for (index, (title, of)) in all.into_iter().enumerate() {
            let area = area.cut_columns(area.width / (count - index));
            let inner = screen.frame(area, &title);
            let skipped = self.frames.len().saturating_sub(inner.width);
            let values = self.frames.iter().skip(skipped).map(|frame| of(frame).unwrap_or_default());
            screen.bars(inner, values.clone(), values.fold(0.0, f64::max));
        }
    }

    /// Returns the properties that the block map can show. Kinds come first, if there are any.
    fn modes(&self) -> &'static [Mode] {
        if self.info.block_kinds.is_empty() { &Mode::ALL[1..] } else { &Mode::ALL }
    }

    fn mode(&self) -> Mode {
        self.modes()[self.mode % self.modes().len()]
    }

    /// Returns the title of the block map: the property, and the meaning of the symbols as far as there is room.
    fn map_title(&self, width: usize) -> String {
        let mode = self.mode();
        if mode != Mode::Kind {
            return format!("Blocks by {} (C collected, e erased, . free)", mode.name());
        }
        let count = |kind: usize| self.blocks.blocks_of_kind.get(kind).copied().unwrap_or(0);
        let kinds = self.info.block_kinds.iter().enumerate().rev();
        let told: Vec<String> = kinds.map(|(at, kind)| format!("{} {kind} {}", symbol_of(kind).0, count(at))).collect();
        let line = packed(&told, width.saturating_sub(20)).into_iter().next().unwrap_or_default();
        format!("Blocks by kind: {line}")
    }

    /// Draws the block map. Each character shows the mean of the cells at its position.
    fn map(&self, screen: &mut Screen, area: Area) {
        let Area { width, height, .. } = area;
        let cells = self.blocks.valid.len();
        if cells == 0 || width == 0 || height == 0 {
            return screen.text(area, &[" waiting for the block map ...".to_owned()], PLAIN);
        }
        let (rows, columns) = (self.blocks.rows as usize, self.blocks.columns as usize);
        // If there are more rows than lines, several rows share a line. Otherwise, a row can have several lines.
        let rows_per_line = rows.div_ceil(height).max(1);
        let lines_per_row = if rows_per_line > 1 { 1 } else { (height / rows.max(1)).max(1) };
        let each = columns.div_ceil(width * lines_per_row).max(1);
        let values = self.values();
        let known = || values.iter().flatten().copied();
        let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
        let (low, high) = if self.mode() == Mode::Valid { (0.0, 100.0) } else { (low.min(high), high) };
        let symbol = |row: usize, column: usize| {
            let last = (row + rows_per_line).min(rows);
            let cells =
                || (row..last).flat_map(|row| (column..(column + each).min(columns)).map(move |c| row * columns + c));
            if self.mode() == Mode::Kind {
                let kind = cells().filter_map(|cell| self.blocks.kinds.get(cell)).max().copied().unwrap_or_default();
                return symbol_of(self.info.block_kinds.get(usize::from(kind)).map_or("", |name| name));
            }
            let marks = cells().filter_map(|cell| self.blocks.marks.get(cell)).fold(0, |all, mark| all | mark);
            let there: Vec<f64> = cells().filter_map(|cell| *values.get(cell)?).collect();
            let mean = there.iter().sum::<f64>() / there.len().max(1) as f64;
            let shade = if high > low { (mean - low) / (high - low) } else { 0.5 };
            match (marks & 2 != 0, marks & 4 != 0, there.is_empty()) {
                (true, ..) => ('C', "1;31"),
                (_, true, _) => ('e', BOLD),
                (.., true) => ('.', PLAIN),
                _ => (['░', '▒', '▓', '█'][((shade * 4.0) as usize).min(3)], PLAIN),
            }
        };
        let starts: Vec<usize> = (0..columns).step_by(each).collect();
        let lines = (0..rows).step_by(rows_per_line).flat_map(|row| starts.chunks(width).map(move |line| (row, line)));
        for (at, (row, line)) in lines.enumerate() {
            line.iter().enumerate().for_each(|(place, column)| screen.put(area, at, place, symbol(row, *column)));
        }
    }

    /// Returns the selected property of each cell. `None` for a cell without that property.
    fn values(&self) -> Vec<Option<f64>> {
        let blocks = &self.blocks;
        match self.mode() {
            Mode::Kind => Vec::new(),
            Mode::Valid => blocks.valid.iter().map(|share| (*share != FREE).then_some(f64::from(*share))).collect(),
            Mode::Erases => blocks.erases.iter().map(|erases| Some(f64::from(*erases))).collect(),
            Mode::Writes => blocks.writes.iter().map(|units| Some(f64::from(*units))).collect(),
            Mode::Age => blocks.age_s.iter().map(|age| (*age >= 0.0).then_some(f64::from(*age))).collect(),
        }
    }
}

/// Heights of the parts: title, alerts, counters, curves, busy times, block map, and key help.
struct Rows([usize; 7]);

impl Rows {
    /// Divides `height` rows. Charts get the rows that alerts and counters leave.
    fn new(height: usize, alerts: usize, figures: usize) -> Rows {
        let left = height.saturating_sub(2 + alerts + figures);
        let map = left.min(4) + left.saturating_sub(14);
        let busy = match left - map {
            less @ 0..5 => less.saturating_sub(3),
            more => (more / 2).min(4),
        };
        Rows([1, alerts, figures, left - map - busy, busy, map, 1])
    }

    /// Returns the areas of the parts. If the screen is too small, the last row still shows the keys.
    fn areas(&self, mut screen: Area) -> [Area; 7] {
        let mut parts = screen.cut_rows(screen.height.saturating_sub(1));
        let [head, alert, top, curves, busy, map, _] = self.0.map(|rows| parts.cut_rows(rows));
        [head, alert, top, curves, busy, map, screen]
    }
}

fn indented(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!(" {line}")).collect()
}

/// Joins parts to lines of at most `width` characters. A part that does not fit starts the next line.
fn packed(parts: &[String], width: usize) -> Vec<String> {
    const GAP: &str = "   ";
    let mut lines: Vec<String> = Vec::new();
    for part in parts.iter().flat_map(|part| broken(part, width)) {
        let length = part.chars().count();
        match lines.last_mut().filter(|line| line.chars().count() + GAP.len() + length <= width) {
            Some(line) => *line = format!("{line}{GAP}{part}"),
            None => lines.push(part),
        }
    }
    lines
}

/// Breaks a text between words into lines of at most `width` characters.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns the alerts: a fatal error, the preparation, read-only mode, and warnings.
fn alerts(frame: &Frame, width: usize) -> Vec<String> {
    let preparing = frame.preparing.as_ref().map(|preparing| format!("not served yet: {preparing}"));
    let is_told = frame.warnings.iter().any(|warning| warning.contains("read-only"));
    let read_only = (frame.flash.read_only && !is_told).then_some("the device no longer accepts writes".to_owned());
    let mark = if frame.flash.read_only { "READ-ONLY: " } else { "" };
    let reported =
        frame.fatal_error.iter().cloned().chain(preparing).chain(read_only).chain(frame.warnings.iter().cloned());
    let text = reported.collect::<Vec<_>>().join("; ");
    broken(&format!("{mark}{text}"), width)
}

/// Returns the table of requests by operation. If it is too wide, the least important columns are omitted.
fn table(frame: &Frame, width: usize) -> Vec<String> {
    /// Columns in the order in which they are omitted.
    const LEFT_OUT: [usize; 4] = [3, 6, 4, 2];
    let us = |value: Option<f64>| value.map_or("-".to_owned(), time);
    let head = ["", "requests", "IOPS", "MiB/s", "p50", "p99", "max", "errors"].map(str::to_owned);
    let row = |name: &&str| {
        let r = frame.requests.get(*name).cloned().unwrap_or_default();
        let (count, errors) = (grouped(r.count), grouped(r.errors));
        let rates = [short(r.iops), short(r.mib_per_s)];
        let [iops, mib] = rates;
        [name.replace('_', " "), count, iops, mib, us(r.p50_us), us(r.p99_us), us(r.max_us), errors]
    };
    let rows: Vec<[String; 8]> = [head].into_iter().chain(OPERATIONS.iter().map(row)).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut columns: Vec<usize> = (0..8).collect();
    let mut left_out = LEFT_OUT.iter();
    while columns.iter().map(|column| widest(*column) + 2).sum::<usize>() > width + 2 {
        let Some(least) = left_out.next() else { break };
        columns.retain(|column| column != least);
    }
    let room = width + 2 - columns.iter().map(|column| widest(*column) + 2).sum::<usize>().min(width + 2);
    let more = (room / columns.len()).min(3);
    let cell = |row: &[String; 8], column: usize| match column {
        0 => format!("{:<width$}", row[0], width = widest(0)),
        _ => format!("{:>width$}", row[column], width = widest(column) + 2 + more),
    };
    rows.iter().map(|row| columns.iter().map(|column| cell(row, *column)).collect()).collect()
}

/// Returns the counters, the most important first.
fn facts(frame: &Frame) -> Vec<String> {
    let (flash, late) = (&frame.flash, &frame.lateness);
    let number = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let verdict = match late.faithful {
        None => "",
        Some(true) => ", faithful",
        Some(false) => ", NOT FAITHFUL",
    };
    let share = late.share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let p99 = late.p99_us.map(|p99| format!(", p99 {}", time(p99))).unwrap_or_default();
    let sectors = |name: &str| frame.requests.get(name).map_or(0, |requests| requests.sectors);
    let mut facts = failed(flash);
    facts.extend([
        format!("late {share}{p99}{verdict}"),
        format!("outstanding {}, mean {}", frame.outstanding, short(frame.queue_mean)),
        format!(
            "write amplification {}, now {}",
            number(flash.statistics.derived.write_amplification),
            number(flash.write_amplification_now)
        ),
        format!(
            "reads {} of requests, mean size {}",
            frame.mix.read_share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
            frame.mix.mean_bytes.map_or("-".to_owned(), |size| bytes(size as u64))
        ),
    ]);
    if flash.merges.is_empty() {
        facts.push(format!("GC victims {}", grouped(flash.statistics.counters.victims)));
    }
    facts.extend(merges(flash));
    facts.extend([
        format!("erases {}", grouped(flash.statistics.counters.blocks_erased)),
        format!("free blocks {}", grouped(flash.statistics.derived.free_blocks)),
        format!("units moved {}", grouped(flash.statistics.derived.units_moved)),
        format!("trimmed {}", grouped(flash.statistics.counters.units_trimmed)),
        format!("sectors read {}", grouped(sectors("read"))),
        format!("written {}", grouped(sectors("write"))),
    ]);
    facts.push(format!("clients {}", frame.clients.len()));
    facts.extend(frame.clients.iter().take(CLIENTS).map(client));
    facts
}

/// Returns the counters of merges and log blocks.
fn merges(flash: &Flash) -> Vec<String> {
    let now = |kind: &str| flash.merges_per_s.get(kind).copied().unwrap_or_default();
    let each = flash.merges.iter().map(|(kind, n)| format!("{kind} merges {}, {}/s", grouped(*n), short(now(kind))));
    let mut merges: Vec<String> = each.collect();
    if let Some(logs) = &flash.log_blocks {
        let [all, now] = [logs.associativity, logs.associativity_now].map(|mean| mean.map_or("-".to_owned(), short));
        merges.push(format!("associativity {all}, now {now}"));
        let writes = logs.writes.iter().map(|(kind, units)| format!("{kind} {}", short(*units as f64)));
        merges.push(format!("units to logs: {}", writes.collect::<Vec<_>>().join(", ")));
    }
    merges
}

/// Describes a client in a few words.
fn client(client: &Client) -> String {
    let name = client.process.as_deref().unwrap_or(&client.address);
    let pid = client.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    let late = (client.turns > 0).then(|| format!(", {} of {} late", client.late_turns, client.turns));
    format!("{name}{pid} ({} outstanding{})", client.in_progress, late.unwrap_or_default())
}

/// Returns the counters of failures that are not 0.
fn failed(flash: &Flash) -> Vec<String> {
    let counts = [
        ("bad blocks", flash.statistics.derived.bad_blocks),
        ("failed programs", flash.statistics.counters.faults.programs_failed),
        ("failed erases", flash.statistics.counters.faults.erases_failed),
        ("uncorrectable reads", flash.statistics.derived.uncorrectable_reads),
    ];
    let some = counts.iter().filter(|(_, count)| *count > 0);
    some.map(|(name, count)| format!("{name} {}", grouped(*count))).collect()
}

/// Draws a bar for each channel or die: its busy share.
fn bars(screen: &mut Screen, area: Area, title: &str, shares: &[[f32; 2]]) {
    let inner = screen.frame(area, title);
    let width = inner.width.max(1);
    let each = shares.len().div_ceil(width).max(1);
    // If there is room, each bar is up to 4 columns wide.
    let columns = (width / shares.len().div_ceil(each).max(1)).clamp(1, 4);
    let busy = |shares: &[[f32; 2]]| shares.iter().map(|share| share[0] + share[1]).sum::<f32>() / shares.len() as f32;
    let values = shares.chunks(each).flat_map(|shares| std::iter::repeat_n(f64::from(busy(shares)), columns));
    screen.bars(inner, values, 1.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_serve::monitor::frame::{LogBlocks, Mix, Preparing};

    fn drawn(view: &View, width: usize, height: usize) -> String {
        let mut screen = Screen::new(width, height);
        view.draw(&mut screen);
        let row = |row: &[(char, Style)]| row.iter().map(|(symbol, _)| *symbol).collect::<String>();
        screen.rows().map(row).collect::<Vec<_>>().join("\n")
    }

    fn view() -> View {
        let mut view = View::default();
        view.take(News::Info(Box::new(Info { device: "tiny".to_owned(), logical_bytes: 1 << 20, ..Info::default() })));
        let mut frame = Frame { outstanding: 7, dies: vec![[0.5, 0.25]; 8], ..Frame::default() };
        frame.requests.entry("read".to_owned()).or_default().count = 1234;
        frame.flash.statistics.counters.victims = 42;
        view.take(News::Frame(Box::new(frame)));
        let blocks = BlockMap {
            rows: 1,
            columns: 4,
            valid: vec![100, 0, FREE, 50],
            erases: vec![0, 1, 2, 3],
            age_s: vec![-1.0; 4],
            free: vec![0, 0, 100, 0],
            marks: vec![0, 0, 0, 2],
            ..BlockMap::default()
        };
        view.take(News::Blocks(Box::new(blocks)));
        view
    }

    #[test]
    fn counters_are_shown_and_keys_work() {
        let mut view = view();
        let shown = drawn(&view, 120, 40);
        for text in ["tiny", "1 MiB", "1,234 ", "GC victims 42", "outstanding 7", "q quit", "Blocks by valid", "█░.C"]
        {
            assert!(shown.contains(text), "{text}:\n{shown}");
        }
        assert!(view.key('b') && view.key('o') && !view.key('x'));
        let shown = drawn(&view, 120, 40);
        assert!(shown.contains("Blocks by erases") && shown.contains("p99 write"), "{shown}");
        assert!(view.key('p'));
        assert!(!view.take(News::Frame(Box::default())), "nothing changes while it is paused");
        assert!(drawn(&view, 120, 40).contains("PAUSED"));
    }

    /// Returns a device with large counters and many failures.
    fn worst() -> View {
        let mut view = view();
        let mut frame = view.frames.pop_back().unwrap();
        for (index, name) in OPERATIONS.iter().enumerate() {
            let r = frame.requests.entry((*name).to_owned()).or_default();
            (r.count, r.errors, r.iops, r.mib_per_s) = (123_456_780 + index as u64, 8598, 123_456.0, 1234.5);
            (r.p50_us, r.p99_us, r.max_us) = (Some(220.5), Some(1234.5), Some(123_456.7));
        }
        let flash = &mut frame.flash;
        (flash.read_only, flash.statistics.derived.bad_blocks, flash.statistics.counters.faults.programs_failed) =
            (true, 1024, 17);
        (flash.statistics.counters.faults.erases_failed, flash.statistics.derived.uncorrectable_reads) = (513, 77);
        frame.warnings =
            vec!["the device is read-only since 12.345 s, because too many of its blocks are bad".to_owned()];
        let client = Client { process: Some("qemu-system-x86".to_owned()), pid: Some(12345), ..Client::default() };
        frame.clients = vec![client; 2];
        view.take(News::Frame(Box::new(frame)));
        view
    }

    #[test]
    fn nothing_important_is_cut_off_in_a_small_terminal() {
        for (width, height) in [(60, 24), (80, 24), (100, 30), (120, 40), (200, 50)] {
            let shown = drawn(&worst(), width, height);
            for name in [0, 1, 2, 3, 4] {
                assert!(shown.contains(&grouped(123_456_780 + name)), "{name} at {width}:\n{shown}");
            }
            let text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in
                ["READ-ONLY", "of its blocks are bad", "bad blocks 1,024", "failed programs 17", "failed erases 513"]
            {
                let is_there = text.contains(part);
                assert!(is_there, "{part} at {width}x{height}:\n{shown}");
            }
            for part in ["uncorrectable reads 77", "8,598", "1,235 us", "clients 2", "qemu-system-x86 12345", "q quit"]
            {
                assert!(shown.contains(part), "{part} at {width}x{height}:\n{shown}");
            }
        }
    }

    #[test]
    fn log_blocks_are_shown_by_kind() {
        let mut view = view();
        let kinds = ["free", "awaiting erase", "data", "bad", "target of a full merge", "sequential log", "random log"];
        view.info.block_kinds = kinds.map(str::to_owned).into();
        (view.blocks.kinds, view.blocks.blocks_of_kind) = (vec![2, 5, 0, 6], vec![1, 0, 1, 0, 0, 1, 1]);
        view.blocks.writes = vec![0, 10, 20, 40];
        let mut frame = view.frames.pop_back().unwrap();
        frame.mix = Mix { read_share: Some(0.7), mean_bytes: Some(6144.0), ..Mix::default() };
        frame.flash.merges = [("full".to_owned(), 12)].into();
        frame.flash.merges_per_s = [("full".to_owned(), 3.0)].into();
        frame.flash.log_blocks = Some(LogBlocks { associativity: Some(2.5), ..LogBlocks::default() });
        view.take(News::Frame(Box::new(frame)));
        let shown = drawn(&view, 140, 40);
        for text in [
            "Blocks by kind: R random log 1   S sequential log 1",
            "░S.R",
            "full merges 12, 3.000/s",
            "associativity 2.500, now -",
            "reads 70 % of requests, mean size 6 KiB",
        ] {
            assert!(shown.contains(text), "{text}:\n{shown}");
        }
        assert!(!shown.contains("GC victims"), "{shown}");
        for mode in ["valid share", "erases", "units written", "time since erase", "kind"] {
            view.key('b');
            assert!(drawn(&view, 140, 40).contains(&format!("Blocks by {mode}")), "{mode}");
        }
    }

    #[test]
    fn the_progress_of_preparation_is_shown() {
        let mut view = View::default();
        let preparing = Some(Preparing { what: "filling the device".to_owned(), share: Some(0.42) });
        view.take(News::Frame(Box::new(Frame { preparing, ..Frame::default() })));
        assert!(drawn(&view, 60, 24).contains("not served yet: filling the device, 42 %"));
    }

    #[test]
    fn terminals_of_any_size_work() {
        for (width, height) in [(1, 1), (10, 3), (40, 12), (80, 24), (300, 100)] {
            drawn(&view(), width, height);
            drawn(&worst(), width, height);
            drawn(&View::default(), width, height);
        }
    }
}
