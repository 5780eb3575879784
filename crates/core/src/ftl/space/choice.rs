//! Choice of victims.

use super::region::{Region, RegionId};
use super::victims::Victims;
use super::{Block, BlockState, RegionView, Role, Space};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};

impl Space {
    /// Returns the view of a region for policies.
    pub fn view(&self, region: RegionId) -> RegionView<'_> {
        let region = &self.regions[region.0 as usize];
        RegionView {
            region,
            free: region.free,
            blocks: &self.blocks,
            count: self.blocks_per_plane.divisor() * region.planes,
            closed: self.victims[region.role as usize].as_ref().map(|victims| &victims.closed),
            size: *self.size(region.role),
            clock: self.clock,
            erases: self.erases_of(region),
            cold: None,
        }
    }

    /// Adds a block that is closed now to the candidates of the policies.
    pub(super) fn add_candidate(&mut self, id: BlockId) {
        self.add_to_closed(id);
        let Block { erases, role, .. } = self.blocks[id.index()];
        let (plane, units, clock) = (self.plane_of(id), self.size(role).data_units, self.clock);
        if role == Role::Data
            && let Some(cold) = self.wear.as_mut().and_then(|wear| wear.cold.as_mut())
        {
            cold.add(plane, id, erases, units, clock);
        }
    }

    /// Makes a block a candidate again that was passed over.
    fn put_back_candidate(&mut self, id: BlockId) {
        self.add_to_closed(id);
        let plane = self.plane_of(id);
        if self.block(id).role == Role::Data
            && let Some(cold) = self.wear.as_mut().and_then(|wear| wear.cold.as_mut())
        {
            cold.put_back(plane, id);
        }
    }

    fn add_to_closed(&mut self, id: BlockId) {
        let Block { valid, role, erases, .. } = self.blocks[id.index()];
        let (plane, valid, clock) = (self.plane_of(id), u32::from(valid), self.clock);
        let invalid = self.size(role).data_units - valid;
        let region = self.region_mut(plane, role);
        region.invalid += invalid;
        region.closed += 1;
        if let Some(victims) = &mut self.victims[role as usize] {
            victims.closed.insert(plane, id, valid, erases, clock);
        }
    }

    /// Chooses a victim among the closed blocks of a region, if some block is sure to free space.
    ///
    /// The units of a victim are moved in whole programs, and the last one is padded. So a block frees space only if at
    /// least a program of its units is invalid. That is sure for some block if the region has more invalid units than
    /// all of its closed blocks could have below that number.
    ///
    /// Blocks that free fewer than `least` units, or that the wear policy refuses, are passed over and become
    /// candidates again.
    pub fn take_victim(&mut self, region: RegionId, least: u32) -> Option<BlockId> {
        self.sum_pool(region);
        let Region { role, invalid, closed, .. } = self.regions[region.0 as usize];
        let in_vain = self.size(role).program_units - self.layout(role).granule;
        if u64::from(invalid) <= u64::from(closed) * u64::from(in_vain) {
            return None;
        }
        let first = self.take_candidate(region)?;
        let suits = self.reclaimable_of(first) >= least && self.wear_allows(first);
        let id = if suits { first } else { self.take_reclaiming(region, least, first)? };
        self.make_victim(id, CopyCause::Gc);
        Some(id)
    }

    /// Starts to refresh a closed block of data.
    pub(in crate::ftl) fn take_refreshed(&mut self, id: BlockId) {
        self.remove_candidate(id);
        self.make_victim(id, CopyCause::Refresh);
    }

    /// Turns a closed block, which is not a candidate any more, into a victim.
    fn make_victim(&mut self, id: BlockId, cause: CopyCause) {
        if let Some(wear) = &mut self.wear {
            // The migration of a cold block, possibly in another plane of the pool, ends.
            let plane = self.blocks_per_plane.divide(id.0) as usize;
            wear.migrations[plane].due.take_if(|due| *due == id);
        }
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.state, BlockState::Closed);
        (block.state, block.moved_for) = (BlockState::Victim, cause);
    }

    /// Sets the reason for which the valid units of a victim are moved.
    pub fn move_for(&mut self, victim: BlockId, cause: CopyCause) {
        self.blocks[victim.index()].moved_for = cause;
    }

    /// Has the policy choose a block, and removes it from the candidates.
    fn take_candidate(&mut self, id: RegionId) -> Option<BlockId> {
        self.sum_pool(id);
        let erases = self.erases_of(&self.regions[id.0 as usize]);
        let region = &self.regions[id.0 as usize];
        let Victims { policy, closed } = self.victims[region.role as usize].as_mut()?;
        closed.settle(region.plane);
        let view = RegionView {
            region,
            free: region.free,
            blocks: &self.blocks,
            count: self.blocks_per_plane.divisor() * region.planes,
            closed: Some(closed),
            size: self.layouts[region.role as usize].size,
            clock: self.clock,
            erases,
            cold: None,
        };
        let block = policy.choose(&view)?;
        self.remove_candidate(block);
        Some(block)
    }

    /// Removes a closed block from the candidates of the victim policy.
    pub(super) fn remove_candidate(&mut self, id: BlockId) {
        let Block { valid, role, .. } = self.blocks[id.index()];
        let plane = self.plane_of(id);
        let invalid = self.size(role).data_units - u32::from(valid);
        if let Some(victims) = &mut self.victims[role as usize] {
            victims.closed.remove(plane, id);
        }
        if role == Role::Data
            && let Some(cold) = self.wear.as_mut().and_then(|wear| wear.cold.as_mut())
        {
            cold.remove(plane, id);
        }
        let region = self.region_mut(plane, role);
        region.invalid -= invalid;
        region.closed -= 1;
    }

    /// Returns the number of units that moving a block frees, in whole programs.
    pub(super) fn reclaimable_of(&self, id: BlockId) -> u32 {
        let size = self.size_of(id);
        size.data_units - u32::from(self.blocks[id.index()].valid).next_multiple_of(size.program_units)
    }

    /// Passes over `first`, and over other candidates until one frees `least` units and the wear policy allows it. If
    /// the policy allows none, takes the first one that frees `least` units.
    #[cold]
    fn take_reclaiming(&mut self, region: RegionId, least: u32, first: BlockId) -> Option<BlockId> {
        let mut passed = vec![first];
        let mut found = None;
        while let Some(id) = self.take_candidate(region) {
            if self.reclaimable_of(id) >= least && self.wear_allows(id) {
                found = Some(id);
                break;
            }
            passed.push(id);
        }
        if found.is_none() {
            let refused = passed.iter().position(|&id| self.reclaimable_of(id) >= least);
            found = refused.map(|position| passed.remove(position));
        }
        passed.into_iter().for_each(|id| self.put_back_candidate(id));
        found
    }

    /// Writes the closed blocks and the policy of each role to a saved state.
    pub(in crate::ftl) fn save_victims(&self, out: &mut Writer) -> Result<(), StateError> {
        for Victims { policy, closed } in self.victims.iter().flatten() {
            let planes = (0..self.planes.len() as u32).step_by(closed.planes() as usize);
            planes.map(PlaneId).try_for_each(|plane| closed.save(plane, out))?;
            policy.save(out)?;
        }
        let Some(wear) = &self.wear else { return Ok(()) };
        if let Some(cold) = &wear.cold {
            cold.save(out)?;
        }
        wear.policy.save(out)
    }

    /// Reads what [`Space::save_victims`] wrote, into the space of a new device.
    pub(in crate::ftl) fn load_victims(&mut self, input: &mut Reader) -> Result<(), StateError> {
        let per_plane = self.blocks_per_plane.divisor() as usize;
        for role in Role::ALL {
            let Some(Victims { policy, closed }) = &mut self.victims[role as usize] else { continue };
            let planes = closed.planes() as usize;
            let firsts = (0..).step_by(planes).map(PlaneId);
            for (plane, blocks) in firsts.zip(self.blocks.chunks(per_plane * planes)) {
                let is_closed = |block: &Block| block.state == BlockState::Closed && block.role == role;
                let known = |block| is_closed(block).then_some((block.valid, block.erases));
                let mut known: Vec<_> = blocks.iter().map(known).collect();
                closed.load(plane, &mut known, self.clock, input)?;
            }
            policy.load(input)?;
        }
        let Some(wear) = &mut self.wear else { return Ok(()) };
        if let Some(cold) = &mut wear.cold {
            let is_closed = |block: &Block| block.state == BlockState::Closed && block.role == Role::Data;
            let closed = (0..).zip(&self.blocks).filter(|(_, block)| is_closed(block));
            let placed = closed.map(|(id, _)| (PlaneId(id / per_plane as u32), BlockId(id)));
            cold.load(placed, self.clock, input)?;
        }
        wear.policy.load(input)
    }
}
