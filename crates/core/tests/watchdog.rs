//! The watchdog of a run: a device on which nothing completes ends the run with an error, or when the user asks.

use floatgate_core::results::{Breakdown, Sample};
use floatgate_core::sim::request::{Completion, Request, Status};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{NoWatcher, Outcome, Progress, RunError, RunOptions, Ssd, Watcher, replay};
use floatgate_workload::synthetic;

/// SSD with an event every `period`. Requests complete at once, except for the last of `good + 1`, which never does.
struct Spinning {
    period: Time,
    longest: Time,
    /// Number of flash operations per event.
    operations: u64,
    good: usize,
    now: Time,
    outstanding: usize,
    completions: Vec<Completion>,
    events: u64,
}

impl Spinning {
    fn new(period: Time, good: usize) -> Spinning {
        Spinning {
            period,
            longest: Time::from_us(100),
            operations: 0,
            good,
            now: Time::ZERO,
            outstanding: 0,
            completions: Vec::new(),
            events: 0,
        }
    }
}

impl Ssd for Spinning {
    fn now(&self) -> Time {
        self.now
    }

    fn submit(&mut self, now: Time, request: Request) {
        self.now = now;
        match self.good.checked_sub(1) {
            Some(left) => {
                self.good = left;
                self.completions.push(Completion { request, status: Status::Ok, start: now, finish: now });
            }
            None => self.outstanding += 1,
        }
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn has_room(&self) -> bool {
        true
    }

    fn next_event(&self) -> Option<Time> {
        (self.outstanding > 0).then(|| self.now.later(self.period))
    }

    fn advance(&mut self, until: Time) {
        self.now = self.now.max(until);
    }

    fn run_to_completion(&mut self, until: Time) -> Time {
        while self.run_some(until, 1).is_none() {}
        until
    }

    fn run_some(&mut self, until: Time, events: u32) -> Option<Time> {
        for _ in 0..events {
            let Some(at) = self.next_event().filter(|at| *at <= until && *at < Time::LAST) else { return Some(until) };
            self.now = at;
            self.events += 1;
        }
        None
    }

    fn flash_operations(&self) -> u64 {
        self.events * self.operations
    }

    fn longest_step(&self, _: u32) -> Time {
        self.longest
    }

    fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    fn take_completions(&mut self, into: &mut Vec<Completion>) {
        into.append(&mut self.completions);
    }

    fn sample(&self, at: Time, into: &mut Sample) {
        into.at = at;
    }
}

fn run(ssd: &mut Spinning, job: &str, watcher: &mut dyn Watcher) -> Result<Outcome, RunError> {
    let jobs = synthetic::parse(job, 1 << 30, 1).unwrap();
    let mut sources: Vec<_> = jobs.into_iter().map(|job| job.source).collect();
    replay(ssd, &mut sources, watcher, RunOptions::default())
}

#[test]
fn ten_million_events_without_progress_end_a_run() {
    for period in [Time::ZERO, Time(1)] {
        let mut ssd = Spinning::new(period, 3);
        let error = run(&mut ssd, "rw=read bs=4k iodepth=1 number_ios=9", &mut NoWatcher).unwrap_err();
        assert!(matches!(error, RunError::Stuck { .. }), "{error}");
        assert!(error.to_string().contains(" events: 1 requests are outstanding"), "{error}");
        assert!((10_000_000..11_000_000).contains(&ssd.events), "{}", ssd.events);
    }
}

#[test]
fn a_thousand_times_the_longest_step_without_progress_ends_a_run() {
    let mut ssd = Spinning::new(Time::from_us(30), 3);
    let error = run(&mut ssd, "rw=read bs=4k iodepth=1 number_ios=9", &mut NoWatcher).unwrap_err();
    assert!(error.to_string().contains("s of simulated time"), "{error}");
    assert!((3_333..7_000).contains(&ssd.events), "{}", ssd.events);
}

#[test]
fn idle_time_and_flash_operations_are_progress() {
    // The idle time is 400 times as long as the wait after which a run fails.
    let mut ssd = Spinning::new(Time::from_us(30), 9);
    let outcome = run(&mut ssd, "rw=read bs=4k iodepth=1 thinktime=40s number_ios=9", &mut NoWatcher).unwrap();
    assert_eq!(outcome.results.all().count(), 9);
    // Idle time before a request that is stuck does not count.
    let mut ssd = Spinning::new(Time::from_us(30), 3);
    run(&mut ssd, "rw=read bs=4k iodepth=1 thinktime=40s number_ios=9", &mut NoWatcher).unwrap_err();
    assert!((3_333..7_000).contains(&ssd.events), "{}", ssd.events);
    // Flash operations let the run continue until the user ends it.
    let mut ssd = Spinning { operations: 1, ..Spinning::new(Time::from_us(30), 3) };
    let mut watcher = Ends { reports: 4_000, waits: false };
    let outcome = run(&mut ssd, "rw=read bs=4k iodepth=1 number_ios=9", &mut watcher).unwrap();
    assert_eq!((outcome.complete, outcome.unfinished, outcome.results.all().count()), (false, 1, 3));
    assert!(ssd.events > 11_000_000, "{}", ssd.events);
}

/// Watcher that ends the run at a report.
struct Ends {
    reports: u32,
    /// True if outstanding requests may complete.
    waits: bool,
}

impl Watcher for Ends {
    fn completed(&mut self, _: &Completion, _: Option<&Breakdown>) -> Result<(), String> {
        Ok(())
    }

    fn progress(&mut self, _: Progress) -> bool {
        self.reports = self.reports.saturating_sub(1);
        self.reports > 0
    }

    fn is_overdue(&self) -> bool {
        !self.waits && self.reports == 0
    }
}

#[test]
fn a_stop_ends_a_run_without_progress() {
    let mut ssd = Spinning::new(Time::ZERO, 3);
    let outcome = run(&mut ssd, "rw=read number_ios=9", &mut Ends { reports: 5, waits: false }).unwrap();
    assert_eq!((outcome.complete, outcome.unfinished, outcome.results.all().count()), (false, 1, 3));
    assert!(ssd.events < 100_000, "{}", ssd.events);
    // Without a deadline, the run waits for its requests, and fails if they do not complete.
    let mut ssd = Spinning::new(Time::ZERO, 3);
    run(&mut ssd, "rw=read number_ios=9", &mut Ends { reports: 5, waits: true }).unwrap_err();
}
