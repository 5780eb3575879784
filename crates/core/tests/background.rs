//! Garbage collection in idle time (`gc.background`): when it starts, what interrupts it, and when it stops.

use crate::common::{self, drain, refusal, submit, units};
use floatgate_core::flash::{BlockState, Role};
use floatgate_core::policies::Class;
use floatgate_core::results::Sample;
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::timeline::{Kind, Phase, Probe, Slice};

const PLANE: PlaneId = PlaneId(0);
const PAGES: u32 = 8;
/// Time of a host read: cells and transfer of a page.
const READ: u64 = 25_000_000 + 102_400_000;
const IDLE: u64 = 5_000_000_000;

/// Returns a device of one plane with 16 blocks of 8 pages, unless `more` adds planes. The host sees `units`. It has
/// written all of them, and the first `again` units of every second block again.
fn machine(units: u64, again: u32, background: &str, more: &[&str]) -> Device {
    let capacity = format!("capacity.logical={}B", units * 4096);
    let background = format!("gc.background={{ idle = \"5ms\", {background} }}");
    let base = [
        "geometry.channels=1",
        "geometry.chips=1",
        "geometry.blocks=16",
        "geometry.pages=8",
        "gc.soft_threshold=2",
        "gc.hard_threshold=0",
        &capacity,
        &background,
    ];
    let mut device = common::device(&[&base, more].concat());
    common::fill(&mut device, units as u32);
    let ftl = device.ftl_mut();
    let planes = ftl.shape().planes;
    let is_again = |unit: &u32| unit % (2 * PAGES * planes) < again * planes;
    (0..units as u32).filter(is_again).for_each(|unit| ftl.write_whole(Lpn(unit)));
    ftl.seal();
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    device
}

/// Returns the phases of garbage collection in idle time.
fn background(device: &Device) -> Vec<Slice> {
    let slices = device.array().probe().expect("it was switched on").slices();
    slices.iter().filter(|slice| slice.class == Class::BackgroundGc).copied().collect()
}

fn free_blocks(device: &Device) -> u32 {
    device.ftl().blocks.free_blocks(PLANE, Role::Data)
}

fn read(device: &mut Device, at: u64) {
    let request = units(device, Operation::Read, 1, 1);
    submit(device, Time(at), request);
}

#[test]
fn it_starts_when_the_device_has_been_idle_for_its_time() {
    let device = machine(72, 4, "until = 6", &[]);
    // Without a request there is no idle time.
    assert_eq!((free_blocks(&device), device.next_event()), (4, None));
    let mut first = device.clone();
    read(&mut first, 0);
    drain(&mut first);
    assert_eq!(background(&first)[0].start, Time(READ + IDLE));
    // A request just before that time starts it again. At that time, it arrives after the start.
    for (arrival, starts) in [(READ + IDLE - 1, 2 * (READ + IDLE) - 1), (READ + IDLE, READ + IDLE)] {
        let mut device = device.clone();
        read(&mut device, 0);
        read(&mut device, arrival);
        drain(&mut device);
        assert_eq!(background(&device)[0].start, Time(starts), "{arrival}");
    }
}

#[test]
fn it_stops_at_its_number_of_free_blocks() {
    for until in [5, 6] {
        let mut device = machine(72, 4, &format!("until = {until}"), &[]);
        read(&mut device, 0);
        drain(&mut device);
        assert_eq!(free_blocks(&device), until);
        let counters = device.ftl().counters;
        assert_eq!(counters.background.victims, counters.victims);
        assert_eq!(counters.background.units_moved, counters.units_moved());
        let mut sample = Sample::default();
        device.sample(device.now(), &mut sample);
        assert_eq!(sample.collections.ended, [counters.victims], "every collection has ended");
        device.check_invariants().unwrap();
    }
}

#[test]
fn it_takes_no_block_that_frees_too_little() {
    // No unit is invalid.
    let mut device = machine(72, 0, "until = 16", &[]);
    read(&mut device, 0);
    drain(&mut device);
    assert_eq!(device.ftl().counters.background.victims, 0);
    // Every second block of the first writes has 3 of 8 units that are invalid.
    for (gain, victims) in [("0.375", true), ("0.376", false)] {
        for victim in ["greedy", "fifo", "random"] {
            let set = format!("gc.victim={victim}");
            let mut device = machine(72, 3, &format!("until = 6, gain = {gain}"), &[&set]);
            read(&mut device, 0);
            drain(&mut device);
            assert_eq!(device.ftl().counters.background.victims > 0, victims, "{victim}, {gain}");
            device.check_invariants().unwrap();
        }
    }
}

