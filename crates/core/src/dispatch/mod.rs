//! Dispatch: the queues of ready operations, and the operations that the execution units work on.
//!
//! The FTL decides the address of an operation, and the array its duration. Dispatch decides which operation starts
//! next on a LUN, which ones join its command, and which overlap with it.

mod binder;
mod command_rules;
mod filling;
mod join;
mod next;
mod offer;
mod overlap;
mod overlap_rules;
mod pick;
mod pick_queue;
mod plane_reads;
mod pool;
mod pool_writes;
mod start;
mod targets;
mod waiting;
mod waits;

use crate::config::{DeviceConfig, GcPace};
use crate::ftl::allocation::Allocation;
use crate::nand::array::Array;
use crate::nand::gauge::{Gauge, QueueSample};
use crate::scheduler::Scheduler;
use crate::sim::id::{BlockId, ExecUnitId, LunId, PlaneId, Ppn, TransactionId};
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::{Class, Fifo, Kind, Task, Tasks, Transactions, chain};
pub(crate) use binder::{Binder, Parts, View};
use command_rules::Merging;
pub(crate) use filling::{Filling, Staged};
pub(crate) use next::first_for;
pub(crate) use offer::offer_pool;
pub(crate) use overlap::overlap_next;
use overlap_rules::Overlapping;
use pick_queue::Picking;
use plane_reads::PlaneReads;
use pool::{AFTER_HELD, Pool};
pub(crate) use start::{
    continue_at_once, continue_operation, continue_overlapping, enqueue, enqueue_last, grant, notify, serve_suspended,
    set_idle, start_idle,
};
use waiting::Waiting;

