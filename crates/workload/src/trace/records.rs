//! Records of a trace, in order of time: bad lines, selection of devices, limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;

use super::blank::{holds_nothing, is_empty};
use super::detect::{Detected, check, detect};
use super::fields::Expected;
use super::format::{Framing, Parser};
use super::frames::{Frame, Frames, shown, shown_bytes};
use super::input::Input;
use super::options::{Devices, Replay, TraceOptions};
use super::record::{DeviceName, MAX_DEVICES, Record};
use super::time_unit::TimeUnit;
use super::units::UnitCheck;
use crate::sim::source::SourceError;

/// Maximum number of devices to list in a message.
const LISTED: usize = 20;

/// A record and its position.
pub(super) struct Entry {
    /// Time in ps since the trace's own origin. At most 2^64 s, so that no precision is lost before subtracting the
    /// first time.
    pub(super) ps: u128,
    /// Line number. For a binary format, the number of the record.
    pub(super) line: u64,
    pub(super) record: Record,
}

/// Reads records from a file.
pub(super) struct Records {
    frames: Frames,
    detected: Detected,
    unit: TimeUnit,
    parser: Box<dyn Parser>,
    selection: Option<Selection>,
    bad: BadLines,
    /// Line at which a recording is truncated, which was omitted.
    cut_line: Option<u64>,
    window: Option<Window>,
    /// True if records must be in order of time.
    ordered: bool,
    /// Time and line of the last returned record.
    last: (u128, u64),
    /// Remaining number of records up to the limit.
    left: u64,
    /// Number of records whose range was widened to sectors.
    widened: u64,
    units: UnitCheck,
}

impl Records {
    pub(super) fn open(path: &Path, options: &TraceOptions) -> Result<Records, SourceError> {
        let called = options.called.clone().unwrap_or_else(|| path.display().to_string());
        let frames = Frames::new(Input::open(path, called, &options.stop)?)?;
        let detected = detect(&frames, options)?;
        check(detected.format, options).map_err(|error| SourceError(format!("{}: {error}", frames.input().name())))?;
        let mut parser = detected.format.parser(options);
        parser.begin(frames.head());
        let selection = match &options.devices {
            Devices::Select(names) => Some(Selection::new(names)),
            Devices::SideBySide | Devices::Merge => None,
        };
        let window = if options.sort_window > 0 { options.sort_window } else { parser.sort_window() };
        Ok(Records {
            frames,
            unit: options.time_unit.or(parser.unit()).unwrap_or(detected.format.unit),
            parser,
            detected,
            selection,
            bad: BadLines { allowed: options.skip_bad_lines, ..BadLines::default() },
            cut_line: None,
            window: (window > 0).then(|| Window::new(window)),
            ordered: options.replay == Replay::Timed || options.sort_window > 0,
            last: (0, 0),
            left: options.limit.unwrap_or(u64::MAX),
            widened: 0,
            units: UnitCheck::default(),
        })
    }

