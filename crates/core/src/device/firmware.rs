//! The firmware in time: queues work for the cores, and continues each request when its work is done.
//!
//! Without `[controller.firmware]`, or if a step takes no time, the request continues at once.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::host::cores::{Queued, Started, Work};
use crate::metrics::attribution::Part as TimePart;
use crate::nand::probe::{CoreWork, Task};
use crate::sim::id::{RequestId, TransactionId};
use crate::sim::time::Time;

impl Device {
    /// Queues a piece of work for the cores. Returns `false` if it takes no time, in which case the caller continues at
    /// once.
    #[inline(always)]
    pub(super) fn queue_work(&mut self, work: Work) -> bool {
        self.interface.cores.is_some() && self.queue_for_core(work)
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
    fn queue_for_core(&mut self, work: Work) -> bool {
        let Some(cores) = &mut self.interface.cores else { return false };
        match cores.queue(work, self.now) {
            Queued::AtOnce => return false,
            Queued::Started(started) => self.core_started(started),
            Queued::Waits => {}
        }
        true
    }

    fn core_started(&mut self, started: Started) {
        if self.array.probe().is_some() {
            self.show_work(started);
        }
        self.set_timer(Timer::Core(started.core), started.end);
    }

    /// Reports the work that a core starts to the probe.
    #[inline(never)]
    fn show_work(&mut self, Started { core, work, start, end, waited }: Started) {
        let (task, units) = match work {
            Work::Receive(_) => (Task::Receive, 0),
            Work::Admit(_, units) => (Task::Write, units),
            Work::Search(_, _, units) => (Task::Search, units),
            Work::LookUp(_, _, units) => (Task::LookUp, units),
            Work::Trim(_, units) => (Task::Trim, units),
            Work::WriteOut(units) => (Task::WriteOut, units),
            Work::Clean(_) => (Task::Choose, 0),
            Work::Answer(_) => (Task::Answer, 0),
        };
        let plane = if let Work::Clean(plane) = work { plane.0 } else { u32::MAX };
        let tag = self.interface.tag_of(work.request());
        if let Some(probe) = self.array.probe_mut() {
            probe.record_work(CoreWork { core, task, start, end, waited, units, tag, plane });
        }
    }

    /// Handles the end of a core's work: starts its next work, and continues the request or operation.
    pub(super) fn core_event(&mut self, core: u32) {
        let Some(cores) = &mut self.interface.cores else { return };
        let (done, next) = cores.end(core, self.now);
        next.into_iter().for_each(|started| self.core_started(started));
        let Some(work) = done else { return };
        if !matches!(work, Work::Clean(_)) {
            self.note_progress();
        }
        if work.request().is_some() {
            self.observe_request(work.request(), TimePart::Firmware);
        }
        match work {
            Work::Receive(id) => self.receive(id),
            Work::Admit(id, units) => self.queue_for_admission(id, units),
            Work::Search(id, first, count) => self.search_buffer(id, first..first + count),
            Work::LookUp(id, first, count) => self.read_units(id, first..first + count),
            Work::Trim(id, _) => self.trim(id),
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

    /// Returns `true` if the completion of a request takes firmware time.
    #[inline]
    pub(super) fn answering_takes_time(&self) -> bool {
        let answer = Work::Answer(RequestId::NONE);
        self.interface.cores.as_deref().is_some_and(|cores| cores.cost(answer) > Time::ZERO)
    }

    /// Returns the time for which each core was busy until `at`, in the order of the cores.
    pub fn core_times(&self, at: Time) -> Vec<Time> {
        self.interface.cores.as_deref().map_or_else(Vec::new, |cores| cores.worked(at).collect())
    }
}
