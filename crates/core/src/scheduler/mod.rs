//! Schedulers: choose the waiting operation that a LUN or a channel takes next.

pub mod external;

use crate::external::Cause;
use crate::policy_family;
use crate::sim::id::TransactionId;
use crate::sim::time::Time;
use crate::work::{Class, LunQueue};

/// Number of ranks of waiting operations.
pub const RANKS: usize = 4;

/// Policy that ranks the operations that wait for a LUN, and the transfers that wait for a channel. The lowest rank
/// goes first. Within a rank, first come, first served. Running operations are not interrupted.
pub trait SchedulerPolicy {
    /// Returns the rank of operations of `class`, below `RANKS`.
    fn rank(&self, class: Class) -> u8;

    /// Returns `true` if a LUN that waits for its channel can start a more urgent operation that arrives during the
    /// wait. Otherwise, its choice is final.
    fn reconsiders(&self) -> bool {
        false
    }

    /// Returns `true` if [`SchedulerPolicy::pick`] chooses the operation that a LUN starts. Otherwise the ranks decide,
    /// and arrival times are not recorded. The value is read once, when the device is built.
    fn picks(&self) -> bool {
        false
    }

    /// Chooses the transaction that a LUN starts next, among at least two in `queue`. Returns `None` to leave the
    /// choice to the ranks.
    ///
    /// If the LUN has to wait for its channel, this method is called again when the channel is granted. The queue then
    /// has only the transactions of the rank with which the LUN requested the channel.
    ///
    /// This method may be called several times before its choice starts. Transactions that arrive while the LUN waits
    /// for its channel or works may change the choice. A transaction that needs no operation after all, or that has no
    /// room, leaves the queue and is not in the next call. See docs/model/timing.md.
    ///
    /// Any choice is safe, because no transaction in the queue has to start before another one. A transaction that is
    /// never chosen starts when the queue holds nothing else.
    fn pick(&mut self, _queue: &LunQueue, _now: Time) -> Option<TransactionId> {
        None
    }

    /// Returns the error of an external policy that has failed. The policy is not called again.
    fn error(&self) -> Option<&Cause> {
        None
    }
}

policy_family! {
    /// Policy that chooses which waiting operation goes first.
    Scheduler / SchedulerConfig: dyn SchedulerPolicy, or external {
        /// First come, first served.
        fcfs::Fcfs = "fcfs",
        /// Host reads take priority over all other operations.
        read_first::ReadFirst = "read-first",
        /// Reads, also for partial writes, take priority over writes. Garbage collection comes last.
        reads_before_writes::ReadsBeforeWrites = "reads-before-writes",
        /// Operations of requests with high priority start first at a LUN. All others are ranked as in `fcfs`.
        priority_first::PriorityFirst = "priority-first",
    }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig::Fcfs(Default::default())
    }
}
