//! Summary: the result of a run, one struct with one JSON format.
//!
//! Equal configuration, workload, seed and version give equal summaries on every machine, except for `run` and `live`.

mod array;
mod build;
mod changes;
mod controller;
mod distribution;
mod distributions;
mod faults;
mod gangs;
mod json;
mod live;
mod log_blocks;
mod measurement;
mod pools;

pub use array::{ArrayUse, ArrayWrites, MemberOperations, RebuildUse};
pub use build::{About, units_programmed};
pub use changes::{Change, Changes};
pub use controller::{BufferEvictions, BufferReads, BufferUse, BufferWrites, FirmwareUse};
pub use distribution::Distribution;
pub use distributions::{ChannelCounts, Distributions, Each, IntervalCounts, LatencyCurve, SizeCounts, WearHistogram};
pub use faults::{BadBlocks, FaultState, FaultsMet, UncorrectableReads};
pub use gangs::GangUse;
pub use json::{LARGEST, ReadError};
pub use live::{LateCauses, Live, LiveFrontend, LiveImage, LiveRecovery};
pub use log_blocks::{LogBlocks, LogWrites};
pub use measurement::{ControllerWork, Measurement};
pub use pools::{Imbalance, PoolsUse};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::DeviceConfig;

/// Value of `schema` in results of this format. The number is raised when a field changes its meaning or is removed.
pub const SCHEMA: &str = "floatgate-summary-2";

/// The result of a run. Numbers cover the measured part: everything that completes after `ramp_time`, by default the
/// whole run. Utilization covers the time from its start to its last completion. Suffixes of keys are units:
/// `_us` microseconds, `_s` seconds. Shares are from 0 to 1. Undefined values, such as a mean without requests, are
/// null. One MiB is 2^20 bytes.
///
/// A latency is the time from a request's arrival to its completion. Waiting time ends when the request is first
/// served: when a channel is granted to it, or when it is in the controller's memory. Service time is the rest. Means,
/// minimums and maximums are exact. Percentiles differ from the exact value by at most 0.1% or 1 ns, whichever is more.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Format of the result: `floatgate-summary-2`.
    pub schema: String,
    /// Version of Floatgate.
    pub version: String,
    /// True if the workload ran to its end. If the run was interrupted, requests issued before that were completed and
    /// are included.
    pub complete: bool,
    /// Warnings about this result, in words.
    pub warnings: Vec<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Name of the device, and a digest of the device without the overrides of this run.
    pub device: Named,
    /// Name of the workload, and a digest: for a job of its text and seed, for a trace of its requests.
    pub workload: Named,
    /// Device as simulated, with file, overrides and defaults, in the format of a device file.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub config: DeviceConfig,
    /// Digest of `config`; equal to `device.digest` without effective overrides.
    pub config_digest: String,
    /// Differences from the built-in device that the device is, or is based on; null for others.
    pub changes: Option<Changes>,
    /// Arguments of `floatgate` for this result, without its outputs; empty if another program ran the simulation.
    pub arguments: Vec<String>,
    /// State of the device before the run.
    pub precondition: Precondition,
    /// Simulated time from the first arrival to the last completion; 0 if nothing was measured.
    pub measured_s: f64,
    /// Requests by operation.
    pub requests: Requests,
    /// Requests of each stream, over its own time from first arrival to last completion.
    pub streams: Vec<Stream>,
    /// Distributions of requests and of their latencies.
    pub distributions: Distributions,
    /// Reads of mapping units without data, which the controller completes.
    pub unmapped_reads: u64,
    /// Operations of the flash.
    pub flash: Flash,
    /// Mapping units programmed, for any cause, per unit touched by an accepted host write; null without writes. It
    /// includes units without data (`flash.units.unfilled`) and the space of summaries. A write-back buffer merges
    /// writes of a unit, so the value may be below 1.
    pub write_amplification: Option<f64>,
    /// Bytes of the pages programmed, per byte that the host wrote; null without writes.
    pub write_amplification_bytes: Option<f64>,
    /// Cache of the map; null if the whole map is in the controller's memory.
    pub map_cache: Option<MapCache>,
    /// Garbage collection.
    pub gc: Gc,
    /// Data classes, from the coldest to the hottest; absent if classes are not distinguished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temperature: Vec<UnitClass>,
    /// Wear at the end of the run, including preconditioning.
    pub wear: Wear,
    /// Utilization of channels and dies.
    pub utilization: Utilization,
    /// Gangs of packages; absent without them (`config.gang`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gangs: Vec<GangUse>,
    /// Allocation pools; absent with less than two of them (`config.allocation.dynamic.scope`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pools: Option<PoolsUse>,
    /// Resource that limits the run.
    pub bottleneck: Bottleneck,
    /// Mapping units touched by host writes, by the kind of update.
    pub updates: Updates,
    /// Buffer; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferUse>,
    /// Firmware of the controller; absent if it takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<FirmwareUse>,
    /// Faults; absent if nothing can fail (`config.faults`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsMet>,
    /// Service in real time; absent in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// Array; absent for a single SSD. `config` is then an SSD with the flash of all members: the parameters of the
    /// first member, the channels of all, and the capacity that the host sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayUse>,
    /// Results of the members of an array; absent for a single SSD. Their streams are the requests of the array's
    /// controller: `host`, `parity`, `journal` and `rebuild`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Summary>,
    /// Cost of the simulation itself; null if it was not measured. Nothing else in a simulation differs between runs.
    pub run: Option<Cost>,
}

