//! Errors of read data (`errors`): times of read retries computed by hand, to the picosecond, and their expected
//! number by age, wear and reads.

use crate::common::{build, device_config, drain, fill, read, refusal, serve, submit, units};
use floatgate_core::flash::{Block, BlockState, Role};
use floatgate_core::internals::{ErrorModel, ReadCause};
use floatgate_core::results::{CopyCause, Part, ProgramCause};
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Operation, Request, Status};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

const CELL: u64 = 25_000_000;
const DATA: u64 = 4096 * 25_000;
const READ: u64 = CELL + DATA;
const PROGRAM: u64 = 200_000_000;
const DECODE: u64 = 7_000_000;

/// Options with which all reads need `retries` retries. After them, 41 of the 8192 bits of a codeword are wrong on
/// average, and one retry earlier, 164 are; 72 are corrected.
fn sure(retries: u32) -> String {
    let base = [0.005, 0.02, 0.08, 0.32][retries as usize];
    format!(
        "errors={{ rate = {{ base = {base}, wear = 0.0, retention = 0.0, disturb = 0.0 }}, retry = {{ factor = 0.25 }}, \
         ecc = {{ decode = \"7us\" }} }}"
    )
}

/// Returns a device of one plane that holds data in its first 200 units.
fn device(overrides: &[&str]) -> Device {
    let base = ["geometry.channels=1", "geometry.chips=1", "faults={}"];
    let options = Options { seed: 1, verify: true, attribution: true, ..Options::default() };
    let mut device = build(device_config(&[&base, overrides].concat()), options);
    fill(&mut device, 200);
    device
}

/// A stream of two requests reads four units ahead, which need as many retries as the reads of the host.
#[test]
fn reads_ahead_are_repeated_like_other_reads() {
    let ahead = ["buffer.capacity=64KiB", "buffer.read=false", "buffer.read_ahead={ size = \"16KiB\", streams = 1 }"];
    let mut device = device(&[&ahead[..], &[&sure(2)]].concat());
    for unit in 0..3 {
        let [(completion, _)] = serve(&mut device, &[read(unit)])[..] else { panic!("one read") };
        assert_eq!(completion.status, Status::Ok);
        // The third unit is in the buffer.
        assert_eq!(completion.finish == completion.request.arrival, unit == 2);
    }
    let counters = &device.ftl().counters;
    assert_eq!((counters.errors.corrected[2], counters.errors.retries), (2 + 4, 2 * 6));
    assert_eq!(counters.pages_read[ReadCause::Ahead as usize], 3 * 4);
}

#[test]
fn a_read_with_k_retries_takes_k_more_reads_and_decodings() {
    for retries in 0..=3 {
        let mut device = device(&[&sure(retries)]);
        let [(completion, breakdown)] = serve(&mut device, &[read(5)])[..] else { panic!("one read") };
        let times = u64::from(retries) + 1;
        assert_eq!(completion.finish, Time(times * (READ + DECODE)), "{retries}");
        let parts = [Part::Cell, Part::Bus, Part::Ecc].map(|part| breakdown.of(part).0);
        assert_eq!(parts, [CELL, DATA, times * (READ + DECODE) - READ]);
        let counters = &device.ftl().counters;
        assert_eq!(counters.errors.corrected[retries as usize], 1);
        assert_eq!((counters.errors.retries, counters.errors.uncorrectable), (u64::from(retries), 0));
        assert_eq!(counters.pages_read[ReadCause::Host as usize], times);
    }
}

/// Commands and a switch of the chip are repeated, too.
#[test]
fn a_retry_repeats_the_command() {
    let mut device = device(&[&sure(2), "bus.command_cycles.read=7"]);
    let [(completion, _)] = serve(&mut device, &[read(5)])[..] else { panic!("one read") };
    assert_eq!(completion.finish, Time(3 * (7 * 25_000 + READ + DECODE)));
}

/// The die takes another read while the first one is decoded. A retry precedes reads that have not started.
#[test]
fn a_die_reads_while_data_are_decoded() {
    let mut device = device(&[&sure(1)]);
    let requests = [5, 6, 7].map(read);
    let served = serve(&mut device, &requests);
    let finished: Vec<u64> = served.iter().map(|(completion, _)| completion.finish.0).collect();
    // In the die: the first read, the second, the first again, the second again, the third, nothing, the third again.
    assert_eq!(finished, [3 * READ + DECODE, 4 * READ + DECODE, 6 * READ + 2 * DECODE]);
    let [_, second, _] = [0, 1, 2].map(|index: usize| served[index].1);
    assert_eq!(second.of(Part::Die), Time(READ + (READ - DECODE)));
}

