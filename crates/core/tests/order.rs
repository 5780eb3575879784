//! Order of operations, in small scripted cases for each scheduler.

use crate::common::{self, drain, submit};
use floatgate_core::internals::SchedulerConfig;
use floatgate_core::policies::Class;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::timeline::{Kind, Lane, Phase, Probe, Slice};

/// Units below `FILLED` hold data. The scripts write units from `FRESH` on.
const FILLED: u64 = 32;
const FRESH: u64 = 64;

/// Returns a device of four chips: 0 and 2 are on channel 0, 1 and 3 on channel 1. Unit u is on chip u mod 4.
fn machine(scheduler: &str, overrides: &[&str]) -> Device {
    let scheduler = format!("scheduler={scheduler}");
    let base = ["allocation={ static = { order = \"s2\" } }", &scheduler];
    let mut device = common::device(&[&base, overrides].concat());
    common::fill(&mut device, FILLED as u32);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    device
}

/// Plays a script: `r0` reads from chip 0, `w2` writes to chip 2, each another unit. Capital letters are requests with
/// high priority. The tag of a request is its position in the script. All requests arrive within the first microsecond,
/// a nanosecond apart.
fn play(device: &mut Device, script: &str) {
    for (index, word) in script.split_whitespace().enumerate() {
        let index = index as u64;
        let (kind, chip) = word.split_at(1);
        let chip: u64 = chip.parse().expect("a chip");
        let (operation, unit) = match kind {
            "r" | "R" => (Operation::Read, index % 8 * 4 + chip),
            _ => (Operation::Write, FRESH + index * 4 + chip),
        };
        let high_priority = kind == "R" || kind == "W";
        let request = Request { tag: index, high_priority, ..Request::new(Time::ZERO, operation, unit * 8, 8) };
        submit(device, Time::from_ns(index), request);
    }
    drain(device);
}

fn slices(device: &Device) -> &[Slice] {
    device.array().probe().expect("it was switched on").slices()
}

/// Returns the words of the script in the order in which the cells of chip `chip` start.
fn order_in_cells<'a>(device: &Device, script: &'a str, chip: u32) -> Vec<&'a str> {
    // Planes are numbered channel by channel.
    let plane = chip % 2 * 2 + chip / 2;
    words(device, script, |s| s.phase == Phase::Cell && s.lane == Lane::Plane(plane))
}

/// Returns the words of the script in the order of the data transfers on a channel.
fn order_of_data<'a>(device: &Device, script: &'a str, channel: u32) -> Vec<&'a str> {
    words(device, script, |s| s.phase == Phase::Data && s.lane == Lane::Channel(channel))
}

fn words<'a>(device: &Device, script: &'a str, wanted: impl Fn(&Slice) -> bool) -> Vec<&'a str> {
    let words: Vec<&str> = script.split_whitespace().collect();
    let mut found: Vec<&Slice> = slices(device).iter().filter(|s| wanted(s)).collect();
    found.sort_by_key(|s| s.start);
    found.iter().map(|s| words[s.tag as usize]).collect()
}

#[test]
fn a_chip_serves_its_queue_in_the_order_of_the_scheduler() {
    let script = "w0 r0 w0 r0 w0 r0";
    let table = [
        ("fcfs", [0, 1, 2, 3, 4, 5]),
        // The first write runs without interruption. Then reads precede all waiting writes, in their order.
        ("read-first", [0, 1, 3, 5, 2, 4]),
        ("reads-before-writes", [0, 1, 3, 5, 2, 4]),
    ];
    for (scheduler, expected) in table {
        let mut device = machine(scheduler, &[]);
        play(&mut device, script);
        let mut cells: Vec<&Slice> = slices(&device).iter().filter(|s| s.phase == Phase::Cell).collect();
        cells.sort_by_key(|s| s.start);
        assert_eq!(cells.iter().map(|s| s.tag).collect::<Vec<_>>(), expected, "{scheduler}");
    }
}

#[test]
fn requests_with_high_priority_start_first_if_the_scheduler_says_so() {
    let script = "w0 r0 w0 R0 w0 W0 R0";
    let table = [
        ("fcfs", ["w0", "r0", "w0", "R0", "w0", "W0", "R0"]),
        ("read-first", ["w0", "r0", "R0", "R0", "w0", "w0", "W0"]),
        // The first write runs without interruption.
        ("priority-first", ["w0", "R0", "W0", "R0", "r0", "w0", "w0"]),
    ];
    for (scheduler, expected) in table {
        let mut device = machine(scheduler, &[]);
        play(&mut device, script);
        assert_eq!(order_in_cells(&device, script, 0), expected, "{scheduler}");
    }
}

