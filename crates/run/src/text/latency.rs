//! Text of a result: the latency breakdown and the bottleneck.

use floatgate_core::results::Part;
use floatgate_core::summary::{Attribution, Bottleneck, Bound, Operations, Parts, Requests};
use floatgate_report::number::percent;
use floatgate_report::words;

/// Shares below this are added up as "other".
const SMALL: f64 = 0.02;

/// Smallest sum of other shares that is shown.
const MIN_REST: f64 = 0.005;

/// Parts of at least this share are shown among the main values.
const MAIN: f64 = 0.05;

/// Returns two lines for each operation: the breakdown of its mean latency, and that of requests near p99.
/// `merges` is true if the mapping scheme merges blocks.
pub fn attribution(requests: &Requests, merges: bool) -> Vec<String> {
    let of_operation = |(name, of): (String, &Attribution)| {
        [format!("{name}: {}", shares(&of.mean, merges, SMALL)), format!("at p99: {}", shares(&of.p99, merges, SMALL))]
    };
    attributed(requests).flat_map(of_operation).collect()
}

/// Returns a line for each operation: the main parts of its mean latency.
/// `merges` is true if the mapping scheme merges blocks.
pub fn main_parts(requests: &Requests, merges: bool) -> Vec<String> {
    attributed(requests).map(|(name, of)| format!("{name}: {}", shares(&of.mean, merges, MAIN))).collect()
}

/// Returns the operations that took time, in the plural, with their breakdowns.
fn attributed(requests: &Requests) -> impl Iterator<Item = (String, &Attribution)> {
    let there = requests.by_operation().into_iter().filter(|(_, of)| of.count > 0);
    there.filter_map(|(name, of): (_, &Operations)| {
        let attribution = of.attribution.as_ref().filter(|attribution| attribution.mean.latency_us > 0.0)?;
        let plural = if name.ends_with('e') || name == "read" || name == "trim" { "s" } else { "" };
        Some((format!("{name}{plural}"), attribution))
    })
}

/// Formats the parts in percent, the largest first. Those below `small_from` are added up.
fn shares(parts: &Parts, merges: bool, small_from: f64) -> String {
    let share = |us: f64| us / parts.latency_us.max(f64::MIN_POSITIVE);
    let mut by_size: Vec<(Part, f64)> =
        Part::ALL.into_iter().zip(parts.by_name()).map(|(part, (_, us))| (part, share(us))).collect();
    by_size.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (large, small): (Vec<_>, Vec<_>) = by_size.into_iter().partition(|(_, share)| *share >= small_from);
    let rest: f64 = small.iter().map(|(_, share)| share).sum();
    let mut texts: Vec<String> = large
        .into_iter()
        .map(|(part, share)| format!("{} {}", words::part_in_short(part, merges), percent(Some(share))))
        .collect();
    if rest >= MIN_REST {
        texts.push(format!("other {}", percent(Some(rest))));
    }
    texts.join(", ")
}

/// Describes the bottleneck of the run. Returns `None` if the result has none.
/// `merges` is true if the mapping scheme merges blocks.
pub fn bottleneck(of: &Bottleneck, merges: bool) -> Option<String> {
    let nearest = of.resources.first()?;
    let (name, reached) = (words::resource(&nearest.resource), percent(Some(nearest.reached)));
    let busy = format!("{name} at {reached} of their bound{}", bound(nearest));
    Some(match of.limited_by.as_deref()? {
        "load" => format!("the load: no resource is busy for half of the time; the closest are the {busy}"),
        "gc" => format!("{}, {} of the work of the {busy}", words::reclaim(merges), percent(Some(nearest.gc))),
        _ => format!("the {busy}"),
    })
}

fn bound(bound: &Bound) -> String {
    bound.bound_iops.map(|iops| format!(", {} requests/s", super::rate(iops))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(us: [(&str, f64); 3]) -> Parts {
        let of = |name: &str| us.iter().find(|(part, _)| *part == name).map_or(0.0, |(_, us)| *us);
        Parts {
            requests: 3,
            latency_us: us.iter().map(|(_, us)| us).sum(),
            host_queue_us: of("host_queue"),
            link_us: of("link"),
            firmware_us: of("firmware"),
            throttle_us: of("throttle"),
            buffer_us: of("buffer"),
            order_us: of("order"),
            die_us: of("die"),
            channel_us: of("channel"),
            gc_us: of("gc"),
            rmw_us: of("rmw"),
            bus_us: of("bus"),
            map_fetch_us: of("map_fetch"),
            fill_us: of("fill"),
            cell_us: of("cell"),
            ecc_us: of("ecc"),
            rebuild_us: of("rebuild"),
        }
    }

    #[test]
    fn shares_are_sorted_by_size_and_small_ones_are_added_up() {
        let text = shares(&parts([("bus", 10.0), ("cell", 89.0), ("die", 1.0)]), false, SMALL);
        assert_eq!(text, "the flash cells' work 89.0 %, the request's own transfers 10.0 %, other 1.0 %");
        let main = shares(&parts([("bus", 4.0), ("cell", 95.0), ("die", 1.0)]), false, MAIN);
        assert_eq!(main, "the flash cells' work 95.0 %, other 5.0 %");
    }

    #[test]
    fn the_bottleneck_is_described_in_words() {
        let bound = Bound {
            resource: "dies".to_owned(),
            units: 4,
            demand_s: 1.0,
            gc: 0.75,
            bound_iops: Some(12_345.0),
            reached: 0.975,
        };
        let of = |limited_by: &str| {
            bottleneck(&Bottleneck { limited_by: Some(limited_by.to_owned()), resources: vec![bound.clone()] }, false)
        };
        assert_eq!(of("dies").unwrap(), "the dies (LUNs) at 97.5 % of their bound, 12,345 requests/s");
        assert!(of("gc").unwrap().starts_with("garbage collection, 75.0 % of the work of the dies (LUNs)"));
        assert!(of("load").unwrap().starts_with("the load"));
        assert_eq!(bottleneck(&Bottleneck::default(), true), None);
    }
}
