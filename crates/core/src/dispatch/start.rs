//! Start of operations: a LUN that takes commands starts the next transaction when its channel is granted.
//!
//! A transaction is bound at that time, and not earlier. If binding queues operations of other LUNs, those are notified
//! afterwards.

use super::join::{begin, level, start_merged};
use super::next::{choose_own, next_for, next_of, picks_at_work, take_next};
use super::overlap::{ahead_granted, holder_of, overlap_next, read_ahead, reads_may_suspend, resume_suspended};
use super::{Binder, Dispatch, Parts, View};
use crate::nand::array::{self, Array, Cycles, LunState, Spot};
use crate::sim::id::{ChannelId, ExecUnitId, LunId, TransactionId};
use crate::sim::time::Time;
use crate::work::{Kind, Task, Tasks, Transaction};

impl Dispatch {
    /// Holds LUNs back if binding may queue other operations. Returns `true` if the caller has to release them.
    #[inline(always)]
    pub(super) fn holds_to_bind(&self, tasks: &mut Tasks) -> bool {
        self.binding_sets_off && tasks.hold_unless_held()
    }
}

/// Adds a transaction to the queue of its plane, and notifies the LUN if that could change what the LUN does.
#[inline]
pub(crate) fn enqueue(b: &mut impl Binder, id: TransactionId) {
    let Parts { dispatch, transactions, array, .. } = b.parts();
    let transaction = &mut transactions[id];
    transaction.order = dispatch.orders;
    dispatch.orders += 1;
    let lun = array.lun_of(transaction.plane);
    let rank = dispatch.ranks[transaction.class as usize];
    let queue = dispatch.queue_of(transaction);
    dispatch.waiting.push(lun, queue, rank, transactions, id);
    if array.is_watched() {
        b.show_queued(id, lun);
    }
    let View { dispatch, array, .. } = b.view();
    let state = array.state(lun);
    if state == LunState::Busy && dispatch.waiting.first(lun, queue, rank) != id && !picks_at_work(b, lun, id) {
        return; // A later transaction of a queue does not affect a busy LUN.
    }
    let Parts { dispatch, tasks, .. } = b.parts();
    if tasks.holds() {
        tasks.hold_back(lun);
    } else if state == LunState::Idle || dispatch.looks_at_work {
        tasks.push(Task::Start(lun));
    }
}

/// Does the same as [`enqueue`], as the last action of a handler. If nothing waits for the LUN, which is idle, and for
/// its channel, the transaction starts at once, as it would in the next task.
#[inline(always)]
pub(crate) fn enqueue_last(b: &mut impl Binder, id: TransactionId) {
    let Parts { dispatch, transactions, array, tasks, now, .. } = b.parts();
    let transaction = &mut transactions[id];
    let unit = array.unit_of(transaction.plane);
    let lun = array.lun_of_unit(unit);
    let is_alone = dispatch.starts_alone
        && array.state(lun) == LunState::Idle
        && dispatch.waiting.rank_of_first(lun).is_none()
        && !(tasks.any_new() || tasks.holds());
    let has_channel = is_alone && array.has_channel(unit, now);
    if !is_alone || (!has_channel && needs_channel(array, transaction)) {
        return enqueue(b, id);
    }
    transaction.order = dispatch.orders;
    dispatch.orders += 1;
    let rank = dispatch.ranks[transaction.class as usize];
    array.set_binding(lun);
    if array.is_watched() {
        b.show_queued(id, lun);
    }
    if b.bind(id, rank, Spot::Unit(unit)) {
        return lead(b, lun, rank, id, unit);
    }
    // What binding has queued may start instead.
    let first = ExecUnitId(lun.0 * b.view().array.units_per_lun());
    end_start(b, first, lun, has_channel);
}

/// Starts another transaction of a LUN after one that did not start, or sets the LUN idle.
#[inline(never)]
fn end_start(b: &mut impl Binder, unit: ExecUnitId, lun: LunId, has_channel: bool) {
    let next = if has_channel { next_for(b, lun) } else { None };
    if !next.is_some_and(|(rank, id)| start_from(b, lun, rank, id, has_channel)) {
        rest(b, unit, lun);
        start_later(b, lun, has_channel);
    }
}

/// Starts a LUN in the next task if it could not start without its channel.
#[inline(always)]
fn start_later(b: &mut impl Binder, lun: LunId, has_channel: bool) {
    let Parts { dispatch, tasks, .. } = b.parts();
    if !has_channel || dispatch.paces {
        // The transaction needed no channel and no operation. The next one may need the channel.
        tasks.push(Task::Start(lun));
    }
}

