//! Check of an image for damage when it is opened: no record is missing, and every record belongs to its place.
//!
//! Blocks are programmed in order, and their entries have the number of units that were programmed at the last flush or
//! erase of any block. A record that is missing below this number, or before another record, has vanished. After the
//! check, every record is whole: programs that were interrupted are marked as torn.

use std::io;
use std::ops::Range;

use floatgate_core::flash::RecordKind;
use xxhash_rust::xxh3::xxh3_64;

use super::ImageError;
use super::disk::Disk;
use super::flash::Flash;
use super::layout::SLOT;
use super::record::{Slot, SlotState, Stored, decode, encode, erases_of};
use super::repair::repair;
use super::state::State;
use super::table::{BlockEntry, Mark, Table};

/// End of the last use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A shutdown: everything is on the disk of the machine.
    Shutdown,
    /// A killed program, or a power cut of the device: the kernel has everything that was written.
    Kill,
    /// Possibly a crash of the machine: any part of the changes since the last sync may be on the disk.
    Crash,
}

/// Result of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Number of records that are damaged or have vanished.
    pub lost: u64,
    /// Number of units with damaged payload. Counted only if the payload was checked.
    pub payload_lost: u64,
    /// Number of records that were flushed, but had not reached the machine's disk when the machine stopped.
    pub unsynced: u64,
}

/// A check in progress.
struct Inspector<'a> {
    flash: &'a mut Flash,
    ending: Ending,
    /// True if the payload of each unit is compared with its digest.
    checks_payload: bool,
    /// True if lost records are given up, instead of being left for another attempt.
    salvages: bool,
    found: Inspection,
    /// Records of the current block.
    slots: Vec<u8>,
    states: Vec<SlotState>,
    payload: Vec<u8>,
}

impl Flash {
    /// Reads the tables and all records. Restores what has a second copy, completes interrupted changes, and counts
    /// what is damaged. With `salvages`, damaged records become torn units, so that the image is whole again.
    pub fn inspect(&mut self, ending: Ending, checks_payload: bool, salvages: bool) -> Result<Inspection, ImageError> {
        let (state, damaged) = State::read(&mut self.disk)?;
        self.state = state;
        self.repaired += damaged;
        self.read_tables(ending)?;
        self.uncounted.clear();
        let (found, slots, states) = (Inspection::default(), Vec::new(), Vec::new());
        let mut inspector =
            Inspector { flash: self, ending, checks_payload, salvages, found, slots, states, payload: Vec::new() };
        for block in 0..inspector.flash.layout.blocks {
            inspector.block(block)?;
        }
        let found = inspector.found;
        self.take_failure().map_or(Ok(found), |error| Err(error.into()))
    }

    fn read_tables(&mut self, ending: Ending) -> Result<(), ImageError> {
        let both = |what: &str, index: u32| Err(ImageError::Damaged(format!("both entries of {what} {index}")));
        let blocks = Table::of_blocks(&self.layout).read(&mut self.disk)?;
        if let Some(block) = blocks.damaged {
            return both("block", block);
        }
        if ending == Ending::Shutdown && xxh3_64(blocks.values.as_flattened()) != self.state.root {
            return Err(ImageError::Damaged("entries of blocks are from another time than the rest".to_owned()));
        }
        for (index, value) in (0..).zip(&blocks.values) {
            let unknown = || ImageError::Damaged(format!("unknown state of block {index}"));
            self.entries[index as usize] = BlockEntry::parse(value).ok_or_else(unknown)?;
        }
        // A part of the checkpoint without a valid entry is not used.
        let parts = Table::of_parts(&self.layout).read(&mut self.disk)?;
        self.generation = self.generation.max(blocks.generation).max(parts.generation);
        self.repaired += blocks.repaired + parts.repaired;
        Ok(())
    }
}

