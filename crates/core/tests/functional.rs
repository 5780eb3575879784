//! Functional mode, compared with timed mode and with independent references: preconditioning leaves the same state as
//! the same requests in timed mode.

use crate::common::{Load, assert_close, build, device_config, fill};
use floatgate_core::preparation::precondition_with;
use floatgate_core::results::Counters;
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, NoWatcher, Options, run};
use floatgate_workload::synthetic;

/// Shape of a plane that receives skewed writes.
const BLOCKS: u32 = 512;
const PAGES: u32 = 32;
const SPARE: f64 = 0.15;
const SOFT: u32 = 3;

/// Drive writes until the state is steady, and again drive writes that are measured.
const ROUNDS: u64 = 10;

/// Returns a random unit: 95 % of the writes go to the first 5 % of the space.
fn skewed(rng: &mut Rng, units: u64) -> u64 {
    let hot = units / 20;
    if rng.below(100) < 95 { rng.below(hot) } else { hot + rng.below(units - hot) }
}

/// Independent model of the write amplification of a plane with one frontier for host writes and moved units.
struct Reference {
    /// Block of each unit, `None` before its first write.
    block_of: Vec<Option<usize>>,
    units_in: Vec<Vec<u32>>,
    valid: Vec<u32>,
    full: Vec<bool>,
    /// Number of programs before the valid units of a block last changed. Indexed by block.
    changed: Vec<u64>,
    free: std::collections::VecDeque<usize>,
    open: usize,
    programs: u64,
}

impl Reference {
    fn new(units: u32) -> Reference {
        let blocks = BLOCKS as usize;
        Reference {
            block_of: vec![None; units as usize],
            units_in: vec![Vec::new(); blocks],
            valid: vec![0; blocks],
            full: vec![false; blocks],
            changed: vec![0; blocks],
            free: (1..blocks).collect(),
            open: 0,
            programs: 0,
        }
    }

    /// Programs a unit in the open block. Returns `true` if that opened a new block.
    fn program(&mut self, unit: u32) -> bool {
        let opens = self.units_in[self.open].len() == PAGES as usize;
        if opens {
            self.open = self.free.pop_front().expect("a free block");
        }
        if let Some(old) = self.block_of[unit as usize].replace(self.open) {
            self.valid[old] -= 1;
            self.changed[old] = self.programs;
        }
        self.valid[self.open] += 1;
        self.changed[self.open] = self.programs;
        self.units_in[self.open].push(unit);
        self.full[self.open] = self.units_in[self.open].len() == PAGES as usize;
        self.programs += 1;
        opens
    }

    /// Writes a unit. If that opened a block, collects blocks until enough are free: those with the fewest valid units,
    /// and among these the one whose valid units have not changed for the longest time.
    fn write(&mut self, unit: u32) {
        if !self.program(unit) {
            return;
        }
        while self.free.len() <= SOFT as usize {
            let closed = (0..BLOCKS as usize).filter(|&block| self.full[block]);
            let victim = closed.min_by_key(|&block| (self.valid[block], self.changed[block])).expect("a full block");
            self.full[victim] = false;
            for unit in std::mem::take(&mut self.units_in[victim]) {
                // A unit that was overwritten is in another block, or a second time in this one.
                if self.block_of[unit as usize] == Some(victim) {
                    self.program(unit);
                }
            }
            self.free.push_back(victim);
        }
    }

    fn amplification(mut self, rng: &mut Rng) -> f64 {
        let units = self.block_of.len() as u64;
        (0..units as u32).for_each(|unit| self.write(unit));
        (0..ROUNDS * units).for_each(|_| self.write(skewed(rng, units) as u32));
        let before = self.programs;
        (0..ROUNDS * units).for_each(|_| self.write(skewed(rng, units) as u32));
        (self.programs - before) as f64 / (ROUNDS * units) as f64
    }
}

fn one_plane(overrides: &[&str]) -> Device {
    let plane = [
        "geometry.channels=1".to_owned(),
        "geometry.chips=1".to_owned(),
        format!("geometry.blocks={BLOCKS}"),
        format!("geometry.pages={PAGES}"),
        format!("capacity.spare={SPARE}"),
        format!("gc.soft_threshold={SOFT}"),
        format!("gc.hard_threshold={SOFT}"),
    ];
    let given = overrides.iter().map(|&one| one.to_owned());
    build(device_config(&plane.into_iter().chain(given).collect::<Vec<_>>()), Options::default())
}

fn amplification(counted: &Counters) -> f64 {
    (counted.units_programmed + counted.units_padded) as f64 / counted.host_units as f64
}

/// Returns the write amplification of a full device in functional mode.
fn functionally(device: &mut Device, rng: &mut Rng) -> f64 {
    let units = device.config().logical_units();
    let ftl = device.ftl_mut();
    (0..units as u32).for_each(|unit| ftl.write_whole(Lpn(unit)));
    (0..ROUNDS * units).for_each(|_| ftl.write_whole(Lpn(skewed(rng, units) as u32)));
    let before = ftl.counters;
    (0..ROUNDS * units).for_each(|_| ftl.write_whole(Lpn(skewed(rng, units) as u32)));
    amplification(&ftl.counters.since(&before))
}

