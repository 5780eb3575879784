//! Synthetic workloads in fio's vocabulary: `rw=randwrite bs=4k iodepth=32 number_ios=2m`.
//!
//! A text holds one job or several, separated by `;`; each is a [`Source`] of its own and runs beside the others.
//! What each key means, and where a simulated job differs from fio's, is in `docs/reference/synthetic.md`. A job needs
//! no memory for its blocks and allocates nothing while it runs.

mod address;
mod arrival;
pub mod model;
mod options;
mod size;

use address::{Addresses, Choice, Grid, Order, Passes, Permutation, Window, Zipf, Zone};
use arrival::Arrivals;
use options::{Amount, Distribution, Kind, Options, Pattern, ZoneMode, ZoneShare};
use size::Sizes;

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

/// The jobs of `text`, for a device of `device_bytes`. `seed` is the run's; a job with `randseed` has its own.
///
/// An error names the job, the key and its value, and says what would be right.
pub fn parse(text: &str, device_bytes: u64, seed: u64) -> Result<Vec<Synthetic>, SourceError> {
    let mut jobs: Vec<Synthetic> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for (index, options) in options::read(text)?.into_iter().enumerate() {
        let name = options.name.clone().unwrap_or_else(|| format!("job{}", index + 1));
        if !names.insert(name.clone()) {
            return Err(SourceError(format!("two jobs have the name `{name}`; give each its own with name=...")));
        }
        jobs.push(
            Synthetic::new(&options, &name, device_bytes, seed).map_err(|why| SourceError(format!("{name}: {why}")))?,
        );
    }
    Ok(jobs)
}

/// A digest of jobs: of their text, and the seed they run with. As hexadecimal digits.
pub fn digest(text: &str, seed: u64) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(format!("{seed} {text}").as_bytes()))
}

/// Whether `text` looks like a job rather than the name of a file: one of its words starts with `rw=` or `readwrite=`.
pub fn looks_like_job(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || c == ';')
        .any(|word| word.starts_with("rw=") || word.starts_with("readwrite="))
}

/// Whether `word` is a value of `rw`, like `randread`.
pub fn is_pattern(word: &str) -> bool {
    options::PATTERNS.iter().any(|pattern| pattern.name == word)
}

/// One job: a stream of requests made up as it goes. A clone continues on its own, with the same requests.
#[derive(Clone, Debug)]
pub struct Synthetic {
    name: String,
    description: String,
    warnings: Vec<String>,
    kind: Kind,
    /// Percent of reads in a mix.
    reads: u32,
    /// By direction.
    sizes: [Sizes; 3],
    addresses: Addresses,
    /// Of an open-loop job.
    arrivals: Option<Arrivals>,
    mix_rng: Rng,
    size_rng: Rng,
    pace: Pace,
    stop_at: Option<Time>,
    measure_from: Time,
    /// End after so many requests, or pairs of trim and write; `u64::MAX` for no such end.
    max_requests: u64,
    /// End when so many bytes have been requested; `u64::MAX` for no such end.
    max_bytes: u64,
    requests: u64,
    bytes: u64,
    /// What was trimmed and is to be written next: first sector, sectors.
    trimmed: Option<(u64, u32)>,
}

impl Synthetic {
    /// What the job does, in a line for people.
    pub fn description(&self) -> &str {
        &self.description
    }

    fn new(options: &Options, name: &str, device_bytes: u64, seed: u64) -> Result<Synthetic, String> {
        let pattern = options.rw.unwrap_or(Pattern { name: "read", kind: Kind::Read, random: false });
        let directions = directions(pattern.kind);
        let sizes = sizes(options)?;
        let unit = directions.iter().map(|&d| u64::from(sizes[d].min())).min().unwrap_or(1) * SECTOR;
        let region = Region::new(options, device_bytes, unit)?;
        let window = window(options, &region)?;
        check_fit(directions, &sizes, &window)?;
        let (max_requests, max_bytes) = limits(options, &region, unit)?;
        let (stop_at, measure_from) = times(options)?;
        let rng = |part: &str| Rng::new(options.randseed.unwrap_or(seed), &format!("workload/{name}/{part}"));
        let mut address_rng = rng("address");
        let order = match pattern.random {
            false => Order::Sequential([0; 3]),
            true => random_order(options, directions, &sizes, &window, &mut address_rng)?,
        };
        Ok(Synthetic {
            name: name.to_owned(),
            description: describe(name, options, pattern, &sizes[directions[0]], &region),
            warnings: warnings(options, name, pattern, (max_requests, max_bytes), unit),
            kind: pattern.kind,
            reads: options.rwmixread.unwrap_or(50),
            sizes,
            addresses: Addresses::new(window, order, address_rng),
            arrivals: options
                .rate_iops
                .map(|rate| Arrivals::new(options.rate_process.unwrap_or_default(), rate, rng("arrival"))),
            mix_rng: rng("mix"),
            size_rng: rng("size"),
            pace: pace(options)?,
            stop_at,
            measure_from,
            max_requests,
            max_bytes,
            requests: 0,
            bytes: 0,
            trimmed: None,
        })
    }

