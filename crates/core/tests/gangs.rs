//! Gangs of packages and pairs of planes: times computed by hand, to the picosecond.
//!
//! Times of the device: page read 25 us, program 200 us, erase 1500 us. A page of 4096 B takes 102.4 us on the channel
//! at 25 ns per byte.

use crate::common::{self, drain, fill, refusal, submit, units};
use floatgate_core::internals::{Gang, GangMode};
use floatgate_core::mapping::Location;
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::summary::GangUse;
use floatgate_core::timeline::{Kind, Phase, Probe};

const US: u64 = 1_000_000;
const READ: u64 = 25 * US;
const PROGRAM: u64 = 200 * US;
const DATA: u64 = 102_400_000;
/// Unloaded times of a program and of a read.
const WRITTEN: u64 = DATA + PROGRAM;
const FETCHED: u64 = READ + DATA;

const MODES: [&str; 4] = ["serial", "interleaved", "asynchronous", "synchronous"];

/// Returns a device of four packages with one plane each, in a gang. Units go to the packages in turn.
fn gang(mode: &str, overrides: &[&str]) -> Device {
    let gang = format!("gang={{ width = 4, mode = \"{mode}\" }}");
    let base = ["geometry.channels=4", "geometry.chips=1", "nand.concurrency=chip", gang.as_str()];
    common::device(&[&base, overrides].concat())
}

fn write(device: &Device, first: u64, count: u32) -> Request {
    Request { tag: first, ..units(device, Operation::Write, first, count) }
}

fn read(device: &Device, first: u64, count: u32) -> Request {
    Request { tag: 100 + first, ..units(device, Operation::Read, first, count) }
}

/// Submits requests at the given times and returns the times of completion by tag.
fn play(device: &mut Device, script: &[(u64, Request)]) -> Vec<(u64, u64)> {
    script.iter().for_each(|&(at, request)| submit(device, Time(at), request));
    let mut ends: Vec<_> = drain(device).iter().map(|done| (done.request.tag, done.finish.0)).collect();
    ends.sort_unstable();
    ends
}

/// Returns the ends of four writes to the four packages, all submitted at time 0.
fn four_writes(device: &mut Device) -> Vec<u64> {
    let script: Vec<_> = (0..4).map(|unit| (0, write(device, unit, 1))).collect();
    play(device, &script).into_iter().map(|(_, end)| end).collect()
}

#[test]
fn a_serial_gang_executes_one_operation_at_a_time() {
    let mut device = gang("serial", &[]);
    assert_eq!(device.array().luns(), 1);
    assert_eq!(four_writes(&mut device), [1, 2, 3, 4].map(|count| count * WRITTEN));
    let mut device = gang("serial", &[]);
    fill(&mut device, 8);
    let script = [(0, read(&device, 0, 1)), (0, read(&device, 1, 1))];
    assert_eq!(play(&mut device, &script), [(100, FETCHED), (101, 2 * FETCHED)]);
}

#[test]
fn the_packages_of_an_interleaved_gang_share_only_the_bus() {
    let mut device = gang("interleaved", &[]);
    assert_eq!((device.array().luns(), device.config().buses()), (4, 1));
    assert_eq!(four_writes(&mut device), [1, 2, 3, 4].map(|count| count * DATA + PROGRAM));
    let mut device = gang("interleaved", &[]);
    fill(&mut device, 8);
    let script = [(0, read(&device, 0, 1)), (0, read(&device, 1, 1))];
    assert_eq!(play(&mut device, &script), [(100, FETCHED), (101, FETCHED + DATA)]);
}

