//! Watchdog: ends a run in which nothing completes although a request waits.

use crate::sim::time::Time;
use crate::ssd::Ssd;

/// Number of events after which the run loop checks for progress and for a stop, if none of them is a completion.
pub(super) const EVENTS: u32 = 4096;

/// Number of events without progress after which a run fails.
const MAX_EVENTS: u64 = 10_000_000;

/// Multiple of the longest step without progress after which a run fails.
const MAX_STEPS: u64 = 1000;

/// Checks that flash operations or requests complete. Time counts only while a request is outstanding.
pub(super) struct Watchdog {
    /// Time of the next check.
    pub(super) at: Time,
    /// Time up to which there was progress, or no request.
    since: Time,
    /// Flash operations and completed requests at the last progress.
    seen: (u64, u64),
    /// Events since the last progress.
    events: u64,
    /// Sectors of the longest request so far.
    sectors: u32,
}

impl Watchdog {
    pub(super) fn new(now: Time) -> Watchdog {
        Watchdog { at: now, since: now, seen: (0, 0), events: 0, sectors: 0 }
    }

    /// Notes the size of a request.
    #[inline]
    pub(super) fn note(&mut self, sectors: u32) {
        self.sectors = self.sectors.max(sectors);
    }

    /// Notes that a request arrives at `now` while none is outstanding.
    #[inline]
    pub(super) fn end_idle_time(&mut self, now: Time) {
        self.since = now;
    }

    /// Checks for progress, after [`EVENTS`] events, or when all events up to `reached` were processed. The run loop
    /// submits nothing before `until`. Returns the time or the events without progress if there are too many.
    #[cold]
    pub(super) fn check<S: Ssd + ?Sized>(
        &mut self,
        ssd: &S,
        completed: u64,
        reached: Option<Time>,
        until: Time,
    ) -> Option<String> {
        let now = ssd.now().max(reached.unwrap_or_default());
        let waits = ssd.outstanding() > 0;
        let seen = (ssd.flash_operations(), completed);
        self.events += if reached.is_none() { u64::from(EVENTS) } else { 0 };
        if seen != self.seen || !(waits || until == Time::NEVER) {
            (self.seen, self.since, self.events) = (seen, now, 0);
        }
        let longest = ssd.longest_step(self.sectors);
        let most = Time(longest.0.saturating_mul(MAX_STEPS));
        // Without a request, nothing has to be checked before the next one.
        self.at = if waits { self.since } else { now.max(until) }.later(most);
        let quiet = now.since(self.since);
        if self.events >= MAX_EVENTS {
            return Some(format!("{} events", self.events));
        }
        (waits && quiet >= most).then(|| {
            format!("{} s of simulated time, of which the longest step takes {} s", quiet.as_s(), longest.as_s())
        })
    }
}