/// Name and digest of a device or workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// Name.
    pub name: String,
    /// Digest, as hexadecimal digits.
    pub digest: String,
}

/// Preconditioning before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precondition {
    /// Requested state: `none`, `fill`, `aged=V`, `invalid=V`, `steady`, or a workload; and the layout of unwritten
    /// data.
    pub requested: String,
    /// State that was reached.
    #[serde(flatten)]
    pub reached: Reached,
}

/// State that preconditioning reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// Host writes, in multiples of the capacity that the host sees.
    pub drive_writes: f64,
    /// Write amplification of preconditioning, in mapping units; with `steady`, that of the last drive write. Null if
    /// nothing was written.
    pub write_amplification: Option<f64>,
    /// Write amplification of the same writes if planes have only `config.gc.hard_threshold` free blocks, as when
    /// garbage collection cannot keep up. Absent unless it is more than a tenth lower. Runs under other loads are
    /// between the two values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_amplification_at_hard: Option<f64>,
    /// Share of the logical units that are mapped.
    pub mapped: f64,
    /// True if write amplification converged; null if that was not requested.
    pub converged: Option<bool>,
}

/// Requests by operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// Reads.
    pub read: Operations,
    /// Writes.
    pub write: Operations,
    /// Deallocations.
    pub trim: Operations,
    /// Writes of zeros.
    pub write_zeroes: Operations,
    /// Flushes.
    pub flush: Operations,
    /// All operations together.
    pub all: Operations,
}

impl Requests {
    /// Returns the operations with their names, without the sum.
    pub fn by_operation(&self) -> [(&'static str, &Operations); 5] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("trim", &self.trim),
            ("write_zeroes", &self.write_zeroes),
            ("flush", &self.flush),
        ]
    }
}

/// Requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operations {
    /// Requests that were served.
    pub count: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Requests that failed, such as writes to a read-only device. No other field includes them.
    pub errors: u64,
    /// Requests per second, from the first arrival to the last completion of all operations; null if that time is 0.
    pub iops: Option<f64>,
    /// Throughput in MiB per second over the same time.
    pub mib_per_s: Option<f64>,
    /// Time from arrival to completion.
    pub latency_us: Distribution,
    /// Time from arrival to first service.
    pub waiting_us: Mean,
    /// Time from first service to completion.
    pub service_us: Mean,
    /// Breakdown of the latencies; null without requests, or if it was not collected.
    pub attribution: Option<Attribution>,
}

/// Latency breakdown: parts along the critical path of each request, which add up to its latency. A percentile is
/// represented by the requests in its band, which is at most 1/16 as wide as its latencies are long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attribution {
    /// All requests.
    pub mean: Parts,
    /// Requests at the median.
    pub p50: Parts,
    /// Requests at the 99th percentile.
    pub p99: Parts,
    /// Requests at the 99.9th percentile.
    pub p99_9: Parts,
}

