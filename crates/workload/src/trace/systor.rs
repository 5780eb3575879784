//! Traces of a virtual desktop infrastructure (Systor '17, SNIA IOTTA): CSV,
//! `Timestamp,Response,IOType,LUN,Offset,Size`.
//!
//! Times in s since 1970 with a fraction, `R` or `W`, offset and size in bytes (readme of the traces). The response
//! time is not used, and may be empty. Requests are in the order of their completion.

use super::fields::Expected;
use super::fields::Fields;
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, Writer};
use crate::sim::request::{Operation, SECTOR};

pub(super) static FORMAT: Format = Format {
    name: "systor",
    title: "Systor '17",
    columns: "time,response time,R|W,LUN,byte offset,bytes",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::new(parse),
    writer: Some(Writer {
        resolution: TimeUnit::Ns,
        header: "Timestamp,Response,IOType,LUN,Offset,Size\n",
        ..Writer::of(|| Box::new(write))
    }),
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let stamp = fields.decimal("the time, a decimal number")?;
    fields.comma()?;
    if fields.0.first() != Some(&b',') {
        fields.decimal("the response time, a decimal number or nothing")?;
    }
    fields.comma()?;
    let operation = match fields.word() {
        b"R" => Operation::Read,
        b"W" => Operation::Write,
        _ => return Err(Expected("the operation, R or W")),
    };
    fields.comma()?;
    let device = fields.device()?;
    fields.comma()?;
    let offset = fields.integer("the offset in bytes, a whole number")?;
    fields.comma()?;
    let bytes = fields.integer("the size in bytes, a whole number")?;
    fields.end()?;
    Record::in_bytes(stamp, device, operation, offset, bytes).map(Some)
}

fn write(out: &mut Vec<u8>, request: &Outgoing) {
    let device = request.number;
    let operation = if request.operation == Operation::Read { 'R' } else { 'W' };
    let (offset, bytes) = (u128::from(request.lba) * u128::from(SECTOR), request.sectors * SECTOR);
    let time = request.seconds();
    out.extend_from_slice(format!("{time},,{operation},{device},{offset},{bytes}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_published_columns() {
        let read = parse(b"1456095145.133076000,0.000806000,R,0,899056122368,131072").unwrap().unwrap();
        assert_eq!((read.device, read.lba, read.sectors), (0, 899_056_122_368 / 512, 256));
        assert_eq!((read.operation, read.stamp.scaled(12)), (Operation::Read, 1_456_095_145_133_076_000_000));
        assert_eq!(parse(b"1.5,,W,3,0,512").unwrap().unwrap().device, 3);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("1.5,x,W,3,0,512").contains("response time"));
        assert!(expected("1.5,0,w,3,0,512").contains("R or W"));
        assert!(expected("1.5,0,W,3,0").contains("comma"));
        assert!(expected("1.5,0,W,3,0,512,1").contains("end of the line"));
    }
}
