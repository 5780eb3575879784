//! Observers: every phase of every operation, for those who want to look. Off, they cost one test per phase.

use super::array::{Kind, Operation};
use crate::scheduler::Class;
use crate::sim::time::Time;

/// Where a phase takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// On a channel, by its number.
    Channel(u32),
    /// In a plane, by its number.
    Plane(u32),
}

/// What a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The controller turns to another chip or channel.
    Switch,
    /// Command and address cycles.
    Command,
    /// Data cycles.
    Data,
    /// The cells work.
    Cell,
}

/// One phase of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where.
    pub lane: Lane,
    /// What.
    pub phase: Phase,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// Of which kind of operation.
    pub kind: Kind,
    /// What for.
    pub class: Class,
    /// The tag of the host request, or `u64::MAX`.
    pub tag: u64,
    /// The first physical page number of the operation.
    pub place: u32,
}

impl Slice {
    /// A phase of `operation`.
    pub fn of(lane: Lane, phase: Phase, start: Time, end: Time, operation: &Operation) -> Slice {
        let Operation { kind, class, tag, place, .. } = *operation;
        Slice { lane, phase, start, end, kind, class, tag, place }
    }
}

/// Keeps the phases of a span of time.
#[derive(Clone, Debug)]
pub struct Probe {
    from: Time,
    to: Time,
    slices: Vec<Slice>,
}

impl Probe {
    /// Watches what starts from `from` on and before `to`.
    pub fn new(from: Time, to: Time) -> Probe {
        Probe { from, to, slices: Vec::new() }
    }

    /// Notes a phase; empty ones are left out.
    pub fn record(&mut self, slice: Slice) {
        if slice.start < slice.end && slice.start >= self.from && slice.start < self.to {
            self.slices.push(slice);
        }
    }

    /// What was seen, in the order in which it was booked.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }
}
