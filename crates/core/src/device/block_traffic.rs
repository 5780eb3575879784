//! Block mapping in time: what waits for a logical block, and the programs that it takes, one after the other. See
//! docs/model/mapping.md.

use std::collections::VecDeque;

use super::Device;
use crate::ftl::Ftl;
use crate::ftl::gc::job::Copy;
use crate::ftl::mapping::{LogicalBlock, NOWHERE, PADDING};
use crate::ftl::space::{Claim, Role};
use crate::metrics::attribution::Part as TimePart;
use crate::metrics::counters::ProgramCause;
use crate::nand::array::Spot;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::sim::table::Table;
use crate::work::{Class, Fifo, Kind, Task, Transaction};

/// Bytes that are kept of a logical block here.
pub(super) const BYTES_OF_LOGICAL_BLOCK: u64 = size_of::<Job>() as u64;

/// What goes on with a logical block.
#[derive(Clone, Debug, Default)]
struct Job {
    /// A program of it is on its way, or what that needs is being read.
    busy: bool,
    /// It waits for a free block.
    waiting: bool,
    /// Its blocks are to be merged, to free one.
    merge: bool,
    /// Writes that are not bound.
    pending: Fifo,
    /// Units that the program on its way copies.
    copies: Vec<Copy>,
    /// Reads of those that have not ended.
    reads: u32,
}

/// All that goes on with logical blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockTraffic {
    jobs: Table<u32, Job>,
    /// By plane: logical blocks that wait for a free block.
    waiting: Table<PlaneId, VecDeque<u32>>,
    /// By plane: the logical block that is merged to free one.
    merging: Table<PlaneId, Option<u32>>,
    /// By plane: blocks on their way to being erased.
    doomed: Table<PlaneId, u32>,
    /// Room to work in: writes by their offsets.
    writes: Vec<(u32, TransactionId)>,
}

impl BlockTraffic {
    /// Nothing goes on.
    pub(super) fn new(ftl: &Ftl) -> BlockTraffic {
        let Some(map) = &ftl.block_map else { return BlockTraffic::default() };
        let planes = ftl.shape().planes;
        BlockTraffic {
            jobs: Table::new(map.logical.len() as u32, Job::default()),
            waiting: Table::new(planes, VecDeque::new()),
            merging: Table::new(planes, None),
            doomed: Table::new(planes, 0),
            writes: Vec::new(),
        }
    }

    fn job(&mut self, number: u32) -> &mut Job {
        &mut self.jobs[number]
    }
}

impl Device {
    fn logical(&mut self, number: u32) -> LogicalBlock {
        self.ftl.logical_blocks().logical[number as usize]
    }

    /// A write has all its data: it waits for its offset.
    pub(super) fn queue_in_block(&mut self, id: TransactionId) {
        let number = self.await_offset(id);
        self.go_on_in_block(number);
    }

    /// Lets a write wait for its offset, and returns its logical block.
    fn await_offset(&mut self, id: TransactionId) -> u32 {
        let (number, _) = self.ftl.logical_blocks().split(self.transactions[id].lpn);
        self.transactions[id].plane = self.ftl.block_home(number);
        self.show_lined_up(id);
        self.block_traffic.jobs[number].pending.push(&mut self.transactions, id);
        self.observe_stalled(id);
        number
    }

    /// Takes the next step with a logical block: towards the write that has waited longest, or towards one block that
    /// holds all.
    pub(super) fn go_on_in_block(&mut self, number: u32) {
        self.drop_trimmed(number);
        if self.block_traffic.job(number).busy || self.block_traffic.job(number).waiting {
            return;
        }
        self.drop_old(number);
        let first = self.block_traffic.job(number).pending.first();
        let LogicalBlock { current, old, next, .. } = self.logical(number);
        if first.is_none() {
            let job = self.block_traffic.job(number);
            job.merge &= old != NOWHERE;
            if job.merge {
                self.prepare_program(number);
            }
            return;
        }
        let (_, offset) = self.ftl.logical_blocks().split(self.transactions[first].lpn);
        if current != NOWHERE && (offset >= next || old != NOWHERE) {
            return self.prepare_program(number);
        }
        let plane = self.ftl.block_home(number);
        if !self.has_free_block(plane) || !self.block_traffic.waiting[plane].is_empty() {
            self.block_traffic.job(number).waiting = true;
            self.block_traffic.waiting[plane].push_back(number);
            return self.tasks.push(Task::FreeBlocks(plane));
        }
        self.renew_block(number, plane);
    }

