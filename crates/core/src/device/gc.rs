//! Garbage collection in time: queues the steps of each plane's job as transactions, which contend with all others.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::config::units::BlockCount;
use crate::dispatch;
use crate::ftl::gc::job::Step;
use crate::ftl::mapping::call;
use crate::ftl::space::Role;
use crate::host::cores::Work;
use crate::nand::array::LunState;
use crate::sim::id::{BlockId, PlaneId, Ppn, TransactionId};
use crate::sim::time::Time;
use crate::work::{Class, Fifo, Kind, Task, Transaction};

impl Device {
    /// Returns the scheduling class of garbage collection in a plane.
    pub(super) fn gc_class(&self, plane: PlaneId) -> Class {
        self.class_of_job(plane, self.gc_is_urgent(plane))
    }

    fn class_of_job(&self, plane: PlaneId, is_urgent: bool) -> Class {
        if is_urgent {
            Class::UrgentGc
        } else if self.jobs[plane].is_background {
            Class::BackgroundGc
        } else {
            Class::Gc
        }
    }

    /// Returns `true` if the host may soon have to wait for garbage collection of a plane.
    #[inline]
    fn gc_is_urgent(&self, plane: PlaneId) -> bool {
        if self.ftl.shape().paces {
            return self.is_behind(plane);
        }
        match &self.ftl.pools {
            Some(_) => self.ftl.blocks.free_together(self.collected_by(plane)) <= self.ftl.hard(),
            None => {
                self.ftl.blocks.free_blocks(plane, Role::Data) <= self.ftl.shape().hard
                    || self.ftl.blocks.waits_for_folding(plane)
            }
        }
    }

    /// Returns the plane whose garbage the job of `plane` collects: `plane`, unless units move to other planes.
    #[cold]
    fn collected_by(&self, plane: PlaneId) -> PlaneId {
        let moving = &self.jobs[plane].moving;
        let of_copies = moving.copies.first().map(|copy| self.ftl.blocks.block_of(copy.from));
        let block = of_copies.or(moving.block());
        block.map_or(plane, |block| self.ftl.blocks.plane_of(block))
    }

    /// Assigns victims to the jobs of the pool of a plane, as long as the pool needs more free blocks.
    #[cold]
    fn assign_victims(&mut self, plane: PlaneId) {
        while !self.ftl.is_read_only()
            && let Some(job) = self.ftl.assign_victim(plane, &self.jobs)
        {
            self.tasks.push(Task::Clean(job));
        }
    }

    /// Starts garbage collection in the pool of a plane, if it is due and planes are collected together.
    #[inline]
    pub(super) fn collect_together(&mut self, plane: PlaneId) {
        if self.ftl.pools.is_some() {
            self.assign_victims(plane);
            self.continue_resting(plane);
        }
    }

    /// Continues the jobs of the pool of a plane that have waited for more idle time and do not wait any longer.
    #[inline]
    fn continue_resting(&mut self, plane: PlaneId) {
        let Some(pools) = &mut self.ftl.pools else { return };
        if pools.set_resting(plane, false) {
            let planes = pools.of(plane);
            self.continue_resting_of(planes);
        }
    }

    #[cold]
    fn continue_resting_of(&mut self, planes: Range<u32>) {
        for plane in planes.map(PlaneId) {
            if !self.jobs[plane].rests {
                continue;
            }
            if self.jobs[plane].waits_for_idle_time(&self.ftl, plane) {
                self.ftl.pools.iter_mut().for_each(|pools| _ = pools.set_resting(plane, true));
            } else {
                self.jobs[plane].rests = false;
                self.tasks.push(Task::Clean(plane));
            }
        }
    }

    /// Returns `true` if a plane, or one that programs together with it, has to free space before the host takes more
    /// of it. Only with `gc.pace = "proportional"`.
    ///
    /// A plane far below its level, as after a change of the threshold, does not stop the host until it has caught up.
    /// Instead, garbage collection frees twice as much space as the host fills.
    fn is_behind(&self, plane: PlaneId) -> bool {
        self.ftl.shape().paces
            && self.dispatch.planes_together(plane).any(|plane| {
                let job = &self.jobs[plane];
                let blocks = &self.ftl.blocks;
                !blocks.takes_host_write(plane)
                    || (job.free_units(&self.ftl, plane) < self.ftl.pace_level()
                        && job.reclaimed < 2 * self.ftl.shape().units_per_program)
            })
    }

    /// Returns `true` if garbage collection of a plane leaves the die to the host, as it may with
    /// `gc.pace = "proportional"`.
    fn yields_die(&self, plane: PlaneId) -> bool {
        let lun = self.array.lun_of(plane);
        self.ftl.shape().paces
            && self.gc_class(plane) != Class::UrgentGc
            && !(self.array.state(lun) == LunState::Idle && dispatch::first_for(self, lun).is_none())
    }

