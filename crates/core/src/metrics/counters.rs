//! Tables of the counters: plain fields, so that counting takes one addition. [`table`](super::table) describes a line.

use super::table::Count;
use crate::config::DeviceConfig;
use crate::config::errors::MAX_RETRIES;

causes! {
    /// Cause of a programmed page. Each programmed page has exactly one cause.
    pub enum ProgramCause,
    /// Pages programmed, by cause.
    pub struct ProgramCauses {
        /// Data of host writes.
        Host: host,
        /// Data moved by garbage collection.
        Gc: gc,
        /// Data of cold blocks, migrated by wear leveling (`config.gc.wear`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Wear = 10: wear,
        /// Summaries of blocks.
        Summary = 2: summary,
        /// Padding: whole pages at the end of a wordline. `flash.units.unfilled` also has the padding inside pages.
        Padding: padding,
        /// Pages skipped so that a copy-back keeps the parity of its page.
        WasteCopyback: waste_copyback,
        /// Pages skipped so that planes could be programmed together.
        WasteAlignment: waste_alignment,
        /// Translation pages.
        Map: map,
        /// Data copied to keep the units of a logical block together.
        Merge: merge,
        /// Records of trims (`durability.trim_journal`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Journal: journal,
        /// Parts of the checkpoint (`durability.checkpoint`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Checkpoint: checkpoint,
        /// Data that folding moved out of the SLC cache (`config.slc_cache`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Fold = 11: fold,
        /// Parity of superblocks (`config.superblock.parity`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Parity: parity,
        /// Data of uncorrectable pages that were rebuilt from their stripe (`config.superblock.parity`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Rebuild: rebuild,
        /// Data moved to refresh their blocks (`config.errors.refresh`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Refresh: refresh,
    }
}

causes! {
    /// Cause of a page read.
    pub enum ReadCause,
    /// Pages read, by cause.
    pub struct ReadCauses {
        /// Host reads.
        Host: host,
        /// Valid data that garbage collection moves.
        Gc: gc,
        /// Data of cold blocks that wear leveling migrates (`config.gc.wear`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Wear = 5: wear,
        /// Data that partial writes keep (read-modify-write).
        Rmw = 2: rmw,
        /// Translation pages.
        Map: map,
        /// Data copied to keep the units of a logical block together.
        Merge: merge,
        /// Data that folding moves out of the SLC cache (`config.slc_cache`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Fold = 6: fold,
        /// Data that the host had not requested yet (`config.buffer.read_ahead`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Ahead = 7: ahead,
        /// Other pages of the stripe of an uncorrectable page (`config.superblock.parity`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Rebuild: rebuild,
        /// Data moved to refresh their blocks (`config.errors.refresh`).
        #[serde(default, skip_serializing_if = "is_zero")]
        Refresh: refresh,
    }
}

/// Cause of an erase: that for which the units of the block were moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum EraseCause {
    /// Garbage collection, also of blocks with failed programs.
    Gc,
    /// Wear leveling.
    Wear,
    /// Merges of logical blocks.
    Merge,
    /// Folding.
    Fold,
    /// Refresh.
    Refresh,
    /// Garbage collection of translation pages.
    Map,
}

impl EraseCause {
    /// Number of causes.
    pub const COUNT: usize = EraseCause::Map as usize + 1;
}

causes! {
    /// Kind of merge of the two blocks of a logical block (Gupta et al., ASPLOS 2009, Section 2).
    pub enum MergeKind,
    /// Merges of logical blocks, by kind; all 0 unless a mapping scheme merges.
    pub struct Merges {
        /// Switch merges, which copied nothing: the host had rewritten or trimmed everything.
        Switch: switch,
        /// Partial merges: the host wrote the first part of the new block, and the rest was copied.
        Partial: partial,
        /// Full merges: host writes followed copies, or all units were copied into a free block.
        Full: full,
    }
}

/// Returns the ratio, or `None` if the divisor is 0.
pub(super) fn ratio(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}

