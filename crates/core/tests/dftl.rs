//! DFTL: costs of a miss and an eviction, step by step, and their frequency. See docs/model/mapping.md.

use crate::common::{self, device_config, drain, fill, submit, units};
use floatgate_core::flash::{BlockState, Role};
use floatgate_core::internals::{MapCause, MappingScheme, ReadCause};
use floatgate_core::results::{Part, ProgramCause};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::rng::Rng;
use floatgate_core::simulation::{Device, Options, Ssd};

/// Cells to register, register to cells, and transfer of a page over the channel: 4096 cycles of 25 ns.
const READ: u64 = 25_000_000;
const PROGRAM: u64 = 200_000_000;
const PAGE: u64 = 4096 * 25_000;

/// Returns a full device of 12288 units, whose map has 12 translation pages, with the given options of DFTL.
fn device(options: &str) -> Device {
    let scheme = format!("mapping.scheme={{ dftl = {{ {options} }} }}");
    let config = device_config(&[scheme.as_str()]);
    let mut device = common::build(config, Options { attribution: true, ..Options::default() });
    let units = device.ftl().map.len();
    fill(&mut device, units);
    assert_eq!(
        device.ftl().counters.map.programs[MapCause::Functional as usize],
        u64::from(device.ftl().shape().map_pages)
    );
    device
}

/// Serves one request alone and returns its latency in picoseconds.
fn latency(device: &mut Device, operation: Operation, unit: u64, count: u32) -> u64 {
    let at = device.now();
    let request = units(device, operation, unit, count);
    submit(device, at, request);
    let completions = drain(device);
    assert_eq!(completions.len(), 1);
    (completions[0].finish - completions[0].request.arrival).ps()
}

#[test]
fn a_read_miss_reads_the_map_and_then_the_data() {
    let mut device = device("cache = \"8B\"");
    assert_eq!(latency(&mut device, Operation::Read, 0, 1), 2 * (READ + PAGE), "the cache starts cold");
    assert_eq!(latency(&mut device, Operation::Read, 0, 1), READ + PAGE);
    assert_eq!(latency(&mut device, Operation::Read, 1, 1), 2 * (READ + PAGE), "the cache holds one entry");
    let mut breakdowns = Vec::new();
    device.take_breakdowns(&mut breakdowns);
    let waits: Vec<u64> = breakdowns.iter().map(|b| b.of(Part::MapFetch).ps()).collect();
    assert_eq!(waits, [READ + PAGE, 0, READ + PAGE]);
    let counters = device.ftl().counters;
    assert_eq!((counters.map.hits, counters.map.misses), (1, 2));
    assert_eq!((counters.map.evictions_clean, counters.map.evictions_dirty), (1, 0));
    assert_eq!((counters.map.reads[MapCause::Miss as usize], counters.pages_read[ReadCause::Map as usize]), (2, 2));
    device.check_invariants().unwrap();
}

#[test]
fn a_write_miss_writes_back_a_dirty_victim_first() {
    let mut device = device("cache = \"8B\"");
    let before = device.ftl().counters;
    assert_eq!(latency(&mut device, Operation::Write, 0, 1), (READ + PAGE) + (PAGE + PROGRAM));
    // The entry of unit 0 is dirty: its translation page is read and programmed, then the other one is read.
    let written = latency(&mut device, Operation::Write, 1024, 1);
    assert_eq!(written, (READ + PAGE) + (PAGE + PROGRAM) + (READ + PAGE) + (PAGE + PROGRAM));
    let counted = device.ftl().counters.since(&before);
    assert_eq!((counted.map.misses, counted.map.evictions_dirty), (2, 1));
    assert_eq!(counted.map.reads, [2, 1, 0, 0, 0]);
    assert_eq!(counted.map.programs, [0, 1, 0, 0, 0]);
    assert_eq!(counted.pages_programmed[ProgramCause::Map as usize], 1);
    assert_eq!(counted.units_programmed, 3, "two host units and a translation page");
    device.check_invariants().unwrap();
}

