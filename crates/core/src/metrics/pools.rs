//! Units that were programmed in each pool of the allocation.

/// Units that were programmed in a pool in timed mode, since the device was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUnits {
    /// Number of units of host writes, including those of the device itself (journal, checkpoint).
    pub written: u64,
    /// Number of copied units: of garbage collection, wear leveling, and blocks whose programs failed.
    pub moved: u64,
}

impl PoolUnits {
    /// Returns the units since `earlier`.
    pub fn since(self, earlier: &PoolUnits) -> PoolUnits {
        PoolUnits { written: self.written - earlier.written, moved: self.moved - earlier.moved }
    }
}
