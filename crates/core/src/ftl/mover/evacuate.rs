//! Evacuation of blocks: the valid units of a block are read page by page, in the order of their addresses, and are
//! programmed elsewhere in that order.

use super::copy::CopySource;
use crate::ftl::Ftl;
use crate::ftl::mapping::{PADDING, PageMap};
use crate::ftl::space::FrontierId;
use crate::sim::id::{BlockId, Lpn, Ppn};

/// A walk through the valid units of a block. Units that become invalid before the walk reaches them are skipped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    block: Option<BlockId>,
    next: u32,
    end: u32,
}

impl Walk {
    /// Starts at the first unit of a block.
    pub fn start(&mut self, ftl: &Ftl, block: BlockId) {
        let next = ftl.blocks.first_unit(block).0;
        *self = Walk { block: Some(block), next, end: next + ftl.blocks.size_of(block).data_units };
    }

    /// Returns the block, unless the walk has ended.
    pub fn block(&self) -> Option<BlockId> {
        self.block
    }

    /// Returns the next valid unit. The walk does not move.
    pub fn next_valid(&self, ftl: &Ftl) -> Option<Ppn> {
        ftl.blocks.first_valid(self.next..self.end)
    }

    /// Ends the walk. Returns the block.
    pub fn end(&mut self) -> Option<BlockId> {
        self.block.take()
    }
}

/// Pages of a block that have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesRead {
    /// The first valid unit.
    pub first: Ppn,
    /// The number of valid units.
    pub units: u32,
    /// The number of pages with valid units.
    pub pages: u32,
    /// The number of invalid units that were skipped.
    pub invalid: u32,
}

/// Evacuation of blocks, one after another.
///
/// Each page that is read and each program is an operation in timed mode (`gc/job.rs`). A whole block is read and
/// programmed at once in functional mode (`gc/functional.rs`).
#[derive(Clone, Debug, Default)]
pub struct Evacuation {
    walk: Walk,
    /// Units that have been read, or are being read, and are not programmed. A program takes the first ones.
    pub copies: Vec<CopySource>,
    /// Number of `copies` in the program that is in flight.
    pub writing: usize,
    /// Units of the page that is being moved within its plane.
    pub back: Vec<CopySource>,
}

impl Evacuation {
    /// Creates an evacuation whose copies reuse the memory of a vector.
    pub fn with_memory(copies: Vec<CopySource>) -> Evacuation {
        Evacuation { copies, ..Evacuation::default() }
    }

    /// Starts the evacuation of a block.
    pub fn start(&mut self, ftl: &Ftl, block: BlockId) {
        self.walk.start(ftl, block);
    }

    /// Returns the block that is being read.
    pub fn block(&self) -> Option<BlockId> {
        self.walk.block()
    }

    /// Reads the next pages that hold valid units, at most `max`. Returns `None` if there are none. The copies depend
    /// on the block until they end.
    #[inline(always)]
    pub fn read(&mut self, ftl: &mut Ftl, max: u32) -> Option<PagesRead> {
        let block = self.walk.block?;
        let per_page = ftl.shape().units_per_page;
        let before = self.copies.len();
        let mut pages = 0;
        let mut last = u32::MAX;
        ftl.blocks.visit_valid(self.walk.next..self.walk.end, |unit| {
            let page = per_page.divide(unit.0);
            if page != last {
                if pages == max {
                    return false;
                }
                (pages, last) = (pages + 1, page);
            }
            let lpn = ftl.map.owner(unit);
            ftl.map.prefetch(Lpn(lpn));
            self.copies.push(CopySource { lpn, from: unit });
            true
        });
        let first = self.copies.get(before)?.from;
        let units = (self.copies.len() - before) as u32;
        let end = ((last + 1) * per_page.divisor()).min(self.walk.end);
        let invalid = end - self.walk.next - units;
        self.walk.next = end;
        ftl.map.prefetch_owner(Ppn(end));
        ftl.blocks.depend_on(block, units);
        Some(PagesRead { first, units, pages, invalid })
    }

