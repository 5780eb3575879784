//! Who held a die or a channel for how long, so that a wait can be told by its causes.
//!
//! Sums that only grow are kept for each LUN and channel. What a wait was for is the difference of two readings of
//! them, so the books cost a few additions per operation, however long the wait and however many it was behind.

use crate::sim::id::{ChannelId, ExecUnitId, LunId};
use crate::sim::table::Table;
use crate::sim::time::Time;

/// What holds a LUN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holder {
    /// Nothing.
    #[default]
    Nobody,
    /// An operation of the host.
    Host,
    /// An operation of cleaning.
    Gc,
    /// The wait for its channel, to start the next one.
    Channel,
}

/// A reading of a LUN's sums: time that it was held, in ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    host: u64,
    gc: u64,
}

impl Reading {
    /// What a wait for the LUN, so long, from an earlier reading until this one was for. While the LUN was held by
    /// nothing, its channel was.
    #[inline(always)]
    pub fn since(self, earlier: Reading, waited: Time) -> Wait {
        let (die, gc) = (self.host.wrapping_sub(earlier.host), self.gc.wrapping_sub(earlier.gc));
        let (die, gc) = (Time(die), Time(gc));
        Wait { die, gc, channel: waited - die - gc }
    }
}

/// A reading of the sums of all LUNs of a pool together. They wrap around; their differences are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadingOfAll {
    host: u64,
    requesting: u64,
    luns: u32,
    /// The pool.
    pub pool: u32,
}

impl ReadingOfAll {
    /// What a wait for whichever LUN is free first, so long, from an earlier reading until this one was for: shared out
    /// as the time of all LUNs was. Those that were held neither by the host nor waiting for their channel were
    /// cleaned, or had no free block.
    #[inline(never)]
    pub fn since(self, earlier: ReadingOfAll, waited: Time) -> Wait {
        if waited == Time::ZERO {
            return Wait::default();
        }
        let all = u128::from(waited.0) * u128::from(self.luns);
        let share = |time: u64| Time((u128::from(waited.0) * u128::from(time) / all) as u64);
        let die = share(self.host.wrapping_sub(earlier.host));
        let channel = share(self.requesting.wrapping_sub(earlier.requesting));
        Wait { die, channel, gc: waited - die - channel }
    }
}

/// A wait by its causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Other operations of the host held the die.
    pub die: Time,
    /// Other operations of the host held the channel.
    pub channel: Time,
    /// Operations of cleaning held either.
    pub gc: Time,
}

/// An operation that has ended: when it started, how the books stood then, and what its time went into. Those who were
/// in line for it need to look only once, at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTimes {
    /// The channel of its unit.
    pub channel: ChannelId,
    /// When it started.
    pub start: Time,
    /// A reading of its LUN's sums then.
    pub mark: Reading,
    /// A reading of the sums of all LUNs of its pool then, where they are kept.
    pub all: ReadingOfAll,
    /// Waiting for the channel in the middle of the operation.
    pub wait: Wait,
    /// On the channel.
    pub bus: Time,
    /// In the cells.
    pub cell: Time,
}

impl OperationTimes {
    /// What was spent from the start of this one to the end of the other, which follows.
    #[inline(always)]
    pub fn then(self, other: OperationTimes) -> OperationTimes {
        let wait = Wait {
            die: self.wait.die + other.wait.die,
            channel: self.wait.channel + other.wait.channel,
            gc: self.wait.gc + other.wait.gc,
        };
        OperationTimes { wait, bus: self.bus + other.bus, cell: self.cell + other.cell, ..self }
    }
}

/// The book of a LUN.
///
/// Each sum is of time that has ended, less the instant since which the LUN has been held like that: so a reading is
/// one addition, whatever holds it. They wrap around.
#[derive(Clone, Debug, Default)]
struct LunTimes {
    channel: ChannelId,
    /// What holds it.
    holder: Holder,
    /// When the command that holds it started.
    start: Time,
    /// By [`side`]: held by the host, and by cleaning or waiting for a channel that cleaning held.
    sums: [u64; 2],
    /// All ones for the side that holds it, else 0.
    held: [u64; 2],
    /// Where it waits for its channel to start a command: the channel's sum when it got in line.
    seen: u64,
    /// Where the sums of all are kept: how they stood when the command started.
    all: ReadingOfAll,
}

/// Which of a LUN's sums a holder's time is in.
#[inline(always)]
fn side(holder: Holder) -> usize {
    usize::from(holder == Holder::Gc)
}

