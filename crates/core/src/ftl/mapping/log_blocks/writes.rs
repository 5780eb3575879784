//! Host writes in time: each waits for a log block, and then for its address.

use super::options::StreamKind;
use super::slots::{NOWHERE, Slot};
use super::{LogBlocks, Rules, call, step};
use crate::ftl::Ftl;
use crate::ftl::mapping::{Bound, Context, PADDING, WaitCause};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, Ppn, TransactionId};
use crate::work::{Class, Fifo, Kind, Purpose, Transaction};

impl<R: Rules> LogBlocks<R> {
    /// Has a write wait for its data block, or for a log block of its stream.
    pub(super) fn place_write(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) {
        let lpn = cx.ops()[id].lpn;
        let units = cx.request_units(id);
        let (number, offset) = self.layout.split(lpn);
        let earlier = self.waiting_before(cx, lpn);
        let is_next = |id| self.runs.is_some() || self.layout.split(cx.ops()[id].lpn).1 + 1 == offset;
        let follows = earlier.is_some_and(is_next);
        let stream = self.classify(lpn, units, follows);
        let set = self.layout.set_of(number);
        let write = &mut cx.ops()[id];
        (write.plane, write.temperature) = (self.planes[(set as usize) * self.layout.planes_of(0).len()], stream as u8);
        cx.note_waiting(id);
        if let Some(slot) = self.data_for(cx, lpn) {
            return self.append(cx, slot, id);
        }
        cx.ftl().counters.log_blocks.units[stream] += 1;
        if self.is_shared(stream) {
            cx.note_queued(id, self.queue_of_stream(set, stream));
            self.set(set).shared[stream].pending.push(cx.ops(), id);
            return self.feed(cx, set, stream);
        }
        // Writes of a log block stay in order.
        if let Some(slot) = self.log_for(lpn).filter(|_| earlier.is_none()) {
            return self.append(cx, slot, id);
        }
        cx.note_queued(id, self.queue_of_set(set));
        self.set(set).waiting.push(cx.ops(), id);
        self.last_waiting[number as usize] = id;
        cx.tasks().push(call(step::SET, set));
    }

    /// Returns the write that waits for the log block of a unit and comes before it there: the last one of its logical
    /// block, or the write of the unit before.
    fn waiting_before(&self, cx: &mut (impl Context + ?Sized), lpn: Lpn) -> Option<TransactionId> {
        let last_of = |lpn| Some(self.last_waiting[self.layout.split(lpn).0 as usize]).filter(|id| id.is_some());
        if self.runs.is_none() {
            return last_of(lpn);
        }
        let before = Lpn(lpn.0.checked_sub(1)?);
        last_of(before).filter(|&id| cx.ops()[id].lpn == before)
    }

    /// Notes that a write no longer waits for a log block of its logical block.
    fn note_left(&mut self, number: u32, id: TransactionId) {
        let last = &mut self.last_waiting[number as usize];
        if *last == id {
            *last = TransactionId::NONE;
        }
    }

    /// Returns the number of the queue of a slot, for the causes of waits. Those of data blocks come last.
    pub(super) fn queue_of_slot(&self, slot: u32) -> u32 {
        if self.is_data(slot) { slot + self.queue_of_set(self.sets.len() as u32) - self.fixed_slots() } else { slot }
    }

    /// Returns the number of the queue of a stream. Slots come first.
    pub(super) fn queue_of_stream(&self, set: u32, stream: usize) -> u32 {
        self.fixed_slots() + set * self.streams.len() as u32 + stream as u32
    }

    /// Returns the number of the queue for log blocks of their logical block. These come after those of streams.
    fn queue_of_set(&self, set: u32) -> u32 {
        self.queue_of_stream(self.sets.len() as u32, set as usize)
    }

    /// Returns the log block of a unit's logical block, or of the unit before it, if it takes a write of the unit.
    pub(super) fn log_for(&self, lpn: Lpn) -> Option<u32> {
        let (number, offset) = self.layout.split(lpn);
        let log = if self.runs.is_some() { self.log_of_run(lpn)? } else { self.log_of[number as usize] };
        let slot = self.slots.get(log as usize)?;
        let in_order = self.streams[self.stream_of_slot(log)].kind == StreamKind::InOrder;
        let has_room = if in_order { offset >= slot.expected } else { slot.next < self.layout.units() };
        (!slot.closed && has_room).then_some(log)
    }

