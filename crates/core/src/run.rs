//! The replay loop: sources of requests on one side, an SSD on the other.

mod feed;

use crate::device::Device;
use crate::external::Fault;
use crate::metrics::attribution::Breakdown;
use crate::metrics::bounds::OverBound;
use crate::metrics::counters::{ClassCounts, Counters};
use crate::metrics::profile::Profile;
use crate::metrics::results::Results;
use crate::metrics::series::Sample;
use crate::metrics::summary::{ControllerWork, Measurement};
use crate::nand::array::{ChannelTime, DieTime};
use crate::nand::parallel::Parallel;
use crate::nand::probe::{CoreWork, Slice};
use crate::sim::request::{Completion, Request};
use crate::sim::source::{Source, SourceError};
use crate::sim::time::Time;
use crate::ssd::Ssd;
use feed::Feed;

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
    /// The device did more than it can: a defect of the model.
    #[error("the run went over the device's bounds: {0}")]
    OverBound(#[from] OverBound),
    /// The clock has come to its end.
    #[error(
        "the run has come to {:.0} days of simulated time, which is as far as it is counted; ask for less (runtime, \
         number_ios), or look for a time in the device that is much too long",
        Time::LAST.as_s() / 86_400.0
    )]
    TooLong,
    /// Requests take no simulated time, and the workload ends by time.
    #[error(
        "{0} requests have completed at one instant, and the workload ends only when time has passed: nothing that it \
         does takes time on this device. Reads of what was never written are such: use --precondition fill, or end the \
         job by number_ios or io_size"
    )]
    Standstill(u64),
    /// A policy that came with another program failed.
    #[error(transparent)]
    Policy(Fault),
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
    /// The same of the controller's cores. Called with [`Watcher::slices`].
    fn works(&mut self, _: &[CoreWork]) -> Result<(), String> {
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
    /// What the requests were like, where that was asked for.
    pub profile: Option<Profile>,
    /// What the device counted in the measured part.
    pub counters: Counters,
    /// The same by class of units, where classes are told apart.
    pub classes: Vec<ClassCounts>,
    /// Commands in it that made several planes or dies work together.
    pub parallel: Parallel,
    /// From the first arrival to the last completion of the measured part.
    pub measured: Time,
    /// From the start of the measured part to the last completion.
    pub elapsed: Time,
    /// Time spent in it, by channel.
    pub channels: Vec<ChannelTime>,
    /// Time spent in it, by die.
    pub dies: Vec<DieTime>,
    /// Time for which each LUN worked in it; empty where operations cannot overlap.
    pub luns: Vec<Time>,
    /// What the controller did in it.
    pub controller: ControllerWork,
}

impl Outcome {
    /// What lies between two looks at a device: when the measured part began, and at its last answer.
    pub fn between(
        first: &Sample,
        last: Sample,
        results: Results,
        profile: Option<Profile>,
        complete: bool,
    ) -> Outcome {
        Outcome {
            complete,
            counters: last.counters.since(&first.counters),
            classes: last.classes.iter().zip(&first.classes).map(|(last, first)| last.since(first)).collect(),
            parallel: last.parallel.clone().since(&first.parallel),
            measured: results.span(),
            elapsed: last.at.since(first.at),
            channels: spent(&first.channels, &last.channels)
                .map(|[data, command]| ChannelTime { data, command })
                .collect(),
            dies: spent(&first.dies, &last.dies).map(|[cell, register_held]| DieTime { cell, register_held }).collect(),
            luns: last.luns.iter().zip(&first.luns).map(|(last, first)| since(*last, *first)).collect(),
            controller: ControllerWork {
                buffer: last.buffer.since(&first.buffer),
                volatile_units: last.volatile_units,
                memory: last.memory.since(first.memory),
                cores: last.cores.iter().zip(&first.cores).map(|(last, first)| last.since(*first)).collect(),
            },
            results,
            profile,
        }
    }

    /// What was measured on `device`, from which a [`Summary`](crate::metrics::summary::Summary) is made.
    pub fn measurement<'a>(&'a self, device: &'a Device) -> Measurement<'a> {
        Measurement {
            config: device.config(),
            complete: self.complete,
            results: &self.results,
            profile: self.profile.as_ref(),
            counters: &self.counters,
            classes: &self.classes,
            parallel: &self.parallel,
            measured: self.measured,
            elapsed: self.elapsed,
            channels: &self.channels,
            dies: &self.dies,
            luns: &self.luns,
            controller: &self.controller,
            erases: device.ftl().blocks.all().iter().map(|block| block.erases).collect(),
            faults: device.fault_state(),
        }
    }
}

