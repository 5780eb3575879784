//! Result of a lifetime: how much the host could write, and how blocks wore out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Lived, Point};
use crate::device::Device;
use crate::metrics::counters::CopyCause;
use crate::metrics::summary::{Named, Wear};

/// Result of one lifetime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lifetime {
    /// Device with its digest.
    pub device: Named,
    /// Workload with the digest of its first repetition, or of the part of it that was served.
    pub workload: Named,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Event that ends the lifetime.
    pub until: String,
    /// True if the event happened. Otherwise, the device was worn out before that, or the lifetime was interrupted.
    pub complete: bool,
    /// True if the good blocks can no longer hold all data of the host.
    pub worn_out: bool,
    /// Number of times that the workload was repeated, including the last, which may be cut off.
    pub repetitions: u32,
    /// Data that the host wrote.
    pub written: Written,
    /// Number of blocks that were erased.
    pub blocks_erased: u64,
    /// Mapping units programmed, including padding, per unit that the host wrote; null if it wrote none.
    pub write_amplification: Option<f64>,
    /// Mapping units moved by garbage collection.
    pub units_moved_gc: u64,
    /// Mapping units moved by wear leveling.
    pub units_moved_wear: u64,
    /// Number of cold blocks whose data wear leveling moved into worn blocks.
    pub migrations: u64,
    /// Expiry of blocks; null if the device has no table `faults`.
    pub expiry: Option<Expiry>,
    /// Erases of blocks.
    pub wear: Wear,
    /// Remaining life of blocks; null if they endure any number of erases.
    pub remaining_life: Option<RemainingLife>,
    /// Capacity over time.
    pub capacity: Capacity,
    /// Cost of the simulation.
    pub cost: Cost,
}

/// Data that the host wrote.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// Bytes in the requests.
    pub bytes: u64,
    /// Mapping units, in multiples of the capacity.
    pub drive_writes: f64,
}

/// Expiry of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expiry {
    /// Number of blocks that were to be erased beyond their endurance.
    pub blocks: u64,
    /// Data in whole mapping units that the host had written before the first of them; null without one.
    pub first_after_bytes: Option<u64>,
    /// Number of blocks that became bad.
    pub retired: u64,
}

/// Remaining life of blocks, in erases: `nand.endurance` less the erases of a block. Negative beyond the endurance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemainingLife {
    /// Mean over all blocks.
    pub mean: f64,
    /// Standard deviation over all blocks.
    pub stddev: f64,
    /// Number of blocks with less than 40% of the mean.
    pub below_40_percent: u64,
    /// Number of blocks with 40% to below 80% of the mean.
    pub below_80_percent: u64,
    /// Number of blocks with 80% to below 100% of the mean.
    pub below_mean: u64,
    /// Number of blocks with the mean or more.
    pub from_mean: u64,
}

/// Capacity over time. All lists have one value for each point in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// Data in whole mapping units that the host had written.
    pub written_bytes: Vec<u64>,
    /// Number of bad blocks.
    pub bad_blocks: Vec<u64>,
    /// Data that the good blocks can hold, in bytes, at most those that the host sees.
    pub held_bytes: Vec<u64>,
}

/// Cost of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// CPU time in seconds, without preconditioning; null if the system does not report it.
    pub cpu_s: Option<f64>,
    /// Page programs per second of CPU time.
    pub programs_per_cpu_s: Option<f64>,
}

impl Lifetime {
    /// Format of the result.
    pub const SCHEMA: &str = "floatgate-lifetime-1";

    /// Describes a lifetime that has ended.
    pub fn new(
        device: &Device,
        workload: Named,
        seed: u64,
        until: String,
        lived: &Lived,
        cpu_s: Option<f64>,
    ) -> Lifetime {
        let config = device.config();
        let counters = &lived.counters;
        let unit = config.unit_bytes();
        let erases: Vec<u32> = device.ftl().blocks.all().iter().map(|block| block.erases).collect();
        let programmed = counters.units_programmed + counters.units_padded;
        let expiry = config.faults.as_ref().map(|_| Expiry {
            blocks: lived.expired,
            first_after_bytes: lived.first_expiry.map(|units| units * unit),
            retired: counters.faults.blocks_grown_bad,
        });
        let per_second = |cpu_s: f64| counters.pages_programmed_total() as f64 / cpu_s;
        Lifetime {
            device: Named { name: config.name.clone(), digest: config.digest() },
            workload,
            seed,
            until,
            complete: lived.complete,
            worn_out: lived.is_worn_out,
            repetitions: lived.repetitions,
            written: Written {
                bytes: counters.host_bytes,
                drive_writes: counters.host_units as f64 / config.logical_units() as f64,
            },
            blocks_erased: counters.blocks_erased,
            write_amplification: (counters.host_units > 0).then(|| programmed as f64 / counters.host_units as f64),
            units_moved_gc: counters.moved[CopyCause::Gc as usize],
            units_moved_wear: counters.moved[CopyCause::Wear as usize],
            migrations: counters.migrations,
            expiry,
            wear: Wear::new(config, &erases),
            remaining_life: RemainingLife::new(config.endurance(), &erases),
            capacity: Capacity::new(&lived.capacity, unit),
            cost: Cost { cpu_s, programs_per_cpu_s: cpu_s.filter(|cpu_s| *cpu_s > 0.0).map(per_second) },
        }
    }
}

impl Lifetime {
    /// Returns `true` if the user ended the lifetime.
    pub fn was_interrupted(&self) -> bool {
        !self.complete && !self.worn_out
    }
}

impl RemainingLife {
    fn new(endurance: u32, erases: &[u32]) -> Option<RemainingLife> {
        if endurance == 0 || erases.is_empty() {
            return None;
        }
        let n = erases.len() as f64;
        let lives = || erases.iter().map(|erases| f64::from(endurance) - f64::from(*erases));
        let mean = lives().sum::<f64>() / n;
        let variance = lives().map(|life| (life - mean) * (life - mean)).sum::<f64>() / n;
        let below = |share: f64| lives().filter(|life| *life < share * mean).count() as u64;
        let [of_40, of_80, of_mean] = [0.4, 0.8, 1.0].map(below);
        Some(RemainingLife {
            mean,
            stddev: libm::sqrt(variance),
            below_40_percent: of_40,
            below_80_percent: of_80 - of_40,
            below_mean: of_mean - of_80,
            from_mean: erases.len() as u64 - of_mean,
        })
    }
}

impl Capacity {
    fn new(points: &[Point], unit: u64) -> Capacity {
        Capacity {
            written_bytes: points.iter().map(|point| point.host_units * unit).collect(),
            bad_blocks: points.iter().map(|point| point.bad_blocks).collect(),
            held_bytes: points.iter().map(|point| point.units_held * unit).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_classified_by_their_remaining_life() {
        // The remaining lives are 50, 40, 30, 10 and -5, with the mean 25: 200, 160, 120, 40 and -20 %.
        let life = RemainingLife::new(50, &[0, 10, 20, 40, 55]).unwrap();
        assert_eq!((life.mean, life.below_40_percent, life.below_80_percent), (25.0, 1, 1));
        assert_eq!((life.below_mean, life.from_mean), (0, 3));
        assert!((life.stddev - libm::sqrt(400.0)).abs() < 1e-9, "{}", life.stddev);
        assert_eq!(RemainingLife::new(0, &[1]), None);
    }
}
