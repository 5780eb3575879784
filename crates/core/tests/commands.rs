//! Advanced commands, one by one: their times are computed by hand, to the picosecond, and a small model counts how
//! often they are used.
//!
//! Times of the device: page read 25 us, program 200 us, erase 1500 us. A page of 4096 B takes 102.4 us on the channel
//! at 25 ns per byte. Command cycles take no time, except if a test sets them.

use crate::common::{self, assert_close, drain, fill, submit, units};
use floatgate_core::results::{Counters, ProgramCause};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::timeline::{Kind, Lane, Phase, Probe, Slice};

const US: u64 = 1_000_000;
const READ: u64 = 25 * US;
const PROGRAM: u64 = 200 * US;
const ERASE: u64 = 1500 * US;
const DATA: u64 = 102_400_000;

/// Returns a device of one channel and one chip with `dies` dies of two planes each. Units go to the planes of a die
/// first, then to the dies.
fn chip(dies: u32, overrides: &[&str]) -> Device {
    let dies = format!("geometry.dies={dies}");
    let base = [
        "geometry.channels=1",
        "geometry.chips=1",
        dies.as_str(),
        "geometry.planes=2",
        "allocation={ static = { order = \"plane-die-chip-channel\" } }",
    ];
    common::device(&[&base, overrides].concat())
}

fn write(device: &Device, first: u64, count: u32) -> Request {
    Request { tag: first, ..units(device, Operation::Write, first, count) }
}

fn read(device: &Device, first: u64, count: u32) -> Request {
    Request { tag: first, ..units(device, Operation::Read, first, count) }
}

/// Submits requests at the given times and returns the times of completion by tag.
fn play(device: &mut Device, script: &[(u64, Request)]) -> Vec<(u64, u64)> {
    script.iter().for_each(|&(at, request)| submit(device, Time(at), request));
    let mut ends: Vec<_> = drain(device).iter().map(|done| (done.request.tag, done.finish.0)).collect();
    ends.sort_unstable();
    ends
}

/// Returns the multi-plane and interleaved commands so far: kind, dies, planes, number of commands.
fn merged(device: &Device) -> Vec<(Kind, u32, u32, u64)> {
    device.array().parallel.shapes().map(|shape| (shape.kind, shape.dies, shape.planes, shape.commands)).collect()
}

fn watch(device: &mut Device) {
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
}

fn slices(device: &Device, phase: Phase) -> Vec<Slice> {
    let all = device.array().probe().expect("it was switched on").slices();
    all.iter().filter(|slice| slice.phase == phase).copied().collect()
}

#[test]
fn a_two_plane_program_is_two_transfers_and_one_cell_time() {
    let mut basic = chip(1, &[]);
    let request = write(&basic, 0, 2);
    assert_eq!(play(&mut basic, &[(0, request)]), [(0, 2 * (DATA + PROGRAM))]);
    assert_eq!(merged(&basic), []);
    let mut device = chip(1, &["nand.advanced.multi_plane_program=wise", "nand.advanced.strict=true"]);
    assert_eq!(play(&mut device, &[(0, request)]), [(0, 2 * DATA + PROGRAM)]);
    assert_eq!(merged(&device), [(Kind::Program, 1, 2, 1)]);
}

#[test]
fn pages_that_arrive_together_start_together() {
    let advanced = ["nand.advanced.multi_plane_program=wise", "nand.advanced.multi_plane_read=true"];
    let ends = |overrides: &[&str]| {
        let mut device = chip(1, &[&advanced[..], overrides].concat());
        let both = write(&device, 0, 2);
        let written = play(&mut device, &[(0, both)])[0].1;
        let now = device.now().0;
        let both = read(&device, 0, 2);
        (written, play(&mut device, &[(now, both)])[0].1 - now)
    };
    let latency = 2 * 3 * US;
    assert_eq!(ends(&["host.link_latency=3us"]), (latency + 2 * DATA + PROGRAM, latency + READ + 2 * DATA));
    let both = ["host.link_latency=3us", "host.software=4us"];
    let later = latency + 4 * US;
    assert_eq!(ends(&both), (later + 2 * DATA + PROGRAM, later + READ + 2 * DATA));
    assert_eq!(ends(&both[1..]), (4 * US + 2 * DATA + PROGRAM, 4 * US + READ + 2 * DATA));
    // If the link has a bandwidth, the first page arrives 4.096 us before the second and is programmed alone. A read
    // requests both pages at once. On the link, the data of the second page follow those of the first.
    let page = 4_096_000;
    let apart = 2 * (DATA + PROGRAM);
    let bandwidth = ["host.link_bandwidth=1GB/s", "host.link_latency=3us"];
    assert_eq!(ends(&bandwidth), (latency + page + apart, latency + READ + 2 * DATA + page));
    assert_eq!(ends(&bandwidth[..1]), (page + apart, READ + 2 * DATA + page));
    // A core that takes time for each page has the same effect: 1 us for an allocation or a lookup.
    let lookup = "controller.firmware.lookup=\"1us\"";
    assert_eq!(ends(&[lookup]), (US + apart, US + 2 * (READ + DATA)));
    // The second page of a read waits for the first and is read alone. Tasks that take no time separate nothing.
    let allocation = "controller.firmware.allocation=\"1us\"";
    assert_eq!(ends(&[allocation]), (US + apart, READ + 2 * DATA));
    assert_eq!(
        ends(&["controller.firmware.interrupt=\"1us\""]),
        (2 * US + 2 * DATA + PROGRAM, 2 * US + READ + 2 * DATA)
    );
}

#[test]
fn command_cycles_precede_the_data_of_each_plane() {
    let cycles = "bus.command_cycles={ read = 7, program = 8, erase = 5 }";
    let mut device = chip(1, &["nand.advanced.multi_plane_program=wise", cycles]);
    watch(&mut device);
    let request = write(&device, 0, 2);
    assert_eq!(play(&mut device, &[(0, request)]), [(0, 2 * (200_000 + DATA) + PROGRAM)]);
    let data: Vec<_> = slices(&device, Phase::Data).iter().map(|slice| (slice.start.0, slice.end.0)).collect();
    assert_eq!(data, [(200_000, 200_000 + DATA), (400_000 + DATA, 400_000 + 2 * DATA)]);
    let cells: Vec<_> = slices(&device, Phase::Cell).iter().map(|slice| (slice.lane, slice.start.0)).collect();
    let begin = 400_000 + 2 * DATA;
    assert_eq!(cells, [(Lane::Plane(0), begin), (Lane::Plane(1), begin)]);
}

