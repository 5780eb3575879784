//! Gate by gate: when may the second of two operations start? Each gate is tried a picosecond early, when it must be
//! closed, and on time, when it must be open. Expected times are worked out by hand, in nanoseconds, for the device of
//! `common`: tR 25 us, tPROG 200 us, 4096 B at 25 ns = 102.4 us on the channel, no command cycles unless given.

mod common;

use common::{build, device_config, drain, fill, submit, units};
use floatgate_core::device::{Device, Options};
use floatgate_core::nand::array::Kind;
use floatgate_core::nand::probe::{Lane, Phase, Probe, Slice};
use floatgate_core::sim::time::Time;
use floatgate_core::workload::request::Operation::{Read, Write};
use floatgate_core::workload::request::{Operation, Request};

/// A filled, watched device.
fn device(overrides: &[&str]) -> Device {
    let mut device = build(device_config(overrides), Options::default());
    let units = device.ftl().map.len();
    fill(&mut device, units);
    device.array_mut().probe = Some(Probe::new(Time::ZERO, Time::NEVER));
    device
}

/// Submits one unit's requests at the given picoseconds, lets all end, and returns the phases of each, in order.
fn phases(overrides: &[&str], script: &[(u64, Operation, u64)]) -> Vec<Vec<Slice>> {
    let mut device = device(overrides);
    for (tag, &(at, operation, unit)) in script.iter().enumerate() {
        let request = units(&device, operation, unit, 1);
        submit(&mut device, Time(at), Request { tag: tag as u64, ..request });
    }
    assert_eq!(drain(&mut device).len(), script.len());
    let slices = device.array().probe.as_ref().expect("watched").slices();
    (0..script.len() as u64).map(|tag| slices.iter().filter(|slice| slice.tag == tag).copied().collect()).collect()
}

/// The start of the first phase.
fn start(phases: &[Slice]) -> u64 {
    phases.iter().map(|slice| slice.start.0).min().expect("an operation has phases")
}

/// The start of a phase of this kind.
fn start_of(phases: &[Slice], phase: Phase) -> u64 {
    phases.iter().find(|slice| slice.phase == phase).expect("the operation has this phase").start.0
}

/// The second operation may start `ns` nanoseconds after the first, and not a picosecond before.
#[track_caller]
fn gate(overrides: &[&str], first: (Operation, u64), second: (Operation, u64), ns: f64) {
    let open = (ns * 1e3) as u64;
    for asked in [open.saturating_sub(1), open, open + 1] {
        let script = [(0, first.0, first.1), (asked, second.0, second.1)];
        let begun = start(&phases(overrides, &script)[1]);
        assert_eq!(begun, asked.max(open), "{overrides:?}: {first:?}, then {second:?} at {asked} ps");
    }
}

// Units and places: static allocation by S2, so with the base geometry of 2 channels and 2 chips unit 0 is on channel
// 0, chip 0; unit 1 on channel 1; unit 2 on channel 0, chip 1; unit 4 on channel 0, chip 0 again.

#[test]
fn a_die_takes_one_operation_at_a_time() {
    gate(&[], (Read, 0), (Read, 4), 127_400.0);
    gate(&[], (Read, 0), (Write, 4), 127_400.0);
    gate(&[], (Write, 0), (Write, 4), 302_400.0);
    gate(&[], (Write, 0), (Read, 4), 302_400.0);
}

#[test]
fn another_channel_is_free_at_once() {
    for (first, second) in [(Read, Read), (Read, Write), (Write, Read), (Write, Write)] {
        gate(&[], (first, 0), (second, 1), 0.0);
    }
}

#[test]
fn a_channel_carries_one_transfer_at_a_time() {
    gate(&[], (Write, 0), (Write, 2), 102_400.0);
    // The data of the read go out from 25 us on; a write that comes meanwhile waits for them.
    gate(&[], (Read, 0), (Write, 2), 127_400.0);
    // Cells work side by side; without command cycles a read needs the channel for its data only.
    let both = phases(&[], &[(0, Read, 0), (0, Read, 2)]);
    assert_eq!(start(&both[1]), 0);
    assert_eq!(start_of(&both[0], Phase::Data), 25_000_000);
    assert_eq!(start_of(&both[1], Phase::Data), 127_400_000);
    // A read that is ready while a write's data go in waits for them, and holds its die meanwhile.
    let both = phases(&[], &[(0, Write, 0), (0, Read, 2), (1, Read, 6)]);
    assert_eq!(start_of(&both[1], Phase::Data), 102_400_000);
    assert_eq!(start(&both[2]), 204_800_000);
}

