//! FIFO: the block that was closed first.

use std::collections::VecDeque;

use super::{Candidates, VictimPolicy};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};

/// FIFO has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FifoConfig {}

/// Takes the block that was closed first, as a log cleaner that goes round the disk. It may take a block without a
/// superseded unit: that gains nothing, and is what the policy does.
#[derive(Clone, Debug)]
pub struct Fifo {
    order: Vec<VecDeque<BlockId>>,
    blocks_per_plane: u32,
}

impl Policy for Fifo {
    type Config = FifoConfig;
    fn new(_: &FifoConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let per_plane = device.geometry.blocks;
        let order = (0..device.total_planes()).map(|_| VecDeque::with_capacity(per_plane as usize)).collect();
        Ok(Fifo { order, blocks_per_plane: per_plane })
    }
}

impl VictimPolicy for Fifo {
    fn on_close(&mut self, block: BlockId, _: u32, _: u64) {
        self.order[(block.0 / self.blocks_per_plane) as usize].push_back(block);
    }

    fn on_invalidate(&mut self, _: BlockId, _: u32, _: u64) {}

    fn take(&mut self, plane: PlaneId, _: u64) -> Option<BlockId> {
        self.order[plane.index()].pop_front()
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.order.iter().flatten().try_for_each(|block| out.u32(block.0))
    }

    fn load(&mut self, input: &mut Reader, closed: Candidates) -> Result<(), StateError> {
        closed.read(input, |_, block, _| {
            self.order[(block.0 / self.blocks_per_plane) as usize].push_back(block);
            Ok(())
        })
    }
}
