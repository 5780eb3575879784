//! Helpers of the tests: small devices, closed loops, and comparisons of measured values.
#![allow(dead_code)] // Each test file is a separate crate and uses only some of the helpers.

pub mod cached;
pub mod history;
pub mod picking;

use floatgate_core::device_file::{DeviceConfig, from_toml};
use floatgate_core::results::Breakdown;
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::source::{Pace, Source, SourceError};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, NoWatcher, Options, Outcome, Ssd, run};

/// Device that the tests modify: 2 channels with 2 chips of one plane each; pages of 4 KiB, 25/200/1500 us and 25 ns
/// per byte. Its chips are those of Agrawal et al. 2008, Table 1.
pub const BASE: &str = r#"
name = "test"
[geometry]
channels = 2
chips = 2
dies = 1
planes = 1
blocks = 64
pages = 64
page_size = "4KiB"
[capacity]
spare = 0.25
[nand]
read = "25us"
program = "200us"
erase = "1500us"
[bus]
protocol = { sdr = "25ns" }
"#;

/// Returns [`BASE`] with overrides, checked.
pub fn device_config<S: AsRef<str>>(overrides: &[S]) -> DeviceConfig {
    let overrides: Vec<String> = overrides.iter().map(|o| o.as_ref().to_owned()).collect();
    from_toml(BASE, "test.toml", &overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"))
}

/// Returns the error of [`BASE`] with overrides that are refused.
pub fn refusal<S: AsRef<str>>(overrides: &[S]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|o| o.as_ref().to_owned()).collect();
    from_toml(BASE, "test.toml", &overrides).expect_err("an invalid device").to_string()
}

/// Creates a device of [`device_config`], without verification.
pub fn device<S: AsRef<str>>(overrides: &[S]) -> Device {
    build(device_config(overrides), Options::default())
}

/// Creates a device of a checked configuration.
pub fn build(config: DeviceConfig, options: Options) -> Device {
    Device::new(config, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a request for `count` whole mapping units.
pub fn units(device: &Device, operation: Operation, first: u64, count: u32) -> Request {
    let per_unit = device.config().sectors_per_unit();
    Request::new(Time::ZERO, operation, first * u64::from(per_unit), count * per_unit)
}

/// Submits a request that arrives at `at`.
pub fn submit(device: &mut Device, at: Time, request: Request) {
    device.advance(at);
    device.submit(at, Request { arrival: at, ..request });
}

/// Processes all events and returns the completions since the last call.
pub fn drain(device: &mut Device) -> Vec<Completion> {
    let mut steps = 0u64;
    while let Some(at) = device.next_event() {
        device.advance(at);
        steps += 1;
        assert!(steps < 50_000_000, "the device never becomes idle: {}", device.explain_stall());
    }
    let mut completions = Vec::new();
    device.take_completions(&mut completions);
    completions
}

/// Serves requests that arrive at the same time. Returns their completions and breakdowns in the same order. Checks
/// that the parts of each breakdown add up.
pub fn serve(device: &mut Device, requests: &[Request]) -> Vec<(Completion, Breakdown)> {
    let now = device.now();
    for (request, tag) in requests.iter().zip(1..) {
        submit(device, now, Request { tag, ..*request });
    }
    let completions = drain(device);
    let mut breakdowns = Vec::new();
    device.take_breakdowns(&mut breakdowns);
    let mut served: Vec<(Completion, Breakdown)> = completions.into_iter().zip(breakdowns).collect();
    served.sort_by_key(|(completion, _)| completion.request.tag);
    for (completion, breakdown) in &served {
        assert_eq!(breakdown.total(), completion.finish - completion.request.arrival);
    }
    device.check_invariants().unwrap();
    served
}

/// Returns a read of a whole unit of eight sectors.
pub fn read(unit: u64) -> Request {
    Request::new(Time::ZERO, Operation::Read, 8 * unit, 8)
}

/// Writes `units` whole units in address order in functional mode, and pads the last pages.
pub fn fill(device: &mut Device, units: u32) {
    let ftl = device.ftl_mut();
    (0..units).for_each(|lpn| ftl.write_whole(floatgate_core::sim::id::Lpn(lpn)));
    ftl.seal();
}

/// Asserts that `measured` is within `share` of `expected`.
#[track_caller]
pub fn assert_close(what: &str, measured: f64, expected: f64, share: f64) {
    let off = (measured - expected) / expected;
    assert!(off.abs() <= share, "{what}: {measured:.4}, expected {expected:.4}: {:+.3} % off", off * 100.0);
}

/// A workload of a given number of requests, which a function creates.
pub struct Load<F> {
    next: F,
    left: u64,
    pub pace: Pace,
    measure_from: Time,
}

impl<F: FnMut() -> Request + 'static> Load<F> {
    /// Creates a closed loop with `depth` outstanding requests. The next request arrives a nanosecond after a
    /// completion, so that a free chip starts a queued operation before the new request is queued.
    pub fn closed(depth: u32, requests: u64, next: F) -> Load<F> {
        Load { next, left: requests, pace: Pace::Depth { depth, think: Time::from_ns(1) }, measure_from: Time::ZERO }
    }

    /// Creates an open loop: requests are submitted at their `arrival`.
    pub fn open(requests: u64, next: F) -> Load<F> {
        Load { next, left: requests, pace: Pace::Timed { depth: None }, measure_from: Time::ZERO }
    }

    /// Excludes requests that arrive before `from` from the results.
    pub fn measured_from(self, from: Time) -> Load<F> {
        Load { measure_from: from, ..self }
    }

    /// Runs the workload. Times count from the current time of the device.
    pub fn run(self, device: &mut Device) -> Outcome {
        let mut sources: Vec<Box<dyn Source>> = vec![Box::new(self)];
        run(device, &mut sources, &mut NoWatcher).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl<F: FnMut() -> Request> Source for Load<F> {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return Ok(None),
        };
        Ok(Some((self.next)()))
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn measure_from(&self) -> Time {
        self.measure_from
    }
}

/// Returns the number of completed requests per second.
pub fn rate(outcome: &Outcome) -> f64 {
    outcome.results.all().count() as f64 / outcome.measured.as_s()
}

/// Returns the share of the measured time in which the channels transferred data.
pub fn bus_utilization(device: &Device, outcome: &Outcome) -> f64 {
    let times = &device.array().channel_time;
    times.iter().map(|time| time.data.as_s()).sum::<f64>() / times.len() as f64 / outcome.measured.as_s()
}