/// Returns `true` if a count is left out of a result.
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Cause of a copied unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CopyCause {
    /// Garbage collection reclaims the block of the unit.
    #[default]
    Gc,
    /// Wear leveling migrates the block of the unit.
    Wear,
    /// A program in the block of the unit has failed.
    FailedBlock,
    /// Logical blocks are merged.
    Merge,
    /// Folding moves the unit out of the SLC cache.
    Fold,
    /// The page of the unit was uncorrectable, and was rebuilt from its stripe.
    Rebuild,
    /// The block of the unit is refreshed.
    Refresh,
    /// Like `Gc`, of a block that was chosen in idle time. Its units count among those of `Gc`.
    Background,
}

impl CopyCause {
    /// Number of causes that are counted apart.
    pub const COUNT: usize = CopyCause::Refresh as usize + 1;
}

/// Cause of the read or program of a translation page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum MapCause {
    /// Miss: an entry that is not in the cache is needed.
    Miss,
    /// Eviction of a dirty entry, or a dirty entry for which the cache has no room.
    Eviction,
    /// Garbage collection moved units whose entries are in the page.
    Gc,
    /// The block of the page is being reclaimed.
    MapGc,
    /// Functional writes have changed the page.
    Functional,
}

impl MapCause {
    /// Number of causes.
    pub const COUNT: usize = 5;
}

counters! {
    /// Counters of a map that is in flash.
    pub struct MapCounters {
        /// Map entries needed by the host that were in the cache.
        hits: u64 => _, map_hits;
        /// Map entries needed by the host that were not in the cache.
        misses: u64 => _, map_misses;
        /// Clean entries that were evicted.
        evictions_clean: u64;
        /// Dirty entries that were evicted.
        evictions_dirty: u64;
        /// Translation pages read, by [`MapCause`].
        reads: [u64; MapCause::COUNT];
        /// Translation pages programmed, by [`MapCause`].
        programs: [u64; MapCause::COUNT];
        /// Mapping units that invalidated versions of translation pages occupied.
        units_invalidated: u64;
        /// Blocks of translation pages chosen as victims.
        victims: u64;
    }
}

counters! {
    /// Counters of a data class.
    pub struct ClassCounts {
        /// Units that were written.
        units_written: u64;
        /// Units that garbage collection moved, by the class of their last write.
        units_moved: u64;
        /// Units that went to a block of another class, because no block was free for their own.
        units_elsewhere: u64;
    }
}

counters! {
    /// Units that were programmed in a pool in timed mode, since the device was created.
    pub struct PoolUnits {
        /// Units of host writes, including those of the device itself (journal, checkpoint).
        written: u64;
        /// Copied units: of garbage collection, wear leveling, and blocks whose programs failed.
        moved: u64;
    }
}

counters! {
    /// Counters of faults.
    pub struct FaultCounts {
        /// Programs that failed.
        programs_failed: u64 => _, programs_failed;
        /// Erases that failed.
        erases_failed: u64 => _, erases_failed;
        /// Uncorrectable page reads: for the host, for garbage collection, for partial writes.
        uncorrectable: [u64; 3];
        /// Units with data whose program failed.
        units_failed: u64;
        /// Units of the host that were valid when they became unreadable.
        units_lost: u64;
        /// Blocks that became bad because a program or an erase failed.
        blocks_grown_bad: u64;
    }
}

impl FaultCounts {
    /// Causes that `uncorrectable` distinguishes.
    pub const READS: [ReadCause; 3] = [ReadCause::Host, ReadCause::Gc, ReadCause::Rmw];

    /// Counts an uncorrectable read.
    pub fn note_uncorrectable(&mut self, cause: ReadCause) {
        if let Some(index) = FaultCounts::READS.iter().position(|known| *known == cause) {
            self.uncorrectable[index] += 1;
        }
    }
}

counters! {
    /// Counters of page reads whose data were decoded.
    pub struct ErrorCounts {
        /// Reads with correct data, by the number of retries.
        corrected: [u64; MAX_RETRIES as usize + 1];
        /// Reads that were uncorrectable after the last retry.
        uncorrectable: u64;
        /// Retries.
        retries: u64 => _, read_retries;
        /// Blocks whose data were moved to refresh them.
        refreshed: u64 => _, blocks_refreshed;
    }
}

impl ErrorCounts {
    /// Returns the mean number of retries of a read, or `None` without reads.
    pub fn retries_mean(&self) -> Option<f64> {
        ratio(self.retries, self.corrected.iter().sum::<u64>() + self.uncorrectable)
    }
}

