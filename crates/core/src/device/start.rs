//! Start of operations: binds a transaction to its physical address when its LUN and channel are granted.

use super::{Device, Mutant};
use crate::dispatch::{Binder, Parts, View};
use crate::durability::flash::FlashEvent;
use crate::durability::own::cause_of;
use crate::ftl::gc::copies::Fit;
use crate::ftl::mapping::{Bound, call};
use crate::ftl::space::{Block, Role};
use crate::metrics::counters::{CopyCause, ProgramCause, ReadCause};
use crate::nand::array::{Operation, Spot};
use crate::sim::id::{LunId, Ppn, TransactionId};
use crate::sim::time::Time;
use crate::work::{Kind, Purpose, Task, Transaction};

impl Binder for Device {
    #[inline(always)]
    fn view(&self) -> View<'_> {
        View {
            dispatch: &self.dispatch,
            transactions: &self.transactions,
            array: &self.array,
            ftl: &self.ftl,
            jobs: &self.jobs,
            interface: &self.interface,
            buffer: self.buffer.as_deref(),
            now: self.now,
        }
    }

    #[inline(always)]
    fn parts(&mut self) -> Parts<'_> {
        Parts {
            dispatch: &mut self.dispatch,
            transactions: &mut self.transactions,
            array: &mut self.array,
            tasks: &mut self.tasks,
            ftl: &mut self.ftl,
            interface: &self.interface,
            now: self.now,
        }
    }

    #[inline(always)]
    fn bind(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool {
        self.transactions[id].next = TransactionId::NONE;
        match self.transactions[id].kind {
            Kind::HostRead => self.start_read(id, (ReadCause::Host, Purpose::OfClass), at),
            Kind::ReadAhead => self.start_read(id, (ReadCause::Ahead, Purpose::OfClass), at),
            Kind::RmwRead => self.start_read(id, (ReadCause::Rmw, Purpose::OfClass), at),
            Kind::RebuildRead => self.start_read(id, (ReadCause::Rebuild, Purpose::Rebuild), at),
            Kind::GcRead => self.start_read(id, self.ftl.reason_of_move(self.transactions[id].ppn), at),
            Kind::Write => self.start_write(id, rank, at),
            Kind::GcWrite => self.start_copies(id, at),
            Kind::CopyBack => self.start_copy_back(id, at),
            Kind::Erase => self.start_erase(id, at),
            Kind::Summary => self.start_summary(id, at),
            Kind::MergeRead => self.start_read(id, (ReadCause::Merge, self.transactions[id].purpose()), at),
            Kind::MergeWrite | Kind::MapWrite => self.start_kept(id, at),
            Kind::MapRead => self.start_map_read(id, at),
            Kind::SlotRead | Kind::Translate | Kind::MapHold => unreachable!("such transactions do not wait for LUNs"),
        }
    }

    #[inline(never)]
    fn show_queued(&mut self, id: TransactionId, lun: LunId) {
        let Device { observers, array, transactions, dispatch, now, .. } = self;
        if let Some(observers) = observers {
            observers.enqueued(transactions, array, id, lun, *now);
        }
        dispatch.note_queued(array, id, *now);
    }
}

impl Device {
    /// Binds a read of a page of data, for a reason.
    #[inline(always)]
    fn start_read(&mut self, id: TransactionId, (cause, purpose): (ReadCause, Purpose), at: Spot) -> bool {
        let read = self.transactions[id];
        let shape = *self.ftl.shape();
        let spans = shape.pages_per_unit > 1;
        let pages = if spans { u32::from(read.units) } else { 1 };
        self.ftl.note_read(cause, pages);
        let tag = match read.kind {
            Kind::HostRead => self.interface.serve(read.request(), self.now),
            Kind::RmwRead => self.interface.serve(self.transactions[read.write()].request(), self.now),
            _ => u64::MAX,
        };
        let timing = self.array.timing();
        let needed = match cause {
            ReadCause::Host | ReadCause::Rmw => timing.sectors_out(read.end),
            _ => None,
        };
        let whole = || if spans { timing.page_out } else { timing.units_out[usize::from(read.units)] };
        let of = Operation { purpose, ..Operation::of(&read, self.dispatch.rank_of(read.class), tag) };
        let data = needed.unwrap_or_else(whole);
        *self.array.draft_mut(at) = self.array.timing().read(of, pages, data, || self.ftl.page_in_block(read.ppn));
        if self.ftl.folding.is_some() && self.ftl.note_cache_read(read.ppn, cause, pages) {
            self.array.set_cells(at, |ppn| self.ftl.cells_of(ppn));
        }
        true
    }

