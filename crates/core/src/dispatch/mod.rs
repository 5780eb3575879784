//! Dispatch: the queues of operations that are ready, and what each execution unit works on.
//!
//! The FTL decides where an operation goes, and the array how long it takes. Dispatch decides which operation starts
//! next on a LUN, which ones join its command, and which overlap with it.

mod filling;
mod looking;
mod merging;
mod overlapping;
mod pool;
mod waiting;

use crate::config::DeviceConfig;
use crate::ftl::allocation::Allocation;
use crate::nand::array::Array;
use crate::scheduler::Scheduler;
use crate::sim::id::{PlaneId, TransactionId, UnitId};
use crate::sim::table::Table;
use crate::work::{Class, Fifo};
pub(crate) use filling::Filling;
pub(crate) use looking::Looking;
pub(crate) use merging::Merging;
pub(crate) use overlapping::Overlapping;
pub(crate) use pool::{AFTER_HELD, Pool};
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
        }
    }
}
