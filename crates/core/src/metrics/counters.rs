//! Counters: plain fields, so that counting takes one addition.

use std::cell::{Cell, RefCell};

use serde::Serialize;

/// Cause of a programmed page. Each programmed page has exactly one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ProgramCause {
    /// Data of a host write.
    Host,
    /// Data moved by garbage collection.
    Gc,
    /// Summary of a block.
    Summary,
    /// Padding: the rest of a wordline.
    Padding,
    /// Page skipped so that a copy-back keeps the parity of its page (Hu et al. 2011, restriction *b*).
    WasteCopyback,
    /// Page skipped so that planes could be programmed together (restriction *c*).
    WasteAlignment,
    /// Translation page.
    Map,
    /// Data copied to keep the units of a logical block together.
    Merge,
    /// Records of trims (`durability.trim_journal`).
    Journal,
    /// Part of the checkpoint (`durability.checkpoint`).
    Checkpoint,
    /// Data of a cold block, migrated by wear leveling (`gc.wear`).
    Wear,
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
    /// Like `Gc`, of a block that was chosen in idle time. Its units count among those of `Gc`.
    Background,
}

impl CopyCause {
    /// Number of causes that are counted apart.
    pub const COUNT: usize = CopyCause::Merge as usize + 1;
}

impl ProgramCause {
    /// All causes, with their names in results.
    pub const ALL: [(ProgramCause, &str); 11] = [
        (ProgramCause::Host, "host"),
        (ProgramCause::Gc, "gc"),
        (ProgramCause::Summary, "summary"),
        (ProgramCause::Padding, "padding"),
        (ProgramCause::WasteCopyback, "waste_copyback"),
        (ProgramCause::WasteAlignment, "waste_alignment"),
        (ProgramCause::Map, "map"),
        (ProgramCause::Merge, "merge"),
        (ProgramCause::Journal, "journal"),
        (ProgramCause::Checkpoint, "checkpoint"),
        (ProgramCause::Wear, "wear"),
    ];
}

/// Cause of a page read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ReadCause {
    /// Host read.
    Host,
    /// Move of valid data by garbage collection.
    Gc,
    /// Completion of a partial write.
    Rmw,
    /// Translation page.
    Map,
    /// Copy that keeps the units of a logical block together.
    Merge,
    /// Migration of a cold block by wear leveling (`gc.wear`).
    Wear,
}

impl ReadCause {
    /// All causes, with their names in results.
    pub const ALL: [(ReadCause, &str); 6] = [
        (ReadCause::Host, "host"),
        (ReadCause::Gc, "gc"),
        (ReadCause::Rmw, "rmw"),
        (ReadCause::Map, "map"),
        (ReadCause::Merge, "merge"),
        (ReadCause::Wear, "wear"),
    ];
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

/// Counters of a map that is in flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MapCounters {
    /// Number of entries needed by the host that were in the cache.
    pub hits: u64,
    /// Number of entries needed by the host that were not in the cache.
    pub misses: u64,
    /// Number of clean entries evicted.
    pub evictions_clean: u64,
    /// Number of dirty entries evicted.
    pub evictions_dirty: u64,
    /// Number of translation pages read, by [`MapCause`].
    pub reads: [u64; MapCause::COUNT],
    /// Number of translation pages programmed, by [`MapCause`].
    pub programs: [u64; MapCause::COUNT],
    /// Number of mapping units that invalidated versions of translation pages occupied.
    pub units_invalidated: u64,
    /// Number of blocks of translation pages chosen as victims.
    pub victims: u64,
}

impl MapCounters {
    /// Combines each counter with that of `other`.
    fn with(&self, other: &MapCounters, together: &impl Fn(u64, u64) -> u64) -> MapCounters {
        MapCounters {
            hits: together(self.hits, other.hits),
            misses: together(self.misses, other.misses),
            evictions_clean: together(self.evictions_clean, other.evictions_clean),
            evictions_dirty: together(self.evictions_dirty, other.evictions_dirty),
            reads: std::array::from_fn(|i| together(self.reads[i], other.reads[i])),
            programs: std::array::from_fn(|i| together(self.programs[i], other.programs[i])),
            units_invalidated: together(self.units_invalidated, other.units_invalidated),
            victims: together(self.victims, other.victims),
        }
    }
}

/// Counters of a data class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Number of units that were written.
    pub units_written: u64,
    /// Number of units that garbage collection moved, by the class of their last write.
    pub units_moved: u64,
    /// Number of units that went to a block of another class, because no block was free for their own.
    pub units_elsewhere: u64,
}

