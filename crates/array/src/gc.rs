//! Staggered garbage collection: members take turns, so that few collect at the same time.
//!
//! A member without its turn collects only at its hard threshold. Mirrors are read from a copy that does not have its
//! turn, and stripes with parity without the members that have their turn, as in Rails (Skourtis et al., USENIX ATC
//! 2014).

use floatgate_core::sim::time::Time;

use crate::array::SsdArray;
use crate::progress::Turns;
use crate::timers::Timer;

impl SsdArray {
    /// Returns `true` if garbage collection is staggered and a member has its turn.
    #[inline]
    pub(crate) fn has_turn(&self, member: u32) -> bool {
        self.turns.is_some_and(|turns| turns.include(member, self.layout.members()))
    }

    /// Returns `true` if reads use a member's chunk of a stripe with parity. They do not use the chunks of members that
    /// have their turn if all data can be computed without them, and parity is known to agree with the data.
    #[inline]
    pub(crate) fn is_source(&self, member: u32, row: u64) -> bool {
        let is_sound = !self.is_degraded && self.resyncing.is_none();
        let avoids = |turns: Turns| is_sound && turns.options.members <= self.layout.level().parities();
        self.is_alive(member, row) && !(self.turns.is_some_and(avoids) && self.has_turn(member))
    }

    /// Starts the timer of the turns, if it does not run. It stops when nothing is left to do.
    #[inline]
    pub(crate) fn start_turns(&mut self) {
        let Some(turns) = &mut self.turns else { return };
        if std::mem::replace(&mut turns.is_running, true) {
            return;
        }
        let window = turns.options.window.time();
        let has_begun = std::mem::replace(&mut turns.has_begun, true);
        self.timers.set(self.now.later(window), Timer::Turn);
        if !has_begun {
            for member in 0..self.layout.members() {
                self.hold(member, !self.has_turn(member));
            }
        }
    }

    /// Passes the turn on to the next members.
    pub(crate) fn next_turn(&mut self) {
        let Some(mut turns) = self.turns else { return };
        let count = self.layout.members();
        let before = turns;
        turns.first = (turns.first + turns.options.members) % count;
        turns.is_running = !self.requests.is_empty() || self.due.first().0 < Time::NEVER;
        self.turns = Some(turns);
        if turns.is_running {
            self.timers.set(self.now.later(turns.options.window.time()), Timer::Turn);
        }
        for member in 0..count {
            let (had, has) = (before.include(member, count), turns.include(member, count));
            if had != has {
                self.hold(member, !has);
            }
        }
    }

    fn hold(&mut self, member: u32, held: bool) {
        self.members[member as usize].device.hold_gc(held);
        self.look_at(member);
    }
}
