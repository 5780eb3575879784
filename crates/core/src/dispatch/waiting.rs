//! Queues of transactions by rank: one for each LUN, or one for each of its planes if transactions may share commands.

use std::hint::select_unpredictable;

use crate::nand::gauge::Gauge;
use crate::scheduler::RANKS;
use crate::sim::id::{LunId, PlaneId, TransactionId};
use crate::work::fifo::{Fifo, Links, Ordered};

const NONE: TransactionId = TransactionId::NONE;

/// Limit of the search for a transaction that is not the first of its queue, which keeps long queues cheap.
const LOOK_AHEAD: u32 = 8;

/// Queues of all LUNs.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Indexed by LUN or plane, then by rank.
    lines: Vec<[Fifo; RANKS]>,
    /// Number of waiting transactions. Indexed by LUN, then by rank.
    counts: Vec<[u32; RANKS]>,
    /// Bit mask of the ranks with waiting transactions, which saves the search of empty queues. Indexed by LUN.
    ranks: Vec<u8>,
    /// Order of the first waiting transaction, or `u64::MAX`. Indexed by plane, then by rank; empty if each LUN has one
    /// queue.
    orders: Vec<[u64; RANKS]>,
    planes_per_lun: usize,
    by_plane: bool,
    /// Number of queues of each LUN for planes that read independently. They follow all other queues.
    reading_planes: usize,
    /// Lengths of the queues over time, if the device measures them.
    pub(super) gauge: Option<Box<Gauge>>,
}

impl Waiting {
    /// Creates empty queues for `luns` LUNs: one for each plane if `by_plane`, otherwise one for each LUN.
    pub fn new(luns: u32, planes_per_lun: u32, by_plane: bool) -> Waiting {
        let lines = if by_plane { luns * planes_per_lun } else { luns };
        Waiting {
            lines: vec![Default::default(); lines as usize],
            counts: vec![[0; RANKS]; luns as usize],
            ranks: vec![0; luns as usize],
            orders: vec![[u64::MAX; RANKS]; if by_plane { lines as usize } else { 0 }],
            planes_per_lun: planes_per_lun as usize,
            by_plane,
            reading_planes: 0,
            gauge: None,
        }
    }

    /// Adds a queue for each of `planes` planes of a LUN, which read independently. They follow the queues of the LUNs.
    pub fn add_reading_planes(&mut self, planes: u32) {
        let lines = self.lines.len() * (1 + planes as usize);
        self.lines.resize(lines, Default::default());
        self.orders.resize(lines, [u64::MAX; RANKS]);
        self.reading_planes = planes as usize;
    }

    /// Returns the oldest of the first transactions with `rank` in these queues, or [`TransactionId::NONE`].
    pub fn oldest_of(&self, queues: impl Iterator<Item = PlaneId>, rank: u8) -> TransactionId {
        let rank = usize::from(rank);
        let oldest = queues.min_by_key(|queue| self.orders[queue.index()][rank]);
        oldest.map_or(NONE, |queue| self.lines[queue.index()][rank].first())
    }

    /// Returns the index of the first queue of a plane that reads independently.
    fn first_reading(&self) -> usize {
        self.lines.len() - self.counts.len() * self.reading_planes
    }

    /// Counts new transactions of a LUN, and reports them to the gauge.
    #[inline(always)]
    fn note_added(&mut self, lun: LunId, rank: u8, count: u32) {
        self.counts[lun.index()][usize::from(rank)] += count;
        self.ranks[lun.index()] |= u8::from(count > 0) << rank;
        if let Some(gauge) = &mut self.gauge {
            gauge.add(lun, count);
        }
    }

    /// Counts the removal of `id`, unless it is `NONE`, and reports it to the gauge.
    #[inline(always)]
    fn note_removed(&mut self, lun: LunId, rank: u8, id: TransactionId) {
        if id == NONE {
            return;
        }
        let count = &mut self.counts[lun.index()][usize::from(rank)];
        *count -= 1;
        self.ranks[lun.index()] &= !(u8::from(*count == 0) << rank);
        if let Some(gauge) = &mut self.gauge {
            gauge.remove(lun);
        }
    }

