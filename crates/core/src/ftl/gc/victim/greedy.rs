//! Greedy victims: the block with the fewest valid units.

use super::{Index, VictimPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;
use crate::policy::Policy;
use crate::sim::id::BlockId;

/// Greedy has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GreedyConfig {}

/// Takes the block with the fewest valid units (Agrawal et al. 2008, Section 3.2). Ties go to the block that has had
/// this number for the longest time.
#[derive(Clone, Debug)]
pub struct Greedy;

impl Policy for Greedy {
    type Config = GreedyConfig;
    fn new(_: &GreedyConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Greedy)
    }
}

impl VictimPolicy for Greedy {
    fn index(&self) -> Index {
        Index::Valid
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        view.greediest()
    }
}
