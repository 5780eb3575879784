//! BPLRU: evicts whole blocks, so that block-mapped flash merges each of them at once.

use super::EvictionPolicy;
use super::by_block::ByBlock;
use crate::cache::list::{Links, List};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::Lpn;

/// Options of BPLRU.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BplruConfig {
    /// True if the other units of the block are read from flash and written with it.
    pub padding: bool,
    /// True if a block that was written sequentially, as a whole, is evicted next.
    pub compensation: bool,
}

impl Default for BplruConfig {
    fn default() -> Self {
        BplruConfig { padding: true, compensation: true }
    }
}

/// LRU list of blocks, ordered by their last write (Kim and Ahn, "BPLRU: a buffer management scheme for improving
/// random writes in flash storage", FAST 2008, Sections 3.1 to 3.3).
#[derive(Clone, Debug)]
pub struct Bplru {
    padding: bool,
    compensation: bool,
    units: ByBlock,
    sectors_per_unit: u32,
    /// Blocks from the most to the least recently written.
    list: List,
    links: Links,
    /// Sector that continues the sequential write of a block, or `OUT_OF_ORDER`. Indexed by block.
    next: Vec<u32>,
}

impl Policy for Bplru {
    type Config = BplruConfig;
    fn new(options: &BplruConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let units = ByBlock::new(device);
        let blocks = units.blocks();
        Ok(Bplru {
            padding: options.padding,
            compensation: options.compensation,
            units,
            sectors_per_unit: device.sectors_per_unit(),
            list: List::default(),
            links: Links::new(blocks),
            next: vec![0; blocks as usize],
        })
    }
}

/// Value of `Bplru::next` for a block that was not written in order.
const OUT_OF_ORDER: u32 = u32::MAX;

impl EvictionPolicy for Bplru {
    fn on_insert(&mut self, entry: u32, lpn: Lpn, _: bool, _: bool) {
        let block = self.units.insert(entry, lpn);
        if self.units.count(block) == 1 {
            self.next[block as usize] = 0;
            self.list.push_first(&mut self.links, block);
        }
    }

    fn on_access(&mut self, _: u32, _: bool, _: bool) {}

    fn on_sectors(&mut self, entry: u32, first: u32, end: u32) {
        let block = self.units.block_of(entry);
        self.list.move_first(&mut self.links, block);
        let unit = self.units.offset(entry) * self.sectors_per_unit;
        let next = &mut self.next[block as usize];
        *next = if *next == unit + first { unit + end } else { OUT_OF_ORDER };
        if *next == self.units.per_block() * self.sectors_per_unit && self.compensation {
            // A block that was written sequentially is unlikely to be written again soon.
            self.list.remove(&mut self.links, block);
            self.list.push_last(&mut self.links, block);
        }
    }

    fn on_clean(&mut self, _: u32) {}

    fn on_remove(&mut self, entry: u32) {
        let block = self.units.remove(entry);
        if self.units.count(block) == 0 {
            self.list.remove(&mut self.links, block);
        }
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        if let Some(block) = self.list.pop_last(&mut self.links) {
            self.units.take(block, victims);
        }
    }

    fn padded_block(&self) -> Option<u32> {
        self.padding.then(|| self.units.per_block())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::{Step, play};

    // Blocks have four units.

    #[test]
    fn the_least_recently_written_block_is_evicted_whole() {
        use Step::{Read, Take, Write};
        // Section 3.1: the least recently written block is evicted, with all of its units.
        let steps = [Write(0), Write(1), Write(19), Write(5), Write(14), Write(12), Take, Take, Write(20), Take];
        assert_eq!(play("bplru", &steps), [vec![0, 1], vec![19], vec![5]]);
        // A write of any unit makes its block the most recent one. A read does not, because this is a write buffer.
        let steps = [Write(0), Write(5), Write(9), Write(1), Read(5), Take, Take, Take];
        assert_eq!(play("bplru", &steps), [vec![5], vec![9], vec![0, 1]]);
    }

    #[test]
    fn a_block_written_sequentially_is_evicted_next() {
        use Step::{Take, Write, WritePart};
        // Section 3.3: a block that was written from its first unit to its last is evicted before older blocks.
        let steps = [Write(9), Write(4), Write(5), Write(6), Write(7), Take, Take];
        assert_eq!(play("bplru", &steps), [vec![4, 5, 6, 7], vec![9]]);
        assert_eq!(play("{ bplru = { compensation = false } }", &steps), [vec![9], vec![4, 5, 6, 7]]);
        let steps = [Write(9), Write(4), Write(6), Write(5), Write(7), Take, Take];
        assert_eq!(play("bplru", &steps), [vec![9], vec![4, 5, 6, 7]], "not in order");
        let steps = [Write(9), Write(4), Write(5), Write(5), Write(6), Write(7), Take];
        assert_eq!(play("bplru", &steps), [vec![9]], "a unit written twice");
        // Requests may split units, which have four sectors here. The block still counts as written in order.
        let cut = |parts: &[Step]| {
            let steps = [&[Write(9), Write(4), WritePart(5, 0, 2)], parts, &[Write(7), Take]].concat();
            play("bplru", &steps)[0].len()
        };
        let whole = 4;
        let older = 1;
        assert_eq!(cut(&[WritePart(5, 2, 4), WritePart(6, 0, 1), WritePart(6, 1, 4)]), whole);
        assert_eq!(cut(&[WritePart(5, 2, 4), WritePart(6, 2, 4), WritePart(6, 0, 2)]), older, "not in order");
        assert_eq!(cut(&[WritePart(5, 0, 2), WritePart(5, 2, 4), Write(6)]), older, "two sectors written twice");
        assert_eq!(cut(&[WritePart(5, 1, 4), Write(6)]), older, "a sector written twice");
        assert_eq!(cut(&[WritePart(5, 3, 4), Write(6)]), older, "a sector is missing");
    }
}
