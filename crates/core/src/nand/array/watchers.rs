//! Watchers of an array: the probe and the busy-time accounting. Code that reports to them is not inlined, because most
//! runs have none.

use super::{Array, Member, Operation, Watchers};
use crate::nand::busy_time::{BusyAccounting, Holder, OperationTimes};
use crate::nand::probe::{Lane, Phase, Probe, Slice};
use crate::sim::id::{ExecUnitId, LunId};
use crate::sim::time::Time;
use crate::work::Class;

impl Array {
    /// Returns `true` if the array has watchers.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.watchers.is_some()
    }

    /// Returns `true` if the probe or the device records queued transactions.
    #[inline(always)]
    pub fn records_queued(&self) -> bool {
        self.watchers.as_ref().is_some_and(|watchers| watchers.probe.is_some() || watchers.of_queues)
    }

    /// Sets or removes the probe, which records every phase from now on.
    pub fn set_probe(&mut self, probe: Option<Probe>) {
        self.change_watchers(|watchers| watchers.probe = probe);
    }

    /// Returns the probe.
    #[inline(always)]
    pub fn probe(&self) -> Option<&Probe> {
        self.watchers.as_ref()?.probe.as_ref()
    }

    /// Returns a mutable reference to the probe.
    pub fn probe_mut(&mut self) -> Option<&mut Probe> {
        self.watchers.as_mut()?.probe.as_mut()
    }

    /// Removes and returns the probe, with the phases that it has recorded.
    pub fn take_probe(&mut self) -> Option<Probe> {
        let mut taken = None;
        self.change_watchers(|watchers| taken = watchers.probe.take());
        taken
    }

    /// Starts busy-time accounting.
    pub fn set_accounting(&mut self, accounting: BusyAccounting) {
        self.change_watchers(|watchers| watchers.accounting = Some(accounting));
    }

    /// Returns the busy-time accounting.
    #[inline]
    pub fn accounting(&self) -> Option<&BusyAccounting> {
        self.watchers.as_ref()?.accounting.as_ref()
    }

    /// Returns a mutable reference to the busy-time accounting.
    #[inline]
    pub fn accounting_mut(&mut self) -> Option<&mut BusyAccounting> {
        self.watchers.as_mut()?.accounting.as_mut()
    }

    /// Makes [`Array::is_watched`] return `true` if the device records queued transactions, although the array records
    /// nothing.
    pub fn keep_watching(&mut self, of_queues: bool) {
        self.change_watchers(|watchers| watchers.of_queues = of_queues);
    }

    fn change_watchers(&mut self, change: impl FnOnce(&mut Watchers)) {
        let mut watchers = self.watchers.take().unwrap_or_default();
        change(&mut watchers);
        let is_watched = watchers.probe.is_some() || watchers.accounting.is_some() || watchers.of_queues;
        self.watchers = is_watched.then_some(watchers);
    }

    /// Reports a transfer: the switch up to `switched`, then commands and data in `turns` equal turns.
    #[inline(never)]
    pub(super) fn show_transfer(&mut self, unit: ExecUnitId, from: Time, switched: Time, turns: u32, end: Time) {
        let lun = self.lun_of_unit(unit);
        let Some(watchers) = &mut self.watchers else { return };
        if let Some(accounting) = &mut watchers.accounting {
            accounting.carry(lun, from, end);
        }
        if watchers.probe.is_some() {
            self.show_phases(unit, from, switched, turns, end);
        }
    }

    #[inline(never)]
    fn show_phases(&mut self, unit: ExecUnitId, from: Time, switched: Time, turns: u32, end: Time) {
        let channel = self.channel_of_unit(unit);
        let lane = Lane::Channel(channel.0);
        let data = self.channels[channel].data;
        let turn = Time((end - switched).0 / u64::from(turns.max(1)));
        for index in 0..turns {
            let operation = self.operation_of(unit, index);
            let start = Time(switched.0 + turn.0 * u64::from(index));
            let plane = self.physical_plane(unit, operation.plane);
            let slice = |phase, start, end| Slice { plane, ..Slice::of(lane, phase, start, end, &operation) };
            let Some(probe) = self.probe_mut() else { return };
            if index == 0 {
                probe.record(slice(Phase::Switch, from, switched));
            }
            probe.record(slice(Phase::Command, start, start + turn - data));
            probe.record(slice(Phase::Data, start + turn - data, start + turn));
        }
    }

    /// Returns the operation of a unit with the values of plane number `index` of it.
    fn operation_of(&self, unit: ExecUnitId, index: u32) -> Operation {
        let operation = *self.operation(unit);
        if operation.members <= 1 {
            return operation;
        }
        let Member { plane, tag, ppn, .. } = self.members_of(unit)[index as usize];
        Operation { plane, tag, ppn, ..operation }
    }

    /// Reports the work of a unit's cells to the probe.
    #[inline(never)]
    pub(super) fn show_cells(&mut self, unit: ExecUnitId, begin: Time, end: Time) {
        for index in 0..self.operation(unit).members.max(1) {
            let operation = self.operation_of(unit, index);
            let plane = self.physical_plane(unit, operation.plane);
            let together = if self.reading_planes == 0 { plane..plane + 1 } else { self.physical_planes(unit) };
            if let Some(probe) = self.probe_mut() {
                let slice = |row| Slice { plane, ..Slice::of(Lane::Plane(row), Phase::Cell, begin, end, &operation) };
                together.for_each(|row| probe.record(slice(row)));
            }
        }
    }

    /// Reports that a unit of a LUN starts an operation. `first` is true for the first operation of the LUN's command.
    #[inline(never)]
    pub(super) fn show_start(&mut self, lun: LunId, first: bool, class: Class, now: Time) {
        let Some(watchers) = &mut self.watchers else { return };
        if let (Some(accounting), true) = (&mut watchers.accounting, first) {
            accounting.start(lun, if class.is_collecting() { Holder::Gc } else { Holder::Host }, now);
        }
        if let Some(probe) = &mut watchers.probe {
            probe.start();
        }
    }

    #[inline(never)]
    pub(super) fn show_enqueue(&mut self, unit: ExecUnitId, now: Time) {
        let lun = self.lun_of_unit(unit);
        if self.requests_at_work(unit) {
            return;
        }
        if let Some(accounting) = self.accounting_mut() {
            accounting.enqueue(unit, lun, now);
        }
    }

    #[inline(never)]
    pub(super) fn show_grant(&mut self, unit: ExecUnitId, now: Time) {
        let lun = self.lun_of_unit(unit);
        if self.requests_at_work(unit) {
            return;
        }
        if let Some(accounting) = self.accounting_mut() {
            accounting.grant(unit, lun, now);
        }
    }

    /// Returns the times that the operation of a unit of `lun` has spent so far while it held the unit. Returns `None`
    /// without busy-time accounting. Earlier times are in [`Array::book_head`].
    #[inline(always)]
    pub fn book_turn(&self, unit: ExecUnitId, lun: LunId, now: Time) -> Option<OperationTimes> {
        let start = self.reads_in_plane(unit).then_some(self.units[unit].held_since);
        Some(self.accounting()?.turn(unit, lun, (self.units[unit].cells, start), now))
    }

    /// Does the same as [`Array::book_turn`] and [`Array::book_end`] for an operation that did not overlap with another
    /// one. Otherwise, and without busy-time accounting, returns `None` and does nothing.
    #[inline(always)]
    pub fn book_alone(&mut self, unit: ExecUnitId, lun: LunId, now: Time) -> Option<OperationTimes> {
        let reads_in_plane = self.reads_in_plane(unit);
        let may_overlap = reads_in_plane | !self.overlaps.is_empty();
        if may_overlap && (reads_in_plane || self.book_head(unit).is_some()) {
            return None;
        }
        let (cell, last) = (self.units[unit].cells, self.luns[lun].active == 0);
        Some(self.accounting_mut()?.take_turn(unit, lun, (cell, last), now))
    }

    /// Accounts for the end of the operation of a unit of `lun`, if there is busy-time accounting.
    #[inline(always)]
    pub fn book_end(&mut self, unit: ExecUnitId, lun: LunId, now: Time) {
        let last = self.luns[lun].active == 0;
        if let Some(accounting) = self.accounting_mut() {
            accounting.end(unit, lun, last, now);
        }
    }
}
