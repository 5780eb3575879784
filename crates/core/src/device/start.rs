//! Starting operations: a transaction is bound to its place when its LUN and its channel are granted.

use super::{Device, Mutant};
use crate::config::advanced::Waste;
use crate::durability::flash::FlashEvent;
use crate::ftl::mapping::PADDING;
use crate::ftl::space::Role;
use crate::metrics::counters::{ProgramCause, ReadCause};
use crate::nand::array::{self, Cycles, LunState, Operation, Spot};
use crate::scheduler::RANKS;
use crate::sim::id::{LunId, PlaneId, Ppn, RequestId, TransactionId, UnitId};
use crate::sim::time::Time;
use crate::work::{Class, Kind, Task, Transaction};

impl Device {
    /// A unit has been granted its channel, or its LUN has.
    pub(super) fn serve_unit(&mut self, unit: UnitId) {
        let lun = self.array.lun_of_unit(unit);
        if self.array.state(lun) != LunState::Requesting {
            return if self.array.asks(unit) { self.ahead_granted(unit) } else { self.resume(unit) };
        }
        // It was granted the channel for what was first in line when it asked. What is more urgent and came later is
        // its next operation: this one holds the LUN since then.
        let next = self.next_of(lun, self.array.rank(lun));
        self.start_or_rest(unit, lun, next, true);
    }

    /// Starts a LUN, if there is anything to start.
    fn start_or_rest(&mut self, unit: UnitId, lun: LunId, next: Option<(u8, TransactionId)>, has_channel: bool) {
        let started = if self.binding_sets_off {
            self.alone(|device| device.start_if_any(unit, lun, next, has_channel))
        } else {
            self.start_if_any(unit, lun, next, has_channel)
        };
        if !started && (!has_channel || self.ftl.shape().paces) {
            // What needed no channel turned out to be none; what comes behind it may need one.
            self.tasks.push(Task::Start(lun));
        }
    }

    /// Starts a LUN, or sets it idle if there is nothing to start. Returns `true` if it has started.
    #[inline(always)]
    fn start_if_any(&mut self, unit: UnitId, lun: LunId, next: Option<(u8, TransactionId)>, has_channel: bool) -> bool {
        let started = self.start(lun, next, has_channel);
        if !started {
            self.rest(unit, lun);
        }
        started
    }

    /// Binds something, and books its channel, if binding may set off operations on other LUNs: those hear of them
    /// afterwards.
    #[inline(never)]
    pub(super) fn alone<T>(&mut self, act: impl FnOnce(&mut Device) -> T) -> T {
        self.while_holding(self.binding_sets_off, act)
    }

    /// A LUN that could start something finds nothing.
    fn rest(&mut self, unit: UnitId, lun: LunId) {
        if self.dispatch.overlapping.any && self.array.is_suspended(unit) {
            return self.resume_suspended(unit);
        }
        self.set_idle(lun);
    }

    /// Lets a LUN look at what waits for it.
    #[inline(always)]
    pub(super) fn kick(&mut self, lun: LunId) {
        match self.array.state(lun) {
            LunState::Idle => self.look(lun),
            LunState::Busy if self.dispatch.overlapping.any => self.overlap(lun),
            LunState::Requesting if self.dispatch.reconsiders => self.reconsider(lun),
            _ => {}
        }
    }

    /// Starts an idle LUN on the first operation that waits for it, or queues it for its channel.
    #[inline]
    pub(super) fn look(&mut self, lun: LunId) {
        if let Some((rank, id)) = self.next_for(lun) {
            self.kick_for(lun, rank, id);
        } else if self.ftl.shape().paces {
            self.clean_idle(lun);
        }
    }

    /// Starts a LUN that waits for its channel on a more urgent operation that has arrived meanwhile.
    fn reconsider(&mut self, lun: LunId) {
        let Some((rank, id)) = self.choose_own(lun) else { return };
        if rank < self.array.rank(lun) {
            self.array.withdraw(lun, self.now);
            self.note_idle(lun, true);
            self.kick_for(lun, rank, id);
        }
    }