#[test]
fn it_moves_pages_by_copy_back_where_the_device_may() {
    let mut device = machine(72, 4, "until = 6", &["nand.advanced.copy_back=wise"]);
    read(&mut device, 0);
    drain(&mut device);
    let counters = device.ftl().counters;
    assert!(counters.background.units_moved > 0);
    assert_eq!(counters.copy_backs, counters.background.units_moved);
    assert!(background(&device).iter().any(|slice| slice.kind == Kind::CopyBack));
}

/// Interrupts the first victim, after its first page was read, by a read. Returns the device before its next idle time.
fn interrupted(preempt: bool, more: &[&str]) -> Device {
    let mut device = machine(72, 4, &format!("until = 6, preempt = {preempt}"), more);
    read(&mut device, 0);
    read(&mut device, READ + IDLE + 30_000_000);
    device.advance(Time(2 * (READ + IDLE) - 2_000));
    device
}

#[test]
fn a_request_interrupts_it_after_the_page_that_is_being_moved() {
    let device = interrupted(true, &[]);
    let cells: Vec<Slice> = background(&device).into_iter().filter(|slice| slice.phase == Phase::Cell).collect();
    assert_eq!(cells.iter().map(|slice| slice.kind).collect::<Vec<_>>(), [Kind::Read, Kind::Program]);
    let counters = device.ftl().counters;
    assert_eq!((counters.background.victims, counters.background.units_moved, counters.blocks_erased), (1, 1, 0));
    let victims = device.ftl().blocks.all().iter().filter(|block| block.state == BlockState::Victim).count();
    assert_eq!(victims, 1, "the victim stays half-collected");
    // The next idle time continues it.
    let mut later = device.clone();
    drain(&mut later);
    let counters = later.ftl().counters;
    assert_eq!(
        (free_blocks(&later), counters.victims, counters.units_moved()),
        (6, counters.blocks_erased, 4 * counters.victims)
    );
    later.check_invariants().unwrap();
}

#[test]
fn without_preemption_it_finishes_its_victim() {
    let device = interrupted(false, &[]);
    let counters = device.ftl().counters;
    assert_eq!((counters.background.victims, counters.background.units_moved, counters.blocks_erased), (1, 4, 1));
}

#[test]
fn the_soft_threshold_continues_a_victim_of_idle_time() {
    // The host writes without a pause until the plane is at its soft threshold.
    for more in [&[][..], &["gc.pace=proportional"], &["controller.firmware.gc=\"20us\""]] {
        let mut device = interrupted(true, more);
        let at = device.now();
        for unit in 40..40 + 3 * u64::from(PAGES) {
            let write = units(&device, Operation::Write, unit, 1);
            submit(&mut device, at, write);
        }
        while device.outstanding() > 0 {
            let at = device.next_event().expect("requests are outstanding");
            device.advance(at);
        }
        let counters = device.ftl().counters;
        assert_eq!(counters.background.victims, 1, "{more:?}");
        assert_eq!(counters.background.units_moved, 4, "{more:?}");
        assert!(counters.blocks_erased >= 1, "{more:?}");
        drain(&mut device);
        device.check_invariants().unwrap();
    }
}

/// Two planes on channels of their own. Writes go to them in turn.
const POOL: [&str; 2] = ["geometry.channels=2", "allocation=dynamic"];
/// Time of a collection of a block with four valid pages: cells, transfers to and from the controller, and the erase.
const COLLECTION: u64 = 4 * (25_000_000 + 2 * 102_400_000 + 200_000_000) + 1_500_000_000;

/// Returns the ends of the erases of garbage collection in idle time, by plane.
fn ends_of_erases(device: &Device, plane: u32) -> Vec<u64> {
    let erases = background(device).into_iter().filter(|slice| slice.kind == Kind::Erase && slice.plane == plane);
    erases.filter(|slice| slice.phase == Phase::Cell).map(|slice| slice.end.0).collect()
}

#[test]
fn the_planes_of_a_pool_collect_at_the_same_time() {
    // The pool has 8 free blocks, and 29% of 32 blocks are 10. Two victims fill a block with their valid pages, so two
    // planes gain a block each from two victims each.
    let mut device = machine(144, 4, "until = \"29%\"", &[&POOL[..], &["gc.scope=pool"]].concat());
    assert_eq!(device.ftl().blocks.free_together(PLANE), 8);
    read(&mut device, 0);
    drain(&mut device);
    assert_eq!(device.ftl().blocks.free_together(PLANE), 10);
    let start = READ + IDLE;
    for plane in [0, 1] {
        assert_eq!(ends_of_erases(&device, plane), [1, 2].map(|count| start + count * COLLECTION));
    }
    let counters = device.ftl().counters;
    assert_eq!((counters.background.victims, counters.background.units_moved), (4, 16));
    assert_eq!((counters.victims, counters.units_moved()), (4, 16));
    device.check_invariants().unwrap();
}