    /// Returns the next record, or `None` at the end or at the limit.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Entry>, SourceError> {
        if self.left == 0 {
            return Ok(None);
        }
        let entry = if self.window.is_some() { self.next_sorted()? } else { self.read()? };
        let Some(entry) = entry else {
            self.left = 0;
            return match self.selection.as_ref().and_then(|selection| selection.missing(&*self.parser)) {
                Some(missing) => Err(SourceError(format!("{}: {missing}", self.name()))),
                None => Ok(None),
            };
        };
        if entry.ps < self.last.0 && self.ordered {
            return Err(self.backwards(&entry));
        }
        self.last = (entry.ps, entry.line);
        self.left -= 1;
        Ok(Some(entry))
    }

    /// Returns the next record of the file that belongs to a selected device.
    #[inline]
    fn read(&mut self) -> Result<Option<Entry>, SourceError> {
        while let Some(frame) = self.next_frame()? {
            match self.parser.parse(self.frames.bytes(&frame)) {
                Ok(Some(record)) if frame.fault.is_none() => {
                    self.bad.in_header = false;
                    if self.selection.as_mut().is_none_or(|selection| selection.takes(record.device, &*self.parser)) {
                        self.widened += u64::from(record.widened);
                        self.units.note(&record);
                        let ps = record.stamp.scaled(self.unit.exponent());
                        return Ok(Some(Entry { ps, line: frame.number, record }));
                    }
                }
                Ok(None) if frame.fault.is_none() => {}
                Ok(_) => self.refuse(&frame, Expected("a whole line"))?,
                Err(expected) => self.refuse(&frame, expected)?,
            }
        }
        Ok(None)
    }

    #[inline]
    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        match self.detected.format.framing {
            Framing::Lines => self.frames.next_line(),
            Framing::Records => self.frames.next_record(&mut *self.parser),
        }
    }

    /// Fills the sort window, and returns its earliest record.
    fn next_sorted(&mut self) -> Result<Option<Entry>, SourceError> {
        while self.window.as_ref().is_some_and(|window| window.heap.len() <= window.size) {
            match self.read()? {
                Some(entry) => self.window.iter_mut().for_each(|window| window.push(&entry)),
                None => break,
            }
        }
        Ok(self.window.as_mut().and_then(Window::pop))
    }

    /// Handles an unreadable line or record: skips it if it contains no request or may be skipped, otherwise returns an
    /// error.
    #[cold]
    fn refuse(&mut self, frame: &Frame, expected: Expected) -> Result<(), SourceError> {
        let bytes = self.frames.bytes(frame);
        let is_text = self.detected.format.framing == Framing::Lines;
        let in_header = self.bad.in_header && is_text;
        self.bad.in_header &= is_empty(bytes);
        if frame.fault.is_none() && is_text && holds_nothing(bytes, in_header) {
            return Ok(());
        }
        let format = self.detected.format;
        let word = self.frame_word();
        // A server that was killed while recording leaves a partial line.
        if *format == super::floatgate::FORMAT && !in_header && self.frames.is_unterminated(frame) {
            self.cut_line = Some(frame.number);
            return Ok(());
        }
        let expected = frame.fault.unwrap_or(expected).0;
        let bytes = if is_text { shown(bytes) } else { shown_bytes(bytes) };
        let what = format!("{bytes}: expected {expected} (format {}: {})", format.name, format.columns);
        self.bad.count += 1;
        if self.bad.count <= self.bad.allowed {
            self.bad.first.get_or_insert_with(|| format!("{word} {}: {what}", frame.number));
            return Ok(());
        }
        let advice = match self.bad.allowed {
            0 => format!("`--skip-bad-lines N` leaves up to N such {word}s out"),
            allowed => format!("{allowed} bad {word}s were left out before it, as many as --skip-bad-lines allows"),
        };
        Err(self.error(frame.number, &format!("{what}; {advice}")))
    }

    /// Returns the name of a frame: line or record.
    pub(super) fn frame_word(&self) -> &'static str {
        match self.detected.format.framing {
            Framing::Lines => "line",
            Framing::Records => "record",
        }
    }

    #[cold]
    fn backwards(&self, entry: &Entry) -> SourceError {
        let (now, before, line) = (self.unit.write(entry.ps), self.unit.write(self.last.0), self.last.1);
        /// Delay that no queue causes: one hour, in ps.
        const FAR: u128 = 3_600 * 10_u128.pow(12);
        let advice = match &self.window {
            _ if self.last.0 - entry.ps >= FAR => {
                "if a clock was set back there, `--replay depth=N` ignores the times".to_owned()
            }
            None => "`--sort-window N` sorts requests that are up to N positions out of order".to_owned(),
            Some(window) => format!("--sort-window {} is too small; try a larger one", window.size),
        };
        let word = self.frame_word();
        self.error(entry.line, &format!("time runs backwards: {now} follows {before} of {word} {line}; {advice}"))
    }

    /// Creates an error at a line or record.
    pub(super) fn error(&self, line: u64, what: &str) -> SourceError {
        SourceError(format!("{}: {} {line}: {what}", self.name(), self.frame_word()))
    }

    /// Returns the name of the file in messages.
    pub(super) fn name(&self) -> &str {
        self.frames.input().name()
    }

    pub(super) fn input(&self) -> &Input {
        self.frames.input()
    }

    /// Returns the format, and how it was detected, considering everything that has been read so far.
    pub(super) fn detected(&self) -> Detected {
        self.detected.clone().in_doubt(self.units.in_bytes(self.detected.format).is_some())
    }

    /// Returns a warning if the unit of addresses or lengths seems to be wrong, considering everything that has been
    /// read so far.
    pub(super) fn doubt(&self) -> Option<String> {
        self.units.warning(self.detected.format, self.unit, self.name())
    }

    /// Creates an error about the address of a request, which may have a wrong unit.
    #[cold]
    pub(super) fn misplaced(&self, line: u64, what: &str) -> SourceError {
        match self.doubt() {
            Some(doubt) => self.error(line, &format!("{what}; {doubt}")),
            None => self.error(line, what),
        }
    }

    pub(super) fn unit(&self) -> TimeUnit {
        self.unit
    }

    pub(super) fn device(&self, device: u32) -> DeviceName {
        self.parser.device(device)
    }

    /// Returns the warnings so far.
    pub(super) fn warnings(&self) -> Vec<String> {
        let name = self.name();
        let mut warnings = Vec::new();
        if let Some(first) = &self.bad.first {
            let count = self.bad.count.min(self.bad.allowed);
            let word = self.frame_word();
            let left_out = match count {
                1 => format!("1 bad {word} was left out:"),
                _ => format!("{count} bad {word}s were left out, the first being"),
            };
            warnings.push(format!("{name}: {left_out} {first}"));
        }
        warnings.extend(self.frames.input().warning().map(|text| format!("{name}: {text}")));
        if let Some(line) = self.cut_line {
            warnings.push(format!("{name}: the recording is cut off in line {line}, which was left out"));
        }
        if self.widened > 0 {
            let count = self.widened;
            let text = match count {
                1 => "1 request was not whole sectors of 512 B and was widened to them".to_owned(),
                _ => format!("{count} requests were not whole sectors of 512 B and were widened to them"),
            };
            warnings.push(format!("{name}: {text}"));
        }
        warnings.extend(self.doubt().map(|text| format!("{name}: {text}")));
        warnings.extend(self.parser.warnings().into_iter().map(|text| format!("{name}: {text}")));
        warnings
    }
}

