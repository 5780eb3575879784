//! Block traces of a Nexus 5 (eMMC), recorded with BIOtracer: `lba sectors bytes type arrival fetch dispatch finish`.
//!
//! Separated by tabs, with address and length in sectors, and times in s with a fraction. Bit 0 of the type is set for
//! a write, bit 2 if the request did not wait (readme of BIOtracer; Zhou et al., "I/O characteristics of smartphone
//! applications and their implications for eMMC design", IISWC 2015). The arrival is the time of the request. The bytes
//! repeat the sectors, and the columns after the arrival describe the traced phone. These columns are parsed, but not
//! used.

use super::fields::Expected;
use super::fields::Fields;
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "biotracer",
    title: "BIOtracer (Nexus 5, eMMC)",
    columns: "lba sectors bytes type (bit 0 writes) arrival fetch dispatch finish",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::new(parse),
    writer: None,
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    const COLUMNS: &str = "eight columns: lba sectors bytes type arrival fetch dispatch finish";
    let mut fields = Fields(line);
    fields.blanks();
    let lba = fields.integer("the first sector, a whole number")?;
    fields.space(COLUMNS)?;
    let sectors = fields.integer("the length in sectors, a whole number")?;
    fields.space(COLUMNS)?;
    fields.integer("the length in bytes, a whole number")?;
    fields.space(COLUMNS)?;
    let kind = fields.integer("the type, a whole number")?;
    if kind & !0b101 != 0 {
        return Err(Expected("the type: 0 or 4 (read), 1 or 5 (write)"));
    }
    fields.space(COLUMNS)?;
    let stamp = fields.decimal("the time of arrival, a decimal number")?;
    for _ in 0..3 {
        fields.space(COLUMNS)?;
        fields.decimal("a time, a decimal number")?;
    }
    fields.end()?;
    let operation = if kind & 1 == 1 { Operation::Write } else { Operation::Read };
    Record::in_sectors(stamp, 0, operation, lba, sectors).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_logs_columns() {
        let read = parse(b"61071352\t\t8\t\t4096\t\t4\t\t1.741484950\t\t1.7\t\t1.75\t\t1.8").unwrap().unwrap();
        assert_eq!((read.lba, read.sectors, read.operation), (61_071_352, 8, Operation::Read));
        assert_eq!(read.stamp.scaled(12), 1_741_484_950_000);
        assert_eq!(parse(b"0 8 4096 5 1.0 1.0 1.0 1.0").unwrap().unwrap().operation, Operation::Write);
        assert_eq!(parse(b"0 8 4096 1 1.0 1.0 1.0 1.0").unwrap().unwrap().operation, Operation::Write);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("0 8 4096 2 1.0 1.0 1.0 1.0").contains("type"));
        assert!(expected("0 8 4096 1 1.0 1.0 1.0").contains("eight columns"));
        assert!(expected("0 8 4096 1 1.0 1.0 1.0 1.0 1").contains("end of the line"));
    }
}
