//! A job as a stream of requests.

use std::ops::Range;

use super::address::{Addresses, Order};
use super::arrival::Arrivals;
use super::describe::{describe, warnings};
use super::directions::{READ, WRITE, directions};
use super::draw::{follow, random_order, run, sizes, skip};
use super::limits::{Limits, once_over};
use super::options::{Kind, Modifier, Options, Pattern, Rw};
use super::pace::{arrivals, pace};
use super::place::Place;
use super::region::{Region, check_fit, window};
use super::size::Sizes;
use crate::sim::request::{Operation, Request, SECTOR};
use crate::sim::rng::Rng;
use crate::sim::source::{Pace, Source, SourceError};
use crate::sim::time::Time;

/// A job that generates its requests on demand. A clone continues independently, with the same requests.
#[derive(Clone, Debug)]
pub struct Synthetic {
    pub(super) place: Place,
    description: String,
    warnings: Vec<String>,
    kind: Kind,
    /// Percentage of reads in a mix.
    reads: u32,
    /// Indexed by direction.
    sizes: [Sizes; 3],
    addresses: Addresses,
    /// Arrivals of an open-loop job, by direction.
    arrivals: Option<Box<[Option<Arrivals>; 3]>>,
    mix_rng: Rng,
    size_rng: Rng,
    pace: Pace,
    limits: Limits,
    flushes: Flushes,
    /// True if writes have FUA.
    fua: bool,
    /// Placement hint of writes.
    write_hint: u16,
    requests: u64,
    bytes: u64,
    /// Arrival of the last request.
    last: Time,
    /// First sector and number of sectors of the last trim, if it has to be followed by a write.
    trimmed: Option<(u64, u32)>,
    out_of_time: bool,
}

/// Flushes of a job.
#[derive(Clone, Copy, Debug, Default)]
struct Flushes {
    /// Numbers of writes after which to flush. 0 for never.
    every: [u32; 2],
    /// True to flush at the end as well.
    at_end: bool,
    writes: u64,
    due: bool,
}

impl Flushes {
    fn new(options: &Options, kind: Kind) -> Flushes {
        let writes = !matches!(kind, Kind::Read | Kind::Trim);
        let every = [options.fsync, options.fdatasync].map(|every| every.filter(|_| writes).unwrap_or(0));
        Flushes { every, at_end: options.end_fsync && writes, ..Flushes::default() }
    }

    #[inline]
    fn wrote(&mut self) {
        self.writes += 1;
        self.due = self.every.iter().any(|&every| every > 0 && self.writes.is_multiple_of(u64::from(every)));
    }
}

impl Synthetic {
    /// Returns a description of the job in one line.
    pub fn description(&self) -> &str {
        &self.description
    }

    pub(super) fn new(options: &Options, place: Place, seed: u64) -> Result<Synthetic, String> {
        let Rw { pattern, modifier } = options.rw.unwrap_or(Rw {
            pattern: Pattern { name: "read", kind: Kind::Read, random: false },
            modifier: Modifier::None,
        });
        let directions = directions(pattern.kind);
        let sizes = sizes(options)?;
        let unit = directions.iter().map(|&d| u64::from(sizes[d].min())).min().unwrap_or(1) * SECTOR;
        let region = Region::new(options, &place, unit)?;
        let window = window(options, &region)?;
        check_fit(directions, &sizes, &window)?;
        let rng = |part: &str| Rng::new(options.randseed.unwrap_or(seed), &format!("workload/{}/{part}", place.name));
        let mut address_rng = rng("address");
        let (order, follow) = if pattern.random {
            let order = random_order(options, directions, &sizes, &window, &mut address_rng)?;
            (order, follow(options, modifier, rng("follow")))
        } else {
            (Order::Sequential(run(&sizes, &window, &region, skip(modifier))), None)
        };
        let fixed = directions.iter().all(|&d| sizes[d].min() == sizes[d].max());
        let limits = Limits::new(options, &region, once_over(&region, unit, &order, directions, fixed))?;
        let reads = options.rwmixread.unwrap_or(50);
        let mut warnings = warnings(options, &place.name, pattern, limits, unit);
        warnings.splice(0..0, place.warnings.iter().cloned());
        Ok(Synthetic {
            description: describe(&place.name, options, pattern, &sizes[directions[0]], &region),
            warnings,
            kind: pattern.kind,
            reads,
            addresses: Addresses::new(window, order, follow, address_rng),
            arrivals: arrivals(options, pattern.kind, reads, &sizes, rng)?,
            sizes,
            mix_rng: rng("mix"),
            size_rng: rng("size"),
            pace: pace(options)?,
            limits,
            flushes: Flushes::new(options, pattern.kind),
            fua: options.sync == Some(true),
            write_hint: options.write_hint.unwrap_or(0),
            requests: 0,
            bytes: 0,
            last: Time::ZERO,
            trimmed: None,
            out_of_time: false,
            place,
        })
    }

    /// Returns the operation of the next request at a new address. In an open loop, the rates determine a mix.
    #[inline]
    fn next_operation(&mut self) -> Operation {
        match self.kind {
            Kind::Read => Operation::Read,
            Kind::Write => Operation::Write,
            Kind::Trim | Kind::TrimWrite => Operation::Trim,
            Kind::Mixed if (self.mix_rng.below(100) as u32) < self.reads => Operation::Read,
            Kind::Mixed => Operation::Write,
        }
    }

