//! Load of the allocation pools in results: values computed by hand, sums, and the balance of pools of different sizes.
//!
//! Times of the device: page read 25 us, program 200 us. A page of 4096 B takes 102.4 us on the channel at 25 ns per
//! byte.

use crate::common::{self, Load, assert_close, drain, fill, submit, units};
use floatgate_core::sim::id::PlaneId;
use floatgate_core::sim::request::Operation::{Read, Write};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::summary::{Imbalance, PoolsUse, Summary};

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

/// Returns the planes of the pool of all planes with an open block for host writes.
fn active(device: &Device) -> Vec<u32> {
    let blocks = &device.ftl().blocks;
    let planes = (0..device.config().total_planes()).map(PlaneId);
    planes.filter(|&plane| blocks.room(blocks.host_frontier(plane, 0)) > 0).map(|plane| plane.0).collect()
}

#[test]
fn writes_of_a_pool_wait_for_the_planes_with_an_active_block() {
    let ends = |active: &str| {
        let mut device = pools("\"device\"", &["geometry.planes=1", active]);
        for unit in 0..4 {
            let request = units(&device, Write, unit, 1);
            submit(&mut device, Time::ZERO, request);
        }
        drain(&mut device).iter().map(|done| done.finish.0).collect::<Vec<_>>()
    };
    let written = DATA + PROGRAM;
    assert_eq!(ends("name=all"), [1; 4].map(|round| round * written));
    assert_eq!(ends("allocation.dynamic.active_blocks=4"), [1; 4].map(|round| round * written));
    assert_eq!(ends("allocation.dynamic.active_blocks=2"), [1, 1, 2, 2].map(|round| round * written));
    assert_eq!(ends("allocation.dynamic.active_blocks=1"), [1, 2, 3, 4].map(|round| round * written));
}

#[test]
fn the_next_active_block_is_opened_in_the_plane_with_the_most_free_blocks() {
    let mut device = pools("\"device\"", &["geometry.planes=1", "allocation.dynamic.active_blocks=1"]);
    let write = |device: &mut Device, first: u64| {
        let now = device.now();
        let request = units(device, Write, first, 64);
        submit(device, now, request);
        let half = now + Time(32 * (DATA + PROGRAM));
        device.advance(half);
        let open = active(device);
        drain(device);
        open
    };
    // Each block has 64 pages. Planes with equally many free blocks follow the order of the allocation.
    let opened: Vec<_> = (0..6).map(|block| write(&mut device, block * 64)).collect();
    assert_eq!(opened, [[0], [1], [2], [3], [0], [1]]);
    assert!(active(&device).is_empty());
}

#[test]
fn a_pool_has_at_most_its_number_of_active_blocks() {
    for (count, scope) in [(1, "\"channel\""), (2, "{ channels = 2 }"), (3, "\"device\"")] {
        for collected in ["gc.scope=plane", "gc.destination=pool"] {
            let limit = format!("allocation.dynamic.active_blocks={count}");
            let small = ["geometry.blocks=24", "geometry.pages=16", "gc.soft_threshold=3", &limit, collected];
            let mut device = pools(scope, &small);
            let (units, per_pool) = (device.config().logical_units(), 8 / device.ftl().allocation.pools());
            let mut rng = Rng::new(3, "active");
            let mut most = 0;
            fill(&mut device, units as u32);
            for _ in 0..4 * units {
                let now = device.now();
                let request = common::units(&device, Write, rng.below(units), 1);
                submit(&mut device, now, request);
                while device.outstanding() >= 32 {
                    let next = device.next_event().expect("requests are outstanding");
                    device.advance(next);
                    let mut open = vec![0; device.ftl().allocation.pools() as usize];
                    active(&device).iter().for_each(|plane| open[(plane / per_pool) as usize] += 1);
                    most = most.max(open.into_iter().max().unwrap());
                    assert!(most <= count, "{most} blocks are active in a pool of {scope}");
                }
            }
            drain(&mut device);
            device.check_invariants().unwrap();
            assert_eq!(most, count, "{scope}, {collected}");
        }
    }
}

#[test]
fn invalid_numbers_of_active_blocks_are_refused_with_a_value_that_works() {
    let refused = |overrides: &[&str]| {
        let base = ["geometry.planes=2", "allocation={ dynamic = { scope = \"chip\", active_blocks = 1 } }"];
        common::refusal(&[&base, overrides].concat())
    };
    let text = refused(&["allocation.dynamic.active_blocks=3"]);
    assert!(text.contains("a pool of 2 planes has 1 to 2; use 2"), "{text}");
    assert!(refused(&["allocation.dynamic.active_blocks=0"]).contains("must be at least 1"));
    assert!(refused(&["temperature=multi-hash"]).contains("set temperature to \"none\""));
    assert!(refused(&["faults.program_rate=0.01"]).contains("leave out the table faults"));
    assert!(refused(&["gc.frontiers=single"]).contains("set gc.frontiers to \"separate\""));
    assert!(refused(&["gc.pace=proportional"]).contains("set gc.pace to \"queued\""));
}
