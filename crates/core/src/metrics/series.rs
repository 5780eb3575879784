//! Series: the counters and measurements of a run, by windows of simulated time.
//!
//! A window covers the time after its start, up to and including its end. A request belongs to the window in which the
//! host has its completion. Work of the flash belongs to the windows in which it is done: an operation that crosses a
//! boundary is split between both sides.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::attribution::{Breakdown, Part};
use super::collections::CollectionCounts;
use super::counters::{BufferCounts, ClassCounts, Counters, PoolUnits};
use super::statistics::{Interval, Statistics};
use crate::config::DeviceConfig;
use crate::nand::gauge::QueueSample;
use crate::nand::parallel::Parallel;
use crate::sim::request::{Completion, Operation, Status};
use crate::sim::time::Time;

/// State of a device at an instant. Counters and times start when the device is created or when the measured part
/// starts, so only differences are meaningful.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Time of the sample.
    pub at: Time,
    /// Counters of the device.
    pub counters: Counters,
    /// Multi-plane and interleaved commands.
    pub parallel: Parallel,
    /// Times of data and of commands in picoseconds, indexed by channel.
    pub channels: Vec<[i64; 2]>,
    /// Times with busy cells and times held otherwise in picoseconds, indexed by die.
    pub dies: Vec<[i64; 2]>,
    /// Times of cells or transfers in picoseconds, indexed by LUN; empty if operations cannot overlap.
    pub luns: Vec<i64>,
    /// Collections of blocks.
    pub collections: CollectionCounts,
    /// Queues, indexed by gang; empty without gangs.
    pub queues: Vec<QueueSample>,
    /// Units programmed, indexed by pool of the allocation; empty if there is one pool.
    pub pools: Vec<PoolUnits>,
    /// Counters by data class; empty if classes are not distinguished.
    pub classes: Vec<ClassCounts>,
    /// Smallest number of free blocks in a plane.
    pub free_blocks_min: u32,
    /// Number of free blocks in all planes.
    pub free_blocks_sum: u64,
    /// Number of trimmed units that log blocks or data blocks still hold, with a mapping of log blocks.
    pub trim_list: u64,
    /// Number of bad blocks; 0 if blocks cannot fail.
    pub bad_blocks: u64,
    /// True if the device has become read-only.
    pub read_only: bool,
    /// Number of outstanding requests, integrated over time, in requests times picoseconds.
    pub outstanding: u128,
    /// Counters of the buffer.
    pub buffer: BufferCounts,
    /// Number of units in the buffer, and number of dirty units.
    pub buffer_units: [u64; 2],
    /// Number of units in the buffer that a power cut would lose: now, and the maximum so far.
    pub volatile_units: (u64, u64),
    /// Time for which the port of the controller's memory has worked.
    pub memory: Time,
    /// Time for which each core has worked.
    pub cores: Vec<Time>,
    /// Samples of the members, if the SSD is an array; otherwise empty.
    pub members: Vec<Sample>,
}

impl Sample {
    /// Adds the sample of another SSD at the same time, such as of a member of an array. Lists per channel, die, LUN,
    /// package, class and core are appended.
    pub fn add(&mut self, other: &Sample) {
        let first = self.channels.is_empty();
        self.at = other.at;
        self.counters = self.counters.plus(&other.counters);
        self.parallel.add(&other.parallel);
        self.channels.extend_from_slice(&other.channels);
        self.dies.extend_from_slice(&other.dies);
        self.luns.extend_from_slice(&other.luns);
        self.collections.add(&other.collections);
        self.queues.extend_from_slice(&other.queues);
        self.pools.extend_from_slice(&other.pools);
        self.classes.extend_from_slice(&other.classes);
        self.free_blocks_min =
            if first { other.free_blocks_min } else { self.free_blocks_min.min(other.free_blocks_min) };
        self.free_blocks_sum += other.free_blocks_sum;
        self.trim_list += other.trim_list;
        self.bad_blocks += other.bad_blocks;
        self.read_only |= other.read_only;
        self.buffer = self.buffer.plus(&other.buffer);
        let units = |one: (u64, u64), other: (u64, u64)| (one.0 + other.0, one.1 + other.1);
        self.buffer_units = std::array::from_fn(|kind| self.buffer_units[kind] + other.buffer_units[kind]);
        self.volatile_units = units(self.volatile_units, other.volatile_units);
        self.memory += other.memory;
        self.cores.extend_from_slice(&other.cores);
    }
}

