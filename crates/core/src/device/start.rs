//! Starting operations: a transaction is bound to its place when its LUN and its channel are granted.

use super::transaction::Kind;
use super::{Device, Mutant};
use crate::ftl::blocks::Stream;
use crate::ftl::mapping::PADDING;
use crate::metrics::counters::{ProgramCause, ReadCause};
use crate::nand::array::{self, Operation, Phase};
use crate::scheduler::lines::NONE;
use crate::scheduler::{Class, RANKS};
use crate::sim::id::{BlockId, LunId, PlaneId, Ppn};
use crate::sim::time::Time;

impl Device {
    /// A LUN has been granted its channel.
    pub(super) fn serve_lun(&mut self, lun: LunId) {
        match self.array.phase(lun) {
            Phase::Holding | Phase::NextPage => self.array.resume(lun, self.now),
            _ => {
                // It was granted the channel for what was first in line when it asked. What is more urgent and came
                // later is its next operation: this one holds the LUN since then.
                let next = self.first_of(lun, self.array.rank(lun));
                self.start_or_give_up(lun, next);
            }
        }
    }

    /// Starts an idle LUN on what waits for it, or lines it up for its channel.
    pub(super) fn kick(&mut self, lun: LunId) {
        if !self.lun_waits(lun) {
            return;
        }
        let Some((rank, id)) = self.first_for(lun) else { return };
        let timing = self.array.timing();
        let needs_channel = match self.transactions[id].kind {
            Kind::HostRead | Kind::RmwRead | Kind::GcRead | Kind::MapRead | Kind::MergeRead => {
                timing.read_command > Time::ZERO
            }
            Kind::Erase => timing.erase_command > Time::ZERO,
            _ => true,
        };
        let channel = self.array.channel_of(lun);
        if !needs_channel || self.array.channel_is_idle(channel, self.now) {
            return self.start_or_give_up(lun, Some((rank, id)));
        }
        self.array.request_start(lun, rank, self.now);
        self.note_idle(lun, false);
        self.serve_channel(channel);
    }

    /// Starts a LUN that has its channel, if there is anything to start. Where the map is in flash, binding may set off
    /// operations on other LUNs: those hear of them when the channel is booked.
    fn start_or_give_up(&mut self, lun: LunId, next: Option<(u8, u32)>) {
        let holds = self.ftl.map_state.is_some() && !self.hold;
        let before = if holds { std::mem::take(&mut self.held) } else { Vec::new() };
        self.hold |= holds;
        if !self.start(lun, next) {
            self.give_up(lun);
        }
        if holds {
            self.hold = false;
            let mut held = std::mem::replace(&mut self.held, before);
            held.drain(..).for_each(|lun| self.kick(lun));
            // Its room serves the next time.
            if self.held.capacity() == 0 {
                self.held = held;
            }
            if self.dynamic {
                self.offer_pool();
            }
        }
    }

    /// A LUN that has been granted its channel finds nothing to start.
    fn give_up(&mut self, lun: LunId) {
        self.trail_idle(lun);
        self.set_idle(lun);
    }

    /// The transaction that `lun` takes next, and its rank: of its own lines or of the pool, by rank, then by age.
    #[inline]
    fn first_for(&self, lun: LunId) -> Option<(u8, u32)> {
        (0..RANKS as u8).find_map(|rank| self.first_of(lun, rank))
    }

    /// The transaction of `rank` that `lun` takes next, with its rank.
    #[inline]
    fn first_of(&self, lun: LunId, rank: u8) -> Option<(u8, u32)> {
        let own = self.lines[lun.index()][usize::from(rank)].first();
        if rank == self.ranks[Class::HostProgram as usize] && !self.pool.line.is_empty() && self.has_ready_plane(lun) {
            let pool = self.pool.line.first();
            if own == NONE || self.transactions[pool].order < self.transactions[own].order {
                return Some((rank, pool));
            }
        }
        (own != NONE).then_some((rank, own))
    }

