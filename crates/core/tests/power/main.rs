//! Power cuts: the device is rebuilt from flash alone, whenever the power is cut. Each mapping unit reads as its last
//! flushed version or a later accepted one.
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
use common::picking::Picks;
use floatgate_core::internals::Mutant;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.replace('_', "").parse().ok())
}

/// Number of successive power cuts of one device.
const CUTS_OF_A_CASE: u64 = 20;

/// Number of power cuts without `FLOATGATE_POWER_CUTS`.
const CUTS: u64 = 10_000;

/// Returns the requested number of power cuts.
fn wanted() -> u64 {
    number("FLOATGATE_POWER_CUTS").unwrap_or(CUTS)
}

/// Runs cases until the power was cut `cuts` times. Devices that become read-only have fewer cuts than others.
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

/// Random devices whose histories are recorded. `make digests` runs all of them.
mod recorded {
    use super::*;

    #[test]
    fn what_was_flushed_outlives_every_power_cut() {
        let cuts = wanted();
        let hits = cut_for(cuts, Case::new, Some(Digests::of("power", 500)));
        if number("FLOATGATE_SEED").is_some() {
            return;
        }
        assert!(hits.cuts >= cuts);
        for (state, count) in hits.all() {
            assert!(cuts < CUTS || count >= 100, "only {count} cuts occurred in the state {state}");
        }
    }
}

/// A log block or a half-built data block is recovered for what it is.
#[test]
fn merges_outlive_power_cuts() {
    let cuts = wanted();
    let hits = cut_for(cuts, Case::merging, None);
    if number("FLOATGATE_SEED").is_some() {
        return;
    }
    for (state, count) in hits.merges() {
        assert!(cuts < CUTS || count >= 100, "only {count} cuts occurred in the state {state}");
    }
}

/// A block that takes the place of a failed one is half filled, and so is one of the journal.
#[test]
fn failing_blocks_that_are_merged_outlive_power_cuts() {
    let cuts = wanted() / 2;
    let hits = cut_for(cuts, Case::merging_faulty, None);
    if number("FLOATGATE_SEED").is_some() {
        return;
    }
    for (state, count) in hits.faulty_merges() {
        assert!(cuts < CUTS / 2 || count >= 50, "only {count} cuts occurred in the state {state}");
    }
    assert_eq!(hits.stuck(), 0, "recoveries found no free block although enough blocks are good");
}

/// A merge gave up the block of a write that was trimmed in flight, before the record of the trim was in flash.
#[test]
fn a_write_that_is_trimmed_in_flight_delays_the_erase_of_its_block() {
    let case = Case::merging(3620);
    let survived = Bench::new(&case, Mutant::None, None).run(CUTS_OF_A_CASE, &mut Hits::default());
    assert_eq!(survived, Ok(()), "{case:?}");
}

/// Trims and zeroes with FUA need no flush to survive.
#[test]
fn what_was_trimmed_with_fua_outlives_every_power_cut() {
    let case_of = |seed| {
        let mut case = Case::new(seed);
        case.lasting_trims = true;
        case
    };
    cut_for(wanted() / 5, case_of, None);
}

/// Writes of logical pages write again what they do not cover, and gangs start operations in rounds.
#[test]
fn logical_pages_and_gangs_outlive_power_cuts() {
    cut_for(wanted() / 5, Case::grouped, None);
}

/// A power cut may separate the units of a logical page, which a buffer writes back together.
#[test]
fn logical_pages_in_a_buffer_outlive_power_cuts() {
    cut_for(wanted() / 5, Case::paged, None);
}

/// A burst leaves a victim half-collected in each plane. The power may also be cut while all host writes wait.
#[test]
fn bursts_outlive_power_cuts() {
    cut_for(wanted() / 4, Case::bursts, None);
}

/// A recovery finds what was written to the SLC cache, and what was folded, wherever the power was cut.
#[test]
fn caches_outlive_power_cuts() {
    cut_for(wanted() / 4, Case::cached, None);
}

