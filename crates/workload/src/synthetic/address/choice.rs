//! Choice of random positions: fio's `random_distribution`.

use super::permutation::{Passes, Scatter};
use super::sprandom::Sprandom;
use super::zipf::Zipf;
use crate::sim::rng::Rng;

/// Choice of positions in `0..n` for one direction of a random job.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Each position once before any position is repeated.
    Passes(Passes),
    /// All positions, some of them several times, as `sprandom` writes them.
    Sprandom(Box<Sprandom>),
    /// Independent and uniform.
    Uniform,
    /// Zipf-distributed ranks, mapped to scattered positions.
    Zipf(Zipf, Scatter),
    /// Rank `n * u^power` for a uniform `u` (fio's `pareto_next`), mapped to scattered positions.
    Pareto {
        /// `log(h) / log(1 - h)`. The first `h * n` ranks then get `1 - h` of the requests.
        power: f64,
        /// Mapping of ranks to positions.
        scatter: Scatter,
    },
    /// Normally distributed positions. Positions outside the range are drawn again.
    Normal {
        /// Mean, in positions.
        mean: f64,
        /// Standard deviation, in positions.
        deviation: f64,
    },
    /// Zones, each with a uniform distribution.
    Zoned(Vec<Zone>),
    /// These positions in turn.
    Sequence {
        /// Positions, at least one.
        blocks: Vec<u64>,
        /// Number of requests so far.
        next: u64,
        /// True to move the positions by their number after each round.
        stride: bool,
    },
}

/// A zone of [`Choice::Zoned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Percentage of the requests in this zone and all zones before it. 100 for the last zone.
    pub up_to: u32,
    /// First position of the zone.
    pub start: u64,
    /// Number of positions. Must not be 0 if the zone gets requests.
    pub positions: u64,
}

impl Choice {
    /// Returns the next position in `0..positions`.
    #[inline]
    pub fn next(&mut self, positions: u64, rng: &mut Rng) -> u64 {
        match self {
            Choice::Passes(passes) => passes.next(rng),
            Choice::Sprandom(order) => order.next(rng),
            Choice::Uniform => rng.below(positions),
            Choice::Zipf(zipf, scatter) => scatter.apply(zipf.next(rng) - 1),
            Choice::Pareto { power, scatter } => {
                let rank = (positions as f64 * libm::pow(rng.unit(), *power)) as u64;
                scatter.apply(rank.min(positions - 1))
            }
            Choice::Normal { mean, deviation } => loop {
                let position = *mean + *deviation * rng.normal();
                if position >= 0.0 && position < positions as f64 {
                    return position as u64;
                }
            },
            Choice::Sequence { blocks, next, stride } => {
                let (round, index) = (*next / blocks.len() as u64, *next % blocks.len() as u64);
                let moved = if *stride { round * blocks.len() as u64 } else { 0 };
                let position = moved + blocks[index as usize];
                if position < positions {
                    *next += 1;
                    return position;
                }
                // As in fio, the pass ends, and the next one starts with the first block.
                *next = 1;
                blocks[0]
            }
            Choice::Zoned(zones) => {
                let draw = rng.below(100) as u32;
                let zone = zones.iter().find(|zone| draw < zone.up_to).unwrap_or(&zones[zones.len() - 1]);
                zone.start + rng.below(zone.positions)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::address::tests::{misfit, rng};

    #[test]
    fn pareto_is_self_similar() {
        // h of the positions get 1 - h of the requests, h^2 of them get (1 - h)^2, and so on (fio's `pareto_init`).
        for h in [0.1, 0.2, 0.4] {
            let n = 1_000_000u64;
            let mut rng = rng();
            let scatter = Scatter::new(n, None, &mut rng);
            let mut rank_of = vec![0; n as usize];
            (0..n).for_each(|rank| rank_of[scatter.apply(rank) as usize] = rank);
            let mut choice = Choice::Pareto { power: libm::log(h) / libm::log(1.0 - h), scatter };
            let ranks: Vec<u64> = (0..100_000).map(|_| rank_of[choice.next(n, &mut rng) as usize]).collect();
            for exponent in [1.0, 2.0, 3.0] {
                let below = libm::pow(h, exponent) * n as f64;
                let share = ranks.iter().filter(|&&rank| (rank as f64) < below).count() as f64 / 1e5;
                let expected = libm::pow(1.0 - h, exponent);
                assert!((share - expected).abs() < 0.008, "h {h}, exponent {exponent}: {share}");
            }
        }
    }

    #[test]
    fn normal_positions_have_their_mean_and_deviation() {
        let mut choice = Choice::Normal { mean: 400.0, deviation: 50.0 };
        let mut rng = rng();
        let draws: Vec<f64> = (0..100_000).map(|_| choice.next(1000, &mut rng) as f64 + 0.5).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5;
        // Standard errors: 0.16 for the mean, 0.11 for the deviation.
        assert!((mean - 400.0).abs() < 0.8 && (libm::sqrt(variance) - 50.0).abs() < 0.6, "{mean} {variance}");
        // The mean is at the start of the region, and the deviation equals its size. Half of the draws are outside.
        let mut choice = Choice::Normal { mean: 0.0, deviation: 1000.0 };
        assert!((0..10_000).all(|_| choice.next(1000, &mut rng) < 1000));
    }

    #[test]
    fn zones_have_their_shares() {
        let zones = [(60, 0, 100), (90, 100, 200), (98, 300, 300), (100, 600, 400)];
        let zones = zones.map(|(up_to, start, positions)| Zone { up_to, start, positions });
        let mut choice = Choice::Zoned(zones.to_vec());
        let mut rng = rng();
        let mut counts = vec![0; 1000];
        for _ in 0..500_000 {
            counts[choice.next(1000, &mut rng) as usize] += 1;
        }
        let share = |percent: f64, positions: usize| vec![percent * 5000.0 / positions as f64; positions];
        let expected = [share(60.0, 100), share(30.0, 200), share(8.0, 300), share(2.0, 400)].concat();
        assert!(misfit(&counts, &expected) < 5.0);
    }
}
