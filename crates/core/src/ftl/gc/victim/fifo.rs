//! FIFO victims: the block that was closed first.

use super::{Index, VictimPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;
use crate::policy::Policy;
use crate::sim::id::BlockId;

/// FIFO has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FifoConfig {}

/// Takes the block that was closed first, as garbage collection of a circular log does. It may take a block without
/// invalid units, which frees nothing.
#[derive(Clone, Debug)]
pub struct Fifo;

impl Policy for Fifo {
    type Config = FifoConfig;
    fn new(_: &FifoConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Fifo)
    }
}

impl VictimPolicy for Fifo {
    fn index(&self) -> Index {
        Index::Closing
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        view.first_closed()
    }
}
