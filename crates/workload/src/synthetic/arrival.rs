//! Arrivals of the requests of an open-loop job: fio's `rate`, `rate_iops` and `rate_process`.
//!
//! Both processes count in integer picoseconds, and carry the remainder of each gap into the next one. The deviation
//! from the formula is therefore below a picosecond after any number of requests.

use crate::sim::rng::Rng;
use crate::sim::time::Time;

/// Picoseconds per second.
const SECOND: u64 = 1_000_000_000_000;

/// Distribution of the gaps between arrivals, fio's `rate_process`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    /// Equal gaps. The first request arrives at 0.
    #[default]
    Linear,
    /// Exponential gaps, that is, a Poisson process. The first request arrives after the first gap.
    Poisson,
}

impl Process {
    /// Returns the value of `rate_process` for this process.
    pub const fn name(self) -> &'static str {
        match self {
            Process::Linear => "linear",
            Process::Poisson => "poisson",
        }
    }
}

/// Arrival times of requests, in order.
#[derive(Clone, Debug)]
pub struct Arrivals {
    due: Option<Time>,
    gaps: Gaps,
}

/// Gaps between arrivals.
#[derive(Clone, Debug)]
enum Gaps {
    /// Time proportional to the transferred amount: `n * 10^12 / rate` after `n` units, rounded to the nearest
    /// picosecond, halves up.
    Linear {
        /// Rounding error of the last arrival plus a half, in units of `1 / rate` picoseconds.
        part: u64,
        /// Units per second.
        rate: u64,
        /// True if a unit is a byte, false if it is a request.
        bytes: bool,
    },
    /// Exponential gaps.
    Poisson {
        /// Fraction of a picosecond that was cut off at the last arrival, below 1.
        part: f64,
        /// Mean gap in picoseconds.
        mean: f64,
        /// Random numbers for the gaps.
        rng: Rng,
    },
}

impl Arrivals {
    /// Creates arrivals at `rate` requests per second, from 1 to 10^12. `rng` is used only by [`Process::Poisson`].
    pub fn new(process: Process, rate: u64, rng: Rng) -> Arrivals {
        debug_assert!((1..=SECOND).contains(&rate));
        match process {
            Process::Linear => {
                Arrivals { due: Some(Time::ZERO), gaps: Gaps::Linear { part: rate / 2, rate, bytes: false } }
            }
            Process::Poisson => Arrivals::poisson(SECOND as f64 / rate as f64, rng),
        }
    }

    /// Creates arrivals at `rate` bytes per second. Each gap is the time that the bytes of the earlier request take.
    /// [`Process::Poisson`] lets requests arrive as often as if each had `smallest` bytes, as in fio.
    pub fn by_bytes(process: Process, rate: u64, smallest: u64, rng: Rng) -> Arrivals {
        match process {
            Process::Linear => {
                Arrivals { due: Some(Time::ZERO), gaps: Gaps::Linear { part: rate / 2, rate, bytes: true } }
            }
            Process::Poisson => Arrivals::poisson(SECOND as f64 * smallest as f64 / rate as f64, rng),
        }
    }

    fn poisson(mean: f64, rng: Rng) -> Arrivals {
        let mut arrivals = Arrivals { due: Some(Time::ZERO), gaps: Gaps::Poisson { part: 0.0, mean, rng } };
        arrivals.advance(0);
        arrivals
    }

