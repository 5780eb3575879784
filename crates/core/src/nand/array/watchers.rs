//! Those who watch an array, and what they are shown. What is shown stays out of line: nobody watches most runs.

use super::Array;
use crate::nand::ledger::{Holder, Ledger, Turn};
use crate::nand::probe::{Lane, Phase, Probe, Slice};
use crate::scheduler::Class;
use crate::sim::id::LunId;
use crate::sim::time::Time;

/// Those who watch an array.
#[derive(Clone, Debug, Default)]
pub(super) struct Watchers {
    /// Sees every phase.
    probe: Option<Probe>,
    /// Books who held what for how long.
    ledger: Option<Ledger>,
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

    fn change_watchers(&mut self, change: impl FnOnce(&mut Watchers)) {
        let mut watchers = self.watchers.take().unwrap_or_default();
        change(&mut watchers);
        self.watchers = (watchers.probe.is_some() || watchers.ledger.is_some()).then_some(watchers);
    }

    /// Shows the observers a transfer: the switch up to `switched`, the command up to `commanded`, and data.
    #[inline(never)]
    pub(super) fn show_transfer(&mut self, lun: LunId, now: Time, switched: Time, commanded: Time, end: Time) {
        if let Some(ledger) = self.ledger_mut() {
            ledger.carry(lun, now, end);
        }
        if self.probe().is_some() {
            self.show_phases(lun, now, switched, commanded, end);
        }
    }

    fn show_phases(&mut self, lun: LunId, now: Time, switched: Time, commanded: Time, end: Time) {
        let lane = Lane::Channel(self.channel_of(lun).0);
        let operation = self.luns[lun.index()].operation;
        let slice = |phase, start, end| Slice::of(lane, phase, start, end, &operation);
        if let Some(probe) = self.probe_mut() {
            probe.record(slice(Phase::Switch, now, switched));
            probe.record(slice(Phase::Command, switched, commanded));
            probe.record(slice(Phase::Data, commanded, end));
        }
    }

    /// Shows the probe the work of a LUN's cells.
    #[inline(never)]
    pub(super) fn show_cells(&mut self, lun: LunId, begin: Time, end: Time) {
        let operation = self.luns[lun.index()].operation;
        if let Some(probe) = self.probe_mut() {
            probe.record(Slice::of(Lane::Plane(operation.plane.0), Phase::Cell, begin, end, &operation));
        }
    }

    #[inline(never)]
    pub(super) fn show_start(&mut self, lun: LunId, class: Class, now: Time) {
        let Some(watchers) = &mut self.watchers else { return };
        if let Some(ledger) = &mut watchers.ledger {
            ledger.start(lun, if class.is_cleaning() { Holder::Cleaning } else { Holder::Host }, now);
        }
        if let Some(probe) = &mut watchers.probe {
            probe.start();
        }
    }

    #[inline(never)]
    pub(super) fn show_line_up(&mut self, lun: LunId, now: Time) {
        if let Some(ledger) = self.ledger_mut() {
            ledger.line_up(lun, now);
        }
    }

    #[inline(never)]
    pub(super) fn show_grant(&mut self, lun: LunId, now: Time) {
        if let Some(ledger) = self.ledger_mut() {
            ledger.grant(lun, now);
        }
    }

    /// Books that the operation of a LUN has ended, where books are kept.
    #[inline(always)]
    pub fn book_end(&mut self, lun: LunId, now: Time) -> Option<Turn> {
        let cells = self.luns[lun.index()].cells;
        self.ledger_mut().map(|ledger| ledger.end(lun, cells, now))
    }
}
