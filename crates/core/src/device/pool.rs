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

    /// Returns a write that has lost its plane to the front of its pool.
    pub(super) fn put_back(&mut self, id: TransactionId) {
        let pool = self.ftl.pool(self.transactions[id].lpn);
        self.dispatch.put_back(&mut self.transactions, pool, id);
        self.observe_pooled(id);
    }
}
