//! Which waiting operation a die or a channel takes next.

pub mod waiting;

use crate::policy_family;
use crate::work::Class;

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
}

policy_family! {
    /// Which waiting operation goes first.
    Scheduler / SchedulerConfig: dyn SchedulerPolicy {
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
