//! Pure block mapping: one map entry for each logical block, whose units keep their offsets (Gal and Toledo,
//! "Algorithms and data structures for flash memories", ACM Computing Surveys 37(2), 2005).
//!
//! A logical block has a *current* block, which is programmed in order, and while that does not hold all an *old* one,
//! from which the rest is copied.

use crate::ftl::space::Role;
use std::collections::VecDeque;

use super::{Location, MappingPolicy, PADDING};
use crate::config::DeviceConfig;
use crate::config::advanced::Waste;
use crate::config::units::Duration;
use crate::ftl::Ftl;
use crate::ftl::allocation::AllocationConfig;
use crate::metrics::counters::{MergeKind, ProgramCause, ReadCause};
use crate::policy::Policy;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::sim::memory::Divider;
use crate::state::{Reader, StateError, Writer};

/// Block mapping has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockConfig {}

/// No block.
pub const NOWHERE: u32 = u32::MAX;

/// Where a logical block is.
#[derive(Clone, Copy, Debug)]
pub struct LogicalBlock {
    /// The block that writes go to, or [`NOWHERE`].
    pub current: u32,
    /// The block before it, while it holds anything valid, or [`NOWHERE`].
    pub old: u32,
    /// The next offset of the current block to be programmed.
    pub next: u32,
    /// The lowest offset of the current block that holds a copy, or [`NOWHERE`].
    copied: u32,
    /// The host has written behind a copy.
    mixed: bool,
    /// How often it has got a new block, which tells its entries in `pairs` apart.
    turn: u32,
}

impl LogicalBlock {
    const NEW: LogicalBlock =
        LogicalBlock { current: NOWHERE, old: NOWHERE, next: 0, copied: NOWHERE, mixed: false, turn: 0 };

    /// Some offsets of the current block are programmed together: copies, and writes of the host.
    pub fn note_program(&mut self, copies: impl Iterator<Item = u32>, mut writes: impl Iterator<Item = u32>) {
        self.copied = copies.fold(self.copied, u32::min);
        self.mixed |= writes.any(|offset| offset > self.copied);
    }

    /// How its blocks became one.
    fn merge(&self) -> MergeKind {
        match (self.copied, self.mixed) {
            (NOWHERE, _) => MergeKind::Switch,
            (_, false) => MergeKind::Partial,
            (_, true) => MergeKind::Full,
        }
    }
}

/// The map of logical blocks.
#[derive(Clone, Debug)]
pub struct BlockMap {
    /// By number.
    pub logical: Vec<LogicalBlock>,
    /// By plane: logical blocks that have got an old block, oldest first, and in which turn; some have lost it since.
    pairs: Vec<VecDeque<(u32, u32)>>,
    /// Writes that were trimmed before they had a place, and never programmed.
    pub dropped: u64,
    /// Units that were not programmed when their block was left.
    pub unwritten: u64,
    units: Divider,
}

impl BlockMap {
    fn new(device: &DeviceConfig) -> BlockMap {
        let units = device.data_units_per_block();
        BlockMap {
            logical: vec![LogicalBlock::NEW; device.logical_units().div_ceil(u64::from(units)) as usize],
            pairs: vec![VecDeque::new(); device.total_planes() as usize],
            dropped: 0,
            unwritten: 0,
            units: Divider::new(units),
        }
    }

    /// The logical block of a unit, and the unit's offset in it.
    #[inline]
    pub fn split(&self, lpn: Lpn) -> (u32, u32) {
        self.units.divide_with_rest(lpn.0)
    }

    /// Units of a logical block.
    pub fn units(&self) -> u32 {
        self.units.divisor()
    }

    /// The logical block of a plane that has had an old block for the longest time.
    pub fn oldest_pair(&mut self, plane: PlaneId) -> Option<u32> {
        while let Some(&(number, turn)) = self.pairs[plane.index()].front() {
            if self.is_pair(number, turn) {
                return Some(number);
            }
            self.pairs[plane.index()].pop_front();
        }
        None
    }

    fn is_pair(&self, number: u32, turn: u32) -> bool {
        let logical = &self.logical[number as usize];
        logical.old != NOWHERE && logical.turn == turn
    }

