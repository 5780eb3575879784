//! Binary files of blktrace: records of 48 B, each followed by data of variable length.
//!
//! The records are `struct blk_io_trace` of `blktrace_api.h`, version 7, in the byte order of the traced machine, which
//! the magic number shows: time in ns since the start of the trace, first sector, length in bytes, action, device. The
//! kernel writes one file per processor, `NAME.blktrace.0` and so on. The path `NAME.blktrace` reads all of them in the
//! order of their times: see `merged`.

use super::blkparse::device_name;
use super::events::{Action, Events, Requested};
use super::fields::Decimal;
use super::fields::Expected;
use super::format::{Format, Framing, Parser};
use super::options::TraceOptions;
use super::record::{DeviceName, Record, counted};
use super::time_unit::TimeUnit;
use crate::sim::request::{Operation, SECTOR};

pub(super) static FORMAT: Format = Format {
    name: "blktrace",
    title: "blktrace binary",
    columns: "struct blk_io_trace, version 7",
    unit: TimeUnit::Ns,
    framing: Framing::Records,
    has_events: true,
    looks: |_| true,
    parser: |options| Box::new(Blktrace::new(options)),
    writer: None,
};

const MAGIC: u32 = 0x6561_7400 | 7;
/// Bytes of a record without the data after it.
const RECORD: usize = 48;

/// Bits of the upper half of `action`, named `BLK_TC_*` in the header file.
const WRITE: u32 = 1 << 1;
const READ: u32 = 1;
const FLUSH: u32 = 1 << 2;
const PASSTHROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

/// Bytes of a record, and their byte order.
#[derive(Clone, Copy)]
struct Raw<'a> {
    bytes: &'a [u8; RECORD],
    swapped: bool,
}

impl<'a> Raw<'a> {
    fn new(bytes: &'a [u8]) -> Result<Raw<'a>, Expected> {
        const WHOLE: Expected = Expected("a whole record of 48 bytes");
        const EXPECTED: Expected = Expected("a record of blktrace, version 7: the magic number 0x65617407");
        let bytes = bytes.first_chunk().ok_or(WHOLE)?;
        let raw = Raw { bytes, swapped: false };
        match raw.u32(0) {
            MAGIC => Ok(raw),
            magic if magic == MAGIC.swap_bytes() => Ok(Raw { swapped: true, ..raw }),
            _ => Err(EXPECTED),
        }
    }

    fn u16(self, at: usize) -> u16 {
        let value = u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]);
        if self.swapped { value.swap_bytes() } else { value }
    }

    fn u32(self, at: usize) -> u32 {
        let value = self.bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if self.swapped { value.swap_bytes() } else { value }
    }

    fn u64(self, at: usize) -> u64 {
        let value = self.bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if self.swapped { value.swap_bytes() } else { value }
    }

    /// Returns the action, if it can represent a request.
    fn action(self) -> Option<Action> {
        let action = self.u32(28);
        if (action >> 16) & NOTIFY != 0 {
            return None;
        }
        // Values of `__BLK_TA_QUEUE` and the following constants.
        match action & 0xffff {
            1 => Some(Action::Queue),
            7 => Some(Action::Issue),
            8 => Some(Action::Complete),
            12 => Some(Action::Insert),
            _ => None,
        }
    }

    fn requested(self) -> Requested {
        let category = self.u32(28) >> 16;
        let operation = match category {
            _ if category & DISCARD != 0 => Some(Operation::Trim),
            _ if category & WRITE != 0 => Some(Operation::Write),
            // Only writes have a bit, so a flush without data would count as a read.
            _ if category & FLUSH != 0 && self.u32(24) == 0 => Some(Operation::Flush),
            _ if category & READ != 0 => Some(Operation::Read),
            _ => None,
        };
        Requested { operation, durable: category & (FLUSH | FUA) != 0 }
    }
}

struct Blktrace {
    events: Events,
    requests: u64,
    /// Processor of the requests, as long as all of them are from the same one.
    processor: Option<u32>,
}

impl Blktrace {
    fn new(options: &TraceOptions) -> Blktrace {
        Blktrace { events: Events::new(options.action), requests: 0, processor: None }
    }

    fn note_processor(&mut self, processor: u32) {
        self.processor = match self.requests {
            0 => Some(processor),
            _ => self.processor.filter(|one| *one == processor),
        };
        self.requests += 1;
    }
}

impl Parser for Blktrace {
    fn begin(&mut self, head: &[u8]) {
        let mut actions = Vec::new();
        let mut rest = head;
        while let Some((raw, behind)) = Raw::new(rest).ok().zip(self.cut(rest).ok().and_then(|cut| rest.get(cut..))) {
            actions.extend(raw.action());
            rest = behind;
        }
        self.events.settle(&actions);
    }

    fn cut(&mut self, bytes: &[u8]) -> Result<usize, Expected> {
        if bytes.len() < RECORD {
            return Ok(RECORD);
        }
        Ok(RECORD + usize::from(Raw::new(bytes)?.u16(46)))
    }

