//! Gates: the exact picosecond at which an operation may start after another, tested just before, at and after it.
//!
//! Times are computed by hand from those of the device: page read 25 us, program 200 us, erase 1500 us. A page of 4096
//! B takes 102.4 us on the channel at 25 ns per byte. Command cycles take no time, except if a test sets them.

use crate::common::{self, drain, submit};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::timeline::{Kind, Lane, Phase, Probe, Slice};

/// Channel, chip, die and plane.
type Place = [u32; 4];

/// The first plane, and planes that differ from it in one level.
const HERE: Place = [0, 0, 0, 0];
const OTHER_PLANE: Place = [0, 0, 0, 1];
const OTHER_DIE: Place = [0, 0, 1, 0];
const OTHER_CHIP: Place = [0, 1, 0, 0];
const OTHER_CHANNEL: Place = [1, 0, 0, 0];

/// Rows of units that hold data. A row has one page in each plane.
const FILLED: u64 = 8;

/// Returns a device with two of every level and four channels. Units go to the planes in the order channel, chip, die,
/// plane.
fn machine(overrides: &[&str]) -> Device {
    let base =
        ["geometry.channels=4", "geometry.dies=2", "geometry.planes=2", "allocation={ static = { order = \"s2\" } }"];
    let mut device = common::device(&[&base, overrides].concat());
    let rows = FILLED * u64::from(device.config().total_planes() * device.config().units_per_page());
    common::fill(&mut device, rows as u32);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    device
}

/// Returns a request for one unit in row `row` of a plane. The tag is made of the operation and the row.
fn request(device: &Device, operation: Operation, [channel, chip, die, plane]: Place, row: u64) -> Request {
    let config = device.config();
    let g = &config.geometry;
    let position = ((plane * g.dies + die) * g.chips + chip) * g.channels + channel;
    let page = row * u64::from(config.total_planes()) + u64::from(position);
    let sectors = config.sectors_per_unit();
    let lba = page * u64::from(config.units_per_page()) * u64::from(sectors);
    let tag = operation.index() as u64 * 100 + row;
    Request { tag, ..Request::new(Time::ZERO, operation, lba, sectors) }
}

/// Returns a read of a row. Writes use other rows, so that no two requests access the same unit.
fn read(device: &Device, place: Place, row: u64) -> Request {
    request(device, Operation::Read, place, row)
}

fn write(device: &Device, place: Place, row: u64) -> Request {
    request(device, Operation::Write, place, FILLED / 2 + row)
}

/// Returns the phases of requests that are submitted at the given times.
fn play(device: &Device, script: &[(u64, Request)]) -> Vec<Slice> {
    let mut device = device.clone();
    script.iter().for_each(|&(at, request)| submit(&mut device, Time(at), request));
    drain(&mut device);
    device.array().probe().expect("it was switched on").slices().to_vec()
}

/// Returns the start and the end of a phase of a request in picoseconds.
fn phase_of(slices: &[Slice], request: &Request, phase: Phase) -> (u64, u64) {
    let slice = slices.iter().find(|s| s.tag == request.tag && s.phase == phase);
    let slice = slice.unwrap_or_else(|| panic!("{request:?} has no phase {phase:?}"));
    (slice.start.0, slice.end.0)
}

/// Asserts that after `first`, which is submitted at 0, the `phase` of `second` starts at `gate` at the earliest.
/// `lead` is the time from the submission to that phase without any wait.
#[track_caller]
fn assert_gate(device: &Device, first: Request, (second, phase, lead): (Request, Phase, u64), gate: u64) {
    for earliest in [gate.saturating_sub(1).max(lead), gate.max(lead), gate.max(lead) + 1] {
        let slices = play(device, &[(0, first), (earliest - lead, second)]);
        let (start, _) = phase_of(&slices, &second, phase);
        assert_eq!(start, earliest.max(gate), "the {phase:?} that could start at {earliest} otherwise");
    }
}

const US: u64 = 1_000_000;
const READ: u64 = 25 * US;
const PROGRAM: u64 = 200 * US;
const ERASE: u64 = 1500 * US;
const DATA: u64 = 102_400_000;

/// The first phase of a read is the cell time, that of a write the data transfer.
fn cells(request: Request) -> (Request, Phase, u64) {
    (request, Phase::Cell, 0)
}

