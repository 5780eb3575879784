//! Cost of a frontend in real time, and the pace of simulated time.

use floatgate_core::device_file::{DeviceConfig, Direction};
use floatgate_core::sim::request::Operation;

use crate::clock::{Clock, Speed, Wall};

/// Pace of simulated time.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Follows real time.
    Timed(Clock),
    /// The host runs as fast as possible, and only while requests are outstanding.
    AtOnce,
}

/// Real time that a frontend needs to receive a request and send its reply. Deducted from the due time of the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Fixed cost of a read, and cost of each of its bytes, in ns.
    pub read: (f64, f64),
    /// Fixed cost of a write, and cost of each of its bytes, in ns.
    pub write: (f64, f64),
    /// Additional cost of waking a client that has slept longer. Each pair is a latency and the additional cost at that
    /// latency, both in ns. Sorted by latency.
    pub asleep: [(f64, f64); 2],
    /// Amount in ns by which the cost is lower for a client that polls for replies, compared with an immediate wake-up.
    /// `None` if clients cannot indicate polling.
    pub waking: Option<f64>,
    /// True during calibration. The client's own factor ([`Requesting::scale`](crate::lateness::Requesting::scale)) is
    /// then ignored.
    pub is_provisional: bool,
}

impl Cost {
    /// Returns the cost, in microseconds, of a read and of a write of 4 KiB at the first and the second latency of
    /// `asleep`.
    pub fn us(&self) -> [f64; 2] {
        let [read, write] = [self.read, self.write].map(|(fixed, each)| fixed + each * 4096.0);
        [read + self.asleep[0].1, write + self.asleep[1].1].map(|ns| ns / 1e3)
    }

    /// Returns why this cost cannot be deducted, if its part of a read or a write of 4 KiB exceeds the real time that
    /// flash of the device needs for one: then the machine was busy while the cost was measured, or is too slow.
    pub fn refusal(&self, name: &str, device: &DeviceConfig, speed: Speed) -> Option<String> {
        let nand = &device.nand;
        let flash = [("read", &nand.read, Direction::Out), ("write", &nand.program, Direction::In)];
        flash.into_iter().zip(self.us()).find_map(|((operation, cells, direction), us)| {
            let cell = cells.values().iter().map(|time| time.time().as_us()).fold(0.0, f64::max);
            let own = (cell + device.data_time(device.page_bytes(), direction).as_us()) / speed.as_f64();
            (us > own).then(|| {
                format!(
                    "nothing is deducted over {name}: the self-test measured an overhead of {us:.1} us for a {operation}, \
                     more than the {own:.1} us of the flash itself; replies are late by the overhead of this machine, so \
                     start again when it is idle, or slow the device down with --speed"
                )
            })
        })
    }

    /// Returns the average amount, in microseconds, by which the cost is lower for a client that polls. 0 if none is
    /// known.
    pub fn waking_us(&self) -> f64 {
        let [(_, read), (_, write)] = self.asleep;
        self.waking.map_or(0.0, |waking| (waking + (read + write) / 2.0) / 1e3)
    }

    /// Returns the cost of a request with this latency, for a client that is polling (`is_awake`) or has to be woken.
    pub fn of(&self, operation: Operation, bytes: u64, latency: Wall, is_awake: bool) -> Wall {
        let (fixed, each) = if operation == Operation::Read { self.read } else { self.write };
        let bytes = if matches!(operation, Operation::Read | Operation::Write) { bytes } else { 0 };
        let waking = match self.waking.filter(|_| is_awake) {
            Some(less) => -less,
            None => self.slept(latency.0 as f64),
        };
        Wall((fixed + each * bytes as f64 + waking).max(0.0) as u64)
    }

    /// Returns the additional cost of waking a client after `latency` ns. Interpolates linearly, and is constant above
    /// the last measured latency.
    fn slept(&self, latency: f64) -> f64 {
        let [first, last] = self.asleep;
        let (from, to) = if latency < first.0 { ((0.0, 0.0), first) } else { (first, last) };
        if latency >= to.0 {
            return to.1;
        }
        from.1 + (to.1 - from.1) * (latency - from.0) / (to.0 - from.0)
    }
}