/// Notifies a LUN of transactions that wait for it.
#[inline(always)]
pub(crate) fn notify(b: &mut impl Binder, lun: LunId) {
    let View { dispatch, array, .. } = b.view();
    match array.state(lun) {
        LunState::Idle => start_idle(b, lun),
        LunState::Busy if dispatch.overlapping.any && array.takes_reads(lun) => read_beside(b, lun),
        LunState::Busy if dispatch.overlapping.any => overlap_next(b, lun),
        LunState::Requesting if dispatch.reconsiders => reconsider(b, lun),
        _ => {}
    }
}

/// Lets a LUN take commands again, unless some of its execution units still work. Returns `true` if it does.
#[inline(always)]
pub(crate) fn set_idle(b: &mut impl Binder, lun: LunId) -> bool {
    let Parts { dispatch, array, .. } = b.parts();
    let is_idle = array.set_idle(lun);
    if is_idle {
        dispatch.note_idle(array, lun, true);
    }
    is_idle
}

/// Starts the first transaction that waits for an idle LUN, or queues the LUN for its channel.
#[inline(always)]
pub(crate) fn start_idle(b: &mut impl Binder, lun: LunId) {
    if let Some((rank, id)) = next_for(b, lun) {
        start_next(b, lun, rank, id);
    } else if b.view().dispatch.paces {
        offer_to_gc(b, lun);
    }
}

#[inline(never)]
fn start_next(b: &mut impl Binder, lun: LunId, rank: u8, id: TransactionId) {
    start_or_request(b, lun, rank, id);
}

/// Lets garbage collection use a LUN without waiting transactions, with `gc.pace = "proportional"`.
#[cold]
fn offer_to_gc(b: &mut impl Binder, lun: LunId) {
    let Parts { dispatch, array, tasks, .. } = b.parts();
    let holds = dispatch.merging.any && tasks.hold_unless_held();
    let planes = array.planes_of(lun);
    tasks.push(Task::CollectIdle(planes.start, planes.end));
    if holds {
        tasks.push(Task::Release);
    }
}

/// Restarts a LUN that waits for its channel with a more urgent transaction, if one was queued in the meantime.
fn reconsider(b: &mut impl Binder, lun: LunId) {
    let Some((rank, id)) = choose_own(b, lun) else { return };
    let Parts { dispatch, array, now, .. } = b.parts();
    if rank < array.rank(lun) {
        array.withdraw(lun, now);
        dispatch.note_idle(array, lun, true);
        start_or_request(b, lun, rank, id);
    }
}

/// Returns `true` for a write that starts with the read of the sectors that it keeps (`copy_back_modify`).
#[inline]
fn is_fused(transaction: &Transaction) -> bool {
    transaction.kind == Kind::Write && !transaction.complete
}

/// Returns `true` if the first step of a transaction needs the channel.
#[inline]
fn needs_channel(array: &Array, transaction: &Transaction) -> bool {
    let timing = array.timing();
    match transaction.kind {
        Kind::GcRead | Kind::CopyBack if array.holds_channels() => true,
        Kind::HostRead
        | Kind::ReadAhead
        | Kind::RmwRead
        | Kind::RebuildRead
        | Kind::GcRead
        | Kind::CopyBack
        | Kind::MapRead
        | Kind::MergeRead => timing.read_command > Time::ZERO,
        Kind::Erase => timing.erase_command > Time::ZERO,
        Kind::Write if is_fused(transaction) => timing.read_command > Time::ZERO,
        _ => true,
    }
}

/// Starts `id`, the next transaction of a LUN that takes commands, or queues the LUN for its channel.
#[inline(always)]
pub(super) fn start_or_request(b: &mut impl Binder, lun: LunId, rank: u8, id: TransactionId) {
    let Parts { dispatch, transactions, array, now, .. } = b.parts();
    let unit = ExecUnitId(lun.0 * array.units_per_lun());
    let has_channel = array.has_channel(unit, now);
    if has_channel || !needs_channel(array, &transactions[id]) {
        return start_or_rest(b, unit, lun, Some((rank, id)), has_channel);
    }
    // A write without all its data is fused with the read of the rest.
    let is_program = array::Kind::from(transactions[id].kind) == array::Kind::Program && !is_fused(&transactions[id]);
    let cycles = if is_program { Cycles::Data } else { Cycles::Command };
    array.request_start(lun, rank, cycles, now);
    dispatch.note_idle(array, lun, false);
    let channel = array.channel_of_unit(unit);
    grant(b, channel);
}

/// Grants a channel to the execution units that wait for it, until one of them takes it.
pub(crate) fn grant(b: &mut impl Binder, channel: ChannelId) {
    loop {
        let Parts { array, now, .. } = b.parts();
        let Some(unit) = array.grant(channel, now) else { return };
        granted(b, unit);
        let tasks = b.parts().tasks;
        if tasks.any_new() {
            return tasks.push(Task::Grant(channel));
        }
    }
}

