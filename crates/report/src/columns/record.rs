//! Records of completed requests, and names of their operations and statuses.

use anyhow::{Context, Result};
use floatgate_core::results::Breakdown;
use floatgate_core::sim::request::{Operation, Status};
use floatgate_core::sim::time::Time;

/// A completed request in a results file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Number of requests submitted before this one.
    pub number: u64,
    /// Name of the stream.
    pub stream: &'a str,
    /// Operation.
    pub operation: Operation,
    /// First sector.
    pub lba: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Status with which the request completed.
    pub status: Status,
    /// Time of arrival.
    pub arrival: Time,
    /// Time at which service started.
    pub start: Time,
    /// Time at which the host received the completion.
    pub finish: Time,
    /// Latency breakdown, if it was recorded.
    pub breakdown: Option<Breakdown>,
}

impl Record<'_> {
    /// Returns the time from arrival to completion.
    pub fn latency(&self) -> Time {
        self.finish.since(self.arrival)
    }
}

/// Returns the name of a status.
pub fn status_name(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::OutOfRange => "out_of_range",
        Status::ReadOnly => "read_only",
        Status::Uncorrectable => "uncorrectable",
    }
}

pub const STATUSES: [Status; 4] = [Status::Ok, Status::OutOfRange, Status::ReadOnly, Status::Uncorrectable];

/// Returns the operation with this name.
pub fn operation_of(name: &str) -> Result<Operation> {
    let found = Operation::ALL.into_iter().find(|operation| operation.name() == name);
    found.with_context(|| format!("unknown operation: `{name}`"))
}

/// Returns the status with this name.
pub(super) fn status_of(name: &str) -> Result<Status> {
    let found = STATUSES.into_iter().find(|status| status_name(*status) == name);
    found.with_context(|| format!("unknown status: `{name}`"))
}
