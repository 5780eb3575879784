//! Dynamic allocation: what of a write's place the address fixes, and what it leaves to the device.

mod common;

use common::{device, drain, submit, units};
use floatgate_core::device::Device;
use floatgate_core::ftl::mapping::Location;
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::Operation::Write;
use floatgate_core::sim::request::Request;
use floatgate_core::sim::time::Time;

/// Two channels with two chips of two dies with two planes each, one LUN for each chip.
const SHAPE: [&str; 3] = ["geometry.dies=2", "geometry.planes=2", "nand.concurrency=command"];
const PLANES_PER_CHANNEL: u32 = 8;
const BY_CHANNEL: &str = "allocation={ dynamic = { scope = \"channel\" } }";
/// A page of 4 KiB at 25 ns a byte, and its program.
const PAGE_NS: u64 = 102_400;
const PROGRAM_NS: u64 = 200_000;

fn plane_of(device: &Device, lpn: u32) -> u32 {
    let Location::Flash(place) = device.ftl().map.get(Lpn(lpn)) else { panic!("unit {lpn} is not in flash") };
    device.ftl().blocks.plane_of(device.ftl().blocks.block_of(place)).0
}

fn machine(overrides: &[&str]) -> Device {
    device(&[&SHAPE[..], overrides].concat())
}

/// Writes units one after another, all at once, and tells where each has gone.
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
fn the_channel_follows_from_the_address_and_the_rest_is_free() {
    for advanced in [&[][..], &["nand.advanced.interleave=true", "nand.advanced.multi_plane_program=wise"]] {
        let even: Vec<u32> = (0..16).map(|index| index * 2).collect();
        let with = |allocation| planes_of_writes(&[&[allocation], advanced].concat(), &even);
        let planes = with(BY_CHANNEL);
        assert!(planes.iter().all(|plane| plane / PLANES_PER_CHANNEL == 0), "{advanced:?}: {planes:?}");
        let mut sorted = planes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 8, "{advanced:?}: all planes of the channel are used: {planes:?}");
        let anywhere = with("allocation=dynamic");
        assert!(anywhere.iter().any(|plane| plane / PLANES_PER_CHANNEL == 1), "{advanced:?}: {anywhere:?}");
    }
}

#[test]
fn functional_writes_go_to_the_same_channels() {
    // Two units of a page go to one channel together.
    let paged = ["geometry.page_size=8KiB", "geometry.mapping_unit=4KiB"];
    for (shape, per_page) in [(&[][..], 1), (&paged[..], 2)] {
        let mut device = machine(&[&[BY_CHANNEL], shape].concat());
        common::fill(&mut device, 64);
        for lpn in 0..64 {
            let channel = plane_of(&device, lpn) / PLANES_PER_CHANNEL;
            assert_eq!(channel, lpn / per_page % 2, "unit {lpn}, {per_page} to a page");
        }
        device.check_invariants().unwrap();
    }
}

/// When the last of two writes that both have an even address ends.
fn end_of_two(allocation: &str) -> u64 {
    let mut device = machine(&[allocation, "geometry.chips=1"]);
    for lpn in [0, 2] {
        let request = units(&device, Write, lpn, 1);
        submit(&mut device, Time::ZERO, request);
    }
    drain(&mut device).iter().map(|completion| completion.finish.0 / 1000).max().unwrap()
}

#[test]
fn a_write_waits_for_its_channel_while_another_is_idle() {
    // One chip for each channel takes one command at a time: the second write comes behind the first.
    assert_eq!(end_of_two(BY_CHANNEL), 2 * (PAGE_NS + PROGRAM_NS));
    assert_eq!(end_of_two("allocation=dynamic"), PAGE_NS + PROGRAM_NS);
}

