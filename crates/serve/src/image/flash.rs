//! Flash contents in the file, under the rules of flash: each mapping unit is programmed once between erases, in order
//! within its block, and is erased with its block.
//!
//! Changes reach the file in the order of the device's events. If a change fails, for example on a full disk, this
//! change and all later ones are kept in memory until they can be performed. Reads take them into account. The file
//! therefore always holds a state that flash had at some instant, even if the program is killed.

use std::collections::VecDeque;
use std::io;

use floatgate_core::config::DeviceConfig;
use floatgate_core::durability::flash::{Bad, Record, RecordKind};
use floatgate_core::sim::id::{BlockId, Lpn, Ppn};
use xxhash_rust::xxh3::xxh3_64;

use super::ImageError;
use super::disk::{Clocked, Disk};
use super::header::{self, Header};
use super::layout::{
    GRAIN, Layout, Mark, ROOM, SAVED_HEAD, SLOT, Slot, SlotState, Stored, TORN, anchor, entry, is_erased, read_anchor,
    read_entry,
};
use super::repair::repair;
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
    Program { ppn: u32, slots: Vec<u8>, payload: Vec<u8> },
    Empty { block: u32, erases: u32 },
    Erased { block: u32, erases: u32 },
    Anchor { part: u32, ppn: u32 },
    Bad { block: u32, erases: u32, mark: Mark },
    Save { number: u32, head: Box<[u8; SAVED_HEAD]>, payload: Vec<u8> },
    Free { number: u32 },
}

/// Value of [`Flash::next`] for a block whose next unit has to be read from the file.
const UNKNOWN: u32 = u32::MAX;

/// State of the file: the boot of the machine in which it was last used, and how that use ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Identifies the boot of the machine.
    pub boot: u128,
    /// True if all accepted data are in flash or saved.
    pub clean: bool,
}

impl State {
    const BYTES: usize = 32;

    fn bytes(self) -> [u8; State::BYTES] {
        let mut bytes = [0; State::BYTES];
        bytes[..16].copy_from_slice(&self.boot.to_le_bytes());
        bytes[16] = 1 + u8::from(self.clean);
        let digest = xxh3_64(&bytes[..24]).to_le_bytes();
        bytes[24..].copy_from_slice(&digest);
        bytes
    }

    fn parse(bytes: &[u8; State::BYTES]) -> Option<State> {
        let boot = u128::from_le_bytes(bytes[..16].try_into().ok()?);
        let state = State { boot, clean: bytes[16] == 2 };
        (state.bytes() == *bytes).then_some(state)
    }
}

/// Flash of a device, stored in a file.
pub struct Flash {
    disk: Clocked,
    layout: Layout,
    /// Next unit to be programmed. Indexed by block.
    next: Vec<u32>,
    erases: Vec<u32>,
    /// Kind of bad block. Indexed by block.
    bad: Vec<Option<Bad>>,
    /// Changes that are not in the file yet. The first of them has failed.
    late: VecDeque<Change>,
    failure: Option<io::Error>,
    /// True if the file was written since the last sync.
    dirty: bool,
    /// True after a failed sync. The kernel may have dropped what it could not write, so reads may return data that are
    /// not on the disk. The image accepts nothing more until the file is reopened.
    unsure: bool,
    /// Number of damaged records restored since the last call of [`Flash::take_repaired`].
    repaired: u64,
    /// Number of damaged records for which pairs of bits may still be tried. Each takes some milliseconds.
    pairs_left: u32,
    spare: (Vec<u8>, Vec<u8>),
}

/// Number of damaged records per image for which pairs of bits are tried. Limits the total to seconds.
const PAIRS: u32 = 1000;