impl LunTimes {
    /// A reading of the sums at an instant, in a wait for the channel aside.
    #[inline(always)]
    fn mark(&self, now: Time) -> Reading {
        let at = |side: usize| self.sums[side].wrapping_add(now.0 & self.held[side]);
        Reading { host: at(0), gc: at(1) }
    }
}

/// The book of a unit.
#[derive(Clone, Debug, Default)]
struct ExecUnitTimes {
    channel: ChannelId,
    /// When it got in line for its channel, and the channel's sum then.
    enqueued: Time,
    seen: u64,
    /// Its waits for the channel in the middle of the operation: behind the host's, and behind cleaning.
    channel_wait: Time,
    gc_wait: Time,
}

#[derive(Clone, Debug, Default)]
struct ChannelTimes {
    /// Held by cleaning, up to the end of what it carries now.
    gc: u64,
    /// When the transfer of cleaning that was booked last ends.
    until: Time,
}

impl ChannelTimes {
    /// Time held by cleaning up to `now`.
    #[inline]
    fn gc_at(&self, now: Time) -> u64 {
        self.gc - self.until.since(now).0
    }
}

/// The time of all LUNs of a pool by what holds them.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    host: Sum,
    requesting: Sum,
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
pub struct BusyAccounting {
    luns: Table<LunId, LunTimes>,
    units: Table<ExecUnitId, ExecUnitTimes>,
    channels: Table<ChannelId, ChannelTimes>,
    /// By pool of the allocation, where something waits for whichever LUN of one is free first: the sums of all.
    pools: Vec<Sums>,
    luns_per_pool: u32,
}

impl BusyAccounting {
    /// Empty books for so many LUNs, of so many units each. Something may wait for whichever LUN of a pool is free
    /// first, where there are pools: equal shares of the LUNs.
    pub fn new(luns: u32, units_per_lun: u32, channels: u32, pools: u32) -> BusyAccounting {
        let per_channel = luns / channels;
        let channel_of = |lun: u32| ChannelId(lun / per_channel);
        let of_unit = |unit| ExecUnitTimes { channel: channel_of(unit / units_per_lun), ..ExecUnitTimes::default() };
        BusyAccounting {
            luns: (0..luns).map(|lun| LunTimes { channel: channel_of(lun), ..LunTimes::default() }).collect(),
            units: (0..luns * units_per_lun).map(of_unit).collect(),
            channels: Table::new(channels, ChannelTimes::default()),
            pools: vec![Sums::default(); pools as usize],
            luns_per_pool: luns / pools.max(1),
        }
    }

    /// A command starts on a LUN that nothing holds.
    #[inline(always)]
    pub fn start(&mut self, lun: LunId, holder: Holder, now: Time) {
        let book = &mut self.luns[lun];
        debug_assert_eq!(book.holder, Holder::Nobody, "a LUN takes one command at a time");
        let side = side(holder);
        (book.holder, book.start) = (holder, now);
        (book.sums[side], book.held[side]) = (book.sums[side].wrapping_sub(now.0), u64::MAX);
        if !self.pools.is_empty() {
            self.start_of_all(lun, holder, now);
        }
    }

    #[inline(never)]
    fn start_of_all(&mut self, lun: LunId, holder: Holder, now: Time) {
        self.luns[lun].all = self.mark_all_of(lun, now);
        self.count(lun, holder, |sum| sum.enter(now));
    }

    /// What the operation of a unit of `lun` has spent so far, in which the cells worked for `cell`.
    #[inline(always)]
    pub fn turn(&self, unit: ExecUnitId, lun: LunId, cell: Time, now: Time) -> OperationTimes {
        let ExecUnitTimes { channel, channel_wait, gc_wait, .. } = self.units[unit];
        let book = &self.luns[lun];
        let (start, all) = (book.start, book.all);
        let wait = Wait { die: Time::ZERO, channel: channel_wait, gc: gc_wait };
        let bus = now - start - cell - channel_wait - gc_wait;
        OperationTimes { channel, start, mark: book.mark(start), all, wait, bus, cell }
    }

