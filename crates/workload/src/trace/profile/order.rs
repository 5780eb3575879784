//! How far a trace is from the order of time.

use std::collections::VecDeque;

/// Times that are kept: a request that comes later than this is said to come at least so late.
const KEPT: usize = 1 << 16;

/// Watches the times of requests go by, in the order of the file.
#[derive(Debug, Default)]
pub struct Order {
    /// The greatest times so far, in order.
    greatest: VecDeque<i128>,
    late: u64,
    window: u64,
}

impl Order {
    /// Takes a time in.
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

    /// Requests that stand behind one that came later.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The least window that brings all in order: the most requests that stand before one and came later.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Whether the window is only the least that it can be.
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
        // 15 stands behind three later ones, 5 behind six.
        assert_eq!((order.late(), order.window()), (2, 6));
    }

    proptest! {
        #[test]
        fn the_window_is_what_a_count_says(times in proptest::collection::vec(-50..50_i128, 0..80)) {
            let mut order = Order::default();
            times.iter().for_each(|ps| order.add(*ps));
            let later = |n: usize| times[..n].iter().filter(|time| **time > times[n]).count() as u64;
            prop_assert_eq!(order.window(), (0..times.len()).map(later).max().unwrap_or(0));
        }
    }
}