#[test]
fn a_channel_serves_its_queue_in_the_order_of_the_scheduler() {
    // During the data transfer of w0, w2 waits for the channel, and later the data of r4 do.
    let script = "w0 w2 r4";
    let table =
        [("fcfs", ["w0", "w2", "r4"]), ("read-first", ["w0", "r4", "w2"]), ("reads-before-writes", ["w0", "r4", "w2"])];
    for (scheduler, expected) in table {
        // Three chips on one channel: unit u is on chip u mod 6, and even chips are on channel 0.
        let mut device = machine(scheduler, &["geometry.chips=3"]);
        let unit = |index: u64, chip: u64, row: u64| (index, chip + row * 6);
        for ((index, unit), operation) in
            [(unit(0, 0, 20), Operation::Write), (unit(1, 2, 21), Operation::Write), (unit(2, 4, 0), Operation::Read)]
        {
            let request = Request { tag: index, ..Request::new(Time::ZERO, operation, unit * 8, 8) };
            submit(&mut device, Time::from_ns(index), request);
        }
        drain(&mut device);
        assert_eq!(order_of_data(&device, script, 0), expected, "{scheduler}");
    }
}

#[test]
fn a_chip_that_waits_for_its_channel_keeps_its_operation() {
    // w2 waits for the channel during the transfer of w0. A read of its chip that arrives then is the next operation.
    for scheduler in ["fcfs", "read-first"] {
        let script = "w0 w2 r2";
        let mut device = machine(scheduler, &[]);
        play(&mut device, script);
        assert_eq!(order_in_cells(&device, script, 2), ["w2", "r2"], "{scheduler}");
    }
}

#[test]
fn with_reads_before_writes_a_chip_that_waits_for_its_channel_reads_first() {
    // The read is for the first waiting chip, one in the middle, or the last; commands take time on the channel or not.
    // The chip that reads programs after the others.
    for (script, cells) in [
        ("w0 w2 w4 w6 r2", ["w4", "w6", "w2"]),
        ("w0 w2 w4 w6 r4", ["w2", "w6", "w4"]),
        ("w0 w2 w4 w6 r6", ["w2", "w4", "w6"]),
    ] {
        for overrides in [&[][..], &["bus.command_cycles.read=7"]] {
            let chips = 8;
            let mut device = machine("reads-before-writes", &[&["geometry.chips=4"], overrides].concat());
            for (index, word) in script.split_whitespace().enumerate() {
                let (kind, chip) = word.split_at(1);
                let chip: u64 = chip.parse().expect("a chip");
                // Unit u is on chip u mod 8, and even chips are on channel 0.
                let (operation, row) = if kind == "r" { (Operation::Read, 0) } else { (Operation::Write, 20) };
                let lba = (row * chips + chip) * 8;
                let request = Request { tag: index as u64, ..Request::new(Time::ZERO, operation, lba, 8) };
                submit(&mut device, Time::from_ns(index as u64), request);
            }
            drain(&mut device);
            let words: Vec<&str> = script.split_whitespace().collect();
            let mut programs: Vec<&Slice> =
                slices(&device).iter().filter(|s| s.phase == Phase::Cell && s.kind == Kind::Program).collect();
            programs.sort_by_key(|s| s.start);
            let order: Vec<&str> = programs.iter().map(|s| words[s.tag as usize]).collect();
            assert_eq!(order, [&["w0"][..], &cells].concat(), "{script}, {overrides:?}");
            let read = slices(&device).iter().find(|s| s.phase == Phase::Cell && s.tag == 4).expect("it was read");
            let begins = if overrides.is_empty() { Time::from_ns(4) } else { Time(102_575_000) };
            assert_eq!(read.start, begins, "{script}, {overrides:?}");
            device.check_invariants().unwrap();
        }
    }
}

#[test]
fn with_reads_before_writes_the_read_of_a_partial_write_precedes_writes() {
    // While the chip programs, two writes arrive for it, and then a partial write of a unit in flash.
    let table = [("fcfs", 3), ("read-first", 3), ("reads-before-writes", 1)];
    for (scheduler, expected) in table {
        let mut device = machine(scheduler, &["geometry.channels=1", "geometry.chips=1"]);
        for (index, lba) in [(0, 100 * 8), (1, 101 * 8), (2, 102 * 8), (3, 4)] {
            let request = Request { tag: index, ..Request::new(Time::ZERO, Operation::Write, lba, 4) };
            submit(&mut device, Time::from_ns(index), request);
        }
        drain(&mut device);
        let mut cells: Vec<&Slice> = slices(&device).iter().filter(|s| s.phase == Phase::Cell).collect();
        cells.sort_by_key(|s| s.start);
        let read = cells.iter().position(|s| s.kind == Kind::Read);
        assert_eq!(read, Some(expected), "{scheduler}");
    }
}

#[test]
fn reads_before_writes_ranks_all_classes() {
    let device = common::device_config(&["scheduler=reads-before-writes"]);
    let scheduler = device.scheduler.build(&device, 1, &Default::default()).expect("valid");
    let of = |rank| Class::ALL.into_iter().filter(|&class| scheduler.rank(class) == rank).collect::<Vec<_>>();
    assert_eq!(of(0), [Class::UrgentGc, Class::Summary]);
    assert_eq!(of(1), [Class::HostRead, Class::RmwRead, Class::MapRead, Class::ReadAhead]);
    assert_eq!(of(2), [Class::HostProgram, Class::MapProgram]);
    assert_eq!(of(3), [Class::Gc, Class::BackgroundGc]);
    // No operation of the host starts between the steps of urgent garbage collection.
    assert_eq!(host_operations_between(&gc("reads-before-writes", 3, true), Class::UrgentGc), 0);
}

