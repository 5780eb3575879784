//! Superblocks: blocks of a pool of planes that are used together, with parity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::advanced::Waste;
use super::check::Check;
use super::faults::WearOut;
use super::{BlockSummary, DeviceConfig, Frontiers, GcScope};
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::gc::victim::VictimConfig;
use crate::ftl::gc::wear::WearConfig;

/// Superblocks: the blocks with equal addresses of all planes of a pool (`allocation.dynamic.scope`), which are opened,
/// filled, collected and erased together (docs/model/superblocks.md).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuperblockConfig {
    /// Number of planes in a stripe with parity (RAIN): one program in this number is parity. The planes of a pool are
    /// a multiple of it. Default: no parity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 2))]
    pub parity: Option<u32>,
}

impl DeviceConfig {
    /// Returns the number of planes in a stripe with parity, if there is one.
    pub fn parity(&self) -> Option<u32> {
        self.superblock.as_ref()?.parity
    }

    /// Returns `true` if uncorrectable pages are rebuilt from their stripe.
    pub fn rebuilds(&self) -> bool {
        self.parity().is_some() && self.faults.is_some()
    }

    /// Returns `true` if more free blocks are kept because a superblock may fail.
    pub(super) fn keeps_superblock(&self) -> bool {
        self.superblock.is_some() && self.faults.is_some()
    }

    /// Returns the reason for which the device cannot have a journal of trims, a checkpoint, or a map that survives a
    /// power cut, if there is one.
    pub fn no_own_durability(&self) -> Option<&'static str> {
        let of_superblocks = "superblocks are recovered from the records of their pages: remove the table superblock";
        self.superblock.as_ref().map(|_| of_superblocks).or(self.mapping.scheme.needs(self).no_power_loss)
    }

    /// Returns the number of planes in a stripe, and the number of them that hold data in a superblock.
    pub(super) fn data_planes(&self) -> (u64, u64) {
        let planes = u64::from(self.parity().unwrap_or(1));
        (planes, planes - u64::from(self.parity().is_some()))
    }
}

impl Check<'_> {
    /// Checks superblocks against the other options.
    pub(super) fn superblock(&mut self, device: &DeviceConfig) {
        let Some(superblock) = &device.superblock else { return };
        let (advanced, gc) = (&device.nand.advanced, &device.gc);
        let dynamic = match &device.allocation {
            AllocationConfig::Dynamic(options) => Some(options),
            _ => None,
        };
        let planes = dynamic.map_or(1, |options| options.planes_per_pool(device));
        let refused = [
            (
                planes < 2,
                "consists of blocks of a pool of planes: set allocation to dynamic, with a scope of several planes",
            ),
            (gc.scope == GcScope::Plane, "is collected as a whole: set gc.scope to \"pool\""),
            (
                gc.destination == GcScope::Pool,
                "is moved to any plane of the pool anyway: set gc.destination to \"plane\"",
            ),
            (
                !matches!(gc.victim, VictimConfig::Greedy(_)),
                "is chosen by its valid units: set gc.victim to \"greedy\"",
            ),
            (gc.frontiers == Frontiers::Single, "takes host writes or moved units: set gc.frontiers to \"separate\""),
            (
                gc.wear.name() != WearConfig::default().name(),
                "is used in the order of the erases: set gc.wear to \"none\"",
            ),
            (gc.background.is_some(), "is not collected in idle time: remove gc.background"),
            (device.mapping.scheme.name() != "page", "is filled by page mapping: set mapping.scheme to \"page\""),
            (
                device.mapping.block_summary != BlockSummary::None,
                "has no summaries: set mapping.block_summary to \"none\"",
            ),
            (device.temperature.classes() > 1, "takes writes of all classes: set temperature to \"none\""),
            (
                dynamic.is_some_and(|options| options.active_blocks.is_some()),
                "has an active block in each plane: remove allocation.dynamic.active_blocks",
            ),
            (
                dynamic.is_some_and(|options| !options.tie.is_default()),
                "has blocks with equal erases: set allocation.dynamic.tie to \"turn\"",
            ),
            (device.slc_cache.is_some(), "has native blocks of equal addresses: remove slc_cache"),
            (
                device.faults.as_ref().is_some_and(|faults| faults.wear_out == WearOut::Exclude),
                "is collected as long as it is good: set faults.wear_out to another value",
            ),
            (
                advanced.copy_back != Waste::Off,
                "is moved through the controller: set nand.advanced.copy_back to \"off\"",
            ),
            (
                advanced.multi_plane_program != Waste::Off,
                "is programmed plane by plane: set nand.advanced.multi_plane_program to \"off\"",
            ),
            (advanced.interleave, "is programmed die by die: remove nand.advanced.interleave"),
        ];
        for (_, why) in refused.into_iter().filter(|(is_refused, _)| *is_refused) {
            self.refuse("superblock", "a table", &format!("a superblock {why}"));
        }
        if let Some(parity) = superblock.parity.filter(|&parity| parity < 2 || !planes.is_multiple_of(parity)) {
            let what = format!("a stripe must have a divisor of the {planes} planes of a pool, and at least 2");
            self.refuse("superblock.parity", parity, &what);
        }
    }
}
