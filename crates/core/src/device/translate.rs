//! The translate stage: an operation of the host whose map entry is not in the cache waits for it.

use super::Device;
use crate::ftl::mapping::Location;
use crate::ftl::mapping::cmt::Segment;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::sim::id::{Lpn, Ppn, RequestId, TransactionId};
use crate::work::{Fifo, Kind, Task, Transaction};

impl Device {
    /// Uses the entry of `lpn`; whether it is at hand.
    #[inline(always)]
    pub(super) fn use_entry(&mut self, lpn: Lpn) -> bool {
        let Some(state) = &mut self.ftl.map_state else { return true };
        let hit = state.cmt.touch(lpn);
        self.ftl.counters.map.hits += u64::from(hit);
        hit
    }

    /// Whether the place of a read unit is known; that uses its entry, unless the unit is in the controller.
    #[inline(always)]
    pub(super) fn has_entry(&mut self, lpn: Lpn) -> bool {
        self.ftl.map_state.is_none() || matches!(self.ftl.map.get(lpn), Location::Slot(_)) || self.use_entry(lpn)
    }

    /// A part of a read waits for its entry.
    pub(super) fn wait_to_read(&mut self, request: RequestId, part: Part) {
        let wait = Transaction::waiting(Kind::Translate, request, part.lpn, [part.first, part.end, part.offset]);
        let wait = self.transactions.insert(wait);
        self.observe_read(wait, part, Ppn(0), TransactionId::NONE);
        self.miss(wait);
    }

    /// A write goes on when its entry is at hand: it supersedes the place that the entry tells.
    pub(super) fn translate_write(&mut self, id: TransactionId) {
        if self.use_entry(self.transactions[id].lpn) {
            self.place_write(id);
        } else {
            self.miss(id);
        }
    }

    fn miss(&mut self, node: TransactionId) {
        self.ftl.counters.map.misses += 1;
        self.seek(node, false);
    }

    /// Takes a place in the cache for the entry that `node` needs: a free one, or that of an evicted entry, which is
    /// written back first when it is newer than in flash. Those who find none are `in_turn` later.
    fn seek(&mut self, node: TransactionId, in_turn: bool) {
        let lpn = self.transactions[node].lpn;
        if !in_turn && !self.map_traffic.line.is_empty() {
            return self.map_traffic.line.push(&mut self.transactions, node);
        }
        match self.map_state().cmt.segment(lpn) {
            Some(Segment::Loading) => {
                let page = self.map_state().page_of(lpn);
                return self.await_entry(node, page);
            }
            Some(_) => return self.entry_found(node),
            None => {}
        }
        let mut dirty = None;
        if !self.map_state().cmt.has_room() {
            let Some(page) = self.evict() else {
                return self.map_traffic.line.push(&mut self.transactions, node);
            };
            dirty = page;
        }
        self.map_state().cmt.reserve(lpn);
        match dirty {
            Some(page) => self.ask_update(page, node),
            None => self.fetch(node),
        }
    }

    /// Evicts an entry: `None` when there is none to evict, else the translation page that has to be updated, if any.
    fn evict(&mut self) -> Option<Option<u32>> {
        let state = self.map_state();
        let evicted = state.cmt.evict()?;
        let page = evicted.dirty.then(|| state.page_of(evicted.lpn));
        let counters = &mut self.ftl.counters.map;
        *(if evicted.dirty { &mut counters.evictions_dirty } else { &mut counters.evictions_clean }) += 1;
        Some(page)
    }

    /// What was evicted for `node` is in flash.
    pub(super) fn evicted(&mut self, node: TransactionId) {
        let lpn = self.transactions[node].lpn;
        match self.map_state().cmt.segment(lpn) {
            Some(Segment::Loading) => self.fetch(node),
            Some(_) => self.entry_found(node),
            None => self.seek(node, false),
        }
    }

    /// The entry that `node` waited for is there.
    fn entry_found(&mut self, node: TransactionId) {
        let arrived = Fifo::of(&mut self.transactions, node);
        self.tasks.push(Task::Translate(arrived, TransactionId::NONE));
    }

    /// Lets those who wait for a place in the cache have it.
    pub(super) fn serve_line(&mut self) {
        if !self.map_traffic.line.is_empty() && self.map_state().cmt.can_take() {
            let node = self.map_traffic.line.pop(&mut self.transactions);
            self.seek(node, true);
            self.tasks.push(Task::Serve);
        }
    }

    /// The entry that `node` waited for is there: a write goes on, a part of a read is looked up. `open` is a flash
    /// read that is not in line yet and may take more; returned is the one that is open afterwards.
    pub(super) fn translated(&mut self, node: TransactionId, open: TransactionId) -> TransactionId {
        self.observe_spent(node, TimePart::MapFetch);
        if self.transactions[node].kind == Kind::Write {
            self.place_write(node);
            return open;
        }
        let wait = self.transactions.remove(node);
        let owner = wait.request();
        let (first, end, offset) = (u32::from(wait.first), u32::from(wait.end), wait.offset());
        let part = Part { lpn: wait.lpn, first, end, offset };
        let mut open = open;
        if open.is_some() && self.transactions[open].request() != owner {
            self.line_up(open);
            open = TransactionId::NONE;
        }
        // What the buffer has taken meanwhile is newer.
        self.observe_buffer_read(owner, part);
        self.read_unit(owner, part, open, node)
    }

    /// A write whose entry is known goes on: with what it has to keep, where it has not all data of its unit.
    fn place_write(&mut self, id: TransactionId) {
        let write = self.transactions[id];
        if write.complete {
            self.observe_spent(id, TimePart::Order);
            return self.queue_write(id);
        }
        match write.source.get() {
            Some(ppn) => self.read_for(id, ppn),
            // Trimmed meanwhile: there is nothing to keep.
            None => {
                self.observe_completed(id, TransactionId::NONE);
                self.contents_complete(id);
                self.queue_write(id);
            }
        }
    }

    /// The entry of `lpn` has changed: in the cache where it is there or finds a place, else in flash.
    pub(super) fn entry_changed(&mut self, lpn: Lpn) {
        let Some(state) = &mut self.ftl.map_state else { return };
        if state.cmt.change(lpn) {
            return;
        }
        let mut dirty = None;
        if !state.cmt.has_room() {
            match self.evict() {
                Some(page) => dirty = page,
                None => {
                    let page = self.map_state().page_of(lpn);
                    return self.ask_update(page, TransactionId::NONE);
                }
            }
        }
        let cmt = &mut self.map_state().cmt;
        cmt.reserve(lpn);
        cmt.load(lpn);
        cmt.change(lpn);
        if let Some(page) = dirty {
            self.ask_update(page, TransactionId::NONE);
        }
    }
}
