//! What `floatgate top` draws.

use std::collections::VecDeque;

use floatgate_report::number::{bytes, grouped, short, time};
use floatgate_serve::monitor::blocks::{BlockMap, FREE};
use floatgate_serve::monitor::frame::{Flash, Frame, Info};
use ratatui::Frame as Screen;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Sparkline, Table};

use super::source::News;

/// Frames that are kept for the curves: as many as a wide terminal shows.
const MOST: usize = 400;

/// Operations, in the order in which `o` goes through them.
const OPERATIONS: [&str; 5] = ["read", "write", "trim", "write_zeroes", "flush"];

/// What blocks are told apart by.
const MODES: [&str; 3] = ["valid share", "erases", "time since erase"];

/// What is shown.
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
    /// Takes what has come; whether that changes the picture.
    pub fn take(&mut self, news: News) -> bool {
        match news {
            News::Info(info) => self.info = *info,
            _ if self.paused => return false,
            News::Frame(frame) => {
                if self.frames.len() == MOST {
                    self.frames.pop_front();
                }
                self.frames.push_back(*frame);
            }
            News::Blocks(blocks) => self.blocks = *blocks,
            News::Ended(_) => return false,
        }
        true
    }

    /// A key was pressed; whether that changes the picture.
    pub fn key(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('o') => self.operation = (self.operation + 1) % OPERATIONS.len(),
            KeyCode::Char('b') => self.mode = (self.mode + 1) % MODES.len(),
            KeyCode::Char('p') => self.paused = !self.paused,
            _ => return false,
        }
        true
    }

    /// Draws all of it into whatever room there is.
    pub fn draw(&self, screen: &mut Screen) {
        let [head, top, curves, busy, map, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(8),
            Constraint::Length(6),
            Constraint::Length(4),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(screen.area());
        let help = " q quit   o operation of the latency   b what blocks are told apart by   p pause";
        let wrong = self.frames.back().and_then(|frame| frame.trouble.as_ref().or(frame.warnings.first()));
        let said = wrong.map_or(help.to_owned(), |what| format!(" {what}"));
        screen.render_widget(Paragraph::new(said).style(Style::new().add_modifier(Modifier::REVERSED)), foot);
        let Some(frame) = self.frames.back() else {
            return screen.render_widget(
                Paragraph::new(" waiting for the server, which may be filling or recovering its device ..."),
                head,
            );
        };
        screen.render_widget(self.head(frame), head);
        let [left, right] = Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(top);
        screen.render_widget(requests(frame), left);
        screen.render_widget(Paragraph::new(counts(frame)).block(framed("Flash and host")), right);
        self.curves(screen, curves);
        let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(3)]).areas(busy);
        screen.render_widget(bars("Channels: data and commands", &frame.channels, left), left);
        screen.render_widget(bars("Dies: cells work, or held", &frame.dies, right), right);
        let title = format!("Blocks by {} (C being cleaned, e just erased, . free)", MODES[self.mode]);
        let lines = self.map(map.width.saturating_sub(2).into(), map.height.saturating_sub(2).into());
        screen.render_widget(Paragraph::new(lines).block(framed(title)), map);
    }

    fn head(&self, frame: &Frame) -> Paragraph<'_> {
        let pace = frame.speed.map_or("as fast as it can".to_owned(), |speed| format!("speed {speed}"));
        let paused = if self.paused { "   PAUSED" } else { "" };
        let text = format!(
            " {}   {}   up {:.0} s   simulated {:.2} s   {pace}{paused}",
            self.info.device,
            bytes(self.info.logical_bytes),
            frame.wall_s,
            frame.simulated_s
        );
        Paragraph::new(text).style(Style::new().add_modifier(Modifier::BOLD))
    }

    fn curves(&self, screen: &mut Screen, area: Rect) {
        type Of<'a> = &'a dyn Fn(&Frame) -> Option<f64>;
        let operation = OPERATIONS[self.operation];
        let latency = move |frame: &Frame| frame.requests.get(operation).and_then(|requests| requests.p99_us);
        let last = |of: Of| self.frames.back().and_then(of);
        let (iops, mib) = (|frame: &Frame| Some(frame.all().1), |frame: &Frame| Some(frame.all().2));
        let late = |frame: &Frame| frame.lateness.p99_us;
        let us = |value: Option<f64>| value.map_or("-".to_owned(), time);
        let number = |value: Option<f64>| value.map_or("-".to_owned(), short);
        let name = operation.replace('_', " ");
        let all: [(String, Of); 4] = [
            (format!("IOPS {}", number(last(&iops))), &iops),
            (format!("MiB/s {}", number(last(&mib))), &mib),
            (format!("p99 of {name} {}", us(last(&latency))), &latency),
            (format!("p99 lateness {}", us(last(&late))), &late),
        ];
        let areas = Layout::horizontal([Constraint::Fill(1); 4]).split(area);
        for ((title, of), area) in all.into_iter().zip(areas.iter()) {
            let width = usize::from(area.width.saturating_sub(2));
            let skipped = self.frames.len().saturating_sub(width);
            // In thousandths, for bars are of whole numbers.
            let data = self.frames.iter().skip(skipped).map(|frame| of(frame).map(|value| (value * 1e3) as u64));
            let data: Vec<u64> = data.map(Option::unwrap_or_default).collect();
            screen.render_widget(Sparkline::default().data(data).block(framed(title)), *area);
        }
    }

    /// The block map in characters: each stands for the cells that fall into its place.
    fn map(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let cells = self.blocks.valid.len();
        if cells == 0 || width == 0 || height == 0 {
            return vec![Line::from(" waiting for a picture of the blocks ...")];
        }
        let (rows, columns) = (self.blocks.rows as usize, self.blocks.columns as usize);
        // Rows of many planes share a line; those of few get several.
        let rows_per_line = rows.div_ceil(height).max(1);
        let lines_per_row = if rows_per_line > 1 { 1 } else { (height / rows.max(1)).max(1) };
        let each = columns.div_ceil(width * lines_per_row).max(1);
        let values = self.values();
        let known = || values.iter().flatten().copied();
        let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
        let (low, high) = if self.mode == 0 { (0.0, 100.0) } else { (low.min(high), high) };
        let symbol = |row: usize, column: usize| {
            let last = (row + rows_per_line).min(rows);
            let cells =
                || (row..last).flat_map(|row| (column..(column + each).min(columns)).map(move |c| row * columns + c));
            let marks = cells().filter_map(|cell| self.blocks.marks.get(cell)).fold(0, |all, mark| all | mark);
            let there: Vec<f64> = cells().filter_map(|cell| *values.get(cell)?).collect();
            let mean = there.iter().sum::<f64>() / there.len().max(1) as f64;
            let shade = if high > low { (mean - low) / (high - low) } else { 0.5 };
            match (marks & 2 != 0, marks & 4 != 0, there.is_empty()) {
                (true, ..) => Span::styled("C", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)),
                (_, true, _) => Span::styled("e", Style::new().add_modifier(Modifier::BOLD)),
                (.., true) => Span::raw("."),
                _ => Span::raw(["░", "▒", "▓", "█"][((shade * 4.0) as usize).min(3)]),
            }
        };
        let starts: Vec<usize> = (0..columns).step_by(each).collect();
        let lines = (0..rows).step_by(rows_per_line).flat_map(|row| starts.chunks(width).map(move |line| (row, line)));
        lines.map(|(row, line)| Line::from_iter(line.iter().map(|column| symbol(row, *column)))).collect()
    }

    /// What the cells are told apart by; none of those that have no such thing.
    fn values(&self) -> Vec<Option<f64>> {
        let blocks = &self.blocks;
        match self.mode {
            0 => blocks.valid.iter().map(|share| (*share != FREE).then_some(f64::from(*share))).collect(),
            1 => blocks.erases.iter().map(|erases| Some(f64::from(*erases))).collect(),
            _ => blocks.age_s.iter().map(|age| (*age >= 0.0).then_some(f64::from(*age))).collect(),
        }
    }
}

