//! Which blocks wear out first: wear leveling.

pub mod external;

use crate::external::Fault;
use crate::ftl::space::RegionView;
use crate::policy_family;
use crate::sim::id::BlockId;
use crate::state::{Reader, StateError, Writer};

/// Levels wear. Each method sees the region in question.
pub trait WearPolicy {
    /// Chooses the free block that is opened next: its position among `oldest`, the free blocks of the plane that have
    /// waited the longest. There is at least one, and at most eight.
    ///
    /// If planes open blocks of equal addresses (`nand.advanced.strict`), these addresses decide instead.
    fn pick_free(&mut self, view: &RegionView, oldest: &[BlockId]) -> usize;

    /// Returns `true` if garbage collection may take the victim that the victim policy has chosen. Otherwise that
    /// chooses again. If all victims are refused, garbage collection takes the first one.
    fn allows(&mut self, view: &RegionView, victim: BlockId) -> bool;

    /// Returns a closed block to migrate after `block` was erased. Garbage collection takes it as its next victim. The
    /// method is not called for a block that was migrated, so that every second victim at least frees space.
    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId>;

    /// Returns `true` if the policy needs the times at which blocks were closed and changed.
    fn has_ages(&self) -> bool {
        false
    }

    /// Writes what the policy itself remembers for a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError::Policy`] if the policy cannot be saved.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`WearPolicy::save`] wrote, as a new policy.
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
    /// How wear is leveled.
    Wear / WearConfig: dyn WearPolicy, or external {
        /// Not at all: free blocks are opened in the order in which they were erased.
        none::Unleveled = "none",
    }
}

impl Default for WearConfig {
    fn default() -> Self {
        WearConfig::Unleveled(Default::default())
    }
}

impl WearConfig {
    /// Returns `true` for the policy of devices that name none.
    pub fn is_default(&self) -> bool {
        *self == WearConfig::default()
    }
}
