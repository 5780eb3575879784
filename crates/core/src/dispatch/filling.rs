//! Gathering of whole program units: keeps writes until they fill the program of a wordline, or of a wordline in each
//! plane that programs together. See docs/model/mapping.md.

use std::collections::VecDeque;

use super::command_rules::Merging;
use crate::config::DeviceConfig;
use crate::sim::id::TransactionId;
use crate::sim::time::Time;
use crate::work::{Fifo, Transactions};

/// Writes for one program unit.
#[derive(Clone, Debug, Default)]
struct Stage {
    waiting: Fifo,
    count: u32,
    /// Units that the buffer has picked for this stage and that the firmware has not written yet.
    coming: u32,
    /// Number of program units that were released. It distinguishes entries of `due`.
    turn: u32,
    /// True if a request waits for one of the writes: the stage is released when no more writes are coming.
    is_urgent: bool,
    /// True if the stage is in `Filling::begun`.
    is_begun: bool,
}

/// State of a stage after a write was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Staged {
    /// The stage is a whole program unit.
    Full,
    /// The stage starts to wait for more writes.
    First,
    /// The stage continues to wait for more writes.
    Waits,
}

/// Program units that are being filled.
#[derive(Clone, Debug)]
pub(crate) struct Filling {
    timeout: Time,
    /// Number of mapping units of a program unit.
    group: u32,
    /// Number of write slots.
    slots: u32,
    /// True if the buffer completes program units. With several temperature classes it cannot, because the address of
    /// a dirty unit does not determine its stage.
    is_completed: bool,
    /// Indexed by plane, or by pool with dynamic allocation; then by class.
    stages: Vec<Stage>,
    /// Time at which the first write of a stage has waited long enough, with the stage and its turn; oldest first.
    due: VecDeque<(Time, u32, u32)>,
    /// Urgent stages, oldest first.
    urgent: VecDeque<u32>,
    /// Stages for which the buffer has picked a unit since it last completed them, oldest first.
    begun: VecDeque<u32>,
}

