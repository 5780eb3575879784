//! SLC cache (`slc_cache`): the cliff when it is full, and folding by water marks and in idle time. See
//! docs/model/slc_cache.md.

use floatgate_core::flash::{BlockState, Role};
use floatgate_core::internals::{EnergyServed as Served, EnergyWork as Work, ReadCause};
use floatgate_core::policies::Purpose;
use floatgate_core::preparation::precondition;
use floatgate_core::results::{CopyCause, ProgramCause};
use floatgate_core::sim::id::PlaneId;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::summary::EnergyUse;
use floatgate_core::timeline::{Kind, Phase, Probe};

use crate::common::history::summary_of;
use crate::common::{self, Load, drain, submit, units};

const PLANE: PlaneId = PlaneId(0);
/// Transfer of a page, and times of the cells, in ns: of a chip with three bits per cell.
const PAGE: u64 = 102_400;
const READ: u64 = 25_000;
const SLC_READ: u64 = 20_000;
const PROGRAM: u64 = 200_000;
const SLC_PROGRAM: u64 = 75_000;
const ERASE: u64 = 1_500_000;
/// Blocks of the cache, and pages of each: a third of the 24 pages of a native block.
const BLOCKS: u64 = 4;
const PAGES: u64 = 8;

/// Returns a device of one plane with 32 blocks of 24 pages, four of them in the cache, with more options of the cache.
fn machine(more: &str, options: &[&str]) -> Device {
    let cache = format!("slc_cache={{ blocks = {BLOCKS}, {more} }}");
    let base = [
        "geometry.channels=1",
        "geometry.chips=1",
        "geometry.blocks=32",
        "geometry.pages=24",
        "capacity.spare=0.4",
        "nand.cell=tlc",
        "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
        &cache,
    ];
    common::device(&[&base, options].concat())
}

/// Writes `count` units in order, one after another, and returns the times of their completions, in ns.
fn write(device: &mut Device, first: u64, count: u64) -> Vec<u64> {
    let at = device.now();
    for unit in first..first + count {
        let request = units(device, Operation::Write, unit, 1);
        submit(device, at, request);
    }
    let mut ends: Vec<u64> = drain(device).iter().map(|completion| completion.finish.ps() / 1000).collect();
    ends.sort_unstable();
    ends
}

fn full_blocks(device: &Device) -> u32 {
    device.ftl().blocks.full_of_cache(PLANE)
}

/// The closed form of the cliff: the program rate of SLC mode until the cache is full. Then each block of the cache has
/// to be folded first: its pages are read in SLC mode and programmed in native mode, and it is erased.
#[test]
fn writes_that_wait_fall_from_the_rate_of_slc_mode_to_that_of_folding() {
    let mut device = machine("when_full = \"wait\", high_water = 1.0, low_water = 0.9", &[]);
    let ends = write(&mut device, 0, (BLOCKS + 3) * PAGES);
    let slc = PAGE + SLC_PROGRAM;
    let fold = PAGES * (SLC_READ + PAGE + PAGE + PROGRAM) + ERASE;
    for (index, end) in (0..).zip(ends) {
        let folded = (index / PAGES + 1).saturating_sub(BLOCKS);
        assert_eq!(end, (index + 1) * slc + folded * fold, "page {index}");
    }
    let counters = device.ftl().counters;
    // The last block was filled, and the next one is folded before the device comes to rest.
    assert_eq!(counters.slc.cache_units, (BLOCKS + 3) * PAGES);
    assert_eq!(counters.moved[CopyCause::Fold as usize], counters.slc.folded * PAGES);
    device.check_invariants().unwrap();
}

