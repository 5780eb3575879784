//! Taking requests apart: from sectors to mapping units, from units to transactions.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::cache::Pick;
use crate::ftl::mapping::Location;
use crate::ftl::partial::Update;
use crate::ftl::temperature::written::Written;
use crate::host::cores::Work;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::nand::media::BLANK;
use crate::observe::Origin;
use crate::sim::id::{Lpn, Ppn, RequestId, TransactionId};
use crate::sim::request::{Operation, Request, Status};
use crate::sim::time::Time;
use crate::work::{Class, Kind, Reading, Task, Transaction};

impl Device {
    /// Asks for the map entry of a request of the near future, or for what the buffer knows of its unit. Changes
    /// nothing.
    #[inline]
    pub fn prefetch(&self, request: &Request) {
        let lpn = self.interface.first_unit(request);
        if let Some(buffer) = &self.buffer {
            buffer.prefetch(lpn);
        }
        if !self.stays_in_buffer(request) {
            self.ftl.map.prefetch(lpn);
        }
    }

    /// Asks for what is known of the place of a request of the near future, whose map entry was asked for before.
    #[inline]
    pub fn prefetch_place(&self, request: &Request) {
        let lpn = self.interface.first_unit(request);
        if lpn.0 < self.ftl.map.len() && !self.stays_in_buffer(request) {
            self.ftl.prefetch(lpn);
        }
    }

    /// Whether a request will not look into the map before the buffer writes it out.
    #[inline]
    fn stays_in_buffer(&self, request: &Request) -> bool {
        request.operation == Operation::Write && self.writes_back()
    }

    /// A request has got a place in the queue.
    #[inline(always)]
    pub(super) fn enter(&mut self, at: Time, request: Request) {
        if !self.interface.is_in_range(&request) {
            let refused = request;
            return self.refuse(&refused);
        }
        let id = self.interface.enter(request);
        self.observe_entered(id, at);
        if !self.interface.has_link() {
            return self.receive_or_queue(id);
        }
        self.interface.send(id, at);
        if self.timer(Timer::Link).is_none() {
            self.arm_link();
        }
    }

    /// A request goes beyond the last sector.
    #[cold]
    fn refuse(&mut self, request: &Request) {
        self.observe_refused(request);
        self.interface.refuse(*request, Status::OutOfRange, self.now);
    }

    /// One step of a request has crossed the link.
    pub(super) fn arrived(&mut self, id: RequestId, last: bool) {
        self.observe_request(id, TimePart::Link);
        if self.interface.requests[id].request.operation != Operation::Write {
            return self.receive_or_queue(id);
        }
        let before = self.interface.requests[id].crossed;
        // Up to the end of the page that has just arrived.
        let end = if last { self.interface.units_of(id) } else { self.interface.end_of_page(id, before) };
        self.interface.requests[id].crossed = end;
        if before == 0 {
            self.receive_or_queue(id);
        } else if self.interface.requests[id].received {
            self.work_on_write(id, before..end);
        }
    }

    /// The controller's software learns of a request, after the time that this takes.
    #[inline]
    fn receive_or_queue(&mut self, id: RequestId) {
        if !self.queue_work(Work::Receive(id)) {
            self.receive(id);
        }
    }

    /// A request is in the controller, and its software knows of it.
    pub(super) fn receive(&mut self, id: RequestId) {
        let pending = &mut self.interface.requests[id];
        pending.received = true;
        let operation = pending.request.operation;
        match operation {
            Operation::Read => self.receive_read(id),
            Operation::Write | Operation::WriteZeroes => {
                if !self.interface.has_link() || operation == Operation::WriteZeroes {
                    self.interface.requests[id].crossed = self.interface.units_of(id);
                }
                self.work_on_write(id, 0..self.interface.requests[id].crossed);
            }
            Operation::Trim if self.queue_work(Work::Trim(id, self.interface.units_of(id))) => {}
            Operation::Trim => self.trim(id),
            Operation::Flush if self.ftl.is_read_only() => self.flush_read_only(id),
            Operation::Flush => self.receive_flush(id),
        }
    }

