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

    /// Starts the turns when a request of the host arrives. They end when nothing is left to do.
    #[inline]
    pub(crate) fn start_turns(&mut self) {
        let Some(turns) = &mut self.turns else { return };
        self.events += 1;
        let before = *turns;
        let count = self.layout.members();
        if !turns.start(self.now, count) {
            return;
        }
        let has_begun = std::mem::replace(&mut turns.has_begun, true);
        self.timers.set(turns.until, Timer::Turn);
        if has_begun {
            return self.hold_others(before);
        }
        for member in 0..count {
            self.hold(member, !self.has_turn(member));
        }
    }

    /// Passes the turn on to the next members, at the end of the current turn.
    pub(crate) fn next_turn(&mut self) {
        let Some(mut turns) = self.turns.filter(|turns| turns.until == self.now) else {
            self.events += 1; // A request has replaced this turn by an earlier one.
            return;
        };
        let before = turns;
        let due = self.due.first().0;
        let waits = || self.members.iter().any(|member| member.device.waits_for_turn());
        let is_done = self.requests.is_empty() && due == Time::NEVER && !waits();
        turns.pass(self.now, self.layout.members(), (due.min(self.timers.first()), self.events), is_done);
        self.turns = Some(turns);
        if turns.until < Time::NEVER {
            self.timers.set(turns.until, Timer::Turn);
        }
        self.hold_others(before);
    }

    /// Holds the members whose turn is over, and releases those whose turn has come.
    fn hold_others(&mut self, before: Turns) {
        let count = self.layout.members();
        for member in 0..count {
            let has = self.has_turn(member);
            if before.include(member, count) != has {
                self.hold(member, !has);
            }
        }
    }

    fn hold(&mut self, member: u32, held: bool) {
        self.members[member as usize].device.hold_gc(self.now, held);
        self.look_at(member);
    }
}
