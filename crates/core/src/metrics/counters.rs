//! Counters: plain fields, so that counting costs an addition.

use std::cell::{Cell, RefCell};

use serde::Serialize;

/// Why a page was programmed. Each programmed page has exactly one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ProgramCause {
    /// It holds data that the host wrote.
    Host,
    /// It holds data that cleaning moved.
    Gc,
    /// It holds the summary of its block.
    Summary,
    /// It holds nothing: the rest of a wordline.
    Padding,
    /// It was skipped so that a copy-back keeps the parity of its page (Hu et al. 2011, restriction *b*).
    WasteCopyback,
    /// It was skipped so that planes could be programmed together (restriction *c*).
    WasteAlignment,
    /// It holds a part of the map.
    Map,
    /// It holds data copied to keep the units of a logical block together.
    Merge,
    /// It holds records of trims (`durability.trim_journal`).
    Journal,
    /// It holds a part of the checkpoint (`durability.checkpoint`).
    Checkpoint,
}

/// Why a unit is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CopyCause {
    /// Garbage collection gains the invalid units of its block.
    #[default]
    Gc,
    /// Wear leveling migrates its block.
    Wear,
    /// A program of its block has failed.
    FailedBlock,
    /// Logical blocks are merged.
    Merge,
}

impl CopyCause {
    /// Number of causes.
    pub const COUNT: usize = CopyCause::Merge as usize + 1;
}

impl ProgramCause {
    /// All causes, with the names that results have for them.
    pub const ALL: [(ProgramCause, &str); 10] = [
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
    ];
}

/// Why a page was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ReadCause {
    /// For a host read.
    Host,
    /// To move what is valid.
    Gc,
    /// To complete a partial write.
    Rmw,
    /// For a part of the map.
    Map,
    /// To keep the units of a logical block together.
    Merge,
}

/// Why a translation page was read or programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum MapCause {
    /// An entry was needed that is not in the cache.
    Miss,
    /// A changed entry left the cache, or found no room in it.
    Eviction,
    /// Cleaning moved units whose entries are in it.
    Gc,
    /// It stood in a block that was reclaimed.
    MapGc,
    /// Functional writes had changed it.
    Functional,
}

impl MapCause {
    /// How many there are.
    pub const COUNT: usize = 5;
}

/// What is counted where the map is in flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MapCounters {
    /// Entries needed by the host that were in the cache.
    pub hits: u64,
    /// Entries needed by the host that were not.
    pub misses: u64,
    /// Entries evicted that were as in flash.
    pub evictions_clean: u64,
    /// Entries evicted that were newer.
    pub evictions_dirty: u64,
    /// Translation pages read, by [`MapCause`].
    pub reads: [u64; MapCause::COUNT],
    /// Translation pages programmed, by [`MapCause`].
    pub programs: [u64; MapCause::COUNT],
    /// Mapping units of room that superseded versions of translation pages took.
    pub units_invalidated: u64,
    /// Blocks of translation pages chosen to be reclaimed.
    pub victims: u64,
}

impl MapCounters {
    /// Each count of both, put together.
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

/// What is counted of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Units that were written.
    pub units_written: u64,
    /// Units that cleaning moved, by the class of their last write.
    pub units_moved: u64,
    /// Units that went to a block of another class, because no block was free for their own.
    pub units_elsewhere: u64,
}

impl ClassCounts {
    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &ClassCounts) -> ClassCounts {
        ClassCounts {
            units_written: self.units_written - earlier.units_written,
            units_moved: self.units_moved - earlier.units_moved,
            units_elsewhere: self.units_elsewhere - earlier.units_elsewhere,
        }
    }
}

/// What is counted where something fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultCounts {
    /// Programs that failed.
    pub programs_failed: u64,
    /// Erases that failed.
    pub erases_failed: u64,
    /// Reads of pages that brought something that could not be corrected: for the host, for cleaning, for partial
    /// writes.
    pub uncorrectable: [u64; 3],
    /// Units with data whose program failed.
    pub units_failed: u64,
    /// Units of the host that could not be read any more when they were last valid.
    pub units_lost: u64,
    /// Blocks of which a program or an erase has failed.
    pub blocks_grown_bad: u64,
}

impl FaultCounts {
    /// The reads that are told apart in `uncorrectable`.
    pub const READS: [ReadCause; 3] = [ReadCause::Host, ReadCause::Gc, ReadCause::Rmw];

    /// Counts a read that brought something that could not be corrected.
    pub fn note_uncorrectable(&mut self, cause: ReadCause) {
        if let Some(index) = FaultCounts::READS.iter().position(|known| *known == cause) {
            self.uncorrectable[index] += 1;
        }
    }

    /// All counts, in an order that does not change.
    pub fn values(&self) -> [u64; 8] {
        let [host, gc, rmw] = self.uncorrectable;
        let FaultCounts { programs_failed, erases_failed, units_failed, units_lost, blocks_grown_bad, .. } = *self;
        [programs_failed, erases_failed, host, gc, rmw, units_failed, units_lost, blocks_grown_bad]
    }

    /// The counts of [`FaultCounts::values`].
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

/// How two blocks of a logical block became one (Gupta et al., ASPLOS 2009, Section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeKind {
    /// Nothing was copied: the host had written all again, or trimmed it.
    Switch,
    /// The host wrote a first part of the new block, and the rest was copied.
    Partial,
    /// Writes of the host came behind copies.
    Full,
}

