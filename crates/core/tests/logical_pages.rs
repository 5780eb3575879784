//! Logical pages over several packages, and stripes: times computed by hand, to the picosecond.
//!
//! Times of the device: page read 25 us, program 200 us. A page of 4096 B takes 102.4 us on the channel at 25 ns per
//! byte. Four packages have a channel each.

use crate::common::{self, Load, drain, fill, refusal, submit, units};
use floatgate_core::internals::ReadCause;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};

const US: u64 = 1_000_000;
const DATA: u64 = 102_400_000;
/// Unloaded times of a program and of a read.
const WRITTEN: u64 = DATA + 200 * US;
const FETCHED: u64 = 25 * US + DATA;

fn packages(overrides: &[&str]) -> Device {
    common::device(&[&["geometry.channels=4", "geometry.chips=1"], overrides].concat())
}

/// Returns the duration of a request for whole units.
fn takes(device: &mut Device, operation: Operation, first: u64, count: u32) -> u64 {
    let start = device.now();
    let request = units(device, operation, first, count);
    submit(device, start, request);
    (drain(device)[0].finish - start).0
}

/// Returns the pages read for partial writes, and all mapping units programmed for the host.
fn work(device: &Device) -> (u64, u64) {
    let counters = &device.ftl().counters;
    (counters.pages_read[ReadCause::Rmw as usize], counters.units_programmed)
}

