//! SLC cache: blocks in SLC mode that take the writes of the host first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::advanced::Waste;
use super::check::Check;
use super::units::{BlockCount, Duration};
use super::{DeviceConfig, Frontiers, GcScope, limits};
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::gc::wear::WearConfig;

/// SLC cache: blocks of each plane in SLC mode (`nand.slc_mode`), which take the writes of the host first. Folding
/// moves their data to native blocks (docs/model/slc_cache.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheConfig {
    /// Number of blocks of each plane in the cache, or share of its blocks.
    pub blocks: BlockCount,
    /// Destination of host writes when the cache of their plane is full.
    #[serde(default)]
    pub when_full: WhenFull,
    /// Share of the blocks of a plane's cache that are full, at or above which folding starts.
    #[serde(default = "default_high_water")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub high_water: f64,
    /// Share of full blocks down to which folding continues.
    #[serde(default = "default_low_water")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub low_water: f64,
    /// Time without an outstanding request after which all full blocks are folded. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Duration", extend("x-range" = limits::TIME))]
    pub idle: Option<Duration>,
}

fn default_high_water() -> f64 {
    0.9
}

fn default_low_water() -> f64 {
    0.8
}

/// Destination of host writes when the cache of their plane is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// Native blocks.
    #[default]
    Direct,
    /// The next block of the cache that folding frees, for which they wait.
    Wait,
}

impl SlcCacheConfig {
    /// Returns the number of full blocks of a plane's cache at or above which folding starts, and down to which it
    /// continues, for a cache of `blocks` blocks.
    pub fn water_marks(&self, blocks: u32) -> [u32; 2] {
        let of = |share: f64| share * f64::from(blocks);
        let high = (libm::ceil(of(self.high_water) - 1e-9) as u32).max(1);
        [high, (libm::floor(of(self.low_water) + 1e-9) as u32).min(high - 1)]
    }
}

impl DeviceConfig {
    /// Returns `true` if idle time starts garbage collection or folding.
    pub fn times_idle(&self) -> bool {
        self.gc.background.is_some() || self.slc_cache.as_ref().is_some_and(|cache| cache.idle.is_some())
    }

    /// Returns the number of blocks of each plane in the SLC cache; 0 without one. They are the first of the plane.
    pub fn cache_blocks(&self) -> u32 {
        self.slc_cache.as_ref().map_or(0, |cache| cache.blocks.of(self.geometry.blocks))
    }
}

impl Check<'_> {
    /// Checks the SLC cache against the other options.
    pub(super) fn slc_cache(&mut self, device: &DeviceConfig) {
        let Some(cache) = &device.slc_cache else { return };
        let (blocks, all) = (device.cache_blocks(), device.geometry.blocks);
        if blocks < 2 || blocks >= all {
            let what = format!("{blocks} blocks, must be from 2 to {}: one is open while another is folded", all - 1);
            self.refuse("slc_cache.blocks", cache.blocks, &what);
        }
        if cache.low_water >= cache.high_water {
            let what = format!("must be below slc_cache.high_water = {}", cache.high_water);
            self.refuse("slc_cache.low_water", cache.low_water, &what);
        }
        if device.nand.slc_mode.is_none() {
            let what = "needs nand.slc_mode, with the times of its blocks; add it, or leave the cache out";
            self.refuse("slc_cache.blocks", cache.blocks, what);
        }
        for (path, value, what) in excluded(device) {
            self.refuse(path, value, what);
        }
    }
}

/// Returns the options of a device that do not go with an SLC cache: path, value, and what to do.
fn excluded(device: &DeviceConfig) -> Vec<(&'static str, String, &'static str)> {
    let (advanced, gc) = (&device.nand.advanced, &device.gc);
    let active = match &device.allocation {
        AllocationConfig::Dynamic(options) => options.active_blocks,
        _ => None,
    };
    let mode = "with slc_cache, two planes may program in different cell modes; leave it out";
    let of = |path, is_on: bool, value: &str, what| (path, is_on.then(|| value.to_owned()), what);
    let all = [
        of(
            "mapping.scheme",
            device.merges_blocks(),
            device.mapping.scheme.name(),
            "chooses the blocks of host writes itself, so slc_cache has no effect; use page",
        ),
        of(
            "temperature",
            device.temperature.classes() > 1,
            device.temperature.name(),
            "with slc_cache, all classes share a block of the cache; use none",
        ),
        of(
            "gc.frontiers",
            gc.frontiers == Frontiers::Single,
            "single",
            "with slc_cache, folded units need blocks that host writes do not share; use separate",
        ),
        of(
            "gc.wear",
            gc.wear.name() != WearConfig::default().name(),
            gc.wear.name(),
            "levels the wear of native blocks only, and does not know those of slc_cache; use none",
        ),
        of("gc.scope", gc.scope == GcScope::Pool, "pool", "with slc_cache, each plane folds its own cache; use plane"),
        of(
            "gc.destination",
            gc.destination == GcScope::Pool,
            "pool",
            "with slc_cache, each plane folds its own cache; use plane",
        ),
        (
            "allocation.dynamic.active_blocks",
            active.map(|blocks| blocks.to_string()),
            "with slc_cache, a plane has open blocks of two kinds; leave it out",
        ),
        of(
            "nand.advanced.copy_back",
            advanced.copy_back != Waste::Off,
            "wise or blind",
            "with slc_cache, folded pages change their cell mode; use off",
        ),
        of(
            "nand.advanced.copy_back_modify",
            advanced.copy_back_modify,
            "true",
            "with slc_cache, a write may go to a block in another cell mode; leave it out",
        ),
        of("nand.advanced.multi_plane_program", advanced.multi_plane_program != Waste::Off, "wise or blind", mode),
        of("nand.advanced.interleave", advanced.interleave, "true", mode),
    ];
    all.into_iter().filter_map(|(path, value, what)| Some((path, value?, what))).collect()
}