    /// Pending writes that were trimmed have no place to go to: a newer write of the unit may have it. They are done.
    /// Their slots are free: others are admitted when the event has been handled.
    fn drop_trimmed(&mut self, number: u32) {
        loop {
            let id = self.block_traffic.job(number).pending.first();
            if id.is_none() || !self.transactions[id].trimmed {
                return;
            }
            self.block_traffic.jobs[number].pending.pop(&mut self.transactions);
            let write = self.transactions[id];
            if write.newer.is_some() {
                self.inherit(id, write.newer);
                self.observe_spent(write.newer, TimePart::Order);
                self.await_offset(write.newer);
            }
            self.ftl.logical_blocks().dropped += 1;
            self.slots_free += 1;
            self.transactions.remove(id);
            self.observe_spent(id, TimePart::Cleaning);
            self.serve(write.request());
            if write.request().is_some() {
                self.part_done(write.request(), self.now, id);
            }
            self.finish_flight(id);
        }
    }

    /// A logical block takes a free block.
    fn renew_block(&mut self, number: u32, plane: PlaneId) {
        self.ftl.renew_block(number, plane);
        self.tasks.push(Task::GoOnInBlock(number));
        self.tasks.push(Task::FreeBlocks(plane));
    }

    /// Lets go of an old block that holds nothing valid.
    fn drop_old(&mut self, number: u32) {
        let Some(old) = self.ftl.take_old(number) else { return };
        let plane = self.ftl.block_home(number);
        self.block_traffic.job(number).merge = false;
        let merging = &mut self.block_traffic.merging[plane];
        *merging = merging.filter(|&merging| merging != number);
        self.block_traffic.doomed[plane] += 1;
        if self.ftl.blocks.can_erase(old) {
            self.erase(old);
        }
    }

    /// Returns `true` if a logical block may take a free block of a plane.
    fn has_free_block(&self, plane: PlaneId) -> bool {
        self.ftl.blocks.may_take(self.ftl.blocks.region(plane, Role::Data), Claim::Block)
    }

    /// Merges the logical block that has had two blocks for the longest time, where free blocks are few; one at a time.
    pub(super) fn free_blocks(&mut self, plane: PlaneId) {
        let coming = self.ftl.blocks.free_blocks(plane, Role::Data) + self.block_traffic.doomed[plane];
        if coming > self.ftl.shape().soft || self.block_traffic.merging[plane].is_some() {
            return;
        }
        let Some(number) = self.ftl.logical_blocks().oldest_pair(plane) else { return };
        self.block_traffic.merging[plane] = Some(number);
        self.block_traffic.job(number).merge = true;
        self.go_on_in_block(number);
    }

    /// A block of a logical block has been erased.
    pub(super) fn logical_erased(&mut self, plane: PlaneId) {
        self.block_traffic.doomed[plane] -= 1;
        self.give_blocks(plane);
    }

    /// Gives free blocks to waiting logical blocks. Runs the tasks of each one before the next.
    pub(super) fn give_blocks(&mut self, plane: PlaneId) {
        if self.has_free_block(plane)
            && let Some(number) = self.block_traffic.waiting[plane].pop_front()
        {
            self.block_traffic.job(number).waiting = false;
            self.renew_block(number, plane);
            return self.tasks.push(Task::GiveBlocks(plane));
        }
        self.free_blocks(plane);
    }

    /// A unit of a logical block was trimmed.
    pub(super) fn trimmed_in_block(&mut self, lpn: Lpn) {
        if self.ftl.block_map.is_some() {
            let (number, _) = self.ftl.logical_blocks().split(lpn);
            self.go_on_in_block(number);
            self.tasks.push(Task::FreeBlocks(self.ftl.block_home(number)));
        }
    }

    /// The pending writes of the program at the next offset of a logical block, as many as there are, are taken out.
    fn take_pending(&mut self, number: u32, most: usize, into: &mut Vec<(u32, TransactionId)>) {
        let (next, group) = (self.logical(number).next, self.ftl.shape().units_per_program);
        let mut pending = std::mem::take(&mut self.block_traffic.job(number).pending);
        let mut others = Fifo::default();
        while !pending.is_empty() {
            let id = pending.pop(&mut self.transactions);
            let (_, offset) = self.ftl.logical_blocks().split(self.transactions[id].lpn);
            let free = !self.transactions[id].trimmed && into.iter().all(|&(other, _)| other != offset);
            if free && (next..next + group).contains(&offset) && into.len() < most {
                into.push((offset, id));
            } else {
                others.push(&mut self.transactions, id);
            }
        }
        self.block_traffic.job(number).pending = others;
    }

