//! The result of a run: one struct with one JSON form, everywhere.
//!
//! Everything in it but `run` is the same for the same configuration, workload, seed and version, on every machine.

mod build;
mod changes;
mod controller;
mod distribution;
mod distributions;
mod faults;
mod json;
mod live;
mod measurement;

pub use build::{About, units_programmed};
pub use changes::{Change, Changes};
pub use controller::{BufferEvictions, BufferReads, BufferUse, BufferWrites, FirmwareUse};
pub use distribution::Distribution;
pub use distributions::{ChannelCounts, Distributions, Each, IntervalCounts, LatencyCurve, SizeCounts, WearHistogram};
pub use faults::{BadBlocks, FaultState, FaultsMet, UncorrectableReads};
pub use json::{LARGEST, ReadError};
pub use live::{LateCauses, Live, LiveFrontend, LiveImage, LiveRecovery};
pub use measurement::{ControllerWork, Measurement};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::DeviceConfig;

/// The value of `schema` in results of this form; the number is raised when a field changes its meaning or goes.
pub const SCHEMA: &str = "floatgate-summary-1";

/// The result of a run. Numbers cover the measured part: what arrives after `ramp_time`, which is all without one.
///
/// Times called latency run from a request's arrival to its completion; waiting time is the part before it was first
/// served (a channel was granted to it, or the controller's memory had it), service time the rest. Means, least and
/// greatest values are exact; percentiles differ from the exact value by at most 0.1 % or 1 ns, whichever is more. What
/// cannot be said, such as a mean without requests, is null. One MiB is 2^20 bytes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Which form this is: `floatgate-summary-1`.
    pub schema: String,
    /// Version of Floatgate.
    pub version: String,
    /// Whether the workload came to its end. If not, the run was interrupted; what had been issued by then was
    /// completed, and is in the numbers.
    pub complete: bool,
    /// What the user should know of this result, in words.
    pub warnings: Vec<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The device: its name, and a digest of it without the overrides of this run.
    pub device: Named,
    /// The workload: its name, and a digest. Of a job, of its text and seed; of a trace, of the requests that it gave.
    pub workload: Named,
    /// The device as it was simulated: file, overrides and defaults together. Its form is that of a device file.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub config: DeviceConfig,
    /// Digest of `config`; equal to `device.digest` when the overrides changed nothing.
    pub config_digest: String,
    /// What makes the device another than the built-in one that it is, or is based on; null for a device of its own.
    pub changes: Option<Changes>,
    /// What `floatgate` has to be called with for this result, without where results go; empty where another program
    /// made it.
    pub arguments: Vec<String>,
    /// The state of the device before the run.
    pub precondition: Precondition,
    /// Simulated time from the first arrival to the last completion, in seconds; 0 where nothing was measured.
    pub measured_s: f64,
    /// Requests by operation.
    pub requests: Requests,
    /// The same for each stream of the workload, over its own time from first arrival to last completion.
    pub streams: Vec<Stream>,
    /// How requests and their latencies are distributed.
    pub distributions: Distributions,
    /// Reads of mapping units that hold nothing, answered by the controller.
    pub unmapped_reads: u64,
    /// What the flash did.
    pub flash: Flash,
    /// Mapping units programmed, whatever the cause, for each one touched by an accepted host write; null without
    /// writes. Units are those of the host and of cleaning (`flash.units.programmed`), places that hold none
    /// (`flash.units.unfilled`), and the places of summaries. `flash.programs_by_cause.padding` is no measure of the
    /// unfilled ones, since it counts only whole pages. With a write-back buffer, where writes of a unit merge, it may
    /// be below 1.
    pub write_amplification: Option<f64>,
    /// Bytes of the pages programmed, for each byte that the host wrote; null without writes.
    pub write_amplification_bytes: Option<f64>,
    /// The cached part of the map; null where the whole map is in the controller's memory.
    pub map_cache: Option<MapCache>,
    /// Cleaning: reclaiming superseded units.
    pub gc: Gc,
    /// By class of data, from the one that stays longest to the hottest; left out where none are told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temperature: Vec<UnitClass>,
    /// Wear at the end of the run. It is a state: erases count from the device's birth, preconditioning included.
    pub wear: Wear,
    /// How busy channels and dies were.
    pub utilization: Utilization,
    /// What holds the run back.
    pub bottleneck: Bottleneck,
    /// What host writes did to the mapping units they touched.
    pub updates: Updates,
    /// The buffer; left out without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferUse>,
    /// The controller's software; left out where it takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<FirmwareUse>,
    /// What failed; left out of a device in which nothing does (`config.faults`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsMet>,
    /// How a device was served in real time; left out of a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// What the simulation itself took. The only part that differs from run to run; null where nobody measured it.
    pub run: Option<Cost>,
}

