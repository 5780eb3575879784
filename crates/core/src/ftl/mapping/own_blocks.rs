//! Blocks for the units of the device itself (trim journal, checkpoint), in mapping schemes that merge blocks.
//!
//! These units are mapped by page, in a few blocks that no other unit uses. So no write of the journal ever waits for a
//! merge, which may wait for the journal. When the last free block of them is opened, the block with the fewest valid
//! units is first copied into it. There are twice as many blocks as the units fill, so that leaves room.
//!
//! If a program fails, a free block takes the place of its block, and gets the valid units of the failed block first.

use super::replacement::give_up;
use super::{Bound, Context, KeptBlock};
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::mapping::PADDING;
use crate::ftl::mover::Gather;
use crate::ftl::space::{BlockState, Role};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::state::{Reader, StateError, Writer};
use crate::work::{Class, Fifo, Kind, Purpose, Transaction};

/// No block.
const NOWHERE: u32 = u32::MAX;

/// Number of the copies of these blocks among those of logical blocks.
pub const NUMBER: u32 = (1 << 31) - 1;

/// Right to a block of a plane.
#[derive(Clone, Copy, Debug)]
struct Slot {
    plane: PlaneId,
    /// The block, or `NOWHERE`.
    block: u32,
}

/// Blocks for the units of the device itself.
#[derive(Clone, Debug)]
pub struct OwnBlocks {
    /// First unit, and first unit after the journal.
    first: u32,
    checkpoint: u32,
    /// Units of a block, and of a program.
    units: u32,
    group: u32,
    slots: Vec<Slot>,
    /// Slot of the block that is being filled, and its next offset.
    open: Option<usize>,
    next: u32,
    /// Slot of the block whose units are copied.
    victim: Option<usize>,
    /// Blocks in which a program has failed. Their units are copied before those of the victim.
    failed: Vec<BlockId>,
    /// True if blocks may fail.
    may_fail: bool,
    /// Number of planes whose blocks the scheme shares. A block of any of them can replace a failed one.
    planes: u32,
    /// Blocks of a plane.
    blocks: u32,
    /// True while a program, or a read for it, is in flight.
    busy: bool,
    pending: Fifo,
    gather: Gather,
}

impl OwnBlocks {
    /// Creates the blocks of an empty device.
    pub fn new(device: &DeviceConfig) -> OwnBlocks {
        let slot = |number| Slot { plane: PlaneId(number % device.total_planes()), block: NOWHERE };
        OwnBlocks {
            first: device.logical_units() as u32,
            checkpoint: (device.logical_units() + device.journal_units()) as u32,
            units: device.data_units_per_block(),
            group: device.units_per_program(),
            slots: (0..device.own_blocks(device.total_planes())).map(slot).collect(),
            open: None,
            next: 0,
            victim: None,
            failed: Vec::new(),
            may_fail: device.faults.is_some(),
            planes: device.blocks_of_set().map_or(1, |(planes, _)| planes),
            blocks: device.geometry.blocks,
            busy: false,
            pending: Fifo::default(),
            gather: Gather::default(),
        }
    }

    /// Returns `true` if a unit belongs to the device itself.
    #[inline]
    pub fn has(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.first
    }