    #[inline(always)]
    fn receive_read(&mut self, id: RequestId) {
        let units = 0..self.interface.units_of(id);
        self.interface.requests[id].remaining += units.end;
        self.dispatch.note_host_read(self.now);
        // Looking it up searches the buffer once more: where no time passes in between, one unit needs no search before
        // that. Several are read in the runs between those that are there.
        match self.buffer {
            Some(_) if units.end > 1 || self.interface.cores.is_some() => {
                if !self.queue_by_page(id, &units, Work::Search) {
                    self.search_buffer(id, units);
                }
            }
            _ => self.look_up_units(id, units),
        }
        self.part_done(id, self.now, TransactionId::NONE);
    }

    fn receive_flush(&mut self, id: RequestId) {
        self.hurry_filling();
        let journalling = self.flush_journal(id);
        if !self.flush(id) {
            if journalling {
                self.part_done(id, self.now, TransactionId::NONE);
            } else {
                self.done_at_once(id);
            }
        }
        if self.tasks.any_new() {
            return self.tasks.push(Task::ReleaseUrgent);
        }
        self.release_urgent();
    }

    /// Work on units of a write that have arrived.
    #[inline]
    fn work_on_write(&mut self, id: RequestId, units: Range<u32>) {
        if !self.queue_by_page(id, &units, |id, _, count| Work::Admit(id, count)) {
            self.bring(id, units.len() as u32);
        }
    }

    /// A request without data is served.
    pub(super) fn done_at_once(&mut self, id: RequestId) {
        self.interface.requests[id].start = self.now;
        self.part_done(id, self.now, TransactionId::NONE);
    }

    /// Reads units of a request, after the time that the software takes to look them up.
    #[inline]
    pub(super) fn look_up_units(&mut self, id: RequestId, units: Range<u32>) {
        if !self.queue_by_page(id, &units, Work::LookUp) {
            self.read_units(id, units);
        }
    }

    /// Reads units of a request: each is looked up where it is.
    #[inline]
    pub(super) fn read_units(&mut self, request: RequestId, units: Range<u32>) {
        // Where planes are read together, none starts before those that come with it are queued.
        let holds = self.dispatch.merges() && units.len() > 1 && self.tasks.hold_unless_held();
        self.read_rest(Reading { request, next: units.start, end: units.end, open: TransactionId::NONE });
        self.release_behind(holds);
    }

    /// Reads the remaining units of a request. Runs the tasks of each unit before the next one.
    #[inline(always)]
    pub(super) fn read_rest(&mut self, mut reading: Reading) {
        while reading.next < reading.end {
            let part = self.interface.part_of(reading.request, reading.next);
            if self.buffer.is_none() || !self.read_buffer(reading.request, part) {
                reading.open = self.look_up(reading.request, part, reading.open);
            }
            reading.next += 1;
            if self.tasks.any_new() {
                return self.tasks.push(Task::Read(reading));
            }
        }
        if reading.open.is_some() {
            self.enqueue(reading.open);
        }
    }

    /// Reads a unit once its map entry is in the cache. `open` is as for [`Device::read_unit`].
    #[inline(always)]
    fn look_up(&mut self, id: RequestId, part: Part, open: TransactionId) -> TransactionId {
        if self.has_entry(part.lpn) {
            return self.read_unit(id, part, open, TransactionId::NONE);
        }
        self.wait_to_read(id, part);
        open
    }

