//! The text of a job: which keys there are, how their values are written, and what is wrong with one that is not.
//!
//! Nothing here knows the device; what must fit it is checked where a job is built.

use super::arrival::Process;
use crate::workload::SourceError;

/// What a job does, by fio's names of `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The value of `rw`.
    pub name: &'static str,
    /// Which operations.
    pub kind: Kind,
    /// At random addresses.
    pub random: bool,
}

/// The operations of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Reads and writes, drawn for each request.
    Mixed,
    /// Pairs of a trim and a write of the same blocks.
    TrimWrite,
}

/// All values of `rw`.
pub const PATTERNS: &[Pattern] = &[
    Pattern { name: "read", kind: Kind::Read, random: false },
    Pattern { name: "write", kind: Kind::Write, random: false },
    Pattern { name: "randread", kind: Kind::Read, random: true },
    Pattern { name: "randwrite", kind: Kind::Write, random: true },
    Pattern { name: "rw", kind: Kind::Mixed, random: false },
    Pattern { name: "readwrite", kind: Kind::Mixed, random: false },
    Pattern { name: "randrw", kind: Kind::Mixed, random: true },
    Pattern { name: "trim", kind: Kind::Trim, random: false },
    Pattern { name: "randtrim", kind: Kind::Trim, random: true },
    Pattern { name: "trimwrite", kind: Kind::TrimWrite, random: false },
    Pattern { name: "randtrimwrite", kind: Kind::TrimWrite, random: true },
];

/// A number of bytes, given as such or as a share of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// The first of these out of the second: `12.5%` is 125 out of 1000.
    Share(u64, u64),
}

impl Amount {
    /// In bytes, a share of `whole` rounded down; `None` beyond 64 bits.
    pub fn of(self, whole: u64) -> Option<u64> {
        match self {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Share(parts, of) => u64::try_from(u128::from(whole) * u128::from(parts) / u128::from(of)).ok(),
        }
    }
}

/// fio's `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// `random`: all blocks alike.
    Uniform,
    /// `zipf:theta`.
    Zipf(f64),
    /// `pareto:h`.
    Pareto(f64),
    /// `zoned`: by direction.
    Zoned(ByDirection<Vec<ZoneShare>>),
}

/// One zone of `zoned` and `zoned_abs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShare {
    /// Percent of the requests.
    pub access: u32,
    /// How much of the region.
    pub range: Amount,
}

/// fio's `zonemode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneMode {
    /// No zones.
    None,
    /// `zonesize` bytes in one zone, then on to the next.
    Strided,
}

/// A value for each direction: reads, writes, trims.
pub type ByDirection<T> = [Option<T>; 3];

/// Sizes in bytes and their weights.
pub type SizeShares = Vec<(u64, u32)>;

/// One job as written, each field by the name of its key; what is not given is `None`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What is done.
    pub rw: Option<Pattern>,
    /// Block sizes in bytes.
    pub bs: Option<ByDirection<u64>>,
    /// Block sizes with their weights.
    pub bssplit: Option<ByDirection<SizeShares>>,
    /// What random addresses are multiples of, in bytes.
    pub blockalign: Option<ByDirection<u64>>,
    /// Percent of reads in a mix; also from `rwmixwrite`.
    pub rwmixread: Option<u32>,
    /// How random addresses are distributed.
    pub random_distribution: Option<Distribution>,
    /// Whether random addresses may repeat at any time.
    pub norandommap: bool,
    /// Start of the region; a share is one of the device.
    pub offset: Option<Amount>,
    /// Size of the region; a share is one of the device.
    pub size: Option<Amount>,
    /// How much to transfer; a share is one of the region.
    pub io_size: Option<Amount>,
    /// How many requests to make.
    pub number_ios: Option<u64>,
    /// How long to run, in picoseconds.
    pub runtime: Option<u64>,
    /// Whether only `runtime` ends the job.
    pub time_based: bool,
    /// How long to run before measuring, in picoseconds.
    pub ramp_time: Option<u64>,
    /// Requests outstanding.
    pub iodepth: Option<u32>,
    /// From a completion to the next request, in picoseconds.
    pub thinktime: Option<u64>,
    /// Requests per second.
    pub rate_iops: Option<u64>,
    /// How the requests of `rate_iops` are spaced.
    pub rate_process: Option<Process>,
    /// How the job moves over its region.
    pub zonemode: Option<ZoneMode>,
    /// Bytes to transfer in a zone.
    pub zonesize: Option<u64>,
    /// Bytes in a zone.
    pub zonerange: Option<u64>,
    /// Bytes between zones.
    pub zoneskip: Option<u64>,
    /// Seed of the job's random numbers.
    pub randseed: Option<u64>,
    /// Name of the stream.
    pub name: Option<String>,
}

