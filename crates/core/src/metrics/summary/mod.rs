//! Summary: the result of a run, one struct with one JSON format.
//!
//! Equal configuration, workload, seed and version give equal summaries on every machine, except for `run` and `live`.

/// Declares a part of a result, with the source of each field.
macro_rules! section {
    (
        $(#[$about:meta])*
        pub struct $name:ident, of $($of:ident: $from:ty),+ {
            $($(#[$meta:meta])* $field:ident: $type:ty = $value:expr;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $($(#[$meta])* pub $field: $type,)*
        }

        impl $name {
            pub(super) fn new($($of: $from),+) -> $name {
                $name { $($field: $value,)* }
            }
        }
    };
}

mod array;
mod build;
mod changes;
mod controller;
mod distribution;
mod distributions;
mod faults;
mod flash;
mod gangs;
mod gc;
mod json;
mod live;
mod log_blocks;
mod measurement;
mod objects;
mod pools;

pub use array::{ArrayUse, ArrayWrites, MemberOperations, RebuildUse};
pub use build::{About, units_programmed};
pub use changes::{Change, Changes};
pub use controller::{BufferEvictions, BufferReads, BufferUse, BufferWrites, FirmwareUse};
pub use distribution::Distribution;
pub use distributions::{ChannelCounts, Distributions, Each, IntervalCounts, LatencyCurve, SizeCounts, WearHistogram};
pub use faults::{BadBlocks, ErrorsMet, FaultState, FaultsMet, UncorrectableReads};
pub use flash::{Flash, FlashCommands, FlashPages, FlashUnits, MapCache, MapPages, ParallelCommands, Updates};
pub use gangs::GangUse;
pub use gc::{BackgroundGc, Gc, MovedUnits, PerPackage, SlcCacheUse, UnitClass};
pub use json::ReadError;
pub use live::{LateCauses, Live, LiveFrontend, LiveImage, LiveRecovery};
pub use log_blocks::{LogBlocks, LogWrites};
pub use measurement::{ControllerWork, Measurement};
pub use objects::ObjectUse;
pub use pools::{Imbalance, PoolsUse};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::attribution::Parts;
use super::counters::ratio;
pub use super::counters::{Merges, ProgramCauses, ReadCauses};
pub use super::energy::EnergyUse;
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
    /// Accesses of workloads to objects; absent without an object trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectUse>,
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
    /// Energy, by operation; absent without a table `config.energy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyUse>,
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
    /// Errors of read data; absent if there are none (`config.errors`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<ErrorsMet>,
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
    /// Throughput in MiB per second over the same time. For all requests, that of reads and writes: the others move no
    /// data.
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

/// Utilization of channels, dies and chips. Operations that start before the measured part or end after it count in
/// part. All values are null if it has no length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Utilization {
    /// Shares of time over all channels.
    pub channels: ChannelShares,
    /// Shares of time over all dies. If planes are independent, the share of a die is the mean of its planes.
    pub dies: DieShares,
    /// Chips of several dies that execute one command at a time, or such packages (`nand.concurrency`). Absent if the
    /// execution unit is a die or a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chips: Option<ChipShares>,
    /// Shares of time of each channel and each die.
    pub each: Each,
}

/// Shares of time of chips or packages that execute one command at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChipShares {
    /// Occupied by an operation of one of the dies: see `dies`. With interleaved commands, waits for the channel do not
    /// count.
    pub busy: Share,
    /// Share of each, in the order of channels, with four decimals. Empty for a device with more than 4096 chips.
    pub each: Vec<f64>,
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
    /// unfilled space, the map, the trim journal, the checkpoint, folding, parity and refresh. They add up to the
    /// write amplification. `None` without writes.
    pub fn amplification_by_cause(&self) -> Option<[(&'static str, f64); 10]> {
        let Summary { config, updates, .. } = self;
        let total = self.write_amplification?;
        let units = |pages: f64| pages * f64::from(config.units_per_page()) / f64::from(config.pages_per_unit());
        // A write of an array's host is several writes of its members, as with a buffer it is a part of one.
        if (self.buffer.is_some() || self.array.is_some()) && total > 0.0 {
            return Some(self.amplification_behind_buffer(total, units));
        }
        let written = (updates.covered + updates.uncovered + updates.first) as f64;
        let [gc, folded, refreshed] = self.pages_moved().map(|pages| units(pages) / written);
        let summaries = units(self.flash.programs_by_cause.summary as f64) / written;
        let map = units(self.flash.programs_by_cause.map as f64) / written;
        let journal = units(self.flash.programs_by_cause.journal as f64) / written;
        let checkpoint = units(self.flash.programs_by_cause.checkpoint as f64) / written;
        let parity = units(self.flash.programs_by_cause.parity as f64) / written;
        let host_and_rest = total - gc - summaries - map - journal - checkpoint - folded - parity - refreshed;
        let host_and_rest = host_and_rest.max(0.0);
        let host = host_and_rest.min(1.0 + updates.rewritten as f64 / written);
        let unfilled = host_and_rest - host;
        Some(self.named([host, gc, summaries, unfilled, map, journal, checkpoint, folded, parity, refreshed]))
    }

    /// Names the parts of the write amplification by cause.
    fn named(&self, parts: [f64; 10]) -> [(&'static str, f64); 10] {
        let [host, moved, summaries, unfilled, map, journal, checkpoint, folded, parity, refreshed] = parts;
        [
            ("host", host),
            (if self.config.merges_blocks() { "merges" } else { "gc" }, moved),
            ("summaries", summaries),
            ("unfilled", unfilled),
            ("map", map),
            ("journal", journal),
            ("checkpoint", checkpoint),
            ("folding", folded),
            ("parity", parity),
            ("refresh", refreshed),
        ]
    }

    /// Returns the data moved in flash pages: for other causes, by folding, and by refresh.
    fn pages_moved(&self) -> [f64; 3] {
        let (config, moved) = (&self.config, &self.gc.units_moved);
        let per_page = f64::from(config.units_per_page());
        let [folded, refreshed] =
            [moved.fold, moved.refresh].map(|units| (units * u64::from(config.pages_per_unit())) as f64 / per_page);
        [self.gc.pages_moved - folded - refreshed, folded, refreshed]
    }

    /// Returns the parts of the write amplification with a buffer, which may write fewer units than the host.
    fn amplification_behind_buffer(&self, total: f64, units: impl Fn(f64) -> f64) -> [(&'static str, f64); 10] {
        let flash = &self.flash;
        let summaries = units(flash.programs_by_cause.summary as f64);
        let parity = units(flash.programs_by_cause.parity as f64);
        let all = (flash.units.programmed + flash.units.unfilled) as f64 + summaries + parity;
        let share = |part: f64| part / all * total;
        let [gc, folded, refreshed] = self.pages_moved().map(|pages| share(units(pages)));
        let unfilled = share(flash.units.unfilled as f64);
        let (summaries, parity) = (share(summaries), share(parity));
        let map = share(units(flash.programs_by_cause.map as f64));
        // The device's own units usually have a page to themselves. The rest of the page counts as unfilled.
        let own = |pages: u64| share(units(pages as f64) / f64::from(self.config.units_per_page()));
        let causes_of = &flash.programs_by_cause;
        let (journal, checkpoint) = (own(causes_of.journal), own(causes_of.checkpoint));
        let host = total - gc - summaries - unfilled - map - journal - checkpoint - folded - parity - refreshed;
        let host = host.max(0.0);
        self.named([host, gc, summaries, unfilled, map, journal, checkpoint, folded, parity, refreshed])
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
