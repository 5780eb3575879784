//! Pools of dynamic allocation: writes that any plane of a pool may take, and sets of planes.

use std::ops::Range;

use crate::config::DeviceConfig;
use crate::ftl::allocation::{Allocation, PlaneSet};
use crate::nand::array::Array;
use crate::sim::id::{LunId, PlaneId, TransactionId};
use crate::sim::table::Table;
use crate::work::{Fifo, Transactions};

/// Offset in the order of pooled writes that are queued while LUNs are held back. Each LUN therefore first starts its
/// own operations that were queued during the hold, because only pooled writes can go to other LUNs.
pub(crate) const AFTER_HELD: u64 = 1 << 24;

/// The pools, with sets of planes by their position in the allocation's order.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// Writes without a plane, oldest first. Indexed by pool of the allocation.
    pub(super) lines: Vec<Fifo>,
    /// Position of each plane in the order of the allocation.
    pub(super) positions: Table<PlaneId, u32>,
    /// Planes in that order.
    pub(super) planes: Vec<PlaneId>,
    /// Pool of each plane.
    pub(super) of_plane: Table<PlaneId, u32>,
    /// True if a LUN may have planes of several pools.
    pub(super) splits_luns: bool,
    /// Planes of idle LUNs.
    pub(super) idle: PlaneSet,
    /// Planes of each channel.
    pub(super) of_channel: Vec<PlaneSet>,
    /// Planes of each pool.
    pub(super) of_pool: Vec<PlaneSet>,
    /// Time at which each plane last took a write, counted in writes.
    pub(super) used: Table<PlaneId, u64>,
    pub(super) uses: u64,
    /// Distances between the planes that take assigned writes and those that the order names, in units and in planes.
    /// Indexed by LUN.
    pub(super) shifts: Vec<(u32, u32)>,
    /// Scratch space.
    pub(super) candidates: PlaneSet,
    pub(super) dealt: Vec<PlaneId>,
    /// LUNs to be queued for their channels: erases if the allocation considers them, time of the last write, and
    /// position in the order.
    pub(super) lining_up: Vec<(u32, u64, u32, LunId)>,
}

impl Pool {
    /// Creates empty pools, with all LUNs idle. `allocation` is `None` if allocation is not dynamic.
    pub(crate) fn new(config: &DeviceConfig, allocation: Option<&Allocation>, array: &Array) -> Pool {
        let planes = config.total_planes();
        let mut idle = PlaneSet::new(planes);
        (0..planes).for_each(|position| idle.set(position, true));
        let empty = PlaneSet::new(planes);
        let pools = allocation.map_or(1, |allocation| allocation.pools()) as usize;
        let mut of_channel = vec![empty.clone(); config.buses() as usize];
        let mut of_pool = vec![empty.clone(); pools];
        let members = if allocation.is_some() { planes } else { 0 };
        let (mut positions, mut of_plane) = (Table::new(members, 0), Table::new(members, 0));
        let mut in_order = vec![PlaneId(0); members as usize];
        if let Some(allocation) = allocation {
            for plane in (0..planes).map(PlaneId) {
                let (position, pool) = (allocation.order().position(plane), allocation.pool_of(plane));
                of_channel[array.channel_of(array.lun_of(plane)).index()].set(position, true);
                of_pool[pool as usize].set(position, true);
                (positions[plane], of_plane[plane]) = (position, pool);
                in_order[position as usize] = plane;
            }
        }
        Pool {
            lines: vec![Fifo::default(); pools],
            positions,
            planes: in_order,
            splits_luns: pools as u32 > array.luns(),
            of_plane,
            idle,
            of_channel,
            of_pool,
            used: Table::new(planes, 0),
            uses: 0,
            shifts: vec![(0, 0); planes as usize],
            candidates: empty,
            dealt: Vec::with_capacity(planes as usize),
            lining_up: Vec::with_capacity(planes as usize),
        }
    }

    /// Returns the pools of the planes of a LUN.
    #[inline]
    pub(super) fn of_lun(&self, array: &Array, lun: LunId) -> Range<u32> {
        let planes = array.planes_of(lun);
        let first = self.of_plane[PlaneId(planes.start)];
        let last = if self.splits_luns { self.of_plane[PlaneId(planes.end - 1)] } else { first };
        first..last + 1
    }

    /// Returns the planes of a LUN that belong to a pool. They are consecutive.
    pub(super) fn planes_in(&self, array: &Array, lun: LunId, pool: u32) -> Range<u32> {
        let planes = array.planes_of(lun);
        if !self.splits_luns {
            return planes;
        }
        let has = |&plane: &u32| self.of_plane[PlaneId(plane)] == pool;
        let first = planes.clone().find(has).unwrap_or(planes.end);
        first..planes.rev().find(has).map_or(first, |last| last + 1)
    }

    /// Returns the writes of the pool of a plane.
    pub(super) fn of(&self, plane: PlaneId) -> &Fifo {
        &self.lines[self.of_plane[plane] as usize]
    }

    /// Removes a write from the pool of a plane, for that plane.
    pub(super) fn remove(&mut self, transactions: &mut Transactions, plane: PlaneId, id: TransactionId) {
        self.lines[self.of_plane[plane] as usize].remove(transactions, id);
        self.note_taken(transactions, plane, id);
    }

    /// Records that a plane takes a write of its pool.
    pub(super) fn note_taken(&mut self, transactions: &mut Transactions, plane: PlaneId, id: TransactionId) {
        transactions[id].plane = plane;
        self.uses += 1;
        self.used[plane] = self.uses;
    }
}