#[test]
fn a_translation_page_that_was_never_written_is_not_read_before_its_update() {
    // On an empty device, no translation page in flash holds an entry.
    let config = device_config(&["mapping.scheme={ dftl = { cache = \"8B\" } }"]);
    let mut device = common::build(config, Options::default());
    assert_eq!(latency(&mut device, Operation::Write, 0, 1), PAGE + PROGRAM);
    assert_eq!(latency(&mut device, Operation::Write, 1024, 1), 2 * (PAGE + PROGRAM));
    let counters = device.ftl().counters.map;
    assert_eq!((counters.reads, counters.programs), ([0; 5], [0, 1, 0, 0, 0]));
}

#[test]
fn misses_of_one_translation_page_share_its_read() {
    let mut device = device("cache = \"8KiB\"");
    latency(&mut device, Operation::Read, 0, 64);
    let counters = device.ftl().counters.map;
    assert_eq!((counters.hits, counters.misses), (0, 64));
    assert_eq!(counters.reads, [1, 0, 0, 0, 0]);
    latency(&mut device, Operation::Read, 0, 64);
    assert_eq!(device.ftl().counters.map.hits, 64);
}

#[test]
fn the_hit_ratio_under_uniform_reads_is_the_cached_share() {
    let mut device = device("cache = \"24KiB\"");
    let mut rng = Rng::new(3, "uniform");
    let total = u64::from(device.ftl().map.len());
    let cached = 3072;
    let mut model: Vec<u64> = Vec::new();
    let (mut expected, mut warm) = (0, 0);
    // A segmented LRU by its definition, as lists: the protected half for entries that were used again, and the rest.
    let mut kept: Vec<u64> = Vec::new();
    for round in 0..30_000 {
        let unit = rng.below(total);
        let places = (kept.iter().position(|&u| u == unit), model.iter().position(|&u| u == unit));
        expected += u64::from(places != (None, None));
        warm += u64::from(round >= 10_000 && places != (None, None));
        match places {
            (Some(place), _) => {
                kept.remove(place);
            }
            (_, Some(place)) => {
                model.remove(place);
            }
            (None, None) if model.len() + kept.len() == cached => {
                model.pop();
            }
            (None, None) => {}
        }
        if places == (None, None) {
            model.insert(0, unit);
        } else {
            kept.insert(0, unit);
            if kept.len() > cached / 2 {
                model.insert(0, kept.pop().unwrap());
            }
        }
        latency(&mut device, Operation::Read, unit, 1);
    }
    let map = device.ftl().counters.map;
    assert_eq!((map.hits, map.misses), (expected, 30_000 - expected), "the counts of the model");
    // All entries are equally likely, so the hit ratio is the cached share once the cache is full.
    common::assert_close("hit ratio", warm as f64 / 20_000.0, cached as f64 / total as f64, 0.04);
}

#[test]
fn a_scan_misses_every_entry_and_reads_a_translation_page_for_each() {
    let mut device = device("cache = \"1KiB\"");
    for unit in 0..2048 {
        latency(&mut device, Operation::Read, unit, 1);
    }
    let map = device.ftl().counters.map;
    assert_eq!(
        (map.hits, map.misses, map.reads[0]),
        (0, 2048, 2048),
        "each entry is fetched separately, as in the paper"
    );
}

/// Overwrites a full device at random in timed mode. Returns the counts of the overwrites, and the device.
fn overwrites(options: &str) -> (floatgate_core::results::Counters, Device) {
    let mut device = device(options);
    let before = device.ftl().counters;
    let mut rng = Rng::new(9, "overwrites");
    let total = u64::from(device.ftl().map.len());
    for _ in 0..8_000 {
        let at = device.now();
        let request = units(&device, Operation::Write, rng.below(total), 1);
        submit(&mut device, at, request);
        while device.outstanding() >= 8 {
            device.advance(device.next_event().unwrap());
        }
    }
    drain(&mut device);
    device.check_invariants().unwrap();
    (device.ftl().counters.since(&before), device)
}

