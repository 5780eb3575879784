//! Threshold trigger: starts garbage collection at the soft threshold.

use super::TriggerPolicy;
use crate::config::DeviceConfig;
use crate::ftl::space::RegionView;
use crate::policy::Policy;

/// The threshold has no options: `gc.soft_threshold` is its level.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThresholdConfig {}

/// Starts garbage collection whenever it is allowed: at the soft threshold (Agrawal et al. 2008, Section 3.2).
#[derive(Clone, Debug)]
pub struct Threshold;

impl Policy for Threshold {
    type Config = ThresholdConfig;
    fn new(_: &ThresholdConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Threshold)
    }
}

impl TriggerPolicy for Threshold {
    fn wants(&mut self, _: &RegionView) -> bool {
        true
    }
}
