//! Blocks of the SLC cache: the first blocks of each plane, which are opened, filled and folded in the order of their
//! addresses, round and round.
//!
//! They have fixed addresses, so that a recovery knows their cell mode, and are not among the free blocks of other
//! regions. A bad block of the cache makes the cache smaller.

use super::{Block, BlockState, Claim, FrontierId, Role, Space};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId};

impl Space {
    /// Returns the role of a block that is free: that of its address.
    pub fn role_of_free(&self, id: BlockId) -> Role {
        let is_of_cache = self.cache.as_ref().is_some_and(|cache| self.index_in_plane(id) < cache.blocks);
        if is_of_cache { Role::Cache } else { Role::Data }
    }

    /// Returns the frontier of the cache in a plane; only if there is a cache.
    pub fn cache_frontier(&self, plane: PlaneId) -> FrontierId {
        FrontierId(self.layout(Role::Cache).first + plane.0)
    }

    /// Returns `true` if the cache of a plane has room for a host write. `false` without a cache.
    #[inline]
    pub fn cache_takes_write(&self, plane: PlaneId) -> bool {
        self.has_cache() && self.may_take(self.region(plane, Role::Cache), Claim::WRITE)
    }

    /// Returns `true` if host writes of a plane wait when its cache has no room. They do not if all its blocks are bad.
    fn waits(&self, plane: PlaneId) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.waits) && self.ring(plane).any(|id| !self.block(id).failed)
    }

    /// Returns `true` if host writes wait for folding in a plane.
    pub fn waits_for_folding(&self, plane: PlaneId) -> bool {
        self.waits(plane) && !self.cache_takes_write(plane)
    }

    /// Returns `true` if a plane whose first choice for host writes has no room takes them elsewhere.
    #[cold]
    pub(super) fn takes_elsewhere(&self, plane: PlaneId) -> bool {
        self.has_cache() && !self.waits(plane) && self.may_take(self.region(plane, Role::Data), Claim::WRITE)
    }

    /// Returns `true` if a plane takes a write of the device itself, which does not wait for folding or for a burst,
    /// because these may wait for it.
    pub fn takes_own_write(&self, plane: PlaneId) -> bool {
        self.has_host_room(plane) || (self.has_cache() && self.may_take(self.region(plane, Role::Data), Claim::WRITE))
    }

    /// Returns the number of units of host writes that a plane takes.
    pub fn room_for_host(&self, plane: PlaneId) -> u32 {
        let of = |role| self.units_for(self.region(plane, role), Claim::WRITE);
        match self.has_cache() {
            false => of(Role::Data),
            true if self.waits(plane) => of(Role::Cache),
            true => of(Role::Cache) + of(Role::Data),
        }
    }

    /// Returns the blocks of the cache of a plane, from the one after the block that was opened last.
    fn ring(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> + use<> {
        let (blocks, last) = self.cache.as_ref().map_or((0, 0), |cache| (cache.blocks, cache.last[plane.index()]));
        let first = plane.0 * self.blocks_per_plane.divisor();
        (1..=blocks).map(move |step| BlockId(first + (last + step) % blocks))
    }

    /// Returns the block of the cache that is opened next in a plane.
    pub(super) fn next_of_cache(&self, plane: PlaneId) -> Option<BlockId> {
        self.ring(plane).find(|&id| self.block(id).state == BlockState::Free)
    }

    /// Takes the next free block of the cache of a plane, which has one.
    pub(super) fn take_of_cache(&mut self, plane: PlaneId) -> BlockId {
        let next = self.next_of_cache(plane);
        let block = next.unwrap_or_else(|| unreachable!("plane {} has no free block in its cache", plane.0));
        let index = self.index_in_plane(block);
        if let Some(cache) = &mut self.cache {
            cache.last[plane.index()] = index;
        }
        self.take_free(plane, Role::Cache);
        block
    }

    /// Returns the number of full blocks of the cache of a plane.
    pub fn full_of_cache(&self, plane: PlaneId) -> u32 {
        self.region_of(plane, Role::Cache).closed
    }

    /// Returns the full block of the cache of a plane that was opened first.
    pub fn oldest_of_cache(&self, plane: PlaneId) -> Option<BlockId> {
        self.ring(plane).find(|&id| self.block(id).state == BlockState::Closed)
    }

    /// Starts to fold a full block of the cache.
    pub(in crate::ftl) fn take_folded(&mut self, id: BlockId) {
        self.remove_candidate(id);
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!((block.state, block.role), (BlockState::Closed, Role::Cache));
        (block.state, block.moved_for) = (BlockState::Victim, CopyCause::Fold);
    }

    /// Counts the free blocks of the cache of a plane.
    pub(super) fn count_free_of_cache(&mut self, plane: PlaneId) {
        let is_free = |block: &&Block| block.state == BlockState::Free && block.role == Role::Cache;
        self.region_mut(plane, Role::Cache).free = self.of_plane(plane).iter().filter(is_free).count() as u32;
    }
}