#[test]
fn the_packages_of_an_asynchronous_gang_share_only_their_control() {
    let mut device = gang("asynchronous", &[]);
    assert_eq!((device.array().luns(), device.config().buses()), (4, 4));
    assert_eq!(four_writes(&mut device), [WRITTEN; 4]);
    // Operations of all kinds proceed side by side.
    let mut device = gang("asynchronous", &[]);
    fill(&mut device, 8);
    let script = [
        (0, read(&device, 0, 1)),
        (US, read(&device, 1, 1)),
        (2 * US, write(&device, 2, 1)),
        (3 * US, read(&device, 3, 1)),
    ];
    let ends = [(2, 2 * US + WRITTEN), (100, FETCHED), (101, US + FETCHED), (103, 3 * US + FETCHED)];
    assert_eq!(play(&mut device, &script), ends);
    // Eight cycles of 25 ns for the command and address of a program, on the lines that all packages share.
    let cycles = ["bus.command_cycles={ read = 6, program = 8, erase = 5 }", "bus.command_cycle=25ns"];
    let (command, of_read) = (8 * 25_000, 6 * 25_000);
    let mut device = gang("asynchronous", &cycles);
    assert_eq!(four_writes(&mut device), [1, 2, 3, 4].map(|count| count * command + WRITTEN));
    // Data do not need the lines: a command can follow as soon as the last one has been sent.
    let mut device = gang("asynchronous", &cycles);
    fill(&mut device, 8);
    let script = [(0, write(&device, 0, 1)), (command / 2, read(&device, 1, 1)), (US, read(&device, 2, 1))];
    let ends = [(0, command + WRITTEN), (101, command + of_read + FETCHED), (102, US + of_read + FETCHED)];
    assert_eq!(play(&mut device, &script), ends);
}

/// "A long running operation such as block erasure can be performed on one element while reads or writes are proceeding
/// on others" (Section 3.3).
#[test]
fn only_the_package_that_collects_garbage_is_held() {
    for hard in [1, 3] {
        let hard = format!("gc.hard_threshold={hard}");
        let small = ["geometry.blocks=16", "geometry.pages=8", "capacity.spare=0.5", "gc.soft_threshold=3", &hard];
        let mut device = gang("asynchronous", &small);
        let count = device.config().logical_units();
        fill(&mut device, count as u32);
        let mut rng = Rng::new(3, "gang");
        let mut held = 0;
        for _ in 0..300 {
            // Units of the first package are overwritten, and one of another package is read.
            let (start, unit) = (device.now().0, 4 * rng.below(count / 4));
            let other = 4 * rng.below(count / 4) + 1 + rng.below(3);
            let writes = [0, 1, 2].map(|at| (start + at, write(&device, unit, 1)));
            writes.iter().for_each(|&(at, request)| submit(&mut device, Time(at), request));
            let read = read(&device, other, 1);
            submit(&mut device, Time(start + US), read);
            for done in drain(&mut device) {
                let took = (done.finish - done.request.arrival).ps();
                match done.request.operation {
                    Operation::Read => assert_eq!(took, FETCHED, "a read of another package waits for nothing"),
                    _ => held += u64::from(took > 3 * WRITTEN),
                }
            }
        }
        assert!(device.ftl().counters.victims > 50 && held > 50, "writes of the package wait for its collection");
    }
}

const BY_CHANNEL: &str = "allocation={ dynamic = { scope = \"channel\" } }";

#[test]
fn a_gang_takes_the_oldest_write_of_its_pools() {
    // Units 0, 4 and 8 belong to the pool of the first package, and unit 1 to that of the second.
    let ends = |mode: &str| {
        let mut device = gang(mode, &[BY_CHANNEL]);
        let script: Vec<_> = [0, 4, 8, 1].map(|unit| (0, write(&device, unit, 1))).into();
        let ends = play(&mut device, &script);
        let plane = |unit| match device.ftl().map.get(Lpn(unit)) {
            Location::Flash(ppn) => device.ftl().blocks.plane_of(device.ftl().blocks.block_of(ppn)).0,
            location => panic!("unit {unit} is at {location:?}"),
        };
        assert_eq!([0, 4, 8, 1].map(plane), [0, 0, 0, 1], "{mode}");
        ends
    };
    assert_eq!(ends("serial"), [(0, WRITTEN), (1, 4 * WRITTEN), (4, 2 * WRITTEN), (8, 3 * WRITTEN)]);
    assert_eq!(ends("asynchronous"), [(0, WRITTEN), (1, WRITTEN), (4, 2 * WRITTEN), (8, 3 * WRITTEN)]);
    // The pages of a request go to all pools.
    let mut device = gang("asynchronous", &[BY_CHANNEL]);
    let all = write(&device, 0, 4);
    assert_eq!(play(&mut device, &[(0, all)]), [(0, WRITTEN)]);
}

