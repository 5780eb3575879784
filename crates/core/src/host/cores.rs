//! The controller's software: work waits in one queue for the cores.

use std::collections::VecDeque;

use crate::config::{DeviceConfig, Firmware, WritePolicy};
use crate::sim::id::{PlaneId, RequestId};
use crate::sim::time::Time;

/// A piece of work for a core, named after what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A request has arrived.
    Receive(RequestId),
    /// So many units of a write have arrived.
    Admit(RequestId, u32),
    /// Units of a read, from one on so many, are looked for in the buffer.
    Search(RequestId, u32, u32),
    /// Units of a read, from one on so many, are looked up in the map.
    LookUp(RequestId, u32, u32),
    /// So many units of a trim are looked up.
    Trim(RequestId, u32),
    /// So many units from the buffer are given places.
    WriteOut(u32),
    /// Garbage collection of a plane chooses a block.
    Clean(PlaneId),
    /// A request is answered.
    Answer(RequestId),
}

impl Work {
    /// Returns the request that the work is for, or `NONE`.
    pub fn request(self) -> RequestId {
        match self {
            Work::Receive(id)
            | Work::Admit(id, _)
            | Work::Search(id, ..)
            | Work::LookUp(id, ..)
            | Work::Trim(id, _)
            | Work::Answer(id) => id,
            Work::WriteOut(_) | Work::Clean(_) => RequestId::NONE,
        }
    }
}

/// A piece of work that a core has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The core.
    pub core: u32,
    /// The work.
    pub work: Work,
    /// Start of the work.
    pub start: Time,
    /// End of the work.
    pub end: Time,
    /// Time that the work has waited for a core.
    pub waited: Time,
}

/// What becomes of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// It takes no time.
    AtOnce,
    /// A core has started it.
    Started(Started),
    /// It waits for a core.
    Waits,
}

/// A core.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    work: Option<Work>,
    /// End of its latest work.
    until: Time,
    /// Time for which it has worked by then.
    worked: Time,
}

/// The times that pieces of work take, for a mapping unit or a request.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    interrupt: Time,
    lookup: Time,
    admission: Time,
    placement: Time,
    gc: Time,
    buffer: Time,
}

/// The cores and the work that waits for them.
#[derive(Clone, Debug)]
pub struct Cores {
    cores: Vec<Core>,
    /// Work, the time that it takes, and when it was queued.
    queue: VecDeque<(Work, Time, Time)>,
    costs: Costs,
}

impl Cores {
    /// Creates idle cores. Returns `None` if the device's software takes no time.
    pub fn new(config: &DeviceConfig) -> Option<Cores> {
        let firmware = config.controller.firmware.as_ref()?;
        let buffer = config.active_buffer();
        Some(Cores {
            cores: vec![Core::default(); firmware.cores as usize],
            queue: VecDeque::new(),
            costs: Costs::new(
                firmware,
                buffer.is_some(),
                buffer.is_some_and(|buffer| buffer.write == WritePolicy::WriteBack),
            ),
        })
    }

    /// Returns the time that a piece of work takes.
    pub fn cost(&self, work: Work) -> Time {
        let times = |count: u32, each: Time| Time(u64::from(count) * each.0);
        match work {
            Work::Receive(_) | Work::Answer(_) => self.costs.interrupt,
            Work::Admit(_, units) => times(units, self.costs.admission),
            Work::Search(_, _, units) => times(units, self.costs.buffer),
            Work::LookUp(_, _, units) | Work::Trim(_, units) => times(units, self.costs.lookup),
            Work::WriteOut(units) => times(units, self.costs.placement),
            Work::Clean(_) => self.costs.gc,
        }
    }

    /// Gives a piece of work to an idle core, or queues it.
    pub fn queue(&mut self, work: Work, now: Time) -> Queued {
        let cost = self.cost(work);
        if cost == Time::ZERO {
            return Queued::AtOnce;
        }
        match self.cores.iter().position(|core| core.work.is_none()) {
            Some(core) => Queued::Started(self.start(core, work, cost, now, now)),
            None => {
                self.queue.push_back((work, cost, now));
                Queued::Waits
            }
        }
    }

    fn start(&mut self, index: usize, work: Work, cost: Time, since: Time, now: Time) -> Started {
        let core = &mut self.cores[index];
        (core.work, core.until) = (Some(work), now.later(cost));
        core.worked += cost;
        Started { core: index as u32, work, start: now, end: core.until, waited: now - since }
    }

    /// Ends the work of a core. Returns that, and the work that the core starts next.
    pub fn end(&mut self, core: u32, now: Time) -> (Option<Work>, Option<Started>) {
        let done = self.cores[core as usize].work.take();
        let next = self.queue.pop_front();
        (done, next.map(|(work, cost, since)| self.start(core as usize, work, cost, since, now)))
    }

    /// Returns the time for which each core has worked until `at`.
    pub fn worked(&self, at: Time) -> impl Iterator<Item = Time> + '_ {
        self.cores.iter().map(move |core| core.worked.since(core.until.since(at)))
    }

    /// Returns `true` if no core works.
    pub fn are_idle(&self) -> bool {
        self.queue.is_empty() && self.cores.iter().all(|core| core.work.is_none())
    }
}

impl Costs {
    fn new(firmware: &Firmware, has_buffer: bool, writes_back: bool) -> Costs {
        let time = |cost: crate::config::units::FirmwareCost| cost.time(firmware.clock);
        let (lookup, buffer) = (time(firmware.lookup), time(firmware.buffer));
        let placement = lookup + time(firmware.allocation);
        Costs {
            interrupt: time(firmware.interrupt),
            lookup,
            admission: match (has_buffer, writes_back) {
                (_, true) => buffer,
                (true, false) => buffer + placement,
                (false, false) => placement,
            },
            placement,
            gc: time(firmware.gc),
            buffer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(count: u32) -> Cores {
        let options = [format!("controller.firmware.cores={count}"), "controller.firmware.lookup=1us".to_owned()];
        Cores::new(&crate::config::load("tiny", &options).unwrap()).unwrap()
    }

    #[test]
    fn work_waits_for_a_core_in_the_order_of_arrival() {
        let mut cores = cores(1);
        let works = [1, 2, 3].map(|units| Work::LookUp(RequestId(0), 0, units));
        let us = |us: u64| Time(us * 1_000_000);
        let Queued::Started(first) = cores.queue(works[0], us(0)) else { panic!("the core is idle") };
        assert_eq!((first.start, first.end, first.waited), (us(0), us(1), us(0)));
        assert_eq!([cores.queue(works[1], us(0)), cores.queue(works[2], us(0))], [Queued::Waits; 2]);

        let (done, next) = cores.end(0, us(1));
        let second = Started { core: 0, work: works[1], start: us(1), end: us(3), waited: us(1) };
        assert_eq!((done, next), (Some(works[0]), Some(second)));
        // The core has worked for half of its second piece.
        assert_eq!(cores.worked(us(2)).collect::<Vec<_>>(), [us(2)]);
        assert_eq!(cores.end(0, us(3)).1.map(|third| (third.end, third.waited)), Some((us(6), us(3))));
        assert_eq!(cores.end(0, us(6)), (Some(works[2]), None));
        assert!(cores.are_idle());
    }

    #[test]
    fn work_without_a_cost_takes_no_core() {
        let mut cores = cores(2);
        assert_eq!(cores.queue(Work::Receive(RequestId(0)), Time::ZERO), Queued::AtOnce);
        assert!(cores.are_idle());
    }
}
