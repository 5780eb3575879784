//! Explanation of one request: the parts of its latency, and the requests that delayed it.
//!
//! An explanation is built from the files of a result: the requests, and the timeline if there is one.

mod choice;
mod operations;
mod order;
mod parts;
mod waits;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::results::Part;
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::text::read_text;
use floatgate_core::sim::time::Time;
use floatgate_core::summary::Summary;

use crate::columns::requests::{find_request, read_latencies, status_name};
use crate::columns::run_in;
use crate::command::{again, quoted};
use crate::digests::Checked;

pub use choice::Choice;
use parts::Requested;
pub use parts::{
    Blocker, Explanation, OlderExplanation, OperationExplanation, OrderExplanation, PartExplanation, PhaseExplanation,
    Standing, TimelineExplanation, WaitExplanation,
};

/// Returns the file of a result that contains its requests.
fn requests_of(directory: &Path) -> Result<PathBuf> {
    let candidates = ["requests.parquet", "requests.csv"].map(|name| directory.join(name));
    match candidates.into_iter().find(|path| path.exists()) {
        Some(path) => Ok(path),
        None => bail!(
            "{} has no requests.parquet and no requests.csv; run with --requests=parquet --timeline",
            directory.display()
        ),
    }
}

/// Returns the run digest from a file of requests. CSV files do not contain one.
fn run_of(requests: &Path) -> Result<Option<String>> {
    if requests.extension().is_some_and(|extension| extension == "csv") { Ok(None) } else { run_in(requests) }
}

/// Explains a request of the result in `directory`.
pub fn explain(directory: &Path, choice: &Choice) -> Result<Explanation> {
    let summary = directory.join("summary.json");
    if !summary.exists() {
        bail!("{} is not a result: it has no summary.json; run with `--out {0}`", directory.display());
    }
    let text = read_text(&summary, Summary::LARGEST).with_context(|| format!("cannot read {}", summary.display()))?;
    let result = Summary::from_json(&text).map_err(|error| anyhow!("{}: {error}", summary.display()))?;
    let checked = Checked::of_summary(&summary, &text)?;
    let requests = requests_of(directory)?;
    checked.file(&requests)?;
    checked.run(&requests, run_of(&requests)?.as_deref())?;
    let number = choice.find(&requests)?;
    let Some((requested, mut explanation)) = of_request(&requests, number, &result.config)? else {
        let there = choice::There::of(&requests)?.said();
        bail!("no request {number}: {} {there}", requests.display())
    };
    let among = choice.among().unwrap_or(Some(requested.operation));
    explanation.note = checked.note();
    explanation.standing = standing(&requests, among, requested.latency())?;
    let timeline = directory.join("timeline.pftrace.gz");
    if timeline.exists() {
        checked.file(&timeline)?;
        let mut witness = waits::witness(&timeline, &requested, &result.config_digest, &checked)?;
        if !result.config.allocates_statically() {
            let writes = witness.operations.iter_mut().filter(|operation| operation.what == "host write");
            writes.for_each(|write| write.any_die = true);
        }
        (explanation.operations, explanation.order, explanation.timeline) =
            (Some(witness.operations), witness.order, Some(witness.covered));
    }
    if explanation.timeline.as_ref().is_none_or(|timeline| !timeline.covers) {
        explanation.rerun = Some(rerun(&result, directory, &requests, &requested));
    }
    Ok(explanation)
}

/// Reads the data of a request from the file of requests.
fn of_request(requests: &Path, number: u64, config: &DeviceConfig) -> Result<Option<(Requested, Explanation)>> {
    let mut found = None;
    find_request(requests, number, &mut |record| {
        let us = |time: Time| time.as_us();
        let latency = record.latency();
        let share = |time: Time| if latency > Time::ZERO { time.as_us() / latency.as_us() } else { 0.0 };
        let part =
            |part: &Part, time: Time| PartExplanation { part: part.name(), us: time.as_us(), share: share(time) };
        let reported = record.breakdown.map(|b| Part::ALL.iter().map(|p| part(p, b.of(*p))).collect());
        let spent = |part: Part| record.breakdown.map_or(Time::ZERO, |breakdown| breakdown.of(part));
        let lpn = |sector: u64| sector / u64::from(config.sectors_per_unit());
        let requested = Requested {
            number,
            operation: record.operation,
            arrival: record.arrival,
            finish: record.finish,
            until: if record.operation == Operation::Read || config.active_buffer().is_none() {
                record.finish
            } else {
                Time::NEVER
            },
            host_queue: spent(Part::HostQueue),
            order: spent(Part::Order),
            lpns: lpn(record.lba)..=lpn(record.lba.saturating_add(record.sectors.saturating_sub(1))),
            before: config.nand.erase.time() + config.nand.erase.time(),
        };
        let explanation = Explanation {
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
            parts: reported,
            channels: record.breakdown.map(|breakdown| breakdown.channels),
            order: None,
            operations: None,
            timeline: None,
            rerun: None,
            merges: config.merges_blocks(),
            note: None,
        };
        found = Some((requested, explanation));
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

/// Minimum time before and after the request that the timeline of a rerun covers, in milliseconds. The time for earlier
/// operations that may delay the request is added.
const MARGIN_MS: u64 = 10;

/// Returns the command that produces the same result with a timeline that covers the request. If the command of the run
/// is unknown, returns only the options.
fn rerun(result: &Summary, directory: &Path, requests: &Path, requested: &Requested) -> String {
    const MS: u64 = 1_000_000_000;
    let margin = MARGIN_MS.max(requested.latency().ps() / MS / 4);
    let from = (requested.arrival.ps() / MS).saturating_sub(margin + requested.before.ps().div_ceil(MS));
    let to = (requested.finish.ps() / MS).saturating_add(margin + 1);
    let form = requests.extension().unwrap_or_default().to_string_lossy();
    let options = format!("--requests={form} --timeline={from}ms..{to}ms");
    match again(result) {
        Some(command) => format!("{command} --out {} {options}", quoted(&directory.display().to_string())),
        None => options,
    }
}
