//! Writes that any plane of a pool may take (dynamic allocation), and which planes could.

use super::Device;
use crate::dispatch::{AFTER_HELD, Pool};
use crate::nand::array::LunState;
use crate::sim::id::{ChannelId, LunId, PlaneId, TransactionId};
use crate::work::{Class, Task};

impl Device {
    /// A LUN takes operations again, or does not.
    #[inline]
    pub(super) fn note_idle(&mut self, lun: LunId, idle: bool) {
        if self.dispatch.dynamic {
            let order = self.ftl.allocation.order();
            for plane in self.array.planes_of(lun) {
                self.dispatch.pool.idle.set(order.position(PlaneId(plane)), idle);
            }
        }
    }

    /// A write that any plane of a pool may take goes to an idle die of an idle channel at once, or waits for the first
    /// one.
    pub(super) fn queue_anywhere(&mut self, id: TransactionId) {
        self.show_lined_up(id);
        self.transactions[id].order = self.dispatch.orders + if self.tasks.holds() { AFTER_HELD } else { 0 };
        self.dispatch.orders += 1;
        let pool = self.ftl.pool(self.transactions[id].lpn);
        self.dispatch.pool.lines[pool as usize].push(&mut self.transactions, id);
        self.observe_pooled(id);
        if !self.tasks.holds() {
            self.tasks.push(Task::Offer(pool));
        }
        if self.dispatch.pool.of_pool[pool as usize].next_common(self.ftl.ready(), 0).is_none() {
            self.clean_pool(pool);
        }
    }

    /// Starts garbage collection in a pool of which no plane has room for a write, unless it starts by itself.
    ///
    /// Planes may be as full as that before the run, with nothing in flight whose end would start it.
    #[cold]
    fn clean_pool(&mut self, pool: u32) {
        let planes = (0..self.ftl.shape().planes).map(PlaneId);
        let of_pool = planes.filter(|&plane| self.ftl.allocation.pool_of(plane) == pool);
        // With `gc.pace = "proportional"`, a LUN that becomes idle starts it.
        let waits = |plane| self.ftl.shape().paces && self.array.state(self.array.lun_of(plane)) != LunState::Idle;
        if of_pool.clone().all(|plane| self.jobs[plane].is_idle() && !waits(plane)) {
            of_pool.for_each(|plane| self.tasks.push(Task::Clean(plane)));
        }
    }

    /// A write that has lost its plane goes back to the front of its pool.
    pub(super) fn put_back(&mut self, id: TransactionId) {
        let pool = self.ftl.pool(self.transactions[id].lpn);
        self.dispatch.pool.lines[pool as usize].push_front(&mut self.transactions, id);
        self.observe_pooled(id);
    }

    /// The oldest write that any plane of a LUN may take, among those that wait; `NONE` when there is none.
    #[inline]
    pub(super) fn first_of_pool(&self, plane: PlaneId) -> TransactionId {
        if self.dispatch.dynamic {
            self.dispatch.pool.lines[self.ftl.allocation.pool_of(plane) as usize].first()
        } else {
            TransactionId::NONE
        }
    }

    /// Takes the oldest write of the pool of `plane` for it; `NONE` when there is none.
    pub(super) fn take_from_pool(&mut self, plane: PlaneId) -> TransactionId {
        let pool = self.ftl.allocation.pool_of(plane);
        let id = self.dispatch.pool.lines[pool as usize].pop(&mut self.transactions);
        if id.is_some() {
            self.transactions[id].plane = plane;
            self.dispatch.pool.uses += 1;
            self.dispatch.pool.used[plane] = self.dispatch.pool.uses;
        }
        id
    }

    /// Takes the oldest write of the pool of `plane` for it if it is of this class.
    pub(super) fn take_of_class(&mut self, plane: PlaneId, class: u8) -> TransactionId {
        match self.first_of_pool(plane) {
            id if id.is_some() && self.transactions[id].temperature == class => self.take_from_pool(plane),
            _ => TransactionId::NONE,
        }
    }

    /// Whether a write of the pool could go to `plane`, with operations of `rank`.
    pub(super) fn pool_waits_for(&self, plane: PlaneId, rank: u8) -> bool {
        rank == self.dispatch.ranks[Class::HostProgram as usize]
            && self.first_of_pool(plane) != TransactionId::NONE
            && self.ftl.blocks.takes_host_write(plane)
    }

    /// How many writes wait in the pool of `plane`, counted up to `most`.
    pub(super) fn pool_count(&self, plane: PlaneId, most: u32) -> u32 {
        let (mut id, mut count) = (self.first_of_pool(plane), 0);
        while id.is_some() && count < most {
            count += 1;
            id = self.transactions[id].next;
        }
        count
    }

