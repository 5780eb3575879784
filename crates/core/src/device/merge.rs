//! Which waiting operations join the command of a LUN: those of other planes of the die in a multi-plane command, those
//! of other dies of the chip in an interleaved one.
//!
//! What joins is the first in line of its plane, with the rank and of the kind of the one that leads. Hu et al. 2011,
//! Section 2.2; docs/model/commands.md has the rules.

use super::Device;
use crate::ftl::space::FrontierId;
use crate::metrics::counters::ProgramCause;
use crate::nand::array::{self, Member, Operation, Spot};
use crate::sim::id::{LunId, PlaneId, Ppn, TransactionId, UnitId};
use crate::work::{Class, Kind, Transaction};

/// An address that planes working together must share: of the block within the plane, and of the page within the block.
type Address = (u32, u32);

impl Device {
    /// Starts the command of `lun` that `lead`, put together at `unit`, leads, with what can be merged.
    #[inline(never)]
    pub(super) fn start_merged(&mut self, lun: LunId, rank: u8, lead: TransactionId, unit: UnitId) {
        let kind = self.array.draft(Spot::Unit(unit)).kind;
        let mut planes = self.start_unit(unit, rank, lead);
        let mut dies = 1;
        if self.dispatch.merging.interleave {
            // Of the same chip: a LUN may be a package of several.
            let per_chip = self.config.geometry.dies;
            let first = unit.0 / per_chip * per_chip;
            for other in (first..first + per_chip).map(UnitId).filter(|&other| other != unit) {
                self.array.set_binding(lun);
                if let Some(id) = self.join_unit(other, rank, kind) {
                    planes += self.start_unit(other, rank, id);
                    dies += 1;
                }
            }
            self.array.set_busy(lun);
        }
        self.array.note_merged(kind, dies, planes);
    }

    /// Starts a unit on `lead`, with other planes of it; returns how many planes work.
    fn start_unit(&mut self, unit: UnitId, rank: u8, lead: TransactionId) -> u32 {
        self.join_planes_for(unit, rank, lead, Spot::Unit(unit));
        self.dispatch.running[unit] = lead;
        let members = self.array.draft(Spot::Unit(unit)).members;
        self.array.start(unit, self.now);
        self.watch_start(unit);
        members
    }

    /// Binds what goes with `lead`, put together `at` a spot, in other planes of its die, where planes work together on
    /// such operations.
    #[inline]
    pub(super) fn join_planes_for(&mut self, unit: UnitId, rank: u8, lead: TransactionId, at: Spot) {
        let Operation { kind, pages, plane, .. } = *self.array.draft(at);
        let one_page = kind != array::Kind::Read || pages == 1;
        if self.dispatch.merging.planes[kind as usize]
            && one_page
            && self.others_wait(self.array.lun_of_unit(unit), plane, rank)
        {
            self.join_planes(unit, rank, lead, at, |_| true);
        }
    }

    /// Whether anything waits with `rank` for a LUN, or in the pool of its plane.
    #[inline(always)]
    pub(super) fn others_wait(&self, lun: LunId, plane: PlaneId, rank: u8) -> bool {
        self.dispatch.waiting.any(lun, rank) || self.first_of_pool(plane) != TransactionId::NONE
    }

    /// Binds what goes with `lead`, put together beside it, in the planes that a unit works in now.
    pub(super) fn join_at_work(&mut self, unit: UnitId, rank: u8, lead: TransactionId) {
        let mut at_work = 0u64;
        self.array
            .planes_at_work(unit)
            .for_each(|(plane, _)| at_work |= 1 << self.dispatch.merging.place_in_group(plane));
        let merging = self.dispatch.merging;
        let works = |plane| at_work >> merging.place_in_group(plane) & 1 == 1;
        self.join_planes(unit, rank, lead, Spot::Ahead(unit), works);
    }

