//! The device file: one tree of documented structs.
//!
//! The parser, the defaults, the JSON schema, the reference page and the commented example are derived from these
//! structs. Quantities are written with their unit (`"20us"`, `"16KiB"`, `"800MT/s"`). Unknown keys are errors.

pub mod advanced;
mod builtin;
pub mod cells;
pub mod check;
pub mod checkpoint;
mod derived;
mod digest;
pub mod energy;
mod error;
pub mod errors;
pub mod external;
pub mod faults;
mod figures;
pub mod fraction;
pub mod gang;
mod layer;
mod limits;
mod listing;
mod load;
mod longest_step;
mod offered;
mod origin;
mod page;
mod path;
mod planes;
pub mod queues;
pub mod read_ahead;
mod reference;
mod reserve;
pub mod scale;
mod schema;
mod shape;
pub mod slc_cache;
mod structure;
mod suggestion;
pub mod superblock;
pub mod units;
mod wiring;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use advanced::Advanced;
use cells::SlcMode;
use energy::EnergyConfig;
use errors::ErrorsConfig;
use gang::Gang;
use queues::Queues;
use read_ahead::ReadAheadConfig;
use slc_cache::SlcCacheConfig;
use superblock::SuperblockConfig;

use crate::cache::eviction::EvictionConfig;
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::gc::trigger::TriggerConfig;
use crate::ftl::gc::victim::VictimConfig;
use crate::ftl::gc::wear::WearConfig;
use crate::ftl::mapping::MappingConfig;
use crate::ftl::temperature::TemperatureConfig;
use crate::scheduler::SchedulerConfig;
use crate::sim::request::SECTOR;
pub use builtin::Builtin;
pub use error::{ConfigError, Problem};
pub use external::{ExternalConfig, Offer};
pub use faults::{FaultKind, FaultsConfig, InjectedFault, WearOut};
pub use figures::Figure;
pub use listing::{Listed, Listing};
pub use load::{from_toml, from_toml_with, load, load_with};
pub use reference::{example, reference_page};
pub use schema::options;
pub use shape::{Shape, shapes_state};
pub use suggestion::{did_you_mean, did_you_mean_or_colon, unknown_variant};
use units::{Bandwidth, BlockCount, Bytes, Duration, FirmwareCost, Frequency, OneOrMany, TransferRate};

/// An SSD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Name of the device in results. Default: the file's name without its extension.
    #[serde(default)]
    pub name: String,
    /// Version of this device file, raised when a value changes.
    #[serde(default = "one")]
    pub version: u32,
    /// Description in one or two sentences. Default with a base: `based on` and its name.
    #[serde(default)]
    pub description: String,
    /// Numbers of channels, chips, dies, planes, blocks and pages, and their sizes.
    pub geometry: Geometry,
    /// Gangs of packages. Without this table, each channel works by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Gang")]
    pub gang: Option<Gang>,
    /// Capacity that the host sees, as a share of the flash or as a size.
    #[serde(default)]
    pub capacity: Capacity,
    /// Flash chips: cells, times and commands.
    pub nand: Nand,
    /// Channels between the controller and the chips.
    pub bus: Bus,
    /// Allocation policy, which chooses the plane of a host write.
    #[serde(default)]
    pub allocation: AllocationConfig,
    /// Classifier of hot and cold host writes. Each class has its own open blocks.
    #[serde(default, skip_serializing_if = "TemperatureConfig::is_default")]
    #[schemars(extend("default" = "none"))]
    pub temperature: TemperatureConfig,
    /// Mapping scheme, and the block summaries from which the map is rebuilt.
    #[serde(default)]
    pub mapping: Mapping,
    /// Garbage collection.
    #[serde(default)]
    pub gc: Gc,
    /// Scheduling policy: order in which dies and channels take waiting operations.
    #[serde(default)]
    pub scheduler: SchedulerConfig,
    /// Controller: write slots, program units and firmware.
    #[serde(default)]
    pub controller: Controller,
    /// Buffer in the controller's memory. Without this table there is no buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BufferConfig")]
    pub buffer: Option<BufferConfig>,
    /// Blocks in SLC mode that take the writes of the host first. Without this table there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SlcCacheConfig")]
    pub slc_cache: Option<SlcCacheConfig>,
    /// Blocks of several planes that are used together, with parity. Without this table, each block is used by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SuperblockConfig")]
    pub superblock: Option<SuperblockConfig>,
    /// Data kept in flash for the recovery after a power cut, in addition to `mapping.block_summary`.
    #[serde(default, skip_serializing_if = "Durability::is_default")]
    pub durability: Durability,
    /// Faults of blocks, programs, erases and reads. Without this table, nothing fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FaultsConfig")]
    pub faults: Option<FaultsConfig>,
    /// Errors of read data, their correction, and read retries. Without this table, data are read without errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ErrorsConfig")]
    pub errors: Option<ErrorsConfig>,
    /// Energy of flash operations. Without this table, no energy is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EnergyConfig")]
    pub energy: Option<EnergyConfig>,
    /// Host interface: queue and link.
    #[serde(default)]
    pub host: Host,
    /// Source of each value: a citation, or `assumed:` and a reason, by the path of a key or of a table.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

