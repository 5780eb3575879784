//! Queue state for schedulers that look.

use crate::sim::id::TransactionId;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::Queued;

/// Queue state for a scheduler that looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looking {
    /// By transaction: time at which it was queued last.
    pub(crate) since: Table<TransactionId, Time>,
    /// Room to work in: what waits, with the key by which it is sorted and its position among equal keys.
    pub(crate) keyed: Vec<(u64, u32, Queued)>,
    pub(crate) queue: Vec<Queued>,
}
