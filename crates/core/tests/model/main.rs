//! The device, compared with a reference model. For any device and any requests, a read returns the last acknowledged
//! write, and no unit, block, slot or request is lost.
//!
//! Swarm testing (Groce et al., "Swarm testing", ISSTA 2012): each case draws the enabled features and the frequency of
//! each operation. `FLOATGATE_SEED=n` repeats case n alone. `FLOATGATE_CASES=n` runs n cases of the first kind, and
//! numbers of the others in proportion. `FLOATGATE_SOAK_OPS=n` continues until n operations were performed.
//! `FLOATGATE_DIGESTS=all` runs each device that has a recorded digest.

mod accounts;
mod bench;
mod case;
#[path = "../common/mod.rs"]
mod common;
mod drives;
mod reference;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::internals::{AllocationConfig, GcScope, Mutant};

use bench::failure_of;
use case::Case;
use common::history::{Digests, all_digests};
use common::picking::Picks;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.replace('_', "").parse().ok())
}

/// Number of random devices of the first kind, unless `FLOATGATE_CASES` is set.
const CASES: u64 = 1500;

/// Returns the number of cases of a kind that runs one for each `share` of the first kind.
fn cases(share: u64) -> u64 {
    number("FLOATGATE_CASES").unwrap_or(CASES) / share
}

/// Random devices whose histories are recorded. `make digests` runs all of them.
mod recorded {
    use super::*;

    #[test]
    fn reads_return_the_last_acknowledged_write() {
        run_swarm(Case::new, cases(1), Digests::of("page", 900));
    }

    #[test]
    fn a_map_in_flash_changes_no_answer() {
        run_swarm(Case::dftl, cases(2), Digests::of("dftl", 500));
    }

    #[test]
    fn mapping_blocks_changes_no_answer() {
        run_swarm(Case::block, cases(2), Digests::of("block", 450));
    }

    #[test]
    fn log_blocks_change_no_answer() {
        run_swarm(Case::logs, cases(2), Digests::of("logs", 450));
    }

    #[test]
    fn what_fails_is_told_and_nothing_else_changes() {
        run_swarm(Case::faulty, cases(10), Digests::of("faulty", 150));
    }

    #[test]
    fn blocks_of_schemes_that_fail_change_no_answer() {
        run_swarm(Case::faulty_blocks, cases(3), Digests::of("blocks", 300));
    }

    #[test]
    fn leveling_wear_changes_no_answer() {
        run_swarm(Case::worn, cases(3), Digests::of("worn", 300));
    }

    #[test]
    fn pools_change_no_answer() {
        run_swarm(Case::pooled, cases(3), Digests::of("pools", 300));
    }

    #[test]
    fn gangs_change_no_answer() {
        run_swarm(Case::ganged, cases(5), Digests::of("ganged", 200));
    }
}

/// A pool that is as full as its device may be keeps its reserve although blocks fail.
#[test]
fn pools_at_the_limit_have_failing_blocks() {
    let is_at_limit = |config: &DeviceConfig| {
        let AllocationConfig::Dynamic(options) = &config.allocation else { return false };
        let is_full = config.logical_units() == config.max_logical_units();
        is_full && config.faults.is_some() && options.planes_per_pool(config) > 1
    };
    let configs: Vec<_> = (0..CASES / 3).map(|seed| Case::pooled(seed).config()).filter(is_at_limit).collect();
    for scope in [GcScope::Plane, GcScope::Pool] {
        for destination in [GcScope::Plane, GcScope::Pool] {
            let is_drawn = |config: &&DeviceConfig| (config.gc.scope, config.gc.destination) == (scope, destination);
            let drawn = configs.iter().filter(is_drawn).count();
            assert!(drawn > 0, "no full device collects by {scope:?} and moves to {destination:?}");
        }
    }
}

#[test]
fn a_map_whose_blocks_fail_lets_no_write_wait_forever() {
    for seed in seeds(cases(30)) {
        assert_passes(&Case::failing_map(seed));
    }
}

