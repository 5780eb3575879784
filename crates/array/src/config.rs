//! Array files: the options of an array, and the devices of its members.
//!
//! An array file is a device file with a table `[array]`. [`is_array`] distinguishes it from the file of a single SSD.
//! The table `[member]` has options of all members, with the keys of a device file.

use std::path::Path;

use floatgate_core::device_file::{
    self, Bandwidth, Builtin, Bytes, Capacity, ConfigError, DeviceConfig, Duration, Problem,
};
use floatgate_core::policies::Offer;
use floatgate_core::sim::request::SECTOR;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::layout::{Layout, Level};

/// Maximum number of members of an array.
pub const MAX_MEMBERS: usize = 64;

/// Bytes at the end of each member that hold the stripe journal, as in md's partial parity log.
pub const JOURNAL_AREA: u64 = 1 << 20;

/// Bytes of the header of a journal entry, as in md's partial parity log.
pub const JOURNAL_HEADER: u64 = 4096;

/// Options of an array: the table `[array]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayOptions {
    /// RAID level: 0, 1, 5, 6 or 10.
    pub level: Level,
    /// Bytes of a stripe on one member, before the next member continues (md: chunk). Default: 64 KiB.
    #[serde(default = "default_stripe")]
    pub stripe: Bytes,
    /// Built-in devices or paths of device files, one for each member. Paths are relative to the array file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Device of all members, as an alternative to `members`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Number of members, with `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Number of requests that the array accepts at the same time. Default: the sum over the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Bytes per second of the parity engine, which computes one block after the other. Default: computing parity takes
    /// no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xor: Option<Bandwidth>,
    /// Protection against the write hole of levels 5 and 6. Default: `none`.
    #[serde(default)]
    pub write_hole: WriteHole,
    /// Numbers of the members that have failed before the run, counted from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<u32>,
    /// Rebuild of the failed members onto new spares, which starts with the run. Default: no rebuild.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<Rebuild>,
    /// Coordination of garbage collection. Default: `independent`.
    #[serde(default)]
    pub gc: GcMode,
}

fn default_stripe() -> Bytes {
    Bytes(64 << 10)
}

/// Protection against the write hole: a power cut between the writes of data and parity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteHole {
    /// No protection.
    #[default]
    None,
    /// A journal on the parity member, with an entry before each change of a stripe.
    Journal,
}

/// Rebuild of failed members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rebuild {
    /// Maximum number of bytes per second that are written to the spare.
    pub rate: Bandwidth,
}

/// Coordination of garbage collection across members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GcMode {
    /// Each member collects when it has to.
    #[default]
    Independent,
    /// Members take turns.
    Staggered(Staggered),
}

/// Options of staggered garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Staggered {
    /// Number of members that may collect above their hard threshold at the same time. Default: 1.
    #[serde(default = "one")]
    pub members: u32,
    /// Time after which the next members take their turn.
    pub window: Duration,
}

fn one() -> u32 {
    1
}

/// Text of an array file, after its overrides.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ArrayFile {
    /// Name of the array in results. Default: the name of the file, without its extension.
    #[serde(default)]
    name: String,
    /// Description in one or two sentences.
    #[serde(default)]
    description: String,
    /// Options of the array.
    array: ArrayOptions,
    /// Options of all members, with the keys of a device file.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    member: Table,
}

/// Loaded and checked array.
#[derive(Clone, Debug)]
pub struct ArrayConfig {
    /// Name in results.
    pub name: String,
    /// Description.
    pub description: String,
    /// Options.
    pub options: ArrayOptions,
    /// Devices of the members.
    pub members: Vec<DeviceConfig>,
    layout: Layout,
    /// File with its overrides. Empty if the array was not loaded from a file.
    file: Table,
}

/// Returns `true` if the text of a device file is that of an array.
pub fn is_array(text: &str) -> bool {
    text.parse::<Table>().is_ok_and(|file| file.contains_key("array"))
}

/// Returns the JSON schema of an array file.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(ArrayFile).into()
}

