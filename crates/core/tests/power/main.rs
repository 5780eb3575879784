//! Power cuts: flash alone makes the device again, at whatever instant the power goes. Each mapping unit, for itself,
//! reads as its last flushed version or a later accepted one.
//!
//! `FLOATGATE_POWER_CUTS=n` cuts the power n times; `FLOATGATE_SEED=n` repeats case n alone.

mod bench;
mod case;
#[path = "../common/mod.rs"]
mod common;
mod host;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bench::{Bench, Hits};
use case::Case;
use common::history::Digests;
use common::looking::Looks;
use floatgate_core::device::Mutant;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.replace('_', "").parse().ok())
}

/// Cuts of one device, one after the other.
const CUTS_OF_A_CASE: u64 = 20;

/// Cuts that are always tried.
const CUTS: u64 = 10_000;

/// Cuts that are wanted.
fn wanted() -> u64 {
    number("FLOATGATE_POWER_CUTS").unwrap_or(CUTS)
}

/// Runs cases until the power was cut so many times: devices that become read-only have fewer cuts than others.
fn cut_for(cuts: u64, case_of: impl Fn(u64) -> Case, mut digests: Option<Digests>) -> Hits {
    let seeds = number("FLOATGATE_SEED").map_or(0..u64::MAX, |seed| seed..seed + 1);
    let mut hits = Hits::default();
    for seed in seeds {
        if hits.cuts >= cuts {
            break;
        }
        let case = case_of(seed);
        let mut bench = Bench::new(&case, Mutant::None, digests.as_ref());
        if let Err(what) = bench.run(CUTS_OF_A_CASE, &mut hits) {
            panic!("{what}\nFLOATGATE_SEED={seed} repeats it: {case:?}");
        }
        if let Some(digests) = &mut digests {
            digests.end(seed, bench.into_history());
        }
    }
    digests.into_iter().for_each(Digests::finish);
    println!("{hits:?}");
    hits
}

#[test]
fn what_was_flushed_outlives_every_power_cut() {
    let cuts = wanted();
    let hits = cut_for(cuts, Case::new, Some(Digests::of("power", 500)));
    if number("FLOATGATE_SEED").is_some() {
        return;
    }
    assert!(hits.cuts >= cuts);
    for (state, count) in hits.all() {
        assert!(cuts < CUTS || count >= 100, "only {count} cuts hit the state {state}");
    }
}

/// Trims and zeroes with FUA need no flush.
#[test]
fn what_was_trimmed_with_fua_outlives_every_power_cut() {
    let case_of = |seed| {
        let mut case = Case::new(seed);
        case.lasting_trims = true;
        case
    };
    cut_for(wanted() / 5, case_of, None);
}

/// A scheduler may start operations in any order, also where blocks fail.
#[test]
fn any_order_of_operations_outlives_power_cuts() {
    cut_for(wanted() / 5, in_any_order, None);
}

fn in_any_order(seed: u64) -> Case {
    Case { looks: Looks::AtRandom, ..Case::new(seed) }
}

fn assert_survives_in_any_order(seed: u64) {
    let case = in_any_order(seed);
    // It stalled with blocks in native mode.
    assert!(!case.overrides.iter().any(|text| text.ends_with("cells=slc")), "{case:?}");
    let stalled = Bench::new(&case, Mutant::None, None).run(CUTS_OF_A_CASE, &mut Hits::default());
    assert_eq!(stalled, Ok(()), "{case:?}");
}

/// A write whose program had failed opened a block, and the writes that waited for room were not told of the rest.
#[test]
fn what_a_failed_write_leaves_of_a_block_is_for_those_that_wait() {
    assert_survives_in_any_order(1282);
}

/// Two programs of a block had failed. Both writes replaced data of the block that was to be erased next, and each
/// waited for the other one.
#[test]
fn writes_that_keep_a_block_together_go_again_together() {
    assert_survives_in_any_order(5073);
}