    /// How many logical blocks of a plane have an old block.
    pub fn pairs_of(&self, plane: PlaneId) -> usize {
        self.pairs[plane.index()].iter().filter(|&&(number, turn)| self.is_pair(number, turn)).count()
    }

    /// A logical block gets a new current block; what it had becomes old.
    fn renew(&mut self, number: u32, block: BlockId, plane: PlaneId) {
        let logical = &mut self.logical[number as usize];
        logical.old = std::mem::replace(&mut logical.current, block.0);
        let left = std::mem::take(&mut logical.next);
        (logical.copied, logical.mixed) = (NOWHERE, false);
        logical.turn = logical.turn.wrapping_add(1);
        if logical.old == NOWHERE {
            return;
        }
        let turn = logical.turn;
        self.unwritten += u64::from(self.units.divisor() - left);
        let mut pairs = std::mem::take(&mut self.pairs[plane.index()]);
        // Those that have lost their old block are let go of before they are as many as the others.
        if pairs.len() == pairs.capacity() {
            pairs.retain(|&(number, turn)| self.is_pair(number, turn));
        }
        pairs.push_back((number, turn));
        self.pairs[plane.index()] = pairs;
    }
}

/// Saved states.
impl BlockMap {
    /// Writes where the logical blocks are. How often each has got a block only tells its entries in `pairs` apart, and
    /// of these only one is written.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for logical in &self.logical {
            out.u32(logical.current)?;
            out.u32(logical.old)?;
            out.u32(logical.next)?;
            out.u32(logical.copied)?;
            out.u8(u8::from(logical.mixed))?;
        }
        for pairs in &self.pairs {
            let pairs = || pairs.iter().filter(|&&(number, turn)| self.is_pair(number, turn));
            out.u32(pairs().count() as u32)?;
            pairs().try_for_each(|&(number, _)| out.u32(number))?;
        }
        out.u64(self.dropped)?;
        out.u64(self.unwritten)
    }

    /// Reads what [`BlockMap::save`] wrote, into a new map. `home` is the plane of a logical block; `program` units
    /// are programmed together. Each block is told to `take`, with how many of its units are written; it says whether
    /// it can be a logical block's.
    pub fn load(
        &mut self,
        input: &mut Reader,
        program: u32,
        home: impl Fn(u32) -> PlaneId,
        mut take: impl FnMut(BlockId, PlaneId, u32) -> bool,
    ) -> Result<(), StateError> {
        let units = self.units.divisor();
        for number in 0..self.logical.len() as u32 {
            let (current, old) = (input.u32()?, input.u32()?);
            let next = input.below(units + 1, "offset")?;
            let whole = next.is_multiple_of(program) && (current != NOWHERE || (next == 0 && old == NOWHERE));
            let mut takes = |block, written| block == NOWHERE || take(BlockId(block), home(number), written);
            if !whole || !takes(current, next) || !takes(old, units) {
                return Err(input.damaged(format!("the blocks of logical block {number}")));
            }
            let (copied, mixed) = (input.u32()?, input.u8()?);
            if (copied != NOWHERE && copied >= next) || mixed > 1 {
                return Err(input.damaged(format!("the copies of logical block {number}")));
            }
            self.logical[number as usize] = LogicalBlock { current, old, next, copied, mixed: mixed == 1, turn: 0 };
        }
        let mut expected: Vec<bool> = self.logical.iter().map(|logical| logical.old != NOWHERE).collect();
        for plane in 0..self.pairs.len() {
            let count = input.below(self.logical.len() as u32 + 1, "logical blocks")?;
            for _ in 0..count {
                let number = input.below(self.logical.len() as u32, "logical block")?;
                if home(number).index() != plane || !std::mem::take(&mut expected[number as usize]) {
                    return Err(input.damaged(format!("logical block {number} among those with two blocks")));
                }
                self.pairs[plane].push_back((number, 0));
            }
        }
        if let Some(number) = expected.iter().position(|expected| *expected) {
            return Err(input.damaged(format!("logical block {number} is not among those with two blocks")));
        }
        self.dropped = input.count("writes dropped")?;
        self.unwritten = input.count("units not written")?;
        Ok(())
    }
}

/// Pure block mapping.
#[derive(Clone, Debug)]
pub struct Block {
    map: Option<BlockMap>,
}

impl Policy for Block {
    type Config = BlockConfig;

