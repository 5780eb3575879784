//! When a plane is cleaned.

pub mod external;

use crate::external::Fault;
use crate::ftl::space::RegionView;
use crate::policy_family;
use crate::state::{Reader, StateError, Writer};

/// Says when a plane is cleaned whose stock of free blocks is at or below `gc.soft_threshold`. At or below
/// `gc.hard_threshold`, and with a single block in any case, it is cleaned without being asked for.
pub trait TriggerPolicy {
    /// Whether to clean the plane now. It is asked when a block of it has been opened and behind each victim, and may
    /// be asked more than once.
    fn wants(&mut self, view: &RegionView) -> bool;

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

    /// Reads what [`TriggerPolicy::save`] wrote, as a new policy.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the file is damaged.
    fn load(&mut self, _input: &mut Reader) -> Result<(), StateError> {
        Ok(())
    }

    /// What went wrong with it, if it came with another program.
    fn fault(&self) -> Option<&Fault> {
        None
    }
}

policy_family! {
    /// When a plane is cleaned.
    Trigger / TriggerConfig: dyn TriggerPolicy, or external {
        /// As soon as it may be: at or below the soft threshold.
        threshold::Threshold = "threshold",
        /// When it may be, and a share of what its closed blocks hold is superseded.
        lazy::Lazy = "lazy",
    }
}

impl Default for TriggerConfig {
    fn default() -> Self {
        TriggerConfig::Threshold(Default::default())
    }
}

impl TriggerConfig {
    /// Whether it is the one that devices have when nothing is said.
    pub fn is_default(&self) -> bool {
        *self == TriggerConfig::default()
    }
}
