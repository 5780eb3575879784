//! fio iologs, versions 2 and 3, which are distinguished by their first line.
//!
//! Version 3: `time file action [offset length]`. Version 2 has no time, but lines with `file wait us 0` between the
//! others (HOWTO, "Trace file format"; `iolog.c`). Offsets and lengths are in bytes. The actions are read, write, trim,
//! sync and datasync (both flush), add, open and close (no requests). The HOWTO does not define the unit of the times
//! in version 3. fio writes and replays us (`utime_since_now` in `log_io_u`, `iolog_delay`). Other tools have written
//! ms, which is assumed if no host could issue the first requests within that number of us. A `wait` is in us after the
//! previous one, as in the HOWTO. fio itself replays it as ms since its start (`read_iolog_get`).

use super::fields::Expected;
use super::fields::{Decimal, Fields};
use super::format::{Format, Framing, Parser};
use super::names::Names;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, WriteRequest, Writer};
use crate::sim::request::{Operation, SECTOR};

pub(super) static FORMAT: Format = Format {
    name: "fio",
    title: "fio iolog, version 2 or 3",
    columns: "`fio version 3 iolog`, then: time file action [offset length] (version 2: no time)",
    unit: TimeUnit::Us,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |options| Box::new(Iolog { unit_given: options.time_unit.is_some(), ..Iolog::default() }),
    writer: Some(Writer {
        operations: &[Operation::Read, Operation::Write, Operation::Trim, Operation::Flush],
        resolution: TimeUnit::Us,
        header: "fio version 3 iolog\n",
        ..Writer::of(|| Box::<Iolog3>::default())
    }),
};

/// Parser for the lines of a trace.
#[derive(Default)]
struct Iolog {
    /// 2 or 3, once the first line has been read.
    version: Option<u8>,
    /// Time in version 2: the sum of the waits.
    waited: u64,
    /// True if the times are assumed to be in ms.
    in_ms: bool,
    /// Mean rate of the first requests in requests per second, if it is so low that the times may be in ns.
    slow: Option<f64>,
    unit_given: bool,
    names: Names,
}

/// Number of requests needed to judge the unit of the times.
const ENOUGH: u64 = 16;
/// Mean rate in requests per second below which the times may be in ns.
const SLOW: f64 = 100.0;
/// Limits that no host can exceed: 64 GB/s (16 lanes of PCIe 5.0), and 100 million requests per second, both per us.
const MAX_BYTES: u64 = 64_000;
const MAX_REQUESTS: u64 = 100;

impl Parser for Iolog {
    fn begin(&mut self, head: &[u8]) {
        let mut parser = Iolog::default();
        let (mut requests, mut sectors, mut first, mut last) = (0, 0, u128::MAX, 0);
        let lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        for record in lines.filter_map(|line| parser.parse(line).ok().flatten()) {
            let stamp = record.stamp.scaled(0);
            (first, last) = (stamp.min(first), stamp.max(last));
            requests += 1;
            sectors += u64::from(record.sectors);
        }
        let span = u64::try_from(last.saturating_sub(first)).unwrap_or(u64::MAX);
        let too_fast =
            sectors * SECTOR > span.saturating_mul(MAX_BYTES) || requests > span.saturating_mul(MAX_REQUESTS);
        let rate = (requests.max(1) - 1) as f64 * 1e6 / span.max(1) as f64;
        self.slow = Some(rate).filter(|rate| parser.version == Some(3) && requests >= ENOUGH && *rate < SLOW);
        self.in_ms = parser.version == Some(3) && requests >= ENOUGH && span > 0 && too_fast;
    }

    fn unit(&self) -> Option<TimeUnit> {
        self.in_ms.then_some(TimeUnit::Ms)
    }