/// Eight pages of the cache are two programs of three pages, and a third of the next one: three blocks are eight
/// programs. Pages that wait for a program delay the erase of their block, and so the writes that wait for it.
#[test]
fn three_blocks_of_the_cache_fill_the_programs_of_one_native_block() {
    let options = ["geometry.pages_per_program=3"];
    let mut device = machine("when_full = \"wait\", high_water = 1.0, low_water = 0.0, idle = \"1ms\"", &options);
    let before = device.ftl().counters;
    write(&mut device, 0, 3 * PAGES);
    let done = device.ftl().counters.since(&before);
    assert_eq!(
        done.slc.pages_programmed.iter().sum::<u64>(),
        3 * PAGES,
        "a program in SLC mode fills one page of each wordline"
    );
    assert_eq!((done.slc.folded_idle, done.program_commands), (3, 3 * PAGES + 3 * PAGES / 3));
    assert_eq!((done.units_padded, full_blocks(&device)), (0, 0));
    device.check_invariants().unwrap();
}

#[test]
fn writes_that_go_direct_have_the_rate_of_native_mode() {
    // Nothing is folded before all requests are served, because host writes go first.
    let mut device = machine("high_water = 1.0, low_water = 0.0", &["scheduler=fcfs"]);
    let ends = write(&mut device, 0, BLOCKS * PAGES + 1);
    let slc = PAGE + SLC_PROGRAM;
    assert_eq!(ends[(BLOCKS * PAGES - 1) as usize], BLOCKS * PAGES * slc);
    assert_eq!(ends[(BLOCKS * PAGES) as usize], BLOCKS * PAGES * slc + PAGE + PROGRAM);
    let counters = device.ftl().counters;
    assert_eq!(counters.slc.cache_units, BLOCKS * PAGES);
    assert_eq!(full_blocks(&device), 0, "folding continues down to the low water mark");
    device.check_invariants().unwrap();
}

#[test]
fn folding_starts_and_ends_at_the_water_marks() {
    for (high, low, full, left) in [("0.75", "0.25", 3, 1), ("0.5", "0.0", 2, 0), ("1.0", "0.5", 4, 2)] {
        let marks = format!("high_water = {high}, low_water = {low}");
        let mut device = machine(&marks, &[]);
        write(&mut device, 0, (full - 1) * PAGES);
        assert_eq!((u64::from(full_blocks(&device)), device.ftl().counters.slc.folded), (full - 1, 0), "{marks}");
        write(&mut device, (full - 1) * PAGES, PAGES);
        assert_eq!(u64::from(full_blocks(&device)), left, "{marks}");
        assert_eq!(device.ftl().counters.slc.folded, full - left, "{marks}");
    }
}

#[test]
fn idle_time_restores_the_cache() {
    let mut device = machine("when_full = \"wait\", high_water = 1.0, low_water = 0.9, idle = \"5ms\"", &[]);
    let slc = PAGE + SLC_PROGRAM;
    let burst = (BLOCKS - 1) * PAGES;
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    let ends = write(&mut device, 0, burst);
    assert_eq!(*ends.last().unwrap(), burst * slc);
    // The device is idle for 5 ms before it folds all blocks, and has folded them now.
    let slices = device.array().probe().expect("it was switched on").slices();
    let first = slices.iter().find(|slice| slice.purpose == Purpose::Fold).expect("blocks are folded");
    assert_eq!(first.start, Time::from_ns(burst * slc + 5_000_000));
    assert_eq!((full_blocks(&device), device.ftl().counters.slc.folded_idle), (0, BLOCKS - 1));
    // The next burst is as fast as the first one.
    let at = device.now();
    let ends = write(&mut device, burst, burst);
    assert_eq!(*ends.last().unwrap(), at.ps() / 1000 + burst * slc);
    device.check_invariants().unwrap();
}

#[test]
fn a_request_ends_folding_in_idle_time_after_the_block() {
    let mut device = machine("high_water = 1.0, low_water = 0.9, idle = \"5ms\"", &[]);
    let ends = write(&mut device, 0, 0);
    assert!(ends.is_empty());
    let at = device.now();
    for unit in 0..3 * PAGES {
        let request = units(&device, Operation::Write, unit, 1);
        submit(&mut device, at, request);
    }
    // A read arrives when the first block is being folded.
    let arrival = Time::from_ns(3 * PAGES * (PAGE + SLC_PROGRAM) + 5_000_000 + 100_000);
    let request = units(&device, Operation::Read, 20, 1);
    submit(&mut device, arrival, request);
    // Another request 4 ms later keeps the device from being idle again.
    let request = units(&device, Operation::Read, 20, 1);
    submit(&mut device, arrival + Time::from_ns(4_500_000), request);
    assert_eq!(device.ftl().counters.slc.folded, 1);
    drain(&mut device);
    assert_eq!((device.ftl().counters.slc.folded, full_blocks(&device)), (3, 0));
}

