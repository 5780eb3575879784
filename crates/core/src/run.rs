//! Replay loop: submits the requests of sources to an SSD, and collects the results.

mod ahead;
mod closed;
mod control;
mod feed;
mod watchdog;

use crate::config::DeviceConfig;
use crate::device::Device;
use crate::external::Fault;
use crate::metrics::attribution::Breakdown;
use crate::metrics::bounds::OverBound;
use crate::metrics::collections::CollectionCounts;
use crate::metrics::counters::{ClassCounts, Counters, PoolUnits};
use crate::metrics::profile::Profile;
use crate::metrics::results::Results;
use crate::metrics::series::Sample;
use crate::metrics::summary::{ControllerWork, FaultState, Measurement};
use crate::nand::array::{ChannelTime, DieTime};
use crate::nand::gauge::QueueSample;
use crate::nand::parallel::Parallel;
use crate::nand::probe::{CoreWork, Slice};
use crate::sim::request::{Completion, Request};
use crate::sim::source::{Source, SourceError};
use crate::sim::time::Time;
use crate::ssd::Ssd;
pub use feed::Backlog;
use feed::Feed;
use watchdog::{EVENTS, Watchdog};

/// Error: a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload cannot be read further.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Requests did not complete, which is a defect of the model.
    #[error("{submitted} requests were submitted, but only {completed} completed, and no event is pending: {stall}")]
    Lost {
        /// Number of requests that the device accepted.
        submitted: u64,
        /// Number of requests that completed.
        completed: u64,
        /// Reason why the other requests did not complete.
        stall: String,
    },
    /// A run without progress although requests wait or events continue, which is a defect of the model.
    #[error("no request and no flash operation has completed for {reason}: {stall}")]
    Stuck {
        /// Number of events or simulated time without progress.
        reason: String,
        /// Operations that wait, and the reasons.
        stall: String,
    },
    /// The device did more work than it can, which is a defect of the model.
    #[error("the run exceeded the device's limits: {0}")]
    OverBound(#[from] OverBound),
    /// Simulated time has reached its limit.
    #[error(
        "the run has reached the limit of {:.0} days of simulated time; shorten it (runtime, number_ios), or check \
         the device for a time that is much too long",
        Time::LAST.as_s() / 86_400.0
    )]
    TooLong,
    /// Requests take no simulated time, but only time ends the workload.
    #[error(
        "{0} requests completed without any simulated time passing, and only time ends the workload: reads of \
         unwritten data, for example, take no time; use --precondition fill, or end the job by number_ios or io_size"
    )]
    Standstill(u64),
    /// An external policy failed.
    #[error(transparent)]
    Policy(Fault),
    /// An observer of the run failed, for example because a disk is full.
    #[error("{0}")]
    Observer(String),
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Number of completed requests.
    pub completed: u64,
    /// Simulated time.
    pub now: Time,
    /// Completed share of the workload, if known.
    pub share: Option<f64>,
}

/// Observer of a run.
pub trait Watcher {
    /// Notifies the watcher of a completion in the measured part. `breakdown` is `None` if the device does not
    /// attribute latencies.
    fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> Result<(), String>;
    /// Reports progress. Returns `false` to end the run: outstanding requests complete, and no more are submitted.
    fn progress(&mut self, progress: Progress) -> bool;
    /// Returns `true` if a run that was ended must not wait for its outstanding requests any longer.
    fn is_overdue(&self) -> bool {
        false
    }
    /// Returns the time of the next sample, or [`Time::NEVER`] for no more samples. A time before the measured part
    /// means its start.
    fn next_sample(&self) -> Time {
        Time::NEVER
    }
    /// Passes a sample of the device, at the start of the measured part and at each `next_sample` after that.
    fn record(&mut self, _: &Sample) -> Result<(), String> {
        Ok(())
    }
    /// Passes the last sample, at the end of the measured part.
    fn record_last(&mut self, _: &Sample) -> Result<(), String> {
        Ok(())
    }
    /// Returns `true` if the watcher wants the operations that the device's [`Probe`](crate::nand::probe::Probe)
    /// records. Otherwise, the probe keeps them.
    fn wants_slices(&self) -> bool {
        false
    }
    /// Passes the operations that the probe has recorded since the last call, in recorded order. Those of a request
    /// precede its completion.
    fn slices(&mut self, _: &[Slice]) -> Result<(), String> {
        Ok(())
    }
    /// Passes the work of the controller's cores since the last call. Called after each [`Watcher::slices`].
    fn works(&mut self, _: &[CoreWork]) -> Result<(), String> {
        Ok(())
    }
}

