//! Throttle of host writes: delays them while few blocks are free (`gc.throttle`), so that garbage collection keeps up
//! before the host has to wait for whole victims, or admits them at the rate of write-back (`buffer.credits`).
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

/// Fill level of a buffer, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillLevel {
    /// Units that are dirty or in flight to flash.
    pub used: u64,
    /// Units at `buffer.high_water`.
    pub high: u64,
    /// Units that fit.
    pub capacity: u64,
    /// Units whose write-back has started so far.
    pub written: u64,
}

/// Throttle of a device.
#[derive(Clone, Debug)]
pub struct Throttle {
    rule: Rule,
    state: State,
    /// Time for which writes have been delayed, without the current delay.
    spent: Time,
    /// Value of `spent` at the arrival of each write that has not been admitted, in order.
    marks: VecDeque<Time>,
}

/// Rule for the delay of a write.
#[derive(Clone, Debug)]
enum Rule {
    Blocks(FreeBlocks),
    Credits(Credits),
}

/// Delay that grows linearly as free blocks become fewer (`gc.throttle`).
#[derive(Clone, Debug)]
struct FreeBlocks {
    /// Free blocks of all planes below which writes are delayed.
    below: u64,
    /// Free blocks of all planes at or below which the delay is longest.
    min: u64,
    /// Longest delay of a mapping unit.
    delay: Time,
    /// Free blocks of all planes, when the lists of free blocks had changed this often.
    free: (u64, u64),
}

impl FreeBlocks {
    /// Returns the delay of a write of `units` units.
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
}

/// Admission at the rate of write-back, while the buffer is fuller than its high-water mark (`buffer.credits`).
#[derive(Clone, Debug, Default)]
struct Credits {
    window: Time,
    /// Start of the current window, and the units that were written back until then.
    began: (Time, u64),
    /// Time between two units of write-back in the last window that was above the mark throughout.
    interval: Option<Time>,
    /// Earliest admission of the next write.
    next: Time,
}

impl Credits {
    /// Returns the delay of a write of `units` units. In the middle half between the mark and a full buffer, a unit is
    /// admitted for each unit that leaves. Below, writes wait less, down to no time at the mark. Above, they wait
    /// longer, up to twice the time in a full buffer.
    fn delay_of(&mut self, level: FillLevel, units: u32, now: Time) -> Time {
        let above = level.used.saturating_sub(level.high);
        if above == 0 {
            (self.began, self.next) = ((now, level.written), now);
            return Time::ZERO;
        }
        let (span, left) = (now.since(self.began.0), level.written - self.began.1);
        if span >= self.window && left > 0 {
            let newest = span.0 / left;
            // The mean of about the last eight windows.
            self.interval = Some(Time(self.interval.map_or(newest, |mean| (7 * mean.0 + newest) / 8)));
            self.began = (now, level.written);
        }
        let due = self.next.max(now);
        let interval = u128::from(self.interval.map_or(0, |interval| interval.0));
        let band = level.capacity - level.high;
        let share = if 4 * above < band { 4 * above } else { band + (4 * above).saturating_sub(3 * band) };
        let apart = interval * u128::from(units) * u128::from(share) / u128::from(band);
        self.next = due.later(Time(u64::try_from(apart).unwrap_or(u64::MAX)));
        due - now
    }
}

impl Throttle {
    /// Creates the throttle of an idle device. Returns `None` if the device has none.
    pub fn new(config: &DeviceConfig) -> Option<Throttle> {
        let of_all = |blocks: u32| u64::from(blocks) * u64::from(config.total_planes());
        let blocks = config.gc.throttle.as_ref().map(|throttle| {
            Rule::Blocks(FreeBlocks {
                below: of_all(throttle.below.of(config.geometry.blocks)),
                min: of_all(config.hard_threshold()),
                delay: throttle.delay.time(),
                free: (0, u64::MAX),
            })
        });
        let credits = config
            .active_buffer()
            .and_then(|buffer| buffer.credits)
            .map(|window| Rule::Credits(Credits { window: window.time(), ..Credits::default() }));
        let rule = blocks.or(credits)?;
        Some(Throttle { rule, state: State::New, spent: Time::ZERO, marks: VecDeque::new() })
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
    /// Decides whether the first write in the queue, which has room, may be admitted. May delay it.
    #[cold]
    pub fn pass(
        &mut self,
        write: &Pending,
        ftl: &Ftl,
        level: impl FnOnce() -> Option<FillLevel>,
        now: Time,
    ) -> Passage {
        if write.admitted > 0 {
            return Passage::Free;
        }
        match self.state {
            State::Delayed(_) => return Passage::Waits,
            State::New if write.request.operation == Operation::Write => {
                let delay = match &mut self.rule {
                    Rule::Blocks(rule) => rule.delay_of(ftl, write.units),
                    Rule::Credits(rule) => level().map_or(Time::ZERO, |level| rule.delay_of(level, write.units, now)),
                };
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

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 1_000;

    fn level(used: u64, written: u64) -> FillLevel {
        FillLevel { used, high: 100, capacity: 200, written }
    }

    /// Returns credits after a window in which 10 units left, `UNIT` after each other.
    fn measured() -> Credits {
        let mut credits = Credits { window: Time(10 * UNIT), ..Credits::default() };
        assert_eq!(credits.delay_of(level(100, 5), 1, Time(UNIT)), Time::ZERO);
        assert_eq!(credits.delay_of(level(150, 14), 1, Time(11 * UNIT - 1)), Time::ZERO, "no rate is known");
        assert_eq!(credits.delay_of(level(150, 15), 1, Time(11 * UNIT)), Time::ZERO);
        credits
    }

    #[test]
    fn writes_are_admitted_at_the_rate_of_write_back() {
        // The write before was admitted at 11.
        for (used, units, apart) in [
            (101, 1, UNIT / 25),
            (112, 1, 12 * UNIT / 25),
            (125, 1, UNIT),
            (150, 1, UNIT),
            (175, 1, UNIT),
            (200, 1, 2 * UNIT),
            (150, 8, 8 * UNIT),
        ] {
            let mut credits = measured();
            let now = Time(11 * UNIT);
            let next = now + Time(UNIT);
            assert_eq!(credits.delay_of(level(used, 15), units, now), Time(UNIT), "{used}");
            assert_eq!(credits.delay_of(level(150, 15), 1, next), Time(apart), "{used}");
        }
    }

    #[test]
    fn a_write_that_comes_late_does_not_wait() {
        let mut credits = measured();
        assert_eq!(credits.delay_of(level(150, 15), 1, Time(15 * UNIT)), Time::ZERO);
        assert_eq!(credits.delay_of(level(150, 15), 1, Time(15 * UNIT)), Time(UNIT));
        // At the mark, no write waits, and the next window starts.
        assert_eq!(credits.delay_of(level(100, 18), 1, Time(16 * UNIT)), Time::ZERO);
        assert_eq!(credits.delay_of(level(150, 18), 1, Time(16 * UNIT)), Time::ZERO);
    }

    #[test]
    fn the_rate_is_the_mean_of_windows() {
        let mut credits = measured();
        // 5 units left in the next window: 2 UNIT each. The mean is (7 + 2) / 8.
        assert_eq!(credits.delay_of(level(150, 20), 1, Time(21 * UNIT)), Time::ZERO);
        assert_eq!(credits.delay_of(level(150, 20), 1, Time(21 * UNIT)), Time(9 * UNIT / 8));
    }
}
