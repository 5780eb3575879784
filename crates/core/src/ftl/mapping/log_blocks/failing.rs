//! Failed programs, and the end of a read-only device.

use super::slots::{NOWHERE, Slot};
use super::{LogBlocks, Rules, call, step};
use crate::ftl::mapping::{Bound, Context, WaitCause};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Ppn, TransactionId};
use crate::work::{Class, Fifo};

impl<R: Rules> LogBlocks<R> {
    /// Has a free block take the place of the block of a failed program. Its writes wait for their addresses again,
    /// before all others. Returns `false` if no block is free or the device is read-only.
    pub(super) fn replace_block(
        &mut self,
        cx: &mut (impl Context + ?Sized),
        writes: &[TransactionId],
        start: Ppn,
    ) -> bool {
        let block = cx.ftl().blocks.block_of(start);
        let index = self.slot_of[block.index()];
        let (set, stream, group) = (self.set_of_slot(index), self.stream_of_slot(index), self.layout.group());
        let slot = &mut self.slots[index as usize];
        slot.gather.forget(cx);
        // Otherwise, the program was one of units that are being moved.
        if !slot.replaced.is_active() {
            slot.next -= group;
        }
        let mut again = Fifo::default();
        let queue = if self.is_shared(stream) { self.queue_of_stream(set, stream) } else { self.queue_of_slot(index) };
        cx.note_cause(self.queue_of_slot(index), WaitCause::Merge);
        for &id in writes {
            again.push(cx.ops(), id);
            cx.note_waiting(id);
            cx.note_queued(id, queue);
        }
        if self.is_shared(stream) {
            self.set(set).shared[stream].pending.prepend(cx.ops(), again)
        } else {
            self.slot(index).pending.prepend(cx.ops(), again)
        }
        // On a durable device, the last one is left for a recovery.
        if cx.ftl().is_read_only() || self.free(cx.ftl(), set) <= u32::from(cx.is_durable()) {
            return false;
        }
        self.slot_of[block.index()] = NOWHERE;
        self.take_block(cx.ftl(), index);
        if self.is_data(index) {
            let Slot { number, block, .. } = self.slots[index as usize];
            self.data[number as usize] = block;
        }
        self.slot(index).replaced.begin(block);
        self.continue_replacing(cx, index);
        // The slot is busy until the units of the failed block have been copied. Meanwhile, pending writes of a shared
        // stream can go to another log block of the set.
        cx.tasks().push(call(step::SET, set));
        true
    }

    /// Takes the next step of moving units to the block of a slot, from the failed blocks that it replaces.
    pub(super) fn continue_replacing(&mut self, cx: &mut (impl Context + ?Sized), index: u32) {
        let purpose = self.purpose_of(index);
        let Self { slots, unwritten, .. } = self;
        let Slot { block, next, replaced, gather, busy, .. } = &mut slots[index as usize];
        *busy = true;
        if replaced.read_next_program(cx, (index, purpose), (BlockId(*block), *next), gather, unwritten) {
            self.rest(cx, index);
        }
    }

    /// Binds the next program of units that are moved from failed blocks.
    pub(super) fn bind_moved(&mut self, cx: &mut (impl Context + ?Sized), index: u32, class: Class) -> Bound {
        let Slot { block, replaced, gather, .. } = &mut self.slots[index as usize];
        let block = BlockId(*block);
        let ppn = replaced.bind(cx, block, gather);
        let copies = gather.copies().len() as u32;
        cx.ftl().note_program(ProgramCause::Merge, copies);
        Bound { class, plane: cx.ftl().blocks.plane_of(block), ppn }
    }

    /// Ends all writes that have no address, because the device is read-only.
    pub(super) fn refuse_writes(&mut self, cx: &mut (impl Context + ?Sized)) {
        self.own.refuse_writes(cx);
        let mut queues: Vec<Fifo> = Vec::new();
        for set in &mut self.sets {
            queues.push(std::mem::take(&mut set.waiting));
            queues.extend(set.shared.iter_mut().map(|shared| std::mem::take(&mut shared.pending)));
        }
        queues.extend(self.slots.iter_mut().map(|slot| std::mem::take(&mut slot.pending)));
        for mut queue in queues {
            while !queue.is_empty() {
                let id = queue.pop(cx.ops());
                cx.refuse_write(id);
            }
        }
        std::mem::take(&mut self.again).into_iter().for_each(|id| cx.refuse_write(id));
    }
}