#[test]
fn pools_of_a_channel_work_like_static_allocation() {
    let of = |mode: &str, options: &[&str]| {
        let mut device = gang(mode, options);
        let count = device.config().logical_units();
        fill(&mut device, count as u32);
        let mut rng = Rng::new(2, "gang");
        let mut play = |device: &mut Device| {
            let script: Vec<_> = (0..8)
                .map(|_| match rng.below(3) {
                    0 => (device.now().0, read(device, rng.below(count), 1)),
                    _ => (device.now().0, write(device, rng.below(count), 1)),
                })
                .collect();
            script.iter().for_each(|&(at, request)| submit(device, Time(at), request));
            drain(device).iter().map(|done| (done.request.lba, done.finish)).collect::<Vec<_>>()
        };
        let ends: Vec<_> = (0..200).flat_map(|_| play(&mut device)).collect();
        (ends, device.ftl().counters.victims)
    };
    let small = ["geometry.blocks=16", "geometry.pages=8", "capacity.spare=0.5"];
    let with = |allocation| of("serial", &[&small[..], &[allocation]].concat());
    let (ends, victims) = with(BY_CHANNEL);
    assert_eq!((&ends, victims), (&with("allocation=static").0, victims));
    assert!(victims > 100);
    // Reads have a rank of their own here, and no garbage is collected.
    let with = |allocation| of("asynchronous", &["scheduler=read-first", allocation]);
    assert_eq!(with(BY_CHANNEL), with("allocation=static"));
    assert_eq!(with(BY_CHANNEL).1, 0);
}

#[test]
fn a_synchronous_gang_is_one_package_with_large_pages() {
    let mut device = gang("synchronous", &[]);
    let config = device.config();
    assert_eq!((config.total_planes(), config.page_bytes(), config.unit_bytes()), (1, 16384, 16384));
    assert_eq!(config.physical_bytes(), 4 * 64 * 64 * 4096);
    // A page in each package takes the time of one page.
    let whole = write(&device, 0, 1);
    assert_eq!(play(&mut device, &[(0, whole)]), [(0, WRITTEN)]);
    // A write of a quarter reads the page first.
    let start = device.now().0;
    let quarter = Request { tag: 1, ..Request::new(Time::ZERO, Operation::Write, 0, 8) };
    assert_eq!(play(&mut device, &[(start, quarter)]), [(1, start + FETCHED + WRITTEN)]);
    // Spare bytes are transferred by all packages at once.
    let mut device = gang("synchronous", &["geometry.spare_size=128B", "bus.transfer_spare=true"]);
    let whole = write(&device, 0, 1);
    assert_eq!(play(&mut device, &[(0, whole)]), [(0, (4096 + 128) * 25_000 + PROGRAM)]);
}

#[test]
fn a_gang_of_one_package_changes_nothing() {
    let alone = {
        let mut device = common::device(&["geometry.channels=4", "geometry.chips=1", "nand.concurrency=chip"]);
        four_writes(&mut device)
    };
    for mode in MODES {
        let mut device = gang(mode, &["gang.width=1"]);
        assert_eq!(device.config().gang.map(|gang| gang.width), Some(1));
        assert_eq!(four_writes(&mut device), alone, "{mode}");
    }
}