fn data_in(request: Request) -> (Request, Phase, u64) {
    (request, Phase::Data, 0)
}

fn data_out(request: Request) -> (Request, Phase, u64) {
    (request, Phase::Data, READ)
}

#[test]
fn a_read_waits_for_a_read_of_its_die_and_for_the_channel() {
    let d = machine(&[]);
    let first = read(&d, HERE, 0);
    // A die is occupied until its data were transferred, and so is its other plane.
    assert_gate(&d, first, cells(read(&d, HERE, 1)), READ + DATA);
    assert_gate(&d, first, cells(read(&d, OTHER_PLANE, 1)), READ + DATA);
    // Other dies read at the same time, and their data wait for the channel.
    for place in [OTHER_DIE, OTHER_CHIP] {
        assert_gate(&d, first, cells(read(&d, place, 1)), 0);
        assert_gate(&d, first, data_out(read(&d, place, 1)), READ + DATA);
    }
    assert_gate(&d, first, data_out(read(&d, OTHER_CHANNEL, 1)), 0);
}

#[test]
fn a_program_waits_for_a_program_of_its_die_and_for_the_channel() {
    let d = machine(&[]);
    let first = write(&d, HERE, 0);
    assert_gate(&d, first, data_in(write(&d, HERE, 1)), DATA + PROGRAM);
    assert_gate(&d, first, data_in(write(&d, OTHER_PLANE, 1)), DATA + PROGRAM);
    assert_gate(&d, first, data_in(write(&d, OTHER_DIE, 1)), DATA);
    assert_gate(&d, first, data_in(write(&d, OTHER_CHIP, 1)), DATA);
    assert_gate(&d, first, data_in(write(&d, OTHER_CHANNEL, 1)), 0);
}

#[test]
fn a_read_waits_for_a_program_of_its_die_and_for_the_channel() {
    let d = machine(&[]);
    let first = write(&d, HERE, 0);
    assert_gate(&d, first, cells(read(&d, HERE, 0)), DATA + PROGRAM);
    assert_gate(&d, first, cells(read(&d, OTHER_DIE, 0)), 0);
    assert_gate(&d, first, data_out(read(&d, OTHER_DIE, 0)), DATA);
    assert_gate(&d, first, data_out(read(&d, OTHER_CHANNEL, 0)), 0);
}

#[test]
fn a_program_waits_for_a_read_of_its_die_and_for_the_channel() {
    let d = machine(&[]);
    let first = read(&d, HERE, 0);
    assert_gate(&d, first, data_in(write(&d, HERE, 0)), READ + DATA);
    // The channel is free while the cells read. A program that arrives before their end uses it.
    let program = write(&d, OTHER_DIE, 0);
    for (at, program_start, read_start) in
        [(0, 0, DATA), (READ - 1, READ - 1, READ - 1 + DATA), (READ, READ + DATA, READ)]
    {
        let slices = play(&d, &[(0, first), (at, program)]);
        assert_eq!(phase_of(&slices, &program, Phase::Data).0, program_start, "the program that arrives at {at}");
        assert_eq!(
            phase_of(&slices, &first, Phase::Data).0,
            read_start,
            "the data of the read, with the program at {at}"
        );
    }
}

#[test]
fn phases_take_the_configured_times() {
    let d = machine(&[]);
    let (r, w) = (read(&d, HERE, 0), write(&d, OTHER_CHANNEL, 0));
    let slices = play(&d, &[(0, r), (7, w)]);
    assert_eq!(phase_of(&slices, &r, Phase::Cell), (0, READ));
    assert_eq!(phase_of(&slices, &r, Phase::Data), (READ, READ + DATA));
    assert_eq!(phase_of(&slices, &w, Phase::Data), (7, 7 + DATA));
    assert_eq!(phase_of(&slices, &w, Phase::Cell), (7 + DATA, 7 + DATA + PROGRAM));
    let lanes: Vec<Lane> = slices.iter().filter(|s| s.tag == r.tag).map(|s| s.lane).collect();
    assert_eq!(lanes, [Lane::Plane(0), Lane::Channel(0)]);
}

