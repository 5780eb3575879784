//! External classifier: supplied by the program that runs the device.

use serde_json::{Map, Value};

use super::TemperaturePolicy;
use super::written::{MAX_CLASSES, Written};
pub use crate::config::external::EXTERNAL;
use crate::config::{DeviceConfig, ExternalConfig};
use crate::external::{Externals, Fault, Guard, Wanted, outside_policies};
use crate::state::{Reader, StateError, Writer};

outside_policies!(TemperaturePolicy);

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
    guard: Guard<dyn TemperaturePolicy>,
    classes: u32,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        let wanted = Wanted { path: "temperature", config: &config.policy(), device, seed };
        Ok(External { guard: Guard::new(externals, wanted)?, classes: config.classes.min(MAX_CLASSES) })
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}

impl TemperaturePolicy for External {
    fn classify(&mut self, written: Written) -> u8 {
        let class = self.guard.ask(|policy| policy.classify(written)).unwrap_or_default();
        self.guard.position(class.into(), self.classes as usize, "classes").unwrap_or_default() as u8
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        self.guard.save()
    }

    fn load(&mut self, _: &mut Reader) -> Result<(), StateError> {
        self.guard.save()
    }
}