    fn join_planes(
        &mut self,
        unit: UnitId,
        rank: u8,
        lead: TransactionId,
        at: Spot,
        allowed: impl Fn(PlaneId) -> bool,
    ) {
        let Operation { kind, plane: own, place, data, tag, .. } = *self.array.draft(at);
        let address = self.address_of(Ppn(place), kind);
        let moves = kind == array::Kind::CopyBack;
        let source = moves.then(|| self.source_of(own)).flatten();
        self.array.set_member(unit, 0, Member { plane: own, data, tag, place });
        let mut last = self.last_of(lead);
        for plane in self.dispatch.merging.others_of(own) {
            if !allowed(plane) || !self.suits(plane, rank, kind, address) {
                continue;
            }
            if moves && self.source_of(plane) != source {
                continue;
            }
            let id = self.take_for(plane, rank, kind);
            if !self.bind_to_merge(id, rank, Spot::Member) {
                continue;
            }
            self.array.join(unit, at);
            self.transactions[last].next = id;
            last = self.last_of(id);
        }
    }

    /// The last of those that are bound together with `id`.
    fn last_of(&self, mut id: TransactionId) -> TransactionId {
        while self.transactions[id].next.is_some() {
            id = self.transactions[id].next;
        }
        id
    }

    /// The first operation of `kind` that waits for a die, put together there.
    fn join_unit(&mut self, unit: UnitId, rank: u8, kind: array::Kind) -> Option<TransactionId> {
        loop {
            let planes = self.array.planes_of_unit(unit).map(PlaneId);
            let plane = planes.filter(|&plane| self.waits_for(plane, rank, kind)).min_by_key(|&plane| {
                let id = self.first_in(plane, rank);
                if id.is_none() { u64::MAX } else { self.transactions[id].order }
            })?;
            let id = self.take_for(plane, rank, kind);
            if kind == array::Kind::Program && self.dispatch.merging.blind {
                self.level(id, rank);
            }
            if self.bind_to_merge(id, rank, Spot::Unit(unit)) {
                return Some(id);
            }
        }
    }

    /// Whether an operation of `kind` and `rank` is the first that waits for `plane`, or could be taken from the pool.
    #[inline]
    fn waits_for(&self, plane: PlaneId, rank: u8, kind: array::Kind) -> bool {
        self.is_of(self.first_in(plane, rank), plane, rank, kind)
    }

    /// Whether `id`, the first that waits for `plane`, is an operation of `kind`; where none waits, whether one could
    /// be taken from the pool.
    fn is_of(&self, id: TransactionId, plane: PlaneId, rank: u8, kind: array::Kind) -> bool {
        if id.is_none() {
            return kind == array::Kind::Program && self.pool_waits_for(plane, rank);
        }
        let transaction = &self.transactions[id];
        let has_room = match transaction.kind {
            Kind::Write => self.ftl.shape().hooks.places || self.ftl.blocks.takes_host_write(plane),
            // Else it turns out to be a read.
            Kind::CopyBack => self.stays_copy_back(plane),
            _ => true,
        };
        array::Kind::from(transaction.kind) == kind && has_room
    }

    /// The first that waits with `rank` in the line of `plane`, or `NONE`.
    #[inline]
    fn first_in(&self, plane: PlaneId, rank: u8) -> TransactionId {
        self.dispatch.waiting.first(self.array.lun_of(plane), plane, rank)
    }

    /// The address of the page that cleaning moves within a plane next.
    fn source_of(&self, plane: PlaneId) -> Option<Address> {
        let copy = self.jobs[plane].back.first()?;
        let address = self.address_of(copy.from, array::Kind::CopyBack);
        Some(if self.dispatch.merging.strict { address } else { (0, address.1) })
    }

    /// Whether a transaction reads one flash page: a translation page may be several.
    pub(super) fn reads_a_page(&self, id: TransactionId) -> bool {
        let Transaction { kind, units, .. } = self.transactions[id];
        array::Kind::from(kind) == array::Kind::Read && (kind != Kind::MapRead || units == 1)
    }

