//! Faults, computed by hand: their times, the programs that they cause, and the status that the host receives. Random
//! devices with faults are in `model/`.

use crate::common::{self, build, device_config, drain, submit, units};
use floatgate_core::device_file::{InjectedFault, from_toml};
use floatgate_core::flash::{BlockState, Role};
use floatgate_core::internals::ReadCause;
use floatgate_core::mapping::Location;
use floatgate_core::results::ProgramCause;
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

/// A plane whose blocks have three pages. A page takes 102.4 us on the channel and 200 us in the cells.
const SMALL: [&str; 6] = [
    "geometry.channels=1",
    "geometry.chips=1",
    "geometry.blocks=12",
    "geometry.pages=3",
    "capacity={ logical = \"12KiB\" }",
    "gc.soft_threshold=5",
];
const WRITE: Time = Time(302_400_000);

fn device(overrides: &[&str], more: &[&str]) -> Device {
    let all: Vec<&str> = overrides.iter().chain(more).copied().collect();
    build(device_config(&all), Options { seed: 1, verify: true, ..Options::default() })
}

/// Serves requests of whole units. Each is submitted when the previous one has completed.
fn serve(device: &mut Device, operation: Operation, lpns: &[u64]) -> Vec<Completion> {
    let mut completions = Vec::new();
    for &lpn in lpns {
        let request = Request { tag: 1 + lpn, ..units(device, operation, lpn, 1) };
        let now = device.now();
        submit(device, now, request);
        while device.outstanding() > 0 {
            let at = device.next_event().unwrap_or_else(|| panic!("{}", device.explain_stall()));
            device.advance(at);
        }
        device.take_completions(&mut completions);
    }
    completions
}

fn place(device: &Device, lpn: u32) -> Ppn {
    match device.ftl().map.get(Lpn(lpn)) {
        Location::Flash(place) => place,
        other => panic!("unit {lpn} is at {other:?}"),
    }
}

#[test]
fn a_failed_program_takes_a_program_time_and_is_repeated() {
    let mut device = device(&SMALL, &["faults.inject=[\"program 0/0/2\"]"]);
    let completions = serve(&mut device, Operation::Write, &[0, 1, 2]);
    let finished: Vec<Time> = completions.iter().map(|completion| completion.finish).collect();
    // The third unit is programmed twice in succession.
    assert_eq!(finished, [WRITE, Time(2 * WRITE.0), Time(4 * WRITE.0)]);
    assert!(completions.iter().all(|completion| completion.status == Status::Ok));
    drain(&mut device);
    let (ftl, counters) = (device.ftl(), &device.ftl().counters);
    // Units 0 and 1 are in pages 0 and 1 of block 0. Unit 2 is in page 2, which fails, and then in page 0 of block 1.
    // Units 0 and 1 are read and moved to pages 0 and 1 of block 2, the frontier of garbage collection.
    assert_eq!([0, 1, 2].map(|lpn| place(&device, lpn)), [Ppn(6), Ppn(7), Ppn(3)]);
    assert_eq!(counters.pages_programmed[ProgramCause::Host as usize], 4);
    assert_eq!(counters.pages_programmed[ProgramCause::Gc as usize], 2);
    assert_eq!(counters.pages_programmed_total(), 6);
    assert_eq!(counters.pages_read[ReadCause::Gc as usize], 2);
    let faults = &counters.faults;
    assert_eq!((faults.programs_failed, faults.units_failed, faults.blocks_grown_bad), (1, 1, 1));
    assert_eq!((ftl.blocks.block(BlockId(0)).state, ftl.blocks.good(PlaneId(0))), (BlockState::Bad, 11));
    assert_eq!((counters.blocks_erased, counters.victims), (0, 0));
    device.check_invariants().unwrap();
}

