//! Distributions in a result: each of few enough numbers to be kept with it, and enough to be drawn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::latency::Latency;
use crate::metrics::profile::Profile;
use crate::metrics::results::{OperationResults, Results};
use crate::sim::request::Operation;

/// How requests and their latencies are distributed. What was not collected is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distributions {
    /// Latencies, for each operation that there was, and for all where there were several.
    pub latency: Vec<LatencyCurve>,
    /// Sizes, for each operation that there was.
    pub size: Option<Vec<SizeCounts>>,
    /// Times from one request to the next.
    pub inter_arrival: Option<IntervalCounts>,
    /// Channels used, for each operation that there was (Yoo et al. 2013, Figure 11).
    pub channels: Option<Vec<ChannelCounts>>,
}

/// The distribution of a latency: points of its curve, in ascending order, at most 266. They lie 2 % of the requests
/// apart, and in the last 2 % twelve to each power of ten; less where many requests took the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyCurve {
    /// The operation, or `all`.
    pub operation: String,
    /// Requests.
    pub requests: u64,
    /// Latency in microseconds, within 0.1 % or 1 ns, whichever is more. The last is the greatest, exact.
    pub us: Vec<f64>,
    /// Requests that took longer, exact; the last is 0.
    pub longer: Vec<u64>,
}

/// Requests by size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCounts {
    /// The operation.
    pub operation: String,
    /// The greatest size of each class, in bytes: a power of two, above which the next class begins.
    pub up_to_bytes: Vec<u64>,
    /// Requests of the class.
    pub requests: Vec<u64>,
}

/// Requests by the time since the one before them arrived, over all streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalCounts {
    /// The least time of each class, in nanoseconds: 0, for less than 1 ns, or a power of two. It ends below that of
    /// the next.
    pub from_ns: Vec<u64>,
    /// Requests of the class.
    pub requests: Vec<u64>,
}

/// Requests by the number of channels that their flash operations used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelCounts {
    /// The operation.
    pub operation: String,
    /// Requests that used none, one, two channels, and so on; the count of 256 stands for more, too.
    pub requests: Vec<u64>,
}

/// How busy each channel and each die was, as shares of the measured time, to four decimals. Empty for a device of more
/// than 4096 dies, and where there is no such time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Each {
    /// Carrying data, by channel.
    pub channel_data: Vec<f64>,
    /// Carrying commands and addresses, or turning, by channel.
    pub channel_command: Vec<f64>,
    /// The cells work, by die; those of the first channel come first.
    pub die_cell: Vec<f64>,
    /// Held by an operation whose cells do not work, by die.
    pub die_register_held: Vec<f64>,
}

/// Blocks by their erases since the device's birth, in at most 64 classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WearHistogram {
    /// Erases of the block with the fewest; here the first class begins.
    pub from: u64,
    /// Numbers of erases in a class.
    pub width: u64,
    /// Blocks of each class.
    pub blocks: Vec<u64>,
}

/// The most channels and dies that are told one by one.
const EACH: usize = 4096;

/// The most classes of a histogram of wear.
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
    /// From the shares of each: two ways to be busy, and idleness.
    pub(super) fn new(channels: &[[f64; 3]], dies: &[[f64; 3]]) -> Each {
        if dies.len().max(channels.len()) > EACH {
            return Each::default();
        }
        let column = |shares: &[[f64; 3]], part: usize| {
            shares.iter().map(|shares| (shares[part] * 1e4).round() / 1e4).collect::<Vec<f64>>()
        };
        Each {
            channel_data: column(channels, 0),
            channel_command: column(channels, 1),
            die_cell: column(dies, 0),
            die_register_held: column(dies, 1),
        }
    }
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
        // 65 numbers of erases: two to a class, the last with one.
        let (from, width, blocks) = histogram(&(0..=64).collect::<Vec<_>>());
        assert_eq!((from, width, blocks.len(), blocks[0], blocks[32]), (0, 2, 33, 2, 1));
        let (_, width, blocks) = histogram(&[0, u32::MAX]);
        assert_eq!((width, blocks.len()), (1 << 26, 64));
    }

    #[test]
    fn shares_of_each_are_short_and_few() {
        let each = Each::new(&[[0.25, 1.0 / 3.0, 0.0]], &[[1.0, 0.0, 0.0]; 2]);
        assert_eq!((each.channel_command, each.die_cell), (vec![0.3333], vec![1.0, 1.0]));
        assert_eq!(Each::new(&[[0.0; 3]], &[[0.0; 3]; EACH + 1]), Each::default());
    }
}
