//! Blocks in a saved state. Values that follow from others are not saved: the counts of valid units and of blocks, and
//! the valid units, which follow from the map.

use super::{Block, BlockState, Frontier, FrontierId, RESERVE, Region, Role, Space};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::state::{Reader, StateError, Writer};

/// Saved value for a frontier without an open block.
const NOWHERE: u32 = u32::MAX;

/// Limit of the erases of a block. A block with more would not be realistic, and its erases could not be counted
/// further.
const MAX_ERASES: u32 = 1 << 31;

/// Blocks whose states can be saved, by number.
const STATES: [BlockState; 7] = [
    BlockState::Free,
    BlockState::Open,
    BlockState::Closed,
    BlockState::Logical,
    BlockState::Failed,
    BlockState::Bad,
    BlockState::WornOut,
];

/// The flag of blocks that hold translation pages.
const MAP: u8 = 1 << 7;

/// The flag of blocks of the mapping scheme that have failed, and still hold units.
const FAILED: u8 = 1 << 6;

impl Space {
    /// Describes what is in progress, or returns `None` if nothing is. A device with anything in progress cannot be
    /// saved.
    pub(in crate::ftl) fn in_progress(&self) -> Option<String> {
        for (number, block) in self.blocks.iter().enumerate() {
            let plane = self.plane_of(BlockId(number as u32)).0;
            if matches!(block.state, BlockState::Victim | BlockState::AwaitingErase) {
                return Some(format!("garbage collection of plane {plane} reclaims block {number}"));
            }
            if block.dependents > 0 {
                return Some(format!("{} operations of block {number} have not ended", block.dependents));
            }
        }
        let begun = |region: &&Region| {
            let layout = self.layout(region.role);
            let range = region.first as usize..(region.first + layout.frontiers()) as usize;
            let is_begun = |frontier: &Frontier| !frontier.left.is_multiple_of(layout.size.program_units);
            self.frontiers[range].iter().any(is_begun)
        };
        if let Some(plane) = self.first_migration() {
            return Some(format!("wear leveling migrates a block of plane {}", plane.0));
        }
        let region = self.regions.iter().find(begun)?;
        Some(format!("a program of plane {} has started and is not full", region.plane.0))
    }