#[test]
fn the_wiring_of_independent_packages_does_not_change_addresses() {
    let overrides = ["geometry.channels=4", "geometry.chips=1", "nand.concurrency=chip"];
    let plain = common::device_config(&overrides);
    for mode in MODES {
        let set = format!("gang={{ width = 4, mode = \"{mode}\" }}");
        let config = common::device_config(&[&overrides[..], &[&set]].concat());
        assert_eq!(config.shape() == plain.shape(), mode != "synchronous", "{mode}");
    }
}

#[test]
fn a_fused_partial_write_transfers_only_the_new_sectors() {
    // A quarter of the page of a gang: the page is read into the registers, the sectors follow, and it is programmed.
    let set = ["nand.advanced.copy_back_modify=true", "geometry.mapping_unit=page"];
    let mut device = gang("synchronous", &set);
    fill(&mut device, 8);
    let quarter = Request { tag: 1, ..Request::new(Time::ZERO, Operation::Write, 0, 8) };
    assert_eq!(play(&mut device, &[(0, quarter)]), [(1, READ + DATA / 4 + PROGRAM)]);
    // A read of the sectors that it keeps waits for its end. A write of the whole page is a program.
    let start = device.now().0;
    let rest = Request { tag: 2, ..Request::new(Time::ZERO, Operation::Read, 8, 8) };
    let ends = play(&mut device, &[(start, quarter), (start + US, rest)]);
    assert_eq!(ends, [(1, start + READ + DATA / 4 + PROGRAM), (2, start + READ + DATA / 4 + PROGRAM)]);
    let start = device.now().0;
    let whole = write(&device, 0, 1);
    assert_eq!(play(&mut device, &[(start, whole)]), [(0, start + WRITTEN)]);
    // With command cycles, and a channel that another package uses when the sectors are due.
    let cycles = "bus.command_cycles={ read = 7, program = 8, erase = 5 }";
    let mut device = common::device(&["geometry.channels=1", cycles, set[0], set[1]]);
    fill(&mut device, 8);
    let half = Request { tag: 1, ..Request::new(Time::ZERO, Operation::Write, 0, 4) };
    let other = write(&device, 1, 1);
    let (read, program) = (7 * 25_000, 8 * 25_000);
    let free = read + program + DATA;
    let ends = [(1, free.max(read + READ) + program + DATA / 2 + PROGRAM)];
    assert_eq!(play(&mut device, &[(0, half), (0, Request { tag: 7, ..other })])[..1], ends);
}

/// Returns a device of one channel and one chip with a die of four planes. Units go to the planes in turn.
fn four_planes(overrides: &[&str]) -> Device {
    let base = [
        "geometry.channels=1",
        "geometry.chips=1",
        "geometry.planes=4",
        "allocation={ static = { order = \"plane-die-chip-channel\" } }",
    ];
    common::device(&[&base, overrides].concat())
}

#[test]
fn pairs_of_planes_program_independently() {
    let two_plane = "nand.advanced.multi_plane_program=wise";
    // A die that executes one two-plane command at a time.
    let mut device = four_planes(&[two_plane, "nand.advanced.plane_pairs=true"]);
    let all = write(&device, 0, 4);
    assert_eq!(play(&mut device, &[(0, all)]), [(0, 2 * (2 * DATA + PROGRAM))]);
    // Two pairs: the second one takes its data while the first one programs.
    let mut device = four_planes(&[two_plane, "nand.concurrency=plane-pair"]);
    assert_eq!((device.array().luns(), device.array().units()), (2, 2));
    assert_eq!(play(&mut device, &[(0, all)]), [(0, 4 * DATA + PROGRAM)]);
    // Without two-plane commands, planes 0 and 1 program one after the other, and 2 and 3 at the same time.
    let mut device = four_planes(&["nand.concurrency=plane-pair"]);
    assert_eq!(play(&mut device, &[(0, all)]), [(0, 2 * WRITTEN + DATA)]);
    // Transfers that are short compared with the program time: the pairs double the writes of the die.
    let fast = ["bus.protocol={ nv-ddr = \"4GT/s\" }", two_plane];
    let rate = |level: &str| {
        let mut device = four_planes(&[&fast[..], &[level]].concat());
        let script: Vec<_> = (0..100).map(|step| (0, write(&device, 4 * step, 4))).collect();
        play(&mut device, &script).iter().map(|(_, end)| *end).max().map(|end| 400.0 / end as f64).unwrap()
    };
    let (one, pairs) = (rate("nand.advanced.plane_pairs=true"), rate("nand.concurrency=plane-pair"));
    common::assert_close("writes of two pairs", pairs / one, 2.0, 0.02);
}

