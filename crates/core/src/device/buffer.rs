//! Requests and the write buffer: reads that hit, writes that enter, and write-back to flash.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::cache::dram::Then;
use crate::cache::{Buffer, Found, Pick};
use crate::host::cores::Work;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::nand::media::BLANK;
use crate::sim::id::{Lpn, Ppn, RequestId, TransactionId};
use crate::sim::request::{Operation, Request, SECTOR};
use crate::sim::time::Time;
use crate::work::{Task, Transaction};

impl Device {
    /// Returns the buffer for inspection, if the device has one.
    pub fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_deref()
    }

    /// Starts to write back all dirty data, as before a shutdown. The write-back takes simulated time.
    pub fn write_out_buffer(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.write_out_all();
            self.admit();
            self.run_tasks();
        }
    }

    /// Returns `true` if writes complete when they are in the buffer.
    #[inline]
    pub(super) fn writes_back(&self) -> bool {
        self.buffer.as_deref().is_some_and(Buffer::writes_back)
    }

    // Reads.

    /// Serves the units of a read that the buffer holds, and looks up the others in the map.
    pub(super) fn search_buffer(&mut self, id: RequestId, units: Range<u32>) {
        let mut missed = units.start..units.start;
        for index in units.clone() {
            let part = self.interface.part_of(id, index);
            let whole = match self.buffer.as_deref().map(|buffer| buffer.find(part.lpn, part.first, part.end)) {
                Some(Found::Whole(entry)) => Some(entry),
                _ => None,
            };
            let Some(entry) = whole else {
                missed.end = index + 1;
                continue;
            };
            if !missed.is_empty() {
                self.look_up_units(id, missed);
                if self.tasks.any_new() {
                    return self.tasks.push(Task::Search(id, index, units.end));
                }
            }
            missed = index + 1..index + 1;
            if let Some(buffer) = &mut self.buffer {
                buffer.hit(entry);
            }
            self.answer_from_buffer(id, part);
        }
        if !missed.is_empty() {
            self.look_up_units(id, missed);
        }
    }

    /// Serves a part of a read from the buffer.
    fn answer_from_buffer(&mut self, id: RequestId, part: Part) {
        self.observe_buffer_read(id, part);
        let sectors = part.end - part.first;
        let pending = &mut self.interface.requests[id];
        pending.start = pending.start.min(self.now);
        self.access_memory(sectors, Then { request: id, reply: sectors });
    }

    /// Serves a unit of a read if the buffer holds all requested sectors. Counts the hit, partial hit or miss.
    #[inline]
    pub(super) fn read_buffer(&mut self, id: RequestId, part: Part) -> bool {
        let Some(buffer) = &mut self.buffer else { return false };
        match buffer.read(part) {
            Found::Whole(_) => {
                self.answer_from_buffer(id, part);
                true
            }
            Found::Partly(_) => {
                self.observe_buffer_read(id, part);
                false
            }
            Found::Nothing => false,
        }
    }

    /// Records that a read from flash includes a unit, so that the buffer may keep it later.
    #[inline]
    pub(super) fn note_read_unit(&mut self, read: TransactionId, ppn: Ppn, is_first: bool) {
        if let Some(buffer) = &mut self.buffer {
            buffer.note_read(read, self.ftl.shape().units_per_page.divide_with_rest(ppn.0).1, is_first);
        }
    }

    /// Stores the data of a read from flash in the buffer, if the buffer keeps reads.
    pub(super) fn fill_buffer(&mut self, id: TransactionId) {
        if let Some(buffer) = self.buffer.as_deref_mut().filter(|buffer| buffer.keeps_reads()) {
            let read = &self.transactions[id];
            buffer.keep_read(id, read, &self.interface.requests[read.request()].request, &self.ftl, self.now);
            self.admit();
        }
    }

    // Writes.

    /// Queues `units` units of a write for admission, after the firmware has processed them.
    #[inline(always)]
    pub(super) fn queue_for_admission(&mut self, id: RequestId, units: u32) {
        let pending = &mut self.interface.requests[id];
        pending.arrived += units;
        if pending.arrived == units {
            self.interface.unadmitted.push_back(id);
            self.mark_arrival();
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.wait_for_room(units);
        }
        self.admit();
    }

    /// Returns `true` if the next unit of a write can be admitted now.
    pub(super) fn has_place(&self, request: &Request, part: Part) -> bool {
        match self.buffer.as_deref() {
            Some(buffer) if buffer.writes_back() => {
                let nothing = request.operation == Operation::WriteZeroes && self.is_whole(part);
                nothing || (buffer.has_room(part.lpn) && (self.slots_free > 0 || !self.must_reach_flash(request)))
            }
            _ => self.slots_free > 0,
        }
    }

    /// Returns `true` if a request completes only when its data are in flash.
    pub(super) fn must_reach_flash(&self, request: &Request) -> bool {
        request.fua && self.buffer.as_deref().is_none_or(|buffer| !buffer.is_protected())
    }

    /// Stores a unit of a write in the buffer, which ends this part of the request unless the unit must be in flash.
    pub(super) fn write_back(&mut self, id: RequestId, request: &Request, part: Part) {
        let version = if request.operation == Operation::WriteZeroes { BLANK } else { request.tag as u32 };
        let sectors = part.end - part.first;
        self.ftl.counters.host_units += 1;
        self.ftl.counters.host_bytes += u64::from(sectors) * SECTOR;
        let must_reach_flash = self.must_reach_flash(request);
        let pending = &mut self.interface.requests[id];
        pending.remaining += 1;
        pending.start = pending.start.min(self.now);
        self.observe_buffering(id, part);
        let list = self.list_of(part.lpn);
        let Some(buffer) = &mut self.buffer else { return };
        let entry = buffer.accept(part, version, list);
        buffer.note_hints(entry, [request.stream, request.placement]);
        self.observe_buffered(entry);
        if !must_reach_flash {
            return self.access_memory(sectors, Then { request: id, reply: 0 });
        }
        let Some(buffer) = &mut self.buffer else { return };
        let pick = buffer.pick_for(entry, id, sectors, self.now);
        self.pick_up(pick);
        let more = self.complete_begun();
        self.write_out_picked(1 + more);
    }

    /// Stores a copy of a write that goes to flash, if the device has a (write-through) buffer.
    pub(super) fn write_through(&mut self, part: Part, version: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.copy_write(part, version, self.now);
        }
    }

    /// Returns `true` if the buffer has nothing to write back, and need not make room.
    #[inline]
    pub(super) fn buffer_is_at_rest(&self) -> bool {
        self.buffer.as_deref().is_none_or(Buffer::is_at_rest)
    }

    /// Returns the number of units that the buffer has room for.
    #[inline]
    pub(super) fn room_in_buffer(&self) -> u32 {
        self.buffer().map_or(0, |buffer| buffer.room() as u32)
    }

    /// Evicts units if the buffer needs room, and selects the next unit to write back, with others that fill its
    /// program. Returns `false` if there is nothing to write back or no free slot.
    pub(super) fn write_out_next(&mut self) -> bool {
        let Some(buffer) = &mut self.buffer else { return false };
        buffer.make_room();
        buffer.gather_pages();
        if self.slots_free == 0 || self.ftl.is_read_only() {
            return false;
        }
        let (list, has_out) = (buffer.next_list(), buffer.has_out());
        if self.has_begun_other(list) {
            match self.complete_begun() {
                0 if self.has_begun_other(list) => return false,
                0 => {}
                units => {
                    self.write_out_picked(units);
                    return true;
                }
            }
        }
        if !has_out || !self.has_slots_for(list) {
            return false;
        }
        let Some(buffer) = &mut self.buffer else { return false };
        // The map entries of upcoming units are prefetched, as for requests of the host.
        buffer.upcoming().inspect(|&lpn| self.ftl.map.prefetch(lpn));
        let Some(pick) = buffer.pick_next() else { return false };
        self.pick_up(pick);
        let alone = pick.entry == Pick::PADDING || self.ftl.shape().units_per_program == 1;
        let companions = if alone { 0 } else { self.pick_companions(Lpn(pick.lpn), list) };
        if let (true, Some(buffer)) = (self.is_complete(list), &mut self.buffer) {
            buffer.turn();
        }
        self.write_out_picked(1 + companions);
        true
    }

    /// Picks the dirty units that would share a program with `lpn`, of `list`. Returns their number.
    fn pick_companions(&mut self, lpn: Lpn, list: Option<u16>) -> u32 {
        let mut count = 0;
        for unit in Buffer::companions(lpn, self.ftl.shape(), self.dispatch.has_pools()) {
            if self.slots_free == 0 || self.is_complete(list) {
                return count;
            }
            let Some(buffer) = &mut self.buffer else { return count };
            let Some(pick) = buffer.pick_companion(unit) else { continue };
            buffer.counts.companions += 1;
            self.pick_up(pick);
            count += 1;
        }
        count
    }

    /// Writes `units` of the picked units to flash after the firmware has processed them.
    pub(super) fn write_out_picked(&mut self, units: u32) {
        if !self.queue_work(Work::WriteOut(units)) {
            self.write_out(units);
        }
    }

    /// Writes `units` of the picked units to flash.
    pub(super) fn write_out(&mut self, units: u32) {
        let holds = self.writes_go_together() && self.tasks.hold_unless_held();
        self.write_out_rest(units);
        self.release_behind(holds);
    }

    /// Writes the remaining picked units to flash. Runs the tasks of each unit before the next one.
    pub(super) fn write_out_rest(&mut self, mut units: u32) {
        while units > 0
            && let Some(pick) = self.next_picked()
        {
            units -= 1;
            if !self.write_picked(pick) {
                self.slots_free += 1;
                self.end_pick(pick);
                if pick.owner.is_some() {
                    self.observe_request(pick.owner, TimePart::Buffer);
                    self.flush_journal(pick.owner);
                    self.part_done(pick.owner, self.now, TransactionId::NONE);
                }
            }
            if self.tasks.any_new() {
                return self.tasks.push(Task::WriteOut(units));
            }
        }
        self.release_urgent();
    }

    /// Creates the write of a picked unit. Returns `false` if there is nothing left to write.
    fn write_picked(&mut self, pick: Pick) -> bool {
        let before = self.ftl.map.get(Lpn(pick.lpn));
        let is_left = self.buffer.as_mut().is_some_and(|buffer| buffer.begin_write(&pick, before));
        if is_left {
            self.write_unit_of_buffer(pick, before);
        }
        is_left
    }

    /// Starts the transfer of a write's data out of the buffer memory, when the write is bound. Does nothing if the
    /// write is not the buffer's.
    ///
    /// Prefetches what the end of the write will touch, and what the start of the next write of the plane will touch.
    /// Data that were loaded when these units were picked have left the processor's caches by now.
    #[inline]
    pub(super) fn fetch_from_memory(&mut self, id: TransactionId, lpn: Lpn) {
        let Some(buffer) = &mut self.buffer else { return };
        buffer.fetch(id, self.ftl.shape().sectors_per_unit, self.now);
        self.ftl.map.prefetch(lpn);
        buffer.prefetch_picked(id);
        let plane = self.transactions[id].plane;
        let next = self.dispatch.first_write(self.array.lun_of(plane), plane);
        if next.is_some() {
            buffer.prefetch_flight(next);
            let Transaction { source, next, .. } = self.transactions[next];
            if source.is_some() {
                self.ftl.blocks.prefetch(source);
            }
            self.transactions.prefetch(next);
        }
    }

    /// Ends a write in the buffer, if the write is the buffer's, and completes flushes that waited for it.
    #[inline]
    pub(super) fn finish_flight(&mut self, id: TransactionId) {
        if let Some(buffer) = &mut self.buffer
            && buffer.end_write_back(id)
        {
            self.end_flushes();
        }
    }

    /// Ends the write-back of a picked unit that need not go to flash any more.
    fn end_pick(&mut self, pick: Pick) {
        if let Some(buffer) = &mut self.buffer {
            buffer.end_pick(&pick);
            self.end_flushes();
        }
    }

    // Flushes, trims and time.

    /// Makes a flush wait until all data in the buffer are in flash. Returns `false` if they already are.
    pub(super) fn flush(&mut self, id: RequestId) -> bool {
        let waits = self.buffer.as_mut().is_some_and(|buffer| buffer.flush(id));
        if waits {
            self.admit();
        }
        waits
    }

    /// Completes the flushes that no longer wait for the buffer.
    pub(super) fn end_flushes(&mut self) {
        while let Some(id) = self.buffer.as_deref_mut().and_then(Buffer::take_waiter) {
            let pending = &mut self.interface.requests[id];
            pending.start = pending.start.min(self.now);
            self.observe_request(id, TimePart::Buffer);
            // Units that were trimmed in the meantime need no program, but the records of their trims must be in flash.
            self.flush_journal(id);
            self.part_done(id, self.now, TransactionId::NONE);
        }
    }

    /// Removes a deallocated unit from the buffer. Returns `true` if the device has a buffer. Does not complete flushes
    /// that waited for the unit: the caller calls [`Device::end_flushes`] after the journal has recorded the trim.
    #[inline]
    pub(super) fn forget_buffered(&mut self, lpn: Lpn) -> bool {
        let Some(buffer) = &mut self.buffer else { return false };
        buffer.forget(lpn);
        true
    }

    /// Queues a transfer of sectors over the port of the buffer memory, and runs `then` when it ends.
    fn access_memory(&mut self, sectors: u32, then: Then) {
        let Some(buffer) = &mut self.buffer else { return };
        if let Some(then) = buffer.access(sectors, then, self.now) {
            return self.crossed(then);
        }
        // The first access in the queue stays first, so a timer that is set remains valid.
        if self.timer(Timer::Memory).is_none() {
            self.arm_memory();
        }
    }

    fn arm_memory(&mut self) {
        if let Some(at) = self.buffer.as_deref().and_then(Buffer::next_access) {
            self.set_timer(Timer::Memory, at);
        }
    }

    /// Handles the end of accesses to the buffer memory.
    pub(super) fn memory_event(&mut self) {
        while let Some(then) = self.buffer.as_deref_mut().and_then(|buffer| buffer.end_access(self.now)) {
            self.observe_request(then.request, TimePart::Buffer);
            self.crossed(then);
        }
        self.arm_memory();
    }

    fn crossed(&mut self, then: Then) {
        match then.reply {
            0 => self.part_done(then.request, self.now, TransactionId::NONE),
            sectors => self.reply(then.request, sectors, TransactionId::NONE),
        }
    }

    /// Arms the timers of idle time if the last outstanding request has completed: of garbage collection, and of the
    /// buffer if there are dirty data.
    #[inline]
    pub(super) fn note_rest(&mut self) {
        if self.jobs.uses_idle_time() {
            self.arm_idle_time();
        }
        let Some(buffer) = &self.buffer else { return };
        if let Some(idle) = buffer.idle()
            && self.outstanding() == 0
            && buffer.has_dirty()
        {
            self.set_timer(Timer::BufferIdle, self.now.later(idle));
        }
    }

    /// Handles the idle timer: writes back all dirty data if no request is outstanding.
    pub(super) fn idle_event(&mut self) {
        if self.outstanding() == 0 {
            self.write_out_buffer();
        }
    }

    /// Returns the time for which the port of the buffer memory was busy until `at`.
    pub fn memory_time(&self, at: Time) -> Time {
        self.buffer.as_deref().map_or(Time::ZERO, |buffer| buffer.memory_time(at))
    }
}
