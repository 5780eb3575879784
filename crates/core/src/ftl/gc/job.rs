//! Garbage collection of one plane, step by step: chooses victims, reads their pages, and programs and erases.

use crate::config::advanced::Waste;
use crate::ftl::Ftl;
use crate::ftl::mover::{Evacuation, PagesRead};
use crate::ftl::space::{Block, Claim, InHand, Role};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::work::Class;

/// Next step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read valid units of the page of `first`.
    Read {
        /// The first valid unit of the page.
        first: Ppn,
        /// Number of units that are moved from the page.
        units: u32,
    },
    /// Move the page of `first` within the plane.
    CopyBack {
        /// The first valid unit of the page.
        first: Ppn,
    },
    /// Program units that have been read.
    Write,
    /// Erase a victim that has been read and that nothing depends on.
    Erase(BlockId),
    /// Await the erase of a victim of another plane, which has been read.
    Leave(BlockId),
    /// Choose the next victim. The choice takes time, and has to be granted.
    Choose,
    /// No step can be taken now.
    Rest,
}

/// Garbage collection of one plane. It evacuates one block at a time.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// True from the choice of a step until its operation has ended, so that no two steps are in flight.
    pub busy: bool,
    /// Step that was chosen and has not been taken, and its scheduling class.
    pub coming: Option<(Step, Class)>,
    /// Number of reads in flight in addition to the one that has to end last, in other planes of its die.
    pub reads_beside: u32,
    /// Evacuation of the victims.
    pub moving: Evacuation,
    /// Number of invalid units that were passed since the last host program of the plane.
    pub reclaimed: u32,
    /// Units that the victim still frees, less those that must be left. Blind copy-backs may waste all but one program
    /// of them.
    pub gain: u32,
    /// Number of victims that have been read and await their erase, without failed blocks.
    pub awaiting_erase: u32,
    /// Number of folded blocks of the SLC cache that have been read and await their erase, without failed blocks.
    pub folded: u32,
    /// Number of failed blocks that have been read and are not retired.
    pub leaving: u32,
    /// If programs may fail: number of `awaiting_erase` blocks with dependents. A dependent may be a write that has
    /// failed and waits for a free block, so nothing may wait for the erase of these blocks.
    pub held: u32,
    /// True if the choice of the step has made room for the host: a failed block was chosen, for which room was kept,
    /// or a block that was set aside for cold data is free again.
    pub made_room: bool,
    /// True if the last victim was chosen in idle time (`gc.background`).
    pub is_background: bool,
    /// True if the job has waited for more idle time since its last step.
    pub rests: bool,
    /// True if the job has a turn in a burst (`gc.pace.burst`): it may gather units for a program.
    pub has_turn: bool,
    /// True if the units that have been read are those of pages that were rebuilt. They are programmed before a block
    /// is chosen, because it may hold them.
    has_rebuilt: bool,
    /// True if choices take time. Each is requested once, and made when it is granted.
    asks: bool,
    /// True if a choice has been granted.
    pub granted: bool,
    requesting: bool,
    /// True if garbage collection may be held (`Device::hold_gc`), so that it starts again and again in idle time.
    pub takes_turns: bool,
    /// Number of changes of the blocks when no victim was found in idle time.
    found_none: Option<u64>,
}

impl Job {
    /// Creates an idle job. `asks` is true if choices take time.
    pub fn new(asks: bool) -> Job {
        Job { asks, ..Job::default() }
    }

    /// Returns `true` if the job has no step in flight, no units to move, and no blocks to erase.
    pub fn is_idle(&self) -> bool {
        !self.busy && self.moving.is_idle() && self.awaiting_erase + self.folded + self.leaving == 0
    }

    /// Returns the units that the job of a plane still has to program, and the blocks of the plane that will be free.
    pub fn in_hand(&self, ftl: &Ftl, plane: PlaneId) -> InHand {
        InHand {
            units: self.moving.units_left(ftl),
            read: self.moving.copies.len() as u32,
            waste: if ftl.shape().copy_back == Waste::Blind { self.gain } else { 0 },
            awaiting_erase: self.awaiting_erase,
            coming: self.blocks_coming(ftl, plane),
        }
    }

