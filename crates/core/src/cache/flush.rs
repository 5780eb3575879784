//! Write-back and flushes: which units the buffer writes to flash, and which requests wait for them.

use std::collections::VecDeque;

use super::list::{Linked, NONE};
use super::{Buffer, Dirt, Entry, Pick, Why};
use crate::sim::id::{Lpn, RequestId, TransactionId};
use crate::sim::memory::prefetch;

/// Barriers. Each waits for all units that became dirty before it, and then completes a flush.
///
/// Each unit is counted by the first barrier after it. The last count belongs to the next barrier, which has not
/// arrived yet.
#[derive(Clone, Debug)]
pub(super) struct Barriers {
    /// Number of the first barrier. Numbers wrap around.
    first: u32,
    counts: VecDeque<(u64, RequestId)>,
}

impl Default for Barriers {
    fn default() -> Self {
        Barriers { first: 0, counts: VecDeque::from([(0, RequestId::NONE)]) }
    }
}

impl Barriers {
    /// Counts a unit that became dirty. Returns its epoch.
    #[inline]
    pub fn add(&mut self) -> u32 {
        let last = self.counts.len() - 1;
        self.counts[last].0 += 1;
        self.first.wrapping_add(last as u32)
    }

    /// Ends the wait for a unit of `epoch`, which is in flash or was dropped.
    #[inline]
    pub fn done(&mut self, epoch: u32) {
        self.counts[epoch.wrapping_sub(self.first) as usize].0 -= 1;
    }

    /// Adds a barrier that completes `request`. Returns `false` if there is nothing to wait for.
    fn wait(&mut self, request: RequestId) -> bool {
        if self.counts.len() == 1 && self.counts[0].0 == 0 {
            return false;
        }
        let last = self.counts.len() - 1;
        self.counts[last].1 = request;
        self.counts.push_back((0, RequestId::NONE));
        true
    }

    /// Returns `true` if a request waits.
    fn any_wait(&self) -> bool {
        self.counts.len() > 1
    }

    /// Removes and returns the first request, if it no longer has to wait.
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

    /// Removes and returns all requests that wait.
    fn take_all(&mut self) -> Vec<RequestId> {
        let waiting = self.counts.iter_mut().map(|(_, request)| std::mem::replace(request, RequestId::NONE));
        waiting.filter(|request| request.is_some()).collect()
    }

    /// Returns the number of units that are counted.
    pub fn pending(&self) -> u64 {
        self.counts.iter().map(|(count, _)| count).sum()
    }
}

impl Buffer {
    /// Has `request` wait until all units that are dirty now are in flash. Returns `false` if there is nothing to wait
    /// for.
    pub fn wait_for_all(&mut self, request: RequestId) -> bool {
        if self.protected || !self.barriers.wait(request) {
            return false;
        }
        self.write_out_all();
        true
    }

    /// Returns `true` if a flush waits.
    #[inline]
    pub fn is_flushing(&self) -> bool {
        self.barriers.any_wait()
    }

    /// Removes and returns a request that no longer has to wait for its barrier.
    #[inline]
    pub fn take_waiter(&mut self) -> Option<RequestId> {
        self.barriers.take()
    }

    /// Removes and returns all flushes that wait.
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

    /// Picks the oldest dirty unit of a list that is not selected for write-back. Returns `None` if there is none.
    pub fn pick_oldest(&mut self, list: u16) -> Option<Pick> {
        let entry = self.dirty[usize::from(list)].waiting.first();
        (entry != NONE).then(|| self.pick(entry, RequestId::NONE))
    }

    /// Evicts units until there is an entry for each waiting unit, free now or when its writes complete. Above the high
    /// water mark, evicts down to the low one. While a block is being padded, nothing more is evicted.
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

    /// Makes room for the data of a read, if no entry is free. Only a clean victim makes room at once.
    pub fn make_room_for_fill(&mut self) {
        if self.free.is_empty() && self.coming == 0 && self.waiting == 0 {
            self.evict(Why::Fill);
        }
    }

