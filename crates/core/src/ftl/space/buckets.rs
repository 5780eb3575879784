//! Closed blocks in lists by their valid units, for policies that compare the oldest block of each list.

use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, PlaneId};
use crate::sim::memory::prefetch;

/// Lists of each plane, one for each number of valid units, in the order of the last change.
///
/// The lists are circular and doubly linked, over one array: nodes `0..blocks` are the blocks, the rest are the heads.
/// Linking and unlinking have no branches, because heads are nodes.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    nodes: Vec<Node>,
    /// Lower bound of the fewest valid units of any block, indexed by plane.
    least: Vec<u32>,
    blocks: u32,
    /// Valid units of a full block.
    units: u32,
}

/// Neighbors of a node in its list.
#[derive(Clone, Copy, Debug)]
struct Node {
    next: u32,
    prev: u32,
}

impl Buckets {
    /// Creates empty lists. Each block holds `units` units of data.
    pub(super) fn new(device: &DeviceConfig, units: u32) -> Buckets {
        let (blocks, planes) = (device.total_blocks(), device.total_planes());
        let nodes = blocks + planes * (units + 1);
        let nodes = (0..nodes).map(|node| Node { next: node, prev: node }).collect();
        Buckets { nodes, least: vec![units; planes as usize], blocks, units }
    }

    #[inline]
    fn head(&self, plane: PlaneId, valid: u32) -> usize {
        (self.blocks + plane.0 * (self.units + 1) + valid) as usize
    }

    /// Removes a block from its list.
    #[inline]
    pub(super) fn remove(&mut self, block: BlockId) {
        let Node { next, prev } = self.nodes[block.index()];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
    }

    /// Appends a block to its list.
    #[inline]
    pub(super) fn insert(&mut self, plane: PlaneId, block: BlockId, valid: u32) {
        let head = self.head(plane, valid);
        let last = self.nodes[head].prev;
        self.nodes[last as usize].next = block.0;
        self.nodes[block.index()] = Node { next: head as u32, prev: last };
        self.nodes[head].prev = block.0;
        let least = &mut self.least[plane.index()];
        *least = (*least).min(valid);
    }

    /// Returns `true` if a block is in a list.
    pub(super) fn contains(&self, block: BlockId) -> bool {
        // A block that was never in a list is its own neighbor.
        let prev = self.nodes[block.index()].prev;
        prev != block.0 && self.nodes[prev as usize].next == block.0
    }

    /// Prefetches the list nodes that [`Buckets::remove`] and [`Buckets::insert`] touch first.
    #[inline]
    pub(super) fn prefetch(&self, plane: PlaneId, block: BlockId, valid: u32) {
        prefetch(&self.nodes, block.index());
        prefetch(&self.nodes, self.head(plane, valid));
    }

    /// Raises the lower bound of valid units in a plane to the fewest of any block.
    pub(super) fn settle(&mut self, plane: PlaneId) {
        self.least[plane.index()] = self.fewest(plane).unwrap_or(self.units);
    }

    /// Returns the block that has had exactly `valid` units for the longest time.
    pub(super) fn oldest_with(&self, plane: PlaneId, valid: u32) -> Option<BlockId> {
        let first = self.nodes[self.head(plane, valid)].next;
        (first < self.blocks).then_some(BlockId(first))
    }

    /// Returns the fewest valid units of any block of a plane, if some block has an invalid one.
    pub(super) fn fewest(&self, plane: PlaneId) -> Option<u32> {
        let least = self.least[plane.index()];
        (least..self.units).find(|&valid| self.oldest_with(plane, valid).is_some())
    }

    /// Returns the blocks of a plane by their valid units.
    pub(super) fn of(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> {
        (0..=self.units).flat_map(move |valid| self.all_with(plane, valid))
    }

    /// Returns the blocks that have exactly `valid` units, in the order of the list.
    pub(super) fn all_with(&self, plane: PlaneId, valid: u32) -> impl Iterator<Item = BlockId> {
        let head = self.head(plane, valid) as u32;
        let mut node = self.nodes[head as usize].next;
        std::iter::from_fn(move || {
            let block = BlockId(node);
            (node != head).then(|| {
                node = self.nodes[block.index()].next;
                block
            })
        })
    }
}
