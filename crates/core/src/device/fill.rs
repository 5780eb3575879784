//! Gathering of whole program units: writes wait until they fill the program of a wordline, or of a wordline in each
//! plane of a die where planes program together. See docs/model/mapping.md.
//!
//! A write-back buffer hands over whole program units while it has enough dirty data. A partial one is programmed only
//! for a FLUSH, for FUA, or when its first write has waited for `controller.fill_timeout`.

use super::Device;
use super::timers::Timer;
use crate::cache::Pick;
use crate::dispatch::Filling;
use crate::metrics::attribution::Part as TimePart;
use crate::sim::id::{Lpn, RequestId, TransactionId};
use crate::work::Task;

impl Device {
    /// Adds a write that has all its data to its program unit, which leaves when it is full, or when somebody waits for
    /// it and nothing more is coming.
    pub(super) fn stage(&mut self, id: TransactionId) {
        let number = self.destination_of(self.transactions[id].lpn) * self.ftl.shape().classes
            + u32::from(self.transactions[id].temperature);
        let is_urgent = self.is_urgent(self.transactions[id].request());
        let Some(filling) = &mut self.dispatch.filling else { return };
        let stage = &mut filling.stages[number as usize];
        stage.waiting.push(&mut self.transactions, id);
        stage.count += 1;
        if stage.count == filling.group {
            return self.release_stage(number);
        }
        if stage.count == 1 {
            filling.due.push_back((self.now.later(filling.timeout), number, stage.turn));
            self.arm_fill();
        }
        if is_urgent {
            self.hurry(number);
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
        let number = usize::from(self.list_of(Lpn(pick.lpn)));
        if let Some(filling) = self.dispatch.filling.as_deref_mut().filter(|filling| filling.is_completed) {
            let stage = &mut filling.stages[number];
            stage.coming += 1;
            if !std::mem::replace(&mut stage.is_begun, true) {
                filling.begun.push_back(number as u32);
            }
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.queue(pick);
        }
    }

    /// Dequeues the next unit of [`Device::pick_up`].
    pub(super) fn next_picked(&mut self) -> Option<Pick> {
        let pick = self.buffer.as_deref_mut()?.next_queued()?;
        let number = usize::from(self.list_of(Lpn(pick.lpn)));
        if let Some(filling) = self.dispatch.filling.as_deref_mut().filter(|filling| filling.is_completed) {
            filling.stages[number].coming -= 1;
        }
        Some(pick)
    }

    /// Returns `true` if a write of `request` must not wait for the time-out: the request completes only when it is in
    /// flash, or a flush waits for it.
    fn is_urgent(&self, request: RequestId) -> bool {
        let lands = request.is_some() && self.must_land(&self.front.requests[request].request);
        lands || self.buffer.as_deref().is_some_and(|buffer| buffer.is_flushing())
    }

    fn hurry(&mut self, number: u32) {
        let Some(filling) = &mut self.dispatch.filling else { return };
        if !std::mem::replace(&mut filling.stages[number as usize].is_urgent, true) {
            filling.urgent.push_back(number);
        }
    }

    /// Makes all stages that hold writes urgent, for a flush.
    pub(super) fn hurry_filling(&mut self) {
        for index in 0..self.dispatch.filling.as_deref().map_or(0, |filling| filling.due.len()) {
            let Some(filling) = self.dispatch.filling.as_deref() else { return };
            let (_, number, turn) = filling.due[index];
            if filling.stages[number as usize].turn == turn {
                self.hurry(number);
            }
        }
    }

    /// Releases the urgent stages, unless the buffer is about to add more writes.
    pub(super) fn release_urgent(&mut self) {
        if self.dispatch.filling.as_deref().is_none_or(|filling| filling.urgent.is_empty()) || self.more_is_coming() {
            return;
        }
        let Some(number) = self.dispatch.filling.as_deref_mut().and_then(|filling| filling.urgent.pop_front()) else {
            return;
        };
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
        let stage = &mut filling.stages[number as usize];
        let mut waiting = std::mem::take(&mut stage.waiting);
        stage.count = 0;
        stage.turn = stage.turn.wrapping_add(1);
        if std::mem::take(&mut stage.is_urgent) {
            filling.urgent.retain(|&other| other != number);
        }
        self.arm_fill();
        // None starts before the others are queued.
        self.while_holding(true, |device| {
            while !waiting.is_empty() {
                let id = waiting.pop(&mut device.transactions);
                device.observe_spent(id, TimePart::Fill);
                device.line_up_write(id);
            }
        });
    }

    /// Releases all stages.
    pub(super) fn stop_filling(&mut self) {
        while let Some((_, number)) = self.dispatch.filling.as_deref_mut().and_then(Filling::next_due) {
            self.release_stage(number);
        }
    }

    /// Handles the time-out of the oldest stages: the buffer completes them, or they leave as they are.
    pub(super) fn fill_event(&mut self) {
        while let Some((at, number)) = self.dispatch.filling.as_deref_mut().and_then(Filling::next_due) {
            if at > self.now {
                break;
            }
            let picked = self.pick_missing(number);
            let Some(filling) = &mut self.dispatch.filling else { return };
            if filling.stages[number as usize].coming == 0 || filling.missing(number) > 0 {
                self.ftl.counters.units_cut_by_timeout += 1;
                self.release_stage(number);
            } else {
                // The firmware takes a while to bring them.
                filling.postpone(self.now);
                if picked > 0 {
                    self.write_out_picked(picked);
                }
            }
            // What one stage sets off comes before the next one.
            if self.tasks.any_new() {
                return self.tasks.push(Task::Fill);
            }
        }
        self.arm_fill();
    }

    /// Returns `true` if enough slots are free to complete the program unit of a list of the buffer. A program unit
    /// that is begun without them would wait for its time-out.
    pub(super) fn has_slots_for(&self, list: Option<u16>) -> bool {
        let units = match (self.dispatch.filling.as_deref(), list) {
            (Some(filling), Some(list)) if filling.is_completed => match filling.missing(u32::from(list)) {
                0 => filling.group,
                missing => missing,
            },
            _ => 1,
        };
        self.slots_free >= units.min(self.config.controller.slots)
    }

    /// Returns `true` if the buffer has begun a program unit other than that of `list`.
    pub(super) fn has_begun_other(&self, list: Option<u16>) -> bool {
        let begun = self.dispatch.filling.as_deref().and_then(|filling| filling.begun.front());
        begun.is_some_and(|&number| list.is_none_or(|list| u32::from(list) != number))
    }

    /// Returns `true` if the units picked from a list of the buffer form whole program units.
    pub(super) fn is_complete(&self, list: Option<u16>) -> bool {
        let filling = self.dispatch.filling.as_deref().filter(|filling| filling.is_completed);
        filling.zip(list).is_some_and(|(filling, list)| filling.missing(u32::from(list)) == 0)
    }

    /// Completes the program units that the buffer has begun, and returns the number of units picked for them. Stops at
    /// the first one that needs more slots than are free.
    pub(super) fn complete_begun(&mut self) -> u32 {
        let mut picked = 0;
        while let Some(filling) = &self.dispatch.filling
            && let Some(&number) = filling.begun.front()
            && filling.missing(number) <= self.slots_free
        {
            picked += self.pick_missing(number);
            let Some(filling) = &mut self.dispatch.filling else { break };
            filling.begun.pop_front();
            filling.stages[number as usize].is_begun = false;
        }
        picked
    }

    /// Picks the oldest dirty units to complete a stage, and returns their number. Picks none if there are too few
    /// dirty units or slots.
    fn pick_missing(&mut self, number: u32) -> u32 {
        let Some(filling) = self.dispatch.filling.as_deref().filter(|filling| filling.is_completed) else { return 0 };
        let (list, missing) = (number as u16, filling.missing(number));
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
