//! Writes that any plane of a pool may take (dynamic allocation).

use super::Device;
use crate::nand::array::LunState;
use crate::sim::id::{PlaneId, TransactionId};
use crate::work::Task;

impl Device {
    /// Queues a write that any plane of a pool may take. It starts at once on an idle die of an idle channel, or waits
    /// for the first such die.
    pub(super) fn queue_anywhere(&mut self, id: TransactionId) {
        self.show_enqueued(id);
        let pool = self.ftl.pool(self.transactions[id].lpn);
        self.dispatch.pool_write(&mut self.transactions, &mut self.tasks, pool, id);
        self.observe_pooled(id);
        if !self.dispatch.pool_has_room(pool, self.ftl.ready()) {
            let array = &self.array;
            let die_is_idle = |plane| array.state(array.lun_of(plane)) == LunState::Idle;
            self.jobs.collect_pool(&mut self.ftl, &mut self.tasks, pool, die_is_idle);
        }
    }

    /// Returns a write to its pool if its plane has room, but the block of the plane is no longer active. Units of the
    /// device itself stay.
    #[cold]
    pub(super) fn leaves_plane(&mut self, id: TransactionId, plane: PlaneId) -> bool {
        // The room may have gone since the last choice.
        self.ftl.refresh_ready(plane);
        let has_room = self.ftl.blocks.takes_host_write(plane);
        let leaves = has_room && !self.ftl.takes_pooled(plane) && !self.ftl.is_own(self.transactions[id].lpn);
        if leaves {
            self.put_back(id);
            self.tasks.push(Task::Offer(self.ftl.allocation.pool_of(plane)));
        }
        leaves
    }

    /// Returns a write that has lost its plane to the front of its pool.
    pub(super) fn put_back(&mut self, id: TransactionId) {
        let pool = self.ftl.pool(self.transactions[id].lpn);
        self.dispatch.put_back(&mut self.transactions, pool, id);
        self.observe_pooled(id);
    }
}