    /// Has a write wait for its address in a block.
    fn append(&mut self, cx: &mut (impl Context + ?Sized), log: u32, id: TransactionId) {
        self.note_taken(log, cx.ops()[id].lpn);
        self.slot(log).pending.push(cx.ops(), id);
        cx.note_queued(id, self.queue_of_slot(log));
        cx.tasks().push(call(step::SLOT, log));
    }

    /// Gives log blocks to the writes of a set that wait for one of their logical block, oldest first. Starts a merge
    /// if there is none.
    pub(super) fn serve_waiting(&mut self, cx: &mut (impl Context + ?Sized), set: u32) {
        let delays = self.give_log_blocks(cx, set).filter(|_| !self.sets[set as usize].merging.is_active());
        cx.note_cause(self.queue_of_set(set), delays.map_or(WaitCause::Merge, WaitCause::AsIn));
    }

    /// Does what [`LogBlocks::serve_waiting`] says. Returns the log block that is reclaimed for the first write that
    /// is left, once it has executed earlier writes.
    fn give_log_blocks(&mut self, cx: &mut (impl Context + ?Sized), set: u32) -> Option<u32> {
        loop {
            let mut waiting = self.set(set).waiting;
            self.drop_trimmed(cx, &mut waiting);
            self.set(set).waiting = waiting;
            let id = waiting.first();
            if id.is_none() {
                return None;
            }
            let (lpn, stream) = (cx.ops()[id].lpn, usize::from(cx.ops()[id].temperature));
            let (number, _) = self.layout.split(lpn);
            if let Some(slot) = self.log_for(lpn) {
                self.set(set).waiting.pop(cx.ops());
                self.note_left(number, id);
                self.append(cx, slot, id);
            } else if self.log_of[number as usize] != NOWHERE {
                let log = self.log_of[number as usize];
                self.reclaim_own(cx, set, log);
                return Some(log);
            } else if let Some(full) = self.log_of_run(lpn).filter(|&log| !self.slots[log as usize].pending.is_empty())
            {
                // Its writes move on first.
                return Some(full);
            } else if let Some(slot) = self.empty_slot(set, stream) {
                if !self.may_open(cx, set) {
                    return None;
                }
                self.open_log(cx.ftl(), slot, lpn);
            } else if let Some(slot) = self.least_recent(set, stream) {
                self.reclaim_own(cx, set, slot);
                return Some(slot);
            } else {
                return self.slots_of(set, stream).min_by_key(|&slot| self.slots[slot as usize].used);
            }
        }
    }

    /// Returns the log block of a stream that was written least recently, among those without waiting writes.
    pub(super) fn least_recent(&self, set: u32, stream: usize) -> Option<u32> {
        let idle = |slot: &Slot| !slot.busy && !slot.merging && slot.pending.is_empty();
        let slots = self.slots_of(set, stream).filter(|&slot| idle(&self.slots[slot as usize]));
        slots.min_by_key(|&slot| self.slots[slot as usize].used)
    }

    /// Gives waiting writes of a stream to its log blocks, and opens log blocks. The writes that are left wait for the
    /// log block whose program was queued first, if there is one.
    pub(super) fn feed(&mut self, cx: &mut (impl Context + ?Sized), set: u32, stream: usize) {
        self.give_writes(cx, set, stream);
        let busy = self.set(set).shared[stream].busy.front().copied();
        cx.note_cause(self.queue_of_stream(set, stream), busy.map_or(WaitCause::Merge, WaitCause::AsIn));
    }

    fn give_writes(&mut self, cx: &mut (impl Context + ?Sized), set: u32, stream: usize) {
        let StreamKind::Shared(stripe) = self.streams[stream].kind else { return };
        loop {
            let mut pending = self.set(set).shared[stream].pending;
            self.drop_trimmed(cx, &mut pending);
            let shared = &mut self.sets[set as usize].shared[stream];
            shared.pending = pending;
            if pending.is_empty() {
                return;
            }
            let opens = shared.open < stripe;
            let empty = if opens { self.empty_slot(set, stream) } else { None };
            if let Some(slot) = empty
                && self.may_open(cx, set)
            {
                self.open_shared(cx.ftl(), set, stream, slot);
            } else if let Some(slot) = self.set(set).shared[stream].idle.pop_front() {
                let id = pending.pop(cx.ops());
                let shared = &mut self.set(set).shared[stream];
                shared.pending = pending;
                shared.busy.push_back(slot);
                self.queue_write(cx, slot, id);
            } else if opens && empty.is_none() {
                return self.reclaim_shared(cx, set, stream);
            } else {
                return;
            }
        }
    }

