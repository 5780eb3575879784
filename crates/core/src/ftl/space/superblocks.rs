//! Superblocks: the blocks with equal addresses of all planes of a pool, which are opened, filled, collected and erased
//! together.
//!
//! A pool has at most one superblock open for host writes, and one for moved units. Each plane fills its block at its
//! own pace. The next superblock is opened when all blocks of the last one are full.
//!
//! A stripe has the programs at one offset in the blocks of n planes, and one of them is parity. The parity of a
//! superblock is in whole blocks: in the plane whose position in its stripe is the address of the superblock modulo n.
//! Parity is due when the stripe has no room left. Stripes become full in the order of their offsets, so the pages of
//! parity are programmed in order.
//!
//! The state of open superblocks is not saved, because it follows from the frontiers.

use std::iter::StepBy;
use std::ops::Range;

use super::stripes::{FRONTIERS, MOVED, Superblocks};
use super::{Block, BlockState, Claim, FrontierId, RESERVE, Region, Role, Space};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId, Ppn};

impl Space {
    /// Returns `true` if blocks are used together.
    #[inline]
    pub fn has_superblocks(&self) -> bool {
        self.superblocks.is_some()
    }

    /// Returns `true` if a block holds parity, or will when it is opened.
    pub fn is_parity(&self, id: BlockId) -> bool {
        let index = self.index_in_plane(id);
        self.superblocks.as_ref().is_some_and(|superblocks| superblocks.is_parity(self.plane_of(id), index))
    }

    /// Returns the blocks that are erased together with a block: those of its superblock, or only the block itself.
    pub fn erased_with(&self, id: BlockId) -> impl Iterator<Item = BlockId> + use<> {
        self.members(id).map(BlockId)
    }

    fn members(&self, id: BlockId) -> StepBy<Range<u32>> {
        let Some(superblocks) = &self.superblocks else { return (id.0..id.0 + 1).step_by(1) };
        self.members_in(superblocks, id)
    }

    fn members_in(&self, superblocks: &Superblocks, id: BlockId) -> StepBy<Range<u32>> {
        let per_plane = self.blocks_per_plane.divisor();
        let first = superblocks.first_plane(self.plane_of(id)) * per_plane + self.index_in_plane(id);
        (first..first + superblocks.planes * per_plane).step_by(per_plane as usize)
    }

    // Room.

    /// Returns `true` if a plane takes the next program of a frontier, in its block of the open superblock, or in one
    /// that is opened and leaves `reserve` free ones.
    fn takes(&self, superblocks: &Superblocks, plane: PlaneId, frontier: u32, reserve: u32) -> bool {
        if self.room(FrontierId(plane.0 * FRONTIERS + frontier)) > 0 {
            return true;
        }
        let is_full = superblocks.open[superblocks.slot(plane, frontier)] == 0;
        let next = self.free.first(plane).filter(|_| is_full && self.free_blocks(plane, Role::Data) > reserve);
        next.is_some_and(|next| !superblocks.is_parity(plane, self.index_in_plane(next)))
    }

    /// Returns `true` if a claim on the region of a plane finds room in superblocks.
    pub(super) fn finds_room_in(&self, superblocks: &Superblocks, region: &Region, claim: Claim) -> bool {
        match claim {
            Claim::Write { .. } | Claim::Retry(_) => {
                // A superblock that replaces a failed one leaves one for garbage collection.
                let replaces = superblocks.replaces[superblocks.pool(region.plane)];
                self.takes(superblocks, region.plane, 0, if replaces { RESERVE } else { region.reserve })
            }
            Claim::Freeing { .. } => false,
            // A superblock is moved only if another one is free.
            _ => self.plane_of_copies(region.plane).is_some(),
        }
    }

