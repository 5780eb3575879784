//! Block mapping: costs of writes in order, beyond the frontier and before it, step by step. See docs/model/mapping.md.

use crate::common::{self, device_config, drain, fill, submit, units};
use floatgate_core::device_file::from_toml;
use floatgate_core::flash::Role;
use floatgate_core::internals::ReadCause;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::{Counters, ProgramCause};
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::Operation;
use floatgate_core::simulation::{Device, Options, Ssd};

/// Cells to register, register to cells, erase, and transfer of a page over the channel: 4096 cycles of 25 ns.
const READ: u64 = 25_000_000;
const PROGRAM: u64 = 200_000_000;
const ERASE: u64 = 1_500_000_000;
const PAGE: u64 = 4096 * 25_000;

/// Returns a device with logical blocks of 64 units over four planes and one unit per page.
fn device() -> Device {
    common::build(device_config(&["mapping.scheme=block"]), Options { attribution: true, ..Options::default() })
}

/// Performs one write and everything that it causes. Returns the latency of the write in picoseconds.
fn write(device: &mut Device, unit: u64, count: u32) -> u64 {
    let at = device.now();
    let request = units(device, Operation::Write, unit, count);
    submit(device, at, request);
    let completions = drain(device);
    device.check_invariants().unwrap();
    (completions[0].finish - completions[0].request.arrival).ps()
}

fn programs(counters: &Counters) -> [u64; 3] {
    [ProgramCause::Host, ProgramCause::Padding, ProgramCause::Merge].map(|c| counters.pages_programmed[c as usize])
}

