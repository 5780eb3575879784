//! Gangs of packages in a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Measurement;
use crate::nand::gauge::QueueSample;
use crate::sim::time::Time;

/// Gang of packages (`config.gang`), in the order of its channels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GangUse {
    /// Operations queued for the gang: reads, programs, erases and copy-backs, by mapping unit.
    pub operations: u64,
    /// Mean number of operations that waited for the gang, without those that have started; null if the measured time
    /// has no length.
    pub queue_length: Option<f64>,
    /// Maximum number of operations that waited.
    pub longest_queue: u32,
    /// Mean share of time in which the buses of the gang transferred commands or data; null as for `queue_length`.
    pub bus: Option<f64>,
    /// Mean share of time in which the cells of a die worked; null as for `queue_length`.
    pub cell: Option<f64>,
}

impl GangUse {
    /// Creates the values of all gangs.
    pub(super) fn all(measurement: &Measurement) -> Vec<GangUse> {
        let Measurement { config, channels, dies, queues, elapsed, .. } = *measurement;
        let time = elapsed.ps() as f64;
        let share = |worked: Time, of: usize, lanes: u32| {
            let whole = time * of as f64 * f64::from(lanes);
            (whole > 0.0).then(|| (worked.ps() as f64 / whole).min(1.0))
        };
        let (buses, per_gang) = (channels.len() / queues.len().max(1), dies.len() / queues.len().max(1));
        let gang = |(index, queue): (usize, &QueueSample)| {
            let channels = &channels[index * buses..][..buses];
            let dies = &dies[index * per_gang..][..per_gang];
            GangUse {
                operations: queue.operations,
                queue_length: (time > 0.0).then(|| queue.area as f64 / time),
                longest_queue: queue.longest,
                bus: share(sum(channels.iter().map(|bus| bus.data + bus.command)), buses, 1),
                cell: share(sum(dies.iter().map(|die| die.cell)), per_gang, config.lanes_per_die()),
            }
        };
        queues.iter().enumerate().map(gang).collect()
    }
}

fn sum(times: impl Iterator<Item = Time>) -> Time {
    times.fold(Time::ZERO, |sum, time| sum + time)
}
