//! Ranking of the orders of the levels of parallelism under the synthetic workloads of the papers (Hu et al. 2011,
//! Table 6; 2013, Table 7), with 100,000 requests each. docs/model/parallelism.md has the results and the differences.
//! `make test` runs Syn3 only, and `make soak` all four workloads.

use crate::common::Load;
use floatgate_core::device_file::load;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Outcome};

/// All advanced commands, in variants that waste no page.
const ADVANCED: [&str; 6] = [
    "nand.advanced.copy_back=wise",
    "nand.advanced.multi_plane_read=true",
    "nand.advanced.multi_plane_program=wise",
    "nand.advanced.multi_plane_erase=true",
    "nand.advanced.strict=true",
    "nand.advanced.interleave=true",
];

/// Returns Syn1 to Syn4: percent of writes, sectors, microseconds between requests. Addresses are uniformly distributed
/// multiples of 4 KiB.
fn syn(number: usize, units: u64) -> impl FnMut() -> Request {
    let (writes, sectors, interval) = [(100, 32, 30), (25, 32, 30), (100, 40, 200), (25, 40, 200)][number - 1];
    let mut rng = Rng::new(7, "syn");
    let mut tag = 0;
    move || {
        tag += 1;
        let lba = (rng.below(units / 2) * 8).min((units - 10) * 4);
        let operation = if rng.below(100) < writes { Operation::Write } else { Operation::Read };
        Request { tag, ..Request::new(Time::from_ns(tag * interval * 1000), operation, lba, sectors) }
    }
}

fn serve(number: usize, requests: u64, state: Precondition, overrides: &[&str]) -> Outcome {
    let overrides: Vec<String> = ADVANCED.iter().chain(overrides).map(|text| (*text).to_owned()).collect();
    let config = load("hu2011", &overrides).unwrap();
    let units = config.logical_units();
    let mut device = Device::new(config, Options::default()).unwrap();
    precondition(&mut device, state, 1, &mut |_| true).unwrap();
    Load::open(requests, syn(number, units)).run(&mut device)
}

/// Returns the cost of an order in microseconds: the total time if the offered load exceeds the bandwidth of the buses,
/// or else the mean latency.
fn cost(number: usize, outcome: &Outcome) -> f64 {
    if number <= 2 { outcome.measured.as_s() * 1e6 } else { outcome.results.all().latency.mean_us() }
}

fn of_static(number: usize) -> [f64; 6] {
    ["s1", "s2", "s3", "s4", "s5", "s6"].map(|order| {
        let order = format!("allocation.static.order={order}");
        cost(number, &serve(number, 100_000, Precondition::Fill, &["geometry.channels=8", &order]))
    })
}

/// Asserts that S1 is the worst order, and that S6 is within `share` of the best.
#[track_caller]
fn assert_static(number: usize, share: f64) {
    let costs = of_static(number);
    let (best, worst) = costs.iter().fold((f64::MAX, 0.0f64), |(best, worst), &cost| (best.min(cost), worst.max(cost)));
    assert_eq!(costs[0], worst, "chip first is worst: {costs:?}");
    assert!(costs[5] <= best * (1.0 + share), "channel, die, plane, chip is best: {costs:?}");
}

#[test]
#[ignore = "`make soak` runs it"]
fn static_orders_under_syn1() {
    // The buses are saturated. The orders differ only in how evenly they use the chips.
    assert_static(1, 0.01);
}

#[test]
#[ignore = "`make soak` runs it"]
fn static_orders_under_syn2() {
    assert_static(2, 0.01);
}

#[test]
fn static_orders_under_syn3() {
    assert_static(3, 0.0);
}

#[test]
#[ignore = "`make soak` runs it"]
fn static_orders_under_syn4() {
    assert_static(4, 0.005);
}

fn dynamic(order: &str) -> String {
    format!("allocation={{ dynamic = {{ order = \"{order}\" }} }}")
}

/// Asserts that channel first is better than chip first, by more than a factor of two if the buses have time to spare.
#[track_caller]
fn assert_channels_first(number: usize) {
    let [chip, channel] = ["chip-die-plane-channel", "channel-chip-die-plane"].map(|order| {
        let overrides = ["geometry.channels=8", &dynamic(order)];
        cost(number, &serve(number, 100_000, Precondition::Fill, &overrides))
    });
    assert!(channel < chip, "Syn{number}: {channel} and {chip}");
    assert!(number <= 2 || channel < 0.5 * chip, "Syn{number}: {channel} and {chip}");
}

#[test]
fn dynamic_orders_take_channels_before_chips() {
    assert_channels_first(3);
}

#[test]
#[ignore = "`make soak` runs it"]
fn dynamic_orders_take_channels_before_chips_under_the_other_workloads() {
    for number in [1, 2, 4] {
        assert_channels_first(number);
    }
}

#[test]
fn dynamic_orders_of_one_channel_rank_as_in_the_papers() {
    for number in 1..=4 {
        let orders =
            ["channel-chip-die-plane", "channel-die-chip-plane", "channel-die-plane-chip", "channel-plane-die-chip"];
        let [chip, die, die_plane, plane] = orders.map(|order| {
            let overrides = ["geometry.channels=1", "geometry.blocks=4096", &dynamic(order)];
            // The offered load of all four workloads exceeds the bandwidth of one channel.
            serve(number, 20_000, Precondition::Fill, &overrides).measured.as_s()
        });
        let all = format!("Syn{number}: {chip} {die} {die_plane} {plane}");
        assert!(die <= chip, "die before chip: {all}");
        assert!(die_plane <= die, "plane before chip: {all}");
        assert!((die_plane / plane - 1.0).abs() < 0.002, "die and plane differ: {all}");
    }
}

/// Returns the blocks erased under Syn3 on a device full of invalid pages, with and without interleaving.
fn erases(allocation: &str) -> [f64; 2] {
    ["true", "false"].map(|on| {
        let interleave = format!("nand.advanced.interleave={on}");
        let overrides = ["geometry.channels=8", "geometry.blocks=64", "capacity.spare=0.3", &interleave, allocation];
        serve(3, 50_000, Precondition::Invalid(0.9), &overrides).counters.blocks_erased as f64
    })
}

#[test]
fn interleaving_causes_no_more_erases() {
    for order in ["s1", "s2", "s3", "s4", "s5", "s6"] {
        let [with, without] = erases(&format!("allocation.static.order={order}"));
        // The invalid pages at the choice of a victim differ by a few, so the victims may differ, too.
        assert!(without > 7000.0 && (with / without - 1.0).abs() < 0.001, "{order}: {with} and {without}");
    }
    let [with, without] = erases(&dynamic("channel-die-plane-chip"));
    assert!((with / without - 1.0).abs() < 0.02, "dynamic: {with} and {without}");
}
