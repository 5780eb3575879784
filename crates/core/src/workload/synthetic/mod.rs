//! Synthetic workloads in fio's vocabulary: `rw=randwrite bs=4k iodepth=32 number_ios=2m`, or a job file of fio's.
//!
//! A text holds one job or several, separated by `;`, a file one in each section; each is a [`Source`] of its own.
//! What each key means, and where a simulated job differs from fio's, is in `docs/reference/synthetic.md`, which is
//! written from the table in `keys`. A job needs no memory for its blocks and allocates nothing while it runs.
//!
//! A job goes through these stages: `jobfile` or `oneline` finds the keys, `keys` and `values` read them into
//! `options`, `plan` gives each job its place among the others, and here it becomes a stream of requests; `replay` is
//! a job that reads them from a trace instead.

mod address;
mod arrival;
mod jobfile;
mod keys;
pub mod model;
mod oneline;
mod options;
mod plan;
mod reference;
mod replay;
mod size;
mod values;

use address::{Addresses, Choice, Follow, Grid, Order, Passes, Scatter, Window, Zipf, Zone};
use arrival::Arrivals;
use options::{Amount, Distribution, Kind, Modifier, Options, Pattern, Rw, Sequencer, ZoneMode, ZoneShare};
use plan::Place;
use size::Sizes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

pub use plan::Planned;
pub use reference::reference_page;
pub use replay::Replayed;

use super::request::{Operation, Request, SECTOR};
use super::{Pace, Source, SourceError, readable};
use crate::sim::rng::Rng;
use crate::sim::time::Time;

/// The directions, as fio counts them: reads, writes, trims; the same as [`Operation::index`].
const READ: usize = Operation::Read.index();
const WRITE: usize = Operation::Write.index();
const TRIM: usize = Operation::Trim.index();

/// fio's default of `bs`.
const DEFAULT_BLOCK: u64 = 4096;

/// How many jobs run at once, clones included: as many as in fio (its `REAL_MAX_JOBS`).
pub const MAX_JOBS: usize = 4096;

/// The error for more jobs than that.
fn too_many() -> String {
    format!("there are more than {MAX_JOBS} jobs, clones by numjobs included; that is the most, as in fio")
}

/// One job as it is written.
struct Section {
    options: Options,
    /// What it is called where it has no `name`.
    name: String,
    /// Where it stands, for errors.
    place: String,
    /// Where its keys stand, by their names, where that is not all in one line.
    keys: BTreeMap<&'static str, String>,
    /// What was noticed while it was read.
    warnings: Vec<String>,
}

impl Section {
    /// An error of the job; where it begins with a key between backticks, at the place of that key.
    fn error(&self, why: impl std::fmt::Display) -> SourceError {
        let why = why.to_string();
        let key = why.strip_prefix('`').and_then(|rest| rest.split(['=', '`']).next());
        let place = key.and_then(|key| self.keys.get(key)).unwrap_or(&self.place);
        SourceError(format!("{place}: {why}"))
    }
}

/// A job that is ready to run.
pub struct Job {
    /// Where its requests come from.
    pub source: Box<dyn Source>,
    /// What `write_iolog` asks for.
    pub write_iolog: Option<Log>,
}

/// A file that the requests of a job are to be written to when they are issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Its path.
    pub path: String,
    /// Where the job asks for it, for errors.
    pub place: String,
}

/// The jobs of `text`, for a device of `device_bytes`. `seed` is the run's; a job with `randseed` has its own.
///
/// An error names the job, the key and its value, and says what would be right.
pub fn parse(text: &str, device_bytes: u64, seed: u64) -> Result<Vec<Job>, SourceError> {
    parse_behind(0, text, device_bytes, seed)
}

/// As [`parse`], where so many jobs stand before those of the text: jobs without a name have the numbers behind them.
pub fn parse_behind(others: usize, text: &str, device_bytes: u64, seed: u64) -> Result<Vec<Job>, SourceError> {
    open(plan::plan(oneline::read(text, others)?, device_bytes, seed)?, device_bytes)
}

/// How many jobs a text holds, clones not counted.
pub fn jobs_in(text: &str) -> usize {
    oneline::parts(text).count()
}