    /// Starts a LUN that takes commands on `id`, the first that waits for it, or lines it up for its channel.
    pub(super) fn kick_for(&mut self, lun: LunId, rank: u8, id: TransactionId) {
        let timing = self.array.timing();
        let needs_channel = match self.transactions[id].kind {
            Kind::HostRead | Kind::RmwRead | Kind::GcRead | Kind::CopyBack | Kind::MapRead | Kind::MergeRead => {
                timing.read_command > Time::ZERO
            }
            Kind::Erase => timing.erase_command > Time::ZERO,
            _ => true,
        };
        let channel = self.array.channel_of(lun);
        let has_channel = self.array.channel_is_idle(channel, self.now);
        if !needs_channel || has_channel {
            return self.start_or_rest(UnitId(lun.0 * self.array.units_per_lun()), lun, Some((rank, id)), has_channel);
        }
        let is_program = array::Kind::from(self.transactions[id].kind) == array::Kind::Program;
        let cycles = if is_program { Cycles::Data } else { Cycles::Command };
        self.array.request_start(lun, rank, cycles, self.now);
        self.note_idle(lun, false);
        self.serve_channel(channel);
    }

    /// Returns the transaction that `lun` takes next, with its rank: what the scheduler picks if it looks, otherwise
    /// the first by rank.
    #[inline(always)]
    pub(super) fn next_for(&mut self, lun: LunId) -> Option<(u8, TransactionId)> {
        if self.dispatch.chooses { self.choose_next(lun) } else { self.first_own(lun) }
    }

    /// Returns the transaction of `rank` that `lun` takes next, with its rank.
    #[inline]
    fn next_of(&mut self, lun: LunId, rank: u8) -> Option<(u8, TransactionId)> {
        if self.dispatch.chooses {
            return self.choose_next_of(lun, rank);
        }
        let own = self.first_of_own(lun, rank);
        own.is_some().then_some((rank, own))
    }

    /// Removes `id`, the choice of a LUN, from the queue of the LUN.
    #[inline(always)]
    pub(super) fn take_next(&mut self, lun: LunId, rank: u8, id: TransactionId) {
        if self.dispatch.chooses {
            return self.take_chosen(lun, rank, id);
        }
        self.dispatch.waiting.pop(lun, self.transactions[id].plane, rank, &mut self.transactions);
    }

    /// The transaction that `lun` takes next, and its rank: of its own lines or of the pool, by rank, then by age.
    #[inline(always)]
    pub(super) fn first_for(&self, lun: LunId) -> Option<(u8, TransactionId)> {
        if self.dispatch.dynamic { self.first_with_pool(lun) } else { self.first_own(lun) }
    }

    /// The transaction of `rank` that `lun` takes next, with its rank.
    pub(super) fn first_of(&self, lun: LunId, rank: u8) -> Option<(u8, TransactionId)> {
        let own = self.first_of_own(lun, rank);
        if self.dispatch.dynamic && rank == self.dispatch.ranks[Class::HostProgram as usize] {
            return self.or_of_pool(lun, rank, own);
        }
        own.is_some().then_some((rank, own))
    }

    /// The first transaction in the lines of `lun`, with its rank.
    #[inline(always)]
    pub(super) fn first_own(&self, lun: LunId) -> Option<(u8, TransactionId)> {
        let rank = self.dispatch.waiting.rank_of_first(lun)?;
        Some((rank, self.first_of_own(lun, rank)))
    }

    /// The first transaction of `rank` in the lines of `lun`, or `NONE`.
    #[inline(always)]
    fn first_of_own(&self, lun: LunId, rank: u8) -> TransactionId {
        self.dispatch.waiting.oldest(lun, rank)
    }

    pub(super) fn first_with_pool(&self, lun: LunId) -> Option<(u8, TransactionId)> {
        let (rank, own) = self.first_own(lun).unwrap_or((RANKS as u8, TransactionId::NONE));
        self.or_of_pool(lun, rank, own)
    }

    /// `own`, where that is not `NONE`, or the write of the pool that goes before it.
    fn or_of_pool(&self, lun: LunId, rank: u8, own: TransactionId) -> Option<(u8, TransactionId)> {
        let (pooled, id) = (
            self.dispatch.ranks[Class::HostProgram as usize],
            self.first_of_pool(PlaneId(self.array.planes_of(lun).start)),
        );
        let turn = |rank: u8, id: TransactionId| (rank, self.transactions[id].order);
        let earlier = id.is_some() && (own.is_none() || turn(pooled, id) < turn(rank, own));
        if earlier && self.has_ready_plane(lun) {
            return Some((pooled, id));
        }
        own.is_some().then_some((rank, own))
    }

