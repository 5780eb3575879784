//! Block mapping in time: the operations that wait for a logical block, and its programs, one after another. See
//! docs/model/mapping.md.

use super::map::{LogicalBlock, NOWHERE};
use super::{Block, block_home, step};
use crate::ftl::Ftl;
use crate::ftl::mapping::own_blocks;
use crate::ftl::mapping::replacement::Replacement;
use crate::ftl::mapping::{Bound, Context, KeptBlock, PADDING};
use crate::ftl::mover::Gather;
use crate::metrics::counters::{MergeKind, ProgramCause};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::work::{Call, Class, Fifo, Kind, Purpose, Task, Transaction};

/// Bytes of memory that this module uses for each logical block.
pub(super) const BYTES_OF_LOGICAL_BLOCK: u64 = size_of::<Job>() as u64;

/// Outstanding work on a logical block.
#[derive(Clone, Debug, Default)]
pub(super) struct Job {
    /// True while a program of the logical block, or a read for that program, is in flight.
    busy: bool,
    /// True if the logical block waits for a free block.
    waiting: bool,
    /// True if its two blocks are to be merged, to free one.
    merge: bool,
    /// Writes that are not bound.
    pending: Fifo,
    /// Units that the next program copies.
    pub(super) gather: Gather,
    /// Failed blocks that the current block takes the place of.
    pub(super) replaced: Replacement,
}

impl Block {
    pub(super) fn logical(&mut self, number: u32) -> &mut LogicalBlock {
        &mut self.map.logical[number as usize]
    }

    /// Returns the address of an offset in the old block of a logical block, if that unit is valid.
    pub(super) fn old_place(&mut self, ftl: &mut Ftl, number: u32, offset: u32) -> Option<Ppn> {
        let LogicalBlock { old, .. } = *self.logical(number);
        let ppn = (old != NOWHERE).then(|| Ppn(ftl.blocks.first_unit(BlockId(old)).0 + offset))?;
        ftl.blocks.is_valid(ppn).then_some(ppn)
    }

    /// Gives a logical block a free block as its current one. Units that are left unwritten become padding.
    pub(super) fn renew_block(&mut self, ftl: &mut Ftl, number: u32, plane: PlaneId) {
        let LogicalBlock { current, next, .. } = *self.logical(number);
        if current != NOWHERE {
            let first = ftl.blocks.first_unit(BlockId(current)).0;
            (first + next..first + ftl.blocks.data_units()).for_each(|unit| ftl.map.set_owner(Ppn(unit), PADDING));
        }
        let block = ftl.blocks.open_logical(plane);
        self.map.renew(number, block, plane);
    }

    /// Removes the old block of a logical block and returns it for its erase, if it holds no valid units.
    pub(super) fn take_old(&mut self, ftl: &mut Ftl, number: u32) -> Option<BlockId> {
        let old = BlockId(self.logical(number).old);
        if old.0 == NOWHERE || ftl.blocks.block(old).valid > 0 {
            return None;
        }
        let logical = self.logical(number);
        logical.old = NOWHERE;
        let kind = logical.merge();
        ftl.counters.merges[kind as usize] += 1;
        ftl.blocks.await_erase_for(old, Purpose::Merge);
        Some(old)
    }

    pub(super) fn job(&mut self, number: u32) -> &mut Job {
        &mut self.jobs[number]
    }

    /// Has a write wait for its offset. Returns its logical block.
    pub(super) fn await_offset(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) -> u32 {
        let (number, _) = self.map.split(cx.ops()[id].lpn);
        cx.ops()[id].plane = block_home(cx.ftl(), number);
        self.jobs[number].pending.push(cx.ops(), id);
        cx.note_waiting(id);
        number
    }

    /// Takes the next step of a logical block: towards the write that has waited longest, or towards a merge of its two
    /// blocks.
    pub(super) fn step_block(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        self.drop_trimmed(cx, number);
        if self.job(number).busy || self.job(number).waiting {
            return;
        }
        self.drop_old(cx, number);
        let first = self.job(number).pending.first();
        let LogicalBlock { current, old, next, .. } = *self.logical(number);
        if first.is_none() {
            let job = self.job(number);
            job.merge &= old != NOWHERE;
            if job.merge {
                self.prepare_program(cx, number);
            }
            return;
        }
        let (_, offset) = self.map.split(cx.ops()[first].lpn);
        if current != NOWHERE && (offset >= next || old != NOWHERE) {
            return self.prepare_program(cx, number);
        }
        let plane = block_home(cx.ftl(), number);
        if !self.has_free_block(cx, plane) || !self.waiting[plane].is_empty() {
            self.job(number).waiting = true;
            self.waiting[plane].push_back(number);
            return cx.tasks().push(call(step::FREE_BLOCKS, plane.0));
        }
        self.renew(cx, number, plane);
    }

