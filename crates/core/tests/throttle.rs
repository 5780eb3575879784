//! Throttle of host writes (`gc.throttle`): its delay, and its part of the latency.

use crate::common::{self, Load, build, device_config, drain, submit, units};
use floatgate_core::device_file;
use floatgate_core::flash::Role;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::{Breakdown, Part};
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Outcome, Ssd};

/// Transfer and program of a page.
const WRITE: u64 = 102_400_000 + 200_000_000;
const DELAY: u64 = 12_000_000;

/// Returns a device with two planes of 16 blocks. Its planes have 6 and 5 free blocks.
fn machine(below: u32, more: &[&str]) -> Device {
    let throttle = format!("gc.throttle={{ below = {below}, delay = \"12us\" }}");
    let base = [
        "geometry.channels=1",
        "geometry.chips=2",
        "geometry.blocks=16",
        "geometry.pages=8",
        "capacity.logical=576KiB",
        "gc.soft_threshold=2",
        &throttle,
    ];
    let config = device_config(&[&base, more].concat());
    let mut device = build(config, Options { attribution: true, ..Options::default() });
    common::fill(&mut device, 144);
    let ftl = device.ftl_mut();
    // Even units are on the first chip. The second chip takes one more block.
    (0..8).for_each(|unit| ftl.write_whole(Lpn(2 * unit)));
    (0..9).for_each(|unit| ftl.write_whole(Lpn(2 * unit + 1)));
    let free = [0, 1].map(|plane| device.ftl().blocks.free_blocks(PlaneId(plane), Role::Data));
    assert_eq!(free, [6, 5]);
    device
}

/// Returns the completions and their breakdowns.
fn finished(device: &mut Device) -> Vec<(Completion, Breakdown)> {
    let completions = drain(device);
    let mut breakdowns = Vec::new();
    device.take_breakdowns(&mut breakdowns);
    completions.into_iter().zip(breakdowns).collect()
}

fn write(device: &mut Device, at: u64, first: u64, count: u32) {
    let request = units(device, Operation::Write, first, count);
    submit(device, Time(at), request);
}

#[test]
fn the_delay_grows_linearly_to_the_hard_threshold() {
    // The mean is 5.5 free blocks.
    for (below, hard, delay) in
        [(5, 1, 0), (6, 1, DELAY / 10), (7, 1, DELAY / 4), (10, 1, DELAY / 2), (6, 4, DELAY / 4)]
    {
        let hard = format!("gc.hard_threshold={hard}");
        let mut device = machine(below, &[&hard, "gc.soft_threshold=4"]);
        write(&mut device, 0, 20, 1);
        let [(completion, breakdown)] = finished(&mut device)[..] else { panic!("one write") };
        assert_eq!(breakdown.of(Part::Throttle), Time(delay), "{below}");
        assert_eq!(completion.finish, Time(delay + WRITE), "{below}");
    }
}

#[test]
fn a_write_is_delayed_for_all_of_its_units() {
    let mut device = machine(10, &[]);
    write(&mut device, 0, 20, 2);
    let [(completion, breakdown)] = finished(&mut device)[..] else { panic!("one write") };
    assert_eq!(breakdown.of(Part::Throttle), Time(DELAY));
    assert_eq!(breakdown.total(), completion.finish);
}

#[test]
fn writes_wait_for_the_delays_of_earlier_ones() {
    for buffer in [&[][..], &["buffer.capacity=64KiB"]] {
        let mut device = machine(10, buffer);
        // The second write arrives in the middle of the first delay. Zeroes have no delay of their own.
        write(&mut device, 0, 20, 1);
        write(&mut device, DELAY / 4, 23, 1);
        let zeroes = units(&device, Operation::WriteZeroes, 30, 1);
        submit(&mut device, Time(DELAY / 4), zeroes);
        let delays: Vec<u64> = finished(&mut device)
            .into_iter()
            .map(|(completion, breakdown)| {
                assert_eq!(breakdown.total(), completion.finish.since(completion.request.arrival));
                breakdown.of(Part::Throttle).0
            })
            .collect();
        // Without a buffer, the first write opens a block, so that the mean is 5. Its data takes longest.
        let second = DELAY / 4 + DELAY * 5 / 9;
        let expected = match buffer {
            [] => [second, DELAY / 2, second],
            _ => [DELAY / 2, 3 * DELAY / 4, 3 * DELAY / 4],
        };
        assert_eq!(delays, expected, "{buffer:?}");
    }
}

