//! Remaining life of blocks.

use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;

/// Erases that a block endures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    endurance: f64,
}

impl Life {
    /// Fails if the device has no endurance.
    pub(super) fn new(device: &DeviceConfig) -> Result<Life, String> {
        match device.endurance() {
            0 => Err("the policy compares remaining lives, but blocks of this device endure any number of erases; \
                      give nand.endurance, for example 3000"
                .to_owned()),
            endurance => Ok(Life { endurance: f64::from(endurance) }),
        }
    }

    /// Returns the remaining life of a block after `erases` erases, divided by the mean remaining life of the blocks of
    /// the plane (Agrawal et al. 2008, Section 5). A block beyond its endurance has none left. If all blocks have
    /// reached their endurance on average, all are equal.
    pub(super) fn ratio(self, view: &RegionView, erases: u32) -> f64 {
        let mean = self.endurance - view.mean_erases();
        if mean > 0.0 { (self.endurance - f64::from(erases)).max(0.0) / mean } else { 1.0 }
    }
}
