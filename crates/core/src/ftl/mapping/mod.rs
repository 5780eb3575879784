//! Mapping schemes: they find the address of a logical unit, and decide where a write goes and what is copied for it.
//!
//! The simulator always has the whole map in memory ([`PageMap`]). A scheme decides which part of it the controller
//! holds, and which blocks a unit may be in. No other file of the project names a scheme, except the tests of one.

pub mod call;
pub mod external;
mod instant;
mod log_blocks;
mod map;
mod needs;
mod outstanding;
mod own_blocks;
pub mod replacement;
mod scale;
#[cfg(test)]
mod stub;

use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::mover::copy::Copy;
use crate::ftl::space::InHand;
use crate::metrics::counters::MergeKind;
use crate::policy_family;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::state::{Reader, StateError, Writer};
use crate::work::{Call, Class, Tasks, Transaction, Transactions};
pub use map::{Location, PADDING, PageMap, TRANSLATION};
pub use needs::{Needs, SchemeOptions, Translation, WholeBlocks, check_places};
pub use outstanding::{Contents, Outstanding};

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

impl MappingScheme {
    /// Returns the scheme for a context.
    #[inline]
    fn of<C: Context + ?Sized>(&mut self) -> &mut dyn Mapping<C> {
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

/// A mapping scheme. Each method gets the FTL without the scheme.
///
/// A scheme *keeps* the blocks that it opens itself, with [`Space::open_logical`](crate::ftl::space::Space), and those
/// of translation pages. It decides where units go in them, and when they are erased. All other blocks take the writes
/// of the host in the order of their frontiers, and garbage collection reclaims them.
///
/// Functional mode calls the same methods. Its operations end at once: see [`Context::has_time`].
///
/// The trait is generic, so that the compiler can inline the context of the device. An external scheme gets a
/// `dyn Context`. No method has a default, so that a scheme which lacks one does not compile.
pub trait Mapping<C: Context + ?Sized> {
    /// Looks up the map entry of a unit. Returns `true` if the controller has it. If it does not, [`LookUp::Await`] has
    /// an operation wait, and a [`Task::Translate`](crate::work::Task::Translate) resumes it.
    fn look_up(&mut self, cx: &mut C, lpn: Lpn, what: LookUp) -> bool;

    /// Notes a change of the location of a unit. A scheme without translation pages sees [`Change::Trimmed`] only, and
    /// one that keeps no blocks of data all others.
    fn changed(&mut self, cx: &mut C, lpn: Lpn, change: Change);

    /// Has a write, which has all its data, wait for its address in a kept block. Called if [`Mapping::target`] is a
    /// kept block for all writes.
    fn place(&mut self, cx: &mut C, id: TransactionId);

    /// Returns where a write of a unit, or a program of copies for a logical block, would go now.
    fn target(&self, ftl: &Ftl, of: Program) -> Target;

    /// Binds a program in kept blocks: a host write, with the writes and copies that share its program, copies, or a
    /// translation page. Returns `None` if there is nothing to program, or no room.
    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound>;

    /// Ends an operation on kept blocks. Returns `false` if a program has failed, and no block can take the place of
    /// its block.
    fn ended(&mut self, cx: &mut C, end: Ended) -> bool;

    /// Takes a step.
    fn step(&mut self, cx: &mut C, step: Step);

    /// Frees blocks of translation pages in a plane, if there are too few. Some may have been freed since the last
    /// call.
    fn make_room(&mut self, cx: &mut C, plane: PlaneId, freed: bool);

    /// Returns `true` if a plane can certainly continue with the blocks that have not failed. Garbage collection still
    /// has `hand` to do.
    fn can_go_on(&self, ftl: &Ftl, plane: PlaneId, hand: InHand) -> bool;

    /// Takes over the blocks that a recovery has found.
    ///
    /// # Errors
    ///
    /// The reason for which the blocks do not belong to this device.
    fn recover(&mut self, found: &mut dyn Recovering) -> Result<(), String>;

    /// Writes the state to a saved state. Nothing is in progress.
    ///
    /// # Errors
    ///
    /// The error of the writer, or the reason for which the scheme cannot be saved.
    fn save(&self, out: &mut Writer) -> Result<(), StateError>;

    /// Reads what [`Mapping::save`] wrote, into a new scheme. `written` is the number of programmed units, indexed by
    /// block. The scheme sets it for its own blocks.
    ///
    /// # Errors
    ///
    /// The error of the reader, or a description of the damage.
    fn load(&mut self, ftl: &mut Ftl, input: &mut Reader, written: &mut [u16]) -> Result<(), StateError>;

    /// Checks the state against a count from scratch.
    ///
    /// # Errors
    ///
    /// A description of the difference.
    fn recount(&self, ftl: &Ftl) -> Result<(), String>;

    /// Calls `found` for each kept block of data.
    fn blocks(&self, ftl: &Ftl, found: &mut dyn FnMut(KeptBlock));

    /// Returns the figures of the scheme.
    fn report(&self, ftl: &Ftl) -> SchemeReport;
}

/// Implements the methods of [`Mapping`] for translation pages, for a scheme that has none: the controller has the
/// whole map, and the scheme keeps blocks of data only.
#[macro_export]
macro_rules! has_whole_map {
    () => {
        fn look_up(&mut self, _: &mut C, _: $crate::sim::id::Lpn, _: $crate::mapping::LookUp) -> bool {
            true
        }

        fn make_room(&mut self, _: &mut C, _: $crate::sim::id::PlaneId, _: bool) {}

        fn can_go_on(&self, _: &$crate::mapping::Ftl, _: $crate::sim::id::PlaneId, _: $crate::mapping::InHand) -> bool {
            true
        }
    };
}

/// Reason for which a map entry is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUp {
    /// A read needs it, unless the controller has the unit itself.
    Read,
    /// A write needs it.
    Write,
    /// The operation needs it, and has not found it: it waits.
    Await(TransactionId),
    /// An operation that has waited for it continues.
    Arrived,
}

/// Change of the location of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A write has been programmed, or a trim has removed the unit from the map.
    Entry,
    /// Garbage collection has moved the unit from this address.
    Moved(Ppn),
    /// A trim has made the copy in flash invalid.
    Trimmed,
}

