//! Garbage collection in bursts of the whole device (`gc.pace.burst`): times computed by hand, to the picosecond, and
//! the cycle of stalls against its closed form.

use crate::common::{assert_close, build, device_config, drain, fill, refusal, submit, units};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::BlockState;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::Part;
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

const US: u64 = 1_000_000;
/// Cells to register, register to cells, and transfer of a page.
const READ: u64 = 25 * US;
const PROGRAM: u64 = 200 * US;
const DATA: u64 = 4096 * 25_000;
const WRITE: u64 = DATA + PROGRAM;
/// A page that garbage collection moves.
const MOVE: u64 = READ + DATA + WRITE;

/// Returns a device of two dies with eight blocks of eight pages each. Even units are on the first die, odd ones on the
/// second. Each die has 20 free units, the level of `gc.soft_threshold = 2`, and five closed blocks with two or three
/// valid units.
fn device(overrides: &[&str]) -> Device {
    let base = [
        "geometry.channels=2",
        "geometry.chips=1",
        "geometry.blocks=8",
        "geometry.pages=8",
        "capacity.logical=128KiB",
        "gc.soft_threshold=2",
        "gc.pace={ burst = { amount = { stripes = 2 } } }",
    ];
    let mut device =
        build(device_config(&[&base, overrides].concat()), Options { attribution: true, ..Options::default() });
    fill(&mut device, 32);
    let ftl = device.ftl_mut();
    let blocks = [[3, 4, 5, 6, 7, 11, 12, 13], [5, 5, 5, 5, 5, 6, 6, 6], [7, 7, 7, 7, 11, 11, 11, 11]];
    for unit in blocks.into_iter().flatten().chain([12, 13, 14, 15]) {
        (0..2).for_each(|die| ftl.write_whole(Lpn(2 * unit + die)));
    }
    device
}

/// Plays requests. Returns for each its time of completion, and the time for which it waited for garbage collection.
fn play(device: &mut Device, script: &[(u64, Operation, u64)]) -> Vec<(u64, u64)> {
    for (tag, &(at, operation, unit)) in (0..).zip(script) {
        let request = Request { tag, ..units(device, operation, unit, 1) };
        submit(device, Time(at), request);
    }
    let completions = drain(device);
    let mut breakdowns = Vec::new();
    device.take_breakdowns(&mut breakdowns);
    device.check_invariants().unwrap();
    let mut ends: Vec<_> = completions
        .iter()
        .zip(&breakdowns)
        .map(|(done, breakdown)| (done.request.tag, (done.finish.ps(), breakdown.of(Part::Gc).ps())))
        .collect();
    ends.sort_unstable();
    ends.into_iter().map(|(_, end)| end).collect()
}

#[test]
fn a_burst_stops_the_writes_of_all_dies() {
    let mut device = device(&[]);
    // The first write leaves less than the level. Its die moves two pages after it, and the other die at once.
    let [to_first, to_second] = [20 * US, 10 * US];
    let ends = play(
        &mut device,
        &[(0, Operation::Write, 0), (to_second, Operation::Write, 1), (to_first, Operation::Write, 2)],
    );
    let second = 2 * MOVE;
    let first = WRITE + 2 * MOVE;
    assert_eq!(ends, [(WRITE, 0), (second + WRITE, second - to_second), (first + WRITE, first - to_first)]);
    assert_eq!((device.ftl().counters.units_moved(), device.ftl().counters.victims), (4, 2));
}

/// A share of one half gives the host a program for each turn that a die takes.
#[test]
fn the_host_has_its_share_of_a_burst() {
    // As above, but the first turn, which the second die takes at 0, lets the second write start after its read. Then
    // the third one waits for the first die's turn, and starts after its read.
    let read = READ + DATA;
    let shared = play(
        &mut device(&["gc.pace={ burst = { amount = { stripes = 2 }, share = 0.5 } }"]),
        &[(0, Operation::Write, 0), (10 * US, Operation::Write, 1), (20 * US, Operation::Write, 2)],
    );
    let ends: Vec<u64> = shared.iter().map(|(end, _)| *end).collect();
    assert_eq!(ends, [WRITE, read + WRITE, WRITE + read + WRITE]);
}

