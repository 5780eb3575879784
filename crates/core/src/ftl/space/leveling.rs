//! Wear leveling: applies the wear policy to free blocks, victims and migrations.

use super::region::RegionId;
use super::{BlockState, LOOK_AHEAD, RegionView, Role, Space};
use crate::ftl::gc::wear::WearPolicy;
use crate::sim::id::{BlockId, PlaneId};

impl Space {
    /// Calls the wear policy with a view of a region. Returns `None` if wear is not leveled.
    #[cold]
    fn ask_wear<R>(&mut self, region: RegionId, ask: impl FnOnce(&mut dyn WearPolicy, &RegionView) -> R) -> Option<R> {
        let mut wear = self.wear.take()?;
        let answer = ask(&mut *wear.policy, &self.view(region));
        self.wear = Some(wear);
        Some(answer)
    }

    /// Returns the block before the free block that the wear policy picks, in the list of free blocks. Returns `None`
    /// if the oldest block is picked.
    pub(super) fn before_picked(&mut self, plane: PlaneId, role: Role) -> Option<u32> {
        let state = &self.planes[plane.index()];
        let following = |&block: &u32| Some(self.next_free[block as usize]);
        let listed = std::iter::successors(Some(state.first_free), following);
        let oldest: Vec<BlockId> = listed.take(state.free.min(LOOK_AHEAD) as usize).map(BlockId).collect();
        let picked = self.ask_wear(self.region(plane, role), |policy, view| policy.pick_free(view, &oldest))?;
        picked.checked_sub(1).map(|before| oldest[before].0)
    }

    /// Returns `true` if the wear policy allows a victim.
    pub(super) fn wear_allows(&mut self, region: RegionId, victim: BlockId) -> bool {
        self.wear.is_none() || self.ask_wear(region, |policy, view| policy.allows(view, victim)) != Some(false)
    }

    /// Has the wear policy choose a block to migrate after an erase.
    #[cold]
    pub(super) fn level_after(&mut self, region: RegionId, erased: BlockId) {
        let Some(wear) = &mut self.wear else { return };
        if let Some(position) = wear.migrating.iter().position(|&block| block == erased) {
            wear.migrating.swap_remove(position);
            return;
        }
        let due = self.ask_wear(region, |policy, view| policy.erased(view, erased)).flatten();
        if let (Some(due), Some(wear)) = (due, &mut self.wear)
            && !wear.due.contains(&due)
        {
            wear.due.push(due);
        }
    }

    /// Takes a closed block of a region that is to be migrated and frees at least `least` units.
    pub(super) fn take_due(&mut self, region: RegionId, least: u32) -> Option<BlockId> {
        let mut wear = self.wear.take()?;
        wear.due.retain(|&block| self.block(block).state == BlockState::Closed);
        let of_region = |id: BlockId| self.region(self.plane_of(id), self.block(id).role) == region;
        let position = wear.due.iter().position(|&id| of_region(id) && self.reclaimable_of(id) >= least);
        let due = position.map(|position| wear.due.swap_remove(position));
        wear.migrating.extend(due);
        self.wear = Some(wear);
        due.inspect(|&id| self.remove_candidate(id))
    }

    /// Returns a block that is to be migrated, if there is one. A device with such a block is not at rest.
    pub(super) fn first_due(&self) -> Option<BlockId> {
        self.wear.as_ref()?.due.first().copied()
    }
}
