//! Mapping units of the device itself: writes those of the journal and of the checkpoint like units of the host.
//! `durability/own.rs` decides when and where.

use super::{Device, Mutant};
use crate::durability::flash::FlashEvent;
use crate::durability::own::{Flush, JournalStep, OwnPlace};
use crate::ftl::mapping::Location;
use crate::observe::Origin;
use crate::sim::id::{Lpn, Ppn, RequestId, TransactionId};
use crate::sim::request::Status;
use crate::work::{Class, Kind, Task, Transaction};

impl Device {
    /// Returns the number of trims whose records are not in flash, and `None` without a trim journal
    /// (`durability.trim_journal`). A power cut undoes these trims.
    pub fn trims_in_memory(&self) -> Option<u64> {
        self.durability.as_ref()?.trims_in_memory()
    }

    /// Records the trim of a mapping unit, whose invalid copy is at `invalid` in flash.
    pub(super) fn journal_trim(&mut self, lpn: Lpn, sequence: u64, invalid: Option<Ppn>) {
        let Some(durability) = &mut self.durability else { return };
        if self.options.mutant != Mutant::ForgetTrims
            && durability.trimmed(lpn, sequence, invalid, &mut self.ftl.blocks)
        {
            self.write_journal();
        }
    }

    /// Updates the journal and the checkpoint after a mapping unit of the host was programmed.
    #[inline(never)]
    pub(super) fn record_written(&mut self, lpn: Lpn) {
        let Some(durability) = &mut self.durability else { return };
        if let Some(parts) = durability.written(&self.ftl, lpn) {
            // The parts are queued together, so that they fill programs.
            let holds = self.tasks.hold_unless_held();
            parts.into_iter().for_each(|part| self.write_own(part));
            self.release_behind(holds);
        }
    }

    /// Makes a flush wait for the records of all earlier trims. Returns `false` if there is nothing to wait for.
    pub(super) fn flush_journal(&mut self, id: RequestId) -> bool {
        let protected = self.buffer().is_some_and(|buffer| buffer.is_protected());
        let Some(durability) = self.durability.as_mut().filter(|_| !protected) else { return false };
        match durability.flush(&self.ftl, id) {
            Flush::Done => return false,
            Flush::ReadOnly => {
                self.interface.set_status(id, Status::ReadOnly);
                return false;
            }
            Flush::Waits => {}
        }
        self.interface.requests[id].remaining += 1;
        self.write_journal();
        true
    }

    /// Writes the journal if a block that awaits its erase is held by records that are not in flash.
    #[inline]
    pub(super) fn journal_before_erase(&mut self) {
        let durability = self.durability.as_ref();
        if durability.is_some_and(|durability| durability.is_held_before_erase(&self.ftl.blocks)) {
            self.write_journal();
        }
    }

    /// Retries a unit of the journal that found no room, if a block waits for it and it has room now. Called when
    /// garbage collection of a plane rests, or a read of a block or an update of the map has ended.
    #[inline]
    pub(super) fn journal_for_resting(&mut self) {
        if let Some(durability) = &mut self.durability
            && let Some(id) = durability.take_stalled_for_block(&self.ftl, &self.jobs, &self.transactions)
        {
            self.place_own(id);
        }
    }

    /// Writes the next unit of the journal, unless one is being written.
    fn write_journal(&mut self) {
        let Some(durability) = &mut self.durability else { return };
        match durability.journal_step(&self.ftl) {
            JournalStep::Wait => {}
            JournalStep::Write(lpn) => self.write_own(lpn),
            JournalStep::End(flushes) => self.complete_flushes(flushes, Status::Ok),
        }
    }

    /// Writes a mapping unit of the device itself.
    fn write_own(&mut self, lpn: Lpn) {
        let sequence = self.ftl.next_sequence();
        let before = self.ftl.map.get(lpn);
        let mut write = Transaction::new(Kind::Write, Class::HostProgram);
        (write.lpn, write.complete) = (lpn, true);
        if let Location::Flash(ppn) = before {
            write.source = ppn;
        }
        let id = self.transactions.insert(write);
        self.observe_accepted(id, before, Origin::Own(sequence));
        self.ftl.map.set_slot(lpn, id);
        self.place_own(id);
    }

    /// Queues a unit of the device itself on a plane that takes it, or parks it until there is one.
    pub(super) fn place_own(&mut self, id: TransactionId) {
        let Some(durability) = &mut self.durability else { return };
        match durability.place(&self.ftl, &self.jobs, id, self.transactions[id].lpn) {
            // The scheme may have ended the write that a flush has waited for.
            OwnPlace::OfScheme => self.tasks.push(Task::Place(id)),
            OwnPlace::In(plane) => {
                self.transactions[id].plane = plane;
                self.enqueue(id);
            }
            OwnPlace::Waits(planes) => planes.into_iter().for_each(|plane| self.tasks.push(Task::Clean(plane))),
        }
    }

    /// Retries units of the device itself that found no room, after space was freed.
    #[inline]
    pub(super) fn unpark_own(&mut self) {
        if let Some(durability) = &mut self.durability {
            let (of_journal, of_checkpoint) = durability.take_stalled();
            of_journal.into_iter().chain(of_checkpoint).for_each(|id| self.place_own(id));
        }
    }

    /// Ends the write of a unit of the device itself, which has no request and no write slot.
    pub(super) fn finish_own(&mut self, id: TransactionId) {
        let write = self.transactions.remove(id);
        if write.dependency.is_some() {
            self.release(write.dependency);
            self.clean(self.ftl.blocks.plane_of(write.dependency));
        }
        self.anchor(write.lpn, write.ppn);
        let Some(journalled) = self.durability.as_mut().and_then(|durability| durability.own_written(write.lpn)) else {
            return;
        };
        self.observe_flash(FlashEvent::Journalled { sequence: journalled.sequence });
        journalled.blocks.into_iter().for_each(|block| self.release(block));
        self.complete_flushes(journalled.flushes, Status::Ok);
        if self.durability.as_ref().is_some_and(|durability| durability.is_journal_due(&self.ftl)) {
            self.write_journal();
        }
    }

    /// Reports the physical address of a part of the checkpoint, which the storage of the flash notes.
    pub(super) fn anchor(&mut self, lpn: Lpn, ppn: Ppn) {
        if let Some(part) = self.durability.as_ref().and_then(|durability| durability.part_of(lpn)) {
            self.observe_flash(FlashEvent::Anchored { part, ppn });
        }
    }
}
