//! The story of one request: where its time went, and behind whom it waited. It is put together from the files of a
//! result: the requests, and the timeline where there is one.

mod blame;
mod choice;
mod order;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use floatgate_core::config::DeviceConfig;
use floatgate_core::ftl::allocation::AllocationConfig;
use floatgate_core::metrics::attribution::Part;
use floatgate_core::metrics::summary::{LARGEST, Summary};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::text::read_text;
use floatgate_core::sim::time::Time;
use serde::Serialize;

use crate::columns::requests::{find_request, read_latencies, status_name};
use crate::columns::run_in;
use crate::command::{again, quoted};
use crate::digests::Checked;

pub use choice::Choice;

/// The story of a request. Times are in microseconds of simulated time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Story {
    /// Its number.
    pub request: u64,
    /// The name of its stream.
    pub stream: String,
    /// What it did.
    pub operation: &'static str,
    /// First sector.
    pub lba: u64,
    /// Length in sectors of 512 B.
    pub sectors: u64,
    /// How it ended.
    pub status: &'static str,
    /// When it arrived.
    pub arrival_us: f64,
    /// When it was first served.
    pub start_us: f64,
    /// When the host had the answer.
    pub finish_us: f64,
    /// From arrival to finish.
    pub latency_us: f64,
    /// Where it stands among those that it was chosen from; of a request that was asked for by its number, among those
    /// of its operation.
    pub standing: Standing,
    /// What its time went into, parts of no length included; null where that was not told.
    pub parts: Option<Vec<PartStory>>,
    /// How many channels its operations used; null where that was not told.
    pub channels: Option<u32>,
    /// The older writes of the same mapping unit that it waited for; null where it waited for none, and without a
    /// timeline.
    pub order: Option<OrderStory>,
    /// What the flash did for it, in the order of the grants; null without a timeline.
    pub operations: Option<Vec<OperationStory>>,
    /// What the timeline covers; null without one.
    pub timeline: Option<TimelineStory>,
    /// What to run for a timeline that covers the request; null where there is one.
    pub rerun: Option<String>,
    /// What should be known of the files that it was read from; no part of the story.
    #[serde(skip)]
    pub note: Option<String>,
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Among whom: the requests of an operation, or `all`.
    pub among: &'static str,
    /// How many they are.
    pub of: u64,
    /// How many of them were faster.
    pub faster: u64,
    /// How many were slower.
    pub slower: u64,
}

/// A part of a request's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartStory {
    /// Its name: see docs/model/attribution.md.
    pub part: &'static str,
    /// How long.
    pub us: f64,
    /// The share of the latency.
    pub share: f64,
}

/// What a timeline covers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineStory {
    /// From when.
    pub from_us: f64,
    /// Until when, where a span was asked for.
    pub to_us: Option<f64>,
    /// Whether all of the request is in it, from its arrival to its answer, and what was in its way when it arrived.
    pub covers: bool,
}

/// A wait for older writes of the same mapping unit: they are programmed one after the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderStory {
    /// How long: the part `order`.
    pub us: f64,
    /// The logical page of the unit; null where the timeline does not tell it.
    pub lpn: Option<u64>,
    /// The operations of the older writes, the last first.
    pub behind: Vec<OlderStory>,
    /// How much of it the timeline does not tell.
    pub untold_us: f64,
}

/// An operation of an older write, on which a request waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OlderStory {
    /// Its number in the timeline.
    pub op: u64,
    /// What it was: `host write`, or `rmw read`.
    pub what: String,
    /// The request that it was for.
    pub request: u64,
    /// When it ended, and with it this part of the wait.
    pub until_us: f64,
    /// For how long it was waited for, from when it was in line itself.
    pub us: f64,
}

