//! Writes that wait for others to fill their program with them: a wordline, or a page of several units.
//!
//! Without a time-out a program starts with what waits for its plane, and the rest is padding. See
//! docs/model/mapping.md.

use std::collections::VecDeque;

use super::{Device, FILL};
use crate::config::DeviceConfig;
use crate::metrics::attribution::Part as TimePart;
use crate::scheduler::lines::{Line, NONE};
use crate::sim::id::Lpn;
use crate::sim::time::Time;

/// Writes that would go into one program.
#[derive(Clone, Debug, Default)]
struct Stage {
    waiting: Line,
    count: u32,
    /// How often it has gone on, which tells its entries in `due` apart.
    turn: u32,
}

/// All writes that wait for others.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    timeout: Time,
    /// By plane, or by pool of planes where any of these may take them, and by class.
    stages: Vec<Stage>,
    /// When the first write of a stage has waited for long enough, which stage and which turn of it; oldest first.
    due: VecDeque<(Time, u32, u32)>,
}

impl Filling {
    /// Nothing waits; `None` where writes do not wait for each other.
    pub(super) fn new(config: &DeviceConfig, pools: Option<u32>) -> Option<Filling> {
        let timeout = config.controller.fill_timeout.time();
        let stages = (pools.unwrap_or(config.total_planes()) * config.temperature.classes()) as usize;
        (timeout > Time::ZERO).then(|| Filling {
            timeout,
            stages: vec![Stage::default(); stages],
            due: VecDeque::with_capacity(stages),
        })
    }

    /// The stage that goes on next, and when, without those that have gone on already.
    fn next_due(&mut self) -> Option<(Time, u32)> {
        while let Some(&(at, stage, turn)) = self.due.front() {
            if self.stages[stage as usize].turn == turn {
                return Some((at, stage));
            }
            self.due.pop_front();
        }
        None
    }
}

impl Device {
    /// A write that has all its data waits for others, unless its program is full with it or someone waits for that.
    pub(super) fn stage(&mut self, id: u32) {
        let group = self.ftl.shape().units_per_program;
        let lpn = Lpn(self.transactions[id].lpn);
        let place = self.ftl.home(lpn).map_or_else(|| self.ftl.pool(lpn), |plane| plane.0);
        let number = place * self.ftl.shape().classes + u32::from(self.transactions[id].temperature);
        let hurry = self.is_urgent(self.transactions[id].owner);
        let Some(filling) = &mut self.filling else { return };
        let stage = &mut filling.stages[number as usize];
        stage.waiting.push(&mut self.transactions, id);
        stage.count += 1;
        if stage.count == group || hurry {
            return self.go_on_filled(number);
        }
        if stage.count == 1 {
            filling.due.push_back((self.now.later(filling.timeout), number, stage.turn));
            self.arm_fill();
        }
    }

    /// Whether a write of `request` is not to wait: it is done only when it is in flash, or a flush waits for it.
    fn is_urgent(&self, request: u32) -> bool {
        let lands = request != NONE && self.must_land(&self.requests[request].request);
        lands || self.buffer.as_deref().is_some_and(|buffer| buffer.is_flushing())
    }

    /// The writes of a stage line up.
    fn go_on_filled(&mut self, number: u32) {
        let Some(filling) = &mut self.filling else { return };
        let stage = &mut filling.stages[number as usize];
        let mut waiting = std::mem::take(&mut stage.waiting);
        stage.count = 0;
        stage.turn = stage.turn.wrapping_add(1);
        self.arm_fill();
        // None starts before the others are in line.
        self.while_holding(true, |device| {
            while !waiting.is_empty() {
                let id = waiting.pop(&mut device.transactions);
                device.trail_spend(id, TimePart::Fill);
                device.line_up_write(id);
            }
        });
    }

    /// No write waits for others any more.
    pub(super) fn stop_filling(&mut self) {
        while let Some((_, number)) = self.filling.as_deref_mut().and_then(Filling::next_due) {
            self.go_on_filled(number);
        }
    }

    /// The first writes have waited for long enough.
    pub(super) fn fill_event(&mut self) {
        while let Some((at, number)) = self.filling.as_deref_mut().and_then(Filling::next_due) {
            if at > self.now {
                break;
            }
            self.go_on_filled(number);
        }
        self.arm_fill();
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
