//! Random victims: any closed block.

use super::{Index, VictimPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;
use crate::policy::Policy;
use crate::sim::id::BlockId;
use crate::sim::rng::Rng;
use crate::state::{Reader, StateError, Writer};

/// Random has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomConfig {}

/// Takes any closed block, each with the same probability.
#[derive(Clone, Debug)]
pub struct Random {
    rng: Rng,
}

impl Policy for Random {
    type Config = RandomConfig;
    fn new(_: &RandomConfig, _: &DeviceConfig, seed: u64) -> Result<Self, String> {
        Ok(Random { rng: Rng::new(seed, "gc.victim.random") })
    }
}

impl VictimPolicy for Random {
    fn index(&self) -> Index {
        Index::Array
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        let blocks = u64::from(view.closed_count());
        if blocks == 0 { None } else { view.closed_at(self.rng.below(blocks) as usize) }
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.rng(&self.rng)
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        self.rng = input.rng()?;
        Ok(())
    }
}