    /// Returns the plane that the next program of units goes to that the job of a plane moves: this one, or the one
    /// with the most room in the open superblock.
    pub fn plane_of_copies(&self, plane: PlaneId) -> Option<PlaneId> {
        let Some(superblocks) = &self.superblocks else { return Some(plane) };
        let takes = |plane: &PlaneId| self.takes(superblocks, *plane, MOVED, 0);
        if takes(&plane) {
            return Some(plane);
        }
        let planes = superblocks.planes_of(plane).map(PlaneId);
        planes.filter(takes).max_by_key(|&other| (self.room(self.gc_frontier(other)), std::cmp::Reverse(other)))
    }

    // Opening and filling.

    /// Opens the next superblock for a frontier, in all planes of its pool.
    #[cold]
    pub(super) fn open_superblock(&mut self, at: FrontierId) {
        let (plane, frontier) = (PlaneId(at.0 / FRONTIERS), at.0 % FRONTIERS);
        let Some(mut superblocks) = self.superblocks.take() else { return };
        let mut open = 0;
        let mut addresses = superblocks.planes_of(plane).map(PlaneId).map(|plane| {
            let block = self.take_free_block(plane, Role::Data, frontier);
            let index = self.index_in_plane(block);
            if superblocks.is_parity(plane, index) {
                (self.blocks[block.index()].state, self.blocks[block.index()].role) = (BlockState::Open, Role::Parity);
                self.close(block);
            } else {
                self.open_at(FrontierId(plane.0 * FRONTIERS + frontier), block, Role::Data);
                open += 1;
            }
            index
        });
        let first = addresses.next();
        assert!(addresses.all(|address| Some(address) == first), "the blocks of a superblock become free together");
        let slot = superblocks.slot(plane, frontier);
        superblocks.open[slot] = open;
        if frontier != MOVED {
            let pool = superblocks.pool(plane);
            superblocks.replaces[pool] = false;
        }
        let rows = superblocks.filled.len() / superblocks.open.len();
        superblocks.filled[slot * rows..(slot + 1) * rows].fill(0);
        superblocks.changed = true;
        if let Some(first) = first {
            superblocks.set_protected(plane, first, 0);
        }
        self.superblocks = Some(superblocks);
    }

    /// Notes that units of a frontier were bound. Parity may be due now.
    #[inline(never)]
    pub(super) fn note_bound(&mut self, at: FrontierId, first: Ppn, units: u32) {
        let is_full = self.room(at) == 0;
        let (block, offset) = self.units_per_block.divide_with_rest(first.0);
        let per_program = self.size(Role::Data).program_units;
        let (plane, frontier) = (PlaneId(at.0 / FRONTIERS), at.0 % FRONTIERS);
        let (per_plane, per_block) = (self.blocks_per_plane.divisor(), self.units_per_block.divisor());
        let Some(superblocks) = &mut self.superblocks else { return };
        if is_full {
            let slot = superblocks.slot(plane, frontier);
            superblocks.open[slot] -= 1;
            superblocks.changed |= superblocks.open[slot] == 0;
        }
        let group = superblocks.group(plane, block % per_plane);
        let (Some(stripe), Some((_, parity, _))) = (superblocks.stripe(plane, frontier), group) else { return };
        let index = block % per_plane;
        let holder = parity * per_plane + index;
        let mut done = offset;
        while done < offset + units {
            let row = done / per_program;
            let end = ((row + 1) * per_program).min(offset + units);
            let filled = &mut superblocks.filled[stripe + row as usize];
            *filled += end - done;
            if *filled == superblocks.units_per_stripe {
                superblocks.due.push(Ppn(holder * per_block + row * per_program));
            }
            done = end;
        }
    }

    /// Returns the address of parity that is due, oldest first, and forgets it.
    pub fn take_parity(&mut self) -> Option<Ppn> {
        let superblocks = self.superblocks.as_mut()?;
        (!superblocks.due.is_empty()).then(|| superblocks.due.remove(0))
    }

    /// Notes that the parity at an address is in flash.
    pub fn note_parity(&mut self, ppn: Ppn) {
        let (block, offset) = (self.block_of(ppn), self.offset_in_block(ppn));
        let (plane, index, row) =
            (self.plane_of(block), self.index_in_plane(block), offset / self.size(Role::Data).program_units);
        if let Some(superblocks) = &mut self.superblocks
            && let Some((.., place)) = superblocks.group(plane, index)
        {
            superblocks.protected[place] = row + 1;
        }
    }

