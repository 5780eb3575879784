//! Recovery: rebuilds the map from the contents of flash; see docs/model/durability.md.

mod placed;

use std::collections::{BTreeMap, BTreeSet};

use super::Durability;
use super::account::{Account, Layout};
use super::flash::{Bad, FlashEvent, FlashImage, Record, RecordKind, Saved, UnitState};
use super::journal::Journal;
use super::log::FlashLog;
use crate::cache::Buffer;
use crate::config::MapMemory;
use crate::config::cells::CellMode;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Change, Location, PADDING, PageMap};
use crate::ftl::space::{BlockState, Role};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};

/// Reasons why a device cannot be rebuilt from flash contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// The configuration is invalid, or does not support power cuts.
    #[error("{0}")]
    Device(String),
    /// The storage could not read the flash contents.
    #[error("the flash could not be read: {0}")]
    Flash(String),
    /// The flash contents were not written by a device with this configuration.
    #[error("the flash does not fit the device: {0}; use the device file that it was written with")]
    Foreign(String),
}

/// Result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Recovery {
    /// Number of flash pages read.
    pub pages_read: u64,
    /// Number of blocks whose summary was read instead of their pages.
    pub summaries_used: u64,
    /// Number of parts of the checkpoint that were read.
    pub checkpoint_parts: u64,
    /// Number of blocks with data that were not read, because the checkpoint has their accounts, or the map survived.
    pub blocks_skipped: u64,
    /// Number of empty blocks.
    pub blocks_empty: u64,
    /// Number of blocks whose pages were all read.
    pub blocks_scanned: u64,
    /// Number of units with a wrong checksum.
    pub torn_units: u64,
    /// Number of torn programs.
    pub torn_programs: u64,
    /// Number of records of trims in the journal.
    pub journal_records: u64,
    /// Number of units that a trim unmapped.
    pub units_trimmed: u64,
    /// Number of mapped units of the host.
    pub units_mapped: u64,
    /// Number of copies of the newest version of a unit, beyond the first.
    pub duplicates: u64,
    /// Number of units restored from memory with power-loss protection.
    pub units_saved: u64,
    /// Number of blocks that were erased, because they hold no newest version.
    pub blocks_erased: u64,
    /// Number of units that were merged, because the mapping scheme has no place for all blocks that were found.
    pub units_merged: u64,
    /// Number of translation pages that were rewritten.
    pub map_pages_written: u64,
    /// Number of blocks that are bad, or will be once they are evacuated.
    pub blocks_bad: u64,
    /// Number of blocks that were bad when the device was new.
    pub factory_bad: u64,
    /// Duration of the recovery in simulated ps.
    pub time_ps: u64,
}

/// Intermediate results of reading flash.
#[derive(Debug, Default)]
struct Found {
    /// Further copies of mapped versions, by mapping unit.
    others: BTreeMap<u32, Vec<Ppn>>,
    /// Masks of the sectors that were ever written, by physical address. Only for units that are not whole.
    sectors: BTreeMap<u32, u64>,
    /// Erase counts. Indexed by block.
    erases: Vec<u32>,
    /// True if the block is not empty. Indexed by block.
    used: Vec<bool>,
    /// Offset after the last programmed unit. Indexed by block.
    ends: Vec<u32>,
    /// Cell modes. Indexed by block.
    cells: Vec<CellMode>,
    /// Bad blocks.
    bad: Vec<BlockId>,
    /// Units that were marked as uncorrectable when they were written.
    lost: Vec<Ppn>,
    /// Units that cannot be read. Only for superblocks.
    torn: Vec<Ppn>,
    highest: u64,
    /// Units that were read with their payload.
    wholes: Vec<Ppn>,
    /// Part of the checkpoint that was read last, with its accounts.
    part: Option<(u32, Vec<Option<Account>>)>,
    /// Blocks whose accounts were used.
    accounted: Vec<BlockId>,
}

/// Device that is being rebuilt from flash contents. At the start, only its configuration is known.
#[derive(Debug)]
pub struct Rebuild<'a> {
    /// The translation layer.
    pub ftl: &'a mut Ftl,
    /// Log, which restores sequence numbers from flash and reports the changes that the recovery makes.
    pub log: &'a mut FlashLog,
    /// The journal and the checkpoint.
    pub durability: &'a mut Durability,
    /// Memory of the map.
    pub map: MapMemory,
    /// Test hook: ignores the records of trims.
    pub skips_trims: bool,
    /// Test hook: prefers the version in the block that was opened first.
    pub prefers_older: bool,
}

