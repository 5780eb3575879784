//! Accesses to objects, and the operations on the device that follow from them.

use crate::sim::request::Operation;
use crate::sim::source::ObjectCounts;
use crate::sim::time::Time;

/// Number of bytes of a block, in which placements allocate space.
pub const BLOCK: u64 = 4096;

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read of an object. A miss may write it.
    Get,
    /// Write of an object.
    Set,
    /// Removal of an object.
    Delete,
}

/// An access to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Time since the first access.
    pub at: Time,
    /// Kind.
    pub kind: Kind,
    /// Key, or a hash of it.
    pub key: u64,
    /// Size in bytes. 0 if the access does not give it.
    pub size: u64,
}

/// An operation on blocks of the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Operation.
    pub operation: Operation,
    /// First block.
    pub start: u64,
    /// Number of blocks, at least 1.
    pub blocks: u64,
}

/// Operations of an access, and the counters of the trace.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Operations in their order.
    pub steps: Vec<Step>,
    /// Counters.
    pub counts: ObjectCounts,
}

impl Effects {
    /// Adds an operation.
    pub fn add(&mut self, operation: Operation, start: u64, blocks: u64) {
        self.steps.push(Step { operation, start, blocks });
    }
}

/// A placement of objects.
pub trait Placement: std::fmt::Debug {
    /// Reads an object, and returns its size, or `None` on a miss.
    fn get(&mut self, key: u64, effects: &mut Effects) -> Option<u64>;

    /// Writes an object of `size` bytes, at least 1. Returns `false` if it is too large.
    fn set(&mut self, key: u64, size: u64, effects: &mut Effects) -> bool;

    /// Removes an object, and returns `true` if there was one.
    fn delete(&mut self, key: u64, effects: &mut Effects) -> bool;

    /// Returns the number of objects and of their bytes.
    fn stored(&self) -> (u64, u64);
}
