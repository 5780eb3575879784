//! States of blocks.

use super::region::Role;
use crate::metrics::counters::CopyCause;

/// Where a block is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockState {
    /// Erased.
    #[default]
    Free,
    /// A frontier is in it, or its last program has not ended.
    Open,
    /// Full: cleaning may choose it.
    Closed,
    /// Chosen by cleaning; its valid units are being moved.
    Victim,
    /// All moved; waits for its dependants, then for its erase.
    AwaitingErase,
    /// It belongs to the mapping scheme.
    Logical,
    /// A program of it has failed; its valid units are to be moved.
    Failed,
    /// It is never used again.
    Bad,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// Valid units.
    pub valid: u16,
    /// Reads of it, unfinished copies from it, and unfinished programs that supersede units of it: it is not erased
    /// while there are any (design decision 4).
    pub dependants: u16,
    /// Erases so far.
    pub erases: u32,
    /// Where it is in its life.
    pub state: BlockState,
    /// What it holds, from its opening to its erase.
    pub role: Role,
    /// Whether it is never erased and used again, when it is empty: a program or an erase of it has failed.
    pub failed: bool,
    /// Why its valid units are moved, if they are.
    pub moved_for: CopyCause,
}
