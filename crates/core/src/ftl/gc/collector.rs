//! Garbage collection in time: decides when a plane takes a step, and which one. The router turns each step into an
//! operation, which contends with all others.

use std::ops::{Index, IndexMut, Range};

use super::burst::Bursts;
use super::idle::{Idle, IdleWork};
use super::job::{Job, Step};
use crate::config::DeviceConfig;
use crate::config::advanced::Waste;
use crate::config::units::BlockCount;
use crate::ftl::Ftl;
use crate::ftl::space::{BlockState, Claim, Role};
use crate::metrics::collections::{CollectionCounts, Collections};
use crate::sim::id::{BlockId, PlaneId, Ppn, TransactionId};
use crate::sim::memory::Divider;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::{Class, Kind, Task, Tasks, Transaction, Transactions};

/// Step that was chosen.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    step: Step,
    class: Class,
    /// True if a victim was chosen for it.
    pub has_victim: bool,
}

/// Consequence of a chosen step.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// An operation, which has to end before the next step.
    Queue(TransactionId),
    /// The erase of a block, then the next step.
    Erase(BlockId),
    /// The erase of a block of another plane when it has no dependents, then the next steps of both planes.
    Leave(BlockId),
    /// Time of the firmware to choose a victim. See [`Collector::grant`].
    Choose,
    /// No operation: no step can be taken now.
    Rest,
}

/// Consequence of the end of an operation on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// No erase yet.
    Kept,
    /// The erase of the block, or its retirement.
    Erase,
    /// Writes of a plane that wait for room may have some now, because they are all that a block waits for.
    Retry(PlaneId),
}

/// Garbage collection of all planes.
#[derive(Clone, Debug)]
pub struct Collector {
    /// Job of each plane.
    jobs: Table<PlaneId, Job>,
    counts: Collections,
    idle: Idle,
    /// `None` without bursts of the whole device.
    bursts: Option<Box<Bursts>>,
    /// True if jobs may wait for more idle time, or for the next burst.
    may_rest: bool,
    /// True if a burst lets the host continue, and the host writes that waited for it have not been queued again.
    resumes_all: bool,
    /// Number of planes whose pages are programmed together.
    together: Divider,
}

impl Index<PlaneId> for Collector {
    type Output = Job;

    #[inline]
    fn index(&self, plane: PlaneId) -> &Job {
        &self.jobs[plane]
    }
}

impl IndexMut<PlaneId> for Collector {
    #[inline]
    fn index_mut(&mut self, plane: PlaneId) -> &mut Job {
        &mut self.jobs[plane]
    }
}

impl Collector {
    /// Creates idle jobs for all planes.
    pub fn new(device: &DeviceConfig) -> Collector {
        let firmware = device.controller.firmware.as_ref();
        let choices_take_time = firmware.is_some_and(|firmware| firmware.gc.time(firmware.clock) > Time::ZERO);
        let is_alone = device.nand.advanced.multi_plane_program == Waste::Off;
        Collector {
            jobs: Table::new(device.total_planes(), Job::new(choices_take_time)),
            counts: Collections::new(device.total_planes(), device.planes_per_package()),
            idle: Idle::new(device),
            bursts: Bursts::new(device),
            may_rest: device.programs_of_burst().is_some()
                || device.gc.background.as_ref().is_some_and(|background| background.preempt),
            resumes_all: false,
            together: Divider::new(if is_alone { 1 } else { device.planes_per_group() }),
        }
    }

