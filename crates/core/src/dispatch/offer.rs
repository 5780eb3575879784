//! Offers of pooled writes to idle LUNs (dynamic allocation).

use super::join::may_program_together;
use super::pool::Pool;
use super::pool_writes::{choose_plane, is_ready, least_recently_used};
use super::start::notify;
use super::{Binder, Parts, View};
use crate::sim::id::{ChannelId, LunId, PlaneId};
use crate::work::Task;

/// Offers the writes of a pool to idle LUNs, in the order of the allocation.
// Inlining this function would slow the loop over all tasks.
#[inline(never)]
pub(crate) fn offer_pool(b: &mut impl Binder, pool: u32) {
    let line = pool as usize;
    let dispatch = b.view().dispatch;
    if dispatch.pool.lines[line].is_empty() {
        return;
    }
    if dispatch.merging.any {
        deal_pool(b, pool);
        if b.view().dispatch.pool.lines[line].is_empty() {
            return;
        }
    } else {
        find_idle_planes(b);
        if let Some(plane) = choose(b, pool) {
            let lun = b.view().array.lun_of(plane);
            offer(b, lun, pool);
            return b.parts().tasks.push(Task::Offer(pool));
        }
    }
    request_for_pool(b, pool);
}

/// Chooses a plane for the oldest write of a pool, among the candidates.
fn choose(b: &mut impl Binder, pool: u32) -> Option<PlaneId> {
    let Parts { dispatch, ftl, .. } = b.parts();
    ftl.choose(pool, &dispatch.pool.candidates)
}

/// Makes the planes of idle LUNs on idle channels the candidates. If operations share no commands, only planes with
/// room are candidates. Otherwise, another plane of the LUN may take the write.
fn find_idle_planes(b: &mut impl Binder) {
    let Parts { dispatch, array, now, .. } = b.parts();
    let Pool { candidates, of_channel, idle, .. } = &mut dispatch.pool;
    candidates.clear();
    for (channel, planes) in of_channel.iter().enumerate() {
        if array.channel_is_idle(ChannelId(channel as u32), now) {
            candidates.union_with(planes);
        }
    }
    candidates.intersect_with(idle);
    if !dispatch.merging.any {
        keep_ready(b);
    }
}

/// Removes the planes without room from the candidates.
fn keep_ready(b: &mut impl Binder) {
    let mut candidates = std::mem::take(&mut b.parts().dispatch.pool.candidates);
    candidates.intersect_with(b.view().ftl.ready());
    b.parts().dispatch.pool.candidates = candidates;
}

/// Assigns writes of a pool to planes of idle LUNs on idle channels, in the order of the allocation, and starts these
/// LUNs. Writes for one die or chip therefore share a command. With `controller.fill_timeout`, a die takes a whole
/// program unit: all of its planes that program together are filled before the next plane in the order.
fn deal_pool(b: &mut impl Binder, pool: u32) {
    find_idle_planes(b);
    b.parts().dispatch.pool.dealt.clear();
    while !b.view().dispatch.pool.lines[pool as usize].is_empty() {
        let Some(named) = choose(b, pool) else { break };
        let plane = in_turn(b, pool, named);
        deal(b, pool, named, plane);
        let dispatch = b.view().dispatch;
        if dispatch.filling.is_some() {
            let together = dispatch.merging.planes_together(plane);
            for other in together.filter(|&other| other != plane) {
                if b.view().dispatch.pool.of_plane[other] == pool {
                    deal(b, pool, other, other);
                }
            }
        }
    }
    if b.view().dispatch.pool.dealt.is_empty() {
        return;
    }
    let Parts { dispatch, tasks, .. } = b.parts();
    let holds = dispatch.holds_to_bind(tasks);
    for index in 0..dispatch.pool.dealt.len() {
        let View { dispatch, array, .. } = b.view();
        let lun = array.lun_of(dispatch.pool.dealt[index]);
        notify(b, lun);
    }
    if holds {
        let Parts { dispatch, tasks, .. } = b.parts();
        dispatch.release_held(tasks);
    }
}

/// Assigns the writes of one program to `plane`, in the turn of `named`, if the plane has room and can join the planes
/// that were assigned writes.
fn deal(b: &mut impl Binder, pool: u32, named: PlaneId, plane: PlaneId) {
    let dispatch = b.parts().dispatch;
    dispatch.pool.candidates.set(dispatch.pool.positions[named], false);
    let first = dispatch.pool.lines[pool as usize].first();
    if first.is_none() || !is_ready(b, plane) || !may_join_dealt(b, plane) {
        return;
    }
    let Parts { dispatch, transactions, array, .. } = b.parts();
    let class = transactions[first].temperature;
    for _ in 0..dispatch.units_per_program {
        let id = dispatch.take_of_class(transactions, plane, class);
        if id.is_none() {
            break;
        }
        dispatch.waiting.push(array.lun_of(plane), plane, dispatch.rank_of_writes(), transactions, id);
    }
    dispatch.pool.dealt.push(plane);
}

