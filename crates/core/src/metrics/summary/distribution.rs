//! Distribution of a time: mean, extremes and percentiles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::latency::Latency;

/// Distribution of a time in microseconds; null without requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Mean, exact.
    pub mean: Option<f64>,
    /// Minimum, exact.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// 99.99th percentile.
    pub p99_99: Option<f64>,
    /// Maximum, exact.
    pub max: Option<f64>,
}

impl Distribution {
    pub(super) fn new(latency: &Latency) -> Distribution {
        if latency.count() == 0 {
            return Distribution::default();
        }
        let quantile = |share| Some(latency.quantile_us(share));
        Distribution {
            mean: Some(latency.mean_us()),
            min: Some(latency.min_us()),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            p99_99: quantile(0.9999),
            max: Some(latency.max_us()),
        }
    }
}
