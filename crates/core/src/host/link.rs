//! Host link: computes when commands and data arrive, from its bandwidth and latency in each direction.

use std::collections::VecDeque;

use crate::config::DeviceConfig;
use crate::sim::id::RequestId;
use crate::sim::time::{Time, transfer_time};

/// Command that crosses the link to the device, with its data.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    request: RequestId,
    /// Time at which the transfer starts.
    start: Time,
    /// Total number of data bytes. 0 for a command without data.
    bytes: u64,
    /// Number of equal steps in which the data arrive: one per flash page of a write.
    steps: u32,
    done: u32,
}

/// Full-duplex link. Transfers in one direction are serialized. Each transfer arrives one latency after it has left.
/// Commands and completions themselves take no bandwidth.
#[derive(Clone, Debug)]
pub struct Link {
    bandwidth: Option<u64>,
    latency: Time,
    /// Time of the host's software for each request.
    software: Time,
    inward: VecDeque<Crossing>,
    inward_free: Time,
    outward_free: Time,
}

impl Link {
    /// Creates the link of a device. Returns `None` if transfers take no time.
    pub fn new(device: &DeviceConfig) -> Option<Link> {
        let bandwidth = device.host.link_bandwidth.map(|b| b.0);
        let (latency, software) = (device.host.link_latency.time(), device.host.software.time());
        (bandwidth.is_some() || latency.later(software) > Time::ZERO).then(|| Link {
            bandwidth,
            latency,
            software,
            inward: VecDeque::new(),
            inward_free: Time::ZERO,
            outward_free: Time::ZERO,
        })
    }

    /// Returns the time from the device's completion of a request until the host's program sees it.
    pub fn return_time(&self) -> Time {
        self.latency.later(self.software)
    }

    fn time_of(&self, bytes: u64) -> Time {
        self.bandwidth.map_or(Time::ZERO, |bandwidth| transfer_time(bytes, bandwidth))
    }

    /// Sends a request to the device at `now`, with `bytes` of data that arrive in `steps` steps. Without a bandwidth
    /// limit, all data arrive in one step.
    pub fn send(&mut self, now: Time, request: RequestId, bytes: u64, steps: u32) {
        let steps = if self.bandwidth.is_some() { steps } else { 1 };
        let start = now.max(self.inward_free);
        self.inward_free = start.later(self.time_of(bytes));
        self.inward.push_back(Crossing { request, start, bytes, steps, done: 0 });
    }

    /// Returns the time at which the next step arrives at the device.
    pub fn next_arrival(&self) -> Option<Time> {
        let head = self.inward.front()?;
        let arrived = (head.bytes * u64::from(head.done + 1)).div_ceil(u64::from(head.steps));
        Some(head.start.later(self.time_of(arrived)).later(self.latency))
    }

    /// Processes the step that has arrived. Returns its request, and `true` if it was the last step.
    pub fn arrive(&mut self) -> Option<(RequestId, bool)> {
        let head = self.inward.front_mut()?;
        head.done += 1;
        let (request, last) = (head.request, head.done == head.steps);
        if last {
            self.inward.pop_front();
        }
        Some((request, last))
    }

    /// Sends `bytes` to the host at `now`. Returns the time at which the last byte leaves the device.
    pub fn reply(&mut self, now: Time, bytes: u64) -> Time {
        self.outward_free = now.max(self.outward_free).later(self.time_of(bytes));
        self.outward_free
    }
}
