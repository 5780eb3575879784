//! Which waiting operation a die or a channel takes next.

pub mod lines;
pub mod waiting;

use crate::policy_family;

/// What an operation on the flash array is for; what scheduling may tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// A read that a host read waits for.
    HostRead,
    /// A read that a partial host write waits for.
    RmwRead,
    /// A program of host data.
    HostProgram,
    /// A read, program or erase of cleaning.
    Gc,
    /// Cleaning where the plane has hardly a free block left (`gc.hard_threshold`).
    UrgentGc,
    /// A summary page; the block's last.
    Summary,
    /// A read of a translation page.
    MapRead,
    /// A program of a translation page.
    MapProgram,
}

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = 8;
    /// All classes.
    pub const ALL: [Class; Class::COUNT] = [
        Class::HostRead,
        Class::RmwRead,
        Class::HostProgram,
        Class::Gc,
        Class::UrgentGc,
        Class::Summary,
        Class::MapRead,
        Class::MapProgram,
    ];

    /// Whether those who wait behind it wait for cleaning and the books of blocks, not for the host.
    #[inline]
    pub const fn is_cleaning(self) -> bool {
        matches!(self, Class::Gc | Class::UrgentGc | Class::Summary)
    }
}

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
