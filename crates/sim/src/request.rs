//! Requests of the host, and their completions.

use crate::time::Time;

/// Bytes in a sector, the unit of host addresses.
pub const SECTOR: u64 = 512;

/// Operation of a request. More may be added: zone and copy operations come with their interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Return the most recently written data.
    Read,
    /// Store data.
    Write,
    /// Deallocate a range that is no longer needed (ATA TRIM, NVMe Dataset Management).
    Trim,
    /// Make the range read as zeros.
    WriteZeroes,
    /// Make all completed writes durable.
    Flush,
}

impl Operation {
    /// All operations, in the order of [`Operation::index`].
    pub const ALL: [Operation; 5] =
        [Operation::Read, Operation::Write, Operation::Trim, Operation::WriteZeroes, Operation::Flush];

    /// Returns the position in [`Operation::ALL`], for arrays indexed by operation.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the name in results and in workload options.
    #[inline]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Trim => "trim",
            Operation::WriteZeroes => "write_zeroes",
            Operation::Flush => "flush",
        }
    }
}

/// A host request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The host's identifier, returned with the completion.
    pub tag: u64,
    /// Time at which the host issued the request. Latency counts from here. May be earlier than the call of `submit` if
    /// the request waited for a slot in the device's queue.
    pub arrival: Time,
    /// Operation.
    pub operation: Operation,
    /// First sector.
    pub lba: u64,
    /// Length in sectors; 0 only for a flush.
    pub sectors: u32,
    /// Stream of the workload. Each stream has its own results.
    pub stream: u16,
    /// NVMe namespace. Only one is supported.
    pub namespace: u16,
    /// Placement hint (NVMe streams, FDP handle), used by placement policies.
    pub placement: u16,
    /// Force unit access: complete only when durable.
    pub fua: bool,
    /// The host wants the request served before others (fio: `cmdprio`), if the scheduler does that.
    pub high_priority: bool,
}

impl Request {
    /// Returns the work that the request counts for in progress reports: 1, plus 1 for each 64 sectors.
    #[inline]
    pub fn work(&self) -> u64 {
        1 + u64::from(self.sectors / 64)
    }

    /// Creates a request of stream 0 without flags.
    #[inline]
    pub const fn new(arrival: Time, operation: Operation, lba: u64, sectors: u32) -> Request {
        Request {
            tag: 0,
            arrival,
            operation,
            lba,
            sectors,
            stream: 0,
            namespace: 1,
            placement: 0,
            fua: false,
            high_priority: false,
        }
    }

    /// Returns the length in bytes.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.sectors as u64 * SECTOR
    }
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Success.
    Ok,
    /// The address range is not within the device.
    OutOfRange,
    /// The device no longer accepts writes.
    ReadOnly,
    /// Data are uncorrectable.
    Uncorrectable,
}

/// Completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request, as submitted.
    pub request: Request,
    /// Result.
    pub status: Status,
    /// Time of the first service: the first grant of a channel, or the hit in the controller's memory. Waiting time is
    /// `start - arrival`, service time is `finish - start`.
    pub start: Time,
    /// Time at which the host receives the completion. May be later than the device's clock.
    pub finish: Time,
}