/// Starts or continues an operation of an execution unit that has been granted its channel.
fn granted(b: &mut impl Binder, unit: ExecUnitId) {
    let array = b.view().array;
    let lun = array.lun_of_unit(unit);
    if (array.state(lun) != LunState::Requesting) | array.reads_in_plane(unit) {
        return if array.requests_ahead(unit) { ahead_granted(b, unit) } else { resume(b, unit) };
    }
    // The grant is for the rank of the request. A more urgent transaction that was queued later starts after this one,
    // because this operation has held the LUN since the request.
    let rank = array.rank(lun);
    let next = next_of(b, lun, rank);
    start_or_rest(b, unit, lun, next, true);
}

/// Continues an operation that needs the channel. Returns `false` if its execution unit has to wait for the channel.
#[inline(always)]
pub(crate) fn continue_at_once(b: &mut impl Binder, unit: ExecUnitId) -> bool {
    let View { dispatch, array, now, .. } = b.view();
    let is_free = !dispatch.overlapping.read && array.has_channel(unit, now);
    if is_free {
        resume(b, unit);
    }
    is_free
}

/// Continues an operation that needs the channel, or queues its execution unit for the channel.
#[inline(never)]
pub(crate) fn continue_operation(b: &mut impl Binder, unit: ExecUnitId, rank: u8) {
    let Parts { array, now, .. } = b.parts();
    let channel = array.channel_of_unit(unit);
    if array.has_channel(unit, now) {
        return resume(b, unit);
    }
    array.request_more(unit, rank, now);
    grant(b, channel);
}

/// Continues an operation that has been granted its channel.
#[inline(always)]
fn resume(b: &mut impl Binder, unit: ExecUnitId) {
    if b.view().dispatch.overlapping.read {
        read_ahead(b, unit);
    }
    let Parts { array, now, .. } = b.parts();
    array.resume(unit, now);
}

/// Starts `next` on a LUN, or another waiting transaction if there is no `next`. Sets the LUN idle if none can start.
#[inline(always)]
fn start_or_rest(
    b: &mut impl Binder,
    unit: ExecUnitId,
    lun: LunId,
    next: Option<(u8, TransactionId)>,
    has_channel: bool,
) {
    let Parts { dispatch, tasks, .. } = b.parts();
    let holds = dispatch.holds_to_bind(tasks);
    let has_started = start(b, lun, next, has_channel);
    if !has_started {
        rest(b, unit, lun);
    }
    let Parts { dispatch, tasks, .. } = b.parts();
    if holds {
        dispatch.release_held(tasks);
    }
    if !has_started {
        start_later(b, lun, has_channel);
    }
}

/// Sets a LUN idle that found nothing to start, or resumes its suspended operation.
#[cold]
fn rest(b: &mut impl Binder, unit: ExecUnitId, lun: LunId) {
    let View { dispatch, array, .. } = b.view();
    if dispatch.overlapping.any && array.is_suspended(unit) && !array.is_at_work(lun) {
        return resume_suspended(b, unit);
    }
    set_idle(b, lun);
}

/// Starts the next command of a LUN, with `next` if it is given. Returns `false` if no transaction can start.
#[inline(always)]
fn start(b: &mut impl Binder, lun: LunId, next: Option<(u8, TransactionId)>, has_channel: bool) -> bool {
    let Parts { dispatch, array, .. } = b.parts();
    // Operations that binding queues must not start the LUN a second time.
    array.set_binding(lun);
    dispatch.note_idle(array, lun, false);
    let next = if next.is_some() { next } else { next_for(b, lun) };
    next.is_some_and(|(rank, id)| start_from(b, lun, rank, id, has_channel))
}

/// Starts a LUN on `id`, or on a later transaction if that cannot start or needs no operation.
#[inline(never)]
fn start_from(b: &mut impl Binder, lun: LunId, mut rank: u8, mut id: TransactionId, has_channel: bool) -> bool {
    let overlaps = b.view().dispatch.overlapping.any;
    loop {
        if overlaps && !may_start(b, lun, id) {
            return false;
        }
        take_next(b, lun, rank, id);
        if start_one(b, lun, rank, id) {
            if overlaps && b.view().array.takes_reads(lun) {
                b.parts().tasks.push(Task::Start(lun));
            } else if overlaps {
                overlap_next(b, lun);
            }
            return true;
        }
        if !has_channel {
            return false;
        }
        let Some(next) = next_for(b, lun) else { return false };
        (rank, id) = next;
    }
}

/// Returns `true` for reads of the host and reads ahead, for which other operations are suspended.
#[inline]
fn is_for_host(transaction: &Transaction) -> bool {
    matches!(transaction.kind, Kind::HostRead | Kind::ReadAhead)
}

