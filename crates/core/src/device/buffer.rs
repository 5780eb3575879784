//! Requests and the write buffer: reads that hit, writes that enter, write-back to flash, and program units that wait
//! for more writes. `cache/` decides which units leave the buffer, and `dispatch/filling.rs` when a program unit is
//! complete.

use std::ops::Range;

use super::Device;
use super::timers::Timer;
use crate::cache::dram::Then;
use crate::cache::traffic::must_reach_flash;
use crate::cache::write_out::Outside;
use crate::cache::{Buffer, Found};
use crate::dispatch::{Filling, Staged};
use crate::host::cores::Work;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::nand::media::BLANK;
use crate::observe::Origin;
use crate::sim::id::{Lpn, RequestId, TransactionId};
use crate::sim::request::{Operation, Request};
use crate::work::Task;

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

    /// Returns the buffer, if there is one, with what its choice of units depends on.
    #[inline]
    pub(super) fn buffer_with(&mut self) -> Option<(&mut Buffer, Outside<'_>)> {
        let is_dynamic = self.dispatch.has_pools();
        let filling = self.dispatch.filling.as_deref_mut();
        let outside = Outside { filling, slots: &mut self.slots_free, ftl: &self.ftl, is_dynamic };
        Some((self.buffer.as_deref_mut()?, outside))
    }

    // Reads.

    /// Starts to process a read of `units` units, and reads ahead of the stream that it continues.
    ///
    /// The look-up searches the buffer again. A request of one unit needs no earlier search, unless firmware time
    /// passes in between. Larger requests are searched first: the units between hits are looked up together.
    pub(super) fn receive_buffered(&mut self, id: RequestId, units: u32) {
        let request = &self.interface.requests[id].request;
        let stream = self.buffer.as_deref_mut().and_then(|buffer| buffer.follow(request));
        if units == 1 && self.interface.cores.is_none() {
            self.look_up_units(id, 0..units);
        } else if !self.queue_by_page(id, &(0..units), Work::Search) {
            self.search_buffer(id, 0..units);
        }
        if let Some(stream) = stream {
            self.tasks.push(Task::ReadAhead(stream, TransactionId::NONE));
        }
    }

    /// Serves the units of a read that the buffer holds, and looks up the others in the map.
    pub(super) fn search_buffer(&mut self, id: RequestId, units: Range<u32>) {
        let mut missed = units.start..units.start;
        for index in units.clone() {
            let part = self.interface.part_of(id, index);
            let found = self.buffer.as_deref().map(|buffer| buffer.find(part.lpn, part.first, part.end));
            let Some(Found::Whole(entry)) = found else {
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
        self.observe(move |observers, view| observers.buffer_read(view, id, part));
        if let Some(buffer) = &mut self.buffer {
            buffer.end_use(part.lpn, part.end);
        }
        self.interface.serve(id, self.now);
        self.access_memory(part.sectors(), Then { request: id, reply: part.sectors() });
    }

    /// Serves a unit of a read if the buffer holds all requested sectors, or a read ahead brings the others. Counts the
    /// hit, partial hit or miss.
    #[inline]
    pub(super) fn read_buffer(&mut self, id: RequestId, part: Part) -> bool {
        let Some(buffer) = &mut self.buffer else { return false };
        let found = buffer.read(part);
        match found {
            Found::Whole(_) => self.answer_from_buffer(id, part),
            Found::Partly(_) => self.observe(move |observers, view| observers.buffer_read(view, id, part)),
            Found::Nothing => {}
        }
        matches!(found, Found::Whole(_)) || self.await_read_ahead(id, part)
    }

    // Writes.

    /// Queues `units` units of a write for admission, after the firmware has processed them.
    #[inline(always)]
    pub(super) fn queue_for_admission(&mut self, id: RequestId, units: u32) {
        self.interface.queue_for_admission(id, units, self.now);
        if let Some(buffer) = &mut self.buffer {
            buffer.wait_for_room(units);
        }
        self.admit();
    }

    /// Stores a unit of a write in the buffer, which ends this part of the request unless the unit must be in flash.
    pub(super) fn write_back(&mut self, id: RequestId, request: &Request, part: Part) {
        let version = if request.operation == Operation::WriteZeroes { BLANK } else { request.tag as u32 };
        self.ftl.note_host_unit(part.sectors());
        self.interface.add_part(id, self.now);
        let sequence = self.sequence_for_log();
        self.observe(move |observers, view| observers.buffering(view, id, part, sequence));
        let Some((buffer, outside)) = self.buffer_with() else { return };
        let entry = buffer.accept(part, version, &outside);
        buffer.note_hints(entry, [request.stream, request.placement]);
        if let Some(log) = self.log_mut() {
            log.note_in_buffer(entry);
        }
        if !must_reach_flash(self.buffer.as_deref(), request) {
            return self.access_memory(part.sectors(), Then { request: id, reply: 0 });
        }
        let now = self.now;
        let Some((buffer, mut outside)) = self.buffer_with() else { return };
        let pick = buffer.pick_for(entry, id, part.sectors(), now);
        buffer.pick_up(pick, &mut outside);
        let units = 1 + buffer.complete_begun(&mut outside);
        self.write_out_picked(units);
    }

    /// Writes `units` of the picked units to flash after the firmware has processed them.
    pub(super) fn write_out_picked(&mut self, units: u32) {
        if !self.queue_work(Work::WriteOut(units)) {
            self.write_out(units);
        }
    }

    /// Writes `units` of the picked units to flash.
    pub(super) fn write_out(&mut self, units: u32) {
        let holds = self.dispatch.gathers_writes() && self.tasks.hold_unless_held();
        self.write_out_rest(units);
        self.dispatch.release_behind(&mut self.tasks, holds);
    }

    /// Writes the remaining picked units to flash. Runs the tasks of each unit before the next one.
    pub(super) fn write_out_rest(&mut self, mut units: u32) {
        while units > 0
            && let Some((buffer, mut outside)) = self.buffer_with()
            && let Some(pick) = buffer.next_picked(&mut outside)
        {
            units -= 1;
            let before = outside.ftl.map.get(Lpn(pick.lpn));
            if buffer.begin_write(&pick, before) {
                let Some(buffer) = &self.buffer else { return };
                let write = buffer.write_of(&pick, before, &mut self.ftl);
                self.start_on_write(write, before, Origin::Buffer(pick));
            } else {
                *outside.slots += 1;
                buffer.end_pick(&pick);
                self.end_flushes();
                if pick.owner.is_some() {
                    self.observe(move |observers, view| {
                        observers.spent_by_request(view, pick.owner, TimePart::Buffer);
                    });
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

    /// Completes the flushes that no longer wait for the buffer.
    pub(super) fn end_flushes(&mut self) {
        while let Some(id) = self.buffer.as_deref_mut().and_then(Buffer::take_waiter) {
            self.interface.serve(id, self.now);
            self.observe(move |observers, view| observers.spent_by_request(view, id, TimePart::Buffer));
            // Units that were trimmed in the meantime need no program, but the records of their trims must be in flash.
            self.flush_journal(id);
            self.part_done(id, self.now, TransactionId::NONE);
        }
    }

    // Buffer memory.

    /// Queues a transfer of sectors over the port of the buffer memory, and runs `then` when it ends.
    fn access_memory(&mut self, sectors: u32, then: Then) {
        let Some(buffer) = &mut self.buffer else { return };
        if let Some(then) = buffer.access(sectors, then, self.now) {
            return self.crossed(then);
        }
        // The first access in the queue stays first, so a timer that is set remains valid.
        if Timer::Memory.time(&mut self.array).is_none() {
            Timer::Memory.set_if(&mut self.array, buffer.next_access());
        }
    }

    /// Continues a request after its access to the buffer memory.
    pub(super) fn crossed(&mut self, then: Then) {
        match then.reply {
            0 => self.part_done(then.request, self.now, TransactionId::NONE),
            sectors => self.reply(then.request, sectors, TransactionId::NONE),
        }
    }

    // Program units that are being filled. A write-back buffer hands over whole ones while it has enough dirty data. A
    // partial one is programmed only for a flush, for FUA, or when its first write has waited for
    // `controller.fill_timeout`. See docs/model/mapping.md.

    /// Adds a write with complete data to its program unit. A full program unit is released, and so is an urgent one if
    /// no more writes are coming.
    pub(super) fn stage(&mut self, id: TransactionId) {
        let write = &self.transactions[id];
        let number = self.ftl.destination(write.lpn) * self.ftl.shape().classes + u32::from(write.temperature);
        let (request, buffer) = (write.request(), self.buffer.as_deref());
        // The write must not wait for the time-out.
        let is_urgent = buffer.is_some_and(Buffer::is_flushing)
            || (request.is_some() && must_reach_flash(buffer, &self.interface.requests[request].request));
        let Some(filling) = &mut self.dispatch.filling else { return };
        let staged = filling.add(&mut self.transactions, number, id, self.now);
        if is_urgent && staged != Staged::Full {
            filling.make_urgent(number);
        }
        match staged {
            Staged::Full => return self.release_stage(number),
            Staged::First => Timer::Fill.renew(&mut self.array, filling.next_due().map(|(at, _)| at)),
            Staged::Waits => {}
        }
        if is_urgent {
            self.release_urgent();
        }
    }

    /// Releases the urgent stages, unless the buffer is about to add more writes.
    pub(super) fn release_urgent(&mut self) {
        let Some(number) = self.dispatch.filling.as_deref().and_then(Filling::first_urgent) else { return };
        if self.buffer_with().is_some_and(|(buffer, outside)| buffer.hands_over(&outside)) {
            return;
        }
        self.ftl.counters.units_cut_by_flush += 1;
        self.release_stage(number);
        self.tasks.push(Task::ReleaseUrgent);
    }

    /// Queues the writes of a stage.
    pub(super) fn release_stage(&mut self, number: u32) {
        let Some(filling) = &mut self.dispatch.filling else { return };
        let mut waiting = filling.take(number);
        Timer::Fill.renew(&mut self.array, filling.next_due().map(|(at, _)| at));
        // None starts before the others are queued.
        let holds = self.tasks.hold_unless_held();
        while !waiting.is_empty() {
            let id = waiting.pop(&mut self.transactions);
            self.observe(move |observers, view| observers.spent(view, id, TimePart::Fill));
            self.enqueue_write(id);
        }
        self.dispatch.release_behind(&mut self.tasks, holds);
    }

    /// Handles the time-out of the oldest stages: the buffer completes them, or they are released partly filled.
    pub(super) fn fill_event(&mut self) {
        while let Some((at, number)) = self.dispatch.filling.as_deref_mut().and_then(Filling::next_due) {
            if at > self.now {
                break;
            }
            let with = self.buffer_with();
            let picked = with.map_or(0, |(buffer, mut outside)| buffer.pick_missing(number as u16, &mut outside));
            let Some(filling) = &mut self.dispatch.filling else { return };
            if filling.stays_partial(number) {
                self.ftl.counters.units_cut_by_timeout += 1;
                self.release_stage(number);
            } else {
                // The firmware takes time before it writes these units.
                filling.postpone(self.now);
                if picked > 0 {
                    self.write_out_picked(picked);
                }
            }
            // The tasks of one stage run before the next stage.
            if self.tasks.any_new() {
                return self.tasks.push(Task::Fill);
            }
        }
        let due = self.dispatch.filling.as_deref_mut().and_then(Filling::next_due);
        Timer::Fill.renew(&mut self.array, due.map(|(at, _)| at));
    }
}
