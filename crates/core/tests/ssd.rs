//! The interface `Ssd`: a type other than `Device` can be replayed on, also as `Box<dyn Ssd>`, and a device behind the
//! interface gives the same result.

use std::collections::{BTreeMap, VecDeque};

use crate::common::{device, fill};
use floatgate_core::results::Sample;
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, NoWatcher, Outcome, Room, RunError, RunOptions, Ssd, replay, run_with};
use floatgate_workload::synthetic;

const LATENCY: Time = Time::from_us(10);

/// An SSD that serves up to `depth` requests at the same time, each with the same latency.
struct Fixed {
    depth: usize,
    now: Time,
    /// Keyed by time of completion and number of the request.
    in_flight: BTreeMap<(Time, u64), Request>,
    waiting: VecDeque<Request>,
    completions: Vec<Completion>,
    submitted: u64,
    /// Number of the request that never completes, if there is one.
    lost: Option<u64>,
}

impl Fixed {
    fn new(depth: usize) -> Fixed {
        Fixed {
            depth,
            now: Time::ZERO,
            in_flight: BTreeMap::new(),
            waiting: VecDeque::new(),
            completions: Vec::new(),
            submitted: 0,
            lost: None,
        }
    }

    fn start(&mut self, request: Request) {
        let finish = if self.lost == Some(self.submitted) { Time::NEVER } else { self.now.later(LATENCY) };
        self.in_flight.insert((finish, self.submitted), request);
        self.submitted += 1;
    }
}

impl Ssd for Fixed {
    fn now(&self) -> Time {
        self.now
    }

    fn submit(&mut self, now: Time, request: Request) {
        self.now = now;
        if self.has_room() { self.start(request) } else { self.waiting.push_back(request) }
    }

    fn outstanding(&self) -> usize {
        self.in_flight.len() + self.waiting.len()
    }

    fn has_room(&self) -> bool {
        self.in_flight.len() < self.depth
    }

    fn next_event(&self) -> Option<Time> {
        self.in_flight.keys().next().map(|(finish, _)| *finish).filter(|finish| *finish < Time::NEVER)
    }

    fn advance(&mut self, until: Time) {
        while self.next_event().is_some_and(|at| at <= until) {
            let ((finish, _), request) = self.in_flight.pop_first().unwrap();
            self.now = finish;
            let start = Time(finish.0 - LATENCY.0);
            self.completions.push(Completion { request, status: Status::Ok, start, finish });
            if let Some(next) = self.waiting.pop_front() {
                self.start(next);
            }
        }
        self.now = self.now.max(until);
    }

    fn run_to_completion(&mut self, until: Time) -> Time {
        match self.next_event().filter(|at| *at <= until) {
            Some(at) => {
                self.advance(at);
                at
            }
            None => until,
        }
    }

    fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    fn take_completions(&mut self, into: &mut Vec<Completion>) {
        into.append(&mut self.completions);
    }

    fn committed_completions(&self, _: &mut Room, found: &mut dyn FnMut(u64, Time)) {
        self.in_flight.iter().for_each(|((finish, _), request)| found(request.tag, *finish));
    }

    fn sample(&self, at: Time, into: &mut Sample) {
        into.at = at;
    }
}

/// Size of the SSDs in bytes.
const SIZE: u64 = 4 << 20;

fn sources(text: &str) -> Vec<Box<dyn Source>> {
    synthetic::parse(text, SIZE, 1).unwrap().into_iter().map(|job| job.source).collect()
}

fn replayed(ssd: &mut (impl Ssd + ?Sized), text: &str) -> Result<Outcome, RunError> {
    replay(ssd, &mut sources(text), &mut NoWatcher, RunOptions::default())
}