/// Width of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Fixed width. The caller has to take each window when it closes.
    Fixed(Time),
    /// Adaptive width: it starts at `FIRST_WIDTH`, and doubles when there are `MAX_WINDOWS` windows. At the end of
    /// the run it doubles until there are at most `MIN_WINDOWS` windows, or `REQUESTS_PER_WINDOW` requests in
    /// each on average.
    Adaptive,
}

impl Width {
    /// Maximum number of windows of a fixed width. A run may be any number of times as long as a window, and each
    /// window is sampled and written even if nothing happens in it. Later windows are left out.
    pub const MAX_FIXED: u64 = 1_000_000;
}

/// Initial width of adaptive windows.
pub const FIRST_WIDTH: Time = Time::from_us(1);

/// Maximum number of adaptive windows that are held.
pub const MAX_WINDOWS: usize = 1024;

/// Mean number of requests in an adaptive window, so that its percentiles are meaningful.
pub const REQUESTS_PER_WINDOW: u64 = 200;

/// Number of adaptive windows that is not reduced further, however few requests there are.
pub const MIN_WINDOWS: usize = 16;

/// Requests of one operation that completed in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Number of requests.
    pub count: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// Number of requests that failed. No other field includes them.
    pub errors: u64,
    /// Sum of the latencies, in picoseconds.
    pub latency_sum: u128,
    /// Maximum latency.
    pub latency_max: Time,
    /// Number of requests by step of latency, without empty steps.
    steps: Vec<(u16, u32)>,
}

/// Bits of a latency step: 32 steps per doubling, so that a step is 3% wide.
const STEP_BITS: u32 = 5;

/// Returns the step of a latency, with a resolution of a nanosecond.
fn step_of(latency: Time) -> u16 {
    let ns = latency.ps() / 1000;
    let doubling = (64 - ns.leading_zeros()).saturating_sub(STEP_BITS + 1);
    ((u64::from(doubling) << STEP_BITS) + (ns >> doubling)) as u16
}

/// Returns the start and the middle of a step, in picoseconds.
fn span_of(step: u16) -> (u64, u64) {
    let doubling = (u32::from(step) >> STEP_BITS).saturating_sub(1);
    let first = (u64::from(step) - (u64::from(doubling) << STEP_BITS)) << doubling;
    (first * 1000, first * 1000 + (500 << doubling))
}

impl Answered {
    fn record(&mut self, answer: &Answer) {
        if answer.failed {
            self.errors += 1;
            return;
        }
        self.bytes += answer.bytes;
        self.note(answer.latency);
    }

