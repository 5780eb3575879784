//! Planes of a die that are programmed together and read independently (`nand.concurrency = "plane-reads"`): times
//! computed by hand, to the picosecond, and what the FTL sees of them.

use crate::common::{self, drain, fill, refusal, serve, submit, units};
use floatgate_core::results::{ProgramCause, Sample};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::timeline::{Kind, Phase, Probe};

const US: u64 = 1_000_000;
const READ: u64 = 25 * US;
const PROGRAM: u64 = 200 * US;
/// Transfer of a page of 4 KiB at 25 ns per byte.
const DATA: u64 = 102_400_000;
/// Command and address cycles of one plane.
const COMMAND: u64 = 7 * 25_000;

/// Returns a device of one die with four planes. A mapping unit is a page.
fn die(overrides: &[&str]) -> Device {
    let base = [
        "geometry.channels=1",
        "geometry.chips=1",
        "geometry.planes=4",
        "nand.concurrency=plane-reads",
        "bus.command_cycles={ read = 7, program = 7, erase = 7 }",
    ];
    common::device(&[&base, overrides].concat())
}

fn write(device: &Device, first: u64, count: u32) -> Request {
    Request { tag: first, ..units(device, Operation::Write, first, count) }
}

fn read(device: &Device, first: u64) -> Request {
    Request { tag: first, ..units(device, Operation::Read, first, 1) }
}

/// Submits requests at the given times and returns the times of completion by tag.
fn play(device: &mut Device, script: &[(u64, Request)]) -> Vec<(u64, u64)> {
    script.iter().for_each(|&(at, request)| submit(device, Time(at), request));
    let mut ends: Vec<_> = drain(device).iter().map(|done| (done.request.tag, done.finish.0)).collect();
    ends.sort_unstable();
    device.check_invariants().unwrap();
    ends
}

/// Returns the times of completion of reads of units that arrive at the same time, in a device that was filled.
fn reads(overrides: &[&str], script: &[u64]) -> Vec<(u64, u64)> {
    let mut device = die(overrides);
    fill(&mut device, 48);
    let script: Vec<_> = script.iter().map(|&unit| (0, read(&device, unit))).collect();
    play(&mut device, &script)
}

/// Consecutive pages are in consecutive planes. Commands and data share the channel, and the cells work in parallel.
#[test]
fn planes_read_independently() {
    for cell in [READ, 150 * US] {
        let overrides = format!("nand.read={}us", cell / US);
        let end = |number: u64| COMMAND + cell + (number + 1) * DATA;
        assert_eq!(reads(&[&overrides], &[0, 1, 2, 3]), [0, 1, 2, 3].map(|unit| (unit, end(unit))), "{overrides}");
        // Pages of other rows do not matter.
        assert_eq!(reads(&[&overrides], &[0, 6, 41]), [(0, end(0)), (6, end(1)), (41, end(2))]);
        // The second read of a plane waits for the first.
        assert_eq!(reads(&[&overrides], &[2, 10]), [(2, end(0)), (10, end(0) + end(0))]);
    }
    // A read of the fourth plane starts as soon as a plane is idle, not when the die is.
    let mut device = die(&["nand.read=300us"]);
    fill(&mut device, 8);
    let (first, second) = (read(&device, 0), read(&device, 3));
    let alone = COMMAND + 300 * US + DATA;
    assert_eq!(play(&mut device, &[(0, first), (110 * US, second)]), [(0, alone), (3, 110 * US + alone)]);
    // With one command at a time, they follow one another.
    let mut device = die(&["nand.concurrency=die", "allocation={ static = { order = \"plane-die-chip-channel\" } }"]);
    fill(&mut device, 8);
    let script = [0, 1].map(|unit| (0, read(&device, unit)));
    assert_eq!(play(&mut device, &script), [(0, COMMAND + READ + DATA), (1, 2 * (COMMAND + READ + DATA))]);
}

/// A command that waits for the channel follows the data that were requested before it.
#[test]
fn commands_wait_for_the_channel() {
    let mut device = die(&[]);
    fill(&mut device, 8);
    let (first, second) = (read(&device, 0), read(&device, 1));
    let out = COMMAND + READ + DATA;
    let ends = play(&mut device, &[(0, first), (COMMAND + READ + US, second)]);
    assert_eq!(ends, [(0, out), (1, out + COMMAND + READ + DATA)]);
    // Without command cycles, the cells need no channel to start.
    let mut device = die(&["bus.command_cycles={ read = 0, program = 0, erase = 0 }"]);
    fill(&mut device, 8);
    let ends = play(&mut device, &[(0, first), (READ + US, second)]);
    assert_eq!(ends, [(0, READ + DATA), (1, READ + 2 * DATA)]);
}

