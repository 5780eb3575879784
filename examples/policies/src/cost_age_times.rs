//! Cost-age-times victim policy: weighs the cost of reclaiming a block against its age and its erases.

use floatgate_core::policies::{Index, RegionView, VictimPolicy};
use floatgate_core::sim::id::BlockId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options of `cost-age-times`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CostAgeTimesOptions {
    /// Start of a block's age.
    pub since: Since,
}

/// Start of a block's age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Since {
    /// The time at which the block was full, as in the paper.
    #[default]
    Closed,
    /// The time at which one of its units last became invalid, as in `cost-benefit`.
    Changed,
}

/// Victim policy that chooses the block with the minimum of u / (1 - u) * erases / age, where u is the share of valid
/// units (Chiang and Chang, "Cleaning policies in mobile computers using flash memory", Journal of Systems and Software
/// 48(3), 1999).
///
/// u / (1 - u) is the cost: units to copy per reclaimed unit. Age is the number of host writes since the block was
/// full. The factor for erases levels wear: of two blocks with the same cost and age, the less worn one is chosen. An
/// unworn block counts as erased once, because otherwise all unworn blocks would be equal (assumed). The paper maps
/// ages to a few levels, so that a very old block is not chosen regardless of its cost. Here the age is used directly.
#[derive(Clone, Debug)]
pub struct CostAgeTimes {
    since: Since,
}

/// Cost of a block as a fraction, so that blocks are compared exactly.
#[derive(Clone, Copy)]
struct Score {
    /// Number of valid units times erases.
    cost: u128,
    /// Number of invalid units times age, at least 1.
    gain: u128,
}

impl Score {
    fn is_below(self, other: Score) -> bool {
        self.cost * other.gain < other.cost * self.gain
    }
}

impl CostAgeTimes {
    pub fn new(options: CostAgeTimesOptions) -> CostAgeTimes {
        CostAgeTimes { since: options.since }
    }

    /// Returns the score of a block, or `None` if it has no invalid units.
    fn score(&self, view: &RegionView, block: BlockId) -> Option<Score> {
        let known = view.block(block);
        let start = match self.since {
            Since::Closed => known.age.closed,
            Since::Changed => known.age.changed,
        };
        let age = u128::from(view.clock() - start) + 1;
        let gain = u128::from(view.units() - known.valid) * age;
        (gain > 0).then(|| Score { cost: u128::from(known.valid) * u128::from(known.erases.max(1)), gain })
    }
}

impl VictimPolicy for CostAgeTimes {
    fn index(&self) -> Index {
        Index::Buckets
    }

    fn has_ages(&self) -> bool {
        true
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        let mut best: Option<(Score, BlockId)> = None;
        for block in view.closed_blocks() {
            // Blocks are in ascending order of their valid units, so the first one of equal scores has the fewest.
            if let Some(score) = self.score(view, block)
                && best.is_none_or(|(least, _)| score.is_below(least))
            {
                best = Some((score, block));
            }
        }
        best.map(|(_, block)| block)
    }
}
