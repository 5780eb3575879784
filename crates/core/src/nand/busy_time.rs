//! Busy-time accounting: how long host operations and garbage collection held each LUN and channel.
//!
//! Each LUN and channel has sums that only grow. The causes of a wait are the difference of two readings of the sums.
//! The accounting costs a few additions per operation, regardless of the length of the wait and of the queue.

use crate::sim::id::{ChannelId, ExecUnitId, LunId};
use crate::sim::table::Table;
use crate::sim::time::Time;

/// Holder of a LUN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holder {
    /// No holder.
    #[default]
    Nobody,
    /// An operation of the host.
    Host,
    /// An operation of garbage collection.
    Gc,
    /// The wait for its channel, to start the next command.
    Channel,
}

/// A reading of a LUN's sums: the time for which it was held, in ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    host: u64,
    gc: u64,
}

impl Reading {
    /// Returns the causes of a wait of length `waited` for the LUN, from the `earlier` reading to this one. Time in
    /// which nothing held the LUN counts for the channel, which was held then.
    #[inline(always)]
    pub fn since(self, earlier: Reading, waited: Time) -> Wait {
        let (die, gc) = (self.host.wrapping_sub(earlier.host), self.gc.wrapping_sub(earlier.gc));
        let (die, gc) = (Time(die), Time(gc));
        Wait { die, gc, channel: waited - die - gc }
    }
}

/// A reading of the sums of all LUNs of a pool. The sums wrap around; their differences are correct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadingOfAll {
    host: u64,
    requesting: u64,
    luns: u32,
    /// Number of the pool.
    pub pool: u32,
}

impl ReadingOfAll {
    /// Returns the causes of a wait of length `waited` for the first LUN that becomes free, from the `earlier` reading
    /// to this one. The wait is divided in proportion to the time of all LUNs. LUNs that the host did not hold and that
    /// did not wait for their channel count for garbage collection, or had no free block.
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

/// Causes of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Time in which other operations of the host held the die.
    pub die: Time,
    /// Time in which other operations of the host held the channel.
    pub channel: Time,
    /// Time in which operations of garbage collection held either.
    pub gc: Time,
}

/// Times of an operation, with the readings of the sums at its start. Transactions that waited for it therefore need
/// only one look-up, at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTimes {
    /// Channel of its execution unit.
    pub channel: ChannelId,
    /// Time of its start.
    pub start: Time,
    /// Reading of its LUN's sums at the start.
    pub mark: Reading,
    /// Reading of the sums of all LUNs of its pool at the start, if there are pools.
    pub all: ReadingOfAll,
    /// Time of waiting for the channel during the operation.
    pub wait: Wait,
    /// Time on the channel.
    pub bus: Time,
    /// Time in the cells.
    pub cell: Time,
}

impl OperationTimes {
    /// Returns the times from the start of this operation to the end of `other`, which follows it.
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

/// Accounting of a LUN.
///
/// Each sum is the time of completed holdings, minus the start of the present one, if there is one. A reading is
/// therefore one addition. The sums wrap around.
#[derive(Clone, Debug, Default)]
struct LunTimes {
    channel: ChannelId,
    /// Present holder.
    holder: Holder,
    /// Time at which the command that holds the LUN started.
    start: Time,
    /// Sums by [`side`]: held by the host; held by garbage collection, or waiting for a channel that garbage collection
    /// held.
    sums: [u64; 2],
    /// All ones for the side that holds the LUN, otherwise 0.
    held: [u64; 2],
    /// Sum of the channel when the LUN was queued for it to start a command.
    seen: u64,
    /// Reading of the pool's sums at the start of the command, if there are pools.
    all: ReadingOfAll,
}

/// Returns the index of the sum that a holder's time is counted in.
#[inline(always)]
fn side(holder: Holder) -> usize {
    usize::from(holder == Holder::Gc)
}

impl LunTimes {
    /// Returns a reading of the sums at `now`, without a wait for the channel in progress.
    #[inline(always)]
    fn mark(&self, now: Time) -> Reading {
        let at = |side: usize| self.sums[side].wrapping_add(now.0 & self.held[side]);
        Reading { host: at(0), gc: at(1) }
    }