/// The jobs of a job file, and a digest of all that was read and the seed. As [`parse`]; errors name file and line.
pub fn read_file(path: &Path, device_bytes: u64, seed: u64) -> Result<(Vec<Job>, String), SourceError> {
    let mut all = String::new();
    let mut files = |path: &Path| {
        let text = text_of(path)?;
        all.push_str(&text);
        all.push('\0');
        Ok(text)
    };
    let planned = plan_file(path, &mut files, device_bytes, seed)?;
    Ok((open(planned, device_bytes)?, digest(&all, seed)))
}

/// The largest job file.
const MAX_FILE: u64 = 1 << 20;

/// The text of a file.
fn text_of(path: &Path) -> Result<String, String> {
    let name = path.display();
    let metadata = std::fs::metadata(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return Err(format!("{name} is no job file: that is a regular file of at most 1 MiB"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("{name} is no job file: it is not text in UTF-8"))
}

/// As [`parse`], but opens no trace of `read_iolog`.
pub fn plan_text(text: &str, device_bytes: u64, seed: u64) -> Result<Vec<Planned>, SourceError> {
    plan::plan(oneline::read(text, 0)?, device_bytes, seed)
}

/// As [`read_file`], but opens no trace of `read_iolog`, and no file by itself: `files` gives the text of the job file
/// and of those that it includes.
pub fn plan_file(
    path: &Path,
    files: &mut dyn FnMut(&Path) -> Result<String, String>,
    device_bytes: u64,
    seed: u64,
) -> Result<Vec<Planned>, SourceError> {
    plan::plan(jobfile::read(path, files)?, device_bytes, seed)
}

/// Opens what the jobs replay.
fn open(planned: Vec<Planned>, device_bytes: u64) -> Result<Vec<Job>, SourceError> {
    let open = |planned| match planned {
        Planned::Made(job) => {
            let write_iolog = job.place.write_iolog.clone();
            Ok(Job { source: job as Box<dyn Source>, write_iolog })
        }
        Planned::Replayed(recipe) => {
            let write_iolog = recipe.place.write_iolog.clone();
            Ok(Job { source: Box::new(Replayed::open(*recipe, device_bytes)?), write_iolog })
        }
    };
    planned.into_iter().map(open).collect()
}

/// A digest of jobs: of their text, and the seed they run with. As hexadecimal digits.
pub fn digest(text: &str, seed: u64) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(format!("{seed} {text}").as_bytes()))
}

/// Whether `text` looks like a job rather than the name of a file: one of its words starts with `rw=`, `readwrite=` or
/// `read_iolog=`.
pub fn looks_like_job(text: &str) -> bool {
    let starts = ["rw=", "readwrite=", "read_iolog="];
    text.split(|c: char| c.is_whitespace() || c == ';').any(|word| starts.iter().any(|start| word.starts_with(start)))
}

/// Whether the file at `path` is a job file: by its name, `*.fio`, `*.job` or `*.ini`, or its first line, `[...]`.
pub fn is_job_file(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let by_name = path.extension().and_then(|extension| extension.to_str());
    if by_name.is_some_and(|extension| ["fio", "job", "ini"].contains(&extension)) {
        return true;
    }
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| {
        use std::io::Read;
        file.take(4096).read_to_end(&mut start)
    });
    let text = String::from_utf8_lossy(&start);
    read.is_ok() && jobfile::looks_like(&text)
}

/// Whether `word` is a value of `rw`, like `randread`.
pub fn is_pattern(word: &str) -> bool {
    options::PATTERNS.iter().any(|pattern| pattern.name == word)
}

/// One job: a stream of requests made up as it goes. A clone continues on its own, with the same requests.
#[derive(Clone, Debug)]
pub struct Synthetic {
    place: Place,
    description: String,
    warnings: Vec<String>,
    kind: Kind,
    /// Percent of reads in a mix.
    reads: u32,
    /// By direction.
    sizes: [Sizes; 3],
    addresses: Addresses,
    /// Of an open-loop job, by direction.
    arrivals: Option<Box<[Option<Arrivals>; 3]>>,
    mix_rng: Rng,
    size_rng: Rng,
    pace: Pace,
    limits: Limits,
    flushes: Flushes,
    /// Force unit access for writes.
    fua: bool,
    requests: u64,
    bytes: u64,
    /// When the last request arrived.
    last: Time,
    /// What was trimmed and is to be written next: first sector, sectors.
    trimmed: Option<(u64, u32)>,
    out_of_time: bool,
}

