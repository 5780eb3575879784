//! d-choices: the best of a few.

use super::closed::Closed;
use super::{Candidates, VictimPolicy};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::{BlockId, PlaneId};
use crate::sim::rng::Rng;
use crate::state::{Reader, StateError, Writer};

/// Largest `d`. It bounds the time that the choice of a victim takes.
const MOST: u32 = 1000;

/// Options of d-choices.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DChoicesConfig {
    /// Blocks drawn, with replacement, from 1 to 1000. 1 is `random`, a large number nearly `greedy`.
    #[schemars(range(min = 1, max = 1000))]
    pub d: u32,
}

impl Default for DChoicesConfig {
    fn default() -> Self {
        DChoicesConfig { d: 10 }
    }
}

/// Draws d closed blocks and takes the one with the fewest valid units, the first drawn of several (Van Houdt,
/// "A mean field model for a class of garbage collection algorithms in flash-based solid state drives", 2013).
#[derive(Clone, Debug)]
pub struct DChoices {
    d: u32,
    candidates: Closed,
    /// Valid units of each block, as last heard.
    valid: Vec<u16>,
    full: u16,
    blocks_per_plane: u32,
    rng: Rng,
}

impl Policy for DChoices {
    type Config = DChoicesConfig;
    fn check(options: &DChoicesConfig, _: &DeviceConfig) -> Result<(), String> {
        match options.d {
            0 => Err("d = 0 draws no block: d must be 1 or more".to_owned()),
            d if d > MOST => Err(format!("d = {d}: must be at most {MOST}; to compare all blocks, use `greedy`")),
            _ => Ok(()),
        }
    }

    fn new(options: &DChoicesConfig, device: &DeviceConfig, seed: u64) -> Result<Self, String> {
        Self::check(options, device)?;
        Ok(DChoices {
            d: options.d,
            candidates: Closed::new(device),
            valid: vec![0; device.total_blocks() as usize],
            full: device.data_units_per_block() as u16,
            blocks_per_plane: device.geometry.blocks,
            rng: Rng::new(seed, "gc.victim.d-choices"),
        })
    }
}

impl VictimPolicy for DChoices {
    fn on_close(&mut self, block: BlockId, valid: u32, _: u64) {
        self.valid[block.index()] = valid as u16;
        self.candidates.insert(PlaneId(block.0 / self.blocks_per_plane), block);
    }

    fn on_invalidate(&mut self, block: BlockId, valid: u32, _: u64) {
        self.valid[block.index()] = valid as u16;
    }

    fn take(&mut self, plane: PlaneId, _: u64) -> Option<BlockId> {
        let n = self.candidates.of(plane).len() as u64;
        if n == 0 {
            return None;
        }
        let mut best = (u16::MAX, 0);
        for _ in 0..self.d {
            let position = self.rng.below(n) as usize;
            let valid = self.valid[self.candidates.of(plane)[position].index()];
            if valid < best.0 {
                best = (valid, position);
            }
        }
        debug_assert!(best.0 <= self.full);
        Some(self.candidates.take(plane, best.1))
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.candidates.save(out)?;
        out.rng(&self.rng)
    }

    fn load(&mut self, input: &mut Reader, closed: Candidates) -> Result<(), StateError> {
        let valid_of = &mut self.valid;
        self.candidates.load(input, closed, |block, valid| valid_of[block.index()] = valid)?;
        self.rng = input.rng()?;
        Ok(())
    }
}