    /// Returns the times so far of the operation of a unit of the LUN that started at `start`, in which the cells
    /// worked for `cell`.
    #[inline(always)]
    fn turn(&self, unit: &ExecUnitTimes, start: Time, cell: Time, now: Time) -> OperationTimes {
        let ExecUnitTimes { channel, channel_wait, gc_wait, power_wait, .. } = *unit;
        let all = self.all;
        let wait = Wait { die: power_wait, channel: channel_wait, gc: gc_wait };
        let bus = now - start - cell - channel_wait - gc_wait - power_wait;
        OperationTimes { channel, start, mark: self.mark(start), all, wait, bus, cell }
    }

    /// Ends the command. Returns its holder and its start.
    #[inline(always)]
    fn end(&mut self, now: Time) -> (Holder, Time) {
        let holder = std::mem::take(&mut self.holder);
        let side = side(holder);
        (self.sums[side], self.held[side]) = (self.sums[side].wrapping_add(now.0), 0);
        (holder, self.start)
    }
}

/// Accounting of an execution unit.
#[derive(Clone, Debug, Default)]
struct ExecUnitTimes {
    channel: ChannelId,
    /// Time at which the unit was queued for its channel, and the channel's sum at that time.
    enqueued: Time,
    seen: u64,
    /// Waits for the channel during the operation: for the host, and for garbage collection.
    channel_wait: Time,
    gc_wait: Time,
    /// Wait for power during the operation (`controller.power_cap`).
    power_wait: Time,
}

impl ExecUnitTimes {
    /// Ends the operation.
    #[inline(always)]
    fn end(&mut self) {
        (self.channel_wait, self.gc_wait, self.power_wait) = (Time::ZERO, Time::ZERO, Time::ZERO);
    }
}

#[derive(Clone, Debug, Default)]
struct ChannelTimes {
    /// Time held by garbage collection, up to the end of the present transfer.
    gc: u64,
    /// End of the last transfer of garbage collection.
    until: Time,
}

impl ChannelTimes {
    /// Returns the time held by garbage collection up to `now`.
    #[inline]
    fn gc_at(&self, now: Time) -> u64 {
        self.gc - self.until.since(now).0
    }
}

/// Time of all LUNs of a pool, by holder.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    host: Sum,
    requesting: Sum,
}

/// Time of all LUNs in one state, which can be read at any time without visiting each LUN.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Number of LUNs in the state now, and the sum of the times at which they entered it.
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

/// Busy-time accounting of an array.
#[derive(Clone, Debug)]
pub struct BusyAccounting {
    luns: Table<LunId, LunTimes>,
    units: Table<ExecUnitId, ExecUnitTimes>,
    channels: Table<ChannelId, ChannelTimes>,
    /// Sums of all LUNs of each pool of the allocation, because writes wait for the first LUN of a pool to become free.
    pools: Vec<Sums>,
    luns_per_pool: u32,
    /// Number of pools with the same sums, because they share a LUN.
    pools_per_lun: u32,
}

impl BusyAccounting {
    /// Creates the accounting for `luns` LUNs with `units_per_lun` execution units each. Pools have equal shares of the
    /// LUNs, or LUNs have equal numbers of pools. With `pools`, writes may wait for the first LUN of a pool to become
    /// free.
    pub fn new(luns: u32, units_per_lun: u32, channels: u32, pools: u32) -> BusyAccounting {
        let units = luns * units_per_lun;
        // A LUN may have several channels. It does not wait for any of them to start a command.
        let channel_of = |lun: u32| ChannelId((u64::from(lun) * u64::from(channels) / u64::from(luns)) as u32);
        let of_unit = |unit: u32| {
            let channel = ChannelId((u64::from(unit) * u64::from(channels) / u64::from(units)) as u32);
            ExecUnitTimes { channel, ..ExecUnitTimes::default() }
        };
        BusyAccounting {
            luns: (0..luns).map(|lun| LunTimes { channel: channel_of(lun), ..LunTimes::default() }).collect(),
            units: (0..units).map(of_unit).collect(),
            channels: Table::new(channels, ChannelTimes::default()),
            pools: vec![Sums::default(); pools.min(luns) as usize],
            luns_per_pool: (luns / pools.max(1)).max(1),
            pools_per_lun: pools.div_ceil(luns).max(1),
        }
    }

