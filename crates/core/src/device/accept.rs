//! Acceptance of requests: splits them into parts by mapping unit, and the parts into transactions. Some of them wait
//! for their map entries.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::cache::Buffer;
use crate::cache::traffic::{has_place, must_reach_flash};
use crate::dispatch;
use crate::durability::Durability;
use crate::durability::flash::FlashEvent;
use crate::ftl::in_flight::Unmapped;
use crate::ftl::mapping::{Change, Context, Location, LookUp, call};
use crate::ftl::temperature::written::Written;
use crate::host::cores::Work;
use crate::host::requests::Part;
use crate::host::stages::{Admission, Received};
use crate::host::throttle::Passage;
use crate::metrics::attribution::Part as TimePart;
use crate::nand::media::BLANK;
use crate::observe::Origin;
use crate::sim::id::{Lpn, Ppn, RequestId, TransactionId};
use crate::sim::request::{Operation, Request, Status};
use crate::sim::time::Time;
use crate::work::{Fifo, Kind, Reading, Task, Transaction};

impl Device {
    /// Accepts a request that has a queue slot, and sends it over the link if there is one.
    #[inline(always)]
    pub(super) fn enter(&mut self, at: Time, request: Request) {
        if !self.interface.is_in_range(&request) {
            let refused = request;
            self.observe(move |observers, view| observers.refused(view, &refused));
            return self.interface.refuse(request, Status::OutOfRange, self.now);
        }
        self.jobs.end_idle_time(&mut self.ftl, &self.config);
        let id = self.interface.enter(request);
        self.observe(move |observers, view| observers.entered(view, id, at));
        if !self.interface.has_link() {
            return self.receive_or_queue(id);
        }
        self.interface.send(id, at);
        if Timer::Link.time(&mut self.array).is_none() {
            Timer::Link.set_if(&mut self.array, self.interface.next_arrival());
        }
    }

    /// Receives a request, after the firmware time that this takes.
    #[inline(always)]
    pub(super) fn receive_or_queue(&mut self, id: RequestId) {
        if !self.queue_work(Work::Receive(id)) {
            self.receive(id);
        }
    }

    /// Starts to process a request that is in the controller and known to the firmware.
    #[inline(always)]
    pub(super) fn receive(&mut self, id: RequestId) {
        match self.interface.receive(id, self.now) {
            Received::Read(units) => {
                self.dispatch.note_host_read(self.now);
                if self.buffer.is_none() {
                    self.look_up_units(id, 0..units);
                } else {
                    self.receive_buffered(id, units);
                }
            }
            Received::Write(units) => self.work_on_write(id, 0..units),
            Received::Waits => {}
            Received::Command(operation) => self.receive_command(id, operation),
        }
    }

    /// Starts to process a request without data.
    #[inline(never)]
    fn receive_command(&mut self, id: RequestId, operation: Operation) {
        match operation {
            Operation::Read | Operation::Write | Operation::WriteZeroes => {}
            Operation::Trim if self.queue_work(Work::Trim(id, self.interface.units_of(id))) => {}
            Operation::Trim => self.trim_rest(id, 0),
            Operation::Flush if self.ftl.is_read_only() => {
                let durability = self.durability.as_deref();
                let trims = durability.is_some_and(Durability::has_waiting_trims);
                // The flush would have to prevent that a power cut undoes a completed write or trim.
                if self.buffer().map_or(trims, |buffer| buffer.loses_data(trims)) {
                    self.interface.set_status(id, Status::ReadOnly);
                }
                self.done_at_once(id);
            }
            Operation::Flush => {
                if let Some(filling) = &mut self.dispatch.filling {
                    filling.make_all_urgent();
                }
                let journalling = self.flush_journal(id);
                if self.buffer.as_deref_mut().is_some_and(|buffer| buffer.flush(id)) {
                    self.admit();
                } else if journalling {
                    self.part_done(id, self.now, TransactionId::NONE);
                } else {
                    self.done_at_once(id);
                }
                if self.tasks.any_new() {
                    return self.tasks.push(Task::ReleaseUrgent);
                }
                self.release_urgent();
            }
        }
    }