/// Something with a name, and a digest that tells whether two of that name are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its digest, as hexadecimal digits.
    pub digest: String,
}

/// What was done to the device before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precondition {
    /// What was asked for: `none`, `fill`, `aged=V`, `invalid=V`, `steady`, or a workload; and what was laid out.
    pub requested: String,
    /// What was reached.
    #[serde(flatten)]
    pub reached: Reached,
}

/// The state that preconditioning reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// Host writes in drive sizes.
    pub drive_writes: f64,
    /// Write amplification of preconditioning, in mapping units; of its last drive write where it went on until that
    /// stood still. Null where nothing was written.
    pub write_amplification: Option<f64>,
    /// Write amplification of the same writes while planes have only `config.gc.hard_threshold` free blocks, as under a
    /// load that outpaces garbage collection; left out unless it is more than a tenth lower. Under other loads, a run
    /// from this state comes to a write amplification between the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_amplification_at_hard: Option<f64>,
    /// Share of the logical units that are mapped.
    pub mapped: f64,
    /// Whether write amplification stood still; null where that was not asked for.
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
    /// All of them together.
    pub all: Operations,
}

impl Requests {
    /// The operations with their names, without the sum.
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

/// The requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operations {
    /// Requests that were served.
    pub count: u64,
    /// Bytes that they were for.
    pub bytes: u64,
    /// Requests that failed, such as writes to a device that has become read-only. No other field includes them.
    pub errors: u64,
    /// Requests per second, from the first arrival to the last completion of all operations; null where that is no
    /// time.
    pub iops: Option<f64>,
    /// MiB per second, over the same time; null where that is no time.
    pub mib_per_s: Option<f64>,
    /// Arrival to completion, in microseconds.
    pub latency_us: Distribution,
    /// Arrival to first service, in microseconds.
    pub waiting_us: Mean,
    /// First service to completion, in microseconds.
    pub service_us: Mean,
    /// What the latencies went into; null without requests, or where the run did not attribute them.
    pub attribution: Option<Attribution>,
}

/// What latencies went into: each is partitioned along the request's critical path, and the parts add up to it.
///
/// At a percentile stand the requests of about its latency: those of the band that holds it, where a band is at most
/// 1/16 as wide as its latencies are long. So `p99` tells what the slow ones waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attribution {
    /// All requests.
    pub mean: Parts,
    /// Those at the median.
    pub p50: Parts,
    /// Those at the 99th percentile.
    pub p99: Parts,
    /// Those at the 99.9th percentile.
    pub p99_9: Parts,
}

/// What the latencies of some requests went into, in microseconds, as means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// How many requests they are.
    pub requests: u64,
    /// The sum of all parts: their mean latency.
    pub latency_us: f64,
    /// Waiting for a place in the device's queue.
    pub host_queue_us: f64,
    /// The host link, waiting for it included.
    pub link_us: f64,
    /// The controller's software: waiting for a core, and running on it.
    #[serde(default)]
    pub firmware_us: f64,
    /// The controller's memory: waiting for it to have room, for a flush, and the time of an access to it.
    pub buffer_us: f64,
    /// Waiting for an earlier write of the same mapping unit.
    pub order_us: f64,
    /// Waiting for the entry of the map that tells the place, where the map is in flash.
    pub map_fetch_us: f64,
    /// Waiting for other writes that fill the same program: `controller.fill_timeout`.
    pub fill_us: f64,
    /// Waiting for the die, which other host operations hold.
    pub die_us: f64,
    /// Waiting for the channel, which other host operations hold.
    pub channel_us: f64,
    /// Waiting for cleaning: for a free block, or for a die or channel that operations of cleaning hold.
    pub gc_us: f64,
    /// The read that completes a partial write: bus and cells.
    pub rmw_us: f64,
    /// Command and data cycles of the request's own operation, with the channel's turning to it.
    pub bus_us: f64,
    /// The cells of the request's own operation.
    pub cell_us: f64,
}

/// The mean of a time, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// Mean, exact; null without requests.
    pub mean: Option<f64>,
}

/// The requests of one stream of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Its name: the job's, or `all` for a trace.
    pub name: String,
    /// Its requests by operation.
    pub requests: Requests,
}

