//! Garbage collection in a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LogBlocks, Measurement};
use crate::metrics::collections::CollectionCounts;
use crate::metrics::counters::{BackgroundCounts, ClassCounts, CopyCause, Merges, SlcCounts, is_zero, ratio};

section! {
    /// Garbage collection.
    pub struct Gc, of of: &Measurement {
        /// Blocks chosen as victims.
        victims: u64 = of.counters.victims;
        /// Data moved, in flash pages: one valid mapping unit of four counts as a quarter.
        pages_moved: f64 = of.counters.pages_moved(of.config);
        /// Mapping units moved, by cause.
        units_moved: MovedUnits = MovedUnits::new(&of.counters.moved);
        /// Share of the victims' mapping units that did not have to be moved (overwritten, trimmed or padding); null
        /// without victims.
        efficiency: Option<f64> = of.counters.efficiency(of.config);
        /// Mean number of free blocks of the plane when a victim was chosen in it, including blocks that await an
        /// erase; null without victims.
        free_blocks: Option<f64> = ratio(of.counters.free_blocks_at_choice, of.counters.victims);
        /// Free blocks of all planes at the end, less those at the start. If the run has used up free blocks, it needed
        /// less garbage collection than a longer run.
        #[serde(default)]
        free_blocks_gained: i64 = of.free_blocks_gained;
        /// Mean time from the choice of a victim to the end of its erase, with all waits and the host's operations in
        /// between; null if no erase has ended.
        #[serde(default)]
        collection_us: Option<f64> = of.collections.mean_us();
        /// Victims in each package whose erase has ended.
        #[serde(default)]
        collected_per_package: PerPackage = PerPackage::new(of.collections);
        /// Wasted copies: the host overwrote the unit while its copy was programmed.
        wasted_copies: u64 = of.counters.wasted_copies;
        /// Cold blocks whose data wear leveling moved into worn blocks (`config.gc.wear`).
        #[serde(default)]
        migrations: u64 = of.counters.migrations;
        /// Merges of logical blocks (mapping schemes that merge blocks).
        merges: Merges = of.counters.merges.into();
        /// Log blocks. Absent without them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log_blocks: Option<LogBlocks> = LogBlocks::of(of);
        /// Part in idle time (`config.gc.background`); absent without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        background: Option<BackgroundGc>
            = of.config.gc.background.as_ref().map(|_| BackgroundGc::new(&of.counters.background));
        /// SLC cache (`config.slc_cache`); absent without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slc_cache: Option<SlcCacheUse> = of.config.slc_cache.as_ref().map(|_| SlcCacheUse::new(&of.counters.slc));
    }
}

section! {
    /// SLC cache.
    pub struct SlcCacheUse, of counts: &SlcCounts {
        /// Mapping units written to the cache. Other units of the host went to native blocks.
        units: u64 = counts.cache_units;
        /// Pages of the cache that were read, for any cause.
        pages_read: u64 = counts.pages_read.iter().sum();
        /// Pages of the cache that were programmed, for any cause.
        pages_programmed: u64 = counts.pages_programmed.iter().sum();
        /// Blocks of the cache that folding has chosen.
        folded: u64 = counts.folded;
        /// Part of them in idle time (`config.slc_cache.idle`).
        folded_idle: u64 = counts.folded_idle;
    }
}

section! {
    /// Garbage collection in idle time.
    pub struct BackgroundGc, of counts: &BackgroundCounts {
        /// Victims chosen in idle time.
        victims: u64 = counts.victims;
        /// Mapping units moved out of these victims, in idle time or later.
        units_moved: u64 = counts.units_moved;
    }
}

section! {
    /// A number for each package; null if it was not counted.
    #[derive(Default)]
    pub struct PerPackage, of collections: &CollectionCounts {
        /// Mean of all packages.
        mean: Option<f64> = ratio(collections.ended.iter().sum(), collections.ended.len() as u64);
        /// Minimum of all packages.
        min: Option<u64> = collections.ended.iter().copied().min();
        /// Maximum of all packages.
        max: Option<u64> = collections.ended.iter().copied().max();
    }
}

section! {
    /// Mapping units moved, by cause.
    pub struct MovedUnits, of moved: &[u64; CopyCause::COUNT] {
        /// Units moved to reclaim their block.
        gc: u64 = moved[CopyCause::Gc as usize];
        /// Units whose block was migrated by wear leveling (`config.gc.wear`).
        wear: u64 = moved[CopyCause::Wear as usize];
        /// Units whose block had a failed program (`config.faults`).
        failed_block: u64 = moved[CopyCause::FailedBlock as usize];
        /// Units moved in merges of logical blocks (mapping schemes that merge blocks).
        merge: u64 = moved[CopyCause::Merge as usize];
        /// Units that folding moved out of the SLC cache (`config.slc_cache`).
        #[serde(default, skip_serializing_if = "is_zero")]
        fold: u64 = moved[CopyCause::Fold as usize];
        /// Units of uncorrectable pages that were rebuilt from their stripe (`config.superblock.parity`).
        #[serde(default, skip_serializing_if = "is_zero")]
        rebuild: u64 = moved[CopyCause::Rebuild as usize];
        /// Units whose block was refreshed (`config.errors.refresh`).
        #[serde(default, skip_serializing_if = "is_zero")]
        refresh: u64 = moved[CopyCause::Refresh as usize];
    }
}

section! {
    /// Data class (`config.temperature`).
    pub struct UnitClass, of counts: &ClassCounts {
        /// Mapping units of host writes that the classifier put into this class.
        units_written: u64 = counts.units_written;
        /// Mapping units moved by garbage collection whose last write was in this class.
        units_moved: u64 = counts.units_moved;
        /// Part of the `units_written` in a block of another class, because no block was free for this one.
        units_elsewhere: u64 = counts.units_elsewhere;
        /// Units written and moved, per unit written, without padding; null without writes.
        write_amplification: Option<f64> = ratio(counts.units_written + counts.units_moved, counts.units_written);
    }
}
