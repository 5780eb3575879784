//! Feed: reads requests from a source, and decides when the next one is issued.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ahead::Ahead;
use super::control::{Controller, Verdict};
use crate::sim::request::{Completion, Operation, Request};
use crate::sim::source::{Pace, Source, SourceError};
use crate::sim::time::Time;
use crate::ssd::Ssd;

/// Number of requests whose map entries are prefetched before they are issued. At least as many are read ahead.
const LOOKAHEAD: usize = 16;

/// Source, with its state.
pub(super) struct Feed<'a> {
    pub(super) source: &'a mut dyn Source,
    stream_base: u16,
    ahead: Ahead,
    pub(super) ended: bool,
    pace: Pace,
    outstanding: u32,
    /// Closed loop: times at which the occupied positions of the depth become free, after the think time.
    free_at: BinaryHeap<Reverse<Time>>,
    /// Time at which the source starts. `None` while it waits for other sources.
    pub(super) begin: Option<Time>,
    /// Time from which the arrivals of the source count.
    shift: Time,
    pub(super) stop_at: Time,
    pub(super) measure_from: Time,
    /// Control by completions, if the source needs it.
    pub(super) controller: Option<Box<Controller>>,
    /// True if the end of another source ends this one.
    pub(super) is_ended_by_other: bool,
    /// Time of the last completion.
    last_finish: Time,
    /// Number of issued requests.
    issued: u64,
    last_issued: LastIssued,
    batch: Batch,
}

/// Current batch of a source with [`Pace::Batch`].
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// Time at which the first request of the batch was issued.
    start: Time,
    /// Number of requests issued, without flushes.
    issued: u32,
}

/// Last request that a source with arrival times issued.
#[derive(Clone, Copy, Debug, Default)]
struct LastIssued {
    arrival: Time,
    at: Time,
    /// Outstanding requests after it, including it.
    outstanding: u32,
}

/// Requests of a source that had arrived, but not completed, when the source ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Backlog {
    /// Names of the streams of the source.
    pub streams: Vec<String>,
    /// Number of requests, estimated from the mean rate of arrivals if some were not issued.
    pub requests: u64,
    /// Arrivals per second.
    pub rate: f64,
    /// Time for which the next request had waited to be issued.
    pub waited: Time,
}

