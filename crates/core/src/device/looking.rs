//! Schedulers that look: what a LUN starts is chosen among all transactions that wait for it.
//!
//! The scheduler chooses the transaction that leads a command. The device itself chooses what joins that command: the
//! writes that fill the program, and the operations of other planes and dies. docs/model/timing.md has the rules.

use super::Device;
use crate::dispatch::Looking;
use crate::scheduler::RANKS;
use crate::sim::id::{LunId, PlaneId, RequestId, TransactionId};
use crate::sim::time::Time;
use crate::work::{Class, Kind, LunQueue, Queued};

impl Device {
    /// Notes that a transaction waits from now on.
    pub(super) fn note_arrival(&mut self, id: TransactionId) {
        if let Some(looking) = &mut self.dispatch.looking {
            *looking.since.entry(id) = self.now;
        }
    }

    /// Returns the transaction that `lun` takes next, with its rank, if there is a pool or a scheduler that looks.
    #[inline(never)]
    pub(super) fn choose_next(&mut self, lun: LunId) -> Option<(u8, TransactionId)> {
        if self.dispatch.looking.is_none() {
            self.first_with_pool(lun)
        } else {
            self.pick(lun, None, self.dispatch.dynamic)
        }
    }

    /// Returns the transaction of `rank` that `lun` takes next, with its rank, if there is a pool or a scheduler that
    /// looks.
    #[inline(never)]
    pub(super) fn choose_next_of(&mut self, lun: LunId, rank: u8) -> Option<(u8, TransactionId)> {
        if self.dispatch.looking.is_some() {
            self.pick(lun, Some(rank), self.dispatch.dynamic)
        } else {
            self.first_of(lun, rank)
        }
    }

    /// Returns the transaction that `lun` takes next of its own queues, with its rank.
    pub(super) fn choose_own(&mut self, lun: LunId) -> Option<(u8, TransactionId)> {
        if self.dispatch.looking.is_some() { self.pick(lun, None, false) } else { self.first_own(lun) }
    }

    /// Returns `true` if the scheduler would let a LUN take `id` next, which is not the first of its queue, and if that
    /// could change what a LUN does that works.
    #[inline]
    pub(super) fn picks_at_work(&mut self, lun: LunId, id: TransactionId) -> bool {
        self.dispatch.chooses && self.dispatch.looks_at_work && self.dispatch.looking.is_some() && {
            let picked = self.pick(lun, None, self.dispatch.dynamic);
            picked.is_some_and(|(_, picked)| picked == id)
        }
    }

    /// Removes `id`, the choice of a LUN, from the queue of the LUN. A write of the pool takes a plane of the LUN.
    #[inline(never)]
    pub(super) fn take_chosen(&mut self, lun: LunId, rank: u8, id: TransactionId) {
        if id == self.first_of_pool(PlaneId(self.array.planes_of(lun).start)) {
            let plane = self.choose_plane(lun);
            self.take_from_pool(plane);
            self.ftl.allocation.took(plane);
        } else {
            self.dispatch.waiting.remove(lun, self.transactions[id].plane, rank, &mut self.transactions, id);
        }
    }

    /// Asks the scheduler what `lun` takes next: of the transactions with `rank` if there is one, and of the pool if
    /// `pooled`. Without an answer, and where there is no choice, the ranks decide.
    fn pick(&mut self, lun: LunId, rank: Option<u8>, pooled: bool) -> Option<(u8, TransactionId)> {
        let mut looking = self.dispatch.looking.take()?;
        self.show_queue(lun, rank, pooled, &mut looking);
        let queue = &looking.queue;
        let picked =
            if queue.len() > 1 { self.dispatch.scheduler.pick(&LunQueue::new(lun, queue), self.now) } else { None };
        let picked = picked.and_then(|id| queue.iter().find(|queued| queued.id == id));
        // The first of the lowest rank.
        let next = picked.or_else(|| queue.iter().min_by_key(|queued| queued.rank));
        let next = next.map(|queued| (queued.rank, queued.id));
        self.dispatch.looking = Some(looking);
        next
    }

    /// Collects what waits for a LUN, in the order in which it is served within a rank.
    fn show_queue(&self, lun: LunId, rank: Option<u8>, pooled: bool, looking: &mut Looking) {
        let Looking { since, keyed, queue } = looking;
        keyed.clear();
        let mut add = |key: u64, rank: u8, id: TransactionId, plane: PlaneId| {
            let since = since.get(id).copied().unwrap_or_default();
            keyed.push((key, keyed.len() as u32, Queued { rank, plane, since, ..self.queued(id) }));
        };
        let shown = |shown: u8| rank.is_none_or(|rank| rank == shown);
        for rank in (0..RANKS as u8).filter(|&rank| shown(rank)) {
            // A transaction is not served before those that are in front of it, even if they were queued later.
            let mut last = (0, 0);
            self.dispatch.waiting.for_each(lun, rank, &self.transactions, |queue, id| {
                let before = if last.0 == queue { last.1 } else { 0 };
                last = (queue, self.transactions[id].order.max(before));
                add(last.1, rank, id, self.transactions[id].plane);
            });
        }
        let of_pool = self.first_of_pool(PlaneId(self.array.planes_of(lun).start));
        let rank = self.dispatch.ranks[Class::HostProgram as usize];
        if pooled && shown(rank) && of_pool.is_some() && self.has_ready_plane(lun) {
            add(self.transactions[of_pool].order, rank, of_pool, PlaneId::NONE);
        }
        keyed.sort_unstable_by_key(|&(key, position, _)| (key, position));
        queue.clear();
        queue.extend(keyed.iter().map(|&(_, _, queued)| queued));
    }

    /// Returns a queue entry for a transaction. The caller fills in rank, plane and arrival.
    fn queued(&self, id: TransactionId) -> Queued {
        let transaction = &self.transactions[id];
        let request = match transaction.kind {
            Kind::HostRead | Kind::Write => transaction.request(),
            Kind::RmwRead => self.transactions[transaction.write()].request(),
            _ => RequestId::NONE,
        };
        let request = request.is_some().then(|| self.front.requests[request].request);
        Queued {
            id,
            class: transaction.class,
            rank: 0,
            plane: PlaneId::NONE,
            since: Time::ZERO,
            request: request.map(|request| request.tag),
            stream: request.map(|request| request.stream),
        }
    }
}