    /// Drops writes at the head of the queue that were trimmed, which ends them. A newer write of the same unit then
    /// joins the queue. The slots are free, and other writes are admitted after the event has been handled.
    fn drop_trimmed(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        loop {
            let id = self.job(number).pending.first();
            if id.is_none() || !cx.ops()[id].trimmed {
                return;
            }
            self.jobs[number].pending.pop(cx.ops());
            let write = cx.ops()[id];
            if write.newer.is_some() {
                cx.take_over(id, write.newer);
                self.await_offset(cx, write.newer);
            }
            self.map.dropped += 1;
            cx.drop_write(id);
            // The program of the write has failed before, so that it replaces a copy.
            if write.dependency.is_some() {
                cx.release(write.dependency);
            }
        }
    }

    /// Gives a free block to a logical block.
    fn renew(&mut self, cx: &mut (impl Context + ?Sized), number: u32, plane: PlaneId) {
        self.renew_block(cx.ftl(), number, plane);
        cx.tasks().push(call(step::GO_ON, number));
        cx.tasks().push(call(step::FREE_BLOCKS, plane.0));
    }

    /// Removes an old block that holds no valid units, and erases it if nothing depends on it.
    fn drop_old(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        let Some(old) = self.take_old(cx.ftl(), number) else { return };
        let plane = block_home(cx.ftl(), number);
        self.job(number).merge = false;
        let merging = &mut self.merging[plane];
        *merging = merging.filter(|&merging| merging != number);
        // A failed block is retired.
        self.awaiting_erase[plane] += u32::from(!cx.ftl().blocks.block(old).failed);
        if cx.ftl().blocks.can_erase(old) {
            cx.erase(old);
        }
    }

    /// Returns `true` if a logical block may take a free block of a plane. On a durable device, one stays free for the
    /// merges of a recovery, because a program that is interrupted leaves a gap in a block.
    fn has_free_block(&self, cx: &mut (impl Context + ?Sized), plane: PlaneId) -> bool {
        let kept = u32::from(cx.is_durable());
        self.free_beyond_spare(cx.ftl(), plane) > kept
    }

    /// Returns the number of free blocks of a plane for logical blocks. If blocks may fail, one of them is not counted.
    pub(super) fn free_beyond_spare(&self, ftl: &Ftl, plane: PlaneId) -> u32 {
        self.own.others(ftl, plane).saturating_sub(u32::from(ftl.faults.is_some()))
    }

    /// Calls `found` for each block of a logical block. A block without newest versions does not count as filled.
    pub(super) fn blocks_of_map(&self, ftl: &Ftl, found: &mut dyn FnMut(KeptBlock)) {
        let units = self.map.units();
        let holds_newest = |block| {
            let first = ftl.blocks.first_unit(block).0;
            (first..first + units).any(|ppn| ftl.newest_at(Ppn(ppn)).is_some())
        };
        let kept = |block, units, goes_on: bool| KeptBlock {
            block,
            units,
            is_filled: !goes_on && holds_newest(block),
            kind: 0,
        };
        self.unplaced.iter().for_each(|&block| found(kept(block, units, false)));
        for (number, &LogicalBlock { current, old, next, .. }) in (0..).zip(&self.map.logical) {
            if current != NOWHERE {
                found(kept(BlockId(current), next, next < units || self.jobs[number].busy));
            }
            if old != NOWHERE {
                found(kept(BlockId(old), units, false));
            }
        }
    }

    /// Returns the number of logical blocks that are merged by a program in flight, by kind.
    pub(super) fn merges_in_progress(&self) -> [u32; MergeKind::ALL.len()] {
        let mut merges = [0; MergeKind::ALL.len()];
        let logical =
            (0..).zip(&self.map.logical).filter(|(number, logical)| logical.old != NOWHERE && self.jobs[*number].busy);
        logical.for_each(|(_, logical)| merges[logical.merge() as usize] += 1);
        merges
    }

