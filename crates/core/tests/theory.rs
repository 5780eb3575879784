//! Write amplification under uniform random writes, compared with closed forms.
//!
//! The formulas are those of `floatgate_validation`, which shares no code with the simulator. They are checked there
//! against a table that was computed independently. The spare share is that of the *effective* space: only space that
//! can hold data when a victim is chosen counts. Free blocks and the unwritten part of open blocks are subtracted.

use crate::common::{self, Load, assert_close};
use floatgate_core::results::Counters;
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Device;
use floatgate_validation::closed_form::{d_choices, fifo, greedy, random};

const PAGES: u32 = 64;
/// Number of free blocks.
const FREE_BLOCKS: u32 = 4;

/// Returns a device of one plane with the spare share `sf` of its effective space. `unwritten` pages of open blocks are
/// excluded.
fn one_pool(blocks: u32, sf: f64, unwritten: f64, victim: &str) -> Device {
    let space = f64::from((blocks - FREE_BLOCKS) * PAGES) - unwritten;
    let units = (space * (1.0 - sf)).round() as u64;
    common::device(&[
        "geometry.channels=1".to_owned(),
        "geometry.chips=1".to_owned(),
        format!("geometry.blocks={blocks}"),
        format!("geometry.pages={PAGES}"),
        format!("gc.soft_threshold={FREE_BLOCKS}"),
        format!("gc.hard_threshold={FREE_BLOCKS}"),
        format!("gc.victim={victim}"),
        format!("capacity.logical={}B", units * 4096),
    ])
}

/// Writes all units in random order in functional mode.
fn fill_at_random(device: &mut Device, rng: &mut Rng) {
    let mut order: Vec<u32> = (0..device.config().logical_units() as u32).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order.iter().for_each(|&unit| device.ftl_mut().write_whole(Lpn(unit)));
}

/// Drive writes until the state is steady, and again drive writes that are measured.
const ROUNDS: u64 = 8;

/// Returns the counts of the steady state in functional mode. The first `units` units are written.
fn steady(device: &mut Device, units: u64, rng: &mut Rng) -> Counters {
    let ftl = device.ftl_mut();
    (0..ROUNDS * units).for_each(|_| ftl.write_whole(Lpn(rng.below(units) as u32)));
    let before = ftl.counters;
    (0..ROUNDS * units).for_each(|_| ftl.write_whole(Lpn(rng.below(units) as u32)));
    ftl.counters.since(&before)
}

/// Checks that the free and open blocks at the choice of victims are those of the effective space, and that two ways of
/// counting agree. Returns the write amplification.
fn amplification(name: &str, counted: &Counters, free: u32, unwritten: f64) -> f64 {
    let per_victim = |sum: u64| sum as f64 / counted.victims as f64;
    let free_blocks = per_victim(counted.free_blocks_at_choice);
    // The mean is below the threshold if moved units have just opened a block.
    let configured = f64::from(free) - 0.5..f64::from(free) + 0.01;
    assert!(configured.contains(&free_blocks), "{name}: {free_blocks} free blocks, configured {free}");
    let open = per_victim(counted.open_units_at_choice);
    assert!((open - unwritten).abs() < f64::from(PAGES) / 2.0, "{name}: {open} unwritten pages in open blocks");
    let measured = counted.units_programmed as f64 / counted.host_units as f64;
    let invalid = f64::from(PAGES) - per_victim(counted.victim_valid_units);
    assert_close(&format!("{name}: by victims"), f64::from(PAGES) / invalid, measured, 0.002);
    measured
}

/// Functional mode chooses a victim when the block of the host is full. The one for moved units is half full on
/// average.
const UNWRITTEN: f64 = PAGES as f64 / 2.0;

fn check(victim: &str, tolerance: f64, formula: impl Fn(f64) -> f64) {
    for sf in [0.07, 0.10, 0.20, 0.28] {
        let name = format!("{victim}, Sf = {sf}");
        let mut device = one_pool(2048, sf, UNWRITTEN, victim);
        let mut rng = Rng::new(1, "theory");
        fill_at_random(&mut device, &mut rng);
        let units = device.config().logical_units();
        let counted = steady(&mut device, units, &mut rng);
        let measured = amplification(&name, &counted, FREE_BLOCKS, UNWRITTEN);
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
fn greedy_in_timed_mode_agrees_with_the_mean_field() {
    // Garbage collection is urgent as soon as it is needed, so the host opens no more blocks during it. A victim is
    // chosen when the host has just opened a block. The block for moved units is half full on average.
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
    let measured = amplification("in time", &counted, FREE_BLOCKS, unwritten);
    assert_close("greedy in time", measured, greedy(PAGES, sf), 0.01);
}

/// Returns the efficiency of a victim policy for an effective spare share.
type Efficiency = fn(f64) -> f64;

/// agrawal2008, Section 5.2: the efficiency of garbage collection, the invalid share of victims, on a full disk and on
/// one whose second half was trimmed. A spare share of 15% less 5% of free blocks is an effective one of 0.104, and of
/// 0.552 on the trimmed disk.
#[test]
fn a_half_full_disk_with_trim_collects_at_its_effective_spare() {
    const BLOCKS: u32 = 1024;
    let free = BLOCKS.div_ceil(20);
    let space = f64::from((BLOCKS - free) * PAGES) - UNWRITTEN;
    // The share of a random victim has a standard deviation of 0.3 on the trimmed disk, so that the mean of 6,000
    // victims has one of 0.7%.
    let closed_forms: [(&str, f64, Efficiency); 2] =
        [("greedy", 0.005, |sf| 1.0 / greedy(PAGES, sf)), ("random", 0.02, |sf| 1.0 / random(sf))];
    for (victim, tolerance, formula) in closed_forms {
        let mut device = common::device(&[
            "geometry.channels=1",
            "geometry.chips=1",
            &format!("geometry.blocks={BLOCKS}"),
            &format!("geometry.pages={PAGES}"),
            "capacity.spare=0.15",
            "gc.soft_threshold=5%",
            "gc.hard_threshold=5%",
            &format!("gc.victim={victim}"),
        ]);
        let mut rng = Rng::new(1, "theory");
        fill_at_random(&mut device, &mut rng);
        let (all, half) = (device.config().logical_units(), device.config().logical_units() / 2);
        let efficiency = |device: &mut Device, disk: &str, written: u64, rng: &mut Rng| {
            let counted = steady(device, written, rng);
            1.0 / amplification(&format!("{victim}, {disk}"), &counted, free, UNWRITTEN)
        };
        let full = efficiency(&mut device, "full", all, &mut rng);
        let mut untrimmed = device.clone();
        (half as u32..all as u32).for_each(|unit| device.ftl_mut().trim(Lpn(unit)));
        let trimmed = efficiency(&mut device, "half trimmed", half, &mut rng);
        for (disk, measured, used) in [("full", full, all), ("half trimmed", trimmed, half)] {
            let closed = formula(1.0 - used as f64 / space);
            assert_close(&format!("{victim}, {disk}"), measured, closed, tolerance);
        }
        if victim == "random" {
            // Without TRIM, the second half stays valid, wherever the writes go.
            let without = efficiency(&mut untrimmed, "half written", half, &mut rng);
            assert_close("random, without TRIM", without, formula(1.0 - all as f64 / space), tolerance);
        }
    }
}