/// Program whose target is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A write of a unit.
    Write(Lpn),
    /// Copies, by the number of their operation.
    Copies(u32),
}

/// Target of a program that is not bound yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Plane, if it is fixed.
    pub plane: Option<PlaneId>,
    /// Address in the plane.
    pub place: Place,
}

/// Address of a program that is not bound yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The next address of the plane's frontier.
    Frontier,
    /// This address, in a kept block.
    At(Ppn),
    /// An address in a kept block that is not known yet.
    Unknown,
}

impl From<Option<Ppn>> for Place {
    fn from(ppn: Option<Ppn>) -> Place {
        ppn.map_or(Place::Unknown, Place::At)
    }
}

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

/// End of an operation on kept blocks.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    /// A read of units that are to be copied, with the number of the copies.
    CopyRead(u32),
    /// A read of a translation page.
    MapRead(TransactionId),
    /// A program that held a host write of a unit, with the first address of the program.
    Writes(Lpn, Ppn),
    /// A program of copies, with their number and the first address of the program.
    Copies(u32, Ppn),
    /// A program of a translation page.
    MapWrite(TransactionId),
    /// A failed program of a translation page, whose block is retired.
    MapWriteFailed(TransactionId),
    /// A failed program of host writes, or of copies alone with their number, and the first address of the program. The
    /// writes have to wait for another address.
    ProgramFailed(&'a [TransactionId], Option<u32>, Ppn),
    /// An erase of a block in this plane.
    Erase(PlaneId),
    /// A failed erase of a block in this plane, which is bad now.
    EraseFailed(PlaneId),
}

/// Step of a scheme.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A task of the scheme.
    Call(Call),
    /// The operations that waited for the program of a translation page have been resumed. Its number and its address.
    MapProgrammed(u32, Ppn),
    /// Garbage collection of a plane has chosen its next step: victims whose units have all been moved wait for the
    /// updates of their entries.
    Collected(PlaneId),
    /// The device has become read-only: all updates and writes without an address end.
    ReadOnly,
    /// Functional mode ends: translation pages that it has changed are written, and [`Context::map_written`] is called
    /// after each.
    Seal,
}

/// Kept block of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptBlock {
    /// The block.
    pub block: BlockId,
    /// Number of its units that have been programmed, or are being programmed.
    pub units: u32,
    /// True if no more units of it will be programmed, and no program is in flight.
    pub is_filled: bool,
    /// Kind of the block: 0 for blocks other than log blocks, 1 for blocks that a full merge fills, and 2 or more for
    /// log blocks, in the order of `WholeBlocks::logs`.
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
    /// Number of map entries that are being loaded.
    pub loading: u32,
    /// Outstanding work, in words.
    pub outstanding: String,
}

/// Callback for a translation page that was written: its number and its address.
pub type Written<'a> = dyn FnMut(&mut Ftl, u32, Ppn) + 'a;

/// A recovery, for a scheme that takes over the blocks with data. Blocks are sorted by the time of their opening,
/// oldest first.
pub trait Recovering {
    /// Returns the FTL, without the scheme.
    fn ftl(&mut self) -> &mut Ftl;

    /// Erases blocks without newest versions, and returns the others. If a unit has several copies, the one in the
    /// block that was opened last counts.
    fn found(&mut self) -> Vec<FoundBlock>;

    /// Copies the units of a logical block into a free block. Returns `false` if there is none, and the device has to
    /// be read-only.
    ///
    /// # Errors
    ///
    /// The reason for which there must be one.
    fn merge(&mut self, merge: &FoundMerge) -> Result<bool, String>;

    /// Makes the newest versions valid, and their blocks kept ones. Returns these.
    fn keep(&mut self) -> Vec<FoundBlock>;

    /// Makes the newest versions valid, and closes their blocks, which garbage collection reclaims.
    ///
    /// # Errors
    ///
    /// The reason for which the device cannot continue.
    fn close(&mut self) -> Result<(), String>;
}

