//! Blocks in a saved state. What follows from other things is not in the file: counts of valid units and of blocks, the
//! state of a block that a frontier is in, and the bits of valid units, which follow from the map.

use super::{Block, BlockState, Frontier, RESERVE, Space, Stream};
use crate::ftl::gc::victim::Candidates;
use crate::sim::id::{BlockId, Ppn};
use crate::state::{Reader, StateError, Writer};

/// In the place of a frontier that has no open block.
const NOWHERE: u32 = u32::MAX;

/// A block that has been erased more often than this is none that anybody has made, and could not be counted on.
const MOST_ERASES: u32 = 1 << 31;

/// Blocks whose states can be saved, by number.
const STATES: [BlockState; 6] =
    [BlockState::Free, BlockState::Open, BlockState::Closed, BlockState::Logical, BlockState::Failed, BlockState::Bad];

/// The flag of blocks that hold translation pages.
const MAP: u8 = 1 << 7;

impl Space {
    /// What is in progress, if anything is: such a device cannot be saved.
    pub(in crate::ftl) fn in_progress(&self) -> Option<String> {
        for (number, block) in self.blocks.iter().enumerate() {
            let plane = self.plane_of(BlockId(number as u32)).0;
            if matches!(block.state, BlockState::Victim | BlockState::Doomed) {
                return Some(format!("cleaning of plane {plane} reclaims block {number}"));
            }
            if block.dependants > 0 {
                return Some(format!("{} operations of block {number} have not ended", block.dependants));
            }
        }
        for (number, plane) in self.planes.iter().enumerate() {
            if plane.frontiers.iter().any(|frontier| !frontier.left.is_multiple_of(self.units_per_program)) {
                return Some(format!("a program of plane {number} has begun and is not full"));
            }
        }
        None
    }

