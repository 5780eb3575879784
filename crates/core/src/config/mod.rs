//! The device file: one tree of documented structs.
//!
//! From it come the parser, the defaults, the JSON schema, the reference page and the commented example. Units are
//! written in the values (`"20us"`, `"16KiB"`, `"800MT/s"`). Unknown keys are errors.

pub mod advanced;
mod builtin;
pub mod cells;
pub mod check;
pub mod checkpoint;
mod derived;
mod digest;
mod error;
pub mod faults;
mod figures;
mod layer;
mod load;
mod offered;
mod origin;
mod page;
mod path;
mod reference;
mod reserve;
mod schema;
mod shape;
mod structure;
mod suggestion;
pub mod units;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use advanced::Advanced;
use cells::SlcMode;

use crate::cache::eviction::EvictionConfig;
use crate::external::Externals;
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::gc::trigger::TriggerConfig;
use crate::ftl::gc::victim::VictimConfig;
use crate::ftl::gc::wear::WearConfig;
use crate::ftl::mapping::MappingConfig;
use crate::ftl::temperature::TemperatureConfig;
use crate::scheduler::SchedulerConfig;
pub use builtin::{BUILTINS, Builtin, builtin, builtin_names};
pub use error::{ConfigError, Place, Problem};
pub use faults::{FaultKind, FaultsConfig, InjectedFault};
pub use figures::Figure;
pub use load::{base_in, file_text, from_toml, from_toml_with, load, load_with};
pub use reference::{example, reference_page};
pub use schema::{json_schema, json_schema_with, options};
pub use shape::{Shape, shapes_state};
pub use suggestion::{did_you_mean, unknown_variant};
use units::{Bandwidth, BlockCount, Bytes, Duration, FirmwareCost, Frequency, OneOrMany, TransferRate};

/// One SSD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// What the device is called in results. A file without it is called by its own name.
    #[serde(default)]
    pub name: String,
    /// Version of this device file; raised when a figure changes.
    #[serde(default = "one")]
    pub version: u32,
    /// One or two sentences on what it is. A file with a base and without this is `based on` its base.
    #[serde(default)]
    pub description: String,
    /// How many of everything, and how large.
    pub geometry: Geometry,
    /// How much of the flash the host sees.
    #[serde(default)]
    pub capacity: Capacity,
    /// The flash cells: their times.
    pub nand: Nand,
    /// The channel between controller and chips.
    pub bus: Bus,
    /// Where a written unit goes.
    #[serde(default)]
    pub allocation: AllocationConfig,
    /// Which of the units that the host writes are hot, and so go to blocks of their own.
    #[serde(default, skip_serializing_if = "TemperatureConfig::is_default")]
    #[schemars(extend("default" = "none"))]
    pub temperature: TemperatureConfig,
    /// Mapping and what is kept to rebuild it.
    #[serde(default)]
    pub mapping: Mapping,
    /// Cleaning: reclaiming superseded pages.
    #[serde(default)]
    pub gc: Gc,
    /// Which waiting operation a die or a channel takes next.
    #[serde(default)]
    pub scheduler: SchedulerConfig,
    /// The controller's own resources.
    #[serde(default)]
    pub controller: Controller,
    /// The buffer of the controller's memory. Without this table there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BufferConfig")]
    pub buffer: Option<BufferConfig>,
    /// What is kept in flash for the time after a power cut, beside the data and `mapping.block_summary`.
    #[serde(default, skip_serializing_if = "Durability::is_default")]
    pub durability: Durability,
    /// What fails: blocks, programs, erases and reads. Without this table nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FaultsConfig")]
    pub faults: Option<FaultsConfig>,
    /// The host's side.
    #[serde(default)]
    pub host: Host,
    /// Where each figure comes from: the path of a key, or of the table that it is in, to a citation, or `assumed:` and
    /// a reason. Once loaded, each key that was written has its own.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// Who makes the policies that are not the simulator's own.
    #[serde(skip)]
    #[schemars(skip)]
    pub makers: Externals,
}

fn one() -> u32 {
    1
}

