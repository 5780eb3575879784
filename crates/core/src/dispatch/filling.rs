//! Gathering of whole program units: which writes wait for others that fill the program with them.

use std::collections::VecDeque;

use super::join::Merging;
use crate::config::DeviceConfig;
use crate::sim::time::Time;
use crate::work::Fifo;

/// Writes that go into one program unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    pub(crate) waiting: Fifo,
    pub(crate) count: u32,
    /// Units that the buffer has picked for this stage and that the firmware has not written yet.
    pub(crate) coming: u32,
    /// Number of program units that have left, which distinguishes entries of `due`.
    pub(crate) turn: u32,
    /// True if somebody waits for a write of it: it leaves when nothing more is coming.
    pub(crate) is_urgent: bool,
    /// True if the stage is in `Filling::begun`.
    pub(crate) is_begun: bool,
}

/// The program units that are being gathered.
#[derive(Clone, Debug)]
pub(crate) struct Filling {
    pub(crate) timeout: Time,
    /// Mapping units of a program unit.
    pub(crate) group: u32,
    /// True if the buffer completes program units. With several temperature classes it cannot, because the address of
    /// a dirty unit does not determine its stage.
    pub(crate) is_completed: bool,
    /// Indexed by plane, or by pool with dynamic allocation; then by class.
    pub(crate) stages: Vec<Stage>,
    /// Time at which the first write of a stage has waited long enough, with the stage and its turn; oldest first.
    pub(crate) due: VecDeque<(Time, u32, u32)>,
    /// Urgent stages, oldest first.
    pub(crate) urgent: VecDeque<u32>,
    /// Stages that the buffer has picked a unit for since it last completed them, oldest first.
    pub(crate) begun: VecDeque<u32>,
}

impl Filling {
    /// Creates empty stages for each plane, or for each of `pools`. Returns `None` if writes do not wait for others.
    pub(crate) fn new(config: &DeviceConfig, pools: Option<u32>, merging: &Merging) -> Option<Filling> {
        let timeout = config.controller.fill_timeout.time();
        let places = pools.unwrap_or(config.total_planes());
        let stages = (places * config.temperature.classes()) as usize;
        let per_program = config.units_per_program();
        // All units of a program unit hold a slot at the same time.
        let planes = if pools.is_some() { merging.planes_per_program() } else { 1 };
        let planes = planes.min(config.controller.slots / per_program).max(1);
        (timeout > Time::ZERO).then(|| Filling {
            timeout,
            group: per_program * planes,
            is_completed: config.temperature.classes() == 1 && u16::try_from(places).is_ok(),
            stages: vec![Stage::default(); stages],
            due: VecDeque::with_capacity(stages),
            urgent: VecDeque::with_capacity(stages),
            begun: VecDeque::with_capacity(stages),
        })
    }

    /// Returns the number of lists of dirty units that the buffer needs: one for each stage that it completes.
    pub(crate) fn lists(filling: Option<&Filling>) -> u16 {
        filling.filter(|filling| filling.is_completed).map_or(1, |filling| filling.stages.len() as u16)
    }

    /// Returns the number of units that a stage needs to become a whole program unit, in addition to those that are
    /// coming.
    pub(crate) fn missing(&self, number: u32) -> u32 {
        let stage = &self.stages[number as usize];
        self.group - 1 - (stage.count + stage.coming + self.group - 1) % self.group
    }

    /// Returns the stage whose time-out is next, and when it is.
    pub(crate) fn next_due(&mut self) -> Option<(Time, u32)> {
        while let Some(&(at, stage, turn)) = self.due.front() {
            if self.stages[stage as usize].turn == turn {
                return Some((at, stage));
            }
            self.due.pop_front();
        }
        None
    }

    /// Gives the stage whose time-out is next another one.
    pub(crate) fn postpone(&mut self, now: Time) {
        if let Some((_, stage, turn)) = self.due.pop_front() {
            self.due.push_back((now.later(self.timeout), stage, turn));
        }
    }
}
