//! Completion of operations: sends the data of reads to the host, and makes programmed units valid.

use super::{Device, Mutant};
use crate::durability::flash::FlashEvent;
use crate::ftl::mapping::{Change, Ended, Location, call};
use crate::ftl::mover::copy::{Copy, CopySource};
use crate::ftl::space::{Block, BlockState, Role};
use crate::metrics::attribution::Part as TimePart;
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, ExecUnitId, Lpn, LunId, Ppn, RequestId, TransactionId};
use crate::sim::request::Status;
use crate::sim::time::Time;
use crate::work::{Class, Kind, Task, Transaction};

impl Device {
    /// Handles the end of the transfer of one plane in a multi-plane read.
    #[inline(never)]
    pub(super) fn finish_member(&mut self, unit: ExecUnitId) {
        let id = self.dispatch.member_ended(unit, &self.transactions);
        self.observe_member_ended(unit, id);
        self.finish_one(id);
    }

    /// Handles the end of the operation of an execution unit of `lun`.
    #[inline(always)]
    pub(super) fn finish(&mut self, unit: ExecUnitId, lun: LunId) {
        let id = self.dispatch.ended(unit);
        self.observe_ended(unit, lun, id);
        self.finish_one(id);
    }

    #[inline(always)]
    fn finish_one(&mut self, id: TransactionId) {
        match self.transactions[id].kind {
            Kind::HostRead => self.finish_read(id),
            Kind::RmwRead => self.finish_rmw(id),
            Kind::GcRead => self.finish_gc_read(id),
            Kind::Write if !self.dispatch.merges() => self.finish_writes(id),
            Kind::MergeRead => {
                let read = self.transactions.remove(id);
                self.ftl.end_copy_read(&read, |ftl, ppn| ftl.blocks.is_valid(ppn));
                let number = read.logical_block();
                call::ended(self, Ended::CopyRead(number));
            }
            Kind::MapRead => _ = call::ended(self, Ended::MapRead(id)),
            Kind::Write
            | Kind::GcWrite
            | Kind::CopyBack
            | Kind::MergeWrite
            | Kind::MapWrite
            | Kind::Erase
            | Kind::Summary => self.finish_merged(id),
            Kind::SlotRead | Kind::Translate | Kind::MapHold => unreachable!("such transactions are never executed"),
        }
    }

    /// Ends the operations of a multi-plane command, one plane after another, from `id` on.
    pub(super) fn finish_merged(&mut self, id: TransactionId) {
        let rest = self.split_off(id);
        match self.transactions[id].kind {
            Kind::Write => self.finish_writes(id),
            Kind::GcWrite => self.finish_copies(id),
            Kind::CopyBack => self.finish_copy_back(id),
            Kind::MergeWrite => self.finish_merge_write(id),
            Kind::MapWrite => self.finish_map_write(id),
            Kind::Erase => self.finish_erase(id),
            _ => self.finish_summary(id),
        }
        if rest.is_some() {
            self.tasks.push(Task::Finish(rest));
        }
    }

    /// Splits a chain of transactions after those in the plane of `first`, and returns the rest.
    fn split_off(&mut self, first: TransactionId) -> TransactionId {
        let mut last = first;
        loop {
            let next = self.transactions[last].next;
            if next.is_none() || self.transactions[next].plane != self.transactions[first].plane {
                self.transactions[last].next = TransactionId::NONE;
                return next;
            }
            last = next;
        }
    }

    #[inline(always)]
    fn finish_read(&mut self, id: TransactionId) {
        if !self.check_host_read(id) && self.buffer.is_some() {
            self.fill_buffer(id);
            if self.tasks.any_new() {
                return self.tasks.push(Task::EndRead(id));
            }
        }
        self.end_read(id);
    }

