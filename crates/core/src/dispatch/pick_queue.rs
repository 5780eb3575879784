//! Queue state for schedulers that pick transactions.

use crate::sim::id::TransactionId;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::Queued;

/// Queue state for a scheduler that picks transactions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picking {
    /// Time at which each transaction was last queued.
    pub(super) since: Table<TransactionId, Time>,
    /// Scratch space: waiting transactions, each with its sort key and its position among equal keys.
    pub(super) keyed: Vec<(u64, u32, Queued)>,
    pub(super) queue: Vec<Queued>,
}

impl Picking {
    /// Records the time at which a transaction was queued.
    pub(crate) fn note_arrival(&mut self, id: TransactionId, now: Time) {
        *self.since.entry(id) = now;
    }
}
