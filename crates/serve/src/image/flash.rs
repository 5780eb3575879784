//! Flash contents in the file, under the rules of flash: each mapping unit is programmed once between erases, in order
//! within its block, and is erased with its block.
//!
//! Changes reach the file in the order of the device's events. If a change fails, for example on a full disk, this
//! change and all later ones are kept in memory until they can be performed. Reads take them into account. The file
//! therefore always holds a state that flash had at some instant, even if the program is killed.

use std::collections::{BTreeSet, VecDeque};
use std::io;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::{Bad, Record};
use floatgate_core::sim::id::{BlockId, Lpn, Ppn};
use xxhash_rust::xxh3::xxh3_64;

use super::ImageError;
use super::disk::{Clocked, Disk};
use super::header::Header;
use super::layout::{COPIES, GRAIN, Layout, SLOT};
use super::record::{Slot, SlotState, Stored, decode, encode, has_payload};
use super::repair::repair;
use super::saved::{Encoded as EncodedHead, Entry, Head};
use super::state::State;
use super::table::{BlockEntry, Encoded, Mark, Table, Value, part_address, part_value};
use crate::clock::Wall;

/// Payload of a mapping unit to be programmed.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Zeros, which take no space in the file.
    Zeros,
    /// Bytes, followed by zeros up to the size of the unit.
    Bytes(&'a [u8]),
    /// Payload that could not be read.
    Lost,
}

/// Reason why a unit cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Error of the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The address holds nothing, or something else than expected.
    #[error("unit {0} has wrong contents")]
    Unreadable(u32),
}

/// A change of the file.
#[derive(Debug)]
enum Change {
    Program {
        ppn: u32,
        slots: Vec<u8>,
        payload: Vec<u8>,
    },
    Punch {
        block: u32,
    },
    Entry {
        offset: u64,
        bytes: Encoded,
    },
    /// Adds slots for saved entries. There were `before` slots.
    Slots {
        before: u32,
        state: State,
    },
    Save {
        number: u32,
        head: [EncodedHead; COPIES],
        payload: Vec<u8>,
    },
}

/// Number of slots for saved entries that a file gets at a time, at least.
const SAVED_STEP: u32 = 64;

/// Flash of a device, stored in a file.
pub struct Flash {
    identity: String,
    pub(super) disk: Clocked,
    pub(super) layout: Layout,
    pub(super) state: State,
    /// Entries of the table of blocks.
    pub(super) entries: Vec<BlockEntry>,
    /// Next unit to be programmed. Indexed by block.
    pub(super) next: Vec<u32>,
    /// Blocks with programmed units that are not in their entries. A block may be in the list more than once.
    pub(super) uncounted: Vec<u32>,
    /// Blocks whose entry has the number of programmed units in its first copy only.
    counted: BTreeSet<u32>,
    /// Slots of saved entries that are free, although the file does not say it yet.
    freed: BTreeSet<u32>,
    /// Such slots that were freed since programmed units were counted.
    just_freed: BTreeSet<u32>,
    /// Generation of the last entry or head that was written.
    pub(super) generation: u64,
    /// Changes that are not in the file yet. The first of them has failed.
    late: VecDeque<Change>,
    failure: Option<io::Error>,
    /// True if the file was written since the last sync.
    dirty: bool,
    /// True after a failed sync. The kernel may have dropped what it could not write, so reads may return data that are
    /// not on the disk. The image accepts nothing more until the file is reopened.
    unsure: bool,
    /// Number of damaged records restored since the last call of [`Flash::take_repaired`].
    pub(super) repaired: u64,
    /// Number of damaged records for which pairs of bits may still be tried. Each takes some milliseconds.
    pub(super) pairs_left: u32,
    spare: (Vec<u8>, Vec<u8>),
}

/// Number of damaged records per image for which pairs of bits are tried. Limits the total to seconds.
const PAIRS: u32 = 1000;

impl Flash {
    /// Creates the flash of a new device in an empty file.
    pub fn create(mut disk: Box<dyn Disk>, config: &DeviceConfig) -> Result<Flash, ImageError> {
        let layout = Layout::of(config);
        disk.resize(layout.end())?;
        let header = Header::of(config)?;
        header.write(&mut *disk)?;
        let state = State { generation: 1, ..State::default() };
        state.write(&mut *disk)?;
        Ok(Flash::over(disk, layout, state, header.identity))
    }

