//! Dynamic wear leveling: free blocks are opened in the order of their erases.

use super::{Needs, WearPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::FreeOrder;
use crate::policy::Policy;

/// This policy has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeastErasedConfig {}

/// Opens the free block with the fewest erases. Blocks with cold data are never free, so they keep their erases.
#[derive(Clone, Debug)]
pub struct LeastErased;

impl Policy for LeastErased {
    type Config = LeastErasedConfig;
    fn new(_: &LeastErasedConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(LeastErased)
    }
}

impl WearPolicy for LeastErased {
    fn needs(&self) -> Needs {
        Needs { free: FreeOrder::FewestErases, ..Needs::default() }
    }
}