    /// Returns the next step. No operation of the job is in flight.
    ///
    /// If garbage collection continues, a program is filled with units of the next victim, so that nothing is padded
    /// while space is short. When it stops, the remaining units are programmed with padding.
    pub fn next_step(&mut self, ftl: &mut Ftl, plane: PlaneId) -> Step {
        debug_assert!(!self.busy);
        let group = ftl.shape().units_per_program as usize;
        if self.moving.copies.len() >= group {
            return Step::Write;
        }
        if ftl.faults.is_some() && self.moving.block().is_none() && self.moves_rebuilt(ftl, plane) {
            return if self.has_room_for_copies(ftl, plane) { Step::Write } else { Step::Rest };
        }
        loop {
            if self.moving.block().is_none() && !self.choose(ftl, plane) {
                if std::mem::take(&mut self.requesting) {
                    return Step::Choose;
                }
                // The units that were read may have to wait for the erase of a victim that has dependents.
                let waits = self.moving.copies.is_empty() || !self.has_room_for_copies(ftl, plane);
                return if waits { Step::Rest } else { Step::Write };
            }
            if let Some(step) = self.read_next(ftl, plane) {
                return step;
            }
            let Some(victim) = self.moving.end() else { continue };
            ftl.blocks.await_erase(victim);
            if ftl.blocks.plane_of(victim) != plane {
                return Step::Leave(victim);
            }
            let &Block { failed, role, .. } = ftl.blocks.block(victim);
            let counted = match role {
                _ if failed => &mut self.leaving,
                Role::Cache => &mut self.folded,
                _ => &mut self.awaiting_erase,
            };
            *counted += 1;
            if ftl.blocks.can_erase(victim) {
                return Step::Erase(victim);
            }
            self.held +=
                u32::from(ftl.faults.is_some() && !failed && role != Role::Cache && !ftl.blocks.has_superblocks());
        }
    }

    /// Returns the free units of a plane: of free and open blocks, of victims that await their erase, and of the
    /// scanned part of the current one, less the units that were read and are not programmed yet.
    pub fn free_units(&self, ftl: &Ftl, plane: PlaneId) -> u32 {
        let (blocks, data) = (&ftl.blocks, ftl.blocks.data_units());
        let free = (blocks.free_blocks(plane, Role::Data) + self.awaiting_erase) * data
            + blocks.open_units(plane, Role::Data)
            + if self.folds(ftl) { 0 } else { self.moving.passed(ftl) };
        free.saturating_sub(self.moving.unbound())
    }

    /// Returns `true` if the job evacuates a block of the SLC cache, which frees no space of data.
    fn folds(&self, ftl: &Ftl) -> bool {
        ftl.blocks.has_cache() && self.moving.block().is_some_and(|block| ftl.blocks.block(block).role == Role::Cache)
    }

    /// Returns `true` if the next step of the job belongs to a burst: it has a victim with valid units that were not
    /// programmed, or needs one. Other blocks are evacuated without turns.
    pub fn needs_turn(&self, ftl: &Ftl) -> bool {
        let copies = &self.moving.copies;
        let is_of_victim = self.moving.block().map_or(copies.is_empty(), |block| {
            let is_victim = ftl.blocks.block(block).moved_for == CopyCause::Gc && !ftl.blocks.block(block).failed;
            match copies.first() {
                Some(copy) => is_victim && ftl.blocks.block_of(copy.from) == block,
                None => is_victim && self.moving.has_more(ftl),
            }
        });
        let is_whole = copies.len() >= ftl.shape().units_per_program as usize || !self.moving.back.is_empty();
        is_of_victim && !is_whole
    }

    /// Returns `true` if the plane has no room for host writes, and no erase will give it some.
    pub fn lacks_room(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        !ftl.blocks.has_host_room(plane) && self.free_blocks(ftl, plane) <= ftl.blocks.reserve(plane, Role::Data)
    }

    /// Returns `true` if the job has no step in flight, no units that were read, and no blocks to erase.
    pub fn pauses(&self) -> bool {
        let is_empty = self.moving.copies.is_empty() && self.moving.back.is_empty();
        !self.busy && is_empty && self.awaiting_erase + self.folded + self.leaving == 0
    }

    /// Returns the number of free blocks of a plane, with victims that await their erase and will get it.
    fn free_blocks(&self, ftl: &Ftl, plane: PlaneId) -> u32 {
        ftl.blocks.free_blocks(plane, Role::Data) + self.awaiting_erase - self.held
    }

