//! Full devices: they accept ten drive writes, and a configuration with one more unit is refused.

use floatgate_core::device_file::from_toml;
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::simulation::{Options, Ssd};

use crate::bench::PATIENCE;
use crate::case::Case;
use crate::{cases, common, number};

/// Pattern of the overwrites.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Sequential,
    Uniform,
    /// Nine of ten writes go to the first tenth.
    HotCold,
}

impl Pattern {
    fn unit(self, rng: &mut Rng, index: u64, units: u64) -> u64 {
        match self {
            Pattern::Sequential => index % units,
            Pattern::HotCold if rng.below(10) < 9 => rng.below(units.div_ceil(10)),
            Pattern::Uniform | Pattern::HotCold => rng.below(units),
        }
    }
}

const DRIVE_WRITES: u64 = 10;

/// Writes the whole device in order, then ten times its size by `pattern`, in timed or functional mode.
fn write_over(case: &Case, pattern: Pattern, timed: bool) -> Result<(), String> {
    let config = case.config();
    let (units, per_unit) = (config.logical_units(), config.sectors_per_unit());
    let mut device = common::build(config, Options { seed: case.seed, ..Options::default() });
    let rng = &mut Rng::new(case.seed, "model/drive");
    let mut completions = Vec::new();
    let (mut completed, mut events) = (0, 0);
    for index in 0..units * (1 + DRIVE_WRITES) {
        let unit = if index < units { index } else { pattern.unit(rng, index, units) };
        if !timed {
            device.ftl_mut().write_whole(Lpn(unit as u32));
            continue;
        }
        let now = device.now();
        let lba = unit * u64::from(per_unit);
        device.submit(now, Request::new(now, Operation::Write, lba, per_unit));
        while device.outstanding() >= case.load.depth {
            device.advance(device.next_event().ok_or_else(|| device.explain_stall())?);
            device.take_completions(&mut completions);
            events = if completions.len() > completed { 0 } else { events + 1 };
            completed = completions.len();
            if events > PATIENCE {
                return Err(format!("write {index} does not progress: {}", device.explain_stall()));
            }
        }
    }
    completions.extend(common::drain(&mut device));
    let expected = if timed { units * (1 + DRIVE_WRITES) } else { 0 };
    if completions.len() as u64 != expected {
        return Err(format!("{} of {expected} writes completed: {}", completions.len(), device.explain_stall()));
    }
    device.ftl().recount()?;
    if !timed {
        device.ftl_mut().seal();
    }
    device.check_invariants()
}

#[test]
fn accepted_devices_complete_ten_drive_writes() {
    write_over_all(Case::full, cases(10));
}

#[test]
fn accepted_devices_that_level_wear_complete_ten_drive_writes() {
    write_over_all(Case::full_worn, cases(20));
}

#[test]
fn accepted_devices_with_pools_complete_ten_drive_writes() {
    write_over_all(Case::full_pooled, cases(10));
}

#[test]
fn accepted_devices_with_few_active_blocks_complete_ten_drive_writes() {
    write_over_all(Case::full_active, cases(15));
}

#[test]
fn accepted_devices_with_a_threshold_out_of_reach_complete_ten_drive_writes() {
    let is_out_of_reach = |case: &Case| case.config().sure_threshold() < case.config().soft_threshold();
    assert!((0..10).all(|seed| is_out_of_reach(&Case::lazy(seed))));
    write_over_all(Case::lazy, cases(10));
}

/// Some of these devices become read-only, and then keep the older version of a unit that they cannot program.
#[test]
fn devices_with_a_threshold_out_of_reach_and_failing_blocks_complete_all_writes() {
    write_over_all(Case::lazy_faulty, cases(10));
}

#[test]
fn accepted_devices_with_their_map_in_flash_complete_ten_drive_writes() {
    write_over_all(Case::full_dftl, cases(10));
}

#[test]
fn accepted_devices_with_block_mapping_complete_ten_drive_writes() {
    write_over_all(Case::full_block, cases(10));
}

#[test]
fn accepted_devices_with_log_blocks_complete_ten_drive_writes() {
    write_over_all(Case::full_logs, cases(5));
}

fn write_over_all(new: fn(u64) -> Case, cases: u64) {
    for seed in number("FLOATGATE_SEED").map_or(0..cases, |seed| seed..seed + 1) {
        let case = new(seed);
        for pattern in [Pattern::Sequential, Pattern::Uniform, Pattern::HotCold] {
            let timed = case.config().logical_units() < 1500;
            for timed in [false, true].into_iter().filter(|&t| !t || timed) {
                if let Err(what) = write_over(&case, pattern, timed) {
                    panic!("{what}\n{pattern:?}, timed: {timed}; FLOATGATE_SEED={seed} repeats it: {case:#?}");
                }
            }
        }
    }
}

#[test]
fn a_device_with_one_unit_too_many_is_refused() {
    for seed in 0..120 {
        let case = match seed % 5 {
            0 => Case::full(seed),
            1 => Case::full_dftl(seed),
            2 => Case::full_logs(seed),
            3 => Case::lazy(seed),
            _ => Case::full_block(seed),
        };
        let config = case.config();
        let capacity = format!("capacity.logical={}B", (config.max_logical_units() + 1) * config.unit_bytes());
        let overrides: Vec<String> = case.overrides.iter().cloned().chain([capacity]).collect();
        let error = from_toml(common::BASE, "test.toml", &overrides).expect_err("one unit too many");
        assert!(
            error
                .problems()
                .iter()
                .any(|p| ["capacity.logical", "gc.soft_threshold", "mapping.scheme"].contains(&&*p.path)),
            "{error}"
        );
    }
}
