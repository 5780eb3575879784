//! States of blocks.

use super::region::Role;
use crate::metrics::counters::CopyCause;

/// State of a block in its life cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockState {
    /// Erased.
    #[default]
    Free,
    /// A frontier is in the block, or its last program has not ended.
    Open,
    /// Full: garbage collection may choose it.
    Closed,
    /// Chosen by garbage collection; its valid units are being moved.
    Victim,
    /// All valid units have been read: waits for its dependents, then for its erase.
    AwaitingErase,
    /// Owned by the mapping scheme.
    Logical,
    /// A program of the block has failed; its valid units are to be moved.
    Failed,
    /// Never used again.
    Bad,
    /// Full, and never collected again, because it has reached its endurance (`faults.wear_out = "exclude"`).
    WornOut,
}

/// State of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// Number of valid units.
    pub valid: u16,
    /// Number of reads of the block, unfinished copies from it, and unfinished programs that replace units of it. The
    /// block is not erased while there are any (design decision 4).
    pub dependents: u16,
    /// Number of erases so far.
    pub erases: u32,
    /// Number of units with valid data that were programmed since the device was created or loaded.
    pub written: u32,
    /// State in the life cycle.
    pub state: BlockState,
    /// Contents, from its opening to its erase.
    pub role: Role,
    /// True if a program or an erase of the block has failed, so that it is never used again once it is empty.
    pub failed: bool,
    /// Reason for which its valid units are moved.
    pub moved_for: CopyCause,
}

/// Times of the last changes of a block, in host writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Age {
    /// Time of its closing.
    pub closed: u64,
    /// Time at which one of its units last became invalid, or of its closing.
    pub changed: u64,
}
