//! Distributions of times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::latency::Latency;

/// How a time is distributed, in microseconds. All null without requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Mean, exact.
    pub mean: Option<f64>,
    /// Least, exact.
    pub min: Option<f64>,
    /// Half of the requests took no longer. As the other percentiles, within 0.1 % or 1 ns, whichever is more.
    pub p50: Option<f64>,
    /// 90 % took no longer.
    pub p90: Option<f64>,
    /// 95 % took no longer.
    pub p95: Option<f64>,
    /// 99 % took no longer.
    pub p99: Option<f64>,
    /// 99.9 % took no longer.
    pub p99_9: Option<f64>,
    /// 99.99 % took no longer.
    pub p99_99: Option<f64>,
    /// Greatest, exact.
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
