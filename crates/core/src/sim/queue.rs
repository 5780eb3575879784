//! The event queue: at most one event per resource, found and replaced in a fixed number of steps.

use std::hint::select_unpredictable;

use super::time::Time;

/// The next event of each resource (a die, a channel, a link), and the earliest of all.
///
/// A resource is busy with one thing at a time, so it has at most one event: setting it again replaces it, which is
/// also how it is cancelled. That makes the queue a tournament over a fixed set of players rather than a heap: an
/// update replays one path from leaf to root, without branches that depend on the data. Events at one instant come in
/// the order in which they were set, so that no resource is preferred; the order is total.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// A complete binary tree, root at 1: each node is the earlier of its children.
    nodes: Vec<Node>,
    leaves: usize,
    /// The resource whose event was taken and has not been set anew; its leaf still holds the old one. Most events
    /// set the next one of their resource, which saves the update in between.
    taken: u32,
    sets: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    at: u64,
    /// When it was set, as a running number that may go round: events of one instant are never 2^31 apart.
    order: u32,
    resource: u32,
}

impl Node {
    #[inline]
    fn before(&self, other: &Node) -> bool {
        let set_before = (self.order.wrapping_sub(other.order) as i32) < 0;
        (self.at < other.at) | ((self.at == other.at) & set_before)
    }
}

/// Later than any time.
const NEVER: u64 = u64::MAX;
const NOBODY: u32 = u32::MAX;

impl EventQueue {
    /// An empty queue for resources `0..resources`.
    pub fn new(resources: u32) -> EventQueue {
        let leaves = (resources as usize).next_power_of_two().max(2);
        let mut nodes = vec![Node { at: NEVER, order: 0, resource: 0 }; 2 * leaves];
        for (resource, leaf) in nodes[leaves..].iter_mut().enumerate() {
            leaf.resource = resource as u32;
        }
        EventQueue { nodes, leaves, taken: NOBODY, sets: 0 }
    }

    #[inline]
    fn replay(&mut self, resource: u32, at: u64, order: u32) {
        let mut node = self.leaves + resource as usize;
        let mut least = Node { at, order, resource };
        self.nodes[node] = least;
        while node > 1 {
            let sibling = self.nodes[node ^ 1];
            // Which side wins is as good as random: no branch.
            let loses = sibling.before(&least);
            least.at = select_unpredictable(loses, sibling.at, least.at);
            least.order = select_unpredictable(loses, sibling.order, least.order);
            least.resource = select_unpredictable(loses, sibling.resource, least.resource);
            node >>= 1;
            self.nodes[node] = least;
        }
    }

    /// The place in the order of an event that is set now.
    #[inline]
    pub fn stamp(&mut self) -> u32 {
        self.sets = self.sets.wrapping_add(1);
        self.sets
    }

    /// Sets the event of `resource`, replacing the one it had.
    #[inline]
    pub fn set(&mut self, resource: u32, at: Time) {
        let order = self.stamp();
        self.set_stamped(resource, at, order);
    }

    /// Sets the event of `resource` as if that had been done when `order` was stamped.
    #[inline]
    pub fn set_stamped(&mut self, resource: u32, at: Time, order: u32) {
        debug_assert!(at.0 < NEVER);
        if self.taken == resource {
            self.taken = NOBODY;
        }
        self.replay(resource, at.0, order);
    }

    /// Takes the event of `resource` away.
    #[inline]
    pub fn clear(&mut self, resource: u32) {
        if self.taken == resource {
            self.taken = NOBODY;
        }
        self.replay(resource, NEVER, 0);
    }

    /// Whether `resource` has an event.
    #[inline]
    pub fn is_set(&self, resource: u32) -> bool {
        self.taken != resource && self.nodes[self.leaves + resource as usize].at < NEVER
    }

    /// When the event of `resource` is due, if it has one.
    pub fn time_of(&self, resource: u32) -> Option<Time> {
        self.is_set(resource).then(|| Time(self.nodes[self.leaves + resource as usize].at))
    }

    /// The earliest event.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        if self.taken != NOBODY {
            return self.peek_without_taken();
        }
        let Node { at, resource, .. } = self.nodes[1];
        (at < NEVER).then_some((Time(at), resource))
    }

    #[cold]
    fn peek_without_taken(&self) -> Option<(Time, u32)> {
        let events = self.nodes[self.leaves..].iter().filter(|node| node.at < NEVER && node.resource != self.taken);
        let first = events.reduce(|first, node| if node.before(first) { node } else { first })?;
        Some((Time(first.at), first.resource))
    }

    /// Takes the earliest event if it is not later than `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        self.settle();
        let Node { at, resource, .. } = self.nodes[1];
        if at > until.0 || at == NEVER {
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
            self.replay(resource, NEVER, 0);
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
            let mut model: Vec<Option<(u64, u32)>> = vec![None; resources as usize];
            let first = |model: &[Option<(u64, u32)>]| {
                let events = model.iter().enumerate().filter_map(|(r, event)| event.map(|event| (event, r as u32)));
                events.min().map(|((at, _), resource)| (Time(at), resource))
            };
            for set in 0..2_000 {
                let resource = rng.below(u64::from(resources)) as u32;
                if rng.below(4) == 0 {
                    let least = first(&model);
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
                    model[resource as usize] = Some((at, set));
                }
                assert_eq!(queue.peek(), first(&model));
                assert_eq!(queue.is_set(resource), model[resource as usize].is_some());
            }
        }
    }
}