    /// Deals the writes of a pool to the planes of idle LUNs on idle channels, by the order of the allocation, and then
    /// starts those: so that what goes to one die or chip goes in one command. Where writes are gathered into program
    /// units, a die takes a whole one: all of its planes that program together come before the next one in the order.
    fn deal_pool(&mut self, pool: u32) {
        self.find_idle_planes();
        self.dispatch.pool.dealt.clear();
        while !self.dispatch.pool.lines[pool as usize].is_empty() {
            let Some(named) = self.ftl.choose(pool, &self.dispatch.pool.candidates) else { break };
            let plane = self.in_turn(named);
            self.deal(pool, named, plane);
            if self.dispatch.filling.is_some() {
                for other in self.dispatch.merging.planes_together(plane).filter(|&other| other != plane) {
                    self.deal(pool, other, other);
                }
            }
        }
        if self.dispatch.pool.dealt.is_empty() {
            return;
        }
        self.alone(|device| {
            for index in 0..device.dispatch.pool.dealt.len() {
                device.kick(device.array.lun_of(device.dispatch.pool.dealt[index]));
            }
        });
    }

    /// Deals the writes of one program to `plane`, in the turn of `named`, if it has room and can join the planes that
    /// were dealt to.
    fn deal(&mut self, pool: u32, named: PlaneId, plane: PlaneId) {
        self.dispatch.pool.candidates.set(self.ftl.allocation.order().position(named), false);
        let first = self.dispatch.pool.lines[pool as usize].first();
        if first.is_none() || !self.is_ready(plane) || !self.may_join_dealt(plane) {
            return;
        }
        let class = self.transactions[first].temperature;
        let rank = self.dispatch.ranks[Class::HostProgram as usize];
        for _ in 0..self.ftl.shape().units_per_program {
            let id = self.take_of_class(plane, class);
            if id.is_none() {
                break;
            }
            self.dispatch.waiting.push(self.array.lun_of(plane), plane, rank, &mut self.transactions, id);
        }
        self.dispatch.pool.dealt.push(plane);
    }

    /// The plane that takes what the order deals to `named`. The first of a LUN is its plane that was used least
    /// recently, and the others lie to that as they do in the order. An order alone would send nearly all to the planes
    /// that come first in it, since a LUN that takes a write is not idle for the others; and planes that are not filled
    /// alike have no pages with equal addresses to program together.
    fn in_turn(&mut self, named: PlaneId) -> PlaneId {
        let lun = self.array.lun_of(named);
        let planes = self.array.planes_of(lun);
        let per_unit = self.config.planes_per_unit();
        let units = (planes.end - planes.start) / per_unit;
        let digits = |plane: u32| ((plane - planes.start) / per_unit, (plane - planes.start) % per_unit);
        let own = digits(named.0);
        if !self.dispatch.pool.dealt.iter().any(|&other| self.array.lun_of(other) == lun) {
            let Some(first) = self.least_recently_used(lun) else { return named };
            let first = digits(first.0);
            self.dispatch.pool.shifts[lun.index()] = (first.0 + units - own.0, first.1 + per_unit - own.1);
        }
        let shift = self.dispatch.pool.shifts[lun.index()];
        PlaneId(planes.start + (own.0 + shift.0) % units * per_unit + (own.1 + shift.1) % per_unit)
    }

    /// The plane of `lun` with room that took a write least recently, of those whose next free block has the fewest
    /// erases if the allocation goes by them.
    fn least_recently_used(&self, lun: LunId) -> Option<PlaneId> {
        let ready = self.array.planes_of(lun).map(PlaneId).filter(|&plane| self.is_ready(plane));
        ready.min_by_key(|&plane| (self.erases_that_count(plane), self.dispatch.pool.used[plane]))
    }

    /// Returns the erases of the next free block of a plane if dynamic allocation goes by them, and 0 otherwise.
    fn erases_that_count(&self, plane: PlaneId) -> u32 {
        if self.ftl.allocation.by_erases() { self.ftl.blocks.erases_of_next(plane) } else { 0 }
    }

    /// Whether a plane takes writes of its pool.
    #[inline]
    fn is_ready(&self, plane: PlaneId) -> bool {
        self.ftl.ready().contains(self.ftl.allocation.order().position(plane))
    }

    /// Whether a write to `plane` could go with those dealt to its LUN so far, in one command.
    fn may_join_dealt(&self, plane: PlaneId) -> bool {
        let lun = self.array.lun_of(plane);
        let mut of_lun =
            self.dispatch.pool.dealt.iter().copied().filter(|&other| self.array.lun_of(other) == lun).peekable();
        let Some(&first) = of_lun.peek() else { return true };
        if self.array.chip_of(first) != self.array.chip_of(plane) {
            return false;
        }
        match of_lun.find(|&other| self.array.unit_of(other) == self.array.unit_of(plane)) {
            Some(other) => self.may_program_together(other, plane),
            None => self.dispatch.merging.interleave,
        }
    }

