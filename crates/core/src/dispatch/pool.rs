//! Writes that any plane of a pool may take (dynamic allocation), and which planes could.

use super::join::may_program_together;
use super::start::notify;
use super::{Binder, Dispatch, Parts, View};
use crate::config::DeviceConfig;
use crate::ftl::allocation::{Allocation, PlaneSet};
use crate::nand::array::Array;
use crate::sim::id::{ChannelId, LunId, PlaneId, TransactionId};
use crate::sim::table::Table;
use crate::state::{MOST, Reader, StateError, Writer};
use crate::work::{Fifo, Kind, Task, Tasks, Transaction, Transactions};

/// Distance in the order between what is queued for LUNs during a hold and the writes of a pool that are queued with
/// it. Each LUN serves the former first, because only the latter can go elsewhere.
pub(crate) const AFTER_HELD: u64 = 1 << 24;

/// The pools, with sets of planes by their position in the allocation's order.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// By pool of the allocation: writes without a plane, oldest first.
    pub(super) lines: Vec<Fifo>,
    /// Position of each plane in the order of the allocation.
    positions: Table<PlaneId, u32>,
    /// The planes in that order.
    planes: Vec<PlaneId>,
    /// Pool of each plane.
    of_plane: Table<PlaneId, u32>,
    /// Planes of idle LUNs.
    idle: PlaneSet,
    /// Planes of each channel.
    of_channel: Vec<PlaneSet>,
    /// Planes of each pool.
    pub(super) of_pool: Vec<PlaneSet>,
    /// By plane: when it took a write last, counted in writes.
    pub(super) used: Table<PlaneId, u64>,
    pub(super) uses: u64,
    /// By LUN: how far the planes that take what is dealt lie from those that the order names, in units and in planes.
    shifts: Vec<(u32, u32)>,
    /// Room to work in.
    pub(super) candidates: PlaneSet,
    dealt: Vec<PlaneId>,
    /// LUNs that line up for their channels: the erases that count, when they took a write last, and their position in
    /// the order.
    lining_up: Vec<(u32, u64, u32, LunId)>,
}

impl Pool {
    /// Creates empty pools, with all LUNs idle. `allocation` is `None` if it is not dynamic.
    pub(crate) fn new(config: &DeviceConfig, allocation: Option<&Allocation>, array: &Array) -> Pool {
        let planes = config.total_planes();
        let mut idle = PlaneSet::new(planes);
        (0..planes).for_each(|position| idle.set(position, true));
        let empty = PlaneSet::new(planes);
        let pools = allocation.map_or(1, |allocation| allocation.pools()) as usize;
        let mut of_channel = vec![empty.clone(); config.geometry.channels as usize];
        let mut of_pool = vec![empty.clone(); pools];
        let members = if allocation.is_some() { planes } else { 0 };
        let (mut positions, mut of_plane) = (Table::new(members, 0), Table::new(members, 0));
        let mut in_order = vec![PlaneId(0); members as usize];
        if let Some(allocation) = allocation {
            for plane in (0..planes).map(PlaneId) {
                let (position, pool) = (allocation.order().position(plane), allocation.pool_of(plane));
                of_channel[array.channel_of(array.lun_of(plane)).index()].set(position, true);
                of_pool[pool as usize].set(position, true);
                (positions[plane], of_plane[plane]) = (position, pool);
                in_order[position as usize] = plane;
            }
        }
        Pool {
            lines: vec![Fifo::default(); pools],
            positions,
            planes: in_order,
            of_plane,
            idle,
            of_channel,
            of_pool,
            used: Table::new(planes, 0),
            uses: 0,
            shifts: vec![(0, 0); planes as usize],
            candidates: empty,
            dealt: Vec::with_capacity(planes as usize),
            lining_up: Vec::with_capacity(planes as usize),
        }
    }
}