impl ClassCounts {
    /// Returns the counts since `earlier`.
    pub fn since(&self, earlier: &ClassCounts) -> ClassCounts {
        ClassCounts {
            units_written: self.units_written - earlier.units_written,
            units_moved: self.units_moved - earlier.units_moved,
            units_elsewhere: self.units_elsewhere - earlier.units_elsewhere,
        }
    }
}

/// Units that were programmed in a pool in timed mode, since the device was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUnits {
    /// Number of units of host writes, including those of the device itself (journal, checkpoint).
    pub written: u64,
    /// Number of copied units: of garbage collection, wear leveling, and blocks whose programs failed.
    pub moved: u64,
}

impl PoolUnits {
    /// Returns the units since `earlier`.
    pub fn since(self, earlier: &PoolUnits) -> PoolUnits {
        PoolUnits { written: self.written - earlier.written, moved: self.moved - earlier.moved }
    }
}

/// Counters of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultCounts {
    /// Number of programs that failed.
    pub programs_failed: u64,
    /// Number of erases that failed.
    pub erases_failed: u64,
    /// Number of uncorrectable page reads: for the host, for garbage collection, for partial writes.
    pub uncorrectable: [u64; 3],
    /// Number of units with data whose program failed.
    pub units_failed: u64,
    /// Number of units of the host that were valid when they became unreadable.
    pub units_lost: u64,
    /// Number of blocks that became bad because a program or an erase failed.
    pub blocks_grown_bad: u64,
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

    /// Returns all counts, in a fixed order.
    pub fn values(&self) -> [u64; 8] {
        let [host, gc, rmw] = self.uncorrectable;
        let FaultCounts { programs_failed, erases_failed, units_failed, units_lost, blocks_grown_bad, .. } = *self;
        [programs_failed, erases_failed, host, gc, rmw, units_failed, units_lost, blocks_grown_bad]
    }

    /// Creates counters from the counts of [`FaultCounts::values`].
    pub fn of_values(values: [u64; 8]) -> FaultCounts {
        let [programs_failed, erases_failed, host, gc, rmw, units_failed, units_lost, blocks_grown_bad] = values;
        let uncorrectable = [host, gc, rmw];
        FaultCounts { programs_failed, erases_failed, uncorrectable, units_failed, units_lost, blocks_grown_bad }
    }

    fn with(&self, other: &FaultCounts, together: impl Fn(u64, u64) -> u64) -> FaultCounts {
        let (own, other) = (self.values(), other.values());
        FaultCounts::of_values(std::array::from_fn(|index| together(own[index], other[index])))
    }
}

/// Kind of merge of the two blocks of a logical block (Gupta et al., ASPLOS 2009, Section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeKind {
    /// Switch merge: nothing was copied, since the host had rewritten or trimmed everything.
    Switch,
    /// Partial merge: the host wrote the first part of the new block, and the rest was copied.
    Partial,
    /// Full merge: host writes followed copies.
    Full,
}

