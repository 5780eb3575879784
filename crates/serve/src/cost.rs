//! What a front end takes in real time, and how simulated time passes beside it.

use floatgate_core::sim::request::Operation;

use crate::clock::{Clock, Wall};

/// How simulated time passes.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// With the clock on the wall.
    Timed(Clock),
    /// As fast as it can be worked out, and only while requests are in progress.
    AtOnce,
}

/// What a front end takes to receive a request and send its answer, in real time; deducted from the answer's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Of a read without bytes, and for each byte, in ns.
    pub read: (f64, f64),
    /// Of a write without bytes, and for each byte, in ns.
    pub write: (f64, f64),
    /// How much more it is of a client that has slept for longer, which wakes more slowly: for two latencies in ns, in
    /// ascending order, the ns beyond those of a request that is answered at once.
    pub asleep: [(f64, f64); 2],
    /// How much less than at once it is of a client that looks for its answers and need not be woken, in ns; `None`
    /// where clients cannot say that they do.
    pub waking: Option<f64>,
    /// It is being found out: what a client seems to take ([`Asking::scale`](crate::lateness::Asking::scale)) is not
    /// looked at.
    pub is_provisional: bool,
}

impl Cost {
    /// Of a read and of a write of 4 KiB that take as long as the first and the second latency of `asleep`, in
    /// microseconds.
    pub fn us(&self) -> [f64; 2] {
        let [read, write] = [self.read, self.write].map(|(fixed, each)| fixed + each * 4096.0);
        [read + self.asleep[0].1, write + self.asleep[1].1].map(|ns| ns / 1e3)
    }

    /// How much less that is, on average, of a client that need not be woken, in microseconds; 0 where there is none.
    pub fn waking_us(&self) -> f64 {
        let [(_, read), (_, write)] = self.asleep;
        self.waking.map_or(0.0, |waking| (waking + (read + write) / 2.0) / 1e3)
    }

    /// Of a request of that latency, of a client that is awake or has to be woken.
    pub fn of(&self, operation: Operation, bytes: u64, latency: Wall, is_awake: bool) -> Wall {
        let (fixed, each) = if operation == Operation::Read { self.read } else { self.write };
        let bytes = if matches!(operation, Operation::Read | Operation::Write) { bytes } else { 0 };
        let waking = match self.waking.filter(|_| is_awake) {
            Some(less) => -less,
            None => self.slept(latency.0 as f64),
        };
        Wall((fixed + each * bytes as f64 + waking).max(0.0) as u64)
    }

    /// How much longer it takes to wake a client after so many ns than at once: in a line from one latency to the next,
    /// and no more beyond the last.
    fn slept(&self, latency: f64) -> f64 {
        let [first, last] = self.asleep;
        let (from, to) = if latency < first.0 { ((0.0, 0.0), first) } else { (first, last) };
        if latency >= to.0 {
            return to.1;
        }
        from.1 + (to.1 - from.1) * (latency - from.0) / (to.0 - from.0)
    }
}