/// Maximum number of kinds of log blocks.
pub const STREAMS: usize = 3;

counters! {
    /// Counters of log blocks.
    pub struct LogCounts {
        /// Units that the host wrote to each kind of log block.
        units: [u64; STREAMS];
        /// Log blocks that merges reclaimed.
        reclaimed: u64 => logs_reclaimed, _;
        /// Logical blocks that had valid units in them, summed over the log blocks.
        logical_blocks: u64;
        /// Units that merges did not copy because they were trimmed.
        copies_saved: u64;
    }
}

impl LogCounts {
    /// Counts a log block that is reclaimed, with the number of logical blocks that have valid units in it.
    pub fn note_reclaimed(&mut self, logical_blocks: u64) {
        self.reclaimed += 1;
        self.logical_blocks += logical_blocks;
    }

    /// Returns the mean number of logical blocks with valid units in a log block when it was reclaimed, or `None` if
    /// none was.
    pub fn associativity(&self) -> Option<f64> {
        ratio(self.logical_blocks, self.reclaimed)
    }
}

counters! {
    /// Counters of garbage collection in idle time.
    pub struct BackgroundCounts {
        /// Victims chosen in idle time, which [`Counters::victims`] includes.
        victims: u64;
        /// Units moved out of them, which [`Counters::moved`] includes.
        units_moved: u64;
    }
}

counters! {
    /// Pages of blocks in SLC mode, without translation pages.
    pub struct SlcCounts {
        /// Pages read, by cause.
        pages_read: [u64; ReadCause::ALL.len()];
        /// Pages programmed, by cause.
        pages_programmed: [u64; ProgramCause::ALL.len()];
        /// Mapping units written to the SLC cache, with data.
        cache_units: u64 => cache_units, cache_units;
        /// Blocks of the SLC cache that folding has chosen.
        folded: u64 => blocks_folded, blocks_folded;
        /// Part of them in idle time.
        folded_idle: u64;
    }
}

/// Replaces the first of several counts by their sum, and the others by 0.
fn sum_up(counts: &mut [u64]) -> &mut u64 {
    let sum = counts.iter().sum();
    counts.fill(0);
    counts[0] = sum;
    &mut counts[0]
}

/// Positions of the counts of folding, of parity, of rebuilds, of refresh and of reads ahead among all counts. Saved
/// states have them elsewhere, because most devices have none of them.
const ELSEWHERE: [usize; 11] = {
    let (programs, reads) = (ProgramCause::ALL.len(), ReadCause::ALL.len());
    [
        ProgramCause::Fold as usize,
        ProgramCause::Parity as usize,
        ProgramCause::Rebuild as usize,
        ProgramCause::Refresh as usize,
        programs + ReadCause::Fold as usize,
        programs + ReadCause::Ahead as usize,
        programs + ReadCause::Rebuild as usize,
        programs + ReadCause::Refresh as usize,
        programs + reads + CopyCause::Fold as usize,
        programs + reads + CopyCause::Rebuild as usize,
        programs + reads + CopyCause::Refresh as usize,
    ]
};

