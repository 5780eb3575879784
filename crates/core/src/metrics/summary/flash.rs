//! Flash part of a summary: operations, the cache of the map, and kinds of updates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Measurement;
use crate::config::DeviceConfig;
use crate::metrics::counters::{Counters, MapCause, MapCounters, ProgramCauses, ReadCauses, is_zero, ratio};
use crate::nand::array::Kind;
use crate::nand::parallel::Shape;

section! {
    /// Operations of the flash in the measured time. Garbage collection after the last completion is not counted.
    pub struct Flash, of of: &Measurement {
        /// Pages read and programmed.
        pages: FlashPages = FlashPages::new(of.counters);
        /// Mapping units in the programmed pages, without summaries and parity.
        units: FlashUnits = FlashUnits::new(of.counters);
        /// Blocks erased.
        blocks_erased: u64 = of.counters.blocks_erased;
        /// Commands to the flash.
        commands: FlashCommands = FlashCommands::new(of);
        /// Pages programmed, by cause; the sum is `pages.programmed`.
        programs_by_cause: ProgramCauses = of.counters.pages_programmed.into();
        /// Pages read, by cause; the sum is `pages.read`.
        reads_by_cause: ReadCauses = of.counters.pages_read.into();
    }
}

section! {
    /// Flash pages.
    pub struct FlashPages, of counters: &Counters {
        /// Pages read.
        read: u64 = counters.pages_read_total();
        /// Pages programmed.
        programmed: u64 = counters.pages_programmed_total();
    }
}

section! {
    /// Mapping units in programmed pages, without summaries and parity.
    pub struct FlashUnits, of counters: &Counters {
        /// Mapping units programmed with data, from the host or moved.
        programmed: u64 = counters.units_programmed;
        /// Mapping units programmed without data: padding inside pages, and pages of padding that fill a wordline.
        unfilled: u64 = counters.units_padded;
        /// Mapping units in flash that a TRIM, or write-zeroes that deallocates, made invalid.
        #[serde(default)]
        trimmed: u64 = counters.units_trimmed;
    }
}

section! {
    /// Commands to the flash.
    pub struct FlashCommands, of of: &Measurement {
        /// Read commands.
        read: u64 = of.counters.read_commands;
        /// Program commands. A command may fill several pages.
        program: u64 = of.counters.program_commands;
        /// Program units that were queued before they were full, because a FLUSH or FUA waited for them.
        #[serde(default)]
        cut_by_flush: u64 = of.counters.units_cut_by_flush;
        /// Program units that were queued before they were full, after `controller.fill_timeout`.
        #[serde(default)]
        cut_by_timeout: u64 = of.counters.units_cut_by_timeout;
        /// Blocks erased, by a command of their own or together with others.
        erase: u64 = of.counters.blocks_erased;
        /// Pages moved by copy-back, which are included in the reads and programs.
        copy_back: u64 = of.counters.copy_backs;
        /// Multi-plane and interleaved commands, by kind and size.
        parallel: Vec<ParallelCommands>
            = of.parallel.shapes().map(|shape| ParallelCommands::new(shape, of.config)).collect();
    }
}

section! {
    /// Multi-plane or interleaved commands of one kind and size.
    pub struct ParallelCommands, of shape: Shape, config: &DeviceConfig {
        /// Kind of command: `read`, `program`, `erase` or `copy-back`.
        kind: String = shape.kind.name().to_owned();
        /// Dies of a chip in each command.
        dies: u32 = shape.dies;
        /// Planes of all these dies in each command.
        planes: u32 = shape.planes;
        /// Pages that each command read or programmed, counted as in native mode; for an erase, blocks.
        pages: u32 = shape.planes * if shape.kind == Kind::Program { config.geometry.pages_per_program } else { 1 };
        /// Commands of this kind and size.
        commands: u64 = shape.commands;
    }
}

section! {
    /// Cache of a map that is stored in flash.
    pub struct MapCache, of map: &MapCounters {
        /// Entries that the host needed and the cache held.
        hits: u64 = map.hits;
        /// Entries that the host needed and had to wait for.
        misses: u64 = map.misses;
        /// Share of hits; null if no entry was needed.
        hit_ratio: Option<f64> = ratio(map.hits, map.hits + map.misses);
        /// Clean entries that were evicted.
        evictions_clean: u64 = map.evictions_clean;
        /// Dirty entries that were evicted and written back.
        evictions_dirty: u64 = map.evictions_dirty;
        /// Translation pages read, by cause.
        reads: MapPages = MapPages::new(&map.reads);
        /// Translation pages programmed, by cause.
        programs: MapPages = MapPages::new(&map.programs);
        /// Blocks of translation pages chosen as victims.
        victims: u64 = map.victims;
    }
}

impl MapCache {
    /// Returns the cached map, or `None` if nothing was counted because the whole map is in memory.
    pub(super) fn of(counters: &MapCounters) -> Option<MapCache> {
        (*counters != MapCounters::default()).then(|| MapCache::new(counters))
    }
}

section! {
    /// Translation pages, by cause.
    pub struct MapPages, of counts: &[u64; MapCause::COUNT] {
        /// Cache misses.
        miss: u64 = counts[MapCause::Miss as usize];
        /// Dirty entries that were evicted.
        eviction: u64 = counts[MapCause::Eviction as usize];
        /// Units that garbage collection moved.
        gc: u64 = counts[MapCause::Gc as usize];
        /// Garbage collection of the blocks of translation pages.
        map_gc: u64 = counts[MapCause::MapGc as usize];
    }
}

section! {
    /// Mapping units touched by host writes, by the kind of update. With a write-back buffer, they are counted when
    /// they are written back.
    pub struct Updates, of counters: &Counters {
        /// Covered updates: all valid sectors of the unit were replaced.
        covered: u64 = counters.updates_covered;
        /// Uncovered updates: some valid sectors were kept, so the unit was read and written as a whole.
        uncovered: u64 = counters.updates_uncovered;
        /// First writes: the unit held no data.
        first: u64 = counters.updates_first;
        /// Other units written again because of their logical page (`config.geometry.logical_page`).
        #[serde(default, skip_serializing_if = "is_zero")]
        rewritten: u64 = counters.units_rewritten;
    }
}