#[test]
fn a_failed_erase_takes_an_erase_time_and_retires_the_block() {
    let mut device = device(&SMALL, &["faults.inject=[\"erase\"]"]);
    // The nineteenth write opens the seventh block and leaves five free ones. Block 0 has no valid units, and its erase
    // starts after the program of that write. It ends at 19 x 302.4 us + 1500 us.
    let lpns: Vec<u64> = (0..19).map(|index| index % 3).collect();
    serve(&mut device, Operation::Write, &lpns);
    assert_eq!(device.now(), Time(19 * WRITE.0));
    let end = Time(19 * WRITE.0 + 1_500_000_000);
    device.advance(Time(end.0 - 1));
    assert_eq!(device.ftl().counters.faults.erases_failed, 0);
    device.advance(end);
    let counters = &device.ftl().counters;
    assert_eq!((counters.faults.erases_failed, counters.blocks_erased), (1, 0));
    assert_eq!(device.ftl().blocks.block(BlockId(0)).state, BlockState::Bad);
    assert_eq!(device.ftl().blocks.free_blocks(PlaneId(0), Role::Data), 5);
    drain(&mut device);
    // Another victim is erased instead.
    assert_eq!((device.ftl().counters.blocks_erased, device.ftl().blocks.free_blocks(PlaneId(0), Role::Data)), (1, 6));
    device.check_invariants().unwrap();
}

#[test]
fn an_uncorrectable_unit_stays_an_error_until_it_is_overwritten() {
    let mut device = device(&SMALL, &["faults.inject=[\"read 0/0/1\"]"]);
    serve(&mut device, Operation::Write, &[0, 1]);
    let mut status = |operation, lpns: &[u64]| -> Vec<Status> {
        serve(&mut device, operation, lpns).iter().map(|completion| completion.status).collect()
    };
    assert_eq!(status(Operation::Read, &[0, 1, 1]), [Status::Ok, Status::Uncorrectable, Status::Uncorrectable]);
    assert_eq!(status(Operation::Write, &[1]), [Status::Ok]);
    assert_eq!(status(Operation::Read, &[1]), [Status::Ok]);
    let faults = &device.ftl().counters.faults;
    assert_eq!((faults.uncorrectable, faults.units_lost), ([2, 0, 0], 1));
}

#[test]
fn a_partial_write_of_an_uncorrectable_unit_is_an_error_and_so_are_its_reads() {
    let mut device = device(&SMALL, &["faults.inject=[\"read 0/0/0\"]"]);
    serve(&mut device, Operation::Write, &[0]);
    let part = Request { sectors: 1, tag: 9, ..units(&device, Operation::Write, 0, 1) };
    submit(&mut device, Time(WRITE.0), part);
    let done = drain(&mut device);
    assert_eq!(done.iter().map(|done| done.status).collect::<Vec<_>>(), [Status::Uncorrectable]);
    assert_eq!(serve(&mut device, Operation::Read, &[0])[0].status, Status::Uncorrectable);
    assert_eq!(device.ftl().counters.faults.uncorrectable, [1, 0, 1]);
}

#[test]
fn a_trim_does_not_change_the_errors_of_earlier_reads() {
    let mut device = device(&SMALL, &["faults.inject=[\"read 0/0/0\"]"]);
    serve(&mut device, Operation::Write, &[0]);
    // The second write keeps sectors from the first, which keeps some that cannot be read. The reads wait for them.
    let sector = |tag, operation, lba| Request { sectors: 1, tag, ..Request::new(WRITE, operation, lba, 1) };
    submit(&mut device, WRITE, sector(9, Operation::Write, 0));
    submit(&mut device, WRITE, sector(10, Operation::Write, 1));
    submit(&mut device, WRITE, sector(11, Operation::Read, 7));
    submit(&mut device, WRITE, sector(12, Operation::Read, 1));
    let trim = Request { tag: 13, ..units(&device, Operation::Trim, 0, 1) };
    submit(&mut device, WRITE, trim);
    let mut ends: Vec<(u64, Status)> = drain(&mut device).iter().map(|done| (done.request.tag, done.status)).collect();
    ends.sort_unstable_by_key(|end| end.0);
    let (ok, lost) = (Status::Ok, Status::Uncorrectable);
    assert_eq!(ends, [(9, lost), (10, ok), (11, lost), (12, ok), (13, ok)]);
    assert_eq!(serve(&mut device, Operation::Read, &[0])[0].status, ok);
}