#[test]
fn planes_are_read_together_and_their_data_are_transferred_in_turn() {
    let script = |device: &Device| [(0, read(device, 0, 1)), (0, read(device, 1, 1))];
    let mut device = chip(1, &["nand.advanced.multi_plane_read=true"]);
    fill(&mut device, 8);
    let both = read(&device, 0, 2);
    assert_eq!(play(&mut device, &[(0, both)]), [(0, READ + 2 * DATA)]);
    assert_eq!(merged(&device), [(Kind::Read, 1, 2, 1)]);
    // Two requests wait for the die. Each completes with its own data.
    let mut device = chip(1, &["nand.advanced.multi_plane_read=true"]);
    fill(&mut device, 8);
    let busy = read(&device, 6, 1);
    let [first, second] = script(&device);
    let free = READ + DATA;
    let ends = [(0, free + READ + DATA), (1, free + READ + 2 * DATA), (6, free)];
    assert_eq!(play(&mut device, &[(0, busy), first, second]), ends);
    // Pages at different addresses are read separately.
    let mut device = chip(1, &["nand.advanced.multi_plane_read=true"]);
    fill(&mut device, 8);
    let (first, second) = (read(&device, 0, 1), read(&device, 3, 1));
    assert_eq!(play(&mut device, &[(0, busy), (0, first), (0, second)])[1].1, free + 2 * (READ + DATA));
    assert_eq!(merged(&device), []);
}

#[test]
fn dies_are_interleaved_in_one_command() {
    // Hu et al. 2011, Figure 2 (b): the chip accepts its next command when both dies are done.
    let overrides = ["geometry.planes=1", "nand.concurrency=command"];
    let mut basic = chip(2, &overrides);
    let (both, third) = (write(&basic, 0, 2), write(&basic, 2, 1));
    assert_eq!(play(&mut basic, &[(0, both)]), [(0, 2 * (DATA + PROGRAM))]);
    let mut device = chip(2, &[overrides[0], overrides[1], "nand.advanced.interleave=true"]);
    let ends = play(&mut device, &[(0, both), (US, third)]);
    assert_eq!(ends, [(0, 2 * DATA + PROGRAM), (2, 2 * DATA + PROGRAM + DATA + PROGRAM)]);
    assert_eq!(merged(&device), [(Kind::Program, 2, 2, 1)]);
    // Reads: the cells work together, and the data follow one another.
    fill(&mut device, 2);
    let now = device.now().0;
    let both = read(&device, 0, 2);
    assert_eq!(play(&mut device, &[(now, both)]), [(0, now + READ + 2 * DATA)]);
    // Two planes per die: the commands of the second die are sent while the cells of the first read.
    let planes = ["nand.advanced.multi_plane_read=true", "bus.command_cycles={ read = 8 }"];
    let mut device = chip(2, &[&overrides[1..], &["nand.advanced.interleave=true"], &planes[..]].concat());
    fill(&mut device, 4);
    let all = read(&device, 0, 4);
    assert_eq!(play(&mut device, &[(0, all)]), [(0, 2 * 200_000 + READ + 4 * DATA)]);
    assert_eq!(merged(&device), [(Kind::Read, 2, 4, 1)]);
}

#[test]
fn multi_plane_operations_are_interleaved() {
    // Hu et al. 2013, Figure 19: 2 dies x 2 planes. The second die programs until four transfers and a program have
    // ended.
    let overrides =
        ["nand.concurrency=command", "nand.advanced.interleave=true", "nand.advanced.multi_plane_program=wise"];
    let mut device = chip(2, &overrides);
    watch(&mut device);
    let all = write(&device, 0, 4);
    assert_eq!(play(&mut device, &[(0, all)]), [(0, 4 * DATA + PROGRAM)]);
    assert_eq!(merged(&device), [(Kind::Program, 2, 4, 1)]);
    let ends: Vec<_> = slices(&device, Phase::Cell).iter().map(|slice| slice.end.0).collect();
    let (first, second) = (2 * DATA + PROGRAM, 4 * DATA + PROGRAM);
    assert_eq!(ends, [first, first, second, second]);
}

#[test]
fn planes_work_in_pairs() {
    let overrides = ["geometry.planes=4", "nand.advanced.multi_plane_program=wise"];
    let mut device = chip(1, &overrides);
    let all = write(&device, 0, 4);
    assert_eq!(play(&mut device, &[(0, all)]), [(0, 4 * DATA + PROGRAM)]);
    let mut device = chip(1, &[overrides[0], overrides[1], "nand.advanced.plane_pairs=true"]);
    assert_eq!(play(&mut device, &[(0, all)]), [(0, 2 * (2 * DATA + PROGRAM))]);
    // Planes 1 and 2 are not a pair.
    let mut device = chip(1, &[overrides[0], overrides[1], "nand.advanced.plane_pairs=true"]);
    let middle = write(&device, 1, 2);
    assert_eq!(play(&mut device, &[(0, middle)]), [(1, 2 * (DATA + PROGRAM))]);
}

#[test]
fn any_planes_of_a_group_work_together() {
    let mut device = chip(1, &["geometry.planes=4", "nand.advanced.multi_plane_program=wise"]);
    // Four planes work together. While they program, writes for three of the planes are queued.
    let mut script = vec![(0, write(&device, 0, 4))];
    script.extend([4, 5, 7].map(|unit| (US, write(&device, unit, 1))));
    let first = 4 * DATA + PROGRAM;
    let second = first + 3 * DATA + PROGRAM;
    assert_eq!(play(&mut device, &script), [(0, first), (4, second), (5, second), (7, second)]);
    assert_eq!(merged(&device), [(Kind::Program, 1, 3, 1), (Kind::Program, 1, 4, 1)]);
}

/// Writes units one by one in functional mode: even ones go to plane 0, odd ones to plane 1.
fn write_units(device: &mut Device, units: impl Iterator<Item = u32>) {
    let ftl = device.ftl_mut();
    units.for_each(|unit| ftl.write_whole(floatgate_core::sim::id::Lpn(unit)));
}

#[test]
fn strict_planes_need_blocks_of_equal_addresses() {
    for (strict, together) in [(false, true), (true, false)] {
        let strict = format!("nand.advanced.strict={strict}");
        let overrides = ["geometry.pages=16", "nand.advanced.multi_plane_program=wise", &strict];
        let mut device = chip(1, &overrides);
        // Two pages of the first block of plane 1 are written; in plane 0, the first block and two pages of the second.
        write_units(&mut device, (0..2).map(|page| 2 * page + 1));
        write_units(&mut device, (0..18).map(|page| 2 * page));
        let both = write(&device, 100, 2);
        let took = if together { 2 * DATA + PROGRAM } else { 2 * (DATA + PROGRAM) };
        assert_eq!(play(&mut device, &[(0, both)]), [(100, took)], "{strict}");
    }
}