    /// Reads what the next program of a logical block has to copy.
    fn prepare_program(&mut self, number: u32) {
        let (next, group) = (self.logical(number).next, self.ftl.shape().units_per_program);
        self.block_traffic.job(number).busy = true;
        let mut open: Option<Transaction> = None;
        for offset in next..next + group {
            let Some(from) = self.ftl.old_place(number, offset) else { continue };
            if self.is_pending(number, offset) {
                continue;
            }
            let block = self.ftl.blocks.depend(from);
            let lpn = self.ftl.map.owner(from);
            self.block_traffic.job(number).copies.push(Copy { lpn, from, to: Ppn(0) });
            let per_page = self.ftl.shape().units_per_page;
            match &mut open {
                Some(read) if per_page.divide(read.place.0) == per_page.divide(from.0) => read.units += 1,
                _ => {
                    let mut read = Transaction::new(Kind::MergeRead, Class::Gc).of_logical_block(number);
                    (read.plane, read.place) = (self.ftl.blocks.plane_of(block), from);
                    read.units = self.ftl.shape().pages_per_unit as u16;
                    self.block_traffic.job(number).reads += 1;
                    if let Some(whole) = open.replace(read) {
                        self.dispatch(whole);
                    }
                }
            }
        }
        match open {
            Some(last) => self.dispatch(last),
            None => self.queue_program(number),
        }
    }

    /// Whether a write of an offset is pending: its unit need not be copied.
    fn is_pending(&mut self, number: u32, offset: u32) -> bool {
        let first = number * self.ftl.logical_blocks().units();
        let mut id = self.block_traffic.job(number).pending.first();
        while id.is_some() && (self.transactions[id].trimmed || self.transactions[id].lpn.0 != first + offset) {
            id = self.transactions[id].next;
        }
        id.is_some()
    }

    pub(super) fn finish_merge_read(&mut self, id: TransactionId) {
        let number = self.transactions.remove(id).logical_block();
        let job = self.block_traffic.job(number);
        job.reads -= 1;
        if job.reads == 0 {
            self.queue_program(number);
        }
    }

    /// The next program of a logical block waits for its LUN: as a write of the host, where it holds any.
    fn queue_program(&mut self, number: u32) {
        let mut writes = std::mem::take(&mut self.block_traffic.writes);
        self.take_pending(number, 1, &mut writes);
        let first = writes.pop();
        self.block_traffic.writes = writes;
        if let Some((_, id)) = first {
            self.observe_unstalled(id, self.array.lun_of(self.transactions[id].plane));
            return self.line_up(id);
        }
        let mut merge = Transaction::new(Kind::MergeWrite, Class::Gc).of_logical_block(number);
        merge.plane = self.ftl.block_home(number);
        self.dispatch(merge);
    }

    /// Binds a write with all others of its program, and what is copied beside them.
    pub(super) fn start_write_in_block(&mut self, id: TransactionId, at: Spot) -> bool {
        let (number, offset) = self.ftl.logical_blocks().split(self.transactions[id].lpn);
        let mut writes = std::mem::take(&mut self.block_traffic.writes);
        writes.push((offset, id));
        self.take_pending(number, usize::MAX, &mut writes);
        let lun = self.array.lun_of(self.transactions[id].plane);
        for &(_, other) in &writes[1..] {
            self.observe_unstalled(other, lun);
        }
        self.bind_program(number, &writes, Class::HostProgram, at);
        writes.clear();
        self.block_traffic.writes = writes;
        true
    }

    pub(super) fn start_merge_write(&mut self, id: TransactionId, at: Spot) -> bool {
        let merge = self.transactions[id];
        self.transactions[id].place = self.bind_program(merge.logical_block(), &[], merge.class, at);
        true
    }

    /// Where a write or a copy goes that is first in line: with all others of its program at the next place of its
    /// logical block.
    pub(super) fn place_of_program(&self, id: TransactionId) -> Ppn {
        let transaction = self.transactions[id];
        let map =
            self.ftl.block_map.as_deref().unwrap_or_else(|| unreachable!("only block mapping has logical blocks"));
        let number = match transaction.kind {
            Kind::Write => map.split(transaction.lpn).0,
            _ => transaction.logical_block(),
        };
        let LogicalBlock { current, next, .. } = map.logical[number as usize];
        Ppn(self.ftl.blocks.first_unit(BlockId(current)).0 + next)
    }

