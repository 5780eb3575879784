//! Which block garbage collection takes next.

pub mod external;
mod index;

use crate::external::Fault;
use crate::ftl::space::RegionView;
use crate::policy_family;
use crate::sim::id::BlockId;
use crate::state::{Reader, StateError, Writer};
pub use index::Index;

/// Chooses victims among the closed blocks of a region.
pub trait VictimPolicy {
    /// Returns the order of closed blocks that the policy needs.
    fn index(&self) -> Index;

    /// Returns `true` if the policy needs the times at which blocks were closed and changed.
    fn has_ages(&self) -> bool {
        false
    }

    /// Chooses a closed block, or returns `None` if none would gain anything.
    fn choose(&mut self, view: &RegionView) -> Option<BlockId>;

    /// Writes what the policy itself remembers for a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError::Policy`] if the policy cannot be saved.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`VictimPolicy::save`] wrote, as a new policy.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the file is damaged.
    fn load(&mut self, _input: &mut Reader) -> Result<(), StateError> {
        Ok(())
    }

    /// Returns the fault of a policy that came with another program.
    fn fault(&self) -> Option<&Fault> {
        None
    }
}

policy_family! {
    /// Which block cleaning reclaims.
    Victim / VictimConfig: dyn VictimPolicy, or external {
        /// The block with the fewest valid units; of several, the one that has had so few for the longest time.
        greedy::Greedy = "greedy",
        /// The block that was closed first.
        fifo::Fifo = "fifo",
        /// Any block.
        random::Random = "random",
        /// The block with the fewest valid units of d random ones.
        d_choices::DChoices = "d-choices",
        /// The block with the highest age * (1 - u) / 2u, u its share of valid units (Kawaguchi et al. 1995).
        cost_benefit::CostBenefit = "cost-benefit",
    }
}

impl Default for VictimConfig {
    fn default() -> Self {
        VictimConfig::Greedy(Default::default())
    }
}
