//! What leaves the buffer, and who waits for it.

use std::collections::VecDeque;

use super::list::{Linked, NONE};
use super::{Buffer, Dirt, Pick, Why};
use crate::sim::id::{Lpn, RequestId, TransactionId};
use crate::sim::memory::prefetch;

/// Barriers: each waits for all units that became dirty before it, and completes a flush.
///
/// Units are counted by the first barrier behind them. The last count is that of the barrier which has not come yet.
#[derive(Clone, Debug)]
pub(super) struct Barriers {
    /// The number of the first, which goes round.
    first: u32,
    counts: VecDeque<(u64, RequestId)>,
}

impl Default for Barriers {
    fn default() -> Self {
        Barriers { first: 0, counts: VecDeque::from([(0, RequestId::NONE)]) }
    }
}

impl Barriers {
    /// A unit became dirty; returns its epoch.
    #[inline]
    pub fn add(&mut self) -> u32 {
        let last = self.counts.len() - 1;
        self.counts[last].0 += 1;
        self.first.wrapping_add(last as u32)
    }

    /// A unit of `epoch` is in flash, or gone.
    #[inline]
    pub fn done(&mut self, epoch: u32) {
        self.counts[epoch.wrapping_sub(self.first) as usize].0 -= 1;
    }

    /// `request` waits for all that is dirty by now; false where nothing is.
    fn wait(&mut self, request: RequestId) -> bool {
        if self.counts.len() == 1 && self.counts[0].0 == 0 {
            return false;
        }
        let last = self.counts.len() - 1;
        self.counts[last].1 = request;
        self.counts.push_back((0, RequestId::NONE));
        true
    }

    /// Whether any request waits.
    fn any_wait(&self) -> bool {
        self.counts.len() > 1
    }

    /// A request that need not wait any more.
    fn take(&mut self) -> Option<RequestId> {
        match self.counts.front() {
            Some(&(0, request)) if request.is_some() => {
                self.counts.pop_front();
                self.first = self.first.wrapping_add(1);
                Some(request)
            }
            _ => None,
        }
    }

    /// All requests that wait.
    fn take_all(&mut self) -> Vec<RequestId> {
        let waiting = self.counts.iter_mut().map(|(_, request)| std::mem::replace(request, RequestId::NONE));
        waiting.filter(|request| request.is_some()).collect()
    }

    /// Units that barriers wait for, or would.
    pub fn pending(&self) -> u64 {
        self.counts.iter().map(|(count, _)| count).sum()
    }
}

impl Buffer {
    /// `request` waits until all that is dirty now is in flash; false where nothing is.
    pub fn wait_for_all(&mut self, request: RequestId) -> bool {
        if self.protected || !self.barriers.wait(request) {
            return false;
        }
        self.write_out_all();
        true
    }

    /// Whether a flush waits.
    #[inline]
    pub fn is_flushing(&self) -> bool {
        self.barriers.any_wait()
    }

    /// A request whose barrier is through.
    #[inline]
    pub fn take_waiter(&mut self) -> Option<RequestId> {
        self.barriers.take()
    }

    /// The flushes that wait, which will wait no more.
    pub fn take_waiters(&mut self) -> Vec<RequestId> {
        self.barriers.take_all()
    }

    /// Selects all dirty units for write-back.
    pub fn write_out_all(&mut self) {
        for list in 0..self.dirty.len() {
            while self.dirty[list].count > 0 {
                self.send_out(self.dirty[list].waiting.first());
            }
        }
    }

    /// Returns `true` if a dirty unit is not selected for write-back yet.
    pub fn has_dirty(&self) -> bool {
        self.dirty_units > 0
    }

    /// Returns the number of dirty units in a list that are not selected for write-back yet.
    #[inline]
    pub fn dirty_in(&self, list: u16) -> u32 {
        self.dirty[usize::from(list)].count
    }