    /// Continues garbage collection in the remaining planes of a die. Runs the tasks of each plane before the next one.
    pub(super) fn collect_idle_rest(&mut self, mut planes: Range<u32>) {
        while let Some(plane) = planes.next().map(PlaneId) {
            if self.wants_step(plane) {
                self.step(plane);
            }
            if self.tasks.any_new() {
                return self.tasks.push(Task::CollectIdle(planes.start, planes.end));
            }
        }
    }

    /// Continues garbage collection after a host program took space of a plane, with `gc.pace = "proportional"`.
    pub(super) fn collect_behind(&mut self, plane: PlaneId) {
        self.jobs[plane].reclaimed = 0;
        for plane in self.dispatch.planes_together(plane) {
            self.clean(plane);
        }
    }

    /// Makes garbage collection wait until a plane is at the hard threshold, or ends this, at `now`. An array uses it
    /// to let few members collect at the same time. The device must have processed all events up to `now`.
    ///
    /// Idle time continues during a hold, but garbage collection in idle time waits.
    pub fn hold_gc(&mut self, now: Time, held: bool) {
        debug_assert!(now >= self.now, "`now` is before the clock");
        self.now = self.now.max(now);
        self.dispatch.set_now(self.now);
        let is_idle = self.outstanding() == 0 && self.idle.from <= self.now;
        let is_collecting = (0..self.config.total_planes()).any(|plane| !self.jobs[PlaneId(plane)].is_idle());
        let resumes = !held && is_idle && self.idle.waits;
        (self.idle.is_held, self.idle.waits) = (held, held && is_idle && is_collecting);
        // If it has come to rest in an earlier turn, it would find the same blocks again.
        let background = self.config.gc.background.as_ref().filter(|_| resumes);
        let until = background.map_or(BlockCount::Blocks(0), |background| background.until);
        if !held {
            self.jobs.iter_mut().for_each(|job| job.takes_turns = true);
        }
        self.ftl.hold_gc(&self.config, held);
        self.ftl.collect_below(&self.config, until);
        self.collect_all();
    }

    /// Returns `true` if garbage collection in idle time waits for the end of [`Device::hold_gc`].
    pub fn waits_for_turn(&self) -> bool {
        self.idle.waits && self.outstanding() == 0
    }

    /// Continues garbage collection in all planes.
    fn collect_all(&mut self) {
        for plane in (0..self.config.total_planes()).map(PlaneId) {
            self.collect_together(plane);
            self.clean(plane);
            self.run_tasks();
        }
    }

    /// Sets the timers of idle time, if no request is outstanding.
    #[inline]
    pub(super) fn arm_idle_time(&mut self) {
        if self.idle.is_used && self.outstanding() == 0 {
            self.arm_background();
            self.arm_folding();
        }
    }

    /// Sets the timer of garbage collection in idle time.
    #[cold]
    fn arm_background(&mut self) {
        if let Some(background) = &self.config.gc.background {
            (self.idle.from, self.idle.waits) = (self.now.later(background.idle.time()), false);
            self.set_timer(Timer::Background, self.idle.from);
        }
    }

    /// Starts garbage collection in idle time, unless a request is outstanding. Waits for the end of a hold.
    pub(super) fn background_event(&mut self) {
        if let Some(background) = &self.config.gc.background
            && self.outstanding() == 0
        {
            self.idle.waits = self.idle.is_held;
            if !self.idle.waits {
                self.ftl.collect_below(&self.config, background.until);
                self.collect_all();
            }
        }
    }

    /// Sets the timer of folding in idle time, if a block is full.
    fn arm_folding(&mut self) {
        if let Some(folding) = &self.ftl.folding
            && let Some(idle) = folding.idle
            && self.ftl.has_full_cache()
        {
            self.set_timer(Timer::Fold, self.now.later(idle));
        }
    }

    /// Starts folding in idle time, unless a request is outstanding.
    pub(super) fn fold_event(&mut self) {
        if self.outstanding() > 0 {
            return;
        }
        if let Some(folding) = &mut self.ftl.folding {
            folding.is_idle = true;
            self.collect_all();
        }
    }

    /// Ends idle time, because a request has arrived.
    #[inline]
    pub(super) fn end_idle_time(&mut self) {
        if self.idle.is_used {
            self.end_idle_work();
        }
    }

    #[cold]
    fn end_idle_work(&mut self) {
        if let Some(folding) = &mut self.ftl.folding {
            folding.is_idle = false;
        }
        if self.ftl.shape().until > 0 {
            self.ftl.collect_below(&self.config, BlockCount::Blocks(0));
        }
    }

