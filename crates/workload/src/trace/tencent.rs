//! Tencent's cloud block storage (SNIA IOTTA 28064): CSV, `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! Time in s since 1970, offset and size in sectors of 512 B, 0 for reads and 1 for writes (readme of the traces). The
//! requests of a file are only roughly in order.

use super::fields::Expected;
use super::fields::{Decimal, Fields};
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, Writer};
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "tencent",
    title: "Tencent CBS",
    columns: "time,sector offset,sectors,0|1 (0 reads),volume",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::new(parse),
    writer: Some(Writer { resolution: TimeUnit::S, ..Writer::of(|| Box::new(write)) }),
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let stamp = Decimal::whole(fields.integer("the time, a whole number")?);
    fields.comma()?;
    let lba = fields.integer("the offset in sectors, a whole number")?;
    fields.comma()?;
    let sectors = fields.integer("the size in sectors, a whole number")?;
    fields.comma()?;
    let operation = match fields.word() {
        b"0" => Operation::Read,
        b"1" => Operation::Write,
        _ => return Err(Expected("the operation, 0 (read) or 1 (write)")),
    };
    fields.comma()?;
    let volume = fields.device()?;
    fields.end()?;
    Record::in_sectors(stamp, volume, operation, lba, sectors).map(Some)
}

fn write(out: &mut Vec<u8>, request: &Outgoing) {
    let Outgoing { number, lba, sectors, .. } = request;
    let time = request.ticks(TimeUnit::S);
    let operation = u8::from(request.operation != Operation::Read);
    out.extend_from_slice(format!("{time},{lba},{sectors},{operation},{number}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_published_columns() {
        let read = parse(b"1538323200,12910952,128,0,1063").unwrap().unwrap();
        assert_eq!((read.device, read.lba, read.sectors), (1063, 12_910_952, 128));
        assert_eq!((read.operation, read.stamp), (Operation::Read, Decimal::whole(1_538_323_200)));
        assert_eq!(parse(b"1538323200,8,8,1,1").unwrap().unwrap().operation, Operation::Write);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("1,0,8,R,1").contains("0 (read)"));
        assert!(expected("1,0,8,0").contains("comma"));
        assert!(expected("1,0,8,0,1,2").contains("end of the line"));
    }
}
