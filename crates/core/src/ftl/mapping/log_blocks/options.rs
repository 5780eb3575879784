//! Options that the log-block mappings share.

use super::slots::Slot;
use crate::config::DeviceConfig;
use crate::ftl::allocation::dynamic::{DynamicConfig, Scope};
use crate::ftl::mapping::{Needs, WholeBlocks, check_places};

/// Log blocks that a merge reclaims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reclaim {
    /// A single log block.
    #[default]
    One,
    /// All log blocks of a kind, once they are all full (Yoo et al. 2013).
    All,
}

/// Plane that gives the next block of a set of planes. Among the free blocks of a plane, `gc.wear` chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FreeBlocks {
    /// The planes in turn, in the order of `allocation.static`.
    #[default]
    ByPlane,
    /// The channels in turn, and the plane of the channel whose next free block has the fewest erases (Yoo et al. 2013,
    /// Section III-E). Consecutive logical blocks are in different channels.
    ByChannel,
}

impl FreeBlocks {
    /// Returns `true` for the default, which a device file need not name.
    pub fn is_default(&self) -> bool {
        *self == FreeBlocks::default()
    }
}

/// Place of a write whose page in the data block is free. Pages are programmed in order, so that a page is free if
/// neither it nor a later page of the block has been programmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FirstWrites {
    /// The data block (Kim et al. 2002; Lee et al. 2007).
    #[default]
    Data,
    /// A log block, as for all other writes.
    Log,
}

/// Rule for the writes that begin a sequential log block. A write that continues one is always sequential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sequential {
    /// Writes of the first unit of a logical block (Lee et al. 2007).
    BlockStart,
    /// These, and writes that follow the last write of the host (Yoo et al. 2013).
    AfterLast,
    /// Writes of requests with this number of flash pages or more (Lee et al. 2008).
    MinPages(u32),
}

/// Log blocks of one kind, among those of a set of planes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Maximum number of log blocks.
    pub logs: u32,
    /// Place of a write within the log blocks.
    pub kind: StreamKind,
}

impl Stream {
    /// Returns sequential log blocks. They are those of one logical block, which can become data blocks, only if they
    /// have the stripe of data blocks.
    pub fn sequential(logs: u32, data_stripe: u32, stripe: Option<u32>) -> Stream {
        let kind =
            if stripe.is_none_or(|own| own == data_stripe) { StreamKind::InOrder } else { StreamKind::Consecutive };
        Stream { logs, kind }
    }
}

/// Place of a write within the log blocks of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamKind {
    /// To the log block of its logical block, to any address.
    Own,
    /// To the log block of its logical block, to its offset.
    InOrder,
    /// To the log block that the unit before it went to, to the next address.
    Consecutive,
    /// To any log block. So many are filled at the same time.
    Shared(u32),
}

/// Options of a log-block mapping that do not depend on the scheme.
#[derive(Clone, Debug)]
pub struct Common {
    /// Planes that share log blocks.
    pub scope: Scope,
    /// Plane that gives the next block.
    pub free_blocks: FreeBlocks,
    /// Number of logical blocks over which consecutive pages are striped.
    pub stripe: u32,
    /// Number of sequential log blocks over which consecutive pages are striped, if it is not `stripe`.
    pub sequential_stripe: Option<u32>,
    /// Names of the kinds of log blocks.
    pub kinds: &'static [&'static str],
    /// Log blocks of each kind.
    pub streams: Vec<Stream>,
    /// Number of merges at a time.
    pub merges: u32,
    /// Log blocks that a merge reclaims.
    pub reclaim: Reclaim,
    /// Place of a write whose page in the data block is free.
    pub first_writes: FirstWrites,
}

/// Returns `true` for the default, which a device file need not name.
pub fn is_one(value: &u32) -> bool {
    *value == 1
}

impl Common {
    /// Returns the number of planes that share log blocks. These are consecutive.
    pub fn planes(&self, device: &DeviceConfig) -> u32 {
        DynamicConfig { scope: self.scope, ..DynamicConfig::default() }.planes_per_pool(device)
    }

    /// Returns the number of blocks that a set of planes fills at a time: log blocks, and the targets of merges.
    pub fn slots(&self) -> u32 {
        self.streams.iter().fold(self.merges, |kept, stream| kept.saturating_add(stream.logs))
    }

