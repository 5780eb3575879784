//! Saved states: what is loaded has the same future as what was saved, and saves as the same bytes; a file that is
//! damaged, or that is another device's, is refused in words.

mod common;

use common::{BASE, build, device_config, drain, fill, submit};
use floatgate_core::config::{DeviceConfig, from_toml};
use floatgate_core::device::{Device, Options, inspect_state};
use floatgate_core::metrics::summary::{Precondition, Reached};
use floatgate_core::precondition::precondition;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::state::StateError;
use floatgate_core::workload::request::{Operation, Request};

fn origin() -> Precondition {
    Precondition { asked: "a test".to_owned(), reached: Reached { mapped: 1.0, ..Reached::default() } }
}

fn saved(device: &Device) -> Vec<u8> {
    let mut bytes = Vec::new();
    device.save(&origin(), &mut bytes).unwrap_or_else(|error| panic!("{error}"));
    bytes
}

fn load(config: &DeviceConfig, options: Options, bytes: &[u8]) -> Result<Device, StateError> {
    Device::load(config.clone(), options, bytes).map(|(device, _)| device)
}

/// Devices that differ in all that a state has: mapping, allocation, victims, frontiers, units, what is between them
/// and the host.
const DEVICES: &[&[&str]] = &[
    &[],
    &["gc.victim=fifo", "allocation=dynamic", "bus.way_switch=300ns", "bus.channel_switch=700ns"],
    &["gc.victim=random", "geometry.mapping_unit=2KiB", "gc.frontiers=single"],
    &["gc.victim=cost-benefit", "allocation={ dynamic = { order = \"s6\", scope = \"channel\" } }", "geometry.planes=2"],
    &["gc.victim={ d-choices = { d = 3 } }", "geometry.pages_per_program=4", "mapping.block_summary={ last_page = \"528B\" }", "capacity.spare=0.8"],
    &["mapping.scheme.dftl.cache=512B", "mapping.scheme.dftl.entry=64B", "capacity.spare=0.6"],
    &["mapping.scheme.dftl.cache=64B", "mapping.scheme.dftl.entry=256B", "capacity.spare=0.7", "gc.victim=fifo", "allocation=dynamic"],
    &["mapping.scheme=block", "capacity.spare=0.55"],
    &["geometry.page_size=2KiB", "geometry.mapping_unit=4KiB", "buffer.capacity=64KiB", "buffer.eviction=fab"],
    &["geometry.page_size=16KiB", "geometry.mapping_unit=4KiB", "controller.firmware.lookup=100", "host.link_latency=5us"],
    &["geometry.planes=2", "nand.advanced.multi_plane_program=wise", "nand.advanced.strict=true"],
    &["nand.concurrency=plane", "geometry.planes=2", "scheduler=read-first", "nand.advanced.cache_program=true"],
];

fn small(overrides: &[&str]) -> DeviceConfig {
    let small = ["geometry.blocks=24", "geometry.pages=16", "capacity.spare=0.5"];
    device_config(&[&small, overrides].concat())
}

fn random_request(rng: &mut Rng, device: &Device, tag: u64) -> Request {
    let sectors = device.config().logical_sectors();
    let operation = [Operation::Write, Operation::Write, Operation::Write, Operation::Read, Operation::Trim];
    let operation = operation[rng.below(5) as usize];
    let unit = u64::from(device.config().sectors_per_unit());
    let lba = rng.below(sectors / unit) * unit;
    let most = (sectors - lba).min(4 * unit);
    let length = if rng.below(2) == 0 { most / unit * unit } else { 1 + rng.below(most) };
    Request { tag, ..Request::new(Time::ZERO, operation, lba, length as u32) }
}

/// Serves so many random requests, and says when each was answered, counted from the start.
fn serve(device: &mut Device, seed: u64, requests: u64) -> Vec<(u64, u64, u64)> {
    let (mut rng, start) = (Rng::new(seed, "state"), device.now());
    let mut at = start;
    for tag in 0..requests {
        let request = random_request(&mut rng, device, tag + 1);
        submit(device, at, request);
        at += Time::from_ns(rng.below(200_000));
    }
    let done = drain(device);
    assert_eq!(done.len() as u64, requests);
    done.iter().map(|c| (c.request.tag, (c.start - start).ps(), (c.finish - start).ps())).collect()
}

/// At rest, with nothing in the buffer.
fn rest(device: &mut Device) {
    device.write_out_buffer();
    drain(device);
    device.ftl_mut();
}

/// Brings a device into a state by writes without time and in time.
fn used(config: &DeviceConfig, options: Options) -> Device {
    let mut device = build(config.clone(), options);
    let (units, mut rng) = (config.logical_units(), Rng::new(options.seed, "state/used"));
    fill(&mut device, (units * 3 / 4) as u32);
    for tag in 0..2 * units {
        let request = random_request(&mut rng, &device, tag as u32 as u64);
        device.serve_now(&request);
    }
    device.ftl_mut().seal();
    serve(&mut device, options.seed + 1, 300);
    rest(&mut device);
    device.take_contents();
    device
}

#[test]
fn what_is_loaded_is_what_was_saved() {
    for (number, overrides) in DEVICES.iter().enumerate() {
        for attempt in 0..3 {
            let config = small(overrides);
            let options = Options { seed: 10 * number as u64 + attempt, verify: attempt == 0, ..Options::default() };
            let mut device = used(&config, options);
            let bytes = saved(&device);
            let mut loaded = load(&config, options, &bytes).unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
            loaded.check_invariants().unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
            assert!(saved(&loaded) == bytes, "{overrides:?}: it is saved as other bytes");
            assert_eq!(loaded.now(), Time::ZERO);
            assert_eq!(loaded.ftl().counters, device.ftl().counters, "{overrides:?}");
            assert_eq!(serve(&mut loaded, 7, 600), serve(&mut device, 7, 600), "{overrides:?}: another future");
            assert_eq!(loaded.take_contents(), device.take_contents(), "{overrides:?}: other contents");
            rest(&mut device);
            rest(&mut loaded);
            loaded.check_invariants().unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
            assert!(saved(&loaded) == saved(&device), "{overrides:?}: another state in the end");
        }
    }
}

#[test]
fn a_new_device_can_be_saved() {
    for overrides in DEVICES {
        let config = small(overrides);
        let device = build(config.clone(), Options::default());
        let bytes = saved(&device);
        assert!(saved(&load(&config, Options::default(), &bytes).unwrap()) == bytes, "{overrides:?}");
        let (again, head) = Device::load_as_saved(Options::default(), &bytes[..]).unwrap();
        assert_eq!((again.config().digest(), head.precondition), (config.digest(), origin()));
    }
}
