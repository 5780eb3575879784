//! Explanation of a device on which nothing completes: what waits for what.

use super::Device;
use crate::cache::Buffer;
use crate::durability::Durability;
use crate::ftl::space::{BlockState, Role};
use crate::sim::id::{BlockId, PlaneId};

impl Device {
    /// Explains why outstanding requests do not complete, which is a bug in the model: what waits for what.
    pub fn explain_stall(&self) -> String {
        let planes = (0..self.config.total_planes()).map(PlaneId);
        let stalled: Vec<String> =
            planes.filter(|&plane| self.dispatch.has_parked(plane)).map(|plane| self.describe_plane(plane)).collect();
        format!(
            "{} requests in the device, {} at the host, {} waiting for write slots ({} free), writes waiting for a \
             free block in: {}; writes waiting for any plane: {}; units waiting for room in the buffer: {}; {}; {}; {}; {}",
            self.interface.in_progress(),
            self.interface.waiting(),
            self.interface.unadmitted.len(),
            self.slots_free,
            if stalled.is_empty() { "none".to_owned() } else { stalled.join(", ") },
            self.dispatch.has_pooled(),
            self.buffer().map_or(0, Buffer::waiting),
            self.describe_awaiting_erase(),
            self.ftl.scheme().report(&self.ftl).outstanding,
            self.durability.as_ref().map_or_else(|| "no journal".to_owned(), |durability| durability.describe()),
            if self.ftl.is_read_only() { "read-only" } else { "not read-only" },
        )
    }

    /// Describes the free blocks of a plane and its garbage collection.
    fn describe_plane(&self, plane: PlaneId) -> String {
        let (blocks, job) = (&self.ftl.blocks, &self.jobs[plane]);
        let victim = job.moving.block().map_or_else(|| "no victim".to_owned(), |block| format!("victim {}", block.0));
        format!(
            "plane {} ({} of {} blocks free, {} read units without an address, {victim})",
            plane.0,
            blocks.free_blocks(plane, Role::Data),
            self.config.geometry.blocks,
            job.moving.copies.len(),
        )
    }

    /// Describes the blocks whose erase has to wait.
    fn describe_awaiting_erase(&self) -> String {
        let blocks = self.ftl.blocks.all().iter().zip(0..);
        let awaiting = blocks.filter(|(block, _)| block.state == BlockState::AwaitingErase);
        let texts: Vec<String> = awaiting
            .map(|(block, number)| {
                let holds = |durability: &Durability| durability.holds(BlockId(number));
                if self.durability.as_deref().is_some_and(holds) {
                    format!("block {number} for {} operations, with records of trims", block.dependents)
                } else {
                    format!("block {number} for {} operations", block.dependents)
                }
            })
            .collect();
        if texts.is_empty() {
            "no block awaits its erase".to_owned()
        } else {
            format!("erases wait: {}", texts.join(", "))
        }
    }
}
