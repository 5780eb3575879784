//! Nothing is told apart.

use super::TemperaturePolicy;
use crate::config::DeviceConfig;
use crate::ftl::temperature::written::Written;
use crate::policy::Policy;

/// There are no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingleConfig {}

/// One class, which no device asks for: see [`Classes`](super::Classes).
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