    /// Starts the next operation of a LUN, `next` where that is known; false when there is none that can start.
    fn start(&mut self, lun: LunId, next: Option<(u8, u32)>) -> bool {
        // What binding sets off must not start the LUN a second time.
        self.array.set_binding(lun);
        self.note_idle(lun, false);
        let mut next = next.or_else(|| self.first_for(lun));
        while let Some((rank, id)) = next {
            if id == self.pool.line.first() {
                self.pool.line.pop(&mut self.transactions);
                self.transactions[id].plane = self.choose_plane(lun).0;
            } else {
                self.lines[lun.index()][usize::from(rank)].pop(&mut self.transactions);
            }
            let operation = match self.transactions[id].kind {
                Kind::HostRead => Some(self.start_read(id, ReadCause::Host)),
                Kind::RmwRead => Some(self.start_read(id, ReadCause::Rmw)),
                Kind::GcRead => Some(self.start_read(id, ReadCause::Gc)),
                Kind::Write => self.start_write(id, lun, rank),
                Kind::GcWrite => self.start_copies(id),
                Kind::Erase => Some(self.start_erase(id)),
                Kind::Summary => Some(self.start_summary(id)),
                Kind::MergeRead => Some(self.start_read(id, ReadCause::Merge)),
                Kind::MergeWrite => Some(self.start_merge_write(id)),
                Kind::MapRead => Some(self.start_map_read(id)),
                Kind::MapWrite => self.start_map_write(id),
                Kind::SlotRead | Kind::Translate | Kind::MapHold => unreachable!("they wait for others, not for LUNs"),
            };
            if let Some(operation) = operation {
                self.running[lun.index()] = id;
                self.array.start(lun, operation, self.now);
                self.watch_start(lun);
                return true;
            }
            next = self.first_for(lun);
        }
        false
    }

    /// Notes that a request is served from now on.
    #[inline]
    pub(super) fn serve(&mut self, request: u32) -> u64 {
        let pending = &mut self.requests[request];
        pending.start = pending.start.min(self.now);
        pending.request.tag
    }

    fn start_read(&mut self, id: u32, cause: ReadCause) -> Operation {
        let read = self.transactions[id];
        let shape = *self.ftl.shape();
        let spans = shape.pages_per_unit > 1;
        let pages = if spans { u32::from(read.units) } else { 1 };
        self.ftl.note_read(cause, pages);
        let tag = match read.kind {
            Kind::HostRead => self.serve(read.owner),
            Kind::RmwRead => self.serve(self.transactions[read.owner].owner),
            _ => u64::MAX,
        };
        let timing = self.array.timing();
        let page = self.page_in_block(Ppn(read.place));
        Operation {
            kind: array::Kind::Read,
            class: read.class,
            rank: self.ranks[read.class as usize],
            plane: PlaneId(read.plane),
            pages,
            command: timing.read_command,
            data: if spans { timing.page_out } else { timing.units_out[usize::from(read.units)] },
            cell: timing.read(page),
            tag,
            place: read.place,
        }
    }

    /// The number of a unit's (first) page within its block.
    #[inline]
    pub(super) fn page_in_block(&self, ppn: Ppn) -> u32 {
        let shape = self.ftl.shape();
        shape.units_per_page.divide(self.ftl.blocks.offset_in_block(ppn)) * shape.pages_per_unit
    }

    pub(super) fn program(&self, class: Class, plane: PlaneId, place: Ppn, tag: u64) -> Operation {
        let timing = self.array.timing();
        Operation {
            kind: array::Kind::Program,
            class,
            rank: self.ranks[class as usize],
            plane,
            pages: self.ftl.shape().pages_per_unit,
            command: timing.program_command,
            data: timing.program_in,
            cell: timing.program(self.page_in_block(place)),
            tag,
            place: place.0,
        }
    }

    /// Binds a write, with those behind it that fill the same program command. A plane without room gives it up.
    fn start_write(&mut self, id: u32, lun: LunId, rank: u8) -> Option<Operation> {
        if self.ftl.block_map.is_some() {
            return Some(self.start_write_in_block(id));
        }
        let plane = PlaneId(self.transactions[id].plane);
        if !self.ftl.blocks.takes_host_write(plane) {
            self.stall(id, plane);
            return None;
        }
        let group = self.ftl.shape().units_per_program;
        let stock = self.ftl.blocks.stock(plane);
        let first = self.ftl.blocks.advance(plane, Stream::Host, group);
        let mut count = 1;
        self.bind(id, first);
        let mut last = id;
        while count < group {
            let more = self.pop_companion(lun, rank, plane);
            if more == NONE {
                break;
            }
            self.bind(more, Ppn(first.0 + count));
            self.transactions[last].next = more;
            last = more;
            count += 1;
        }
        self.transactions[last].next = NONE;
        self.pad(first, count);
        self.ftl.note_program(ProgramCause::Host, count);
        if self.ftl.blocks.stock(plane) != stock {
            self.block_taken(plane);
        } else if self.dynamic {
            self.ftl.refresh_ready(plane);
        }
        let tag = self.requests[self.transactions[id].owner].request.tag;
        Some(self.program(Class::HostProgram, plane, first, tag))
    }

