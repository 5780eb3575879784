//! Recovery of block mapping: a logical block continues in the block that was opened last, after the last programmed
//! unit. Logical blocks that cannot continue are merged.

use super::map::NOWHERE;
use super::{Block, block_home};
use crate::ftl::Ftl;
use crate::ftl::mapping::{FoundBlock, FoundMerge};
use crate::sim::id::{BlockId, Ppn};

impl Block {
    /// Returns the blocks of each logical block, oldest first.
    fn blocks_found(&self, ftl: &Ftl, found: &[FoundBlock]) -> Result<Vec<Vec<FoundBlock>>, String> {
        let mut blocks = vec![Vec::new(); self.map.logical.len()];
        for &found in found.iter().filter(|found| !self.own.holds_newest(ftl, found.block)) {
            let block = found.block;
            let first = ftl.blocks.first_unit(block).0;
            let units = (0..self.map.units()).filter_map(|offset| Some((offset, ftl.newest_at(Ppn(first + offset))?)));
            let mut numbers = units.map(|(offset, lpn)| Some(self.map.split(lpn)).filter(|at| at.1 == offset));
            let number = numbers.next().flatten().map(|at| at.0);
            let is_of_one = numbers.all(|at| at.map(|at| at.0) == number);
            match number.filter(|&number| is_of_one && block_home(ftl, number) == ftl.blocks.plane_of(block)) {
                Some(number) => blocks[number as usize].push(found),
                None => return Err(format!("block {} does not hold units of one logical block", block.0)),
            }
        }
        Ok(blocks)
    }

    /// Returns the offset at which a logical block continues in the last of its blocks. A failed one takes no more
    /// programs.
    fn end_of(&self, ftl: &Ftl, block: FoundBlock) -> u32 {
        if ftl.blocks.block(block.block).failed {
            return self.map.units();
        }
        block.end.next_multiple_of(ftl.shape().units_per_program)
    }

    /// See [`Mapping::merge_found`](crate::ftl::mapping::Mapping). A logical block has to be merged if it has more than
    /// two blocks, or if the older one has units before the offset at which the other continues, because the program of
    /// these units was interrupted.
    pub(super) fn merge_unfit(&self, ftl: &Ftl, found: &[FoundBlock]) -> Option<FoundMerge> {
        let fits = |blocks: &[FoundBlock]| match *blocks {
            [] | [_] => true,
            [old, current] => {
                let first = ftl.blocks.first_unit(old.block).0;
                let before = first..first + self.end_of(ftl, current);
                before.into_iter().all(|ppn| ftl.newest_at(Ppn(ppn)).is_none())
            }
            _ => false,
        };
        let number = self.blocks_found(ftl, found).ok()?.iter().position(|blocks| !fits(blocks))? as u32;
        let units = self.map.units();
        let unit = |lpn: u32| (lpn < ftl.map.len()).then_some(crate::sim::id::Lpn(lpn));
        Some(FoundMerge {
            units: (number * units..(number + 1) * units).map(unit).collect(),
            planes: vec![block_home(ftl, number)],
        })
    }

    /// Takes over the blocks that a recovery has found.
    pub(super) fn adopt_blocks(&mut self, ftl: &Ftl, found: &[FoundBlock]) -> Result<(), String> {
        let own = found.iter().map(|found| found.block).filter(|&block| self.own.holds_newest(ftl, block));
        self.own.adopt(ftl, own.collect())?;
        let mut pairs: Vec<(BlockId, u32)> = Vec::new();
        for (number, blocks) in (0..).zip(self.blocks_found(ftl, found)?) {
            let Some(&current) = blocks.last() else { continue };
            let old = if blocks.len() > 1 { blocks[0].block.0 } else { NOWHERE };
            // Others are left if no block was free for a merge.
            self.unplaced.extend(blocks[..blocks.len() - 1].iter().skip(1).map(|found| found.block));
            let next = self.end_of(ftl, current);
            let logical = self.logical(number);
            (logical.current, logical.old, logical.next) = (current.block.0, old, next);
            if old != NOWHERE {
                pairs.push((current.block, number));
            }
        }
        let age = |block: BlockId| found.iter().position(|found| found.block == block);
        pairs.sort_by_cached_key(|&(block, _)| age(block));
        pairs.into_iter().for_each(|(_, number)| self.map.add_pair(block_home(ftl, number), number));
        Ok(())
    }
}
