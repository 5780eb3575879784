//! Demerit: the distance between two distributions of latency (Ruemmler and Wilkes, "An introduction to disk drive
//! modeling", IEEE Computer 27(3), 1994).

use floatgate_core::summary::LatencyCurve;

/// Keys of the demerits of an operation, which are not in summaries: in microseconds, and as a share of the mean.
pub const KEYS: [&str; 2] = ["demerit_us", "demerit_share"];

/// Returns the demerit in microseconds: the root mean square of the horizontal distance between two distributions.
///
/// Between two points of a curve, latencies are taken to grow linearly with the share of requests.
pub fn demerit(one: &LatencyCurve, other: &LatencyCurve) -> Option<f64> {
    let (one, other) = (quantiles(one)?, quantiles(other)?);
    let mut shares: Vec<f64> = one.iter().chain(&other).map(|point| point.0).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let squares = shares.windows(2).map(|ends| {
        let [from, to] = [ends[0], ends[1]].map(|share| (share, at(&one, share) - at(&other, share)));
        // The square of a linear function, integrated.
        (to.0 - from.0) * (from.1 * from.1 + from.1 * to.1 + to.1 * to.1) / 3.0
    });
    Some(squares.sum::<f64>().sqrt())
}

/// Returns the points of a distribution from 0 to 1: a share of the requests, and the latency in microseconds that they
/// do not exceed.
fn quantiles(curve: &LatencyCurve) -> Option<Vec<(f64, f64)>> {
    let (requests, least) = (curve.requests as f64, *curve.us.first()?);
    let points = curve.us.iter().zip(&curve.longer).map(|(&us, &longer)| (1.0 - longer as f64 / requests, us));
    Some(std::iter::once((0.0, least)).chain(points).collect())
}

/// Returns the latency at a share of the requests.
fn at(quantiles: &[(f64, f64)], share: f64) -> f64 {
    let above = quantiles.partition_point(|point| point.0 < share).min(quantiles.len() - 1);
    let ((low, from), (high, to)) = (quantiles[above.saturating_sub(1)], quantiles[above]);
    if high > low { from + (to - from) * (share - low) / (high - low) } else { to }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(us: &[f64], longer: &[u64]) -> LatencyCurve {
        LatencyCurve { operation: "read".to_owned(), requests: 100, us: us.to_vec(), longer: longer.to_vec() }
    }

    #[test]
    fn a_shift_is_its_own_demerit() {
        let (one, other) = (curve(&[10.0, 20.0, 50.0], &[90, 40, 0]), curve(&[13.0, 23.0, 53.0], &[90, 40, 0]));
        assert!((demerit(&one, &other).unwrap() - 3.0).abs() < 1e-12);
        assert_eq!(demerit(&one, &one), Some(0.0));
    }

    #[test]
    fn distances_are_squared() {
        // From 0 to 1, the latencies are 0 to 10, and 0 to 4: the root of the integral of (6 x)^2 is the root of 12.
        let (one, other) = (curve(&[0.0, 10.0], &[100, 0]), curve(&[0.0, 4.0], &[100, 0]));
        assert!((demerit(&one, &other).unwrap() - 12.0f64.sqrt()).abs() < 1e-12);
        // The upper half differs by 0 to 2, and the points of the curves need not have the same shares.
        let (one, other) = (curve(&[1.0, 5.0], &[50, 0]), curve(&[1.0, 2.0, 3.0], &[50, 25, 0]));
        let expected = (0.5 * 4.0 / 3.0f64).sqrt();
        assert!((demerit(&one, &other).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_known_without_requests() {
        assert_eq!(demerit(&curve(&[], &[]), &curve(&[1.0], &[0])), None);
    }
}
