//! Building the map anew from what is in flash: see docs/model/durability.md.

use std::collections::BTreeMap;

use super::Durability;
use super::account::{Account, Layout};
use super::flash::{Bad, FlashEvent, FlashImage, Record, RecordKind, Saved, UnitState};
use super::journal::Journal;
use super::log::FlashLog;
use crate::config::cells::CellMode;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Location, PADDING, PageMap};
use crate::ftl::space::{RESERVE, Role};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};

/// Why a device cannot be made of what is in flash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// The configuration makes no device, or none that can lose its power.
    #[error("{0}")]
    Device(String),
    /// Whoever keeps the flash could not read it.
    #[error("the flash could not be read: {0}")]
    Flash(String),
    /// What is there was not written by a device of this configuration.
    #[error("the flash does not fit the device: {0}; use the device file that it was written with")]
    Foreign(String),
}

/// What a recovery found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Recovery {
    /// Flash pages read.
    pub pages_read: u64,
    /// Blocks whose summary stood for their pages.
    pub summaries_used: u64,
    /// Parts of the checkpoint that were read.
    pub checkpoint_parts: u64,
    /// Blocks of which nothing was read, because the checkpoint has their accounts.
    pub blocks_skipped: u64,
    /// Blocks that are empty.
    pub blocks_empty: u64,
    /// Blocks of which every page was read.
    pub blocks_scanned: u64,
    /// Units whose checksum does not hold.
    pub torn_units: u64,
    /// Programs that were torn.
    pub torn_programs: u64,
    /// Records of trims in the journal.
    pub journal_records: u64,
    /// Units that a trim unmapped.
    pub units_trimmed: u64,
    /// Units of the host that are mapped.
    pub units_mapped: u64,
    /// Copies of one version of a unit beyond the first.
    pub duplicates: u64,
    /// Units that memory with power-loss protection held.
    pub units_saved: u64,
    /// Blocks that were erased, because they hold nothing that matters.
    pub blocks_erased: u64,
    /// Translation pages that were written anew.
    pub map_pages_written: u64,
    /// Blocks that are bad, or will be when they are empty.
    pub blocks_bad: u64,
    /// Those that were bad when the device was new.
    pub factory_bad: u64,
    /// How long it takes, in simulated ps.
    pub time_ps: u64,
}

/// What has been found and is not settled.
#[derive(Debug, Default)]
struct Found {
    /// Second copies of what is mapped, by unit.
    others: BTreeMap<u32, Vec<Ppn>>,
    /// Which sectors were ever written, by place, of units that are not whole.
    sectors: BTreeMap<u32, u64>,
    /// By block, how often it was erased.
    erases: Vec<u32>,
    /// By block, whether anything is in it.
    used: Vec<bool>,
    /// By block, its cell mode.
    cells: Vec<CellMode>,
    /// Blocks that are bad.
    bad: Vec<BlockId>,
    /// Places that could not be read when they were written.
    lost: Vec<Ppn>,
    highest: u64,
    /// Units that were read with all that they hold.
    wholes: Vec<Ppn>,
    /// The part of the checkpoint that was read last, and its accounts.
    part: Option<(u32, Vec<Option<Account>>)>,
    /// Blocks whose accounts counted.
    accounted: Vec<BlockId>,
}

/// A device that is made of what is in flash: an empty one, of which nothing but the configuration is known.
#[derive(Debug)]
pub struct Rebuild<'a> {
    /// The translation layer.
    pub ftl: &'a mut Ftl,
    /// The log, which learns what is in flash, and reports what the recovery does there.
    pub log: &'a mut FlashLog,
    /// The journal and the checkpoint.
    pub durability: &'a mut Durability,
}

