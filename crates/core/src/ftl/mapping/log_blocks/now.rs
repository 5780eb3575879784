//! Log-block mappings without time: the same choices, with each operation done at once.

use super::options::StreamKind;
use super::slots::{NOWHERE, Slot};
use super::{LogBlocks, Rules};
use crate::ftl::Ftl;
use crate::ftl::mapping::{Location, PADDING};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, Ppn};

impl<R: Rules> LogBlocks<R> {
    /// Writes a unit. Requests are not known without time, so units that follow one another count as one.
    pub(super) fn place_now(&mut self, ftl: &mut Ftl, lpn: Lpn, old: Location, contents: Option<(u32, u32, u32)>) {
        self.run = if lpn.0 == self.last.wrapping_add(1) { self.run + 1 } else { 1 };
        self.last = lpn.0;
        let stream = self.classify(lpn, self.run, false);
        ftl.counters.log_blocks.units[stream] += 1;
        let (number, offset) = self.layout.split(lpn);
        let set = self.layout.set_of(number);
        let is_shared = self.is_shared(stream);
        let found =
            if is_shared { self.shared_slot_now(ftl, set, stream) } else { self.own_slot_now(ftl, set, stream, lpn) };
        let Some(slot) = found else { return ftl.refuse_unit() };
        let in_order = self.streams[stream].kind == StreamKind::InOrder;
        if in_order {
            self.fill_now(ftl, slot, offset);
        }
        let at = self.slot(slot).next;
        self.slot(slot).ordered &= at == offset;
        let ppn = self.program_now(ftl, slot, lpn.0, ProgramCause::Host);
        ftl.written_now(lpn, old, ppn, contents);
        if is_shared { self.put_back_now(set, stream, slot) } else { self.note_taken(slot, lpn) }
    }

    /// Returns the log block that takes the next write of a stream, or `None` if the device is worn out.
    fn shared_slot_now(&mut self, ftl: &mut Ftl, set: u32, stream: usize) -> Option<u32> {
        while !ftl.is_worn_out() {
            let StreamKind::Shared(stripe) = self.streams[stream].kind else { unreachable!("the stream is shared") };
            let shared = &mut self.set(set).shared[stream];
            if shared.open >= stripe || (shared.open > 0 && self.empty_slot(set, stream).is_none()) {
                let shared = &mut self.set(set).shared[stream];
                return Some(shared.idle.pop_front().unwrap_or_else(|| unreachable!("no log block is busy")));
            }
            match self.empty_slot(set, stream) {
                // A log block in the middle of a page stays the first.
                Some(slot) => self.open_shared(ftl, set, stream, slot),
                None => self.reclaim_shared_now(ftl, set, stream),
            }
        }
        None
    }

    /// Returns a shared log block that has taken a write to the queue. It stays the first until its page is full.
    fn put_back_now(&mut self, set: u32, stream: usize, slot: u32) {
        let (next, units, group) = (self.slot(slot).next, self.layout.units(), self.layout.group());
        let shared = &mut self.set(set).shared[stream];
        if next >= units {
            shared.open -= 1;
        } else if next.is_multiple_of(group) {
            shared.idle.push_back(slot);
        } else {
            shared.idle.push_front(slot);
        }
    }

    /// Returns the log block that takes the write of a unit, or `None` if the device is worn out.
    fn own_slot_now(&mut self, ftl: &mut Ftl, set: u32, stream: usize, lpn: Lpn) -> Option<u32> {
        while !ftl.is_worn_out() {
            if let Some(slot) = self.log_for(lpn) {
                return Some(slot);
            }
            let log = self.log_of[self.layout.split(lpn).0 as usize];
            if log != NOWHERE {
                self.reclaim_own_now(ftl, set, log);
            } else if let Some(slot) = self.empty_slot(set, stream) {
                self.open_log(ftl, slot, lpn);
            } else if let Some(slot) = self.least_recent(set, stream) {
                self.reclaim_own_now(ftl, set, slot);
            }
        }
        None
    }

    fn reclaim_own_now(&mut self, ftl: &mut Ftl, set: u32, slot: u32) {
        let number = self.slot(slot).number;
        if number == NOWHERE {
            self.pad_now(ftl, slot);
            return self.reclaim_blocks_now(ftl, set, vec![slot]);
        }
        ftl.counters.log_blocks.note_reclaimed(1);
        if self.is_in_place(ftl, slot) {
            self.skip_trims(ftl, number, self.slots[slot as usize].next);
            self.fill_now(ftl, slot, self.layout.units());
            return self.end_merge_now(ftl, set, slot);
        }
        self.pad_now(ftl, slot);
        if ftl.blocks.block(BlockId(self.slot(slot).block)).valid > 0 {
            self.merge_now(ftl, set, number);
        }
        self.erase_log_now(ftl, set, slot);
    }

