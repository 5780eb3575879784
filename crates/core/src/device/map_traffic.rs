//! Translation pages in time: they are read for entries that are missed, updated when changed entries leave the cache
//! or cleaning has moved units, and moved when their blocks are reclaimed. See docs/model/mapping.md.
//!
//! One thing is done with a translation page at a time. Whoever needs it in flash (an eviction, a victim of cleaning)
//! asks for an update and may wait for its end; requests that come before the program has started share it.

use std::collections::VecDeque;

use super::Device;
use crate::ftl::Ftl;
use crate::ftl::mapping::{MapState, TRANSLATION};
use crate::ftl::space::{Claim, InHand, RESERVE, Role};
use crate::metrics::counters::MapCause;
use crate::nand::array::Spot;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::sim::table::Table;
use crate::work::{Class, Fifo, Kind, Task, Transaction};

/// What is done with a translation page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing; the controller does not hold it.
    #[default]
    Idle,
    /// The flash page with an entry is read.
    Fetching,
    /// It is read as a whole, to be updated.
    Reading,
    /// The controller holds it; its plane has no room for the new version.
    Stalled,
    /// The controller holds it; its program waits for the LUN.
    Queued,
    /// The controller holds it; it is programmed.
    Programming,
}

/// A translation page, and who waits for it.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    state: State,
    /// While it is fetched: which of its flash pages.
    part: u32,
    /// Cleaning of its block waits for it to be elsewhere.
    moving: bool,
    /// Updates that nobody waits for.
    owed: u32,
    /// Those who need an entry of it.
    readers: Fifo,
    /// Those who wait for an update of it to end.
    writers: Fifo,
    /// Those whose update is being programmed.
    taken: Fifo,
}

/// A device has one for each translation page; the directory and the cache have twelve bytes more.
const _: () = assert!(size_of::<Page>() + 12 <= 60);

/// The cleaning of a plane's blocks of translation pages: one victim at a time, page by page.
#[derive(Clone, Copy, Debug, Default)]
struct MapJob {
    victim: Option<BlockId>,
    cursor: u32,
    /// A translation page of the victim is on its way elsewhere.
    waiting: bool,
    doomed: u32,
}

/// All that goes on for the map in flash.
#[derive(Clone, Debug, Default)]
pub(super) struct MapTraffic {
    pages: Table<u32, Page>,
    jobs: Table<PlaneId, MapJob>,
    /// By plane: translation pages that wait for room. One that has been promoted meanwhile is passed over.
    stalled: Table<PlaneId, VecDeque<u32>>,
    /// By plane: units that cleaning has moved and whose entries are not in the cache, as victim and translation page.
    moved: Table<PlaneId, Vec<(u32, u32)>>,
    /// Host operations that wait for a place in the cache.
    pub(super) line: Fifo,
}

impl MapTraffic {
    /// Nothing goes on.
    pub(super) fn new(ftl: &Ftl) -> MapTraffic {
        let Some(state) = &ftl.map_state else { return MapTraffic::default() };
        let planes = ftl.shape().planes;
        MapTraffic {
            pages: Table::new(state.pages(), Page::default()),
            jobs: Table::new(planes, MapJob::default()),
            stalled: Table::new(planes, VecDeque::new()),
            moved: Table::new(planes, Vec::new()),
            ..MapTraffic::default()
        }
    }

    /// What cleaning of a plane's translation pages has in hand.
    fn in_hand(&self, plane: PlaneId, ftl: &Ftl) -> InHand {
        let Some(job) = self.jobs.get(plane) else { return InHand::default() };
        let victim = job.victim.map(|victim| ftl.blocks.block(victim));
        InHand {
            units: victim.map_or(0, |victim| u32::from(victim.valid)),
            awaiting_erase: job.doomed,
            coming: job.doomed + u32::from(victim.is_some_and(|victim| !victim.failed)),
            ..InHand::default()
        }
    }

