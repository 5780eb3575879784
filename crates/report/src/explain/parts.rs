//! Data of an explanation.

use std::ops::RangeInclusive;

use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;
use serde::Serialize;

/// Explanation of a request. Times are in microseconds of simulated time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Number of the request.
    pub request: u64,
    /// Name of the stream.
    pub stream: String,
    /// Name of the operation.
    pub operation: &'static str,
    /// First sector.
    pub lba: u64,
    /// Length in sectors of 512 B.
    pub sectors: u64,
    /// Status with which the request completed.
    pub status: &'static str,
    /// Time of arrival.
    pub arrival_us: f64,
    /// Time at which service started.
    pub start_us: f64,
    /// Time at which the host received the completion.
    pub finish_us: f64,
    /// Time from arrival to completion.
    pub latency_us: f64,
    /// Rank among the requests that it was chosen from. If it was chosen by number, these are all requests with its
    /// operation.
    pub standing: Standing,
    /// Latency breakdown, including empty parts; null if it was not recorded.
    pub parts: Option<Vec<PartExplanation>>,
    /// Number of channels that its operations used; null if it was not recorded.
    pub channels: Option<u32>,
    /// Older writes of the same mapping unit that it waited for; null without such a wait or without a timeline.
    pub order: Option<OrderExplanation>,
    /// Flash operations for the request, in the order of their grants; null without a timeline.
    pub operations: Option<Vec<OperationExplanation>>,
    /// Span of the timeline; null without a timeline.
    pub timeline: Option<TimelineExplanation>,
    /// Command that records a timeline of the request; null if there is one that covers it.
    pub rerun: Option<String>,
    /// True if the device merges blocks in place of garbage collection. Not part of the explanation.
    #[serde(skip)]
    pub merges: bool,
    /// Note about the files that were read. Not part of the explanation.
    #[serde(skip)]
    pub note: Option<String>,
}

/// Rank of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Compared requests: the name of an operation, or `all`.
    pub among: &'static str,
    /// Number of compared requests.
    pub of: u64,
    /// Number of faster requests.
    pub faster: u64,
    /// Number of slower requests.
    pub slower: u64,
}

/// Part of a latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartExplanation {
    /// Name of the part (docs/model/attribution.md).
    pub part: &'static str,
    /// Length in microseconds.
    pub us: f64,
    /// Share of the latency.
    pub share: f64,
}

/// Span of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineExplanation {
    /// Start of the span.
    pub from_us: f64,
    /// End of the span; null without a limit.
    pub to_us: Option<f64>,
    /// True if it contains the whole request and any operation that was in flight when the request arrived.
    pub covers: bool,
}

/// Wait for older writes of the same mapping unit, which are programmed one after another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderExplanation {
    /// Length of the wait: the part `order`.
    pub us: f64,
    /// Logical page of the unit; null if the timeline does not contain it.
    pub lpn: Option<u64>,
    /// Operations of the older writes, the last one first.
    pub behind: Vec<OlderExplanation>,
    /// Part of the wait that the timeline does not explain.
    pub unexplained_us: f64,
}

/// Operation of an older write that a request waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OlderExplanation {
    /// Number of the operation in the timeline.
    pub op: u64,
    /// Name of the operation: `host write`, or `rmw read`.
    pub what: String,
    /// Request that it served.
    pub request: u64,
    /// End of the operation, which ends this part of the wait.
    pub until_us: f64,
    /// Length of this part of the wait, from the time at which the operation was queued.
    pub us: f64,
}

/// Flash operation for a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationExplanation {
    /// Number of the operation in the timeline.
    pub op: u64,
    /// Name of the operation: `host read`, `host write`, or `rmw read`.
    pub what: String,
    /// The channel.
    pub channel: u64,
    /// The plane.
    pub plane: u64,
    /// The block.
    pub block: u64,
    /// The page in the block.
    pub page: u64,
    /// Logical page of its (first) mapping unit, if it has one.
    pub lpn: Option<u64>,
    /// True if any die could have executed it (dynamic allocation). Its waits are for the die that did. The parts of
    /// the request divide the wait by the time of all dies.
    pub any_die: bool,
    /// Other requests that the same program served.
    pub shared_with: Vec<u64>,
    /// Time at which it was queued for its die and channel.
    pub waited_from_us: f64,
    /// Time at which both were granted.
    pub granted_us: f64,
    /// Waits before the grant, and between phases.
    pub waits: Vec<WaitExplanation>,
    /// Phases of the operation.
    pub phases: Vec<PhaseExplanation>,
}

/// A wait, and the operations that caused it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitExplanation {
    /// `die and channel` before the grant, `channel` with data in the register.
    pub of: &'static str,
    /// Length of the wait.
    pub us: f64,
    /// Operations that caused it, the longest first.
    pub behind: Vec<Blocker>,
    /// Time in which no operation held the resource, so that the wait had another cause: a free block, or the schedule.
    pub unheld_us: f64,
}

/// An operation that delayed another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blocker {
    /// Number of the operation in the timeline.
    pub op: u64,
    /// Name of the operation.
    pub what: String,
    /// Requests that it served; empty for garbage collection.
    pub requests: Vec<u64>,
    /// Time of the wait in which it held the die.
    pub die_us: f64,
    /// Remaining time of the wait in which it held the channel.
    pub channel_us: f64,
}

/// A phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseExplanation {
    /// `switch`, `command`, `data` or `cell`.
    pub phase: String,
    /// Start of the phase.
    pub from_us: f64,
    /// Length of the phase.
    pub us: f64,
}

/// The request to explain, as recorded in the file of requests.
#[derive(Clone, Debug)]
pub(super) struct Requested {
    pub(super) number: u64,
    pub(super) operation: Operation,
    pub(super) arrival: Time,
    pub(super) finish: Time,
    /// Time by which its operations have ended: its completion, except for a write to a buffer.
    pub(super) until: Time,
    /// Time spent waiting for the device's queue, and for older writes.
    pub(super) host_queue: Time,
    pub(super) order: Time,
    /// Logical pages of its mapping units.
    pub(super) lpns: RangeInclusive<u64>,
    /// Maximum time before the arrival at which an operation that delays the request may have started. No operation
    /// takes longer than an erase, and an operation may wait between its phases.
    pub(super) before: Time,
}

impl Requested {
    pub(super) fn latency(&self) -> Time {
        self.finish.since(self.arrival)
    }
}
