//! Those who watch an array, and what they are shown. What is shown stays out of line: nobody watches most runs.

use super::{Array, Member, Operation};
use crate::nand::ledger::{Holder, Ledger, Turn};
use crate::nand::probe::{Lane, Phase, Probe, Slice};
use crate::sim::id::{LunId, UnitId};
use crate::sim::time::Time;
use crate::work::Class;

/// Those who watch an array.
#[derive(Clone, Debug, Default)]
pub(super) struct Watchers {
    /// Sees every phase.
    probe: Option<Probe>,
    /// Books who held what for how long.
    ledger: Option<Ledger>,
    /// Somebody wants to know what waits, though nothing is recorded here.
    of_queues: bool,
}

impl Array {
    /// Whether anybody watches.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.watchers.is_some()
    }

    /// Watches every phase from now on with this probe; `None` takes the one away that there was.
    pub fn set_probe(&mut self, probe: Option<Probe>) {
        self.change_watchers(|watchers| watchers.probe = probe);
    }

    /// The probe.
    #[inline(always)]
    pub fn probe(&self) -> Option<&Probe> {
        self.watchers.as_ref()?.probe.as_ref()
    }

    /// The probe.
    pub fn probe_mut(&mut self) -> Option<&mut Probe> {
        self.watchers.as_mut()?.probe.as_mut()
    }

    /// Takes the probe away, with what it saw.
    pub fn take_probe(&mut self) -> Option<Probe> {
        let mut taken = None;
        self.change_watchers(|watchers| taken = watchers.probe.take());
        taken
    }

    /// Books who holds what from now on.
    pub fn set_ledger(&mut self, ledger: Ledger) {
        self.change_watchers(|watchers| watchers.ledger = Some(ledger));
    }

    /// The books.
    #[inline]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.watchers.as_ref()?.ledger.as_ref()
    }

    /// The books.
    #[inline]
    pub fn ledger_mut(&mut self) -> Option<&mut Ledger> {
        self.watchers.as_mut()?.ledger.as_mut()
    }

    /// Lets [`Array::is_watched`] return `true` although the array records nothing: the device records what waits.
    pub fn keep_watching(&mut self, of_queues: bool) {
        self.change_watchers(|watchers| watchers.of_queues = of_queues);
    }

    fn change_watchers(&mut self, change: impl FnOnce(&mut Watchers)) {
        let mut watchers = self.watchers.take().unwrap_or_default();
        change(&mut watchers);
        let is_watched = watchers.probe.is_some() || watchers.ledger.is_some() || watchers.of_queues;
        self.watchers = is_watched.then_some(watchers);
    }

    /// Shows the observers a transfer: the switch up to `switched`, then commands and data in so many equal turns.
    #[inline(never)]
    pub(super) fn show_transfer(&mut self, unit: UnitId, from: Time, switched: Time, turns: u32, end: Time) {
        let lun = self.lun_of_unit(unit);
        let Some(watchers) = &mut self.watchers else { return };
        if let Some(ledger) = &mut watchers.ledger {
            ledger.carry(lun, from, end);
        }
        if watchers.probe.is_some() {
            self.show_phases(unit, from, switched, turns, end);
        }
    }

    #[inline(never)]
    fn show_phases(&mut self, unit: UnitId, from: Time, switched: Time, turns: u32, end: Time) {
        let channel = self.channel_of_unit(unit);
        let (lane, data) = (Lane::Channel(channel.0), self.channels[channel].data);
        let turn = Time((end - switched).0 / u64::from(turns.max(1)));
        for index in 0..turns {
            let operation = self.operation_of(unit, index);
            let start = Time(switched.0 + turn.0 * u64::from(index));
            let slice = |phase, start, end| Slice::of(lane, phase, start, end, &operation);
            let Some(probe) = self.probe_mut() else { return };
            if index == 0 {
                probe.record(slice(Phase::Switch, from, switched));
            }
            probe.record(slice(Phase::Command, start, start + turn - data));
            probe.record(slice(Phase::Data, start + turn - data, start + turn));
        }
    }

    /// The operation of a unit as plane number `index` of it sees it.
    fn operation_of(&self, unit: UnitId, index: u32) -> Operation {
        let operation = *self.operation(unit);
        if operation.members <= 1 {
            return operation;
        }
        let Member { plane, tag, place, .. } = self.members_of(unit)[index as usize];
        Operation { plane, tag, place, ..operation }
    }

    /// Shows the probe the work of a unit's cells.
    #[inline(never)]
    pub(super) fn show_cells(&mut self, unit: UnitId, begin: Time, end: Time) {
        for index in 0..self.operation(unit).members.max(1) {
            let operation = self.operation_of(unit, index);
            if let Some(probe) = self.probe_mut() {
                probe.record(Slice::of(Lane::Plane(operation.plane.0), Phase::Cell, begin, end, &operation));
            }
        }
    }

    /// Shows the observers that a unit of a LUN starts an operation, `first` of the LUN's command.
    #[inline(never)]
    pub(super) fn show_start(&mut self, lun: LunId, first: bool, class: Class, now: Time) {
        let Some(watchers) = &mut self.watchers else { return };
        if let (Some(ledger), true) = (&mut watchers.ledger, first) {
            ledger.start(lun, if class.is_cleaning() { Holder::Cleaning } else { Holder::Host }, now);
        }
        if let Some(probe) = &mut watchers.probe {
            probe.start();
        }
    }

    #[inline(never)]
    pub(super) fn show_line_up(&mut self, unit: UnitId, now: Time) {
        let lun = self.lun_of_unit(unit);
        if let Some(ledger) = self.ledger_mut() {
            ledger.line_up(unit, lun, now);
        }
    }

    #[inline(never)]
    pub(super) fn show_grant(&mut self, unit: UnitId, now: Time) {
        let lun = self.lun_of_unit(unit);
        if let Some(ledger) = self.ledger_mut() {
            ledger.grant(unit, lun, now);
        }
    }

    /// What the operation of a unit of `lun` has spent since it held the unit, where books are kept; there may be
    /// something before ([`Array::book_head`]).
    #[inline(always)]
    pub fn book_turn(&self, unit: UnitId, lun: LunId, now: Time) -> Option<Turn> {
        Some(self.ledger()?.turn(unit, lun, self.cells_of(unit), now))
    }

    /// How long the cells of a unit work in its operation.
    #[inline(always)]
    pub fn cells_of(&self, unit: UnitId) -> Time {
        self.units[unit].cells
    }

    /// Books that the operation of a unit of `lun` has ended, where books are kept.
    #[inline(always)]
    pub fn book_end(&mut self, unit: UnitId, lun: LunId, now: Time) {
        let last = self.luns[lun].active == 0;
        if let Some(ledger) = self.ledger_mut() {
            ledger.end(unit, lun, last, now);
        }
    }
}