#[test]
fn reads_are_not_delayed() {
    let mut device = machine(10, &[]);
    write(&mut device, 0, 20, 1);
    let read = units(&device, Operation::Read, 3, 1);
    submit(&mut device, Time::ZERO, read);
    let (completion, breakdown) = finished(&mut device)[0];
    assert_eq!((completion.request.operation, breakdown.of(Part::Throttle)), (Operation::Read, Time::ZERO));
}

#[test]
fn delays_that_never_apply_are_refused() {
    let refused = |set: &str| common::refusal(&["gc.hard_threshold=2", set]);
    let error = refused("gc.throttle={ below = 2, delay = \"1ms\" }");
    assert!(error.contains("gc.throttle.below = 2: 2 blocks, must be from 3 (gc.hard_threshold + 1) to 64"), "{error}");
    let error = refused("gc.throttle={ below = 5, delay = \"0s\" }");
    assert!(error.contains("to disable it, leave gc.throttle out"), "{error}");
}

/// Returns the outcome of random writes on a small part of `tlc-direct`: 384 at a time, or one every `every`.
fn random_writes(credits: &str, every: Option<Time>) -> Outcome {
    let marks = ["buffer.high_water=0.5", "buffer.low_water=0.4"];
    let overrides = [&["geometry.blocks=40", "capacity.logical=34GiB"], &marks[..], &[credits]].concat();
    let config = device_file::load("tlc-direct", &overrides.iter().map(|&set| set.to_owned()).collect::<Vec<_>>())
        .expect("a device");
    let mut device = build(config, Options::default());
    precondition(&mut device, Precondition::Steady, 1, &mut |_| true).expect("a steady state");
    let (units, per_unit) = (device.config().logical_units(), device.config().sectors_per_unit());
    let (mut rng, mut arrival) = (Rng::new(1, "throttle"), Time::ZERO);
    let next = move || {
        arrival += every.unwrap_or(Time::ZERO);
        Request::new(arrival, Operation::Write, rng.below(units) * u64::from(per_unit), per_unit)
    };
    let load = if every.is_some() { Load::open(20_000, next) } else { Load::closed(384, 300_000, next) };
    load.measured_from(Time::from_us(1_000_000)).run(&mut device)
}

#[test]
fn credits_make_all_writers_wait_alike_and_nobody_below_saturation() {
    let spread = |credits| {
        let latency = random_writes(credits, None).results.of(Operation::Write).latency;
        latency.quantile_us(0.99) / latency.quantile_us(0.5)
    };
    let (plain, paced) = (spread("buffer.read=true"), spread("buffer.credits=3ms"));
    assert!(paced < 1.03 && plain > 1.1, "p99 / p50: {plain} without credits, {paced} with them");
    // A tenth of the rate at saturation.
    let latencies = |credits| random_writes(credits, Some(Time::from_us(80))).results.of(Operation::Write).latency;
    assert_eq!(latencies("buffer.read=true").curve(), latencies("buffer.credits=3ms").curve());
}

#[test]
fn credits_that_never_apply_are_refused() {
    let refused =
        |buffer: &str| common::refusal(&[format!("buffer={{ capacity = \"64KiB\", credits = \"1ms\", {buffer} }}")]);
    assert!(refused("high_water = 1.0").contains("set it below 1"));
    assert!(refused("high_water = 0.9, write = \"write-through\"").contains("set buffer.write to write-back"));
}