    /// Returns the number of blocks of a set of planes that are neither data blocks nor log blocks on a full device.
    pub fn beyond(&self, device: &DeviceConfig) -> u32 {
        let planes = self.planes(device);
        let stripe = u64::from(self.stripe.max(1));
        let units = u64::from(device.data_units_per_block()).max(1);
        let stripes = device.logical_units().div_ceil(units * stripe);
        let data = (stripes * stripe).div_ceil(u64::from(device.total_planes() / planes.max(1)).max(1));
        let all = u64::from(planes) * u64::from(device.good_blocks());
        let kept = self.slots() - self.merges + device.own_blocks(planes);
        all.saturating_sub(data).saturating_sub(u64::from(kept)) as u32
    }

    /// Returns the requirements of the scheme.
    pub fn needs(&self, device: &DeviceConfig) -> Needs {
        Needs {
            leaves_out_pages: true,
            whole_blocks: Some(WholeBlocks {
                planes: self.planes(device),
                // 0 is refused later.
                stripe: self.stripe.max(1),
                // A free block takes the place of one that fails.
                kept: self
                    .slots()
                    .saturating_add(u32::from(device.faults.is_some()) + device.own_blocks(self.planes(device))),
                logs: self.kinds,
            }),
            // A recovery may need one more block, and another one if blocks may fail.
            no_power_loss: (self.beyond(device) <= self.merges.saturating_add(u32::from(device.faults.is_some())))
                .then_some("a recovery needs one more block: give fewer log blocks, or raise capacity.spare"),
            no_classes: Some(
                "log-block mappings choose the log block of a write themselves; choose temperature = \"none\", or \
                 mapping.scheme = \"page\" or \"dftl\"",
            ),
            ..Needs::default()
        }
    }

    /// Returns the size of the scheme's tables in bytes.
    pub fn bytes(&self, device: &DeviceConfig) -> u64 {
        let (units, blocks) = (device.logical_units(), u64::from(device.total_blocks()));
        let logical = units.div_ceil(u64::from(device.data_units_per_block())) + u64::from(self.stripe);
        let of_data = if self.first_writes == FirstWrites::Data { 8 * logical } else { 0 };
        let slots = u64::from(self.slots()) * u64::from(device.total_planes() / self.planes(device));
        12 * logical + of_data + 4 * blocks + units / 8 + slots * size_of::<Slot>() as u64
    }

    fn check_sequential_stripe(&self, has_several_sets: bool) -> Result<(), String> {
        let (Some(own), data) = (self.sequential_stripe, self.stripe) else { return Ok(()) };
        if own != 1 && own != data {
            return Err(format!("stripe.sequential = {own}, must be 1 or the value of stripe.data, which is {data}"));
        }
        if own != data && has_several_sets {
            return Err(format!(
                "stripe.sequential = {own}: the {data} logical blocks of a stripe must share log blocks; use scope = \
                 \"device\""
            ));
        }
        Ok(())
    }

    /// Checks the options for a device.
    ///
    /// # Errors
    ///
    /// The option, the cause, and a value that works.
    pub fn check(&self, device: &DeviceConfig) -> Result<(), String> {
        check_places(device)?;
        let most = device.total_planes() * device.geometry.blocks;
        let planes = self.planes(device);
        if let Scope::Channels(channels) = self.scope
            && (channels == 0 || !device.channels().is_multiple_of(channels))
        {
            return Err(format!(
                "scope = {{ channels = {channels} }} must divide {} channels; use 1",
                device.channels()
            ));
        }
        for stream in &self.streams {
            if stream.logs == 0 || stream.logs > most {
                return Err(format!("{} log blocks of a kind, must be from 1 to {most}; use 4", stream.logs));
            }
            if let StreamKind::Shared(stripe) = stream.kind
                && !(1..=stream.logs).contains(&stripe)
            {
                return Err(format!(
                    "stripe over {stripe} log blocks, must be from 1 to {}, the number of log blocks",
                    stream.logs
                ));
            }
        }
        if !(1..=planes).contains(&self.merges) {
            return Err(format!(
                "merges = {}, must be from 1 to {planes}, the number of planes that share log blocks",
                self.merges
            ));
        }
        if self.stripe == 0 || !(device.total_planes().is_multiple_of(self.stripe)) {
            let planes = device.total_planes();
            return Err(format!("stripe.data = {}, must divide {planes}, the number of planes; use 1", self.stripe));
        }
        self.check_sequential_stripe(planes < device.total_planes())
    }
}
