//! Garbage collection without time: all valid units of a victim move at once.
//!
//! Functional writes ([`Ftl::write`]) use it. The steps are those of timed mode, but a victim is read and programmed in
//! runs, so that the bits and counts of a run change together.

use super::job::Job;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Change, PageMap};
use crate::ftl::mover::Evacuation;
use crate::ftl::mover::copy::CopySource;
use crate::ftl::space::{Claim, FrontierId, InHand, Role};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};

impl Ftl {
    /// Collects garbage until the plane has `free_blocks` free blocks, or no victim would free space.
    pub(in crate::ftl) fn collect_until(&mut self, plane: PlaneId, free_blocks: u32) {
        let level = self.pools.as_ref().map_or(free_blocks, |pools| pools.level(free_blocks, self.shape.soft));
        while self.blocks.free_together(plane) < level && self.collect(plane) {}
        self.refresh_ready(plane);
    }

    /// Collects garbage until the plane has the free space that `gc.pace = "proportional"` and bursts keep, or no
    /// victim would free space.
    ///
    /// Timed garbage collection moves a victim page by page, and the free space stays at that level, or rises above it
    /// by the space that a burst frees. Here it rises by a whole victim. So garbage collection starts below the level
    /// by about half of the invalid units of a victim, as a mean over closed blocks.
    pub(in crate::ftl) fn keep_pace(&mut self, plane: PlaneId) {
        let is_behind = |ftl: &Ftl| {
            let view = ftl.blocks.view(ftl.blocks.region(plane, Role::Data));
            let reclaimed = view.invalid_units() / view.closed_count().max(1);
            Job::default().free_units(ftl, plane) + reclaimed < ftl.pace_level()
        };
        while is_behind(self) && self.collect(plane) {}
        self.refresh_ready(plane);
    }

    /// Collects garbage in the planes with the least free space, until the device has the free space that bursts keep.
    /// Otherwise the first bursts would follow one another.
    pub(in crate::ftl) fn keep_level(&mut self) {
        let free = |ftl: &Ftl, plane: u32| Job::default().free_units(ftl, PlaneId(plane));
        let planes = self.shape.planes;
        while (0..planes).map(|plane| u64::from(free(self, plane))).sum::<u64>() < self.burst_level() {
            let least = (0..planes).min_by_key(|&plane| free(self, plane)).map_or(PlaneId(0), PlaneId);
            if !self.collect(least) {
                return;
            }
        }
    }

    /// Moves the valid units of a victim and erases it. Returns `false` if the trigger does not start garbage
    /// collection, or no victim would free space.
    fn collect(&mut self, plane: PlaneId) -> bool {
        if !self.wants_gc(plane, self.blocks.free_together(plane)) {
            return false;
        }
        if self.blocks.has_superblocks() {
            return self.collect_superblock(plane);
        }
        let anywhere = self.moves_anywhere();
        let target = if anywhere { self.plane_for_copies(plane, |_| Some(InHand::default())) } else { None };
        // The erase of a victim may fail, and then gives no space back.
        let has_room = |to| self.blocks.may_take(self.blocks.region(PlaneId(to), Role::Data), Claim::VICTIM);
        if anywhere && target.is_none() || self.life.is_some() && !self.planes_together(plane).all(has_room) {
            self.end_life();
            return false;
        }
        let Some(victim) = self.blocks.take_victim(self.blocks.collected_with(plane), 0) else { return false };
        let from = self.blocks.plane_of(victim);
        let to = target.unwrap_or(from);
        self.note_victim(from, victim, 0);
        self.evacuate_now(to, victim);
        if self.shape.single_frontier {
            // The next host write does not share a program with moved units.
            self.pad(self.blocks.gc_frontier(to), self.shape.units_per_program);
        }
        self.blocks.await_erase(victim);
        self.erase_or_retire_now(victim);
        if self.blocks.is_migrating(from) {
            self.migrate(from);
        }
        if self.pools.is_some() {
            self.refresh_ready(from);
            self.refresh_ready(to);
        }
        true
    }