fn one() -> u32 {
    1
}

/// Levels of the flash array: channel > package > chip > die > plane > block > page > sector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Number of channels (buses), which are independent except in a gang.
    #[schemars(range(min = 1, max = limits::MAX_COUNT))]
    pub channels: u32,
    /// Number of chips per channel: parts with their own chip-enable and ready/busy signals ("ways").
    #[schemars(range(min = 1, max = limits::MAX_COUNT))]
    pub chips: u32,
    /// Number of chips per package, which is busy as a whole with `nand.concurrency = "chip"`.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = limits::MAX_COUNT))]
    pub chips_per_package: u32,
    /// Number of dies per chip.
    #[schemars(range(min = 1, max = limits::MAX_COUNT))]
    pub dies: u32,
    /// Number of planes per die.
    #[schemars(range(min = 1, max = limits::MAX_COUNT))]
    pub planes: u32,
    /// Number of blocks per plane.
    #[schemars(range(min = 1, max = limits::MAX_COUNT))]
    pub blocks: u32,
    /// Number of pages per block. Required unless `block_size` is given.
    #[serde(default)]
    #[schemars(range(min = 1, max = limits::MAX_COUNT))]
    pub pages: u32,
    /// Data bytes of a block, as an alternative to `pages`: the number of pages follows from `page_size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Bytes>,
    /// Data bytes of a flash page, the unit of reads.
    pub page_size: Bytes,
    /// Spare bytes of a flash page, in addition to its data bytes.
    #[serde(default)]
    pub spare_size: Bytes,
    /// Size of a mapping unit, which is mapped, and valid or invalid, as a whole: a divisor or multiple of the page
    /// size, or `"page"`. Default: 4 KiB, or the page size if that is smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "units::PageOrBytes")]
    pub mapping_unit: Option<Bytes>,
    /// Size of a logical page, a multiple of the mapping unit. A host write to a part of it also rewrites its other
    /// mapping units, which lie in different planes (docs/model/mapping.md). Default: no logical pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bytes")]
    pub logical_page: Option<Bytes>,
    /// Number of pages that one program command fills: 1, or the pages of a wordline.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = limits::MAX_COUNT))]
    pub pages_per_program: u32,
}

/// Capacity that the host sees, as a share of the flash or as a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Capacity {
    /// Over-provisioning: (physical - logical) / physical, from 0 to below 1.
    Spare(#[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))] f64),
    /// Size that the host sees.
    Logical(Bytes),
}

impl Default for Capacity {
    fn default() -> Self {
        Capacity::Spare(0.07)
    }
}

/// Bits per cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cell {
    /// A single bit.
    #[default]
    Slc,
    /// Two bits: LSB and MSB pages.
    Mlc,
    /// Three bits: LSB, CSB and MSB pages.
    Tlc,
    /// Four bits.
    Qlc,
}

impl Cell {
    /// Returns the number of bits per cell, which is also the number of page types of a wordline.
    pub const fn bits(self) -> u32 {
        self as u32 + 1
    }

