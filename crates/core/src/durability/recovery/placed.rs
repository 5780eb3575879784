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

use super::{Found, Rebuild, Recovery, Scan};
use crate::durability::flash::{Record, Source};
use crate::ftl::Ftl;
use crate::ftl::mapping::{FoundBlock, FoundMerge, Location, PADDING, Recovering, call};
use crate::ftl::space::{BlockState, Role};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, Ppn};

/// Recovery whose blocks the mapping scheme takes over.
struct Settling<'r, 'a> {
    rebuild: &'r mut Rebuild<'a>,
    scan: &'r mut Scan,
    report: &'r mut Recovery,
    /// Blocks with data, oldest first.
    used: Vec<BlockId>,
    /// Blocks that are kept.
    closed: Vec<BlockId>,
    /// True once each unit is mapped to its youngest copy.
    prefers_younger: bool,
}

impl Recovering for Settling<'_, '_> {
    fn ftl(&mut self) -> &mut Ftl {
        self.rebuild.ftl
    }

    fn found(&mut self) -> Vec<FoundBlock> {
        if !std::mem::replace(&mut self.prefers_younger, true) {
            self.rebuild.prefer_younger(&self.scan.found);
        }
        let (rebuild, closed) = (&mut *self.rebuild, std::mem::take(&mut self.closed));
        let (kept, empty): (Vec<_>, Vec<_>) = closed.into_iter().partition(|&block| rebuild.has_newest(block));
        self.scan.erased.extend(empty.into_iter().filter(|&block| !rebuild.ftl.blocks.block(block).failed));
        rebuild.erase_found(self.scan, self.report);
        self.closed = kept;
        self.scan.found.blocks(&self.closed)
    }

    fn merge(&mut self, merge: &FoundMerge) -> Result<bool, String> {
        let (rebuild, closed) = (&mut *self.rebuild, &mut self.closed);
        let is_free = |block: &BlockId| !closed.contains(block) && !rebuild.ftl.blocks.block(*block).failed;
        let blocks = (0..rebuild.ftl.blocks.all().len() as u32).map(BlockId);
        let of_planes = blocks.filter(|&block| merge.planes.contains(&rebuild.ftl.blocks.plane_of(block)));
        let erases = &self.scan.found.erases;
        let target = of_planes.filter(is_free).min_by_key(|block| (erases[block.index()], block.0));
        let Some(target) = target else {
            self.scan.is_stuck = rebuild.ftl.faults.is_some();
            return if self.scan.is_stuck { Ok(false) } else { Err("no block is free for a merge".to_owned()) };
        };
        rebuild.merge(merge, target, self.scan);
        closed.push(target);
        Ok(true)
    }

    fn keep(&mut self) -> Vec<FoundBlock> {
        let Settling { rebuild, scan, report, used, closed, .. } = self;
        rebuild.make_valid(scan, report);
        rebuild.retire_found(used, closed);
        rebuild.ftl.blocks.restore(closed, &scan.found.erases, BlockState::Logical);
        rebuild.count_found(closed);
        scan.found.blocks(closed)
    }

    fn close(&mut self) -> Result<(), String> {
        self.rebuild.make_valid(self.scan, self.report);
        self.rebuild.close_found(&self.closed, self.scan)
    }
}

impl Rebuild<'_> {
    /// Has the mapping scheme take over blocks: those with data, and those of them that are kept, oldest first.
    pub(super) fn hand_over(
        &mut self,
        scan: &mut Scan,
        report: &mut Recovery,
        [used, closed]: [Vec<BlockId>; 2],
    ) -> Result<(), String> {
        call::recover(&mut Settling { rebuild: self, scan, report, used, closed, prefers_younger: false })
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
            let may_skip = self.ftl.shape().leaves_out_pages || start.0 >= first + last;
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