    /// Picks the oldest of these units. Returns `None` if there is none.
    pub fn pick_oldest(&mut self, list: u16) -> Option<Pick> {
        let entry = self.dirty[usize::from(list)].waiting.first();
        (entry != NONE).then(|| self.pick(entry, RequestId::NONE))
    }

    /// Evicts units until those that wait have room coming, and down to the low water mark where the buffer is above
    /// the high one. One block is padded at a time: what is behind it waits.
    #[inline]
    pub fn make_room(&mut self) {
        while self.waiting > self.free.len() as u32 + self.coming && self.evict(Why::Room) {}
        let used = |buffer: &Buffer| (buffer.entries.len() - buffer.free.len()) as u32 - buffer.coming;
        self.above_low_water |= used(self) > self.high;
        while self.above_low_water {
            self.above_low_water = used(self) > self.low;
            if self.above_low_water && !self.evict(Why::Water) {
                return;
            }
        }
    }

    /// Evicts so that what a read brings has room: only what flash has is dropped for it at once.
    pub fn make_room_for_fill(&mut self) {
        if self.free.is_empty() && self.coming == 0 && self.waiting == 0 {
            self.evict(Why::Fill);
        }
    }

    /// Evicts what the policy chooses; false where there is nothing.
    fn evict(&mut self, why: Why) -> bool {
        if !self.padding.is_empty() {
            return false;
        }
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        self.eviction.take(&mut victims);
        self.counts.evictions[why as usize] += victims.len() as u64;
        // What is clean forgets its unit when it goes.
        let first = victims.first().map(|&entry| self.entries[entry as usize].lpn);
        let mut any_dirty = false;
        for &entry in &victims {
            let state = &mut self.entries[entry as usize];
            state.leaving = true;
            self.coming += 1;
            any_dirty |= state.is_dirty();
            match state.dirt {
                Dirt::Waiting => self.send_out(entry),
                Dirt::Clean if state.flights == 0 => {
                    self.counts.evicted_clean += 1;
                    self.coming -= 1;
                    self.release(entry);
                }
                Dirt::Clean | Dirt::Out => {}
            }
        }
        if let (Some(per_block), Some(first), true) = (self.eviction.padded_block(), first, any_dirty) {
            self.pad(first / per_block, per_block);
        }
        let any = !victims.is_empty();
        self.victims = victims;
        self.prefetch_victims();
        any
    }

    /// Asks for what is known of units that are evicted soon, several ahead, since several are evicted in a row when
    /// planes that worked together end: of one for its entry, and of a nearer one, whose entry has come meanwhile, for
    /// its unit, where that goes at once.
    #[inline]
    fn prefetch_victims(&mut self) {
        self.soon.rotate_left(1);
        self.soon[3] = self.eviction.soon(6);
        prefetch(&self.entries, self.soon[3] as usize);
    }

    /// The units of a block that are not here are to be written with it.
    fn pad(&mut self, block: u32, per_block: u32) {
        let units = block * per_block..((block + 1) * per_block).min(self.index.len() as u32);
        for lpn in units {
            if self.entry(Lpn(lpn)).is_none() {
                self.padding.push_back(lpn);
            }
        }
    }

    /// Returns `true` if a unit is selected for write-back.
    #[inline]
    pub fn has_out(&self) -> bool {
        self.out_units > 0 || !self.padding.is_empty()
    }

    /// Returns the list that the next unit to write back is in, or `None` if no dirty unit is selected.
    #[inline]
    pub fn next_list(&self) -> Option<u16> {
        self.out_order.iter().copied().find(|&list| !self.dirty[usize::from(list)].out.is_empty())
    }

    /// Moves the first list to the end of the order, so that the next unit to write back comes from another list.
    pub fn turn(&mut self) {
        if let Some(list) = self.out_order.pop_front() {
            self.dirty[usize::from(list)].is_in_order = !self.dirty[usize::from(list)].out.is_empty();
            self.out_order.extend(Some(list).filter(|&list| self.dirty[usize::from(list)].is_in_order));
        }
    }

