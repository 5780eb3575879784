//! Closed loop of one source without think time: each completion is followed by the next request at once.
//!
//! Only completions and submissions happen before its limit, which replaces most tests of the general loop.

use super::watchdog::EVENTS;
use super::{BATCH, RunError, Runner, Watcher};
use crate::sim::time::Time;
use crate::ssd::Ssd;

impl<S: Ssd + ?Sized> Runner<'_, S> {
    /// Returns the depth of the closed loop if [`Runner::run_closed`] can run it now.
    pub(super) fn closed_depth(&self) -> Option<u32> {
        let can = self.measuring && !self.wants_slices && !self.waiting && !self.stopped && self.last.is_none();
        match self.feeds.as_slice() {
            [feed] if can && self.ssd.now() < feed.stop_at => feed.closed_depth(),
            _ => None,
        }
    }

    /// Runs the closed loop until a progress report, a sample, a check of progress, or the end of the source is due.
    /// Returns `false` if it has done nothing, because the SSD cannot count completions.
    #[inline(never)]
    pub(super) fn run_closed(&mut self, depth: u32, watcher: &mut dyn Watcher) -> Result<bool, RunError> {
        debug_assert!(!self.ssd.has_completions(), "the general loop has taken all completions");
        if self.ssd.count_completions().is_none() {
            return Ok(false);
        }
        let limit = self.sample_at.min(self.feeds[0].stop_at).min(self.watchdog.at).min(Time::LAST);
        while self.work < self.next_report && !self.stopped {
            let mut now = self.ssd.now();
            let next = if self.ssd.has_room() { self.feeds[0].next_closed(depth) } else { Time::NEVER };
            let submits = next <= now;
            if !submits && self.submitted == self.seen.completed {
                break; // What follows the last completion is not measured.
            }
            let Some(at) = self.ssd.run_some(if submits { now } else { limit.min(next) }, EVENTS) else { break };
            if !submits && !self.ssd.has_completions() {
                break;
            }
            self.ssd.set_clock(at);
            now = self.ssd.now();
            self.count_completed(now);
            if now >= self.feeds[0].stop_at {
                break;
            }
            self.submit_closed(depth, now, watcher)?;
            if self.ssd.has_completions() {
                self.count_completed(now); // Without events, such as reads of unwritten data.
            }
            if self.counted >= BATCH {
                self.take_counted(watcher)?;
            }
        }
        self.take_counted(watcher)?;
        Ok(true)
    }

    /// Notes completions, which stay in the SSD.
    #[inline(always)]
    fn count_completed(&mut self, now: Time) {
        self.count_outstanding(now);
        let count = self.ssd.count_completions().unwrap_or(0);
        if count > 0 {
            self.seen.completed += count as u64;
            self.counted += count;
            self.feeds[0].completed_closed(count as u32, now);
        }
    }

    /// Submits all requests that are due.
    #[inline(always)]
    fn submit_closed(&mut self, depth: u32, now: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        while self.ssd.has_room() && self.feeds[0].next_closed(depth) <= now {
            self.count_outstanding(now);
            let Some(request) = self.feeds[0].take_closed(now) else { break };
            self.issue(0, &request, now)?;
            if let Err(error) = self.feeds[0].fill(self.ssd) {
                return Ok(self.source_failed(0, error, watcher)?);
            }
        }
        Ok(())
    }

    /// Takes the completions that were counted, and records them if there are enough.
    #[inline(never)]
    fn take_counted(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        self.counted = 0;
        self.ssd.take_completions(&mut self.completions);
        if self.ssd.attributes() {
            self.ssd.take_breakdowns(&mut self.breakdowns);
        }
        if self.completions.len() >= BATCH { self.settle(watcher) } else { Ok(()) }
    }
}
