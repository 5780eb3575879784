//! Log-block mappings: data blocks are mapped by logical block, and a few log blocks by unit.
//!
//! A host write goes to the data block while the page there is free, and to a log block otherwise. If there are too few
//! log blocks, a *merge* builds a data block from the newest copy of each unit of a logical block. A *switch* merge
//! makes a log block in order the data block, a *partial* merge copies the rest into it first, and a *full* merge
//! copies all units into a free block. The schemes differ in which log block takes a write, and which log block is
//! reclaimed: see [`Rules`] and docs/model/log_blocks.md.

mod failing;
mod in_place;
mod layout;
mod merges;
pub mod options;
mod recovery;
mod runs;
mod saving;
mod slots;
mod trims;
mod writes;

use std::cmp::{Ordering, Reverse};
use std::ops::Range;

use super::own_blocks::{self, OwnBlocks};
use super::{
    Bound, Change, Context, Ended, KeptBlock, Mapping, Place, Program, Recovering, SchemeReport, Step, Target,
    keep_found,
};
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::allocation::Order;
use crate::has_whole_map;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::state::{Reader, StateError, Writer};
use crate::work::{Call, Kind, Purpose, Task};
pub use layout::Layout;
use options::{Common, FirstWrites, FreeBlocks, Reclaim, Stream, StreamKind};
pub use runs::Runs;
use slots::{InPlace, NOWHERE, Set, Slot};
use trims::Trims;

/// Host write, for the rules of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    /// The unit.
    pub lpn: Lpn,
    /// Offset of the unit in its logical block.
    pub offset: u32,
    /// Number of units of its request that follow one another; 1 if they are not known.
    pub units: u32,
    /// True if the write continues the log block of its logical block.
    pub continues: bool,
    /// Number of units that the host has written before.
    pub clock: u64,
}

/// Rules of a scheme: the choice of a stream of log blocks for each write, and of the log block that is
/// reclaimed.
pub trait Rules: Clone + std::fmt::Debug {
    /// Returns the stream of a write.
    fn stream_of(&mut self, write: Incoming) -> usize;

    /// Returns the order of shared log blocks in which they are reclaimed, lowest first: `valid` units are left, and
    /// the block was opened at `opened`.
    fn rank(&self, valid: u32, opened: u64) -> (u32, u64);

    /// Writes the state of the rules to a saved state.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`Rules::save`] wrote.
    fn load(&mut self, _input: &mut Reader) -> Result<(), StateError> {
        Ok(())
    }
}

/// A log-block mapping.
#[derive(Clone, Debug)]
pub struct LogBlocks<R> {
    rules: R,
    layout: Layout,
    streams: Vec<Stream>,
    /// Stream of the log blocks of consecutive units.
    runs: Option<usize>,
    /// First slot of each stream, and of the targets of merges, within the slots of a set.
    firsts: Vec<u32>,
    /// Number of merges at a time.
    merges: u32,
    /// Free blocks of each set that are left for failures.
    spare: u32,
    /// Number of blocks of a set that are neither data blocks nor log blocks on a full device without bad blocks.
    beyond: u32,
    reclaim: Reclaim,
    /// Slots of all sets, and then those of data blocks that take writes.
    slots: Vec<Slot>,
    slots_per_set: u32,
    sets: Vec<Set>,
    /// Planes in the order in which they give blocks, by set.
    planes: Vec<PlaneId>,
    /// Planes that a set has in each of its channels, if the channels give blocks in turn.
    planes_per_channel: Option<u32>,
    /// Data blocks, by logical block.
    data: Vec<u32>,
    /// `None` if data blocks take no writes.
    in_place: Option<InPlace>,
    /// Slots of the log blocks that belong to a logical block.
    log_of: Vec<u32>,
    /// Writes of each logical block that have come last among those that wait for its log block.
    last_waiting: Vec<TransactionId>,
    /// Slots, by block.
    slot_of: Vec<u32>,
    trims: Trims,
    /// Writes that have waited for a write that was trimmed.
    again: Vec<TransactionId>,
    /// Reused memory for the writes of a program.
    writes: Vec<TransactionId>,
    /// Number of units that the host has written.
    clock: u64,
    /// Number of writes that were trimmed before they were bound, and never programmed.
    dropped: u64,
    /// Number of units that were skipped in data blocks.
    unwritten: u64,
    /// Blocks for the units of the device itself.
    own: OwnBlocks,
    /// Blocks that a recovery has found no place for. The device is read-only then.
    unplaced: Vec<BlockId>,
}