    /// Updates the set of planes that accept host writes after a block was taken, and starts garbage collection if it
    /// is due.
    pub(super) fn block_taken(&mut self, plane: PlaneId) {
        self.ftl.refresh_ready(plane);
        self.collect_together(plane);
        self.clean(plane);
    }

    /// Takes the next step of garbage collection in a plane, if it is due and no step is in flight.
    #[inline]
    pub(super) fn clean(&mut self, plane: PlaneId) {
        if self.ftl.keeps_data() {
            return self.journal_before_erase(); // The scheme frees blocks.
        }
        if let Some(pools) = &self.ftl.pools {
            if pools.lacks(plane) {
                self.assign_victims(plane);
            }
            self.continue_resting(plane);
        }
        if self.wants_step(plane) && !self.yields_die(plane) {
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

    /// Returns `true` if garbage collection of a plane has something to do and nothing of it is in flight.
    #[inline(always)]
    fn wants_step(&self, plane: PlaneId) -> bool {
        let job = &self.jobs[plane];
        let is_due = || match &self.ftl.pools {
            Some(pools) => pools.assigned(plane).is_some(),
            None => self.ftl.blocks.free_blocks(plane, Role::Data) <= self.ftl.shape().due,
        };
        // Most calls come while an operation is in flight.
        let has_other = || self.ftl.shape().evacuates_others && self.ftl.has_other_work(plane);
        !job.busy && (!job.is_idle() || is_due() || has_other())
    }

    /// Continues garbage collection after the firmware has spent the time to choose a block.
    pub(super) fn collect_now(&mut self, plane: PlaneId) {
        let job = &mut self.jobs[plane];
        (job.busy, job.granted) = (false, true);
        self.step(plane);
    }

    /// Returns `true` if the job of a plane waits for more idle time, and notes that.
    #[inline]
    fn rests(&mut self, plane: PlaneId) -> bool {
        self.ftl.shape().preempts && self.rests_now(plane)
    }

    #[cold]
    fn rests_now(&mut self, plane: PlaneId) -> bool {
        let rests = self.jobs[plane].waits_for_idle_time(&self.ftl, plane);
        self.jobs[plane].rests = rests;
        if let Some(pools) = self.ftl.pools.as_mut().filter(|_| rests) {
            pools.set_resting(plane, true);
        }
        rests
    }

    /// Chooses the next steps of garbage collection in a plane, and takes them until an operation has to end first.
    fn step(&mut self, plane: PlaneId) {
        // On a read-only device, data stay at their addresses.
        while !self.ftl.is_read_only() {
            let is_urgent = self.gc_is_urgent(plane);
            let victims = self.ftl.counters.victims;
            let step = if self.rests(plane) { Step::Rest } else { self.jobs[plane].next_step(&mut self.ftl, plane) };
            for _ in victims..self.ftl.counters.victims {
                self.collections.start(self.now);
                self.note_progress();
            }
            let class = self.class_of_job(plane, is_urgent);
            // An idle job may be needed again by the tasks of this step.
            self.jobs[plane].busy = step != Step::Rest;
            call::collected(self, plane);
            if self.tasks.any_new() || self.jobs[plane].made_room {
                self.jobs[plane].coming = Some((step, class));
                return self.tasks.push(Task::ResumeHost(plane));
            }
            if !self.take_step(plane, step, class) {
                return;
            }
        }
    }

    /// Lets the host use the space that the choice of a step has freed, then continues with the step.
    pub(super) fn resume_host_first(&mut self, plane: PlaneId) {
        self.resume_host_writes(plane);
        if self.tasks.any_new() { self.tasks.push(Task::Step(plane)) } else { self.continue_step(plane) }
    }

    /// Continues garbage collection in a plane, after all tasks of its last step.
    pub(super) fn continue_step(&mut self, plane: PlaneId) {
        if let Some((step, class)) = self.jobs[plane].coming.take()
            && self.take_step(plane, step, class)
        {
            self.step(plane);
        }
    }

    /// Executes a chosen step. Returns `true` if the next one can be chosen at once.
    fn take_step(&mut self, plane: PlaneId, step: Step, class: Class) -> bool {
        self.journal_before_erase();
        // A choice that was granted during a hold is made after it. Otherwise, turns that are shorter than a choice
        // would never end one.
        let is_kept = matches!(step, Step::Erase(_)) || (step == Step::Rest && self.idle.is_held);
        if !is_kept {
            self.jobs[plane].granted = false;
        }
        let (kind, ppn, units) = match step {
            Step::Rest => {
                self.retry_writes(plane);
                self.journal_for_resting();
                return false;
            }
            Step::Choose => {
                let takes_time = self.queue_work(Work::Clean(plane));
                debug_assert!(takes_time, "a choice is a step only if it takes time");
                return false;
            }
            Step::Erase(block) => {
                self.erase(block);
                self.jobs[plane].busy = false;
                return true;
            }
            Step::Leave(block) => {
                self.await_erase_in_own_plane(block);
                self.jobs[plane].busy = false;
                return true;
            }
            Step::Write => (Kind::GcWrite, Ppn(0), 1),
            Step::CopyBack { first } => (Kind::CopyBack, first, self.jobs[plane].moving.back.len() as u16),
            Step::Read { first, units } => {
                let spans = self.ftl.shape().pages_per_unit;
                (Kind::GcRead, first, if spans > 1 { spans as u16 } else { units as u16 })
            }
        };
        let mut transaction = Transaction::new(kind, class);
        (transaction.plane, transaction.ppn, transaction.units) = (plane, ppn, units);
        if kind == Kind::GcRead {
            transaction = transaction.of_job(plane);
            if self.ftl.pools.is_some() {
                transaction.plane = self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn));
            }
        }
        self.dispatch(transaction);
        false
    }

