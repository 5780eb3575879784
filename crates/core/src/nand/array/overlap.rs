//! Overlapping operations in one unit: the next operation is pipelined after the current one (read cache, cache
//! program), or reads suspend a program or an erase. See docs/model/commands.md.

use super::busy::{BusyTime, add_to, subtract_from};
use super::operation::{Ahead, Beside, Overlap, Suspended};
use super::{Array, Cycles, Kind, LunState, Operation, Outcome, Phase};
use crate::config::DeviceConfig;
use crate::config::advanced::Suspend;
use crate::nand::busy_time::{Holder, OperationTimes, Wait};
use crate::sim::id::{ExecUnitId, LunId};
use crate::sim::table::Table;
use crate::sim::time::Time;

impl Array {
    /// Returns `true` if the cells of a unit work for a program or an erase, and no second operation exists. Another
    /// operation may then overlap with it.
    #[inline]
    pub fn may_overlap(&self, unit: ExecUnitId) -> bool {
        let state = &self.units[unit];
        state.phase == Phase::Cell
            && matches!(state.operation.kind, Kind::Program | Kind::Erase)
            && state.beside == Beside::Nothing
    }

    /// Returns `true` if the next read may start while the data of the current one, or of its planes, leave.
    pub fn can_read_ahead(&self, unit: ExecUnitId) -> bool {
        let state = &self.units[unit];
        let Operation { kind, pages, .. } = state.operation;
        state.beside == Beside::Nothing && state.phase == Phase::Holding && kind == Kind::Read && pages <= 1
    }

    /// Copies the planes whose data leave, so that the planes of the next read can be set before
    /// [`Array::start_ahead`]. The copy's memory is free because no operation is suspended at this time.
    pub fn set_members_aside(&mut self, unit: ExecUnitId) {
        if self.units[unit].operation.members > 1 {
            let members = self.member_places(unit);
            self.resting[members.clone()].copy_from_slice(&self.members[members]);
        }
    }

    /// Returns `true` if the operation of a unit may be suspended at `now`. [`Array::may_overlap`] must hold.
    pub fn may_suspend(&self, unit: ExecUnitId, by: &Suspend, now: Time) -> bool {
        let state = &self.units[unit];
        let allowed = match state.operation.kind {
            Kind::Program => by.program,
            Kind::Erase => by.erase,
            Kind::Read | Kind::CopyBack => false,
        };
        let Some(end) = self.events.time_of(unit.0).filter(|&end| allowed && end > now) else { return false };
        let (cell, done) = (state.operation.cell, state.operation.cell.since(end - now));
        let is_over = by.until < 1.0 && done.0 as f64 > by.until * cell.0 as f64;
        let suspensions = if state.held_back == 0 { 0 } else { self.overlaps[unit].suspensions };
        state.held_back < by.limit && suspensions < by.most && !is_over
    }

    /// Requests an event when the cells of a unit start to work. [`Array::may_overlap`] must hold. Returns `false` if
    /// they already work.
    pub fn await_cells(&mut self, unit: ExecUnitId, now: Time) -> bool {
        let state = &mut self.units[unit];
        let left = self.events.time_of(unit.0).map_or(Time::ZERO, |end| end.since(now));
        let until = left.since(state.cells);
        if until == Time::ZERO {
            return false;
        }
        state.phase = Phase::Coming;
        self.events.set(unit.0, now + until);
        true
    }

    /// Handles the event that [`Array::await_cells`] requested.
    pub(super) fn cells_work(&mut self, unit: ExecUnitId, now: Time) -> Outcome {
        let state = &mut self.units[unit];
        state.phase = Phase::Cell;
        let end = now + state.cells;
        self.events.set(unit.0, end);
        Outcome::CellsWork
    }

    /// Returns `true` if an operation of the unit is suspended.
    #[inline]
    pub fn is_suspended(&self, unit: ExecUnitId) -> bool {
        self.units[unit].beside == Beside::Suspended
    }

    /// Counts that a suspended operation is held back for a read. Returns `false` if it was already held back `limit`
    /// times.
    pub fn hold_back(&mut self, unit: ExecUnitId, limit: u32) -> bool {
        let held_back = &mut self.units[unit].held_back;
        *held_back += 1;
        *held_back <= limit
    }

