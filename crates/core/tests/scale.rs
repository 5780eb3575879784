//! A scaled device has the steady state of the whole one: the same write amplification, rates and latencies.

use crate::common::{assert_close, build, rate};
use floatgate_core::device_file::{DeviceConfig, load};
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::source::Source;
use floatgate_core::simulation::{NoWatcher, Options, run};
use floatgate_workload::synthetic;

/// Values of a device in the steady state.
struct Steady {
    write_amplification: f64,
    per_second: f64,
    read_us: f64,
    write_us: f64,
}

/// Returns a built-in device with few parallel units, so that its steady state is reached within seconds. It has no
/// buffer, which would be a large share of its capacity.
fn small(name: &str, overrides: &[&str]) -> DeviceConfig {
    let few = ["geometry.channels=1", "geometry.chips=1", "buffer.capacity=0B"];
    let overrides: Vec<String> = few.iter().chain(overrides).map(|text| (*text).to_owned()).collect();
    load(name, &overrides).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Serves random writes and a few reads in the steady state.
fn steady(config: DeviceConfig) -> Steady {
    let mut device = build(config, Options::default());
    let reached = precondition(&mut device, Precondition::Steady, 1, &mut |_| true).expect("the state can be reached");
    assert_eq!(reached.converged, Some(true));
    let text = "rw=randrw rwmixread=20 norandommap=1 bs=4k iodepth=16 number_ios=100000";
    let jobs = synthetic::parse(text, device.config().logical_bytes(), 1).expect("a valid job");
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    let outcome = run(&mut device, &mut sources, &mut NoWatcher).expect("all requests complete");
    let counted = &outcome.counters;
    Steady {
        write_amplification: (counted.units_programmed + counted.units_padded) as f64 / counted.host_units as f64,
        per_second: rate(&outcome),
        read_us: outcome.results.of(Operation::Read).latency.mean_us(),
        write_us: outcome.results.of(Operation::Write).latency.mean_us(),
    }
}

/// Largest deviation of a scaled device, as docs/own-drive.md states it.
const TOLERANCE: f64 = 0.03;

/// Requires the values of a scaled device to deviate by at most [`TOLERANCE`] from the whole one.
fn check(name: &str, overrides: &[&str], scale: &str) {
    let whole = small(name, overrides);
    let scaled = whole.scaled(scale.parse().expect("a scale")).unwrap_or_else(|error| panic!("{name}: {error}")).device;
    let [whole, scaled] = [whole, scaled].map(steady);
    let close = |what: &str, value: fn(&Steady) -> f64| {
        assert_close(&format!("{name}, {scale}, {what}"), value(&scaled), value(&whole), TOLERANCE);
    };
    close("write amplification", |steady| steady.write_amplification);
    close("requests per second", |steady| steady.per_second);
    close("mean latency of reads, us", |steady| steady.read_us);
    close("mean latency of writes, us", |steady| steady.write_us);
}

#[test]
fn collection_by_threshold_has_the_same_steady_state() {
    check("hu2011", &["geometry.dies=1"], "1/8");
    check("bench-32g", &[], "1/4");
}

#[test]
fn proportional_collection_has_the_same_steady_state() {
    let capacity = "capacity.logical=4968MiB"; // the ratio of the whole drive
    check("tlc-direct", &["geometry.pages=96", capacity], "1/16");
}

/// The reserve of this device is 5% of the flash, given as a number of blocks.
#[test]
fn a_large_reserve_has_the_same_steady_state() {
    check("agrawal2008", &["geometry.chips_per_package=1"], "1/16");
}
