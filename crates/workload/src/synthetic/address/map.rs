//! Map of used blocks: fio's random map, for jobs with several sizes.

/// Bits for the blocks of a region. A bit of a level above the first is set if all 64 bits of a word below it are.
#[derive(Clone, Debug)]
pub struct Map {
    levels: Vec<Vec<u64>>,
    blocks: u64,
}

impl Map {
    /// Maximum number of blocks, for which a map takes 33 MiB.
    pub const MAX_BLOCKS: u64 = 1 << 28;

    /// Creates a map of `blocks` unused blocks, at least 1.
    pub fn new(blocks: u64) -> Map {
        let mut map = Map { levels: Vec::new(), blocks };
        map.clear();
        map
    }

    /// Marks all blocks as unused.
    pub fn clear(&mut self) {
        self.levels.clear();
        let mut bits = self.blocks;
        loop {
            let mut words = vec![0u64; bits.div_ceil(64) as usize];
            // Bits beyond the end are set, so that they are never chosen.
            if let (Some(last), false) = (words.last_mut(), bits.is_multiple_of(64)) {
                *last = !0 << (bits % 64);
            }
            bits = words.len() as u64;
            self.levels.push(words);
            if bits == 1 {
                return;
            }
        }
    }

    /// Returns the first unused block from `block` on, or else from the start.
    pub fn next_unused(&self, block: u64) -> Option<u64> {
        self.unused(0, block).or_else(|| self.unused(0, 0))
    }

    /// Returns the first clear bit of a level from `bit` on.
    fn unused(&self, level: usize, bit: u64) -> Option<u64> {
        let words = self.levels.get(level)?;
        let index = bit / 64;
        let clear = !words.get(index as usize)? & (!0 << (bit % 64));
        if clear != 0 {
            return Some(index * 64 + u64::from(clear.trailing_zeros()));
        }
        let index = self.unused(level + 1, index + 1)?;
        Some(index * 64 + u64::from((!words[index as usize]).trailing_zeros()))
    }

    /// Marks up to `count` blocks from an unused one on as used, up to the next one that is. Returns their number.
    pub fn take(&mut self, block: u64, count: u64) -> u64 {
        let free = |block: &u64| self.levels[0][(block / 64) as usize] & (1 << (block % 64)) == 0;
        let end = block.saturating_add(count).min(self.blocks);
        let taken = (block..end).take_while(free).count() as u64;
        (block..block + taken).for_each(|block| self.set(block));
        taken
    }

    fn set(&mut self, block: u64) {
        let mut bit = block;
        for words in &mut self.levels {
            let word = &mut words[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != !0 {
                return;
            }
            bit /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    #[test]
    fn each_block_is_taken_once() {
        for blocks in [1, 63, 64, 65, 4096, 5000, 300_000] {
            let mut map = Map::new(blocks);
            for _ in 0..2 {
                let mut rng = Rng::new(1, "test");
                let mut used = vec![false; blocks as usize];
                while let Some(block) = map.next_unused(rng.below(blocks)) {
                    let count = map.take(block, 1 + rng.below(9));
                    assert!(count > 0);
                    for block in block..block + count {
                        assert!(!std::mem::replace(&mut used[block as usize], true), "{block} of {blocks}");
                    }
                }
                assert!(used.into_iter().all(|used| used));
                map.clear();
            }
        }
    }

    #[test]
    fn the_next_unused_block_may_be_before() {
        let mut map = Map::new(200);
        assert_eq!(map.take(10, 500), 190);
        assert_eq!([map.next_unused(50), map.next_unused(9)], [Some(0), Some(9)]);
        assert_eq!(map.take(8, 8), 2);
        assert_eq!(map.next_unused(8), Some(0));
    }
}