/// Checks when reads of other planes may start, for each value of `nand.concurrency`.
#[test]
fn the_concurrency_option_decides_which_planes_work_at_the_same_time() {
    let held = READ + DATA;
    let table = [
        // Same plane, other plane, other die, other chip of the package, other package.
        ("plane", 1, [held, 0, 0, 0]),
        ("die", 1, [held, held, 0, 0]),
        ("command", 1, [held, held, held, 0]),
        ("chip", 1, [held, held, held, 0]),
        ("command", 2, [held, held, held, 0]),
        ("chip", 2, [held, held, held, held]),
    ];
    for (concurrency, chips_per_package, gates) in table {
        let package = format!("geometry.chips_per_package={chips_per_package}");
        let d = machine(&[&format!("nand.concurrency={concurrency}"), &package]);
        for (place, gate) in [HERE, OTHER_PLANE, OTHER_DIE, OTHER_CHIP].into_iter().zip(gates) {
            assert_gate(&d, read(&d, HERE, 0), cells(read(&d, place, 1)), gate);
        }
        assert_gate(&d, read(&d, HERE, 0), cells(read(&d, OTHER_CHANNEL, 1)), 0);
    }
}

#[test]
fn a_package_is_occupied_as_a_whole() {
    // Four chips in two packages: the chips of the other package are free.
    let d = machine(&["geometry.chips=4", "geometry.chips_per_package=2", "nand.concurrency=chip"]);
    let first = read(&d, HERE, 0);
    assert_gate(&d, first, cells(read(&d, [0, 1, 1, 1], 1)), READ + DATA);
    assert_gate(&d, first, cells(read(&d, [0, 2, 0, 0], 1)), 0);
}

#[test]
fn commands_take_their_cycles_on_the_channel() {
    // 7 cycles of 25 ns, like data cycles, or of 40 ns.
    for (cycle, command) in [(None, 175_000), (Some("bus.command_cycle=40ns"), 280_000)] {
        let mut overrides = vec!["bus.command_cycles={ read = 7, program = 7, erase = 5 }"];
        overrides.extend(cycle);
        let d = machine(&overrides);
        let (r, w) = (read(&d, HERE, 0), write(&d, HERE, 0));
        let slices = play(&d, &[(0, r)]);
        assert_eq!(phase_of(&slices, &r, Phase::Command), (0, command));
        assert_eq!(phase_of(&slices, &r, Phase::Cell), (command, command + READ));
        assert_eq!(phase_of(&slices, &r, Phase::Data), (command + READ, command + READ + DATA));
        let slices = play(&d, &[(0, w)]);
        assert_eq!(phase_of(&slices, &w, Phase::Command), (0, command));
        assert_eq!(phase_of(&slices, &w, Phase::Data), (command, command + DATA));
        assert_eq!(phase_of(&slices, &w, Phase::Cell).1, command + DATA + PROGRAM);
        // The next command waits for the channel, then for the die.
        assert_gate(&d, r, (read(&d, OTHER_DIE, 1), Phase::Command, 0), command);
        assert_gate(&d, w, (read(&d, OTHER_DIE, 1), Phase::Command, 0), command + DATA);
        assert_gate(&d, r, (read(&d, HERE, 1), Phase::Command, 0), command + READ + DATA);
    }
}

#[test]
fn data_take_their_cycles_on_the_channel() {
    let spare = ["geometry.spare_size=128B", "bus.transfer_spare=true"];
    let table: [(&[&str], u64); 9] = [
        (&["bus.protocol={ sdr = \"25ns\" }"], 102_400_000),
        (&["bus.protocol={ sdr = \"25ns\" }", "bus.width=16"], 51_200_000),
        (&["bus.protocol={ nv-ddr = \"400MT/s\" }"], 10_240_000),
        // 4096 / 667 us = 6 140 929.5 ps, rounded up once.
        (&["bus.protocol={ nv-ddr = \"667MT/s\" }"], 6_140_930),
        // 2048 transfers of two bytes: 3 070 464.8 ps.
        (&["bus.protocol={ nv-ddr = \"667MT/s\" }", "bus.width=16"], 3_070_465),
        (&["geometry.spare_size=128B"], 102_400_000),
        (&spare, 105_600_000),
        // A quarter of a page with its share of the spare bytes: 1024 + 32 bytes.
        (&[spare[0], spare[1], "geometry.mapping_unit=1KiB"], 26_400_000),
        (&["geometry.mapping_unit=512B"], 12_800_000),
    ];
    for (overrides, expected) in table {
        let d = machine(overrides);
        let r = read(&d, HERE, 0);
        let (start, end) = phase_of(&play(&d, &[(0, r)]), &r, Phase::Data);
        assert_eq!((start, end - start), (READ, expected), "{overrides:?}");
    }
}

