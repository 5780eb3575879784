//! Gathering of whole program units: writes wait until they fill the program of a wordline, or of a wordline in each
//! plane of a die where planes program together. See docs/model/mapping.md.
//!
//! A write-back buffer hands over whole program units while it has enough dirty data. A partial one is programmed only
//! for a FLUSH, for FUA, or when its first write has waited for `controller.fill_timeout`.

use std::collections::VecDeque;

use super::firmware::Work;
use super::merge::Merging;
use super::{Device, FILL};
use crate::config::DeviceConfig;
use crate::metrics::attribution::Part as TimePart;
use crate::scheduler::lines::{Line, NONE};
use crate::sim::id::Lpn;
use crate::sim::time::Time;

/// Writes that go into one program unit.
#[derive(Clone, Debug, Default)]
struct Stage {
    waiting: Line,
    count: u32,
    /// Number of program units that have left, which distinguishes entries of `due`.
    turn: u32,
    /// True if somebody waits for a write of it: it leaves when nothing more is coming.
    is_urgent: bool,
}

/// The program units that are being gathered.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    timeout: Time,
    /// Mapping units of a program unit.
    group: u32,
    /// Indexed by plane, or by pool with dynamic allocation; then by class.
    stages: Vec<Stage>,
    /// Time at which the first write of a stage has waited long enough, with the stage and its turn; oldest first.
    due: VecDeque<(Time, u32, u32)>,
    /// Stages that are urgent.
    urgent: Vec<u32>,
}

impl Filling {
    /// Creates empty stages for each plane, or for each of `pools`. Returns `None` if writes do not wait for others.
    pub(super) fn new(config: &DeviceConfig, pools: Option<u32>, merging: &Merging) -> Option<Filling> {
        let timeout = config.controller.fill_timeout.time();
        let stages = (pools.unwrap_or(config.total_planes()) * config.temperature.classes()) as usize;
        let per_program = config.units_per_program();
        // All units of a program unit hold a slot at the same time.
        let planes = if pools.is_some() { merging.planes_per_program() } else { 1 };
        let planes = planes.min(config.controller.slots / per_program).max(1);
        (timeout > Time::ZERO).then(|| Filling {
            timeout,
            group: per_program * planes,
            stages: vec![Stage::default(); stages],
            due: VecDeque::with_capacity(stages),
            urgent: Vec::with_capacity(stages),
        })
    }

    /// Returns the stage whose time-out is next, and when it is.
    fn next_due(&mut self) -> Option<(Time, u32)> {
        while let Some(&(at, stage, turn)) = self.due.front() {
            if self.stages[stage as usize].turn == turn {
                return Some((at, stage));
            }
            self.due.pop_front();
        }
        None
    }

    /// Gives the stage whose time-out is next another one.
    fn postpone(&mut self, now: Time) {
        if let Some((_, stage, turn)) = self.due.pop_front() {
            self.due.push_back((now.later(self.timeout), stage, turn));
        }
    }
}

