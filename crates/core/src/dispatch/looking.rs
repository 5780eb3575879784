//! Queue state for schedulers that look.

use crate::sim::id::TransactionId;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::Queued;

/// Queue state for a scheduler that looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looking {
    /// Time at which each transaction was queued last.
    pub(super) since: Table<TransactionId, Time>,
    /// Room to work in: what waits, with the key by which it is sorted and its position among equal keys.
    pub(super) keyed: Vec<(u64, u32, Queued)>,
    pub(super) queue: Vec<Queued>,
}

impl Looking {
    /// Notes that a transaction waits from now on.
    pub(crate) fn note_arrival(&mut self, id: TransactionId, now: Time) {
        *self.since.entry(id) = now;
    }
}
