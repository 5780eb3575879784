//! Studies of page sizes (Hu et al. 2011, Section 4.1): one option sets the page size, and uncovered updates are
//! counted by sector.

use crate::common::Load;
use floatgate_core::device_file::load;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Outcome};

const SIZES: [u64; 4] = [2, 4, 8, 16];

fn machine(page_kib: u64) -> Device {
    // The study changes one option. Fewer blocks make the test short.
    let overrides = [format!("geometry.page_size={page_kib}KiB"), "geometry.blocks=64".to_owned()];
    let config = load("hu2011", &overrides).unwrap();
    assert_eq!(u64::from(config.geometry.pages) * config.geometry.page_size.0, 128 << 10, "a block keeps its size");
    assert_eq!(config.unit_bytes(), page_kib << 10, "a page is mapped as a whole");
    assert_eq!(config.physical_bytes(), 64 * 64 * (128 << 10), "the device keeps its size");
    Device::new(config, Options::default()).unwrap()
}

/// Writes the given sectors, one request after the other.
fn write(device: &mut Device, requests: u64, mut place: impl FnMut(u64) -> (u64, u32) + 'static) -> Outcome {
    let mut number = 0;
    let next = move || {
        number += 1;
        let (first, sectors) = place(number - 1);
        Request { tag: number, ..Request::new(Time::ZERO, Operation::Write, first, sectors) }
    };
    Load::closed(1, requests, next).run(device)
}

#[test]
fn uncovered_updates_grow_with_the_page() {
    const REQUESTS: u64 = 500;
    for (page_kib, uncovered, covered) in [(2, 0, 2), (4, 0, 1), (8, 1, 0), (16, 1, 0)] {
        let mut device = machine(page_kib);
        precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
        let places = device.config().logical_sectors() / 8;
        let mut rng = Rng::new(1, "page size");
        let outcome = write(&mut device, REQUESTS, move |_| (rng.below(places) * 8, 8));
        let counters = &outcome.counters;
        // An aligned write of 4 KiB is two whole pages of 2 KiB, one of 4 KiB, or a part of a larger one, which is read
        // first.
        assert_eq!(counters.updates_uncovered, uncovered * REQUESTS, "{page_kib} KiB");
        assert_eq!(counters.updates_covered, covered * REQUESTS, "{page_kib} KiB");
        assert_eq!(counters.updates_first, 0);
    }
}

#[test]
fn uncovered_updates_are_determined_by_sector() {
    // Figure 9, pages of four sectors. (a) Sectors 1 and 2 are valid, and 0 to 2 are written: covered. (b) Sectors 0 to
    // 3 are valid, and 0 to 2 are written: sector 3 is read first.
    let script: [(u64, u32); 4] = [(1, 2), (0, 3), (4, 4), (4, 3)];
    let mut device = machine(2);
    let outcome = write(&mut device, 4, move |number| script[number as usize]);
    let counters = &outcome.counters;
    assert_eq!((counters.updates_first, counters.updates_covered, counters.updates_uncovered), (2, 1, 1));
    // An uncovered update takes one more read than a covered one.
    assert_eq!(counters.read_commands, 1);
}

#[test]
fn larger_pages_take_fewer_commands() {
    // The other side of Figure 10: a write of 16 KiB is one program with pages of 16 KiB, and eight with pages of 2
    // KiB.
    let commands = SIZES.map(|page_kib| {
        let outcome = write(&mut machine(page_kib), 10, |number| (number * 32, 32));
        assert_eq!(outcome.counters.updates_uncovered, 0);
        outcome.counters.program_commands
    });
    assert_eq!(commands, [80, 40, 20, 10]);
}
