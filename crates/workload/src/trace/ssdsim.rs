//! SSDsim traces: `time device lba sectors operation`, five whole numbers.
//!
//! Time in ns, addresses and lengths in sectors of 512 B, 1 for reads and 0 for writes (`ssd.c`, `get_requests`, which
//! reads the address into 32 bits; here it has 64).

use super::fields::Expected;
use super::fields::{Decimal, Fields};
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, Writer};
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "ssdsim",
    title: "SSDsim",
    columns: "time device lba sectors 1|0 (1 reads)",
    unit: TimeUnit::Ns,
    // Tabs are used by DiskSim.
    looks: |line| !line.contains(&b'\t'),
    framing: Framing::Lines,
    has_events: false,
    parser: |_| Box::new(parse),
    writer: Some(Writer {
        resolution: TimeUnit::Ns,
        // `get_requests` reads the address with `%d`.
        address_bits: 31,
        ..Writer::of(|| Box::new(write))
    }),
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let (record, operation) = columns(line)?;
    let operation = match operation {
        1 => Operation::Read,
        0 => Operation::Write,
        _ => return Err(Expected("the operation, 1 (read) or 0 (write)")),
    };
    Ok(Some(Record { operation, ..record }))
}

/// Parses the five columns, and returns the last one as a number. MQSim has the same columns.
pub(super) fn columns(line: &[u8]) -> Result<(Record, u64), Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let stamp = Decimal::whole(fields.integer("the time, a whole number")?);
    fields.gap()?;
    let device = fields.device()?;
    fields.gap()?;
    let lba = fields.integer("the first sector, a whole number")?;
    fields.gap()?;
    let sectors = fields.integer("the length in sectors, a whole number")?;
    fields.gap()?;
    let operation = fields.integer("the operation, a whole number")?;
    fields.end()?;
    Ok((Record::in_sectors(stamp, device, Operation::Read, lba, sectors)?, operation))
}

pub(super) fn write(out: &mut Vec<u8>, request: &Outgoing) {
    let Outgoing { number, lba, sectors, .. } = request;
    let time = request.ticks(TimeUnit::Ns);
    let operation = u8::from(request.operation == Operation::Read);
    out.extend_from_slice(format!("{time} {number} {lba} {sectors} {operation}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reads_and_zero_writes() {
        let read = parse(b"26214000 1 240840 6 1").unwrap().unwrap();
        assert_eq!((read.device, read.lba, read.sectors, read.operation), (1, 240_840, 6, Operation::Read));
        assert_eq!(read.stamp, Decimal::whole(26_214_000));
        assert_eq!(parse(b"0 0 303567 7 0 ").unwrap().unwrap().operation, Operation::Write);
        // Larger than SSDsim's own limit of 32 bits.
        assert_eq!(parse(b"0 0 8589934592 1 0").unwrap().unwrap().lba, 1 << 33);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("0 0 0 8 2").contains("1 (read) or 0 (write)"));
        assert!(expected("0 0 0 8").contains("five columns"));
        assert!(expected("0 0 0 8 1 1").contains("end of the line"));
        assert!(expected("0.5 0 0 8 1").contains("five columns"));
        assert!(expected("0 0 0 0 1").contains("at least one byte"));
    }
}
