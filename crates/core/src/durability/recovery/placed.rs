//! Recovery of a mapping scheme with blocks of its own: merges, if the scheme has no place for a block, and the blocks
//! that it takes over.
//!
//! Let a set of planes have B blocks, L logical blocks and S log blocks, and q = B - L - S. A merge of a logical block
//! with a data block needs one free block, and frees at least one. Each other merge adds a data block, and there are at
//! most L. So a recovery with e surplus blocks succeeds if a block is free and e <= q. The surplus blocks are those
//! that awaited their erase when a block was last opened. A durable device therefore opens a block only if another one
//! is free and at most q blocks await their erase. If the scheme has no log blocks, the first condition is enough.
//! Devices without this room are refused.
//!
//! If blocks may fail, let G be the good blocks of the set, and q = G - L - S. A block is opened only if two others are
//! free and at most q - 1 good blocks await their erase. A failure lowers G and q by one. If two programs or summaries
//! of a set fail before the next block is opened, more than q blocks may await their erase. If no block is then free
//! for a merge, the device is read-only.

use super::{Found, Rebuild, RecoverError, Recovery, Scan, foreign};
use crate::durability::flash::{Record, Source};
use crate::ftl::mapping::{FoundBlock, FoundMerge, Location, PADDING};
use crate::ftl::space::Role;
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, Ppn};

impl Rebuild<'_> {
    /// Erases blocks without newest versions, and merges logical blocks until the scheme has a place for all others.
    /// Gets the blocks with data and returns those that are left, oldest first.
    pub(super) fn merge_placed(
        &mut self,
        mut closed: Vec<BlockId>,
        scan: &mut Scan,
        report: &mut Recovery,
    ) -> Result<Vec<BlockId>, RecoverError> {
        self.prefer_younger(&scan.found);
        loop {
            let (kept, empty): (Vec<_>, Vec<_>) = closed.into_iter().partition(|&block| self.has_newest(block));
            scan.erased.extend(empty.into_iter().filter(|&block| !self.ftl.blocks.block(block).failed));
            self.erase_found(scan, report);
            closed = kept;
            let found = scan.found.blocks(&closed);
            let Some(merge) = self.ftl.scheme().merge_found(self.ftl, &found) else { return Ok(closed) };
            let is_free = |block: &BlockId| !closed.contains(block) && !self.ftl.blocks.block(*block).failed;
            let blocks = (0..self.ftl.blocks.all().len() as u32).map(BlockId);
            let of_planes = blocks.filter(|&block| merge.planes.contains(&self.ftl.blocks.plane_of(block)));
            let target = of_planes.filter(is_free).min_by_key(|block| (scan.found.erases[block.index()], block.0));
            let Some(target) = target else {
                scan.is_stuck = self.ftl.faults.is_some();
                return if scan.is_stuck { Ok(closed) } else { Err(foreign("no block is free for a merge")) };
            };
            self.merge(&merge, target, scan);
            closed.push(target);
        }
    }

    /// Maps each unit to the copy in the block that was opened last.
    fn prefer_younger(&mut self, found: &Found) {
        for (&lpn, others) in &found.others {
            let Location::Flash(held) = self.ftl.map.get(Lpn(lpn)) else { continue };
            let opened = |ppn: &Ppn| self.log.opened[self.ftl.blocks.block_of(*ppn).index()];
            if let Some(&newest) = others.iter().chain([&held]).max_by_key(|ppn| (opened(ppn), **ppn)) {
                self.ftl.map.set_flash(Lpn(lpn), newest);
            }
        }
    }

    fn has_newest(&self, block: BlockId) -> bool {
        let first = self.ftl.blocks.first_unit(block).0;
        (first..first + self.ftl.blocks.data_units()).any(|ppn| self.ftl.newest_at(Ppn(ppn)).is_some())
    }

    /// Copies the newest versions of a logical block into a free block. If the scheme leaves out pages, so does the
    /// merge. Otherwise, the block is programmed up to the last unit.
    fn merge(&mut self, merge: &FoundMerge, target: BlockId, scan: &mut Scan) {
        let (first, size) = (self.ftl.blocks.first_unit(target).0, *self.ftl.blocks.size(Role::Data));
        let group = size.program_units;
        let is_there = |lpn: &Option<Lpn>| lpn.is_some_and(|lpn| self.ftl.ppn_in_flash(lpn).is_some());
        let last = merge.units.iter().rposition(is_there).map_or(0, |last| last as u32 + 1);
        for (start, units) in (first..).step_by(group as usize).map(Ppn).zip(merge.units.chunks(group as usize)) {
            let copies: Vec<Option<(Lpn, Ppn)>> =
                units.iter().map(|lpn| lpn.and_then(|lpn| Some((lpn, self.ftl.ppn_in_flash(lpn)?)))).collect();
            (start.0..start.0 + group).for_each(|ppn| self.ftl.map.set_owner(Ppn(ppn), PADDING));
            let may_skip = self.ftl.shape().hooks.gaps || start.0 >= first + last;
            if may_skip && copies.iter().all(Option::is_none) {
                continue;
            }
            self.log.begin(start, group, ProgramCause::Merge);
            for (to, copy) in (start.0..).map(Ppn).zip(copies) {
                match copy {
                    Some((lpn, from)) => self.copy_found(lpn, from, to, scan),
                    None => self.log.unit(to, Record::default(), Source::Nothing),
                }
            }
            self.log.end(start, group);
            scan.programs.push(start);
        }
        let end = Ppn(first + size.data_units);
        if self.ftl.shape().summary && scan.programs.last() == Some(&Ppn(end.0 - group)) {
            self.log.emit_summary(self.ftl, end);
            scan.programs.push(end);
        }
        scan.found.ends[target.index()] = last.next_multiple_of(group);
    }

    fn copy_found(&mut self, lpn: Lpn, from: Ppn, to: Ppn, scan: &mut Scan) {
        let (sequence, sectors) = (self.log.sequence(from), self.log.sectors(from));
        let is_lost = scan.found.lost.contains(&from);
        scan.found.lost.extend(is_lost.then_some(to));
        let record = self.log.record_or_loss(self.ftl, lpn.0, sequence, is_lost);
        self.log.unit(to, Record { sectors, ..record }, Source::Copy(from));
        self.ftl.map.set_owner(to, lpn.0);
        self.ftl.map.set_flash(lpn, to);
        if let Some(&mask) = scan.found.sectors.get(&from.0) {
            scan.found.sectors.insert(to.0, mask);
        }
        let origin = scan.origins.get(&from.0).copied().unwrap_or(from);
        scan.origins.insert(to.0, origin);
        scan.merged.push(from);
    }
}

impl Found {
    /// Returns blocks with the ends of their programmed units.
    pub(super) fn blocks(&self, blocks: &[BlockId]) -> Vec<FoundBlock> {
        blocks.iter().map(|&block| FoundBlock { block, end: self.ends[block.index()] }).collect()
    }
}