/// Levels of the flash array: channel > package > chip > die > plane > block > page > sector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Independent channels (buses).
    #[schemars(range(min = 1))]
    pub channels: u32,
    /// Chips on each channel. A chip has its own chip-enable and ready/busy signals ("way").
    #[schemars(range(min = 1))]
    pub chips: u32,
    /// Chips that share a package. Matters for `nand.concurrency = "chip"`, where a package is busy as a whole.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub chips_per_package: u32,
    /// Dies in each chip.
    #[schemars(range(min = 1))]
    pub dies: u32,
    /// Planes in each die.
    #[schemars(range(min = 1))]
    pub planes: u32,
    /// Blocks in each plane.
    #[schemars(range(min = 1))]
    pub blocks: u32,
    /// Pages in each block. Must be there, or `block_size` in its place.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub pages: u32,
    /// Data bytes of a block, in the place of `pages`: their number follows from the page size. So a study of page
    /// sizes with the same blocks is one option, `--set geometry.page_size=8KiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Bytes>,
    /// Data bytes of a flash page, the unit that is read.
    pub page_size: Bytes,
    /// Spare bytes of a flash page, beside its data.
    #[serde(default)]
    pub spare_size: Bytes,
    /// What is mapped, and what validity counts: a share or a multiple of the page, or `"page"` for the page whatever
    /// its size. Default: 4 KiB, or the page where that is smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "units::PageOrBytes")]
    pub mapping_unit: Option<Bytes>,
    /// Pages that one program command fills: 1, or those of a wordline.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub pages_per_program: u32,
}

/// How much of the flash the host sees. Either the share kept or the size seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Capacity {
    /// Spare share: (physical - logical) / physical, from 0 to below 1.
    Spare(#[schemars(range(min = 0.0, max = 1.0))] f64),
    /// The size that the host sees.
    Logical(Bytes),
}

impl Default for Capacity {
    fn default() -> Self {
        Capacity::Spare(0.07)
    }
}

/// Bits in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cell {
    /// One bit.
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
    /// Page types of a wordline.
    pub const fn bits(self) -> u32 {
        self as u32 + 1
    }

    /// Erases that a block usually stands: SLC as in Agrawal et al. 2008, Table 1, MLC as in MQSim's ssdconfig.xml;
    /// TLC and QLC assumed, thousands and about a third of that.
    pub const fn usual_endurance(self) -> u32 {
        match self {
            Cell::Slc => 100_000,
            Cell::Mlc => 10_000,
            Cell::Tlc => 3_000,
            Cell::Qlc => 1_000,
        }
    }
}

/// What takes one command at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Concurrency {
    /// The package is busy as a whole (Agrawal et al. 2008, baseline).
    Chip,
    /// The chip takes its next command when all dies of an interleaved command are done (Hu et al. 2013).
    Command,
    /// Dies are independent (ONFI multi-LUN operations; present-day parts).
    #[default]
    Die,
    /// Planes are independent (VSSIM).
    Plane,
}

/// The flash cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nand {
    /// Bits in a cell: how many page types a wordline has, and what its endurance is by default.
    #[serde(default)]
    pub cell: Cell,
    /// Cell to register (tR): one time, or one for each page type of the wordline, LSB first.
    pub read: OneOrMany<Duration>,
    /// Register to cell (tPROG): one time, or one for each page type. With `geometry.pages_per_program` above 1 it is
    /// the time of the whole wordline.
    pub program: OneOrMany<Duration>,
    /// Block erase (tBERS).
    pub erase: Duration,
    /// Erases that a block stands; 0 when unknown. With a table `faults` the next erase of a block that has had so
    /// many fails, and the block is bad. Without one nothing wears out: results tell the share used
    /// (`wear.life_used`), and a run in which a block exceeds it warns.
    /// Default: what is usual for the cells, 100,000 for SLC, 10,000 for MLC, 3,000 for TLC and 1,000 for QLC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub endurance: Option<u32>,
    /// Times of blocks in SLC mode, which hold one bit per cell and so one page of each wordline. Options of the
    /// mapping scheme say which blocks those are. Erase time and endurance are those of other blocks. Without this
    /// table, no block can be in SLC mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SlcMode")]
    pub slc_mode: Option<SlcMode>,
    /// What takes one command at a time.
    #[serde(default)]
    pub concurrency: Concurrency,
    /// Commands beyond the basic ones.
    #[serde(default)]
    pub advanced: Advanced,
}

