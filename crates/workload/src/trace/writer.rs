//! Writers of formats.

use super::record::DeviceName;
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

/// Describes how a format is written.
pub(super) struct Writer {
    /// Supported operations. Others are omitted.
    pub(super) operations: &'static [Operation],
    /// Resolution of the times.
    pub(super) resolution: TimeUnit,
    /// Granularity of addresses and lengths in sectors.
    pub(super) granule: u64,
    /// Number of bits of an address, in sectors, that the format's original reader supports.
    pub(super) address_bits: u32,
    /// Text before the first request.
    pub(super) header: &'static str,
    /// Creates the writer for one trace.
    pub(super) start: fn() -> Box<dyn WriteRequest>,
}

impl Writer {
    /// Creates a description for reads and writes, in sectors, with exact times.
    pub(super) const fn of(start: fn() -> Box<dyn WriteRequest>) -> Writer {
        let operations = &[Operation::Read, Operation::Write];
        Writer { operations, resolution: TimeUnit::Ps, granule: 1, address_bits: 64, header: "", start }
    }
}

/// Writes the requests of one trace, in order. A function is sufficient if lines are independent.
pub(super) trait WriteRequest {
    /// Appends the line of a request.
    fn write(&mut self, out: &mut Vec<u8>, request: &Outgoing);
}

impl<F: FnMut(&mut Vec<u8>, &Outgoing)> WriteRequest for F {
    fn write(&mut self, out: &mut Vec<u8>, request: &Outgoing) {
        self(out, request);
    }
}

/// A request to be written, adapted to the format.
pub(super) struct Outgoing<'a> {
    /// Time in ps since the first request, a multiple of the format's resolution.
    pub(super) ps: u128,
    /// Number of its device: the number in the trace, or the order of first occurrence if the device has a name.
    pub(super) number: u64,
    /// Name of its device.
    pub(super) name: &'a DeviceName,
    pub(super) operation: Operation,
    pub(super) lba: u64,
    pub(super) sectors: u64,
}

impl Outgoing<'_> {
    /// Returns the time in whole units.
    pub(super) fn ticks(&self, unit: TimeUnit) -> u128 {
        self.ps / 10_u128.pow(unit.exponent())
    }

    /// Returns the exact time as a decimal number.
    pub(super) fn decimal(&self, unit: TimeUnit) -> String {
        unit.decimal(self.ps)
    }

    /// Returns the time in s, with nine decimals.
    pub(super) fn seconds(&self) -> String {
        let ns = self.ticks(TimeUnit::Ns);
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}
