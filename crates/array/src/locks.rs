//! Stripe locks: orders operations on the same range of a stripe.
//!
//! An operation waits for all earlier ones whose range overlaps with its own, so that waiting operations continue in
//! the order of their arrival, and none waits forever. Operations on other ranges of the stripe do not wait, as in md,
//! whose stripe cache has an entry for each page of a chunk.

use floatgate_core::sim::slab::Slab;

use crate::operation::{NONE, StripeOp};

/// Number of queues. A power of two, and more than the usual number of outstanding operations.
const QUEUES: u64 = 1024;

/// Operations in the order of their arrival. Those of one stripe share a queue.
#[derive(Clone, Debug)]
pub struct Locks {
    /// First and last operation of each queue.
    queues: Vec<[u32; 2]>,
}

impl Default for Locks {
    fn default() -> Self {
        Locks { queues: vec![[NONE; 2]; QUEUES as usize] }
    }
}

fn queue_of(row: u64) -> usize {
    (row % QUEUES) as usize
}

impl Locks {
    /// Adds an operation. Returns `true` if it need not wait.
    pub fn enter(&mut self, operations: &mut Slab<u32, StripeOp>, id: u32) -> bool {
        let entered = operations[id];
        let [first, last] = &mut self.queues[queue_of(entered.row)];
        let mut other = *first;
        let mut before = 0;
        while other != NONE {
            before += u32::from(operations[other].overlaps(&entered));
            other = operations[other].next;
        }
        match *last {
            NONE => *first = id,
            last => operations[last].next = id,
        }
        *last = id;
        operations[id].waits_for = before;
        before == 0
    }

    /// Removes an operation, and appends those that no longer wait to `freed`.
    pub fn leave(&mut self, operations: &mut Slab<u32, StripeOp>, id: u32, freed: &mut Vec<u32>) {
        let left = operations[id];
        let [first, last] = &mut self.queues[queue_of(left.row)];
        let mut before = NONE;
        let mut at = *first;
        while at != id {
            (before, at) = (at, operations[at].next);
        }
        match before {
            NONE => *first = left.next,
            before => operations[before].next = left.next,
        }
        if left.next == NONE {
            *last = before;
        }
        let mut other = left.next;
        while other != NONE {
            let later = &mut operations[other];
            if later.overlaps(&left) {
                later.waits_for -= 1;
                if later.waits_for == 0 {
                    freed.push(other);
                }
            }
            other = later.next;
        }
    }
}