fn framed<'a>(title: impl Into<Line<'a>>) -> Block<'a> {
    Block::new().borders(Borders::ALL).title(title)
}

fn requests(frame: &Frame) -> Table<'static> {
    let us = |value: Option<f64>| value.map_or("-".to_owned(), time);
    let row = |name: &&str| {
        let r = frame.requests.get(*name).cloned().unwrap_or_default();
        let numbers = [grouped(r.count), short(r.iops), short(r.mib_per_s), us(r.p50_us), us(r.p99_us), us(r.max_us)];
        Row::new([name.replace('_', " ")].into_iter().chain(numbers))
    };
    let widths = [Constraint::Length(12)].into_iter().chain([9, 6, 6, 8, 8, 8].map(Constraint::Fill));
    let head = Row::new(["", "requests", "IOPS", "MiB/s", "p50", "p99", "max"]);
    Table::new(OPERATIONS.iter().map(row), widths)
        .header(head.style(Style::new().add_modifier(Modifier::BOLD)))
        .block(framed("Requests"))
}

/// What is counted, in lines.
fn counts(frame: &Frame) -> Vec<Line<'static>> {
    let (flash, late) = (&frame.flash, &frame.lateness);
    let number = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let verdict = match late.faithful {
        None => "",
        Some(true) => ", faithful",
        Some(false) => ", NOT FAITHFUL",
    };
    let share = late.share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let sectors = |name: &str| frame.requests.get(name).map_or(0, |requests| requests.sectors);
    [
        format!("in progress {}, mean {}", frame.outstanding, short(frame.queue_mean)),
        format!(
            "write amplification {}, now {}",
            number(flash.write_amplification),
            number(flash.write_amplification_now)
        ),
        format!("cleanings {}, erases {}{}", grouped(flash.cleanings), grouped(flash.blocks_erased), faults(flash)),
        format!("units moved {}, trimmed {}", grouped(flash.units_moved), grouped(flash.units_trimmed))
            + &merges(flash),
        format!("sectors read {}, written {}", grouped(sectors("read")), grouped(sectors("write"))),
        format!("late {share}{verdict}; free blocks {}", grouped(flash.free_blocks)),
    ]
    .map(Line::from)
    .to_vec()
}

