//! First writes: a write goes to its offset in the data block while the page there is free (`first_writes`).
//!
//! Pages of a block are programmed in order. So a page is free if neither it nor a later page has been programmed. A
//! data block that takes writes has a slot of its own, in addition to those of the sets, until no write waits for it.
//! The logical block is not merged during that time, and its data block takes no writes during a merge.

use super::slots::{NOWHERE, Slot};
use super::{LogBlocks, Rules, call, step};
use crate::ftl::Ftl;
use crate::ftl::mapping::Context;
use crate::sim::id::{Lpn, TransactionId};

impl<R: Rules> LogBlocks<R> {
    /// Returns the number of slots of log blocks and merges. Those of data blocks follow.
    pub(super) fn fixed_slots(&self) -> u32 {
        self.sets.len() as u32 * self.slots_per_set
    }

    /// Returns `true` if a slot is that of a data block.
    pub(super) fn is_data(&self, slot: u32) -> bool {
        slot >= self.fixed_slots()
    }

    /// Returns the slot of the data block of a logical block, while it takes writes.
    pub(super) fn data_slot(&self, number: u32) -> Option<u32> {
        let slot = self.in_place.as_ref()?.slot_of[number as usize];
        (slot != NOWHERE).then_some(slot)
    }

    /// Returns the offset after the last page of a data block that was programmed or skipped.
    pub(super) fn filled(&self, number: u32) -> u32 {
        match (&self.in_place, self.data_slot(number)) {
            (None, _) => self.layout.units(),
            (Some(_), Some(slot)) => self.slots[slot as usize].next,
            (Some(in_place), None) => in_place.filled[number as usize],
        }
    }

    /// Sets the offset after the last page of a data block that was programmed or skipped.
    pub(super) fn set_filled(&mut self, number: u32, filled: u32) {
        if let Some(in_place) = &mut self.in_place {
            in_place.filled[number as usize] = filled;
        }
    }

    /// Returns the slot of the data block that takes a write of a unit, if its page there is free. Opens a data block
    /// if the logical block has none and a free block may be taken.
    pub(super) fn data_for(&mut self, cx: &mut (impl Context + ?Sized), lpn: Lpn) -> Option<u32> {
        self.in_place.as_ref()?;
        let (number, offset) = self.layout.split(lpn);
        let page = offset / self.layout.group() * self.layout.group();
        if let Some(slot) = self.data_slot(number) {
            let Slot { expected, next, .. } = self.slots[slot as usize];
            return (offset >= expected && page >= next).then_some(slot);
        }
        let is_open = self.data[number as usize] != NOWHERE;
        let is_free = if is_open { page >= self.filled(number) } else { self.may_open(cx, self.layout.set_of(number)) };
        (is_free && !self.is_merging(number)).then(|| self.attach(cx.ftl(), number))
    }

    /// Returns `true` if a merge builds the next data block of a logical block.
    fn is_merging(&self, number: u32) -> bool {
        let targets = self.slots_of(self.layout.set_of(number), self.streams.len());
        let own = self.log_of[number as usize];
        let merges =
            |slot: u32| self.slots.get(slot as usize).is_some_and(|slot| slot.merging && slot.number == number);
        merges(own) || targets.into_iter().any(merges)
    }

    /// Gives a slot to the data block of a logical block, and a free block if it has none.
    fn attach(&mut self, ftl: &mut Ftl, number: u32) -> u32 {
        let next = if self.data[number as usize] == NOWHERE { 0 } else { self.filled(number) };
        let all = self.slots.len() as u32;
        let Some(in_place) = &mut self.in_place else { return NOWHERE };
        let slot = in_place.unused.pop().unwrap_or(all);
        in_place.slot_of[number as usize] = slot;
        if slot == all {
            self.slots.push(Slot::default());
        }
        let block = self.data[number as usize];
        *self.slot(slot) = Slot { block, number, next, expected: next, ..Slot::default() };
        if block == NOWHERE {
            self.take_block(ftl, slot);
            self.data[number as usize] = self.slots[slot as usize].block;
        } else {
            self.slot_of[block as usize] = slot;
        }
        slot
    }

    /// Takes the slot from a data block that no write waits for. Continues a merge, or a write that waits for one.
    pub(super) fn detach(&mut self, cx: &mut (impl Context + ?Sized), slot: u32) {
        let Slot { number, next, .. } = self.slots[slot as usize];
        let set = self.layout.set_of(number);
        self.leave(slot);
        self.set_filled(number, next);
        if let Some(in_place) = &mut self.in_place {
            in_place.slot_of[number as usize] = NOWHERE;
            in_place.unused.push(slot);
        }
        let set_state = &self.sets[set as usize];
        if set_state.merging.is_active() || !set_state.waiting.is_empty() {
            cx.tasks().push(call(step::SET, set));
        }
    }

    /// Places the first write that waits for a data block again, because its page has been programmed without it.
    pub(super) fn leave_to_log(&mut self, cx: &mut (impl Context + ?Sized), slot: u32) {
        let id: TransactionId = self.slot(slot).pending.pop(cx.ops());
        self.again.push(id);
        cx.tasks().push(call(step::AGAIN, 0));
        cx.tasks().push(call(step::SLOT, slot));
    }

    /// Returns the offset up to which a merge fills the block of a slot: that of the last page with a unit to copy, or
    /// all of it if data blocks take no writes.
    pub(super) fn end_of_copies(&self, cx: &mut (impl Context + ?Sized), slot: u32) -> u32 {
        let units = self.layout.units();
        if self.in_place.is_none() {
            return units;
        }
        let Slot { number, next, .. } = self.slots[slot as usize];
        let last = (next..units).rev().find(|&offset| self.source_of(cx, slot, number, offset).is_some());
        last.map_or(next, |offset| (offset + 1).next_multiple_of(self.layout.group()))
    }
}
