//! Cost-benefit: gain now against what would be superseded by waiting.

use super::buckets::Buckets;
use super::{Candidates, VictimPolicy};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};

/// Cost-benefit has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostBenefitConfig {}

/// Takes the block with the highest age * (1 - u) / 2u, where u is its share of valid units and its age the number
/// of host writes since one of its units was last superseded (Kawaguchi, Nishioka and Motoda, "A flash-memory based
/// file system", USENIX 1995). Reading a block costs u, writing it back u, and 1 - u is gained.
///
/// The exact maximum without a scan of the blocks: among blocks with equally many valid units the oldest wins, and a
/// list of `Buckets` is ordered by age, because a block enters it at its last change. So only the heads compete:
/// at most one for each number of valid units, less than a comparison for each unit that the victim moves.
#[derive(Clone, Debug)]
pub struct CostBenefit {
    candidates: Buckets,
    /// The host write at which each block last changed.
    changed: Vec<u64>,
}

impl Policy for CostBenefit {
    type Config = CostBenefitConfig;
    fn new(_: &CostBenefitConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(CostBenefit { candidates: Buckets::new(device), changed: vec![0; device.total_blocks() as usize] })
    }
}

/// Whether benefit `a` = (age, gain, cost) is over benefit `b`, as age * gain / cost, in integers.
fn over(a: (u64, u32, u32), b: (u64, u32, u32)) -> bool {
    let product = |age: u64, gain: u32, cost: u32| u128::from(age) * u128::from(gain) * u128::from(cost);
    product(a.0, a.1, b.2) > product(b.0, b.1, a.2)
}

impl VictimPolicy for CostBenefit {
    fn on_close(&mut self, block: BlockId, valid: u32, clock: u64) {
        self.changed[block.index()] = clock;
        self.candidates.insert(block, valid);
    }

    fn on_invalidate(&mut self, block: BlockId, valid: u32, clock: u64) {
        self.changed[block.index()] = clock;
        self.candidates.update(block, valid);
    }

    fn prefetch(&self, block: BlockId, valid: u32) {
        self.candidates.prefetch(block, valid);
    }

    fn take(&mut self, plane: PlaneId, clock: u64) -> Option<BlockId> {
        let least = self.candidates.least(plane)?;
        let units = self.candidates.units();
        let mut best: Option<((u64, u32, u32), BlockId)> = None;
        for valid in least..units {
            let Some(block) = self.candidates.oldest_with(plane, valid) else { continue };
            let age = clock - self.changed[block.index()] + 1;
            let benefit = (age, units - valid, 2 * valid);
            if best.is_none_or(|(b, _)| over(benefit, b)) {
                best = Some((benefit, block));
            }
            if valid == 0 {
                break; // Costs nothing: no other can be better.
            }
        }
        let (_, block) = best?;
        self.candidates.remove(block);
        Some(block)
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.candidates.save(out, |out, block| out.u64(self.changed[block.index()]))
    }

    fn load(&mut self, input: &mut Reader, closed: Candidates) -> Result<(), StateError> {
        let (changed, clock) = (&mut self.changed, closed.clock());
        self.candidates.load(input, closed, |input, block| {
            let at = input.u64()?;
            if at > clock {
                return Err(input.damaged(format!("block {} has changed in the future", block.0)));
            }
            changed[block.index()] = at;
            Ok(())
        })
    }
}