#[test]
fn a_lost_unit_stays_lost_when_it_is_moved() {
    // The failed program causes block 0 to be emptied. The read of its page 0 fails.
    let mut device = device(&SMALL, &["faults.inject=[\"program 0/0/2\", \"read 0/0/0\"]"]);
    serve(&mut device, Operation::Write, &[0, 1, 2]);
    drain(&mut device);
    assert_eq!(place(&device, 0), Ppn(6));
    let read: Vec<Status> = serve(&mut device, Operation::Read, &[0, 1, 2]).iter().map(|done| done.status).collect();
    assert_eq!(read, [Status::Uncorrectable, Status::Ok, Status::Ok]);
    assert_eq!(device.ftl().counters.faults.uncorrectable, [1, 1, 0]);
}

#[test]
fn failures_occur_at_the_configured_rates() {
    let more = ["faults={ program_rate = 0.01, read_rate = 0.05 }", "geometry.blocks=256", "capacity.spare=0.9"];
    let mut device = device(&[], &more);
    let units = device.config().logical_units();
    let all: Vec<u64> = (0..units).collect();
    serve(&mut device, Operation::Write, &all);
    drain(&mut device);
    let programs = device.ftl().counters.program_commands as f64;
    let failed = device.ftl().counters.faults.programs_failed as f64;
    let read = serve(&mut device, Operation::Read, &all);
    let lost = read.iter().filter(|done| done.status == Status::Uncorrectable).count() as f64;
    // Within five standard deviations. Moved units are read once more, at the same rate.
    let within = |count: f64, of: f64, rate: f64| (count - of * rate).abs() < 5.0 * (of * rate * (1.0 - rate)).sqrt();
    assert!(within(failed, programs, 0.01), "{failed} of {programs} programs");
    let moved = device.ftl().counters.units_moved() as f64;
    assert!(within(lost, units as f64 + moved, 0.05), "{lost} of {units} reads, {moved} copies");
}

#[test]
fn each_plane_has_the_configured_number_of_bad_blocks_and_never_uses_them() {
    let bad = |seed| -> Vec<usize> {
        let config = device_config(&["faults.factory_bad=10%"]);
        let mut device = build(config, Options { seed, ..Options::default() });
        common::fill(&mut device, 8000);
        let blocks = device.ftl().blocks.all();
        assert!(blocks.iter().filter(|block| block.state == BlockState::Bad).all(|block| block.valid == 0));
        (0..blocks.len()).filter(|&block| blocks[block].state == BlockState::Bad).collect()
    };
    let one = bad(1);
    assert_eq!((0..4).map(|plane| one.iter().filter(|block| **block / 64 == plane).count()).max(), Some(7));
    assert_eq!(one.len(), 28);
    assert_eq!(one, bad(1));
    assert_ne!(one, bad(2));
}

/// Devices with different commands, allocations, mapping schemes and buffers.
const MODES: [&[&str]; 9] = [
    &[],
    &["geometry.pages_per_program=2"],
    &["geometry.planes=2", "nand.advanced.multi_plane_program=wise", "nand.advanced.multi_plane_erase=true"],
    &["nand.advanced.copy_back=blind"],
    &["nand.advanced.cache_program=true"],
    &["geometry.dies=2", "nand.concurrency=command", "nand.advanced.interleave=true"],
    &["allocation={ dynamic = {} }"],
    &["mapping.scheme={ dftl = { cache = \"64B\", entry = \"256B\" } }", "capacity.spare=0.6"],
    &["buffer.capacity=64KiB", "durability.trim_journal=true", "mapping.block_summary={ last_page = \"512B\" }"],
];

