//! The port of the controller's memory: how long data take into the buffer and out of it.

use std::collections::VecDeque;

use crate::config::BufferConfig;
use crate::sim::time::{Time, transfer_time};

/// What goes on when data are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// A part of a request is done.
    Done(u32),
    /// So many sectors of a read leave for the host.
    Reply(u32, u32),
}

/// One port: accesses use its bandwidth one after another, and each is over one latency later.
#[derive(Clone, Debug)]
pub struct Dram {
    bandwidth: Option<u64>,
    latency: Time,
    free: Time,
    line: VecDeque<(Time, Then)>,
    worked: Time,
}

impl Dram {
    /// The port of a buffer, idle.
    pub fn new(config: &BufferConfig) -> Dram {
        Dram {
            bandwidth: config.bandwidth.map(|bandwidth| bandwidth.0),
            latency: config.latency.time(),
            free: Time::ZERO,
            line: VecDeque::new(),
            worked: Time::ZERO,
        }
    }

    /// Whether an access takes any time.
    #[inline]
    pub fn takes_time(&self) -> bool {
        self.bandwidth.is_some() || self.latency > Time::ZERO
    }

    /// Data cross at `now` or when the port is free; nobody waits for them.
    pub fn pass(&mut self, now: Time, bytes: u64) -> Time {
        let time = self.bandwidth.map_or(Time::ZERO, |bandwidth| transfer_time(bytes, bandwidth));
        self.free = now.max(self.free).later(time);
        self.worked += time;
        self.free
    }

    /// Data cross, and then something goes on.
    pub fn access(&mut self, now: Time, bytes: u64, then: Then) {
        let end = self.pass(now, bytes).later(self.latency);
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