/// What is collected of a run beyond its results, each at a little time for every request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// What the requests are like: [`Outcome::profile`].
    pub profile: bool,
}

/// Runs the sources on the device, each with streams of its own, until they end and all is answered. Requests are
/// numbered from 0 in the order in which they are submitted; the number is their tag.
pub fn run(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    watcher: &mut dyn Watcher,
) -> Result<Outcome, RunError> {
    run_with(device, sources, watcher, RunOptions::default())
}

/// As [`run`], and collects what the options ask for.
pub fn run_with(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    watcher: &mut dyn Watcher,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    let outcome = replay(device, sources, watcher, options)?;
    outcome.measurement(device).work().check(outcome.elapsed)?;
    Ok(outcome)
}

/// As [`run_with`], on any SSD. It does not check that the SSD kept within its bounds, which only a [`Device`] has.
pub fn replay<S: Ssd + ?Sized>(
    ssd: &mut S,
    sources: &mut [Box<dyn Source>],
    watcher: &mut dyn Watcher,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    Runner::new(ssd, sources, options).run(watcher)
}

/// What has come back.
struct Seen {
    /// The feed of each stream.
    feed_of: Vec<usize>,
    results: Results,
    profile: Option<Profile>,
    completed: u64,
}

impl Seen {
    /// Takes a completion. Inlined, so that a run without breakdowns does not look for them.
    #[inline(always)]
    fn record(
        &mut self,
        feeds: &mut [Feed],
        now: Time,
        completion: &Completion,
        breakdown: Option<&Breakdown>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), RunError> {
        self.completed += 1;
        let feed = &mut feeds[self.feed_of[usize::from(completion.request.stream)]];
        feed.completed(completion.finish, now);
        if completion.request.arrival >= feed.measure_from {
            self.results.record(completion, breakdown);
            if let (Some(breakdown), Some(profile)) = (breakdown, &mut self.profile) {
                profile.completed(completion.request.operation, breakdown);
            }
            watcher.completed(completion, breakdown).map_err(RunError::Observer)?;
        }
        Ok(())
    }
}

struct Runner<'a, S: ?Sized> {
    ssd: &'a mut S,
    feeds: Vec<Feed<'a>>,
    seen: Seen,
    /// What the device was like when the measured part began.
    first: Sample,
    /// Some source waits for others.
    waiting: bool,
    /// When the first source is measured.
    measure_from: Time,
    measuring: bool,
    submitted: u64,
    /// Work of the requests submitted.
    work: u64,
    completions: Vec<Completion>,
    breakdowns: Vec<Breakdown>,
    stopped: bool,
    /// What the watcher wants: what the probe sees, and when to look at the device next.
    wants_slices: bool,
    look_at: Time,
    /// What the device was like at the last answer.
    last: Option<Sample>,
    sample: Sample,
    /// The clock, when a request last came or went.
    counted_until: Time,
    /// Looks at the device so far.
    looks: u64,
}

/// Work of requests between two calls for progress.
const PROGRESS_EVERY: u64 = 16_384;

/// Looks at the device between two calls for progress: there may be any number of them before the next completion.
const LOOKS_EVERY: u64 = 1024;

