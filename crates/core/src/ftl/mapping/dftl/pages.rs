//! Translation pages in time. They are read for entries that are not cached, and updated when dirty entries are evicted
//! or garbage collection has moved units. They are moved when their blocks are reclaimed. See docs/model/mapping.md.
//!
//! A translation page takes one step at a time. An eviction or a victim of garbage collection requests an update and
//! may wait for its end. Requests that arrive before the program has started share it.

use super::entries::serve;
use super::state::{Dftl, Page, State, step};
use crate::ftl::Ftl;
use crate::ftl::mapping::{Bound, Context};
use crate::ftl::space::{Claim, Role};
use crate::metrics::counters::MapCause;
use crate::sim::id::{Lpn, PlaneId, Ppn, TransactionId};
use crate::work::{Call, Class, Fifo, Kind, Task, Transaction};

impl Dftl {
    pub(super) fn page(&mut self, page: u32) -> &mut Page {
        &mut self.pages[page]
    }

    /// Describes outstanding work, for reports.
    pub(super) fn describe_pages(&self) -> String {
        let busy = self.pages.iter().filter(|page| page.state != State::Idle).count();
        let stalled = self.pages.iter().filter(|page| page.state == State::Stalled).count();
        format!("{busy} translation pages in use, {stalled} without room")
    }

    /// Fetches the entry that `node` needs, for which a cache entry is reserved. `node` is resumed when it is loaded.
    pub(super) fn fetch(&mut self, cx: &mut (impl Context + ?Sized), node: TransactionId) {
        let lpn = cx.ops()[node].lpn;
        let page = self.state.page_of(lpn);
        self.await_page(cx, node, page);
        if self.page(page).state != State::Idle {
            return;
        }
        match self.state.place(page) {
            Some(ppn) => self.read_entry(cx, page, ppn, lpn),
            None => self.entries_here(cx, page, None),
        }
    }

    /// Has `node` wait for an entry of a translation page. If the controller holds the page, `node` is resumed.
    pub(super) fn await_page(&mut self, cx: &mut (impl Context + ?Sized), node: TransactionId, page: u32) {
        let entry = &mut self.pages[page];
        entry.readers.push(cx.ops(), node);
        if matches!(entry.state, State::Stalled | State::Queued | State::Programming) {
            self.entries_here(cx, page, None);
        }
    }

    /// Returns the flash page that holds an entry, counted within its translation page.
    fn flash_page_of(&mut self, cx: &mut (impl Context + ?Sized), lpn: Lpn) -> u32 {
        let pages = u64::from(cx.ftl().blocks.size(Role::Map).program_pages);
        let state = &self.state;
        (u64::from(state.entry_in_page(lpn)) * pages / u64::from(state.entries_per_page())) as u32
    }

    fn read_entry(&mut self, cx: &mut (impl Context + ?Sized), page: u32, ppn: Ppn, lpn: Lpn) {
        let part = self.flash_page_of(cx, lpn);
        let shape = *cx.ftl().shape();
        let skip = if shape.pages_per_unit > 1 { 0 } else { part * shape.units_per_page.divisor() };
        let entry = self.page(page);
        (entry.state, entry.part) = (State::Fetching, part);
        self.read_map(cx, page, Ppn(ppn.0 + skip), 1, MapCause::Miss);
    }

    fn read_map(&mut self, cx: &mut (impl Context + ?Sized), page: u32, ppn: Ppn, pages: u32, cause: MapCause) {
        let block = cx.ftl().blocks.depend(ppn);
        let mut read = Transaction::new(Kind::MapRead, class_of(cause, Class::MapRead)).of_map_page(page);
        (read.ppn, read.dependency) = (ppn, block);
        (read.units, read.first) = (pages as u16, cause as u16);
        read.plane = cx.ftl().blocks.plane_of(block);
        cx.queue(read);
    }

    /// Ends a read of a translation page. Resumes the operations that have waited for its entries.
    pub(super) fn finish_map_read(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) {
        let read = cx.ops().remove(id);
        let page = read.map_page();
        cx.release(read.dependency);
        let Page { state, part, .. } = *self.page(page);
        if state == State::Reading {
            return self.program_map(cx, page);
        }
        let is_whole = cx.ftl().blocks.size(Role::Map).program_pages == 1;
        let arrived = self.take_readers(cx, page, Some(part).filter(|_| !is_whole));
        cx.tasks().push(Task::Translate(arrived, TransactionId::NONE));
        cx.tasks().push(Task::Scheme(fetched(page)));
    }

