//! LAST: log blocks for sequential, hot and cold writes (Lee, Shin, Kim and Kim, "LAST: locality-aware sector
//! translation for NAND flash memory-based storage systems", ACM SIGOPS Operating Systems Review 42(6), 2008).

use super::log_blocks::options::{Common, FirstWrites, FreeBlocks, Reclaim, Sequential, Stream, StreamKind, is_one};
use super::log_blocks::{Incoming, LogBlocks, Rules, Runs};
use super::{Needs, SchemeOptions};
use crate::config::DeviceConfig;
use crate::ftl::allocation::dynamic::Scope;
use crate::policy::Policy;
use crate::state::{Reader, StateError, Writer};

/// Options of LAST.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LastConfig {
    /// Number of log blocks.
    pub logs: LastLogs,
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
    /// Window of host writes, in flash pages: a write is hot if its mapping unit was written within it.
    pub hot_window: u32,
    /// Number of blocks over which consecutive pages are striped.
    pub stripe: LastStripe,
    /// Log blocks that a merge reclaims.
    pub reclaim: Reclaim,
    /// Number of full merges of a set of planes at a time, each with a free block.
    #[serde(skip_serializing_if = "is_one")]
    pub merges: u32,
}

/// Number of log blocks of LAST.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LastLogs {
    /// Log blocks for sequential writes.
    pub sequential: u32,
    /// Log blocks for random writes of hot units.
    pub hot: u32,
    /// Log blocks for other random writes.
    pub cold: u32,
}

/// Number of blocks over which LAST stripes consecutive pages.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LastStripe {
    /// Logical blocks, each with a data block.
    pub data: u32,
    /// Sequential log blocks: the value of `data`, which is the default, or 1. If `data` is larger, a log block then
    /// takes consecutive pages of several logical blocks, and cannot become a data block (Yoo et al. 2013, Section
    /// IV-E).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<u32>,
    /// Hot log blocks.
    pub hot: u32,
    /// Cold log blocks.
    pub cold: u32,
}

impl Default for LastLogs {
    fn default() -> Self {
        LastLogs { sequential: 4, hot: 8, cold: 8 }
    }
}

impl Default for LastStripe {
    fn default() -> Self {
        LastStripe { data: 1, sequential: None, hot: 1, cold: 1 }
    }
}

impl Default for LastConfig {
    fn default() -> Self {
        LastConfig {
            logs: LastLogs::default(),
            scope: Scope::Device,
            first_writes: FirstWrites::Data,
            free_blocks: FreeBlocks::ByPlane,
            sequential: Sequential::MinPages(4),
            hot_window: 256,
            stripe: LastStripe::default(),
            reclaim: Reclaim::One,
            merges: 1,
        }
    }
}

impl LastConfig {
    fn common(&self) -> Common {
        Common {
            scope: self.scope,
            first_writes: self.first_writes,
            free_blocks: self.free_blocks,
            stripe: self.stripe.data,
            sequential_stripe: self.stripe.sequential,
            kinds: &["sequential", "hot", "cold"],
            streams: vec![
                Stream::sequential(self.logs.sequential, self.stripe.data, self.stripe.sequential),
                Stream { logs: self.logs.hot, kind: StreamKind::Shared(self.stripe.hot) },
                Stream { logs: self.logs.cold, kind: StreamKind::Shared(self.stripe.cold) },
            ],
            merges: self.merges,
            reclaim: self.reclaim,
        }
    }
}

impl SchemeOptions for LastConfig {
    fn needs(&self, device: &DeviceConfig) -> Needs {
        self.common().needs(device)
    }

    fn bytes(&self, device: &DeviceConfig) -> u64 {
        self.common().bytes(device) + 4 * device.logical_units()
    }
}

/// Sequential writes go to a log block in order. Others are divided by the time since the last write of the unit.
#[derive(Clone, Debug)]
pub struct ByLocality {
    runs: Runs,
    /// Number of units written before the last write of each unit, plus 1, or 0 if it was never written.
    written: Vec<u32>,
    window: u32,
}

impl Rules for ByLocality {
    fn stream_of(&mut self, write: Incoming) -> usize {
        // The clock wraps around after 2^32 - 1 units. A unit that was not written for that long may seem hot once.
        let now = (write.clock % u64::from(u32::MAX)) as u32 + 1;
        let last = std::mem::replace(&mut self.written[write.lpn.index()], now);
        let is_hot = last != 0 && now.wrapping_sub(last) <= self.window;
        match (self.runs.is_sequential(write), is_hot) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    }

    // Blocks without valid units cost nothing, and few units need few merges.
    fn rank(&self, valid: u32, opened: u64) -> (u32, u64) {
        (valid, opened)
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.runs.save(out)?;
        self.written.iter().try_for_each(|&time| out.u32(time))
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        self.runs.load(input)?;
        for time in &mut self.written {
            *time = input.u32()?;
        }
        Ok(())
    }
}

/// LAST.
pub type Last = LogBlocks<ByLocality>;

impl Policy for Last {
    type Config = LastConfig;

    fn check(options: &LastConfig, device: &DeviceConfig) -> Result<(), String> {
        options.common().check(device)?;
        options.sequential.check(device)?;
        if options.hot_window == 0 {
            return Err("hot_window = 0: no write would be hot; give at least 1".to_owned());
        }
        Ok(())
    }

    fn new(options: &LastConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let rules = ByLocality {
            runs: Runs::new(options.sequential, device),
            written: vec![0; device.logical_units() as usize],
            window: options.hot_window.saturating_mul(device.units_per_page()) / device.pages_per_unit(),
        };
        Ok(LogBlocks::with_rules(device, options.common(), rules))
    }
}