    /// The operation of a unit of `lun` has ended, and with the `last` one the command.
    #[inline(always)]
    pub fn end(&mut self, unit: ExecUnitId, lun: LunId, last: bool, now: Time) {
        let book = &mut self.units[unit];
        (book.channel_wait, book.gc_wait) = (Time::ZERO, Time::ZERO);
        if !last {
            return;
        }
        let book = &mut self.luns[lun];
        let (holder, start) = (std::mem::take(&mut book.holder), book.start);
        let side = side(holder);
        (book.sums[side], book.held[side]) = (book.sums[side].wrapping_add(now.0), 0);
        if !self.pools.is_empty() {
            self.count(lun, holder, move |sum| sum.leave(start, now));
        }
    }

    /// The pool of a LUN.
    fn pool_of(&self, lun: LunId) -> u32 {
        lun.0 / self.luns_per_pool
    }

    /// Changes the sum of all LUNs that are held like that, if there is one, in the pool of a LUN.
    #[inline(never)]
    fn count(&mut self, lun: LunId, holder: Holder, change: impl FnOnce(&mut Sum)) {
        let pool = self.pool_of(lun);
        let sums = &mut self.pools[pool as usize];
        match holder {
            Holder::Host => change(&mut sums.host),
            Holder::Channel => change(&mut sums.requesting),
            Holder::Nobody | Holder::Gc => {}
        }
    }

    /// A unit of `lun` gets in line for its channel: to start a command, or in the middle of one.
    #[inline]
    pub fn enqueue(&mut self, unit: ExecUnitId, lun: LunId, now: Time) {
        let book = &mut self.units[unit];
        (book.enqueued, book.seen) = (now, self.channels[book.channel].gc_at(now));
        let of_lun = &mut self.luns[lun];
        if of_lun.holder == Holder::Nobody {
            (of_lun.holder, of_lun.seen) = (Holder::Channel, book.seen);
            if !self.pools.is_empty() {
                self.count(lun, Holder::Channel, move |sum| sum.enter(now));
            }
        }
    }

    /// A unit of `lun` that was in line for its channel gets it.
    #[inline]
    pub fn grant(&mut self, unit: ExecUnitId, lun: LunId, now: Time) {
        let book = &mut self.units[unit];
        let gc = self.channels[book.channel].gc_at(now) - book.seen;
        let enqueued = book.enqueued;
        let of_lun = &mut self.luns[lun];
        if of_lun.holder != Holder::Channel {
            book.gc_wait += Time(gc);
            book.channel_wait += now - enqueued - Time(gc);
            return;
        }
        of_lun.holder = Holder::Nobody;
        of_lun.sums[side(Holder::Gc)] += gc;
        if !self.pools.is_empty() {
            self.count(lun, Holder::Channel, move |sum| sum.leave(enqueued, now));
        }
    }

    /// An operation of `lun` is on its channel until `end`.
    #[inline]
    pub fn carry(&mut self, lun: LunId, now: Time, end: Time) {
        let book = &self.luns[lun];
        if book.holder == Holder::Gc {
            let channel = &mut self.channels[book.channel];
            channel.gc += (end - now).0;
            channel.until = end;
        }
    }

    /// A reading for what gets in line for a LUN.
    #[inline]
    pub fn mark(&self, lun: LunId, now: Time) -> Reading {
        let book = &self.luns[lun];
        let mut mark = book.mark(now);
        if book.holder == Holder::Channel {
            mark.gc += self.channels[book.channel].gc_at(now) - book.seen;
        }
        mark
    }

    /// A reading for what waits for any LUN of the pool of `lun`, where there are pools.
    pub fn mark_all_of(&self, lun: LunId, now: Time) -> ReadingOfAll {
        if self.pools.is_empty() { ReadingOfAll::default() } else { self.mark_all(self.pool_of(lun), now) }
    }