    fn page(&mut self, page: u32) -> &mut Page {
        &mut self.pages[page]
    }

    /// What is not at rest, for reports.
    pub(super) fn describe(&self) -> String {
        let busy = self.pages.iter().filter(|page| page.state != State::Idle).count();
        let stalled = self.pages.iter().filter(|page| page.state == State::Stalled).count();
        format!("{busy} translation pages in use, {stalled} without room")
    }
}

impl Device {
    /// What is known of the map in flash; only where some of it is there.
    pub(super) fn map_state(&mut self) -> &mut MapState {
        self.ftl.map_state.as_deref_mut().unwrap_or_else(|| unreachable!("only a map in flash has traffic"))
    }

    /// Someone needs the entry of `lpn`, whose place in the cache is taken: `node` goes on when it is there.
    pub(super) fn fetch(&mut self, node: TransactionId) {
        let lpn = self.transactions[node].lpn;
        let page = self.map_state().page_of(lpn);
        self.await_entry(node, page);
        if self.map_traffic.page(page).state != State::Idle {
            return;
        }
        match self.map_state().place(page) {
            Some(place) => self.read_entry(page, place, lpn),
            None => self.entries_here(page, None),
        }
    }

    /// Lets `node` wait for an entry of a translation page, unless the controller holds that.
    pub(super) fn await_entry(&mut self, node: TransactionId, page: u32) {
        let entry = &mut self.map_traffic.pages[page];
        entry.readers.push(&mut self.transactions, node);
        if matches!(entry.state, State::Stalled | State::Queued | State::Programming) {
            self.entries_here(page, None);
        }
    }

    /// Which flash page of its translation page holds an entry.
    fn flash_page_of(&mut self, lpn: Lpn) -> u32 {
        let pages = u64::from(self.ftl.shape().pages_per_program);
        let state = self.map_state();
        (u64::from(state.entry_in_page(lpn)) * pages / u64::from(state.entries_per_page())) as u32
    }

    fn read_entry(&mut self, page: u32, place: Ppn, lpn: Lpn) {
        let part = self.flash_page_of(lpn);
        let shape = self.ftl.shape();
        let skip = if shape.pages_per_unit > 1 { 0 } else { part * shape.units_per_page.divisor() };
        let entry = self.map_traffic.page(page);
        (entry.state, entry.part) = (State::Fetching, part);
        self.read_map(page, Ppn(place.0 + skip), 1, MapCause::Miss);
    }

    fn read_map(&mut self, page: u32, place: Ppn, pages: u32, cause: MapCause) {
        let block = self.ftl.blocks.depend(place);
        let mut read = Transaction::new(Kind::MapRead, class_of(cause, Class::MapRead)).of_map_page(page);
        (read.place, read.dependency) = (place, block);
        (read.units, read.first) = (pages as u16, cause as u16);
        read.plane = self.ftl.blocks.plane_of(block);
        self.dispatch(read);
    }

    /// Starts a read of a translation page, or of one flash page of it.
    pub(super) fn start_map_read(&mut self, id: TransactionId, at: Spot) -> bool {
        let read = self.transactions[id];
        let pages = u32::from(read.units);
        self.ftl.note_map_read(cause_of(read.first), pages);
        self.put(at, self.read(&read, pages, self.array.timing().page_out, u64::MAX))
    }

    pub(super) fn finish_map_read(&mut self, id: TransactionId) {
        let read = self.transactions.remove(id);
        let page = read.map_page();
        self.release(read.dependency);
        let Page { state, part, .. } = *self.map_traffic.page(page);
        if state == State::Reading {
            return self.program_map(page);
        }
        let is_whole = self.ftl.shape().pages_per_program == 1;
        self.entries_here(page, Some(part).filter(|_| !is_whole));
        self.tasks.push(Task::MapFetched(page));
    }

