//! Each claim against free blocks and open blocks. A block has 8 units, a program 2.

use super::super::region::Role;
use super::super::{Claim, InHand, Space};
use crate::config::load;
use crate::sim::id::PlaneId;

/// Free blocks of the region, and units left in the open blocks of writes and of moved units.
type Left = (u32, u32, u32);

fn space(overrides: &[&str]) -> Space {
    let small =
        ["geometry.page_size=8KiB", "geometry.mapping_unit=4KiB", "geometry.pages=4", "capacity={ spare = 0.5 }"];
    let overrides: Vec<String> = small.iter().chain(overrides).map(|&text| text.to_owned()).collect();
    Space::new(&load("tiny", &overrides).unwrap(), 1, false, &Default::default()).unwrap()
}

/// Checks which claims find room, with `reserve` blocks in reserve.
fn check(space: &mut Space, reserve: u32, table: &[(Claim, Left, bool)]) {
    let plane = PlaneId(0);
    let region = space.region(plane, Role::Data);
    let [writes, moved] = [space.host_frontier(plane, 0), space.gc_frontier(plane)];
    for &(claim, left, expected) in table {
        (space.regions[region.0 as usize].free, space.regions[region.0 as usize].reserve) = (left.0, reserve);
        space.frontiers[moved.0 as usize].left = left.2;
        space.frontiers[writes.0 as usize].left = left.1;
        assert_eq!(space.may_take(region, claim), expected, "{claim:?} with {left:?}");
        if let Claim::Write { besides } = claim {
            assert_eq!(space.units_for(region, claim) > 0, expected, "besides {besides}");
        }
    }
}

const NOTHING: InHand = InHand { units: 0, read: 0, waste: 0, awaiting_erase: 0, coming: 0 };
/// Three units to be programmed, one of them read. They take two programs.
const THREE: InHand = InHand { units: 3, read: 1, ..NOTHING };

#[test]
fn writes_leave_the_reserve_and_the_frontier_of_moved_units() {
    check(
        &mut space(&[]),
        1,
        &[
            (Claim::WRITE, (2, 0, 0), true),
            (Claim::WRITE, (1, 0, 8), false),
            (Claim::WRITE, (1, 1, 0), true),
            (Claim::WRITE, (0, 1, 0), true),
            (Claim::Write { besides: 3 }, (1, 3, 0), false),
            (Claim::Write { besides: 3 }, (1, 4, 0), true),
            (Claim::Write { besides: 7 }, (2, 0, 0), true),
            (Claim::Write { besides: 8 }, (2, 0, 0), false),
        ],
    );
    check(&mut space(&[]), 2, &[(Claim::WRITE, (2, 0, 0), false), (Claim::WRITE, (3, 0, 0), true)]);
}

#[test]
fn retried_writes_leave_room_for_a_victim() {
    check(
        &mut space(&[]),
        2,
        &[
            (Claim::Retry(NOTHING), (0, 8, 16), false),
            (Claim::Retry(NOTHING), (1, 8, 0), false),
            (Claim::Retry(NOTHING), (1, 0, 8), true),
            (Claim::Retry(NOTHING), (2, 0, 0), true),
            (Claim::Retry(THREE), (2, 0, 2), false),
            (Claim::Retry(THREE), (2, 0, 4), true),
            (Claim::Retry(InHand { waste: 1, ..THREE }), (2, 0, 4), false),
        ],
    );
}

#[test]
fn writes_that_free_a_block_leave_room_for_outstanding_copies() {
    let freeing = |hand: InHand, programs| Claim::Freeing { hand: InHand { awaiting_erase: 1, ..hand }, programs };
    check(
        &mut space(&[]),
        1,
        &[
            (Claim::Freeing { hand: NOTHING, programs: 1 }, (4, 8, 8), false),
            (freeing(NOTHING, 1), (0, 8, 0), false),
            (freeing(NOTHING, 1), (0, 0, 2), true),
            (freeing(NOTHING, 2), (0, 0, 2), false),
            (freeing(NOTHING, 2), (1, 0, 0), true),
            (freeing(THREE, 1), (0, 0, 6), false),
            (freeing(THREE, 1), (0, 0, 8), true),
        ],
    );
}