    /// If free blocks are few, merges the logical block that has had two blocks for the longest time. Merges one at a
    /// time.
    pub(super) fn free_blocks(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        let coming = self.own.others(cx.ftl(), plane) + self.awaiting_erase[plane];
        if coming > cx.ftl().shape().soft || self.merging[plane].is_some() {
            return;
        }
        let Some(number) = self.map.oldest_pair(plane) else { return };
        self.merging[plane] = Some(number);
        self.job(number).merge = true;
        self.step_block(cx, number);
    }

    /// Gives free blocks to waiting logical blocks. Runs the tasks of each one before the next.
    pub(super) fn give_blocks(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        if self.has_free_block(cx, plane)
            && let Some(number) = self.waiting[plane].pop_front()
        {
            self.job(number).waiting = false;
            self.renew(cx, number, plane);
            return cx.tasks().push(call(step::GIVE_BLOCKS, plane.0));
        }
        self.free_blocks(cx, plane);
    }

    /// Removes the pending writes of the next program of a logical block from the queue, at most `max`.
    fn take_pending(
        &mut self,
        cx: &mut (impl Context + ?Sized),
        number: u32,
        max: u32,
        into: &mut Vec<(u32, TransactionId)>,
    ) {
        let group = cx.ftl().shape().units_per_program;
        let next = self.logical(number).next;
        let ops = cx.ops();
        let mut pending = std::mem::take(&mut self.job(number).pending);
        let mut others = Fifo::default();
        while into.len() < max.min(group) as usize && !pending.is_empty() {
            let id = pending.pop(ops);
            let (_, offset) = self.map.split(ops[id].lpn);
            let free = !ops[id].trimmed && into.iter().all(|&(other, _)| other != offset);
            if free && (next..next + group).contains(&offset) {
                into.push((offset, id));
            } else {
                others.push(ops, id);
            }
        }
        pending.prepend(ops, others);
        self.job(number).pending = pending;
    }

    /// Queues the reads of the units that the next program of a logical block copies, or the program if there are none.
    fn prepare_program(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        let next = self.logical(number).next;
        let group = cx.ftl().shape().units_per_program;
        self.job(number).busy = true;
        for offset in next..next + group {
            if let Some(from) = self.old_place(cx.ftl(), number, offset)
                && !self.is_pending(cx, number, offset)
            {
                self.job(number).gather.add(cx, (number, Purpose::Merge), from);
            }
        }
        if self.job(number).gather.is_ready(cx) {
            self.queue_program(cx, number);
        }
    }

    /// Returns `true` if a write of an offset is pending, so that its unit need not be copied.
    fn is_pending(&mut self, cx: &mut (impl Context + ?Sized), number: u32, offset: u32) -> bool {
        let first = number * self.map.units();
        let ops = cx.ops();
        let mut id = self.job(number).pending.first();
        while id.is_some() && (ops[id].trimmed || ops[id].lpn.0 != first + offset) {
            id = ops[id].next;
        }
        id.is_some()
    }

    /// Ends a read of units that are to be copied.
    pub(super) fn finish_read(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        if self.job(number).gather.read_ended() {
            self.queue_program(cx, number);
        }
    }

    /// Queues the next program of a logical block. It is a host write if it includes one.
    fn queue_program(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        if cx.ftl().is_read_only() {
            return self.job(number).gather.forget(cx);
        }
        if self.job(number).replaced.is_active() {
            return self.queue_copies(cx, number);
        }
        let mut writes = std::mem::take(&mut self.writes);
        self.take_pending(cx, number, 1, &mut writes);
        let first = writes.pop();
        self.writes = writes;
        if let Some((_, id)) = first {
            return cx.enqueue(id);
        }
        self.queue_copies(cx, number);
    }

    fn queue_copies(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        let plane = block_home(cx.ftl(), number);
        cx.queue(Transaction::copying(Kind::MergeWrite, plane, number, Purpose::Merge));
    }