    /// Starts a read of a translation page, or of one flash page of it.
    fn start_map_read(&mut self, id: TransactionId, at: Spot) -> bool {
        let read = self.transactions[id];
        self.ftl.note_map_read(&read);
        let of = Operation::of(&read, self.dispatch.rank_of(read.class), u64::MAX);
        let timing = self.array.timing();
        *self.array.draft_mut(at) =
            timing.read(of, u32::from(read.units), timing.page_out, || self.ftl.page_in_block(read.ppn));
        self.array.set_cells(at, |ppn| self.ftl.cells_of(ppn));
        true
    }

    /// Returns the operation of a program in a native block, for a transaction that was bound.
    #[inline(always)]
    fn program(&self, bound: &Transaction, tag: u64) -> Operation {
        let of = Operation::of(bound, self.dispatch.rank_of(bound.class), tag);
        self.array.timing().program(of, self.ftl.shape().pages_per_unit, || self.ftl.page_in_block(bound.ppn))
    }

    /// Binds a program in kept blocks. Returns `false` if there is nothing to program.
    fn start_kept(&mut self, id: TransactionId, at: Spot) -> bool {
        let Some(Bound { class, plane, ppn }) = call::bind(self, id) else { return false };
        let write = &mut self.transactions[id];
        let (mut tag, mut purpose) = (u64::MAX, Purpose::OfClass);
        match write.kind {
            Kind::Write => tag = self.interface.tag_of(write.request()),
            Kind::MergeWrite => (write.ppn, purpose) = (ppn, write.purpose()),
            _ => write.ppn = ppn,
        }
        let mut bound = *write;
        (bound.class, bound.plane, bound.ppn) = (class, plane, ppn);
        if bound.kind == Kind::MapWrite {
            let (page, sequence) = (bound.map_page(), self.sequence_for_log());
            self.observe(move |observers, view| observers.map_write_began(view, page, ppn, sequence));
        } else {
            let renumbers = self.renumbers_copies();
            self.observe(move |observers, view| observers.kept_began(view, ppn, id, renumbers));
        }
        *self.array.draft_mut(at) = Operation { purpose, ..self.program(&bound, tag) };
        if bound.kind == Kind::MapWrite {
            self.array.set_cells(at, |ppn| self.ftl.cells_of(ppn));
        }
        true
    }