/// Loads an array from the text of its file, and applies the overrides in order, such as `array.stripe=128KiB` or
/// `member.gc.victim=fifo`. `path` is the path of the file, which errors name.
pub fn from_toml(offers: &[Offer], text: &str, path: &str, overrides: &[String]) -> Result<ArrayConfig, ConfigError> {
    let malformed = |message: String| ConfigError::Malformed(vec![Problem::new("", message)]);
    // The text is read once without overrides, so that errors show its lines.
    let mut file: Table = text.parse().map_err(|error| malformed(format!("{path}: {error}")))?;
    if let Err(error) = toml::from_str::<ArrayFile>(text) {
        return Err(malformed(format!("{path}: {}", with_hint(&error.to_string()))));
    }
    for text in overrides {
        merge(&mut file, parse_override(text).map_err(malformed)?);
    }
    let read = Value::Table(file.clone()).try_into::<ArrayFile>();
    let read = read.map_err(|error| {
        malformed(format!("--set {}: {}", overrides.join(" --set "), with_hint(&error.to_string())))
    })?;
    let stem = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = if read.name.is_empty() { stem } else { read.name };
    let names = member_names(&read.array).map_err(ConfigError::Refused)?;
    let mut set = Vec::new();
    leaves(&read.member, "", &mut set);
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let members = names
        .iter()
        .enumerate()
        .map(|(number, name)| member(offers, folder, name, &set).map_err(|error| of_member(number, name, error)));
    let members = members.collect::<Result<Vec<_>, _>>()?;
    file.insert("name".to_owned(), name.clone().into());
    let array = ArrayConfig::new(name, read.description, read.array, members)?;
    Ok(ArrayConfig { file, ..array })
}

/// Adds the most similar key to serde's message about an unknown key, which lists the known ones.
fn with_hint(message: &str) -> String {
    let parts = message.split_once("unknown field `").and_then(|(_, rest)| rest.split_once("`, expected "));
    let Some((name, known)) = parts else { return message.to_owned() };
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    match device_file::did_you_mean(name, &known) {
        hint if hint.is_empty() => message.to_owned(),
        hint => message.replacen("`, expected ", &format!("`{hint} Expected "), 1),
    }
}

/// Parses an override. A value that is not TOML is a text without quotes.
fn parse_override(text: &str) -> Result<Table, String> {
    let usage = || format!("--set {text}: write it like array.stripe=64KiB or member.gc.victim=fifo");
    let (path, value) = text.split_once('=').ok_or_else(usage)?;
    if !["array.", "member."].iter().any(|start| path.starts_with(start)) && !["name", "description"].contains(&path) {
        return Err(format!(
            "--set {text}: this is an array, whose keys start with `array.` or `member.`; write member.{text} to set \
             the key of all members"
        ));
    }
    let quoted = format!("{path} = {}", Value::String(value.trim().to_owned()));
    text.parse().or_else(|_| quoted.parse()).map_err(|_| usage())
}

/// Merges `over` into `under`. Tables are merged; other values are replaced.
fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// Appends an override for each value of a table.
fn leaves(table: &Table, prefix: &str, into: &mut Vec<String>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(below) => leaves(below, &path, into),
            value => into.push(format!("{path}={value}")),
        }
    }
}

/// Returns the names of the members' devices.
fn member_names(options: &ArrayOptions) -> Result<Vec<String>, Vec<Problem>> {
    let refused = |path: &str, message: String| Err(vec![Problem::new(path, format!("`{path}`: {message}"))]);
    let names = match (&options.device, options.count, &options.members[..]) {
        (Some(device), count, []) => vec![device.clone(); count.unwrap_or(0) as usize],
        (None, None, members) => members.to_vec(),
        _ => {
            let message = "give either `members`, or `device` and `count`, such as device = \"tiny\" and count = 4";
            return refused("array.members", message.to_owned());
        }
    };
    let least = options.level.min_members();
    if names.len() < least || names.len() > MAX_MEMBERS {
        let path = if options.device.is_some() { "array.count" } else { "array.members" };
        let level = options.level;
        return refused(path, format!("{} members, but level {level} needs {least} to {MAX_MEMBERS}", names.len()));
    }
    Ok(names)
}

/// Loads the device of a member. A path is relative to the folder of the array file.
fn member(offers: &[Offer], folder: &Path, name: &str, set: &[String]) -> Result<DeviceConfig, ConfigError> {
    let is_file = Builtin::named(name).is_none() && folder.join(name).is_file();
    let place = if is_file { folder.join(name).to_string_lossy().into_owned() } else { name.to_owned() };
    device_file::load_with(offers, &place, set)
}