    #[inline]
    fn index(&self, lun: LunId, plane: PlaneId) -> usize {
        select_unpredictable(self.by_plane, plane.index(), lun.index())
    }

    /// Calls `act` with the queue of a LUN and its plane, and updates the order of its first transaction.
    #[inline]
    fn change<L: Ordered, T>(
        &mut self,
        (lun, plane, rank): (LunId, PlaneId, u8),
        links: &mut L,
        act: impl FnOnce(&mut Fifo, &mut L) -> T,
    ) -> T {
        let index = self.index(lun, plane);
        let rank = usize::from(rank);
        let line = &mut self.lines[index][rank];
        let done = act(line, links);
        if let Some(orders) = self.orders.get_mut(index) {
            orders[rank] = if line.is_empty() { u64::MAX } else { links.order(line.first()) };
        }
        done
    }

    /// Returns the first transaction with `rank` in the queue of a LUN and its plane, or [`TransactionId::NONE`].
    #[inline]
    pub fn first(&self, lun: LunId, plane: PlaneId, rank: u8) -> TransactionId {
        self.lines[self.index(lun, plane)][usize::from(rank)].first()
    }

    /// Appends `id` to the queue of a LUN and its plane.
    #[inline(always)]
    pub fn push(&mut self, lun: LunId, plane: PlaneId, rank: u8, links: &mut impl Ordered, id: TransactionId) {
        let index = self.index(lun, plane);
        let rank = usize::from(rank);
        let line = &mut self.lines[index][rank];
        // The first transaction of a non-empty queue does not change, so its order need not be loaded.
        if line.is_empty()
            && let Some(orders) = self.orders.get_mut(index)
        {
            orders[rank] = links.order(id);
        }
        line.push(links, id);
        self.note_added(lun, rank as u8, 1);
    }

    /// Inserts `id` at the front of the queue of a LUN and its plane.
    pub fn push_front(&mut self, lun: LunId, plane: PlaneId, rank: u8, links: &mut impl Ordered, id: TransactionId) {
        self.change((lun, plane, rank), links, |line, links| line.push_front(links, id));
        self.note_added(lun, rank, 1);
    }

    /// Prepends `others`, a queue of `count` transactions, to the queue of a LUN and its plane, in their order.
    pub fn prepend(
        &mut self,
        lun: LunId,
        plane: PlaneId,
        rank: u8,
        links: &mut impl Ordered,
        (others, count): (Fifo, u32),
    ) {
        self.change((lun, plane, rank), links, |line, links| line.prepend(links, others));
        self.note_added(lun, rank, count);
    }

    /// Removes and returns the first transaction with `rank` in the queue of a LUN and its plane, or
    /// [`TransactionId::NONE`].
    #[inline(always)]
    pub fn pop(&mut self, lun: LunId, plane: PlaneId, rank: u8, links: &mut impl Ordered) -> TransactionId {
        let index = self.index(lun, plane);
        let line = &mut self.lines[index][usize::from(rank)];
        let id = line.pop(links);
        if self.by_plane {
            let next = line.first();
            self.orders[index][usize::from(rank)] = if next == NONE { u64::MAX } else { links.order(next) };
        }
        self.note_removed(lun, rank, id);
        id
    }

    /// Removes `id` from the queue of a LUN and its plane.
    pub fn remove(&mut self, lun: LunId, plane: PlaneId, rank: u8, links: &mut impl Ordered, id: TransactionId) {
        self.change((lun, plane, rank), links, |line, links| line.remove(links, id));
        self.note_removed(lun, rank, id);
    }