    /// Picks the next unit to write back.
    pub fn pick_next(&mut self) -> Option<Pick> {
        while self.out_units > 0 {
            let list = *self.out_order.front()?;
            match self.dirty[usize::from(list)].out.first() {
                NONE => self.turn(),
                entry => return Some(self.pick(entry, RequestId::NONE)),
            }
        }
        let lpn = self.padding.pop_front()?;
        Some(Pick { entry: Pick::PADDING, lpn, owner: RequestId::NONE, epoch: 0 })
    }

    /// The unit that is picked as the third after the next one, or evicted then.
    #[inline]
    pub fn upcoming(&self) -> Option<Lpn> {
        let next = self.out_order.front().map_or(NONE, |&list| self.dirty[usize::from(list)].out.first());
        let (mut entry, mut left) = (next, 3);
        while left > 0 && entry != NONE {
            entry = self.entries.behind(entry);
            left -= 1;
        }
        let entry = if entry == NONE { self.soon[0] } else { entry };
        (entry != NONE).then(|| Lpn(self.entries[entry as usize].lpn))
    }

    /// A dirty unit that would fill the program of one that is written out, to be written with it; it leaves with it,
    /// unless it is to stay.
    pub fn pick_companion(&mut self, lpn: Lpn) -> Option<Pick> {
        let entry = self.entry(lpn)?;
        self.entries[entry as usize].is_dirty().then(|| self.pick(entry, RequestId::NONE))
    }

    /// A dirty unit is on its way to flash, for `owner`.
    pub fn pick(&mut self, entry: u32, owner: RequestId) -> Pick {
        self.unlink_dirty(entry);
        let state = &mut self.entries[entry as usize];
        state.flights += 1;
        Pick { entry, lpn: state.lpn, owner, epoch: state.epoch }
    }

    /// Whether what was picked is not to be written any more.
    pub fn is_void(&self, pick: &Pick) -> bool {
        match pick.entry {
            Pick::PADDING => self.entry(Lpn(pick.lpn)).is_some(),
            entry => self.entries[entry as usize].lpn == NONE,
        }
    }

    /// Asks for what is known of the unit that a write writes out.
    #[inline]
    pub fn prefetch_landing(&self, id: TransactionId) {
        if let Some(Some(pick)) = self.flights.get(id) {
            prefetch(&self.entries, pick.entry as usize);
        }
    }

    /// Asks for what is written out by a write.
    #[inline]
    pub fn prefetch_flight(&self, id: TransactionId) {
        self.flights.prefetch(id);
    }

    /// What was picked is in flash, or void.
    pub fn landed(&mut self, pick: &Pick) {
        if pick.entry == Pick::PADDING {
            return;
        }
        self.barriers.done(pick.epoch);
        let state = &mut self.entries[pick.entry as usize];
        state.flights -= 1;
        if state.flights > 0 || state.is_dirty() {
            return;
        }
        if state.lpn == NONE {
            self.coming -= 1;
            return self.release(pick.entry);
        }
        self.volatile -= 1;
        if state.leaving {
            self.coming -= 1;
            self.release(pick.entry);
        } else if self.keeps {
            self.eviction.on_clean(pick.entry);
        } else {
            self.eviction.on_remove(pick.entry);
            self.release(pick.entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_wait_for_what_came_before_them_though_their_numbers_go_round() {
        let mut barriers = Barriers { first: u32::MAX, ..Barriers::default() };
        let before = barriers.add();
        assert!(barriers.wait(RequestId(7)));
        let behind = barriers.add();
        assert_eq!((before, behind), (u32::MAX, 0));
        assert!(barriers.wait(RequestId(8)));
        barriers.done(behind);
        assert_eq!(barriers.take(), None, "one that came later is through, and waits for the one before it");
        barriers.done(before);
        assert_eq!((barriers.take(), barriers.take(), barriers.take()), (Some(RequestId(7)), Some(RequestId(8)), None));
        assert_eq!((barriers.pending(), barriers.any_wait()), (0, false));
    }
}
