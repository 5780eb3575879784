//! Mapping units of the device itself: when the journal and the checkpoint are written, which planes their units go to,
//! and what happens when they are in flash. `durability/` has their contents, and the requests that wait for them.

use super::{Device, Mutant};
use crate::durability::account::Layout;
use crate::durability::flash::FlashEvent;
use crate::durability::is_home;
use crate::ftl::mapping::Location;
use crate::ftl::space::{BlockState, Claim, Role};
use crate::observe::Origin;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::request::Status;
use crate::work::{Class, Kind, Task, Transaction};

impl Device {
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
        if let Some(journal) = &mut durability.journal {
            journal.forget(lpn);
        }
        if let Some(checkpoint) = &mut durability.checkpoint
            && checkpoint.count()
        {
            let (layout, parts) = (checkpoint.layout, checkpoint.begin(&self.ftl));
            // The parts are queued together, so that they fill programs.
            let holds = self.tasks.hold_unless_held();
            parts.into_iter().for_each(|part| self.write_own(layout.unit(part)));
            self.release_behind(holds);
        }
    }

    /// Returns the number of trims whose records are not in flash, and `None` without a trim journal
    /// (`durability.trim_journal`). A power cut undoes these trims.
    pub fn trims_in_memory(&self) -> Option<u64> {
        Some(self.durability.as_ref()?.journal.as_ref()?.in_memory())
    }

    /// Makes a flush wait for the records of all earlier trims. Returns `false` if there is nothing to wait for.
    pub(super) fn flush_journal(&mut self, id: RequestId) -> bool {
        let protected = self.buffer().is_some_and(|buffer| buffer.is_protected());
        let Some(durability) = self.durability.as_mut().filter(|_| !protected) else { return false };
        let Some(journal) = &mut durability.journal else { return false };
        if self.ftl.is_read_only() {
            if journal.has_waiting() {
                self.interface.requests[id].status = Status::ReadOnly;
            }
            return false;
        }
        if !journal.flush(id, self.ftl.sequence) {
            return false;
        }
        self.interface.requests[id].remaining += 1;
        self.write_journal();
        true
    }

    /// Writes the journal if a block that awaits its erase is held by records that are not in flash.
    #[inline]
    pub(super) fn journal_before_erase(&mut self) {
        if self.durability.is_some() && self.is_held_before_erase() {
            self.write_journal();
        }
    }

    /// Retries a unit of the journal that found no room, if a block waits for it and it has room now. Called when
    /// garbage collection of a plane rests, or a read of a block or an update of the map has ended.
    #[inline]
    pub(super) fn journal_for_resting(&mut self) {
        if let Some(durability) = &mut self.durability
            && let Some(id) = durability.stalled_for_block(&self.ftl)
            && self.plane_for_own(self.transactions[id].lpn).is_some()
        {
            self.unpark_journal();
        }
    }

    fn is_held_before_erase(&self) -> bool {
        self.durability.as_ref().is_some_and(|durability| durability.is_held_before_erase(&self.ftl.blocks))
    }

    /// Writes the next unit of the journal, unless one is being written.
    fn write_journal(&mut self) {
        if self.ftl.is_read_only() {
            return;
        }
        let journal = self.durability.as_mut().and_then(|durability| durability.journal.as_mut());
        let Some(journal) = journal.filter(|journal| !journal.is_writing()) else { return };
        let home = |lpn, block| is_home(&self.ftl, lpn, block);
        match journal.take(self.ftl.sequence, self.ftl.blocks.awaiting_erase(), home) {
            Some(lpn) => self.write_own(lpn),
            None => self.end_journal_flushes(u64::MAX),
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

    /// Returns `true` if a mapping unit belongs to the device, not to the host.
    #[inline]
    pub(super) fn is_own(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.ftl.host_units
    }

    /// Returns `true` if a mapping unit belongs to the journal.
    #[inline]
    pub(super) fn is_of_journal(&self, lpn: Lpn) -> bool {
        self.is_own(lpn) && !self.is_of_checkpoint(lpn)
    }

    /// Returns `true` if a mapping unit belongs to the checkpoint.
    #[inline]
    pub(super) fn is_of_checkpoint(&self, lpn: Lpn) -> bool {
        self.checkpoint_layout().is_some_and(|layout| layout.has(lpn))
    }

    /// Returns the layout of the checkpoint, if there is one.
    #[inline]
    fn checkpoint_layout(&self) -> Option<Layout> {
        Some(self.durability.as_ref()?.checkpoint.as_ref()?.layout)
    }

    /// Returns the planes that a unit of the device itself may go to: its home, or those of its pool. A unit of the
    /// journal that a block waits for may go to other planes too, because reads and recovery find it anywhere.
    fn planes_for_own(&self, lpn: Lpn) -> Vec<PlaneId> {
        let planes = || (0..self.ftl.shape().planes).map(PlaneId);
        let Some(home) = self.ftl.home(lpn) else {
            return planes().filter(|&plane| self.ftl.allocation.pool_of(plane) == self.ftl.pool(lpn)).collect();
        };
        let mut all = vec![home];
        if self.is_of_journal(lpn) && self.is_held_before_erase() {
            let journal = self.durability.as_ref().and_then(|durability| durability.journal.as_ref());
            let has_room = |plane| journal.is_some_and(|journal| journal.has_room_for_guest(lpn, plane));
            all.extend(planes().filter(|&plane| plane != home && has_room(plane)));
        }
        all
    }

    /// Returns the plane for a unit of the device itself, if one has room: the home, the one with the most free blocks,
    /// or any other.
    fn plane_for_own(&self, lpn: Lpn) -> Option<PlaneId> {
        let planes = self.planes_for_own(lpn);
        let takes = |plane: &PlaneId| self.ftl.blocks.takes_own_write(*plane);
        let most = || {
            planes
                .iter()
                .copied()
                .max_by_key(|&plane| (self.ftl.blocks.free_blocks(plane, Role::Data), std::cmp::Reverse(plane)))
        };
        let first = self.ftl.home(lpn).or_else(most).filter(takes);
        let any = first.or_else(|| planes.iter().copied().find(takes));
        let lends = |plane: &PlaneId| self.is_of_journal(lpn) && self.freeing_of_journal(*plane).is_some();
        any.or_else(|| planes.iter().copied().find(lends))
    }

    /// Queues a unit of the device itself on a plane that takes it, or parks it until there is one.
    pub(super) fn place_own(&mut self, id: TransactionId) {
        let lpn = self.transactions[id].lpn;
        let of_journal = self.is_of_journal(lpn);
        if let Some(durability) = self.durability.as_mut().filter(|_| of_journal) {
            durability.add_to_journal(&self.ftl);
        }
        if self.ftl.keeps_data() {
            // The scheme may have ended the write that a flush has waited for.
            return self.tasks.push(Task::Place(id));
        }
        let plane = self.plane_for_own(lpn);
        let Some(durability) = &mut self.durability else { return };
        match plane {
            Some(plane) => {
                self.transactions[id].plane = plane;
                if let Some(journal) = durability.journal.as_mut().filter(|_| of_journal) {
                    journal.note_guest(lpn, plane, self.ftl.home(lpn).is_some_and(|home| home != plane));
                }
                self.enqueue(id);
            }
            None => {
                match (&mut durability.journal, &mut durability.checkpoint) {
                    (Some(journal), _) if of_journal => journal.stalled = Some(id),
                    (_, Some(checkpoint)) => checkpoint.stalled.push(id),
                    (_, None) => {}
                }
                let planes = self.planes_for_own(lpn);
                planes.into_iter().for_each(|plane| self.tasks.push(Task::Clean(plane)));
            }
        }
    }

    /// Returns the claim of a unit of the journal on a plane without room for the host, if a block of the plane waits
    /// only for this unit, or for it and the next ones. The plane then has a block to reclaim after any power cut.
    /// Before the programs end, they take no space from others; afterwards, that block holds no newest version.
    pub(super) fn freeing_of_journal(&self, plane: PlaneId) -> Option<Claim> {
        let journal = self.durability.as_ref()?.journal.as_ref()?;
        let waiting = self.ftl.blocks.awaiting_erase().filter(|&block| self.waits_for_one(plane, block));
        let programs = waiting.filter_map(|block| journal.programs_for(block)).min()?;
        self.freeing(plane, programs)
    }

    /// Returns the claim of `programs` programs that together free a block of the plane, if there is room for them.
    pub(super) fn freeing(&self, plane: PlaneId, programs: u32) -> Option<Claim> {
        let claim = Claim::Freeing { hand: self.jobs[plane].in_hand(&self.ftl, plane), programs };
        self.ftl.blocks.may_take(self.ftl.blocks.region(plane, Role::Data), claim).then_some(claim)
    }

    /// Returns `true` if a block of a plane awaits its erase and has one dependent left.
    fn waits_for_one(&self, plane: PlaneId, block: BlockId) -> bool {
        self.dependents_before_erase(plane, block) == Some(1)
    }

    /// Returns the number of dependents of a block of a plane that awaits its erase and can be used after that.
    pub(super) fn dependents_before_erase(&self, plane: PlaneId, block: BlockId) -> Option<u32> {
        let state = self.ftl.blocks.block(block);
        let awaits_erase =
            self.ftl.blocks.plane_of(block) == plane && state.state == BlockState::AwaitingErase && !state.failed;
        awaits_erase.then_some(state.dependents.into())
    }

    /// Retries units of the device itself that found no room, after space was freed.
    #[inline]
    pub(super) fn unpark_own(&mut self) {
        if self.durability.is_some() {
            self.unpark_journal();
            self.unpark_checkpoint();
        }
    }

    fn unpark_journal(&mut self) {
        let journal = self.durability.as_mut().and_then(|durability| durability.journal.as_mut());
        if let Some(id) = journal.and_then(|journal| journal.stalled.take()) {
            self.place_own(id);
        }
    }

    fn unpark_checkpoint(&mut self) {
        let checkpoint = self.durability.as_mut().and_then(|durability| durability.checkpoint.as_mut());
        let stalled = checkpoint.map(|checkpoint| std::mem::take(&mut checkpoint.stalled));
        stalled.into_iter().flatten().for_each(|id| self.place_own(id));
    }

    /// Ends the write of a unit of the device itself, which has no request and no write slot.
    pub(super) fn finish_own(&mut self, id: TransactionId) {
        let write = self.transactions.remove(id);
        if write.dependency.is_some() {
            self.release(write.dependency);
            self.clean(self.ftl.blocks.plane_of(write.dependency));
        }
        if self.is_of_checkpoint(write.lpn) {
            self.checkpoint_ended(write.lpn, write.ppn)
        } else {
            self.journal_ended()
        }
    }

    /// Handles the end of the program of a unit of the journal.
    fn journal_ended(&mut self) {
        let journal = self.durability.as_mut().and_then(|durability| durability.journal.as_mut());
        let Some((free, upto)) = journal.and_then(|journal| journal.end_write()) else { return };
        self.observe_flash(FlashEvent::Journalled { sequence: upto });
        free.into_iter().for_each(|block| self.release(block));
        self.end_journal_flushes(upto);
        let Some(durability) = &self.durability else { return };
        let is_due = durability.journal.as_ref().is_some_and(|journal| journal.has_flushes() || journal.is_due());
        if is_due || durability.is_held_before_erase(&self.ftl.blocks) {
            self.write_journal();
        }
    }

    /// Completes the flushes that wait for trims up to the sequence number `upto`.
    fn end_journal_flushes(&mut self, upto: u64) {
        let journal = self.durability.as_mut().and_then(|durability| durability.journal.as_mut());
        let flushes = journal.map_or_else(Vec::new, |journal| journal.end_flushes(upto));
        self.complete_flushes(flushes, Status::Ok);
    }

    /// Handles the end of the program of a part of the checkpoint.
    fn checkpoint_ended(&mut self, lpn: Lpn, ppn: Ppn) {
        let part = self.checkpoint_layout().and_then(|layout| layout.part(lpn));
        let checkpoint = self.durability.as_mut().and_then(|durability| durability.checkpoint.as_mut());
        if let (Some(checkpoint), Some(part)) = (checkpoint, part) {
            checkpoint.end(part);
        }
        self.anchor(lpn, ppn);
    }

    /// Reports the physical address of a part of the checkpoint, which the storage of the flash notes.
    pub(super) fn anchor(&mut self, lpn: Lpn, ppn: Ppn) {
        if let Some(part) = self.checkpoint_layout().and_then(|layout| layout.part(lpn)) {
            self.observe_flash(FlashEvent::Anchored { part, ppn });
        }
    }
}