    /// Adds a request with a known latency and nothing else.
    pub fn note(&mut self, latency: Time) {
        self.count += 1;
        self.latency_sum += u128::from(latency.ps());
        self.latency_max = self.latency_max.max(latency);
        let step = step_of(latency);
        match self.steps.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(index) => self.steps[index].1 = self.steps[index].1.saturating_add(1),
            Err(index) => self.steps.insert(index, (step, 1)),
        }
    }

    fn add(&mut self, other: &Answered) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.latency_sum += other.latency_sum;
        self.latency_max = self.latency_max.max(other.latency_max);
        let mut steps = Vec::with_capacity(self.steps.len().max(other.steps.len()));
        let (mut ours, mut theirs) = (self.steps.iter().peekable(), other.steps.iter().peekable());
        while let Some(&(step, count)) = match (ours.peek(), theirs.peek()) {
            (Some(a), Some(b)) if b.0 < a.0 => theirs.next(),
            (Some(_), _) => ours.next(),
            (None, _) => theirs.next(),
        } {
            match steps.last_mut() {
                Some((last, sum)) if *last == step => *sum = u32::saturating_add(*sum, count),
                _ => steps.push((step, count)),
            }
        }
        self.steps = steps;
    }

    /// Returns the mean latency in microseconds, or `None` without requests.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.latency_sum as f64 / self.count as f64 / 1e6)
    }

    /// Returns the latency that a share of the requests (0 to 1) do not exceed, in microseconds, accurate to 2% or 1
    /// ns.
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let (step, _) = self.steps.iter().find(|(_, count)| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        Some(span_of(*step).1.min(self.latency_max.ps()) as f64 / 1e6)
    }

    /// Returns the steps of latencies in ascending order: the start of each step, and its number of requests.
    pub fn steps(&self) -> impl Iterator<Item = (Time, u64)> {
        self.steps.iter().map(|(step, count)| (Time(span_of(*step).0), u64::from(*count)))
    }
}

/// Window of simulated time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Start, which does not belong to the window.
    pub start: Time,
    /// End, which belongs to the window.
    pub end: Time,
    /// Requests that completed, indexed by [`Operation::index`].
    pub answered: [Option<Box<Answered>>; 5],
    /// Number of these requests that have a latency breakdown.
    pub attributed: u64,
    /// Sums of these breakdowns by part, in picoseconds.
    pub parts: [u128; Part::COUNT],
    /// Number of outstanding requests, integrated over time, in requests times picoseconds.
    pub outstanding: u128,
    /// Times of data and of commands in picoseconds, indexed by channel.
    pub channels: Vec<[i64; 2]>,
    /// Times with busy cells and times held otherwise in picoseconds, indexed by die.
    pub dies: Vec<[i64; 2]>,
    /// Counters of the device.
    pub counters: Counters,
    /// Smallest number of free blocks in a plane, at the end.
    pub free_blocks_min: u32,
    /// Number of free blocks in all planes, at the end.
    pub free_blocks_sum: u64,
    /// Counters of the buffer.
    pub buffer: BufferCounts,
    /// Number of units in the buffer, and number of dirty units, at the end.
    pub buffer_units: [u64; 2],
    /// Number of bad blocks at the end.
    pub bad_blocks: u64,
}

impl Window {
    /// Returns the width of the window.
    pub fn width(&self) -> Time {
        self.end.since(self.start)
    }

    /// Returns the statistics of a device with this configuration.
    pub fn statistics(&self, config: &DeviceConfig) -> Statistics {
        Statistics::new(&Interval {
            config,
            counters: &self.counters,
            channels: &self.channels,
            span: self.width(),
            buffer: &self.buffer,
            buffer_units: self.buffer_units,
            free_blocks_min: self.free_blocks_min,
            free_blocks_sum: self.free_blocks_sum,
            bad_blocks: self.bad_blocks,
        })
    }

    /// Returns the requests of one operation.
    pub fn of(&self, operation: Operation) -> Option<&Answered> {
        self.answered[operation.index()].as_deref()
    }

    fn record(&mut self, answer: &Answer) {
        self.answered[answer.operation.index()].get_or_insert_default().record(answer);
        if let Some(breakdown) = &answer.breakdown {
            self.attributed += 1;
            for (sum, part) in self.parts.iter_mut().zip(breakdown.parts) {
                *sum += u128::from(part.ps());
            }
        }
    }