#[test]
fn concurrency_says_what_is_busy() {
    // With 2 dies of 2 planes, S2: unit 4 is on die 1 of the chip of unit 0, unit 8 on plane 1 of its die; unit 2 is on
    // the other chip of the channel.
    let busy = |concurrency: &str, other: u64| {
        let text = format!("nand.concurrency=\"{concurrency}\"");
        let two = if concurrency == "chip" { "geometry.chips_per_package=2" } else { "geometry.chips_per_package=1" };
        let all = ["geometry.dies=2", "geometry.planes=2", &text, two];
        start(&phases(&all, &[(0, Read, 0), (1, Read, other)])[1])
    };
    let (at_once, after) = (1, 127_400_000);
    assert_eq!([2, 4, 8].map(|other| busy("chip", other)), [after, after, after]);
    assert_eq!([2, 4, 8].map(|other| busy("command", other)), [at_once, after, after]);
    assert_eq!([2, 4, 8].map(|other| busy("die", other)), [at_once, at_once, after]);
    assert_eq!([2, 4, 8].map(|other| busy("plane", other)), [at_once, at_once, at_once]);
}

#[test]
fn commands_take_their_cycles() {
    let cycles = ["bus.command_cycles={read=7,program=7,erase=5}"];
    gate(&cycles, (Read, 0), (Read, 2), 175.0);
    gate(&cycles, (Read, 0), (Read, 4), 127_575.0);
    gate(&cycles, (Write, 0), (Write, 2), 102_575.0);
    gate(&cycles, (Write, 0), (Read, 4), 302_575.0);
    let slow = ["bus.command_cycles={read=7,program=7,erase=5}", "bus.command_cycle=100ns"];
    gate(&slow, (Read, 0), (Read, 2), 700.0);
    let one = phases(&cycles, &[(0, Read, 0)]);
    assert_eq!(start_of(&one[0], Phase::Cell), 175_000);
    assert_eq!(start_of(&one[0], Phase::Data), 25_175_000);
}

#[test]
fn transfers_take_as_long_as_the_bus_says() {
    let transfer = |overrides: &[&str]| {
        let one = phases(overrides, &[(0, Write, 0)]);
        let data = one[0].iter().find(|slice| slice.phase == Phase::Data).expect("data go in");
        (data.end - data.start).0
    };
    assert_eq!(transfer(&[]), 102_400_000);
    assert_eq!(transfer(&["bus.width=16"]), 51_200_000);
    assert_eq!(transfer(&["bus.protocol.nv-ddr=800MT/s"]), 5_120_000);
    // 4096 / 333e6 s = 12.3003003... us, rounded up to the picosecond once.
    assert_eq!(transfer(&["bus.protocol.nv-ddr=333MT/s"]), 12_300_301);
    assert_eq!(transfer(&["geometry.spare_size=128B", "bus.transfer_spare=true"]), 105_600_000);
    assert_eq!(transfer(&["geometry.spare_size=128B"]), 102_400_000);
}

#[test]
fn reads_move_the_units_that_are_asked_for() {
    let page_of_four = ["geometry.page_size=16KiB", "geometry.spare_size=512B", "bus.transfer_spare=true"];
    let one = phases(&page_of_four, &[(0, Read, 0)]);
    let data = one[0].iter().find(|slice| slice.phase == Phase::Data).expect("data go out");
    assert_eq!(data.end - data.start, Time((4096 + 128) * 25_000));
    let mut device = device(&page_of_four);
    let request = units(&device, Read, 0, 3);
    submit(&mut device, Time::ZERO, request);
    assert_eq!(
        drain(&mut device)[0].finish,
        Time(25_000_000 + 3 * 4224 * 25_000),
        "one read of the page for three units"
    );
    assert_eq!(device.ftl().counters.read_commands, 1);
}

#[test]
fn page_types_have_their_times() {
    let types =
        ["nand.cell=tlc", "nand.read=[\"10us\",\"20us\",\"30us\"]", "nand.program=[\"100us\",\"200us\",\"300us\"]"];
    let mut device = device(&types);
    let cells = |device: &Device, kind: Kind| -> Vec<u64> {
        let slices = device.array().probe.as_ref().expect("watched").slices();
        let of = slices.iter().filter(|s| s.phase == Phase::Cell && s.kind == kind);
        of.map(|s| (s.end - s.start).0 / 1_000_000).collect()
    };
    // The planes were filled in order: units 0, 4, 8, 12 are pages 0, 1, 2, 3 of the first block of their plane.
    for unit in [0, 4, 8, 12] {
        let request = units(&device, Read, unit, 1);
        let at = device.now();
        submit(&mut device, at, request);
        drain(&mut device);
    }
    assert_eq!(cells(&device, Kind::Read), [10, 20, 30, 10]);
    // The fill ended in the middle of a block; what is programmed next goes on from there.
    let next = device.ftl().blocks.room(floatgate_core::sim::id::PlaneId(0), floatgate_core::ftl::blocks::Stream::Host);
    let page = (device.ftl().blocks.data_units() - next) as usize;
    for _ in 0..3 {
        let request = units(&device, Write, 0, 1);
        let at = device.now();
        submit(&mut device, at, request);
        drain(&mut device);
    }
    let expected: Vec<u64> = (page..page + 3).map(|page| [100, 200, 300][page % 64 % 3]).collect();
    assert_eq!(cells(&device, Kind::Program)[..3], expected);
}

