//! Refresh: the blocks whose data are to be moved because their reads need many retries.
//!
//! The job of a plane (`gc/job.rs`) refreshes a block as it collects garbage: it evacuates the block, and has it
//! erased. Garbage collection goes first. A recovered or loaded device has no blocks that wait. Reads find them again.

use std::collections::VecDeque;

use super::space::{Block, BlockState, Role, Space};
use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, PlaneId};

/// Blocks that wait for their refresh.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// Number of retries of a read at or above which its block is refreshed.
    pub retries: u32,
    /// Blocks in the order in which reads have found them. Indexed by plane.
    waiting: Vec<VecDeque<BlockId>>,
    /// Erases of each listed block when it was found, plus one; 0 for other blocks. A block that was erased since waits
    /// no longer.
    found: Vec<u32>,
}

impl Refresh {
    /// Creates the refresh of a device. Returns `None` if the device has none.
    pub(super) fn new(device: &DeviceConfig) -> Option<Box<Refresh>> {
        let per_plane = device.geometry.blocks as usize;
        Some(Box::new(Refresh {
            retries: device.refresh()?.retries,
            waiting: vec![VecDeque::with_capacity(per_plane); device.total_planes() as usize],
            found: vec![0; device.total_blocks() as usize],
        }))
    }

    /// Has a block wait for its refresh. Returns `false` if it is not a closed block of data, or waits already.
    pub fn queue(&mut self, blocks: &Space, id: BlockId) -> bool {
        let block = blocks.block(id);
        if !is_refreshable(block) {
            return false;
        }
        let found = std::mem::replace(&mut self.found[id.index()], block.erases + 1);
        if found == 0 {
            self.waiting[blocks.plane_of(id).index()].push_back(id);
        }
        found != block.erases + 1
    }

    /// Returns `true` if blocks of a plane may wait for their refresh.
    pub fn has_waiting(&self, plane: PlaneId) -> bool {
        !self.waiting[plane.index()].is_empty()
    }

    /// Returns the block of a plane that is refreshed next. Forgets blocks that were collected in the meantime.
    pub fn first(&mut self, blocks: &Space, plane: PlaneId) -> Option<BlockId> {
        while let Some(&id) = self.waiting[plane.index()].front() {
            let block = blocks.block(id);
            if is_refreshable(block) && self.found[id.index()] == block.erases + 1 {
                return Some(id);
            }
            self.remove_first(plane);
        }
        None
    }

    /// Removes the first block of a plane from those that wait.
    pub fn remove_first(&mut self, plane: PlaneId) {
        if let Some(block) = self.waiting[plane.index()].pop_front() {
            self.found[block.index()] = 0;
        }
    }
}

/// Returns `true` if a block is closed and holds data.
fn is_refreshable(block: &Block) -> bool {
    block.state == BlockState::Closed && block.role == Role::Data
}