#[test]
fn strict_planes_join_with_the_block_that_they_open() {
    for (strict, took) in [(false, 2 * DATA + PROGRAM), (true, 2 * (DATA + PROGRAM))] {
        let strict = format!("nand.advanced.strict={strict}");
        let mut device = chip(1, &["geometry.pages=16", "nand.advanced.multi_plane_program=wise", &strict]);
        // Plane 0 has filled twenty blocks and opens the next. Plane 1 has the same block free, but not among the
        // oldest blocks, from which it chooses. It opens its first block.
        write_units(&mut device, (0..20 * 16).map(|page| 2 * page));
        let both = write(&device, 1000, 2);
        assert_eq!(play(&mut device, &[(0, both)]), [(1000, took)], "{strict}");
    }
}

#[test]
fn blind_programs_skip_pages_of_the_plane_with_the_lower_frontier() {
    for (how, took, wasted) in [("wise", 2 * (DATA + PROGRAM), 0), ("blind", 2 * DATA + PROGRAM, 3)] {
        let mut device = chip(1, &[&format!("nand.advanced.multi_plane_program={how}")]);
        // Plane 0 has its frontier at the fifth page, plane 1 at the second.
        write_units(&mut device, [0, 2, 4, 6, 1].into_iter());
        let both = write(&device, 100, 2);
        assert_eq!(play(&mut device, &[(0, both)]), [(100, took)], "{how}");
        let counters = device.ftl().counters;
        assert_eq!(counters.pages_programmed[ProgramCause::WasteAlignment as usize], wasted, "{how}");
        assert_eq!(
            (counters.pages_programmed[ProgramCause::WasteCopyback as usize], counters.units_padded),
            (0, wasted)
        );
    }
}

#[test]
fn data_are_transferred_while_the_cells_program() {
    let overrides = ["geometry.planes=1"];
    let mut basic = chip(1, &overrides);
    let three = write(&basic, 0, 3);
    assert_eq!(play(&mut basic, &[(0, three)]), [(0, 3 * (DATA + PROGRAM))]);
    let mut device = chip(1, &[overrides[0], "nand.advanced.cache_program=true"]);
    assert_eq!(play(&mut device, &[(0, three)]), [(0, DATA + 3 * PROGRAM)]);
    // If the transfer takes longer, the cells wait for it.
    let mut device = chip(1, &[overrides[0], "nand.advanced.cache_program=true", "nand.program=60us"]);
    assert_eq!(play(&mut device, &[(0, three)]), [(0, 3 * DATA + 60 * US)]);
    // Cache programs do not extend into another block.
    let mut device = chip(1, &[overrides[0], "nand.advanced.cache_program=true", "geometry.pages=2"]);
    let across = write(&device, 0, 3);
    assert_eq!(play(&mut device, &[(0, across)]), [(0, DATA + 2 * PROGRAM + DATA + PROGRAM)]);
}

#[test]
fn the_next_page_is_read_during_a_transfer() {
    let overrides = ["geometry.planes=1"];
    let mut basic = chip(1, &overrides);
    fill(&mut basic, 8);
    let three = read(&basic, 0, 3);
    assert_eq!(play(&mut basic, &[(0, three)]), [(0, 3 * (READ + DATA))]);
    let mut device = chip(1, &[overrides[0], "nand.advanced.cache_read=true"]);
    fill(&mut device, 8);
    assert_eq!(play(&mut device, &[(0, three)]), [(0, READ + 3 * DATA)]);
    // If the cells take longer, the channel waits for them.
    let mut device = chip(1, &[overrides[0], "nand.advanced.cache_read=true", "nand.read=150us"]);
    fill(&mut device, 8);
    assert_eq!(play(&mut device, &[(0, three)]), [(0, 3 * 150 * US + DATA)]);
    // The command of the next read precedes the data.
    let cycles = "bus.command_cycles={ read = 8 }";
    let mut device = chip(1, &[overrides[0], "nand.advanced.cache_read=true", cycles]);
    fill(&mut device, 8);
    let command = 200_000;
    assert_eq!(play(&mut device, &[(0, three)]), [(0, 3 * command + READ + 3 * DATA)]);
}

#[test]
fn planes_read_the_next_pages_during_their_transfers() {
    // The data of both planes move to the cache registers together, before those of the first plane are transferred.
    let both = ["nand.advanced.multi_plane_read=true", "nand.advanced.cache_read=true"];
    let ends = |overrides: &[&str], script: &dyn Fn(&Device) -> Vec<Request>| {
        let mut device = chip(1, &[&both, overrides].concat());
        fill(&mut device, 16);
        let script: Vec<_> = script(&device).into_iter().map(|request| (0, request)).collect();
        let ends = play(&mut device, &script);
        assert!(merged(&device).iter().all(|shape| (shape.0, shape.2) == (Kind::Read, 2)));
        (ends, merged(&device).iter().map(|shape| shape.3).sum::<u64>())
    };
    let six = |device: &Device| vec![read(device, 0, 6)];
    assert_eq!(ends(&[], &six), (vec![(0, READ + 6 * DATA)], 3));
    // Slower than a transfer of one plane, faster than those of two: only the first read of the cells takes extra time.
    let slow = ["nand.read=150us"];
    assert_eq!(ends(&slow, &six), (vec![(0, 150 * US + 6 * DATA)], 3));
    // Slower than the transfers of two planes: the channel waits for the cells.
    assert_eq!(ends(&["nand.read=300us"], &six), (vec![(0, 3 * 300 * US + 2 * DATA)], 3));
    // The commands of both planes precede the data.
    let cycles = [slow[0], "bus.command_cycles={ read = 8 }"];
    assert_eq!(ends(&cycles, &six), (vec![(0, 6 * 200_000 + 150 * US + 6 * DATA)], 3));
    // A single page follows two pages, and is followed by another one.
    let three = |device: &Device| vec![read(device, 0, 2), read(device, 4, 1), read(device, 7, 1)];
    let first = 150 * US + 2 * DATA;
    let expected = vec![(0, first), (4, first + DATA), (7, first + DATA + 150 * US - DATA + DATA)];
    assert_eq!(ends(&slow, &three), (expected, 1));
}

/// Options of dies with one plane, whose programs are suspended for reads.
const INTERRUPTED: [&str; 3] = [
    "geometry.planes=1",
    "scheduler=read-first",
    "nand.advanced.suspend={ program = true, latency = \"5us\", resume = \"3us\", limit = 2 }",
];