impl Rebuild<'_> {
    fn layout(&self) -> Option<Layout> {
        self.durability.checkpoint.as_ref().map(|checkpoint| checkpoint.layout)
    }

    /// Reads flash and maps the newest version of each unit. Returns the results of the scan, and the writes that
    /// memory with power-loss protection held.
    pub fn read(
        &mut self,
        flash: &mut dyn FlashImage,
        report: &mut Recovery,
    ) -> Result<(Scan, BTreeMap<u32, u64>), RecoverError> {
        let mut scan = self.scan(flash, report)?;
        self.read_journal(flash, &mut scan, report)?;
        let writes = self.take_saved(flash, &mut scan, report)?;
        self.settle(&mut scan, report)?;
        self.durability.find_guests(self.ftl);
        self.fill_contents(flash, &scan);
        Ok((scan, writes))
    }

    /// Rewrites the translation pages, and continues the checkpoint that was found. Reports the new address of each
    /// part that is not at its last reported one, because another copy was chosen.
    pub fn complete(
        &mut self,
        flash: &mut dyn FlashImage,
        scan: &Scan,
        report: &mut Recovery,
    ) -> Result<(), RecoverError> {
        report.map_pages_written = self.write_map_anew();
        self.durability.is_recovered = true;
        let Some(checkpoint) = &mut self.durability.checkpoint else { return Ok(()) };
        let layout = checkpoint.layout;
        for part in 0..layout.parts.count() {
            let ppn = self.ftl.ppn_in_flash(layout.unit(part));
            if let Some(ppn) = ppn
                && flash.anchor(part).map_err(RecoverError::Flash)? != Some(ppn)
            {
                self.log.emit(FlashEvent::Anchored { part, ppn });
            }
        }
        checkpoint.adopt(&scan.accounted, self.ftl);
        Ok(())
    }
    /// Reads flash, and maps the newest version of each unit.
    fn scan(&mut self, flash: &mut dyn FlashImage, report: &mut Recovery) -> Result<Scan, RecoverError> {
        let blocks = self.ftl.blocks.all().len() as u32;
        let (used, cells) = (vec![false; blocks as usize], vec![CellMode::Native; blocks as usize]);
        let mut found = Found { used, ends: vec![0; blocks as usize], cells, ..Found::default() };
        let mut pages = vec![0u32; blocks as usize];
        for block in (0..blocks).map(BlockId) {
            found.erases.push(flash.erases(block).map_err(RecoverError::Flash)?);
            let bad = flash.bad(block).map_err(RecoverError::Flash)?;
            if let Some(bad) = bad {
                found.bad.push(block);
                report.factory_bad += u64::from(bad == Bad::Factory);
                report.blocks_bad += 1;
            }
            if bad == Some(Bad::Retired) {
                continue;
            }
            // A failed erase is not in the erase count, but has destroyed the contents that an account describes.
            if bad.is_none() && self.take_account(flash, block, &mut found, report)? {
                continue;
            }
            pages[block.index()] = self.scan_block(flash, block, &mut found, report)?;
            report.pages_read += u64::from(pages[block.index()]);
        }
        found.part = None;
        if self.map != MapMemory::Volatile {
            forget_reads(&mut pages, &mut found, report);
        }
        self.ftl.sequence = self.ftl.sequence.max(found.highest);
        let wholes = std::mem::take(&mut found.wholes);
        report.pages_read += wholes.len() as u64 * u64::from(self.ftl.shape().pages_per_unit);
        let accounted = std::mem::take(&mut found.accounted);
        report.blocks_skipped += accounted.len() as u64;
        let cells = std::mem::take(&mut found.cells);
        Ok(Scan { found, pages, cells, wholes, accounted, ..Scan::default() })
    }

    /// Restores a block from its account in the checkpoint, if it was not erased since. Returns `true` if it did.
    fn take_account(
        &mut self,
        flash: &mut dyn FlashImage,
        block: BlockId,
        found: &mut Found,
        report: &mut Recovery,
    ) -> Result<bool, RecoverError> {
        let Some(checkpoint) = self.layout() else { return Ok(false) };
        let mut records = Vec::with_capacity(self.ftl.blocks.data_units() as usize);
        for part in checkpoint.parts.parts_of(block.0) {
            self.read_part(flash, part, found, report)?;
            let index = (block.0 - checkpoint.parts.blocks_of(part).start) as usize;
            let account = found.part.as_mut().and_then(|(_, accounts)| accounts.get_mut(index)?.take());
            let erases = found.erases[block.index()];
            let Some(account) = account.filter(|account| account.erases == erases || checkpoint.trusts_erased) else {
                return Ok(false);
            };
            found.highest = found.highest.max(account.highest);
            records.extend(account.records);
        }
        let first = self.ftl.blocks.first_unit(block).0;
        for (ppn, record) in (first..).map(Ppn).zip(records) {
            let kind = if record.sequence == 0 { RecordKind::Padding } else { self.log.kind_of(record.lpn) };
            self.found(ppn, Record { kind, ..record }, found)?;
        }
        found.used[block.index()] = true;
        found.ends[block.index()] = self.ftl.blocks.data_units();
        found.accounted.push(block);
        Ok(true)
    }

    /// Reads a part of the checkpoint, unless it was read last. A part that is missing or invalid has no accounts.
    fn read_part(
        &mut self,
        flash: &mut dyn FlashImage,
        part: u32,
        found: &mut Found,
        report: &mut Recovery,
    ) -> Result<(), RecoverError> {
        let Some(checkpoint) = self.layout() else { return Ok(()) };
        if found.part.as_ref().is_some_and(|(known, _)| *known == part) {
            return Ok(());
        }
        found.part = Some((part, Vec::new()));
        let ppn = flash.anchor(part).map_err(RecoverError::Flash)?;
        let units = self.ftl.blocks.all().len() as u32 * self.ftl.blocks.units_per_block();
        let Some(ppn) = ppn.filter(|ppn| ppn.0 < units) else { return Ok(()) };
        found.wholes.push(ppn);
        report.checkpoint_parts += 1;
        let is_it = |record: Record| record.kind == RecordKind::Checkpoint && record.lpn == checkpoint.unit(part).0;
        match flash.unit(ppn).map_err(RecoverError::Flash)? {
            UnitState::Holds(record) if is_it(record) => {}
            _ => return Ok(()),
        }
        // A part that cannot be read has no accounts. Recovery does not depend on them.
        let mut bytes = Vec::new();
        let accounts = flash.own(ppn, &mut bytes).ok().and_then(|()| checkpoint.accounts(part, &bytes));
        found.part = Some((part, accounts.unwrap_or_default()));
        Ok(())
    }

    /// Reads a block: by its summary if there is one, otherwise page by page. Returns the number of pages read. The
    /// kind of the first page's record determines the role of the block, and thus its cell mode. That of a block of the
    /// SLC cache follows from its address.
    fn scan_block(
        &mut self,
        flash: &mut dyn FlashImage,
        block: BlockId,
        found: &mut Found,
        report: &mut Recovery,
    ) -> Result<u32, RecoverError> {
        let first = self.ftl.blocks.first_unit(block);
        let unit = |flash: &mut dyn FlashImage, ppn| flash.unit(ppn).map_err(RecoverError::Flash);
        let role = match self.start_of(flash, first)? {
            UnitState::Erased => {
                report.blocks_empty += 1;
                let all = self.ftl.shape().leaves_out_pages;
                return Ok(if all { self.pages_of(self.ftl.blocks.data_units()) } else { 1 });
            }
            _ if self.ftl.blocks.role_of_free(block) == Role::Cache => Role::Cache,
            UnitState::Holds(Record { kind: RecordKind::Map, .. }) if self.ftl.shape().map_blocks > 0 => Role::Map,
            _ => Role::Data,
        };
        found.used[block.index()] = true;
        found.cells[block.index()] = self.ftl.blocks.cells(role);
        let (units, group) = (self.ftl.blocks.size(role).data_units, self.ftl.blocks.size(role).program_units);
        // The units after the data of a smaller block are not used.
        (first.0 + units..first.0 + self.ftl.blocks.data_units()).for_each(|unit| {
            self.ftl.map.set_owner(Ppn(unit), PADDING);
        });
        if self.ftl.shape().summary {
            let mut bytes = Vec::new();
            let ppn = Ppn(first.0 + units);
            if let UnitState::Holds(Record { kind: RecordKind::Summary, .. }) = unit(flash, ppn)? {
                // A summary that cannot be read is ignored: the pages have the same records.
                let read = flash.own(ppn, &mut bytes);
                read.unwrap_or_else(|_| bytes.clear());
            }
            // Storage may return the whole unit. A summary that does not fit into a unit holds nothing.
            let needed = units as usize * Record::BYTES;
            let room = self.ftl.shape().sectors_per_unit as usize * 512;
            if bytes.len() >= needed && needed <= room {
                report.summaries_used += 1;
                found.ends[block.index()] = units;
                found.wholes.push(ppn);
                for (offset, bytes) in (0..units).zip(bytes.chunks_exact(Record::BYTES)) {
                    let record = Record::from_bytes(bytes);
                    let record = record.ok_or_else(|| foreign("a summary holds no records"))?;
                    self.found(Ppn(first.0 + offset), record, found)?;
                }
                return Ok(1);
            }
        }
        report.blocks_scanned += 1;
        for offset in 0..units {
            let ppn = Ppn(first.0 + offset);
            let state = unit(flash, ppn)?;
            if state != UnitState::Erased {
                found.ends[block.index()] = offset + 1;
            }
            match state {
                UnitState::Erased => self.ftl.map.set_owner(ppn, PADDING),
                UnitState::Torn => {
                    self.ftl.map.set_owner(ppn, PADDING);
                    found.torn.push(ppn);
                    report.torn_units += 1;
                    report.torn_programs += u64::from(offset.is_multiple_of(group));
                }
                UnitState::Holds(record) => self.found(ppn, record, found)?,
            }
        }
        Ok(self.pages_of(units))
    }

    /// Returns the state of the first unit of a block, or of the first programmed one if the scheme leaves out pages.
    /// Blocks are programmed in order.
    fn start_of(&self, flash: &mut dyn FlashImage, first: Ppn) -> Result<UnitState, RecoverError> {
        let end = if self.ftl.shape().leaves_out_pages { self.ftl.blocks.data_units() } else { 1 };
        for ppn in (first.0..first.0 + end).map(Ppn) {
            let state = flash.unit(ppn).map_err(RecoverError::Flash)?;
            if state != UnitState::Erased {
                return Ok(state);
            }
        }
        Ok(UnitState::Erased)
    }

    /// Returns the number of pages of the units of a block.
    fn pages_of(&self, units: u32) -> u32 {
        self.ftl.shape().units_per_page.divide(units) * self.ftl.shape().pages_per_unit
    }

    /// Handles the record of a unit that was found, and maps the unit if it is the newest version so far.
    fn found(&mut self, ppn: Ppn, record: Record, found: &mut Found) -> Result<(), RecoverError> {
        let block = self.ftl.blocks.block_of(ppn);
        self.ftl.map.set_owner(ppn, PADDING);
        found.highest = found.highest.max(record.sequence);
        self.log.note_opened(block, record.opened);
        self.log.set_record(ppn, &record);
        let first = self.layout().map_or(self.ftl.map.all(), |checkpoint| checkpoint.first);
        match record.kind {
            RecordKind::Data if record.lpn < self.ftl.host_units => {}
            RecordKind::Lost if record.lpn < self.ftl.host_units => found.lost.push(ppn),
            RecordKind::Journal if (self.ftl.host_units..first).contains(&record.lpn) => {}
            RecordKind::Checkpoint if (first..self.ftl.map.all()).contains(&record.lpn) => {}
            RecordKind::Data | RecordKind::Lost => return Err(foreign("it holds units beyond the end of the device")),
            // The journal or the checkpoint of a device that kept one.
            _ => return Ok(()),
        }
        self.ftl.map.set_owner(ppn, record.lpn);
        if record.sectors != 0 {
            found.sectors.insert(ppn.0, record.sectors);
        }
        let lpn = Lpn(record.lpn);
        let Location::Flash(held) = self.ftl.map.get(lpn) else {
            self.ftl.map.set_flash(lpn, ppn);
            return Ok(());
        };
        let order = if self.prefers_older {
            self.log.opened[self.ftl.blocks.block_of(held).index()].cmp(&record.opened)
        } else {
            record.sequence.cmp(&self.log.sequence(held))
        };
        match order {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => found.others.entry(lpn.0).or_default().push(ppn),
            std::cmp::Ordering::Greater => {
                self.ftl.map.set_flash(lpn, ppn);
                found.others.remove(&lpn.0);
            }
        }
        Ok(())
    }

    /// Unmaps a unit if its trim is newer than the version that was found. Returns `true` if it was.
    fn recover_trim(&mut self, lpn: Lpn, sequence: u64, scan: &mut Scan) -> bool {
        self.ftl.sequence = self.ftl.sequence.max(sequence);
        let Location::Flash(ppn) = self.ftl.map.get(lpn) else { return false };
        let older = self.log.sequence(ppn) < sequence && !self.skips_trims;
        if older {
            self.ftl.map.unmap(lpn);
            scan.found.others.remove(&lpn.0);
        }
        older
    }

    /// Decides on one address for each unit, erases blocks that hold no newest version, and closes the others.
    fn settle(&mut self, scan: &mut Scan, report: &mut Recovery) -> Result<(), RecoverError> {
        let found = &mut scan.found;
        report.duplicates = found.others.values().map(|others| others.len() as u64).sum();
        let blocks = &self.ftl.blocks;
        let mut used: Vec<BlockId> =
            (0..found.used.len()).filter(|&b| found.used[b]).map(|b| BlockId(b as u32)).collect();
        // Blocks that are erased together are kept together, whether they are used or not.
        let opened = |block: BlockId| blocks.erased_with(block).map(|member| self.log.opened[member.index()]).max();
        used.sort_by_key(|&block| (opened(block), block));
        let is_first =
            |block: BlockId| blocks.erased_with(block).find(|member| found.used[member.index()]) == Some(block);
        let firsts: Vec<BlockId> = used.iter().copied().filter(|&block| is_first(block)).collect();
        // Most recently opened blocks first: a partly filled block of copies is erased, rather than the block that they
        // were read from.
        let mut closed = Vec::with_capacity(used.len());
        self.adopt_bad(&found.bad, report.factory_bad);
        for &block in firsts.iter().rev() {
            let together = self.ftl.blocks.erased_with(block);
            if !self.move_to_others(block, found) {
                closed.extend(together);
            } else if !self.ftl.blocks.block(block).failed {
                scan.erased.extend(together.filter(|member| found.used[member.index()]));
            }
        }
        closed.reverse();
        self.hand_over(scan, report, [used, closed]).map_err(|why| foreign(&why))
    }

    /// Makes the newest versions valid, and erases the blocks without any.
    fn make_valid(&mut self, scan: &mut Scan, report: &mut Recovery) {
        let found = &mut scan.found;
        for lpn in 0..self.ftl.map.all() {
            if let Location::Flash(ppn) = self.ftl.map.get(Lpn(lpn)) {
                self.ftl.blocks.validate(ppn);
                report.units_mapped += u64::from(lpn < self.ftl.host_units);
                if let Some(&mask) = found.sectors.get(&ppn.0) {
                    self.ftl.partial.restore(lpn, mask);
                }
            }
        }
        self.ftl.blocks.clock = self.ftl.sequence;
        for ppn in std::mem::take(&mut scan.found.lost) {
            self.ftl.mark_lost(ppn);
        }
        self.erase_found(scan, report);
        report.units_merged = scan.merged.len() as u64;
    }

    /// Closes the blocks with newest versions.
    fn close_found(&mut self, closed: &[BlockId], scan: &Scan) -> Result<(), String> {
        self.restore_superblocks(closed, scan);
        self.ftl.blocks.restore(closed, &scan.found.erases, BlockState::Closed);
        self.count_found(closed);
        self.empty_found(closed);
        (0..self.ftl.shape().planes).for_each(|plane| self.ftl.refresh_ready(PlaneId(plane)));
        // With faults, such a device becomes read-only instead.
        let blocks = &self.ftl.blocks;
        let lacks_reserve = |plane| blocks.lacks_reserve(blocks.region(PlaneId(plane), Role::Data));
        // If copies may go anywhere in the pool, one free block of the pool is enough.
        let stuck = |&plane: &PlaneId| self.ftl.faults.is_none() && self.ftl.job_planes(plane).all(lacks_reserve);
        (0..self.ftl.shape().planes)
            .map(PlaneId)
            .find(stuck)
            .map_or(Ok(()), |plane| Err(format!("plane {} has no free block, and none to reclaim", plane.0)))
    }

    /// Restores the set of bad blocks from the storage instead of the seed. Blocks with data keep them until they are
    /// evacuated. With a bad block, all blocks of its superblock are bad.
    fn adopt_bad(&mut self, bad: &[BlockId], factory: u64) {
        self.ftl.blocks.forget_bad();
        let together: BTreeSet<BlockId> = bad.iter().flat_map(|&block| self.ftl.blocks.erased_with(block)).collect();
        self.ftl.blocks.mark_bad(&together.into_iter().collect::<Vec<_>>());
        self.ftl.note_factory_bad(factory);
    }

    /// Restores what is known of the superblocks that are kept.
    fn restore_superblocks(&mut self, closed: &[BlockId], scan: &Scan) {
        let Found { ends, torn, .. } = &scan.found;
        let blocks = &mut self.ftl.blocks;
        if blocks.has_superblocks() {
            for &block in closed {
                if blocks.erased_with(block).next() == Some(block) {
                    let failed = blocks.block(block).failed;
                    blocks.superblock_found(block, ends, torn, failed);
                }
            }
        }
    }

    /// Retires failed blocks without newest versions. `used` are the blocks with data, `closed` those that are kept.
    fn retire_found(&mut self, used: &[BlockId], closed: &[BlockId]) {
        for &block in used.iter().filter(|block| self.ftl.blocks.block(**block).failed && !closed.contains(block)) {
            self.log.emit(FlashEvent::Retired { block });
        }
    }

    /// Starts to evacuate failed blocks with data.
    fn empty_found(&mut self, closed: &[BlockId]) {
        for &block in closed.iter().filter(|block| self.ftl.blocks.block(**block).failed).collect::<Vec<_>>() {
            self.ftl.empty_failed(block);
        }
    }

    /// Maps the units of a block, and of blocks that are erased with it, to copies in other blocks, if all of them have
    /// such copies. Returns `true` if it did.
    fn move_to_others(&mut self, block: BlockId, found: &mut Found) -> bool {
        let blocks = &self.ftl.blocks;
        let together: Vec<BlockId> = blocks.erased_with(block).collect();
        let data_units = blocks.data_units();
        let firsts: Vec<u32> = together.iter().map(|&member| blocks.first_unit(member).0).collect();
        let units = || firsts.iter().flat_map(|&first| (first..first + data_units).map(Ppn));
        let is_here = |ppn: Ppn| together.contains(&blocks.block_of(ppn));
        let mapped = |map: &PageMap, ppn| {
            let lpn = map.owner(ppn);
            (lpn != PADDING && map.get(Lpn(lpn)) == Location::Flash(ppn)).then_some(lpn)
        };
        // A block may hold two copies of a unit.
        let elsewhere = |lpn: u32| {
            let others = found.others.get(&lpn).into_iter().flatten();
            others.copied().find(|&other| !is_here(other))
        };
        let held: Vec<u32> = units().filter_map(|ppn| mapped(&self.ftl.map, ppn)).collect();
        let all = held.iter().all(|&lpn| elsewhere(lpn).is_some());
        let moves: Vec<(u32, Option<Ppn>)> = held.iter().map(|&lpn| (lpn, elsewhere(lpn))).collect();
        if !all {
            return false;
        }
        for (lpn, ppn) in moves {
            if let Some(ppn) = ppn {
                self.ftl.map.set_flash(Lpn(lpn), ppn);
            }
        }
        let blocks = &self.ftl.blocks;
        let in_block = |ppn: &Ppn| together.contains(&blocks.block_of(*ppn));
        for ppn in units() {
            let lpn = self.ftl.map.owner(ppn);
            if let Some(others) = found.others.get_mut(&lpn) {
                others.retain(|other| !in_block(other));
                if let Location::Flash(ppn) = self.ftl.map.get(Lpn(lpn)) {
                    others.retain(|other| *other != ppn);
                }
            }
        }
        true
    }

    fn erase_found(&mut self, scan: &mut Scan, report: &mut Recovery) {
        // A scheme that merges blocks has erased some of them before.
        for &block in scan.erased.iter().skip(report.blocks_erased as usize) {
            report.blocks_erased += 1;
            let erases = &mut scan.found.erases[block.index()];
            *erases = erases.saturating_add(1);
            self.log.emit(FlashEvent::EraseBegun { block });
            self.log.emit(FlashEvent::EraseEnded { block, erases: *erases });
        }
    }

    /// Initializes the counters: valid units count as programmed, the rest of their blocks as padding.
    fn count_found(&mut self, closed: &[BlockId]) {
        let valid = self.ftl.blocks.valid_data();
        let units: u64 = closed.iter().map(|&block| u64::from(self.ftl.blocks.size_of(block).data_units)).sum();
        self.ftl.counters.units_programmed = valid;
        self.ftl.counters.units_padded = units - valid;
    }

    /// Returns `true` if all translation pages have room. On a read-only device they have none.
    fn can_write_map(&self) -> bool {
        let has_room = |plane| self.ftl.blocks.free_blocks(PlaneId(plane), Role::Map) == self.ftl.shape().map_blocks;
        !self.ftl.is_read_only() && (0..self.ftl.shape().planes).all(has_room)
    }

    /// Writes all translation pages that have entries, because their old versions have been erased.
    fn write_map_anew(&mut self) -> u64 {
        if self.ftl.shape().map_pages == 0 || !self.can_write_map() {
            return 0;
        }
        let before = self.ftl.counters.map.programs;
        for lpn in 0..self.ftl.host_units {
            if self.ftl.map.get(Lpn(lpn)) != Location::Unmapped {
                self.ftl.changed_now(Lpn(lpn), Change::Entry);
            }
        }
        let log = &mut *self.log;
        let mut written = |ftl: &mut Ftl, page, ppn: Ppn| {
            let group = ftl.blocks.size(Role::Map).program_units;
            let sequence = ftl.next_sequence();
            log.begin_map(page, ppn, group, sequence);
            log.end(ppn, group);
            let end = Ppn(ppn.0 + group);
            if ftl.shape().summary && ftl.blocks.ends_data(end, Role::Map) {
                log.emit_summary(ftl, end);
            }
        };
        self.ftl.seal_kept(&mut written);
        self.ftl.counters.map.programs.iter().zip(before).map(|(now, before)| now - before).sum()
    }

    fn read_journal(
        &mut self,
        flash: &mut dyn FlashImage,
        scan: &mut Scan,
        report: &mut Recovery,
    ) -> Result<(), RecoverError> {
        let first = self.ftl.host_units;
        let all = self.layout().map_or(self.ftl.map.all(), |checkpoint| checkpoint.first);
        let mut pages = Vec::new();
        for lpn in first..all {
            let Location::Flash(ppn) = self.ftl.map.get(Lpn(lpn)) else { continue };
            let mut bytes = Vec::new();
            flash.own(ppn, &mut bytes).map_err(RecoverError::Flash)?;
            let records = Journal::records(&bytes);
            let records = records.filter(|records| records.iter().all(|&(lpn, _)| lpn < first));
            let broken = || RecoverError::Foreign(format!("unit {} of the journal holds no records", lpn - first));
            pages.push((lpn - first, records.ok_or_else(broken)?));
        }
        for &(lpn, sequence) in pages.iter().flat_map(|(_, records)| records) {
            report.journal_records += 1;
            report.units_trimmed += u64::from(self.recover_trim(Lpn(lpn), sequence, scan));
        }
        let Some(journal) = &mut self.durability.journal else { return Ok(()) };
        for (slot, records) in pages {
            // A record is needed as long as no newer version is in flash.
            journal.adopt(slot, records, |lpn, _| self.ftl.map.get(Lpn(lpn)) == Location::Unmapped);
        }
        Ok(())
    }

    /// Applies the trims that survived in memory. Returns the writes that survived: the newest of each unit.
    fn take_saved(
        &mut self,
        flash: &mut dyn FlashImage,
        scan: &mut Scan,
        report: &mut Recovery,
    ) -> Result<BTreeMap<u32, u64>, RecoverError> {
        let mut writes: BTreeMap<u32, u64> = BTreeMap::new();
        let mut trims: BTreeMap<u32, u64> = BTreeMap::new();
        for saved in flash.saved().map_err(RecoverError::Flash)? {
            let (of, lpn, sequence) = match saved {
                Saved::Write { lpn, sequence } => (&mut writes, lpn, sequence),
                Saved::Trim { lpn, sequence } => (&mut trims, lpn, sequence),
            };
            if lpn.0 >= self.ftl.host_units {
                return Err(RecoverError::Foreign("memory holds units beyond the end of the device".to_owned()));
            }
            let newest = of.entry(lpn.0).or_default();
            *newest = sequence.max(*newest);
            self.ftl.sequence = self.ftl.sequence.max(sequence);
        }
        for (&lpn, &sequence) in &trims {
            report.units_trimmed += u64::from(self.recover_trim(Lpn(lpn), sequence, scan));
            writes.retain(|written, number| *written != lpn || *number > sequence);
            if let Some(journal) =
                self.durability.journal.as_mut().filter(|_| self.ftl.map.get(Lpn(lpn)) == Location::Unmapped)
            {
                journal.adopt_waiting(Lpn(lpn), sequence);
            }
        }
        Ok(writes)
    }

    /// Restores the sector versions of flash, for verification.
    fn fill_contents(&mut self, flash: &mut dyn FlashImage, scan: &Scan) {
        let Some(media) = &mut self.ftl.media else { return };
        for block in (0..self.ftl.blocks.all().len() as u32).map(BlockId) {
            let first = self.ftl.blocks.first_unit(block).0;
            for ppn in (first..first + self.ftl.blocks.data_units()).map(Ppn) {
                if self.ftl.blocks.is_valid(ppn)
                    && let Some(versions) = flash.versions(scan.origins.get(&ppn.0).copied().unwrap_or(ppn))
                {
                    media.program(ppn, &versions);
                }
            }
        }
    }
}