/// A key that a job may have.
struct Key {
    /// Its name, then its aliases.
    names: &'static [&'static str],
    /// It may stand alone, which means 1.
    flag: bool,
    /// Reads the value into the options; the error says what is allowed.
    set: fn(&mut Options, &str) -> Result<(), String>,
}

/// A key with a value.
const fn key(names: &'static [&'static str], set: fn(&mut Options, &str) -> Result<(), String>) -> Key {
    Key { names, flag: false, set }
}

/// A key that may stand alone.
const fn flag(names: &'static [&'static str], set: fn(&mut Options, &str) -> Result<(), String>) -> Key {
    Key { names, flag: true, set }
}

/// Reads a value into its field.
macro_rules! into {
    ($field:ident, $read:expr) => {
        |options, value| {
            options.$field = Some($read(value)?);
            Ok(())
        }
    };
}

/// The keys, in the order of the reference.
const KEYS: &[Key] = &[
    key(&["rw", "readwrite"], into!(rw, pattern)),
    key(&["bs", "blocksize"], into!(bs, |value| by_direction(value, block_size))),
    key(&["bssplit"], into!(bssplit, |value| by_direction(value, size_shares))),
    key(&["blockalign", "ba"], into!(blockalign, |value| by_direction(value, block_size))),
    key(&["rwmixread"], into!(rwmixread, percent)),
    key(&["rwmixwrite"], into!(rwmixread, |value| percent(value).map(|write| 100 - write))),
    key(&["random_distribution"], into!(random_distribution, distribution)),
    flag(&["norandommap"], |options, value| switch(value).map(|on| options.norandommap = on)),
    key(&["offset"], into!(offset, offset)),
    key(&["size"], into!(size, region_size)),
    key(&["io_size"], into!(io_size, io_size)),
    key(&["number_ios"], into!(number_ios, count)),
    key(&["runtime"], into!(runtime, |value| time(value, SECOND, 1))),
    flag(&["time_based"], |options, value| switch(value).map(|on| options.time_based = on)),
    key(&["ramp_time"], into!(ramp_time, |value| time(value, SECOND, 0))),
    key(&["iodepth"], into!(iodepth, depth)),
    key(&["thinktime"], into!(thinktime, |value| time(value, MICROSECOND, 0))),
    key(&["rate_iops"], into!(rate_iops, rate)),
    key(&["rate_process"], into!(rate_process, process)),
    key(&["zonemode"], into!(zonemode, zone_mode)),
    key(&["zonesize"], into!(zonesize, block_size)),
    key(&["zonerange"], into!(zonerange, block_size)),
    key(&["zoneskip"], into!(zoneskip, sectors_or_none)),
    key(&["randseed"], into!(randseed, seed)),
    key(&["name"], into!(name, |value: &str| Ok::<_, String>(value.to_owned()))),
];

/// What `size` and its like accept.
const SIZES: &str = "a number of bytes, with k, m, g, t or p for powers of 1024, like 4k";