/// The channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// How data move.
    pub protocol: BusProtocol,
    /// Data lines: 8 or 16.
    #[serde(default = "eight")]
    #[schemars(extend("enum" = [8, 16]))]
    pub width: u32,
    /// Time of one command or address cycle; the default is that of one data cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_cycle: Option<Duration>,
    /// Command and address cycles of each operation. All 0: commands take no time on the channel.
    #[serde(default)]
    pub command_cycles: CommandCycles,
    /// Order in which a channel serves the operations that wait for it.
    #[serde(default, skip_serializing_if = "BusOrder::is_default")]
    #[schemars(extend("default" = "fcfs"))]
    pub order: BusOrder,
    /// Transfers carry the spare bytes too.
    #[serde(default)]
    pub transfer_spare: bool,
    /// Reads move only the sectors that are needed: host reads those that are requested, and reads for a partial write
    /// those that it keeps. Otherwise, whole mapping units are moved. Programs move whole pages in either case. Needs
    /// mapping units of at most a page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial_transfer: bool,
    /// Lost when a channel turns from one chip to another.
    #[serde(default)]
    pub way_switch: Duration,
    /// Lost when the controller turns from one channel to another.
    #[serde(default)]
    pub channel_switch: Duration,
    /// The same where it turns for a read; the default is `channel_switch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_switch_read: Option<Duration>,
    /// What a channel switch holds up.
    #[serde(default)]
    pub channel_switch_scope: SwitchScope,
}

fn eight() -> u32 {
    8
}

/// How data move over the channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum BusProtocol {
    /// Asynchronous single data rate: the time of a cycle (tRC, tWC).
    Sdr(Duration),
    /// NV-DDR, 2 or 3: transfers per second.
    NvDdr(TransferRate),
}

/// Command and address cycles on the channel, by operation (ONFI: read 00h + 5 + 30h, program 80h + 5 + 10h,
/// erase 60h + 3 + D0h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandCycles {
    /// Of a read.
    #[serde(default)]
    pub read: u32,
    /// Of a program.
    #[serde(default)]
    pub program: u32,
    /// Of an erase.
    #[serde(default)]
    pub erase: u32,
}

/// Order in which a channel serves the operations that wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BusOrder {
    /// The operation of the lowest rank that has waited longest, for command cycles and data alike (MQSim).
    #[default]
    Fcfs,
    /// Command cycles that no data follow, those of reads, erases and copy-backs, before all data; then as `fcfs`.
    CommandsFirst,
}

impl BusOrder {
    fn is_default(&self) -> bool {
        *self == BusOrder::default()
    }
}

/// What a channel switch holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SwitchScope {
    /// Only the channel that is turned to.
    #[default]
    Channel,
    /// The whole controller: one switch at a time (VSSIM).
    Controller,
}

/// Mapping and what is kept to rebuild it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// How the place of a logical unit is found.
    #[serde(default)]
    pub scheme: MappingConfig,
    /// A summary of each block, from which the map is rebuilt after power loss.
    #[serde(default)]
    pub block_summary: BlockSummary,
}

/// The summary of a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum BlockSummary {
    /// None.
    #[default]
    None,
    /// The last page of each block holds it (Agrawal et al. 2008, Section 3.4); so many bytes are transferred for it.
    LastPage(Bytes),
}

/// Cleaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gc {
    /// Free blocks of a plane at or below which cleaning goes on: a number, or a share of the plane's blocks.
    pub soft_threshold: BlockCount,
    /// Free blocks of a plane at or below which cleaning goes before host operations.
    pub hard_threshold: BlockCount,
    /// When a plane at or below the soft threshold is cleaned.
    #[serde(skip_serializing_if = "TriggerConfig::is_default")]
    #[schemars(extend("default" = "threshold"))]
    pub trigger: TriggerConfig,
    /// Which block is reclaimed.
    pub victim: VictimConfig,
    /// How wear is leveled: which free block is opened, which victims are refused, and which blocks are migrated.
    #[serde(skip_serializing_if = "WearConfig::is_default")]
    #[schemars(extend("default" = "none"))]
    pub wear: WearConfig,
    /// Where moved units are written.
    pub frontiers: Frontiers,
    /// When the operations of garbage collection take priority over host writes. See docs/model/gc.md.
    #[serde(skip_serializing_if = "GcPace::is_default")]
    #[schemars(extend("default" = "queued"))]
    pub pace: GcPace,
}

impl Default for Gc {
    fn default() -> Self {
        Gc {
            soft_threshold: BlockCount::Blocks(3),
            hard_threshold: BlockCount::Blocks(1),
            trigger: TriggerConfig::default(),
            victim: VictimConfig::default(),
            wear: WearConfig::default(),
            frontiers: Frontiers::Separate,
            pace: GcPace::Queued,
        }
    }
}

/// When garbage collection takes priority over host writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GcPace {
    /// At or below the hard threshold. Above it, its operations queue with those of the host.
    #[default]
    Queued,
    /// While the plane has less free space, open blocks included, than the soft threshold and half a block: garbage
    /// collection frees as much space as the host fills. With more, it rests. The hard
    /// threshold has no effect.
    Proportional,
}

impl GcPace {
    fn is_default(&self) -> bool {
        *self == GcPace::default()
    }
}

