//! Journal of trims: records in flash which mapping units the host has deallocated, so that they stay deallocated after
//! a power cut.
//!
//! The journal consists of mapping units of the device itself, with addresses after those of the host. Each holds
//! records of trims. A journal unit is rewritten with its records that are still needed and with new ones. Garbage
//! collection and recovery treat it like a unit that the host overwrites. A record is needed until a newer write of its
//! unit is in flash. There is room for two records for each unit of the host, so the emptiest journal unit is at most
//! half full.
//!
//! Records are written at a flush, for a trim with FUA, and when half a unit of records waits. They are also written
//! before a block with a trimmed unit is erased, because an older version of the unit may be elsewhere. Until then, the
//! block has one more dependent.
//!
//! These records always find room. Let D be the data units of a block, U the units of a program, and h half the number
//! of records that fit into a journal unit. A victim with r trims that are not recorded has at most D - r valid units,
//! and it was chosen only if D units found room. So after its units have been moved, max(U, r) units of room are left.
//! The emptiest journal unit has room for h new records. ceil(r / h) programs of U units fit if h >= 2 U, which
//! `config/check.rs` requires. If the records of all blocks that await their erase do not fit into one unit, they are
//! written block by block: first those of the plane of the unit, and those with few records. Each unit, or each
//! ceil(r / h) units, thus frees a block.

use std::collections::{BTreeMap, BTreeSet};

use super::trims::{Trim, Trims, Waiting, WaitingRecords};
use crate::config::DeviceConfig;
use crate::ftl::mapping::{Location, PageMap};
use crate::sim::id::{BlockId, Lpn, PlaneId, RequestId, TransactionId};
use crate::sim::table::Table;
use crate::state::{Reader, StateError, Writer};

/// Records that are not in flash yet and whose trimmed data is in the same block.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Number of records that are not being written. They are linked, oldest first.
    waiting: u32,
    /// Numbers of the first and the last of them.
    first: u32,
    last: u32,
    /// True if all records are being written, so that the block waits for nothing after this write.
    is_written: bool,
}

/// Journal unit that is being programmed.
#[derive(Clone, Debug, Default)]
struct Writing {
    /// Number of records that this write adds.
    records: u64,
    /// Blocks that wait for no other records, in the order of their last records.
    blocks: Vec<BlockId>,
    /// Sequence number up to which all trims are in flash when the write has ended.
    upto: u64,
}

/// Journal of trims.
#[derive(Clone, Debug)]
pub struct Journal {
    /// First mapping unit of the journal.
    first: u32,
    /// Number of records that fit into a unit.
    room: usize,
    /// Records of each journal unit: mapping unit and sequence number.
    slots: Vec<Vec<(u32, u64)>>,
    /// Number of needed records and index of each journal unit, fewest first. `live` has the numbers by unit.
    by_live: BTreeSet<(u32, u32)>,
    live: Vec<u32>,
    /// Last trim of each trimmed unit. Its slot is `NO_SLOT` until its record is being written.
    trims: Trims,
    /// Records that are not being written.
    waiting: WaitingRecords,
    /// Records of `waiting` and `writing`, by the block that holds the trimmed data.
    held: Table<BlockId, Held>,
    writing: Option<Writing>,
    /// Index of the journal unit that is being written.
    slot: u32,
    /// Write of a journal unit that found no room.
    pub stalled: Option<TransactionId>,
    /// Waiting flushes, with the sequence numbers up to which they wait.
    flushes: Vec<(RequestId, u64)>,
    /// Planes of journal units that are not in their home plane because it had no room.
    guests: BTreeMap<u32, PlaneId>,
    /// Number of such guests that a plane has room for.
    guests_per_plane: u64,
}

/// No unit of the journal.
const NO_SLOT: u32 = u32::MAX;

/// Size of a record in bytes: mapping unit and sequence number.
const RECORD: usize = 12;

impl Journal {
    /// Creates an empty journal. Returns `None` without `durability.trim_journal`.
    pub fn new(config: &DeviceConfig) -> Option<Journal> {
        let units = config.journal_units();
        (units > 0).then(|| Journal {
            first: config.logical_units() as u32,
            room: config.journal_room() as usize,
            slots: vec![Vec::new(); units as usize],
            by_live: (0..units as u32).map(|slot| (0, slot)).collect(),
            live: vec![0; units as usize],
            trims: Trims::default(),
            waiting: WaitingRecords::default(),
            held: Table::default(),
            writing: None,
            slot: NO_SLOT,
            stalled: None,
            flushes: Vec::new(),
            guests: BTreeMap::new(),
            guests_per_plane: config.units_to_spare(),
        })
    }

