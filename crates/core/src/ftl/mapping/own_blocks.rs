//! Blocks for the units of the device itself (trim journal, checkpoint), in mapping schemes that merge blocks.
//!
//! These units are mapped by page, in a few blocks that no other unit uses. So no write of the journal ever waits for a
//! merge, which may wait for the journal. When the last free block of them is opened, the block with the fewest valid
//! units is first copied into it. There are twice as many blocks as the units fill, so that leaves room.

use super::replacement::give_up;
use super::{Bound, Context};
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::mapping::PADDING;
use crate::ftl::mover::Gather;
use crate::ftl::space::{BlockState, Role};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::state::{Reader, StateError, Writer};
use crate::work::{Class, Fifo, Kind, Transaction};

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
    /// True while a program, or a read for it, is in flight.
    busy: bool,
    pending: Fifo,
    gather: Gather,
    /// Reused memory for the units of a program.
    lpns: Vec<u32>,
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
            busy: false,
            pending: Fifo::default(),
            gather: Gather::default(),
            lpns: Vec::new(),
        }
    }

    /// Returns `true` if a unit belongs to the device itself.
    #[inline]
    pub fn has(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.first
    }

    /// Returns `true` if a block holds units of the device itself.
    #[inline]
    pub fn holds(&self, block: BlockId) -> bool {
        self.slots.iter().any(|slot| slot.block == block.0)
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

    /// Returns the address from which the unit at `ppn` is copied, if it is a copy.
    pub fn source_of(&self, ppn: Ppn) -> Option<Ppn> {
        self.gather.source_of(ppn)
    }

    /// Calls `found` for each block, with the number of its units that have been programmed.
    pub fn blocks(&self, found: &mut dyn FnMut(BlockId, u32)) {
        for (index, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.block != NOWHERE) {
            found(BlockId(slot.block), if self.open == Some(index) { self.next } else { self.units });
        }
    }

    /// Returns `true` if no more units of a block are programmed.
    pub fn is_filled(&self, block: BlockId) -> bool {
        let is_open = self.open.is_some_and(|open| self.slots[open].block == block.0);
        !is_open || (self.next >= self.units && !self.busy)
    }

    /// Has a write of a unit of the device itself wait for its address.
    pub fn place(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) {
        self.pending.push(cx.ops(), id);
        self.go_on(cx);
    }

    /// Takes the next step: towards the copies of a victim, or towards the next write.
    fn go_on(&mut self, cx: &mut (impl Context + ?Sized)) {
        if self.busy {
            return;
        }
        if let Some(victim) = self.victim {
            let block = BlockId(self.slots[victim].block);
            if self.copy_next(cx, block) {
                return;
            }
            self.victim = None;
            give_up(cx, block);
        }
        if self.pending.is_empty() || (!self.has_room() && !self.open_next(cx)) {
            return;
        }
        if self.victim.is_some() {
            return self.go_on(cx);
        }
        let id = self.pending.pop(cx.ops());
        self.busy = true;
        cx.ops()[id].plane = self.plane();
        cx.enqueue(id);
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
        let Some(next) = self.slots.iter().position(is_free).filter(|_| free > 1 || !is_erasing) else { return false };
        self.victim = if free > 1 { None } else { used.min_by_key(|&index| valid(&self.slots[index])) };
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
                self.gather.add(cx, NUMBER, ppn);
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
            let mut merge = Transaction::new(Kind::MergeWrite, Class::Gc).of_logical_block(NUMBER);
            merge.plane = self.plane();
            cx.queue(merge);
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
        let (mut last, mut count) = (id, 1);
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
        let start = self.begin(cx)?;
        let mut lpns = std::mem::take(&mut self.lpns);
        lpns.extend(self.gather.copies().iter().map(|copy| copy.lpn));
        let position = |lpn: Lpn| lpns.iter().position(|&other| other == lpn.0).unwrap_or_default() as u32;
        self.gather.bind(cx, |copy| Ppn(start.0 + position(Lpn(copy.lpn))));
        lpns.clear();
        self.lpns = lpns;
        cx.ftl().note_program(ProgramCause::Merge, self.gather.copies().len() as u32);
        cx.ops()[id].ppn = start;
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
        self.go_on(cx);
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
        self.go_on(cx);
        true
    }

    /// Takes over blocks that a recovery has found. None of them is programmed again.
    ///
    /// # Errors
    ///
    /// A description of a block that has no place.
    pub fn adopt(&mut self, ftl: &Ftl, blocks: Vec<BlockId>) -> Result<(), String> {
        for block in blocks {
            let plane = ftl.blocks.plane_of(block);
            let slot = self.slots.iter_mut().find(|slot| slot.plane == plane && slot.block == NOWHERE);
            slot.ok_or_else(|| format!("block {} is one too many for the journal and the checkpoint", block.0))?
                .block = block.0;
        }
        Ok(())
    }

    /// Writes the blocks to a saved state. Nothing is in progress.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        if self.slots.is_empty() {
            return Ok(());
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
}