    /// Whether the first that waits for `plane` may go together with an operation of `kind` at `address`.
    fn suits(&self, plane: PlaneId, rank: u8, kind: array::Kind, (block, page): Address) -> bool {
        let id = self.first_in(plane, rank);
        if !self.is_of(id, plane, rank, kind) {
            return false;
        }
        let same = |place| {
            let (other_block, other_page) = self.address_of(place, kind);
            other_page == page && (other_block == block || !self.dispatch.merging.strict)
        };
        let frontier = match if id.is_none() { Kind::Write } else { self.transactions[id].kind } {
            Kind::Write | Kind::MergeWrite if self.ftl.shape().hooks.places => {
                return self.target_of(id).is_some_and(same);
            }
            Kind::Write => self.frontier_of_write(plane, id),
            Kind::GcWrite => self.frontier_of_copies(plane),
            Kind::CopyBack => self.ftl.blocks.gc_frontier(plane),
            Kind::MapWrite => self.ftl.blocks.map_frontier(plane),
            Kind::MapRead if !self.reads_a_page(id) => return false,
            // Its transfer is not as long as that of data.
            Kind::Summary => return false,
            _ => return same(self.transactions[id].place),
        };
        match self.ftl.blocks.next_place(frontier) {
            Some(place) => same(place),
            None => page == 0 && self.would_open(frontier, block),
        }
    }

    /// Returns the place that the scheme would bind a write or a program of copies to now.
    fn target_of(&self, id: TransactionId) -> Option<Ppn> {
        let operation = self.transactions[id];
        let number = (operation.kind == Kind::MergeWrite).then(|| operation.logical_block());
        self.ftl.scheme().target(&self.ftl, operation.lpn, number)
    }

    /// The frontier that the first write that waits for `plane` would go to, of its lines or of the pool.
    pub(super) fn frontier_of_next(&self, plane: PlaneId, rank: u8) -> FrontierId {
        self.frontier_of_write(plane, self.first_in(plane, rank))
    }

    /// The same of that write; where there is none, of the first in the pool.
    pub(super) fn frontier_of_write(&self, plane: PlaneId, id: TransactionId) -> FrontierId {
        let first = if id.is_none() { self.first_of_pool(plane) } else { id };
        let class = if first.is_none() { 0 } else { self.transactions[first].temperature };
        self.ftl.blocks.frontier_for_host(plane, class)
    }

    /// The frontier that what cleaning has read goes to next.
    fn frontier_of_copies(&self, plane: PlaneId) -> FrontierId {
        let copies = &self.jobs[plane].copies;
        let first = copies.iter().find(|copy| self.ftl.blocks.is_valid(copy.from));
        self.ftl.blocks.frontier_for_moved(plane, first.map_or(0, |copy| self.ftl.class_of(copy.lpn)))
    }

    /// Whether a frontier that opens a block now opens one that may work together with `block`: where their addresses
    /// must be equal, that which it opens by preference has it only if it is among its oldest free ones.
    fn would_open(&self, frontier: FrontierId, block: u32) -> bool {
        !self.dispatch.merging.strict || self.ftl.blocks.next_opened(frontier) == Some(block)
    }

    /// Whether the next host writes to two planes of a die could be programmed together.
    pub(super) fn may_program_together(&self, one: PlaneId, other: PlaneId) -> bool {
        if !self.dispatch.merging.planes[array::Kind::Program as usize]
            || !self.dispatch.merging.group_of(one).contains(&other.0)
        {
            return false;
        }
        let rank = self.dispatch.ranks[Class::HostProgram as usize];
        let frontier = |plane| self.frontier_of_next(plane, rank);
        let next = |plane| self.ftl.blocks.next_place(frontier(plane));
        match (next(one), next(other)) {
            (Some(a), Some(b)) => {
                let (a, b) = (self.address_of(a, array::Kind::Program), self.address_of(b, array::Kind::Program));
                (a.1 == b.1 || self.dispatch.merging.blind) && (a.0 == b.0 || !self.dispatch.merging.strict)
            }
            (Some(place), None) | (None, Some(place)) => {
                let (block, page) = self.address_of(place, array::Kind::Program);
                let opens = if next(one).is_none() { one } else { other };
                page == 0 && self.would_open(frontier(opens), block)
            }
            (None, None) => true,
        }
    }