#[test]
fn reads_suspend_programs() {
    let overrides = INTERRUPTED;
    let mut device = chip(1, &overrides);
    fill(&mut device, 8);
    // The cells program from DATA on; the read arrives 50 us later.
    let (program, first, second) = (write(&device, 5, 1), read(&device, 0, 1), read(&device, 1, 1));
    let at = DATA + 50 * US;
    let served = at + 5 * US + READ + DATA;
    let ends = play(&mut device, &[(0, program), (at, first)]);
    assert_eq!(ends, [(0, served), (5, served + 3 * US + PROGRAM - 50 * US)]);
    // A second waiting read is served before the cells resume. A third is not, because the limit is 2.
    let mut device = chip(1, &overrides);
    fill(&mut device, 8);
    let third = read(&device, 2, 1);
    let ends = play(&mut device, &[(0, program), (at, first), (at + US, second), (at + US, third)]);
    let resumed = served + READ + DATA + 3 * US;
    let programmed = resumed + PROGRAM - 50 * US;
    assert_eq!(ends, [(0, served), (1, served + READ + DATA), (2, programmed + READ + DATA), (5, programmed)]);
    // A transfer is not interrupted: a read that arrives during it suspends the cells as soon as they start.
    let mut device = chip(1, &overrides);
    fill(&mut device, 8);
    let ends = play(&mut device, &[(0, program), (DATA / 2, first)]);
    let served = DATA + 5 * US + READ + DATA;
    assert_eq!(ends, [(0, served), (5, served + 3 * US + PROGRAM)]);
    // A read that arrives while the cells are about to resume suspends them again when they do.
    let mut device = chip(1, &overrides);
    fill(&mut device, 8);
    let ends = play(&mut device, &[(0, program), (at, first), (at + 5 * US + READ + DATA + US, second)]);
    let served = [at + 5 * US + READ + DATA, at + 5 * US + READ + DATA + 3 * US + 5 * US + READ + DATA];
    assert_eq!(ends, [(0, served[0]), (1, served[1]), (5, served[1] + 3 * US + PROGRAM - 50 * US)]);
    // A timeline contains no cell phase of a program that was suspended before it did any work.
    let mut device = chip(1, &overrides);
    fill(&mut device, 8);
    watch(&mut device);
    play(&mut device, &[(0, program), (DATA / 2, first)]);
    let cells: Vec<_> = slices(&device, Phase::Cell).iter().map(|slice| (slice.start.0, slice.end.0)).collect();
    let read = (DATA + 5 * US, DATA + 5 * US + READ);
    assert_eq!(cells, [read, (read.1 + DATA + 3 * US, read.1 + DATA + 3 * US + PROGRAM)]);
    // Without the option, nothing is suspended.
    let mut device = chip(1, &overrides[..2]);
    fill(&mut device, 8);
    let ends = play(&mut device, &[(0, program), (DATA + US, first)]);
    assert_eq!(ends, [(0, DATA + PROGRAM + READ + DATA), (5, DATA + PROGRAM)]);
}

#[test]
fn suspended_cells_repeat_work_and_are_suspended_only_so_often() {
    let suspended = |more: &str, times: &[u64]| {
        let suspend = format!(
            "nand.advanced.suspend={{ program = true, latency = \"5us\", resume = \"3us\", limit = 9, {more} }}"
        );
        let mut device = chip(1, &["geometry.planes=1", "scheduler=read-first", &suspend]);
        fill(&mut device, 8);
        let mut requests = vec![(0, write(&device, 5, 1))];
        requests.extend(times.iter().zip(0..).map(|(&at, lpn)| (DATA + at, read(&device, lpn, 1))));
        play(&mut device, &requests).last().map_or(0, |&(_, end)| end)
    };
    let once = 8 * US + READ + DATA;
    let plain = DATA + PROGRAM + once;
    // The cells have worked for 50 us, and repeat at most that.
    assert_eq!(suspended("lost = \"20us\"", &[50 * US]), plain + 20 * US);
    assert_eq!(suspended("lost = \"50us\"", &[50 * US]), plain + 50 * US);
    assert_eq!(suspended("lost = \"1ms\"", &[50 * US]), plain + 50 * US);
    // A read that arrives while the cells are about to resume costs no work, because they have done none.
    let soon = [50 * US, 50 * US + 5 * US + READ + DATA + US];
    assert_eq!(suspended("lost = \"20us\"", &soon), plain + once + 20 * US);
    // The next suspension undoes work again: 10 us of the 15 us since the first one.
    let later = [50 * US, 50 * US + once + 15 * US];
    assert_eq!(suspended("lost = \"10us\"", &later), plain + once + 20 * US);
    // A program that is not suspended takes its own time, and the read waits for it.
    assert_eq!(suspended("until = 0.25", &[PROGRAM / 4]), plain);
    assert_eq!(suspended("until = 0.25", &[PROGRAM / 4 + 1]), DATA + PROGRAM);
    assert_eq!(suspended("most = 2", &later), plain + once);
    assert_eq!(suspended("most = 1", &later), plain);
}

#[test]
fn nothing_is_suspended_while_writes_wait_for_room() {
    let started = US + DATA + 50 * US;
    let ends = |second: Request, later: &[(u64, Request)], writes_first: &str| {
        let suspend = format!(
            "nand.advanced.suspend={{ program = true, latency = \"5us\", resume = \"3us\", limit = 2{writes_first} }}"
        );
        // The buffer holds one unit.
        let mut device = chip(1, &["geometry.planes=1", "scheduler=read-first", "buffer.capacity=4KiB", &suspend]);
        fill(&mut device, 8);
        let (first, read) = (write(&device, 5, 1), read(&device, 0, 1));
        play(&mut device, &[&[(0, first), (US, second), (started, read)], later].concat())
    };
    let device = chip(1, &[]);
    let (waiting, flush) = (write(&device, 6, 1), Request { tag: 7, ..units(&device, Operation::Flush, 0, 0) });
    // The second write waits until the first one is in flash, from US on. Its read suspends this program, or waits.
    let (once, programmed) = (5 * US + READ + DATA, US + DATA + PROGRAM);
    let suspended = [started + once, programmed + once + 3 * US];
    assert_eq!(ends(waiting, &[], ""), [(0, suspended[0]), (5, 0), (6, suspended[1])]);
    assert_eq!(ends(waiting, &[], ", writes_first = true"), [(0, programmed + READ + DATA), (5, 0), (6, programmed)]);
    // No write waits for room while a flush writes the unit back.
    for writes_first in ["", ", writes_first = true"] {
        assert_eq!(ends(flush, &[], writes_first), [(0, suspended[0]), (5, 0), (7, suspended[1])], "{writes_first}");
    }
    // A write waits from 10 us after the suspension on. Another read then waits for the program, which resumes first.
    let later = [(started + 10 * US, waiting), (started + 11 * US, read(&device, 1, 1))];
    let next = suspended[0] + READ + DATA;
    let delayed = suspended[1] + READ + DATA;
    assert_eq!(ends(flush, &later, ""), [(0, suspended[0]), (1, next), (5, 0), (6, delayed), (7, delayed)]);
    let resumed = [(0, suspended[0]), (1, delayed), (5, 0), (6, suspended[1]), (7, suspended[1])];
    assert_eq!(ends(flush, &later, ", writes_first = true"), resumed);
}

