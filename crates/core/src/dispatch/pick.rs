//! Scheduler choice: lets a scheduler that picks transactions choose among all those that wait for a LUN.
//!
//! The scheduler chooses the transaction that leads a command. Dispatch chooses the ones that join it: the writes that
//! fill the program, and the operations of other planes and dies. docs/model/timing.md has the rules.

use super::pool_writes::has_ready_plane;
use super::{Binder, Parts, Picking, View};
use crate::scheduler::RANKS;
use crate::sim::id::{LunId, PlaneId, TransactionId};
use crate::sim::request::Request;
use crate::work::{Kind, LunQueue, Queued};

/// Returns the transaction that the scheduler picks for `lun`, with its rank. Its choice is among those with `rank`, if
/// given, and includes the pool if `pooled`. If it picks none, or there is no choice, the ranks decide.
pub(super) fn pick(b: &mut impl Binder, lun: LunId, rank: Option<u8>, pooled: bool) -> Option<(u8, TransactionId)> {
    let mut picking = b.parts().dispatch.picking.take()?;
    show_queue(b, lun, rank, pooled, &mut picking);
    let Parts { dispatch, now, .. } = b.parts();
    let queue = &picking.queue;
    let picked = if queue.len() > 1 { dispatch.scheduler.pick(&LunQueue::new(lun, queue), now) } else { None };
    let picked = picked.and_then(|id| queue.iter().find(|queued| queued.id == id));
    // The oldest transaction of the lowest rank.
    let next = picked.or_else(|| queue.iter().min_by_key(|queued| queued.rank));
    let next = next.map(|queued| (queued.rank, queued.id));
    dispatch.picking = Some(picking);
    next
}

/// Returns the request that waits for a transaction, if there is one.
fn request_of(View { transactions, interface, .. }: View<'_>, id: TransactionId) -> Option<&Request> {
    let transaction = &transactions[id];
    let request = match transaction.kind {
        Kind::HostRead | Kind::Write => transaction.request(),
        Kind::RmwRead => transactions[transaction.write()].request(),
        _ => return None,
    };
    request.is_some().then(|| &interface.requests[request].request)
}

/// Collects the transactions that wait for a LUN, in the order in which each rank is served.
fn show_queue(b: &impl Binder, lun: LunId, rank: Option<u8>, pooled: bool, picking: &mut Picking) {
    let View { dispatch, transactions, array, .. } = b.view();
    let Picking { since, keyed, queue } = picking;
    keyed.clear();
    let mut add = |key: u64, rank: u8, id: TransactionId, plane: PlaneId| {
        let since = since.get(id).copied().unwrap_or_default();
        let owner = request_of(b.view(), id);
        let (request, stream) = owner.map(|owner| (owner.tag, owner.stream)).unzip();
        let high_priority = owner.is_some_and(|owner| owner.high_priority);
        let class = transactions[id].class;
        let queued = Queued { id, class, rank, plane, since, request, stream, high_priority };
        keyed.push((key, keyed.len() as u32, queued));
    };
    let shown = |shown: u8| rank.is_none_or(|rank| rank == shown);
    for rank in (0..RANKS as u8).filter(|&rank| shown(rank)) {
        // A transaction is not served before those in front of it in its queue, even if they were queued later.
        let mut last = (0, 0);
        dispatch.waiting.for_each(lun, rank, transactions, |queue, id| {
            let before = if last.0 == queue { last.1 } else { 0 };
            last = (queue, transactions[id].order.max(before));
            add(last.1, rank, id, transactions[id].plane);
        });
    }
    let rank = dispatch.rank_of_writes();
    if pooled && shown(rank) {
        for pool in dispatch.pool.of_lun(array, lun) {
            let id = dispatch.pool.lines[pool as usize].first();
            if id.is_some() && has_ready_plane(b, lun, pool) {
                add(transactions[id].order, rank, id, PlaneId::NONE);
            }
        }
    }
    keyed.sort_unstable_by_key(|&(key, position, _)| (key, position));
    queue.clear();
    queue.extend(keyed.iter().map(|&(_, _, queued)| queued));
}