    /// Calls `each` for the transactions with `rank` in each queue of a LUN, in their order. Its first argument is the
    /// number of the queue.
    pub fn for_each(&self, lun: LunId, rank: u8, links: &impl Links, mut each: impl FnMut(usize, TransactionId)) {
        let queues = if self.by_plane { self.planes_per_lun } else { 1 };
        let reading = &self.lines[self.first_reading() + lun.index() * self.reading_planes..][..self.reading_planes];
        for (queue, ranks) in self.lines[lun.index() * queues..][..queues].iter().chain(reading).enumerate() {
            let mut id = ranks[usize::from(rank)].first();
            while id != NONE {
                each(queue, id);
                id = links.next(id);
            }
        }
    }

    /// Removes and returns the first transaction that `suits` in the queue of a LUN and its plane, if it is among the
    /// eight oldest ones.
    #[inline]
    pub fn pop_suitable<L: Ordered>(
        &mut self,
        (lun, plane, rank): (LunId, PlaneId, u8),
        links: &mut L,
        suits: impl Fn(&L, TransactionId) -> bool,
    ) -> TransactionId {
        let id = self.change((lun, plane, rank), links, |line, links| line.pop_suitable(links, LOOK_AHEAD, suits));
        self.note_removed(lun, rank, id);
        id
    }

    /// Returns the lowest rank of all transactions that wait for `lun`.
    #[inline(always)]
    pub fn rank_of_first(&self, lun: LunId) -> Option<u8> {
        let ranks = self.ranks[lun.index()];
        (ranks != 0).then(|| ranks.trailing_zeros() as u8)
    }

    /// Returns `true` if a transaction with `rank` waits for `lun`.
    #[inline]
    pub fn any(&self, lun: LunId, rank: u8) -> bool {
        self.counts[lun.index()][usize::from(rank)] > 0
    }