/// Overwrites a device until it becomes read-only. Checks that all requests complete, and that reads return every
/// completed write.
fn drive_to_the_end(mode: &[&str], rates: &str) {
    let mut overrides = vec!["geometry.blocks=24", "geometry.pages=16", "capacity.spare=0.5", rates];
    overrides.extend(mode);
    let mut device = device(&[], &overrides);
    let units = device.config().logical_units();
    let mut last = vec![0u32; units as usize];
    let mut answered = 0u64;
    for tag in 1..=40 * units {
        let lpn = (tag * 7919) % units;
        let operation = if tag.is_multiple_of(50) { Operation::Flush } else { Operation::Write };
        let mut request = Request { tag, ..common::units(&device, operation, lpn, 1) };
        if operation == Operation::Flush {
            (request.lba, request.sectors) = (0, 0);
        }
        let now = device.now();
        submit(&mut device, now, request);
        for done in drain(&mut device) {
            answered += 1;
            match done.status {
                Status::Ok if operation == Operation::Write => last[lpn as usize] = tag as u32,
                Status::Ok => {}
                status => assert_eq!(status, Status::ReadOnly, "{mode:?}"),
            }
        }
        assert_eq!(answered, tag, "{mode:?}: {}", device.explain_stall());
        if device.ftl().read_only_since().is_some() && tag.is_multiple_of(97) {
            break;
        }
    }
    assert!(device.ftl().read_only_since().is_some(), "{mode:?} with {rates} did not become read-only");
    device.take_contents();
    for (lpn, version) in last.iter().enumerate().filter(|(_, version)| **version > 0) {
        let read = serve(&mut device, Operation::Read, &[lpn as u64]);
        assert_eq!(read[0].status, Status::Ok, "{mode:?}");
        let contents = device.take_contents().pop().unwrap().1;
        // A later write that was refused may also be returned.
        assert!(contents.iter().all(|held| held >= version), "{mode:?}: unit {lpn} holds {contents:?}, not {version}");
    }
    device.check_invariants().unwrap();
}

#[test]
fn a_device_without_good_blocks_is_read_only() {
    for mode in MODES {
        drive_to_the_end(mode, "faults={ program_rate = 0.05 }");
        drive_to_the_end(mode, "faults={ erase_rate = 0.3 }");
        drive_to_the_end(mode, "faults={ program_rate = 1.0 }");
    }
}

/// Map updates that wait for pages must leave those that a failed translation block needs for its evacuation. Retiring
/// that block frees no block, and the victims of the data regions may wait for these updates.
#[test]
fn failed_translation_blocks_find_pages_for_their_evacuation() {
    let scheme =
        "mapping.scheme={ dftl = { cache = \"16B\", entry = \"512B\", map_spare = 0.25, batch_updates = false } }";
    let shape =
        ["geometry.channels=1", "geometry.chips=1", "geometry.blocks=28", "geometry.pages=12", "gc.soft_threshold=3"];
    let faults = "faults={ program_rate = 0.004 }";
    let mut failed = 0;
    for seed in 0..300 {
        let config = device_config(&[&shape[..], &["capacity.logical=680KiB", scheme, faults]].concat());
        let mut device = build(config, Options { seed, ..Options::default() });
        let units = device.config().logical_units();
        let mut answered = 0;
        for tag in 1..=1500 {
            let write = Request { tag, ..common::units(&device, Operation::Write, tag * 7919 % units, 1) };
            let now = device.now();
            submit(&mut device, now, write);
            while device.outstanding() >= 16 || (tag == 1500 && device.outstanding() > 0) {
                let at = device.next_event().unwrap_or_else(|| panic!("seed {seed}: {}", device.explain_stall()));
                device.advance(at);
            }
            let mut completions = Vec::new();
            device.take_completions(&mut completions);
            answered += completions.len();
        }
        assert_eq!(answered, 1500, "seed {seed}");
        failed += device.ftl().counters.faults.programs_failed;
    }
    assert!(failed > 300, "{failed} programs failed");
}

/// A block that has had all of its erases is filled once more and stays, with `exclude`. No erase fails.
#[test]
fn a_worn_out_block_can_stay_with_its_data() {
    for (endurance, stands) in [("1", 1), ("3", 3)] {
        let endurance = format!("nand.endurance={endurance}");
        let mut device = device(&SMALL, &[&endurance, "faults.wear_out=exclude"]);
        let lpns: Vec<u64> = (0..400).map(|index| index % 3).collect();
        let done = serve(&mut device, Operation::Write, &lpns);
        drain(&mut device);
        assert_eq!(done.last().map(|done| done.status), Some(Status::ReadOnly));
        let (blocks, counters) = (device.ftl().blocks.all(), &device.ftl().counters);
        assert!(blocks.iter().all(|block| block.erases <= stands));
        let worn = || blocks.iter().filter(|block| block.state == BlockState::WornOut);
        assert!(worn().count() > 3 && worn().all(|block| block.erases == stands), "{}", worn().count());
        let counted = (counters.faults.erases_failed, counters.faults.blocks_grown_bad);
        assert_eq!(counted, (0, worn().count() as u64));
        assert!(serve(&mut device, Operation::Read, &[0, 1, 2]).iter().all(|done| done.status == Status::Ok));
        device.check_invariants().unwrap();
    }
}

