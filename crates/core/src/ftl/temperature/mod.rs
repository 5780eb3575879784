//! The temperature of data: which units the host writes often, so that they are kept apart from the others in flash.
//!
//! Units that are written often leave their blocks nearly empty when they share them with their like; beside units that
//! stay, they make cleaning copy these time and again (Chang and Kuo 2002; Hsieh et al. 2006).

mod classes;
pub mod external;
pub mod written;

pub use classes::Classes;

use crate::external::Fault;
use crate::ftl::temperature::written::Written;
use crate::policy_family;
use crate::state::{Reader, StateError, Writer};

/// Tells the class of each unit that the host writes: 0 for what stays longest.
pub trait TemperaturePolicy {
    /// The class of a unit that is written now, below the number of classes. It is asked once for each write of a unit.
    fn classify(&mut self, written: Written) -> u8;

    /// Writes what the policy itself remembers for a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError::Policy`] if the policy cannot be saved.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`TemperaturePolicy::save`] wrote, as a new policy.
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
    /// Which units are hot.
    Temperature / TemperatureConfig: dyn TemperaturePolicy, or external {
        /// Nothing is told apart: one open block in each plane takes what the host writes.
        none::Single = "none",
        /// Two lists of units by their last write: those written again while they are in the second one are hot.
        two_level_lru::TwoLevelLru = "two-level-lru",
        /// Small counters, several for each unit by hashing, that are halved now and then.
        multi_hash::MultiHash = "multi-hash",
    }
}

impl Default for TemperatureConfig {
    fn default() -> Self {
        TemperatureConfig::Single(Default::default())
    }
}

impl TemperatureConfig {
    /// Whether it is the one that devices have when nothing is said.
    pub fn is_default(&self) -> bool {
        *self == TemperatureConfig::default()
    }

    /// Classes that it tells apart.
    pub fn classes(&self) -> u32 {
        match self {
            TemperatureConfig::Single(_) => 1,
            TemperatureConfig::External(options) => options.classes,
            _ => 2,
        }
    }
}

/// A share of so many units, one at least.
fn share_of(units: u64, share: f64) -> u32 {
    // Shares are decimal numbers of a few digits: exact in millionths, the same on every machine.
    let millionths = (share * 1e6 + 0.5) as u64;
    (units * millionths / 1_000_000).clamp(1, units.max(1)) as u32
}

/// Refuses what is no share above 0.
fn check_share(name: &str, share: f64) -> Result<(), String> {
    match share > 0.0 && share <= 1.0 {
        true => Ok(()),
        false => {
            Err(format!("{name} = {share}: must be above 0, and at most 1: it is a share of the units of the host"))
        }
    }
}