    /// Opens the flash in an existing file. Its blocks are unknown until [`Flash::inspect`].
    pub fn open(mut disk: Box<dyn Disk>, config: &DeviceConfig) -> Result<Flash, ImageError> {
        let layout = Layout::of(config);
        let (header, is_damaged) = Header::read(&*disk)?;
        header.check(config)?;
        if is_damaged {
            header.write(&mut *disk)?;
        }
        let size = disk.size()?;
        let check_size = |end: u64| {
            let text = || format!("the file is truncated: {size} of {end} bytes");
            if size < end { Err(ImageError::Damaged(text())) } else { Ok(()) }
        };
        check_size(layout.end())?;
        let (state, damaged) = State::read(&mut *disk)?;
        check_size(layout.saved(state.saved))?;
        let mut flash = Flash::over(disk, layout, state, header.identity);
        flash.repaired = damaged + u64::from(is_damaged);
        Ok(flash)
    }

    fn over(disk: Box<dyn Disk>, layout: Layout, state: State, identity: String) -> Flash {
        Flash {
            identity,
            next: vec![0; layout.blocks as usize],
            entries: vec![BlockEntry::default(); layout.blocks as usize],
            uncounted: Vec::new(),
            counted: BTreeSet::new(),
            freed: BTreeSet::new(),
            just_freed: BTreeSet::new(),
            generation: 0,
            disk: Clocked::new(disk),
            layout,
            state,
            late: VecDeque::new(),
            failure: None,
            dirty: false,
            unsure: false,
            repaired: 0,
            pairs_left: PAIRS,
            spare: Default::default(),
        }
    }

    /// Returns the identity of the drive.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the state of the file.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Writes the state of the file: in use by this boot of the machine, or closed with all accepted data (`is_clean`).
    pub fn note(&mut self, boot: u128, is_clean: bool, syncs: bool) -> io::Result<()> {
        let root = if is_clean { self.root()? } else { 0 };
        let (uses, generation) = (self.state.uses + u64::from(!is_clean), self.state.generation + 1);
        self.state = State { boot, is_clean, syncs, uses, generation, root, ..self.state };
        self.state.write(&mut self.disk)?;
        // The file must not look closed if the machine stops from now on.
        self.disk.sync()
    }

    /// Returns the digest of the table of blocks.
    pub(super) fn root(&mut self) -> io::Result<u64> {
        let table = Table::of_blocks(&self.layout).read(&mut self.disk)?;
        Ok(xxh3_64(table.values.as_flattened()))
    }

    /// Returns the layout of the file.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the file.
    pub fn disk(&self) -> &dyn Disk {
        &self.disk
    }

    /// Returns the time that callers have spent on the file since the last call of this function.
    pub fn take_disk_time(&mut self) -> Wall {
        self.disk.take_spent()
    }

    /// Returns the erase count of a block.
    pub fn erases(&self, block: BlockId) -> u32 {
        self.entries[block.index()].erases
    }

    /// Returns the kind of bad block. `None` for a good block.
    pub fn bad(&self, block: BlockId) -> Option<Bad> {
        self.entries[block.index()].mark.bad()
    }

    /// Changes the entry of a block.
    pub(super) fn set_entry(&mut self, block: u32, entry: BlockEntry) {
        self.entries[block as usize] = entry;
        self.counted.remove(&block);
        self.change_table(Table::of_blocks(&self.layout), block, &entry.value(), COPIES);
    }

    fn change_table(&mut self, table: Table, index: u32, value: &Value, copies: usize) {
        self.generation += 1;
        for copy in 0..copies {
            let bytes = table.encode(index, copy, value, self.generation);
            self.change(Change::Entry { offset: table.offset(index, copy), bytes });
        }
    }

    /// Writes the number of programmed units to the entries of all blocks that have changed. From then on, records
    /// that vanish from the file are missed. The second copies of the entries keep the numbers from before, which is
    /// enough if a first copy is damaged: then the records are not.
    pub fn count(&mut self) {
        let mut blocks = std::mem::take(&mut self.uncounted);
        for block in blocks.drain(..) {
            let (entry, next) = (&mut self.entries[block as usize], self.next[block as usize]);
            if entry.programmed != next {
                entry.programmed = next;
                let value = entry.value();
                self.counted.insert(block);
                self.change_table(Table::of_blocks(&self.layout), block, &value, 1);
            }
        }
        self.uncounted = blocks;
        self.freed.append(&mut self.just_freed);
    }

