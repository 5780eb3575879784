//! Lazy trigger: starts garbage collection when a share of the units is invalid.

use super::TriggerPolicy;
use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;
use crate::policy::Policy;

/// Options of the lazy trigger.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LazyConfig {
    /// Minimum share of invalid units in the closed blocks of the plane, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub invalid: f64,
}

impl Default for LazyConfig {
    fn default() -> Self {
        LazyConfig { invalid: 0.25 }
    }
}

/// Waits until a share of the units in closed blocks is invalid. Victims then have fewer units to move, but fewer free
/// blocks are left for bursts of writes.
#[derive(Clone, Debug)]
pub struct Lazy {
    /// Invalid units that are required for each closed block.
    per_block: f64,
}

impl Policy for Lazy {
    type Config = LazyConfig;

    fn new(options: &LazyConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Lazy { per_block: options.invalid * f64::from(device.data_units_per_block()) })
    }
}

impl Lazy {
    /// Returns `true` if `invalid` units in `closed` blocks reach the share.
    fn is_due(&self, invalid: u32, closed: u32) -> bool {
        f64::from(invalid) >= self.per_block * f64::from(closed)
    }
}

impl TriggerPolicy for Lazy {
    fn wants(&mut self, view: &RegionView) -> bool {
        self.is_due(view.invalid_units(), view.closed_count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_collection_waits_for_the_share() {
        // `tiny` has 64 pages of 4 KiB in a block. Ten closed blocks have 640 units, and a tenth of them is 64.
        let device = crate::config::load("tiny", &[]).unwrap();
        assert_eq!(device.data_units_per_block(), 64);
        let lazy = Lazy::new(&LazyConfig { invalid: 0.1 }, &device, 1).unwrap();
        let wants = |invalid| lazy.is_due(invalid, 10);
        assert_eq!([wants(0), wants(63), wants(64), wants(640)], [false, false, true, true]);
    }
}
