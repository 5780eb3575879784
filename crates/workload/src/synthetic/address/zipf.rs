//! Zipf-distributed ranks.

use crate::sim::rng::Rng;

/// Zipf distribution: ranks `1..=n` with probability proportional to `rank^-theta`, exact and without tables.
///
/// Uses rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", ACM TOMACS 6(3), 1996. fio's own generator (Gray et al., "Quickly generating billion-record
/// synthetic databases", SIGMOD 1994) does not support a theta of 1, and needs a sum over all blocks.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    /// Integral of the hat at 3/2, minus the first probability, and integral at `n + 1/2`.
    ends: (f64, f64),
    /// Distance to the nearest integer below which a draw is accepted without computing the hat.
    sure: f64,
}

impl Zipf {
    /// Creates a distribution of `n` ranks. `theta` must be above 0.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf { n, theta, ends: (0.0, 0.0), sure: 0.0 };
        zipf.ends = (zipf.integral(1.5) - 1.0, zipf.integral(n as f64 + 0.5));
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Returns the next rank, counted from 1.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.ends.1 + rng.unit() * (self.ends.0 - self.ends.1);
            let x = self.inverse(u);
            // The cast truncates, and converts negative values to 0.
            let rank = ((x + 0.5) as u64).clamp(1, self.n);
            let k = rank as f64;
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.density(k) {
                return rank;
            }
        }
    }

    /// Returns `x^-theta`.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Returns the integral of [`Zipf::density`] from 1: `(x^(1 - theta) - 1) / (1 - theta)`, or `log(x)` if theta is
    /// 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        log * over_argument(libm::expm1, (1.0 - self.theta) * log)
    }

    /// Returns the `x` at which [`Zipf::integral`] is `y`.
    fn inverse(&self, y: f64) -> f64 {
        // If theta is large, rounding may make the argument of the logarithm negative.
        let t = (y * (1.0 - self.theta)).max(-1.0);
        libm::exp(y * over_argument(libm::log1p, t))
    }
}

/// Returns `f(x) / x` for `expm1` and `log1p`. Both are `x` to first order.
#[inline]
fn over_argument(f: fn(f64) -> f64, x: f64) -> f64 {
    if x.abs() > 1e-300 { f(x) / x } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::address::tests::{misfit, rng};

    #[test]
    fn zipf_frequencies_follow_the_formula() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.000_000_1, 1.2, 2.5] {
            let n = 1000;
            let zipf = Zipf::new(n, theta);
            let weights: Vec<f64> = (1..=n).map(|k| libm::pow(k as f64, -theta)).collect();
            let sum: f64 = weights.iter().sum();
            let draws = 400_000;
            let mut rng = rng();
            let mut counts = vec![0u64; n as usize];
            for _ in 0..draws {
                counts[zipf.next(&mut rng) as usize - 1] += 1;
            }
            // Ranks with fewer than ten expected draws form one class.
            let expected: Vec<f64> = weights.iter().map(|w| w / sum * f64::from(draws)).collect();
            let top = expected.iter().take_while(|e| **e >= 10.0).count();
            let mut counts = [&counts[..top], &[counts[top..].iter().sum()]].concat();
            let mut expected = [&expected[..top], &[expected[top..].iter().sum()]].concat();
            if top == n as usize {
                counts.pop();
                expected.pop();
            }
            let misfit = misfit(&counts, &expected);
            assert!(misfit.abs() < 5.0, "theta {theta}: {misfit}");
        }
    }

    #[test]
    fn zipf_holds_for_four_billion_ranks() {
        let n = 1u64 << 32;
        for theta in [0.5, 0.9, 1.0, 1.1, 3.0, 30.0] {
            let zipf = Zipf::new(n, theta);
            // The sum of k^-theta from 1000 on, by the Euler-Maclaurin formula.
            let integral = |x: f64| if theta == 1.0 { libm::log(x) } else { libm::pow(x, 1.0 - theta) / (1.0 - theta) };
            let head: f64 = (1..1000).map(|k| libm::pow(f64::from(k), -theta)).sum();
            let tail = integral(n as f64) - integral(1000.0);
            let ends = (libm::pow(1000.0, -theta) + libm::pow(n as f64, -theta)) / 2.0;
            let sum = head + tail + ends;
            let draws = 200_000;
            let mut rng = rng();
            let (mut first, mut thousand) = (0u32, 0u32);
            for _ in 0..draws {
                let rank = zipf.next(&mut rng);
                assert!((1..=n).contains(&rank));
                first += u32::from(rank == 1);
                thousand += u32::from(rank < 1000);
            }
            for (count, share) in [(first, 1.0 / sum), (thousand, head / sum)] {
                let deviation = libm::sqrt(f64::from(draws) * share * (1.0 - share)).max(1.0);
                let expected = share * f64::from(draws);
                assert!((f64::from(count) - expected).abs() < 5.0 * deviation, "theta {theta}: {count}, {expected}");
            }
        }
    }

    #[test]
    fn zipf_of_a_single_rank() {
        for theta in [0.5, 1.0, 2.0] {
            assert!((0..100).all({
                let zipf = Zipf::new(1, theta);
                let mut rng = rng();
                move |_| zipf.next(&mut rng) == 1
            }));
        }
    }
}