impl Rebuild<'_> {
    fn layout(&self) -> Option<Layout> {
        self.durability.checkpoint.as_ref().map(|checkpoint| checkpoint.layout)
    }

    /// Reads flash: the newest version of each unit is mapped. Returns what was found, and the writes that memory with
    /// power-loss protection held.
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
        self.fill_contents(flash);
        Ok((scan, writes))
    }

    /// Writes the translation pages anew, and continues with the checkpoint that was found. Parts that are elsewhere
    /// now, as of several copies, are reported.
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
                self.log.tell(FlashEvent::Anchored { part, ppn });
            }
        }
        checkpoint.adopt(&scan.accounted, self.ftl);
        Ok(())
    }
    /// Reads flash into a new translation layer that is durable: the newest version of each unit is mapped.
    fn scan(&mut self, flash: &mut dyn FlashImage, report: &mut Recovery) -> Result<Scan, RecoverError> {
        let blocks = self.ftl.blocks.all().len() as u32;
        let (used, cells) = (vec![false; blocks as usize], vec![CellMode::Native; blocks as usize]);
        let mut found = Found { used, cells, ..Found::default() };
        let mut pages = vec![0u32; blocks as usize];
        for block in (0..blocks).map(BlockId) {
            found.erases.push(flash.erases(block).map_err(RecoverError::Flash)?);
            let bad = flash.bad(block).map_err(RecoverError::Flash)?;
            if let Some(bad) = bad {
                found.bad.push(block);
                report.factory_bad += u64::from(bad == Bad::Factory);
                report.blocks_bad += 1;
            }
            // An erase that failed does not count, and yet nothing is left of what an account tells.
            if bad.is_none() && self.take_account(flash, block, &mut found, report)? {
                continue;
            }
            pages[block.index()] = self.scan_block(flash, block, &mut found, report)?;
            report.pages_read += u64::from(pages[block.index()]);
        }
        found.part = None;
        self.ftl.sequence = self.ftl.sequence.max(found.highest);
        let wholes = std::mem::take(&mut found.wholes);
        report.pages_read += wholes.len() as u64 * u64::from(self.ftl.shape().pages_per_unit);
        let accounted = std::mem::take(&mut found.accounted);
        report.blocks_skipped = accounted.len() as u64;
        let cells = std::mem::take(&mut found.cells);
        Ok(Scan { found, pages, cells, wholes, accounted, erased: Vec::new() })
    }

    /// Takes a block as the checkpoint has it, if it was not erased since; whether it was.
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
        found.accounted.push(block);
        Ok(true)
    }

    /// Reads a part of the checkpoint, unless it is at hand. What is not there, or something else, has no accounts.
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
        // What cannot be read is no checkpoint; everything can be known without it.
        let mut bytes = Vec::new();
        let accounts = flash.own(ppn, &mut bytes).ok().and_then(|()| checkpoint.accounts(part, &bytes));
        found.part = Some((part, accounts.unwrap_or_default()));
        Ok(())
    }

    /// Reads a block: by its summary where there is one, else page by page. Returns how many pages were read. The
    /// record of the first page says what the block holds, and so in which cell mode it is.
    fn scan_block(
        &mut self,
        flash: &mut dyn FlashImage,
        block: BlockId,
        found: &mut Found,
        report: &mut Recovery,
    ) -> Result<u32, RecoverError> {
        let first = self.ftl.blocks.first_unit(block);
        let unit = |flash: &mut dyn FlashImage, ppn| flash.unit(ppn).map_err(RecoverError::Flash);
        // Programs go through a block in order, from its first place on.
        let role = match unit(flash, first)? {
            UnitState::Erased => {
                report.blocks_empty += 1;
                return Ok(1);
            }
            UnitState::Holds(Record { kind: RecordKind::Map, .. }) if self.ftl.shape().map_blocks > 0 => Role::Map,
            _ => Role::Data,
        };
        found.used[block.index()] = true;
        found.cells[block.index()] = self.ftl.blocks.cells(role);
        let (units, group) = (self.ftl.blocks.size(role).data_units, self.ftl.blocks.size(role).program_units);
        // Nothing is behind the data of a block that holds less than others.
        (first.0 + units..first.0 + self.ftl.blocks.data_units()).for_each(|unit| {
            self.ftl.map.set_owner(Ppn(unit), PADDING);
        });
        if self.ftl.shape().summary {
            let mut bytes = Vec::new();
            let ppn = Ppn(first.0 + units);
            if let UnitState::Holds(Record { kind: RecordKind::Summary, .. }) = unit(flash, ppn)? {
                // A summary that cannot be read is none: the pages have the same records.
                let read = flash.own(ppn, &mut bytes);
                read.unwrap_or_else(|_| bytes.clear());
            }
            if bytes.len() == units as usize * Record::BYTES {
                report.summaries_used += 1;
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
            match unit(flash, ppn)? {
                UnitState::Erased => self.ftl.map.set_owner(ppn, PADDING),
                UnitState::Torn => {
                    self.ftl.map.set_owner(ppn, PADDING);
                    report.torn_units += 1;
                    report.torn_programs += u64::from(offset.is_multiple_of(group));
                }
                UnitState::Holds(record) => self.found(ppn, record, found)?,
            }
        }
        Ok(self.ftl.shape().units_per_page.divide(units) * self.ftl.shape().pages_per_unit)
    }

    /// A unit has been found.
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
            // A journal or a checkpoint that the device does not keep any more.
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
        match record.sequence.cmp(&self.log.sequence(held)) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => found.others.entry(lpn.0).or_default().push(ppn),
            std::cmp::Ordering::Greater => {
                self.ftl.map.set_flash(lpn, ppn);
                found.others.remove(&lpn.0);
            }
        }
        Ok(())
    }

    /// A unit was trimmed with a number: it is unmapped unless it was written later.
    fn recover_trim(&mut self, lpn: Lpn, sequence: u64, scan: &mut Scan) -> bool {
        self.ftl.sequence = self.ftl.sequence.max(sequence);
        let Location::Flash(ppn) = self.ftl.map.get(lpn) else { return false };
        let older = self.log.sequence(ppn) < sequence;
        if older {
            self.ftl.map.unmap(lpn);
            scan.found.others.remove(&lpn.0);
        }
        older
    }

    /// Settles what was found: one place for each unit, blocks that hold nothing are erased, the others are closed.
    fn settle(&mut self, scan: &mut Scan, report: &mut Recovery) -> Result<(), RecoverError> {
        let found = &mut scan.found;
        report.duplicates = found.others.values().map(|others| others.len() as u64).sum();
        let mut used: Vec<BlockId> =
            (0..found.used.len()).filter(|&b| found.used[b]).map(|b| BlockId(b as u32)).collect();
        used.sort_by_key(|&block| (self.log.opened[block.index()], block));
        // The youngest first: a half-filled block of copies goes rather than the block that they were read from.
        let mut closed = Vec::with_capacity(used.len());
        self.adopt_bad(&found.bad, report.factory_bad);
        for &block in used.iter().rev() {
            if self.move_to_others(block, found) {
                if !self.ftl.blocks.block(block).failed {
                    scan.erased.push(block);
                }
            } else {
                closed.push(block);
            }
        }
        closed.reverse();
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
        self.ftl.blocks.restore(&closed, &scan.found.erases);
        self.count_found(closed.len() as u64);
        self.empty_found(&closed);
        (0..self.ftl.shape().planes).for_each(|plane| self.ftl.refresh_ready(PlaneId(plane)));
        // With blocks that fail it takes no writes.
        let stuck =
            |&plane: &PlaneId| self.ftl.faults.is_none() && self.ftl.blocks.free_blocks(plane, Role::Data) < RESERVE;
        (0..self.ftl.shape().planes)
            .map(PlaneId)
            .find(stuck)
            .map_or(Ok(()), |plane| Err(foreign(&format!("plane {} has no free block, and none to gain", plane.0))))
    }

    /// The medium says which blocks are bad, and not the seed. Those with data keep it until they are emptied.
    fn adopt_bad(&mut self, bad: &[BlockId], factory: u64) {
        self.ftl.blocks.forget_bad();
        self.ftl.blocks.mark_bad(bad);
        self.ftl.note_factory_bad(factory);
    }

    /// Blocks with data that have failed are to be emptied.
    fn empty_found(&mut self, closed: &[BlockId]) {
        for &block in closed.iter().filter(|block| self.ftl.blocks.block(**block).failed).collect::<Vec<_>>() {
            self.ftl.empty_failed(block);
        }
    }

    /// Maps all units of a block that are elsewhere too to there; whether it holds nothing then.
    fn move_to_others(&mut self, block: BlockId, found: &mut Found) -> bool {
        let first = self.ftl.blocks.first_unit(block).0;
        let units = || (first..first + self.ftl.blocks.data_units()).map(Ppn);
        let mapped = |map: &PageMap, ppn| {
            let lpn = map.owner(ppn);
            (lpn != PADDING && map.get(Lpn(lpn)) == Location::Flash(ppn)).then_some(lpn)
        };
        // A unit may be in a block twice.
        let elsewhere = |lpn: u32| {
            let others = found.others.get(&lpn).into_iter().flatten();
            others.copied().find(|&other| self.ftl.blocks.block_of(other) != block)
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
        let in_block = |ppn: &Ppn| self.ftl.blocks.block_of(*ppn) == block;
        for ppn in (first..first + self.ftl.blocks.data_units()).map(Ppn) {
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
        for &block in &scan.erased {
            report.blocks_erased += 1;
            let erases = &mut scan.found.erases[block.index()];
            *erases = erases.saturating_add(1);
            self.log.tell(FlashEvent::EraseBegun { block });
            self.log.tell(FlashEvent::EraseEnded { block, erases: *erases });
        }
    }

    /// The books begin with what is there: what is valid was programmed, and the rest of its blocks is padding.
    fn count_found(&mut self, closed: u64) {
        let valid = self.ftl.blocks.valid_data();
        self.ftl.counters.units_programmed = valid;
        self.ftl.counters.units_padded = closed * u64::from(self.ftl.blocks.data_units()) - valid;
    }

    /// Whether all translation pages have room: not in a device that takes no writes.
    fn can_write_map(&self) -> bool {
        let has_room = |plane| self.ftl.blocks.free_blocks(PlaneId(plane), Role::Map) == self.ftl.shape().map_blocks;
        !self.ftl.is_read_only() && (0..self.ftl.shape().planes).all(has_room)
    }

    /// Writes all translation pages that have entries: what was of them in flash has been erased.
    fn write_map_anew(&mut self) -> u64 {
        if !self.ftl.shape().hooks.entries || !self.can_write_map() {
            return 0;
        }
        let before = self.ftl.counters.map.programs;
        for lpn in 0..self.ftl.host_units {
            if self.ftl.map.get(Lpn(lpn)) != Location::Unmapped {
                self.ftl.change_entry_now(Lpn(lpn));
            }
        }
        let log = &mut *self.log;
        let mut written = |ftl: &mut Ftl, page, ppn: Ppn| {
            let (group, sequence) = (ftl.blocks.size(Role::Map).program_units, ftl.next_sequence());
            log.begin_map(page, ppn, group, sequence);
            log.end(ppn, group);
            let end = Ppn(ppn.0 + group);
            if ftl.shape().summary && ftl.blocks.ends_data(end, Role::Map) {
                log.tell_summary(ftl, end);
            }
        };
        self.ftl.with_scheme(|scheme, ftl| scheme.seal(ftl, &mut written));
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
            // A record matters while no newer version is in flash.
            journal.adopt(slot, records, |lpn, _| self.ftl.map.get(Lpn(lpn)) == Location::Unmapped);
        }
        Ok(())
    }

    /// What memory held that survived: trims are applied, writes are returned, the newest of each unit.
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
                return Err(RecoverError::Foreign("memory held units beyond the end of the device".to_owned()));
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

    /// With verification: the contents of flash.
    fn fill_contents(&mut self, flash: &mut dyn FlashImage) {
        let Some(media) = &mut self.ftl.media else { return };
        for block in (0..self.ftl.blocks.all().len() as u32).map(BlockId) {
            let first = self.ftl.blocks.first_unit(block).0;
            for ppn in (first..first + self.ftl.blocks.data_units()).map(Ppn) {
                if self.ftl.blocks.is_valid(ppn)
                    && let Some(versions) = flash.versions(ppn)
                {
                    media.program(ppn, &versions);
                }
            }
        }
    }
}

fn foreign(what: &str) -> RecoverError {
    RecoverError::Foreign(what.to_owned())
}

/// What reading flash has brought.
#[derive(Debug, Default)]
pub struct Scan {
    found: Found,
    /// By block, pages read.
    pub pages: Vec<u32>,
    /// By block, its cell mode.
    pub cells: Vec<CellMode>,
    /// Units that were read with all that they hold.
    pub wholes: Vec<Ppn>,
    /// Blocks that were taken from the checkpoint.
    pub accounted: Vec<BlockId>,
    /// Blocks that are erased.
    pub erased: Vec<BlockId>,
}
