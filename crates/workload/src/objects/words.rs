//! Object traces in `key=value` syntax: `objects=PATH placement=log capacity=50%`.

use std::path::{Path, PathBuf};

use super::access::{BLOCK, Placement};
use super::extents::{Extents, Search};
use super::formats::{Options, Reader};
use super::generate::{self, Generator};
use super::log::Log;
use super::order::Policy;
use super::replay::{Objects, Origin, Settings};
use super::sets::Sets;
use crate::file::Stop;
use crate::quantity;
use crate::sim::request::SECTOR;
use crate::sim::source::SourceError;
use crate::sim::time::Time;
use crate::trace::input::Input;
use crate::trace::words::split;
use crate::trace::{Replay, TimeScale};

/// Kind of a placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Extent,
    Log,
    Sets,
}

/// An object trace with its options.
#[derive(Clone, Debug)]
pub struct ObjectWords {
    /// Path of the file.
    pub path: PathBuf,
    name: Option<String>,
    placement: Kind,
    search: Search,
    policy: Policy,
    /// Offset and capacity, unparsed.
    offset: Option<String>,
    capacity: Option<String>,
    segment: u64,
    request: u64,
    trim: Option<bool>,
    admit: bool,
    reader: Options,
    replay: Replay,
    time_scale: TimeScale,
    limit: u64,
    /// Options of the generator, if the accesses are generated.
    generated: Option<generate::Options>,
}

/// Path that stands for the generator of accesses to a key-value cache.
const KV_CACHE: &str = "kv-cache";

/// Keys of the generator.
const OF_GENERATOR: [&str; 7] = ["prompts", "rate", "turns", "blocks", "think", "drop", "seed"];

/// Keys, in the order of the reference.
const KEYS: [&str; 16] = [
    "objects",
    "format",
    "placement",
    "search",
    "policy",
    "offset",
    "capacity",
    "segment",
    "request",
    "trim",
    "admit",
    "tier",
    "block",
    "replay",
    "time_scale",
    "limit",
];

/// Key for the name of the stream, which all workloads have.
const NAME: &str = "name";

/// Returns `true` if `text` is an object trace: its first word starts with `objects=`.
pub fn are_words(text: &str) -> bool {
    text.trim_start().starts_with("objects=")
}

/// Returns the value of a name in a list.
fn one_of<T: Copy>(text: &str, values: &[(&str, T)]) -> Result<T, String> {
    let names = || values.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = values.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| format!("must be one of {}", names()))
}

/// Parses a positive number of bytes in whole blocks.
fn blocks(text: &str) -> Result<u64, String> {
    match quantity::bytes(text)? {
        bytes if bytes >= BLOCK && bytes.is_multiple_of(BLOCK) => Ok(bytes / BLOCK),
        _ => Err("must be a multiple of 4 KiB".to_owned()),
    }
}

const SWITCH: [(&str, bool); 2] = [("1", true), ("0", false)];

impl ObjectWords {
    /// Parses the keys.
    ///
    /// # Errors
    ///
    /// The text names the key, and what is allowed.
    pub fn read(text: &str) -> Result<ObjectWords, SourceError> {
        let mut words = ObjectWords {
            path: PathBuf::new(),
            name: None,
            placement: Kind::Extent,
            search: Search::First,
            policy: Policy::Lru,
            offset: None,
            capacity: None,
            segment: (16 << 20) / BLOCK,
            request: (1 << 20) / BLOCK,
            trim: None,
            admit: true,
            reader: Options::default(),
            replay: Replay::Timed,
            time_scale: TimeScale::default(),
            limit: u64::MAX,
            generated: None,
        };
        let mut seen: Vec<String> = Vec::new();
        for (key, value) in split(text).map_err(SourceError)? {
            let error = |what: String| SourceError(format!("`{key}={value}`: {what}"));
            if seen.contains(&key) {
                return Err(error("is given twice; leave one out".to_owned()));
            }
            words.set(&key, &value).map_err(error)?;
            seen.push(key);
        }
        Ok(words)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let placements = [("extent", Kind::Extent), ("log", Kind::Log), ("sets", Kind::Sets)];
        let searches = [("first", Search::First), ("next", Search::Next), ("class", Search::Class)];
        match key {
            "objects" => {
                self.path = PathBuf::from(value);
                self.generated = (value == KV_CACHE).then(generate::Options::default);
            }
            key if OF_GENERATOR.contains(&key) => self.set_generated(key, value)?,
            NAME => self.name = Some(value.to_owned()),
            "format" => self.reader.format = Some(value.parse()?),
            "placement" => self.placement = one_of(value, &placements)?,
            "search" => self.search = one_of(value, &searches)?,
            "policy" => self.policy = one_of(value, &[("lru", Policy::Lru), ("fifo", Policy::Fifo)])?,
            "offset" => self.offset = Some(value.to_owned()),
            "capacity" => self.capacity = Some(value.to_owned()),
            "segment" => self.segment = blocks(value)?,
            "request" => self.request = blocks(value).and_then(|blocks| limited(blocks, 1 << 18))?,
            "trim" => self.trim = Some(one_of(value, &SWITCH)?),
            "admit" => self.admit = one_of(value, &SWITCH)?,
            "tier" => self.reader.tier = Some(value.to_owned()),
            "block" => {
                let bytes = quantity::bytes(value)?.max(1);
                self.reader.block = Some(bytes);
                if let Some(options) = &mut self.generated {
                    options.block = bytes;
                }
            }
            "replay" => self.replay = value.parse()?,
            "time_scale" => self.time_scale = value.parse()?,
            "limit" => self.limit = value.parse().map_err(|_| "must be a whole number".to_owned())?,
            _ => {
                let all = [&KEYS[..], &OF_GENERATOR[..], &[NAME]].concat().join(", ");
                return Err(format!("unknown word for an object trace. The words are: {all}"));
            }
        }
        Ok(())
    }

