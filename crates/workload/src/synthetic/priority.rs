//! Requests with high priority, fio's `cmdprio_percentage` and `prioclass`.

use super::options::Options;
use crate::sim::request::{Operation, Request};
use crate::sim::rng::Rng;

/// Share of the requests of a job that have high priority. They are its second stream, if the others are any.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    /// Percentage of reads, and of writes.
    percent: [u32; 2],
    rng: Rng,
}

impl Priorities {
    /// Creates the priorities of a job. Returns `None` if no request has a high priority.
    pub(super) fn new(options: &Options, rng: Rng) -> Option<Priorities> {
        let class = options.cmdprio_class.unwrap_or(true);
        let percent = match (options.prioclass, options.cmdprio_percentage.as_ref()) {
            (Some(true), _) => [100; 2],
            (_, Some(percent)) if class => [0, 1].map(|direction| percent[direction].unwrap_or(0)),
            _ => [0; 2],
        };
        (percent != [0; 2]).then_some(Priorities { percent, rng })
    }

    /// Returns `true` if the job has requests with and without high priority.
    pub(super) fn divides(&self) -> bool {
        self.percent != [100; 2]
    }

    /// Gives a request its priority.
    pub(super) fn mark(&mut self, request: &mut Request) {
        let percent = match request.operation {
            Operation::Read => self.percent[0],
            Operation::Write | Operation::WriteZeroes => self.percent[1],
            Operation::Trim | Operation::Flush => 0,
        };
        if percent == 100 || (percent > 0 && self.rng.below(100) < u64::from(percent)) {
            request.high_priority = true;
            request.stream = u16::from(self.divides());
        }
    }
}
