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
use super::{Device, Mutant};
use crate::config::DeviceConfig;
use crate::ftl::flash::FlashEvent;
use crate::ftl::mapping::{Location, PageMap};
use crate::ftl::space::{BlockState, Claim, Role};
use crate::metrics::attribution::Part as TimePart;
use crate::observe::Origin;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::request::Status;
use crate::sim::table::Table;
use crate::state::{Reader, StateError, Writer};
use crate::work::{Class, Kind, Task, Transaction};

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

/// The journal.
#[derive(Clone, Debug)]
pub(super) struct Journal {
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
    /// It found no room.
    stalled: Option<TransactionId>,
    /// Flushes in progress, and up to which number they wait.
    flushes: Vec<(RequestId, u64)>,
    /// Units of it that are not in the plane of their address, which had no room: where they are.
    guests: BTreeMap<u32, PlaneId>,
}

/// No unit of the journal.
const NO_SLOT: u32 = u32::MAX;

/// Bytes of a record: the unit and the number.
const RECORD: usize = 12;

impl Journal {
    pub(super) fn new(config: &DeviceConfig) -> Option<Journal> {
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
        })
    }

    /// Whether a block waits for records to be written.
    pub(super) fn holds(&self, block: BlockId) -> bool {
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
    fn forget(&mut self, lpn: Lpn) {
        let Some(Trim { sequence, slot }) = self.trims.remove(lpn) else { return };
        self.count(slot, -1);
        // A block cannot be erased before its records are written, so those stay.
        if self.waiting.get(sequence).is_some_and(|record| record.block.is_none()) {
            self.waiting.remove(sequence);
        }
    }

    /// What recovery has found in a unit of the journal; `live` are those of its records that matter.
    pub(super) fn adopt(&mut self, slot: u32, records: Vec<(u32, u64)>, live: impl Fn(u32, u64) -> bool) {
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
    pub(super) fn adopt_waiting(&mut self, lpn: Lpn, sequence: u64) {
        if self.trims.get(lpn).is_none_or(|known| known.sequence < sequence) {
            self.forget(lpn);
            self.trims.insert(lpn, Trim { sequence, slot: NO_SLOT });
            self.waiting.push(Waiting { sequence, lpn, block: BlockId::NONE });
        }
    }

    /// Whether trims wait to be written.
    pub(super) fn has_waiting(&self) -> bool {
        self.writing.is_some() || !self.waiting.is_empty()
    }

    /// The flushes that wait for it, which it does not serve any more.
    pub(super) fn take_flushes(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.flushes).into_iter().map(|(id, _)| id).collect()
    }

    /// Writes its contents for a saved state, and the number of the last write or trim.
    pub(super) fn save(&self, sequence: u64, out: &mut Writer) -> Result<(), StateError> {
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
    pub(super) fn load(&mut self, map: &PageMap, input: &mut Reader) -> Result<u64, StateError> {
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
    pub(super) fn page(&self, lpn: u32) -> Option<Vec<u8>> {
        let records = self.slots.get(lpn.checked_sub(self.first)? as usize)?;
        let mut bytes = (records.len() as u32).to_le_bytes().to_vec();
        for (lpn, sequence) in records {
            bytes.extend(lpn.to_le_bytes());
            bytes.extend(sequence.to_le_bytes());
        }
        Some(bytes)
    }

    /// The records in the bytes of a unit of a journal.
    pub(super) fn records(bytes: &[u8]) -> Option<Vec<(u32, u64)>> {
        let count = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let records = bytes.get(4..4 + count.checked_mul(RECORD)?)?.chunks_exact(RECORD);
        let record = |bytes: &[u8]| {
            let lpn = u32::from_le_bytes(bytes[..4].try_into().unwrap_or_default());
            (lpn, u64::from_le_bytes(bytes[4..].try_into().unwrap_or_default()))
        };
        Some(records.map(record).collect())
    }

    /// Takes records for the next unit of it, and keeps those of its records that matter.
    fn take(&mut self, now: u64, doomed: impl Iterator<Item = BlockId>) -> Option<u32> {
        if self.waiting.is_empty() {
            return None;
        }
        let &(_, slot) = self.by_live.first()?;
        let trims = &self.trims;
        self.slots[slot as usize].retain(|&(lpn, sequence)| trims.get(Lpn(lpn)) == Some(Trim { sequence, slot }));
        self.slot = slot;
        self.writing = Some(Writing::default());
        self.add(now, doomed);
        Some(slot)
    }

    /// Adds what waits to the unit that is to be programmed, as far as it has room: those records first whose blocks
    /// cannot be erased for them.
    fn add(&mut self, now: u64, doomed: impl Iterator<Item = BlockId>) {
        let Some(mut writing) = self.writing.take() else { return };
        let slot = self.slot;
        let room = self.room.saturating_sub(self.slots[slot as usize].len());
        let of_doomed = doomed.filter_map(|block| self.held.get(block));
        let mut urgent: Vec<u64> = of_doomed.flat_map(|held| held.waiting.iter().take(room)).copied().collect();
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
    fn writes_all_of(&self, block: BlockId) -> bool {
        self.held.get(block).is_some_and(|held| held.records > 0 && held.waiting.is_empty())
    }
}

impl Device {
    /// A unit was deallocated that is mapped; `stale` is what it leaves in flash.
    pub(super) fn journal_trim(&mut self, lpn: Lpn, sequence: u64, stale: Option<Ppn>) {
        let (Some(journal), false) = (&mut self.journal, self.options.mutant == Mutant::ForgetTrims) else { return };
        journal.forget(lpn);
        journal.trims.insert(lpn, Trim { sequence, slot: NO_SLOT });
        let block = stale.map_or(BlockId::NONE, |place| self.ftl.blocks.block_of(place));
        journal.waiting.push(Waiting { sequence, lpn, block });
        if let Some(place) = stale {
            let held = journal.held.entry(block);
            held.records += 1;
            held.waiting.push_back(sequence);
            if held.records == 1 {
                self.ftl.blocks.depend(place);
            }
        }
        if journal.waiting.len() >= journal.room / 2 {
            self.write_journal();
        }
    }

    /// A write of a unit of the host is in flash.
    #[inline]
    pub(super) fn journal_written(&mut self, lpn: Lpn) {
        if let Some(journal) = &mut self.journal {
            journal.forget(lpn);
        }
    }

    /// Returns the number of trims whose records are not in flash, and `None` without a trim journal
    /// (`durability.trim_journal`). A power cut undoes these trims.
    pub fn trims_in_memory(&self) -> Option<u64> {
        let journal = self.journal.as_ref()?;
        let writing = journal.writing.as_ref().map_or(0, |writing| writing.blocks.len());
        Some((journal.waiting.len() + writing) as u64)
    }

    /// A flush waits for the records of all trims before it; false where there is nothing to wait for.
    pub(super) fn flush_journal(&mut self, id: RequestId) -> bool {
        let protected = self.buffer().is_some_and(|buffer| buffer.is_protected());
        let sequence = self.ftl.sequence;
        let Some(journal) = self.journal.as_mut().filter(|_| !protected) else { return false };
        if self.ftl.is_read_only() {
            if journal.has_waiting() {
                self.front.requests[id].status = Status::ReadOnly;
            }
            return false;
        }
        if journal.waiting.is_empty() && journal.writing.is_none() {
            return false;
        }
        journal.flushes.push((id, sequence));
        self.front.requests[id].remaining += 1;
        self.write_journal();
        true
    }

    /// Blocks that cleaning wants to erase may wait for records.
    #[inline]
    pub(super) fn journal_for_doomed(&mut self) {
        if self.journal.is_some() && self.is_doomed_held() {
            self.write_journal();
        }
    }

    /// Cleaning of a plane rests, or a read of a block or an update of the map has ended: a unit of the journal that
    /// found no room may have some now, if a block waits for it.
    #[inline]
    pub(super) fn journal_for_resting(&mut self) {
        let stalled = self.journal.as_ref().and_then(|journal| journal.stalled);
        let Some(id) = stalled.filter(|_| self.is_doomed_held()) else { return };
        self.add_to_journal();
        if self.plane_for_own(self.transactions[id].lpn).is_some() {
            self.unstall_journal();
        }
    }

    fn is_doomed_held(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| self.ftl.blocks.doomed().any(|block| journal.holds(block)))
    }

    /// Writes the next unit of the journal, unless one is on its way.
    fn write_journal(&mut self) {
        if self.ftl.is_read_only() {
            return;
        }
        let (blocks, now) = (&self.ftl.blocks, self.ftl.sequence);
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.writing.is_none()) else { return };
        let Some(slot) = journal.take(now, blocks.doomed()) else { return self.end_journal_flushes(u64::MAX) };
        let lpn = Lpn(journal.first + slot);
        self.write_own(lpn);
    }

    /// Adds what has come to the unit of the journal that waits for room: a block may wait for it.
    fn add_to_journal(&mut self) {
        let (blocks, now) = (&self.ftl.blocks, self.ftl.sequence);
        if let Some(journal) = &mut self.journal {
            journal.add(now, blocks.doomed());
        }
    }

    /// Writes a unit of the device's own.
    pub(super) fn write_own(&mut self, lpn: Lpn) {
        let sequence = self.ftl.next_sequence();
        if let Some(durable) = &mut self.ftl.durable {
            durable.set_coming(sequence, true);
        }
        let before = self.ftl.map.get(lpn);
        let mut write = Transaction::new(Kind::Write, Class::HostProgram);
        (write.lpn, write.complete) = (lpn, true);
        if let Location::Flash(place) = before {
            write.source = place;
        }
        let id = self.transactions.insert(write);
        self.observe_accepted(id, before, Origin::Own);
        self.ftl.map.set_slot(lpn, id);
        self.note_slot(id);
        self.place_own(id);
    }

    /// Whether a unit is the device's own.
    #[inline]
    pub(super) fn is_own(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.ftl.host_units
    }

    /// Whether a write is of the journal.
    #[inline]
    pub(super) fn is_of_journal(&self, lpn: Lpn) -> bool {
        self.is_own(lpn) && !self.is_of_checkpoint(lpn)
    }

    /// Planes that a unit of the device's own may go to: its home, or those of its pool; for a unit of the journal that
    /// a block waits for, others too. Reads and recovery find it anywhere.
    fn planes_for_own(&self, lpn: Lpn) -> Vec<PlaneId> {
        let planes = || (0..self.ftl.shape().planes).map(PlaneId);
        let Some(home) = self.ftl.home(lpn) else {
            return planes().filter(|&plane| self.ftl.allocation.pool_of(plane) == self.ftl.pool(lpn)).collect();
        };
        let mut all = vec![home];
        if self.is_of_journal(lpn) && self.is_doomed_held() {
            all.extend(planes().filter(|&plane| plane != home && self.has_room_for_guest(lpn, plane)));
        }
        all
    }

    /// Whether a plane that is full of its own may hold a unit of the journal besides.
    fn has_room_for_guest(&self, lpn: Lpn, plane: PlaneId) -> bool {
        let guests = self.journal.iter().flat_map(|journal| &journal.guests);
        let guests = guests.filter(|&(&unit, &host)| host == plane && unit != lpn.0);
        (guests.count() as u64) < self.config.units_to_spare()
    }

    /// A unit of the journal goes to a plane.
    fn note_guest(&mut self, lpn: Lpn, plane: PlaneId) {
        let is_guest = self.is_of_journal(lpn) && self.ftl.home(lpn).is_some_and(|home| home != plane);
        if let Some(journal) = &mut self.journal {
            match is_guest {
                true => journal.guests.insert(lpn.0, plane),
                false => journal.guests.remove(&lpn.0),
            };
        }
    }

    /// Notes where the units of the journal are that were found.
    pub(super) fn find_guests(&mut self) {
        let Some((first, count)) = self.journal.as_ref().map(|journal| (journal.first, journal.slots.len())) else {
            return;
        };
        for lpn in (first..first + count as u32).map(Lpn) {
            if let Some(place) = self.ftl.place_in_flash(lpn) {
                self.note_guest(lpn, self.ftl.blocks.plane_of(self.ftl.blocks.block_of(place)));
            }
        }
    }

    /// The plane that a unit of the device's own goes to, if one has room: its home, or the one with most.
    fn plane_for_own(&self, lpn: Lpn) -> Option<PlaneId> {
        let planes = self.planes_for_own(lpn);
        let takes = |plane: &PlaneId| self.ftl.blocks.takes_host_write(*plane);
        let most = || {
            planes
                .iter()
                .copied()
                .max_by_key(|&plane| (self.ftl.blocks.free_blocks(plane, Role::Data), std::cmp::Reverse(plane)))
        };
        let first = self.ftl.home(lpn).or_else(most).filter(takes);
        let any = first.or_else(|| planes.iter().copied().find(takes));
        let lends = |plane: &PlaneId| self.is_of_journal(lpn) && self.freeing_of_journal(*plane).is_some();
        any.or_else(|| planes.iter().copied().find(lends))
    }

    /// A unit of the device's own goes to a plane that takes it, or waits for one that does.
    pub(super) fn place_own(&mut self, id: TransactionId) {
        let lpn = self.transactions[id].lpn;
        if self.is_of_journal(lpn) {
            self.add_to_journal();
        }
        match self.plane_for_own(lpn) {
            Some(plane) => {
                self.transactions[id].plane = plane;
                self.note_guest(lpn, plane);
                self.line_up(id);
            }
            None => {
                let planes = self.planes_for_own(lpn);
                let of_checkpoint = self.is_of_checkpoint(lpn);
                match &mut self.journal {
                    Some(journal) if !of_checkpoint => journal.stalled = Some(id),
                    _ => self.stall_checkpoint(id),
                }
                planes.into_iter().for_each(|plane| self.tasks.push(Task::Clean(plane)));
            }
        }
    }

    /// Returns the claim of a unit of the journal on a plane without room for the host, if a block of the plane waits
    /// for nothing but this unit. So no power cut finds the plane without a block to gain: until the unit is programmed
    /// it is in no one's way, and from then on that block holds nothing newest.
    pub(super) fn freeing_of_journal(&self, plane: PlaneId) -> Option<Claim> {
        let journal = self.journal.as_ref()?;
        let claim = self.freeing(plane)?;
        let gained = |block: BlockId| self.waits_for_one(plane, block) && journal.writes_all_of(block);
        self.ftl.blocks.doomed().any(gained).then_some(claim)
    }

    /// Returns the claim of a write that frees a block of the plane, if there is room for it.
    pub(super) fn freeing(&self, plane: PlaneId) -> Option<Claim> {
        let claim = Claim::Freeing(self.jobs[plane].in_hand(&self.ftl));
        self.ftl.blocks.may_take(self.ftl.blocks.region(plane, Role::Data), claim).then_some(claim)
    }

    /// Whether a block of a plane is free when the one thing has ended that it waits for.
    pub(super) fn waits_for_one(&self, plane: PlaneId, block: BlockId) -> bool {
        let state = self.ftl.blocks.block(block);
        self.ftl.blocks.plane_of(block) == plane
            && state.state == BlockState::Doomed
            && !state.failed
            && state.dependants == 1
    }

    /// A plane may have room for a unit of the journal that found none.
    #[inline]
    pub(super) fn unstall_journal(&mut self) {
        if let Some(id) = self.journal.as_mut().and_then(|journal| journal.stalled.take()) {
            self.place_own(id);
        }
    }

    /// A unit of the journal is in flash.
    fn journal_ended(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        let Some(Writing { blocks, upto }) = journal.writing.take() else { return };
        if let Some(durable) = &mut self.ftl.durable {
            durable.tell(FlashEvent::Journalled { sequence: upto });
        }
        let mut free = Vec::new();
        for block in blocks {
            let Some(held) = journal.held.get_mut(block) else { continue };
            held.records -= 1;
            if held.records == 0 {
                free.push(block);
            }
        }
        free.into_iter().for_each(|block| self.release(block));
        self.end_journal_flushes(upto);
        let Some(journal) = &self.journal else { return };
        let goes_on = !journal.flushes.is_empty() || journal.waiting.len() >= journal.room / 2 || self.is_doomed_held();
        if goes_on {
            self.write_journal();
        }
    }

    /// A write of a unit of the device's own has ended: it has no request, and no slot of the controller.
    pub(super) fn finish_own(&mut self, id: TransactionId) {
        let write = self.transactions.remove(id);
        if write.dependency.is_some() {
            self.release(write.dependency);
            self.clean(self.ftl.blocks.plane_of(write.dependency));
        }
        match self.is_of_checkpoint(write.lpn) {
            true => self.checkpoint_ended(write.lpn, write.place),
            false => self.journal_ended(),
        }
    }

    fn end_journal_flushes(&mut self, upto: u64) {
        let Some(journal) = &mut self.journal else { return };
        let (done, waits) = journal.flushes.iter().partition(|flush| flush.1 <= upto);
        journal.flushes = waits;
        let done: Vec<(RequestId, u64)> = done;
        for (id, _) in done {
            let pending = &mut self.front.requests[id];
            pending.start = pending.start.min(self.now);
            self.observe_request(id, TimePart::Buffer);
            self.part_done(id, self.now, TransactionId::NONE);
        }
    }
}
