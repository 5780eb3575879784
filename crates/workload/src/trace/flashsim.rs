//! FlashSim traces: `time device page pages operation`.
//!
//! `run_trace.cpp` reads `%lf %u %lu %u %u`, with 1 for reads and 0 for writes. It passes page numbers and lengths in
//! pages to `event_arrive`. Times are in the unit of `ssd.conf`, whose delays are in us. A page has `PAGE_SIZE`, 4096
//! B. (It also takes addresses modulo 65536, which is not done here.) The lines look like those of DiskSim and SSDsim,
//! so this format is never detected and has to be selected by name.

use super::fields::Expected;
use super::fields::Fields;
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, Writer};
use crate::sim::request::{Operation, SECTOR};

pub(super) static FORMAT: Format = Format {
    name: "flashsim",
    title: "FlashSim (run_trace)",
    columns: "time device page pages 1|0 (1 reads; pages of 4 KiB)",
    unit: TimeUnit::Us,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| false,
    parser: |_| Box::new(parse),
    writer: Some(Writer { granule: PAGE, ..Writer::of(|| Box::new(write)) }),
};

/// Sectors per page.
const PAGE: u64 = 4096 / SECTOR;

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let stamp = fields.decimal("the time, a decimal number")?;
    fields.gap()?;
    let device = fields.device()?;
    fields.gap()?;
    let page = fields.integer("the first page, a whole number")?;
    fields.gap()?;
    let pages = fields.integer("the length in pages, a whole number")?;
    fields.gap()?;
    let operation = match fields.integer("the operation, a whole number")? {
        1 => Operation::Read,
        0 => Operation::Write,
        _ => return Err(Expected("the operation, 1 (read) or 0 (write)")),
    };
    fields.end()?;
    let (Some(lba), Some(sectors)) = (page.checked_mul(PAGE), pages.checked_mul(PAGE)) else {
        return Err(Expected("an address range that ends below 16 EiB"));
    };
    Record::in_sectors(stamp, device, operation, lba, sectors).map(Some)
}

fn write(out: &mut Vec<u8>, request: &Outgoing) {
    let time = request.decimal(TimeUnit::Us);
    let device = request.number;
    let (page, pages) = (request.lba / PAGE, request.sectors / PAGE);
    let operation = u8::from(request.operation == Operation::Read);
    out.extend_from_slice(format!("{time} {device} {page} {pages} {operation}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_pages() {
        let read = parse(b"12.5 0 100 2 1").unwrap().unwrap();
        assert_eq!((read.lba, read.sectors, read.operation), (800, 16, Operation::Read));
        assert_eq!(read.stamp.scaled(6), 12_500_000);
        assert_eq!(parse(b"12 0 100 2 0").unwrap().unwrap().operation, Operation::Write);
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("1.0 0 0 8 2").contains("1 (read) or 0 (write)"));
        assert!(expected("1.0 0 18446744073709551615 8 1").contains("16 EiB"));
        assert!(expected("1.0 0 0 8").contains("five columns"));
    }
}
