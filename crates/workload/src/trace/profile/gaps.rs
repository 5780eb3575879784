//! Gaps between requests.

use std::collections::BTreeMap;

use super::bursts::Bursts;
use super::moments::{Gaps, Moments, class_ends, octave_of};
use super::report::{Arrivals, Burst, GapClass};

/// Collects gaps in order.
#[derive(Default)]
pub struct GapMoments {
    us: Moments,
    gaps: Gaps,
    zero: u64,
    last: Option<u64>,
    pairs: Pairs,
    transitions: BTreeMap<(u8, u8), u64>,
}

/// Covariance of pairs, computed with Welford's method.
#[derive(Default)]
struct Pairs {
    count: f64,
    means: (f64, f64),
    squares: (f64, f64),
    products: f64,
}

impl Pairs {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        let before = (x - self.means.0, y - self.means.1);
        self.means.0 += before.0 / self.count;
        self.means.1 += before.1 / self.count;
        self.squares.0 += before.0 * (x - self.means.0);
        self.squares.1 += before.1 * (y - self.means.1);
        self.products += before.0 * (y - self.means.1);
    }

    fn correlation(&self) -> Option<f64> {
        let scale = (self.squares.0 * self.squares.1).sqrt();
        (scale > 0.0).then(|| self.products / scale)
    }
}

impl GapMoments {
    /// Adds a gap in ps.
    pub fn add(&mut self, gap: u64) {
        self.us.add(gap as f64 / 1e6);
        self.gaps.add(gap);
        self.zero += u64::from(gap == 0);
        if let Some(last) = self.last.replace(gap) {
            self.pairs.add(last as f64, gap as f64);
            *self.transitions.entry((octave_of(last), octave_of(gap))).or_default() += 1;
        }
    }

    /// Returns the statistics. `resolution_ps` is 0 if the resolution is unknown.
    pub fn finish(&self, bursts: &Bursts, resolution_ps: u128) -> Arrivals {
        let count = self.us.count();
        let class = |(class, count, mean_ps): (usize, u64, f64)| {
            let (from_ps, to_ps) = class_ends(class);
            GapClass { from_ps, to_ps, count, mean_ps }
        };
        let bursts = bursts.finish().into_iter().map(|burst| Burst {
            window_s: burst.window as f64 / 1e12,
            windows: burst.windows,
            dispersion: burst.dispersion,
            peak_to_mean: burst.peak_to_mean,
        });
        Arrivals {
            gap_us: super::report::said(&self.us),
            median_us: self.gaps.quantile(0.5).map(|ps| ps / 1e6),
            p99_us: self.gaps.quantile(0.99).map(|ps| ps / 1e6),
            zero: (count > 0).then(|| self.zero as f64 / count as f64),
            correlation: self.pairs.correlation(),
            resolution_ns: (resolution_ps > 0).then(|| resolution_ps as f64 / 1e3),
            bursts: bursts.collect(),
            histogram: self.gaps.classes().map(class).collect(),
            transitions: self.transitions.iter().map(|(&(from, to), &count)| (from, to, count)).collect(),
        }
    }
}
