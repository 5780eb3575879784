//! Failed blocks: they are removed from the free blocks and the frontiers, and are never used again.

use std::ops::Range;

use super::{Block, BlockState, Claim, Role, Space};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId, Ppn};

impl Space {
    /// Returns the number of good blocks of a plane.
    pub fn good(&self, plane: PlaneId) -> u32 {
        self.blocks_per_plane.divisor() - self.bad(plane)
    }

    /// Returns the number of bad blocks of a plane.
    pub fn bad(&self, plane: PlaneId) -> u32 {
        self.planes[plane.index()].bad
    }

    /// Describes the blocks whose erase has to wait. `holds` returns `true` if records of trims have to be in flash
    /// before the erase of a block.
    pub fn describe_awaiting_erase(&self, holds: impl Fn(BlockId) -> bool) -> String {
        let awaiting = self.awaiting_erase().map(|id| {
            let records = if holds(id) { ", with records of trims" } else { "" };
            format!("block {} for {} operations{records}", id.0, self.block(id).dependents)
        });
        let texts = awaiting.collect::<Vec<_>>().join(", ");
        if texts.is_empty() { "no block awaits its erase".to_owned() } else { format!("erases wait: {texts}") }
    }

    /// Returns the number of dependents of a block of a plane that awaits its erase and can be used after that.
    pub fn dependents_before_erase(&self, plane: PlaneId, id: BlockId) -> Option<u32> {
        let &Block { state, failed, dependents, .. } = self.block(id);
        let awaits_erase = self.plane_of(id) == plane && state == BlockState::AwaitingErase && !failed;
        awaits_erase.then_some(dependents.into())
    }

    /// Removes blocks from the free blocks of a new device, or of one that is being recovered.
    pub(crate) fn mark_bad(&mut self, bad: &[BlockId]) {
        for &id in bad {
            self.blocks[id.index()] = Block { state: BlockState::Bad, failed: true, ..self.blocks[id.index()] };
            let plane = self.plane_of(id);
            self.planes[plane.index()].bad += 1;
        }
        if !bad.is_empty() {
            let per_plane = self.blocks_per_plane.divisor();
            (0..self.planes.len() as u32).for_each(|p| self.list_free(p * per_plane..(p + 1) * per_plane));
        }
    }

    /// Forgets the bad blocks of a new device, before a recovery marks those that it has found.
    pub(crate) fn forget_bad(&mut self) {
        for id in (0..self.blocks.len() as u32).map(BlockId) {
            if self.block(id).failed {
                self.blocks[id.index()] = Block { role: self.role_of_free(id), ..Block::default() };
            }
        }
        let per_plane = self.blocks_per_plane.divisor();
        for plane in 0..self.planes.len() as u32 {
            self.planes[plane as usize].bad = 0;
            self.list_free(plane * per_plane..(plane + 1) * per_plane);
        }
    }

    /// Lists the free blocks of a plane. `blocks` are all blocks of the plane.
    pub(super) fn list_free(&mut self, blocks: Range<u32>) {
        let plane = self.plane_of(BlockId(blocks.start));
        self.free.clear(plane);
        for id in blocks.map(BlockId) {
            let Block { state, erases, role, .. } = *self.block(id);
            if state == BlockState::Free && role != Role::Cache {
                self.free.add(plane, id, erases);
            }
        }
        // If there are too few for all regions, data gets the rest.
        let mut left = self.free.count(plane);
        let map = self.region_mut(plane, Role::Map);
        map.free = map.free.min(left);
        left -= map.free;
        self.count_free_of_cache(plane);
        self.region_mut(plane, Role::Data).free = left;
        self.count_free();
    }

    /// Marks a block as failed, because a program or an erase of it has failed, and ends its frontier. Returns `true`
    /// if this is new, and the units of the block that will never be programmed.
    pub(in crate::ftl) fn fail(&mut self, id: BlockId) -> (bool, Range<u32>) {
        let plane = self.plane_of(id);
        let mut left = 0..0;
        if let Some(at) = self.frontier_in(id) {
            let frontier = &mut self.frontiers[at.0 as usize];
            left = frontier.next..frontier.next + std::mem::take(&mut frontier.left);
        }
        let block = &mut self.blocks[id.index()];
        let is_new = !std::mem::replace(&mut block.failed, true);
        self.planes[plane.index()].bad += u32::from(is_new);
        (is_new, left)
    }

    /// Closes a block whose last program has ended. With `faults.wear_out = "exclude"`, a block that has reached its
    /// endurance counts as bad instead: it keeps its data, and garbage collection never chooses it. Returns `true` for
    /// such a block.
    #[inline]
    pub(in crate::ftl) fn close_or_exclude(&mut self, id: BlockId) -> bool {
        let erases = self.block(id).erases;
        let is_worn_out = self.excluded_after.is_some_and(|endurance| erases >= endurance);
        if is_worn_out {
            let plane = self.plane_of(id);
            self.planes[plane.index()].bad += 1;
            self.blocks[id.index()].state = BlockState::WornOut;
        } else {
            self.close(id);
        }
        is_worn_out
    }

    /// Has a failed block wait for its evacuation. None of its programs is in flight.
    pub(in crate::ftl) fn set_failed(&mut self, id: BlockId) {
        let block = &mut self.blocks[id.index()];
        debug_assert!(block.failed && block.state == BlockState::Open);
        block.state = BlockState::Failed;
    }

    /// Starts the evacuation of a failed block.
    pub(in crate::ftl) fn take_failed(&mut self, id: BlockId) {
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.state, BlockState::Failed);
        (block.state, block.moved_for) = (BlockState::Victim, CopyCause::FailedBlock);
    }

    /// Retires a failed block, which is empty.
    pub(in crate::ftl) fn set_bad(&mut self, id: BlockId) {
        let first = self.first_unit(id).0;
        debug_assert!(
            (first..first + self.units_per_block()).all(|unit| !self.is_valid(Ppn(unit))),
            "a retired block holds no valid units"
        );
        let role = self.role_of_free(id);
        let block = &mut self.blocks[id.index()];
        debug_assert!(block.failed);
        (block.state, block.role) = (BlockState::Bad, role);
        self.awaiting_erase.remove(&id.0);
    }

    /// Sets the number of free blocks of a plane that the host leaves to garbage collection.
    pub(in crate::ftl) fn set_kept(&mut self, plane: PlaneId, kept: u32) {
        self.region_mut(plane, Role::Data).reserve = kept;
    }

    /// Turns a free data block into one for translation pages. Returns `false` if only the reserve is free.
    pub(in crate::ftl) fn give_to_map(&mut self, plane: PlaneId) -> bool {
        let gives = self.may_take(self.region(plane, Role::Data), Claim::Lend);
        if gives {
            self.take_free(plane, Role::Data);
            self.add_free(plane, Role::Map);
        }
        gives
    }
}