    /// Opens a log block of a stream, for any logical block.
    pub(super) fn open_shared(&mut self, ftl: &mut Ftl, set: u32, stream: usize, slot: u32) {
        self.open(ftl, slot, NOWHERE);
        self.slot(slot).ordered = false;
        let shared = &mut self.set(set).shared[stream];
        shared.open += 1;
        shared.idle.push_back(slot);
    }

    /// Queues a write for the plane of a log block.
    fn queue_write(&mut self, cx: &mut (impl Context + ?Sized), slot: u32, id: TransactionId) {
        let block = BlockId(self.slot(slot).block);
        self.slot(slot).busy = true;
        let ftl = cx.ftl();
        let (plane, ppn) = (ftl.blocks.plane_of(block), ftl.blocks.first_unit(block));
        (cx.ops()[id].plane, cx.ops()[id].ppn) = (plane, ppn);
        cx.note_cause(self.queue_of_slot(slot), WaitCause::Program(plane));
        cx.enqueue(id);
    }

    /// Drops writes at the head of a queue that were trimmed, which ends them. A newer write of the same unit is placed
    /// then.
    fn drop_trimmed(&mut self, cx: &mut (impl Context + ?Sized), queue: &mut Fifo) {
        loop {
            let id = queue.first();
            if id.is_none() || !cx.ops()[id].trimmed {
                return;
            }
            queue.pop(cx.ops());
            self.note_left(self.layout.split(cx.ops()[id].lpn).0, id);
            let newer = cx.ops()[id].newer;
            if newer.is_some() {
                cx.take_over(id, newer);
                // Its stream is chosen again, from a task of its own: this queue may be the one that it joins.
                self.again.push(newer);
                cx.tasks().push(call(step::AGAIN, 0));
            }
            self.dropped += 1;
            // The program of the write has failed before, so that it replaces a copy.
            let replaced = cx.ops()[id].dependency;
            cx.drop_write(id);
            if replaced.is_some() {
                cx.release(replaced);
            }
        }
    }

    /// Places the writes that have waited for a write that was trimmed.
    pub(super) fn place_again(&mut self, cx: &mut (impl Context + ?Sized)) {
        let mut again = std::mem::take(&mut self.again);
        again.drain(..).for_each(|id| self.place_write(cx, id));
        self.again.append(&mut again);
    }

    /// Takes the next step of a slot: of its merge, or towards its first waiting write.
    pub(super) fn step_slot(&mut self, cx: &mut (impl Context + ?Sized), slot: u32) {
        if self.slot(slot).is_empty() || self.slot(slot).busy {
            return;
        }
        if self.slot(slot).merging {
            return self.continue_merge(cx, slot);
        }
        let mut pending = self.slot(slot).pending;
        self.drop_trimmed(cx, &mut pending);
        self.slot(slot).pending = pending;
        let first = pending.first();
        let next = self.slot(slot).next;
        if first.is_none() && self.is_data(slot) {
            return self.detach(cx, slot);
        }
        if first.is_none() {
            // A merge may wait for an idle log block.
            return cx.tasks().push(call(step::SET, self.set_of_slot(slot)));
        }
        let (_, offset) = self.layout.split(cx.ops()[first].lpn);
        let in_order = self.is_in_order(slot);
        if next >= self.layout.units() || (in_order && offset < next) {
            return if self.is_data(slot) { self.leave_to_log(cx, slot) } else { self.move_on(cx, slot) };
        }
        let group = self.layout.group();
        if in_order && !self.fill_until(cx, slot, offset / group * group) {
            return;
        }
        if in_order && self.gather_rest(cx, slot) {
            return;
        }
        self.queue_program(cx, slot);
    }

    fn is_in_order(&self, slot: u32) -> bool {
        self.streams.get(self.stream_of_slot(slot)).is_none_or(|stream| stream.kind == StreamKind::InOrder)
    }