/// Tasks of a log-block mapping.
mod step {
    /// Take the next step of a slot.
    pub(super) const SLOT: u8 = 0;
    /// Give blocks to what waits for one in a set, and take the next step of its merges.
    pub(super) const SET: u8 = 1;
    /// Place the writes that have waited for a write that was trimmed.
    pub(super) const AGAIN: u8 = 2;
}

/// Returns a task of the scheme, about a slot or a set.
fn call(step: u8, number: u32) -> Task {
    Task::Scheme(Call { step, number, ..Call::default() })
}

impl<R: Rules> LogBlocks<R> {
    /// Creates the scheme of an empty device.
    pub fn with_rules(device: &DeviceConfig, common: Common, rules: R) -> LogBlocks<R> {
        let layout = Layout::new(device, &common);
        let order = match &device.allocation {
            AllocationConfig::Static(options) => options.order,
            _ => Default::default(),
        };
        let order = Order::new(device, order);
        let mut planes = Vec::new();
        for set in 0..layout.sets() {
            let mut of_set: Vec<PlaneId> = layout.planes_of(set).map(PlaneId).collect();
            of_set.sort_by_key(|&plane| order.position(plane));
            planes.extend(of_set);
        }
        let mut firsts = vec![0];
        for stream in &common.streams {
            firsts.push(firsts[firsts.len() - 1] + stream.logs);
        }
        let per_set = common.slots();
        let set = Set {
            free: common.planes(device) * device.geometry.blocks,
            shared: vec![Default::default(); common.streams.len()],
            ..Set::default()
        };
        let own = OwnBlocks::new(device);
        let mut sets = vec![set; layout.sets() as usize];
        for (set, number) in sets.iter_mut().zip(0..) {
            set.free -= layout.planes_of(number).map(|plane| own.reserved(PlaneId(plane))).sum::<u32>();
        }
        let count = layout.count() as usize;
        LogBlocks {
            rules,
            planes_per_channel: (common.free_blocks == FreeBlocks::ByChannel)
                .then(|| common.planes(device).min(device.total_planes() / device.channels())),
            merges: common.merges,
            spare: u32::from(device.faults.is_some()),
            beyond: common.beyond(device) + common.planes(device) * device.factory_bad(),
            reclaim: common.reclaim,
            slots: vec![Slot::default(); (layout.sets() * per_set) as usize],
            slots_per_set: per_set,
            sets,
            planes,
            data: vec![NOWHERE; count],
            in_place: (common.first_writes == FirstWrites::Data).then(|| InPlace::new(layout.count())),
            log_of: vec![NOWHERE; count],
            last_waiting: vec![TransactionId::NONE; count],
            slot_of: vec![NOWHERE; device.total_blocks() as usize],
            trims: Trims::new(device),
            again: Vec::new(),
            writes: Vec::new(),
            clock: 0,
            dropped: 0,
            unwritten: 0,
            own,
            unplaced: Vec::new(),
            runs: common.streams.iter().position(|stream| stream.kind == StreamKind::Consecutive),
            streams: common.streams,
            firsts,
            layout,
        }
    }