#[test]
fn reads_suspend_a_die_that_waits_for_its_channel() {
    let overrides = [&INTERRUPTED[..], &["nand.concurrency=die", "nand.advanced.cache_program=true"]].concat();
    let mut device = chip(2, &overrides);
    fill(&mut device, 8);
    // Die 0 programs unit 8 and could receive the data of unit 10, but the channel transfers those of unit 9 to die 1.
    let at = DATA + US;
    let [first, other, next] = [8, 9, 10].map(|unit| write(&device, unit, 1));
    let read = read(&device, 0, 1);
    let ends = play(&mut device, &[(0, first), (at, other), (at, next), (at + 50 * US, read)]);
    let granted = at + DATA;
    let served = granted + 5 * US + READ + DATA;
    let left = DATA + PROGRAM - granted;
    assert_eq!(ends[..3], [(0, served), (8, served + 3 * US + left), (9, granted + PROGRAM)]);
}

#[test]
fn data_that_arrived_during_a_suspension_are_transferred_after_it() {
    let overrides = [&INTERRUPTED[..], &["nand.advanced.cache_program=true"]].concat();
    let mut device = chip(1, &overrides);
    fill(&mut device, 8);
    let (first, next, read) = (write(&device, 8, 1), write(&device, 9, 1), read(&device, 0, 1));
    let at = DATA + 50 * US;
    let ends = play(&mut device, &[(0, first), (at, read), (at + 10 * US, next)]);
    let served = at + 5 * US + READ + DATA;
    let programmed = served + 3 * US + PROGRAM - 50 * US;
    assert!(served + DATA < programmed, "the transfer ends before the cells are free");
    assert_eq!(ends, [(0, served), (8, programmed), (9, programmed + PROGRAM)]);
}

#[test]
fn only_modern_devices_have_cache_commands_suspension_and_wordlines() {
    for (name, present) in [("hu2011", false), ("agrawal2008", false), ("tlc-direct", true), ("qlc-direct", true)] {
        let config = floatgate_core::device_file::load(name, &[]).unwrap();
        let advanced = &config.nand.advanced;
        let all = [advanced.cache_read, advanced.cache_program, advanced.suspend.program, advanced.suspend.erase];
        assert_eq!(all, [present; 4], "{name}");
        assert_eq!(config.geometry.pages_per_program > 1, present, "{name}");
        assert_eq!(config.controller.fill_timeout.0 > 0, present, "{name}");
    }
}

#[test]
fn only_dies_of_one_chip_are_interleaved() {
    let overrides = [
        "geometry.chips=2",
        "geometry.chips_per_package=2",
        "geometry.planes=1",
        "nand.concurrency=chip",
        "nand.advanced.interleave=true",
        "allocation={ static = { order = \"die-chip-plane-channel\" } }",
    ];
    let mut device = chip(2, &overrides);
    let all = write(&device, 0, 4);
    assert_eq!(play(&mut device, &[(0, all)]), [(0, 2 * (2 * DATA + PROGRAM))]);
    assert_eq!(merged(&device), [(Kind::Program, 2, 2, 2)]);
}

/// Asserts that samples of the device at many instants agree with its phases, to the picosecond.
fn assert_sampled(overrides: &[&str], dies: u32, script: impl Fn(&Device) -> Vec<(u64, Request)>) {
    let build = || {
        let mut device = chip(dies, overrides);
        fill(&mut device, 16);
        watch(&mut device);
        device
    };
    let mut whole = build();
    let script = script(&whole);
    let end = play(&mut whole, &script).iter().map(|done| done.1).max().unwrap();
    let planes = whole.config().geometry.planes;
    let overlap = |slice: &Slice, at: u64| slice.end.0.min(at).saturating_sub(slice.start.0) as i64;
    let (data, mut cells) = (slices(&whole, Phase::Data), slices(&whole, Phase::Cell));
    // Planes that work together count once for their die.
    cells.sort_by_key(|slice| (slice.plane / planes, slice.start, slice.end));
    cells.dedup_by_key(|slice| (slice.plane / planes, slice.start, slice.end));
    let mut device = build();
    let mut next = script.iter().peekable();
    for at in (0..end + 3 * US).step_by(1_234_567) {
        while let Some(&(when, request)) = next.next_if(|(when, _)| *when <= at) {
            submit(&mut device, Time(when), request);
        }
        device.advance(Time(at));
        let mut sample = floatgate_core::results::Sample::default();
        device.sample(Time(at), &mut sample);
        assert_eq!(sample.channels[0][0], data.iter().map(|slice| overlap(slice, at)).sum::<i64>(), "data until {at}");
        for (die, time) in sample.dies.iter().enumerate() {
            let of_die = cells.iter().filter(|slice| (slice.plane / planes) as usize == die);
            assert_eq!(time[0], of_die.map(|slice| overlap(slice, at)).sum::<i64>(), "cells of die {die} until {at}");
        }
    }
}

#[test]
fn samples_during_operations_are_exact() {
    let wide =
        |device: &Device| vec![(0, write(device, 16, 4)), (US, read(device, 0, 4)), (2 * US, read(device, 5, 3))];
    let together = [
        "nand.advanced.multi_plane_program=wise",
        "nand.advanced.multi_plane_read=true",
        "bus.command_cycles={ read = 7, program = 8, erase = 5 }",
        "bus.way_switch=900ns",
    ];
    assert_sampled(&together, 2, wide);
    let interleaved = [&together[..], &["nand.concurrency=command", "nand.advanced.interleave=true"]].concat();
    assert_sampled(&interleaved, 2, wide);
    let caches = [&together[..], &["nand.advanced.cache_read=true", "nand.advanced.cache_program=true"]].concat();
    assert_sampled(&caches, 1, wide);
    let suspend = "nand.advanced.suspend={ program = true, latency = \"5us\", resume = \"30us\", limit = 2 }";
    let reads = |device: &Device| {
        let at = DATA + PROGRAM - 9 * US;
        vec![(0, write(device, 16, 2)), (at, read(device, 0, 1)), (at + US, read(device, 5, 3))]
    };
    assert_sampled(&["geometry.planes=1", "scheduler=read-first", suspend], 1, reads);
    let early = |device: &Device| vec![(0, write(device, 16, 2)), (DATA / 2, read(device, 0, 1))];
    assert_sampled(&["geometry.planes=1", "scheduler=read-first", suspend], 1, early);
}

