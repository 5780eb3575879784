//! Hot and cold data: the benefit of separating them, and the guarantees for the classes of a device.

use std::sync::Arc;

use crate::common::{self, Load, assert_close, build, device_config, fill, refusal, units};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::internals::ClassCounts;
use floatgate_core::mapping::PADDING;
use floatgate_core::policies::{Built, Cause, Externals, Provider, TemperaturePolicy, Wanted, Written};
use floatgate_core::results::Counters;
use floatgate_core::sim::id::{Lpn, Ppn};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, NoWatcher, Options, run};
use floatgate_validation::closed_form::{fifo, fifo_of_classes, greedy};

/// Classifier that knows the hot units, which are the first ones, or assigns four classes by the unit number.
#[derive(Clone)]
struct Oracle {
    hot: u32,
}

/// Returns the class of a unit. Four neighbors each have the same class, so that each plane and each longer request has
/// all classes.
fn class_of_four(lpn: u32) -> u32 {
    lpn / 4 % 4
}

impl TemperaturePolicy for Oracle {
    fn classify(&mut self, written: Written) -> u8 {
        if self.hot == 0 { class_of_four(written.lpn) as u8 } else { u8::from(written.lpn < self.hot) }
    }
}

impl Provider for Oracle {
    fn build(&self, _: Wanted) -> Result<Built, Cause> {
        Ok(Built::new::<dyn TemperaturePolicy>(self.clone()))
    }
}

const ORACLE: &str = "temperature={ external = { name = \"oracle\" } }";
const FOUR: &str = "temperature={ external = { name = \"oracle\", classes = 4 } }";

/// Returns the options of a device with a classifier that knows the hot units.
fn with_oracle(hot: u32) -> Options {
    Options { externals: Externals::by(Arc::new(Oracle { hot })), ..Options::default() }
}

/// Large enough that the victims of both classes have almost equally many valid pages.
const PAGES: u32 = 256;
const BLOCKS: u32 = 512;
const FREE_BLOCKS: u32 = 4;
/// Shares of units and writes: a fifth of the units receives four fifths of the writes.
const SHARES: [(f64, f64); 2] = [(0.2, 0.8), (0.8, 0.2)];

/// Returns a device of one plane. Garbage collection keeps `FREE_BLOCKS` blocks free, and data take all but a share
/// `sf` of the remaining space. When a victim is chosen, one open block of the host is full and the others are half
/// full on average.
fn pool(sf: f64, open: u32, set: &[&str]) -> DeviceConfig {
    let space = f64::from((BLOCKS - FREE_BLOCKS) * PAGES) - f64::from((open - 1) * PAGES) / 2.0;
    let units = (space * (1.0 - sf)).round() as u64;
    let own = [
        "geometry.channels=1".to_owned(),
        "geometry.chips=1".to_owned(),
        format!("geometry.blocks={BLOCKS}"),
        format!("geometry.pages={PAGES}"),
        format!("gc.soft_threshold={FREE_BLOCKS}"),
        format!("gc.hard_threshold={FREE_BLOCKS}"),
        format!("capacity.logical={}B", units * 4096),
    ];
    device_config(&own.into_iter().chain(set.iter().map(|text| (*text).to_owned())).collect::<Vec<_>>())
}

fn hot_units(config: &DeviceConfig) -> u32 {
    (config.logical_units() as f64 * SHARES[0].0).round() as u32
}

/// Returns the counts of the steady state when a fifth of the units receives four fifths of the writes.
fn steady(config: DeviceConfig) -> (Counters, Vec<ClassCounts>) {
    let units = config.logical_units();
    let hot = u64::from(hot_units(&config));
    let mut device = build(config, with_oracle(hot as u32));
    let ftl = device.ftl_mut();
    let mut rng = Rng::new(1, "temperature");
    (0..units).for_each(|unit| ftl.write_whole(Lpn(unit as u32)));
    let mut write = |ftl: &mut floatgate_core::mapping::Ftl| {
        let of_hot = rng.below(5) < 4;
        let unit = if of_hot { rng.below(hot) } else { hot + rng.below(units - hot) };
        ftl.write_whole(Lpn(unit as u32));
    };
    let counts = |ftl: &floatgate_core::mapping::Ftl| -> Vec<ClassCounts> {
        ftl.classes.iter().flat_map(|classes| classes.counts()).copied().collect()
    };
    (0..24 * units).for_each(|_| write(ftl));
    let (before, classes) = (ftl.counters, counts(ftl));
    (0..12 * units).for_each(|_| write(ftl));
    let classes = counts(ftl).iter().zip(&classes).map(|(last, first)| last.since(first)).collect();
    let counted = ftl.counters.since(&before);
    device.check_invariants().unwrap();
    (counted, classes)
}