    pub(in crate::ftl) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for (block, id) in self.blocks.iter().zip((0..).map(BlockId)) {
            let known = if self.is_doomed(id) { BlockState::Failed } else { block.state };
            let state = STATES.iter().position(|state| *state == known).unwrap_or_default() as u8;
            let is_kept = block.failed && block.state == BlockState::Logical;
            out.u8(state | if block.role == Role::Map { MAP } else { 0 } | if is_kept { FAILED } else { 0 })?;
            out.u32(block.erases)?;
        }
        for plane in (0..self.planes.len() as u32).map(PlaneId) {
            self.free.of(plane).try_for_each(|block| out.u32(block.0))?;
            for at in self.saved_frontiers(plane) {
                out.u32(at.and_then(|at| self.next_ppn(at)).map_or(NOWHERE, |ppn| ppn.0))?;
            }
            self.cache.iter().try_for_each(|cache| out.u32(cache.last[plane.index()]))?;
        }
        out.u64(self.clock)
    }

    /// Returns the frontiers of a plane in the order of a saved state: class 0, moved units, translation pages, other
    /// classes, migrated units if there is one for them, and the SLC cache if there is one. `None` for another frontier
    /// that the device does not have.
    fn saved_frontiers(&self, plane: PlaneId) -> Vec<Option<FrontierId>> {
        let [data, map, ..] = &self.layouts;
        let moved = (!data.is_shared).then(|| self.gc_frontier(plane));
        let map = (map.frontiers() > 0).then(|| self.map_frontier(plane));
        let of_class = |class| Some(self.host_frontier(plane, class));
        let migrated = data.has_wear_frontier.then(|| Some(self.wear_frontier(plane)));
        let cache = self.has_cache().then(|| Some(self.cache_frontier(plane)));
        let others = (1..self.classes as u8).map(of_class).chain(migrated).chain(cache);
        [of_class(0), moved, map].into_iter().chain(others).collect()
    }

    /// Reads what [`Space::save`] wrote. No unit is valid yet. Returns the number of blocks that data still has to give
    /// to translation pages, indexed by plane.
    pub(in crate::ftl) fn load(&mut self, fails: bool, input: &mut Reader) -> Result<Vec<u32>, StateError> {
        for id in (0..self.blocks.len() as u32).map(BlockId) {
            let (free, is_parity) = (self.role_of_free(id), self.is_parity(id));
            let block = &mut self.blocks[id.index()];
            let state = input.u8()?;
            let is_kept = state & FAILED != 0;
            let known = STATES.get(usize::from(state & !(MAP | FAILED)));
            let Some(known) = known.filter(|&&known| !is_kept || known == BlockState::Logical) else {
                return Err(input.damaged(format!("block state {state}")));
            };
            // A superblock that has failed is closed.
            let is_doomed = self.superblocks.is_some() && *known == BlockState::Failed;
            let known = if is_doomed { &BlockState::Closed } else { known };
            let failed = is_kept || matches!(known, BlockState::Failed | BlockState::Bad);
            let role = match *known {
                _ if state & MAP != 0 => Role::Map,
                BlockState::Closed if is_parity => Role::Parity,
                _ => free,
            };
            if role == Role::Map && free == Role::Cache {
                return Err(input.damaged(format!("translation pages in block {} of the SLC cache", id.0)));
            }
            let is_logical = *known == BlockState::Logical;
            let moved_for = if is_logical { CopyCause::Merge } else { CopyCause::default() };
            *block = Block { state: *known, role, failed, moved_for, ..Block::default() };
            block.erases = input.below(MAX_ERASES, "erase")?;
            if is_doomed {
                self.failed_loaded(id);
            }
            let block = &self.blocks[id.index()];
            if (is_doomed || block.failed || block.state == BlockState::WornOut) && !fails {
                return Err(input.damaged("a failed block in a device without faults"));
            }
        }
        self.count_erases();
        let mut owed = Vec::with_capacity(self.planes.len());
        for plane in 0..self.planes.len() as u32 {
            owed.push(self.load_stock(plane, fails, input)?);
            self.load_frontiers(plane, input)?;
            if let Some(cache) = &mut self.cache {
                cache.last[plane as usize] = input.below(cache.blocks, "block of the SLC cache")?;
            }
        }
        self.count_free();
        self.superblocks_loaded().map_err(|plane| {
            input.damaged(format!("plane {} and others of its pool have different superblocks", plane.0))
        })?;
        self.clock = input.count("host writes")?;
        Ok(owed)
    }

    fn load_stock(&mut self, plane: u32, fails: bool, input: &mut Reader) -> Result<u32, StateError> {
        let per_plane = self.blocks_per_plane.divisor();
        let first = plane * per_plane;
        let of_plane = &self.blocks[first as usize..(first + per_plane) as usize];
        let is_listed = |block: &&Block| block.state == BlockState::Free && block.role != Role::Cache;
        let free = of_plane.iter().filter(is_listed).count() as u32;
        if of_plane.iter().any(|block| {
            block.role == Role::Map
                && !matches!(block.state, BlockState::Open | BlockState::Closed | BlockState::Failed)
        }) {
            return Err(input.damaged(format!("a block of plane {plane} cannot hold translation pages")));
        }
        let for_map = of_plane.iter().filter(|block| block.role == Role::Map && !block.failed).count() as u32;
        let is_bad = |block: &&Block| block.failed || block.state == BlockState::WornOut;
        let doomed = (first..first + per_plane).filter(|&block| self.is_doomed(BlockId(block))).count() as u32;
        let bad = of_plane.iter().filter(is_bad).count() as u32 + doomed;
        let before = |role| self.region_of(PlaneId(plane), role).free;
        let (for_data, of_map) = (before(Role::Data), before(Role::Map));
        let (Some(whole), all) = (of_map.checked_sub(for_map), for_data + of_map) else {
            return Err(input.damaged(format!("{for_map} blocks of plane {plane} hold translation pages")));
        };
        // A logical block may hold the last free block while it has two.
        let may_have_none = self.lends_reserve || of_plane.iter().any(|block| block.state == BlockState::Logical);
        let least = if may_have_none { 0 } else { RESERVE };
        // A data block replaces a failed block of translation pages as soon as one is free in addition to the reserve.
        let owed = if fails { (whole + least).saturating_sub(free).min(whole) } else { 0 };
        let free_map_blocks = whole - owed;
        let Some(free_blocks) = free.checked_sub(free_map_blocks).filter(|free_blocks| *free_blocks >= least) else {
            return Err(input.damaged(format!("plane {plane} has {free} of {all} blocks free, too few to continue")));
        };
        if of_map > 0 && free_map_blocks < RESERVE {
            return Err(input.damaged(format!("plane {plane} has no free block for translation pages")));
        }
        let mut listed = vec![false; per_plane as usize];
        self.free.clear(PlaneId(plane));
        for _ in 0..free {
            let block = input.u32()?;
            let within = block.wrapping_sub(first) as usize;
            let is_new = listed.get(within) == Some(&false);
            if !is_new || !is_listed(&&self.blocks[block as usize]) {
                return Err(input.damaged(format!("block {block} among the free blocks of plane {plane}")));
            }
            listed[within] = true;
            self.free.add(PlaneId(plane), BlockId(block), self.blocks[block as usize].erases);
        }
        self.planes[plane as usize].bad = bad;
        self.region_mut(PlaneId(plane), Role::Data).free = free_blocks;
        self.region_mut(PlaneId(plane), Role::Map).free = free_map_blocks;
        self.count_free_of_cache(PlaneId(plane));
        Ok(owed)
    }

    fn load_frontiers(&mut self, plane: u32, input: &mut Reader) -> Result<(), StateError> {
        let per_plane = self.blocks_per_plane.divisor();
        let mut opened = Vec::new();
        for at in self.saved_frontiers(PlaneId(plane)) {
            let next = input.u32()?;
            if let Some(at) = at {
                self.frontiers[at.0 as usize] = Frontier::default();
            }
            if next == NOWHERE {
                continue;
            }
            let (block, offset) = self.units_per_block.divide_with_rest(next);
            let in_plane = block / per_plane == plane;
            let known = self.blocks.get(block as usize).filter(|known| in_plane && known.state == BlockState::Open);
            let at = at.filter(|&at| known.is_some_and(|known| known.role == self.region_at(at).role));
            let size = |at| self.layout(self.region_at(at).role).size;
            let left = |at| size(at).data_units.checked_sub(offset).filter(|left| *left > 0);
            let whole = |at| left(at).filter(|left| left.is_multiple_of(size(at).program_units));
            let Some((at, left)) = at.and_then(|at| Some((at, whole(at)?))).filter(|_| !opened.contains(&block)) else {
                return Err(input.damaged(format!("a frontier of plane {plane} at {next}")));
            };
            opened.push(block);
            self.frontiers[at.0 as usize] = Frontier { next, left };
        }
        let of_plane = &self.blocks[(plane * per_plane) as usize..((plane + 1) * per_plane) as usize];
        if of_plane.iter().filter(|block| block.state == BlockState::Open).count() == opened.len() {
            Ok(())
        } else {
            Err(input.damaged(format!("open blocks of plane {plane} without a frontier")))
        }
    }

    /// Counts the erases of each plane.
    pub(super) fn count_erases(&mut self) {
        let per_plane = self.blocks_per_plane.divisor() as usize;
        for (plane, blocks) in self.planes.iter_mut().zip(self.blocks.chunks(per_plane)) {
            plane.erases = blocks.iter().map(|block| u64::from(block.erases)).sum();
        }
    }

    /// Returns the number of units of each block that have been written. Those of logical blocks are not known here.
    pub(in crate::ftl) fn written(&self) -> Vec<u16> {
        let is_full =
            |block: &Block| matches!(block.state, BlockState::Closed | BlockState::Failed | BlockState::WornOut);
        // The addresses of parity have no owners.
        let is_counted = |block: &Block| is_full(block) && block.role != Role::Parity;
        let count = |block: &Block| if is_counted(block) { self.size(block.role).data_units } else { 0 };
        let mut written: Vec<u16> = self.blocks.iter().map(|block| count(block) as u16).collect();
        for frontier in self.frontiers.iter().filter(|frontier| frontier.left > 0) {
            let (block, offset) = self.units_per_block.divide_with_rest(frontier.next);
            written[block as usize] = offset as u16;
        }
        written
    }

    /// Marks a unit as valid, if it is written, in a block of this role, and not valid yet. Otherwise, returns `false`.
    /// Blocks of the SLC cache count as data.
    #[inline]
    pub(in crate::ftl) fn adopt(&mut self, ppn: Ppn, role: Role, written: &[u16]) -> bool {
        let (block, offset) = self.units_per_block.divide_with_rest(ppn.0);
        let can =
            |blocks: &[Block]| offset < u32::from(written[block as usize]) && blocks[block as usize].role.holds(role);
        if block as usize >= self.blocks.len() || !can(&self.blocks) || self.is_valid(ppn) {
            return false;
        }
        self.validate(ppn);
        true
    }

    /// Counts the invalid units and the closed blocks of each region, after the valid units are known.
    pub(in crate::ftl) fn count_closed(&mut self) {
        for region in &mut self.regions {
            (region.invalid, region.closed) = (0, 0);
        }
        for number in 0..self.blocks.len() {
            let Block { state, role, valid, .. } = self.blocks[number];
            if state == BlockState::Closed {
                let invalid = self.size(role).data_units - u32::from(valid);
                let plane = self.plane_of(BlockId(number as u32));
                let region = self.region_mut(plane, role);
                region.invalid += invalid;
                region.closed += 1;
            }
        }
    }

    /// Returns `true` if a block belongs to a logical block.
    pub(in crate::ftl) fn is_logical(&self, block: BlockId) -> bool {
        self.blocks.get(block.index()).is_some_and(|block| block.state == BlockState::Logical)
    }
}
