//! Gathering of whole program units: keeps writes until they fill the program of a wordline, or of a wordline in each
//! plane that programs together. See docs/model/mapping.md.
//!
//! A write-back buffer hands over whole program units while it has enough dirty data. A partial one is programmed only
//! for a FLUSH, for FUA, or when its first write has waited for `controller.fill_timeout`.

use super::Device;
use super::timers::Timer;
use crate::cache::Pick;
use crate::dispatch::{Filling, Staged};
use crate::metrics::attribution::Part as TimePart;
use crate::sim::id::{Lpn, RequestId, TransactionId};
use crate::work::Task;

impl Device {
    /// Adds a write with complete data to its program unit. A full program unit is released, and so is an urgent one if
    /// no more writes are coming.
    pub(super) fn stage(&mut self, id: TransactionId) {
        let number = self.destination_of(self.transactions[id].lpn) * self.ftl.shape().classes
            + u32::from(self.transactions[id].temperature);
        let is_urgent = self.is_urgent(self.transactions[id].request());
        let Some(filling) = &mut self.dispatch.filling else { return };
        let staged = filling.add(&mut self.transactions, number, id, self.now);
        if is_urgent && staged != Staged::Full {
            filling.make_urgent(number);
        }
        match staged {
            Staged::Full => return self.release_stage(number),
            Staged::First => self.arm_fill(),
            Staged::Waits => {}
        }
        if is_urgent {
            self.release_urgent();
        }
    }

    /// Returns the home plane of a unit, or its pool with dynamic allocation.
    fn destination_of(&self, lpn: Lpn) -> u32 {
        self.ftl.home(lpn).map_or_else(|| self.ftl.pool(lpn), |plane| plane.0)
    }

    /// Returns the buffer's list of dirty units that a unit belongs to.
    pub(super) fn list_of(&self, lpn: Lpn) -> u16 {
        match Filling::lists(self.dispatch.filling.as_deref()) {
            1 => 0,
            _ => self.destination_of(lpn) as u16,
        }
    }

    /// Reserves a slot for a unit that the buffer has picked, and queues the unit for [`Device::write_out`].
    pub(super) fn pick_up(&mut self, pick: Pick) {
        self.slots_free -= 1;
        let list = self.list_of(Lpn(pick.lpn));
        if let Some(filling) = &mut self.dispatch.filling {
            filling.expect(list);
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.queue(pick);
        }
    }

    /// Dequeues the next unit of [`Device::pick_up`].
    pub(super) fn next_picked(&mut self) -> Option<Pick> {
        let pick = self.buffer.as_deref_mut()?.next_queued()?;
        let list = self.list_of(Lpn(pick.lpn));
        if let Some(filling) = &mut self.dispatch.filling {
            filling.note_received(list);
        }
        Some(pick)
    }

    /// Returns `true` if a write of `request` must not wait for the time-out: the request completes only when it is in
    /// flash, or a flush waits for it.
    fn is_urgent(&self, request: RequestId) -> bool {
        let must_reach_flash = request.is_some() && self.must_reach_flash(&self.interface.requests[request].request);
        must_reach_flash || self.buffer.as_deref().is_some_and(|buffer| buffer.is_flushing())
    }

    /// Makes all stages that hold writes urgent, for a flush.
    pub(super) fn make_filling_urgent(&mut self) {
        if let Some(filling) = &mut self.dispatch.filling {
            filling.make_all_urgent();
        }
    }

    /// Releases the urgent stages, unless the buffer is about to add more writes.
    pub(super) fn release_urgent(&mut self) {
        let Some(number) = self.dispatch.filling.as_deref().and_then(Filling::first_urgent) else { return };
        if self.more_is_coming() {
            return;
        }
        self.ftl.counters.units_cut_by_flush += 1;
        self.release_stage(number);
        self.tasks.push(Task::ReleaseUrgent);
    }

    /// Returns `true` if the buffer is handing over units.
    fn more_is_coming(&self) -> bool {
        let Some(buffer) = self.buffer.as_deref() else { return false };
        let hands_over = buffer.has_out() && self.has_slots_for(buffer.next_list()) && !self.ftl.is_read_only();
        buffer.has_queued() || hands_over
    }

