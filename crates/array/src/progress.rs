//! Progress of the controller's own work: the rebuild, and the turns of members to collect garbage.

use floatgate_core::sim::time::Time;

use crate::config::{ArrayConfig, GcMode, Staggered};

/// Progress of the rebuild.
#[derive(Clone, Copy, Debug)]
pub struct Rebuilding {
    /// Bytes per second that may be written to a spare.
    pub rate: u64,
    /// Time at which the rebuild started.
    pub since: Time,
    /// Position in the list of failed members.
    pub at: usize,
    /// Next stripe.
    pub row: u64,
    /// Number of stripes that were rebuilt.
    pub done: u64,
    /// Time at which all members were rebuilt.
    pub finished: Option<Time>,
}

impl Rebuilding {
    /// Creates the rebuild of an array, if it has one.
    pub fn new(config: &ArrayConfig, since: Time) -> Option<Rebuilding> {
        let rate = config.options.rebuild?.rate.0;
        Some(Rebuilding { rate, since, at: 0, row: 0, done: 0, finished: None })
    }
}

/// Turns of the members.
///
/// A round without any event of a member would repeat itself until the next event, so the turns of all members up to
/// the window with this event are passed at once. The number of turns is therefore bounded by the number of events.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    pub options: Staggered,
    /// First of the members that have their turn.
    pub first: u32,
    /// Time at which the current turn ends. [`Time::NEVER`] if nothing is left to do.
    pub until: Time,
    /// True if members without their turn were made to wait.
    pub has_begun: bool,
    /// Number of events of the array when the current turn began.
    events: u64,
    /// Number of consecutive turns without an event.
    quiet: u32,
}

impl Turns {
    /// Creates the turns of an array, if its garbage collection is staggered.
    pub fn new(config: &ArrayConfig) -> Option<Turns> {
        match config.options.gc {
            GcMode::Independent => None,
            GcMode::Staggered(options) => {
                Some(Turns { options, first: 0, until: Time::NEVER, has_begun: false, events: 0, quiet: 0 })
            }
        }
    }

    /// Returns `true` if a member of `count` has its turn.
    #[inline]
    pub fn include(&self, member: u32, count: u32) -> bool {
        (member + count - self.first) % count < self.options.members
    }
    /// Starts the turns at `now`, or a turn that was passed early because nothing was to happen in it. Returns `true`
    /// if the end of the current turn has changed.
    #[inline]
    pub fn start(&mut self, now: Time, count: u32) -> bool {
        let window = self.options.window.time();
        if self.until == Time::NEVER {
            self.until = now.later(window);
            return true;
        }
        let ahead = self.until.since(now).0.saturating_sub(1) / window.0;
        if ahead > 0 {
            self.quiet = 0;
            self.until = Time(self.until.0 - ahead * window.0);
            self.first = (self.first + count - self.shift(ahead, count)) % count;
        }
        ahead > 0
    }

    /// Passes the turn on at `now`. `next` is the time of the next event of the array, or [`Time::NEVER`]; it has had
    /// `events` of them. The turns end if `is_done`.
    pub fn pass(&mut self, now: Time, count: u32, (next, events): (Time, u64), is_done: bool) {
        let window = self.options.window.time();
        self.quiet = if events == self.events { self.quiet + 1 } else { 0 };
        self.events = events;
        debug_assert!(self.quiet <= count + 1, "turns are passed on although nothing happens");
        self.first = (self.first + self.shift(1, count)) % count;
        self.until = if is_done { Time::NEVER } else { now.later(window) };
        if self.quiet >= count && !is_done {
            let ahead = next.since(now).0.saturating_sub(1) / window.0;
            self.first = (self.first + self.shift(ahead, count)) % count;
            self.until = if next == Time::NEVER { next } else { self.until.later(Time(ahead * window.0)) };
        }
    }

    /// Returns the number of members by which the turn moves in this many windows, below `count`.
    fn shift(&self, windows: u64, count: u32) -> u32 {
        (windows % u64::from(count) * u64::from(self.options.members) % u64::from(count)) as u32
    }
}
