//! No distinction between units.

use super::TemperaturePolicy;
use crate::config::DeviceConfig;
use crate::ftl::temperature::written::Written;
use crate::policy::Policy;

/// This policy has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingleConfig {}

/// A single class. Devices with one class do not build this policy: see [`Classes`](super::Classes).
#[derive(Clone, Debug)]
pub struct Single;

impl Policy for Single {
    type Config = SingleConfig;
    fn new(_: &SingleConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Single)
    }
}

impl TemperaturePolicy for Single {
    fn classify(&mut self, _: Written) -> u8 {
        0
    }
}