/// What ends a job.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// End after so many requests, or pairs of trim and write; `u64::MAX` for no such end.
    requests: u64,
    /// End when so many bytes have been requested; `u64::MAX` for no such end.
    bytes: u64,
    stop_at: Option<Time>,
    measure_from: Time,
}

/// When a job flushes.
#[derive(Clone, Copy, Debug, Default)]
struct Flushes {
    /// After so many writes each; 0 for never.
    every: [u32; 2],
    /// At the end, too.
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
    /// What the job does, in a line for people.
    pub fn description(&self) -> &str {
        &self.description
    }

    fn new(options: &Options, place: Place, seed: u64) -> Result<Synthetic, String> {
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
        let (order, follow) = match pattern.random {
            false => (Order::Sequential([0; 3], skip(modifier)), None),
            true => {
                let order = random_order(options, directions, &sizes, &window, &mut address_rng)?;
                (order, follow(options, modifier, rng("follow")))
            }
        };
        let limits = Limits::new(options, &region, unit, skip(modifier))?;
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
            requests: 0,
            bytes: 0,
            last: Time::ZERO,
            trimmed: None,
            out_of_time: false,
            place,
        })
    }

    /// The operation of the next request at a new address, and when it arrives; `None` beyond the end of time.
    #[inline]
    fn next_arrival(&mut self) -> Option<(Operation, Time)> {
        let by_kind = match self.kind {
            Kind::Read => Operation::Read,
            Kind::Write => Operation::Write,
            Kind::Trim | Kind::TrimWrite => Operation::Trim,
            Kind::Mixed => match &self.arrivals {
                // In an open loop, the rates make the mix.
                Some(arrivals) => {
                    let due = |direction: usize| arrivals[direction].as_ref().map(Arrivals::due);
                    return match (due(READ), due(WRITE)) {
                        (Some(read), Some(Some(write))) if read.is_none_or(|read| write < read) => {
                            Some((Operation::Write, write))
                        }
                        (Some(read), _) => Some((Operation::Read, read?)),
                        (None, write) => Some((Operation::Write, write??)),
                    };
                }
                None if (self.mix_rng.below(100) as u32) < self.reads => Operation::Read,
                None => Operation::Write,
            },
        };
        match &self.arrivals {
            None => Some((by_kind, Time::ZERO)),
            Some(arrivals) => Some((by_kind, arrivals[by_kind.index()].as_ref()?.due()?)),
        }
    }

    /// A request at a new address.
    #[inline]
    fn fresh(&mut self, operation: Operation, arrival: Time) -> Request {
        let direction = operation.index();
        let sectors = self.sizes[direction].next(&mut self.size_rng);
        let lba = self.addresses.next(direction, sectors);
        if self.kind == Kind::TrimWrite {
            self.trimmed = Some((lba, sectors));
        }
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(u64::from(sectors) * SECTOR);
        Request::new(arrival, operation, lba, sectors)
    }

    /// A flush, where one is due.
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

    #[cold]
    fn too_late(&self) -> SourceError {
        SourceError(format!("{}: arrivals reach 213 days, beyond which there is no time; set runtime", self.place.name))
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

    fn put_behind(&mut self, others: usize) {
        self.place.put_behind(others);
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

    /// By requests or bytes, whichever end is nearer; not known where time alone ends the job.
    fn progress(&self) -> Option<f64> {
        let part = |done: u64, max: u64| (max != u64::MAX).then(|| done as f64 / max as f64);
        let parts = [part(self.requests, self.limits.requests), part(self.bytes, self.limits.bytes)];
        parts.into_iter().flatten().reduce(f64::max).map(|part| part.min(1.0))
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// How many sectors a sequential job leaves out between two requests.
fn skip(modifier: Modifier) -> i64 {
    match modifier {
        Modifier::Skip(bytes) => bytes / SECTOR as i64,
        Modifier::None | Modifier::Run(_) => 0,
    }
}

/// What follows others in a random job; `None` where every address is drawn.
fn follow(options: &Options, modifier: Modifier, rng: Rng) -> Option<Follow> {
    let run = if let Modifier::Run(run) = modifier { run } else { 1 };
    let given = options.percentage_random.unwrap_or_default();
    let percent = given.map(|percent| percent.unwrap_or(100));
    let identical = options.rw_sequencer == Some(Sequencer::Identical);
    (run > 1 || percent != [100; 3]).then(|| Follow::new(run, identical, percent, rng))
}

/// The arrivals of an open-loop job, by direction.
fn arrivals(
    options: &Options,
    kind: Kind,
    reads: u32,
    sizes: &[Sizes; 3],
    rng: impl Fn(&str) -> Rng,
) -> Result<Option<Box<[Option<Arrivals>; 3]>>, String> {
    let (key, rates) = match (options.rate, options.rate_iops) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err("`rate` and `rate_iops` exclude each other; leave one out".to_owned()),
        (Some(rates), None) => ("rate", rates),
        (None, Some(rates)) => ("rate_iops", rates),
    };
    let process = options.rate_process.unwrap_or_default();
    let active: &[usize] = match (kind, reads) {
        (Kind::Mixed, 100) => &[READ],
        (Kind::Mixed, 0) => &[WRITE],
        _ => directions(kind),
    };
    let mut arrivals = [None, None, None];
    for (index, &direction) in active.iter().enumerate() {
        let names = ["reads", "writes", "trims"];
        let rate = rates[direction].ok_or_else(|| {
            let name = names[direction];
            format!("`{key}` says nothing of the {name} of rw; without a rate, give the {name} a job of their own")
        })?;
        let rng = rng(if index == 0 { "arrival" } else { "arrival/write" });
        let smallest = u64::from(sizes[direction].min()) * SECTOR;
        arrivals[direction] = Some(match key {
            "rate" => Arrivals::by_bytes(process, rate, smallest, rng),
            _ => Arrivals::new(process, rate, rng),
        });
    }
    Ok(Some(Box::new(arrivals)))
}

/// The directions that a job's addresses and sizes are drawn for; the write of a pair takes those of its trim.
fn directions(kind: Kind) -> &'static [usize] {
    match kind {
        Kind::Read => &[READ],
        Kind::Write => &[WRITE],
        Kind::Mixed => &[READ, WRITE],
        Kind::Trim | Kind::TrimWrite => &[TRIM],
    }
}

/// By direction, the sizes of `bssplit`, else of `bsrange`, else of `bs`.
fn sizes(options: &Options) -> Result<[Sizes; 3], String> {
    let sectors = |bytes: u64| {
        u32::try_from(bytes / SECTOR)
            .map_err(|_| format!("a block of {} is too large; at most 1 TiB", bytes_text(bytes)))
    };
    let of = |direction: usize| -> Result<Sizes, String> {
        if let Some(split) = options.bssplit.as_ref().and_then(|split| split[direction].as_ref()) {
            let weighted: Result<Vec<_>, String> =
                split.iter().map(|&(bytes, weight)| Ok((sectors(bytes)?, weight))).collect();
            return Ok(Sizes::split(&weighted?));
        }
        if let Some((min, max)) = options.bsrange.and_then(|range| range[direction]) {
            return Ok(Sizes::range(sectors(min)?, sectors(max)?));
        }
        let bytes = options.bs.and_then(|bs| bs[direction]).unwrap_or(DEFAULT_BLOCK);
        sectors(bytes).map(Sizes::Fixed)
    };
    Ok([of(READ)?, of(WRITE)?, of(TRIM)?])
}

/// The part of its area that a job works on, in bytes.
struct Region {
    /// Where the area starts on the device.
    area: u64,
    /// Where the region starts in the area.
    offset: u64,
    size: u64,
}

impl Region {
    /// `offset` and `size`. As in fio, an offset by percentage is rounded up to the smallest block, `unit`, and a size
    /// by percentage, which is of the whole area, ends with it and is rounded down.
    fn new(options: &Options, place: &Place, unit: u64) -> Result<Region, String> {
        let all = options.filesize.unwrap_or(place.area.bytes);
        if all > place.area.bytes {
            let (size, left) = two_texts(all, place.area.bytes);
            return Err(format!("`filesize` of {size} does not fit the device, which has {left}"));
        }
        let whole = if options.filesize.is_some() || place.area.named { "area" } else { "device" };
        let all = all / SECTOR * SECTOR;
        let bytes_of = |amount: Option<Amount>| match amount {
            None => Some(0),
            Some(Amount::Bytes(bytes)) => Some(bytes),
            Some(share) => share.of(all).and_then(|bytes| bytes.checked_next_multiple_of(unit)),
        };
        let offset = bytes_of(options.offset)
            .zip(bytes_of(options.offset_increment).and_then(|step| step.checked_mul(u64::from(place.clone))))
            .and_then(|(offset, steps)| offset.checked_add(steps))
            .filter(|&offset| offset < all)
            .ok_or_else(|| {
                let key = if place.clone > 0 { "`offset` and `offset_increment` leave" } else { "`offset` leaves" };
                format!("{key} nothing of the {whole} of {}", bytes_text(all))
            })?;
        let left = all - offset;
        let size = match options.size {
            None => left,
            Some(Amount::Bytes(bytes)) if bytes <= left => bytes,
            Some(Amount::Bytes(bytes)) => {
                let (size, left) = two_texts(bytes, left);
                return Err(format!("`size` of {size} does not fit the {whole}, which has {left} after the offset"));
            }
            Some(share) => share.of(all).unwrap_or(left).min(left) / unit * unit,
        };
        Ok(Region { area: place.area.start, offset, size })
    }
}

/// Where requests go at a time: a zone of `zonemode=strided`, else the whole region.
fn window(options: &Options, region: &Region) -> Result<Window, String> {
    let first = (region.area + region.offset) / SECTOR;
    let end = first + region.size / SECTOR;
    let strided = match (options.zonemode, options.zonesize) {
        (Some(ZoneMode::Strided), None) => return Err("`zonemode=strided` needs zonesize".to_owned()),
        (Some(ZoneMode::None), Some(_)) => return Err("`zonemode=none` and `zonesize` exclude each other".to_owned()),
        (_, Some(size)) => Some(size),
        (_, None) => None,
    };
    let Some(size) = strided else {
        let extra = [("zonerange", options.zonerange), ("zoneskip", options.zoneskip)];
        if let Some((key, _)) = extra.iter().find(|(_, value)| value.is_some()) {
            return Err(format!("`{key}` needs zonemode=strided and zonesize"));
        }
        return Ok(Window { first, end, range: end - first, skip: 0, size: u64::MAX });
    };
    // As in fio, zones are as large as what is transferred in each, unless zonerange says otherwise.
    let range = options.zonerange.unwrap_or(size);
    if range > region.size {
        return Err(format!("a zone of {} does not fit {}", bytes_text(range), region_text(region)));
    }
    let skip = options.zoneskip.unwrap_or(0) / SECTOR;
    Ok(Window { first, end, range: range / SECTOR, skip, size: size / SECTOR })
}

/// Every block must fit the window.
fn check_fit(directions: &[usize], sizes: &[Sizes; 3], window: &Window) -> Result<(), String> {
    let largest = directions.iter().map(|&d| u64::from(sizes[d].max())).max().unwrap_or(0);
    if largest <= window.range {
        return Ok(());
    }
    let what = if window.size == u64::MAX { "region" } else { "zone" };
    let (block, range) = two_texts(largest * SECTOR, window.range * SECTOR);
    Err(format!("a block of {block} does not fit the {what} of {range}; make bs smaller or the {what} larger"))
}

impl Limits {
    /// After how many requests and bytes the job ends, `u64::MAX` for never. As in fio, after `io_size` bytes, else
    /// after `size`, unless `time_based`. Unlike in fio, the size of the device ends a job only where nothing else is
    /// given: `number_ios=2m` makes two million requests on a device of any size.
    fn new(options: &Options, region: &Region, unit: u64, skip: i64) -> Result<Limits, String> {
        if options.time_based && options.runtime.is_none() {
            return Err("`time_based` needs runtime".to_owned());
        }
        let bytes = match options.io_size {
            _ if options.time_based => u64::MAX,
            Some(amount) => amount.of(region.size).ok_or("`io_size` is beyond 64 bits")?.max(1),
            None if options.size.is_some() || options.number_ios.is_none() => once_over(region.size, unit, skip),
            None => u64::MAX,
        };
        let loops = u64::from(options.loops.unwrap_or(1));
        let times = |limit: u64| match limit {
            u64::MAX => Some(limit),
            limit => limit.checked_mul(loops).filter(|limit| *limit < u64::MAX),
        };
        let requests =
            times(options.number_ios.unwrap_or(u64::MAX)).ok_or("`number_ios` times `loops` is too large")?;
        let bytes = times(bytes).ok_or("what `loops` repeats is beyond 64 bits")?;
        let (stop_at, measure_from) = times_of(options)?;
        Ok(Limits { requests, bytes, stop_at, measure_from })
    }
}

/// How many bytes a job requests when it goes over its region once. What is left of a block at the end is never
/// reached, nor, as in fio, what is left out between the requests.
fn once_over(size: u64, unit: u64, skip: i64) -> u64 {
    match u64::try_from(skip).unwrap_or(0).checked_mul(SECTOR).and_then(|skip| skip.checked_add(unit)) {
        Some(step) if size >= unit => ((size - unit) / step + 1) * unit,
        _ => unit.min(size),
    }
}

/// When the job stops, and from when on it is measured: as in fio, `ramp_time` comes before `runtime`.
fn times_of(options: &Options) -> Result<(Option<Time>, Time), String> {
    let ramp = options.ramp_time.unwrap_or(0);
    let stop = match options.runtime {
        None => None,
        Some(runtime) => Some(runtime.checked_add(ramp).ok_or("`runtime` and `ramp_time` exceed 213 days")?),
    };
    let last = stop.unwrap_or(ramp);
    last.checked_add(options.startdelay.unwrap_or(0))
        .ok_or("`startdelay`, `ramp_time` and `runtime` together exceed 213 days")?;
    Ok((stop.map(Time), Time(ramp)))
}

/// Open loop with a rate, else closed loop.
fn pace(options: &Options) -> Result<Pace, String> {
    let think = Time(options.thinktime.unwrap_or(0));
    if options.rate.is_some() || options.rate_iops.is_some() {
        if think > Time::ZERO {
            return Err("`thinktime` waits for completions, which a rate does not; leave one out".to_owned());
        }
        return Ok(Pace::Timed { depth: options.iodepth });
    }
    let depth = options.iodepth.unwrap_or(1);
    if think == Time::ZERO {
        return Ok(Pace::Depth { depth, think });
    }
    let span = options.thinktime_iotime.map_or(Time::NEVER, Time);
    let requests = options.thinktime_blocks.unwrap_or(if span == Time::NEVER { 1 } else { u32::MAX });
    Ok(Pace::Batch { depth, requests, span, think })
}

/// The grids and choices of a random job. Directions whose grids are alike share one, as they share the random map in
/// fio: a block that was read is not written in the same pass.
fn random_order(
    options: &Options,
    directions: &[usize],
    sizes: &[Sizes; 3],
    window: &Window,
    rng: &mut Rng,
) -> Result<Order, String> {
    let mut grids = Vec::new();
    let mut alike: Vec<(u64, u64, Option<&Vec<ZoneShare>>)> = Vec::new();
    let mut by_direction = [0; 3];
    for &direction in directions {
        let block = u64::from(sizes[direction].min());
        let align = options.blockalign.and_then(|align| align[direction]).map_or(block, |bytes| bytes / SECTOR);
        // As in fio's `last_block`: the smallest block fits at the last position.
        let positions = (window.range - block.saturating_sub(align).min(window.range)) / align;
        if positions == 0 {
            return Err(format!("`blockalign` of {} leaves no place for a block", bytes_text(align * SECTOR)));
        }
        let zones = match &options.random_distribution {
            Some(Distribution::Zoned(zones)) => zones[direction].as_ref(),
            _ => None,
        };
        let key = (align, positions, zones);
        by_direction[direction] = match alike.iter().position(|other| *other == key) {
            Some(index) => index,
            None => {
                let aligned = align == block;
                grids.push(Grid { align, positions, choice: choice(options, &key, window, aligned, rng)? });
                alike.push(key);
                grids.len() - 1
            }
        };
    }
    Ok(Order::Random(grids, by_direction))
}

/// How a grid of `align` sectors with so many positions, and zones if any, is drawn from.
fn choice(
    options: &Options,
    &(align, positions, zones): &(u64, u64, Option<&Vec<ZoneShare>>),
    window: &Window,
    aligned: bool,
    rng: &mut Rng,
) -> Result<Choice, String> {
    Ok(match options.random_distribution {
        // fio has no random map with blockalign.
        None | Some(Distribution::Uniform) if options.norandommap || !aligned => Choice::Uniform,
        None | Some(Distribution::Uniform) => Choice::Passes(Passes::new(positions, rng)),
        Some(Distribution::Zipf(theta, centre)) => {
            Choice::Zipf(Zipf::new(positions, theta), Scatter::new(positions, centre, rng))
        }
        Some(Distribution::Pareto(h, centre)) => {
            Choice::Pareto { power: libm::log(h) / libm::log1p(-h), scatter: Scatter::new(positions, centre, rng) }
        }
        Some(Distribution::Normal(deviation, centre)) => Choice::Normal {
            mean: centre.unwrap_or(0.5) * positions as f64,
            deviation: deviation / 100.0 * positions as f64,
        },
        Some(Distribution::Zoned(_)) => match zones {
            None => Choice::Uniform,
            Some(shares) => Choice::Zoned(zone_table(shares, align, positions, window)?),
        },
    })
}

/// The zones of `zoned` and `zoned_abs` as positions of a grid.
fn zone_table(shares: &[ZoneShare], align: u64, positions: u64, window: &Window) -> Result<Vec<Zone>, String> {
    let mut zones = Vec::with_capacity(shares.len());
    let (mut access, mut start, mut parts, mut bytes) = (0, 0, 0, 0u64);
    for (index, share) in shares.iter().enumerate() {
        // The ends are computed from sums, so that what is rounded off one zone is in the next.
        let end = match share.range {
            Amount::Share(part, of) => {
                parts += part;
                Amount::Share(parts, of).of(positions).unwrap_or(positions)
            }
            Amount::Bytes(size) => {
                bytes = bytes.saturating_add(size);
                if bytes > window.range * SECTOR {
                    let range = bytes_text(window.range * SECTOR);
                    return Err(format!("`random_distribution`: zone {} ends beyond the region of {range}", index + 1));
                }
                (bytes / SECTOR / align).min(positions)
            }
        };
        if end == start && share.access > 0 {
            return Err(format!("`random_distribution`: zone {} is smaller than a block", index + 1));
        }
        access += share.access;
        zones.push(Zone { up_to: access, start, positions: end - start });
        start = end;
    }
    Ok(zones)
}

/// What was given and has no effect, or not the one that it seems to have.
fn warnings(options: &Options, name: &str, pattern: Pattern, limits: Limits, unit: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |when: bool, text: String| {
        if when {
            warnings.push(format!("{name}: {text}"));
        }
    };
    let rw = pattern.name;
    let given = |key: &str| options.given.contains(key);
    let has_rate = options.rate.is_some() || options.rate_iops.is_some();
    let mix_given = given("rwmixread") || given("rwmixwrite");
    warn(mix_given && pattern.kind != Kind::Mixed, format!("rwmixread and rwmixwrite have no effect on rw={rw}"));
    let both = pattern.kind == Kind::Mixed && !matches!(options.rwmixread, Some(0 | 100));
    warn(
        mix_given && has_rate && both,
        "rwmixread and rwmixwrite have no effect with a rate: as in fio, each direction has its own, like \
         rate_iops=700,300"
            .to_owned(),
    );
    for key in ["norandommap", "random_distribution", "blockalign", "percentage_random"] {
        warn(given(key) && !pattern.random, format!("{key} has no effect on rw={rw}, which is sequential"));
    }
    for key in ["fsync", "fdatasync", "end_fsync", "sync"] {
        let writes = !matches!(pattern.kind, Kind::Read | Kind::Trim);
        warn(given(key) && !writes, format!("{key} has no effect on rw={rw}, which does not write"));
    }
    let run = matches!(options.rw, Some(Rw { modifier: Modifier::Run(_), .. }));
    warn(given("rw_sequencer") && !run, "rw_sequencer needs a number of requests, like rw=randread:8".to_owned());
    warn(given("bs") && given("bssplit"), "bs is overridden by bssplit".to_owned());
    warn(given("bs") && given("bsrange") && !given("bssplit"), "bs is overridden by bsrange".to_owned());
    warn(given("bsrange") && given("bssplit"), "bsrange is overridden by bssplit".to_owned());
    warn(given("rate_process") && !has_rate, "rate_process needs rate_iops or rate".to_owned());
    for key in ["thinktime_blocks", "thinktime_iotime"] {
        warn(given(key) && options.thinktime.unwrap_or(0) == 0, format!("{key} needs thinktime"));
    }
    for key in ["replay_time_scale", "replay_no_stall", "replay_redirect"] {
        warn(given(key), format!("{key} needs read_iolog"));
    }
    let one = options.numjobs.unwrap_or(1) == 1;
    warn(given("offset_increment") && one, "offset_increment needs numjobs".to_owned());
    warn(given("io_size") && options.time_based, "io_size has no effect with time_based".to_owned());
    let Limits { requests, bytes, .. } = limits;
    let unreached = requests != u64::MAX && bytes != u64::MAX && requests.saturating_sub(1) >= bytes.div_ceil(unit);
    warn(
        unreached,
        format!(
            "number_ios={requests} is not reached: as in fio, size ends the job after {}; set io_size",
            bytes_text(bytes)
        ),
    );
    warnings
}

/// The line of [`Synthetic::description`].
fn describe(name: &str, options: &Options, pattern: Pattern, sizes: &Sizes, region: &Region) -> String {
    let size = match sizes {
        Sizes::Fixed(sectors) => bytes_text(u64::from(*sectors) * SECTOR),
        Sizes::Split(_) | Sizes::Range(..) => {
            let ends = (u64::from(sizes.min()) * SECTOR, u64::from(sizes.max()) * SECTOR);
            format!("{} to {}", bytes_text(ends.0), bytes_text(ends.1))
        }
    };
    let list = |rates: [Option<u64>; 3], text: fn(u64) -> String| match (pattern.kind, rates) {
        (Kind::Mixed, [Some(reads), Some(writes), _]) if reads != writes => {
            format!("{} reads and {} writes", text(reads), text(writes))
        }
        (Kind::Mixed, rates) => format!("{} in each direction", text(rates.into_iter().flatten().next().unwrap_or(0))),
        (kind, rates) => text(rates[directions(kind)[0]].unwrap_or(0)),
    };
    let rate = match (options.rate, options.rate_iops) {
        (Some(rates), _) => Some(list(rates, bytes_text)),
        (None, rates) => rates.map(|rates| list(rates, |rate| rate.to_string())),
    };
    let pace = match (rate, options.iodepth) {
        (Some(rate), depth) => {
            let process = options.rate_process.unwrap_or_default().name();
            let depth = depth.map_or(String::new(), |depth| format!(", at most {depth} outstanding"));
            format!("{rate} per second ({process}){depth}")
        }
        (None, depth) => format!("{} outstanding", depth.unwrap_or(1)),
    };
    let said = options.description.as_ref().map_or(String::new(), |said| format!(" ({said})"));
    format!("{name}: {} of {size} in {}, {pace}{said}", pattern.name, region_text(region))
}

fn region_text(region: &Region) -> String {
    match region.area + region.offset {
        0 => format!("the first {}", bytes_text(region.size)),
        offset => format!("{} from {} on", bytes_text(region.size), bytes_text(offset)),
    }
}

fn bytes_text(bytes: u64) -> String {
    readable(u128::from(bytes))
}

/// Two numbers of bytes that are not the same, exactly where they would look it.
fn two_texts(first: u64, second: u64) -> (String, String) {
    let texts = (bytes_text(first), bytes_text(second));
    if texts.0 == texts.1 { (format!("{first} B"), format!("{second} B")) } else { texts }
}

#[cfg(test)]
mod tests;
