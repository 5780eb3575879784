//! What a policy sees of a unit that the host writes.

/// Classes of units that a device tells apart at most: each has an open block in every plane.
pub const MAX_CLASSES: u32 = 4;

/// A unit that the host writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Its number in the host's address space.
    pub lpn: u32,
    /// Sectors of the request that writes it, or of the unit's own that the buffer writes out.
    pub sectors: u32,
    /// Stream of the workload; 0 for what the buffer writes out.
    pub stream: u16,
    /// Placement hint of the request; 0 for what the buffer writes out.
    pub placement: u16,
    /// Whether the unit was written before, and not trimmed since.
    pub again: bool,
    /// Host writes before this one, in units.
    pub clock: u64,
}