    /// The next write in line when it goes to the same plane.
    fn pop_companion(&mut self, lun: LunId, rank: u8, plane: PlaneId) -> u32 {
        let line = &mut self.lines[lun.index()][usize::from(rank)];
        let id = line.first();
        if id != NONE {
            let next = &self.transactions[id];
            return if next.kind == Kind::Write && next.plane == plane.0 {
                line.pop(&mut self.transactions)
            } else {
                NONE
            };
        }
        let id = self.pool.line.pop(&mut self.transactions);
        if id != NONE {
            self.transactions[id].plane = plane.0;
        }
        id
    }

    /// Gives a write its place: what it supersedes is stale from now on, and kept until the program has ended.
    #[inline]
    pub(super) fn bind(&mut self, id: u32, place: Ppn) {
        self.serve(self.transactions[id].owner);
        let write = &mut self.transactions[id];
        write.place = place.0;
        let source = std::mem::take(&mut write.source);
        let lpn = write.lpn;
        self.ftl.map.set_owner(place, lpn);
        if source > 0 {
            let old = Ppn(source - 1);
            self.ftl.blocks.invalidate(old);
            self.ftl.counters.units_superseded += 1;
            let block = self.ftl.blocks.depend(old);
            self.transactions[id].dependency = block.0;
        }
    }

    /// Marks the places of a program command that hold no data.
    #[inline]
    fn pad(&mut self, first: Ppn, count: u32) {
        for place in first.0 + count..first.0 + self.ftl.shape().units_per_program {
            self.ftl.map.set_owner(Ppn(place), PADDING);
        }
    }

    /// Binds what cleaning has read. Units that were superseded meanwhile are dropped; without any left, nothing
    /// starts.
    fn start_copies(&mut self, id: u32) -> Option<Operation> {
        let plane = PlaneId(self.transactions[id].plane);
        self.drop_stale_copies(plane);
        let group = self.ftl.shape().units_per_program;
        let count = self.jobs[plane.index()].copies.len().min(group as usize);
        if count == 0 {
            self.transactions.remove(id);
            self.jobs[plane.index()].busy = false;
            self.clean(plane);
            return None;
        }
        let stock = self.ftl.blocks.stock(plane);
        let first = self.ftl.blocks.advance(plane, Stream::Gc, group);
        let job = &mut self.jobs[plane.index()];
        job.writing = count;
        for (index, copy) in job.copies[..count].iter_mut().enumerate() {
            copy.to = Ppn(first.0 + index as u32);
            self.ftl.map.set_owner(copy.to, copy.lpn);
        }
        self.pad(first, count as u32);
        self.ftl.note_program(ProgramCause::Gc, count as u32);
        self.transactions[id].place = first.0;
        if self.ftl.blocks.stock(plane) != stock || self.ftl.shape().single_frontier {
            self.ftl.refresh_ready(plane);
        }
        Some(self.program(self.transactions[id].class, plane, first, u64::MAX))
    }

    fn start_erase(&mut self, id: u32) -> Operation {
        let erase = self.transactions[id];
        debug_assert!(
            self.options.mutant == Mutant::EraseEarly || self.ftl.blocks.can_erase(BlockId(erase.place)),
            "nothing that others depend on is erased"
        );
        let timing = self.array.timing();
        Operation {
            kind: array::Kind::Erase,
            class: erase.class,
            rank: self.ranks[erase.class as usize],
            plane: PlaneId(erase.plane),
            pages: 1,
            command: timing.erase_command,
            data: Time::ZERO,
            cell: timing.erase,
            tag: u64::MAX,
            place: erase.place,
        }
    }

    fn start_summary(&mut self, id: u32) -> Operation {
        let summary = self.transactions[id];
        self.ftl.note_summary();
        let mut operation = self.program(Class::Summary, PlaneId(summary.plane), Ppn(summary.place), u64::MAX);
        operation.pages = 1;
        operation.data = self.array.timing().summary_in;
        operation
    }
}
