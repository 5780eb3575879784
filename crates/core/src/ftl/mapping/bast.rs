//! BAST: each log block belongs to one logical block (Kim, Kim, Noh, Min and Cho, "A space-efficient flash translation
//! layer for CompactFlash systems", IEEE Transactions on Consumer Electronics 48(2), 2002).

use super::log_blocks::options::{Common, FirstWrites, FreeBlocks, Reclaim, Stream, StreamKind, is_one};
use super::log_blocks::{Incoming, LogBlocks, Rules};
use super::{Needs, SchemeOptions};
use crate::config::DeviceConfig;
use crate::ftl::allocation::dynamic::Scope;
use crate::policy::Policy;

/// Options of BAST.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BastConfig {
    /// Number of log blocks.
    pub logs: u32,
    /// Planes that share these log blocks; each set has as many.
    pub scope: Scope,
    /// Place of a write whose page in the data block is free.
    pub first_writes: FirstWrites,
    /// Plane that gives the next block.
    #[serde(skip_serializing_if = "FreeBlocks::is_default")]
    #[schemars(extend("default" = "by-plane"))]
    pub free_blocks: FreeBlocks,
    /// Number of logical blocks over which consecutive pages are striped.
    #[serde(skip_serializing_if = "is_one")]
    pub stripe: u32,
}

impl Default for BastConfig {
    fn default() -> Self {
        BastConfig {
            logs: 8,
            scope: Scope::Device,
            first_writes: FirstWrites::Data,
            free_blocks: FreeBlocks::ByPlane,
            stripe: 1,
        }
    }
}

impl BastConfig {
    fn common(&self) -> Common {
        Common {
            scope: self.scope,
            first_writes: self.first_writes,
            free_blocks: self.free_blocks,
            stripe: self.stripe,
            sequential_stripe: None,
            kinds: &["all"],
            streams: vec![Stream { logs: self.logs, kind: StreamKind::Own }],
            merges: 1,
            reclaim: Reclaim::One,
        }
    }
}

impl SchemeOptions for BastConfig {
    fn needs(&self, device: &DeviceConfig) -> Needs {
        self.common().needs(device)
    }

    fn bytes(&self, device: &DeviceConfig) -> u64 {
        self.common().bytes(device)
    }
}

/// All writes go to the log block of their logical block.
#[derive(Clone, Debug)]
pub struct OneLog;

impl Rules for OneLog {
    fn stream_of(&mut self, _: Incoming) -> usize {
        0
    }

    fn rank(&self, _: u32, opened: u64) -> (u32, u64) {
        (0, opened)
    }
}

/// BAST.
pub type Bast = LogBlocks<OneLog>;

impl Policy for Bast {
    type Config = BastConfig;

    fn check(options: &BastConfig, device: &DeviceConfig) -> Result<(), String> {
        options.common().check(device)
    }

    fn new(options: &BastConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(LogBlocks::with_rules(device, options.common(), OneLog))
    }
}
