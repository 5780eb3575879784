//! FAB: evicts the block with the most buffered units.

use super::EvictionPolicy;
use super::by_block::ByBlock;
use crate::cache::list::{Links, List};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::Lpn;

/// Options of FAB.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabConfig {}

/// Blocks by their number of buffered units (Jo et al., "FAB: flash-aware buffer management policy for portable media
/// players", IEEE Transactions on Consumer Electronics 52(2), 2006). Of the blocks with the most units, the least
/// recently used one is evicted.
#[derive(Clone, Debug)]
pub struct Fab {
    units: ByBlock,
    /// Blocks from the most to the least recently used, indexed by their number of units.
    classes: Vec<List>,
    links: Links,
    /// Upper bound of the number of units of any block.
    fullest: u32,
}

impl Policy for Fab {
    type Config = FabConfig;
    fn new(_: &FabConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let units = ByBlock::new(device);
        Ok(Fab {
            classes: vec![List::default(); units.per_block() as usize + 1],
            links: Links::new(units.blocks()),
            units,
            fullest: 0,
        })
    }
}

impl Fab {
    /// Makes a block the most recently used one of its class. It had `before` units.
    fn reclass(&mut self, block: u32, before: u32) {
        if before > 0 {
            self.classes[before as usize].remove(&mut self.links, block);
        }
        let count = self.units.count(block);
        if count > 0 {
            self.classes[count as usize].push_first(&mut self.links, block);
            self.fullest = self.fullest.max(count);
        }
    }
}

impl EvictionPolicy for Fab {
    fn on_insert(&mut self, entry: u32, lpn: Lpn, _: bool, _: bool) {
        let block = self.units.insert(entry, lpn);
        self.reclass(block, self.units.count(block) - 1);
    }

    fn on_access(&mut self, entry: u32, _: bool, _: bool) {
        let block = self.units.block_of(entry);
        self.reclass(block, self.units.count(block));
    }

    fn on_clean(&mut self, _: u32) {}

    fn on_remove(&mut self, entry: u32) {
        let block = self.units.remove(entry);
        self.reclass(block, self.units.count(block) + 1);
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        while self.fullest > 0 {
            if let Some(block) = self.classes[self.fullest as usize].pop_last(&mut self.links) {
                return self.units.take(block, victims);
            }
            self.fullest -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::{Step, play};

    #[test]
    fn the_fullest_block_is_evicted_and_of_several_the_least_recently_used() {
        use Step::{Read, Take, Write};
        // Blocks have four units. Block 1 has three buffered units, blocks 0 and 2 have two each, and 0 was used before
        // 2.
        let list = [Write(0), Write(4), Write(8), Write(5), Write(1), Write(9), Write(6), Write(13)];
        let mut steps = list.to_vec();
        steps.extend([Take, Take, Take, Take, Take]);
        assert_eq!(play("fab", &steps), [vec![4, 5, 6], vec![0, 1], vec![8, 9], vec![13], vec![]]);
        // A read of block 0 makes it more recent than block 2.
        let mut steps = list.to_vec();
        steps.extend([Read(0), Take, Take]);
        assert_eq!(play("fab", &steps), [vec![4, 5, 6], vec![8, 9]]);
    }
}
