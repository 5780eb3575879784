//! What a few runs say of all runs: means with confidence intervals, and whether two of them differ.
//!
//! Runs with different seeds are independent samples. Their mean has a confidence interval by Student's t distribution
//! (Student 1908); whether two means differ is told by Welch's test (Welch 1947), which does not suppose that both
//! vary alike.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The confidence of intervals; 1 less it is the level of tests.
pub const CONFIDENCE: f64 = 0.95;

/// Some values of one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// How many.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, with n - 1; null for a single one.
    pub deviation: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean; null for a single one.
    pub half_width: Option<f64>,
}

impl Sample {
    /// Of these values; `None` where there are none.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        if n < 2 {
            return (n == 1).then_some(Sample { n, mean, deviation: None, half_width: None });
        }
        // Equal values have no deviation, whatever their sum rounds to.
        let equal = values.iter().all(|value| *value == values[0]);
        let (mean, squares) = match equal {
            true => (values[0], 0.0),
            false => (mean, values.iter().map(|value| square(value - mean)).sum::<f64>()),
        };
        let deviation = (squares / (n - 1) as f64).sqrt();
        let t = student((n - 1) as f64).inverse_cdf(0.5 + CONFIDENCE / 2.0);
        Some(Sample { n, mean, deviation: Some(deviation), half_width: Some(t * deviation / (n as f64).sqrt()) })
    }
}

/// How a mean differs from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// It is the same number.
    Same,
    /// One of them is of a single run, so that nobody knows how much it varies.
    NoiseUnknown,
    /// It is no greater than what seeds make of it: 5 % of differences by chance are this great or greater.
    WithinNoise,
    /// It is greater.
    Significant,
}

/// Whether the means of two samples differ, and the probability of a difference like theirs, or a greater one, by
/// chance; none where that is unknown.
pub fn difference(a: &Sample, b: &Sample) -> (Difference, Option<f64>) {
    let (Some(a_deviation), Some(b_deviation)) = (a.deviation, b.deviation) else {
        return (if a.mean == b.mean { Difference::Same } else { Difference::NoiseUnknown }, None);
    };
    let (a_error, b_error) = (square(a_deviation) / a.n as f64, square(b_deviation) / b.n as f64);
    let error = a_error + b_error;
    if error == 0.0 {
        // Nothing varies: seeds do not matter to this quantity.
        return match a.mean == b.mean {
            true => (Difference::Same, None),
            false => (Difference::Significant, Some(0.0)),
        };
    }
    let freedom = square(error) / (square(a_error) / (a.n - 1) as f64 + square(b_error) / (b.n - 1) as f64);
    let t = (a.mean - b.mean).abs() / error.sqrt();
    let p = 2.0 * student(freedom).sf(t);
    (if p < 1.0 - CONFIDENCE { Difference::Significant } else { Difference::WithinNoise }, Some(p))
}

fn square(value: f64) -> f64 {
    value * value
}

fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).unwrap_or_else(|error| unreachable!("freedom is positive: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs()
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Deviation 1 of 1, 2, 3; t(0.975; 2) = 4.303; 4.303 / sqrt(3) = 2.484.
        let sample = Sample::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((sample.n, sample.mean, sample.deviation), (3, 2.0, Some(1.0)));
        assert!(near(sample.half_width.unwrap(), 2.484));
        // t(0.975; 1) = 12.706.
        assert!(near(Sample::of(&[0.0, 2.0]).unwrap().half_width.unwrap(), 12.706));
        assert_eq!(Sample::of(&[0.1; 3]).unwrap().half_width, Some(0.0));
        assert_eq!(Sample::of(&[7.0]), Some(Sample { n: 1, mean: 7.0, deviation: None, half_width: None }));
        assert_eq!(Sample::of(&[]), None);
    }

    #[test]
    fn welch_tells_differences_from_noise() {
        let sample = |values: &[f64]| Sample::of(values).unwrap();
        // By hand: means 3 and 5, variances 2.5 each, n = 5: t = 2 / sqrt(1) = 2 with 8 degrees of freedom, for which
        // the tables have p = 0.0805.
        let (a, b) = (sample(&[1.0, 2.0, 3.0, 4.0, 5.0]), sample(&[3.0, 4.0, 5.0, 6.0, 7.0]));
        let (verdict, p) = difference(&a, &b);
        assert_eq!(verdict, Difference::WithinNoise);
        assert!(near(p.unwrap(), 0.0805), "{p:?}");
        let far = sample(&[13.0, 14.0, 15.0, 16.0, 17.0]);
        assert_eq!(difference(&a, &far).0, Difference::Significant);
    }

    #[test]
    fn without_spread_numbers_are_compared() {
        let sample = |values: &[f64]| Sample::of(values).unwrap();
        assert_eq!(difference(&sample(&[1.0]), &sample(&[2.0, 3.0])), (Difference::NoiseUnknown, None));
        assert_eq!(difference(&sample(&[1.0]), &sample(&[1.0])), (Difference::Same, None));
        assert_eq!(difference(&sample(&[1.0; 2]), &sample(&[1.0; 3])), (Difference::Same, None));
        assert_eq!(difference(&sample(&[1.0; 2]), &sample(&[2.0; 3])), (Difference::Significant, Some(0.0)));
    }
}