    pub(in crate::ftl) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for block in &self.blocks {
            let state = STATES.iter().position(|state| *state == block.state).unwrap_or_default() as u8;
            out.u8(state | if block.map { MAP } else { 0 })?;
            out.u32(block.erases)?;
        }
        for plane in &self.planes {
            let mut block = plane.first_free;
            for _ in 0..plane.stock + plane.map_stock {
                out.u32(block)?;
                block = self.next_free[block as usize];
            }
            for frontier in &plane.frontiers[..self.streams()] {
                out.u32(if frontier.left > 0 { frontier.next } else { NOWHERE })?;
            }
        }
        out.u64(self.clock)
    }

    /// Frontiers of a plane that are used: of translation pages, of moved units, and of each class of the host's.
    fn streams(&self) -> usize {
        Stream::Map as usize + self.classes
    }

    /// Reads what [`Space::save`] wrote; nothing is valid yet. Returns, by plane, the blocks that are owed to those of
    /// translation pages.
    pub(in crate::ftl) fn load(&mut self, fails: bool, input: &mut Reader) -> Result<Vec<u32>, StateError> {
        for block in &mut self.blocks {
            let state = input.u8()?;
            let Some(known) = STATES.get(usize::from(state & !MAP)) else {
                return Err(input.damaged(format!("block state {state}")));
            };
            let failed = matches!(known, BlockState::Failed | BlockState::Bad);
            *block = Block { state: *known, map: state & MAP != 0, failed, ..Block::default() };
            block.erases = input.below(MOST_ERASES, "erase")?;
            if block.failed && !fails {
                return Err(input.damaged("a block that failed, in a device in which none does"));
            }
        }
        let mut owed = Vec::with_capacity(self.planes.len());
        for plane in 0..self.planes.len() as u32 {
            owed.push(self.load_stock(plane, fails, input)?);
            self.load_frontiers(plane, input)?;
        }
        self.clock = input.count("host writes")?;
        Ok(owed)
    }

    fn load_stock(&mut self, plane: u32, fails: bool, input: &mut Reader) -> Result<u32, StateError> {
        let per_plane = self.blocks_per_plane.divisor();
        let first = plane * per_plane;
        let of_plane = &self.blocks[first as usize..(first + per_plane) as usize];
        let free = of_plane.iter().filter(|block| block.state == BlockState::Free).count() as u32;
        if of_plane
            .iter()
            .any(|block| block.map && matches!(block.state, BlockState::Free | BlockState::Logical | BlockState::Bad))
        {
            return Err(input.damaged(format!("a block of plane {plane} holds translation pages and cannot")));
        }
        let for_map = of_plane.iter().filter(|block| block.map && !block.failed).count() as u32;
        let bad = of_plane.iter().filter(|block| block.failed).count() as u32;
        let p = &self.planes[plane as usize];
        let (Some(whole), all) = (p.map_stock.checked_sub(for_map), p.stock + p.map_stock) else {
            return Err(input.damaged(format!("{for_map} blocks of plane {plane} hold translation pages")));
        };
        // A logical block may have the last one, while it is one of those with two.
        let least = if of_plane.iter().any(|block| block.state == BlockState::Logical) { 0 } else { RESERVE };
        // A block of data is given for one of translation pages that has failed when there is one beside the reserve.
        let owed = if fails { (whole + least).saturating_sub(free).min(whole) } else { 0 };
        let map_stock = whole - owed;
        let Some(stock) = free.checked_sub(map_stock).filter(|stock| *stock >= least) else {
            return Err(input.damaged(format!("plane {plane} has {free} of {all} blocks free, too few to go on with")));
        };
        if p.map_stock > 0 && map_stock < RESERVE {
            return Err(input.damaged(format!("plane {plane} has no free block for translation pages")));
        }
        let mut listed = vec![false; per_plane as usize];
        let mut last = NOWHERE;
        for _ in 0..free {
            let block = input.u32()?;
            let within = block.wrapping_sub(first) as usize;
            let is_new = listed.get(within) == Some(&false);
            if !is_new || self.blocks[block as usize].state != BlockState::Free {
                return Err(input.damaged(format!("block {block} in the stock of plane {plane}")));
            }
            listed[within] = true;
            match last {
                NOWHERE => self.planes[plane as usize].first_free = block,
                last => self.next_free[last as usize] = block,
            }
            last = block;
        }
        let p = &mut self.planes[plane as usize];
        (p.last_free, p.stock, p.map_stock, p.bad) = (last, stock, map_stock, bad);
        Ok(owed)
    }

    fn load_frontiers(&mut self, plane: u32, input: &mut Reader) -> Result<(), StateError> {
        let per_plane = self.blocks_per_plane.divisor();
        let mut opened = Vec::with_capacity(self.streams());
        for index in 0..self.streams() {
            let next = input.u32()?;
            self.planes[plane as usize].frontiers[index] = Frontier::default();
            if next == NOWHERE {
                continue;
            }
            let (block, offset) = self.units_per_block.divide_with_rest(next);
            let in_plane = block / per_plane == plane;
            let known = self.blocks.get(block as usize).filter(|known| in_plane && known.state == BlockState::Open);
            let suits = known.is_some_and(|known| known.map == (index == Stream::Map as usize));
            let used = index != Stream::Gc as usize || self.gc_frontier == index;
            let whole = offset < self.data_units && (self.data_units - offset).is_multiple_of(self.units_per_program);
            if !(suits && used && whole) || opened.contains(&block) {
                return Err(input.damaged(format!("plane {plane} goes on at {next}")));
            }
            opened.push(block);
            self.planes[plane as usize].frontiers[index] = Frontier { next, left: self.data_units - offset };
        }
        let of_plane = &self.blocks[(plane * per_plane) as usize..((plane + 1) * per_plane) as usize];
        match of_plane.iter().filter(|block| block.state == BlockState::Open).count() == opened.len() {
            true => Ok(()),
            false => Err(input.damaged(format!("plane {plane} has open blocks that nothing goes on in"))),
        }
    }

    /// By block, how many of its units have been written; those of logical blocks are not known here.
    pub(in crate::ftl) fn written(&self) -> Vec<u16> {
        let is_full = |block: &Block| matches!(block.state, BlockState::Closed | BlockState::Failed);
        let count = |block: &Block| if is_full(block) { self.data_units } else { 0 };
        let mut written: Vec<u16> = self.blocks.iter().map(|block| count(block) as u16).collect();
        for frontier in self.planes.iter().flat_map(|plane| &plane.frontiers).filter(|frontier| frontier.left > 0) {
            let (block, offset) = self.units_per_block.divide_with_rest(frontier.next);
            written[block as usize] = offset as u16;
        }
        written
    }

    /// Marks a unit as valid, where it can be: it is written, in a block of its kind, and nobody else's.
    #[inline]
    pub(in crate::ftl) fn adopt(&mut self, ppn: Ppn, map: bool, written: &[u16]) -> bool {
        let (block, offset) = self.units_per_block.divide_with_rest(ppn.0);
        let can = |blocks: &[Block]| offset < u32::from(written[block as usize]) && blocks[block as usize].map == map;
        if block as usize >= self.blocks.len() || !can(&self.blocks) || self.is_valid(ppn) {
            return false;
        }
        self.validate(ppn);
        true
    }

    /// Counts what follows from which units are valid.
    pub(in crate::ftl) fn count_closed(&mut self) {
        for plane in &mut self.planes {
            (plane.stale, plane.closed, plane.map_stale) = (0, 0, 0);
        }
        for number in 0..self.blocks.len() {
            let block = self.blocks[number];
            if block.state != BlockState::Closed {
                continue;
            }
            let plane = self.plane_of(BlockId(number as u32));
            let (plane, stale) = (&mut self.planes[plane.index()], self.data_units - u32::from(block.valid));
            if block.map {
                plane.map_stale += stale;
            } else {
                plane.stale += stale;
                plane.closed += 1;
            }
        }
    }

    pub(in crate::ftl) fn save_victims(&self, out: &mut Writer) -> Result<(), StateError> {
        self.victim.save(out)?;
        self.map_victim.as_ref().map_or(Ok(()), |victim| victim.save(out))
    }

    pub(in crate::ftl) fn load_victims(&mut self, input: &mut Reader) -> Result<(), StateError> {
        let closed = |map: bool| {
            let is_candidate = |block: &Block| block.state == BlockState::Closed && block.map == map;
            let valid = self.blocks.iter().map(|block| is_candidate(block).then_some(block.valid)).collect();
            Candidates::new(valid, self.blocks_per_plane.divisor(), self.clock)
        };
        let (data, map) = (closed(false), closed(true));
        self.victim.load(input, data)?;
        self.map_victim.as_mut().map_or(Ok(()), |victim| victim.load(input, map))
    }

    /// Whether a block is a logical block's.
    pub(in crate::ftl) fn is_logical(&self, block: BlockId) -> bool {
        self.blocks.get(block.index()).is_some_and(|block| block.state == BlockState::Logical)
    }

    /// How many are.
    pub(in crate::ftl) fn logical_count(&self) -> usize {
        self.blocks.iter().filter(|block| block.state == BlockState::Logical).count()
    }
}
