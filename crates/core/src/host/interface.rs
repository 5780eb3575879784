//! Host interface of a device: keeps requests from their arrival to their completion.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::cores::Cores;
use super::link::Link;
use super::queues::Submitted;
use super::requests::{Part, Pending, Requests, Units};
use super::throttle::Throttle;
use crate::config::{DeviceConfig, HostOrder};
use crate::sim::id::{Lpn, RequestId};
use crate::sim::request::{Completion, Operation, Request, SECTOR, Status};
use crate::sim::time::Time;

/// Host interface of a device: the queue, the link, the outstanding requests and the controller's cores.
#[derive(Clone, Debug)]
pub struct HostInterface {
    /// Outstanding requests.
    pub requests: Requests,
    /// Cores of the controller, if the device has a firmware model.
    pub cores: Option<Box<Cores>>,
    /// Write requests that wait for write slots or for room in the buffer, oldest first, and reads behind them.
    pub unadmitted: VecDeque<RequestId>,
    /// True if reads wait behind these writes (`host.order`).
    pub(super) is_one_queue: bool,
    /// Throttle of writes, if the device has one.
    pub throttle: Option<Box<Throttle>>,
    pub(super) link: Option<Link>,
    queue_depth: usize,
    /// Number of outstanding requests below which a request needs no queue: the queue depth, or 0 if fetches take time.
    direct_depth: usize,
    /// Number of outstanding requests below which the host submits more: the queue depth. With queue pairs, no limit.
    host_depth: usize,
    /// Requests beyond the queue depth.
    submitted: Submitted,
    /// Arrival times at the host of completions that are crossing the link. Each arrival frees a queue slot.
    returning: BinaryHeap<Reverse<Time>>,
    completions: Vec<Completion>,
    /// Number of the completions that were counted: see [`HostInterface::count_completions`].
    counted: usize,
    /// Number of sectors that the host sees.
    sectors: u64,
    units: Units,
}

impl HostInterface {
    /// Creates the host interface of an idle device.
    pub fn new(config: &DeviceConfig, seed: u64) -> HostInterface {
        let submitted = Submitted::new(config, seed);
        let queue_depth = config.host.queue_depth as usize;
        HostInterface {
            requests: Requests::default(),
            cores: Cores::new(config, seed).map(Box::new),
            unadmitted: VecDeque::new(),
            is_one_queue: config.host.order == HostOrder::OneQueue,
            throttle: Throttle::new(config).map(Box::new),
            link: Link::new(config),
            queue_depth,
            direct_depth: if submitted.takes_time() { 0 } else { queue_depth },
            host_depth: if config.host.queues.is_some() { usize::MAX } else { queue_depth },
            submitted,
            returning: BinaryHeap::new(),
            completions: Vec::new(),
            counted: 0,
            sectors: config.logical_sectors(),
            units: Units::new(config),
        }
    }

    /// Returns the number of sectors that the host sees.
    #[inline]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the number of outstanding requests in the queue.
    pub fn in_progress(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of requests that wait for a queue slot.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.submitted.len()
    }

