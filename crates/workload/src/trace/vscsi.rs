//! Traces of VMware's vscsiStats, as published by CloudPhysics: binary records in little endian.
//!
//! Version 1 has 32 B: serial number, bytes, scatter-gather entries (4 B each), SCSI command, version (2 B each), block
//! of 512 B, time in us (8 B each). Version 2 has 40 B: command, version, serial number, bytes, entries, block, time,
//! response time. The high byte of the version is 1 or 2 (`vscsi.h` of libCacheSim). The response time is not used.

use super::fields::Decimal;
use super::fields::Expected;
use super::format::{Format, Framing, Parser};
use super::record::Record;
use super::time_unit::TimeUnit;
use crate::sim::request::{Operation, SECTOR};

pub(super) static FORMAT: Format = Format {
    name: "vscsi",
    title: "VSCSI binary (CloudPhysics)",
    columns: "32 B (version 1) or 40 B (version 2): serial, bytes, entries, command, version, block, time",
    unit: TimeUnit::Us,
    framing: Framing::Records,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::<Vscsi>::default(),
    writer: None,
};

/// Positions of the fields in a version.
struct Layout {
    version: u8,
    length: usize,
    command_at: usize,
    version_at: usize,
    bytes_at: usize,
    block_at: usize,
    time_at: usize,
}

const VERSIONS: [Layout; 2] = [
    Layout { version: 1, length: 32, command_at: 12, version_at: 14, bytes_at: 4, block_at: 16, time_at: 24 },
    Layout { version: 2, length: 40, command_at: 0, version_at: 2, bytes_at: 8, block_at: 16, time_at: 24 },
];

/// Number of records to check for the version.
const SAMPLE: usize = 64;

impl Layout {
    fn u16(record: &[u8], at: usize) -> u16 {
        record.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
    }

    fn u32(record: &[u8], at: usize) -> u32 {
        record.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(record: &[u8], at: usize) -> u64 {
        record.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn read(&self, record: &[u8]) -> Result<Option<Record>, Expected> {
        if record.len() < self.length {
            return Err(Expected("a whole record"));
        }
        if Layout::u16(record, self.version_at) >> 8 != u16::from(self.version) {
            return Err(Expected("a record of VSCSI, version 1 or 2, all of one version"));
        }
        let operation = match Layout::u16(record, self.command_at) {
            // READ and WRITE with 6, 10, 12 and 16 bytes. UNMAP has its ranges elsewhere, and does not occur in these
            // traces.
            0x08 | 0x28 | 0xa8 | 0x88 => Operation::Read,
            0x0a | 0x2a | 0xaa | 0x8a => Operation::Write,
            0x35 | 0x91 => Operation::Flush,
            _ => return Err(Expected("a SCSI command that reads, writes or synchronizes the cache")),
        };
        let (block, bytes) = (Layout::u64(record, self.block_at), u64::from(Layout::u32(record, self.bytes_at)));
        let (block, bytes) = if operation == Operation::Flush { (0, 0) } else { (block, bytes) };
        let stamp = Decimal::whole(Layout::u64(record, self.time_at));
        let read = Record::in_sectors(stamp, 0, operation, block, bytes.div_ceil(SECTOR))?;
        Ok(Some(Record { widened: !bytes.is_multiple_of(SECTOR), ..read }))
    }

    /// Returns how many of the first records are valid.
    fn fits(&self, head: &[u8]) -> usize {
        head.chunks_exact(self.length).take(SAMPLE).filter(|record| self.read(record).is_ok()).count()
    }
}

struct Vscsi {
    layout: &'static Layout,
}

impl Default for Vscsi {
    fn default() -> Vscsi {
        Vscsi { layout: &VERSIONS[0] }
    }
}

impl Parser for Vscsi {
    fn begin(&mut self, head: &[u8]) {
        let [first, second] = &VERSIONS;
        self.layout = if second.fits(head) > first.fits(head) { second } else { first };
    }

    fn cut(&mut self, _: &[u8]) -> Result<usize, Expected> {
        Ok(self.layout.length)
    }

    fn parse(&mut self, record: &[u8]) -> Result<Option<Record>, Expected> {
        self.layout.read(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(command: u16, bytes: u32, block: u64, us: u64) -> Vec<u8> {
        let mut record = Vec::new();
        for word in [500, bytes, 1] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        for word in [command, 1 << 8] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        for word in [block, us] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        record
    }

    fn second(command: u16, bytes: u32, block: u64, us: u64) -> Vec<u8> {
        let mut record = Vec::new();
        for word in [command, 2 << 8] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        for word in [500, bytes, 1] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        for word in [block, us, 123] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        record
    }

    #[test]
    fn both_versions_give_the_same_requests() {
        let mut read = Vec::new();
        for (make, length) in [(first as fn(u16, u32, u64, u64) -> Vec<u8>, 32), (second, 40)] {
            let bytes = make(0x2a, 4097, 77, 1_000_000);
            assert_eq!(bytes.len(), length);
            let mut parser = Vscsi::default();
            parser.begin(&bytes.repeat(3));
            assert_eq!(parser.cut(&bytes), Ok(length));
            read.push(parser.parse(&bytes).unwrap().unwrap());
        }
        assert_eq!(read[0], read[1]);
        assert_eq!((read[0].lba, read[0].sectors, read[0].widened), (77, 9, true));
        assert_eq!((read[0].operation, read[0].stamp), (Operation::Write, Decimal::whole(1_000_000)));
    }

    #[test]
    fn commands_are_distinguished() {
        let operation =
            |command| Vscsi::default().parse(&first(command, 512, 0, 0)).map(|record| record.unwrap().operation);
        assert_eq!(operation(0x28), Ok(Operation::Read));
        assert_eq!(operation(0x8a), Ok(Operation::Write));
        assert_eq!(operation(0x35), Ok(Operation::Flush));
        assert!(operation(0x12).unwrap_err().0.contains("SCSI command"));
        assert!(Vscsi::default().parse(b"0,20941264,8192,W,0.551706\n0,20,5").unwrap_err().0.contains("VSCSI"));
        assert!(Vscsi::default().parse(&[0; 31]).unwrap_err().0.contains("whole record"));
    }
}
