//! Load of the allocation pools in results: values computed by hand, sums, and the balance of pools of different sizes.
//!
//! Times of the device: page read 25 us, program 200 us. A page of 4096 B takes 102.4 us on the channel at 25 ns per
//! byte.

mod common;

use common::{Load, assert_close, fill, units};
use floatgate_core::device::Device;
use floatgate_core::metrics::summary::{Imbalance, PoolsUse, Summary};
use floatgate_core::sim::request::Operation::{Read, Write};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;

const DATA: u64 = 102_400_000;
const PROGRAM: u64 = 200_000_000;

/// Creates a device of four channels with a chip of two planes each, and pools of the given scope.
fn pools(scope: &str, overrides: &[&str]) -> Device {
    let allocation = format!("allocation={{ dynamic = {{ scope = {scope} }} }}");
    let base = ["geometry.channels=4", "geometry.chips=1", "geometry.planes=2", &allocation];
    common::device(&[&base, overrides].concat())
}

/// Runs requests of whole units that arrive at time 0, and returns the summary.
fn summary_of(device: &mut Device, requests: &[(Operation, u64, u32)]) -> Summary {
    let all: Vec<Request> =
        requests.iter().map(|&(operation, first, count)| units(device, operation, first, count)).collect();
    let (count, mut next) = (all.len() as u64, all.into_iter());
    let start = device.now();
    let next = move || Request { arrival: start, ..next.next().expect("a request") };
    let outcome = Load::open(count, next).run(device);
    common::history::summary_of(&outcome, device)
}

#[test]
fn results_have_the_units_and_the_cell_time_of_each_pool() {
    // Units go to the channels in turn. The four units of pool 0 are programmed one after the other.
    let mut device = pools("\"channel\"", &[]);
    let writes = [0, 4, 8, 12, 1, 5, 2].map(|unit| (Write, unit, 1));
    let found = summary_of(&mut device, &writes).pools.expect("four pools");
    let elapsed = 4 * (DATA + PROGRAM);
    let cell = [4u64, 2, 1, 0].map(|count| (count * PROGRAM) as f64 / elapsed as f64);
    let imbalance = Imbalance {
        units_written: Some(4.0 * 4.0 / 7.0),
        units_programmed: Some(4.0 * 4.0 / 7.0),
        cell: Some(cell[0] * 4.0 / cell.iter().sum::<f64>()),
    };
    let units_written = vec![4, 2, 1, 0];
    let expected = PoolsUse { imbalance, units_written, units_moved: vec![0; 4], cell: cell.to_vec() };
    assert_eq!(found, expected);
    // Reads work the cells, and program nothing.
    let found = summary_of(&mut device, &[(Read, 4, 1)]).pools.expect("four pools");
    assert_eq!(found.units_written, [0; 4]);
    let share = 25_000_000.0 / (25_000_000.0 + DATA as f64);
    assert_eq!(found.cell, [share, 0.0, 0.0, 0.0]);
    assert_eq!(found.imbalance, Imbalance { cell: Some(4.0), ..Imbalance::default() });
}

#[test]
fn dies_with_several_pools_have_no_cell_time_by_pool() {
    let mut device = pools("\"plane\"", &[]);
    // Consecutive pages differ in channel first: pages 0 and 4 lie in the two planes of the first channel.
    let found = summary_of(&mut device, &[0, 4, 4].map(|unit| (Write, unit, 1))).pools.expect("eight pools");
    assert_eq!(found.units_written, [1, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!((found.cell, found.imbalance.cell), (vec![], None));
    assert_eq!(found.imbalance.units_written, Some(2.0 * 8.0 / 3.0));
    assert_eq!(summary_of(&mut pools("\"device\"", &[]), &[(Write, 0, 1)]).pools, None);
}

/// Overwrites a full device, mostly its hot units: nine of ten writes go to units whose number is 0 or 1 modulo 8.
fn skewed(scope: &str, overrides: &[&str]) -> Summary {
    let small = ["geometry.blocks=32", "geometry.pages=16", "gc.soft_threshold=3"];
    let mut device = pools(scope, &[&small, overrides].concat());
    let count = device.config().logical_units();
    fill(&mut device, count as u32);
    let mut rng = Rng::new(7, "skew");
    let next = move || {
        let unit = match rng.below(10) {
            0 => rng.below(count),
            _ => rng.below(count / 8) * 8 + rng.below(2),
        };
        Request::new(Time::ZERO, Write, unit * 8, 8)
    };
    let outcome = Load::closed(16, 3 * count, next).run(&mut device);
    device.check_invariants().unwrap();
    common::history::summary_of(&outcome, &device)
}

#[test]
fn the_units_of_all_pools_are_those_of_the_device() {
    for overrides in [&[][..], &["gc.scope=pool", "nand.advanced.copy_back=wise"], &["gc.destination=pool"]] {
        for scope in ["\"plane\"", "\"channel\"", "{ channels = 2 }"] {
            let summary = skewed(scope, overrides);
            let found = summary.pools.expect("several pools");
            let (written, moved) = (found.units_written.iter().sum::<u64>(), found.units_moved.iter().sum::<u64>());
            assert!(moved > 0, "{scope}");
            assert_eq!(written + moved, summary.flash.units.programmed, "{scope}");
            assert_eq!(written, summary.requests.write.bytes / 4096, "{scope}");
        }
    }
}

/// Agrawal et al. 2008, Table 6: large allocation pools balance the load.
#[test]
fn larger_pools_balance_a_skewed_load_better() {
    let of = |scope: &str| {
        let summary = skewed(scope, &[]);
        let dies = summary.utilization.dies.cell;
        let of_dies = dies.max.unwrap() / dies.mean.unwrap();
        (summary.pools.map(|pools| pools.imbalance), of_dies, summary.measured_s)
    };
    // With pools of a channel, unit u goes to channel u mod 4. Channels 0 and 1 get 0.9 / 2 + 0.1 / 4 of the writes
    // each, so the imbalance is 4 x 0.475. With pools of two channels, unit u goes to pool u mod 2.
    let (small, dies_of_small, time_of_small) = of("\"channel\"");
    let (large, dies_of_large, time_of_large) = of("{ channels = 2 }");
    let (one, dies_of_one, time_of_one) = of("\"device\"");
    let (small, large) = (small.unwrap(), large.unwrap());
    assert_eq!(one, None);
    assert_close("units written, small pools", small.units_written.unwrap(), 1.9, 0.05);
    assert_close("units written, large pools", large.units_written.unwrap(), 1.0, 0.05);
    // Hot channels also collect more garbage. The cells of all pools program at the same speed.
    assert!(small.units_programmed.unwrap() > small.units_written.unwrap(), "{small:?}");
    for imbalance in [small, large] {
        let (cell, units) = (imbalance.cell.unwrap(), imbalance.units_programmed.unwrap());
        assert_close("cells", cell, units, 0.02);
    }
    assert_close("dies, small pools", dies_of_small, small.cell.unwrap(), 0.01);
    assert!(dies_of_one < 1.01 && dies_of_large < 1.05, "{dies_of_one}, {dies_of_large}");
    // The busiest pool determines the time of the run.
    assert!(time_of_small > 1.9 * time_of_large && time_of_large > time_of_one, "{time_of_small}, {time_of_large}");
}
