//! How sequential a trace is: requests that start where an earlier one ended.

use std::collections::BTreeMap;

use super::moments::Moments;
use crate::sim::request::Operation;

/// Ends of a device's requests that are remembered, so that streams that take turns are seen.
const STREAMS: usize = 32;
/// Devices that are told apart here; all beyond share one place.
const MOST_DEVICES: usize = 65_536;

/// A device's last requests.
#[derive(Clone)]
struct Device {
    /// The end of the last request.
    last: Option<u64>,
    /// By operation: the end of the last one, and the requests of the run that it belongs to.
    by_operation: [Option<(u64, u64)>; Operation::ALL.len()],
    /// The ends of the last requests that did not continue another of these, the oldest overwritten first.
    streams: [u64; STREAMS],
    next_stream: usize,
}

/// What is counted of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequential {
    /// Requests that start where the last one of the same device and operation ended.
    pub requests: u64,
    /// Requests in runs of such, a request that has none being a run of one.
    pub runs: Moments,
}

/// Watches the addresses of requests go by.
#[derive(Default)]
pub struct Runs {
    devices: BTreeMap<u32, Device>,
    /// By operation.
    operations: [Sequential; Operation::ALL.len()],
    /// Requests with an address, but for each device's first.
    followers: u64,
    /// Of these: those that start where the last one of the same device ended, whatever it did.
    follows_last: u64,
    /// Of these: those that start where one of the last streams ended.
    follows_stream: u64,
}

impl Runs {
    /// Takes a request in. Returns whether it continues the last one of the same device and operation.
    pub fn add(&mut self, device: u32, operation: Operation, lba: u64, sectors: u32) -> bool {
        if sectors == 0 {
            return false;
        }
        let key =
            if self.devices.len() < MOST_DEVICES || self.devices.contains_key(&device) { device } else { u32::MAX };
        let device = self.devices.entry(key).or_insert(Device {
            last: None,
            by_operation: [None; Operation::ALL.len()],
            streams: [u64::MAX; STREAMS],
            next_stream: 0,
        });
        let end = lba + u64::from(sectors);
        if let Some(last) = device.last.replace(end) {
            self.followers += 1;
            self.follows_last += u64::from(last == lba);
        }
        match device.streams.iter().position(|stream| *stream == lba) {
            Some(place) => {
                self.follows_stream += 1;
                device.streams[place] = end;
            }
            None => {
                device.streams[device.next_stream] = end;
                device.next_stream = (device.next_stream + 1) % STREAMS;
            }
        }
        let found = &mut self.operations[operation.index()];
        let run = &mut device.by_operation[operation.index()];
        let length = match *run {
            Some((at, length)) if at == lba => length + 1,
            Some((_, length)) => {
                found.runs.add(length as f64);
                1
            }
            None => 1,
        };
        *run = Some((end, length));
        found.requests += u64::from(length > 1);
        length > 1
    }

    /// The share of requests that start where the last one of the same device ended, and where one of its last 32
    /// streams ended; first requests are left out. `None` without any.
    pub fn shares(&self) -> Option<(f64, f64)> {
        let share = |count: u64| count as f64 / self.followers as f64;
        (self.followers > 0).then(|| (share(self.follows_last), share(self.follows_stream)))
    }

    /// By operation, with the runs that have not ended.
    pub fn finish(&self) -> [Sequential; Operation::ALL.len()] {
        let mut operations = self.operations;
        for device in self.devices.values() {
            for (operation, run) in operations.iter_mut().zip(device.by_operation) {
                if let Some((_, length)) = run {
                    operation.runs.add(length as f64);
                }
            }
        }
        operations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_by_hand() {
        let mut runs = Runs::default();
        // Two streams of reads that take turns, 0 8 16 and 800 808, and a write that follows the last read.
        for lba in [0, 800, 8, 808, 16] {
            assert!(!runs.add(0, Operation::Read, lba, 8));
        }
        assert!(!runs.add(0, Operation::Write, 24, 8));
        assert!(runs.add(0, Operation::Read, 24, 8));
        // Another device is another matter.
        assert!(!runs.add(1, Operation::Read, 32, 8));
        // Of six followers, the write continues the last request; it, three reads of the streams continue a stream,
        // and the read of 24 none: that stream has gone on to 32.
        assert_eq!(runs.shares(), Some((1.0 / 6.0, 4.0 / 6.0)));
        let reads = runs.finish()[Operation::Read.index()];
        assert_eq!(reads.requests, 1);
        // Four single requests, a run of two, and the single one of the other device.
        assert_eq!((reads.runs.count(), reads.runs.ends()), (6, Some((1.0, 2.0))));
        assert!((reads.runs.mean().unwrap() - 7.0 / 6.0).abs() < 1e-12);
    }
}
