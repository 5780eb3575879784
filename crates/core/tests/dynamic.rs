//! Dynamic allocation: the part of a physical address that the logical address determines, and the part that the device
//! chooses.

use crate::common::{self, device, drain, submit, units};
use floatgate_core::flash::Role;
use floatgate_core::mapping::Location;
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::Operation::Write;
use floatgate_core::sim::request::Request;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};

/// Two channels with two chips each. A chip has two dies of two planes and is one LUN.
const SHAPE: [&str; 3] = ["geometry.dies=2", "geometry.planes=2", "nand.concurrency=command"];
const PLANES_PER_CHANNEL: u32 = 8;
const BY_CHANNEL: &str = "allocation={ dynamic = { scope = \"channel\" } }";
/// Times of the transfer of a page of 4 KiB at 25 ns per byte, and of its program.
const PAGE_NS: u64 = 102_400;
const PROGRAM_NS: u64 = 200_000;

fn plane_of(device: &Device, lpn: u32) -> u32 {
    let Location::Flash(place) = device.ftl().map.get(Lpn(lpn)) else { panic!("unit {lpn} is not in flash") };
    device.ftl().blocks.plane_of(device.ftl().blocks.block_of(place)).0
}

fn machine(overrides: &[&str]) -> Device {
    device(&[&SHAPE[..], overrides].concat())
}

/// Writes the units in order, all submitted at the same time, and returns the plane of each.
fn planes_of_writes(overrides: &[&str], lpns: &[u32]) -> Vec<u32> {
    let mut device = machine(overrides);
    for &lpn in lpns {
        let request = units(&device, Write, u64::from(lpn), 1);
        submit(&mut device, Time::ZERO, request);
    }
    drain(&mut device);
    lpns.iter().map(|&lpn| plane_of(&device, lpn)).collect()
}

#[test]
fn with_channel_scope_the_address_determines_only_the_channel() {
    for advanced in [&[][..], &["nand.advanced.interleave=true", "nand.advanced.multi_plane_program=wise"]] {
        let even: Vec<u32> = (0..16).map(|index| index * 2).collect();
        let with = |allocation| planes_of_writes(&[&[allocation], advanced].concat(), &even);
        let planes = with(BY_CHANNEL);
        assert!(planes.iter().all(|plane| plane / PLANES_PER_CHANNEL == 0), "{advanced:?}: {planes:?}");
        let mut sorted = planes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 8, "{advanced:?}: not all planes of the channel are used: {planes:?}");
        let anywhere = with("allocation=dynamic");
        assert!(anywhere.iter().any(|plane| plane / PLANES_PER_CHANNEL == 1), "{advanced:?}: {anywhere:?}");
    }
}

#[test]
fn each_pool_takes_the_pages_that_the_address_assigns_to_it() {
    // Two channels of four chips, two of which form a package that takes one command at a time. S2 varies the channel
    // first, then chip, die and plane. The pools that hold pages 0 and 1, and the page after which they repeat.
    let shape = ["geometry.chips=4", "geometry.chips_per_package=2", "nand.concurrency=chip"];
    for (scope, planes, repeats) in [
        ("\"plane\"", 1, 32),
        ("\"die\"", 2, 16),
        ("\"chip\"", 4, 8),
        ("\"package\"", 8, 4),
        ("\"channel\"", 16, 2),
        ("{ channels = 1 }", 16, 2),
    ] {
        let allocation = format!("allocation={{ dynamic = {{ scope = {scope} }} }}");
        for advanced in [&[][..], &["nand.advanced.interleave=true", "nand.advanced.multi_plane_program=wise"]] {
            let set = [&shape[..], &[&allocation], advanced].concat();
            let lpns: Vec<u32> = (0..32).chain((0..8).map(|index| index * repeats)).collect();
            let pools: Vec<u32> = planes_of_writes(&set, &lpns[..32]).iter().map(|plane| plane / planes).collect();
            let of = |lpn: u32| pools[lpn as usize];
            assert!((0..32).all(|lpn| of(lpn) == of(lpn % repeats)), "{scope}: {pools:?}");
            assert_eq!((of(0), of(1)), (0, 32 / planes / 2), "{scope}: {pools:?}");
            let first = planes_of_writes(&set, &lpns[32..]);
            let mut used = first.clone();
            used.sort_unstable();
            used.dedup();
            assert!(first.iter().all(|plane| plane / planes == 0), "{scope}: {first:?}");
            assert_eq!(used.len() as u32, planes.min(8), "{scope}: not all planes of the pool are used: {first:?}");
        }
    }
}

