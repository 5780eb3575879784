//! Pace at which the requests of a job are issued.

use super::SECTOR;
use super::arrival::Arrivals;
use super::directions::{READ, WRITE, directions};
use super::options::{Kind, Options};
use super::size::Sizes;
use crate::sim::rng::Rng;
use crate::sim::source::Pace;
use crate::sim::time::Time;

/// Creates the arrivals of an open-loop job, by direction.
pub(super) fn arrivals(
    options: &Options,
    kind: Kind,
    reads: u32,
    sizes: &[Sizes; 3],
    rng: impl Fn(&str) -> Rng,
) -> Result<Option<Box<[Option<Arrivals>; 3]>>, String> {
    let (key, rates) = match (options.rate, options.rate_iops) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err("`rate` and `rate_iops` exclude each other; leave one out".to_owned()),
        (Some(rates), None) => ("rate", rates),
        (None, Some(rates)) => ("rate_iops", rates),
    };
    let process = options.rate_process.unwrap_or_default();
    let active: &[usize] = match (kind, reads) {
        (Kind::Mixed, 100) => &[READ],
        (Kind::Mixed, 0) => &[WRITE],
        _ => directions(kind),
    };
    let mut arrivals = [None, None, None];
    for (index, &direction) in active.iter().enumerate() {
        let names = ["reads", "writes", "trims"];
        let rate = rates[direction].ok_or_else(|| {
            let name = names[direction];
            format!("`{key}` says nothing of the {name} of rw; without a rate, give the {name} a job of their own")
        })?;
        let rng = rng(if index == 0 { "arrival" } else { "arrival/write" });
        let smallest = u64::from(sizes[direction].min()) * SECTOR;
        arrivals[direction] = Some(match key {
            "rate" => Arrivals::by_bytes(process, rate, smallest, rng),
            _ => Arrivals::new(process, rate, rng),
        });
    }
    Ok(Some(Box::new(arrivals)))
}

/// Returns the pace of a job: an open loop if there is a rate, otherwise a closed loop.
pub(super) fn pace(options: &Options) -> Result<Pace, String> {
    let think = Time(options.thinktime.unwrap_or(0));
    if options.rate.is_some() || options.rate_iops.is_some() {
        if think > Time::ZERO {
            return Err("`thinktime` waits for completions, which a rate does not; leave one out".to_owned());
        }
        return Ok(Pace::Timed { depth: options.iodepth });
    }
    let depth = options.iodepth.unwrap_or(1);
    if think == Time::ZERO {
        return Ok(Pace::Depth { depth, think });
    }
    let span = options.thinktime_iotime.map_or(Time::NEVER, Time);
    let requests = options.thinktime_blocks.unwrap_or(if span == Time::NEVER { 1 } else { u32::MAX });
    Ok(Pace::Batch { depth, requests, span, think })
}