    /// Starts the next command of a LUN, `next` where that is known; false when there is none that can start.
    #[inline(always)]
    fn start(&mut self, lun: LunId, next: Option<(u8, TransactionId)>, has_channel: bool) -> bool {
        // What binding sets off must not start the LUN a second time.
        self.array.set_binding(lun);
        self.note_idle(lun, false);
        let next = if next.is_some() { next } else { self.next_for(lun) };
        next.is_some_and(|(rank, id)| self.start_from(lun, rank, id, has_channel))
    }

    /// Starts a LUN on `id`, or where that cannot start or need not on what comes behind it.
    #[inline(never)]
    fn start_from(&mut self, lun: LunId, mut rank: u8, mut id: TransactionId, has_channel: bool) -> bool {
        loop {
            if self.dispatch.overlapping.any && self.only_reads(lun) && self.transactions[id].kind != Kind::HostRead {
                return false;
            }
            self.take_next(lun, rank, id);
            if self.start_one(lun, rank, id) {
                if self.dispatch.overlapping.any {
                    self.overlap(lun);
                }
                return true;
            }
            if !has_channel {
                return false;
            }
            let Some(next) = self.next_for(lun) else { return false };
            (rank, id) = next;
        }
    }

    /// Starts a LUN on `id`, with what other planes or dies do together with it; whether it could.
    #[inline(always)]
    fn start_one(&mut self, lun: LunId, rank: u8, id: TransactionId) -> bool {
        if self.dispatch.merging.blind {
            self.level(id, rank);
        }
        let plane = self.transactions[id].plane;
        let unit = self.array.unit_of(plane);
        if !self.bind_transaction(id, rank, Spot::Unit(unit)) {
            return false;
        }
        // Mostly nothing else waits.
        if self.dispatch.merging.any && self.others_wait(lun, plane, rank) {
            self.start_merged(lun, rank, id, unit);
            return true;
        }
        self.dispatch.running[unit] = id;
        self.array.start(unit, self.now);
        self.watch_start(unit);
        true
    }