    /// Evicts the units that the policy chooses. Returns `false` if it chooses none, or if a block is being padded.
    fn evict(&mut self, why: Why) -> bool {
        if !self.padding.is_empty() {
            return false;
        }
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        self.eviction.take(&mut victims);
        self.counts.evictions[why as usize] += victims.len() as u64;
        // Read the unit first: a clean entry loses it when it is released.
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
                Dirt::Clean | Dirt::Out | Dirt::Joined => {}
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

    /// Prefetches the entry of a unit that will be evicted a few evictions from now. Several units are evicted in a row
    /// when multi-plane operations end. [`Buffer::upcoming`] later uses the entry, to prefetch the map entry of its
    /// unit.
    #[inline]
    fn prefetch_victims(&mut self) {
        self.soon.rotate_left(1);
        self.soon[3] = self.eviction.soon(6);
        prefetch(&self.entries, self.soon[3] as usize);
    }

    /// Queues those units of a block that are not in the buffer, to be read and written with it.
    fn pad(&mut self, block: u32, per_block: u32) {
        let units = block * per_block..((block + 1) * per_block).min(self.index.len() as u32);
        for lpn in units {
            if self.entry(Lpn(lpn)).is_none() {
                self.padding.push_back(lpn);
                self.note_page(lpn);
            }
        }
    }

    /// Notes that a unit is written to flash, so that its logical page follows.
    #[inline]
    fn note_page(&mut self, lpn: u32) {
        if self.together > 1 && !self.pages.contains(&(lpn / self.together)) {
            self.pages.push_back(lpn / self.together);
        }
    }

    /// Selects the other units of logical pages with a picked unit: dirty units are written from the buffer, and the
    /// others are read from flash, unless a write of them is in flight.
    #[inline]
    pub fn gather_pages(&mut self) {
        while let Some(page) = self.pages.pop_front() {
            self.gather_page(page);
        }
    }

    fn gather_page(&mut self, page: u32) {
        let first = page * self.together;
        for lpn in first..(first + self.together).min(self.index.len() as u32) {
            match self.entry(Lpn(lpn)) {
                Some(entry) if self.entries[entry as usize].is_dirty() => {
                    if self.entries[entry as usize].dirt == Dirt::Waiting {
                        self.send_out(entry);
                    }
                    self.entries[entry as usize].dirt = Dirt::Joined;
                }
                Some(entry) if self.entries[entry as usize].flights > 0 => {}
                _ if self.padding.contains(&lpn) => {}
                _ => self.padding.push_back(lpn),
            }
        }
    }

    /// Returns `true` if a unit is selected for write-back.
    #[inline]
    pub fn has_out(&self) -> bool {
        self.out_units > 0 || !self.padding.is_empty() || !self.pages.is_empty()
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

    /// Returns the unit that will be picked third after the next one. If there is none, returns a unit that will be
    /// evicted soon.
    #[inline]
    pub fn upcoming(&self) -> Option<Lpn> {
        let next = self.out_order.front().map_or(NONE, |&list| self.dirty[usize::from(list)].out.first());
        let mut entry = next;
        let mut left = 3;
        while left > 0 && entry != NONE {
            entry = self.entries.behind(entry);
            left -= 1;
        }
        let entry = if entry == NONE { self.soon[0] } else { entry };
        (entry != NONE).then(|| Lpn(self.entries[entry as usize].lpn))
    }

    /// Picks a unit to fill the program of another unit that is written back. Returns `None` if it is not dirty.
    pub fn pick_companion(&mut self, lpn: Lpn) -> Option<Pick> {
        let entry = self.entry(lpn)?;
        self.entries[entry as usize].is_dirty().then(|| self.pick(entry, RequestId::NONE))
    }

    /// Picks a dirty unit for write-back. `owner` is the request that waits for it.
    pub fn pick(&mut self, entry: u32, owner: RequestId) -> Pick {
        let Entry { lpn, dirt, .. } = self.entries[entry as usize];
        if dirt != Dirt::Joined {
            self.note_page(lpn);
        }
        self.unlink_dirty(entry);
        let state = &mut self.entries[entry as usize];
        state.flights += 1;
        Pick { entry, lpn: state.lpn, owner, epoch: state.epoch }
    }

    /// Returns `true` if a picked unit no longer has to be written.
    pub fn is_void(&self, pick: &Pick) -> bool {
        match pick.entry {
            Pick::PADDING if self.together > 1 => self.is_pending(Lpn(pick.lpn)),
            Pick::PADDING => self.entry(Lpn(pick.lpn)).is_some(),
            entry => self.entries[entry as usize].lpn == NONE,
        }
    }

    /// Prefetches the entry of the unit that a write writes back.
    #[inline]
    pub fn prefetch_picked(&self, id: TransactionId) {
        if let Some(Some(pick)) = self.flights.get(id) {
            prefetch(&self.entries, pick.entry as usize);
        }
    }

    /// Prefetches the record of the unit that a write writes back.
    #[inline]
    pub fn prefetch_flight(&self, id: TransactionId) {
        self.flights.prefetch(id);
    }

    /// Ends the write-back of a picked unit, which is in flash or no longer has to be written.
    pub fn end_pick(&mut self, pick: &Pick) {
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
    fn barriers_wait_for_earlier_units_when_their_numbers_wrap_around() {
        let mut barriers = Barriers { first: u32::MAX, ..Barriers::default() };
        let before = barriers.add();
        assert!(barriers.wait(RequestId(7)));
        let behind = barriers.add();
        assert_eq!((before, behind), (u32::MAX, 0));
        assert!(barriers.wait(RequestId(8)));
        barriers.done(behind);
        assert_eq!(barriers.take(), None, "the second barrier does not complete before the first");
        barriers.done(before);
        assert_eq!((barriers.take(), barriers.take(), barriers.take()), (Some(RequestId(7)), Some(RequestId(8)), None));
        assert_eq!((barriers.pending(), barriers.any_wait()), (0, false));
    }
}