    fn check(_: &BlockConfig, device: &DeviceConfig) -> Result<(), String> {
        let advanced = &device.nand.advanced;
        let problem = if !matches!(device.allocation, AllocationConfig::Static(_)) {
            "the plane of a logical block is fixed: it needs allocation = \"static\""
        } else if advanced.copy_back != Waste::Off {
            "merges copy through the controller: it needs nand.advanced.copy_back = \"off\""
        } else if advanced.cache_program {
            "a logical block is programmed step by step: it needs nand.advanced.cache_program = false"
        } else if device.controller.fill_timeout > Duration(0) {
            "what fills a program follows from its offset: it needs controller.fill_timeout = \"0s\""
        } else {
            return Ok(());
        };
        Err(problem.to_owned())
    }

    fn new(_: &BlockConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Block { map: Some(BlockMap::new(device)) })
    }
}

impl MappingPolicy for Block {
    fn take_blocks(&mut self) -> Option<BlockMap> {
        self.map.take()
    }
}

impl Ftl {
    /// The map of logical blocks; only with block mapping.
    pub fn logical_blocks(&mut self) -> &mut BlockMap {
        self.block_map.as_deref_mut().unwrap_or_else(|| unreachable!("only block mapping has logical blocks"))
    }

    fn logical_block(&mut self, number: u32) -> &mut LogicalBlock {
        &mut self.logical_blocks().logical[number as usize]
    }

    /// The plane of a logical block: its number modulo the number of planes, in the order of the allocation.
    pub fn block_home(&self, number: u32) -> PlaneId {
        self.allocation.order().plane(number % self.shape().planes)
    }

    /// The place in the old block of a logical block where an offset is, if that is valid.
    pub fn old_place(&mut self, number: u32, offset: u32) -> Option<Ppn> {
        let LogicalBlock { old, .. } = *self.logical_block(number);
        let place = (old != NOWHERE).then(|| Ppn(self.blocks.first_unit(BlockId(old)).0 + offset))?;
        self.blocks.is_valid(place).then_some(place)
    }

    /// A logical block takes a free block, and goes on there. Nobody owns what it leaves unwritten.
    pub fn renew_block(&mut self, number: u32, plane: PlaneId) {
        let LogicalBlock { current, next, .. } = *self.logical_block(number);
        if current != NOWHERE {
            let first = self.blocks.first_unit(BlockId(current)).0;
            (first + next..first + self.blocks.data_units()).for_each(|unit| self.map.set_owner(Ppn(unit), PADDING));
        }
        let block = self.blocks.open_logical(plane);
        self.logical_blocks().renew(number, block, plane);
    }

    /// A functional write of `lpn`, after all that has to be programmed before it.
    pub(in crate::ftl) fn place_in_block(&mut self, lpn: Lpn, old: Location, contents: Option<(u32, u32, u32)>) {
        let (number, offset) = self.logical_blocks().split(lpn);
        let LogicalBlock { current, next, .. } = *self.logical_block(number);
        if current == NOWHERE || offset < next {
            self.renew_now(number);
        }
        self.fill_now(number, offset);
        let place = self.program_at(number, offset, lpn.0, ProgramCause::Host);
        self.written_now(lpn, old, place, contents);
        self.drop_old_now(number);
    }

    /// Programs the next offset of a logical block: a unit, or [`PADDING`].
    fn program_at(&mut self, number: u32, offset: u32, lpn: u32, cause: ProgramCause) -> Ppn {
        let LogicalBlock { current, .. } = *self.logical_block(number);
        let place = Ppn(self.blocks.first_unit(BlockId(current)).0 + offset);
        self.map.set_owner(place, lpn);
        let (_, in_page) = self.shape().units_per_page.divide_with_rest(place.0);
        self.counters.pages_programmed[cause as usize] +=
            if in_page == 0 { u64::from(self.shape().pages_per_unit) } else { 0 };
        let counter =
            if lpn == PADDING { &mut self.counters.units_padded } else { &mut self.counters.units_programmed };
        *counter += 1;
        let logical = self.logical_block(number);
        logical.next = offset + 1;
        match cause {
            ProgramCause::Host => logical.note_program(std::iter::empty(), std::iter::once(offset)),
            ProgramCause::Merge => logical.note_program(std::iter::once(offset), std::iter::empty()),
            _ => {}
        }
        if offset + 1 == self.blocks.data_units() && self.shape().summary {
            self.note_summary();
        }
        place
    }

