//! Energy of flash operations, and the power of parts at all times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::units::{Energy, Power};
use super::{DeviceConfig, Direction, limits};

/// Energy of each flash operation, and power of parts at all times. Energy is computed from counts, so these options
/// change nothing else (docs/model/energy.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnergyConfig {
    /// Energy of the read of a page from cell to register: the mean of the page types.
    #[schemars(extend("x-range" = limits::ENERGY))]
    pub read: Energy,
    /// Energy of the program of a page from register to cell: the mean of the page types. If
    /// `geometry.pages_per_program` is above 1, that of all pages of a program.
    #[schemars(extend("x-range" = limits::ENERGY))]
    pub program: Energy,
    /// Energy of the erase of a block.
    #[schemars(extend("x-range" = limits::ENERGY))]
    pub erase: Energy,
    /// Energy of the read of a page in SLC mode (`nand.slc_mode`). Default: `read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Energy", extend("x-range" = limits::ENERGY))]
    pub slc_read: Option<Energy>,
    /// Energy of a program in SLC mode (`nand.slc_mode`). Default: `program`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Energy", extend("x-range" = limits::ENERGY))]
    pub slc_program: Option<Energy>,
    /// Energy of a byte on a channel, in either direction.
    #[schemars(extend("x-range" = limits::ENERGY))]
    pub transfer: Energy,
    /// Power of each die at all times, in addition to its operations.
    #[schemars(extend("x-range" = limits::POWER))]
    pub die: Power,
    /// Power of the controller and its memory at all times.
    #[schemars(extend("x-range" = limits::POWER))]
    pub controller: Power,
}

impl Check<'_> {
    /// Checks the energies against the other options.
    pub(super) fn energy(&mut self, device: &DeviceConfig) {
        let Some(energy) = device.energy else { return };
        let slc = [("energy.slc_read", energy.slc_read), ("energy.slc_program", energy.slc_program)];
        for (path, value) in slc.into_iter().filter_map(|(path, value)| Some((path, value?))) {
            if device.nand.slc_mode.is_none() {
                self.refuse(path, value, "needs nand.slc_mode: without it no block is in SLC mode; leave it out");
            }
        }
        let [write, read] = [Direction::In, Direction::Out].map(|direction| device.channel_bandwidth(direction));
        if energy.transfer > Energy(0) && write != read {
            let what = "needs equal bus.read_cycle and bus.write_cycle, because bytes follow from the time of \
                        transfers; leave it out";
            self.refuse("energy.transfer", energy.transfer, what);
        }
    }
}
