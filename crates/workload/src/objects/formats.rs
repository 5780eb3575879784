//! Readers of object traces.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;

use super::access::{Access, Kind};
use super::vllm::Blocks;
use crate::sim::source::SourceError;
use crate::sim::time::Time;
use crate::trace::input::Input;

/// Format of an object trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Log of MLPerf Storage's benchmark of key-value caches: `Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase`.
    Mlperf,
    /// Requests of Mooncake: an object of JSON per line, with `timestamp` in ms and `hash_ids`, the blocks of a prompt.
    Mooncake,
    /// Requests of Alibaba Bailian: like Mooncake's, with `timestamp` in s and `chat_id`.
    Bailian,
    /// Batches of events of vLLM's key-value cache, as JSON.
    Vllm,
    /// libCacheSim's oracleGeneral: 24 bytes per access, with time in s, object, size and next access.
    OracleGeneral,
    /// Traces of CacheLib: columns `key`, `op`, `size`, and optionally `op_count` and `op_time` in s, with a header.
    CacheLib,
    /// Traces of Twitter's caches: `time,key,key size,value size,client,operation,TTL`.
    Twitter,
}

/// Formats with their names.
const FORMATS: [(&str, Format); 7] = [
    ("mlperf", Format::Mlperf),
    ("mooncake", Format::Mooncake),
    ("bailian", Format::Bailian),
    ("vllm", Format::Vllm),
    ("oracle-general", Format::OracleGeneral),
    ("cachelib", Format::CacheLib),
    ("twitter", Format::Twitter),
];

impl Format {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// Returns `true` if the accesses contain the sizes of objects.
    pub fn has_sizes(self) -> bool {
        ![Format::Mooncake, Format::Bailian, Format::Vllm].contains(&self)
    }

    /// Detects the format from the start of a file.
    fn of(head: &[u8]) -> Option<Format> {
        let end = head.iter().position(|byte| *byte == b'\n').unwrap_or(head.len());
        let line = std::str::from_utf8(&head[..end]).map(str::trim).unwrap_or("");
        let columns: Vec<&str> = line.split(',').collect();
        let has = |name: &str| columns.contains(&name);
        if line.starts_with('[') || (line.starts_with('{') && line.contains("\"events\"")) {
            Some(Format::Vllm)
        } else if line.starts_with('{') {
            Some(if line.contains("\"chat_id\"") { Format::Bailian } else { Format::Mooncake })
        } else if has("Object_Size_Bytes") {
            Some(Format::Mlperf)
        } else if has("key") && has("op") && has("size") {
            Some(Format::CacheLib)
        } else if columns.len() == 7 && columns[0].parse::<u64>().is_ok() && kind_of(columns[5]).is_some() {
            Some(Format::Twitter)
        } else {
            (head.len() >= RECORD && head[..RECORD].contains(&0)).then_some(Format::OracleGeneral)
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let found = FORMATS.iter().find(|(name, _)| *name == text);
        let names = || FORMATS.map(|(name, _)| name).join(", ");
        found.map(|(_, format)| *format).ok_or_else(|| format!("unknown format; choose one of {}", names()))
    }
}

/// Returns `true` if a regular file is an object trace in a format that its first line shows.
pub fn is_object_trace(path: &Path) -> bool {
    let head = || -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        if path.metadata()?.is_file() {
            std::fs::File::open(path)?.take(HEAD).read_to_end(&mut head)?;
        }
        Ok(head)
    };
    head().ok().and_then(|head| Format::of(&head)).is_some_and(|format| format != Format::OracleGeneral)
}

/// Bytes of a record of oracleGeneral.
const RECORD: usize = 24;

/// Returns the kind of an access, by the names of all formats. The arithmetic operations of Twitter write.
fn kind_of(name: &str) -> Option<Kind> {
    Some(match name.to_ascii_lowercase().as_str() {
        "get" | "gets" | "get_lease" | "read" => Kind::Get,
        "set" | "add" | "replace" | "cas" | "append" | "prepend" | "incr" | "decr" | "set_lease" | "write" => Kind::Set,
        "delete" | "remove" | "evict" => Kind::Delete,
        _ => return None,
    })
}

/// Options of a reader.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Format. `None`: detected.
    pub format: Option<Format>,
    /// Tier, or medium, whose accesses are read. Others are counted. Default: `Tier-2` with MLPerf, all with vLLM.
    pub tier: Option<String>,
    /// Bytes of a block in traces that do not contain it.
    pub block: Option<u64>,
}

/// A file as a reader.
struct File(Input);

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| io::Error::other(error.0))
    }
}

/// A request of Mooncake's and Bailian's traces.
#[derive(Deserialize)]
struct Prompt {
    timestamp: f64,
    hash_ids: Vec<u64>,
}

/// Positions of columns.
#[derive(Clone, Copy, Default)]
struct Columns {
    time: Option<usize>,
    kind: usize,
    key: usize,
    size: usize,
    tier: Option<usize>,
    count: Option<usize>,
}

