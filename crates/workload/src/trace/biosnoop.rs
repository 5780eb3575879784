//! `biosnoop` of BCC and of libbpf-tools: a line per completed request, with its latency.
//!
//! `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms) [PATTERN]`, in blanks, after a header with these names
//! (`biosnoop.py`, `biosnoop.c`). `TIME` is the time at which the request completed, and `LAT` counts from the time at
//! which it was issued, so that the request is issued at `TIME - LAT`, and lines are not in this order. `T` contains
//! the letters of blkparse in libbpf-tools, and `R` or `W` in BCC. The version of bpftrace prints neither addresses nor
//! sizes, and is refused.

use super::events::Requested;
use super::fields::{Decimal, Expected, Fields, number};
use super::format::{Format, Framing, Parser};
use super::names::Names;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "biosnoop",
    title: "biosnoop of BCC and libbpf-tools",
    columns: "TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::<Biosnoop>::default(),
    writer: None,
};

/// Maximum number of requests that may complete before one that was issued earlier.
pub(super) const SORT_WINDOW: u32 = 10_000;

const COLUMNS: &str = "the columns TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)";

/// Parser for the lines of a trace.
#[derive(Default)]
struct Biosnoop {
    /// Number of columns after `BYTES`, and the position of `LAT(ms)` among them. `None` without a header.
    after: Option<(usize, usize)>,
    names: Names,
}

/// Returns the words of a line.
pub(super) fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty()).collect()
}

/// Parses a whole field as a decimal number.
pub(super) fn decimal(field: &[u8], what: &'static str) -> Result<Decimal, Expected> {
    let mut fields = Fields(field);
    let value = fields.decimal(what)?;
    if fields.0.is_empty() { Ok(value) } else { Err(Expected(what)) }
}

/// Returns `true` if a line is the header of the biosnoop of bpftrace (`biosnoop.bt`). Later versions have one or two
/// more columns, for the disk.
pub(super) fn is_header_of_bpftrace(line: &[u8]) -> bool {
    let words = words(line);
    words.first() == Some(&&b"TIME(ms)"[..]) && words.ends_with(&[b"COMM", b"PID", b"LAT(ms)"])
}

/// Returns the operation of a request with the letters of blkparse.
pub(super) fn operation(letters: &[u8], sectors: u64) -> Option<Operation> {
    let requested = Requested::of_letters(letters)?;
    match requested.operation? {
        Operation::Write if sectors == 0 => Some(Operation::Flush),
        Operation::Flush => Some(Operation::Flush),
        _ if sectors == 0 => None,
        operation => Some(operation),
    }
}

impl Biosnoop {
    /// Reads the header of a trace.
    fn header(&mut self, line: &[u8]) -> bool {
        let words = words(line);
        if words.first() != Some(&&b"TIME(s)"[..]) {
            return false;
        }
        let bytes = words.iter().position(|word| *word == b"BYTES");
        let latency = words.iter().position(|word| *word == b"LAT(ms)");
        self.after =
            bytes.zip(latency).map(|(bytes, latency)| (words.len() - 1 - bytes, latency.saturating_sub(bytes)));
        true
    }
}

impl Parser for Biosnoop {
    fn begin(&mut self, head: &[u8]) {
        head.split(|byte| *byte == b'\n').take(64).any(|line| self.header(line));
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        if self.header(line) || line.starts_with(b"Tracing ") {
            return Ok(None);
        }
        let (after, latency) = self.after.unwrap_or((1, 1));
        let words = words(line);
        // The name of a process may contain blanks, so columns are counted from the end.
        let bytes_at = words.len().checked_sub(1 + after).filter(|at| *at >= 6).ok_or(Expected(COLUMNS))?;
        let end = decimal(words[0], "the time in s, a decimal number")?;
        let latency = decimal(words[bytes_at + latency], "the latency in ms, a decimal number")?;
        number(words[bytes_at - 4], COLUMNS)?;
        let bytes = number(words[bytes_at], "the size in bytes, a whole number")?;
        let letters = words[bytes_at - 2];
        // A request without letters has neither data nor a meaning for the device.
        let Some(operation) = operation(letters, bytes) else {
            return if letters.iter().all(u8::is_ascii_uppercase) { Ok(None) } else { Err(Expected(COLUMNS)) };
        };
        let lba = match operation {
            Operation::Flush => 0,
            _ => number(words[bytes_at - 1], "the first sector, a whole number")?,
        };
        let device = self.names.device(words[bytes_at - 3], 0)?;
        let stamp = Decimal::of_ps(end.scaled(12).saturating_sub(latency.scaled(9)));
        let sectors = if operation == Operation::Flush { 0 } else { bytes.div_ceil(512) };
        let record = Record::in_sectors(stamp, device, operation, lba, sectors)?;
        Ok(Some(Record { widened: !bytes.is_multiple_of(512), ..record }))
    }

    fn device(&self, device: u32) -> DeviceName {
        DeviceName::Named(self.names.name(device).0)
    }

    fn sort_window(&self) -> u32 {
        SORT_WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_issued_before_they_complete() {
        let mut parser = Biosnoop::default();
        parser.begin(b"TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n");
        let record = parser.parse(b"0.250000    wal writer     546    nvme2n1 R 6916480    4096      0.72");
        let record = record.unwrap().unwrap();
        assert_eq!((record.lba, record.sectors, record.operation), (6_916_480, 8, Operation::Read));
        assert_eq!(record.stamp.scaled(12), 249_280_000_000);
        assert_eq!(parser.device(record.device).to_string(), "nvme2n1");
        assert!(parser.parse(b"0.25 cp 5 nvme2n1 R 64 4096 x").unwrap_err().0.contains("latency"));
        assert!(parser.parse(b"0.25 5 nvme2n1 R 64 4096 0.1").unwrap_err().0.contains("TIME(s)"));
    }

    #[test]
    fn letters_and_queueing_of_libbpf_tools() {
        let mut parser = Biosnoop::default();
        parser.begin(b"TIME(s)     COMM           PID     DISK    T      SECTOR     BYTES   QUE(ms) LAT(ms)\n");
        let mut read = |line: &str| {
            let record = parser.parse(line.as_bytes()).unwrap()?;
            Some((record.stamp.scaled(12) / 1_000_000, record.operation, record.lba, record.sectors))
        };
        let ahead = "0.500000    cp    543     nvme2n1 RA     4679528    131072  0.010   2.400";
        assert_eq!(read(ahead), Some((497_600, Operation::Read, 4_679_528, 256)));
        let flush = "1.753040    jbd2/nvme2n1-8 412     nvme2n1 FF     0          0       0.004   0.611";
        assert_eq!(read(flush), Some((1_752_429, Operation::Flush, 0, 0)));
        let trim = "2.753040    fstrim         640     nvme2n1 D      4194304    1048576 0.004   0.090";
        assert_eq!(read(trim), Some((2_752_950, Operation::Trim, 4_194_304, 2048)));
    }
}
