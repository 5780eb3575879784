//! Active blocks: limits the number of planes of a pool with an open block for host writes
//! (`allocation.dynamic.active_blocks`).
//!
//! The planes of a pool are ranked: first those with an open block, then those with the most free blocks. The first of
//! them take host writes. Nothing of this is saved, because the ranks follow from the blocks. A plane without room has
//! no rank, so some plane of the pool takes host writes if any could without the limit.

use std::cmp::Reverse;
use std::ops::Range;

use super::{AllocationConfig, PlaneSet};
use crate::config::DeviceConfig;
use crate::sim::id::PlaneId;

/// Rank of a plane with room for host writes: whether it has an open block, and its free blocks. `None` without room.
pub type Rank = Option<(bool, u32)>;

/// Limit of the active blocks of each pool.
#[derive(Clone, Debug)]
pub struct Active {
    /// Number of active blocks of a pool.
    blocks: u32,
    planes_per_pool: u32,
    /// Ranks at the last choice, indexed by plane.
    ranks: Vec<Rank>,
    /// Reused memory: planes of a pool by rank, then by position in the order of the allocation.
    sorted: Vec<(Reverse<(bool, u32)>, u32)>,
    /// Pools with a plane that has come to take host writes.
    pub changed: Vec<u32>,
}

impl Active {
    /// Returns the limit of a device, if there is one.
    pub fn new(device: &DeviceConfig) -> Option<Active> {
        let AllocationConfig::Dynamic(options) = &device.allocation else { return None };
        let (pools, planes_per_pool) = (options.pools(device), options.planes_per_pool(device));
        Some(Active {
            blocks: options.active_blocks?,
            planes_per_pool,
            ranks: vec![None; device.total_planes() as usize],
            sorted: Vec::with_capacity(planes_per_pool as usize),
            changed: Vec::with_capacity(pools as usize),
        })
    }

    /// Returns `true` if the rank of a plane has changed since the last choice.
    #[inline]
    pub fn is_new(&self, plane: PlaneId, rank: Rank) -> bool {
        self.ranks[plane.index()] != rank
    }

    /// Returns the planes of the pool of a plane.
    pub fn pool_of(&self, plane: PlaneId) -> Range<u32> {
        let first = plane.0 / self.planes_per_pool * self.planes_per_pool;
        first..first + self.planes_per_pool
    }

    /// Chooses the planes of a pool that take host writes, from the rank and the position of each of its planes.
    pub fn choose(&mut self, pool: Range<u32>, of: impl Fn(PlaneId) -> (Rank, u32), ready: &mut PlaneSet) {
        let number = pool.start / self.planes_per_pool;
        let mut has_new = false;
        self.sorted.clear();
        for plane in pool.map(PlaneId) {
            let (rank, position) = of(plane);
            self.ranks[plane.index()] = rank;
            match rank {
                Some(rank) => self.sorted.push((Reverse(rank), position)),
                None => ready.set(position, false),
            }
        }
        self.sorted.sort_unstable();
        for (index, &(_, position)) in (0..).zip(&self.sorted) {
            has_new |= index < self.blocks && !ready.contains(position);
            ready.set(position, index < self.blocks);
        }
        if has_new && !self.changed.contains(&number) {
            self.changed.push(number);
        }
    }
}