#[test]
fn writes_in_order_are_appended() {
    let mut device = device();
    assert_eq!(write(&mut device, 0, 64), 64 * (PAGE + PROGRAM), "a logical block is in one plane");
    let counters = device.ftl().counters;
    assert_eq!((programs(&counters), counters.blocks_erased), ([64, 0, 0], 0));
    // Neighboring logical blocks are on different channels.
    let homes: Vec<u32> = (0..4).map(|number| device.ftl().home(Lpn(number * 64)).unwrap().0).collect();
    assert_eq!(homes.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{homes:?}");
}

#[test]
fn a_write_beyond_the_frontier_pads_the_pages_before_it() {
    let mut device = device();
    assert_eq!(write(&mut device, 3, 1), 4 * (PAGE + PROGRAM), "three pages of padding, then the page of the write");
    assert_eq!(programs(&device.ftl().counters), [1, 3, 0]);
}

#[test]
fn an_overwrite_opens_a_block_and_copies_the_pages_before_it() {
    let mut device = device();
    write(&mut device, 0, 64);
    let before = device.ftl().counters;
    // Offsets 0 to 2 are copied through the controller into the new block. Then the write is programmed.
    let copy = (READ + PAGE) + (PAGE + PROGRAM);
    assert_eq!(write(&mut device, 3, 1), 3 * copy + PAGE + PROGRAM);
    let counted = device.ftl().counters.since(&before);
    assert_eq!((programs(&counted), counted.pages_read[ReadCause::Merge as usize]), ([1, 0, 3], 3));
    // A write in order is appended. The rest of the old block is copied when the logical block gets another block.
    assert_eq!(write(&mut device, 4, 1), PAGE + PROGRAM);
    // The old block is erased on the same die before the new one is programmed.
    assert_eq!(write(&mut device, 0, 1), 59 * copy + ERASE + PAGE + PROGRAM);
    let counted = device.ftl().counters.since(&before);
    assert_eq!((programs(&counted), counted.blocks_erased), ([3, 0, 62], 1));
    assert_eq!(counted.units_programmed, counted.host_units + counted.units_moved());
    assert_eq!(counted.merges, [0, 0, 1], "offsets 3 and 4 are host writes after copies: a full merge");
}

#[test]
fn the_rest_of_a_block_is_copied_after_the_writes() {
    let mut device = device();
    write(&mut device, 0, 64);
    assert_eq!(write(&mut device, 0, 10), 10 * (PAGE + PROGRAM));
    assert_eq!(device.ftl().counters.merges, [0, 0, 0], "the logical block still has two blocks");
    let copy = (READ + PAGE) + (PAGE + PROGRAM);
    assert_eq!(write(&mut device, 0, 1), 54 * copy + ERASE + PAGE + PROGRAM);
    assert_eq!(device.ftl().counters.merges, [0, 1, 0], "a partial merge");
}

#[test]
fn a_block_that_is_overwritten_in_order_needs_no_copies() {
    let mut device = device();
    for _ in 0..5 {
        write(&mut device, 0, 64);
    }
    let counters = device.ftl().counters;
    assert_eq!((programs(&counters), counters.blocks_erased), ([320, 0, 0], 4));
    assert_eq!(counters.merges, [4, 0, 0], "switch merges");
}

#[test]
fn merging_the_oldest_logical_blocks_restores_the_free_blocks() {
    let mut device = device();
    let total = device.ftl().map.len();
    fill(&mut device, total);
    // 48 of 64 blocks of a plane are in use. When 13 logical blocks have a second block, the threshold of 3 is reached.
    let before = device.ftl().counters;
    for number in 0..20 {
        write(&mut device, number * 4 * 64, 1);
    }
    let counted = device.ftl().counters.since(&before);
    let merged = counted.blocks_erased;
    assert_eq!((programs(&counted), merged), ([20, 0, 63 * merged], 8));
    assert_eq!(device.ftl().blocks.free_blocks(device.ftl().home(Lpn(0)).unwrap(), Role::Data), 4);
}

#[test]
fn options_without_meaning_for_block_mapping_are_refused() {
    for (other, advice) in [
        ("allocation=dynamic", "it needs allocation = \"static\""),
        ("nand.advanced.copy_back=wise", "it needs nand.advanced.copy_back = \"off\""),
        ("nand.advanced.cache_program=true", "it needs nand.advanced.cache_program = false"),
    ] {
        let overrides = ["mapping.scheme=block", "nand.concurrency=die", "geometry.dies=1", other].map(str::to_owned);
        let error = from_toml(common::BASE, "test.toml", &overrides).expect_err("block mapping refuses it");
        assert!(error.to_string().contains(advice), "{error}");
    }
}

/// Overwrites single units in a scattered order with up to four requests outstanding, and checks that all complete.
fn overwrite(device: &mut Device, requests: u64) {
    let units_there = u64::from(device.ftl().map.len());
    for tag in 0..requests {
        let request = units(device, Operation::Write, tag * 7919 % units_there, 1);
        let now = device.now();
        submit(device, now, request);
        while device.outstanding() >= 4 {
            let at = device.next_event().unwrap_or_else(|| panic!("{}", device.explain_stall()));
            device.advance(at);
        }
    }
    assert_eq!(drain(device).len() as u64, requests, "{}", device.explain_stall());
    device.check_invariants().unwrap();
}

#[test]
fn preconditioned_invalid_pages_belong_to_logical_blocks() {
    for (more, share) in [("capacity.spare=0.5", 0.3), ("capacity.spare=0.5", 0.5), ("capacity.logical=40000KiB", 0.1)]
    {
        let mut device = common::build(
            device_config(&["mapping.scheme=block", more]),
            Options { verify: true, ..Options::default() },
        );
        let reached = precondition(&mut device, Precondition::Invalid(share), 1, &mut |_| true).unwrap();
        assert_eq!(reached.mapped, 0.0);
        device.check_invariants().unwrap();
        let of_plane = (share * 64.0 * 64.0 + 1e-6) as u64;
        let mut counters = device.ftl().counters;
        assert_eq!(counters.units_programmed, 4 * of_plane, "{more} {share}");
        assert_eq!((counters.units_moved(), counters.blocks_erased, counters.units_padded), (0, 0, 0));
        // A logical block that is rewritten leaves only invalid pages behind, so nothing is copied.
        let units = device.ftl().map.len();
        fill(&mut device, units);
        counters = device.ftl().counters.since(&counters);
        let blocks = of_plane.div_ceil(64) * 4;
        assert_eq!((counters.units_moved(), counters.blocks_erased, counters.merges), (0, blocks, [blocks, 0, 0]));
        overwrite(&mut device, 500);
        let erases: Vec<u32> = device.ftl().blocks.all().iter().map(|block| block.erases).collect();
        let mean = f64::from(erases.iter().sum::<u32>()) / erases.len() as f64;
        let squares = erases.iter().map(|&count| f64::from(count) - mean).map(|off| off * off);
        let variance = squares.sum::<f64>() / erases.len() as f64;
        assert!(variance.sqrt() < 3.0, "{more} {share}: deviation {}", variance.sqrt());
    }
}

#[test]
fn states_that_logical_blocks_cannot_be_in_are_refused() {
    let refused = |to| {
        let mut device =
            common::build(device_config(&["mapping.scheme=block", "capacity.spare=0.5"]), Options::default());
        precondition(&mut device, to, 1, &mut |_| true).unwrap_err()
    };
    let invalid = refused(Precondition::Invalid(0.51));
    assert!(invalid.contains("give at most invalid=0.500"), "{invalid}");
    let aged = refused(Precondition::Aged(0.2));
    assert!(aged.contains("aged=0.2: with this mapping scheme") && aged.contains("steady"), "{aged}");
}

/// Two logical blocks on the planes of one die are programmed together if both wait for it. That takes two transfers
/// and the time of one program.
#[test]
fn planes_program_logical_blocks_together() {
    let geometry =
        ["channels=1", "chips=1", "chips_per_package=1", "dies=1", "planes=2"].map(|g| format!("geometry.{g}"));
    let mut overrides: Vec<&str> = geometry.iter().map(String::as_str).collect();
    overrides.extend(["mapping.scheme=block", "nand.concurrency=die", "nand.advanced.multi_plane_program=wise"]);
    let mut device = common::build(device_config(&overrides), Options::default());
    let mut at_once = |requests: &[(Operation, u64)]| {
        let at = device.now();
        for &(operation, unit) in requests {
            let request = units(&device, operation, unit, 1);
            submit(&mut device, at, request);
        }
        let last = drain(&mut device).iter().map(|completion| completion.finish).max().unwrap();
        device.check_invariants().unwrap();
        (last - at).ps()
    };
    assert_eq!(
        at_once(&[(Operation::Write, 0), (Operation::Write, 64)]),
        2 * (PAGE + PROGRAM),
        "the first starts at once"
    );
    let behind_a_read = [(Operation::Read, 0), (Operation::Write, 1), (Operation::Write, 65)];
    assert_eq!(at_once(&behind_a_read), READ + PAGE + 2 * PAGE + PROGRAM);
    let merged: Vec<_> = device.array().parallel.shapes().map(|shape| (shape.planes, shape.commands)).collect();
    assert_eq!(merged, [(2, 1)]);
}

#[test]
fn the_number_of_free_blocks_decides_which_capacities_are_accepted() {
    let with = |blocks: u64| {
        let capacity = format!("capacity.logical={}KiB", blocks * 64 * 4);
        from_toml(common::BASE, "test.toml", &["mapping.scheme=block".to_owned(), capacity])
    };
    let config = with(61 * 4).expect("three free blocks in each of four planes of 64");
    assert_eq!((config.max_logical_units(), config.max_soft_threshold()), (61 * 4 * 64, Some(3)));
    let error = with(61 * 4 + 1).expect_err("one plane has only two");
    assert!(error.to_string().contains("or gc.soft_threshold at most 2"), "{error}");
}
