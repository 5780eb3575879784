//! Garbage collection in time: turns the steps of each plane's job (`ftl/gc/collector.rs`) into operations.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::dispatch;
use crate::ftl::gc::collector::{Action, Chosen};
use crate::ftl::mapping::call;
use crate::host::cores::Work;
use crate::nand::array::LunState;
use crate::sim::id::{PlaneId, TransactionId};
use crate::sim::time::Time;
use crate::work::{Fifo, Task};

impl Device {
    /// Takes the next step of garbage collection in a plane, if it is due and no step is in flight.
    // Usually no step is due.
    #[inline(always)]
    pub(super) fn clean(&mut self, plane: PlaneId) {
        if !self.ftl.collects_simply() {
            self.clean_otherwise(plane);
        } else if self.jobs.wants_step(&self.ftl, plane) {
            self.step(plane);
        }
    }

    #[inline(never)]
    fn clean_otherwise(&mut self, plane: PlaneId) {
        if self.ftl.keeps_data() {
            return self.journal_before_erase(); // The scheme frees blocks.
        }
        if !self.jobs.is_due(&mut self.ftl, &mut self.tasks, plane, self.now) {
            if self.ftl.shape().is_exclusive && self.jobs[plane].is_idle() {
                self.end_hold(plane); // The last program has emptied a failed block, which is not erased.
            }
            return;
        }
        let lun = self.array.lun_of(plane);
        let is_free = || self.array.state(lun) == LunState::Idle && dispatch::first_for(self, lun).is_none();
        if !self.jobs.yields_die(&self.ftl, plane) || is_free() {
            self.step(plane);
        }
    }

    /// Takes the next step in a plane's data blocks, then in its blocks of translation pages.
    pub(super) fn collect_data_and_map(&mut self, plane: PlaneId) {
        self.clean(plane);
        if self.ftl.shape().map_blocks > 0 {
            self.tasks.push(Task::CollectMap(plane));
        }
    }

    /// Continues garbage collection in all planes.
    pub(super) fn collect_all(&mut self) {
        for plane in (0..self.config.total_planes()).map(PlaneId) {
            self.jobs.collect_together(&mut self.ftl, &mut self.tasks, plane);
            self.clean(plane);
            self.run_tasks();
        }
    }

    /// Continues garbage collection in the remaining planes of a die. Runs the tasks of each plane before the next one.
    pub(super) fn collect_idle_rest(&mut self, mut planes: Range<u32>) {
        while let Some(plane) = planes.next().map(PlaneId) {
            if self.jobs.wants_step(&self.ftl, plane) {
                self.step(plane);
            }
            if self.tasks.any_new() {
                return self.tasks.push(Task::CollectIdle(planes.start, planes.end));
            }
        }
    }

    /// Makes garbage collection wait until a plane is at the hard threshold, or ends this, at `now`. An array uses it
    /// to let few members collect at the same time. The device must have processed all events up to `now`.
    pub fn hold_gc(&mut self, now: Time, held: bool) {
        debug_assert!(now >= self.now, "`now` is before the clock");
        self.now = self.now.max(now);
        self.dispatch.set_now(self.now);
        let is_idle_at = (self.interface.outstanding() == 0).then_some(self.now);
        self.jobs.hold(&mut self.ftl, &self.config, held, is_idle_at);
        self.collect_all();
    }

    /// Returns `true` if garbage collection in idle time waits for the end of [`Device::hold_gc`].
    pub fn waits_for_turn(&self) -> bool {
        self.jobs.waits_for_turn() && self.interface.outstanding() == 0
    }

    /// Sets the timers of idle time, if no request is outstanding.
    #[cold]
    pub(super) fn arm_idle_time(&mut self) {
        if self.interface.outstanding() == 0 {
            for (work, at) in self.jobs.start_idle_time(&self.ftl, &self.config, self.now) {
                Timer::of_idle(work).set_if(&mut self.array, at);
            }
        }
    }

    /// Chooses the next steps of garbage collection in a plane, and takes them until an operation has to end first.
    #[inline(never)]
    pub(super) fn step(&mut self, plane: PlaneId) {
        while let Some(chosen) = self.jobs.choose(&mut self.ftl, plane, self.now) {
            if chosen.has_victim {
                self.quiet.end();
            }
            call::collected(self, plane);
            if self.jobs.postpones(plane, chosen, self.tasks.any_new()) {
                return self.tasks.push(Task::ResumeHost(plane));
            }
            if !self.take_step(plane, chosen) {
                return;
            }
        }
        self.end_hold(plane);
    }

