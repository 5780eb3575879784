//! Statistics of a device over a span of time, for the series of a run and for a live device.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use super::counters::{BufferCounts, Counters, ratio};
use super::energy::{EnergyUse, Served, Work};
use super::summary::units_programmed;
use super::table::{Count, Value, Values};
use crate::config::DeviceConfig;
use crate::sim::time::Time;

/// Data of a span of time from which statistics follow.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// Device.
    pub config: &'a DeviceConfig,
    /// Counters of the span.
    pub counters: &'a Counters,
    /// Times of data and of commands in picoseconds, indexed by channel.
    pub channels: &'a [[i64; 2]],
    /// Length of the span.
    pub span: Time,
    /// Counters of the buffer.
    pub buffer: &'a BufferCounts,
    /// Number of units in the buffer, and number of dirty units, at the end.
    pub buffer_units: [u64; 2],
    /// Smallest number of free blocks in a plane, at the end.
    pub free_blocks_min: u32,
    /// Number of free blocks in all planes, at the end.
    pub free_blocks_sum: u64,
    /// Number of bad blocks at the end; 0 if blocks cannot fail.
    pub bad_blocks: u64,
}

impl Interval<'_> {
    fn units_programmed(&self) -> u64 {
        units_programmed(self.config, self.counters)
    }

    /// Returns the energy, or `None` if the device states none.
    fn energy(&self) -> Option<EnergyUse> {
        let data = self.channels.iter().map(|[data, _]| data).sum();
        EnergyUse::new(self.config, &Work { counters: self.counters, data, span: self.span }, Served::default())
    }
}

statistics! {
    /// Statistics that follow from the counters of a span of time, or from the state at its end.
    pub struct Derived, of of: &Interval {
        /// Mapping units programmed, with or without data, as write amplification counts them.
        Counter units_programmed: u64 => units_programmed, _ = of.units_programmed();
        /// Mapping units programmed per mapping unit that the host wrote; undefined without writes. That of a short
        /// span says little, because writes count before they are programmed.
        Gauge write_amplification: Option<f64> => write_amplification, write_amplification
            = ratio(of.units_programmed(), of.counters.host_units);
        /// Pages read, for any cause.
        Counter pages_read: u64 => _, pages_read = of.counters.pages_read_total();
        /// Valid mapping units moved by garbage collection or merges.
        Counter units_moved: u64 => _, units_moved = of.counters.units_moved();
        /// Pages moved by garbage collection or merges: one valid mapping unit of four counts as a quarter.
        Counter pages_moved: Option<f64> => pages_moved, _ = Some(of.counters.pages_moved(of.config));
        /// Share of the victims' mapping units that did not have to be moved; undefined without victims.
        Gauge efficiency: Option<f64> => efficiency, _ = of.counters.efficiency(of.config);
        /// Mean number of logical blocks with valid units in a log block when it was reclaimed; undefined if none was.
        Gauge associativity: Option<f64> => associativity, _ = of.counters.log_blocks.associativity();
        /// Uncorrectable page reads, for any cause.
        Counter uncorrectable_reads: u64 => _, uncorrectable_reads = of.counters.faults.uncorrectable.iter().sum();
        /// Energy, in joules; undefined without a table `energy`. The power of parts counts from time 0 in frames.
        Counter energy_joules: Option<f64> => energy_j, energy_joules = of.energy().map(|energy| energy.total_j);
        /// Mean power, in watts; undefined without a table `energy`.
        Gauge power_watts: Option<f64> => power_w, power_watts = of.energy().and_then(|energy| energy.mean_w);
        /// Minimum number of free blocks of a plane, at the end.
        Gauge free_blocks_min: u64 => free_blocks_min, free_blocks_min = of.free_blocks_min.into();
        /// Mean number of free blocks of a plane, at the end.
        Gauge free_blocks_mean: Option<f64> => free_blocks_mean, _
            = ratio(of.free_blocks_sum, of.config.total_planes().into());
        /// Free blocks of all planes, at the end.
        Gauge free_blocks: u64 => _, free_blocks = of.free_blocks_sum;
        /// Bad blocks of all planes, at the end.
        Gauge bad_blocks: u64 => _, bad_blocks = of.bad_blocks;
        /// Mapping units in the buffer at the end.
        Gauge buffer_units: u64 => buffer_units, _ = of.buffer_units[0];
        /// Mapping units in the buffer that are dirty, or in flight to flash, at the end.
        Gauge buffer_dirty: u64 => buffer_dirty, _ = of.buffer_units[1];
        /// Mapping units that were evicted from the buffer, for any cause.
        Counter buffer_evictions: u64 => buffer_evictions, _ = of.buffer.evictions.iter().sum();
    }
}

/// All statistics of a device over a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Counters.
    pub counters: Counters,
    /// Statistics that follow from them, or from the state at the end.
    pub derived: Derived,
    /// Counters of the buffer.
    pub buffer: BufferCounts,
}

impl Statistics {
    /// Creates the statistics of a span of time.
    pub fn new(of: &Interval) -> Statistics {
        Statistics { counters: *of.counters, derived: Derived::new(of), buffer: *of.buffer }
    }

    /// Returns all statistics that have a column or a metric, in the order of the columns.
    pub fn list(&mut self) -> Values<'_> {
        let mut all = Vec::new();
        self.counters.list(&mut all);
        self.derived.list(&mut all);
        self.buffer.list(&mut all);
        all
    }
}

/// Writes the statistics that have a metric.
impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut all = *self;
        let value = |value| match value {
            Value::Whole(count) => json!(count),
            Value::Number(number) => json!(number),
            Value::Each(counts, names) => names.iter().zip(counts).map(|(name, count)| (*name, *count)).collect(),
        };
        let with_metric = all.list().into_iter().filter_map(|(statistic, of)| Some((statistic.metric?, value(of))));
        to.collect_map(with_metric)
    }
}

/// Reads the statistics that have a metric. The others, and missing ones, are 0.
impl<'de> Deserialize<'de> for Statistics {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Statistics, D::Error> {
        let found = BTreeMap::<String, serde_json::Value>::deserialize(from)?;
        let mut all = Statistics::default();
        for (statistic, value) in all.list() {
            let Some(found) = statistic.metric.and_then(|name| found.get(name)) else { continue };
            match value {
                Value::Whole(count) => *count = found.as_u64().unwrap_or_default(),
                Value::Number(number) => *number = found.as_f64(),
                Value::Each(counts, names) => {
                    for (name, count) in names.iter().zip(counts) {
                        *count = found[*name].as_u64().unwrap_or_default();
                    }
                }
            }
        }
        Ok(all)
    }
}
