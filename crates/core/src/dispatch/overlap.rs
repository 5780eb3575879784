//! Overlapping operations of one execution unit: the next operation in the cache register, and reads that suspend one.

use super::join::{bind_beside, class_of, join_at_work, join_planes_for};
use super::next::{next_for, take_next};
use super::plane_reads::reads_a_page;
use super::pool_writes::{any_plane_is_idle, pool_before};
use super::targets::{Address, address_of, next_write, takes};
use super::waits::report_waits;
use super::{Binder, Dispatch, Parts, View};
use crate::nand::array::{self, Operation, Spot};
use crate::nand::busy_time::Holder;
use crate::sim::id::{ExecUnitId, LunId, PlaneId, Ppn, TransactionId};
use crate::sim::time::Time;
use crate::work::{Kind, Task, Transactions};

impl Dispatch {
    /// Records the time of a host read.
    #[inline]
    pub(crate) fn note_host_read(&mut self, now: Time) {
        if self.overlapping.program {
            self.overlapping.quiet_from = now.later(self.overlapping.quiet);
        }
    }

    /// Returns `true` if the time of the last host read is needed.
    #[inline]
    pub(crate) fn remembers_host_reads(&self) -> bool {
        self.overlapping.program
    }

    /// Clears the time of the last host read, because the device has been idle since. A loaded device has none either.
    pub(crate) fn forget_host_reads(&mut self) {
        self.overlapping.quiet_from = Time::ZERO;
    }
}

/// Overlaps the next transaction of a busy LUN with the current operation, if possible. Execution units are LUNs here
/// (config/check.rs).
#[inline]
pub(crate) fn overlap_next(b: &mut impl Binder, lun: LunId) {
    let unit = ExecUnitId(lun.0);
    // Usually no transaction waits, or an operation overlaps already.
    if b.view().array.may_overlap(unit)
        && let Some((rank, id)) = next_for(b, lun)
    {
        overlap_with(b, unit, rank, id);
    }
}

/// Suspends the operation of a unit for a read if its cells work. Otherwise requests an event when they start to work.
fn suspend(b: &mut impl Binder, unit: ExecUnitId) {
    let Parts { dispatch, array, now, .. } = b.parts();
    if !array.await_cells(unit, now) {
        dispatch.suspended[unit] = std::mem::replace(&mut dispatch.running[unit], TransactionId::NONE);
        array.suspend(unit, &dispatch.overlapping.suspend, now);
    }
}

/// Returns `true` if host writes may go to the block that a unit programs. They never go to blocks of copies, unless
/// host writes and copies share their frontiers.
#[inline]
fn writes_may_follow(View { dispatch, array, .. }: View, unit: ExecUnitId) -> bool {
    let overlapping = &dispatch.overlapping;
    overlapping.program && (overlapping.shared || !array.operation(unit).class.is_collecting())
}

/// Returns `true` if reads may suspend other operations now: not if host writes wait for room and go first.
#[inline]
pub(super) fn reads_may_suspend(View { dispatch, buffer, .. }: View) -> bool {
    let writes_wait = || buffer.is_some_and(|buffer| buffer.waiting() > 0);
    !(dispatch.overlapping.suspend.writes_first && writes_wait())
}

/// Overlaps `id`, the next transaction of a busy LUN, with the current operation, if possible.
fn overlap_with(b: &mut impl Binder, unit: ExecUnitId, rank: u8, id: TransactionId) {
    let view = b.view();
    match view.transactions[id].kind {
        Kind::HostRead | Kind::ReadAhead
            if reads_may_suspend(view)
                && view.array.may_suspend(unit, &view.dispatch.overlapping.suspend, view.now) =>
        {
            suspend(b, unit);
        }
        Kind::Write if writes_may_follow(view, unit) && follows(b, unit, rank, id) => {
            let Parts { array, tasks, now, .. } = b.parts();
            if array.has_channel(unit, now) {
                return program_ahead(b, unit, rank, id);
            }
            array.request_ahead(unit, rank);
            tasks.push(Task::Grant(array.channel_of_unit(unit)));
        }
        _ => {}
    }
}

/// Returns `true` if the cache register can take the write `id`, and the writes queued for the other planes of the
/// running program. They must fill a later page of the same blocks. Pooled writes are taken only if no plane is idle.
fn follows(b: &impl Binder, unit: ExecUnitId, rank: u8, id: TransactionId) -> bool {
    let view = b.view();
    let View { dispatch, transactions, array, .. } = view;
    if array.operation(unit).kind != array::Kind::Program {
        return false;
    }
    let planes = array.planes_at_work(unit);
    let lun = array.lun_of_unit(unit);
    let pool = pool_before(view, lun, id);
    let is_pooled = pool.is_some();
    let is_there = if let Some(pool) = pool {
        dispatch.pool.of_plane[array.operation(unit).plane] == pool && pool_fills(b, planes.clone())
    } else {
        planes.clone().any(|(plane, _)| plane == transactions[id].plane)
    };
    is_there
        && planes.clone().all(|(plane, ppn)| {
            // A scheduler may have picked a write that is not the first of its plane.
            let is_own = !is_pooled && plane == transactions[id].plane;
            let waiting = if is_own { id } else { dispatch.waiting.first(lun, plane, rank) };
            let is_next = if is_pooled {
                waiting.is_none()
            } else {
                waiting.is_some() && transactions[waiting].kind == Kind::Write && transactions[waiting].plane == plane
            };
            let (block, page) = address_of(view.ftl, ppn, array::Kind::Program);
            let follows = |(next_block, next_page): Address| next_block == block && next_page > page;
            is_next
                && takes(view, plane, waiting)
                && next_write(view.ftl, plane, class_of(view, plane, waiting)).is_some_and(follows)
        })
}

