//! Preconditioning by workloads: serves their requests without time, in the order in which they would arrive.

use super::{OnProgress, PROGRESS_EVERY, Reached, report_progress, sealed};
use crate::device::Device;
use crate::ftl::Ftl;
use crate::ftl::temperature::written::Written;
use crate::sim::id::Lpn;
use crate::sim::request::{Operation, Request};
use crate::sim::source::{Pace, Source, SourceError};
use crate::sim::time::Time;

/// Runs workloads on `device` in functional mode.
///
/// Sources take turns. A closed-loop source serves one request in each turn. In the turn of an open-loop source, the
/// request with the earliest arrival among all open-loop sources is served.
pub fn precondition_with(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    on_progress: OnProgress,
) -> Result<Reached, SourceError> {
    let before = device.ftl().counters;
    Turns::check_ends(sources)?;
    let mut served = 0u64;
    serve_all(device, sources, &mut |device, request, share| {
        let reports = served / PROGRESS_EVERY;
        served += request.work();
        if served / PROGRESS_EVERY != reports {
            report_progress(device.ftl(), share(), on_progress).map_err(SourceError)?;
        }
        Ok(true)
    })?;
    let reached = sealed(device, &before);
    device.ftl().fault().map_or(Ok(reached), |fault| Err(SourceError(fault.to_string())))
}

/// Fails if only simulated time can end one of the sources. `how` says how they are used.
pub(super) fn check_ends_of(sources: &[Box<dyn Source>], how: &str) -> Result<(), SourceError> {
    if sources.iter().any(|source| ends_by_time_alone(source.as_ref())) {
        let what = format!("{how}, so `runtime` cannot end it: give it size, io_size or number_ios");
        return Err(SourceError(what));
    }
    Ok(())
}

