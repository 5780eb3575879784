//! The cache of map entries in time: misses, evictions and changes.

use super::cmt::Segment;
use super::state::{Dftl, step};
use crate::ftl::mapping::Context;
use crate::sim::id::{Lpn, TransactionId};
use crate::work::{Call, Fifo, Task};

impl Dftl {
    /// Reserves a cache entry for the map entry that `node` needs. If none is free, evicts one, which is written back
    /// first if it is dirty. If none can be evicted, `node` is queued and tries again later, `in_turn`.
    pub(super) fn seek(&mut self, cx: &mut (impl Context + ?Sized), node: TransactionId, in_turn: bool) {
        let lpn = cx.ops()[node].lpn;
        if !in_turn && !self.line.is_empty() {
            return self.line.push(cx.ops(), node);
        }
        match self.state.cmt.segment(lpn) {
            Some(Segment::Loading) => {
                let page = self.state.page_of(lpn);
                return self.await_page(cx, node, page);
            }
            Some(_) => return self.entry_found(cx, node),
            None => {}
        }
        let mut dirty = None;
        if !self.state.cmt.has_room() {
            let Some(page) = self.evict(cx) else {
                return self.line.push(cx.ops(), node);
            };
            dirty = page;
        }
        self.state.cmt.reserve(lpn);
        match dirty {
            Some(page) => self.ask_update(cx, page, node),
            None => self.fetch(cx, node),
        }
    }

    /// Evicts an entry. Returns `None` if there is none to evict. Otherwise, returns the translation page that has to
    /// be updated, if any.
    fn evict(&mut self, cx: &mut (impl Context + ?Sized)) -> Option<Option<u32>> {
        let evicted = self.state.cmt.evict()?;
        let page = evicted.dirty.then(|| self.state.page_of(evicted.lpn));
        let counters = &mut cx.ftl().counters.map;
        *(if evicted.dirty { &mut counters.evictions_dirty } else { &mut counters.evictions_clean }) += 1;
        Some(page)
    }

    /// Continues `node`, because the entry that was evicted for it is in flash.
    pub(super) fn evicted(&mut self, cx: &mut (impl Context + ?Sized), node: TransactionId) {
        let lpn = cx.ops()[node].lpn;
        match self.state.cmt.segment(lpn) {
            Some(Segment::Loading) => self.fetch(cx, node),
            Some(_) => self.entry_found(cx, node),
            None => self.seek(cx, node, false),
        }
    }

    /// Resumes `node`, because the entry that it waited for is in the controller.
    fn entry_found(&mut self, cx: &mut (impl Context + ?Sized), node: TransactionId) {
        let arrived = Fifo::of(cx.ops(), node);
        cx.tasks().push(Task::Translate(arrived, TransactionId::NONE));
    }

    /// Serves the operation that has waited longest for a cache entry. Returns `false` if none waits, or if no entry is
    /// available.
    pub(super) fn serve_next(&mut self, cx: &mut (impl Context + ?Sized)) -> bool {
        let can_serve = !self.line.is_empty() && self.state.cmt.can_take();
        if can_serve {
            let node = self.line.pop(cx.ops());
            self.seek(cx, node, true);
        }
        can_serve
    }

    /// Serves the operations that wait for a cache entry. Runs the tasks of each one before the next.
    pub(super) fn serve_line(&mut self, cx: &mut (impl Context + ?Sized)) {
        if self.serve_next(cx) {
            cx.tasks().push(serve());
        }
    }

    /// Changes the entry of `lpn`: in the cache, if it is cached or an entry is available, otherwise in flash.
    pub(super) fn entry_changed(&mut self, cx: &mut (impl Context + ?Sized), lpn: Lpn) {
        if self.state.cmt.change(lpn) {
            return;
        }
        let mut dirty = None;
        if !self.state.cmt.has_room() {
            match self.evict(cx) {
                Some(page) => dirty = page,
                None => {
                    let page = self.state.page_of(lpn);
                    return self.ask_update(cx, page, TransactionId::NONE);
                }
            }
        }
        let cmt = &mut self.state.cmt;
        cmt.reserve(lpn);
        cmt.load(lpn);
        cmt.change(lpn);
        if let Some(page) = dirty {
            self.ask_update(cx, page, TransactionId::NONE);
        }
    }
}

/// Returns the task that serves the operations which wait for a cache entry.
pub(super) fn serve() -> Task {
    Task::Scheme(Call { step: step::SERVE, ..Call::default() })
}
