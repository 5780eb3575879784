//! Merges in time: data blocks are built from the newest copies of their units.

use super::options::{Reclaim, StreamKind};
use super::slots::{Merging, NOWHERE};
use super::{LogBlocks, Rules, call, step};
use crate::ftl::Ftl;
use crate::ftl::mapping::{Context, Location, MergeDefect, PADDING, WaitCause, replacement};
use crate::ftl::space::BlockState;
use crate::metrics::counters::MergeKind;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::work::Purpose;

impl<R: Rules> LogBlocks<R> {
    /// Takes the next steps in a set, where space was freed or a merge has ended.
    pub(super) fn serve(&mut self, cx: &mut (impl Context + ?Sized), set: u32) {
        if cx.ftl().is_read_only() {
            return;
        }
        self.continue_reclaim(cx, set);
        self.serve_waiting(cx, set);
        for stream in 0..self.streams.len() {
            self.feed(cx, set, stream);
        }
    }

    /// Returns `true` if a log block can become the data block: all units that the data block still has come after
    /// those of the log block, which are at their offsets.
    pub(super) fn is_in_place(&self, ftl: &Ftl, slot: u32) -> bool {
        let slot = &self.slots[slot as usize];
        slot.ordered && (0..slot.next).all(|offset| self.in_data(ftl, slot.number, offset).is_none())
    }

    /// Starts to reclaim the log block of a logical block, if it is idle and nothing else is reclaimed.
    pub(super) fn reclaim_own(&mut self, cx: &mut (impl Context + ?Sized), set: u32, slot: u32) {
        let log = &self.slots[slot as usize];
        let is_written = log.number != NOWHERE && self.data_slot(log.number).is_some();
        if self.sets[set as usize].merging.is_active() || log.busy || !log.pending.is_empty() || is_written {
            return;
        }
        let (number, next, in_place) = (log.number, log.next, self.is_in_place(cx.ftl(), slot));
        self.slot(slot).closed = true;
        if number == NOWHERE {
            let mut merging = std::mem::take(&mut self.set(set).merging);
            merging.victims.push(slot);
            return self.begin_reclaim(cx, set, merging);
        }
        cx.ftl().counters.log_blocks.note_reclaimed(1);
        if in_place {
            self.slot(slot).merging = true;
            self.set(set).merging.running += 1;
            self.skip_trims(cx.ftl(), number, next);
            return cx.tasks().push(call(step::SLOT, slot));
        }
        let merging = &mut self.set(set).merging;
        merging.victims.push(slot);
        merging.todo.push(number);
        cx.tasks().push(call(step::SET, set));
    }

    /// Starts to reclaim shared log blocks of a stream, if nothing else is reclaimed.
    pub(super) fn reclaim_shared(&mut self, cx: &mut (impl Context + ?Sized), set: u32, stream: usize) {
        if self.sets[set as usize].merging.is_active() {
            return;
        }
        let mut merging = std::mem::take(&mut self.set(set).merging);
        self.choose_victims(cx.ftl(), set, stream, &mut merging.victims);
        self.begin_reclaim(cx, set, merging);
    }

    /// Starts the full merges for log blocks of several logical blocks that are reclaimed.
    fn begin_reclaim(&mut self, cx: &mut (impl Context + ?Sized), set: u32, mut merging: Merging) {
        self.numbers_of(cx.ftl(), &merging.victims, &mut merging.todo);
        if !merging.victims.is_empty() {
            cx.tasks().push(call(step::SET, set));
        }
        self.set(set).merging = merging;
    }

