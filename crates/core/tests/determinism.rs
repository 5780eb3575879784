//! Determinism: equal configurations and seeds give the same bytes in a second run, after a clone in the middle of a
//! run, with other devices in the process and with a probe. Debug and release builds check the same digests.

mod common;

use common::{Load, build, device_config};
use floatgate_core::results::Results;
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::Pace;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use serde_json::Value;

const CASES: [(&str, &[&str]); 8] = [
    ("static, greedy, fcfs", &[]),
    ("dynamic, d-choices, read-first", &["allocation.dynamic.order=s6", "gc.victim=d-choices", "scheduler=read-first"]),
    (
        "small units, random, link",
        &[
            "geometry.mapping_unit=1KiB",
            "gc.victim=random",
            "host.link_bandwidth=500MB/s",
            "host.link_latency=3us",
            "controller.write_slots=16",
        ],
    ),
    (
        "single frontier, fifo, planes",
        &[
            "gc.frontiers=single",
            "gc.victim=fifo",
            "geometry.planes=2",
            "nand.concurrency=plane",
            "bus.channel_switch=2us",
        ],
    ),
    ("map in flash", &["mapping.scheme={ dftl = { cache = \"4KiB\", entry = \"32B\" } }", "capacity.spare=0.3"]),
    ("logical blocks", &["mapping.scheme=block", "geometry.pages=16"]),
    (
        "planes that read independently",
        &[
            "geometry.planes=2",
            "nand.concurrency=plane-reads",
            "scheduler=read-first",
            "nand.advanced.suspend={ program = true, erase = true, latency = \"5us\" }",
        ],
    ),
    ("log blocks", &["mapping.scheme.last.stripe.cold=4", "geometry.pages=16"]),
];

fn device(overrides: &[&str]) -> Device {
    let mut device = build(device_config(overrides), Options { seed: 11, ..Options::default() });
    let units = device.ftl().map.len();
    common::fill(&mut device, units);
    device
}

/// Returns a source of reads, writes of random lengths and trims, all over the device.
fn requests(device: &Device) -> impl FnMut() -> Request + 'static {
    let sectors = device.config().logical_sectors();
    let mut rng = Rng::new(5, "determinism");
    move || {
        let length = 1 + rng.below(24);
        let operation = match rng.below(20) {
            0..8 => Operation::Read,
            8..19 => Operation::Write,
            _ => Operation::Trim,
        };
        Request::new(Time::ZERO, operation, rng.below(sectors - length), length as u32)
    }
}

fn run(device: &mut Device, count: u64) -> Results {
    let next = requests(device);
    let mut load = Load::closed(8, count, next);
    load.pace = Pace::Depth { depth: 8, think: Time::ZERO };
    load.run(device).results
}

/// Returns the counters in the order of their names, without zeros, so that neither a new counter that stays 0 nor the
/// order of their declarations changes the digest.
fn counted(device: &Device) -> String {
    let mut counts = Vec::new();
    count(&mut counts, "", &serde_json::to_value(device.ftl().counters).expect("counters are numbers"));
    counts.sort();
    counts.concat()
}

fn count(counts: &mut Vec<String>, name: &str, value: &Value) {
    match value {
        Value::Object(inner) => {
            inner.iter().for_each(|(inner, value)| count(counts, &format!("{name}.{inner}"), value));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(index, value)| count(counts, &format!("{name}[{index}]"), value));
        }
        value if value.as_u64() != Some(0) => counts.push(format!("{name}={value} ")),
        _ => {}
    }
}