impl<'a> Feed<'a> {
    /// Creates the feed of a source at a position. The numbers of its streams begin at `stream_base`.
    pub(super) fn new(source: &'a mut dyn Source, stream_base: u16, index: usize) -> Feed<'a> {
        Feed {
            pace: source.pace(),
            controller: Controller::new(source.control(), index),
            is_ended_by_other: false,
            source,
            stream_base,
            ahead: Ahead::new(),
            ended: false,
            outstanding: 0,
            free_at: BinaryHeap::new(),
            begin: None,
            shift: Time::ZERO,
            stop_at: Time::NEVER,
            measure_from: Time::NEVER,
            last_finish: Time::ZERO,
            issued: 0,
            last_issued: LastIssued::default(),
            batch: Batch::default(),
        }
    }

    /// Starts the source at `at`, plus its start delay. Its arrivals count from `shift`, plus the start delay.
    pub(super) fn start(&mut self, at: Time, shift: Time) -> Result<(), SourceError> {
        let late = || SourceError("the workload exceeds the limit of 213 days of simulated time".to_owned());
        let after = |from: Time, span: Time| from.0.checked_add(span.0).map(Time).ok_or_else(late);
        let delay = self.source.start_delay();
        let begin = after(at, delay)?;
        self.begin = Some(begin);
        self.shift = after(shift, delay)?;
        self.stop_at = self.source.stop_at().map_or(Ok(Time::NEVER), |stop| after(begin, stop))?;
        self.measure_from = after(begin, self.source.measure_from())?;
        if self.is_ended_by_other {
            self.stop_at = begin;
        }
        if let Some(controller) = &mut self.controller {
            controller.start(begin);
            if controller.measures_later() {
                self.measure_from = Time::NEVER;
            }
        }
        let shift = self.shift;
        self.ahead.change(|request| {
            request.arrival = after(request.arrival, shift)?;
            Ok(())
        })
    }

    /// Returns the time at which the source ended: at its last completion, or at its time limit. `None` if it has not
    /// ended.
    pub(super) fn end(&self, now: Time) -> Option<Time> {
        let begin = self.begin.filter(|_| self.outstanding == 0)?;
        let last = self.last_finish.max(begin);
        if self.ahead.is_empty() {
            return Some(if self.source.out_of_time() { last.max(self.stop_at) } else { last });
        }
        (self.earliest(now)? >= self.stop_at).then(|| last.max(self.stop_at))
    }

    /// Reads requests ahead, and prefetches what the next ones need.
    #[inline(always)]
    pub(super) fn fill<S: Ssd + ?Sized>(&mut self, ssd: &S) -> Result<(), SourceError> {
        if self.ahead.len() < LOOKAHEAD && !self.ended {
            self.read()?;
        }
        if let Some(request) = self.ahead.get(LOOKAHEAD - 1) {
            ssd.prefetch(request);
        }
        if let Some(request) = self.ahead.get(LOOKAHEAD / 2 - 1) {
            ssd.prefetch_place(request);
        }
        Ok(())
    }

    /// Reads requests until there are enough.
    #[inline(never)]
    fn read(&mut self) -> Result<(), SourceError> {
        let (base, shift) = (self.stream_base, self.shift);
        while self.ahead.len() < LOOKAHEAD && !self.ended {
            let more = self.ahead.read(self.source, |request| {
                request.stream += base;
                let shifted = request.arrival.0.checked_add(shift.0);
                let late = "arrivals exceed the limit of 213 days of simulated time; set runtime";
                request.arrival = Time(shifted.ok_or_else(|| SourceError(late.to_owned()))?);
                Ok(())
            })?;
            self.ended = !more;
        }
        Ok(())
    }

    /// Returns the depth of a closed loop without think time, which issues a request after each completion. `None` for
    /// other sources, and while a completion has not reached the host.
    pub(super) fn closed_depth(&self) -> Option<u32> {
        match self.pace {
            Pace::Depth { depth, think: Time::ZERO } if self.can_be_closed() => Some(depth),
            _ => None,
        }
    }

    /// Returns `true` if a completion is followed by a request at once.
    fn can_be_closed(&self) -> bool {
        self.free_at.is_empty() && self.begin.is_some() && self.controller.is_none()
    }

    /// Returns the earliest time of the next request of a closed loop without think time. [`Time::NEVER`] if it waits
    /// for a completion, or if there is none.
    #[inline(always)]
    pub(super) fn next_closed(&self, depth: u32) -> Time {
        if self.outstanding >= depth {
            return Time::NEVER;
        }
        self.ahead.get(0).map_or(Time::NEVER, |request| request.arrival)
    }

    /// Removes and returns the next request of a closed loop without think time, which is issued at `now`.
    #[inline(always)]
    pub(super) fn take_closed(&mut self, now: Time) -> Option<Request> {
        let request = self.ahead.pop()?;
        self.outstanding += 1;
        self.issued += 1;
        Some(Request { arrival: now, ..request })
    }

    /// Notes `count` completions at `now` in a closed loop without think time.
    #[inline(always)]
    pub(super) fn completed_closed(&mut self, count: u32, now: Time) {
        self.outstanding -= count;
        self.last_finish = now;
    }

    /// Returns the time at which the next request may be issued, not before `now`. `None` if it depends on a
    /// completion, or if there are no more requests.
    pub(super) fn next_time(&self, now: Time) -> Option<Time> {
        self.earliest(now).filter(|at| *at < self.stop_at)
    }

    /// Does the same as [`Feed::next_time`], but ignores the time limit of the source.
    fn earliest(&self, now: Time) -> Option<Time> {
        let arrival = self.ahead.get(0)?.arrival.max(self.begin?);
        let depth = match self.pace {
            Pace::Timed { depth } => depth.unwrap_or(u32::MAX),
            Pace::Depth { depth, .. } | Pace::Batch { depth, .. } => depth,
        };
        let limit = |controller: &Controller| controller.depth(depth);
        let depth = self.controller.as_deref().map_or(depth, limit);
        if self.outstanding >= depth {
            return None;
        }
        let at = match self.pace {
            Pace::Timed { .. } => arrival,
            Pace::Depth { .. } => arrival.max(self.place_free(depth)),
            Pace::Batch { think, .. } => {
                let at = arrival.max(self.place_free(depth)).max(now);
                match (self.batch_over(at), self.outstanding) {
                    (false, _) => at,
                    (true, 0) => arrival.max(Time(self.last_finish.0.saturating_add(think.0))),
                    (true, _) => return None,
                }
            }
        };
        Some(at.max(now))
    }

    /// Returns the time at which a position of the depth is free: at once if one was never used or is free again,
    /// otherwise one think time after a completion.
    fn place_free(&self, depth: u32) -> Time {
        let fresh = self.outstanding as usize + self.free_at.len() < depth as usize;
        if fresh { Time::ZERO } else { self.free_at.peek().map_or(Time::ZERO, |at| at.0) }
    }

    /// Occupies a position of the depth for a request that is outstanding: one that was never used or is free again, or
    /// else the one that becomes free first.
    #[inline]
    fn occupy_place(&mut self, depth: u32) {
        if self.outstanding as usize + self.free_at.len() > depth as usize {
            self.free_at.pop();
        }
    }

    /// Returns `true` if a request at `at` does not belong to the current batch.
    fn batch_over(&self, at: Time) -> bool {
        let Pace::Batch { requests, span, .. } = self.pace else { return false };
        let Batch { start, issued } = self.batch;
        issued >= requests || (issued > 0 && at.since(start) >= span)
    }

    /// Removes and returns the next request, which is issued at `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Option<Request> {
        let mut request = self.ahead.pop()?;
        self.outstanding += 1;
        self.issued += 1;
        match self.pace {
            Pace::Timed { .. } => {
                let outstanding = self.outstanding;
                self.last_issued = LastIssued { arrival: request.arrival, at: now, outstanding };
            }
            Pace::Depth { depth, .. } => {
                self.occupy_place(depth);
                request.arrival = now;
            }
            Pace::Batch { depth, .. } => {
                if self.batch_over(now) {
                    self.batch.issued = 0;
                }
                if self.batch.issued == 0 {
                    self.batch.start = now;
                }
                self.batch.issued += u32::from(request.operation != Operation::Flush);
                self.occupy_place(depth);
                request.arrival = now;
            }
        }
        if self.controller.is_some() {
            self.note_issue();
        }
        Some(request)
    }