#[test]
fn a_program_covers_all_planes() {
    let mut device = die(&[]);
    let four = write(&device, 0, 4);
    assert_eq!(play(&mut device, &[(0, four)]), [(0, 4 * (COMMAND + DATA) + PROGRAM)]);
    assert_eq!(device.ftl().counters.pages_programmed[ProgramCause::Host as usize], 4);
    // Three pages of each plane.
    let mut device = die(&["geometry.pages_per_program=3", "geometry.pages=60"]);
    let twelve = write(&device, 0, 12);
    assert_eq!(play(&mut device, &[(0, twelve)]), [(0, 4 * COMMAND + 12 * DATA + PROGRAM)]);
    // A program that is not full is padded.
    let mut device = die(&[]);
    let one = write(&device, 0, 1);
    assert_eq!(play(&mut device, &[(0, one)]), [(0, 4 * (COMMAND + DATA) + PROGRAM)]);
    assert_eq!(device.ftl().counters.pages_programmed[ProgramCause::Padding as usize], 3);
    assert_eq!(device.array().timing().erase_command, Time(4 * COMMAND));
}

/// A wordline of three pages in four planes: pages of one type in all planes, then those of the next type.
#[test]
fn page_types_alternate_by_row() {
    let types = ["nand.cell=tlc", "nand.read=[\"25us\", \"40us\", \"55us\"]", "geometry.pages=60"];
    for more in [&[][..], &["geometry.pages_per_program=3"]] {
        let overrides = [&types[..], more].concat();
        for (unit, cell) in [(0, 25), (3, 25), (4, 40), (7, 40), (8, 55), (11, 55), (12, 25), (47, 55)] {
            assert_eq!(reads(&overrides, &[unit]), [(unit, COMMAND + cell * US + DATA)], "{unit}");
        }
    }
}

/// Reads wait for a program of their die, and a program waits for all reads.
#[test]
fn a_program_excludes_reads_of_all_planes() {
    let program = 4 * (COMMAND + DATA) + PROGRAM;
    let alone = COMMAND + READ + DATA;
    for scheduler in ["scheduler=fcfs", "scheduler=read-first"] {
        let mut device = die(&[scheduler]);
        fill(&mut device, 8);
        let (write, [first, second]) = (write(&device, 8, 4), [0, 1].map(|unit| read(&device, unit)));
        let ends = play(&mut device, &[(0, write), (US, first), (2 * US, second)]);
        assert_eq!(ends, [(0, program + alone), (1, program + alone + DATA), (8, program)]);
        let mut device = die(&[scheduler]);
        fill(&mut device, 8);
        let ends = play(&mut device, &[(0, first), (US, write), (2 * US, second)]);
        // In the order of arrival, the program comes before the second read. Otherwise, the read starts at once.
        let expected = match scheduler {
            "scheduler=fcfs" => [(0, alone), (1, alone + program + alone), (8, alone + program)],
            _ => [(0, alone), (1, alone + DATA), (8, alone + DATA + program)],
        };
        assert_eq!(ends, expected, "{scheduler}");
    }
}

/// A suspended program waits until all planes have read, and for as many reads as `limit` allows.
#[test]
fn planes_read_while_a_program_is_suspended() {
    let suspend = |limit: u32| {
        format!(
            "nand.advanced.suspend={{ program = true, latency = \"5us\", resume = \"3us\", limit = {limit}, lost = \"10us\" }}"
        )
    };
    let begin = 4 * (COMMAND + DATA);
    let at = begin + 50 * US;
    for (limit, served) in [(9, 3), (3, 3), (2, 2), (1, 1)] {
        let mut device = die(&["scheduler=read-first", &suspend(limit)]);
        fill(&mut device, 8);
        let script =
            [(0, write(&device, 8, 4)), (at, read(&device, 0)), (at, read(&device, 1)), (at, read(&device, 7))];
        let read_from = |start: u64, number: u64| start + COMMAND + READ + (number + 1) * DATA;
        let resumed = read_from(at + 5 * US, served - 1) + 3 * US;
        let programmed = resumed + PROGRAM - 50 * US + 10 * US;
        let end = |number: u64| {
            if number < served { read_from(at + 5 * US, number) } else { read_from(programmed, number - served) }
        };
        let ends = play(&mut device, &script);
        assert_eq!(ends, [(0, end(0)), (1, end(1)), (7, end(2)), (8, programmed)], "limit {limit}");
    }
    // A read that arrives while another plane reads joins it.
    let mut device = die(&["scheduler=read-first", &suspend(9)]);
    fill(&mut device, 8);
    let script = [(0, write(&device, 8, 4)), (at, read(&device, 0)), (at + 20 * US, read(&device, 1))];
    let first = at + 5 * US + COMMAND + READ + DATA;
    let programmed = first + DATA + 3 * US + PROGRAM - 40 * US;
    assert_eq!(play(&mut device, &script), [(0, first), (1, first + DATA), (8, programmed)]);
}

