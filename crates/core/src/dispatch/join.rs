//! Joining of commands: selects waiting operations of other planes of the die for a multi-plane command, and of other
//! dies of the chip for an interleaved one.
//!
//! An operation can join if it is the first in the queue of its plane and has the rank and kind of the leading one. See
//! Hu et al. 2011, Section 2.2; docs/model/commands.md has the rules.

use std::ops::Range;

use super::targets::{
    Address, Target, address_of, cells_at, cells_of, next_opened, next_write, skip_to, takes, target,
};
use super::waits::report_waits;
use super::{Binder, Dispatch, Merging, Parts, View};
use crate::config::cells::CellMode;
use crate::nand::array::{self, Member, Operation, Spot};
use crate::sim::id::{ExecUnitId, LunId, PlaneId, Ppn, TransactionId};
use crate::work::{Kind, Transactions};

impl Dispatch {
    /// Returns `true` if anything waits with `rank` for a LUN, or in the pool of its plane. If a LUN has several pools,
    /// writes of other pools may join, too.
    #[inline(always)]
    pub(super) fn others_wait(&self, lun: LunId, plane: PlaneId, rank: u8) -> bool {
        self.waiting.any(lun, rank) || self.first_of_pool(plane) != TransactionId::NONE || self.pool.splits_luns
    }
}

/// Starts the command of `lun` that `lead`, drafted at `unit`, leads, with the operations that can join it.
#[inline(never)]
pub(super) fn start_merged(b: &mut impl Binder, lun: LunId, rank: u8, lead: TransactionId, unit: ExecUnitId) {
    let View { dispatch, array, .. } = b.view();
    let kind = array.draft(Spot::Unit(unit)).kind;
    let merging = dispatch.merging;
    let mut planes = start_unit(b, unit, rank, lead);
    let mut dies = 1;
    if merging.interleave {
        // Only dies of the same chip join. A LUN may be a package of several chips.
        let first = unit.0 / merging.per_chip * merging.per_chip;
        for other in (first..first + merging.per_chip).map(ExecUnitId).filter(|&other| other != unit) {
            b.parts().array.set_binding(lun);
            let of_die = b.view().array.planes_of_unit(other);
            if let Some((_, id)) = join_unit(b, of_die, rank, kind) {
                planes += start_unit(b, other, rank, id);
                dies += 1;
            }
        }
        b.parts().array.set_busy(lun);
    }
    b.parts().array.note_merged(kind, dies, planes);
}

/// Starts the operation of `lead` on a unit, with other planes of the unit. Returns the number of planes that work.
fn start_unit(b: &mut impl Binder, unit: ExecUnitId, rank: u8, lead: TransactionId) -> u32 {
    join_planes_for(b, unit, rank, lead, Spot::Unit(unit));
    let members = b.view().array.draft(Spot::Unit(unit)).members;
    begin(b, unit, lead);
    members
}

/// Binds the transactions that join `lead`, drafted `at` a spot, in other planes of its die. Does nothing if planes do
/// not share commands of this kind.
#[inline]
pub(super) fn join_planes_for(b: &mut impl Binder, unit: ExecUnitId, rank: u8, lead: TransactionId, at: Spot) {
    let View { dispatch, array, .. } = b.view();
    let Operation { kind, pages, plane, .. } = *array.draft(at);
    let one_page = kind != array::Kind::Read || pages == 1;
    if dispatch.merging.planes[kind as usize] && one_page && dispatch.others_wait(array.lun_of_unit(unit), plane, rank)
    {
        join_planes(b, unit, rank, lead, at, |_| true);
    }
}

/// Binds the transactions that join `lead`, which is loaded ahead, in the planes that a unit works in now.
pub(super) fn join_at_work(b: &mut impl Binder, unit: ExecUnitId, rank: u8, lead: TransactionId) {
    let View { dispatch, array, .. } = b.view();
    let merging = dispatch.merging;
    let mut at_work = 0u64;
    array.planes_at_work(unit).for_each(|(plane, _)| at_work |= 1 << merging.place_in_group(plane));
    let works = |plane| at_work >> merging.place_in_group(plane) & 1 == 1;
    join_planes(b, unit, rank, lead, Spot::Ahead(unit), works);
}

/// Binds the transactions that join `lead`, drafted `at` a spot, in other planes of its group that are `allowed`.
fn join_planes(
    b: &mut impl Binder,
    unit: ExecUnitId,
    rank: u8,
    lead: TransactionId,
    at: Spot,
    allowed: impl Fn(PlaneId) -> bool,
) {
    let Parts { dispatch, transactions, array, .. } = b.parts();
    let merging = dispatch.merging;
    let mut last = last_of(transactions, lead);
    let Operation { kind, plane: own, ppn, data, tag, .. } = *array.draft(at);
    array.set_member(unit, 0, Member { plane: own, data, tag, ppn });
    let ftl = b.view().ftl;
    let (address, cells) = (address_of(ftl, Ppn(ppn), kind), cells_at(ftl, Ppn(ppn), kind));
    let moves = kind == array::Kind::CopyBack;
    let source = moves.then(|| source_of(b, merging, own)).flatten();
    for plane in merging.others_of(own) {
        if !allowed(plane) || !suits(b, plane, rank, kind, (address, cells)) {
            continue;
        }
        if moves && source_of(b, merging, plane) != source {
            continue;
        }
        let id = take_for(b, plane, rank, kind);
        if !bind_beside(b, id, rank, Spot::Member) {
            continue;
        }
        let Parts { transactions, array, .. } = b.parts();
        array.join(unit, at);
        transactions[last].next = id;
        last = last_of(transactions, id);
    }
}