    /// Returns `true` if a block waits for records to be written.
    pub fn holds(&self, block: BlockId) -> bool {
        self.held.get(block).is_some_and(|held| held.waiting > 0 || held.is_written)
    }

    fn count(&mut self, slot: u32, change: i32) {
        if slot != NO_SLOT {
            let live = &mut self.live[slot as usize];
            self.by_live.remove(&(*live, slot));
            *live = live.wrapping_add_signed(change);
            self.by_live.insert((*live, slot));
        }
    }

    /// Drops the trim of a unit, because a newer write of it is in flash or a newer trim was accepted.
    pub fn forget(&mut self, lpn: Lpn) {
        if let Some(trim) = self.trims.remove(lpn) {
            self.outdate(trim);
        }
    }

    /// Drops the record of a trim that is no longer needed.
    fn outdate(&mut self, Trim { sequence, slot }: Trim) {
        self.count(slot, -1);
        // A block cannot be erased before its records are written, so these stay.
        if let Some(number) = self.waiting.without_block(sequence) {
            self.waiting.take(number);
        }
    }

    /// Restores a journal unit that recovery has found. `live` returns `true` for records that are still needed.
    pub fn adopt(&mut self, slot: u32, records: Vec<(u32, u64)>, live: impl Fn(u32, u64) -> bool) {
        for &(lpn, sequence) in records.iter().filter(|&&(lpn, sequence)| live(lpn, sequence)) {
            if self.trims.get(Lpn(lpn)).is_none_or(|known| known.sequence < sequence) {
                self.forget(Lpn(lpn));
                self.trims.insert(Lpn(lpn), Trim { sequence, slot });
                self.count(slot, 1);
            }
        }
        self.slots[slot as usize] = records;
    }

    /// Restores a trim that recovery has found in protected memory, but not in the journal.
    pub fn adopt_waiting(&mut self, lpn: Lpn, sequence: u64) {
        if self.trims.get(lpn).is_none_or(|known| known.sequence < sequence) {
            self.forget(lpn);
            self.trims.insert(lpn, Trim { sequence, slot: NO_SLOT });
            self.waiting.adopt(Waiting { sequence, lpn, block: BlockId::NONE });
        }
    }

    /// Returns `true` if records of trims are not in flash yet.
    pub fn has_waiting(&self) -> bool {
        self.writing.is_some() || !self.waiting.is_empty()
    }

    /// Writes the contents of the journal and the number of the last write or trim to a saved state.
    pub fn save(&self, sequence: u64, out: &mut Writer) -> Result<(), StateError> {
        out.u64(sequence)?;
        for records in &self.slots {
            out.u32(records.len() as u32)?;
            for &(lpn, number) in records {
                out.u32(lpn)?;
                out.u64(number)?;
            }
        }
        Ok(())
    }

    /// Reads the data that [`Journal::save`] wrote. Returns the number of the last write or trim.
    pub fn load(&mut self, map: &PageMap, input: &mut Reader) -> Result<u64, StateError> {
        let sequence = input.count("writes numbered")?;
        for slot in 0..self.slots.len() as u32 {
            let mut records = Vec::new();
            for _ in 0..input.below(self.room as u32 + 1, "records of trims")? {
                let record = (input.below(map.len(), "logical unit")?, input.u64()?);
                if record.1 > sequence || map.get(Lpn(self.first + slot)) == Location::Unmapped {
                    return Err(input.damaged(format!("a record of the trim of unit {}", record.0)));
                }
                records.push(record);
            }
            self.adopt(slot, records, |lpn, _| map.get(Lpn(lpn)) == Location::Unmapped);
        }
        Ok(sequence)
    }

    /// Returns the contents of a journal unit, or `None` if `lpn` belongs to the host.
    pub fn page(&self, lpn: u32) -> Option<Vec<u8>> {
        let records = self.slots.get(lpn.checked_sub(self.first)? as usize)?;
        let mut bytes = (records.len() as u32).to_le_bytes().to_vec();
        for (lpn, sequence) in records {
            bytes.extend(lpn.to_le_bytes());
            bytes.extend(sequence.to_le_bytes());
        }
        Some(bytes)
    }

