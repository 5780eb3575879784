//! The event queue: at most one event per resource, found and replaced in a fixed number of steps.

use std::hint::select_unpredictable;

use crate::time::Time;

/// The next event of each resource (a die, a channel, a link), and the earliest of all.
///
/// A resource is busy with one thing at a time, so it has at most one event: setting it again replaces it, which is
/// also how it is cancelled. That makes the queue a tournament over a fixed set of players rather than a heap: an
/// update replays one path from leaf to root, without branches that depend on the data. Events at one instant come in
/// the order in which they were set, so that no resource is preferred; the order is total.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// A binary tree, root at 1: each node `n` is the earlier of its children `2n` and `2n + 1`. Those of the resources
    /// come last, from `leaves` on; where they are no power of two, some are a level nearer to the root.
    nodes: Vec<Event>,
    leaves: usize,
    /// The resource whose event was taken and has not been set anew; its leaf still holds the old one. Most events
    /// set the next one of their resource, which saves the update in between.
    taken: u32,
    /// Bits of a resource's number.
    bits: u32,
    sets: u64,
}

/// When something is due, and whose it is behind the running number of when it was set: that number decides between
/// events of one instant. It has 2^40 and more to go before it goes round, when two of them might change places.
#[derive(Clone, Copy, Debug)]
struct Event {
    at: u64,
    tag: u64,
}

impl Event {
    /// Whether this one is due before another, in two comparisons without a branch.
    #[inline]
    fn before(self, other: Event) -> bool {
        self.at < other.at + u64::from(self.tag < other.tag)
    }
}

/// Later than any event, with room for one more.
const NEVER: u64 = u64::MAX - 1;
const NO_EVENT: Event = Event { at: NEVER, tag: 0 };
const NOBODY: u32 = u32::MAX;

impl EventQueue {
    /// An empty queue for resources `0..resources`.
    pub fn new(resources: u32) -> EventQueue {
        let leaves = resources.max(2);
        let bits = leaves.next_power_of_two().trailing_zeros();
        EventQueue { nodes: vec![NO_EVENT; 2 * leaves as usize], leaves: leaves as usize, taken: NOBODY, bits, sets: 0 }
    }

    #[inline]
    fn leaf(&self, resource: u32) -> Event {
        self.nodes[self.leaves + resource as usize]
    }

    #[inline]
    fn resource(&self, event: Event) -> u32 {
        event.tag as u32 & ((1 << self.bits) - 1)
    }

    /// Changes the event of a resource.
    #[inline]
    fn replay(&mut self, resource: u32, event: Event) {
        let mut node = self.leaves + resource as usize;
        let mut earliest = event;
        self.nodes[node] = earliest;
        while node > 1 {
            let sibling = self.nodes[node ^ 1];
            // Which side wins is as good as random: no branch.
            let loses = sibling.before(earliest);
            earliest.at = select_unpredictable(loses, sibling.at, earliest.at);
            earliest.tag = select_unpredictable(loses, sibling.tag, earliest.tag);
            node /= 2;
            self.nodes[node] = earliest;
        }
    }

    /// Gives a resource an event that has none: it goes up as far as it is the earliest.
    #[inline]
    fn rise(&mut self, resource: u32, event: Event) {
        let mut node = self.leaves + resource as usize;
        while node > 0 && event.before(self.nodes[node]) {
            self.nodes[node] = event;
            node /= 2;
        }
    }

    /// The place in the order of an event that is set now.
    #[inline]
    pub fn stamp(&mut self) -> u64 {
        self.sets += 1;
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
    pub fn set_stamped(&mut self, resource: u32, at: Time, order: u64) {
        debug_assert!(at.0 < NEVER);
        let event = Event { at: at.0, tag: order << self.bits | u64::from(resource) };
        if self.leaf(resource).at == NEVER {
            return self.rise(resource, event);
        }
        if self.taken == resource {
            self.taken = NOBODY;
        }
        self.replay(resource, event);
    }

    /// Takes the event of `resource` away.
    #[inline]
    pub fn clear(&mut self, resource: u32) {
        if self.taken == resource {
            self.taken = NOBODY;
        }
        self.replay(resource, NO_EVENT);
    }

    /// Whether `resource` has an event.
    #[inline]
    pub fn is_set(&self, resource: u32) -> bool {
        self.taken != resource && self.leaf(resource).at < NEVER
    }

    /// When the event of `resource` is due, if it has one.
    #[inline]
    pub fn time_of(&self, resource: u32) -> Option<Time> {
        self.is_set(resource).then(|| Time(self.leaf(resource).at))
    }

    /// The earliest event.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        if self.taken != NOBODY {
            return self.peek_without_taken();
        }
        let first = self.nodes[1];
        (first.at < NEVER).then(|| (Time(first.at), self.resource(first)))
    }

    #[cold]
    fn peek_without_taken(&self) -> Option<(Time, u32)> {
        let others = (0..self.leaves as u32).filter(|&resource| self.is_set(resource));
        let events = others.map(|resource| self.leaf(resource));
        let first = events.reduce(|first, other| if other.before(first) { other } else { first })?;
        Some((Time(first.at), self.resource(first)))
    }

    /// Takes the earliest event if it is not later than `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        self.settle();
        let first = self.nodes[1];
        if first.at > until.0 || first.at == NEVER {
            return None;
        }
        self.taken = self.resource(first);
        Some((Time(first.at), self.taken))
    }

    /// Brings the tree up to date with the event taken last.
    #[inline]
    pub fn settle(&mut self) {
        if self.taken != NOBODY {
            let resource = std::mem::replace(&mut self.taken, NOBODY);
            self.replay(resource, NO_EVENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

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
