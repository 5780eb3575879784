//! The port of the controller's memory: how long data take into the buffer and out of it.

use std::collections::VecDeque;

use crate::config::BufferConfig;
use crate::sim::id::RequestId;
use crate::sim::request::SECTOR;
use crate::sim::time::{Time, transfer_time};

/// What goes on when data are there: a part of a request is done, or leaves for the host. Two words, which travel in
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Then {
    /// The request.
    pub request: RequestId,
    /// Sectors of a read that leave for the host; none where the part is done.
    pub reply: u32,
}

/// One port: accesses use its bandwidth one after another, and each is over one latency later.
#[derive(Clone, Debug)]
pub struct Dram {
    /// By the number of sectors, how long they take the port: to divide takes longer than to look.
    times: Vec<Time>,
    latency: Time,
    free: Time,
    line: VecDeque<(Time, Then)>,
    worked: Time,
}

impl Dram {
    /// The port of a buffer, idle; no more than `sectors` cross it at once.
    pub fn new(config: &BufferConfig, sectors: u32) -> Dram {
        let time = |sectors: u32| {
            let bytes = u64::from(sectors) * SECTOR;
            config.bandwidth.map_or(Time::ZERO, |bandwidth| transfer_time(bytes, bandwidth.0))
        };
        Dram {
            times: (0..=sectors).map(time).collect(),
            latency: config.latency.time(),
            free: Time::ZERO,
            line: VecDeque::new(),
            worked: Time::ZERO,
        }
    }

    /// Whether an access takes any time.
    #[inline]
    pub fn takes_time(&self) -> bool {
        self.times.last() > Some(&Time::ZERO) || self.latency > Time::ZERO
    }

    /// Sectors cross at `now` or when the port is free; nobody waits for them.
    #[inline]
    pub fn pass(&mut self, now: Time, sectors: u32) -> Time {
        let time = self.times[sectors as usize];
        self.free = now.max(self.free).later(time);
        self.worked += time;
        self.free
    }

    /// Sectors cross, and then something goes on.
    #[inline]
    pub fn access(&mut self, now: Time, sectors: u32, then: Then) {
        let end = self.pass(now, sectors).later(self.latency);
        self.line.push_back((end, then));
    }

    /// When the next access is over.
    pub fn next(&self) -> Option<Time> {
        self.line.front().map(|(at, _)| *at)
    }

    /// Takes what goes on at `now`.
    pub fn take(&mut self, now: Time) -> Option<Then> {
        if self.next()? > now {
            return None;
        }
        self.line.pop_front().map(|(_, then)| then)
    }

    /// Time for which the port has worked, up to `at`.
    pub fn worked(&self, at: Time) -> Time {
        self.worked.since(self.free.since(at))
    }
}