#[test]
fn a_block_fails_after_the_erases_of_its_endurance() {
    for (endurance, stands) in [("1", 1), ("3", 3)] {
        let endurance = format!("nand.endurance={endurance}");
        let mut device = device(&SMALL, &[&endurance, "faults={}"]);
        // Three units are overwritten in turn, so three writes cause the erase of a block of three pages. All blocks
        // reach their endurance after at most about 12 x 3 x 3 writes.
        let lpns: Vec<u64> = (0..400).map(|index| index % 3).collect();
        let done = serve(&mut device, Operation::Write, &lpns);
        drain(&mut device);
        assert_eq!(done.last().map(|done| done.status), Some(Status::ReadOnly));
        let (blocks, counters) = (device.ftl().blocks.all(), &device.ftl().counters);
        assert!(blocks.iter().all(|block| block.erases <= stands));
        let bad = || blocks.iter().filter(|block| block.state == BlockState::Bad);
        assert!(bad().count() > 3 && bad().all(|block| block.erases == stands), "{}", bad().count());
        assert_eq!(counters.faults.erases_failed, bad().count() as u64);
        assert_eq!(counters.faults.blocks_grown_bad, bad().count() as u64);
        assert_eq!(device.ftl().wear_warning(device.config()), None);
        // All successful writes can be read.
        assert!(serve(&mut device, Operation::Read, &[0, 1, 2]).iter().all(|done| done.status == Status::Ok));
        device.check_invariants().unwrap();
    }
}

#[test]
fn without_faults_nothing_wears_out_but_a_warning_is_given() {
    let lpns: Vec<u64> = (0..400).map(|index| index % 3).collect();
    let worn = |more: &[&str]| {
        let mut device = device(&SMALL, more);
        assert!(serve(&mut device, Operation::Write, &lpns).iter().all(|done| done.status == Status::Ok));
        assert!(device.ftl().counters.blocks_erased > 100);
        device.ftl().wear_warning(device.config())
    };
    let warning = worn(&["nand.endurance=2"]).expect("a warning");
    assert!(warning.starts_with("12 of 12 blocks have had more than nand.endurance = 2 erases"), "{warning}");
    assert_eq!([worn(&[]), worn(&["nand.endurance=0"]), worn(&["nand.endurance=0", "faults={}"])], [None, None, None]);
}

#[test]
fn the_seed_determines_the_failures() {
    let run = |seed| {
        let config = device_config(&["faults={ program_rate = 0.01, erase_rate = 0.02, read_rate = 0.01 }"]);
        let mut device = build(config, Options { seed, ..Options::default() });
        let units = device.config().logical_units();
        let lpns: Vec<u64> = (0..3000).map(|index| index * 31 % units).collect();
        serve(&mut device, Operation::Write, &lpns);
        serve(&mut device, Operation::Read, &lpns);
        (device.now(), device.ftl().counters)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn an_injected_fault_happens_once() {
    let mut device = device(&SMALL, &["faults={}"]);
    device.fail_next("program".parse().unwrap()).unwrap();
    serve(&mut device, Operation::Write, &[0, 1]);
    assert_eq!(device.ftl().counters.faults.programs_failed, 1);
    let beyond: InjectedFault = "program 7".parse().unwrap();
    assert!(device.fail_next(beyond).unwrap_err().contains("the device has 1"));
    let mut plain = common::device(&SMALL);
    assert!(
        plain.fail_next(beyond).is_err() && plain.fail_next("read".parse().unwrap()).unwrap_err().contains("[faults]")
    );
}

#[test]
fn invalid_fault_options_are_refused_with_what_to_do() {
    for (override_, path, what) in [
        ("faults.program_rate=1.5", "faults.program_rate", "from 0 to 1"),
        ("faults.read_rate=-0.1", "faults.read_rate", "from 0 to 1"),
        ("faults.factory_bad=40", "faults.factory_bad", "at most"),
        ("faults.inject=[\"read 9\"]", "faults.inject", "4 planes"),
        ("faults={ inject = [\"wipe 1\"] }", "faults", "program, erase or read"),
    ] {
        let error = from_toml(common::BASE, "test.toml", &[override_.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains(what), "{override_}: {error}");
    }
}