    /// Starts the firmware work on units of a write that have arrived.
    #[inline(always)]
    pub(super) fn work_on_write(&mut self, id: RequestId, units: Range<u32>) {
        if !self.queue_by_page(id, &units, |id, _, count| Work::Admit(id, count)) {
            self.queue_for_admission(id, units.len() as u32);
        }
    }

    /// Ends a request that has no data to wait for.
    pub(super) fn done_at_once(&mut self, id: RequestId) {
        self.interface.serve(id, self.now);
        self.part_done(id, self.now, TransactionId::NONE);
    }

    /// Looks up and reads units of a request, after the firmware time of the look-up.
    #[inline(always)]
    pub(super) fn look_up_units(&mut self, id: RequestId, units: Range<u32>) {
        if !self.queue_by_page(id, &units, Work::LookUp) {
            self.read_units(id, units);
        }
    }

    /// Reads units of a request, each from its current location.
    #[inline(always)]
    pub(super) fn read_units(&mut self, request: RequestId, units: Range<u32>) {
        // If planes are read together, no read starts before the others of the request are queued.
        let holds = self.dispatch.merges() && units.len() > 1 && self.tasks.hold_unless_held();
        self.read_rest(Reading { request, next: units.start, end: units.end, open: TransactionId::NONE });
        self.dispatch.release_behind(&mut self.tasks, holds);
    }

    /// Reads the remaining units of a request. Runs the tasks of each unit before the next one.
    #[inline(always)]
    pub(super) fn read_rest(&mut self, mut reading: Reading) {
        while reading.next < reading.end {
            let part = self.interface.part_of(reading.request, reading.next);
            let is_buffered = self.buffer.is_some() && self.read_buffer(reading.request, part);
            if !is_buffered && call::look_up(self, part.lpn, LookUp::Read) {
                reading.open = self.read_unit(reading.request, part, reading.open, TransactionId::NONE);
            } else if !is_buffered {
                self.wait_to_read(reading.request, part);
            }
            reading.next += 1;
            if self.tasks.any_new() {
                return self.tasks.push(Task::Read(reading));
            }
        }
        if reading.open.is_some() {
            dispatch::enqueue_last(self, reading.open);
        }
    }

    /// Parks a part of a read until its map entry arrives.
    #[inline(never)]
    fn wait_to_read(&mut self, id: RequestId, part: Part) {
        let wait = Transaction::waiting(Kind::Translate, id, part.lpn, [part.first, part.end, part.offset]);
        let wait = self.transactions.insert(wait);
        self.observe(move |observers, view| observers.read_began(view, wait, part, Ppn(0), TransactionId::NONE));
        call::look_up(self, part.lpn, LookUp::Await(wait));
    }

    /// Reads a unit from its current location. `from` is the transaction whose latency breakdown the read continues, or
    /// `NONE` for that of the request. `open` is a flash read that is not queued yet and may take more units. Returns
    /// the read that is open afterwards.
    #[inline(always)]
    pub(super) fn read_unit(
        &mut self,
        id: RequestId,
        part: Part,
        open: TransactionId,
        from: TransactionId,
    ) -> TransactionId {
        match self.ftl.map.get(part.lpn) {
            Location::Unmapped => {
                self.ftl.counters.unmapped_reads += 1;
                self.interface.serve(id, self.now);
                self.reply(id, part.sectors(), from);
                open
            }
            Location::Slot(slot) => {
                self.read_slot(id, slot, part, from);
                open
            }
            Location::Flash(ppn) => self.read_flash(id, ppn, part, open, from),
        }
    }

