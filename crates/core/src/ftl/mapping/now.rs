//! A mapping scheme without time: operations end at once, in the order in which the scheme has queued them. A scheme
//! with blocks of its own needs no other code for functional mode.

use std::collections::VecDeque;

use super::{Context, Mapping};
use crate::ftl::Ftl;
use crate::ftl::mover::copy::Copy;
use crate::ftl::space::Role;
use crate::metrics::counters::{CopyCause, ReadCause};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::work::{Class, Kind, Task, Tasks, Transaction, Transactions};

/// The device without time, as a mapping scheme sees it.
#[derive(Debug)]
pub struct Now<'a> {
    ftl: &'a mut Ftl,
    ops: Transactions,
    tasks: Tasks,
    queue: VecDeque<TransactionId>,
    /// First sector, sector after the last one, and version of the host write.
    contents: Option<(u32, u32, u32)>,
}

impl Now<'_> {
    /// Writes a unit, and runs all operations and tasks that result from it. See [`super::Mapping::write_now`].
    ///
    /// # Panics
    ///
    /// Panics if some operations can never end.
    pub fn write<S>(scheme: &mut S, ftl: &mut Ftl, lpn: Lpn, contents: Option<(u32, u32, u32)>)
    where
        S: for<'a> Mapping<Now<'a>>,
    {
        let (ops, tasks, queue) = Default::default();
        let mut now = Now { ftl, ops, tasks, queue, contents };
        let mut write = Transaction::new(Kind::Write, Class::HostProgram);
        (write.lpn, write.complete) = (lpn, true);
        let id = now.ops.insert(write);
        scheme.place(&mut now, id);
        loop {
            if let Some(task) = now.tasks.pop() {
                if let Task::Scheme(call) = task {
                    scheme.call(&mut now, call);
                }
            } else if let Some(id) = now.queue.pop_front() {
                now.end(scheme, id);
            } else {
                break;
            }
        }
        let waits = || scheme.report(now.ftl).outstanding;
        assert!(now.ops.is_empty(), "mapping.scheme: operations wait forever: {}", waits());
    }

    /// Starts and ends an operation.
    fn end<S: for<'a> Mapping<Now<'a>>>(&mut self, scheme: &mut S, id: TransactionId) {
        let operation = self.ops[id];
        match operation.kind {
            Kind::MergeRead => {
                self.ops.remove(id);
                let spans = self.ftl.shape().pages_per_unit > 1;
                self.ftl.note_read(ReadCause::Merge, if spans { u32::from(operation.units) } else { 1 });
                scheme.copy_read(self, operation.logical_block());
            }
            Kind::MergeWrite => {
                let bound = scheme.bind_copies(self, id);
                self.ops.remove(id);
                if let Some(bound) = bound {
                    self.program(bound.ppn, TransactionId::NONE);
                    scheme.copies_ended(self, operation.logical_block(), bound.ppn);
                }
            }
            Kind::Write => {
                if let Some(bound) = scheme.bind_write(self, id) {
                    self.program(bound.ppn, id);
                    scheme.write_ended(self, operation.lpn, bound.ppn);
                }
            }
            Kind::Erase => {
                self.ops.remove(id);
                self.ftl.erase_now(operation.block());
                scheme.erased(self, operation.plane);
            }
            kind => unreachable!("a scheme with blocks of its own queues no {kind:?}"),
        }
    }

    /// Programs the units that have been bound: the copies, then the host writes that are linked from `id`.
    fn program(&mut self, start: Ppn, mut id: TransactionId) {
        for ppn in (start.0..start.0 + self.ftl.shape().units_per_program).map(Ppn) {
            if let Some(from) = self.ftl.source_of(&self.ops, ppn)
                && let Some(media) = &mut self.ftl.media
            {
                media.copy(from, ppn);
            }
        }
        while id.is_some() {
            let Transaction { lpn, ppn, next, .. } = self.ops.remove(id);
            self.ftl.written_now(lpn, self.ftl.map.get(lpn), ppn, self.contents);
            id = next;
        }
    }
}

impl Context for Now<'_> {
    fn as_dyn(&mut self) -> &mut dyn Context {
        self
    }

    fn ftl(&mut self) -> &mut Ftl {
        self.ftl
    }

    fn ops(&mut self) -> &mut Transactions {
        &mut self.ops
    }

    fn ftl_and_ops(&mut self) -> (&Ftl, &Transactions) {
        (self.ftl, &self.ops)
    }

    fn tasks(&mut self) -> &mut Tasks {
        &mut self.tasks
    }

    fn queue(&mut self, operation: Transaction) {
        let id = self.ops.insert(operation);
        self.queue.push_back(id);
    }

    fn enqueue(&mut self, id: TransactionId) {
        self.queue.push_back(id);
    }

    fn request_units(&self, _: TransactionId) -> u32 {
        1
    }

    fn note_waiting(&mut self, _id: TransactionId) {}

    fn note_resumed(&mut self, _id: TransactionId) {}

    fn bind(&mut self, id: TransactionId, ppn: Ppn) {
        self.ops[id].ppn = ppn;
        self.ftl.map.set_owner(ppn, self.ops[id].lpn.0);
    }

    // Only one host write is outstanding at a time, so none waits for another one.
    fn take_over(&mut self, _older: TransactionId, _newer: TransactionId) {}

    fn drop_write(&mut self, id: TransactionId) {
        self.ops.remove(id);
    }

    fn refuse_write(&mut self, id: TransactionId) {
        self.ops.remove(id);
    }

    fn end_copy(&mut self, copy: &Copy) {
        self.ftl.end_copy(copy, CopyCause::Merge);
        self.release(self.ftl.blocks.block_of(copy.from));
    }

    fn program_ended(&mut self, ppn: Ppn) {
        let end = Ppn(ppn.0 + self.ftl.shape().units_per_program);
        if self.ftl.shape().summary && self.ftl.blocks.ends_data(end, Role::Data) {
            self.ftl.note_summary(Role::Data);
        }
    }

    fn is_moving(&self, _plane: PlaneId, _block: BlockId) -> bool {
        false
    }

    fn release(&mut self, block: BlockId) {
        if self.ftl.blocks.release(block) {
            self.erase(block);
        }
    }

    fn erase(&mut self, block: BlockId) {
        let plane = self.ftl.blocks.plane_of(block);
        self.queue(Transaction::erase(Class::Gc, plane, block));
    }
}