/// Returns a device of one die with frequent garbage collection. `requests` random overwrites of two units each were
/// performed, `depth` at a time.
fn overwritten(overrides: &[&str], depth: usize, requests: u64) -> Device {
    let base = [
        "geometry.blocks=32",
        "geometry.pages=32",
        "capacity.spare=0.35",
        "gc.soft_threshold=3",
        "gc.victim=greedy",
        "nand.advanced.strict=false",
    ];
    let mut device = chip(1, &[&base, overrides].concat());
    watch(&mut device);
    // An even number fills both planes alike. If one plane stayed a page behind, no addresses would be equal.
    let all = device.config().logical_units() & !1;
    fill(&mut device, all as u32);
    let mut rng = Rng::new(7, "commands");
    for index in 0..requests {
        let now = device.now();
        let request = write(&device, rng.below(all - 1), 2);
        device.submit(now, Request { tag: index, arrival: now, ..request });
        // At depth 1, garbage collection also has to end before the next request.
        while device.outstanding() >= depth || (depth == 1 && device.next_event().is_some()) {
            let at = device.next_event().unwrap_or_else(|| panic!("{}", device.explain_stall()));
            device.advance(at);
        }
    }
    drain(&mut device);
    device.check_invariants().unwrap();
    device
}

#[test]
fn copy_back_moves_a_page_within_its_plane() {
    let device = overwritten(&["nand.advanced.copy_back=wise"], 8, 3000);
    let counters = device.ftl().counters;
    assert!(counters.copy_backs > 300, "{counters:?}");
    let cells = slices(&device, Phase::Cell);
    let moves: Vec<_> = cells.iter().filter(|slice| slice.kind == Kind::CopyBack).collect();
    assert_eq!(moves.len() as u64, 2 * counters.copy_backs);
    for halves in moves.chunks(2) {
        let [read, program] = halves else { panic!("a copy-back reads and programs") };
        assert_eq!((read.end - read.start, program.end - program.start), (Time(READ), Time(PROGRAM)));
        assert_eq!((read.end, read.plane), (program.start, program.plane));
    }
    assert!(slices(&device, Phase::Data).iter().all(|slice| slice.kind != Kind::CopyBack));
    // About half of the pages have the parity of their destination. The others are moved through the controller.
    let moved = counters.pages_programmed[ProgramCause::Gc as usize] as f64;
    assert_close("share of copy-backs", counters.copy_backs as f64 / moved, 0.5, 0.1);
    assert_eq!(counters.pages_programmed[ProgramCause::WasteCopyback as usize], 0);
}

#[test]
fn without_the_restriction_of_parity_copy_back_moves_all_pages() {
    for how in ["wise", "blind"] {
        let copy_back = format!("nand.advanced.copy_back={how}");
        let device = overwritten(&[&copy_back, "nand.advanced.copy_back_parity=false"], 8, 3000);
        let counters = device.ftl().counters;
        assert_eq!(counters.copy_backs, counters.pages_programmed[ProgramCause::Gc as usize]);
        assert_eq!(counters.pages_programmed[ProgramCause::WasteCopyback as usize], 0);
        assert!(counters.copy_backs > 600, "{counters:?}");
    }
}

/// Returns a device with pages of two units after garbage collection. In its oldest blocks, the first unit of each page
/// is invalid.
fn half_invalid(how: &str) -> Device {
    let copy_back = format!("nand.advanced.copy_back={how}");
    let overrides = [
        "geometry.channels=1",
        "geometry.chips=1",
        "geometry.page_size=8KiB",
        "geometry.mapping_unit=4KiB",
        "geometry.pages=8",
        "geometry.blocks=16",
        "capacity.spare=0.4",
        "gc.soft_threshold=2",
        "gc.victim=fifo",
        // A write waits for a second one, and they fill a page together.
        "controller.fill_timeout=500us",
        &copy_back,
    ];
    let options = floatgate_core::simulation::Options { verify: true, ..Default::default() };
    let mut device = common::build(common::device_config(&overrides), options);
    let all = device.config().logical_units() as u32 / 16 * 16;
    write_units(&mut device, 0..all);
    device.ftl_mut().seal();
    watch(&mut device);
    let mut first = 0;
    while device.ftl().counters.blocks_erased == 0 {
        for unit in [first, first + 2] {
            let (now, request) = (device.now(), write(&device, unit, 1));
            submit(&mut device, now, request);
        }
        drain(&mut device);
        first += 4;
    }
    device.check_invariants().unwrap();
    device
}

#[test]
fn copy_back_moves_a_page_with_its_invalid_units() {
    let device = half_invalid("blind");
    let programs = slices(&device, Phase::Cell).into_iter().filter(|s| s.kind == Kind::CopyBack).skip(1).step_by(2);
    let places: Vec<u32> = programs.map(|slice| slice.ppn).collect();
    // A victim frees eight units. A copy with an invalid unit wastes one of them, as long as a program's worth is left.
    assert!(places.len() >= 6, "{places:?}");
    assert_eq!(places.len() as u64, device.ftl().counters.copy_backs);
    let ftl = device.ftl();
    let media = ftl.media.as_ref().unwrap();
    for &ppn in &places {
        let [invalid, valid] = [ppn, ppn + 1].map(floatgate_core::sim::id::Ppn);
        assert!(!ftl.blocks.is_valid(invalid) && ftl.blocks.is_valid(valid), "{ppn}");
        let owner = floatgate_core::sim::id::Lpn(ftl.map.owner(valid));
        assert_eq!(ftl.map.get(owner), floatgate_core::mapping::Location::Flash(valid));
        assert_eq!(owner.0 % 2, 1, "the second unit of a page");
        assert_eq!(ftl.read_contents(owner, 0, 8), media.read(valid));
    }
    // Wise copy-back: the controller combines two units into a page, and nothing is wasted.
    let counters = half_invalid("wise").ftl().counters;
    assert_eq!((counters.copy_backs, counters.units_padded), (0, 0));
    assert!(counters.units_moved() >= 8, "{counters:?}");
}

/// Returns a device after both planes collected garbage, and the phases of each copy-back. The two planes receive the
/// same writes, two units at a time.
fn alike(overrides: &[&str]) -> (Device, Vec<Slice>) {
    let base = [
        "geometry.blocks=16",
        "geometry.pages=16",
        "capacity.spare=0.4",
        "gc.soft_threshold=2",
        "gc.victim=fifo",
        "nand.advanced.copy_back=wise",
        "nand.advanced.multi_plane_program=wise",
    ];
    let mut device = chip(1, &[&base, overrides].concat());
    let all = device.config().logical_units() & !1;
    fill(&mut device, all as u32);
    watch(&mut device);
    let mut rng = Rng::new(11, "alike");
    for tag in 0..400 {
        let now = device.now();
        let unit = 2 * rng.below(all / 2);
        let request = write(&device, unit, 2);
        submit(&mut device, now, Request { tag, ..request });
        drain(&mut device);
    }
    device.check_invariants().unwrap();
    let moves = |slice: &Slice| slice.kind == Kind::CopyBack;
    let slices = device.array().probe().unwrap().slices().iter().copied().filter(moves).collect();
    (device, slices)
}

