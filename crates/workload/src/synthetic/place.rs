//! Place of a job among the others.

use std::ops::Range;

use super::section::Log;
use crate::sim::time::Time;

/// Where a job stands among the others.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name of the stream.
    pub name: String,
    /// Number among the clones of `numjobs`, from 0.
    pub clone: u32,
    /// What it works on.
    pub area: Area,
    /// Which jobs end before it starts.
    pub waits_for: Range<usize>,
    /// How long it waits then.
    pub start_delay: Time,
    /// Where the requests that were issued are to be written.
    pub write_iolog: Option<Log>,
    /// What was noticed while it was read.
    pub warnings: Vec<String>,
}

impl Place {
    /// So many sources of another workload come before the jobs.
    pub fn put_behind(&mut self, others: usize) {
        if !self.waits_for.is_empty() {
            self.waits_for = self.waits_for.start + others..self.waits_for.end + others;
        }
    }
}

/// A part of the device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Where it starts.
    pub start: u64,
    /// How large it is.
    pub bytes: u64,
    /// It is one of several that have names.
    pub named: bool,
}
