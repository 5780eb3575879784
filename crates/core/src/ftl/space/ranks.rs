//! Closed blocks by rank, for policies that take the first one.

use crate::sim::id::{BlockId, PlaneId};
use crate::sim::memory::prefetch;

/// Number of low bits of a rank that hold the number of a change. The bits above them hold the number of valid units.
/// Changes are counted up to 2^47.
const CHANGES: u32 = 47;

/// Returns the rank of a block in the order of `greedy`. The block has had `valid` units since a change.
#[inline]
pub(super) fn rank(valid: u32, change: u64) -> u64 {
    u64::from(valid) << CHANGES | change
}

/// Rank of a block that is not closed. Later than any other.
const NONE: u64 = u64::MAX;

/// Binary logarithm of the number of ranks in a group.
const GROUP: u32 = 4;

/// Maximum number of minima that are searched without groups of their own.
const MAX_SEARCHED: u32 = 32;

/// Ranks of the closed blocks of each plane.
///
/// The minimum of each group of 16 ranks is kept, and the minimum of each group of 16 minima, until few are left. An
/// overwrite is a store, and in most cases one comparison. Finding the first block takes O(log n). A search of all
/// ranks would cost more than linked lists if a plane has more than 256 blocks.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    /// Ranks of the blocks, plane by plane, and [`NONE`] after the blocks of a plane up to a whole number of groups.
    ranks: Vec<u64>,
    /// Minima of the groups of `ranks`.
    groups: Vec<u64>,
    /// Minima of groups of the level below, level by level. The first level is above `groups`.
    upper: Vec<Vec<u64>>,
    /// Number of minima of a plane at the last level.
    top: usize,
    /// Number of ranks after the blocks of a plane.
    unused: u32,
    /// Number of insertions.
    changes: u64,
}

/// Numbers of ranks and minima of a plane.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Number of minima at the last level.
    top: u32,
    /// Number of levels of minima.
    levels: u32,
}

impl Shape {
    fn new(blocks: u32) -> Shape {
        let up = |below: u32| below.div_ceil(1 << GROUP);
        let (mut top, mut levels) = (up(blocks), 1);
        while top > MAX_SEARCHED {
            (top, levels) = (up(top), levels + 1);
        }
        Shape { top, levels }
    }

    /// Returns the number of ranks, and then the number of minima at each level.
    fn numbers(self) -> impl Iterator<Item = u32> {
        (0..=self.levels).rev().map(move |below| self.top << (GROUP * below))
    }
}

fn least(ranks: &[u64]) -> u64 {
    ranks.iter().copied().fold(NONE, u64::min)
}

impl Ranks {
    /// Creates the ranks of `planes` planes with `blocks` blocks each. No block is closed.
    pub(super) fn new(planes: u32, blocks: u32) -> Ranks {
        let shape = Shape::new(blocks);
        let mut levels = shape.numbers().map(|number| vec![NONE; number as usize * planes as usize]);
        let (ranks, groups) = (levels.next().unwrap_or_default(), levels.next().unwrap_or_default());
        let unused = (ranks.len() / planes as usize) as u32 - blocks;
        Ranks { ranks, groups, upper: levels.collect(), top: shape.top as usize, unused, changes: 0 }
    }

    /// Returns the size of the ranks in bytes.
    pub(crate) fn bytes(planes: u32, blocks: u32) -> u64 {
        8 * u64::from(planes) * Shape::new(blocks).numbers().map(u64::from).sum::<u64>()
    }

    /// Returns the position of a block among the ranks.
    #[inline]
    fn position(&self, plane: PlaneId, block: BlockId) -> usize {
        (block.0 + plane.0 * self.unused) as usize
    }

    /// Returns the block of a plane at a position.
    fn block(&self, plane: PlaneId, at: usize) -> BlockId {
        BlockId(at as u32 - plane.0 * self.unused)
    }

    /// Gives a block the last rank among the blocks with `valid` units. A block that was inserted before has had more.
    #[inline]
    pub(super) fn insert(&mut self, plane: PlaneId, block: BlockId, valid: u32) {
        self.changes += 1;
        let rank = rank(valid, self.changes);
        let at = self.position(plane, block);
        debug_assert!(rank < self.ranks[at], "a closed block has lost valid units");
        self.ranks[at] = rank;
        if rank < self.groups[at >> GROUP] {
            self.lower(at >> GROUP, rank);
        }
    }

    /// Lowers the minimum of a group, and the minima of larger groups with this one.
    #[inline(never)]
    fn lower(&mut self, mut at: usize, rank: u64) {
        self.groups[at] = rank;
        for minima in &mut self.upper {
            at >>= GROUP;
            if minima[at] < rank {
                break;
            }
            minima[at] = rank;
        }
    }

