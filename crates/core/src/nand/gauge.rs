//! Lengths of the queues of gangs over time. Only devices with a table `gang` measure them.

use crate::config::DeviceConfig;
use crate::sim::id::LunId;
use crate::sim::time::Time;

/// Queue of a gang: the operations that wait for its LUNs. With dynamic allocation, a write waits from the time at
/// which it is assigned to a LUN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSample {
    /// Number of operations that were queued so far.
    pub operations: u64,
    /// Number of waiting operations, integrated over time, in operations times picoseconds.
    pub area: u128,
    /// Maximum number of waiting operations since the start of the measured part.
    pub longest: u32,
}

impl QueueSample {
    /// Returns the queue since `earlier`.
    pub fn since(self, earlier: &QueueSample) -> QueueSample {
        QueueSample {
            operations: self.operations - earlier.operations,
            area: self.area - earlier.area,
            longest: self.longest,
        }
    }
}

/// Queue that is being measured.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    length: u32,
    longest: u32,
    operations: u64,
    /// Time of the last change, and the lengths up to then, integrated over time.
    since: Time,
    area: u128,
}

impl Queue {
    fn area_at(&self, at: Time) -> u128 {
        self.area + u128::from(self.length) * u128::from(at.since(self.since).0)
    }
}

/// Queues of all gangs.
#[derive(Clone, Debug)]
pub struct Gauge {
    now: Time,
    luns_per_gang: u32,
    queues: Vec<Queue>,
}

impl Gauge {
    /// Creates empty queues. Returns `None` for a device without gangs.
    pub fn new(config: &DeviceConfig, luns: u32) -> Option<Gauge> {
        let gangs = config.gangs();
        (gangs > 0).then(|| Gauge {
            now: Time::ZERO,
            luns_per_gang: luns / gangs,
            queues: vec![Queue::default(); gangs as usize],
        })
    }

    /// Sets the time of the changes that follow.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    fn change(&mut self, lun: LunId) -> &mut Queue {
        let queue = &mut self.queues[(lun.0 / self.luns_per_gang) as usize];
        let now = self.now;
        (queue.area, queue.since) = (queue.area_at(now), now);
        queue
    }

    /// Records that `count` operations start to wait for a LUN.
    pub fn add(&mut self, lun: LunId, count: u32) {
        let queue = self.change(lun);
        queue.length += count;
        queue.operations += u64::from(count);
        queue.longest = queue.longest.max(queue.length);
    }

    /// Records that an operation no longer waits for a LUN.
    pub fn remove(&mut self, lun: LunId) {
        self.change(lun).length -= 1;
    }

    /// Starts to search for the longest queues again.
    pub fn reset(&mut self) {
        self.queues.iter_mut().for_each(|queue| queue.longest = queue.length);
    }

    /// Samples the queues at `at`, which is not before the last change.
    pub fn sample(&self, at: Time, into: &mut Vec<QueueSample>) {
        into.extend(self.queues.iter().map(|queue| QueueSample {
            operations: queue.operations,
            area: queue.area_at(at),
            longest: queue.longest,
        }));
    }
}