/// Watcher that does nothing.
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

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// True if all sources reached their end.
    pub complete: bool,
    /// Number of requests that were outstanding when the run had to end, and that have no result.
    pub unfinished: u64,
    /// Measured results.
    pub results: Results,
    /// Profile of the requests, if requested.
    pub profile: Option<Profile>,
    /// Counters of the device in the measured part.
    pub counters: Counters,
    /// Counters in the measured part by temperature class, if the device distinguishes classes.
    pub classes: Vec<ClassCounts>,
    /// Multi-plane and interleaved commands in the measured part.
    pub parallel: Parallel,
    /// Time from the first arrival to the last completion of the measured part.
    pub measured: Time,
    /// Time from the start of the measured part to the last completion.
    pub elapsed: Time,
    /// Times in the measured part, indexed by channel.
    pub channels: Vec<ChannelTime>,
    /// Times in the measured part, indexed by die.
    pub dies: Vec<DieTime>,
    /// Busy time of each LUN in the measured part. Empty if operations cannot overlap.
    pub luns: Vec<Time>,
    /// Collections of blocks in the measured time.
    pub collections: CollectionCounts,
    /// Free blocks of all planes at the end of the measured part, less those at its start.
    pub free_blocks_gained: i64,
    /// Queues in the measured part, indexed by gang; empty without gangs.
    pub queues: Vec<QueueSample>,
    /// Units programmed in the measured part, indexed by pool of the allocation; empty if there is one pool.
    pub pools: Vec<PoolUnits>,
    /// Length of the list of trimmed units at the end, with a mapping of log blocks.
    pub trim_list: u64,
    /// Work of the controller in the measured part.
    pub controller: ControllerWork,
    /// Sources whose arrivals outran the completions.
    pub backlogs: Vec<Backlog>,
    /// Samples of each member of an array: at the start of the measured part, and at its last completion.
    pub members: Vec<[Sample; 2]>,
}

impl Outcome {
    /// Creates the outcome from two samples: at the start of the measured part, and at its last completion.
    pub fn between(
        first: &Sample,
        last: Sample,
        results: Results,
        profile: Option<Profile>,
        complete: bool,
    ) -> Outcome {
        Outcome {
            complete,
            unfinished: 0,
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
            collections: last.collections.since(&first.collections),
            free_blocks_gained: last.free_blocks_sum as i64 - first.free_blocks_sum as i64,
            queues: last.queues.iter().zip(&first.queues).map(|(last, first)| last.since(first)).collect(),
            pools: last.pools.iter().zip(&first.pools).map(|(last, first)| last.since(first)).collect(),
            trim_list: last.trim_list,
            controller: ControllerWork {
                buffer: last.buffer.since(&first.buffer),
                volatile_units: last.volatile_units,
                memory: last.memory.since(first.memory),
                cores: last.cores.iter().zip(&first.cores).map(|(last, first)| last.since(*first)).collect(),
            },
            backlogs: Vec::new(),
            members: first.members.iter().cloned().zip(last.members).map(|(first, last)| [first, last]).collect(),
            results,
            profile,
        }
    }

    /// Returns the measurement of `device` from which a [`Summary`](crate::metrics::summary::Summary) is built.
    pub fn measurement<'a>(&'a self, device: &'a Device) -> Measurement<'a> {
        let erases = device.ftl().blocks.all().iter().map(|block| block.erases).collect();
        self.measurement_of(device.config(), erases, device.ftl().fault_state())
    }

    /// Returns the measurement of an SSD with this configuration. `erases` is indexed by block.
    pub fn measurement_of<'a>(
        &'a self,
        config: &'a DeviceConfig,
        erases: Vec<u32>,
        faults: Option<FaultState>,
    ) -> Measurement<'a> {
        Measurement {
            config,
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
            collections: &self.collections,
            free_blocks_gained: self.free_blocks_gained,
            queues: &self.queues,
            pools: &self.pools,
            trim_list: self.trim_list,
            controller: &self.controller,
            erases,
            faults,
        }
    }
}

/// Optional data to collect during a run. Each costs a little time per request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// True to collect a profile of the requests: [`Outcome::profile`].
    pub profile: bool,
}

