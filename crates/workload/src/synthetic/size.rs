//! Sizes of requests: fio's `bs`, `bsrange` and `bssplit`.

use crate::sim::rng::Rng;

/// Sizes of the requests of one direction, in sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All equal.
    Fixed(u32),
    /// Drawn independently by weight.
    Split(Vec<Part>),
    /// Minimum and maximum: the minimum plus a random part of the maximum, rounded down to a multiple of the minimum.
    Range(u32, u32),
}

/// A size of [`Sizes::Split`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Sum of the weights of this size and of all sizes before it.
    up_to: u32,
    /// Size in sectors.
    sectors: u32,
}

impl Sizes {
    /// Creates sizes with weights. At least one weight must not be 0.
    pub fn split(weighted: &[(u32, u32)]) -> Sizes {
        // Sort by descending weight, so that the search in `next` usually ends at the first entry.
        let mut sorted = weighted.to_vec();
        sorted.sort_by_key(|&(sectors, weight)| (std::cmp::Reverse(weight), sectors));
        let mut up_to = 0;
        let parts: Vec<Part> = sorted
            .into_iter()
            .map(|(sectors, weight)| {
                up_to += weight;
                Part { up_to, sectors }
            })
            .collect();
        match parts[..] {
            [part] => Sizes::Fixed(part.sectors),
            _ => Sizes::Split(parts),
        }
    }

    /// Creates sizes from `min` to `max` sectors, drawn like in fio's `get_next_buflen`.
    pub fn range(min: u32, max: u32) -> Sizes {
        if min == max { Sizes::Fixed(min) } else { Sizes::Range(min, max) }
    }

    /// Returns the size of the next request in sectors. `rng` is used only if there are several sizes.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> u32 {
        match self {
            Sizes::Fixed(sectors) => *sectors,
            Sizes::Split(parts) => {
                let draw = rng.below(u64::from(parts[parts.len() - 1].up_to)) as u32;
                parts.iter().find(|part| draw < part.up_to).map_or(0, |part| part.sectors)
            }
            Sizes::Range(min, max) => {
                let drawn = u64::from(*min) + rng.below(u64::from(*max));
                (drawn / u64::from(*min) * u64::from(*min)).min(u64::from(*max)) as u32
            }
        }
    }

    /// Returns the smallest size in sectors.
    pub fn min(&self) -> u32 {
        match self {
            Sizes::Fixed(sectors) => *sectors,
            Sizes::Split(parts) => parts.iter().map(|part| part.sectors).min().unwrap_or(0),
            Sizes::Range(min, _) => *min,
        }
    }

    /// Returns the largest size in sectors.
    pub fn max(&self) -> u32 {
        match self {
            Sizes::Fixed(sectors) => *sectors,
            Sizes::Split(parts) => parts.iter().map(|part| part.sectors).max().unwrap_or(0),
            Sizes::Range(_, max) => *max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_has_its_share() {
        let sizes = Sizes::split(&[(8, 10), (128, 50), (64, 40)]);
        let mut rng = Rng::new(1, "test");
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..100_000 {
            *counts.entry(sizes.next(&mut rng)).or_insert(0u32) += 1;
        }
        // The standard deviations are at most 158.
        for (sectors, expected) in [(8, 10_000), (128, 50_000), (64, 40_000)] {
            assert!(counts[&sectors].abs_diff(expected) < 700, "{counts:?}");
        }
        assert_eq!(counts.len(), 3);
        assert_eq!((sizes.min(), sizes.max()), (8, 128));
    }

    #[test]
    fn ranges_are_of_multiples_of_the_smallest() {
        // 4 KiB plus up to 10 KiB: 4 of 10 parts round to 4 KiB, and 4 to 8 KiB. 12 KiB and more are cut to 10 KiB.
        let sizes = Sizes::range(8, 20);
        let mut rng = Rng::new(1, "test");
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..100_000 {
            *counts.entry(sizes.next(&mut rng)).or_insert(0u32) += 1;
        }
        for (sectors, expected) in [(8, 40_000), (16, 40_000), (20, 20_000)] {
            assert!(counts[&sectors].abs_diff(expected) < 700, "{counts:?}");
        }
        assert_eq!((counts.len(), sizes.min(), sizes.max()), (3, 8, 20));
        assert_eq!(Sizes::range(8, 8), Sizes::Fixed(8));
    }

    #[test]
    fn a_single_size_needs_no_draw() {
        let sizes = Sizes::split(&[(8, 100)]);
        assert_eq!(sizes, Sizes::Fixed(8));
        let mut rng = Rng::new(1, "test");
        assert_eq!(sizes.next(&mut rng), 8);
        assert_eq!(rng.next_u64(), Rng::new(1, "test").next_u64());
    }
}