fn amplification(counted: &Counters) -> f64 {
    counted.units_programmed as f64 / counted.host_units as f64
}

/// Greedy chooses the block with the fewest valid units, whatever its class. If garbage collection also separates the
/// classes, the victims of both have equally many valid units. Each class then has a share of the spare space in
/// proportion to its data, and costs as much as uniform writes with the whole spare space.
///
/// This holds for blocks of many pages. Among blocks with equally many valid pages, the one that has not changed for
/// the longest time is chosen. Hot blocks do not wait, so their victims have up to one valid page fewer, of about 50
/// that a victim reclaims.
#[test]
fn with_greedy_separated_classes_cost_as_much_as_uniform_writes() {
    for sf in [0.10, 0.20] {
        let config = pool(sf, 2, &[ORACLE, "gc.victim=greedy", "gc.frontiers=single"]);
        let (counted, classes) = steady(config);
        let uniform = greedy(PAGES, sf);
        assert_close(&format!("oracle, Sf = {sf}"), amplification(&counted), uniform, 0.015);
        for (name, counts) in ["cold", "hot"].iter().zip(&classes) {
            let own = (counts.units_written + counts.units_moved) as f64 / counts.units_written as f64;
            assert_close(&format!("{name}, Sf = {sf}"), own, uniform, 0.025);
            assert_eq!(counts.units_elsewhere, 0);
        }
        let (mixed, none) = steady(pool(sf, 1, &["gc.victim=greedy", "gc.frontiers=single"]));
        assert!(none.is_empty());
        assert!(amplification(&mixed) > 1.03 * uniform, "Sf = {sf}: {} and {uniform}", amplification(&mixed));
        // Much of the benefit remains if all moved units, hot and cold, share a separate frontier.
        let config = pool(sf, 2, &[ORACLE, "gc.victim=greedy"]);
        let (half, _) = steady(config);
        let (half, mixed) = (amplification(&half), amplification(&mixed));
        println!("Sf {sf}: uniform {uniform:.3}, {:.3}, {half:.3}, mixed {mixed:.3}", amplification(&counted));
        assert!(half < mixed, "Sf = {sf}: {half} and {mixed}");
    }
}

/// FIFO considers only the age of blocks, and reclaims blocks of all classes at the same age. The probability that a
/// unit is still valid does not depend on its neighbors.
#[test]
fn with_fifo_separated_classes_have_no_benefit() {
    let sf = 0.20;
    assert_close("one class", fifo_of_classes(&[(1.0, 1.0)], sf), fifo(sf), 1e-9);
    let expected = fifo_of_classes(&SHARES, sf);
    assert!(expected > 1.1 * fifo(sf));
    let config = pool(sf, 2, &[ORACLE, "gc.victim=fifo", "gc.frontiers=single"]);
    let (apart, _) = steady(config);
    assert_close("apart", amplification(&apart), expected, 0.01);
    let (mixed, _) = steady(pool(sf, 1, &["gc.victim=fifo", "gc.frontiers=single"]));
    assert_close("mixed", amplification(&mixed), expected, 0.01);
}

/// Checks the share of hot writes and the benefit with the built-in classifiers.
#[test]
fn built_in_classifiers_find_the_hot_units() {
    let sf = 0.10;
    let (mixed, _) = steady(pool(sf, 1, &["gc.victim=greedy", "gc.frontiers=single"]));
    for name in ["multi-hash", "{ two-level-lru = { hot = 0.2 } }"] {
        let temperature = format!("temperature={name}");
        let (counted, classes) = steady(pool(sf, 2, &[&temperature, "gc.victim=greedy", "gc.frontiers=single"]));
        let hot = classes[1].units_written as f64 / counted.host_units as f64;
        println!("{name}: {:.3} of {:.3}, hot {hot:.3}", amplification(&counted), amplification(&mixed));
        assert!((0.6..0.9).contains(&hot), "{name}: {hot} of the writes are hot, of 0.8");
        assert!(amplification(&counted) < 0.99 * amplification(&mixed), "{name}: {}", amplification(&counted));
    }
}

