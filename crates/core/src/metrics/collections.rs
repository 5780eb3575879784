//! Collections of blocks: their number in each package, and their duration.

use crate::sim::id::PlaneId;
use crate::sim::time::Time;

/// Collections since the device was created. Only differences of the time are meaningful.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionCounts {
    /// Number of victims whose erase has ended, indexed by package.
    pub ended: Vec<u64>,
    /// Number of victims that are being collected, integrated over time, in blocks times picoseconds.
    pub time: i64,
}

impl CollectionCounts {
    /// Returns the collections since `earlier`.
    pub fn since(&self, earlier: &CollectionCounts) -> CollectionCounts {
        CollectionCounts {
            ended: self.ended.iter().zip(&earlier.ended).map(|(now, before)| now - before).collect(),
            time: self.time.wrapping_sub(earlier.time),
        }
    }

    /// Returns the mean duration in microseconds, or `None` if no erase has ended.
    pub fn mean_us(&self) -> Option<f64> {
        let ended: u64 = self.ended.iter().sum();
        (ended > 0).then(|| self.time as f64 / ended as f64 / 1e6)
    }

    /// Adds the collections of another SSD, whose packages follow.
    pub fn add(&mut self, other: &CollectionCounts) {
        self.ended.extend_from_slice(&other.ended);
        self.time = self.time.wrapping_add(other.time);
    }
}

/// Counters of collections. The order in which victims end does not matter, because the sum of their durations is the
/// sum of their ends less that of their starts.
#[derive(Clone, Debug)]
pub struct Collections {
    ended: Vec<u64>,
    planes_per_package: u32,
    running: u64,
    ends_less_starts: i64,
}

impl Collections {
    /// Creates the counters of `planes` planes.
    pub fn new(planes: u32, planes_per_package: u32) -> Collections {
        let ended = vec![0; planes.div_ceil(planes_per_package) as usize];
        Collections { ended, planes_per_package, running: 0, ends_less_starts: 0 }
    }

    /// Notes that a victim was chosen.
    pub fn start(&mut self, now: Time) {
        self.running += 1;
        self.ends_less_starts = self.ends_less_starts.wrapping_sub(now.0 as i64);
    }

    /// Notes that the erase of a victim of a plane has ended.
    pub fn end(&mut self, plane: PlaneId, now: Time) {
        self.ended[(plane.0 / self.planes_per_package) as usize] += 1;
        self.stop(now);
    }

    /// Notes that a victim is collected without time.
    pub fn stop(&mut self, now: Time) {
        self.running = self.running.wrapping_sub(1);
        self.ends_less_starts = self.ends_less_starts.wrapping_add(now.0 as i64);
    }

    /// Writes the collections up to `at` into `counts`.
    pub fn until(&self, at: Time, counts: &mut CollectionCounts) {
        counts.ended.clone_from(&self.ended);
        counts.time = self.ends_less_starts.wrapping_add((self.running as i64).wrapping_mul(at.0 as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_integrated_over_time() {
        let mut collections = Collections::new(4, 2);
        let (mut earlier, mut later) = (CollectionCounts::default(), CollectionCounts::default());
        collections.start(Time(10));
        collections.start(Time(20));
        collections.until(Time(30), &mut earlier);
        assert_eq!(earlier, CollectionCounts { ended: vec![0, 0], time: 20 + 10 });
        collections.end(PlaneId(1), Time(50));
        collections.start(Time(60));
        collections.end(PlaneId(3), Time(70));
        collections.end(PlaneId(2), Time(90));
        collections.until(Time(100), &mut later);
        assert_eq!(later, CollectionCounts { ended: vec![1, 2], time: 40 + 50 + 30 });
        assert_eq!(later.since(&earlier), CollectionCounts { ended: vec![1, 2], time: 90 });
        later.add(&earlier);
        assert_eq!(later, CollectionCounts { ended: vec![1, 2, 0, 0], time: 150 });
    }
}