    /// Binds a write, with other queued writes that fill its program. Parks the write if its plane has no room.
    #[inline(always)]
    fn start_write(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool {
        if self.ftl.is_read_only() {
            self.answer_unwritten(id);
            return false;
        }
        if self.ftl.keeps_data() {
            return self.start_kept(id, at);
        }
        let plane = self.transactions[id].plane;
        if self.ftl.active.is_some() && self.leaves_plane(id, plane) {
            return false;
        }
        // A write that must not wait for an erase may use space that is reserved for garbage collection.
        // A unit of the device itself goes to native blocks if the SLC cache has no room.
        let takes_own = || self.ftl.is_own(self.transactions[id].lpn) && self.ftl.blocks.takes_own_write(plane);
        let has_room = self.ftl.blocks.takes_host_write(plane) || takes_own();
        let lent = !has_room && !self.jobs.may_retry(&self.ftl, plane, self.transactions[id].dependency);
        if lent && !self.may_free(id, plane) {
            self.stall(id, plane);
            return false;
        }
        let free_blocks = self.ftl.blocks.free_blocks(plane, Role::Data);
        let class = self.transactions[id].temperature;
        let blocks = &self.ftl.blocks;
        let frontier = if lent { blocks.gc_frontier(plane) } else { blocks.frontier_for_host(plane, class) };
        let is_cached = blocks.is_cache_frontier(frontier);
        let group = blocks.program_units_of(frontier, self.ftl.shape().units_per_program);
        let first = self.ftl.blocks.advance(frontier, group);
        let kept = if self.config.nand.advanced.copy_back_modify { self.read_fused(id) } else { None };
        let count = self.bind_writes(id, rank, first, if lent { 1 } else { group });
        self.ftl.map.pad(first.0 + count..first.0 + group);
        let cause = cause_of(self.durability.as_deref(), &self.ftl, &self.transactions, (id, count));
        self.ftl.note_writes(plane, (frontier, lent), cause, class, count);
        self.observe(move |observers, view| observers.writes_began(view, first, group, cause, id));
        if self.ftl.blocks.free_blocks(plane, Role::Data) != free_blocks {
            self.ftl.refresh_ready(plane);
            self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
            self.clean(plane);
            if !has_room {
                // Parked writes may use the rest of the block.
                self.unpark(plane);
            }
        } else if self.dispatch.has_pools() {
            self.ftl.refresh_ready(plane);
        }
        self.jobs.note_taken(&mut self.ftl, plane, self.now).for_each(|plane| self.clean(plane));
        if self.ftl.blocks.has_superblocks() {
            self.queue_parity(plane);
        }
        let write = &self.transactions[id];
        let mut program = self.program(write, self.interface.tag_of(write.request()));
        if let Some(kept) = kept {
            let data = self.array.timing().sectors_in[usize::from(write.end - write.first)];
            program = self.array.timing().copy_back(program, data, || self.ftl.page_in_block(kept));
        }
        *self.array.draft_mut(at) = program;
        if is_cached && kept.is_none() {
            self.array.set_cells(at, |ppn| self.ftl.cells_of(ppn));
        }
        true
    }

    /// Binds a write to the physical address `first`, and other queued writes to the next ones, `most` in all. Returns
    /// the number of writes, which are linked.
    #[inline(always)]
    fn bind_writes(&mut self, id: TransactionId, rank: u8, first: Ppn, most: u32) -> u32 {
        let Transaction { plane, temperature, .. } = self.transactions[id];
        self.bind(id, first);
        let mut count = 1;
        let mut last = id;
        while count < most {
            let key = (self.array.lun_of(plane), plane, rank);
            let more = self.dispatch.take_companion(&mut self.transactions, key, temperature);
            if more.is_none() {
                break;
            }
            self.bind(more, Ppn(first.0 + count));
            self.transactions[last].next = more;
            last = more;
            count += 1;
        }
        self.transactions[last].next = TransactionId::NONE;
        count
    }

    /// Starts the read of a write that is fused with it (`copy_back_modify`). Returns the address of the sectors that
    /// the write keeps, or `None` if there are none.
    #[inline]
    fn read_fused(&mut self, id: TransactionId) -> Option<Ppn> {
        let Transaction { complete, source, .. } = self.transactions[id];
        if !complete && source.is_none() {
            // A trim has dropped the rest.
            self.observe(move |observers, view| observers.completed(view, id, TransactionId::NONE));
        }
        (!complete && source.is_some()).then(|| {
            self.ftl.note_read(ReadCause::Rmw, 1);
            self.check_rmw_read(id, source, 1);
            self.observe(move |observers, view| observers.kept(view, id, source));
            source
        })
    }

    /// Binds a write to the physical address `ppn`, and invalidates the old copy. The block that holds the old copy
    /// cannot be erased until the program completes.
    #[inline]
    pub(super) fn bind(&mut self, id: TransactionId, ppn: Ppn) {
        self.interface.serve(self.transactions[id].request(), self.now);
        let old = self.ftl.bind_write(&mut self.transactions[id], ppn);
        if let Some(buffer) = &mut self.buffer {
            let plane = self.transactions[id].plane;
            let next = self.dispatch.first_write(self.array.lun_of(plane), plane);
            buffer.fetch(id, next, &self.transactions, &self.ftl, self.now);
        }
        if let Some(old) = old
            && let Some(log) = self.log_mut()
        {
            log.invalidate(id, old);
        }
    }

    /// Drops a copy operation of garbage collection that has nothing to do. Units stay at their old addresses if the
    /// device is read-only.
    fn drop_copies(&mut self, id: TransactionId) -> bool {
        let copies = self.transactions.remove(id);
        let plane = copies.job();
        self.jobs[plane].busy = false;
        if self.ftl.is_read_only() {
            self.end_hold(plane);
        } else if plane == copies.plane {
            self.clean(plane);
        } else {
            self.tasks.push(Task::Clean(plane));
        }
        false
    }

    /// Binds the program of units that garbage collection has read. Drops units that were invalidated since, and starts
    /// nothing if none is left.
    fn start_copies(&mut self, id: TransactionId, at: Spot) -> bool {
        let (plane, job) = (self.transactions[id].plane, self.transactions[id].job());
        if self.ftl.is_read_only() {
            return self.drop_copies(id);
        }
        self.drop_invalid(job, false);
        // Other jobs may have filled the plane of an open superblock.
        if self.ftl.blocks.has_superblocks() && self.ftl.blocks.plane_of_copies(plane) != Some(plane) {
            return self.drop_copies(id);
        }
        let Some((first, cause)) = self.jobs[job].bind_copies(&mut self.ftl, plane) else {
            return self.drop_copies(id);
        };
        self.transactions[id].ppn = first;
        if self.ftl.blocks.has_superblocks() {
            self.queue_parity(plane);
            if cause == ProgramCause::Rebuild {
                // It may have opened a superblock without a victim.
                self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
            }
        }
        let renumbers = self.renumbers_copies();
        self.observe(move |observers, view| observers.copies_began(view, job, first, renumbers));
        let purpose = match cause {
            ProgramCause::Wear => Purpose::Wear,
            ProgramCause::Fold => Purpose::Fold,
            ProgramCause::Rebuild => Purpose::Rebuild,
            ProgramCause::Refresh => Purpose::Refresh,
            _ => Purpose::OfClass,
        };
        *self.array.draft_mut(at) = Operation { purpose, ..self.program(&self.transactions[id], u64::MAX) };
        true
    }

    /// Binds a page that garbage collection moves by copy-back. If this needs more wasted pages than allowed, reads the
    /// page instead, to program it through the controller.
    fn start_copy_back(&mut self, id: TransactionId, at: Spot) -> bool {
        let plane = self.transactions[id].plane;
        if self.ftl.is_read_only() {
            return self.drop_copies(id);
        }
        self.drop_invalid(plane, true);
        if self.jobs[plane].moving.back.is_empty() {
            return self.drop_copies(id);
        }
        let page_units = self.ftl.shape().units_per_page.divisor();
        let from = Ppn(self.transactions[id].ppn.0 / page_units * page_units);
        let fit = self.jobs[plane].make_parity_fit(&mut self.ftl, plane, from);
        if let Fit::Skipped(ppn) = fit {
            self.program_ended(ppn, Role::Data);
        }
        if fit == Fit::Not {
            let job = &mut self.jobs[plane];
            job.moving.copies.append(&mut job.moving.back);
            self.transactions[id].kind = Kind::GcRead;
            self.transactions[id] = self.transactions[id].of_job(plane);
            return self.start_read(id, self.ftl.reason_of_move(self.transactions[id].ppn), at);
        }
        let to = self.jobs[plane].bind_back(&mut self.ftl, plane, from);
        self.transactions[id].ppn = to;
        let renumbers = self.renumbers_copies();
        self.observe(move |observers, view| observers.copy_back_began(view, plane, to, renumbers));
        let is_cold = self.ftl.blocks.is_cold(self.ftl.blocks.block_of(from));
        let purpose = if is_cold { Purpose::Wear } else { Purpose::OfClass };
        let program = Operation { purpose, ..self.program(&self.transactions[id], u64::MAX) };
        *self.array.draft_mut(at) = self.array.timing().copy_back(program, Time::ZERO, || self.ftl.page_in_block(from));
        true
    }

    #[inline(always)]
    fn start_erase(&mut self, id: TransactionId, at: Spot) -> bool {
        let erase = self.transactions[id];
        debug_assert!(
            self.options.mutant == Mutant::EraseEarly || self.ftl.blocks.can_erase(erase.block()),
            "a block is erased although something depends on it"
        );
        self.observe(move |observers, _| observers.changed(FlashEvent::EraseBegun { block: erase.block() }));
        let blocks = &self.ftl.blocks;
        let purpose = match *blocks.block(erase.block()) {
            Block { role: Role::Cache, .. } => Purpose::Fold,
            Block { moved_for: CopyCause::Refresh, .. } => Purpose::Refresh,
            _ => blocks.purpose_of_erase(erase.block()),
        };
        if self.ftl.shape().is_exclusive {
            self.end_hold(erase.plane);
        }
        let of = Operation::of(&erase, self.dispatch.rank_of(erase.class), u64::MAX);
        *self.array.draft_mut(at) = Operation { purpose, ..self.array.timing().erase(of) };
        true
    }

    fn start_summary(&mut self, id: TransactionId, at: Spot) -> bool {
        let summary = self.transactions[id];
        if self.ftl.blocks.is_parity(self.ftl.blocks.block_of(summary.ppn)) {
            if self.ftl.blocks.is_doomed(summary.dependency) {
                // The superblock takes no more programs. The controller holds the parity until it is retired.
                self.transactions.remove(id);
                self.release(summary.dependency);
                return false;
            }
            self.ftl.note_parity(summary.ppn);
            let units = self.ftl.shape().units_per_program;
            self.observe(move |observers, view| {
                observers.writes_began(view, summary.ppn, units, ProgramCause::Parity, TransactionId::NONE);
            });
            self.ftl.counters.program_commands += u64::from(self.ftl.shape().pages_per_unit);
            *self.array.draft_mut(at) = self.program(&summary, u64::MAX);
            return true;
        }
        self.ftl.note_summary(self.ftl.blocks.block(self.ftl.blocks.block_of(summary.ppn)).role);
        self.observe(move |observers, view| observers.summary_began(view, summary.ppn));
        *self.array.draft_mut(at) = Operation { pages: 1, ..self.program(&summary, u64::MAX) };
        self.array.set_cells(at, |ppn| self.ftl.cells_of(ppn));
        self.array.draft_mut(at).data = self.array.timing().summary_in;
        true
    }
}