    /// Returns the usual endurance of a block in erases: SLC as in Agrawal et al. 2008, Table 1, MLC as in MQSim's
    /// ssdconfig.xml. The values of TLC and QLC are assumed.
    pub const fn usual_endurance(self) -> u32 {
        match self {
            Cell::Slc => 100_000,
            Cell::Mlc => 10_000,
            Cell::Tlc => 3_000,
            Cell::Qlc => 1_000,
        }
    }
}

/// Level of the hierarchy that takes one command at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Concurrency {
    /// The package, which is busy as a whole (Agrawal et al. 2008, baseline).
    Chip,
    /// The chip, which takes its next command when all dies of an interleaved command are done (Hu et al. 2013).
    Command,
    /// The die (ONFI multi-LUN operations; present-day parts).
    #[default]
    Die,
    /// The pair of planes (0 and 1 of a die, 2 and 3, ...), which works by itself (Agrawal et al. 2008, Section 2.2).
    #[serde(rename = "plane-pair")]
    PlanePair,
    /// The plane (VSSIM).
    Plane,
    /// The plane for reads, and the die for programs and erases, which cover its planes (present-day parts).
    #[serde(rename = "plane-reads")]
    PlaneReads,
}

/// Flash chips: cells, times and commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nand {
    /// Bits per cell, which determine the number of page types of a wordline and the default of `endurance`.
    #[serde(default)]
    pub cell: Cell,
    /// Time from cell to register (tR): one value, or one for each page type of the wordline, LSB first.
    #[schemars(extend("x-range" = limits::TIME))]
    pub read: OneOrMany<Duration>,
    /// Time from register to cell (tPROG): one value, or one for each page type of the wordline, LSB first. If
    /// `geometry.pages_per_program` is above 1, one value for the whole wordline.
    #[schemars(extend("x-range" = limits::TIME))]
    pub program: OneOrMany<Duration>,
    /// Time of a block erase (tBERS).
    #[schemars(extend("x-range" = limits::TIME))]
    pub erase: Duration,
    /// Number of erases that a block endures; 0 if unlimited or unknown. Default: 100,000 for SLC, 10,000 for MLC,
    /// 3,000 for TLC and 1,000 for QLC. With a table `faults`, the next erase fails. Without one, results report the
    /// share used (`wear.life_used`), with a warning above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub endurance: Option<u32>,
    /// Times of blocks in SLC mode, which hold one page of each wordline. Options of the mapping scheme select these
    /// blocks. Their erase time and endurance are those of other blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SlcMode")]
    pub slc_mode: Option<SlcMode>,
    /// Level of the hierarchy that takes one command at a time.
    #[serde(default)]
    pub concurrency: Concurrency,
    /// Commands beyond the basic read, program and erase. All are off by default.
    #[serde(default)]
    pub advanced: Advanced,
}

/// Channels between the controller and the chips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Protocol of data transfers, with its cycle time or transfer rate.
    pub protocol: BusProtocol,
    /// Time of a data cycle out of a chip (tRC), for an SDR bus. Default: the cycle of `bus.protocol.sdr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = limits::CYCLE))]
    pub read_cycle: Option<Duration>,
    /// Time of a data cycle into a chip (tWC), for an SDR bus. Default: the cycle of `bus.protocol.sdr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = limits::CYCLE))]
    pub write_cycle: Option<Duration>,
    /// Number of data lines: 8 or 16.
    #[serde(default = "eight")]
    #[schemars(extend("enum" = [8, 16]))]
    pub width: u32,
    /// Time of one command or address cycle. Default: the time of one data cycle into a chip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = limits::COMMAND_CYCLE))]
    pub command_cycle: Option<Duration>,
    /// Number of command and address cycles of each operation. If all are 0, commands take no time on the channel.
    #[serde(default)]
    pub command_cycles: CommandCycles,
    /// Order in which a channel grants waiting operations.
    #[serde(default, skip_serializing_if = "BusOrder::is_default")]
    #[schemars(extend("default" = "fcfs"))]
    pub order: BusOrder,
    /// True if transfers include the spare bytes.
    #[serde(default)]
    pub transfer_spare: bool,
    /// True if reads transfer only the requested sectors, or those that a partial write keeps, instead of whole mapping
    /// units. Programs always transfer whole pages. Requires mapping units of at most a page. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial_transfer: bool,
    /// Delay when a channel switches to another chip.
    #[serde(default)]
    #[schemars(extend("x-range" = limits::TIME))]
    pub way_switch: Duration,
    /// Delay when the controller switches to another channel.
    #[serde(default)]
    #[schemars(extend("x-range" = limits::TIME))]
    pub channel_switch: Duration,
    /// Delay when the controller switches to another channel for a read. Default: `channel_switch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = limits::TIME))]
    pub channel_switch_read: Option<Duration>,
    /// Resource that a channel switch delays.
    #[serde(default)]
    pub channel_switch_scope: SwitchScope,
}