    /// Binds a write together with the other writes and the copies of its program.
    pub(super) fn bind_with_others(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) -> Bound {
        let (number, offset) = self.map.split(cx.ops()[id].lpn);
        let mut writes = std::mem::take(&mut self.writes);
        writes.push((offset, id));
        self.take_pending(cx, number, u32::MAX, &mut writes);
        let bound = self.bind_program(cx, number, &writes, Class::HostProgram);
        writes.clear();
        self.writes = writes;
        bound
    }

    /// Binds the next program of a logical block: these writes, and copies.
    pub(super) fn bind_program(
        &mut self,
        cx: &mut (impl Context + ?Sized),
        number: u32,
        writes: &[(u32, TransactionId)],
        class: Class,
    ) -> Bound {
        let (LogicalBlock { current, next, .. }, group) = (*self.logical(number), cx.ftl().shape().units_per_program);
        let ftl = cx.ftl();
        let start = Ppn(ftl.blocks.first_unit(BlockId(current)).0 + next);
        (start.0..start.0 + group).for_each(|unit| ftl.map.set_owner(Ppn(unit), PADDING));
        for (index, &(offset, id)) in writes.iter().enumerate() {
            cx.bind(id, Ppn(start.0 + offset - next));
            cx.ops()[id].next = writes.get(index + 1).map_or(TransactionId::NONE, |&(_, id)| id);
        }
        let map = &self.map;
        let gather = &mut self.jobs[number].gather;
        gather.bind(cx, |copy| Ppn(start.0 + map.split(Lpn(copy.lpn)).1 - next));
        let cause = if writes.is_empty() { ProgramCause::Merge } else { ProgramCause::Host };
        cx.ftl().note_program(cause, (writes.len() + gather.copies().len()) as u32);
        let logical = &mut self.map.logical[number as usize];
        logical.next = next + group;
        let copied = gather.copies().iter().map(|copy| copy.to.0 - start.0 + next);
        logical.note_program(copied, writes.iter().map(|write| write.0));
        let plane = block_home(cx.ftl(), number);
        Bound { class, plane, ppn: start }
    }

    /// Ends a program of a logical block, after its writes.
    pub(super) fn finish_in_block(&mut self, cx: &mut (impl Context + ?Sized), number: u32, start: Ppn) {
        self.job(number).gather.end(cx);
        cx.program_ended(start);
        if cx.ftl().is_read_only() {
            return;
        }
        if self.job(number).replaced.is_active() {
            return self.continue_replacing(cx, number);
        }
        self.rest(cx, number);
    }

    fn rest(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        self.job(number).busy = false;
        self.step_block(cx, number);
        let plane = block_home(cx.ftl(), number);
        cx.tasks().push(call(step::FREE_BLOCKS, plane.0));
    }

    /// Binds a program of copies.
    pub(super) fn bind_copies(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) -> Option<Bound> {
        let merge = cx.ops()[id];
        let number = merge.logical_block();
        if cx.ftl().is_read_only() {
            self.job(number).gather.forget(cx);
            cx.ops().remove(id);
            return None;
        }
        Some(if self.job(number).replaced.is_active() {
            self.bind_moved(cx, number, merge.class)
        } else {
            self.bind_program(cx, number, &[], merge.class)
        })
    }

    /// Handles a failed program of writes, or of copies alone with their `number`. Returns `false` if no block can take
    /// the place of the failed one.
    pub(super) fn program_failed(
        &mut self,
        cx: &mut (impl Context + ?Sized),
        writes: &[TransactionId],
        number: Option<u32>,
    ) -> bool {
        if number == Some(own_blocks::NUMBER) || writes.iter().any(|&id| self.own.has(cx.ops()[id].lpn)) {
            return self.own.replace(cx, writes);
        }
        let of_write = |id: &TransactionId| self.map.split(cx.ops()[*id].lpn).0;
        let number = number.or_else(|| writes.first().map(of_write));
        number.is_some_and(|number| self.replace_current(cx, number, writes))
    }

    /// Handles the end of an erase in a plane.
    pub(super) fn erase_ended(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId, failed: bool) {
        if if failed { self.own.erase_failed(cx, plane) } else { self.own.erased(cx, plane) } {
            return;
        }
        self.awaiting_erase[plane] -= 1;
        if !failed {
            self.own.wake(cx);
        }
        match (cx.ftl().is_read_only(), failed) {
            (true, _) => {}
            (false, true) => self.free_blocks(cx, plane),
            (false, false) => self.give_blocks(cx, plane),
        }
    }

