//! Controller part of a summary: buffer and firmware.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measurement::{ControllerWork, Measurement};
use crate::metrics::attribution::Part;
use crate::metrics::results::OperationResults;
use crate::sim::request::Operation;

/// Use of the buffer. Units are mapping units, counted for each request that touches them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferUse {
    /// Capacity in units.
    pub capacity_units: u32,
    /// Units of reads, by result.
    pub reads: BufferReads,
    /// Units of writes, by result.
    pub writes: BufferWrites,
    /// Units that were evicted to make room.
    pub evictions: BufferEvictions,
    /// Units that were dropped because the host deallocated them.
    pub dropped: u64,
    /// Units written from the buffer to flash, including padding.
    pub written_back: u64,
    /// Part of the `written_back` that filled the program of another unit.
    pub companions: u64,
    /// Part of the `written_back` that was read from flash to complete a block (page padding).
    pub padding: u64,
    /// Flushes that had to wait for flash.
    pub flushes_waited: u64,
    /// Units of FUA writes that had to wait for flash.
    pub fua_waited: u64,
    /// Maximum number of units, since the device was new, that a power cut could have lost: accepted, but not yet
    /// programmed.
    pub volatile_units_peak: u64,
    /// Units that a power cut at the end of the run would have lost.
    pub volatile_units_end: u64,
    /// Utilization of the memory port; null if the measured time has no length.
    pub memory_utilization: Option<f64>,
}

/// Units of reads, by result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferReads {
    /// Hits: the buffer held all requested sectors.
    pub hit: u64,
    /// Partial hits: the buffer held some of the requested sectors.
    pub partial: u64,
    /// Misses: the buffer held none of the requested sectors.
    pub miss: u64,
    /// Share of hits among all; null without reads.
    pub hit_ratio: Option<f64>,
    /// Units that were read from flash and stayed in the buffer.
    pub filled: u64,
}

/// Units of writes, by result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferWrites {
    /// Hits: the buffer held the unit, and the write was merged into it.
    pub hit: u64,
    /// Misses: the buffer did not hold the unit.
    pub new: u64,
    /// Share of hits among all; null without writes.
    pub hit_ratio: Option<f64>,
}

/// Evicted units, by the cause that needed the room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferEvictions {
    /// Host writes.
    pub for_write: u64,
    /// Evictions ahead of need (`config.buffer.high_water`).
    pub for_water_mark: u64,
    /// Data added by reads, and copies of data that is written through.
    pub for_read: u64,
    /// Evicted units that were clean, for any cause.
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

/// Use of the firmware.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirmwareUse {
    /// Mean utilization of the cores; null if the measured time has no length.
    pub utilization: Option<f64>,
    /// Utilization of each core, in order.
    pub cores: Vec<f64>,
    /// Share of the response time of reads in firmware, including waits for a core; null without reads, or without the
    /// latency breakdown.
    pub share_of_reads: Option<f64>,
    /// Share of the response time of writes in firmware.
    pub share_of_writes: Option<f64>,
    /// Share of the response time of all requests in firmware.
    pub share_of_all: Option<f64>,
}

impl FirmwareUse {
    pub(super) fn new(measurement: &Measurement) -> Option<FirmwareUse> {
        measurement.config.controller.firmware.as_ref()?;
        let elapsed = measurement.elapsed.ps() as f64;
        let cores = &measurement.controller.cores;
        let shares: Vec<f64> =
            if elapsed > 0.0 { cores.iter().map(|time| time.ps() as f64 / elapsed).collect() } else { Vec::new() };
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

/// Returns the share of the latencies that is spent in firmware.
fn share_of(results: &OperationResults) -> Option<f64> {
    let mean = results.attribution.as_deref()?.mean()?;
    let latency: f64 = mean.parts_us.iter().sum();
    (latency > 0.0).then(|| mean.parts_us[Part::Firmware as usize] / latency)
}