    /// Returns the number of requests that were submitted and have not completed.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.in_progress() + self.waiting()
    }

    /// Returns the number of requests that hold a place in the device.
    #[inline]
    fn places(&self) -> usize {
        self.requests.len() + self.returning.len()
    }

    /// Returns `true` if the host can submit another request.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.places() < self.host_depth
    }

    /// Returns `true` if a request that is submitted enters at once.
    #[inline]
    pub fn enters_at_once(&self) -> bool {
        self.places() < self.direct_depth
    }

    /// Returns the time at which the next completion arrives at the host, if one is crossing the link.
    pub fn next_return(&self) -> Option<Time> {
        self.returning.peek().map(|&Reverse(at)| at)
    }

    /// Adds a request to those that wait for a place in the device.
    pub fn wait(&mut self, request: Request) {
        self.submitted.add(request);
    }

    /// Removes and returns the next waiting request, if there is one and it can enter at once.
    #[inline]
    pub fn next_waiting(&mut self) -> Option<Request> {
        if self.submitted.is_empty() || !self.enters_at_once() { None } else { self.submitted.next() }
    }

    /// Starts to fetch waiting requests, if fetches take time and there is room. Returns the end of the fetch.
    pub fn fetch(&mut self, now: Time) -> Option<Time> {
        let room = self.queue_depth.saturating_sub(self.places());
        if self.submitted.takes_time() { self.submitted.fetch(room, now) } else { None }
    }

    /// Removes and returns a request whose fetch has ended by `now`.
    pub fn fetched(&mut self, now: Time) -> Option<Request> {
        self.submitted.fetched(now)
    }

    /// Returns `true` if a request is within the sectors that the host sees.
    pub fn is_in_range(&self, request: &Request) -> bool {
        let end = request.lba.checked_add(u64::from(request.sectors));
        request.operation == Operation::Flush || (request.sectors > 0 && end.is_some_and(|end| end <= self.sectors))
    }

    /// Adds a request to the queue.
    #[inline(always)]
    pub fn enter(&mut self, request: Request) -> RequestId {
        self.requests.insert(self.units.enter(request))
    }

    /// Returns `true` if requests and data need time to cross the link.
    #[inline]
    pub fn has_link(&self) -> bool {
        self.link.is_some()
    }

    /// Sends a request to the controller at `now`, and the data of a write with it.
    pub fn send(&mut self, id: RequestId, now: Time) {
        let request = self.requests[id].request;
        let (bytes, steps) = match request.operation {
            Operation::Write => (request.bytes(), self.units.pages_of(&request)),
            _ => (0, 1),
        };
        if let Some(link) = &mut self.link {
            link.send(now, id, bytes, steps);
        }
    }

    /// Returns the time of the next arrival at the controller.
    pub fn next_arrival(&self) -> Option<Time> {
        self.link.as_ref().and_then(Link::next_arrival)
    }

    /// Processes the next arrival at the controller. Returns the request, and `true` if this is its last step.
    pub fn arrive(&mut self) -> Option<(RequestId, bool)> {
        self.link.as_mut()?.arrive()
    }

    /// Sends `sectors` sectors of a read to the host at `now`. Returns the time at which the last one leaves the
    /// device.
    #[inline]
    pub fn reply(&mut self, id: RequestId, sectors: u32, now: Time) -> Time {
        match &mut self.link {
            Some(link) if self.requests[id].request.operation == Operation::Read => {
                link.reply(now, u64::from(sectors) * SECTOR)
            }
            _ => now,
        }
    }

    /// Returns the number of mapping units that a request covers or rewrites.
    #[inline]
    pub fn units_of(&self, id: RequestId) -> u32 {
        self.requests[id].units
    }

    /// Returns the part of a request in its mapping unit number `index`.
    #[inline]
    pub fn part_of(&self, id: RequestId, index: u32) -> Part {
        self.units.part(&self.requests[id], index)
    }

    /// Returns `true` if a part of a request covers its whole unit.
    #[inline]
    pub fn covers_unit(&self, part: Part) -> bool {
        part.sectors() == self.units.sectors()
    }

    /// Returns the index of a request's first unit after the flash page of its unit `index`.
    pub fn end_of_page(&self, id: RequestId, index: u32) -> u32 {
        self.units.end_of_page(&self.requests[id], index)
    }

    /// Returns the first mapping unit of a request that is not yet submitted.
    pub fn first_unit(&self, request: &Request) -> Lpn {
        self.units.at(request.lba.min(self.sectors))
    }

    /// Returns the tag of a request, or `u64::MAX` if `id` is `NONE`.
    pub fn tag_of(&self, id: RequestId) -> u64 {
        if id.is_none() { u64::MAX } else { self.requests[id].request.tag }
    }

    /// Completes one part of a request at `at`. Returns `true` if it was the last part.
    #[inline]
    pub fn part_done(&mut self, id: RequestId, at: Time) -> bool {
        let pending = &mut self.requests[id];
        pending.finish = pending.finish.max(at);
        pending.remaining -= 1;
        pending.remaining == 0
    }

    /// Sets the status of a request, unless `id` is `NONE`.
    pub fn set_status(&mut self, id: RequestId, status: Status) {
        if id.is_some() {
            self.requests[id].status = status;
        }
    }

    /// Returns the time at which the completion that is sent at `now` arrives at the host.
    #[inline]
    pub fn finish_of(&self, id: RequestId, now: Time) -> Time {
        self.requests[id].finish.max(now).later(self.link.as_ref().map_or(Time::ZERO, Link::return_time))
    }

    /// Removes a request from the queue, and adds its completion, which arrives at the host at `finish`.
    #[inline]
    pub fn complete(&mut self, id: RequestId, finish: Time) -> Request {
        let Pending { request, status, start, .. } = self.requests.remove(id);
        self.completions.push(Completion { request, status, start: start.min(finish), finish });
        request
    }

    /// Keeps the queue slot of a completed request occupied until its completion arrives at the host.
    pub fn hold_place(&mut self, until: Time) {
        self.returning.push(Reverse(until));
    }

    /// Returns the queue depth.
    pub fn depth(&self) -> usize {
        self.queue_depth
    }

    /// Frees the queue slots of completions that have arrived at the host by `now`.
    pub fn free_places(&mut self, now: Time) {
        while self.returning.peek().is_some_and(|at| at.0 <= now) {
            self.returning.pop();
        }
    }

    /// Completes a request with an error status.
    pub fn refuse(&mut self, request: Request, status: Status, now: Time) {
        self.completions.push(Completion { request, status, start: now, finish: now });
    }

    /// Returns `true` if there are completions that were neither taken nor counted.
    #[inline]
    pub fn has_completions(&self) -> bool {
        self.completions.len() > self.counted
    }

    /// Returns the number of completions since the last call, which stay here until they are taken together. `None` if
    /// completions need time to cross the link.
    #[inline]
    pub fn count_completions(&mut self) -> Option<usize> {
        if self.link.is_some() {
            return None;
        }
        Some(self.completions.len() - std::mem::replace(&mut self.counted, self.completions.len()))
    }

    /// Moves the completions since the last call to `into`, in the order in which they were determined.
    pub fn take_completions(&mut self, into: &mut Vec<Completion>) {
        self.counted = 0;
        if into.is_empty() {
            std::mem::swap(into, &mut self.completions);
        } else {
            into.append(&mut self.completions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(overrides: &[&str]) -> HostInterface {
        let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
        HostInterface::new(&crate::config::load("tiny", &overrides).unwrap(), 1)
    }

    const FLUSH: Request = Request {
        tag: 0,
        arrival: Time::ZERO,
        operation: Operation::Flush,
        lba: 0,
        sectors: 0,
        stream: 0,
        namespace: 1,
        placement: 0,
        fua: false,
        high_priority: false,
    };

    fn write(lba: u64, sectors: u32) -> Request {
        Request { operation: Operation::Write, lba, sectors, ..FLUSH }
    }

    #[test]
    fn requests_beyond_the_queue_depth_wait_for_a_queue_slot() {
        let mut interface = interface(&["host.queue_depth=2"]);
        let ids = [interface.enter(write(0, 8)), interface.enter(write(8, 8))];
        assert!(!interface.has_room());
        interface.wait(write(16, 8));
        assert_eq!(interface.next_waiting(), None);

        assert!(interface.part_done(ids[0], Time(5)), "a request has one extra part until it is split");
        let finish = interface.finish_of(ids[0], Time(7));
        assert_eq!(interface.complete(ids[0], finish), write(0, 8));
        // The completion arrives at the host later, and the queue slot is occupied until then.
        interface.hold_place(Time(9));
        assert_eq!((interface.next_waiting(), interface.next_return()), (None, Some(Time(9))));
        interface.free_places(Time(8));
        assert_eq!(interface.next_waiting(), None);
        interface.free_places(Time(9));
        assert_eq!(interface.next_waiting(), Some(write(16, 8)));

        let mut completions = Vec::new();
        interface.take_completions(&mut completions);
        assert_eq!(completions.iter().map(|completion| completion.finish).collect::<Vec<_>>(), [Time(7)]);
        assert!(!interface.has_completions());
    }

    #[test]
    fn requests_beyond_the_last_sector_are_out_of_range() {
        let interface = interface(&[]);
        let last = interface.sectors() - 1;
        assert!(interface.is_in_range(&write(last, 1)) && !interface.is_in_range(&write(last, 2)));
        assert!(!interface.is_in_range(&write(0, 0)) && !interface.is_in_range(&write(u64::MAX, 1)));
        assert!(interface.is_in_range(&FLUSH));
    }
}