/// Runs the sources on the device, each with its own streams, until they end and all requests have completed. Requests
/// are numbered from 0 in submission order, and this number is their tag.
pub fn run(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    watcher: &mut dyn Watcher,
) -> Result<Outcome, RunError> {
    run_with(device, sources, watcher, RunOptions::default())
}

/// Does the same as [`run`], and collects the data that `options` selects.
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

/// Does the same as [`run_with`], on any SSD. It does not check for impossible amounts of work, because only a
/// [`Device`] has known limits.
pub fn replay<S: Ssd + ?Sized>(
    ssd: &mut S,
    sources: &mut [Box<dyn Source>],
    watcher: &mut dyn Watcher,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    Runner::new(ssd, sources, options).run(watcher)
}

/// Completions so far.
struct Seen {
    /// Index of the feed, indexed by stream.
    feed_of: Vec<usize>,
    results: Results,
    profile: Option<Profile>,
    completed: u64,
    /// Tag of the first request that is submitted in the measured part.
    measured_from_tag: u64,
}

impl Seen {
    /// Records a completion.
    #[inline(always)]
    fn record(
        &mut self,
        feeds: &[Feed],
        completion: &Completion,
        breakdown: Option<&Breakdown>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), RunError> {
        let feed = &feeds[self.feed_of[usize::from(completion.request.stream)]];
        if completion.finish < feed.measure_from {
            return Ok(());
        }
        self.results.record(completion, breakdown);
        if completion.request.tag < self.measured_from_tag {
            self.results.carried_over(completion);
        }
        if let (Some(breakdown), Some(profile)) = (breakdown, &mut self.profile) {
            profile.completed(completion.request.operation, breakdown);
        }
        watcher.completed(completion, breakdown).map_err(RunError::Observer)
    }
}

struct Runner<'a, S: ?Sized> {
    ssd: &'a mut S,
    feeds: Vec<Feed<'a>>,
    seen: Seen,
    /// Sample at the start of the measured part.
    first: Sample,
    /// True if a source waits for others.
    waiting: bool,
    /// True if completions control the ends or depths of a source.
    controlled: bool,
    /// Time at which the measured part of the first source starts.
    measure_from: Time,
    measuring: bool,
    submitted: u64,
    /// Work of the submitted requests, and the work at which progress is reported next.
    work: u64,
    next_report: u64,
    /// Number of completions that the SSD keeps for a batch.
    counted: usize,
    completions: Vec<Completion>,
    breakdowns: Vec<Breakdown>,
    stopped: bool,
    /// True if the run was stopped and must not continue.
    ends_now: bool,
    watchdog: Watchdog,
    /// Requests of the watcher: operations of the probe, and the time of the next sample.
    wants_slices: bool,
    sample_at: Time,
    /// Sample at the last completion.
    last: Option<Sample>,
    sample: Sample,
    /// Time of the last submission or completion.
    counted_until: Time,
    /// Number of samples so far.
    samples: u64,
}

/// Number of completions that are recorded together.
const BATCH: usize = 256;

/// Work of requests between two progress reports.
const PROGRESS_EVERY: u64 = 16_384;

/// Number of samples between two progress reports, because many samples can precede the next completion.
const SAMPLES_EVERY: u64 = 1024;

