//! MSR Cambridge traces (SNIA IOTTA 388): CSV with Windows file times.
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: the time in 100 ns since 1601, offset and size in
//! bytes, `Read` or `Write`. The response time is that of the traced machine, and is not used. Host and disk together
//! form the name of a device, such as `rsrch_1`.

use super::fields::Expected;
use super::fields::{Decimal, Fields};
use super::format::{Format, Framing, Parser};
use super::names::Names;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, Writer};
use crate::sim::request::{Operation, SECTOR};

pub(super) static FORMAT: Format = Format {
    name: "msr",
    title: "MSR Cambridge CSV",
    columns: "time,host,disk,Read|Write,byte offset,bytes[,response time]",
    unit: TimeUnit::HundredNs,
    looks: |_| true,
    framing: Framing::Lines,
    has_events: false,
    parser: |_| Box::<Msr>::default(),
    writer: Some(Writer { resolution: TimeUnit::HundredNs, ..Writer::of(|| Box::new(write)) }),
};

/// Parser for the lines of a trace.
#[derive(Default)]
struct Msr {
    names: Names,
}

impl Parser for Msr {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        let mut fields = Fields(line);
        fields.blanks();
        let stamp = Decimal::whole(fields.integer("the time, a whole number")?);
        fields.comma()?;
        let host = fields.word();
        fields.comma()?;
        let disk = fields.integer("the disk, a whole number")?;
        fields.comma()?;
        let operation = fields.word();
        let operation = match operation {
            _ if operation.eq_ignore_ascii_case(b"Read") => Operation::Read,
            _ if operation.eq_ignore_ascii_case(b"Write") => Operation::Write,
            _ => return Err(Expected("the operation, Read or Write")),
        };
        fields.comma()?;
        let offset = fields.integer("the offset in bytes, a whole number")?;
        fields.comma()?;
        let bytes = fields.integer("the size in bytes, a whole number")?;
        fields.blanks();
        if !matches!(fields.0.first(), None | Some(b',')) {
            return Err(Expected("the end of the line or the response time after the size"));
        }
        let record = Record::in_bytes(stamp, 0, operation, offset, bytes)?;
        Ok(Some(Record { device: self.names.device(host, disk)?, ..record }))
    }

    fn device(&self, device: u32) -> DeviceName {
        let (host, disk) = self.names.name(device);
        DeviceName::Disk(host, disk)
    }
}

/// Writes a request. Devices that are not disks of a host become disks of a host named `trace`. The response time is
/// unknown, and written as 0.
fn write(out: &mut Vec<u8>, request: &Outgoing) {
    let (host, disk) = match request.name {
        DeviceName::Disk(host, disk) => (host.as_str(), *disk),
        _ => ("trace", request.number),
    };
    let operation = if request.operation == Operation::Read { "Read" } else { "Write" };
    let (offset, bytes) = (u128::from(request.lba) * u128::from(SECTOR), request.sectors * SECTOR);
    let time = request.ticks(TimeUnit::HundredNs);
    out.extend_from_slice(format!("{time},{host},{disk},{operation},{offset},{bytes},0\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_published_fields() {
        let mut parser = Msr::default();
        let record = parser.parse(b"128166372003061629,hm,1,Read,383496192,32768,413").unwrap().unwrap();
        assert_eq!((record.lba, record.sectors, record.operation), (383_496_192 / 512, 64, Operation::Read));
        assert_eq!(record.stamp, Decimal::whole(128_166_372_003_061_629));
        assert_eq!(parser.device(record.device).to_string(), "hm_1");
    }

    #[test]
    fn host_and_disk_name_a_device() {
        let mut parser = Msr::default();
        let mut device = |host: &str, disk: u32| {
            let line = format!("1,{host},{disk},write,1000,100");
            parser.parse(line.as_bytes()).unwrap().unwrap().device
        };
        let numbers = [device("web", 0), device("hm", 1), device("web", 1), device("hm", 1), device("web", 0)];
        assert_eq!(numbers, [0, 1, 2, 1, 0]);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| Msr::default().parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("1,hm,1,Trim,0,512,1").contains("Read or Write"));
        assert!(expected("1.5,hm,1,Read,0,512,1").contains("comma"));
        assert!(expected("1,hm,x,Read,0,512,1").contains("disk"));
        assert!(expected("1,hm,1,Read,0").contains("comma"));
        assert!(expected("1,hm,1,Read,18446744073709551615,512").contains("16 EiB"));
    }
}