    /// Chooses the full log blocks of a stream that are reclaimed.
    pub(super) fn choose_victims(&self, ftl: &Ftl, set: u32, stream: usize, victims: &mut Vec<u32>) {
        let is_full = |slot: &u32| {
            let slot = &self.slots[*slot as usize];
            !slot.busy && slot.next >= self.layout.units()
        };
        let slots = self.slots_of(set, stream);
        match self.reclaim {
            Reclaim::All if slots.clone().all(|slot| is_full(&slot)) => victims.extend(slots),
            Reclaim::All => {}
            Reclaim::One => victims.extend(slots.filter(is_full).min_by_key(|&slot| {
                let slot = &self.slots[slot as usize];
                self.rules.rank(u32::from(ftl.blocks.block(BlockId(slot.block)).valid), slot.used)
            })),
        }
    }

    /// Adds the logical blocks that have valid units in log blocks that are reclaimed, in descending order, because
    /// they are taken from the end. Counts them for each log block.
    pub(super) fn numbers_of(&self, ftl: &mut Ftl, victims: &[u32], numbers: &mut Vec<u32>) {
        for &slot in victims {
            let first = self.first_unit(ftl, slot);
            let before = numbers.len();
            let valid = (first..first + self.layout.units()).map(Ppn).filter(|&ppn| ftl.blocks.is_valid(ppn));
            numbers.extend(valid.map(|ppn| self.layout.split(Lpn(ftl.map.owner(ppn))).0));
            numbers[before..].sort_unstable();
            let distinct = numbers[before..].chunk_by(|a, b| a == b).count();
            ftl.counters.log_blocks.note_reclaimed(distinct as u64);
        }
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.dedup();
    }

    /// Starts the next full merges of a set, and ends the reclaim if there are none.
    fn continue_reclaim(&mut self, cx: &mut (impl Context + ?Sized), set: u32) {
        let targets = self.streams.len();
        while !self.set(set).merging.victims.is_empty() && self.set(set).merging.running < self.merges {
            let Some(&number) = self.set(set).merging.todo.last() else { break };
            if !self.is_in_victims(cx, set, number) {
                self.set(set).merging.todo.pop();
                continue;
            }
            let Some(slot) = self.empty_slot(set, targets) else { return };
            if self.data_slot(number).is_some() || !self.may_open(cx, set) {
                return;
            }
            self.set(set).merging.todo.pop();
            self.open(cx.ftl(), slot, number);
            self.skip_trims(cx.ftl(), number, 0);
            self.slot(slot).merging = true;
            let merging = &mut self.set(set).merging;
            (merging.running, merging.copies) = (merging.running + 1, true);
            cx.tasks().push(call(step::SLOT, slot));
        }
        let merging = &mut self.set(set).merging;
        if merging.running > 0 || merging.victims.is_empty() || !merging.todo.is_empty() {
            return;
        }
        let kind = std::mem::take(&mut merging.copies).then_some(MergeKind::Full);
        let mut victims = std::mem::take(&mut merging.victims);
        for slot in victims.drain(..) {
            let block = self.leave_log(slot);
            self.give_up(cx, set, block, kind);
        }
        self.set(set).merging.victims = victims;
    }

    /// Returns `true` if a log block that is reclaimed still has units of a logical block.
    fn is_in_victims(&mut self, cx: &mut (impl Context + ?Sized), set: u32, number: u32) -> bool {
        (0..self.layout.units()).any(|offset| {
            let Some(ppn) = self.newest(cx, number, offset) else { return false };
            let block = cx.ftl().blocks.block_of(ppn);
            self.sets[set as usize].merging.victims.contains(&self.slot_of[block.index()])
        })
    }

    /// Returns the address of the newest copy of a unit that is in flash, if the unit is mapped. A write that is not
    /// bound yet does not count, because the older copy must be kept until then.
    fn newest(&self, cx: &mut (impl Context + ?Sized), number: u32, offset: u32) -> Option<Ppn> {
        if let Some(ppn) = self.in_data(cx.ftl(), number, offset) {
            return Some(ppn);
        }
        let lpn = self.layout.unit(number, offset)?;
        let (ftl, ops) = cx.ftl_and_ops();
        ftl.newest_in_flash(ops, lpn)
    }

