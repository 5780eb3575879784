//! Who held a die or a channel for how long, so that a wait can be told by its causes.
//!
//! Sums that only grow are kept for each LUN and channel. What a wait was for is the difference of two readings of
//! them, so the books cost a few additions per operation, however long the wait and however many it was behind.

use crate::sim::id::{LunId, UnitId};
use crate::sim::time::Time;

/// What a LUN is doing, as far as those who wait for it are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    #[default]
    Idle,
    /// An operation of the host.
    Host,
    /// An operation of cleaning.
    Cleaning,
    /// It waits for its channel to start the next one.
    Requesting,
}

/// A reading of a LUN's sums: time that it was held, in ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    host: u64,
    cleaning: u64,
}

/// A reading of the sums of all LUNs together. They wrap around; their differences are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkOfAll {
    host: u64,
    requesting: u64,
}

/// A wait by its causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Other operations of the host held the die.
    pub die: Time,
    /// Other operations of the host held the channel.
    pub channel: Time,
    /// Operations of cleaning held either.
    pub cleaning: Time,
}

/// What the operation of a LUN has spent since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Waiting for the channel in the middle of the operation.
    pub wait: Wait,
    /// On the channel.
    pub bus: Time,
    /// In the cells.
    pub cell: Time,
}

/// The book of a unit, and of its LUN where it is the first one of it.
#[derive(Clone, Debug, Default)]
struct LunBook {
    channel: usize,
    state: State,
    since: Time,
    host: u64,
    /// Held by cleaning, or waiting for a channel that cleaning held.
    cleaning: u64,
    /// The channel's sum when the LUN got in line for it.
    seen: u64,
    spent: Spent,
    /// When the phase before this one of its operation ended.
    ready: Time,
}

#[derive(Clone, Debug, Default)]
struct ChannelBook {
    /// Held by cleaning, up to the end of what it carries now.
    cleaning: u64,
    /// When the transfer of cleaning that was booked last ends.
    until: Time,
}

impl ChannelBook {
    /// Time held by cleaning up to `now`.
    #[inline]
    fn cleaning_at(&self, now: Time) -> u64 {
        self.cleaning - self.until.since(now).0
    }
}

/// The time of all LUNs in one state, read at any instant without a look at each.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// LUNs in the state now, and the sum of the instants at which they entered it.
    luns: u64,
    since: u64,
    ended: u64,
}

impl Sum {
    fn enter(&mut self, now: Time) {
        self.luns += 1;
        self.since = self.since.wrapping_add(now.0);
    }

    fn leave(&mut self, since: Time, now: Time) {
        self.luns -= 1;
        self.since = self.since.wrapping_sub(since.0);
        self.ended = self.ended.wrapping_add((now - since).0);
    }

    fn at(&self, now: Time) -> u64 {
        self.ended.wrapping_add(self.luns.wrapping_mul(now.0)).wrapping_sub(self.since)
    }
}

/// The books of an array.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// By unit.
    luns: Vec<LunBook>,
    units_per_lun: u32,
    channels: Vec<ChannelBook>,
    /// Whether the sums of all are kept.
    any: bool,
    host: Sum,
    requesting: Sum,
}

impl Ledger {
    /// Empty books for so many LUNs, of so many units each. With `any`, something may wait for whichever LUN is free
    /// first.
    pub fn new(luns: u32, units_per_lun: u32, channels: u32, any: bool) -> Ledger {
        let units = luns * units_per_lun;
        let per_channel = (units / channels) as usize;
        Ledger {
            luns: (0..units as usize).map(|u| LunBook { channel: u / per_channel, ..LunBook::default() }).collect(),
            units_per_lun,
            channels: vec![ChannelBook::default(); channels as usize],
            any,
            host: Sum::default(),
            requesting: Sum::default(),
        }
    }

    /// Where the book of a LUN is.
    #[inline]
    fn at(&self, lun: LunId) -> usize {
        (lun.0 * self.units_per_lun) as usize
    }