    /// Returns the oldest transaction with `rank` that waits for `lun`, or [`TransactionId::NONE`].
    #[inline(always)]
    pub fn oldest(&self, lun: LunId, rank: u8) -> TransactionId {
        let rank = usize::from(rank);
        if !self.by_plane {
            return self.lines[lun.index()][rank].first();
        }
        let first = lun.index() * self.planes_per_lun;
        let orders = &self.orders[first..][..self.planes_per_lun];
        let mut oldest = 0;
        let mut since = orders[0][rank];
        for (plane, orders) in orders.iter().enumerate().skip(1) {
            let is_older = orders[rank] < since;
            oldest = select_unpredictable(is_older, plane, oldest);
            since = select_unpredictable(is_older, orders[rank], since);
        }
        self.lines[first + oldest][rank].first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;
    use crate::work::fifo::Links;

    struct Next(Vec<TransactionId>);

    impl Links for Next {
        fn next(&self, id: TransactionId) -> TransactionId {
            self.0[id.index()]
        }
        fn set_next(&mut self, id: TransactionId, next: TransactionId) {
            self.0[id.index()] = next;
        }
    }

    impl Ordered for Next {
        fn order(&self, id: TransactionId) -> u64 {
            u64::from(id.0)
        }
    }

    /// Waiting transactions in the order of their queues: rank, plane and number, which is also the order.
    type Model = Vec<(u8, u32, TransactionId)>;

    fn check(waiting: &Waiting, model: &Model, next: &Next, planes_per_lun: u32) {
        for lun in (0..2).map(LunId) {
            let of_lun = || model.iter().filter(|(_, plane, _)| plane / planes_per_lun == lun.0);
            assert_eq!(waiting.rank_of_first(lun), of_lun().map(|(rank, ..)| *rank).min());
            for rank in 0..RANKS as u8 {
                assert_eq!(waiting.any(lun, rank), of_lun().any(|(other, ..)| *other == rank));
                // The first transaction of each queue, and the oldest of these.
                let firsts =
                    |plane| of_lun().find(|(other, p, _)| *other == rank && (!waiting.by_plane || *p == plane));
                let planes = lun.0 * planes_per_lun..(lun.0 + 1) * planes_per_lun;
                let first = planes.filter_map(firsts).map(|(.., id)| *id).min().unwrap_or(NONE);
                assert_eq!(waiting.oldest(lun, rank), first);
                let mut all = Vec::new();
                waiting.for_each(lun, rank, next, |queue, id| all.push((queue as u32, id)));
                let queue_of = |plane: u32| if waiting.by_plane { plane % planes_per_lun } else { 0 };
                let of_rank = of_lun().filter(|(other, ..)| *other == rank);
                let mut expected: Vec<(u32, TransactionId)> = of_rank.map(|(_, p, id)| (queue_of(*p), *id)).collect();
                expected.sort_by_key(|(queue, _)| *queue);
                assert_eq!(all, expected);
            }
        }
    }

    #[test]
    fn queues_agree_with_a_list() {
        let mut rng = Rng::new(1, "waiting");
        for (planes_per_lun, by_plane) in [(1, false), (3, false), (2, true), (3, true)] {
            let mut waiting = Waiting::new(2, planes_per_lun, by_plane);
            let mut model = Model::new();
            let mut next = Next(vec![NONE; 3000]);
            for number in 0..1000 {
                let id = TransactionId(number);
                let rank = rng.below(RANKS as u64) as u8;
                let plane = rng.below(u64::from(2 * planes_per_lun)) as u32;
                let (lun, of_lun) = (LunId(plane / planes_per_lun), plane / planes_per_lun);
                let same_line = |entry: &(u8, u32, TransactionId)| {
                    entry.0 == rank && (entry.1 == plane || (!by_plane && entry.1 / planes_per_lun == of_lun))
                };
                match rng.below(10) {
                    0..3 => {
                        waiting.push(lun, PlaneId(plane), rank, &mut next, id);
                        model.push((rank, plane, id));
                    }
                    3 => {
                        waiting.push_front(lun, PlaneId(plane), rank, &mut next, id);
                        model.insert(0, (rank, plane, id));
                    }
                    4 => {
                        let mut others = Fifo::default();
                        [1000 + number, 2000 + number]
                            .map(TransactionId)
                            .into_iter()
                            .for_each(|id| others.push(&mut next, id));
                        waiting.prepend(lun, PlaneId(plane), rank, &mut next, (others, 2));
                        model.splice(0..0, [1000, 2000].map(|more| (rank, plane, TransactionId(more + number))));
                    }
                    9 => {
                        let of_queue = model.iter().filter(|entry| same_line(entry)).count();
                        if of_queue > 0 {
                            let wanted = rng.below(of_queue as u64) as usize;
                            let entry =
                                *model.iter().filter(|entry| same_line(entry)).nth(wanted).expect("queue entry");
                            waiting.remove(lun, PlaneId(entry.1), rank, &mut next, entry.2);
                            model.retain(|other| *other != entry);
                        }
                    }
                    5 => {
                        let odd = |entry: &&(u8, u32, TransactionId)| entry.2.0 % 2 == 1;
                        let near = model.iter().filter(|entry| same_line(entry)).take(LOOK_AHEAD as usize);
                        let found = near.copied().find(|entry| odd(&entry));
                        let id = waiting.pop_suitable((lun, PlaneId(plane), rank), &mut next, |_, id| id.0 % 2 == 1);
                        assert_eq!(id, found.map_or(NONE, |entry| entry.2));
                        model.retain(|entry| Some(*entry) != found);
                    }
                    _ => {
                        let at = model.iter().position(same_line);
                        let first = at.map_or(NONE, |at| model.remove(at).2);
                        assert_eq!(waiting.first(lun, PlaneId(plane), rank), first);
                        assert_eq!(waiting.pop(lun, PlaneId(plane), rank, &mut next), first);
                    }
                }
                check(&waiting, &model, &next, planes_per_lun);
            }
            assert!(model.len() > 20, "the queues are nearly always empty");
        }
    }
}