    /// Those who waited for entries that were fetched have gone on: others need the translation page, or nobody does.
    pub(super) fn map_fetched(&mut self, page: u32) {
        let is_whole = self.ftl.shape().pages_per_program == 1;
        let next = self.map_traffic.page(page).readers.first();
        if next.is_some() {
            let lpn = self.transactions[next].lpn;
            if let Some(place) = self.map_state().place(page) {
                return self.read_entry(page, place, lpn);
            }
        }
        match (self.wants_update(page), is_whole) {
            (true, true) => self.program_map(page),
            (true, false) => self.update(page),
            (false, _) => self.map_traffic.page(page).state = State::Idle,
        }
    }

    /// Entries of a translation page are in the controller, all or those in one of its flash pages: who waits for them
    /// goes on. Reads of one request that go to one flash page are joined.
    fn entries_here(&mut self, page: u32, part: Option<u32>) {
        let mut waiting = std::mem::take(&mut self.map_traffic.page(page).readers);
        let (mut arrived, mut others) = (Fifo::default(), Fifo::default());
        while !waiting.is_empty() {
            let node = waiting.pop(&mut self.transactions);
            let lpn = self.transactions[node].lpn;
            let is_here = part.is_none_or(|part| self.flash_page_of(lpn) == part);
            let line = if is_here { &mut arrived } else { &mut others };
            line.push(&mut self.transactions, node);
        }
        self.map_traffic.pages[page].readers = others;
        self.tasks.push(Task::Translate(arrived, TransactionId::NONE));
        self.tasks.push(Task::Serve);
    }

    /// Resumes transactions whose map entries have arrived. Runs the tasks of each one before the next. `open` is as
    /// for [`Device::translated`].
    pub(super) fn translate_rest(&mut self, mut arrived: Fifo, mut open: TransactionId) {
        while !arrived.is_empty() {
            let node = arrived.pop(&mut self.transactions);
            let lpn = self.transactions[node].lpn;
            self.map_state().cmt.load(lpn);
            open = self.translated(node, open);
            if self.tasks.any_new() {
                return self.tasks.push(Task::Translate(arrived, open));
            }
        }
        if open.is_some() {
            self.line_up(open);
        }
    }

    /// Requests an update of a translation page. `node` continues after the page has been programmed; it is `NONE` if
    /// nobody waits.
    pub(super) fn ask_update(&mut self, page: u32, node: TransactionId) {
        let batch = self.map_state().batch;
        if self.ftl.is_read_only() {
            if node.is_some() {
                let waits = Fifo::of(&mut self.transactions, node);
                self.tasks.push(Task::Updated(waits));
            }
            return;
        }
        let entry = &mut self.map_traffic.pages[page];
        if node.is_none() {
            entry.owed = if batch { 1 } else { entry.owed + 1 };
        } else {
            entry.writers.push(&mut self.transactions, node);
        }
        if entry.state == State::Idle {
            self.update(page);
        }
    }

    fn wants_update(&mut self, page: u32) -> bool {
        let page = self.map_traffic.page(page);
        page.moving || page.owed > 0 || !page.writers.is_empty()
    }

    /// Begins an update: by reading the translation page, unless all of it is known.
    fn update(&mut self, page: u32) {
        if !self.read_to_update(page) {
            self.program_map(page);
        }
    }

    /// Reads a translation page that is to be updated. Returns `false` if all of it is known.
    fn read_to_update(&mut self, page: u32) -> bool {
        let is_known = self.map_state().is_wholly_cached(page);
        let Some(place) = self.map_state().place(page).filter(|_| !is_known) else { return false };
        self.map_traffic.page(page).state = State::Reading;
        let (pages, cause) = (self.ftl.shape().pages_per_program, self.update_cause(page));
        self.read_map(page, place, pages, cause);
        true
    }

    /// Whom an update is for: the one who has waited longest.
    fn update_cause(&mut self, page: u32) -> MapCause {
        let Page { writers, owed, .. } = *self.map_traffic.page(page);
        match writers.first() {
            TransactionId::NONE if owed > 0 => MapCause::Eviction,
            TransactionId::NONE => MapCause::MapCleaning,
            node if self.transactions[node].kind == Kind::MapHold => MapCause::Cleaning,
            _ => MapCause::Eviction,
        }
    }

