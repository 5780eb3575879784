//! The log of Huaicheng Li's replayer: CSV, `time,latency,operation,bytes,offset[,submitted,returned]`.
//!
//! Time in ms, 1 for reads and 0 for writes, length and offset in bytes (readme of huaicheng/replayer). Requests are in
//! the order of their completion. The latency and the measurements of the replay are not used.

use super::fields::Expected;
use super::fields::Fields;
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "replay-log",
    title: "log of a replayer (huaicheng/replayer)",
    columns: "time,latency,1|0 (1 reads),bytes,byte offset,submitted,returned",
    unit: TimeUnit::Ms,
    framing: Framing::Lines,
    has_events: false,
    // Tencent's format also has five columns.
    looks: |line| line.iter().filter(|byte| **byte == b',').count() == 6,
    parser: |_| Box::new(parse),
    writer: None,
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let stamp = fields.decimal("the time, a decimal number")?;
    fields.comma()?;
    fields.decimal("the latency, a decimal number")?;
    fields.comma()?;
    let operation = match fields.word() {
        b"1" => Operation::Read,
        b"0" => Operation::Write,
        _ => return Err(Expected("the operation, 1 (read) or 0 (write)")),
    };
    fields.comma()?;
    let bytes = fields.integer("the length in bytes, a whole number")?;
    fields.comma()?;
    let offset = fields.integer("the offset in bytes, a whole number")?;
    // Otherwise the last request of a truncated log could have only a part of its offset.
    fields.comma().map_err(|_| Expected("a comma and the time of submission after the offset"))?;
    fields.decimal("the time of submission, a decimal number")?;
    fields.comma()?;
    fields.integer("what the call returned, a whole number")?;
    fields.rest("the end of the line after seven columns")?;
    Record::in_bytes(stamp, 0, operation, offset, bytes).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_logs_columns() {
        let read = parse(b"8.724,11,1,4096,21511340032,8.791,4096").unwrap().unwrap();
        assert_eq!((read.lba, read.sectors, read.operation), (21_511_340_032 / 512, 8, Operation::Read));
        assert_eq!(read.stamp.scaled(9), 8_724_000_000);
        assert_eq!(parse(b"0.000,57,0,4096,0,0.099,4096").unwrap().unwrap().operation, Operation::Write);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("1,2,2,4096,0,1,4096").contains("1 (read)"));
        assert!(expected("3592285.250,120,0,4096,10").contains("after the offset"));
    }
}