impl<'a, S: Ssd + ?Sized> Runner<'a, S> {
    fn new(ssd: &'a mut S, sources: &'a mut [Box<dyn Source>], options: RunOptions) -> Runner<'a, S> {
        let mut names = Vec::new();
        let mut feed_of = Vec::new();
        let mut feeds = Vec::new();
        for (index, source) in sources.iter_mut().enumerate() {
            let base = names.len() as u16;
            names.extend(source.streams());
            feed_of.resize(names.len(), index);
            feeds.push(Feed::new(source.as_mut(), base));
        }
        let now = ssd.now();
        ssd.reset_times();
        let mut first = Sample::default();
        ssd.sample(now, &mut first);
        let profile = options.profile.then(Profile::default);
        Runner {
            ssd,
            feeds,
            seen: Seen { feed_of, results: Results::new(names), profile, completed: 0 },
            first,
            measure_from: Time::NEVER,
            waiting: true,
            measuring: false,
            submitted: 0,
            work: 0,
            completions: Vec::new(),
            breakdowns: Vec::new(),
            stopped: false,
            wants_slices: false,
            look_at: Time::NEVER,
            last: None,
            sample: Sample::default(),
            counted_until: now,
            looks: 0,
        }
    }

    fn run(mut self, watcher: &mut dyn Watcher) -> Result<Outcome, RunError> {
        self.check_policies()?;
        for index in 0..self.feeds.len() {
            if let Err(error) = self.feeds[index].fill(self.ssd) {
                self.source_failed(index, error, watcher)?;
            }
        }
        self.start_waiting()?;
        self.measuring = self.measure_from == self.ssd.now();
        self.wants_slices = watcher.wants_slices();
        self.look_at = watcher.next_look();
        if self.measuring {
            self.look(self.ssd.now(), watcher)?;
        }
        let mut next_report = PROGRESS_EVERY;
        let mut moved = (self.ssd.now(), 0);
        let mut submission = self.next_time();
        let mut went_on = true;
        loop {
            if submission.is_none() {
                if self.last.is_none() && self.all_answered() {
                    self.end_measuring(watcher)?;
                }
                // After completions there mostly are events. If not, the next iteration comes here again.
                if !went_on && self.ssd.next_event().is_none() {
                    break;
                }
            }
            // While the queue is full, what may be issued next is known when a place becomes free.
            let wake = submission.or_else(|| self.ssd.next_room());
            self.advance(wake.unwrap_or(Time::NEVER), watcher)?;
            if self.ssd.now() > Time::LAST {
                return Err(RunError::TooLong);
            }
            went_on = self.collect(watcher)?;
            submission = self.submit_all(self.ssd.now(), watcher)?;
            if self.collect(watcher)? {
                submission = self.next_time();
            }
            if self.waiting {
                self.start_waiting()?;
                submission = self.next_time();
            }
            if self.work >= next_report {
                next_report = self.work + PROGRESS_EVERY;
                moved = self.check_moves(moved)?;
                self.check_policies()?;
                self.report(self.ssd.now(), watcher);
                submission = self.next_time();
            }
        }
        if self.last.is_none() {
            self.end_measuring(watcher)?; // Requests were lost, which `end` tells.
        }
        if self.wants_slices {
            self.hand_over(watcher, Time::NEVER)?;
        }
        self.end()
    }

    /// Tells how far the run is, and ends it where that is wished.
    fn report(&mut self, now: Time, watcher: &mut dyn Watcher) {
        let share = self.feeds.iter().find_map(|feed| feed.source.progress());
        self.stopped |= !watcher.progress(Progress { completed: self.seen.completed, now, share });
    }

    /// Fails where a policy did.
    fn check_policies(&self) -> Result<(), RunError> {
        self.ssd.fault().map_or(Ok(()), |fault| Err(RunError::Policy(fault.clone())))
    }

    /// Fails where time has stood still for very many requests and nothing but time ends the workload. `moved` is the
    /// time when it last moved, and the requests by then.
    fn check_moves(&self, moved: (Time, u64)) -> Result<(Time, u64), RunError> {
        /// No device has as many units that are answered at one instant by chance.
        const STANDSTILL: u64 = 4_000_000;
        if self.ssd.now() > moved.0 {
            return Ok((self.ssd.now(), self.seen.completed));
        }
        let completed = self.seen.completed - moved.1;
        let endless = self.feeds.iter().any(|feed| feed.stop_at < Time::NEVER && !feed.ended);
        if completed >= STANDSTILL && endless { Err(RunError::Standstill(completed)) } else { Ok(moved) }
    }

    /// Starts the sources that wait for none, or for those only that have ended.
    fn start_waiting(&mut self) -> Result<(), SourceError> {
        let now = self.ssd.now();
        self.waiting = false;
        for index in 0..self.feeds.len() {
            if self.feeds[index].begin.is_some() {
                continue;
            }
            let others = self.feeds[index].source.waits_for();
            let (at, shift) = match self.feeds.get(others.start..others.end.min(index)).unwrap_or(&[]) {
                // Arrivals of a source that waits for none count from the start of the simulation.
                [] => (now, Time::ZERO),
                others => match others.iter().try_fold(now, |at, other| Some(at.max(other.end(now)?))) {
                    Some(at) => (at, at),
                    None => {
                        self.waiting = true;
                        continue;
                    }
                },
            };
            let feed = &mut self.feeds[index];
            feed.start(at, shift)?;
            if !self.measuring {
                self.measure_from = self.measure_from.min(feed.measure_from);
            }
        }
        Ok(())
    }

    /// The next request that can be issued: when, and of which feed.
    fn next_submission(&self) -> Option<(Time, usize)> {
        if self.stopped || !self.ssd.has_room() {
            return None;
        }
        let now = self.ssd.now();
        let times = self.feeds.iter().enumerate().filter_map(|(index, feed)| Some((feed.next_time(now)?, index)));
        times.min()
    }

    /// When the next request can be issued.
    fn next_time(&self) -> Option<Time> {
        self.next_submission().map(|(at, _)| at)
    }

    /// Issues all requests that can be issued now. Returns when the next one can be.
    fn submit_all(&mut self, now: Time, watcher: &mut dyn Watcher) -> Result<Option<Time>, RunError> {
        while let Some((at, index)) = self.next_submission() {
            if at > now {
                return Ok(Some(at));
            }
            self.count_outstanding(now);
            let feed = &mut self.feeds[index];
            if let Some(request) = feed.take(now) {
                // Others look at copies, so that the request itself stays in registers.
                let issued = request;
                feed.source.issued(&issued)?;
                let request = Request { tag: self.submitted, ..request };
                self.submitted += 1;
                self.work += request.work();
                if let Some(profile) = &mut self.seen.profile
                    && request.arrival >= feed.measure_from
                {
                    let issued = request;
                    profile.issued(&issued);
                }
                self.ssd.submit(now, request);
            }
            if let Err(error) = feed.fill(self.ssd) {
                self.source_failed(index, error, watcher)?;
            }
        }
        Ok(None)
    }

    /// Takes an error of a source for its end if the watcher ends the run: reading may have failed for that.
    #[cold]
    fn source_failed(
        &mut self,
        index: usize,
        error: SourceError,
        watcher: &mut dyn Watcher,
    ) -> Result<(), SourceError> {
        self.report(self.ssd.now(), watcher);
        self.feeds[index].ended = true;
        if self.stopped { Ok(()) } else { Err(error) }
    }

    /// Records the completions since the last call. Returns `true` if there are any.
    #[inline]
    fn collect(&mut self, watcher: &mut dyn Watcher) -> Result<bool, RunError> {
        if self.wants_slices {
            self.hand_over(watcher, self.ssd.now())?;
        }
        let any = self.ssd.has_completions();
        if any {
            self.record(watcher)?;
        }
        Ok(any)
    }

    #[inline(never)]
    fn record(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        self.ssd.take_completions(&mut self.completions);
        if self.ssd.attributes() {
            return self.record_with_breakdowns(watcher);
        }
        let now = self.ssd.now();
        self.count_outstanding(now);
        for completion in &self.completions {
            self.seen.record(&mut self.feeds, now, completion, None, watcher)?;
        }
        self.completions.clear();
        Ok(())
    }

    #[inline(never)]
    fn record_with_breakdowns(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        self.ssd.take_breakdowns(&mut self.breakdowns);
        let now = self.ssd.now();
        self.count_outstanding(now);
        for (completion, breakdown) in self.completions.iter().zip(&self.breakdowns) {
            self.seen.record(&mut self.feeds, now, completion, Some(breakdown), watcher)?;
        }
        self.completions.clear();
        self.breakdowns.clear();
        Ok(())
    }

    /// Hands over what the probe has seen, but for what may change after `now`.
    #[cold]
    fn hand_over(&mut self, watcher: &mut dyn Watcher, now: Time) -> Result<(), RunError> {
        let mut take = |slices: &[Slice], works: &[CoreWork]| {
            watcher.slices(slices)?;
            watcher.works(works)
        };
        self.ssd.drain_probe(now, &mut take).map_err(RunError::Observer)
    }

    /// Advances the device to the next submission or completion, and starts the measured part when its time comes.
    fn advance(&mut self, until: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if self.measuring {
            return self.advance_looking(until, watcher);
        }
        if self.last.is_some() {
            // Every request completed within the ramp time, so nothing is measured, even if the device works beyond it.
            self.ssd.advance_to_completion(until);
            return Ok(());
        }
        self.ssd.advance_to_completion(until.min(self.measure_from));
        if self.ssd.now() >= self.measure_from {
            self.measuring = true;
            self.ssd.reset_times();
            self.ssd.sample(self.ssd.now(), &mut self.first);
            self.look(self.ssd.now(), watcher)?;
        }
        Ok(())
    }

    /// Advances to `until` or the next completion, and lets the watcher look at the device on the way. The clock stands
    /// still while it looks, so that it changes nothing.
    fn advance_looking(&mut self, until: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        loop {
            let at = self.look_at;
            if at >= until {
                self.ssd.advance_to_completion(until);
                return Ok(());
            }
            let completes = self.ssd.run_to_completion(at) < at || self.ssd.has_completions();
            if completes || (until == Time::NEVER && self.ssd.next_event().is_none()) {
                return Ok(());
            }
            self.look(at, watcher)?;
            self.looks += 1;
            if self.looks.is_multiple_of(LOOKS_EVERY) {
                self.report(at, watcher);
                if self.stopped {
                    return Ok(()); // There may be no submission any more, and so nothing to look on for.
                }
            }
        }
    }

    /// Shows the watcher the device at `at`, if it wants to see it.
    fn look(&mut self, at: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if self.look_at > at {
            return Ok(());
        }
        self.take_sample(at);
        let looked = watcher.look(&self.sample).map_err(RunError::Observer);
        self.look_at = watcher.next_look();
        looked
    }

    /// Shows the watcher what is left to see.
    fn look_last(&mut self, end: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if !self.measuring || self.look_at == Time::NEVER {
            return Ok(());
        }
        while self.look_at < end {
            self.look(self.look_at, watcher)?;
        }
        self.take_sample(end);
        self.look_at = Time::NEVER;
        watcher.last_look(&self.sample).map_err(RunError::Observer)
    }

    /// Whether every request is answered and there will be none any more. That none can be issued now says less: the
    /// device's queue may be full of answers on their way.
    fn all_answered(&self) -> bool {
        let now = self.ssd.now();
        let over = || self.stopped || self.feeds.iter().all(|feed| feed.next_time(now).is_none());
        self.submitted == self.seen.completed && !self.waiting && over()
    }

    /// The measured part ends with the last answer: what cleaning does afterwards is no part of the run.
    fn end_measuring(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        let answered = self.seen.results.streams.iter().map(|stream| stream.last).max().unwrap_or(Time::ZERO);
        let end = answered.max(self.ssd.now());
        self.look_last(end, watcher)?;
        let mut last = Sample::default();
        self.ssd.sample(end, &mut last);
        if !self.measuring {
            self.first = last.clone(); // It ended before it began: nothing was spent in it.
        }
        self.last = Some(last);
        Ok(())
    }

    fn take_sample(&mut self, at: Time) {
        self.count_outstanding(at);
        self.ssd.sample(at, &mut self.sample);
    }

    /// Adds up how long requests have been outstanding, before their number changes at `now`.
    #[inline]
    fn count_outstanding(&mut self, now: Time) {
        if self.look_at == Time::NEVER {
            return; // Nobody looks.
        }
        let span = now.since(self.counted_until);
        self.sample.outstanding += u128::from(span.ps()) * u128::from(self.submitted - self.seen.completed);
        self.counted_until = self.counted_until.max(now);
    }

    fn end(self) -> Result<Outcome, RunError> {
        self.check_policies()?;
        if self.submitted != self.seen.completed || self.ssd.outstanding() > 0 {
            return Err(RunError::Lost {
                submitted: self.submitted,
                completed: self.seen.completed,
                stall: self.ssd.explain_stall(),
            });
        }
        let last = self.last.unwrap_or_default();
        let elapsed = last.at.since(self.measure_from);
        let outcome = Outcome::between(&self.first, last, self.seen.results, self.seen.profile, !self.stopped);
        Ok(Outcome { elapsed, ..outcome })
    }
}

/// What was spent between two readings of the times of a sample.
fn spent<'a>(first: &'a [[i64; 2]], last: &'a [[i64; 2]]) -> impl Iterator<Item = [Time; 2]> + 'a {
    last.iter().zip(first).map(|(last, first)| [since(last[0], first[0]), since(last[1], first[1])])
}

fn since(last: i64, first: i64) -> Time {
    Time(last.saturating_sub(first).max(0).unsigned_abs())
}
