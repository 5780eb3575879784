//! Controller part of a summary: buffer and firmware.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Measurement;
use crate::metrics::attribution::Part;
use crate::metrics::counters::{BufferCounts, is_zero, ratio};
use crate::metrics::results::OperationResults;
use crate::sim::request::Operation;

section! {
    /// Use of the buffer. Units are mapping units, counted for each request that touches them.
    pub struct BufferUse, of of: &Measurement {
        /// Capacity in units.
        capacity_units: u32 = of.config.buffer_units();
        /// Units of reads, by result.
        reads: BufferReads = BufferReads::new(&of.controller.buffer);
        /// Units of writes, by result.
        writes: BufferWrites = BufferWrites::new(&of.controller.buffer);
        /// Units that were evicted to make room.
        evictions: BufferEvictions = BufferEvictions::new(&of.controller.buffer);
        /// Units that were dropped because the host deallocated them.
        dropped: u64 = of.controller.buffer.dropped;
        /// Units written from the buffer to flash, including padding.
        written_back: u64 = of.controller.buffer.written_back;
        /// Part of the `written_back` that filled the program of another unit.
        companions: u64 = of.controller.buffer.companions;
        /// Part of the `written_back` that was read from flash to complete a block (page padding).
        padding: u64 = of.controller.buffer.padding;
        /// Flushes that had to wait for flash.
        flushes_waited: u64 = of.controller.buffer.flushes_waited;
        /// Units of FUA writes that had to wait for flash.
        fua_waited: u64 = of.controller.buffer.fua_waited;
        /// Maximum number of units, since the device was new, that a power cut could have lost: accepted, but not yet
        /// programmed.
        volatile_units_peak: u64 = of.controller.volatile_units.1;
        /// Units that a power cut at the end of the run would have lost.
        volatile_units_end: u64 = of.controller.volatile_units.0;
        /// Utilization of the memory port; null if the measured time has no length.
        memory_utilization: Option<f64> = ratio(of.controller.memory.ps(), of.elapsed.ps());
    }
}

section! {
    /// Units of reads, by result.
    pub struct BufferReads, of counts: &BufferCounts {
        /// Hits: the buffer held all requested sectors.
        hit: u64 = counts.reads_hit;
        /// Partial hits: the buffer held some of the requested sectors.
        partial: u64 = counts.reads_partial;
        /// Misses: the buffer held none of the requested sectors.
        miss: u64 = counts.reads_miss;
        /// Share of hits among all; null without reads.
        hit_ratio: Option<f64> = ratio(counts.reads_hit, counts.reads_hit + counts.reads_partial + counts.reads_miss);
        /// Units that were read from flash and stayed in the buffer.
        filled: u64 = counts.fills;
        /// Units that were read from flash ahead of their request (`config.buffer.read_ahead`).
        #[serde(default, skip_serializing_if = "is_zero")]
        ahead: u64 = counts.ahead;
        /// Units of reads that were served from data read ahead, or waited for its arrival. Those that waited are not
        /// hits.
        #[serde(default, skip_serializing_if = "is_zero")]
        ahead_used: u64 = counts.ahead_used;
    }
}

section! {
    /// Units of writes, by result.
    pub struct BufferWrites, of counts: &BufferCounts {
        /// Hits: the buffer held the unit, and the write was merged into it.
        hit: u64 = counts.writes_hit;
        /// Misses: the buffer did not hold the unit.
        new: u64 = counts.writes_new;
        /// Share of hits among all; null without writes.
        hit_ratio: Option<f64> = ratio(counts.writes_hit, counts.writes_hit + counts.writes_new);
    }
}

section! {
    /// Evicted units, by the cause that needed the room.
    pub struct BufferEvictions, of counts: &BufferCounts {
        /// Host writes.
        for_write: u64 = counts.evictions[0];
        /// Evictions ahead of need (`config.buffer.high_water`).
        for_water_mark: u64 = counts.evictions[1];
        /// Data added by reads, and copies of data that is written through.
        for_read: u64 = counts.evictions[2];
        /// Evicted units that were clean, for any cause.
        clean: u64 = counts.evicted_clean;
    }
}

impl BufferUse {
    /// Returns the use of the buffer, or `None` without one.
    pub(super) fn of(measurement: &Measurement) -> Option<BufferUse> {
        measurement.config.active_buffer().map(|_| BufferUse::new(measurement))
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