impl Dispatch {
    /// Notes that a LUN takes operations again, or does not.
    #[inline]
    pub(super) fn note_idle(&mut self, array: &Array, lun: LunId, is_idle: bool) {
        if self.dynamic {
            for plane in array.planes_of(lun).map(PlaneId) {
                self.pool.idle.set(self.pool.positions[plane], is_idle);
            }
        }
    }

    /// Adds a write to the end of a pool, and offers it to idle LUNs unless LUNs are held back.
    pub(crate) fn pool_write(
        &mut self,
        transactions: &mut Transactions,
        tasks: &mut Tasks,
        pool: u32,
        id: TransactionId,
    ) {
        transactions[id].order = self.orders + if tasks.holds() { AFTER_HELD } else { 0 };
        self.orders += 1;
        self.pool.lines[pool as usize].push(transactions, id);
        if !tasks.holds() {
            tasks.push(Task::Offer(pool));
        }
    }

    /// Returns the oldest write that any plane of the pool of `plane` may take, or `NONE`.
    #[inline]
    pub(crate) fn first_of_pool(&self, plane: PlaneId) -> TransactionId {
        if self.dynamic { self.pool.lines[self.pool.of_plane[plane] as usize].first() } else { TransactionId::NONE }
    }

    /// Takes the oldest write of the pool of `plane` for that plane. Returns `NONE` if there is none.
    pub(super) fn take_from_pool(&mut self, transactions: &mut Transactions, plane: PlaneId) -> TransactionId {
        let id = self.pool.lines[self.pool.of_plane[plane] as usize].pop(transactions);
        if id.is_some() {
            transactions[id].plane = plane;
            self.pool.uses += 1;
            self.pool.used[plane] = self.pool.uses;
        }
        id
    }

    /// Takes the oldest write of the pool of `plane` for that plane, if it is of a temperature class.
    fn take_of_class(&mut self, transactions: &mut Transactions, plane: PlaneId, class: u8) -> TransactionId {
        match self.first_of_pool(plane) {
            id if id.is_some() && transactions[id].temperature == class => self.take_from_pool(transactions, plane),
            _ => TransactionId::NONE,
        }
    }

    /// Takes the next write that can fill the program of a write of this class to `plane`: from the queue of the plane,
    /// where operations of other kinds may wait between the writes, or from the pool. Returns `NONE` without one.
    #[inline]
    pub(crate) fn take_companion(
        &mut self,
        transactions: &mut Transactions,
        (lun, plane, rank): (LunId, PlaneId, u8),
        class: u8,
    ) -> TransactionId {
        let id = self.waiting.pop_suitable((lun, plane, rank), transactions, |transactions, id| {
            let Transaction { kind, temperature, .. } = transactions[id];
            kind == Kind::Write && temperature == class
        });
        if id.is_some() { id } else { self.take_of_class(transactions, plane, class) }
    }

    /// Returns the number of writes in the pool of `plane`, counted up to `most`.
    pub(super) fn pool_count(&self, transactions: &Transactions, plane: PlaneId, most: u32) -> u32 {
        let (mut id, mut count) = (self.first_of_pool(plane), 0);
        while id.is_some() && count < most {
            count += 1;
            id = transactions[id].next;
        }
        count
    }

    /// Puts a write that has lost its plane back to the front of a pool.
    pub(crate) fn put_back(&mut self, transactions: &mut Transactions, pool: u32, id: TransactionId) {
        self.pool.lines[pool as usize].push_front(transactions, id);
    }

    /// Returns `true` if a plane of a pool is among those that are `ready`.
    pub(crate) fn pool_has_room(&self, pool: u32, ready: &PlaneSet) -> bool {
        self.pool.of_pool[pool as usize].next_common(ready, 0).is_some()
    }

    /// Returns `true` if writes wait in any pool.
    pub(crate) fn has_pooled(&self) -> bool {
        self.pool.lines.iter().any(|writes| !writes.is_empty())
    }

