//! The devices of Agrawal et al., USENIX ATC 2008, Table 2, with the organizations that Section 3.5 supposes. The test
//! prints the measured values, which docs/model/gangs.md lists.

use crate::common::{self, Load, fill};
use floatgate_core::device_file::load;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options};

const KIB: u64 = 1024;

/// Device, bytes and depth of sequential requests, depth of random ones, and the values of Table 2: MB/s of sequential
/// reads and writes, and random reads and writes of 4 KiB per second.
type Row = (&'static str, u64, u32, u32, [Option<f64>; 4]);

const TABLE: [Row; 4] = [
    ("agrawal2008-usb", 128 * KIB, 1, 1, [Some(11.7), Some(4.3), Some(150.0), Some(20.0)]),
    ("agrawal2008-mtron", 512 * KIB, 2, 2, [Some(100.0), Some(80.0), Some(11_000.0), Some(130.0)]),
    ("agrawal2008-zeus", 256 * KIB, 8, 64, [Some(200.0), Some(100.0), Some(52_000.0), Some(11_000.0)]),
    ("agrawal2008-fusionio", 768 * KIB, 8, 128, [Some(700.0), Some(600.0), Some(87_000.0), None]),
];

/// Returns a full device with fewer blocks.
fn device(name: &str, used: bool) -> Device {
    let blocks = if name.ends_with("usb") { "geometry.blocks=64" } else { "geometry.blocks=128" };
    let mut set = vec![blocks.to_owned()];
    if !name.ends_with("usb") {
        set.extend(["gc.soft_threshold=6", "gc.hard_threshold=6"].map(str::to_owned));
    }
    let config = load(name, &set).unwrap_or_else(|error| panic!("{error}"));
    let mut device = Device::new(config, Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let units = device.config().logical_units() as u32;
    fill(&mut device, units);
    if used {
        let mut rng = Rng::new(1, "used");
        (0..4 * units).for_each(|_| {
            device.ftl_mut().write_whole(floatgate_core::sim::id::Lpn(rng.below(units.into()) as u32));
        });
    }
    device
}

/// Runs `count` requests of `bytes`, and returns bytes and requests per second.
fn rates(device: &mut Device, operation: Operation, bytes: u64, depth: u32, random: bool, count: u64) -> (f64, f64) {
    let sectors = bytes / 512;
    let places = device.config().logical_bytes() / bytes;
    let mut rng = Rng::new(2, "requests");
    let mut last = 0;
    let next = move || {
        last = if random { rng.below(places) } else { (last + 1) % places };
        Request::new(Time::ZERO, operation, last * sectors, sectors as u32)
    };
    let rate = common::rate(&Load::closed(depth, count, next).run(device));
    (rate * bytes as f64, rate)
}

#[test]
fn the_devices_of_table_2_come_near_its_values() {
    let mut far = Vec::new();
    for (name, bytes, depth, random_depth, published) in TABLE {
        let small = if name.ends_with("usb") || name.ends_with("mtron") { 300 } else { 40_000 };
        let of = |operation, random| {
            // Random writes of Zeus include garbage collection: the device was overwritten at random before.
            let mut device = device(name, random && operation == Operation::Write && name.ends_with("zeus"));
            if random {
                rates(&mut device, operation, 4 * KIB, random_depth, true, small).1
            } else {
                rates(&mut device, operation, bytes, depth, false, 300).0 / 1e6
            }
        };
        let (read, write) = (Operation::Read, Operation::Write);
        let measured = [of(read, false), of(write, false), of(read, true), of(write, true)];
        println!("{name}: {measured:.1?}, published {published:?}");
        for (index, (measured, published)) in measured.into_iter().zip(published).enumerate() {
            if published.is_some_and(|published| !(0.66..1.5).contains(&(measured / published))) {
                far.push((name, index, measured));
            }
        }
    }
    assert!(far.is_empty(), "more than a third below or half above Table 2: {far:?}");
}