    /// Copies units into a slot up to an offset. Log blocks get those of the data block, and targets of merges get all.
    /// Pages without any are skipped. Returns `true` when the offset is reached.
    pub(super) fn fill_until(&mut self, cx: &mut (impl Context + ?Sized), slot: u32, until: u32) -> bool {
        let group = self.layout.group();
        let (number, purpose) = (self.slot(slot).number, self.purpose_of(slot));
        while self.slot(slot).next < until {
            let next = self.slot(slot).next;
            let mut any = false;
            for offset in next..next + group {
                if let Some(from) = self.source_of(cx, slot, number, offset) {
                    self.slot(slot).gather.add(cx, (slot, purpose), from);
                    any = true;
                }
            }
            if any {
                self.slot(slot).busy = true;
                cx.note_cause(self.queue_of_slot(slot), WaitCause::Merge);
                self.slot(slot).gather.is_ready(cx);
                return false;
            }
            self.skip(cx.ftl(), slot, next + group);
        }
        true
    }

    /// Returns the address from which a merge copies a unit into the block of a slot, if it does.
    pub(super) fn source_of(
        &self,
        cx: &mut (impl Context + ?Sized),
        slot: u32,
        number: u32,
        offset: u32,
    ) -> Option<Ppn> {
        match self.purpose_of(slot) {
            Purpose::FullMerge => self.newest(cx, number, offset),
            _ => self.in_data(cx.ftl(), number, offset),
        }
    }

    /// Skips the pages of a slot before an offset.
    pub(super) fn skip(&mut self, ftl: &mut Ftl, slot: u32, until: u32) {
        let (first, next) = (self.first_unit(ftl, slot), self.slot(slot).next);
        (first + next..first + until).for_each(|unit| ftl.map.set_owner(Ppn(unit), PADDING));
        self.unwritten += u64::from(until - next);
        self.slot(slot).next = until;
    }

    /// Takes the next step of a merge.
    pub(super) fn continue_merge(&mut self, cx: &mut (impl Context + ?Sized), slot: u32) {
        let is_early =
            cx.ftl().merge_defect == Some(MergeDefect::EarlySwitch) && self.stream_of_slot(slot) < self.streams.len();
        let end = self.end_of_copies(cx, slot);
        if is_early || self.fill_until(cx, slot, end) {
            let (set, kind) = (self.set_of_slot(slot), self.kind_of_merge(slot));
            if let Some(old) = self.end_merge(cx.ftl(), slot) {
                self.give_up(cx, set, old, Some(kind));
            }
            self.set(set).merging.running -= 1;
            cx.tasks().push(call(step::SET, set));
        }
    }

    /// Takes the units of a logical block off the list of trims. A merge that copies units from an offset on would have
    /// copied those that were listed.
    pub(super) fn skip_trims(&mut self, ftl: &mut Ftl, number: u32, from: u32) {
        for offset in 0..self.layout.units() {
            let listed = self.layout.unit(number, offset).is_some_and(|lpn| self.trims.remove(lpn));
            if ftl.merge_defect == Some(MergeDefect::ForgottenTrim) && listed && offset >= from {
                self.restore(ftl, number, offset);
            }
            ftl.counters.log_blocks.copies_saved += u64::from(listed && offset >= from);
        }
    }

    /// Test hook: maps a trimmed unit again, if the data block holds it.
    fn restore(&self, ftl: &mut Ftl, number: u32, offset: u32) {
        let data = self.data[number as usize];
        let Some(lpn) = self.layout.unit(number, offset).filter(|_| data != NOWHERE) else { return };
        let ppn = Ppn(ftl.blocks.first_unit(BlockId(data)).0 + offset);
        if ftl.map.owner(ppn) == lpn.0 && ftl.map.get(lpn) == Location::Unmapped {
            ftl.blocks.validate(ppn);
            ftl.map.set_flash(lpn, ppn);
        }
    }

