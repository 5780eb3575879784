//! Completion of operations: sends the data of reads to the host, and makes programmed units valid.

use super::{Device, Mutant};
use crate::durability::flash::FlashEvent;
use crate::ftl::mapping::{Change, Context, Ended, Location, call};
use crate::ftl::mover::copy::Copy;
use crate::ftl::space::{Block, BlockState, Role};
use crate::host::cores::Work;
use crate::metrics::attribution::Part as TimePart;
use crate::metrics::counters::CopyCause;
use crate::observe::Observers;
use crate::sim::id::{BlockId, ExecUnitId, Lpn, LunId, PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::request::Status;
use crate::sim::time::Time;
use crate::work::{Class, Kind, Task, Transaction, chain, split_off};

impl Device {
    /// Handles the end of the operation of an execution unit of `lun`.
    #[inline(always)]
    pub(super) fn finish(&mut self, unit: ExecUnitId, lun: LunId) {
        let id = self.dispatch.ended(unit);
        let Device { observers, array, transactions, now, .. } = self;
        let is_reported =
            |observers: &mut Box<Observers>| observers.end_alone(transactions, array, (unit, lun), id, *now);
        if !observers.as_mut().is_none_or(is_reported) {
            self.observe(move |observers, view| observers.ended(view, unit, lun, id));
            self.array.book_end(unit, lun, self.now);
        }
        self.finish_one(id);
    }

    /// Ends an operation, except for a read whose data have to be decoded or rebuilt first.
    #[inline(always)]
    pub(super) fn finish_one(&mut self, id: TransactionId) {
        if !self.reads_end_later || !self.takes_read(id) {
            self.finish_read_or_other(id);
        }
    }

    /// Ends an operation.
    #[inline(always)]
    pub(super) fn finish_read_or_other(&mut self, id: TransactionId) {
        match self.transactions[id].kind {
            Kind::HostRead => self.finish_read(id),
            Kind::ReadAhead => self.finish_read_ahead(id),
            Kind::RmwRead => {
                // The data of the partial write are complete now.
                let read = self.transactions[id];
                self.check_rmw_read(read.write(), read.ppn, read.units);
                self.release(read.dependency);
                self.transactions.remove(id);
                self.contents_complete(read.write());
                self.queue_write(read.write());
                self.journal_for_resting();
            }
            Kind::GcRead => {
                let read = self.transactions.remove(id);
                let plane = read.job();
                self.jobs.end_read(&mut self.ftl, &read);
                if self.jobs[plane].end_read() {
                    self.drop_invalid(plane, false);
                    self.jobs[plane].busy = false;
                    self.clean(plane);
                }
            }
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
            Kind::RebuildRead => unreachable!("the reads of a rebuild end with it"),
            Kind::SlotRead | Kind::Translate | Kind::MapHold => unreachable!("such transactions are never executed"),
        }
    }

    /// Ends the operations of a multi-plane command, one plane after another, from `id` on.
    pub(super) fn finish_merged(&mut self, id: TransactionId) {
        let merges = self.dispatch.merges();
        let rest = if merges { split_off(&mut self.transactions, id) } else { TransactionId::NONE };
        match self.transactions[id].kind {
            Kind::Write => self.finish_writes(id),
            Kind::GcWrite | Kind::CopyBack => self.finish_copies(id),
            Kind::MergeWrite => self.finish_merge_write(id),
            Kind::MapWrite => self.finish_map_write(id),
            Kind::Erase => self.finish_erase(id),
            _ => self.finish_summary(id),
        }
        if rest.is_some() {
            self.tasks.push(Task::Finish(rest));
        }
    }

    #[inline(always)]
    fn finish_read(&mut self, id: TransactionId) {
        let Device { ftl, interface, transactions, .. } = self;
        let read = &transactions[id];
        if ftl.host_read_fails(read, || interface.requests[read.request()].request) {
            interface.set_status(read.request(), Status::Uncorrectable);
        } else if let Some(buffer) = self.buffer.as_deref_mut().filter(|buffer| buffer.keeps_reads()) {
            buffer.keep_read(id, read, &self.interface.requests[read.request()].request, &self.ftl, self.now);
            self.admit();
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

    /// Ends a part of a request at `at`. `by` is the transaction that ended the part, or `NONE`. Completes the request
    /// if the part was the last one. With firmware, the work of the completion is queued first.
    #[inline(never)]
    pub(super) fn part_done(&mut self, request: RequestId, at: Time, by: TransactionId) {
        if !self.interface.part_done(request, at) {
            return;
        }
        if self.interface.answering_takes_time() {
            self.observe(move |observers, view| observers.settled(view, request, by));
            self.queue_work(Work::Answer(request));
        } else {
            self.answer(request, by);
        }
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
            self.observe(move |observers, view| observers.slot_read_ended(view, id, write));
            self.transactions.remove(id);
            self.interface.serve(read.request(), self.now);
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
        let units = self.ftl.program_units_at(ppn);
        let start = self.ftl.start_of_program(ppn, units);
        if self.ftl.program_fails(start, units) {
            let writes: Vec<TransactionId> = chain(&self.transactions, first).collect();
            if self.ftl.blocks.is_kept(self.ftl.blocks.block_of(ppn)) {
                return self.kept_again(&writes, None, start);
            }
            self.program_failed(start, units, writes.len() as u32);
            return self.tasks.push(Task::QueueAgain(first));
        }
        self.store_program(start, units, first);
        self.finish_writes_of(ppn, first);
    }

    /// Ends the writes of a program from `id` on, and then the program itself. Runs the tasks of each write before the
    /// next one.
    #[inline(always)]
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
            let (lpn, start) =
                (Lpn(self.ftl.map.owner(ppn)), self.ftl.start_of_program(ppn, self.ftl.program_units_at(ppn)));
            call::ended(self, Ended::Writes(lpn, start));
        } else {
            self.program_ended(ppn, self.ftl.blocks.role_at(ppn));
        }
        self.admit();
    }

    #[inline(always)]
    fn finish_write(&mut self, id: TransactionId) {
        let write = self.transactions[id];
        if self.ftl.end_write(&write, self.options.mutant == Mutant::MapMovesBack) {
            if self.durability.is_some() {
                if self.ftl.is_own(write.lpn) {
                    return self.finish_own(id);
                }
                self.record_written(write.lpn);
                if self.tasks.any_new() {
                    return self.tasks.push(Task::MapWritten(id));
                }
            }
            call::changed(self, write.lpn, Change::Entry);
        }
        self.release_invalidated(id);
    }

    /// Releases the block of the old copy, and the newer write of the mapping unit, after a write was programmed.
    #[inline(always)]
    pub(super) fn release_invalidated(&mut self, id: TransactionId) {
        let write = self.transactions[id];
        if write.dependency.is_some() {
            self.release(write.dependency);
            self.clean(self.ftl.blocks.plane_of(write.dependency));
        }
        if write.newer.is_some() {
            self.inherit(id, write.newer);
            self.queue_write(write.newer);
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
        if self.buffer.as_deref_mut().is_some_and(|buffer| buffer.end_write_back(id)) {
            self.end_flushes();
        }
    }

    /// Passes the data of `id` that the `newer` write keeps to that write, and makes the address of `id` the old copy.
    pub(super) fn inherit(&mut self, id: TransactionId, newer: TransactionId) {
        let write = self.transactions[id];
        self.transactions[newer].older = TransactionId::NONE;
        self.transactions[newer].source = if write.trimmed { Ppn::NONE } else { write.ppn };
        if !self.transactions[newer].complete {
            self.transactions[newer].uncorrectable = write.uncorrectable;
            self.observe(move |observers, view| observers.completed(view, newer, id));
            self.contents_complete(newer);
        }
        self.observe(move |observers, view| observers.spent(view, newer, TimePart::Order));
    }

    /// Handles the end of a program at `ppn`, in a block of a role. If it was the last program of data in the block,
    /// closes the block or queues its summary.
    #[inline(always)]
    pub(super) fn program_ended(&mut self, ppn: Ppn, role: Role) {
        if self.ftl.faults.is_some() && self.ftl.blocks.block(self.ftl.blocks.block_of(ppn)).failed {
            return self.rest_failed(self.ftl.blocks.block_of(ppn));
        }
        if self.ftl.faults.is_some() && self.ftl.blocks.is_doomed(self.ftl.blocks.block_of(ppn)) {
            return self.close_failed(self.ftl.blocks.block_of(ppn));
        }
        let end = Ppn(ppn.0 + self.ftl.blocks.size(role).program_units);
        if self.ftl.blocks.ends_data(end, role) {
            if self.ftl.shape().summary {
                self.queue_summary(ppn);
            } else {
                self.close(self.ftl.blocks.block_of(ppn));
            }
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
        self.queue(summary);
    }

    /// Queues the parity that is due, after units of a plane were bound.
    #[inline(never)]
    pub(super) fn queue_parity(&mut self, plane: PlaneId) {
        while let Some(ppn) = self.ftl.blocks.take_parity() {
            let mut parity = Transaction::new(Kind::Summary, Class::Summary);
            parity.dependency = self.ftl.blocks.depend(ppn);
            (parity.plane, parity.ppn) = (self.ftl.blocks.plane_of(parity.dependency), ppn);
            self.queue(parity);
        }
        self.ftl.refresh_ready(plane);
        if self.ftl.blocks.forget_change() {
            self.tasks.push(Task::Offer(self.ftl.allocation.pool_of(plane)));
        }
    }

    fn finish_summary(&mut self, id: TransactionId) {
        let Transaction { ppn, dependency, .. } = self.transactions.remove(id);
        let block = self.ftl.blocks.block_of(ppn);
        let group = self.ftl.blocks.size_of(block).program_units;
        if self.ftl.blocks.is_parity(block) {
            if self.ftl.program_fails(ppn, group) {
                self.program_failed(ppn, group, 0);
            } else {
                self.ftl.blocks.note_parity(ppn);
                self.observe(move |observers, _| observers.programmed(ppn, group));
            }
            return self.release(dependency);
        }
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
        self.observe(move |observers, _| observers.programmed(ppn, group));
        if dependency.is_some() {
            return self.release(dependency);
        }
        self.close(block);
    }

    pub(super) fn close(&mut self, block: BlockId) {
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

    /// Ends a program of copies by garbage collection, or a copy-back of a page.
    fn finish_copies(&mut self, id: TransactionId) {
        let copies = self.transactions.remove(id);
        let (back, ppn, plane) = (copies.kind == Kind::CopyBack, copies.ppn, copies.job());
        let shape = self.ftl.shape();
        let units = if back { shape.units_per_page.divisor() } else { shape.units_per_program };
        if self.ftl.program_fails(ppn, units) {
            let with_data = self.jobs.copies_failed(plane);
            self.program_failed(ppn, units, with_data);
            return match self.jobs.copy_back_again(&self.ftl, plane) {
                Some(again) => self.queue(again),
                None => self.clean(plane),
            };
        }
        self.observe(move |observers, _| observers.programmed(ppn, units));
        let moving = &mut self.jobs[plane].moving;
        let count = if back { moving.back.len() } else { std::mem::take(&mut moving.writing) };
        for index in 0..count {
            let copy = self.jobs[plane].ended_copy(&self.ftl, back, index, ppn);
            let (block, cause) = self.ftl.copy_programmed(&copy);
            if self.move_in_map(&copy, cause) {
                call::changed(self, Lpn(copy.lpn), Change::Moved(copy.from));
            }
            self.release(block);
            self.jobs.collect_in_plane_of(&self.ftl, &mut self.tasks, copy.from, plane);
        }
        let job = &mut self.jobs[plane];
        (if back { &mut job.moving.back } else { &mut job.moving.copies }).drain(..count);
        job.busy = false;
        self.program_ended(ppn, Role::Data);
        if self.tasks.any_new() {
            return self.tasks.push(Task::Clean(plane));
        }
        self.clean(plane);
    }

    /// Points the map at a copy, unless its unit was overwritten or trimmed in the meantime. Returns `true` if it did.
    #[inline(always)]
    pub(super) fn move_in_map(&mut self, copy: &Copy, cause: CopyCause) -> bool {
        let before = self.ftl.end_copy_of(copy, cause, &mut self.transactions);
        if self.options.mutant != Mutant::None {
            let is_newer = match self.options.mutant {
                Mutant::RenumberCopies => before.is_none(),
                Mutant::IgnoreOverwrite => matches!(before, Some(Location::Slot(_))),
                _ => false,
            };
            if is_newer {
                self.ftl.map.set_flash(Lpn(copy.lpn), copy.to);
            }
        }
        if before.is_some() && self.durability.is_some() {
            let &Copy { lpn, to, .. } = copy;
            self.observe(move |observers, view| observers.anchored(view, Lpn(lpn), to));
        }
        before.is_some()
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
            self.observe(move |observers, _| observers.changed(FlashEvent::EraseFailed { block }));
        } else {
            self.ftl.erase_now(block);
            let erases = self.ftl.blocks.block(block).erases;
            self.observe(move |observers, _| observers.changed(FlashEvent::EraseEnded { block, erases }));
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
        if self.ftl.blocks.has_superblocks() && self.ftl.blocks.block(block).state == BlockState::Bad {
            self.report_retired(block);
        }
        self.ftl.refresh_ready(plane);
        self.unpark(plane);
        self.unpark_own();
        if self.ftl.blocks.free_blocks(plane, Role::Map) > free_map_blocks {
            // The erased block was given to translation pages.
            call::make_room(self, plane, true);
        }
        self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
        self.clean(plane);
    }

    /// Reports the end of a program, and stores its contents. `first` is its first host write, or `NONE`.
    #[inline]
    fn store_program(&mut self, start: Ppn, units: u32, first: TransactionId) {
        if let Some(observers) = &mut self.observers {
            observers.stored(&mut self.ftl, &self.transactions, (start, units), first);
        }
    }

    /// Ends a program of copies in kept blocks.
    fn finish_merge_write(&mut self, id: TransactionId) {
        let merge = self.transactions.remove(id);
        if self.ftl.program_fails(merge.ppn, self.ftl.shape().units_per_program) {
            return self.kept_again(&[], Some(merge.logical_block()), merge.ppn);
        }
        let units = self.ftl.shape().units_per_program;
        self.store_program(merge.ppn, units, TransactionId::NONE);
        call::ended(self, Ended::Copies(merge.logical_block(), merge.ppn));
    }

    /// Handles the end of the erase of a kept block.
    pub(super) fn kept_erased(&mut self, plane: PlaneId, role: Role, failed: bool) {
        if failed && role == Role::Data && !self.ftl.has_spare() {
            self.become_read_only();
        }
        call::ended(self, if failed { Ended::EraseFailed(plane) } else { Ended::Erase(plane) });
        if role == Role::Map {
            if failed {
                self.check_spare(plane);
                // A free data block may have replaced the failed one.
                self.clean(plane);
            }
            call::make_room(self, plane, true);
        }
    }

    /// Ends a program of a translation page.
    fn finish_map_write(&mut self, id: TransactionId) {
        let ppn = self.transactions[id].ppn;
        let group = self.ftl.blocks.size(Role::Map).program_units;
        if self.ftl.program_fails(ppn, group) {
            self.program_failed(ppn, group, group);
            _ = call::ended(self, Ended::MapWriteFailed(id));
            return;
        }
        self.observe(move |observers, _| observers.programmed(ppn, group));
        call::ended(self, Ended::MapWrite(id));
    }
}