/// Programs and erases of all planes of a die are in flight, or suspended, when the power is cut.
#[test]
fn planes_that_read_independently_outlive_power_cuts() {
    cut_for(wanted() / 4, Case::plane_reads, None);
}

/// A worn-out block that is never collected again keeps its data, and is found as such.
#[test]
fn worn_out_blocks_outlive_power_cuts() {
    cut_for(wanted() / 5, Case::worn, None);
}

/// Reads that are repeated or uncorrectable are in flight when the power is cut.
#[test]
fn devices_with_read_errors_outlive_power_cuts() {
    cut_for(wanted() / 4, Case::erring, None);
}

/// A recovery finds superblocks that are open, half erased, or have failed, and stripes without parity.
#[test]
fn superblocks_outlive_power_cuts() {
    cut_for(wanted() / 4, Case::superblocks, None);
}

/// A block that is being refreshed, or waits for that, is found with its data. It is refreshed after further reads.
#[test]
fn refreshed_blocks_outlive_power_cuts() {
    cut_for(wanted() / 4, Case::refreshed, None);
}

/// Recovery chooses the active blocks again.
#[test]
fn few_active_blocks_outlive_power_cuts() {
    cut_for(wanted() / 5, Case::active, None);
}

/// A scheduler may start operations in any order, also if blocks fail.
#[test]
fn any_order_of_operations_outlives_power_cuts() {
    cut_for(wanted() / 5, in_any_order, None);
}

fn in_any_order(seed: u64) -> Case {
    Case { picks: Picks::AtRandom, ..Case::new(seed) }
}

fn assert_survives_in_any_order(seed: u64) {
    let case = in_any_order(seed).on_demand();
    // This case stalled with blocks in native mode.
    assert!(!case.overrides.iter().any(|text| text.ends_with("cells=slc")), "{case:?}");
    let stalled = Bench::new(&case, Mutant::None, None).run(CUTS_OF_A_CASE, &mut Hits::default());
    assert_eq!(stalled, Ok(()), "{case:?}");
}

/// A write whose program had failed opened a block, and the writes that waited for free pages were not notified.
#[test]
fn writes_without_room_use_the_block_that_a_failed_write_opened() {
    assert_survives_in_any_order(1282);
}

/// Two programs of a block had failed. Both writes replaced data of the block that was to be erased next, and each
/// waited for the other.
#[test]
fn failed_writes_that_delay_the_same_erase_are_repeated_together() {
    assert_survives_in_any_order(5073);
}

/// A write whose program had failed waited in the pool. A read of the block that waited for this write was in flight.
/// The end of the read did not notify the write, and no plane of the pool had a free page for it.
#[test]
fn a_failed_write_of_the_pool_that_delays_an_erase_is_repeated() {
    assert_survives_in_any_order(7174);
}

/// Repeats a case whose seed is beyond those that always run.
fn assert_survives(seed: u64) {
    let case = Case::new(seed).on_demand();
    if let Err(what) = Bench::new(&case, Mutant::None, None).run(CUTS_OF_A_CASE, &mut Hits::default()) {
        panic!("{what}: {case:?}");
    }
}

/// A trim removed data from the buffer while flushes waited for them. The flushes completed without the record of the
/// trim, and an older version reappeared.
#[test]
fn a_flush_whose_data_is_trimmed_waits_for_the_record() {
    assert_survives(2700);
}

/// A unit of the journal was programmed into the last free block of a plane, and no block was reclaimed for it. The
/// next power cut left a plane without a free block.
#[test]
fn a_block_lent_to_the_journal_is_reclaimed() {
    [714, 1327, 3376, 3487].into_iter().for_each(assert_survives);
}

/// A block waited for records, their journal unit for a free page, and the page for the erase of that block. It
/// happened across planes, with pages reserved for garbage collection, and with records newer than those of the unit.
#[test]
fn a_journal_unit_that_delays_an_erase_finds_a_free_page() {
    [789, 1332, 2109, 3144, 3187, 3585, 3610, 5016].into_iter().for_each(assert_survives);
}

