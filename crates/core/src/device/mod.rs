//! The simulated SSD: a deterministic state machine without threads, clocks or files.
//!
//! Programs drive it as an [`Ssd`]: [`Ssd::submit`] accepts a request, [`Ssd::next_event`] returns the time of the next
//! event, and [`Ssd::advance`] processes all events up to a given time. Trace replay, the real-time server, the Python
//! bindings and the tests are loops over these methods. At equal times, internal events are processed first, until none
//! is left; then completions are delivered; then new requests are submitted.
//!
//! The submodules follow the path of a request: `accept` splits it into transactions, `start` binds a transaction to a
//! physical address when `dispatch` starts it, `finish` completes it, and `gc` reclaims space. `route` passes
//! events and tasks to the components, which do not depend on one another.

mod accept;
mod buffer;
mod drive;
mod durable;
mod errors;
mod faults;
mod finish;
mod gc;
mod read_ahead;
mod rebuild;
mod route;
mod saving;
mod scheme;
mod size;
mod start;
mod timers;

use crate::cache::Buffer;
use crate::config::DeviceConfig;
use crate::dispatch::{Dispatch, Filling};
use crate::durability::Durability;
use crate::durability::flash::FlashEvent;
use crate::external::Externals;
use crate::ftl::Ftl;
use crate::ftl::gc::collector::{Collector, Released};
use crate::ftl::mapping::{Context, MergeDefect};
use crate::ftl::rebuild::Rebuilds;
use crate::ftl::space::{Block, Role};
use crate::host::interface::HostInterface;
use crate::metrics::counters::{CopyCause, ProgramCause};
use crate::nand::array::Array;
use crate::nand::busy_time::BusyAccounting;
use crate::nand::errors::ReadErrors;
use crate::observe::{Observers, View};
use crate::scheduler::Scheduler;
use crate::sim::id::{BlockId, Lpn, LunId, RequestId, TransactionId};
use crate::sim::time::Time;
use crate::ssd::Ssd;
use crate::work::{Defect, Tasks, Transactions};
pub use saving::Head;
use timers::{Quiet, Timer};

/// Deliberate bugs, which show that the tests catch them. No option enables them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub enum Mutant {
    /// Correct behavior.
    #[default]
    None,
    /// Blocks are erased without waiting for their dependents.
    EraseEarly,
    /// A copy by garbage collection counts as newer than a write that was accepted in the meantime.
    RenumberCopies,
    /// The map moves back to an older write of a mapping unit when that write completes after a newer one was accepted.
    MapMovesBack,
    /// Trims are not journaled.
    ForgetTrims,
    /// A recovery uses checkpoint accounts of blocks that have been erased since.
    TrustErased,
    /// The checkpoint covers blocks that are still being written.
    AccountEarly,
    /// A recovery ignores the records of trims.
    SkipTrims,
    /// A recovery prefers the copy of a unit in the block that was opened first.
    OldBlockWins,
    /// A failed block is erased and reused.
    ReuseFailed,
    /// A failed block is retired before its data have been moved.
    RetireEarly,
    /// A copy by garbage collection takes over the map entry of a newer write that is not bound yet.
    IgnoreOverwrite,
    /// Now and then, one of several tasks that were pushed together is lost.
    LoseTask,
    /// The last two of several tasks that were pushed together run in the wrong order.
    SwapTasks,
    /// A merge copies the unit of the data block instead of a newer one.
    MergeOldCopy,
    /// A log block becomes the data block before the rest has been copied into it.
    SwitchEarly,
    /// A merge copies units that were trimmed, and maps them again.
    MergeTrimmed,
}

/// Options for building a device.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seed of all random numbers of the device.
    pub seed: u64,
    /// True to keep a version for every sector, in flash and in the controller, and to return the versions with reads.
    pub verify: bool,
    /// True to measure a latency breakdown for each request.
    pub attribution: bool,
    /// Policies of the program, which the device file may name.
    pub externals: Externals,
    /// Test hook: a deliberate bug.
    #[doc(hidden)]
    pub mutant: Mutant,
}

