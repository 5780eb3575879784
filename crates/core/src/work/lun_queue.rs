//! View of the queue of a LUN for schedulers.

use super::Class;
use crate::sim::id::{LunId, PlaneId, TransactionId};
use crate::sim::time::Time;

/// Transaction that waits for a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Id of the transaction.
    pub id: TransactionId,
    /// Scheduling class.
    pub class: Class,
    /// Rank of the class, as [`SchedulerPolicy::rank`](crate::scheduler::SchedulerPolicy::rank) returns it.
    pub rank: u8,
    /// Plane, or `NONE` for a write of the pool that any plane of the LUN may take.
    pub plane: PlaneId,
    /// Time at which the transaction was queued for the LUN or the pool.
    pub since: Time,
    /// Tag of the request that waits for the transaction, if there is one.
    pub request: Option<u64>,
    /// Stream of the request that waits for the transaction, if there is one.
    pub stream: Option<u16>,
    /// True if a request with high priority waits for the transaction.
    pub high_priority: bool,
}

/// Transactions that wait for a LUN, in the order in which they were queued. Writes whose program failed, and writes
/// that waited for room in their plane, precede others of their class.
///
/// The oldest write of the pool (dynamic allocation) is included if a plane of the LUN has room for it.
#[derive(Clone, Copy, Debug)]
pub struct LunQueue<'a> {
    lun: LunId,
    queued: &'a [Queued],
}

impl<'a> LunQueue<'a> {
    /// Creates a view of the queue of `lun`.
    pub fn new(lun: LunId, queued: &'a [Queued]) -> LunQueue<'a> {
        LunQueue { lun, queued }
    }

    /// Returns the LUN.
    pub fn lun(&self) -> LunId {
        self.lun
    }

    /// Iterates over the transactions in the order of the queue.
    pub fn iter(&self) -> std::slice::Iter<'a, Queued> {
        self.queued.iter()
    }

    /// Returns the transactions as a slice, in the order of the queue.
    pub fn as_slice(&self) -> &'a [Queued] {
        self.queued
    }

    /// Returns the first transaction of `class`.
    pub fn first(&self, class: Class) -> Option<&'a Queued> {
        self.iter().find(|queued| queued.class == class)
    }

    /// Returns the number of transactions.
    pub fn len(&self) -> usize {
        self.queued.len()
    }

    /// Returns `true` if the queue is empty.
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
