//! How unevenly requests come: their numbers in windows of time.

/// The windows, in ps: 1 ms to 1000 s.
pub const WINDOWS: [u64; 7] = [
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
    1_000_000_000_000,
    10_000_000_000_000,
    100_000_000_000_000,
    1_000_000_000_000_000,
];

/// The numbers of requests in windows of one length, laid end to end from the first request on.
#[derive(Clone, Copy, Debug, Default)]
struct Windows {
    /// The window that is being filled, and what it holds.
    current: u64,
    count: u64,
    /// Over the windows before it: the sum of the squares, and the greatest.
    squares: f64,
    most: u64,
    /// Requests in the windows before it.
    before: u64,
}

/// Watches the times of requests go by, in order of time.
#[derive(Debug, Default)]
pub struct Bursts {
    windows: [Windows; WINDOWS.len()],
}

/// How uneven a window's numbers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burstiness {
    /// Length of the windows in ps.
    pub window: u64,
    /// Whole windows.
    pub windows: u64,
    /// Variance of the numbers over their mean: the index of dispersion, 1 for a Poisson process.
    pub dispersion: f64,
    /// The greatest number over the mean.
    pub peak_to_mean: f64,
}

impl Bursts {
    /// Takes the time of a request in, since the first one; times do not decrease.
    pub fn add(&mut self, ps: u128) {
        for (length, windows) in WINDOWS.iter().zip(&mut self.windows) {
            let window = u64::try_from(ps / u128::from(*length)).unwrap_or(u64::MAX);
            if window > windows.current {
                windows.squares += windows.count as f64 * windows.count as f64;
                windows.most = windows.most.max(windows.count);
                windows.before += windows.count;
                (windows.current, windows.count) = (window, 0);
            }
            windows.count += 1;
        }
    }

    /// Of each window of which at least ten have gone by; the last, which has not ended, is left out.
    pub fn finish(&self) -> Vec<Burstiness> {
        let of = |(length, windows): (&u64, &Windows)| {
            let number = windows.current as f64;
            let mean = windows.before as f64 / number;
            (windows.current >= 10 && windows.before > 0).then(|| Burstiness {
                window: *length,
                windows: windows.current,
                dispersion: (windows.squares / number - mean * mean).max(0.0) / mean,
                peak_to_mean: windows.most as f64 / mean,
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
        // Three requests in the first millisecond of each two, and one that ends the last: 10 windows.
        for n in 0..5_u128 {
            (0..3).for_each(|k| bursts.add(n * 2_000_000_000 + k * 1000));
        }
        bursts.add(10_000_000_000);
        // 3 and 0 by turns: mean 1.5, variance 2.25.
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