    /// Returns the next arrival, or `None` if it exceeds the range of [`Time`] (213 days).
    #[inline]
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Advances to the next arrival, after a request of `size` bytes.
    #[inline]
    pub fn advance(&mut self, size: u64) {
        let Some(Time(due)) = self.due else { return };
        let gap = match &mut self.gaps {
            Gaps::Linear { part, rate, bytes: false } => {
                let sum = *part + SECOND % *rate;
                let carry = u64::from(sum >= *rate);
                *part = sum - carry * *rate;
                Some(SECOND / *rate + carry)
            }
            Gaps::Linear { part, rate, bytes: true } => {
                let total = u128::from(size) * u128::from(SECOND) + u128::from(*part);
                *part = (total % u128::from(*rate)) as u64;
                u64::try_from(total / u128::from(*rate)).ok()
            }
            Gaps::Poisson { part, mean, rng } => {
                let gap = rng.exponential(*mean) + *part;
                let whole = gap as u64;
                *part = gap - whole as f64;
                Some(whole)
            }
        };
        self.due = gap.and_then(|gap| due.checked_add(gap)).map(Time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(process: Process, rate: u64, count: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(process, rate, Rng::new(7, "test"));
        let mut next = || {
            let due = arrivals.due().unwrap().ps();
            arrivals.advance(4096);
            due
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn linear_arrivals_are_exact_and_do_not_drift() {
        for rate in [1, 2, 3, 7, 999, 1_000, 300_000, 999_983, 1_000_000, 333_333_333_333, SECOND - 1, SECOND] {
            for (i, at) in arrivals(Process::Linear, rate, 10_000).into_iter().enumerate() {
                let exact = (2 * i as u128 * u128::from(SECOND) + u128::from(rate)) / (2 * u128::from(rate));
                assert_eq!(u128::from(at), exact, "request {i} at {rate}/s");
            }
        }
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_variance_of_an_exponential() {
        for rate in [1_000, 70_000, 1_000_000] {
            let mean = SECOND as f64 / rate as f64;
            let times = arrivals(Process::Poisson, rate, 200_001);
            let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64 / mean).collect();
            let count = gaps.len() as f64;
            let average = gaps.iter().sum::<f64>() / count;
            let variance = gaps.iter().map(|g| (g - average) * (g - average)).sum::<f64>() / count;
            let long = gaps.iter().filter(|g| **g > 1.0).count() as f64 / count;
            // Standard errors: 0.0022 for the mean, 0.0063 for the variance, 0.0011 for the share above the mean, which
            // is 1/e.
            assert!((average - 1.0).abs() < 0.01, "mean {average}");
            assert!((variance - 1.0).abs() < 0.03, "variance {variance}");
            assert!((long - 0.367_879).abs() < 0.005, "share of gaps above the mean {long}");
        }
    }

    #[test]
    fn poisson_gaps_below_a_picosecond_keep_the_rate() {
        // Truncating each gap to whole picoseconds would lose more than half of the time.
        let times = arrivals(Process::Poisson, SECOND, 100_001);
        assert!(times[100_000].abs_diff(100_000) < 1_500, "{}", times[100_000]);
    }

    #[test]
    fn bytes_take_their_time() {
        let mut arrivals = Arrivals::by_bytes(Process::Linear, 3_000, 512, Rng::new(1, "test"));
        // 512 B at 3000 B/s take 0.170666... s, and 1024 B take twice that. The sum has no rounding error.
        let mut at = Vec::new();
        for size in [512, 512, 1024, 1024, 512] {
            at.push(arrivals.due().unwrap().ps());
            arrivals.advance(size);
        }
        assert_eq!(at, [0, 170_666_666_667, 341_333_333_333, 682_666_666_667, 1_024_000_000_000]);
    }

    #[test]
    fn poisson_by_bytes_counts_the_smallest() {
        let arrivals = |arrivals: &mut Arrivals| {
            (0..100).for_each(|_| arrivals.advance(9999));
            arrivals.due()
        };
        let mut bytes = Arrivals::by_bytes(Process::Poisson, 4096 * 1000, 4096, Rng::new(1, "test"));
        let mut requests = Arrivals::new(Process::Poisson, 1000, Rng::new(1, "test"));
        assert_eq!(arrivals(&mut bytes), arrivals(&mut requests));
    }

    #[test]
    fn arrivals_end_where_time_does() {
        let due = Some(Time(u64::MAX - 1));
        let mut linear = Arrivals { due, gaps: Gaps::Linear { part: 0, rate: 1, bytes: false } };
        assert_eq!(linear.due(), due);
        linear.advance(1);
        assert_eq!(linear.due(), None);
        let mut bytes = Arrivals::by_bytes(Process::Linear, 1, 512, Rng::new(1, "test"));
        bytes.advance(1 << 40);
        assert_eq!(bytes.due(), None);
        let gaps = Gaps::Poisson { part: 0.0, mean: 1e12, rng: Rng::new(1, "test") };
        let mut poisson = Arrivals { due, gaps };
        poisson.advance(1);
        assert_eq!(poisson.due(), None);
    }
}
