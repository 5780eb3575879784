//! Which operation goes first: tiny scripted cases for each scheduler.

mod common;

use common::{build, device_config, drain, fill, submit, units};
use floatgate_core::device::{Device, Options};
use floatgate_core::nand::array::Kind;
use floatgate_core::nand::probe::{Phase, Probe};
use floatgate_core::scheduler::Class;
use floatgate_core::sim::id::PlaneId;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::workload::request::Operation::{Read, Write};
use floatgate_core::workload::request::{Operation, Request};

fn device(overrides: &[&str]) -> Device {
    let mut device = build(device_config(overrides), Options::default());
    let units = device.ftl().map.len();
    fill(&mut device, units);
    device.array_mut().probe = Some(Probe::new(Time::ZERO, Time::NEVER));
    device
}

/// Submits one unit's requests a nanosecond apart; the tags of the operations in the order in which their cells, or
/// with `phase` their transfers, start.
fn order(overrides: &[&str], phase: Phase, script: &[(Operation, u64)]) -> Vec<u64> {
    let mut device = device(overrides);
    for (tag, &(operation, unit)) in script.iter().enumerate() {
        let request = units(&device, operation, unit, 1);
        submit(&mut device, Time::from_ns(tag as u64), Request { tag: tag as u64, ..request });
    }
    assert_eq!(drain(&mut device).len(), script.len());
    let mut started: Vec<(Time, u64)> = device
        .array()
        .probe
        .as_ref()
        .expect("watched")
        .slices()
        .iter()
        .filter(|slice| slice.phase == phase && slice.tag != u64::MAX)
        .map(|slice| (slice.start, slice.tag))
        .collect();
    started.sort();
    started.into_iter().map(|(_, tag)| tag).collect()
}

/// On one die: a write runs, then two more writes and two reads wait.
const ON_ONE_DIE: [(Operation, u64); 5] = [(Write, 0), (Write, 4), (Read, 8), (Write, 12), (Read, 16)];

#[test]
fn fcfs_keeps_the_order_of_arrival() {
    assert_eq!(order(&["scheduler=fcfs"], Phase::Cell, &ON_ONE_DIE), [0, 1, 2, 3, 4]);
}

#[test]
fn read_first_overtakes_waiting_writes_and_nothing_that_runs() {
    assert_eq!(order(&["scheduler=read-first"], Phase::Cell, &ON_ONE_DIE), [0, 2, 4, 1, 3]);
}

/// On one channel with four chips: the data of a write go in, meanwhile two writes and a read line up for it. The read
/// came first to its cells and last to the line.
#[test]
fn read_first_overtakes_at_the_channel_too() {
    let script = [(Write, 0), (Write, 1), (Write, 2), (Read, 3)];
    let chips = "geometry.chips=4";
    let one = "geometry.channels=1";
    assert_eq!(order(&[one, chips, "scheduler=fcfs"], Phase::Data, &script), [0, 1, 2, 3]);
    assert_eq!(order(&[one, chips, "scheduler=read-first"], Phase::Data, &script), [0, 3, 1, 2]);
}

/// The classes of a plane's operations in the order of their starts, while the host writes with ten in flight: from
/// the time when the stock has come down to six blocks, for as long as there are more than three, or for 500 writes.
fn classes(overrides: &[&str]) -> Vec<Class> {
    let mut all = vec!["geometry.channels=1", "geometry.chips=1"];
    all.extend(overrides);
    let mut device = device(&all);
    let length = u64::from(device.ftl().map.len());
    let mut rng = Rng::new(1, "order");
    let stock = |device: &Device| device.ftl().blocks.stock(PlaneId(0));
    let mut write = |device: &mut Device| {
        let request = units(device, Write, rng.below(length), 1);
        let at = device.now();
        submit(device, at, request);
        while device.outstanding() >= 10 {
            let at = device.next_event_time().expect("writes end");
            device.advance_to(at);
        }
    };
    while stock(&device) > 6 {
        write(&mut device);
    }
    device.array_mut().probe = Some(Probe::new(Time::ZERO, Time::NEVER));
    for _ in 0..500 {
        if stock(&device) > 3 {
            write(&mut device);
        }
    }
    let slices = device.array().probe.as_ref().expect("watched").slices();
    slices.iter().filter(|s| s.phase == Phase::Cell && s.kind != Kind::Erase).map(|s| s.class).collect()
}

/// The longest run of operations of cleaning without one of the host between them.
fn longest_run(classes: &[Class]) -> usize {
    let cleaning = |class: &Class| matches!(class, Class::Gc | Class::UrgentGc);
    classes
        .chunk_by(|a, b| cleaning(a) == cleaning(b))
        .filter(|run| cleaning(&run[0]))
        .map(<[Class]>::len)
        .max()
        .unwrap_or(0)
}

#[test]
fn cleaning_contends_above_the_hard_threshold_and_goes_first_below_it() {
    let contending = classes(&["gc.soft_threshold=6", "gc.hard_threshold=0"]);
    assert!(contending.contains(&Class::Gc) && !contending.contains(&Class::UrgentGc));
    assert_eq!(longest_run(&contending), 1, "one copy at a time, each behind the writes that wait");

    let urgent = classes(&["gc.soft_threshold=6", "gc.hard_threshold=6"]);
    assert!(urgent.contains(&Class::UrgentGc) && !urgent.contains(&Class::Gc));
    assert!(longest_run(&urgent) > 20, "a whole victim before the next write: {}", longest_run(&urgent));
}

#[test]
fn a_summary_goes_right_behind_the_last_page_of_its_block() {
    let script: Vec<(Operation, u64)> = (0..70).map(|index| (Write, 4 * index)).collect();
    let mut device = device(&["mapping.block_summary.last_page=528B", "capacity={spare=0.3}"]);
    for &(operation, unit) in &script {
        let request = units(&device, operation, unit, 1);
        submit(&mut device, Time::ZERO, request);
    }
    drain(&mut device);
    let slices = device.array().probe.as_ref().expect("watched").slices();
    let programs: Vec<_> = slices.iter().filter(|s| s.phase == Phase::Cell && s.kind == Kind::Program).collect();
    let summary = programs.iter().position(|s| s.class == Class::Summary).expect("70 pages end a block of 63");
    let (before, after) = (programs[summary - 1], programs[summary]);
    assert_eq!(after.place % 64, 63);
    assert_eq!(before.place + 1, after.place, "the last page of the block's data");
    // 528 bytes at 25 ns go in first.
    assert_eq!(after.start - before.end, Time::from_ns(13_200));
}
