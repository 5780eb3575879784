//! Traces of Windows servers at SNIA (Microsoft's production servers, TPC-C and TPC-E): event traces of Windows as
//! text, as printed by `xperf`.
//!
//! A header between `BeginHeader` and `EndHeader` names the columns of each event. Each following line is an event that
//! starts with its name: `DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime,
//! DiskNum, IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName`. Times are in us, offset and size in bytes,
//! both in hexadecimal. `DiskRead`, `DiskWrite` and `DiskFlush` are requests. All other events are skipped.
//!
//! These events are written when a request has completed, `ElapsedTime` after it was issued (`DiskIo_TypeGroup1` in the
//! reference of Windows). A request is therefore issued at `TimeStamp - ElapsedTime`, and lines are not in this order.

use std::ops::Range;

use super::fields::Expected;
use super::fields::{Decimal, number};
use super::format::{Format, Framing, Parser};
use super::record::Record;
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "etw",
    title: "Windows event tracing (Microsoft servers, SNIA)",
    columns: "DiskRead|DiskWrite, end, process, thread, IRP, byte offset, bytes, elapsed time, disk[, ...]",
    unit: TimeUnit::Us,
    framing: Framing::Lines,
    has_events: false,
    looks,
    parser: |_| Box::<Etw>::default(),
    writer: None,
};

/// Maximum number of requests that may complete before one that was issued earlier.
const SORT_WINDOW: u32 = 10_000;

/// Maximum number of columns to read in a line.
const MAX_COLUMNS: usize = 32;

/// Positions of the columns of an event. 0 for a missing column, because the first column is the name of the event.
#[derive(Clone, Copy)]
struct Layout {
    end: usize,
    offset: usize,
    size: usize,
    elapsed: usize,
    disk: usize,
}

impl Layout {
    /// Columns of `DiskRead` and `DiskWrite` in the traces at SNIA.
    const TRANSFER: Layout = Layout { end: 1, offset: 5, size: 6, elapsed: 7, disk: 8 };
    /// Columns of `DiskFlush`.
    const FLUSH: Layout = Layout { end: 1, offset: 0, size: 0, elapsed: 5, disk: 6 };

    /// Reads the positions of the columns from a line of the header.
    fn read(line: &[u8]) -> Layout {
        let place = |name: &[u8]| fields(line).take(MAX_COLUMNS).position(|field| field == name).unwrap_or(0);
        Layout {
            end: place(b"TimeStamp"),
            offset: place(b"ByteOffset"),
            size: place(b"IOSize"),
            elapsed: place(b"ElapsedTime"),
            disk: place(b"DiskNum"),
        }
    }
}

/// Events that are requests.
const EVENTS: [(&[u8], Operation); 3] =
    [(b"DiskRead", Operation::Read), (b"DiskWrite", Operation::Write), (b"DiskFlush", Operation::Flush)];

/// Parser for the lines of a trace.
struct Etw {
    /// Indexed like [`EVENTS`].
    layouts: [Layout; EVENTS.len()],
    in_header: bool,
}

impl Default for Etw {
    fn default() -> Etw {
        Etw { layouts: [Layout::TRANSFER, Layout::TRANSFER, Layout::FLUSH], in_header: false }
    }
}

impl Etw {
    /// Returns `true` if a line is part of the header, including its start and its end.
    fn is_header(&mut self, line: &[u8]) -> bool {
        let name = fields(line).next().unwrap_or_default();
        let (begins, ends) = (name == b"BeginHeader", name == b"EndHeader");
        let is_header = self.in_header || begins || ends || fields(line).nth(1) == Some(b"TimeStamp");
        self.in_header = begins || (self.in_header && !ends);
        let event = EVENTS.iter().position(|(known, _)| *known == name);
        if let (true, Some(event)) = (is_header, event) {
            self.layouts[event] = Layout::read(line);
        }
        is_header
    }
}

impl Parser for Etw {
    fn begin(&mut self, head: &[u8]) {
        // Format detection does not pass the lines of the header, because these contain no numbers.
        for line in head.split(|byte| *byte == b'\n') {
            self.is_header(line);
        }
        self.in_header = false;
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        let mut columns = fields(line);
        let name = columns.next().unwrap_or_default();
        let Some(event) = EVENTS.iter().position(|(known, _)| *known == name) else {
            let is_known = self.is_header(line) || looks(line);
            return if is_known { Ok(None) } else { Err(Expected("an event, like DiskRead, with its time in us")) };
        };
        let mut values = [&b""[..]; MAX_COLUMNS];
        columns.zip(&mut values[1..]).for_each(|(field, value)| *value = field);
        if self.in_header || values[1] == b"TimeStamp" {
            self.is_header(line);
            return Ok(None);
        }
        let layout = self.layouts[event];
        let operation = EVENTS[event].1;
        let value = |column: usize, what| number(values[column], what);
        let end = value(layout.end, "the time in us, a whole number")?;
        let elapsed = value(layout.elapsed, "the elapsed time in us, a whole number")?;
        let disk = value(layout.disk, "the number of the disk, a whole number below 2^32")?;
        let disk = u32::try_from(disk).map_err(|_| Expected("the number of the disk, a whole number below 2^32"))?;
        // Requests that were issued before the recording started are issued at its start.
        let stamp = Decimal::whole(end.saturating_sub(elapsed));
        if operation == Operation::Flush {
            return Record::in_sectors(stamp, disk, operation, 0, 0).map(Some);
        }
        let offset = value(layout.offset, "the offset in bytes, a hexadecimal number after 0x")?;
        let bytes = value(layout.size, "the size in bytes, a hexadecimal number after 0x")?;
        if bytes == 0 {
            return Err(Expected("a length of at least one byte"));
        }
        Record::in_bytes(stamp, disk, operation, offset, bytes).map(Some)
    }