    /// Closes the window with the work that the device did since `before`.
    fn close(&mut self, before: &Sample, now: &Sample) {
        self.end = now.at;
        self.outstanding = now.outstanding - before.outstanding;
        self.counters = now.counters.since(&before.counters);
        (self.free_blocks_min, self.free_blocks_sum) = (now.free_blocks_min, now.free_blocks_sum);
        (self.buffer, self.buffer_units) = (now.buffer.since(&before.buffer), now.buffer_units);
        self.bad_blocks = now.bad_blocks;
        let since = |now: &[[i64; 2]], before: &[[i64; 2]]| {
            now.iter().zip(before).map(|(now, before)| [now[0] - before[0], now[1] - before[1]]).collect()
        };
        self.channels = since(&now.channels, &before.channels);
        self.dies = since(&now.dies, &before.dies);
    }

    /// Merges the next window into this one.
    fn join(&mut self, next: &Window) {
        self.end = next.end;
        for (ours, theirs) in self.answered.iter_mut().zip(&next.answered) {
            if let Some(theirs) = theirs {
                ours.get_or_insert_default().add(theirs);
            }
        }
        self.attributed += next.attributed;
        self.parts.iter_mut().zip(next.parts).for_each(|(sum, part)| *sum += part);
        self.outstanding += next.outstanding;
        for (ours, theirs) in [(&mut self.channels, &next.channels), (&mut self.dies, &next.dies)] {
            for (sum, time) in ours.iter_mut().zip(theirs) {
                *sum = [sum[0] + time[0], sum[1] + time[1]];
            }
        }
        self.counters = self.counters.plus(&next.counters);
        (self.free_blocks_min, self.free_blocks_sum) = (next.free_blocks_min, next.free_blocks_sum);
        (self.buffer, self.buffer_units) = (self.buffer.plus(&next.buffer), next.buffer_units);
        self.bad_blocks = next.bad_blocks;
    }
}

/// Request whose completion reaches the host after the end of the open window.
#[derive(Clone, Debug)]
struct Answer {
    finish: Time,
    tag: u64,
    operation: Operation,
    bytes: u64,
    failed: bool,
    latency: Time,
    breakdown: Option<Breakdown>,
}