/// Mean latency breakdown of some requests, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Requests that the means are over.
    pub requests: u64,
    /// Mean latency, which is the sum of all parts.
    pub latency_us: f64,
    /// Wait for a slot in the device's queue (`host.queue_depth`).
    pub host_queue_us: f64,
    /// Host link, including the wait for it.
    pub link_us: f64,
    /// Firmware of the controller: wait for a core, and execution.
    #[serde(default)]
    pub firmware_us: f64,
    /// Throttle of host writes: delay of the write, and of writes before it (`config.gc.throttle`). Absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttle_us: f64,
    /// Memory of the controller: wait for room, wait of a flush, and access.
    pub buffer_us: f64,
    /// Wait for an earlier write of the same mapping unit.
    pub order_us: f64,
    /// Wait for the map entry with the physical address, if the map is in flash.
    pub map_fetch_us: f64,
    /// Wait for other writes that fill the same program (`controller.fill_timeout`).
    pub fill_us: f64,
    /// Wait for the die while other host operations hold it.
    pub die_us: f64,
    /// Wait for the channel while other host operations hold it.
    pub channel_us: f64,
    /// Wait for garbage collection: for a free block, or for a die or channel that it holds.
    pub gc_us: f64,
    /// Read that completes a partial write: bus and cells.
    pub rmw_us: f64,
    /// Command and data cycles of the request's own operation, including the switch of the channel to it.
    pub bus_us: f64,
    /// Cell time of the request's own operation.
    pub cell_us: f64,
}

fn is_zero(us: &f64) -> bool {
    *us == 0.0
}

/// Mean of a time, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// Mean, exact; null without requests.
    pub mean: Option<f64>,
}

/// Requests of one stream of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Name of the stream: that of the job, or `all` for a trace.
    pub name: String,
    /// Requests by operation.
    pub requests: Requests,
}

/// Operations of the flash in the measured time. Garbage collection after the last completion is not counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flash {
    /// Pages read and programmed.
    pub pages: FlashPages,
    /// Mapping units in the programmed pages, without summaries.
    pub units: FlashUnits,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Commands to the flash.
    pub commands: FlashCommands,
    /// Pages programmed, by cause; the sum is `pages.programmed`.
    pub programs_by_cause: ProgramCauses,
    /// Pages read, by cause; the sum is `pages.read`.
    pub reads_by_cause: ReadCauses,
}

/// Flash pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlashPages {
    /// Pages read.
    pub read: u64,
    /// Pages programmed.
    pub programmed: u64,
}

/// Mapping units in programmed pages, without summaries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlashUnits {
    /// Mapping units programmed with data, from the host or moved.
    pub programmed: u64,
    /// Mapping units programmed without data: padding inside pages, and pages of padding that fill a wordline.
    pub unfilled: u64,
    /// Mapping units in flash that a TRIM, or write-zeroes that deallocates, made invalid.
    #[serde(default)]
    pub trimmed: u64,
}

/// Commands to the flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlashCommands {
    /// Read commands.
    pub read: u64,
    /// Program commands. A command may fill several pages.
    pub program: u64,
    /// Program units that were queued before they were full, because a FLUSH or FUA waited for them.
    #[serde(default)]
    pub cut_by_flush: u64,
    /// Program units that were queued before they were full, after `controller.fill_timeout`.
    #[serde(default)]
    pub cut_by_timeout: u64,
    /// Blocks erased, by a command of their own or together with others.
    pub erase: u64,
    /// Pages moved by copy-back, which are included in the reads and programs.
    pub copy_back: u64,
    /// Multi-plane and interleaved commands, by kind and size.
    pub parallel: Vec<ParallelCommands>,
}

/// Multi-plane or interleaved commands of one kind and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelCommands {
    /// Kind of command: `read`, `program`, `erase` or `copy-back`.
    pub kind: String,
    /// Dies of a chip in each command.
    pub dies: u32,
    /// Planes of all these dies in each command.
    pub planes: u32,
    /// Pages that each command read or programmed, counted as in native mode; for an erase, blocks.
    pub pages: u32,
    /// Commands of this kind and size.
    pub commands: u64,
}

