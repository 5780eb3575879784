//! Sources of requests, and when their requests are issued.

use std::ops::Range;

use crate::request::Request;
use crate::time::Time;

/// When a source's requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Open loop: each request at its `arrival`, whatever the device does.
    Timed {
        /// At most so many outstanding; a request that finds none free waits, and its latency counts from `arrival`.
        depth: Option<u32>,
    },
    /// Closed loop: up to `depth` requests outstanding, the next one `think` after a completion.
    Depth {
        /// Outstanding requests, at least 1.
        depth: u32,
        /// Time between a completion and the request that takes its place.
        think: Time,
    },
    /// Closed loop in batches, between which nothing is outstanding: fio's `thinktime_blocks` and `thinktime_iotime`.
    Batch {
        /// Outstanding requests, at least 1.
        depth: u32,
        /// Requests in a batch, at least 1; flushes do not count.
        requests: u32,
        /// A batch ends, too, when so much time has passed since its first request; [`Time::NEVER`] for no such end.
        span: Time,
        /// Time from the last completion of a batch to the first request of the next.
        think: Time,
    },
}

/// A stream of requests, read as they are needed.
///
/// A source never looks ahead further than it must, so that a trace of 100 GB needs no more memory than one of 1 MB.
pub trait Source {
    /// The next request, `None` at the end. Requests of a timed source come with `arrival` not decreasing; of a
    /// closed-loop source, `arrival` is the earliest instant at which it may be issued (0 when at once).
    fn next_request(&mut self) -> Result<Option<Request>, SourceError>;

    /// How it is to be issued.
    fn pace(&self) -> Pace;

    /// The sources, by their position in the run, that end before this one starts: all of them are before it. Its
    /// times count from its own start then.
    fn waits_for(&self) -> Range<usize> {
        0..0
    }

    /// Sources of another workload, so many, are put before those of its own: the positions of those that it waits for
    /// move on by that.
    fn put_behind(&mut self, _others: usize) {}

    /// How long it waits before it starts (fio's `startdelay`); its times count from then.
    fn start_delay(&self) -> Time {
        Time::ZERO
    }

    /// A request has been issued: at its `arrival`, in the time of the run, or later where that is a queue's.
    fn issued(&mut self, _request: &Request) -> Result<(), SourceError> {
        Ok(())
    }

    /// Issue nothing at or after this instant (fio's `runtime`, `ramp_time` included).
    fn stop_at(&self) -> Option<Time> {
        None
    }

    /// Whether it came to its end only because what was next lay at or behind [`Source::stop_at`], when it ends then.
    fn out_of_time(&self) -> bool {
        false
    }

    /// Leave out of the results what arrives before this instant (fio's `ramp_time`).
    fn measure_from(&self) -> Time {
        Time::ZERO
    }

    /// The names of the streams, by the `stream` of the requests.
    fn streams(&self) -> Vec<String> {
        vec!["all".to_owned()]
    }

    /// How far it has come, in parts of one, where that is known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// What it is, in a line for people.
    fn description(&self) -> String {
        String::new()
    }

    /// A digest of what it has given out, where it keeps one.
    fn digest(&self) -> Option<u64> {
        None
    }

    /// What was noticed on the way that the user should know.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a source cannot go on: the text says what, where and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);