#[test]
fn a_partial_write_waits_for_the_retries_of_its_read() {
    let mut device = device(&[&sure(2)]);
    let part = Request { sectors: 1, ..units(&device, Operation::Write, 5, 1) };
    let [(completion, breakdown)] = serve(&mut device, &[part])[..] else { panic!("one write") };
    assert_eq!(completion.finish, Time(3 * (READ + DECODE) + DATA + PROGRAM));
    let parts = [Part::Rmw, Part::Ecc, Part::Bus, Part::Cell].map(|part| breakdown.of(part).0);
    assert_eq!(parts, [READ, 2 * READ + 3 * DECODE, DATA, PROGRAM]);
}

#[test]
fn a_read_is_uncorrectable_after_the_last_retry() {
    let mut device = device(&[&sure(3), "errors.retry.steps=2"]);
    for uncorrectable in 1..=2 {
        let now = device.now();
        let [(completion, _)] = serve(&mut device, &[read(5)])[..] else { panic!("one read") };
        assert_eq!(completion.status, Status::Uncorrectable);
        assert_eq!(completion.finish - now, Time(3 * (READ + DECODE)));
        let counters = &device.ftl().counters;
        assert_eq!(counters.errors.uncorrectable, uncorrectable);
        assert_eq!(counters.faults.uncorrectable, [uncorrectable, 0, 0]);
        assert_eq!(counters.faults.units_lost, 1);
    }
    // An overwrite of the whole unit reads nothing.
    let write = units(&device, Operation::Write, 5, 1);
    assert_eq!(serve(&mut device, &[write])[0].0.status, Status::Ok);
}

/// Garbage collection repeats reads, too: it moves the same units, later.
#[test]
fn garbage_collection_repeats_its_reads() {
    let moved = |retries| {
        let mut device = device(&[&sure(retries), "capacity.spare=0.5"]);
        let count = device.config().logical_units();
        let mut rng = floatgate_core::sim::rng::Rng::new(1, "errors");
        for _ in 0..3 * count {
            let write = units(&device, Operation::Write, rng.below(count), 1);
            let now = device.now();
            submit(&mut device, now, write);
            drain(&mut device);
        }
        let counters = device.ftl().counters;
        let reads: u64 = counters.errors.corrected.iter().sum();
        assert_eq!(counters.pages_read[ReadCause::Gc as usize], reads * u64::from(retries + 1));
        device.check_invariants().unwrap();
        (reads, counters.units_moved())
    };
    let once = moved(0);
    assert!(once.0 > 100);
    assert_eq!(once, moved(1));
}

/// The mean of many pages is the sum of the probabilities that a retry is needed.
#[test]
fn retries_have_their_expected_number() {
    for (age, cycles) in [("0 h", 0), ("91.25 days", 0), ("1 year", 1000), ("1 year", 2000), ("0 h", 4500)] {
        let (age, worn) = (format!("errors.age={age} at 30C"), format!("errors.cycles={cycles}"));
        let mut device = device(&[&age, &worn]);
        let count = 3000;
        fill(&mut device, count);
        let requests: Vec<Request> = (0..u64::from(count)).map(read).collect();
        serve(&mut device, &requests);
        let model = ErrorModel::new(device.config()).unwrap();
        let days = device.config().errors.as_ref().unwrap().age.days().0;
        let expected = model.expected_retries(model.raw(0, days, 1.0), 4);
        let mean = device.ftl().counters.errors.retries_mean().unwrap();
        assert!((mean - expected).abs() < 0.05, "{age}, {worn}: {mean}, expected {expected}");
    }
}

/// The table of the documentation, for pages of 16 KiB. Park et al. (ASPLOS 2021) measured its last value of 2000
/// erases.
#[test]
fn the_defaults_give_the_documented_number_of_retries() {
    let model = ErrorModel::new(&device_config(&["faults={}", "errors={}"])).unwrap();
    let page = include_str!("../../../docs/model/errors.md");
    let numbers = |line: &str| -> Option<Vec<f64>> {
        line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(|cell| cell.parse().ok()).collect()
    };
    let rows: Vec<Vec<f64>> = page.lines().filter_map(numbers).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<f64>>(), [0.0, 1000.0, 2000.0, 3000.0]);
    for row in &rows {
        for (index, years) in [0.0, 1.0 / 12.0, 0.25, 0.5, 1.0].into_iter().enumerate() {
            let found = model.expected_retries(model.raw(row[0] as u32, 365.0 * years, 0.0), 16);
            assert!((found - row[index + 1]).abs() < 0.0501, "{} erases, {years} years: {found}", row[0]);
        }
    }
    assert_eq!(rows[2][5], 19.9);
}

