//! Mapping schemes: they find the address of a logical unit, and decide where a write goes and what is copied for it.
//!
//! The simulator always has the whole map in memory ([`PageMap`]). A scheme decides which part of it the controller
//! holds, and which blocks a unit may be in. No other file of the project names a scheme, except the tests of one.

mod context;
pub mod external;
mod log_blocks;
mod map;
mod needs;
mod now;
mod own_blocks;
pub mod replacement;
#[cfg(test)]
mod stub;

use super::Ftl;
use super::space::InHand;
use crate::config::DeviceConfig;
use crate::metrics::counters::MergeKind;
use crate::policy_family;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::state::{Reader, StateError, Writer};
use crate::work::{Call, Class, Fifo};
pub use context::{Context, WaitCause};
pub use map::{Location, PADDING, PageMap, TRANSLATION};
pub use needs::{Needs, SchemeOptions, Translation, WholeBlocks, check_places};
pub use now::Now;

/// The stages of the device in which a scheme takes part. Page mapping takes part in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// True if map entries may have to be read from flash first. The methods on entries and translation pages are
    /// called.
    pub entries: bool,
    /// True if the scheme has blocks of its own, which all host writes go to. The methods on these blocks are called,
    /// and garbage collection by victims is off.
    pub places: bool,
    /// True if pages of these blocks may be left out, also the first one.
    pub gaps: bool,
}

/// Block of a mapping scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptBlock {
    /// The block.
    pub block: BlockId,
    /// Number of its units that have been programmed, or are being programmed.
    pub units: u32,
    /// True if no more units of it will be programmed, and no program is in flight.
    pub is_filled: bool,
    /// Its kind: 0 for blocks other than log blocks, 1 for blocks that a full merge fills, and 2 or more for log blocks,
    /// in the order of [`WholeBlocks::logs`].
    pub kind: u8,
}

/// Figures of a mapping scheme, as of now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemeReport {
    /// Number of units that were skipped in their blocks and never programmed.
    pub unwritten: u64,
    /// Number of trimmed units that a controller would remember until a merge skips them.
    pub listed_trims: u64,
    /// Number of writes that were trimmed while they waited, and so were never programmed.
    pub dropped: u64,
    /// Number of failed blocks whose places other blocks are taking.
    pub replacing: u32,
    /// Number of merges in progress, by [`MergeKind`]. A merge ends with the erase of the old data block.
    pub merging: [u32; MergeKind::ALL.len()],
    /// Number of programs that functional writes have started and not filled, and of map entries that are being loaded.
    pub begun: u32,
    /// Outstanding work, in words.
    pub outstanding: String,
}

/// Block with data that a recovery has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundBlock {
    /// The block.
    pub block: BlockId,
    /// Offset after its last programmed unit.
    pub end: u32,
}

/// Merge that a recovery performs: all units of a logical block are copied into a free block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMerge {
    /// Units of the logical block, by offset; `None` beyond the end of the device.
    pub units: Vec<Option<Lpn>>,
    /// Planes that may give the free block.
    pub planes: Vec<PlaneId>,
}

/// Deliberate bugs of merges with log blocks, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum MergeDefect {
    /// A merge copies the unit of the data block instead of a newer one.
    OldCopy,
    /// A log block becomes the data block before the rest has been copied into it.
    EarlySwitch,
    /// A merge copies units that were trimmed, and maps them again.
    ForgottenTrim,
}

/// Callback for a translation page that was written: its number and its address.
pub type Written<'a> = dyn FnMut(&mut Ftl, u32, Ppn) + 'a;

/// Program that a scheme has bound to its address.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Scheduling class of the program.
    pub class: Class,
    /// Plane of the program.
    pub plane: PlaneId,
    /// First mapping unit of the program.
    pub ppn: Ppn,
}

/// A mapping scheme. Each method gets the FTL without the scheme.
///
/// The trait is generic, so that the compiler can inline the context of the device. An external scheme gets a
/// `dyn Context`.
pub trait Mapping<C: Context + ?Sized> {
    /// Returns the stages in which the scheme takes part.
    fn hooks(&self) -> Hooks {
        Hooks::default()
    }

    // Entries and translation pages.

    /// Uses the map entry of a unit. Returns `true` if the controller has it.
    fn use_entry(&mut self, _lpn: Lpn) -> bool {
        true
    }

    /// Notes that the entry which an operation has waited for is in the controller.
    fn load_entry(&mut self, _lpn: Lpn) {}

    /// Returns the units that garbage collection of translation pages in a plane still has to program.
    fn map_in_hand(&self, _ftl: &Ftl, _plane: PlaneId) -> InHand {
        InHand::default()
    }

    // Blocks of the scheme.

    /// Returns the plane of a unit, if the scheme fixes it.
    fn home(&self, _ftl: &Ftl, _lpn: Lpn) -> Option<PlaneId> {
        None
    }