/// Merges of block mapping, where there are any.
fn merges(flash: &Flash) -> String {
    flash.merges.iter().map(|(kind, count)| format!(", {kind} merges {}", grouped(*count))).collect()
}

/// What failed, where anything did.
fn faults(flash: &Flash) -> String {
    match (flash.read_only, flash.bad_blocks) {
        (true, bad) => format!(", bad blocks {}, READ-ONLY", grouped(bad)),
        (false, 0) => String::new(),
        (false, bad) => format!(", bad blocks {}", grouped(bad)),
    }
}

/// A column for each channel or die: how much of its time it was busy.
fn bars(title: &'static str, shares: &[[f32; 2]], area: Rect) -> Sparkline<'static> {
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let each = shares.len().div_ceil(width).max(1);
    // Few of them get as many columns as there is room for.
    let columns = (width / shares.len().div_ceil(each).max(1)).clamp(1, 4);
    let busy = |shares: &[[f32; 2]]| shares.iter().map(|share| share[0] + share[1]).sum::<f32>() / shares.len() as f32;
    let data = shares.chunks(each).flat_map(|shares| vec![(busy(shares) * 1000.0) as u64; columns]);
    Sparkline::default().data(data.collect::<Vec<_>>()).max(1000).block(framed(title))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|screen| view.draw(screen)).unwrap();
        terminal.backend().to_string()
    }

    fn view() -> View {
        let mut view = View::default();
        view.take(News::Info(Box::new(Info { device: "tiny".to_owned(), logical_bytes: 1 << 20, ..Info::default() })));
        let mut frame = Frame { outstanding: 7, dies: vec![[0.5, 0.25]; 8], ..Frame::default() };
        frame.requests.entry("read".to_owned()).or_default().count = 1234;
        frame.flash.cleanings = 42;
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
    fn figures_and_keys_are_shown() {
        let mut view = view();
        let shown = drawn(&view, 120, 40);
        for text in ["tiny", "1 MiB", "1,234 ", "cleanings 42", "in progress 7", "q quit", "Blocks by valid", "█░.C"]
        {
            assert!(shown.contains(text), "{text}:\n{shown}");
        }
        assert!(view.key(KeyCode::Char('b')) && view.key(KeyCode::Char('o')) && !view.key(KeyCode::Char('x')));
        let shown = drawn(&view, 120, 40);
        assert!(shown.contains("Blocks by erases") && shown.contains("p99 of write"), "{shown}");
        assert!(view.key(KeyCode::Char('p')));
        assert!(!view.take(News::Frame(Box::default())), "nothing changes while it is paused");
        assert!(drawn(&view, 120, 40).contains("PAUSED"));
    }

    #[test]
    fn any_size_of_terminal_will_do() {
        for (width, height) in [(1, 1), (10, 3), (40, 12), (80, 24), (300, 100)] {
            drawn(&view(), width, height);
            drawn(&View::default(), width, height);
        }
    }
}