    /// Ends a read of the host, after the buffer has kept what it needs of the data.
    #[inline(always)]
    pub(super) fn end_read(&mut self, id: TransactionId) {
        let read = self.transactions[id];
        self.release(read.dependency);
        self.transactions.remove(id);
        self.reply(read.request(), u32::from(read.end), id);
        self.journal_for_resting();
    }

    /// Sends `sectors` sectors of a read to the host; see [`Device::part_done`].
    #[inline(always)]
    pub(super) fn reply(&mut self, request: RequestId, sectors: u32, by: TransactionId) {
        let at = self.interface.reply(request, sectors, self.now);
        self.part_done(request, at, by);
    }

    /// Ends a part of a request at `at`. `by` is the transaction that ended the part, or `NONE`.
    #[inline]
    pub(super) fn part_done(&mut self, request: RequestId, at: Time, by: TransactionId) {
        if self.interface.part_done(request, at) {
            self.complete(request, by);
        }
    }

    /// Ends the read of a partial write, whose data are complete now, and queues the write.
    fn finish_rmw(&mut self, id: TransactionId) {
        let read = self.transactions[id];
        self.check_rmw_read(read.write(), read.ppn, read.units);
        self.release(read.dependency);
        self.transactions.remove(id);
        self.contents_complete(read.write());
        self.queue_write(read.write());
        self.journal_for_resting();
    }

    /// Completes the reads that waited for the contents of a write slot.
    pub(super) fn contents_complete(&mut self, write: TransactionId) {
        self.transactions[write].complete = true;
        let mut id = std::mem::replace(&mut self.transactions[write].readers, TransactionId::NONE);
        while id.is_some() {
            let read = self.transactions[id];
            let (first, end) = (u32::from(read.first), u32::from(read.end));
            if self.transactions[write].returns_lost(first, end) {
                self.interface.set_status(read.request(), Status::Uncorrectable);
            }
            self.observe_slot_read_ended(id, write);
            self.transactions.remove(id);
            let pending = &mut self.interface.requests[read.request()];
            pending.start = pending.start.min(self.now);
            self.reply(read.request(), end - first, id);
            id = read.next;
        }
    }

    /// Ends a program of host writes.
    fn finish_writes(&mut self, first: TransactionId) {
        let ppn = self.transactions[first].ppn;
        if !self.transactions[first].complete {
            self.contents_complete(first); // The page was in the register.
        }
        let units = self.program_units_at(ppn);
        let start = Ppn(ppn.0 - self.ftl.blocks.offset_in_block(ppn) % units);
        if self.ftl.program_fails(start, units) {
            return self.write_again(first);
        }
        self.store_program(start, units, first);
        self.observe_programmed(start, units);
        self.finish_writes_of(ppn, first);
    }

    /// Ends the writes of a program from `id` on, and then the program itself. Runs the tasks of each write before the
    /// next one.
    pub(super) fn finish_writes_of(&mut self, ppn: Ppn, mut id: TransactionId) {
        while id.is_some() {
            let next = self.transactions[id].next;
            self.finish_write(id);
            if self.tasks.any_new() {
                return self.tasks.push(Task::FinishWrites(ppn, next));
            }
            id = next;
        }
        if self.ftl.blocks.is_kept(self.ftl.blocks.block_of(ppn)) {
            let (lpn, start) = (Lpn(self.ftl.map.owner(ppn)), self.start_of_program(ppn));
            call::ended(self, Ended::Writes(lpn, start));
        } else {
            self.program_ended(ppn, self.ftl.blocks.role_at(ppn));
        }
        self.admit();
    }

    #[inline(always)]
    fn finish_write(&mut self, id: TransactionId) {
        let write = self.transactions[id];
        let Transaction { lpn, ppn, .. } = write;
        if write.uncorrectable {
            self.ftl.mark_lost(ppn);
        }
        if write.trimmed {
            self.ftl.counters.units_trimmed += 1;
        } else {
            self.ftl.blocks.validate(ppn);
            if write.newer.is_none() || self.options.mutant == Mutant::MapMovesBack {
                self.ftl.map.set_flash(lpn, ppn);
                if self.durability.is_some() {
                    if self.ftl.is_own(lpn) {
                        return self.finish_own(id);
                    }
                    self.record_written(lpn);
                    if self.tasks.any_new() {
                        return self.tasks.push(Task::MapWritten(id));
                    }
                }
                call::changed(self, lpn, Change::Entry);
            }
        }
        self.release_invalidated(id);
    }