    /// Returns the number of units of the programs of parity in a block.
    pub(super) fn parity_units(&self, id: BlockId) -> u32 {
        let group = self.superblocks.as_ref().and_then(|superblocks| {
            let (.., place) = superblocks.group(self.plane_of(id), self.index_in_plane(id))?;
            Some(superblocks.protected[place])
        });
        group.unwrap_or(0) * self.size(Role::Data).program_units
    }

    /// Returns the addresses of the other pages of a stripe that are in flash. The controller holds parity that is not
    /// in flash, over the pages that have been bound. Returns `None` if the stripe has no parity.
    pub fn others_of_stripe(&self, page: Ppn) -> Option<Vec<Ppn>> {
        let superblocks = self.superblocks.as_ref()?;
        let (block, offset) = (self.block_of(page), self.offset_in_block(page));
        let (own, index, row) =
            (self.plane_of(block), self.index_in_plane(block), offset / self.size(Role::Data).program_units);
        let (planes, parity, place) = superblocks.group(own, index)?;
        if superblocks.unprotected.contains(&(place as u32, row)) {
            return None;
        }
        let is_in_flash = |plane: u32| {
            let member = BlockId(plane * self.blocks_per_plane.divisor() + index);
            match plane == parity {
                true => row < superblocks.protected[place],
                false => self.frontier_in(member).is_none_or(|at| offset < self.data_units() - self.room(at)),
            }
        };
        let others = planes.filter(|&plane| plane != own.0 && is_in_flash(plane));
        Some(others.map(|plane| Ppn(page.0 - self.first_unit(block).0 + self.first_unit_of(plane, index))).collect())
    }

    fn first_unit_of(&self, plane: u32, index: u32) -> u32 {
        (plane * self.blocks_per_plane.divisor() + index) * self.units_per_block.divisor()
    }

    /// Returns the planes of the pool of a plane, if some of them have come to take host writes, or take none any
    /// longer.
    pub fn changed_with(&self, plane: PlaneId) -> Option<Range<u32>> {
        let superblocks = self.superblocks.as_ref().filter(|superblocks| superblocks.changed)?;
        Some(superblocks.planes_of(plane))
    }

    /// Forgets that planes have come to take host writes. Returns `true` if some had.
    pub fn forget_change(&mut self) -> bool {
        self.superblocks.as_mut().is_some_and(|superblocks| std::mem::take(&mut superblocks.changed))
    }

    // Collection and erase.

    /// Returns `true` if all blocks of a superblock are closed.
    fn is_closed(&self, id: BlockId) -> bool {
        self.erased_with(id).all(|member| self.block(member).state == BlockState::Closed)
    }

    /// Chooses a superblock of a pool that has failed. Another free one must be left, because this one is retired.
    pub fn take_failed_superblock(&mut self, plane: PlaneId) -> Option<BlockId> {
        let superblocks = self.superblocks.as_ref().filter(|superblocks| !superblocks.doomed.is_empty())?;
        let has_room = self.free_blocks(plane, Role::Data) > RESERVE;
        let first = superblocks.first_plane(plane);
        let is_of = |id: &&BlockId| superblocks.first_plane(self.plane_of(**id)) == first && self.is_closed(**id);
        let is_empty = |id: BlockId| self.sum_of(id, |block| u32::from(block.valid)) == 0;
        let victim = *superblocks.doomed.iter().filter(is_of).find(|&&id| has_room || is_empty(id))?;
        self.take_members(victim, CopyCause::FailedBlock);
        Some(victim)
    }