    /// Returns `true` if the current victim, or the next one that was assigned to the job, was chosen in idle time and
    /// waits for more of it (`gc.background.preempt`). Nothing waits for such a victim, and no program is due.
    pub fn waits_for_idle_time(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        let is_due = match self.moving.block() {
            Some(_) => self.moving.copies.len() >= ftl.shape().units_per_program as usize,
            None => !self.moving.copies.is_empty(),
        };
        !is_due && self.leaves_victim(ftl, plane)
    }

    /// Returns `true` if the current victim, or the next one that was assigned to the job, is left to later idle time.
    fn leaves_victim(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        let next = || ftl.pools.as_ref().and_then(|pools| pools.assigned(plane));
        self.moving.block().or_else(next).is_some_and(|victim| ftl.can_leave(plane, victim))
            && !ftl.has_failed(plane)
            && !ftl.blocks.is_migrating(plane)
    }

    /// Returns the number of blocks of the plane that will be free when the units of the job have been moved.
    pub fn blocks_coming(&self, ftl: &Ftl, plane: PlaneId) -> u32 {
        self.awaiting_erase - self.held + self.is_evacuating(ftl, plane)
    }

    /// Returns the number of blocks of a plane that the job evacuates and that will be free: 0 or 1.
    pub fn is_evacuating(&self, ftl: &Ftl, plane: PlaneId) -> u32 {
        let is_of = |block| ftl.blocks.plane_of(block) == plane && !ftl.blocks.block(block).failed;
        u32::from(self.moving.block().is_some_and(is_of) && !self.folds(ftl))
    }

    /// Chooses a failed block, if its units find room. They must leave room for a victim, and for the units of another
    /// block that may fail.
    fn choose_failed(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let Some(failed) = ftl.first_failed(plane, Role::Data) else { return false };
        let claim = Claim::Failed { hand: self.in_hand(ftl, plane), valid: u32::from(ftl.blocks.block(failed).valid) };
        if !ftl.blocks.may_take(ftl.blocks.region(plane, Role::Data), claim) {
            return false;
        }
        ftl.take_failed(failed);
        self.moving.start(ftl, failed);
        (self.gain, self.made_room, self.is_background) = (0, true, false);
        true
    }

    /// Returns `true` if the job moves units of pages that were rebuilt, and takes those that wait.
    #[cold]
    fn moves_rebuilt(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        if self.moving.copies.is_empty() {
            ftl.take_rebuilt(plane, &mut self.moving.copies);
            self.has_rebuilt = !self.moving.copies.is_empty();
        }
        self.has_rebuilt
    }

    /// Returns `true` if units that were read find room now.
    fn has_room_for_copies(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        let blocks = &ftl.blocks;
        let is_cold = self.moving.copies.first().is_some_and(|copy| blocks.is_cold(blocks.block_of(copy.from)));
        (is_cold && blocks.room_in_worn(plane) > 0) || blocks.may_take(blocks.region(plane, Role::Data), Claim::Move)
    }

    /// Chooses a cold block, whose units fill a worn one, if wear leveling has named one. If the units would have to
    /// wait, they stay, so that nothing waits for the worn block, which was set aside.
    fn choose_cold(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let region = ftl.blocks.region(plane, Role::Data);
        // Nothing may wait for room that is left only in the worn block. A failed program of the migration goes
        // elsewhere.
        let may_start = ftl.blocks.cold_due(plane).is_some()
            && self.moving.copies.is_empty()
            && ftl.blocks.may_take(region, Claim::Victim(self.in_hand(ftl, plane)))
            && room_to_leave(ftl, plane, 0) == 0;
        if may_start && let Some(cold) = ftl.blocks.take_cold(plane) {
            ftl.note_migration();
            self.moving.start(ftl, cold);
            (self.gain, self.is_background) = (0, false);
            return true;
        }
        self.made_room |= ftl.blocks.end_migration(plane);
        false
    }

    /// Returns `true` if units of the last victim have to be programmed before the next one is chosen, because they go
    /// elsewhere than those of the next one.
    fn must_write_first(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        let Some(copy) = self.moving.copies.first() else { return false };
        let is_cold = ftl.blocks.is_cold(ftl.blocks.block_of(copy.from));
        (is_cold || ftl.blocks.cold_due(plane).is_some()) && self.has_room_for_copies(ftl, plane)
    }

