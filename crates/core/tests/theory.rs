//! Write amplification under uniform random writes against closed forms.
//!
//! The formulas are typed here from their papers, share no code with the simulator, and are first checked against a
//! table that was computed from them independently. Spare is that of the *effective* space: only what can hold data at
//! the moment a victim is chosen counts, so the free blocks in stock and the unwritten part of open blocks are taken
//! off.

mod common;

use common::{Load, assert_close};
use floatgate_core::device::Device;
use floatgate_core::metrics::counters::Counters;
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::workload::request::{Operation, Request};

/// Finds the root of `f` between `low` and `high`, where it changes its sign.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let rising = f(high) > 0.0;
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if (f(middle) > 0.0) == rising { high = middle } else { low = middle }
    }
    (low + high) / 2.0
}

/// Greedy, mean field (Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based
/// solid state drives", SIGMETRICS 2013): blocks of `b` pages, spare share `sf`. A whole k and x in [0, 1] solve
/// H_b - H_k + x / k = (b - k + x) / (b rho), and b - k + x pages of a victim are stale.
fn greedy(b: u32, sf: f64) -> f64 {
    let (pages, rho) = (f64::from(b), 1.0 - sf);
    let harmonic = |n: u32| (1..=n).map(|i| 1.0 / f64::from(i)).sum::<f64>();
    (1..b)
        .find_map(|k| {
            let kept = f64::from(k);
            let x = ((pages - kept) / (pages * rho) - (harmonic(b) - harmonic(k))) / (1.0 / kept - 1.0 / (pages * rho));
            (0.0..=1.0).contains(&x).then(|| pages / (pages - kept + x))
        })
        .expect("there is a k below b")
}

/// d-choices, mean field (Van Houdt 2013). With s_i the share of blocks with at most i valid pages and m_i that of
/// blocks with exactly i, phi i m_i = 1 - (1 - s_(i-1))^d, where the shares add up to 1 and the mean of i is b rho.
fn d_choices(b: u32, sf: f64, d: u32) -> f64 {
    let (pages, rho) = (f64::from(b), 1.0 - sf);
    // The sum of the shares, and the mean of i, for a share of blocks without a valid page.
    let shares = |phi: f64, none: f64| {
        let (mut sum, mut mean) = (none, 0.0);
        for i in 1..=b {
            let chosen = if sum < 1.0 { -libm::expm1(f64::from(d) * libm::log1p(-sum)) } else { 1.0 };
            let share = chosen / (phi * f64::from(i));
            sum += share;
            mean += f64::from(i) * share;
        }
        (sum, mean)
    };
    let mean_of = |phi: f64| {
        let none = libm::exp(bisect(-700.0, 0.0, |log| shares(phi, libm::exp(log)).0 - 1.0));
        shares(phi, none).1
    };
    // The stale pages of a victim are phi b rho, between a few and all.
    let phi = bisect(0.01 / rho, 1.0 / rho, |phi| pages * rho - mean_of(phi));
    1.0 / (phi * rho)
}

/// FIFO: alpha / (alpha + W(-alpha e^-alpha)), with alpha = T / U and W the principal branch of Lambert's function
/// (Desnoyers, "Analytic models of SSD write performance", ACM TOS 2014). W is found by Newton's method.
fn fifo(sf: f64) -> f64 {
    let alpha = 1.0 / (1.0 - sf);
    let z = -alpha * libm::exp(-alpha);
    let mut w = -0.1;
    for _ in 0..100 {
        let e = libm::exp(w);
        w -= (w * e - z) / (e * (w + 1.0));
    }
    alpha / (alpha + w)
}

/// A random victim has the mean share of stale pages.
fn random(sf: f64) -> f64 {
    1.0 / sf
}

/// Computed independently: pages of a block, spare; greedy, d = 10, d = 2, FIFO, random.
#[rustfmt::skip]
const TABLE: [(u32, f64, [f64; 5]); 14] = [
    (64,  0.05, [8.8501, 9.2842, 13.2662, 10.1724, 20.0000]),
    (64,  0.07, [6.6155, 6.8939,  9.6354,  7.3177, 14.2857]),
    (64,  0.10, [4.8213, 5.0002,  6.8516,  5.1787, 10.0000]),
    (64,  0.15, [3.3536, 3.4636,  4.6475,  3.5187,  6.6667]),
    (64,  0.20, [2.5993, 2.6754,  3.5330,  2.6927,  5.0000]),
    (64,  0.28, [1.9425, 1.9932,  2.5732,  1.9916,  3.5714]),
    (64,  0.40, [1.4550, 1.4867,  1.8555,  1.4798,  2.5000]),
    (128, 0.05, [9.4605, 9.8161, 13.5874, 10.1724, 20.0000]),
    (128, 0.07, [6.9450, 7.1821,  9.8100,  7.3177, 14.2857]),
    (128, 0.10, [4.9922, 5.1479,  6.9409,  5.1787, 10.0000]),
    (128, 0.15, [3.4344, 3.5314,  4.6881,  3.5187,  6.6667]),
    (128, 0.20, [2.6449, 2.7141,  3.5559,  2.6927,  5.0000]),
    (128, 0.28, [1.9667, 2.0131,  2.5847,  1.9916,  3.5714]),
    (128, 0.40, [1.4674, 1.4964,  1.8609,  1.4798,  2.5000]),
];

#[test]
fn the_formulas_are_typed_right() {
    for (b, sf, expected) in TABLE {
        let computed = [greedy(b, sf), d_choices(b, sf, 10), d_choices(b, sf, 2), fifo(sf), random(sf)];
        for (computed, expected) in computed.into_iter().zip(expected) {
            assert!((computed - expected).abs() < 1e-4, "b = {b}, Sf = {sf}: {computed}, the table has {expected}");
        }
    }
}