impl MergeKind {
    /// All kinds, with their names.
    pub const ALL: [(MergeKind, &'static str); 3] =
        [(MergeKind::Switch, "switch"), (MergeKind::Partial, "partial"), (MergeKind::Full, "full")];
}

/// Counters of the device while it serves requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Number of pages programmed, by [`ProgramCause`].
    pub pages_programmed: [u64; ProgramCause::ALL.len()],
    /// Number of pages read, by [`ReadCause`].
    pub pages_read: [u64; ReadCause::ALL.len()],
    /// Number of blocks erased.
    pub blocks_erased: u64,
    /// Number of read commands.
    pub read_commands: u64,
    /// Number of program commands.
    pub program_commands: u64,
    /// Number of pages moved within their plane by copy-back.
    pub copy_backs: u64,
    /// Number of mapping units touched by accepted host writes.
    pub host_units: u64,
    /// Bytes of accepted host writes.
    pub host_bytes: u64,
    /// Number of mapping units programmed with data, from the host or moved.
    pub units_programmed: u64,
    /// Number of mapping units programmed without data, to fill a page or a wordline.
    pub units_padded: u64,
    /// Number of program units queued before they were full, because a FLUSH or FUA waited for them.
    pub units_cut_by_flush: u64,
    /// Number of program units queued before they were full, because of `controller.fill_timeout`.
    pub units_cut_by_timeout: u64,
    /// Number of units invalidated by a host write.
    pub units_invalidated: u64,
    /// Number of units trimmed.
    pub units_trimmed: u64,
    /// Number of units moved, by [`CopyCause`].
    pub moved: [u64; CopyCause::COUNT],
    /// Number of wasted copies: they were invalidated before their program completed, and so never became valid.
    pub wasted_copies: u64,
    /// Number of reads of units without data, which the controller completes.
    pub unmapped_reads: u64,
    /// Number of reads of units whose write is in flight, which the controller completes.
    pub slot_reads: u64,
    /// Number of written units whose valid sectors were all replaced.
    pub updates_covered: u64,
    /// Number of written units that kept some valid sectors.
    pub updates_uncovered: u64,
    /// Number of written units that had no valid sector.
    pub updates_first: u64,
    /// Number of victims chosen.
    pub victims: u64,
    /// Number of valid units in the victims when they were chosen.
    pub victim_valid_units: u64,
    /// Number of free blocks of the plane, including blocks that await or undergo an erase, summed over the choices of
    /// a victim.
    pub free_blocks_at_choice: u64,
    /// Number of unwritten units in the plane's open blocks, summed over the choices of a victim.
    pub open_units_at_choice: u64,
    /// Number of merges of the two blocks of a logical block, by [`MergeKind`].
    pub merges: [u64; MergeKind::ALL.len()],
    /// Number of mapping units of accepted host writes that failed because the device became read-only.
    pub units_unwritten: u64,
    /// Bytes of these writes.
    pub bytes_unwritten: u64,
    /// Number of cold blocks whose data wear leveling has moved into worn blocks.
    pub migrations: u64,
    /// Number of mapping units that writes did not touch and that were written again, because of their logical page.
    /// Not in saved states.
    pub units_rewritten: u64,
    /// Counters of a map that is in flash.
    pub map: MapCounters,
    /// Counters of faults.
    pub faults: FaultCounts,
    /// Counters of garbage collection in idle time. Saved states do not include them.
    pub background: BackgroundCounts,
    /// Counters of log blocks. Saved states do not include them.
    pub log_blocks: LogCounts,
}

/// Maximum number of kinds of log blocks.
pub const STREAMS: usize = 3;

/// Counters of log blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogCounts {
    /// Number of units that the host wrote to each kind of log block.
    pub units: [u64; STREAMS],
    /// Number of log blocks reclaimed.
    pub reclaimed: u64,
    /// Number of logical blocks that had valid units in them, summed over the log blocks.
    pub logical_blocks: u64,
    /// Number of units that merges did not copy because they were trimmed.
    pub copies_saved: u64,
}

impl LogCounts {
    fn with(&self, other: &LogCounts, together: impl Fn(u64, u64) -> u64) -> LogCounts {
        LogCounts {
            units: std::array::from_fn(|i| together(self.units[i], other.units[i])),
            reclaimed: together(self.reclaimed, other.reclaimed),
            logical_blocks: together(self.logical_blocks, other.logical_blocks),
            copies_saved: together(self.copies_saved, other.copies_saved),
        }
    }

    /// Counts a log block that is reclaimed, with the number of logical blocks that have valid units in it.
    pub fn note_reclaimed(&mut self, logical_blocks: u64) {
        self.reclaimed += 1;
        self.logical_blocks += logical_blocks;
    }

    /// Returns the mean number of logical blocks with valid units in a log block when it was reclaimed, or `None` if
    /// none was.
    pub fn associativity(&self) -> Option<f64> {
        (self.reclaimed > 0).then(|| self.logical_blocks as f64 / self.reclaimed as f64)
    }
}

/// Counters of garbage collection in idle time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackgroundCounts {
    /// Number of victims chosen in idle time, which [`Counters::victims`] includes.
    pub victims: u64,
    /// Number of units moved out of them, which [`Counters::moved`] includes.
    pub units_moved: u64,
}

impl BackgroundCounts {
    fn with(&self, other: &BackgroundCounts, together: impl Fn(u64, u64) -> u64) -> BackgroundCounts {
        BackgroundCounts {
            victims: together(self.victims, other.victims),
            units_moved: together(self.units_moved, other.units_moved),
        }
    }
}