/// The state of dispatch.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    scheduler: Scheduler,
    /// Indexed by [`Class`].
    ranks: [u8; Class::COUNT],
    /// Queue state for a scheduler that picks transactions.
    picking: Option<Box<Picking>>,
    /// True if a LUN may take other transactions than the first of its queues, because there is a pool or the scheduler
    /// picks transactions.
    chooses: bool,
    /// True if a LUN that waits for its channel yields to more urgent operations that arrive in the meantime.
    reconsiders: bool,
    /// True if an operation may start without its queue when nothing else waits for its LUN: no write of a pool can
    /// start instead of it, no operation overlaps with it, binding it queues none, and no queue is measured.
    starts_alone: bool,
    /// True if newly queued operations may change the work of a LUN that is not idle.
    looks_at_work: bool,
    /// Transactions that wait for a LUN, or for one of its planes if transactions may share commands.
    waiting: Waiting,
    merging: Merging,
    /// First of the transactions that share the current command of each execution unit.
    running: Table<ExecUnitId, TransactionId>,
    overlapping: Overlapping,
    /// `None` unless planes of a die read independently.
    plane_reads: Option<PlaneReads>,
    /// Transaction that was loaded after that of `running`, or `NONE`. Indexed by execution unit.
    ahead: Table<ExecUnitId, TransactionId>,
    /// Suspended transaction of each execution unit, or `NONE`.
    suspended: Table<ExecUnitId, TransactionId>,
    pool: Pool,
    /// Writes that wait for their plane to have room.
    stalled: Table<PlaneId, Fifo>,
    /// Writes that wait to fill a program, with `controller.fill_timeout`.
    pub(crate) filling: Option<Box<Filling>>,
    /// Number of transactions that were queued so far. Each release of held LUNs adds [`AFTER_HELD`].
    orders: u64,
    /// True with dynamic allocation: writes wait in pools.
    dynamic: bool,
    /// Number of mapping units of a program.
    units_per_program: u32,
    /// True with `gc.pace = "proportional"`: a LUN without work is offered to garbage collection.
    paces: bool,
    /// True if binding a transaction may queue others, because the map, a journal or a checkpoint is in flash.
    binding_sets_off: bool,
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
        let overlaps = config.overlaps();
        let plane_reads = PlaneReads::new(config, array);
        let reconsiders = scheduler.reconsiders() && !overlaps;
        let by_plane = merging.any || config.units_per_program() > 1;
        let none = Table::new(array.units(), TransactionId::NONE);
        let mut waiting = Waiting::new(array.luns(), config.planes_per_lun(), by_plane);
        if plane_reads.is_some() {
            waiting.add_reading_planes(config.planes_together());
        }
        waiting.gauge = Gauge::new(config, array.luns()).map(Box::new);
        Dispatch {
            ranks: Class::ALL.map(|class| scheduler.rank(class)),
            picking: scheduler.picks().then(Default::default),
            chooses: pools.is_some() || scheduler.picks() || plane_reads.is_some(),
            reconsiders,
            starts_alone: pools.is_none()
                && !scheduler.picks()
                && !overlaps
                && !merging.blind
                && waiting.gauge.is_none(),
            looks_at_work: reconsiders || overlaps,
            scheduler,
            waiting,
            running: none.clone(),
            overlapping: Overlapping::new(config),
            plane_reads,
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
        }
    }

    /// Sets whether binding a transaction may queue others.
    pub(crate) fn set_binding_sets_off(&mut self, sets_off: bool) {
        self.binding_sets_off = sets_off;
        self.starts_alone &= !sets_off;
    }

    /// Sets the time of the changes that follow, if the device measures the lengths of queues.
    #[inline(always)]
    pub(crate) fn set_now(&mut self, now: Time) {
        if let Some(gauge) = &mut self.waiting.gauge {
            gauge.set_now(now);
        }
    }

    /// Starts to search for the longest queues again, at the start of a measurement.
    pub(crate) fn reset_queues(&mut self) {
        if let Some(gauge) = &mut self.waiting.gauge {
            gauge.reset();
        }
    }

    /// Samples the queue of each gang; none without gangs.
    pub(crate) fn sample_queues(&self, at: Time, into: &mut Vec<QueueSample>) {
        into.clear();
        if let Some(gauge) = &self.waiting.gauge {
            gauge.sample(at, into);
        }
    }

    /// Returns the first of the transactions that an execution unit has completed, and clears it.
    #[inline]
    pub(crate) fn ended(&mut self, unit: ExecUnitId) -> TransactionId {
        std::mem::replace(&mut self.running[unit], TransactionId::NONE)
    }

    /// Returns the transaction of the plane whose data have been transferred, while its execution unit continues with
    /// others.
    #[inline]
    pub(crate) fn member_ended(&mut self, unit: ExecUnitId, transactions: &Transactions) -> TransactionId {
        let id = self.running[unit];
        self.running[unit] = transactions[id].next;
        id
    }

    /// Returns the first of the transactions that an execution unit works on, or `NONE`.
    pub(crate) fn at_work(&self, unit: ExecUnitId) -> TransactionId {
        self.running[unit]
    }

    /// Returns `true` if a program of writes is in the cache register of an execution unit, at an address for which
    /// `is_there` returns `true`.
    pub(crate) fn is_programmed_ahead(
        &self,
        transactions: &Transactions,
        unit: ExecUnitId,
        is_there: impl Fn(Ppn) -> bool,
    ) -> bool {
        let first = self.ahead[unit].get();
        let mut ahead = first.into_iter().flat_map(|first| chain(transactions, first)).map(|id| &transactions[id]);
        ahead.any(|ahead| ahead.kind == Kind::Write && is_there(ahead.ppn))
    }

    /// Returns `true` if an execution unit has a program in flight at an address for which `is_there` returns `true`.
    pub(crate) fn is_programmed(
        &self,
        transactions: &Transactions,
        unit: ExecUnitId,
        is_there: impl Fn(Ppn) -> bool,
    ) -> bool {
        let first = [self.running[unit], self.ahead[unit], self.suspended[unit]];
        let in_flight = first.into_iter().filter(|id| id.is_some()).map(|id| &transactions[id]);
        in_flight.into_iter().any(|ended| matches!(ended.kind, Kind::Write | Kind::GcWrite) && is_there(ended.ppn))
    }

    /// Returns the scheduling policy.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Returns the rank of a class.
    #[inline]
    pub(crate) fn rank_of(&self, class: Class) -> u8 {
        self.ranks[class as usize]
    }

    /// Returns `true` if the scheduler picks transactions.
    pub(crate) fn picks(&self) -> bool {
        self.picking.is_some()
    }

    /// Reports a queued transaction to the probe, and to a scheduler that picks transactions.
    #[inline(always)]
    pub(crate) fn note_queued(&mut self, array: &mut Array, id: TransactionId, now: Time) {
        if array.records_queued() {
            self.record_queued(array, id, now);
        }
    }

    #[inline(never)]
    fn record_queued(&mut self, array: &mut Array, id: TransactionId, now: Time) {
        if let Some(picking) = &mut self.picking {
            picking.note_arrival(id, now);
        }
        if let Some(probe) = array.probe_mut() {
            probe.enqueued(id, now);
        }
    }

    /// Returns `true` with dynamic allocation: writes wait in pools.
    #[inline]
    pub(crate) fn has_pools(&self) -> bool {
        self.dynamic
    }

    /// Returns `true` if operations of several planes or dies may share a command.
    #[inline]
    pub(crate) fn merges(&self) -> bool {
        self.merging.any
    }

    /// Returns `true` if operations of an execution unit may overlap.
    #[inline]
    pub(crate) fn overlaps(&self) -> bool {
        self.overlapping.any
    }

    /// Parks a write until its plane has room.
    pub(crate) fn park(&mut self, transactions: &mut Transactions, plane: PlaneId, id: TransactionId) {
        self.stalled[plane].push(transactions, id);
    }

    /// Parks a write that has not been queued before.
    pub(crate) fn park_new(&mut self, transactions: &mut Transactions, plane: PlaneId, id: TransactionId) {
        transactions[id].order = self.orders;
        self.orders += 1;
        self.park(transactions, plane, id);
    }

    /// Returns `true` if writes wait for a plane to have room.
    #[inline]
    pub(crate) fn has_parked(&self, plane: PlaneId) -> bool {
        !self.stalled[plane].is_empty()
    }

    /// Removes the oldest write that waits for a plane to have room. Returns `NONE` if there is none.
    pub(crate) fn unpark(&mut self, transactions: &mut Transactions, plane: PlaneId) -> TransactionId {
        self.stalled[plane].pop(transactions)
    }

    /// Returns the writes that wait for room: in the pool of a plane, or parked for it. Oldest first.
    pub(crate) fn without_room<'a>(
        &self,
        transactions: &'a Transactions,
        plane: PlaneId,
    ) -> impl Iterator<Item = TransactionId> + use<'a> {
        let queue = if self.dynamic { self.pool.of(plane) } else { &self.stalled[plane] };
        queue.iter(transactions)
    }

    /// Removes a write from those that wait for room, for a plane.
    pub(crate) fn take_without_room(&mut self, transactions: &mut Transactions, plane: PlaneId, id: TransactionId) {
        if self.dynamic {
            self.pool.remove(transactions, plane, id);
        } else {
            self.stalled[plane].remove(transactions, id);
        }
    }

    /// Returns the number of writes other than `id` that depend on a block: those that wait for room in a plane, and
    /// those that wait for its LUN.
    pub(crate) fn count_waiting_on(
        &self,
        transactions: &Transactions,
        (lun, plane): (LunId, PlaneId),
        block: BlockId,
        id: TransactionId,
    ) -> u32 {
        let waits = |other: &TransactionId| *other != id && transactions[*other].dependency == block;
        let mut count = self.without_room(transactions, plane).filter(waits).count() as u32;
        self.waiting.for_each(lun, self.rank_of_writes(), transactions, |_, other| count += u32::from(waits(&other)));
        count
    }

    /// Removes all writes that wait in pools or are parked for planes, and returns their queues.
    pub(crate) fn take_without_place(&mut self) -> Vec<Fifo> {
        self.pool.lines.iter_mut().chain(&mut self.stalled).map(std::mem::take).collect()
    }

    /// Puts a number of writes, which have room now, before those that wait for a plane, and notifies its LUN.
    pub(crate) fn prepend(
        &mut self,
        transactions: &mut Transactions,
        tasks: &mut Tasks,
        (lun, plane): (LunId, PlaneId),
        writes: (Fifo, u32),
    ) {
        self.waiting.prepend(lun, plane, self.rank_of_writes(), transactions, writes);
        tasks.push(Task::Start(lun));
    }

    /// Puts a transaction before those of its class that wait for a plane.
    pub(crate) fn put_first(&mut self, transactions: &mut Transactions, lun: LunId, id: TransactionId) {
        let rank = self.rank_of(transactions[id].class);
        let queue = self.queue_of(&transactions[id]);
        self.waiting.push_front(lun, queue, rank, transactions, id);
    }

    /// Returns the first transaction with the rank of host writes that waits for a plane, or `NONE`.
    #[inline]
    pub(crate) fn first_write(&self, lun: LunId, plane: PlaneId) -> TransactionId {
        self.waiting.first(lun, plane, self.rank_of_writes())
    }

    /// Returns `true` if a write must not start before the writes that arrive with it are queued. They may fill its
    /// program or share its command. With dynamic allocation, the write must not occupy a LUN that another one has to
    /// read first.
    #[inline]
    pub(crate) fn gathers_writes(&self) -> bool {
        self.units_per_program > 1 || self.merging.any || self.dynamic
    }

    /// Releases the LUNs if a handler `holds` them back, after all tasks that it has pushed.
    #[inline(always)]
    pub(crate) fn release_behind(&mut self, tasks: &mut Tasks, holds: bool) {
        if holds && tasks.any_new() {
            tasks.push(Task::Release);
        } else if holds {
            self.release_held(tasks);
        }
    }

    /// Notifies the LUNs that were held back, and the idle LUNs of writes in pools.
    pub(crate) fn release_held(&mut self, tasks: &mut Tasks) {
        self.orders += AFTER_HELD;
        tasks.release();
        if self.dynamic {
            self.offer_pools(tasks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::cells::CellMode;
    use crate::ftl::Ftl;
    use crate::ftl::gc::collector::Collector;
    use crate::host::interface::HostInterface;
    use crate::nand::array::{self, LunState, Operation, Outcome, Owner, Spot};
    use crate::sim::id::Lpn;
    use crate::work::Transaction;

    /// Dispatch, an array and an FTL that binds writes to the pages of its frontiers.
    struct Bench {
        dispatch: Dispatch,
        transactions: Transactions,
        array: Array,
        tasks: Tasks,
        now: Time,
        ftl: Ftl,
        jobs: Collector,
        interface: HostInterface,
        /// Transactions that need no operation when they are bound.
        void: Vec<TransactionId>,
        /// Transactions in the order of completion.
        ended: Vec<TransactionId>,
    }

    impl Binder for Bench {
        fn view(&self) -> View<'_> {
            let Bench { dispatch, transactions, array, ftl, jobs, interface, now, .. } = self;
            View { dispatch, transactions, array, ftl, jobs, interface, buffer: None, now: *now }
        }

        fn parts(&mut self) -> Parts<'_> {
            let Bench { dispatch, transactions, array, tasks, ftl, interface, now, .. } = self;
            Parts { dispatch, transactions, array, tasks, ftl, interface, now: *now }
        }

        fn bind(&mut self, id: TransactionId, _: u8, at: Spot) -> bool {
            if self.void.contains(&id) {
                return false;
            }
            let transaction = &mut self.transactions[id];
            transaction.next = TransactionId::NONE;
            let (plane, class) = (transaction.plane, transaction.class);
            let timing = self.array.timing();
            let times = timing.of(CellMode::Native);
            let kind = array::Kind::from(transaction.kind);
            let (data, cell) = match kind {
                array::Kind::Program => {
                    let frontier = self.ftl.blocks.frontier_for_host(plane, 0);
                    transaction.ppn = self.ftl.blocks.advance(frontier, 1);
                    (times.program_in, times.program(0))
                }
                _ => (timing.page_out, times.read(0)),
            };
            let ppn = transaction.ppn.0;
            let rank = self.dispatch.ranks[class as usize];
            *self.array.draft_mut(at) =
                Operation { kind, class, rank, plane, members: 1, pages: 1, data, cell, ppn, ..Operation::default() };
            true
        }

        fn show_queued(&mut self, _: TransactionId, _: LunId) {}
    }

    impl Bench {
        /// Builds the dispatch of the device `tiny` with options.
        fn new(options: &[&str]) -> Bench {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            let config: DeviceConfig = crate::config::load("tiny", &options).unwrap();
            let scheduler = config.scheduler.build(&config, 1, &Default::default()).unwrap();
            let ftl = Ftl::new(&config, 1, false, &Default::default()).unwrap();
            let array = Array::new(&config, 0);
            let is_dynamic = ftl.allocation.home(0).is_none();
            Bench {
                dispatch: Dispatch::new(&config, scheduler, is_dynamic.then_some(&ftl.allocation), &array),
                transactions: Transactions::default(),
                array,
                tasks: Tasks::default(),
                now: Time::ZERO,
                ftl,
                jobs: Collector::new(&config),
                interface: HostInterface::new(&config, 1),
                void: Vec::new(),
                ended: Vec::new(),
            }
        }

        fn transaction(&mut self, kind: Kind, class: Class, plane: PlaneId) -> TransactionId {
            let mut transaction = Transaction::new(kind, class);
            (transaction.plane, transaction.lpn, transaction.complete) = (plane, Lpn(0), true);
            self.transactions.insert(transaction)
        }

        /// Returns the number of pages that were programmed in the open block of a plane.
        fn programmed(&self, plane: u32) -> u32 {
            let blocks = &self.ftl.blocks;
            let next = blocks.next_ppn(blocks.frontier_for_host(PlaneId(plane), 0));
            next.map_or(0, |ppn| blocks.offset_in_block(ppn))
        }

        fn write(&mut self, plane: u32) -> TransactionId {
            let id = self.transaction(Kind::Write, Class::HostProgram, PlaneId(plane));
            enqueue(self, id);
            id
        }

        fn read(&mut self, plane: u32, page: u32) -> TransactionId {
            let id = self.transaction(Kind::HostRead, Class::HostRead, PlaneId(plane));
            let blocks = &self.ftl.blocks;
            let first = (0..).map(BlockId).find(|&block| blocks.plane_of(block) == PlaneId(plane)).unwrap();
            self.transactions[id].ppn = Ppn(blocks.first_unit(first).0 + page);
            enqueue(self, id);
            id
        }

        fn run_tasks(&mut self) {
            while let Some(task) = self.tasks.pop() {
                match task {
                    Task::Start(lun) => notify(self, lun),
                    Task::Offer(pool) => offer_pool(self, pool),
                    Task::Grant(channel) => grant(self, channel),
                    other => unreachable!("dispatch pushed {other:?}"),
                }
            }
        }

        /// Runs the array up to `until`, like the router of a device.
        fn run_until(&mut self, until: Time) {
            self.run_tasks();
            while let Some((at, resource)) = self.array.events().pop(until) {
                self.now = at;
                match self.array.owner(resource) {
                    Owner::Unit(unit) => self.unit_event(unit),
                    Owner::Channel(channel) => grant(self, channel),
                    Owner::Other(_) => unreachable!("the bench has no timers"),
                }
                self.run_tasks();
            }
            self.now = self.now.max(until.min(Time(u64::MAX / 2)));
        }

        fn unit_event(&mut self, unit: ExecUnitId) {
            let lun = self.array.lun_of_unit(unit);
            match self.array.unit_event(unit, self.now) {
                Outcome::WantsChannel(rank) => continue_operation(self, unit, rank),
                Outcome::MemberOut(rank) => {
                    let id = self.dispatch.member_ended(unit, &self.transactions);
                    self.ended.push(id);
                    continue_operation(self, unit, rank);
                }
                Outcome::GoesOn => {}
                Outcome::CellsWork => overlap_next(self, lun),
                Outcome::Suspended => serve_suspended(self, unit, lun),
                Outcome::Done => {
                    let mut id = self.dispatch.ended(unit);
                    while id.is_some() {
                        self.ended.push(id);
                        id = self.transactions[id].next;
                    }
                    if !(self.dispatch.overlapping.any && continue_overlapping(self, unit, lun)) && set_idle(self, lun)
                    {
                        start_idle(self, lun);
                    }
                }
            }
        }

        fn run(&mut self) {
            self.run_until(Time::NEVER);
        }
    }

    #[test]
    fn a_lun_starts_by_rank_and_then_by_age() {
        let mut bench = Bench::new(&["scheduler=read-first"]);
        let writes = [0, 1, 0].map(|plane| bench.write(plane));
        bench.run_until(Time(1));
        let reads = [1, 0].map(|plane| bench.read(plane, 7));
        bench.run();
        assert_eq!(bench.ended, [writes[0], reads[0], reads[1], writes[1], writes[2]]);
        assert_eq!([0, 1].map(|plane| bench.programmed(plane)), [2, 1]);
    }

    #[test]
    fn a_transaction_without_an_operation_is_skipped() {
        let mut bench = Bench::new(&[]);
        let first = bench.write(0);
        bench.run_until(Time(1));
        let ids = [0, 0, 1].map(|plane| bench.write(plane));
        bench.void.extend(&ids[..2]);
        bench.run();
        assert_eq!(bench.ended, [first, ids[2]]);
        let idle = bench.array.state(LunId(0));
        assert_eq!((idle, bench.dispatch.running[ExecUnitId(0)]), (LunState::Idle, TransactionId::NONE));
    }

    #[test]
    fn reads_of_a_page_with_the_same_number_share_a_command() {
        for (page, merged) in [(5, true), (6, false)] {
            let mut bench = Bench::new(&["nand.advanced.multi_plane_read=true"]);
            bench.tasks.hold_unless_held();
            let ids = [bench.read(0, 5), bench.read(1, page)];
            let Bench { dispatch, tasks, .. } = &mut bench;
            dispatch.release_held(tasks);
            bench.run_tasks();
            let unit = bench.array.unit_of(PlaneId(0));
            assert_eq!(bench.dispatch.running[unit], ids[0]);
            assert_eq!(bench.transactions[ids[0]].next == ids[1], merged);
            bench.run();
            assert_eq!(bench.ended, ids);
        }
    }

    #[test]
    fn a_read_suspends_a_program() {
        let suspend = "nand.advanced.suspend={ program = true, latency = \"20us\", resume = \"10us\" }";
        let mut bench = Bench::new(&[suspend, "scheduler=read-first", "nand.concurrency=die"]);
        let write = bench.write(0);
        bench.run_until(Time::from_us(100));
        let read = bench.read(0, 0);
        bench.run();
        assert_eq!(bench.ended, [read, write]);
    }

    #[test]
    fn the_writes_of_a_pool_go_to_idle_luns_with_room() {
        let mut bench = Bench::new(&["allocation=dynamic"]);
        // One LUN has no room, and another one has room in all but one plane.
        for plane in [0, 1, 2].map(PlaneId) {
            while bench.ftl.blocks.takes_host_write(plane) {
                bench.ftl.blocks.advance(bench.ftl.blocks.frontier_for_host(plane, 0), 1);
            }
            bench.ftl.refresh_ready(plane);
        }
        for _ in 0..4 {
            let id = bench.transaction(Kind::Write, Class::HostProgram, PlaneId::NONE);
            let Bench { dispatch, transactions, tasks, .. } = &mut bench;
            dispatch.pool_write(transactions, tasks, 0, id);
            bench.run_tasks();
        }
        bench.run();
        let mut planes: Vec<u32> = bench.ended.iter().map(|&id| bench.transactions[id].plane.0).collect();
        planes.sort_unstable();
        assert_eq!(planes.len(), 4);
        let luns: Vec<u32> = planes.iter().map(|&plane| bench.array.lun_of(PlaneId(plane)).0).collect();
        assert!(planes.iter().all(|plane| ![0, 1, 2].contains(plane)), "{planes:?}");
        assert!([1, 2, 3].iter().all(|lun| luns.contains(lun)), "{luns:?}");
    }
}