    /// Makes both copies of all entries equal.
    pub fn complete_entries(&mut self) {
        while let Some(block) = self.counted.pop_first() {
            self.set_entry(block, self.entries[block as usize]);
        }
    }

    /// Returns the entry of a block of the device.
    fn entry(&self, block: BlockId) -> Result<BlockEntry, String> {
        let entry = self.entries.get(block.index()).copied();
        entry.ok_or_else(|| format!("block {} is outside the device", block.0))
    }

    /// Marks a block as bad.
    pub fn mark_bad(&mut self, block: BlockId, bad: Bad) -> Result<(), String> {
        let entry = self.entry(block)?;
        self.set_entry(block.0, BlockEntry { mark: Mark::of(bad), ..entry });
        Ok(())
    }

    /// Marks `units` units from `ppn` on as unreadable, because their program operation failed.
    pub fn fail(&mut self, ppn: Ppn, units: u32) -> Result<(), String> {
        self.check_order(ppn, units)?;
        let slots = self.slots_of(SlotState::Torn, ppn.0..ppn.0 + units);
        self.change(Change::Program { ppn: ppn.0, slots, payload: Vec::new() });
        Ok(())
    }

    fn slots_of(&self, state: SlotState, units: std::ops::Range<u32>) -> Vec<u8> {
        let erases = |ppn: u32| self.entries[(ppn / self.layout.units) as usize].erases;
        units.flat_map(|ppn| encode(state, ppn, erases(ppn))).collect()
    }

    /// Programs units from `ppn` on, in one operation. Returns an error if this violates the rules of flash.
    pub fn program(&mut self, ppn: Ppn, units: &[(Record, Content)]) -> Result<(), String> {
        self.check_order(ppn, units.len() as u32)?;
        let (mut slots, mut payload) = std::mem::take(&mut self.spare);
        let unit = self.layout.unit as usize;
        let erases = self.erases(self.layout.block_of(ppn));
        for ((part, at), (record, content)) in (0..).zip(ppn.0..).zip(units) {
            let before = payload.len();
            if let Content::Bytes(bytes) = content {
                payload.extend_from_slice(bytes);
            }
            payload.resize(before + unit, 0);
            let stored = match content {
                Content::Zeros => Stored::Zeros,
                Content::Bytes(_) => Stored::Bytes(xxh3_64(&payload[before..])),
                Content::Lost => Stored::Lost,
            };
            let slot = Slot { record: *record, payload: stored, part: (part, units.len() as u32) };
            slots.extend_from_slice(&encode(SlotState::Holds(slot), at, erases));
        }
        self.change(Change::Program { ppn: ppn.0, slots, payload });
        Ok(())
    }

    /// Checks that units may be programmed by the rules of flash, and updates the next unit of their block. Units that
    /// are left out get records, so that a record without contents is always one that vanished.
    fn check_order(&mut self, ppn: Ppn, units: u32) -> Result<(), String> {
        let (block, first) = (self.layout.block_of(ppn), ppn.0 % self.layout.units);
        let breach = |what: &str| Err(format!("unit {} {what}, which breaks the rules of flash", ppn.0));
        let Ok(entry) = self.entry(block) else { return breach("is outside the device") };
        if entry.mark == Mark::Erasing {
            return breach("is in a block that is being erased, but is programmed");
        }
        if first == 0 && matches!(entry.mark, Mark::GrownBad | Mark::Retired) {
            return breach("is the first unit of a failed block, but is programmed");
        }
        let next = self.next[block.index()];
        if first < next {
            return breach("is programmed twice between erases, or out of order");
        }
        if first + units > self.layout.units {
            return breach("and the following units exceed their block");
        }
        if first > next {
            let skipped = ppn.0 - (first - next)..ppn.0;
            let slots = self.slots_of(SlotState::Skipped, skipped.clone());
            self.change(Change::Program { ppn: skipped.start, slots, payload: Vec::new() });
        }
        if next == entry.programmed {
            self.uncounted.push(block.0);
        }
        self.next[block.index()] = first + units;
        Ok(())
    }

    /// Returns `true` if pairs of bits may be tried for a damaged record, and counts the record.
    pub(super) fn may_try_pairs(&mut self) -> bool {
        let may = self.pairs_left > 0;
        self.pairs_left = self.pairs_left.saturating_sub(1);
        may
    }

