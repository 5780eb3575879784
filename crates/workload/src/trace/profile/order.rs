//! Deviation of a trace from timestamp order.

use std::collections::VecDeque;

/// Number of stored times. If a request is more positions late than this, the result is only a lower bound.
const KEPT: usize = 1 << 16;

/// Collects the times of requests, in the order of the file.
#[derive(Debug, Default)]
pub struct Order {
    /// Greatest times so far, in order.
    greatest: VecDeque<i128>,
    late: u64,
    window: u64,
}

impl Order {
    /// Adds a time.
    pub fn add(&mut self, ps: i128) {
        let place = match self.greatest.back() {
            Some(last) if *last > ps => self.greatest.partition_point(|time| *time <= ps),
            _ => self.greatest.len(),
        };
        let later = self.greatest.len() - place;
        self.late += u64::from(later > 0);
        self.window = self.window.max(later as u64);
        self.greatest.insert(place, ps);
        if self.greatest.len() > KEPT {
            self.greatest.pop_front();
        }
    }

    /// Returns the number of requests that follow a later one.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the smallest sort window that restores the order: the maximum number of later requests before a request.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Returns `true` if the window is only a lower bound.
    pub fn is_beyond(&self) -> bool {
        self.window >= KEPT as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_window_by_hand() {
        let mut order = Order::default();
        [10, 20, 30, 30, 15, 40, 5].into_iter().for_each(|ps| order.add(ps));
        // 15 follows three later ones, 5 follows six.
        assert_eq!((order.late(), order.window()), (2, 6));
    }

    proptest! {
        #[test]
        fn the_window_matches_a_count(times in proptest::collection::vec(-50..50_i128, 0..80)) {
            let mut order = Order::default();
            times.iter().for_each(|ps| order.add(*ps));
            let later = |n: usize| times[..n].iter().filter(|time| **time > times[n]).count() as u64;
            prop_assert_eq!(order.window(), (0..times.len()).map(later).max().unwrap_or(0));
        }
    }
}