    fn reclaim_shared_now(&mut self, ftl: &mut Ftl, set: u32, stream: usize) {
        let mut victims = Vec::new();
        self.choose_victims(ftl, set, stream, &mut victims);
        self.reclaim_blocks_now(ftl, set, victims);
    }

    /// Reclaims log blocks of several logical blocks.
    fn reclaim_blocks_now(&mut self, ftl: &mut Ftl, set: u32, victims: Vec<u32>) {
        let mut numbers = Vec::new();
        self.numbers_of(ftl, &victims, &mut numbers);
        for number in numbers.into_iter().rev() {
            // Blocks that wear out during the merges may leave too few for the rest.
            if ftl.is_worn_out() {
                return;
            }
            self.merge_now(ftl, set, number);
        }
        victims.into_iter().for_each(|slot| self.erase_log_now(ftl, set, slot));
    }

    /// Builds a data block from the newest copies of all units of a logical block.
    fn merge_now(&mut self, ftl: &mut Ftl, set: u32, number: u32) {
        let slot = self.empty_slot(set, self.streams.len());
        let slot = slot.unwrap_or_else(|| unreachable!("merges without time end at once"));
        self.open(ftl, slot, number);
        self.skip_trims(ftl, number, 0);
        self.fill_now(ftl, slot, self.layout.units());
        self.end_merge_now(ftl, set, slot);
    }

    fn end_merge_now(&mut self, ftl: &mut Ftl, set: u32, slot: u32) {
        if let Some(old) = self.end_merge(ftl, slot) {
            self.erase_now(ftl, set, old);
        }
    }

    fn erase_log_now(&mut self, ftl: &mut Ftl, set: u32, slot: u32) {
        let block = self.leave_log(slot);
        self.erase_now(ftl, set, block);
    }

    fn erase_now(&mut self, ftl: &mut Ftl, set: u32, block: BlockId) {
        debug_assert_eq!(ftl.blocks.block(block).valid, 0, "block {} still holds data", block.0);
        ftl.blocks.await_erase(block);
        self.set(set).free += u32::from(ftl.erase_or_retire_now(block));
    }

    /// Programs the next unit of a slot.
    fn program_now(&mut self, ftl: &mut Ftl, slot: u32, lpn: u32, cause: ProgramCause) -> Ppn {
        let ppn = Ppn(self.first_unit(ftl, slot) + self.slot(slot).next);
        ftl.program_in_block_now(ppn, cause, lpn);
        self.slot(slot).next += 1;
        ppn
    }

    /// Copies units into a slot up to an offset, as [`LogBlocks::fill_until`] does.
    fn fill_now(&mut self, ftl: &mut Ftl, slot: u32, until: u32) {
        let (number, is_target) = (self.slot(slot).number, self.stream_of_slot(slot) == self.streams.len());
        let group = self.layout.group();
        let mut last_page = u32::MAX;
        let source = |scheme: &Self, ftl: &Ftl, offset: u32| match scheme.in_data(ftl, number, offset) {
            None if is_target => ftl.ppn_in_flash(scheme.layout.unit(number, offset)?),
            found => found,
        };
        while self.slot(slot).next < until {
            let next = self.slot(slot).next;
            let whole = next.is_multiple_of(group) && next + group <= until;
            if whole && (next..next + group).all(|offset| source(self, ftl, offset).is_none()) {
                self.skip(ftl, slot, next + group);
                continue;
            }
            let Some(from) = source(self, ftl, next) else {
                self.program_now(ftl, slot, PADDING, ProgramCause::Padding);
                continue;
            };
            self.slot(slot).copied = true;
            let ppn = self.program_now(ftl, slot, ftl.map.owner(from), ProgramCause::Merge);
            ftl.copy_now(from, ppn, &mut last_page);
        }
    }

    /// Fills the last page of a slot, if it has begun.
    fn pad_now(&mut self, ftl: &mut Ftl, slot: u32) {
        let stream = self.stream_of_slot(slot);
        let end = self.slot(slot).next.next_multiple_of(self.layout.group());
        if self.streams[stream].kind == StreamKind::InOrder {
            self.fill_now(ftl, slot, end);
        }
        while self.slot(slot).next < end {
            self.program_now(ftl, slot, PADDING, ProgramCause::Padding);
        }
        if self.is_of_one(stream) {
            let slot = self.slot(slot);
            slot.expected = slot.expected.max(slot.next);
        }
    }

    /// Completes the programs that functional writes have started.
    pub(super) fn seal_logs(&mut self, ftl: &mut Ftl) {
        for slot in 0..self.slots.len() as u32 {
            let Slot { next, .. } = self.slots[slot as usize];
            if self.slot(slot).is_empty() || next.is_multiple_of(self.layout.group()) {
                continue;
            }
            self.pad_now(ftl, slot);
            let (set, stream) = (self.set_of_slot(slot), self.stream_of_slot(slot));
            if self.is_shared(stream) {
                self.set(set).shared[stream].idle.retain(|&idle| idle != slot);
                self.put_back_now(set, stream, slot);
            }
        }
    }
}