    /// Reads the payload of a unit, and restores it in the file if one bit of it is wrong.
    pub fn read_repaired(&mut self, ppn: Ppn) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; self.layout.unit as usize];
        match self.read(ppn, None, &mut bytes) {
            Ok(_) => return Ok(bytes),
            Err(error @ ReadError::Io(_)) => return Err(error),
            Err(ReadError::Unreadable(_)) => {}
        }
        let unreadable = || ReadError::Unreadable(ppn.0);
        let SlotState::Holds(Slot { payload: Stored::Bytes(digest), .. }) = self.slot_state(ppn)? else {
            return Err(unreadable());
        };
        if !repair(&mut bytes, false, |bytes| xxh3_64(bytes) == digest) {
            return Err(unreadable());
        }
        self.disk.write(self.layout.payload(ppn.0), &bytes)?;
        self.repaired += 1;
        Ok(bytes)
    }

    /// Returns the number of damaged records restored since the last call of this function.
    pub fn take_repaired(&mut self) -> u64 {
        std::mem::take(&mut self.repaired)
    }

    /// Starts to erase a block. Its contents are lost, and it cannot be programmed until [`Flash::erased`]. With
    /// `syncs`, waits until the data that were moved out of the block are on the machine's disk.
    pub fn erase(&mut self, block: BlockId, syncs: bool) -> Result<(), String> {
        let entry = self.entry(block)?;
        if entry.mark.bad().is_some() {
            return Err(format!("block {} is bad but erased, which breaks the rules of flash", block.0));
        }
        self.set_entry(block.0, BlockEntry { mark: Mark::Erasing, ..entry });
        if syncs {
            // The mark must be on the disk, too: without it, records that are gone would count as lost.
            self.sync();
        }
        // From now on, the moved data are missed if they vanish.
        self.count();
        self.write_freed();
        self.change(Change::Punch { block: block.0 });
        self.next[block.index()] = 0;
        self.set_entry(block.0, BlockEntry { mark: Mark::Erasing, programmed: 0, ..entry });
        Ok(())
    }

    /// Completes the erase of a block, and sets its erase count.
    pub fn erased(&mut self, block: BlockId, erases: u32) -> Result<(), String> {
        self.entry(block)?;
        self.next[block.index()] = 0;
        self.set_entry(block.0, BlockEntry { erases, programmed: 0, mark: Mark::Good });
        Ok(())
    }

    /// Records the physical address of a part of the checkpoint.
    pub fn anchored(&mut self, part: u32, ppn: Ppn) -> Result<(), String> {
        if part >= self.layout.parts {
            return Err(format!("part {part} is outside the checkpoint"));
        }
        self.change_table(Table::of_parts(&self.layout), part, &part_value(ppn.0), COPIES);
        Ok(())
    }

    /// Returns the last recorded address of a part of the checkpoint. A damaged entry returns `None`, because recovery
    /// does not need the checkpoint.
    pub fn anchor(&self, part: u32) -> io::Result<Option<Ppn>> {
        let table = Table::of_parts(&self.layout);
        let mut newest = ([0; 16], 0);
        for copy in 0..if part < self.layout.parts { COPIES } else { 0 } {
            let mut bytes = [0; Layout::ENTRY];
            self.disk.read(table.offset(part, copy), &mut bytes)?;
            let found = table.decode(part, copy, &bytes).filter(|(_, generation)| *generation > newest.1);
            newest = found.unwrap_or(newest);
        }
        Ok(part_address(&newest.0).map(Ppn))
    }

    /// Saves an entry that is not in flash: see [`super::saved`].
    pub fn save(&mut self, number: u32, entry: Entry, payload: Option<&[u8]>) {
        if number >= self.state.saved {
            let before = self.state.saved;
            let saved = (number + 1).max(SAVED_STEP).next_power_of_two();
            self.state = State { saved, generation: self.state.generation + 1, ..self.state };
            self.change(Change::Slots { before, state: self.state });
        }
        if self.just_freed.contains(&number) {
            self.count_before_freed();
        }
        self.freed.remove(&number);
        let mut padded = payload.unwrap_or_default().to_vec();
        padded.resize(padded.len().next_multiple_of(GRAIN as usize), 0);
        self.set_head(number, Some(entry), padded);
    }

    /// Frees the slot of a saved entry whose data are in flash or in another slot, by the next erase at the latest.
    /// Until then, recovery ignores the entry, because the other data are newer or the same.
    pub fn free_by_erase(&mut self, number: u32) {
        self.just_freed.insert(number);
    }

    /// Writes that slots are free.
    pub fn write_freed(&mut self) {
        self.count_before_freed();
        while let Some(number) = self.freed.pop_first() {
            self.free(number);
        }
    }

    /// Counts the programmed units that have replaced saved entries, so that they are missed if they vanish.
    fn count_before_freed(&mut self) {
        if !self.just_freed.is_empty() {
            self.count();
        }
    }

    /// Frees the slot of a saved entry.
    pub fn free(&mut self, number: u32) {
        self.set_head(number, None, Vec::new());
    }

    fn set_head(&mut self, number: u32, entry: Option<Entry>, payload: Vec<u8>) {
        self.generation += 1;
        let head = Head { entry, generation: self.generation }.copies(number);
        self.change(Change::Save { number, head, payload });
    }

    fn change(&mut self, change: Change) {
        if self.failure.is_none() {
            match perform(&mut self.disk, &self.layout, &change) {
                Ok(()) => return self.performed(change),
                Err(error) => self.failure = Some(error),
            }
        }
        self.late.push_back(change);
    }

    fn performed(&mut self, change: Change) {
        self.dirty = true;
        if let Change::Program { mut slots, mut payload, .. } = change {
            slots.clear();
            payload.clear();
            self.spare = (slots, payload);
        }
    }

    /// Returns the error that keeps changes from the file. `None` if the file is complete.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Returns the error of a change, unless it is that of a failed sync, which remains.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        if self.unsure { None } else { self.failure.take() }
    }

    /// Tries again to perform the changes that failed.
    pub fn retry(&mut self) {
        while let Some(change) = self.late.pop_front() {
            match perform(&mut self.disk, &self.layout, &change) {
                Ok(()) => self.performed(change),
                Err(error) => {
                    self.failure = Some(error);
                    return self.late.push_front(change);
                }
            }
        }
        if !self.unsure {
            self.failure = None;
        }
    }

    /// Makes the kernel write all changes to the medium.
    pub fn sync(&mut self) {
        if self.dirty && self.failure.is_none() {
            match self.disk.sync() {
                Ok(()) => self.dirty = false,
                Err(error) => (self.failure, self.unsure) = (Some(error), true),
            }
        }
    }

    /// Cuts the power. Pending changes are lost, and the contents of flash are unknown until the next
    /// [`Flash::inspect`]. If an earlier sync failed, the file is not reliable, and the failure remains.
    pub fn cut(&mut self) {
        self.late.clear();
        self.freed.clear();
        self.just_freed.clear();
        if !self.unsure {
            self.failure = None;
        }
    }

    /// Makes units of an interrupted program operation unreadable. Their payload is half written.
    pub fn tear(&mut self, ppn: Ppn, units: u32) {
        let unit = self.layout.unit as usize;
        let torn = vec![0xa5; (unit * units as usize) / 2];
        let skipped = ppn.0 - ppn.0 % self.layout.units + self.next[self.layout.block_of(ppn).index()]..ppn.0;
        let start = skipped.start.min(ppn.0);
        let mut slots = self.slots_of(SlotState::Skipped, skipped);
        slots.extend(self.slots_of(SlotState::Torn, ppn.0..ppn.0 + units));
        // If these writes fail, the result is the same as if the power had been cut a moment earlier.
        let _ = self.disk.write(self.layout.payload(ppn.0), &torn);
        let _ = self.disk.write(self.layout.slot(start), &slots);
    }

    /// Returns the state of a unit, including changes that are not in the file yet.
    pub fn slot_state(&self, ppn: Ppn) -> io::Result<SlotState> {
        let bytes = self.slot(ppn.0)?;
        Ok(decode(ppn.0, self.erases(self.layout.block_of(ppn)), &bytes))
    }

    /// Returns the record of a unit, including changes that are not in the file yet.
    fn slot(&self, ppn: u32) -> io::Result<[u8; SLOT]> {
        let mut bytes = [0; SLOT];
        for change in self.late.iter().rev() {
            match change {
                Change::Program { ppn: first, slots, .. } => {
                    let at = ppn.wrapping_sub(*first) as usize;
                    if at < slots.len() / SLOT {
                        bytes.copy_from_slice(&slots[at * SLOT..(at + 1) * SLOT]);
                        return Ok(bytes);
                    }
                }
                Change::Punch { block } if ppn / self.layout.units == *block => return Ok(bytes),
                _ => {}
            }
        }
        self.disk.read(self.layout.slot(ppn), &mut bytes)?;
        Ok(bytes)
    }

    fn payload(&self, ppn: u32, into: &mut [u8]) -> io::Result<()> {
        let unit = self.layout.unit as usize;
        for change in self.late.iter().rev() {
            if let Change::Program { ppn: first, payload, .. } = change {
                let at = ppn.wrapping_sub(*first) as usize;
                if at < payload.len() / unit {
                    into.copy_from_slice(&payload[at * unit..(at + 1) * unit]);
                    return Ok(());
                }
            }
        }
        self.disk.read(self.layout.payload(ppn), into)
    }

    /// Reads the consecutive units from `ppn` on that fill `into`. If `lpn` is given, checks that they are the
    /// consecutive logical units from `lpn` on. Returns `false` if all of them are stored as zeros.
    pub fn read(&self, ppn: Ppn, lpn: Option<Lpn>, into: &mut [u8]) -> Result<bool, ReadError> {
        let unit = self.layout.unit as usize;
        let count = into.len() / unit;
        let mut slots = vec![0; count * SLOT];
        if self.late.is_empty() {
            self.disk.read(self.layout.slot(ppn.0), &mut slots)?;
            self.disk.read(self.layout.payload(ppn.0), into)?;
        } else {
            for (index, at) in (ppn.0..).take(count).enumerate() {
                slots[index * SLOT..(index + 1) * SLOT].copy_from_slice(&self.slot(at)?);
                self.payload(at, &mut into[index * unit..(index + 1) * unit])?;
            }
        }
        let mut any = false;
        let erases = self.erases(self.layout.block_of(ppn));
        for (index, at) in (ppn.0..).take(count).enumerate() {
            let SlotState::Holds(slot) = decode(at, erases, &slots[index * SLOT..(index + 1) * SLOT]) else {
                return Err(ReadError::Unreadable(at));
            };
            let bytes = &mut into[index * unit..(index + 1) * unit];
            any |= slot.payload != Stored::Zeros;
            let is_right = match slot.payload {
                Stored::Zeros => {
                    bytes.fill(0);
                    true
                }
                Stored::Bytes(digest) => digest == xxh3_64(bytes),
                Stored::Lost => false,
            };
            if !is_right || lpn.is_some_and(|lpn| slot.record.lpn != lpn.0 + index as u32) {
                return Err(ReadError::Unreadable(at));
            }
        }
        Ok(any)
    }
}

