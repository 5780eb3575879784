//! The journal of trims: what the host has deallocated is written down in flash, so that it stays deallocated when the
//! power goes.
//!
//! The journal is some mapping units of the device's own, behind those of the host. Each holds records of trims; a unit
//! of it is written anew with those of its records that still matter and new ones, like any unit that the host
//! overwrites, so that cleaning and recovery need not know of it. A record matters until a newer write of its unit is
//! in flash. There is room for two records for each unit of the host, so that half of some unit is always free.
//!
//! Records are written at a flush, for a trim with FUA, when half a unit of them waits, and before a block is erased
//! that holds a trimmed unit: an older version of that may be elsewhere. Until then the block has one dependant more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::trims::{Trim, Trims, Waiting, WaitingRecords};
use crate::config::DeviceConfig;
use crate::ftl::mapping::{Location, PageMap};
use crate::sim::id::{BlockId, Lpn, PlaneId, RequestId, TransactionId};
use crate::sim::table::Table;
use crate::state::{Reader, StateError, Writer};

/// Records whose trimmed data are in the same block, and which are not in flash yet.
#[derive(Clone, Debug, Default)]
struct Held {
    /// Number of records.
    records: u32,
    /// Sequence numbers of those that are not being written either, oldest first.
    waiting: VecDeque<u64>,
}

/// A unit of the journal that is being programmed.
#[derive(Clone, Debug, Default)]
struct Writing {
    /// Block that holds the trimmed data, or `NONE`, for each record that this write adds.
    blocks: Vec<BlockId>,
    /// All trims up to this number are in flash when it has ended.
    upto: u64,
}

/// The journal of a device that keeps one.
#[derive(Clone, Debug)]
pub struct Journal {
    /// The logical unit of its first unit.
    first: u32,
    /// Records that a unit of it holds.
    room: usize,
    /// By unit of it: its records.
    slots: Vec<Vec<(u32, u64)>>,
    /// How many of them matter, and which unit.
    by_live: BTreeSet<(u32, u32)>,
    live: Vec<u32>,
    /// The last trim of each unit that is trimmed. Its slot is `NO_SLOT` until its record is being written.
    trims: Trims,
    /// Records that are not being written.
    waiting: WaitingRecords,
    /// Records of `waiting` and `writing`, by the block that holds the trimmed data.
    held: Table<BlockId, Held>,
    writing: Option<Writing>,
    /// The unit of it that is on its way, and its transaction.
    slot: u32,
    /// The write of a unit of it that found no room.
    pub stalled: Option<TransactionId>,
    /// Flushes in progress, and up to which number they wait.
    flushes: Vec<(RequestId, u64)>,
    /// Units of it that are not in the plane of their address, which had no room: where they are.
    guests: BTreeMap<u32, PlaneId>,
    /// The number of guests that a plane has room for.
    guests_per_plane: u64,
}

/// No unit of the journal.
const NO_SLOT: u32 = u32::MAX;

/// Bytes of a record: the unit and the number.
const RECORD: usize = 12;

impl Journal {
    /// Creates an empty journal; `None` if the device keeps none.
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

    /// Whether a block waits for records to be written.
    pub fn holds(&self, block: BlockId) -> bool {
        self.held.get(block).is_some_and(|held| held.records > 0)
    }

    fn count(&mut self, slot: u32, change: i32) {
        if slot != NO_SLOT {
            let live = &mut self.live[slot as usize];
            self.by_live.remove(&(*live, slot));
            *live = live.wrapping_add_signed(change);
            self.by_live.insert((*live, slot));
        }
    }

    /// A newer write of a unit is in flash, or a newer trim came.
    pub fn forget(&mut self, lpn: Lpn) {
        if let Some(trim) = self.trims.remove(lpn) {
            self.outdate(trim);
        }
    }

    /// Drops the record of a trim that does not matter anymore.
    fn outdate(&mut self, Trim { sequence, slot }: Trim) {
        self.count(slot, -1);
        // A block cannot be erased before its records are written, so those stay.
        if self.waiting.get(sequence).is_some_and(|record| record.block.is_none()) {
            self.waiting.remove(sequence);
        }
    }

    /// What recovery has found in a unit of the journal; `live` are those of its records that matter.
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

    /// What recovery has found of a trim that is not in the journal.
    pub fn adopt_waiting(&mut self, lpn: Lpn, sequence: u64) {
        if self.trims.get(lpn).is_none_or(|known| known.sequence < sequence) {
            self.forget(lpn);
            self.trims.insert(lpn, Trim { sequence, slot: NO_SLOT });
            self.waiting.push(Waiting { sequence, lpn, block: BlockId::NONE });
        }
    }

    /// Whether trims wait to be written.
    pub fn has_waiting(&self) -> bool {
        self.writing.is_some() || !self.waiting.is_empty()
    }

