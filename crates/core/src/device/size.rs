//! Memory size of a device: estimates it from the configuration, so that a device that is too large is refused early.

use super::Options;
use crate::cache::eviction::EvictionConfig;
use crate::config::DeviceConfig;
use crate::external::Externals;
use crate::ftl::gc::trigger::TriggerConfig;
use crate::ftl::gc::victim::{Index, VictimConfig};
use crate::ftl::gc::wear::WearConfig;
use crate::ftl::space::Ranks;
use crate::ftl::temperature::TemperatureConfig;

/// Memory of a device in bytes, excluding the part that grows with the outstanding requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Tables that are written when the device is built.
    pub tables: u64,
    /// Maps that the system provides as zeros. Memory is allocated when the units in them are written.
    pub maps: u64,
}

impl Needed {
    /// Returns the memory of a filled device.
    pub fn total(&self) -> u64 {
        self.tables + self.maps
    }
}

/// Bytes per plane for queues, counters and busy times, without and with latency breakdowns. `tests/memory.rs` compares
/// the estimate with the allocations.
const PER_PLANE: u64 = 640;
const PER_PLANE_OF_BREAKDOWNS: u64 = 200;

impl Options {
    /// Estimates the memory of a device.
    pub fn memory(&self, config: &DeviceConfig) -> Needed {
        let (planes, blocks) = (u64::from(config.total_planes()), u64::from(config.total_blocks()));
        let units = blocks * u64::from(config.units_per_block());
        let logical = config.logical_units();
        let of_plane = PER_PLANE + if self.attribution { PER_PLANE_OF_BREAKDOWNS } else { 0 };
        // State of each block, counts of its valid units, writes and erases, and the list of free blocks.
        let of_blocks = 20 * blocks;
        let policies =
            victims(config) + wear(config) + config.mapping.scheme.bytes(config) + temperature(config, logical);
        let of_errors = if config.errors.is_some() { 32 * blocks } else { 0 };
        let of_refresh = if config.refresh().is_some() { 8 * blocks } else { 0 };
        let of_blocks = of_blocks + of_errors + of_refresh;
        let tables = planes * of_plane + of_blocks + policies + buffer(config) + contents(config, self, units);
        // Map and reverse map have four bytes for each unit, and one bit that is set if the unit is valid.
        let mut maps = 4 * config.mapped_units() + 4 * units + units / 8;
        if config.active_buffer().is_some() {
            maps += 4 * logical;
        }
        if config.temperature.classes() > 1 {
            maps += logical / 4;
        }
        Needed { tables, maps }
    }
}

/// Returns the size of the tables of the wear policy.
fn wear(config: &DeviceConfig) -> u64 {
    let blocks = u64::from(config.total_blocks());
    // An entry of an ordered set takes up to twice its own size.
    let (of_free, of_cold, of_pools) = (2 * 16, 16 + 2 * 16, 12 + 4 * 8);
    blocks
        * match &config.gc.wear {
            WearConfig::Unleveled(_) | WearConfig::External(_) => 0,
            WearConfig::LeastErased(_) => of_free,
            WearConfig::StaticThreshold(_) => of_cold,
            WearConfig::DualPool(_) => of_cold + of_pools,
            WearConfig::Agrawal(options) if options.migration => of_cold + 16,
            WearConfig::Agrawal(_) => 0,
        }
}

/// Returns the size of the tables of the victim policy; translation blocks have tables of their own.
fn victims(config: &DeviceConfig) -> u64 {
    let (planes, blocks) = (u64::from(config.total_planes()), u64::from(config.total_blocks()));
    let together = config.planes_per_collection().unwrap_or(1);
    let ranks = Ranks::bytes(config.total_planes() / together, config.geometry.blocks * together);
    let buckets = 8 * (blocks + planes * (u64::from(config.data_units_per_block()) + 1)) + 4 * planes;
    let array = 8 * blocks + 24 * planes;
    // A policy of another program is not built for an estimate. It may need columns, the largest tables.
    let built_in = match &config.gc.victim {
        VictimConfig::External(_) => None,
        policy => policy.build(config, 0, &Externals::default()).ok(),
    };
    // These policies read all closed blocks and their ages.
    let is_read =
        matches!(config.gc.trigger, TriggerConfig::External(_)) || matches!(config.gc.wear, WearConfig::External(_));
    let index = built_in.as_ref().map(|policy| policy.index());
    let one = match index.map(|index| if is_read { index.for_reading() } else { index }) {
        Some(Index::Closing | Index::Valid) => ranks,
        Some(Index::Buckets) => buckets,
        Some(Index::Array) => array,
        None | Some(Index::Columns) => 38 * blocks,
    };
    let has_ages = is_read || built_in.is_some_and(|policy| policy.has_ages());
    let one = one + if has_ages { 16 * blocks } else { 0 };
    if config.map_blocks() > 0 { 2 * one } else { one }
}

fn temperature(config: &DeviceConfig, logical: u64) -> u64 {
    match &config.temperature {
        TemperatureConfig::TwoLevelLru(options) => {
            4 * logical + ((options.hot + options.candidates) * logical as f64 * 13.0) as u64
        }
        // Counters of four bits.
        TemperatureConfig::MultiHash(options) => ((options.counters * logical as f64) as u64).next_power_of_two() / 2,
        _ => 0,
    }
}

/// Returns the size of the buffer's entries and of the eviction policy's tables.
fn buffer(config: &DeviceConfig) -> u64 {
    let Some(buffer) = config.active_buffer() else { return 0 };
    let units = u64::from(config.buffer_units());
    let words = u64::from(config.sectors_per_unit().div_ceil(64));
    let masks = if words > 1 { 8 * words * units } else { 0 };
    let of_blocks = config.logical_units().div_ceil(u64::from(config.data_units_per_block()));
    let eviction = match &buffer.eviction {
        EvictionConfig::Fab(_) | EvictionConfig::Bplru(_) => 4 * units + 24 * of_blocks,
        _ => 10 * units,
    };
    48 * units + masks + eviction
}

/// Returns the size of the sector versions for verification.
fn contents(config: &DeviceConfig, options: &Options, units: u64) -> u64 {
    if !options.verify {
        return 0;
    }
    4 * u64::from(config.sectors_per_unit()) * units
}
