//! The free blocks of each plane, in the order in which they are opened.

use std::collections::BTreeSet;

use crate::sim::id::{BlockId, PlaneId};

/// Order in which free blocks are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FreeOrder {
    /// The block that was erased first.
    #[default]
    Oldest,
    /// The block with the fewest erases; of several, the one that was erased first.
    FewestErases,
}

/// First and last free block of a plane, and their number.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: u32,
    last: u32,
    count: u32,
}

/// The free blocks of each plane.
#[derive(Clone, Debug)]
pub(super) struct FreeBlocks {
    ends: Vec<Ends>,
    order: Order,
    /// Number of changes so far.
    pub(super) changes: u64,
}

#[derive(Clone, Debug)]
enum Order {
    /// A linked list in each plane: the block after each block.
    Oldest(Vec<u32>),
    /// Erases of the block, number of the insertion, and block, for each plane.
    FewestErases { planes: Vec<BTreeSet<(u32, u64, u32)>>, insertions: u64 },
}

impl FreeBlocks {
    /// Creates planes without free blocks.
    pub(super) fn new(planes: u32, blocks_per_plane: u32, order: FreeOrder) -> FreeBlocks {
        let order = match order {
            FreeOrder::Oldest => Order::Oldest(vec![0; (planes * blocks_per_plane) as usize]),
            FreeOrder::FewestErases => {
                Order::FewestErases { planes: vec![BTreeSet::new(); planes as usize], insertions: 0 }
            }
        };
        FreeBlocks { ends: vec![Ends::default(); planes as usize], order, changes: 0 }
    }

    /// Returns the number of free blocks of a plane.
    #[inline]
    pub(super) fn count(&self, plane: PlaneId) -> u32 {
        self.ends[plane.index()].count
    }

    /// Returns the block that is opened next, if one is free.
    #[inline]
    pub(super) fn first(&self, plane: PlaneId) -> Option<BlockId> {
        let ends = &self.ends[plane.index()];
        (ends.count > 0).then_some(BlockId(ends.first))
    }

    /// Adds a block that has been erased `erases` times.
    pub(super) fn add(&mut self, plane: PlaneId, block: BlockId, erases: u32) {
        let ends = &mut self.ends[plane.index()];
        match &mut self.order {
            Order::Oldest(next) => {
                if ends.count == 0 {
                    ends.first = block.0;
                } else {
                    next[ends.last as usize] = block.0;
                }
                ends.last = block.0;
            }
            Order::FewestErases { planes, insertions } => {
                let set = &mut planes[plane.index()];
                set.insert((erases, *insertions, block.0));
                *insertions += 1;
                ends.first = set.first().map_or(0, |&(_, _, first)| first);
            }
        }
        ends.count += 1;
        self.changes += 1;
    }

    /// Removes and returns the block at a position of the order. There is one.
    #[inline]
    pub(super) fn take(&mut self, plane: PlaneId, position: usize) -> BlockId {
        let ends = &mut self.ends[plane.index()];
        ends.count -= 1;
        self.changes += 1;
        match &mut self.order {
            Order::Oldest(next) if position == 0 => {
                let after = next[ends.first as usize];
                BlockId(std::mem::replace(&mut ends.first, after))
            }
            Order::Oldest(next) => {
                let before = (1..position).fold(ends.first, |block, _| next[block as usize]);
                let block = next[before as usize];
                next[before as usize] = next[block as usize];
                if ends.last == block {
                    ends.last = before;
                }
                BlockId(block)
            }
            Order::FewestErases { planes, .. } => {
                let set = &mut planes[plane.index()];
                let taken = set.iter().nth(position).copied();
                let taken = taken.unwrap_or_else(|| unreachable!("a plane has as many free blocks as it counts"));
                set.remove(&taken);
                ends.first = set.first().map_or(0, |&(_, _, first)| first);
                BlockId(taken.2)
            }
        }
    }

    /// Removes all blocks of a plane.
    pub(super) fn clear(&mut self, plane: PlaneId) {
        self.ends[plane.index()] = Ends::default();
        self.changes += 1;
        if let Order::FewestErases { planes, .. } = &mut self.order {
            planes[plane.index()].clear();
        }
    }

    /// Returns the free blocks of a plane in their order.
    pub(super) fn of(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> + '_ {
        let Ends { first, count, .. } = self.ends[plane.index()];
        let (next, set) = match &self.order {
            Order::Oldest(next) => (Some(next), None),
            Order::FewestErases { planes, .. } => (None, Some(&planes[plane.index()])),
        };
        let listed = next.map(|next| std::iter::successors(Some(first), |&block| Some(next[block as usize])));
        let listed = listed.into_iter().flatten().take(count as usize);
        listed.chain(set.into_iter().flatten().map(|&(_, _, block)| block)).map(BlockId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANE: PlaneId = PlaneId(1);

    fn blocks(order: FreeOrder) -> FreeBlocks {
        let mut free = FreeBlocks::new(2, 4, order);
        for (block, erases) in [(4, 2), (5, 1), (6, 2), (7, 1)] {
            free.add(PLANE, BlockId(block), erases);
        }
        free
    }

    fn drain(free: &mut FreeBlocks) -> Vec<u32> {
        (0..free.count(PLANE)).map(|_| free.take(PLANE, 0).0).collect()
    }

    #[test]
    fn blocks_are_taken_in_their_order() {
        assert_eq!(drain(&mut blocks(FreeOrder::Oldest)), [4, 5, 6, 7]);
        assert_eq!(drain(&mut blocks(FreeOrder::FewestErases)), [5, 7, 4, 6]);
    }

    #[test]
    fn a_block_at_any_position_can_be_taken() {
        for order in [FreeOrder::Oldest, FreeOrder::FewestErases] {
            for position in 0..4 {
                let mut free = blocks(order);
                let mut left: Vec<u32> = free.of(PLANE).map(|block| block.0).collect();
                assert_eq!(free.take(PLANE, position).0, left.remove(position));
                // A block that is added after the last was taken follows the others of its erases.
                free.add(PLANE, BlockId(0), 9);
                left.push(0);
                assert_eq!(free.of(PLANE).map(|block| block.0).collect::<Vec<_>>(), left, "{order:?}, {position}");
                assert_eq!(free.first(PLANE).map(|block| block.0), Some(left[0]));
                assert_eq!(drain(&mut free), left);
                assert_eq!(free.first(PLANE), None);
            }
        }
    }
}
