//! `iosnoop` of perf-tools: a line per completed request.
//!
//! `[STARTs] [ENDs] COMM PID TYPE DEV BLOCK BYTES LATms`, in blanks, after a header with these names (`iosnoop`,
//! options `-s` and `-t`). Without `STARTs`, a request is issued at `ENDs - LATms`. Lines are in the order of
//! completion.

use super::biosnoop::{SORT_WINDOW, decimal, operation, words};
use super::fields::{Decimal, Expected, number};
use super::format::{Format, Framing, Parser};
use super::names::Names;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "iosnoop",
    title: "iosnoop of perf-tools",
    columns: "[STARTs] [ENDs] COMM PID TYPE DEV BLOCK BYTES LATms",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::<Iosnoop>::default(),
    writer: None,
};

const COLUMNS: &str = "the columns STARTs ENDs COMM PID TYPE DEV BLOCK BYTES LATms, as printed by iosnoop -ts";

/// Times at the start of a line.
#[derive(Clone, Copy, Default)]
enum Times {
    /// Issue, and possibly completion.
    #[default]
    Start,
    /// Completion.
    End,
}

/// Parser for the lines of a trace.
#[derive(Default)]
struct Iosnoop {
    times: Times,
    names: Names,
}

impl Iosnoop {
    /// Reads the header of a trace.
    fn header(&mut self, line: &[u8]) -> bool {
        let words = words(line);
        match words.first() {
            Some(&b"STARTs") => self.times = Times::Start,
            Some(&b"ENDs") => self.times = Times::End,
            _ => return false,
        }
        true
    }
}

impl Parser for Iosnoop {
    fn begin(&mut self, head: &[u8]) {
        head.split(|byte| *byte == b'\n').take(64).any(|line| self.header(line));
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        if self.header(line) || line.starts_with(b"Tracing ") || line.starts_with(b"Ending tracing") {
            return Ok(None);
        }
        let words = words(line);
        // The name of a process may contain blanks, so columns are counted from the end.
        let type_at = words.len().checked_sub(5).filter(|at| *at >= 3).ok_or(Expected(COLUMNS))?;
        let time = decimal(words[0], "the time in s, a decimal number")?;
        let latency = decimal(words[type_at + 4], "the latency in ms, a decimal number")?;
        if !words[type_at + 1].contains(&b',') {
            return Err(Expected("the device, major,minor"));
        }
        number(words[type_at - 1], COLUMNS)?;
        let bytes = number(words[type_at + 3], "the size in bytes, a whole number")?;
        let Some(operation) = operation(words[type_at], bytes) else {
            let is_type = words[type_at].iter().all(u8::is_ascii_uppercase);
            return if is_type { Ok(None) } else { Err(Expected("the type of the request, such as R or W")) };
        };
        let (lba, sectors) = match operation {
            Operation::Flush => (0, 0),
            _ => (number(words[type_at + 2], "the first sector, a whole number")?, bytes.div_ceil(512)),
        };
        let stamp = match self.times {
            Times::Start => time,
            Times::End => Decimal::of_ps(time.scaled(12).saturating_sub(latency.scaled(9))),
        };
        let device = self.names.device(words[type_at + 1], 0)?;
        let record = Record::in_sectors(stamp, device, operation, lba, sectors)?;
        Ok(Some(Record { widened: !bytes.is_multiple_of(512), ..record }))
    }

    fn device(&self, device: u32) -> DeviceName {
        let name = self.names.name(device).0;
        let numbers = name.split_once(',').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        numbers.map_or(DeviceName::Named(name), |(major, minor)| DeviceName::MajorMinor(major, minor))
    }

    fn sort_window(&self) -> u32 {
        SORT_WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_start_before_they_end() {
        for (header, start) in [("STARTs ENDs", "1.250000 1.250720"), ("STARTs", "1.250000"), ("ENDs", "1.250720")] {
            let mut parser = Iosnoop::default();
            parser.begin(format!("Tracing block I/O. Ctrl-C to end.\n{header} COMM PID TYPE DEV BLOCK\n").as_bytes());
            let line = format!("{start} my app    546    RA   259,3    6916480      4096      0.72");
            let record = parser.parse(line.as_bytes()).unwrap().unwrap();
            assert_eq!(record.stamp.scaled(12), 1_250_000_000_000, "{header}");
            assert_eq!((record.lba, record.sectors, record.operation), (6_916_480, 8, Operation::Read));
            assert_eq!(parser.device(record.device), DeviceName::MajorMinor(259, 3));
        }
        let expected = |line: &str| Iosnoop::default().parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("cp my 543 R 259,3 64 4096 1.0").contains("time"));
        assert!(expected("1.0 cp 543 R sda 64 4096 1.0").contains("device"));
    }
}
