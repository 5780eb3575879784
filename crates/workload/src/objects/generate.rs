//! Generated accesses to a key-value cache of an inference server.
//!
//! Conversations start at random times. Each turn reads the blocks of the turns before it, and writes its own. After
//! the last turn, the blocks are removed. Turns and blocks per turn have geometric distributions, so that the hit ratio
//! is 1 - 1 / turns, and a prompt has turns x blocks on average.
//!
//! Defaults are moments of the conversations of Mooncake (R. Qin et al., FAST 2025; conversation_trace.jsonl at commit
//! a2a4b18): 12,031 prompts in 3,537 s with 23.98 blocks of 512 tokens each, a hit ratio of 0.366 with unlimited
//! capacity, and 213 s between two accesses to a block.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::access::{Access, Kind};
use crate::sim::rng::Rng;
use crate::sim::time::Time;

/// Options of the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Number of prompts.
    pub prompts: u64,
    /// Mean number of prompts per second.
    pub rate: f64,
    /// Mean number of turns of a conversation, at least 1.
    pub turns: f64,
    /// Mean number of blocks that a turn adds, at least 1.
    pub blocks: f64,
    /// Mean time between two turns, and from the last turn to the removal.
    pub think: Time,
    /// Bytes of a block.
    pub block: u64,
    /// True if the blocks of a conversation are removed after it.
    pub drops: bool,
    /// Seed.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            prompts: 1000,
            rate: 3.4,
            turns: 1.58,
            blocks: 15.2,
            think: Time::from_ns(213_000_000_000),
            block: 2 << 20,
            drops: true,
            seed: 1,
        }
    }
}

/// Event of a conversation, in the order of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Time,
    /// Number of the conversation.
    number: u64,
    /// Blocks that have been written.
    blocks: u32,
    /// True if the conversation is over, and its blocks are removed.
    is_over: bool,
}

/// Generator of accesses.
pub struct Generator {
    options: Options,
    rng: Rng,
    events: BinaryHeap<Reverse<Event>>,
    /// Start of the next conversation, and its number.
    next: (Time, u64),
    prompts: u64,
    ready: VecDeque<Access>,
}

impl Generator {
    /// Creates a generator.
    pub fn new(options: Options) -> Generator {
        let rng = Rng::new(options.seed, "objects/kv-cache");
        let events = BinaryHeap::new();
        Generator { options, rng, events, next: (Time::ZERO, 0), prompts: 0, ready: VecDeque::new() }
    }

    /// Returns the share of the prompts that have been generated.
    pub fn progress(&self) -> f64 {
        self.prompts as f64 / self.options.prompts.max(1) as f64
    }

    /// Returns the next access.
    pub fn next(&mut self) -> Option<Access> {
        while self.ready.is_empty() && self.prompts < self.options.prompts {
            let event = match self.events.peek() {
                Some(Reverse(event)) if event.at <= self.next.0 => self.events.pop()?.0,
                _ => self.begin(),
            };
            if event.is_over { self.end(event) } else { self.turn(event) }
        }
        self.ready.pop_front()
    }

    /// Starts a conversation.
    fn begin(&mut self) -> Event {
        let (at, number) = self.next;
        let gap = self.rng.exponential(self.options.turns / self.options.rate);
        self.next = (after(at, gap), number + 1);
        Event { at, number, blocks: 0, is_over: false }
    }

    /// Generates a turn: reads of the blocks before it, and writes of its own.
    fn turn(&mut self, event: Event) {
        self.prompts += 1;
        let total = event.blocks.saturating_add(self.geometric(self.options.blocks));
        for block in 0..total {
            let kind = if block < event.blocks { Kind::Get } else { Kind::Set };
            self.add(event, kind, block);
        }
        let is_over = self.rng.unit() * self.options.turns < 1.0;
        let think = self.rng.exponential(self.options.think.as_s());
        let at = after(event.at, think);
        self.events.push(Reverse(Event { at, blocks: total, is_over, ..event }));
    }

    /// Removes the blocks of a conversation.
    fn end(&mut self, event: Event) {
        for block in 0..event.blocks {
            if self.options.drops {
                self.add(event, Kind::Delete, block);
            }
        }
    }

    fn add(&mut self, event: Event, kind: Kind, block: u32) {
        let key = event.number << 24 | u64::from(block);
        self.ready.push_back(Access { at: event.at, kind, key, size: self.options.block });
    }

    /// Returns a number from 1 on with a geometric distribution.
    fn geometric(&mut self, mean: f64) -> u32 {
        let mut number = 1;
        while self.rng.unit() * mean >= 1.0 && number < 1 << 16 {
            number += 1;
        }
        number
    }
}

/// Returns the time a number of seconds later, at most the end of simulated time.
fn after(at: Time, seconds: f64) -> Time {
    at.later(Time((seconds * 1e12).min(1e19) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments that the defaults come from: prompts per second, blocks per prompt, and the share of reads.
    #[test]
    fn the_defaults_have_the_published_moments() {
        let mut generator = Generator::new(Options { prompts: 100_000, ..Options::default() });
        let (mut reads, mut writes, mut removed, mut last) = (0u64, 0u64, 0u64, Time::ZERO);
        while let Some(access) = generator.next() {
            assert!(access.at >= last);
            last = access.at;
            match access.kind {
                Kind::Get => reads += 1,
                Kind::Set => writes += 1,
                Kind::Delete => removed += 1,
            }
        }
        let close = |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 0.04, "{value} {expected}");
        close((reads + writes) as f64 / 100_000.0, 23.98);
        close(reads as f64 / (reads + writes) as f64, 0.366);
        close(100_000.0 / last.as_s(), 12_031.0 / 3537.0);
        assert!(removed > writes * 9 / 10, "{removed} {writes}");
    }
}
