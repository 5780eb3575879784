//! The router: maps each event and each task to the method that handles it.
//!
//! The part of the device that an event is about handles it, and pushes tasks for other parts. All tasks of one part of
//! a handler run before its next part.

use super::Device;
use super::timers::Timer;
use crate::dispatch;
use crate::ftl::gc::IdleWork;
use crate::ftl::mapping::{Step, call};
use crate::nand::array::{Outcome, Owner};
use crate::sim::time::Time;
use crate::work::Task;

impl Device {
    /// Routes one event.
    #[inline(always)]
    pub(super) fn handle(&mut self, at: Time, resource: u32) {
        debug_assert!(at >= self.now, "events are out of order");
        debug_assert!(self.tasks.is_empty(), "a task is left over from the last event");
        self.now = at;
        self.dispatch.set_now(at);
        let owner = self.array.owner(resource);
        match owner {
            Owner::Other(number) => self.note_timer(Timer::of(number)),
            Owner::Unit(_) | Owner::Channel(_) => self.note_progress(),
        }
        match owner {
            Owner::Unit(unit) => match self.array.unit_event(unit, at) {
                Outcome::WantsChannel(rank) => {
                    if dispatch::continue_at_once(self, unit) {
                        return; // Nothing else can follow.
                    }
                    dispatch::continue_operation(self, unit, rank);
                }
                Outcome::MemberOut(rank) => {
                    self.finish_member(unit);
                    self.run_tasks();
                    dispatch::continue_operation(self, unit, rank);
                }
                Outcome::GoesOn => {}
                Outcome::CellsWork => dispatch::overlap_next(self, self.array.lun_of_unit(unit)),
                Outcome::Done => {
                    let lun = self.array.lun_of_unit(unit);
                    self.finish(unit, lun);
                    self.run_tasks();
                    if self.dispatch.overlaps() && dispatch::continue_overlapping(self, unit, lun) {
                        self.run_tasks();
                        return self.admit_from_host();
                    }
                    if dispatch::set_idle(self, lun) {
                        dispatch::start_idle(self, lun);
                    }
                }
                Outcome::Suspended => dispatch::serve_suspended(self, unit, self.array.lun_of_unit(unit)),
            },
            Owner::Channel(channel) => dispatch::grant(self, channel),
            Owner::Other(number) => match Timer::of(number) {
                Timer::Link => self.link_event(),
                Timer::Completion => self.return_event(),
                Timer::Fill => self.fill_event(),
                Timer::Memory => self.memory_event(),
                Timer::BufferIdle => self.idle_event(),
                Timer::Background => self.idle_work_event(IdleWork::Collect),
                Timer::Fold => self.idle_work_event(IdleWork::Fold),
                Timer::Throttle => self.throttle_event(),
                Timer::Core(core) => self.core_event(core),
            },
        }
        self.run_tasks();
        if std::mem::take(&mut self.admits_after) {
            self.admit();
            self.run_tasks();
        }
        self.admit_from_host();
    }

    /// Runs all tasks.
    #[inline(always)]
    pub(super) fn run_tasks(&mut self) {
        // Usually there are none.
        if self.tasks.any_new() || self.ftl.active.is_some() {
            self.run_all_tasks();
        }
    }

    #[inline(never)]
    fn run_all_tasks(&mut self) {
        loop {
            if let Some(lun) = self.tasks.pop_start() {
                dispatch::notify(self, lun);
            } else if let Some(task) = self.tasks.pop() {
                self.run_other(task);
            } else {
                if self.ftl.active.is_some() {
                    self.ftl.offer_to_active(&mut self.tasks);
                }
                if !self.tasks.any_new() {
                    return;
                }
            }
        }
    }

    /// Runs a task other than [`Task::Start`], which is the most frequent one.
    // Inlining this function would slow the loop over all tasks.
    #[inline(never)]
    fn run_other(&mut self, task: Task) {
        match task {
            Task::Start(lun) => dispatch::notify(self, lun),
            Task::Scheme(of) => call::step(self, Step::Call(of)),
            Task::Offer(pool) => dispatch::offer_pool(self, pool),
            Task::Release => self.dispatch.release_held(&mut self.tasks),
            Task::Read(reading) => self.read_rest(reading),
            Task::Search(id, first, end) => self.search_buffer(id, first..end),
            Task::Admit => self.admit_now(),
            Task::AdmitRest(before) => self.admit_rest(before),
            Task::WriteOut(units) => self.write_out_rest(units),
            Task::Fill => self.fill_event(),
            Task::Trim(id, index) => self.trim_rest(id, index),
            Task::ReleaseUrgent => self.release_urgent(),
            Task::EndRead(id) => self.end_read(id),
            Task::Grant(channel) => dispatch::grant(self, channel),
            Task::CheckSpare(plane) => self.check_spare(plane),
            Task::Finish(id) => self.finish_merged(id),
            Task::FinishWrites(ppn, id) => self.finish_writes_of(ppn, id),
            Task::Translate(arrived, open) => self.translate_rest(arrived, open),
            Task::MapProgrammed(page, ppn) => self.map_programmed(page, ppn),
            Task::ResumeHost(plane) => self.resume_host(plane),
            Task::Step(plane) => self.continue_step(plane),
            Task::Place(id) => _ = call::place(self, id),
            Task::QueueAgain(id) => self.queue_again(id),
            Task::CollectIdle(plane, end) => self.collect_idle_rest(plane..end),
            Task::Clean(plane) => self.clean(plane),
            Task::CollectMap(plane) => self.collect_map(plane),
            Task::MapWritten(id) => self.map_written(id),
            Task::CompleteProgrammed(id) => self.complete_programmed(id),
        }
    }
}
