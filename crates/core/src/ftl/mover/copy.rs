//! Units that are copied.

use crate::sim::id::Ppn;

/// A unit that is to be copied.
///
/// Garbage collection holds all units of a block, so it does not store their places. These follow from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// The logical unit.
    pub lpn: u32,
    /// The place that it is read from.
    pub from: Ppn,
}

impl CopySource {
    /// Returns the copy that is programmed at a place.
    pub fn to(self, to: Ppn) -> Copy {
        Copy { lpn: self.lpn, from: self.from, to }
    }
}

/// A unit that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The logical unit.
    pub lpn: u32,
    /// Address that it is read from.
    pub from: Ppn,
    /// Address that it is programmed at, once it is bound.
    pub to: Ppn,
}