    /// The controller holds a translation page as it is to be programmed.
    fn program_map(&mut self, page: u32) {
        if self.ftl.is_read_only() {
            return self.drop_map_update(page);
        }
        if self.map_traffic.page(page).moving {
            return self.program_moving(page);
        }
        let plane = self.ftl.map_home(page);
        self.map_traffic.page(page).state = State::Stalled;
        self.map_traffic.stalled[plane].push_back(page);
        self.unstall_map(plane);
        self.clean_map(plane);
        self.serve_readers(page);
    }

    /// Queues a translation page that is being moved. It may use the reserve of its region.
    fn program_moving(&mut self, page: u32) {
        self.queue_map(page);
        self.serve_readers(page);
    }

    /// Lets those go on who wait for an entry of a translation page that the controller holds.
    fn serve_readers(&mut self, page: u32) {
        if !self.map_traffic.page(page).readers.is_empty() {
            self.entries_here(page, None);
        }
    }

    fn queue_map(&mut self, page: u32) {
        self.map_traffic.page(page).state = State::Queued;
        let class = class_of(self.update_cause(page), Class::MapProgram);
        let mut write = Transaction::new(Kind::MapWrite, class).of_map_page(page);
        write.plane = self.ftl.map_home(page);
        self.dispatch(write);
    }

    /// Lets as many translation pages be programmed as there is room for.
    fn unstall_map(&mut self, plane: PlaneId) {
        let mut room = self.room_for_updates(plane);
        while room > 0 {
            let Some(page) = self.map_traffic.stalled[plane].pop_front() else { return };
            if self.map_traffic.page(page).state == State::Stalled {
                room -= 1;
                self.queue_map(page);
            }
        }
    }

    /// Translation pages for which there is room. What a failed block still holds goes before: its end frees none, so
    /// that nothing else may take the room that it was chosen for.
    fn room_for_updates(&self, plane: PlaneId) -> u32 {
        let blocks = &self.ftl.blocks;
        let victim = self.map_traffic.jobs[plane].victim.map(|victim| blocks.block(victim));
        let kept = victim.filter(|block| block.failed).map_or(0, |block| u32::from(block.valid));
        let room = blocks.units_for(blocks.region(plane, Role::Map), Claim::Write { besides: kept });
        room / self.ftl.shape().units_per_program
    }

    /// Binds an update of a translation page; with it all who have asked for one by now. Where there is no room, it
    /// waits.
    pub(super) fn start_map_write(&mut self, id: TransactionId, at: Spot) -> bool {
        let (page, class) = (self.transactions[id].map_page(), self.transactions[id].class);
        let plane = self.ftl.map_home(page);
        if self.ftl.is_read_only() {
            self.transactions.remove(id);
            self.drop_map_update(page);
            return false;
        }
        if !self.map_traffic.page(page).moving && self.room_for_updates(plane) == 0 {
            self.transactions.remove(id);
            self.map_traffic.page(page).state = State::Stalled;
            self.map_traffic.stalled[plane].push_back(page);
            self.clean_map(plane);
            return false;
        }
        let (cause, stock) = (self.update_cause(page), self.ftl.blocks.free_blocks(plane, Role::Map));
        let place = self.ftl.bind_map(page, cause);
        self.transactions[id].place = place;
        let batch = self.map_state().batch;
        let entry = &mut self.map_traffic.pages[page];
        entry.state = State::Programming;
        if batch {
            (entry.taken, entry.owed) = (std::mem::take(&mut entry.writers), 0);
            self.map_state().cmt.clean_page(page);
        } else if !entry.writers.is_empty() {
            let node = entry.writers.pop(&mut self.transactions);
            entry.taken.push(&mut self.transactions, node);
        } else {
            entry.owed = entry.owed.saturating_sub(1);
        }
        if self.ftl.blocks.free_blocks(plane, Role::Map) != stock {
            self.clean_map(plane);
        }
        self.put(at, self.program(class, plane, place, u64::MAX))
    }

