//! No wear leveling.

use super::WearPolicy;
use crate::config::DeviceConfig;
use crate::policy::Policy;

/// This policy has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnleveledConfig {}

/// Opens the oldest free block and allows every victim. Devices without wear leveling do not build it.
#[derive(Clone, Debug)]
pub struct Unleveled;

impl Policy for Unleveled {
    type Config = UnleveledConfig;
    fn new(_: &UnleveledConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Unleveled)
    }
}

impl WearPolicy for Unleveled {}