#[test]
fn a_wordline_takes_the_data_of_all_its_pages() {
    let d = machine(&["geometry.pages=63", "geometry.pages_per_program=3"]);
    let w = write(&d, HERE, 0);
    let slices = play(&d, &[(0, w)]);
    assert_eq!(phase_of(&slices, &w, Phase::Data), (0, 3 * DATA));
    assert_eq!(phase_of(&slices, &w, Phase::Cell), (3 * DATA, 3 * DATA + PROGRAM));
}

#[test]
fn a_unit_over_two_pages_takes_a_command_for_each() {
    let d = machine(&["geometry.page_size=2KiB", "geometry.mapping_unit=4KiB"]);
    let (r, w) = (read(&d, HERE, 0), write(&d, HERE, 0));
    let page = DATA / 2;
    let spans = |request: Request, phase| -> Vec<(u64, u64)> {
        let slices = play(&d, &[(0, request)]);
        slices.iter().filter(|s| s.phase == phase).map(|s| (s.start.0, s.end.0)).collect()
    };
    assert_eq!(spans(r, Phase::Cell), [(0, READ), (READ + page, 2 * READ + page)]);
    assert_eq!(spans(r, Phase::Data), [(READ, READ + page), (2 * READ + page, 2 * (READ + page))]);
    assert_eq!(spans(w, Phase::Data), [(0, page), (page + PROGRAM, 2 * page + PROGRAM)]);
    assert_eq!(spans(w, Phase::Cell), [(page, page + PROGRAM), (2 * page + PROGRAM, 2 * (page + PROGRAM))]);
}

#[test]
fn page_types_alternate() {
    let mut overrides = vec!["nand.cell=tlc", "nand.read=[\"20us\", \"30us\", \"40us\"]"];
    overrides.push("nand.program=[\"100us\", \"200us\", \"300us\"]");
    let d = machine(&overrides);
    for row in 0..6 {
        // The units of a plane were filled page by page, so row n is page n. The next write programs page 8.
        let (r, w) = (read(&d, HERE, row), write(&d, HERE, 0));
        let (start, end) = phase_of(&play(&d, &[(0, r)]), &r, Phase::Cell);
        assert_eq!(end - start, (20 + row % 3 * 10) * US, "a read of page {row}");
        let script: Vec<(u64, Request)> = (0..=row).map(|i| (0, Request { tag: i, ..write(&d, HERE, i) })).collect();
        let (start, end) = phase_of(&play(&d, &script), &Request { tag: row, ..w }, Phase::Cell);
        assert_eq!(end - start, ((FILLED + row) % 3 * 100 + 100) * US, "a program of page {}", FILLED + row);
    }
}

#[test]
fn a_change_of_the_chip_takes_the_way_switch() {
    let d = machine(&["bus.way_switch=1us"]);
    let first = write(&d, HERE, 0);
    // No chip was selected on the channel yet: the first one takes no switch, and neither does another die of it.
    assert_eq!(phase_of(&play(&d, &[(0, first)]), &first, Phase::Data), (0, DATA));
    assert_gate(&d, first, data_in(write(&d, OTHER_DIE, 1)), DATA);
    let second = write(&d, OTHER_CHIP, 1);
    let slices = play(&d, &[(0, first), (0, second)]);
    assert_eq!(phase_of(&slices, &second, Phase::Switch), (DATA, DATA + US));
    assert_eq!(phase_of(&slices, &second, Phase::Data), (DATA + US, 2 * DATA + US));
    let other = write(&d, OTHER_CHANNEL, 1);
    assert_eq!(phase_of(&play(&d, &[(0, first), (0, other)]), &other, Phase::Data), (0, DATA));
}

