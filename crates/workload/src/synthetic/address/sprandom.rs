//! Order of writes that leaves a device in the steady state of random writes: fio's `sprandom`.
//!
//! The physical space is divided into regions, which are written one after another. A share of the blocks of a region
//! is written again with the next region, so that each region has the share of valid blocks that the blocks of a device
//! have in the steady state. That distribution is the one of Desnoyers (*Analytic Models of SSD Write Performance*, ACM
//! TOS 8(2), 2012): the number of blocks with a share v of valid pages is proportional to 1 / v, from the share at
//! which blocks are collected up to 1.

use std::collections::VecDeque;

use super::permutation::Passes;
use crate::sim::rng::Rng;

/// Shares are rounded to a ten-thousandth, as in fio.
const WHOLE: u64 = 10_000;

/// Regions and over-provisioning of fio's `sprandom`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Number of regions, at least 1.
    pub regions: u32,
    /// Physical space beyond the logical one, as a share of the latter; between 0 and 1.
    pub over_provisioning: f64,
    /// True to write blocks again after the new blocks of the next region, and not before them, because the device may
    /// still hold both writes in a cache.
    pub defers: bool,
}

impl Shape {
    /// Returns the number of blocks that the writes of `blocks` blocks take, including those written again.
    pub fn physical(&self, blocks: u64) -> u64 {
        blocks + (blocks as f64 * self.over_provisioning) as u64
    }

    /// Returns the share of valid blocks of each region, in the order of writes.
    fn validities(&self) -> Vec<f64> {
        let last = self.regions as usize - 1;
        // The approximation of fio for the write amplification. Collected blocks have this share of valid pages.
        let least = 1.0 - 1.0 / (0.5 / self.over_provisioning + 0.7);
        let level = |index: usize| 1.0 - (1.0 - least) * index as f64 / last.max(1) as f64;
        let mut sum = 0.0;
        let ends: Vec<f64> = (0..=last)
            .map(|index| {
                sum += 1.0 / level(index);
                sum
            })
            .collect();
        let sampled = |index: usize| {
            let at = ends[0] + (ends[last] - ends[0]) * index as f64 / last.max(1) as f64;
            let above = ends.partition_point(|end| *end < at).clamp(1.min(last), last);
            let below = above.saturating_sub(1);
            let width = ends[above] - ends[below];
            let part = if width > 0.0 { ((at - ends[below]) / width).clamp(0.0, 1.0) } else { 0.0 };
            level(below) + (level(above) - level(below)) * part
        };
        (0..=last).rev().map(sampled).collect()
    }
}

/// Positions in the order of `sprandom`.
#[derive(Clone, Debug)]
pub struct Sprandom {
    /// Regions and over-provisioning.
    pub shape: Shape,
    /// New blocks, each once.
    new: Passes,
    /// Share of the blocks of each region that are written again, in ten-thousandths.
    again: Vec<u64>,
    /// Number of blocks of a region.
    blocks: u64,
    region: usize,
    /// New blocks that the region still gets.
    left: u64,
    /// Blocks of the region before that are written again, and those of this region.
    due: VecDeque<u64>,
    saved: VecDeque<u64>,
}

impl Sprandom {
    /// Creates the order of `0..positions`.
    pub fn new(shape: Shape, positions: u64, rng: &mut Rng) -> Sprandom {
        let again = shape.validities().iter().map(|valid| ((1.0 - valid) * WHOLE as f64).round() as u64).collect();
        let blocks = shape.physical(positions) / u64::from(shape.regions);
        let (due, saved) = (VecDeque::new(), VecDeque::new());
        Sprandom { shape, new: Passes::new(positions, rng), again, blocks, region: 0, left: blocks, due, saved }
    }

    /// Returns the next position. After each position was written, the order starts again.
    pub fn next(&mut self, rng: &mut Rng) -> u64 {
        loop {
            if (!self.shape.defers || self.left == 0 || self.new.left() == 0)
                && let Some(position) = self.due.pop_front()
            {
                self.save(position, rng);
                return position;
            }
            if self.left > 0 && self.new.left() > 0 {
                self.left -= 1;
                let position = self.new.next(rng);
                self.save(position, rng);
                return position;
            }
            if self.new.left() == 0 && self.saved.is_empty() {
                self.new.restart(rng);
                self.region = 0;
            } else {
                self.region += 1;
            }
            self.due = std::mem::take(&mut self.saved);
            self.left = self.blocks.saturating_sub(self.due.len() as u64);
        }
    }

    /// Notes a written block to be written again, with the probability of the region.
    fn save(&mut self, position: u64, rng: &mut Rng) {
        if self.again.get(self.region).is_some_and(|share| rng.below(WHOLE) < *share) {
            self.saved.push_back(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::address::tests::rng;

    /// Values by hand: with a ratio of 0.5 the amplification is 1.7, and collected blocks have 0.7 / 1.7 of their pages
    /// valid. Three levels 1, (1 + v) / 2 and v end at 1, 1 + 2 / (1 + v) and that + 1 / v.
    #[test]
    fn validities_are_sampled_at_equal_sizes() {
        let v = 0.7 / 1.7;
        let all = Shape { regions: 3, over_provisioning: 0.5, defers: false }.validities();
        let (second, third) = (2.0 / (1.0 + v), 1.0 / v);
        let middle = (second + third) / 2.0;
        let expected = (1.0 + v) / 2.0 - (1.0 - v) / 2.0 * (middle - second) / third;
        assert_eq!(all.len(), 3);
        assert!((all[0] - v).abs() < 1e-12 && all[2] == 1.0, "{all:?}");
        assert!((all[1] - expected).abs() < 1e-12, "{all:?} {expected}");
        assert_eq!(Shape { regions: 1, over_provisioning: 0.15, defers: false }.validities(), [1.0]);
    }

    /// The physical space is written once, each block is written, and the regions have their shares of valid blocks.
    #[test]
    fn regions_have_their_shares_of_valid_blocks() {
        for defers in [false, true] {
            let shape = Shape { regions: 20, over_provisioning: 0.15, defers };
            let (positions, mut rng) = (100_000, rng());
            let mut order = Sprandom::new(shape, positions, &mut rng);
            let (total, blocks) = (shape.physical(positions), shape.physical(positions) / 20);
            assert_eq!(total, 115_000);
            let mut last = vec![None; positions as usize];
            for number in 0..total {
                last[order.next(&mut rng) as usize] = Some(number / blocks);
            }
            let missing = last.iter().filter(|last| last.is_none()).count();
            // All blocks are new in a share of the space that a normal deviation of the draws can change.
            assert!(missing < 700, "{missing} blocks are missing");
            for (region, valid) in shape.validities().into_iter().enumerate() {
                let found = last.iter().filter(|last| **last == Some(region as u64)).count() as f64;
                let expected = valid * blocks as f64;
                // A block may be written again in a region later than the next one, and the last regions may begin the
                // order again.
                let deviation = 6.0 * libm::sqrt(expected * (1.0 - valid)) + 0.02 * blocks as f64;
                assert!((found - expected).abs() < deviation, "{defers} {region}: {found} {expected}");
            }
        }
    }
}