    /// Removes a block.
    pub(super) fn remove(&mut self, plane: PlaneId, block: BlockId) {
        let mut at = self.position(plane, block);
        let removed = std::mem::replace(&mut self.ranks[at], NONE);
        let mut below = &self.ranks;
        for minima in std::iter::once(&mut self.groups).chain(&mut self.upper) {
            at >>= GROUP;
            if minima[at] < removed {
                break;
            }
            minima[at] = least(&below[at << GROUP..(at + 1) << GROUP]);
            below = minima;
        }
    }

    /// Returns `true` if a block of a plane has a rank.
    pub(super) fn contains(&self, plane: PlaneId, block: BlockId) -> bool {
        self.ranks[self.position(plane, block)] != NONE
    }

    /// Prefetches what [`Ranks::insert`] touches first.
    #[inline]
    pub(super) fn prefetch(&self, plane: PlaneId, block: BlockId) {
        let at = self.position(plane, block);
        prefetch(&self.ranks, at);
        prefetch(&self.groups, at >> GROUP);
    }

    /// Returns the closed block of a plane with the lowest rank.
    pub(super) fn first(&self, plane: PlaneId) -> Option<BlockId> {
        let mut range = plane.index() * self.top..(plane.index() + 1) * self.top;
        let first = least(&self.upper.last().unwrap_or(&self.groups)[range.clone()]);
        if first == NONE {
            return None;
        }
        for minima in self.upper.iter().rev().chain([&self.groups]) {
            let at = range.start + minima[range].iter().position(|&rank| rank == first)?;
            range = at << GROUP..(at + 1) << GROUP;
        }
        let at = range.start + self.ranks[range].iter().position(|&rank| rank == first)?;
        Some(self.block(plane, at))
    }

    /// Returns the closed blocks of a plane by rank.
    pub(super) fn of(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> + use<> {
        let stride = self.top << (GROUP as usize * (self.upper.len() + 1));
        let first = plane.index() * stride;
        let ranks = (first..).zip(&self.ranks[first..first + stride]);
        let mut closed: Vec<(u64, BlockId)> =
            ranks.filter(|&(_, &rank)| rank < NONE).map(|(at, &rank)| (rank, self.block(plane, at))).collect();
        closed.sort_unstable_by_key(|&(rank, _)| rank);
        closed.into_iter().map(|(_, block)| block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    /// Compares with a list of closed blocks, each with its valid units, in the order of their changes.
    #[test]
    fn agrees_with_a_sorted_list() {
        const PLANES: u32 = 3;
        let mut rng = Rng::new(1, "ranks");
        for blocks in [1, 16, 31, 32, 33, 256, 513, 910, 8193] {
            let mut ranks = Ranks::new(PLANES, blocks);
            let mut model: Vec<(BlockId, u32)> = Vec::new();
            for step in 0..3000 {
                let block = BlockId(rng.below(u64::from(blocks.min(200) * PLANES)) as u32 * blocks.div_ceil(200));
                let block = BlockId(block.0.min(PLANES * blocks - 1));
                let plane = PlaneId(block.0 / blocks);
                match model.iter().position(|&(of, _)| of == block) {
                    None => {
                        let valid = rng.below(4) as u32;
                        ranks.insert(plane, block, valid);
                        model.push((block, valid));
                    }
                    Some(position) if model[position].1 == 0 || rng.below(3) == 0 => {
                        ranks.remove(plane, block);
                        model.remove(position);
                    }
                    Some(position) => {
                        let (_, valid) = model.remove(position);
                        ranks.insert(plane, block, valid - 1);
                        model.push((block, valid - 1));
                    }
                }
                let mut of_plane: Vec<(BlockId, u32)> =
                    model.iter().copied().filter(|&(of, _)| of.0 / blocks == plane.0).collect();
                of_plane.sort_by_key(|&(_, valid)| valid);
                assert_eq!(ranks.first(plane), of_plane.first().map(|&(of, _)| of), "{blocks} blocks, step {step}");
                if step % 100 == 0 {
                    assert!(ranks.of(plane).eq(of_plane.iter().map(|&(of, _)| of)), "{blocks} blocks, step {step}");
                }
            }
        }
    }

    #[test]
    fn counts_its_memory() {
        for blocks in [1, 16, 31, 32, 33, 256, 910, 8193] {
            let ranks = Ranks::new(3, blocks);
            let numbers = ranks.ranks.len() + ranks.groups.len() + ranks.upper.iter().map(Vec::len).sum::<usize>();
            assert_eq!(Ranks::bytes(3, blocks), 8 * numbers as u64);
        }
    }
}