/// Returns the last of the transactions that are bound together with `id`.
fn last_of(transactions: &Transactions, mut id: TransactionId) -> TransactionId {
    while transactions[id].next.is_some() {
        id = transactions[id].next;
    }
    id
}

/// Calls [`Binder::bind`] out of line, for operations that join a command or overlap.
#[inline(never)]
pub(super) fn bind_beside(b: &mut impl Binder, id: TransactionId, rank: u8, at: Spot) -> bool {
    b.bind(id, rank, at)
}

/// Binds the oldest operation of `kind` that waits for a range of planes, and returns it with its unit.
fn join_unit(
    b: &mut impl Binder,
    planes: Range<u32>,
    rank: u8,
    kind: array::Kind,
) -> Option<(ExecUnitId, TransactionId)> {
    loop {
        let View { dispatch, transactions, array, .. } = b.view();
        let plane =
            planes.clone().map(PlaneId).filter(|&plane| waits_for(b, plane, rank, kind)).min_by_key(|&plane| {
                let id = first_in(b.view(), plane, rank);
                if id.is_none() { u64::MAX } else { transactions[id].order }
            })?;
        let levels = kind == array::Kind::Program && dispatch.merging.blind;
        let unit = array.unit_of(plane);
        let id = take_for(b, plane, rank, kind);
        if levels {
            level(b, id, rank);
        }
        if bind_beside(b, id, rank, Spot::Unit(unit)) {
            return Some((unit, id));
        }
    }
}

/// Returns `true` if an operation of `kind` and `rank` is the first that waits for `plane`, or could be taken from the
/// pool.
#[inline]
fn waits_for(b: &impl Binder, plane: PlaneId, rank: u8, kind: array::Kind) -> bool {
    is_of(b, first_in(b.view(), plane, rank), plane, rank, kind)
}

/// Returns `true` if `id`, the first transaction that waits for `plane`, is an operation of `kind`. If `id` is `NONE`,
/// returns `true` if a write of the pool can be taken instead.
fn is_of(b: &impl Binder, id: TransactionId, plane: PlaneId, rank: u8, kind: array::Kind) -> bool {
    if id.is_none() {
        return kind == array::Kind::Program && pool_waits_for(b, plane, rank);
    }
    array::Kind::from(b.view().transactions[id].kind) == kind && takes(b.view(), plane, id)
}

/// Returns `true` if a write of the pool could go to `plane`, with operations of `rank`.
fn pool_waits_for(b: &impl Binder, plane: PlaneId, rank: u8) -> bool {
    let dispatch = b.view().dispatch;
    rank == dispatch.rank_of_writes()
        && dispatch.first_of_pool(plane) != TransactionId::NONE
        && takes(b.view(), plane, TransactionId::NONE)
}

/// Returns the first transaction that waits with `rank` in the queue of `plane`, or `NONE`.
#[inline]
fn first_in(View { dispatch, array, .. }: View, plane: PlaneId, rank: u8) -> TransactionId {
    dispatch.waiting.first(array.lun_of(plane), plane, rank)
}

/// Returns the temperature class of `id`, a write that waits for `plane`, or of the first one in the pool if `id` is
/// `NONE`.
pub(super) fn class_of(View { dispatch, transactions, .. }: View, plane: PlaneId, id: TransactionId) -> u8 {
    let first = if id.is_none() { dispatch.first_of_pool(plane) } else { id };
    if first.is_none() { 0 } else { transactions[first].temperature }
}

/// Returns the address of the next page to be moved within `plane`, in the form that copy-backs in several planes must
/// share.
fn source_of(b: &impl Binder, merging: Merging, plane: PlaneId) -> Option<Address> {
    let View { ftl, jobs, .. } = b.view();
    let copy = jobs[plane].moving.back.first()?;
    let (block, page) = address_of(ftl, copy.from, array::Kind::CopyBack);
    Some(if merging.strict { (block, page) } else { (0, page) })
}

