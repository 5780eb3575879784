//! Buffered writes on modern devices: whole program units, garbage collection that keeps pace with the host, and the
//! steady state that functional preconditioning reaches. See docs/model/mapping.md and gc.md.

use crate::common::{assert_close, build, device_config, drain, rate, submit, units};
use floatgate_core::device_file::{CellMode, load};
use floatgate_core::mapping::Location;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::{Counters, ProgramCause};
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, NoWatcher, Options, Outcome, Ssd, run};
use floatgate_workload::synthetic;

/// Returns a built-in device of two channels in steady state, and the write amplification that preconditioning
/// measured.
fn steady(name: &str, overrides: &[&str]) -> (Device, f64) {
    let base = ["geometry.channels=2", "geometry.blocks=60"];
    let overrides: Vec<String> = base.iter().chain(overrides).map(|o| (*o).to_owned()).collect();
    let config = load(name, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let mut device = build(config, Options::default());
    let reached = precondition(&mut device, Precondition::Steady, 1, &mut |_| true).expect("the state can be reached");
    assert_eq!(reached.converged, Some(true));
    (device, reached.write_amplification.expect("writes"))
}

fn play(device: &mut Device, text: &str) -> Outcome {
    let jobs = synthetic::parse(text, device.config().logical_bytes(), 5).expect("a valid job");
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    run(device, &mut sources, &mut NoWatcher).expect("all requests complete")
}

fn amplification(counted: &Counters) -> f64 {
    (counted.units_programmed + counted.units_padded) as f64 / counted.host_units as f64
}

fn share_empty(counted: &Counters) -> f64 {
    counted.units_padded as f64 / (counted.units_programmed + counted.units_padded) as f64
}

/// Returns the rate in units per second at which the host could write if all planes only performed the programs, reads
/// and erases of these writes.
fn bound(device: &Device, counted: &Counters) -> f64 {
    let config = device.config();
    let timing = device.array().timing();
    let programs = (counted.units_programmed + counted.units_padded) as f64 / f64::from(config.units_per_program());
    let reads = counted.pages_read.iter().sum::<u64>() as f64;
    let times = timing.of(CellMode::Native);
    let mean_read = (0..config.geometry.pages_per_program).map(|page| times.read(page).as_s()).sum::<f64>()
        / f64::from(config.geometry.pages_per_program);
    let busy = programs * times.program(0).as_s()
        + reads * (mean_read + timing.units_out[2].as_s())
        + counted.blocks_erased as f64 * timing.erase.as_s();
    counted.host_units as f64 * f64::from(config.total_planes()) / busy
}

/// A run from a steady state has the write amplification of functional mode, hardly any padding, and a rate near the
/// bound of the flash.
#[test]
fn random_writes_of_a_modern_device_are_limited_by_its_flash() {
    for (name, capacity) in [("tlc-direct", "capacity.logical=13GiB"), ("qlc-direct", "capacity.logical=17GiB")] {
        let (mut device, functional) = steady(name, &[capacity]);
        let outcome = play(&mut device, "rw=randwrite norandommap=1 bs=4k iodepth=256 number_ios=500000");
        let counted = outcome.counters;
        assert_close(&format!("{name}: write amplification"), amplification(&counted), functional, 0.03);
        assert!(share_empty(&counted) < 0.01, "{name}: {} of the units are padding", share_empty(&counted));
        assert_close(&format!("{name}: writes per second"), rate(&outcome), bound(&device, &counted), 0.10);
    }
}

/// These allocations determine the plane or channel of a unit, and so its program unit, by its address.
#[test]
fn the_buffer_fills_the_program_units_of_any_allocation() {
    for allocation in ["allocation=static", "allocation.dynamic.scope=channel"] {
        let (mut device, _) = steady("tlc-direct", &["capacity.logical=13GiB", allocation]);
        let counted = play(&mut device, "rw=randwrite norandommap=1 bs=4k iodepth=256 number_ios=200000").counters;
        assert!(share_empty(&counted) < 0.005, "{allocation}: {} of the units are padding", share_empty(&counted));
    }
}

#[test]
fn proportional_garbage_collection_delays_all_writes_equally() {
    let p99_over_median = |pace: &str| {
        let (mut device, _) = steady("tlc-direct", &["capacity.logical=13GiB", &format!("gc.pace={pace}")]);
        let job = "rw=randwrite norandommap=1 bs=4k iodepth=256 number_ios=300000";
        let outcome = play(&mut device, job);
        let latency = &outcome.results.all().latency;
        latency.quantile_us(0.99) / latency.quantile_us(0.5)
    };
    assert!(p99_over_median("proportional") < 2.0);
    assert!(p99_over_median("queued") > 3.0);
}

/// Returns a device whose wordlines have three pages of one unit each, with a buffer of 64 units.
fn small(overrides: &[&str]) -> Device {
    let base = ["geometry.pages=63", "geometry.pages_per_program=3", "allocation=dynamic", "buffer.capacity=256KiB"];
    let overrides: Vec<&str> =
        base.iter().chain(&["controller.fill_timeout=500us"]).chain(overrides).copied().collect();
    build(device_config(&overrides), Options::default())
}

fn submit_write(device: &mut Device, unit: u64, fua: bool) {
    let request = Request { fua, ..units(device, Operation::Write, unit, 1) };
    submit(device, Time::ZERO, request);
}

fn programs(device: &Device) -> (u64, u64) {
    let counters = &device.ftl().counters;
    (counters.program_commands, counters.pages_programmed[ProgramCause::Padding as usize])
}

/// The 33rd unit exceeds the high water mark. Two more units that are dirty longest are evicted with the first one.
#[test]
fn a_buffer_evicts_a_whole_program_unit() {
    let mut device = small(&["buffer.high_water=0.5", "buffer.low_water=0.5"]);
    (0..33).for_each(|unit| submit_write(&mut device, unit, false));
    device.advance(Time::from_us(5000));
    assert_eq!(programs(&device), (1, 0));
    assert_eq!(device.buffer().map(|buffer| buffer.occupancy()[1]), Some(30), "one program of three units");
}

/// Static allocation: an evicted unit is written back together with other units of its plane.
#[test]
fn a_buffer_evicts_a_whole_program_unit_of_a_plane() {
    let overrides = ["geometry.planes=2", "allocation=static", "buffer.high_water=0.5", "buffer.low_water=0.5"];
    let mut device = small(&overrides);
    (0..33).for_each(|unit| submit_write(&mut device, unit, false));
    device.advance(Time::from_us(5000));
    assert_eq!(programs(&device), (1, 0));
    let is_in_flash = |unit: &u32| matches!(device.ftl().map.get(Lpn(*unit)), Location::Flash(_));
    assert_eq!(
        (0..33).filter(is_in_flash).collect::<Vec<_>>(),
        [0, 8, 16],
        "the oldest units of the first of eight planes"
    );
}

/// There are write slots for two program units and two more units, so the buffer does not start a third program unit.
#[test]
fn no_program_unit_is_started_without_write_slots_for_all_of_it() {
    let overrides = ["geometry.channels=4", "allocation=static", "controller.write_slots=8", "buffer.capacity=4MiB"];
    let mut device = small(&overrides);
    let outcome = play(&mut device, "rw=randwrite norandommap=1 bs=4k iodepth=64 number_ios=5000");
    assert_eq!((outcome.counters.units_padded, outcome.counters.units_cut_by_timeout), (0, 0));
}

/// The program of an FUA write is filled with dirty units of the buffer.
#[test]
fn a_forced_program_is_filled_with_dirty_units_of_the_buffer() {
    let mut device = small(&[]);
    (0..4).for_each(|unit| submit_write(&mut device, unit, false));
    submit_write(&mut device, 9, true);
    drain(&mut device);
    assert_eq!(programs(&device), (1, 0), "FUA also programs two other dirty units");
    assert_eq!(device.buffer().map(|buffer| buffer.occupancy()[1]), Some(2));
    let now = device.now();
    submit(&mut device, now, Request::new(now, Operation::Flush, 0, 0));
    drain(&mut device);
    assert_eq!(programs(&device), (2, 1), "a flush writes the rest");
    assert_eq!(device.ftl().counters.units_cut_by_flush, 1);
}

/// An operation of garbage collection between two writes of a plane does not split their program, with any allocation.
#[test]
fn other_operations_do_not_split_programs() {
    for allocation in ["allocation=static", "allocation=dynamic"] {
        let overrides = ["geometry.page_size=16KiB", "capacity.spare=0.3", allocation];
        let mut device = build(device_config(&overrides), Options::default());
        precondition(&mut device, Precondition::Steady, 1, &mut |_| true).expect("the state can be reached");
        // Each request writes a whole page of several units. Between them are reads of garbage collection.
        let outcome = play(&mut device, "rw=randwrite norandommap=1 bs=16k iodepth=16 number_ios=20000");
        assert!(share_empty(&outcome.counters) < 0.01, "{allocation}: {}", share_empty(&outcome.counters));
    }
}
