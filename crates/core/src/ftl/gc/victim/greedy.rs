//! Greedy victims: the block with the fewest valid units.

use super::{Index, Tie, VictimPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;
use crate::policy::Policy;
use crate::sim::id::BlockId;

/// Options of `greedy`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GreedyConfig {
    /// Choice among blocks with equally few valid units.
    pub tie: Tie,
}

/// Takes the block with the fewest valid units (Agrawal et al. 2008, Section 3.2).
#[derive(Clone, Debug)]
pub struct Greedy {
    tie: Tie,
}

impl Policy for Greedy {
    type Config = GreedyConfig;
    fn new(options: &GreedyConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Greedy { tie: options.tie })
    }
}

impl VictimPolicy for Greedy {
    fn index(&self) -> Index {
        if self.tie == Tie::Oldest { Index::Valid } else { Index::Buckets }
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        match self.tie {
            Tie::Oldest => view.greediest(),
            tie => tie.choose(view, view.all_with(view.fewest_valid()?)),
        }
    }
}