/// A pool of one plane leaves no choice, so each write of an idle device takes the time of static allocation.
#[test]
fn pools_of_planes_are_static_allocation() {
    let shape = ["nand.concurrency=die", "geometry.blocks=16", "capacity.spare=0.4"];
    let completions = |allocation: &str| {
        let mut device = machine(&[&shape[..], &[allocation]].concat());
        let mut rng = floatgate_core::sim::rng::Rng::new(3, "writes");
        let mut ends = Vec::new();
        for _ in 0..12_000 {
            let lpn = rng.below(device.config().logical_units());
            let now = device.now();
            let request = units(&device, Write, lpn, 1);
            submit(&mut device, now, request);
            ends.extend(drain(&mut device).iter().map(|done| done.finish));
        }
        (ends, device.ftl().counters.blocks_erased)
    };
    let pooled = completions("allocation={ dynamic = { scope = \"plane\", order = \"s4\" } }");
    assert!(pooled.1 > 0, "no garbage was collected");
    assert_eq!(pooled, completions("allocation={ static = { order = \"s4\" } }"));
}

#[test]
fn functional_writes_use_the_channel_of_the_address() {
    // The units of a page go to the same channel.
    let paged = ["geometry.page_size=8KiB", "geometry.mapping_unit=4KiB"];
    for (shape, per_page) in [(&[][..], 1), (&paged[..], 2)] {
        let mut device = machine(&[&[BY_CHANNEL], shape].concat());
        common::fill(&mut device, 64);
        for lpn in 0..64 {
            let channel = plane_of(&device, lpn) / PLANES_PER_CHANNEL;
            assert_eq!(channel, lpn / per_page % 2, "unit {lpn}, {per_page} per page");
        }
        device.check_invariants().unwrap();
    }
}

/// Returns the time at which the last of two writes to even addresses completes, in nanoseconds.
fn end_of_two(allocation: &str) -> u64 {
    let mut device = machine(&[allocation, "geometry.chips=1"]);
    for lpn in [0, 2] {
        let request = units(&device, Write, lpn, 1);
        submit(&mut device, Time::ZERO, request);
    }
    drain(&mut device).iter().map(|completion| completion.finish.0 / 1000).max().unwrap()
}

#[test]
fn with_channel_scope_a_write_waits_although_another_channel_is_idle() {
    // The only chip of a channel takes one command at a time, so the second write follows the first.
    assert_eq!(end_of_two(BY_CHANNEL), 2 * (PAGE_NS + PROGRAM_NS));
    assert_eq!(end_of_two("allocation=dynamic"), PAGE_NS + PROGRAM_NS);
}

/// Returns the chip of each page, on a channel of four chips. Each request has `pages` pages and finds the device idle.
fn chips_of(requests: u64, pages: u32) -> Vec<u32> {
    let shape = ["geometry.channels=1", "geometry.chips=4", "geometry.dies=1", "geometry.planes=1"];
    let mut device = machine(&[&shape[..], &["allocation=dynamic"]].concat());
    for request in 0..requests {
        let at = Time::from_ns(request * 10_000_000);
        let request = units(&device, Write, request * u64::from(pages), pages);
        submit(&mut device, at, request);
    }
    drain(&mut device);
    (0..requests as u32 * pages).map(|lpn| plane_of(&device, lpn)).collect()
}

