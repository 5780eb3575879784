//! The closed blocks of each plane as an array, for policies that draw at random.

use super::Candidates;
use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};

/// Candidates of each plane, in no particular but a deterministic order; adding, taking and drawing are O(1).
#[derive(Clone, Debug)]
pub struct Closed {
    members: Vec<Vec<BlockId>>,
}

impl Closed {
    /// No candidates.
    pub fn new(device: &DeviceConfig) -> Closed {
        // A clone of an empty array has no room.
        let room = |_| Vec::with_capacity(device.geometry.blocks as usize);
        Closed { members: (0..device.total_planes()).map(room).collect() }
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

    /// Writes the candidates of each plane in their order.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.members.iter().flatten().try_for_each(|block| out.u32(block.0))
    }

    /// Reads what [`Closed::save`] wrote, and tells of each candidate how many valid units it has.
    pub fn load(
        &mut self,
        input: &mut Reader,
        closed: Candidates,
        mut each: impl FnMut(BlockId, u16),
    ) -> Result<(), StateError> {
        let per_plane = closed.per_plane();
        closed.read(input, |_, block, valid| {
            each(block, valid as u16);
            self.insert(PlaneId(block.0 / per_plane), block);
            Ok(())
        })
    }
}
