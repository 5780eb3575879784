//! What the host saw: latencies and counts by operation and stream.

use super::attribution::{Bands, Breakdown};
use super::latency::Latency;
use crate::sim::request::{Completion, Operation, Status};
use crate::sim::time::Time;

/// The requests of one operation.
#[derive(Clone, Debug, Default)]
pub struct OperationResults {
    /// Bytes of the requests that were served.
    pub bytes: u64,
    /// Requests that failed. No other field includes them.
    pub errors: u64,
    /// Arrival to finish.
    pub latency: Latency,
    /// Arrival to first service, summed, in picoseconds.
    pub waiting: u128,
    /// First service to finish, summed, in picoseconds.
    pub service: u128,
    /// What the latencies went into, where the device told.
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

    /// Adds the requests of another.
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

/// The requests of one stream.
#[derive(Clone, Debug)]
pub struct StreamResults {
    /// Its name.
    pub name: String,
    /// By operation, in the order of [`Operation::ALL`]; `None` where there was none.
    pub operations: [Option<Box<OperationResults>>; 5],
    /// The first arrival.
    pub first: Time,
    /// The last completion.
    pub last: Time,
}

/// The requests of a run.
#[derive(Clone, Debug)]
pub struct Results {
    /// By stream.
    pub streams: Vec<StreamResults>,
}

impl Results {
    /// Nothing yet, for streams of these names.
    pub fn new(names: Vec<String>) -> Results {
        let stream =
            |name| StreamResults { name, operations: Default::default(), first: Time::NEVER, last: Time::ZERO };
        Results { streams: names.into_iter().map(stream).collect() }
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

    /// From the first arrival to the last completion.
    pub fn span(&self) -> Time {
        let first = self.streams.iter().map(|s| s.first).min().unwrap_or(Time::NEVER);
        let last = self.streams.iter().map(|s| s.last).max().unwrap_or(Time::ZERO);
        last.since(first)
    }

    /// The requests of `operation`, of all streams.
    pub fn of(&self, operation: Operation) -> OperationResults {
        let mut sum = OperationResults::default();
        self.streams.iter().filter_map(|s| s.operations[operation.index()].as_deref()).for_each(|o| sum.add(o));
        sum
    }

    /// All requests.
    pub fn all(&self) -> OperationResults {
        let mut sum = OperationResults::default();
        self.streams.iter().flat_map(|s| &s.operations).flatten().for_each(|o| sum.add(o));
        sum
    }
}
