//! Statistics over several runs: means with confidence intervals, and tests whether two means differ.
//!
//! Runs with different seeds are independent samples. The confidence interval of their mean follows from Student's t
//! distribution (Student 1908). Two means are compared with Welch's test (Welch 1947), which does not assume equal
//! variances.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence level of intervals. The significance level of tests is 1 minus this value.
pub const CONFIDENCE: f64 = 0.95;

/// Statistics of some values of one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Number of values.
    pub n: usize,
    /// Mean of the values.
    pub mean: f64,
    /// Sample standard deviation (divisor n - 1); null for a single value.
    pub deviation: Option<f64>,
    /// Half the width of the 95% confidence interval of the mean; null for a single value.
    pub half_width: Option<f64>,
}

impl Sample {
    /// Returns the statistics of these values, or `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        if n < 2 {
            return (n == 1).then_some(Sample { n, mean, deviation: None, half_width: None });
        }
        // Equal values have no deviation, even if their sum is rounded.
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

/// Relation of a mean to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The means are equal.
    Same,
    /// A mean is from a single run, so that its variance is unknown.
    NoiseUnknown,
    /// The difference is within noise: more than 5% of chance differences are at least as great.
    WithinNoise,
    /// The difference is significant.
    Significant,
}

/// Compares the means of two samples. Also returns the probability that a difference at least this great occurs by
/// chance, or `None` if it is unknown.
pub fn difference(a: &Sample, b: &Sample) -> (Difference, Option<f64>) {
    let (Some(a_deviation), Some(b_deviation)) = (a.deviation, b.deviation) else {
        return (if a.mean == b.mean { Difference::Same } else { Difference::NoiseUnknown }, None);
    };
    let (a_error, b_error) = (square(a_deviation) / a.n as f64, square(b_deviation) / b.n as f64);
    let error = a_error + b_error;
    if error == 0.0 {
        // This quantity does not depend on seeds.
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
    fn intervals_match_published_tables() {
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
    fn welch_distinguishes_differences_from_noise() {
        let sample = |values: &[f64]| Sample::of(values).unwrap();
        // Calculated by hand: means 3 and 5, variances 2.5 each, n = 5: t = 2 / sqrt(1) = 2 with 8 degrees of freedom.
        // The published table has p = 0.0805.
        let (a, b) = (sample(&[1.0, 2.0, 3.0, 4.0, 5.0]), sample(&[3.0, 4.0, 5.0, 6.0, 7.0]));
        let (verdict, p) = difference(&a, &b);
        assert_eq!(verdict, Difference::WithinNoise);
        assert!(near(p.unwrap(), 0.0805), "{p:?}");
        let far = sample(&[13.0, 14.0, 15.0, 16.0, 17.0]);
        assert_eq!(difference(&a, &far).0, Difference::Significant);
    }

    #[test]
    fn equal_values_are_compared_directly() {
        let sample = |values: &[f64]| Sample::of(values).unwrap();
        assert_eq!(difference(&sample(&[1.0]), &sample(&[2.0, 3.0])), (Difference::NoiseUnknown, None));
        assert_eq!(difference(&sample(&[1.0]), &sample(&[1.0])), (Difference::Same, None));
        assert_eq!(difference(&sample(&[1.0; 2]), &sample(&[1.0; 3])), (Difference::Same, None));
        assert_eq!(difference(&sample(&[1.0; 2]), &sample(&[2.0; 3])), (Difference::Significant, Some(0.0)));
    }
}