/// Returns a digest of all results of a run (FNV-1a).
fn digest(device: &Device, results: &Results) -> u64 {
    let all = results.all();
    let quantiles: Vec<f64> = [0.1, 0.5, 0.9, 0.99, 0.999].iter().map(|&q| all.latency.quantile_us(q)).collect();
    let array = device.array();
    let wear: Vec<u32> = device.ftl().blocks.all().iter().map(|block| block.erases).collect();
    let text = format!(
        "{} {quantiles:?} {} {} {:?} {:?} {wear:?} {:?}",
        counted(device),
        all.waiting,
        all.service,
        array.channel_time,
        array.die_time,
        device.now()
    );
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A value may change only with its reason in the commit and, after 0.1.0, in CHANGELOG.md.
const GOLDEN: [u64; 8] = [
    4_791_996_607_779_007_270,
    3_263_275_074_405_561_805,
    2_333_515_563_285_753_064,
    4_863_289_986_221_073_735,
    4_954_116_221_383_199_664,
    12_708_396_934_066_497_305,
    2_264_309_060_531_527_516,
    7_953_651_462_487_499_039,
];

#[test]
fn digests_are_those_of_every_machine_and_build() {
    let digests = CASES.map(|(_, overrides)| {
        let mut device = device(overrides);
        let results = run(&mut device, 20_000);
        digest(&device, &results)
    });
    assert_eq!(digests, GOLDEN, "{digests:#x?}");
}

/// Submits the requests one by one and returns the completions.
fn step(device: &mut Device, next: &mut impl FnMut() -> Request, count: u64) -> Vec<Completion> {
    let mut completions = Vec::new();
    for tag in 0..count {
        let at = device.now() + Time::from_us(40);
        device.advance(at);
        device.submit(at, Request { tag, arrival: at, ..next() });
        device.take_completions(&mut completions);
    }
    completions
}

#[test]
fn a_clone_has_the_same_future() {
    for (name, overrides) in CASES {
        let mut first = device(overrides);
        let mut next = requests(&first);
        step(&mut first, &mut next, 3_000);
        assert!(first.outstanding() > 0, "{name}: no request is outstanding");
        let mut second = first.clone();
        let (mut a, mut b) = (requests(&first), requests(&second));
        assert_eq!(step(&mut first, &mut a, 3_000), step(&mut second, &mut b, 3_000), "{name}");
        assert_eq!(first.ftl().counters, second.ftl().counters, "{name}");
    }
}

#[test]
fn devices_do_not_affect_each_other() {
    let alone = CASES.map(|(_, overrides)| {
        let mut device = device(overrides);
        let mut next = requests(&device);
        step(&mut device, &mut next, 2_000)
    });
    let mut devices = CASES.map(|(_, overrides)| device(overrides));
    let mut sources: Vec<_> = devices.iter().map(requests).collect();
    let mut together: [Vec<Completion>; CASES.len()] = Default::default();
    for _ in 0..20 {
        for (index, device) in devices.iter_mut().enumerate() {
            together[index].extend(step(device, &mut sources[index], 100));
        }
    }
    // Tags count from 0 in every call of `step`.
    let without_tags =
        |all: &[Completion]| all.iter().map(|c| (c.request.lba, c.start, c.finish, c.status)).collect::<Vec<_>>();
    for (index, (name, _)) in CASES.iter().enumerate() {
        assert_eq!(without_tags(&together[index]), without_tags(&alone[index]), "{name}");
    }
}

#[test]
fn a_probe_changes_nothing() {
    for (name, overrides) in CASES {
        let mut plain = device(overrides);
        let mut watched = plain.clone();
        watched.array_mut().set_probe(Some(floatgate_core::timeline::Probe::new(Time::ZERO, Time::NEVER)));
        let (a, b) = (run(&mut plain, 5_000), run(&mut watched, 5_000));
        assert_eq!(digest(&plain, &a), digest(&watched, &b), "{name}");
        let slices = watched.array().probe().map_or(0, |probe| probe.slices().len());
        assert!(slices > 10_000, "{name}: {slices} phases recorded");
    }
}

#[test]
fn the_seed_affects_random_choices() {
    let digest_with = |seed| {
        let mut device = build(device_config(&["gc.victim=random"]), Options { seed, ..Options::default() });
        let units = device.ftl().map.len();
        common::fill(&mut device, units);
        let results = run(&mut device, 20_000);
        digest(&device, &results)
    };
    assert_ne!(digest_with(1), digest_with(2));
    assert_eq!(digest_with(1), digest_with(1));
}