fn eight() -> u32 {
    8
}

/// Protocol of data transfers on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum BusProtocol {
    /// Asynchronous single data rate, with the time of a cycle (tRC, tWC).
    Sdr(#[schemars(extend("x-range" = limits::CYCLE))] Duration),
    /// NV-DDR, NV-DDR2 or NV-DDR3, with the number of transfers per second.
    NvDdr(#[schemars(extend("x-range" = limits::TRANSFER_RATE))] TransferRate),
}

/// Direction of a transfer on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into a chip.
    In,
    /// Out of a chip.
    Out,
}

/// Number of command and address cycles on the channel, by operation (ONFI: read 00h + 5 + 30h, program 80h + 5 + 10h,
/// erase 60h + 3 + D0h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandCycles {
    /// Cycles of a read.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    pub read: u32,
    /// Cycles of a program.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    pub program: u32,
    /// Cycles of an erase.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    pub erase: u32,
}

/// Order in which a channel grants waiting operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BusOrder {
    /// The lowest rank first, within a rank the longest wait, for command cycles and data alike (MQSim).
    #[default]
    Fcfs,
    /// Command cycles without data (of reads, erases and copy-backs) before all data; otherwise as `fcfs`.
    CommandsFirst,
}

impl BusOrder {
    fn is_default(&self) -> bool {
        *self == BusOrder::default()
    }
}

/// Resource that a channel switch delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SwitchScope {
    /// Only the channel that the controller switches to.
    #[default]
    Channel,
    /// The whole controller: one switch at a time (VSSIM).
    Controller,
}

/// Mapping scheme, and the block summaries from which the map is rebuilt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Mapping scheme, which maps logical units to physical addresses.
    #[serde(default)]
    pub scheme: MappingConfig,
    /// Summary of each block, from which the map is rebuilt after a power cut.
    #[serde(default)]
    pub block_summary: BlockSummary,
}

/// Summary of a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum BlockSummary {
    /// No summaries.
    #[default]
    None,
    /// Summary in the last page of each block (Agrawal et al. 2008, Section 3.4), of this number of bytes.
    LastPage(Bytes),
}

/// Garbage collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gc {
    /// Number of free blocks in a plane, or share of its blocks, at or below which garbage collection runs.
    pub soft_threshold: BlockCount,
    /// Number of free blocks in a plane, or share of its blocks, at or below which garbage collection takes priority
    /// over host writes, and with some schedulers over host reads.
    pub hard_threshold: BlockCount,
    /// Trigger policy, which decides when garbage collection starts at or below the soft threshold.
    #[serde(skip_serializing_if = "TriggerConfig::is_default")]
    #[schemars(extend("default" = "threshold"))]
    pub trigger: TriggerConfig,
    /// Victim policy, which chooses the block to reclaim.
    pub victim: VictimConfig,
    /// Wear-leveling policy, which chooses free blocks to open, refuses victims, and names blocks to migrate.
    #[serde(skip_serializing_if = "WearConfig::is_default")]
    #[schemars(extend("default" = "none"))]
    pub wear: WearConfig,
    /// Range of the thresholds and of the choice of a victim. `"pool"` needs dynamic allocation
    /// (`allocation.dynamic.scope`). Numbers of blocks are then multiplied by the planes of the pool, and shares refer
    /// to all its blocks.
    #[serde(skip_serializing_if = "GcScope::is_default")]
    #[schemars(extend("default" = "plane"))]
    pub scope: GcScope,
    /// Planes that the valid units of a victim are moved to: its own, by copy-back if possible, or any of its pool,
    /// through the controller. `"pool"` needs dynamic allocation.
    #[serde(skip_serializing_if = "GcScope::is_default")]
    #[schemars(extend("default" = "plane"))]
    pub destination: GcScope,
    /// Blocks that moved units are written to.
    pub frontiers: Frontiers,
    /// Condition under which garbage collection takes priority over host writes (docs/model/gc.md).
    #[serde(skip_serializing_if = "GcPace::is_default")]
    #[schemars(extend("default" = "queued"))]
    pub pace: GcPace,
    /// Garbage collection in idle time. Without this table, it does not run above the soft threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// Delay of host writes while few blocks are free. Without this table, writes are not delayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<Throttle>,
}