#[test]
fn pools_stop_at_the_sum_of_the_numbers_of_their_planes() {
    for (set, until, free) in [
        (&["gc.scope=pool"][..], "5", 10),
        (&["gc.scope=pool"], "\"27%\"", 9),
        (&["gc.scope=pool", "gc.destination=pool"], "\"27%\"", 9),
        (&["gc.destination=pool"], "\"27%\"", 10),
    ] {
        let mut device = machine(144, 4, &format!("until = {until}"), &[&POOL[..], set].concat());
        read(&mut device, 0);
        drain(&mut device);
        let planes = [0, 1].map(|plane| device.ftl().blocks.free_blocks(PlaneId(plane), Role::Data));
        assert_eq!(planes.iter().sum::<u32>(), free, "{set:?}, {until}");
        let counters = device.ftl().counters;
        assert_eq!(counters.background.victims, counters.victims, "{set:?}, {until}");
        device.check_invariants().unwrap();
    }
}

#[test]
fn a_request_interrupts_all_planes_of_a_pool() {
    for set in [&["gc.scope=pool"][..], &["gc.scope=pool", "gc.destination=pool"], &["gc.destination=pool"]] {
        for preempt in [true, false] {
            let background = format!("until = 5, preempt = {preempt}");
            let mut device = machine(144, 4, &background, &[&POOL[..], set].concat());
            read(&mut device, 0);
            read(&mut device, READ + IDLE + 30_000_000);
            device.advance(Time(2 * (READ + IDLE) - 2_000));
            let counters = device.ftl().counters;
            let expected = if preempt { (2, 2, 0) } else { (2, 8, 2) };
            let found = (counters.background.victims, counters.background.units_moved, counters.blocks_erased);
            assert_eq!(found, expected, "{set:?}, {preempt}");
            // The host writes without a pause until the pool is at its soft threshold.
            let mut later = device.clone();
            let at = later.now();
            for unit in 40..40 + 6 * u64::from(PAGES) {
                let write = units(&later, Operation::Write, unit, 1);
                submit(&mut later, at, write);
            }
            while later.outstanding() > 0 {
                let at = later.next_event().expect("requests are outstanding");
                later.advance(at);
            }
            let counters = later.ftl().counters;
            assert_eq!((counters.background.victims, counters.background.units_moved), (2, 8), "{set:?}, {preempt}");
            assert!(counters.blocks_erased >= 2, "{set:?}, {preempt}");
            drain(&mut later);
            later.check_invariants().unwrap();
            // The next idle time continues the victims.
            drain(&mut device);
            assert_eq!(device.ftl().counters.victims, device.ftl().counters.blocks_erased, "{set:?}, {preempt}");
            device.check_invariants().unwrap();
        }
    }
}

#[test]
fn a_device_whose_turn_is_over_collects_nothing_in_idle_time() {
    let mut device = machine(72, 4, "until = 6", &[]);
    device.hold_gc(Time::ZERO, true);
    read(&mut device, 0);
    drain(&mut device);
    assert_eq!(device.ftl().counters.victims, 0);
    let now = device.now();
    device.hold_gc(now, false);
    drain(&mut device);
    assert_eq!(free_blocks(&device), 6);
    assert_eq!(background(&device)[0].start, Time(READ + IDLE));
}

#[test]
fn devices_that_never_profit_are_refused() {
    let error = refusal(&["gc.background={ idle = \"1ms\", until = 4 }"]);
    assert!(
        error.contains("gc.background.until = 4: 4 blocks, must be from 5 (gc.soft_threshold + 2) to 64"),
        "{error}"
    );
    let error = refusal(&["gc.background={ idle = \"1ms\", until = 6, gain = 1.5 }"]);
    assert!(error.contains("gc.background.gain = 1.5: must be from 0 to 1"), "{error}");
    let error = refusal(&["gc.background={ idle = \"1ms\", until = 6 }", "mapping.scheme=block", "capacity.spare=0.6"]);
    assert!(error.contains("gc.background") && error.contains("mapping.scheme = block"), "{error}");
}
