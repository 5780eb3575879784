//! Victim policies: they choose the block that garbage collection reclaims next.

pub mod external;
mod index;
mod tie;

use crate::external::Cause;
use crate::ftl::space::RegionView;
use crate::policy_family;
use crate::sim::id::BlockId;
use crate::state::{Reader, StateError, Writer};
pub use index::Index;
pub use tie::Tie;

/// Chooses victims among the closed blocks of a region.
pub trait VictimPolicy {
    /// Returns the order of closed blocks that the policy needs.
    fn index(&self) -> Index;

    /// Returns `true` if the policy needs the times at which blocks were closed and changed.
    fn has_ages(&self) -> bool {
        false
    }

    /// Chooses a closed block. Returns `None` if no block would free space.
    fn choose(&mut self, view: &RegionView) -> Option<BlockId>;

    /// Writes the internal state of the policy to a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError::Policy`] if the policy cannot be saved.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`VictimPolicy::save`] wrote, into a new policy.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the file is damaged.
    fn load(&mut self, _input: &mut Reader) -> Result<(), StateError> {
        Ok(())
    }

    /// Returns the error of an external policy that has failed. The policy is not called again.
    fn error(&self) -> Option<&Cause> {
        None
    }
}

policy_family! {
    /// Choice of the block that garbage collection reclaims.
    Victim / VictimConfig: dyn VictimPolicy, or external {
        /// The block with the fewest valid units; of several, by default the one that has had this number longest.
        greedy::Greedy = "greedy",
        /// The block that was closed first.
        fifo::Fifo = "fifo",
        /// Any closed block, at random.
        random::Random = "random",
        /// The block with the fewest valid units among d random ones.
        d_choices::DChoices = "d-choices",
        /// The block with the highest age * (1 - u) / 2u, for a share u of valid units (Kawaguchi et al. 1995).
        cost_benefit::CostBenefit = "cost-benefit",
    }
}

impl Default for VictimConfig {
    fn default() -> Self {
        VictimConfig::Greedy(Default::default())
    }
}