#[test]
fn batches_and_lazy_copies_save_map_programs() {
    let all = overwrites("cache = \"8KiB\"").0.map;
    let single = overwrites("cache = \"8KiB\", batch_updates = false").0.map;
    let lazy = overwrites("cache = \"96KiB\"").0.map;
    let eager = overwrites("cache = \"96KiB\", lazy_copies = false").0.map;
    let gc = MapCause::Gc as usize;
    assert!(all.programs[gc] * 2 < single.programs[gc], "{all:?} {single:?}");
    assert!(all.programs[1] * 2 < single.programs[1], "{all:?} {single:?}");
    assert_eq!(single.programs[1], single.evictions_dirty, "one update per entry");
    assert!(lazy.programs[gc] * 2 < eager.programs[gc], "{lazy:?} {eager:?}");
}

#[test]
fn counts_of_map_pages_add_up() {
    let (counted, device) = overwrites("cache = \"2KiB\", entry = \"32B\"");
    let map = counted.map;
    assert_eq!(counted.pages_programmed[ProgramCause::Map as usize], map.programs.iter().sum::<u64>());
    assert_eq!(counted.pages_read[ReadCause::Map as usize], map.reads.iter().sum::<u64>());
    assert_eq!(
        counted.units_programmed,
        counted.host_units + counted.units_moved() + counted.wasted_copies + map.programs.iter().sum::<u64>()
    );
    assert!(
        map.reads[3] > 0 && map.reads[3] <= map.programs[3] && map.victims > 0,
        "translation blocks are collected: {map:?}"
    );
    assert!(map.misses >= map.reads[0] && map.evictions_dirty >= map.programs[1]);
    // Each write is a hit or a miss, except if it directly follows an outstanding write of the same unit.
    assert!((7_950..=8_000).contains(&(map.hits + map.misses)), "{map:?}");
    let MappingScheme::Dftl(dftl) = device.ftl().scheme() else { panic!("the scheme is DFTL") };
    let in_flash = &dftl.state;
    assert!((0..in_flash.pages()).all(|page| in_flash.place(page).is_some()));
}

#[test]
fn a_trim_changes_entries_without_a_wait() {
    let mut device = device("cache = \"8B\"");
    assert_eq!(latency(&mut device, Operation::Trim, 0, 4), 0);
    let map = device.ftl().counters.map;
    assert_eq!((map.evictions_dirty, map.misses), (3, 0), "four entries changed and one stays cached");
    let MappingScheme::Dftl(dftl) = device.ftl().scheme() else { panic!("the scheme is DFTL") };
    assert_eq!(dftl.state.cmt.len(), 1);
    assert!(map.programs[MapCause::Eviction as usize] <= 2, "the entries of one translation page are written together");
    device.check_invariants().unwrap();
}

/// Cells to register, and register to cells, in SLC mode.
const SLC_READ: u64 = 20_000_000;
const SLC_PROGRAM: u64 = 75_000_000;

/// Options of a chip with three bits per cell. Its blocks hold 66 pages, or 22 in SLC mode.
const TLC: [&str; 3] = ["geometry.pages=66", "nand.cell=tlc", "nand.slc_mode={ read = \"20us\", program = \"75us\" }"];

/// Returns a full device with options [`TLC`], the map in SLC mode, and more options.
fn in_slc_mode(options: &[&str]) -> Device {
    let device = [&TLC[..], &["mapping.scheme.dftl.cells=slc"], options].concat();
    let mut device = common::build(device_config(&device), Options::default());
    let units = device.ftl().map.len();
    fill(&mut device, units);
    device
}

#[test]
fn translation_pages_in_slc_mode_take_the_times_of_slc_mode() {
    let mut device = in_slc_mode(&["mapping.scheme.dftl.cache=8B"]);
    let (read_map, program_map) = (SLC_READ + PAGE, PAGE + SLC_PROGRAM);
    assert_eq!(latency(&mut device, Operation::Read, 0, 1), read_map + (READ + PAGE));
    assert_eq!(latency(&mut device, Operation::Read, 0, 1), READ + PAGE);
    assert_eq!(latency(&mut device, Operation::Write, 1, 1), read_map + (PAGE + PROGRAM));
    // The entry of unit 1 is dirty: its translation page is read and programmed, then the other one is read.
    let written = latency(&mut device, Operation::Write, 1024, 1);
    assert_eq!(written, read_map + program_map + read_map + (PAGE + PROGRAM));
    device.check_invariants().unwrap();
}