/// Writes at random addresses with random lengths and 16 outstanding requests.
fn random_writes(device: &mut Device, requests: u64, longest: u64) {
    let units = device.config().logical_units();
    let sectors = u64::from(device.config().sectors_per_unit());
    let mut rng = Rng::new(5, "temperature");
    let load = Load::closed(16, requests, move || {
        let first = rng.below(units - longest);
        let length = (1 + rng.below(longest)) * sectors;
        Request::new(Time::ZERO, Operation::Write, first * sectors, length as u32)
    });
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(load)];
    run(device, &mut sources, &mut NoWatcher).expect("all requests complete");
    device.check_invariants().unwrap();
}

/// All units of a program have the same class. The device has programs of several units and collects no garbage yet.
#[test]
fn units_of_different_classes_share_no_program() {
    let wordlines =
        ["geometry.page_size=8KiB", "geometry.mapping_unit=4KiB", "geometry.pages_per_program=3", "geometry.pages=66"];
    for set in [
        &["allocation=static"][..],
        &["allocation=dynamic"],
        &["controller.fill_timeout=2ms"],
        &["allocation=dynamic", "controller.fill_timeout=2ms"],
        &["geometry.dies=2", "nand.concurrency=command", "nand.advanced.interleave=true", "allocation=dynamic"],
        &["geometry.planes=2", "nand.advanced.multi_plane_program=blind"],
        &["nand.advanced.cache_program=true"],
        &["buffer.capacity=256KiB"],
    ] {
        let config = device_config(&[&wordlines[..], &[FOUR], set].concat());
        let group = config.units_per_program();
        let mut device = build(config, with_oracle(0));
        random_writes(&mut device, 500, 9);
        let ftl = device.ftl();
        assert_eq!(ftl.counters.victims, 0);
        let classes = ftl.classes.as_ref().expect("four classes");
        assert!(classes.counts().iter().all(|counts| counts.units_written > 400 && counts.units_elsewhere == 0));
        let places = ftl.blocks.all().len() as u32 * ftl.blocks.data_units();
        let mut full = 0;
        for program in (0..places).step_by(group as usize) {
            let owners = (program..program + group).filter(|&ppn| ftl.blocks.is_valid(Ppn(ppn)));
            let mut of_program: Vec<u32> = owners.map(|ppn| class_of_four(ftl.map.owner(Ppn(ppn)))).collect();
            full += u32::from(of_program.len() > 1);
            of_program.dedup();
            assert!(of_program.len() < 2, "{set:?}: a program of the classes {of_program:?}");
        }
        assert!(full > 20, "{set:?}: only {full} programs of several units");
        assert_ne!(PADDING, 0);
    }
}

/// A class that finds no free block uses open blocks of others. The device must complete the heaviest load.
#[test]
fn a_full_device_with_four_classes_completes_all_writes() {
    for frontiers in ["separate", "single"] {
        for allocation in ["static", "dynamic"] {
            let set = [
                format!("gc.frontiers={frontiers}"),
                format!("allocation={allocation}"),
                FOUR.to_owned(),
                "geometry.blocks=20".to_owned(),
                "geometry.pages=16".to_owned(),
                "gc.soft_threshold=1".to_owned(),
                "gc.hard_threshold=0".to_owned(),
                "capacity.spare=0.5".to_owned(),
            ];
            let most = device_config(&set).max_logical_units();
            let capacity = format!("capacity.logical={}B", most * 4096);
            let config = device_config(&[&set[..], &[capacity]].concat());
            let mut device = build(config, with_oracle(0));
            fill(&mut device, most as u32);
            random_writes(&mut device, 6_000, 4);
            let classes = device.ftl().classes.as_ref().expect("four classes");
            let elsewhere: u64 = classes.counts().iter().map(|counts| counts.units_elsewhere).sum();
            assert!(elsewhere > 0, "{frontiers}, {allocation}: no class used a block of another");
        }
    }
}

