//! What requests are like: sizes, the time from one to the next, and how many channels they use.
//!
//! Each takes a little time for each request, so it is collected only when a run asks for it.

use super::attribution::Breakdown;
use crate::sim::request::{Operation, Request, SECTOR};
use crate::sim::time::Time;

/// Counts of one number of channels each: none, 1, 2, ... The last one is for more, too.
const CHANNELS: usize = 257;

/// Powers of two that a size in sectors can have: none, 1, up to 2, up to 4, ... up to 2^32.
const SIZES: usize = 34;

/// Powers of two that a time in nanoseconds can have: 0, from 1, from 2, from 4, ...
const INTERVALS: usize = 65;

/// Counts of what requests are like.
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
    /// A request was issued. They come in the order of issue; one that arrived before its predecessor counts as having
    /// arrived with it.
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

    /// A request has completed, and this is what its time went into.
    #[inline]
    pub fn completed(&mut self, operation: Operation, breakdown: &Breakdown) {
        self.attributed = true;
        self.channels[operation.index()][(breakdown.channels as usize).min(CHANNELS - 1)] += 1;
    }

    /// Requests of an operation by size: the greatest number of bytes of each class, in which the least is one more
    /// than that of the class before, and the requests. From the first class that has any to the last.
    pub fn sizes(&self, operation: Operation) -> Vec<(u64, u64)> {
        let most = |class: usize| if class == 0 { 0 } else { SECTOR << (class - 1) };
        filled(&self.sizes[operation.index()]).map(|(class, count)| (most(class), count)).collect()
    }

    /// Requests by the time since the one before: the least of each class in nanoseconds, in which the greatest is
    /// below that of the next class, and the requests. From the first class that has any to the last.
    pub fn intervals(&self) -> Vec<(u64, u64)> {
        let least = |class: usize| if class == 0 { 0 } else { 1 << (class - 1) };
        filled(&self.intervals).map(|(class, count)| (least(class), count)).collect()
    }

    /// Requests of an operation by the channels that they used: none, 1, 2, ...; `None` where nobody told. The last
    /// count of 257 stands for more, too.
    pub fn channels(&self, operation: Operation) -> Option<Vec<u64>> {
        let counts = &self.channels[operation.index()];
        let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        self.attributed.then(|| counts[..used].to_vec())
    }
}

/// The counts with their places, from the first that is not 0 to the last.
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
        // 0, 1000, 24, 0 ns from one to the next; the last is out of order.
        for ns in [5, 5, 1005, 1029, 1028] {
            profile.issued(&Request::new(Time::from_ns(ns), Operation::Read, 0, 8));
        }
        let intervals: Vec<_> = profile.intervals().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(intervals, [(0, 2), (16, 1), (512, 1)]);
        assert_eq!(Profile::default().intervals(), []);
    }

    #[test]
    fn channels_are_counted_where_they_are_told() {
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