/// The first burst of a device follows a rest.
#[test]
fn the_host_has_no_share_after_a_rest() {
    let script = [(0, Operation::Write, 0), (10 * US, Operation::Write, 1), (20 * US, Operation::Write, 2)];
    let pace = "gc.pace={ burst = { amount = { stripes = 2 }, share = 0.5, rest = \"100s\" } }";
    assert_eq!(play(&mut device(&[pace]), &script), play(&mut device(&[]), &script));
}

/// Time from the first of a page's commands to the end of its program, on a fast bus.
const FAST_DATA: u64 = 4096 * 625;
const FAST_WRITE: u64 = FAST_DATA + PROGRAM;
const FAST_MOVE: u64 = READ + FAST_DATA + FAST_WRITE;
/// Stripes of a burst, dies, and units of the buffer.
const STRIPES: u64 = 100;
const DIES: u64 = 8;
const ROOM: u64 = 100;

/// Returns a device of eight dies with a buffer of [`ROOM`] units, which are written back at once.
fn buffered(overrides: &[&str]) -> DeviceConfig {
    let burst = format!("gc.pace={{ burst = {{ amount = {{ stripes = {STRIPES} }} }} }}");
    let buffer =
        format!("buffer={{ capacity = \"{}KiB\", high_water = 0.0, low_water = 0.0, read = false }}", ROOM * 4);
    let base = [
        "geometry.channels=8",
        "geometry.chips=1",
        "geometry.blocks=256",
        "bus.protocol={ nv-ddr = \"1600MT/s\" }",
        "nand.erase=10us",
        "allocation=dynamic",
        "gc.soft_threshold=8",
        &burst,
        &buffer,
    ];
    device_config(&[&base, overrides].concat())
}

/// A stall: the arrivals of the first and the last write that waited, and the longest wait.
#[derive(Clone, Copy, Debug)]
struct Stall {
    at: u64,
    last: u64,
    longest: u64,
}

/// Time without a wait after which a stall has ended. During a burst, the host's share may let single writes pass.
const GAP: u64 = 2_000 * US;

/// Writes at random, `rate` units a second, to a device in the steady state. Returns the stalls and the write
/// amplification.
fn stalls(config: DeviceConfig, rate: u64, requests: u64) -> (Vec<Stall>, f64) {
    let mut device = build(config, Options::default());
    precondition(&mut device, Precondition::Steady, 1, &mut |_| true).expect("a steady state");
    let (units, per_unit) = (device.config().logical_units(), device.config().sectors_per_unit());
    let (mut rng, interval) = (Rng::new(1, "bursts"), 1_000_000_000_000 / rate);
    let (mut writes, mut new) = (Vec::new(), Vec::new());
    let before = device.ftl().counters;
    for number in 0..requests {
        let first = rng.below(units) * u64::from(per_unit);
        submit(&mut device, Time(number * interval), Request::new(Time::ZERO, Operation::Write, first, per_unit));
        device.take_completions(&mut new);
        writes.append(&mut new);
    }
    let counters = device.ftl().counters;
    let moved = counters.units_moved() - before.units_moved();
    let amplification = 1.0 + moved as f64 / (counters.host_units - before.host_units) as f64;
    writes.sort_unstable_by_key(|done| done.request.arrival);
    let mut stalls: Vec<Stall> = Vec::new();
    for done in &writes {
        let at = done.request.arrival.ps();
        let wait = (done.finish - done.request.arrival).ps();
        if wait <= FAST_WRITE {
            continue;
        }
        match stalls.last_mut().filter(|stall| at - stall.last < GAP) {
            Some(stall) => (stall.last, stall.longest) = (at, stall.longest.max(wait)),
            None => stalls.push(Stall { at, last: at, longest: wait }),
        }
    }
    (stalls, amplification)
}

/// Returns the mean of the longest waits of stalls.
fn mean(stalls: &[Stall]) -> f64 {
    stalls.iter().map(|stall| stall.longest as f64).sum::<f64>() / stalls.len() as f64
}