    /// Returns its place.
    fn bind_program(&mut self, number: u32, writes: &[(u32, TransactionId)], class: Class, at: Spot) -> Ppn {
        let (LogicalBlock { current, next, .. }, group) = (self.logical(number), self.ftl.shape().units_per_program);
        let start = Ppn(self.ftl.blocks.first_unit(BlockId(current)).0 + next);
        (0..group).for_each(|unit| self.ftl.map.set_owner(Ppn(start.0 + unit), PADDING));
        for (index, &(offset, id)) in writes.iter().enumerate() {
            self.bind(id, Ppn(start.0 + offset - next));
            self.transactions[id].next = writes.get(index + 1).map_or(TransactionId::NONE, |&(_, id)| id);
        }
        // What was superseded since it was read, or is superseded by these writes, is not copied.
        let mut copies = std::mem::take(&mut self.block_traffic.job(number).copies);
        copies.retain_mut(|copy| {
            let (_, offset) = self.ftl.logical_blocks().split(Lpn(copy.lpn));
            copy.to = Ppn(start.0 + offset - next);
            if self.ftl.blocks.is_valid(copy.from) && self.ftl.map.owner(copy.to) == PADDING {
                self.ftl.map.set_owner(copy.to, copy.lpn);
                return true;
            }
            let block = self.ftl.blocks.block_of(copy.from);
            self.release(block);
            false
        });
        let cause = if writes.is_empty() { ProgramCause::Merge } else { ProgramCause::Host };
        self.ftl.note_program(cause, (writes.len() + copies.len()) as u32);
        let logical = &mut self.ftl.logical_blocks().logical[number as usize];
        logical.next = next + group;
        logical.note_program(copies.iter().map(|copy| copy.to.0 - start.0 + next), writes.iter().map(|write| write.0));
        self.block_traffic.job(number).copies = copies;
        let plane = self.ftl.block_home(number);
        let tag = writes.first().map_or(u64::MAX, |&(_, id)| self.front.tag_of(self.transactions[id].request()));
        self.put(at, self.program(class, plane, start, tag));
        start
    }

    pub(super) fn finish_merge_write(&mut self, id: TransactionId) {
        let merge = self.transactions.remove(id);
        self.store_program(merge.place, TransactionId::NONE);
        self.finish_in_block(merge.logical_block(), merge.plane, merge.place);
    }

    /// The first unit of the program that a place is part of.
    pub(super) fn start_of_program(&self, place: Ppn) -> Ppn {
        Ppn(place.0 - self.ftl.blocks.offset_in_block(place) % self.ftl.shape().units_per_program)
    }

    /// With verification: the contents of a program of a logical block, in the order of places.
    pub(super) fn store_program(&mut self, start: Ppn, first: TransactionId) {
        let Some(contents) = self.observers.as_ref().and_then(|observers| observers.contents.as_ref()) else { return };
        let number = self.ftl.blocks.block_of(start).0;
        for place in (start.0..start.0 + self.ftl.shape().units_per_program).map(Ppn) {
            let lpn = self.ftl.map.owner(place);
            if lpn == PADDING {
                continue;
            }
            let mut id = first;
            while id.is_some() && self.transactions[id].place != place {
                id = self.transactions[id].next;
            }
            let job = self.ftl.logical_blocks().split(Lpn(lpn)).0;
            let copy = self.block_traffic.job(job).copies.iter().find(|copy| copy.to == place).map(|copy| copy.from);
            let Some(media) = &mut self.ftl.media else { return };
            match copy {
                _ if id.is_some() => media.program(place, contents.slot(id)),
                Some(from) => media.copy(from, place),
                None => debug_assert!(false, "block {number}: what is programmed is a write or a copy"),
            }
        }
    }

    /// A program of a logical block has ended, and its writes with it.
    pub(super) fn finish_in_block(&mut self, number: u32, plane: PlaneId, start: Ppn) {
        let mut copies = std::mem::take(&mut self.block_traffic.job(number).copies);
        for copy in copies.drain(..) {
            self.map_copy(Lpn(copy.lpn), copy.from, copy.to);
            let block = self.ftl.blocks.block_of(copy.from);
            self.release(block);
        }
        let job = self.block_traffic.job(number);
        (job.copies, job.busy) = (copies, false);
        self.program_ended(start);
        self.go_on_in_block(number);
        self.tasks.push(Task::FreeBlocks(plane));
    }
}