#[test]
fn reads_of_the_cache_take_the_time_of_slc_mode() {
    let mut device = machine("high_water = 1.0, low_water = 0.9", &[]);
    let at = |device: &mut Device, operation: Operation| {
        let (now, request) = (device.now(), units(device, operation, 0, 1));
        submit(device, now, request);
        let ended = drain(device);
        (ended[0].finish - ended[0].request.arrival).ps() / 1000
    };
    assert_eq!(at(&mut device, Operation::Write), PAGE + SLC_PROGRAM);
    assert_eq!(at(&mut device, Operation::Read), SLC_READ + PAGE);
    assert_eq!(device.ftl().counters.slc.pages_read.iter().sum::<u64>(), 1);
    // After folding, the unit is in a native block.
    write(&mut device, 1, BLOCKS * PAGES);
    assert!(device.ftl().counters.slc.folded > 0);
    let before = device.ftl().counters.slc.pages_read;
    assert_eq!(at(&mut device, Operation::Read), READ + PAGE);
    assert_eq!(device.ftl().counters.slc.pages_read, before);
}

#[test]
fn write_amplification_is_split_into_host_collection_and_folding() {
    let mut device = machine("when_full = \"wait\"", &["energy.slc_read=1uJ", "energy.read=7uJ"]);
    let reached = precondition(&mut device, "fill".parse().unwrap(), 1, &mut |_| true).unwrap();
    assert_eq!(reached.mapped, 1.0);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    let before = device.ftl().counters;
    let total = u64::from(device.ftl().map.len());
    let mut rng = floatgate_core::sim::rng::Rng::new(1, "slc-cache");
    let of = units(&device, Operation::Write, 0, 1);
    let next = move || Request { lba: rng.below(total) * u64::from(of.sectors), ..of };
    let outcome = Load::closed(4, 3000, next).run(&mut device);
    drain(&mut device);
    device.check_invariants().unwrap();
    let done = device.ftl().counters.since(&before);
    let [folded, collected] = [CopyCause::Fold, CopyCause::Gc].map(|cause| done.moved[cause as usize]);
    assert!(folded > 0 && collected > 0, "{folded} units folded, {collected} collected");
    // A page that was read is programmed, unless its unit was overwritten in between.
    let (read, programmed) =
        (done.pages_read[ReadCause::Fold as usize], done.pages_programmed[ProgramCause::Fold as usize]);
    assert!((folded..=folded + read / 20).contains(&read), "{read} pages read for {folded} units");
    assert_eq!(programmed + done.pages_programmed[ProgramCause::Gc as usize], folded + collected + done.wasted_copies);
    assert_eq!(done.slc.cache_units, 3000);
    let slices = device.array().probe().expect("it was switched on").slices();
    let of = |kind: Kind, ns: u64| {
        let is_it = |slice: &&floatgate_core::timeline::Slice| {
            slice.phase == Phase::Cell && slice.kind == kind && slice.end - slice.start == Time::from_ns(ns)
        };
        slices.iter().filter(is_it).count() as u64
    };
    assert_eq!(of(Kind::Program, SLC_PROGRAM), done.slc.pages_programmed.iter().sum::<u64>());
    assert_eq!(of(Kind::Read, SLC_READ), done.slc.pages_read.iter().sum::<u64>());
    assert_eq!(of(Kind::Erase, ERASE), done.blocks_erased);
    let work = Work { counters: &done, data: 0, span: Time::ZERO };
    let energy = EnergyUse::new(device.config(), &work, Served::default()).unwrap();
    let femto = of(Kind::Read, READ) * 7_000_000_000 + of(Kind::Read, SLC_READ) * 1_000_000_000;
    assert_eq!(energy.read_j, femto as f64 / 1e15);
    let purposes = slices.iter().filter(|slice| slice.phase == Phase::Cell && slice.purpose == Purpose::Fold);
    let folding = done.pages_read[ReadCause::Fold as usize] + done.pages_programmed[ProgramCause::Fold as usize];
    assert_eq!(purposes.count() as u64, folding + done.slc.folded);
    let summary = summary_of(&outcome, &device);
    let parts = summary.amplification_by_cause().unwrap();
    let sum: f64 = parts.iter().map(|(_, part)| part).sum();
    common::assert_close("sum of the parts", sum, summary.write_amplification.unwrap(), 1e-9);
    let folded = parts.iter().find(|(name, _)| *name == "folding").unwrap().1;
    let moved = summary.gc.units_moved.fold;
    common::assert_close("folding", folded, moved as f64 / 3000.0, 1e-9);
    assert_eq!(summary.gc.slc_cache.unwrap().units, 3000);
}

