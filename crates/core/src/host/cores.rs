//! Controller cores: run the work of the firmware, which waits in one queue.

use std::collections::VecDeque;

use crate::config::{DeviceConfig, Firmware, WritePolicy};
use crate::sim::id::{PlaneId, RequestId};
use crate::sim::time::Time;

/// Piece of work for a core, named after the step that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Receive a request that has arrived.
    Receive(RequestId),
    /// Admit this many units of a write.
    Admit(RequestId, u32),
    /// Search the buffer for units of a read: index of the first one, and number of units.
    Search(RequestId, u32, u32),
    /// Look up units of a read in the map: index of the first one, and number of units.
    LookUp(RequestId, u32, u32),
    /// Look up this many units of a trim.
    Trim(RequestId, u32),
    /// Write back this many units of the buffer.
    WriteOut(u32),
    /// Choose a victim for garbage collection in a plane.
    Clean(PlaneId),
    /// Complete a request.
    Answer(RequestId),
}

impl Work {
    /// Returns the request that the work belongs to, or `NONE`.
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

/// Piece of work that a core has started.
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

/// Result of queueing a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// The work takes no time, and was not queued.
    AtOnce,
    /// A core has started the work.
    Started(Started),
    /// The work waits for a core.
    Waits,
}

/// Core of the controller.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    work: Option<Work>,
    /// End of its latest work.
    until: Time,
    /// Total working time, including the latest work.
    worked: Time,
}

/// Time that each kind of work takes, per mapping unit or per request.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    interrupt: Time,
    lookup: Time,
    admission: Time,
    placement: Time,
    gc: Time,
    buffer: Time,
}

/// Cores, and the work that waits for them.
#[derive(Clone, Debug)]
pub struct Cores {
    cores: Vec<Core>,
    /// Work, the time that it takes, and when it was queued.
    queue: VecDeque<(Work, Time, Time)>,
    costs: Costs,
}

impl Cores {
    /// Creates idle cores. Returns `None` if the device has no firmware model.
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

    /// Starts a piece of work on an idle core, or queues it.
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

    /// Completes the work of a core. Returns this work, and the work that the core starts next.
    pub fn end(&mut self, core: u32, now: Time) -> (Option<Work>, Option<Started>) {
        let done = self.cores[core as usize].work.take();
        let next = self.queue.pop_front();
        (done, next.map(|(work, cost, since)| self.start(core as usize, work, cost, since, now)))
    }

    /// Returns the time for which each core has worked until `at`.
    pub fn worked(&self, at: Time) -> impl Iterator<Item = Time> + '_ {
        self.cores.iter().map(move |core| core.worked.since(core.until.since(at)))
    }

    /// Returns `true` if all cores are idle and no work is queued.
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
        let Queued::Started(first) = cores.queue(works[0], us(0)) else { panic!("an idle core must start the work") };
        assert_eq!((first.start, first.end, first.waited), (us(0), us(1), us(0)));
        assert_eq!([cores.queue(works[1], us(0)), cores.queue(works[2], us(0))], [Queued::Waits; 2]);

        let (done, next) = cores.end(0, us(1));
        let second = Started { core: 0, work: works[1], start: us(1), end: us(3), waited: us(1) };
        assert_eq!((done, next), (Some(works[0]), Some(second)));
        // The core has completed half of its second piece of work.
        assert_eq!(cores.worked(us(2)).collect::<Vec<_>>(), [us(2)]);
        assert_eq!(cores.end(0, us(3)).1.map(|third| (third.end, third.waited)), Some((us(6), us(3))));
        assert_eq!(cores.end(0, us(6)), (Some(works[2]), None));
        assert!(cores.are_idle());
    }

    #[test]
    fn work_without_a_cost_needs_no_core() {
        let mut cores = cores(2);
        assert_eq!(cores.queue(Work::Receive(RequestId(0)), Time::ZERO), Queued::AtOnce);
        assert!(cores.are_idle());
    }
}
