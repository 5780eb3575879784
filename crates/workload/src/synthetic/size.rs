//! How large requests are: fio's `bs`, `bsrange` and `bssplit`.

use crate::sim::rng::Rng;

/// The sizes of one direction's requests, in sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Fixed(u32),
    /// Each drawn by its weight, independently.
    Split(Vec<Part>),
    /// Smallest and largest: the smallest plus a part of the largest, rounded down to a multiple of the smallest.
    Range(u32, u32),
}

/// One size of a [`Sizes::Split`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The weights of this size and of all before it; the last part's is the sum of all weights.
    up_to: u32,
    /// The size.
    sectors: u32,
}

impl Sizes {
    /// Sizes with their weights, of which at least one is not 0.
    pub fn split(weighted: &[(u32, u32)]) -> Sizes {
        // The heaviest first, so that the search of `next` mostly ends at once.
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

    /// Sizes from `min` to `max` sectors, as fio's `get_next_buflen` draws them.
    pub fn range(min: u32, max: u32) -> Sizes {
        if min == max { Sizes::Fixed(min) } else { Sizes::Range(min, max) }
    }

    /// The next request's size, in sectors. `rng` is drawn from where there is a choice only.
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

    /// The smallest size, in sectors.
    pub fn min(&self) -> u32 {
        match self {
            Sizes::Fixed(sectors) => *sectors,
            Sizes::Split(parts) => parts.iter().map(|part| part.sectors).min().unwrap_or(0),
            Sizes::Range(min, _) => *min,
        }
    }

    /// The largest size, in sectors.
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
        // Standard deviations are at most 158.
        for (sectors, expected) in [(8, 10_000), (128, 50_000), (64, 40_000)] {
            assert!(counts[&sectors].abs_diff(expected) < 700, "{counts:?}");
        }
        assert_eq!(counts.len(), 3);
        assert_eq!((sizes.min(), sizes.max()), (8, 128));
    }

    #[test]
    fn ranges_are_of_multiples_of_the_smallest() {
        // 4 KiB plus up to 10 KiB: 4 of 10 parts round to 4 KiB, 4 to 8 KiB; 12 KiB and more is cut to 10 KiB.
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