#[test]
fn garbage_collection_uses_the_reserve() {
    let failed = |hand, valid| Claim::Failed { hand, valid };
    check(
        &mut space(&[]),
        1,
        &[
            (Claim::Move, (0, 8, 0), false),
            (Claim::Move, (0, 0, 1), true),
            (Claim::Move, (1, 0, 0), true),
            (Claim::Victim(NOTHING), (0, 8, 6), false),
            (Claim::Victim(NOTHING), (0, 0, 8), true),
            (Claim::Victim(NOTHING), (1, 0, 0), true),
            (Claim::Victim(THREE), (1, 0, 0), false),
            (Claim::Victim(THREE), (1, 0, 2), true),
            // A failed block leaves room for a victim and for another failed block, of 8 units each.
            (failed(NOTHING, 3), (2, 0, 2), false),
            (failed(NOTHING, 3), (2, 0, 4), true),
            (failed(THREE, 3), (2, 0, 4), false),
            (failed(THREE, 3), (2, 0, 6), true),
        ],
    );
}

#[test]
fn whole_blocks_are_free_blocks() {
    check(
        &mut space(&[]),
        1,
        &[
            (Claim::Block, (0, 8, 8), false),
            (Claim::Block, (1, 0, 0), true),
            (Claim::Lend, (1, 8, 8), false),
            (Claim::Lend, (2, 0, 0), true),
        ],
    );
}

/// Folding frees no block of the region, so it leaves the reserve, but for the block that writes leave to it. It needs
/// no more than the units of its block.
#[test]
fn folding_leaves_a_block_to_garbage_collection() {
    let fold = |hand, valid| Claim::Fold { hand, valid };
    check(
        &mut space(&[]),
        2,
        &[
            (Claim::WRITE, (2, 0, 8), false),
            (fold(NOTHING, 3), (1, 8, 3), false),
            (fold(NOTHING, 3), (1, 0, 4), true),
            (fold(NOTHING, 8), (1, 8, 7), false),
            (fold(NOTHING, 8), (2, 0, 0), true),
            (fold(THREE, 3), (1, 0, 7), false),
            (fold(THREE, 3), (1, 0, 8), true),
            (fold(THREE, 8), (2, 0, 3), false),
            (fold(NOTHING, 0), (0, 0, 0), true),
        ],
    );
}

/// Both open blocks are the same one. Writes do not take its room from copies that have used the reserve.
#[test]
fn writes_and_copies_share_a_frontier() {
    let failed = |hand| Claim::Failed { hand, valid: 3 };
    check(
        &mut space(&["gc.frontiers=single"]),
        1,
        &[
            (Claim::WRITE, (0, 8, 8), false),
            (Claim::WRITE, (1, 1, 1), true),
            (Claim::Move, (0, 1, 1), true),
            (Claim::Victim(NOTHING), (0, 8, 8), true),
            (Claim::Victim(THREE), (4, 8, 8), false),
            (failed(NOTHING), (4, 0, 0), true),
            (failed(THREE), (4, 0, 0), false),
        ],
    );
}

#[test]
fn garbage_collection_is_sure_to_continue_if_a_victim_finds_room_afterwards() {
    let mut space = space(&[]);
    let (region, moved) = (space.region(PlaneId(0), Role::Data), space.gc_frontier(PlaneId(0)));
    for (free, left, hand, expected) in [
        (1, 0, NOTHING, true),
        (0, 6, NOTHING, false),
        (0, 8, NOTHING, true),
        (1, 2, THREE, false),
        (1, 4, THREE, true),
        (0, 4, InHand { coming: 1, ..THREE }, true),
        (0, 2, InHand { coming: 1, ..THREE }, false),
    ] {
        space.regions[region.0 as usize].free = free;
        space.frontiers[moved.0 as usize].left = left;
        assert_eq!(space.is_sure(region, hand), expected, "{free} free blocks and {left} units, {hand:?}");
    }
}
