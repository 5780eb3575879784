//! Hints: the host says how long data will live.

use super::TemperaturePolicy;
use super::written::MAX_CLASSES;
use crate::config::DeviceConfig;
use crate::ftl::temperature::written::Written;
use crate::policy::Policy;

/// Number of a request that its class depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HintSource {
    /// Placement hint: lifetimes of Linux (`write_hint` of a job), from 2 for short to 5 for extreme; 0 without a hint.
    #[default]
    Placement,
    /// Stream: jobs are numbered from 0.
    Stream,
}

/// Options of the classifier by hints.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HintsConfig {
    /// Number of a request that its class depends on.
    pub by: HintSource,
    /// Class of each number, from 0 on. Larger numbers have the last class of the list.
    pub classes: Vec<u8>,
}

impl Default for HintsConfig {
    /// The shorter the lifetime, the higher the class.
    fn default() -> Self {
        HintsConfig { by: HintSource::Placement, classes: vec![0, 0, 3, 2, 1, 0] }
    }
}

impl HintsConfig {
    /// Returns the number of classes.
    pub fn count(&self) -> u32 {
        self.classes.iter().max().map_or(1, |most| u32::from(*most) + 1)
    }
}

/// Looks up the class of a write in a list.
#[derive(Clone, Debug)]
pub struct Hints {
    by: HintSource,
    classes: Vec<u8>,
}

impl Policy for Hints {
    type Config = HintsConfig;

    fn check(options: &HintsConfig, _: &DeviceConfig) -> Result<(), String> {
        if (2..=MAX_CLASSES).contains(&options.count()) {
            Ok(())
        } else {
            Err(format!("classes = {:?}: must name classes up to 1, 2 or 3, such as [0, 1]", options.classes))
        }
    }

    fn new(options: &HintsConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Self::check(options, device)?;
        Ok(Hints { by: options.by, classes: options.classes.clone() })
    }
}

impl TemperaturePolicy for Hints {
    fn classify(&mut self, written: Written) -> u8 {
        let number = match self.by {
            HintSource::Placement => written.placement,
            HintSource::Stream => written.stream,
        };
        self.classes[usize::from(number).min(self.classes.len() - 1)]
    }
}