    /// Has the waiting writes of a log block wait for another one.
    fn move_on(&mut self, cx: &mut (impl Context + ?Sized), slot: u32) {
        let pending = std::mem::take(&mut self.slot(slot).pending);
        self.slot(slot).expected = if self.runs.is_some() { NOWHERE } else { self.layout.units() };
        let set = self.set_of_slot(slot);
        let mut id = pending.first();
        let mut last = TransactionId::NONE;
        while id.is_some() {
            cx.note_queued(id, self.queue_of_set(set));
            (last, id) = (id, cx.ops()[id].next);
        }
        let last_waiting = &mut self.last_waiting[self.layout.split(cx.ops()[last].lpn).0 as usize];
        if last_waiting.is_none() {
            *last_waiting = last;
        }
        self.set(set).waiting.prepend(cx.ops(), pending);
        cx.tasks().push(call(step::SET, set));
    }

    /// Queues reads of the units that the data block has in the next program, without those that writes replace.
    /// Returns `true` if there are any.
    fn gather_rest(&mut self, cx: &mut (impl Context + ?Sized), slot: u32) -> bool {
        let Slot { number, next, .. } = self.slots[slot as usize];
        for offset in next..next + self.layout.group() {
            let Some(from) = self.in_data(cx.ftl(), number, offset) else { continue };
            let lpn = cx.ftl().map.owner(from);
            let pending = self.slot(slot).pending;
            let ops = &*cx.ops();
            if !pending.iter(ops).any(|id| ops[id].lpn.0 == lpn && !ops[id].trimmed) {
                self.slot(slot).gather.add(cx, (slot, Purpose::PartialMerge), from);
            }
        }
        let reads = !self.slot(slot).gather.is_ready(cx);
        if reads {
            self.slot(slot).busy = true;
            cx.note_cause(self.queue_of_slot(slot), WaitCause::Merge);
        }
        reads
    }

    /// Returns the address of a unit in the data block of a logical block, if it is valid there.
    pub(super) fn in_data(&self, ftl: &Ftl, number: u32, offset: u32) -> Option<Ppn> {
        let data = self.data[number as usize];
        let ppn = (data != NOWHERE).then(|| Ppn(ftl.blocks.first_unit(BlockId(data)).0 + offset))?;
        ftl.blocks.is_valid(ppn).then_some(ppn)
    }

    /// Queues the next program of a slot: a host write if the program has one, otherwise a program of copies.
    pub(super) fn queue_program(&mut self, cx: &mut (impl Context + ?Sized), slot: u32) {
        if cx.ftl().is_read_only() {
            return self.slot(slot).gather.forget(cx);
        }
        let has_write = !self.slot(slot).merging && !self.slot(slot).replaced.is_active() && {
            let mut pending = self.slot(slot).pending;
            self.drop_trimmed(cx, &mut pending);
            self.slot(slot).pending = pending;
            let first = pending.first();
            first.is_some() && {
                let (_, offset) = self.layout.split(cx.ops()[first].lpn);
                let next = self.slot(slot).next;
                !self.is_in_order(slot) || (next..next + self.layout.group()).contains(&offset)
            }
        };
        if !has_write && self.slot(slot).gather.copies().is_empty() {
            // The writes were trimmed.
            self.slot(slot).busy = false;
            return cx.tasks().push(call(step::SLOT, slot));
        }
        self.slot(slot).busy = true;
        if has_write {
            let mut pending = self.slot(slot).pending;
            let id = pending.pop(cx.ops());
            self.slot(slot).pending = pending;
            return self.queue_write(cx, slot, id);
        }
        cx.note_cause(self.queue_of_slot(slot), WaitCause::Merge);
        let plane = cx.ftl().blocks.plane_of(BlockId(self.slot(slot).block));
        cx.queue(Transaction::copying(Kind::MergeWrite, plane, slot, self.purpose_of(slot)));
    }

    /// Binds a program of copies.
    pub(super) fn bind_copies(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) -> Option<Bound> {
        let merge = cx.ops()[id];
        let slot = merge.logical_block();
        if cx.ftl().is_read_only() {
            self.slot(slot).gather.forget(cx);
            cx.ops().remove(id);
            return None;
        }
        Some(if self.slot(slot).replaced.is_active() {
            self.bind_moved(cx, slot, merge.class)
        } else {
            self.bind_program(cx, slot, &[], merge.class)
        })
    }