impl Flash {
    /// Opens the flash in a file. Returns the state that the file had after its last use, or `None` for a new file.
    pub fn open(mut disk: Box<dyn Disk>, config: &DeviceConfig) -> Result<(Flash, Option<State>), ImageError> {
        let layout = Layout::of(config);
        let (state, repaired) = match is_new(&*disk, &layout)? {
            true => (None, 0),
            false => check(&mut *disk, &layout, config)?,
        };
        if state.is_none() {
            disk.resize(0)?;
            disk.resize(layout.end())?;
            let header = Header::of(config)?.bytes()?;
            // Write the magic bytes last, because they make the file a valid image.
            disk.write(header::MAGIC.len() as u64, &header[header::MAGIC.len()..])?;
            disk.write(0, &header::MAGIC)?;
        }
        let mut flash = Flash {
            next: vec![if state.is_none() { 0 } else { UNKNOWN }; layout.blocks as usize],
            erases: vec![0; layout.blocks as usize],
            bad: vec![None; layout.blocks as usize],
            disk: Clocked::new(disk),
            layout,
            late: VecDeque::new(),
            failure: None,
            dirty: false,
            unsure: false,
            repaired,
            pairs_left: PAIRS,
            spare: Default::default(),
        };
        if state.is_some() {
            flash.read_table()?;
            if let Some(error) = flash.failure.take() {
                return Err(error.into());
            }
        }
        Ok((flash, state))
    }

    /// Writes the state of the file.
    pub fn note(&mut self, state: State) -> Result<(), ImageError> {
        Ok(self.disk.write(self.layout.state(), &state.bytes())?)
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

    /// Reads the erase counts. An erase that was interrupted when the program ended or the power was cut is completed
    /// and counted.
    fn read_table(&mut self) -> Result<(), ImageError> {
        let mut table = vec![0; self.layout.table()];
        self.disk.read(self.layout.entry(0), &mut table)?;
        for (block, bytes) in (0..).zip(table.as_chunks_mut::<8>().0) {
            // A digest of 24 bits is too short for trying pairs of bits.
            let is_valid = |bytes: &[u8]| bytes.try_into().is_ok_and(|bytes| read_entry(block, bytes).is_some());
            if !is_valid(bytes) && repair(bytes, false, is_valid) {
                self.disk.write(self.layout.entry(block), bytes)?;
                self.repaired += 1;
            }
            let wrong = || ImageError::Damaged(format!("invalid erase count of block {block}"));
            let (erases, mark) = read_entry(block, *bytes).ok_or_else(wrong)?;
            (self.erases[block as usize], self.bad[block as usize]) = (erases, mark.bad());
            if mark == Mark::Erasing {
                let counted = erases.saturating_add(1);
                self.erases[block as usize] = counted;
                self.change(Change::Empty { block, erases });
                self.change(Change::Erased { block, erases: counted });
            }
        }
        Ok(())
    }

    /// Returns the erase count of a block.
    pub fn erases(&self, block: BlockId) -> u32 {
        self.erases[block.index()]
    }

    /// Returns the kind of bad block. `None` for a good block.
    pub fn bad(&self, block: BlockId) -> Option<Bad> {
        self.bad[block.index()]
    }

    /// Marks a block as bad.
    pub fn mark_bad(&mut self, block: BlockId, bad: Bad) -> Result<(), String> {
        let ppn = self.bad.get_mut(block.index());
        *ppn.ok_or_else(|| format!("block {} is outside the device", block.0))? = Some(bad);
        let mark = match bad {
            Bad::Factory => Mark::FactoryBad,
            Bad::Grown => Mark::GrownBad,
            Bad::Retired => Mark::Retired,
        };
        self.change(Change::Bad { block: block.0, erases: self.erases[block.index()], mark });
        Ok(())
    }

    /// Marks `units` units from `ppn` on as unreadable, because their program operation failed.
    pub fn fail(&mut self, ppn: Ppn, units: u32) -> Result<(), String> {
        self.check_order(ppn, units)?;
        let slots = TORN.repeat(units as usize);
        let payload = vec![0; self.layout.unit as usize * units as usize];
        self.change(Change::Program { ppn: ppn.0, slots, payload });
        Ok(())
    }

    /// Programs units from `ppn` on, in one operation. Returns an error if this violates the rules of flash.
    pub fn program(&mut self, ppn: Ppn, units: &[(Record, Content)]) -> Result<(), String> {
        self.check_order(ppn, units.len() as u32)?;
        let (mut slots, mut payload) = std::mem::take(&mut self.spare);
        let unit = self.layout.unit as usize;
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
            slots.extend_from_slice(&slot.bytes(at));
        }
        self.change(Change::Program { ppn: ppn.0, slots, payload });
        Ok(())
    }

