//! Agrawal et al., "Design tradeoffs for SSD performance", USENIX ATC 2008, Table 3: latency and rate of 8 packages,
//! and Table 5: time of a collection.
//!
//! Eight streams with one outstanding request each. Each stream uses one package, which has a channel of its own.
//! Table 1: page read 25 us, program 200 us. A page of 4096 + 128 bytes takes 4224 x 25 ns = 105.6 us on the bus.

use std::ops::Range;

use crate::common::{self, Load, assert_close};
use floatgate_core::internals::CollectionCounts;
use floatgate_core::results::Sample;
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, NoWatcher, Outcome, Ssd, run};

const PACKAGES: u64 = 8;
const SECTORS: u64 = 8;
/// Pages of each package that are filled, so that they can be read.
const FILLED: u64 = 1000;
/// Requests of each stream: whole blocks of 63 data pages and a summary page.
const REQUESTS: u64 = 63 * 100;

fn packages(summary: &str) -> Device {
    let mut device = common::device(&[
        "geometry.channels=8",
        "geometry.chips=1",
        "geometry.blocks=256",
        "geometry.spare_size=128B",
        "bus.transfer_spare=true",
        "allocation={ static = { order = \"s2\" } }",
        summary,
    ]);
    common::fill(&mut device, (FILLED * PACKAGES) as u32);
    device
}

/// Runs one stream per package at queue depth 1. Page n of package p is unit 8 n + p.
fn run_streams(device: &mut Device, operation: Operation) -> Outcome {
    let stream = |package: u64| {
        let mut page = 0;
        let next = move || {
            page += 1;
            let unit = page % FILLED * PACKAGES + package;
            Request::new(Time::ZERO, operation, unit * SECTORS, SECTORS as u32)
        };
        let mut load = Load::closed(1, REQUESTS, next);
        load.pace = floatgate_core::sim::source::Pace::Depth { depth: 1, think: Time::ZERO };
        Box::new(load) as Box<dyn Source>
    };
    let mut streams: Vec<_> = (0..PACKAGES).map(stream).collect();
    let outcome = run(device, &mut streams, &mut NoWatcher).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.counters.victims, 0, "no garbage collection ran");
    assert_eq!(outcome.results.all().count(), PACKAGES * REQUESTS);
    outcome
}

#[test]
fn reads_take_130_us_at_61_255_a_second() {
    let outcome = run_streams(&mut packages("mapping.block_summary=none"), Operation::Read);
    let latency = outcome.results.all().latency;
    assert_eq!((latency.min_us(), latency.mean_us(), latency.max_us()), (130.6, 130.6, 130.6));
    assert_eq!(common::rate(&outcome) as u64, 61_255);
}

#[test]
fn writes_without_summaries_take_305_us_at_26_178_a_second() {
    let outcome = run_streams(&mut packages("mapping.block_summary=none"), Operation::Write);
    let latency = outcome.results.all().latency;
    assert_eq!((latency.min_us(), latency.mean_us(), latency.max_us()), (305.6, 305.6, 305.6));
    assert_eq!(common::rate(&outcome) as u64, 26_178);
}

#[test]
fn writes_with_summaries_take_309_us_at_25_898_a_second() {
    // Section 3.4: the last page of each block holds a summary; 528 bytes take 13.2 us, the program 200 us.
    let mut device = packages("mapping.block_summary={ last_page = \"528B\" }");
    let outcome = run_streams(&mut device, Operation::Write);
    let latency = outcome.results.all().latency;
    let closed_form = 305.6 + (13.2 + 200.0) / 63.0;
    assert_close("latency, closed form", latency.mean_us(), closed_form, 1e-4);
    assert_close("latency, Table 3", latency.mean_us(), 309.0, 0.005);
    assert_close("rate, closed form", common::rate(&outcome), 8e6 / closed_form, 2e-4);
    assert_close("rate, Table 3", common::rate(&outcome), 25_898.0, 0.005);
}

/// Eight units are written in turn, one of them in each block and the other two in all blocks. The seventh block is
/// opened by a write, which takes 305.6 us. The victim, with one valid page, is read, programmed and erased after it.
#[test]
fn a_collection_takes_the_copies_of_its_valid_pages_and_the_erase() {
    let overrides = |copy_back: &str| {
        let geometry = ["channels=1", "chips=1", "planes=1", "blocks=12", "pages=3", "spare_size=128B"];
        let mut all: Vec<String> = geometry.iter().map(|key| format!("geometry.{key}")).collect();
        let more = [
            "bus.transfer_spare=true",
            "capacity={ logical = \"32KiB\" }",
            "gc.soft_threshold=5",
            "gc.frontiers=single",
        ];
        all.extend(more.map(str::to_owned));
        all.push(format!("nand.advanced.copy_back={copy_back}"));
        all
    };
    let time = |copy_back: &str| {
        let mut device = common::device(&overrides(copy_back));
        let write = |device: &mut Device, unit: u64| {
            let request = common::units(device, Operation::Write, unit, 1);
            common::submit(device, device.now(), request);
            common::drain(device);
        };
        (0..6).for_each(|block| [0, 2 + block, 1].into_iter().for_each(|unit| write(&mut device, unit)));
        assert_eq!(device.ftl().counters.victims, 0);
        write(&mut device, 0);
        let counters = &device.ftl().counters;
        assert_eq!((counters.victims, counters.victim_valid_units, counters.blocks_erased), (1, 1, 1));
        let mut sample = Sample::default();
        device.sample(device.now(), &mut sample);
        sample.collections
    };
    let (read, page, program, erase) = (25_000_000, 105_600_000, 200_000_000, 1_500_000_000);
    let collected = |time| CollectionCounts { ended: vec![1], time };
    assert_eq!(time("off"), collected(page + program + read + 2 * page + program + erase));
    // The page and its destination are the second of their blocks, so that copy-back may move it.
    assert_eq!(time("wise"), collected(page + program + read + program + erase));
}