    fn sort_window(&self) -> u32 {
        SORT_WINDOW
    }
}

/// Returns the fields of a line, without surrounding blanks.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Returns `true` if a line is an event with a name and a time, or one of the events around the header.
fn looks(line: &[u8]) -> bool {
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_/ ".contains(byte);
    let mut columns = fields(line);
    let name = columns.next().unwrap_or_default();
    if [&b"BeginHeader"[..], b"EndHeader"].contains(&name) || name.starts_with(b"OS Version:") {
        return true;
    }
    let is_name = name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(in_name);
    let time = columns.next().unwrap_or_default();
    let is_time = !time.is_empty() && time.iter().all(u8::is_ascii_digit);
    let is_first = name.starts_with(b"FirstReliable") && name.ends_with(b"TimeStamp");
    // The third column of each event is a process or a number.
    is_name && is_time && (is_first || columns.next().is_some_and(is_process))
}

/// Returns `true` if a field is a process name followed by its number in parentheses, as in each event.
fn is_process(field: &[u8]) -> bool {
    let inside: Option<Range<usize>> = field.iter().rposition(|byte| *byte == b'(').map(|at| at + 1..field.len() - 1);
    field.ends_with(b")")
        && inside.is_some_and(|inside| {
            let number = field[inside].trim_ascii();
            let digits = number.strip_prefix(b"-").unwrap_or(number);
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = "  DiskRead,    2664955,  p1 ( 980),  6852, 0xfffffade6b0a2010, 0x6c80556e00, 0x00010000,  183,  3, \
                        0x000043,  183,  0,  Unknown, 0xfffffade72165e40, \"Disk5:\\s71\\s72,s123\"";

    #[test]
    fn requests_are_issued_before_they_end() {
        let read = Etw::default().parse(READ.as_bytes()).unwrap().unwrap();
        assert_eq!((read.device, read.lba, read.sectors), (3, 0x6c_8055_6e00 / 512, 128));
        assert_eq!((read.operation, read.stamp), (Operation::Read, Decimal::whole(2_664_955 - 183)));
        let write = READ.replace("DiskRead", "DiskWrite").replace("  183,  3,", "  3000000,  1,");
        let write = Etw::default().parse(write.as_bytes()).unwrap().unwrap();
        assert_eq!((write.device, write.operation, write.stamp), (1, Operation::Write, Decimal::whole(0)));
        let flush = b"DiskFlush, 50, sys ( 4), 6852, 0xfffffade6b0a2010,   20,  2, 0x060000,  20,  0";
        let flush = Etw::default().parse(flush).unwrap().unwrap();
        assert_eq!((flush.device, flush.sectors, flush.operation), (2, 0, Operation::Flush));
        assert_eq!(flush.stamp, Decimal::whole(30));
    }

    #[test]
    fn the_header_defines_the_columns() {
        let mut parser = Etw::default();
        let header = "BeginHeader\n DiskRead, TimeStamp, Process Name ( PID), ThreadID, CPU, IrpPtr, ByteOffset, IOSize, \
                      ElapsedTime, DiskNum\n P-Start, TimeStamp, Process Name ( PID)\nEndHeader\n";
        parser.begin(header.as_bytes());
        let line = b"DiskRead, 90, p1 ( 980), 6852, 3, 0xfffffade6b0a2010, 0x1000, 0x0200, 40, 7";
        let read = parser.parse(line).unwrap().unwrap();
        assert_eq!((read.device, read.lba, read.sectors, read.stamp), (7, 8, 1, Decimal::whole(50)));
        // The header is parsed again when the lines are read.
        assert!(header.lines().all(|line| parser.parse(line.as_bytes()) == Ok(None)));
        assert_eq!(parser.parse(line), Ok(Some(read)));
    }

    #[test]
    fn other_events_are_skipped() {
        for line in [
            "DiskReadInit, 90, p1 ( 980), 6852, 0xfffffade6b0a2010",
            "CSwitch, 91, Idle (   0), 0, 0",
            "FileIoCreate, 92, Unknown (  -1), 4, 0, 0xfffffade6b0a2010, \"Disk5:\\s71\"",
            "OS Version: 6.0.6001, Trace Size: 3KB",
            "FirstReliableCSwitchEventTimeStamp, 2600000",
        ] {
            assert_eq!(Etw::default().parse(line.as_bytes()), Ok(None), "{line}");
            assert!(looks(line.as_bytes()), "{line}");
        }
        for other in ["Read, 90, 5, 6", "128166372003061629,hm,1,Read,383496192,32768,413", "", ",,", "a, 1, ()"] {
            assert!(!looks(other.as_bytes()) && Etw::default().parse(other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |from: &str, to: &str| Etw::default().parse(READ.replace(from, to).as_bytes()).unwrap_err().0;
        assert!(expected("0x6c80556e00", "x").contains("offset"));
        assert!(expected("0x00010000", "0x0").contains("at least one byte"));
        assert!(expected("  183,  3,", "  183,  4294967296,").contains("disk"));
        assert!(expected("  183,  3,", " , 3,").contains("elapsed"));
        assert!(expected(&READ[30..], "").contains("elapsed"));
    }
}