#[test]
fn a_change_of_the_channel_takes_the_channel_switch() {
    // The scope `controller` allows only one switch at a time.
    for (scope, third_waits) in [("channel", 0), ("controller", US)] {
        let d = machine(&["bus.channel_switch=1us", &format!("bus.channel_switch_scope={scope}")]);
        let writes = [0, 1, 2].map(|channel| write(&d, [channel, 0, 0, 0], u64::from(channel)));
        let slices = play(&d, &writes.map(|w| (0, w)));
        assert_eq!(phase_of(&slices, &writes[0], Phase::Data).0, 0, "{scope}");
        assert_eq!(phase_of(&slices, &writes[1], Phase::Data), (US, US + DATA), "{scope}");
        assert_eq!(phase_of(&slices, &writes[2], Phase::Data).0, US + third_waits, "{scope}");
    }
}

#[test]
fn reads_and_writes_can_have_cycles_of_their_own() {
    // A page of 4096 B takes 122.88 us out of a chip and 163.84 us into one.
    const OUT: u64 = 4096 * 30_000;
    const IN: u64 = 4096 * 40_000;
    let d = machine(&["bus.read_cycle=30ns", "bus.write_cycle=40ns"]);
    let (w, r) = (write(&d, HERE, 0), read(&d, HERE, 0));
    assert_eq!(phase_of(&play(&d, &[(0, w)]), &w, Phase::Data), (0, IN));
    assert_eq!(phase_of(&play(&d, &[(0, w)]), &w, Phase::Cell), (IN, IN + PROGRAM));
    assert_eq!(phase_of(&play(&d, &[(0, r)]), &r, Phase::Data), (READ, READ + OUT));
    assert_gate(&d, w, data_out(read(&d, OTHER_CHIP, 1)), IN);
    assert_gate(&d, r, data_in(write(&d, OTHER_CHIP, 1)), READ + OUT);
    // One of the options changes only its own direction.
    let d = machine(&["bus.read_cycle=30ns"]);
    assert_eq!(phase_of(&play(&d, &[(0, w)]), &w, Phase::Data), (0, DATA));
    let d = machine(&["bus.write_cycle=40ns"]);
    assert_eq!(phase_of(&play(&d, &[(0, r)]), &r, Phase::Data), (READ, READ + DATA));
    // Commands and addresses are written.
    let d = machine(&["bus.write_cycle=40ns", "bus.command_cycles.read=7"]);
    assert_eq!(phase_of(&play(&d, &[(0, r)]), &r, Phase::Cell), (280_000, 280_000 + READ));
}

#[test]
fn a_change_of_the_channel_for_a_read_can_take_another_time() {
    for (overrides, write_waits, read_waits) in [
        (&["bus.channel_switch=2us"][..], 2 * US, 2 * US),
        (&["bus.channel_switch=2us", "bus.channel_switch_read=1us"], 2 * US, US),
        (&["bus.channel_switch=2us", "bus.channel_switch_read=0ps"], 2 * US, 0),
        (&["bus.channel_switch_read=1us"], 0, US),
    ] {
        let d = machine(overrides);
        // The data of the read are ready during the first write, when the controller has selected channel 0.
        let (first, other) = (write(&d, HERE, 0), write(&d, OTHER_CHANNEL, 1));
        let out = read(&d, OTHER_CHANNEL, 2);
        assert_eq!(phase_of(&play(&d, &[(0, first), (US, other)]), &other, Phase::Data).0, US + write_waits);
        let slices = play(&d, &[(0, first), (US, out)]);
        assert_eq!(phase_of(&slices, &out, Phase::Data).0, US + READ + read_waits, "{overrides:?}");
    }
}

/// Runs a device until the erase of a block without valid units starts, and returns both.
fn at_an_erase() -> (Device, Slice) {
    let mut device = machine(&["geometry.blocks=8", "geometry.pages=8", "gc.soft_threshold=2", "capacity.spare=0.8"]);
    // Rows 0 to 7 fill a block of each plane. Overwriting one unit fills further blocks that soon have no valid units.
    loop {
        let now = device.now();
        let w = write(&device, HERE, 0);
        device.submit(now, Request { arrival: now, ..w });
        while let Some(at) = device.next_event() {
            device.advance(at);
            let slices = device.array().probe().expect("it was switched on").slices();
            let slice = slices.last().copied().filter(|s| s.kind == Kind::Erase && s.phase == Phase::Cell);
            if let Some(erase) = slice {
                assert_eq!(device.now(), erase.start);
                return (device, erase);
            }
        }
        assert!(now < Time::from_us(1_000_000), "no block was erased");
    }
}