counters! {
    /// Counters of the device while it serves requests.
    pub struct Counters {
        /// Pages programmed or skipped, by cause.
        pages_programmed: [u64; ProgramCause::ALL.len()], by ProgramCause => pages_programmed, _;
        /// Pages read, by cause.
        pages_read: [u64; ReadCause::ALL.len()], by ReadCause => pages_read, _;
        /// Units moved, by [`CopyCause`].
        moved: [u64; CopyCause::COUNT];
        /// Merges of the two blocks of a logical block, by kind.
        merges: [u64; MergeKind::ALL.len()], by MergeKind => merges, _;
        /// Counters of a map that is in flash.
        map: MapCounters;
        /// Blocks erased.
        blocks_erased: u64 => erases, blocks_erased;
        /// Read commands.
        read_commands: u64;
        /// Program commands.
        program_commands: u64;
        /// Pages moved within their plane by copy-back.
        copy_backs: u64 => _, copy_backs;
        /// Mapping units touched by accepted host writes.
        host_units: u64 => host_units, _;
        /// Bytes of accepted host writes.
        host_bytes: u64;
        /// Mapping units programmed with data, from the host or moved.
        units_programmed: u64;
        /// Mapping units programmed without data, to fill a page or a wordline.
        units_padded: u64;
        /// Program units queued before they were full, because a FLUSH or FUA waited for them.
        units_cut_by_flush: u64;
        /// Program units queued before they were full, because of `controller.fill_timeout`.
        units_cut_by_timeout: u64;
        /// Units invalidated by a host write.
        units_invalidated: u64;
        /// Mapping units that the host trimmed.
        units_trimmed: u64 => _, units_trimmed;
        /// Wasted copies: they were invalidated before their program completed, and so never became valid.
        wasted_copies: u64;
        /// Reads of units without data, which the controller completes.
        unmapped_reads: u64;
        /// Reads of units whose write is in flight, which the controller completes.
        slot_reads: u64;
        /// Written units whose valid sectors were all replaced.
        updates_covered: u64;
        /// Written units that kept some valid sectors.
        updates_uncovered: u64;
        /// Written units that had no valid sector.
        updates_first: u64;
        /// Victims that garbage collection has chosen.
        victims: u64 => victims, gc_victims;
        /// Valid units in the victims when they were chosen.
        victim_valid_units: u64;
        /// Free blocks of the plane, including blocks that await or undergo an erase, summed over the choices of a
        /// victim.
        free_blocks_at_choice: u64;
        /// Unwritten units in the plane's open blocks, summed over the choices of a victim.
        open_units_at_choice: u64;
        /// Mapping units of accepted host writes that failed because the device became read-only.
        units_unwritten: u64;
        /// Bytes of these writes.
        bytes_unwritten: u64;
        /// Cold blocks whose data wear leveling has moved into worn blocks.
        migrations: u64;
        /// Mapping units that writes did not touch and that were written again, because of their logical page. Saved
        /// states include neither this nor the following counters.
        units_rewritten: u64;
        /// Counters of garbage collection in idle time.
        background: BackgroundCounts;
        /// Counters of log blocks.
        log_blocks: LogCounts;
        /// Counters of faults. Saved states have them elsewhere.
        faults: FaultCounts;
        /// Pages of blocks in SLC mode. Saved states do not include them.
        slc: SlcCounts;
        /// Counters of read errors. Saved states do not include them.
        errors: ErrorCounts;
        /// Uncorrectable page reads whose data were rebuilt from their stripe. Saved states do not include them.
        rebuilt: u64;
        /// Blocks erased, by cause. Saved states have only their sum.
        erases: [u64; EraseCause::COUNT];
    }
}

impl Counters {
    /// Returns the counts that saved states include, in a fixed order. [`Counters::of_saved`] reads them.
    pub fn saved(&self) -> Vec<u64> {
        let Counters { units_rewritten, background, log_blocks, faults, slc, errors, rebuilt, erases, .. } = self;
        let left_out = [
            units_rewritten.values(),
            background.values(),
            log_blocks.values(),
            faults.values(),
            slc.values(),
            errors.values(),
            rebuilt.values(),
            erases.values(),
        ];
        let mut values = self.values();
        values.truncate(values.len() - left_out.concat().len());
        // Reads ahead are reads for the host. Rebuilt and refreshed units are moved.
        let (programs, reads) = (ProgramCause::ALL.len(), ReadCause::ALL.len());
        values[programs + ReadCause::Host as usize] += self.pages_read[ReadCause::Ahead as usize];
        for cause in [ProgramCause::Rebuild, ProgramCause::Refresh] {
            values[ProgramCause::Gc as usize] += self.pages_programmed[cause as usize];
        }
        for cause in [ReadCause::Rebuild, ReadCause::Refresh] {
            values[programs + ReadCause::Gc as usize] += self.pages_read[cause as usize];
        }
        for cause in [CopyCause::Rebuild, CopyCause::Refresh] {
            values[programs + reads + CopyCause::Gc as usize] += self.moved[cause as usize];
        }
        for position in ELSEWHERE.into_iter().rev() {
            values.remove(position);
        }
        values
    }

