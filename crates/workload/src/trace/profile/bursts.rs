//! Burstiness of arrivals: numbers of requests in windows of time.

/// Lengths of the windows in ps: 1 ms to 1000 s.
pub const WINDOWS: [u64; 7] = [
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
    1_000_000_000_000,
    10_000_000_000_000,
    100_000_000_000_000,
    1_000_000_000_000_000,
];

/// Numbers of requests in consecutive windows of one length, starting at the first request.
#[derive(Clone, Copy, Debug, Default)]
struct Windows {
    /// Current window, and number of requests in it.
    current: u64,
    count: u64,
    /// Sum of squares and maximum of the numbers in the windows before the current one.
    squares: f64,
    max_count: u64,
    /// Number of requests in the windows before the current one.
    before: u64,
}

/// Collects the times of requests, in order of time.
#[derive(Debug, Default)]
pub struct Bursts {
    windows: [Windows; WINDOWS.len()],
}

/// Burstiness for windows of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burstiness {
    /// Length of the windows in ps.
    pub window: u64,
    /// Number of complete windows.
    pub windows: u64,
    /// Index of dispersion: variance of the numbers divided by their mean. 1 for a Poisson process.
    pub dispersion: f64,
    /// Maximum number divided by the mean.
    pub peak_to_mean: f64,
}

impl Bursts {
    /// Adds the time of a request since the first one. Times must not decrease.
    pub fn add(&mut self, ps: u128) {
        for (length, windows) in WINDOWS.iter().zip(&mut self.windows) {
            let window = u64::try_from(ps / u128::from(*length)).unwrap_or(u64::MAX);
            if window > windows.current {
                windows.squares += windows.count as f64 * windows.count as f64;
                windows.max_count = windows.max_count.max(windows.count);
                windows.before += windows.count;
                (windows.current, windows.count) = (window, 0);
            }
            windows.count += 1;
        }
    }

    /// Returns the burstiness for each length of which at least ten windows are complete. The last, incomplete window
    /// is ignored.
    pub fn finish(&self) -> Vec<Burstiness> {
        let of = |(length, windows): (&u64, &Windows)| {
            let number = windows.current as f64;
            let mean = windows.before as f64 / number;
            (windows.current >= 10 && windows.before > 0).then(|| Burstiness {
                window: *length,
                windows: windows.current,
                dispersion: (windows.squares / number - mean * mean).max(0.0) / mean,
                peak_to_mean: windows.max_count as f64 / mean,
            })
        };
        WINDOWS.iter().zip(&self.windows).filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_windows_by_hand() {
        let mut bursts = Bursts::default();
        // Three requests in the first of every two milliseconds, and one that ends the last window: 10 windows.
        for n in 0..5_u128 {
            (0..3).for_each(|k| bursts.add(n * 2_000_000_000 + k * 1000));
        }
        bursts.add(10_000_000_000);
        // 3 and 0 alternate: mean 1.5, variance 2.25.
        let expected = Burstiness { window: WINDOWS[0], windows: 10, dispersion: 1.5, peak_to_mean: 2.0 };
        assert_eq!(bursts.finish(), [expected]);
    }

    #[test]
    fn regular_requests_have_no_dispersion() {
        let mut bursts = Bursts::default();
        (0..2000).for_each(|n| bursts.add(n * 100_000_000));
        let found = bursts.finish();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|one| one.dispersion == 0.0 && one.peak_to_mean == 1.0), "{found:?}");
    }
}
