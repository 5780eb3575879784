//! The replay loop: sources of requests on one side, the device on the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::device::Device;
use crate::metrics::attribution::Breakdown;
use crate::metrics::counters::Counters;
use crate::metrics::results::Results;
use crate::metrics::series::Sample;
use crate::metrics::summary::Measurement;
use crate::nand::probe::Slice;
use crate::sim::time::Time;
use crate::workload::request::{Completion, Request};
use crate::workload::{Pace, Source, SourceError};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload cannot be read on.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Requests did not complete: a defect of the model.
    #[error("{submitted} requests were submitted and only {completed} completed, with nothing left to happen: {stall}")]
    Lost {
        /// Requests that the device took.
        submitted: u64,
        /// Requests that it answered.
        completed: u64,
        /// What the rest waits for.
        stall: String,
    },
    /// What observes the run failed, such as a full disk.
    #[error("{0}")]
    Observer(String),
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Requests completed.
    pub completed: u64,
    /// Simulated time.
    pub now: Time,
    /// Share of the workload, where known.
    pub share: Option<f64>,
}

/// What watches a run.
pub trait Watcher {
    /// A request has completed, in the measured part. What its time went into is told where the device attributes it.
    fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> Result<(), String>;
    /// Called now and then. Returns whether to go on; if not, what is outstanding is completed and the run ends.
    fn progress(&mut self, progress: Progress) -> bool;
    /// When to look at the device next, [`Time::NEVER`] for not at all. What is over when the measured part begins is
    /// due then.
    fn next_look(&self) -> Time {
        Time::NEVER
    }
    /// What the device is like when the measured part begins, and at each `next_look` after that.
    fn look(&mut self, _: &Sample) -> Result<(), String> {
        Ok(())
    }
    /// What it is like at the end: when the last request is answered, and all that it set off is done.
    fn last_look(&mut self, _: &Sample) -> Result<(), String> {
        Ok(())
    }
    /// Whether to hand over what the device's [`Probe`](crate::nand::probe::Probe) sees. If not, the probe keeps it.
    fn wants_slices(&self) -> bool {
        false
    }
    /// What the probe saw since the last call, in the order in which it was booked. That of a request comes before its
    /// completion does.
    fn slices(&mut self, _: &[Slice]) -> Result<(), String> {
        Ok(())
    }
}

/// A watcher that does nothing.
#[derive(Debug, Default)]
pub struct NoWatcher;

impl Watcher for NoWatcher {
    fn completed(&mut self, _: &Completion, _: Option<&Breakdown>) -> Result<(), String> {
        Ok(())
    }
    fn progress(&mut self, _: Progress) -> bool {
        true
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All sources came to their end.
    pub complete: bool,
    /// What was measured.
    pub results: Results,
    /// What the device counted in the measured part.
    pub counters: Counters,
    /// From the first arrival to the last completion of the measured part.
    pub measured: Time,
}

impl Outcome {
    /// What was measured on `device`, from which a [`Summary`](crate::metrics::summary::Summary) is made.
    pub fn measurement<'a>(&'a self, device: &'a Device) -> Measurement<'a> {
        Measurement {
            config: device.config(),
            complete: self.complete,
            results: &self.results,
            counters: &self.counters,
            measured: self.measured,
            channels: &device.array().channel_time,
            dies: &device.array().die_time,
            erases: device.ftl().blocks.all().iter().map(|block| block.erases).collect(),
        }
    }
}

/// Requests that are read ahead of their issue, so that what they need of the map is in the cache by then.
const LOOKAHEAD: usize = 16;

/// A source and how far it is.
struct Feed<'a> {
    source: &'a mut dyn Source,
    stream_base: u16,
    ahead: VecDeque<Request>,
    ended: bool,
    pace: Pace,
    outstanding: u32,
    /// Closed loop: when each place of the depth that is not free yet may be used.
    free_at: BinaryHeap<Reverse<Time>>,
    stop_at: Time,
}