    /// Returns the scheduling class of garbage collection in a plane.
    pub fn class(&self, ftl: &Ftl, plane: PlaneId) -> Class {
        self.class_of_job(plane, self.is_urgent(ftl, plane))
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
    fn is_urgent(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        if ftl.collects_simply() {
            ftl.blocks.free_blocks(plane, Role::Data) <= ftl.shape().hard || ftl.blocks.waits_for_folding(plane)
        } else {
            self.is_urgent_otherwise(ftl, plane)
        }
    }

    #[inline(never)]
    fn is_urgent_otherwise(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        if ftl.shape().paces {
            return self.is_behind(ftl, plane);
        }
        if ftl.shape().is_exclusive {
            return !self.jobs[plane].is_background;
        }
        if let Some(bursts) = &self.bursts {
            return bursts.is_urgent(ftl, self.jobs[plane].has_turn) || !ftl.blocks.has_host_room(plane);
        }
        match &ftl.pools {
            Some(_) => ftl.blocks.free_together(self.collected_by(ftl, plane)) <= ftl.hard(),
            None => {
                ftl.blocks.free_blocks(plane, Role::Data) <= ftl.shape().hard || ftl.blocks.waits_for_folding(plane)
            }
        }
    }

    /// Returns the plane whose garbage the job of `plane` collects: `plane`, unless units move to other planes.
    #[cold]
    fn collected_by(&self, ftl: &Ftl, plane: PlaneId) -> PlaneId {
        let moving = &self.jobs[plane].moving;
        let of_copies = moving.copies.first().map(|copy| ftl.blocks.block_of(copy.from));
        let block = of_copies.or(moving.block());
        block.map_or(plane, |block| ftl.blocks.plane_of(block))
    }

    /// Returns the planes whose pages are programmed together with those of `plane`, itself included.
    fn planes_together(&self, plane: PlaneId) -> Range<u32> {
        let first = plane.0 - self.together.divide_with_rest(plane.0).1;
        first..first + self.together.divisor()
    }

    /// Returns `true` if a plane, or one that programs together with it, has to free space before the host takes more
    /// of it. Only with `gc.pace = "proportional"`.
    ///
    /// A plane far below its level, as after a change of the threshold, does not stop the host until it has caught up.
    /// Instead, garbage collection frees twice as much space as the host fills.
    fn is_behind(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        self.planes_together(plane).map(PlaneId).any(|plane| {
            let job = &self.jobs[plane];
            !ftl.blocks.takes_host_write(plane)
                || (job.free_units(ftl, plane) < ftl.pace_level() && job.reclaimed < 2 * ftl.shape().units_per_program)
        })
    }

    /// Returns `true` if garbage collection of a plane leaves a die that is in use to the host, as it may with
    /// `gc.pace = "proportional"`.
    #[inline]
    pub fn yields_die(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        ftl.shape().paces && self.class(ftl, plane) != Class::UrgentGc
    }

    /// Notes that a host program took space of a plane. Returns the planes in which garbage collection continues, which
    /// are some with `gc.pace = "proportional"`, and all if a burst starts.
    #[inline]
    pub fn note_taken(&mut self, ftl: &mut Ftl, plane: PlaneId, now: Time) -> impl Iterator<Item = PlaneId> + use<> {
        let planes = if ftl.collects_simply() { 0..0 } else { self.note_taken_otherwise(ftl, plane, now) };
        planes.map(PlaneId)
    }

    #[inline(never)]
    fn note_taken_otherwise(&mut self, ftl: &mut Ftl, plane: PlaneId, now: Time) -> Range<u32> {
        if ftl.shape().paces {
            self.jobs[plane].reclaimed = 0;
            return self.planes_together(plane);
        }
        let Some(bursts) = &mut self.bursts else { return 0..0 };
        bursts.count(ftl, &self.jobs, plane);
        bursts.spend(ftl);
        let starts = bursts.is_due(ftl) && bursts.start(ftl, &self.jobs, now);
        0..if starts { ftl.shape().planes } else { 0 }
    }

    // Bursts.

    /// Returns `true` if a plane may take a step with bursts. If the plane has no room for the host, it joins a burst
    /// in progress, or starts one.
    #[inline(never)]
    fn is_due_with_bursts(&mut self, ftl: &mut Ftl, tasks: &mut Tasks, plane: PlaneId, now: Time) -> bool {
        let job = &self.jobs[plane];
        let Some(bursts) = self.bursts.as_mut().filter(|_| !job.busy && !ftl.is_read_only()) else { return false };
        if job.has_turn || !job.needs_turn(ftl) {
            return true;
        }
        let lacks_room = !bursts.has_turn_for(plane) && job.lacks_room(ftl, plane);
        if lacks_room && bursts.is_under_way() {
            bursts.join(plane);
        } else if lacks_room && bursts.start(ftl, &self.jobs, now) {
            let others = (0..ftl.shape().planes).map(PlaneId).filter(|&other| other != plane);
            others.for_each(|other| tasks.push(Task::Clean(other)));
        }
        bursts.has_turn_for(plane) || !self.jobs[plane].pauses() || ftl.has_other_work(plane)
    }

    /// Gives a turn to a job that needs one. Returns `true` if there is none, and the job waits for the next burst. A
    /// job with other blocks to evacuate first finishes its victim.
    fn waits_for_burst(&mut self, ftl: &mut Ftl, plane: PlaneId, now: Time) -> bool {
        let job = &mut self.jobs[plane];
        let Some(bursts) = self.bursts.as_mut().filter(|_| !job.has_turn && job.needs_turn(ftl)) else {
            return false;
        };
        job.has_turn = bursts.has_turn_for(plane);
        if job.has_turn {
            self.resumes_all |= bursts.take(ftl, now);
            return false;
        }
        let waits = !ftl.has_other_work(plane);
        if waits {
            job.moving.unread(ftl);
        }
        waits
    }

    /// Ends the turn of a job with the step that takes the units to be programmed. A job that cannot take a step leaves
    /// the burst.
    #[inline(never)]
    fn note_step(&mut self, ftl: &mut Ftl, plane: PlaneId, step: Step, now: Time) {
        let Some(bursts) = &mut self.bursts else { return };
        bursts.count(ftl, &self.jobs, plane);
        let job = &mut self.jobs[plane];
        if matches!(step, Step::Write | Step::CopyBack { .. } | Step::Rest) {
            job.has_turn = false;
        }
        self.resumes_all |= step == Step::Rest && bursts.leave(ftl, plane, now);
    }

    /// Returns `true` if a half-collected victim waits for the next burst.
    pub fn has_victims(&self) -> bool {
        self.bursts.is_some() && self.jobs.iter().any(|job| job.moving.block().is_some())
    }

    /// Collects the rest of the victims that wait for the next burst without time.
    pub fn finish_victims(&mut self, ftl: &mut Ftl, now: Time) {
        let Some(bursts) = &mut self.bursts else { return };
        bursts.forget();
        for victim in self.jobs.iter_mut().filter_map(|job| job.moving.end()) {
            ftl.finish_victim(victim);
            self.counts.stop(now);
        }
    }

    // Pools of planes.

    /// Assigns victims to the jobs of the pool of a plane, as long as the pool needs more free blocks.
    #[cold]
    fn assign_victims(&self, ftl: &mut Ftl, tasks: &mut Tasks, plane: PlaneId) {
        while !ftl.is_read_only()
            && let Some(planes) = ftl.assign_victim(plane, &self.jobs)
        {
            planes.for_each(|plane| tasks.push(Task::Clean(PlaneId(plane))));
        }
    }

    /// Starts garbage collection in the pool of a plane, if it is due and planes are collected together.
    #[inline]
    pub fn collect_together(&mut self, ftl: &mut Ftl, tasks: &mut Tasks, plane: PlaneId) {
        if ftl.pools.is_some() {
            self.assign_victims(ftl, tasks, plane);
            self.continue_resting(ftl, tasks, plane);
        }
    }

    /// Continues the jobs of the pool of a plane that have waited for more idle time and do not wait any longer.
    #[inline]
    fn continue_resting(&mut self, ftl: &mut Ftl, tasks: &mut Tasks, plane: PlaneId) {
        let Some(pools) = &mut ftl.pools else { return };
        if pools.set_resting(plane, false) {
            let planes = pools.of(plane);
            self.continue_resting_of(ftl, tasks, planes);
        }
    }

    #[cold]
    fn continue_resting_of(&mut self, ftl: &mut Ftl, tasks: &mut Tasks, planes: Range<u32>) {
        for plane in planes.map(PlaneId) {
            if !self.jobs[plane].rests {
                continue;
            }
            if self.jobs[plane].waits_for_idle_time(ftl, plane) {
                ftl.pools.iter_mut().for_each(|pools| _ = pools.set_resting(plane, true));
            } else {
                self.jobs[plane].rests = false;
                tasks.push(Task::Clean(plane));
            }
        }
    }

    /// Starts garbage collection in a pool of the allocation in which no plane has room for a write, unless it starts
    /// by itself. `die_is_idle` returns `true` if the die of a plane is idle.
    ///
    /// The planes may be this full before the run, with no operation in flight whose end would start garbage
    /// collection.
    #[cold]
    pub fn collect_pool(&mut self, ftl: &mut Ftl, tasks: &mut Tasks, pool: u32, die_is_idle: impl Fn(PlaneId) -> bool) {
        let planes = (0..ftl.shape().planes).map(PlaneId);
        let of_pool = planes.filter(|&plane| ftl.allocation.pool_of(plane) == pool);
        // A LUN that becomes idle starts it with `gc.pace = "proportional"`.
        let waits = |plane| ftl.shape().paces && !die_is_idle(plane);
        let rests = |plane| {
            let job: &Job = &self.jobs[plane];
            job.is_idle() || (self.bursts.is_some() && job.pauses()) || job.waits_for_idle_time(ftl, plane)
        };
        if of_pool.clone().all(|plane| rests(plane) && !waits(plane)) {
            let first = of_pool.clone().next();
            of_pool.for_each(|plane| tasks.push(Task::Clean(plane)));
            first.into_iter().for_each(|plane| self.collect_together(ftl, tasks, plane));
        }
    }

    /// Continues garbage collection in the plane of a unit after the job of another plane has moved or dropped it.
    #[inline]
    pub fn collect_in_plane_of(&self, ftl: &Ftl, tasks: &mut Tasks, from: Ppn, job: PlaneId) {
        if ftl.pools.is_some() {
            let plane = ftl.blocks.plane_of(ftl.blocks.block_of(from));
            if plane != job {
                tasks.push(Task::Clean(plane));
            }
        }
    }

    // Steps of a job.

    /// Returns `true` if a step of garbage collection of a plane is due and nothing of it is in flight. Assigns victims
    /// of pools.
    #[inline(always)]
    pub fn is_due(&mut self, ftl: &mut Ftl, tasks: &mut Tasks, plane: PlaneId, now: Time) -> bool {
        if ftl.pools.is_some() {
            self.prepare_pools(ftl, tasks, plane);
        }
        if ftl.shape().bursts { self.is_due_with_bursts(ftl, tasks, plane, now) } else { self.wants_step(ftl, plane) }
    }

    #[inline(never)]
    fn prepare_pools(&mut self, ftl: &mut Ftl, tasks: &mut Tasks, plane: PlaneId) {
        if ftl.pools.as_ref().is_some_and(|pools| pools.lacks(plane)) {
            self.assign_victims(ftl, tasks, plane);
        }
        self.continue_resting(ftl, tasks, plane);
    }

    /// Returns `true` if garbage collection of a plane has something to do and nothing of it is in flight.
    #[inline(always)]
    pub fn wants_step(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        let job = &self.jobs[plane];
        let is_due = || match &ftl.pools {
            Some(pools) => pools.assigned(plane).is_some(),
            None => ftl.blocks.free_blocks(plane, Role::Data) <= ftl.shape().due,
        };
        // Most calls come while an operation is in flight.
        let has_other = || ftl.shape().evacuates_others && ftl.has_other_work(plane);
        !job.busy && (!job.is_idle() || is_due() || has_other())
    }

    /// Returns `true` if the job of a plane waits for more idle time or for the next burst, and notes that.
    #[inline]
    fn rests(&mut self, ftl: &mut Ftl, plane: PlaneId, now: Time) -> bool {
        self.may_rest
            && if ftl.shape().bursts { self.waits_for_burst(ftl, plane, now) } else { self.rests_now(ftl, plane) }
    }

    #[cold]
    fn rests_now(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let rests = self.jobs[plane].waits_for_idle_time(ftl, plane);
        self.jobs[plane].rests = rests;
        if let Some(pools) = ftl.pools.as_mut().filter(|_| rests) {
            pools.set_resting(plane, true);
        }
        rests
    }

    /// Chooses the next step of a plane. Returns `None` on a read-only device, whose data stay at their addresses.
    #[inline]
    pub fn choose(&mut self, ftl: &mut Ftl, plane: PlaneId, now: Time) -> Option<Chosen> {
        if ftl.is_read_only() {
            return None;
        }
        let rests = self.rests(ftl, plane, now);
        let is_urgent = self.is_urgent(ftl, plane);
        let victims = ftl.counters.victims;
        let step = if rests { Step::Rest } else { self.jobs[plane].next_step(ftl, plane) };
        if ftl.shape().bursts {
            self.note_step(ftl, plane, step, now);
        }
        for _ in victims..ftl.counters.victims {
            self.counts.start(now);
        }
        // An idle job may be needed again by the tasks of this step.
        self.jobs[plane].busy = step != Step::Rest;
        let has_victim = ftl.counters.victims > victims;
        Some(Chosen { step, class: self.class_of_job(plane, is_urgent), has_victim })
    }

    /// Postpones a chosen step, if it has made room for the host or lets it continue, or if tasks have to run first
    /// (`waits`). Returns `true` if it did. See [`Collector::postponed`].
    #[inline]
    pub fn postpones(&mut self, plane: PlaneId, chosen: Chosen, waits: bool) -> bool {
        let job = &mut self.jobs[plane];
        let postpones = waits || job.made_room || self.resumes_all;
        if postpones {
            job.coming = Some((chosen.step, chosen.class));
        }
        postpones
    }

    /// Returns `true` if the choice of the last step has made room for the host, and forgets that.
    pub fn has_made_room(&mut self, plane: PlaneId) -> bool {
        std::mem::take(&mut self.jobs[plane].made_room)
    }

    /// Returns `true` if the choice of the last step lets the host continue, and forgets that: it has ended a burst, or
    /// earned the host a program.
    pub fn has_released_host(&mut self) -> bool {
        std::mem::take(&mut self.resumes_all)
    }

    /// Returns the step that was postponed.
    pub fn postponed(&mut self, plane: PlaneId) -> Option<Chosen> {
        let (step, class) = self.jobs[plane].coming.take()?;
        Some(Chosen { step, class, has_victim: false })
    }

    /// Returns `true` if a plane holds no channel during a step, with `gc.pace = "exclusive"`. The command of an erase
    /// is the last to hold it.
    pub fn ends_hold(&self, ftl: &Ftl, plane: PlaneId, chosen: Chosen) -> bool {
        let blocks = &ftl.blocks;
        let can_erase = |block| blocks.plane_of(block) == plane && blocks.can_erase(block);
        match chosen.step {
            Step::Read { .. } | Step::CopyBack { .. } | Step::Write => false,
            Step::Erase(block) => self.jobs[plane].is_background || blocks.block(block).failed,
            Step::Rest => self.jobs[plane].is_background || !blocks.awaiting_erase().any(can_erase),
            Step::Leave(_) | Step::Choose => true,
        }
    }

    /// Takes a chosen step. Returns what follows.
    #[inline(always)]
    pub fn take(&mut self, ftl: &Ftl, to: &mut Transactions, plane: PlaneId, chosen: Chosen) -> Action {
        let Chosen { step, class, .. } = chosen;
        let job = &mut self.jobs[plane];
        // A choice that was granted during a hold is made after it. Otherwise, turns that are shorter than a choice
        // would never end one.
        let is_kept = matches!(step, Step::Erase(_)) || (step == Step::Rest && self.idle.is_held);
        if !is_kept {
            job.granted = false;
        }
        let (kind, ppn, units) = match step {
            Step::Rest => return Action::Rest,
            Step::Choose => return Action::Choose,
            Step::Erase(block) => {
                job.busy = false;
                return Action::Erase(block);
            }
            Step::Leave(block) => {
                job.busy = false;
                return Action::Leave(block);
            }
            Step::Write => (Kind::GcWrite, Ppn(0), 1),
            Step::CopyBack { first } => (Kind::CopyBack, first, job.moving.back.len() as u16),
            Step::Read { first, units } => {
                let spans = ftl.shape().pages_per_unit;
                (Kind::GcRead, first, if spans > 1 { spans as u16 } else { units as u16 })
            }
        };
        let mut operation = Transaction::new(kind, class).of_job(plane);
        (operation.ppn, operation.units) = (ppn, units);
        operation.plane = match kind {
            Kind::GcRead if ftl.pools.is_some() => ftl.blocks.plane_of(ftl.blocks.block_of(ppn)),
            Kind::GcWrite => ftl.blocks.plane_of_copies(plane).unwrap_or(plane),
            _ => plane,
        };
        Action::Queue(to.insert(operation))
    }

    /// Returns a read of the next page with valid units in the row of `read`, if that is a read of a job.
    #[inline(always)]
    pub fn read_beside(&mut self, ftl: &mut Ftl, to: &mut Transactions, read: TransactionId) -> Option<TransactionId> {
        let shape = ftl.shape();
        let has_rows = shape.units_per_row.divisor() > shape.units_per_page.divisor();
        if has_rows { self.read_row(ftl, to, read) } else { None }
    }

    #[inline(never)]
    fn read_row(&mut self, ftl: &mut Ftl, to: &mut Transactions, read: TransactionId) -> Option<TransactionId> {
        let mut beside = to[read];
        if beside.kind != Kind::GcRead {
            return None;
        }
        let page = self.jobs[beside.job()].read_beside(ftl, beside.ppn)?;
        (beside.ppn, beside.units) = (page.first, page.units as u16);
        Some(to.insert(beside))
    }

    /// Has a block await its erase in its own plane, after the job of another plane has read it. Returns `true` if it
    /// can be erased now.
    pub fn leave(&mut self, ftl: &Ftl, block: BlockId) -> bool {
        let job = &mut self.jobs[ftl.blocks.plane_of(block)];
        let failed = ftl.blocks.block(block).failed;
        *(if failed { &mut job.leaving } else { &mut job.awaiting_erase }) += 1;
        let is_free = ftl.blocks.can_erase(block);
        job.held += u32::from(!is_free && ftl.faults.is_some() && !failed);
        is_free
    }

    /// Notes that the firmware has spent the time to choose a victim.
    pub fn grant(&mut self, plane: PlaneId) {
        let job = &mut self.jobs[plane];
        (job.busy, job.granted) = (false, true);
    }

    /// Drops a unit that the job of a plane has read, or is to move by copy-back (`back`), and that was invalidated
    /// since. Part of a step of the job, which is busy. Returns the address of the unit, and `None` if all are valid.
    #[inline]
    pub fn drop_invalid(&mut self, ftl: &Ftl, plane: PlaneId, back: bool) -> Option<Ppn> {
        debug_assert!(self.jobs[plane].busy);
        let moving = &mut self.jobs[plane].moving;
        let copies = if back { &mut moving.back } else { &mut moving.copies };
        let index = copies.iter().position(|copy| !ftl.blocks.is_valid(copy.from))?;
        Some(copies.remove(index).from)
    }

    /// Returns the erase of a block.
    pub fn erase(&self, ftl: &Ftl, block: BlockId) -> Transaction {
        let plane = ftl.blocks.plane_of(block);
        Transaction::erase(self.class(ftl, plane), plane, block)
    }

    /// Removes one dependent of a block. Returns what follows.
    #[inline]
    pub fn release(&mut self, ftl: &mut Ftl, block: BlockId) -> Released {
        let is_last = ftl.blocks.release(block);
        if ftl.faults.is_some() {
            return self.release_fallible(ftl, block, is_last);
        }
        if is_last { Released::Erase } else { Released::Kept }
    }

    #[inline(never)]
    fn release_fallible(&mut self, ftl: &Ftl, block: BlockId, is_last: bool) -> Released {
        let known = ftl.blocks.block(block);
        let plane = ftl.blocks.plane_of(block);
        if is_last {
            let is_kept = ftl.blocks.is_kept(block) || ftl.blocks.has_superblocks();
            let is_victim = known.role == Role::Data && !known.failed && !is_kept;
            self.jobs[plane].held -= u32::from(is_victim);
            return Released::Erase;
        }
        // Writes that the block still waits for may need no more than the room that it will free.
        if known.state == BlockState::AwaitingErase { Released::Retry(plane) } else { Released::Kept }
    }

    // Failures.

    /// Returns `true` if a plane or the device cannot do without the blocks that have failed.
    pub fn lacks_spare(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        !ftl.has_spare() || !ftl.can_go_on(plane, self.jobs[plane].in_hand(ftl, plane))
    }

    /// Ends the program or copy-back of units that the job of a plane moves, which has failed. The units are still in
    /// the controller. Returns their number.
    pub fn copies_failed(&mut self, plane: PlaneId) -> u32 {
        let moving = &mut self.jobs[plane].moving;
        let programmed = std::mem::take(&mut moving.writing);
        (if programmed > 0 { programmed } else { moving.back.len() }) as u32
    }

    /// Returns the copy-back that follows a failed one, because the page is still at its old address. Returns `None` if
    /// there is none, in which case the job takes its next step.
    pub fn copy_back_again(&mut self, ftl: &Ftl, plane: PlaneId) -> Option<Transaction> {
        let class = self.class(ftl, plane);
        let job = &mut self.jobs[plane];
        let first = job.moving.back.first().filter(|_| !ftl.is_read_only());
        job.busy = first.is_some();
        let mut again = Transaction::new(Kind::CopyBack, class).of_job(plane);
        (again.plane, again.ppn, again.units) = (plane, first?.from, job.moving.back.len() as u16);
        Some(again)
    }

    /// Ends the read of a victim's page.
    #[inline]
    pub fn end_read(&self, ftl: &mut Ftl, read: &Transaction) {
        let copies = &self.jobs[read.job()].moving.copies;
        ftl.end_copy_read(read, |_, ppn| copies.iter().any(|copy| copy.from == ppn));
    }

    /// Retires a superblock that has failed, and whose units have been moved.
    pub fn retire_superblock(&mut self, ftl: &mut Ftl, block: BlockId) {
        ftl.blocks.erased_with(block).for_each(|member| self.jobs[ftl.blocks.plane_of(member)].awaiting_erase -= 1);
        ftl.retire_superblock(block);
    }

    /// Retires a failed block, which holds no valid units any more.
    pub fn retire(&mut self, ftl: &mut Ftl, block: BlockId) {
        if !ftl.blocks.is_kept(block) {
            self.jobs[ftl.blocks.plane_of(block)].leaving -= 1;
        }
        ftl.retire(block);
    }

    /// Returns `true` if a write may be programmed in a plane again after a failure. A block, its `dependency`, waits
    /// for it.
    #[cold]
    pub fn may_retry(&self, ftl: &Ftl, plane: PlaneId, dependency: BlockId) -> bool {
        let claim = Claim::Retry(self.jobs[plane].in_hand(ftl, plane));
        let is_retry = ftl.faults.is_some() && dependency.is_some();
        is_retry && ftl.blocks.may_take(ftl.blocks.region(plane, Role::Data), claim)
    }

    /// Returns `true` if there is room for `programs` programs that together free a block of a plane.
    pub fn may_free(&self, ftl: &Ftl, plane: PlaneId, programs: u32) -> bool {
        let claim = Claim::Freeing { hand: self.jobs[plane].in_hand(ftl, plane), programs };
        ftl.blocks.may_take(ftl.blocks.region(plane, Role::Data), claim)
    }

    /// Returns the number of programs of writes that free a block, their `dependency`, if nothing else has to end
    /// before its erase. `others` returns the number of other writes that wait like the one that asks.
    pub fn programs_to_free(
        &self,
        ftl: &Ftl,
        plane: PlaneId,
        dependency: BlockId,
        others: impl FnOnce() -> u32,
    ) -> Option<u32> {
        if ftl.faults.is_none() || dependency.is_none() {
            return None;
        }
        let dependents = ftl.blocks.dependents_before_erase(plane, dependency)?;
        // Several writes that wait like this one must not wait for each other once garbage collection rests.
        (dependents == 1 || (!self.jobs[plane].busy && dependents == 1 + others())).then_some(dependents)
    }

    // Idle time and holds.

    /// Returns `true` if idle time starts garbage collection or folding.
    #[inline]
    pub fn uses_idle_time(&self) -> bool {
        self.idle.is_used
    }

    /// Notes that idle time starts. Returns the times at which it starts garbage collection and folding.
    pub fn start_idle_time(&mut self, ftl: &Ftl, device: &DeviceConfig, now: Time) -> [(IdleWork, Option<Time>); 2] {
        self.idle.start(ftl, device, now)
    }

    /// Starts work in idle time. Returns `false` if it waits for the end of a hold.
    pub fn start_idle_work(&mut self, ftl: &mut Ftl, device: &DeviceConfig, work: IdleWork) -> bool {
        self.idle.allow(ftl, device, work)
    }

    /// Ends idle time, because a request has arrived.
    #[inline]
    pub fn end_idle_time(&mut self, ftl: &mut Ftl, device: &DeviceConfig) {
        if self.idle.is_used {
            self.idle.end(ftl, device);
        }
    }

    /// Makes garbage collection wait until a plane is at the hard threshold, or ends this. `is_idle_at` is the time if
    /// no request is outstanding.
    ///
    /// Idle time continues during a hold, but garbage collection in idle time waits.
    pub fn hold(&mut self, ftl: &mut Ftl, device: &DeviceConfig, is_held: bool, is_idle_at: Option<Time>) {
        let is_collecting = self.first_working().is_some();
        let background = self.idle.hold(device, is_held, is_idle_at, is_collecting);
        let until = background.map_or(BlockCount::Blocks(0), |background| background.until);
        if !is_held {
            self.jobs.iter_mut().for_each(|job| job.takes_turns = true);
        }
        ftl.hold_gc(device, is_held);
        ftl.collect_below(device, until);
    }

    /// Returns `true` if garbage collection in idle time waits for the end of a hold.
    pub fn waits_for_turn(&self) -> bool {
        self.idle.waits
    }

    /// Returns the index of the first plane whose job is not idle, and does not wait for the next burst.
    pub fn first_working(&self) -> Option<usize> {
        self.jobs.iter().position(|job| !(job.is_idle() || self.bursts.is_some() && job.pauses()))
    }

    /// Describes the free blocks of a plane and its garbage collection.
    pub fn describe(&self, ftl: &Ftl, plane: PlaneId) -> String {
        let moving = &self.jobs[plane].moving;
        let victim = moving.block().map_or_else(|| "no victim".to_owned(), |block| format!("victim {}", block.0));
        format!(
            "plane {} ({} of {} blocks free, {} read units without an address, {victim})",
            plane.0,
            ftl.blocks.free_blocks(plane, Role::Data),
            ftl.blocks.good(plane) + ftl.blocks.bad(plane),
            moving.copies.len(),
        )
    }

    // Number and duration of collections.

    /// Notes that the erase of a victim of a plane has ended.
    pub fn note_end(&mut self, plane: PlaneId, now: Time) {
        self.counts.end(plane, now);
    }

    /// Writes the collections up to `at` into `counts`.
    pub fn counts_until(&self, at: Time, counts: &mut CollectionCounts) {
        self.counts.until(at, counts);
    }
}