impl Default for Gc {
    fn default() -> Self {
        Gc {
            soft_threshold: BlockCount::Blocks(3),
            hard_threshold: BlockCount::Blocks(1),
            trigger: TriggerConfig::default(),
            victim: VictimConfig::default(),
            wear: WearConfig::default(),
            scope: GcScope::Plane,
            destination: GcScope::Plane,
            frontiers: Frontiers::Separate,
            pace: GcPace::Queued,
            background: None,
            throttle: None,
        }
    }
}

/// Planes that garbage collection considers together (Agrawal et al. 2008, Section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GcScope {
    /// Each plane by itself.
    #[default]
    Plane,
    /// The planes of an allocation pool.
    Pool,
}

impl GcScope {
    fn is_default(&self) -> bool {
        *self == GcScope::default()
    }
}

/// Garbage collection in idle time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Idle time, counted from the last completion, after which garbage collection starts.
    #[schemars(extend("x-range" = limits::TIME))]
    pub idle: Duration,
    /// Number of free blocks in a plane, or share of its blocks, below which garbage collection runs, at least two more
    /// than the soft threshold. With `gc.scope = "pool"`, it applies to pools, as thresholds do.
    pub until: BlockCount,
    /// True if a host request interrupts the current victim after the page that is being moved. The victim is continued
    /// in the next idle time, or at the soft threshold.
    #[serde(default = "yes")]
    pub preempt: bool,
    /// Share of a block's mapping units that a victim must free, from 0 to 1; with 0, one program or more.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
}

/// Delay of host writes while few blocks are free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// Mean number of free blocks of a plane, or share of its blocks, below which writes are delayed, above the hard
    /// threshold.
    pub below: BlockCount,
    /// Delay of each mapping unit of a write at the hard threshold. It falls linearly to 0 at `below`.
    #[schemars(extend("x-range" = limits::DELAY))]
    pub delay: Duration,
}

/// Condition under which garbage collection takes priority over host writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GcPace {
    /// The plane is at or below the hard threshold. Above it, garbage collection queues with the host.
    #[default]
    Queued,
    /// The plane has less free space, including open blocks, than the soft threshold plus half a block, so garbage
    /// collection frees as much space as the host fills. With more free space it chooses no victim. The hard threshold
    /// has no effect.
    Proportional,
    /// Always. The moves of a victim hold its channel, until the victim is erased or its moves have to wait (SSDsim).
    /// The hard threshold has no effect. Requires page mapping and collection by plane.
    Exclusive,
    /// In bursts of the whole device, during which the host waits or has a share of the programs. A burst starts when
    /// the planes have less free space on average than `proportional` keeps.
    Burst(Burst),
}

/// Amount of data that a burst of garbage collection moves. It does not depend on the victims: a burst may collect
/// several, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BurstAmount {
    /// Number of stripes: programs of each plane.
    Stripes(#[schemars(range(min = 1, max = limits::MAX_BURST))] u32),
    /// Number of mapping units, rounded up to whole stripes.
    Units(#[schemars(range(min = 1, max = limits::MAX_BURST))] u32),
}

/// A burst of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Amount of data that a burst moves: `{ stripes = n }`, programs of each plane, or `{ units = n }`, mapping units,
    /// rounded up to whole stripes.
    pub amount: BurstAmount,
    /// Share of the programs that the host has during a burst. Default: none, so that it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 0.99))]
    pub share: Option<f64>,
    /// Time between two bursts below which the host has its share of the second one. After a longer time, a burst stops
    /// the host. Default: any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = limits::TIME))]
    pub rest: Option<Duration>,
    /// Data in the buffer that wait for flash, at which no write enters it during a burst. Default: its capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<Bytes>,
}