    /// Updates the map entry of a programmed write, then releases the block of the old copy.
    pub(super) fn map_written(&mut self, id: TransactionId) {
        call::changed(self, self.transactions[id].lpn, Change::Entry);
        self.release_invalidated(id);
    }

    /// Releases the block of the old copy, and the newer write of the mapping unit, after a write was programmed.
    #[inline(always)]
    fn release_invalidated(&mut self, id: TransactionId) {
        let write = self.transactions[id];
        if write.dependency.is_some() {
            self.release(write.dependency);
            self.clean(self.ftl.blocks.plane_of(write.dependency));
        }
        if write.newer.is_some() {
            self.release_newer(id, write.newer);
            // The tasks of the newer write may queue work for the same core as the completion of this one.
            return self.tasks.push(Task::CompleteProgrammed(id));
        }
        self.complete_programmed(id);
    }

    /// Removes a programmed write: frees its write slot and completes its part of the request.
    #[inline(always)]
    pub(super) fn complete_programmed(&mut self, id: TransactionId) {
        let write = self.transactions.remove(id);
        self.slots_free += 1;
        if write.request().is_some() {
            self.part_done(write.request(), self.now, id);
        }
        self.finish_flight(id);
    }

    /// Queues the write that waited for `id`, a write of the same mapping unit.
    fn release_newer(&mut self, id: TransactionId, newer: TransactionId) {
        self.inherit(id, newer);
        self.observe_spent(newer, TimePart::Order);
        self.queue_write(newer);
    }

    /// Passes the data of `id` that the `newer` write keeps to that write, and makes the address of `id` the old copy.
    pub(super) fn inherit(&mut self, id: TransactionId, newer: TransactionId) {
        let write = self.transactions[id];
        self.transactions[newer].older = TransactionId::NONE;
        self.transactions[newer].source = if write.trimmed { Ppn::NONE } else { write.ppn };
        if !self.transactions[newer].complete {
            self.transactions[newer].uncorrectable = write.uncorrectable;
            self.observe_completed(newer, id);
            self.contents_complete(newer);
        }
    }

    /// Returns the first unit of the program that a physical address is part of.
    pub(super) fn start_of_program(&self, ppn: Ppn) -> Ppn {
        Ppn(ppn.0 - self.ftl.blocks.offset_in_block(ppn) % self.program_units_at(ppn))
    }

    /// Returns the number of units of a program of host writes, or of copies, that a physical address is part of.
    #[inline]
    pub(super) fn program_units_at(&self, ppn: Ppn) -> u32 {
        match &self.ftl.folding {
            Some(_) => self.ftl.blocks.size(self.ftl.blocks.role_at(ppn)).program_units,
            None => self.ftl.shape().units_per_program,
        }
    }

    /// Handles the end of a program at `ppn`, in a block of a role. If it was the last program of data in the block,
    /// closes the block or queues its summary.
    #[inline(always)]
    pub(super) fn program_ended(&mut self, ppn: Ppn, role: Role) {
        if self.ftl.faults.is_some() && self.ftl.blocks.block(self.ftl.blocks.block_of(ppn)).failed {
            return self.rest_failed(self.ftl.blocks.block_of(ppn));
        }
        let end = Ppn(ppn.0 + self.ftl.blocks.size(role).program_units);
        if self.ftl.blocks.ends_data(end, role) {
            self.block_filled(ppn);
        }
    }

