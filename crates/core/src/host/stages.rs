//! Stages of a request in the controller: admission of the units of writes, and the start of its service.

use std::ops::Range;

use super::cores::{Queued, Work};
use super::interface::HostInterface;
use super::requests::Part;
use super::throttle::{FillLevel, Passage};
use crate::ftl::Ftl;
use crate::sim::id::RequestId;
use crate::sim::request::{Operation, Request};
use crate::sim::time::Time;

/// Step of a request that has arrived over the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crossed {
    /// A request that the firmware may receive: all of it, or the first units of a write.
    Whole,
    /// Further units of a write that the firmware has received.
    More(Range<u32>),
    /// Further units of a write that the firmware has not received yet.
    Early,
}

/// First step of the service of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The look-up of the units of a read, with their number.
    Read(u32),
    /// The admission of the units of a write whose data have arrived, with their number.
    Write(u32),
    /// The admission of earlier writes, for which the read waits.
    Waits,
    /// A request without data.
    Command(Operation),
}

/// Next step in the queue of writes, after a unit of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The next unit, which may be admitted.
    Next,
    /// The first write waits for the arrival of its next unit.
    Waits,
    /// All units of the first write have been admitted. It writes zeroes if this is true.
    Whole(bool),
}

impl HostInterface {
    /// Handles the arrival of the next step of a request over the link. `last` is true for its last step.
    pub fn cross(&mut self, id: RequestId, last: bool) -> Crossed {
        if self.requests[id].request.operation != Operation::Write {
            return Crossed::Whole;
        }
        let before = self.requests[id].crossed;
        // The units up to the end of the page that has just arrived.
        let end = if last { self.units_of(id) } else { self.end_of_page(id, before) };
        let pending = &mut self.requests[id];
        pending.crossed = end;
        match before {
            0 => Crossed::Whole,
            _ if pending.received => Crossed::More(before..end),
            _ => Crossed::Early,
        }
    }

    /// Queues a request for admission.
    #[inline]
    fn queue(&mut self, id: RequestId, now: Time) {
        self.unadmitted.push_back(id);
        if let Some(throttle) = &mut self.throttle {
            throttle.mark_arrival(now);
        }
    }

    /// Removes and returns the first request in the queue, if it is a read.
    #[inline(always)]
    pub fn take_read(&mut self) -> Option<RequestId> {
        let &id = self.unadmitted.front().filter(|_| self.is_one_queue)?;
        if self.requests[id].request.operation != Operation::Read {
            return None;
        }
        self.end_admission();
        Some(id)
    }

    /// Receives a request that is in the controller and known to the firmware. Returns the first step of its service.
    /// If reads and writes have one queue, a read waits behind the writes in it, and is received again.
    #[inline(always)]
    pub fn receive(&mut self, id: RequestId, now: Time) -> Received {
        let has_link = self.link.is_some();
        let pending = &mut self.requests[id];
        let has_waited = std::mem::replace(&mut pending.received, true);
        match pending.request.operation {
            Operation::Read if self.is_one_queue && !has_waited && !self.unadmitted.is_empty() => {
                self.queue(id, now);
                Received::Waits
            }
            Operation::Read => {
                pending.remaining = pending.units;
                Received::Read(pending.units)
            }
            Operation::Write if has_link => Received::Write(pending.crossed),
            Operation::Write | Operation::WriteZeroes => {
                pending.crossed = pending.units;
                Received::Write(pending.units)
            }
            operation => Received::Command(operation),
        }
    }

    /// Admits the next unit of a write. Returns its request.
    #[inline(always)]
    pub fn admit(&mut self, id: RequestId) -> Request {
        let pending = &mut self.requests[id];
        pending.admitted += 1;
        pending.request
    }

    /// Queues `units` units of a write for admission, after the firmware has processed them.
    #[inline]
    pub fn queue_for_admission(&mut self, id: RequestId, units: u32, now: Time) {
        let pending = &mut self.requests[id];
        pending.arrived += units;
        if pending.arrived == units {
            self.queue(id, now);
        }
    }

    /// Returns the first write that waits for admission, and its next unit if that has arrived.
    #[inline]
    pub fn first_unadmitted(&self) -> Option<(RequestId, Option<Part>)> {
        let &id = self.unadmitted.front()?;
        let pending = &self.requests[id];
        let has_arrived = pending.admitted < pending.arrived;
        Some((id, has_arrived.then(|| self.part_of(id, pending.admitted))))
    }

    /// Decides whether the first write, which has room, may be admitted. The throttle may delay it. `level` is that of
    /// the buffer.
    #[inline(always)]
    pub fn pass_throttle(
        &mut self,
        id: RequestId,
        ftl: &Ftl,
        level: impl FnOnce() -> Option<FillLevel>,
        now: Time,
    ) -> Passage {
        match &mut self.throttle {
            Some(throttle) => throttle.pass(&self.requests[id], ftl, level, now),
            None => Passage::Free,
        }
    }

    /// Returns what follows after a unit of the first write has been admitted, if any. The end of the write waits for
    /// the tasks of its units, if there are any.
    #[inline]
    pub fn next_admission(&mut self, id: RequestId, has_tasks: bool, now: Time) -> Admission {
        let pending = &mut self.requests[id];
        let is_zeroed = pending.request.operation == Operation::WriteZeroes;
        if has_tasks && (is_zeroed || pending.remaining == 1) {
            return Admission::Next;
        }
        if is_zeroed && pending.admitted == pending.arrived {
            pending.start = pending.start.min(now);
        }
        if pending.admitted == pending.units {
            Admission::Whole(is_zeroed)
        } else if pending.admitted < pending.arrived {
            Admission::Next
        } else {
            Admission::Waits
        }
    }

    /// Removes the first write, which has been admitted as a whole, from the queue.
    #[inline]
    pub fn end_admission(&mut self) {
        self.unadmitted.pop_front();
        if let Some(throttle) = &mut self.throttle {
            throttle.mark_admission();
        }
    }

    /// Adds a part to a request that is being split, and whose service has started by `now`.
    #[inline]
    pub fn add_part(&mut self, id: RequestId, now: Time) {
        let pending = &mut self.requests[id];
        pending.remaining += 1;
        pending.start = pending.start.min(now);
    }

    /// Records that the service of a request starts now, if it has not started yet. Returns the tag of the request, or
    /// `u64::MAX` for `NONE`: a write of the buffer that no request waits for.
    #[inline]
    pub fn serve(&mut self, id: RequestId, now: Time) -> u64 {
        if id.is_none() {
            return u64::MAX;
        }
        let pending = &mut self.requests[id];
        pending.start = pending.start.min(now);
        pending.request.tag
    }

    /// Queues a piece of work for the cores, if the device has a firmware model.
    #[inline(always)]
    pub fn queue_work(&mut self, work: Work, now: Time) -> Queued {
        self.cores.as_mut().map_or(Queued::AtOnce, |cores| cores.queue(work, now))
    }

    /// Returns the time for which each core was busy until `at`, in the order of the cores.
    pub fn core_times(&self, at: Time) -> Vec<Time> {
        self.cores.as_deref().map_or_else(Vec::new, |cores| cores.worked(at).collect())
    }

    /// Returns `true` if the completion of a request takes firmware time.
    #[inline]
    pub fn answering_takes_time(&self) -> bool {
        let answer = Work::Answer(RequestId::NONE);
        self.cores.as_deref().is_some_and(|cores| cores.cost(answer) > Time::ZERO)
    }
}