impl<'a, S: Ssd + ?Sized> Runner<'a, S> {
    fn new(ssd: &'a mut S, sources: &'a mut [Box<dyn Source>], options: RunOptions) -> Runner<'a, S> {
        let mut names = Vec::new();
        let mut feed_of = Vec::new();
        let mut feeds = Vec::new();
        for (index, source) in sources.iter_mut().enumerate() {
            let base = names.len() as u16;
            names.extend(source.streams());
            feed_of.resize(names.len(), index);
            feeds.push(Feed::new(source.as_mut(), base, index));
        }
        let controlled = feeds.iter().any(|feed| feed.controller.is_some());
        let now = ssd.now();
        ssd.reset_times();
        let mut first = Sample::default();
        ssd.sample(now, &mut first);
        let profile = options.profile.then(Profile::default);
        Runner {
            ssd,
            feeds,
            seen: Seen { feed_of, results: Results::new(names), profile, completed: 0, measured_from_tag: 0 },
            first,
            measure_from: Time::NEVER,
            waiting: true,
            controlled,
            measuring: false,
            submitted: 0,
            work: 0,
            next_report: PROGRESS_EVERY,
            counted: 0,
            completions: Vec::new(),
            breakdowns: Vec::new(),
            stopped: false,
            ends_now: false,
            watchdog: Watchdog::new(now),
            wants_slices: false,
            sample_at: Time::NEVER,
            last: None,
            sample: Sample::default(),
            counted_until: now,
            samples: 0,
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
        // Until the measured part starts, all requests are submitted before it.
        self.seen.measured_from_tag = if self.measuring { 0 } else { u64::MAX };
        self.wants_slices = watcher.wants_slices();
        self.sample_at = watcher.next_sample();
        if self.measuring {
            self.sample_if_due(self.ssd.now(), watcher)?;
        }
        let mut moved = (self.ssd.now(), 0);
        let mut submission = self.next_time();
        let mut went_on = true;
        loop {
            let before = self.seen.completed;
            if let Some(depth) = self.closed_depth()
                && self.run_closed(depth, watcher)?
            {
                submission = self.next_time();
                went_on |= self.seen.completed > before;
            }
            if submission.is_none() {
                if self.last.is_none() && self.all_answered() {
                    self.end_measuring(watcher)?;
                }
                // Completions are usually followed by events. If not, the next iteration ends the loop.
                if (!went_on && self.ssd.next_event().is_none()) || (self.stopped && self.must_end(watcher)) {
                    break;
                }
            }
            // While the queue is full, the next submission is only known when a queue slot becomes free.
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
            if self.waiting || self.controlled {
                self.end_others();
                self.start_waiting()?;
                submission = self.next_time();
            }
            if self.work >= self.next_report {
                self.next_report = self.work + PROGRESS_EVERY;
                moved = self.check_moves(moved)?;
                self.check_policies()?;
                self.settle(watcher)?;
                self.report(self.ssd.now(), watcher);
                submission = self.next_time();
            }
        }
        if self.last.is_none() {
            self.end_measuring(watcher)?; // Requests were lost, which `end` reports.
        }
        if self.wants_slices {
            self.hand_over(watcher, Time::NEVER)?;
        }
        self.end()
    }

    /// Reports progress, and stops the run if the watcher wants to end it.
    fn report(&mut self, now: Time, watcher: &mut dyn Watcher) {
        let share = self.feeds.iter().find_map(|feed| feed.source.progress());
        self.stopped |= !watcher.progress(Progress { completed: self.seen.completed, now, share });
    }

    /// Returns `true` if a run that was stopped ends now: all requests have completed, or they take too long.
    #[cold]
    fn must_end(&mut self, watcher: &mut dyn Watcher) -> bool {
        self.ends_now |= self.last.is_some() || watcher.is_overdue();
        self.ends_now
    }

    /// Fails if a policy has failed.
    fn check_policies(&self) -> Result<(), RunError> {
        self.ssd.fault().map_or(Ok(()), |fault| Err(RunError::Policy(fault.clone())))
    }

    /// Fails if time has not advanced for very many requests and only time ends the workload. `moved` is the time of
    /// the last advance, and the number of requests completed by then.
    fn check_moves(&self, moved: (Time, u64)) -> Result<(Time, u64), RunError> {
        /// More requests than ordinary workloads complete at one instant.
        const STANDSTILL: u64 = 4_000_000;
        if self.ssd.now() > moved.0 {
            return Ok((self.ssd.now(), self.seen.completed));
        }
        let completed = self.seen.completed - moved.1;
        let endless = self.feeds.iter().any(|feed| feed.stop_at < Time::NEVER && !feed.ended);
        if completed >= STANDSTILL && endless { Err(RunError::Standstill(completed)) } else { Ok(moved) }
    }

