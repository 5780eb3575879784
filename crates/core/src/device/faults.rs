//! Failures: repeats failed programs elsewhere, retires blocks, reports uncorrectable reads, and makes the device
//! read-only when too little space is left. See docs/model/faults.md.

use super::{Device, Mutant};
use crate::config::InjectedFault;
use crate::durability::flash::FlashEvent;
use crate::ftl::mapping::{Ended, PADDING, Step, call};
use crate::ftl::space::{BlockState, Claim, Role};
use crate::metrics::attribution::Part as TimePart;
use crate::metrics::counters::{CopyCause, ReadCause};
use crate::metrics::summary::FaultState;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::request::{SECTOR, Status};
use crate::sim::time::Time;
use crate::work::{Fifo, Kind, Task, Transaction};

impl Device {
    /// Makes the next operation of the kind and at the address of `fault` fail, once.
    ///
    /// # Errors
    ///
    /// Returns an error if the device file has no `[faults]`, if the address does not exist, or if too many requested
    /// faults have not occurred yet.
    pub fn fail_next(&mut self, fault: InjectedFault) -> Result<(), String> {
        if let Some((name, count)) = self.config.lacks(&fault) {
            return Err(format!("{fault}: the device has {count} {name} there, numbered from 0"));
        }
        let none = "the device has no table [faults], so it keeps no reserve for failures; add the table, which may \
                    be empty (--set faults.program_rate=0)";
        self.ftl.faults.as_mut().ok_or_else(|| none.to_owned())?.inject(fault)
    }

    /// Returns the time at which the device became read-only, if it is.
    pub fn read_only_since(&self) -> Option<Time> {
        self.ftl.faults.as_ref()?.read_only
    }

    /// Returns a warning if blocks are used beyond their endurance because this device has no faults.
    pub fn wear_warning(&self) -> Option<String> {
        let stands = self.config.endurance();
        if stands == 0 || self.ftl.faults.is_some() {
            return None;
        }
        let erases = || self.ftl.blocks.all().iter().map(|block| block.erases);
        let (worn, most) = (erases().filter(|count| *count > stands).count(), erases().max().unwrap_or(0));
        (worn > 0).then(|| {
            format!(
                "{worn} of {} blocks have had more than nand.endurance = {stands} erases ({most} at most) and are \
                 still used; for wear-out, add a table [faults], which may be empty (--set faults.erase_rate=0)",
                erases().count()
            )
        })
    }

    /// Returns the number of bad blocks and the time of becoming read-only, or `None` if the device has no faults.
    pub fn fault_state(&self) -> Option<FaultState> {
        let faults = self.ftl.faults.as_ref()?;
        let bad = |plane| self.config.geometry.blocks - self.ftl.blocks.good(PlaneId(plane));
        let bad = (0..self.ftl.shape().planes).map(bad).collect();
        Some(FaultState { factory_bad: faults.factory_bad, bad, read_only: faults.read_only })
    }

    /// Returns `true` if the program that ends now has failed.
    #[inline]
    pub(super) fn program_fails(&mut self, ppn: Ppn, units: u32) -> bool {
        self.ftl.faults.is_some() && self.ftl.program_fails(ppn, units)
    }

    /// Handles a failed program. `with_data` is the number of its units that held data.
    pub(super) fn program_failed(&mut self, ppn: Ppn, units: u32, with_data: u32) {
        let block = self.ftl.blocks.block_of(ppn);
        self.ftl.program_failed(ppn, units, with_data);
        self.observe_flash(FlashEvent::ProgramFailed { ppn, units });
        let plane = self.ftl.blocks.plane_of(block);
        self.check_spare(plane);
        self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
        self.rest_failed(block);
    }

    /// Handles the end of an operation on a failed block. Starts to evacuate the block unless another program of it is
    /// loaded.
    pub(super) fn rest_failed(&mut self, block: BlockId) {
        if self.ftl.blocks.block(block).state != BlockState::Open || self.is_programmed_ahead(block) {
            return;
        }
        self.ftl.empty_failed(block);
        let plane = self.ftl.blocks.plane_of(block);
        self.collect_data_and_map(plane);
    }

    /// Returns `true` if the next program of a block is already in the cache register.
    fn is_programmed_ahead(&self, block: BlockId) -> bool {
        let unit = self.array.unit_of(self.ftl.blocks.plane_of(block));
        let mut id = self.dispatch.loaded_ahead(unit);
        while id.is_some() {
            let Transaction { kind, ppn, next, .. } = self.transactions[id];
            if kind == Kind::Write && self.ftl.blocks.block_of(ppn) == block {
                return true;
            }
            id = next;
        }
        false
    }