impl PartialEq for Answer {
    fn eq(&self, other: &Answer) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Answer {}

impl PartialOrd for Answer {
    fn partial_cmp(&self, other: &Answer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Answer {
    fn cmp(&self, other: &Answer) -> Ordering {
        (self.finish, self.tag).cmp(&(other.finish, other.tag))
    }
}

/// Collects the windows of a run. A [`Watcher`](crate::run::Watcher) passes its calls on to the methods.
#[derive(Clone, Debug)]
pub struct Series {
    width: Time,
    adaptive: bool,
    /// Sample at the start of the open window; `None` before the measured part.
    before: Option<Sample>,
    open: Window,
    closed: Vec<Window>,
    ahead: BinaryHeap<Reverse<Answer>>,
    /// Number of windows that may still be closed.
    left: u64,
    /// End of the last window, once the maximum number of windows is reached.
    full_at: Option<Time>,
}

impl Series {
    /// Creates a series without windows.
    pub fn new(width: Width) -> Series {
        let (width, adaptive) = match width {
            Width::Fixed(width) => (width.max(Time(1)), false),
            Width::Adaptive => (FIRST_WIDTH, true),
        };
        let (open, closed, ahead) = Default::default();
        let left = if adaptive { u64::MAX } else { Width::MAX_FIXED };
        Series { width, adaptive, before: None, open, closed, ahead, left, full_at: None }
    }

    /// Returns the end of the open window: [`Time::ZERO`] before the first window, and [`Time::NEVER`] once the maximum
    /// number of windows is reached.
    pub fn next_sample(&self) -> Time {
        match (self.full_at, &self.before) {
            (Some(_), _) => Time::NEVER,
            (None, Some(_)) => self.open.end,
            (None, None) => Time::ZERO,
        }
    }

    /// Returns the end of the last window if the run is longer than [`Width::MAX_FIXED`] windows.
    pub fn full_at(&self) -> Option<Time> {
        self.full_at
    }

    /// Adds a request that has completed.
    pub fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) {
        if self.full_at.is_some() {
            return;
        }
        let Completion { request, status, finish, .. } = completion;
        let answer = Answer {
            finish: *finish,
            tag: request.tag,
            operation: request.operation,
            bytes: request.bytes(),
            failed: *status != Status::Ok,
            latency: finish.since(request.arrival),
            breakdown: breakdown.copied(),
        };
        if answer.finish <= self.open.end {
            self.open.record(&answer);
        } else {
            self.ahead.push(Reverse(answer));
        }
    }

    /// Closes the open window with a sample of the device, and opens the next one.
    pub fn record(&mut self, sample: &Sample) {
        self.close(sample);
        if self.left == 0 {
            self.full_at = Some(sample.at);
            self.ahead = BinaryHeap::new();
            return;
        }
        self.open = Window { start: sample.at, end: sample.at + self.width, ..Window::default() };
        while self.ahead.peek().is_some_and(|answer| answer.0.finish <= self.open.end) {
            if let Some(Reverse(answer)) = self.ahead.pop() {
                self.open.record(&answer);
            }
        }
    }

    /// Closes the last window with a sample at the end of the run. This window may be shorter. It is dropped if it has
    /// no length and no requests.
    pub fn record_last(&mut self, sample: &Sample) {
        if self.full_at.is_some() {
            return;
        }
        if sample.at > self.open.start || self.open.answered.iter().any(Option::is_some) {
            self.close(sample);
        }
        self.before = None;
        if self.adaptive {
            self.widen_to_requests();
        }
    }

    /// Merges windows until each has enough requests on average.
    fn widen_to_requests(&mut self) {
        let answered = self.closed.iter().flat_map(|window| &window.answered).flatten();
        let requests: u64 = answered.map(|answered| answered.count + answered.errors).sum();
        let enough = ((requests / REQUESTS_PER_WINDOW) as usize).max(MIN_WINDOWS);
        while self.closed.len() > enough {
            self.widen();
        }
    }

    fn close(&mut self, sample: &Sample) {
        if let Some(before) = self.before.replace(sample.clone()) {
            let mut window = std::mem::take(&mut self.open);
            window.close(&before, sample);
            self.closed.push(window);
            self.left -= 1;
            if self.adaptive && self.closed.len() == MAX_WINDOWS {
                self.widen();
            }
        }
    }

    /// Merges windows in pairs.
    fn widen(&mut self) {
        let mut pairs = std::mem::take(&mut self.closed).into_iter();
        while let Some(mut window) = pairs.next() {
            if let Some(next) = pairs.next() {
                window.join(&next);
            }
            self.closed.push(window);
        }
        self.width += self.width;
    }

    /// Returns the closed windows that were not taken yet, in order. Adaptive windows have to be taken at the end of
    /// the run.
    pub fn take_closed(&mut self) -> Vec<Window> {
        std::mem::take(&mut self.closed)
    }

    /// Returns `true` if windows can be taken during the run.
    pub fn is_streamed(&self) -> bool {
        !self.adaptive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::request::Request;

    #[test]
    fn steps_are_in_order_and_narrow() {
        let mut before = 0;
        for ns in (0..5_000).chain((13..50).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + (1 << (bit - 2))])) {
            let step = step_of(Time::from_ns(ns));
            assert!(step >= before, "{ns} ns");
            before = step;
            let off = span_of(step).1.abs_diff(ns * 1000 + 500) as f64;
            assert!(off <= (ns as f64 * 1000.0 * 0.0157).max(500.0), "{ns} ns is taken for {} ps", span_of(step).1);
        }
    }

    fn completion(arrival: u64, finish: u64) -> Completion {
        let request = Request::new(Time::from_ns(arrival), Operation::Read, 0, 8);
        Completion { request, status: Status::Ok, start: request.arrival, finish: Time::from_ns(finish) }
    }