/// Returns `true` if the pools of these planes have writes for a program in each of them, no idle plane takes them, and
/// no host read has arrived for a while.
fn pool_fills(b: &impl Binder, planes: impl Iterator<Item = (PlaneId, Ppn)> + Clone) -> bool {
    let View { dispatch, transactions, now, .. } = b.view();
    let pool_of = |plane| dispatch.pool.of_plane[plane];
    let fills = |(plane, _)| {
        let sharing = planes.clone().filter(|&(other, _)| pool_of(other) == pool_of(plane)).count() as u32;
        let needed = sharing * dispatch.units_per_program;
        dispatch.pool_count(transactions, plane, needed) == needed
    };
    let is_quiet = now >= dispatch.overlapping.quiet_from;
    is_quiet && !any_plane_is_idle(b) && (planes.clone().count() == 1 || planes.clone().all(fills))
}

/// Loads the data of the next program while the cells work for the current one.
fn program_ahead(b: &mut impl Binder, unit: ExecUnitId, rank: u8, id: TransactionId) {
    let Parts { dispatch, tasks, .. } = b.parts();
    let holds = dispatch.holds_to_bind(tasks);
    bind_ahead(b, unit, rank, id);
    if holds {
        let Parts { dispatch, tasks, .. } = b.parts();
        dispatch.release_held(tasks);
    }
}

fn bind_ahead(b: &mut impl Binder, unit: ExecUnitId, rank: u8, id: TransactionId) {
    let Parts { dispatch, transactions, array, .. } = b.parts();
    let lun = array.lun_of_unit(unit);
    let lead = array.operation(unit).plane;
    let planes = array.planes_at_work(unit).count() as u32;
    if id == dispatch.first_of_pool(lead) {
        dispatch.take_from_pool(transactions, lead);
        b.parts().ftl.allocation.took(lead);
    } else {
        take_next(b, lun, rank, id);
    }
    if !bind_beside(b, id, rank, Spot::Ahead(unit)) {
        return;
    }
    if planes > 1 {
        join_at_work(b, unit, rank, id);
    }
    begin_ahead(b, unit, id);
}

fn begin_ahead(b: &mut impl Binder, unit: ExecUnitId, id: TransactionId) {
    let Parts { dispatch, array, now, .. } = b.parts();
    dispatch.ahead[unit] = id;
    let Operation { kind, members, .. } = *array.draft(Spot::Ahead(unit));
    array.note_merged(kind, 1, members);
    array.start_ahead(unit, now);
    if array.probe().is_some() {
        let operation = *array.draft(Spot::Ahead(unit));
        report_waits(b, id, &operation);
    }
}

/// Loads the next program of a unit that has been granted its channel for this purpose.
pub(super) fn ahead_granted(b: &mut impl Binder, unit: ExecUnitId) {
    b.parts().array.end_request_ahead(unit);
    let lun = b.view().array.lun_of_unit(unit);
    if let Some((rank, id)) = next_for(b, lun)
        && b.view().array.may_overlap(unit)
        && b.view().transactions[id].kind == Kind::Write
        && follows(b, unit, rank, id)
    {
        return program_ahead(b, unit, rank, id);
    }
    // A read that was queued in the meantime goes first.
    overlap_next(b, lun);
}

/// Starts the next read of a unit when the data of a read, or of one of its planes, leave.
#[inline]
pub(super) fn read_ahead(b: &mut impl Binder, unit: ExecUnitId) {
    let array = b.view().array;
    let lun = array.lun_of_unit(unit);
    if array.can_read_ahead(unit)
        && let Some((rank, id)) = next_for(b, lun)
        && reads_a_page(&b.view().transactions[id])
    {
        begin_read_ahead(b, lun, unit, rank, id);
    }
}

fn begin_read_ahead(b: &mut impl Binder, lun: LunId, unit: ExecUnitId, rank: u8, id: TransactionId) {
    take_next(b, lun, rank, id);
    if !bind_beside(b, id, rank, Spot::Ahead(unit)) {
        return;
    }
    b.parts().array.set_members_aside(unit);
    join_planes_for(b, unit, rank, id, Spot::Ahead(unit));
    begin_ahead(b, unit, id);
}

pub(super) fn holder_of(transactions: &Transactions, id: TransactionId) -> Holder {
    if transactions[id].class.is_collecting() { Holder::Gc } else { Holder::Host }
}

/// Resumes the suspended operation of a unit.
pub(super) fn resume_suspended(b: &mut impl Binder, unit: ExecUnitId) {
    let Parts { dispatch, transactions, array, now, .. } = b.parts();
    let id = std::mem::replace(&mut dispatch.suspended[unit], TransactionId::NONE);
    dispatch.running[unit] = id;
    array.resume_suspended(unit, &dispatch.overlapping.suspend, holder_of(transactions, id), now);
    // A write that was queued in the meantime may use the cache register.
    let lun = array.lun_of_unit(unit);
    overlap_next(b, lun);
}
