//! The router: maps each event and each task to the method that handles it.
//!
//! The part of the device that an event is about handles it, and pushes tasks for other parts. All tasks of one part of
//! a handler run before its next part.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::cache::Buffer;
use crate::dispatch;
use crate::ftl::gc::IdleWork;
use crate::ftl::mapping::{Change, Step, call};
use crate::ftl::space::Role;
use crate::host::cores::{Queued, Started, Work};
use crate::host::stages::Crossed;
use crate::metrics::attribution::Part as TimePart;
use crate::nand::array::{Outcome, Owner};
use crate::observe::cores::report_work;
use crate::sim::id::{PlaneId, RequestId, TransactionId};
use crate::sim::time::Time;
use crate::ssd::Ssd;
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
            Owner::Other(number) => debug_assert!(
                self.quiet.allows(Timer::of(number), &self.interface, self.config.total_planes()),
                "{:?} is set again without progress: {}",
                Timer::of(number),
                self.explain_stall()
            ),
            Owner::Unit(_) | Owner::Channel(_) => self.quiet.end(),
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
                    let id = self.dispatch.member_ended(unit, &self.transactions);
                    self.observe(move |observers, view| observers.member_ended(view, unit, id));
                    self.finish_one(id);
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
                        if self.interface.waiting() > 0 {
                            self.admit_waiting();
                        }
                        return;
                    }
                    if dispatch::set_idle(self, lun) {
                        dispatch::start_idle(self, lun);
                    }
                }
                Outcome::Suspended => dispatch::serve_suspended(self, unit, self.array.lun_of_unit(unit)),
            },
            Owner::Channel(channel) => dispatch::grant(self, channel),
            Owner::Other(number) => self.timer_event(Timer::of(number)),
        }
        self.run_tasks();
        if std::mem::take(&mut self.admits_after) {
            self.admit();
            self.run_tasks();
        }
        if self.interface.waiting() > 0 {
            self.admit_waiting();
        }
    }

    /// Routes the event of a timer.
    #[inline(never)]
    fn timer_event(&mut self, timer: Timer) {
        match timer {
            Timer::Link => {
                if let Some((request, last)) = self.interface.arrive() {
                    Timer::Link.set_if(&mut self.array, self.interface.next_arrival());
                    self.observe(move |observers, view| observers.spent_by_request(view, request, TimePart::Link));
                    match self.interface.cross(request, last) {
                        Crossed::Whole => self.receive_or_queue(request),
                        Crossed::More(units) => self.work_on_write(request, units),
                        Crossed::Early => {}
                    }
                }
            }
            Timer::Completion => {
                self.interface.free_places(self.now);
                Timer::Completion.set_if(&mut self.array, self.interface.next_return());
            }
            Timer::Fetch => {
                while let Some(request) = self.interface.fetched(self.now) {
                    self.enter(self.now, request);
                    self.run_tasks();
                }
            }
            Timer::Fill => self.fill_event(),
            Timer::Memory => {
                while let Some(then) = self.buffer.as_deref_mut().and_then(|buffer| buffer.end_access(self.now)) {
                    let id = then.request;
                    self.observe(move |observers, view| observers.spent_by_request(view, id, TimePart::Buffer));
                    self.crossed(then);
                }
                Timer::Memory.set_if(&mut self.array, self.buffer.as_deref().and_then(Buffer::next_access));
            }
            Timer::BufferIdle if self.interface.outstanding() == 0 => self.write_out_buffer(),
            Timer::BufferIdle => {}
            Timer::Background | Timer::Fold => {
                let work = if timer == Timer::Fold { IdleWork::Fold } else { IdleWork::Collect };
                if self.interface.outstanding() == 0 && self.jobs.start_idle_work(&mut self.ftl, &self.config, work) {
                    self.collect_all();
                }
            }
            Timer::Throttle => {
                if let Some(throttle) = &mut self.interface.throttle {
                    throttle.end_delay(self.now);
                }
                self.admit();
            }
            Timer::Decoding => self.end_decoding(),
            Timer::Core(core) => self.core_event(core),
        }
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
            Task::ReadAhead(stream, TransactionId::NONE) => self.read_ahead(stream),
            Task::ReadAhead(stream, open) => self.read_ahead_rest(stream, open),
            Task::Search(id, first, end) => self.search_buffer(id, first..end),
            Task::Admit => self.admit_now(),
            Task::AdmitRest(before) => self.admit_rest(before),
            Task::WriteOut(units) => self.write_out_rest(units),
            Task::Fill => self.fill_event(),
            Task::Trim(id, index) => self.trim_rest(id, index),
            Task::ReleaseUrgent => self.release_urgent(),
            Task::Receive(id) => self.receive(id),
            Task::EndRead(id) => self.end_read(id),
            Task::Grant(channel) => dispatch::grant(self, channel),
            Task::CheckSpare(plane) => self.check_spare(plane),
            Task::Finish(id) => self.finish_merged(id),
            Task::FinishWrites(ppn, id) => self.finish_writes_of(ppn, id),
            Task::Translate(arrived, open) => self.translate_rest(arrived, open),
            Task::MapProgrammed(page, ppn) => {
                call::step(self, Step::MapProgrammed(page, ppn));
                self.program_ended(ppn, Role::Map);
                call::make_room(self, self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn)), false);
                // A victim that waited for this update may now wait only for the journal.
                self.journal_for_resting();
            }
            Task::ResumeHost(plane) => {
                if self.jobs.has_made_room(plane) {
                    self.ftl.refresh_ready(plane);
                    self.unpark(plane);
                    self.unpark_own();
                }
                if self.jobs.has_released_host() {
                    (0..self.ftl.shape().planes).for_each(|plane| self.unpark(PlaneId(plane)));
                    self.admit();
                }
                self.tasks.push(Task::Step(plane));
            }
            Task::Step(plane) => {
                if let Some(chosen) = self.jobs.postponed(plane)
                    && self.take_step(plane, chosen)
                {
                    self.step(plane);
                }
            }
            Task::Place(id) => _ = call::place(self, id),
            Task::QueueAgain(id) => self.queue_again(id),
            Task::CollectIdle(plane, end) => self.collect_idle_rest(plane..end),
            Task::Clean(plane) => self.clean(plane),
            Task::CollectMap(plane) => call::make_room(self, plane, false),
            Task::MapWritten(id) => {
                call::changed(self, self.transactions[id].lpn, Change::Entry);
                self.release_invalidated(id);
            }
            Task::CompleteProgrammed(id) => self.complete_programmed(id),
        }
    }

    // The firmware in time. Without `[controller.firmware]`, or if a step takes no time, a request continues at once.

    /// Queues a piece of work for the cores. Returns `false` if it takes no time, in which case the caller continues at
    /// once.
    #[inline(always)]
    pub(super) fn queue_work(&mut self, work: Work) -> bool {
        self.interface.cores.is_some() && self.queue_for_core(work)
    }

    #[inline(never)]
    fn queue_for_core(&mut self, work: Work) -> bool {
        match self.interface.queue_work(work, self.now) {
            Queued::AtOnce => return false,
            Queued::Started(started) => self.core_started(started),
            Queued::Waits => {}
        }
        true
    }

    /// Queues work on the units of a request, one piece per flash page, so that a page can proceed while a core works
    /// on the next one. Returns `false` if the work takes no time.
    #[inline(always)]
    pub(super) fn queue_by_page(
        &mut self,
        id: RequestId,
        units: &Range<u32>,
        work: impl Fn(RequestId, u32, u32) -> Work,
    ) -> bool {
        let Some(cores) = &self.interface.cores else { return false };
        if cores.cost(work(id, units.start, 1)) == Time::ZERO {
            return false;
        }
        let mut first = units.start;
        while first < units.end {
            let end = self.interface.end_of_page(id, first).min(units.end);
            self.queue_work(work(id, first, end - first));
            first = end;
        }
        true
    }

    #[inline(never)]
    fn core_started(&mut self, started: Started) {
        Timer::Core(started.core).set(&mut self.array, started.end);
        if let Some(probe) = self.array.probe_mut() {
            report_work(probe, &self.interface, started, self.config.planes_together());
        }
    }

    /// Handles the end of a core's work: starts its next work, and continues the request or operation.
    pub(super) fn core_event(&mut self, core: u32) {
        let Some(cores) = &mut self.interface.cores else { return };
        let (done, next) = cores.end(core, self.now);
        next.into_iter().for_each(|started| self.core_started(started));
        let Some(work) = done else { return };
        if !matches!(work, Work::Clean(_)) {
            self.quiet.end();
        }
        if work.request().is_some() {
            self.observe(move |observers, view| observers.spent_by_request(view, work.request(), TimePart::Firmware));
        }
        match work {
            Work::Receive(id) => self.receive(id),
            Work::Admit(id, units) => self.queue_for_admission(id, units),
            Work::Search(id, first, count) => self.search_buffer(id, first..first + count),
            Work::LookUp(id, first, count) => self.read_units(id, first..first + count),
            Work::Trim(id, _) => self.trim_rest(id, 0),
            Work::WriteOut(units) => {
                self.write_out(units);
                self.admit(); // Units that need no write any more have freed their slots.
            }
            Work::Clean(plane) => {
                self.jobs.grant(plane);
                self.step(plane);
            }
            Work::Answer(id) => self.answer(id, TransactionId::NONE),
        }
    }
}
