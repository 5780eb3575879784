//! Writes of units, as temperature policies see them.

/// Maximum number of classes. Each has an open block in every plane.
pub const MAX_CLASSES: u32 = 4;

/// A write of a unit by the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of the unit in the host's address space.
    pub lpn: u32,
    /// Sectors of the request that writes the unit, or sectors of the unit that the buffer writes back.
    pub sectors: u32,
    /// Stream of the workload; 0 for a write-back of the buffer, unless the policy is `hints`.
    pub stream: u16,
    /// Placement hint of the request; 0 for a write-back of the buffer, unless the policy is `hints`.
    pub placement: u16,
    /// True if the unit was written before, and not trimmed since.
    pub again: bool,
    /// Number of host writes before this one, in units.
    pub clock: u64,
}