impl Device {
    /// Adds a write that has all its data to its program unit, which leaves when it is full, or when somebody waits for
    /// it and nothing more is coming.
    pub(super) fn stage(&mut self, id: u32) {
        let lpn = Lpn(self.transactions[id].lpn);
        let place = self.ftl.home(lpn).map_or_else(|| self.ftl.pool(lpn), |plane| plane.0);
        let number = place * self.ftl.shape().classes + u32::from(self.transactions[id].temperature);
        let is_urgent = self.is_urgent(self.transactions[id].owner);
        let Some(filling) = &mut self.filling else { return };
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

    /// Returns `true` if a write of `request` must not wait for the time-out: the request completes only when it is in
    /// flash, or a flush waits for it.
    fn is_urgent(&self, request: u32) -> bool {
        let lands = request != NONE && self.must_land(&self.requests[request].request);
        lands || self.buffer.as_deref().is_some_and(|buffer| buffer.is_flushing())
    }

    fn hurry(&mut self, number: u32) {
        let Some(filling) = &mut self.filling else { return };
        if !std::mem::replace(&mut filling.stages[number as usize].is_urgent, true) {
            filling.urgent.push(number);
        }
    }

    /// Makes all stages that hold writes urgent, for a flush.
    pub(super) fn hurry_filling(&mut self) {
        for index in 0..self.filling.as_deref().map_or(0, |filling| filling.due.len()) {
            let Some(filling) = self.filling.as_deref() else { return };
            let (_, number, turn) = filling.due[index];
            if filling.stages[number as usize].turn == turn {
                self.hurry(number);
            }
        }
    }

    /// Releases the urgent stages, unless the buffer is about to add more writes.
    pub(super) fn release_urgent(&mut self) {
        if self.filling.as_deref().is_none_or(|filling| filling.urgent.is_empty()) || self.more_is_coming() {
            return;
        }
        while let Some(number) = self.filling.as_deref_mut().and_then(|filling| filling.urgent.pop()) {
            self.ftl.counters.units_cut_by_flush += 1;
            self.release_stage(number);
        }
    }

    /// Returns `true` if the buffer is handing over units.
    fn more_is_coming(&self) -> bool {
        let Some(buffer) = self.buffer.as_deref() else { return false };
        let hands_over = buffer.has_out() && self.slots_free > 0 && !self.ftl.is_read_only();
        !buffer.picked.is_empty() || hands_over
    }

    /// Queues the writes of a stage.
    fn release_stage(&mut self, number: u32) {
        let Some(filling) = &mut self.filling else { return };
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
                device.trail_spend(id, TimePart::Fill);
                device.line_up_write(id);
            }
        });
    }

    /// Releases all stages.
    pub(super) fn stop_filling(&mut self) {
        while let Some((_, number)) = self.filling.as_deref_mut().and_then(Filling::next_due) {
            self.release_stage(number);
        }
    }

    /// Handles the time-out of the oldest stages: the buffer completes them, or they leave as they are.
    pub(super) fn fill_event(&mut self) {
        while let Some((at, number)) = self.filling.as_deref_mut().and_then(Filling::next_due) {
            if at > self.now {
                break;
            }
            let missing = self.pick_missing();
            if missing == 0 {
                self.ftl.counters.units_cut_by_timeout += 1;
                self.release_stage(number);
                continue;
            }
            // The firmware takes a while to bring them.
            if let Some(filling) = &mut self.filling {
                filling.postpone(self.now);
            }
            self.work(Work::WriteOut(missing));
        }
        self.arm_fill();
    }

    /// Picks the oldest dirty units of the buffer that the program unit in the making lacks, and returns their number;
    /// none if it lacks nothing, or if there are not enough of them.
    ///
    /// Only one stage for all writes can take any unit. With several, the address decides which stage a unit goes to.
    pub(super) fn pick_missing(&mut self) -> u32 {
        let (Some(filling), Some(buffer)) = (self.filling.as_deref(), self.buffer.as_deref_mut()) else { return 0 };
        let [stage] = &filling.stages[..] else { return 0 };
        let begun = (stage.count + buffer.picked.len() as u32) % filling.group;
        let missing = if begun == 0 { 0 } else { filling.group - begun };
        if buffer.dirty_units() < missing || self.slots_free < missing || self.ftl.is_read_only() {
            return 0;
        }
        for _ in 0..missing {
            let pick = buffer.pick_oldest();
            buffer.picked.extend(pick);
        }
        buffer.counts.companions += u64::from(missing);
        self.slots_free -= missing;
        missing
    }

    fn arm_fill(&mut self) {
        let resource = self.array.first_other() + FILL;
        match self.filling.as_deref_mut().and_then(Filling::next_due) {
            Some((at, _)) if self.array.events().time_of(resource) == Some(at) => {}
            Some((at, _)) => self.array.events().set(resource, at),
            None => self.array.events().clear(resource),
        }
    }
}
