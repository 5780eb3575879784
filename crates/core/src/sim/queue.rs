//! The event queue: at most one event per resource, found and replaced in a fixed number of steps.

use super::time::Time;

/// The next event of each resource (a die, a channel, a link), and the earliest of all.
///
/// A resource is busy with one thing at a time, so it has at most one event: setting it again replaces it, which is
/// also how it is cancelled. That makes the queue a tournament over a fixed set of players rather than a heap: an
/// update replays one path from leaf to root, without branches that depend on the data. Events at one instant come
/// in the order of their resources' numbers, so the order is total and never depends on history.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// A complete binary tree, root at 1: each node is the lesser of its children. A key is time, then resource.
    nodes: Vec<u128>,
    leaves: usize,
}

const NONE: u128 = u128::MAX;

impl EventQueue {
    /// An empty queue for resources `0..resources`.
    pub fn new(resources: u32) -> EventQueue {
        let leaves = (resources as usize).next_power_of_two().max(2);
        EventQueue { nodes: vec![NONE; 2 * leaves], leaves }
    }

    #[inline]
    fn replay(&mut self, resource: u32, key: u128) {
        let mut node = self.leaves + resource as usize;
        self.nodes[node] = key;
        let mut least = key;
        while node > 1 {
            least = least.min(self.nodes[node ^ 1]);
            node >>= 1;
            self.nodes[node] = least;
        }
    }

    /// Sets the event of `resource`, replacing the one it had.
    #[inline]
    pub fn set(&mut self, resource: u32, at: Time) {
        self.replay(resource, u128::from(at.0) << 32 | u128::from(resource));
    }

    /// Takes the event of `resource` away.
    #[inline]
    pub fn clear(&mut self, resource: u32) {
        self.replay(resource, NONE);
    }

    /// Whether `resource` has an event.
    #[inline]
    pub fn is_set(&self, resource: u32) -> bool {
        self.nodes[self.leaves + resource as usize] != NONE
    }

    /// The earliest event.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        let key = self.nodes[1];
        (key != NONE).then_some((Time((key >> 32) as u64), key as u32))
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
                if rng.below(3) == 0 {
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
