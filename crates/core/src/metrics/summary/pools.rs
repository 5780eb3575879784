//! Allocation pools in a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Measurement;
use super::distributions::EACH;
use crate::metrics::counters::PoolUnits;
use crate::sim::time::Time;

/// Load of the allocation pools (`config.allocation.dynamic.scope`), in the order of their planes. Empty for a device
/// with more than 4096 pools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolsUse {
    /// Load of the busiest pool, relative to the mean of all pools.
    pub imbalance: Imbalance,
    /// Mapping units programmed for host writes, and for the journal and the checkpoint, by pool.
    pub units_written: Vec<u64>,
    /// Mapping units programmed for copies, by pool: garbage collection, wear leveling, failed programs. Both lists and
    /// the translation pages add up to `flash.units.programmed`.
    pub units_moved: Vec<u64>,
    /// Mean share of time in which the cells of a die worked, by pool. Empty if a die has several pools, or the
    /// measured time no length.
    pub cell: Vec<f64>,
}

/// Load of the busiest pool, divided by the mean: 1 if all are equal, at most the number of pools. Null if the mean is
/// 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imbalance {
    /// Imbalance of `units_written`.
    pub units_written: Option<f64>,
    /// Imbalance of `units_written` and `units_moved` together.
    pub units_programmed: Option<f64>,
    /// Imbalance of `cell`; null if that is not known.
    pub cell: Option<f64>,
}

impl PoolsUse {
    /// Creates the values of all pools, or `None` if there are not several pools.
    pub(super) fn new(measurement: &Measurement) -> Option<PoolsUse> {
        let Measurement { config, dies, pools, elapsed, .. } = *measurement;
        let dies_per_pool = dies.len() / pools.len().max(1);
        let mut cell = Vec::new();
        if !pools.is_empty() && dies.len() == dies_per_pool * pools.len() && elapsed > Time::ZERO {
            let time = elapsed.ps() as f64 * dies_per_pool as f64 * f64::from(config.lanes_per_die());
            let worked =
                dies.chunks(dies_per_pool.max(1)).map(|dies| dies.iter().map(|die| die.cell.ps() as f64).sum());
            cell.extend(worked.map(|worked: f64| (worked / time).min(1.0)));
        }
        let column = |units: fn(&PoolUnits) -> u64| pools.iter().map(units).collect::<Vec<u64>>();
        let (units_written, units_moved) = (column(|units| units.written), column(|units| units.moved));
        let imbalance_of = |units: fn(&PoolUnits) -> u64| imbalance(pools.iter().map(|pool| units(pool) as f64));
        let imbalance = Imbalance {
            units_written: imbalance_of(|units| units.written),
            units_programmed: imbalance_of(|units| units.written + units.moved),
            cell: imbalance(cell.iter().copied()),
        };
        match pools.len() {
            0 => None,
            1..=EACH => Some(PoolsUse { imbalance, units_written, units_moved, cell }),
            _ => Some(PoolsUse { imbalance, ..PoolsUse::default() }),
        }
    }
}

/// Returns the maximum of the values divided by their mean, or `None` if the mean is 0.
fn imbalance(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut max) = (0u32, 0.0, 0.0f64);
    for value in values {
        (count, sum, max) = (count + 1, sum + value, max.max(value));
    }
    (sum > 0.0).then(|| max * f64::from(count) / sum)
}

#[cfg(test)]
mod tests {
    use super::imbalance;

    #[test]
    fn imbalance_is_the_maximum_over_the_mean() {
        assert_eq!(imbalance([].into_iter()), None);
        assert_eq!(imbalance([0.0, 0.0].into_iter()), None);
        assert_eq!(imbalance([3.0, 3.0, 3.0].into_iter()), Some(1.0));
        assert_eq!(imbalance([6.0, 0.0, 3.0].into_iter()), Some(2.0));
        assert_eq!(imbalance([0.0, 0.0, 0.0, 5.0].into_iter()), Some(4.0));
    }
}
