//! Throttle of host writes: delays them while few blocks are free (`gc.throttle`), so that garbage collection keeps up
//! before the host has to wait for whole victims.
//!
//! The first unit of a write is admitted after the delay of all its units. Writes are admitted in order of arrival, so
//! those behind it wait too. See docs/model/gc.md.

use std::collections::VecDeque;

use super::Device;
use super::timers::Timer;
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::space::Role;
use crate::sim::id::{PlaneId, RequestId};
use crate::sim::request::Operation;
use crate::sim::time::Time;

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
pub(super) struct Throttle {
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
    pub(super) fn new(config: &DeviceConfig) -> Option<Throttle> {
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

impl Device {
    /// Notes that a write waits for admission.
    #[inline]
    pub(super) fn mark_arrival(&mut self) {
        if let Some(throttle) = &mut self.throttle {
            throttle.marks.push_back(throttle.spent(self.now));
        }
    }

    /// Notes that the first write in the queue has been admitted as a whole.
    #[inline]
    pub(super) fn mark_admission(&mut self) {
        if let Some(throttle) = &mut self.throttle {
            throttle.marks.pop_front();
        }
    }

    /// Returns `true` if the first write in the queue, which has room, may be admitted. Otherwise delays it.
    #[inline(always)]
    pub(super) fn passes_throttle(&mut self, id: RequestId) -> bool {
        self.throttle.is_none() || self.delay_write(id)
    }

    /// Delays the first write in the queue if blocks are short. Returns `true` if it may be admitted.
    #[cold]
    fn delay_write(&mut self, id: RequestId) -> bool {
        let Some(throttle) = &mut self.throttle else { return true };
        let pending = &self.interface.requests[id];
        if pending.admitted > 0 {
            return true;
        }
        match throttle.state {
            State::Delayed(_) => return false,
            State::New if pending.request.operation == Operation::Write => {
                let delay = throttle.delay_of(&self.ftl, self.interface.units_of(id));
                if delay > Time::ZERO {
                    throttle.state = State::Delayed(self.now);
                    self.set_timer(Timer::Throttle, self.now.later(delay));
                    return false;
                }
            }
            State::New | State::Passed => {}
        }
        throttle.state = State::New;
        let before = throttle.marks.front().copied().unwrap_or(throttle.spent);
        let delayed = throttle.spent.since(before);
        self.observe_throttled(id, delayed);
        true
    }

    /// Handles the end of a delay.
    pub(super) fn throttle_event(&mut self) {
        if let Some(throttle) = &mut self.throttle {
            (throttle.spent, throttle.state) = (throttle.spent(self.now), State::Passed);
            self.admit();
        }
    }
}
