//! The controller's software: work waits in one line for the cores, and goes on where it came from when it is done.
//!
//! Without `[controller.firmware]`, and where a step costs nothing, it goes on at once.

use std::collections::VecDeque;
use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::config::Firmware;
use crate::metrics::attribution::Part as TimePart;
use crate::nand::probe::{CoreWork, Task};
use crate::sim::id::{PlaneId, RequestId, TransactionId};
use crate::sim::time::Time;

/// A piece of work for a core, by what goes on when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A request has come.
    Receive(RequestId),
    /// So many units of a write have come.
    Admit(RequestId, u32),
    /// Units of a read are looked for in the buffer.
    Search(RequestId, u32, u32),
    /// Units of a read are looked up in the map.
    LookUp(RequestId, u32, u32),
    /// The units of a trim are looked up.
    Trim(RequestId),
    /// So many units from the buffer are given places.
    WriteOut(u32),
    /// Cleaning of a plane chooses a block.
    Clean(PlaneId),
    /// A request is answered.
    Answer(RequestId),
}

/// A core.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    work: Option<Work>,
    /// Until when it works, and how long it has worked by then in all.
    until: Time,
    worked: Time,
}

/// The cores and their line.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    cores: Vec<Core>,
    /// What waits, what it takes, and since when it is in line.
    line: VecDeque<(Work, Time, Time)>,
    costs: Costs,
}

/// What the steps take.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    interrupt: Time,
    lookup: Time,
    allocation: Time,
    cleaning: Time,
    buffer: Time,
}

impl Cores {
    pub(super) fn new(firmware: &Firmware) -> Cores {
        let time = |cost: crate::config::units::FirmwareCost| cost.time(firmware.clock);
        Cores {
            cores: vec![Core::default(); firmware.cores as usize],
            line: VecDeque::new(),
            costs: Costs {
                interrupt: time(firmware.interrupt),
                lookup: time(firmware.lookup),
                allocation: time(firmware.allocation),
                cleaning: time(firmware.cleaning),
                buffer: time(firmware.buffer),
            },
        }
    }

    /// Time for which each core has worked, up to `at`.
    pub(super) fn worked(&self, at: Time) -> impl Iterator<Item = Time> + '_ {
        self.cores.iter().map(move |core| core.worked.since(core.until.since(at)))
    }
}

/// `each`, so many times.
fn times(count: u32, each: Time) -> Time {
    Time(u64::from(count) * each.0)
}

impl Device {
    /// What a piece of work takes.
    fn cost_of(&self, work: Work) -> Time {
        let Some(Cores { costs, .. }) = self.cores.as_deref() else { return Time::ZERO };
        match work {
            Work::Receive(_) | Work::Answer(_) => costs.interrupt,
            Work::Admit(_, units) if self.writes_back() => times(units, costs.buffer),
            Work::Admit(_, units) => {
                let buffer = if self.buffer.is_some() { costs.buffer } else { Time::ZERO };
                times(units, buffer + costs.lookup + costs.allocation)
            }
            Work::Search(_, _, units) => times(units, costs.buffer),
            Work::LookUp(_, _, units) => times(units, costs.lookup),
            Work::Trim(id) => times(self.units_of(id), costs.lookup),
            Work::WriteOut(units) => times(units, costs.lookup + costs.allocation),
            Work::Clean(_) => costs.cleaning,
        }
    }

    /// Queues a piece of work for the cores. Returns `false` if it takes no time: the caller does at once what follows.
    #[inline(always)]
    pub(super) fn queue_work(&mut self, work: Work) -> bool {
        self.cores.is_some() && self.queue_for_core(work)
    }

    /// Queues work on units of a request, one piece for each flash page: what is done with a page goes on while a core
    /// works on the next one. Returns `false` if the work takes no time.
    #[inline(always)]
    pub(super) fn queue_by_page(
        &mut self,
        id: RequestId,
        units: &Range<u32>,
        work: impl Fn(RequestId, u32, u32) -> Work,
    ) -> bool {
        if self.cores.is_none() || self.cost_of(work(id, units.start, 1)) == Time::ZERO {
            return false;
        }
        let mut first = units.start;
        while first < units.end {
            let end = self.end_of_page(id, first).min(units.end);
            self.queue_work(work(id, first, end - first));
            first = end;
        }
        true
    }