    /// Returns `true` while the units of a failed block are copied.
    pub fn is_replacing(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Returns `true` if the newest versions in a block belong to the device itself. No block has others, too.
    pub fn holds_newest(&self, ftl: &Ftl, block: BlockId) -> bool {
        let first = ftl.blocks.first_unit(block).0;
        let newest = (first..first + self.units).find_map(|ppn| ftl.newest_at(Ppn(ppn)));
        newest.is_some_and(|lpn| self.has(lpn))
    }

    /// Returns the number of free blocks of a plane that are kept for these units.
    pub fn reserved(&self, plane: PlaneId) -> u32 {
        self.slots.iter().filter(|slot| slot.plane == plane && slot.block == NOWHERE).count() as u32
    }

    /// Returns the number of free blocks of a plane that the scheme may take.
    pub fn others(&self, ftl: &Ftl, plane: PlaneId) -> u32 {
        ftl.blocks.free_blocks(plane, Role::Data).saturating_sub(self.reserved(plane))
    }

    /// Returns the address of the next program.
    pub fn target(&self, ftl: &Ftl) -> Option<Ppn> {
        let block = self.slots[self.open?].block;
        Some(Ppn(ftl.blocks.first_unit(BlockId(block)).0 + self.next))
    }

    /// Returns the plane of the block that is being filled.
    fn plane(&self) -> PlaneId {
        self.open.map_or(PlaneId(0), |open| self.slots[open].plane)
    }

    /// Calls `found` for each block.
    pub fn blocks(&self, found: &mut dyn FnMut(KeptBlock)) {
        for (index, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.block != NOWHERE) {
            let is_open = self.open == Some(index);
            let units = if is_open { self.next } else { self.units };
            let is_filled = !is_open || (units >= self.units && !self.busy);
            found(KeptBlock { block: BlockId(slot.block), units, is_filled, kind: 0 });
        }
        let kept = |block| KeptBlock { block, units: self.units, is_filled: true, kind: 0 };
        self.failed.iter().for_each(|&block| found(kept(block)));
    }

    /// Has a write of a unit of the device itself wait for its address.
    pub fn place(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) {
        self.pending.push(cx.ops(), id);
        self.step(cx);
    }

    /// Takes the next step: towards the copies of a victim, or towards the next write.
    fn step(&mut self, cx: &mut (impl Context + ?Sized)) {
        if self.busy || cx.ftl().is_read_only() {
            return;
        }
        loop {
            self.give_up_copied(cx);
            let is_done = self.source().is_none() && self.pending.is_empty();
            if is_done || (!self.has_room() && !self.open_next(cx)) {
                return;
            }
            let Some(source) = self.source() else { break };
            if self.copy_next(cx, source) {
                return;
            }
        }
        let id = self.pending.pop(cx.ops());
        self.busy = true;
        cx.ops()[id].plane = self.plane();
        cx.enqueue(id);
    }

    /// Returns the block whose units are copied next.
    fn source(&self) -> Option<BlockId> {
        let victim = || Some(BlockId(self.slots[self.victim?].block));
        self.failed.first().copied().or_else(victim)
    }

    /// Gives up the blocks whose units have been copied. A failed one, whose summary could not be programmed, leaves
    /// its slot at once.
    fn give_up_copied(&mut self, cx: &mut (impl Context + ?Sized)) {
        while let Some(block) = self.source().filter(|&block| cx.ftl().blocks.block(block).valid == 0) {
            if !self.failed.is_empty() {
                self.failed.remove(0);
            } else if let Some(victim) = self.victim.take().filter(|_| cx.ftl().blocks.block(block).failed) {
                self.lose(cx.ftl(), victim);
            }
            give_up(cx, block, Purpose::OfClass);
        }
    }

    /// Empties a slot whose block has failed.
    fn lose(&mut self, ftl: &Ftl, slot: usize) {
        self.slots[slot].block = NOWHERE;
        self.settle(ftl, slot);
    }

    /// Moves an empty slot to another plane of its set, if its own plane has no free block for it.
    fn settle(&mut self, ftl: &Ftl, slot: usize) {
        let plane = self.slots[slot].plane;
        if ftl.blocks.free_blocks(plane, Role::Data) < self.reserved(plane)
            && let Some(other) = self.planes_of_set(plane).find(|&other| self.others(ftl, other) > 0)
        {
            self.slots[slot].plane = other;
        }
    }

    /// Returns the planes whose blocks the scheme shares with a plane.
    fn planes_of_set(&self, plane: PlaneId) -> impl Iterator<Item = PlaneId> + use<> {
        let first = plane.0 / self.planes * self.planes;
        (first..first + self.planes).map(PlaneId)
    }

    fn has_room(&self) -> bool {
        self.open.is_some() && self.next < self.units
    }

    /// Opens the next block. Chooses a victim if it is the last one that is free. Returns `false` if an erase has to
    /// end first.
    fn open_next(&mut self, cx: &mut (impl Context + ?Sized)) -> bool {
        let is_free = |slot: &Slot| slot.block == NOWHERE;
        let free = self.slots.iter().filter(|slot| is_free(slot)).count();
        let ftl = cx.ftl();
        let valid = |slot: &Slot| ftl.blocks.block(BlockId(slot.block)).valid;
        let is_used =
            |slot: &Slot| !is_free(slot) && ftl.blocks.block(BlockId(slot.block)).state == BlockState::Logical;
        let used = (0..self.slots.len()).filter(|&index| is_used(&self.slots[index]));
        let is_erasing = used.clone().count() + free < self.slots.len();
        let has_block = |slot: &Slot| is_free(slot) && ftl.blocks.free_blocks(slot.plane, Role::Data) > 0;
        let Some(next) = self.slots.iter().position(has_block).filter(|_| free > 1 || !is_erasing) else {
            return false;
        };
        if free == 1 && self.victim.is_none() {
            self.victim = used.min_by_key(|&index| valid(&self.slots[index]));
        }
        self.slots[next].block = ftl.blocks.open_logical(self.slots[next].plane).0;
        (self.open, self.next) = (Some(next), 0);
        true
    }

    /// Queues the reads of the next units of a victim. Returns `false` if it has none.
    fn copy_next(&mut self, cx: &mut (impl Context + ?Sized), block: BlockId) -> bool {
        let first = cx.ftl().blocks.first_unit(block).0;
        let mut left = self.group;
        for ppn in (first..first + self.units).map(Ppn) {
            if left > 0 && cx.ftl().blocks.is_valid(ppn) {
                self.gather.add(cx, (NUMBER, Purpose::Merge), ppn);
                left -= 1;
            }
        }
        self.busy = left < self.group;
        if self.busy {
            self.gather.is_ready(cx);
        }
        self.busy
    }

    /// Ends a read of units that are to be copied.
    pub fn copy_read(&mut self, cx: &mut (impl Context + ?Sized)) {
        if self.gather.read_ended() {
            if cx.ftl().is_read_only() {
                return self.gather.forget(cx);
            }
            cx.queue(Transaction::copying(Kind::MergeWrite, self.plane(), NUMBER, Purpose::Merge));
        }
    }

    /// Returns the cause of the program of a unit.
    fn cause_of(&self, lpn: Lpn) -> ProgramCause {
        if lpn.0 < self.checkpoint { ProgramCause::Journal } else { ProgramCause::Checkpoint }
    }

    /// Binds a write, with the waiting parts of the checkpoint that fill its program.
    pub fn bind_write(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) -> Option<Bound> {
        let start = self.begin(cx)?;
        let cause = self.cause_of(cx.ops()[id].lpn);
        let mut last = id;
        let mut count = 1;
        cx.bind(id, start);
        while count < self.group && cause == ProgramCause::Checkpoint && !self.pending.is_empty() {
            let next = self.pending.first();
            if self.cause_of(cx.ops()[next].lpn) != cause {
                break;
            }
            self.pending.pop(cx.ops());
            cx.ops()[next].plane = self.plane();
            cx.bind(next, Ppn(start.0 + count));
            cx.ops()[last].next = next;
            (last, count) = (next, count + 1);
        }
        cx.ops()[last].next = TransactionId::NONE;
        cx.ftl().note_program(cause, count);
        Some(Bound { class: Class::HostProgram, plane: self.plane(), ppn: start })
    }

    /// Binds a program of copies.
    pub fn bind_copies(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) -> Option<Bound> {
        if cx.ftl().is_read_only() {
            self.gather.forget(cx);
            cx.ops().remove(id);
            return None;
        }
        let start = self.begin(cx)?;
        self.gather.bind_from(cx, start);
        cx.ftl().note_program(ProgramCause::Merge, self.gather.copies().len() as u32);
        Some(Bound { class: Class::Gc, plane: self.plane(), ppn: start })
    }

    /// Takes the next program.
    fn begin(&mut self, cx: &mut (impl Context + ?Sized)) -> Option<Ppn> {
        let start = self.target(cx.ftl())?;
        (start.0..start.0 + self.group).for_each(|ppn| cx.ftl().map.set_owner(Ppn(ppn), PADDING));
        self.next += self.group;
        Some(start)
    }

    /// Ends a program.
    pub fn program_ended(&mut self, cx: &mut (impl Context + ?Sized), start: Ppn) {
        self.gather.end(cx);
        self.busy = false;
        cx.program_ended(start);
        self.step(cx);
    }

    /// Has a free block take the place of the block of a failed program. The writes of the program wait for their
    /// addresses again, before all others. Returns `false` if the device is read-only, or if no block is free, or on a
    /// durable device only one.
    pub fn replace(&mut self, cx: &mut (impl Context + ?Sized), writes: &[TransactionId]) -> bool {
        self.gather.forget(cx);
        let mut again = Fifo::default();
        writes.iter().for_each(|&id| again.push(cx.ops(), id));
        self.pending.prepend(cx.ops(), again);
        self.busy = false;
        let home = self.plane();
        let free: u32 = self.planes_of_set(home).map(|plane| self.others(cx.ftl(), plane)).sum();
        let giving = self.planes_of_set(home).filter(|&plane| self.others(cx.ftl(), plane) > 0);
        let (Some(open), Some(plane)) = (self.open, giving.min_by_key(|&plane| (plane != home, plane))) else {
            return false;
        };
        if cx.ftl().is_read_only() || free <= u32::from(cx.is_durable()) {
            return false;
        }
        self.failed.push(BlockId(self.slots[open].block));
        self.slots[open] = Slot { plane, block: cx.ftl().blocks.open_logical(plane).0 };
        self.next = 0;
        self.step(cx);
        true
    }

    /// Ends all writes that have no address, because the device is read-only.
    pub fn refuse_writes(&mut self, cx: &mut (impl Context + ?Sized)) {
        while !self.pending.is_empty() {
            let id = self.pending.pop(cx.ops());
            cx.refuse_write(id);
        }
    }

    /// Notes that a block of a plane has been erased. Returns `true` if it was one of these blocks.
    pub fn erased(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) -> bool {
        let ftl = cx.ftl();
        let is_erased = |slot: &Slot| {
            slot.plane == plane
                && slot.block != NOWHERE
                && ftl.blocks.block(BlockId(slot.block)).state == BlockState::Free
        };
        let Some(slot) = self.slots.iter().position(is_erased) else { return false };
        self.slots[slot].block = NOWHERE;
        self.step(cx);
        true
    }

    /// Continues with writes that may have waited for a free block, because failed blocks have left none for a slot.
    pub fn wake(&mut self, cx: &mut (impl Context + ?Sized)) {
        if self.may_fail {
            self.step(cx);
        }
    }

    /// Notes that the erase of a block of a plane has failed. Returns `true` if it was one of these blocks.
    pub fn erase_failed(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) -> bool {
        let ftl = cx.ftl();
        let has_failed = |slot: &Slot| {
            slot.plane == plane
                && slot.block != NOWHERE
                && ftl.blocks.block(BlockId(slot.block)).state == BlockState::Bad
        };
        let Some(slot) = self.slots.iter().position(has_failed) else { return false };
        self.lose(ftl, slot);
        self.step(cx);
        true
    }

    /// Takes over blocks that a recovery has found. None of them is programmed again, and failed ones need no slot.
    ///
    /// # Errors
    ///
    /// A description of a block that has no place.
    pub fn adopt(&mut self, ftl: &Ftl, blocks: Vec<BlockId>) -> Result<(), String> {
        for block in blocks {
            if ftl.blocks.block(block).failed {
                self.failed.push(block);
                continue;
            }
            let plane = ftl.blocks.plane_of(block);
            let planes = self.planes;
            let of_set = |slot: &&mut Slot| slot.plane.0 / planes == plane.0 / planes && slot.block == NOWHERE;
            let slot = self.slots.iter_mut().filter(of_set).min_by_key(|slot| slot.plane != plane);
            let slot =
                slot.ok_or_else(|| format!("block {} is one too many for the journal and the checkpoint", block.0));
            *slot? = Slot { plane, block: block.0 };
        }
        for slot in 0..self.slots.len() {
            if self.slots[slot].block == NOWHERE {
                self.settle(ftl, slot);
            }
        }
        Ok(())
    }

    /// Checks that the valid units of these blocks belong to the device itself.
    pub fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        let slots = self.slots.iter().filter(|slot| slot.block != NOWHERE).map(|slot| BlockId(slot.block));
        for block in slots.chain(self.failed.iter().copied()) {
            let first = ftl.blocks.first_unit(block).0;
            let valid = (first..first + self.units).map(Ppn).filter(|&ppn| ftl.blocks.is_valid(ppn));
            if let Some(lpn) = valid.map(|ppn| Lpn(ftl.map.owner(ppn))).find(|&lpn| !self.has(lpn)) {
                return Err(format!("unit {} is in block {} of the journal", lpn.0, block.0));
            }
        }
        Ok(())
    }

