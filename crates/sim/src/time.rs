//! Simulated time: picoseconds since the first request.

use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a span, in integer picoseconds.
///
/// Nanoseconds would be too coarse: 4 KiB at 30 GB/s take 136.5 ns, so the bandwidth would be wrong by 0.4%. 64 bits
/// are sufficient for 213 days. Longer spans are rejected on input (traces, options). Time is never a floating-point
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The start of the simulation.
    pub const ZERO: Time = Time(0);
    /// A time later than any event.
    pub const NEVER: Time = Time(u64::MAX);
    /// Latest time at which an operation may start: a day and a half before the end of the clock, which is longer than
    /// any operation takes.
    pub const LAST: Time = Time(u64::MAX - (1 << 57));

    /// Converts from whole nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }

    /// Converts from whole microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }

    /// Returns the time in picoseconds.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Converts to microseconds, for reports only.
    #[inline]
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Converts to seconds, for reports only.
    #[inline]
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// Returns the time `span` later, or [`Time::NEVER`] on overflow. For intermediate sums that no event checks.
    #[inline]
    pub fn later(self, span: Time) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// Returns the span from `earlier` to `self`, or zero if it would be negative.
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

/// Returns the time to transfer `bytes` at `bytes_per_second`, rounded up once and not per byte (design decision 7).
#[inline]
pub const fn transfer_time(bytes: u64, bytes_per_second: u64) -> Time {
    const SECOND: u64 = 1_000_000_000_000;
    // Use 64-bit division if possible, because the longer division takes several times as long.
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
        // 4096 B at 667 MB/s take 6140.9295... ns. Rounding each byte to 1.5 ns would give 6144 ns.
        assert_eq!(transfer_time(4096, 667_000_000), Time(6_140_930));
        assert_eq!(transfer_time(1, 3), Time(333_333_333_334));
        assert_eq!(transfer_time(0, 3), Time::ZERO);
        assert_eq!(transfer_time(1 << 25, 1_000_000_000_000), Time(1 << 25));
        assert_eq!(transfer_time(u64::MAX, 1), Time::NEVER);
    }
}
