//! Which block is reclaimed next.

mod buckets;
mod closed;
pub mod external;
mod saving;

use crate::external::Fault;
use crate::policy_family;
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};
pub use saving::Candidates;

/// Chooses victims among the closed blocks of a plane.
///
/// The policy hears of every change to a candidate and keeps what it needs of it, so that a choice is no scan. A
/// block is a candidate from `on_close` until `take` returns it.
pub trait VictimPolicy {
    /// `block`, which is closed next, has been erased so often.
    fn on_erases(&mut self, _block: BlockId, _erases: u32) {}

    /// `block` is full, or was taken and passed over: it can be chosen from now on. `valid` of its units are valid;
    /// `clock` counts host writes.
    fn on_close(&mut self, block: BlockId, valid: u32, clock: u64);

    /// A unit of the candidate `block` was superseded or trimmed; `valid` remain.
    fn on_invalidate(&mut self, block: BlockId, valid: u32, clock: u64);

    /// Asks for what [`VictimPolicy::on_invalidate`] of these will touch, ahead of time.
    fn prefetch(&self, _block: BlockId, _valid: u32) {}

    /// Chooses a victim of `plane` and takes it off the candidates; `None` when none would gain anything.
    fn take(&mut self, plane: PlaneId, clock: u64) -> Option<BlockId>;

    /// Writes what it knows for a saved state; a policy that cannot be saved says so ([`StateError::Policy`]).
    fn save(&self, out: &mut Writer) -> Result<(), StateError>;

    /// Reads what [`VictimPolicy::save`] wrote, as a new policy. `closed` are its candidates: nothing else may be one
    /// afterwards, whatever the file says.
    fn load(&mut self, input: &mut Reader, closed: Candidates) -> Result<(), StateError>;

    /// What went wrong with it, if it came with another program.
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
