//! Steps of the job of a plane with 16 blocks of 4 pages of 2 units each. A program has a page.

use super::*;
use crate::config::load;
use crate::metrics::counters::CopyCause;
use crate::sim::id::Lpn;

const PLANE: PlaneId = PlaneId(0);

/// Returns an FTL with eleven closed blocks, an open one for moved units, and four free ones, which is the threshold of
/// garbage collection. The first block has only the units at the offsets `valid`. The others have six valid units each.
fn ftl(valid: &[u32]) -> Ftl {
    let set = [
        "geometry={ channels = 1, chips = 1, dies = 1, planes = 1, blocks = 16, pages = 4 }",
        "geometry.page_size=8KiB",
        "geometry.mapping_unit=4KiB",
        "capacity={ logical = \"128KiB\" }",
        "gc.soft_threshold=4",
    ];
    let mut ftl = Ftl::new(&load("tiny", &set.map(str::to_owned)).unwrap(), 1, false, &Default::default()).unwrap();
    for block in 0..11 {
        let first = ftl.blocks.advance(ftl.blocks.host_frontier(PLANE, 0), 8);
        for unit in (0..8).filter(|unit| if block > 0 { *unit < 6 } else { valid.contains(unit) }) {
            let ppn = Ppn(first.0 + unit);
            ftl.blocks.validate(ppn);
            // Only the units of the first block are copied.
            if block == 0 {
                ftl.map.set_owner(ppn, unit);
                ftl.map.set_flash(Lpn(unit), ppn);
            }
        }
        ftl.blocks.close(BlockId(block));
    }
    ftl.blocks.advance(ftl.blocks.gc_frontier(PLANE), 2);
    ftl
}

/// Programs the units that were read, at most two. Returns `true` if the victim can be erased.
fn program(job: &mut Job, ftl: &mut Ftl) -> bool {
    let count = job.moving.copies.len().min(2);
    let first = ftl.bind_copies(ftl.blocks.gc_frontier(PLANE), &job.moving.copies[..count], 2, |_, _, _| {});
    let copies: Vec<_> = job.moving.copies.drain(..count).zip((first.0..).map(Ppn)).collect();
    let mut is_free = false;
    for (copy, to) in copies {
        ftl.end_copy(&copy.to(to), CopyCause::Gc).expect("the unit is valid");
        is_free = ftl.blocks.release(ftl.blocks.block_of(copy.from));
    }
    is_free
}

#[test]
fn a_victim_is_chosen_read_programmed_and_erased() {
    let mut ftl = ftl(&[0, 4, 5]);
    let mut job = Job::new(false);
    assert!(job.is_idle());
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Read { first: Ppn(0), units: 1 });
    assert_eq!((job.moving.block(), job.gain, ftl.blocks.block(BlockId(0)).dependents), (Some(BlockId(0)), 5, 1));
    // One unit does not fill a program, and the second page has no valid units.
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Read { first: Ppn(4), units: 2 });
    assert_eq!(job.reclaimed, 3);
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Write);
    assert!(!program(&mut job, &mut ftl));
    // No valid unit is left to be read. The block awaits its erase, and no other victim is needed, so that the last
    // unit is programmed with padding.
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Write);
    assert_eq!((job.awaiting_erase, job.blocks_coming(&ftl, PLANE)), (1, 1));
    assert!(program(&mut job, &mut ftl), "the last copy releases the block");
    assert!(ftl.blocks.can_erase(BlockId(0)));
    ftl.erase_now(BlockId(0));
    job.awaiting_erase = 0;
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Rest);
    assert_eq!(ftl.blocks.free_blocks(PLANE, Role::Data), 5);
    assert_eq!(ftl.counters.moved[CopyCause::Gc as usize], 3);
    ftl.blocks.recount().unwrap();
}

#[test]
fn a_victim_without_valid_units_is_erased_at_once() {
    let mut ftl = ftl(&[]);
    let mut job = Job::new(false);
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Erase(BlockId(0)));
    assert_eq!((job.awaiting_erase, job.moving.block()), (1, None));
    // The plane has more free blocks than the threshold afterwards.
    ftl.erase_now(BlockId(0));
    job.awaiting_erase = 0;
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Rest);
}

#[test]
fn a_choice_that_takes_time_is_requested_once_and_made_when_it_is_granted() {
    let mut ftl = ftl(&[0]);
    let mut job = Job::new(true);
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Choose);
    assert_eq!(job.moving.block(), None);
    job.granted = true;
    assert_eq!(job.next_step(&mut ftl, PLANE), Step::Read { first: Ppn(0), units: 1 });
    assert!(!job.granted);
}