    /// Chooses the superblock of a pool with the fewest valid units, if its units find room and moving it frees a
    /// program. The one with the lowest address is chosen among equals.
    pub fn take_superblock(&mut self, plane: PlaneId) -> Option<BlockId> {
        let superblocks = self.superblocks.as_ref()?;
        let first = superblocks.first_plane(plane) * self.blocks_per_plane.divisor();
        let blocks = (first..first + self.blocks_per_plane.divisor()).map(BlockId);
        let closed = blocks.filter(|id| self.is_closed(*id) && !superblocks.doomed.contains(id));
        let victim = closed.min_by_key(|&id| self.sum_of(id, |block| u32::from(block.valid)))?;
        if self.free_blocks(plane, Role::Data) == 0 && !self.fits_open(superblocks, victim) {
            return None;
        }
        let gains = self
            .erased_with(victim)
            .any(|member| self.block(member).role == Role::Data && self.reclaimable_of(member) > 0);
        if !gains {
            return None;
        }
        self.take_members(victim, CopyCause::Gc);
        Some(victim)
    }

    /// Returns `true` if the units of a superblock find room in the open superblock of moved units. Each job pads its
    /// last program.
    fn fits_open(&self, superblocks: &Superblocks, victim: BlockId) -> bool {
        let planes = superblocks.planes_of(self.plane_of(victim)).map(PlaneId);
        let room: u32 = planes.map(|plane| self.room(self.gc_frontier(plane))).sum();
        let per_program = self.size(Role::Data).program_units;
        self.sum_of(victim, |block| u32::from(block.valid).next_multiple_of(per_program)) <= room
    }

    fn take_members(&mut self, victim: BlockId, cause: CopyCause) {
        for member in self.erased_with(victim) {
            self.remove_candidate(member);
            let block = &mut self.blocks[member.index()];
            (block.state, block.moved_for) = (BlockState::Victim, cause);
        }
    }

    fn sum_of(&self, id: BlockId, of: impl Fn(&Block) -> u32) -> u32 {
        self.erased_with(id).map(|member| of(self.block(member))).sum()
    }

    /// Returns `true` if nothing depends on a block that awaits its erase, and on those that are erased with it.
    pub(super) fn are_erasable(&self, id: BlockId) -> bool {
        let is_erasable = |block: &Block| block.state == BlockState::AwaitingErase && block.dependents == 0;
        self.erased_with(id).all(|member| is_erasable(self.block(member)) || self.ignore_dependents)
    }

    /// Returns the blocks of a superblock to the free ones, after the erase of the last of them. If an erase has
    /// failed, they are retired.
    pub(in crate::ftl) fn member_erased(&mut self, id: BlockId) {
        self.awaiting_erase.remove(&id.0);
        if self.erased_with(id).any(|member| self.awaiting_erase.contains_key(&member.0)) {
            return;
        }
        if self.is_doomed(id) {
            return self.retire_members(id);
        }
        for member in self.erased_with(id) {
            let plane = self.plane_of(member);
            let block = &mut self.blocks[member.index()];
            (block.state, block.role) = (BlockState::Free, Role::Data);
            let erases = block.erases;
            self.add_free(plane, Role::Data);
            self.free.add(plane, member, erases);
        }
        if let Some(superblocks) = &mut self.superblocks {
            superblocks.changed = true;
        }
    }

    // Failures.

    /// Returns `true` if the superblock of a block has failed and is not retired.
    pub fn is_doomed(&self, id: BlockId) -> bool {
        self.superblocks.as_ref().is_some_and(|superblocks| {
            !superblocks.doomed.is_empty() && superblocks.doomed.contains(&self.first_member(superblocks, id))
        })
    }

    fn first_member(&self, superblocks: &Superblocks, id: BlockId) -> BlockId {
        let per_plane = self.blocks_per_plane.divisor();
        BlockId(superblocks.first_plane(self.plane_of(id)) * per_plane + self.index_in_plane(id))
    }

    /// Has the superblock of a block take no more programs, because a program or an erase has failed. Its stripes that
    /// are not whole lose their parity. Returns the units of the blocks that will never be programmed, or `None` if the
    /// superblock has failed before.
    pub(in crate::ftl) fn doom(&mut self, id: BlockId) -> Option<Vec<Range<u32>>> {
        let mut superblocks = self.superblocks.take()?;
        let first = self.first_member(&superblocks, id);
        let left = (!superblocks.doomed.contains(&first)).then(|| {
            superblocks.doomed.push(first);
            self.end_members(&mut superblocks, id)
        });
        self.superblocks = Some(superblocks);
        left
    }