    fn slot(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    fn set(&mut self, set: u32) -> &mut Set {
        &mut self.sets[set as usize]
    }

    /// Returns the slots of a stream in a set. The targets of merges follow the streams.
    fn slots_of(&self, set: u32, stream: usize) -> Range<u32> {
        let first = set * self.slots_per_set;
        let end = self.firsts.get(stream + 1).copied().unwrap_or(self.slots_per_set);
        first + self.firsts[stream]..first + end
    }

    /// Returns the set of a slot.
    fn set_of_slot(&self, slot: u32) -> u32 {
        if self.is_data(slot) {
            return self.layout.set_of(self.slots[slot as usize].number);
        }
        slot / self.slots_per_set
    }

    /// Returns the stream of a slot, or the number of streams for a target of a merge, or a higher number for a data
    /// block.
    fn stream_of_slot(&self, slot: u32) -> usize {
        if self.is_data(slot) {
            return self.streams.len() + 1;
        }
        let within = slot % self.slots_per_set;
        self.firsts.partition_point(|&first| first <= within) - 1
    }

    /// Returns the reason for which units are copied into the block of a slot.
    fn purpose_of(&self, slot: u32) -> Purpose {
        let is_target = self.stream_of_slot(slot) == self.streams.len();
        if is_target { Purpose::FullMerge } else { Purpose::PartialMerge }
    }

    /// Returns the first unit of a slot's block.
    fn first_unit(&self, ftl: &Ftl, slot: u32) -> u32 {
        ftl.blocks.first_unit(BlockId(self.slots[slot as usize].block)).0
    }

    /// Returns the plane of a set that gives the next block, and the turn after it, if there is a free block.
    fn plane_to_open(&self, ftl: &Ftl, set: u32) -> Option<(PlaneId, u32)> {
        let turn = self.sets[set as usize].turn;
        let planes = self.layout.planes_of(set);
        let count = planes.len() as u32;
        let free = |plane: PlaneId| self.own.others(ftl, plane);
        let Some(per_channel) = self.planes_per_channel else {
            let plane_at = |i: u32| self.planes[(set * count + (turn + i) % count) as usize];
            let i = (0..count).find(|&i| free(plane_at(i)) > 0)?;
            return Some((plane_at(i), (turn + i + 1) % count));
        };
        let channels = count / per_channel;
        (0..channels).map(|i| (turn + i) % channels).find_map(|channel| {
            let first = planes.start + channel * per_channel;
            let of_channel = (first..first + per_channel).map(PlaneId).filter(|&plane| free(plane) > 0);
            // Of blocks with equally many erases, that of the plane with the most free blocks is taken.
            let plane = of_channel.min_by_key(|&plane| (ftl.blocks.erases_of_next(plane), Reverse(free(plane))))?;
            Some((plane, (channel + 1) % channels))
        })
    }

    /// Returns `true` if a set may open a free block for a log block or a merge. If blocks may fail, one is left for
    /// that.
    ///
    /// After a power cut, blocks that awaited their erase may hold newest versions again, if the programs that replaced
    /// these were interrupted, or the trims were lost. Their slots may have been given to other blocks. On a durable
    /// device, one block therefore stays free, so that a recovery can merge them, and there are no more of them than
    /// the blocks beyond data blocks and log blocks. If blocks may fail, there is one less.
    fn may_open(&self, cx: &mut (impl Context + ?Sized), set: u32) -> bool {
        let free = self.free(cx.ftl(), set);
        if !cx.is_durable() {
            return free > self.spare;
        }
        let given_up = &self.sets[set as usize].given_up;
        let blocks = &cx.ftl().blocks;
        let awaiting = given_up.iter().filter(|(block, _)| !blocks.block(*block).failed).count() as u32;
        free > 1 + self.spare && awaiting + self.spare + self.count_bad(cx.ftl(), set) <= self.beyond
    }

    /// Returns the number of bad blocks of a set, or 0 if blocks cannot fail.
    fn count_bad(&self, ftl: &Ftl, set: u32) -> u32 {
        if self.spare == 0 {
            return 0;
        }
        let planes = self.layout.planes_of(set);
        planes.map(|plane| ftl.blocks.bad(PlaneId(plane))).sum()
    }

    /// Takes a free block of a set for a slot, which becomes that of a logical block. The caller has made sure that
    /// there is a free block.
    fn open(&mut self, ftl: &mut Ftl, slot: u32, number: u32) {
        self.take_block(ftl, slot);
        let used = self.clock;
        let slot = self.slot(slot);
        (slot.number, slot.used) = (number, used);
    }

    /// Takes a free block of a set for a slot.
    fn take_block(&mut self, ftl: &mut Ftl, slot: u32) {
        let set = self.set_of_slot(slot);
        let found = self.plane_to_open(ftl, set);
        let (plane, turn) = found.unwrap_or_else(|| unreachable!("set {set} of planes has a free block"));
        let block = ftl.blocks.open_logical(plane);
        self.set(set).turn = turn;
        self.note_free(ftl, set, -1);
        self.slot_of[block.index()] = slot;
        self.slot(slot).block = block.0;
    }

    /// Returns the number of free blocks of a set, without those for units of the device itself.
    fn free(&self, ftl: &Ftl, set: u32) -> u32 {
        if self.spare > 0 { self.count_free(ftl, set) } else { self.sets[set as usize].free }
    }

    /// Notes a change of the number of free blocks of a set.
    fn note_free(&mut self, ftl: &Ftl, set: u32, change: i32) {
        self.set(set).free = self.free(ftl, set).wrapping_add_signed(if self.spare > 0 { 0 } else { change });
    }

    /// Counts the free blocks of a set, without those for units of the device itself.
    fn count_free(&self, ftl: &Ftl, set: u32) -> u32 {
        self.layout.planes_of(set).map(|plane| self.own.others(ftl, PlaneId(plane))).sum()
    }

    /// Returns an empty slot of a stream.
    fn empty_slot(&self, set: u32, stream: usize) -> Option<u32> {
        self.slots_of(set, stream).find(|&slot| self.slots[slot as usize].is_empty())
    }

    /// Empties a slot, whose block is now used in another way.
    fn leave(&mut self, slot: u32) {
        let Slot { block, number, busy, .. } = self.slots[slot as usize];
        debug_assert!(!busy, "a program of block {block} is in flight");
        self.slot_of[block as usize] = NOWHERE;
        if number != NOWHERE && self.log_of[number as usize] == slot {
            self.log_of[number as usize] = NOWHERE;
        }
        self.slot(slot).clear();
    }

    /// Returns the log block of consecutive units that ends before a unit: of several, the one that was written last.
    fn log_of_run(&self, lpn: Lpn) -> Option<u32> {
        let slots = self.slots_of(0, self.runs?).filter(|&slot| {
            let slot = &self.slots[slot as usize];
            !slot.is_empty() && !slot.closed && slot.expected == lpn.0
        });
        slots.max_by_key(|&slot| self.slots[slot as usize].used)
    }

    /// Opens a log block for the writes of the logical block of a unit, or for consecutive units from this one on.
    fn open_log(&mut self, ftl: &mut Ftl, slot: u32, lpn: Lpn) {
        if self.runs.is_none() {
            let (number, _) = self.layout.split(lpn);
            self.open(ftl, slot, number);
            self.log_of[number as usize] = slot;
            return;
        }
        while let Some(full) = self.log_of_run(lpn) {
            self.slot(full).expected = NOWHERE;
        }
        self.open(ftl, slot, NOWHERE);
        let slot = self.slot(slot);
        (slot.expected, slot.ordered) = (lpn.0, false);
    }

    /// Notes that a log block has taken a unit.
    fn note_taken(&mut self, slot: u32, lpn: Lpn) {
        let runs = self.runs.is_some() && !self.is_data(slot);
        let ((_, offset), clock) = (self.layout.split(lpn), self.clock);
        let slot = self.slot(slot);
        (slot.expected, slot.used) = (if runs { lpn.0 } else { offset } + 1, clock);
    }

    /// Returns the stream that a write of the host goes to. `follows` is true if the write before it in its log block
    /// waits for this log block.
    fn classify(&mut self, lpn: Lpn, units: u32, follows: bool) -> usize {
        let (number, offset) = self.layout.split(lpn);
        let continues = follows
            || match self.runs {
                Some(_) => self.log_of_run(lpn).is_some(),
                None => {
                    let slot = self.slots.get(self.log_of[number as usize] as usize);
                    slot.is_some_and(|slot| !slot.closed && slot.expected == offset)
                }
            };
        let clock = self.clock;
        self.clock += 1;
        self.trims.remove(lpn);
        self.rules.stream_of(Incoming { lpn, offset, units, continues, clock })
    }
}

impl<R: Rules, C: Context + ?Sized> Mapping<C> for LogBlocks<R> {
    has_whole_map!();