    /// Forgets the units that have been read and are not programmed. They are in the block that is being read, and will
    /// be read again.
    pub fn unread(&mut self, ftl: &mut Ftl) {
        let (Some(block), Some(first)) = (self.walk.block, self.copies.first()) else { return };
        debug_assert!(self.copies.iter().all(|copy| ftl.blocks.block_of(copy.from) == block));
        let (_, in_page) = ftl.shape().units_per_page.divide_with_rest(first.from.0);
        self.walk.next = first.from.0 - in_page;
        ftl.blocks.release_from(block, self.copies.len() as u32);
        self.copies.clear();
    }

    /// Has the page that was read last, with its `units` valid units, moved within its plane.
    pub fn move_back(&mut self, units: u32) {
        self.back.extend(self.copies.drain(self.copies.len() - units as usize..));
    }

    /// Returns `true` if the block that is being read has valid units that were not read.
    pub fn has_more(&self, ftl: &Ftl) -> bool {
        self.next_valid(ftl).is_some()
    }

    /// Returns the first valid unit that was not read in the block that is being read.
    pub fn next_valid(&self, ftl: &Ftl) -> Option<Ppn> {
        self.walk.next_valid(ftl)
    }

    /// Ends the evacuation of a block that has been read. Returns it.
    pub fn end(&mut self) -> Option<BlockId> {
        self.walk.end()
    }

    /// Returns `true` if no unit is to be read or to be programmed.
    pub fn is_idle(&self) -> bool {
        self.walk.block.is_none() && self.copies.is_empty() && self.back.is_empty()
    }

    /// Returns `true` if units of a block are still to be read or to be programmed elsewhere.
    pub fn moves(&self, block: BlockId, ftl: &Ftl) -> bool {
        self.walk.block == Some(block)
            || self.copies.iter().chain(&self.back).any(|copy| ftl.blocks.block_of(copy.from) == block)
    }

    /// Returns the number of units that are still to be programmed.
    pub fn units_left(&self, ftl: &Ftl) -> u32 {
        let in_block = self.walk.block.map_or(0, |block| u32::from(ftl.blocks.block(block).valid));
        in_block + (self.copies.len() + self.back.len()) as u32
    }

    /// Returns the copies in the program that is in flight, with their positions in it.
    pub fn in_program(&self) -> impl Iterator<Item = (CopySource, u32)> + '_ {
        self.copies[..self.writing].iter().copied().zip(0..)
    }

    /// Returns the number of units that have been read and are not bound.
    pub fn unbound(&self) -> u32 {
        (self.copies.len() - self.writing + self.back.len()) as u32
    }

    /// Returns the number of units of the block that the walk has passed.
    pub fn passed(&self, ftl: &Ftl) -> u32 {
        self.walk.block.map_or(0, |block| self.walk.next - ftl.blocks.first_unit(block).0)
    }
}

impl Ftl {
    /// Binds copies to the next addresses of a frontier in order, and calls `bound` for each of them. Their program has
    /// `units` units. The rest is padding.
    #[inline(always)]
    pub fn bind_copies(
        &mut self,
        at: FrontierId,
        copies: &[CopySource],
        units: u32,
        bound: impl Fn(&mut PageMap, Lpn, Ppn),
    ) -> Ppn {
        let first = self.blocks.advance(at, units);
        for (copy, ppn) in copies.iter().zip((first.0..).map(Ppn)) {
            self.map.set_owner(ppn, copy.lpn);
            bound(&mut self.map, Lpn(copy.lpn), ppn);
        }
        (first.0 + copies.len() as u32..first.0 + units).for_each(|ppn| self.map.set_owner(Ppn(ppn), PADDING));
        first
    }
}

#[cfg(test)]
mod tests;
