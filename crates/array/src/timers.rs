//! Timers of the array's controller, and the owners of requests to members.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use floatgate_core::sim::id::RequestId;
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::slab::Slab;
use floatgate_core::sim::time::Time;

/// Owner of a request to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Part of a request of the host.
    Host(RequestId),
    /// Stripe operation.
    Operation(u32),
}

/// Bit of a tag that marks a stripe operation.
const OPERATION: u64 = 1 << 63;

impl Owner {
    /// Returns the owner of a tag.
    #[inline]
    pub fn of(tag: u64) -> Owner {
        let id = ((tag & !OPERATION) >> 32) as u32;
        if tag & OPERATION == 0 { Owner::Host(RequestId(id)) } else { Owner::Operation(id) }
    }

    /// Returns the tag of requests of this owner, with a serial number of 0.
    #[inline]
    pub fn tag(self) -> u64 {
        match self {
            Owner::Host(id) => u64::from(id.0) << 32,
            Owner::Operation(id) => OPERATION | u64::from(id) << 32,
        }
    }
}

/// Event of the controller.
#[derive(Clone, Copy, Debug)]
pub enum Timer {
    /// The completion of this member reaches the controller.
    Part(u32, Completion),
    /// The parity engine has finished a stripe operation.
    Computed(u32),
    /// The next stripe of the rebuild may start.
    Rebuild,
    /// The next stripe may be compared after a power cut.
    Resync,
    /// The next members may collect garbage.
    Turn,
}

/// Events of the controller, in the order of time. At equal times, those that were set first come first.
#[derive(Clone, Debug)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, u32)>>,
    timers: Slab<u32, Timer>,
    set: u64,
    first: Time,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new(), timers: Slab::default(), set: 0, first: Time::NEVER }
    }
}

impl Timers {
    /// Sets a timer.
    pub fn set(&mut self, at: Time, timer: Timer) {
        let slot = self.timers.insert(timer);
        self.heap.push(Reverse((at, self.set, slot)));
        self.set += 1;
        self.first = self.first.min(at);
    }

    /// Sets the timer of a completion that reaches the controller at `at`.
    pub fn part(&mut self, at: Time, member: u32, completion: Completion) {
        self.set(at, Timer::Part(member, completion));
    }

    /// Passes the completions that reach the controller later to `found`.
    pub fn parts(&self, mut found: impl FnMut(&Completion)) {
        for Reverse((_, _, slot)) in &self.heap {
            if let Timer::Part(_, completion) = &self.timers[*slot] {
                found(completion);
            }
        }
    }

    /// Returns the time of the first timer, or [`Time::NEVER`].
    #[inline]
    pub fn first(&self) -> Time {
        self.first
    }

    /// Removes and returns the first timer.
    pub fn pop(&mut self) -> Option<Timer> {
        let Reverse((_, _, slot)) = self.heap.pop()?;
        self.first = self.heap.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        Some(self.timers.remove(slot))
    }
}