/// Adds the number of the member to an error.
fn of_member(number: usize, name: &str, error: ConfigError) -> ConfigError {
    let called = |text: String| format!("member {number} ({name}): {text}");
    let problems: Vec<Problem> =
        error.problems().iter().map(|p| Problem::new(p.path.clone(), called(p.to_string()))).collect();
    if problems.is_empty() {
        ConfigError::Malformed(vec![Problem::new("array.members", called(error.to_string()))])
    } else {
        ConfigError::Refused(problems)
    }
}

impl ArrayConfig {
    /// Creates an array from its options and the devices of its members, and checks them.
    pub fn new(
        name: String,
        description: String,
        options: ArrayOptions,
        members: Vec<DeviceConfig>,
    ) -> Result<ArrayConfig, ConfigError> {
        let layout = Layout::new(options.level, members.len() as u32, options.stripe.0, rows(&options, &members));
        let array = ArrayConfig { name, description, options, members, layout, file: Table::new() };
        let problems = array.problems();
        if problems.is_empty() { Ok(array) } else { Err(ConfigError::Refused(problems)) }
    }

    /// Returns the layout of data and parity on the members.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the problems with the options.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |path: &str, message: String| {
            problems.push(Problem::new(path, format!("`{path}`: {message}")));
        };
        let options = &self.options;
        let count = self.members.len() as u32;
        let unit = self.members.iter().map(DeviceConfig::unit_bytes).fold(4096, least_multiple);
        if options.stripe.0 == 0 || !options.stripe.0.is_multiple_of(unit) {
            let works = Bytes(options.stripe.0.div_ceil(unit).max(1) * unit);
            refuse("array.stripe", format!("must be a multiple of {}, such as {works}", Bytes(unit)));
        } else if options.stripe.0 > longest_with_journal(options.level) && options.write_hole == WriteHole::Journal {
            let most = Bytes(longest_with_journal(options.level));
            refuse("array.stripe", format!("the stripe journal allows at most {most}; omit `write_hole` otherwise"));
        } else if self.layout.rows() == 0 {
            refuse("array.stripe", "the smallest member has no room for a stripe; use a smaller one".to_owned());
        }
        if options.level == Level::Mirrors && !count.is_multiple_of(2) {
            refuse("array.count", format!("level 10 needs an even number of members, such as {}", count + 1));
        }
        if options.write_hole == WriteHole::Journal && options.level.parities() == 0 {
            refuse(
                "array.write_hole",
                format!("level {} has no parity, so it needs no journal; omit it", options.level),
            );
        }
        if options.xor.is_some_and(|xor| xor.0 == 0) {
            refuse("array.xor", "must be above 0, such as 10GB/s".to_owned());
        }
        if options.queue_depth == Some(0) {
            refuse("array.queue_depth", "must be at least 1".to_owned());
        }
        if let Some(message) = self.wrong_failures() {
            refuse("array.failed", message);
        }
        match options.rebuild {
            Some(_) if options.failed.is_empty() => {
                refuse(
                    "array.rebuild",
                    "there is no failed member to rebuild; give failed = [0], for example".to_owned(),
                );
            }
            Some(rebuild) if rebuild.rate.0 == 0 => {
                refuse("array.rebuild.rate", "must be above 0, such as 100MB/s".to_owned());
            }
            _ => {}
        }
        if let GcMode::Staggered(staggered) = options.gc {
            if staggered.members == 0 || staggered.members >= count {
                refuse("array.gc.staggered.members", format!("must be from 1 to {}, such as 1", count - 1));
            }
            if staggered.window.0 == 0 {
                refuse("array.gc.staggered.window", "must be above 0, such as 20ms".to_owned());
            }
        }
        problems
    }

    /// Returns what is wrong with the failed members.
    fn wrong_failures(&self) -> Option<String> {
        let failed = &self.options.failed;
        let count = self.members.len() as u32;
        if let Some(member) = failed.iter().find(|member| **member >= count) {
            return Some(format!("there is no member {member}; members are 0 to {}", count - 1));
        }
        if (1..failed.len()).any(|index| failed[..index].contains(&failed[index])) {
            return Some("a member is listed twice; list each failed member once".to_owned());
        }
        let survives = self.layout.survives(|member| !failed.contains(&member));
        (!survives).then(|| {
            let level = self.options.level;
            let most = level.survived_failures(count);
            format!("level {level} has lost data with these failures; it survives {most}")
        })
    }

    /// Returns the number of bytes that the host sees.
    pub fn logical_bytes(&self) -> u64 {
        self.layout.bytes()
    }

    /// Returns an SSD with the flash of all members, for results: the parameters of the first member, the channels of
    /// all, and the capacity of the array.
    pub fn as_one_ssd(&self) -> DeviceConfig {
        let mut one = self.members[0].clone();
        one.name.clone_from(&self.name);
        one.description = if self.description.is_empty() { self.summary() } else { self.description.clone() };
        one.geometry.channels = self.members.iter().map(|member| member.geometry.channels).sum();
        one.capacity = Capacity::Logical(Bytes(self.logical_bytes()));
        if let Some(energy) = &mut one.energy {
            // Each member has a controller.
            energy.controller.0 *= self.members.len() as u64;
        }
        one.host.queue_depth = self.queue_depth();
        one.host.sector_size = self.members.iter().map(|member| member.host.sector_size).max().unwrap_or_default();
        one
    }

    /// Returns `true` if the members have equal geometries, so that their blocks are those of one SSD.
    pub fn is_uniform(&self) -> bool {
        let size = |member: &DeviceConfig| {
            let planes_per_channel = member.total_planes() / member.geometry.channels;
            (member.geometry.blocks, planes_per_channel, member.block_sizes(), member.units_per_block())
        };
        self.members.iter().all(|member| size(member) == size(&self.members[0]))
    }

    /// Returns the number of bytes that a TRIM drops together: a stripe with parity, or a mapping unit of all members.
    pub fn trim_bytes(&self) -> u64 {
        match self.layout.level().parities() {
            0 => self.unit_bytes(),
            _ => self.layout.row_sectors() * SECTOR,
        }
    }

    /// Returns the size of the smallest range that is whole mapping units of all members.
    pub fn unit_bytes(&self) -> u64 {
        self.members.iter().map(DeviceConfig::unit_bytes).fold(1, least_multiple)
    }

    /// Returns the number of requests that the array accepts at the same time.
    pub fn queue_depth(&self) -> u32 {
        let members = || self.members.iter().map(|member| member.host.queue_depth).fold(0, u32::saturating_add);
        self.options.queue_depth.unwrap_or_else(members)
    }

    /// Returns the level and the members, such as `RAID 5 of 4 SSDs (tiny)`.
    pub fn summary(&self) -> String {
        let mut names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        names.dedup();
        format!("RAID {} of {} SSDs ({})", self.options.level, self.members.len(), names.join(", "))
    }

    /// Returns the options as JSON, for results. Members are named; their own results have their parameters.
    pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        let mut json = serde_json::to_value(&self.options).unwrap_or_default();
        let keys = json.as_object_mut().map(std::mem::take).unwrap_or_default();
        let mut keys: serde_json::Map<_, _> =
            keys.into_iter().filter(|(key, _)| key != "device" && key != "count").collect();
        keys.insert("members".to_owned(), self.members.iter().map(|member| member.name.clone()).collect());
        keys
    }

    /// Returns the text of the array file with its overrides. Paths of members are relative to the original file.
    pub fn to_toml(&self) -> String {
        self.file.to_string()
    }

    /// Returns a digest of the options that affect saved states, of the array and of its members.
    pub fn state_digest(&self) -> String {
        let ArrayOptions { level, stripe, write_hole, failed, .. } = &self.options;
        let members: Vec<String> = self.members.iter().map(DeviceConfig::state_digest).collect();
        DeviceConfig::digest_of(serde_json::json!([level, stripe, write_hole, failed, members]))
    }

    /// Returns a digest of the options and of the members' devices.
    pub fn digest(&self) -> String {
        let mut json = self.to_json();
        json.insert("members".to_owned(), self.members.iter().map(DeviceConfig::digest).collect());
        DeviceConfig::digest_of(json.into())
    }
}

/// Returns the maximum bytes of a stripe on one member with a journal: an entry has as many chunks as members may fail.
fn longest_with_journal(level: Level) -> u64 {
    JOURNAL_AREA / 2 / u64::from(level.parities().max(1))
}

/// Returns the number of whole stripes that each member can hold.
fn rows(options: &ArrayOptions, members: &[DeviceConfig]) -> u64 {
    let journal = if options.write_hole == WriteHole::Journal { JOURNAL_AREA } else { 0 };
    let bytes = members.iter().map(DeviceConfig::logical_bytes).min().unwrap_or(0);
    bytes.saturating_sub(journal).checked_div(options.stripe.0).unwrap_or(0)
}

/// Returns the least common multiple.
fn least_multiple(a: u64, b: u64) -> u64 {
    let mut divisor = a;
    let mut rest = b;
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}
