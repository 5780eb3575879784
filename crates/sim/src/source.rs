//! Sources of requests, and the pace at which their requests are issued.

use std::ops::Range;

use crate::request::Request;
use crate::time::Time;

/// Pace at which the requests of a source are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Open loop: each request is issued at its `arrival`, regardless of the device.
    Timed {
        /// Maximum number of outstanding requests. A request beyond it waits, and its latency counts from `arrival`.
        depth: Option<u32>,
    },
    /// Closed loop: up to `depth` requests are outstanding, and the next one is issued `think` after a completion.
    Depth {
        /// Outstanding requests, at least 1.
        depth: u32,
        /// Time between a completion and the next request.
        think: Time,
    },
    /// Closed loop in batches, with no request outstanding between them: fio's `thinktime_blocks` and
    /// `thinktime_iotime`.
    Batch {
        /// Outstanding requests, at least 1.
        depth: u32,
        /// Number of requests in a batch, at least 1. Flushes do not count.
        requests: u32,
        /// A batch also ends when this time has passed since its first request. [`Time::NEVER`] for no limit.
        span: Time,
        /// Time from the last completion of a batch to the first request of the next.
        think: Time,
    },
}

/// Ends and depths of a source that depend on completions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Control {
    /// Positions of the sources that end when this one ends (fio's `exitall`).
    pub ends: Range<usize>,
    /// Condition under which the source ends (fio's `steadystate`).
    pub steady: Option<SteadyState>,
    /// Positions of the sources whose completions are judged together by the condition of the first one, and which it
    /// ends together. Empty if the source is judged alone.
    pub together: Range<usize>,
    /// Search for the depth with a given latency (fio's `latency_target`).
    pub search: Option<DepthSearch>,
    /// Number of outstanding requests down to which no request is issued after the depth was reached (fio's
    /// `iodepth_low` and `iodepth_batch_complete_min`).
    pub refill_at: Option<u32>,
    /// Group of sources that issue requests in proportion to their weights, and the weight (fio's `flow`).
    pub flow: Option<(u32, u32)>,
}

/// Measurement of an interval for a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Requests per second.
    Requests,
    /// Bytes per second.
    Bytes,
    /// Mean latency in nanoseconds.
    Latency,
}

/// Steady state of a source: a criterion of the measurements in the latest intervals is below a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// Measurement of each interval.
    pub measure: Measure,
    /// True for the slope of a line through the measurements, false for their largest deviation from the mean.
    pub is_slope: bool,
    /// True if the criterion is a percentage of the mean.
    pub is_percent: bool,
    /// Limit of the criterion.
    pub limit: f64,
    /// Length of an interval.
    pub interval: Time,
    /// Number of intervals.
    pub intervals: u32,
    /// Time before the first interval.
    pub ramp: Time,
}

/// Search for the largest depth with a given latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthSearch {
    /// Maximum latency.
    pub target: Time,
    /// Time for which each depth is tried.
    pub window: Time,
    /// Percentage of the requests that have to meet the target.
    pub percentile: f64,
    /// Largest depth.
    pub depth: u32,
    /// True if the search continues until the source ends.
    pub continues: bool,
}

/// A stream of requests, which are read on demand.
///
/// A source reads no further ahead than necessary, so that a trace of 100 GB needs no more memory than one of 1 MB.
pub trait Source {
    /// Returns the next request, or `None` at the end. In a timed source, `arrival` never decreases. In a closed-loop
    /// source, `arrival` is the earliest time at which the request may be issued (0 for no limit).
    fn next_request(&mut self) -> Result<Option<Request>, SourceError>;

    /// Writes the next requests to `into`, which has room for one, and returns their number, or 0 at the end. A source
    /// that reads from a file writes one, because its [`Source::digest`] covers the requests that it has returned, and
    /// must not depend on how far a run reads ahead.
    fn fill(&mut self, into: &mut [Request]) -> Result<usize, SourceError> {
        Ok(self.next_request()?.map_or(0, |request| {
            into[0] = request;
            1
        }))
    }

    /// Returns the pace at which requests are issued.
    fn pace(&self) -> Pace;

    /// Returns the positions of the sources that must end before this one starts. All of them precede it. If there are
    /// any, the times of this source count from its own start.
    fn waits_for(&self) -> Range<usize> {
        0..0
    }

    /// Adjusts the positions in [`Source::waits_for`] after `others` sources of another workload were inserted before
    /// those of this workload.
    fn shift_positions(&mut self, _others: usize) {}

    /// Returns the delay before the source starts (fio's `startdelay`). Its times count from then.
    fn start_delay(&self) -> Time {
        Time::ZERO
    }

    /// Notifies the source that a request was issued: at its `arrival`, in the time of the run, or later if it was
    /// queued.
    fn issued(&mut self, _request: &Request) -> Result<(), SourceError> {
        Ok(())
    }

    /// Returns the time from which no more requests are issued (fio's `runtime`, including `ramp_time`).
    fn stop_at(&self) -> Option<Time> {
        None
    }

    /// Returns `true` if the source ended only because its next request was at or after [`Source::stop_at`]. The source
    /// then ends at that time.
    fn out_of_time(&self) -> bool {
        false
    }

    /// Returns the time before which completing requests are excluded from the results (fio's `ramp_time`).
    fn measure_from(&self) -> Time {
        Time::ZERO
    }

    /// Returns the ends and depths that depend on completions.
    fn control(&self) -> Control {
        Control::default()
    }

    /// Notifies the source of the outcome of its [`Source::control`], which becomes one of its warnings.
    fn controlled(&mut self, _outcome: String) {}

    /// Returns the names of the streams, indexed by the `stream` of the requests.
    fn streams(&self) -> Vec<String> {
        vec!["all".to_owned()]
    }

    /// Returns the progress from 0 to 1, if known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Returns a description of the source in one line.
    fn description(&self) -> String {
        String::new()
    }

    /// Returns a digest of the requests returned so far, if the source computes one.
    fn digest(&self) -> Option<u64> {
        None
    }

    /// Returns warnings for the user.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the counters of objects, if the source accesses objects.
    fn objects(&self) -> Option<ObjectCounts> {
        None
    }
}

/// Counters of accesses to objects, which a placement puts on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectCounts {
    /// Reads of objects.
    pub gets: u64,
    /// Reads of objects that were on the device.
    pub hits: u64,
    /// Bytes of the objects read.
    pub get_bytes: u64,
    /// Bytes of the objects read that were on the device.
    pub hit_bytes: u64,
    /// Objects written, also after a miss.
    pub sets: u64,
    /// Bytes of the objects written.
    pub set_bytes: u64,
    /// Removals of objects that were on the device.
    pub deletes: u64,
    /// Objects that were evicted.
    pub evictions: u64,
    /// Writes of objects that are too large for the placement.
    pub too_large: u64,
    /// Accesses to other tiers, which are left out.
    pub other_tiers: u64,
    /// Objects on the device at the end.
    pub objects: u64,
    /// Bytes of the objects on the device at the end.
    pub bytes: u64,
}

/// Error: a source cannot continue. The text gives the cause, the position and a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);
