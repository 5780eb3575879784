//! Replacement of a block in which a program has failed: a free block takes its place, and gets its valid units at the
//! same offsets. Mapping schemes with blocks of their own use it.
//!
//! A block of each set of planes stays free for this: log blocks, targets of merges and current blocks are opened
//! only if two blocks are free. The device does not stall, because two blocks are free or await their erase whenever
//! one is needed. A failed block counts as bad from its failure on. A logical block has at most one good data block,
//! and each of the slots for log blocks and merges one good block. If a slot is empty, at most L + logs + merges - 1
//! good blocks are in use, so two others are free or await their erase. An erase waits for reads, copies and programs,
//! which wait for no free block: a program that fails gets the block that was left. With block mapping, a plane with
//! fewer than two such blocks has L + 1 good blocks in use, so some logical block has two, and its merge frees one
//! without taking any. If a second program fails before the first failed block has been replaced, and no block is free,
//! the device becomes read-only. A durable device leaves one more block for merges of a recovery: three instead of two.

use crate::ftl::Ftl;
use crate::ftl::mapping::{Context, PADDING};
use crate::ftl::mover::Gather;
use crate::sim::id::{BlockId, Ppn};
use crate::work::Purpose;

/// Blocks that a new block takes the place of. There are several if programs of new blocks fail too.
#[derive(Clone, Debug, Default)]
pub struct Replacement {
    /// Failed blocks whose valid units are being moved; none if no block is being replaced.
    from: Vec<BlockId>,
    /// Next offset of the new block that is programmed.
    pub next: u32,
}

impl Replacement {
    /// Returns `true` while a block is being replaced.
    #[inline]
    pub fn is_active(&self) -> bool {
        !self.from.is_empty()
    }

    /// Starts to replace a block, again from the first offset.
    pub fn begin(&mut self, failed: BlockId) {
        self.from.push(failed);
        self.next = 0;
    }

    /// Queues reads of the units that the next program of the new block `to` holds. The scheme gets `number` at the end
    /// of each read. Programs without units are skipped, and their units are added to `skipped`. If none is left before
    /// the offset `until`, gives up the failed blocks and returns `true`.
    pub fn read_next_program(
        &mut self,
        cx: &mut (impl Context + ?Sized),
        number: (u32, Purpose),
        (to, until): (BlockId, u32),
        gather: &mut Gather,
        skipped: &mut u64,
    ) -> bool {
        let group = cx.ftl().shape().units_per_program;
        while self.next < until {
            for offset in self.next..self.next + group {
                if let Some(from) = self.newest(cx.ftl(), offset) {
                    gather.add(cx, number, from);
                }
            }
            if !gather.is_ready(cx) {
                return false;
            }
            self.pad(cx.ftl(), to);
            *skipped += u64::from(group);
        }
        self.from.drain(..).for_each(|block| give_up(cx, block, Purpose::OfClass));
        true
    }

    /// Returns the address of the unit at an offset of the failed blocks, if it is valid.
    fn newest(&self, ftl: &Ftl, offset: u32) -> Option<Ppn> {
        let ppn = |block: &BlockId| Ppn(ftl.blocks.first_unit(*block).0 + offset);
        self.from.iter().map(ppn).find(|&ppn| ftl.blocks.is_valid(ppn))
    }

    /// Marks the units of the next program as padding. Returns its first unit.
    fn pad(&mut self, ftl: &mut Ftl, to: BlockId) -> Ppn {
        let start = Ppn(ftl.blocks.first_unit(to).0 + self.next);
        let group = ftl.shape().units_per_program;
        (start.0..start.0 + group).for_each(|unit| ftl.map.set_owner(Ppn(unit), PADDING));
        self.next += group;
        start
    }

    /// Binds the next program of the new block `to`. Returns its first unit.
    pub fn bind(&mut self, cx: &mut (impl Context + ?Sized), to: BlockId, gather: &mut Gather) -> Ppn {
        let start = self.pad(cx.ftl(), to);
        let (first, units) = (cx.ftl().blocks.first_unit(to).0, cx.ftl().blocks.units_per_block());
        gather.bind(cx, |copy| Ppn(first + copy.from.0 % units));
        start
    }
}

/// Has a block without valid units erased, or retired if it has failed, once nothing depends on it.
pub fn give_up(cx: &mut (impl Context + ?Sized), block: BlockId, purpose: Purpose) {
    debug_assert_eq!(cx.ftl().blocks.block(block).valid, 0, "block {} still holds data", block.0);
    cx.ftl().blocks.await_erase_for(block, purpose);
    if cx.ftl().blocks.can_erase(block) {
        cx.erase(block);
    }
}