/// Pages programmed, by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramCauses {
    /// Data of host writes.
    pub host: u64,
    /// Data moved by garbage collection.
    pub gc: u64,
    /// Data of cold blocks, migrated by wear leveling (`config.gc.wear`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub wear: u64,
    /// Summaries of blocks.
    pub summary: u64,
    /// Padding: whole pages at the end of a wordline. `flash.units.unfilled` also has the padding inside pages.
    pub padding: u64,
    /// Pages skipped so that a copy-back keeps the parity of its page.
    pub waste_copyback: u64,
    /// Pages skipped so that planes could be programmed together.
    pub waste_alignment: u64,
    /// Translation pages.
    pub map: u64,
    /// Data copied to keep the units of a logical block together.
    pub merge: u64,
    /// Records of trims (`durability.trim_journal`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub journal: u64,
    /// Parts of the checkpoint (`durability.checkpoint`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub checkpoint: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Pages read, by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadCauses {
    /// Host reads.
    pub host: u64,
    /// Valid data that garbage collection moves.
    pub gc: u64,
    /// Data of cold blocks that wear leveling migrates (`config.gc.wear`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub wear: u64,
    /// Data that partial writes keep (read-modify-write).
    pub rmw: u64,
    /// Translation pages.
    pub map: u64,
    /// Data copied to keep the units of a logical block together.
    pub merge: u64,
}

/// Cache of a map that is stored in flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapCache {
    /// Entries that the host needed and the cache held.
    pub hits: u64,
    /// Entries that the host needed and had to wait for.
    pub misses: u64,
    /// Share of hits; null if no entry was needed.
    pub hit_ratio: Option<f64>,
    /// Clean entries that were evicted.
    pub evictions_clean: u64,
    /// Dirty entries that were evicted and written back.
    pub evictions_dirty: u64,
    /// Translation pages read, by cause.
    pub reads: MapPages,
    /// Translation pages programmed, by cause.
    pub programs: MapPages,
    /// Blocks of translation pages chosen as victims.
    pub victims: u64,
}

/// Translation pages, by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapPages {
    /// Cache misses.
    pub miss: u64,
    /// Dirty entries that were evicted.
    pub eviction: u64,
    /// Units that garbage collection moved.
    pub gc: u64,
    /// Garbage collection of the blocks of translation pages.
    pub map_gc: u64,
}

/// Garbage collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gc {
    /// Blocks chosen as victims.
    pub victims: u64,
    /// Data moved, in flash pages: one valid mapping unit of four counts as a quarter.
    pub pages_moved: f64,
    /// Mapping units moved, by cause.
    pub units_moved: MovedUnits,
    /// Share of the victims' mapping units that did not have to be moved (overwritten, trimmed or padding); null
    /// without victims.
    pub efficiency: Option<f64>,
    /// Mean number of free blocks of the plane when a victim was chosen in it, including blocks that await an erase;
    /// null without victims.
    pub free_blocks: Option<f64>,
    /// Mean time from the choice of a victim to the end of its erase, with all waits and the host's operations in
    /// between; null if no erase has ended.
    #[serde(default)]
    pub collection_us: Option<f64>,
    /// Victims in each package whose erase has ended.
    #[serde(default)]
    pub collected_per_package: PerPackage,
    /// Wasted copies: the host overwrote the unit while its copy was programmed.
    pub wasted_copies: u64,
    /// Cold blocks whose data wear leveling moved into worn blocks (`config.gc.wear`).
    #[serde(default)]
    pub migrations: u64,
    /// Merges of logical blocks (mapping schemes that merge blocks).
    pub merges: Merges,
    /// Log blocks. Absent without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_blocks: Option<LogBlocks>,
    /// Part in idle time (`config.gc.background`); absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundGc>,
}

/// Garbage collection in idle time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundGc {
    /// Victims chosen in idle time.
    pub victims: u64,
    /// Mapping units moved out of these victims, in idle time or later.
    pub units_moved: u64,
}

/// A number for each package; null if it was not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerPackage {
    /// Mean of all packages.
    pub mean: Option<f64>,
    /// Minimum of all packages.
    pub min: Option<u64>,
    /// Maximum of all packages.
    pub max: Option<u64>,
}

/// Mapping units moved, by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovedUnits {
    /// Units moved to reclaim their block.
    pub gc: u64,
    /// Units whose block was migrated by wear leveling (`config.gc.wear`).
    pub wear: u64,
    /// Units whose block had a failed program (`config.faults`).
    pub failed_block: u64,
    /// Units moved in merges of logical blocks (mapping schemes that merge blocks).
    pub merge: u64,
}

