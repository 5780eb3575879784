//! Port of the buffer memory: the time that data takes to enter and to leave the buffer.

use std::collections::VecDeque;

use crate::config::BufferConfig;
use crate::sim::id::RequestId;
use crate::sim::request::SECTOR;
use crate::sim::time::{Time, transfer_time};

/// Continuation of an access to the buffer memory: completes a part of a request, or sends data to the host. It is
/// small enough to be passed in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Then {
    /// The request.
    pub request: RequestId,
    /// Sectors of a read to send to the host; 0 if the access completes its part of the request.
    pub reply: u32,
}

/// Port of the buffer memory. Accesses use the bandwidth one after another. Each completes one latency after its
/// transfer.
#[derive(Clone, Debug)]
pub struct Dram {
    /// Transfer time, indexed by the number of sectors. A look-up is faster than a division.
    times: Vec<Time>,
    latency: Time,
    free: Time,
    line: VecDeque<(Time, Then)>,
    worked: Time,
}

impl Dram {
    /// Creates an idle port for accesses of up to `sectors` sectors.
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

    /// Returns `true` if accesses take time.
    #[inline]
    pub fn takes_time(&self) -> bool {
        self.times.last() > Some(&Time::ZERO) || self.latency > Time::ZERO
    }

    /// Transfers sectors as soon as the port is free. Nothing waits for the transfer. Returns its end.
    #[inline]
    pub fn pass(&mut self, now: Time, sectors: u32) -> Time {
        let time = self.times[sectors as usize];
        self.free = now.max(self.free).later(time);
        self.worked += time;
        self.free
    }

    /// Transfers sectors, and queues `then` for one latency after the transfer.
    #[inline]
    pub fn access(&mut self, now: Time, sectors: u32, then: Then) {
        let end = self.pass(now, sectors).later(self.latency);
        self.line.push_back((end, then));
    }

    /// Returns the time at which the next access completes.
    pub fn next(&self) -> Option<Time> {
        self.line.front().map(|(at, _)| *at)
    }

    /// Removes and returns the continuation of the next access, if that has completed by `now`.
    pub fn take(&mut self, now: Time) -> Option<Then> {
        if self.next()? > now {
            return None;
        }
        self.line.pop_front().map(|(_, then)| then)
    }

    /// Returns the time for which the port has been busy until `at`.
    pub fn worked(&self, at: Time) -> Time {
        self.worked.since(self.free.since(at))
    }
}