    /// Copies what the old block holds below an offset, and pads the rest.
    fn fill_now(&mut self, number: u32, until: u32) {
        let mut last_page = u32::MAX;
        for offset in self.logical_block(number).next..until {
            let Some(from) = self.old_place(number, offset) else {
                self.program_at(number, offset, PADDING, ProgramCause::Padding);
                continue;
            };
            let page = self.shape().units_per_page.divide(from.0);
            if std::mem::replace(&mut last_page, page) != page {
                self.note_read(ReadCause::Merge, self.shape().pages_per_unit);
            }
            let lpn = self.map.owner(from);
            let place = self.program_at(number, offset, lpn, ProgramCause::Merge);
            if let Some(media) = &mut self.media {
                media.copy(from, place);
            }
            self.blocks.invalidate(from);
            self.map.set_flash(Lpn(lpn), place);
            self.blocks.validate(place);
            self.counters.units_moved += 1;
        }
    }

    /// The offset behind the last valid unit of the old block, rounded up to whole programs; 0 for none.
    fn end_of_old(&mut self, number: u32) -> u32 {
        let units = self.blocks.data_units();
        let last = (0..units).rev().find(|&offset| self.old_place(number, offset).is_some());
        last.map_or(0, |last| (last + 1).next_multiple_of(self.shape().units_per_program))
    }

    /// Merges a logical block: its old block is erased.
    fn merge_now(&mut self, number: u32) {
        let end = self.end_of_old(number);
        self.fill_now(number, end);
        self.drop_old_now(number);
    }

    /// Takes its old block from a logical block, if that holds nothing valid: it is to be erased.
    pub fn take_old(&mut self, number: u32) -> Option<BlockId> {
        let old = BlockId(self.logical_block(number).old);
        if old.0 == NOWHERE || self.blocks.block(old).valid > 0 {
            return None;
        }
        let logical = self.logical_block(number);
        logical.old = NOWHERE;
        let kind = logical.merge();
        self.counters.merges[kind as usize] += 1;
        self.blocks.doom(old);
        Some(old)
    }

    /// Erases an old block that holds nothing valid.
    pub(in crate::ftl) fn drop_old_now(&mut self, number: u32) {
        if let Some(old) = self.take_old(number) {
            self.erase_now(old);
        }
    }

    fn renew_now(&mut self, number: u32) {
        self.merge_now(number);
        let (plane, group) = (self.block_home(number), self.shape().units_per_program);
        let LogicalBlock { current, next, .. } = *self.logical_block(number);
        if current != NOWHERE {
            self.fill_now(number, next.next_multiple_of(group));
        }
        while self.blocks.free_blocks(plane, Role::Data) <= self.shape().soft {
            let Some(pair) = self.logical_blocks().oldest_pair(plane) else { break };
            self.merge_now(pair);
        }
        self.renew_block(number, plane);
        self.drop_old_now(number);
    }

    /// Completes what functional writes have begun of a program.
    pub(in crate::ftl) fn seal_blocks(&mut self) {
        let group = self.shape().units_per_program;
        for number in 0..self.block_map.as_ref().map_or(0, |map| map.logical.len() as u32) {
            let next = self.logical_block(number).next;
            self.fill_now(number, next.next_multiple_of(group));
            self.drop_old_now(number);
        }
    }

    /// Checks that each valid unit is at its offset in a block of its logical block; for tests.
    pub(in crate::ftl) fn recount_blocks(&self) -> Result<(), String> {
        let Some(map) = &self.block_map else { return Ok(()) };
        for (number, logical) in map.logical.iter().enumerate() {
            for (block, end) in [(logical.current, logical.next), (logical.old, map.units())] {
                if block == NOWHERE {
                    continue;
                }
                let first = self.blocks.first_unit(BlockId(block)).0;
                for offset in 0..map.units() {
                    let place = Ppn(first + offset);
                    let lpn = self.map.owner(place);
                    let own = map.split(Lpn(lpn)) == (number as u32, offset) && offset < end;
                    if self.blocks.is_valid(place) && !own {
                        return Err(format!("logical block {number}: unit {lpn} is at offset {offset}"));
                    }
                }
            }
        }
        Ok(())
    }
}