    /// Sets a key of the generator.
    fn set_generated(&mut self, key: &str, value: &str) -> Result<(), String> {
        let options = self.generated.as_mut().ok_or("needs objects=kv-cache as the first word")?;
        let number = || value.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
        let above = |least: f64| number().filter(|number| *number >= least);
        match key {
            "prompts" => options.prompts = value.parse().map_err(|_| "must be a whole number")?,
            "rate" => options.rate = number().ok_or("must be a number of prompts per second")?,
            "turns" => options.turns = above(1.0).ok_or("must be 1 or more")?,
            "blocks" => options.blocks = above(1.0).ok_or("must be 1 or more")?,
            "think" => options.think = Time(quantity::time(value)?),
            "drop" => options.drops = one_of(value, &SWITCH)?,
            _ => options.seed = value.parse().map_err(|_| "must be a whole number")?,
        }
        Ok(())
    }

    /// Opens the accesses without a placement.
    pub(super) fn open_accesses(&self, stop: &Stop) -> Result<Origin, SourceError> {
        if let Some(options) = self.generated {
            return Ok(Origin::Generated(Box::new(Generator::new(options))));
        }
        let input = Input::open(&self.path, self.path.display().to_string(), stop)?;
        Ok(Origin::Trace(Box::new(Reader::new(input, self.reader.clone())?)))
    }

    /// Opens the trace for a device of this number of sectors.
    pub fn open(&self, device_sectors: u64, stop: &Stop) -> Result<Objects, SourceError> {
        let name = self.name.clone().unwrap_or_else(|| stem(&self.path));
        let error = |what: String| SourceError(format!("{name}: {what}"));
        let sectors = |text: &Option<String>, whole: u64, default: u64| {
            text.as_deref().map_or(Ok(default), |text| quantity::sectors(text, whole)).map_err(error)
        };
        let start = sectors(&self.offset, device_sectors, 0)?.next_multiple_of(BLOCK / SECTOR);
        let left = device_sectors.saturating_sub(start);
        let blocks = sectors(&self.capacity, device_sectors, left)? * SECTOR / BLOCK;
        if blocks == 0 || blocks > left * SECTOR / BLOCK {
            let left = quantity::readable(u128::from(left) * u128::from(SECTOR));
            return Err(error(format!("`capacity` must be from 4 KiB to {left}, the space after the offset")));
        }
        let trim = |default: bool| self.trim.unwrap_or(default);
        let placement: Box<dyn Placement + Send> = match self.placement {
            Kind::Extent => Box::new(Extents::new(blocks, self.search, self.policy, trim(true))),
            Kind::Log if blocks < self.segment => {
                return Err(error("`segment` is larger than the capacity".to_owned()));
            }
            Kind::Log => Box::new(Log::new(blocks / self.segment, self.segment, self.policy, trim(false))),
            Kind::Sets => Box::new(Sets::new(blocks)),
        };
        let origin = self.open_accesses(stop)?;
        let Self { admit, replay, time_scale, limit, request: largest, .. } = *self;
        let settings = Settings { name, start, largest, admit, replay, time_scale, limit };
        Ok(Objects::new(origin, placement, settings))
    }
}

fn limited(blocks: u64, most: u64) -> Result<u64, String> {
    if blocks <= most { Ok(blocks) } else { Err("must be at most 1 GiB".to_owned()) }
}

/// Returns the name of a file up to its first dot.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("objects").to_owned()
}