    fn check_order(&mut self, ppn: Ppn, units: u32) -> Result<(), String> {
        let (block, first) = (self.layout.block_of(ppn).index(), ppn.0 % self.layout.units);
        let breach = |what: &str| Err(format!("unit {} {what}, which breaks the rules of flash", ppn.0));
        if first == 0 && self.bad.get(block).is_some_and(|bad| matches!(bad, Some(Bad::Grown | Bad::Retired))) {
            return breach("is the first unit of a failed block, but is programmed");
        }
        let known = self.next.get(block).copied();
        let next = match known {
            Some(UNKNOWN) => self.first_unwritten(block as u32).map_err(|error| error.to_string())?,
            Some(next) => next,
            None => return breach("is outside the device"),
        };
        if first < next {
            return breach("is programmed twice between erases, or out of order");
        }
        if first + units > self.layout.units {
            return breach("and the following units exceed their block");
        }
        self.next[block] = first + units;
        Ok(())
    }

    /// Returns the index of the first unit of a block after all units that hold anything.
    fn first_unwritten(&mut self, block: u32) -> io::Result<u32> {
        let mut slots = vec![0; self.layout.units as usize * SLOT];
        self.disk.read(self.layout.block(block).0, &mut slots)?;
        let first = block * self.layout.units;
        for (ppn, slot) in (first..first + self.layout.units).zip(slots.chunks_exact(SLOT)).rev() {
            let state = SlotState::parse(ppn, slot);
            let is_damaged = state == SlotState::Damaged;
            let state = if is_damaged { self.repair_slot(ppn)? } else { state };
            if state != SlotState::Erased {
                return Ok(ppn - first + 1);
            }
        }
        Ok(0)
    }

    /// Restores a damaged record in the file if one or two bits of it are wrong. Returns its state afterwards.
    pub fn repair_slot(&mut self, ppn: u32) -> io::Result<SlotState> {
        let mut bytes = [0; SLOT];
        self.disk.read(self.layout.slot(ppn), &mut bytes)?;
        let is_valid = |bytes: &[u8]| SlotState::parse(ppn, bytes) != SlotState::Damaged;
        if !is_valid(&bytes) && repair(&mut bytes, self.may_try_pairs(), is_valid) {
            self.disk.write(self.layout.slot(ppn), &bytes)?;
            self.repaired += 1;
        }
        Ok(SlotState::parse(ppn, &bytes))
    }

    /// Returns `true` if pairs of bits may be tried for a damaged record, and counts the record.
    fn may_try_pairs(&mut self) -> bool {
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
        let Some(Slot { payload: Stored::Bytes(digest), .. }) = Slot::parse(ppn.0, &self.slot(ppn.0)?) else {
            return Err(unreadable());
        };
        if !repair(&mut bytes, false, |bytes| xxh3_64(bytes) == digest) {
            return Err(unreadable());
        }
        self.disk.write(self.layout.payload(ppn.0), &bytes)?;
        self.repaired += 1;
        Ok(bytes)
    }

    /// Turns the record of a unit into padding, because the machine stopped before its payload was written.
    pub fn discard(&mut self, ppn: u32, slot: &Slot) -> io::Result<()> {
        let record = Record { kind: RecordKind::Padding, opened: slot.record.opened, ..Record::default() };
        let slot = Slot { record, payload: Stored::Zeros, part: slot.part };
        self.disk.write(self.layout.slot(ppn), &slot.bytes(ppn))
    }