/// A simulated SSD. A clone has the same future as the original.
#[derive(Clone, Debug)]
pub struct Device {
    config: DeviceConfig,
    options: Options,
    now: Time,
    ftl: Ftl,
    array: Array,
    /// Requests, from submission to completion.
    interface: HostInterface,
    transactions: Transactions,
    /// Queues of transactions, and the operations of the execution units.
    dispatch: Dispatch,
    slots_free: u32,
    /// True if a dropped write has freed a slot: writes are admitted after the event.
    admits_after: bool,
    /// Write buffer, if the device has one.
    buffer: Option<Box<Buffer>>,
    /// Garbage collection of all planes.
    jobs: Collector,
    /// The journal and the checkpoint, if the device has either or was recovered.
    durability: Option<Box<Durability>>,
    /// Errors of read data, if there are any.
    errors: Option<Box<ReadErrors>>,
    /// Pages that are being rebuilt, if uncorrectable ones are.
    rebuilds: Option<Box<Rebuilds>>,
    /// True if more follows the end of a read than the end of the operation.
    reads_end_later: bool,
    /// Observers of requests and transactions, if there are any.
    observers: Option<Box<Observers>>,
    /// Deferred calls.
    tasks: Tasks,
    /// Events of timers since the last progress.
    quiet: Quiet,
}

