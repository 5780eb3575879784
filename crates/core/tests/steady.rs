//! Runs from a steady state: results depend only on the workload, not on work left over from preconditioning.

use crate::common::{assert_close, build, device_config};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::Role;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::Counters;
use floatgate_core::sim::id::PlaneId;
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, NoWatcher, Options, Outcome, run};
use floatgate_workload::synthetic;

fn steady(config: DeviceConfig) -> Device {
    let mut device = build(config, Options::default());
    let reached = precondition(&mut device, Precondition::Steady, 3, &mut |_| true).expect("the state can be reached");
    assert_eq!(reached.converged, Some(true));
    device
}

fn job(device: &mut Device, text: &str) -> Outcome {
    let jobs = synthetic::parse(text, device.config().logical_bytes(), 5).expect("a valid job");
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    run(device, &mut sources, &mut NoWatcher).expect("all requests complete")
}

fn amplification(counted: &Counters) -> f64 {
    (counted.units_programmed + counted.units_padded) as f64 / counted.host_units as f64
}

/// Returns a device with several planes per die. While a die performs a write, its other planes are busy, too.
fn planes(order: &str) -> DeviceConfig {
    let order = format!("allocation.dynamic.order={order}");
    device_config(&["geometry.dies=2", "geometry.planes=2", "geometry.blocks=128", "gc.hard_threshold=1", &order])
}

#[test]
fn dynamic_orders_spread_writes_evenly_over_the_planes() {
    let run = |order: &str| {
        let mut device = steady(planes(order));
        let outcome = job(&mut device, "rw=randwrite norandommap=1 bs=4k iodepth=8 number_ios=100000");
        let per_plane: Vec<u32> =
            device.ftl().blocks.all().chunks(128).map(|p| p.iter().map(|b| b.erases).sum()).collect();
        (amplification(&outcome.counters), per_plane)
    };
    let (expected, _) = run("s2");
    for order in ["s1", "s3", "s5", "s6", "plane-die-chip-channel"] {
        let (measured, erases) = run(order);
        assert_close(order, measured, expected, 0.02);
        let (least, most) = (erases.iter().min().expect("planes"), erases.iter().max().expect("planes"));
        assert!(f64::from(*most) < 1.2 * f64::from(*least), "{order}: erases by plane {erases:?}");
    }
}

/// Garbage collection that preconditioning left undone would be attributed to the first writes.
#[test]
fn a_run_starts_without_pending_garbage_collection() {
    let mut device = steady(device_config(&["geometry.blocks=256", "gc.hard_threshold=1"]));
    for plane in 0..device.config().total_planes() {
        let free_blocks = device.ftl().blocks.free_blocks(PlaneId(plane), Role::Data);
        assert_eq!(free_blocks, device.config().soft_threshold() + 1, "plane {plane}");
    }
    let first = job(&mut device, "rw=randwrite norandommap=1 bs=4k iodepth=4 number_ios=20000 randseed=1");
    let later = job(&mut device, "rw=randwrite norandommap=1 bs=4k iodepth=4 number_ios=20000 randseed=2");
    assert_close("write amplification", amplification(&first.counters), amplification(&later.counters), 0.02);
}

#[test]
fn a_job_ends_after_its_runtime() {
    for (text, ms) in [
        ("rw=randread bs=4k iodepth=8 runtime=50ms number_ios=1m", 50),
        ("rw=randread bs=4k iodepth=1 runtime=20ms time_based=1", 20),
        ("rw=randwrite bs=4k iodepth=4 runtime=30ms time_based=1", 30),
        ("rw=randread bs=4k iodepth=4 runtime=30ms ramp_time=10ms time_based=1", 30),
    ] {
        let mut device = steady(device_config(&[] as &[&str]));
        let outcome = job(&mut device, text);
        let measured = outcome.measured;
        let end = Time::from_us(ms * 1000);
        assert!(outcome.results.all().count() > 0, "{text}");
        assert!(measured > Time(end.0 - 2_000_000_000), "{text}: {measured:?}");
        // Requests in flight at the end complete. After garbage collection, this takes a few milliseconds.
        assert!(measured < end + Time::from_us(20_000), "{text}: {measured:?}");
    }
}

/// A wide gap between the thresholds lets the free blocks of a plane, and so write amplification, depend on the load.
#[test]
fn a_wide_gap_between_the_thresholds_is_reported() {
    let gap = |soft: u32| {
        let soft = format!("gc.soft_threshold={soft}");
        let sets = ["geometry.channels=1", "geometry.blocks=512", "geometry.pages=32", "capacity.spare=0.1", &soft];
        let mut device = build(device_config(&sets), Options::default());
        let reached = precondition(&mut device, Precondition::Steady, 3, &mut |_| true).expect("the state exists");
        (device, reached)
    };
    let (mut device, reached) = gap(30);
    let soft = reached.write_amplification.expect("there were writes");
    let hard = reached.write_amplification_at_hard.expect("a much lower value");
    let mut run = |load: &str| {
        let text = format!("rw=randwrite norandommap=1 bs=4k {load} number_ios=200000 randseed=1");
        amplification(&job(&mut device, &text).counters)
    };
    // Garbage collection keeps up with a light load. Under a heavy load, the host uses all blocks that it can.
    assert_close("a light load", run("rate_iops=200"), soft, 0.03);
    assert_close("a heavy load", run("iodepth=64"), hard, 0.03);
    let between = run("iodepth=1");
    assert!(between < soft && between > hard, "{soft} to {hard}: {between}");
    assert_eq!(gap(3).1.write_amplification_at_hard, None);
}

/// The value at the hard threshold is that of one plane of the FTL, which may consist of several planes of a die.
#[test]
fn a_wide_gap_is_reported_for_planes_that_are_programmed_together() {
    let reached = |die: &[&str]| {
        let sets = ["geometry.channels=1", "geometry.blocks=512", "capacity.spare=0.1", "gc.soft_threshold=30"];
        let mut device = build(device_config(&[&sets, die].concat()), Options::default());
        precondition(&mut device, Precondition::Steady, 3, &mut |_| true).expect("the state exists")
    };
    let together = reached(&["geometry.planes=2", "geometry.pages=16", "nand.concurrency=plane-reads"]);
    let one = reached(&["geometry.planes=1", "geometry.pages=32", "geometry.pages_per_program=2"]);
    assert!(one.write_amplification_at_hard.is_some());
    assert_eq!(together.write_amplification_at_hard, one.write_amplification_at_hard);
    assert_eq!(together.write_amplification, one.write_amplification);
}