    /// Restores the head of a saved entry if one or two bits of it are wrong. `is_valid` accepts correct heads.
    pub fn repair_saved(&mut self, number: u32, head: &mut [u8], is_valid: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
        if !repair(head, self.may_try_pairs(), is_valid) {
            return Ok(false);
        }
        self.disk.write(self.layout.saved(number), head)?;
        self.repaired += 1;
        Ok(true)
    }

    /// Returns the number of damaged records restored since the last call of this function.
    pub fn take_repaired(&mut self) -> u64 {
        std::mem::take(&mut self.repaired)
    }

    /// Starts to erase a block. Its contents are lost, and it cannot be programmed until [`Flash::erased`].
    pub fn erase(&mut self, block: BlockId) -> Result<(), String> {
        self.set_next(block, self.layout.units)?;
        if self.bad[block.index()].is_some() {
            return Err(format!("block {} is bad but erased, which breaks the rules of flash", block.0));
        }
        self.change(Change::Empty { block: block.0, erases: self.erases[block.index()] });
        Ok(())
    }

    /// Completes the erase of a block, and sets its erase count.
    pub fn erased(&mut self, block: BlockId, erases: u32) -> Result<(), String> {
        self.set_next(block, 0)?;
        self.erases[block.index()] = erases;
        self.change(Change::Erased { block: block.0, erases });
        Ok(())
    }

    fn set_next(&mut self, block: BlockId, unit: u32) -> Result<(), String> {
        let next = self.next.get_mut(block.index());
        *next.ok_or_else(|| format!("block {} is outside the device", block.0))? = unit;
        Ok(())
    }

    /// Records the physical address of a part of the checkpoint.
    pub fn anchored(&mut self, part: u32, ppn: Ppn) -> Result<(), String> {
        if part >= self.layout.parts {
            return Err(format!("part {part} is outside the checkpoint"));
        }
        self.change(Change::Anchor { part, ppn: ppn.0 });
        Ok(())
    }

    /// Returns the last recorded address of a part of the checkpoint. A damaged entry returns `None`, because recovery
    /// does not need the checkpoint.
    pub fn anchor(&self, part: u32) -> io::Result<Option<Ppn>> {
        let mut bytes = [0; 8];
        if part < self.layout.parts {
            self.disk.read(self.layout.anchor(part), &mut bytes)?;
        }
        Ok(read_anchor(part, bytes).map(Ppn))
    }

    /// Saves an entry that is not in flash: see [`super::saved`].
    pub fn save(&mut self, number: u32, head: [u8; SAVED_HEAD], payload: Vec<u8>) {
        self.change(Change::Save { number, head: Box::new(head), payload });
    }