/// Performs a change of the file. Idempotent, so that a failed or interrupted change can be repeated.
fn perform(disk: &mut dyn Disk, layout: &Layout, change: &Change) -> io::Result<()> {
    match change {
        Change::Program { ppn, slots, payload } => {
            write_payload(disk, layout, *ppn, slots, payload)?;
            // Write the records last, because they make the payload valid.
            disk.write(layout.slot(*ppn), slots)
        }
        Change::Punch { block } => {
            let (start, bytes) = layout.block(*block);
            disk.punch(start, bytes)
        }
        Change::Entry { offset, bytes } => disk.write(*offset, bytes),
        Change::Slots { before, state } => {
            // Slots that were lost in a crash of the machine may have contents.
            disk.resize(layout.saved(*before))?;
            disk.resize(layout.saved(state.saved))?;
            disk.sync()?;
            state.write(disk)
        }
        Change::Save { number, head, payload } => {
            // The second copy of the head follows the payload, and makes it valid.
            let mut bytes = payload.clone();
            let start = layout.saved_head(*number, 1) - bytes.len() as u64;
            bytes.extend_from_slice(&head[1]);
            disk.write(start, &bytes)?;
            disk.write(layout.saved_head(*number, 0), &head[0])
        }
    }
}

/// Writes the payload of the units that have any, with one call for each run of consecutive units.
fn write_payload(disk: &mut dyn Disk, layout: &Layout, ppn: u32, slots: &[u8], payload: &[u8]) -> io::Result<()> {
    let unit = layout.unit as usize;
    let has_bytes = |index: usize| has_payload(&slots[index * SLOT..]);
    let units = slots.len() / SLOT;
    let mut first = 0;
    while first < units {
        let end = (first..units).find(|index| has_bytes(*index) != has_bytes(first)).unwrap_or(units);
        if has_bytes(first) {
            disk.write(layout.payload(ppn + first as u32), &payload[first * unit..end * unit])?;
        }
        first = end;
    }
    Ok(())
}