/// Returns `true` if the first transaction that waits for `plane` may join an operation of `kind` at an address, in a
/// cell mode. All planes of a command must be in one mode.
fn suits(b: &impl Binder, plane: PlaneId, rank: u8, kind: array::Kind, lead: (Address, CellMode)) -> bool {
    let ((block, page), cells) = lead;
    let view = b.view();
    let id = first_in(view, plane, rank);
    if !is_of(b, id, plane, rank, kind) || cells_of(view, id) != cells {
        return false;
    }
    let is_strict = view.dispatch.merging.strict;
    match target(view, plane, if id.is_none() { view.dispatch.first_of_pool(plane) } else { id }) {
        Target::At((other_block, other_page)) => other_page == page && (other_block == block || !is_strict),
        Target::Opens(other_block) => page == 0 && (other_block == Some(block) || !is_strict),
        Target::Alone => false,
    }
}

/// Returns `true` if the next host writes to two planes of a die could be programmed together.
pub(super) fn may_program_together(b: &impl Binder, one: PlaneId, other: PlaneId) -> bool {
    let view = b.view();
    let merging = &view.dispatch.merging;
    if !merging.planes[array::Kind::Program as usize] || !merging.group_of(one).contains(&other.0) {
        return false;
    }
    let rank = view.dispatch.rank_of_writes();
    let class = |plane| class_of(view, plane, first_in(view, plane, rank));
    let (class_of_one, class_of_other) = (class(one), class(other));
    match (next_write(view.ftl, one, class_of_one), next_write(view.ftl, other, class_of_other)) {
        (Some(a), Some(b)) => (a.1 == b.1 || merging.blind) && (a.0 == b.0 || !merging.strict),
        (None, None) => true,
        (Some((block, page)), None) => {
            page == 0 && (!merging.strict || next_opened(view.ftl, other, class_of_other) == Some(block))
        }
        (None, Some((block, page))) => {
            page == 0 && (!merging.strict || next_opened(view.ftl, one, class_of_one) == Some(block))
        }
    }
}

/// Removes and returns the first transaction that waits for `plane`, or the oldest of the pool.
fn take_for(b: &mut impl Binder, plane: PlaneId, rank: u8, kind: array::Kind) -> TransactionId {
    let Parts { dispatch, transactions, array, .. } = b.parts();
    let id = dispatch.waiting.pop(array.lun_of(plane), plane, rank, transactions);
    if id.is_some() {
        return id;
    }
    debug_assert_eq!(kind, array::Kind::Program);
    let id = dispatch.take_from_pool(transactions, plane);
    b.parts().ftl.allocation.took(plane);
    id
}

/// Skips pages in planes of a die that lag behind, so that they can be programmed together with the write `lead`. This
/// write has a plane but no physical address yet. Only with `nand.advanced.multi_plane_program = "blind"`.
///
/// All blocks must be partly programmed, and have equal addresses if required. The rest of a block is never skipped.
pub(super) fn level(b: &mut impl Binder, lead: TransactionId, rank: u8) {
    let view = b.view();
    let View { dispatch, transactions, .. } = view;
    if transactions[lead].kind != Kind::Write {
        return;
    }
    let merging = dispatch.merging;
    let own = transactions[lead].plane;
    let Some((block, page)) = next_write(view.ftl, own, transactions[lead].temperature) else { return };
    let most = merging.group.divisor() * dispatch.units_per_program;
    let mut in_pool = dispatch.pool_count(transactions, own, most);
    let shares_pool = |plane| dispatch.dynamic && dispatch.pool.of_plane[plane] == dispatch.pool.of_plane[own];
    let mut chosen = 0u64;
    let mut highest = page;
    for plane in merging.others_of(own) {
        let id = first_in(view, plane, rank);
        let is_shared = shares_pool(plane);
        let from_pool = id.is_none() && (in_pool > 0 || !is_shared) && pool_waits_for(b, plane, rank);
        let writes = id.is_some() && transactions[id].kind == Kind::Write;
        if !(from_pool || writes) || !takes(view, plane, id) {
            continue;
        }
        let Some((other_block, other_page)) = next_write(view.ftl, plane, class_of(view, plane, id)) else { continue };
        if merging.strict && other_block != block {
            continue;
        }
        if from_pool && is_shared {
            in_pool = in_pool.saturating_sub(dispatch.units_per_program);
        }
        chosen |= 1 << merging.place_in_group(plane);
        highest = highest.max(other_page);
    }
    if chosen == 0 {
        return;
    }
    chosen |= 1 << merging.place_in_group(own);
    for plane in merging.group_of(own).map(PlaneId) {
        if chosen >> merging.place_in_group(plane) & 1 == 1 {
            let view = b.view();
            let first = if plane == own { lead } else { first_in(view, plane, rank) };
            let class = class_of(view, plane, first);
            skip_to(b.parts().ftl, plane, class, highest);
        }
    }
}

/// Starts the operation that is drafted at an execution unit, for `id` and those that share its command.
#[inline(always)]
pub(super) fn begin(b: &mut impl Binder, unit: ExecUnitId, id: TransactionId) {
    let Parts { dispatch, array, now, .. } = b.parts();
    dispatch.running[unit] = id;
    array.start(unit, now);
    if array.probe().is_some() {
        let operation = *array.operation(unit);
        report_waits(b, id, &operation);
    }
}