#[test]
fn turning_costs_time_on_the_channel() {
    let way = ["bus.way_switch=1us"];
    assert_eq!(start_of(&phases(&way, &[(0, Write, 0), (0, Write, 2)])[1], Phase::Data), 103_400_000);
    assert_eq!(start_of(&phases(&way, &[(0, Write, 0), (0, Write, 4)])[1], Phase::Data), 302_400_000, "the same chip");

    let data_in = |scope: &str| {
        let all = ["geometry.channels=4", "bus.channel_switch=2us", &format!("bus.channel_switch_scope={scope}")];
        let four = phases(&all, &[(0, Write, 0), (0, Write, 1), (0, Write, 2), (0, Write, 3)]);
        [0, 1, 2, 3].map(|index: usize| start_of(&four[index], Phase::Data))
    };
    assert_eq!(data_in("channel"), [0, 2_000_000, 2_000_000, 2_000_000]);
    assert_eq!(data_in("controller"), [0, 2_000_000, 4_000_000, 6_000_000], "one switch at a time");
}

#[test]
fn an_erase_holds_its_die() {
    let mut device =
        device(&["geometry.channels=1", "geometry.chips=1", "bus.command_cycles={read=0,program=0,erase=5}"]);
    let erase = loop {
        let (request, at) = (units(&device, Write, 0, 1), device.now());
        submit(&mut device, at, request);
        while device.outstanding() > 0 {
            device.advance_to(device.next_event_time().expect("a write ends"));
        }
        let slices = device.array().probe.as_ref().expect("watched").slices();
        if let Some(erase) =
            slices.iter().find(|s| s.kind == Kind::Erase && s.phase == Phase::Cell && s.end > device.now())
        {
            break *erase;
        }
    };
    assert_eq!(erase.end - erase.start, Time::from_us(1_500));
    let slices = device.array().probe.as_ref().expect("watched").slices();
    let command = slices.iter().find(|s| s.kind == Kind::Erase && s.lane == Lane::Channel(0) && s.end == erase.start);
    assert_eq!(command.map(|c| (c.end - c.start).0), Some(125_000), "five cycles before it");
    let (request, at) = (units(&device, Read, 9, 1), device.now());
    submit(&mut device, at, Request { tag: 77, ..request });
    drain(&mut device);
    let slices = device.array().probe.as_ref().expect("watched").slices();
    let read = slices.iter().find(|s| s.tag == 77 && s.phase == Phase::Cell).expect("the read ran");
    assert_eq!(read.start, erase.end);
}

#[test]
fn queue_and_slots_hold_requests_back() {
    // Unit 1 is on the other channel: only the queue, or the slots, can hold it back.
    gate(&["host.queue_depth=1"], (Write, 0), (Read, 1), 302_400.0);
    gate(&["host.queue_depth=2"], (Write, 0), (Read, 1), 0.0);
    gate(&["controller.slots=1"], (Write, 0), (Write, 1), 302_400.0);
    gate(&["controller.slots=2"], (Write, 0), (Write, 1), 0.0);
    gate(&["controller.slots=1"], (Write, 0), (Read, 1), 0.0);
}

#[test]
fn the_link_takes_its_time_each_way() {
    let link = ["host.link_bandwidth=1GB/s", "host.link_latency=5us"];
    let script = phases(&link, &[(0, Write, 0), (0, Write, 1), (0, Read, 2)]);
    assert_eq!(start(&script[0]), 9_096_000, "4096 B at 1 GB/s, and 5 us");
    assert_eq!(start(&script[1]), 13_192_000, "its data cross behind the first");
    assert_eq!(start(&script[2]), 13_192_000, "a command crosses behind them, without data");

    let finish = |operation| {
        let mut device = device(&link);
        let request = units(&device, operation, 0, 1);
        submit(&mut device, Time::ZERO, request);
        drain(&mut device)[0].finish.0
    };
    assert_eq!(finish(Write), 9_096_000 + 302_400_000 + 5_000_000);
    assert_eq!(finish(Read), 5_000_000 + 127_400_000 + 4_096_000 + 5_000_000);
}

#[test]
fn a_partial_write_reads_first() {
    let mut device = device(&[]);
    let before = device.ftl().counters;
    submit(&mut device, Time::ZERO, Request::new(Time::ZERO, Write, 1, 2));
    assert_eq!(drain(&mut device)[0].finish, Time(127_400_000 + 302_400_000));
    let counters = device.ftl().counters.since(&before);
    assert_eq!((counters.updates_uncovered, counters.pages_read[2], counters.pages_programmed[0]), (1, 1, 1));
}

#[test]
fn what_is_on_its_way_is_answered_by_the_controller() {
    let mut device = device(&[]);
    for (at, operation) in [(0, Write), (10_000_000, Read)] {
        let request = units(&device, operation, 0, 1);
        submit(&mut device, Time(at), request);
    }
    let completions = drain(&mut device);
    assert_eq!(completions[0].finish, Time(10_000_000), "the read, at once");
    assert_eq!(completions[1].finish, Time(302_400_000));
    assert_eq!(device.ftl().counters.slot_reads, 1);
}

#[test]
fn writes_of_one_unit_follow_each_other() {
    let two = phases(&["allocation.dynamic.order=s2"], &[(0, Write, 0), (0, Write, 0)]);
    assert_eq!(start(&two[1]), 302_400_000, "although other dies are idle");
}