/// Where moved units are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Frontiers {
    /// Into blocks of their own.
    #[default]
    Separate,
    /// Into the blocks that host writes go to.
    Single,
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Controller {
    /// Mapping units of write data that it holds; a write takes one until its program ends.
    #[schemars(range(min = 1))]
    pub write_slots: u32,
    /// How long a write of the host that does not fill its program command, a wordline or a page of several mapping
    /// units, waits for others to do so, unless it has FUA or a flush comes. After that the rest is padding.
    pub fill_timeout: Duration,
    /// What its software takes. Without this table it takes no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Firmware")]
    pub firmware: Option<Firmware>,
}

impl Default for Controller {
    fn default() -> Self {
        Controller { write_slots: 4096, fill_timeout: Duration(0), firmware: None }
    }
}

/// What the controller's software takes. A cost is a number of instructions, of which a core does one in a cycle of
/// its clock, or a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Firmware {
    /// Cores that take work, first come, first served.
    #[schemars(range(min = 1))]
    pub cores: u32,
    /// Clock of each core. The default is that of Hu et al. 2011, Section 3.1.
    pub clock: Frequency,
    /// Of each request that is received, and again of each that is answered.
    pub interrupt: FirmwareCost,
    /// Of each mapping unit that is looked up in the map: to read it, to write it, to trim it.
    pub lookup: FirmwareCost,
    /// Of each mapping unit that is given a place to be written to.
    pub allocation: FirmwareCost,
    /// Of each decision of cleaning: which block is next.
    pub gc: FirmwareCost,
    /// Of each mapping unit of a request that meets the buffer.
    pub buffer: FirmwareCost,
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
        }
    }
}

/// When a buffered write completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// When the buffer has it; it is written to flash when it is evicted or flushed.
    #[default]
    WriteBack,
    /// When flash has it; the buffer keeps a copy for reads.
    WriteThrough,
}

/// The buffer of the controller's memory: it holds mapping units, each with the sectors that it has of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Data that it holds, in whole mapping units; 0B: there is no buffer.
    pub capacity: Bytes,
    /// When a write completes.
    #[serde(default)]
    pub write: WritePolicy,
    /// Whether units stay in the buffer that flash has too: what was read, and what was written out.
    #[serde(default = "yes")]
    pub read: bool,
    /// Which units leave it when it needs room.
    #[serde(default)]
    pub eviction: EvictionConfig,
    /// Share of the capacity above which units are evicted ahead of need; 1: only when room is needed.
    #[serde(default = "all")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub high_water: f64,
    /// Share of the capacity down to which they are.
    #[serde(default = "most")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub low_water: f64,
    /// After so long without a request in progress, all that flash does not have is written out; none: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Duration")]
    pub idle: Option<Duration>,
    /// Time of an access to the memory, beside that of its data.
    #[serde(default)]
    pub latency: Duration,
    /// Bandwidth of the memory, in and out together; none: data take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bandwidth")]
    pub bandwidth: Option<Bandwidth>,
    /// Whether what is in the buffer survives a power cut: flushes and FUA writes need not wait for flash then.
    #[serde(default)]
    pub power_loss_protection: bool,
}

fn yes() -> bool {
    true
}

fn all() -> f64 {
    1.0
}

fn most() -> f64 {
    0.9
}

/// What is kept in flash for the time after a power cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Durability {
    /// Trims are journalled in flash: at a flush, when half a mapping unit of records waits, and before a block is
    /// erased that holds a trimmed unit. Without it a trimmed unit may be back after a power cut, even a flushed one.
    pub trim_journal: bool,
    /// A checkpoint is kept in flash, so that a recovery need not read every block: for so many bytes that the host
    /// writes, a mapping unit of it is written. Without this key there is none. For each physical mapping unit it takes
    /// 8 to 16 bytes of flash that the host does not see (docs/model/durability.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bytes")]
    pub checkpoint: Option<Bytes>,
}

impl Durability {
    /// Whether nothing is kept.
    pub fn is_default(&self) -> bool {
        *self == Durability::default()
    }
}

/// The host's side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Requests that the device accepts at once; more wait at the host.
    #[schemars(range(min = 1))]
    pub queue_depth: u32,
    /// Bandwidth of the link, each way; none: data arrive at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_bandwidth: Option<Bandwidth>,
    /// Latency of the link, each way.
    pub link_latency: Duration,
}

impl Default for Host {
    fn default() -> Self {
        Host { queue_depth: 65_536, link_bandwidth: None, link_latency: Duration::default() }
    }
}