/// Has a scheme keep the blocks of a recovery, after the merges that `next` asks for, one after another, because the
/// scheme has no place for some block. Returns the blocks.
///
/// # Errors
///
/// See [`Recovering::merge`].
pub fn keep_found(
    recovery: &mut dyn Recovering,
    next: impl Fn(&Ftl, &[FoundBlock]) -> Option<FoundMerge>,
) -> Result<Vec<FoundBlock>, String> {
    loop {
        let found = recovery.found();
        let Some(merge) = next(recovery.ftl(), &found) else { break };
        if !recovery.merge(&merge)? {
            break;
        }
    }
    Ok(recovery.keep())
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

/// Cause of the waits in a queue of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// A merge, or a block that is not free yet.
    Merge,
    /// A program of earlier writes in a block of this plane.
    Program(PlaneId),
    /// The cause of the waits in another queue.
    AsIn(u32),
}

/// Wait of a host write for a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The write starts to wait.
    Begins(TransactionId),
    /// The write waits in this queue from now on.
    In(TransactionId, u32),
    /// The waits in this queue have this cause from now on.
    Cause(u32, WaitCause),
}

/// Interface of the device for mapping schemes. No function calls the scheme back.
pub trait Context {
    /// Returns the interface for an external scheme.
    fn as_dyn(&mut self) -> &mut dyn Context;

    /// Returns the FTL without the scheme, the outstanding operations, and the queue of tasks.
    fn parts(&mut self) -> (&mut Ftl, &mut Transactions, &mut Tasks);

    /// Returns the FTL, without the scheme.
    #[inline]
    fn ftl(&mut self) -> &mut Ftl {
        self.parts().0
    }

    /// Returns the outstanding operations.
    #[inline]
    fn ops(&mut self) -> &mut Transactions {
        self.parts().1
    }

    /// Returns the FTL and the outstanding operations, to read them together.
    #[inline]
    fn ftl_and_ops(&mut self) -> (&Ftl, &Transactions) {
        let (ftl, ops, _) = self.parts();
        (ftl, ops)
    }

    /// Returns the queue of tasks.
    #[inline]
    fn tasks(&mut self) -> &mut Tasks {
        self.parts().2
    }

    /// Queues a new operation for its plane.
    #[inline]
    fn queue(&mut self, operation: Transaction) {
        let id = self.ops().insert(operation);
        self.enqueue(id);
    }

    /// Queues an operation for its plane: a host write that the scheme has delayed, or an operation of the scheme.
    fn enqueue(&mut self, id: TransactionId);

    /// Returns `true` unless the device is in functional mode, in which operations end at once.
    fn has_time(&self) -> bool {
        true
    }

    /// Notes that a translation page has been programmed in functional mode.
    fn map_written(&mut self, _page: u32, _ppn: Ppn) {}

    /// Notes that a call of the scheme has ended.
    fn note_called(&mut self) {}

    /// Returns the number of mapping units of the host request that a write belongs to, or 1 if it has none.
    fn request_units(&self, id: TransactionId) -> u32;

    /// Returns `true` if the power may be cut, so that a recovery may need a free block.
    fn is_durable(&self) -> bool {
        false
    }

    /// Notes a wait of a host write for the scheme, for observers.
    fn note(&mut self, _wait: Wait) {}

    /// Notes that a host write waits for the scheme, until it is queued for its plane or bound.
    fn note_waiting(&mut self, id: TransactionId) {
        self.note(Wait::Begins(id));
    }

    /// Notes that a host write, which waits for the scheme, waits in this queue from now on. Queues are numbered by the
    /// scheme.
    fn note_queued(&mut self, id: TransactionId, queue: u32) {
        self.note(Wait::In(id, queue));
    }

    /// Sets the cause of the waits in a queue, from now on. At first, it is a merge.
    fn note_cause(&mut self, queue: u32, cause: WaitCause) {
        self.note(Wait::Cause(queue, cause));
    }

    /// Binds a host write to an address. The data that it replaces is invalid from now on.
    fn bind(&mut self, id: TransactionId, ppn: Ppn);

    /// Continues a host write that waits for `older`, an older write of its unit, which will not be programmed.
    fn take_over(&mut self, older: TransactionId, newer: TransactionId);

    /// Ends a host write that was trimmed before it was bound.
    fn drop_write(&mut self, id: TransactionId);

    /// Ends a host write that will not be programmed, because the device is read-only.
    fn refuse_write(&mut self, id: TransactionId);

    /// Ends a copy: maps its unit to it, unless the unit was overwritten or trimmed in the meantime.
    fn end_copy(&mut self, copy: &Copy);

    /// Ends a program of a data block. Queues the summary of the block if that was its last program.
    fn program_ended(&mut self, ppn: Ppn);

    /// Returns `true` if garbage collection of a plane still moves units of a block.
    fn is_moving(&self, plane: PlaneId, block: BlockId) -> bool;

    /// Ends the dependency of an operation on a block. A block that holds no valid data and has no dependents is
    /// erased.
    fn release(&mut self, block: BlockId);

    /// Queues the erase of a block that has no dependents.
    fn erase(&mut self, block: BlockId);
}
