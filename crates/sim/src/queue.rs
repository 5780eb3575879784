//! The event queue: at most one event per resource, kept in a few sorted lanes.

use std::collections::VecDeque;
use std::hint::select_unpredictable;

use crate::time::Time;

/// The next event of each resource (a die, a channel, a link), and the earliest of all events.
///
/// A resource does one thing at a time, so it has at most one event. Setting the event again replaces it.
///
/// Most events are due a fixed time after they are set, such as the end of a read, a program operation, or a transfer.
/// Events with the same duration are set in order of their due time, so a lane for them needs no sorting. An event
/// joins the first lane whose latest event is not later (patience sorting). The earliest event is the first event of a
/// lane. An event that fits no lane is sorted into the last one, which holds the events that are due soonest. Events at
/// the same time are processed in the order in which they were set, so that no resource is preferred. The order is
/// total, and does not depend on the lanes.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// First event of each lane, or [`NO_EVENT`].
    heads: [Event; LANES],
    /// Time of the latest event that each lane has had, in descending order.
    tails: [u64; LANES],
    /// Remaining events of each lane, in order.
    rest: [VecDeque<Event>; LANES],
    /// Event of each resource, or [`NO_EVENT`].
    events: Vec<Event>,
    /// Number of bits for the resource.
    bits: u32,
    sets: u64,
}

/// An event, from the highest bits to the lowest: due time (64 bits), sequence number (40 bits or more), lane, and
/// resource. The sequence number orders events at the same time by when they were set.
type Event = u128;

/// Number of lanes: for erases, programs, reads, and shorter operations.
const LANES: usize = 1 << LANE_BITS;
const LANE_BITS: u32 = 2;

/// No event. Later than any event.
const NO_EVENT: Event = Event::MAX;

#[inline]
fn time(event: Event) -> u64 {
    (event >> 64) as u64
}

/// Returns `true` for [`NO_EVENT`]. Reads only one word, because reading two words at once is slow if they were just
/// written separately.
#[inline]
fn is_none(event: Event) -> bool {
    time(event) == u64::MAX
}

/// Returns the earlier of two events. Avoids a branch, because it would be hard to predict.
#[inline]
fn earlier(one: Event, other: Event) -> Event {
    let is_other = other < one;
    let high = select_unpredictable(is_other, (other >> 64) as u64, (one >> 64) as u64);
    let low = select_unpredictable(is_other, other as u64, one as u64);
    u128::from(high) << 64 | u128::from(low)
}

impl EventQueue {
    /// Creates an empty queue for resources `0..resources`.
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

    /// Returns the earliest event, or [`NO_EVENT`].
    #[inline]
    fn first(&self) -> Event {
        let [a, b, c, d] = self.heads;
        earlier(earlier(a, b), earlier(c, d))
    }

    /// Returns the sequence number of an event that is set now.
    #[inline]
    pub fn stamp(&mut self) -> u64 {
        self.sets += 1;
        self.sets
    }

    /// Sets the event of `resource`, and replaces its previous event.
    #[inline(always)]
    pub fn set(&mut self, resource: u32, at: Time) {
        let order = self.stamp();
        self.set_stamped(resource, at, order);
    }

    /// Sets the event of `resource` as if it had been set when the sequence number `order` was taken.
    #[inline(always)]
    pub fn set_stamped(&mut self, resource: u32, at: Time, order: u64) {
        debug_assert!(at < Time::NEVER);
        if !is_none(self.events[resource as usize]) {
            self.clear(resource);
        }
        // The tails are in descending order, so the number of later tails is the index of the first lane that accepts
        // the event.
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

    /// Inserts an event into a lane that contains later events. Most such events are the first or second of their lane.
    #[inline(never)]
    fn sort_in(&mut self, lane: usize, event: Event) {
        self.tails[lane] = self.tails[lane].max(time(event));
        let (head, rest) = (&mut self.heads[lane], &mut self.rest[lane]);
        if event < *head {
            rest.push_front(std::mem::replace(head, event));
        } else if rest.front().is_none_or(|&next| event < next) {
            rest.push_front(event);
        } else {
            rest.insert(rest.partition_point(|&other| other < event), event);
        }
    }

    /// Removes the event of `resource`.
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

    /// Returns `true` if `resource` has an event.
    #[inline]
    pub fn is_set(&self, resource: u32) -> bool {
        !is_none(self.events[resource as usize])
    }

    /// Returns the time of the event of `resource`, if there is one.
    #[inline]
    pub fn time_of(&self, resource: u32) -> Option<Time> {
        let event = self.events[resource as usize];
        self.is_set(resource).then(|| Time(time(event)))
    }

    /// Returns the earliest event.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        let first = self.first();
        (time(first) < u64::MAX).then(|| (Time(time(first)), self.resource(first)))
    }

    /// Removes and returns the earliest event if it is not later than `until`.
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