    fn end_members(&mut self, superblocks: &mut Superblocks, id: BlockId) -> Vec<Range<u32>> {
        let mut left = Vec::new();
        let mut opened = None;
        for member in self.members_in(superblocks, id).map(BlockId) {
            let plane = self.plane_of(member);
            self.planes[plane.index()].bad += 1;
            let Some(at) = self.frontier_in(member) else { continue };
            let (slot, frontier) = (superblocks.slot(plane, at.0 % FRONTIERS), &mut self.frontiers[at.0 as usize]);
            left.push(frontier.next..frontier.next + std::mem::take(&mut frontier.left));
            superblocks.open[slot] -= 1;
            opened = Some((plane, at.0 % FRONTIERS));
        }
        if let Some((plane, frontier)) = opened {
            let pool = superblocks.pool(plane);
            superblocks.replaces[pool] |= frontier != MOVED;
            superblocks.changed = true;
            superblocks.give_up_stripes(plane, frontier, self.index_in_plane(id));
        }
        left
    }

    /// Notes that the stripe of an address has no parity, because a program has failed.
    pub(in crate::ftl) fn note_unprotected(&mut self, ppn: Ppn) {
        let (block, offset) = (self.block_of(ppn), self.offset_in_block(ppn));
        let (plane, index, row) =
            (self.plane_of(block), self.index_in_plane(block), offset / self.size(Role::Data).program_units);
        if let Some(superblocks) = &mut self.superblocks
            && let Some((.., place)) = superblocks.group(plane, index)
        {
            superblocks.unprotected.insert((place as u32, row));
        }
    }

    /// Retires all blocks of a superblock that has failed.
    pub(in crate::ftl) fn retire_members(&mut self, id: BlockId) {
        for member in self.erased_with(id) {
            self.blocks[member.index()].failed = true;
            self.set_bad(member);
        }
        let first = self.superblocks.as_ref().map(|superblocks| self.first_member(superblocks, id));
        if let (Some(first), Some(superblocks)) = (first, &mut self.superblocks) {
            superblocks.doomed.retain(|&other| other != first);
        }
    }

    /// Returns `true` if garbage collection of the pool of a plane is sure to continue after a failure: a superblock is
    /// free for it, another one for host writes if theirs has failed, and another one if the one that is being moved
    /// will not be free.
    pub(super) fn are_sure(&self, superblocks: &Superblocks, plane: PlaneId) -> bool {
        let replaces = superblocks.replaces[superblocks.pool(plane)];
        let first = superblocks.first_plane(plane);
        let is_moved = |&id: &BlockId| {
            superblocks.first_plane(self.plane_of(id)) == first && self.block(id).state == BlockState::Victim
        };
        let is_retiring = superblocks.doomed.iter().any(is_moved);
        self.free_blocks(plane, Role::Data) >= RESERVE + u32::from(replaces) + u32::from(is_retiring)
    }

    /// Restores a superblock that a recovery has found. Its blocks are closed. `ends` are the offsets after their last
    /// programmed units, and `torn` the units that cannot be read. A stripe without all of its programs has no parity.
    pub fn superblock_found(&mut self, id: BlockId, ends: &[u32], torn: &[Ppn], failed: bool) {
        let per_program = self.size(Role::Data).program_units;
        let Some(mut superblocks) = self.superblocks.take() else { return };
        let index = self.index_in_plane(id);
        superblocks.set_protected(self.plane_of(id), index, superblocks.rows);
        for member in self.members_in(&superblocks, id).map(BlockId) {
            if self.is_parity_of(&superblocks, member) {
                self.blocks[member.index()].role = Role::Parity;
            }
            if failed {
                self.blocks[member.index()].failed = false;
            }
            let first = self.first_unit(member).0;
            let is_torn = |row: u32| {
                let units = first + row * per_program..first + (row + 1) * per_program;
                torn.iter().any(|ppn| units.contains(&ppn.0))
            };
            let Some((.., place)) = superblocks.group(self.plane_of(member), index) else { continue };
            for row in 0..superblocks.rows {
                if ends[member.index()] < (row + 1) * per_program || is_torn(row) {
                    superblocks.unprotected.insert((place as u32, row));
                }
            }
        }
        if failed {
            let first = self.first_member(&superblocks, id);
            superblocks.doomed.push(first);
        }
        self.superblocks = Some(superblocks);
    }

