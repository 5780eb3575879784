//! Alibaba's block traces of 2020: CSV, `device_id,opcode,offset,length,timestamp`.
//!
//! `R` or `W`, offset and length in bytes, time in us since 1970 (readme of the traces, alibaba/block-traces).

use super::fields::Expected;
use super::fields::{Decimal, Fields};
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, Writer};
use crate::sim::request::{Operation, SECTOR};

pub(super) static FORMAT: Format = Format {
    name: "alibaba",
    title: "Alibaba block traces",
    columns: "device,R|W,byte offset,bytes,time",
    unit: TimeUnit::Us,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::new(parse),
    writer: Some(Writer { resolution: TimeUnit::Us, ..Writer::of(|| Box::new(write)) }),
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let device = fields.device()?;
    fields.comma()?;
    let operation = match fields.word() {
        b"R" => Operation::Read,
        b"W" => Operation::Write,
        _ => return Err(Expected("the operation, R or W")),
    };
    fields.comma()?;
    let offset = fields.integer("the offset in bytes, a whole number")?;
    fields.comma()?;
    let bytes = fields.integer("the length in bytes, a whole number")?;
    fields.comma()?;
    let stamp = Decimal::whole(fields.integer("the time, a whole number")?);
    fields.end()?;
    Record::in_bytes(stamp, device, operation, offset, bytes).map(Some)
}

fn write(out: &mut Vec<u8>, request: &Outgoing) {
    let device = request.number;
    let operation = if request.operation == Operation::Read { 'R' } else { 'W' };
    let (offset, bytes) = (u128::from(request.lba) * u128::from(SECTOR), request.sectors * SECTOR);
    let time = request.ticks(TimeUnit::Us);
    out.extend_from_slice(format!("{device},{operation},{offset},{bytes},{time}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_published_columns() {
        let read = parse(b"7,R,126703644672,4096,1577808000000626").unwrap().unwrap();
        assert_eq!((read.device, read.lba, read.sectors), (7, 126_703_644_672 / 512, 8));
        assert_eq!((read.operation, read.stamp), (Operation::Read, Decimal::whole(1_577_808_000_000_626)));
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("7,X,0,4096,1").contains("R or W"));
        assert!(expected("7,W,0,4096").contains("comma"));
        assert!(expected("7,W,0,4096,1.5").contains("end of the line"));
    }
}
