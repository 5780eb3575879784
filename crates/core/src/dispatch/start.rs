//! Starting operations: a LUN that takes commands starts the next transaction when its channel is granted.
//!
//! A transaction is bound at that instant, and not before. If binding sets off operations of other LUNs, those are
//! notified afterwards.

use super::join::{begin, level, start_merged};
use super::next::{choose_own, next_for, next_of, picks_at_work, take_next};
use super::overlap::{ahead_granted, holder_of, overlap_next, read_ahead, resume_suspended};
use super::{Binder, Dispatch, Parts, View};
use crate::nand::array::{self, Cycles, LunState, Spot};
use crate::sim::id::{ChannelId, ExecUnitId, LunId, TransactionId};
use crate::sim::time::Time;
use crate::work::{Kind, Task, Tasks};

impl Dispatch {
    /// Returns `true` if the caller, who binds something, has to release the LUNs that are held back from now on.
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
    let plane = transaction.plane;
    let lun = array.lun_of(plane);
    let rank = dispatch.ranks[transaction.class as usize];
    dispatch.waiting.push(lun, plane, rank, transactions, id);
    if array.is_watched() {
        b.show_queued(id, lun);
    }
    let View { dispatch, array, .. } = b.view();
    let state = array.state(lun);
    if state == LunState::Busy && dispatch.waiting.first(lun, plane, rank) != id && !picks_at_work(b, lun, id) {
        return; // Behind others it changes nothing for a LUN that works.
    }
    let Parts { dispatch, tasks, .. } = b.parts();
    if tasks.holds() {
        if !dispatch.loses_tasks || !dispatch.orders.is_multiple_of(16) {
            tasks.hold_back(lun);
        }
    } else if state == LunState::Idle || dispatch.looks_at_work {
        tasks.push(Task::Start(lun));
    }
}

