//! Unloaded latencies of all built-in devices, to the picosecond: sums of the phases.

use crate::common::{self, build, drain, units};
use floatgate_core::device_file::{Builtin, DeviceConfig, load};
use floatgate_core::internals::BusProtocol;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

/// Returns the duration of `cycles` cycles of the command bus in picoseconds.
fn command(config: &DeviceConfig, cycles: u32) -> u64 {
    let cycle = match (&config.bus.command_cycle, &config.bus.protocol) {
        (Some(cycle), _) | (None, BusProtocol::Sdr(cycle)) => cycle.0,
        (None, BusProtocol::NvDdr(rate)) => 1_000_000_000_000u64.div_ceil(rate.0),
    };
    u64::from(cycles) * cycle
}

/// Returns the time that `bytes` take on the channel, in picoseconds.
fn data(config: &DeviceConfig, bytes: u64) -> u64 {
    let spare =
        if config.bus.transfer_spare { config.geometry.spare_size.0 * bytes / config.geometry.page_size.0 } else { 0 };
    let cycles = (bytes + spare) / u64::from(config.bus.width / 8);
    match &config.bus.protocol {
        BusProtocol::Sdr(cycle) => cycles * cycle.0,
        BusProtocol::NvDdr(rate) => (u128::from(cycles) * 1_000_000_000_000).div_ceil(u128::from(rate.0)) as u64,
    }
}

/// Returns the time that `bytes` take on the host link, in picoseconds.
fn link(config: &DeviceConfig, bytes: u64) -> u64 {
    config.host.link_bandwidth.map_or(0, |b| (u128::from(bytes) * 1_000_000_000_000).div_ceil(u128::from(b.0)) as u64)
}

/// A controller whose firmware takes no time.
const NO_FIRMWARE: [&str; 3] =
    ["controller.firmware.interrupt=0s", "controller.firmware.lookup=0s", "controller.firmware.buffer=0s"];

/// Returns the pages of a program, tR of the first page and tPROG, in picoseconds. An SLC cache takes the first writes.
fn cells(config: &DeviceConfig) -> (u64, u64, u64) {
    match config.nand.slc_mode.as_ref().filter(|_| config.slc_cache.is_some()) {
        Some(slc) => (1, slc.read.0, slc.program.0),
        None => {
            let pages = u64::from(config.geometry.pages_per_program);
            (pages, config.nand.read.get(0).0, config.nand.program.get(0).0)
        }
    }
}

/// Returns the latency of a request for one unit on an idle device.
fn unit_latency(device: &mut Device, operation: Operation, unit: u64) -> Time {
    let request = units(device, operation, unit, 1);
    latency(device, request)
}

/// Returns the latency of one request on an idle device.
fn latency(device: &mut Device, request: Request) -> Time {
    let at = device.now() + Time::from_us(10_000);
    common::submit(device, at, request);
    let completions = drain(device);
    assert_eq!(completions.len(), 1);
    completions[0].finish - at
}

#[test]
fn unloaded_latencies_are_the_sums_of_their_phases() {
    for name in Builtin::names() {
        // No buffer, which would serve requests without flash, no wait for a full program, and no firmware.
        let bare = [&["buffer.capacity=0B", "controller.fill_timeout=0s"][..], &NO_FIRMWARE].concat();
        let bare: Vec<String> = bare.iter().map(|&text| text.to_owned()).collect();
        let config = load(name, &bare).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut device = build(config.clone(), Options::default());
        let unit = config.unit_bytes();
        let page = config.geometry.page_size.0;
        let ends = 2 * config.host.link_latency.0 + config.host.software.0;

        // The first page of an empty device is the first of a block: type 0. A host write of one unit fills a page
        // alone, or several pages one after the other.
        let pages = u64::from(config.pages_per_unit());
        let (at_once, read, program) = cells(&config);
        let expected = ends
            + link(&config, unit)
            + pages * (command(&config, config.bus.command_cycles.program) + data(&config, page * at_once) + program);
        assert_eq!(unit_latency(&mut device, Operation::Write, 0), Time(expected), "{name}: write");

        let expected = ends
            + link(&config, unit)
            + pages * (command(&config, config.bus.command_cycles.read) + read + data(&config, unit / pages));
        assert_eq!(unit_latency(&mut device, Operation::Read, 0), Time(expected), "{name}: read");

        assert_eq!(
            unit_latency(&mut device, Operation::Read, 1),
            Time(ends + link(&config, unit)),
            "{name}: never written"
        );
        assert_eq!(unit_latency(&mut device, Operation::Trim, 0), Time(ends), "{name}: trim");
        assert_eq!(latency(&mut device, Request::new(Time::ZERO, Operation::Flush, 0, 0)), Time(ends), "{name}: flush");
    }
}

/// A buffered write takes the time of the link and of the port of the buffer memory. A read of a unit that was not
/// written back yet takes the same time.
#[test]
fn a_buffer_serves_reads_and_writes_without_flash() {
    let buffered = Builtin::names().into_iter().filter_map(|name| {
        let config = load(name, &NO_FIRMWARE.map(str::to_owned)).expect("a built-in device");
        config.active_buffer().is_some().then_some((name, config))
    });
    let mut tried = 0;
    for (name, config) in buffered {
        let mut device = build(config.clone(), Options::default());
        let buffer = config.active_buffer().expect("a device with a buffer");
        let bytes = config.unit_bytes();
        let port = buffer.bandwidth.map_or(0, |b| (u128::from(bytes) * 1_000_000_000_000).div_ceil(b.0.into()) as u64);
        let ends = 2 * config.host.link_latency.0 + config.host.software.0;
        let expected = ends + link(&config, bytes) + buffer.latency.0 + port;
        let at = device.now();
        for operation in [Operation::Write, Operation::Read] {
            let request = units(&device, operation, 0, 1);
            let start = at + Time::from_us(if operation == Operation::Read { 100 } else { 0 });
            common::submit(&mut device, start, request);
            device.advance(start + Time::from_us(50));
            let mut completions = Vec::new();
            device.take_completions(&mut completions);
            assert_eq!(completions[0].finish - start, Time(expected), "{name}: {operation:?}");
        }
        tried += 1;
    }
    assert!(tried >= 2, "{tried} devices with a buffer");
}

/// Compares the published latencies with the model, as a check of the closed forms above.
#[test]
fn unloaded_latencies_match_the_published_ones() {
    let read_and_write = |name: &str| {
        let mut device = build(load(name, &[]).expect("a built-in device"), Options::default());
        let write = unit_latency(&mut device, Operation::Write, 0);
        (unit_latency(&mut device, Operation::Read, 0).0, write.0)
    };
    // Hu et al. 2011, Table 2: 20 us + 2048 * 25 ns, 2048 * 25 ns + 200 us.
    assert_eq!(read_and_write("hu2011"), (71_200_000, 251_200_000));
    // Agrawal et al. 2008, Table 3: 25 us + 4224 * 25 ns = 130.6 us, printed as 130; 305.6 us without summary pages.
    assert_eq!(read_and_write("agrawal2008"), (130_600_000, 305_600_000));
    // MQSim: 75 us + 4096 B at 333 MB/s = 87.3 us and its commands; its own output says 88.
    let (read, _) = read_and_write("mqsim-default");
    assert!((87_000_000..=88_500_000).contains(&read), "{read} ps");
}
