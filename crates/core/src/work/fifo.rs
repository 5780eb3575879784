//! Intrusive FIFO queues of transactions. The links live in the transactions, so enqueueing never allocates.

use crate::sim::id::TransactionId;

const NONE: TransactionId = TransactionId::NONE;

/// Storage of the links between queued transactions.
pub trait Links {
    /// Returns the transaction after `id`.
    fn next(&self, id: TransactionId) -> TransactionId;
    /// Sets the transaction after `id`.
    fn set_next(&mut self, id: TransactionId, next: TransactionId);
}

/// Storage of the links, and of the order in which transactions were queued.
pub trait Ordered: Links {
    /// Returns the sequence number of `id`: transactions are numbered in the order in which they are queued.
    fn order(&self, id: TransactionId) -> u64;
}

/// A first-in, first-out queue of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo {
    first: TransactionId,
    last: TransactionId,
}

impl Default for Fifo {
    fn default() -> Self {
        Fifo { first: NONE, last: NONE }
    }
}

impl Fifo {
    /// Creates a queue of one transaction.
    pub fn of(links: &mut impl Links, id: TransactionId) -> Fifo {
        let mut fifo = Fifo::default();
        fifo.push(links, id);
        fifo
    }

    /// Returns `true` if the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Returns the oldest transaction, or [`TransactionId::NONE`] if the queue is empty.
    #[inline]
    pub fn first(&self) -> TransactionId {
        self.first
    }

    /// Appends `id` to the back of the queue.
    #[inline]
    pub fn push(&mut self, links: &mut impl Links, id: TransactionId) {
        links.set_next(id, NONE);
        if self.first == NONE {
            self.first = id;
        } else {
            links.set_next(self.last, id);
        }
        self.last = id;
    }

    /// Inserts `id` at the front of the queue.
    #[inline]
    pub fn push_front(&mut self, links: &mut impl Links, id: TransactionId) {
        links.set_next(id, self.first);
        if self.first == NONE {
            self.last = id;
        }
        self.first = id;
    }

    /// Inserts all transactions of `other` at the front, in their order.
    pub fn prepend(&mut self, links: &mut impl Links, other: Fifo) {
        if other.first == NONE {
            return;
        }
        links.set_next(other.last, self.first);
        if self.first == NONE {
            self.last = other.last;
        }
        self.first = other.first;
    }

    /// Removes and returns the oldest transaction, or [`TransactionId::NONE`] if the queue is empty.
    #[inline]
    pub fn pop(&mut self, links: &mut impl Links) -> TransactionId {
        let id = self.first;
        if id != NONE {
            self.first = links.next(id);
        }
        id
    }

    /// Iterates over the transactions, oldest first.
    pub fn iter<'a, L: Links>(&self, links: &'a L) -> impl Iterator<Item = TransactionId> + use<'a, L> {
        let present = |id: TransactionId| (id != NONE).then_some(id);
        std::iter::successors(present(self.first), move |&id| present(links.next(id)))
    }

    /// Removes `id`, which is in the queue.
    pub fn remove(&mut self, links: &mut impl Links, id: TransactionId) {
        let removed = self.pop_suitable(links, u32::MAX, |_, other| other == id);
        debug_assert_eq!(removed, id, "`id` must be in this queue");
    }

    /// Removes and returns the first transaction that `suits`, if it is among the `depth` oldest ones.
    #[inline]
    pub fn pop_suitable<L: Links>(
        &mut self,
        links: &mut L,
        depth: u32,
        suits: impl Fn(&L, TransactionId) -> bool,
    ) -> TransactionId {
        let mut before = NONE;
        let mut id = self.first;
        for _ in 0..depth {
            if id == NONE {
                break;
            }
            if suits(links, id) {
                let next = links.next(id);
                match before {
                    NONE => self.first = next,
                    before => links.set_next(before, next),
                }
                if self.last == id {
                    self.last = before;
                }
                return id;
            }
            (before, id) = (id, links.next(id));
        }
        NONE
    }
}
