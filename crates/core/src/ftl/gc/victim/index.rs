//! Orders of closed blocks.

/// Order of closed blocks that the space maintains for a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Any order, to draw from by position.
    Array,
    /// The order of closing.
    List,
    /// By valid units, and of equally many the one first that has had so few for the longest time.
    Buckets,
}
