//! The mapping scheme in time: the part of the device that it sees.

use super::Device;
use crate::dispatch;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Context, Wait};
use crate::ftl::mover::copy::Copy;
use crate::ftl::space::Role;
use crate::metrics::attribution::Part as TimePart;
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId, Ppn, TransactionId};
use crate::work::{Task, Tasks, Transactions};

impl Context for Device {
    fn as_dyn(&mut self) -> &mut dyn Context {
        self
    }

    #[inline(always)]
    fn parts(&mut self) -> (&mut Ftl, &mut Transactions, &mut Tasks) {
        (&mut self.ftl, &mut self.transactions, &mut self.tasks)
    }

    fn enqueue(&mut self, id: TransactionId) {
        dispatch::enqueue(self, id);
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

    #[inline(always)]
    fn note(&mut self, wait: Wait) {
        match wait {
            Wait::Begins(id) => {
                self.dispatch.note_queued(&mut self.array, id, self.now);
                self.observe(move |observers, view| observers.stalled(view, id));
            }
            Wait::In(id, queue) => self.observe(move |observers, view| observers.queued(view, id, queue)),
            Wait::Cause(queue, cause) => {
                self.observe(move |observers, view| observers.queue_changed(view, queue, cause))
            }
        }
    }

    fn bind(&mut self, id: TransactionId, ppn: Ppn) {
        let lun = self.array.lun_of(self.transactions[id].plane);
        self.observe(move |observers, view| observers.bound(view, id, lun));
        self.bind(id, ppn);
    }

    fn take_over(&mut self, older: TransactionId, newer: TransactionId) {
        self.inherit(older, newer);
    }

    fn drop_write(&mut self, id: TransactionId) {
        self.observe(move |observers, view| observers.stalled(view, id));
        let request = self.transactions.remove(id).request();
        self.slots_free += 1;
        self.admits_after = true;
        self.observe(move |observers, view| observers.spent(view, id, TimePart::Gc));
        self.interface.serve(request, self.now);
        if request.is_some() {
            self.part_done(request, self.now, id);
        }
        if self.buffer.as_deref_mut().is_some_and(|buffer| buffer.end_write_back(id)) {
            self.end_flushes();
        }
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