/// The jobs of a text: of each, what was written. Errors name the job, the key and the value.
pub fn read(text: &str) -> Result<Vec<Options>, SourceError> {
    let mut jobs = Vec::new();
    for part in text.split(';').filter(|part| !part.trim().is_empty()) {
        let number = jobs.len() + 1;
        jobs.push(read_job(part).map_err(|why| SourceError(format!("job{number}: {why}")))?);
    }
    if jobs.is_empty() {
        return Err(SourceError("the workload is empty; write a job like `rw=randwrite bs=4k iodepth=32`".to_owned()));
    }
    // The streams of requests have 16 bits for their number.
    if jobs.len() > usize::from(u16::MAX) {
        return Err(SourceError(format!("{} jobs are too many; at most {} run at once", jobs.len(), u16::MAX)));
    }
    Ok(jobs)
}

/// One job: words of `key=value`.
fn read_job(text: &str) -> Result<Options, String> {
    let mut options = Options::default();
    let mut seen = [None; KEYS.len()];
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let index = KEYS.iter().position(|key| key.names.contains(&name)).ok_or_else(|| unknown_key(name))?;
        let key = &KEYS[index];
        if let Some(earlier) = seen[index].replace(word) {
            return Err(format!("`{}` and `{}` set the same option; leave one out", quoted(earlier), quoted(word)));
        }
        let value = match value {
            Some("") | None if !key.flag => return Err(format!("`{name}` needs a value: write {name}=...")),
            Some(value) => value,
            None => "1",
        };
        (key.set)(&mut options, value).map_err(|allowed| format!("`{name}={}`: {allowed}", quoted(value)))?;
    }
    Ok(options)
}

/// The error for a key that is not supported.
fn unknown_key(name: &str) -> String {
    let names = || KEYS.iter().flat_map(|key| key.names.iter().copied());
    // The distance takes time by the product of the lengths, and nothing long resembles a key.
    let near = names()
        .filter(|_| name.len() <= 32)
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len().min(name.len()) / 2)
        .map_or(".".to_owned(), |(_, known)| format!("; did you mean `{known}`?"));
    let all: Vec<&str> = names().collect();
    format!("`{}` is not supported{near} The keys are: {}", quoted(name), all.join(", "))
}

/// Text of the user's for an error: cut where it is long.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// `first[,second][,third]` for reads, writes and trims. As in fio, an empty part is the default, and the last part
/// holds for those after it, unless a comma ends it.
fn by_direction<T>(value: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<ByDirection<T>, String> {
    let parts: Vec<&str> = value.split(',').take(4).collect();
    if parts.len() > 3 {
        return Err("at most three values, for reads, writes and trims".to_owned());
    }
    let mut values = [None, None, None];
    for (index, place) in values.iter_mut().enumerate() {
        let part = parts.get(index).or(parts.last()).copied().unwrap_or("");
        *place = if part.is_empty() { None } else { Some(read(part)?) };
    }
    Ok(values)
}

/// A decimal number: its digits, and how many of them stand behind the point, as the power of ten that they are over;
/// and the rest of the text in lower case. At most 18 digits, so that products with 64 bits fit 128.
fn decimal(text: &str) -> Option<(u64, u64, String)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if whole.is_empty() || number.len() > 19 || digits().count() > 18 || digits().any(|b| b == b'.') {
        return None;
    }
    let value = digits().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    (rest.len() <= 8).then(|| (value, 10u64.pow(fraction.len() as u32), rest.to_ascii_lowercase()))
}

/// A number with one of the suffixes, exactly; `None` for anything else, and for fractions of one.
fn scaled(text: &str, suffixes: &[(&str, u64)]) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
    }
    let (value, over, suffix) = decimal(text)?;
    let (_, scale) = suffixes.iter().find(|(name, _)| *name == suffix)?;
    let product = u128::from(value) * u128::from(*scale);
    (product % u128::from(over) == 0).then_some(product / u128::from(over)).and_then(|n| u64::try_from(n).ok())
}

