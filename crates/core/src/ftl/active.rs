//! Planes of pools that take host writes, if the active blocks of a pool are limited.

use super::Ftl;
use super::allocation::active::Rank;
use super::space::Role;
use crate::sim::id::PlaneId;
use crate::work::{Task, Tasks};

impl Ftl {
    fn rank_of(&self, plane: PlaneId) -> Rank {
        let has_open = self.blocks.room(self.blocks.host_frontier(plane, 0)) > 0;
        self.blocks.takes_host_write(plane).then(|| (has_open, self.blocks.free_blocks(plane, Role::Data)))
    }

    /// Chooses the planes of the pool of a plane that take host writes, if the rank of the plane has changed.
    #[inline(never)]
    pub(super) fn refresh_active(&mut self, plane: PlaneId) {
        let rank = self.rank_of(plane);
        let Some(mut active) = self.active.take_if(|active| active.is_new(plane, rank)) else { return };
        let mut ready = std::mem::take(&mut self.ready);
        let of = |plane| (self.rank_of(plane), self.allocation.order().position(plane));
        active.choose(active.pool_of(plane), of, &mut ready);
        (self.active, self.ready) = (Some(active), ready);
    }

    /// Offers the writes of pools in which another block has become active.
    pub fn offer_to_active(&mut self, tasks: &mut Tasks) {
        if let Some(active) = &mut self.active {
            active.changed.drain(..).for_each(|pool| tasks.push(Task::Offer(pool)));
        }
    }

    /// Returns `true` if a plane takes host writes of its pool.
    #[inline]
    pub fn takes_pooled(&self, plane: PlaneId) -> bool {
        match self.active {
            Some(_) => self.ready.contains(self.allocation.order().position(plane)),
            None => self.blocks.takes_host_write(plane),
        }
    }
}
