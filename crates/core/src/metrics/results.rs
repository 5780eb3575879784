//! Results for the host: latencies and counts by operation and stream.

use super::attribution::{Bands, Breakdown};
use super::latency::Latency;
use crate::sim::request::{Completion, Operation, Status};
use crate::sim::time::Time;

/// Requests of one operation.
#[derive(Clone, Debug, Default)]
pub struct OperationResults {
    /// Bytes of the requests that were served.
    pub bytes: u64,
    /// Number of requests that failed. No other field includes them.
    pub errors: u64,
    /// Times from arrival to completion.
    pub latency: Latency,
    /// Sum of the times from arrival to first service, in picoseconds.
    pub waiting: u128,
    /// Sum of the times from first service to completion, in picoseconds.
    pub service: u128,
    /// Breakdown of the latencies, if the device reported it.
    pub attribution: Option<Box<Bands>>,
}

impl OperationResults {
    /// Returns the number of requests that were served.
    pub fn count(&self) -> u64 {
        self.latency.count()
    }

    #[inline(always)]
    fn record(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) {
        let Completion { request, status, start, finish } = completion;
        if *status != Status::Ok {
            self.errors += 1;
            return;
        }
        self.bytes += request.bytes();
        self.latency.record(finish.since(request.arrival));
        self.waiting += u128::from(start.since(request.arrival).0);
        self.service += u128::from(finish.since(*start).0);
        if let Some(breakdown) = breakdown {
            self.attribution.get_or_insert_default().record(finish.since(request.arrival), breakdown);
        }
    }

    /// Adds the requests of another operation.
    pub fn add(&mut self, other: &OperationResults) {
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.latency.add(&other.latency);
        self.waiting += other.waiting;
        self.service += other.service;
        if let Some(bands) = &other.attribution {
            self.attribution.get_or_insert_default().add(bands);
        }
    }
}

/// Requests of one stream.
#[derive(Clone, Debug)]
pub struct StreamResults {
    /// Name of the stream.
    pub name: String,
    /// Requests by operation, in the order of [`Operation::ALL`]; `None` if there were none.
    pub operations: [Option<Box<OperationResults>>; 5],
    /// Time of the first arrival.
    pub first: Time,
    /// Time of the last completion.
    pub last: Time,
}

/// Requests of a run.
#[derive(Clone, Debug)]
pub struct Results {
    /// Requests by stream.
    pub streams: Vec<StreamResults>,
    /// Bytes of the writes and of the reads that were submitted before the measured part and completed in it. The link
    /// may have transferred them before.
    pub carried_over: [u64; 2],
}

impl Results {
    /// Creates empty results for streams of these names.
    pub fn new(names: Vec<String>) -> Results {
        let stream =
            |name| StreamResults { name, operations: Default::default(), first: Time::NEVER, last: Time::ZERO };
        Results { streams: names.into_iter().map(stream).collect(), carried_over: [0; 2] }
    }

    /// Adds a request.
    #[inline(always)]
    pub fn record(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) {
        let stream = &mut self.streams[usize::from(completion.request.stream)];
        stream.first = stream.first.min(completion.request.arrival);
        stream.last = stream.last.max(completion.finish);
        let operation = &mut stream.operations[completion.request.operation.index()];
        operation.get_or_insert_with(Default::default).record(completion, breakdown);
    }

    /// Counts the bytes of a recorded request that was submitted before the measured part.
    #[cold]
    pub fn carried_over(&mut self, completion: &Completion) {
        let Completion { request, status, .. } = completion;
        match request.operation {
            Operation::Write if *status == Status::Ok => self.carried_over[0] += request.bytes(),
            Operation::Read if *status == Status::Ok => self.carried_over[1] += request.bytes(),
            _ => {}
        }
    }

    /// Returns the time from the first arrival to the last completion.
    pub fn span(&self) -> Time {
        let first = self.streams.iter().map(|s| s.first).min().unwrap_or(Time::NEVER);
        let last = self.streams.iter().map(|s| s.last).max().unwrap_or(Time::ZERO);
        last.since(first)
    }

    /// Returns the requests of `operation`, of all streams.
    pub fn of(&self, operation: Operation) -> OperationResults {
        let mut sum = OperationResults::default();
        self.streams.iter().filter_map(|s| s.operations[operation.index()].as_deref()).for_each(|o| sum.add(o));
        sum
    }

    /// Returns all requests.
    pub fn all(&self) -> OperationResults {
        let mut sum = OperationResults::default();
        self.streams.iter().flat_map(|s| &s.operations).flatten().for_each(|o| sum.add(o));
        sum
    }
}