/// What the flash did for a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationStory {
    /// Its number in the timeline.
    pub op: u64,
    /// What it was: `host read`, `host write`, `rmw read`.
    pub what: String,
    /// The channel.
    pub channel: u64,
    /// The plane.
    pub plane: u64,
    /// The block.
    pub block: u64,
    /// The page in the block.
    pub page: u64,
    /// The logical page of its (first) mapping unit, where there is one.
    pub lpn: Option<u64>,
    /// Whether any die could have taken it (dynamic allocation). Its waits tell of the die that did; the parts of the
    /// request share them out as the time of all dies was.
    pub any_die: bool,
    /// Other requests that the same program command served.
    pub shared_with: Vec<u64>,
    /// When it was in line for its die and channel.
    pub waited_from_us: f64,
    /// When both were granted.
    pub granted_us: f64,
    /// What it waited for in between, and in its middle.
    pub waits: Vec<WaitStory>,
    /// What it did.
    pub phases: Vec<PhaseStory>,
}

/// A wait, and who was in the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitStory {
    /// `die and channel` before the grant, `channel` with data in the register.
    pub of: &'static str,
    /// How long.
    pub us: f64,
    /// Who was in the way, the longest first.
    pub behind: Vec<Blocker>,
    /// For how long nobody held what it waited for, so that it waited for something else: a free block, or its turn.
    pub unheld_us: f64,
}

/// An operation that was in the way of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blocker {
    /// Its number in the timeline.
    pub op: u64,
    /// What it was.
    pub what: String,
    /// The requests that it was for; none of cleaning.
    pub requests: Vec<u64>,
    /// For how long of the wait it held the die.
    pub die_us: f64,
    /// For how long of the rest it held the channel.
    pub channel_us: f64,
}

/// A phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseStory {
    /// `switch`, `command`, `data` or `cell`.
    pub phase: String,
    /// From when.
    pub from_us: f64,
    /// How long.
    pub us: f64,
}

/// The file of a result that holds its requests.
fn requests_of(directory: &Path) -> Result<PathBuf> {
    let candidates = ["requests.parquet", "requests.csv"].map(|name| directory.join(name));
    match candidates.into_iter().find(|path| path.exists()) {
        Some(path) => Ok(path),
        None => bail!(
            "{} has no requests.parquet and no requests.csv: run with --requests=parquet --timeline",
            directory.display()
        ),
    }
}

/// Returns the digest of the run that a file of requests holds; one in CSV has no room for it.
fn run_of(requests: &Path) -> Result<Option<String>> {
    if requests.extension().is_some_and(|extension| extension == "csv") { Ok(None) } else { run_in(requests) }
}

/// Tells the story of a request of the result in `directory`.
pub fn tell(directory: &Path, choice: &Choice) -> Result<Story> {
    let summary = directory.join("summary.json");
    if !summary.exists() {
        bail!("{} is no result: it has no summary.json; run with --out {0}", directory.display());
    }
    let text = read_text(&summary, LARGEST).with_context(|| format!("cannot read {}", summary.display()))?;
    let result = Summary::from_json(&text).map_err(|error| anyhow!("{}: {error}", summary.display()))?;
    let checked = Checked::of_summary(&summary, &text)?;
    let requests = requests_of(directory)?;
    checked.file(&requests)?;
    checked.run(&requests, run_of(&requests)?.as_deref())?;
    let number = choice.find(&requests)?;
    let Some((asked, mut story)) = of_request(&requests, number, &result.config)? else {
        let there = choice::There::of(&requests)?.said();
        bail!("there is no request {number}: {} {there}", requests.display())
    };
    let among = choice.among().unwrap_or(Some(asked.operation));
    story.note = checked.note();
    story.standing = standing(&requests, among, asked.latency())?;
    let timeline = directory.join("timeline.json.gz");
    if timeline.exists() {
        checked.file(&timeline)?;
        let mut witness = blame::witness(&timeline, &asked, &result.config_digest, &checked)?;
        if !matches!(result.config.allocation, AllocationConfig::Static(_)) {
            let writes = witness.operations.iter_mut().filter(|operation| operation.what == "host write");
            writes.for_each(|write| write.any_die = true);
        }
        (story.operations, story.order, story.timeline) =
            (Some(witness.operations), witness.order, Some(witness.covered));
    }
    if story.timeline.as_ref().is_none_or(|timeline| !timeline.covers) {
        story.rerun = Some(rerun(&result, directory, &requests, &asked));
    }
    Ok(story)
}

