//! The host link: bandwidth and latency, each way.

use std::collections::VecDeque;

use crate::config::DeviceConfig;
use crate::sim::id::RequestId;
use crate::sim::time::{Time, transfer_time};

/// What crosses the link towards the device.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    request: RequestId,
    /// When its first byte starts.
    start: Time,
    /// Bytes in all; 0 for a command alone.
    bytes: u64,
    /// It arrives in so many equal steps: a write by its flash pages.
    steps: u32,
    done: u32,
}

/// A full-duplex link. Commands and data towards the device cross one after another, and so do data towards the
/// host; each arrives one latency after it has left. Commands and completions themselves take no bandwidth.
#[derive(Clone, Debug)]
pub struct Link {
    bandwidth: Option<u64>,
    latency: Time,
    inward: VecDeque<Crossing>,
    inward_free: Time,
    outward_free: Time,
}

impl Link {
    /// The link of a device; `None` where it takes no time.
    pub fn new(device: &DeviceConfig) -> Option<Link> {
        let bandwidth = device.host.link_bandwidth.map(|b| b.0);
        let latency = device.host.link_latency.time();
        (bandwidth.is_some() || latency > Time::ZERO).then(|| Link {
            bandwidth,
            latency,
            inward: VecDeque::new(),
            inward_free: Time::ZERO,
            outward_free: Time::ZERO,
        })
    }

    /// One latency of the link.
    pub fn latency(&self) -> Time {
        self.latency
    }

    fn time_of(&self, bytes: u64) -> Time {
        self.bandwidth.map_or(Time::ZERO, |bandwidth| transfer_time(bytes, bandwidth))
    }

    /// Sends a request towards the device at `now`, with `bytes` of data that arrive in `steps`; in one, where they
    /// take no bandwidth and so are there at once.
    pub fn send(&mut self, now: Time, request: RequestId, bytes: u64, steps: u32) {
        let steps = if self.bandwidth.is_some() { steps } else { 1 };
        let start = now.max(self.inward_free);
        self.inward_free = start.later(self.time_of(bytes));
        self.inward.push_back(Crossing { request, start, bytes, steps, done: 0 });
    }

    /// When the next step arrives at the device.
    pub fn next_arrival(&self) -> Option<Time> {
        let head = self.inward.front()?;
        let arrived = (head.bytes * u64::from(head.done + 1)).div_ceil(u64::from(head.steps));
        Some(head.start.later(self.time_of(arrived)).later(self.latency))
    }

    /// Takes the step that has arrived: its request, and whether it was the last.
    pub fn arrive(&mut self) -> Option<(RequestId, bool)> {
        let head = self.inward.front_mut()?;
        head.done += 1;
        let (request, last) = (head.request, head.done == head.steps);
        if last {
            self.inward.pop_front();
        }
        Some((request, last))
    }

    /// Sends `bytes` towards the host at `now`; returns when the last has left the device.
    pub fn reply(&mut self, now: Time, bytes: u64) -> Time {
        self.outward_free = now.max(self.outward_free).later(self.time_of(bytes));
        self.outward_free
    }
}