    /// Takes the victim that was assigned to the job, if its units find room.
    fn choose_assigned(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let Some(pools) = &ftl.pools else { return false };
        let claim = Claim::Victim(self.in_hand(ftl, plane));
        // A whole superblock has found room.
        let has_room =
            || ftl.blocks.has_superblocks() || ftl.blocks.may_take(ftl.blocks.region(plane, Role::Data), claim);
        if pools.assigned(plane).is_none() || self.leaves_victim(ftl, plane) || !has_room() {
            return false;
        }
        if self.asks && !std::mem::take(&mut self.granted) {
            self.requesting = true;
            return false;
        }
        let Some(victim) = ftl.pools.as_mut().and_then(|pools| pools.take_assigned(plane)) else { return false };
        let from = ftl.blocks.plane_of(victim);
        let &Block { role, moved_for, .. } = ftl.blocks.block(victim);
        if role == Role::Data && moved_for != CopyCause::FailedBlock {
            ftl.note_victim(from, victim, if from == plane { self.awaiting_erase } else { 0 });
        }
        self.is_background = ftl.blocks.block(victim).moved_for == CopyCause::Background;
        self.moving.start(ftl, victim);
        let left = if ftl.shape().trim_journal { ftl.shape().units_per_program } else { 0 };
        let gain = (ftl.blocks.data_units() - u32::from(ftl.blocks.block(victim).valid)).saturating_sub(left);
        self.gain = if from == plane { gain } else { 0 };
        true
    }

    /// Chooses a block to evacuate: a cold or failed one, a victim, one to refresh, or a block of the SLC cache.
    fn choose(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let granted = self.granted;
        if self.choose_data(ftl, plane) {
            return true;
        }
        if ftl.refresh.is_some() && !self.requesting && self.choose_refreshed(ftl, plane) {
            return true;
        }
        if !ftl.blocks.has_cache() || self.requesting || !ftl.folds(plane) {
            return false;
        }
        // A choice that found no victim is also that of a block to fold.
        self.granted = granted;
        self.choose_folded(ftl, plane)
    }

    /// Chooses a block to refresh, if one waits. It frees no space, and its erase may have to wait for trim records. So
    /// the plane has a free block beyond its reserve, and is above the hard threshold, where the host would wait for
    /// the refresh. The copies have programs of their own, and take no more room than the block gives back.
    fn choose_refreshed(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let least = ftl.shape().hard.max(ftl.blocks.reserve(plane, Role::Data));
        let may_start = self.moving.copies.is_empty() && ftl.blocks.free_blocks(plane, Role::Data) > least;
        let Some(refresh) = ftl.refresh.as_mut().filter(|_| may_start) else { return false };
        let Some(block) = refresh.first(&ftl.blocks, plane) else { return false };
        refresh.remove_first(plane);
        ftl.blocks.take_refreshed(block);
        ftl.counters.errors.refreshed += 1;
        self.moving.start(ftl, block);
        (self.gain, self.is_background) = (0, true);
        true
    }

    /// Chooses a block of the SLC cache, if one is to be folded and its units find room.
    fn choose_folded(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let hand = self.in_hand(ftl, plane);
        let Some(block) = ftl.next_folded(plane, hand, self.folded) else { return false };
        if self.asks && !std::mem::take(&mut self.granted) {
            self.requesting = true;
            return false;
        }
        ftl.start_folding(block);
        self.moving.start(ftl, block);
        (self.gain, self.is_background) = (0, ftl.folding.as_ref().is_some_and(|folding| folding.is_idle));
        true
    }