    /// Closes the block of the program at `ppn`, which is full, or queues its summary.
    fn block_filled(&mut self, ppn: Ppn) {
        if self.ftl.shape().summary {
            self.queue_summary(ppn);
        } else {
            self.close(self.ftl.blocks.block_of(ppn));
        }
    }

    /// Queues the summary of a block, after the program at `ppn`.
    pub(super) fn queue_summary(&mut self, ppn: Ppn) {
        let mut summary = Transaction::new(Kind::Summary, Class::Summary);
        let block = self.ftl.blocks.block_of(ppn);
        if self.ftl.blocks.block(block).state == BlockState::Logical {
            summary.dependency = self.ftl.blocks.depend(ppn);
        }
        summary.plane = self.ftl.blocks.plane_of(block);
        summary.ppn = Ppn(ppn.0 + self.ftl.blocks.size_of(block).program_units);
        self.dispatch(summary);
    }

    fn finish_summary(&mut self, id: TransactionId) {
        let Transaction { ppn, dependency, .. } = self.transactions.remove(id);
        let block = self.ftl.blocks.block_of(ppn);
        let group = self.ftl.blocks.size_of(block).program_units;
        if self.ftl.program_fails(ppn, group) {
            self.program_failed(ppn, group, 0);
            if dependency.is_some() {
                // The block keeps its data, and is retired when it is to be erased.
                let awaits_erase = self.ftl.blocks.block(block).state == BlockState::AwaitingErase;
                self.release(dependency);
                if awaits_erase {
                    self.kept_erased(self.ftl.blocks.plane_of(block), Role::Data, true);
                }
            }
            return;
        }
        self.observe_programmed(ppn, group);
        if dependency.is_some() {
            return self.release(dependency);
        }
        self.close(block);
    }

    fn close(&mut self, block: BlockId) {
        if self.ftl.blocks.block(block).state == BlockState::Logical {
            return; // The scheme keeps the block.
        }
        let plane = self.ftl.blocks.plane_of(block);
        if self.ftl.close(block) {
            self.tasks.push(Task::CheckSpare(plane));
        }
        self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
        self.collect_data_and_map(plane);
    }

    /// Ends a program of copies by garbage collection.
    fn finish_copies(&mut self, id: TransactionId) {
        let Transaction { plane, ppn, .. } = self.transactions[id];
        self.transactions.remove(id);
        if self.ftl.program_fails(ppn, self.ftl.shape().units_per_program) {
            return self.copies_again(plane, ppn, self.ftl.shape().units_per_program);
        }
        self.observe_programmed(ppn, self.ftl.shape().units_per_program);
        let count = std::mem::take(&mut self.jobs[plane].moving.writing);
        for index in 0..count {
            let copy = self.jobs[plane].moving.copies[index];
            self.finish_copy(copy.to(Ppn(ppn.0 + index as u32)));
            self.jobs.collect_in_plane_of(&self.ftl, &mut self.tasks, copy.from, plane);
        }
        let job = &mut self.jobs[plane];
        job.moving.copies.drain(..count);
        job.busy = false;
        self.program_ended(ppn, Role::Data);
        if self.tasks.any_new() {
            return self.tasks.push(Task::Clean(plane));
        }
        self.clean(plane);
    }

    /// Ends a copy-back of a page by garbage collection.
    fn finish_copy_back(&mut self, id: TransactionId) {
        let Transaction { plane, ppn, .. } = self.transactions[id];
        self.transactions.remove(id);
        if self.ftl.program_fails(ppn, self.ftl.shape().units_per_page.divisor()) {
            return self.copies_again(plane, ppn, self.ftl.shape().units_per_page.divisor());
        }
        self.observe_programmed(ppn, self.ftl.shape().units_per_page.divisor());
        for index in 0..self.jobs[plane].moving.back.len() {
            let copy = self.jobs[plane].moving.back[index];
            self.finish_copy(copy.to(self.ppn_of_back(copy, ppn)));
        }
        let job = &mut self.jobs[plane];
        job.moving.back.clear();
        job.busy = false;
        self.program_ended(ppn, Role::Data);
        if self.tasks.any_new() {
            return self.tasks.push(Task::Clean(plane));
        }
        self.clean(plane);
    }

