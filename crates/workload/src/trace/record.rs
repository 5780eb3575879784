//! Requests of a trace, as a format reads them.

use std::fmt;

use super::fields::{Decimal, Expected};
use crate::sim::request::{Operation, SECTOR};

/// Maximum number of devices, which bounds the memory. A trace with more devices has other data in that column.
pub(super) const MAX_DEVICES: usize = 65_536;

/// A request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Time in the unit of the trace.
    pub(super) stamp: Decimal,
    /// Device of the trace. [`Parser::device`] returns its name.
    pub(super) device: u32,
    /// Operation.
    pub(super) operation: Operation,
    /// First sector, on that device.
    pub(super) lba: u64,
    /// Length in sectors. 0 only for a flush.
    pub(super) sectors: u32,
    /// True if the range in the trace was not in whole sectors, and was widened.
    pub(super) widened: bool,
    /// True if the request may complete only when it is durable.
    pub(super) fua: bool,
}

impl Record {
    /// Creates a request with a range in sectors.
    pub(super) fn in_sectors(
        stamp: Decimal,
        device: u32,
        operation: Operation,
        lba: u64,
        sectors: u64,
    ) -> Result<Record, Expected> {
        /// 2^64 bytes: no host can address more, and sums of a few such ends cannot overflow.
        const END: u64 = u64::MAX / SECTOR + 1;
        let end = lba.checked_add(sectors).filter(|end| *end <= END);
        let sectors = u32::try_from(sectors).map_err(|_| Expected("a length below 2 TiB"))?;
        if end.is_none() {
            return Err(Expected("an address range that ends below 16 EiB"));
        }
        if sectors == 0 && operation != Operation::Flush {
            return Err(Expected("a length of at least one byte"));
        }
        Ok(Record { stamp, device, operation, lba, sectors, widened: false, fua: false })
    }

    /// Creates a request with a range in bytes, which covers all sectors that it touches.
    pub(super) fn in_bytes(
        stamp: Decimal,
        device: u32,
        operation: Operation,
        offset: u64,
        bytes: u64,
    ) -> Result<Record, Expected> {
        let Some(end) = offset.checked_add(bytes) else {
            return Err(Expected("an address range that ends below 16 EiB"));
        };
        let lba = offset / SECTOR;
        let sectors = if bytes == 0 { 0 } else { end.div_ceil(SECTOR) - lba };
        let widened = !offset.is_multiple_of(SECTOR) || !end.is_multiple_of(SECTOR);
        Ok(Record { widened, ..Record::in_sectors(stamp, device, operation, lba, sectors)? })
    }
}

/// Name of a device in a trace. Devices are placed side by side in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeviceName {
    /// A number.
    Number(u64),
    /// Major and minor number of a Linux device.
    MajorMinor(u32, u32),
    /// Host, and number of its disk.
    Disk(String, u64),
    /// File or other name.
    Named(String),
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DeviceName::Number(number) => write!(f, "{number}"),
            DeviceName::MajorMinor(major, minor) => write!(f, "{major}:{minor}"),
            DeviceName::Disk(host, disk) => write!(f, "{host}_{disk}"),
            DeviceName::Named(name) => f.write_str(name),
        }
    }
}

/// Formats a number of things.
pub(super) fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_ranges_are_widened_to_sectors() {
        let record = |offset, bytes| {
            let record = Record::in_bytes(Decimal::whole(0), 0, Operation::Read, offset, bytes)?;
            Ok::<_, Expected>((record.lba, record.sectors, record.widened))
        };
        assert_eq!(record(1024, 512), Ok((2, 1, false)));
        assert_eq!(record(1023, 2), Ok((1, 2, true)));
        assert_eq!(record(512, 1), Ok((1, 1, true)));
        assert_eq!(record(u64::MAX - 511, 511), Ok((u64::MAX / 512, 1, true)));
        assert!(record(u64::MAX, 512).is_err());
        assert!(record(0, 0).is_err());
        assert!(record(0, 1 << 42).is_err());
    }
}
