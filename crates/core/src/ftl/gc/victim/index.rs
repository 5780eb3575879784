//! Orders of closed blocks.

/// Order of closed blocks that the space maintains for a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Any order, to draw from by position.
    Array,
    /// The order of closing.
    Closing,
    /// The order of valid units. Blocks with equally many are in the order in which they reached that number.
    Valid,
    /// The order of valid units, in a list for each number of them. Any list can be read, but every change costs more
    /// than with [`Index::Valid`].
    Buckets,
    /// No order, in dense columns that another program reads without a copy.
    Columns,
}

impl Index {
    /// Returns the index to use if a policy reads all blocks in order, again and again. Sorting 2,048 ranks takes ten
    /// times longer than following a list.
    pub fn for_reading(self) -> Index {
        if self == Index::Valid { Index::Buckets } else { self }
    }
}
