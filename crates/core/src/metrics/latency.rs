//! Distributions of latencies.

use hdrhistogram::Histogram;

use crate::sim::time::Time;

/// A distribution of times: mean, least and most exact, percentiles within 0.1 %.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
    sum: u128,
    min: Time,
    max: Time,
}

impl Default for Latency {
    fn default() -> Self {
        // Ten days at most; what is longer is counted as that, and its exact maximum is kept beside.
        let histogram = Histogram::new_with_max(1 << 50, 3).unwrap_or_else(|_| unreachable!("3 digits are allowed"));
        Latency { histogram, sum: 0, min: Time::NEVER, max: Time::ZERO }
    }
}

impl Latency {
    /// Adds a time.
    #[inline]
    pub fn record(&mut self, time: Time) {
        // Picoseconds below a nanosecond do not matter to a percentile, and would cost a larger table.
        self.histogram.saturating_record(time.0 / 1000);
        self.sum += u128::from(time.0);
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }

    /// Adds all times of another distribution.
    pub fn add(&mut self, other: &Latency) {
        // Both count in the same steps, so this cannot fail.
        let _ = self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many were added.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean, in microseconds.
    pub fn mean_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 / 1e6 }
    }

    /// The least, in microseconds.
    pub fn min_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.min.as_us() }
    }

    /// The most, in microseconds.
    pub fn max_us(&self) -> f64 {
        self.max.as_us()
    }

    /// The time that a share of all (0 to 1) do not exceed, in microseconds, within 0.1 %.
    pub fn quantile_us(&self, share: f64) -> f64 {
        let value = self.histogram.value_at_quantile(share) as f64 / 1e3;
        value.clamp(self.min_us(), self.max_us())
    }
}
