//! Distribution of latencies.

use crate::sim::time::Time;

/// Distribution of times: mean, minimum and maximum are exact, percentiles are accurate to 0.1%.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Number of times in each bucket, with times in nanoseconds. Fractions of a nanosecond do not matter to a
    /// percentile, and would require more buckets.
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    min: Time,
    max: Time,
}

/// Number of points of a curve, apart from its tail.
const LINEAR_STEPS: f64 = 200.0;

/// Share of the longer times between two points in the tail: 1 - 10^(-1/24).
const TAIL_STEP: f64 = 0.0915;

/// Times up to `2 << PRECISION` ns have a bucket each. Beyond, each power of two has `1 << PRECISION` buckets.
const PRECISION: u32 = 10;

/// Longest time with a bucket of its own, in nanoseconds: ten days. The exact maximum is kept separately.
const LONGEST: u64 = 1 << 50;

/// Returns the bucket of a time in nanoseconds.
#[inline]
fn bucket_of(ns: u64) -> usize {
    let shift = (63 - PRECISION) - (ns | ((2 << PRECISION) - 1)).leading_zeros();
    ((u64::from(shift) << PRECISION) + (ns >> shift)) as usize
}

/// Returns the longest time of a bucket, in nanoseconds.
fn end_of(bucket: usize) -> u64 {
    let shift = (bucket as u64 >> PRECISION).saturating_sub(1);
    ((bucket as u64 - (shift << PRECISION) + 1) << shift) - 1
}

impl Default for Latency {
    fn default() -> Self {
        Latency { buckets: vec![0; bucket_of(LONGEST) + 1], count: 0, sum: 0, min: Time::NEVER, max: Time::ZERO }
    }
}

impl Latency {
    /// Adds a time.
    #[inline]
    pub fn record(&mut self, time: Time) {
        self.buckets[bucket_of((time.0 / 1000).min(LONGEST))] += 1;
        self.count += 1;
        self.sum += u128::from(time.0);
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }

    /// Adds all times of another distribution.
    pub fn add(&mut self, other: &Latency) {
        let used = bucket_of((other.max.0 / 1000).min(LONGEST)) + 1;
        self.buckets.iter_mut().zip(&other.buckets[..used]).for_each(|(count, other)| *count += other);
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean in microseconds.
    pub fn mean_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 / 1e6 }
    }

    /// Returns the minimum in microseconds.
    pub fn min_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.min.as_us() }
    }

    /// Returns the maximum in microseconds.
    pub fn max_us(&self) -> f64 {
        self.max.as_us()
    }

    /// Returns points of the distribution in ascending order: a time in microseconds, accurate to 0.1%, and the number
    /// of longer times. Points are 0.5% of all times apart, and in the last 5% there are 24 points per power of ten. If
    /// more times than that have one value, the value before it is a point, too, so that the size of the step is known.
    /// There are at most [`CURVE_POINTS`](Self::CURVE_POINTS). The last point is the maximum.
    pub fn curve(&self) -> Vec<(f64, u64)> {
        let mut points: Vec<(f64, u64)> = Vec::new();
        let (mut longer, mut kept, mut skipped) = (self.count(), self.count(), None);
        for (bucket, &count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let resolution = (self.count() as f64 / LINEAR_STEPS).min(kept as f64 * TAIL_STEP);
            longer -= count;
            let time = self.end_us(bucket);
            if points.is_empty() || longer == 0 || (kept - longer) as f64 >= resolution {
                points.extend(skipped.take().filter(|_| count as f64 >= resolution));
                points.push((time, longer));
                (kept, skipped) = (longer, None);
            } else {
                skipped = Some((time, longer));
            }
        }
        points
    }

    /// Maximum number of points of [`curve`](Self::curve): 2^64 times have 18 powers of ten in the tail, and each point
    /// can have one before it.
    pub const CURVE_POINTS: usize = 2 * (200 + 24 * 18);

    /// Returns the time that a share of all times (0 to 1) do not exceed, in microseconds, accurate to 0.1%.
    pub fn quantile_us(&self, share: f64) -> f64 {
        let mut left = ((share.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let is_last = |&count: &u64| {
            let ends = count >= left;
            left = left.saturating_sub(count);
            ends
        };
        self.buckets.iter().position(is_last).map_or(0.0, |bucket| self.end_us(bucket))
    }

    /// Returns the longest time that a bucket may hold, in microseconds.
    fn end_us(&self, bucket: usize) -> f64 {
        (end_of(bucket) as f64 / 1e3).clamp(self.min_us(), self.max_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times_us: impl Iterator<Item = u64>) -> Latency {
        let mut latency = Latency::default();
        times_us.for_each(|us| latency.record(Time::from_us(us)));
        latency
    }

    #[test]
    fn buckets_are_adjacent_and_a_thousandth_wide() {
        let (mut bucket, mut start) = (0, 0);
        while start <= LONGEST {
            let end = end_of(bucket);
            assert_eq!((bucket_of(start), bucket_of(end)), (bucket, bucket));
            assert!((end - start) as f64 <= 0.001 * start as f64, "{start} to {end}");
            (bucket, start) = (bucket + 1, end + 1);
        }
        assert_eq!(bucket, Latency::default().buckets.len());
    }

    #[test]
    fn a_percentile_is_the_end_of_its_bucket() {
        assert_eq!(Latency::default().quantile_us(0.5), 0.0);
        let hundred = of(1..=100);
        assert_eq!([0.0, 0.01, 0.5].map(|share| hundred.quantile_us(share)), [1.0, 1.0, 50.015]);
        assert_eq!([0.501, 1.0, 1.5].map(|share| hundred.quantile_us(share)), [51.007, 100.0, 100.0]);
    }

    #[test]
    fn points_of_a_curve_are_exact() {
        assert_eq!(of(std::iter::empty()).curve(), []);
        assert_eq!(of([7].into_iter()).curve(), [(7.0, 0)]);
        assert_eq!(of([1, 1, 1, 2].into_iter()).curve(), [(1.0, 1), (2.0, 0)]);
    }

    #[test]
    fn a_step_of_a_curve_starts_at_the_value_before_it() {
        // 1000 times: one each of 1 to 499 us, and 501 of 600 us. A point is due every 5 times: at 1, 6 ... 496 us. So
        // 499 us is a point only because of the step after it.
        let curve = of((1..500).chain(std::iter::repeat_n(600, 501))).curve();
        let [.., before, at] = curve[..] else { panic!("{curve:?}") };
        assert!((before.0 - 499.0).abs() <= 0.5 && before.1 == 501, "{before:?}");
        assert_eq!(at, (600.0, 0));
        assert_eq!(curve[..3].iter().map(|point| point.1).collect::<Vec<_>>(), [999, 994, 989]);
    }

    #[test]
    fn a_curve_has_a_tail_and_an_end() {
        let times = 1..=1_000_000;
        let curve = of(times.clone()).curve();
        // Buckets are 0.1% wide, so the last of these times share one.
        assert!((60..=Latency::CURVE_POINTS).contains(&curve.len()), "{}", curve.len());
        assert_eq!(curve.last(), Some(&(1e6, 0)));
        for (time, longer) in &curve {
            let exact = times.end() - *longer;
            assert!((time - exact as f64).abs() <= 0.001 * time + 0.001, "{time} for {exact}");
        }
        assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1));
        // The step between points is 0.5% of all times or 9% of the rest, except for the width of a bucket.
        let steps = curve.windows(2).map(|pair| (pair[0].1 - pair[1].1, pair[0].1));
        assert!(steps.clone().all(|(step, longer)| step <= 6_000.min(longer / 9 + 1_000)), "{:?}", curve);
        // A heavy tail of more than three powers of ten: one of 100,000 times is 1000 s, ten are 100 s or more, and so
        // on.
        let heavy = of((1..=100_000).map(|rank| 1_000_000_000 / rank)).curve();
        assert!((80..=Latency::CURVE_POINTS).contains(&heavy.len()), "{}", heavy.len());
    }
}