    /// Returns the mapping units that pages of a cause take, whatever they hold: `per_page`, each of `pages` pages.
    pub fn units_of(&self, cause: ProgramCause, per_page: u32, pages: u32) -> u64 {
        self.pages_programmed[cause as usize] * u64::from(per_page) / u64::from(pages)
    }

    /// Creates counters from the counts of [`Counters::saved`]. The others are 0.
    pub fn of_saved(saved: &[u64]) -> Counters {
        let mut values = saved.to_vec();
        for position in ELSEWHERE {
            values.insert(position, 0);
        }
        Counters::of_values(&values)
    }

    /// Returns the counts of folding, which states of devices with an SLC cache include. Pages in SLC mode count as
    /// those of the host there.
    pub fn of_folding(&mut self) -> Vec<&mut u64> {
        let SlcCounts { pages_read, pages_programmed, cache_units, folded, folded_idle } = &mut self.slc;
        let [pages_read, pages_programmed] = [&mut pages_read[..], &mut pages_programmed[..]].map(sum_up);
        vec![
            &mut self.pages_programmed[ProgramCause::Fold as usize],
            &mut self.pages_read[ReadCause::Fold as usize],
            &mut self.moved[CopyCause::Fold as usize],
            pages_read,
            pages_programmed,
            cache_units,
            folded,
            folded_idle,
        ]
    }

    /// Counts an erase of a block.
    pub fn note_erase(&mut self, cause: EraseCause) {
        self.blocks_erased += 1;
        self.erases[cause as usize] += 1;
    }

    /// Returns the data moved, in flash pages.
    pub fn pages_moved(&self, config: &DeviceConfig) -> f64 {
        (self.units_moved() * u64::from(config.pages_per_unit())) as f64 / f64::from(config.units_per_page())
    }

    /// Returns the share of the victims' units that did not have to be moved, or `None` without victims.
    pub fn efficiency(&self, config: &DeviceConfig) -> Option<f64> {
        let units = self.victims * u64::from(config.data_units_per_block());
        ratio(units.saturating_sub(self.victim_valid_units), units)
    }

    /// Returns the number of units moved, for any cause.
    pub fn units_moved(&self) -> u64 {
        self.moved.iter().sum()
    }

    /// Returns a number that increases with each change of the units in flash.
    pub fn changes_of_blocks(&self) -> u64 {
        self.units_programmed + self.units_padded + self.units_invalidated + self.units_trimmed + self.blocks_erased
    }

    /// Returns the number of pages programmed, for any cause.
    pub fn pages_programmed_total(&self) -> u64 {
        self.pages_programmed.iter().sum()
    }

    /// Returns the number of pages read, for any cause.
    pub fn pages_read_total(&self) -> u64 {
        self.pages_read.iter().sum()
    }
}

counters! {
    /// Counters of the buffer; all 0 without one.
    pub struct BufferCounts {
        /// Mapping units of reads with all requested sectors in the buffer.
        reads_hit: u64 => buffer_reads_hit, _;
        /// Mapping units of reads with some requested sectors in the buffer.
        reads_partial: u64 => buffer_reads_partial, _;
        /// Mapping units of reads with no requested sector in the buffer.
        reads_miss: u64 => buffer_reads_miss, _;
        /// Mapping units of writes that the buffer held.
        writes_hit: u64 => buffer_writes_hit, _;
        /// Mapping units of writes that the buffer did not hold.
        writes_new: u64 => buffer_writes_new, _;
        /// Written units whose completion did not wait for flash.
        writes_back: u64;
        /// Units that reads added to the buffer.
        fills: u64;
        /// Units read ahead.
        ahead: u64;
        /// Mapping units of reads that were served from data read ahead, or waited for it.
        ahead_used: u64;
        /// Units evicted: for a write, for the water marks, for a read.
        evictions: [u64; 3];
        /// Evicted units that were clean.
        evicted_clean: u64;
        /// Units dropped because the host deallocated them.
        dropped: u64;
        /// Mapping units written from the buffer to flash, including padding.
        written_back: u64 => buffer_written_back, _;
        /// Part of `written_back` that filled the program of another unit.
        companions: u64;
        /// Part of `written_back` that was read from flash to complete a block.
        padding: u64;
        /// Flushes that had to wait.
        flushes_waited: u64;
        /// Units of FUA writes that had to wait.
        fua_waited: u64;
    }
}