impl MergeKind {
    /// All kinds, with their names.
    pub const ALL: [(MergeKind, &'static str); 3] =
        [(MergeKind::Switch, "switch"), (MergeKind::Partial, "partial"), (MergeKind::Full, "full")];
}

/// Everything that is counted while requests are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Pages programmed, by [`ProgramCause`].
    pub pages_programmed: [u64; ProgramCause::ALL.len()],
    /// Pages read, by [`ReadCause`].
    pub pages_read: [u64; 5],
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Read commands.
    pub read_commands: u64,
    /// Program commands.
    pub program_commands: u64,
    /// Pages moved within their plane by copy-back.
    pub copy_backs: u64,
    /// Mapping units touched by accepted host writes.
    pub host_units: u64,
    /// Bytes of accepted host writes.
    pub host_bytes: u64,
    /// Mapping units programmed with data, the host's or moved.
    pub units_programmed: u64,
    /// Mapping units programmed without data, to fill a page or a wordline.
    pub units_padded: u64,
    /// Program units handed over before they were full, because a FLUSH or FUA waited for them.
    pub units_cut_by_flush: u64,
    /// Program units handed over before they were full, because of `controller.fill_timeout`.
    pub units_cut_by_timeout: u64,
    /// Units that were superseded by a host write.
    pub units_invalidated: u64,
    /// Units that were trimmed.
    pub units_trimmed: u64,
    /// Units that were moved, by [`CopyCause`].
    pub moved: [u64; CopyCause::COUNT],
    /// Copies that were superseded while they were on their way, and so never valid.
    pub wasted_copies: u64,
    /// Reads of never-written units, answered by the controller.
    pub unmapped_reads: u64,
    /// Reads of units whose write is on its way, answered by the controller.
    pub slot_reads: u64,
    /// Unit writes that replaced all valid sectors.
    pub updates_covered: u64,
    /// Unit writes that had to keep some valid sectors.
    pub updates_uncovered: u64,
    /// Unit writes that found no valid sector.
    pub updates_first: u64,
    /// Victims chosen.
    pub victims: u64,
    /// Valid units of the victims when chosen.
    pub victim_valid_units: u64,
    /// Free blocks of the plane, those that wait for their erase or are being erased included, summed over the choices
    /// of a victim.
    pub free_blocks_at_choice: u64,
    /// Unwritten units of the plane's open blocks, summed over the choices of a victim.
    pub open_units_at_choice: u64,
    /// Logical blocks whose two blocks became one, by [`MergeKind`].
    pub merges: [u64; MergeKind::ALL.len()],
    /// Mapping units of accepted host writes that failed because the device became read-only.
    pub units_unwritten: u64,
    /// Bytes of these writes.
    pub bytes_unwritten: u64,
    /// Where the map is in flash.
    pub map: MapCounters,
    /// Where something fails.
    pub faults: FaultCounts,
}

impl Counters {
    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let faults = self.faults.with(&earlier.faults, |now, before| now - before);
        Counters { faults, ..self.with(earlier, |now, before| now - before) }
    }

    /// What was counted here and there.
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters { faults: self.faults.with(&other.faults, |a, b| a + b), ..self.with(other, |a, b| a + b) }
    }

    /// Each count of both, put together, but those of what fails.
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
            bytes_unwritten
        )
    }

    /// All counts but those of what fails, in an order that does not change.
    pub fn values(&self) -> Vec<u64> {
        let values = RefCell::new(Vec::new());
        self.with(self, |value, _| {
            values.borrow_mut().push(value);
            value
        });
        values.into_inner()
    }

    /// The counts of [`Counters::values`]; those that are missing are 0.
    pub fn of_values(values: &[u64]) -> Counters {
        let next = Cell::new(0);
        Counters::default().with(&Counters::default(), |_, _| {
            let index = next.replace(next.get() + 1);
            values.get(index).copied().unwrap_or_default()
        })
    }

    /// Units moved, for any cause.
    pub fn units_moved(&self) -> u64 {
        self.moved.iter().sum()
    }

    /// Pages programmed, whatever the cause.
    pub fn pages_programmed_total(&self) -> u64 {
        self.pages_programmed.iter().sum()
    }

    /// Pages read, whatever the cause.
    pub fn pages_read_total(&self) -> u64 {
        self.pages_read.iter().sum()
    }
}

/// What the buffer counts. All zero without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounts {
    /// Units of reads of which all sectors asked for were there.
    pub reads_hit: u64,
    /// Units of reads of which some were.
    pub reads_partial: u64,
    /// Units of reads of which none was.
    pub reads_miss: u64,
    /// Units of writes that found their unit there.
    pub writes_hit: u64,
    /// Units of writes that did not.
    pub writes_new: u64,
    /// Units of writes whose completion did not wait for flash.
    pub writes_back: u64,
    /// Units that reads brought.
    pub fills: u64,
    /// Units evicted: for a write, for the water marks, for a read.
    pub evictions: [u64; 3],
    /// Those that were dropped, as flash had them.
    pub evicted_clean: u64,
    /// Units that were dropped because the host deallocated them.
    pub dropped: u64,
    /// Units written to flash from the buffer.
    pub written_back: u64,
    /// Those that were written beside another that was to be, to fill its program.
    pub companions: u64,
    /// Units that were read and written to fill up blocks.
    pub padding: u64,
    /// Flushes that had to wait.
    pub flushes_waited: u64,
    /// Units of FUA writes that had to wait.
    pub fua_waited: u64,
}

impl BufferCounts {
    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &BufferCounts) -> BufferCounts {
        self.with(earlier, |now, before| now - before)
    }

    /// Both counts as one.
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