    /// Writes the blocks to a saved state. Nothing is in progress.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        if self.may_fail {
            self.slots.iter().try_for_each(|slot| out.u32(slot.plane.0))?;
            out.u32(self.failed.len() as u32)?;
            self.failed.iter().try_for_each(|block| out.u32(block.0))?;
        }
        self.slots.iter().try_for_each(|slot| out.u32(slot.block))?;
        out.u32(self.open.map_or(NOWHERE, |open| open as u32))?;
        out.u32(self.next)
    }

    /// Reads what [`OwnBlocks::save`] wrote. `take` returns `true` for a block of this plane that is not taken yet.
    pub fn load(
        &mut self,
        input: &mut Reader,
        mut take: impl FnMut(BlockId, PlaneId, u32) -> bool,
    ) -> Result<(), StateError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        if self.may_fail {
            self.load_failed(input, &mut take)?;
        }
        for slot in &mut self.slots {
            slot.block = input.u32()?;
        }
        let open = input.u32()?;
        self.next = input.below(self.units + 1, "offset")?;
        self.open = (open != NOWHERE).then_some(open as usize);
        let is_open = self.open.is_none_or(|open| self.slots.get(open).is_some_and(|slot| slot.block != NOWHERE));
        if !is_open || !self.next.is_multiple_of(self.group) {
            return Err(input.damaged("the open block of the journal"));
        }
        for (index, &Slot { plane, block }) in self.slots.iter().enumerate() {
            let written = if self.open == Some(index) { self.next } else { self.units };
            if block != NOWHERE && !take(BlockId(block), plane, written) {
                return Err(input.damaged(format!("block {block} of the journal")));
            }
        }
        Ok(())
    }

    /// Reads the planes of the slots, and the failed blocks.
    fn load_failed(
        &mut self,
        input: &mut Reader,
        take: &mut impl FnMut(BlockId, PlaneId, u32) -> bool,
    ) -> Result<(), StateError> {
        let planes = self.planes;
        for slot in &mut self.slots {
            let plane = PlaneId(input.u32()?);
            if plane.0 / planes != slot.plane.0 / planes {
                return Err(input.damaged("a plane of the journal"));
            }
            slot.plane = plane;
        }
        for _ in 0..input.below(self.slots.len() as u32 + 1, "failed blocks")? {
            let block = BlockId(input.u32()?);
            if !take(block, PlaneId(block.0 / self.blocks), self.units) {
                return Err(input.damaged(format!("block {} of the journal", block.0)));
            }
            self.failed.push(block);
        }
        Ok(())
    }
}