impl GcPace {
    fn is_default(&self) -> bool {
        *self == GcPace::default()
    }
}

/// Blocks that moved units are written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Frontiers {
    /// Blocks of their own.
    #[default]
    Separate,
    /// Blocks that host writes go to.
    Single,
}

/// Controller: write slots, program units and firmware.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Controller {
    /// Number of write slots, one for each mapping unit until its program completes.
    #[schemars(range(min = 1, max = limits::MAX_SLOTS))]
    pub write_slots: u32,
    /// Maximum time for which a host write waits for others to fill its program command. The rest is padding. A flush
    /// or FUA ends the wait.
    #[schemars(extend("x-range" = limits::TIME))]
    pub fill_timeout: Duration,
    /// Maximum number of execution units that program or erase at the same time, for a limit of power. Further programs
    /// and erases wait after their transfer, in the order of their starts. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub power_cap: Option<u32>,
    /// Costs of the controller's firmware. Without this table it takes no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Firmware")]
    pub firmware: Option<Firmware>,
}

impl Default for Controller {
    fn default() -> Self {
        Controller { write_slots: 4096, fill_timeout: Duration(0), power_cap: None, firmware: None }
    }
}

/// Costs of the controller's firmware. A cost is a time, or a number of instructions, of which a core executes one per
/// clock cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Firmware {
    /// Number of cores, which take work first come, first served.
    #[schemars(range(min = 1, max = 1024))]
    pub cores: u32,
    /// Clock frequency of each core. Default: Hu et al. 2011, Section 3.1.
    #[schemars(extend("x-range" = limits::CLOCK))]
    pub clock: Frequency,
    /// Cost of receiving a request, and again of completing it.
    pub interrupt: FirmwareCost,
    /// Cost of each map look-up of a mapping unit.
    pub lookup: FirmwareCost,
    /// Cost of each mapping unit that gets a physical address.
    pub allocation: FirmwareCost,
    /// Cost of each choice of a block by garbage collection.
    pub gc: FirmwareCost,
    /// Cost of each mapping unit that reaches the buffer.
    pub buffer: FirmwareCost,
    /// Standard deviation of the logarithm of the time of a work item, which then has a log-normal distribution with
    /// the cost as its mean. Default: 0, always the cost.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Default for Firmware {
    fn default() -> Self {
        let none = FirmwareCost::Instructions(0);
        Firmware {
            cores: 1,
            clock: Frequency(100_000_000),
            interrupt: none,
            lookup: none,
            allocation: none,
            gc: none,
            buffer: none,
            jitter: 0.0,
        }
    }
}

/// Condition under which a buffered write completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// The buffer has its data. The data is written back to flash later.
    #[default]
    WriteBack,
    /// Flash has its data. The buffer keeps a copy for reads.
    WriteThrough,
}

/// Buffer in the controller's memory. An entry holds one mapping unit, with a mask of the sectors that are present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Capacity in bytes, rounded down to whole mapping units; 0B: no buffer.
    pub capacity: Bytes,
    /// Condition under which a write completes.
    #[serde(default)]
    pub write: WritePolicy,
    /// True if the buffer also keeps units that are in flash, after they were read or written back.
    #[serde(default = "yes")]
    pub read: bool,
    /// Reads of units before a sequential stream of the host requests them. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<ReadAheadConfig>,
    /// Eviction policy, which chooses the units to evict.
    #[serde(default)]
    pub eviction: EvictionConfig,
    /// Share of the capacity above which units are evicted ahead of need; 1: never ahead of need.
    #[serde(default = "default_high_water")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub high_water: f64,
    /// Share of the capacity down to which units are evicted ahead of need.
    #[serde(default = "default_low_water")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub low_water: f64,
    /// Time without an outstanding request after which dirty units are written back. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Duration", extend("x-range" = limits::TIME))]
    pub idle: Option<Duration>,
    /// Time over which the rate of write-back is measured, at which writes are admitted above `high_water`. Default: a
    /// write is admitted when there is room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Duration", extend("x-range" = limits::TIME))]
    pub credits: Option<Duration>,
    /// Latency of a memory access, in addition to the transfer time of its data.
    #[serde(default)]
    #[schemars(extend("x-range" = limits::TIME))]
    pub latency: Duration,
    /// Bandwidth of the memory, shared by both directions. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bandwidth", extend("x-range" = limits::BANDWIDTH))]
    pub bandwidth: Option<Bandwidth>,
    /// True if the buffer survives a power cut. Flushes and FUA writes then do not wait for flash.
    #[serde(default)]
    pub power_loss_protection: bool,
}

