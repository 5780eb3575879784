//! Wear leveling: chooses free blocks to open, refuses victims, and names blocks to migrate.

pub mod external;

use crate::external::Fault;
use crate::ftl::space::RegionView;
use crate::policy_family;
use crate::sim::id::BlockId;
use crate::state::{Reader, StateError, Writer};

/// Levels wear. Each method gets a view of the region.
pub trait WearPolicy {
    /// Chooses the free block to open next. Returns its position in `oldest`: the oldest free blocks of the plane, at
    /// least one and at most eight.
    ///
    /// If planes open blocks of equal addresses (`nand.advanced.strict`), these addresses decide instead.
    fn pick_free(&mut self, view: &RegionView, oldest: &[BlockId]) -> usize;

    /// Returns `true` if garbage collection may take the victim that the victim policy has chosen. Otherwise, the
    /// victim policy chooses again. If all victims are refused, garbage collection takes the first one.
    fn allows(&mut self, view: &RegionView, victim: BlockId) -> bool;

    /// Returns a closed block to migrate after `block` was erased. Garbage collection takes it as its next victim. The
    /// method is not called after the erase of a migrated block, so that at least every second victim frees space.
    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId>;

    /// Returns `true` if the policy needs the times at which blocks were closed and changed.
    fn has_ages(&self) -> bool {
        false
    }

    /// Writes the internal state of the policy to a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError::Policy`] if the policy cannot be saved.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`WearPolicy::save`] wrote, into a new policy.
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
    /// Policy that levels wear.
    Wear / WearConfig: dyn WearPolicy, or external {
        /// No wear leveling: free blocks are opened in the order in which they were erased.
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