impl<'a> Feed<'a> {
    fn new(source: &'a mut dyn Source, stream_base: u16, start: Time) -> Feed<'a> {
        let pace = source.pace();
        let stop_at = source.stop_at().map_or(Time::NEVER, |at| start + at);
        let free_at = BinaryHeap::new();
        Feed {
            source,
            stream_base,
            ahead: VecDeque::with_capacity(LOOKAHEAD),
            ended: false,
            pace,
            outstanding: 0,
            free_at,
            stop_at,
        }
    }

    /// Reads ahead.
    fn fill(&mut self, device: &Device) -> Result<(), SourceError> {
        while !self.ended && self.ahead.len() < LOOKAHEAD {
            match self.source.next_request()? {
                Some(mut request) => {
                    request.stream += self.stream_base;
                    device.prefetch(&request);
                    self.ahead.push_back(request);
                    if let Some(halfway) = self.ahead.len().checked_sub(LOOKAHEAD / 2) {
                        device.prefetch_place(&self.ahead[halfway]);
                    }
                }
                None => self.ended = true,
            }
        }
        Ok(())
    }

    /// When the next request may be issued, not before `now`; `None` while that depends on a completion, or never.
    fn next_time(&self, now: Time) -> Option<Time> {
        let arrival = self.ahead.front()?.arrival;
        let at = match self.pace {
            Pace::Timed { depth: Some(depth) } if self.outstanding >= depth => return None,
            Pace::Timed { .. } => arrival,
            Pace::Depth { depth, .. } if self.outstanding >= depth => return None,
            // A place is free from the start, and again one think time after its request's completion.
            Pace::Depth { depth, .. } => {
                let fresh = self.outstanding as usize + self.free_at.len() < depth as usize;
                let free = if fresh { Time::ZERO } else { self.free_at.peek().map_or(Time::ZERO, |at| at.0) };
                arrival.max(free)
            }
        };
        let at = at.max(now);
        (at < self.stop_at).then_some(at)
    }

    /// Takes the next request, to be issued at `now`.
    fn take(&mut self, now: Time) -> Option<Request> {
        let mut request = self.ahead.pop_front()?;
        if let Pace::Depth { depth, .. } = self.pace {
            let fresh = self.outstanding as usize + self.free_at.len() < depth as usize;
            if !fresh {
                self.free_at.pop();
            }
            request.arrival = now;
        }
        self.outstanding += 1;
        Some(request)
    }

    fn completed(&mut self, finish: Time, now: Time) {
        self.outstanding -= 1;
        if let Pace::Depth { think, .. } = self.pace
            && finish + think > now
        {
            self.free_at.push(Reverse(finish + think));
        }
    }
}

/// Runs the sources on the device, each with streams of its own, until they end and all is answered. Requests are
/// numbered from 0 in the order in which they are submitted; the number is their tag.
pub fn run(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    watcher: &mut dyn Watcher,
) -> Result<Outcome, RunError> {
    Runner::new(device, sources).run(watcher)
}

struct Runner<'a> {
    device: &'a mut Device,
    feeds: Vec<Feed<'a>>,
    /// The feed of each stream.
    feed_of: Vec<usize>,
    results: Results,
    counters: Counters,
    measure_from: Time,
    measuring: bool,
    submitted: u64,
    completed: u64,
    completions: Vec<Completion>,
    breakdowns: Vec<Breakdown>,
    stopped: bool,
    sample: Sample,
    /// The clock, when a request last came or went.
    counted_until: Time,
}

/// Completions between two calls for progress.
const PROGRESS_EVERY: u64 = 16_384;

