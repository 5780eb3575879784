//! Relation of a job to the other jobs.

use std::ops::Range;

use super::section::Log;
use crate::sim::time::Time;

/// Relation of a job to the other jobs.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name of the stream.
    pub name: String,
    /// Number among the clones of `numjobs`, from 0.
    pub clone: u32,
    /// Areas of the device that the job uses, one for each of its files.
    pub areas: Vec<Area>,
    /// Positions of the jobs that must end before this one starts.
    pub waits_for: Range<usize>,
    /// Positions of the jobs that end when this one ends.
    pub ends: Range<usize>,
    /// Positions of the jobs whose steady state is judged together; empty if it is that of this job alone.
    pub together: Range<usize>,
    /// Delay after these jobs have ended.
    pub start_delay: Time,
    /// Log to which issued requests are written.
    pub write_iolog: Option<Log>,
    /// True if the job follows fio where a text of jobs does not.
    pub follows_fio: bool,
    /// Warnings that occurred during parsing.
    pub warnings: Vec<String>,
}

impl Place {
    /// Adjusts the positions of other jobs after `others` sources of another workload were inserted before the jobs.
    pub fn shift_positions(&mut self, others: usize) {
        for range in [&mut self.waits_for, &mut self.ends, &mut self.together] {
            if range.start < range.end {
                *range = range.start + others..range.end + others;
            }
        }
    }
}

/// A part of the device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Start offset.
    pub start: u64,
    /// Size.
    pub bytes: u64,
    /// True if the job file declares several named areas.
    pub named: bool,
    /// True if the job has no `filename`. Its file then ends with its region, unless it has a `filesize`.
    pub own: bool,
}