    fn is_parity_of(&self, superblocks: &Superblocks, id: BlockId) -> bool {
        superblocks.is_parity(self.plane_of(id), self.index_in_plane(id))
    }

    // Saved states.

    /// Notes that a superblock of a saved state has failed. It loses its parity.
    pub(super) fn failed_loaded(&mut self, id: BlockId) {
        let index = self.index_in_plane(id);
        let Some(superblocks) = &mut self.superblocks else { return };
        let plane = PlaneId(id.0 / self.blocks_per_plane.divisor());
        if superblocks.first_plane(plane) == plane.0 {
            superblocks.doomed.push(id);
        }
        if let Some((.., place)) = superblocks.group(plane, index) {
            (0..superblocks.rows).for_each(|row| _ = superblocks.unprotected.insert((place as u32, row)));
        }
    }

    /// Computes the state of the open superblocks from the frontiers, which have been loaded. The parity of whole
    /// stripes has been programmed. Returns the first plane of a pool whose planes do not have the same blocks free and
    /// open.
    pub(super) fn superblocks_loaded(&mut self) -> Result<(), PlaneId> {
        let Some(mut superblocks) = self.superblocks.take() else { return Ok(()) };
        superblocks.open.fill(0);
        superblocks.filled.fill(0);
        superblocks.protected.fill(superblocks.rows);
        for first in (0..self.planes.len() as u32).step_by(superblocks.planes as usize).map(PlaneId) {
            let free = |plane| self.free.of(plane).map(|block| self.index_in_plane(block));
            let mut planes = superblocks.planes_of(first).map(PlaneId);
            let agree = planes.all(|plane| free(plane).eq(free(first)));
            if !agree || !(0..FRONTIERS).all(|frontier| self.count_bound(&mut superblocks, first, frontier)) {
                return Err(first);
            }
        }
        self.superblocks = Some(superblocks);
        Ok(())
    }

    /// Counts the units that have been bound in the open superblock of a frontier. Returns `false` if the planes of the
    /// pool are in different superblocks.
    fn count_bound(&self, superblocks: &mut Superblocks, first: PlaneId, frontier: u32) -> bool {
        let at = |plane: PlaneId| FrontierId(plane.0 * FRONTIERS + frontier);
        let opened = superblocks.planes_of(first).find_map(|plane| self.next_ppn(at(PlaneId(plane))));
        let Some(opened) = opened.map(|ppn| self.block_of(ppn)) else { return true };
        let per_program = self.size(Role::Data).program_units;
        let slot = superblocks.slot(first, frontier);
        superblocks.set_protected(first, self.index_in_plane(opened), 0);
        for member in self.members_in(superblocks, opened).map(BlockId) {
            let plane = self.plane_of(member);
            let left = self.room(at(plane));
            let is_here = self.next_ppn(at(plane)).is_some_and(|ppn| self.block_of(ppn) == member);
            if is_here != (left > 0) || (!is_here && self.block(member).state != BlockState::Closed) {
                return false;
            }
            superblocks.open[slot] += u32::from(left > 0);
            let rows = ((self.data_units() - left) / per_program) as usize;
            if let Some(stripe) = superblocks.stripe(plane, frontier).filter(|_| self.block(member).role == Role::Data)
            {
                superblocks.filled[stripe..stripe + rows].iter_mut().for_each(|filled| *filled += per_program);
            }
        }
        superblocks.count_protected(first, frontier, self.index_in_plane(opened));
        true
    }
}