/// docs/model/gc.md: a burst of G units takes T = G / R. Writes stall for T + tPROG - B / r, once per U = G / (A - 1)
/// units of the host.
#[test]
fn stalls_are_those_of_the_closed_form() {
    for rate in [7_000, 10_000] {
        let (stalls, amplification) = stalls(buffered(&[]), rate, 60_000);
        let longest = STRIPES * FAST_MOVE + FAST_WRITE - ROOM * 1_000_000_000_000 / rate;
        assert_close("stall", mean(&stalls), longest as f64, 0.03);
        let span = (stalls[stalls.len() - 1].at - stalls[0].at) as f64 / 1e12 * rate as f64;
        let between = span / (stalls.len() - 1) as f64;
        assert_close("host units between", between, (STRIPES * DIES) as f64 / (amplification - 1.0), 0.03);
    }
}

/// docs/model/gc.md: with a share s, each of the S stripes costs the dies the moves of a stripe and s / (1 - s)
/// programs of the host, so T = S * (MOVE + s / (1 - s) * WRITE), and writes stall for T * (1 - h / r) - B / r.
#[test]
fn shared_stalls_are_those_of_the_closed_form() {
    let programs = 0.25; // Of the host for each one of garbage collection: a share of 0.2.
    let stripe = FAST_MOVE as f64 + programs * FAST_WRITE as f64;
    let host = programs * DIES as f64 / stripe;
    for rate in [13_000, 15_000] {
        let shared = format!("gc.pace={{ burst = {{ amount = {{ stripes = {STRIPES} }}, share = 0.2 }} }}");
        let (stalls, _) = stalls(buffered(&[&shared]), rate, 60_000);
        let per_ps = rate as f64 / 1e12;
        let longest = STRIPES as f64 * stripe * (1.0 - host / per_ps) - ROOM as f64 / per_ps;
        let mean = mean(&stalls);
        let burst = STRIPES as f64 * stripe;
        assert!((mean - longest).abs() < 0.015 * burst, "{rate}/s: stall {mean:.0}, expected {longest:.0}");
    }
}

/// Bursts that follow each other at times between those of the two rates: the host has its share at the faster one.
#[test]
fn the_host_has_its_share_of_bursts_without_a_rest() {
    let longest = |rest: &str, rate| {
        let pace = format!("gc.pace={{ burst = {{ amount = {{ stripes = {STRIPES} }}, share = 0.2{rest} }} }}");
        let (stalls, amplification) = stalls(buffered(&[&pace]), rate, 60_000);
        let between = (STRIPES * DIES) as f64 / (amplification - 1.0) / rate as f64;
        (mean(&stalls), between - (STRIPES * FAST_MOVE) as f64 / 1e12)
    };
    let ((slow, slow_rest), (fast, fast_rest)) = (longest("", 13_000), longest("", 15_000));
    let limit = format!(", rest = \"{}us\"", ((slow_rest + fast_rest) / 2.0 * 1e6) as u64);
    let (stopped, _) = longest(&limit, 13_000);
    // The first burst follows a rest.
    assert_close("shared", longest(&limit, 15_000).0, fast, 0.05);
    assert!(stopped > 1.5 * slow, "{stopped} {slow}");
}

/// A larger buffer with `room` holds as much during a burst.
#[test]
fn a_large_buffer_may_have_little_room_in_a_burst() {
    let rate = 10_000;
    let burst = format!("gc.pace={{ burst = {{ amount = {{ stripes = {STRIPES} }}, room = \"{}KiB\" }} }}", ROOM * 4);
    let (stalls, _) = stalls(buffered(&[&burst, "buffer.capacity=16MiB"]), rate, 40_000);
    let longest = STRIPES * FAST_MOVE + FAST_WRITE - ROOM * 1_000_000_000_000 / rate;
    assert_close("stall", mean(&stalls), longest as f64, 0.03);
}

/// The buffer absorbs a burst if the host fills it no sooner.
#[test]
fn a_slow_host_does_not_stall() {
    let rate = 1_000_000_000_000 * ROOM / (STRIPES * FAST_MOVE + FAST_WRITE) - 10;
    let (stalls, _) = stalls(buffered(&[]), rate, 20_000);
    assert!(stalls.is_empty(), "{stalls:?}");
}