    /// Reads a unit whose newest write is outstanding.
    #[inline(never)]
    fn read_slot(&mut self, id: RequestId, slot: TransactionId, part: Part, from: TransactionId) {
        let write = self.transactions[slot];
        let held = write.complete || (u32::from(write.first) <= part.first && part.end <= u32::from(write.end));
        self.ftl.counters.slot_reads += 1;
        if held {
            if write.returns_lost(part.first, part.end) {
                self.interface.set_status(id, Status::Uncorrectable);
            }
            self.observe(move |observers, view| observers.slot_read(view, id, slot, part));
            self.interface.serve(id, self.now);
            return self.reply(id, part.sectors(), from);
        }
        let mut read = Transaction::waiting(Kind::SlotRead, id, part.lpn, [part.first, part.end, part.offset]);
        read.next = write.readers;
        let read = self.transactions.insert(read);
        self.transactions[slot].readers = read;
        self.observe(move |observers, view| observers.read_began(view, read, part, Ppn(0), from));
    }

    /// Reads a unit from flash. Consecutive units in one page share a read: `open` is the read that may take more
    /// units.
    #[inline(always)]
    fn read_flash(
        &mut self,
        id: RequestId,
        ppn: Ppn,
        part: Part,
        open: TransactionId,
        from: TransactionId,
    ) -> TransactionId {
        let shape = *self.ftl.shape();
        let (page, _) = shape.units_per_page.divide_with_rest(ppn.0);
        if open.is_some() {
            let read = &mut self.transactions[open];
            if shape.units_per_page.divide(read.ppn.0) == page {
                read.units += 1;
                read.end += (part.end - part.first) as u16;
                self.interface.requests[id].remaining -= 1;
                self.observe(move |observers, view| observers.read_joined(view, open, part, ppn));
                if let Some(buffer) = &mut self.buffer {
                    buffer.note_read(open, ppn, &shape, false);
                }
                return open;
            }
            dispatch::enqueue(self, open);
        }
        let read = self.ftl.host_read(part.lpn, ppn, part.first, part.end).of_request(id);
        let read = self.transactions.insert(read);
        if self.observers.as_ref().is_some_and(|observers| observers.see_flash_reads()) {
            self.observe(move |observers, view| observers.read_began(view, read, part, ppn, from));
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.note_read(read, ppn, &shape, true);
        }
        read
    }

    /// Admits units of waiting writes to write slots, or to the buffer, in order of arrival. Must be the caller's last
    /// action, because the rest may run as a task.
    #[inline(always)]
    pub(super) fn admit(&mut self) {
        if !self.admits_nothing() {
            self.admit_any();
        }
    }

    #[inline(never)]
    fn admit_any(&mut self) {
        if self.interface.unadmitted.is_empty() && self.buffer().is_none_or(Buffer::is_at_rest) {
            return;
        }
        if self.tasks.any_new() {
            return self.tasks.push(Task::Admit);
        }
        self.admit_now();
    }

    /// Returns `true` if there is nothing to admit, and no buffer that writes back.
    #[inline(always)]
    fn admits_nothing(&self) -> bool {
        self.interface.unadmitted.is_empty() && self.buffer.is_none()
    }

    /// Admits waiting writes, then writes back from the buffer.
    #[inline(always)]
    pub(super) fn admit_now(&mut self) {
        let holds = self.dispatch.gathers_writes() && self.tasks.hold_unless_held();
        self.admit_rest(None);
        self.dispatch.release_behind(&mut self.tasks, holds);
    }

    /// Continues to admit writes. Runs the tasks of each step before the next one. `before` is the room in the buffer
    /// when the write-back began, or `None` before that.
    #[inline(always)]
    pub(super) fn admit_rest(&mut self, mut before: Option<u32>) {
        loop {
            match before {
                None if self.admit_next() => {}
                None => before = Some(self.buffer().map_or(0, Buffer::room)),
                Some(room) => {
                    let units = self.buffer_with().map_or(0, |(buffer, mut outside)| buffer.pick_units(&mut outside));
                    if units > 0 {
                        self.write_out_picked(units);
                    } else if self.buffer().map_or(0, Buffer::room) > room {
                        before = None; // Waiting units can be admitted only if the write-back has made room.
                    } else {
                        break;
                    }
                }
            }
            // Usually the only request has been admitted, and there is no buffer.
            if self.admits_nothing() {
                return;
            }
            if self.tasks.any_new() {
                return self.tasks.push(Task::AdmitRest(before));
            }
        }
    }