#[test]
fn a_program_in_slc_mode_fills_one_page_of_each_wordline() {
    let wordlines = ["geometry.pages_per_program=3", "mapping.scheme.dftl.cache=8B"];
    let native = common::build(device_config(&[&TLC[..], &wordlines].concat()), Options::default());
    let mut device = in_slc_mode(&wordlines);
    let pages = [&native, &device].map(|device| device.ftl().shape().map_pages);
    // There are 12,672 entries. A page of 4 KiB holds 1,024 of them, and three pages hold 3,072.
    assert_eq!(pages, [5, 13]);
    let before = device.ftl().counters;
    let units = 3 * 1024;
    assert_eq!(latency(&mut device, Operation::Write, 0, 1), (SLC_READ + PAGE) + (3 * PAGE + PROGRAM));
    let written = latency(&mut device, Operation::Write, units, 1);
    assert_eq!(written, (SLC_READ + PAGE) + (PAGE + SLC_PROGRAM) + (SLC_READ + PAGE) + (3 * PAGE + PROGRAM));
    let counted = device.ftl().counters.since(&before);
    assert_eq!((counted.map.reads, counted.map.programs), ([2, 1, 0, 0, 0], [0, 1, 0, 0, 0]));
    assert_eq!(counted.pages_read[ReadCause::Map as usize], 3);
    assert_eq!(counted.pages_programmed[ProgramCause::Map as usize], 1);
    device.check_invariants().unwrap();
}

#[test]
fn blocks_of_the_map_hold_a_page_of_each_wordline_and_change_their_mode() {
    let options = ["mapping.scheme.dftl.entry=256B", "mapping.scheme.dftl.cache=2KiB", "capacity.spare=0.4"];
    let native = device_config(&[&TLC[..], &options].concat());
    let mut device = in_slc_mode(&options);
    // 10,137 units of 16,896 take 634 translation pages of 16 entries, 159 in each of four planes. With a quarter more,
    // they take 4 blocks of 66 pages or 10 of 22, and two more blocks are added.
    assert_eq!((native.map_blocks(), device.config().map_blocks()), (4 + 2, 10 + 2));
    let mut rng = Rng::new(5, "cells");
    let total = u64::from(device.ftl().map.len());
    let mut held = std::collections::BTreeSet::new();
    let mut modes = vec![[false; 2]; device.ftl().blocks.all().len()];
    for _ in 0..12_000 {
        latency(&mut device, Operation::Write, rng.below(total), 1);
        for (block, seen) in device.ftl().blocks.all().iter().zip(&mut modes) {
            if block.state == BlockState::Closed {
                seen[block.role as usize] = true;
                held.insert((block.role as u8, block.valid));
            }
        }
    }
    let most = |role: Role| held.iter().filter(|held| held.0 == role as u8).map(|held| held.1).max();
    assert_eq!((most(Role::Data), most(Role::Map)), (Some(66), Some(22)));
    assert!(modes.contains(&[true; 2]), "no block was used in both modes");
    device.check_invariants().unwrap();
}

#[test]
fn planes_that_work_together_have_the_same_cell_mode() {
    let planes =
        ["geometry.planes=2", "geometry.chips=1", "geometry.channels=1", "nand.advanced.multi_plane_read=true"];
    let merged = |cells: &str| {
        let mut device = in_slc_mode(&[&planes[..], &["mapping.scheme.dftl.cache=8B", cells]].concat());
        latency(&mut device, Operation::Read, 1, 1);
        // While unit 1 is read, it is requested again, and so is an entry of the first translation page. Both are in
        // the first pages of their blocks.
        let at = device.now();
        for unit in [1, 1, 2] {
            let request = units(&device, Operation::Read, unit, 1);
            submit(&mut device, at, request);
        }
        drain(&mut device);
        device.array().parallel.shapes().map(|shape| shape.commands).sum::<u64>()
    };
    assert_eq!(merged("mapping.scheme.dftl.cells=native"), 1);
    assert_eq!(merged("mapping.scheme.dftl.cells=slc"), 0);
}