/// The amount of a burst does not scale, so that writes stall as long on fewer blocks.
#[test]
fn scaled_devices_stall_as_long() {
    let scaled = buffered(&[]).scaled("1/4".parse().unwrap()).unwrap().device;
    assert_eq!((scaled.geometry.blocks, scaled.gc.pace), (64, buffered(&[]).gc.pace));
    let longest = |config| mean(&stalls(config, 10_000, 40_000).0);
    assert_close("stall", longest(scaled), longest(buffered(&[])), 0.02);
}

/// A number of units stands for whole stripes.
#[test]
fn units_are_rounded_up_to_stripes() {
    let programs = |amount: &str| {
        let pace = format!("gc.pace={{ burst = {{ amount = {{ {amount} }} }} }}");
        device_config(&[&pace, "geometry.page_size=16KiB", "geometry.mapping_unit=4KiB"]).programs_of_burst()
    };
    // Four dies, whose programs have four units.
    let of = ["stripes = 3", "units = 48", "units = 49", "units = 1"].map(programs);
    assert_eq!(of, [3, 3, 4, 1].map(Some));
}

/// The amount of a burst is not that of a victim: a burst of one stripe leaves a victim half-collected on each die. For
/// a saved state and functional mode, the rest of it is moved without time.
#[test]
fn half_collected_victims_are_finished_without_time() {
    let mut device = device(&["gc.pace={ burst = { amount = { stripes = 1 } } }"]);
    play(&mut device, &[(0, Operation::Write, 0)]);
    let victims = |device: &Device| {
        let counters = device.ftl().counters;
        let blocks = device.ftl().blocks.all().iter().filter(|block| block.state == BlockState::Victim).count();
        (blocks, counters.units_moved(), counters.victims, counters.victim_valid_units)
    };
    assert_eq!(victims(&device), (2, 2, 2, 4));
    let copy = device.in_same_state(device.config().clone(), Options::default()).unwrap();
    assert_eq!(victims(&copy), (0, 4, 2, 4));
    copy.check_invariants().unwrap();
    assert_eq!(victims(&device), (2, 2, 2, 4));
    device.ftl_mut();
    assert_eq!(victims(&device), (0, 4, 2, 4));
    device.check_invariants().unwrap();
}

#[test]
fn it_is_refused_where_planes_collect_otherwise() {
    let refused = |overrides: &[&str]| {
        let burst = ["gc.pace={ burst = { amount = { stripes = 4 } } }", "capacity.spare=0.6"];
        refusal(&[&burst, overrides].concat())
    };
    for (overrides, expected) in [
        (&["mapping.scheme=block"][..], "choose mapping.scheme = \"page\""),
        (&["mapping.scheme=dftl"], "choose mapping.scheme = \"page\""),
        (&["allocation=dynamic", "gc.scope=pool"], "each plane collects its share of a burst"),
        (&["allocation=dynamic", "gc.destination=pool"], "each plane collects its share of a burst"),
        (&["allocation.dynamic.active_blocks=1"], "set gc.pace to \"queued\""),
        (&["gc.background={ idle = \"1ms\", until = 8 }"], "which gc.background would finish; remove one of them"),
        (
            &[
                "nand.cell=tlc",
                "geometry.pages=63",
                "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
                "slc_cache.blocks=4",
            ],
            "folding frees the SLC cache plane by plane; remove slc_cache",
        ),
        (&["faults.read_rate=0.001"], "failed blocks need room between bursts; remove the table faults"),
        (&["gc.pace={ burst = { amount = { stripes = 0 } } }"], "must be from 1"),
        (&["gc.pace={ burst = { amount = { stripes = 4 }, room = \"64KiB\" } }"], "set buffer, or leave room out"),
        (&["gc.pace={ burst = { amount = { stripes = 4 }, rest = \"1ms\" } }"], "set share too, or leave rest out"),
    ] {
        let text = refused(overrides);
        assert!(text.contains(expected), "{overrides:?}: {text}");
    }
}
