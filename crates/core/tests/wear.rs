//! Wear leveling, computed by hand: which blocks are opened, what a migration costs, and how evenly blocks wear.
//! Random devices that level wear are in `model/`.

use crate::common::{self, build, device_config, drain, submit, units};
use floatgate_core::device_file::from_toml;
use floatgate_core::flash::{Block, BlockState};
use floatgate_core::internals::ReadCause;
use floatgate_core::mapping::Location;
use floatgate_core::results::{CopyCause, ProgramCause};
use floatgate_core::sim::id::{BlockId, Lpn};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

/// A plane whose blocks have three pages. A page takes 102.4 us on the channel.
const SMALL: [&str; 6] = [
    "geometry.channels=1",
    "geometry.chips=1",
    "geometry.blocks=12",
    "geometry.pages=3",
    "capacity={ logical = \"24KiB\" }",
    "gc.soft_threshold=5",
];

/// A plane of 128 blocks of 16 pages, with 20 % spare.
const PLANE: [&str; 7] = [
    "geometry.channels=1",
    "geometry.chips=1",
    "geometry.blocks=128",
    "geometry.pages=16",
    "capacity.spare=0.2",
    "gc.soft_threshold=4",
    "nand.endurance=400",
];

fn device(overrides: &[&str], more: &[&str]) -> Device {
    let all: Vec<&str> = overrides.iter().chain(more).copied().collect();
    build(device_config(&all), Options { verify: true, ..Options::default() })
}

fn block_of(device: &Device, lpn: u32) -> BlockId {
    match device.ftl().map.get(Lpn(lpn)) {
        Location::Flash(ppn) => device.ftl().blocks.block_of(ppn),
        other => panic!("unit {lpn} is at {other:?}"),
    }
}

fn erases(device: &Device) -> Vec<u32> {
    device.ftl().blocks.all().iter().map(|block| block.erases).collect()
}

/// Fills a device, and overwrites the first `hot` units at random, in functional mode.
fn overwrite(device: &mut Device, hot: u64, writes: u64) {
    let all = device.ftl().map.len();
    (0..all).for_each(|lpn| device.ftl_mut().write_whole(Lpn(lpn)));
    let rng = &mut Rng::new(3, "wear");
    (0..writes).for_each(|_| device.ftl_mut().write_whole(Lpn(rng.below(hot) as u32)));
    device.ftl_mut().seal();
    device.ftl().recount().unwrap();
}

#[test]
fn the_free_block_with_the_fewest_erases_is_opened() {
    let mut device = device(&PLANE, &["gc.wear=least-erased"]);
    let rng = &mut Rng::new(1, "wear");
    let all = device.ftl().map.len();
    let mut opened = 0;
    for index in 0..20 * all {
        let before = device.ftl().blocks.all().to_vec();
        device.ftl_mut().write_whole(Lpn(if index < all { index } else { rng.below(200) as u32 }));
        let after = device.ftl().blocks.all();
        // A write that collects garbage opens blocks among those that it has erased.
        if before.iter().zip(after).any(|(old, new)| old.erases != new.erases) {
            continue;
        }
        let is_free = |block: &Block| block.state == BlockState::Free;
        let fewest = before.iter().filter(|block| is_free(block)).map(|block| block.erases).min();
        if let Some((old, _)) = before.iter().zip(after).find(|(old, new)| is_free(old) && !is_free(new)) {
            opened += 1;
            assert_eq!(Some(old.erases), fewest);
        }
    }
    assert!(opened > 100, "{opened}");
}

/// Writes units 0 to 2 once, then units 3 to 5 in turn. When the device is idle, a block with hot data has just been
/// erased for the second time, so that the data of block 0 move into it. Then the migration takes, for each page, the
/// read, two transfers and the program, and after that the erase of block 0.
#[test]
fn a_migration_takes_its_reads_programs_and_the_erase() {
    let moves = |more: &[&str]| {
        let policy = "gc.wear={ static-threshold = { threshold = 1 } }";
        let mut device = device(&SMALL, &[&[policy], more].concat());
        let mut now = Time::ZERO;
        for index in 0u64.. {
            let lpn = if index < 3 { index } else { 3 + index % 3 };
            let request = units(&device, Operation::Write, lpn, 1);
            submit(&mut device, now, request);
            while device.outstanding() > 0 {
                device.advance(device.next_event().expect("an event"));
            }
            now = device.now();
            if device.ftl().blocks.all().iter().any(|block| block.erases == 2) {
                panic!("a block was erased twice before its writes had completed");
            }
            let erased_once = device.ftl().blocks.all().iter().filter(|block| block.erases == 1).count();
            // The next write opens a block, so that the block after it is erased for the second time.
            if erased_once == 11 && index % 3 == 2 {
                break;
            }
        }
        let request = units(&device, Operation::Write, 3, 1);
        submit(&mut device, now, request);
        while device.ftl().blocks.all().iter().all(|block| block.erases < 2) {
            device.advance(device.next_event().expect("an erase"));
        }
        let start = device.now();
        assert_eq!((device.ftl().counters.migrations, block_of(&device, 0)), (1, BlockId(0)));
        let worn = device.ftl().blocks.all().iter().position(|block| block.erases == 2).expect("it was erased twice");
        drain(&mut device);
        assert_eq!([0, 1, 2].map(|lpn| block_of(&device, lpn)), [BlockId(worn as u32); 3]);
        assert_eq!(device.ftl().counters.moved[CopyCause::Wear as usize], 3);
        let counters = &device.ftl().counters;
        let pages =
            (counters.pages_read[ReadCause::Wear as usize], counters.pages_programmed[ProgramCause::Wear as usize]);
        assert_eq!(pages, (3, 3));
        assert_eq!((erases(&device)[0], device.ftl().counters.migrations), (1, 1));
        device.check_invariants().unwrap();
        Time(device.now().0 - start.0)
    };
    let (read, page, program, erase) = (25_000_000, 102_400_000, 200_000_000, 1_500_000_000);
    assert_eq!(moves(&[]), Time(3 * (read + 2 * page + program) + erase));
    // With copy-back, no data cross the channel.
    assert_eq!(moves(&["nand.advanced.copy_back=wise"]), Time(3 * (read + program) + erase));
}