    /// Parses the records in the contents of a journal unit. Returns `None` if the contents are not valid.
    pub fn records(bytes: &[u8]) -> Option<Vec<(u32, u64)>> {
        let count = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let records = bytes.get(4..4 + count.checked_mul(RECORD)?)?.chunks_exact(RECORD);
        let record = |bytes: &[u8]| {
            let lpn = u32::from_le_bytes(bytes[..4].try_into().unwrap_or_default());
            (lpn, u64::from_le_bytes(bytes[4..].try_into().unwrap_or_default()))
        };
        Some(records.map(record).collect())
    }

    /// Selects the journal unit with the fewest needed records, and adds waiting records to it. Returns this unit, or
    /// `None` if no records wait. `now` is the number of the last write or trim, and `home` returns `true` for blocks
    /// in the plane of a unit.
    pub fn take(
        &mut self,
        now: u64,
        awaiting_erase: impl Iterator<Item = BlockId>,
        home: impl Fn(Lpn, BlockId) -> bool,
    ) -> Option<Lpn> {
        if self.waiting.is_empty() {
            return None;
        }
        let &(_, slot) = self.by_live.first()?;
        let trims = &self.trims;
        self.slots[slot as usize].retain(|&(lpn, sequence)| trims.get(Lpn(lpn)) == Some(Trim { sequence, slot }));
        self.slot = slot;
        self.writing = Some(Writing::default());
        self.add(now, awaiting_erase, home);
        Some(Lpn(self.first + slot))
    }

    /// Adds waiting records to the journal unit that is to be programmed, if it has room. Records of blocks that await
    /// their erase are first.
    pub fn add(
        &mut self,
        now: u64,
        awaiting_erase: impl Iterator<Item = BlockId>,
        home: impl Fn(Lpn, BlockId) -> bool,
    ) {
        let Some(mut writing) = self.writing.take() else { return };
        let slot = self.slot;
        let room = self.room.saturating_sub(self.slots[slot as usize].len());
        let urgent = self.urgent(room, awaiting_erase, |block| home(Lpn(self.first + slot), block));
        self.slots[slot as usize].reserve_exact(room.min(self.waiting.len()));
        let mut added = 0;
        for taken in 0..room {
            let next = match urgent.get(taken) {
                Some(&number) => self.waiting.take(number),
                None => self.waiting.take_first(),
            };
            let Some((Waiting { sequence, lpn, block }, next)) = next else { break };
            writing.records += 1;
            if let Some(held) = self.held.get_mut(block) {
                // The records of a block are removed oldest first.
                (held.waiting, held.first) = (held.waiting - 1, next);
                if held.waiting == 0 {
                    held.is_written = true;
                    writing.blocks.push(block);
                }
            }
            if self.trims.set_slot(lpn, Trim { sequence, slot: NO_SLOT }, slot) {
                self.slots[slot as usize].push((lpn.0, sequence));
                added += 1;
            }
        }
        if added > 0 {
            self.count(slot, added);
        }
        writing.upto = self.waiting.first().map_or(now, |record| record.sequence - 1);
        self.writing = Some(writing);
    }

    /// Returns the numbers of the records of blocks that await their erase, in the order in which they are written. If
    /// not all of them fit, the order is by block, so that one block after the other can be erased: first those for
    /// which `home` returns `true`, and those with few records.
    fn urgent(
        &self,
        room: usize,
        awaiting_erase: impl Iterator<Item = BlockId>,
        home: impl Fn(BlockId) -> bool,
    ) -> Vec<u32> {
        let blocks: Vec<(BlockId, Held)> =
            awaiting_erase.filter_map(|block| Some((block, *self.held.get(block)?))).collect();
        let all: usize = blocks.iter().map(|(_, held)| held.waiting as usize).sum();
        let list = |held: &Held| self.waiting.list(held.first, held.waiting.min(room as u32)).collect::<Vec<_>>();
        let mut urgent: Vec<((bool, u32, u32), u64, u32)> = Vec::with_capacity(all.min(room));
        for (block, held) in &blocks {
            let order = if all > room { (!home(*block), held.waiting, block.0) } else { (false, 0, 0) };
            urgent.extend(list(held).into_iter().map(|(sequence, number)| (order, sequence, number)));
        }
        urgent.sort_unstable();
        urgent.into_iter().map(|(.., number)| number).collect()
    }

