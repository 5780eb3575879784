//! The controller's part of a result: its buffer and its software.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measurement::{ControllerWork, Measurement};
use crate::metrics::attribution::Part;
use crate::metrics::results::OperationResults;
use crate::sim::request::Operation;

/// What the buffer did. Units are mapping units, and count once for each request that touches them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferUse {
    /// Units that it holds.
    pub capacity_units: u32,
    /// Units of reads.
    pub reads: BufferReads,
    /// Units of writes.
    pub writes: BufferWrites,
    /// Units that left it to make room.
    pub evictions: BufferEvictions,
    /// Units that were dropped because the host deallocated them.
    pub dropped: u64,
    /// Units that were written to flash from it, padding included.
    pub written_back: u64,
    /// Those among them that were written to fill the program of another.
    pub companions: u64,
    /// Those among them that it did not hold: read from flash to fill up their block (page padding).
    pub padding: u64,
    /// Flushes that had to wait for flash.
    pub flushes_waited: u64,
    /// Units of FUA writes that had to wait for flash.
    pub fua_waited: u64,
    /// Units that a power cut would have lost, at the worst time since the device was made: accepted, and not yet
    /// programmed.
    pub volatile_units_peak: u64,
    /// Units that it would have lost at the end of the run.
    pub volatile_units_end: u64,
    /// Utilization of the memory port from the start of the measured part to its last completion; null if that period
    /// has no length.
    pub memory_utilization: Option<f64>,
}

/// Units of reads and the buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferReads {
    /// It held all sectors asked for.
    pub hit: u64,
    /// It held some of them; the others came from elsewhere.
    pub partial: u64,
    /// It held none.
    pub miss: u64,
    /// Share of those that hit among all; null without any.
    pub hit_ratio: Option<f64>,
    /// Units that flash had to be read for and that stayed in the buffer.
    pub filled: u64,
}

/// Units of writes and the buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferWrites {
    /// Their unit was there: they merged with it.
    pub hit: u64,
    /// It was not.
    pub new: u64,
    /// Share of those that hit among all; null without any.
    pub hit_ratio: Option<f64>,
}

/// Units that left the buffer to make room, by what needed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferEvictions {
    /// A host write.
    pub for_write: u64,
    /// The water marks.
    pub for_water_mark: u64,
    /// What a read brought, or a copy of what was written through.
    pub for_read: u64,
    /// Those of all that flash had already, and that were dropped.
    pub clean: u64,
}

impl BufferUse {
    pub(super) fn new(measurement: &Measurement) -> Option<BufferUse> {
        measurement.config.active_buffer()?;
        let ControllerWork { buffer: counts, volatile_units, memory, .. } = measurement.controller;
        let share = |hit: u64, of: u64| (of > 0).then(|| hit as f64 / of as f64);
        let reads = counts.reads_hit + counts.reads_partial + counts.reads_miss;
        let writes = counts.writes_hit + counts.writes_new;
        let [for_write, for_water_mark, for_read] = counts.evictions;
        Some(BufferUse {
            capacity_units: measurement.config.buffer_units(),
            reads: BufferReads {
                hit: counts.reads_hit,
                partial: counts.reads_partial,
                miss: counts.reads_miss,
                hit_ratio: share(counts.reads_hit, reads),
                filled: counts.fills,
            },
            writes: BufferWrites {
                hit: counts.writes_hit,
                new: counts.writes_new,
                hit_ratio: share(counts.writes_hit, writes),
            },
            evictions: BufferEvictions { for_write, for_water_mark, for_read, clean: counts.evicted_clean },
            dropped: counts.dropped,
            written_back: counts.written_back,
            companions: counts.companions,
            padding: counts.padding,
            flushes_waited: counts.flushes_waited,
            fua_waited: counts.fua_waited,
            volatile_units_end: volatile_units.0,
            volatile_units_peak: volatile_units.1,
            memory_utilization: share(memory.ps(), measurement.elapsed.ps()),
        })
    }
}

/// What the controller's software did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirmwareUse {
    /// Mean utilization of the cores from the start of the measured part to its last completion; null if that period
    /// has no length.
    pub utilization: Option<f64>,
    /// The same of each core, in their order.
    pub cores: Vec<f64>,
    /// Share of the response time that went into the software, waiting for a core included: of reads. Null without
    /// reads, or where the run did not attribute latencies.
    pub share_of_reads: Option<f64>,
    /// Of writes.
    pub share_of_writes: Option<f64>,
    /// Of all requests.
    pub share_of_all: Option<f64>,
}

impl FirmwareUse {
    pub(super) fn new(measurement: &Measurement) -> Option<FirmwareUse> {
        measurement.config.controller.firmware.as_ref()?;
        let elapsed = measurement.elapsed.ps() as f64;
        let cores = &measurement.controller.cores;
        let shares: Vec<f64> = match elapsed > 0.0 {
            true => cores.iter().map(|time| time.ps() as f64 / elapsed).collect(),
            false => Vec::new(),
        };
        let mean = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        let results = measurement.results;
        Some(FirmwareUse {
            utilization: mean,
            cores: shares,
            share_of_reads: share_of(&results.of(Operation::Read)),
            share_of_writes: share_of(&results.of(Operation::Write)),
            share_of_all: share_of(&results.all()),
        })
    }
}

/// The share of latencies that went into software.
fn share_of(results: &OperationResults) -> Option<f64> {
    let mean = results.attribution.as_deref()?.mean()?;
    let latency: f64 = mean.parts_us.iter().sum();
    (latency > 0.0).then(|| mean.parts_us[Part::Firmware as usize] / latency)
}
