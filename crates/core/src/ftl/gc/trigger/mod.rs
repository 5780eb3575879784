//! Triggers: they decide when garbage collection of a plane starts.

pub mod external;

use crate::external::Cause;
use crate::ftl::space::RegionView;
use crate::policy_family;
use crate::state::{Reader, StateError, Writer};

/// Decides whether garbage collection starts in a plane with `gc.soft_threshold` free blocks or fewer. At
/// `gc.hard_threshold` or fewer, or with only the reserve left, it starts without the trigger.
pub trait TriggerPolicy {
    /// Returns `true` to start garbage collection of the plane. Called when a block of the plane is opened and after
    /// each victim, and possibly more often.
    fn wants(&mut self, view: &RegionView) -> bool;

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

    /// Reads what [`TriggerPolicy::save`] wrote, into a new policy.
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
    /// Condition under which garbage collection of a plane starts.
    Trigger / TriggerConfig: dyn TriggerPolicy, or external {
        /// The plane has `gc.soft_threshold` free blocks or fewer.
        threshold::Threshold = "threshold",
        /// The plane has `gc.soft_threshold` free blocks or fewer, and a share of the units in its closed blocks is
        /// invalid.
        lazy::Lazy = "lazy",
    }
}

impl Default for TriggerConfig {
    fn default() -> Self {
        TriggerConfig::Threshold(Default::default())
    }
}

impl TriggerConfig {
    /// Returns `true` for the trigger of devices that name none.
    pub fn is_default(&self) -> bool {
        *self == TriggerConfig::default()
    }
}