    /// Moves the remaining valid units of a victim and erases it. Its region has room for them, because it had room for
    /// the whole victim.
    pub fn finish_victim(&mut self, victim: BlockId) {
        let plane = self.blocks.plane_of(victim);
        self.evacuate_now(plane, victim);
        let group = self.shape.units_per_program;
        for class in 0..self.shape.classes as u8 {
            self.pad(self.blocks.host_frontier(plane, class), group);
        }
        self.pad(self.blocks.gc_frontier(plane), group);
        self.blocks.await_erase(victim);
        self.erase_or_retire_now(victim);
        if self.blocks.is_migrating(plane) {
            self.migrate(plane);
        }
        if self.blocks.has_wear_frontier() {
            self.pad(self.blocks.wear_frontier(plane), group);
        }
        self.refresh_ready(plane);
    }

    /// Moves the data of the cold block that wear leveling has named into a worn block.
    fn migrate(&mut self, plane: PlaneId) {
        let region = self.blocks.region(plane, Role::Data);
        if self.blocks.may_take(region, Claim::VICTIM)
            && let Some(cold) = self.blocks.take_cold(plane)
        {
            self.note_migration();
            self.evacuate_now(plane, cold);
            self.blocks.await_erase(cold);
            self.erase_or_retire_now(cold);
        }
        self.blocks.end_migration(plane);
    }

    /// Moves all valid units of a block in runs. Each run goes to one block.
    pub(in crate::ftl) fn evacuate_now(&mut self, plane: PlaneId, victim: BlockId) {
        let cause = self.blocks.block(victim).moved_for;
        let mut moving = Evacuation::with_memory(std::mem::take(&mut self.copies));
        moving.start(self, victim);
        if let Some(read) = moving.read(self, u32::MAX) {
            self.note_read(self.blocks.cause_of_read(victim), read.pages * self.shape.pages_per_unit);
            self.blocks.invalidate_all(victim);
            self.blocks.release_from(victim, read.units);
        }
        // If classes share their frontiers with moved units, each unit goes to the frontier of its own class.
        let by_class = self.shape.single_frontier && self.shape.classes > 1;
        let mut left = &moving.copies[..];
        while let Some(first) = left.first() {
            let plane = self.blocks.plane_of_copies(plane).unwrap_or(plane);
            let at = self.blocks.frontier_for_copy(plane, first.from, self.class_of(first.lpn));
            let room = match self.blocks.room(at) {
                0 => self.blocks.data_units(),
                room => room,
            };
            let most = if by_class { 1 } else { room as usize };
            let (run, later) = left.split_at(left.len().min(most));
            self.move_run(at, run, cause);
            left = later;
        }
        moving.copies.clear();
        self.copies = moving.copies;
    }

    /// Programs a run of moved units at a frontier whose block has room for all of them.
    fn move_run(&mut self, at: FrontierId, run: &[CopySource], cause: CopyCause) {
        let count = run.len() as u32;
        let first = self.bind_copies(at, run, count, PageMap::set_flash);
        self.blocks.validate_run(first, count);
        // A page is counted with its first unit.
        let per_page = self.shape.units_per_page;
        let pages_before = |unit: u32| per_page.divide(unit + per_page.divisor() - 1);
        let pages = pages_before(first.0 + count) - pages_before(first.0);
        let cause_of_program = self.blocks.cause_of_copy(self.blocks.block_of(run[0].from));
        self.counters.pages_programmed[cause_of_program as usize] += u64::from(pages * self.shape.pages_per_unit);
        self.counters.units_programmed += u64::from(count);
        self.note_run(run, first, cause);
        if self.blocks.levels_wear() {
            self.blocks.note_copied(self.blocks.block_of(run[0].from), self.blocks.block_of(first), count);
        }
        self.close_if_full(Ppn(first.0 + count - 1), at, Role::Data);
        if self.blocks.has_superblocks() {
            self.program_parity_now(self.blocks.plane_of(self.blocks.block_of(first)));
        }
    }

    /// Updates classes, contents, uncorrectable units and the map in flash for units that have moved.
    fn note_run(&mut self, run: &[CopySource], first: Ppn, cause: CopyCause) {
        let watched = self.classes.is_some() || self.media.is_some() || self.faults.is_some() || !self.has_page_map;
        if !watched {
            self.counters.moved[cause as usize] += run.len() as u64;
            return;
        }
        for (copy, ppn) in run.iter().zip((first.0..).map(Ppn)) {
            if let Some(media) = &mut self.media {
                media.copy(copy.from, ppn);
            }
            self.copy_loss(copy.from, ppn);
            self.changed_now(Lpn(copy.lpn), Change::Moved(copy.from));
            self.note_moved(Lpn(copy.lpn), cause);
        }
    }
}
