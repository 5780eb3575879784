//! Sequentiality of a trace: requests that start at the end of an earlier one.

use std::collections::BTreeMap;

use super::moments::Moments;
use crate::sim::request::Operation;

/// Number of stored request ends per device. Allows for interleaved streams.
const STREAMS: usize = 32;
/// Maximum number of distinguished devices. All further ones share an entry.
const MAX_DEVICES: usize = 65_536;

/// Last requests of a device.
#[derive(Clone)]
struct Device {
    /// End of the last request.
    last: Option<u64>,
    /// End of the last request of each operation, and number of requests in its run.
    by_operation: [Option<(u64, u64)>; Operation::ALL.len()],
    /// Ends of the last requests that did not continue another of these. The oldest is replaced first.
    streams: [u64; STREAMS],
    next_stream: usize,
}

/// Sequentiality of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequential {
    /// Requests that start at the end of the last one of the same device and operation.
    pub requests: u64,
    /// Numbers of requests in runs of such requests. A single request is a run of one.
    pub runs: Moments,
}

/// Collects the addresses of requests.
#[derive(Default)]
pub struct Runs {
    devices: BTreeMap<u32, Device>,
    /// Indexed by operation.
    operations: [Sequential; Operation::ALL.len()],
    /// Requests with an address, without the first one of each device.
    followers: u64,
    /// Followers that start at the end of the last request of the same device, regardless of the operation.
    follows_last: u64,
    /// Followers that start at the end of one of the last streams.
    follows_stream: u64,
}

impl Runs {
    /// Adds a request. Returns `true` if it continues the last one of the same device and operation.
    pub fn add(&mut self, device: u32, operation: Operation, lba: u64, sectors: u32) -> bool {
        if sectors == 0 {
            return false;
        }
        let key =
            if self.devices.len() < MAX_DEVICES || self.devices.contains_key(&device) { device } else { u32::MAX };
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

    /// Returns the share of requests that start at the end of the last one of the same device, and of one of its last
    /// 32 streams. First requests are not counted. `None` without requests.
    pub fn shares(&self) -> Option<(f64, f64)> {
        let share = |count: u64| count as f64 / self.followers as f64;
        (self.followers > 0).then(|| (share(self.follows_last), share(self.follows_stream)))
    }

    /// Returns the sequentiality by operation, including incomplete runs.
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
        // Two interleaved streams of reads, 0 8 16 and 800 808, and a write that follows the last read.
        for lba in [0, 800, 8, 808, 16] {
            assert!(!runs.add(0, Operation::Read, lba, 8));
        }
        assert!(!runs.add(0, Operation::Write, 24, 8));
        assert!(runs.add(0, Operation::Read, 24, 8));
        // Another device is counted separately.
        assert!(!runs.add(1, Operation::Read, 32, 8));
        // Only the write, one of six followers, continues the last request. The write and three reads continue streams.
        // The read of 24 does not, because its stream has already advanced to 32.
        assert_eq!(runs.shares(), Some((1.0 / 6.0, 4.0 / 6.0)));
        let reads = runs.finish()[Operation::Read.index()];
        assert_eq!(reads.requests, 1);
        // Four single requests, a run of two, and the single one of the other device.
        assert_eq!((reads.runs.count(), reads.runs.ends()), (6, Some((1.0, 2.0))));
        assert!((reads.runs.mean().unwrap() - 7.0 / 6.0).abs() < 1e-12);
    }
}
