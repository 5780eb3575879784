//! Means, variances and histograms, updated with one value at a time.

use std::collections::BTreeMap;

/// Count, mean and variance (B. P. Welford, "Note on a method for calculating corrected sums of squares and products",
/// Technometrics 4(3), 1962). Plain sums of squares would lose precision if the values hardly differ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
    ends: Option<(f64, f64)>,
}

impl Moments {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
        let (least, greatest) = self.ends.unwrap_or((value, value));
        self.ends = Some((least.min(value), greatest.max(value)));
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean. `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Returns the population variance. `None` without values.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 0).then(|| self.squares / self.count as f64)
    }

    /// Returns the standard deviation divided by the mean. `None` without values, or if the mean is 0.
    pub fn variation(&self) -> Option<f64> {
        let mean = self.mean().filter(|mean| *mean > 0.0)?;
        self.variance().map(|variance| variance.max(0.0).sqrt() / mean)
    }

    /// Returns the minimum and the maximum. `None` without values.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.ends
    }
}

/// Number of gap classes per octave.
const PARTS: u32 = 8;

/// Returns the class of a gap. Classes are an eighth of an octave wide. Below 8, each number is a class.
pub fn class_of(gap: u64) -> usize {
    if gap < u64::from(PARTS) {
        return gap as usize;
    }
    let octave = gap.ilog2() - PARTS.ilog2();
    (octave * PARTS) as usize + (gap >> octave) as usize
}

/// Returns the minimum of a class, and the minimum of the next one.
pub fn class_ends(class: usize) -> (u64, u64) {
    let start = |class: usize| {
        let parts = PARTS as usize;
        if class < parts {
            return class as u64;
        }
        let octave = class / parts - 1;
        ((class - octave * parts) as u64).checked_shl(octave as u32).unwrap_or(u64::MAX)
    };
    let last = class_of(u64::MAX);
    (start(class), if class >= last { u64::MAX } else { start(class + 1) })
}

/// Returns the octave of a gap: 0 for no gap, otherwise one more than the rounded-down logarithm to base 2.
pub fn octave_of(gap: u64) -> u8 {
    (64 - gap.leading_zeros()) as u8
}

/// Histogram of gaps, with the sum of each class, so that means are exact.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    classes: BTreeMap<usize, (u64, u128)>,
}

impl Gaps {
    /// Adds a gap.
    pub fn add(&mut self, gap: u64) {
        let class = self.classes.entry(class_of(gap)).or_default();
        class.0 += 1;
        class.1 += u128::from(gap);
    }

    /// Returns the classes that are not empty: number, count, mean.
    pub fn classes(&self) -> impl Iterator<Item = (usize, u64, f64)> {
        self.classes.iter().map(|(class, (count, sum))| (*class, *count, *sum as f64 / *count as f64))
    }

    /// Returns a quantile of the gaps, with a precision of an eighth of an octave. `None` without gaps.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total: u64 = self.classes.values().map(|(count, _)| count).sum();
        let wanted = share * total as f64;
        let mut below = 0;
        let mut last = None;
        for (_, count, mean) in self.classes() {
            below += count;
            last = Some(mean);
            if below as f64 >= wanted {
                break;
            }
        }
        last
    }
}

/// Maximum number of sizes that are counted individually. Others are rounded up to an eighth of an octave.
const MAX_SIZES: usize = 4096;

/// Number of requests by size in sectors.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    counts: BTreeMap<u32, u64>,
}

impl Sizes {
    /// Adds a size.
    pub fn add(&mut self, sectors: u32) {
        let known = self.counts.len() < MAX_SIZES || self.counts.contains_key(&sectors);
        let key = if known { sectors } else { class_ends(class_of(u64::from(sectors))).1.min(1 << 31) as u32 };
        *self.counts.entry(key).or_default() += 1;
    }

    /// Returns sizes with their counts, sorted by size.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u64)> {
        self.counts.iter().map(|(sectors, count)| (*sectors, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_of_a_few_values() {
        let mut moments = Moments::default();
        assert_eq!((moments.mean(), moments.variance(), moments.variation()), (None, None, None));
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|value| moments.add(value));
        assert_eq!((moments.mean(), moments.variance(), moments.variation()), (Some(5.0), Some(4.0), Some(0.4)));
        assert_eq!(moments.ends(), Some((2.0, 9.0)));
    }

    #[test]
    fn equal_values_have_no_variance() {
        let mut moments = Moments::default();
        (0..1000).for_each(|_| moments.add(1e15 + 1.0));
        assert_eq!(moments.variance(), Some(0.0));
    }

    #[test]
    fn sizes_beyond_the_limit_are_rounded_up() {
        let mut sizes = Sizes::default();
        (1..=5000).for_each(|sectors| sizes.add(sectors));
        // 4097 to 5000 are rounded up to 4608 or 5120.
        let beyond: Vec<_> = sizes.counts().filter(|(sectors, _)| *sectors > 4096).collect();
        assert_eq!(beyond, [(4608, 512), (5120, 392)]);
        sizes.add(u32::MAX);
        assert_eq!(sizes.counts().last(), Some((1 << 31, 1)));
    }

    proptest! {
        #[test]
        fn classes_hold_their_gaps(gap in any::<u64>(), shift in 0..64_u32) {
            let gap = gap >> shift;
            let (start, end) = class_ends(class_of(gap));
            prop_assert!(start <= gap && (gap < end || gap == u64::MAX));
            prop_assert!(end - start <= (start / 8).max(1));
            prop_assert_eq!(class_of(start), class_of(gap));
        }
    }
}