/// A kind of random devices: name, number of recorded histories, and function that draws a case.
type Kind = (&'static str, u64, fn(u64) -> Case);

const KINDS: [Kind; 9] = [
    ("page", 900, Case::new),
    ("dftl", 500, Case::dftl),
    ("block", 450, Case::block),
    ("logs", 450, Case::logs),
    ("faulty", 150, Case::faulty),
    ("blocks", 300, Case::faulty_blocks),
    ("worn", 300, Case::worn),
    ("pools", 300, Case::pooled),
    ("ganged", 200, Case::ganged),
];

fn with(picks: Picks, case: Case) -> Case {
    Case { picks, ..case }
}

/// The built-in schedulers are `fcfs` and `read-first` in these cases.
#[test]
fn an_external_scheduler_with_the_choices_of_the_ranks_changes_nothing() {
    for (kind, recorded, new) in KINDS {
        let mut digests = Digests::recorded(kind, recorded);
        for seed in seeds(cases(8).min(recorded)) {
            let case = with(Picks::AsRanked, new(seed));
            if let Some((what, _)) = failure_of(&case, Mutant::None, Some(&mut digests)) {
                panic!("{what}\nFLOATGATE_SEED={seed} repeats it: {case:#?}");
            }
        }
    }
}

#[test]
fn any_order_of_operations_gives_correct_data() {
    for (kind, recorded, new) in KINDS {
        let mut others = 0;
        let seeds = seeds(cases(8).min(recorded));
        for seed in seeds.clone() {
            let case = with(Picks::AtRandom, new(seed));
            if let Some((what, _)) = failure_of(&case, Mutant::None, None) {
                panic!("{what}\nFLOATGATE_SEED={seed} repeats it: {case:#?}");
            }
            let mut digests = Digests::recorded(kind, recorded);
            others += u64::from(seed < 20 && failure_of(&case, Mutant::None, Some(&mut digests)).is_some());
        }
        assert!(others > 5 || seeds.end - seeds.start < 20, "the {kind} devices have the same histories as with ranks");
    }
}

fn seeds(cases: u64) -> std::ops::Range<u64> {
    number("FLOATGATE_SEED").map_or(0..cases, |seed| seed..seed + 1)
}

#[test]
fn errors_of_read_data_change_no_answer() {
    for seed in seeds(cases(10)) {
        assert_passes(&Case::erroneous(seed));
    }
}

#[test]
fn superblocks_change_no_answer() {
    for seed in seeds(cases(5)) {
        assert_passes(&Case::superblocks(seed));
    }
}

#[test]
fn superblocks_that_fail_change_no_answer() {
    for seed in seeds(cases(5)) {
        assert_passes(&Case::faulty_superblocks(seed));
    }
}

#[test]
fn planes_that_read_independently_change_no_answer() {
    for seed in seeds(cases(16)) {
        assert_passes(&Case::plane_reads(seed));
    }
}

#[test]
fn reading_ahead_changes_no_answer() {
    for seed in seeds(cases(3)) {
        assert_passes(&Case::ahead(seed));
    }
}

#[test]
fn delays_and_hints_change_no_answer() {
    for seed in seeds(cases(10)) {
        assert_passes(&Case::throttled(seed));
    }
}

#[test]
fn gangs_of_devices_with_log_blocks_change_no_answer() {
    let mut ganged = 0;
    let seeds = seeds(cases(10));
    for seed in seeds.clone() {
        let case = Case::ganged_logs(seed);
        ganged += u64::from(case.overrides.iter().any(|text| text.starts_with("gang=")));
        assert_passes(&case);
    }
    let drawn = seeds.end - seeds.start;
    assert!(drawn < 20 || ganged > drawn / 4, "{ganged} of {drawn} devices have gangs");
}

#[test]
fn channels_that_give_blocks_in_turn_change_no_answer() {
    for seed in seeds(cases(10)) {
        assert_passes(&Case::logs_by_channel(seed));
    }
}

#[test]
fn thresholds_out_of_reach_change_no_answer() {
    for seed in seeds(cases(8)) {
        assert_passes(&Case::lazy(seed));
    }
}

#[test]
fn thresholds_out_of_reach_change_no_answer_if_blocks_fail() {
    for seed in seeds(cases(8)) {
        assert_passes(&Case::lazy_faulty(seed));
    }
}

#[test]
fn gangs_with_several_pools_change_no_answer() {
    for seed in seeds(cases(4)) {
        assert_passes(&Case::ganged_pools(seed));
    }
}

#[test]
fn few_active_blocks_change_no_answer() {
    for seed in seeds(cases(5)) {
        assert_passes(&Case::active(seed));
    }
}

#[test]
fn collection_that_holds_channels_changes_no_answer() {
    for seed in seeds(cases(6)) {
        assert_passes(&Case::exclusive(seed));
    }
}

#[test]
fn bursts_change_no_answer() {
    for seed in seeds(cases(10)) {
        assert_passes(&Case::bursts(seed));
    }
}

#[test]
fn folding_changes_no_answer() {
    for seed in seeds(cases(6)) {
        assert_passes(&Case::cached(seed));
    }
}

#[test]
fn logical_pages_in_a_buffer_change_no_answer() {
    for seed in seeds(cases(4)) {
        assert_passes(&Case::paged(seed));
    }
}

/// Each kind of claim on free blocks, and all of them together, on devices that are as full as they may be:
/// docs/model/gc.md has the table of claims and reserves.
#[test]
fn a_full_device_at_its_limit_loses_no_request() {
    for seed in seeds(cases(2)) {
        assert_passes(&Case::edge(seed));
    }
}

/// Repeats cases that only soak runs have found.
#[test]
fn cases_that_once_failed_pass() {
    let faulty = [932, 3714, 10_104, 19_914].map(Case::faulty);
    // A program was in flight when the device became read-only, and failed.
    let in_flight = Case::faulty_blocks(3358);
    for case in faulty.into_iter().chain([Case::dftl(9228), in_flight]) {
        // These cases failed with blocks in native mode.
        assert!(!case.overrides.iter().any(|text| text.ends_with("cells=slc")), "case {}", case.seed);
        assert_passes(&case);
    }
}

/// Translation pages waited for a block that data could not free, with static allocation and with pools: because
/// garbage collection of data was paced (2639, 4663, 6948, 8682, 9061), waited for updates of translation pages
/// itself (7599), or reclaimed nothing from any block (2172).
#[test]
fn a_map_does_not_count_on_blocks_that_data_owe() {
    for seed in [2172, 2639, 4663, 6948, 7599, 8682, 9061] {
        assert_passes(&Case::failing_map(seed));
    }
}

fn assert_passes(case: &Case) {
    if let Some((what, _)) = failure_of(case, Mutant::None, None) {
        panic!("{what}\nFLOATGATE_SEED={} repeats it: {case:#?}", case.seed);
    }
}

fn run_swarm(new: fn(u64) -> Case, cases: u64, mut digests: Digests) {
    let cases = if all_digests() { digests.count() } else { cases };
    let (first, cases) = number("FLOATGATE_SEED").map_or((0, cases), |seed| (seed, 1));
    let soak = number("FLOATGATE_SOAK_OPS").unwrap_or(0);
    let mut seed = first;
    let mut operations = 0;
    while seed < first + cases || operations < soak {
        let case = new(seed);
        if let Some((what, _)) = failure_of(&case, Mutant::None, Some(&mut digests)) {
            panic!("{what}\nFLOATGATE_SEED={seed} repeats it: {case:#?}");
        }
        operations += case.load.functional + case.load.timed;
        seed += 1;
    }
    digests.finish();
}

/// Runs cases with a deliberate bug until one fails. Asserts that this happens soon, by wrong data of a read or, in
/// debug builds, also by an assertion of the device.
fn assert_caught(mutant: Mutant) {
    assert_caught_with(Case::new, mutant);
}

fn assert_caught_with(new: fn(u64) -> Case, mutant: Mutant) {
    let mut panics = 0;
    for seed in 0..200 {
        match failure_of(&new(seed), mutant, None) {
            Some((what, false)) if what.starts_with("a read of sector") => return,
            Some((_, true)) if cfg!(debug_assertions) => return,
            Some(_) => panics += 1,
            None => {}
        }
    }
    panic!("{mutant:?} returned no wrong data in 200 cases; {panics} failed otherwise");
}

#[test]
fn a_block_that_is_erased_too_early_is_caught() {
    assert_caught(Mutant::EraseEarly);
}

#[test]
fn a_failed_block_that_is_used_again_is_caught() {
    let caught = |seed| failure_of(&Case::faulty(seed), Mutant::ReuseFailed, None).is_some();
    assert!((0..50).any(caught), "no case noticed a failed block in use");
}

#[test]
fn a_merge_of_an_old_copy_is_caught() {
    assert_caught_with(Case::logs, Mutant::MergeOldCopy);
}

#[test]
fn a_switch_before_the_block_is_whole_is_caught() {
    assert_caught_with(Case::logs, Mutant::SwitchEarly);
}

#[test]
fn a_merge_of_trimmed_units_is_caught() {
    assert_caught_with(Case::logs, Mutant::MergeTrimmed);
}

#[test]
fn a_failed_block_of_a_scheme_that_is_used_again_is_caught() {
    let caught = |seed| failure_of(&Case::faulty_blocks(seed), Mutant::ReuseFailed, None).is_some();
    assert!((0..50).any(caught), "no case noticed a failed block in use");
}

#[test]
fn a_copy_with_the_age_of_a_write_is_caught() {
    assert_caught(Mutant::RenumberCopies);
}

#[test]
fn a_map_that_returns_to_an_older_write_is_caught() {
    assert_caught(Mutant::MapMovesBack);
}

#[test]
fn a_copy_that_ignores_an_overwrite_is_caught() {
    assert_caught(Mutant::IgnoreOverwrite);
}

#[test]
fn a_lost_task_is_caught() {
    let stalls = |seed| {
        let failure = failure_of(&Case::new(seed), Mutant::LoseTask, None);
        failure.is_some_and(|(what, _)| what.contains("requests in the device"))
    };
    assert!((0..200).any(stalls), "every request completed although tasks were lost");
}

/// The bug changes no data, but the order of the operations.
#[test]
fn tasks_in_the_wrong_order_are_caught() {
    let mut recorded = Digests::recorded("page", 200);
    let mut differs = |seed| {
        let failure = failure_of(&Case::new(seed), Mutant::SwapTasks, Some(&mut recorded));
        failure.is_some_and(|(what, _)| what.contains("has another history"))
    };
    assert!((0..200).any(&mut differs), "no history changed although two tasks ran in the wrong order");
}
