//! Distributions in a summary: each has few enough numbers to be stored, and enough to be drawn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::latency::Latency;
use crate::metrics::profile::Profile;
use crate::metrics::results::{OperationResults, Results};
use crate::sim::request::Operation;

/// Distributions of requests and of their latencies. Distributions that were not collected are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distributions {
    /// Latencies of each operation that occurred, and of all together if several did.
    pub latency: Vec<LatencyCurve>,
    /// Sizes, for each operation that occurred.
    pub size: Option<Vec<SizeCounts>>,
    /// Times between consecutive arrivals.
    pub inter_arrival: Option<IntervalCounts>,
    /// Numbers of channels used, for each operation that occurred (Yoo et al. 2013, Figure 11).
    pub channels: Option<Vec<ChannelCounts>>,
}

/// Distribution of a latency: points of its curve, in ascending order. Points are 0.5% of the requests apart, and in
/// the last 5% there are 24 per power of ten. If more requests than that took the same time, the point of the next
/// shorter latency is included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyCurve {
    /// Operation, or `all`.
    pub operation: String,
    /// Requests of this operation.
    pub requests: u64,
    /// Latencies of the points, within 0.1% or 1 ns, whichever is more. The last one is the maximum, exact.
    pub us: Vec<f64>,
    /// Requests that took longer than each point, exact. The last one is 0.
    pub longer: Vec<u64>,
}

/// Requests by size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCounts {
    /// Operation.
    pub operation: String,
    /// Maximum size of each class: a power of two.
    pub up_to_bytes: Vec<u64>,
    /// Requests in each class.
    pub requests: Vec<u64>,
}

/// Requests by the time since the previous arrival, over all streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalCounts {
    /// Minimum time of each class in nanoseconds: 0, for less than 1 ns, or a power of two.
    pub from_ns: Vec<u64>,
    /// Requests in each class.
    pub requests: Vec<u64>,
}

/// Requests by the number of channels that their flash operations used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelCounts {
    /// Operation.
    pub operation: String,
    /// Requests that used 0, 1, 2, ... channels. The number for 256 includes more.
    pub requests: Vec<u64>,
}

/// Utilization of each channel and each die, with four decimals. Empty for a device with more than 4096 dies or
/// channels, and if nothing was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Each {
    /// Share of data transfers, by channel.
    pub channel_data: Vec<f64>,
    /// Share of commands, addresses and switches, by channel.
    pub channel_command: Vec<f64>,
    /// Share of time with busy cells, by die, in the order of channels.
    pub die_cell: Vec<f64>,
    /// Share of time in which an operation held the die without busy cells, by die.
    pub die_register_held: Vec<f64>,
}

/// Blocks by the number of their erases since the device was new, in at most 64 classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WearHistogram {
    /// Smallest erase count of a block, at which the first class starts.
    pub from: u64,
    /// Consecutive erase counts in a class.
    pub width: u64,
    /// Blocks in each class.
    pub blocks: Vec<u64>,
}

/// Maximum number of channels, dies and pools that are listed one by one.
pub(super) const EACH: usize = 4096;

/// Maximum number of classes of a wear histogram.
const WEAR_CLASSES: u64 = 64;

impl Distributions {
    pub(super) fn new(results: &Results, profile: Option<&Profile>) -> Distributions {
        let there: Vec<(Operation, OperationResults)> = Operation::ALL.map(|o| (o, results.of(o))).into();
        let there: Vec<_> = there.into_iter().filter(|(_, results)| results.count() > 0).collect();
        let mut latency: Vec<LatencyCurve> =
            there.iter().map(|(operation, of)| LatencyCurve::new(operation.name(), &of.latency)).collect();
        if there.len() > 1 {
            latency.push(LatencyCurve::new("all", &results.all().latency));
        }
        let operations = || there.iter().map(|(operation, _)| *operation);
        let channels = profile.and_then(|p| operations().map(|o| ChannelCounts::new(p, o)).collect());
        Distributions {
            latency,
            size: profile.map(|profile| operations().map(|o| SizeCounts::new(profile, o)).collect()),
            inter_arrival: profile.map(IntervalCounts::new),
            channels,
        }
    }
}

impl LatencyCurve {
    fn new(operation: &str, latency: &Latency) -> LatencyCurve {
        let (us, longer) = latency.curve().into_iter().unzip();
        LatencyCurve { operation: operation.to_owned(), requests: latency.count(), us, longer }
    }
}

impl SizeCounts {
    fn new(profile: &Profile, operation: Operation) -> SizeCounts {
        let (up_to_bytes, requests) = profile.sizes(operation).into_iter().unzip();
        SizeCounts { operation: operation.name().to_owned(), up_to_bytes, requests }
    }
}

impl IntervalCounts {
    fn new(profile: &Profile) -> IntervalCounts {
        let (from_ns, requests) = profile.intervals().into_iter().unzip();
        IntervalCounts { from_ns, requests }
    }
}

impl ChannelCounts {
    fn new(profile: &Profile, operation: Operation) -> Option<ChannelCounts> {
        Some(ChannelCounts { operation: operation.name().to_owned(), requests: profile.channels(operation)? })
    }
}

impl Each {
    /// Creates the lists from the shares of each channel and die: two kinds of busy time, and idle time.
    pub(super) fn new(channels: &[[f64; 3]], dies: &[[f64; 3]]) -> Each {
        if dies.len().max(channels.len()) > EACH {
            return Each::default();
        }
        let column =
            |shares: &[[f64; 3]], part: usize| shares.iter().map(|shares| rounded(shares[part])).collect::<Vec<f64>>();
        Each {
            channel_data: column(channels, 0),
            channel_command: column(channels, 1),
            die_cell: column(dies, 0),
            die_register_held: column(dies, 1),
        }
    }
}

/// Returns a share with four decimals.
pub(super) fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

impl WearHistogram {
    pub(super) fn new(erases: &[u32]) -> WearHistogram {
        let from = erases.iter().min().map_or(0, |least| u64::from(*least));
        let span = erases.iter().max().map_or(0, |most| u64::from(*most) - from + 1);
        let width = span.div_ceil(WEAR_CLASSES).max(1);
        let mut blocks = vec![0; span.div_ceil(width) as usize];
        erases.iter().for_each(|count| blocks[((u64::from(*count) - from) / width) as usize] += 1);
        WearHistogram { from, width, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_has_few_classes() {
        let histogram = |erases: &[u32]| {
            let WearHistogram { from, width, blocks } = WearHistogram::new(erases);
            (from, width, blocks)
        };
        assert_eq!(histogram(&[]), (0, 1, vec![]));
        assert_eq!(histogram(&[5, 5]), (5, 1, vec![2]));
        assert_eq!(histogram(&[3, 5, 5]), (3, 1, vec![1, 0, 2]));
        // 65 erase counts: two in each class, and one in the last.
        let (from, width, blocks) = histogram(&(0..=64).collect::<Vec<_>>());
        assert_eq!((from, width, blocks.len(), blocks[0], blocks[32]), (0, 2, 33, 2, 1));
        let (_, width, blocks) = histogram(&[0, u32::MAX]);
        assert_eq!((width, blocks.len()), (1 << 26, 64));
    }

    #[test]
    fn shares_of_each_are_rounded_and_limited() {
        let each = Each::new(&[[0.25, 1.0 / 3.0, 0.0]], &[[1.0, 0.0, 0.0]; 2]);
        assert_eq!((each.channel_command, each.die_cell), (vec![0.3333], vec![1.0, 1.0]));
        assert_eq!(Each::new(&[[0.0; 3]], &[[0.0; 3]; EACH + 1]), Each::default());
    }
}
