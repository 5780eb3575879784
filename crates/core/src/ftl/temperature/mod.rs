//! Temperature of data: finds the units that the host writes often, so that they are separated from the others in
//! flash.
//!
//! Blocks of units that are written often are nearly empty when they are reclaimed. If these units share blocks with
//! units that stay, garbage collection copies the latter again and again (Chang and Kuo 2002; Hsieh et al. 2006).

mod classes;
pub mod external;
pub mod written;

pub use classes::Classes;

use crate::external::Cause;
use crate::ftl::temperature::written::Written;
use crate::policy_family;
use crate::state::{Reader, StateError, Writer};

/// Classifies each unit that the host writes. Class 0 is for the units that stay longest.
pub trait TemperaturePolicy {
    /// Returns the class of a unit that is written now, below the number of classes. Called once for each write of a
    /// unit.
    fn classify(&mut self, written: Written) -> u8;

    /// Writes the internal state of the policy to a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError::Policy`] if the policy cannot be saved.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`TemperaturePolicy::save`] wrote, into a new policy.
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
    /// Distinction between hot and cold units.
    Temperature / TemperatureConfig: dyn TemperaturePolicy, or external {
        /// No distinction: one open block in each plane takes all host writes.
        none::Single = "none",
        /// Two lists of units by their last write. A unit that is written again in the second list is hot.
        two_level_lru::TwoLevelLru = "two-level-lru",
        /// Small counters, several for each unit by hashing, that are halved periodically.
        multi_hash::MultiHash = "multi-hash",
        /// Hints of the host: the class of each write depends on the placement hint or the stream of its request.
        hints::Hints = "hints",
    }
}

impl Default for TemperatureConfig {
    fn default() -> Self {
        TemperatureConfig::Single(Default::default())
    }
}

impl TemperatureConfig {
    /// Returns `true` for the policy of devices that name none.
    pub fn is_default(&self) -> bool {
        *self == TemperatureConfig::default()
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> u32 {
        match self {
            TemperatureConfig::Single(_) => 1,
            TemperatureConfig::External(options) => options.classes,
            TemperatureConfig::Hints(options) => options.count(),
            _ => 2,
        }
    }
}

/// Returns a share of `units`, at least one.
fn share_of(units: u64, share: f64) -> u32 {
    // Shares are decimal numbers of a few digits: exact in millionths, the same on every machine.
    let millionths = (share * 1e6 + 0.5) as u64;
    (units * millionths / 1_000_000).clamp(1, units.max(1)) as u32
}