    fn sample(at: Time) -> Sample {
        Sample { at, outstanding: u128::from(at.ps()), ..Sample::default() }
    }

    #[test]
    fn completions_count_in_the_window_that_they_reach_the_host_in() {
        let mut series = Series::new(Width::Fixed(Time::from_ns(100)));
        series.record(&sample(Time::ZERO));
        // The three finish at the end of the first window, just after it, and two windows later.
        for finish in [100, 101, 350] {
            series.completed(&completion(0, finish), None);
        }
        for at in [100, 200, 300] {
            assert_eq!(series.next_sample(), Time::from_ns(at));
            series.record(&sample(Time::from_ns(at)));
        }
        series.record_last(&sample(Time::from_ns(350)));
        let windows = series.take_closed();
        let counts: Vec<u64> = windows.iter().map(|w| w.of(Operation::Read).map_or(0, |read| read.count)).collect();
        assert_eq!(counts, [1, 1, 0, 1]);
        assert_eq!(windows[3].width(), Time::from_ns(50));
        // 350 ns are in the step from 344 to 352 ns.
        assert_eq!(windows[3].of(Operation::Read).unwrap().quantile_us(0.5), Some(0.348));
    }

    #[test]
    fn the_number_of_windows_of_a_fixed_width_is_limited() {
        let mut series = Series::new(Width::Fixed(Time(1)));
        series.record(&sample(Time::ZERO));
        let mut ended = 0;
        for ps in 1..=Width::MAX_FIXED + 1 {
            assert_eq!(series.next_sample(), if ps > Width::MAX_FIXED { Time::NEVER } else { Time(ps) });
            if ps <= Width::MAX_FIXED {
                series.record(&sample(Time(ps)));
            }
            ended += series.take_closed().len() as u64;
        }
        assert_eq!((ended, series.full_at()), (Width::MAX_FIXED, Some(Time(Width::MAX_FIXED))));
        // Later requests belong to no window and are not kept.
        series.completed(&completion(0, 350_000), None);
        series.record_last(&sample(Time::from_ns(350_000)));
        assert!(series.take_closed().is_empty() && series.ahead.is_empty());
    }

    #[test]
    fn windows_double_when_there_are_many() {
        let mut series = Series::new(Width::Adaptive);
        series.record(&sample(Time::ZERO));
        for us in 1..=5_000 {
            series.completed(&completion(us * 1000 - 7, us * 1000), None);
            while series.next_sample() <= Time::from_us(us) {
                series.record(&sample(series.next_sample()));
            }
        }
        series.record_last(&sample(Time::from_us(5_000)));
        let windows = series.take_closed();
        // 5 ms are in 625 windows of 8 us. 5,000 requests are enough for 25 windows, so windows are merged to 256 us.
        assert_eq!(windows.len(), 20);
        for (index, window) in windows[..19].iter().enumerate() {
            assert_eq!((window.start, window.width()), (Time::from_us(index as u64 * 256), Time::from_us(256)));
            let read = window.of(Operation::Read).unwrap();
            assert_eq!((read.count, read.latency_sum, read.bytes), (256, 1_792_000, 256 * 4096));
            assert_eq!(window.outstanding, 256_000_000);
        }
    }

    #[test]
    fn few_requests_have_few_windows() {
        let windows_of = |requests: u64| {
            let mut series = Series::new(Width::Adaptive);
            series.record(&sample(Time::ZERO));
            for us in 1..=1000 {
                if us <= requests {
                    series.completed(&completion(us * 1000 - 7, us * 1000), None);
                }
                series.record(&sample(series.next_sample()));
            }
            series.record_last(&sample(series.next_sample()));
            series.take_closed().len()
        };
        // 1,001 windows of 1 us, merged in pairs until there are 16.
        assert_eq!([0, 10, 1000].map(windows_of), [16; 3]);
    }
}
