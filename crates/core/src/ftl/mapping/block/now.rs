//! Block mapping without time, and functions that the timed part shares with it.

use super::map::{LogicalBlock, NOWHERE};
use super::{Block, block_home};
use crate::ftl::Ftl;
use crate::ftl::mapping::{Location, PADDING};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::work::Purpose;

impl Block {
    pub(super) fn logical(&mut self, number: u32) -> &mut LogicalBlock {
        &mut self.map.logical[number as usize]
    }

    /// Returns the address of an offset in the old block of a logical block, if that unit is valid.
    pub(super) fn old_place(&mut self, ftl: &mut Ftl, number: u32, offset: u32) -> Option<Ppn> {
        let LogicalBlock { old, .. } = *self.logical(number);
        let ppn = (old != NOWHERE).then(|| Ppn(ftl.blocks.first_unit(BlockId(old)).0 + offset))?;
        ftl.blocks.is_valid(ppn).then_some(ppn)
    }

    /// Gives a logical block a free block as its current one. Units that are left unwritten become padding.
    pub(super) fn renew_block(&mut self, ftl: &mut Ftl, number: u32, plane: PlaneId) {
        let LogicalBlock { current, next, .. } = *self.logical(number);
        if current != NOWHERE {
            let first = ftl.blocks.first_unit(BlockId(current)).0;
            (first + next..first + ftl.blocks.data_units()).for_each(|unit| ftl.map.set_owner(Ppn(unit), PADDING));
        }
        let block = ftl.blocks.open_logical(plane);
        self.map.renew(number, block, plane);
    }

    /// Writes `lpn` in functional mode, after everything that must be programmed before it.
    pub(super) fn place_in_block(&mut self, ftl: &mut Ftl, lpn: Lpn, old: Location, contents: Option<(u32, u32, u32)>) {
        let (number, offset) = self.map.split(lpn);
        let LogicalBlock { current, next, .. } = *self.logical(number);
        if (current == NOWHERE || offset < next) && !self.renew_now(ftl, number) {
            return ftl.refuse_unit();
        }
        self.fill_now(ftl, number, offset);
        let ppn = self.program_at(ftl, number, offset, lpn.0, ProgramCause::Host);
        ftl.written_now(lpn, old, ppn, contents);
        self.drop_old_now(ftl, number);
    }

    /// Programs an offset of a logical block with a unit, or with [`PADDING`].
    fn program_at(&mut self, ftl: &mut Ftl, number: u32, offset: u32, lpn: u32, cause: ProgramCause) -> Ppn {
        let LogicalBlock { current, .. } = *self.logical(number);
        let ppn = Ppn(ftl.blocks.first_unit(BlockId(current)).0 + offset);
        ftl.program_in_block_now(ppn, cause, lpn);
        let logical = self.logical(number);
        logical.next = offset + 1;
        match cause {
            ProgramCause::Host => logical.note_program(std::iter::empty(), std::iter::once(offset)),
            ProgramCause::Merge => logical.note_program(std::iter::once(offset), std::iter::empty()),
            _ => {}
        }
        ppn
    }

    /// Programs the offsets before `until`: copies the valid units of the old block, and pads the rest.
    fn fill_now(&mut self, ftl: &mut Ftl, number: u32, until: u32) {
        let mut last_page = u32::MAX;
        for offset in self.logical(number).next..until {
            let Some(from) = self.old_place(ftl, number, offset) else {
                self.program_at(ftl, number, offset, PADDING, ProgramCause::Padding);
                continue;
            };
            let ppn = self.program_at(ftl, number, offset, ftl.map.owner(from), ProgramCause::Merge);
            ftl.copy_now(from, ppn, &mut last_page);
        }
    }

    /// Returns the offset after the last valid unit of the old block, rounded up to whole programs, or 0 if there is
    /// none.
    fn end_of_old(&mut self, ftl: &mut Ftl, number: u32) -> u32 {
        let units = ftl.blocks.data_units();
        let last = (0..units).rev().find(|&offset| self.old_place(ftl, number, offset).is_some());
        last.map_or(0, |last| (last + 1).next_multiple_of(ftl.shape().units_per_program))
    }

    /// Merges the blocks of a logical block, and erases the old one.
    fn merge_now(&mut self, ftl: &mut Ftl, number: u32) {
        let end = self.end_of_old(ftl, number);
        self.fill_now(ftl, number, end);
        self.drop_old_now(ftl, number);
    }

    /// Removes the old block of a logical block and returns it for its erase, if it holds no valid units.
    pub(super) fn take_old(&mut self, ftl: &mut Ftl, number: u32) -> Option<BlockId> {
        let old = BlockId(self.logical(number).old);
        if old.0 == NOWHERE || ftl.blocks.block(old).valid > 0 {
            return None;
        }
        let logical = self.logical(number);
        logical.old = NOWHERE;
        let kind = logical.merge();
        ftl.counters.merges[kind as usize] += 1;
        ftl.blocks.await_erase_for(old, Purpose::Merge);
        Some(old)
    }

    /// Erases the old block of a logical block, if it holds no valid units.
    pub(super) fn drop_old_now(&mut self, ftl: &mut Ftl, number: u32) {
        if let Some(old) = self.take_old(ftl, number) {
            ftl.erase_or_retire_now(old);
        }
    }

    /// Gives a logical block a free block. Returns `false` if there is none because the device is worn out.
    fn renew_now(&mut self, ftl: &mut Ftl, number: u32) -> bool {
        self.merge_now(ftl, number);
        let plane = block_home(ftl, number);
        let group = ftl.shape().units_per_program;
        let LogicalBlock { current, next, .. } = *self.logical(number);
        if current != NOWHERE {
            self.fill_now(ftl, number, next.next_multiple_of(group));
        }
        while self.own.others(ftl, plane) <= ftl.shape().soft {
            let Some(pair) = self.map.oldest_pair(plane) else { break };
            self.merge_now(ftl, pair);
        }
        if ftl.is_worn_out() {
            return false;
        }
        self.renew_block(ftl, number, plane);
        self.drop_old_now(ftl, number);
        true
    }

    /// Completes the programs that functional writes have started.
    pub(super) fn seal_blocks(&mut self, ftl: &mut Ftl) {
        let group = ftl.shape().units_per_program;
        for number in 0..self.map.logical.len() as u32 {
            let next = self.logical(number).next;
            self.fill_now(ftl, number, next.next_multiple_of(group));
            self.drop_old_now(ftl, number);
        }
    }

    /// Test hook: checks that each valid unit is at its offset in a block of its logical block.
    pub(super) fn recount_blocks(&self, ftl: &Ftl) -> Result<(), String> {
        let map = &self.map;
        for (number, logical) in map.logical.iter().enumerate() {
            for (block, end) in [(logical.current, logical.next), (logical.old, map.units())] {
                if block == NOWHERE {
                    continue;
                }
                let first = ftl.blocks.first_unit(BlockId(block)).0;
                for offset in 0..map.units() {
                    let ppn = Ppn(first + offset);
                    let lpn = ftl.map.owner(ppn);
                    let own = map.split(Lpn(lpn)) == (number as u32, offset) && offset < end;
                    if ftl.blocks.is_valid(ppn) && !own {
                        return Err(format!("logical block {number}: unit {lpn} is at offset {offset}"));
                    }
                }
            }
        }
        self.own.recount(ftl)
    }
}
