//! Timers: the event sources of the device, except the execution units and channels of the array.
//!
//! The event queue orders events by time, then by when they were set. The numbers of the sources do not matter.

use crate::config::DeviceConfig;
use crate::ftl::gc::IdleWork;
use crate::host::interface::HostInterface;
use crate::nand::array::Array;
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
    /// Error correction: the data of the next read are decoded.
    Decoding,
    /// Submission queues: the fetch of commands ends.
    Fetch,
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
            8 => Timer::Decoding,
            9 => Timer::Fetch,
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
            Timer::Decoding => 8,
            Timer::Fetch => 9,
            Timer::Core(core) => 10 + core,
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
        } else if config.host.queues.is_some() {
            Timer::Core(0)
        } else if config.errors.is_some() {
            Timer::Fetch
        } else if config.slc_cache.is_some() {
            Timer::Decoding
        } else if config.gc.throttle.is_some() || config.active_buffer().is_some_and(|buffer| buffer.credits.is_some())
        {
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

impl Quiet {
    /// Notes progress: an operation of the array, or a step of a request.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        if cfg!(debug_assertions) {
            self.0 = 0;
        }
    }

    /// Notes an event of a timer. Returns `false` if timers were set again and again although nothing changes.
    pub(super) fn allows(&mut self, timer: Timer, interface: &HostInterface, planes: u32) -> bool {
        match timer {
            // Each event moves a request on.
            Timer::Link | Timer::Memory | Timer::Decoding | Timer::Fetch => self.end(),
            // Partial program units wait for units that a core is about to write.
            Timer::Fill if interface.cores.as_deref().is_some_and(|cores| !cores.are_idle()) => {}
            // Work of the cores is progress, except for the choice of a victim, which may find none.
            Timer::Core(_) => self.0 += 1,
            // Each event frees places, starts operations, or lets a write pass. If not, it must not be set again.
            Timer::Completion | Timer::Fill | Timer::BufferIdle | Timer::Background | Timer::Fold | Timer::Throttle => {
                self.0 += 1;
            }
        }
        self.0 <= QUIET_TIMERS + interface.outstanding() + interface.depth() + planes as usize
    }
}

/// The pending event of a timer, in the queue of the array.
impl Timer {
    /// Sets the event, and replaces the pending one.
    #[inline]
    pub(super) fn set(self, array: &mut Array, at: Time) {
        let number = array.first_other() + self.number();
        array.events().set(number, at);
    }

    /// Sets the event if there is a time for it.
    #[inline]
    pub(super) fn set_if(self, array: &mut Array, at: Option<Time>) {
        if let Some(at) = at {
            self.set(array, at);
        }
    }

    /// Sets the event, unless it is pending at this time. Removes it if there is no time for it.
    pub(super) fn renew(self, array: &mut Array, at: Option<Time>) {
        if self.time(array) != at {
            self.set_if(array, at);
        }
        if at.is_none() {
            let number = array.first_other() + self.number();
            array.events().clear(number);
        }
    }

    /// Returns the time of the pending event, if there is one.
    #[inline]
    pub(super) fn time(self, array: &mut Array) -> Option<Time> {
        let number = array.first_other() + self.number();
        array.events().time_of(number)
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
            Timer::Decoding,
            Timer::Fetch,
            Timer::Core(0),
            Timer::Core(7),
        ];
        for timer in timers {
            assert_eq!(Timer::of(timer.number()), timer);
        }
    }
}