/// Retention counts from the last program of the block, and for data from before the run from its start.
#[test]
fn data_grow_old_during_a_run() {
    let mut device =
        device(&["errors={ temperature = 30.0, rate = { base = 0.001, retention = 0.8, retention_time = 1.0, \
         retention_wear = 0.0 }, retry = { factor = 0.25 } }"]);
    // A rate of 0.0195 after 2000 s.
    let later = Time::from_us(2_000_000_000);
    let retries = |device: &mut Device, unit| {
        let before = device.ftl().counters.errors.retries;
        serve(device, &[read(unit)]);
        device.ftl().counters.errors.retries - before
    };
    assert_eq!(retries(&mut device, 5), 0);
    device.advance(later);
    let write = units(&device, Operation::Write, 6, 1);
    serve(&mut device, &[write]);
    assert_eq!([5, 6].map(|unit| retries(&mut device, unit)), [1, 0]);
    device.advance(later + later);
    assert_eq!(retries(&mut device, 6), 1);
}

/// Reads disturb the other pages of the block, until its erase.
#[test]
fn reads_disturb_a_block() {
    let mut device = device(&[
        "errors={ rate = { base = 0.0, wear = 0.0, disturb = 0.01, disturb_wear = 0.0, disturb_reads = 1.0 }, retry = \
         { factor = 0.25 } }",
    ]);
    // 96 reads are 1.5 for each of the 64 pages: a rate of 0.015.
    while device.ftl().counters.pages_read[ReadCause::Host as usize] < 96 {
        serve(&mut device, &[read(5)]);
    }
    let retries = |device: &mut Device, unit: u64| {
        let before = device.ftl().counters.errors.retries;
        serve(device, &[read(unit)]);
        device.ftl().counters.errors.retries - before
    };
    assert_eq!(retries(&mut device, 6), 1);
    // Unit 100 is in the next block.
    let block = |device: &Device, lpn| match device.ftl().map.get(Lpn(lpn)) {
        floatgate_core::mapping::Location::Flash(ppn) => device.ftl().blocks.block_of(ppn),
        other => panic!("{other:?}"),
    };
    assert_ne!(block(&device, 6), block(&device, 100));
    assert_eq!(retries(&mut device, 100), 0);
}

#[test]
fn errors_are_refused_without_faults_and_with_unfit_codes() {
    for (options, what) in [
        (&["errors={}"][..], "add a table [faults]"),
        (&["faults={}", "errors.ecc.codeword=3KiB"], "must be a divisor of the 4KiB"),
        (&["faults={}", "errors.ecc.corrects=8192"], "must be below the 8192 bits"),
        (&["faults={}", "errors.retry.steps=32"], "errors.retry.steps"),
        (&["faults={}", "errors.age=3 moons"], "is not an age"),
        (
            &["faults={}", "errors={ refresh = { retries = 5 }, retry = { steps = 4 } }"],
            "at most errors.retry.steps = 4",
        ),
        (&["faults={}", "errors.refresh.retries=0"], "errors.refresh.retries"),
        (&["faults={}", "errors.refresh.retries=1", "mapping.scheme=block"], "none can be refreshed; use page"),
    ] {
        let refused = refusal(options);
        assert!(refused.contains(what), "{refused}");
    }
}

/// Options with which data of before the run need two retries, and data that were programmed in the run none.
fn aged(refresh: &str) -> String {
    format!(
        "errors={{ age = \"1 year at 30C\", rate = {{ base = 0.005, wear = 0.0, retention = {}, retention_time = 1.0, \
         retention_wear = 0.0, disturb = 0.0 }}, retry = {{ factor = 0.25 }}, ecc = {{ decode = \"7us\" }} {refresh} }}",
        0.075 / 365.0
    )
}

const REFRESH: &str = ", refresh = { retries = 2 }";

/// Runs a device until it is idle.
fn rest(device: &mut Device) {
    while let Some(at) = device.next_event() {
        device.advance(at);
    }
    device.check_invariants().unwrap();
}

