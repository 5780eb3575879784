//! Parsers for the values of keys.
//!
//! The values are independent of the device. Checks against the device are made when a job is built.

use super::arrival::Process;
pub use super::base::Base;
use super::engines::{ENGINES, EXTERNAL, Engine, Kind as EngineKind};
use super::options::*;
use crate::sim::source::Measure;
use crate::sim::text::shown;

/// Parses `first[,second][,third]` for reads, writes and trims. As in fio, an empty part selects the default, and the
/// last part applies to the following ones, unless a comma follows it.
pub fn by_direction<T>(value: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<ByDirection<T>, String> {
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

/// Parses a decimal number. Returns its digits as a number, the power of ten by which to divide it, and the rest of the
/// text in lowercase. At most 18 digits, so that products with 64-bit numbers fit into 128 bits.
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

/// Parses a number with a suffix exactly. `None` for anything else, and for results that are not whole.
fn scaled(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
    }
    let (value, over, suffix) = decimal(text)?;
    let product = u128::from(value) * u128::from(factor(&suffix)?);
    (product % u128::from(over) == 0).then_some(product / u128::from(over)).and_then(|n| u64::try_from(n).ok())
}

impl Base {
    /// Returns the factor of a suffix.
    fn factor(self, suffix: &str) -> Option<u64> {
        let suffix = suffix.strip_suffix('b').unwrap_or(suffix);
        let (letter, other) = suffix.strip_suffix('i').map_or((suffix, false), |letter| (letter, true));
        let power = ["k", "m", "g", "t", "p"].iter().position(|known| *known == letter);
        let kilo: u64 = if (self == Base::Binary) == other { 1000 } else { 1024 };
        match power {
            Some(power) => Some(kilo.pow(power as u32 + 1)),
            None if suffix.is_empty() => Some(1),
            None => None,
        }
    }

    /// Parses a number with a suffix exactly. `None` for anything else, and for results that are not whole.
    fn read(self, text: &str) -> Option<u64> {
        scaled(text, |suffix| self.factor(suffix))
    }

    /// Returns the accepted syntax of sizes, for errors.
    fn sizes(self) -> &'static str {
        match self {
            Base::Binary => "a number of bytes, with k, m, g, t or p for powers of 1024, like 4k",
            Base::Decimal => "a number of bytes, with ki, mi, gi, ti or pi for powers of 1024 (kb_base=1000), like 4ki",
        }
    }

    /// Returns the meaning of `k`, for errors about whole numbers.
    fn hint(self) -> &'static str {
        match self {
            Base::Binary => "k means 1024, m 1024*1024",
            Base::Decimal => "k means 1000, m 1000*1000 (kb_base=1000)",
        }
    }
}

/// Parses `1024` or `1000`.
pub fn base(text: &str, _: Base) -> Result<Base, String> {
    match text {
        "1024" => Ok(Base::Binary),
        "1000" => Ok(Base::Decimal),
        _ => Err(one_of(text, &["1024", "1000"])),
    }
}

/// Parses a whole number within limits.
fn integer(text: &str, base: Base, min: u64, max: u64) -> Result<u64, String> {
    base.read(text).filter(|n| (min..=max).contains(n)).ok_or_else(|| {
        let limit = if max == u64::MAX { String::new() } else { format!(" to {max}") };
        format!("must be a whole number from {min}{limit}; {}", base.hint())
    })
}

fn multiple_of_sector(bytes: u64, text: &str, base: Base) -> Result<u64, String> {
    if bytes.is_multiple_of(512) {
        return Ok(bytes);
    }
    let prefix = text.trim_end_matches(['b', 'B']);
    let hint = match (base, prefix.ends_with(['i', 'I'])) {
        (Base::Binary, true) => " (as in fio, k is 1024 and ki is 1000)",
        (Base::Decimal, false) => " (with kb_base=1000, k is 1000 and ki is 1024)",
        _ => "",
    };
    Err(format!("must be a multiple of 512 bytes, is {bytes}{hint}"))
}

