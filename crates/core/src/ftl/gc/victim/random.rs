//! Random: any block.

use super::closed::Closed;
use super::{Candidates, VictimPolicy};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::{BlockId, PlaneId};
use crate::sim::rng::Rng;
use crate::state::{Reader, StateError, Writer};

/// Random has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomConfig {}

/// Takes any closed block, each with the same probability.
#[derive(Clone, Debug)]
pub struct Random {
    candidates: Closed,
    blocks_per_plane: u32,
    rng: Rng,
}

impl Policy for Random {
    type Config = RandomConfig;
    fn new(_: &RandomConfig, device: &DeviceConfig, seed: u64) -> Result<Self, String> {
        let rng = Rng::new(seed, "gc.victim.random");
        Ok(Random { candidates: Closed::new(device), blocks_per_plane: device.geometry.blocks, rng })
    }
}

impl VictimPolicy for Random {
    fn on_close(&mut self, block: BlockId, _: u32, _: u64) {
        self.candidates.insert(PlaneId(block.0 / self.blocks_per_plane), block);
    }

    fn on_invalidate(&mut self, _: BlockId, _: u32, _: u64) {}

    fn take(&mut self, plane: PlaneId, _: u64) -> Option<BlockId> {
        let n = self.candidates.of(plane).len() as u64;
        (n > 0).then(|| self.candidates.take(plane, self.rng.below(n) as usize))
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.candidates.save(out)?;
        out.rng(&self.rng)
    }

    fn load(&mut self, input: &mut Reader, closed: Candidates) -> Result<(), StateError> {
        self.candidates.load(input, closed, |_, _| ())?;
        self.rng = input.rng()?;
        Ok(())
    }
}
