//! The units of the buffer by the block of addresses that they lie in, for policies that evict whole blocks.

use crate::cache::list::{Links, List, NONE};
use crate::config::DeviceConfig;
use crate::sim::id::Lpn;
use crate::sim::memory::Divider;

/// Which units of each logical block are in the buffer. A logical block has as many mapping units as a flash block.
#[derive(Clone, Debug)]
pub struct ByBlock {
    per_block: Divider,
    /// By block: its units, and how many they are.
    blocks: Vec<(List, u32)>,
    links: Links,
    /// By unit.
    lpns: Vec<u32>,
}

impl ByBlock {
    /// No unit.
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

    /// Blocks of the address space.
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Units of a block.
    pub fn per_block(&self) -> u32 {
        self.per_block.divisor()
    }

    /// The block of a unit in the buffer.
    pub fn block_of(&self, entry: u32) -> u32 {
        self.per_block.divide(self.lpns[entry as usize])
    }

    /// Where in its block a unit in the buffer lies.
    pub fn offset(&self, entry: u32) -> u32 {
        self.per_block.divide_with_rest(self.lpns[entry as usize]).1
    }

    /// Units of a block that are in the buffer.
    pub fn count(&self, block: u32) -> u32 {
        self.blocks[block as usize].1
    }

    /// A unit comes; returns its block.
    pub fn insert(&mut self, entry: u32, lpn: Lpn) -> u32 {
        self.lpns[entry as usize] = lpn.0;
        let block = self.block_of(entry);
        let (list, count) = &mut self.blocks[block as usize];
        list.push_last(&mut self.links, entry);
        *count += 1;
        block
    }

    /// A unit leaves; returns its block.
    pub fn remove(&mut self, entry: u32) -> u32 {
        let block = self.block_of(entry);
        let (list, count) = &mut self.blocks[block as usize];
        list.remove(&mut self.links, entry);
        *count -= 1;
        block
    }

    /// All units of a block leave, in the order of their addresses.
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