fn work_of(device: &mut Device, first: u64, count: u32) -> (u64, u64, u64) {
    let before = work(device);
    let time = takes(device, Operation::Write, first, count);
    let after = work(device);
    (time, after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_write_rewrites_the_rest_of_its_logical_page() {
    let mut device = packages(&["geometry.logical_page=16KiB"]);
    fill(&mut device, 64);
    // One of four units: the others are read and programmed, each in its own package at the same time.
    assert_eq!(work_of(&mut device, 5, 1), (FETCHED + WRITTEN, 3, 4));
    // All four units of a logical page, and those of two logical pages in part.
    assert_eq!(work_of(&mut device, 8, 4), (WRITTEN, 0, 4));
    let (_, read, programmed) = work_of(&mut device, 3, 2);
    assert_eq!((read, programmed), (6, 8));
    // A part of a unit: the unit itself is read too.
    let start = device.now();
    submit(&mut device, start, Request::new(Time::ZERO, Operation::Write, 0, 4));
    drain(&mut device);
    assert_eq!(work(&device).0, 3 + 6 + 4);
    // Reads transfer only what was requested.
    assert_eq!(takes(&mut device, Operation::Read, 5, 1), FETCHED);
    assert_eq!(device.ftl().counters.host_units, 64 + 1 + 4 + 2 + 1, "units that the host did not write do not count");
}

/// Returns a device with a write-back buffer and logical pages of four units. It holds data.
fn buffered(overrides: &[&str]) -> Device {
    let mut device = packages(&[&["geometry.logical_page=16KiB", "buffer.capacity=64KiB"], overrides].concat());
    fill(&mut device, 64);
    device
}

/// Writes single units into the buffer and flushes it. Returns the times from the flush to its completion and to the
/// end of all operations, the pages read, and the units programmed.
fn flushed(device: &mut Device, written: &[u64]) -> (u64, u64, u64, u64) {
    for &unit in written {
        assert_eq!(takes(device, Operation::Write, unit, 1), 0);
    }
    let (start, before) = (device.now(), work(device));
    submit(device, start, Request::new(Time::ZERO, Operation::Flush, 0, 0));
    let end = drain(device)[0].finish;
    let after = work(device);
    ((end - start).0, (device.now() - start).0, after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_buffer_writes_back_whole_logical_pages() {
    // The flush waits for the written unit. The three others of its page are read, and then programmed.
    let mut device = buffered(&[]);
    assert_eq!(flushed(&mut device, &[5]), (WRITTEN, FETCHED + WRITTEN, 3, 4));
    // Units of a page that are dirty are written together. A whole page needs no read.
    assert_eq!(flushed(&mut device, &[8, 9, 10, 11]), (WRITTEN, WRITTEN, 0, 4));
    assert_eq!(flushed(&mut device, &[12, 14]), (WRITTEN, FETCHED + WRITTEN, 2, 4));
    // Two pages: the units 17 and 22 are in different packages, as are the six others.
    let (_, _, read, programmed) = flushed(&mut device, &[17, 22]);
    assert_eq!((read, programmed), (6, 8));
    let counters = device.ftl().counters;
    assert_eq!((counters.host_units, counters.units_rewritten), (64 + 1 + 4 + 2 + 2, 3 + 2 + 6));
    // A part of a unit: the unit itself is read too.
    let start = device.now();
    submit(&mut device, start, Request::new(Time::ZERO, Operation::Write, 0, 4));
    drain(&mut device);
    assert_eq!(flushed(&mut device, &[]), (FETCHED + WRITTEN, FETCHED + WRITTEN, 4, 4));
    device.check_invariants().unwrap();
}

#[test]
fn a_write_that_must_be_in_flash_does_not_wait_for_the_rest_of_its_logical_page() {
    let mut device = buffered(&[]);
    let (start, before) = (device.now(), work(&device));
    let request = Request { fua: true, ..units(&device, Operation::Write, 6, 1) };
    submit(&mut device, start, request);
    assert_eq!((drain(&mut device)[0].finish - start).0, WRITTEN);
    assert_eq!((device.now() - start).0, FETCHED + WRITTEN);
    assert_eq!((work(&device).0 - before.0, work(&device).1 - before.1), (3, 4));
}

#[test]
fn an_eviction_takes_the_dirty_units_of_its_logical_page_along() {
    // The buffer holds four units. The fifth evicts the oldest, unit 4, and unit 6 of its page goes along.
    let mut device = buffered(&["buffer.capacity=16KiB"]);
    let before = work(&device);
    for unit in [4, 6, 16, 20, 24] {
        let now = device.now();
        let request = units(&device, Operation::Write, unit, 1);
        submit(&mut device, now, request);
        drain(&mut device);
    }
    let after = work(&device);
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 4));
    let counts = device.buffer().expect("it has one").counts;
    assert_eq!((counts.written_back, counts.padding, device.ftl().counters.units_rewritten), (2, 0, 2));
    device.check_invariants().unwrap();
}

#[test]
fn a_write_through_buffer_changes_logical_pages_at_once() {
    let mut device = buffered(&["buffer.write=write-through", "buffer.read=true"]);
    assert_eq!(work_of(&mut device, 5, 1), (FETCHED + WRITTEN, 3, 4));
    assert_eq!(device.buffer().expect("it has one").occupancy(), [1, 0]);
}

#[test]
fn units_without_data_are_not_rewritten() {
    let mut device = packages(&["geometry.logical_page=16KiB"]);
    assert_eq!(work_of(&mut device, 5, 1), (WRITTEN, 0, 1));
    assert_eq!(work_of(&mut device, 6, 1), (FETCHED + WRITTEN, 1, 2));
}

#[test]
fn the_last_logical_page_may_be_smaller() {
    let mut device = packages(&["geometry.logical_page=32KiB", "capacity.logical=4108KiB"]);
    let units = device.config().logical_units();
    assert_eq!(units % 8, 3);
    fill(&mut device, units as u32);
    assert_eq!(work_of(&mut device, units - 1, 1), (FETCHED + WRITTEN, 2, 3));
}

#[test]
fn writes_without_time_rewrite_logical_pages_too() {
    let set = ["geometry.logical_page=16KiB", "geometry.blocks=16", "gc.soft_threshold=2", "capacity.spare=0.5"];
    let (mut timed, mut functional) = (packages(&set), packages(&set));
    let count = timed.config().logical_units();
    let mut rng = Rng::new(1, "logical");
    for device in [&mut timed, &mut functional] {
        fill(device, count as u32);
    }
    let requests: Vec<_> = (0..500).map(|_| units(&timed, Operation::Write, rng.below(count - 1), 2)).collect();
    let mut next = requests.clone().into_iter();
    Load::closed(1, 500, move || next.next().expect("500 requests")).run(&mut timed);
    for request in &requests {
        functional.serve_now(request).expect("it is on the device");
    }
    assert_eq!(work(&timed).0, work(&functional).0);
    assert_eq!(timed.ftl().counters.host_units, functional.ftl().counters.host_units);
}

#[test]
fn a_stripe_keeps_consecutive_units_in_one_package() {
    let (mut fine, mut coarse) = (packages(&[]), packages(&["allocation.static.stripe=8KiB"]));
    for device in [&mut fine, &mut coarse] {
        fill(device, 64);
    }
    // 8 KiB are read in two packages at the same time, or in one after the other.
    assert_eq!(takes(&mut fine, Operation::Read, 2, 2), FETCHED);
    assert_eq!(takes(&mut coarse, Operation::Read, 2, 2), 2 * FETCHED);
    assert_eq!(takes(&mut coarse, Operation::Read, 1, 2), FETCHED);
    let home = |unit| coarse.ftl().home(floatgate_core::sim::id::Lpn(unit)).map(|plane| plane.0);
    assert_eq!([0, 1, 2, 7, 8].map(home), [0, 0, 1, 3, 0].map(Some));
}

#[test]
fn impossible_sizes_are_refused_with_a_value_that_works() {
    let text = refusal(&["geometry.logical_page=10KiB"]);
    assert!(text.contains("must be whole mapping units of 4KiB, up to 16 MiB; use 8KiB"), "{text}");
    let text = refusal(&["geometry.logical_page=16KiB", "mapping.scheme=block"]);
    assert!(text.contains("set mapping.scheme to page"), "{text}");
    let text = refusal(&["allocation.static.stripe=6KiB"]);
    assert!(text.contains("must be whole flash pages and mapping units, up to 16 MiB; use 4KiB"), "{text}");
}

/// Returns the mean latency of random requests, on a device with mapping units of `unit`: 300 requests per second, one
/// third of them writes of `sectors`, the others reads of 8 KiB, with Poisson arrivals of batches.
fn mean_latency(unit: &str, sectors: u32, batch: u64) -> f64 {
    let unit = format!("geometry.mapping_unit={unit}");
    let base = [
        "geometry.channels=8",
        "geometry.chips=1",
        "geometry.spare_size=128B",
        "bus.transfer_spare=true",
        "geometry.blocks=128",
        "capacity.spare=0.5",
        &unit,
    ];
    let mut device = common::device(&base);
    let (units, pages) = (device.config().logical_units(), device.config().logical_bytes() / 512);
    fill(&mut device, units as u32);
    let mut rng = Rng::new(1, "tpc-c");
    let mut at = Time::ZERO;
    let mut count = 0;
    let next = move || {
        if count % batch == 0 {
            at += Time((rng.exponential(batch as f64 / 300.0) * 1e12) as u64);
        }
        count += 1;
        let (operation, sectors) = match rng.below(3) {
            0 => (Operation::Write, sectors),
            _ => (Operation::Read, 16),
        };
        let place = rng.below(pages / u64::from(sectors)) * u64::from(sectors);
        Request { arrival: at, ..Request::new(at, operation, place, sectors) }
    };
    Load::open(60_000, next).run(&mut device).results.all().latency.mean_us()
}

/// Agrawal et al. 2008, Section 4.3: TPC-C has twice as many reads as writes, requests of 8 KiB, and 300 requests per
/// second and SSD. Times are those of the paper's baseline, with 128 B of metadata.
#[test]
fn the_latency_of_large_logical_pages_is_that_of_a_queue() {
    // At each of eight packages arrive 12.5 writes of `write` us and 25 reads of `read` us per second (M/G/1). The
    // erase of the block that held the old data follows each write.
    let queue = |write: f64, read: f64| {
        let busy = write + 1500.0;
        let (load, second) = (12.5e-6 * busy + 25e-6 * read, 12.5e-6 * busy * busy + 25e-6 * read * read);
        (write + 2.0 * read) / 3.0 + second / 2.0 / (1.0 - load)
    };
    // Writes of whole blocks are one operation, and the closed form is exact.
    let (block, read) = (64.0 * 305.6, 2.0 * 130.6);
    common::assert_close("writes of 256 KiB", mean_latency("256KiB", 512, 1), queue(block, read), 0.02);
    // A write of 8 KiB reads the block first. Requests that arrive in the meantime are served between its two
    // operations, so that the reads wait less.
    let bound = queue(block + 64.0 * 130.6, read);
    let single = mean_latency("256KiB", 16, 1);
    let bursts = mean_latency("256KiB", 16, 8);
    println!("256 KiB: single requests {single:.0} us, closed form {bound:.0} us, batches of eight {bursts:.0} us");
    assert!((0.8..1.0).contains(&(single / bound)), "{single} of {bound}");
    assert!(bursts > 20_000.0, "{bursts}");
    // With pages of 4 KiB, the two pages of a request are in two packages and hardly ever wait.
    common::assert_close("4 KiB", mean_latency("4KiB", 16, 1), (305.6 + 2.0 * 130.6) / 3.0, 0.02);
}