/// Parses bytes in whole sectors, at least one, and at most the 32-bit limit of a request.
pub fn block_size(text: &str, base: Base) -> Result<u64, String> {
    let bytes = sectors_or_none(text, base)?;
    if bytes == 0 { Err("must be at least 512 bytes".to_owned()) } else { Ok(bytes) }
}

/// Parses bytes in whole sectors, possibly none.
pub fn sectors_or_none(text: &str, base: Base) -> Result<u64, String> {
    let bytes = base.read(text).ok_or_else(|| format!("must be {}", base.sizes()))?;
    multiple_of_sector(bytes, text, base)
}

/// Parses bytes or a percentage.
fn amount(text: &str, base: Base, max_percent: u64) -> Result<Amount, String> {
    if let Some((value, over, suffix)) = decimal(text)
        && suffix == "%"
    {
        if u128::from(value) > u128::from(max_percent) * u128::from(over) {
            return Err(format!("must be at most {max_percent}%"));
        }
        return Ok(Amount::Share(value, over * 100));
    }
    let bytes = base.read(text).ok_or_else(|| format!("must be {}, or a percentage, like 50%", base.sizes()))?;
    multiple_of_sector(bytes, text, base).map(Amount::Bytes)
}

fn more_than_nothing(amount: Amount) -> Result<Amount, String> {
    match amount {
        Amount::Bytes(0) | Amount::Share(0, _) => Err("must be more than 0".to_owned()),
        _ => Ok(amount),
    }
}

pub fn offset(text: &str, base: Base) -> Result<Amount, String> {
    amount(text, base, 100)
}

pub fn region_size(text: &str, base: Base) -> Result<Amount, String> {
    amount(text, base, 100).and_then(more_than_nothing)
}

/// Parses an amount of more than nothing. A job may transfer its region many times.
pub fn io_size(text: &str, base: Base) -> Result<Amount, String> {
    amount(text, base, 1_000_000).and_then(more_than_nothing)
}

pub fn count(text: &str, base: Base) -> Result<u64, String> {
    integer(text, base, 1, u64::MAX)
}

pub fn seed(text: &str, base: Base) -> Result<u64, String> {
    integer(text, base, 0, u64::MAX)
}

pub fn depth(text: &str, base: Base) -> Result<u32, String> {
    integer(text, base, 1, 1 << 20).map(|depth| depth as u32)
}

/// Parses a rate, up to one request per picosecond, the simulator's unit of time.
pub fn rate(text: &str, base: Base) -> Result<u64, String> {
    integer(text, base, 1, SECOND)
}

pub fn percent(text: &str, _: Base) -> Result<u32, String> {
    let number = scaled(text, |suffix| matches!(suffix, "" | "%").then_some(1)).filter(|n| *n <= 100);
    number.map(|n| n as u32).ok_or_else(|| "must be a whole percentage from 0 to 100".to_owned())
}

/// Parses a priority class of Linux. Returns `true` for real time.
pub fn real_time(text: &str, _: Base) -> Result<bool, String> {
    match text {
        "1" => Ok(true),
        "0" | "2" | "3" => Ok(false),
        _ => Err("must be a class: 1 (real time), 2 (best effort) or 3 (idle)".to_owned()),
    }
}

/// Units of time, in picoseconds.
pub const MICROSECOND: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000_000;

/// Parses a time in picoseconds. Without a unit, the number is in units of `default`.
pub fn time(text: &str, default: u64, min: u64) -> Result<u64, String> {
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
    scaled(text, |suffix| units.iter().find(|(name, _)| *name == suffix).map(|(_, scale)| *scale))
        .filter(|ps| *ps >= min)
        .ok_or_else(|| {
            let unit = if default == SECOND { "seconds" } else { "microseconds" };
            let more = if min > 0 { ", more than 0" } else { "" };
            format!("must be a time in {unit}, or with us, ms, s, m, h or d, like 10s{more}, at most 213 days")
        })
}

pub fn switch(text: &str, _: Base) -> Result<bool, String> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("must have no value, or be 0 or 1".to_owned()),
    }
}

