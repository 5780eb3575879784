//! Stripe operations: one range of one stripe, with its lock and its phases.

use floatgate_core::sim::id::RequestId;
use floatgate_core::sim::request::{Request, Status};
use floatgate_core::sim::time::Time;

use crate::layout::Layout;

/// No operation.
pub const NONE: u32 = u32::MAX;

/// Kind of a stripe operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read of data that are computed from other members.
    Read,
    /// Write.
    Write,
    /// Write of zeros to whole stripes, or TRIM: a request to each member.
    Pass,
    /// Rebuild of the chunk of this member.
    Rebuild(u32),
    /// Comparison of the copies or the parity of a stripe with its data, after a power cut.
    Resync,
    /// Restoration of the parity of a stripe from its journal entry, after a power cut.
    Restore,
    /// Read of the journal, after a power cut. It has no lock.
    Scan,
    /// Flush of all members, so that journal entries can be overwritten. It has no lock.
    Flush,
}

/// Strategy of a write to a level with parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// No parity: mirrors, or all parity members of the stripe have failed.
    Plain,
    /// All data are written, so nothing is read.
    Full,
    /// Reads the data that are not overwritten.
    Reconstruct,
    /// Reads all sources, because data that are not overwritten were on a failed member.
    ReconstructAll,
    /// Reads the data that are overwritten, and the old parity.
    Modify,
}

/// Phase of a stripe operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waits for the lock.
    Waiting,
    /// Reads from members.
    Reading,
    /// Computes parity or data.
    Computing,
    /// Writes the journal.
    Journal,
    /// Writes to members.
    Writing,
}

/// Stripe operation: the sectors `lo..hi` of the data chunks `first..=last` of a stripe.
#[derive(Clone, Copy, Debug)]
pub struct StripeOp {
    /// Request of the host, or `NONE` for the rebuild.
    pub request: RequestId,
    pub kind: Kind,
    pub strategy: Strategy,
    pub phase: Phase,
    pub row: u64,
    pub lo: u32,
    pub hi: u32,
    pub first: u32,
    pub last: u32,
    /// Number of requests to members that have not completed.
    pub left: u32,
    /// Number of earlier operations that it waits for.
    pub waits_for: u32,
    /// Next operation in the queue of its lock.
    pub next: u32,
    /// Time at which it arrived.
    pub since: Time,
    /// Time of the first service by a member, or [`Time::NEVER`].
    pub start: Time,
    pub status: Status,
    /// Members whose sectors are uncorrectable, a bit each.
    pub bad: u64,
}

impl StripeOp {
    /// Creates an operation that has not started.
    pub fn new(request: RequestId, kind: Kind, segment: Segment, now: Time) -> StripeOp {
        let Segment { row, lo, hi, first, last } = segment;
        StripeOp {
            request,
            kind,
            strategy: Strategy::Plain,
            phase: Phase::Waiting,
            row,
            lo,
            hi,
            first,
            last,
            left: 0,
            waits_for: 0,
            next: NONE,
            since: now,
            start: Time::NEVER,
            status: Status::Ok,
            bad: 0,
        }
    }

    /// Returns `true` if the sectors of a member are uncorrectable.
    #[inline]
    pub fn is_bad(&self, member: u32) -> bool {
        self.bad >> member & 1 == 1
    }

    /// Returns `true` if two operations need the same range of a stripe. Data and parity have the same ranges.
    #[inline]
    pub fn overlaps(&self, other: &StripeOp) -> bool {
        self.row == other.row && self.lo < other.hi && other.lo < self.hi
    }

    /// Returns the number of sectors of a chunk that the operation covers.
    #[inline]
    pub fn sectors(&self) -> u32 {
        self.hi - self.lo
    }

    /// Returns the number of data chunks that the operation covers.
    #[inline]
    pub fn chunks(&self) -> u32 {
        self.last - self.first + 1
    }