    /// Returns the operation and the arrival of the next request at a new address, or `None` beyond the end of
    /// simulated time.
    #[inline]
    fn next_arrival(&mut self) -> Option<(Operation, Time)> {
        if self.arrivals.is_none() || self.kind != Kind::Mixed {
            let operation = self.next_operation();
            let Some(arrivals) = &self.arrivals else { return Some((operation, Time::ZERO)) };
            return Some((operation, arrivals[operation.index()].as_ref()?.due()?));
        }
        let due = |direction: usize| self.arrivals.as_ref()?[direction].as_ref().map(Arrivals::due);
        match (due(READ), due(WRITE)) {
            (Some(read), Some(Some(write))) if read.is_none_or(|read| write < read) => Some((Operation::Write, write)),
            (Some(read), _) => Some((Operation::Read, read?)),
            (None, write) => Some((Operation::Write, write??)),
        }
    }

    /// Returns the size of the next request. As in fio, the size of a sequential request is drawn again until it fits.
    #[inline]
    fn next_size(&mut self, direction: usize) -> u32 {
        let sizes = &self.sizes[direction];
        if let Sizes::Fixed(sectors) = sizes {
            return *sectors;
        }
        let largest = self.addresses.largest(direction, sizes.min()).unwrap_or(u32::MAX);
        loop {
            let sectors = sizes.next(&mut self.size_rng);
            if sectors <= largest {
                return sectors;
            }
        }
    }

    /// Creates a request at a new address.
    #[inline(always)]
    fn fresh(&mut self, operation: Operation, arrival: Time) -> Request {
        let direction = operation.index();
        let sectors = self.next_size(direction);
        let lba = self.addresses.next(direction, sectors);
        if self.kind == Kind::TrimWrite {
            self.trimmed = Some((lba, sectors));
        }
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(u64::from(sectors) * SECTOR);
        let placement = if operation == Operation::Write { self.write_hint } else { 0 };
        Request { placement, ..Request::new(arrival, operation, lba, sectors) }
    }

    /// Returns a flush if one is due.
    #[inline]
    fn flush(&mut self, at_end: bool) -> Option<Request> {
        let due = self.flushes.due || (at_end && self.flushes.at_end);
        if !due {
            return None;
        }
        self.flushes.due = false;
        self.flushes.at_end &= !at_end;
        Some(Request::new(self.last, Operation::Flush, 0, 0))
    }

    /// Returns `true` for a closed loop without flushes, and without writes after trims. Its requests depend on nothing
    /// but their number.
    fn is_plain(&self) -> bool {
        let Flushes { every, at_end, .. } = self.flushes;
        self.arrivals.is_none() && every == [0; 2] && !at_end && self.kind != Kind::TrimWrite
    }

    /// Does the same as [`Source::next_request`] for each place, for a plain job.
    fn fill_plain(&mut self, into: &mut [Request]) -> usize {
        for (count, place) in into.iter_mut().enumerate() {
            if self.requests >= self.limits.requests || self.bytes >= self.limits.bytes {
                return count;
            }
            let operation = self.next_operation();
            *place = self.fresh(operation, Time::ZERO);
            place.fua = self.fua && operation == Operation::Write;
        }
        into.len()
    }

    #[cold]
    fn too_late(&self) -> SourceError {
        SourceError(format!("{}: arrivals exceed 213 days, the limit of simulated time; set runtime", self.place.name))
    }
}

impl Source for Synthetic {
    #[inline]
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        if let Some(flush) = self.flush(false) {
            return Ok(Some(flush));
        }
        let trimmed = self.trimmed.take();
        if trimmed.is_none() && (self.requests >= self.limits.requests || self.bytes >= self.limits.bytes) {
            return Ok(self.flush(true));
        }
        let (operation, arrival) = self.next_arrival().ok_or_else(|| self.too_late())?;
        if self.arrivals.is_some() && self.limits.stop_at.is_some_and(|stop| arrival >= stop) {
            self.out_of_time = true;
            return Ok(None);
        }
        let mut request = match trimmed {
            Some((lba, sectors)) => Request::new(arrival, Operation::Write, lba, sectors),
            None => self.fresh(operation, arrival),
        };
        self.last = arrival;
        if request.operation == Operation::Write {
            request.fua = self.fua;
            self.flushes.wrote();
        }
        if let Some(arrivals) = &mut self.arrivals
            && let Some(arrivals) = &mut arrivals[operation.index()]
        {
            arrivals.advance(request.bytes());
        }
        Ok(Some(request))
    }

    fn fill(&mut self, into: &mut [Request]) -> Result<usize, SourceError> {
        if self.is_plain() {
            return Ok(self.fill_plain(into));
        }
        for (count, place) in into.iter_mut().enumerate() {
            match self.next_request()? {
                Some(request) => *place = request,
                None => return Ok(count),
            }
        }
        Ok(into.len())
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn stop_at(&self) -> Option<Time> {
        self.limits.stop_at
    }

    fn measure_from(&self) -> Time {
        self.limits.measure_from
    }

    fn out_of_time(&self) -> bool {
        self.out_of_time
    }

    fn waits_for(&self) -> Range<usize> {
        self.place.waits_for.clone()
    }

    fn shift_positions(&mut self, others: usize) {
        self.place.shift_positions(others);
    }

    fn start_delay(&self) -> Time {
        self.place.start_delay
    }

    fn streams(&self) -> Vec<String> {
        vec![self.place.name.clone()]
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    /// Returns the progress by requests or bytes, whichever is greater. `None` if only time ends the job.
    fn progress(&self) -> Option<f64> {
        let part = |done: u64, max: u64| (max != u64::MAX).then(|| done as f64 / max as f64);
        let parts = [part(self.requests, self.limits.requests), part(self.bytes, self.limits.bytes)];
        parts.into_iter().flatten().reduce(f64::max).map(|part| part.min(1.0))
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}