impl Inspector<'_> {
    fn block(&mut self, block: u32) -> Result<(), ImageError> {
        let units = self.flash.layout.units as usize;
        if self.flash.entries[block as usize].mark == Mark::Retired {
            // Its data are elsewhere, and it is not programmed again.
            self.flash.next[block as usize] = units as u32;
            return Ok(());
        }
        let (start, _) = self.flash.layout.block(block);
        let bytes = units * SLOT;
        let is_hole = self.flash.disk.data_after(start)? >= start + bytes as u64;
        if is_hole && self.flash.entries[block as usize].is_empty() {
            self.flash.next[block as usize] = 0;
            return Ok(());
        }
        self.states.clear();
        self.slots.clear();
        self.slots.resize(bytes, 0);
        if !is_hole {
            self.flash.disk.read(start, &mut self.slots)?;
            if self.ending == Ending::Crash {
                self.adopt_erases(block)?;
            }
            self.decode(block)?;
        }
        self.states.resize(units, SlotState::Erased);
        if self.flash.entries[block as usize].mark == Mark::Erasing && self.complete_erase(block)? {
            return Ok(());
        }
        let programmed = self.flash.entries[block as usize].programmed as usize;
        // Records of units that were left out come before the program that left them out. If that was never written,
        // the device sees these units as erased, and may program them.
        let last = self.states.iter().rposition(|state| !matches!(state, SlotState::Erased | SlotState::Skipped));
        let end = last.map_or(0, |last| last + 1).max(programmed);
        self.states[end..].fill(SlotState::Erased);
        self.flash.next[block as usize] = end as u32;
        if end > 0 {
            self.check_records(programmed, end);
            self.check_payload(block, programmed)?;
            self.check_programs(programmed, end);
            self.settle(block)?;
        }
        Ok(())
    }

    /// After a crash of the machine, the records can be from another erase count than the entry of the block. Adopts
    /// the newest erase count of the records, and removes records from before the last erase.
    fn adopt_erases(&mut self, block: u32) -> io::Result<()> {
        let first = block * self.flash.layout.units;
        let entry = self.flash.entries[block as usize];
        let written = |(ppn, slot): (u32, &[u8; SLOT])| erases_of(ppn, slot);
        let newest = (first..).zip(self.slots.as_chunks().0).filter_map(written).max();
        let erases = newest.unwrap_or(0).max(entry.erases);
        if erases > entry.erases {
            // Of failed blocks, only the erase count is kept.
            let mark = if entry.mark.bad().is_some() { entry.mark } else { Mark::Good };
            self.flash.set_entry(block, BlockEntry { erases, programmed: 0, mark });
        }
        for (ppn, slot) in (first..).zip(self.slots.as_chunks_mut::<SLOT>().0) {
            if erases_of(ppn, slot).is_some_and(|written| written < erases) {
                slot.fill(0);
                self.flash.disk.write(self.flash.layout.slot(ppn), slot)?;
            }
        }
        Ok(())
    }

    /// Decodes the records of a block, and restores those in which one or two bits are wrong.
    fn decode(&mut self, block: u32) -> io::Result<()> {
        let first = block * self.flash.layout.units;
        let erases = self.flash.entries[block as usize].erases;
        for (ppn, slot) in (first..).zip(self.slots.as_chunks_mut::<SLOT>().0) {
            let mut state = decode(ppn, erases, slot);
            let is_valid = |bytes: &[u8]| decode(ppn, erases, bytes) != SlotState::Damaged;
            // A record with a right digest is from other contents of the block.
            let may_be_restored = state == SlotState::Damaged && erases_of(ppn, slot).is_none();
            if may_be_restored && repair(slot, self.flash.may_try_pairs(), is_valid) {
                self.flash.disk.write(self.flash.layout.slot(ppn), slot)?;
                self.flash.repaired += 1;
                state = decode(ppn, erases, slot);
            }
            self.states.push(state);
        }
        Ok(())
    }

    /// Completes an erase that has begun, and counts it. Returns `false` if the entry still has the number of records,
    /// and none of them is missing or lacks its payload: then nothing was erased yet, and the block keeps its contents.
    fn complete_erase(&mut self, block: u32) -> io::Result<bool> {
        let entry = self.flash.entries[block as usize];
        let programmed = entry.programmed as usize;
        let is_whole = |state: &SlotState| !matches!(state, SlotState::Erased | SlotState::Damaged);
        let is_untouched = programmed > 0 && self.states[..programmed].iter().all(is_whole);
        if is_untouched && (self.ending != Ending::Crash || self.have_right_payload(block, programmed)?) {
            self.flash.set_entry(block, BlockEntry { mark: Mark::Good, ..entry });
            return Ok(false);
        }
        let (start, bytes) = self.flash.layout.block(block);
        self.flash.disk.punch(start, bytes)?;
        let erases = entry.erases.saturating_add(1);
        self.flash.set_entry(block, BlockEntry { erases, programmed: 0, mark: Mark::Good });
        self.flash.next[block as usize] = 0;
        Ok(true)
    }

    /// Returns `true` if the machine's disk may lack a unit of a block because the machine stopped.
    fn is_excused(&self, index: usize, programmed: usize) -> bool {
        self.ending == Ending::Crash && !(index < programmed && self.flash.state.syncs)
    }

    /// Marks what is missing from the records of a block: as damaged, or as torn if the end of the last use explains
    /// it. `end` is the end of the units that are or must be programmed.
    fn check_records(&mut self, programmed: usize, end: usize) {
        for index in 0..end {
            if self.states[index] == SlotState::Erased {
                let is_excused = self.is_excused(index, programmed);
                self.found.unsynced += u64::from(is_excused && index < programmed);
                self.states[index] = if is_excused { SlotState::Torn } else { SlotState::Damaged };
            }
        }
    }

    /// Makes all units of a program torn if it was interrupted, because programs are atomic.
    fn check_programs(&mut self, programmed: usize, end: usize) {
        for index in 0..end {
            let SlotState::Holds(slot) = self.states[index] else { continue };
            let Some(program) = self.program_of(index, slot) else {
                self.states[index] = SlotState::Damaged;
                continue;
            };
            let was_killed = program.end > end && self.ending != Ending::Shutdown;
            let is_excused = self.is_excused(index, programmed);
            let states = &mut self.states[program];
            if was_killed || (is_excused && states.contains(&SlotState::Torn)) {
                states.fill(SlotState::Torn);
            } else if states.contains(&SlotState::Erased) {
                states.fill(SlotState::Damaged);
            }
        }
    }

    /// Returns the units of the program that wrote a unit. `None` if they are not all in the block.
    fn program_of(&self, index: usize, slot: Slot) -> Option<Range<usize>> {
        let start = index.checked_sub(slot.part.0 as usize)?;
        let end = start + slot.part.1 as usize;
        (end <= self.states.len()).then_some(start..end)
    }

    /// Returns `true` if the payload of the first units of the current block matches.
    fn have_right_payload(&mut self, block: u32, units: usize) -> io::Result<bool> {
        for index in 0..units {
            if !self.has_right_payload(block, index)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns `true` if the payload of a unit in the current block matches its digest.
    fn has_right_payload(&mut self, block: u32, index: usize) -> io::Result<bool> {
        let SlotState::Holds(Slot { payload: Stored::Bytes(digest), .. }) = self.states[index] else { return Ok(true) };
        let ppn = block * self.flash.layout.units + index as u32;
        self.payload.resize(self.flash.layout.unit as usize, 0);
        self.flash.disk.read(self.flash.layout.payload(ppn), &mut self.payload)?;
        Ok(xxh3_64(&self.payload) == digest)
    }

    /// Compares the payload of a block with its digests. Payload that the kernel had not written when the machine
    /// stopped makes its unit torn; other wrong payload is damaged.
    fn check_payload(&mut self, block: u32, programmed: usize) -> io::Result<()> {
        for index in 0..if self.checks_payload { self.states.len() } else { 0 } {
            let SlotState::Holds(Slot { record, .. }) = self.states[index] else { continue };
            if self.has_right_payload(block, index)? {
                continue;
            }
            if self.is_excused(index, programmed) {
                self.found.unsynced += u64::from(index < programmed);
                self.states[index] = SlotState::Torn;
            } else {
                self.found.payload_lost += u64::from(record.kind == RecordKind::Data);
            }
        }
        Ok(())
    }

    /// Writes the records that the check has changed, and sets the next unit of the block.
    fn settle(&mut self, block: u32) -> Result<(), ImageError> {
        let first = block * self.flash.layout.units;
        let entry = self.flash.entries[block as usize];
        let mut next = 0;
        for (index, state) in self.states.iter().enumerate() {
            let is_lost = *state == SlotState::Damaged;
            self.found.lost += u64::from(is_lost);
            if *state != SlotState::Erased {
                next = index as u32 + 1;
            }
            if *state == SlotState::Torn || (is_lost && self.salvages) {
                let ppn = first + index as u32;
                let torn = encode(SlotState::Torn, ppn, entry.erases);
                if self.slots[index * SLOT..(index + 1) * SLOT] != torn {
                    self.flash.disk.write(self.flash.layout.slot(ppn), &torn)?;
                }
            }
        }
        if self.ending == Ending::Shutdown && next > entry.programmed {
            self.found.lost += u64::from(next - entry.programmed);
        }
        self.flash.next[block as usize] = next;
        if next != entry.programmed {
            self.flash.uncounted.push(block);
        }
        Ok(())
    }
}
