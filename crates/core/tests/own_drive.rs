//! The device of `docs/own-drive.md` loads, and its results are within the tolerances that the page states.

use crate::common::{assert_close, build, rate};
use floatgate_core::device_file::{DeviceConfig, load};
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::source::Source;
use floatgate_core::simulation::{Device, NoWatcher, Options, Outcome, run};
use floatgate_workload::synthetic;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-drive.toml");

/// Blocks of a plane in these runs.
const BLOCKS: u32 = 12;

/// Space of each plane that garbage collection keeps unwritten, in blocks: `gc.soft_threshold` and a half.
const UNWRITTEN: f64 = 3.5;

fn own_drive(overrides: &[String]) -> DeviceConfig {
    load(FILE, overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the device with fewer blocks, and with the logical capacity that leaves the write amplification unchanged.
fn scaled(state: Precondition) -> Device {
    let full = own_drive(&[]);
    let share = (f64::from(BLOCKS) - UNWRITTEN) / (f64::from(full.geometry.blocks) - UNWRITTEN);
    let logical = (full.logical_bytes() as f64 * share) as u64 >> 20;
    let overrides = [format!("geometry.blocks={BLOCKS}"), format!("capacity.logical={logical}MiB")];
    let mut device = build(own_drive(&overrides), Options::default());
    precondition(&mut device, state, 1, &mut |_| true).expect("the state can be reached");
    device
}

fn play(device: &mut Device, text: &str) -> Outcome {
    let jobs = synthetic::parse(text, device.config().logical_bytes(), 1).expect("a valid job");
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    run(device, &mut sources, &mut NoWatcher).expect("all requests complete")
}

/// The file itself is the source of a value that has none in `[sources]`.
#[test]
fn every_value_of_the_file_has_a_source() {
    let config = own_drive(&[]);
    let missing: Vec<&String> =
        config.sources.iter().filter(|(_, source)| source.ends_with("own-drive.toml")).map(|(key, _)| key).collect();
    assert!(missing.is_empty(), "without a source: {missing:?}");
    assert!(config.sources["nand.program"].starts_with("data sheet"));
}

#[test]
fn reads_are_as_the_page_states() {
    let mut device = scaled(Precondition::Fill);
    let outcome = play(&mut device, "rw=randread norandommap=1 bs=4k iodepth=1 number_ios=2000");
    assert_close("latency of a read, us", outcome.results.all().latency.mean_us(), 58.67, 0.01);
    let outcome = play(&mut device, "rw=randread norandommap=1 bs=4k iodepth=256 number_ios=200000");
    assert_close("random reads per second", rate(&outcome), 530_000.0, 0.08);
    let outcome = play(&mut device, "rw=read bs=128k iodepth=32 number_ios=10000");
    assert_close("sequential reads, MB/s", rate(&outcome) * 0.131072, 6800.0, 0.02);
}

#[test]
fn sequential_writes_are_as_the_page_states() {
    let outcome = play(&mut scaled(Precondition::Fill), "rw=write bs=128k iodepth=32 number_ios=100000");
    assert_close("sequential writes, MB/s", rate(&outcome) * 0.131072, 1400.0, 0.03);
}

#[test]
fn random_writes_are_as_the_page_states() {
    let job = "rw=randwrite norandommap=1 bs=4k iodepth=256 number_ios=200000";
    let outcome = play(&mut scaled(Precondition::Steady), job);
    let counted = outcome.counters;
    assert_close("random writes per second", rate(&outcome), 145_000.0, 0.08);
    let programmed = (counted.units_programmed + counted.units_padded) as f64;
    assert_close("write amplification", programmed / counted.host_units as f64, 2.06, 0.03);
}