    /// Puts together `at` a spot what the array does for a transaction that is first in line, with its place; false
    /// where it turns out that it cannot start or need not.
    #[inline(always)]
    fn bind_transaction(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool {
        self.transactions[id].next = TransactionId::NONE;
        match self.transactions[id].kind {
            Kind::HostRead => self.start_read(id, ReadCause::Host, at),
            Kind::RmwRead => self.start_read(id, ReadCause::Rmw, at),
            Kind::GcRead => self.start_read(id, ReadCause::Gc, at),
            Kind::Write => self.start_write(id, rank, at),
            Kind::GcWrite => self.start_copies(id, at),
            Kind::CopyBack => self.start_copy_back(id, at),
            Kind::Erase => self.start_erase(id, at),
            Kind::Summary => self.start_summary(id, at),
            Kind::MergeRead => self.start_read(id, ReadCause::Merge, at),
            Kind::MergeWrite => self.start_placed(id, at, |scheme, device| scheme.bind_copies(device, id)),
            Kind::MapRead => self.start_map_read(id, at),
            Kind::MapWrite => self.start_map_write(id, at),
            Kind::SlotRead | Kind::Translate | Kind::MapHold => unreachable!("they wait for others, not for LUNs"),
        }
    }

    /// The same, not inlined, for what is merged or overlaps with others.
    #[inline(never)]
    pub(super) fn bind_to_merge(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool {
        self.bind_transaction(id, rank, at)
    }

    /// An operation is put together, and can start.
    #[inline(always)]
    pub(super) fn put(&mut self, at: Spot, operation: Operation) -> bool {
        *self.array.draft_mut(at) = operation;
        true
    }

    /// Whether a LUN takes reads of the host only, because what it does is suspended.
    fn only_reads(&self, lun: LunId) -> bool {
        self.array.is_suspended(UnitId(lun.0))
    }

    /// Notes that a request is served from now on.
    #[inline]
    pub(super) fn serve(&mut self, request: RequestId) -> u64 {
        if request.is_none() {
            return u64::MAX; // The buffer writes for nobody in particular.
        }
        let pending = &mut self.front.requests[request];
        pending.start = pending.start.min(self.now);
        pending.request.tag
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
        self.put(at, self.read(&read, pages, data, tag))
    }

    /// A read of so many pages, each of which takes the channel for `data`.
    #[inline(always)]
    pub(super) fn read(&self, read: &Transaction, pages: u32, data: Time, tag: u64) -> Operation {
        let timing = self.array.timing();
        Operation {
            kind: array::Kind::Read,
            class: read.class,
            rank: self.dispatch.ranks[read.class as usize],
            plane: read.plane,
            members: 1,
            pages,
            command: timing.read_command,
            data,
            cell: timing.read(self.page_in_block(read.place)),
            program: Time::ZERO,
            tag,
            place: read.place.0,
        }
    }

    /// The number of a unit's (first) page within its block.
    #[inline]
    pub(super) fn page_in_block(&self, ppn: Ppn) -> u32 {
        let shape = self.ftl.shape();
        shape.units_per_page.divide(self.ftl.blocks.offset_in_block(ppn)) * shape.pages_per_unit
    }

    #[inline(always)]
    pub(super) fn program(&self, class: Class, plane: PlaneId, place: Ppn, tag: u64) -> Operation {
        let timing = self.array.timing();
        Operation {
            kind: array::Kind::Program,
            class,
            rank: self.dispatch.ranks[class as usize],
            plane,
            members: 1,
            pages: self.ftl.shape().pages_per_unit,
            command: timing.program_command,
            data: timing.program_in,
            cell: timing.program(self.page_in_block(place)),
            program: Time::ZERO,
            tag,
            place: place.0,
        }
    }

    /// Binds a write, with those behind it that fill the same program command. A plane without room gives it up.
    #[inline(always)]
    fn start_write(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool {
        if self.ftl.shape().hooks.places {
            return self.start_placed(id, at, |scheme, device| scheme.bind_write(device, id));
        }
        if self.ftl.is_read_only() {
            self.answer_unwritten(id);
            return false;
        }
        let plane = self.transactions[id].plane;
        // A write that must not wait for an erase may have room of garbage collection.
        let has_room = self.ftl.blocks.takes_host_write(plane);
        let lent = !has_room && self.retry_of(id, plane).is_none();
        if lent && self.freeing_of(id, plane).is_none() {
            self.stall(id, plane);
            return false;
        }
        let group = self.ftl.shape().units_per_program;
        let stock = self.ftl.blocks.free_blocks(plane, Role::Data);
        let class = self.transactions[id].temperature;
        let blocks = &self.ftl.blocks;
        let frontier = if lent { blocks.gc_frontier(plane) } else { blocks.frontier_for_host(plane, class) };
        let first = self.ftl.blocks.advance(frontier, group);
        let mut count = 1;
        self.bind(id, first);
        let mut last = id;
        while count < group && !lent {
            let more = self.pop_companion(rank, plane, class);
            if more.is_none() {
                break;
            }
            self.bind(more, Ppn(first.0 + count));
            self.transactions[last].next = more;
            last = more;
            count += 1;
        }
        self.transactions[last].next = TransactionId::NONE;
        self.pad(first, count);
        let cause = if self.durability.is_some() { self.cause_of(id, count) } else { ProgramCause::Host };
        let is_elsewhere = || lent || frontier != self.ftl.blocks.host_frontier(plane, class);
        if cause == ProgramCause::Host && self.ftl.classes.is_some() && is_elsewhere() {
            self.ftl.note_elsewhere(class, count);
        }
        self.ftl.note_program(cause, count);
        self.observe_writes(first, group, cause, id);
        if self.ftl.blocks.free_blocks(plane, Role::Data) != stock {
            self.block_taken(plane);
            if !has_room {
                // The rest of the block is for writes that wait.
                self.unstall(plane);
            }
        } else if self.dispatch.dynamic {
            self.ftl.refresh_ready(plane);
        }
        if self.ftl.shape().paces {
            self.clean_behind(plane);
        }
        let tag = self.front.tag_of(self.transactions[id].request());
        self.put(at, self.program(Class::HostProgram, plane, first, tag))
    }

    /// Returns the cause of a program of `count` writes: those that are chained behind `first`.
    fn cause_of(&self, first: TransactionId, count: u32) -> ProgramCause {
        if count == 1 && self.is_of_journal(self.transactions[first].lpn) {
            return ProgramCause::Journal;
        }
        let is_checkpoint = self.chain(first).all(|id| self.is_of_checkpoint(self.transactions[id].lpn));
        if is_checkpoint { ProgramCause::Checkpoint } else { ProgramCause::Host }
    }

    /// Takes the next write that can fill the program of a write of this class to `plane`: from the queue of the plane,
    /// where operations of other kinds may wait between the writes, or from the pool. Returns `NONE` without one.
    fn pop_companion(&mut self, rank: u8, plane: PlaneId, class: u8) -> TransactionId {
        let key = (self.array.lun_of(plane), plane, rank);
        let id = self.dispatch.waiting.pop_suitable(key, &mut self.transactions, |transactions, id| {
            let Transaction { kind, temperature, .. } = transactions[id];
            kind == Kind::Write && temperature == class
        });
        if id.is_some() { id } else { self.take_of_class(plane, class) }
    }

    /// Gives a write its place: what it supersedes is stale from now on, and kept until the program has ended.
    #[inline]
    pub(super) fn bind(&mut self, id: TransactionId, place: Ppn) {
        self.serve(self.transactions[id].request());
        let write = &mut self.transactions[id];
        write.place = place;
        let old = std::mem::replace(&mut write.source, Ppn::NONE);
        let lpn = write.lpn;
        self.ftl.map.set_owner(place, lpn.0);
        self.fetch_from_memory(id, lpn);
        if old.is_some() {
            self.ftl.blocks.invalidate(old);
            self.ftl.counters.units_superseded += 1;
            let block = self.ftl.blocks.depend(old);
            self.transactions[id].dependency = block;
            self.observe_bound(id, old);
        }
    }

    /// Marks the places of a program command that hold no data.
    #[inline]
    fn pad(&mut self, first: Ppn, count: u32) {
        for place in first.0 + count..first.0 + self.ftl.shape().units_per_program {
            self.ftl.map.set_owner(Ppn(place), PADDING);
        }
    }

    /// A device that takes no writes moves nothing: what cleaning has in hand stays where it is.
    fn leave_unmoved(&mut self, id: TransactionId) -> bool {
        let plane = self.transactions.remove(id).plane;
        self.jobs[plane].busy = false;
        false
    }

    /// Binds what cleaning has read. Units that were superseded meanwhile are dropped; without any left, nothing
    /// starts.
    fn start_copies(&mut self, id: TransactionId, at: Spot) -> bool {
        let plane = self.transactions[id].plane;
        if self.ftl.is_read_only() {
            return self.leave_unmoved(id);
        }
        self.drop_stale_copies(plane);
        let group = self.ftl.shape().units_per_program;
        let copies = &self.jobs[plane].copies;
        let class = copies.first().map_or(0, |copy| self.ftl.class_of(copy.lpn));
        let count = copies.len().min(group as usize);
        if count == 0 {
            self.transactions.remove(id);
            self.jobs[plane].busy = false;
            self.clean(plane);
            return false;
        }
        let stock = self.ftl.blocks.free_blocks(plane, Role::Data);
        let frontier = self.ftl.blocks.frontier_for_moved(plane, class);
        let first = self.ftl.blocks.advance(frontier, group);
        let job = &mut self.jobs[plane];
        job.writing = count;
        for (index, copy) in job.copies[..count].iter_mut().enumerate() {
            copy.to = Ppn(first.0 + index as u32);
            self.ftl.map.set_owner(copy.to, copy.lpn);
        }
        self.pad(first, count as u32);
        self.ftl.note_program(ProgramCause::Gc, count as u32);
        self.transactions[id].place = first;
        self.observe_copies(plane, first, group, false);
        if self.ftl.blocks.free_blocks(plane, Role::Data) != stock || self.ftl.shape().single_frontier {
            self.ftl.refresh_ready(plane);
        }
        self.put(at, self.program(self.transactions[id].class, plane, first, u64::MAX))
    }

    /// Binds a page that cleaning moves within its plane. Where that cannot be without waste that is not allowed, it is
    /// read, and programmed through the controller.
    fn start_copy_back(&mut self, id: TransactionId, at: Spot) -> bool {
        let plane = self.transactions[id].plane;
        if self.ftl.is_read_only() {
            return self.leave_unmoved(id);
        }
        self.drop_stale_back(plane);
        if self.jobs[plane].back.is_empty() {
            self.transactions.remove(id);
            self.jobs[plane].busy = false;
            self.clean(plane);
            return false;
        }
        let shape = *self.ftl.shape();
        let page_units = shape.units_per_page.divisor();
        let first = self.transactions[id].place;
        let from = Ppn(first.0 / page_units * page_units);
        if !self.make_parity_fit(plane, from) {
            let job = &mut self.jobs[plane];
            job.copies.append(&mut job.back);
            self.transactions[id].kind = Kind::GcRead;
            return self.start_read(id, ReadCause::Gc, at);
        }
        let stock = self.ftl.blocks.free_blocks(plane, Role::Data);
        let to = self.ftl.blocks.advance(self.ftl.blocks.gc_frontier(plane), page_units);
        self.pad(to, 0);
        let job = &mut self.jobs[plane];
        for copy in &mut job.back {
            copy.to = Ppn(to.0 + copy.from.0 - from.0);
            self.ftl.map.set_owner(copy.to, copy.lpn);
        }
        self.ftl.note_copy_back(job.back.len() as u32);
        self.transactions[id].place = to;
        self.observe_copies(plane, to, page_units, true);
        if self.ftl.blocks.free_blocks(plane, Role::Data) != stock || shape.single_frontier {
            self.ftl.refresh_ready(plane);
        }
        let timing = self.array.timing();
        let class = self.transactions[id].class;
        let operation = Operation {
            kind: array::Kind::CopyBack,
            command: timing.read_command,
            data: Time::ZERO,
            cell: timing.read(self.page_in_block(from)),
            program: timing.program(self.page_in_block(to)),
            ..self.program(class, plane, to, u64::MAX)
        };
        self.put(at, operation)
    }

    /// Whether the next page of the cleaning frontier may take that of `from` by copy-back (restriction *b*), after
    /// one was left out if need be and allowed.
    fn make_parity_fit(&mut self, plane: PlaneId, from: Ppn) -> bool {
        let shape = *self.ftl.shape();
        let page_units = shape.units_per_page.divisor();
        let blind = self.config.nand.advanced.copy_back == Waste::Blind;
        let next = self.ftl.blocks.next_place(self.ftl.blocks.gc_frontier(plane));
        let next_page = next.map_or(0, |place| self.page_in_block(place));
        let fits = (self.page_in_block(from) ^ next_page) & 1 == 0;
        let job = &mut self.jobs[plane];
        let stale = page_units - job.back.len() as u32;
        let cost = stale + if fits { 0 } else { page_units };
        if cost == 0 {
            return true;
        }
        if !blind || job.gain < cost + shape.units_per_program {
            return false;
        }
        job.gain -= cost;
        if let (false, Some(place)) = (fits, next) {
            let frontier = self.ftl.blocks.gc_frontier(plane);
            self.ftl.waste(frontier, page_units, ProgramCause::WasteCopyback);
            self.program_ended(place);
        }
        true
    }

    /// Whether the page that waits to be moved within a plane would be, if it was bound now: see
    /// [`Device::make_parity_fit`].
    pub(super) fn stays_copy_back(&self, plane: PlaneId) -> bool {
        let shape = self.ftl.shape();
        let page_units = shape.units_per_page.divisor();
        let job = &self.jobs[plane];
        let valid = job.back.iter().filter(|copy| self.ftl.blocks.is_valid(copy.from));
        let (Some(first), count) = (valid.clone().next(), valid.count() as u32) else { return false };
        let frontier = self.ftl.blocks.gc_frontier(plane);
        let next = self.ftl.blocks.next_place(frontier).map_or(0, |place| self.page_in_block(place));
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
            "nothing that others depend on is erased"
        );
        self.observe_flash(FlashEvent::EraseBegun { block: erase.block() });
        let timing = self.array.timing();
        let operation = Operation {
            kind: array::Kind::Erase,
            class: erase.class,
            rank: self.dispatch.ranks[erase.class as usize],
            plane: erase.plane,
            members: 1,
            pages: 1,
            command: timing.erase_command,
            data: Time::ZERO,
            cell: timing.erase,
            program: Time::ZERO,
            tag: u64::MAX,
            place: erase.place.0,
        };
        self.put(at, operation)
    }

    fn start_summary(&mut self, id: TransactionId, at: Spot) -> bool {
        let summary = self.transactions[id];
        self.ftl.note_summary();
        self.observe_summary(summary.place);
        let mut operation = self.program(Class::Summary, summary.plane, summary.place, u64::MAX);
        operation.pages = 1;
        operation.data = self.array.timing().summary_in;
        self.put(at, operation)
    }
}