#[test]
fn an_erase_occupies_its_die() {
    let (device, erase) = at_an_erase();
    assert_eq!(erase.end - erase.start, Time(ERASE));
    let end = erase.end.0;
    for (place, gate) in [(HERE, end), (OTHER_PLANE, end), (OTHER_DIE, 0), (OTHER_CHIP, 0), (OTHER_CHANNEL, 0)] {
        for at in [end - 1, end, end + 1] {
            let r = read(&device, place, 2);
            let (start, _) = phase_of(&play(&device, &[(at, r)]), &r, Phase::Cell);
            assert_eq!(start, at.max(gate), "a read of {place:?}, the erase ending at {end}");
        }
    }
}

#[test]
fn a_write_waits_for_a_controller_slot() {
    for (slots, gate) in [(1, DATA + PROGRAM), (2, 0)] {
        let d = machine(&[&format!("controller.write_slots={slots}")]);
        assert_gate(&d, write(&d, HERE, 0), data_in(write(&d, OTHER_CHANNEL, 1)), gate);
        assert_gate(&d, write(&d, HERE, 0), cells(read(&d, OTHER_CHANNEL, 1)), 0);
    }
}

#[test]
fn a_request_waits_for_a_slot_of_the_host_queue() {
    for (depth, gate) in [(1, READ + DATA), (2, 0)] {
        let d = machine(&[&format!("host.queue_depth={depth}")]);
        assert_gate(&d, read(&d, HERE, 0), cells(read(&d, OTHER_CHANNEL, 1)), gate);
    }
    // The host has the completion one latency after the data transfer, and the next command arrives one latency later.
    let d = machine(&["host.queue_depth=1", "host.link_latency=5us"]);
    let second = read(&d, OTHER_CHANNEL, 1);
    let slices = play(&d, &[(0, read(&d, HERE, 0)), (0, second)]);
    assert_eq!(phase_of(&slices, &second, Phase::Cell).0, 5 * US + READ + DATA + 5 * US + 5 * US);
}

/// Returns the times at which the host has the completions of requests that are submitted at the given times.
fn finishes(device: &Device, script: &[(u64, Request)]) -> Vec<u64> {
    let mut device = device.clone();
    script.iter().for_each(|&(at, request)| submit(&mut device, Time(at), request));
    let completions = drain(&mut device);
    let of = |r: &Request| {
        completions.iter().find(|c| c.request.tag == r.tag).expect("a completion of each request").finish.0
    };
    script.iter().map(|(_, request)| of(request)).collect()
}

#[test]
fn the_link_has_a_bandwidth_and_a_latency() {
    // 4096 B take 10 us at 409.6 MB/s.
    let crossing = 10 * US;
    for latency in [0, 3 * US] {
        let d = machine(&["host.link_bandwidth=409.6MB/s", &format!("host.link_latency={latency}ps")]);
        let (r, w) = (read(&d, HERE, 0), write(&d, HERE, 0));
        // The data of a write cross the link before the program, one request after another. Its completion has no data.
        assert_eq!(phase_of(&play(&d, &[(0, w)]), &w, Phase::Data).0, latency + crossing);
        assert_gate(&d, w, (write(&d, OTHER_CHANNEL, 1), Phase::Data, latency + crossing), latency + 2 * crossing);
        assert_eq!(finishes(&d, &[(0, w)]), [2 * latency + crossing + DATA + PROGRAM]);
        // The data of a read cross the link after the read, independently of writes.
        let read_time = 2 * latency + READ + DATA + crossing;
        assert_eq!(finishes(&d, &[(0, r)]), [read_time]);
        assert_eq!(finishes(&d, &[(0, r), (0, read(&d, OTHER_CHANNEL, 1))]), [read_time, read_time + crossing]);
        let between = READ + DATA - crossing;
        assert_eq!(finishes(&d, &[(0, r), (between, write(&d, OTHER_CHANNEL, 1))])[0], read_time);
    }
}
