//! Static wear leveling with a threshold: cold data move to a worn block if erases differ by too much.

use super::{Needs, WearPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::{ColdOrder, RegionView};
use crate::policy::Policy;
use crate::sim::id::BlockId;

/// Options of the policy.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StaticThresholdConfig {
    /// Highest difference between the erases of a block and of the closed block with the fewest.
    #[schemars(range(min = 1))]
    pub threshold: u32,
}

impl Default for StaticThresholdConfig {
    fn default() -> Self {
        StaticThresholdConfig { threshold: 100 }
    }
}

/// Moves the data of the closed block with the fewest erases into a block that was erased, if the erases of the two
/// differ by more than the threshold.
#[derive(Clone, Debug)]
pub struct StaticThreshold {
    threshold: u32,
}

impl Policy for StaticThreshold {
    type Config = StaticThresholdConfig;

    fn new(options: &StaticThresholdConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(StaticThreshold { threshold: options.threshold })
    }
}

impl WearPolicy for StaticThreshold {
    fn needs(&self) -> Needs {
        Needs { cold: Some(ColdOrder::Erases), ..Needs::default() }
    }

    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId> {
        let coldest = view.cold_blocks().next()?;
        (view.erases(block).saturating_sub(view.erases(coldest)) > self.threshold).then_some(coldest)
    }
}
