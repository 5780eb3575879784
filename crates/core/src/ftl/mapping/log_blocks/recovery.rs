//! Recovery of log-block mappings: a block reveals by its contents what it is.
//!
//! If all newest versions of a block are at their offsets of one logical block, it is the data block, or a log block of
//! this logical block if another such block is older. All other blocks are log blocks. None of them is programmed
//! again.

use super::options::StreamKind;
use super::slots::{NOWHERE, Slot};
use super::{LogBlocks, Rules};
use crate::ftl::Ftl;
use crate::ftl::mapping::{FoundBlock, FoundMerge};
use crate::sim::id::{BlockId, PlaneId, Ppn};

/// Contents of a block.
#[derive(Clone, Copy, Debug)]
struct Contents {
    block: BlockId,
    /// Position of the block in the order of opening.
    age: u64,
    set: u32,
    /// Logical block of all its units, if they belong to one.
    number: Option<u32>,
    /// True if all units are at their offsets of this logical block.
    in_place: bool,
}

/// Uses of the blocks that a recovery has found.
#[derive(Debug)]
struct Uses {
    /// Data blocks, by logical block.
    data: Vec<u32>,
    /// Log blocks and their slots.
    logs: Vec<(u32, Contents)>,
    /// Log blocks beyond the number of slots.
    surplus: Vec<BlockId>,
}

impl<R: Rules> LogBlocks<R> {
    /// See [`Mapping::merge_found`](crate::ftl::mapping::Mapping). Prefers a logical block with a good data block,
    /// because its merge frees at least as many blocks as it takes.
    pub(super) fn merge_surplus(&self, ftl: &Ftl, found: &[FoundBlock]) -> Option<FoundMerge> {
        let uses = self.uses(ftl, found).ok()?;
        let numbers = uses.surplus.iter().flat_map(|&block| self.numbers_in(ftl, block));
        let is_good = |&block: &u32| block != NOWHERE && !ftl.blocks.block(BlockId(block)).failed;
        let number = numbers.min_by_key(|&number| (!is_good(&uses.data[number as usize]), number))?;
        Some(FoundMerge {
            units: (0..self.layout.units()).map(|offset| self.layout.unit(number, offset)).collect(),
            planes: self.layout.planes_of(self.layout.set_of(number)).map(PlaneId).collect(),
        })
    }

    /// Takes over the blocks that a recovery has found.
    pub(super) fn adopt_blocks(&mut self, ftl: &Ftl, found: &[FoundBlock]) -> Result<(), String> {
        let own = found.iter().map(|found| found.block).filter(|&block| self.own.holds_newest(ftl, block));
        self.own.adopt(ftl, own.collect())?;
        let uses = self.uses(ftl, found)?;
        if !uses.surplus.is_empty() && ftl.faults.is_none() {
            return Err(format!("{} blocks have no place among the log blocks", uses.surplus.len()));
        }
        (self.data, self.unplaced) = (uses.data, uses.surplus);
        let units = self.layout.units();
        for number in 0..self.data.len() as u32 {
            let is_open = self.data[number as usize] != NOWHERE;
            self.set_filled(number, if is_open { units } else { 0 });
        }
        for (slot, contents) in uses.logs {
            let Contents { block, age, number, in_place, .. } = contents;
            let stream = self.stream_of_slot(slot);
            let is_of_one = self.is_of_one(stream);
            let number = number.filter(|_| is_of_one).unwrap_or(NOWHERE);
            let expected = if self.runs == Some(stream) { NOWHERE } else { units };
            let ordered = in_place && is_of_one;
            let block = block.0;
            *self.slot(slot) = Slot { block, number, next: units, expected, used: age, ordered, ..Slot::default() };
            self.slot_of[block as usize] = slot;
            if number != NOWHERE {
                self.log_of[number as usize] = slot;
            }
        }
        self.clock = found.len() as u64;
        for set in 0..self.layout.sets() {
            self.set(set).free = self.count_free(ftl, set);
        }
        Ok(())
    }

    /// Returns the logical blocks of the newest versions in a block.
    fn numbers_in(&self, ftl: &Ftl, block: BlockId) -> impl Iterator<Item = u32> {
        let first = ftl.blocks.first_unit(block).0;
        (first..first + self.layout.units())
            .filter_map(|ppn| ftl.newest_at(Ppn(ppn)))
            .map(|lpn| self.layout.split(lpn).0)
    }

    fn contents(&self, ftl: &Ftl, block: BlockId, age: u64) -> Result<Contents, String> {
        let set = self.layout.set_of_plane(ftl.blocks.plane_of(block));
        let mut numbers = self.numbers_in(ftl, block);
        let number = numbers.next().ok_or_else(|| format!("block {} holds no newest version", block.0))?;
        let is_own = numbers.all(|other| other == number);
        if self.numbers_in(ftl, block).any(|number| self.layout.set_of(number) != set) {
            return Err(format!("block {} holds units of other planes", block.0));
        }
        let first = ftl.blocks.first_unit(block).0;
        let in_place = is_own
            && (0..self.layout.units())
                .all(|offset| ftl.newest_at(Ppn(first + offset)).is_none_or(|lpn| self.layout.split(lpn).1 == offset));
        Ok(Contents { block, age, set, number: is_own.then_some(number), in_place })
    }

    fn uses(&self, ftl: &Ftl, found: &[FoundBlock]) -> Result<Uses, String> {
        let mut uses = Uses { data: vec![NOWHERE; self.data.len()], logs: Vec::new(), surplus: Vec::new() };
        let mut logs = Vec::new();
        for (age, found) in (0..).zip(found).filter(|(_, found)| !self.own.holds_newest(ftl, found.block)) {
            let contents = self.contents(ftl, found.block, age)?;
            match contents.number.filter(|_| contents.in_place) {
                Some(number) if uses.data[number as usize] == NOWHERE => uses.data[number as usize] = found.block.0,
                _ => logs.push(contents),
            }
        }
        // Blocks whose units are not in place fit into fewer slots.
        logs.sort_by_key(|contents| contents.in_place);
        let mut taken = vec![0; self.sets.len() * self.streams.len()];
        let mut has_log = vec![false; self.data.len()];
        for contents in logs {
            let of_set = contents.set as usize * self.streams.len();
            let has_room = |&stream: &usize| taken[of_set + stream] < self.streams[stream].logs;
            let is_first = |number: u32| !has_log[number as usize];
            let fits = |stream: &usize| match self.streams[*stream].kind {
                StreamKind::Shared(_) | StreamKind::Consecutive => true,
                StreamKind::Own => contents.number.is_some_and(is_first),
                StreamKind::InOrder => contents.in_place && contents.number.is_some_and(is_first),
            };
            // First those of one logical block, then the others, and cold ones before hot ones.
            let of_one = (0..self.streams.len()).filter(|&stream| self.is_of_one(stream));
            let others = (0..self.streams.len()).rev().filter(|&stream| !self.is_of_one(stream));
            let Some(stream) = of_one.chain(others).filter(fits).find(has_room) else {
                uses.surplus.push(contents.block);
                continue;
            };
            if let Some(number) = contents.number.filter(|_| self.is_of_one(stream)) {
                has_log[number as usize] = true;
            }
            let slot = self.slots_of(contents.set, stream).start + taken[of_set + stream];
            taken[of_set + stream] += 1;
            uses.logs.push((slot, contents));
        }
        Ok(uses)
    }
}
