//! Start of operations: binds a transaction to its physical address when its LUN and channel are granted.

use super::{Device, Mutant};
use crate::config::advanced::Waste;
use crate::config::cells::CellMode;
use crate::durability::flash::FlashEvent;
use crate::durability::own::cause_of;
use crate::ftl::mapping::PADDING;
use crate::ftl::space::{FrontierId, Role};
use crate::metrics::counters::{ProgramCause, ReadCause};
use crate::nand::array::{self, Operation, Spot};
use crate::sim::id::{PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::time::Time;
use crate::work::{Class, Kind, Purpose, Transaction};

impl Device {
    /// Builds the array operation `at` a spot for the first transaction of a queue, and binds its physical address.
    /// Returns `false` if the operation cannot start or is not needed.
    #[inline(always)]
    pub(super) fn bind_transaction(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool {
        self.transactions[id].next = TransactionId::NONE;
        match self.transactions[id].kind {
            Kind::HostRead => self.start_read(id, ReadCause::Host, at),
            Kind::RmwRead => self.start_read(id, ReadCause::Rmw, at),
            Kind::GcRead => self.start_gc_read(id, at),
            Kind::Write => self.start_write(id, rank, at),
            Kind::GcWrite => self.start_copies(id, at),
            Kind::CopyBack => self.start_copy_back(id, at),
            Kind::Erase => self.start_erase(id, at),
            Kind::Summary => self.start_summary(id, at),
            Kind::MergeRead => self.start_merge_read(id, at),
            Kind::MergeWrite => self.start_merge_write(id, at),
            Kind::MapRead => self.start_map_read(id, at),
            Kind::MapWrite => self.start_map_write(id, at),
            Kind::SlotRead | Kind::Translate | Kind::MapHold => unreachable!("such transactions do not wait for LUNs"),
        }
    }

    /// Stores an operation that can start `at` a spot. Returns `true`, which its callers return.
    #[inline(always)]
    pub(super) fn put(&mut self, at: Spot, operation: Operation) -> bool {
        *self.array.draft_mut(at) = operation;
        true
    }

    /// Records that the service of a request starts now, if it has not started yet. Returns the tag of the request.
    #[inline]
    pub(super) fn serve(&mut self, request: RequestId) -> u64 {
        if request.is_none() {
            return u64::MAX; // A write of the buffer that no request waits for.
        }
        let pending = &mut self.interface.requests[request];
        pending.start = pending.start.min(self.now);
        pending.request.tag
    }

    /// Binds a read of a victim's page.
    #[inline(always)]
    fn start_gc_read(&mut self, id: TransactionId, at: Spot) -> bool {
        if self.ftl.blocks.moves_for_reasons() {
            return self.start_read_of_any(id, at);
        }
        self.start_read(id, ReadCause::Gc, at)
    }

    /// Binds a read of a page of a victim, of a cold block, or of a block that is folded.
    #[cold]
    fn start_read_of_any(&mut self, id: TransactionId, at: Spot) -> bool {
        let cause = self.ftl.blocks.cause_of_read(self.ftl.blocks.block_of(self.transactions[id].ppn));
        let starts = self.start_read(id, cause, at);
        if starts {
            self.array.draft_mut(at).purpose = match cause {
                ReadCause::Wear => Purpose::Wear,
                ReadCause::Fold => Purpose::Fold,
                _ => Purpose::OfClass,
            };
        }
        starts
    }

    /// Starts a read of units that a mapping scheme copies.
    fn start_merge_read(&mut self, id: TransactionId, at: Spot) -> bool {
        let starts = self.start_read(id, ReadCause::Merge, at);
        self.array.draft_mut(at).purpose = self.transactions[id].purpose();
        starts
    }

    /// Starts a program of units that a mapping scheme copies.
    fn start_merge_write(&mut self, id: TransactionId, at: Spot) -> bool {
        let purpose = self.transactions[id].purpose();
        let starts = self.start_kept(id, at);
        if starts {
            self.array.draft_mut(at).purpose = purpose;
        }
        starts
    }

    /// Starts a program of a translation page.
    fn start_map_write(&mut self, id: TransactionId, at: Spot) -> bool {
        let starts = self.start_kept(id, at);
        if starts {
            self.set_cell_times(at);
        }
        starts
    }

    #[inline(always)]
    fn start_read(&mut self, id: TransactionId, cause: ReadCause, at: Spot) -> bool {
        let read = self.transactions[id];
        let shape = *self.ftl.shape();
        let spans = shape.pages_per_unit > 1;
        let pages = if spans { u32::from(read.units) } else { 1 };
        self.ftl.note_read(cause, pages);
        let tag = match read.kind {
            Kind::HostRead => self.serve(read.request()),
            Kind::RmwRead => self.serve(self.transactions[read.write()].request()),
            _ => u64::MAX,
        };
        let timing = self.array.timing();
        let needed = match cause {
            ReadCause::Host | ReadCause::Rmw => timing.sectors_out(read.end),
            _ => None,
        };
        let whole = || if spans { timing.page_out } else { timing.units_out[usize::from(read.units)] };
        let data = needed.unwrap_or_else(whole);
        self.put(at, self.read(&read, pages, data, tag));
        if self.ftl.folding.is_some() {
            self.set_cache_times(at, pages);
        }
        true
    }

    /// Sets the times of the read `at` a spot if it is in the SLC cache, and counts its pages.
    #[inline(never)]
    fn set_cache_times(&mut self, at: Spot, pages: u32) {
        if self.ftl.blocks.role_at(Ppn(self.array.draft(at).ppn)) == Role::Cache {
            self.ftl.counters.slc.pages_read += u64::from(pages);
            self.set_cell_times(at);
        }
    }

    /// Returns the operation of a read of `pages` pages. Each takes the channel for `data`.
    #[inline(always)]
    pub(super) fn read(&self, read: &Transaction, pages: u32, data: Time, tag: u64) -> Operation {
        let timing = self.array.timing();
        Operation {
            kind: array::Kind::Read,
            class: read.class,
            rank: self.dispatch.rank_of(read.class),
            plane: read.plane,
            members: 1,
            pages,
            command: timing.read_command,
            data,
            cell: timing.of(CellMode::Native).read_of(|| self.page_in_block(read.ppn)),
            program: Time::ZERO,
            tag,
            ppn: read.ppn.0,
            purpose: Purpose::OfClass,
        }
    }

    /// Sets the times of the read or program `at` a spot to those of the cell mode of its block. Called for all
    /// operations that may be in a block that is not in native mode, which excludes data blocks.
    pub(super) fn set_cell_times(&mut self, at: Spot) {
        let &Operation { kind, ppn, .. } = self.array.draft(at);
        let cells = self.ftl.blocks.cells_at(Ppn(ppn));
        if cells.is_native() {
            return;
        }
        let page = self.page_in_block(Ppn(ppn));
        let times = self.array.timing().of(cells);
        let (cell, data) = match kind {
            array::Kind::Program => (times.program(page), Some(times.program_in)),
            _ => (times.read(page), None),
        };
        let operation = self.array.draft_mut(at);
        (operation.cell, operation.data) = (cell, data.unwrap_or(operation.data));
    }

    /// Returns the number of the (first) page of a unit within its block.
    #[inline]
    pub(super) fn page_in_block(&self, ppn: Ppn) -> u32 {
        let shape = self.ftl.shape();
        shape.units_per_page.divide(self.ftl.blocks.offset_in_block(ppn)) * shape.pages_per_unit
    }

    #[inline(always)]
    pub(super) fn program(&self, class: Class, plane: PlaneId, ppn: Ppn, tag: u64) -> Operation {
        let timing = self.array.timing();
        let times = timing.of(CellMode::Native);
        Operation {
            kind: array::Kind::Program,
            class,
            rank: self.dispatch.rank_of(class),
            plane,
            members: 1,
            pages: self.ftl.shape().pages_per_unit,
            command: timing.program_command,
            data: times.program_in,
            cell: times.program_of(|| self.page_in_block(ppn)),
            program: Time::ZERO,
            tag,
            ppn: ppn.0,
            purpose: Purpose::OfClass,
        }
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
        let has_room = self.ftl.blocks.takes_host_write(plane) || self.takes_own(id, plane);
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
        let mut count = 1;
        let kept = if self.config.nand.advanced.copy_back_modify { self.read_fused(id) } else { None };
        self.bind(id, first);
        let mut last = id;
        while count < group && !lent {
            let key = (self.array.lun_of(plane), plane, rank);
            let more = self.dispatch.take_companion(&mut self.transactions, key, class);
            if more.is_none() {
                break;
            }
            self.bind(more, Ppn(first.0 + count));
            self.transactions[last].next = more;
            last = more;
            count += 1;
        }
        self.transactions[last].next = TransactionId::NONE;
        self.pad(first, count, group);
        let cause = cause_of(self.durability.as_deref(), &self.ftl, &self.transactions, (id, count));
        let is_elsewhere = || lent || frontier != self.ftl.blocks.host_frontier(plane, class);
        if cause == ProgramCause::Host && self.ftl.classes.is_some() && is_elsewhere() {
            self.ftl.note_elsewhere(class, count);
        }
        self.note_writes(plane, is_cached, cause, count);
        self.observe_writes(first, group, cause, id);
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
        self.jobs.note_taken(&self.ftl, plane).for_each(|plane| self.clean(plane));
        let tag = self.interface.tag_of(self.transactions[id].request());
        let program = self.program(Class::HostProgram, plane, first, tag);
        match kept {
            Some(kept) => self.put(at, self.fused(id, kept, program)),
            None if is_cached => self.put_cached(at, program),
            None => self.put(at, program),
        }
    }

    /// Counts a program of `count` units, in the SLC cache or in a native block.
    #[inline]
    fn note_writes(&mut self, plane: PlaneId, is_cached: bool, cause: ProgramCause, count: u32) {
        if is_cached {
            self.ftl.note_cache_program(plane, cause, count);
        } else {
            self.ftl.note_program_in(plane, cause, count);
        }
    }

    /// Stores a program in the SLC cache `at` a spot. Returns `true`, as [`Device::put`] does.
    #[inline(never)]
    fn put_cached(&mut self, at: Spot, program: Operation) -> bool {
        self.put(at, program);
        self.set_cell_times(at);
        true
    }

    /// Returns `true` if a write is of the device itself and goes to native blocks, because the SLC cache has no room.
    #[cold]
    fn takes_own(&self, id: TransactionId, plane: PlaneId) -> bool {
        self.ftl.is_own(self.transactions[id].lpn) && self.ftl.blocks.takes_own_write(plane)
    }

    /// Starts the read of a write that is fused with it (`copy_back_modify`). Returns the address of the sectors that
    /// the write keeps, or `None` if there are none.
    #[inline]
    fn read_fused(&mut self, id: TransactionId) -> Option<Ppn> {
        let Transaction { complete, source, .. } = self.transactions[id];
        if !complete && source.is_none() {
            self.observe_completed(id, TransactionId::NONE); // A trim has dropped the rest.
        }
        (!complete && source.is_some()).then(|| {
            self.ftl.note_read(ReadCause::Rmw, 1);
            self.check_rmw_read(id, source, 1);
            self.observe_kept(id, source);
            source
        })
    }

    /// Returns the operation of a write that is fused with the read of the sectors that it keeps, which are at `kept`.
    #[cold]
    fn fused(&self, id: TransactionId, kept: Ppn, program: Operation) -> Operation {
        let (timing, Transaction { first, end, .. }) = (self.array.timing(), self.transactions[id]);
        Operation {
            kind: array::Kind::CopyBack,
            command: timing.read_command,
            data: timing.sectors_in[usize::from(end - first)],
            cell: timing.of(CellMode::Native).read_of(|| self.page_in_block(kept)),
            program: program.cell,
            ..program
        }
    }

    /// Completes the data of a fused write that will not be programmed, from the address of the sectors that it keeps.
    pub(super) fn complete_fused(&mut self, id: TransactionId) {
        let Transaction { complete, source, .. } = self.transactions[id];
        if self.config.nand.advanced.copy_back_modify && !complete && source.is_some() {
            self.check_rmw_read(id, source, 1);
            self.observe_kept(id, source);
            self.contents_complete(id);
        }
    }

    /// Binds a write to the physical address `ppn`, and invalidates the old copy. The block that holds the old copy
    /// cannot be erased until the program completes.
    #[inline]
    pub(super) fn bind(&mut self, id: TransactionId, ppn: Ppn) {
        self.serve(self.transactions[id].request());
        let write = &mut self.transactions[id];
        write.ppn = ppn;
        let old = std::mem::replace(&mut write.source, Ppn::NONE);
        let lpn = write.lpn;
        self.ftl.map.set_owner(ppn, lpn.0);
        self.fetch_from_memory(id, lpn);
        if old.is_some() {
            self.ftl.blocks.invalidate(old);
            self.ftl.counters.units_invalidated += 1;
            let block = self.ftl.blocks.depend(old);
            self.transactions[id].dependency = block;
            self.observe_bound(id, old);
        }
    }

    /// Marks the units of a program of `group` units that hold no data as padding.
    #[inline]
    fn pad(&mut self, first: Ppn, count: u32, group: u32) {
        for ppn in first.0 + count..first.0 + group {
            self.ftl.map.set_owner(Ppn(ppn), PADDING);
        }
    }

    /// Drops a copy operation of garbage collection because the device is read-only. The units stay at their old
    /// addresses.
    fn leave_unmoved(&mut self, id: TransactionId) -> bool {
        let plane = self.transactions.remove(id).plane;
        self.jobs[plane].busy = false;
        self.end_hold(plane);
        false
    }

    /// Binds the program of units that garbage collection has read. Drops units that were invalidated since, and starts
    /// nothing if none is left.
    fn start_copies(&mut self, id: TransactionId, at: Spot) -> bool {
        let plane = self.transactions[id].plane;
        if self.ftl.is_read_only() {
            return self.leave_unmoved(id);
        }
        self.drop_invalid(plane, false);
        let group = self.ftl.shape().units_per_program;
        let moving = &mut self.jobs[plane].moving;
        let first_copy = moving.copies.first().copied();
        let count = moving.copies.len().min(group as usize);
        let Some(first_copy) = first_copy else {
            self.transactions.remove(id);
            self.jobs[plane].busy = false;
            self.clean(plane);
            return false;
        };
        let free_blocks = self.ftl.blocks.free_blocks(plane, Role::Data);
        let class = self.ftl.class_of(first_copy.lpn);
        let blocks = &self.ftl.blocks;
        let cause = if blocks.moves_for_reasons() {
            blocks.cause_of_copy(blocks.block_of(first_copy.from))
        } else {
            ProgramCause::Gc
        };
        let frontier = match cause {
            ProgramCause::Wear => blocks.frontier_for_copy(plane, first_copy.from, class),
            _ => blocks.frontier_for_moved(plane, class),
        };
        moving.writing = count;
        let first = self.ftl.bind_copies(frontier, &moving.copies[..count], group, |_, _, _| {});
        self.ftl.note_program_in(plane, cause, count as u32);
        self.transactions[id].ppn = first;
        self.observe_copies(plane, first, group, false);
        if self.ftl.blocks.free_blocks(plane, Role::Data) != free_blocks || self.ftl.shape().single_frontier {
            self.ftl.refresh_ready(plane);
        }
        self.put(at, self.program(self.transactions[id].class, plane, first, u64::MAX));
        match cause {
            ProgramCause::Wear => self.array.draft_mut(at).purpose = Purpose::Wear,
            ProgramCause::Fold => self.array.draft_mut(at).purpose = Purpose::Fold,
            _ => {}
        }
        true
    }

    /// Binds a page that garbage collection moves by copy-back. If this needs more wasted pages than allowed, reads the
    /// page instead, to program it through the controller.
    fn start_copy_back(&mut self, id: TransactionId, at: Spot) -> bool {
        let plane = self.transactions[id].plane;
        if self.ftl.is_read_only() {
            return self.leave_unmoved(id);
        }
        self.drop_invalid(plane, true);
        if self.jobs[plane].moving.back.is_empty() {
            self.transactions.remove(id);
            self.jobs[plane].busy = false;
            self.clean(plane);
            return false;
        }
        let shape = *self.ftl.shape();
        let page_units = shape.units_per_page.divisor();
        let first = self.transactions[id].ppn;
        let from = Ppn(first.0 / page_units * page_units);
        if !self.make_parity_fit(plane, from) {
            let job = &mut self.jobs[plane];
            job.moving.copies.append(&mut job.moving.back);
            self.transactions[id].kind = Kind::GcRead;
            self.transactions[id] = self.transactions[id].of_job(plane);
            return self.start_gc_read(id, at);
        }
        let free_blocks = self.ftl.blocks.free_blocks(plane, Role::Data);
        let to = self.ftl.blocks.advance(self.frontier_of_back(plane, from), page_units);
        self.pad(to, 0, shape.units_per_program);
        let job = &mut self.jobs[plane];
        for copy in &job.moving.back {
            self.ftl.map.set_owner(Ppn(to.0 + copy.from.0 - from.0), copy.lpn);
        }
        self.ftl.note_copy_back(self.ftl.blocks.block_of(from), job.moving.back.len() as u32);
        self.transactions[id].ppn = to;
        self.observe_copies(plane, to, page_units, true);
        if self.ftl.blocks.free_blocks(plane, Role::Data) != free_blocks || shape.single_frontier {
            self.ftl.refresh_ready(plane);
        }
        let timing = self.array.timing();
        let times = timing.of(CellMode::Native);
        let class = self.transactions[id].class;
        let operation = Operation {
            kind: array::Kind::CopyBack,
            command: timing.read_command,
            data: Time::ZERO,
            cell: times.read_of(|| self.page_in_block(from)),
            program: times.program_of(|| self.page_in_block(to)),
            purpose: if self.ftl.blocks.is_cold(self.ftl.blocks.block_of(from)) {
                Purpose::Wear
            } else {
                Purpose::OfClass
            },
            ..self.program(class, plane, to, u64::MAX)
        };
        self.put(at, operation)
    }

    /// Returns the frontier that copy-back moves a page of a victim to.
    pub(super) fn frontier_of_back(&self, plane: PlaneId, from: Ppn) -> FrontierId {
        self.ftl.blocks.frontier_for_copy(plane, from, 0)
    }

    /// Returns `true` if copy-back can move the page `from` to the next page of its frontier. Restriction *b* requires
    /// that both pages are odd or both even. Skips a page of the frontier if necessary and if the waste is allowed.
    fn make_parity_fit(&mut self, plane: PlaneId, from: Ppn) -> bool {
        let shape = *self.ftl.shape();
        let page_units = shape.units_per_page.divisor();
        let advanced = &self.config.nand.advanced;
        let (blind, keeps_parity) = (advanced.copy_back == Waste::Blind, advanced.copy_back_parity);
        let frontier = self.frontier_of_back(plane, from);
        let next = self.ftl.blocks.next_ppn(frontier);
        let next_page = next.map_or(0, |ppn| self.page_in_block(ppn));
        let fits = !keeps_parity || (self.page_in_block(from) ^ next_page) & 1 == 0;
        let job = &mut self.jobs[plane];
        let invalid = page_units - job.moving.back.len() as u32;
        let cost = invalid + if fits { 0 } else { page_units };
        if cost == 0 {
            return true;
        }
        if !blind || job.gain < cost + shape.units_per_program {
            return false;
        }
        job.gain -= cost;
        if let (false, Some(ppn)) = (fits, next) {
            self.ftl.waste(frontier, page_units, ProgramCause::WasteCopyback);
            self.program_ended(ppn, Role::Data);
        }
        true
    }

    /// Returns `true` if the next page to be moved by copy-back could be moved if it was bound now: see
    /// [`Device::make_parity_fit`].
    pub(super) fn stays_copy_back(&self, plane: PlaneId) -> bool {
        let shape = self.ftl.shape();
        let page_units = shape.units_per_page.divisor();
        let job = &self.jobs[plane];
        let valid = job.moving.back.iter().filter(|copy| self.ftl.blocks.is_valid(copy.from));
        let (Some(first), count) = (valid.clone().next(), valid.count() as u32) else { return false };
        let next = self.ftl.blocks.next_ppn(self.frontier_of_back(plane, first.from));
        let next = next.map_or(0, |ppn| self.page_in_block(ppn));
        let fits = (self.page_in_block(first.from) ^ next) & 1 == 0;
        let cost = page_units - count + if fits { 0 } else { page_units };
        let blind = self.config.nand.advanced.copy_back == Waste::Blind;
        cost == 0 || (blind && job.gain >= cost + shape.units_per_program)
    }

    #[inline(always)]
    fn start_erase(&mut self, id: TransactionId, at: Spot) -> bool {
        let erase = self.transactions[id];
        debug_assert!(
            self.options.mutant == Mutant::EraseEarly || self.ftl.blocks.can_erase(erase.block()),
            "a block is erased although something depends on it"
        );
        self.observe_flash(FlashEvent::EraseBegun { block: erase.block() });
        let is_folded = self.ftl.blocks.block(erase.block()).role == Role::Cache;
        let purpose = if is_folded { Purpose::Fold } else { self.ftl.blocks.purpose_of_erase(erase.block()) };
        let timing = self.array.timing();
        let operation = Operation {
            kind: array::Kind::Erase,
            class: erase.class,
            rank: self.dispatch.rank_of(erase.class),
            plane: erase.plane,
            members: 1,
            pages: 1,
            command: timing.erase_command,
            data: Time::ZERO,
            cell: timing.erase,
            program: Time::ZERO,
            tag: u64::MAX,
            ppn: erase.ppn.0,
            purpose,
        };
        if self.ftl.shape().is_exclusive {
            self.end_hold(erase.plane);
        }
        self.put(at, operation)
    }

    fn start_summary(&mut self, id: TransactionId, at: Spot) -> bool {
        let summary = self.transactions[id];
        self.ftl.note_summary(self.ftl.blocks.block(self.ftl.blocks.block_of(summary.ppn)).role);
        self.observe_summary(summary.ppn);
        let mut operation = self.program(Class::Summary, summary.plane, summary.ppn, u64::MAX);
        operation.pages = 1;
        self.put(at, operation);
        self.set_cell_times(at);
        self.array.draft_mut(at).data = self.array.timing().summary_in;
        true
    }
}
