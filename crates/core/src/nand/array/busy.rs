//! Busy time of LUNs whose operations overlap: time in cells or transfers, where time in both counts once.
//!
//! [`Array`](super::Array) records every phase here when it starts, with its end, if cache commands, suspension or
//! interleaved commands are enabled. Otherwise the phases of a LUN follow one another, so their sum is its busy time.

use crate::sim::time::Time;

/// Busy time of one LUN.
///
/// A phase is recorded when it starts, or with the phase before it. Time recorded in advance is therefore one span up
/// to `until`, except for one gap before cells that resume.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusyTime {
    /// Sum of the recorded spans; each instant counts once.
    pub(super) booked: Time,
    /// End of the last span.
    until: Time,
    /// Span before cells that resume, in which no phase is recorded. Meaningless once that span has passed.
    gap: (Time, Time),
}

impl BusyTime {
    /// Adds the time from `from` to `to`, except for time that is already recorded.
    #[inline(always)]
    pub(super) fn book(&mut self, from: Time, to: Time) {
        if from < self.until {
            return self.add_overlapping(from, to);
        }
        add_to(&mut self.booked, to - from);
        self.until = to;
    }

    #[inline(never)]
    fn add_overlapping(&mut self, from: Time, to: Time) {
        let filled = to.min(self.gap.1).since(from);
        if filled > Time::ZERO {
            debug_assert!(self.gap.0 <= from, "more than one transfer before cells that resume");
            self.gap.0 = from + filled;
        }
        add_to(&mut self.booked, filled + to.since(self.until));
        self.until = self.until.max(to);
    }

    /// Adds the time from `from` to `to` for cells that resume at `from`, as decided at `now`.
    pub(super) fn resume(&mut self, now: Time, from: Time, to: Time) {
        debug_assert!(self.until <= now, "cells resume in a busy LUN");
        self.gap = (now, from);
        self.book(from, to);
    }

    /// Removes the recorded time after `at`.
    pub(super) fn cut(&mut self, at: Time) {
        subtract_from(&mut self.booked, self.until.since(at));
        self.until = self.until.min(at);
    }

    /// Returns the busy time up to `at`, in picoseconds. No phase may have started after `at`.
    pub(super) fn at(&self, at: Time) -> i64 {
        let ahead = self.until.since(at).0 - self.gap.1.since(self.gap.0.max(at)).0;
        signed(self.booked) - ahead as i64
    }
}

/// Adds a span to a sum. The sum is negative if [`Array::reset_times`] has removed the time of a phase that was cut
/// later, so it wraps.
pub(super) const fn add_to(sum: &mut Time, span: Time) {
    sum.0 = sum.0.wrapping_add(span.0);
}

/// Subtracts a span from a sum, which wraps as in [`add_to`].
pub(super) const fn subtract_from(sum: &mut Time, span: Time) {
    sum.0 = sum.0.wrapping_sub(span.0);
}

/// Converts a time to a signed number, for additions and subtractions. The range is 106 days.
pub(super) const fn signed(time: Time) -> i64 {
    time.0 as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn booked(spans: &[(u64, u64)]) -> BusyTime {
        let mut busy = BusyTime::default();
        spans.iter().for_each(|&(from, to)| busy.book(Time(from), Time(to)));
        busy
    }

    fn at_each(busy: &BusyTime, times: [u64; 4]) -> [i64; 4] {
        times.map(|at| busy.at(Time(at)))
    }

    #[test]
    fn overlapping_cell_and_transfer_time_counts_once() {
        // A transfer, its cells, a transfer within them, a transfer that outlasts them, and a later one.
        let busy = booked(&[(10, 20), (20, 50), (30, 40), (45, 60), (80, 90)]);
        assert_eq!(at_each(&busy, [80, 85, 90, 99]), [50, 55, 60, 60]);
    }

    #[test]
    fn a_transfer_may_start_before_cells_resume() {
        // Cells resume at 50. A transfer ends before that, or continues while they work.
        for (transfer, expected) in
            [((35, 45), [10, 10, 15, 30]), ((45, 60), [0, 5, 10, 25]), ((35, 80), [10, 15, 20, 45])]
        {
            let mut busy = booked(&[(0, 10)]);
            busy.cut(Time(0));
            busy.resume(Time(30), Time(50), Time(70));
            busy.book(Time(transfer.0), Time(transfer.1));
            assert_eq!(at_each(&busy, [45, 50, 55, 99]), expected, "{transfer:?}");
        }
    }

    #[test]
    fn suspended_cells_have_time_left() {
        let mut busy = booked(&[(0, 50)]);
        busy.cut(Time(20));
        assert_eq!(busy.at(Time(20)), 20);
        busy.book(Time(30), Time(60));
        assert_eq!(busy.at(Time(60)), 50);
    }
}
