//! Which waiting operation a die or a channel takes next.

pub mod external;

use crate::external::Fault;
use crate::policy_family;
use crate::sim::id::TransactionId;
use crate::sim::time::Time;
use crate::work::{Class, LunQueue};

/// Ranks of waiting operations.
pub const RANKS: usize = 4;

/// Ranks the operations that wait for a die, and the transfers that wait for a channel. The lowest rank goes first;
/// within a rank, first come, first served. Nothing that runs is interrupted.
pub trait SchedulerPolicy {
    /// The rank of operations of `class`, below [`RANKS`].
    fn rank(&self, class: Class) -> u8;

    /// Returns `true` if a die that waits for its channel to start an operation starts a more urgent one first that
    /// arrives meanwhile. Otherwise, it has begun.
    fn reconsiders(&self) -> bool {
        false
    }

    /// Returns `true` if [`SchedulerPolicy::pick`] chooses what a LUN starts. Otherwise the ranks decide, and no
    /// arrival is recorded. It is read once, when the device is built.
    fn looks(&self) -> bool {
        false
    }

    /// Chooses what a LUN starts next, among at least two transactions of `queue`. Returns `None` to leave the choice
    /// to the ranks.
    ///
    /// If the LUN has to wait for its channel, it is called again when the channel is granted. The queue has only the
    /// transactions of the rank for which the LUN has asked then.
    ///
    /// It may be called several times before its choice starts. What arrives while the LUN waits for its channel or
    /// works may change the choice. A transaction that turns out to need no operation, or for which there is no room,
    /// leaves the queue. The queue of the next call does not contain it. docs/model/timing.md says what is decided
    /// here.
    ///
    /// Any choice is safe: no transaction of the queue has to start before another one. A transaction that is always
    /// passed over starts when nothing else waits.
    fn pick(&mut self, _queue: &LunQueue, _now: Time) -> Option<TransactionId> {
        None
    }

    /// Returns the failure of a policy that came with another program.
    fn fault(&self) -> Option<&Fault> {
        None
    }
}

policy_family! {
    /// Which waiting operation goes first.
    Scheduler / SchedulerConfig: dyn SchedulerPolicy, or external {
        /// First come, first served.
        fcfs::Fcfs = "fcfs",
        /// Host reads go before all else.
        read_first::ReadFirst = "read-first",
        /// Reads go before writes, also those for partial writes, and garbage collection goes last.
        reads_before_writes::ReadsBeforeWrites = "reads-before-writes",
    }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig::Fcfs(Default::default())
    }
}
