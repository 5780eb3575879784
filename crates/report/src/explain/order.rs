//! Waits of a request for older writes of the same mapping unit.
//!
//! Writes of a unit are programmed one after another: each is queued at the time at which the one before it ends.
//! Therefore the chain of delaying operations is found by their times, backwards from the end of the wait: the
//! operation on the unit that ended then, then the one that ended when that operation was queued, and so on. A read may
//! wait for an older write whose data are not complete yet (docs/model/attribution.md, `order`).

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;

use super::operations::{Own, earlier, later, us};
use super::{OlderExplanation, OrderExplanation, Requested};
use crate::timeline::{ps, read_timeline_in};

/// An operation for a mapping unit.
#[derive(Clone, Debug)]
struct Older {
    op: u64,
    what: String,
    request: u64,
    lpn: u64,
    /// Time at which the operation was queued, in picoseconds.
    from: u64,
    /// End of its last phase, or 0 if none is known yet.
    end: u64,
}

/// Returns the operations that the request waited for in its part `order`, or `None` if that part is 0.
pub(super) fn older(
    timeline: &Path,
    requested: &Requested,
    own: &BTreeMap<u64, Own>,
) -> Result<Option<OrderExplanation>> {
    let wait = requested.order.ps();
    if wait == 0 {
        return Ok(None);
    }
    let unreported = OrderExplanation { us: us(wait), lpn: None, behind: Vec::new(), unexplained_us: us(wait) };
    if requested.operation == Operation::Read {
        // Finds the unit that the read waited for last: its operation ended after the read was received and before it
        // completed.
        let entered = requested.arrival.ps() + requested.host_queue.ps();
        let span = (entered, requested.finish.ps());
        let all = of_units(timeline, &|lpn| requested.lpns.contains(&lpn), span, requested.before)?;
        let fits = |older: &&Older| older.end <= requested.finish.ps() && older.end >= entered + wait;
        let last = all.iter().filter(fits).max_by_key(|older| older.end);
        return Ok(Some(last.map_or(unreported, |last| chain(&all, last.lpn, last.end, wait))));
    }
    // The write whose program ended last determines the wait.
    let last = own.values().filter(|own| own.what == "host write").max_by_key(|own| own.end());
    let Some((lpn, until)) = last.map(|own| own.last_unit) else { return Ok(Some(unreported)) };
    let all = of_units(timeline, &|other| other == lpn, (until.saturating_sub(wait), until), requested.before)?;
    Ok(Some(chain(&all, lpn, until, wait)))
}

/// Returns operations on the wanted mapping units that ended after `span.0` and were queued no later than `span.1`.
fn of_units(timeline: &Path, wanted: &dyn Fn(u64) -> bool, span: (u64, u64), before: Time) -> Result<Vec<Older>> {
    let mut all: Vec<Older> = Vec::new();
    read_timeline_in(timeline, (earlier(span.0, before), later(span.1, before)), &mut |event| {
        let args = &event["args"];
        let Some(op) = args["op"].as_u64() else { return Ok(()) };
        match event["ph"].as_str() {
            Some("b") => {
                let what = event["name"].as_str().unwrap_or_default().trim_start_matches("wait: ");
                let from = ps(&event["ts"]);
                let request = args["request"].as_u64();
                if let (Some(lpn), Some(request), "host write" | "rmw read") = (args["lpn"].as_u64(), request, what)
                    && wanted(lpn)
                    && from <= span.1
                {
                    // Operations of a unit follow one another. Drop those that ended too early.
                    all.retain(|older| older.end == 0 || older.end > span.0);
                    all.push(Older { op, what: what.to_owned(), request, lpn, from, end: 0 });
                }
            }
            Some("X") => {
                let end = ps(&event["ts"]) + ps(&event["dur"]);
                all.iter_mut().filter(|older| older.op == op).for_each(|older| older.end = older.end.max(end));
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(all)
}

/// Divides a wait on a unit that ended at `until` among the operations that caused it, the last one first.
fn chain(all: &[Older], lpn: u64, until: u64, wait: u64) -> OrderExplanation {
    let from = until.saturating_sub(wait);
    let mut at = until;
    let mut behind = Vec::new();
    while at > from
        && let Some(older) = all.iter().find(|older| older.lpn == lpn && older.end == at && older.from < at)
    {
        let since = older.from.max(from);
        behind.push(OlderExplanation {
            op: older.op,
            what: older.what.clone(),
            request: older.request,
            until_us: us(at),
            us: us(at - since),
        });
        at = since;
    }
    OrderExplanation { us: us(wait), lpn: Some(lpn), behind, unexplained_us: us(at - from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_divided_backwards() {
        let older = |op, lpn, from, end| Older { op, what: "host write".to_owned(), request: op + 100, lpn, from, end };
        // The request arrived at 30. The first write ended at 50, and the second had waited for it.
        let all = [older(1, 7, 10, 50), older(2, 8, 10, 90), older(3, 7, 50, 90)];
        let reported = chain(&all, 7, 90, 60);
        let behind: Vec<_> = reported.behind.iter().map(|one| (one.op, one.request, one.us, one.until_us)).collect();
        assert_eq!(behind, [(3, 103, 40e-6, 90e-6), (1, 101, 20e-6, 50e-6)]);
        assert_eq!((reported.us, reported.unexplained_us, reported.lpn), (60e-6, 0.0, Some(7)));
        // A timeline that starts later lacks the first write.
        let reported = chain(&all[1..], 7, 90, 60);
        assert_eq!((reported.behind.len(), reported.unexplained_us), (1, 20e-6));
    }
}