/// Returns `true` if a transaction may start on a LUN that takes commands. While planes read, only reads of other
/// planes may, and while an operation is suspended, only reads of the host.
fn may_start(b: &impl Binder, lun: LunId, id: TransactionId) -> bool {
    let View { dispatch, transactions, array, .. } = b.view();
    let has_idle_plane = || dispatch.reading_unit_of(&transactions[id]).is_some_and(|unit| array.unit_is_idle(unit));
    let waits_for_suspended = array.is_suspended(ExecUnitId(lun.0)) && !is_for_host(&transactions[id]);
    !waits_for_suspended && (!array.is_at_work(lun) || has_idle_plane())
}

/// Starts `id` on a LUN, together with operations of other planes or dies. Returns `false` if it cannot start.
#[inline(always)]
fn start_one(b: &mut impl Binder, lun: LunId, rank: u8, id: TransactionId) -> bool {
    if b.view().dispatch.merging.blind {
        level(b, id, rank);
    }
    let View { dispatch, transactions, array, .. } = b.view();
    let unit = dispatch.unit_of(array, &transactions[id]);
    if !b.bind(id, rank, Spot::Unit(unit)) {
        return false;
    }
    lead(b, lun, rank, id, unit);
    true
}

/// Starts the command of a LUN with `id`, which was bound, and with the operations that can join it.
#[inline(always)]
fn lead(b: &mut impl Binder, lun: LunId, rank: u8, id: TransactionId, unit: ExecUnitId) {
    let View { dispatch, transactions, .. } = b.view();
    // Usually nothing else waits.
    if dispatch.merging.any && dispatch.others_wait(lun, transactions[id].plane, rank) {
        start_merged(b, lun, rank, id, unit);
    } else {
        begin(b, unit, id);
    }
}

/// Continues a unit whose operation has ended with an overlapping one. Returns `false` if there is none.
pub(crate) fn continue_overlapping(b: &mut impl Binder, unit: ExecUnitId, lun: LunId) -> bool {
    if b.view().array.reads_in_plane(unit) {
        return continue_reads(b, lun);
    }
    let Parts { dispatch, transactions, array, now, .. } = b.parts();
    if array.has_ahead(unit) {
        let id = std::mem::replace(&mut dispatch.ahead[unit], TransactionId::NONE);
        dispatch.running[unit] = id;
        array.continue_ahead(unit, holder_of(transactions, id), now);
        overlap_next(b, lun);
        return true;
    }
    if array.is_suspended(unit) {
        array.set_suspended(lun);
        serve_suspended(b, unit, lun);
        return true;
    }
    if array.requests_ahead(unit) {
        array.request_start_instead(unit, lun, now);
        return true;
    }
    false
}

/// Starts the next host read of a unit with a suspended operation, or resumes that operation.
pub(crate) fn serve_suspended(b: &mut impl Binder, unit: ExecUnitId, lun: LunId) {
    let first = next_for(b, lun).filter(|_| reads_may_suspend(b.view()));
    let Parts { dispatch, transactions, array, .. } = b.parts();
    let limit = dispatch.overlapping.suspend.limit;
    match first.filter(|&(_, id)| is_for_host(&transactions[id])) {
        Some((rank, id)) if array.hold_back(unit, limit) => start_or_request(b, lun, rank, id),
        _ => resume_suspended(b, unit),
    }
}

/// Starts the next read of a LUN whose planes read, if its plane is idle and no other operation comes first.
fn read_beside(b: &mut impl Binder, lun: LunId) {
    let Some((rank, id)) = next_for(b, lun) else { return };
    if !may_start(b, lun, id) {
        return;
    }
    let reads_may_suspend = reads_may_suspend(b.view());
    let Parts { dispatch, array, .. } = b.parts();
    let (unit, limit) = (ExecUnitId(lun.0), dispatch.overlapping.suspend.limit);
    if !array.is_suspended(unit) || reads_may_suspend && array.hold_back(unit, limit) {
        start_or_request(b, lun, rank, id);
    }
}

/// Continues a LUN whose plane has ended a read. Returns `false` if the LUN is idle.
fn continue_reads(b: &mut impl Binder, lun: LunId) -> bool {
    let Parts { array, tasks, now, .. } = b.parts();
    if array.still_requests(lun, now) {
        return true;
    }
    if array.is_at_work(lun) {
        array.set_busy(lun);
        tasks.push(Task::Start(lun));
        return true;
    }
    let unit = ExecUnitId(lun.0);
    let is_suspended = array.is_suspended(unit);
    if is_suspended {
        array.set_suspended(lun);
        serve_suspended(b, unit, lun);
    }
    is_suspended
}
