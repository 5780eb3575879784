//! Measures how long a monitor holds the lock of an engine, for a sample and for a slice of the blocks.
//!
//! `cargo run --release --example poll_cost -- [DEVICE] [PATH=VALUE]...`. The default device has a terabyte.

use std::error::Error;

use floatgate_core::device_file;
use floatgate_core::simulation::{Device, Options};
use floatgate_serve::clock::{Clock, Speed, Wall};
use floatgate_serve::engine::{Engine, Pace, Snapshot};
use floatgate_serve::monitor::blocks::{Painter, SLICE};
use floatgate_serve::payload::memory::Memory;

/// Number of timed samples.
const LOOKS: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let device = arguments.first().map_or("bench-1t", String::as_str);
    let config = device_file::load(device, arguments.get(1..).unwrap_or_default())?;
    let device = Device::new(config.clone(), Options { attribution: true, ..Options::default() })?;
    println!("{}: {} blocks in {} planes", config.name, config.total_blocks(), config.total_planes());
    let payload = Box::new(Memory::new(config.logical_bytes(), config.unit_bytes() as u32, 0));
    let mut engine = Engine::new(device, payload, Pace::Timed(Clock::new(Wall::now(), Speed::default())), None);
    engine.watch();
    let mut snapshot = Snapshot::default();
    print("snapshot", (0..LOOKS).map(|_| timed(|| engine.snapshot(Wall::now(), &mut snapshot))));
    let sizes = config.block_sizes();
    let mut painter = Painter::new(config.total_planes(), config.geometry.blocks, sizes.map(|size| size.data_units));
    let (mut slice, mut kinds) = (Vec::new(), Vec::new());
    let (mut locked, began) = (Vec::new(), Wall::now());
    loop {
        locked.push(timed(|| engine.copy_blocks(painter.next(), SLICE, &mut slice, &mut kinds)));
        if painter.add(&slice, &kinds, 0.0).is_some() {
            break;
        }
    }
    let picture = Wall::now().since(began);
    println!("picture: {} slices, {:.1} ms in all", locked.len(), picture.as_us() / 1e3);
    print("slice", locked.into_iter());
    Ok(())
}

/// Returns the duration of a call in ns.
fn timed(mut what: impl FnMut()) -> u64 {
    let began = Wall::now();
    what();
    Wall::now().since(began).0
}

fn print(name: &str, times: impl Iterator<Item = u64>) {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!("{name}: p50 {:.1} us, p99 {:.1} us, longest {:.1} us", at(0.5), at(0.99), at(1.0));
}
