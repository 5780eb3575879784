//! The mapping scheme in time: calls of the scheme, and the part of the device that it sees.

use super::Device;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Bound, Context, Ended, PADDING, WaitCause, call};
use crate::ftl::mover::copy::Copy;
use crate::ftl::space::Role;
use crate::metrics::attribution::Part as TimePart;
use crate::metrics::counters::CopyCause;
use crate::nand::array::Spot;
use crate::sim::id::{BlockId, PlaneId, Ppn, TransactionId};
use crate::work::{Kind, Task, Tasks, Transaction, Transactions};

impl Device {
    /// Binds a program in kept blocks. Returns `false` if there is nothing to program.
    pub(super) fn start_kept(&mut self, id: TransactionId, at: Spot) -> bool {
        let Some(Bound { class, plane, ppn }) = call::bind(self, id) else { return false };
        let write = &mut self.transactions[id];
        let mut tag = u64::MAX;
        if write.kind == Kind::Write {
            tag = self.interface.tag_of(write.request());
        } else {
            write.ppn = ppn;
        }
        match write.kind {
            Kind::MapWrite => {
                let page = write.map_page();
                self.observe_map_write(page, ppn);
            }
            _ => self.observe_bound_kept(ppn, id),
        }
        self.put(at, self.program(class, plane, ppn, tag))
    }

    /// Stores the contents of a program, in the order of physical addresses. `first` is the first host write of the
    /// program, or `NONE`.
    pub(super) fn store_program(&mut self, start: Ppn, units: u32, first: TransactionId) {
        let Some(contents) = self.observers.as_ref().and_then(|observers| observers.contents.as_ref()) else { return };
        for ppn in (start.0..start.0 + units).map(Ppn) {
            if self.ftl.map.owner(ppn) == PADDING {
                continue;
            }
            let mut id = first;
            while id.is_some() && self.transactions[id].ppn != ppn {
                id = self.transactions[id].next;
            }
            let Some(media) = &mut self.ftl.media else { return };
            if id.is_some() { media.program(ppn, contents.slot(id)) } else { media.end_copy(ppn) }
        }
    }

    /// Ends a program of copies in kept blocks.
    pub(super) fn finish_merge_write(&mut self, id: TransactionId) {
        let merge = self.transactions.remove(id);
        if self.ftl.program_fails(merge.ppn, self.ftl.shape().units_per_program) {
            return self.kept_again(&[], Some(merge.logical_block()), merge.ppn);
        }
        let units = self.ftl.shape().units_per_program;
        self.store_program(merge.ppn, units, TransactionId::NONE);
        self.observe_programmed(merge.ppn, units);
        call::ended(self, Ended::Copies(merge.logical_block(), merge.ppn));
    }

    /// Takes the next step of garbage collection in the translation pages of a plane, if it is due.
    pub(super) fn collect_map(&mut self, plane: PlaneId) {
        call::make_room(self, plane, false);
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

    /// Notifies the scheme if an erased data block was given to translation pages, which had `free` free blocks before.
    pub(super) fn map_paid(&mut self, plane: PlaneId, free: u32) {
        if self.ftl.blocks.free_blocks(plane, Role::Map) > free {
            call::make_room(self, plane, true);
        }
    }
}

impl Context for Device {
    fn as_dyn(&mut self) -> &mut dyn Context {
        self
    }

    fn ftl(&mut self) -> &mut Ftl {
        &mut self.ftl
    }

    fn ops(&mut self) -> &mut Transactions {
        &mut self.transactions
    }

    fn ftl_and_ops(&mut self) -> (&Ftl, &Transactions) {
        (&self.ftl, &self.transactions)
    }

    fn tasks(&mut self) -> &mut Tasks {
        &mut self.tasks
    }

    fn queue(&mut self, operation: Transaction) {
        self.dispatch(operation);
    }

    fn enqueue(&mut self, id: TransactionId) {
        self.enqueue(id);
    }

    fn note_called(&mut self) {
        let durability = self.durability.as_ref().filter(|_| self.ftl.keeps_data());
        if durability.is_some_and(|durability| durability.awaits_journal(&self.ftl.blocks)) {
            self.tasks.push(Task::Clean(PlaneId(0)));
        }
    }

    fn request_units(&self, id: TransactionId) -> u32 {
        let request = self.transactions[id].request();
        if request.is_some() { self.interface.units_of(request) } else { 1 }
    }

    fn is_durable(&self) -> bool {
        self.is_durable()
    }

    fn note_waiting(&mut self, id: TransactionId) {
        self.show_enqueued(id);
        self.observe_stalled(id);
    }

    fn note_queued(&mut self, id: TransactionId, queue: u32) {
        self.observe_queued(id, queue);
    }

    fn note_cause(&mut self, queue: u32, cause: WaitCause) {
        self.observe_queue(queue, cause);
    }

    fn note_resumed(&mut self, id: TransactionId) {
        self.observe_unparked(id, self.array.lun_of(self.transactions[id].plane));
    }

    fn bind(&mut self, id: TransactionId, ppn: Ppn) {
        self.bind(id, ppn);
    }

    fn take_over(&mut self, older: TransactionId, newer: TransactionId) {
        self.inherit(older, newer);
        self.observe_spent(newer, TimePart::Order);
    }

    fn drop_write(&mut self, id: TransactionId) {
        self.observe_stalled(id);
        let request = self.transactions.remove(id).request();
        self.slots_free += 1;
        self.admits_after = true;
        self.observe_spent(id, TimePart::Gc);
        self.serve(request);
        if request.is_some() {
            self.part_done(request, self.now, id);
        }
        self.finish_flight(id);
    }

    fn refuse_write(&mut self, id: TransactionId) {
        self.answer_unwritten(id);
    }

    fn end_copy(&mut self, copy: &Copy) {
        self.ftl.copy_loss(copy.from, copy.to);
        let block = self.ftl.blocks.block_of(copy.from);
        let has_failed = self.ftl.blocks.block(block).failed;
        self.move_in_map(copy, if has_failed { CopyCause::FailedBlock } else { CopyCause::Merge });
        self.release(block);
    }

    fn program_ended(&mut self, ppn: Ppn) {
        let end = Ppn(ppn.0 + self.ftl.shape().units_per_program);
        if self.ftl.blocks.ends_data(end, Role::Data) && self.ftl.shape().summary {
            self.queue_summary(ppn);
        }
    }

    fn is_moving(&self, plane: PlaneId, block: BlockId) -> bool {
        let mut jobs = self.ftl.job_planes(plane).map(PlaneId);
        jobs.any(|job| self.jobs[job].moving.moves(block, &self.ftl))
    }

    fn release(&mut self, block: BlockId) {
        self.release(block);
    }

    fn erase(&mut self, block: BlockId) {
        self.erase(block);
    }
}