    /// Binds a write together with the waiting writes that share its program.
    pub(super) fn bind_with_others(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) -> Bound {
        let Transaction { ppn, plane, .. } = cx.ops()[id];
        let slot = self.slot_of[cx.ftl().blocks.block_of(ppn).index()];
        let mut writes = std::mem::take(&mut self.writes);
        writes.push(id);
        let stream = self.stream_of_slot(slot);
        let set = self.set_of_slot(slot);
        let is_shared = self.is_shared(stream);
        let mut pending = if is_shared { self.set(set).shared[stream].pending } else { self.slot(slot).pending };
        let (next, group) = (self.slot(slot).next, self.layout.group());
        while writes.len() < group as usize {
            let other = pending.first();
            if other.is_none() || cx.ops()[other].trimmed {
                break;
            }
            let (_, offset) = self.layout.split(cx.ops()[other].lpn);
            if self.is_in_order(slot) && !(next..next + group).contains(&offset) {
                break;
            }
            pending.pop(cx.ops());
            cx.ops()[other].plane = plane;
            writes.push(other);
        }
        if is_shared {
            self.set(set).shared[stream].pending = pending;
        } else {
            self.slot(slot).pending = pending;
        }
        let bound = self.bind_program(cx, slot, &writes, Class::HostProgram);
        writes.clear();
        self.writes = writes;
        bound
    }

    /// Binds the next program of a slot: these writes, and copies.
    pub(super) fn bind_program(
        &mut self,
        cx: &mut (impl Context + ?Sized),
        slot: u32,
        writes: &[TransactionId],
        class: Class,
    ) -> Bound {
        let group = self.layout.group();
        let (in_order, first) = (self.is_in_order(slot), self.first_unit(cx.ftl(), slot));
        let next = self.slot(slot).next;
        let start = Ppn(first + next);
        let plane = cx.ftl().blocks.plane_of(BlockId(self.slot(slot).block));
        (start.0..start.0 + group).for_each(|unit| cx.ftl().map.set_owner(Ppn(unit), PADDING));
        for (index, &id) in writes.iter().enumerate() {
            let (_, offset) = self.layout.split(cx.ops()[id].lpn);
            let at = if in_order { offset } else { next + index as u32 };
            self.slot(slot).ordered &= at == offset;
            cx.bind(id, Ppn(first + at));
            cx.ops()[id].next = writes.get(index + 1).copied().unwrap_or(TransactionId::NONE);
        }
        let Self { layout, slots, .. } = self;
        let Slot { gather, copied, .. } = &mut slots[slot as usize];
        gather.bind(cx, |copy| Ppn(first + layout.split(Lpn(copy.lpn)).1));
        let copies = gather.copies().len();
        *copied |= copies > 0;
        let cause = if writes.is_empty() { ProgramCause::Merge } else { ProgramCause::Host };
        cx.ftl().note_program(cause, (writes.len() + copies) as u32);
        self.slot(slot).next = next + group;
        Bound { class, plane, ppn: start }
    }

    /// Ends a program of a slot, after its writes.
    pub(super) fn program_ended(&mut self, cx: &mut (impl Context + ?Sized), slot: u32, start: Ppn) {
        let Self { slots, .. } = self;
        slots[slot as usize].gather.end(cx);
        cx.program_ended(start);
        if cx.ftl().is_read_only() {
            return;
        }
        if self.slot(slot).replaced.is_active() {
            return self.continue_replacing(cx, slot);
        }
        self.rest(cx, slot);
    }

    /// Continues with a slot whose program has ended.
    pub(super) fn rest(&mut self, cx: &mut (impl Context + ?Sized), slot: u32) {
        self.slot(slot).busy = false;
        let (set, stream) = (self.set_of_slot(slot), self.stream_of_slot(slot));
        if !self.is_shared(stream) {
            return cx.tasks().push(call(step::SLOT, slot));
        }
        let is_full = self.slot(slot).next >= self.layout.units();
        let shared = &mut self.set(set).shared[stream];
        shared.busy.retain(|&busy| busy != slot);
        if is_full {
            shared.open -= 1;
        } else {
            shared.idle.push_back(slot);
        }
        self.feed(cx, set, stream);
    }
}
