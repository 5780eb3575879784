//! Functional mode of mapping schemes: the operations that a scheme queues end at once, in their order, so that a
//! scheme needs no other code for it.
//!
//! A program of several units must be full, as it would be under load. So writes are placed first, and the oldest
//! operation starts once there are enough of them. [`Ftl::seal`] starts the rest.

use super::{Change, Contents, Context, Ended, Mapping, Outstanding, Step, Written};
use crate::ftl::Ftl;
use crate::ftl::mover::copy::Copy;
use crate::ftl::space::Role;
use crate::metrics::counters::{CopyCause, ReadCause};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::work::{Class, Kind, Task, Tasks, Transaction, Transactions};

/// The device without time, as a mapping scheme sees it.
struct Instant<'a> {
    ftl: &'a mut Ftl,
    outstanding: Box<Outstanding>,
    written: &'a mut Written<'a>,
}

impl Ftl {
    /// Calls the mapping scheme without time, runs its tasks, and performs operations until at most `left` writes are
    /// outstanding. Calls `written` after each program of a translation page.
    fn call_now<T>(
        &mut self,
        left: usize,
        written: &mut Written,
        call: impl for<'a> FnOnce(&mut dyn Mapping<Instant<'a>>, &mut Instant<'a>) -> T,
    ) -> T {
        let mut scheme = self.take_scheme();
        let outstanding = std::mem::take(&mut self.outstanding);
        let mut instant = Instant { ftl: self, outstanding, written };
        let result = call(scheme.of(), &mut instant);
        let waits = instant.run(scheme.of(), left);
        let Instant { outstanding, .. } = instant;
        (self.outstanding, self.scheme) = (outstanding, Some(scheme));
        if waits {
            self.drop_outstanding();
        }
        result
    }

    /// Drops operations that can never end, because the device is worn out or the scheme has failed.
    ///
    /// # Panics
    ///
    /// Panics if neither is the case.
    #[cold]
    fn drop_outstanding(&mut self) {
        let ends = self.life.is_some() || self.scheme().fault().is_some();
        let waits = || self.scheme().report(self).outstanding;
        assert!(ends, "mapping.scheme: operations wait forever: {}", waits());
        *self.outstanding = Outstanding::default();
        self.refuse_unit();
    }

    /// Writes a unit to a block that the mapping scheme keeps. Returns `false` if the allocation chooses its plane.
    #[inline]
    pub(in crate::ftl) fn write_kept(&mut self, lpn: Lpn, contents: Option<Contents>) -> bool {
        if self.keeps_data {
            self.write_by_scheme(lpn, contents);
        }
        self.keeps_data
    }

    fn write_by_scheme(&mut self, lpn: Lpn, contents: Option<Contents>) {
        self.settle(lpn);
        if self.is_worn_out() {
            return self.refuse_unit();
        }
        self.call_now(self.enough_writes(), &mut |_, _, _| {}, |scheme, instant| {
            let mut write = Transaction::new(Kind::Write, Class::HostProgram);
            (write.lpn, write.complete) = (lpn, true);
            let outstanding = &mut instant.outstanding;
            let run = outstanding.last.filter(|last| last.0.0.wrapping_add(1) == lpn.0).map_or(1, |last| last.1 + 1);
            outstanding.last = Some((lpn, run));
            let id = outstanding.ops.insert(write);
            outstanding.writes.push((id, lpn, contents));
            scheme.place(instant, id);
        });
    }

    /// Notes a change of the location of a unit. The scheme knows of the changes that it makes itself.
    #[inline]
    pub(crate) fn changed_now(&mut self, lpn: Lpn, change: Change) {
        if !self.has_page_map && self.scheme.is_some() {
            let left = self.enough_writes();
            self.call_now(left, &mut |_, _, _| {}, |scheme, instant| scheme.changed(instant, lpn, change));
        }
    }

    /// Returns the number of outstanding writes that fill the programs of all planes but for one unit.
    fn enough_writes(&self) -> usize {
        ((self.shape.units_per_program - 1) * self.shape.planes) as usize
    }

    /// Programs all writes if one of a unit is outstanding.
    #[inline]
    pub fn settle(&mut self, lpn: Lpn) {
        if self.keeps_data && self.outstanding.writes.iter().any(|write| write.1 == lpn) {
            self.call_now(0, &mut |_, _, _| {}, |_, _| {});
        }
    }

    /// Programs all writes that are outstanding, and the translation pages that functional writes have changed. Calls
    /// `written` after each of these pages.
    pub(crate) fn seal_kept(&mut self, written: &mut Written) {
        if !self.has_page_map {
            self.call_now(0, written, |scheme, instant| scheme.step(instant, Step::Seal));
        }
    }

    /// Returns the number of writes that functional mode has accepted and not programmed.
    pub(in crate::ftl) fn outstanding_writes(&self) -> usize {
        self.outstanding.writes.len()
    }
}