    /// Returns the new address of a unit whose page is moved within its plane to the page that starts at `page`.
    pub(super) fn ppn_of_back(&self, copy: CopySource, page: Ppn) -> Ppn {
        let (_, in_page) = self.ftl.shape().units_per_page.divide_with_rest(copy.from.0);
        Ppn(page.0 + in_page)
    }

    /// Ends a copy of one unit by garbage collection.
    fn finish_copy(&mut self, copy: Copy) {
        if let Some(media) = &mut self.ftl.media {
            media.copy(copy.from, copy.to);
        }
        self.ftl.copy_loss(copy.from, copy.to);
        let block = self.ftl.blocks.block_of(copy.from);
        if self.ftl.blocks.levels_wear() {
            self.ftl.blocks.note_copied(block, self.ftl.blocks.block_of(copy.to), 1);
        }
        let cause = self.ftl.blocks.block(block).moved_for;
        if self.move_in_map(&copy, cause) {
            call::changed(self, Lpn(copy.lpn), Change::Moved(copy.from));
        }
        self.release(block);
    }

    /// Points the map at a copy, unless its unit was overwritten or trimmed in the meantime. Returns `true` if it did.
    pub(super) fn move_in_map(&mut self, copy: &Copy, cause: CopyCause) -> bool {
        let lpn = Lpn(copy.lpn);
        let Some(before) = self.ftl.end_copy(copy, cause) else {
            if self.options.mutant == Mutant::RenumberCopies {
                self.ftl.map.set_flash(lpn, copy.to);
            }
            return false;
        };
        if let Location::Slot(newest) = before {
            let mut id = newest;
            while self.transactions[id].older.is_some() {
                id = self.transactions[id].older;
            }
            debug_assert_eq!(self.transactions[id].source, copy.from);
            self.transactions[id].source = copy.to;
            if self.options.mutant == Mutant::IgnoreOverwrite {
                self.ftl.map.set_flash(lpn, copy.to);
            }
        }
        if self.durability.is_some() {
            self.anchor(lpn, copy.to);
        }
        true
    }

    fn finish_erase(&mut self, id: TransactionId) {
        let (plane, block) = (self.transactions[id].plane, self.transactions[id].block());
        self.transactions.remove(id);
        debug_assert_eq!(self.ftl.blocks.block(block).state, BlockState::AwaitingErase);
        let &Block { role, moved_for, .. } = self.ftl.blocks.block(block);
        let is_victim = matches!(moved_for, CopyCause::Gc | CopyCause::Background);
        let is_kept = self.ftl.blocks.is_kept(block);
        if role == Role::Data && is_victim {
            self.jobs.note_end(plane, self.now);
        }
        let free_map_blocks = self.ftl.blocks.free_blocks(plane, Role::Map);
        let failed = self.ftl.erase_fails(block);
        if failed {
            self.ftl.erase_failed(block);
            self.observe_flash(FlashEvent::EraseFailed { block });
        } else {
            self.ftl.erase_now(block);
            let erases = self.ftl.blocks.block(block).erases;
            self.observe_flash(FlashEvent::EraseEnded { block, erases });
        }
        if is_kept {
            return self.kept_erased(plane, role, failed);
        }
        // Only a mutant erases a failed block, and neither count includes it.
        let job = &mut self.jobs[plane];
        let count = if role == Role::Cache { &mut job.folded } else { &mut job.awaiting_erase };
        *count = count.saturating_sub(1);
        if failed {
            self.check_spare(plane);
        }
        self.ftl.refresh_ready(plane);
        self.unpark(plane);
        self.unpark_own();
        self.map_paid(plane, free_map_blocks);
        self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
        self.clean(plane);
    }
}