    /// Returns the planes of which one is to be chosen for a write of a pool.
    pub(crate) fn candidates(&self) -> &PlaneSet {
        &self.pool.candidates
    }

    /// Offers the writes of all pools to idle LUNs.
    pub(super) fn offer_pools(&self, tasks: &mut Tasks) {
        (0..self.pool.lines.len() as u32).for_each(|pool| tasks.push(Task::Offer(pool)));
    }
}

/// What is saved: the turns of the planes.
impl Dispatch {
    /// Takes over what is saved of another device.
    pub(crate) fn copy_state(&mut self, other: &Dispatch) {
        self.pool.used.clone_from(&other.pool.used);
        self.pool.uses = other.pool.uses;
    }

    /// Writes when each plane took a write of its pool last.
    pub(crate) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.u64(self.pool.uses)?;
        self.pool.used.iter().try_for_each(|&used| out.u64(used))
    }

    /// Reads what [`Dispatch::save`] wrote.
    pub(crate) fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        self.pool.uses = input.count("writes placed")?;
        for used in &mut self.pool.used {
            *used = input.u64()?;
            if *used > self.pool.uses || *used >= MOST {
                return Err(input.damaged("a plane that was used in the future"));
            }
        }
        Ok(())
    }
}

/// Offers the writes of a pool to idle LUNs, in the order of the allocation.
// Inlined, it would slow the loop over all tasks.
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
        if let Some(plane) = b.choose(pool) {
            let lun = b.view().array.lun_of(plane);
            offer(b, lun);
            return b.parts().tasks.push(Task::Offer(pool));
        }
    }
    request_for_pool(b, pool);
}

/// Makes the planes of idle LUNs of idle channels the candidates: those with room if nothing is merged. Otherwise,
/// another plane of the LUN may take what is dealt to one.
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
    candidates.intersect_with(b.ready());
    b.parts().dispatch.pool.candidates = candidates;
}