    /// Admits the next unit of the first waiting request. Returns `false` if the unit has to wait.
    fn admit_next(&mut self) -> bool {
        if let Some(id) = self.interface.take_read() {
            self.observe(move |observers, view| observers.spent_by_request(view, id, TimePart::Buffer));
            self.tasks.push(Task::Receive(id));
            return true;
        }
        let Some((id, part)) = self.interface.first_unadmitted() else { return false };
        if let Some(part) = part {
            let back = self.buffer().is_some_and(Buffer::writes_back);
            let request = &self.interface.requests[id].request;
            if self.ftl.is_read_only() {
                self.interface.admit(id);
                self.interface.set_status(id, Status::ReadOnly);
                if let (true, Some(buffer)) = (back, &mut self.buffer) {
                    buffer.end_wait();
                }
                self.observe(move |observers, view| observers.spent_by_request(view, id, TimePart::Buffer));
            } else if has_place(self.buffer(), self.slots_free, request, part, &self.ftl) {
                let level = || self.buffer.as_deref().map(Buffer::fill_level);
                match self.interface.pass_throttle(id, &self.ftl, level, self.now) {
                    Passage::Free => {}
                    Passage::Delayed(time) => {
                        self.observe(move |observers, view| observers.throttled(view, id, time));
                    }
                    Passage::Until(at) => {
                        Timer::Throttle.set(&mut self.array, at);
                        return false;
                    }
                    Passage::Waits => return false,
                }
                self.admit_unit(id, part, back);
            } else {
                return false;
            }
        }
        match self.interface.next_admission(id, self.tasks.any_new(), self.now) {
            Admission::Next => return true,
            Admission::Waits => return false,
            Admission::Whole(true) => self.wait_for_trim_records(id),
            Admission::Whole(false) => {}
        }
        self.interface.end_admission();
        self.part_done(id, self.now, TransactionId::NONE);
        true
    }

    /// Admits a unit of a write that has room: to the buffer if it takes writes `back`, otherwise to a write slot.
    #[inline(always)]
    fn admit_unit(&mut self, id: RequestId, part: Part, back: bool) {
        let request = self.interface.admit(id);
        if let (true, Some(buffer)) = (back, &mut self.buffer) {
            buffer.end_wait();
        }
        if part.sectors() == 0 || request.operation != Operation::Write {
            self.admit_otherwise(id, &request, part, back);
        } else if back {
            self.observe(move |observers, view| observers.spent_by_request(view, id, TimePart::Buffer));
            self.write_back(id, &request, part);
        } else {
            self.accept_write(id, &request, part);
        }
    }

    /// Admits a unit that a request rewrites or deallocates.
    #[inline(never)]
    fn admit_otherwise(&mut self, id: RequestId, request: &Request, part: Part, back: bool) {
        let is_rewrite = part.sectors() == 0;
        let is_unmapped = is_rewrite && self.ftl.map.get(part.lpn) == Location::Unmapped;
        let is_zeroed = request.operation == Operation::WriteZeroes && self.interface.covers_unit(part);
        if back || is_unmapped || is_zeroed {
            self.observe(move |observers, view| observers.spent_by_request(view, id, TimePart::Buffer));
        }
        if is_unmapped {
            // There is nothing to rewrite.
        } else if is_zeroed {
            self.deallocate(part.lpn);
        } else if back {
            self.write_back(id, request, part);
        } else {
            self.accept_write(id, request, part);
        }
    }

    /// Accepts a unit of a write into a write slot, or a unit that a write rewrites. Later reads see the new data.
    #[inline(always)]
    fn accept_write(&mut self, id: RequestId, request: &Request, part: Part) {
        let Request { sectors, stream, placement, .. } = *request;
        let written = Written { sectors, stream, placement, ..Written::default() };
        let (mut write, before) = self.ftl.host_write(part.lpn, part.first, part.end, written);
        write.version = version_of(request);
        if let Some(buffer) = self.buffer.as_mut().filter(|_| part.sectors() > 0) {
            buffer.copy_write(part, write.version, self.now);
        }
        self.slots_free -= 1;
        self.interface.requests[id].remaining += 1;
        self.start_on_write(write.of_request(id), before, Origin::Host(part));
    }