    /// Continues with a page that was fetched, after the operations that waited for its entries were resumed. First
    /// serves operations that wait for a cache entry.
    pub(super) fn fetched(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        if self.serve_next(cx) {
            return cx.tasks().push(Task::Scheme(fetched(page)));
        }
        self.map_fetched(cx, page);
    }

    /// Takes the next step of a page that has been fetched: another read, an update, or none.
    pub(super) fn map_fetched(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        let is_whole = cx.ftl().blocks.size(Role::Map).program_pages == 1;
        let next = self.page(page).readers.first();
        if next.is_some() {
            let lpn = cx.ops()[next].lpn;
            if let Some(ppn) = self.state.place(page) {
                return self.read_entry(cx, page, ppn, lpn);
            }
        }
        match (self.wants_update(page), is_whole) {
            (true, true) => self.program_map(cx, page),
            (true, false) => self.update(cx, page),
            (false, _) => self.page(page).state = State::Idle,
        }
    }

    /// Resumes the operations that wait for entries of a translation page which are in the controller: all of them, or
    /// those in one of its flash pages. Reads of one request from one flash page are joined.
    fn entries_here(&mut self, cx: &mut (impl Context + ?Sized), page: u32, part: Option<u32>) {
        let arrived = self.take_readers(cx, page, part);
        cx.tasks().push(Task::Translate(arrived, TransactionId::NONE));
        cx.tasks().push(serve());
    }

    /// Removes and returns the operations that wait for entries of a translation page: all, or those in one of its
    /// flash pages.
    fn take_readers(&mut self, cx: &mut (impl Context + ?Sized), page: u32, part: Option<u32>) -> Fifo {
        let mut waiting = std::mem::take(&mut self.page(page).readers);
        if part.is_none() {
            return waiting;
        }
        let (mut arrived, mut others) = (Fifo::default(), Fifo::default());
        while !waiting.is_empty() {
            let node = waiting.pop(cx.ops());
            let lpn = cx.ops()[node].lpn;
            let is_here = part == Some(self.flash_page_of(cx, lpn));
            let line = if is_here { &mut arrived } else { &mut others };
            line.push(cx.ops(), node);
        }
        self.pages[page].readers = others;
        arrived
    }

    /// Requests an update of a translation page. `node` continues after the page has been programmed. It is `NONE` if
    /// no operation waits.
    pub(super) fn ask_update(&mut self, cx: &mut (impl Context + ?Sized), page: u32, node: TransactionId) {
        let batch = self.state.batch;
        if cx.ftl().is_read_only() {
            if node.is_some() {
                let waits = Fifo::of(cx.ops(), node);
                cx.tasks().push(updated(waits));
            }
            return;
        }
        let entry = &mut self.pages[page];
        if node.is_none() {
            entry.owed = if batch { 1 } else { entry.owed + 1 };
        } else {
            entry.writers.push(cx.ops(), node);
        }
        if entry.state == State::Idle {
            self.update(cx, page);
        }
    }

    fn wants_update(&mut self, page: u32) -> bool {
        let page = self.page(page);
        page.moving || page.owed > 0 || !page.writers.is_empty()
    }

    /// Starts an update. Reads the translation page first, unless its contents are known.
    fn update(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        if !self.read_to_update(cx, page) {
            self.program_map(cx, page);
        }
    }

    /// Reads a translation page that is to be updated. Returns `false` if its contents are known.
    pub(super) fn read_to_update(&mut self, cx: &mut (impl Context + ?Sized), page: u32) -> bool {
        let is_known = self.state.is_wholly_cached(page);
        let Some(ppn) = self.state.place(page).filter(|_| !is_known) else { return false };
        self.page(page).state = State::Reading;
        let pages = cx.ftl().blocks.size(Role::Map).program_pages;
        let cause = self.update_cause(cx, page);
        self.read_map(cx, page, ppn, pages, cause);
        true
    }

