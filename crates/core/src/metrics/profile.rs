//! Profile of requests: their sizes, inter-arrival times and numbers of channels used.
//!
//! Each takes some time per request, so a profile is collected only if a run requests it.

use super::attribution::Breakdown;
use crate::sim::request::{Operation, Request, SECTOR};
use crate::sim::time::Time;

/// Number of counters for the channels used: none, 1, 2, ... The last counter includes higher numbers.
const CHANNELS: usize = 257;

/// Number of size classes, in sectors: 0, 1, up to 2, up to 4, ... up to 2^32.
const SIZES: usize = 34;

/// Number of classes of times in nanoseconds: 0, from 1, from 2, from 4, ...
const INTERVALS: usize = 65;

/// Profile of requests.
#[derive(Clone, Debug)]
pub struct Profile {
    sizes: [[u64; SIZES]; Operation::ALL.len()],
    intervals: [u64; INTERVALS],
    channels: Box<[[u64; CHANNELS]; Operation::ALL.len()]>,
    last_arrival: Option<Time>,
    attributed: bool,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            sizes: [[0; SIZES]; Operation::ALL.len()],
            intervals: [0; INTERVALS],
            channels: Box::new([[0; CHANNELS]; Operation::ALL.len()]),
            last_arrival: None,
            attributed: false,
        }
    }
}

impl Profile {
    /// Counts a request that is issued. Requests are counted in order of issue. A request that arrived before its
    /// predecessor counts as having arrived together with it.
    #[inline]
    pub fn issued(&mut self, request: &Request) {
        let bits = |value: u64| (u64::BITS - value.leading_zeros()) as usize;
        let size = match request.sectors {
            0 => 0,
            sectors => bits(u64::from(sectors) - 1) + 1,
        };
        self.sizes[request.operation.index()][size] += 1;
        let last = self.last_arrival.replace(request.arrival.max(self.last_arrival.unwrap_or_default()));
        if let Some(last) = last {
            self.intervals[bits(request.arrival.since(last).ps() / 1000)] += 1;
        }
    }

    /// Counts a request that has completed, with its latency breakdown.
    #[inline]
    pub fn completed(&mut self, operation: Operation, breakdown: &Breakdown) {
        self.attributed = true;
        self.channels[operation.index()][(breakdown.channels as usize).min(CHANNELS - 1)] += 1;
    }

    /// Returns the requests of an operation by size: the maximum bytes of each class, and the number of requests. A
    /// class starts above the maximum of the previous one. The list is limited to the classes from the first to the
    /// last that is not empty.
    pub fn sizes(&self, operation: Operation) -> Vec<(u64, u64)> {
        let most = |class: usize| if class == 0 { 0 } else { SECTOR << (class - 1) };
        filled(&self.sizes[operation.index()]).map(|(class, count)| (most(class), count)).collect()
    }

    /// Returns the requests by the time since the previous one: the minimum of each class in nanoseconds, and the
    /// number of requests. A class ends where the next one starts. The list is limited to the classes from the first to
    /// the last that is not empty.
    pub fn intervals(&self) -> Vec<(u64, u64)> {
        let least = |class: usize| if class == 0 { 0 } else { 1 << (class - 1) };
        filled(&self.intervals).map(|(class, count)| (least(class), count)).collect()
    }

    /// Returns the requests of an operation by the number of channels that they used: none, 1, 2, ... Returns `None` if
    /// no breakdowns were collected. The last possible entry, 256, includes higher numbers.
    pub fn channels(&self, operation: Operation) -> Option<Vec<u64>> {
        let counts = &self.channels[operation.index()];
        let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        self.attributed.then(|| counts[..used].to_vec())
    }
}

/// Returns the counts with their indexes, from the first that is not 0 to the last.
fn filled(counts: &[u64]) -> impl Iterator<Item = (usize, u64)> {
    let first = counts.iter().position(|count| *count > 0).unwrap_or(counts.len());
    let last = counts.iter().rposition(|count| *count > 0).map_or(first, |last| last + 1);
    (first..last).zip(&counts[first..last]).map(|(place, count)| (place, *count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_up_to_powers_of_two() {
        let mut profile = Profile::default();
        for sectors in [1, 8, 8, 7, 9, 16] {
            profile.issued(&Request::new(Time::ZERO, Operation::Write, 0, sectors));
        }
        profile.issued(&Request::new(Time::ZERO, Operation::Read, 0, u32::MAX));
        profile.issued(&Request::new(Time::ZERO, Operation::Flush, 0, 0));
        assert_eq!(profile.sizes(Operation::Write), [(512, 1), (1024, 0), (2048, 0), (4096, 3), (8192, 2)]);
        assert_eq!(profile.sizes(Operation::Read), [(512 << 32, 1)]);
        assert_eq!(profile.sizes(Operation::Flush), [(0, 1)]);
        assert_eq!(profile.sizes(Operation::Trim), []);
    }

    #[test]
    fn intervals_are_counted_from_powers_of_two() {
        let mut profile = Profile::default();
        // The intervals are 0, 1000, 24 and 0 ns, because the last request is out of order.
        for ns in [5, 5, 1005, 1029, 1028] {
            profile.issued(&Request::new(Time::from_ns(ns), Operation::Read, 0, 8));
        }
        let intervals: Vec<_> = profile.intervals().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(intervals, [(0, 2), (16, 1), (512, 1)]);
        assert_eq!(Profile::default().intervals(), []);
    }

    #[test]
    fn channels_are_counted_if_breakdowns_are_collected() {
        let mut profile = Profile::default();
        assert_eq!(profile.channels(Operation::Read), None);
        for channels in [1, 3, 3, 0, 1000] {
            profile.completed(Operation::Read, &Breakdown { channels, ..Breakdown::default() });
        }
        let counts = profile.channels(Operation::Read).unwrap();
        assert_eq!((counts.len(), &counts[..4], counts[256]), (257, &[1, 1, 0, 2][..], 1));
        assert_eq!(profile.channels(Operation::Write), Some(vec![]));
    }
}