/// Writes a block of a plane. `units` of its eight pages stay valid; they are written last.
fn write_block(device: &mut Device, plane: u32, units: Range<u32>) {
    let ftl = device.ftl_mut();
    let invalid = units.clone().take(8 - units.len()).map(Lpn);
    invalid.clone().for_each(|unit| ftl.write_to(PlaneId(plane), unit));
    invalid.for_each(|unit| ftl.trim(unit));
    units.map(Lpn).for_each(|unit| ftl.write_to(PlaneId(plane), unit));
}

/// Two packages with a channel each. A write opens a block of package 0, which brings the pool, or package 0, to its
/// threshold. The victim has four valid pages.
#[test]
fn a_collection_of_a_pool_moves_units_to_the_other_package() {
    let (read, data, program, erase) = (25_000_000, 102_400_000, 200_000_000, 1_500_000_000);
    let (write, copy) = (data + program, read + 2 * data + program);
    let collect = |soft: u32, options: &[&str], blocks: &[(u32, Range<u32>)]| {
        let soft = format!("gc.soft_threshold={soft}");
        let base = [
            "geometry.chips=1",
            "geometry.blocks=16",
            "geometry.pages=8",
            "capacity.logical=184KiB",
            "allocation=dynamic",
            "gc.frontiers=single",
            &soft,
        ];
        let mut device = common::device(&[&base, options].concat());
        blocks.iter().for_each(|(plane, units)| write_block(&mut device, *plane, units.clone()));
        assert_eq!(device.ftl().counters.victims, 0);
        let request = common::units(&device, Operation::Write, 45, 1);
        common::submit(&mut device, Time::ZERO, request);
        common::drain(&mut device);
        let blocks = &device.ftl().blocks;
        let plane_of = |unit| device.ftl().ppn_in_flash(Lpn(unit)).map(|ppn| blocks.plane_of(blocks.block_of(ppn)));
        assert_eq!(plane_of(45), Some(PlaneId(0)));
        let moved = plane_of(43);
        let mut sample = Sample::default();
        device.sample(device.now(), &mut sample);
        (sample.collections, moved)
    };
    let collected = |ended: [u64; 2], time, to| (CollectionCounts { ended: ended.to_vec(), time }, Some(PlaneId(to)));
    // The pool has 12 + 10 free blocks after the write, 11 in each plane. The victim is in package 1.
    let of_package_1 = [(1, 15..20), (1, 20..25), (1, 25..30), (1, 40..44), (1, 30..35), (1, 44..45)];
    let in_pool = [&[(0, 0..5), (0, 5..10), (0, 10..15)][..], &of_package_1].concat();
    let pool = |options: &[&str]| collect(11, &[&["gc.scope=pool"], options].concat(), &in_pool);
    assert_eq!(pool(&["gc.destination=plane"]), collected([0, 1], 4 * copy + erase, 1));
    // The first page has left package 1 when the write in package 0 ends.
    assert_eq!(pool(&["gc.destination=pool"]), collected([0, 1], write + data + program + 3 * copy + erase, 0));
    // Copy-back is for units that stay in their plane.
    let back = ["nand.advanced.copy_back=wise", "nand.advanced.copy_back_parity=false"];
    let time = 4 * (read + program) + erase;
    assert_eq!(pool(&[&back[..], &["gc.destination=plane"]].concat()), collected([0, 1], time, 1));
    let time = write + data + program + 3 * copy + erase;
    assert_eq!(pool(&[&back[..], &["gc.destination=pool"]].concat()), collected([0, 1], time, 0));
    // Package 0 has 12 free blocks after the write. The victim is in package 0, and its first read follows the write.
    let in_plane = [(0, 0..5), (0, 40..44), (0, 5..10)];
    let plane = |options: &[&str]| collect(12, options, &in_plane);
    assert_eq!(plane(&["gc.destination=plane"]), collected([1, 0], write + 4 * copy + erase, 0));
    assert_eq!(plane(&["gc.destination=pool"]), collected([1, 0], write + 4 * copy + erase, 1));
}
