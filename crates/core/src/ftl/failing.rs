//! Failures in the FTL: failed programs, erases and reads, and the blocks that are retired because of them.

use std::ops::Range;

use super::faults::{Faults, Sets};
use super::space::{BlockState, RESERVE, Role};
use super::{Ftl, Life};
use crate::config::{DeviceConfig, FaultKind, InjectedFault};
use crate::metrics::counters::ReadCause;
use crate::metrics::summary::FaultState;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::sim::request::{Request, SECTOR};
use crate::sim::time::Time;
use crate::work::Transaction;

impl Ftl {
    /// Makes the next operation of the kind and at the address of `fault` fail, once. Returns an error if nothing can
    /// fail, if there is no such address, or if too many faults have not occurred.
    pub(crate) fn inject(&mut self, device: &DeviceConfig, fault: InjectedFault) -> Result<(), String> {
        if let Some((name, count)) = device.lacks(&fault) {
            return Err(format!("{fault}: the device has {count} {name} there, numbered from 0"));
        }
        let none = "the device has no table [faults], so it keeps no reserve for failures; add the table, which may \
                    be empty (--set faults.program_rate=0)";
        self.faults.as_mut().ok_or_else(|| none.to_owned())?.inject(fault)
    }

    /// Returns the time at which the device became read-only, if it is.
    pub fn read_only_since(&self) -> Option<Time> {
        self.faults.as_ref()?.read_only
    }

    /// Makes the device read-only. Returns `false` if it was, or if nothing can fail.
    pub fn set_read_only(&mut self, now: Time) -> bool {
        let Some(faults) = self.faults.as_mut().filter(|faults| faults.read_only.is_none()) else { return false };
        faults.read_only = Some(now);
        true
    }

    /// Counts a host write of sectors `first..end` that will not be programmed.
    pub fn note_unwritten(&mut self, first: u16, end: u16) {
        self.counters.units_unwritten += u64::from(first < end);
        self.counters.units_rewritten -= u64::from(first == end && self.shape.units_per_logical_page > 1);
        self.counters.bytes_unwritten += u64::from(end - first) * SECTOR;
    }

    /// Returns a warning if blocks are used beyond their endurance because the device has no failures.
    pub fn wear_warning(&self, device: &DeviceConfig) -> Option<String> {
        let stands = device.endurance();
        if stands == 0 || self.faults.is_some() {
            return None;
        }
        let erases = || self.blocks.all().iter().map(|block| block.erases);
        let (worn, most) = (erases().filter(|count| *count > stands).count(), erases().max().unwrap_or(0));
        (worn > 0).then(|| {
            format!(
                "{worn} of {} blocks have had more than nand.endurance = {stands} erases ({most} at most) and are \
                 still used; for wear-out, add a table [faults], which may be empty (--set faults.erase_rate=0)",
                erases().count()
            )
        })
    }

    /// Returns the number of bad blocks and the time of becoming read-only, or `None` if nothing can fail.
    pub fn fault_state(&self) -> Option<FaultState> {
        let faults = self.faults.as_ref()?;
        let bad = (0..self.shape.planes).map(|plane| self.blocks.bad(PlaneId(plane))).collect();
        Some(FaultState { factory_bad: faults.factory_bad, bad, read_only: faults.read_only })
    }