    /// The flushes that wait for it, which it does not serve any more.
    pub fn take_flushes(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.flushes).into_iter().map(|(id, _)| id).collect()
    }

    /// Writes its contents for a saved state, and the number of the last write or trim.
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

    /// Reads what [`Journal::save`] wrote; returns the number of the last write or trim.
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

    /// The bytes of a unit of the journal; none where `lpn` is the host's.
    pub fn page(&self, lpn: u32) -> Option<Vec<u8>> {
        let records = self.slots.get(lpn.checked_sub(self.first)? as usize)?;
        let mut bytes = (records.len() as u32).to_le_bytes().to_vec();
        for (lpn, sequence) in records {
            bytes.extend(lpn.to_le_bytes());
            bytes.extend(sequence.to_le_bytes());
        }
        Some(bytes)
    }

    /// The records in the bytes of a unit of a journal.
    pub fn records(bytes: &[u8]) -> Option<Vec<(u32, u64)>> {
        let count = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let records = bytes.get(4..4 + count.checked_mul(RECORD)?)?.chunks_exact(RECORD);
        let record = |bytes: &[u8]| {
            let lpn = u32::from_le_bytes(bytes[..4].try_into().unwrap_or_default());
            (lpn, u64::from_le_bytes(bytes[4..].try_into().unwrap_or_default()))
        };
        Some(records.map(record).collect())
    }

    /// Takes records for the next unit of it, and keeps those of its records that matter. Returns the logical unit, or
    /// `None` if there are no records. `now` is the number of the last write or trim.
    pub fn take(&mut self, now: u64, awaiting_erase: impl Iterator<Item = BlockId>) -> Option<Lpn> {
        if self.waiting.is_empty() {
            return None;
        }
        let &(_, slot) = self.by_live.first()?;
        let trims = &self.trims;
        self.slots[slot as usize].retain(|&(lpn, sequence)| trims.get(Lpn(lpn)) == Some(Trim { sequence, slot }));
        self.slot = slot;
        self.writing = Some(Writing::default());
        self.add(now, awaiting_erase);
        Some(Lpn(self.first + slot))
    }

    /// Adds what waits to the unit that is to be programmed, as far as it has room: those records first whose blocks
    /// cannot be erased for them.
    pub fn add(&mut self, now: u64, awaiting_erase: impl Iterator<Item = BlockId>) {
        let Some(mut writing) = self.writing.take() else { return };
        let slot = self.slot;
        let room = self.room.saturating_sub(self.slots[slot as usize].len());
        let of_awaiting_erase = awaiting_erase.filter_map(|block| self.held.get(block));
        let mut urgent: Vec<u64> = of_awaiting_erase.flat_map(|held| held.waiting.iter().take(room)).copied().collect();
        urgent.sort_unstable();
        let mut added = 0;
        for taken in 0..room {
            let next = urgent.get(taken).copied().or_else(|| self.waiting.first().map(|record| record.sequence));
            let Some(Waiting { sequence, lpn, block }) = next.and_then(|next| self.waiting.remove(next)) else { break };
            if let Some(held) = self.held.get_mut(block) {
                held.waiting.pop_front(); // Those of a block leave oldest first.
            }
            writing.blocks.push(block);
            if self.trims.get(lpn) == Some(Trim { sequence, slot: NO_SLOT }) {
                self.trims.insert(lpn, Trim { sequence, slot });
                self.slots[slot as usize].push((lpn.0, sequence));
                added += 1;
            }
        }
        self.count(slot, added);
        writing.upto = self.waiting.first().map_or(now, |record| record.sequence - 1);
        self.writing = Some(writing);
    }

    /// Returns `true` if the records of a block are all being written.
    pub fn writes_all_of(&self, block: BlockId) -> bool {
        self.held.get(block).is_some_and(|held| held.records > 0 && held.waiting.is_empty())
    }

    /// Adds the record of a trim. `block` holds the trimmed data, or is `NONE`. Returns `true` if it is the first
    /// record that the block waits for.
    pub fn trim(&mut self, lpn: Lpn, sequence: u64, block: BlockId) -> bool {
        if let Some(before) = self.trims.insert(lpn, Trim { sequence, slot: NO_SLOT }) {
            self.outdate(before);
        }
        self.waiting.push(Waiting { sequence, lpn, block });
        if block.is_none() {
            return false;
        }
        let held = self.held.entry(block);
        held.records += 1;
        held.waiting.push_back(sequence);
        held.records == 1
    }

    /// Returns `true` if the records that wait would fill half a unit.
    pub fn is_due(&self) -> bool {
        self.waiting.len() >= self.room / 2
    }

    /// Returns the number of trims whose records are not in flash.
    pub fn in_memory(&self) -> u64 {
        let writing = self.writing.as_ref().map_or(0, |writing| writing.blocks.len());
        (self.waiting.len() + writing) as u64
    }

    /// Lets a flush wait for the records of all trims up to a number. Returns `false` if there is none to wait for.
    pub fn flush(&mut self, id: RequestId, upto: u64) -> bool {
        let waits = self.has_waiting();
        if waits {
            self.flushes.push((id, upto));
        }
        waits
    }

    /// Ends the flushes that wait for trims up to a number, and returns them.
    pub fn end_flushes(&mut self, upto: u64) -> Vec<RequestId> {
        let (done, waits) = std::mem::take(&mut self.flushes).into_iter().partition(|flush| flush.1 <= upto);
        self.flushes = waits;
        let done: Vec<(RequestId, u64)> = done;
        done.into_iter().map(|(id, _)| id).collect()
    }

    /// Returns `true` if a unit is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Ends the writing of a unit. Returns the blocks that do not wait for a record any more, and the number up to
    /// which all trims are in flash now.
    pub fn end_write(&mut self) -> Option<(Vec<BlockId>, u64)> {
        let Writing { blocks, upto } = self.writing.take()?;
        let mut free = Vec::new();
        for block in blocks {
            let Some(held) = self.held.get_mut(block) else { continue };
            held.records -= 1;
            if held.records == 0 {
                free.push(block);
            }
        }
        Some((free, upto))
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
        match is_guest {
            true => self.guests.insert(lpn.0, plane),
            false => self.guests.remove(&lpn.0),
        };
    }

    /// Returns `true` if a plane that is full of its own has room for a unit of the journal besides.
    pub fn has_room_for_guest(&self, lpn: Lpn, plane: PlaneId) -> bool {
        let guests = self.guests.iter().filter(|&(&unit, &host)| host == plane && unit != lpn.0);
        (guests.count() as u64) < self.guests_per_plane
    }
}