    #[inline(never)]
    fn queue_for_core(&mut self, work: Work) -> bool {
        let cost = self.cost_of(work);
        let Some(cores) = self.cores.as_mut().filter(|_| cost > Time::ZERO) else { return false };
        match cores.cores.iter().position(|core| core.work.is_none()) {
            Some(core) => self.start_work(core, work, cost, self.now),
            None => cores.line.push_back((work, cost, self.now)),
        }
        true
    }

    /// A core starts a piece of work that is there since `since`.
    fn start_work(&mut self, index: usize, work: Work, cost: Time, since: Time) {
        if self.array.probe().is_some() {
            self.show_work(index, work, cost, since);
        }
        let Some(cores) = &mut self.cores else { return };
        let core = &mut cores.cores[index];
        (core.work, core.until) = (Some(work), self.now.later(cost));
        core.worked += cost;
        let until = core.until;
        self.set_timer(Timer::Core(index as u32), until);
    }

    /// Shows an observer what a core starts.
    #[inline(never)]
    fn show_work(&mut self, core: usize, work: Work, cost: Time, since: Time) {
        let (task, request, units) = match work {
            Work::Receive(id) => (Task::Receive, id, 0),
            Work::Admit(id, units) => (Task::Write, id, units),
            Work::Search(id, _, units) => (Task::Search, id, units),
            Work::LookUp(id, _, units) => (Task::LookUp, id, units),
            Work::Trim(id) => (Task::Trim, id, self.units_of(id)),
            Work::WriteOut(units) => (Task::WriteOut, RequestId::NONE, units),
            Work::Clean(_) => (Task::Choose, RequestId::NONE, 0),
            Work::Answer(id) => (Task::Answer, id, 0),
        };
        let plane = if let Work::Clean(plane) = work { plane.0 } else { u32::MAX };
        let (core, start, tag) = (core as u32, self.now, self.tag_of(request));
        let (end, waited) = (start.later(cost), start - since);
        if let Some(probe) = self.array.probe_mut() {
            probe.record_work(CoreWork { core, task, start, end, waited, units, tag, plane });
        }
    }

    /// A core has done its work: it takes the next, and what it has done goes on.
    pub(super) fn core_event(&mut self, core: u32) {
        let Some(cores) = &mut self.cores else { return };
        let index = core as usize;
        let done = cores.cores[index].work.take();
        if let Some((work, cost, since)) = cores.line.pop_front() {
            self.start_work(index, work, cost, since);
        }
        let Some(work) = done else { return };
        if let Work::Receive(id)
        | Work::Admit(id, _)
        | Work::Search(id, ..)
        | Work::LookUp(id, ..)
        | Work::Trim(id)
        | Work::Answer(id) = work
        {
            self.trail_front(id, TimePart::Firmware);
        }
        match work {
            Work::Receive(id) => self.receive(id),
            Work::Admit(id, units) => self.bring(id, units),
            Work::Search(id, first, count) => self.search_buffer(id, first..first + count),
            Work::LookUp(id, first, count) => self.read_units(id, first..first + count),
            Work::Trim(id) => self.trim(id),
            Work::WriteOut(units) => {
                self.write_out(units);
                self.admit(); // What turned out to be void has left its slot.
            }
            Work::Clean(plane) => self.clean_now(plane),
            Work::Answer(id) => self.answer(id, TransactionId::NONE),
        }
    }

    /// Whether answering a request takes time.
    #[inline]
    pub(super) fn answering_takes_time(&self) -> bool {
        self.cores.as_deref().is_some_and(|cores| cores.costs.interrupt > Time::ZERO)
    }

    /// Time for which each core has worked until `at`, in its order.
    pub fn core_times(&self, at: Time) -> Vec<Time> {
        self.cores.as_deref().map_or_else(Vec::new, |cores| cores.worked(at).collect())
    }

    /// Whether no core works.
    pub(super) fn cores_rest(&self) -> bool {
        self.cores.as_deref().is_none_or(|cores| cores.line.is_empty() && cores.cores.iter().all(|c| c.work.is_none()))
    }
}