#[test]
fn of_equally_idle_chips_the_least_recently_used_takes_a_write() {
    assert_eq!(chips_of(5, 1), [0, 1, 2, 3, 0]);
    // The second page of each request waits for the channel, and then three chips are idle. It goes to the one that was
    // used least recently, and so does the first page of the next request.
    assert_eq!(chips_of(4, 2), [0, 1, 2, 3, 0, 1, 2, 3]);
    // The fourth chip receives the first page of the second request.
    assert_eq!(chips_of(4, 3), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn with_channel_scope_the_units_to_hold_are_spread_within_each_channel() {
    // Three units: one of the two channels gets two of them, and each of its 8 planes holds at most one.
    let held = |allocation: &str, units: u32| {
        let capacity = format!("capacity.logical={}KiB", units * 4);
        common::device_config(&[&SHAPE[..], &[allocation, &capacity]].concat()).units_to_hold()
    };
    assert_eq!((held(BY_CHANNEL, 3), held("allocation=dynamic", 3), held("allocation=static", 3)), (1, 1, 1));
    assert_eq!((held(BY_CHANNEL, 17), held("allocation=dynamic", 17)), (2, 2));
    // 33 units: the first channel gets 17 and one of its planes 3. If all 16 planes share them, they also hold up to 3.
    assert_eq!((held(BY_CHANNEL, 32), held(BY_CHANNEL, 33), held("allocation=dynamic", 33)), (2, 3, 3));
}

/// A channel with four chips.
const FOUR_CHIPS: [&str; 3] = ["geometry.channels=1", "geometry.chips=4", "allocation=dynamic"];

/// Returns the latency of a write of half of unit 4 and half of unit 5. Unit 5 is in the chip that is next in turn, and
/// its other half is kept. The other chips are idle. With `busy`, another write occupies the channel on arrival.
fn time_of_late_update(overrides: &[&str], busy: bool) -> u64 {
    let mut device = device(&[&FOUR_CHIPS[..], overrides].concat());
    let chips = u64::from(device.config().geometry.chips);
    let planes_per_chip = device.config().total_planes() / chips as u32;
    // After a write to each chip, the first chip is next in turn. With `busy`, the occupying write takes it.
    let spare = u64::from(busy);
    let at = |number: u64| Time::from_ns(number * 2_000_000);
    for number in 0..chips {
        let request = units(&device, Write, if number == spare { 5 } else { 20 + number }, 1);
        submit(&mut device, at(number), request);
    }
    drain(&mut device);
    let next = plane_of(&device, 5) / planes_per_chip;
    assert_eq!(u64::from(next), spare, "the chip that is next in turn holds unit 5");
    let start = at(chips);
    if busy {
        let request = units(&device, Write, 40, 1);
        submit(&mut device, start, request);
    }
    let per_unit = u64::from(device.config().sectors_per_unit());
    let late = Request::new(start, Write, 4 * per_unit + per_unit / 2, per_unit as u32);
    submit(&mut device, start, late);
    let done = drain(&mut device);
    let late = done.iter().find(|completion| completion.request.lba == late.lba).unwrap();
    late.finish.since(start).0 / 1000
}

#[test]
fn a_write_avoids_the_chip_that_another_page_of_its_request_reads() {
    const READ_NS: u64 = 25_000;
    // The first unit goes to another chip. The second is read at the same time, transferred when the channel is free,
    // and programmed.
    let expected = 3 * PAGE_NS + PROGRAM_NS;
    assert_eq!(time_of_late_update(&[], false), expected);
    assert_eq!(time_of_late_update(&["scheduler=read-first"], false), expected);
    let dies = ["geometry.dies=2", "geometry.planes=2", "nand.concurrency=command"];
    let merged = ["nand.advanced.interleave=true", "nand.advanced.multi_plane_program=wise"];
    for advanced in [&merged[..1], &merged[1..], &merged[..]] {
        assert_eq!(time_of_late_update(&[&dies[..], advanced].concat(), false), expected, "{advanced:?}");
    }
    // The command of the read goes first, and nothing is transferred while the cells read.
    let commands = ["bus.command_cycles.read=1"];
    assert!(time_of_late_update(&commands, false) <= expected + 25);
    // The read waits for the channel, and so does the first unit, which is queued on the same chip.
    assert_eq!(time_of_late_update(&[], true), expected + PAGE_NS);
    assert!(time_of_late_update(&commands, true) <= expected + PAGE_NS + READ_NS + 25);
    // Units that leave a buffer together are treated like those of a request.
    let buffer = ["buffer={ capacity = \"8KiB\", write = \"write-through\" }"];
    assert_eq!(time_of_late_update(&buffer, false), expected);
}

#[test]
fn with_tie_erases_a_write_goes_to_an_idle_plane_with_the_least_erased_next_block() {
    let by_erases = ["allocation={ dynamic = { tie = \"erases\" } }", "geometry.blocks=16", "capacity.spare=0.4"];
    let mut device = device(&by_erases);
    let planes = device.config().total_planes();
    let logical = device.config().logical_units();
    let mut rng = floatgate_core::sim::rng::Rng::new(7, "writes");
    let mut uneven = 0;
    let mut at = Time::ZERO;
    for _ in 0..20_000 {
        // Requests of one unit arrive when the device is idle, so all planes with free pages are idle.
        at = Time(at.0.max(device.now().0) + 1_000_000_000);
        let lpn = rng.below(logical) as u32;
        let blocks = &device.ftl().blocks;
        let ready: Vec<PlaneId> = (0..planes).map(PlaneId).filter(|&plane| blocks.takes_host_write(plane)).collect();
        let least = ready.iter().map(|&plane| blocks.erases_of_next(plane)).min().unwrap();
        let allowed: Vec<u32> =
            ready.iter().filter(|&&plane| blocks.erases_of_next(plane) == least).map(|plane| plane.0).collect();
        uneven += u32::from(allowed.len() < ready.len());
        let request = units(&device, Write, u64::from(lpn), 1);
        submit(&mut device, at, request);
        device.advance(device.now().later(Time::from_ns(PAGE_NS + PROGRAM_NS)));
        let plane = plane_of(&device, lpn);
        assert!(allowed.contains(&plane), "plane {plane} took a write, expected one of {allowed:?}");
        drain(&mut device);
    }
    assert!(uneven > 1000, "the planes differed only {uneven} times");
    device.check_invariants().unwrap();
}

/// Overwrites half of the units of a device of one pool at random: the first half, or every second 16 units if `mixed`,
/// so that all blocks have units of both halves. Returns the idle device, the planes of the other units before the
/// overwrites, and their planes after the overwrites.
fn overwritten(options: &[&str], mixed: bool) -> (Device, Vec<u32>, Vec<u32>) {
    let shape = ["allocation=dynamic", "geometry.blocks=24", "geometry.pages=16", "capacity.spare=0.4"];
    let mut device = machine(&[&shape[..], options].concat());
    let logical = device.config().logical_units();
    let half = logical as u32 / 2;
    common::fill(&mut device, logical as u32);
    // The number of a unit of the first or the second half.
    let unit = |index: u32, second: u32| {
        if mixed { index / 16 * 32 + second * 16 + index % 16 } else { second * half + index }
    };
    let half = if mixed { half / 16 * 16 } else { half };
    let cold = |device: &Device| (0..half).map(|index| plane_of(device, unit(index, 1))).collect::<Vec<_>>();
    let before = cold(&device);
    let mut rng = floatgate_core::sim::rng::Rng::new(5, "writes");
    for _ in 0..4 * logical {
        let now = device.now();
        let request = units(&device, Write, unit(rng.below(half.into()) as u32, 0).into(), 1);
        submit(&mut device, now, request);
        while device.outstanding() >= 32 {
            let next = device.next_event().unwrap();
            device.advance(next);
        }
    }
    drain(&mut device);
    device.check_invariants().unwrap();
    let after = cold(&device);
    (device, before, after)
}

#[test]
fn a_threshold_applies_to_the_free_blocks_of_the_pool_or_of_each_plane() {
    let free = |options: &[&str]| {
        let (device, ..) = overwritten(options, false);
        let planes = (0..device.config().total_planes()).map(PlaneId);
        planes.map(|plane| device.ftl().blocks.free_blocks(plane, Role::Data)).collect::<Vec<u32>>()
    };
    let by_plane = free(&[]);
    assert!(by_plane.iter().all(|free| *free > 3), "{by_plane:?}");
    let by_pool = free(&["gc.scope=pool"]);
    assert!(by_pool.iter().sum::<u32>() > 3 * 16 && by_pool.iter().any(|free| *free <= 3), "{by_pool:?}");
    // 10% of the 16 x 24 blocks are 39 blocks. In each plane, they would be 3 of 24.
    let share = free(&["gc.scope=pool", "gc.soft_threshold=10%"]);
    assert!((40..48).contains(&share.iter().sum::<u32>()), "{share:?}");
}

#[test]
fn cold_units_leave_their_plane_only_if_copies_may_go_anywhere_in_the_pool() {
    for (scope, copy_back) in [("plane", "off"), ("pool", "off"), ("pool", "wise")] {
        let options = [format!("gc.scope={scope}"), format!("nand.advanced.copy_back={copy_back}")];
        let with = |destination| overwritten(&[&options[0], &options[1], "capacity.spare=0.25", destination], true);
        let (device, before, after) = with("gc.destination=plane");
        assert!(device.ftl().counters.moved.iter().sum::<u64>() > 0, "nothing was moved");
        assert_eq!(before, after, "{options:?}");
        assert_eq!(device.ftl().counters.copy_backs > 0, copy_back == "wise");
        let (_, before, after) = with("gc.destination=pool");
        let left = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        assert!(left > before.len() / 4, "{options:?}: {left} of {} units have left", before.len());
    }
}