/// Agrawal et al. 2008, Figure 2: copying between packages at the time of a transfer per page.
#[test]
fn copies_between_packages_take_the_time_of_a_transfer() {
    let packages = ["geometry.channels=2", "geometry.chips=2", "geometry.planes=4", "nand.concurrency=plane-pair"];
    let order = "allocation={ static = { order = \"plane-die-chip-channel\" } }";
    let mut device = common::device(&[&packages[..], &[order]].concat());
    fill(&mut device, 16 * 8);
    // Units 0 to 7 of each 16 are in the source package. The order visits its four pairs of planes in turn.
    let source: Vec<u64> = (0..32).map(|copy| copy / 8 * 16 + [0, 2, 4, 6, 1, 3, 5, 7][copy as usize % 8]).collect();
    source.iter().for_each(|&unit| device.submit(Time::ZERO, read(&device, unit, 1)));
    let (mut ends, mut done) = (Vec::new(), Vec::new());
    while let Some(at) = device.next_event() {
        device.advance(at);
        device.take_completions(&mut done);
        for completion in done.drain(..) {
            match completion.request.operation {
                Operation::Read => {
                    let request = write(&device, completion.request.tag - 100 + 8, 1);
                    device.submit(at, request);
                }
                _ => ends.push(completion.finish.0),
            }
        }
    }
    let expected: Vec<u64> = (1..=32).map(|copy| READ + copy * DATA + WRITTEN).collect();
    assert_eq!(ends, expected);
}

/// Pages of victims in one package move to the other one, by a job of garbage collection for each victim.
#[test]
fn garbage_collection_copies_between_packages_in_the_time_of_a_transfer() {
    let copied = |victims: u32| -> Vec<u64> {
        let mut device = common::device(&[
            "geometry.channels=2",
            "geometry.chips=2",
            "geometry.planes=4",
            "nand.concurrency=plane-pair",
            "geometry.blocks=16",
            "geometry.pages=8",
            "capacity.spare=0.5",
            "allocation=dynamic",
            "gc.scope=pool",
            "gc.destination=pool",
            "gc.background={ idle = \"1ms\", until = 16 }",
        ]);
        let mut units = (0..).step_by(8).map(|first| (first..first + 8).map(Lpn));
        let mut block = |plane: u32, invalid: usize| {
            let units = units.next().expect("more units");
            let ftl = device.ftl_mut();
            units.clone().for_each(|unit| ftl.write_to(PlaneId(plane), unit));
            units.take(invalid).for_each(|unit| ftl.trim(unit));
        };
        // Half of the pages of the victims are invalid. Up to four victims are in different pairs of planes, and so are
        // their targets: the planes of package 1 with the most free blocks.
        let step = if victims == 8 { 1 } else { 2 };
        let is_victim = |plane: &u32| plane.is_multiple_of(step) && *plane < step * victims;
        (0..8).filter(is_victim).for_each(|plane| block(plane, 4));
        (0..8).filter(|plane| !is_victim(plane)).for_each(|plane| block(plane, 0));
        (8..16u32).filter(|plane| !plane.is_multiple_of(step)).for_each(|plane| block(plane, 0));
        device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
        let start = FETCHED + 1000 * US;
        let request = read(&device, 7, 1);
        play(&mut device, &[(0, request)]);
        let counters = &device.ftl().counters;
        assert_eq!((counters.background.victims, counters.blocks_erased), (victims.into(), victims.into()));
        let slices = device.array().probe().expect("a probe is set").slices();
        let programs = slices.iter().filter(|slice| slice.kind == Kind::Program && slice.phase == Phase::Cell);
        let mut ends: Vec<u64> = programs.map(|slice| slice.end.0 - start).collect();
        ends.sort_unstable();
        ends
    };
    // Eight victims keep the channels busy.
    assert_eq!(copied(8), (1..=32).map(|copy| READ + copy * DATA + WRITTEN).collect::<Vec<_>>());
    // A job moves one page at a time: with up to four victims, each page waits for the last one of its victim.
    for victims in [1, 2, 4] {
        let copy = |round, victim| round * (FETCHED + WRITTEN) + READ + victim * DATA + WRITTEN;
        let expected: Vec<_> = (0..4).flat_map(|round| (1..=victims).map(move |victim| copy(round, victim))).collect();
        assert_eq!(copied(victims as u32), expected, "{victims} victims");
    }
}