#[test]
fn chips_do_not_wait_for_each_other() {
    for scheduler in SchedulerConfig::NAMES {
        let script = "w0 w0 r1 r3 w1";
        let mut device = machine(scheduler, &[]);
        play(&mut device, script);
        assert_eq!(order_in_cells(&device, script, 0), ["w0", "w0"], "{scheduler}");
        assert_eq!(order_in_cells(&device, script, 1), ["r1", "w1"], "{scheduler}");
        assert_eq!(order_in_cells(&device, script, 3), ["r3"], "{scheduler}");
    }
}

/// Returns a device of one nearly full chip after many host writes, which need garbage collection.
fn gc(scheduler: &str, hard: u32, reads: bool) -> Device {
    let mut device = machine(
        scheduler,
        &[
            "geometry.channels=1",
            "geometry.chips=1",
            "geometry.blocks=10",
            "geometry.pages=8",
            "capacity.logical=128KiB",
            "gc.soft_threshold=3",
            &format!("gc.hard_threshold={hard}"),
        ],
    );
    // Even units are overwritten with 16 writes outstanding, so victims hold the odd units. With `reads`, odd units are
    // read at intervals.
    let mut events = 0;
    for index in 0..2000u64 {
        let now = device.now();
        device.submit(now, Request::new(now, Operation::Write, index * 2 % 32 * 8, 8));
        while device.outstanding() >= 16 {
            let at = device.next_event().expect("16 requests are outstanding");
            device.advance(at);
            events += 1;
            if reads && events % 6 == 0 {
                device.submit(at, Request::new(at, Operation::Read, (index * 2 + 1) % 32 * 8, 8));
            }
        }
    }
    drain(&mut device);
    device
}

/// Returns the largest number of host operations that start between two steps of garbage collection of a victim.
fn host_operations_between(device: &Device, class: Class) -> usize {
    let mut cells: Vec<&Slice> = slices(device).iter().filter(|s| s.phase == Phase::Cell).collect();
    cells.sort_by_key(|s| s.start);
    let (mut most, mut run, mut gc) = (0, 0, false);
    for slice in cells {
        if slice.class == class {
            if gc {
                most = most.max(run);
            }
            // An erase is the last step of a victim.
            (run, gc) = (0, slice.kind != Kind::Erase);
        } else {
            run += 1;
        }
    }
    most
}

#[test]
fn urgent_garbage_collection_precedes_waiting_operations() {
    // At or below the hard threshold, no host operation starts between the steps of garbage collection. Above it, each
    // step waits for the 16 queued writes.
    let urgent = gc("fcfs", 3, false);
    assert_eq!(host_operations_between(&urgent, Class::UrgentGc), 0);
    assert!(
        slices(&urgent).iter().all(|s| s.class != Class::Gc),
        "with equal thresholds, all garbage collection is urgent"
    );
    let patient = gc("fcfs", 0, false);
    assert!(host_operations_between(&patient, Class::Gc) >= 8);
}

#[test]
fn with_read_first_reads_precede_urgent_garbage_collection() {
    let device = gc("read-first", 3, true);
    let mut cells: Vec<&Slice> = slices(&device).iter().filter(|s| s.phase == Phase::Cell).collect();
    cells.sort_by_key(|s| s.start);
    let between = |class: Class| {
        cells.windows(3).any(|w| w[0].class == Class::UrgentGc && w[1].class == class && w[2].class == Class::UrgentGc)
    };
    assert!(between(Class::HostRead), "no read started between two steps of garbage collection");
    // A write starts at most after the erase of a victim.
    let moving = |s: &Slice| s.class == Class::UrgentGc && s.kind != Kind::Erase;
    assert!(cells.windows(3).all(|w| !(moving(w[0]) && w[1].class == Class::HostProgram && moving(w[2]))));
}

#[test]
fn a_summary_precedes_waiting_writes() {
    for scheduler in SchedulerConfig::NAMES {
        let summary = "mapping.block_summary={ last_page = \"528B\" }";
        let mut device = machine(scheduler, &["geometry.pages=4", summary, "capacity.spare=0.4"]);
        // A block has three data pages, and 8 pages were filled. The ninth completes the third block, while writes
        // wait.
        play(&mut device, "w0 w0 w0 w0");
        let mut programs: Vec<&Slice> =
            slices(&device).iter().filter(|s| s.phase == Phase::Cell && s.kind == Kind::Program).collect();
        programs.sort_by_key(|s| s.start);
        let classes: Vec<Class> = programs.iter().map(|s| s.class).collect();
        let host = Class::HostProgram;
        assert_eq!(classes, [host, Class::Summary, host, host, host, Class::Summary], "{scheduler}");
    }
}
