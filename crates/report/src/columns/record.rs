//! Records of requests.

use anyhow::{Context, Result};
use floatgate_core::metrics::attribution::Breakdown;
use floatgate_core::sim::request::{Operation, Status};
use floatgate_core::sim::time::Time;

/// A request, as it is written and read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number: how many were submitted before it.
    pub number: u64,
    /// The name of its stream.
    pub stream: &'a str,
    /// What it did.
    pub operation: Operation,
    /// First sector.
    pub lba: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// How it ended.
    pub status: Status,
    /// When it arrived.
    pub arrival: Time,
    /// When it was first served.
    pub start: Time,
    /// When the host had the answer.
    pub finish: Time,
    /// What its time went into, where that is known.
    pub breakdown: Option<Breakdown>,
}

impl Record<'_> {
    /// From arrival to finish.
    pub fn latency(&self) -> Time {
        self.finish.since(self.arrival)
    }
}

/// The name of a status.
pub fn status_name(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::OutOfRange => "out_of_range",
        Status::ReadOnly => "read_only",
        Status::Uncorrectable => "uncorrectable",
    }
}

pub(super) const STATUSES: [Status; 4] = [Status::Ok, Status::OutOfRange, Status::ReadOnly, Status::Uncorrectable];

/// The operation of a name.
pub fn operation_of(name: &str) -> Result<Operation> {
    let found = Operation::ALL.into_iter().find(|operation| operation.name() == name);
    found.with_context(|| format!("`{name}` is no operation"))
}

/// The status of a name.
pub(super) fn status_of(name: &str) -> Result<Status> {
    let found = STATUSES.into_iter().find(|status| status_name(*status) == name);
    found.with_context(|| format!("`{name}` is no status"))
}
