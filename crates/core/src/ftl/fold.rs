//! Folding: chooses the blocks of the SLC cache whose data move to native blocks.
//!
//! The job of a plane (`gc/job.rs`) folds as it collects garbage: it evacuates the chosen block, and has it erased.
//! Garbage collection goes first, and folding leaves its reserve ([`Claim::Fold`]).

use super::Ftl;
use super::mapping::Location;
use super::space::{Claim, InHand, Role};
use crate::metrics::counters::{ProgramCause, ReadCause};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};

impl Ftl {
    /// Returns `true` if the job of a plane has units other than those of a victim to move: of a failed or cold block,
    /// of the SLC cache, of a block to refresh, or of a page that was rebuilt.
    #[inline(never)]
    pub fn has_other_work(&self, plane: PlaneId) -> bool {
        let is_refreshed = || self.refresh.as_ref().is_some_and(|refresh| refresh.has_waiting(plane));
        self.folds(plane)
            || self.has_failed(plane)
            || self.blocks.is_migrating(plane)
            || self.has_rebuilt(plane)
            || is_refreshed()
    }

    /// Returns `true` if a block of a plane is to be folded.
    pub fn folds(&self, plane: PlaneId) -> bool {
        self.folding.as_ref().is_some_and(|folding| {
            folding.is_due(plane, self.blocks.full_of_cache(plane), self.blocks.cache_takes_write(plane))
        })
    }

    /// Returns `true` if some block could be folded in idle time.
    pub fn has_full_cache(&self) -> bool {
        (0..self.shape.planes).any(|plane| self.blocks.full_of_cache(PlaneId(plane)) > 0)
    }

    /// Chooses the block that is folded next in a plane, if one is to be folded and its units find room: the one that
    /// was filled first. `hand` is what the job of the plane has still to move. `coming` is the number of blocks of the
    /// cache that wait for their erase.
    pub fn next_folded(&mut self, plane: PlaneId, hand: InHand, coming: u32) -> Option<BlockId> {
        let full = self.blocks.full_of_cache(plane);
        let has_room = coming > 0 || self.blocks.cache_takes_write(plane);
        let folding = self.folding.as_mut()?;
        let is_due = folding.is_due(plane, full, has_room);
        if !folding.continues(plane, full, has_room) && !(is_due && (folding.is_idle || !has_room)) {
            return None;
        }
        let block = self.blocks.oldest_of_cache(plane)?;
        let claim = Claim::Fold { hand, valid: u32::from(self.blocks.block(block).valid) };
        self.blocks.may_take(self.blocks.region(plane, Role::Data), claim).then_some(block)
    }

    /// Starts to fold a block.
    pub fn start_folding(&mut self, block: BlockId) {
        let is_idle = self.folding.as_ref().is_some_and(|folding| folding.is_idle);
        self.counters.slc.folded += 1;
        self.counters.slc.folded_idle += u64::from(is_idle);
        self.blocks.take_folded(block);
    }

    /// Folds the block of a plane that was filled first, without time. Returns `false` if no block is full, or its
    /// units find no room.
    pub(super) fn fold_now(&mut self, plane: PlaneId) -> bool {
        let Some(block) = self.blocks.oldest_of_cache(plane) else { return false };
        self.collect_until(plane, self.shape.soft + 1);
        let claim = Claim::Fold { hand: InHand::default(), valid: u32::from(self.blocks.block(block).valid) };
        if !self.blocks.may_take(self.blocks.region(plane, Role::Data), claim) {
            return false;
        }
        self.start_folding(block);
        self.evacuate_now(plane, block);
        self.blocks.await_erase(block);
        self.erase_or_retire_now(block);
        self.refresh_ready(plane);
        true
    }

    /// Writes a unit to the cache of a plane, without time. A full cache folds its oldest block first. Returns `false`
    /// if functional writes go to native blocks, or if the device is worn out.
    #[cold]
    pub(super) fn place_in_cache(
        &mut self,
        plane: PlaneId,
        lpn: Lpn,
        old: Location,
        contents: Option<(u32, u32, u32)>,
    ) -> bool {
        if self.folding.as_ref().is_none_or(|folding| folding.is_bypassed) {
            return false;
        }
        while !self.blocks.cache_takes_write(plane) {
            if !self.fold_now(plane) {
                return false;
            }
        }
        let at = self.blocks.cache_frontier(plane);
        let before = self.counters.pages_programmed[ProgramCause::Host as usize];
        let ppn = self.program_now(at, ProgramCause::Host, lpn.0);
        self.note_programmed_in_slc(ProgramCause::Host, before);
        self.counters.slc.cache_units += 1;
        self.written_now(lpn, old, ppn, contents);
        self.close_if_full(ppn, at, Role::Cache);
        self.refresh_ready(plane);
        true
    }

    /// Completes the program that functional writes have started in the cache of a plane. If idle time folds, folds all
    /// full blocks.
    pub(super) fn seal_cache(&mut self, plane: PlaneId) {
        let before = self.counters.pages_programmed[ProgramCause::Padding as usize];
        self.pad(self.blocks.cache_frontier(plane), self.blocks.size(Role::Cache).program_units);
        self.note_programmed_in_slc(ProgramCause::Padding, before);
        let folds_all = self.folding.as_ref().is_some_and(|folding| folding.idle.is_some());
        while folds_all && self.fold_now(plane) {}
    }

    /// Counts the pages of a cause that were programmed in SLC mode since there were `before`.
    fn note_programmed_in_slc(&mut self, cause: ProgramCause, before: u64) {
        let count = self.counters.pages_programmed[cause as usize] - before;
        self.counters.slc.pages_programmed[cause as usize] += count;
    }

    /// Counts a read of `pages` pages if it is in the SLC cache. Returns `true` if it is.
    #[inline(never)]
    pub fn note_cache_read(&mut self, ppn: Ppn, cause: ReadCause, pages: u32) -> bool {
        let is_cached = self.blocks.role_at(ppn) == Role::Cache;
        self.counters.slc.pages_read[cause as usize] += if is_cached { u64::from(pages) } else { 0 };
        is_cached
    }

    /// Counts one program command of host writes in the SLC cache, which holds `units` units of data.
    #[cold]
    pub fn note_cache_program(&mut self, plane: PlaneId, cause: ProgramCause, units: u32) {
        let size = *self.blocks.size(Role::Cache);
        let padding = self.counters.pages_programmed[ProgramCause::Padding as usize];
        let before = self.counters.pages_programmed[cause as usize];
        self.note_program_of(&size, cause, units);
        self.note_programmed_in_slc(cause, before);
        self.note_programmed_in_slc(ProgramCause::Padding, padding);
        self.counters.slc.cache_units += u64::from(units);
        self.note_in_pools(plane, cause, units);
    }
}