    /// Points the map at the slot of a write, and starts what the write needs before it can be queued.
    #[inline(always)]
    pub(super) fn start_on_write(&mut self, mut write: Transaction, before: Location, origin: Origin) {
        let lpn = write.lpn;
        self.ftl.accept(&mut write, before);
        let id = self.transactions.insert(write);
        let sequence = if let Origin::Host(_) = origin { self.sequence_for_log() } else { 0 };
        self.observe(move |observers, view| observers.accepted(view, id, before, origin, sequence));
        self.ftl.map.set_slot(lpn, id);
        // The write may start before this function returns, and its data leave the memory at that time.
        if let (Origin::Buffer(pick), Some(buffer)) = (origin, &mut self.buffer) {
            buffer.note_write(id, pick);
        }
        match before {
            Location::Slot(older) => {
                self.transactions[older].newer = id;
                call::look_up(self, lpn, LookUp::Write);
                if self.ftl.is_read_only() {
                    self.complete_unwritten(older, id);
                    self.answer_unwritten(id);
                }
            }
            _ if !call::look_up(self, lpn, LookUp::Write) => {
                call::look_up(self, lpn, LookUp::Await(id));
            }
            Location::Flash(ppn) if !write.complete => self.read_for(id, ppn),
            _ => {
                // The remaining time until now was spent on leaving the buffer.
                if let Origin::Buffer(_) = origin {
                    self.observe(move |observers, view| observers.spent(view, id, TimePart::Order));
                }
                self.queue_write(id);
            }
        }
    }