/// Deals the writes of a pool to the planes of idle LUNs on idle channels, by the order of the allocation, and then
/// starts those: so that what goes to one die or chip goes in one command. With `controller.fill_timeout`, a die takes
/// a whole program unit: all of its planes that program together come before the next one in the order.
fn deal_pool(b: &mut impl Binder, pool: u32) {
    find_idle_planes(b);
    b.parts().dispatch.pool.dealt.clear();
    while !b.view().dispatch.pool.lines[pool as usize].is_empty() {
        let Some(named) = b.choose(pool) else { break };
        let plane = in_turn(b, named);
        deal(b, pool, named, plane);
        let dispatch = b.view().dispatch;
        if dispatch.filling.is_some() {
            let together = dispatch.merging.planes_together(plane);
            together.filter(|&other| other != plane).for_each(|other| deal(b, pool, other, other));
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

/// Deals the writes of one program to `plane`, in the turn of `named`, if it has room and can join the planes that were
/// dealt to.
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

/// Returns the plane that takes what the order deals to `named`. The first of a LUN is its plane that was used least
/// recently, and the others lie to that as they do in the order. An order alone would send nearly all to the planes
/// that come first in it, since a LUN that takes a write is not idle for the others; and planes that are not filled
/// alike have no pages with equal addresses to program together.
fn in_turn(b: &mut impl Binder, named: PlaneId) -> PlaneId {
    let View { dispatch, array, .. } = b.view();
    let lun = array.lun_of(named);
    let planes = array.planes_of(lun);
    let per_unit = (planes.end - planes.start) / array.units_per_lun();
    let units = array.units_per_lun();
    let digits = |plane: u32| ((plane - planes.start) / per_unit, (plane - planes.start) % per_unit);
    let own = digits(named.0);
    if !dispatch.pool.dealt.iter().any(|&other| array.lun_of(other) == lun) {
        let Some(first) = least_recently_used(b, lun) else { return named };
        let first = digits(first.0);
        b.parts().dispatch.pool.shifts[lun.index()] = (first.0 + units - own.0, first.1 + per_unit - own.1);
    }
    let shift = b.view().dispatch.pool.shifts[lun.index()];
    PlaneId(planes.start + (own.0 + shift.0) % units * per_unit + (own.1 + shift.1) % per_unit)
}

/// Returns the plane of `lun` with room that took a write least recently, of those whose next free block has the fewest
/// erases if the allocation goes by them.
fn least_recently_used(b: &impl Binder, lun: LunId) -> Option<PlaneId> {
    let View { dispatch, array, .. } = b.view();
    let ready = array.planes_of(lun).map(PlaneId).filter(|&plane| is_ready(b, plane));
    ready.min_by_key(|&plane| (b.erases_that_count(plane), dispatch.pool.used[plane]))
}

/// Returns `true` if a plane takes writes of its pool.
#[inline]
fn is_ready(b: &impl Binder, plane: PlaneId) -> bool {
    b.ready().contains(b.view().dispatch.pool.positions[plane])
}

/// Returns `true` if `lun` could take a write of its pool.
#[inline]
pub(super) fn has_ready_plane(b: &impl Binder, lun: LunId) -> bool {
    b.view().array.planes_of(lun).any(|plane| is_ready(b, PlaneId(plane)))
}

/// Returns `true` if some idle LUN has a plane with room.
#[inline]
pub(super) fn any_plane_is_idle(b: &impl Binder) -> bool {
    b.view().dispatch.pool.idle.next_common(b.ready(), 0).is_some()
}

/// Returns `true` if a write to `plane` could share a command with those dealt to its LUN so far.
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

/// Queues idle LUNs for their busy channels, for what is left in a pool: least recently used first, and by the order of
/// the allocation among equals. The first one that is granted its channel takes the oldest write.
fn request_for_pool(b: &mut impl Binder, pool: u32) {
    let dispatch = b.parts().dispatch;
    dispatch.pool.candidates.copy_from(&dispatch.pool.idle);
    keep_ready(b);
    let mut lining_up = std::mem::take(&mut b.parts().dispatch.pool.lining_up);
    let mut from = 0;
    while let Some(position) = b.view().dispatch.pool.candidates.next_from(from) {
        b.parts().dispatch.pool.candidates.set(position, false);
        from = position;
        let View { dispatch, array, .. } = b.view();
        let plane = dispatch.pool.planes[position as usize];
        if dispatch.pool.of_plane[plane] == pool {
            let lun = array.lun_of(plane);
            let planes = || array.planes_of(lun).map(PlaneId);
            let used = planes().map(|plane| dispatch.pool.used[plane]).max();
            let erases = planes().map(|plane| b.erases_that_count(plane)).min();
            lining_up.push((erases.unwrap_or_default(), used.unwrap_or_default(), position, lun));
        }
    }
    lining_up.sort_unstable();
    let Parts { dispatch, tasks, .. } = b.parts();
    lining_up.drain(..).for_each(|(.., lun)| tasks.push(Task::Start(lun)));
    dispatch.pool.lining_up = lining_up;
}

/// Gives the oldest write of its pool to an idle LUN.
fn offer(b: &mut impl Binder, lun: LunId) {
    let plane = choose_plane(b, lun);
    let Parts { dispatch, transactions, .. } = b.parts();
    let id = dispatch.take_from_pool(transactions, plane);
    dispatch.waiting.push(lun, plane, dispatch.rank_of_writes(), transactions, id);
    notify(b, lun);
}

/// Returns a plane with room of `lun`, for a write of the pool: the planes of a LUN take turns (see [`in_turn`]).
pub(super) fn choose_plane(b: &impl Binder, lun: LunId) -> PlaneId {
    let chosen = least_recently_used(b, lun);
    chosen.unwrap_or_else(|| unreachable!("a LUN takes from the pool only with a plane that has room"))
}