    /// A reading for what waits for any LUN of a pool.
    pub fn mark_all(&self, pool: u32, now: Time) -> ReadingOfAll {
        let sums = &self.pools[pool as usize];
        ReadingOfAll { host: sums.host.at(now), requesting: sums.requesting.at(now), luns: self.luns_per_pool, pool }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LUN: LunId = LunId(0);

    /// The only unit of a LUN.
    fn unit(lun: LunId) -> ExecUnitId {
        ExecUnitId(lun.0)
    }

    fn end(accounting: &mut BusyAccounting, lun: LunId, cell: Time, now: Time) -> OperationTimes {
        let turn = accounting.turn(unit(lun), lun, cell, now);
        accounting.end(unit(lun), lun, true, now);
        turn
    }

    #[test]
    fn a_wait_is_told_by_who_held_the_die() {
        let mut accounting = BusyAccounting::new(2, 1, 1, 0);
        accounting.start(LUN, Holder::Host, Time(10));
        let mark = accounting.mark(LUN, Time(15));
        end(&mut accounting, LUN, Time(10), Time(20));
        accounting.start(LUN, Holder::Gc, Time(20));
        let wait = accounting.mark(LUN, Time(23)).since(mark, Time(8));
        assert_eq!(wait, Wait { die: Time(5), gc: Time(3), channel: Time(0) });
        end(&mut accounting, LUN, Time(30), Time(50));
        let wait = Wait { die: Time(5), gc: Time(30), channel: Time(0) };
        assert_eq!(accounting.mark(LUN, Time(50)).since(mark, Time(35)), wait);
        // The same as the operation that starts then has it when it ends.
        accounting.start(LUN, Holder::Host, Time(50));
        let turn = end(&mut accounting, LUN, Time(7), Time(60));
        assert_eq!(turn.mark.since(mark, Time(35)), wait);
        assert_eq!((turn.start, turn.bus, turn.cell), (Time(50), Time(3), Time(7)));
    }

    #[test]
    fn a_wait_for_the_channel_is_told_by_who_held_it() {
        let mut accounting = BusyAccounting::new(3, 1, 1, 0);
        let (other, third) = (LunId(1), LunId(2));
        let carry = |accounting: &mut BusyAccounting, holder, from, to| {
            accounting.start(third, holder, Time(from));
            accounting.carry(third, Time(from), Time(to));
            end(accounting, third, Time(0), Time(to));
        };
        carry(&mut accounting, Holder::Gc, 0, 40);
        let mark = accounting.mark(LUN, Time(10));
        accounting.enqueue(unit(LUN), LUN, Time(10));
        // Half-way through, and after a transfer of the host's that follows.
        let wait = accounting.mark(LUN, Time(25)).since(mark, Time(15));
        assert_eq!(wait, Wait { gc: Time(15), ..Wait::default() });
        carry(&mut accounting, Holder::Host, 40, 60);
        let wait = Wait { gc: Time(30), channel: Time(20), die: Time(0) };
        assert_eq!(accounting.mark(LUN, Time(60)).since(mark, Time(50)), wait);
        accounting.grant(unit(LUN), LUN, Time(60));
        assert_eq!(accounting.mark(LUN, Time(60)).since(mark, Time(50)), wait);
        // In the middle of an operation.
        accounting.start(other, Holder::Host, Time(60));
        carry(&mut accounting, Holder::Gc, 60, 75);
        accounting.enqueue(unit(other), other, Time(70));
        carry(&mut accounting, Holder::Host, 75, 77);
        accounting.grant(unit(other), other, Time(77));
        let turn = end(&mut accounting, other, Time(10), Time(80));
        let wait = Wait { gc: Time(5), channel: Time(2), die: Time(0) };
        assert_eq!((turn.wait, turn.bus, turn.cell), (wait, Time(3), Time(10)));
    }

    #[test]
    fn a_wait_for_any_is_shared_as_the_time_of_all() {
        let mut accounting = BusyAccounting::new(8, 1, 2, 2);
        accounting.start(LunId(0), Holder::Host, Time(0));
        accounting.start(LunId(1), Holder::Host, Time(50));
        accounting.start(LunId(2), Holder::Gc, Time(0));
        // Of the other pool, and so nothing to this one.
        accounting.start(LunId(4), Holder::Host, Time(0));
        let mark = accounting.mark_all(0, Time(100));
        end(&mut accounting, LunId(1), Time(0), Time(150));
        accounting.enqueue(ExecUnitId(1), LunId(1), Time(150));
        // Of 4 x 100: 100 + 50 the host, 50 for the channel, the rest cleaning or without room.
        let wait = Wait { die: Time(37), channel: Time(12), gc: Time(51) };
        assert_eq!(accounting.mark_all(0, Time(200)).since(mark, Time(100)), wait);
        accounting.grant(ExecUnitId(1), LunId(1), Time(200));
        accounting.start(LunId(1), Holder::Host, Time(200));
        assert_eq!(end(&mut accounting, LunId(1), Time(0), Time(300)).all.since(mark, Time(100)), wait);
        let other = accounting.mark_all(1, Time(100));
        let wait = Wait { die: Time(25), channel: Time(0), gc: Time(75) };
        assert_eq!(accounting.mark_all(1, Time(200)).since(other, Time(100)), wait);
    }
}
