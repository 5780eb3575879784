//! SPC traces, as in the UMass Trace Repository (Financial1 and 2, WebSearch1 to 3).
//!
//! `ASU,LBA,Size,Opcode,Timestamp[,more]` according to the SPC trace file specification, revision 1.0.1. The LBA is in
//! blocks of the ASU (512 B in these traces), the size in bytes, the time in seconds from the start. There may be
//! blanks around the commas.

use super::fields::Expected;
use super::fields::Fields;
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, Writer};
use crate::sim::request::{Operation, SECTOR};

pub(super) static FORMAT: Format = Format {
    name: "spc",
    title: "SPC (UMass repository)",
    columns: "ASU,LBA,bytes,R|W,time[,...]",
    unit: TimeUnit::S,
    looks: |_| true,
    framing: Framing::Lines,
    has_events: false,
    parser: |_| Box::new(parse),
    writer: Some(Writer::of(|| Box::new(write))),
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let device = fields.device()?;
    fields.comma()?;
    let lba = fields.integer("the first block, a whole number")?;
    fields.comma()?;
    let bytes = fields.integer("the size in bytes, a whole number")?;
    fields.comma()?;
    let operation = match fields.word() {
        b"R" | b"r" => Operation::Read,
        b"W" | b"w" => Operation::Write,
        _ => return Err(Expected("the operation, R or W")),
    };
    fields.comma()?;
    let stamp = fields.decimal("the time, a decimal number")?;
    fields.blanks();
    if !matches!(fields.0.first(), None | Some(b',')) {
        return Err(Expected("the end of the line or a further field after the time"));
    }
    let record = Record::in_sectors(stamp, device, operation, lba, bytes.div_ceil(SECTOR))?;
    Ok(Some(Record { widened: !bytes.is_multiple_of(SECTOR), ..record }))
}

fn write(out: &mut Vec<u8>, request: &Outgoing) {
    let (device, lba, bytes) = (request.number, request.lba, request.sectors * SECTOR);
    let (operation, time) =
        (if request.operation == Operation::Read { 'R' } else { 'W' }, request.decimal(TimeUnit::S));
    out.extend_from_slice(format!("{device},{lba},{bytes},{operation},{time}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::fields::Decimal;
    use super::*;

    #[test]
    fn reads_the_specifications_fields() {
        let record = parse(b"0,20941264,8192,W,0.551706").unwrap().unwrap();
        assert_eq!((record.device, record.lba, record.sectors, record.widened), (0, 20_941_264, 16, false));
        assert_eq!((record.operation, record.stamp.scaled(12)), (Operation::Write, 551_706_000_000));
        let spaced = parse(b" 3, 1, 513 , r , 7, extra, 9").unwrap().unwrap();
        assert_eq!((spaced.device, spaced.sectors, spaced.widened, spaced.stamp), (3, 2, true, Decimal::whole(7)));
        assert_eq!(spaced.operation, Operation::Read);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("0,1,512,X,1").contains("R or W"));
        assert!(expected("0,1,512,RW,1").contains("R or W"));
        assert!(expected("0,1,512,R").contains("comma"));
        assert!(expected("0,1,512,R,1.5s").contains("end of the line"));
        assert!(expected("0,1,0,R,1").contains("at least one byte"));
        assert!(expected("0,-1,512,R,1").contains("first block"));
        assert!(expected("4294967296,1,512,R,1").contains("device number"));
    }
}