/// fio's suffixes with its default `kb_base=1024`: `k` is 1024 and, the other way round than the standards have it,
/// `ki` is 1000 (HOWTO, "Parameter types").
const PREFIXES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("p", 1 << 50),
    ("pb", 1 << 50),
    ("ki", 1_000),
    ("kib", 1_000),
    ("mi", 1_000_000),
    ("mib", 1_000_000),
    ("gi", 1_000_000_000),
    ("gib", 1_000_000_000),
    ("ti", 1_000_000_000_000),
    ("tib", 1_000_000_000_000),
    ("pi", 1_000_000_000_000_000),
    ("pib", 1_000_000_000_000_000),
];

/// A whole number within limits.
fn integer(text: &str, min: u64, max: u64) -> Result<u64, String> {
    scaled(text, PREFIXES).filter(|n| (min..=max).contains(n)).ok_or_else(|| {
        let limit = if max == u64::MAX { String::new() } else { format!(" to {max}") };
        format!("must be a whole number from {min}{limit}; k means 1024, m 1024*1024")
    })
}

fn multiple_of_sector(bytes: u64, text: &str) -> Result<u64, String> {
    if bytes.is_multiple_of(512) {
        return Ok(bytes);
    }
    let prefix = text.trim_end_matches(['b', 'B']);
    let hint = if prefix.ends_with(['i', 'I']) { " (as in fio, k is 1024 and ki is 1000)" } else { "" };
    Err(format!("must be a multiple of 512 bytes, is {bytes}{hint}"))
}

/// Bytes, whole sectors, at least one and at most what a request's 32 bits hold.
fn block_size(text: &str) -> Result<u64, String> {
    let bytes = sectors_or_none(text)?;
    if bytes == 0 { Err("must be at least 512 bytes".to_owned()) } else { Ok(bytes) }
}

/// Bytes, whole sectors, maybe none.
fn sectors_or_none(text: &str) -> Result<u64, String> {
    let bytes = scaled(text, PREFIXES).ok_or_else(|| format!("must be {SIZES}"))?;
    multiple_of_sector(bytes, text)
}

/// Bytes, or a share of something.
fn amount(text: &str, max_percent: u64) -> Result<Amount, String> {
    if let Some((value, over, suffix)) = decimal(text)
        && suffix == "%"
    {
        if u128::from(value) > u128::from(max_percent) * u128::from(over) {
            return Err(format!("must be at most {max_percent}%"));
        }
        return Ok(Amount::Share(value, over * 100));
    }
    let bytes = scaled(text, PREFIXES).ok_or_else(|| format!("must be {SIZES}, or a percentage, like 50%"))?;
    multiple_of_sector(bytes, text).map(Amount::Bytes)
}

fn more_than_nothing(amount: Amount) -> Result<Amount, String> {
    match amount {
        Amount::Bytes(0) | Amount::Share(0, _) => Err("must be more than 0".to_owned()),
        _ => Ok(amount),
    }
}

fn offset(text: &str) -> Result<Amount, String> {
    amount(text, 100)
}

fn region_size(text: &str) -> Result<Amount, String> {
    amount(text, 100).and_then(more_than_nothing)
}

/// A job may transfer its region many times.
fn io_size(text: &str) -> Result<Amount, String> {
    amount(text, 1_000_000).and_then(more_than_nothing)
}

fn count(text: &str) -> Result<u64, String> {
    integer(text, 1, u64::MAX)
}

fn seed(text: &str) -> Result<u64, String> {
    integer(text, 0, u64::MAX)
}

fn depth(text: &str) -> Result<u32, String> {
    integer(text, 1, 1 << 20).map(|depth| depth as u32)
}

/// Up to one request in each picosecond, the simulator's unit of time.
fn rate(text: &str) -> Result<u64, String> {
    integer(text, 1, SECOND)
}

fn percent(text: &str) -> Result<u32, String> {
    let number = scaled(text, &[("", 1), ("%", 1)]).filter(|n| *n <= 100);
    number.map(|n| n as u32).ok_or_else(|| "must be a whole percentage from 0 to 100".to_owned())
}

/// Picoseconds in the units of time.
const MICROSECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000_000;

