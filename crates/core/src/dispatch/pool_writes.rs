//! Writes of pools, and the planes that have room for them (dynamic allocation).

use super::pool::AFTER_HELD;
use super::{Binder, Dispatch, View};
use crate::ftl::allocation::PlaneSet;
use crate::nand::array::Array;
use crate::sim::id::{LunId, PlaneId, TransactionId};
use crate::state::{COUNT_LIMIT, Reader, StateError, Writer};
use crate::work::{Kind, Task, Tasks, Transaction, Transactions};

impl Dispatch {
    /// Records that a LUN has become idle, or is no longer idle.
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

    /// Removes the oldest write of the pool of `plane` for that plane. Returns `NONE` if there is none.
    pub(super) fn take_from_pool(&mut self, transactions: &mut Transactions, plane: PlaneId) -> TransactionId {
        let id = self.pool.lines[self.pool.of_plane[plane] as usize].pop(transactions);
        if id.is_some() {
            self.pool.note_taken(transactions, plane, id);
        }
        id
    }

    /// Removes the oldest write of the pool of `plane` for that plane, if it is of a temperature class.
    pub(super) fn take_of_class(
        &mut self,
        transactions: &mut Transactions,
        plane: PlaneId,
        class: u8,
    ) -> TransactionId {
        match self.first_of_pool(plane) {
            id if id.is_some() && transactions[id].temperature == class => self.take_from_pool(transactions, plane),
            _ => TransactionId::NONE,
        }
    }

    /// Removes the next write that can fill the program of a write of this class to `plane`. It is from the queue of
    /// the plane, where other operations may wait between the writes, or from the pool. Returns `NONE` if there is
    /// none.
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

    /// Returns the number of writes in the pool of `plane`, but at most `max`.
    pub(super) fn pool_count(&self, transactions: &Transactions, plane: PlaneId, max: u32) -> u32 {
        let mut id = self.first_of_pool(plane);
        let mut count = 0;
        while id.is_some() && count < max {
            count += 1;
            id = transactions[id].next;
        }
        count
    }

    /// Returns a write that has lost its plane to the front of a pool.
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

    /// Offers the writes of all pools to idle LUNs.
    pub(super) fn offer_pools(&self, tasks: &mut Tasks) {
        (0..self.pool.lines.len() as u32).for_each(|pool| tasks.push(Task::Offer(pool)));
    }
}

/// Saved state: the use of planes by pools.
impl Dispatch {
    /// Copies the saved state of another device.
    pub(crate) fn copy_state(&mut self, other: &Dispatch) {
        self.pool.used.clone_from(&other.pool.used);
        self.pool.uses = other.pool.uses;
    }

    /// Writes the time at which each plane last took a write of its pool, counted in writes.
    pub(crate) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.u64(self.pool.uses)?;
        self.pool.used.iter().try_for_each(|&used| out.u64(used))
    }

    /// Reads what [`Dispatch::save`] wrote.
    pub(crate) fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        self.pool.uses = input.count("writes placed")?;
        for used in &mut self.pool.used {
            *used = input.u64()?;
            if *used > self.pool.uses || *used >= COUNT_LIMIT {
                return Err(input.damaged("a plane whose last use is in the future"));
            }
        }
        Ok(())
    }
}

/// Returns the plane of `lun` and of a pool that has room and took a write least recently. If the allocation considers
/// erases, only planes whose next free block has the fewest erases are eligible.
pub(super) fn least_recently_used(b: &impl Binder, lun: LunId, pool: u32) -> Option<PlaneId> {
    let View { dispatch, array, ftl, .. } = b.view();
    let ready = dispatch.pool.planes_in(array, lun, pool).map(PlaneId).filter(|&plane| is_ready(b, plane));
    ready.min_by_key(|&plane| (ftl.erases_that_count(plane), dispatch.pool.used[plane]))
}

/// Returns `true` if a plane takes writes of its pool.
#[inline]
pub(super) fn is_ready(b: &impl Binder, plane: PlaneId) -> bool {
    let View { dispatch, ftl, .. } = b.view();
    ftl.ready().contains(dispatch.pool.positions[plane])
}

/// Returns `true` if `lun` could take a write of a pool.
#[inline]
pub(super) fn has_ready_plane(b: &impl Binder, lun: LunId, pool: u32) -> bool {
    let View { dispatch, array, .. } = b.view();
    dispatch.pool.planes_in(array, lun, pool).any(|plane| is_ready(b, PlaneId(plane)))
}

/// Returns the pool of `lun` whose oldest write is `id`, if there is one.
pub(super) fn pool_before(View { dispatch, array, .. }: View, lun: LunId, id: TransactionId) -> Option<u32> {
    if !dispatch.dynamic {
        return None;
    }
    dispatch.pool.of_lun(array, lun).find(|&pool| dispatch.pool.lines[pool as usize].first() == id)
}

/// Returns `true` if an idle LUN has a plane with room.
#[inline]
pub(super) fn any_plane_is_idle(b: &impl Binder) -> bool {
    let View { dispatch, ftl, .. } = b.view();
    dispatch.pool.idle.next_common(ftl.ready(), 0).is_some()
}

/// Returns a plane of `lun` with room for a write of a pool. The planes of a LUN take turns (see `offer.rs`).
pub(super) fn choose_plane(b: &impl Binder, lun: LunId, pool: u32) -> PlaneId {
    let chosen = least_recently_used(b, lun, pool);
    chosen.unwrap_or_else(|| unreachable!("no plane of the LUN has room for a write of the pool"))
}