/// Returns the plane that takes the writes of `named`, the next plane of a pool in the order. Among the planes of each
/// LUN in the pool, the least recently used plane comes first, and the others follow with the distances that they have
/// in the order.
///
/// The plain order would send nearly all writes to the first planes, since a LUN that takes a write is not idle for its
/// other planes. Planes that are filled unevenly have no pages at equal addresses, which could be programmed
/// together.
fn in_turn(b: &mut impl Binder, pool: u32, named: PlaneId) -> PlaneId {
    let View { dispatch, array, .. } = b.view();
    let lun = array.lun_of(named);
    let planes = dispatch.pool.planes_in(array, lun, pool);
    let count = planes.end - planes.start;
    let per_unit = array.planes_of_unit(array.unit_of(named)).len() as u32;
    let per_unit = per_unit.min(count);
    let units = count / per_unit;
    let digits = |plane: u32| ((plane - planes.start) / per_unit, (plane - planes.start) % per_unit);
    let own = digits(named.0);
    if !dispatch.pool.dealt.iter().any(|&other| array.lun_of(other) == lun) {
        let Some(first) = least_recently_used(b, lun, pool) else { return named };
        let first = digits(first.0);
        b.parts().dispatch.pool.shifts[lun.index()] = (first.0 + units - own.0, first.1 + per_unit - own.1);
    }
    let shift = b.view().dispatch.pool.shifts[lun.index()];
    PlaneId(planes.start + (own.0 + shift.0) % units * per_unit + (own.1 + shift.1) % per_unit)
}

/// Returns `true` if a write to `plane` could share a command with those assigned to its LUN so far.
fn may_join_dealt(b: &impl Binder, plane: PlaneId) -> bool {
    let View { dispatch, array, .. } = b.view();
    let lun = array.lun_of(plane);
    let mut of_lun = dispatch.pool.dealt.iter().copied().filter(|&other| array.lun_of(other) == lun).peekable();
    let Some(&first) = of_lun.peek() else { return true };
    if array.chip_of(first) != array.chip_of(plane) {
        return false;
    }
    match of_lun.find(|&other| array.unit_of(other) == array.unit_of(plane)) {
        Some(other) => may_program_together(b, other, plane),
        None => dispatch.merging.interleave,
    }
}

/// Queues idle LUNs for their busy channels, for the remaining writes of a pool. Least recently used LUNs are first;
/// the order of the allocation decides among equals. The first LUN that is granted its channel takes the oldest write.
fn request_for_pool(b: &mut impl Binder, pool: u32) {
    let dispatch = b.parts().dispatch;
    dispatch.pool.candidates.copy_from(&dispatch.pool.idle);
    keep_ready(b);
    let mut lining_up = std::mem::take(&mut b.parts().dispatch.pool.lining_up);
    let mut from = 0;
    while let Some(position) = b.view().dispatch.pool.candidates.next_from(from) {
        b.parts().dispatch.pool.candidates.set(position, false);
        from = position;
        let View { dispatch, array, ftl, .. } = b.view();
        let plane = dispatch.pool.planes[position as usize];
        if dispatch.pool.of_plane[plane] == pool {
            let lun = array.lun_of(plane);
            let planes = || array.planes_of(lun).map(PlaneId);
            let used = planes().map(|plane| dispatch.pool.used[plane]).max();
            let erases = planes().map(|plane| ftl.erases_that_count(plane)).min();
            lining_up.push((erases.unwrap_or_default(), used.unwrap_or_default(), position, lun));
        }
    }
    lining_up.sort_unstable();
    let Parts { dispatch, tasks, .. } = b.parts();
    lining_up.drain(..).for_each(|(.., lun)| tasks.push(Task::Start(lun)));
    dispatch.pool.lining_up = lining_up;
}

/// Assigns the oldest write of a pool to an idle LUN.
fn offer(b: &mut impl Binder, lun: LunId, pool: u32) {
    let plane = choose_plane(b, lun, pool);
    let Parts { dispatch, transactions, .. } = b.parts();
    let id = dispatch.take_from_pool(transactions, plane);
    dispatch.waiting.push(lun, plane, dispatch.rank_of_writes(), transactions, id);
    notify(b, lun);
}