impl Counters {
    /// Returns the counts since `earlier`.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let since = |now, before| now - before;
        let faults = self.faults.with(&earlier.faults, since);
        let background = self.background.with(&earlier.background, since);
        let log_blocks = self.log_blocks.with(&earlier.log_blocks, since);
        let units_rewritten = self.units_rewritten - earlier.units_rewritten;
        Counters { faults, background, log_blocks, units_rewritten, ..self.with(earlier, since) }
    }

    /// Returns the sums of both counts.
    pub fn plus(&self, other: &Counters) -> Counters {
        let plus = |a, b| a + b;
        let (faults, background) =
            (self.faults.with(&other.faults, plus), self.background.with(&other.background, plus));
        let log_blocks = self.log_blocks.with(&other.log_blocks, plus);
        let units_rewritten = self.units_rewritten + other.units_rewritten;
        Counters { faults, background, log_blocks, units_rewritten, ..self.with(other, plus) }
    }

    /// Combines each counter with that of `other`, except those of faults, of idle time, and of rewritten units.
    fn with(&self, other: &Counters, together: impl Fn(u64, u64) -> u64) -> Counters {
        macro_rules! together {
            ($($field:ident),+) => {
                Counters {
                    pages_programmed: std::array::from_fn(|i| {
                        together(self.pages_programmed[i], other.pages_programmed[i])
                    }),
                    pages_read: std::array::from_fn(|i| together(self.pages_read[i], other.pages_read[i])),
                    moved: std::array::from_fn(|i| together(self.moved[i], other.moved[i])),
                    merges: std::array::from_fn(|i| together(self.merges[i], other.merges[i])),
                    map: self.map.with(&other.map, &together),
                    faults: FaultCounts::default(),
                    units_rewritten: 0,
                    background: BackgroundCounts::default(),
                    log_blocks: LogCounts::default(),
                    $($field: together(self.$field, other.$field)),+
                }
            };
        }
        together!(
            blocks_erased,
            read_commands,
            program_commands,
            copy_backs,
            host_units,
            host_bytes,
            units_programmed,
            units_padded,
            units_cut_by_flush,
            units_cut_by_timeout,
            units_invalidated,
            units_trimmed,
            wasted_copies,
            unmapped_reads,
            slot_reads,
            updates_covered,
            updates_uncovered,
            updates_first,
            victims,
            victim_valid_units,
            free_blocks_at_choice,
            open_units_at_choice,
            units_unwritten,
            bytes_unwritten,
            migrations
        )
    }

    /// Returns all counts except those of faults and of idle time, in a fixed order.
    pub fn values(&self) -> Vec<u64> {
        let values = RefCell::new(Vec::new());
        self.with(self, |value, _| {
            values.borrow_mut().push(value);
            value
        });
        values.into_inner()
    }

    /// Creates counters from the counts of [`Counters::values`]. Missing counts are 0.
    pub fn of_values(values: &[u64]) -> Counters {
        let next = Cell::new(0);
        Counters::default().with(&Counters::default(), |_, _| {
            let index = next.replace(next.get() + 1);
            values.get(index).copied().unwrap_or_default()
        })
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

/// Counters of the buffer; all 0 without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounts {
    /// Number of read units with all requested sectors in the buffer.
    pub reads_hit: u64,
    /// Number of read units with some requested sectors in the buffer.
    pub reads_partial: u64,
    /// Number of read units with no requested sector in the buffer.
    pub reads_miss: u64,
    /// Number of written units that the buffer held.
    pub writes_hit: u64,
    /// Number of written units that the buffer did not hold.
    pub writes_new: u64,
    /// Number of written units whose completion did not wait for flash.
    pub writes_back: u64,
    /// Number of units that reads added to the buffer.
    pub fills: u64,
    /// Number of units evicted: for a write, for the water marks, for a read.
    pub evictions: [u64; 3],
    /// Number of evicted units that were clean.
    pub evicted_clean: u64,
    /// Number of units dropped because the host deallocated them.
    pub dropped: u64,
    /// Number of units written from the buffer to flash.
    pub written_back: u64,
    /// Number of these units that were written to fill the program of another unit.
    pub companions: u64,
    /// Number of these units that were read from flash to complete a block.
    pub padding: u64,
    /// Number of flushes that had to wait.
    pub flushes_waited: u64,
    /// Number of units of FUA writes that had to wait.
    pub fua_waited: u64,
}

impl BufferCounts {
    /// Returns the counts since `earlier`.
    pub fn since(&self, earlier: &BufferCounts) -> BufferCounts {
        self.with(earlier, |now, before| now - before)
    }

    /// Returns the sums of both counts.
    pub fn plus(&self, other: &BufferCounts) -> BufferCounts {
        self.with(other, |one, other| one + other)
    }

    fn with(&self, other: &BufferCounts, of: impl Fn(u64, u64) -> u64) -> BufferCounts {
        macro_rules! with {
            ($($field:ident),+) => {
                BufferCounts {
                    evictions: std::array::from_fn(|why| of(self.evictions[why], other.evictions[why])),
                    $($field: of(self.$field, other.$field)),+
                }
            };
        }
        with!(
            reads_hit,
            reads_partial,
            reads_miss,
            writes_hit,
            writes_new,
            writes_back,
            fills,
            evicted_clean,
            dropped,
            written_back,
            companions,
            padding,
            flushes_waited,
            fua_waited
        )
    }
}