    /// Queues a busy unit for its channel, to transfer the data of the next program.
    pub fn request_ahead(&mut self, unit: ExecUnitId, rank: u8) {
        self.units[unit].beside = Beside::Requests;
        self.join_channel_line(unit, rank, Cycles::Data);
    }

    /// Returns `true` if a unit is queued for its channel by [`Array::request_ahead`].
    #[inline]
    pub fn requests_ahead(&self, unit: ExecUnitId) -> bool {
        self.units[unit].beside == Beside::Requests
    }

    /// Ends the request of [`Array::request_ahead`], because the channel is granted.
    pub fn end_request_ahead(&mut self, unit: ExecUnitId) {
        self.units[unit].beside = Beside::Nothing;
    }

    /// Turns the request of [`Array::request_ahead`] into a request to start the next command, because the current
    /// operation has ended before the grant.
    pub fn request_start_instead(&mut self, unit: ExecUnitId, lun: LunId, now: Time) {
        self.end_request_ahead(unit);
        self.luns[lun].state = LunState::Requesting;
        if self.is_watched() {
            self.show_enqueue(unit, now);
        }
    }

    /// Starts busy-time accounting of the second operation of a unit, which starts now.
    fn book_other(&mut self, unit: ExecUnitId, now: Time) {
        let (lun, channel) = (self.lun_of_unit(unit), self.channel_of_unit(unit));
        if let Some(accounting) = self.accounting() {
            let (mark, all) = (accounting.mark(lun, now), accounting.mark_all_of(lun, now));
            self.overlaps[unit].other_turn =
                Some(OperationTimes { channel, start: now, mark, all, ..OperationTimes::default() });
        }
    }

    /// Makes the times of the second operation of a unit, after `change`, those of the current operation before it held
    /// the unit.
    fn take_accounts(&mut self, unit: ExecUnitId, change: impl FnOnce(OperationTimes) -> OperationTimes) {
        let Overlap { head, other_turn, .. } = &mut self.overlaps[unit];
        *head = other_turn.take().map(change);
    }

    /// Transfers the command of the operation that was built at [`Spot::Ahead`], and the data of a program. The unit
    /// must have been granted its channel. It continues with this operation when the current one has ended.
    ///
    /// [`Spot::Ahead`]: super::Spot::Ahead
    pub fn start_ahead(&mut self, unit: ExecUnitId, now: Time) {
        self.book_other(unit, now);
        let Operation { kind, plane, members, command, data, cell, .. } = self.overlaps[unit].other;
        let data = if kind == Kind::Program { data } else { Time::ZERO };
        // Watchers are shown the current operation of the unit.
        let watched = self.is_watched();
        if watched {
            self.swap_operations(unit);
        }
        let moved = if command + data > Time::ZERO {
            self.seize(unit, (kind, plane), now, members, command, data)
        } else {
            now
        };
        let mut begin = moved;
        self.add_busy(unit, now, moved);
        if kind == Kind::Read {
            add_to(&mut self.time_of_die(plane).cell, cell);
            self.add_busy(unit, moved, moved + cell);
        } else {
            begin = begin.max(self.events.time_of(unit.0).unwrap_or(now));
        }
        if self.probe().is_some() {
            self.show_cells(unit, begin, begin + cell);
        }
        if watched {
            self.swap_operations(unit);
        }
        self.units[unit].beside = Beside::Ahead;
        if kind == Kind::Read && members.max(self.units[unit].operation.members) > 1 {
            let members = self.member_places(unit);
            self.members[members.clone()].swap_with_slice(&mut self.resting[members]);
        }
        self.stamp_release(unit);
        self.overlaps[unit].ahead = Some(Ahead { start: now, moved });
    }

    fn swap_operations(&mut self, unit: ExecUnitId) {
        std::mem::swap(&mut self.units[unit].operation, &mut self.overlaps[unit].other);
    }

    /// Returns `true` if a unit that has just ended an operation has a pipelined one to continue with.
    #[inline]
    pub fn has_ahead(&self, unit: ExecUnitId) -> bool {
        self.units[unit].beside == Beside::Ahead
    }