const PAGES: u32 = 64;
/// Free blocks in stock.
const STOCK: u32 = 4;

/// One plane whose effective space has the spare share `sf`: `unwritten` pages of open blocks do not count.
fn one_pool(blocks: u32, sf: f64, unwritten: f64, victim: &str) -> Device {
    let space = f64::from((blocks - STOCK) * PAGES) - unwritten;
    let units = (space * (1.0 - sf)).round() as u64;
    common::device(&[
        "geometry.channels=1".to_owned(),
        "geometry.chips=1".to_owned(),
        format!("geometry.blocks={blocks}"),
        format!("geometry.pages={PAGES}"),
        format!("gc.soft_threshold={STOCK}"),
        format!("gc.hard_threshold={STOCK}"),
        format!("gc.victim={victim}"),
        format!("capacity.logical={}B", units * 4096),
    ])
}

/// Writes all units in random order, functional mode.
fn fill_at_random(device: &mut Device, rng: &mut Rng) {
    let mut order: Vec<u32> = (0..device.config().logical_units() as u32).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order.iter().for_each(|&unit| device.ftl_mut().write_whole(Lpn(unit)));
}

/// Drive writes until the state is steady, and drive writes that are averaged over.
const ROUNDS: u64 = 8;

/// What is counted in the steady state, functional mode.
fn steady(device: &mut Device, rng: &mut Rng) -> Counters {
    let units = device.config().logical_units();
    let ftl = device.ftl_mut();
    (0..ROUNDS * units).for_each(|_| ftl.write_whole(Lpn(rng.below(units) as u32)));
    let before = ftl.counters;
    (0..ROUNDS * units).for_each(|_| ftl.write_whole(Lpn(rng.below(units) as u32)));
    ftl.counters.since(&before)
}

/// Checks that victims were chosen with the stock and the open blocks that the effective space was computed with, the
/// stock up to `erasing` blocks whose erase was under way, and that the two ways of counting agree; returns the write
/// amplification.
fn amplification(name: &str, counted: &Counters, unwritten: f64, erasing: f64) -> f64 {
    let per_victim = |sum: u64| sum as f64 / counted.victims as f64;
    let stock = per_victim(counted.stock_at_choice);
    let configured = f64::from(STOCK) - erasing..f64::from(STOCK) + 0.5;
    assert!(configured.contains(&stock), "{name}: {stock} free blocks in stock, configured {STOCK}");
    let open = per_victim(counted.open_units_at_choice);
    assert!((open - unwritten).abs() < f64::from(PAGES) / 2.0, "{name}: {open} unwritten pages in open blocks");
    let measured = counted.units_programmed as f64 / counted.host_units as f64;
    let stale = f64::from(PAGES) - per_victim(counted.victim_valid_units);
    assert_close(&format!("{name}: by victims"), f64::from(PAGES) / stale, measured, 0.002);
    measured
}

/// Functional mode chooses a victim when the host's block is full; that of cleaning is half full in the mean.
const UNWRITTEN: f64 = PAGES as f64 / 2.0;

fn check(victim: &str, tolerance: f64, formula: impl Fn(f64) -> f64) {
    for sf in [0.07, 0.10, 0.20, 0.28] {
        let name = format!("{victim}, Sf = {sf}");
        let mut device = one_pool(2048, sf, UNWRITTEN, victim);
        let mut rng = Rng::new(1, "theory");
        fill_at_random(&mut device, &mut rng);
        let counted = steady(&mut device, &mut rng);
        let measured = amplification(&name, &counted, UNWRITTEN, 0.5);
        assert_close(&name, measured, formula(sf), tolerance);
    }
}

#[test]
fn greedy_agrees_with_the_mean_field() {
    check("greedy", 0.005, |sf| greedy(PAGES, sf));
}

#[test]
fn ten_choices_agree_with_the_mean_field() {
    check("{ d-choices = { d = 10 } }", 0.005, |sf| d_choices(PAGES, sf, 10));
}

#[test]
fn two_choices_agree_with_the_mean_field() {
    check("{ d-choices = { d = 2 } }", 0.005, |sf| d_choices(PAGES, sf, 2));
}

#[test]
fn fifo_agrees_with_the_closed_form() {
    check("fifo", 0.005, fifo);
}

#[test]
fn random_agrees_with_the_closed_form() {
    check("random", 0.005, random);
}

#[test]
fn greedy_in_time_agrees_with_the_mean_field() {
    // Cleaning is urgent as soon as it is needed, so the host does not take more of the stock meanwhile. A victim is
    // chosen when the host has just opened a block; that of cleaning is half full in the mean.
    let unwritten = f64::from(PAGES) * 1.5;
    let sf = 0.20;
    let mut device = one_pool(1024, sf, unwritten, "greedy");
    let mut rng = Rng::new(1, "theory");
    fill_at_random(&mut device, &mut rng);
    device.ftl_mut().seal();
    let units = device.config().logical_units();
    let mut rounds = |count: u64, device: &mut Device| {
        let mut rng = Rng::new(rng.next_u64(), "theory");
        let next = move || Request::new(Time::ZERO, Operation::Write, rng.below(units) * 8, 8);
        Load::closed(4, count * units, next).run(device).counters
    };
    rounds(ROUNDS, &mut device);
    let counted = rounds(ROUNDS, &mut device);
    let measured = amplification("in time", &counted, unwritten, 1.0);
    assert_close("greedy in time", measured, greedy(PAGES, sf), 0.01);
}
