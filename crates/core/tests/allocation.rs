//! The event path allocates nothing: after a warm-up, the allocator is called only where a table of things in progress
//! grows to a new maximum.
#![allow(unsafe_code)] // A global allocator that counts is one.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{build, device_config};
use floatgate_core::device::{Device, Options};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: hands everything on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Serves so many requests with eight outstanding: reads, writes of odd lengths, trims.
fn serve(device: &mut Device, rng: &mut Rng, completions: &mut Vec<Completion>, count: u64) {
    let sectors = device.config().logical_sectors();
    for _ in 0..count {
        while device.outstanding() >= 8 {
            let at = device.next_event_time().expect("requests complete");
            device.advance_to(at);
            completions.clear();
            device.take_completions(completions);
        }
        let operation = match rng.below(16) {
            0..6 => Operation::Read,
            6..15 => Operation::Write,
            _ => Operation::Trim,
        };
        let (at, length) = (device.now(), 8 * (1 + rng.below(4)));
        let request = Request::new(at, operation, 8 * rng.below((sectors - length) / 8), length as u32);
        device.submit(at, Request { arrival: Time(at.0), ..request });
    }
}

/// One test, so that no other one allocates meanwhile.
#[test]
fn serving_allocates_nothing() {
    for overrides in [
        &["gc.victim=greedy"] as &[&str],
        &["gc.victim=cost-benefit", "allocation=dynamic", "geometry.planes=2"],
        &["gc.victim=d-choices", "geometry.page_size=16KiB", "scheduler=read-first"],
        &["gc.victim=fifo", "host.link_bandwidth=1GB/s", "host.link_latency=2us", "host.queue_depth=4"],
        &["buffer.capacity=1MiB", "buffer.bandwidth=1GB/s", "geometry.page_size=16KiB"],
        &["buffer.capacity=1MiB", "buffer.eviction=bplru", "controller.firmware.lookup=10"],
        &["buffer.capacity=1MiB", "buffer.eviction=fab", "controller.firmware.gc=10"],
        &["buffer.capacity=1MiB", "buffer.eviction=cflru", "buffer.write=write-through"],
    ] {
        let mut device = build(device_config(overrides), Options::default());
        let units = device.ftl().map.len();
        common::fill(&mut device, units);
        let (mut rng, mut completions) = (Rng::new(1, "allocation"), Vec::with_capacity(64));
        serve(&mut device, &mut rng, &mut completions, 100_000);
        let erased = device.ftl().counters.blocks_erased;
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        serve(&mut device, &mut rng, &mut completions, 20_000);
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert!(device.ftl().counters.blocks_erased > erased + 100, "{overrides:?}: cleaning was a part of it");
        assert!(allocations <= 2, "{overrides:?}: {allocations} allocations for 20,000 requests");
    }
}
