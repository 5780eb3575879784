//! Submission queues: requests wait in them until the controller fetches them.
//!
//! A device without `host.queues` has one queue, and takes its first request when a place is free. With queue pairs,
//! the controller chooses a queue by arbitration, and a fetch may take time. See docs/model/queues.md.

use std::collections::VecDeque;

use super::arbitration::{Arbitration, Turn};
use crate::config::DeviceConfig;
use crate::sim::request::Request;
use crate::sim::time::Time;

/// Requests that the controller has not fetched.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// Number of requests in all queues, and in a fetch.
    count: usize,
    /// The requests of a device with one queue, oldest first.
    single: VecDeque<Request>,
    pairs: Option<Box<Pairs>>,
}

/// Submission queues with arbitration.
#[derive(Clone, Debug)]
struct Pairs {
    queues: Vec<VecDeque<Request>>,
    arbitration: Arbitration,
    /// The current turn, and the number of commands fetched in it.
    turn: Option<(Turn, u32)>,
    /// Time of a fetch.
    time: Time,
    /// Requests that are being fetched.
    fetching: VecDeque<Request>,
    /// End of the fetch, if there is one.
    end: Option<Time>,
}

impl Submitted {
    /// Creates empty queues.
    pub fn new(config: &DeviceConfig, seed: u64) -> Submitted {
        let pairs = config.host.queues.as_ref().map(|options| {
            let arbitration = options.arbitration.build(config, seed, &Default::default());
            Box::new(Pairs {
                queues: vec![VecDeque::new(); options.count as usize],
                arbitration: arbitration.expect("the options were checked"),
                turn: None,
                time: options.fetch.time(),
                fetching: VecDeque::new(),
                end: None,
            })
        });
        Submitted { count: 0, single: VecDeque::new(), pairs }
    }

    /// Returns the number of requests that wait, or are being fetched.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns `true` if no request waits or is being fetched.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns `true` if a fetch takes time.
    pub fn takes_time(&self) -> bool {
        self.pairs.as_ref().is_some_and(|pairs| pairs.time > Time::ZERO)
    }

    /// Adds a request to the queue of its stream.
    pub fn add(&mut self, request: Request) {
        self.count += 1;
        match &mut self.pairs {
            None => self.single.push_back(request),
            Some(pairs) => pairs.add(request),
        }
    }

    /// Removes and returns the next request for a device whose fetches take no time.
    #[inline]
    pub fn next(&mut self) -> Option<Request> {
        let request = match &mut self.pairs {
            None => self.single.pop_front(),
            Some(pairs) => pairs.next(),
        };
        self.count -= usize::from(request.is_some());
        request
    }

    /// Starts to fetch the commands of one turn, up to `room` of them. Returns the end of the fetch, or `None` if one
    /// is going on, or nothing can be fetched.
    pub fn fetch(&mut self, room: usize, now: Time) -> Option<Time> {
        let pairs = self.pairs.as_mut()?;
        if pairs.end.is_some() {
            return None;
        }
        let mut left = room;
        while left > 0
            && let Some(request) = pairs.next()
        {
            pairs.fetching.push_back(request);
            left -= 1;
            if pairs.turn.is_none() {
                break;
            }
        }
        if pairs.fetching.is_empty() {
            return None;
        }
        pairs.end = Some(now.later(pairs.time));
        pairs.end
    }

    /// Removes and returns a request whose fetch has ended by `now`.
    pub fn fetched(&mut self, now: Time) -> Option<Request> {
        let pairs = self.pairs.as_mut()?;
        pairs.end.filter(|end| *end <= now)?;
        let request = pairs.fetching.pop_front();
        match request {
            Some(_) => self.count -= 1,
            None => pairs.end = None,
        }
        request
    }
}

impl Pairs {
    fn add(&mut self, request: Request) {
        let number = usize::from(request.stream) % self.queues.len();
        let queue = &mut self.queues[number];
        queue.push_back(request);
        let has_turn = self.turn.is_some_and(|(turn, _)| usize::from(turn.queue) == number);
        if queue.len() == 1 && !has_turn {
            self.arbitration.ready(number as u16);
        }
    }

    /// Removes and returns the next request by arbitration. The turn ends with its last command.
    fn next(&mut self) -> Option<Request> {
        let (turn, fetched) = match self.turn {
            Some(current) => current,
            None => (self.arbitration.take()?, 0),
        };
        let queue = &mut self.queues[usize::from(turn.queue)];
        let request = queue.pop_front();
        let fetched = fetched + u32::from(request.is_some());
        if fetched < turn.most && !queue.is_empty() {
            self.turn = Some((turn, fetched));
            return request;
        }
        self.turn = None;
        self.arbitration.ended(turn, fetched);
        if !queue.is_empty() {
            self.arbitration.ready(turn.queue);
        }
        request
    }
}