/// Writing the journal started a step of garbage collection within another. The next page was added to a copy within
/// the plane that was in flight.
#[test]
fn the_journal_starts_no_step_of_garbage_collection_within_another() {
    [1424, 1494, 5084].into_iter().for_each(assert_survives);
}

/// Garbage collection moved a block that reclaimed nothing into the last free pages of a plane. The block waited for
/// the record of a trim, and the record for a free page.
#[test]
fn garbage_collection_leaves_pages_for_the_records_that_it_waits_for() {
    assert_survives(40955);
}

/// A victim waited for an update of the map, and then for the journal, which was not notified.
#[test]
fn the_journal_is_notified_of_updates_of_the_map() {
    assert_survives(52076);
}

/// A write whose program had failed delayed the erase of the block with its old copy. It found no free page during
/// garbage collection. Later it was not notified, or only the pages reserved for garbage collection were free.
#[test]
fn a_failed_write_is_repeated_after_garbage_collection() {
    [51838, 52366, 54603].into_iter().for_each(assert_survives);
}

/// A plane had one good block left for translation pages, and a failed block had to be evacuated into it. Data had no
/// free block to give. A write waited forever, and the device did not become read-only.
#[test]
fn a_device_without_blocks_for_translation_pages_becomes_read_only() {
    assert_survives(20204);
}

/// Runs cases with a deliberate bug until a unit reads as a forbidden version. Asserts that this happens soon.
fn assert_caught(mutant: Mutant, cuts: u64) {
    assert_caught_with(mutant, cuts, Case::new);
}

fn assert_caught_with(mutant: Mutant, cuts: u64, case_of: impl Fn(u64) -> Case) {
    let mut panics = 0;
    for seed in 0..cuts / CUTS_OF_A_CASE {
        let mut hits = Hits::default();
        let run = || Bench::new(&case_of(seed), mutant, None).run(CUTS_OF_A_CASE, &mut hits);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Err(what)) if what.contains("after a power cut") => return,
            Ok(Ok(())) => {}
            _ => panics += 1,
        }
    }
    panic!("{mutant:?} lost no data in {cuts} power cuts; {panics} cases failed otherwise");
}

#[test]
fn blocks_that_are_erased_too_early_are_caught() {
    assert_caught(Mutant::EraseEarly, 2000);
}

#[test]
fn copies_that_count_as_new_are_caught() {
    assert_caught(Mutant::RenumberCopies, 4000);
}

#[test]
fn trusting_a_checkpoint_about_erased_blocks_is_caught() {
    assert_caught(Mutant::TrustErased, 2000);
}

#[test]
fn a_checkpoint_with_blocks_before_their_programs_is_caught() {
    assert_caught(Mutant::AccountEarly, 2000);
}

#[test]
fn trims_that_are_not_journalled_are_caught() {
    assert_caught(Mutant::ForgetTrims, 2000);
}

#[test]
fn trims_that_a_recovery_of_merged_blocks_forgets_are_caught() {
    assert_caught_with(Mutant::SkipTrims, 2000, Case::merging);
}

#[test]
fn an_old_data_block_that_wins_over_a_log_block_is_caught() {
    assert_caught_with(Mutant::OldBlockWins, 2000, Case::merging);
}

#[test]
fn failed_blocks_that_are_retired_with_data_are_caught() {
    assert_caught_with(Mutant::RetireEarly, 4000, Case::merging_faulty);
}

#[test]
fn merged_copies_that_count_as_new_are_caught() {
    assert_caught_with(Mutant::RenumberCopies, 4000, Case::merging);
}

#[test]
fn merged_blocks_that_are_erased_too_early_are_caught() {
    assert_caught_with(Mutant::EraseEarly, 2000, Case::merging);
}
