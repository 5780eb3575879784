//! Selection of the next transaction of a LUN: by rank and age, from its own queues or from its pools.
//!
//! A scheduler that picks transactions chooses instead (`pick.rs`).

use super::pick::pick;
use super::pool_writes::{choose_plane, has_ready_plane, pool_before};
use super::{Binder, Dispatch, Parts, View};
use crate::nand::array::Array;
use crate::scheduler::RANKS;
use crate::sim::id::{ExecUnitId, LunId, PlaneId, TransactionId};
use crate::work::{Class, Transaction};

impl Dispatch {
    /// Returns the first transaction in the queues of a LUN, with its rank.
    #[inline(always)]
    pub(super) fn first_own(&self, lun: LunId) -> Option<(u8, TransactionId)> {
        let rank = self.waiting.rank_of_first(lun)?;
        Some((rank, self.waiting.oldest(lun, rank)))
    }

    /// Returns the queue of a transaction: that of its plane.
    #[inline]
    pub(super) fn queue_of(&self, transaction: &Transaction) -> PlaneId {
        let number = self.plane_reads.as_ref().and_then(|reads| reads.number_of(transaction));
        number.map_or(transaction.plane, PlaneId)
    }

    /// Returns the execution unit of a transaction.
    #[inline]
    pub(super) fn unit_of(&self, array: &Array, transaction: &Transaction) -> ExecUnitId {
        self.reading_unit_of(transaction).unwrap_or_else(|| array.unit_of(transaction.plane))
    }

    /// Returns the execution unit of a read of a plane that reads independently.
    #[inline]
    pub(super) fn reading_unit_of(&self, transaction: &Transaction) -> Option<ExecUnitId> {
        self.plane_reads.as_ref()?.number_of(transaction).map(ExecUnitId)
    }

    /// Returns the number of the plane of a transaction, or of the first one, with each plane counted by itself. `None`
    /// unless planes of a die read independently.
    pub(super) fn first_plane_of(&self, array: &Array, transaction: &Transaction) -> Option<u32> {
        self.plane_reads.as_ref()?;
        Some(array.physical_plane(self.unit_of(array, transaction), transaction.plane))
    }

    /// Returns the first transaction of a LUN with its rank, or the first one with `rank`, if given. Reads of planes at
    /// work are left out.
    pub(super) fn first_startable(&self, array: &Array, lun: LunId, rank: Option<u8>) -> Option<(u8, TransactionId)> {
        let mut ranks = rank.map_or(0..RANKS as u8, |rank| rank..rank + 1);
        ranks.find_map(|rank| {
            let idle = array.reading_units(lun).filter(|&unit| array.unit_is_idle(ExecUnitId(unit)));
            let first = self.waiting.oldest_of(std::iter::once(lun.0).chain(idle).map(PlaneId), rank);
            first.is_some().then_some((rank, first))
        })
    }

    /// Does the same as [`Dispatch::first_own`], also if planes read independently.
    #[inline(always)]
    fn first_in_queues(&self, array: &Array, lun: LunId) -> Option<(u8, TransactionId)> {
        if self.plane_reads.is_some() { self.first_startable(array, lun, None) } else { self.first_own(lun) }
    }

    /// Returns the rank of host writes.
    #[inline]
    pub(crate) fn rank_of_writes(&self) -> u8 {
        self.ranks[Class::HostProgram as usize]
    }
}

/// Returns the next transaction of `lun` with its rank: the scheduler's choice if it picks transactions, otherwise the
/// first by rank.
#[inline(always)]
pub(super) fn next_for(b: &mut impl Binder, lun: LunId) -> Option<(u8, TransactionId)> {
    let dispatch = b.view().dispatch;
    if dispatch.chooses { choose_next(b, lun) } else { dispatch.first_own(lun) }
}

/// Returns the next transaction of `lun` with `rank`, and that rank.
#[inline]
pub(super) fn next_of(b: &mut impl Binder, lun: LunId, rank: u8) -> Option<(u8, TransactionId)> {
    let dispatch = b.view().dispatch;
    if dispatch.chooses {
        return choose_next_of(b, lun, rank);
    }
    let own = dispatch.waiting.oldest(lun, rank);
    own.is_some().then_some((rank, own))
}

/// Removes `id`, the next transaction of a LUN, from its queue.
#[inline(always)]
pub(super) fn take_next(b: &mut impl Binder, lun: LunId, rank: u8, id: TransactionId) {
    let Parts { dispatch, transactions, .. } = b.parts();
    if dispatch.chooses {
        return take_chosen(b, lun, rank, id);
    }
    dispatch.waiting.pop(lun, transactions[id].plane, rank, transactions);
}