#[test]
fn planes_move_pages_together() {
    // Both planes read and program at the same time: k a + tR + k a + tPROG.
    let cycles = "bus.command_cycles={ read = 8, program = 4, erase = 5 }";
    let together = ["nand.advanced.multi_plane_read=true", "nand.advanced.multi_plane_erase=true", cycles];
    for strict in ["nand.advanced.strict=false", "nand.advanced.strict=true"] {
        let (device, slices) = alike(&[&together[..], &[strict]].concat());
        let moved = device.ftl().counters.copy_backs;
        let commands: u64 = merged(&device).iter().filter(|s| (s.0, s.2) == (Kind::CopyBack, 2)).map(|s| s.3).sum();
        // The planes receive the same writes, so their garbage collection is the same.
        assert!(moved > 100 && 2 * commands == moved, "{commands} commands for {moved} pages, {strict}");
        let (read, program) = (200_000, 100_000);
        for of_command in slices.chunks(8) {
            let start = of_command[0].start.0;
            let reported: Vec<_> =
                of_command.iter().map(|s| (s.phase, s.plane, s.start.0 - start, s.end.0 - start)).collect();
            let cells = 2 * read + READ;
            let end = cells + 2 * program + PROGRAM;
            let expected = [
                (Phase::Command, 0, 0, read),
                (Phase::Command, 1, read, 2 * read),
                (Phase::Cell, 0, 2 * read, cells),
                (Phase::Cell, 1, 2 * read, cells),
                (Phase::Command, 0, cells, cells + program),
                (Phase::Command, 1, cells + program, cells + 2 * program),
                (Phase::Cell, 0, cells + 2 * program, end),
                (Phase::Cell, 1, cells + 2 * program, end),
            ];
            assert_eq!(reported, expected, "{strict}");
        }
        // Planes that do not work together move the same number of pages.
        let (alone, _) = alike(&[cycles, strict]);
        assert_eq!(alone.ftl().counters.copy_backs, moved);
        assert!(
            merged(&alone).iter().all(|shape| shape.0 != Kind::CopyBack),
            "multi-plane copy-back needs multi-plane reads"
        );
    }
}

#[test]
fn blind_copy_back_wastes_about_a_page_for_every_second_copy() {
    for (spare, about) in [("capacity.spare=0.35", 0.4), ("capacity.spare=0.7", 0.5)] {
        let counters = overwritten(&[spare, "nand.advanced.copy_back=blind"], 8, 6000).ftl().counters;
        let wasted =
            counters.pages_programmed[ProgramCause::WasteCopyback as usize] as f64 / counters.copy_backs as f64;
        // Each copy changes the parity of the frontier, so the next valid page fits if its distance is odd. That is
        // half of the cases if few pages are valid, and more if neighbors are.
        assert_close("pages wasted for a copy-back", wasted, about, 0.1);
        let basic = overwritten(&[spare], 8, 6000).ftl().counters;
        assert!(counters.blocks_erased > basic.blocks_erased, "{counters:?} {basic:?}");
    }
}

/// Options that enable all commands in their wise variants.
const WISE: [&str; 4] = [
    "nand.advanced.copy_back=wise",
    "nand.advanced.multi_plane_program=wise",
    "nand.advanced.multi_plane_read=true",
    "nand.advanced.multi_plane_erase=true",
];

#[test]
fn wise_commands_waste_nothing_and_erase_no_more() {
    for spare in ["0.3", "0.35", "0.5", "0.7"] {
        assert_wise(&format!("capacity.spare={spare}"));
    }
}

#[test]
fn wise_commands_that_start_gc_sooner_waste_nothing() {
    for spare in ["capacity.spare=0.3", "capacity.spare=0.4", "capacity.spare=0.5"] {
        for depth in [2, 4, 16] {
            let counters = |more: &[&str]| overwritten(&[&[spare], more].concat(), depth, 6000).ftl().counters;
            let (basic, wise) = (counters(&[]), counters(&WISE));
            assert_eq!(wise.units_padded, 0);
            // More erases than with basic commands correspond to more moves, except for the blocks free or open at the
            // end.
            let erased = 32 * (wise.blocks_erased as i64 - basic.blocks_erased as i64);
            let moved = wise.units_moved() as i64 - basic.units_moved() as i64;
            assert!((erased - moved).abs() <= 2 * 2 * 32, "{spare} {depth}: {erased} pages erased, {moved} moved");
            assert_close("blocks erased", wise.blocks_erased as f64, basic.blocks_erased as f64, 0.02);
            // Starting garbage collection without waiting costs more than that, without any of these commands.
            let sooner = counters(&["gc.hard_threshold=2"]);
            let full = |counters: &Counters| counters.victim_valid_units as f64 / counters.victims as f64;
            assert!(sooner.blocks_erased > wise.blocks_erased && full(&sooner) > full(&wise), "{spare} {depth}");
        }
    }
}

fn assert_wise(spare: &str) {
    let basic = overwritten(&[spare], 1, 3000).ftl().counters;
    let device = overwritten(&[&[spare], &WISE[..]].concat(), 1, 3000);
    let counters = device.ftl().counters;
    assert_eq!(counters.units_padded, 0);
    assert_eq!((counters.blocks_erased, counters.units_moved()), (basic.blocks_erased, basic.units_moved()), "{spare}");
    let kinds: Vec<Kind> = merged(&device).iter().map(|shape| shape.0).collect();
    assert!(kinds.contains(&Kind::Program) && kinds.contains(&Kind::Erase), "{kinds:?}");
    // The erases of one command are one cell time in both planes.
    let erases: Vec<_> = slices(&device, Phase::Cell).into_iter().filter(|slice| slice.kind == Kind::Erase).collect();
    assert!(erases.iter().all(|slice| slice.end - slice.start == Time(ERASE)));
    let together = erases.windows(2).filter(|pair| pair[0].start == pair[1].start).count() as u64;
    let commands = merged(&device).iter().filter(|shape| shape.0 == Kind::Erase).map(|shape| shape.3).sum::<u64>();
    assert_eq!(together, commands);
}

