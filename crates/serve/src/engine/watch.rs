//! The monitor's view of the engine, and changes of speed.
//!
//! A monitor locks the engine like a frontend. Under the lock it only copies data. It computes values from the copy
//! after releasing the lock, so that no reply waits for the display.

use std::collections::BinaryHeap;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::Block;
use floatgate_core::results::{Answered, Counters, Sample, Series, Width, Window};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Ssd;

use super::monitor_data::{ENDLESS, Watch};
use super::totals::Totals;
use super::{Engine, Pace, Port, Unaligned, Waiting};
use crate::clock::{Speed, Wall};
use crate::lateness::Counts;
use floatgate_array::AnySsd;

/// A sample of the engine for a monitor.
#[derive(Default)]
pub struct Snapshot {
    /// Real time of the sample.
    pub now: Wall,
    /// Sample of the device.
    pub sample: Sample,
    /// Counters of the device at the first request.
    pub first: Counters,
    /// Members, if the device is an array.
    pub members: Vec<MemberSnapshot>,
    /// Events since the last sample. `None` if no simulated time has passed.
    pub window: Option<Window>,
    /// Totals of all requests, indexed by [`Operation::index`].
    pub totals: [Totals; 5],
    /// Outstanding requests.
    pub outstanding: u64,
    /// Lateness of all replies.
    pub lateness: Counts,
    /// Lateness of the replies sent since the last sample, without those that are not judged.
    pub late: Answered,
    /// Speed of simulated time. `None` if it runs as fast as possible.
    pub speed: Option<Speed>,
    /// Bytes of payload held.
    pub payload_bytes: u64,
    /// Requests that failed because their payload could not be stored or fetched.
    pub payload_errors: u64,
    /// Requests that do not consist of whole sectors.
    pub unaligned: Unaligned,
    /// Reason why the engine cannot continue. `None` if it can.
    pub fatal_error: Option<String>,
    /// Problems that do not stop the engine.
    pub warnings: Vec<String>,
}

/// Sample of a member of an array.
#[derive(Default)]
pub struct MemberSnapshot {
    /// State: `in sync`, `comparing`, `failed` or `rebuilding`.
    pub state: &'static str,
    /// Outstanding requests to the member.
    pub outstanding: u64,
    /// Counters at the first request.
    pub first: Counters,
    /// Last sample, and the one before it.
    pub samples: [Sample; 2],
}

/// Error: the engine runs without a clock, so it has no speed to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot set the speed: the server runs with --no-delay")]
pub struct NotTimed;

impl Engine {
    /// Starts, or restarts, collecting data for a monitor.
    pub fn watch(&mut self) {
        self.watch = Some(Box::new(Watch::new()));
        self.watch_anew();
    }

    /// Restarts the collected data after the device was replaced. Does nothing without a monitor.
    pub(super) fn watch_anew(&mut self) {
        let Some(mut watch) = self.watch.take() else { return };
        self.device.sample(self.device.now(), &mut watch.sample);
        let sample = std::mem::take(&mut watch.sample);
        watch.begin(&sample);
        self.watch = Some(watch);
    }

    /// Adds up the outstanding time of requests. Must be called before their number changes.
    #[inline]
    pub(super) fn count_outstanding(&mut self, now: Time) {
        if let Some(watch) = &mut self.watch {
            let span = now.since(watch.counted_until);
            watch.outstanding += u128::from(span.ps()) * self.in_flight.len() as u128;
            watch.counted_until = watch.counted_until.max(now);
        }
    }

    /// Samples the current state, and takes what was collected since the last sample. [`Engine::watch`] must have been
    /// called.
    pub fn snapshot(&mut self, now: Wall, into: &mut Snapshot) {
        let at = match self.pace {
            Pace::Timed(clock) => clock.simulated(now).max(self.device.now()),
            Pace::AtOnce => self.device.now(),
        };
        // Do not advance the clock of an idle device: sampling must not change the results of a run.
        while matches!(self.pace, Pace::Timed(_)) && self.steps.next(&mut *self.device, at) {
            self.collect();
        }
        self.count_outstanding(at);
        let Some(watch) = &mut self.watch else { return };
        self.device.sample(at, &mut watch.sample);
        watch.sample.outstanding = watch.outstanding;
        watch.series.record_last(&watch.sample);
        into.window = watch.series.take_closed().pop();
        watch.series = Series::new(Width::Fixed(ENDLESS));
        watch.series.record(&watch.sample);
        into.late = std::mem::take(&mut watch.late);
        into.sample.clone_from(&watch.sample);
        into.now = now;
        into.first = self.records.first.as_ref().map_or(into.sample.counters, |first| first.counters);
        if let AnySsd::Array(array, _) = &self.device {
            let state = array.usage().state;
            into.members.resize_with(into.sample.members.len(), MemberSnapshot::default);
            for (number, (member, sample)) in into.members.iter_mut().zip(&into.sample.members).enumerate() {
                member.samples.swap(0, 1);
                member.samples[0].clone_from(sample);
                member.outstanding = array.member(number).outstanding() as u64;
                member.first = match &self.records.first {
                    Some(first) => first.members.get(number).map_or(Counters::default(), |first| first.counters),
                    None => sample.counters,
                };
                member.state = match (array.has_failed(number), &state[..]) {
                    (true, "rebuilding") => "rebuilding",
                    (true, _) => "failed",
                    (false, _) if array.stripes_to_resync() > 0 => "comparing",
                    (false, _) => "in sync",
                };
            }
        }
        into.totals = self.totals();
        into.outstanding = self.in_flight.len() as u64;
        into.lateness = self.records.lateness.counts();
        into.speed = match self.pace {
            Pace::Timed(clock) => Some(clock.speed()),
            Pace::AtOnce => None,
        };
        into.payload_bytes = self.payload_bytes();
        into.payload_errors = self.payload_errors();
        into.unaligned = self.unaligned();
        into.fatal_error = self.fatal_error();
        into.warnings = self.warnings();
    }

