//! Who may take free pages: one table with the rules of all claims on the free space of a region.

use super::Space;
use super::claim::{Claim, InHand, RESERVE};
use super::region::{Layout, Region, RegionId};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Units left in the open blocks that the claim may use.
    open: u32,
    /// Free blocks that it may open.
    blocks: u32,
    /// Units of all these that it has to leave.
    left: u32,
    /// Units that it needs.
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
        // Most writes need not look any further.
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

    /// The table. Writes leave the reserve, a victim finds room as a whole, and a write that must not wait leaves what
    /// garbage collection has in hand. `None` refuses the claim.
    #[inline]
    fn row(&self, region: &Region, claim: Claim) -> Option<Row> {
        let layout = self.layout(region.role);
        let (data, program, free) = (layout.size.data_units, layout.size.program_units, region.free);
        let writes = || self.units_left(region, 0..layout.writes);
        let moved = || self.units_left(region, layout.for_moved());
        let begun = |hand: InHand| if hand.read > 0 { program } else { 0 };
        // What is read goes to the frontiers of writes in whole programs: nothing is kept for the next victim.
        let is_refused = |hand: InHand| hand.read > 0 && layout.is_shared;
        match claim {
            // Room that garbage collection took from the reserve is not for writes, also where they share frontiers.
            Claim::Write { besides } => {
                let open = if layout.is_shared && free < region.reserve { 0 } else { writes() };
                Some(Row { open, blocks: free.saturating_sub(region.reserve), left: besides, needs: layout.granule })
            }
            // A block of its own: that of what it has in hand, and a victim's units, find room without it.
            Claim::Retry(hand) => {
                let in_hand = hand.units.next_multiple_of(program) + hand.waste;
                (free > 0).then(|| Row { open: moved(), blocks: free, left: in_hand + data, needs: data })
            }
            // Until the programs free the block, what is in hand finds room, and one program more.
            Claim::Freeing { hand, programs } => {
                let left = if hand.units == 0 { 0 } else { hand.units.next_multiple_of(program) + program };
                let open = self.units_left(region, layout.for_moved().start..layout.for_moved().start + 1);
                (hand.awaiting_erase > 0).then_some(Row { open, blocks: free, left, needs: programs * program })
            }
            Claim::Move => Some(Row { open: moved(), blocks: free, left: 0, needs: 1 }),
            Claim::Victim(hand) if is_refused(hand) => None,
            Claim::Victim(hand) => Some(Row { open: moved(), blocks: free, left: begun(hand), needs: data }),
            Claim::Failed { hand, .. } if is_refused(hand) => None,
            // It leaves room for a victim, and for another block that fails in its turn.
            Claim::Failed { hand, valid } => {
                let left = begun(hand) + layout.beside_failed * data;
                Some(Row { open: moved(), blocks: free, left, needs: valid.next_multiple_of(program) })
            }
            Claim::Block => Some(Row { open: 0, blocks: free, left: 0, needs: data }),
            Claim::Lend => Some(Row { open: 0, blocks: free.saturating_sub(RESERVE), left: 0, needs: data }),
        }
    }

    /// Returns `true` if garbage collection of a region is sure to continue with what it has in hand: that finds room,
    /// and so do the units of a victim afterwards.
    pub fn is_sure(&self, region: RegionId, hand: InHand) -> bool {
        let size = self.layout(self.regions[region.0 as usize].role).size;
        let in_hand = hand.units.next_multiple_of(size.program_units) + hand.waste;
        let left = self.units_for(region, Claim::Move).checked_sub(in_hand);
        left.is_some_and(|left| left + hand.coming * size.data_units >= size.data_units)
    }
}
