//! The reserve of a region as a trigger: when space has to be freed, and whether it can be.
//!
//! These are not claims. They decide when garbage collection is due, and [`Space::may_take`] who may take free pages.

use super::claim::RESERVE;
use super::region::{RegionId, Role};
use super::{Block, BlockState, Space};
use crate::sim::id::PlaneId;

impl Space {
    /// Returns `true` if a region has only the reserve left, even after `coming` more of its blocks are erased.
    #[inline]
    pub fn is_down_to_reserve(&self, region: RegionId, coming: u32) -> bool {
        self.regions[region.0 as usize].free + coming <= RESERVE
    }

    /// Returns `true` if a region has fewer free blocks than the reserve. Garbage collection cannot start then.
    pub fn lacks_reserve(&self, region: RegionId) -> bool {
        self.regions[region.0 as usize].free < RESERVE
    }

    /// Returns `true` if `pages` translation pages always find room in the good blocks that a plane keeps for them:
    /// while one of these is free, the others hold an invalid page. Pages that a failed block still holds count as
    /// moved there. Writes may fill the frontier, so it is one of the others (`config/reserve.rs` keeps one more).
    ///
    /// Blocks that data owe do not count. Garbage collection of data may need updates of translation pages before it
    /// frees a block, and those would wait for that block.
    pub fn holds_map(&self, plane: PlaneId, pages: u32) -> bool {
        let is_used = |block: &&Block| block.role == Role::Map && !block.failed && block.state != BlockState::Free;
        let used = self.of_plane(plane).iter().filter(is_used).count() as u32;
        let (of_map, size) = (self.free_blocks(plane, Role::Map) + used, self.size(Role::Map));
        of_map.saturating_sub(1) * (size.data_units / size.program_units) > pages
    }
}
