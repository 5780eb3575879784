//! Buffered units by logical block, for policies that evict whole blocks.

use crate::cache::list::{Links, List, NONE};
use crate::config::DeviceConfig;
use crate::sim::id::Lpn;
use crate::sim::memory::Divider;

/// Buffered units of each logical block. A logical block has as many mapping units as a flash block has data units.
#[derive(Clone, Debug)]
pub struct ByBlock {
    per_block: Divider,
    /// Buffered units of the block, and their number. Indexed by block.
    blocks: Vec<(List, u32)>,
    links: Links,
    /// Logical unit, indexed by entry.
    lpns: Vec<u32>,
}

impl ByBlock {
    /// Creates an index without units.
    pub fn new(device: &DeviceConfig) -> ByBlock {
        let per_block = device.data_units_per_block();
        let blocks = device.logical_units().div_ceil(u64::from(per_block));
        ByBlock {
            per_block: Divider::new(per_block),
            blocks: vec![(List::default(), 0); blocks as usize],
            links: Links::new(device.buffer_units()),
            lpns: vec![NONE; device.buffer_units() as usize],
        }
    }

    /// Returns the number of logical blocks.
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns the number of units in a logical block.
    pub fn per_block(&self) -> u32 {
        self.per_block.divisor()
    }

    /// Returns the block of a buffered unit.
    pub fn block_of(&self, entry: u32) -> u32 {
        self.per_block.divide(self.lpns[entry as usize])
    }

    /// Returns the offset of a buffered unit in its block.
    pub fn offset(&self, entry: u32) -> u32 {
        self.per_block.divide_with_rest(self.lpns[entry as usize]).1
    }

    /// Returns the number of buffered units of a block.
    pub fn count(&self, block: u32) -> u32 {
        self.blocks[block as usize].1
    }

    /// Adds a unit. Returns its block.
    pub fn insert(&mut self, entry: u32, lpn: Lpn) -> u32 {
        self.lpns[entry as usize] = lpn.0;
        let block = self.block_of(entry);
        let (list, count) = &mut self.blocks[block as usize];
        list.push_last(&mut self.links, entry);
        *count += 1;
        block
    }

    /// Removes a unit. Returns its block.
    pub fn remove(&mut self, entry: u32) -> u32 {
        let block = self.block_of(entry);
        let (list, count) = &mut self.blocks[block as usize];
        list.remove(&mut self.links, entry);
        *count -= 1;
        block
    }

    /// Moves all units of a block to `units`, in the order of their addresses.
    pub fn take(&mut self, block: u32, units: &mut Vec<u32>) {
        let from = units.len();
        let (list, count) = &mut self.blocks[block as usize];
        while let Some(entry) = list.pop_first(&mut self.links) {
            units.push(entry);
        }
        *count = 0;
        units[from..].sort_unstable_by_key(|&entry| self.lpns[entry as usize]);
    }
}
