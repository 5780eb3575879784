//! Writes that any plane may take (dynamic allocation), and which planes could.

use super::Device;
use crate::config::DeviceConfig;
use crate::ftl::allocation::PlaneSet;
use crate::scheduler::Class;
use crate::scheduler::lines::{Line, NONE};
use crate::sim::id::{ChannelId, LunId, PlaneId};

/// The pool, with sets of planes by their position in the allocation's order.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// Writes without a plane, oldest first.
    pub(super) line: Line,
    /// Planes of idle LUNs.
    idle: PlaneSet,
    /// Planes of each channel.
    of_channel: Vec<PlaneSet>,
    /// The plane of each LUN that comes after the one taken last.
    turns: Vec<u32>,
    /// Room to work in.
    candidates: PlaneSet,
    dealt: Vec<PlaneId>,
}

impl Pool {
    /// An empty pool; all LUNs idle. Positions are filled in by [`Device::number_planes`].
    pub(super) fn new(config: &DeviceConfig) -> Pool {
        let planes = config.total_planes();
        let mut idle = PlaneSet::new(planes);
        (0..planes).for_each(|position| idle.set(position, true));
        let empty = PlaneSet::new(planes);
        Pool {
            line: Line::default(),
            idle,
            of_channel: vec![empty.clone(); config.geometry.channels as usize],
            turns: Vec::new(),
            candidates: empty,
            dealt: Vec::with_capacity(planes as usize),
        }
    }
}

impl Device {
    /// Notes which planes each channel has.
    pub(super) fn number_planes(&mut self) {
        let order = self.ftl.allocation.order();
        for plane in (0..order.len()).map(PlaneId) {
            let channel = self.array.channel_of(self.array.lun_of(plane));
            self.pool.of_channel[channel.index()].set(order.position(plane), true);
        }
        self.pool.turns = (0..self.array.luns()).map(|lun| self.array.planes_of(LunId(lun)).start).collect();
    }

    /// A LUN takes operations again, or does not.
    #[inline]
    pub(super) fn note_idle(&mut self, lun: LunId, idle: bool) {
        if self.dynamic {
            let order = self.ftl.allocation.order();
            for plane in self.array.planes_of(lun) {
                self.pool.idle.set(order.position(PlaneId(plane)), idle);
            }
        }
    }

    /// A write that any plane may take goes to an idle die of an idle channel at once, or waits for the first one.
    pub(super) fn queue_anywhere(&mut self, id: u32) {
        self.show_lined_up(id);
        self.transactions[id].order = self.orders;
        self.orders += 1;
        self.pool.line.push(&mut self.transactions, id);
        self.trail_pool(id);
        if !self.hold {
            self.offer_pool();
        }
    }

    /// Whether a write of the pool could go to `plane`, with operations of `rank`.
    pub(super) fn pool_waits_for(&self, plane: PlaneId, rank: u8) -> bool {
        rank == self.ranks[Class::HostProgram as usize]
            && !self.pool.line.is_empty()
            && self.ftl.blocks.takes_host_write(plane)
    }

    /// How many writes wait in the pool, counted up to `most`.
    pub(super) fn pool_count(&self, most: u32) -> u32 {
        let (mut id, mut count) = (self.pool.line.first(), 0);
        while id != NONE && count < most {
            count += 1;
            id = self.transactions[id].next;
        }
        count
    }

    /// Deals the writes of the pool to the planes of idle LUNs on idle channels, by the order of the allocation, and
    /// then starts those: so that what goes to one die or chip goes in one command.
    fn deal_pool(&mut self) {
        self.find_idle_planes();
        let rank = usize::from(self.ranks[Class::HostProgram as usize]);
        let group = self.ftl.shape().units_per_program;
        self.pool.dealt.clear();
        while !self.pool.line.is_empty() {
            let Some(plane) = self.ftl.allocation.choose(&self.pool.candidates) else { break };
            self.pool.candidates.set(self.ftl.allocation.order().position(plane), false);
            if !self.may_join_dealt(plane) {
                continue;
            }
            for _ in 0..group {
                let id = self.pool.line.pop(&mut self.transactions);
                if id == NONE {
                    break;
                }
                self.transactions[id].plane = plane.0;
                self.lines[plane.index()][rank].push(&mut self.transactions, id);
            }
            self.pool.dealt.push(plane);
        }
        for index in 0..self.pool.dealt.len() {
            self.kick(self.array.lun_of(self.pool.dealt[index]));
        }
    }

