//! The closed blocks of each plane as an array, for policies that draw at random.

use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, PlaneId};

/// Candidates of each plane, in no particular but a deterministic order; adding, taking and drawing are O(1).
#[derive(Clone, Debug)]
pub struct Closed {
    members: Vec<Vec<BlockId>>,
}

impl Closed {
    /// No candidates.
    pub fn new(device: &DeviceConfig) -> Closed {
        Closed { members: vec![Vec::with_capacity(device.geometry.blocks as usize); device.total_planes() as usize] }
    }

    /// Adds a candidate.
    pub fn insert(&mut self, plane: PlaneId, block: BlockId) {
        self.members[plane.index()].push(block);
    }

    /// The candidates of `plane`.
    pub fn of(&self, plane: PlaneId) -> &[BlockId] {
        &self.members[plane.index()]
    }

    /// Takes the candidate at `position` out; the last one takes its place.
    pub fn take(&mut self, plane: PlaneId, position: usize) -> BlockId {
        self.members[plane.index()].swap_remove(position)
    }
}
