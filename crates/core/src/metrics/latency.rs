//! Distribution of latencies.

use hdrhistogram::Histogram;

use crate::sim::time::Time;

/// Distribution of times: mean, minimum and maximum are exact, percentiles are accurate to 0.1%.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
    sum: u128,
    min: Time,
    max: Time,
}

/// Number of points of a curve, apart from its tail.
const LINEAR_STEPS: f64 = 200.0;

/// Share of the longer times between two points in the tail: 1 - 10^(-1/24).
const TAIL_STEP: f64 = 0.0915;

impl Default for Latency {
    fn default() -> Self {
        // Times beyond ten days are counted as ten days. The exact maximum is kept separately.
        let histogram = Histogram::new_with_max(1 << 50, 3).unwrap_or_else(|_| unreachable!("3 digits are allowed"));
        Latency { histogram, sum: 0, min: Time::NEVER, max: Time::ZERO }
    }
}

impl Latency {
    /// Adds a time.
    #[inline]
    pub fn record(&mut self, time: Time) {
        // Fractions of a nanosecond do not matter to a percentile, and would require a larger table.
        self.histogram.saturating_record(time.0 / 1000);
        self.sum += u128::from(time.0);
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }

    /// Adds all times of another distribution.
    pub fn add(&mut self, other: &Latency) {
        // Both distributions have the same buckets, so this cannot fail.
        let _ = self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
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
        for step in self.histogram.iter_recorded() {
            let resolution = (self.count() as f64 / LINEAR_STEPS).min(kept as f64 * TAIL_STEP);
            longer -= step.count_at_value();
            let time = (step.value_iterated_to() as f64 / 1e3).clamp(self.min_us(), self.max_us());
            if points.is_empty() || longer == 0 || (kept - longer) as f64 >= resolution {
                points.extend(skipped.take().filter(|_| step.count_at_value() as f64 >= resolution));
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
        let value = self.histogram.value_at_quantile(share) as f64 / 1e3;
        value.clamp(self.min_us(), self.max_us())
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
