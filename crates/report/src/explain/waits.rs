//! Waits of a request: which other operations held the die and the channel during each wait.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use floatgate_core::sim::time::Time;
use serde_json::Value;

use super::operations::{Own, Phase, Span, earlier, us};
use super::{
    Blocker, OperationExplanation, OrderExplanation, PhaseExplanation, Requested, TimelineExplanation, WaitExplanation,
    order,
};
use crate::digests::Checked;
use crate::timeline::{BUS, Covered, ps, read_timeline_in};

/// Returns the requests that an event serves.
fn requests_of(args: &Value) -> Vec<u64> {
    match args["requests"].as_array() {
        Some(all) => all.iter().filter_map(Value::as_u64).collect(),
        None => args["request"].as_u64().into_iter().collect(),
    }
}

/// Another operation, with the data that is relevant here.
#[derive(Clone, Debug, Default)]
struct Other {
    what: String,
    requests: Vec<u64>,
    channel: u64,
    lun: u64,
    /// Span from the start of the first phase to the end of the last.
    held: Span,
    on_bus: Vec<Span>,
}

/// Data about a request from the timeline.
pub(super) struct Witness {
    /// Flash operations for the request.
    pub(super) operations: Vec<OperationExplanation>,
    /// Older writes that the request waited for.
    pub(super) order: Option<OrderExplanation>,
    /// Span of the timeline, and whether it covers the whole request.
    pub(super) covered: TimelineExplanation,
}

/// Reads the data about a request from the timeline.
pub(super) fn witness(
    timeline: &Path,
    requested: &Requested,
    config_digest: &str,
    checked: &Checked,
) -> Result<Witness> {
    let request = requested.number;
    let (own, covered, is_there) = own_operations(timeline, requested)?;
    anyhow::ensure!(
        covered.config_digest == config_digest,
        "{} belongs to a run on another device; run the simulation again with --timeline",
        timeline.display()
    );
    checked.run(timeline, covered.run.as_deref())?;
    let others = others_of(timeline, &own, requested.before)?;
    let mut reported: Vec<OperationExplanation> =
        own.iter().map(|(op, own)| explain_operation(*op, own, request, &others)).collect();
    reported.sort_by(|a, b| a.granted_us.total_cmp(&b.granted_us).then(a.op.cmp(&b.op)));
    let order = order::older(timeline, requested, &own)?;
    let begins_early = covered.from == Time::ZERO || covered.from + requested.before <= requested.arrival;
    let covered = TimelineExplanation {
        from_us: covered.from.as_us(),
        to_us: covered.to.map(|to| to.as_us()),
        // A file that was truncated because of its size contains only requests that completed before.
        covers: is_there && begins_early && covered.to.is_none_or(|to| to > requested.finish),
    };
    Ok(Witness { operations: reported, order, covered })
}

