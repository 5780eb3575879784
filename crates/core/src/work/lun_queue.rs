//! What waits for a LUN, as a scheduler sees it.

use super::Class;
use crate::sim::id::{LunId, PlaneId, TransactionId};
use crate::sim::time::Time;

/// A transaction that waits for a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The transaction.
    pub id: TransactionId,
    /// Scheduling class.
    pub class: Class,
    /// Rank of the class, as [`SchedulerPolicy::rank`](crate::scheduler::SchedulerPolicy::rank) returns it.
    pub rank: u8,
    /// Plane, or `NONE` for a write of the pool that any plane of the LUN may take.
    pub plane: PlaneId,
    /// Time at which it was queued for the LUN or the pool.
    pub since: Time,
    /// Tag of the request that waits for it, if there is one.
    pub request: Option<u64>,
    /// Stream of that request.
    pub stream: Option<u16>,
}

/// The transactions that wait for a LUN, in the order of their arrival. Those whose program failed, and those that
/// waited for room in their plane, come before others of their class.
///
/// With dynamic allocation, the oldest write of the pool is one of them while the LUN has a plane with room for it.
#[derive(Clone, Copy, Debug)]
pub struct LunQueue<'a> {
    lun: LunId,
    queued: &'a [Queued],
}

impl<'a> LunQueue<'a> {
    /// Creates the view of a queue.
    pub fn new(lun: LunId, queued: &'a [Queued]) -> LunQueue<'a> {
        LunQueue { lun, queued }
    }

    /// Returns the LUN.
    pub fn lun(&self) -> LunId {
        self.lun
    }

    /// Returns the transactions, the one that arrived first at the beginning.
    pub fn iter(&self) -> std::slice::Iter<'a, Queued> {
        self.queued.iter()
    }

    /// Returns the transactions as a slice, in the same order.
    pub fn as_slice(&self) -> &'a [Queued] {
        self.queued
    }

    /// Returns the transaction of `class` that arrived first.
    pub fn first(&self, class: Class) -> Option<&'a Queued> {
        self.iter().find(|queued| queued.class == class)
    }

    /// Returns the number of transactions.
    pub fn len(&self) -> usize {
        self.queued.len()
    }

    /// Returns `true` if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }
}

impl<'a> IntoIterator for &LunQueue<'a> {
    type Item = &'a Queued;
    type IntoIter = std::slice::Iter<'a, Queued>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