/// Nine tenths of the data are never overwritten.
#[test]
fn cold_data_are_moved_before_erases_differ_by_more_than_the_threshold() {
    let spread = |wear: &str| {
        let mut device = device(&PLANE, &[&format!("gc.wear={wear}")]);
        overwrite(&mut device, 160, 100_000);
        let erases = erases(&device);
        let (least, most) = (erases.iter().min().copied().unwrap(), erases.iter().max().copied().unwrap());
        (most - least, device.ftl().counters.migrations)
    };
    let (without, none) = spread("none");
    assert!(without > 150 && none == 0, "{without}");
    for threshold in [4, 16, 40] {
        for policy in ["static-threshold", "dual-pool"] {
            let (with, migrations) = spread(&format!("{{ {policy} = {{ threshold = {threshold} }} }}"));
            // A block can be erased a few times more before the next cold block has been moved. Dual-pool tolerates
            // twice the threshold within its hot pool.
            let most = threshold * if policy == "dual-pool" { 2 } else { 1 } + 4;
            assert!(
                with <= most && migrations > u64::from(100 / threshold),
                "{policy} {threshold}: {with}, {migrations}"
            );
        }
    }
}

#[test]
fn each_part_of_the_paper_s_algorithm_levels_wear() {
    // Returns the standard deviation and the maximum of the erases.
    let wear = |wear: &str| {
        let mut device = device(&PLANE, &["nand.endurance=250", &format!("gc.wear={wear}")]);
        overwrite(&mut device, 400, 100_000);
        let erases = erases(&device);
        let mean = f64::from(erases.iter().sum::<u32>()) / erases.len() as f64;
        let squares: f64 = erases.iter().map(|&erases| (f64::from(erases) - mean) * (f64::from(erases) - mean)).sum();
        ((squares / erases.len() as f64).sqrt(), erases.iter().max().copied())
    };
    let (greedy, most) = wear("none");
    // All blocks with hot data are equally worn, so that rate limiting only turns to other victims now and then.
    let (limited, max_of_limited) = wear("{ agrawal = { migration = false } }");
    assert!(max_of_limited < most, "rate limiting: {max_of_limited:?}, greedy: {most:?}");
    assert!((limited / greedy - 1.0).abs() < 0.01, "rate limiting: {limited:.2}, greedy: {greedy:.2}");
    for cold in ["last-erase", "temperature"] {
        let (migrated, _) = wear(&format!("{{ agrawal = {{ rate_limiting = false, cold = \"{cold}\" }} }}"));
        assert!(migrated < 0.4 * greedy, "{cold}: {migrated:.2}, greedy: {greedy:.2}");
    }
}

#[test]
fn wear_policies_refuse_devices_that_they_cannot_level() {
    let refused = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        from_toml(common::BASE, "test.toml", &overrides).expect_err("refused").to_string()
    };
    let cases: [(&[&str], &str); 6] = [
        (&["gc.wear=agrawal", "nand.endurance=0"], "give nand.endurance, for example 3000"),
        (&["gc.wear={ agrawal = { migration = false, rate_limiting = false } }"], "use gc.wear = \"none\""),
        (
            &["gc.wear={ agrawal = { retirement_age = 1.5 } }"],
            "gc.wear.agrawal.retirement_age = 1.5: must be from 0 to 1",
        ),
        (
            &["gc.wear={ static-threshold = { threshold = 0 } }"],
            "gc.wear.static-threshold.threshold = 0: must be at least 1",
        ),
        (&["gc.wear=dual-pool", "mapping.scheme=block"], "it needs gc.wear = \"least-erased\""),
        (&["faults.wear_out={ weibull = { shape = 0 } }"], "faults.wear_out.weibull.shape"),
    ];
    for (overrides, expected) in cases {
        let error = refused(overrides);
        assert!(error.contains(expected), "{overrides:?}: {error}");
    }
}