#[test]
fn a_workload_can_be_replayed_on_any_ssd() {
    const JOB: &str = "rw=randread bs=4k iodepth=4 number_ios=100";
    let boxed: Box<dyn Ssd> = Box::new(Fixed::new(8));
    for mut ssd in [boxed, Box::new(Fixed::new(4)), Box::new(Box::new(Fixed::new(8)) as Box<dyn Ssd>)] {
        let outcome = replayed(&mut ssd, JOB).unwrap();
        let all = outcome.results.all();
        assert_eq!((all.count(), all.latency.min_us(), all.latency.mean_us()), (100, 10.0, 10.0));
        assert_eq!((outcome.complete, outcome.elapsed), (true, Time::from_us(250)));
        assert_eq!((ssd.now(), ssd.outstanding(), ssd.next_event()), (Time::from_us(250), 0, None));
    }
    // The queue is the bottleneck: requests beyond its depth are issued when it has a free slot.
    let outcome = replayed(&mut Fixed::new(2), JOB).unwrap();
    assert_eq!((outcome.elapsed, outcome.results.all().count()), (Time::from_us(500), 100));
    // Two streams with the queue depth and the think time of their jobs.
    let outcome = replayed(&mut Fixed::new(1), "rw=read number_ios=3; rw=write thinktime=50us number_ios=2").unwrap();
    assert_eq!(outcome.results.streams.len(), 2);
    assert_eq!(outcome.results.all().count(), 5);
}

#[test]
fn a_request_that_an_ssd_loses_is_an_error() {
    let mut ssd = Fixed { lost: Some(7), ..Fixed::new(4) };
    match replayed(&mut ssd, "rw=randread bs=4k iodepth=4 number_ios=100") {
        Err(RunError::Lost { submitted, completed, stall }) => {
            assert_eq!((submitted, completed), (100, 99));
            assert_eq!(stall, "1 requests are outstanding");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_beyond_the_depth_wait_in_the_ssd() {
    let mut ssd: Box<dyn Ssd> = Box::new(Fixed::new(1));
    for tag in 0..2 {
        ssd.submit(Time::ZERO, Request { tag, ..Request::new(Time::ZERO, Operation::Read, 0, 8) });
    }
    let mut found = Vec::new();
    ssd.committed_completions(&mut Room::default(), &mut |tag, finish| found.push((tag, finish)));
    assert_eq!(found, [(0, LATENCY)]);
    // The clock stays at the last event, or advances to the end of the span.
    assert_eq!((ssd.run_to_completion(Time::from_us(9)), ssd.now()), (Time::from_us(9), Time::ZERO));
    ssd.advance_to_completion(Time::from_us(9));
    assert_eq!(ssd.now(), Time::from_us(9));
    ssd.advance_to_completion(Time::NEVER);
    assert_eq!((ssd.now(), ssd.has_completions()), (LATENCY, true));
    ssd.advance(Time::from_us(30));
    let mut completions = Vec::new();
    ssd.take_completions(&mut completions);
    assert_eq!(
        completions.iter().map(|c| (c.request.tag, c.finish.as_us())).collect::<Vec<_>>(),
        [(0, 10.0), (1, 20.0)]
    );
}

#[test]
fn a_device_behind_the_interface_gives_the_same_result() {
    const JOBS: &str = "rw=randrw bs=4k iodepth=16 number_ios=5000; rw=write bs=16k iodepth=2 number_ios=500";
    let made = || -> Device {
        let mut device = device::<&str>(&[]);
        assert!(device.config().logical_bytes() >= SIZE);
        let units = device.config().logical_units();
        fill(&mut device, units as u32);
        device
    };
    let mut device = made();
    let direct = run_with(&mut device, &mut sources(JOBS), &mut NoWatcher, RunOptions::default()).unwrap();
    let mut boxed: Box<dyn Ssd> = Box::new(made());
    let behind = replayed(&mut boxed, JOBS).unwrap();
    assert_eq!(format!("{direct:?}"), format!("{behind:?}"));
    assert_eq!((device.now(), device.next_event()), (boxed.now(), boxed.next_event()));
}
