//! Map of logical blocks: the current block and the old block of each.

use std::collections::VecDeque;

use crate::config::DeviceConfig;
use crate::metrics::counters::MergeKind;
use crate::sim::id::{BlockId, Lpn, PlaneId};
use crate::sim::memory::Divider;
use crate::state::{Reader, StateError, Writer};

/// No block.
pub const NOWHERE: u32 = u32::MAX;

/// State of a logical block.
#[derive(Clone, Copy, Debug)]
pub struct LogicalBlock {
    /// Block that writes go to, or `NOWHERE`.
    pub current: u32,
    /// Block that was current before, while it holds valid units, or `NOWHERE`.
    pub old: u32,
    /// Next offset of the current block that is programmed.
    pub next: u32,
    /// Lowest offset of the current block that holds a copy, or [`NOWHERE`].
    copied: u32,
    /// True if the host has written an offset after a copy.
    mixed: bool,
    /// Number of blocks that the logical block has taken. It distinguishes entries in `pairs`.
    turn: u32,
}

impl LogicalBlock {
    const NEW: LogicalBlock =
        LogicalBlock { current: NOWHERE, old: NOWHERE, next: 0, copied: NOWHERE, mixed: false, turn: 0 };

    /// Notes a program in the current block: offsets of copies, and offsets of host writes.
    pub fn note_program(&mut self, copies: impl Iterator<Item = u32>, mut writes: impl Iterator<Item = u32>) {
        self.copied = copies.fold(self.copied, u32::min);
        self.mixed |= writes.any(|offset| offset > self.copied);
    }

    /// Returns the kind of the merge that has removed the old block.
    pub(super) fn merge(&self) -> MergeKind {
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
    /// Logical blocks, by number.
    pub logical: Vec<LogicalBlock>,
    /// Logical blocks that have had an old block, oldest first, with their `turn` at that time. Indexed by plane. Some
    /// have lost the old block since.
    pairs: Vec<VecDeque<(u32, u32)>>,
    /// Number of writes that were trimmed before they were bound, and never programmed.
    pub dropped: u64,
    /// Number of units that were not programmed when their block ceased to be current.
    pub unwritten: u64,
    units: Divider,
}

impl BlockMap {
    pub(super) fn new(device: &DeviceConfig) -> BlockMap {
        let units = device.data_units_per_block();
        BlockMap {
            logical: vec![LogicalBlock::NEW; device.logical_units().div_ceil(u64::from(units)) as usize],
            pairs: vec![VecDeque::new(); device.total_planes() as usize],
            dropped: 0,
            unwritten: 0,
            units: Divider::new(units),
        }
    }

    /// Returns the logical block of a unit, and the unit's offset in it.
    #[inline]
    pub fn split(&self, lpn: Lpn) -> (u32, u32) {
        self.units.divide_with_rest(lpn.0)
    }

    /// Returns the number of units of a logical block.
    pub fn units(&self) -> u32 {
        self.units.divisor()
    }

    /// Returns the logical block of a plane that has had an old block for the longest time.
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

    /// Returns the number of logical blocks of a plane that have an old block.
    pub fn pairs_of(&self, plane: PlaneId) -> usize {
        self.pairs[plane.index()].iter().filter(|&&(number, turn)| self.is_pair(number, turn)).count()
    }

    /// Adds a logical block with an old block, after all others of its plane.
    pub(super) fn add_pair(&mut self, plane: PlaneId, number: u32) {
        self.pairs[plane.index()].push_back((number, self.logical[number as usize].turn));
    }

    /// Gives a logical block a new current block. The previous one becomes old.
    pub(super) fn renew(&mut self, number: u32, block: BlockId, plane: PlaneId) {
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
        // Remove entries without an old block before the vector would grow.
        if pairs.len() == pairs.capacity() {
            pairs.retain(|&(number, turn)| self.is_pair(number, turn));
        }
        pairs.push_back((number, turn));
        self.pairs[plane.index()] = pairs;
    }
}

/// Saved states.
impl BlockMap {
    /// Writes the state of all logical blocks. `turn` is left out: each logical block has at most one entry in `pairs`
    /// that counts.
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

    /// Reads what [`BlockMap::save`] wrote, into a new map. `home` is the plane of a logical block, and a program has
    /// `program` units. `take` is called for each block, with the number of its programmed units. It returns `true` if
    /// the block can belong to the logical block.
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
