//! Candidates by their number of valid units: every change and the choice of the least take O(1).

use super::Candidates;
use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, PlaneId};
use crate::sim::memory::{Divider, prefetch};
use crate::state::{Reader, StateError, Writer};

/// For each plane and each number of valid units, a list of the candidates that have it, oldest entry first.
///
/// Circular doubly linked lists over one array: nodes `0..blocks` are the blocks, the rest are the heads. With heads
/// as nodes, linking and unlinking have no branches.
#[derive(Clone, Debug)]
pub struct Buckets {
    nodes: Vec<Node>,
    /// A lower bound of the fewest valid units of any candidate, by plane.
    least: Vec<u32>,
    blocks: u32,
    blocks_per_plane: Divider,
    units: u32,
}

/// Neighbours of a node in its list.
#[derive(Clone, Copy, Debug)]
struct Node {
    next: u32,
    prev: u32,
}

impl Buckets {
    /// No candidates.
    pub fn new(device: &DeviceConfig) -> Buckets {
        let (blocks, planes, units) = (device.total_blocks(), device.total_planes(), device.data_units_per_block());
        let nodes = blocks + planes * (units + 1);
        Buckets {
            nodes: (0..nodes).map(|node| Node { next: node, prev: node }).collect(),
            least: vec![units; planes as usize],
            blocks,
            blocks_per_plane: Divider::new(device.geometry.blocks),
            units,
        }
    }

    fn head(&self, plane: u32, valid: u32) -> usize {
        (self.blocks + plane * (self.units + 1) + valid) as usize
    }

    fn plane(&self, block: BlockId) -> u32 {
        self.blocks_per_plane.divide(block.0)
    }

    fn unlink(&mut self, block: BlockId) {
        let Node { next, prev } = self.nodes[block.index()];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
    }

    /// Adds a candidate behind those with as many valid units.
    pub fn insert(&mut self, block: BlockId, valid: u32) {
        debug_assert!(valid <= self.units);
        let plane = self.plane(block);
        let head = self.head(plane, valid);
        let last = self.nodes[head].prev;
        self.nodes[last as usize].next = block.0;
        self.nodes[block.index()] = Node { next: head as u32, prev: last };
        self.nodes[head].prev = block.0;
        let least = &mut self.least[plane as usize];
        *least = (*least).min(valid);
    }

    /// Moves a candidate to the list of those with `valid` units.
    pub fn update(&mut self, block: BlockId, valid: u32) {
        self.unlink(block);
        self.insert(block, valid);
    }

    /// Asks for what [`Buckets::update`] of these touches first, ahead of time.
    #[inline]
    pub fn prefetch(&self, block: BlockId, valid: u32) {
        prefetch(&self.nodes, block.index());
        prefetch(&self.nodes, self.head(self.plane(block), valid));
    }

    /// Takes a candidate out.
    pub fn remove(&mut self, block: BlockId) {
        self.unlink(block);
    }

    /// The candidate of `plane` that has had exactly `valid` units for the longest time.
    pub fn oldest_with(&self, plane: PlaneId, valid: u32) -> Option<BlockId> {
        let first = self.nodes[self.head(plane.0, valid)].next;
        (first < self.blocks).then_some(BlockId(first))
    }

    /// The fewest valid units of any candidate of `plane`, if some candidate has less than a full block.
    ///
    /// Amortised O(1): the bound falls by one at most with an update, or to a closed block's count.
    pub fn least(&mut self, plane: PlaneId) -> Option<u32> {
        let mut valid = self.least[plane.index()];
        while valid < self.units && self.oldest_with(plane, valid).is_none() {
            valid += 1;
        }
        self.least[plane.index()] = valid;
        (valid < self.units).then_some(valid)
    }

    /// All candidates of `plane`: those with fewer valid units first, and of equally many the one that has had so few
    /// for the longest time.
    pub fn all(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> {
        (0..=self.units).flat_map(move |valid| {
            let head = self.head(plane.0, valid) as u32;
            let mut node = self.nodes[head as usize].next;
            std::iter::from_fn(move || {
                let block = BlockId(node);
                (node != head).then(|| {
                    node = self.nodes[block.index()].next;
                    block
                })
            })
        })
    }

    /// Valid units of a full block.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Writes the candidates list by list, oldest entry first, and of each what `more` adds.
    pub fn save(
        &self,
        out: &mut Writer,
        more: impl Fn(&mut Writer, BlockId) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        for head in self.blocks..self.nodes.len() as u32 {
            let mut block = self.nodes[head as usize].next;
            while block != head {
                out.u32(block)?;
                more(out, BlockId(block))?;
                block = self.nodes[block as usize].next;
            }
        }
        Ok(())
    }

    /// Reads what [`Buckets::save`] wrote.
    pub fn load(
        &mut self,
        input: &mut Reader,
        closed: Candidates,
        mut more: impl FnMut(&mut Reader, BlockId) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        closed.read(input, |input, block, valid| {
            self.insert(block, valid);
            more(input, block)
        })
    }
}