/// What the flash did in the measured time. What cleaning does after the last completion is not counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flash {
    /// Pages.
    pub pages: FlashPages,
    /// Mapping units: what the programmed pages hold, summaries aside.
    pub units: FlashUnits,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Commands.
    pub commands: FlashCommands,
    /// Pages programmed, by what they were programmed for; the sum is `pages.programmed`.
    pub programs_by_cause: ProgramCauses,
    /// Pages read, by what they were read for; the sum is `pages.read`.
    pub reads_by_cause: ReadCauses,
}

/// Pages of flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlashPages {
    /// Pages read.
    pub read: u64,
    /// Pages programmed.
    pub programmed: u64,
}

/// Mapping units in programmed pages, without those of summaries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlashUnits {
    /// Mapping units programmed with data, the host's or moved.
    pub programmed: u64,
    /// Places for mapping units in programmed pages that hold none: padding inside pages, and whole pages of it that
    /// fill a wordline.
    pub unfilled: u64,
    /// Mapping units in flash that a TRIM, or write-zeroes that deallocates, made stale.
    #[serde(default)]
    pub trimmed: u64,
}

/// Commands to the flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlashCommands {
    /// Read commands.
    pub read: u64,
    /// Program commands; one may fill several pages.
    pub program: u64,
    /// Program units (`controller.fill_timeout`) that were handed over before they were full, because a FLUSH or FUA
    /// waited for them.
    #[serde(default)]
    pub cut_by_flush: u64,
    /// Program units that were handed over before they were full, because their first write had waited for
    /// `controller.fill_timeout` and there were not enough others.
    #[serde(default)]
    pub cut_by_timeout: u64,
    /// Blocks erased, each by one command or together with others.
    pub erase: u64,
    /// Pages moved within their plane by copy-back; they are among the reads and programs.
    pub copy_back: u64,
    /// Commands that made several planes or dies work together, by what they did and how many took part.
    pub parallel: Vec<ParallelCommands>,
}

/// Commands of one shape that made several planes or dies work together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelCommands {
    /// `read`, `program`, `erase` or `copy-back`.
    pub kind: String,
    /// Dies that worked, of one chip.
    pub dies: u32,
    /// Planes that worked, of all those dies.
    pub planes: u32,
    /// Pages that each command read or programmed, in blocks in native mode; of an erase, blocks.
    pub pages: u32,
    /// How many commands.
    pub commands: u64,
}

/// Pages programmed, each for one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramCauses {
    /// For data that the host wrote.
    pub host: u64,
    /// For data that cleaning moved.
    pub gc: u64,
    /// For the summaries of blocks.
    pub summary: u64,
    /// For nothing: whole pages, the rest of a wordline. Places within a page that hold nothing are not here, but in
    /// `flash.units.unfilled`.
    pub padding: u64,
    /// For nothing: pages left out so that a copy-back keeps the parity of its page.
    pub waste_copyback: u64,
    /// For nothing: pages left out so that planes could be programmed together.
    pub waste_alignment: u64,
    /// For translation pages.
    pub map: u64,
    /// To keep the units of a logical block together.
    pub merge: u64,
    /// For records of trims (`durability.trim_journal`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub journal: u64,
    /// For parts of the checkpoint (`durability.checkpoint`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub checkpoint: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Pages read, each for one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadCauses {
    /// For host reads.
    pub host: u64,
    /// For cleaning, to move what is valid.
    pub gc: u64,
    /// To complete writes of a part of a mapping unit (read-modify-write).
    pub rmw: u64,
    /// For translation pages.
    pub map: u64,
    /// To keep the units of a logical block together.
    pub merge: u64,
}

/// The part of the map that the controller holds, where the whole is in flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapCache {
    /// Entries that the host needed and the cache held.
    pub hits: u64,
    /// Entries that the host needed and waited for.
    pub misses: u64,
    /// Hits in all; null without any need of an entry.
    pub hit_ratio: Option<f64>,
    /// Entries evicted that were as in flash.
    pub evictions_clean: u64,
    /// Entries evicted that were newer, and written back.
    pub evictions_dirty: u64,
    /// Translation pages read, by cause.
    pub reads: MapPages,
    /// Translation pages programmed, by cause.
    pub programs: MapPages,
    /// Blocks of translation pages reclaimed.
    pub victims: u64,
}

/// Translation pages, each for one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapPages {
    /// For entries that were missed.
    pub miss: u64,
    /// For changed entries that left the cache.
    pub eviction: u64,
    /// For units that cleaning moved.
    pub gc: u64,
    /// To reclaim the blocks that they were in.
    pub map_gc: u64,
}

/// Cleaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gc {
    /// Blocks chosen to be reclaimed.
    pub victims: u64,
    /// Data moved out of them, in flash pages; a page with one valid mapping unit of four counts a quarter.
    pub pages_moved: f64,
    /// Mapping units moved, by cause.
    pub units_moved: MovedUnits,
    /// Share of the victims' mapping units that need not be moved, being superseded, trimmed or padding; null without
    /// victims.
    pub efficiency: Option<f64>,
    /// Free blocks of the plane when a victim was chosen in it, on average, including those that wait for their erase
    /// or are being erased; null without victims.
    pub free_blocks: Option<f64>,
    /// Copies that the host overwrote while they were being programmed.
    pub wasted_copies: u64,
    /// Logical blocks whose old block was let go of (`config.mapping.scheme = "block"`).
    pub merges: Merges,
}

/// Mapping units moved, by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovedUnits {
    /// Garbage collection gained the invalid units of their blocks.
    pub gc: u64,
    /// Wear leveling (`config.gc.wear`) migrated their blocks.
    pub wear: u64,
    /// Programs of their blocks failed (`config.faults`).
    pub failed_block: u64,
    /// Logical blocks were merged (`config.mapping.scheme = "block"`).
    pub merge: u64,
}

/// How two blocks of a logical block became one; all 0 where there are no logical blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Merges {
    /// Nothing was copied: the host had written all again, or trimmed it.
    pub switch: u64,
    /// The host wrote a first part of the new block, and the rest was copied.
    pub partial: u64,
    /// Writes of the host came behind copies.
    pub full: u64,
}

/// What was written of a class of data (`config.temperature`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitClass {
    /// Mapping units that the classifier put into it, on behalf of host writes.
    pub units_written: u64,
    /// Mapping units that cleaning moved, by the class of their last write.
    pub units_moved: u64,
    /// Those of `units_written` that went to a block of another class, because no block was free for their own.
    pub units_elsewhere: u64,
    /// Units written and moved, for each one written; null without any. What is programmed beside them, as padding, is
    /// of no class.
    pub write_amplification: Option<f64>,
}

/// Wear, as erases since the device's birth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wear {
    /// Share of its endurance (`config.nand.endurance`) that the block with the most erases has used, 1 being all of
    /// it; null where the endurance is 0, which is unknown. It exceeds 1 on a device without a table `faults`, where
    /// nothing wears out, and if preconditioning has erased a block more often.
    pub life_used: Option<f64>,
    /// Erases of a block, over all blocks.
    pub blocks: Spread,
    /// Erases of all blocks of a plane, over all planes.
    pub planes: Spread,
    /// Blocks by their erases.
    pub histogram: WearHistogram,
}

/// How erases are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Most.
    pub max: u64,
}

/// Utilization of channels and dies from the start of the measured part to its last completion.
///
/// If an operation starts before that period or ends after it, only the part within the period counts. All values are
/// null if the period has no length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Utilization {
    /// Over all channels.
    pub channels: ChannelShares,
    /// Over all dies. Where planes are independent, a die's share is the mean of its planes'.
    pub dies: DieShares,
    /// Each by itself.
    pub each: Each,
}

/// What channels spent their time with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelShares {
    /// Carrying data.
    pub data: Share,
    /// Carrying commands and addresses, or turning to another chip or channel.
    pub command: Share,
    /// Nothing.
    pub idle: Share,
}

/// What dies spent their time with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DieShares {
    /// The cells work.
    pub cell: Share,
    /// Held by an operation whose cells do not work: data move, or wait for the channel.
    pub register_held: Share,
    /// Nothing.
    pub idle: Share,
}

/// Share of a period, from 0 to 1; null if the period has no length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Mean of all.
    pub mean: Option<f64>,
    /// Of the one with the least.
    pub min: Option<f64>,
    /// Of the one with the most.
    pub max: Option<f64>,
}

/// What holds the run back: how near each resource came to working all the time, which is its bound.
///
/// A resource that works for D seconds on n requests, spread evenly over its units, cannot serve more than n / D of
/// them in a second (the utilisation law). The time that counts goes from the start of the measured part to the last
/// completion; no resource can have worked longer, or the run fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// What is named: the resource that came nearest to its bound; `gc` where most of its time went there;
    /// `load` where no resource worked for half of the time, so that the host could have asked for more; null
    /// without requests.
    pub limited_by: Option<String>,
    /// The resources, the one nearest to its bound first.
    pub resources: Vec<Bound>,
}

