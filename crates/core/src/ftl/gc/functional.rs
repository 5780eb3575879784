//! Garbage collection without time: all valid units of a victim move at once.
//!
//! Functional writes ([`Ftl::write`]) call it. A victim moves in runs, each to one block, so that the bits and counts
//! of a run change together.

use super::job::Job;
use crate::ftl::Ftl;
use crate::ftl::space::{FrontierId, Role};
use crate::metrics::counters::{ProgramCause, ReadCause};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};

impl Ftl {
    /// Collects garbage until the plane has `stock` free blocks, or no block would gain anything.
    pub(in crate::ftl) fn clean_until(&mut self, plane: PlaneId, stock: u32) {
        while self.blocks.free_blocks(plane, Role::Data) < stock && self.collect(plane) {}
        self.refresh_ready(plane);
    }

    /// Collects garbage until the plane has the free space that `gc.pace = "proportional"` keeps, or no block would
    /// gain anything.
    ///
    /// In time a victim is moved page by page, and the free space stays at that level. Here it rises by a whole victim,
    /// so it starts below the level by half of what a victim frees, for which the mean of all closed blocks stands.
    pub(in crate::ftl) fn keep_pace(&mut self, plane: PlaneId) {
        let is_behind = |ftl: &Ftl| {
            let view = ftl.blocks.view(ftl.blocks.region(plane, Role::Data));
            let reclaimed = view.invalid_units() / view.closed_count().max(1);
            Job::default().free_units(ftl, plane) + reclaimed < ftl.pace_level()
        };
        while is_behind(self) && self.collect(plane) {}
        self.refresh_ready(plane);
    }

    /// Moves the valid units of a victim and erases it. Returns `false` if the trigger wants no garbage collection, or
    /// no block would gain anything.
    fn collect(&mut self, plane: PlaneId) -> bool {
        if !self.wants_cleaning(plane, self.blocks.free_blocks(plane, Role::Data)) {
            return false;
        }
        let Some(victim) = self.blocks.take_victim(self.blocks.region(plane, Role::Data), 0) else { return false };
        self.note_victim(plane, victim, 0);
        self.move_all(plane, victim);
        if self.shape.single_frontier {
            // The host's next write does not share a program with moved units.
            self.pad(self.blocks.gc_frontier(plane), self.shape.units_per_program);
        }
        self.blocks.doom(victim);
        self.erase_now(victim);
        true
    }

    /// Moves all valid units of a victim.
    fn move_all(&mut self, plane: PlaneId, victim: BlockId) {
        let mut copies = std::mem::take(&mut self.copies);
        self.read_valid(victim, &mut copies);
        self.blocks.invalidate_all(victim);
        // Where classes share their frontiers with moved units, each unit goes to the frontier of its own class.
        let by_class = self.shape.single_frontier && self.shape.classes > 1;
        let mut left = &copies[..];
        while let Some(&(lpn, _)) = left.first() {
            let at = self.blocks.frontier_for_moved(plane, self.class_of(lpn));
            let room = match self.blocks.room(at) {
                0 => self.blocks.data_units(),
                room => room,
            };
            let most = if by_class { 1 } else { room as usize };
            let (run, later) = left.split_at(left.len().min(most));
            self.move_run(at, run);
            left = later;
        }
        self.copies = copies;
    }

    /// Finds the valid units of a victim: their logical units, and their places.
    fn read_valid(&mut self, victim: BlockId, copies: &mut Vec<(u32, u32)>) {
        copies.clear();
        let per_page = self.shape.units_per_page;
        let (mut pages, mut last_page) = (0, u32::MAX);
        self.blocks.for_each_valid(victim, |unit| {
            let lpn = self.map.owner(unit);
            self.map.prefetch(Lpn(lpn));
            copies.push((lpn, unit.0));
            let page = per_page.divide(unit.0);
            pages += u32::from(page != last_page);
            last_page = page;
        });
        self.note_read(ReadCause::Gc, pages * self.shape.pages_per_unit);
    }

    /// Programs a run of moved units at a frontier whose block has room for all of them.
    fn move_run(&mut self, at: FrontierId, run: &[(u32, u32)]) {
        let count = run.len() as u32;
        let first = self.blocks.advance(at, count);
        for (&(lpn, _), place) in run.iter().zip(first.0..) {
            self.map.set_owner(Ppn(place), lpn);
            self.map.set_flash(Lpn(lpn), Ppn(place));
        }
        self.blocks.validate_run(first, count);
        // A page counts with its first unit.
        let per_page = self.shape.units_per_page;
        let pages_before = |unit: u32| per_page.divide(unit + per_page.divisor() - 1);
        let pages = pages_before(first.0 + count) - pages_before(first.0);
        self.counters.pages_programmed[ProgramCause::Gc as usize] += u64::from(pages * self.shape.pages_per_unit);
        self.counters.units_programmed += u64::from(count);
        self.note_run(run, first);
        self.close_if_full(Ppn(first.0 + count - 1), at);
    }

    /// Notes what each moved unit means to classes, contents, losses and the map in flash.
    fn note_run(&mut self, run: &[(u32, u32)], first: Ppn) {
        let watched =
            self.classes.is_some() || self.media.is_some() || self.faults.is_some() || self.shape.hooks.entries;
        if !watched {
            self.counters.units_moved += run.len() as u64;
            return;
        }
        for (&(lpn, from), place) in run.iter().zip(first.0..) {
            if let Some(media) = &mut self.media {
                media.copy(Ppn(from), Ppn(place));
            }
            self.copy_loss(Ppn(from), Ppn(place));
            self.note_changed(Lpn(lpn));
            self.note_moved(Lpn(lpn));
        }
    }
}