    /// Notes an issued request in the control of the source.
    #[cold]
    fn note_issue(&mut self) {
        let depth = match self.pace {
            Pace::Timed { depth } => depth.unwrap_or(u32::MAX),
            Pace::Depth { depth, .. } | Pace::Batch { depth, .. } => depth,
        };
        if let Some(controller) = &mut self.controller {
            controller.issued(depth, self.outstanding);
        }
    }

    /// Reports the outcome of the control to the source, if the source ended for another reason. Fails if this reason
    /// leaves no results.
    pub(super) fn end_control(&mut self) -> Result<(), SourceError> {
        let Some(controller) = &self.controller else { return Ok(()) };
        let Some(outcome) = controller.unfinished() else { return Ok(()) };
        if controller.measures_later() && self.measure_from == Time::NEVER && self.issued > 0 {
            return Err(SourceError(format!("{}: {outcome}", self.source.streams().join(", "))));
        }
        self.source.controlled(outcome);
        Ok(())
    }

    /// Applies the control of the source to a completion. Returns `true` if the measured part starts.
    #[cold]
    pub(super) fn control(&mut self, completion: &Completion, now: Time) -> Result<bool, SourceError> {
        let Some(controller) = &mut self.controller else { return Ok(false) };
        match controller.completed(completion, self.outstanding, now) {
            Verdict::Continue => {}
            Verdict::Measure => {
                self.measure_from = now;
                return Ok(true);
            }
            Verdict::End(outcome) => {
                self.stop_at = self.stop_at.min(now);
                self.source.controlled(outcome);
            }
            Verdict::Fail(why) => return Err(SourceError(format!("{}: {why}", self.source.streams().join(", ")))),
        }
        Ok(false)
    }

    /// Ends the source at `now`, because the state is steady, and gives it the `outcome`, if there is one.
    pub(super) fn end_steady(&mut self, outcome: Option<String>, now: Time) {
        self.stop_at = self.stop_at.min(now);
        if let Some(controller) = &mut self.controller {
            controller.end();
        }
        if let Some(outcome) = outcome {
            self.source.controlled(outcome);
        }
    }

    /// Returns the backlog if arrivals outran completions: if more requests had not completed when the source ended
    /// than arrive together by chance.
    pub(super) fn backlog(&self) -> Option<Backlog> {
        /// Part of the issued requests, and number of requests, that need no warning.
        const NEGLIGIBLE: (u64, u64) = (50, 64);
        let Pace::Timed { .. } = self.pace else { return None };
        let LastIssued { arrival, at, outstanding } = self.last_issued;
        let waited = match self.ahead.get(0) {
            Some(next) if self.stop_at < Time::NEVER => self.stop_at.since(next.arrival),
            _ => at.since(arrival),
        };
        let span = arrival.since(self.begin?);
        let rate = if span > Time::ZERO { (self.issued - 1) as f64 / span.as_s() } else { 0.0 };
        let requests = u64::from(outstanding) + (rate * waited.as_s()) as u64;
        let is_large = requests > self.issued / NEGLIGIBLE.0 + NEGLIGIBLE.1;
        is_large.then(|| Backlog { streams: self.source.streams(), requests, rate, waited })
    }

    pub(super) fn completed(&mut self, finish: Time, now: Time) {
        self.outstanding -= 1;
        self.last_finish = self.last_finish.max(finish);
        let think = match self.pace {
            Pace::Depth { think, .. } => think,
            Pace::Batch { .. } => Time::ZERO,
            Pace::Timed { .. } => return,
        };
        if finish.later(think) > now {
            self.free_at.push(Reverse(finish.later(think)));
        }
    }
}