    /// A LUN goes over to another state.
    #[inline]
    pub fn enter(&mut self, lun: LunId, state: State, now: Time) {
        let at = self.at(lun);
        let book = &mut self.luns[at];
        let (before, since) = (book.state, book.since);
        (book.state, book.since) = (state, now);
        match before {
            State::Idle => {}
            State::Host => book.host += (now - since).0,
            State::Cleaning => book.cleaning += (now - since).0,
            State::Requesting => book.cleaning += self.channels[book.channel].cleaning_at(now) - book.seen,
        }
        if self.any {
            self.count(before, since, state, now);
        }
    }

    /// Counts in the sums of all LUNs that one goes over to another state.
    #[inline(never)]
    fn count(&mut self, before: State, since: Time, state: State, now: Time) {
        match before {
            State::Host => self.host.leave(since, now),
            State::Requesting => self.requesting.leave(since, now),
            State::Idle | State::Cleaning => {}
        }
        match state {
            State::Host => self.host.enter(now),
            State::Requesting => self.requesting.enter(now),
            State::Idle | State::Cleaning => {}
        }
    }

    /// A unit gets in line for its channel.
    #[inline]
    pub fn line_up(&mut self, unit: UnitId, now: Time) {
        let book = &mut self.luns[unit.index()];
        book.seen = self.channels[book.channel].cleaning_at(now);
    }

    /// A unit begins an operation of its LUN's command.
    #[inline]
    pub fn begin(&mut self, unit: UnitId, now: Time) {
        let book = &mut self.luns[unit.index()];
        (book.spent, book.ready) = (Spent::default(), now);
        book.seen = self.channels[book.channel].cleaning_at(now);
    }

    /// The operation of a unit of `lun` goes on at `now`, after a wait for the channel if there was one: on the channel
    /// until `begin`, then in the cells until `end`.
    #[inline(always)]
    pub fn phases(&mut self, unit: UnitId, lun: LunId, now: Time, begin: Time, end: Time) {
        let cleans = self.luns[self.at(lun)].state == State::Cleaning;
        let book = &mut self.luns[unit.index()];
        let channel = &mut self.channels[book.channel];
        let waited = now - book.ready;
        if waited > Time::ZERO {
            let cleaning = Time(channel.cleaning_at(now) - book.seen);
            book.spent.wait.cleaning += cleaning;
            book.spent.wait.channel += waited - cleaning;
        }
        if cleans {
            channel.cleaning += (begin - now).0;
            channel.until = channel.until.max(begin);
        }
        book.spent.bus += begin - now;
        book.spent.cell += end - begin;
        book.ready = end;
    }

    /// What the operation of a unit has spent so far.
    #[inline]
    pub fn spent(&self, unit: UnitId) -> Spent {
        self.luns[unit.index()].spent
    }

    /// The channel of a unit.
    #[inline]
    pub fn channel_of(&self, unit: UnitId) -> usize {
        self.luns[unit.index()].channel
    }

    /// A reading for what gets in line for a LUN.
    #[inline]
    pub fn mark(&self, lun: LunId, now: Time) -> Mark {
        let book = &self.luns[self.at(lun)];
        let Mark { mut host, mut cleaning } = Mark { host: book.host, cleaning: book.cleaning };
        match book.state {
            State::Idle => {}
            State::Host => host += (now - book.since).0,
            State::Cleaning => cleaning += (now - book.since).0,
            State::Requesting => cleaning += self.channels[book.channel].cleaning_at(now) - book.seen,
        }
        Mark { host, cleaning }
    }

    /// A wait for a LUN that began at `from` with `mark`. While the LUN was held by nothing, its channel was.
    #[inline]
    pub fn wait(&self, lun: LunId, mark: Mark, from: Time, now: Time) -> Wait {
        let Mark { host, cleaning } = self.mark(lun, now);
        let (die, cleaning) = (Time(host - mark.host), Time(cleaning - mark.cleaning));
        Wait { die, cleaning, channel: now - from - die - cleaning }
    }

    /// A reading for what waits for any LUN.
    pub fn mark_all(&self, now: Time) -> MarkOfAll {
        MarkOfAll { host: self.host.at(now), requesting: self.requesting.at(now) }
    }