    /// Adds `per_lun` units to each LUN, which is one unit, for its planes that read independently.
    pub fn with_reading_planes(mut self, per_lun: u32) -> BusyAccounting {
        let luns = self.luns.len() as u32;
        for number in 0..luns * per_lun {
            let channel = self.luns[LunId(number / per_lun)].channel;
            *self.units.entry(ExecUnitId(luns + number)) = ExecUnitTimes { channel, ..ExecUnitTimes::default() };
        }
        self
    }

    /// Starts a command on a LUN without a holder.
    #[inline(always)]
    pub fn start(&mut self, lun: LunId, holder: Holder, now: Time) {
        let book = &mut self.luns[lun];
        debug_assert_eq!(book.holder, Holder::Nobody, "the LUN has a holder");
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

    /// Adds a wait of a unit for power.
    pub fn await_power(&mut self, unit: ExecUnitId, wait: Time) {
        self.units[unit].power_wait += wait;
    }

    /// Returns the times of the operation of a unit of `lun` so far, in which the cells worked for `cell`. It started
    /// at `start`, or with the command that holds the LUN.
    #[inline(always)]
    pub fn turn(&self, unit: ExecUnitId, lun: LunId, (cell, start): (Time, Option<Time>), now: Time) -> OperationTimes {
        let of_lun = &self.luns[lun];
        of_lun.turn(&self.units[unit], start.unwrap_or(of_lun.start), cell, now)
    }

    /// Ends the operation of a unit of `lun`, and also the command if it is the `last` one.
    #[inline(always)]
    pub fn end(&mut self, unit: ExecUnitId, lun: LunId, last: bool, now: Time) {
        self.units[unit].end();
        if !last {
            return;
        }
        let (holder, start) = self.luns[lun].end(now);
        if !self.pools.is_empty() {
            self.count(lun, holder, move |sum| sum.leave(start, now));
        }
    }

    /// Does the same as [`BusyAccounting::turn`] and [`BusyAccounting::end`], with one look-up of the unit and the LUN.
    #[inline(always)]
    pub fn take_turn(&mut self, unit: ExecUnitId, lun: LunId, (cell, last): (Time, bool), now: Time) -> OperationTimes {
        if !self.pools.is_empty() {
            let turn = self.turn(unit, lun, (cell, None), now);
            self.end(unit, lun, last, now);
            return turn;
        }
        let (of_unit, of_lun) = (&mut self.units[unit], &mut self.luns[lun]);
        let turn = of_lun.turn(of_unit, of_lun.start, cell, now);
        of_unit.end();
        if last {
            of_lun.end(now);
        }
        turn
    }

    /// Returns the pool of a LUN, or its first one.
    fn pool_of(&self, lun: LunId) -> u32 {
        lun.0 / self.luns_per_pool * self.pools_per_lun
    }

    /// Changes the sum of all LUNs with a holder in the pool of a LUN, if there is such a sum.
    #[inline(never)]
    fn count(&mut self, lun: LunId, holder: Holder, change: impl FnOnce(&mut Sum)) {
        let pool = self.pool_of(lun);
        let sums = &mut self.pools[(pool / self.pools_per_lun) as usize];
        match holder {
            Holder::Host => change(&mut sums.host),
            Holder::Channel => change(&mut sums.requesting),
            Holder::Nobody | Holder::Gc => {}
        }
    }

    /// Records that a unit of `lun` is queued for its channel: to start a command, or during an operation.
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

    /// Records that a queued unit of `lun` is granted its channel.
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

    /// Records a transfer of an operation of `lun` on its channel until `end`.
    #[inline]
    pub fn carry(&mut self, lun: LunId, now: Time, end: Time) {
        let book = &self.luns[lun];
        if book.holder == Holder::Gc {
            let channel = &mut self.channels[book.channel];
            channel.gc += (end - now).0;
            channel.until = end;
        }
    }

    /// Returns a reading for a transaction that starts to wait for a LUN.
    #[inline]
    pub fn mark(&self, lun: LunId, now: Time) -> Reading {
        let book = &self.luns[lun];
        let mut mark = book.mark(now);
        if book.holder == Holder::Channel {
            mark.gc += self.channels[book.channel].gc_at(now) - book.seen;
        }
        mark
    }

    /// Returns a reading for a transaction that waits for any LUN of the pool of `lun`. All zeros if there are no
    /// pools.
    pub fn mark_all_of(&self, lun: LunId, now: Time) -> ReadingOfAll {
        if self.pools.is_empty() { ReadingOfAll::default() } else { self.mark_all(self.pool_of(lun), now) }
    }

    /// Returns a reading for a transaction that waits for any LUN of a pool.
    pub fn mark_all(&self, pool: u32, now: Time) -> ReadingOfAll {
        let sums = &self.pools[(pool / self.pools_per_lun) as usize];
        ReadingOfAll { host: sums.host.at(now), requesting: sums.requesting.at(now), luns: self.luns_per_pool, pool }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LUN: LunId = LunId(0);

    /// Returns the only execution unit of a LUN.
    fn unit(lun: LunId) -> ExecUnitId {
        ExecUnitId(lun.0)
    }

    fn end(accounting: &mut BusyAccounting, lun: LunId, cell: Time, now: Time) -> OperationTimes {
        let turn = accounting.turn(unit(lun), lun, (cell, None), now);
        accounting.end(unit(lun), lun, true, now);
        turn
    }

    #[test]
    fn a_wait_is_split_by_the_holder_of_the_die() {
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
        // An operation that starts at this time returns the same wait when it ends.
        accounting.start(LUN, Holder::Host, Time(50));
        let turn = end(&mut accounting, LUN, Time(7), Time(60));
        assert_eq!(turn.mark.since(mark, Time(35)), wait);
        assert_eq!((turn.start, turn.bus, turn.cell), (Time(50), Time(3), Time(7)));
    }

    #[test]
    fn a_wait_for_the_channel_is_split_by_its_holder() {
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
        // Half-way through the transfer, then after a following transfer of the host.
        let wait = accounting.mark(LUN, Time(25)).since(mark, Time(15));
        assert_eq!(wait, Wait { gc: Time(15), ..Wait::default() });
        carry(&mut accounting, Holder::Host, 40, 60);
        let wait = Wait { gc: Time(30), channel: Time(20), die: Time(0) };
        assert_eq!(accounting.mark(LUN, Time(60)).since(mark, Time(50)), wait);
        accounting.grant(unit(LUN), LUN, Time(60));
        assert_eq!(accounting.mark(LUN, Time(60)).since(mark, Time(50)), wait);
        // A wait during an operation.
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
    fn a_wait_for_any_lun_is_split_in_proportion_to_the_time_of_all() {
        let mut accounting = BusyAccounting::new(8, 1, 2, 2);
        accounting.start(LunId(0), Holder::Host, Time(0));
        accounting.start(LunId(1), Holder::Host, Time(50));
        accounting.start(LunId(2), Holder::Gc, Time(0));
        // A LUN of the other pool, which does not count for this one.
        accounting.start(LunId(4), Holder::Host, Time(0));
        let mark = accounting.mark_all(0, Time(100));
        end(&mut accounting, LunId(1), Time(0), Time(150));
        accounting.enqueue(ExecUnitId(1), LunId(1), Time(150));
        // Total 4 x 100: 100 + 50 for the host, 50 for the channel, the rest for garbage collection or without room.
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
