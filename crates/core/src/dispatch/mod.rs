//! Dispatch: the queues of operations that are ready, and what each execution unit works on.
//!
//! The FTL decides where an operation goes, and the array how long it takes. Dispatch decides which operation starts
//! next on a LUN, which ones join its command, and which overlap with it.

mod binder;
mod filling;
mod join;
mod looking;
mod next;
mod overlap;
mod pool;
mod start;
mod waiting;

use crate::config::{DeviceConfig, GcPace};
use crate::ftl::allocation::Allocation;
use crate::nand::array::{Array, LunState};
use crate::scheduler::Scheduler;
use crate::sim::id::{PlaneId, TransactionId, UnitId};
use crate::sim::table::Table;
use crate::work::{Class, Fifo, Task, Tasks, Transactions};
pub(crate) use binder::{Address, Binder, Parts, Target, View};
pub(crate) use filling::Filling;
pub(crate) use join::{Merging, reads_a_page};
use looking::{Looking, picks_at_work};
pub(crate) use next::first_for;
pub(crate) use overlap::{Overlapping, go_on_overlapping, overlap, serve_suspended};
pub(crate) use pool::{AFTER_HELD, Pool, offer_pool};
pub(crate) use start::{go_on, grant, notify, set_idle, start_idle};
pub(crate) use waiting::Waiting;

/// The state of dispatch.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    pub(crate) scheduler: Scheduler,
    /// Indexed by [`Class`].
    pub(crate) ranks: [u8; Class::COUNT],
    /// With a scheduler that looks.
    pub(crate) looking: Option<Box<Looking>>,
    /// True if a LUN may take other transactions than the first of its queues: there is a pool, or a scheduler that
    /// looks.
    pub(crate) chooses: bool,
    /// True if a LUN that waits for its channel yields to more urgent operations that arrive in the meantime.
    pub(crate) reconsiders: bool,
    /// True if operations that arrive may change what a LUN does that is not idle.
    pub(crate) looks_at_work: bool,
    /// Transactions that wait for a LUN, or for a plane of it if operations are merged.
    pub(crate) waiting: Waiting,
    pub(crate) merging: Merging,
    /// The transaction that each execution unit works on: the first of those that share its command.
    pub(crate) running: Table<UnitId, TransactionId>,
    pub(crate) overlapping: Overlapping,
    /// The transaction that has started behind that of `running`, or `NONE`.
    pub(crate) ahead: Table<UnitId, TransactionId>,
    /// The transaction that each execution unit has suspended, or `NONE`.
    pub(crate) suspended: Table<UnitId, TransactionId>,
    pub(crate) pool: Pool,
    /// Writes that wait for their plane to have room.
    pub(crate) stalled: Table<PlaneId, Fifo>,
    /// With `controller.fill_timeout`: writes that wait for others.
    pub(crate) filling: Option<Box<Filling>>,
    /// Number of transactions that were queued. Holds add [`AFTER_HELD`].
    pub(crate) orders: u64,
    /// True with dynamic allocation: writes wait in pools.
    pub(crate) dynamic: bool,
    /// Mapping units of a program.
    units_per_program: u32,
    /// True with `gc.pace = "proportional"`: a LUN without work is offered to garbage collection.
    paces: bool,
    /// True if binding a transaction may set off others: the map, a journal or a checkpoint is in flash.
    pub(crate) binding_sets_off: bool,
    /// Deliberate defects, to show that tests find them.
    pub(crate) loses_tasks: bool,
    pub(crate) swaps_tasks: bool,
}

impl Dispatch {
    /// Creates empty queues. `pools` is the allocation, if it is dynamic.
    pub(crate) fn new(
        config: &DeviceConfig,
        scheduler: Scheduler,
        pools: Option<&Allocation>,
        array: &Array,
    ) -> Dispatch {
        let merging = Merging::new(config);
        let overlaps = config.nand.advanced.overlaps();
        let reconsiders = scheduler.reconsiders() && !overlaps;
        let by_plane = merging.any || config.units_per_program() > 1;
        let none = Table::new(array.units(), TransactionId::NONE);
        Dispatch {
            ranks: Class::ALL.map(|class| scheduler.rank(class)),
            looking: scheduler.looks().then(Default::default),
            chooses: pools.is_some() || scheduler.looks(),
            reconsiders,
            looks_at_work: reconsiders || overlaps,
            scheduler,
            waiting: Waiting::new(array.luns(), config.planes_per_lun(), by_plane),
            running: none.clone(),
            overlapping: Overlapping::new(config),
            ahead: none.clone(),
            suspended: none,
            pool: Pool::new(config, pools, array),
            stalled: Table::new(config.total_planes(), Fifo::default()),
            filling: Filling::new(config, pools.map(|pools| pools.pools()), &merging).map(Box::new),
            merging,
            orders: 0,
            dynamic: pools.is_some(),
            units_per_program: config.units_per_program(),
            paces: config.gc.pace == GcPace::Proportional,
            binding_sets_off: false,
            loses_tasks: false,
            swaps_tasks: false,
        }
    }

    /// Returns the first of the transactions that an execution unit has worked on, which does not any more.
    #[inline]
    pub(crate) fn ended(&mut self, unit: UnitId) -> TransactionId {
        std::mem::replace(&mut self.running[unit], TransactionId::NONE)
    }

    /// Returns the transaction of the plane whose data have left, while other planes of its execution unit still work.
    #[inline]
    pub(crate) fn member_ended(&mut self, unit: UnitId, transactions: &Transactions) -> TransactionId {
        let id = self.running[unit];
        self.running[unit] = transactions[id].next;
        id
    }

    /// Notifies the LUNs that were held back, and the idle LUNs of writes in pools.
    pub(crate) fn release_held(&mut self, tasks: &mut Tasks) {
        self.orders += AFTER_HELD;
        if self.swaps_tasks {
            tasks.swap_held();
        }
        tasks.release();
        if self.dynamic {
            self.offer_pools(tasks);
        }
    }
}

/// Adds a transaction to the queue of its plane, and notifies the LUN if that could change what the LUN does.
#[inline]
pub(crate) fn enqueue(b: &mut impl Binder, id: TransactionId) {
    let Parts { dispatch, transactions, array, .. } = b.parts();
    let transaction = &mut transactions[id];
    transaction.order = dispatch.orders;
    dispatch.orders += 1;
    let plane = transaction.plane;
    let lun = array.lun_of(plane);
    let rank = dispatch.ranks[transaction.class as usize];
    dispatch.waiting.push(lun, plane, rank, transactions, id);
    if array.is_watched() {
        b.show_queued(id, lun);
    }
    let View { dispatch, array, .. } = b.view();
    let state = array.state(lun);
    if state == LunState::Busy && dispatch.waiting.first(lun, plane, rank) != id && !picks_at_work(b, lun, id) {
        return; // Behind others it changes nothing for a LUN that works.
    }
    let Parts { dispatch, tasks, .. } = b.parts();
    if tasks.holds() {
        if !dispatch.loses_tasks || !dispatch.orders.is_multiple_of(16) {
            tasks.hold_back(lun);
        }
    } else if state == LunState::Idle || dispatch.looks_at_work {
        tasks.push(Task::Start(lun));
    }
}