    /// A wait for whichever LUN is free first: shared out as the time of all LUNs was. Those that were held neither by
    /// the host nor waiting for their channel were cleaned, or had no free block.
    pub fn wait_for_any(&self, mark: MarkOfAll, from: Time, now: Time) -> Wait {
        let waited = now - from;
        if waited == Time::ZERO {
            return Wait::default();
        }
        let MarkOfAll { host, requesting } = self.mark_all(now);
        let luns = self.luns.len() as u128 / u128::from(self.units_per_lun);
        let all = u128::from(waited.0) * luns;
        let share = |time: u64| Time((u128::from(waited.0) * u128::from(time) / all) as u64);
        let die = share(host.wrapping_sub(mark.host));
        let channel = share(requesting.wrapping_sub(mark.requesting));
        Wait { die, channel, cleaning: waited - die - channel }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LUN: LunId = LunId(0);

    #[test]
    fn a_wait_is_told_by_who_held_the_die() {
        let mut ledger = Ledger::new(2, 1, 1, false);
        ledger.enter(LUN, State::Host, Time(10));
        let mark = ledger.mark(LUN, Time(15));
        ledger.enter(LUN, State::Idle, Time(20));
        ledger.enter(LUN, State::Cleaning, Time(20));
        let wait = ledger.wait(LUN, mark, Time(15), Time(23));
        assert_eq!(wait, Wait { die: Time(5), cleaning: Time(3), channel: Time(0) });
        ledger.enter(LUN, State::Idle, Time(50));
        let wait = ledger.wait(LUN, mark, Time(15), Time(50));
        assert_eq!(wait, Wait { die: Time(5), cleaning: Time(30), channel: Time(0) });
    }

    #[test]
    fn a_wait_for_the_channel_is_told_by_who_held_it() {
        let mut ledger = Ledger::new(3, 1, 1, false);
        let (other, third) = (LunId(1), LunId(2));
        let unit = |lun: LunId| UnitId(lun.0);
        let carry = |ledger: &mut Ledger, holder, from, to| {
            ledger.enter(third, holder, Time(from));
            ledger.begin(unit(third), Time(from));
            ledger.phases(unit(third), third, Time(from), Time(to), Time(to));
            ledger.enter(third, State::Idle, Time(to));
        };
        carry(&mut ledger, State::Cleaning, 0, 40);
        let mark = ledger.mark(LUN, Time(10));
        ledger.enter(LUN, State::Requesting, Time(10));
        ledger.line_up(unit(LUN), Time(10));
        // Half-way through, and after a transfer of the host's that follows.
        assert_eq!(ledger.wait(LUN, mark, Time(10), Time(25)), Wait { cleaning: Time(15), ..Wait::default() });
        carry(&mut ledger, State::Host, 40, 60);
        let wait = Wait { cleaning: Time(30), channel: Time(20), die: Time(0) };
        assert_eq!(ledger.wait(LUN, mark, Time(10), Time(60)), wait);
        // In the middle of an operation.
        ledger.enter(other, State::Host, Time(60));
        ledger.begin(unit(other), Time(60));
        ledger.phases(unit(other), other, Time(60), Time(60), Time(70));
        carry(&mut ledger, State::Cleaning, 60, 75);
        ledger.line_up(unit(other), Time(70));
        carry(&mut ledger, State::Host, 75, 77);
        ledger.phases(unit(other), other, Time(77), Time(80), Time(80));
        let wait = Wait { cleaning: Time(5), channel: Time(2), die: Time(0) };
        assert_eq!(ledger.spent(unit(other)), Spent { wait, bus: Time(3), cell: Time(10) });
    }

    #[test]
    fn a_wait_for_any_is_shared_as_the_time_of_all() {
        let mut ledger = Ledger::new(4, 1, 1, true);
        ledger.enter(LunId(0), State::Host, Time(0));
        ledger.enter(LunId(1), State::Host, Time(50));
        ledger.enter(LunId(2), State::Cleaning, Time(0));
        let mark = ledger.mark_all(Time(100));
        ledger.enter(LunId(1), State::Idle, Time(150));
        ledger.enter(LunId(1), State::Requesting, Time(150));
        // Of 4 x 100: 100 + 50 the host, 50 for the channel, the rest cleaning or without room.
        let wait = ledger.wait_for_any(mark, Time(100), Time(200));
        assert_eq!(wait, Wait { die: Time(37), channel: Time(12), cleaning: Time(51) });
    }
}