    /// Continues with the pipelined operation after the current one has ended.
    pub fn continue_ahead(&mut self, unit: ExecUnitId, holder: Holder, now: Time) {
        let Some(Ahead { start, moved }) = self.overlaps[unit].ahead.take() else { return };
        let Operation { kind, plane, cell: work, .. } = self.overlaps[unit].other;
        let (end, cells) = if kind == Kind::Read {
            let end = moved + work;
            (end.max(now), end.since(now))
        } else {
            let begin = moved.max(now);
            add_to(&mut self.time_of_die(plane).cell, work);
            self.add_busy(unit, begin, begin + work);
            (begin + work, work)
        };
        // Times up to now: the transfer, the cells of a read, then the wait for the previous operation.
        let bus = moved.min(now) - start;
        let cell = if kind == Kind::Read { now.since(moved).min(work) } else { Time::ZERO };
        let wait = Wait { die: now - start - bus - cell, ..Wait::default() };
        self.take_accounts(unit, |turn| OperationTimes { bus, cell, wait, ..turn });
        self.units[unit].held_back = 0;
        if kind == Kind::Read {
            self.take_members_back(unit);
        }
        self.make_current(unit, cells, holder, now);
        self.events.set(unit.0, end);
    }

    fn take_members_back(&mut self, unit: ExecUnitId) {
        if self.overlaps[unit].other.members > 1 {
            let members = self.member_places(unit);
            self.members[members.clone()].copy_from_slice(&self.resting[members]);
        }
    }

    /// Makes the second operation of an idle unit its current one. The cells have `cells` left to work.
    fn make_current(&mut self, unit: ExecUnitId, cells: Time, holder: Holder, now: Time) {
        let lun = self.lun_of_unit(unit);
        let state = &mut self.units[unit];
        (state.operation, state.phase) = (self.overlaps[unit].other, Phase::Cell);
        (state.held_since, state.cells, state.beside) = (now, cells, Beside::Nothing);
        let state = &mut self.luns[lun];
        state.active += 1;
        state.state = LunState::Busy;
        if let Some(accounting) = self.accounting_mut() {
            accounting.start(lun, holder, now);
        }
    }

    /// Suspends the cells of a unit. The unit takes a read at its next event.
    pub fn suspend(&mut self, unit: ExecUnitId, by: &Suspend, now: Time) {
        let lun = self.lun_of_unit(unit);
        let end = self.events.time_of(unit.0).unwrap_or(now);
        let left = end - now;
        let state = &mut self.units[unit];
        state.cells = Time(state.cells.0 - left.0);
        let (worked, is_first) = (state.cells, state.held_back == 0);
        let plane = state.operation.plane;
        self.overlaps[unit].other = state.operation;
        let held = now - state.held_since - state.cells;
        (state.phase, state.held_since, state.beside) = (Phase::Suspending, now, Beside::Suspended);
        let time = self.time_of_die(plane);
        subtract_from(&mut time.cell, left);
        time.register_held += held;
        self.cut_busy(unit, now);
        let turn = self.book_turn(unit, lun, now);
        let turn = turn.map(|turn| self.book_head(unit).map_or(turn, |head| head.then(turn)));
        self.add_suspended(unit, lun, now);
        self.set_members_aside(unit);
        let overlap = &mut self.overlaps[unit];
        overlap.suspended = Some(Suspended { left: left + by.lost.time().min(worked), since: now });
        overlap.suspensions = if is_first { 1 } else { overlap.suspensions + 1 };
        if turn.is_some() {
            (overlap.other_turn, overlap.head) = (turn, None);
        }
        let planes = self.physical_planes(unit);
        if let Some(probe) = self.probe_mut() {
            probe.cut(planes, now);
        }
        self.events.set(unit.0, now + by.latency.time());
    }

    fn member_places(&self, unit: ExecUnitId) -> std::ops::Range<usize> {
        let planes = self.planes_of_unit(unit);
        planes.start as usize..planes.end as usize
    }

    /// Ends the holding time of a suspended operation in the accounting of its LUN. The host holds the LUN until the
    /// read starts.
    fn add_suspended(&mut self, unit: ExecUnitId, lun: LunId, now: Time) {
        if let Some(accounting) = self.accounting_mut() {
            accounting.end(unit, lun, true, now);
            accounting.start(lun, Holder::Host, now);
        }
    }

    /// Handles the end of the suspension latency: the cells of a unit are suspended.
    pub(super) fn suspended(&mut self, unit: ExecUnitId, now: Time) -> Outcome {
        let lun = self.lun_of_unit(unit);
        let state = &mut self.units[unit];
        state.phase = Phase::Idle;
        let (plane, held) = (state.operation.plane, now - state.held_since);
        self.time_of_die(plane).register_held += held;
        let state = &mut self.luns[lun];
        state.active -= 1;
        state.state = LunState::Suspended;
        if let Some(accounting) = self.accounting_mut() {
            accounting.end(unit, lun, true, now);
        }
        Outcome::Suspended
    }

