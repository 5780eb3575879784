//! Events: the members' next events in the order of time, timers of the controller, and the interface of an SSD.

use floatgate_core::policies::Fault;
use floatgate_core::results::Sample;
use floatgate_core::sim::request::{Completion, Operation, Request, SECTOR, Status};
use floatgate_core::sim::time::{Time, transfer_time};
use floatgate_core::simulation::{Room, Ssd, TakeProbed};

use crate::array::{Pending, SsdArray};
use crate::timers::{Owner, Timer};

impl SsdArray {
    /// Returns the time of the next event, or [`Time::NEVER`].
    #[inline]
    pub(crate) fn next_at(&self) -> Time {
        self.due.first().0.min(self.timers.first())
    }

    /// Processes events up to and at `until`, or to the end of the first instant with a completion if `stops`. Returns
    /// the time up to which everything has happened, or `None` after `events` steps without a completion.
    ///
    /// At one instant, the events of all members come first, then their completions, then the timers of the controller.
    #[inline]
    fn run(&mut self, until: Time, stops: bool, events: u32) -> Option<Time> {
        let mut left = events;
        while left > 0 || !self.completions.is_empty() {
            left = left.saturating_sub(1);
            let (due, number) = self.due.first();
            if self.ready != 0 && due > self.now {
                self.settle();
                continue;
            }
            let at = due.min(self.timers.first());
            if at > self.now && stops && !self.completions.is_empty() {
                return Some(self.now);
            }
            if at > until || at == Time::NEVER {
                return Some(until);
            }
            debug_assert!(at >= self.now, "events are out of order");
            self.now = at;
            if due == at {
                self.events += 1;
                self.members[number as usize].device.advance(at);
                self.look_at(number);
            } else {
                self.fire();
            }
        }
        // The time of the next event must be known, because callers take no event for the end.
        if self.ready != 0 && self.due.first().0 > self.now {
            self.settle();
        }
        None
    }

    fn fire(&mut self) {
        let timer = self.timers.pop();
        self.events += u64::from(!matches!(timer, Some(Timer::Turn)));
        match timer {
            Some(Timer::Part(member, completion)) => self.part_done(member, &completion),
            Some(Timer::Computed(operation)) => self.computed(operation),
            Some(Timer::Rebuild) => self.rebuild_next(),
            Some(Timer::Resync) => self.resync_next(),
            Some(Timer::Turn) => self.next_turn(),
            None => {}
        }
    }

    /// Passes the completion of a request to a member to its owner.
    #[inline]
    pub(crate) fn part_done(&mut self, member: u32, completion: &Completion) {
        match Owner::of(completion.request.tag) {
            Owner::Host(id) => {
                let mut status = completion.status;
                if status == Status::Uncorrectable && self.repair(id, member, &completion.request) {
                    status = Status::Ok;
                }
                self.request_part_done(id, completion.start, status);
            }
            Owner::Operation(id) => self.operation_part_done(id, member, completion),
        }
    }
}

impl Ssd for SsdArray {
    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn submit(&mut self, now: Time, request: Request) {
        debug_assert!(now >= self.now, "`now` is before the clock");
        self.now = now;
        self.start_turns();
        if self.has_queue_room() {
            self.enter(request);
        } else {
            self.waiting.push_back(request);
        }
        self.settle();
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.requests.len() + self.waiting.len()
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.has_queue_room()
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        Some(self.next_at()).filter(|at| *at < Time::NEVER)
    }

    fn advance(&mut self, until: Time) {
        while self.run(until, false, u32::MAX).is_none() {}
        if until < Time::NEVER {
            self.now = self.now.max(until);
        }
    }

    fn run_to_completion(&mut self, until: Time) -> Time {
        loop {
            if let Some(reached) = self.run(until, true, u32::MAX) {
                return reached;
            }
        }
    }

    fn run_some(&mut self, until: Time, events: u32) -> Option<Time> {
        self.run(until, true, events)
    }

    fn flash_operations(&self) -> u64 {
        self.members.iter().map(|member| member.device.flash_operations()).sum()
    }

    fn longest_step(&self, sectors: u32) -> Time {
        let members = self.members.iter().map(|member| member.device.config());
        let longest = members.map(|member| member.longest_step(sectors.max(self.layout.chunk()))).max();
        let row = u64::from(self.layout.chunk()) * SECTOR * u64::from(self.layout.members());
        let xor = self.config.options.xor.map_or(Time::ZERO, |xor| transfer_time(row, xor.0));
        longest.map_or(xor, |longest| longest.later(xor))
    }

    #[inline]
    fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    #[inline]
    fn take_completions(&mut self, into: &mut Vec<Completion>) {
        into.append(&mut self.completions);
    }

    /// Reports reads of the host whose parts are all certain. Other requests can still change.
    fn committed_completions(&self, room: &mut Room, found: &mut dyn FnMut(u64, Time)) {
        let mut certain = Vec::new();
        let mut part = |tag, finish| {
            if let Owner::Host(id) = Owner::of(tag) {
                certain.push((id, finish));
            }
        };
        for member in &self.members {
            Ssd::committed_completions(&member.device, room, &mut part);
        }
        self.timers.parts(|done| {
            if done.status == Status::Ok {
                part(done.request.tag, done.finish);
            }
        });
        certain.sort_unstable();
        for parts in certain.chunk_by(|(one, _), (other, _)| one == other) {
            let [.., (id, finish)] = *parts else { continue };
            let Pending { request, left, status, .. } = self.requests[id];
            if left as usize == parts.len() && status == Status::Ok && request.operation == Operation::Read {
                found(request.tag, finish);
            }
        }
    }

    fn sample(&self, at: Time, into: &mut Sample) {
        let outstanding = into.outstanding;
        let mut members = std::mem::take(&mut into.members);
        members.resize_with(self.members.len(), Sample::default);
        *into = Sample { outstanding, ..Sample::default() };
        for (member, sample) in self.members.iter().zip(&mut members) {
            member.device.sample(at, sample);
            into.add(sample);
        }
        into.at = at;
        into.members = members;
    }

    fn reset_times(&mut self) {
        self.start_measuring();
    }

    fn drain_probe(&mut self, now: Time, take: TakeProbed<'_>) -> Result<(), String> {
        self.drain_probes(now, take)
    }

    #[inline]
    fn prefetch(&self, request: &Request) {
        if let Some((member, request)) = self.first_part(request) {
            self.members[member as usize].device.prefetch(&request);
        }
    }

    #[inline]
    fn prefetch_place(&self, request: &Request) {
        if let Some((member, request)) = self.first_part(request) {
            self.members[member as usize].device.prefetch_place(&request);
        }
    }

    fn fault(&self) -> Option<&Fault> {
        self.members.iter().find_map(|member| member.device.fault())
    }

    fn explain_stall(&self) -> String {
        let stalled = self.members.iter().enumerate().filter(|(_, member)| member.device.outstanding() > 0);
        let stalled: Vec<String> =
            stalled.map(|(number, member)| format!("member {number}: {}", member.device.explain_stall())).collect();
        format!(
            "{} requests in the array, {} waiting, {} stripe operations; {}",
            self.requests.len(),
            self.waiting.len(),
            self.operations.len(),
            stalled.join("; ")
        )
    }
}