/// Unreadable lines.
struct BadLines {
    allowed: u64,
    count: u64,
    first: Option<String>,
    /// True while only empty lines have been read.
    in_header: bool,
}

impl Default for BadLines {
    fn default() -> BadLines {
        BadLines { allowed: 0, count: 0, first: None, in_header: true }
    }
}

/// Selection of devices.
struct Selection {
    wanted: Vec<String>,
    /// Devices that have occurred so far.
    known: BTreeMap<u32, bool>,
    recent: Option<(u32, bool)>,
}

impl Selection {
    fn new(names: &[String]) -> Selection {
        Selection { wanted: names.to_vec(), known: BTreeMap::new(), recent: None }
    }

    #[inline]
    fn takes(&mut self, device: u32, parser: &dyn Parser) -> bool {
        match self.recent {
            Some((recent, taken)) if recent == device => taken,
            _ => self.look_up(device, parser),
        }
    }

    fn look_up(&mut self, device: u32, parser: &dyn Parser) -> bool {
        let is_wanted = || self.wanted.contains(&parser.device(device).to_string());
        let taken = match self.known.get(&device) {
            Some(taken) => *taken,
            None => {
                let taken = is_wanted();
                // Beyond this number, the list is only needed for messages.
                if taken || self.known.len() < MAX_DEVICES {
                    self.known.insert(device, taken);
                }
                taken
            }
        };
        self.recent = Some((device, taken));
        taken
    }

    /// Returns an error at the end of the trace if a selected device did not occur.
    fn missing(&self, parser: &dyn Parser) -> Option<String> {
        let mut known: Vec<DeviceName> = self.known.keys().map(|device| parser.device(*device)).collect();
        known.sort();
        let known: Vec<String> = known.iter().map(DeviceName::to_string).collect();
        let missing = self.wanted.iter().find(|name| !known.contains(name))?;
        let more = if known.len() > LISTED { ", ..." } else { "" };
        let listed = known[..known.len().min(LISTED)].join(", ");
        Some(format!("no request of device {missing}; the trace has the devices {listed}{more}"))
    }
}

/// Records that are held back until earlier ones have been read.
struct Window {
    size: usize,
    heap: BinaryHeap<Reverse<Held>>,
}

/// A record in the window, ordered by time and then by line, so that records with equal times keep their order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    key: (u128, u64),
    record: Unordered,
}

/// A record that does not affect the order of its container.
struct Unordered(Record);

impl PartialEq for Unordered {
    fn eq(&self, _: &Unordered) -> bool {
        true
    }
}

impl Eq for Unordered {}

impl PartialOrd for Unordered {
    fn partial_cmp(&self, other: &Unordered) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Unordered {
    fn cmp(&self, _: &Unordered) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Window {
    fn new(size: u32) -> Window {
        Window { size: size as usize, heap: BinaryHeap::new() }
    }

    fn push(&mut self, entry: &Entry) {
        self.heap.push(Reverse(Held { key: (entry.ps, entry.line), record: Unordered(entry.record) }));
    }

    fn pop(&mut self) -> Option<Entry> {
        let Reverse(Held { key: (ps, line), record: Unordered(record) }) = self.heap.pop()?;
        Some(Entry { ps, line, record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_recognized_only_on_the_first_line() {
        for header in ["ASU,LBA,Size,Opcode,Timestamp", "time device lba", "\"Timestamp\",\"Hostname\""] {
            assert!(holds_nothing(header.as_bytes(), true), "{header}");
            assert!(!holds_nothing(header.as_bytes(), false), "{header}");
        }
        for content in ["0,1,512,X,1", "a b 1", "\x7fELF", "time -5"] {
            assert!(!holds_nothing(content.as_bytes(), true), "{content}");
        }
        for nothing in ["", "  \t", "# 1 2 3", "; 1", "// 1"] {
            assert!(holds_nothing(nothing.as_bytes(), false), "{nothing}");
        }
    }
}