    /// Reads a unit from where it is. What begins for it goes on from where the transaction `from` has come to, or the
    /// request where that is `NONE`. `open` is a flash read that is not in line yet and may take more; returned is
    /// the one that is open afterwards.
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
                self.answer_at_once(id, part, from);
                open
            }
            Location::Slot(slot) => {
                self.read_slot(id, slot, part, from);
                open
            }
            Location::Flash(ppn) => self.read_flash(id, ppn, part, open, from),
        }
    }

    /// The controller answers a part of a read by itself.
    #[inline(never)]
    fn answer_at_once(&mut self, id: RequestId, part: Part, from: TransactionId) {
        let pending = &mut self.interface.requests[id];
        pending.start = pending.start.min(self.now);
        self.reply(id, part.end - part.first, from);
    }

    /// Reads a unit whose write is on its way.
    #[inline(never)]
    fn read_slot(&mut self, id: RequestId, slot: TransactionId, part: Part, from: TransactionId) {
        let write = self.transactions[slot];
        let held = write.complete || (u32::from(write.first) <= part.first && part.end <= u32::from(write.end));
        self.ftl.counters.slot_reads += 1;
        if held {
            self.check_slot_read(id, slot, part.first, part.end);
            self.observe_slot_read(id, slot, part);
            return self.answer_at_once(id, part, from);
        }
        let mut read = Transaction::waiting(Kind::SlotRead, id, part.lpn, [part.first, part.end, part.offset]);
        read.next = write.readers;
        let read = self.transactions.insert(read);
        self.transactions[slot].readers = read;
        self.observe_read(read, part, Ppn(0), from);
    }

    /// Reads a unit from flash. Neighbours in one page are read together: `open` is the read that may take more.
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
                self.observe_read_joined(open, part, ppn);
                self.note_read_unit(open, ppn, false);
                return open;
            }
            self.enqueue(open);
        }
        let block = self.ftl.blocks.depend(ppn);
        let mut read = Transaction::new(Kind::HostRead, Class::HostRead).of_request(id);
        read.plane = self.ftl.blocks.plane_of(block);
        read.ppn = ppn;
        read.lpn = part.lpn;
        read.dependency = block;
        read.end = (part.end - part.first) as u16;
        if shape.pages_per_unit > 1 {
            let per_page = shape.sectors_per_unit / shape.pages_per_unit;
            read.units = (part.end.div_ceil(per_page) - part.first / per_page) as u16;
        }
        let read = self.transactions.insert(read);
        self.observe_flash_read(read, part, ppn, from);
        self.note_read_unit(read, ppn, true);
        read
    }

    /// Takes units of waiting writes into controller slots, or into the buffer, in order of arrival. The caller does
    /// nothing behind it.
    #[inline]
    pub(super) fn admit(&mut self) {
        if self.interface.unadmitted.is_empty() && self.buffer_is_at_rest() {
            return;
        }
        if self.tasks.any_new() {
            return self.tasks.push(Task::Admit);
        }
        self.admit_now();
    }

    /// Begins to admit writes, and to write out of the buffer.
    #[inline(always)]
    pub(super) fn admit_now(&mut self) {
        let holds = self.writes_go_together() && self.tasks.hold_unless_held();
        self.admit_rest(None);
        self.release_behind(holds);
    }

    /// Goes on admitting writes. What one step sets off comes before the next one. `before` is the room that the buffer
    /// had when it began to write out; it is `None` until then.
    #[inline(always)]
    pub(super) fn admit_rest(&mut self, mut before: Option<u32>) {
        loop {
            match before {
                None if self.admit_next() => {}
                None => before = Some(self.room_in_buffer()),
                Some(_) if self.write_out_next() => {}
                // What found no room finds it only where something has left.
                Some(room) if self.room_in_buffer() > room => before = None,
                Some(_) => break,
            }
            if self.tasks.any_new() {
                // Mostly the only request has been admitted, and there is no buffer.
                if !self.interface.unadmitted.is_empty() || self.buffer.is_some() {
                    self.tasks.push(Task::AdmitRest(before));
                }
                return;
            }
        }
    }

    /// Returns `true` if a write must not start before those that come with it are queued: they may fill its program or
    /// share its command, and with dynamic allocation it must not occupy a LUN that one of them has to read first.
    pub(super) fn writes_go_together(&self) -> bool {
        self.ftl.shape().units_per_program > 1 || self.dispatch.merges() || self.dispatch.has_pools()
    }

    /// Calls `act`. If it `holds` LUNs back, those look at what was queued for them after the outermost such call.
    #[inline]
    pub(super) fn while_holding<T>(&mut self, holds: bool, act: impl FnOnce(&mut Device) -> T) -> T {
        if !holds || self.tasks.holds() {
            return act(self);
        }
        self.tasks.hold();
        let result = act(self);
        self.dispatch.release_held(&mut self.tasks);
        result
    }

    /// If LUNs are held back for a part of the handling, releases them behind all that the part has set off.
    #[inline]
    pub(super) fn release_behind(&mut self, holds: bool) {
        match holds {
            true if self.tasks.any_new() => self.tasks.push(Task::Release),
            true => self.dispatch.release_held(&mut self.tasks),
            false => {}
        }
    }

    /// Admits the next unit of the first request that waits. Returns `false` if it has to wait.
    fn admit_next(&mut self) -> bool {
        let Some(&id) = self.interface.unadmitted.front() else { return false };
        let back = self.writes_back();
        let pending = &self.interface.requests[id];
        if pending.admitted < pending.arrived {
            let part = self.interface.part_of(id, pending.admitted);
            if self.ftl.is_read_only() {
                self.refuse_unit(id, back);
            } else if self.has_place(&pending.request, part) {
                self.admit_unit(id, part, back);
            } else {
                return false;
            }
        }
        let pending = &mut self.interface.requests[id];
        let is_zeroed = pending.request.operation == Operation::WriteZeroes;
        // What its last unit has set off comes before what ends it.
        if self.tasks.any_new() && (is_zeroed || pending.remaining == 1) {
            return true;
        }
        if is_zeroed && pending.admitted == pending.arrived {
            pending.start = pending.start.min(self.now);
        }
        if pending.admitted < self.interface.units_of(id) {
            let pending = &self.interface.requests[id];
            return pending.admitted < pending.arrived;
        }
        if is_zeroed {
            self.land_records(id);
        }
        self.interface.unadmitted.pop_front();
        self.part_done(id, self.now, TransactionId::NONE);
        true
    }

    /// Takes a unit of a write that has a place, into the buffer where that takes writes `back`.
    #[inline(always)]
    fn admit_unit(&mut self, id: RequestId, part: Part, back: bool) {
        let pending = &mut self.interface.requests[id];
        pending.admitted += 1;
        let request = pending.request;
        if let (true, Some(buffer)) = (back, &mut self.buffer) {
            buffer.end_wait();
        }
        if request.operation == Operation::WriteZeroes && self.is_whole(part) {
            self.observe_request(id, TimePart::Buffer);
            self.deallocate(part.lpn);
        } else if back {
            self.observe_request(id, TimePart::Buffer);
            self.write_back(id, &request, part);
        } else {
            self.accept_write(id, &request, part);
        }
    }

    /// Accepts a unit's write: from here on reads see it.
    #[inline(always)]
    fn accept_write(&mut self, id: RequestId, request: &Request, part: Part) {
        self.slots_free -= 1;
        self.interface.requests[id].remaining += 1;
        let before = self.ftl.map.get(part.lpn);
        let mapped = before != Location::Unmapped;
        let update = self.ftl.partial.write(part.lpn.0, mapped, part.first, part.end);
        self.ftl.note_update(update);
        self.ftl.counters.host_units += 1;
        self.ftl.counters.host_bytes += u64::from(part.end - part.first) * 512;

        let mut write = Transaction::new(Kind::Write, Class::HostProgram).of_request(id);
        (write.first, write.end) = (part.first as u16, part.end as u16);
        write.version = if request.operation == Operation::WriteZeroes { BLANK } else { request.tag as u32 };
        self.note_kept(&mut write, part.lpn.0, part.end - part.first, update);
        let Request { sectors, stream, placement, .. } = *request;
        let written = Written { sectors, stream, placement, ..Written::default() };
        write.temperature = self.ftl.classify(part.lpn, before, written);
        self.write_through(part, write.version);
        self.start_on_write(write, part.lpn, before, Origin::Host(part));
    }

    /// Records how many sectors of its unit a write keeps: those that were ever written, less its `own`.
    #[inline]
    fn note_kept(&self, write: &mut Transaction, lpn: u32, own: u32, update: Update) {
        write.complete = update != Update::Uncovered;
        if !write.complete {
            write.units = (self.ftl.partial.written(lpn) - own) as u16;
        }
    }

    /// Accepts a unit's write that the buffer makes.
    pub(super) fn write_unit_of_buffer(&mut self, pick: Pick, before: Location) {
        let mut write = Transaction::new(Kind::Write, Class::HostProgram).of_request(pick.owner);
        if let (Some(buffer), true) = (self.buffer.as_deref(), pick.entry != Pick::PADDING) {
            let mapped = before != Location::Unmapped;
            let own = buffer.sectors_of(pick.entry);
            let update = self.ftl.partial.write_set(pick.lpn, mapped, own);
            self.ftl.note_update(update);
            let own = buffer.sectors_in(&pick);
            self.note_kept(&mut write, pick.lpn, own, update);
            let written = Written { sectors: own, ..Written::default() };
            write.temperature = self.ftl.classify(Lpn(pick.lpn), before, written);
        } else {
            write.temperature = self.ftl.class_of(pick.lpn);
        }
        self.start_on_write(write, Lpn(pick.lpn), before, Origin::Buffer(pick));
    }

    /// A write takes its slot: the map shows it, and it waits for what it needs.
    #[inline(always)]
    fn start_on_write(&mut self, mut write: Transaction, lpn: Lpn, before: Location, origin: Origin) {
        self.ftl.blocks.clock += 1;
        write.lpn = lpn;
        match before {
            Location::Unmapped => {}
            Location::Flash(ppn) => {
                write.source = ppn;
                self.ftl.blocks.prefetch(ppn);
                self.ftl.blocks.prefetch_candidate(ppn);
            }
            Location::Slot(older) => write.older = older,
        }
        let id = self.transactions.insert(write);
        self.observe_accepted(id, before, origin);
        self.ftl.map.set_slot(lpn, id);
        // It may start before this returns, and its data leave the memory then.
        if let (Origin::Buffer(pick), Some(buffer)) = (origin, &mut self.buffer) {
            buffer.take_off(id, pick);
        }
        match before {
            Location::Slot(older) => {
                self.transactions[older].newer = id;
                self.use_entry(lpn);
                if self.ftl.is_read_only() {
                    self.complete_unwritten(older, id);
                    self.answer_unwritten(id);
                }
            }
            _ if self.ftl.shape().hooks.entries => self.translate_write(id),
            Location::Flash(ppn) if !write.complete => self.read_for(id, ppn),
            _ => {
                // What is left until now is the way out of the buffer.
                if let Origin::Buffer(_) = origin {
                    self.observe_spent(id, TimePart::Order);
                }
                self.queue_write(id);
            }
        }
    }

    /// Reads what a partial write has to keep.
    pub(super) fn read_for(&mut self, write: TransactionId, ppn: Ppn) {
        let block = self.ftl.blocks.depend(ppn);
        let mut read = Transaction::new(Kind::RmwRead, Class::RmwRead).of_write(write);
        read.plane = self.ftl.blocks.plane_of(block);
        read.ppn = ppn;
        read.dependency = block;
        read.units = self.ftl.shape().pages_per_unit as u16;
        read.end = self.transactions[write].units;
        self.dispatch(read);
    }

    /// A write has all its data: it waits for a place.
    #[inline]
    pub(super) fn queue_write(&mut self, id: TransactionId) {
        if self.ftl.shape().hooks.places {
            return self.with_scheme(|scheme, device| scheme.place(device, id));
        }
        if self.ftl.is_read_only() {
            return self.answer_unwritten(id);
        }
        if self.dispatch.filling.is_some() {
            return self.stage(id);
        }
        self.enqueue_write(id);
    }

    /// A write goes to the lines of its plane, or of its pool.
    pub(super) fn enqueue_write(&mut self, id: TransactionId) {
        let Some(plane) = self.ftl.home(self.transactions[id].lpn) else {
            return self.queue_anywhere(id);
        };
        self.transactions[id].plane = plane;
        if self.dispatch.has_parked(plane) || !self.ftl.blocks.takes_host_write(plane) {
            self.show_enqueued(id);
            self.dispatch.park_new(&mut self.transactions, plane, id);
            self.observe_stalled(id);
            return self.clean(plane);
        }
        self.enqueue(id);
    }

    /// Deallocates the units of a request.
    pub(super) fn trim(&mut self, id: RequestId) {
        if self.ftl.is_read_only() {
            self.interface.requests[id].status = Status::ReadOnly;
            return self.done_at_once(id);
        }
        self.trim_rest(id, 0);
    }

    /// Deallocates the units of a request from `index` on. Runs the tasks of each unit before the next one.
    pub(super) fn trim_rest(&mut self, id: RequestId, mut index: u32) {
        while index < self.interface.units_of(id) {
            let part = self.interface.part_of(id, index);
            // A unit that is not covered whole keeps its data, as NVMe allows.
            if self.is_whole(part) {
                self.deallocate(part.lpn);
            }
            index += 1;
            if self.tasks.any_new() {
                return self.tasks.push(Task::Trim(id, index));
            }
        }
        self.land_records(id);
        self.done_at_once(id);
        // A scheme with blocks of its own drops writes that were trimmed while they waited.
        self.admit();
    }

    /// Whether a part of a request is all of its unit.
    pub(super) fn is_whole(&self, part: Part) -> bool {
        part.end - part.first == self.ftl.shape().sectors_per_unit
    }

    /// What a request with FUA has deallocated has to stay so: it waits for the records of that, as a flush would.
    fn land_records(&mut self, id: RequestId) {
        if self.must_land(&self.interface.requests[id].request)
            && (0..self.interface.units_of(id)).any(|index| self.is_whole(self.interface.part_of(id, index)))
        {
            self.flush_journal(id);
        }
    }

    /// Deallocates a unit, with all writes of it that are in the buffer or on their way.
    fn deallocate(&mut self, lpn: Lpn) {
        let was_buffered = self.forget_buffered(lpn);
        self.unmap(lpn);
        if was_buffered {
            // Flushes that waited for nothing else: they have to find the record that they wait for instead.
            self.end_flushes();
        }
    }

    /// Takes a unit out of the map, and notes so for the journal.
    fn unmap(&mut self, lpn: Lpn) {
        let sequence = self.observe_trimmed(lpn);
        let invalid = match self.ftl.map.get(lpn) {
            Location::Unmapped => return,
            Location::Flash(ppn) => Some(ppn),
            Location::Slot(newest) => {
                let mut id = newest;
                loop {
                    let write = &mut self.transactions[id];
                    write.trimmed = true;
                    if write.older.is_none() {
                        break std::mem::replace(&mut write.source, Ppn::NONE).get();
                    }
                    id = write.older;
                }
            }
        };
        self.ftl.map.unmap(lpn);
        self.entry_changed(lpn);
        self.ftl.partial.forget(lpn.0);
        if self.durability.is_some() {
            self.journal_trim(lpn, sequence, invalid);
        }
        if let Some(ppn) = invalid {
            self.ftl.blocks.invalidate(ppn);
            self.ftl.counters.units_trimmed += 1;
            if self.ftl.shape().hooks.places {
                self.with_scheme(|scheme, device| scheme.trimmed(device, lpn));
            }
            self.clean(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn)));
        }
    }
}
