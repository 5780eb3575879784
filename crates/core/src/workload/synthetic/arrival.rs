//! When the requests of an open-loop job arrive: fio's `rate_iops` and `rate_process`.
//!
//! Both processes count in integer picoseconds and carry what is left of each gap into the next, so that after any
//! number of requests an arrival is within a picosecond of where the formula puts it.

use crate::sim::rng::Rng;
use crate::sim::time::Time;

/// Picoseconds in a second.
const SECOND: u64 = 1_000_000_000_000;

/// fio's `rate_process`: how the gaps between arrivals are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    /// Equal gaps; the first request at 0.
    #[default]
    Linear,
    /// Exponential gaps, that is, a Poisson process; the first request after the first gap.
    Poisson,
}

impl Process {
    /// The value of `rate_process` that names it.
    pub const fn name(self) -> &'static str {
        match self {
            Process::Linear => "linear",
            Process::Poisson => "poisson",
        }
    }
}

/// The instants at which requests arrive, one after the other.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// Request `i` at `i * 10^12 / rate`, rounded to the nearest picosecond, halves up.
    Linear {
        /// The next arrival, in picoseconds.
        next: u64,
        /// What `next` was rounded by, plus a half: in parts of a picosecond of which `rate` make one.
        part: u64,
        /// Requests per second.
        rate: u64,
    },
    /// Exponential gaps.
    Poisson {
        /// The last arrival, in picoseconds.
        last: u64,
        /// What was cut off to make `last` whole, below 1.
        part: f64,
        /// The mean gap in picoseconds.
        mean: f64,
        /// The gaps' own stream.
        rng: Rng,
    },
}

impl Arrivals {
    /// Arrivals at `rate` requests per second, 1 to 10^12. `rng` is drawn from by [`Process::Poisson`] only.
    pub fn new(process: Process, rate: u64, rng: Rng) -> Arrivals {
        debug_assert!((1..=SECOND).contains(&rate));
        match process {
            Process::Linear => Arrivals::Linear { next: 0, part: rate / 2, rate },
            Process::Poisson => Arrivals::Poisson { last: 0, part: 0.0, mean: SECOND as f64 / rate as f64, rng },
        }
    }

    /// The next arrival; `None` when it lies beyond what [`Time`] holds (213 days).
    pub fn next(&mut self) -> Option<Time> {
        match self {
            Arrivals::Linear { next, part, rate } => {
                let now = *next;
                let sum = *part + SECOND % *rate;
                let carry = u64::from(sum >= *rate);
                *part = sum - carry * *rate;
                *next = now.checked_add(SECOND / *rate + carry)?;
                Some(Time(now))
            }
            Arrivals::Poisson { last, part, mean, rng } => {
                let gap = rng.exponential(*mean) + *part;
                let whole = gap as u64;
                *part = gap - whole as f64;
                *last = last.checked_add(whole)?;
                Some(Time(*last))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(process: Process, rate: u64, count: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(process, rate, Rng::new(7, "test"));
        (0..count).map(|_| arrivals.next().unwrap().ps()).collect()
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
            // Standard errors: 0.0022 of the mean, 0.0063 of the variance, 0.0011 of the share above the mean, 1/e.
            assert!((average - 1.0).abs() < 0.01, "mean {average}");
            assert!((variance - 1.0).abs() < 0.03, "variance {variance}");
            assert!((long - 0.367_879).abs() < 0.005, "share of gaps above the mean {long}");
        }
    }

    #[test]
    fn poisson_gaps_below_a_picosecond_keep_the_rate() {
        // Cutting each gap to whole picoseconds would lose more than half of the time.
        let times = arrivals(Process::Poisson, SECOND, 100_001);
        assert!(times[100_000].abs_diff(100_000) < 1_500, "{}", times[100_000]);
    }

    #[test]
    fn arrivals_end_where_time_does() {
        let mut linear = Arrivals::Linear { next: u64::MAX - 1, part: 0, rate: 1 };
        assert_eq!(linear.next(), None);
        let mut poisson = Arrivals::Poisson { last: u64::MAX, part: 0.0, mean: 1e12, rng: Rng::new(1, "test") };
        assert_eq!(poisson.next(), None);
    }
}
