//! Greedy: most gain now.

use super::buckets::Buckets;
use super::{Candidates, VictimPolicy};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};

/// Greedy has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GreedyConfig {}

/// Takes the block with the fewest valid units (Agrawal et al. 2008, Section 3.2). Ties go to the block that has had
/// so few for the longest time.
#[derive(Clone, Debug)]
pub struct Greedy {
    candidates: Buckets,
}

impl Policy for Greedy {
    type Config = GreedyConfig;
    fn new(_: &GreedyConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Greedy { candidates: Buckets::new(device) })
    }
}

impl VictimPolicy for Greedy {
    fn on_close(&mut self, block: BlockId, valid: u32, _: u64) {
        self.candidates.insert(block, valid);
    }

    fn on_invalidate(&mut self, block: BlockId, valid: u32, _: u64) {
        self.candidates.update(block, valid);
    }

    fn prefetch(&self, block: BlockId, valid: u32) {
        self.candidates.prefetch(block, valid);
    }

    fn take(&mut self, plane: PlaneId, _: u64) -> Option<BlockId> {
        let valid = self.candidates.least(plane)?;
        let block = self.candidates.oldest_with(plane, valid)?;
        self.candidates.remove(block);
        Some(block)
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.candidates.save(out, |_, _| Ok(()))
    }

    fn load(&mut self, input: &mut Reader, closed: Candidates) -> Result<(), StateError> {
        self.candidates.load(input, closed, |_, _| Ok(()))
    }
}