/// A time in picoseconds; without a unit, in `default`.
fn time(text: &str, default: u64, min: u64) -> Result<u64, String> {
    let units = [
        ("", default),
        ("us", MICROSECOND),
        ("usec", MICROSECOND),
        ("ms", 1_000 * MICROSECOND),
        ("msec", 1_000 * MICROSECOND),
        ("s", SECOND),
        ("sec", SECOND),
        ("m", 60 * SECOND),
        ("h", 3_600 * SECOND),
        ("d", 86_400 * SECOND),
    ];
    scaled(text, &units).filter(|ps| *ps >= min).ok_or_else(|| {
        let unit = if default == SECOND { "seconds" } else { "microseconds" };
        let more = if min > 0 { ", more than 0" } else { "" };
        format!("must be a time in {unit}, or with us, ms, s, m, h or d, like 10s{more}, at most 213 days")
    })
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("must stand alone, or be 0 or 1".to_owned()),
    }
}

/// The error for a value that is none of the allowed ones.
fn one_of(text: &str, allowed: &[&str]) -> String {
    let near = allowed
        .iter()
        .filter(|_| text.len() <= 32)
        .map(|name| (strsim::damerau_levenshtein(text, name), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len() / 2)
        .map_or(String::new(), |(_, name)| format!("; did you mean `{name}`?"));
    format!("must be one of {}{near}", allowed.join(", "))
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let names: Vec<&str> = PATTERNS.iter().map(|pattern| pattern.name).collect();
    PATTERNS.iter().find(|pattern| pattern.name == text).copied().ok_or_else(|| one_of(text, &names))
}

fn process(text: &str) -> Result<Process, String> {
    let all = [Process::Linear, Process::Poisson];
    all.into_iter().find(|p| p.name() == text).ok_or_else(|| one_of(text, &all.map(Process::name)))
}

fn zone_mode(text: &str) -> Result<ZoneMode, String> {
    match text {
        "none" => Ok(ZoneMode::None),
        "strided" => Ok(ZoneMode::Strided),
        _ => Err(one_of(text, &["none", "strided"])),
    }
}

/// `a/b:c/d:...`, with what stands behind the slash, or nothing.
fn entries(text: &str, max: usize) -> Result<Vec<(&str, Option<&str>)>, String> {
    let entries: Vec<_> = text
        .split(':')
        .take(max + 1)
        .map(|entry| entry.split_once('/').map_or((entry, None), |(a, b)| (a, Some(b).filter(|b| !b.is_empty()))))
        .collect();
    if entries.len() > max { Err(format!("at most {max} entries")) } else { Ok(entries) }
}

/// Completes percentages: those not given share what the others leave of 100. In parts of a percent, and how many
/// parts make one.
fn completed(percents: &[Option<u32>]) -> Result<(Vec<u32>, u32), String> {
    let given: u32 = percents.iter().flatten().sum();
    let missing = percents.iter().filter(|percent| percent.is_none()).count() as u32;
    if given > 100 {
        return Err(format!("the percentages add up to {given}, more than 100"));
    }
    if given == 100 && missing > 0 {
        return Err("the percentages add up to 100, which leaves nothing for those not given".to_owned());
    }
    let parts = missing.max(1);
    Ok((percents.iter().map(|percent| percent.map_or(100 - given, |percent| percent * parts)).collect(), parts))
}

/// The percentage of an entry.
fn share(text: Option<&str>) -> Result<Option<u32>, String> {
    let read = |text| {
        let number = scaled(text, &[("", 1)]).filter(|n| (1..=100).contains(n));
        number.map(|n| n as u32).ok_or_else(|| format!("`{}` is no percentage from 1 to 100", quoted(text)))
    };
    text.map(read).transpose()
}

/// One direction of `bssplit`.
fn size_shares(text: &str) -> Result<SizeShares, String> {
    const FORM: &str = "write size/percentage:size/percentage, like 4k/10:64k/50:32k/40";
    let mut sizes = Vec::new();
    let mut percents = Vec::new();
    for (size, percent) in entries(text, 64)? {
        sizes.push(block_size(size).map_err(|why| format!("the size `{}` {why}; {FORM}", quoted(size)))?);
        percents.push(share(percent).map_err(|why| format!("{why}; {FORM}"))?);
    }
    let (weights, parts) = completed(&percents).map_err(|why| format!("{why}; {FORM}"))?;
    let sum: u32 = weights.iter().sum();
    if sum != 100 * parts {
        return Err(format!("the percentages add up to {sum}, not to 100; {FORM}"));
    }
    Ok(sizes.into_iter().zip(weights).collect())
}

fn distribution(text: &str) -> Result<Distribution, String> {
    let (name, argument) = text.split_once(':').map_or((text, None), |(name, argument)| (name, Some(argument)));
    match name {
        "random" | "uniform" if argument.is_none() => Ok(Distribution::Uniform),
        // The defaults are fio's, FIO_DEF_ZIPF and FIO_DEF_PARETO.
        "zipf" => parameter(argument.unwrap_or("1.1"), 50.0).map(Distribution::Zipf).ok_or_else(|| {
            "zipf takes one number, theta, above 0 and at most 50, like zipf:1.2; a centre is not supported".to_owned()
        }),
        "pareto" => {
            parameter(argument.unwrap_or("0.2"), 1.0).filter(|h| *h < 1.0).map(Distribution::Pareto).ok_or_else(|| {
                "pareto takes one number, h, between 0 and 1, like pareto:0.2; a centre is not supported".to_owned()
            })
        }
        "zoned" => by_direction(argument.unwrap_or("/"), |part| zone_shares(part, false)).map(Distribution::Zoned),
        "zoned_abs" => by_direction(argument.unwrap_or("/"), |part| zone_shares(part, true)).map(Distribution::Zoned),
        _ => Err(one_of(name, &["random", "uniform", "zipf:theta", "pareto:h", "zoned:...", "zoned_abs:..."])),
    }
}

/// A number above 0 and up to `max`. Plain decimals only: neither `inf` nor exponents.
fn parameter(text: &str, max: f64) -> Option<f64> {
    let (value, over, suffix) = decimal(text)?;
    let number = value as f64 / over as f64;
    (suffix.is_empty() && number > 0.0 && number <= max).then_some(number)
}

/// One direction of `zoned` or `zoned_abs`.
fn zone_shares(text: &str, absolute: bool) -> Result<Vec<ZoneShare>, String> {
    let form = match absolute {
        false => "write access%/range%:..., like zoned:60/10:30/20:8/30:2/40",
        true => "write access%/size:..., like zoned_abs:60/20g:30/100g:10/500g",
    };
    let entries = entries(text, 256)?;
    let mut zones = Vec::with_capacity(entries.len());
    let mut percents = Vec::with_capacity(entries.len());
    for (access, range) in entries {
        let access = percent(access).map_err(|why| format!("the access share `{}` {why}; {form}", quoted(access)))?;
        let range = match (absolute, range) {
            (false, range) => {
                percents.push(share(range).map_err(|why| format!("{why}; {form}"))?);
                Amount::Bytes(0)
            }
            (true, None) => return Err(format!("each zone needs its size; {form}")),
            (true, Some(size)) => {
                Amount::Bytes(block_size(size).map_err(|why| format!("a zone's size {why}; {form}"))?)
            }
        };
        zones.push(ZoneShare { access, range });
    }
    let sum: u32 = zones.iter().map(|zone| zone.access).sum();
    if sum != 100 {
        return Err(format!("the access shares add up to {sum}%, not to 100%; {form}"));
    }
    if !absolute {
        let (weights, parts) = completed(&percents).map_err(|why| format!("the ranges: {why}; {form}"))?;
        for (zone, weight) in zones.iter_mut().zip(weights) {
            zone.range = Amount::Share(u64::from(weight), u64::from(100 * parts));
        }
    }
    Ok(zones)
}

/// Every name of every key.
#[cfg(test)]
pub fn all_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().flat_map(|key| key.names.iter().copied())
}
