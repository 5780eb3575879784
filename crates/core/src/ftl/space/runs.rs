//! Validity of many units of a block at a time, one word of bits after another.

use std::ops::Range;

use super::{BlockState, Space};
use crate::sim::id::{BlockId, Ppn};

impl Space {
    /// Calls `visit` for each valid unit of a range, in order, until it returns `false`.
    #[inline(always)]
    pub fn visit_valid(&self, units: Range<u32>, mut visit: impl FnMut(Ppn) -> bool) {
        if units.is_empty() {
            return;
        }
        for (word, mask) in masks(units.start, units.end - units.start) {
            let mut bits = self.valid[word] & mask;
            while bits != 0 {
                if !visit(Ppn(word as u32 * 64 + bits.trailing_zeros())) {
                    return;
                }
                bits &= bits - 1;
            }
        }
    }

    /// Returns the first valid unit of a range.
    pub fn first_valid(&self, units: Range<u32>) -> Option<Ppn> {
        let mut first = None;
        self.visit_valid(units, |unit| {
            first = Some(unit);
            false
        });
        first
    }

    /// Invalidates all valid units of a victim, because they have been moved.
    pub fn invalidate_all(&mut self, id: BlockId) {
        let first = self.first_unit(id).0;
        for (word, mask) in masks(first, self.size_of(id).data_units) {
            self.valid[word] &= !mask;
        }
        let block = &mut self.blocks[id.index()];
        debug_assert_ne!(block.state, BlockState::Closed, "the victim policy is notified of each unit of a candidate");
        block.valid = 0;
    }

    /// Marks `units` programmed units of one block, from `first` on, as valid.
    pub fn validate_run(&mut self, first: Ppn, units: u32) {
        for (word, mask) in masks(first.0, units) {
            debug_assert!(self.valid[word] & mask == 0, "a unit is programmed once between erases");
            self.valid[word] |= mask;
        }
        let block = self.block_of(first);
        debug_assert_eq!(block, self.block_of(Ppn(first.0 + units - 1)), "a run lies in one block");
        let block = &mut self.blocks[block.index()];
        (block.valid, block.written) = (block.valid + units as u16, block.written.wrapping_add(units));
    }
}

/// Splits `count` bits from `first` on into words. Returns the index of each word, and its bits. `count` is at least
/// one.
#[inline]
fn masks(first: u32, count: u32) -> impl Iterator<Item = (usize, u64)> {
    let (end, first_word) = (first + count, first / 64);
    let last_word = (end - 1) / 64;
    (first_word..=last_word).map(move |word| {
        let low = if word == first_word { !0 << (first % 64) } else { !0 };
        let high = if word == last_word { !0 >> (63 - (end - 1) % 64) } else { !0 };
        (word as usize, low & high)
    })
}

#[cfg(test)]
mod tests {
    use super::masks;

    #[test]
    fn masks_cover_each_bit_once() {
        for (first, count) in [(0, 1), (0, 64), (63, 1), (63, 2), (1, 62), (5, 300), (128, 128), (100, 28), (100, 29)] {
            let bits: Vec<u32> = masks(first, count)
                .flat_map(|(word, mask)| {
                    (0..64).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| word as u32 * 64 + bit)
                })
                .collect();
            assert_eq!(bits, (first..first + count).collect::<Vec<_>>());
        }
    }
}
