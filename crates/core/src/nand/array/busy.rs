//! Busy time of LUNs whose operations overlap: time in cells or transfers, where time in both counts once.
//!
//! [`Array`](super::Array) records every phase here when it starts, with its end, if cache commands, suspension or
//! interleaved commands are enabled. Otherwise the phases of a LUN follow one another, so their sum is its busy time.

use super::{Array, add_to, signed, subtract_from};
use crate::config::DeviceConfig;
use crate::sim::id::{ExecUnitId, LunId};
use crate::sim::table::Table;
use crate::sim::time::Time;

/// Busy time of one LUN.
///
/// A phase is recorded when it starts, or with the phase before it. Time recorded in advance is therefore one span up
/// to `until`, except for one gap before cells that resume.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusyTime {
    /// Sum of the recorded spans; each instant counts once.
    booked: Time,
    /// End of the last span.
    until: Time,
    /// Span before cells that resume, in which no phase is recorded. Meaningless once that span has passed.
    gap: (Time, Time),
}

impl BusyTime {
    /// Adds the time from `from` to `to`, except for time that is already recorded.
    #[inline(always)]
    fn book(&mut self, from: Time, to: Time) {
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
    fn resume(&mut self, now: Time, from: Time, to: Time) {
        debug_assert!(self.until <= now, "cells resume in a busy LUN");
        self.gap = (now, from);
        self.book(from, to);
    }

    /// Removes the recorded time after `at`.
    fn cut(&mut self, at: Time) {
        subtract_from(&mut self.booked, self.until.since(at));
        self.until = self.until.min(at);
    }

    /// Returns the busy time up to `at`, in picoseconds. No phase may have started after `at`.
    fn at(&self, at: Time) -> i64 {
        let ahead = self.until.since(at).0 - self.gap.1.since(self.gap.0.max(at)).0;
        signed(self.booked) - ahead as i64
    }
}

impl Array {
    /// Creates the busy times of a device's LUNs; empty if their operations cannot overlap.
    pub(super) fn busy_times(device: &DeviceConfig, luns: u32) -> Table<LunId, BusyTime> {
        let overlap = device.nand.advanced.overlaps() || device.nand.advanced.interleave;
        Table::new(if overlap { luns } else { 0 }, BusyTime::default())
    }

    /// Records that the LUN of a unit is busy from `from` to `to`.
    #[inline(always)]
    pub(super) fn add_busy(&mut self, unit: ExecUnitId, from: Time, to: Time) {
        if !self.busy.is_empty() {
            let lun = self.lun_of_unit(unit);
            self.busy[lun].book(from, to);
        }
    }

    /// Records that the LUN of a unit, whose cells resume, is busy from `from` to `to`.
    pub(super) fn resume_busy(&mut self, unit: ExecUnitId, now: Time, from: Time, to: Time) {
        let lun = self.lun_of_unit(unit);
        self.busy[lun].resume(now, from, to);
    }

    /// Removes the recorded time after `at` for the LUN of a unit, whose cells are suspended.
    pub(super) fn cut_busy(&mut self, unit: ExecUnitId, at: Time) {
        let lun = self.lun_of_unit(unit);
        self.busy[lun].cut(at);
    }

    /// Collects the busy time of each LUN up to `at`, in picoseconds. The result is empty if operations cannot overlap.
    /// No later event may have been processed. See [`Array::time_until`] for phases in progress at
    /// [`Array::reset_times`].
    pub fn busy_until(&self, at: Time, luns: &mut Vec<i64>) {
        luns.clear();
        luns.extend(self.busy.iter().map(|busy| busy.at(at)));
    }

    /// Resets the busy times to zero.
    pub(super) fn reset_busy(&mut self) {
        self.busy.iter_mut().for_each(|busy| busy.booked = Time::ZERO);
    }
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
