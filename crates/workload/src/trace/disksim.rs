//! DiskSim's ASCII traces: `time device block blocks flags`.
//!
//! Time in ms with a fraction, blocks of 512 B, flags in hexadecimal with bit 0 set for a read, separated by blanks or
//! tabs (`disksim_iotrace.c`, `iotrace_ascii_get_ioreq_event`). The other flags (order, urgency) are not used.

use super::fields::Expected;
use super::fields::Fields;
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, Writer};
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "disksim",
    title: "DiskSim ASCII",
    columns: "time device block blocks flags (hexadecimal, bit 0 reads)",
    unit: TimeUnit::Ms,
    looks: |_| true,
    framing: Framing::Lines,
    has_events: false,
    parser: |_| Box::new(parse),
    writer: Some(Writer {
        // `iotrace_ascii_get_ioreq_event` reads the block with `%d`.
        address_bits: 31,
        ..Writer::of(|| Box::new(write))
    }),
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let stamp = fields.decimal("the time, a decimal number")?;
    fields.gap()?;
    let device = fields.device()?;
    fields.gap()?;
    let lba = fields.integer("the first block, a whole number")?;
    fields.gap()?;
    let sectors = fields.integer("the length in blocks, a whole number")?;
    fields.gap()?;
    let flags = fields.hexadecimal("the flags, a hexadecimal number")?;
    fields.end()?;
    let operation = if flags & 1 == 1 { Operation::Read } else { Operation::Write };
    Record::in_sectors(stamp, device, operation, lba, sectors).map(Some)
}

fn write(out: &mut Vec<u8>, request: &Outgoing) {
    let Outgoing { number, lba, sectors, .. } = request;
    let time = request.decimal(TimeUnit::Ms);
    let operation = u8::from(request.operation == Operation::Read);
    out.extend_from_slice(format!("{time} {number} {lba} {sectors} {operation}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fractions_tabs_and_flags() {
        let record = parse(b"5265.313 0 6357144 8 0").unwrap().unwrap();
        assert_eq!((record.stamp.scaled(9), record.lba, record.sectors), (5_265_313_000_000, 6_357_144, 8));
        assert_eq!(record.operation, Operation::Write);
        let tabs = parse(b"13.191135\t30\t0\t5\t1").unwrap().unwrap();
        assert_eq!((tabs.device, tabs.operation), (30, Operation::Read));
        assert_eq!(parse(b"1 0 0 8 1e").unwrap().unwrap().operation, Operation::Write);
        assert_eq!(parse(b"1 0 0 8 0x1b").unwrap().unwrap().operation, Operation::Read);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("1.0 0 0 8 R").contains("hexadecimal"));
        assert!(expected("-1.0 0 0 8 1").contains("time"));
        assert!(expected("1.0 0 0 8").contains("five columns"));
    }
}
