//! Limits on the numbers of units, which follow from the sizes of ids and counts, and on quantities with a unit.

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
/// Maximum number of stripes or units of a burst of garbage collection, far above the free space of any plane.
pub const MAX_BURST: u32 = 1 << 30;

/// Name in the schema of the range of a quantity with a unit: the least and the greatest value, and possibly what to do
/// instead of giving a value beyond them.
pub const RANGE: &str = "x-range";
/// Range of the time of an operation. It is longer than any real one, and no sum of such times comes near the end of
/// the clock.
pub const TIME: [&str; 2] = ["0ps", "100s"];
/// Range of the delay of a throttle.
pub const DELAY: [&str; 3] = ["1ps", "100s", "to disable it, leave gc.throttle out"];
/// Range of the time of a data cycle. It is longer than any real one, and the largest program moves its data within
/// hours (`Time::LAST`).
pub const CYCLE: [&str; 2] = ["1ps", "10us"];
/// Range of the time of a command cycle.
pub const COMMAND_CYCLE: [&str; 2] = ["0ps", "10us"];
/// Range of the transfer rate of a bus.
pub const TRANSFER_RATE: [&str; 2] = ["100kT/s", "1000GT/s"];
/// Range of a bandwidth, which can be left out if it is unlimited.
pub const BANDWIDTH: [&str; 3] = ["1KB/s", "1000000GB/s", "for unlimited bandwidth, leave it out"];
/// Range of the clock frequency of a core.
pub const CLOCK: [&str; 2] = ["1kHz", "1000GHz"];
/// Range of the energy of an operation, or of a byte. It is far above any real one, and sums of a run are in range.
pub const ENERGY: [&str; 2] = ["0fJ", "1J"];
/// Range of the power of a part.
pub const POWER: [&str; 2] = ["0nW", "1000W"];