#[test]
fn planes_are_programmed_together_as_often_as_a_model_counts() {
    let mut device = chip(1, &["nand.advanced.multi_plane_program=wise"]);
    let mut rng = Rng::new(3, "merges");
    // A first write keeps the die busy while the others are queued; each unit is written once.
    let mut next = [0u64, 0];
    let mut planes = Vec::new();
    let mut unit_of = |plane: usize| {
        next[plane] += 2;
        next[plane] - 2 + plane as u64
    };
    let script: Vec<(u64, Request)> = (0..400)
        .map(|index| {
            let plane = if index == 0 { 0 } else { rng.below(2) as usize };
            planes.push(plane);
            (index, write(&device, unit_of(plane), 1))
        })
        .collect();
    let last = play(&mut device, &script).iter().map(|end| end.1).max().unwrap();
    // The model: the oldest write leads. The oldest write of the other plane joins if both frontiers are at the same
    // page.
    let (mut lines, mut pages, mut time, mut together) = ([0, 0], [0u32, 0], 0, 0u64);
    let mut waiting: [Vec<usize>; 2] = [0, 1].map(|plane| (0..400).filter(|&i| planes[i] == plane).collect());
    waiting.iter_mut().for_each(|line| line.reverse());
    while let Some(lead) = (0..2).filter(|&p| !waiting[p].is_empty()).min_by_key(|&p| *waiting[p].last().unwrap()) {
        let other = 1 - lead;
        // The first command starts before any other write arrives.
        let joins = time > 0 && !waiting[other].is_empty() && pages[lead] == pages[other];
        for plane in if joins { vec![lead, other] } else { vec![lead] } {
            waiting[plane].pop();
            pages[plane] += 1;
            lines[plane] += 1;
        }
        together += u64::from(joins);
        time += if joins { 2 * DATA + PROGRAM } else { DATA + PROGRAM };
    }
    assert!(together > 20, "{together}");
    assert_eq!(merged(&device), [(Kind::Program, 1, 2, together)]);
    assert_eq!(last, time);
}

#[test]
fn planes_are_read_together_as_often_as_a_model_counts() {
    let mut device = chip(1, &["nand.advanced.multi_plane_read=true"]);
    fill(&mut device, 64);
    let mut rng = Rng::new(5, "merged reads");
    // Even units are in plane 0, odd ones in plane 1. With few pages, the heads of both queues are often the same page.
    let reads: Vec<u64> = (0..400).map(|_| rng.below(6)).collect();
    let script: Vec<(u64, Request)> =
        (0..400).map(|index| (index, Request { tag: index, ..read(&device, reads[index as usize], 1) })).collect();
    let ends = play(&mut device, &script);
    // The model: the oldest read leads. The head of the other queue joins if it reads the same page.
    let mut waiting: [Vec<usize>; 2] = [0, 1].map(|plane| (0..400).filter(|&i| reads[i] % 2 == plane).rev().collect());
    let (mut time, mut together, mut expected) = (0, 0, vec![0; 400]);
    while let Some(lead) = (0..2).filter(|&p| !waiting[p].is_empty()).min_by_key(|&p| *waiting[p].last().unwrap()) {
        let other = 1 - lead;
        let first = waiting[lead].pop().unwrap();
        let joins = waiting[other].last().is_some_and(|&next| time > 0 && reads[next] / 2 == reads[first] / 2);
        time += READ + DATA;
        expected[first] = time;
        if joins {
            time += DATA;
            expected[waiting[other].pop().unwrap()] = time;
            together += 1;
        }
    }
    assert!(together > 20, "{together}");
    assert_eq!(merged(&device), [(Kind::Read, 1, 2, together)]);
    assert_eq!(ends.iter().map(|end| end.1).collect::<Vec<_>>(), expected);
}

/// Returns the share of time in which the channel transfers data, for a long sequence of pages.
fn utilization(overrides: &[&str], operation: Operation, count: u32) -> f64 {
    let base = [
        "geometry.channels=1",
        "geometry.page_size=2KiB",
        "geometry.mapping_unit=2KiB",
        "geometry.spare_size=64B",
        "geometry.blocks=1024",
        "nand.read=20us",
        "bus.transfer_spare=true",
        "nand.concurrency=die",
        "host.queue_depth=1024",
        "allocation={ static = { order = \"chip-die-plane-channel\" } }",
    ];
    let mut device = common::device(&[&base, overrides].concat());
    if operation == Operation::Read {
        fill(&mut device, count * 16);
    }
    for index in 0..count {
        let request = units(&device, operation, u64::from(index) * 16, 16);
        device.submit(Time::ZERO, request);
    }
    let end = drain(&mut device).iter().map(|done| done.finish).max().unwrap();
    device.array().channel_time[0].data.as_s() / end.as_s()
}

#[test]
fn channel_utilization_matches_the_paper() {
    // Hu et al. 2013, Section 5.1 and Figure 19, as interpreted by the closed forms: data cycles only, and 2112 B at
    // 25 ns unless stated otherwise.
    let one = ["geometry.chips=1", "geometry.dies=1", "geometry.planes=1"];
    assert_close("read", utilization(&one, Operation::Read, 200), 0.7253, 0.005);
    let two_planes = ["geometry.chips=1", "geometry.dies=2", "geometry.planes=2"];
    let together = [&two_planes[..], &["nand.advanced.multi_plane_program=wise", "nand.advanced.strict=true"]].concat();
    // Independent dies: 4 X / (2 X + tPROG). With one command for both dies, the chip accepts the next command when
    // both are done: 4 X / (4 X + tPROG).
    let transfer = 2112.0 * 0.025;
    let independent = 4.0 * transfer / (2.0 * transfer + 200.0);
    assert_close("interleaved two-plane write", utilization(&together, Operation::Write, 400), independent, 0.005);
    assert_eq!((independent * 1000.0).round(), 691.0);
    let one_command = [&together[..], &["nand.concurrency=command", "nand.advanced.interleave=true"]].concat();
    let of_chip = 4.0 * transfer / (4.0 * transfer + 200.0);
    assert_close("the same as one command", utilization(&one_command, Operation::Write, 400), of_chip, 0.005);
    assert_eq!((of_chip * 1000.0).round(), 514.0);
    // 2 chips of 2 dies, 2048 B at 30 ns: 94.0 %.
    let dies = ["geometry.chips=2", "geometry.dies=2", "geometry.planes=1"];
    let slow = [&dies[..], &["bus.transfer_spare=false", "bus.protocol={ sdr = \"30ns\" }"]].concat();
    assert_close("2 dies x 2 chips", utilization(&slow, Operation::Write, 400), 0.9400, 0.005);
    // Five chips saturate the channel with writes, four do not.
    let chips = |chips: &str| {
        let set = [chips, "geometry.dies=1", "geometry.planes=1"];
        utilization(&set, Operation::Write, 400)
    };
    assert_close("4 chips", chips("geometry.chips=4"), 0.8354, 0.005);
    assert_close("5 chips", chips("geometry.chips=5"), 1.0, 0.005);
}
