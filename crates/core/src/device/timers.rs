//! Timers: the event sources of the device, except the execution units and channels of the array.
//!
//! The event queue orders events by time, then by when they were set. The numbers of the sources do not matter.

use super::Device;
use crate::config::DeviceConfig;
use crate::ftl::gc::IdleWork;
use crate::sim::time::Time;

/// An event source. Each has at most one pending event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Host link: the data of the next step of a request have crossed it.
    Link,
    /// Completions in flight to the host: the next one arrives.
    Completion,
    /// Program units that are being filled: the first writes have waited for `controller.fill_timeout`.
    Fill,
    /// Buffer memory: the next access ends.
    Memory,
    /// Buffer: no request was outstanding for `buffer.idle`.
    BufferIdle,
    /// Garbage collection: no request was outstanding for `gc.background.idle`.
    Background,
    /// Folding: no request was outstanding for `slc_cache.idle`.
    Fold,
    /// Throttle: the delay of the next write ends.
    Throttle,
    /// Core with this number: its work ends.
    Core(u32),
}

impl Timer {
    /// Returns the timer with a number, counted from the end of the array's numbers.
    #[inline]
    pub(super) const fn of(number: u32) -> Timer {
        match number {
            0 => Timer::Link,
            1 => Timer::Completion,
            2 => Timer::Fill,
            3 => Timer::Memory,
            4 => Timer::BufferIdle,
            5 => Timer::Background,
            6 => Timer::Throttle,
            7 => Timer::Fold,
            core => Timer::Core(core - Timer::Core(0).number()),
        }
    }

    /// Returns the number of the timer, counted from the end of the array's numbers.
    #[inline]
    const fn number(self) -> u32 {
        match self {
            Timer::Link => 0,
            Timer::Completion => 1,
            Timer::Fill => 2,
            Timer::Memory => 3,
            Timer::BufferIdle => 4,
            Timer::Background => 5,
            Timer::Throttle => 6,
            Timer::Fold => 7,
            Timer::Core(core) => 8 + core,
        }
    }

    /// Returns the timer of work in idle time.
    pub(super) const fn of_idle(work: IdleWork) -> Timer {
        match work {
            IdleWork::Collect => Timer::Background,
            IdleWork::Fold => Timer::Fold,
        }
    }

    /// Returns the number of timers that a device needs. Optional timers have the last numbers, because each timer
    /// makes the event queue larger.
    pub(super) fn count(config: &DeviceConfig) -> u32 {
        let end = if let Some(firmware) = &config.controller.firmware {
            Timer::Core(firmware.cores)
        } else if config.slc_cache.is_some() {
            Timer::Core(0)
        } else if config.gc.throttle.is_some() {
            Timer::Fold
        } else if config.gc.background.is_some() {
            Timer::Throttle
        } else if config.active_buffer().is_some() {
            Timer::Background
        } else {
            Timer::Memory
        };
        end.number()
    }
}

/// Number of events of timers without progress that are allowed in addition to one for each request, place in the
/// queue, and plane.
const QUIET_TIMERS: usize = 64;

/// Number of consecutive events of timers without progress, in debug builds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quiet(usize);

impl Device {
    /// Notes progress: an operation of the array, or a step of a request.
    #[inline(always)]
    pub(super) fn note_progress(&mut self) {
        if cfg!(debug_assertions) {
            self.quiet = Quiet(0);
        }
    }

    /// Notes an event of a timer. In debug builds, fails if timers are set again and again although nothing changes.
    #[inline(always)]
    pub(super) fn note_timer(&mut self, timer: Timer) {
        if !cfg!(debug_assertions) {
            return;
        }
        match timer {
            // Each event moves a request on.
            Timer::Link | Timer::Memory => self.note_progress(),
            // Partial program units wait for units that a core is about to write.
            Timer::Fill if self.interface.cores.as_deref().is_some_and(|cores| !cores.are_idle()) => {}
            // Work of the cores is progress, except for the choice of a victim, which may find none.
            Timer::Core(_) => self.quiet.0 += 1,
            // Each event frees places, starts operations, or lets a write pass. If not, it must not be set again.
            Timer::Completion | Timer::Fill | Timer::BufferIdle | Timer::Background | Timer::Fold | Timer::Throttle => {
                self.quiet.0 += 1;
            }
        }
        let most = QUIET_TIMERS + self.outstanding() + self.interface.depth() + self.config.total_planes() as usize;
        assert!(self.quiet.0 <= most, "{timer:?} is set again without progress: {}", self.explain_stall());
    }

    /// Sets the event of a timer and replaces its pending one.
    #[inline]
    pub(super) fn set_timer(&mut self, timer: Timer, at: Time) {
        let number = self.array.first_other() + timer.number();
        self.array.events().set(number, at);
    }

    /// Removes the event of a timer.
    pub(super) fn clear_timer(&mut self, timer: Timer) {
        let number = self.array.first_other() + timer.number();
        self.array.events().clear(number);
    }

    /// Returns the time of the event of a timer, if it has one.
    #[inline]
    pub(super) fn timer(&mut self, timer: Timer) -> Option<Time> {
        let number = self.array.first_other() + timer.number();
        self.array.events().time_of(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timer_has_a_number_of_its_own() {
        let timers = [
            Timer::Link,
            Timer::Completion,
            Timer::Fill,
            Timer::Memory,
            Timer::BufferIdle,
            Timer::Background,
            Timer::Throttle,
            Timer::Fold,
            Timer::Core(0),
            Timer::Core(7),
        ];
        for timer in timers {
            assert_eq!(Timer::of(timer.number()), timer);
        }
    }
}
