//! Wear leveling: applies the wear policy to free blocks and victims, and prepares its migrations.
//!
//! A migration fills a worn block with the data of a cold block. The worn block has just been erased, and is set aside
//! instead of becoming free. Garbage collection then moves the units of the cold block to the frontier of migrated
//! units, which opens the worn block, and erases the cold block, which becomes free in place of the worn one. Room that
//! is left in the worn block takes the units of the next cold block.

use super::region::RegionId;
use super::{BlockState, FrontierId, LOOK_AHEAD, RegionView, Role, Space};
use crate::ftl::gc::wear::WearPolicy;
use crate::metrics::counters::{CopyCause, EraseCause, ProgramCause, ReadCause};
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::work::Purpose;

impl Space {
    /// Calls the wear policy with a view of a region of a plane. The mean of the erases is that of its pool, if garbage
    /// collection works by pool. Returns `None` if wear is not leveled.
    #[cold]
    fn ask_wear<R>(&mut self, region: RegionId, ask: impl FnOnce(&mut dyn WearPolicy, &RegionView) -> R) -> Option<R> {
        let mut wear = self.wear.take()?;
        let view = self.view(region);
        let (erases, count) = match view.role() {
            Role::Data => self.erases_with(view.plane()),
            Role::Map | Role::Cache | Role::Parity => (view.erases, view.count),
        };
        let view = RegionView { cold: wear.cold.as_ref(), erases, count, ..view };
        let answer = ask(&mut *wear.policy, &view);
        self.wear = Some(wear);
        Some(answer)
    }

    /// Returns the position, among the free blocks of a plane, of the one that the wear policy picks.
    pub(super) fn picked(&mut self, plane: PlaneId, role: Role) -> usize {
        if !self.wear.as_ref().is_some_and(|wear| wear.needs.picks) {
            return 0;
        }
        let first: Vec<BlockId> = self.free.of(plane).take(LOOK_AHEAD).collect();
        self.ask_wear(self.region(plane, role), |policy, view| policy.pick_free(view, &first)).unwrap_or(0)
    }

    /// Returns `true` if the wear policy allows a victim.
    pub(super) fn wear_allows(&mut self, victim: BlockId) -> bool {
        if self.wear.is_none() {
            return true;
        }
        let region = self.region(self.plane_of(victim), self.block(victim).role);
        self.ask_wear(region, |policy, view| policy.allows(view, victim)) != Some(false)
    }

    /// Has the wear policy choose a cold block whose data are to fill a block that was erased. Returns `true` if the
    /// erased block was set aside for them.
    ///
    /// The policy is not called after the erase of a cold block, so that at least every second erase frees space. It
    /// is not called either if a migration of the plane has not ended, or if the reserve would not be free without
    /// the erased block.
    #[cold]
    pub(super) fn level_after(&mut self, plane: PlaneId, role: Role, erased: BlockId) -> bool {
        let cause = std::mem::take(&mut self.blocks[erased.index()].moved_for);
        let clock = self.clock;
        if let Some(cold) = self.wear.as_mut().and_then(|wear| wear.cold.as_mut()) {
            cold.note_erased(erased, clock);
        }
        let region = self.region(plane, role);
        self.ask_wear(region, |policy, view| policy.note_erased(view, erased));
        let may_migrate = self.has_wear_frontier() && role == Role::Data && cause != CopyCause::Wear;
        // The erased block counts as free here. Without it, the reserve would still be free.
        let has_room = self.free_blocks(plane, Role::Data) > self.reserve(plane, Role::Data);
        if !may_migrate || self.is_migrating(plane) || !has_room {
            return false;
        }
        let cold = self.ask_wear(region, |policy, view| policy.erased(view, erased)).flatten();
        cold.is_some_and(|cold| self.start_migration(plane, cold, erased))
    }

    /// Notes that the data of a closed block are to be moved into a block that was erased. Returns `true` if the erased
    /// block was set aside, because the block that is open for migrated units cannot take them all.
    fn start_migration(&mut self, plane: PlaneId, cold: BlockId, erased: BlockId) -> bool {
        debug_assert_eq!(self.block(cold).state, BlockState::Closed);
        let at = self.wear_frontier(plane);
        let program = self.size(Role::Data).program_units;
        let needed = u32::from(self.block(cold).valid).next_multiple_of(program);
        let sets_aside = self.room(at) < needed;
        let Some(wear) = &mut self.wear else { return false };
        let migration = &mut wear.migrations[plane.index()];
        migration.due = Some(cold);
        if sets_aside {
            migration.set_aside = Some(erased);
            self.blocks[erased.index()].state = BlockState::Open;
            self.take_free(plane, Role::Data);
        }
        sets_aside
    }

    /// Returns the cold block whose data are to be moved next in a plane.
    #[inline]
    pub fn cold_due(&self, plane: PlaneId) -> Option<BlockId> {
        self.wear.as_ref()?.migrations[plane.index()].due
    }

    /// Returns `true` if the device has a wear policy.
    #[inline]
    pub fn levels_wear(&self) -> bool {
        self.wear.is_some()
    }

    /// Returns `true` if a migration of a plane has not ended.
    #[inline]
    pub fn is_migrating(&self, plane: PlaneId) -> bool {
        self.wear.as_ref().is_some_and(|wear| wear.migrations[plane.index()].is_pending())
    }