    /// Lets idle LUNs know of writes in any pool.
    pub(super) fn offer_pools(&mut self) {
        (0..self.dispatch.pool.lines.len() as u32).for_each(|pool| self.tasks.push(Task::Offer(pool)));
    }

    /// Lets idle LUNs know of writes in a pool, in the order of the allocation.
    // Inlined, it would slow the loop over all tasks.
    #[inline(never)]
    pub(super) fn offer_pool(&mut self, pool: u32) {
        let line = pool as usize;
        if self.dispatch.merging.any && !self.dispatch.pool.lines[line].is_empty() {
            self.deal_pool(pool);
        }
        if !self.dispatch.merging.any && !self.dispatch.pool.lines[line].is_empty() {
            self.find_idle_planes();
            if let Some(plane) = self.ftl.choose(pool, &self.dispatch.pool.candidates) {
                self.offer(self.array.lun_of(plane));
                return self.tasks.push(Task::Offer(pool));
            }
        }
        if self.dispatch.pool.lines[line].is_empty() {
            return;
        }
        self.line_up_for_pool(pool);
    }

    /// Idle LUNs line up at their busy channels for what is left in a pool, least recently used first, and by the order
    /// of the allocation where that is equal: whichever is granted first takes the oldest write.
    fn line_up_for_pool(&mut self, pool: u32) {
        self.dispatch.pool.candidates.copy_from(&self.dispatch.pool.idle);
        self.dispatch.pool.candidates.intersect_with(self.ftl.ready());
        let mut lining_up = std::mem::take(&mut self.dispatch.pool.lining_up);
        let mut from = 0;
        while let Some(position) = self.dispatch.pool.candidates.next_from(from) {
            self.dispatch.pool.candidates.set(position, false);
            from = position;
            let plane = self.ftl.allocation.order().plane(position);
            if self.ftl.allocation.pool_of(plane) == pool {
                let lun = self.array.lun_of(plane);
                let used = self.array.planes_of(lun).map(|plane| self.dispatch.pool.used[PlaneId(plane)]).max();
                let erases = self.array.planes_of(lun).map(|plane| self.erases_that_count(PlaneId(plane))).min();
                lining_up.push((erases.unwrap_or_default(), used.unwrap_or_default(), position, lun));
            }
        }
        lining_up.sort_unstable();
        lining_up.drain(..).for_each(|(.., lun)| self.tasks.push(Task::Start(lun)));
        self.dispatch.pool.lining_up = lining_up;
    }

    /// The candidates become the planes of idle LUNs of idle channels, those with room where nothing is merged: where
    /// something is, another plane of the LUN may take what is dealt to one.
    fn find_idle_planes(&mut self) {
        let Pool { candidates, of_channel, idle, .. } = &mut self.dispatch.pool;
        candidates.clear();
        for (channel, planes) in of_channel.iter().enumerate() {
            if self.array.channel_is_idle(ChannelId(channel as u32), self.now) {
                candidates.union_with(planes);
            }
        }
        candidates.intersect_with(idle);
        if !self.dispatch.merging.any {
            candidates.intersect_with(self.ftl.ready());
        }
    }

    /// Returns `true` if some idle LUN has a plane with room.
    #[inline]
    pub(super) fn any_plane_is_idle(&self) -> bool {
        self.dispatch.pool.idle.next_common(self.ftl.ready(), 0).is_some()
    }

    /// Gives the oldest write of its pool to an idle LUN.
    fn offer(&mut self, lun: LunId) {
        let plane = self.choose_plane(lun);
        let id = self.take_from_pool(plane);
        let rank = self.dispatch.ranks[Class::HostProgram as usize];
        self.dispatch.waiting.push(lun, plane, rank, &mut self.transactions, id);
        self.kick(lun);
    }

    /// Whether `lun` could take a write of the pool.
    #[inline]
    pub(super) fn has_ready_plane(&self, lun: LunId) -> bool {
        self.array.planes_of(lun).any(|plane| self.is_ready(PlaneId(plane)))
    }

    /// A plane with room of `lun`, for a write of the pool: the planes of a LUN take turns (see [`Device::in_turn`]).
    pub(super) fn choose_plane(&self, lun: LunId) -> PlaneId {
        let chosen = self.least_recently_used(lun);
        chosen.unwrap_or_else(|| unreachable!("a LUN takes from the pool only with a plane that has room"))
    }
}