/// Each class reduces the capacity of a full device by a block in every plane.
#[test]
fn each_class_costs_an_open_block() {
    // 64 blocks of 64 units in each of 4 planes. 3 are free, one is open for the host and one for garbage collection:
    // 59 * 64 - 1 units. Each further class takes 64 of them.
    let most = |set: &[&str]| device_config(set).max_logical_units() / 4;
    assert_eq!(most(&[]), 59 * 64 - 1);
    assert_eq!(most(&["temperature=multi-hash"]), 58 * 64 - 1);
    assert_eq!(most(&["temperature=multi-hash", "gc.frontiers=single"]), 59 * 64 - 1);
    assert_eq!(most(&[FOUR]), 56 * 64 - 1);
    let capacity = format!("capacity.logical={}B", (59 * 64 - 1) * 4 * 4096);
    device_config(&[&capacity]);
    let error = refusal(&[&capacity, "temperature=two-level-lru"]);
    assert!(error.contains("3 of 64 blocks cannot be kept free") && error.contains("at most 2"), "{error}");
    for (set, says) in [
        (&["temperature=multi-hash", "mapping.scheme=block", "capacity.spare=0.6"][..], "with block mapping"),
        (&["temperature=multi-hash", "gc.frontiers=single", "geometry.pages_per_program=2"], "share a program"),
        (&["temperature=multi-hash", "gc.frontiers=single", "nand.advanced.copy_back=wise"], "copy-back"),
        (&["temperature={ external = { name = \"o\", classes = 5 } }"], "must be from 2 to 4"),
        (&["temperature={ external = { name = \"o\", classes = 1 } }"], "must be from 2 to 4"),
        (&["temperature.multi-hash.hot=16"], "must be from 1 to 15"),
        (&["temperature.multi-hash.counters=0.0"], "above 0"),
        (&["temperature.two-level-lru.hot=1.5"], "at most 1"),
    ] {
        let error = refusal(set);
        assert!(error.contains(says) && error.contains("temperature"), "{set:?}: {error}");
    }
}

/// Results contain the units that were written and moved in each class.
#[test]
fn results_have_counts_by_class() {
    let mut device = build(device_config(&[ORACLE]), with_oracle(100));
    let all = device.config().logical_units() as u32;
    fill(&mut device, all);
    let request = units(&device, Operation::Write, 98, 4);
    let load = Load::closed(1, 3, move || request);
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(load)];
    let outcome = run(&mut device, &mut sources, &mut NoWatcher).expect("all requests complete");
    let written: Vec<u64> = outcome.classes.iter().map(|counts| counts.units_written).collect();
    assert_eq!(written, [6, 6], "units 100 and 101, three times, and 98 and 99");
}

/// Returns the write amplification of two jobs in steady state: one overwrites a tenth of the space most of the time.
fn of_two_jobs(more: &[&str]) -> f64 {
    let mut device = common::device(&[&["gc.victim=greedy", "capacity.spare=0.25"][..], more].concat());
    let units = device.config().logical_units() as u32;
    common::fill(&mut device, units);
    let mut rng = Rng::new(3, "hints");
    let mut before = device.ftl().counters;
    let sectors = device.config().sectors_per_unit();
    for write in 0..16 * units {
        if write == 8 * units {
            before = device.ftl().counters;
        }
        let (below, stream, placement) = if rng.below(10) < 8 { (units / 10, 0, 2) } else { (units, 1, 5) };
        let written = Written { sectors, stream, placement, ..Written::default() };
        let lpn = Lpn(rng.below(u64::from(below)) as u32);
        device.ftl_mut().write_for(lpn, 0, sectors, 0, written);
    }
    let counters = device.ftl().counters.since(&before);
    counters.units_programmed as f64 / counters.host_units as f64
}

#[test]
fn hints_of_the_host_reduce_write_amplification() {
    let without = of_two_jobs(&[]);
    for hints in ["{ by = \"placement\" }", "{ by = \"stream\", classes = [1, 0] }"] {
        let with = of_two_jobs(&[&format!("temperature={{ hints = {hints} }}")]);
        assert!(with < without, "{hints}: {with:.3}, without hints {without:.3}");
    }
}