    pub(super) fn finish_map_write(&mut self, id: TransactionId) {
        let write = self.transactions[id];
        let (place, page) = (write.place, write.map_page());
        self.transactions.remove(id);
        if self.program_fails(place, self.ftl.shape().units_per_program) {
            return self.write_map_again(page, place);
        }
        self.ftl.map_programmed(page, place);
        let taken = std::mem::take(&mut self.map_traffic.page(page).taken);
        self.tasks.push(Task::Updated(taken));
        self.tasks.push(Task::MapProgrammed(page, place));
    }

    /// Those whose update is in flash have gone on: others need the translation page, or nobody does.
    pub(super) fn map_programmed(&mut self, page: u32, place: Ppn) {
        let plane = self.ftl.blocks.plane_of(self.ftl.blocks.block_of(place));
        if std::mem::take(&mut self.map_traffic.page(page).moving) {
            self.map_traffic.jobs[plane].waiting = false;
        }
        match (self.wants_update(page), self.map_state().batch) {
            // The controller still holds it.
            (true, true) => self.program_map(page),
            (true, false) => self.update(page),
            (false, _) => self.map_traffic.page(page).state = State::Idle,
        }
        self.program_ended(place);
        self.clean_map(plane);
        // A victim that waited for the update may wait for nothing but the journal now.
        self.journal_for_resting();
    }

    /// Resumes transactions that waited for an update. Runs the tasks of each one before the next.
    pub(super) fn updated(&mut self, mut waiting: Fifo) {
        while !waiting.is_empty() {
            let node = waiting.pop(&mut self.transactions);
            if self.transactions[node].kind == Kind::MapHold {
                let held = self.transactions.remove(node).dependency;
                self.release(held);
            } else {
                self.evicted(node);
            }
            if self.tasks.any_new() {
                return self.tasks.push(Task::Updated(waiting));
            }
        }
    }

    /// The program of a translation page has failed: the controller still holds it, and who waits for it goes on
    /// waiting.
    fn write_map_again(&mut self, page: u32, place: Ppn) {
        let group = self.ftl.shape().units_per_program;
        let entry = &mut self.map_traffic.pages[page];
        entry.state = State::Queued;
        let taken = std::mem::take(&mut entry.taken);
        if taken.is_empty() && !entry.moving {
            entry.owed += 1;
        }
        entry.writers.put_before(&mut self.transactions, taken);
        self.program_failed(place, group, group);
        if self.ftl.is_read_only() {
            return self.drop_map_update(page);
        }
        self.queue_map(page);
    }

    /// A device that takes no writes keeps what has changed of a translation page in the controller: who waits for its
    /// update goes on.
    fn drop_map_update(&mut self, page: u32) {
        let entry = self.map_traffic.page(page);
        (entry.state, entry.owed, entry.moving) = (State::Idle, 0, false);
        let mut waiting = std::mem::take(&mut entry.writers);
        let taken = std::mem::take(&mut entry.taken);
        waiting.put_before(&mut self.transactions, taken);
        self.entries_here(page, None);
        self.tasks.push(Task::Updated(waiting));
    }

    /// The same for all translation pages that wait for room.
    pub(super) fn drop_map_updates(&mut self) {
        let stalled: Vec<u32> = self.map_traffic.stalled.iter_mut().flat_map(std::mem::take).collect();
        for page in stalled {
            if self.map_traffic.page(page).state == State::Stalled {
                self.drop_map_update(page);
            }
        }
    }

    /// What cleaning of a plane's translation pages has in hand.
    pub(super) fn map_in_hand(&self, plane: PlaneId) -> InHand {
        self.map_traffic.in_hand(plane, &self.ftl)
    }