    /// Handles a failed program of host writes, which are queued again at the front.
    pub(super) fn write_again(&mut self, first: TransactionId) {
        let ppn = self.transactions[first].ppn;
        if self.ftl.blocks.is_kept(self.ftl.blocks.block_of(ppn)) {
            let writes: Vec<TransactionId> = self.chain(first).collect();
            return self.kept_again(&writes, None, self.start_of_program(ppn));
        }
        let count = self.chain(first).count() as u32;
        self.program_failed(self.start_of_program(ppn), self.program_units_at(ppn), count);
        if self.tasks.any_new() {
            return self.tasks.push(Task::QueueAgain(first));
        }
        self.queue_again(first);
    }

    /// Handles a failed program at `start` in a block of the mapping scheme: of writes, or of copies alone, with the
    /// `number` of their operation.
    #[cold]
    pub(super) fn kept_again(&mut self, writes: &[TransactionId], number: Option<u32>, start: Ppn) {
        let units = self.ftl.shape().units_per_program;
        let holds_data = |&ppn: &u32| self.ftl.map.owner(Ppn(ppn)) != PADDING;
        let with_data = (start.0..start.0 + units).filter(holds_data).count() as u32;
        self.ftl.program_failed(start, units, with_data);
        self.observe_flash(FlashEvent::ProgramFailed { ppn: start, units });
        if self.options.mutant == Mutant::RetireEarly {
            self.observe_flash(FlashEvent::Retired { block: self.ftl.blocks.block_of(start) });
        }
        let goes_on = call::ended(self, Ended::ProgramFailed(writes, number, start));
        if self.ftl.is_read_only() {
            // The program was in flight when the device became read-only, and its writes have no address again.
            call::step(self, Step::ReadOnly);
        } else if !goes_on || !self.ftl.has_spare() {
            self.become_read_only();
        }
    }

    /// Handles the failed program of the summary of a block of the mapping scheme, which has ended otherwise. The block
    /// keeps its data, and is retired when it is to be erased.
    pub(super) fn kept_summary_failed(&mut self, block: BlockId, dependency: BlockId) {
        if dependency.is_none() {
            return;
        }
        let awaits_erase = self.ftl.blocks.block(block).state == BlockState::AwaitingErase;
        self.release(dependency);
        if awaits_erase {
            self.kept_erased(self.ftl.blocks.plane_of(block), Role::Data, true);
        }
    }