    /// Chooses a victim, if the plane needs garbage collection and the units of a victim find room.
    fn choose_data(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        if ftl.blocks.levels_wear() {
            if self.must_write_first(ftl, plane) {
                return false;
            }
            if ftl.blocks.is_migrating(plane) && self.choose_cold(ftl, plane) {
                return true;
            }
        }
        if ftl.faults.is_some() && self.choose_failed(ftl, plane) {
            return true;
        }
        if ftl.pools.is_some() {
            return self.choose_assigned(ftl, plane);
        }
        let free_blocks = self.free_blocks(ftl, plane);
        let shape = *ftl.shape();
        let is_above = if shape.bursts { !self.has_turn } else { free_blocks > shape.soft };
        let is_background = is_above || !ftl.wants_gc(plane, free_blocks);
        if is_background && free_blocks >= shape.until {
            return false;
        }
        let is_paced = shape.paces && !is_background && ftl.blocks.takes_host_write(plane);
        if is_paced && self.free_units(ftl, plane) >= ftl.pace_level() {
            return false;
        }
        // A whole victim must find room after the units that were read. If it does not, those are programmed first.
        // If the host shares the frontier, it may take the open block before that, so no units are kept for the next
        // victim.
        let data = ftl.blocks.data_units();
        let in_hand = if self.moving.copies.is_empty() { 0 } else { shape.units_per_program };
        if !ftl.blocks.may_take(ftl.blocks.region(plane, Role::Data), Claim::Victim(self.in_hand(ftl, plane))) {
            return false;
        }
        // Turns that are shorter than all choices of a device must not repeat those that found nothing.
        let changes = self.takes_turns.then(|| ftl.counters.changes_of_blocks());
        if is_background && changes.is_some() && self.found_none == changes {
            return false;
        }
        if self.asks && !std::mem::take(&mut self.granted) {
            self.requesting = true;
            return false;
        }
        let least = room_to_leave(ftl, plane, in_hand);
        let region = ftl.blocks.region(plane, Role::Data);
        let gain = if is_background { shape.gain } else { 0 };
        let Some(victim) = ftl.blocks.take_victim(region, least.max(gain)) else {
            self.found_none = changes.filter(|_| is_background);
            return false;
        };
        if is_background {
            ftl.blocks.move_for(victim, CopyCause::Background);
        }
        ftl.note_victim(plane, victim, self.awaiting_erase);
        self.is_background = is_background;
        self.moving.start(ftl, victim);
        self.gain = data - u32::from(ftl.blocks.block(victim).valid) - least;
        true
    }

    /// Reads the next page of the victim that has valid units. Returns `None` if there is none.
    fn read_next(&mut self, ftl: &mut Ftl, plane: PlaneId) -> Option<Step> {
        let page = self.moving.read(ftl, 1)?;
        self.reclaimed += if self.folds(ftl) { 0 } else { page.invalid };
        // Data that is refreshed has to be corrected.
        let block = ftl.blocks.block_of(page.first);
        let is_through = ftl.blocks.plane_of(block) != plane || ftl.blocks.block(block).moved_for == CopyCause::Refresh;
        let copy_back = if is_through { Waste::Off } else { ftl.shape().copy_back };
        // Wise copy-back moves no invalid units. A page that has some goes through the controller, which packs the
        // valid ones.
        let is_whole = page.units == ftl.shape().units_per_page.divisor();
        if copy_back == Waste::Blind || (copy_back == Waste::Wise && is_whole) {
            self.moving.move_back(page.units);
            return Some(Step::CopyBack { first: page.first });
        }
        Some(Step::Read { first: page.first, units: page.units })
    }
}

impl Job {
    /// Reads the next page of the victim that has valid units, if it is in the same row as the page of `first`: the
    /// pages at one address of the planes that are programmed together.
    pub fn read_beside(&mut self, ftl: &mut Ftl, first: Ppn) -> Option<PagesRead> {
        let row = ftl.shape().units_per_row;
        let next = self.moving.next_valid(ftl).filter(|next| row.divide(next.0) == row.divide(first.0))?;
        let page = self.moving.read(ftl, 1)?;
        debug_assert_eq!(page.first, next);
        self.reclaimed += if self.folds(ftl) { 0 } else { page.invalid };
        self.reads_beside += 1;
        Some(page)
    }

    /// Ends a read. Returns `true` if it was the last one in flight.
    #[inline]
    pub fn end_read(&mut self) -> bool {
        let is_last = self.reads_beside == 0;
        self.reads_beside -= u32::from(!is_last);
        is_last
    }
}

/// Returns the number of units that a victim must free. Its erase may have to wait for trim records, and those for
/// room. If the reserve and the frontier of moved units may be the only room, a program is left for the records. The
/// host may have used the other free blocks by then, and also a frontier that it shares.
fn room_to_leave(ftl: &Ftl, plane: PlaneId, in_hand: u32) -> u32 {
    let shape = ftl.shape();
    let left = if shape.single_frontier { 0 } else { ftl.blocks.room(ftl.blocks.gc_frontier(plane)) };
    let is_short = shape.trim_journal && left < in_hand + shape.units_per_program;
    if is_short { shape.units_per_program } else { 0 }
}

#[cfg(test)]
mod tests;
