//! Simulated time: picoseconds since the first request.

use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a span of it, in integer picoseconds.
///
/// Picoseconds because 4 KiB at 30 GB/s take 136.5 ns: whole nanoseconds would bias the bandwidth by 0.4 %.
/// 64 bits hold 213 days; longer spans are refused where they enter (traces, options). Never a float.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The start of the simulation.
    pub const ZERO: Time = Time(0);
    /// Later than any event: "never".
    pub const NEVER: Time = Time(u64::MAX);
    /// The latest time at which something may be begun: a day and a half before the end of the clock, longer than any
    /// operation takes.
    pub const LAST: Time = Time(u64::MAX - (1 << 57));

    /// From whole nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }

    /// From whole microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }

    /// In picoseconds.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// In microseconds, for reports only.
    #[inline]
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// In seconds, for reports only.
    #[inline]
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `span` later, [`Time::NEVER`] where that would lie beyond the end of the clock: for sums that no event checks on
    /// their way.
    #[inline]
    pub fn later(self, span: Time) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// The span from `earlier` to `self`, zero if it would be negative.
    #[inline]
    pub fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

/// The time to move `bytes` at `bytes_per_second`: rounded up once, never per byte (design decision 7).
#[inline]
pub const fn transfer_time(bytes: u64, bytes_per_second: u64) -> Time {
    const SECOND: u64 = 1_000_000_000_000;
    // What fits in 64 bits is divided in them: the longer division takes several times as long.
    if let Some(product) = bytes.checked_mul(SECOND) {
        return Time(product.div_ceil(bytes_per_second));
    }
    let ps = (bytes as u128 * SECOND as u128).div_ceil(bytes_per_second as u128);
    if ps < u64::MAX as u128 { Time(ps as u64) } else { Time::NEVER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_round_up_once() {
        assert_eq!(transfer_time(4096, 40_000_000), Time::from_ns(102_400));
        // 4096 B at 667 MB/s is 6140.9295... ns; per-byte rounding to 1.5 ns would give 6144.
        assert_eq!(transfer_time(4096, 667_000_000), Time(6_140_930));
        assert_eq!(transfer_time(1, 3), Time(333_333_333_334));
        assert_eq!(transfer_time(0, 3), Time::ZERO);
        assert_eq!(transfer_time(1 << 25, 1_000_000_000_000), Time(1 << 25));
        assert_eq!(transfer_time(u64::MAX, 1), Time::NEVER);
    }
}