/// A write whose program had failed waited in the pool while a read of the block that waited for this write was in
/// flight. Its end did not notify the write, and no plane of the pool had room for it.
#[test]
fn a_write_of_the_pool_that_keeps_a_block_goes_again() {
    assert_survives_in_any_order(7174);
}

/// Repeats a case of a seed beyond those that are always tried.
fn assert_survives(seed: u64) {
    let case = Case::new(seed);
    if let Err(what) = Bench::new(&case, Mutant::None, None).run(CUTS_OF_A_CASE, &mut Hits::default()) {
        panic!("{what}\nFLOATGATE_SEED={seed} repeats it: {case:?}");
    }
}

/// A trim took the data that flushes waited for out of the buffer, and they were answered without its record: an older
/// version was back.
#[test]
fn a_flush_whose_data_is_trimmed_waits_for_the_record() {
    assert_survives(2700);
}

/// A unit of the journal took a place in the last free block of a plane, and no block came free for it: the next power
/// cut left a plane without a free block.
#[test]
fn what_is_lent_to_the_journal_gains_a_block() {
    [714, 1327, 3376, 3487].into_iter().for_each(assert_survives);
}

/// A block waited for records, their unit of the journal for room, and the room for that block: in other planes, in the
/// room of cleaning, and for records that had come after those of the unit.
#[test]
fn a_unit_of_the_journal_that_a_block_waits_for_finds_room() {
    [789, 1332, 2109, 3144, 3187, 3585, 3610, 5016].into_iter().for_each(assert_survives);
}

/// Writing the journal took a step of cleaning within a step: the next page within the plane joined one that was on its
/// way.
#[test]
fn the_journal_takes_no_step_of_cleaning_within_another() {
    [1424, 1494, 5084].into_iter().for_each(assert_survives);
}

/// Cleaning moved a block that gained nothing into the last room of a plane: the block waited for a record of a trim,
/// and that for room.
#[test]
fn cleaning_leaves_room_for_the_records_that_it_waits_for() {
    assert_survives(40955);
}

/// A victim waited for an update of the map, and then for the journal, which was not told.
#[test]
fn the_journal_hears_of_updates_of_the_map() {
    assert_survives(52076);
}

/// A write whose program had failed, and for which the block waits that holds what it supersedes, found no room while
/// cleaning was under way, and was not told when it had some; or there was only that of cleaning.
#[test]
fn what_has_failed_goes_again_when_cleaning_rests() {
    [51838, 52366, 54603].into_iter().for_each(assert_survives);
}

/// A plane had one good block left for its translation pages beside one that had failed and was to be emptied into it,
/// and data had none to give: a write waited for ever, and the device did not become read-only.
#[test]
fn translation_pages_without_blocks_end_in_read_only() {
    assert_survives(20204);
}

/// Runs cases with a deliberate bug until a unit reads as what it must not; asserts that this comes soon.
fn assert_caught(mutant: Mutant, cuts: u64) {
    let mut panics = 0;
    for seed in 0..cuts / CUTS_OF_A_CASE {
        let mut hits = Hits::default();
        let run = || Bench::new(&Case::new(seed), mutant, None).run(CUTS_OF_A_CASE, &mut hits);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Err(what)) if what.contains("after a power cut") => return,
            Ok(Ok(())) => {}
            _ => panics += 1,
        }
    }
    panic!("{mutant:?} lost nothing in {cuts} power cuts; {panics} cases failed otherwise");
}

#[test]
fn blocks_that_are_erased_too_early_are_caught() {
    assert_caught(Mutant::EraseEarly, 2000);
}

#[test]
fn copies_that_count_as_new_are_caught() {
    assert_caught(Mutant::RenumberCopies, 2000);
}

#[test]
fn a_checkpoint_that_is_trusted_about_erased_blocks_is_caught() {
    assert_caught(Mutant::TrustErased, 2000);
}

#[test]
fn a_checkpoint_that_tells_of_blocks_too_early_is_caught() {
    assert_caught(Mutant::AccountEarly, 2000);
}

#[test]
fn trims_that_are_not_journalled_are_caught() {
    assert_caught(Mutant::ForgetTrims, 2000);
}