    fn totals(&self) -> [Totals; 5] {
        let mut totals = [Totals::default(); 5];
        for operations in self.records.results.streams.iter().map(|stream| &stream.operations) {
            for (operation, total) in Operation::ALL.iter().zip(&mut totals) {
                if let Some(results) = operations[operation.index()].as_deref() {
                    total.count += results.count();
                    total.bytes += results.bytes;
                    total.errors += results.errors;
                }
            }
        }
        totals
    }

    /// Copies the states of at most `count` blocks, starting at `first`, and their kinds if there are log blocks.
    pub fn copy_blocks(&self, first: usize, count: usize, into: &mut Vec<Block>, kinds: &mut Vec<u8>) {
        into.clear();
        kinds.clear();
        self.device.copy_blocks(first, count, into, kinds);
    }

    /// Returns `true` if a frontend has outstanding requests, or replies that it has not taken.
    pub fn waits(&self, port: Port) -> bool {
        let state = &self.ports[port.0];
        state.in_flight > 0 || !state.due.is_empty()
    }

    /// Returns the configuration of the device.
    pub fn config(&self) -> &DeviceConfig {
        self.device.config()
    }

    /// Changes the speed of simulated time. Outstanding requests continue, and their replies become due when simulated
    /// time reaches their completion at the new speed.
    pub fn set_speed(&mut self, now: Wall, speed: Speed) -> Result<(), NotTimed> {
        let Pace::Timed(old) = self.pace else { return Err(NotTimed) };
        self.catch_up(old.simulated(now).max(self.device.now()));
        let new = old.at_speed(now, speed);
        self.pace = Pace::Timed(new);
        self.records.speed_changes += 1;
        for port in &mut self.ports {
            let moved = port.due.drain().map(|waiting| {
                let Waiting { at, finish, mut answer } = waiting;
                let due = &mut answer.due;
                let (before, after) = (old.wall(finish), new.wall(finish));
                // The deduction is in real time, so the new speed does not scale it.
                due.target = after.earlier(before.since(due.target));
                due.latency = Wall((due.latency.0 + after.0).saturating_sub(before.0));
                Waiting { at: std::cmp::Reverse((due.target, at.0.1)), finish, answer }
            });
            port.due = moved.collect::<BinaryHeap<_>>();
            port.looks_at = Wall(0);
            (port.waker)();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use floatgate_core::device_file;
    use floatgate_core::preparation::{Precondition, precondition};
    use floatgate_core::simulation::{Device, Options};

    use crate::clock::Clock;
    use crate::engine::{Answer, Cost, Order};
    use crate::payload::memory::Memory;

    /// Arrival time of the request.
    const START: Wall = Wall(1_000_000);

    /// Creates an engine with an outstanding read of 4 KiB.
    fn reading(speed: &str, deducted: f64) -> (Engine, Port) {
        let options = Options { attribution: true, ..Options::default() };
        let mut device = Device::new(device_file::load("tiny", &[]).unwrap(), options).unwrap();
        precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
        let payload = Box::new(Memory::new(device.config().logical_bytes(), 4096, u64::MAX));
        let clock = Clock::new(Wall(0), speed.parse().unwrap());
        let mut engine = Engine::new(device, payload, Pace::Timed(clock), None);
        engine.watch();
        let port = engine.add_port("test", Arc::new(|| ()));
        engine.set_cost(port, Cost { read: (deducted, 0.0), ..Cost::default() });
        let order = Order { token: 1, ..Order::of(Operation::Read, 0, 8) };
        engine.submit(port, START, &order).unwrap();
        (engine, port)
    }

    /// Advances the engine until a reply is decided, even if it is not due yet. Returns the time of the decision.
    fn until_decided(engine: &mut Engine, port: Port) -> Wall {
        let mut now = START;
        while engine.ports[port.0].due.is_empty() {
            now = engine.next_poll(port);
            engine.advance(now);
        }
        now
    }

    fn target(engine: &Engine, port: Port) -> Wall {
        engine.ports[port.0].due.peek().unwrap().at.0.0
    }

    fn taken(engine: &mut Engine, port: Port) -> Answer {
        let now = target(engine, port);
        let mut answers = Vec::new();
        engine.take_due(port, Wall(now.0 - 1), &mut answers);
        assert!(answers.is_empty(), "a reply must not be sent early");
        engine.advance(now);
        engine.take_due(port, now, &mut answers);
        answers.pop().unwrap()
    }

    #[test]
    fn outstanding_requests_complete_at_the_new_speed() {
        let (mut engine, port) = reading("1", 0.0);
        until_decided(&mut engine, port);
        let latency = taken(&mut engine, port).due.latency;
        assert!(latency > Wall::from_us(20), "{latency:?}");

        // 10 us at full speed, and the rest at a tenth of it.
        let (mut engine, port) = reading("1", 0.0);
        engine.set_speed(START.later(Wall::from_us(10)), "0.1".parse().unwrap()).unwrap();
        until_decided(&mut engine, port);
        let due = taken(&mut engine, port).due;
        let wanted = 10_000 + (latency.0 - 10_000) * 10;
        assert!(due.target.since(START).0.abs_diff(wanted) <= 10, "{due:?} for {wanted}");
        assert!(due.latency.0.abs_diff(wanted) <= 10, "{due:?} for {wanted}");

        // 100 us at a tenth of full speed, and the rest ten times as fast.
        let (mut engine, port) = reading("0.1", 0.0);
        engine.set_speed(START.later(Wall::from_us(100)), "1".parse().unwrap()).unwrap();
        until_decided(&mut engine, port);
        let wanted = 100_000 + latency.0 - 10_000;
        assert!(taken(&mut engine, port).due.target.since(START).0.abs_diff(wanted) <= 10);
    }

    #[test]
    fn a_committed_reply_moves_with_the_speed() {
        let (mut engine, port) = reading("1", 0.0);
        until_decided(&mut engine, port);
        let finish = target(&engine, port);
        // The completion is decided when the last data leave the device. The reply is due 1 us before the completion.
        let (mut engine, port) = reading("1", 1000.0);
        let now = until_decided(&mut engine, port);
        assert_eq!(target(&engine, port), finish.earlier(Wall(1000)));
        assert!(now < finish.earlier(Wall(2000)), "the completion must still be uncertain");
        engine.set_speed(now, "0.1".parse().unwrap()).unwrap();
        let wanted = now.0 + (finish.0 - now.0) * 10 - 1000;
        assert!(target(&engine, port).0.abs_diff(wanted) <= 10, "{:?} for {wanted}", target(&engine, port));
        engine.set_speed(now, "1".parse().unwrap()).unwrap();
        assert!(target(&engine, port).0.abs_diff(finish.0 - 1000) <= 1);
    }

    #[test]
    fn a_sample_covers_the_time_since_the_last_one() {
        let (mut engine, port) = reading("1", 0.0);
        let mut snapshot = Snapshot::default();
        engine.snapshot(START.later(Wall::from_us(1)), &mut snapshot);
        assert_eq!((snapshot.outstanding, snapshot.totals[0]), (1, Totals::default()));
        // Measurement started with the request.
        assert_eq!(snapshot.window.as_ref().unwrap().width(), Time::from_us(1));
        assert_eq!(snapshot.window.as_ref().unwrap().outstanding, u128::from(Time::from_us(1).ps()));
        until_decided(&mut engine, port);
        let end = target(&engine, port);
        engine.snapshot(end.later(Wall::from_us(5)), &mut snapshot);
        let window = snapshot.window.as_ref().unwrap();
        assert_eq!(
            (snapshot.outstanding, snapshot.totals[0].count, window.of(Operation::Read).unwrap().count),
            (0, 1, 1)
        );
        assert_eq!(window.end, Time(end.later(Wall::from_us(5)).0 * 1000));
        let in_progress = end.since(START).0 - 1000;
        assert!((window.outstanding as f64 / 1e3 - in_progress as f64).abs() < 2.0, "{window:?}");
        // The clock of the device did not advance, so sampling changes no results.
        assert!(engine.device.now() <= Time(end.0 * 1000));
        engine.snapshot(end.later(Wall::from_us(6)), &mut snapshot);
        assert_eq!(snapshot.window.as_ref().unwrap().of(Operation::Read), None);
    }
}