impl<'a> Runner<'a> {
    fn new(device: &'a mut Device, sources: &'a mut [Box<dyn Source>]) -> Runner<'a> {
        let start = device.now();
        let mut names = Vec::new();
        let mut feed_of = Vec::new();
        let mut feeds = Vec::new();
        let mut measure_from = start;
        for (index, source) in sources.iter_mut().enumerate() {
            measure_from = measure_from.max(start + source.measure_from());
            let base = names.len() as u16;
            names.extend(source.streams());
            feed_of.resize(names.len(), index);
            feeds.push(Feed::new(source.as_mut(), base, start));
        }
        let counters = device.ftl().counters;
        device.array_mut().reset_times();
        Runner {
            device,
            feeds,
            feed_of,
            results: Results::new(names),
            counters,
            measure_from,
            measuring: measure_from == start,
            submitted: 0,
            completed: 0,
            completions: Vec::new(),
            breakdowns: Vec::new(),
            stopped: false,
            sample: Sample::default(),
            counted_until: start,
        }
    }

    fn run(mut self, watcher: &mut dyn Watcher) -> Result<Outcome, RunError> {
        for feed in &mut self.feeds {
            feed.fill(self.device)?;
        }
        if self.measuring {
            self.look(self.device.now(), watcher)?;
        }
        let mut next_report = PROGRESS_EVERY;
        loop {
            let submission = self.next_submission().map(|(at, _)| at);
            if submission.is_none() && self.device.next_event_time().is_none() {
                break;
            }
            self.advance(submission.unwrap_or(Time::NEVER), watcher)?;
            self.collect(watcher)?;
            self.submit_all(self.device.now())?;
            self.collect(watcher)?;
            if self.completed >= next_report {
                next_report = self.completed + PROGRESS_EVERY;
                let share = self.feeds.iter().find_map(|feed| feed.source.progress());
                self.stopped |=
                    !watcher.progress(Progress { completed: self.completed, now: self.device.now(), share });
            }
        }
        self.look_last(watcher)?;
        self.end()
    }

    /// The next request that can be issued: when, and of which feed.
    fn next_submission(&self) -> Option<(Time, usize)> {
        if self.stopped || !self.device.has_room() {
            return None;
        }
        let now = self.device.now();
        let times = self.feeds.iter().enumerate().filter_map(|(index, feed)| Some((feed.next_time(now)?, index)));
        times.min()
    }

    fn submit_all(&mut self, now: Time) -> Result<(), RunError> {
        while let Some((at, index)) = self.next_submission() {
            if at > now {
                break;
            }
            self.count_outstanding(now);
            let feed = &mut self.feeds[index];
            if let Some(request) = feed.take(now) {
                let tag = self.submitted;
                self.submitted += 1;
                self.device.submit(now, Request { tag, ..request });
            }
            feed.fill(self.device)?;
        }
        Ok(())
    }

    fn collect(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if watcher.wants_slices() {
            self.hand_over(watcher)?;
        }
        self.device.take_completions(&mut self.completions);
        self.breakdowns.clear();
        self.device.take_breakdowns(&mut self.breakdowns);
        let now = self.device.now();
        self.count_outstanding(now);
        for (index, completion) in self.completions.drain(..).enumerate() {
            self.completed += 1;
            self.feeds[self.feed_of[usize::from(completion.request.stream)]].completed(completion.finish, now);
            if completion.request.arrival >= self.measure_from {
                self.results.record(&completion);
                watcher.completed(&completion, self.breakdowns.get(index)).map_err(RunError::Observer)?;
            }
        }
        Ok(())
    }

    /// Hands over what the probe has seen.
    #[cold]
    fn hand_over(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if let Some(probe) = &mut self.device.array_mut().probe {
            watcher.slices(probe.slices()).map_err(RunError::Observer)?;
            probe.clear();
        }
        Ok(())
    }

    /// Advances the device to the next submission or completion, and starts the measured part when its time comes.
    fn advance(&mut self, until: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if self.measuring {
            return self.advance_looking(until, watcher);
        }
        self.device.advance_to_completion(until.min(self.measure_from));
        if self.device.now() >= self.measure_from {
            self.measuring = true;
            self.counters = self.device.ftl().counters;
            self.device.array_mut().reset_times();
            self.look(self.device.now(), watcher)?;
        }
        Ok(())
    }

    /// Advances to `until` or the next completion, and lets the watcher look at the device on the way. The clock stands
    /// still while it looks, so that it changes nothing.
    fn advance_looking(&mut self, until: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        loop {
            let at = watcher.next_look();
            if at >= until {
                self.device.advance_to_completion(until);
                return Ok(());
            }
            let completes = self.device.run_to_completion(at) < at || self.device.has_completions();
            if completes || (until == Time::NEVER && self.device.next_event_time().is_none()) {
                return Ok(());
            }
            self.look(at, watcher)?;
        }
    }

    /// Shows the watcher the device at `at`, if it wants to see it.
    fn look(&mut self, at: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if watcher.next_look() > at {
            return Ok(());
        }
        self.take_sample(at);
        watcher.look(&self.sample).map_err(RunError::Observer)
    }

    /// Shows the watcher what is left to see.
    fn look_last(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if watcher.wants_slices() {
            self.hand_over(watcher)?;
        }
        if !self.measuring || watcher.next_look() == Time::NEVER {
            return Ok(());
        }
        let answered = self.results.streams.iter().map(|stream| stream.last).max().unwrap_or(Time::ZERO);
        let end = answered.max(self.device.now());
        while watcher.next_look() < end {
            self.look(watcher.next_look(), watcher)?;
        }
        self.take_sample(end);
        watcher.last_look(&self.sample).map_err(RunError::Observer)
    }

    fn take_sample(&mut self, at: Time) {
        self.count_outstanding(at);
        self.device.sample(at, &mut self.sample);
    }

    /// Adds up how long requests have been outstanding, before their number changes at `now`.
    #[inline]
    fn count_outstanding(&mut self, now: Time) {
        let span = now.since(self.counted_until);
        self.sample.outstanding += u128::from(span.ps()) * u128::from(self.submitted - self.completed);
        self.counted_until = self.counted_until.max(now);
    }

    fn end(self) -> Result<Outcome, RunError> {
        if self.submitted != self.completed || self.device.outstanding() > 0 {
            return Err(RunError::Lost {
                submitted: self.submitted,
                completed: self.completed,
                stall: self.device.explain_stall(),
            });
        }
        let measured = self.results.span();
        Ok(Outcome {
            complete: !self.stopped,
            counters: self.device.ftl().counters.since(&self.counters),
            results: self.results,
            measured,
        })
    }
}
