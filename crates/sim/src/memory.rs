//! Large arrays, prefetching and fast division. Contains the only unsafe code of the core.
#![allow(unsafe_code)]

/// Returns `len` zeros, on huge pages if available. The maps of a device are accessed at random. With small pages, half
/// of the cache misses would be caused by address translation.
pub fn zeroed(len: usize) -> Vec<u32> {
    let array = vec![0u32; len];
    advise_huge_pages(array.as_ptr().cast_mut().cast(), len * size_of::<u32>());
    array
}

/// Returns `len` 64-bit zeros, like [`zeroed`].
pub fn zeroed_words(len: usize) -> Vec<u64> {
    let array = vec![0u64; len];
    advise_huge_pages(array.as_ptr().cast_mut().cast(), len * size_of::<u64>());
    array
}

#[cfg(target_os = "linux")]
fn advise_huge_pages(start: *mut std::ffi::c_void, bytes: usize) {
    use rustix::mm::{Advice, madvise};
    const PAGE: usize = 4096;
    const HUGE: usize = 2 << 20;
    if bytes < 2 * HUGE {
        return;
    }
    let skip = start.align_offset(PAGE);
    let length = (bytes - skip) & !(PAGE - 1);
    // SAFETY: the range lies within a live allocation owned by the caller, and this advice does not change its
    // contents. An error only means that huge pages are not available.
    let _ = unsafe { madvise(start.byte_add(skip), length, Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_: *mut std::ffi::c_void, _: usize) {}

/// Prefetches the cache line of `array[index]`, if the index is valid.
#[inline]
pub fn prefetch<T>(array: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if index < array.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is within the array, and a prefetch only affects the cache.
        unsafe { _mm_prefetch(array.as_ptr().add(index).cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}

/// Division by a number that is fixed when the simulation starts, implemented as a multiplication.
///
/// The reciprocal is 2^64 / divisor, rounded down, and the numerator is rounded up by one (Robison, "N-bit unsigned
/// division via N-bit multiply-add", ARITH 2005). Therefore 1 needs no special case. Let `d` be the divisor. The
/// product is smaller than `(n + 1) / d` by less than `(n + 1) / 2^64`. The quotient is exact while this error is at
/// most `1 / d`.
#[derive(Clone, Copy, Debug)]
pub struct Divider {
    reciprocal: u64,
    divisor: u32,
}

impl Divider {
    /// Divides by `divisor`, which must not be 0.
    #[inline]
    pub const fn new(divisor: u32) -> Divider {
        Divider { reciprocal: u64::MAX / divisor as u64, divisor }
    }

    /// Returns `n / divisor`.
    #[inline]
    pub const fn divide(self, n: u32) -> u32 {
        self.divide_long(n as u64) as u32
    }

    /// Returns `n / divisor` for longer numerators. Exact while `(n + 1) * divisor` fits in 64 bits.
    #[inline]
    pub const fn divide_long(self, n: u64) -> u64 {
        debug_assert!((n + 1).checked_mul(self.divisor as u64).is_some());
        ((self.reciprocal as u128 * (n + 1) as u128) >> 64) as u64
    }

    /// Returns `n / divisor` and `n % divisor`.
    #[inline]
    pub const fn divide_with_rest(self, n: u32) -> (u32, u32) {
        let quotient = self.divide(n);
        (quotient, n - quotient * self.divisor)
    }

    /// Returns the divisor.
    #[inline]
    pub const fn divisor(self) -> u32 {
        self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divides_exactly() {
        for divisor in [1, 2, 3, 5, 7, 64, 63, 252, 256, 1000, 65_535, 65_536, 1 << 31, u32::MAX] {
            let fast = Divider::new(divisor);
            for n in [0, 1, 2, divisor - 1, divisor, divisor.wrapping_add(1), u32::MAX - 1, u32::MAX]
                .into_iter()
                .chain((0..10_000).map(|i: u32| i.wrapping_mul(2_654_435_761)))
            {
                assert_eq!(fast.divide_with_rest(n), (n / divisor, n % divisor), "{n} / {divisor}");
                let long = u64::from(n) * (u64::from(u32::MAX) / u64::from(divisor)).min(1 << 20);
                assert_eq!(fast.divide_long(long), long / u64::from(divisor), "{long} / {divisor}");
            }
        }
    }

    #[test]
    fn large_arrays_are_zero() {
        let array = zeroed(3 << 20);
        assert!(array.iter().all(|&x| x == 0));
        prefetch(&array, 0);
        prefetch(&array, usize::MAX);
    }
}