/// A resource and its bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// `link_in` and `link_out` (the host link's two directions), `cores` (of the controller), `memory` (the port of
    /// its buffer), `channels`, or `dies` (what takes one operation at a time: see `nand.concurrency`).
    pub resource: String,
    /// How many of them there are.
    pub units: u32,
    /// Seconds that each of them had to work, the work being spread evenly. Time for which operations of a die overlap
    /// counts once.
    pub demand_s: f64,
    /// Share of `demand_s` that went into cleaning.
    pub gc: f64,
    /// Requests per second that they could serve at most, if the work for each stays the same; null without work.
    pub bound_iops: Option<f64>,
    /// How near the run came: the share of the time for which they worked, on average.
    pub reached: f64,
}

/// What host writes did to the mapping units they touched; the sum is the number of units touched. With a write-back
/// buffer they are counted when it writes the units out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Updates {
    /// All valid sectors of the unit were replaced.
    pub covered: u64,
    /// Some valid sectors had to be kept: the unit was read, and written whole.
    pub uncovered: u64,
    /// The unit held nothing.
    pub first: u64,
}

/// What the simulation of the workload took, without preconditioning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Time by the clock on the wall, in seconds.
    pub wall_s: f64,
    /// Processor time, in seconds; null where the system does not tell.
    pub cpu_s: Option<f64>,
    /// Measured requests per second of processor time.
    pub requests_per_cpu_s: Option<f64>,
    /// Measured flash operations (pages read and programmed, blocks erased) per second of processor time.
    pub flash_ops_per_cpu_s: Option<f64>,
    /// Most memory in use at any time since the program started, in bytes; null where the system does not tell.
    pub peak_rss_bytes: Option<u64>,
}

/// Write amplification with the names of its causes.
fn causes(parts: [f64; 7]) -> [(&'static str, f64); 7] {
    let [host, gc, summaries, unfilled, map, journal, checkpoint] = parts;
    [
        ("host", host),
        ("gc", gc),
        ("summaries", summaries),
        ("unfilled", unfilled),
        ("map", map),
        ("journal", journal),
        ("checkpoint", checkpoint),
    ]
}

impl Summary {
    /// The JSON schema of a result.
    pub fn json_schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Summary).to_value();
        if let Some(properties) = schema.get_mut("properties") {
            properties["schema"]["const"] = SCHEMA.into();
        }
        schema
    }

    /// Write amplification as a sum, by what units were programmed for: the host, cleaning, summaries, the map, the
    /// journal of trims, the checkpoint, and places that were left unfilled; `None` without writes.
    pub fn amplification_by_cause(&self) -> Option<[(&'static str, f64); 7]> {
        let Summary { config, updates, .. } = self;
        let total = self.write_amplification?;
        let units = |pages: f64| pages * f64::from(config.units_per_page()) / f64::from(config.pages_per_unit());
        if let (Some(_), true) = (&self.buffer, total > 0.0) {
            return Some(self.amplification_behind_buffer(total, units));
        }
        let written = (updates.covered + updates.uncovered + updates.first) as f64;
        let gc = units(self.gc.pages_moved) / written;
        let summaries = units(self.flash.programs_by_cause.summary as f64) / written;
        let map = units(self.flash.programs_by_cause.map as f64) / written;
        let journal = units(self.flash.programs_by_cause.journal as f64) / written;
        let checkpoint = units(self.flash.programs_by_cause.checkpoint as f64) / written;
        let host_and_rest = (total - gc - summaries - map - journal - checkpoint).max(0.0);
        let host = host_and_rest.min(1.0);
        let unfilled = host_and_rest - host;
        Some(causes([host, gc, summaries, unfilled, map, journal, checkpoint]))
    }

    /// The same behind a buffer, where fewer units may be written than the host wrote.
    fn amplification_behind_buffer(&self, total: f64, units: impl Fn(f64) -> f64) -> [(&'static str, f64); 7] {
        let flash = &self.flash;
        let summaries = units(flash.programs_by_cause.summary as f64);
        let all = (flash.units.programmed + flash.units.unfilled) as f64 + summaries;
        let share = |part: f64| part / all * total;
        let (gc, unfilled) = (share(units(self.gc.pages_moved)), share(flash.units.unfilled as f64));
        let (summaries, map) = (share(summaries), share(units(flash.programs_by_cause.map as f64)));
        // The device's own units are alone in their pages, as a rule; what is left of these counts as unfilled.
        let own = |pages: u64| share(units(pages as f64) / f64::from(self.config.units_per_page()));
        let causes_of = &flash.programs_by_cause;
        let (journal, checkpoint) = (own(causes_of.journal), own(causes_of.checkpoint));
        let host = (total - gc - summaries - unfilled - map - journal - checkpoint).max(0.0);
        causes([host, gc, summaries, unfilled, map, journal, checkpoint])
    }

    /// Adds what the simulation took.
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