impl Device {
    /// Creates an empty device. The configuration must have passed its checks.
    pub fn new(config: DeviceConfig, options: Options) -> Result<Device, String> {
        let externals = &options.externals;
        let mut array = Array::new(&config, Timer::count(&config));
        let scheduler =
            config.scheduler.build(&config, options.seed, externals).map_err(|e| format!("scheduler: {e}"))?;
        let mut ftl = Ftl::new(&config, options.seed, options.verify, externals)?;
        ftl.blocks.ignore_dependents = options.mutant == Mutant::EraseEarly;
        ftl.merge_defect = match options.mutant {
            Mutant::MergeOldCopy => Some(MergeDefect::OldCopy),
            Mutant::SwitchEarly => Some(MergeDefect::EarlySwitch),
            Mutant::MergeTrimmed => Some(MergeDefect::ForgottenTrim),
            _ => None,
        };
        let mut durability = Durability::new(&config);
        if let Some(durability) = &mut durability {
            durability.forgets_trims = options.mutant == Mutant::ForgetTrims;
        }
        if let Some(checkpoint) = durability.as_mut().and_then(|durability| durability.checkpoint.as_mut()) {
            checkpoint.layout.trusts_erased = options.mutant == Mutant::TrustErased;
            checkpoint.layout.takes_open = options.mutant == Mutant::AccountEarly;
        }
        let dynamic = !ftl.keeps_data() && ftl.home(Lpn(0)).is_none();
        if options.attribution {
            let pools = if dynamic { ftl.allocation.pools() } else { 0 };
            let accounting = BusyAccounting::new(array.luns(), array.units_per_lun(), config.buses(), pools);
            array.set_accounting(accounting.with_reading_planes(array.reading_units(LunId(0)).len() as u32));
        }
        let mut dispatch = Dispatch::new(&config, scheduler, dynamic.then_some(&ftl.allocation), &array);
        dispatch.set_binding_sets_off(ftl.shape().map_pages > 0 || durability.is_some());
        let defect = match options.mutant {
            Mutant::LoseTask => Some(Defect::Lose),
            Mutant::SwapTasks => Some(Defect::Swap),
            _ => None,
        };
        let lists = Filling::lists(dispatch.filling.as_deref());
        let buffer = Buffer::new(&config, lists, options.seed, options.verify, externals)?;
        let mut device = Device {
            now: Time::ZERO,
            interface: HostInterface::new(&config, options.seed),
            transactions: Transactions::default(),
            slots_free: config.controller.write_slots,
            admits_after: false,
            buffer: buffer.map(Box::new),
            dispatch,
            jobs: Collector::new(&config),
            durability: durability.map(Box::new),
            errors: ReadErrors::new(&config, options.seed).map(Box::new),
            rebuilds: config.rebuilds().then(Box::default),
            reads_end_later: config.errors.is_some() || config.rebuilds(),
            observers: Observers::new(&config, options.attribution, options.verify).map(Box::new),
            tasks: Tasks::new(defect),
            quiet: Quiet::default(),
            ftl,
            array,
            options,
            config,
        };
        device.array.keep_watching(device.dispatch.picks());
        Ok(device)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Returns the number of sectors that the host sees.
    #[inline]
    pub fn sectors(&self) -> u64 {
        self.interface.sectors()
    }

    /// Returns the FTL for inspection.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Returns the FTL for functional mode. The device must be idle, and the buffer must hold no dirty data: see
    /// [`Device::write_out_buffer`].
    pub fn ftl_mut(&mut self) -> &mut Ftl {
        debug_assert!(self.is_idle() && !self.is_durable(), "functional mode needs an idle device without a flash log");
        if let Some(buffer) = self.buffer.as_deref_mut().filter(|buffer| !buffer.is_empty()) {
            buffer.clear();
        }
        self.jobs.finish_victims(&mut self.ftl, self.now);
        &mut self.ftl
    }

    /// Returns the array for inspection.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Returns the array, to attach a probe or to start a measurement.
    pub fn array_mut(&mut self) -> &mut Array {
        &mut self.array
    }

    /// Returns the scheduling policy.
    pub fn scheduler(&self) -> &Scheduler {
        self.dispatch.scheduler()
    }

    /// Returns `true` if no request is outstanding and no event is pending.
    pub fn is_idle(&self) -> bool {
        self.outstanding() == 0 && self.array.next_event().is_none()
    }

    /// Does the same as [`Device::handle`], without a copy of its code.
    #[inline(never)]
    fn handle_any(&mut self, at: Time, resource: u32) {
        self.handle(at, resource);
    }

    /// Processes the remaining events of an instant with a completion. Returns its time, or `None` if there is no
    /// completion.
    #[cold]
    fn end_instant(&mut self) -> Option<Time> {
        let now = self.now;
        self.has_completions().then(|| {
            self.advance(now);
            now
        })
    }

    /// Returns the sector versions that completed reads returned, with their tags. Empty without [`Options::verify`].
    pub fn take_contents(&mut self) -> Vec<(u64, Vec<u32>)> {
        let contents = self.observers.as_mut().and_then(|observers| observers.contents.as_mut());
        contents.map_or_else(Vec::new, |contents| contents.take_done())
    }

    /// Test hook: checks the invariants of the device.
    pub fn check_invariants(&self) -> Result<(), String> {
        let counters = &self.ftl.counters;
        // Blocks of translation pages may hold fewer units than others.
        let least = Role::ALL.into_iter().map(|role| self.ftl.blocks.size(role).data_units).min().unwrap_or(0);
        let erased = counters.blocks_erased * u64::from(least);
        if self.ftl.is_read_only() {
            return if self.is_idle() { self.ftl.recount() } else { self.ftl.blocks.recount() };
        }
        if self.is_idle() {
            self.ftl.recount()?;
            // A programmed unit that is no longer valid was overwritten, trimmed, moved, a wasted copy, padding, or
            // failed.
            let gone = counters.units_invalidated
                + counters.units_trimmed
                + counters.units_moved()
                + counters.wasted_copies
                + counters.map.units_invalidated
                + counters.units_padded
                + counters.faults.units_failed;
            let programmed = counters.units_programmed + counters.units_padded;
            let valid: u64 = self.ftl.blocks.all().iter().map(|b| u64::from(b.valid)).sum();
            if programmed != valid + gone {
                return Err(format!("{programmed} units programmed, but {valid} valid and {gone} invalid"));
            }
            let gone = gone + self.ftl.scheme().report(&self.ftl).unwritten;
            let (per_page, pages) = (self.config.units_per_page(), self.config.pages_per_unit());
            let parity = counters.units_of(ProgramCause::Parity, per_page, pages);
            if erased > gone + parity {
                return Err(format!("{erased} units erased, but only {gone} invalid"));
            }
            let held = |block| self.durability.as_ref().is_some_and(|durability| durability.holds(block));
            let mut blocks = self.ftl.blocks.all().iter().zip((0..).map(BlockId));
            if blocks.any(|(b, number)| b.dependents != u16::from(held(number))) {
                return Err("a block has dependents although the device is idle".to_owned());
            }
            if self.slots_free != self.config.controller.write_slots {
                return Err("write slots are in use although the device is idle".to_owned());
            }
            if !self.transactions.is_empty() {
                return Err("transactions are left although the device is idle".to_owned());
            }
            if self.interface.cores.as_deref().is_some_and(|cores| !cores.are_idle()) {
                return Err("cores are busy although the device is idle".to_owned());
            }
            self.buffer().map_or(Ok(()), Buffer::recount)?;
        }
        Ok(())
    }

    /// Reports a stage to the observers, if there are any. Only this function tests it. The code of observers is not
    /// inlined, so that it does not slow the code around a stage.
    #[inline(always)]
    fn observe(&mut self, stage: impl FnOnce(&mut Observers, &View)) {
        if self.observers.is_some() {
            self.show(stage);
        }
    }

    #[inline(never)]
    fn show(&mut self, stage: impl FnOnce(&mut Observers, &View)) {
        let Some(observers) = &mut self.observers else { return };
        let view = View {
            now: self.now,
            interface: &self.interface,
            transactions: &self.transactions,
            array: &self.array,
            ftl: &self.ftl,
            jobs: &self.jobs,
            buffer: self.buffer.as_deref(),
            durability: self.durability.as_deref(),
        };
        stage(observers, &view);
    }

    /// Returns the number of the next write or trim, if a flash log needs it.
    #[inline]
    fn sequence_for_log(&mut self) -> u64 {
        if self.is_durable() { self.ftl.next_sequence() } else { 0 }
    }

    /// Test hook: returns the number that a deliberate bug gives to the copies of a program.
    #[inline]
    fn renumbers_copies(&mut self) -> Option<u64> {
        (self.options.mutant == Mutant::RenumberCopies && self.is_durable()).then(|| self.ftl.next_sequence())
    }

    /// Queues the erase of a block without dependents. A failed block is retired instead.
    fn erase(&mut self, block: BlockId) {
        let &Block { failed, moved_for, .. } = self.ftl.blocks.block(block);
        if failed && self.options.mutant != Mutant::ReuseFailed {
            self.jobs.retire(&mut self.ftl, block);
            if moved_for == CopyCause::Merge && self.options.mutant != Mutant::RetireEarly {
                self.observe(move |observers, _| observers.changed(FlashEvent::Retired { block }));
            }
            return;
        }
        if self.ftl.blocks.is_doomed(block) {
            return self.retire_superblock(block);
        }
        for block in self.ftl.blocks.erased_with(block) {
            let erase = self.jobs.erase(&self.ftl, block);
            self.queue(erase);
        }
    }

    /// Removes one dependent of a block.
    #[inline]
    fn release(&mut self, block: BlockId) {
        match self.jobs.release(&mut self.ftl, block) {
            Released::Kept => {}
            Released::Erase => self.erase(block),
            Released::Retry(plane) => self.retry_writes(plane),
        }
    }

    /// Sends the completion of a request, which arrives at the host one host latency later.
    #[inline(always)]
    fn answer(&mut self, id: RequestId, by: TransactionId) {
        self.quiet.end();
        let finish = self.interface.finish_of(id, self.now);
        self.observe(move |observers, view| observers.answered(view, id, by, finish));
        self.interface.complete(id, finish);
        if finish > self.now {
            self.interface.hold_place(finish);
            Timer::Completion.set_if(&mut self.array, self.interface.next_return());
        }
        if self.jobs.uses_idle_time() {
            self.arm_idle_time();
        }
        if let Some(idle) = self.buffer.as_deref().and_then(Buffer::idle)
            && self.outstanding() == 0
        {
            Timer::BufferIdle.set(&mut self.array, self.now.later(idle));
        }
    }

    /// Admits waiting requests while the queue has room.
    #[inline(never)]
    fn admit_waiting(&mut self) {
        while let Some(request) = self.interface.next_waiting() {
            self.enter(self.now, request);
            self.run_tasks();
        }
        Timer::Fetch.set_if(&mut self.array, self.interface.fetch(self.now));
    }
}
