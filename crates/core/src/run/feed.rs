//! A source, and how far it is: when its next request is issued.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::sim::request::{Operation, Request};
use crate::sim::source::{Pace, Source, SourceError};
use crate::sim::time::Time;
use crate::ssd::Ssd;

/// Requests that are read ahead of their issue, so that what they need of the map is in the cache by then.
const LOOKAHEAD: usize = 16;

/// A source and how far it is.
pub(super) struct Feed<'a> {
    pub(super) source: &'a mut dyn Source,
    stream_base: u16,
    ahead: VecDeque<Request>,
    pub(super) ended: bool,
    pace: Pace,
    outstanding: u32,
    /// Closed loop: when each place of the depth that is not free yet may be used.
    free_at: BinaryHeap<Reverse<Time>>,
    /// When it starts; `None` while it waits for other sources.
    pub(super) begin: Option<Time>,
    /// What its requests' times count from.
    shift: Time,
    pub(super) stop_at: Time,
    pub(super) measure_from: Time,
    /// The end of its last request.
    last_finish: Time,
    batch: Batch,
}

/// The batch that a source of [`Pace::Batch`] is in.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// When its first request was issued.
    start: Time,
    /// Requests issued.
    issued: u32,
}

impl<'a> Feed<'a> {
    pub(super) fn new(source: &'a mut dyn Source, stream_base: u16) -> Feed<'a> {
        Feed {
            pace: source.pace(),
            source,
            stream_base,
            ahead: VecDeque::with_capacity(LOOKAHEAD),
            ended: false,
            outstanding: 0,
            free_at: BinaryHeap::new(),
            begin: None,
            shift: Time::ZERO,
            stop_at: Time::NEVER,
            measure_from: Time::NEVER,
            last_finish: Time::ZERO,
            batch: Batch::default(),
        }
    }

    /// Starts the source's times at `at`, from which `shift` its requests' arrivals count.
    pub(super) fn start(&mut self, at: Time, shift: Time) -> Result<(), SourceError> {
        let late = || SourceError("the workload goes beyond the 213 days that simulated time holds".to_owned());
        let after = |from: Time, span: Time| from.0.checked_add(span.0).map(Time).ok_or_else(late);
        let delay = self.source.start_delay();
        let begin = after(at, delay)?;
        self.begin = Some(begin);
        self.shift = after(shift, delay)?;
        self.stop_at = self.source.stop_at().map_or(Ok(Time::NEVER), |stop| after(begin, stop))?;
        self.measure_from = after(begin, self.source.measure_from())?;
        for request in &mut self.ahead {
            request.arrival = after(request.arrival, self.shift)?;
        }
        Ok(())
    }

    /// When its last request has completed, or its time is over; `None` while it goes on.
    pub(super) fn end(&self, now: Time) -> Option<Time> {
        let begin = self.begin.filter(|_| self.outstanding == 0)?;
        let last = self.last_finish.max(begin);
        if self.ahead.is_empty() {
            return Some(if self.source.out_of_time() { last.max(self.stop_at) } else { last });
        }
        (self.earliest(now)? >= self.stop_at).then(|| last.max(self.stop_at))
    }

    /// Reads ahead.
    pub(super) fn fill<S: Ssd + ?Sized>(&mut self, ssd: &S) -> Result<(), SourceError> {
        while !self.ended && self.ahead.len() < LOOKAHEAD {
            match self.source.next_request()? {
                Some(mut request) => {
                    request.stream += self.stream_base;
                    if self.shift > Time::ZERO {
                        let shifted = request.arrival.0.checked_add(self.shift.0);
                        let late = "arrivals reach 213 days, beyond which there is no time; set runtime";
                        request.arrival = Time(shifted.ok_or_else(|| SourceError(late.to_owned()))?);
                    }
                    ssd.prefetch(&request);
                    self.ahead.push_back(request);
                    if let Some(halfway) = self.ahead.len().checked_sub(LOOKAHEAD / 2) {
                        ssd.prefetch_place(&self.ahead[halfway]);
                    }
                }
                None => self.ended = true,
            }
        }
        Ok(())
    }

    /// When the next request may be issued, not before `now`; `None` while that depends on a completion, or never.
    pub(super) fn next_time(&self, now: Time) -> Option<Time> {
        self.earliest(now).filter(|at| *at < self.stop_at)
    }

    /// As [`Feed::next_time`], if time did not end the source.
    fn earliest(&self, now: Time) -> Option<Time> {
        let arrival = self.ahead.front()?.arrival.max(self.begin?);
        let depth = match self.pace {
            Pace::Timed { depth } => depth.unwrap_or(u32::MAX),
            Pace::Depth { depth, .. } | Pace::Batch { depth, .. } => depth,
        };
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

    /// When a place of the depth is free: from the start, and again one think time after its request's completion.
    fn place_free(&self, depth: u32) -> Time {
        let fresh = self.outstanding as usize + self.free_at.len() < depth as usize;
        if fresh { Time::ZERO } else { self.free_at.peek().map_or(Time::ZERO, |at| at.0) }
    }

    /// Whether a request at `at` is no part of the batch any more.
    fn batch_over(&self, at: Time) -> bool {
        let Pace::Batch { requests, span, .. } = self.pace else { return false };
        let Batch { start, issued } = self.batch;
        issued >= requests || (issued > 0 && at.since(start) >= span)
    }

    /// Takes the next request, to be issued at `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Option<Request> {
        let mut request = self.ahead.pop_front()?;
        if let Pace::Depth { depth, .. } | Pace::Batch { depth, .. } = self.pace {
            if self.batch_over(now) {
                self.batch.issued = 0;
            }
            if self.batch.issued == 0 {
                self.batch.start = now;
            }
            self.batch.issued += u32::from(request.operation != Operation::Flush);
            let fresh = self.outstanding as usize + self.free_at.len() < depth as usize;
            if !fresh {
                self.free_at.pop();
            }
            request.arrival = now;
        }
        self.outstanding += 1;
        Some(request)
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