impl Filling {
    /// Creates empty stages for each plane, or for each of `pools`. Returns `None` without `controller.fill_timeout`.
    pub(crate) fn new(config: &DeviceConfig, pools: Option<u32>, merging: &Merging) -> Option<Filling> {
        let timeout = config.controller.fill_timeout.time();
        let places = pools.unwrap_or(config.total_planes());
        let stages = (places * config.temperature.classes()) as usize;
        let per_program = config.units_per_program();
        // All units of a program unit hold a slot at the same time.
        let planes = pools.map_or(1, |pools| merging.planes_per_program().min(config.total_planes() / pools));
        let planes = planes.min(config.controller.write_slots / per_program).max(1);
        (timeout > Time::ZERO).then(|| Filling {
            timeout,
            group: per_program * planes,
            slots: config.controller.write_slots,
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

    /// Adds a write to a stage.
    pub(crate) fn add(&mut self, links: &mut Transactions, number: u32, id: TransactionId, now: Time) -> Staged {
        let stage = &mut self.stages[number as usize];
        stage.waiting.push(links, id);
        stage.count += 1;
        if stage.count == self.group {
            return Staged::Full;
        }
        if stage.count > 1 {
            return Staged::Waits;
        }
        self.due.push_back((now.later(self.timeout), number, stage.turn));
        Staged::First
    }

    /// Removes all writes of a stage, and returns them.
    pub(crate) fn take(&mut self, number: u32) -> Fifo {
        let stage = &mut self.stages[number as usize];
        stage.count = 0;
        stage.turn = stage.turn.wrapping_add(1);
        if std::mem::take(&mut stage.is_urgent) {
            self.urgent.retain(|&other| other != number);
        }
        std::mem::take(&mut stage.waiting)
    }

    /// Records that the buffer has picked a unit of one of its lists.
    pub(crate) fn expect(&mut self, list: u16) {
        if !self.is_completed {
            return;
        }
        let stage = &mut self.stages[usize::from(list)];
        stage.coming += 1;
        if !std::mem::replace(&mut stage.is_begun, true) {
            self.begun.push_back(list.into());
        }
    }

    /// Records that the firmware writes a unit that the buffer has picked from one of its lists.
    pub(crate) fn note_received(&mut self, list: u16) {
        if self.is_completed {
            self.stages[usize::from(list)].coming -= 1;
        }
    }

    /// Makes a stage urgent, because a request waits for one of its writes.
    pub(crate) fn make_urgent(&mut self, number: u32) {
        if !std::mem::replace(&mut self.stages[number as usize].is_urgent, true) {
            self.urgent.push_back(number);
        }
    }

    /// Makes all stages that hold writes urgent.
    pub(crate) fn make_all_urgent(&mut self) {
        for index in 0..self.due.len() {
            let (_, number, turn) = self.due[index];
            if self.stages[number as usize].turn == turn {
                self.make_urgent(number);
            }
        }
    }

    /// Returns the oldest urgent stage, if there is one.
    pub(crate) fn first_urgent(&self) -> Option<u32> {
        self.urgent.front().copied()
    }

    /// Returns the number of units that a stage needs to become a whole program unit, in addition to those already
    /// coming.
    fn missing(&self, number: u32) -> u32 {
        let stage = &self.stages[number as usize];
        self.group - 1 - (stage.count + stage.coming + self.group - 1) % self.group
    }

    /// Returns the number of units that the buffer has to pick from a list to complete the program unit of that list,
    /// if the buffer completes program units.
    pub(crate) fn missing_in(&self, list: u16) -> Option<u32> {
        self.is_completed.then(|| self.missing(list.into()))
    }

    /// Returns the number of slots that the next program unit of a list of the buffer needs, at most all of them.
    pub(crate) fn slots_for(&self, list: Option<u16>) -> u32 {
        let needed = match list.and_then(|list| self.missing_in(list)) {
            Some(0) => self.group,
            Some(missing) => missing,
            None => 1,
        };
        needed.min(self.slots)
    }

    /// Returns the list of the program unit that the buffer began first, and the number of missing units.
    pub(crate) fn first_begun(&self) -> Option<(u16, u32)> {
        let &number = self.begun.front()?;
        Some((number as u16, self.missing(number)))
    }

    /// Records that the buffer has completed the program unit of [`Filling::first_begun`].
    pub(crate) fn complete_first(&mut self) {
        if let Some(number) = self.begun.pop_front() {
            self.stages[number as usize].is_begun = false;
        }
    }

    /// Returns `true` if the writes that are coming do not complete the program unit of a stage.
    pub(crate) fn stays_partial(&self, number: u32) -> bool {
        self.stages[number as usize].coming == 0 || self.missing(number) > 0
    }

    /// Returns the time and the stage of the next time-out.
    pub(crate) fn next_due(&mut self) -> Option<(Time, u32)> {
        while let Some(&(at, stage, turn)) = self.due.front() {
            if self.stages[stage as usize].turn == turn {
                return Some((at, stage));
            }
            self.due.pop_front();
        }
        None
    }

    /// Restarts the time-out of the stage that is due next.
    pub(crate) fn postpone(&mut self, now: Time) {
        if let Some((_, stage, turn)) = self.due.pop_front() {
            self.due.push_back((now.later(self.timeout), stage, turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Class, Kind, Transaction};

    /// Creates the stages of one pool whose pages hold two mapping units.
    fn filling() -> Filling {
        let options = ["geometry.page_size=8KiB", "controller.fill_timeout=1ms"].map(str::to_owned);
        let config = crate::config::load("tiny", &options).unwrap();
        Filling::new(&config, Some(1), &Merging::new(&config)).unwrap()
    }

    fn write(transactions: &mut Transactions) -> TransactionId {
        transactions.insert(Transaction::new(Kind::Write, Class::HostProgram))
    }

    #[test]
    fn a_full_stage_is_released() {
        let mut filling = filling();
        let mut links = Transactions::default();
        let ids = [write(&mut links), write(&mut links)];
        assert_eq!(filling.add(&mut links, 0, ids[0], Time::from_us(5)), Staged::First);
        assert_eq!(filling.next_due(), Some((Time::from_us(1005), 0)));
        assert_eq!(filling.add(&mut links, 0, ids[1], Time::from_us(7)), Staged::Full);
        let mut writes = filling.take(0);
        assert_eq!([writes.pop(&mut links), writes.pop(&mut links)], ids);
        assert_eq!((writes.is_empty(), filling.next_due()), (true, None));
    }

    #[test]
    fn a_released_stage_is_not_urgent_and_has_no_time_out() {
        let mut filling = filling();
        let mut links = Transactions::default();
        for at in [1, 2] {
            let id = write(&mut links);
            filling.add(&mut links, 0, id, Time::from_us(at));
            filling.make_all_urgent();
            assert_eq!(filling.first_urgent(), Some(0));
            filling.take(0);
            assert_eq!((filling.first_urgent(), filling.next_due()), (None, None));
        }
    }

    #[test]
    fn the_buffer_completes_program_units_that_it_began() {
        let mut filling = filling();
        let mut links = Transactions::default();
        assert_eq!((filling.slots_for(Some(0)), filling.first_begun()), (2, None));
        filling.expect(0);
        assert_eq!((filling.missing_in(0), filling.first_begun()), (Some(1), Some((0, 1))));
        filling.note_received(0);
        let id = write(&mut links);
        filling.add(&mut links, 0, id, Time::ZERO);
        assert!(filling.stays_partial(0), "no write is coming");
        filling.expect(0);
        filling.complete_first();
        assert_eq!((filling.stays_partial(0), filling.first_begun()), (false, None));
    }
}