    /// Returns the address that a write of `lpn`, or a program of logical block `number`, would be bound to now.
    fn target(&self, _ftl: &Ftl, _lpn: Lpn, _number: Option<u32>) -> Option<Ppn> {
        None
    }

    /// Calls `found` for each block of the scheme.
    fn blocks(&self, _ftl: &Ftl, _found: &mut dyn FnMut(KeptBlock)) {}

    /// Returns the figures of the scheme.
    fn report(&self, _ftl: &Ftl) -> SchemeReport {
        SchemeReport::default()
    }

    // Recovery after a power cut. Blocks are sorted by the time of their opening, oldest first.

    /// Returns a merge that has to be performed first, because the scheme has no place for one of these blocks.
    fn merge_found(&self, _ftl: &Ftl, _found: &[FoundBlock]) -> Option<FoundMerge> {
        None
    }

    /// Takes over the blocks with data, whose valid units are marked.
    ///
    /// # Errors
    ///
    /// The reason for which the blocks do not belong to this device.
    fn adopt_found(&mut self, _ftl: &mut Ftl, _found: &[FoundBlock]) -> Result<(), String> {
        Ok(())
    }

    // Without time.

    /// Writes a unit that is at `old`. `contents` are its first sector, the sector after its last, and a version.
    fn write_now(&mut self, _ftl: &mut Ftl, _lpn: Lpn, _old: Location, _contents: Option<(u32, u32, u32)>) {}

    /// Notes that a unit in flash was trimmed.
    fn trimmed_now(&mut self, _ftl: &mut Ftl, _lpn: Lpn) {}

    /// Notes that the entry of a unit has changed.
    fn change_entry_now(&mut self, _lpn: Lpn) {}

    /// Completes programs that have started, and writes translation pages that have changed. Calls `written` after each
    /// of these pages.
    fn seal(&mut self, _ftl: &mut Ftl, _written: &mut Written) {}

    // Saved states, reports and tests.

    /// Writes the state to a saved state. Nothing is in progress.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`Mapping::save`] wrote, into a new scheme. `written` is the number of programmed units, indexed by
    /// block. The scheme sets it for its own blocks.
    fn load(&mut self, _ftl: &mut Ftl, _input: &mut Reader, _written: &mut [u16]) -> Result<(), StateError> {
        Ok(())
    }

    /// Test hook: checks the state against a count from scratch.
    fn recount(&self, _ftl: &Ftl) -> Result<(), String> {
        Ok(())
    }

    // In time. The scheme queues operations through the [`Context`]. A step that has to run later is a [`Call`], a task.

    /// Runs a task of the scheme.
    fn call(&mut self, _cx: &mut C, _call: Call) {}

    /// Stops all updates, because the device has become read-only.
    fn stop(&mut self, _cx: &mut C) {}

    // Entries and translation pages.

    /// Has an operation wait for its map entry. A [`Task::Translate`](crate::work::Task::Translate) resumes it.
    fn await_entry(&mut self, _cx: &mut C, _id: TransactionId) {}

    /// Changes the entry of a unit.
    fn change_entry(&mut self, _cx: &mut C, _lpn: Lpn) {}

    /// Notes that garbage collection has moved a unit from an address.
    fn note_moved(&mut self, _cx: &mut C, _lpn: Lpn, _from: Ppn) {}

    /// Has victims of a plane whose units have all been moved wait for the updates of their entries.
    fn update_moved(&mut self, _cx: &mut C, _plane: PlaneId) {}

    /// Notes that a read of a translation page starts.
    fn map_read_started(&mut self, _cx: &mut C, _id: TransactionId) {}

    /// Ends a read of a translation page. Returns the operations that have waited for its entries, and the step that
    /// follows when they have been resumed.
    fn map_read_ended(&mut self, _cx: &mut C, _id: TransactionId) -> Option<(Fifo, Call)> {
        None
    }

    /// Binds a program of a translation page. Returns `None` if there is nothing to program, or no room.
    fn bind_map_write(&mut self, _cx: &mut C, _id: TransactionId) -> Option<Bound> {
        None
    }

    /// Ends a program of a translation page.
    fn map_write_ended(&mut self, _cx: &mut C, _id: TransactionId) {}

    /// Handles a failed program of a translation page, whose block is retired.
    fn map_write_failed(&mut self, _cx: &mut C, _id: TransactionId) {}

    /// Continues with a translation page that was programmed, after the operations that waited for it were resumed.
    fn map_programmed(&mut self, _cx: &mut C, _page: u32, _place: Ppn) {}

    /// Frees blocks of translation pages in a plane, if there are too few.
    fn collect_map(&mut self, _cx: &mut C, _plane: PlaneId) {}

    /// Notes that a block of translation pages has been erased. The plane may use it after this call.
    fn map_erased(&mut self, _cx: &mut C, _plane: PlaneId) {}