    fn warnings(&self) -> Vec<String> {
        if self.unit_given {
            return Vec::new();
        }
        if let Some(rate) = self.slow {
            return vec![format!(
                "times are taken to be in us, as fio writes them, which is {rate:.3} requests/s; SPDK writes ns, which \
                 would be {:.0} requests/s: --time-unit ns",
                rate * 1000.0
            )];
        }
        if !self.in_ms {
            return Vec::new();
        }
        let why = "in us, as fio writes them, no host could make the first of these requests";
        vec![format!("times are taken to be in ms: {why}; `--time-unit us` takes them for us")]
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        let version = match (line.trim_ascii_end(), self.version) {
            (b"fio version 2 iolog", _) => Some(2),
            (b"fio version 3 iolog", _) => Some(3),
            (_, Some(version)) => return self.action(line, version),
            (_, None) => return Err(Expected("`fio version 3 iolog` or `fio version 2 iolog` as the first line")),
        };
        self.version = version;
        Ok(None)
    }

    fn device(&self, device: u32) -> DeviceName {
        DeviceName::Named(self.names.name(device).0)
    }
}

impl Iolog {
    fn action(&mut self, line: &[u8], version: u8) -> Result<Option<Record>, Expected> {
        const COLUMNS: &str = "the columns file action [offset length], after the time in version 3";
        let mut fields = Words(Fields(line));
        let stamp = match version {
            3 => {
                let stamp = fields.next(COLUMNS)?.integer("the time, a whole number")?;
                Some(Decimal::whole(stamp))
            }
            _ => None,
        };
        let file = fields.next(COLUMNS)?.0;
        let action = fields.next(COLUMNS)?.0;
        let operation = match action {
            b"read" => Some(Operation::Read),
            b"write" => Some(Operation::Write),
            b"trim" => Some(Operation::Trim),
            b"sync" | b"datasync" => Some(Operation::Flush),
            b"wait" if version == 2 => None,
            b"add" | b"open" | b"close" => return fields.end().map(|()| None),
            _ => return Err(Expected("read, write, trim, sync, datasync, add, open, close, or wait in version 2")),
        };
        let offset = fields.next(COLUMNS)?.integer("the offset in bytes, a whole number")?;
        let bytes = match operation {
            // The value is not used, and may be missing.
            None | Some(Operation::Flush) => 0,
            _ => fields.next(COLUMNS)?.integer("the length in bytes, a whole number")?,
        };
        let Some(operation) = operation else {
            self.waited = self.waited.checked_add(offset).ok_or(Expected("waits of less than 2^64 us in all"))?;
            return Ok(None);
        };
        let stamp = stamp.unwrap_or(Decimal::whole(self.waited));
        let offset = if operation == Operation::Flush { 0 } else { offset };
        let record = Record::in_bytes(stamp, 0, operation, offset, bytes)?;
        Ok(Some(Record { device: self.names.device(file, 0)?, ..record }))
    }
}

/// Words between blanks.
struct Words<'a>(Fields<'a>);

impl<'a> Words<'a> {
    fn next(&mut self, what: &'static str) -> Result<Word<'a>, Expected> {
        self.0.blanks();
        let end = self.0.0.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(self.0.0.len());
        let (word, rest) = self.0.0.split_at(end);
        self.0.0 = rest;
        if word.is_empty() { Err(Expected(what)) } else { Ok(Word(word)) }
    }

    fn end(&mut self) -> Result<(), Expected> {
        self.0.end()
    }
}

struct Word<'a>(&'a [u8]);

impl Word<'_> {
    fn integer(&self, what: &'static str) -> Result<u64, Expected> {
        let mut fields = Fields(self.0);
        let value = fields.integer(what)?;
        fields.end().map_err(|_| Expected(what))?;
        Ok(value)
    }
}

/// Writer for version 3.
#[derive(Default)]
struct Iolog3 {
    /// Numbers of the devices that have been added.
    added: Vec<u64>,
}