    /// Has a block await its erase in its own plane, after the job of another plane has read it.
    fn await_erase_in_own_plane(&mut self, block: BlockId) {
        let plane = self.ftl.blocks.plane_of(block);
        let failed = self.ftl.blocks.block(block).failed;
        let job = &mut self.jobs[plane];
        *(if failed { &mut job.leaving } else { &mut job.awaiting_erase }) += 1;
        if self.ftl.blocks.can_erase(block) {
            self.erase(block);
        } else {
            self.jobs[plane].held += u32::from(self.ftl.faults.is_some() && !failed);
        }
        self.tasks.push(Task::Clean(plane));
    }

    /// Handles the end of a read of a victim's page.
    pub(super) fn finish_gc_read(&mut self, id: TransactionId) {
        let plane = self.transactions[id].job();
        self.check_gc_read(id);
        self.transactions.remove(id);
        self.drop_invalid_copies(plane);
        self.jobs[plane].busy = false;
        self.clean(plane);
    }

    /// Drops units that were read for copying and invalidated since. Part of a step of the job, which is busy.
    pub(super) fn drop_invalid_copies(&mut self, plane: PlaneId) {
        debug_assert!(self.jobs[plane].busy);
        let mut index = 0;
        while let Some(copy) = self.jobs[plane].moving.copies.get(index).copied() {
            if self.ftl.blocks.is_valid(copy.from) {
                index += 1;
                continue;
            }
            self.jobs[plane].moving.copies.remove(index);
            let victim: BlockId = self.ftl.blocks.block_of(copy.from);
            self.release(victim);
            self.collect_in_plane_of(copy.from, plane);
        }
    }

    /// Continues garbage collection in the plane of a unit after the job of another plane has moved or dropped it.
    #[inline]
    pub(super) fn collect_in_plane_of(&mut self, from: Ppn, job: PlaneId) {
        if self.ftl.pools.is_some() {
            let plane = self.ftl.blocks.plane_of(self.ftl.blocks.block_of(from));
            if plane != job {
                self.tasks.push(Task::Clean(plane));
            }
        }
    }

    /// Drops units of the page to be moved by copy-back that were invalidated since it was chosen.
    pub(super) fn drop_invalid_back(&mut self, plane: PlaneId) {
        let mut index = 0;
        while let Some(copy) = self.jobs[plane].moving.back.get(index).copied() {
            if self.ftl.blocks.is_valid(copy.from) {
                index += 1;
                continue;
            }
            self.jobs[plane].moving.back.remove(index);
            let victim: BlockId = self.ftl.blocks.block_of(copy.from);
            self.release(victim);
        }
    }

    /// Parks a write until an erase frees space in its plane. With dynamic allocation, the write returns to its pool.
    pub(super) fn stall(&mut self, id: TransactionId, plane: PlaneId) {
        if self.is_own(self.transactions[id].lpn) {
            return self.place_own(id);
        }
        if self.dispatch.has_pools() {
            self.put_back(id);
            return self.clean(plane);
        }
        self.dispatch.park(&mut self.transactions, plane, id);
        self.observe_stalled(id);
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
            self.observe_unparked(id, lun);
        }
        self.put_first(plane, (back, count));
    }

    /// Queues parked writes, which have room now, before the other writes of their plane. `writes` has their number
    /// too.
    pub(super) fn put_first(&mut self, plane: PlaneId, writes: (Fifo, u32)) {
        let lun = self.array.lun_of(plane);
        self.dispatch.prepend(&mut self.transactions, (lun, plane), writes);
        self.tasks.push(Task::Start(lun));
    }
}
