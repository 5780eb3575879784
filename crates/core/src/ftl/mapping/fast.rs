//! FAST: log blocks for any logical block, and others for sequential writes (Lee, Park, Chung, Lee, Park and Song, "A
//! log buffer-based flash translation layer using fully-associative sector translation", ACM TECS 6(3), 2007).

use super::log_blocks::options::{Common, FirstWrites, FreeBlocks, Reclaim, Sequential, Stream, StreamKind, is_one};
use super::log_blocks::{Incoming, LogBlocks, Rules, Runs};
use super::{Needs, SchemeOptions};
use crate::config::DeviceConfig;
use crate::ftl::allocation::dynamic::Scope;
use crate::policy::Policy;
use crate::state::{Reader, StateError, Writer};

/// Options of FAST.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FastConfig {
    /// Number of log blocks.
    pub logs: FastLogs,
    /// Planes that share these log blocks; each set has as many.
    pub scope: Scope,
    /// Place of a write whose page in the data block is free.
    pub first_writes: FirstWrites,
    /// Plane that gives the next block.
    #[serde(skip_serializing_if = "FreeBlocks::is_default")]
    #[schemars(extend("default" = "by-plane"))]
    pub free_blocks: FreeBlocks,
    /// Writes that begin a sequential log block.
    pub sequential: Sequential,
    /// Number of blocks over which consecutive pages are striped.
    pub stripe: FastStripe,
    /// Log blocks that a merge reclaims.
    pub reclaim: Reclaim,
    /// Number of full merges of a set of planes at a time, each with a free block.
    #[serde(skip_serializing_if = "is_one")]
    pub merges: u32,
}

/// Number of log blocks of FAST.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FastLogs {
    /// Log blocks for sequential writes.
    pub sequential: u32,
    /// Log blocks for random writes.
    pub random: u32,
}

/// Number of blocks over which FAST stripes consecutive pages.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FastStripe {
    /// Logical blocks, each with a data block.
    pub data: u32,
    /// Sequential log blocks: the value of `data`, which is the default, or 1. If `data` is larger, a log block then
    /// takes consecutive pages of several logical blocks, and cannot become a data block (Yoo et al. 2013, Section
    /// IV-E).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<u32>,
    /// Random log blocks.
    pub random: u32,
}

impl Default for FastLogs {
    fn default() -> Self {
        FastLogs { sequential: 1, random: 7 }
    }
}

impl Default for FastStripe {
    fn default() -> Self {
        FastStripe { data: 1, sequential: None, random: 1 }
    }
}

impl Default for FastConfig {
    fn default() -> Self {
        FastConfig {
            logs: FastLogs::default(),
            scope: Scope::Device,
            first_writes: FirstWrites::Data,
            free_blocks: FreeBlocks::ByPlane,
            sequential: Sequential::BlockStart,
            stripe: FastStripe::default(),
            reclaim: Reclaim::One,
            merges: 1,
        }
    }
}

impl FastConfig {
    fn common(&self) -> Common {
        Common {
            scope: self.scope,
            first_writes: self.first_writes,
            free_blocks: self.free_blocks,
            stripe: self.stripe.data,
            sequential_stripe: self.stripe.sequential,
            kinds: &["sequential", "random"],
            streams: vec![
                Stream::sequential(self.logs.sequential, self.stripe.data, self.stripe.sequential),
                Stream { logs: self.logs.random, kind: StreamKind::Shared(self.stripe.random) },
            ],
            merges: self.merges,
            reclaim: self.reclaim,
        }
    }
}

impl SchemeOptions for FastConfig {
    fn needs(&self, device: &DeviceConfig) -> Needs {
        self.common().needs(device)
    }

    fn bytes(&self, device: &DeviceConfig) -> u64 {
        self.common().bytes(device)
    }
}

/// Sequential writes go to a log block in order, and others to any log block.
#[derive(Clone, Debug)]
pub struct ByOrder {
    runs: Runs,
}

impl Rules for ByOrder {
    fn stream_of(&mut self, write: Incoming) -> usize {
        usize::from(!self.runs.is_sequential(write))
    }

    fn rank(&self, _: u32, opened: u64) -> (u32, u64) {
        (0, opened)
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.runs.save(out)
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        self.runs.load(input)
    }
}

/// FAST.
pub type Fast = LogBlocks<ByOrder>;

impl Policy for Fast {
    type Config = FastConfig;

    fn check(options: &FastConfig, device: &DeviceConfig) -> Result<(), String> {
        options.common().check(device)?;
        options.sequential.check(device)
    }

    fn new(options: &FastConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let runs = Runs::new(options.sequential, device);
        Ok(LogBlocks::with_rules(device, options.common(), ByOrder { runs }))
    }
}