    /// Queues the writes of a stage.
    fn release_stage(&mut self, number: u32) {
        let Some(filling) = &mut self.dispatch.filling else { return };
        let mut waiting = filling.take(number);
        self.arm_fill();
        // None starts before the others are queued.
        let holds = self.tasks.hold_unless_held();
        while !waiting.is_empty() {
            let id = waiting.pop(&mut self.transactions);
            self.observe_spent(id, TimePart::Fill);
            self.enqueue_write(id);
        }
        self.release_behind(holds);
    }

    /// Releases all stages.
    pub(super) fn stop_filling(&mut self) {
        while let Some((_, number)) = self.dispatch.filling.as_deref_mut().and_then(Filling::next_due) {
            self.release_stage(number);
        }
    }

    /// Handles the time-out of the oldest stages: the buffer completes them, or they are released partly filled.
    pub(super) fn fill_event(&mut self) {
        while let Some((at, number)) = self.dispatch.filling.as_deref_mut().and_then(Filling::next_due) {
            if at > self.now {
                break;
            }
            let picked = self.pick_missing(number as u16);
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
        self.arm_fill();
    }

    /// Returns `true` if enough slots are free to complete the program unit of a list of the buffer. A program unit
    /// that is begun without them would wait for its time-out.
    pub(super) fn has_slots_for(&self, list: Option<u16>) -> bool {
        let units = self.dispatch.filling.as_deref().map_or(1, |filling| filling.slots_for(list));
        self.slots_free >= units.min(self.config.controller.write_slots)
    }

    /// Returns `true` if the buffer has begun a program unit other than that of `list`.
    pub(super) fn has_begun_other(&self, list: Option<u16>) -> bool {
        let begun = self.dispatch.filling.as_deref().and_then(Filling::first_begun);
        begun.is_some_and(|(begun, _)| list.is_none_or(|list| list != begun))
    }

    /// Returns `true` if the units picked from a list of the buffer form whole program units.
    pub(super) fn is_complete(&self, list: Option<u16>) -> bool {
        let filling = self.dispatch.filling.as_deref();
        filling.zip(list).and_then(|(filling, list)| filling.missing_in(list)) == Some(0)
    }

    /// Completes the program units that the buffer has begun, and returns the number of units picked for them. Stops at
    /// the first one that needs more slots than are free.
    pub(super) fn complete_begun(&mut self) -> u32 {
        let mut picked = 0;
        while let Some(filling) = &self.dispatch.filling
            && let Some((list, missing)) = filling.first_begun()
            && missing <= self.slots_free
        {
            picked += self.pick_missing(list);
            let Some(filling) = &mut self.dispatch.filling else { break };
            filling.complete_first();
        }
        picked
    }

    /// Picks the oldest dirty units of a list to complete its program unit, and returns their number. Picks none if
    /// there are too few dirty units or slots.
    fn pick_missing(&mut self, list: u16) -> u32 {
        let filling = self.dispatch.filling.as_deref();
        let Some(missing) = filling.and_then(|filling| filling.missing_in(list)) else { return 0 };
        let has_enough = self.buffer.as_deref().is_some_and(|buffer| buffer.dirty_in(list) >= missing);
        if !has_enough || self.slots_free < missing || self.ftl.is_read_only() {
            return 0;
        }
        for _ in 0..missing {
            let pick = self.buffer.as_deref_mut().and_then(|buffer| buffer.pick_oldest(list));
            pick.into_iter().for_each(|pick| self.pick_up(pick));
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.counts.companions += u64::from(missing);
        }
        missing
    }

    fn arm_fill(&mut self) {
        match self.dispatch.filling.as_deref_mut().and_then(Filling::next_due) {
            Some((at, _)) if self.timer(Timer::Fill) == Some(at) => {}
            Some((at, _)) => self.set_timer(Timer::Fill, at),
            None => self.clear_timer(Timer::Fill),
        }
    }
}