/// The request that a story is of, as the file has it.
#[derive(Clone, Debug)]
struct Asked {
    number: u64,
    operation: Operation,
    arrival: Time,
    finish: Time,
    /// The time that went into waiting for the queue, and for older writes.
    host_queue: Time,
    order: Time,
    /// The logical pages of its mapping units.
    lpns: RangeInclusive<u64>,
    /// How long what was in its way when it arrived may have been there: no operation takes longer than an erase, and
    /// one may wait in its middle.
    before: Time,
}

impl Asked {
    fn latency(&self) -> Time {
        self.finish.since(self.arrival)
    }
}

/// What the file of the requests tells of one.
fn of_request(requests: &Path, number: u64, config: &DeviceConfig) -> Result<Option<(Asked, Story)>> {
    let mut found = None;
    find_request(requests, number, &mut |record| {
        let us = |time: Time| time.as_us();
        let latency = record.latency();
        let share = |time: Time| if latency > Time::ZERO { time.as_us() / latency.as_us() } else { 0.0 };
        let part = |part: &Part, time: Time| PartStory { part: part.name(), us: time.as_us(), share: share(time) };
        let told = record.breakdown.map(|b| Part::ALL.iter().map(|p| part(p, b.of(*p))).collect());
        let spent = |part: Part| record.breakdown.map_or(Time::ZERO, |breakdown| breakdown.of(part));
        let lpn = |sector: u64| sector / u64::from(config.sectors_per_unit());
        let asked = Asked {
            number,
            operation: record.operation,
            arrival: record.arrival,
            finish: record.finish,
            host_queue: spent(Part::HostQueue),
            order: spent(Part::Order),
            lpns: lpn(record.lba)..=lpn(record.lba.saturating_add(record.sectors.saturating_sub(1))),
            before: config.nand.erase.time() + config.nand.erase.time(),
        };
        let story = Story {
            request: number,
            stream: record.stream.to_owned(),
            operation: record.operation.name(),
            lba: record.lba,
            sectors: record.sectors,
            status: status_name(record.status),
            arrival_us: us(record.arrival),
            start_us: us(record.start),
            finish_us: us(record.finish),
            latency_us: us(latency),
            standing: Standing { among: "all", of: 0, faster: 0, slower: 0 },
            parts: told,
            channels: record.breakdown.map(|breakdown| breakdown.channels),
            order: None,
            operations: None,
            timeline: None,
            rerun: None,
            note: None,
        };
        found = Some((asked, story));
        Ok(())
    })?;
    Ok(found)
}

fn standing(requests: &Path, among: Option<Operation>, latency: Time) -> Result<Standing> {
    let mut standing = Standing { among: among.map_or("all", Operation::name), of: 0, faster: 0, slower: 0 };
    read_latencies(requests, &mut |_, of, other| {
        if among.is_none_or(|operation| operation == of) {
            standing.of += 1;
            standing.faster += u64::from(other < latency);
            standing.slower += u64::from(other > latency);
        }
    })?;
    Ok(standing)
}

/// Time around a request that its timeline covers too, in milliseconds, beside what was in its way when it arrived.
const MARGIN_MS: u64 = 10;

/// The command for the same result with a timeline that covers the request. Without what the run was called with, its
/// options alone.
fn rerun(result: &Summary, directory: &Path, requests: &Path, asked: &Asked) -> String {
    const MS: u64 = 1_000_000_000;
    let margin = MARGIN_MS.max(asked.latency().ps() / MS / 4);
    let from = (asked.arrival.ps() / MS).saturating_sub(margin + asked.before.ps().div_ceil(MS));
    let to = (asked.finish.ps() / MS).saturating_add(margin + 1);
    let form = requests.extension().unwrap_or_default().to_string_lossy();
    let options = format!("--requests={form} --timeline={from}ms..{to}ms");
    match again(result) {
        Some(command) => format!("{command} --out {} {options}", quoted(&directory.display().to_string())),
        None => options,
    }
}
