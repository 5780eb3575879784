//! External classifier: supplied by the program that runs the device.

use serde_json::{Map, Value};

use super::TemperaturePolicy;
use crate::config::DeviceConfig;
pub use crate::external::EXTERNAL;
use crate::external::{ExternalClassifier, ExternalConfig, Fault, Guard, MAX_CLASSES, Wanted, Written};
use crate::state::{Reader, StateError, Writer};

/// Options of an external classifier.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name under which the program registers the policy.
    pub name: String,
    /// Number of classes, from 2 to 4, each with an open block in every plane.
    #[serde(default = "two")]
    #[schemars(range(min = 2, max = MAX_CLASSES))]
    pub classes: u32,
    /// Digest of the policy's source, filled in by the program, so that devices with other sources differ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Options of the policy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    pub options: Map<String, Value>,
}

fn two() -> u32 {
    2
}

impl Config {
    /// Returns the policy without the number of classes.
    pub fn policy(&self) -> ExternalConfig {
        let Config { name, source, options, .. } = self.clone();
        ExternalConfig { name, source, options }
    }
}

/// Calls an external policy. After a failure, all units are of class 0.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalClassifier>,
    classes: u32,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let policy = config.policy();
        let wanted = Wanted { path: "temperature", config: &policy, seed };
        let made = device.makers.provider(wanted)?.classifier(wanted);
        Ok(External { guard: Guard::new(wanted, made), classes: config.classes.min(MAX_CLASSES) })
    }
}

impl TemperaturePolicy for External {
    fn classify(&mut self, written: Written) -> u8 {
        let class = self.guard.ask(|policy| policy.classify(written));
        let class = class.and_then(|class| self.guard.position(class, self.classes as usize, "classes"));
        class.unwrap_or_default() as u8
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn load(&mut self, _: &mut Reader) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