    /// Frees the slot of a saved entry.
    pub fn free(&mut self, number: u32) {
        self.change(Change::Free { number });
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

    /// Cuts the power. Pending changes are lost, and the state of flash is read from the file again. If an earlier sync
    /// failed, the file is not reliable, and the failure remains.
    pub fn cut(&mut self) -> Result<(), ImageError> {
        self.late.clear();
        if !self.unsure {
            self.failure = None;
        }
        self.next.fill(UNKNOWN);
        self.read_table()
    }

    /// Makes units of an interrupted program operation unreadable. Their payload is half written.
    pub fn tear(&mut self, ppn: Ppn, units: u32) {
        let unit = self.layout.unit as usize;
        let torn = vec![0xa5; (unit * units as usize) / 2];
        let slots = TORN.repeat(units as usize);
        // If these writes fail, the result is the same as if the power had been cut a moment earlier.
        let _ = self.disk.write(self.layout.payload(ppn.0), &torn);
        let _ = self.disk.write(self.layout.slot(ppn.0), &slots);
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
                Change::Empty { block, .. } if ppn / self.layout.units == *block => return Ok(bytes),
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
        for (index, at) in (ppn.0..).take(count).enumerate() {
            let slot = Slot::parse(at, &slots[index * SLOT..(index + 1) * SLOT]);
            let slot = slot.ok_or(ReadError::Unreadable(at))?;
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

/// Returns `true` for an empty file, and for a new image whose creation was interrupted before anything was stored in
/// it.
fn is_new(disk: &dyn Disk, layout: &Layout) -> Result<bool, ImageError> {
    let size = disk.size()?;
    if size == 0 {
        return Ok(true);
    }
    let mut magic = [0; header::MAGIC.len()];
    disk.read(0, &mut magic[..header::MAGIC.len().min(size as usize)])?;
    Ok(is_erased(&magic) && size == layout.end() && disk.allocated()? < ROOM)
}

/// Checks that a file is an image of the device. Returns the state of the file, or `None` if its creation was
/// interrupted, and the number of restored records.
fn check(disk: &mut dyn Disk, layout: &Layout, config: &DeviceConfig) -> Result<(Option<State>, u64), ImageError> {
    let size = disk.size()?;
    let mut bytes = vec![0; size.min(ROOM - GRAIN) as usize];
    disk.read(0, &mut bytes)?;
    Header::parse(&bytes)?.check(config)?;
    if size < layout.end() {
        return Err(ImageError::Damaged(format!("the file is truncated: {size} of {} bytes", layout.end())));
    }
    let mut state = [0; State::BYTES];
    disk.read(layout.state(), &mut state)?;
    if is_erased(&state) {
        return Ok((None, 0));
    }
    let is_valid = |bytes: &[u8]| bytes.try_into().is_ok_and(|bytes| State::parse(bytes).is_some());
    let is_restored = !is_valid(&state) && repair(&mut state, true, is_valid);
    if is_restored {
        disk.write(layout.state(), &state)?;
    }
    let wrong = || ImageError::Damaged("invalid record of its last use".to_owned());
    Ok((Some(State::parse(&state).ok_or_else(wrong)?), u64::from(is_restored)))
}

/// Performs a change of the file. Idempotent, so that a failed or interrupted change can be repeated.
fn perform(disk: &mut dyn Disk, layout: &Layout, change: &Change) -> io::Result<()> {
    match change {
        Change::Program { ppn, slots, payload } => {
            write_payload(disk, layout, *ppn, slots, payload)?;
            // Write the records last, because they make the payload valid.
            disk.write(layout.slot(*ppn), slots)
        }
        Change::Empty { block, erases } => {
            disk.write(layout.entry(*block), &entry(*block, *erases, Mark::Erasing))?;
            let (start, bytes) = layout.block(*block);
            disk.punch(start, bytes)
        }
        Change::Erased { block, erases } => disk.write(layout.entry(*block), &entry(*block, *erases, Mark::Good)),
        Change::Anchor { part, ppn } => disk.write(layout.anchor(*part), &anchor(*part, *ppn)),
        Change::Bad { block, erases, mark } => disk.write(layout.entry(*block), &entry(*block, *erases, *mark)),
        Change::Save { number, head, payload } => {
            if !payload.is_empty() {
                disk.write(layout.saved(*number) + SAVED_HEAD as u64, payload)?;
            }
            disk.write(layout.saved(*number), &head[..])
        }
        Change::Free { number } => disk.write(layout.saved(*number), &[0; SLOT]),
    }
}

/// Writes the payload of the units that have any, with one call for each run of consecutive units.
fn write_payload(disk: &mut dyn Disk, layout: &Layout, ppn: u32, slots: &[u8], payload: &[u8]) -> io::Result<()> {
    let unit = layout.unit as usize;
    let has_bytes = |index: usize| slots[index * SLOT + 32] == 1;
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
