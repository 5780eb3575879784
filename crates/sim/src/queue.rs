//! The event queue: at most one event per resource, kept in lanes that are in order by themselves.

use std::collections::VecDeque;
use std::hint::select_unpredictable;

use crate::time::Time;

/// The next event of each resource (a die, a channel, a link), and the earliest of all.
///
/// A resource is busy with one thing at a time, so it has at most one event: setting it again replaces it.
///
/// Most events are due a fixed time after they are set: a read, a program, a transfer. Those of one duration come in
/// order, so a lane of them needs no sorting. An event joins the first lane whose latest event is not later (patience
/// sorting), and the earliest event is the first one of a lane. An event that fits no lane is sorted into the last one,
/// which holds what is due soonest. Events at one instant come in the order in which they were set, so that no resource
/// is preferred. The order is total, and does not depend on the lanes.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// First event of each lane, or [`NO_EVENT`].
    heads: [Event; LANES],
    /// Time of the latest event that each lane has had, in descending order.
    tails: [u64; LANES],
    /// Events of each lane after its first one, in their order.
    rest: [VecDeque<Event>; LANES],
    /// Event of each resource, or [`NO_EVENT`].
    events: Vec<Event>,
    /// Bits of a resource's number.
    bits: u32,
    sets: u64,
}

/// An event, from the highest bits to the lowest: 64 for the time when it is due, 40 or more for the running number of
/// when it was set, its lane, and its resource. The running number decides between events of one instant.
type Event = u128;

/// Number of lanes: for erases, programs, reads, and what takes less time.
const LANES: usize = 1 << LANE_BITS;
const LANE_BITS: u32 = 2;

/// Later than any event.
const NO_EVENT: Event = Event::MAX;

#[inline]
fn time(event: Event) -> u64 {
    (event >> 64) as u64
}

/// Returns `true` for [`NO_EVENT`]. Reads one word, because it is slow to read two words at once that were just written
/// one by one.
#[inline]
fn is_none(event: Event) -> bool {
    time(event) == u64::MAX
}

/// Returns the earlier of two events. Has no branch, because that could hardly be predicted.
#[inline]
fn earlier(one: Event, other: Event) -> Event {
    let is_other = other < one;
    let high = select_unpredictable(is_other, (other >> 64) as u64, (one >> 64) as u64);
    let low = select_unpredictable(is_other, other as u64, one as u64);
    u128::from(high) << 64 | u128::from(low)
}

impl EventQueue {
    /// An empty queue for resources `0..resources`.
    pub fn new(resources: u32) -> EventQueue {
        EventQueue {
            heads: [NO_EVENT; LANES],
            tails: [0; LANES],
            rest: Default::default(),
            events: vec![NO_EVENT; resources as usize],
            bits: resources.max(2).next_power_of_two().trailing_zeros(),
            sets: 0,
        }
    }

    #[inline]
    fn resource(&self, event: Event) -> u32 {
        event as u32 & ((1 << self.bits) - 1)
    }

    #[inline]
    fn lane(&self, event: Event) -> usize {
        (event as u64 >> self.bits) as usize % LANES
    }

    /// The earliest event, or [`NO_EVENT`].
    #[inline]
    fn first(&self) -> Event {
        let [a, b, c, d] = self.heads;
        earlier(earlier(a, b), earlier(c, d))
    }

    /// The place in the order of an event that is set now.
    #[inline]
    pub fn stamp(&mut self) -> u64 {
        self.sets += 1;
        self.sets
    }

    /// Sets the event of `resource`, replacing the one it had.
    #[inline(always)]
    pub fn set(&mut self, resource: u32, at: Time) {
        let order = self.stamp();
        self.set_stamped(resource, at, order);
    }

    /// Sets the event of `resource` as if that had been done when `order` was stamped.
    #[inline(always)]
    pub fn set_stamped(&mut self, resource: u32, at: Time, order: u64) {
        debug_assert!(at < Time::NEVER);
        if !is_none(self.events[resource as usize]) {
            self.clear(resource);
        }
        // The tails descend, so the number of later ones is that of the first lane that takes the event.
        let later = self.tails[..LANES - 1].iter().map(|&tail| usize::from(tail > at.0));
        let lane = later.sum::<usize>() % LANES;
        let tag = (order << LANE_BITS | lane as u64) << self.bits | u64::from(resource);
        let event = u128::from(at.0) << 64 | u128::from(tag);
        self.events[resource as usize] = event;
        if is_none(self.heads[lane]) {
            self.heads[lane] = event;
        } else if self.tails[lane] < at.0 || (self.tails[lane] == at.0 && order == self.sets) {
            self.rest[lane].push_back(event);
        } else {
            return self.sort_in(lane, event);
        }
        self.tails[lane] = self.tails[lane].max(at.0);
    }

    /// Sorts an event into a lane that has later ones.
    #[inline(never)]
    fn sort_in(&mut self, lane: usize, mut event: Event) {
        if event < self.heads[lane] {
            std::mem::swap(&mut event, &mut self.heads[lane]);
        }
        self.tails[lane] = self.tails[lane].max(time(event));
        let rest = &mut self.rest[lane];
        rest.insert(rest.partition_point(|&other| other < event), event);
    }

    /// Takes the event of `resource` away.
    #[inline(never)]
    pub fn clear(&mut self, resource: u32) {
        let event = std::mem::replace(&mut self.events[resource as usize], NO_EVENT);
        if is_none(event) {
            return;
        }
        let lane = self.lane(event);
        let rest = &mut self.rest[lane];
        if self.heads[lane] == event {
            self.heads[lane] = rest.pop_front().unwrap_or(NO_EVENT);
        } else {
            rest.remove(rest.partition_point(|&other| other < event));
        }
    }

    /// Whether `resource` has an event.
    #[inline]
    pub fn is_set(&self, resource: u32) -> bool {
        !is_none(self.events[resource as usize])
    }

    /// When the event of `resource` is due, if it has one.
    #[inline]
    pub fn time_of(&self, resource: u32) -> Option<Time> {
        let event = self.events[resource as usize];
        self.is_set(resource).then(|| Time(time(event)))
    }

    /// The earliest event.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        let first = self.first();
        (time(first) < u64::MAX).then(|| (Time(time(first)), self.resource(first)))
    }

    /// Takes the earliest event if it is not later than `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        let first = self.first();
        let at = time(first);
        if at > until.0.min(Time::NEVER.0 - 1) {
            return None;
        }
        let (lane, resource) = (self.lane(first), self.resource(first));
        self.heads[lane] = self.rest[lane].pop_front().unwrap_or(NO_EVENT);
        self.events[resource as usize] = NO_EVENT;
        Some((Time(at), resource))
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