    fn changed(&mut self, cx: &mut C, lpn: Lpn, change: Change) {
        if change == Change::Trimmed {
            self.trims.trimmed(lpn);
            let (number, _) = self.layout.split(lpn);
            if let Some(slot) = self.data_slot(number) {
                cx.tasks().push(call(step::SLOT, slot));
            }
            if self.log_of[number as usize] != NOWHERE {
                cx.tasks().push(call(step::SLOT, self.log_of[number as usize]));
            }
            cx.tasks().push(call(step::SET, self.layout.set_of(number)));
        }
    }

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        if self.own.has(cx.ops()[id].lpn) { self.own.place(cx, id) } else { self.place_write(cx, id) }
    }

    fn target(&self, ftl: &Ftl, of: Program) -> Target {
        let place = match of {
            Program::Write(lpn) if self.own.has(lpn) => self.own.target(ftl).into(),
            Program::Write(_) => Place::Unknown,
            Program::Copies(own_blocks::NUMBER) => self.own.target(ftl).into(),
            Program::Copies(slot) => {
                let Slot { replaced, next, .. } = &self.slots[slot as usize];
                let next = if replaced.is_active() { replaced.next } else { *next };
                Place::At(Ppn(self.first_unit(ftl, slot) + next))
            }
        };
        Target { plane: None, place }
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        let program = cx.ops()[id];
        match program.kind {
            Kind::Write if self.own.has(program.lpn) => self.own.bind_write(cx, id),
            Kind::Write => Some(self.bind_with_others(cx, id)),
            _ if program.logical_block() == own_blocks::NUMBER => self.own.bind_copies(cx, id),
            _ => self.bind_copies(cx, id),
        }
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        match end {
            Ended::CopyRead(own_blocks::NUMBER) => self.own.copy_read(cx),
            Ended::CopyRead(slot) => {
                if self.slot(slot).gather.read_ended() {
                    self.queue_program(cx, slot);
                }
            }
            Ended::Writes(lpn, start) if self.own.has(lpn) => self.own.program_ended(cx, start),
            Ended::Writes(_, start) => {
                let block = cx.ftl().blocks.block_of(start);
                self.program_ended(cx, self.slot_of[block.index()], start);
            }
            Ended::Copies(own_blocks::NUMBER, start) => self.own.program_ended(cx, start),
            Ended::Copies(slot, start) => self.program_ended(cx, slot, start),
            Ended::ProgramFailed(writes, number, start) => {
                if number == Some(own_blocks::NUMBER) || writes.iter().any(|&id| self.own.has(cx.ops()[id].lpn)) {
                    return self.own.replace(cx, writes);
                }
                return self.replace_block(cx, writes, start);
            }
            Ended::Erase(plane) => self.erase_ended(cx, plane),
            Ended::EraseFailed(plane) => {
                if !self.own.erase_failed(cx, plane) {
                    self.serve(cx, self.layout.set_of_plane(plane));
                }
            }
            Ended::MapRead(_) | Ended::MapWrite(_) | Ended::MapWriteFailed(_) => {
                unreachable!("the whole map is in memory")
            }
        }
        true
    }