    /// Takes the cold block whose data are to be moved next in a plane.
    pub fn take_cold(&mut self, plane: PlaneId) -> Option<BlockId> {
        let id = self.wear.as_mut()?.migrations[plane.index()].due.take()?;
        self.remove_candidate(id);
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.state, BlockState::Closed);
        (block.state, block.moved_for) = (BlockState::Victim, CopyCause::Wear);
        Some(id)
    }

    /// Ends the migration of a plane. Returns `true` if a block that was set aside is free again.
    pub fn end_migration(&mut self, plane: PlaneId) -> bool {
        if let Some(wear) = &mut self.wear {
            wear.migrations[plane.index()].due = None;
        }
        let Some(block) = self.take_set_aside(plane) else { return false };
        self.blocks[block.index()].state = BlockState::Free;
        self.add_free(plane, Role::Data);
        self.free.add(plane, block, self.block(block).erases);
        true
    }

    /// Returns the block that was set aside for a frontier.
    pub(super) fn set_aside_for(&self, at: FrontierId) -> Option<BlockId> {
        let wear = self.wear.as_ref().filter(|_| self.is_wear_frontier(at))?;
        wear.migrations[self.region_at(at).plane.index()].set_aside
    }

    /// Takes the block that was set aside for migrated units.
    pub(super) fn take_set_aside(&mut self, plane: PlaneId) -> Option<BlockId> {
        self.wear.as_mut()?.migrations[plane.index()].set_aside.take()
    }

    /// Returns the units of migrated data that find room in worn blocks.
    pub fn room_in_worn(&self, plane: PlaneId) -> u32 {
        let migration = self.wear.as_ref().map(|wear| wear.migrations[plane.index()]).unwrap_or_default();
        let of_next = if migration.set_aside.is_some() { self.data_units() } else { 0 };
        self.room(self.wear_frontier(plane)) + of_next
    }

    /// Returns the frontier that a unit of a victim goes to: a worn block with room, if the victim is a cold block.
    #[inline]
    pub fn frontier_for_copy(&self, plane: PlaneId, from: Ppn, class: u8) -> FrontierId {
        if self.wear.is_some() && self.is_cold(self.block_of(from)) && self.room_in_worn(plane) > 0 {
            return self.wear_frontier(plane);
        }
        self.frontier_for_moved(plane, class)
    }

    /// Returns `true` if the data of a victim are being migrated.
    #[inline]
    pub fn is_cold(&self, victim: BlockId) -> bool {
        self.wear.is_some() && self.block(victim).moved_for == CopyCause::Wear
    }

    /// Returns the purpose of operations that move the units of a block.
    #[inline]
    pub fn purpose_of_move(&self, block: BlockId) -> Purpose {
        match self.block(block).moved_for {
            CopyCause::Wear if self.moves_for_reasons() => Purpose::Wear,
            CopyCause::Fold if self.moves_for_reasons() => Purpose::Fold,
            CopyCause::Refresh if self.moves_for_reasons() => Purpose::Refresh,
            _ => Purpose::OfClass,
        }
    }

    /// Returns the cause of a program with units of a victim.
    #[inline]
    pub fn cause_of_copy(&self, victim: BlockId) -> ProgramCause {
        match self.block(victim).moved_for {
            CopyCause::Wear => ProgramCause::Wear,
            CopyCause::Fold => ProgramCause::Fold,
            CopyCause::Rebuild => ProgramCause::Rebuild,
            CopyCause::Refresh => ProgramCause::Refresh,
            _ => ProgramCause::Gc,
        }
    }

    /// Returns the cause of a read of a victim's units.
    #[inline]
    pub fn cause_of_read(&self, victim: BlockId) -> ReadCause {
        match self.block(victim).moved_for {
            CopyCause::Wear => ReadCause::Wear,
            CopyCause::Fold => ReadCause::Fold,
            CopyCause::Refresh => ReadCause::Refresh,
            _ => ReadCause::Gc,
        }
    }

    /// Returns the cause of the erase of a block.
    pub fn cause_of_erase(&self, id: BlockId) -> EraseCause {
        let block = self.block(id);
        match block.moved_for {
            _ if block.role == Role::Map => EraseCause::Map,
            CopyCause::Gc | CopyCause::FailedBlock | CopyCause::Rebuild | CopyCause::Background => EraseCause::Gc,
            CopyCause::Wear => EraseCause::Wear,
            CopyCause::Merge => EraseCause::Merge,
            CopyCause::Fold => EraseCause::Fold,
            CopyCause::Refresh => EraseCause::Refresh,
        }
    }

    /// Notes that units were moved from one block to another.
    #[inline]
    pub fn note_copied(&mut self, from: BlockId, to: BlockId, units: u32) {
        if let Some(cold) = self.wear.as_mut().and_then(|wear| wear.cold.as_mut()) {
            cold.note_moved(from, to, units);
        }
    }

    /// Returns a plane with a migration that has not ended. A device with such a plane is not at rest.
    pub(super) fn first_migration(&self) -> Option<PlaneId> {
        self.wear.as_ref()?.first_migration()
    }
}