    /// Starts the sources that wait for no others, or only for sources that have ended.
    fn start_waiting(&mut self) -> Result<(), SourceError> {
        let now = self.ssd.now();
        self.waiting = false;
        for index in 0..self.feeds.len() {
            if self.feeds[index].begin.is_some() {
                continue;
            }
            let others = self.feeds[index].source.waits_for();
            let (at, shift) = match self.feeds.get(others.start..others.end.min(index)).unwrap_or(&[]) {
                // Arrivals of a source that waits for no others count from the start of the simulation.
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

    /// Returns the time at which the next request can be issued, and its feed.
    fn next_submission(&self) -> Option<(Time, usize)> {
        if self.stopped || !self.ssd.has_room() {
            return None;
        }
        let now = self.ssd.now();
        if let [feed] = self.feeds.as_slice() {
            return Some((feed.next_time(now)?, 0));
        }
        let times = self.feeds.iter().enumerate().filter_map(|(index, feed)| Some((feed.next_time(now)?, index)));
        if self.controlled {
            return times.filter(|(_, index)| !self.exceeds_flow(*index)).min();
        }
        times.min()
    }

    /// Returns `true` if a feed has issued more than its share of the requests of its flow, as in fio.
    fn exceeds_flow(&self, index: usize) -> bool {
        let flow = |feed: &Feed| feed.controller.as_ref().and_then(|controller| controller.control.flow);
        let Some((id, weight)) = flow(&self.feeds[index]) else { return false };
        let now = self.ssd.now();
        let running = self.feeds.iter().filter(|feed| feed.begin.is_some() && feed.end(now).is_none());
        let of_flow = running.filter_map(|feed| Some((flow(feed)?, feed.controller.as_ref()?.issued)));
        let (issued, total) = of_flow
            .filter(|((other, _), _)| *other == id)
            .fold((1, 0), |(issued, total), of| (issued + of.1, total + u64::from(of.0.1)));
        let own = self.feeds[index].controller.as_ref().map_or(0, |controller| controller.issued);
        u128::from(own) * u128::from(total) > u128::from(weight) * u128::from(issued)
    }

    /// Ends the sources that end when another one has ended.
    fn end_others(&mut self) {
        let now = self.ssd.now();
        for index in 0..self.feeds.len() {
            let feed = &self.feeds[index];
            let Some(controller) = &feed.controller else { continue };
            let others = controller.control.ends.clone();
            if others.is_empty() || feed.end(now).is_none() {
                continue;
            }
            for other in others.filter(|other| *other != index) {
                if let Some(feed) = self.feeds.get_mut(other) {
                    feed.stop_at = feed.stop_at.min(now);
                    feed.is_ended_by_other = true;
                }
            }
        }
    }

    /// Returns the time at which the next request can be issued.
    fn next_time(&self) -> Option<Time> {
        self.next_submission().map(|(at, _)| at)
    }

    /// Issues all requests that can be issued now. Returns the time at which the next one can be issued.
    fn submit_all(&mut self, now: Time, watcher: &mut dyn Watcher) -> Result<Option<Time>, RunError> {
        while let Some((at, index)) = self.next_submission() {
            if at > now {
                return Ok(Some(at));
            }
            self.count_outstanding(now);
            if let Some(request) = self.feeds[index].take(now) {
                self.issue(index, &request, now)?;
            }
            if let Err(error) = self.feeds[index].fill(self.ssd) {
                self.source_failed(index, error, watcher)?;
            }
        }
        Ok(None)
    }

    /// Submits a request of a feed, whose tag is the number of requests before it.
    #[inline(always)]
    fn issue(&mut self, index: usize, request: &Request, now: Time) -> Result<(), SourceError> {
        let feed = &mut self.feeds[index];
        feed.source.issued(request)?;
        if self.submitted == self.seen.completed {
            self.watchdog.end_idle_time(now);
        }
        if let Some(profile) = &mut self.seen.profile
            && now >= feed.measure_from
        {
            profile.issued(request);
        }
        self.watchdog.note(request.sectors);
        self.work += request.work();
        self.ssd.submit(now, Request { tag: self.submitted, ..*request });
        self.submitted += 1;
        Ok(())
    }

    /// Treats an error of a source as its end if the watcher ends the run, because reading may have failed for this
    /// reason.
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

    /// Takes the completions since the last call, and notifies their feeds.
    #[inline(never)]
    fn record(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        let first = self.completions.len();
        self.ssd.take_completions(&mut self.completions);
        if self.ssd.attributes() {
            self.ssd.take_breakdowns(&mut self.breakdowns);
        }
        let now = self.ssd.now();
        self.count_outstanding(now);
        self.seen.completed += (self.completions.len() - first) as u64;
        for completion in &self.completions[first..] {
            let index = self.seen.feed_of[usize::from(completion.request.stream)];
            let feed = &mut self.feeds[index];
            feed.completed(completion.finish, now);
            if feed.controller.is_some() {
                if feed.control(completion, now)? {
                    self.measure_from = self.measure_from.min(feed.measure_from);
                }
                judge(&mut self.feeds, index, completion, now);
            }
        }
        if self.completions.len() >= BATCH || self.wants_slices { self.settle(watcher) } else { Ok(()) }
    }

    /// Records the completions that were taken: in batches, but before each sample and before the measured part starts
    /// or ends.
    #[inline(never)]
    fn settle(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        let mut breakdowns = self.breakdowns.iter();
        for completion in &self.completions {
            self.seen.record(&self.feeds, completion, breakdowns.next(), watcher)?;
        }
        self.completions.clear();
        self.breakdowns.clear();
        Ok(())
    }

    /// Passes the recorded operations of the probe to the watcher, except those that can change after `now`.
    #[cold]
    fn hand_over(&mut self, watcher: &mut dyn Watcher, now: Time) -> Result<(), RunError> {
        let mut take = |slices: &[Slice], works: &[CoreWork]| {
            watcher.slices(slices)?;
            watcher.works(works)
        };
        self.ssd.drain_probe(now, &mut take).map_err(RunError::Observer)
    }

    /// Advances the device to the next submission or completion, and starts the measured part when it is due.
    fn advance(&mut self, until: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if self.measuring {
            return self.advance_looking(until, watcher);
        }
        if self.last.is_some() {
            // All requests completed during the ramp time, so nothing is measured, even if the device works longer.
            return self.advance_to(until, watcher);
        }
        self.advance_to(until.min(self.measure_from), watcher)?;
        if self.ssd.now() >= self.measure_from {
            self.settle(watcher)?;
            self.measuring = true;
            self.seen.measured_from_tag = self.submitted;
            self.ssd.reset_times();
            self.ssd.sample(self.ssd.now(), &mut self.first);
            self.sample_if_due(self.ssd.now(), watcher)?;
        }
        Ok(())
    }

    /// Advances to `until` or the next completion, and sets the clock to this time.
    #[inline]
    fn advance_to(&mut self, until: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        let reached = self.proceed(until, watcher)?;
        if reached < Time::NEVER {
            self.ssd.set_clock(reached);
        }
        Ok(())
    }

    /// Processes events up to `until` or the next completion, and checks for progress and for a stop on the way.
    /// Returns the time up to which everything has happened.
    #[inline]
    fn proceed(&mut self, until: Time, watcher: &mut dyn Watcher) -> Result<Time, RunError> {
        loop {
            let target = until.min(self.watchdog.at);
            let reached = self.ssd.run_some(target, EVENTS);
            if let Some(at) = reached
                && (target == until || at < target || self.ssd.has_completions())
            {
                return Ok(at);
            }
            if until == Time::NEVER && self.ssd.next_event().is_none() {
                return Ok(until); // The run loop reports requests that are lost.
            }
            self.check(reached, until, watcher)?;
            if self.ends_now {
                return Ok(self.ssd.now());
            }
        }
    }

    #[cold]
    fn check(&mut self, reached: Option<Time>, until: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        self.report(self.ssd.now(), watcher);
        if self.stopped {
            self.must_end(watcher);
        }
        match self.watchdog.check(self.ssd, self.seen.completed, reached, until) {
            Some(reason) => Err(RunError::Stuck { reason, stall: self.ssd.explain_stall() }),
            None => Ok(()),
        }
    }

    /// Advances to `until` or the next completion, and takes the samples that are due before. The clock does not
    /// advance to a sample's time, so that samples change nothing.
    fn advance_looking(&mut self, until: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        loop {
            let at = self.sample_at;
            if at >= until {
                return self.advance_to(until, watcher);
            }
            let completes = self.proceed(at, watcher)? < at || self.ssd.has_completions();
            if completes || (until == Time::NEVER && self.ssd.next_event().is_none()) {
                return Ok(());
            }
            self.sample_if_due(at, watcher)?;
            self.samples += 1;
            if self.samples.is_multiple_of(SAMPLES_EVERY) {
                self.report(at, watcher);
                if self.stopped {
                    return Ok(()); // There may be no further submission, so samples could continue without end.
                }
            }
        }
    }

    /// Passes a sample at `at` to the watcher, if one is due.
    fn sample_if_due(&mut self, at: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if self.sample_at > at {
            return Ok(());
        }
        self.settle(watcher)?;
        self.take_sample(at);
        let recorded = watcher.record(&self.sample).map_err(RunError::Observer);
        self.sample_at = watcher.next_sample();
        recorded
    }

    /// Passes the remaining samples up to `end` to the watcher, and the last one.
    fn record_last(&mut self, end: Time, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if !self.measuring || self.sample_at == Time::NEVER {
            return Ok(());
        }
        while self.sample_at < end {
            self.sample_if_due(self.sample_at, watcher)?;
        }
        self.take_sample(end);
        self.sample_at = Time::NEVER;
        watcher.record_last(&self.sample).map_err(RunError::Observer)
    }

    /// Returns `true` if all requests have completed and there will be no more. `next_time` cannot show this, because
    /// it is also `None` while the queue is full of completions that are crossing the link.
    fn all_answered(&self) -> bool {
        let now = self.ssd.now();
        let over = || self.stopped || self.feeds.iter().all(|feed| feed.next_time(now).is_none());
        self.submitted == self.seen.completed && !self.waiting && over()
    }

    /// Ends the measured part at the last completion. Later garbage collection is not measured.
    fn end_measuring(&mut self, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        self.settle(watcher)?;
        let answered = self.seen.results.streams.iter().map(|stream| stream.last).max().unwrap_or(Time::ZERO);
        let end = answered.max(self.ssd.now());
        self.record_last(end, watcher)?;
        let mut last = Sample::default();
        self.ssd.sample(end, &mut last);
        if !self.measuring {
            self.first = last.clone(); // The measured part never began, so it is empty.
        }
        self.last = Some(last);
        Ok(())
    }

    fn take_sample(&mut self, at: Time) {
        self.count_outstanding(at);
        self.ssd.sample(at, &mut self.sample);
    }

    /// Adds the time for which requests were outstanding since the last call, before their number changes at `now`.
    #[inline]
    fn count_outstanding(&mut self, now: Time) {
        if self.sample_at == Time::NEVER {
            return; // No more samples are taken.
        }
        let span = now.since(self.counted_until);
        self.sample.outstanding += u128::from(span.ps()) * u128::from(self.submitted - self.seen.completed);
        self.counted_until = self.counted_until.max(now);
    }

    fn end(mut self) -> Result<Outcome, RunError> {
        self.check_policies()?;
        let unfinished = self.submitted - self.seen.completed;
        if (unfinished > 0 || self.ssd.outstanding() > 0) && !self.ends_now {
            return Err(RunError::Lost {
                submitted: self.submitted,
                completed: self.seen.completed,
                stall: self.ssd.explain_stall(),
            });
        }
        if !self.stopped {
            self.feeds.iter_mut().try_for_each(Feed::end_control)?;
        }
        let last = self.last.unwrap_or_default();
        let elapsed = last.at.since(self.measure_from);
        let mut results = self.seen.results;
        for (stream, &feed) in results.streams.iter_mut().zip(&self.seen.feed_of) {
            // A request that arrived before the measured part counts in it from its start.
            stream.first = stream.first.max(self.feeds[feed].measure_from);
        }
        let backlogs = self.feeds.iter().filter_map(Feed::backlog).collect();
        let outcome = Outcome::between(&self.first, last, results, self.seen.profile, !self.stopped);
        Ok(Outcome { elapsed, backlogs, unfinished, ..outcome })
    }
}

/// Notes a completion of a feed for its steady state, or for that of the feeds that it is judged with. If the state is
/// steady, these feeds end.
#[cold]
fn judge(feeds: &mut [Feed], index: usize, completion: &Completion, now: Time) {
    let of = |feed: &Feed| feed.controller.as_ref().map(|controller| controller.control.together.clone());
    let together = of(&feeds[index]).filter(|together| !together.is_empty()).unwrap_or(index..index + 1);
    let first = feeds[together.start].controller.as_mut();
    let Some(outcome) = first.and_then(|controller| controller.judge(completion, now)) else { return };
    let mut outcome = Some(outcome);
    for feed in &mut feeds[together] {
        feed.end_steady(outcome.take(), now);
    }
}

/// Returns the differences between the times of two samples.
fn spent<'a>(first: &'a [[i64; 2]], last: &'a [[i64; 2]]) -> impl Iterator<Item = [Time; 2]> + 'a {
    last.iter().zip(first).map(|(last, first)| [since(last[0], first[0]), since(last[1], first[1])])
}

fn since(last: i64, first: i64) -> Time {
    Time(last.saturating_sub(first).max(0).unsigned_abs())
}
