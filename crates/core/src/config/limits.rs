//! Limits on the numbers of units, which follow from the sizes of ids and counts.

/// Maximum number of physical mapping units in a device. Ids are `u32`: the top bit marks units in a write slot, and
/// some ids are reserved for other marks.
pub const MAX_UNITS: u64 = (1 << 31) - (1 << 20);
/// Maximum number of each level of the array.
pub const MAX_COUNT: u32 = MAX_UNITS as u32 - 1;
/// Maximum number of mapping units in a block: counts of valid units are `u16`.
pub const MAX_UNITS_PER_BLOCK: u64 = u16::MAX as u64;
/// Maximum number of mapping units in a program: sets of them are one word.
pub const MAX_UNITS_PER_PROGRAM: u64 = 64;
/// Maximum number of write slots: the ids that [`MAX_UNITS`] leaves.
pub const MAX_SLOTS: u32 = 1 << 20;
