//! A context for unit tests: an FTL, operations and tasks, without dispatch and flash.
//!
//! Operations wait in the order in which the scheme queued them, until a test ends them.

use super::{Bound, Context, Ended, Location, LookUp, Mapping, MappingScheme, Step};
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::mover::copy::Copy;
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::work::{Class, Kind, Task, Tasks, Transaction, Transactions};

/// The device as a scheme sees it, and the operations that the scheme has queued.
pub(super) struct Stub {
    pub(super) ftl: Ftl,
    pub(super) ops: Transactions,
    tasks: Tasks,
    /// Operations that were queued and have not ended, oldest first.
    pub(super) queued: Vec<TransactionId>,
    /// Blocks whose erase was queued.
    pub(super) erases: Vec<BlockId>,
}

impl Context for Stub {
    fn as_dyn(&mut self) -> &mut dyn Context {
        self
    }

    fn parts(&mut self) -> (&mut Ftl, &mut Transactions, &mut Tasks) {
        (&mut self.ftl, &mut self.ops, &mut self.tasks)
    }

    fn enqueue(&mut self, id: TransactionId) {
        self.queued.push(id);
    }

    fn request_units(&self, _: TransactionId) -> u32 {
        1
    }

    fn bind(&mut self, id: TransactionId, ppn: Ppn) {
        let write = &mut self.ops[id];
        write.ppn = ppn;
        self.ftl.map.set_owner(ppn, write.lpn.0);
        if let Some(old) = std::mem::replace(&mut write.source, Ppn::NONE).get() {
            self.ftl.blocks.invalidate(old);
            write.dependency = self.ftl.blocks.depend(old);
        }
    }

    fn take_over(&mut self, _: TransactionId, _: TransactionId) {}

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

    fn program_ended(&mut self, _: Ppn) {}

    fn is_moving(&self, _: PlaneId, _: BlockId) -> bool {
        false
    }

    fn release(&mut self, block: BlockId) {
        if self.ftl.blocks.release(block) {
            self.erase(block);
        }
    }

    fn erase(&mut self, block: BlockId) {
        self.erases.push(block);
    }
}

/// A scheme and its context.
pub(super) struct Bench {
    pub(super) scheme: Box<MappingScheme>,
    pub(super) cx: Stub,
    /// Operations whose map entries have arrived, in order.
    pub(super) resumed: Vec<TransactionId>,
}

impl Bench {
    /// Builds the scheme of device `tiny` with options.
    pub(super) fn new(options: &[&str]) -> Bench {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let config: DeviceConfig = crate::config::load("tiny", &options).unwrap();
        let mut ftl = Ftl::new(&config, 1, false, &Default::default()).unwrap();
        let scheme = ftl.scheme.take().unwrap();
        let (ops, tasks) = (Transactions::default(), Tasks::default());
        Bench { scheme, cx: Stub { ftl, ops, tasks, queued: Vec::new(), erases: Vec::new() }, resumed: Vec::new() }
    }

    /// Calls the scheme, then runs all tasks.
    pub(super) fn call<T>(&mut self, call: impl FnOnce(&mut dyn Mapping<Stub>, &mut Stub) -> T) -> T {
        let result = call(self.scheme.of(), &mut self.cx);
        while let Some(task) = self.cx.tasks.pop() {
            match task {
                Task::Scheme(call) => self.scheme.of().step(&mut self.cx, Step::Call(call)),
                Task::MapProgrammed(page, ppn) => {
                    self.scheme.of().step(&mut self.cx, Step::MapProgrammed(page, ppn));
                }
                Task::Translate(mut arrived, _) => {
                    while !arrived.is_empty() {
                        let id = arrived.pop(&mut self.cx.ops);
                        let lpn = self.cx.ops[id].lpn;
                        self.scheme.of().look_up(&mut self.cx, lpn, LookUp::Arrived);
                        self.resumed.push(id);
                    }
                }
                other => panic!("no scheme pushes {other:?}"),
            }
        }
        result
    }

    /// Calls functional mode.
    pub(super) fn without_time(&mut self, call: impl FnOnce(&mut Ftl)) {
        std::mem::swap(&mut self.scheme, self.cx.ftl.scheme.insert(Box::new(MappingScheme::Page(super::page::Page))));
        call(&mut self.cx.ftl);
        self.scheme = self.cx.ftl.scheme.take().unwrap();
    }

