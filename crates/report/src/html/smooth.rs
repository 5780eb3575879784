//! Smoothing of values by window: moving averages, whose weights fall off like a normal distribution.

/// Least number of windows to smooth. Fewer are drawn without an average.
const MIN_WINDOWS: usize = 24;

/// Standard deviation of the weights, as a share of all windows.
const WIDTH: f64 = 1.0 / 40.0;

/// Least share of the weights that must fall on windows with a value. Further from values, there is no average.
const COVERED: f64 = 0.1;

/// Moving average over windows of equal length.
#[derive(Debug)]
pub struct Smoother {
    /// Weight of a window. Indexed by its distance.
    weights: Vec<f64>,
}

impl Smoother {
    /// Returns the average for a number of windows, or `None` if there are too few to smooth.
    pub fn new(windows: usize) -> Option<Smoother> {
        let deviation = windows as f64 * WIDTH;
        let weight = |distance: usize| libm::exp(-0.5 * (distance as f64 / deviation) * (distance as f64 / deviation));
        (windows >= MIN_WINDOWS).then(|| Smoother { weights: (0..=(3.0 * deviation) as usize).map(weight).collect() })
    }

    /// Returns the average around each window. `counts` are the weights of the values, such as numbers of requests.
    pub fn mean(&self, values: &[Option<f64>], counts: &[f64]) -> Vec<Option<f64>> {
        (0..values.len()).map(|at| self.mean_at(at, values, counts)).collect()
    }

    /// Returns the average of logarithms around each window, for logarithmic axes. Values of 0 are left out.
    pub fn log_mean(&self, values: &[Option<f64>], counts: &[f64]) -> Vec<Option<f64>> {
        let logs: Vec<_> = values.iter().map(|value| value.filter(|value| *value > 0.0).map(libm::log)).collect();
        self.mean(&logs, counts).into_iter().map(|mean| mean.map(libm::exp)).collect()
    }

    fn mean_at(&self, at: usize, values: &[Option<f64>], counts: &[f64]) -> Option<f64> {
        let reach = self.weights.len() - 1;
        let (mut sum, mut counted, mut covered, mut all) = (0.0, 0.0, 0.0, 0.0);
        for index in at.saturating_sub(reach)..(at + reach + 1).min(values.len()) {
            let weight = self.weights[index.abs_diff(at)];
            all += weight;
            if let Some(value) = values[index] {
                covered += weight;
                counted += weight * counts[index];
                sum += weight * counts[index] * value;
            }
        }
        (covered >= COVERED * all && counted > 0.0).then(|| sum / counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_keep_levels_and_weigh_requests() {
        let smoother = Smoother::new(80).unwrap();
        let near = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
        let level = smoother.mean(&[Some(3.0); 80], &[1.0; 80]);
        assert!(level.iter().all(|value| near(*value, 3.0)), "{level:?}");
        // A window with many requests outweighs its neighbors.
        let mut values = vec![Some(1.0); 80];
        let mut counts = vec![1.0; 80];
        (values[40], counts[40]) = (Some(5.0), 1e12);
        assert!((smoother.mean(&values, &counts)[41].unwrap() - 5.0).abs() < 1e-6);
        assert!(near(smoother.mean(&values, &counts)[60], 1.0), "{}", 1.0);
        // The average of logarithms of 1 and 100 is 10, halfway between equal halves.
        let halves: Vec<_> = (0..80).map(|at| Some(if at % 2 == 0 { 1.0 } else { 100.0 })).collect();
        assert!(near(smoother.log_mean(&halves, &[1.0; 80])[40].map(f64::round), 10.0));
    }

    #[test]
    fn gaps_stay_gaps() {
        let smoother = Smoother::new(80).unwrap();
        let values: Vec<_> = (0..80).map(|at| (at < 20).then_some(1.0)).collect();
        let means = smoother.mean(&values, &[1.0; 80]);
        assert_eq!((means[10], means[20].is_some(), means[30]), (Some(1.0), true, None));
        assert!(Smoother::new(23).is_none());
    }
}
