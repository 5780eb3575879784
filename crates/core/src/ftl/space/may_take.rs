//! Rules for free pages: one table for all claims on the free space of a region.

use super::Space;
use super::claim::{Claim, InHand, RESERVE};
use super::region::{Layout, Region, RegionId};

/// Row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Units left in the open blocks that the claim may use.
    open: u32,
    /// Free blocks that the claim may open.
    blocks: u32,
    /// Units that the claim has to leave in these.
    left: u32,
    /// Units that the claim needs.
    needs: u32,
}

impl Row {
    /// Returns the units that the claim may use.
    #[inline]
    fn units(&self, layout: &Layout) -> u32 {
        self.open + self.blocks * layout.size.data_units
    }
}

impl Space {
    /// Returns `true` if a claim on a region finds the space that it needs.
    #[inline]
    pub fn may_take(&self, region: RegionId, claim: Claim) -> bool {
        let region = &self.regions[region.0 as usize];
        if let Some(superblocks) = &self.superblocks {
            return self.finds_room_in(superblocks, region, claim);
        }
        // Most writes need no other test.
        if matches!(claim, Claim::Write { besides: 0 }) && region.free > region.reserve {
            return true;
        }
        self.finds_room(region, claim)
    }

    fn finds_room(&self, region: &Region, claim: Claim) -> bool {
        let row = self.row(region, claim);
        row.is_some_and(|row| row.units(self.layout(region.role)) >= row.left + row.needs)
    }

    /// Returns the units that a claim may take.
    pub fn units_for(&self, region: RegionId, claim: Claim) -> u32 {
        let region = &self.regions[region.0 as usize];
        let row = self.row(region, claim);
        row.map_or(0, |row| row.units(self.layout(region.role)).saturating_sub(row.left))
    }

    /// Returns `true` if a claim may open a free block.
    #[inline]
    pub(super) fn may_open(&self, region: &Region, claim: Claim) -> bool {
        self.row(region, claim).is_some_and(|row| row.blocks > 0)
    }

    /// Returns the row of a claim, or `None` if the claim is refused. Writes leave the reserve, and a victim finds room
    /// as a whole. A write that must not wait leaves the room that garbage collection needs for its outstanding units.
    #[inline]
    fn row(&self, region: &Region, claim: Claim) -> Option<Row> {
        let layout = self.layout(region.role);
        let (data, program, free) = (layout.size.data_units, layout.size.program_units, region.free);
        let writes = || self.units_left(region, 0..layout.writes);
        let moved = || self.units_left(region, layout.for_moved());
        let begun = |hand: InHand| if hand.read > 0 { program } else { 0 };
        // Units that were read go to the frontiers of writes in whole programs. None is kept for the next victim.
        let is_refused = |hand: InHand| hand.read > 0 && layout.is_shared;
        match claim {
            // Room that garbage collection took from the reserve is not for writes, even if they share its frontiers.
            Claim::Write { besides } => {
                let open = if layout.is_shared && free < region.reserve { 0 } else { writes() };
                Some(Row { open, blocks: free.saturating_sub(region.reserve), left: besides, needs: layout.granule })
            }
            // The write opens a block. Outstanding units, and those of a victim, find room without that block.
            Claim::Retry(hand) => {
                let in_hand = hand.units.next_multiple_of(program) + hand.waste;
                (free > 0).then(|| Row { open: moved(), blocks: free, left: in_hand + data, needs: data })
            }
            // Until the programs have freed the block, outstanding units find room, and one more program.
            Claim::Freeing { hand, programs } => {
                let left = if hand.units == 0 { 0 } else { hand.units.next_multiple_of(program) + program };
                let open = self.units_left(region, layout.for_moved().start..layout.for_moved().start + 1);
                (hand.awaiting_erase > 0).then_some(Row { open, blocks: free, left, needs: programs * program })
            }
            Claim::Move => Some(Row { open: moved(), blocks: free, left: 0, needs: 1 }),
            Claim::Victim(hand) if is_refused(hand) => None,
            Claim::Victim(hand) => Some(Row { open: moved(), blocks: free, left: begun(hand), needs: data }),
            Claim::Fold { hand, valid } => {
                let blocks = (free + 1).saturating_sub(region.reserve);
                let left = hand.units.next_multiple_of(program);
                Some(Row { open: moved(), blocks, left, needs: valid.next_multiple_of(program) })
            }
            Claim::Failed { hand, .. } if is_refused(hand) => None,
            // The evacuation leaves room for a victim, and for another block that fails.
            Claim::Failed { hand, valid } => {
                let left = begun(hand) + layout.beside_failed * data;
                Some(Row { open: moved(), blocks: free, left, needs: valid.next_multiple_of(program) })
            }
            Claim::Block => Some(Row { open: 0, blocks: free, left: 0, needs: data }),
            Claim::Lend => {
                let kept = RESERVE + u32::from(self.has_cache());
                Some(Row { open: 0, blocks: free.saturating_sub(kept), left: 0, needs: data })
            }
        }
    }

    /// Returns `true` if garbage collection of a region is sure to continue: its outstanding units find room, and so do
    /// the units of a victim afterwards.
    pub fn is_sure(&self, region: RegionId, hand: InHand) -> bool {
        if let Some(superblocks) = &self.superblocks {
            return self.are_sure(superblocks, self.regions[region.0 as usize].plane);
        }
        let size = self.layout(self.regions[region.0 as usize].role).size;
        let in_hand = hand.units.next_multiple_of(size.program_units) + hand.waste;
        let left = self.units_for(region, Claim::Move).checked_sub(in_hand);
        left.is_some_and(|left| left + hand.coming * size.data_units >= size.data_units)
    }
}

#[cfg(test)]
mod tests;