    /// Reads the sectors that a partial write keeps.
    pub(super) fn read_for(&mut self, write: TransactionId, ppn: Ppn) {
        if self.config.nand.advanced.copy_back_modify {
            let plane = self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn));
            if self.ftl.home(self.transactions[write].lpn) == Some(plane) {
                return self.queue_write(write); // It reads the page itself.
            }
        }
        let read = self.ftl.rmw_read(write, &self.transactions[write], ppn);
        self.queue(read);
    }

    /// Queues a write that has all its data.
    #[inline(always)]
    pub(super) fn queue_write(&mut self, id: TransactionId) {
        if self.ftl.is_read_only() {
            return self.answer_unwritten(id);
        }
        if call::place(self, id) {
            return;
        }
        if self.dispatch.filling.is_some() {
            return self.stage(id);
        }
        self.enqueue_write(id);
    }

    /// Queues a write for its home plane or for its pool, or parks it if the plane has no room.
    pub(super) fn enqueue_write(&mut self, id: TransactionId) {
        let Some(plane) = self.ftl.home(self.transactions[id].lpn) else {
            return self.queue_anywhere(id);
        };
        self.transactions[id].plane = plane;
        if self.dispatch.has_parked(plane) || !self.ftl.blocks.takes_host_write(plane) {
            self.dispatch.note_queued(&mut self.array, id, self.now);
            self.dispatch.park_new(&mut self.transactions, plane, id);
            self.observe(move |observers, view| observers.stalled(view, id));
            return self.clean(plane);
        }
        dispatch::enqueue_last(self, id);
    }

    /// Resumes operations whose map entries have arrived. Runs the tasks of each one before the next. `open` is a flash
    /// read that is not queued yet and may take more units, or `NONE`.
    pub(super) fn translate_rest(&mut self, mut arrived: Fifo, mut open: TransactionId) {
        while !arrived.is_empty() {
            let node = arrived.pop(&mut self.transactions);
            let lpn = self.transactions[node].lpn;
            call::look_up(self, lpn, LookUp::Arrived);
            self.observe(move |observers, view| observers.spent(view, node, TimePart::MapFetch));
            if self.transactions[node].kind == Kind::Write {
                // A partial write first reads the data that it keeps.
                let Transaction { complete, source, .. } = self.transactions[node];
                match source.get() {
                    Some(ppn) if !complete => self.read_for(node, ppn),
                    _ => {
                        if complete {
                            self.observe(move |observers, view| observers.spent(view, node, TimePart::Order));
                        } else {
                            // The unit was trimmed in the meantime: there is nothing to keep.
                            self.observe(move |observers, view| observers.completed(view, node, TransactionId::NONE));
                            self.contents_complete(node);
                        }
                        self.queue_write(node);
                    }
                }
            } else {
                let wait = self.transactions.remove(node);
                let owner = wait.request();
                let (first, end, offset) = (u32::from(wait.first), u32::from(wait.end), wait.offset());
                let part = Part { lpn: wait.lpn, first, end, offset };
                if open.is_some() && self.transactions[open].request() != owner {
                    dispatch::enqueue(self, open);
                    open = TransactionId::NONE;
                }
                // Data that the buffer has accepted in the meantime are newer.
                self.observe(move |observers, view| observers.buffer_read(view, owner, part));
                open = self.read_unit(owner, part, open, node);
            }
            if self.tasks.any_new() {
                return self.tasks.push(Task::Translate(arrived, open));
            }
        }
        if open.is_some() {
            dispatch::enqueue(self, open);
        }
    }

    /// Deallocates the units of a trim request from `index` on. Runs the tasks of each unit before the next one.
    pub(super) fn trim_rest(&mut self, id: RequestId, mut index: u32) {
        if index == 0 && self.ftl.is_read_only() {
            self.interface.requests[id].status = Status::ReadOnly;
            return self.done_at_once(id);
        }
        while index < self.interface.units_of(id) {
            let part = self.interface.part_of(id, index);
            // A partly covered unit keeps its data, as NVMe allows.
            if self.interface.covers_unit(part) {
                self.deallocate(part.lpn);
            }
            index += 1;
            if self.tasks.any_new() {
                return self.tasks.push(Task::Trim(id, index));
            }
        }
        self.wait_for_trim_records(id);
        self.done_at_once(id);
        // A scheme with blocks of its own drops waiting writes that were trimmed, which frees their slots.
        self.admit();
    }

    /// Makes a request with FUA that deallocated units wait for the journal records of the trims, as a flush would.
    fn wait_for_trim_records(&mut self, id: RequestId) {
        if must_reach_flash(self.buffer(), &self.interface.requests[id].request)
            && (0..self.interface.units_of(id))
                .any(|index| self.interface.covers_unit(self.interface.part_of(id, index)))
        {
            self.flush_journal(id);
        }
    }

    /// Deallocates a unit, including its data in the buffer and its outstanding writes, and records the trim in the
    /// journal.
    fn deallocate(&mut self, lpn: Lpn) {
        if let Some(buffer) = &mut self.buffer {
            buffer.forget(lpn);
        }
        let has_journal = self.durability.as_ref().is_some_and(|durability| durability.journal.is_some());
        let sequence = if has_journal { self.ftl.next_sequence() } else { self.sequence_for_log() };
        self.observe(move |observers, _| observers.changed(FlashEvent::Trimmed { lpn, sequence }));
        if let Some(Unmapped { valid, in_flight }) = self.ftl.unmap(lpn, &mut self.transactions) {
            call::changed(self, lpn, Change::Entry);
            // The block of a write in flight may be erased soon after its program has ended.
            if let Some(durability) = &mut self.durability
                && durability.trimmed(lpn, sequence, valid.or(in_flight), &mut self.ftl.blocks)
            {
                self.write_journal();
            }
            if let Some(ppn) = valid {
                self.ftl.blocks.invalidate(ppn);
                self.ftl.counters.units_trimmed += 1;
                call::changed(self, lpn, Change::Trimmed);
                self.clean(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn)));
            }
        }
        if self.buffer.is_some() {
            // These flushes waited only for the unit. They must find the journal record that they have to wait for
            // instead.
            self.end_flushes();
        }
    }
}

/// Returns the version of the sectors that a request writes, for verification.
#[inline]
fn version_of(request: &Request) -> u32 {
    if request.operation == Operation::WriteZeroes { BLANK } else { request.tag as u32 }
}