fn yes() -> bool {
    true
}

fn default_high_water() -> f64 {
    1.0
}

fn default_low_water() -> f64 {
    0.9
}

/// Data kept in flash for the recovery after a power cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Durability {
    /// True if trims are recorded in a journal in flash: at a flush or FUA, when half a mapping unit of records is
    /// pending, and before a block with a trimmed unit is erased. Otherwise, a trimmed unit may reappear after a power
    /// cut, even after a flush.
    pub trim_journal: bool,
    /// Bytes of host writes for each mapping unit of checkpoint that is written, so that a recovery need not read every
    /// block. It takes 8 to 16 bytes of flash for each physical mapping unit (docs/model/durability.md).
    /// Default: no checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bytes")]
    pub checkpoint: Option<Bytes>,
    /// Memory of the map and of the states of blocks.
    #[serde(skip_serializing_if = "MapMemory::is_default")]
    #[schemars(extend("default" = "volatile"))]
    pub map: MapMemory,
}

/// Memory of the map and of the states of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MapMemory {
    /// Lost in a power cut: a recovery reads the records of all blocks without an account in a checkpoint.
    #[default]
    Volatile,
    /// Phase-change or magnetoresistive memory: a recovery reads no flash.
    NonVolatile,
    /// Backup power is enough to write the map to flash: a recovery reads it from there.
    Saved,
}

impl MapMemory {
    fn is_default(&self) -> bool {
        *self == MapMemory::default()
    }
}

impl Durability {
    /// Returns `true` if nothing is kept.
    pub fn is_default(&self) -> bool {
        *self == Durability::default()
    }
}

/// Order of host reads and writes in front of the mapping scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostOrder {
    /// A read does not wait for writes that wait for their admission.
    #[default]
    Separate,
    /// A read is looked up after all earlier writes have been admitted: to the buffer, or to write slots.
    OneQueue,
}

impl HostOrder {
    fn is_default(&self) -> bool {
        *self == HostOrder::default()
    }
}

/// Host interface: queue and link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Maximum number of outstanding requests. Further requests wait at the host.
    #[schemars(range(min = 1))]
    pub queue_depth: u32,
    /// Size of a logical block, `"512B"` or `"4KiB"`. Requests are whole logical blocks: a live device refuses others,
    /// and reads and writes of jobs and traces are widened.
    #[serde(skip_serializing_if = "is_sector")]
    #[schemars(extend("default" = "512B"))]
    pub sector_size: Bytes,
    /// Bandwidth of the link in each direction. Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = limits::BANDWIDTH))]
    pub link_bandwidth: Option<Bandwidth>,
    /// Latency of the link in each direction.
    #[schemars(extend("x-range" = limits::TIME))]
    pub link_latency: Duration,
    /// Order of reads and writes. Default: separate.
    #[serde(skip_serializing_if = "HostOrder::is_default")]
    #[schemars(extend("default" = "separate"))]
    pub order: HostOrder,
    /// Queue pairs. Default: one queue, in which requests keep their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Queues>,
    /// Time of the host's software for each request, by which its completion is later. Figures that were measured on a
    /// real drive include it. A live device leaves it out. Default: 0.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    #[schemars(extend("x-range" = limits::TIME))]
    pub software: Duration,
}

fn is_sector(size: &Bytes) -> bool {
    size.0 == SECTOR
}

impl Default for Host {
    fn default() -> Self {
        Host {
            queue_depth: 65_536,
            sector_size: Bytes(SECTOR),
            link_bandwidth: None,
            link_latency: Duration::default(),
            order: HostOrder::default(),
            queues: None,
            software: Duration::default(),
        }
    }
}
