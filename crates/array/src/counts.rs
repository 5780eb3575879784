//! Counters of the array's controller.

use floatgate_core::sim::time::Time;
use floatgate_core::summary::{ArrayWrites, MemberOperations};

/// Counters of the measured part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub writes: ArrayWrites,
    pub reconstructed_reads: u64,
    pub operations: MemberOperations,
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Bytes written to members for the host: data, parity and journal.
    pub member_bytes: u64,
    pub stripe_waits: u64,
    pub stripe_wait: u128,
    pub trims_dropped: u64,
    /// Times that uncorrectable sectors were computed from other members.
    pub repairs: u64,
    /// Stripes that were corrected after a power cut.
    pub resynced: u64,
    /// Time for which the parity engine worked.
    pub xor: Time,
}