    /// A request at a new address.
    #[inline]
    fn fresh(&mut self, arrival: Time) -> Request {
        let operation = match self.kind {
            Kind::Read => Operation::Read,
            Kind::Write => Operation::Write,
            Kind::Trim | Kind::TrimWrite => Operation::Trim,
            Kind::Mixed if (self.mix_rng.below(100) as u32) < self.reads => Operation::Read,
            Kind::Mixed => Operation::Write,
        };
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
}

impl Source for Synthetic {
    #[inline]
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        let trimmed = self.trimmed.take();
        if trimmed.is_none() && (self.requests >= self.max_requests || self.bytes >= self.max_bytes) {
            return Ok(None);
        }
        let arrival = match &mut self.arrivals {
            None => Time::ZERO,
            Some(arrivals) => arrivals.next().ok_or_else(|| {
                SourceError(format!(
                    "{}: arrivals reach 213 days, beyond which there is no time; set runtime",
                    self.name
                ))
            })?,
        };
        if self.stop_at.is_some_and(|stop| arrival >= stop) {
            return Ok(None);
        }
        Ok(Some(match trimmed {
            Some((lba, sectors)) => Request::new(arrival, Operation::Write, lba, sectors),
            None => self.fresh(arrival),
        }))
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn stop_at(&self) -> Option<Time> {
        self.stop_at
    }

    fn measure_from(&self) -> Time {
        self.measure_from
    }