    /// Takes the next step of reclaiming a plane's blocks of translation pages, if it needs one.
    pub(super) fn clean_map(&mut self, plane: PlaneId) {
        if self.ftl.map_state.is_none() || self.ftl.is_read_only() {
            return;
        }
        while !self.map_traffic.jobs[plane].waiting {
            let Some(victim) = self.map_victim(plane) else { return };
            let (end, group) = (self.ftl.blocks.first_unit(victim).0 + self.ftl.blocks.data_units(), self.ftl.shape());
            let job = &mut self.map_traffic.jobs[plane];
            let mut units = (job.cursor..end).step_by(group.units_per_program as usize);
            if let Some(unit) = units.find(|&unit| self.ftl.blocks.is_valid(Ppn(unit))) {
                (job.cursor, job.waiting) = (unit, true);
                return self.move_map(self.ftl.map.owner(Ppn(unit)) & !TRANSLATION);
            }
            let failed = self.ftl.blocks.block(victim).failed;
            job.victim = None;
            job.doomed += u32::from(!failed);
            self.ftl.blocks.doom(victim);
            if self.ftl.blocks.can_erase(victim) {
                self.erase(victim);
            }
            if failed {
                self.unstall_map(plane);
            }
        }
    }

    /// The victim that is being moved, or the next one where free blocks are few and all of it would find room.
    fn map_victim(&mut self, plane: PlaneId) -> Option<BlockId> {
        let (blocks, stock) = (&self.ftl.blocks, self.ftl.blocks.free_blocks(plane, Role::Map));
        let may_take = |claim| blocks.may_take(blocks.region(plane, Role::Map), claim);
        let takes_victim = may_take(Claim::Victim(InHand::default()));
        if self.map_traffic.jobs[plane].victim.is_none()
            && self.ftl.faults.is_some()
            && let Some(failed) = self.ftl.first_failed(plane, Role::Map)
            && may_take(Claim::Failed { hand: InHand::default(), valid: u32::from(blocks.block(failed).valid) })
        {
            self.ftl.take_failed(failed);
            let cursor = self.ftl.blocks.first_unit(failed).0;
            let job = &mut self.map_traffic.jobs[plane];
            (job.victim, job.cursor) = (Some(failed), cursor);
            return job.victim;
        }
        let job = &mut self.map_traffic.jobs[plane];
        if job.victim.is_none() && stock + job.doomed <= RESERVE && takes_victim {
            let victim = self.ftl.blocks.take_victim(self.ftl.blocks.region(plane, Role::Map), 0)?;
            self.ftl.counters.map.victims += 1;
            (job.victim, job.cursor) = (Some(victim), self.ftl.blocks.first_unit(victim).0);
        }
        job.victim
    }

    /// Moves a translation page: by an update, which may use the room that is kept for this.
    fn move_map(&mut self, page: u32) {
        let entry = self.map_traffic.page(page);
        entry.moving = true;
        match entry.state {
            State::Idle => {
                if !self.read_to_update(page) {
                    self.program_moving(page);
                }
            }
            State::Stalled => self.queue_map(page),
            State::Fetching | State::Reading | State::Queued | State::Programming => {}
        }
    }

    /// A block of translation pages has been erased.
    pub(super) fn map_erased(&mut self, plane: PlaneId, failed: bool) {
        let doomed = &mut self.map_traffic.jobs[plane].doomed;
        *doomed = doomed.saturating_sub(1);
        if failed {
            self.check_spare(plane);
            // A free block of data may have taken its place.
            self.clean(plane);
        }
        self.unstall_map(plane);
        self.clean_map(plane);
    }

    /// A block of data has been erased; where it went to translation pages, which had `stock` free ones, they go on.
    pub(super) fn map_paid(&mut self, plane: PlaneId, stock: u32) {
        if self.ftl.blocks.free_blocks(plane, Role::Map) > stock {
            self.unstall_map(plane);
            self.clean_map(plane);
        }
    }

