//! Writes of functional mode that have not been programmed.

use std::collections::VecDeque;

use crate::sim::id::{Lpn, TransactionId};
use crate::work::{Tasks, Transactions};

/// Contents that a functional write gives a unit: its first sector, the sector after its last, and a version.
pub type Contents = (u32, u32, u32);

/// Writes that have been placed and not programmed, and the operations for them.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    /// Operations.
    pub ops: Transactions,
    /// Tasks.
    pub tasks: Tasks,
    /// Queued operations, oldest first.
    pub queue: VecDeque<TransactionId>,
    /// Units of the writes, and their contents. There are only a few.
    pub writes: Vec<(TransactionId, Lpn, Option<Contents>)>,
    /// Unit that was written last, and the number of units up to it that follow one another.
    pub last: Option<(Lpn, u32)>,
}