/// Which chip of a channel of four takes each page, where requests of so many pages come when all is idle.
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
    // The second page of each request waits for the channel, and finds three chips idle. It goes to the one that has
    // rested longest, and the next request to the one that has then.
    assert_eq!(chips_of(4, 2), [0, 1, 2, 3, 0, 1, 2, 3]);
    // The fourth chip is the last of the first request, and the first of the second.
    assert_eq!(chips_of(4, 3), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn a_full_device_levels_inside_each_channel() {
    // Three units on two channels are two for one of them, which its 8 planes share: one each at most.
    let held = |allocation: &str, units: u32| {
        let capacity = format!("capacity.logical={}KiB", units * 4);
        common::device_config(&[&SHAPE[..], &[allocation, &capacity]].concat()).units_to_hold()
    };
    assert_eq!((held(BY_CHANNEL, 3), held("allocation=dynamic", 3), held("allocation=static", 3)), (1, 1, 1));
    assert_eq!((held(BY_CHANNEL, 17), held("allocation=dynamic", 17)), (2, 2));
    // 33 units: 17 on the first channel, 3 on one of its planes; all 16 planes share them as 3 too.
    assert_eq!((held(BY_CHANNEL, 32), held(BY_CHANNEL, 33), held("allocation=dynamic", 33)), (2, 3, 3));
}

/// One channel of four chips.
const FOUR_CHIPS: [&str; 3] = ["geometry.channels=1", "geometry.chips=4", "allocation=dynamic"];

/// Returns how long a write takes whose second unit keeps half of what the chip holds that is next in turn. The other
/// chips are idle. With `busy`, another write occupies the channel when it arrives.
fn time_of_late_update(overrides: &[&str], busy: bool) -> u64 {
    let mut device = device(&[&FOUR_CHIPS[..], overrides].concat());
    let chips = u64::from(device.config().geometry.chips);
    let planes_per_chip = device.config().total_planes() / chips as u32;
    // A round over all chips, or one less, if the write that occupies the channel takes one.
    let spare = u64::from(busy);
    let at = |number: u64| Time::from_ns(number * 2_000_000);
    for number in 0..chips {
        let request = units(&device, Write, if number == spare { 5 } else { 20 + number }, 1);
        submit(&mut device, at(number), request);
    }
    drain(&mut device);
    let next = plane_of(&device, 5) / planes_per_chip;
    assert_eq!(u64::from(next), spare, "the chip that is next in turn holds what is kept");
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
fn a_write_leaves_the_chip_alone_that_another_page_of_its_request_reads() {
    const READ_NS: u64 = 25_000;
    // The first unit goes to another chip; the second is read meanwhile, moves when the channel is free, and follows.
    let expected = 3 * PAGE_NS + PROGRAM_NS;
    assert_eq!(time_of_late_update(&[], false), expected);
    assert_eq!(time_of_late_update(&["scheduler=read-first"], false), expected);
    let dies = ["geometry.dies=2", "geometry.planes=2", "nand.concurrency=command"];
    let merged = ["nand.advanced.interleave=true", "nand.advanced.multi_plane_program=wise"];
    for advanced in [&merged[..1], &merged[1..], &merged[..]] {
        assert_eq!(time_of_late_update(&[&dies[..], advanced].concat(), false), expected, "{advanced:?}");
    }
    // The command of the read goes first, and nothing moves while the cells are read.
    let commands = ["bus.command_cycles.read=1"];
    assert!(time_of_late_update(&commands, false) <= expected + 25);
    // The read waits for the channel like the first unit, which lines up at the same chip.
    assert_eq!(time_of_late_update(&[], true), expected + PAGE_NS);
    assert!(time_of_late_update(&commands, true) <= expected + PAGE_NS + READ_NS + 25);
    // Writes that leave a buffer together are like those of a request.
    let buffer = ["buffer={ capacity = \"8KiB\", write = \"write-through\" }"];
    assert_eq!(time_of_late_update(&buffer, false), expected);
}

#[test]
fn by_erases_a_write_goes_to_an_idle_plane_whose_next_block_was_erased_the_least() {
    let by_erases = ["allocation={ dynamic = { tie = \"erases\" } }", "geometry.blocks=16", "capacity.spare=0.4"];
    let mut device = device(&by_erases);
    let planes = device.config().total_planes();
    let logical = device.config().logical_units();
    let mut rng = floatgate_core::sim::rng::Rng::new(7, "writes");
    let (mut uneven, mut at) = (0, Time::ZERO);
    for _ in 0..20_000 {
        // Requests of one unit, each when the device is at rest: all planes with room are idle.
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
        device.advance_to(device.now().later(Time::from_ns(PAGE_NS + PROGRAM_NS)));
        let plane = plane_of(&device, lpn);
        assert!(allowed.contains(&plane), "plane {plane} has taken a write that {allowed:?} had to take");
        drain(&mut device);
    }
    assert!(uneven > 1000, "the rule matters: {uneven}");
    device.check_invariants().unwrap();
}