    /// Empties the slot of a log block that is to be erased. Returns the block.
    pub(super) fn leave_log(&mut self, slot: u32) -> BlockId {
        let super::Slot { block, next, .. } = self.slots[slot as usize];
        self.unwritten += u64::from(self.layout.units() - next);
        self.leave(slot);
        BlockId(block)
    }

    /// Returns the kind of the merge that makes the block of a slot the data block.
    fn kind_of_merge(&self, slot: u32) -> MergeKind {
        let is_target = self.stream_of_slot(slot) == self.streams.len();
        match (is_target, self.slots[slot as usize].copied) {
            (true, _) => MergeKind::Full,
            (false, true) => MergeKind::Partial,
            (false, false) => MergeKind::Switch,
        }
    }

    /// Returns the number of merges in progress, by kind.
    pub(super) fn merges_in_progress(&self, ftl: &Ftl) -> [u32; MergeKind::ALL.len()] {
        let mut merges = [0; MergeKind::ALL.len()];
        let filled = (0..self.slots.len() as u32).filter(|&slot| self.slots[slot as usize].merging);
        let copying = filled.filter(|&slot| self.slots[slot as usize].busy).map(|slot| self.kind_of_merge(slot));
        let erases = self.sets.iter().flat_map(|set| &set.given_up);
        let erases = erases.filter(|(block, _)| ftl.blocks.block(*block).state == BlockState::AwaitingErase);
        copying.chain(erases.filter_map(|&(_, kind)| kind)).for_each(|kind| merges[kind as usize] += 1);
        merges
    }

    /// Makes the block of a slot the data block of its logical block. Returns the block that it replaces.
    pub(super) fn end_merge(&mut self, ftl: &mut Ftl, slot: u32) -> Option<BlockId> {
        ftl.counters.merges[self.kind_of_merge(slot) as usize] += 1;
        let super::Slot { block, number, next, .. } = self.slots[slot as usize];
        self.leave(slot);
        let old = std::mem::replace(&mut self.data[number as usize], block);
        if old != NOWHERE {
            self.unwritten += u64::from(self.layout.units() - self.filled(number));
        }
        self.set_filled(number, next);
        (old != NOWHERE).then_some(BlockId(old))
    }

    /// Has a block without valid units erased, once nothing depends on it. `kind` is that of the merge that has emptied
    /// it.
    fn give_up(&mut self, cx: &mut (impl Context + ?Sized), set: u32, block: BlockId, kind: Option<MergeKind>) {
        self.set(set).given_up.push((block, kind));
        replacement::give_up(cx, block, purpose_of_merge(kind));
    }

    /// Continues in the set of a plane after a block has been erased.
    pub(super) fn erase_ended(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        if self.own.erased(cx, plane) {
            return;
        }
        let set = self.layout.set_of_plane(plane);
        let blocks = &cx.ftl().blocks;
        self.set(set).given_up.retain(|&(block, _)| blocks.block(block).state == BlockState::AwaitingErase);
        self.note_free(cx.ftl(), set, 1);
        self.own.wake(cx);
        self.serve(cx, set);
    }

    /// Returns `true` if each log block of a stream belongs to one logical block.
    pub(super) fn is_of_one(&self, stream: usize) -> bool {
        matches!(self.streams[stream].kind, StreamKind::Own | StreamKind::InOrder)
    }

    /// Returns `true` if any log block takes the writes of a stream.
    pub(super) fn is_shared(&self, stream: usize) -> bool {
        self.streams.get(stream).is_some_and(|stream| matches!(stream.kind, StreamKind::Shared(_)))
    }
}

/// Returns the reason for the erase of a block that a merge of this kind has emptied.
fn purpose_of_merge(kind: Option<MergeKind>) -> Purpose {
    match kind {
        Some(MergeKind::Switch) => Purpose::SwitchMerge,
        Some(MergeKind::Partial) => Purpose::PartialMerge,
        Some(MergeKind::Full) => Purpose::FullMerge,
        None => Purpose::OfClass,
    }
}
