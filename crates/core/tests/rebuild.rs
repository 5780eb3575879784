//! Rebuilds of uncorrectable pages from their stripe (`superblock.parity` with `faults`): times computed by hand, to
//! the picosecond, and data that survive any single failure.

use crate::common::{Load, build, device_config, fill, read, serve, units};
use floatgate_core::flash::BlockState;
use floatgate_core::internals::ReadCause;
use floatgate_core::mapping::Location;
use floatgate_core::results::{Part, ProgramCause};
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::{Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

const CELL: u64 = 25_000_000;
const DATA: u64 = 4096 * 25_000;
const READ: u64 = CELL + DATA;
const PROGRAM: u64 = 200_000_000;
const DECODE: u64 = 7_000_000;

/// Returns a device of four dies on `channels` channels, with 16 blocks of 8 pages in each and stripes of all dies.
fn device(channels: u32, overrides: &[&str]) -> Device {
    let (channels, chips) = (format!("geometry.channels={channels}"), format!("geometry.chips={}", 4 / channels));
    let base = [
        channels.as_str(),
        &chips,
        "geometry.blocks=16",
        "geometry.pages=8",
        "capacity.spare=0.7",
        "allocation=dynamic",
        "gc.scope=pool",
        "superblock.parity=4",
        "faults={}",
    ];
    let options = Options { seed: 1, verify: true, attribution: true, ..Options::default() };
    build(device_config(&[&base, overrides].concat()), options)
}

/// Returns the place of a unit as the text of a fault of its page.
fn fault_of(device: &Device, unit: u32) -> String {
    let ftl = device.ftl();
    let Location::Flash(ppn) = ftl.map.get(Lpn(unit)) else { panic!("unit {unit} is not in flash") };
    let block = ftl.blocks.block_of(ppn);
    let (plane, index) = (ftl.blocks.plane_of(block), ftl.blocks.index_in_plane(block));
    format!("read {}/{index}/{}", plane.0, ftl.page_in_block(ppn))
}

/// Makes the next read of the page of a unit uncorrectable.
fn fail(device: &mut Device, unit: u32) {
    let fault = fault_of(device, unit).parse().unwrap();
    device.fail_next(fault).unwrap();
}

/// The three other pages arrive at the same time if each die has a channel. On one channel, their cells work at the
/// same time, and they arrive one after another.
#[test]
fn a_rebuild_reads_the_other_pages_of_the_stripe() {
    for (channels, arrival) in [(4, CELL + DATA), (1, CELL + 3 * DATA), (2, CELL + 2 * DATA)] {
        let mut device = device(channels, &[]);
        fill(&mut device, 24);
        fail(&mut device, 5);
        let [(completion, breakdown)] = serve(&mut device, &[read(5)])[..] else { panic!("one read") };
        assert_eq!(completion.status, Status::Ok);
        assert_eq!(completion.finish, Time(READ + arrival), "{channels} channels");
        let parts = [Part::Cell, Part::Bus, Part::Rebuild].map(|part| breakdown.of(part).0);
        assert_eq!(parts, [CELL, DATA, arrival]);
        let counters = &device.ftl().counters;
        let of = [ReadCause::Host, ReadCause::Rebuild].map(|cause| counters.pages_read[cause as usize]);
        assert_eq!((of, counters.rebuilt), ([1, 3], 1));
        assert_eq!(counters.faults.uncorrectable, [0; 3]);
        // The unit is written elsewhere, and is read from there.
        assert_eq!(counters.pages_programmed[ProgramCause::Rebuild as usize], 1);
        assert_eq!(device.now(), Time(READ + arrival + DATA + PROGRAM));
        let now = device.now();
        let [(completion, _)] = serve(&mut device, &[read(5)])[..] else { panic!("one read") };
        assert_eq!((completion.status, completion.finish - now), (Status::Ok, Time(READ)));
        let counters = &device.ftl().counters;
        assert_eq!((counters.rebuilt, counters.pages_read[ReadCause::Rebuild as usize]), (1, 3));
    }
}

/// All data that are read are decoded with errors, the last page of the stripe after its transfer.
#[test]
fn a_rebuild_decodes_the_other_pages() {
    let errors =
        "errors={ rate = { base = 0.0, wear = 0.0, retention = 0.0, disturb = 0.0 }, ecc = { decode = \"7us\" } }";
    let mut device = device(1, &[errors]);
    fill(&mut device, 24);
    fail(&mut device, 5);
    let [(completion, breakdown)] = serve(&mut device, &[read(5)])[..] else { panic!("one read") };
    let rebuild = CELL + 3 * DATA + DECODE;
    assert_eq!((completion.status, completion.finish), (Status::Ok, Time(READ + DECODE + rebuild)));
    let parts = [Part::Cell, Part::Bus, Part::Ecc, Part::Rebuild].map(|part| breakdown.of(part).0);
    assert_eq!(parts, [CELL, DATA, DECODE, rebuild]);
}

/// All pages are uncorrectable after two retries, so those of the stripe are read as often, and the data are lost.
#[test]
fn data_are_lost_if_two_pages_of_a_stripe_are_uncorrectable() {
    let errors = "errors={ rate = { base = 0.32, wear = 0.0, retention = 0.0, disturb = 0.0 }, \
                  retry = { factor = 0.25, steps = 2 }, ecc = { decode = \"7us\" } }";
    let mut device = device(4, &[errors]);
    fill(&mut device, 24);
    let [(completion, _)] = serve(&mut device, &[read(5)])[..] else { panic!("one read") };
    assert_eq!(completion.status, Status::Uncorrectable);
    assert_eq!(completion.finish, Time(2 * 3 * (READ + DECODE)));
    let counters = &device.ftl().counters;
    assert_eq!((counters.rebuilt, counters.faults.units_lost), (0, 1));
    assert_eq!(counters.faults.uncorrectable, [1, 0, 0]);
    assert_eq!(counters.pages_read[ReadCause::Rebuild as usize], 3 * 3);
}

/// Two pages of the last stripe hold data. The controller holds their parity.
#[test]
fn an_open_stripe_is_rebuilt_with_the_parity_in_the_controller() {
    let mut device = device(4, &[]);
    fill(&mut device, 23);
    fail(&mut device, 22);
    let [(completion, _)] = serve(&mut device, &[read(22)])[..] else { panic!("one read") };
    assert_eq!((completion.status, completion.finish), (Status::Ok, Time(2 * READ)));
    assert_eq!(device.ftl().counters.pages_read[ReadCause::Rebuild as usize], 1);
}

/// A partial write, and garbage collection, get rebuilt data, too.
#[test]
fn other_reads_are_rebuilt() {
    let mut device = device(4, &[]);
    fill(&mut device, 24);
    fail(&mut device, 5);
    let part = Request { sectors: 1, ..units(&device, Operation::Write, 5, 1) };
    let [(completion, breakdown)] = serve(&mut device, &[part])[..] else { panic!("one write") };
    assert_eq!((completion.status, completion.finish), (Status::Ok, Time(2 * READ + DATA + PROGRAM)));
    let parts = [Part::Rmw, Part::Rebuild, Part::Bus, Part::Cell].map(|part| breakdown.of(part).0);
    assert_eq!(parts, [READ, READ, DATA, PROGRAM]);
    assert_eq!(device.ftl().counters.rebuilt, 1);
}

/// Writes and reads at random while single operations fail. `every` is the number of requests between failures.
fn survives(seed: u64, overrides: &[&str], every: u64, kinds: &[&str]) -> Device {
    let mut device = device(2, overrides);
    let count = device.config().logical_units();
    let per_unit = u64::from(device.config().sectors_per_unit());
    fill(&mut device, count as u32);
    let mut rng = Rng::new(seed, "rebuild");
    for round in 0..120 {
        let mut draw = rng.clone();
        rng.below(2);
        let next = move || {
            let operation = if draw.below(2) == 0 { Operation::Read } else { Operation::Write };
            let first = draw.below(count) * per_unit + draw.below(per_unit);
            Request::new(Time::ZERO, operation, first, 1 + draw.below(per_unit) as u32)
        };
        device.fail_next(kinds[round % kinds.len()].parse().unwrap()).unwrap();
        Load::closed(8, every, next).run(&mut device);
        device.check_invariants().unwrap_or_else(|why| panic!("{seed}, {round}: {why}"));
        rng = Rng::new(seed + 1000 * round as u64, "rebuild");
    }
    device
}

/// Property: single uncorrectable reads of random pages lose no data, whatever the read is for.
#[test]
fn single_uncorrectable_reads_lose_no_data() {
    for seed in 0..8 {
        for overrides in [&["capacity.spare=0.6"][..], &["capacity.spare=0.6", "geometry.mapping_unit=1KiB"]] {
            let device = survives(seed, overrides, 60, &["read"]);
            let counters = &device.ftl().counters;
            assert_eq!((counters.faults.units_lost, counters.faults.uncorrectable), (0, [0; 3]));
            assert!(counters.rebuilt > 80, "{}", counters.rebuilt);
        }
    }
}

/// Property: neither do single failed programs and erases. A superblock is retired for each of them.
#[test]
fn single_failures_lose_no_data() {
    for seed in 0..6 {
        let overrides = ["geometry.blocks=80", "capacity.spare=0.8"];
        let device = survives(seed, &overrides, 200, &["program", "read", "erase"]);
        let counters = &device.ftl().counters;
        assert_eq!((counters.faults.units_lost, counters.faults.uncorrectable), (0, [0; 3]));
        let failed = counters.faults.programs_failed + counters.faults.erases_failed;
        assert!(failed > 40, "{failed}");
        // Two operations of the same superblock may fail. When the device is idle, all of them have been retired.
        let bad: u64 = (0..4).map(|plane| u64::from(device.ftl().blocks.bad(PlaneId(plane)))).sum();
        let retired = device.ftl().blocks.all().iter().filter(|block| block.state == BlockState::Bad).count() as u64;
        assert_eq!((bad, retired), (counters.faults.blocks_grown_bad, counters.faults.blocks_grown_bad));
        assert!(bad <= 4 * failed && bad > 3 * failed, "{bad} blocks are bad after {failed} failures");
    }
}