    /// What must be equal in planes that work together on `kind` at `place`.
    fn address_of(&self, place: Ppn, kind: array::Kind) -> Address {
        if kind == array::Kind::Erase {
            return (self.ftl.blocks.index_in_plane(crate::sim::id::BlockId(place.0)), 0);
        }
        let block = self.ftl.blocks.block_of(place);
        let per_page = self.ftl.shape().units_per_page;
        let page = per_page.divide(self.ftl.blocks.offset_in_block(place));
        (self.ftl.blocks.index_in_plane(block), page)
    }

    /// Takes the first that waits for `plane` out of its line, or the oldest out of the pool.
    fn take_for(&mut self, plane: PlaneId, rank: u8, kind: array::Kind) -> TransactionId {
        let id = self.dispatch.waiting.pop(self.array.lun_of(plane), plane, rank, &mut self.transactions);
        if id.is_some() {
            return id;
        }
        debug_assert_eq!(kind, array::Kind::Program);
        self.ftl.allocation.took(plane);
        self.take_from_pool(plane)
    }

    /// Where multi-plane programs are blind: skips pages in the planes of a die that are behind, so that they can be
    /// programmed together with the write `lead`, which has a plane and no place yet. Only where both are in the middle
    /// of a block, with equal addresses where that is asked for; the rest of a block is never given up.
    pub(super) fn level(&mut self, lead: TransactionId, rank: u8) {
        if self.transactions[lead].kind != Kind::Write {
            return;
        }
        let lead_plane = self.transactions[lead].plane;
        let of_lead = self.ftl.blocks.frontier_for_host(lead_plane, self.transactions[lead].temperature);
        let Some(place) = self.ftl.blocks.next_place(of_lead) else { return };
        let (block, own) = (self.address_of(place, array::Kind::Program).0, self.ftl.blocks.offset_in_block(place));
        let mut waiting =
            self.pool_count(lead_plane, self.dispatch.merging.group.divisor() * self.ftl.shape().units_per_program);
        let mut chosen = 0u64;
        let mut highest = own;
        for plane in self.dispatch.merging.others_of(lead_plane) {
            let id = self.first_in(plane, rank);
            let from_pool = id.is_none() && waiting > 0 && self.pool_waits_for(plane, rank);
            let writes = id.is_some() && self.transactions[id].kind == Kind::Write;
            if !(from_pool || writes) || !self.ftl.blocks.takes_host_write(plane) {
                continue;
            }
            let frontier = self.frontier_of_next(plane, rank);
            let Some(place) = self.ftl.blocks.next_place(frontier) else { continue };
            if self.dispatch.merging.strict && self.address_of(place, array::Kind::Program).0 != block {
                continue;
            }
            if from_pool {
                waiting = waiting.saturating_sub(self.ftl.shape().units_per_program);
            }
            chosen |= 1 << self.dispatch.merging.place_in_group(plane);
            highest = highest.max(self.ftl.blocks.offset_in_block(place));
        }
        if chosen == 0 {
            return;
        }
        chosen |= 1 << self.dispatch.merging.place_in_group(lead_plane);
        for plane in self.dispatch.merging.group_of(lead_plane).map(PlaneId) {
            if chosen >> self.dispatch.merging.place_in_group(plane) & 1 == 1 {
                let frontier = if plane == lead_plane { of_lead } else { self.frontier_of_next(plane, rank) };
                self.skip_to(frontier, highest);
            }
        }
    }

    /// Leaves out pages of a frontier of the host's up to unit `offset` of its block.
    fn skip_to(&mut self, frontier: FrontierId, offset: u32) {
        let Some(place) = self.ftl.blocks.next_place(frontier) else { return };
        let count = offset - self.ftl.blocks.offset_in_block(place);
        if count > 0 {
            self.ftl.waste(frontier, count, ProgramCause::WasteAlignment);
        }
    }
}