    /// Returns the transactions that are linked from `first` on, including `first`.
    pub(super) fn chain(&self, first: TransactionId) -> impl Iterator<Item = TransactionId> + '_ {
        let next = |&id: &TransactionId| Some(self.transactions[id].next).filter(|next| next.is_some());
        std::iter::successors(Some(first), next)
    }

    /// Queues writes again, at the front, after their program has failed.
    pub(super) fn queue_again(&mut self, first: TransactionId) {
        let plane = self.transactions[first].plane;
        let writes: Vec<TransactionId> = self.chain(first).collect();
        let lun = self.array.lun_of(plane);
        for id in writes.into_iter().rev() {
            let lpn = self.transactions[id].lpn;
            if self.ftl.is_read_only() {
                self.answer_unwritten(id);
            } else if self.is_own(lpn) {
                self.place_own(id);
            } else if self.dispatch.has_pools()
                && !self.ftl.blocks.takes_host_write(plane)
                && self.retry_of(id, plane).is_none()
            {
                self.put_back(id);
                self.collect_for(id);
            } else {
                self.dispatch.put_first(&mut self.transactions, (lun, plane), id);
                self.observe_unparked(id, lun);
            }
            self.show_enqueued(id);
        }
        if self.dispatch.has_pools() && !self.tasks.holds() {
            self.tasks.push(Task::Offer(self.ftl.allocation.pool_of(plane)));
        }
    }

    /// Continues garbage collection in the plane of the block that waits for a write.
    fn collect_for(&mut self, id: TransactionId) {
        let block = self.transactions[id].dependency;
        if block.is_some() {
            self.tasks.push(Task::Clean(self.ftl.blocks.plane_of(block)));
        }
    }

    /// Handles a failed program of copies, whose data are still in the controller.
    pub(super) fn copy_again(&mut self, plane: PlaneId, ppn: Ppn) {
        let count = std::mem::take(&mut self.jobs[plane].moving.writing);
        self.program_failed(ppn, self.ftl.shape().units_per_program, count as u32);
        self.jobs[plane].busy = false;
        self.clean(plane);
    }

    /// Handles a failed copy-back by repeating it, because the page is still at its old address.
    pub(super) fn move_back_again(&mut self, plane: PlaneId, ppn: Ppn) {
        let units = self.jobs[plane].moving.back.len() as u32;
        self.program_failed(ppn, self.ftl.shape().units_per_page.divisor(), units);
        let Some(first) = self.jobs[plane].moving.back.first().filter(|_| !self.ftl.is_read_only()) else {
            self.jobs[plane].busy = false;
            return;
        };
        let mut again = Transaction::new(Kind::CopyBack, self.jobs.class(&self.ftl, plane));
        (again.plane, again.ppn, again.units) = (plane, first.from, units as u16);
        self.dispatch(again);
    }

    /// Retires a failed block, which holds no valid units any more.
    pub(super) fn retire(&mut self, block: BlockId) {
        let known = *self.ftl.blocks.block(block);
        if !self.ftl.blocks.is_kept(block) {
            self.jobs[self.ftl.blocks.plane_of(block)].leaving -= 1;
        }
        self.ftl.retire(block);
        if known.moved_for == CopyCause::Merge && self.options.mutant != Mutant::RetireEarly {
            self.observe_flash(FlashEvent::Retired { block });
        }
    }

    /// Returns the claim of a write whose program has failed, if it may be programmed now.
    #[cold]
    pub(super) fn retry_of(&self, id: TransactionId, plane: PlaneId) -> Option<Claim> {
        let is_retry = self.ftl.faults.is_some() && self.transactions[id].dependency.is_some();
        let claim = Claim::Retry(self.jobs[plane].in_hand(&self.ftl, plane));
        (is_retry && self.ftl.blocks.may_take(self.ftl.blocks.region(plane, Role::Data), claim)).then_some(claim)
    }

    /// Returns the claim of a write that frees a block of the plane, if it may be programmed now.
    #[cold]
    pub(super) fn freeing_of(&self, id: TransactionId, plane: PlaneId) -> Option<Claim> {
        if self.is_of_journal(self.transactions[id].lpn) {
            return self.freeing_of_journal(plane);
        }
        let dependency = self.transactions[id].dependency;
        if self.ftl.faults.is_none() || dependency.is_none() {
            return None;
        }
        let dependents = self.dependents_before_erase(plane, dependency)?;
        // Several writes that wait like this one must not wait for each other once garbage collection rests.
        let all_wait = || !self.jobs[plane].busy && dependents == 1 + self.count_waiting_on(dependency, id);
        (dependents == 1 || all_wait()).then(|| self.freeing(plane, dependents))?
    }

    /// Returns the number of other writes like `id` that a block waits for: their programs have failed, and they wait
    /// for room or for their LUN.
    fn count_waiting_on(&self, block: BlockId, id: TransactionId) -> u32 {
        let plane = self.ftl.blocks.plane_of(block);
        let waits = |&other: &TransactionId| other != id && self.transactions[other].dependency == block;
        let lun = self.array.lun_of(plane);
        let without_room = self.dispatch.without_room(&self.transactions, plane).filter(waits).count();
        let queued = self.dispatch.queued_writes(&self.transactions, lun).into_iter().filter(waits).count();
        (without_room + queued) as u32
    }

    /// Queues repeated writes that have room now and must not wait for an erase. Called when garbage collection of a
    /// plane rests, or a dependent of a block has ended. Such writes are few.
    pub(super) fn retry_writes(&mut self, plane: PlaneId) {
        if self.ftl.faults.is_none() {
            return;
        }
        let has_pools = self.dispatch.has_pools();
        let may_go = |&id: &TransactionId| {
            let retry = if has_pools { None } else { self.retry_of(id, plane) };
            retry.or_else(|| self.freeing_of(id, plane)).is_some()
        };
        let again: Vec<TransactionId> = self.dispatch.without_room(&self.transactions, plane).filter(may_go).collect();
        let mut writes = Fifo::default();
        let lun = self.array.lun_of(plane);
        for &id in &again {
            self.dispatch.take_without_room(&mut self.transactions, plane, id);
            writes.push(&mut self.transactions, id);
            self.observe_unparked(id, lun);
            if has_pools {
                self.ftl.allocation.took(plane);
            }
        }
        if !again.is_empty() {
            self.put_first(plane, (writes, again.len() as u32));
        }
    }

    /// Retries writes that a block with a pending erase still waits for, after one of its dependents has ended.
    #[cold]
    pub(super) fn retry_writes_for(&mut self, block: BlockId) {
        if self.ftl.blocks.block(block).state == BlockState::AwaitingErase {
            self.retry_writes(self.ftl.blocks.plane_of(block));
        }
    }

    // Reads.

    /// Returns `true` if a host read has returned uncorrectable data.
    #[inline]
    pub(super) fn check_host_read(&mut self, id: TransactionId) -> bool {
        self.ftl.faults.is_some() && self.check_host_page(id)
    }

    fn check_host_page(&mut self, id: TransactionId) -> bool {
        let read = self.transactions[id];
        let (ppn, units, owner) = (read.ppn, read.units, read.request());
        let request = self.interface.requests[owner].request;
        let unit = |sector| self.ftl.shape().unit_sectors.divide_long(sector) as u32;
        let of_request = unit(request.lba)..unit(request.lba + u64::from(request.sectors) - 1) + 1;
        let failed = self.ftl.read_fails(ppn, u32::from(units));
        let lost = failed || self.ftl.is_lost_in_page(ppn, &of_request);
        if lost {
            self.ftl.counters.faults.note_uncorrectable(ReadCause::Host);
            self.interface.requests[owner].status = Status::Uncorrectable;
        }
        lost
    }

    /// Checks the data that a partial write keeps for uncorrectable sectors.
    #[inline]
    pub(super) fn check_rmw_read(&mut self, write: TransactionId, ppn: Ppn, units: u16) {
        if self.ftl.faults.is_none() {
            return;
        }
        if self.ftl.read_fails(ppn, u32::from(units)) || self.ftl.is_lost(ppn) {
            self.ftl.counters.faults.note_uncorrectable(ReadCause::Rmw);
            self.transactions[write].uncorrectable = true;
            let owner = self.transactions[write].request();
            if owner.is_some() {
                self.interface.requests[owner].status = Status::Uncorrectable;
            }
        }
    }

    /// Counts a page of a victim that was read with uncorrectable data. The data is moved unchanged.
    #[inline]
    pub(super) fn check_gc_read(&mut self, id: TransactionId) {
        if self.ftl.faults.is_none() {
            return;
        }
        let Transaction { ppn, units, .. } = self.transactions[id];
        let plane = self.transactions[id].job();
        let per_page = self.ftl.shape().units_per_page;
        let of_page = |other: Ppn| per_page.divide(other.0) == per_page.divide(ppn.0);
        let failed = self.ftl.read_fails(ppn, u32::from(units));
        let mut copies = self.jobs[plane].moving.copies.iter();
        if failed || copies.any(|copy| of_page(copy.from) && self.ftl.is_lost(copy.from)) {
            self.ftl.counters.faults.note_uncorrectable(ReadCause::Gc);
        }
    }

    /// Counts a page that was read to copy units of the mapping scheme, with uncorrectable data. The data is copied
    /// unchanged.
    #[inline]
    pub(super) fn check_merge_read(&mut self, read: &Transaction) {
        if self.ftl.faults.is_none() {
            return;
        }
        let per_page = self.ftl.shape().units_per_page.divisor();
        let first = read.ppn.0 / per_page * per_page;
        let failed = self.ftl.read_fails(read.ppn, u32::from(read.units));
        let is_lost = |ppn| self.ftl.blocks.is_valid(ppn) && self.ftl.is_lost(ppn);
        if failed || (first..first + per_page).map(Ppn).any(is_lost) {
            self.ftl.counters.faults.note_uncorrectable(ReadCause::Gc);
        }
    }

    /// Fails a read from a write slot if it returns sectors that were uncorrectable when the write read them.
    #[inline]
    pub(super) fn check_slot_read(&mut self, request: RequestId, slot: TransactionId, first: u32, end: u32) {
        let write = &self.transactions[slot];
        let own = u32::from(write.first) <= first && end <= u32::from(write.end);
        if write.uncorrectable && !own {
            self.interface.requests[request].status = Status::Uncorrectable;
        }
    }

    // Read-only.

    /// Makes the device read-only if the plane or the device cannot do without the blocks that have failed.
    pub(super) fn check_spare(&mut self, plane: PlaneId) {
        let hand = self.jobs[plane].in_hand(&self.ftl, plane);
        if !self.ftl.has_spare() || !self.ftl.can_go_on(plane, hand) {
            self.become_read_only();
        }
    }

    /// Makes a recovered device read-only if it has too few good blocks, or if some blocks have no place (`is_stuck`).
    pub(super) fn check_spare_at_start(&mut self, is_stuck: bool) {
        if is_stuck {
            self.become_read_only();
        }
        if self.ftl.faults.is_some() {
            (0..self.ftl.shape().planes).for_each(|plane| self.check_spare(PlaneId(plane)));
        }
    }

    /// Makes the device read-only. Writes without a physical address stay in the controller, and their requests
    /// complete with `Status::ReadOnly`.
    pub(super) fn become_read_only(&mut self) {
        let now = self.now;
        let Some(faults) = self.ftl.faults.as_mut().filter(|faults| faults.read_only.is_none()) else { return };
        faults.read_only = Some(now);
        self.stop_filling();
        for mut line in self.dispatch.take_without_place() {
            while !line.is_empty() {
                let id = line.pop(&mut self.transactions);
                self.answer_unwritten(id);
            }
        }
        call::step(self, Step::ReadOnly);
        self.end_flushes_unwritten();
        self.admit();
    }

    /// Completes a write that will not be programmed, and the newer writes of its unit that wait for it. Their data
    /// stay in their slots for reads.
    pub(super) fn answer_unwritten(&mut self, id: TransactionId) {
        let mut id = id;
        while id.is_some() {
            self.complete_fused(id);
            let owner = self.transactions[id].take_request();
            if owner.is_some() {
                self.note_unwritten(id);
                self.observe_stalled(id);
                self.observe_spent(id, TimePart::Gc);
                self.interface.requests[owner].status = Status::ReadOnly;
                self.part_done(owner, self.now, id);
            }
            let newer = self.transactions[id].newer;
            if newer.is_some() {
                self.complete_unwritten(id, newer);
            }
            id = newer;
        }
    }

    /// Counts a host write that will not be programmed. Data in a write-back buffer stay there and do not count.
    fn note_unwritten(&mut self, id: TransactionId) {
        if !self.writes_back() {
            let Transaction { first, end, .. } = self.transactions[id];
            self.ftl.counters.units_unwritten += u64::from(first < end);
            self.ftl.counters.units_rewritten -= u64::from(first == end && self.ftl.shape().units_per_logical_page > 1);
            self.ftl.counters.bytes_unwritten += u64::from(end - first) * SECTOR;
        }
    }

    /// Completes the data of a newer write with the sectors that it keeps of an older one that may never be programmed.
    pub(super) fn complete_unwritten(&mut self, older: TransactionId, newer: TransactionId) {
        let (older_is_complete, newer_is_complete) =
            (self.transactions[older].complete, self.transactions[newer].complete);
        if older_is_complete && !newer_is_complete {
            self.transactions[newer].uncorrectable = self.transactions[older].uncorrectable;
            self.observe_completed(newer, older);
            self.contents_complete(newer);
        }
    }

    /// Refuses a unit of a write because the device is read-only.
    pub(super) fn refuse_unit(&mut self, id: RequestId, back: bool) {
        let pending = &mut self.interface.requests[id];
        pending.admitted += 1;
        pending.status = Status::ReadOnly;
        if let (true, Some(buffer)) = (back, &mut self.buffer) {
            buffer.end_wait();
        }
        self.observe_request(id, TimePart::Buffer);
    }

    /// Completes a flush of a read-only device, with an error if some data or trims can no longer be made durable.
    pub(super) fn flush_read_only(&mut self, id: RequestId) {
        if self.has_unwritten() {
            self.interface.requests[id].status = Status::ReadOnly;
        }
        self.done_at_once(id);
    }

    /// Returns `true` if a power cut would undo a completed write or trim, which a flush would have to prevent.
    fn has_unwritten(&self) -> bool {
        let protected = self.buffer().is_some_and(|buffer| buffer.is_protected());
        let dirty = self.buffer().is_some_and(|buffer| buffer.volatile_units().0 > 0);
        let trims = self.durability.as_ref().is_some_and(|durability| durability.has_waiting_trims());
        !protected && (dirty || trims)
    }

    /// Completes the flushes that wait for data or trims that will not be written.
    fn end_flushes_unwritten(&mut self) {
        let journal = self.durability.as_mut().and_then(|durability| durability.journal.as_mut());
        let mut waiting = journal.map_or_else(Vec::new, |journal| journal.end_flushes(u64::MAX));
        waiting.extend(self.buffer.as_deref_mut().map_or_else(Vec::new, |buffer| buffer.take_waiters()));
        for id in waiting {
            self.interface.requests[id].status = Status::ReadOnly;
            self.observe_request(id, TimePart::Buffer);
            self.part_done(id, self.now, TransactionId::NONE);
        }
    }

    /// Returns the number of mapping units whose newest version is only in the controller, because the device is
    /// read-only.
    pub fn unwritten_units(&self) -> u64 {
        if !self.ftl.is_read_only() {
            return 0;
        }
        let held = |lpn: &u32| matches!(self.ftl.map.get(Lpn(*lpn)), crate::ftl::mapping::Location::Slot(_));
        (0..self.ftl.host_units).filter(held).count() as u64
    }
}