    /// Returns `true` if the operation covers data chunk `index`.
    #[inline]
    pub fn covers(&self, index: u32) -> bool {
        (self.first..=self.last).contains(&index)
    }
}

/// Part of a request in one stripe: the sectors `lo..hi` of all data chunks `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub row: u64,
    pub lo: u32,
    pub hi: u32,
    pub first: u32,
    pub last: u32,
}

impl Segment {
    /// Returns the segment of all data of a stripe.
    pub fn whole(layout: &Layout, row: u64) -> Segment {
        Segment { row, lo: 0, hi: layout.chunk(), first: 0, last: layout.data() - 1 }
    }
}

/// Splits the part of a request in stripe `row` into segments. `from..to` are its sectors within the stripe's data.
///
/// A range that crosses chunks covers different chunks at different offsets. Each segment is a rectangle: the same
/// chunks at all its offsets, so that its parity follows from them alone. There are at most three.
pub fn segments(layout: &Layout, row: u64, from: u64, to: u64) -> impl Iterator<Item = Segment> {
    let chunk = u64::from(layout.chunk());
    let (first, last) = ((from / chunk) as u32, ((to - 1) / chunk) as u32);
    let (a, b) = ((from % chunk) as u32, ((to - 1) % chunk) as u32 + 1);
    let bounds = if first == last { [a, b, b, b] } else { [0, a.min(b), a.max(b), layout.chunk()] };
    let segment = move |at: usize| {
        let (lo, hi) = (bounds[at], bounds[at + 1]);
        let (first, last) = (first + u32::from(lo < a), i64::from(last) - i64::from(lo >= b));
        (lo < hi && i64::from(first) <= last).then_some(Segment { row, lo, hi, first, last: last as u32 })
    };
    (0..3).filter_map(segment)
}

/// Returns the parts of a request by stripe: the stripe, and the first sector and the end within its data.
pub fn rows(layout: &Layout, request: &Request) -> impl Iterator<Item = (u64, u64, u64)> {
    let row_sectors = layout.row_sectors();
    let end = request.lba + u64::from(request.sectors);
    let (first, last) = (request.lba / row_sectors, (end - 1) / row_sectors);
    let start = request.lba;
    (first..=last).map(move |row| {
        let base = row * row_sectors;
        (row, start.max(base) - base, end.min(base + row_sectors) - base)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Level;

    #[test]
    fn segments_cover_each_sector_once() {
        let layout = Layout::new(Level::Parity, 5, 8 * 512, 4);
        let size = layout.row_sectors();
        for from in 0..size {
            for to in from + 1..=size {
                let mut covered = vec![0; size as usize];
                for Segment { lo, hi, first, last, .. } in segments(&layout, 0, from, to) {
                    for index in first..=last {
                        (lo..hi).for_each(|offset| covered[(index * 8 + offset) as usize] += 1);
                    }
                }
                let expected: Vec<i32> = (0..size).map(|at| i32::from((from..to).contains(&at))).collect();
                assert_eq!(covered, expected, "{from}..{to}");
            }
        }
    }

    #[test]
    fn aligned_requests_are_one_segment() {
        let layout = Layout::new(Level::Parity, 5, 8 * 512, 4);
        let of = |from, to| segments(&layout, 2, from, to).collect::<Vec<_>>();
        assert_eq!(of(0, 32), [Segment::whole(&layout, 2)]);
        assert_eq!(of(8, 24), [Segment { row: 2, lo: 0, hi: 8, first: 1, last: 2 }]);
        assert_eq!(of(3, 5), [Segment { row: 2, lo: 3, hi: 5, first: 0, last: 0 }]);
        let (end, start) =
            (Segment { row: 2, lo: 0, hi: 2, first: 1, last: 1 }, Segment { row: 2, lo: 6, hi: 8, first: 0, last: 0 });
        assert_eq!(of(6, 10), [end, start]);
    }
}