/// Reader of an object trace.
pub struct Reader {
    name: String,
    file: BufReader<Chain<Cursor<Vec<u8>>, File>>,
    format: Format,
    options: Options,
    columns: Columns,
    line: u64,
    /// Accesses that were read, with their times in ps since the epoch of the trace.
    read: VecDeque<(u128, Access)>,
    /// Accesses of one second, with their own times.
    ready: VecDeque<Access>,
    /// Time of the first access.
    first: Option<u128>,
    last: Time,
    /// Blocks that vLLM has stored.
    blocks: Blocks,
    /// Accesses to other tiers.
    pub other_tiers: u64,
}

const SECOND: u128 = 10u128.pow(12);

impl Reader {
    /// Creates a reader. Detects the format, unless the options contain it.
    pub(super) fn new(input: Input, options: Options) -> Result<Reader, SourceError> {
        let name = input.name().to_owned();
        let mut file = File(input);
        let mut head = Vec::new();
        file.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| SourceError(error.to_string()))?;
        let format = options.format.or_else(|| Format::of(&head)).ok_or_else(|| {
            SourceError(format!("{name}: not an object trace that is known; give its format with format=..."))
        })?;
        if !format.has_sizes() && options.block.is_none() {
            return Err(SourceError(format!(
                "{name}: the trace contains blocks of tokens without their size; give it with block=..., such as block=2MiB"
            )));
        }
        let (columns, line) = (Columns { kind: 5, key: 1, size: 3, time: Some(0), ..Columns::default() }, 0);
        let (read, ready) = (VecDeque::new(), VecDeque::new());
        let file = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(file));
        let mut reader = Reader {
            name,
            file,
            format,
            options,
            columns,
            line,
            read,
            ready,
            first: None,
            last: Time::ZERO,
            blocks: Blocks::default(),
            other_tiers: 0,
        };
        if [Format::Mlperf, Format::CacheLib].contains(&format) {
            reader.header()?;
        }
        Ok(reader)
    }

    /// Returns the format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the share of the file that has been read.
    pub fn progress(&self) -> Option<f64> {
        self.file.get_ref().get_ref().1.0.progress()
    }

    /// Returns a warning about truncated data.
    pub fn warning(&self) -> Option<String> {
        self.file.get_ref().get_ref().1.0.warning()
    }

    /// Returns the next access. Times never decrease, and start at 0.
    pub fn next(&mut self) -> Result<Option<Access>, SourceError> {
        loop {
            if let Some(access) = self.ready.pop_front() {
                return Ok(Some(access));
            }
            // Times in whole seconds: the accesses of a second are spread over it.
            let spreads = [Format::OracleGeneral, Format::Twitter, Format::CacheLib].contains(&self.format);
            let Some((first, _)) = self.read.front().copied() else {
                if self.read_more()? {
                    continue;
                }
                return Ok(None);
            };
            let same = |read: &VecDeque<(u128, Access)>| read.back().is_none_or(|(time, _)| *time == first);
            while spreads && same(&self.read) && self.read.len() < MOST && self.read_more()? {}
            let count = self.read.iter().take_while(|(time, _)| *time == first).count();
            let step = if spreads { SECOND / count as u128 } else { 0 };
            let start = *self.first.get_or_insert(first);
            for (number, (time, access)) in self.read.drain(..count).enumerate() {
                let ps = (time + step * number as u128).saturating_sub(start);
                self.last = self.last.max(Time(u64::try_from(ps).unwrap_or(u64::MAX)));
                self.ready.push_back(Access { at: self.last, ..access });
            }
        }
    }

    /// Reads a record. Returns `false` at the end.
    fn read_more(&mut self) -> Result<bool, SourceError> {
        if self.format == Format::OracleGeneral {
            return self.read_binary();
        }
        let Some(text) = self.read_line()? else { return Ok(false) };
        if text.is_empty() {
            return Ok(true);
        }
        let parsed = match self.format {
            Format::Mooncake => self.prompt(&text, 1e9),
            Format::Bailian => self.prompt(&text, 1e12),
            Format::Vllm => self.events(&text),
            _ => self.row(&text),
        };
        parsed.map(|()| true).map_err(|expected| {
            let text: String = text.chars().take(120).collect();
            SourceError(format!("{}: line {}: `{text}`: expected {expected}", self.name, self.line))
        })
    }

    fn read_line(&mut self) -> Result<Option<String>, SourceError> {
        let mut bytes = Vec::new();
        self.line += 1;
        let mut limited = self.file.by_ref().take(MAX_LINE);
        let length = limited.read_until(b'\n', &mut bytes).map_err(|error| SourceError(error.to_string()))?;
        if length as u64 == MAX_LINE {
            return Err(SourceError(format!("{}: line {} is longer than 16 MiB", self.name, self.line)));
        }
        Ok((length > 0).then(|| String::from_utf8_lossy(&bytes).trim().to_owned()))
    }

    /// Reads the header with the names of the columns.
    fn header(&mut self) -> Result<(), SourceError> {
        let text = self.read_line()?.unwrap_or_default();
        let find = |name: &str| text.split(',').position(|column| column.trim() == name);
        let need = |name: &str| {
            find(name).ok_or_else(|| SourceError(format!("{}: no column `{name}` in `{text}`", self.name)))
        };
        let (time, kind, key, size) = match self.format {
            Format::Mlperf => (Some(need("Timestamp")?), need("Operation")?, need("Key")?, need("Object_Size_Bytes")?),
            _ => (find("op_time"), need("op")?, need("key")?, need("size")?),
        };
        self.columns = Columns { time, kind, key, size, tier: find("Tier"), count: find("op_count") };
        Ok(())
    }

    /// Parses a line with columns.
    fn row(&mut self, text: &str) -> Result<(), &'static str> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let field = |at: usize| fields.get(at).copied().ok_or("as many columns as the others");
        let Columns { time, kind, key, size, tier, count } = self.columns;
        if let Some(tier) = tier
            && field(tier)? != self.options.tier.as_deref().unwrap_or(TIER)
        {
            self.other_tiers += 1;
            return Ok(());
        }
        let number = |text: &str| text.parse::<u64>().map_err(|_| "a size or number, a whole number");
        let time = time.map_or(Ok(0), |at| decimal(field(at)?))?;
        let kind = kind_of(field(kind)?).ok_or("an operation, such as get, set or delete")?;
        let mut size = number(field(size)?)?;
        if self.format == Format::Twitter {
            size += number(field(2)?)?;
        }
        let key = xxhash_rust::xxh3::xxh3_64(field(key)?.as_bytes());
        let count = count.map_or(Ok(1), |at| number(field(at)?))?.clamp(1, MAX_COUNT);
        let access = Access { at: Time::ZERO, kind, key, size };
        self.read.extend((0..count).map(|_| (time, access)));
        Ok(())
    }

    /// Parses a prompt: reads of all its blocks. `unit` is that of its time, in ps.
    fn prompt(&mut self, text: &str, unit: f64) -> Result<(), &'static str> {
        let prompt: Option<Prompt> = serde_json::from_str(text).ok();
        let prompt = prompt.ok_or("an object of JSON with a number `timestamp` and `hash_ids`")?;
        let time = picoseconds(prompt.timestamp, unit)?;
        let size = self.options.block.unwrap_or_default();
        let access = |key: u64| (time, Access { at: Time::ZERO, kind: Kind::Get, key, size });
        self.read.extend(prompt.hash_ids.into_iter().map(access));
        Ok(())
    }

    /// Parses a batch of events: writes and removals of blocks.
    fn events(&mut self, text: &str) -> Result<(), &'static str> {
        let batch = self.blocks.read(text, self.options.tier.as_deref())?;
        let time = picoseconds(batch.time, 1e12)?;
        let size = self.options.block.unwrap_or_default();
        self.other_tiers += batch.others;
        self.read
            .extend(batch.changes.into_iter().map(|(kind, key)| (time, Access { at: Time::ZERO, kind, key, size })));
        Ok(())
    }

    fn read_binary(&mut self) -> Result<bool, SourceError> {
        let mut record = [0; RECORD];
        match self.file.read_exact(&mut record) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(SourceError(error.to_string())),
        }
        let number = |range: std::ops::Range<usize>| {
            record[range].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (time, key, size) = (u128::from(number(0..4)) * SECOND, number(4..12), number(12..16));
        self.read.push_back((time, Access { at: Time::ZERO, kind: Kind::Get, key, size }));
        Ok(true)
    }
}

/// Bytes from which the format is detected.
const HEAD: u64 = 4096;
/// Maximum number of accesses that are spread over a second together.
const MOST: usize = 1 << 20;
/// Maximum length of a line.
const MAX_LINE: u64 = 16 << 20;
/// Maximum number of accesses of a row.
const MAX_COUNT: u64 = 1 << 20;

/// Tier of MLPerf's storage.
const TIER: &str = "Tier-2";

/// Converts a time in units of `unit` ps to ps, with a resolution of ns.
fn picoseconds(time: f64, unit: f64) -> Result<u128, &'static str> {
    let ns = time * unit / 1000.0;
    if (0.0..1e21).contains(&ns) { Ok(ns.round() as u128 * 1000) } else { Err("a time that is not negative") }
}

/// Parses a decimal number of seconds, in ps.
fn decimal(text: &str) -> Result<u128, &'static str> {
    const EXPECTED: &str = "a time in s, a decimal number";
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(12).collect();
    let parse = |digits: &str| digits.parse::<u64>().map(u128::from).map_err(|_| EXPECTED);
    Ok(parse(whole)? * SECOND + parse(&digits)?)
}