impl WriteRequest for Iolog3 {
    fn write(&mut self, out: &mut Vec<u8>, request: &Outgoing) {
        let time = request.ticks(TimeUnit::Us);
        let file = match request.name {
            DeviceName::Named(name) if !name.contains(char::is_whitespace) => name.clone(),
            _ => format!("device{}", request.number),
        };
        if let Err(place) = self.added.binary_search(&request.number) {
            self.added.insert(place, request.number);
            out.extend_from_slice(format!("{time} {file} add\n{time} {file} open\n").as_bytes());
        }
        let (offset, bytes) = (u128::from(request.lba) * u128::from(SECTOR), request.sectors * SECTOR);
        let action = match request.operation {
            Operation::Read => "read",
            Operation::Trim => "trim",
            Operation::Flush => "sync",
            Operation::Write | Operation::WriteZeroes => "write",
        };
        out.extend_from_slice(format!("{time} {file} {action} {offset} {bytes}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u128, String, Operation, u64, u32)> {
        let mut parser = Iolog::default();
        let mut records = Vec::new();
        for line in text.lines() {
            if let Some(record) = parser.parse(line.as_bytes()).unwrap() {
                let name = parser.device(record.device).to_string();
                records.push((record.stamp.scaled(0), name, record.operation, record.lba, record.sectors));
            }
        }
        records
    }

    #[test]
    fn version_3_has_times() {
        let text = "fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n878 /dev/a write 0 16384\n900 b read 1024 512\n\
                    950 /dev/a trim 4096 4096\n960 /dev/a datasync 0 0\n960 /dev/a sync 5\n1000 /dev/a close\n";
        let (a, b) = ("/dev/a".to_owned(), "b".to_owned());
        let expected = [
            (878, a.clone(), Operation::Write, 0, 32),
            (900, b, Operation::Read, 2, 1),
            (950, a.clone(), Operation::Trim, 8, 8),
            (960, a.clone(), Operation::Flush, 0, 0),
            (960, a, Operation::Flush, 0, 0),
        ];
        assert_eq!(read(text), expected);
    }

    #[test]
    fn times_that_cannot_be_us_are_ms() {
        let unit = |bytes: u64, gap: u64| {
            let mut text = "fio version 3 iolog\n".to_owned();
            (0..20).for_each(|n| text += &format!("{} a read 0 {bytes}\n", n * gap));
            let mut parser = Iolog::default();
            parser.begin(text.as_bytes());
            (parser.unit(), parser.warnings().len())
        };
        assert_eq!(unit(1 << 20, 1), (Some(TimeUnit::Ms), 1));
        assert_eq!(unit(1 << 20, 100), (None, 0));
        assert_eq!(unit(4096, 1), (None, 0));
        // The unit of requests that all arrive at the same time cannot be judged.
        assert_eq!(unit(1 << 20, 0), (None, 0));
    }

    #[test]
    fn version_2_waits() {
        let text = "fio version 2 iolog\n/a add\n/a open\n/a read 0 512\n/a wait 150 0\n/a read 512 512\n/a wait 50 0\n\
                    /a write 0 512\n";
        let stamps: Vec<u128> = read(text).iter().map(|record| record.0).collect();
        assert_eq!(stamps, [0, 150, 200]);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |text: &str| {
            let mut parser = Iolog::default();
            text.lines().find_map(|line| parser.parse(line.as_bytes()).err()).unwrap().0
        };
        assert!(expected("0 /a read 0 512").contains("first line"));
        assert!(expected("fio version 3 iolog\n5 /a wait 0 0").contains("in version 2"));
        assert!(expected("fio version 3 iolog\n/a read 0 512").contains("time"));
        assert!(expected("fio version 2 iolog\n/a read 0").contains("offset length"));
        assert!(expected("fio version 2 iolog\n/a read 0 x").contains("length in bytes"));
        assert!(expected("fio version 2 iolog\n/a read 0 0").contains("at least one byte"));
    }
}