/// Returns the error for a value that is not among the allowed ones.
pub fn one_of(text: &str, allowed: &[&str]) -> String {
    let near = allowed
        .iter()
        .filter(|_| text.len() <= 32)
        .map(|name| (strsim::damerau_levenshtein(text, name), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len() / 2)
        .map_or(String::new(), |(_, name)| format!("; did you mean `{name}`?"));
    format!("must be one of {}{near}", allowed.join(", "))
}

/// Parses `pattern` or `pattern:n`.
pub fn rw(text: &str, base: Base) -> Result<Rw, String> {
    let (name, modifier) = text.split_once(':').map_or((text, None), |(name, modifier)| (name, Some(modifier)));
    let names: Vec<&str> = PATTERNS.iter().map(|pattern| pattern.name).collect();
    let pattern = PATTERNS.iter().find(|pattern| pattern.name == name).copied().ok_or_else(|| one_of(name, &names))?;
    let modifier = match modifier {
        None => Modifier::None,
        Some(text) if pattern.random => {
            let number = integer(text, base, 1, u64::from(u32::MAX));
            let why = |why| format!("the number of requests for each random address, `{}`, {why}", shown(text));
            Modifier::Run(number.map_err(why)? as u32)
        }
        Some(text) => {
            let (back, size) = text.strip_prefix('-').map_or((false, text), |size| (true, size));
            let why = |why| format!("the distance between requests, `{}`, {why}", shown(text));
            let bytes = sectors_or_none(size, base).map_err(why)?;
            let bytes = i64::try_from(bytes).map_err(|_| why("must be below 8 EiB".to_owned()))?;
            Modifier::Skip(if back { -bytes } else { bytes })
        }
    };
    Ok(Rw { pattern, modifier })
}

/// Parses `sequential` or `identical`.
pub fn sequencer(text: &str, _: Base) -> Result<Sequencer, String> {
    match text {
        "sequential" => Ok(Sequencer::Sequential),
        "identical" => Ok(Sequencer::Identical),
        _ => Err(one_of(text, &["sequential", "identical"])),
    }
}

/// Parses fio's `sync`. Returns `true` if writes are durable when they complete.
pub fn sync(text: &str, _: Base) -> Result<bool, String> {
    match text {
        "none" | "0" => Ok(false),
        "sync" | "1" | "dsync" => Ok(true),
        _ => Err(one_of(text, &["none", "sync", "dsync"])),
    }
}

/// Parses fio's `write_hint`. Returns the number of the lifetime in Linux (`linux/fcntl.h`), or 0 for `none`.
pub fn write_hint(text: &str, _: Base) -> Result<u16, String> {
    const NAMES: [&str; 5] = ["none", "short", "medium", "long", "extreme"];
    match NAMES.iter().position(|name| *name == text) {
        Some(0) => Ok(0),
        Some(index) => Ok(index as u16 + 1),
        None => Err(one_of(text, &NAMES)),
    }
}

/// Parses `min-max`, for each direction.
pub fn size_range(text: &str, base: Base) -> Result<(u64, u64), String> {
    const FORM: &str = "write min-max, like 4k-64k";
    let (min, max) = text.split_once('-').or(text.split_once(':')).ok_or_else(|| format!("must be a range; {FORM}"))?;
    let read = |text: &str| block_size(text, base).map_err(|why| format!("the size `{}` {why}; {FORM}", shown(text)));
    let (min, max) = (read(min)?, read(max)?);
    if min > max { Err(format!("the range ends below its start; {FORM}")) } else { Ok((min, max)) }
}

/// Parses bytes per second.
pub fn bandwidth(text: &str, base: Base) -> Result<u64, String> {
    base.read(text).filter(|n| *n > 0).ok_or_else(|| format!("must be bytes a second, from 1: {}", base.sizes()))
}

/// Parses a 32-bit count of at least 1.
pub fn count_32(text: &str, base: Base) -> Result<u32, String> {
    integer(text, base, 1, u64::from(u32::MAX)).map(|n| n as u32)
}

/// Parses a count like [`count_32`], or 0 for never.
pub fn period(text: &str, base: Base) -> Result<u32, String> {
    integer(text, base, 0, u64::from(u32::MAX)).map(|n| n as u32)
}

/// Parses a positive percentage of any size.
pub fn scale(text: &str, base: Base) -> Result<u64, String> {
    integer(text.strip_suffix('%').unwrap_or(text), base, 1, 1_000_000)
}

/// Parses a non-empty text in one line.
pub fn text(text: &str, _: Base) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Parses a single file name. Lists of files, as in fio, are not supported.
pub fn file(text: &str, _: Base) -> Result<String, String> {
    if text.contains(':') {
        return Err("must be a single file: a job works on one, and a colon separates several in fio".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses fio's `file_service_type`: an order, and optionally the number of requests to a file.
pub fn service(text: &str, base: Base) -> Result<FileService, String> {
    let (name, requests) = text.split_once(':').map_or((text, None), |(name, requests)| (name, Some(requests)));
    let order = match name {
        "roundrobin" => FileOrder::RoundRobin,
        "sequential" => FileOrder::Sequential,
        "random" => FileOrder::Random,
        _ => return Err(one_of(name, &["roundrobin", "sequential", "random"])),
    };
    let requests = requests.map(|text| count_32(text, base)).transpose()?.unwrap_or(1);
    Ok(FileService { order, requests })
}

/// Parses fio's `io_submit_mode`. Returns `true` for `offload`.
pub fn submit_mode(text: &str, _: Base) -> Result<bool, String> {
    match text {
        "inline" => Ok(false),
        "offload" => Ok(true),
        _ => Err(one_of(text, &["inline", "offload"])),
    }
}

/// Parses the command of writes, with the names of fio's engines `io_uring_cmd` and `sg`.
pub fn write_mode(text: &str, _: Base) -> Result<WriteMode, String> {
    match text {
        "write" => Ok(WriteMode::Write),
        "zeroes" | "write_zeroes" | "write_same_ndob" => Ok(WriteMode::Zeroes),
        _ => Err("must be write or zeroes: the simulated device has no other commands that write".to_owned()),
    }
}

/// Parses fio's `verify`. Returns `true` if what was written is read again.
pub fn verify(text: &str, _: Base) -> Result<bool, String> {
    const METHODS: [&str; 19] = [
        "md5",
        "crc64",
        "crc32c",
        "crc32c-intel",
        "crc32",
        "crc16",
        "crc7",
        "xxhash",
        "sha512",
        "sha256",
        "sha1",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "meta",
        "pattern",
        "pattern_hdr",
        "null",
    ];
    match text {
        "0" => Ok(false),
        _ if METHODS.contains(&text) => Ok(true),
        _ => Err(one_of(text, &METHODS)),
    }
}

/// Parses the name of an engine. Refuses engines that transfer no data.
pub fn engine(text: &str, _: Base) -> Result<Engine, String> {
    let name = if text.starts_with(EXTERNAL) { "external" } else { text };
    let all = || ENGINES.iter().flat_map(|(kind, names)| names.iter().map(|name| Engine { name, kind: *kind }));
    match all().find(|engine| engine.name == name) {
        Some(Engine { kind: EngineKind::NoData, .. }) => {
            Err("this engine transfers no data to or from a device, so there \
             is nothing to simulate; remove the job, or choose an engine that reads and writes, such as libaio"
                .to_owned())
        }
        Some(engine) => Ok(engine),
        None => {
            let names: Vec<&str> =
                all().filter(|engine| engine.kind != EngineKind::NoData).map(|one| one.name).collect();
            Err(one_of(text, &names))
        }
    }
}

pub fn process(text: &str, _: Base) -> Result<Process, String> {
    let all = [Process::Linear, Process::Poisson];
    all.into_iter().find(|p| p.name() == text).ok_or_else(|| one_of(text, &all.map(Process::name)))
}

pub fn zone_mode(text: &str, _: Base) -> Result<ZoneMode, String> {
    match text {
        "none" => Ok(ZoneMode::None),
        "strided" => Ok(ZoneMode::Strided),
        _ => Err(one_of(text, &["none", "strided"])),
    }
}

/// Parses `a/b:c/d:...`. Returns each entry with the part after the slash, if there is one.
fn entries(text: &str, max: usize) -> Result<Vec<(&str, Option<&str>)>, String> {
    let entries: Vec<_> = text
        .split(':')
        .take(max + 1)
        .map(|entry| entry.split_once('/').map_or((entry, None), |(a, b)| (a, Some(b).filter(|b| !b.is_empty()))))
        .collect();
    if entries.len() > max { Err(format!("at most {max} entries")) } else { Ok(entries) }
}

/// Completes percentages: the missing ones share the rest up to 100 equally. Returns them in parts of a percent, with
/// the number of parts per percent.
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

/// Parses the percentage of an entry.
fn share(text: Option<&str>) -> Result<Option<u32>, String> {
    let read = |text| {
        let number = scaled(text, |suffix| suffix.is_empty().then_some(1)).filter(|n| (1..=100).contains(n));
        number.map(|n| n as u32).ok_or_else(|| format!("invalid percentage `{}`: expected 1 to 100", shown(text)))
    };
    text.map(read).transpose()
}

/// Parses one direction of `bssplit`.
pub fn size_shares(text: &str, base: Base) -> Result<SizeShares, String> {
    const FORM: &str = "write size/percentage:size/percentage, like 4k/10:64k/50:32k/40";
    let mut sizes = Vec::new();
    let mut percents = Vec::new();
    for (size, percent) in entries(text, 64)? {
        sizes.push(block_size(size, base).map_err(|why| format!("the size `{}` {why}; {FORM}", shown(size)))?);
        percents.push(share(percent).map_err(|why| format!("{why}; {FORM}"))?);
    }
    let (weights, parts) = completed(&percents).map_err(|why| format!("{why}; {FORM}"))?;
    let sum: u32 = weights.iter().sum();
    if sum != 100 * parts {
        return Err(format!("the percentages add up to {sum}, not to 100; {FORM}"));
    }
    Ok(sizes.into_iter().zip(weights).collect())
}

pub fn distribution(text: &str, base: Base) -> Result<Distribution, String> {
    const CENTER: &str = "optionally a center from 0 to 1 after another colon";
    let (name, argument) = text.split_once(':').map_or((text, None), |(name, argument)| (name, Some(argument)));
    let centered = |default| {
        let argument = argument.unwrap_or(default);
        let (number, center) = argument.split_once(':').map_or((argument, None), |(n, c)| (n, Some(c)));
        // A center of 0 is valid here, but `parameter` would reject it.
        let center = center.map(|c| if c.parse() == Ok(0.0) { Some(0.0) } else { parameter(c, 1.0) });
        match center {
            Some(None) => None,
            center => Some((number, center.flatten())),
        }
    };
    match name {
        "random" | "uniform" if argument.is_none() => Ok(Distribution::Uniform),
        // The defaults are those of fio, FIO_DEF_ZIPF and FIO_DEF_PARETO.
        "zipf" => centered("1.1")
            .and_then(|(theta, center)| Some(Distribution::Zipf(parameter(theta, 50.0)?, center)))
            .ok_or_else(|| format!("zipf takes theta, above 0 and at most 50, like zipf:1.2; {CENTER}")),
        "pareto" => centered("0.2")
            .and_then(|(h, center)| Some(Distribution::Pareto(parameter(h, 1.0).filter(|h| *h < 1.0)?, center)))
            .ok_or_else(|| format!("pareto takes h, between 0 and 1, like pareto:0.2; {CENTER}")),
        "sequence" => {
            let blocks: Option<Vec<u64>> = argument.unwrap_or("").split(',').map(|block| block.parse().ok()).collect();
            let blocks = blocks.filter(|blocks| blocks.len() <= 64);
            blocks
                .map(Distribution::Sequence)
                .ok_or_else(|| "sequence takes at most 64 numbers of blocks, like sequence:2,0,1".to_owned())
        }
        // Without a deviation, fio takes the mean of 12 uniform numbers, whose deviation is a twelfth of the range.
        "normal" => centered("8.333")
            .and_then(|(deviation, center)| Some(Distribution::Normal(parameter(deviation, 100.0)?, center)))
            .ok_or_else(|| {
                format!("normal takes a deviation in percent, above 0 and at most 100, like normal:10; {CENTER}")
            }),
        "zoned" => {
            by_direction(argument.unwrap_or("/"), |part| zone_shares(part, base, false)).map(Distribution::Zoned)
        }
        "zoned_abs" => {
            by_direction(argument.unwrap_or("/"), |part| zone_shares(part, base, true)).map(Distribution::Zoned)
        }
        _ => Err(one_of(
            name,
            &[
                "random",
                "uniform",
                "zipf:theta",
                "pareto:h",
                "normal:deviation",
                "zoned:...",
                "zoned_abs:...",
                "sequence:...",
            ],
        )),
    }
}

/// Parses a plain decimal number above 0 and up to `max`. Accepts neither `inf` nor exponents.
fn parameter(text: &str, max: f64) -> Option<f64> {
    let (value, over, suffix) = decimal(text)?;
    let number = value as f64 / over as f64;
    (suffix.is_empty() && number > 0.0 && number <= max).then_some(number)
}

/// Parses one direction of `zoned` or `zoned_abs`.
fn zone_shares(text: &str, base: Base, absolute: bool) -> Result<Vec<ZoneShare>, String> {
    let form = if absolute {
        "write access%/size:..., like zoned_abs:60/20g:30/100g:10/500g"
    } else {
        "write access%/range%:..., like zoned:60/10:30/20:8/30:2/40"
    };
    let entries = entries(text, 256)?;
    let mut zones = Vec::with_capacity(entries.len());
    let mut percents = Vec::with_capacity(entries.len());
    for (access, range) in entries {
        let access =
            percent(access, base).map_err(|why| format!("the access share `{}` {why}; {form}", shown(access)))?;
        let range = match (absolute, range) {
            (false, range) => {
                percents.push(share(range).map_err(|why| format!("{why}; {form}"))?);
                Amount::Bytes(0)
            }
            (true, None) => return Err(format!("each zone needs its size; {form}")),
            (true, Some(size)) => {
                Amount::Bytes(block_size(size, base).map_err(|why| format!("a zone's size {why}; {form}"))?)
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

/// Parses `steadystate`: a rate, and the limit of its slope or deviation.
pub fn steady(text: &str, base: Base) -> Result<Steady, String> {
    let allowed = "use iops, bw or lat, or their slope, with a limit, such as iops_slope:0.3%";
    let (name, limit) = text.split_once(':').ok_or(allowed)?;
    let measure = match name.strip_suffix("_slope").unwrap_or(name) {
        "iops" => Measure::Requests,
        "bw" => Measure::Bytes,
        "lat" => Measure::Latency,
        _ => return Err(allowed.to_owned()),
    };
    let (is_slope, percent) = (name.ends_with("_slope"), limit.strip_suffix('%'));
    let is_percent = percent.is_some();
    let number = |text: &str| text.parse().map_err(|_| allowed.to_owned());
    let limit = match (percent, measure) {
        (Some(percent), _) => number(percent)?,
        (None, Measure::Requests) => number(limit)?,
        (None, Measure::Bytes) => bandwidth(limit, base)? as f64,
        // In nanoseconds, from picoseconds.
        (None, Measure::Latency) => time(limit, MICROSECOND, 1)? as f64 / 1000.0,
    };
    if !f64::is_finite(limit) || limit < 0.0 {
        return Err(allowed.to_owned());
    }
    Ok(Steady { measure, is_slope, is_percent, limit })
}

/// Parses a percentage with a fraction, above 0 and at most 100.
pub fn percentile(text: &str, _: Base) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|number| *number > 0.0 && *number <= 100.0).ok_or_else(|| "use a percentage up to 100".to_owned())
}

/// Parses a share between 0 and 1.
pub fn part(text: &str, _: Base) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|number| *number > 0.0 && *number < 1.0).ok_or_else(|| "use a share between 0 and 1".to_owned())
}

/// Parses `exit_what`.
pub fn exit_what(text: &str, _: Base) -> Result<ExitWhat, String> {
    match text {
        "group" => Ok(ExitWhat::Group),
        "stonewall" => Ok(ExitWhat::Stonewall),
        "all" => Ok(ExitWhat::All),
        _ => Err(one_of(text, &["group", "stonewall", "all"])),
    }
}
