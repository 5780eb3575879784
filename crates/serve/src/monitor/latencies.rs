//! Histograms of latencies since the start of the server, for Prometheus.
//!
//! The engine counts latencies by steps; 32 steps double the latency. The bounds of the histograms are ends of steps,
//! so that the counts are exact. All servers have the same bounds, so that histograms of several can be added.

use floatgate_core::results::Answered;
use floatgate_core::sim::request::Operation;

use crate::engine::Snapshot;

/// Exponents of the bounds in nanoseconds: from 1 us to 17 s.
const POWERS: std::ops::Range<u32> = 10..35;

/// Histogram of the latencies of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Number of requests.
    pub count: u64,
    /// Sum of their latencies, in picoseconds.
    sum: u128,
    /// Number of requests by bound: requests below the bound, but not below the previous one. The last number counts
    /// requests that are not below any bound.
    buckets: Vec<u64>,
}

/// Returns the bounds in nanoseconds: powers of two, and the middle between each two of them.
fn bounds() -> impl Iterator<Item = u64> {
    POWERS.flat_map(|power| [1 << power, 3 << (power - 1)])
}

impl Histogram {
    fn add(&mut self, answered: &Answered) {
        let bounds: Vec<u64> = bounds().collect();
        self.buckets.resize(bounds.len() + 1, 0);
        self.count += answered.count;
        self.sum += answered.latency_sum;
        for (from, count) in answered.steps() {
            let ns = from.ps() / 1000;
            self.buckets[bounds.partition_point(|bound| *bound <= ns)] += count;
        }
    }

    /// Returns the sum of the latencies, in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e12
    }

    /// Returns the bounds in seconds, with the number of requests in each bucket. The last bound is infinite.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = bounds().map(|ns| ns as f64 / 1e9).chain([f64::INFINITY]);
        bounds.zip(self.buckets.iter().copied()).collect()
    }
}

/// Histograms of all operations.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Indexed by [`Operation::index`].
    operations: [Histogram; 5],
    /// Number of requests of the device at the last sample.
    requests: u64,
}

impl Latencies {
    /// Adds the requests since the last sample. Starts again if the device was reset by a power cut, like the other
    /// counters of the device.
    pub fn add(&mut self, snapshot: &Snapshot) {
        let requests = snapshot.totals.iter().map(|totals| totals.count).sum();
        if requests < self.requests {
            *self = Latencies::default();
        }
        self.requests = requests;
        for (operation, histogram) in Operation::ALL.into_iter().zip(&mut self.operations) {
            if let Some(answered) = snapshot.window.as_ref().and_then(|window| window.of(operation)) {
                histogram.add(answered);
            }
        }
    }

    /// Returns the operations that have completed requests, with their histograms.
    pub fn operations(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let all = Operation::ALL.into_iter().map(Operation::name).zip(&self.operations);
        all.filter(|(_, histogram)| histogram.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use floatgate_core::sim::time::Time;

    use super::*;

    #[test]
    fn buckets_are_exact() {
        let mut answered = Answered::default();
        let ns = [1, 1023, 1024, 1535, 1536, 2047, 2048, 1 << 40];
        ns.iter().for_each(|ns| answered.note(Time::from_ns(*ns)));
        let mut histogram = Histogram::default();
        histogram.add(&answered);
        histogram.add(&answered);
        let buckets = histogram.buckets();
        let filled: Vec<(f64, u64)> = buckets.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(1.024e-6, 4), (1.536e-6, 4), (2.048e-6, 4), (3.072e-6, 2), (f64::INFINITY, 2)]);
        assert_eq!(histogram.count, 16);
        assert_eq!(histogram.sum_s(), 2.0 * ns.iter().sum::<u64>() as f64 / 1e9);
        assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
