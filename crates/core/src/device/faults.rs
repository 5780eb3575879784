//! Failures: repeats failed programs elsewhere, reports uncorrectable reads, and makes the device read-only when too
//! little space is left. `ftl/failing.rs` and the jobs of garbage collection decide. See docs/model/faults.md.

use super::{Device, Mutant};
use crate::cache::Buffer;
use crate::config::InjectedFault;
use crate::dispatch::Filling;
use crate::durability::flash::FlashEvent;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Ended, Step, call};
use crate::ftl::space::BlockState;
use crate::metrics::attribution::Part as TimePart;
use crate::sim::id::{BlockId, PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::request::Status;
use crate::work::{Fifo, Task, Transaction, chain};

impl Device {
    /// Makes the next operation of the kind and at the address of `fault` fail, once.
    ///
    /// # Errors
    ///
    /// Returns an error if the device file has no `[faults]`, if the address does not exist, or if too many requested
    /// faults have not occurred yet.
    pub fn fail_next(&mut self, fault: InjectedFault) -> Result<(), String> {
        self.ftl.inject(&self.config, fault)
    }

    /// Handles a failed program. `with_data` is the number of its units that held data.
    pub(super) fn program_failed(&mut self, ppn: Ppn, units: u32, with_data: u32) {
        let block = self.ftl.blocks.block_of(ppn);
        self.ftl.program_failed(ppn, units, with_data);
        self.observe(move |observers, _| observers.changed(FlashEvent::ProgramFailed { ppn, units }));
        let plane = self.ftl.blocks.plane_of(block);
        self.check_spare(plane);
        if self.ftl.blocks.has_superblocks() {
            return self.ftl.blocks.erased_with(block).for_each(|member| self.close_failed(member));
        }
        self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
        self.rest_failed(block);
    }

    /// Closes a block of a superblock that has failed, unless a program of it is in flight.
    pub(super) fn close_failed(&mut self, block: BlockId) {
        let Device { ftl, dispatch, transactions, array, .. } = self;
        let unit = array.unit_of(ftl.blocks.plane_of(block));
        let is_of = |ppn| ftl.blocks.block_of(ppn) == block;
        if ftl.blocks.block(block).state == BlockState::Open && !dispatch.is_programmed(transactions, unit, is_of) {
            self.close(block);
        }
    }

    /// Retires a superblock that has failed. Its units have been moved, and nothing depends on its blocks.
    #[cold]
    pub(super) fn retire_superblock(&mut self, block: BlockId) {
        self.jobs.retire_superblock(&mut self.ftl, block);
        self.report_retired(block);
        let plane = self.ftl.blocks.plane_of(block);
        self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
    }

    /// Reports that a superblock was retired, by the blocks that have failed.
    pub(super) fn report_retired(&mut self, block: BlockId) {
        for block in self.ftl.blocks.erased_with(block) {
            self.observe(move |observers, _| observers.changed(FlashEvent::Retired { block }));
        }
    }

    /// Handles the end of an operation on a failed block. Starts to evacuate the block unless another program of it is
    /// loaded.
    pub(super) fn rest_failed(&mut self, block: BlockId) {
        let Device { ftl, dispatch, transactions, array, .. } = self;
        let plane = ftl.blocks.plane_of(block);
        let unit = array.unit_of(plane);
        let is_of = |ftl: &Ftl, ppn| ftl.blocks.block_of(ppn) == block;
        if ftl.empty_if_settled(block, |ftl| dispatch.is_programmed_ahead(transactions, unit, |ppn| is_of(ftl, ppn))) {
            self.collect_data_and_map(plane);
        }
    }

    /// Handles a failed program at `start` in a block of the mapping scheme: of writes, or of copies alone, with the
    /// `number` of their operation.
    #[cold]
    pub(super) fn kept_again(&mut self, writes: &[TransactionId], number: Option<u32>, start: Ppn) {
        let units = self.ftl.shape().units_per_program;
        self.ftl.kept_program_failed(start);
        self.observe(move |observers, _| observers.changed(FlashEvent::ProgramFailed { ppn: start, units }));
        if self.options.mutant == Mutant::RetireEarly {
            let block = self.ftl.blocks.block_of(start);
            self.observe(move |observers, _| observers.changed(FlashEvent::Retired { block }));
        }
        let goes_on = call::ended(self, Ended::ProgramFailed(writes, number, start));
        if self.ftl.is_read_only() {
            // The program was in flight when the device became read-only, and its writes have no address again.
            call::step(self, Step::ReadOnly);
        } else if !goes_on || !self.ftl.has_spare() {
            self.become_read_only();
        }
    }

    /// Queues writes again, at the front, after their program has failed.
    pub(super) fn queue_again(&mut self, first: TransactionId) {
        let plane = self.transactions[first].plane;
        let writes: Vec<TransactionId> = chain(&self.transactions, first).collect();
        let lun = self.array.lun_of(plane);
        let has_pools = self.dispatch.has_pools();
        for id in writes.into_iter().rev() {
            let Transaction { lpn, dependency, .. } = self.transactions[id];
            if self.ftl.is_read_only() {
                self.answer_unwritten(id);
            } else if self.ftl.is_own(lpn) {
                self.place_own(id);
            } else if has_pools
                && !self.ftl.blocks.takes_host_write(plane)
                && !self.jobs.may_retry(&self.ftl, plane, dependency)
            {
                self.put_back(id);
                if dependency.is_some() {
                    self.tasks.push(Task::Clean(self.ftl.blocks.plane_of(dependency)));
                }
            } else {
                self.dispatch.put_first(&mut self.transactions, lun, id);
                self.observe(move |observers, view| observers.unparked(view, id, lun));
            }
            self.dispatch.note_queued(&mut self.array, id, self.now);
        }
        if has_pools && !self.tasks.holds() {
            self.tasks.push(Task::Offer(self.ftl.allocation.pool_of(plane)));
        }
    }

    /// Returns `true` if a write that frees a block of the plane may be programmed now.
    #[cold]
    pub(super) fn may_free(&self, id: TransactionId, plane: PlaneId) -> bool {
        let Transaction { lpn, dependency, .. } = self.transactions[id];
        let durability = self.durability.as_deref();
        if let Some(durability) = durability.filter(|durability| durability.is_of_journal(&self.ftl, lpn)) {
            return durability.may_free(&self.ftl, &self.jobs, plane);
        }
        let others = || {
            let waits_for = self.ftl.blocks.plane_of(dependency);
            let at = (self.array.lun_of(waits_for), waits_for);
            self.dispatch.count_waiting_on(&self.transactions, at, dependency, id)
        };
        let programs = self.jobs.programs_to_free(&self.ftl, plane, dependency, others);
        programs.is_some_and(|programs| self.jobs.may_free(&self.ftl, plane, programs))
    }

    /// Queues repeated writes that have room now and must not wait for an erase. Called when garbage collection of a
    /// plane rests, or a dependent of a block has ended. Such writes are few.
    pub(super) fn retry_writes(&mut self, plane: PlaneId) {
        if self.ftl.faults.is_none() {
            return;
        }
        let has_pools = self.dispatch.has_pools();
        let may_go = |&id: &TransactionId| {
            let dependency = self.transactions[id].dependency;
            (!has_pools && self.jobs.may_retry(&self.ftl, plane, dependency)) || self.may_free(id, plane)
        };
        let again: Vec<TransactionId> = self.dispatch.without_room(&self.transactions, plane).filter(may_go).collect();
        let mut writes = Fifo::default();
        let lun = self.array.lun_of(plane);
        for &id in &again {
            self.dispatch.take_without_room(&mut self.transactions, plane, id);
            writes.push(&mut self.transactions, id);
            self.observe(move |observers, view| observers.unparked(view, id, lun));
            if has_pools {
                self.ftl.allocation.took(plane);
            }
        }
        if !again.is_empty() {
            let writes = (writes, again.len() as u32);
            self.dispatch.prepend(&mut self.transactions, &mut self.tasks, (lun, plane), writes);
        }
    }

    // Reads.

    /// Checks the data that a partial write keeps for uncorrectable sectors.
    #[inline]
    pub(super) fn check_rmw_read(&mut self, write: TransactionId, ppn: Ppn, units: u16) {
        if self.ftl.rmw_read_fails(ppn, units) {
            self.transactions[write].uncorrectable = true;
            self.interface.set_status(self.transactions[write].request(), Status::Uncorrectable);
        }
    }

    // Read-only.

    /// Makes the device read-only if the plane or the device cannot do without the blocks that have failed.
    pub(super) fn check_spare(&mut self, plane: PlaneId) {
        if self.jobs.lacks_spare(&self.ftl, plane) {
            self.become_read_only();
        }
    }

    /// Makes the device read-only. Writes without a physical address stay in the controller, and their requests
    /// complete with `Status::ReadOnly`.
    pub(super) fn become_read_only(&mut self) {
        if !self.ftl.set_read_only(self.now) {
            return;
        }
        if self.ftl.shape().is_exclusive {
            (0..self.ftl.shape().planes).for_each(|plane| self.end_hold(PlaneId(plane)));
        }
        while let Some((_, number)) = self.dispatch.filling.as_deref_mut().and_then(Filling::next_due) {
            self.release_stage(number);
        }
        for mut line in self.dispatch.take_without_place() {
            while !line.is_empty() {
                let id = line.pop(&mut self.transactions);
                self.answer_unwritten(id);
            }
        }
        call::step(self, Step::ReadOnly);
        let journal = self.durability.as_mut().and_then(|durability| durability.journal.as_mut());
        let mut waiting = journal.map_or_else(Vec::new, |journal| journal.end_flushes(u64::MAX));
        waiting.extend(self.buffer.as_deref_mut().map_or_else(Vec::new, |buffer| buffer.take_waiters()));
        self.complete_flushes(waiting, Status::ReadOnly);
        self.admit();
    }

    /// Completes a write that will not be programmed, and the newer writes of its unit that wait for it. Their data
    /// stay in their slots for reads.
    pub(super) fn answer_unwritten(&mut self, id: TransactionId) {
        let mut id = id;
        while id.is_some() {
            let Transaction { complete, source, .. } = self.transactions[id];
            if self.config.nand.advanced.copy_back_modify && !complete && source.is_some() {
                // The data of a fused write come from the address of the sectors that it keeps.
                self.check_rmw_read(id, source, 1);
                self.observe(move |observers, view| observers.kept(view, id, source));
                self.contents_complete(id);
            }
            let owner = self.transactions[id].take_request();
            if owner.is_some() {
                // Data in a write-back buffer stay there and do not count.
                if !self.buffer().is_some_and(Buffer::writes_back) {
                    let Transaction { first, end, .. } = self.transactions[id];
                    self.ftl.note_unwritten(first, end);
                }
                self.observe(move |observers, view| observers.stalled(view, id));
                self.observe(move |observers, view| observers.spent(view, id, TimePart::Gc));
                self.interface.set_status(owner, Status::ReadOnly);
                self.part_done(owner, self.now, id);
            }
            let newer = self.transactions[id].newer;
            if newer.is_some() {
                self.complete_unwritten(id, newer);
            }
            id = newer;
        }
    }

    /// Completes the data of a newer write with the sectors that it keeps of an older one that may never be programmed.
    pub(super) fn complete_unwritten(&mut self, older: TransactionId, newer: TransactionId) {
        let (older_is_complete, newer_is_complete) =
            (self.transactions[older].complete, self.transactions[newer].complete);
        if older_is_complete && !newer_is_complete {
            self.transactions[newer].uncorrectable = self.transactions[older].uncorrectable;
            self.observe(move |observers, view| observers.completed(view, newer, older));
            self.contents_complete(newer);
        }
    }

    /// Completes flushes that have waited for data or trims. On a read-only device, these will not be written.
    pub(super) fn complete_flushes(&mut self, flushes: Vec<RequestId>, status: Status) {
        for id in flushes {
            if status == Status::Ok {
                self.interface.serve(id, self.now);
            } else {
                self.interface.set_status(id, status);
            }
            self.observe(move |observers, view| observers.spent_by_request(view, id, TimePart::Buffer));
            self.part_done(id, self.now, TransactionId::NONE);
        }
    }
}