    fn parse(&mut self, record: &[u8]) -> Result<Option<Record>, Expected> {
        let raw = Raw::new(record)?;
        if !raw.action().is_some_and(|action| self.events.wants(action)) {
            return Ok(None);
        }
        if (raw.u32(28) >> 16) & PASSTHROUGH != 0 {
            self.events.leave_out_passthrough();
            return Ok(None);
        }
        let lba = raw.u64(16);
        let bytes = u64::from(raw.u32(24));
        let sectors = bytes.div_ceil(SECTOR);
        let Some(operation) = self.events.operation(raw.requested(), sectors) else { return Ok(None) };
        let (lba, sectors) = if operation == Operation::Flush { (0, 0) } else { (lba, sectors) };
        let record = Record::in_sectors(Decimal::whole(raw.u64(8)), raw.u32(36), operation, lba, sectors)?;
        self.note_processor(raw.u32(40));
        Ok(Some(Record { widened: !bytes.is_multiple_of(SECTOR), ..record }))
    }

    fn device(&self, device: u32) -> DeviceName {
        device_name(device)
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.events.warnings();
        if let Some(processor) = self.processor.filter(|_| self.requests > 1) {
            let requests = counted(self.requests, "request");
            warnings.push(format!(
                "all {requests} were made on processor {processor}: if the machine had others, this is one of several \
                 files, which `blkparse -i NAME -O -d FILE` makes one, in order"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record in little endian.
    fn record(action: u32, time: u64, sector: u64, bytes: u32, cpu: u32, pdu: u16) -> Vec<u8> {
        let mut record = Vec::new();
        for word in [MAGIC, 1] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        for word in [time, sector] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        for word in [bytes, action, 77, 8 << 20 | 16, cpu] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        record.extend_from_slice(&0_u16.to_le_bytes());
        record.extend_from_slice(&pdu.to_le_bytes());
        record.resize(record.len() + usize::from(pdu), 0xee);
        record
    }

    fn parser() -> Blktrace {
        Blktrace::new(&TraceOptions::default())
    }

    const ISSUE: u32 = 7 | (1 << 6) << 16;

    #[test]
    fn reads_the_kernels_structure() {
        let bytes = record(ISSUE | WRITE << 16, 1_500, 2048, 4096, 0, 5);
        let mut parser = parser();
        assert_eq!((parser.cut(&bytes), parser.cut(&bytes[..47])), (Ok(53), Ok(48)));
        let read = parser.parse(&bytes).unwrap().unwrap();
        assert_eq!((read.stamp, read.lba, read.sectors), (Decimal::whole(1_500), 2048, 8));
        assert_eq!((read.operation, parser.device(read.device).to_string()), (Operation::Write, "8:16".to_owned()));
    }

    #[test]
    fn the_other_byte_order_gives_the_same_requests() {
        let mut bytes = record(ISSUE | READ << 16, 1_500, 2048, 4096, 0, 0);
        let fields = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];
        let mut at = 0;
        for length in fields {
            bytes[at..at + length].reverse();
            at += length;
        }
        let swapped = parser().parse(&bytes).unwrap().unwrap();
        let plain = parser().parse(&record(ISSUE | READ << 16, 1_500, 2048, 4096, 0, 0)).unwrap().unwrap();
        assert_eq!(swapped, plain);
    }

    #[test]
    fn operations_are_distinguished() {
        let mut parser = parser();
        let mut operation = |category: u32, bytes: u32| {
            let record = parser.parse(&record(ISSUE | category << 16, 0, 8, bytes, 0, 0)).unwrap();
            record.map(|record| (record.operation, record.sectors))
        };
        assert_eq!(operation(WRITE | DISCARD, 4096), Some((Operation::Trim, 8)));
        assert_eq!(operation(WRITE | FLUSH, 0), Some((Operation::Flush, 0)));
        assert_eq!(operation(READ | FLUSH, 0), Some((Operation::Flush, 0)));
        assert_eq!(operation(WRITE | FUA, 4096), Some((Operation::Write, 8)));
        assert_eq!(operation(READ | PASSTHROUGH, 36), None);
        assert_eq!(operation(READ, 0), None);
        let name = record(NOTIFY << 16, 0, 0, 0, 0, 16);
        assert_eq!(parser.parse(&name), Ok(None));
    }

    #[test]
    fn one_file_of_several_gives_a_warning() {
        let mut parser = parser();
        let mut read = |cpu| {
            parser.parse(&record(ISSUE | READ << 16, 0, 8, 512, cpu, 0)).unwrap();
            parser.warnings().len()
        };
        assert_eq!([read(3), read(3), read(2), read(3)], [0, 1, 0, 0]);
    }

    #[test]
    fn errors_state_what_was_expected() {
        assert!(parser().cut(&[0x41; 64]).unwrap_err().0.contains("0x65617407"));
        assert!(parser().parse(&[0x41; 4]).unwrap_err().0.contains("whole record"));
    }
}
