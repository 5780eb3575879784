//! Statistics over several runs: means with confidence intervals, and tests whether two means differ.
//!
//! Runs with different seeds are independent samples. The confidence interval of their mean follows from Student's t
//! distribution (Student 1908). Two means are compared with Welch's test (Welch 1947), which does not assume equal
//! variances. Several comparisons are corrected for their number by Holm's method (Holm, "A simple sequentially
//! rejective multiple test procedure", 1979). Means, deviations and the distribution are those of the library statrs,
//! which has neither Welch's test nor Holm's method.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics;

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
        if n < 2 {
            return (n == 1).then(|| Sample { n, mean: values[0], deviation: None, half_width: None });
        }
        // Equal values have no deviation, even if their sum is rounded.
        let (mean, deviation) = if values.iter().all(|value| *value == values[0]) {
            (values[0], 0.0)
        } else {
            (values.mean(), values.std_dev())
        };
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
    /// The difference is within noise: chance alone gives such differences too often.
    WithinNoise,
    /// The difference is significant.
    Significant,
}

/// Difference of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compared {
    /// A quantity that does not depend on seeds, or whose variance is unknown.
    Plain(Difference),
    /// Means of several runs each.
    Tested(Welch),
}

/// Welch's test of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// Standard error of the difference.
    error: f64,
    /// Degrees of freedom.
    freedom: f64,
    /// Probability that a difference at least this great occurs by chance.
    pub p: f64,
}

/// Compares the means of two samples.
pub fn compare(a: &Sample, b: &Sample) -> Compared {
    let (Some(a_deviation), Some(b_deviation)) = (a.deviation, b.deviation) else {
        return Compared::Plain(if a.mean == b.mean { Difference::Same } else { Difference::NoiseUnknown });
    };
    let (a_error, b_error) = (square(a_deviation) / a.n as f64, square(b_deviation) / b.n as f64);
    let error = a_error + b_error;
    if error == 0.0 {
        return Compared::Plain(if a.mean == b.mean { Difference::Same } else { Difference::Significant });
    }
    let freedom = square(error) / (square(a_error) / (a.n - 1) as f64 + square(b_error) / (b.n - 1) as f64);
    let t = (a.mean - b.mean).abs() / error.sqrt();
    Compared::Tested(Welch { error: error.sqrt(), freedom, p: 2.0 * student(freedom).sf(t) })
}

impl Welch {
    /// Returns half the width of the confidence interval of the difference, for a level of significance.
    pub fn half_width(&self, significance: f64) -> f64 {
        self.error * student(self.freedom).inverse_cdf(1.0 - significance / 2.0)
    }
}

/// Result of Holm's method for one of several tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corrected {
    /// Probability, corrected for the number of tests. The difference is significant if it is below 5%.
    pub p: f64,
    /// Level of significance of the test. The interval of this level excludes 0 if the difference is significant.
    pub significance: f64,
}

/// Corrects the probabilities of several tests by Holm's method: if no difference is real, the probability that any is
/// found significant is at most 5%.
pub fn holm(probabilities: &[f64]) -> Vec<Corrected> {
    let alpha = 1.0 - CONFIDENCE;
    let count = probabilities.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| probabilities[*one].total_cmp(&probabilities[*other]));
    let mut corrected = vec![Corrected { p: 1.0, significance: alpha }; count];
    let mut least = 0.0f64;
    let mut significance = alpha / count.max(1) as f64;
    for (rank, index) in order.into_iter().enumerate() {
        let tests = (count - rank) as f64;
        // After the first test that is not significant, none is, and the level stays.
        if least < alpha {
            significance = alpha / tests;
        }
        least = least.max((tests * probabilities[index]).min(1.0));
        corrected[index] = Corrected { p: least, significance };
    }
    corrected
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

    fn tested(a: &[f64], b: &[f64]) -> Welch {
        match compare(&Sample::of(a).unwrap(), &Sample::of(b).unwrap()) {
            Compared::Tested(welch) => welch,
            Compared::Plain(difference) => panic!("{difference:?}"),
        }
    }

    #[test]
    fn welch_matches_a_published_table() {
        // Calculated by hand: means 3 and 5, variances 2.5 each, n = 5: t = 2 / sqrt(1) = 2 with 8 degrees of freedom.
        // The published table has p = 0.0805, and t(0.975; 8) = 2.306.
        let welch = tested(&[1.0, 2.0, 3.0, 4.0, 5.0], &[3.0, 4.0, 5.0, 6.0, 7.0]);
        assert!(near(welch.p, 0.0805), "{welch:?}");
        assert!(near(welch.half_width(0.05), 2.306), "{welch:?}");
        assert!(tested(&[1.0, 2.0, 3.0, 4.0, 5.0], &[13.0, 14.0, 15.0, 16.0, 17.0]).p < 1e-5);
    }

    #[test]
    fn equal_values_are_compared_directly() {
        let plain = |a: &[f64], b: &[f64]| match compare(&Sample::of(a).unwrap(), &Sample::of(b).unwrap()) {
            Compared::Plain(difference) => difference,
            Compared::Tested(welch) => panic!("{welch:?}"),
        };
        assert_eq!(plain(&[1.0], &[2.0, 3.0]), Difference::NoiseUnknown);
        assert_eq!(plain(&[1.0], &[1.0]), Difference::Same);
        assert_eq!(plain(&[1.0; 2], &[1.0; 3]), Difference::Same);
        assert_eq!(plain(&[1.0; 2], &[2.0; 3]), Difference::Significant);
    }

    #[test]
    fn holm_corrects_for_the_number_of_tests() {
        // The example of Holm's method in textbooks: 0.01, 0.04, 0.03 and 0.005 become 0.03, 0.06, 0.06 and 0.02.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [(0.03, 0.05 / 3.0), (0.06, 0.05 / 2.0), (0.06, 0.05 / 2.0), (0.02, 0.05 / 4.0)];
        for (found, (p, significance)) in corrected.iter().zip(expected) {
            assert!(near(found.p, p) && near(found.significance, significance), "{corrected:?}");
        }
        assert_eq!(holm(&[]), []);
        assert!(near(holm(&[0.2])[0].p, 0.2));
        assert_eq!(holm(&[0.9, 0.8])[1].p, 1.0);
    }

    #[test]
    fn intervals_exclude_0_if_the_difference_is_significant() {
        let pairs: Vec<(f64, Welch)> = (1..20)
            .map(|shift| {
                let shift = f64::from(shift) * 0.4;
                let moved = [1.0, 2.0, 3.0, 4.0, 5.0].map(|value| value + shift);
                (shift, tested(&[1.0, 2.0, 3.0, 4.0, 5.0], &moved))
            })
            .collect();
        let corrected = holm(&pairs.iter().map(|(_, welch)| welch.p).collect::<Vec<_>>());
        let mut significant = 0;
        for ((shift, welch), corrected) in pairs.iter().zip(&corrected) {
            let excludes = *shift > welch.half_width(corrected.significance);
            assert_eq!(excludes, corrected.p < 0.05, "{shift}: {corrected:?}");
            significant += u32::from(excludes);
        }
        assert!((3..17).contains(&significant), "{significant}");
    }
}