    /// Lets others use the channel that the moves of a plane's victim have held.
    pub(super) fn end_hold(&mut self, plane: PlaneId) {
        if let Some(channel) = self.array.release_channel(self.array.lun_of(plane)) {
            self.tasks.push(Task::Grant(channel));
        }
    }

    /// Executes a chosen step. Returns `true` if the next one can be chosen at once.
    #[inline(always)]
    pub(super) fn take_step(&mut self, plane: PlaneId, chosen: Chosen) -> bool {
        self.journal_before_erase();
        if self.ftl.shape().is_exclusive && self.jobs.ends_hold(&self.ftl, plane, chosen) {
            self.end_hold(plane);
        }
        match self.jobs.take(&self.ftl, &mut self.transactions, plane, chosen) {
            Action::Queue(operation) => {
                dispatch::enqueue(self, operation);
                // The other pages of the row are in other planes of the die.
                while let Some(beside) = self.jobs.read_beside(&mut self.ftl, &mut self.transactions, operation) {
                    dispatch::enqueue(self, beside);
                }
            }
            Action::Erase(block) => {
                self.erase(block);
                return true;
            }
            Action::Leave(block) => {
                if self.jobs.leave(&self.ftl, block) {
                    self.erase(block);
                }
                self.tasks.push(Task::Clean(self.ftl.blocks.plane_of(block)));
                return true;
            }
            Action::Choose => {
                let takes_time = self.queue_work(Work::Clean(plane));
                debug_assert!(takes_time, "a choice is a step only if it takes time");
            }
            Action::Rest => {
                self.retry_writes(plane);
                self.journal_for_resting();
            }
        }
        false
    }

    /// Drops units that were read for copying, or are to be moved by copy-back (`back`), and that were invalidated
    /// since. Part of a step of the job, which is busy.
    pub(super) fn drop_invalid(&mut self, plane: PlaneId, back: bool) {
        while let Some(from) = self.jobs.drop_invalid(&self.ftl, plane, back) {
            self.release(self.ftl.blocks.block_of(from));
            self.jobs.collect_in_plane_of(&self.ftl, &mut self.tasks, from, plane);
        }
    }

    /// Parks a write until an erase frees space in its plane. With dynamic allocation, the write returns to its pool.
    pub(super) fn stall(&mut self, id: TransactionId, plane: PlaneId) {
        if self.ftl.is_own(self.transactions[id].lpn) {
            return self.place_own(id);
        }
        if self.dispatch.has_pools() {
            self.put_back(id);
            return self.clean(plane);
        }
        self.dispatch.park(&mut self.transactions, plane, id);
        self.observe(move |observers, view| observers.stalled(view, id));
        self.clean(plane);
    }

    /// Returns as many parked writes to the front of their queue, in order, as fit into the plane.
    pub(super) fn unpark(&mut self, plane: PlaneId) {
        if self.dispatch.has_pools() {
            return self.tasks.push(Task::Offer(self.ftl.allocation.pool_of(plane)));
        }
        if !self.dispatch.has_parked(plane) || !self.ftl.blocks.takes_host_write(plane) {
            return;
        }
        let room = self.ftl.blocks.room_for_host(plane);
        let mut back = Fifo::default();
        let mut count = 0;
        let lun = self.array.lun_of(plane);
        for _ in 0..room {
            let id = self.dispatch.unpark(&mut self.transactions, plane);
            if id.is_none() {
                break;
            }
            back.push(&mut self.transactions, id);
            count += 1;
            self.observe(move |observers, view| observers.unparked(view, id, lun));
        }
        self.dispatch.prepend(&mut self.transactions, &mut self.tasks, (lun, plane), (back, count));
    }

    // Writes that any plane of a pool may take.

    /// Queues a write that any plane of a pool may take. It starts at once on an idle die of an idle channel, or waits
    /// for the first such die.
    pub(super) fn queue_anywhere(&mut self, id: TransactionId) {
        self.dispatch.note_queued(&mut self.array, id, self.now);
        let pool = self.ftl.pool(self.transactions[id].lpn);
        self.dispatch.pool_write(&mut self.transactions, &mut self.tasks, pool, id);
        self.observe(move |observers, view| observers.pooled(view, id));
        // All planes have no room during a burst, which ends by itself.
        if !self.dispatch.pool_has_room(pool, self.ftl.ready()) && !self.ftl.blocks.holds_host {
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
        self.observe(move |observers, view| observers.pooled(view, id));
    }
}