/// Merges of logical blocks, by kind; all 0 unless a mapping scheme merges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Merges {
    /// Switch merges, which copied nothing: the host had rewritten or trimmed everything.
    pub switch: u64,
    /// Partial merges: the host wrote the first part of the new block, and the rest was copied.
    pub partial: u64,
    /// Full merges: host writes followed copies, or all units were copied into a free block.
    pub full: u64,
}

/// Data class (`config.temperature`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitClass {
    /// Mapping units of host writes that the classifier put into this class.
    pub units_written: u64,
    /// Mapping units moved by garbage collection whose last write was in this class.
    pub units_moved: u64,
    /// Part of the `units_written` in a block of another class, because no block was free for this one.
    pub units_elsewhere: u64,
    /// Units written and moved, per unit written, without padding; null without writes.
    pub write_amplification: Option<f64>,
}

/// Wear, in erases since the device was new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wear {
    /// Share of `config.nand.endurance` that the most erased block has used; null if the endurance is 0, which is
    /// unknown. It can exceed 1 without a table `faults`, and after preconditioning.
    pub life_used: Option<f64>,
    /// Erases of a block, over all blocks.
    pub blocks: Spread,
    /// Erases of all blocks of a plane, over all planes.
    pub planes: Spread,
    /// Numbers of blocks by erase count.
    pub histogram: WearHistogram,
}

/// Spread of erase counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Maximum.
    pub max: u64,
}

/// Utilization of channels and dies. Operations that start before the measured part or end after it count in part. All
/// values are null if it has no length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Utilization {
    /// Shares of time over all channels.
    pub channels: ChannelShares,
    /// Shares of time over all dies. If planes are independent, the share of a die is the mean of its planes.
    pub dies: DieShares,
    /// Shares of time of each channel and each die.
    pub each: Each,
}

/// Shares of time of channels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelShares {
    /// Data transfers.
    pub data: Share,
    /// Commands, addresses, and switches to another chip or channel.
    pub command: Share,
    /// Idle.
    pub idle: Share,
}

/// Shares of time of dies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DieShares {
    /// Cells busy.
    pub cell: Share,
    /// Held by an operation whose cells are not busy: data moves, or waits for the channel.
    pub register_held: Share,
    /// Idle.
    pub idle: Share,
}

/// Share of the measured time; null if it has no length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Mean of all.
    pub mean: Option<f64>,
    /// Minimum of all.
    pub min: Option<f64>,
    /// Maximum of all.
    pub max: Option<f64>,
}

/// Resources that limit the run. By the utilization law, a resource that works for D seconds on n requests, spread
/// evenly over its units, cannot serve more than n / D per second. No resource can have worked longer than the measured
/// time, or the run fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// Resource closest to its bound; `gc` if most of its work was garbage collection; `load` if no resource worked for
    /// half of the time, so that the host could have requested more; null without requests.
    pub limited_by: Option<String>,
    /// Resources, the one closest to its bound first.
    pub resources: Vec<Bound>,
}

/// Resource, with its bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// Name: `link_in`, `link_out` (directions of the host link), `cores` (of the controller), `memory` (port of its
    /// buffer), `channels`, or `dies` (LUNs: see `nand.concurrency`).
    pub resource: String,
    /// Units of the resource.
    pub units: u32,
    /// Time for which each unit had to work if the work is spread evenly. Overlapping operations of a die count once.
    pub demand_s: f64,
    /// Share of `demand_s` for garbage collection.
    pub gc: f64,
    /// Maximum number of requests per second with the same work per request; null without work.
    pub bound_iops: Option<f64>,
    /// Mean share of time in which the units worked.
    pub reached: f64,
}

/// Mapping units touched by host writes, by the kind of update. With a write-back buffer, they are counted when they
/// are written back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Updates {
    /// Covered updates: all valid sectors of the unit were replaced.
    pub covered: u64,
    /// Uncovered updates: some valid sectors were kept, so the unit was read and written as a whole.
    pub uncovered: u64,
    /// First writes: the unit held no data.
    pub first: u64,
    /// Other units written again because of their logical page (`config.geometry.logical_page`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub rewritten: u64,
}

