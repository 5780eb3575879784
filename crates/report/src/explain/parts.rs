//! What a story consists of.

use std::ops::RangeInclusive;

use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;
use serde::Serialize;

/// The story of a request. Times are in microseconds of simulated time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Its number.
    pub request: u64,
    /// The name of its stream.
    pub stream: String,
    /// What it did.
    pub operation: &'static str,
    /// First sector.
    pub lba: u64,
    /// Length in sectors of 512 B.
    pub sectors: u64,
    /// How it ended.
    pub status: &'static str,
    /// When it arrived.
    pub arrival_us: f64,
    /// When it was first served.
    pub start_us: f64,
    /// When the host had the answer.
    pub finish_us: f64,
    /// From arrival to finish.
    pub latency_us: f64,
    /// Where it stands among those that it was chosen from; of a request that was asked for by its number, among those
    /// of its operation.
    pub standing: Standing,
    /// What its time went into, parts of no length included; null where that was not told.
    pub parts: Option<Vec<PartExplanation>>,
    /// How many channels its operations used; null where that was not told.
    pub channels: Option<u32>,
    /// The older writes of the same mapping unit that it waited for; null where it waited for none, and without a
    /// timeline.
    pub order: Option<OrderExplanation>,
    /// What the flash did for it, in the order of the grants; null without a timeline.
    pub operations: Option<Vec<OperationExplanation>>,
    /// What the timeline covers; null without one.
    pub timeline: Option<TimelineExplanation>,
    /// What to run for a timeline that covers the request; null where there is one.
    pub rerun: Option<String>,
    /// What should be known of the files that it was read from; no part of the story.
    #[serde(skip)]
    pub note: Option<String>,
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Among whom: the requests of an operation, or `all`.
    pub among: &'static str,
    /// How many they are.
    pub of: u64,
    /// How many of them were faster.
    pub faster: u64,
    /// How many were slower.
    pub slower: u64,
}

/// A part of a request's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartExplanation {
    /// Its name: see docs/model/attribution.md.
    pub part: &'static str,
    /// How long.
    pub us: f64,
    /// The share of the latency.
    pub share: f64,
}

/// What a timeline covers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineExplanation {
    /// From when.
    pub from_us: f64,
    /// Until when, where a span was asked for.
    pub to_us: Option<f64>,
    /// Whether all of the request is in it, from its arrival to its answer, and what was in its way when it arrived.
    pub covers: bool,
}

/// A wait for older writes of the same mapping unit: they are programmed one after the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderExplanation {
    /// How long: the part `order`.
    pub us: f64,
    /// The logical page of the unit; null where the timeline does not tell it.
    pub lpn: Option<u64>,
    /// The operations of the older writes, the last first.
    pub behind: Vec<OlderExplanation>,
    /// How much of it the timeline does not tell.
    pub untold_us: f64,
}

/// An operation of an older write, on which a request waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OlderExplanation {
    /// Its number in the timeline.
    pub op: u64,
    /// What it was: `host write`, or `rmw read`.
    pub what: String,
    /// The request that it was for.
    pub request: u64,
    /// When it ended, and with it this part of the wait.
    pub until_us: f64,
    /// For how long it was waited for, from when it was in line itself.
    pub us: f64,
}

/// What the flash did for a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationExplanation {
    /// Its number in the timeline.
    pub op: u64,
    /// What it was: `host read`, `host write`, `rmw read`.
    pub what: String,
    /// The channel.
    pub channel: u64,
    /// The plane.
    pub plane: u64,
    /// The block.
    pub block: u64,
    /// The page in the block.
    pub page: u64,
    /// The logical page of its (first) mapping unit, where there is one.
    pub lpn: Option<u64>,
    /// Whether any die could have taken it (dynamic allocation). Its waits tell of the die that did; the parts of the
    /// request share them out as the time of all dies was.
    pub any_die: bool,
    /// Other requests that the same program command served.
    pub shared_with: Vec<u64>,
    /// When it was in line for its die and channel.
    pub waited_from_us: f64,
    /// When both were granted.
    pub granted_us: f64,
    /// What it waited for in between, and in its middle.
    pub waits: Vec<WaitExplanation>,
    /// What it did.
    pub phases: Vec<PhaseExplanation>,
}

/// A wait, and who was in the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitExplanation {
    /// `die and channel` before the grant, `channel` with data in the register.
    pub of: &'static str,
    /// How long.
    pub us: f64,
    /// Who was in the way, the longest first.
    pub behind: Vec<Blocker>,
    /// For how long nobody held what it waited for, so that it waited for something else: a free block, or its turn.
    pub unheld_us: f64,
}

/// An operation that was in the way of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blocker {
    /// Its number in the timeline.
    pub op: u64,
    /// What it was.
    pub what: String,
    /// The requests that it was for; none of cleaning.
    pub requests: Vec<u64>,
    /// For how long of the wait it held the die.
    pub die_us: f64,
    /// For how long of the rest it held the channel.
    pub channel_us: f64,
}

/// A phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseExplanation {
    /// `switch`, `command`, `data` or `cell`.
    pub phase: String,
    /// From when.
    pub from_us: f64,
    /// How long.
    pub us: f64,
}

/// The request that a story is of, as the file has it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) number: u64,
    pub(super) operation: Operation,
    pub(super) arrival: Time,
    pub(super) finish: Time,
    /// The time that went into waiting for the queue, and for older writes.
    pub(super) host_queue: Time,
    pub(super) order: Time,
    /// The logical pages of its mapping units.
    pub(super) lpns: RangeInclusive<u64>,
    /// How long what was in its way when it arrived may have been there: no operation takes longer than an erase, and
    /// one may wait in its middle.
    pub(super) before: Time,
}

impl Asked {
    pub(super) fn latency(&self) -> Time {
        self.finish.since(self.arrival)
    }
}
