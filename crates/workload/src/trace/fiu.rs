//! FIU traces (SNIA IOTTA 390 and 391): `time pid process lba sectors W|R major minor digest`.
//!
//! Time in ns, address and length in blocks of 512 B (readme of the traces). The last column is a digest of each 4 KiB
//! (or 512 B) of the content, and may be missing. The digest and the process are not used.

use super::blkparse::{MINOR_BITS, device_name};
use super::fields::Expected;
use super::fields::{Decimal, Fields};
use super::format::{Format, Framing, Parser};
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "fiu",
    title: "FIU (SNIA IOTTA)",
    columns: "time pid process lba sectors R|W major minor [digest]",
    unit: TimeUnit::Ns,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::new(Fiu),
    writer: None,
};

struct Fiu;

const COLUMNS: &str = "eight or nine columns: time pid process lba sectors R|W major minor [digest]";

impl Parser for Fiu {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        let mut fields = Fields(line);
        fields.blanks();
        let stamp = Decimal::whole(fields.integer("the time, a whole number")?);
        fields.space(COLUMNS)?;
        fields.integer("the process id, a whole number")?;
        fields.space(COLUMNS)?;
        // The name of a process may contain blanks, so the following columns are counted from the end.
        let words: Vec<&[u8]> =
            fields.0.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty()).collect();
        let operation_at = |from_end: usize| {
            let place = words.len().checked_sub(from_end)?;
            matches!(words[place], b"R" | b"W" | b"r" | b"w").then_some(place)
        };
        let place = operation_at(4).or_else(|| operation_at(3)).filter(|place| *place >= 3).ok_or(Expected(COLUMNS))?;
        let operation = if words[place].eq_ignore_ascii_case(b"R") { Operation::Read } else { Operation::Write };
        let lba = whole(words[place - 2], "the first sector, a whole number")?;
        let sectors = whole(words[place - 1], "the length in sectors, a whole number")?;
        let major = whole(words[place + 1], "the major number, below 4096")?;
        let minor = whole(words[place + 2], "the minor number, below 1048576")?;
        if major >= 1 << (32 - MINOR_BITS) || minor >= 1 << MINOR_BITS {
            return Err(Expected("a major number below 4096 and a minor number below 1048576"));
        }
        Record::in_sectors(stamp, (major << MINOR_BITS | minor) as u32, operation, lba, sectors).map(Some)
    }

    fn device(&self, device: u32) -> DeviceName {
        device_name(device)
    }
}

fn whole(word: &[u8], what: &'static str) -> Result<u64, Expected> {
    let mut fields = Fields(word);
    let value = fields.integer(what)?;
    fields.end().map_err(|_| Expected(what))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_published_columns() {
        let read = Fiu.parse(b"89966527950584 4253 nfsd 508516672 8 W 6 0 88b93b628d84082186026d9da044f173");
        let read = read.unwrap().unwrap();
        assert_eq!((read.lba, read.sectors, read.operation), (508_516_672, 8, Operation::Write));
        assert_eq!(
            (read.stamp, Fiu.device(read.device).to_string()),
            (Decimal::whole(89_966_527_950_584), "6:0".into())
        );
        let spaced = Fiu.parse(b"1 2 a process 64 16 R 8 1").unwrap().unwrap();
        assert_eq!((spaced.lba, spaced.sectors, spaced.operation), (64, 16, Operation::Read));
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| Fiu.parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("1 2 p 64 16 X 8 1 d").contains("columns"));
        assert!(expected("1 2 64 16 R 8 1 d").contains("columns"));
        assert!(expected("1 2 p x 16 R 8 1 d").contains("first sector"));
        assert!(expected("1 2 p 64 16 R 8 1048576 d").contains("minor"));
        assert!(expected("1.5 2 p 64 16 R 8 1 d").contains("columns"));
    }
}
