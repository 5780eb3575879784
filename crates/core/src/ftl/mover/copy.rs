//! Units that are copied.

use crate::sim::id::Ppn;

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
