//! d-choices victims: the best of a few random blocks.

use super::{Index, Tie, VictimPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;
use crate::policy::Policy;
use crate::sim::id::BlockId;
use crate::sim::rng::Rng;
use crate::state::{Reader, StateError, Writer};

/// Largest `d`. It bounds the time for the choice of a victim.
const MAX_CHOICES: u32 = 1000;

/// Options of d-choices.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DChoicesConfig {
    /// Number of blocks drawn, with replacement, from 1 (`random`) to 1000 (nearly `greedy`).
    #[schemars(range(min = 1, max = MAX_CHOICES))]
    pub d: u32,
    /// Choice among drawn blocks with equally few valid units. Default: the first drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Tie")]
    pub tie: Option<Tie>,
}

impl Default for DChoicesConfig {
    fn default() -> Self {
        DChoicesConfig { d: 10, tie: None }
    }
}

/// Draws d closed blocks and takes the one with the fewest valid units (Van Houdt, "A mean field model for a class of
/// garbage collection algorithms in flash-based solid state drives", 2013). If several have equally few, takes the
/// first drawn, or the one that `tie` chooses.
#[derive(Clone, Debug)]
pub struct DChoices {
    d: u32,
    tie: Option<Tie>,
    rng: Rng,
}

impl Policy for DChoices {
    type Config = DChoicesConfig;
    fn new(options: &DChoicesConfig, _: &DeviceConfig, seed: u64) -> Result<Self, String> {
        Ok(DChoices { d: options.d, tie: options.tie, rng: Rng::new(seed, "gc.victim.d-choices") })
    }
}

impl VictimPolicy for DChoices {
    fn index(&self) -> Index {
        Index::Array
    }

    fn has_ages(&self) -> bool {
        self.tie.is_some()
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        let blocks = u64::from(view.closed_count());
        if blocks == 0 {
            return None;
        }
        let drawn = (0..self.d).filter_map(|_| view.closed_at(self.rng.below(blocks) as usize));
        let Some(tie) = self.tie else { return drawn.min_by_key(|&block| view.valid(block)) };
        let mut drawn: Vec<BlockId> = drawn.collect();
        drawn.sort_by_key(|&block| (view.valid(block), view.age(block).changed));
        let fewest = view.valid(*drawn.first()?);
        tie.choose(view, drawn.into_iter().take_while(|&block| view.valid(block) == fewest))
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.rng(&self.rng)
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        self.rng = input.rng()?;
        Ok(())
    }
}
