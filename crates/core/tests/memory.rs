//! The estimate of the memory that a device needs agrees with the memory that building it allocates.
#![allow(unsafe_code)] // A global allocator needs unsafe code.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use floatgate_core::device_file::load;
use floatgate_core::simulation::{Device, Options};

struct Counting;

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: forwards all calls to the system allocator, which fulfills the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size() as isize);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size() as isize);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as isize);
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Devices and overrides. Each makes another table large.
const CASES: &[(&str, &[&str])] = &[
    ("tiny", &["geometry.blocks=20000"]),
    ("tiny", &["geometry.blocks=400000", "geometry.pages=4"]),
    ("hu2011", &[]),
    ("hu2011", &["geometry.blocks=8192", "gc.victim=cost-benefit"]),
    ("hu2011", &["geometry.pages=2", "geometry.blocks=65536", "gc.victim=fifo"]),
    ("hu2011", &["geometry.pages=2", "geometry.blocks=65536", "gc.victim=random"]),
    ("hu2011", &["geometry.pages=2", "geometry.blocks=65536", "gc.victim=d-choices"]),
    (
        "hu2011",
        &["geometry.channels=64", "geometry.chips=64", "geometry.blocks=32", "geometry.pages=32", "capacity.spare=0.3"],
    ),
    ("bench-32g", &[]),
    ("bench-32g", &["mapping.scheme=dftl"]),
    ("bench-32g", &["mapping.scheme.dftl.cache=16MiB"]),
    ("bench-32g", &["mapping.scheme=block"]),
    ("bench-32g", &["mapping.scheme.fast.logs.random=4000"]),
    ("bench-32g", &["mapping.scheme=last", "mapping.scheme.last.scope=plane"]),
    ("bench-32g", &["mapping.scheme=block", "geometry.pages=8"]),
    ("bench-32g", &["temperature=two-level-lru"]),
    ("bench-32g", &["temperature=multi-hash"]),
    ("bench-32g", &["durability.trim_journal=true"]),
    ("bench-32g", &["durability.checkpoint=16KiB"]),
    ("bench-32g", &["faults.program_rate=0.001"]),
    ("bench-32g", &["buffer.capacity=1GiB"]),
    ("bench-32g", &["buffer.capacity=2GiB", "buffer.eviction=fab"]),
    ("bench-32g", &["buffer.capacity=2GiB", "buffer.eviction=bplru"]),
    ("bench-32g", &["buffer.capacity=2GiB", "buffer.eviction=cflru"]),
    ("tlc-direct", &[]),
    ("tlc-nvme", &[]),
];

#[test]
fn the_estimate_is_within_5_percent_of_the_allocated_memory() {
    let mut apart = Vec::new();
    for (name, overrides) in CASES {
        let all: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        let config = match load(name, &all) {
            Ok(config) => config,
            Err(error) => {
                apart.push(format!("{name} {overrides:?}: {error}"));
                continue;
            }
        };
        for attribution in [false, true] {
            let options = Options { attribution, ..Options::default() };
            let estimate = options.memory(&config).total();
            let before = BYTES.get();
            let device = Device::new(config.clone(), options).unwrap();
            let taken = (BYTES.get() - before) as u64;
            drop(device);
            let ratio = estimate as f64 / taken as f64;
            // The cached map allocates its memory when it is used.
            let most = if overrides.iter().any(|text| text.contains("dftl.cache")) { f64::MAX } else { 1.05 };
            if !(0.95..=most).contains(&ratio) {
                apart.push(format!("{name} {overrides:?} {attribution}: {estimate} for {taken}, {ratio:.3}"));
            }
        }
    }
    assert!(apart.is_empty(), "estimates that are off:\n{}", apart.join("\n"));
}