    /// Has a read of `lpn` wait for its map entry.
    pub(super) fn await_entry(&mut self, lpn: u32) -> TransactionId {
        let mut read = Transaction::new(Kind::Translate, Class::HostRead);
        read.lpn = Lpn(lpn);
        let id = self.cx.ops.insert(read);
        self.call(|scheme, cx| scheme.look_up(cx, Lpn(lpn), LookUp::Await(id)));
        id
    }

    /// Has host writes wait for their addresses, then runs all tasks.
    pub(super) fn write(&mut self, lpns: impl IntoIterator<Item = u32>) {
        let ids: Vec<TransactionId> = lpns.into_iter().map(|lpn| self.accept(Lpn(lpn))).collect();
        self.call(|scheme, cx| ids.into_iter().for_each(|id| scheme.place(cx, id)));
    }

    fn accept(&mut self, lpn: Lpn) -> TransactionId {
        let mut write = Transaction::new(Kind::Write, Class::HostProgram);
        (write.lpn, write.complete) = (lpn, true);
        if let Location::Flash(ppn) = self.cx.ftl.map.get(lpn) {
            write.source = ppn;
        }
        let id = self.cx.ops.insert(write);
        self.cx.ftl.map.set_slot(lpn, id);
        id
    }

    /// Starts and ends the operation that was queued first. Returns the kind of the operation and its first unit.
    pub(super) fn end_next(&mut self) -> (Kind, Ppn) {
        let id = self.cx.queued.remove(0);
        let kind = self.cx.ops[id].kind;
        let ppn = match kind {
            Kind::MapRead => self.end_map_read(id),
            Kind::MergeRead => {
                let read = self.cx.ops.remove(id);
                self.call(|scheme, cx| scheme.ended(cx, Ended::CopyRead(read.logical_block())));
                read.ppn
            }
            Kind::MapWrite => {
                let bound = self.bind(id);
                self.call(|scheme, cx| scheme.ended(cx, Ended::MapWrite(id)));
                bound.ppn
            }
            Kind::MergeWrite => {
                let bound = self.bind(id);
                let number = self.cx.ops.remove(id).logical_block();
                self.call(|scheme, cx| scheme.ended(cx, Ended::Copies(number, bound.ppn)));
                bound.ppn
            }
            Kind::Write => self.end_write(id),
            other => panic!("no scheme queues {other:?}"),
        };
        (kind, ppn)
    }

    /// Ends operations until none is queued. Returns them, as [`Bench::end_next`] does.
    pub(super) fn end_all(&mut self) -> Vec<(Kind, Ppn)> {
        let mut ended = Vec::new();
        while !self.cx.queued.is_empty() {
            ended.push(self.end_next());
        }
        ended
    }

    fn bind(&mut self, id: TransactionId) -> Bound {
        let bound = self.call(|scheme, cx| scheme.bind(cx, id)).expect("there is room, and something to program");
        if self.cx.ops[id].kind != Kind::Write {
            self.cx.ops[id].ppn = bound.ppn;
        }
        bound
    }

    fn end_map_read(&mut self, id: TransactionId) -> Ppn {
        let ppn = self.cx.ops[id].ppn;
        self.call(|scheme, cx| {
            cx.ftl.note_map_read(&cx.ops[id]);
            scheme.ended(cx, Ended::MapRead(id))
        });
        ppn
    }

    fn end_write(&mut self, first: TransactionId) -> Ppn {
        let Bound { ppn, .. } = self.bind(first);
        let lpn = self.cx.ops[first].lpn;
        let mut id = first;
        while id.is_some() {
            let write = self.cx.ops.remove(id);
            self.cx.ftl.blocks.validate(write.ppn);
            self.cx.ftl.map.set_flash(write.lpn, write.ppn);
            if write.dependency.is_some() {
                self.cx.release(write.dependency);
            }
            id = write.next;
        }
        self.call(|scheme, cx| scheme.ended(cx, Ended::Writes(lpn, ppn)));
        ppn
    }
}
