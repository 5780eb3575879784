//! What a host asks of the device, and what it gets back.

use crate::time::Time;

/// Bytes in a sector, the unit of host addresses.
pub const SECTOR: u64 = 512;

/// What a request does. The set is open: zone and copy operations come with their interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Return the last acknowledged data.
    Read,
    /// Store data.
    Write,
    /// Deallocate: the data is not needed any more (ATA TRIM, NVMe Dataset Management).
    Trim,
    /// Make the range read as zeros.
    WriteZeroes,
    /// Make all acknowledged writes durable.
    Flush,
}

impl Operation {
    /// All operations, in the order of [`Operation::index`].
    pub const ALL: [Operation; 5] =
        [Operation::Read, Operation::Write, Operation::Trim, Operation::WriteZeroes, Operation::Flush];

    /// The position in [`Operation::ALL`], for arrays by operation.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in results and in the options of workloads.
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

/// One host command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The host's own mark; comes back with the completion.
    pub tag: u64,
    /// When the host issued it; latency counts from here. May lie before the call of `submit`, when the request
    /// waited for a place in the device's queue.
    pub arrival: Time,
    /// What to do.
    pub operation: Operation,
    /// First sector.
    pub lba: u64,
    /// Length in sectors; 0 only for a flush.
    pub sectors: u32,
    /// Which stream of the workload it belongs to; each has results of its own.
    pub stream: u16,
    /// NVMe namespace; one for now.
    pub namespace: u16,
    /// Placement hint (NVMe streams, FDP handle); carried, read by placement policies.
    pub placement: u16,
    /// Force unit access: complete only when durable.
    pub fua: bool,
}

impl Request {
    /// Returns the work that the request counts for in progress reports: 1, plus 1 for each 64 sectors.
    #[inline]
    pub fn work(&self) -> u64 {
        1 + u64::from(self.sectors / 64)
    }

    /// A request without flags, of stream 0.
    #[inline]
    pub const fn new(arrival: Time, operation: Operation, lba: u64, sectors: u32) -> Request {
        Request { tag: 0, arrival, operation, lba, sectors, stream: 0, namespace: 1, placement: 0, fua: false }
    }

    /// Length in bytes.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.sectors as u64 * SECTOR
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Done.
    Ok,
    /// The address range is not in the device.
    OutOfRange,
    /// The device takes no more writes.
    ReadOnly,
    /// Data lost beyond correction.
    Uncorrectable,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request, as submitted.
    pub request: Request,
    /// How it ended.
    pub status: Status,
    /// When it was first served: the first grant of a channel, or the hit in the controller's memory.
    /// Waiting time is `start - arrival`, service time `finish - start`.
    pub start: Time,
    /// When the host has the answer. May lie ahead of the device's clock.
    pub finish: Time,
}
