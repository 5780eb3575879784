//! Throttle of host writes: delays them while few blocks are free (`gc.throttle`), so that garbage collection keeps up
//! before the host has to wait for whole victims.
//!
//! The first unit of a write is admitted after the delay of all its units. Writes are admitted in order of arrival, so
//! those behind it wait too. See docs/model/gc.md.

use std::collections::VecDeque;

use super::requests::Pending;
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::space::Role;
use crate::sim::id::PlaneId;
use crate::sim::request::Operation;
use crate::sim::time::Time;

/// Answer to whether the first write in the queue, which has room, may be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The write is admitted.
    Free,
    /// The write is admitted, after the throttle has delayed it for this time.
    Delayed(Time),
    /// The write is delayed until this time.
    Until(Time),
    /// The write is being delayed.
    Waits,
}

/// State of the write that is admitted next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not delayed yet.
    New,
    /// Delayed since this time.
    Delayed(Time),
    /// Delayed for long enough.
    Passed,
}

/// Throttle of a device.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// Free blocks of all planes below which writes are delayed.
    below: u64,
    /// Free blocks of all planes at or below which the delay is longest.
    min: u64,
    /// Longest delay of a mapping unit.
    delay: Time,
    /// Free blocks of all planes, when the lists of free blocks had changed this often.
    free: (u64, u64),
    state: State,
    /// Time for which writes have been delayed, without the current delay.
    spent: Time,
    /// Value of `spent` at the arrival of each write that has not been admitted, in order.
    marks: VecDeque<Time>,
}

impl Throttle {
    /// Creates the throttle of an idle device. Returns `None` if the device has none.
    pub fn new(config: &DeviceConfig) -> Option<Throttle> {
        let throttle = config.gc.throttle.as_ref()?;
        let of_all = |blocks: u32| u64::from(blocks) * u64::from(config.total_planes());
        Some(Throttle {
            below: of_all(throttle.below.of(config.geometry.blocks)),
            min: of_all(config.hard_threshold()),
            delay: throttle.delay.time(),
            free: (0, u64::MAX),
            state: State::New,
            spent: Time::ZERO,
            marks: VecDeque::new(),
        })
    }

    /// Returns the delay of a write of `units` units. It grows linearly as free blocks become fewer.
    fn delay_of(&mut self, ftl: &Ftl, units: u32) -> Time {
        let changes = ftl.blocks.free_changes();
        if self.free.1 != changes {
            let planes = (0..ftl.shape().planes).map(PlaneId);
            self.free = (planes.map(|plane| u64::from(ftl.blocks.free_blocks(plane, Role::Data))).sum(), changes);
        }
        let missing = self.below.saturating_sub(self.free.0).min(self.below - self.min);
        let delay = u128::from(self.delay.0) * u128::from(units) * u128::from(missing);
        Time(u64::try_from(delay / u128::from(self.below - self.min)).unwrap_or(u64::MAX))
    }

    /// Returns the time for which writes have been delayed until `now`.
    fn spent(&self, now: Time) -> Time {
        match self.state {
            State::Delayed(since) => self.spent + now.since(since),
            _ => self.spent,
        }
    }
}

impl Throttle {
    /// Decides whether the first write in the queue, which has room, may be admitted. Delays it if blocks are short.
    #[cold]
    pub fn pass(&mut self, write: &Pending, ftl: &Ftl, now: Time) -> Passage {
        if write.admitted > 0 {
            return Passage::Free;
        }
        match self.state {
            State::Delayed(_) => return Passage::Waits,
            State::New if write.request.operation == Operation::Write => {
                let delay = self.delay_of(ftl, write.units);
                if delay > Time::ZERO {
                    self.state = State::Delayed(now);
                    return Passage::Until(now.later(delay));
                }
            }
            State::New | State::Passed => {}
        }
        self.state = State::New;
        let before = self.marks.front().copied().unwrap_or(self.spent);
        Passage::Delayed(self.spent.since(before))
    }

    /// Ends the delay of the first write in the queue.
    pub fn end_delay(&mut self, now: Time) {
        (self.spent, self.state) = (self.spent(now), State::Passed);
    }

    /// Notes that a write waits for admission.
    pub fn mark_arrival(&mut self, now: Time) {
        self.marks.push_back(self.spent(now));
    }

    /// Notes that the first write in the queue has been admitted as a whole.
    pub fn mark_admission(&mut self) {
        self.marks.pop_front();
    }
}