/// The pages of the block of the first read are read with two retries each, and programmed. The second read, in another
/// block, does not wait.
#[test]
fn a_block_is_refreshed_page_by_page() {
    let mut device = device(&[&aged(REFRESH)]);
    let pages = u64::from(device.config().geometry.pages);
    let erase = device.config().nand.erase.time();
    let victims = device.ftl().counters.victims;
    let [(completion, _)] = serve(&mut device, &[read(5)])[..] else { panic!("one read") };
    assert_eq!(completion.finish, Time(3 * (READ + DECODE)));
    rest(&mut device);
    let move_of_page = 3 * (READ + DECODE) + DATA + PROGRAM;
    assert_eq!(device.now(), completion.finish + Time(pages * move_of_page) + erase);
    let counters = device.ftl().counters;
    assert_eq!((counters.errors.refreshed, counters.blocks_erased, counters.victims), (1, 1, victims));
    assert_eq!(counters.pages_read[ReadCause::Refresh as usize], 3 * pages);
    assert_eq!(counters.pages_programmed[ProgramCause::Refresh as usize], pages);
    assert_eq!(counters.moved[CopyCause::Refresh as usize], pages);
    assert_eq!([ReadCause::Gc, ReadCause::Host].map(|cause| counters.pages_read[cause as usize]), [0, 3]);
    // All pages of the block are read without retries now, and nothing is refreshed again.
    let now = device.now();
    let served = serve(&mut device, &[read(5), read(0), read(pages - 1)]);
    assert_eq!(served[0].0.finish, now + Time(READ + DECODE));
    rest(&mut device);
    assert_eq!(device.ftl().counters.errors.retries, counters.errors.retries);
    assert_eq!(device.ftl().counters.errors.refreshed, 1);
}

/// Reads refresh each closed block once, however many there are. Later reads of these blocks need no retry.
#[test]
fn old_data_are_read_with_fewer_retries_after_refresh() {
    for scheme in ["page", "dftl"] {
        for planes in [1, 2] {
            let (planes, scheme) = (format!("geometry.planes={planes}"), format!("mapping.scheme={scheme}"));
            let mut device = device(&[&aged(REFRESH), &planes, &scheme, "gc.soft_threshold=1", "capacity.spare=0.5"]);
            let count = device.config().logical_units() as u32;
            fill(&mut device, count);
            let all = device.ftl().blocks.all().iter().filter(|block| block.role == Role::Data && block.valid > 0);
            let (closed, open): (Vec<Block>, Vec<Block>) = all.partition(|block| block.state == BlockState::Closed);
            let blocks = closed.len() as u64;
            // Only open blocks, which are not refreshed, hold old data then.
            let old: u64 = open.iter().map(|block| u64::from(block.valid)).sum();
            let retries = |device: &mut Device| {
                let before = device.ftl().counters.pages_read[ReadCause::Host as usize];
                let reads: Vec<Request> = (0..u64::from(count)).map(read).collect();
                serve(device, &reads);
                rest(device);
                device.ftl().counters.pages_read[ReadCause::Host as usize] - before - u64::from(count)
            };
            let first = retries(&mut device);
            assert!(first > u64::from(count), "{scheme}, {planes}: {first}");
            assert_eq!(device.ftl().counters.errors.refreshed, blocks, "{scheme}, {planes}");
            let counters = device.ftl().counters;
            let moved = closed.iter().map(|block| u64::from(block.valid)).sum::<u64>();
            assert_eq!(counters.moved[CopyCause::Refresh as usize], moved, "{scheme}, {planes}");
            assert_eq!(retries(&mut device), 2 * old, "{scheme}, {planes}");
            assert_eq!(device.ftl().counters.errors.refreshed, blocks, "{scheme}, {planes}");
        }
    }
}

/// A block whose pages need as many retries when they are new is not refreshed again and again.
#[test]
fn a_refresh_that_would_not_help_does_not_start() {
    let mut device = device(&[&sure(2), "errors.refresh.retries=2"]);
    serve(&mut device, &[read(5), read(6)]);
    rest(&mut device);
    assert_eq!((device.ftl().counters.errors.refreshed, device.ftl().counters.errors.retries), (0, 4));
}

/// A host that keeps the die busy delays the refresh only as long as no plane lacks room.
#[test]
fn the_host_precedes_a_refresh() {
    let mut device = device(&[&aged(REFRESH), "scheduler=read-first"]);
    let times = |device: &mut Device, requests: &[Request]| {
        let now = device.now();
        serve(device, requests).iter().map(|(completion, _)| completion.finish - now).collect::<Vec<Time>>()
    };
    // The first read queues a refresh. The others wait for each other, and for at most one read of the refresh.
    let requests: Vec<Request> = (70..80).map(read).collect();
    let alone = times(&mut self::device(&[&aged(""), "scheduler=read-first"]), &requests);
    let beside = times(&mut device, &requests);
    assert!(beside.iter().zip(&alone).all(|(with, without)| *with <= *without + Time(READ)), "{beside:?} {alone:?}");
    rest(&mut device);
    assert_eq!(device.ftl().counters.errors.refreshed, 1);
}