    /// Returns `true` if the device no longer accepts writes.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.read_only.is_some())
    }

    /// Marks the blocks that are bad in a new device.
    pub(super) fn mark_factory_bad(&mut self, device: &DeviceConfig) {
        let Some(faults) = &self.faults else { return };
        let together = if device.superblock.is_some() { device.planes_per_collection() } else { None };
        let bad = faults.draw_factory_bad(device.total_planes(), device.geometry.blocks, together.unwrap_or(1));
        self.mark_bad(&bad);
        self.note_factory_bad(bad.len() as u64);
    }

    pub(crate) fn note_factory_bad(&mut self, blocks: u64) {
        if let Some(faults) = &mut self.faults {
            faults.factory_bad = blocks;
        }
    }

    /// Marks blocks of a new device as bad.
    pub(super) fn mark_bad(&mut self, bad: &[BlockId]) {
        self.blocks.mark_bad(bad);
        (0..self.shape.planes).for_each(|plane| self.refresh_ready(PlaneId(plane)));
    }

    /// Returns `true` if the program of `units` units at `ppn`, which ends now, has failed.
    #[inline]
    pub fn program_fails(&mut self, ppn: Ppn, units: u32) -> bool {
        self.faults.is_some() && self.is_failed_program(ppn, units)
    }

    fn is_failed_program(&mut self, ppn: Ppn, units: u32) -> bool {
        let pages = self.pages_of(ppn, units);
        self.operation_fails(FaultKind::Program, self.blocks.block_of(ppn), pages)
    }

    /// Returns `true` if the erase of a block, which ends now, has failed: by chance, because the failure was injected,
    /// or because the block has reached its endurance.
    #[inline]
    pub fn erase_fails(&mut self, block: BlockId) -> bool {
        self.faults.is_some() && self.is_failed_erase(block)
    }

    fn is_failed_erase(&mut self, block: BlockId) -> bool {
        let has_failed = self.operation_fails(FaultKind::Erase, block, 0..u32::MAX);
        let erases = self.blocks.block(block).erases;
        let wears_out = |faults: &Faults| !faults.only_counts && faults.endurance.is_reached(block, erases);
        has_failed || self.faults.as_deref().is_some_and(wears_out)
    }

    fn operation_fails(&mut self, kind: FaultKind, block: BlockId, pages: Range<u32>) -> bool {
        let (plane, index) = (self.blocks.plane_of(block), self.blocks.index_in_plane(block));
        self.faults.as_mut().is_some_and(|faults| faults.fails(kind, plane.0, index, pages))
    }

    /// Returns the flash pages of some units, counted within their block.
    fn pages_of(&self, ppn: Ppn, units: u32) -> Range<u32> {
        let (per_page, spans) = (self.shape.units_per_page, self.shape.pages_per_unit);
        let first = self.blocks.offset_in_block(ppn);
        per_page.divide(first) * spans..(per_page.divide(first + units - 1) + 1) * spans
    }

    /// Ends the read of the page of `ppn`, or of `pages` pages if a unit spans several. Returns `true` if the read
    /// has failed: all units of the page are lost.
    pub fn read_fails(&mut self, ppn: Ppn, pages: u32) -> bool {
        let failed = match &mut self.faults {
            Some(faults) if faults.draws_before => std::mem::take(&mut faults.drawn),
            _ => self.draw_read(ppn, pages),
        };
        if failed {
            let per_page = self.shape.units_per_page.divisor();
            let first = ppn.0 / per_page * per_page;
            (first..first + per_page).for_each(|ppn| self.lose(Ppn(ppn)));
        }
        failed
    }

    /// Returns `true` if the read of the page of `ppn`, or of `pages` pages if a unit spans several, has failed.
    pub fn draw_read(&mut self, ppn: Ppn, pages: u32) -> bool {
        let per_page = self.shape.units_per_page.divisor();
        let of_unit = self.pages_of(Ppn(ppn.0 / per_page * per_page), per_page);
        let block = self.blocks.block_of(ppn);
        let spans = self.shape.pages_per_unit > 1;
        let mut failed = false;
        for page in of_unit.start..of_unit.start + if spans { pages } else { 1 } {
            failed |= self.operation_fails(FaultKind::Read, block, page..page + 1);
        }
        failed
    }

    /// Sets whether the read that ends next has failed, on a device that draws this before.
    pub fn set_drawn(&mut self, fails: bool) {
        if let Some(faults) = &mut self.faults {
            faults.drawn = fails;
        }
    }

    /// Makes the read of a page fail, which ends next: its data had too many wrong bits after the last retry.
    pub fn fail_read(&mut self, ppn: Ppn) {
        let (block, page) = (self.blocks.block_of(ppn), self.pages_of(ppn, 1).start);
        let (plane, index) = (self.blocks.plane_of(block), self.blocks.index_in_plane(block));
        if let Some(faults) = &mut self.faults {
            faults.fail_next_read(plane.0, index, page);
        }
    }

    /// Ends a read of the host, and counts it if it returns uncorrectable data of its request. Returns `true` if so.
    #[inline(always)]
    pub fn host_read_fails(&mut self, read: &Transaction, request: impl FnOnce() -> Request) -> bool {
        self.faults.is_some() && self.is_failed_host_read(read, &request())
    }

    #[inline(never)]
    fn is_failed_host_read(&mut self, read: &Transaction, request: &Request) -> bool {
        let unit = |sector| self.shape.unit_sectors.divide_long(sector) as u32;
        let of_request = unit(request.lba)..unit(request.lba + u64::from(request.sectors) - 1) + 1;
        let fails = self.read_fails(read.ppn, read.units.into()) || self.is_lost_in_page(read.ppn, &of_request);
        self.note_uncorrectable(ReadCause::Host, fails)
    }

    /// Returns `true` if a read ahead, which ends now, has failed.
    pub fn ahead_read_fails(&mut self, read: &Transaction) -> bool {
        self.faults.is_some() && self.read_fails(read.ppn, read.units.into())
    }

    /// Returns `true` if the data of a unit that a host read gets from a read ahead are uncorrectable, and counts the
    /// host read then. `fails` is true if all data of the read ahead are.
    pub fn awaited_read_fails(&mut self, read: &Transaction, lpn: Lpn, fails: bool) -> bool {
        let fails = fails || self.is_lost_in_page(read.ppn, &(lpn.0..lpn.0 + 1));
        self.note_uncorrectable(ReadCause::Host, fails)
    }

    /// Ends a read of the data that a partial write keeps, and counts it if they are uncorrectable. Returns `true` if
    /// they are.
    #[inline]
    pub fn rmw_read_fails(&mut self, ppn: Ppn, units: u16) -> bool {
        self.faults.is_some() && self.is_failed_rmw_read(ppn, units)
    }

    fn is_failed_rmw_read(&mut self, ppn: Ppn, units: u16) -> bool {
        let fails = self.read_fails(ppn, units.into()) || self.is_lost(ppn);
        self.note_uncorrectable(ReadCause::Rmw, fails)
    }

    /// Ends a read of units that are copied, and counts it if one of them, for which `is_copied` returns `true`, is
    /// uncorrectable. The data is copied unchanged.
    #[inline]
    pub fn end_copy_read(&mut self, read: &Transaction, is_copied: impl Fn(&Ftl, Ppn) -> bool) {
        if self.faults.is_some() {
            let per_page = self.shape.units_per_page.divisor();
            let first = read.ppn.0 / per_page * per_page;
            let fails = self.read_fails(read.ppn, read.units.into());
            let is_lost = |ppn| self.is_lost(ppn) && is_copied(self, ppn);
            let fails = fails || (first..first + per_page).map(Ppn).any(is_lost);
            self.note_uncorrectable(ReadCause::Gc, fails);
        }
    }

    /// Counts an uncorrectable read, if it is one. Returns `fails`.
    fn note_uncorrectable(&mut self, cause: ReadCause, fails: bool) -> bool {
        if fails {
            self.counters.faults.note_uncorrectable(cause);
        }
        fails
    }

    /// Marks a unit as uncorrectable. Units of the device itself are exempt, because the controller knows their
    /// contents.
    pub fn lose(&mut self, ppn: Ppn) {
        let owner = self.map.owner(ppn);
        if owner >= self.host_units || self.is_lost(ppn) {
            return;
        }
        let valid = self.blocks.is_valid(ppn);
        let Some(faults) = &mut self.faults else { return };
        faults.lost.insert(ppn.0);
        self.counters.faults.units_lost += u64::from(valid);
        if let Some(media) = &mut self.media {
            media.spoil(ppn);
        }
    }

    /// Marks a copy as uncorrectable if its source is.
    pub fn copy_loss(&mut self, from: Ppn, to: Ppn) {
        if self.is_lost(from)
            && let Some(faults) = &mut self.faults
        {
            faults.lost.insert(to.0);
        }
    }

    /// Marks a programmed unit as uncorrectable: it includes lost sectors, or a recovery has found it so.
    pub fn mark_lost(&mut self, ppn: Ppn) {
        if let Some(faults) = &mut self.faults {
            faults.lost.insert(ppn.0);
        }
        if let Some(media) = &mut self.media {
            media.spoil(ppn);
        }
    }

    /// Returns `true` if a unit is uncorrectable.
    #[inline]
    pub fn is_lost(&self, ppn: Ppn) -> bool {
        self.faults.as_ref().is_some_and(|faults| !faults.lost.is_empty() && faults.lost.contains(&ppn.0))
    }

    /// Returns `true` if the page of `ppn` has an uncorrectable unit that is, or was, one of these logical units.
    pub fn is_lost_in_page(&self, ppn: Ppn, units: &Range<u32>) -> bool {
        let per_page = self.shape.units_per_page.divisor();
        let first = ppn.0 / per_page * per_page;
        let Some(faults) = &self.faults else { return false };
        faults.lost.range(first..first + per_page).any(|&ppn| units.contains(&self.map.owner(Ppn(ppn))))
    }

    /// Returns `true` if a block has uncorrectable units.
    pub(crate) fn has_lost(&self, block: BlockId) -> bool {
        let places = || self.blocks.first_unit(block).0..self.blocks.first_unit(BlockId(block.0 + 1)).0;
        self.faults.as_ref().is_some_and(|faults| faults.lost.range(places()).next().is_some())
    }

    /// Forgets the uncorrectable units of a block that is erased or retired.
    pub(super) fn forget_lost(&mut self, block: BlockId) {
        let Some(faults) = self.faults.as_mut().filter(|faults| !faults.lost.is_empty()) else { return };
        let first = self.blocks.first_unit(block).0;
        let end = self.blocks.first_unit(BlockId(block.0 + 1)).0;
        let gone: Vec<u32> = faults.lost.range(first..end).copied().collect();
        gone.iter().for_each(|ppn| {
            faults.lost.remove(ppn);
        });
    }

    /// Handles a failed program in a block of the mapping scheme: see [`Ftl::program_failed`].
    pub fn kept_program_failed(&mut self, start: Ppn) {
        let units = self.shape.units_per_program;
        let holds_data = |&ppn: &u32| self.map.owner(Ppn(ppn)) != super::PADDING;
        let with_data = (start.0..start.0 + units).filter(holds_data).count() as u32;
        self.program_failed(start, units, with_data);
    }

    /// Handles a failed program: its units hold nothing, and its block takes no more programs. `with_data` units held
    /// data.
    pub fn program_failed(&mut self, ppn: Ppn, units: u32, with_data: u32) {
        let block = self.blocks.block_of(ppn);
        self.counters.faults.programs_failed += 1;
        self.counters.faults.units_failed += u64::from(with_data);
        let plane = self.blocks.plane_of(block);
        if self.blocks.has_superblocks() {
            (ppn.0..ppn.0 + units).for_each(|unit| self.map.set_owner(Ppn(unit), super::PADDING));
            self.blocks.note_unprotected(ppn);
            return self.superblock_failed(block);
        }
        let (is_new, left) = self.blocks.fail(block);
        for unit in (ppn.0..ppn.0 + units).chain(left) {
            self.map.set_owner(Ppn(unit), super::PADDING);
        }
        if is_new {
            self.counters.faults.blocks_grown_bad += 1;
            self.replace_block(plane, self.blocks.block(block).role);
        }
        self.refresh_ready(plane);
    }

    /// Has a failed block evacuated, unless this has started, or another of its programs is in flight (`has_more`).
    /// Returns `true` if it does.
    pub fn empty_if_settled(&mut self, block: BlockId, has_more: impl FnOnce(&Ftl) -> bool) -> bool {
        let starts = self.blocks.block(block).state == BlockState::Open && !has_more(self);
        if starts {
            self.empty_failed(block);
        }
        starts
    }

    /// Has a failed block evacuated. None of its programs is in flight.
    pub fn empty_failed(&mut self, block: BlockId) {
        self.blocks.set_failed(block);
        let Some(faults) = &mut self.faults else { return };
        faults.waiting.push(block);
        let plane = self.blocks.plane_of(block);
        self.update_kept(plane);
    }

    /// Has the host leave one more free block in a plane while a failed block waits for its evacuation.
    fn update_kept(&mut self, plane: PlaneId) {
        let waits = self.first_failed(plane, Role::Data).is_some();
        let of_kind = u32::from(self.folding.is_some()) + u32::from(self.blocks.has_superblocks());
        let kept = RESERVE + 1 + of_kind + u32::from(waits);
        self.blocks.set_kept(plane, kept);
        self.refresh_ready(plane);
    }

    /// Returns the first failed block of a role in a plane that waits for its evacuation. Blocks of the SLC cache are
    /// evacuated as those of data are.
    pub fn first_failed(&self, plane: PlaneId, role: Role) -> Option<BlockId> {
        let waiting = self.faults.iter().flat_map(|faults| &faults.waiting).copied();
        let is_of = |block: BlockId| self.blocks.block(block).role.holds(role);
        waiting.into_iter().find(|&block| self.blocks.plane_of(block) == plane && is_of(block))
    }

    /// Has the failed blocks of a loaded state evacuated.
    pub(super) fn find_failed(&mut self) {
        let Some(faults) = &mut self.faults else { return };
        let blocks = self.blocks.all().iter().zip(0..);
        faults.waiting = blocks.filter(|(b, _)| b.state == BlockState::Failed).map(|(_, id)| BlockId(id)).collect();
        (0..self.shape.planes).for_each(|plane| self.update_kept(PlaneId(plane)));
    }

    /// Starts the evacuation of a failed block.
    pub fn take_failed(&mut self, block: BlockId) {
        if let Some(faults) = &mut self.faults {
            faults.waiting.retain(|waiting| *waiting != block);
        }
        self.blocks.take_failed(block);
        self.update_kept(self.blocks.plane_of(block));
    }

    /// Retires a failed block that has been evacuated.
    pub fn retire(&mut self, block: BlockId) {
        self.forget_lost(block);
        self.blocks.set_bad(block);
    }

    /// Erases a block without dependents in functional mode. During a lifetime ([`Ftl::start_life`]), the erase may
    /// fail. Returns `true` if the block is free now.
    pub(in crate::ftl) fn erase_or_retire_now(&mut self, block: BlockId) -> bool {
        if self.blocks.block(block).failed {
            self.retire(block);
            return false;
        }
        if self.life.is_some() {
            self.note_expiry(block);
            if self.erase_fails(block) {
                self.erase_failed(block);
                if !self.has_spare() {
                    self.end_life();
                }
                return false;
            }
        }
        self.erase_now(block);
        true
    }

    /// Returns `true` if a lifetime in functional mode has ended, because too few good blocks are left.
    #[inline]
    pub fn is_worn_out(&self) -> bool {
        self.life.is_some_and(|life| life.is_worn_out)
    }

    /// Refuses to write a unit, because the device is worn out.
    #[cold]
    pub(in crate::ftl) fn refuse_unit(&mut self) {
        self.end_life();
        if let Some(life) = &self.life {
            self.counters.host_bytes = life.bytes_before;
        }
    }

    /// Ends a lifetime: too few good blocks are left.
    pub(super) fn end_life(&mut self) {
        if let Some(life) = &mut self.life {
            life.is_worn_out = true;
        }
    }

    /// Counts a block that is erased for the first time after it has reached its endurance.
    fn note_expiry(&mut self, block: BlockId) {
        let (Some(faults), Some(life)) = (&self.faults, &mut self.life) else { return };
        let erases = self.blocks.block(block).erases;
        let expires = faults.endurance.is_reached(block, erases);
        if expires && (erases == 0 || !faults.endurance.is_reached(block, erases - 1)) {
            life.expired += 1;
            life.first_expiry.get_or_insert(self.counters.host_units);
        }
    }

    /// Closes a block in a run or a lifetime. Returns `true` if the block is worn out and never collected again.
    #[inline]
    pub fn close(&mut self, block: BlockId) -> bool {
        let is_worn_out = self.blocks.close_or_exclude(block);
        if is_worn_out {
            self.counters.faults.blocks_grown_bad += 1;
            if let Some(life) = &mut self.life {
                life.expired += 1;
                life.first_expiry.get_or_insert(self.counters.host_units);
            }
        }
        is_worn_out
    }

    /// Starts a lifetime: from now on, erases of functional mode fail as those of timed mode do.
    pub fn start_life(&mut self) {
        self.life = Some(Life::default());
    }

    /// Retires a block whose erase has failed.
    pub fn erase_failed(&mut self, block: BlockId) {
        let role = self.blocks.block(block).role;
        self.counters.faults.erases_failed += 1;
        self.forget_lost(block);
        if self.blocks.has_superblocks() {
            self.superblock_failed(block);
            return self.blocks.member_erased(block);
        }
        self.counters.faults.blocks_grown_bad += 1;
        self.blocks.fail(block);
        self.blocks.set_bad(block);
        self.replace_block(self.blocks.plane_of(block), role);
    }

    /// Has the superblock of a block that has failed take no more programs. It is retired after its units were moved.
    fn superblock_failed(&mut self, block: BlockId) {
        if let Some(left) = self.blocks.doom(block) {
            self.counters.faults.blocks_grown_bad += self.blocks.erased_with(block).count() as u64;
            left.into_iter().flatten().for_each(|unit| self.map.set_owner(Ppn(unit), super::PADDING));
            self.refresh_ready(self.blocks.plane_of(block));
        }
    }

    /// Retires a superblock that has failed, and whose units have been moved.
    pub fn retire_superblock(&mut self, block: BlockId) {
        self.blocks.erased_with(block).for_each(|member| self.forget_lost(member));
        self.blocks.retire_members(block);
    }

    /// Sets the number of blocks that data still has to give to translation pages, after a state was loaded. Indexed by
    /// plane.
    pub(super) fn set_owed(&mut self, owed: Vec<u32>) {
        if let Some(faults) = &mut self.faults {
            faults.owed = owed;
        }
    }

    /// Replaces a failed block of translation pages by a data block, as soon as one is free.
    fn replace_block(&mut self, plane: PlaneId, role: Role) {
        if let Some(faults) = &mut self.faults {
            faults.owed[plane.index()] += u32::from(role == Role::Map);
        }
        self.pay_map(plane);
    }

    /// Gives free data blocks to translation pages for the blocks that these have lost.
    pub fn pay_map(&mut self, plane: PlaneId) {
        let Some(faults) = &mut self.faults else { return };
        let owed = &mut faults.owed[plane.index()];
        if *owed == 0 {
            return;
        }
        while *owed > 0 && self.blocks.give_to_map(plane) {
            *owed -= 1;
        }
        self.refresh_ready(plane);
    }

    /// Returns `true` if a failed block of a plane waits to be evacuated.
    #[inline]
    pub fn has_failed(&self, plane: PlaneId) -> bool {
        self.faults.is_some() && self.first_failed(plane, Role::Data).is_some()
    }

    /// Returns `true` if the good blocks can hold all data of the host, by the rule for accepting devices.
    pub fn has_spare(&self) -> bool {
        let Some(faults) = &self.faults else { return true };
        if let Some(Sets { planes, needed, for_recovery }) = faults.sets {
            let sets = (0..self.shape.planes).step_by(planes as usize);
            return sets.into_iter().all(|first| {
                let good = (first..first + planes).map(|plane| self.blocks.good(PlaneId(plane))).sum::<u32>();
                good >= needed + for_recovery
            });
        }
        let holds = |plane: PlaneId| faults.holds[self.blocks.good(plane) as usize];
        if faults.pooled {
            let mut pools = vec![0; self.allocation.pools() as usize];
            for plane in (0..self.shape.planes).map(PlaneId) {
                pools[self.allocation.pool_of(plane) as usize] += holds(plane);
            }
            return pools.iter().all(|held| *held >= faults.needed);
        }
        (0..self.shape.planes).all(|plane| holds(PlaneId(plane)) >= faults.needed)
    }

    /// Has each set of planes of a scheme that merges blocks keep one more good block, for a recovery. Returns
    /// `false` if a set has too few.
    pub fn keep_for_recovery(&mut self) -> bool {
        let Some(sets) = self.faults.as_mut().and_then(|faults| faults.sets.as_mut()) else { return true };
        sets.for_recovery = 1;
        self.has_spare()
    }
}