    /// Returns the number of programs after which a block waits for no record: that of the unit that is being written,
    /// and those of the units after it. `None` if the block waits for no record.
    pub fn programs_for(&self, block: BlockId) -> Option<u32> {
        let held = self.held.get(block).filter(|held| held.waiting > 0 || held.is_written)?;
        // A unit with the fewest needed records is half empty.
        Some(1 + held.waiting.div_ceil((self.room as u32 / 2).max(1)))
    }

    /// Adds the record of a trim. `block` holds the trimmed data, or is `NONE`. Returns `true` if it is the first
    /// record that the block waits for.
    pub fn trim(&mut self, lpn: Lpn, sequence: u64, block: BlockId) -> bool {
        if let Some(before) = self.trims.insert(lpn, Trim { sequence, slot: NO_SLOT }) {
            self.outdate(before);
        }
        let number = self.waiting.push(Waiting { sequence, lpn, block });
        if block.is_none() {
            return false;
        }
        let held = self.held.entry(block);
        held.waiting += 1;
        let last = std::mem::replace(&mut held.last, number);
        if held.waiting > 1 {
            self.waiting.link(last, number);
            return false;
        }
        held.first = number;
        let was_written = std::mem::take(&mut held.is_written);
        if let Some(writing) = self.writing.as_mut().filter(|_| was_written) {
            writing.blocks.retain(|&other| other != block);
        }
        !was_written
    }

    /// Returns `true` if the waiting records would fill half a unit.
    pub fn is_due(&self) -> bool {
        self.waiting.len() >= self.room / 2
    }

    /// Returns the number of trims whose records are not in flash.
    pub fn in_memory(&self) -> u64 {
        let writing = self.writing.as_ref().map_or(0, |writing| writing.records);
        self.waiting.len() as u64 + writing
    }

    /// Makes a flush wait for the records of all trims up to a number. Returns `false` if there are none.
    pub fn flush(&mut self, id: RequestId, upto: u64) -> bool {
        let waits = self.has_waiting();
        if waits {
            self.flushes.push((id, upto));
        }
        waits
    }

    /// Removes and returns the flushes that wait for trims up to a number.
    pub fn end_flushes(&mut self, upto: u64) -> Vec<RequestId> {
        let (done, waits) = std::mem::take(&mut self.flushes).into_iter().partition(|flush| flush.1 <= upto);
        self.flushes = waits;
        let done: Vec<(RequestId, u64)> = done;
        done.into_iter().map(|(id, _)| id).collect()
    }

    /// Returns `true` if a journal unit is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Ends the write of a journal unit. Returns the blocks that no longer wait for a record, and the sequence number
    /// up to which all trims are in flash now.
    pub fn end_write(&mut self) -> Option<(Vec<BlockId>, u64)> {
        let Writing { blocks, upto, .. } = self.writing.take()?;
        blocks.iter().for_each(|&block| self.held.entry(block).is_written = false);
        Some((blocks, upto))
    }

    /// Returns `true` if a flush waits for records.
    pub fn has_flushes(&self) -> bool {
        !self.flushes.is_empty()
    }

    /// Returns the logical units of the journal.
    pub fn units(&self) -> impl Iterator<Item = Lpn> + use<> {
        (self.first..self.first + self.slots.len() as u32).map(Lpn)
    }

    /// Records that a unit of the journal goes to a plane, as a guest if that is not the plane of its address.
    pub fn note_guest(&mut self, lpn: Lpn, plane: PlaneId, is_guest: bool) {
        if is_guest {
            self.guests.insert(lpn.0, plane)
        } else {
            self.guests.remove(&lpn.0)
        };
    }

    /// Returns `true` if a plane has room for a journal unit in addition to its own units.
    pub fn has_room_for_guest(&self, lpn: Lpn, plane: PlaneId) -> bool {
        let guests = self.guests.iter().filter(|&(&unit, &host)| host == plane && unit != lpn.0);
        (guests.count() as u64) < self.guests_per_plane
    }
}
