//! The event path does not allocate. After a warm-up, the allocator is called only when a table of outstanding work
//! grows to a new maximum.
#![allow(unsafe_code)] // A global allocator needs unsafe code.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{build, device_config};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: forwards all calls to the system allocator, which fulfills the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Serves `count` requests with up to eight outstanding: reads, writes of random lengths and trims.
fn serve(device: &mut Device, rng: &mut Rng, completions: &mut Vec<Completion>, count: u64) {
    let sectors = device.config().logical_sectors();
    for _ in 0..count {
        while device.outstanding() >= 8 {
            let at = device.next_event().expect("requests complete");
            device.advance(at);
            completions.clear();
            device.take_completions(completions);
        }
        let operation = match rng.below(16) {
            0..6 => Operation::Read,
            6..15 => Operation::Write,
            _ => Operation::Trim,
        };
        let at = device.now();
        let length = 8 * (1 + rng.below(4));
        let request = Request::new(at, operation, 8 * rng.below((sectors - length) / 8), length as u32);
        device.submit(at, Request { arrival: Time(at.0), ..request });
    }
}

/// The only test of this file, because the allocations of a concurrent test would be counted, too.
#[test]
fn serving_requests_allocates_nothing() {
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
        let mut rng = Rng::new(1, "allocation");
        let mut completions = Vec::with_capacity(64);
        serve(&mut device, &mut rng, &mut completions, 100_000);
        let erased = device.ftl().counters.blocks_erased;
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        serve(&mut device, &mut rng, &mut completions, 20_000);
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert!(device.ftl().counters.blocks_erased > erased + 100, "{overrides:?}: too few blocks erased");
        assert!(allocations <= 2, "{overrides:?}: {allocations} allocations for 20,000 requests");
    }
}