/// Restores units that survived in the buffer as dirty, unless flash has a newer version. `writes` has the sequence
/// number and the list of the buffer of each.
pub fn restore_buffer(
    buffer: &mut Buffer,
    ftl: &Ftl,
    (log, flash): (&mut FlashLog, &mut dyn FlashImage),
    writes: Vec<(Lpn, u64, u16)>,
    report: &mut Recovery,
) -> Result<(), RecoverError> {
    let sectors = ftl.shape().sectors_per_unit;
    for (lpn, sequence, list) in writes {
        if ftl.ppn_in_flash(lpn).is_some_and(|ppn| log.sequence(ppn) >= sequence) {
            continue;
        }
        let versions = flash.saved_versions(lpn, sequence);
        let too_many = || foreign("memory holds more units than the buffer");
        let entry = buffer.restore(lpn, sectors, list, versions.as_deref()).ok_or_else(too_many)?;
        report.units_saved += 1;
        log.set_coming(sequence, true);
        log.note_in_buffer(entry);
    }
    Ok(())
}

/// Takes the reads of a scan back, because memory other than flash holds the same records.
fn forget_reads(pages: &mut [u32], found: &mut Found, report: &mut Recovery) {
    pages.fill(0);
    found.wholes.clear();
    report.pages_read = 0;
    report.blocks_skipped = std::mem::take(&mut report.blocks_scanned) + std::mem::take(&mut report.summaries_used);
}

fn foreign(what: &str) -> RecoverError {
    RecoverError::Foreign(what.to_owned())
}

/// Results of reading flash.
#[derive(Debug, Default)]
pub struct Scan {
    found: Found,
    /// Number of pages read. Indexed by block.
    pub pages: Vec<u32>,
    /// Cell modes. Indexed by block.
    pub cells: Vec<CellMode>,
    /// Units that were read with their payload.
    pub wholes: Vec<Ppn>,
    /// Blocks that were restored from the checkpoint.
    pub accounted: Vec<BlockId>,
    /// Blocks to be erased.
    pub erased: Vec<BlockId>,
    /// True if the mapping scheme has no place for some blocks, and no block is free for a merge.
    pub is_stuck: bool,
    /// Addresses of units that were merged.
    pub merged: Vec<Ppn>,
    /// First unit of each program of a merge.
    pub programs: Vec<Ppn>,
    /// Addresses in the flash before the recovery, by the address that a unit was merged to.
    origins: BTreeMap<u32, Ppn>,
}