    /// Has a free block take the place of the block of a failed program. Its writes wait for their offsets again,
    /// before all others. Returns `false` if no block is free or the device is read-only.
    pub(super) fn replace_current(
        &mut self,
        cx: &mut (impl Context + ?Sized),
        number: u32,
        writes: &[TransactionId],
    ) -> bool {
        let group = cx.ftl().shape().units_per_program;
        let plane = block_home(cx.ftl(), number);
        self.jobs[number].gather.forget(cx);
        // Otherwise, the program was one of units that are being moved.
        if !self.jobs[number].replaced.is_active() {
            self.logical(number).next -= group;
        }
        let mut again = Fifo::default();
        writes.iter().for_each(|&id| again.push(cx.ops(), id));
        writes.iter().for_each(|&id| cx.note_waiting(id));
        self.jobs[number].pending.prepend(cx.ops(), again);
        // On a durable device, the last one is left for a recovery.
        if cx.ftl().is_read_only() || self.own.others(cx.ftl(), plane) <= u32::from(cx.is_durable()) {
            return false;
        }
        let block = cx.ftl().blocks.open_logical(plane);
        let failed = std::mem::replace(&mut self.logical(number).current, block.0);
        self.job(number).replaced.begin(BlockId(failed));
        self.continue_replacing(cx, number);
        cx.tasks().push(call(step::FREE_BLOCKS, plane.0));
        true
    }

    /// Takes the next step of moving units to the current block, from the failed blocks that it replaces.
    fn continue_replacing(&mut self, cx: &mut (impl Context + ?Sized), number: u32) {
        let LogicalBlock { current, next, .. } = *self.logical(number);
        let (job, unwritten) = (&mut self.jobs[number], &mut self.map.unwritten);
        job.busy = true;
        let purpose = (number, Purpose::Merge);
        if job.replaced.read_next_program(cx, purpose, (BlockId(current), next), &mut job.gather, unwritten) {
            self.rest(cx, number);
        }
    }

    /// Binds the next program of units that are moved from failed blocks.
    pub(super) fn bind_moved(&mut self, cx: &mut (impl Context + ?Sized), number: u32, class: Class) -> Bound {
        let job = &mut self.jobs[number];
        let current = self.map.logical[number as usize].current;
        let ppn = job.replaced.bind(cx, BlockId(current), &mut job.gather);
        let copies = job.gather.copies().len() as u32;
        cx.ftl().note_program(ProgramCause::Merge, copies);
        Bound { class, plane: cx.ftl().blocks.plane_of(BlockId(current)), ppn }
    }

    /// Ends all writes that have no address, because the device is read-only.
    pub(super) fn refuse_writes(&mut self, cx: &mut (impl Context + ?Sized)) {
        self.own.refuse_writes(cx);
        for number in 0..self.map.logical.len() as u32 {
            let mut pending = std::mem::take(&mut self.jobs[number].pending);
            while !pending.is_empty() {
                let id = pending.pop(cx.ops());
                cx.refuse_write(id);
            }
        }
    }

    /// Test hook: checks that each valid unit is at its offset in a block of its logical block.
    pub(super) fn recount_blocks(&self, ftl: &Ftl) -> Result<(), String> {
        let map = &self.map;
        for (number, logical) in map.logical.iter().enumerate() {
            for (block, end) in [(logical.current, logical.next), (logical.old, map.units())] {
                if block == NOWHERE {
                    continue;
                }
                let first = ftl.blocks.first_unit(BlockId(block)).0;
                for offset in 0..map.units() {
                    let ppn = Ppn(first + offset);
                    let lpn = ftl.map.owner(ppn);
                    let own = map.split(Lpn(lpn)) == (number as u32, offset) && offset < end;
                    if ftl.blocks.is_valid(ppn) && !own {
                        return Err(format!("logical block {number}: unit {lpn} is at offset {offset}"));
                    }
                }
            }
        }
        self.own.recount(ftl)
    }
}

/// Returns a task of the scheme, about a logical block or a plane.
pub(super) fn call(step: u8, number: u32) -> Task {
    Task::Scheme(Call { step, number, ..Call::default() })
}
