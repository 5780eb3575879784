//! Lifetimes: when they end, and how much the host could write until then.

use crate::common::{build, device_config};
use floatgate_core::endurance::{Lifetime, Repeated, Until, live};
use floatgate_core::flash::BlockState;
use floatgate_core::internals::Lived;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::source::{Source, SourceError};
use floatgate_core::simulation::{Device, Options};
use floatgate_core::summary::Named;
use floatgate_workload::synthetic;

/// Four planes of 64 blocks of 16 pages, with 20 % spare. A block endures 50 erases.
const DEVICE: [&str; 6] = [
    "geometry.pages=16",
    "capacity.spare=0.2",
    "gc.soft_threshold=3",
    "nand.endurance=50",
    "faults={}",
    "geometry.chips=2",
];
const BLOCKS: f64 = 4.0 * 64.0;

/// Writes all units in order.
const SEQUENTIAL: &str = "rw=write bs=4k";
const RANDOM: &str = "rw=randwrite norandommap=1 bs=4k number_ios=5000";

fn device(more: &[&str]) -> Device {
    let all: Vec<&str> = DEVICE.iter().chain(more).copied().collect();
    let mut device = build(device_config(&all), Options::default());
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    device
}

/// A job that is repeated, with its bytes.
struct Job(&'static str, u64, Vec<Box<dyn Source>>);

impl Job {
    fn on(device: &Device, job: &'static str) -> Job {
        Job(job, device.config().logical_bytes(), Vec::new())
    }
}

impl Repeated for Job {
    fn open(&mut self, repetition: u32) -> Result<&mut [Box<dyn Source>], SourceError> {
        let jobs = synthetic::parse(self.0, self.1, 1 + u64::from(repetition)).unwrap();
        self.2 = jobs.into_iter().map(|job| job.source).collect();
        Ok(&mut self.2)
    }
}

fn try_life(device: &mut Device, job: &'static str, until: &str) -> Result<Lived, SourceError> {
    let mut job = Job::on(device, job);
    live(device, &mut job, until.parse().unwrap(), &mut |_| true)
}

fn life(device: &mut Device, job: &'static str, until: &str) -> Lived {
    let lived = try_life(device, job, until).unwrap_or_else(|error| panic!("{error}"));
    device.ftl().recount().unwrap();
    lived
}

#[test]
fn a_lifetime_ends_with_the_event() {
    let mut erasing = device(&[]);
    let before = erasing.ftl().counters.blocks_erased;
    let lived = life(&mut erasing, SEQUENTIAL, "erases=1000");
    // A request erases at most a block or two in each plane.
    let erased = erasing.ftl().counters.blocks_erased - before;
    assert!(lived.complete && (1000..1004).contains(&erased), "{erased}");
    assert_eq!(lived.counters.blocks_erased, erased);

    let mut writing = device(&[]);
    let units = f64::from(writing.ftl().map.len());
    let lived = life(&mut writing, SEQUENTIAL, "drive-writes=2.5");
    assert_eq!((lived.counters.host_units, lived.repetitions), ((2.5 * units) as u64, 3));
}

/// Sequential writes wear all blocks alike and move nothing, so every block is erased as often as it endures.
#[test]
fn sequential_writes_use_up_the_endurance_of_all_blocks() {
    let mut device = device(&[]);
    let lived = life(&mut device, SEQUENTIAL, "worn-out");
    // The last victims hold data, when many blocks fail in a row.
    assert!(lived.counters.units_moved() < 50, "{}", lived.counters.units_moved());
    let all = BLOCKS * 50.0;
    let erased = lived.counters.blocks_erased as f64;
    assert!(erased > 0.98 * all && erased <= all, "{erased} of {all}");
    // A block is programmed once more than it is erased. The device was filled before.
    let units = lived.counters.host_units as f64;
    assert!((units / (erased * 16.0) - 1.0).abs() < 0.01, "{units}");
    let bad = device.ftl().blocks.all().iter().filter(|block| block.state == BlockState::Bad);
    assert!(
        bad.clone().all(|block| block.erases == 50) && bad.count() as u64 == lived.counters.faults.blocks_grown_bad
    );
    // The capacity falls at the end, when fewer blocks are left than a full device needs.
    let (first, last) = (lived.capacity[0], lived.capacity[lived.capacity.len() - 1]);
    let host = u64::from(device.ftl().map.len());
    assert_eq!((first.bad_blocks, first.units_held), (0, host));
    assert!(last.units_held < host && last.bad_blocks >= lived.expired, "{last:?}");
    assert!(lived.first_expiry.is_some_and(|units| units > 9 * lived.counters.host_units / 10));
}

/// A device that is worn out before the event ends its life, and does not count as having reached the event.
#[test]
fn a_device_may_wear_out_before_the_event() {
    let lived = life(&mut device(&[]), SEQUENTIAL, "drive-writes=1000");
    assert_eq!((lived.complete, lived.is_worn_out), (false, true));
    let worn = life(&mut device(&[]), SEQUENTIAL, "worn-out");
    assert_eq!((worn.complete, worn.is_worn_out, worn.counters), (true, true, lived.counters));
}

#[test]
fn the_first_expiry_precedes_the_end_of_life() {
    let first = life(&mut device(&[]), RANDOM, "first-expiry");
    let worn = life(&mut device(&[]), RANDOM, "worn-out");
    assert_eq!((first.expired, first.counters.faults.blocks_grown_bad), (1, 1));
    assert_eq!(first.first_expiry, worn.first_expiry);
    assert!(first.counters.host_units < worn.counters.host_units);
    // Random overwrites move data, so that the host can write less than with sequential ones.
    let sequential = life(&mut device(&[]), SEQUENTIAL, "worn-out");
    assert!(worn.counters.host_units < 3 * sequential.counters.host_units / 4);
}

#[test]
fn leveling_wear_prolongs_a_life_with_cold_data() {
    let skewed = "rw=randwrite norandommap=1 bs=4k number_ios=5000 size=10%";
    let written = |wear: &str| life(&mut device(&[&format!("gc.wear={wear}")]), skewed, "worn-out").counters.host_units;
    let without = written("none");
    for wear in ["{ static-threshold = { threshold = 5 } }", "{ dual-pool = { threshold = 5 } }", "agrawal"] {
        let with = written(wear);
        assert!(with > 3 * without / 2, "{wear}: {with}, without: {without}");
    }
}

#[test]
fn blocks_beyond_their_endurance_can_be_counted() {
    let mut device = device(&["faults.wear_out=count"]);
    let lived = life(&mut device, SEQUENTIAL, "erases=15000");
    let beyond = device.ftl().blocks.all().iter().filter(|block| block.erases > 50).count() as u64;
    assert!(beyond > 200);
    assert_eq!((lived.expired, lived.counters.faults.blocks_grown_bad), (beyond, 0));
}

/// A block endures 50 erases, is filled once more, and stays. No data of the host are lost, and
/// sequential writes use all erases but those of the blocks that are not worn out yet.
#[test]
fn worn_out_blocks_can_be_excluded() {
    let mut device = device(&["faults.wear_out=exclude"]);
    let lived = life(&mut device, SEQUENTIAL, "worn-out");
    let blocks = device.ftl().blocks.all();
    let excluded: Vec<_> = blocks.iter().filter(|block| block.state == BlockState::WornOut).collect();
    assert!(excluded.iter().all(|block| block.erases == 50 && !block.failed));
    assert!(blocks.iter().all(|block| block.erases <= 50), "no block is erased beyond its endurance");
    let count = excluded.len() as u64;
    assert_eq!((lived.expired, lived.counters.faults.blocks_grown_bad), (count, count));
    assert_eq!(lived.counters.faults.erases_failed, 0);
    // The rule for accepting devices: (B - soft - f)(D - U + 1) >= L + 1, with f = 2, U = 1 and D = 16.
    let units = device.ftl().map.len();
    let needed = (units / 4 + 1).div_ceil(16) + 3 + 2;
    let good =
        |plane: u32| blocks[64 * plane as usize..][..64].iter().filter(|b| b.state != BlockState::WornOut).count();
    let fewest = (0..4).map(good).min().unwrap_or(0);
    assert_eq!(fewest as u32, needed - 1, "the first block too many ends the life");
    assert!((0..units).all(|lpn| device.ftl().ppn_in_flash(Lpn(lpn)).is_some()), "a unit is lost");
    // An excluded block keeps valid units, while other blocks take turns.
    let first = life(&mut self::device(&["faults.wear_out=exclude"]), RANDOM, "first-expiry");
    assert_eq!((first.expired, first.counters.faults.blocks_grown_bad), (1, 1));
}

#[test]
fn endurances_are_drawn_around_their_mean() {
    let limits = |shape: &str| {
        let mut device = device(&[&format!("faults.wear_out={{ weibull = {{ shape = {shape} }} }}")]);
        life(&mut device, SEQUENTIAL, "worn-out");
        let bad = device.ftl().blocks.all().iter().filter(|block| block.state == BlockState::Bad);
        bad.map(|block| block.erases).collect::<Vec<_>>()
    };
    // With a high shape, endurances are close to the mean. With a low one, many blocks fail early.
    let (same, differing) = (limits("100"), limits("2"));
    assert!(same.iter().all(|erases| (45..=53).contains(erases)), "{same:?}");
    assert!(differing.iter().any(|&erases| erases < 15), "{differing:?}");
}

#[test]
fn equal_seeds_give_equal_lifetimes() {
    let wear = "gc.wear={ agrawal = { cold = \"temperature\" } }";
    let lived = || life(&mut device(&[wear, "faults.wear_out={ weibull = { shape = 5 } }"]), RANDOM, "worn-out");
    assert_eq!(lived(), lived());
}

#[test]
fn a_lifetime_that_is_interrupted_has_a_result() {
    let mut device = device(&["geometry.blocks=1024"]);
    let mut job = Job::on(&device, SEQUENTIAL);
    let mut calls = 0;
    let lived = live(&mut device, &mut job, Until::WornOut, &mut |share| {
        calls += 1;
        assert!((0.0..1.0).contains(&share));
        calls < 3
    });
    let lived = lived.unwrap_or_else(|error| panic!("{error}"));
    assert!(!lived.complete && lived.counters.host_units > 10_000, "{lived:?}");
    let result =
        Lifetime::new(&device, Named { name: "job".into(), digest: String::new() }, 1, "worn-out".into(), &lived, None);
    assert_eq!(result.written.bytes, lived.counters.host_bytes);
    assert_eq!(result.capacity.written_bytes.last(), Some(&(lived.counters.host_units * 4096)));
}

/// Block mapping and log blocks take the block that was erased first. With sequential writes, all blocks wear out at
/// nearly the same time. With random writes, a block is erased after a random time. About a sixth of the blocks of a
/// plane may fail, which have one standard deviation more erases than the mean: the root of 50.
#[test]
fn schemes_with_blocks_of_their_own_wear_out() {
    let fast = "fast = { logs = { sequential = 4, random = 8 } }";
    for scheme in ["block = {}", "bast = { logs = 8 }", fast, "fast = { reclaim = \"all\" }", "last = {}"] {
        for (job, least) in [(SEQUENTIAL, 0.9), (RANDOM, 0.8)] {
            let mut worn = device(&[&format!("mapping.scheme={{ {scheme} }}")]);
            let first = life(&mut worn.clone(), job, "first-expiry");
            assert!(first.complete && first.first_expiry.is_some(), "{scheme}");
            let lived = life(&mut worn, job, "worn-out");
            assert!(lived.complete && lived.is_worn_out && lived.counters.host_units > first.counters.host_units);
            let erases: u32 = worn.ftl().blocks.all().iter().map(|block| block.erases).sum();
            let share = f64::from(erases) / (50.0 * BLOCKS);
            assert!((least..=1.0).contains(&share), "{scheme}, {job}: {share} of all erases");
            let units = worn.ftl().map.len();
            assert!((0..units).all(|lpn| worn.ftl().ppn_in_flash(Lpn(lpn)).is_some()), "{scheme}: a unit is lost");
            let capacity = lived.capacity;
            let held = [&capacity[0], &capacity[capacity.len() - 1]].map(|point| point.units_held);
            assert!(held[0] == u64::from(units) && held[1] < held[0], "{scheme}: {held:?}");
        }
    }
}

/// Blocks that differ in endurance fail one by one, in the middle of merges too.
#[test]
fn schemes_with_blocks_of_their_own_lose_blocks_one_by_one() {
    for scheme in
        ["block = {}", "bast = { scope = \"plane\" }", "fast = { reclaim = \"all\" }", "last = { merges = 2 }"]
    {
        let scheme = format!("mapping.scheme={{ {scheme} }}");
        let mut worn = device(&[&scheme, "faults.wear_out={ weibull = { shape = 2.0 } }", "capacity.spare=0.3"]);
        let lived = life(&mut worn, RANDOM, "worn-out");
        let bad = worn.ftl().blocks.all().iter().filter(|block| block.state == BlockState::Bad).count();
        assert!(lived.is_worn_out && bad > 5, "{scheme}: {bad} bad blocks");
        assert!((0..worn.ftl().map.len()).all(|lpn| worn.ftl().ppn_in_flash(Lpn(lpn)).is_some()), "{scheme}");
        let mut used = device(&[&scheme, "faults.wear_out=count"]);
        let lived = life(&mut used, RANDOM, "first-expiry");
        assert!(lived.complete && lived.expired > 0 && !lived.is_worn_out, "{scheme}");
    }
}

#[test]
fn events_that_cannot_happen_are_refused() {
    let cases: [(&[&str], &'static str, &str, &str); 5] = [
        (&["faults.wear_out=count"], SEQUENTIAL, "worn-out", "give first-expiry or erases=N"),
        (&["faults.program_rate=0.1"], SEQUENTIAL, "erases=10", "set it to 0"),
        (&["nand.endurance=0"], SEQUENTIAL, "first-expiry", "give nand.endurance"),
        (&[], "rw=read bs=4k", "worn-out", "writes nothing"),
        (&[], "rw=write bs=4k time_based=1 runtime=1s", "worn-out", "`runtime` cannot end it"),
    ];
    for (overrides, job, until, expected) in cases {
        let error = try_life(&mut device(overrides), job, until).expect_err(expected).to_string();
        assert!(error.contains(expected), "{overrides:?}: {error}");
    }
    let none = DEVICE.iter().filter(|text| **text != "faults={}").copied().collect::<Vec<_>>();
    let mut device = build(device_config(&none), Options::default());
    let error = try_life(&mut device, SEQUENTIAL, "worn-out").expect_err("no faults").to_string();
    assert!(error.contains("needs a device with a table [faults]"), "{error}");
}