/// Reads of garbage collection at one address of all planes overlap. Each row is read after the last one.
#[test]
fn garbage_collection_reads_rows() {
    let mut device = die(&["geometry.blocks=16", "geometry.pages=4", "capacity.spare=0.6"]);
    let count = device.config().logical_units();
    fill(&mut device, count as u32);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    let mut rng = Rng::new(3, "planes");
    for _ in 0..400 {
        let (now, request) = (device.now().0, write(&device, rng.below(count - 3), 4));
        play(&mut device, &[(now, request)]);
    }
    let slices = device.array().probe().expect("it was set").slices();
    let reads: Vec<_> = slices.iter().filter(|slice| (slice.phase, slice.kind) == (Phase::Cell, Kind::Read)).collect();
    let mut together = 0;
    for pair in reads.windows(2) {
        let [first, next] = [pair[0], pair[1]];
        if first.ppn / 4 == next.ppn / 4 {
            assert_eq!((next.start - first.start).0, COMMAND, "{first:?} {next:?}");
            assert!(first.plane < next.plane);
            together += 1;
        } else {
            assert!(next.start >= first.end, "{first:?} {next:?}");
        }
    }
    assert!(together > 100, "{together} of {}", reads.len());
}

/// The FTL sees a die as one plane, whose blocks have the pages of all planes.
#[test]
fn blocks_of_all_planes_are_one() {
    let device = die(&["geometry.pages_per_program=3", "geometry.pages=60"]);
    let config = device.config();
    assert_eq!((config.total_planes(), config.physical_planes(), config.total_blocks()), (1, 4, 64));
    assert_eq!((config.units_per_block(), config.units_per_program()), (240, 12));
    assert_eq!(config.physical_bytes(), 64 * 240 * 4096);
    // In SLC mode, a program fills one page of each plane.
    let cached = ["nand.cell=tlc", "nand.slc_mode={ read = \"10us\", program = \"50us\" }", "slc_cache.blocks=4"];
    let device = die(&[&cached[..], &["geometry.pages_per_program=3", "geometry.pages=60"]].concat());
    let slc = device.config().block_sizes()[2];
    assert_eq!((slc.units, slc.program_units, slc.program_pages), (80, 4, 4));
}

/// The times of a die are those of its planes: a program counts for each of them.
#[test]
fn the_time_of_a_die_is_that_of_its_planes() {
    let mut device = die(&[]);
    let written = write(&device, 0, 4);
    play(&mut device, &[(0, written)]);
    let now = device.now().0;
    let script = [(now, read(&device, 0)), (now, read(&device, 1))];
    play(&mut device, &script);
    let mut sample = Sample::default();
    device.sample(device.now(), &mut sample);
    let held = 4 * 4 * (COMMAND + DATA) + (COMMAND + DATA) + (COMMAND + 2 * DATA - COMMAND);
    assert_eq!(sample.dies, [[(4 * PROGRAM + 2 * READ) as i64, held as i64]]);
    assert_eq!(sample.luns, [device.now().0 as i64]);
}

/// The parts of the latencies of reads that overlap add up.
#[test]
fn breakdowns_of_reads_that_overlap_add_up() {
    for overrides in [&[][..], &["scheduler=read-first", "nand.advanced.suspend={ program = true, latency = \"5us\" }"]]
    {
        let mut device = die(overrides);
        fill(&mut device, 24);
        let mut requests: Vec<Request> = [0, 1, 4, 5, 2, 13, 3].map(|unit| read(&device, unit)).to_vec();
        requests.insert(3, write(&device, 8, 4));
        for _ in 0..3 {
            serve(&mut device, &requests);
        }
    }
}

#[test]
fn options_of_single_planes_are_refused() {
    let planes = ["geometry.planes=2", "nand.concurrency=plane-reads"];
    for (option, path) in [
        ("nand.advanced.copy_back=wise", "nand.advanced.copy_back"),
        ("nand.advanced.multi_plane_program=wise", "nand.advanced.multi_plane_program"),
        ("nand.advanced.multi_plane_read=true", "nand.advanced.multi_plane_read"),
        ("nand.advanced.multi_plane_erase=true", "nand.advanced.multi_plane_erase"),
        ("nand.advanced.cache_read=true", "nand.advanced.cache_read"),
        ("geometry.mapping_unit=8KiB", "geometry.mapping_unit"),
    ] {
        let text = refusal(&[planes[0], planes[1], option]);
        assert!(text.contains(path) && text.contains("plane-reads"), "{text}");
    }
    // A die of one plane works as with "die".
    let mut one = common::device(&["nand.concurrency=plane-reads"]);
    let mut die = common::device::<&str>(&[]);
    let request = write(&one, 0, 9);
    assert_eq!(play(&mut one, &[(0, request)]), play(&mut die, &[(0, request)]));
}
