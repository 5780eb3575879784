//! Acceptance of requests: splits them into parts by mapping unit, and the parts into transactions.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::cache::Pick;
use crate::dispatch;
use crate::ftl::mapping::{Change, Location, LookUp, call};
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
    /// Prefetches the map entry of an upcoming request, or the buffer's entry for its unit. Changes no state.
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

    /// Prefetches the state of the physical address of an upcoming request, whose map entry was prefetched before.
    #[inline]
    pub fn prefetch_place(&self, request: &Request) {
        let lpn = self.interface.first_unit(request);
        if lpn.0 < self.ftl.map.len() && !self.stays_in_buffer(request) {
            self.ftl.prefetch(lpn);
        }
    }

    /// Returns `true` if a request does not use the map before the buffer writes it back.
    #[inline]
    fn stays_in_buffer(&self, request: &Request) -> bool {
        request.operation == Operation::Write && self.writes_back()
    }

    /// Accepts a request that has a queue slot, and sends it over the link if there is one.
    #[inline(always)]
    pub(super) fn enter(&mut self, at: Time, request: Request) {
        if !self.interface.is_in_range(&request) {
            let refused = request;
            return self.refuse(&refused);
        }
        self.jobs.end_idle_time(&mut self.ftl, &self.config);
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

    /// Completes a request that goes beyond the last sector with an error.
    #[cold]
    fn refuse(&mut self, request: &Request) {
        self.observe_refused(request);
        self.interface.refuse(*request, Status::OutOfRange, self.now);
    }

    /// Handles the arrival of the next step of a request over the link.
    pub(super) fn arrived(&mut self, id: RequestId, last: bool) {
        self.observe_request(id, TimePart::Link);
        if self.interface.requests[id].request.operation != Operation::Write {
            return self.receive_or_queue(id);
        }
        let before = self.interface.requests[id].crossed;
        // The units up to the end of the page that has just arrived.
        let end = if last { self.interface.units_of(id) } else { self.interface.end_of_page(id, before) };
        self.interface.requests[id].crossed = end;
        if before == 0 {
            self.receive_or_queue(id);
        } else if self.interface.requests[id].received {
            self.work_on_write(id, before..end);
        }
    }

    /// Receives a request, after the firmware time that this takes.
    #[inline(always)]
    fn receive_or_queue(&mut self, id: RequestId) {
        if !self.queue_work(Work::Receive(id)) {
            self.receive(id);
        }
    }

    /// Starts to process a request that is in the controller and known to the firmware.
    #[inline(always)]
    pub(super) fn receive(&mut self, id: RequestId) {
        let pending = &mut self.interface.requests[id];
        pending.received = true;
        match pending.request.operation {
            Operation::Read => self.receive_read(id),
            operation @ (Operation::Write | Operation::WriteZeroes) => {
                if !self.interface.has_link() || operation == Operation::WriteZeroes {
                    let pending = &mut self.interface.requests[id];
                    pending.crossed = pending.units;
                }
                self.work_on_write(id, 0..self.interface.requests[id].crossed);
            }
            operation => self.receive_command(id, operation),
        }
    }

    /// Starts to process a request without data.
    #[inline(never)]
    fn receive_command(&mut self, id: RequestId, operation: Operation) {
        match operation {
            Operation::Read | Operation::Write | Operation::WriteZeroes => {}
            Operation::Trim if self.queue_work(Work::Trim(id, self.interface.units_of(id))) => {}
            Operation::Trim => self.trim(id),
            Operation::Flush if self.ftl.is_read_only() => self.flush_read_only(id),
            Operation::Flush => self.receive_flush(id),
        }
    }

    #[inline(always)]
    fn receive_read(&mut self, id: RequestId) {
        let pending = &mut self.interface.requests[id];
        let units = 0..pending.units;
        pending.remaining = units.end;
        self.dispatch.note_host_read(self.now);
        // The look-up searches the buffer again. A request of one unit needs no earlier search, unless firmware time
        // passes in between. Larger requests are searched first: the units between hits are looked up together.
        match self.buffer {
            Some(_) if units.end > 1 || self.interface.cores.is_some() => {
                if !self.queue_by_page(id, &units, Work::Search) {
                    self.search_buffer(id, units);
                }
            }
            _ => self.look_up_units(id, units),
        }
    }

    fn receive_flush(&mut self, id: RequestId) {
        self.make_filling_urgent();
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

    /// Starts the firmware work on units of a write that have arrived.
    #[inline(always)]
    fn work_on_write(&mut self, id: RequestId, units: Range<u32>) {
        if !self.queue_by_page(id, &units, |id, _, count| Work::Admit(id, count)) {
            self.queue_for_admission(id, units.len() as u32);
        }
    }

    /// Ends a request that has no data to wait for.
    pub(super) fn done_at_once(&mut self, id: RequestId) {
        self.interface.requests[id].start = self.now;
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
            dispatch::enqueue_last(self, reading.open);
        }
    }

    /// Reads a unit, or waits for its map entry if the controller does not have it. `open` is as for
    /// [`Device::read_unit`].
    #[inline(always)]
    fn look_up(&mut self, id: RequestId, part: Part, open: TransactionId) -> TransactionId {
        if call::look_up(self, part.lpn, LookUp::Read) {
            return self.read_unit(id, part, open, TransactionId::NONE);
        }
        self.wait_to_read(id, part);
        open
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

    /// Completes a part of a read without flash access.
    #[inline(never)]
    fn answer_at_once(&mut self, id: RequestId, part: Part, from: TransactionId) {
        let pending = &mut self.interface.requests[id];
        pending.start = pending.start.min(self.now);
        self.reply(id, part.end - part.first, from);
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
            self.observe_slot_read(id, slot, part);
            return self.answer_at_once(id, part, from);
        }
        let mut read = Transaction::waiting(Kind::SlotRead, id, part.lpn, [part.first, part.end, part.offset]);
        read.next = write.readers;
        let read = self.transactions.insert(read);
        self.transactions[slot].readers = read;
        self.observe_read(read, part, Ppn(0), from);
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

    /// Admits units of waiting writes to write slots, or to the buffer, in order of arrival. Must be the caller's last
    /// action, because the rest may run as a task.
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

    /// Admits waiting writes, then writes back from the buffer.
    #[inline(always)]
    pub(super) fn admit_now(&mut self) {
        let holds = self.writes_go_together() && self.tasks.hold_unless_held();
        self.admit_rest(None);
        self.release_behind(holds);
    }

    /// Continues to admit writes. Runs the tasks of each step before the next one. `before` is the room in the buffer
    /// when the write-back began, or `None` before that.
    #[inline(always)]
    pub(super) fn admit_rest(&mut self, mut before: Option<u32>) {
        loop {
            match before {
                None if self.admit_next() => {}
                None => before = Some(self.room_in_buffer()),
                Some(_) if self.write_out_next() => {}
                // Waiting units can be admitted only if the write-back has made room.
                Some(room) if self.room_in_buffer() > room => before = None,
                Some(_) => break,
            }
            if self.tasks.any_new() {
                // Usually the only request has been admitted, and there is no buffer.
                if !self.interface.unadmitted.is_empty() || self.buffer.is_some() {
                    self.tasks.push(Task::AdmitRest(before));
                }
                return;
            }
        }
    }

    /// Returns `true` if a write must not start before the writes that arrive with it are queued. They may fill its
    /// program or share its command. With dynamic allocation, the write must not occupy a LUN that another one has to
    /// read first.
    pub(super) fn writes_go_together(&self) -> bool {
        self.ftl.shape().units_per_program > 1 || self.dispatch.merges() || self.dispatch.has_pools()
    }

    /// Releases the LUNs if this handler `holds` them back, after all tasks that it has pushed.
    #[inline]
    pub(super) fn release_behind(&mut self, holds: bool) {
        if !holds {
            return;
        }
        if self.tasks.any_new() {
            self.tasks.push(Task::Release);
        } else {
            self.dispatch.release_held(&mut self.tasks);
        }
    }

    /// Admits the next unit of the first waiting request. Returns `false` if the unit has to wait.
    fn admit_next(&mut self) -> bool {
        let Some(&id) = self.interface.unadmitted.front() else { return false };
        let back = self.writes_back();
        let pending = &self.interface.requests[id];
        if pending.admitted < pending.arrived {
            let part = self.interface.part_of(id, pending.admitted);
            if self.ftl.is_read_only() {
                self.refuse_unit(id, back);
            } else if self.has_place(&pending.request, part) && self.passes_throttle(id) {
                self.admit_unit(id, part, back);
            } else {
                return false;
            }
        }
        let pending = &mut self.interface.requests[id];
        let is_zeroed = pending.request.operation == Operation::WriteZeroes;
        // The tasks of the last unit run before the request ends.
        if self.tasks.any_new() && (is_zeroed || pending.remaining == 1) {
            return true;
        }
        if is_zeroed && pending.admitted == pending.arrived {
            pending.start = pending.start.min(self.now);
        }
        if pending.admitted < pending.units {
            return pending.admitted < pending.arrived;
        }
        if is_zeroed {
            self.wait_for_trim_records(id);
        }
        self.interface.unadmitted.pop_front();
        self.mark_admission();
        self.part_done(id, self.now, TransactionId::NONE);
        true
    }

    /// Admits a unit of a write that has room: to the buffer if it takes writes `back`, otherwise to a write slot.
    #[inline(always)]
    fn admit_unit(&mut self, id: RequestId, part: Part, back: bool) {
        let pending = &mut self.interface.requests[id];
        pending.admitted += 1;
        let request = pending.request;
        if let (true, Some(buffer)) = (back, &mut self.buffer) {
            buffer.end_wait();
        }
        if part.first == part.end {
            self.admit_rewrite(id, &request, part, back);
        } else if request.operation == Operation::WriteZeroes && self.is_whole(part) {
            self.observe_request(id, TimePart::Buffer);
            self.deallocate(part.lpn);
        } else if back {
            self.observe_request(id, TimePart::Buffer);
            self.write_back(id, &request, part);
        } else {
            self.accept_write(id, &request, part);
        }
    }

    /// Admits a unit that a write rewrites because it shares a logical page with units that the host writes.
    #[cold]
    fn admit_rewrite(&mut self, id: RequestId, request: &Request, part: Part, back: bool) {
        if self.ftl.map.get(part.lpn) == Location::Unmapped {
            self.observe_request(id, TimePart::Buffer); // There is nothing to rewrite.
        } else if back {
            self.observe_request(id, TimePart::Buffer);
            self.write_back(id, request, part);
        } else {
            let (mut write, before, _) = self.take_slot(id, request, part);
            self.ftl.counters.units_rewritten += 1;
            write.temperature = self.ftl.class_of(part.lpn.0);
            self.start_on_write(write, part.lpn, before, Origin::Host(part));
        }
    }

    /// Accepts a unit of a write into a write slot. Later reads see the new data.
    #[inline(always)]
    fn accept_write(&mut self, id: RequestId, request: &Request, part: Part) {
        let (mut write, before, update) = self.take_slot(id, request, part);
        self.ftl.note_update(update);
        self.ftl.counters.host_units += 1;
        self.ftl.counters.host_bytes += u64::from(part.end - part.first) * 512;
        let Request { sectors, stream, placement, .. } = *request;
        let written = Written { sectors, stream, placement, ..Written::default() };
        write.temperature = self.ftl.classify(part.lpn, before, written);
        self.write_through(part, write.version);
        self.start_on_write(write, part.lpn, before, Origin::Host(part));
    }

    /// Takes a write slot for a unit of a write. Returns the write, without its temperature, and the unit's location
    /// and coverage before it.
    #[inline(always)]
    fn take_slot(&mut self, id: RequestId, request: &Request, part: Part) -> (Transaction, Location, Update) {
        self.slots_free -= 1;
        self.interface.requests[id].remaining += 1;
        let before = self.ftl.map.get(part.lpn);
        let mapped = before != Location::Unmapped;
        let update = self.ftl.partial.write(part.lpn.0, mapped, part.first, part.end);
        let mut write = Transaction::new(Kind::Write, Class::HostProgram).of_request(id);
        (write.first, write.end) = (part.first as u16, part.end as u16);
        write.version = if request.operation == Operation::WriteZeroes { BLANK } else { request.tag as u32 };
        self.note_kept(&mut write, part.lpn.0, part.end - part.first, update);
        (write, before, update)
    }

    /// Records how many sectors of its unit a partial write keeps: those ever written, minus its `own`.
    #[inline]
    fn note_kept(&self, write: &mut Transaction, lpn: u32, own: u32, update: Update) {
        write.complete = update != Update::Uncovered;
        if !write.complete {
            write.units = (self.ftl.partial.written(lpn) - own) as u16;
        }
    }

    /// Accepts a unit that the buffer writes back into a write slot.
    pub(super) fn write_unit_of_buffer(&mut self, pick: Pick, before: Location) {
        let mut write = Transaction::new(Kind::Write, Class::HostProgram).of_request(pick.owner);
        if let (Some(buffer), true) = (self.buffer.as_deref(), pick.entry != Pick::PADDING) {
            let mapped = before != Location::Unmapped;
            let own = buffer.sectors_of(pick.entry);
            let update = self.ftl.partial.write_set(pick.lpn, mapped, own);
            self.ftl.note_update(update);
            let own = buffer.sectors_in(&pick);
            self.note_kept(&mut write, pick.lpn, own, update);
            let [stream, placement] = buffer.hints_of(pick.entry);
            let written = Written { sectors: own, stream, placement, ..Written::default() };
            write.temperature = self.ftl.classify(Lpn(pick.lpn), before, written);
        } else {
            write.temperature = self.ftl.class_of(pick.lpn);
            if self.ftl.shape().units_per_logical_page > 1 {
                self.ftl.counters.units_rewritten += 1;
                write.units = self.ftl.partial.written(pick.lpn) as u16;
            }
        }
        self.start_on_write(write, Lpn(pick.lpn), before, Origin::Buffer(pick));
    }

    /// Points the map at the slot of a write, and starts what the write needs before it can be queued.
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
                    self.observe_spent(id, TimePart::Order);
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
        let block = self.ftl.blocks.depend(ppn);
        let mut read = Transaction::new(Kind::RmwRead, Class::RmwRead).of_write(write);
        read.plane = self.ftl.blocks.plane_of(block);
        read.ppn = ppn;
        read.dependency = block;
        read.units = self.ftl.shape().pages_per_unit as u16;
        read.end = self.transactions[write].units;
        self.dispatch(read);
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
            self.show_enqueued(id);
            self.dispatch.park_new(&mut self.transactions, plane, id);
            self.observe_stalled(id);
            return self.clean(plane);
        }
        dispatch::enqueue_last(self, id);
    }

    /// Deallocates the units of a trim request.
    pub(super) fn trim(&mut self, id: RequestId) {
        if self.ftl.is_read_only() {
            self.interface.requests[id].status = Status::ReadOnly;
            return self.done_at_once(id);
        }
        self.trim_rest(id, 0);
    }

    /// Deallocates the units of a trim request from `index` on. Runs the tasks of each unit before the next one.
    pub(super) fn trim_rest(&mut self, id: RequestId, mut index: u32) {
        while index < self.interface.units_of(id) {
            let part = self.interface.part_of(id, index);
            // A partly covered unit keeps its data, as NVMe allows.
            if self.is_whole(part) {
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

    /// Returns `true` if a part of a request covers its whole unit.
    pub(super) fn is_whole(&self, part: Part) -> bool {
        part.end - part.first == self.ftl.shape().sectors_per_unit
    }

    /// Makes a request with FUA that deallocated units wait for the journal records of the trims, as a flush would.
    fn wait_for_trim_records(&mut self, id: RequestId) {
        if self.must_reach_flash(&self.interface.requests[id].request)
            && (0..self.interface.units_of(id)).any(|index| self.is_whole(self.interface.part_of(id, index)))
        {
            self.flush_journal(id);
        }
    }

    /// Deallocates a unit, including its data in the buffer and its outstanding writes.
    fn deallocate(&mut self, lpn: Lpn) {
        let was_buffered = self.forget_buffered(lpn);
        self.unmap(lpn);
        if was_buffered {
            // These flushes waited only for the unit. They must find the journal record that they have to wait for
            // instead.
            self.end_flushes();
        }
    }

    /// Removes a unit from the map, and records the trim in the journal.
    fn unmap(&mut self, lpn: Lpn) {
        let sequence = self.observe_trimmed(lpn);
        let mut in_flight = None;
        let invalid = match self.ftl.map.get(lpn) {
            Location::Unmapped => return,
            Location::Flash(ppn) => Some(ppn),
            Location::Slot(newest) => {
                let mut id = newest;
                loop {
                    let write = &mut self.transactions[id];
                    write.trimmed = true;
                    if write.older.is_none() {
                        in_flight = write.ppn.get().filter(|_| write.dependency.is_some());
                        break std::mem::replace(&mut write.source, Ppn::NONE).get();
                    }
                    id = write.older;
                }
            }
        };
        self.ftl.map.unmap(lpn);
        call::changed(self, lpn, Change::Entry);
        self.ftl.partial.forget(lpn.0);
        if self.durability.is_some() {
            // The block of a write in flight may be erased soon after its program has ended.
            self.journal_trim(lpn, sequence, invalid.or(in_flight));
        }
        if let Some(ppn) = invalid {
            self.ftl.blocks.invalidate(ppn);
            self.ftl.counters.units_trimmed += 1;
            call::changed(self, lpn, Change::Trimmed);
            self.clean(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn)));
        }
    }
}