/// Notifies a LUN of transactions that wait for it.
#[inline(always)]
pub(crate) fn notify(b: &mut impl Binder, lun: LunId) {
    let View { dispatch, array, .. } = b.view();
    match array.state(lun) {
        LunState::Idle => start_idle(b, lun),
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

/// Starts an idle LUN on the first transaction that waits for it, or queues it for its channel.
#[inline(never)]
pub(crate) fn start_idle(b: &mut impl Binder, lun: LunId) {
    if let Some((rank, id)) = next_for(b, lun) {
        start_or_request(b, lun, rank, id);
    } else if b.view().dispatch.paces {
        offer_to_gc(b, lun);
    }
}

/// With `gc.pace = "proportional"`: lets garbage collection have a LUN for which nothing waits.
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

/// Starts a LUN that waits for its channel on a more urgent transaction that has arrived meanwhile.
fn reconsider(b: &mut impl Binder, lun: LunId) {
    let Some((rank, id)) = choose_own(b, lun) else { return };
    let Parts { dispatch, array, now, .. } = b.parts();
    if rank < array.rank(lun) {
        array.withdraw(lun, now);
        dispatch.note_idle(array, lun, true);
        start_or_request(b, lun, rank, id);
    }
}

/// Starts a LUN that takes commands on `id`, which it takes next, or queues the LUN for its channel.
#[inline(always)]
pub(super) fn start_or_request(b: &mut impl Binder, lun: LunId, rank: u8, id: TransactionId) {
    let Parts { dispatch, transactions, array, now, .. } = b.parts();
    let timing = array.timing();
    let needs_channel = match transactions[id].kind {
        Kind::HostRead | Kind::RmwRead | Kind::GcRead | Kind::CopyBack | Kind::MapRead | Kind::MergeRead => {
            timing.read_command > Time::ZERO
        }
        Kind::Erase => timing.erase_command > Time::ZERO,
        _ => true,
    };
    let channel = array.channel_of(lun);
    let has_channel = array.channel_is_idle(channel, now);
    if !needs_channel || has_channel {
        let unit = ExecUnitId(lun.0 * array.units_per_lun());
        return start_or_rest(b, unit, lun, Some((rank, id)), has_channel);
    }
    let is_program = array::Kind::from(transactions[id].kind) == array::Kind::Program;
    let cycles = if is_program { Cycles::Data } else { Cycles::Command };
    array.request_start(lun, rank, cycles, now);
    dispatch.note_idle(array, lun, false);
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

/// Starts or continues an execution unit that has been granted its channel.
fn granted(b: &mut impl Binder, unit: ExecUnitId) {
    let array = b.view().array;
    let lun = array.lun_of_unit(unit);
    if array.state(lun) != LunState::Requesting {
        return if array.asks(unit) { ahead_granted(b, unit) } else { resume(b, unit) };
    }
    // It was granted the channel for what was first in the queue when it asked. What is more urgent and came later is
    // its next operation: this one holds the LUN since then.
    let rank = array.rank(lun);
    let next = next_of(b, lun, rank);
    start_or_rest(b, unit, lun, next, true);
}

/// Continues an execution unit that needs its channel in the middle of an operation.
#[inline(never)]
pub(crate) fn go_on(b: &mut impl Binder, unit: ExecUnitId, rank: u8) {
    let Parts { array, now, .. } = b.parts();
    let channel = array.channel_of_unit(unit);
    if array.channel_is_idle(channel, now) {
        return resume(b, unit);
    }
    array.request_more(unit, rank, now);
    grant(b, channel);
}

/// Continues an execution unit that has its channel in the middle of an operation.
#[inline(always)]
fn resume(b: &mut impl Binder, unit: ExecUnitId) {
    if b.view().dispatch.overlapping.read {
        read_ahead(b, unit);
    }
    let Parts { array, now, .. } = b.parts();
    array.resume(unit, now);
}

/// Starts a LUN on `next`, or on what waits for it if there is no `next`. Sets it idle if nothing can start.
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
    if !has_started && (!has_channel || dispatch.paces) {
        // What needed no channel turned out to be none; what comes behind it may need one.
        tasks.push(Task::Start(lun));
    }
}

/// Sets a LUN idle that could start something and found nothing, or resumes what it has suspended.
#[cold]
fn rest(b: &mut impl Binder, unit: ExecUnitId, lun: LunId) {
    let View { dispatch, array, .. } = b.view();
    if dispatch.overlapping.any && array.is_suspended(unit) {
        return resume_suspended(b, unit);
    }
    set_idle(b, lun);
}

/// Starts the next command of a LUN: `next`, if there is one. Returns `false` if nothing can start.
#[inline(always)]
fn start(b: &mut impl Binder, lun: LunId, next: Option<(u8, TransactionId)>, has_channel: bool) -> bool {
    let Parts { dispatch, array, .. } = b.parts();
    // What binding sets off must not start the LUN a second time.
    array.set_binding(lun);
    dispatch.note_idle(array, lun, false);
    let next = if next.is_some() { next } else { next_for(b, lun) };
    next.is_some_and(|(rank, id)| start_from(b, lun, rank, id, has_channel))
}

/// Starts a LUN on `id`, or on the transactions behind it if that cannot start or need not.
#[inline(never)]
fn start_from(b: &mut impl Binder, lun: LunId, mut rank: u8, mut id: TransactionId, has_channel: bool) -> bool {
    let overlaps = b.view().dispatch.overlapping.any;
    loop {
        if overlaps && only_reads(b, lun) && b.view().transactions[id].kind != Kind::HostRead {
            return false;
        }
        take_next(b, lun, rank, id);
        if start_one(b, lun, rank, id) {
            if overlaps {
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

/// Returns `true` if a LUN takes reads of the host only, because what it does is suspended.
fn only_reads(b: &impl Binder, lun: LunId) -> bool {
    b.view().array.is_suspended(ExecUnitId(lun.0))
}

/// Starts a LUN on `id`, with what other planes or dies do together with it. Returns `false` if it cannot start.
#[inline(always)]
fn start_one(b: &mut impl Binder, lun: LunId, rank: u8, id: TransactionId) -> bool {
    if b.view().dispatch.merging.blind {
        level(b, id, rank);
    }
    let View { transactions, array, .. } = b.view();
    let plane = transactions[id].plane;
    let unit = array.unit_of(plane);
    if !b.bind(id, rank, Spot::Unit(unit)) {
        return false;
    }
    let dispatch = b.view().dispatch;
    // Mostly nothing else waits.
    if dispatch.merging.any && dispatch.others_wait(lun, plane, rank) {
        start_merged(b, lun, rank, id, unit);
    } else {
        begin(b, unit, id);
    }
    true
}

/// Continues a unit whose operation has ended with what overlaps with it. Returns `false` if nothing does.
pub(crate) fn go_on_overlapping(b: &mut impl Binder, unit: ExecUnitId, lun: LunId) -> bool {
    let Parts { dispatch, transactions, array, now, .. } = b.parts();
    if array.has_ahead(unit) {
        let id = std::mem::replace(&mut dispatch.ahead[unit], TransactionId::NONE);
        dispatch.running[unit] = id;
        array.go_ahead(unit, holder_of(transactions, id), now);
        overlap_next(b, lun);
        return true;
    }
    if array.is_suspended(unit) {
        array.set_suspended(lun);
        serve_suspended(b, unit, lun);
        return true;
    }
    if array.asks(unit) {
        array.ask_to_start(unit, lun, now);
        return true;
    }
    false
}

/// Serves reads of the host while the cells of a unit rest, and resumes them after that.
pub(crate) fn serve_suspended(b: &mut impl Binder, unit: ExecUnitId, lun: LunId) {
    let first = next_for(b, lun);
    let Parts { dispatch, transactions, array, .. } = b.parts();
    let limit = dispatch.overlapping.suspend.limit;
    match first.filter(|&(_, id)| transactions[id].kind == Kind::HostRead) {
        Some((rank, id)) if array.hold_back(unit, limit) => start_or_request(b, lun, rank, id),
        _ => resume_suspended(b, unit),
    }
}