/// Without time, writes fill the cache, which folds its oldest block when it is full. Idle time folds the rest.
#[test]
fn preconditioning_uses_the_cache() {
    for (idle, full) in [("", BLOCKS as u32), (", idle = \"1ms\"", 0)] {
        let mut device = machine(&format!("when_full = \"wait\"{idle}"), &[]);
        precondition(&mut device, "fill".parse().unwrap(), 1, &mut |_| true).unwrap();
        let total = u64::from(device.ftl().map.len());
        let counters = device.ftl().counters;
        assert_eq!(counters.slc.cache_units, total);
        assert!(full_blocks(&device) <= full && (idle.is_empty() == (full_blocks(&device) > 0)), "{idle}");
        assert_eq!(counters.moved[CopyCause::Fold as usize], counters.slc.folded * PAGES);
        device.check_invariants().unwrap();
    }
    // A share of invalid units stays in native blocks.
    let mut device = machine("when_full = \"wait\"", &["capacity.spare=0.6"]);
    precondition(&mut device, "aged=0.2".parse().unwrap(), 1, &mut |_| true).unwrap();
    assert_eq!(device.ftl().counters.slc.cache_units, 0);
    device.check_invariants().unwrap();
}

/// The cache takes nothing from the reserve of garbage collection: a device that is as full as it may be never stops.
#[test]
fn a_full_device_keeps_folding() {
    let mut device = machine("when_full = \"wait\"", &["capacity.spare=0.6"]);
    let most = device.config().max_logical_units();
    let capacity = format!("capacity.logical={}B", most * 4096);
    device = machine("when_full = \"wait\"", &[&capacity]);
    precondition(&mut device, "fill".parse().unwrap(), 1, &mut |_| true).unwrap();
    let mut rng = floatgate_core::sim::rng::Rng::new(2, "slc-cache");
    let of = units(&device, Operation::Write, 0, 1);
    let next = move || Request { lba: rng.below(most) * u64::from(of.sectors), ..of };
    Load::closed(16, 2000, next).run(&mut device);
    drain(&mut device);
    device.check_invariants().unwrap();
}

/// A failed program makes the cache smaller by its block, and loses no data.
#[test]
fn a_bad_block_of_the_cache_leaves_it() {
    let mut device = machine("when_full = \"wait\", high_water = 1.0, low_water = 0.9", &["faults.program_rate=0"]);
    device.fail_next("program 0/1".parse().unwrap()).unwrap();
    write(&mut device, 0, 5 * PAGES);
    let of_cache: Vec<_> = device.ftl().blocks.all()[..BLOCKS as usize].iter().map(|block| block.state).collect();
    assert_eq!(of_cache[1], BlockState::Bad);
    assert!(device.ftl().blocks.all()[..BLOCKS as usize].iter().all(|block| block.role == Role::Cache));
    write(&mut device, 5 * PAGES, 10 * PAGES);
    assert_eq!(device.ftl().counters.faults.units_lost, 0);
    device.check_invariants().unwrap();
}