    /// Marks a LUN as having a suspended operation, so that it takes a read.
    pub fn set_suspended(&mut self, lun: LunId) {
        self.luns[lun].state = LunState::Suspended;
    }

    /// Resumes the suspended operation of a unit.
    pub fn resume_suspended(&mut self, unit: ExecUnitId, by: &Suspend, holder: Holder, now: Time) {
        let Some(Suspended { left, since }) = self.overlaps[unit].suspended.take() else {
            return;
        };
        self.take_accounts(unit, |turn| {
            let wait = Wait { die: turn.wait.die + (now - since), ..turn.wait };
            OperationTimes { wait, ..turn }
        });
        self.take_members_back(unit);
        let plane = self.overlaps[unit].other.plane;
        add_to(&mut self.time_of_die(plane).cell, left);
        self.make_current(unit, left, holder, now);
        let begin = now + by.resume.time();
        self.resume_busy(unit, now, begin, begin + left);
        if self.probe().is_some() {
            self.show_cells(unit, begin, begin + left);
        }
        self.events.set(unit.0, begin + left);
    }

    /// Clears the overlap state of a unit before an operation starts, except that of a suspended one.
    #[inline]
    pub(super) fn clear_overlap(&mut self, unit: ExecUnitId) {
        let state = &mut self.units[unit];
        if state.beside != Beside::Suspended {
            state.held_back = 0;
        }
        if self.is_watched()
            && let Some(overlap) = self.overlaps.get_mut(unit)
        {
            overlap.head = None;
        }
    }

    /// Returns the times of a unit's operation before it held the unit, or before it was suspended.
    #[inline]
    pub fn book_head(&self, unit: ExecUnitId) -> Option<&OperationTimes> {
        self.overlaps.get(unit)?.head.as_ref()
    }

    /// Returns the part after `at` of the cell time of a unit's pipelined read, which is counted in advance.
    pub(super) fn cells_ahead(&self, unit: ExecUnitId, at: Time) -> Time {
        match self.overlaps.get(unit) {
            Some(Overlap { other: Operation { kind: Kind::Read, cell, .. }, ahead: Some(ahead), .. }) => {
                (ahead.moved + *cell).since(at).min(*cell)
            }
            _ => Time::ZERO,
        }
    }

    // Busy time of LUNs whose operations overlap.

    /// Creates the busy times of a device's LUNs; empty if their operations cannot overlap.
    pub(super) fn busy_times(device: &DeviceConfig, luns: u32) -> Table<LunId, BusyTime> {
        let overlap = device.overlaps() || device.nand.advanced.interleave;
        Table::new(if overlap { luns } else { 0 }, BusyTime::default())
    }

    /// Records that the LUN of a unit is busy from `from` to `to`.
    #[inline(always)]
    pub(super) fn add_busy(&mut self, unit: ExecUnitId, from: Time, to: Time) {
        if !self.busy.is_empty() {
            let lun = self.lun_of_unit(unit);
            self.busy[lun].book(from, to);
        }
    }

    /// Records that the LUN of a unit, whose cells resume, is busy from `from` to `to`.
    pub(super) fn resume_busy(&mut self, unit: ExecUnitId, now: Time, from: Time, to: Time) {
        let lun = self.lun_of_unit(unit);
        self.busy[lun].resume(now, from, to);
    }

    /// Removes the recorded time after `at` for the LUN of a unit, whose cells are suspended.
    pub(super) fn cut_busy(&mut self, unit: ExecUnitId, at: Time) {
        let lun = self.lun_of_unit(unit);
        self.busy[lun].cut(at);
    }

    /// Collects the busy time of each LUN up to `at`, in picoseconds. The result is empty if operations cannot overlap.
    /// No later event may have been processed. See [`Array::time_until`] for phases in progress at
    /// [`Array::reset_times`].
    pub fn busy_until(&self, at: Time, luns: &mut Vec<i64>) {
        luns.clear();
        luns.extend(self.busy.iter().map(|busy| busy.at(at)));
    }

    /// Resets the busy times to zero.
    pub(super) fn reset_busy(&mut self) {
        self.busy.iter_mut().for_each(|busy| busy.booked = Time::ZERO);
    }
}