    fn streams(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    /// By requests or bytes, whichever end is nearer; not known where time alone ends the job.
    fn progress(&self) -> Option<f64> {
        let part = |done: u64, max: u64| (max != u64::MAX).then(|| done as f64 / max as f64);
        let parts = [part(self.requests, self.max_requests), part(self.bytes, self.max_bytes)];
        parts.into_iter().flatten().reduce(f64::max).map(|part| part.min(1.0))
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
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

/// By direction, the sizes of `bssplit`, else of `bs`.
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
        let bytes = options.bs.and_then(|bs| bs[direction]).unwrap_or(DEFAULT_BLOCK);
        sectors(bytes).map(Sizes::Fixed)
    };
    Ok([of(READ)?, of(WRITE)?, of(TRIM)?])
}

/// The part of the device that a job works on, in bytes.
struct Region {
    offset: u64,
    size: u64,
}

impl Region {
    /// `offset` and `size`. As in fio, an offset by percentage is rounded up to the smallest block, `unit`, and a size
    /// by percentage, which is of the whole device, ends with it and is rounded down.
    fn new(options: &Options, device_bytes: u64, unit: u64) -> Result<Region, String> {
        let device = device_bytes / SECTOR * SECTOR;
        let offset = match options.offset {
            None => Some(0),
            Some(Amount::Bytes(bytes)) => Some(bytes),
            Some(share) => share.of(device).and_then(|bytes| bytes.checked_next_multiple_of(unit)),
        };
        let offset = offset
            .filter(|&offset| offset < device)
            .ok_or_else(|| format!("`offset` leaves nothing of the device of {}", bytes_text(device_bytes)))?;
        let left = device - offset;
        let size = match options.size {
            None => left,
            Some(Amount::Bytes(bytes)) if bytes <= left => bytes,
            Some(Amount::Bytes(bytes)) => {
                let (size, left) = two_texts(bytes, left);
                return Err(format!("`size` of {size} does not fit the device, which has {left} after the offset"));
            }
            Some(share) => share.of(device).unwrap_or(left).min(left) / unit * unit,
        };
        Ok(Region { offset, size })
    }
}

/// Where requests go at a time: a zone of `zonemode=strided`, else the whole region.
fn window(options: &Options, region: &Region) -> Result<Window, String> {
    let first = region.offset / SECTOR;
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

/// After how many requests and bytes the job ends, `u64::MAX` for never. As in fio, after `io_size` bytes, else after
/// `size`, unless `time_based`. Unlike in fio, the size of the device ends a job only where nothing else is given:
/// `number_ios=2m` makes two million requests on a device of any size.
fn limits(options: &Options, region: &Region, unit: u64) -> Result<(u64, u64), String> {
    if options.time_based && options.runtime.is_none() {
        return Err("`time_based` needs runtime".to_owned());
    }
    let bytes = match options.io_size {
        _ if options.time_based => u64::MAX,
        Some(amount) => amount.of(region.size).ok_or("`io_size` is beyond 64 bits")?.max(1),
        // What is left of a block at the end is never reached.
        None if options.size.is_some() || options.number_ios.is_none() => region.size / unit * unit,
        None => u64::MAX,
    };
    Ok((options.number_ios.unwrap_or(u64::MAX), bytes))
}

/// When the job stops, and from when on it is measured: as in fio, `ramp_time` comes before `runtime`.
fn times(options: &Options) -> Result<(Option<Time>, Time), String> {
    let ramp = options.ramp_time.unwrap_or(0);
    let stop = match options.runtime {
        None => None,
        Some(runtime) => Some(runtime.checked_add(ramp).ok_or("`runtime` and `ramp_time` exceed 213 days")?),
    };
    Ok((stop.map(Time), Time(ramp)))
}

/// Open loop with `rate_iops`, else closed loop.
fn pace(options: &Options) -> Result<Pace, String> {
    let think = Time(options.thinktime.unwrap_or(0));
    if options.rate_iops.is_none() {
        return Ok(Pace::Depth { depth: options.iodepth.unwrap_or(1), think });
    }
    if think > Time::ZERO {
        return Err("`thinktime` waits for completions, which `rate_iops` does not; leave one out".to_owned());
    }
    Ok(Pace::Timed { depth: options.iodepth })
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
        Some(Distribution::Zipf(theta)) => Choice::Zipf(Zipf::new(positions, theta), Permutation::new(positions, rng)),
        Some(Distribution::Pareto(h)) => {
            Choice::Pareto { power: libm::log(h) / libm::log1p(-h), scatter: Permutation::new(positions, rng) }
        }
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
fn warnings(options: &Options, name: &str, pattern: Pattern, limits: (u64, u64), unit: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |when: bool, text: String| {
        if when {
            warnings.push(format!("{name}: {text}"));
        }
    };
    let rw = pattern.name;
    warn(
        options.rwmixread.is_some() && pattern.kind != Kind::Mixed,
        format!("rwmixread and rwmixwrite have no effect on rw={rw}"),
    );
    let random_only = [
        ("norandommap", options.norandommap),
        ("random_distribution", options.random_distribution.is_some()),
        ("blockalign", options.blockalign.is_some()),
    ];
    for (key, given) in random_only {
        warn(given && !pattern.random, format!("{key} has no effect on rw={rw}, which is sequential"));
    }
    warn(options.bs.is_some() && options.bssplit.is_some(), "bs is overridden by bssplit".to_owned());
    warn(options.rate_process.is_some() && options.rate_iops.is_none(), "rate_process needs rate_iops".to_owned());
    warn(options.io_size.is_some() && options.time_based, "io_size has no effect with time_based".to_owned());
    let (requests, bytes) = limits;
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
        Sizes::Split(_) => {
            let ends = (u64::from(sizes.min()) * SECTOR, u64::from(sizes.max()) * SECTOR);
            format!("{} to {}", bytes_text(ends.0), bytes_text(ends.1))
        }
    };
    let pace = match (options.rate_iops, options.iodepth) {
        (Some(rate), depth) => {
            let process = options.rate_process.unwrap_or_default().name();
            let depth = depth.map_or(String::new(), |depth| format!(", at most {depth} outstanding"));
            format!("{rate} per second ({process}){depth}")
        }
        (None, depth) => format!("{} outstanding", depth.unwrap_or(1)),
    };
    format!("{name}: {} of {size} in {}, {pace}", pattern.name, region_text(region))
}

fn region_text(region: &Region) -> String {
    match region.offset {
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
