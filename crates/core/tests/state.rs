//! Saved states: a loaded device has the same future as the saved one, and is saved as the same bytes. A damaged file,
//! or the state of another device, is refused with the reason.

use crate::common::{build, device_config, drain, fill, submit};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::internals::{ReadCause, options, shapes_state};
use floatgate_core::preparation::{Precondition as To, precondition};
use floatgate_core::results::{CopyCause, Counters, ProgramCause};
use floatgate_core::saved_state::{Head, StateError};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::summary::{Precondition, Reached};

fn origin() -> Precondition {
    Precondition { requested: "a test".to_owned(), reached: Reached { mapped: 1.0, ..Reached::default() } }
}

fn saved(device: &Device) -> Vec<u8> {
    let mut bytes = Vec::new();
    device.save(&origin(), &mut bytes).unwrap_or_else(|error| panic!("{error}"));
    bytes
}

fn load(config: &DeviceConfig, options: &Options, bytes: &[u8]) -> Result<Device, StateError> {
    Device::load(config.clone(), options.clone(), bytes).map(|(device, _)| device)
}

/// Devices that cover all parts of a state: mapping, allocation, victims, frontiers, mapping units, buffer, firmware
/// and link.
const DEVICES: &[&[&str]] = &[
    &[],
    &["gc.victim=fifo", "allocation=dynamic", "bus.way_switch=300ns", "bus.channel_switch=700ns"],
    &["gc.victim.greedy.tie=index"],
    &["gc.victim=random", "geometry.mapping_unit=2KiB", "gc.frontiers=single"],
    &[
        "gc.victim=cost-benefit",
        "allocation={ dynamic = { order = \"s6\", scope = \"channel\" } }",
        "geometry.planes=2",
    ],
    &[
        "gc.victim={ d-choices = { d = 3, tie = \"newest\" } }",
        "geometry.pages_per_program=4",
        "mapping.block_summary={ last_page = \"528B\" }",
        "capacity.spare=0.8",
    ],
    &["mapping.scheme.dftl.cache=512B", "mapping.scheme.dftl.entry=64B", "capacity.spare=0.6"],
    &[
        "mapping.scheme.dftl.cache=64B",
        "mapping.scheme.dftl.entry=256B",
        "capacity.spare=0.7",
        "gc.victim=fifo",
        "allocation=dynamic",
    ],
    &["mapping.scheme=block", "capacity.spare=0.55"],
    &["mapping.scheme=bast", "capacity.spare=0.55", "geometry.page_size=8KiB", "geometry.mapping_unit=4KiB"],
    &["mapping.scheme.fast.stripe.random=3", "capacity.spare=0.55"],
    &["mapping.scheme.last.logs={ sequential = 1, hot = 2, cold = 2 }", "mapping.scheme.last.scope=channel"],
    &["geometry.page_size=2KiB", "geometry.mapping_unit=4KiB", "buffer.capacity=64KiB", "buffer.eviction=fab"],
    &[
        "geometry.page_size=16KiB",
        "geometry.mapping_unit=4KiB",
        "controller.firmware.lookup=100",
        "host.link_latency=5us",
    ],
    &["geometry.planes=2", "nand.advanced.multi_plane_program=wise", "nand.advanced.strict=true"],
    &["durability.trim_journal=true"],
    &["durability.checkpoint=16KiB", "durability.trim_journal=true"],
    &["nand.concurrency=plane", "geometry.planes=2", "scheduler=read-first", "nand.advanced.cache_program=true"],
    &["nand.concurrency=plane-reads", "geometry.planes=2", "scheduler=read-first", "nand.advanced.cache_program=true"],
    &["gc.pace={ burst = { amount = { stripes = 3 } } }", "allocation=dynamic", "geometry.page_size=8KiB"],
    &["gc.pace={ burst = { amount = { stripes = 8 }, share = 0.4 } }", "allocation=dynamic", "geometry.planes=2"],
    &["temperature=multi-hash", "geometry.page_size=8KiB", "geometry.mapping_unit=4KiB"],
    &["temperature=two-level-lru", "gc.frontiers=single", "allocation=dynamic"],
    &[
        "mapping.scheme.dftl.cache=512B",
        "mapping.scheme.dftl.entry=64B",
        "mapping.scheme.dftl.cells=slc",
        "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
        "nand.cell=qlc",
        "capacity.spare=0.7",
    ],
    &[
        "nand.cell=tlc",
        "geometry.pages_per_program=3",
        "geometry.pages=24",
        "capacity.spare=0.7",
        "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
        "slc_cache={ blocks = 5, when_full = \"wait\", high_water = 1.0, low_water = 0.9 }",
    ],
    &["faults={}", "errors={ cycles = 4500, rate = { disturb = 1e-6 } }"],
    &[
        "faults={}",
        "errors={ rate = { disturb = 0.02, disturb_reads = 1.0 }, retry = { factor = 0.25 }, refresh = { retries = 1 } }",
    ],
    &["allocation=dynamic", "gc.scope=pool", "superblock.parity=2", "geometry.page_size=8KiB", "capacity.spare=0.75"],
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

/// Serves random requests. Returns tag, start and finish of each, relative to the start of the call.
fn serve(device: &mut Device, seed: u64, requests: u64) -> Vec<(u64, u64, u64)> {
    let mut rng = Rng::new(seed, "state");
    let start = device.now();
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

/// Makes the device idle, with an empty buffer and journal.
fn rest(device: &mut Device) {
    device.write_out_buffer();
    drain(device);
    // The flush writes trims that are not journaled yet.
    let now = device.now();
    device.submit(now, Request::new(now, Operation::Flush, 0, 0));
    drain(device);
    device.ftl_mut();
}

/// Returns a device after writes in functional and in timed mode.
fn used(config: &DeviceConfig, options: &Options) -> Device {
    let mut device = build(config.clone(), options.clone());
    let units = config.logical_units();
    let mut rng = Rng::new(options.seed, "state/used");
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

/// Returns counters as a saved state has them, in which refresh is garbage collection, and pages in SLC mode have no
/// cause.
fn as_saved(mut counters: Counters) -> Counters {
    counters.of_folding();
    for (counts, refresh, gc) in [
        (&mut counters.pages_programmed[..], ProgramCause::Refresh as usize, ProgramCause::Gc as usize),
        (&mut counters.pages_read[..], ReadCause::Refresh as usize, ReadCause::Gc as usize),
        (&mut counters.moved[..], CopyCause::Refresh as usize, CopyCause::Gc as usize),
    ] {
        counts[gc] += std::mem::take(&mut counts[refresh]);
    }
    counters
}

#[test]
fn a_loaded_device_equals_the_saved_one() {
    for (number, overrides) in DEVICES.iter().enumerate() {
        for attempt in 0..3 {
            let config = small(overrides);
            let options = Options { seed: 10 * number as u64 + attempt, verify: attempt == 0, ..Options::default() };
            let mut device = used(&config, &options);
            let bytes = saved(&device);
            let mut loaded = load(&config, &options, &bytes).unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
            loaded.check_invariants().unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
            assert!(saved(&loaded) == bytes, "{overrides:?}: saved as other bytes");
            assert_eq!(loaded.now(), Time::ZERO);
            let Counters { log_blocks, errors, erases, .. } = device.ftl().counters;
            let counters = Counters { log_blocks, errors, erases, ..loaded.ftl().counters };
            assert_eq!(counters, as_saved(device.ftl().counters), "{overrides:?}");
            assert_eq!(serve(&mut loaded, 7, 600), serve(&mut device, 7, 600), "{overrides:?}: another future");
            assert_eq!(loaded.take_contents(), device.take_contents(), "{overrides:?}: other contents");
            rest(&mut device);
            rest(&mut loaded);
            loaded.check_invariants().unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
            assert!(saved(&loaded) == saved(&device), "{overrides:?}: another state in the end");
        }
    }
}

/// A unit of 80 KiB has 160 sectors, which is not a multiple of the three sectors that each bit of its mask represents.
#[test]
fn the_last_sector_of_a_unit_with_a_partial_granule_is_kept() {
    let config = small(&["geometry.page_size=80KiB", "geometry.mapping_unit=80KiB"]);
    let mut device = build(config.clone(), Options { verify: true, ..Options::default() });
    let write = |device: &mut Device, first: u64, sectors: u32| {
        let before = device.ftl().counters;
        let now = device.now();
        submit(device, now, Request { tag: 7, ..Request::new(now, Operation::Write, first, sectors) });
        drain(device);
        let after = device.ftl().counters;
        (after.updates_covered - before.updates_covered, after.updates_uncovered - before.updates_uncovered)
    };
    // The last sector of the first unit, repeatedly.
    assert_eq!(write(&mut device, 159, 1), (0, 0), "the unit was empty");
    let last = saved(&device);
    assert_eq!(write(&mut device, 159, 1), (1, 0), "the unit has no other sector");
    assert_eq!(write(&mut device, 0, 159), (0, 1), "the last sector stays");
    // The second unit, first written as a whole.
    assert_eq!(write(&mut device, 160, 160), (0, 0));
    assert_eq!(write(&mut device, 160, 159), (0, 1), "the last sector stays");
    // The state that was saved with that one sector is loaded with it.
    let mut loaded = load(&config, &Options { verify: true, ..Options::default() }, &last).unwrap();
    assert_eq!(saved(&loaded), last);
    assert_eq!(write(&mut loaded, 159, 1), (1, 0));
    assert_eq!(write(&mut loaded, 0, 159), (0, 1));
}

#[test]
fn a_new_device_can_be_saved() {
    for overrides in DEVICES {
        let config = small(overrides);
        let device = build(config.clone(), Options::default());
        let bytes = saved(&device);
        assert!(saved(&load(&config, &Options::default(), &bytes).unwrap()) == bytes, "{overrides:?}");
        let as_saved = Head::read(&mut &bytes[..]).unwrap().device().unwrap();
        let (again, head) = Device::load(as_saved, Options::default(), &bytes[..]).unwrap();
        assert_eq!((again.config().digest(), head.precondition), (config.digest(), origin()));
    }
}

#[test]
fn a_state_can_be_loaded_with_other_times_but_not_with_another_shape() {
    let config = small(&["gc.victim=cost-benefit"]);
    let device = used(&config, &Options::default());
    let bytes = saved(&device);
    let faster = small(&["gc.victim=cost-benefit", "nand.read=5us", "buffer.capacity=64KiB", "nand.concurrency=plane"]);
    let mut loaded = load(&faster, &Options { seed: 9, ..Options::default() }, &bytes).unwrap();
    serve(&mut loaded, 1, 200);
    loaded.check_invariants().unwrap();
    let mut forked = device.in_same_state(faster.clone(), Options { seed: 9, ..Options::default() }).unwrap();
    let mut loaded = load(&faster, &Options { seed: 9, ..Options::default() }, &bytes).unwrap();
    assert_eq!(serve(&mut forked, 5, 400), serve(&mut loaded, 5, 400), "a fork in memory equals one by a file");

    let refused = |overrides: &[&str]| {
        let error = load(&small(overrides), &Options::default(), &bytes).unwrap_err();
        let forked = device.in_same_state(small(overrides), Options::default()).unwrap_err();
        assert_eq!(error.to_string(), forked.to_string());
        error.to_string()
    };
    let other = "it is the state of another device: ";
    assert_eq!(
        refused(&["gc.victim=greedy"]),
        format!("{other}`gc.victim` was cost-benefit when it was saved, and is greedy here")
    );
    let said = refused(&["gc.victim=cost-benefit", "geometry.channels=4", "gc.soft_threshold=5", "capacity.spare=0.6"]);
    for part in [
        "`geometry.channels` was 2 when it was saved, and is 4 here",
        "`gc.soft_threshold` was 3 when it was saved, and is 5 here",
        "`capacity.logical` was ",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let said = refused(&["gc.victim=cost-benefit", "mapping.scheme=dftl"]);
    assert!(said.contains("`mapping.scheme` was page when it was saved, and is dftl here"), "{said}");
    let dynamic = small(&["allocation={ dynamic = { order = \"s1\" } }"]);
    let bytes = saved(&build(dynamic, Options::default()));
    let error =
        load(&small(&["allocation={ dynamic = { order = \"s3\" } }"]), &Options::default(), &bytes).unwrap_err();
    let said = "was chip-die-plane-channel when it was saved, and is channel-plane-chip-die here";
    assert!(error.to_string().ends_with(&format!("`allocation.dynamic.order` {said}")), "{error}");
}

/// Options that do not shape the state: path, overrides that they need, and another value.
#[rustfmt::skip]
const SHAPELESS: &[(&str, &[&str], &str)] = &[
    ("geometry.chips_per_package", &[], "2"),
    ("geometry.spare_size", &[], "128B"),
    ("nand.cell", &[], "tlc"),
    ("nand.read", &[], "5us"),
    ("nand.program", &[], "900us"),
    ("nand.erase", &[], "9ms"),
    ("nand.endurance", &[], "77"),
    ("errors", &["faults={}", "errors={}"], "{ cycles = 1000 }"),
    ("nand.concurrency", &[], "plane"),
    ("nand.advanced.copy_back", &[], "blind"),
    ("nand.advanced.multi_plane_read", &["geometry.planes=2"], "true"),
    ("nand.advanced.multi_plane_erase", &["geometry.planes=2"], "true"),
    ("nand.advanced.copy_back_modify", &["geometry.mapping_unit=page"], "true"),
    ("nand.advanced.interleave", &["nand.concurrency=command", "geometry.dies=2"], "true"),
    ("nand.advanced.cache_read", &[], "true"),
    ("nand.advanced.cache_program", &[], "true"),
    ("nand.advanced.suspend.program", &[], "true"),
    ("nand.advanced.suspend.erase", &[], "true"),
    ("nand.advanced.suspend.latency", &[], "9us"),
    ("nand.advanced.suspend.resume", &[], "9us"),
    ("nand.advanced.suspend.limit", &[], "1"),
    ("nand.advanced.suspend.most", &[], "1"),
    ("nand.advanced.suspend.until", &[], "0.5"),
    ("nand.advanced.suspend.lost", &[], "9us"),
    ("nand.advanced.suspend.writes_first", &["buffer.capacity=1MiB"], "true"),
    ("bus.protocol.sdr", &[], "50ns"),
    ("bus.protocol.nv-ddr", &[], "400MT/s"),
    ("bus.read_cycle", &["bus.protocol.sdr=25ns"], "50ns"),
    ("bus.write_cycle", &["bus.protocol.sdr=25ns"], "50ns"),
    ("bus.width", &[], "16"),
    ("bus.command_cycle", &[], "99ns"),
    ("bus.command_cycles.read", &[], "9"),
    ("bus.command_cycles.program", &[], "9"),
    ("bus.command_cycles.erase", &[], "9"),
    ("bus.order", &[], "commands-first"),
    ("bus.transfer_spare", &[], "true"),
    ("bus.partial_transfer", &[], "true"),
    ("bus.way_switch", &[], "1us"),
    ("bus.channel_switch", &[], "1us"),
    ("bus.channel_switch_read", &[], "1us"),
    ("bus.channel_switch_scope", &[], "controller"),
    ("scheduler", &[], "read-first"),
    ("controller.write_slots", &[], "99"),
    ("controller.fill_timeout", &["geometry.pages_per_program=2"], "1ms"),
    ("controller.power_cap", &[], "2"),
    ("controller.firmware.cores", &[], "2"),
    ("controller.firmware.clock", &[], "\"1GHz\""),
    ("controller.firmware.interrupt", &[], "9"),
    ("controller.firmware.lookup", &[], "9"),
    ("controller.firmware.allocation", &[], "9"),
    ("controller.firmware.gc", &[], "9"),
    ("controller.firmware.jitter", &[], "0.5"),
    ("controller.firmware.buffer", &[], "9"),
    ("buffer.capacity", &[], "64KiB"),
    ("buffer.write", &["buffer.capacity=64KiB"], "write-through"),
    ("buffer.read", &["buffer.capacity=64KiB"], "false"),
    ("buffer.read_ahead", &["buffer.capacity=64KiB"], "{ size = \"8KiB\" }"),
    ("buffer.eviction", &["buffer.capacity=64KiB"], "fab"),
    ("buffer.high_water", &["buffer.capacity=64KiB"], "0.95"),
    ("buffer.low_water", &["buffer.capacity=64KiB"], "0.1"),
    ("buffer.idle", &["buffer.capacity=64KiB"], "1ms"),
    ("buffer.credits", &["buffer.capacity=64KiB", "buffer.high_water=0.95"], "1ms"),
    ("buffer.latency", &["buffer.capacity=64KiB"], "1us"),
    ("buffer.bandwidth", &["buffer.capacity=64KiB"], "1GB/s"),
    ("buffer.power_loss_protection", &["buffer.capacity=64KiB"], "true"),
    ("nand.slc_mode", &["nand.cell=mlc"], "{ read = \"20us\", program = \"75us\" }"),
    ("energy", &[], "{ read = \"5uJ\", die = \"2mW\" }"),
    ("host.queue_depth", &[], "3"),
    ("host.sector_size", &[], "4KiB"),
    ("gc.throttle", &[], "{ below = 9, delay = \"1ms\" }"),
    ("gc.background", &[], "{ idle = \"1ms\", until = 9, gain = 0.1 }"),
    ("host.link_bandwidth", &[], "1GB/s"),
    ("host.link_latency", &[], "3us"),
    ("host.software", &[], "3us"),
    ("host.order", &[], "one-queue"),
    ("host.queues", &[], "{ count = 2, fetch = \"1us\" }"),
];

#[test]
fn options_that_do_not_shape_a_state_change_no_byte_of_it() {
    let steady = |overrides: &[&str]| {
        let config = small(&[&["gc.victim=random"], overrides].concat());
        let mut device = build(config.clone(), Options { seed: 3, ..Options::default() });
        precondition(&mut device, To::Steady, 3, &mut |_| true).unwrap();
        (config.state_digest(), Head::inspect_state(&saved(&device)[..]).unwrap().1)
    };
    for (path, with, value) in SHAPELESS {
        assert!(!shapes_state(path), "{path}");
        let changed = format!("{path}={value}");
        assert!(steady(with) == steady(&[*with, &[&changed[..]]].concat()), "{changed} changes a state");
    }
    for option in options().iter().filter(|option| !shapes_state(option)) {
        let known = SHAPELESS.iter().any(|(path, ..)| option == path || option.starts_with(&format!("{path}.")));
        assert!(known, "{option} does not shape a state: add it to SHAPELESS");
    }
    assert_ne!(steady(&[]).0, steady(&["gc.soft_threshold=4"]).0);
    assert_eq!(small(&["capacity.spare=0.5"]).state_digest(), small(&["gc.soft_threshold=3"]).state_digest());
}

#[test]
fn a_device_that_is_not_idle_is_not_saved() {
    let refused = |device: &Device| device.save(&origin(), Vec::new()).unwrap_err().to_string();
    let mut device = build(small(&["buffer.capacity=64KiB"]), Options::default());
    fill(&mut device, 100);
    submit(&mut device, Time::ZERO, Request::new(Time::ZERO, Operation::Read, 0, 8));
    assert!(
        refused(&device).ends_with("1 requests have not completed; advance the device until it is idle"),
        "{}",
        refused(&device)
    );
    submit(&mut device, Time::ZERO, Request::new(Time::ZERO, Operation::Write, 0, 8));
    drain(&mut device);
    assert!(refused(&device).contains("the buffer holds dirty data"), "{}", refused(&device));
    rest(&mut device);
    saved(&device);
    device.serve_now(&Request::new(Time::ZERO, Operation::Write, 0, 8));
    saved(&device);
}

/// Returns the state of a small device, to be damaged.
fn victim_of_damage(number: usize) -> (DeviceConfig, Options, Vec<u8>) {
    let few = ["geometry.blocks=16", "geometry.chips=1", "geometry.channels=2"];
    let overrides = [DEVICES[number], &few].concat();
    let config = small(&overrides);
    let options = Options { seed: number as u64, ..Options::default() };
    let bytes = saved(&used(&config, &options));
    (config, options, bytes)
}

#[test]
fn damage_is_detected() {
    let (config, options, bytes) = victim_of_damage(0);
    let mut rng = Rng::new(1, "damage");
    for length in (0..bytes.len()).step_by(bytes.len() / 150 + 1) {
        assert!(load(&config, &options, &bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
        assert!(Head::inspect_state(&bytes[..length]).is_err());
    }
    for _ in 0..400 {
        let mut other = bytes.clone();
        let at = rng.below(bytes.len() as u64) as usize;
        other[at] ^= 1 << rng.below(8);
        let _ = Head::inspect_state(&other[..]);
        match load(&config, &options, &other) {
            // Some bits of the header of the compression have no meaning.
            Ok(device) => assert!(saved(&device) == bytes, "a flip at {at} gives another device"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(load(&config, &options, &[&bytes[..], b"more"].concat()).is_err());
    assert!(matches!(load(&config, &options, b"[geometry]"), Err(StateError::NoState)));
    assert!(matches!(load(&config, &options, b""), Err(StateError::NoState)));
    let newer = [&bytes[..8], &[9, 0, 0, 0], &bytes[12..]].concat();
    assert!(matches!(load(&config, &options, &newer), Err(StateError::Version(9))));
}

/// Returns a state with changed bytes in a section, and the right digest of the section.
fn forged(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let head = 24 + u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let body = zstd::decode_all(&bytes[head..]).unwrap();
    let mut places = Vec::new();
    let mut at = 0;
    while body[at] > 0 {
        at += 1 + usize::from(body[at]);
        let start = at;
        let mut hashed = Vec::new();
        loop {
            let length = u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
            at += 4;
            if length == 0 {
                break;
            }
            hashed.extend(at..at + length);
            at += length;
        }
        assert!(start < at);
        places.push((hashed, at));
        at += 8;
    }
    let full: Vec<_> = places.iter().filter(|(hashed, _)| !hashed.is_empty()).collect();
    let (hashed, digest) = full[rng.below(full.len() as u64) as usize];
    let mut body = body.clone();
    for _ in 0..1 + rng.below(2) {
        let at = hashed[rng.below(hashed.len() as u64) as usize];
        body[at] = if rng.below(2) == 0 { rng.below(256) as u8 } else { body[at].wrapping_add(1) };
    }
    let data: Vec<u8> = hashed.iter().map(|&at| body[at]).collect();
    body[*digest..digest + 8].copy_from_slice(&xxhash_rust::xxh3::xxh3_64(&data).to_le_bytes());
    [&bytes[..head], &zstd::encode_all(&body[..], 1).unwrap()].concat()
}

/// The digest of a section does not cover its name. Checks that the state of each device is read as intact, and as
/// damaged if any bit of a section name is changed.
#[test]
fn damaged_names_of_sections_are_detected() {
    for number in 0..DEVICES.len() {
        let (_, _, bytes) = victim_of_damage(number);
        let whole = Head::inspect_state(&bytes[..]).unwrap().1;
        let head = 24 + u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let body = zstd::decode_all(&bytes[head..]).unwrap();
        for section in &whole {
            let name = section.name.as_bytes();
            let at = body.windows(name.len()).position(|window| window == name).unwrap();
            let mut body = body.clone();
            body[at + number % name.len()] ^= 1 << (number % 7);
            let damaged = [&bytes[..head], &zstd::encode_all(&body[..], 1).unwrap()].concat();
            let error = Head::inspect_state(&damaged[..]).unwrap_err();
            assert!(matches!(error, StateError::Damaged { .. }), "{}: {error}", section.name);
        }
    }
}

#[test]
fn a_forged_state_is_refused_or_can_serve_requests() {
    let tries = std::env::var("FLOATGATE_STATE_FORGERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    for (number, device) in DEVICES.iter().enumerate() {
        let (config, options, bytes) = victim_of_damage(number);
        let mut rng = Rng::new(number as u64, "forged");
        let mut refused = 0;
        for _ in 0..tries {
            match load(&config, &options, &forged(&bytes, &mut rng)) {
                Ok(mut device) => assert_eq!(serve(&mut device, 1, 300).len(), 300),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0, "{device:?}");
    }
}

#[test]
fn the_page_on_states_names_the_version() {
    let page = include_str!("../../../docs/reference/state.md");
    assert!(page.contains(&format!("| 4 | format version, {} |", floatgate_core::internals::VERSION)));
}
