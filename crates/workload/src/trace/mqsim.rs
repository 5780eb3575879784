//! MQSim traces: SSDsim's five columns, but any operation other than 0 is a read (`host/ASCII_Trace_Definition.h`).

use super::fields::Expected;
use super::format::{Format, Framing};
use super::record::Record;
use super::ssdsim;
use super::time_unit::TimeUnit;
use super::writer::Writer;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "mqsim",
    title: "MQSim",
    columns: "time device lba sectors 0|1 (0 writes, anything else reads)",
    unit: TimeUnit::Ns,
    looks: ssdsim::FORMAT.looks,
    framing: Framing::Lines,
    has_events: false,
    parser: |_| Box::new(parse),
    writer: Some(Writer { resolution: TimeUnit::Ns, ..Writer::of(|| Box::new(ssdsim::write)) }),
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let (record, operation) = ssdsim::columns(line)?;
    let operation = if operation == 0 { Operation::Write } else { Operation::Read };
    Ok(Some(Record { operation, ..record }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_zero_reads() {
        let operation = |line: &str| parse(line.as_bytes()).unwrap().unwrap().operation;
        assert_eq!(operation("938513000 4 264719034 16 0"), Operation::Write);
        assert_eq!(operation("938513000 4 264719034 16 1"), Operation::Read);
        assert_eq!(operation("938513000 4 264719034 16 7"), Operation::Read);
        assert!(parse(b"938513000 4 264719034 16 R").is_err());
    }
}