    /// Returns the cause of an update: that of the operation that has waited longest.
    fn update_cause(&mut self, cx: &mut (impl Context + ?Sized), page: u32) -> MapCause {
        let Page { writers, owed, .. } = *self.page(page);
        match writers.first() {
            TransactionId::NONE if owed > 0 => MapCause::Eviction,
            TransactionId::NONE => MapCause::MapGc,
            node if cx.ops()[node].kind == Kind::MapHold => MapCause::Gc,
            _ => MapCause::Eviction,
        }
    }

    /// Queues the program of a translation page that the controller holds, if there is room.
    fn program_map(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        if cx.ftl().is_read_only() {
            return self.drop_map_update(cx, page);
        }
        if self.page(page).moving {
            return self.program_moving(cx, page);
        }
        let plane = cx.ftl().map_home(page);
        self.page(page).state = State::Stalled;
        self.stalled[plane].push_back(page);
        self.unpark_map(cx, plane);
        self.reclaim(cx, plane);
        self.serve_readers(cx, page);
    }

    /// Queues a translation page that is being moved. It may use the reserve of its region.
    pub(super) fn program_moving(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        self.queue_map(cx, page);
        self.serve_readers(cx, page);
    }

    /// Resumes the operations that wait for an entry of a translation page which the controller holds.
    fn serve_readers(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        if !self.page(page).readers.is_empty() {
            self.entries_here(cx, page, None);
        }
    }

    pub(super) fn queue_map(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        self.page(page).state = State::Queued;
        let class = class_of(self.update_cause(cx, page), Class::MapProgram);
        let mut write = Transaction::new(Kind::MapWrite, class).of_map_page(page);
        write.plane = cx.ftl().map_home(page);
        cx.queue(write);
    }

    /// Queues stalled translation pages while there is room.
    pub(super) fn unpark_map(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        let mut room = self.room_for_updates(cx.ftl(), plane);
        while room > 0 {
            let Some(page) = self.stalled[plane].pop_front() else { return };
            if self.page(page).state == State::Stalled {
                room -= 1;
                self.queue_map(cx, page);
            }
        }
    }

    /// Returns the number of translation pages for which there is room. The units that a failed block still holds are
    /// reserved: emptying it frees no block, so nothing else may take the room for which it was chosen.
    fn room_for_updates(&self, ftl: &Ftl, plane: PlaneId) -> u32 {
        let blocks = &ftl.blocks;
        let victim = self.jobs[plane].walk.block().map(|victim| blocks.block(victim));
        let kept = victim.filter(|block| block.failed).map_or(0, |block| u32::from(block.valid));
        let room = blocks.units_for(blocks.region(plane, Role::Map), Claim::Write { besides: kept });
        room / blocks.size(Role::Map).program_units
    }

    /// Binds an update of a translation page, which serves all operations that have requested one so far. Without room,
    /// the update stalls.
    pub(super) fn start_map_write(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) -> Option<Bound> {
        let (page, class) = (cx.ops()[id].map_page(), cx.ops()[id].class);
        let plane = cx.ftl().map_home(page);
        if cx.ftl().is_read_only() {
            cx.ops().remove(id);
            self.drop_map_update(cx, page);
            return None;
        }
        if !self.page(page).moving && self.room_for_updates(cx.ftl(), plane) == 0 {
            cx.ops().remove(id);
            self.page(page).state = State::Stalled;
            self.stalled[plane].push_back(page);
            self.reclaim(cx, plane);
            return None;
        }
        let cause = self.update_cause(cx, page);
        let free = cx.ftl().blocks.free_blocks(plane, Role::Map);
        let ppn = cx.ftl().bind_map(page, cause);
        let batch = self.state.batch;
        let entry = &mut self.pages[page];
        entry.state = State::Programming;
        if batch {
            (entry.taken, entry.owed) = (std::mem::take(&mut entry.writers), 0);
            self.state.cmt.clean_page(page);
        } else if !entry.writers.is_empty() {
            let node = entry.writers.pop(cx.ops());
            entry.taken.push(cx.ops(), node);
        } else {
            entry.owed = entry.owed.saturating_sub(1);
        }
        if cx.ftl().blocks.free_blocks(plane, Role::Map) != free {
            self.reclaim(cx, plane);
        }
        Some(Bound { class, plane, ppn })
    }

