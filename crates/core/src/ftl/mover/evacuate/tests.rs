//! Evacuation of a block of 4 pages of 2 units each, in a small FTL.

use super::*;
use crate::config::load;
use crate::ftl::mapping::Location;
use crate::ftl::space::Role;
use crate::metrics::counters::CopyCause;
use crate::sim::id::PlaneId;

/// Returns an FTL with one plane, whose first block has units 0 to 7. Units 1 to 3 have been overwritten.
fn ftl() -> Ftl {
    let set = [
        "geometry={ channels = 1, chips = 1, dies = 1, planes = 1, blocks = 8, pages = 4 }",
        "geometry.page_size=8KiB",
        "geometry.mapping_unit=4KiB",
        "capacity={ spare = 0.6 }",
    ];
    let mut ftl = Ftl::new(&load("tiny", &set.map(str::to_owned)).unwrap(), 1, false, &Default::default()).unwrap();
    (0..8).chain(1..4).for_each(|lpn| ftl.write_whole(Lpn(lpn)));
    ftl
}

#[test]
fn an_evacuation_reads_pages_with_valid_units_and_moves_them_in_order() {
    let mut ftl = ftl();
    let victim = ftl.blocks.take_victim(ftl.blocks.region(PlaneId(0), Role::Data), 0).expect("a closed block");
    assert_eq!(victim, BlockId(0));
    let mut moving = Evacuation::default();
    assert!(moving.is_idle());
    moving.start(&ftl, victim);
    assert_eq!((moving.block(), moving.units_left(&ftl), moving.passed(&ftl)), (Some(victim), 5, 0));

    // The second page holds invalid units only.
    let read = |first, units, invalid| Some(PagesRead { first: Ppn(first), units, pages: 1, invalid });
    assert_eq!(moving.read(&mut ftl, 1), read(0, 1, 1));
    assert_eq!(moving.read(&mut ftl, 1), read(4, 2, 2));
    assert_eq!((moving.passed(&ftl), moving.unbound(), ftl.blocks.block(victim).dependents), (6, 3, 3));
    assert_eq!(moving.read(&mut ftl, 1), read(6, 2, 0));
    assert_eq!((moving.read(&mut ftl, 1), moving.end(), moving.block()), (None, Some(victim), None));
    assert_eq!(moving.copies.iter().map(|copy| copy.lpn).collect::<Vec<_>>(), [0, 4, 5, 6, 7]);
    ftl.blocks.await_erase(victim);

    // Unit 4 is overwritten before its copy ends.
    ftl.write_whole(Lpn(4));
    let written = ftl.map.get(Lpn(4));
    let at = ftl.blocks.gc_frontier(PlaneId(0));
    let mut moved_to = Vec::new();
    while !moving.copies.is_empty() {
        moving.writing = moving.copies.len().min(2);
        let first = ftl.bind_copies(at, &moving.copies[..moving.writing], 2, |_, _, _| {});
        assert!(moving.moves(victim, &ftl));
        for (copy, index) in moving.in_program() {
            let copy = copy.to(Ppn(first.0 + index));
            moved_to.push(ftl.end_copy(&copy, CopyCause::Gc).is_some());
            assert_eq!(ftl.blocks.release(victim), copy.lpn == 7, "the last copy releases the block");
        }
        moving.copies.drain(..moving.writing);
    }
    assert_eq!(moved_to, [true, false, true, true, true]);
    assert_eq!((ftl.counters.moved[CopyCause::Gc as usize], ftl.counters.wasted_copies), (4, 1));
    assert_eq!(ftl.map.get(Lpn(4)), written);
    let first = ftl.blocks.next_ppn(at).expect("room").0 - 6;
    for (lpn, place) in [(0, 0), (5, 2), (6, 3), (7, 4)] {
        assert_eq!(ftl.map.get(Lpn(lpn)), Location::Flash(Ppn(first + place)), "unit {lpn}");
    }
    assert_eq!(ftl.map.owner(Ppn(first + 5)), PADDING);
    assert!(moving.is_idle() && ftl.blocks.can_erase(victim));
    ftl.erase_now(victim);
    ftl.blocks.recount().unwrap();
}

#[test]
fn units_that_become_invalid_before_they_are_read_are_skipped() {
    let mut ftl = ftl();
    let mut moving = Evacuation::default();
    moving.start(&ftl, BlockId(0));
    [5, 6, 7].into_iter().for_each(|lpn| ftl.write_whole(Lpn(lpn)));
    let both = moving.read(&mut ftl, u32::MAX);
    assert_eq!(both, Some(PagesRead { first: Ppn(0), units: 2, pages: 2, invalid: 4 }));
    assert_eq!(moving.read(&mut ftl, 1), None);
}
