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
            self.collect_pool(pool);
        }
    }

    /// Starts garbage collection in a pool in which no plane has room for a write, unless it starts by itself.
    ///
    /// The planes may be this full before the run, with no operation in flight whose end would start garbage
    /// collection.
    #[cold]
    fn collect_pool(&mut self, pool: u32) {
        let planes = (0..self.ftl.shape().planes).map(PlaneId);
        let of_pool = planes.filter(|&plane| self.ftl.allocation.pool_of(plane) == pool);
        // A LUN that becomes idle starts it with `gc.pace = "proportional"`.
        let waits = |plane| self.ftl.shape().paces && self.array.state(self.array.lun_of(plane)) != LunState::Idle;
        let rests = |plane| self.jobs[plane].is_idle() || self.jobs[plane].waits_for_idle_time(&self.ftl, plane);
        if of_pool.clone().all(|plane| rests(plane) && !waits(plane)) {
            let first = of_pool.clone().next();
            of_pool.for_each(|plane| self.tasks.push(Task::Clean(plane)));
            first.into_iter().for_each(|plane| self.collect_together(plane));
        }
    }

    /// Returns a write to its pool if its plane has room, but the block of the plane is no longer active. Units of the
    /// device itself stay.
    #[cold]
    pub(super) fn leaves_plane(&mut self, id: TransactionId, plane: PlaneId) -> bool {
        // The room may have gone since the last choice.
        self.ftl.refresh_ready(plane);
        let has_room = self.ftl.blocks.takes_host_write(plane);
        let leaves = has_room && !self.ftl.takes_pooled(plane) && !self.is_own(self.transactions[id].lpn);
        if leaves {
            self.put_back(id);
            self.tasks.push(Task::Offer(self.ftl.allocation.pool_of(plane)));
        }
        leaves
    }

    /// Offers the writes of pools in which another block has become active.
    #[cold]
    pub(super) fn offer_to_active(&mut self) {
        if let Some(active) = &mut self.ftl.active {
            active.changed.drain(..).for_each(|pool| self.tasks.push(Task::Offer(pool)));
        }
    }

    /// Returns a write that has lost its plane to the front of its pool.
    pub(super) fn put_back(&mut self, id: TransactionId) {
        let pool = self.ftl.pool(self.transactions[id].lpn);
        self.dispatch.put_back(&mut self.transactions, pool, id);
        self.observe_pooled(id);
    }
}
