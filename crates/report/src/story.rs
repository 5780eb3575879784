//! The story of one request: where its time went, and behind whom it waited. It is put together from the files of a
//! result: the requests, and the timeline where there is one.

mod blame;
mod choice;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use floatgate_core::metrics::attribution::Part;
use floatgate_core::sim::time::Time;
use floatgate_core::workload::request::Operation;
use serde::Serialize;

use crate::columns::requests::{find_request, read_latencies, status_name};

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
    /// Where it stands among the requests of its operation.
    pub standing: Standing,
    /// What its time went into, parts of no length included; null where that was not told.
    pub parts: Option<Vec<PartStory>>,
    /// How many channels its operations used; null where that was not told.
    pub channels: Option<u32>,
    /// What the flash did for it, in the order of the grants; null without a timeline.
    pub operations: Option<Vec<OperationStory>>,
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Requests of its operation.
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

/// Tells the story of a request of the result in `directory`.
pub fn tell(directory: &Path, choice: &Choice) -> Result<Story> {
    let summary = directory.join("summary.json");
    if !summary.exists() {
        bail!("{} is no result: it has no summary.json; run with --out {0}", directory.display());
    }
    let text = std::fs::read_to_string(&summary).with_context(|| format!("cannot read {}", summary.display()))?;
    let told: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no result", summary.display()))?;
    let config_digest = told["config_digest"].as_str().unwrap_or_default();
    let requests = requests_of(directory)?;
    let number = choice.find(&requests)?;
    let mut story = None;
    find_request(&requests, number, &mut |record| {
        let us = |time: Time| time.as_us();
        let latency = record.latency();
        let share = |time: Time| if latency > Time::ZERO { time.as_us() / latency.as_us() } else { 0.0 };
        let part = |part: &Part, time: Time| PartStory { part: part.name(), us: time.as_us(), share: share(time) };
        let told = record.breakdown.map(|b| Part::ALL.iter().map(|p| part(p, b.of(*p))).collect());
        story = Some((
            record.operation,
            latency,
            Story {
                request: record.number,
                stream: record.stream.to_owned(),
                operation: record.operation.name(),
                lba: record.lba,
                sectors: record.sectors,
                status: status_name(record.status),
                arrival_us: us(record.arrival),
                start_us: us(record.start),
                finish_us: us(record.finish),
                latency_us: us(latency),
                standing: Standing { of: 0, faster: 0, slower: 0 },
                parts: told,
                channels: record.breakdown.map(|breakdown| breakdown.channels),
                operations: None,
            },
        ));
        Ok(())
    })?;
    let (operation, latency, mut story) =
        story.with_context(|| format!("{} has no request {number}, or it was not measured", requests.display()))?;
    story.standing = standing(&requests, operation, latency)?;
    let timeline = directory.join("timeline.json.gz");
    if timeline.exists() {
        story.operations = Some(blame::operations(&timeline, number, config_digest)?);
    }
    Ok(story)
}

fn standing(requests: &Path, operation: Operation, latency: Time) -> Result<Standing> {
    let mut standing = Standing { of: 0, faster: 0, slower: 0 };
    read_latencies(requests, &mut |_, of, other| {
        if of == operation {
            standing.of += 1;
            standing.faster += u64::from(other < latency);
            standing.slower += u64::from(other > latency);
        }
    })?;
    Ok(standing)
}