    /// Notes that translation pages of a plane may have more free blocks.
    fn map_reclaims(&mut self, _cx: &mut C, _plane: PlaneId) {}

    // Blocks of the scheme.

    /// Has a host write, which has all its data, wait for its address.
    fn place(&mut self, _cx: &mut C, _id: TransactionId) {}

    /// Binds a host write, with the writes and copies that share its program.
    fn bind_write(&mut self, _cx: &mut C, _id: TransactionId) -> Option<Bound> {
        None
    }

    /// Binds a program of copies.
    fn bind_copies(&mut self, _cx: &mut C, _id: TransactionId) -> Option<Bound> {
        None
    }

    /// Ends a read of units that are to be copied.
    fn copy_read(&mut self, _cx: &mut C, _number: u32) {}

    /// Ends a program that held a host write of `lpn`.
    fn write_ended(&mut self, _cx: &mut C, _lpn: Lpn, _start: Ppn) {}

    /// Ends a program of copies.
    fn copies_ended(&mut self, _cx: &mut C, _number: u32, _start: Ppn) {}

    /// Handles a failed program at `start`: of host writes, or of copies alone, with the `number` of their operation.
    /// Has the writes wait for another address. Returns `false` if no block can take the place of the failed one.
    fn program_failed(&mut self, _cx: &mut C, _writes: &[TransactionId], _number: Option<u32>, _start: Ppn) -> bool {
        false
    }

    /// Notes that a unit in flash was trimmed.
    fn trimmed(&mut self, _cx: &mut C, _lpn: Lpn) {}

    /// Notes that a block has been erased.
    fn erased(&mut self, _cx: &mut C, _plane: PlaneId) {}

    /// Notes that a block which awaited its erase is bad.
    fn erase_failed(&mut self, _cx: &mut C, _plane: PlaneId) {}
}

policy_family! {
    /// Mapping scheme: finds the address of a logical unit.
    MappingScheme / MappingConfig: dyn Mapping<dyn Context>, or external {
        /// A full map of units in the controller's memory.
        page::Page = "page",
        /// The map is in flash, in translation pages; the controller caches some of its entries (Gupta et al. 2009).
        dftl::Dftl = "dftl",
        /// A map of logical blocks, whose units keep their offsets (Gal and Toledo 2005).
        block::Block = "block",
        /// Log blocks, each for one logical block (Kim et al. 2002).
        bast::Bast = "bast",
        /// Log blocks for any logical block, and some for sequential writes (Lee et al. 2007).
        fast::Fast = "fast",
        /// Log blocks for sequential, hot and cold writes (Lee et al. 2008).
        last::Last = "last",
    }
}

impl Default for MappingConfig {
    fn default() -> Self {
        MappingConfig::Page(Default::default())
    }
}

// These functions are called for each unit. Called through the trait, they would not be inlined.
impl MappingScheme {
    /// See [`Mapping::use_entry`].
    #[inline]
    pub fn use_entry(&mut self, lpn: Lpn) -> bool {
        match self {
            MappingScheme::Dftl(scheme) => Mapping::<dyn Context>::use_entry(scheme, lpn),
            scheme => Mapping::use_entry(&mut **scheme, lpn),
        }
    }

    /// See [`Mapping::change_entry_now`].
    #[inline]
    pub fn change_entry_now(&mut self, lpn: Lpn) {
        match self {
            MappingScheme::Dftl(scheme) => Mapping::<dyn Context>::change_entry_now(scheme, lpn),
            scheme => Mapping::change_entry_now(&mut **scheme, lpn),
        }
    }

    /// Returns the scheme with its functions in time.
    #[inline]
    pub fn in_time<C: Context + 'static>(&mut self) -> &mut dyn Mapping<C> {
        match self {
            MappingScheme::Page(scheme) => scheme,
            MappingScheme::Dftl(scheme) => scheme,
            MappingScheme::Block(scheme) => scheme,
            MappingScheme::Bast(scheme) => scheme,
            MappingScheme::Fast(scheme) => scheme,
            MappingScheme::Last(scheme) => scheme,
            MappingScheme::External(scheme) => &mut **scheme,
        }
    }
}

impl MappingConfig {
    fn options(&self) -> &dyn SchemeOptions {
        match self {
            MappingConfig::Page(options) => options,
            MappingConfig::Dftl(options) => options,
            MappingConfig::Block(options) => options,
            MappingConfig::Bast(options) => options,
            MappingConfig::Fast(options) => options,
            MappingConfig::Last(options) => options,
            MappingConfig::External(options) => options,
        }
    }

    /// Returns the requirements of the scheme on a device.
    pub fn needs(&self, device: &DeviceConfig) -> Needs {
        self.options().needs(device)
    }

    /// Returns the size of the scheme's tables in bytes, without the page map.
    pub fn bytes(&self, device: &DeviceConfig) -> u64 {
        self.options().bytes(device)
    }
}