/// Serves the requests of workloads in functional mode, and calls `each` after each request.
pub(crate) fn serve_all(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    each: AfterRequest,
) -> Result<(), SourceError> {
    let mut turns = Turns::new(sources);
    let [mut batch, mut next, mut after] = [(); 3].map(|()| Vec::with_capacity(BATCH));
    turns.read(&mut next, device.ftl())?;
    turns.read(&mut after, device.ftl())?;
    while !next.is_empty() {
        (batch, next, after) = (next, after, batch);
        turns.read(&mut after, device.ftl())?;
        prefetch(device.ftl(), &batch, &next);
        for request in &batch {
            device.serve_now(request);
            if !each(device, request, &|| turns.progress())? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Callback after a request, with a function that returns the progress of the workloads from 0 to 1. Returns `false` to
/// end them.
pub(crate) type AfterRequest<'a> = &'a mut dyn FnMut(&Device, &Request, &dyn Fn() -> f64) -> Result<bool, SourceError>;

/// Returns `true` if only simulated time can end a source.
pub(crate) fn ends_by_time_alone(source: &dyn Source) -> bool {
    !matches!(source.pace(), Pace::Timed { .. }) && source.stop_at().is_some() && source.progress().is_none()
}

/// Number of requests in a batch. While one batch is served, the processor prefetches the data of the next two.
const BATCH: usize = 32;

/// Number of units of a request that are prefetched. The hardware prefetcher detects the following ones.
const UNITS_AHEAD: u32 = 32;

/// Number of map entries in a cache line.
const ENTRIES_PER_LINE: usize = 16;

/// Prefetches the data of a batch and of the one after it. Their map entries were prefetched when the requests were
/// read.
fn prefetch(ftl: &Ftl, batch: &[Request], next: &[Request]) {
    for request in next {
        units_ahead(ftl, request).for_each(|unit| ftl.prefetch(Lpn(unit)));
    }
    for request in batch {
        units_ahead(ftl, request).for_each(|unit| ftl.prefetch_candidate(Lpn(unit)));
    }
}

/// Returns the first units of a request that changes data, as far as they are on the device.
#[inline]
fn units_ahead(ftl: &Ftl, request: &Request) -> std::ops::Range<u32> {
    let (per_unit, units) = (ftl.shape().unit_sectors, ftl.map.len());
    let device_end = u64::from(units) * u64::from(per_unit.divisor());
    let end = request.lba.saturating_add(u64::from(request.sectors)).min(device_end);
    if request.lba >= end || matches!(request.operation, Operation::Read | Operation::Flush) {
        return 0..0;
    }
    let first = per_unit.divide_long(request.lba) as u32;
    first..(first + UNITS_AHEAD).min(per_unit.divide_long(end - 1) as u32 + 1)
}

/// Fills a batch with the requests that `next` returns.
#[inline(always)]
fn fill(
    batch: &mut Vec<Request>,
    mut next: impl FnMut() -> Result<Option<Request>, SourceError>,
) -> Result<(), SourceError> {
    while batch.len() < BATCH {
        match next() {
            Ok(Some(request)) => batch.push(request),
            Ok(None) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Merged requests of several sources.
pub struct Turns<'a> {
    sources: &'a mut [Box<dyn Source>],
    states: Vec<State>,
    /// Index of the source that has the next turn.
    turn: usize,
}

/// State of a source.
#[derive(Clone, Debug)]
struct State {
    /// True for an open loop, whose requests have arrival times.
    timed: bool,
    /// Time at which the source starts, and from which its arrivals count. `None` while it waits for other sources.
    begin: Option<Time>,
    /// Next request of an open loop.
    next: Option<Request>,
    /// Time of the last arrival.
    last: Time,
    ended: bool,
}

impl Turns<'_> {
    /// Fails if only simulated time can end one of the sources.
    pub fn check_ends(sources: &[Box<dyn Source>]) -> Result<(), SourceError> {
        check_ends_of(sources, "a preconditioning workload is served without time")
    }
}

impl<'a> Turns<'a> {
    /// Creates the turns of these sources.
    pub fn new(sources: &'a mut [Box<dyn Source>]) -> Turns<'a> {
        let state = |pace| State {
            timed: matches!(pace, Pace::Timed { .. }),
            begin: None,
            next: None,
            last: Time::ZERO,
            ended: false,
        };
        Turns { states: sources.iter().map(|source| state(source.pace())).collect(), sources, turn: 0 }
    }

    /// Returns the progress of the sources from 0 to 1.
    pub fn progress(&self) -> f64 {
        self.sources.iter().find_map(|source| source.progress()).unwrap_or(0.0)
    }

    /// Reads a batch of requests, and prefetches the map entries of their units. The batch is empty when all sources
    /// have ended.
    fn read(&mut self, batch: &mut Vec<Request>, ftl: &Ftl) -> Result<(), SourceError> {
        batch.clear();
        if let ([source], [State { timed: false, .. }]) = (&mut self.sources[..], &self.states[..]) {
            fill(batch, || source.next_request())?;
        } else {
            fill(batch, || self.next_request())?;
        }
        for request in &*batch {
            units_ahead(ftl, request).step_by(ENTRIES_PER_LINE).for_each(|unit| ftl.map.prefetch(Lpn(unit)));
        }
        Ok(())
    }

    /// Returns the next request, or `None` when all sources have ended.
    pub fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        let mut passed = 0;
        while passed < self.states.len() {
            let index = self.turn;
            self.turn = if index + 1 == self.states.len() { 0 } else { index + 1 };
            let had_ended = self.states[index].ended;
            if let Some(request) = self.take_turn(index)? {
                return Ok(Some(request));
            }
            // Other sources may have waited for this one, which has just ended.
            passed = if self.states[index].ended && !had_ended { 0 } else { passed + 1 };
        }
        Ok(None)
    }

    /// Returns the request that is served in the turn of a source, if there is one.
    fn take_turn(&mut self, index: usize) -> Result<Option<Request>, SourceError> {
        if !self.starts(index)? || self.states[index].ended {
            return Ok(None);
        }
        if !self.states[index].timed {
            let request = self.sources[index].next_request()?;
            self.states[index].ended = request.is_none();
            return Ok(request);
        }
        // Start all open loops that can start, because any of them can have the earliest arrival.
        for other in 0..self.states.len() {
            self.starts(other)?;
        }
        let arrivals = self.states.iter().enumerate().filter_map(|(i, state)| Some((state.next.as_ref()?.arrival, i)));
        let Some((_, earliest)) = arrivals.min() else { return Ok(None) };
        let request = self.states[earliest].next.take();
        self.read_next(earliest)?;
        Ok(request)
    }

    /// Starts a source unless it waits for others. Returns `true` if the source has started.
    fn starts(&mut self, index: usize) -> Result<bool, SourceError> {
        if self.states[index].begin.is_some() {
            return Ok(true);
        }
        let others = self.sources[index].waits_for();
        let others = self.states.get(others.start..others.end.min(index)).unwrap_or_default();
        if others.iter().any(|other| !other.ended) {
            return Ok(false);
        }
        let at = others.iter().map(|other| other.last).max().unwrap_or(Time::ZERO);
        let begin = Time(at.0.saturating_add(self.sources[index].start_delay().0));
        self.states[index].begin = Some(begin);
        self.states[index].last = begin;
        if self.states[index].timed {
            self.read_next(index)?;
        }
        Ok(true)
    }

    /// Reads the next request of an open loop.
    fn read_next(&mut self, index: usize) -> Result<(), SourceError> {
        let (source, state) = (&mut self.sources[index], &mut self.states[index]);
        let begin = state.begin.unwrap_or(Time::ZERO);
        state.next = source.next_request()?;
        match &mut state.next {
            Some(request) => {
                request.arrival = Time(request.arrival.0.saturating_add(begin.0));
                state.last = request.arrival;
            }
            None => {
                state.ended = true;
                let stop = source.stop_at().filter(|_| source.out_of_time());
                state.last = state.last.max(Time(begin.0.saturating_add(stop.unwrap_or(Time::ZERO).0)));
            }
        }
        Ok(())
    }
}

impl Device {
    /// Serves a request in functional mode, for preconditioning with a workload and for tests. No request may be
    /// outstanding. Returns the contents that a read returns, with `verify`. Returns `None` if the request is outside
    /// the device, or if the device is worn out, during a lifetime.
    pub fn serve_now(&mut self, request: &Request) -> Option<Vec<u32>> {
        let end = request.lba.checked_add(u64::from(request.sectors))?;
        if end > self.sectors() {
            return None;
        }
        let Request { sectors, stream, placement, .. } = *request;
        let written = Written { sectors, stream, placement, ..Written::default() };
        let ftl = self.ftl_mut();
        let divider = ftl.shape().unit_sectors;
        let per_unit = divider.divisor();
        let mut contents = Vec::new();
        let mut sector = request.lba;
        let mut unit = divider.divide_long(sector) as u32;
        while sector < end {
            if let Some(life) = &mut ftl.life {
                if life.is_worn_out {
                    return None;
                }
                life.bytes_before = ftl.counters.host_bytes;
            }
            let start = u64::from(unit) * u64::from(per_unit);
            let (first, stop) = ((sector - start) as u32, (end.min(start + u64::from(per_unit)) - start) as u32);
            let lpn = Lpn(unit);
            let whole = stop - first == per_unit;
            match request.operation {
                Operation::Read if ftl.media.is_some() => {
                    ftl.settle(lpn);
                    contents.extend(ftl.read_contents(lpn, first, stop));
                }
                Operation::Read | Operation::Flush => {}
                Operation::Write => ftl.write_for(lpn, first, stop, request.tag as u32, written),
                Operation::Trim | Operation::WriteZeroes if whole => ftl.trim(lpn),
                Operation::Trim => {}
                Operation::WriteZeroes => ftl.write_for(lpn, first, stop, crate::nand::media::BLANK, written),
            }
            sector = start + u64::from(stop);
            unit += 1;
        }
        let together = ftl.shape().units_per_logical_page;
        if together > 1 && request.operation == Operation::Write {
            let first = divider.divide_long(request.lba) as u32;
            let units = ftl.host_units;
            let after = unit..(unit.div_ceil(together) * together).min(units);
            (first / together * together..first).chain(after).for_each(|other| ftl.rewrite(Lpn(other)));
        }
        Some(contents)
    }
}
