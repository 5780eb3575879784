//! Busy time of dies whose operations overlap, and the bound that follows from it. Overlapping time counts once.
//!
//! The device takes 25 us to read a page, 200 us to program it, and 102.4 us to transfer it over its channel; commands
//! take no time. `model/` checks random devices in the same way, using the phases that a probe records.

use crate::common::{Load, device, drain, fill, submit, units};
use floatgate_core::results::Sample;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Ssd;

const US: u64 = 1_000_000;
const READ: u64 = 25 * US;
const PROGRAM: u64 = 200 * US;
const DATA: u64 = 102_400_000;

/// Time, operation, first unit and number of units.
type Script = (u64, Operation, u64, u32);

/// Returns the busy time of the only LUN, and the time until everything has completed.
fn busy(overrides: &[&str], requests: &[Script]) -> (u64, u64) {
    let one_chip = ["geometry.channels=1", "geometry.chips=1", "allocation={ static = { order = \"s2\" } }"];
    let mut device = device(&[&one_chip, overrides].concat());
    fill(&mut device, 16);
    for (tag, &(at, operation, unit, count)) in requests.iter().enumerate() {
        let request = Request { tag: tag as u64, ..units(&device, operation, unit, count) };
        submit(&mut device, Time(at), request);
    }
    drain(&mut device);
    let mut sample = Sample::default();
    device.sample(device.now(), &mut sample);
    (sample.luns[0].unsigned_abs(), device.now().ps())
}

#[test]
fn transfers_during_a_program_add_no_busy_time() {
    let writes = [0, 1, 2].map(|unit| (0, Operation::Write, unit, 1));
    let time = DATA + 3 * PROGRAM;
    assert_eq!(busy(&["nand.advanced.cache_program=true"], &writes), (time, time));
}

#[test]
fn cell_reads_during_a_transfer_add_no_busy_time() {
    let reads = [0, 1, 2].map(|unit| (0, Operation::Read, unit, 1));
    let time = READ + 3 * DATA;
    assert_eq!(busy(&["nand.advanced.cache_read=true"], &reads), (time, time));
    // Cells that take longer than the transfer continue alone.
    let slow = ["nand.advanced.cache_read=true", "nand.read=150us"];
    let time = 3 * 150 * US + DATA;
    assert_eq!(busy(&slow, &reads), (time, time));
}

#[test]
fn an_interleaved_command_is_busy_while_any_of_its_dies_is() {
    let overrides = ["geometry.dies=2", "nand.concurrency=command", "nand.advanced.interleave=true"];
    let of = |operation| busy(&overrides, &[(0, operation, 0, 2)]);
    assert_eq!(of(Operation::Write), (2 * DATA + PROGRAM, 2 * DATA + PROGRAM));
    assert_eq!(of(Operation::Read), (READ + 2 * DATA, READ + 2 * DATA));
}

#[test]
fn suspend_and_resume_latencies_are_not_busy_time() {
    let suspend = ["nand.advanced.suspend={ program = true, latency = \"20us\", resume = \"10us\" }"];
    let (found, time) = busy(&suspend, &[(0, Operation::Write, 0, 1), (150 * US, Operation::Read, 1, 1)]);
    let work = DATA + PROGRAM + READ + DATA;
    assert_eq!((found, time), (work, work + 30 * US));
}

/// Covers devices whose LUNs once had more busy time than time elapsed, 2.2 times as much when four dies interleave.
#[test]
fn no_resource_exceeds_its_bound() {
    let caches = ["nand.advanced.cache_read=true", "nand.advanced.cache_program=true"];
    let chips = ["geometry.channels=8", "geometry.chips=1", "geometry.dies=4", "nand.concurrency=command"];
    let interleave = [&chips[..], &["nand.advanced.interleave=true"]].concat();
    let suspend = ["nand.advanced.suspend={ program = true, erase = true, latency = \"5us\", resume = \"5us\" }"];
    let dies = [&chips[..3], &["nand.concurrency=die", "scheduler=read-first"], &caches, &suspend].concat();
    for overrides in [&caches[..], &interleave, &dies] {
        for reads in [0, 50, 100] {
            let mut device = device(&[overrides, &["geometry.planes=2"]].concat());
            let count = device.ftl().map.len();
            fill(&mut device, count);
            let mut rng = Rng::new(reads, "bounds");
            let next = move || {
                let operation = if rng.below(100) < reads { Operation::Read } else { Operation::Write };
                Request::new(Time::ZERO, operation, 8 * rng.below(u64::from(count)), 8)
            };
            let outcome = Load::closed(256, 10_000, next).run(&mut device);
            let demands = outcome.measurement(&device).work().demands();
            let reached = |work: u128, units: u32| work as f64 / f64::from(units) / outcome.elapsed.ps() as f64;
            let all: Vec<f64> = demands.iter().map(|demand| reached(demand.work, demand.units)).collect();
            let most = all.iter().copied().fold(0.0, f64::max);
            assert!((0.5..=1.0).contains(&most), "{overrides:?}, {reads} % reads: {demands:?}, {all:?}");
        }
    }
}