impl Instant<'_> {
    /// Runs all tasks, and performs operations until at most `left` writes are outstanding. Returns `true` if some
    /// operations can never end.
    fn run(&mut self, scheme: &mut dyn Mapping<Self>, left: usize) -> bool {
        loop {
            if let Some(task) = self.outstanding.tasks.pop() {
                if let Task::Scheme(call) = task {
                    scheme.step(self, Step::Call(call));
                }
            } else if self.outstanding.writes.len() > left || (left == 0 && !self.outstanding.ops.is_empty()) {
                let Some(id) = self.outstanding.queue.pop_front() else { break };
                self.end(scheme, id);
            } else {
                return false;
            }
        }
        !self.outstanding.ops.is_empty()
    }

    /// Starts and ends an operation.
    fn end(&mut self, scheme: &mut dyn Mapping<Self>, id: TransactionId) {
        let operation = self.outstanding.ops[id];
        match operation.kind {
            Kind::MergeRead => {
                self.outstanding.ops.remove(id);
                let spans = self.ftl.shape().pages_per_unit > 1;
                self.ftl.note_read(ReadCause::Merge, if spans { u32::from(operation.units) } else { 1 });
                scheme.ended(self, Ended::CopyRead(operation.logical_block()));
            }
            Kind::MergeWrite => {
                let bound = scheme.bind(self, id);
                self.outstanding.ops.remove(id);
                if let Some(bound) = bound {
                    self.program(bound.ppn, TransactionId::NONE);
                    scheme.ended(self, Ended::Copies(operation.logical_block(), bound.ppn));
                }
            }
            Kind::Write => {
                if let Some(bound) = scheme.bind(self, id) {
                    self.program(bound.ppn, id);
                    scheme.ended(self, Ended::Writes(operation.lpn, bound.ppn));
                }
            }
            Kind::Erase => {
                self.outstanding.ops.remove(id);
                let is_free = self.ftl.erase_or_retire_now(operation.block());
                let plane = operation.plane;
                scheme.ended(self, if is_free { Ended::Erase(plane) } else { Ended::EraseFailed(plane) });
            }
            kind => unreachable!("a scheme without time queues no {kind:?}"),
        }
    }

    /// Programs the units that have been bound, in the order of their addresses: copies, and host writes, which are
    /// linked from `first`.
    fn program(&mut self, start: Ppn, first: TransactionId) {
        for ppn in (start.0..start.0 + self.ftl.shape().units_per_program).map(Ppn) {
            let mut id = first;
            while id.is_some() && self.outstanding.ops[id].ppn != ppn {
                id = self.outstanding.ops[id].next;
            }
            if id.is_some() {
                self.write_ended(id);
            } else if let Some(media) = &mut self.ftl.media {
                media.end_copy(ppn);
            }
        }
        let mut id = first;
        while id.is_some() {
            id = self.outstanding.ops.remove(id).next;
        }
    }

    fn write_ended(&mut self, id: TransactionId) {
        let Transaction { lpn, ppn, .. } = self.outstanding.ops[id];
        let position = self.outstanding.writes.iter().position(|write| write.0 == id);
        let contents = position.and_then(|position| self.outstanding.writes.swap_remove(position).2);
        self.ftl.written_now(lpn, self.ftl.map.get(lpn), ppn, contents);
    }
}

impl Context for Instant<'_> {
    fn as_dyn(&mut self) -> &mut dyn Context {
        self
    }

    #[inline]
    fn parts(&mut self) -> (&mut Ftl, &mut Transactions, &mut Tasks) {
        (self.ftl, &mut self.outstanding.ops, &mut self.outstanding.tasks)
    }

    fn has_time(&self) -> bool {
        false
    }

    fn enqueue(&mut self, id: TransactionId) {
        self.outstanding.queue.push_back(id);
    }

    /// Returns the number of units up to this one that follow one another, because requests are not known.
    fn request_units(&self, _: TransactionId) -> u32 {
        self.outstanding.last.map_or(1, |last| last.1)
    }

    fn bind(&mut self, id: TransactionId, ppn: Ppn) {
        self.outstanding.ops[id].ppn = ppn;
        self.ftl.map.set_owner(ppn, self.outstanding.ops[id].lpn.0);
    }

    // A unit has one outstanding write at most, so none waits for another one, and none is trimmed.
    fn take_over(&mut self, _older: TransactionId, _newer: TransactionId) {}

    fn drop_write(&mut self, id: TransactionId) {
        self.outstanding.ops.remove(id);
    }

    fn refuse_write(&mut self, id: TransactionId) {
        self.outstanding.ops.remove(id);
    }

    fn end_copy(&mut self, copy: &Copy) {
        self.ftl.copy_loss(copy.from, copy.to);
        self.ftl.end_copy(copy, CopyCause::Merge);
        self.release(self.ftl.blocks.block_of(copy.from));
    }

    fn program_ended(&mut self, ppn: Ppn) {
        let end = Ppn(ppn.0 + self.ftl.shape().units_per_program);
        if self.ftl.shape().summary && self.ftl.blocks.ends_data(end, Role::Data) {
            self.ftl.note_summary(Role::Data);
        }
    }

    fn map_written(&mut self, page: u32, ppn: Ppn) {
        (self.written)(self.ftl, page, ppn);
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