    /// Whether a write to `plane` could go with those dealt to its LUN so far, in one command.
    fn may_join_dealt(&self, plane: PlaneId) -> bool {
        let lun = self.array.lun_of(plane);
        let mut of_lun = self.pool.dealt.iter().copied().filter(|&other| self.array.lun_of(other) == lun).peekable();
        if of_lun.peek().is_none() {
            return true;
        }
        match of_lun.find(|&other| self.array.unit_of(other) == self.array.unit_of(plane)) {
            Some(other) => self.may_program_together(other, plane),
            None => self.merging.interleave,
        }
    }

    /// Lets idle LUNs know of writes in the pool, in the order of the allocation.
    pub(super) fn offer_pool(&mut self) {
        if self.merging.any {
            self.deal_pool();
        }
        while !self.merging.any && !self.pool.line.is_empty() {
            self.find_idle_planes();
            let Some(plane) = self.ftl.allocation.choose(&self.pool.candidates) else { break };
            self.offer(self.array.lun_of(plane));
        }
        if self.pool.line.is_empty() {
            return;
        }
        // The rest line up at their busy channels; whichever is granted first takes the oldest write.
        self.pool.candidates.copy_from(&self.pool.idle);
        self.pool.candidates.intersect_with(self.ftl.ready());
        let mut from = 0;
        while let Some(position) = self.pool.candidates.next_from(from) {
            self.pool.candidates.set(position, false);
            from = position;
            let plane = self.ftl.allocation.order().plane(position);
            self.kick(self.array.lun_of(plane));
        }
    }

    /// The candidates become the planes with room of idle LUNs of idle channels.
    fn find_idle_planes(&mut self) {
        let Pool { candidates, of_channel, idle, .. } = &mut self.pool;
        candidates.clear();
        for (channel, planes) in of_channel.iter().enumerate() {
            if self.array.channel_is_idle(ChannelId(channel as u32), self.now) {
                candidates.union_with(planes);
            }
        }
        candidates.intersect_with(idle);
        candidates.intersect_with(self.ftl.ready());
    }

    /// Gives the oldest write of the pool to an idle LUN.
    fn offer(&mut self, lun: LunId) {
        let id = self.pool.line.pop(&mut self.transactions);
        self.transactions[id].plane = self.choose_plane(lun).0;
        let rank = self.ranks[Class::HostProgram as usize];
        self.lines[lun.index()][usize::from(rank)].push(&mut self.transactions, id);
        self.kick(lun);
    }

    /// Whether `lun` could take a write of the pool.
    #[inline]
    pub(super) fn has_ready_plane(&self, lun: LunId) -> bool {
        let order = self.ftl.allocation.order();
        self.array.planes_of(lun).any(|plane| self.ftl.ready().contains(order.position(PlaneId(plane))))
    }

    /// A plane with room of `lun`, for a write of the pool: the planes of a LUN take turns. An order alone would send
    /// nearly all to the one that comes first in it, since a LUN that takes a write is not idle for the others.
    pub(super) fn choose_plane(&mut self, lun: LunId) -> PlaneId {
        let planes = self.array.planes_of(lun);
        let (turn, order) = (self.pool.turns[lun.index()], self.ftl.allocation.order());
        let in_turn = (turn..planes.end).chain(planes.start..turn);
        let chosen = in_turn.into_iter().find(|&plane| self.ftl.ready().contains(order.position(PlaneId(plane))));
        let chosen =
            chosen.unwrap_or_else(|| unreachable!("a LUN takes from the pool only with a plane that has room"));
        self.pool.turns[lun.index()] = if chosen + 1 < planes.end { chosen + 1 } else { planes.start };
        PlaneId(chosen)
    }
}
