//! Cost-benefit victims: the space that a block frees, times its age, divided by the cost of moving its units.

use super::{Index, Tie, VictimPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;
use crate::policy::Policy;
use crate::sim::id::BlockId;

/// Options of cost-benefit.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CostBenefitConfig {
    /// Choice among blocks without valid units, which cost nothing.
    pub tie: Tie,
}

/// Takes the block with the highest age * (1 - u) / 2u (Kawaguchi, Nishioka and Motoda, "A flash-memory based file
/// system", USENIX 1995). u is the share of valid units. The age is the number of host writes since a unit of the block
/// last became invalid. Reading a block costs u, writing it back costs u, and 1 - u is freed.
///
/// The maximum is exact and needs no scan of all blocks. Among blocks with equally many valid units, the oldest wins.
/// Each list of [`Index::Buckets`] is ordered by age, because a block enters it at its last change. So only the heads
/// compete, at most one for each number of valid units.
#[derive(Clone, Debug)]
pub struct CostBenefit {
    tie: Tie,
}

impl Policy for CostBenefit {
    type Config = CostBenefitConfig;
    fn new(options: &CostBenefitConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(CostBenefit { tie: options.tie })
    }
}

/// Returns `true` if benefit `a` = (age, gain, cost) is higher than `b`. Computes age * gain / cost in integers.
fn over(a: (u64, u32, u32), b: (u64, u32, u32)) -> bool {
    let product = |age: u64, gain: u32, cost: u32| u128::from(age) * u128::from(gain) * u128::from(cost);
    product(a.0, a.1, b.2) > product(b.0, b.1, a.2)
}

impl VictimPolicy for CostBenefit {
    fn index(&self) -> Index {
        Index::Buckets
    }

    fn has_ages(&self) -> bool {
        true
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        let fewest = view.fewest_valid()?;
        if fewest == 0 {
            return self.tie.choose(view, view.all_with(0));
        }
        let mut best: Option<((u64, u32, u32), BlockId)> = None;
        for valid in fewest..view.units() {
            let Some(block) = view.oldest_with(valid) else { continue };
            let age = view.clock() - view.age(block).changed + 1;
            let benefit = (age, view.units() - valid, 2 * valid);
            if best.is_none_or(|(b, _)| over(benefit, b)) {
                best = Some((benefit, block));
            }
        }
        best.map(|(_, block)| block)
    }
}
