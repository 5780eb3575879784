//! The event queue: at most one event per resource, found and replaced in a fixed number of steps.

use std::hint::select_unpredictable;

use super::time::Time;

/// The next event of each resource (a die, a channel, a link), and the earliest of all.
///
/// A resource is busy with one thing at a time, so it has at most one event: setting it again replaces it, which is
/// also how it is cancelled. That makes the queue a tournament over a fixed set of players rather than a heap: an
/// update replays one path from leaf to root, without branches that depend on the data. Events at one instant come
/// in the order of their resources' numbers, so the order is total and never depends on history.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// A complete binary tree, root at 1: each node is the earlier of its children, the left one of equals.
    nodes: Vec<Node>,
    leaves: usize,
    /// The resource whose event was taken and has not been set anew; its leaf still holds the old one. Most events
    /// set the next one of their resource, which saves the update in between.
    taken: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    at: u64,
    resource: u32,
}

/// Later than any time, with room for one more.
const NEVER: u64 = u64::MAX - 1;
const NOBODY: u32 = u32::MAX;

impl EventQueue {
    /// An empty queue for resources `0..resources`.
    pub fn new(resources: u32) -> EventQueue {
        let leaves = (resources as usize).next_power_of_two().max(2);
        let mut nodes = vec![Node { at: NEVER, resource: 0 }; 2 * leaves];
        for (resource, leaf) in nodes[leaves..].iter_mut().enumerate() {
            leaf.resource = resource as u32;
        }
        EventQueue { nodes, leaves, taken: NOBODY }
    }

    #[inline]
    fn replay(&mut self, resource: u32, at: u64) {
        let mut node = self.leaves + resource as usize;
        let mut least = Node { at, resource };
        self.nodes[node] = least;
        while node > 1 {
            let sibling = self.nodes[node ^ 1];
            // A right child (odd) also loses to an equal left one. Which side wins is as good as random: no branch.
            let loses = sibling.at < least.at + (node as u64 & 1);
            least.at = select_unpredictable(loses, sibling.at, least.at);
            least.resource = select_unpredictable(loses, sibling.resource, least.resource);
            node >>= 1;
            self.nodes[node] = least;
        }
    }

    /// Sets the event of `resource`, replacing the one it had.
    #[inline]
    pub fn set(&mut self, resource: u32, at: Time) {
        debug_assert!(at.0 < NEVER);
        if self.taken == resource {
            self.taken = NOBODY;
        }
        self.replay(resource, at.0);
    }

    /// Takes the event of `resource` away.
    #[inline]
    pub fn clear(&mut self, resource: u32) {
        if self.taken == resource {
            self.taken = NOBODY;
        }
        self.replay(resource, NEVER);
    }

    /// Whether `resource` has an event.
    #[inline]
    pub fn is_set(&self, resource: u32) -> bool {
        self.taken != resource && self.nodes[self.leaves + resource as usize].at < NEVER
    }

    /// The earliest event.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        if self.taken != NOBODY {
            return self.peek_without_taken();
        }
        let Node { at, resource } = self.nodes[1];
        (at < NEVER).then_some((Time(at), resource))
    }

    #[cold]
    fn peek_without_taken(&self) -> Option<(Time, u32)> {
        let events = self.nodes[self.leaves..].iter().filter(|node| node.at < NEVER && node.resource != self.taken);
        events.map(|node| (Time(node.at), node.resource)).min()
    }

    /// Takes the earliest event if it is not later than `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        self.settle();
        let Node { at, resource } = self.nodes[1];
        if at > until.0 || at >= NEVER {
            return None;
        }
        self.taken = resource;
        Some((Time(at), resource))
    }

    /// Brings the tree up to date with the event taken last.
    #[inline]
    pub fn settle(&mut self) {
        if self.taken != NOBODY {
            let resource = std::mem::replace(&mut self.taken, NOBODY);
            self.replay(resource, NEVER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    #[test]
    fn agrees_with_a_sorted_list() {
        let mut rng = Rng::new(1, "queue");
        for resources in [1u32, 2, 3, 40, 65] {
            let mut queue = EventQueue::new(resources);
            let mut model: Vec<Option<u64>> = vec![None; resources as usize];
            for _ in 0..2_000 {
                let resource = rng.below(u64::from(resources)) as u32;
                if rng.below(4) == 0 {
                    let least = model.iter().enumerate().filter_map(|(r, at)| at.map(|at| (Time(at), r as u32))).min();
                    let popped = queue.pop(Time(30));
                    assert_eq!(popped, least.filter(|(at, _)| *at <= Time(30)));
                    if let Some((_, resource)) = popped {
                        model[resource as usize] = None;
                    }
                } else if rng.below(3) == 0 {
                    queue.clear(resource);
                    model[resource as usize] = None;
                } else {
                    let at = rng.below(50);
                    queue.set(resource, Time(at));
                    model[resource as usize] = Some(at);
                }
                let expected = model.iter().enumerate().filter_map(|(r, at)| at.map(|at| (Time(at), r as u32))).min();
                assert_eq!(queue.peek(), expected);
                assert_eq!(queue.is_set(resource), model[resource as usize].is_some());
            }
        }
    }
}