/// Returns the write amplification in timed mode, from the state after functional mode, with one write at a time.
fn in_time(device: &mut Device, rng: &mut Rng) -> f64 {
    device.ftl_mut().seal();
    let (units, sectors) = (device.config().logical_units(), device.config().sectors_per_unit());
    let mut run = |count: u64| {
        let mut rng = Rng::new(rng.next_u64(), "skewed");
        let next = move || {
            let lba = skewed(&mut rng, units) * u64::from(sectors);
            Request::new(Time::ZERO, Operation::Write, lba, sectors)
        };
        Load::closed(1, count * units, next).run(device).counters
    };
    run(ROUNDS);
    amplification(&run(ROUNDS))
}

#[test]
fn a_single_frontier_mixes_moved_units_and_host_writes_in_blocks() {
    let mut rng = Rng::new(1, "functional");
    let mut device = one_plane(&["gc.frontiers=single"]);
    let expected = Reference::new(device.config().logical_units() as u32).amplification(&mut rng);
    let functional = functionally(&mut device, &mut rng);
    device.ftl().recount().expect("the map and the blocks agree");
    assert_close("functional", functional, expected, 0.01);
    assert_close("in time", in_time(&mut device, &mut rng), expected, 0.01);
    let separate = functionally(&mut one_plane(&["gc.frontiers=separate"]), &mut rng);
    assert!(
        separate < 0.85 * expected,
        "separate frontiers do not separate hot and cold data: {separate} and {expected}"
    );
}

/// If a program holds several units, moved units and host writes never share one.
#[test]
fn a_single_frontier_does_not_mix_moved_units_and_host_writes_in_programs() {
    let several = ["gc.frontiers=single", "geometry.page_size=8KiB", "geometry.mapping_unit=4KiB", "geometry.pages=64"];
    let mut rng = Rng::new(2, "functional");
    let mut device = one_plane(&several);
    let functional = functionally(&mut device, &mut rng);
    device.ftl().recount().expect("the map and the blocks agree");
    let victims = device.ftl().counters.victims;
    let padded = device.ftl().counters.units_padded as f64 / victims as f64;
    assert!((0.3..0.6).contains(&padded), "padding per victim, expected about 0.5: {padded}");
    assert!(functional > 1.0);
}

/// Runs jobs at the same time and returns the share of the device that is mapped afterwards.
fn mapped_after(jobs: &str, in_time: bool) -> f64 {
    let mut device = build(device_config(&["geometry.blocks=32"]), Options::default());
    let units = device.config().logical_units();
    fill(&mut device, units as u32);
    let jobs = synthetic::parse(jobs, device.config().logical_bytes(), 7).expect("valid jobs");
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    if in_time {
        run(&mut device, &mut sources, &mut NoWatcher).expect("all requests complete");
    } else {
        precondition_with(&mut device, &mut sources, &mut |_| true).expect("the state can be reached");
    }
    device.ftl().blocks.valid_data() as f64 / device.config().logical_units() as f64
}

/// Rates, start delays and dependencies between jobs determine the order of the requests.
#[test]
fn jobs_with_rates_are_served_in_the_order_of_their_arrivals() {
    let writes = "rw=randwrite norandommap=1 bs=4k";
    let trims = "rw=randtrim norandommap=1 bs=4k";
    for (jobs, expected) in [
        // 900 of 1000 requests per second are writes, so 90 % of the units are mapped.
        (format!("{writes} rate_iops=900 number_ios=27000 ; {trims} rate_iops=100 number_ios=3000"), 0.9),
        (format!("{trims} rate_iops=300 number_ios=9000 ; {writes} rate_iops=700 number_ios=21000"), 0.7),
        // Trims after the last write leave e^-1 of the units.
        (
            format!("{writes} rate_iops=1000 number_ios=6144 ; {trims} rate_iops=1000 startdelay=10 number_ios=6144"),
            0.368,
        ),
        (
            format!("{trims} rate_iops=1000 number_ios=6144 ; {writes} rate_iops=1000 number_ios=6144 stonewall=1"),
            0.767,
        ),
    ] {
        let functional = mapped_after(&jobs, false);
        assert_close(&jobs, functional, expected, 0.02);
        assert_close(&jobs, functional, mapped_after(&jobs, true), 0.001);
    }
}

/// Jobs without rates take turns, also with a job that has a rate. A job that waits for another starts after it.
#[test]
fn jobs_without_rates_take_turns() {
    let writes = "rw=randwrite norandommap=1 bs=4k";
    let trims = "rw=randtrim norandommap=1 bs=4k";
    for (jobs, expected) in [
        (format!("{writes} number_ios=30000 ; {trims} number_ios=30000"), 0.5),
        (format!("{writes} number_ios=30000 ; {trims} number_ios=30000 rate_iops=5"), 0.5),
        (format!("{writes} number_ios=100 ; {trims} stonewall=1 number_ios=6144"), 0.368),
    ] {
        assert_close(&jobs, mapped_after(&jobs, false), expected, 0.03);
    }
}