/// Removes `id`, the next transaction of a LUN, from its queue. A write of a pool is assigned to a plane of the LUN.
#[inline(never)]
fn take_chosen(b: &mut impl Binder, lun: LunId, rank: u8, id: TransactionId) {
    if let Some(pool) = pool_before(b.view(), lun, id) {
        let plane = choose_plane(b, lun, pool);
        let Parts { dispatch, transactions, .. } = b.parts();
        dispatch.take_from_pool(transactions, plane);
        b.parts().ftl.allocation.took(plane);
    } else {
        let Parts { dispatch, transactions, .. } = b.parts();
        let queue = dispatch.queue_of(&transactions[id]);
        dispatch.waiting.remove(lun, queue, rank, transactions, id);
    }
}

/// Returns the first transaction of `lun` by rank, then by age, with its rank. Considers its own queues and its pools.
#[inline(always)]
pub(crate) fn first_for(b: &impl Binder, lun: LunId) -> Option<(u8, TransactionId)> {
    let View { dispatch, array, .. } = b.view();
    if dispatch.dynamic { first_with_pool(b, lun) } else { dispatch.first_in_queues(array, lun) }
}

/// Returns the first transaction of `lun` with `rank`, and that rank.
fn first_of(b: &impl Binder, lun: LunId, rank: u8) -> Option<(u8, TransactionId)> {
    let View { dispatch, array, .. } = b.view();
    let own = match dispatch.plane_reads {
        None => dispatch.waiting.oldest(lun, rank),
        Some(_) => dispatch.first_startable(array, lun, Some(rank)).map_or(TransactionId::NONE, |(_, id)| id),
    };
    if dispatch.dynamic && rank == dispatch.rank_of_writes() {
        return or_of_pool(b, lun, rank, own);
    }
    own.is_some().then_some((rank, own))
}

/// See [`first_for`].
fn first_with_pool(b: &impl Binder, lun: LunId) -> Option<(u8, TransactionId)> {
    let View { dispatch, array, .. } = b.view();
    let (rank, own) = dispatch.first_in_queues(array, lun).unwrap_or((RANKS as u8, TransactionId::NONE));
    or_of_pool(b, lun, rank, own)
}

/// Returns `next`, unless it is `NONE` or the first write of a pool of `lun` comes first by rank and age.
fn or_of_pool(b: &impl Binder, lun: LunId, mut rank: u8, mut next: TransactionId) -> Option<(u8, TransactionId)> {
    let View { dispatch, transactions, array, .. } = b.view();
    let pooled = dispatch.rank_of_writes();
    let turn = |rank: u8, id: TransactionId| (rank, transactions[id].order);
    for pool in dispatch.pool.of_lun(array, lun) {
        let id = dispatch.pool.lines[pool as usize].first();
        let is_earlier = id.is_some() && (next.is_none() || turn(pooled, id) < turn(rank, next));
        if is_earlier && has_ready_plane(b, lun, pool) {
            (rank, next) = (pooled, id);
        }
    }
    next.is_some().then_some((rank, next))
}

/// Returns the next transaction of `lun` with its rank, if there is a pool or a scheduler that picks transactions.
#[inline(never)]
fn choose_next(b: &mut impl Binder, lun: LunId) -> Option<(u8, TransactionId)> {
    let dispatch = b.view().dispatch;
    if dispatch.picking.is_none() { first_for(b, lun) } else { pick(b, lun, None, dispatch.dynamic) }
}

/// Returns the next transaction of `lun` with `rank`, and that rank, if there is a pool or a scheduler that picks
/// transactions.
#[inline(never)]
fn choose_next_of(b: &mut impl Binder, lun: LunId, rank: u8) -> Option<(u8, TransactionId)> {
    let dispatch = b.view().dispatch;
    if dispatch.picking.is_some() { pick(b, lun, Some(rank), dispatch.dynamic) } else { first_of(b, lun, rank) }
}

/// Returns the next transaction of `lun` from its own queues, with its rank.
pub(super) fn choose_own(b: &mut impl Binder, lun: LunId) -> Option<(u8, TransactionId)> {
    let dispatch = b.view().dispatch;
    if dispatch.picking.is_some() { pick(b, lun, None, false) } else { dispatch.first_own(lun) }
}

/// Returns `true` if the scheduler picks `id`, which is not the first of its queue, and if that could change the work
/// of a busy LUN.
#[inline]
pub(super) fn picks_at_work(b: &mut impl Binder, lun: LunId, id: TransactionId) -> bool {
    let dispatch = b.view().dispatch;
    dispatch.chooses && dispatch.looks_at_work && dispatch.picking.is_some() && {
        let picked = pick(b, lun, None, dispatch.dynamic);
        picked.is_some_and(|(_, picked)| picked == id)
    }
}