    /// Cleaning has moved a unit out of the block of `from`: its entry changes, in the cache or in flash. The block is
    /// not erased before.
    pub(super) fn entry_moved(&mut self, lpn: Lpn, from: Ppn) {
        let Some(state) = self.ftl.map_state.as_mut().filter(|_| lpn.0 < self.ftl.host_units) else { return };
        if state.lazy && state.cmt.change(lpn) {
            return;
        }
        let (page, victim) = (state.page_of(lpn), self.ftl.blocks.block_of(from));
        let moved = &mut self.map_traffic.moved[self.ftl.blocks.plane_of(victim)];
        if !moved.iter().rev().any(|&(block, _)| block == victim.0) {
            self.ftl.blocks.depend(from);
        }
        moved.push((victim.0, page));
    }

    /// Asks for the updates that follow from the victims of a plane that have been moved as a whole.
    #[inline]
    pub(super) fn update_moved(&mut self, plane: PlaneId) {
        if self.map_traffic.moved.get(plane).is_some_and(|moved| !moved.is_empty()) {
            self.hold_moved(plane);
        }
    }

    /// Lets each victim that has been moved as a whole wait for the updates that follow from that.
    fn hold_moved(&mut self, plane: PlaneId) {
        let mut holds = Fifo::default();
        let mut moved = std::mem::take(&mut self.map_traffic.moved[plane]);
        moved.sort_unstable();
        if self.map_state().batch {
            moved.dedup();
        }
        for of_victim in moved.chunk_by(|a, b| a.0 == b.0) {
            let victim = BlockId(of_victim[0].0);
            if self.jobs[plane].moves(victim, &self.ftl) {
                self.map_traffic.moved[plane].extend(of_victim);
                continue;
            }
            for &(_, page) in of_victim {
                self.ftl.blocks.depend(self.ftl.blocks.first_unit(victim));
                let mut hold = Transaction::new(Kind::MapHold, Class::Gc).of_map_page(page);
                hold.dependency = victim;
                let hold = self.transactions.insert(hold);
                holds.push(&mut self.transactions, hold);
            }
        }
        // Its room serves the next time.
        let kept = &mut self.map_traffic.moved[plane];
        if kept.is_empty() {
            moved.clear();
            *kept = moved;
        }
        if !holds.is_empty() {
            self.tasks.push(Task::AskUpdates(holds, BlockId::NONE));
        }
    }

    /// Asks for the update that each of these victims waits for. What one sets off comes before the next one. The
    /// victim whose last update has been asked for is `moved`, or `NONE`.
    pub(super) fn ask_updates(&mut self, mut holds: Fifo, moved: BlockId) {
        if moved.is_some() {
            self.release(moved);
        }
        if !self.tasks.any_new() && !holds.is_empty() {
            let hold = holds.pop(&mut self.transactions);
            let (page, victim) = (self.transactions[hold].map_page(), self.transactions[hold].dependency);
            self.ask_update(page, hold);
            let next = holds.first();
            let is_last = next.is_none() || self.transactions[next].dependency != victim;
            return self.tasks.push(Task::AskUpdates(holds, if is_last { victim } else { BlockId::NONE }));
        }
        if !holds.is_empty() {
            self.tasks.push(Task::AskUpdates(holds, BlockId::NONE));
        }
    }
}

/// What scheduling sees of traffic for a cause; `of_host` where the host waits for it.
fn class_of(cause: MapCause, of_host: Class) -> Class {
    match cause {
        MapCause::Miss | MapCause::Eviction | MapCause::Functional => of_host,
        MapCause::Cleaning => Class::Gc,
        MapCause::MapCleaning => Class::UrgentGc,
    }
}

fn cause_of(number: u16) -> MapCause {
    const CAUSES: [MapCause; 4] = [MapCause::Miss, MapCause::Eviction, MapCause::Cleaning, MapCause::MapCleaning];
    CAUSES[usize::from(number)]
}