    /// Ends a program of a translation page.
    pub(super) fn finish_map_write(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) {
        let write = cx.ops().remove(id);
        let (ppn, page) = (write.ppn, write.map_page());
        self.note_programmed(cx.ftl(), page, ppn);
        let taken = std::mem::take(&mut self.page(page).taken);
        cx.tasks().push(updated(taken));
        cx.tasks().push(Task::MapProgrammed(page, ppn));
    }

    /// Takes the next step of a page that has been programmed: another update, or none.
    pub(super) fn page_programmed(&mut self, cx: &mut (impl Context + ?Sized), page: u32, ppn: Ppn) {
        let blocks = &cx.ftl().blocks;
        let plane = blocks.plane_of(blocks.block_of(ppn));
        if std::mem::take(&mut self.page(page).moving) {
            self.jobs[plane].waiting = false;
        }
        match (self.wants_update(page), self.state.batch) {
            // The controller still holds the page.
            (true, true) => self.program_map(cx, page),
            (true, false) => self.update(cx, page),
            (false, _) => self.page(page).state = State::Idle,
        }
    }

    /// Resumes transactions that waited for an update. Runs the tasks of each one before the next.
    pub(super) fn updated(&mut self, cx: &mut (impl Context + ?Sized), mut waiting: Fifo) {
        while !waiting.is_empty() {
            let node = waiting.pop(cx.ops());
            if cx.ops()[node].kind == Kind::MapHold {
                let held = cx.ops().remove(node).dependency;
                cx.release(held);
            } else {
                self.evicted(cx, node);
            }
            if cx.tasks().any_new() {
                return cx.tasks().push(updated(waiting));
            }
        }
    }

    /// Repeats a failed program of a translation page, which the controller still holds. The operations that wait for
    /// it keep waiting.
    pub(super) fn write_map_again(&mut self, cx: &mut (impl Context + ?Sized), id: TransactionId) {
        let page = cx.ops().remove(id).map_page();
        let entry = &mut self.pages[page];
        entry.state = State::Queued;
        let taken = std::mem::take(&mut entry.taken);
        if taken.is_empty() && !entry.moving {
            entry.owed += 1;
        }
        entry.writers.prepend(cx.ops(), taken);
        if cx.ftl().is_read_only() {
            return self.drop_map_update(cx, page);
        }
        self.queue_map(cx, page);
    }

    /// Drops an update, because the device is read-only. The controller keeps the changed entries. The operations that
    /// wait for the update are resumed.
    fn drop_map_update(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        let entry = self.page(page);
        (entry.state, entry.owed, entry.moving) = (State::Idle, 0, false);
        let mut waiting = std::mem::take(&mut entry.writers);
        let taken = std::mem::take(&mut entry.taken);
        waiting.prepend(cx.ops(), taken);
        self.entries_here(cx, page, None);
        cx.tasks().push(updated(waiting));
    }

    /// Drops the updates of all translation pages that wait for room.
    pub(super) fn drop_map_updates(&mut self, cx: &mut (impl Context + ?Sized)) {
        let stalled: Vec<u32> = self.stalled.iter_mut().flat_map(std::mem::take).collect();
        for page in stalled {
            if self.page(page).state == State::Stalled {
                self.drop_map_update(cx, page);
            }
        }
    }
}

/// Returns the step after the operations that waited for entries of a page have been resumed.
fn fetched(page: u32) -> Call {
    Call { step: step::FETCHED, number: page, ..Call::default() }
}

/// Returns the task that resumes the operations which waited for an update.
fn updated(waiting: Fifo) -> Task {
    Task::Scheme(Call { step: step::UPDATED, line: waiting, ..Call::default() })
}

/// Returns the scheduling class of an operation with this cause. It is `of_host` if the host waits for it.
fn class_of(cause: MapCause, of_host: Class) -> Class {
    match cause {
        MapCause::Miss | MapCause::Eviction | MapCause::Functional => of_host,
        MapCause::Gc => Class::Gc,
        MapCause::MapGc => Class::UrgentGc,
    }
}

pub(super) fn cause_of(number: u16) -> MapCause {
    const CAUSES: [MapCause; 4] = [MapCause::Miss, MapCause::Eviction, MapCause::Gc, MapCause::MapGc];
    CAUSES[usize::from(number)]
}
