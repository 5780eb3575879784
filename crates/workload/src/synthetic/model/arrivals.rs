//! Gaps between requests: classes of gaps, drawn depending on the octave of the previous gap.
//!
//! A Markov chain of gaps preserves bursts, which independent gaps would lose.

use std::collections::BTreeMap;

use super::{ArrivalModel, Gap};
use crate::sim::rng::Rng;
use crate::trace::profile::octave_of;

/// Checks the arrivals of a model.
pub fn check(arrivals: &ArrivalModel) -> Result<(), String> {
    let is_gap = |gap: &Gap| {
        let (from, to) = (gap.from_ps as f64, gap.to_ps as f64);
        let inside = gap.mean_ps >= from && gap.mean_ps <= to;
        inside && gap.weight.is_finite() && gap.weight >= 0.0
    };
    if !arrivals.gaps.iter().all(is_gap) {
        return Err("`gaps`: the mean must lie within from_ps and to_ps, and the weight be at least 0".to_owned());
    }
    if arrivals.gaps.iter().map(|gap| gap.weight).sum::<f64>() <= 0.0 {
        return Err("`gaps` has none with a weight above 0".to_owned());
    }
    let known: Vec<u8> = arrivals.gaps.iter().filter(|gap| gap.weight > 0.0).map(octave).collect();
    match arrivals.transitions.iter().find(|(from, to, _)| !known.contains(from) || !known.contains(to)) {
        Some((from, to, _)) => Err(format!("`transitions`: from {from} to {to}, and one of them has no gaps")),
        None => Ok(()),
    }
}

fn octave(gap: &Gap) -> u8 {
    octave_of(gap.mean_ps as u64)
}

/// Values with cumulative weights.
#[derive(Clone, Debug, Default)]
struct Weighted<T> {
    values: Vec<(T, f64)>,
}

impl<T: Copy> Weighted<T> {
    fn push(&mut self, value: T, weight: f64) {
        let before = self.values.last().map_or(0.0, |(_, up_to)| *up_to);
        if weight > 0.0 {
            self.values.push((value, before + weight));
        }
    }

    fn draw(&self, rng: &mut Rng) -> Option<T> {
        let draw = rng.unit() * self.values.last()?.1;
        let place = self.values.partition_point(|(_, up_to)| *up_to <= draw);
        self.values.get(place).or(self.values.last()).map(|(value, _)| *value)
    }
}

/// Arrival times of requests, in order.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Last arrival in ps, and the fraction that was cut off.
    last: u64,
    rest: f64,
    octave: Option<u8>,
    octaves: Weighted<u8>,
    after: BTreeMap<u8, Weighted<u8>>,
    gaps: BTreeMap<u8, Weighted<Gap>>,
    rng: Rng,
}

impl Chain {
    /// Creates the arrivals of a model that has been checked.
    pub fn new(model: &ArrivalModel, rng: Rng) -> Chain {
        let mut octaves = Weighted::default();
        let mut gaps: BTreeMap<u8, Weighted<Gap>> = BTreeMap::new();
        for gap in &model.gaps {
            octaves.push(octave(gap), gap.weight);
            gaps.entry(octave(gap)).or_default().push(*gap, gap.weight);
        }
        let mut after: BTreeMap<u8, Weighted<u8>> = BTreeMap::new();
        for (from, to, weight) in &model.transitions {
            after.entry(*from).or_default().push(*to, *weight as f64);
        }
        Chain { last: 0, rest: 0.0, octave: None, octaves, after, gaps, rng }
    }

    /// Returns the next arrival in ps, or `None` beyond 64 bits.
    pub fn next(&mut self) -> Option<u64> {
        let after = self.octave.and_then(|octave| self.after.get(&octave));
        let octave = after.unwrap_or(&self.octaves).draw(&mut self.rng)?;
        self.octave = Some(octave);
        let gap = self.gaps.get(&octave)?.draw(&mut self.rng)?;
        let half = (gap.mean_ps - gap.from_ps as f64).min(gap.to_ps as f64 - gap.mean_ps);
        let exact = gap.mean_ps + half * (2.0 * self.rng.unit() - 1.0) + self.rest;
        let whole = exact.max(0.0) as u64;
        self.rest = exact - whole as f64;
        self.last = self.last.checked_add(whole)?;
        Some(self.last)
    }
}