/// Returns the operations of a request by number, the span of the timeline, and whether the timeline contains the
/// request.
fn own_operations(timeline: &Path, requested: &Requested) -> Result<(BTreeMap<u64, Own>, Covered, bool)> {
    let request = requested.number;
    let mut own: BTreeMap<u64, Own> = BTreeMap::new();
    let mut is_there = false;
    // A wait that has started. Its end is in the next line.
    let mut begun = None;
    let covered = read_timeline_in(timeline, (requested.arrival.ps(), requested.until.ps()), &mut |event| {
        let args = &event["args"];
        let op = args["op"].as_u64().unwrap_or(u64::MAX);
        match event["ph"].as_str() {
            Some("b") if args["request"] == request => begun = Some((event["id"].as_u64(), event.clone())),
            Some("e") if begun.as_ref().is_some_and(|(id, _)| event["id"].as_u64() == *id) => {
                let Some((_, start)) = begun.take() else { return Ok(()) };
                let wait = (ps(&start["ts"]), ps(&event["ts"]));
                let op = start["args"]["op"].as_u64().unwrap_or(u64::MAX);
                let what = start["name"].as_str().unwrap_or_default().trim_start_matches("wait: ").to_owned();
                let channel = start["pid"].as_u64().unwrap_or(1) - 1;
                let last_unit = (start["args"]["lpn"].as_u64().unwrap_or(u64::MAX), wait.0);
                let place = start["args"].clone();
                let first = Own { what, channel, place, requests: Vec::new(), wait, phases: Vec::new(), last_unit };
                // If a program contains several units of the request, the wait starts with the first of them.
                let entry = own.entry(op).or_insert(first);
                entry.wait.0 = entry.wait.0.min(wait.0);
                entry.last_unit = last_unit;
            }
            Some("X") if event["cat"] == "request" => is_there |= args["request"] == request,
            Some("X") => {
                if let Some(entry) = own.get_mut(&op) {
                    let start = ps(&event["ts"]);
                    entry.requests = requests_of(args);
                    entry.phases.push(Phase {
                        name: args["phase"].as_str().unwrap_or_default().to_owned(),
                        on_bus: event["tid"] == BUS,
                        span: (start, start + ps(&event["dur"])),
                    });
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    own.values_mut().for_each(|own| own.phases.sort_by_key(|phase| phase.span));
    Ok((own, covered, is_there))
}

/// Returns the operations of others on the same channels while the request's own operations waited.
fn others_of(timeline: &Path, own: &BTreeMap<u64, Own>, before: Time) -> Result<BTreeMap<u64, Other>> {
    let mut others: BTreeMap<u64, Other> = BTreeMap::new();
    let channels: BTreeSet<u64> = own.values().map(|own| own.channel).collect();
    let from = own.values().map(|own| own.wait.0).min().unwrap_or(0);
    let to = own.values().flat_map(|own| own.phases.iter().map(|phase| phase.span.1)).max().unwrap_or(0);
    // Last operation of each LUN. Operations that ended before the first wait are dropped.
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    read_timeline_in(timeline, (earlier(from, before), to), &mut |event| {
        let args = &event["args"];
        let channel = event["pid"].as_u64().unwrap_or(0).wrapping_sub(1);
        let (Some("X"), Some(op), true) = (event["ph"].as_str(), args["op"].as_u64(), channels.contains(&channel))
        else {
            return Ok(());
        };
        let start = ps(&event["ts"]);
        let span = (start, start + ps(&event["dur"]));
        let lun = args["lun"].as_u64().unwrap_or(u64::MAX);
        if let Some(before) = last.insert(lun, op).filter(|before| *before != op)
            && others.get(&before).is_some_and(|other| other.held.1 <= from)
        {
            others.remove(&before);
        }
        if span.0 >= to {
            return Ok(());
        }
        let other = others.entry(op).or_insert_with(|| Other {
            what: event["cat"].as_str().unwrap_or_default().to_owned(),
            requests: requests_of(args),
            channel,
            lun,
            held: span,
            on_bus: Vec::new(),
        });
        other.held = (other.held.0.min(span.0), other.held.1.max(span.1));
        if event["tid"] == BUS && span.1 > from {
            other.on_bus.push(span);
        }
        Ok(())
    })?;
    Ok(others)
}

fn explain_operation(op: u64, own: &Own, request: u64, others: &BTreeMap<u64, Other>) -> OperationExplanation {
    let lun = own.place["lun"].as_u64().unwrap_or(u64::MAX);
    let others: Vec<(&u64, &Other)> =
        others.iter().filter(|(number, other)| **number != op && other.channel == own.channel).collect();
    let mut waits = Vec::new();
    if own.wait.1 > own.wait.0 {
        waits.push(behind("die and channel", own.wait, Some(lun), &others));
    }
    let mut end = own.wait.1;
    for phase in &own.phases {
        if phase.span.0 > end {
            waits.push(behind("channel", (end, phase.span.0), None, &others));
        }
        end = end.max(phase.span.1);
    }
    let number = |key: &str| own.place[key].as_u64().unwrap_or(0);
    let phase = |phase: &Phase| {
        debug_assert!(phase.on_bus || phase.name == "cell");
        PhaseExplanation { phase: phase.name.clone(), from_us: us(phase.span.0), us: us(phase.span.1 - phase.span.0) }
    };
    OperationExplanation {
        op,
        what: own.what.clone(),
        channel: own.channel,
        plane: number("plane"),
        block: number("block"),
        page: number("page"),
        lpn: own.place["lpn"].as_u64(),
        any_die: false,
        shared_with: own.requests.iter().copied().filter(|other| *other != request).collect(),
        waited_from_us: us(own.wait.0),
        granted_us: us(own.wait.1),
        waits,
        phases: own.phases.iter().map(phase).collect(),
    }
}

/// Assigns a wait to the operations that held the die, if `lun` is given, and to those that held the channel while the
/// die was free.
fn behind(of: &'static str, wait: Span, lun: Option<u64>, others: &[(&u64, &Other)]) -> WaitExplanation {
    let on_die = |other: &Other| Some(other.lun) == lun;
    let die: Vec<Span> = others.iter().filter(|(_, other)| on_die(other)).map(|(_, other)| other.held).collect();
    let left = without(wait, die);
    let mut behind = Vec::new();
    let mut free: u64 = left.iter().map(|span| span.1 - span.0).sum();
    for (op, other) in others {
        let die = if on_die(other) { overlap(wait, other.held) } else { 0 };
        let mut channel = 0;
        for span in &other.on_bus {
            channel += left.iter().map(|part| overlap(*part, *span)).sum::<u64>();
        }
        free -= channel;
        if die + channel > 0 {
            let Other { what, requests, .. } = (*other).clone();
            behind.push(Blocker { op: **op, what, requests, die_us: us(die), channel_us: us(channel) });
        }
    }
    behind.sort_by(|a, b| (b.die_us + b.channel_us).total_cmp(&(a.die_us + a.channel_us)).then(a.op.cmp(&b.op)));
    WaitExplanation { of, us: us(wait.1 - wait.0), behind, unheld_us: us(free) }
}

fn overlap(a: Span, b: Span) -> u64 {
    a.1.min(b.1).saturating_sub(a.0.max(b.0))
}

/// Returns the parts of a span that no span of `others` covers.
fn without(span: Span, mut others: Vec<Span>) -> Vec<Span> {
    others.sort_unstable();
    let mut left = Vec::new();
    let mut from = span.0;
    for other in others {
        if other.0 > from {
            left.push((from, other.0.min(span.1)));
        }
        from = from.max(other.1);
        if from >= span.1 {
            break;
        }
    }
    if from < span.1 {
        left.push((from, span.1));
    }
    left.retain(|part| part.0 < part.1);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_subtracted() {
        assert_eq!(without((10, 20), vec![]), [(10, 20)]);
        assert_eq!(without((10, 20), vec![(14, 16), (5, 12)]), [(12, 14), (16, 20)]);
        assert_eq!(without((10, 20), vec![(0, 30)]), []);
        assert_eq!(without((10, 20), vec![(20, 30), (0, 10)]), [(10, 20)]);
        assert_eq!(overlap((10, 20), (15, 30)), 5);
        assert_eq!(overlap((10, 20), (20, 30)), 0);
    }

    #[test]
    fn waits_for_the_die_precede_waits_for_the_channel() {
        let other = |lun, held, on_bus: &[Span]| Other { lun, held, on_bus: on_bus.to_vec(), ..Other::default() };
        // The die is held from 0 to 6. The transfer of the other die, from 4 to 9, delays the operation from 6 on.
        let (first, second) = (other(1, (0, 6), &[(0, 2)]), other(2, (4, 30), &[(4, 9)]));
        let explanation = behind("die and channel", (1, 10), Some(1), &[(&7, &first), (&8, &second)]);
        let reported: Vec<_> = explanation.behind.iter().map(|b| (b.op, b.die_us, b.channel_us)).collect();
        assert_eq!(reported, [(7, 5e-6, 0.0), (8, 0.0, 3e-6)]);
        assert_eq!(explanation.unheld_us, 1e-6);
        // The data are in the register, so only the channel matters.
        let explanation = behind("channel", (1, 10), None, &[(&7, &first), (&8, &second)]);
        let reported: Vec<_> = explanation.behind.iter().map(|b| (b.op, b.die_us, b.channel_us)).collect();
        assert_eq!(reported, [(8, 0.0, 5e-6), (7, 0.0, 1e-6)]);
    }
}