/// Cost of simulating the workload, without preconditioning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Wall-clock time.
    pub wall_s: f64,
    /// Processor time; null if the system does not report it.
    pub cpu_s: Option<f64>,
    /// Measured requests per second of processor time, if that is known.
    pub requests_per_cpu_s: Option<f64>,
    /// Measured flash operations (pages read and programmed, blocks erased) per second of processor time, if that is
    /// known.
    pub flash_ops_per_cpu_s: Option<f64>,
    /// Peak memory of the program; null if the system does not report it.
    pub peak_rss_bytes: Option<u64>,
}

impl Summary {
    /// Returns the JSON schema of a result.
    pub fn json_schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Summary).to_value();
        if let Some(properties) = schema.get_mut("properties") {
            properties["schema"]["const"] = SCHEMA.into();
        }
        schema
    }

    /// Returns the parts of the write amplification by cause: the host, garbage collection or merges, summaries,
    /// unfilled space, the map, the trim journal and the checkpoint. They add up to the write amplification. `None`
    /// without writes.
    pub fn amplification_by_cause(&self) -> Option<[(&'static str, f64); 7]> {
        let Summary { config, updates, .. } = self;
        let total = self.write_amplification?;
        let units = |pages: f64| pages * f64::from(config.units_per_page()) / f64::from(config.pages_per_unit());
        // A write of an array's host is several writes of its members, as with a buffer it is a part of one.
        if (self.buffer.is_some() || self.array.is_some()) && total > 0.0 {
            return Some(self.amplification_behind_buffer(total, units));
        }
        let written = (updates.covered + updates.uncovered + updates.first) as f64;
        let gc = units(self.gc.pages_moved) / written;
        let summaries = units(self.flash.programs_by_cause.summary as f64) / written;
        let map = units(self.flash.programs_by_cause.map as f64) / written;
        let journal = units(self.flash.programs_by_cause.journal as f64) / written;
        let checkpoint = units(self.flash.programs_by_cause.checkpoint as f64) / written;
        let host_and_rest = (total - gc - summaries - map - journal - checkpoint).max(0.0);
        let host = host_and_rest.min(1.0 + updates.rewritten as f64 / written);
        let unfilled = host_and_rest - host;
        Some(self.named([host, gc, summaries, unfilled, map, journal, checkpoint]))
    }

    /// Names the parts of the write amplification by cause.
    fn named(&self, parts: [f64; 7]) -> [(&'static str, f64); 7] {
        let [host, moved, summaries, unfilled, map, journal, checkpoint] = parts;
        [
            ("host", host),
            (if self.config.merges_blocks() { "merges" } else { "gc" }, moved),
            ("summaries", summaries),
            ("unfilled", unfilled),
            ("map", map),
            ("journal", journal),
            ("checkpoint", checkpoint),
        ]
    }

    /// Returns the parts of the write amplification with a buffer, which may write fewer units than the host.
    fn amplification_behind_buffer(&self, total: f64, units: impl Fn(f64) -> f64) -> [(&'static str, f64); 7] {
        let flash = &self.flash;
        let summaries = units(flash.programs_by_cause.summary as f64);
        let all = (flash.units.programmed + flash.units.unfilled) as f64 + summaries;
        let share = |part: f64| part / all * total;
        let gc = share(units(self.gc.pages_moved));
        let unfilled = share(flash.units.unfilled as f64);
        let summaries = share(summaries);
        let map = share(units(flash.programs_by_cause.map as f64));
        // The device's own units usually have a page to themselves. The rest of the page counts as unfilled.
        let own = |pages: u64| share(units(pages as f64) / f64::from(self.config.units_per_page()));
        let causes_of = &flash.programs_by_cause;
        let (journal, checkpoint) = (own(causes_of.journal), own(causes_of.checkpoint));
        let host = (total - gc - summaries - unfilled - map - journal - checkpoint).max(0.0);
        self.named([host, gc, summaries, unfilled, map, journal, checkpoint])
    }

    /// Sets the cost of the simulation.
    pub fn set_cost(&mut self, wall_s: f64, cpu_s: Option<f64>, peak_rss_bytes: Option<u64>) {
        let flash = &self.flash;
        let operations = flash.pages.read + flash.pages.programmed + flash.blocks_erased;
        let rate = |count: u64| cpu_s.filter(|s| *s > 0.0).map(|s| count as f64 / s);
        self.run = Some(Cost {
            wall_s,
            cpu_s,
            requests_per_cpu_s: rate(self.requests.all.count),
            flash_ops_per_cpu_s: rate(operations),
            peak_rss_bytes,
        });
    }
}