    fn step(&mut self, cx: &mut C, step: Step) {
        match step {
            Step::ReadOnly => self.refuse_writes(cx),
            Step::Call(_) if cx.ftl().is_read_only() => {}
            Step::Call(Call { step: step::SLOT, number, .. }) => self.step_slot(cx, number),
            Step::Call(Call { step: step::SET, number, .. }) => self.serve(cx, number),
            Step::Call(_) => self.place_again(cx),
            Step::MapProgrammed(..) | Step::Collected(_) | Step::Seal => {}
        }
    }

    fn recover(&mut self, recovery: &mut dyn Recovering) -> Result<(), String> {
        let found = keep_found(recovery, |ftl, found| self.merge_surplus(ftl, found))?;
        self.adopt_blocks(recovery.ftl(), &found)
    }

    fn blocks(&self, _: &Ftl, found: &mut dyn FnMut(KeptBlock)) {
        let units = self.layout.units();
        let filled = |block| KeptBlock { block, units, is_filled: true, kind: 0 };
        self.own.blocks(found);
        self.unplaced.iter().for_each(|&block| found(filled(block)));
        for (number, block) in (0..).zip(self.data.iter().copied().map(BlockId)) {
            if block.0 != NOWHERE && self.data_slot(number).is_none() {
                let units_here = self.filled(number);
                found(KeptBlock { units: units_here, is_filled: units_here >= units, ..filled(block) });
            }
        }
        for (slot, index) in self.slots.iter().zip(0..).filter(|(slot, _)| !slot.is_empty()) {
            let stream = self.stream_of_slot(index);
            let kind = match stream.cmp(&self.streams.len()) {
                Ordering::Less => stream as u8 + 2,
                Ordering::Equal => 1,
                Ordering::Greater => 0,
            };
            let is_filled = slot.next >= units && !slot.busy;
            found(KeptBlock { block: BlockId(slot.block), units: slot.next, is_filled, kind });
        }
    }

    fn report(&self, ftl: &Ftl) -> SchemeReport {
        let count = |filter: fn(&Slot) -> bool| self.slots.iter().filter(|slot| filter(slot)).count() as u32;
        let sets = |filter: fn(&Set) -> bool| self.sets.iter().filter(|set| filter(set)).count();
        let (waiting, merging) = (sets(|set| !set.waiting.is_empty()), sets(|set| set.merging.is_active()));
        SchemeReport {
            unwritten: self.unwritten,
            listed_trims: self.trims.length,
            dropped: self.dropped,
            replacing: count(|slot| slot.replaced.is_active()) + u32::from(self.own.is_replacing()),
            merging: self.merges_in_progress(ftl),
            loading: 0,
            outstanding: format!(
                "{} log blocks are busy, {merging} sets of planes merge, writes wait for log blocks in {waiting}",
                count(|slot| slot.busy)
            ),
        }
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.save_blocks(out)
    }

    fn load(&mut self, ftl: &mut Ftl, input: &mut Reader, written: &mut [u16]) -> Result<(), StateError> {
        self.load_blocks(ftl, input, written)
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        self.recount_blocks(ftl)
    }
}
