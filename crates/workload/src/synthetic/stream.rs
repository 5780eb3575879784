//! A job as a stream of requests.

use std::ops::Range;

use super::address::Addresses;
use super::arrival::Arrivals;
use super::control::control;
use super::describe::{describe, warnings};
use super::directions::{READ, WRITE, directions};
use super::draw::sizes;
use super::files::Files;
use super::limits::Limits;
use super::options::{Kind, Modifier, Options, Pattern, Rw, WriteMode};
use super::pace::{arrivals, pace};
use super::place::Place;
use super::priority::Priorities;
use super::size::Sizes;
use super::targets::{Targets, targets};
use super::verify::Verify;
use crate::sim::request::{Operation, Request, SECTOR};
use crate::sim::rng::Rng;
use crate::sim::source::{Control, Pace, Source, SourceError};
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
    /// Several files, in place of `addresses`.
    files: Option<Box<Files>>,
    /// Verification of the writes.
    verify: Option<Box<Verify>>,
    /// Requests with high priority, if there are any.
    priorities: Option<Box<Priorities>>,
    /// True if writes are commands that write zeroes.
    zeroes: bool,
    /// True if the reads of the verification count in the limit of bytes.
    counts_reads: bool,
    /// Arrivals of an open-loop job, by direction.
    arrivals: Option<Box<[Option<Arrivals>; 3]>>,
    mix_rng: Rng,
    size_rng: Rng,
    pace: Pace,
    control: Control,
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

    /// Returns the start and the size in bytes of the areas of the device that the job uses, one for each file.
    pub fn areas(&self) -> Vec<(u64, u64)> {
        self.place.areas.iter().map(|area| (area.start, area.bytes)).collect()
    }

    pub(super) fn new(options: &Options, place: Place, seed: u64) -> Result<Synthetic, String> {
        let Rw { pattern, modifier } = options.rw.unwrap_or(Rw {
            pattern: Pattern { name: "read", kind: Kind::Read, random: false },
            modifier: Modifier::None,
        });
        let directions = directions(pattern.kind);
        let sizes = sizes(options)?;
        let unit = directions.iter().map(|&d| u64::from(sizes[d].min())).min().unwrap_or(1) * SECTOR;
        let rng = |part: &str| Rng::new(options.randseed.unwrap_or(seed), &format!("workload/{}/{part}", place.name));
        let Targets { region, addresses, files, size, once, overlaps } =
            targets(options, &place, &sizes, Rw { pattern, modifier }, &rng)?;
        let limits = Limits::new(options, size, once)?;
        let pass = if overlaps && pattern.random { once.max(limits.bytes.min(MOST)) } else { once };
        let verify = Verify::new(options, pattern.kind, overlaps, pass);
        let reads = options.rwmixread.unwrap_or(50);
        let mut warnings = warnings(options, &place.name, pattern, limits, unit);
        warnings.splice(0..0, place.warnings.iter().cloned());
        Ok(Synthetic {
            description: describe(&place.name, options, pattern, &sizes[directions[0]], &region),
            warnings,
            kind: pattern.kind,
            reads,
            addresses,
            files,
            verify: verify.map(Box::new),
            priorities: Priorities::new(options, rng("priority")).map(Box::new),
            zeroes: options.write_mode == Some(WriteMode::Zeroes),
            counts_reads: options.io_size.is_some(),
            arrivals: arrivals(options, pattern.kind, reads, &sizes, rng)?,
            sizes,
            mix_rng: rng("mix"),
            size_rng: rng("size"),
            pace: pace(options)?,
            control: control(options)?,
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

    /// Creates a request at a new address.
    #[inline(always)]
    fn fresh(&mut self, operation: Operation, arrival: Time) -> Request {
        let direction = operation.index();
        let sizes = &self.sizes[direction];
        let (lba, sectors) = match &mut self.files {
            None => place(sizes, &mut self.addresses, direction, &mut self.size_rng),
            Some(files) => {
                let file = files.next();
                let (lba, sectors) = place(sizes, &mut file.addresses, direction, &mut self.size_rng);
                file.done += u64::from(sectors) * SECTOR;
                (lba, sectors)
            }
        };
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

    /// Returns `true` for a closed loop without flushes, priorities, and writes after trims. Its requests depend on
    /// nothing but their number.
    fn is_plain(&self) -> bool {
        let Flushes { every, at_end, .. } = self.flushes;
        let flushes = every != [0; 2] || at_end;
        let varies = self.verify.is_some() || self.priorities.is_some();
        self.arrivals.is_none() && !varies && !flushes && self.kind != Kind::TrimWrite
    }

    /// Does the same as [`Source::next_request`] for each place, for a plain job.
    fn fill_plain(&mut self, into: &mut [Request]) -> usize {
        for (count, place) in into.iter_mut().enumerate() {
            if self.is_over() {
                return count;
            }
            let operation = self.next_operation();
            *place = self.fresh(operation, Time::ZERO);
            place.fua = self.fua && operation == Operation::Write;
            if self.zeroes && operation == Operation::Write {
                place.operation = Operation::WriteZeroes;
            }
        }
        into.len()
    }

    /// Returns `true` if a limit of the job is reached.
    #[inline]
    fn is_over(&self) -> bool {
        self.requests >= self.limits.requests || self.bytes >= self.limits.bytes
    }

    /// Returns the next request of the verification, if one is due. As in fio, a flush precedes the reads at the end of
    /// a pass.
    fn verification(&mut self) -> Option<Request> {
        let over = self.is_over();
        let verify = self.verify.as_mut()?;
        // A batch of the backlog that is due precedes the end of the pass.
        if let Some((lba, sectors)) = verify.next() {
            let read = Request::new(self.last, Operation::Read, lba, sectors);
            verify.read += read.bytes();
            return Some(read);
        }
        if !verify.ending && !verify.over && (over || self.bytes - verify.base >= verify.once) {
            verify.ending = true;
            return Some(Request::new(self.last, Operation::Flush, 0, 0));
        }
        if verify.ending {
            verify.ending = false;
            if self.counts_reads {
                self.bytes = self.bytes.saturating_add(std::mem::take(&mut verify.read));
            }
            verify.base = self.bytes;
            verify.over = self.requests >= self.limits.requests || self.bytes >= self.limits.bytes;
        }
        None
    }

    #[cold]
    fn too_late(&self) -> SourceError {
        SourceError(format!("{}: arrivals exceed 213 days, the limit of simulated time; set runtime", self.place.name))
    }
}

/// Bytes of a verifying job that has no other limit than time.
const MOST: u64 = 1 << 62;

/// Draws the size and the first sector of the next request. As in fio, the size of a sequential request is drawn again
/// until it fits.
#[inline(always)]
fn place(sizes: &Sizes, addresses: &mut Addresses, direction: usize, rng: &mut Rng) -> (u64, u32) {
    if let Some(placed) = addresses.next_mapped(sizes, rng) {
        return placed;
    }
    let sectors = match sizes {
        Sizes::Fixed(sectors) => *sectors,
        several => {
            let largest = addresses.largest(direction, several.min()).unwrap_or(u32::MAX);
            loop {
                let sectors = several.next(rng);
                if sectors <= largest {
                    break sectors;
                }
            }
        }
    };
    (addresses.next(direction, sectors), sectors)
}

impl Synthetic {
    /// Returns the next request, and `true` if it is only recorded for the verification, and not issued.
    #[inline]
    fn generate(&mut self) -> Result<Option<(Request, bool)>, SourceError> {
        if let Some(flush) = self.flush(false) {
            return Ok(Some((flush, false)));
        }
        let trimmed = self.trimmed.take();
        if trimmed.is_none()
            && self.verify.is_some()
            && let Some(request) = self.verification()
        {
            return Ok(Some((request, false)));
        }
        if trimmed.is_none() && self.is_over() {
            return Ok(self.flush(true).map(|flush| (flush, false)));
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
            if let Some(verify) = &mut self.verify {
                verify.wrote(request.lba, request.sectors);
            }
            if self.zeroes {
                request.operation = Operation::WriteZeroes;
            }
        }
        if let Some(arrivals) = &mut self.arrivals
            && let Some(arrivals) = &mut arrivals[operation.index()]
        {
            arrivals.advance(request.bytes());
        }
        Ok(Some((request, self.verify.as_ref().is_some_and(|verify| verify.only))))
    }
}

impl Source for Synthetic {
    #[inline]
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        loop {
            match self.generate()? {
                // A job with `verify_only` issues only the reads.
                Some((_, true)) => {}
                Some((mut request, false)) => {
                    if let Some(priorities) = &mut self.priorities {
                        priorities.mark(&mut request);
                    }
                    return Ok(Some(request));
                }
                None => return Ok(None),
            }
        }
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

    fn control(&self) -> Control {
        let Place { ends, together, .. } = &self.place;
        Control { ends: ends.clone(), together: together.clone(), ..self.control.clone() }
    }

    fn controlled(&mut self, outcome: String) {
        self.warnings.push(format!("{}: {outcome}", self.place.name));
    }

    fn streams(&self) -> Vec<String> {
        let name = &self.place.name;
        match &self.priorities {
            Some(priorities) if priorities.divides() => vec![name.clone(), format!("{name} (high priority)")],
            _ => vec![name.clone()],
        }
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