#[test]
fn results_have_the_queue_of_each_gang() {
    // Four writes for two serial gangs of two packages: one starts in each, and one waits for its end.
    let overrides = ["geometry.channels=4", "geometry.chips=1", "nand.concurrency=chip", "gang.width=2"];
    let mut device = common::device(&overrides);
    let mut unit = 0;
    let next = move || {
        unit += 1;
        Request { tag: unit, ..Request::new(Time::ZERO, Operation::Write, (unit - 1) * 8, 8) }
    };
    let outcome = common::Load::open(4, next).run(&mut device);
    let gangs = common::history::summary_of(&outcome, &device).gangs;
    let busy = |ps: u64, of: u64| Some(ps as f64 / of as f64);
    let expected = GangUse {
        operations: 2,
        queue_length: Some(0.5),
        longest_queue: 1,
        bus: busy(2 * DATA, 2 * WRITTEN),
        cell: busy(2 * PROGRAM, 2 * 2 * WRITTEN),
    };
    assert_eq!(gangs, [expected.clone(), expected]);
}

#[test]
fn resolved_devices_keep_their_gangs() {
    for mode in MODES {
        let device = gang(mode, &["geometry.spare_size=64B"]);
        let (config, resolved) = (device.config(), device.config().resolved());
        assert_eq!((resolved.digest(), resolved.unit_bytes()), (config.digest(), config.unit_bytes()), "{mode}");
        let text = toml::to_string(&resolved).unwrap();
        let again = floatgate_core::device_file::from_toml(&text, "again.toml", &[]).unwrap();
        assert_eq!(again.digest(), config.digest(), "{mode}");
    }
    let default = gang("serial", &[]).config().gang;
    assert_eq!(default, Some(Gang { width: 4, mode: GangMode::default() }));
}

#[test]
fn impossible_gangs_are_refused_with_a_value_that_works() {
    let four = "geometry.channels=4";
    let text = refusal(&[four, "gang.width=3"]);
    assert!(text.contains("must divide geometry.channels = 4; use 2"), "{text}");
    let text = refusal(&[four, "gang={ width = 2, mode = \"serial\" }"]);
    assert!(text.contains("use \"chip\""), "{text}");
    let text = refusal(&[four, "gang={ width = 2, mode = \"serial\" }", "nand.concurrency=chip"]);
    assert!(text.contains("use geometry.chips = 2"), "{text}");
    let text = refusal(&[four, "gang={ width = 4, mode = \"synchronous\" }", "geometry.page_size=8MiB"]);
    assert!(text.contains("at most 16 MiB; use 2"), "{text}");
    let chip = ["nand.concurrency=chip", "geometry.chips_per_package=2", "geometry.dies=2"];
    let pools = "allocation={ dynamic = { scope = { channels = 6 } } }";
    let text = refusal(&[&chip[..], &["geometry.channels=12", "gang.width=4", pools]].concat());
    assert!(text.contains("pools consist of whole gangs, or gangs of whole pools; use { channels = 4 }"), "{text}");
}
