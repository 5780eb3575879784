//! Placement of objects in a log of segments, as in the cache of large objects of CacheLib: `placement=log`.
//!
//! Objects are appended to a segment. When it is full, another segment is reused, and all its objects are
//! evicted.

use super::access::{BLOCK, Effects, Placement};
use super::order::{Index, Policy};
use crate::sim::request::Operation;

/// An object.
#[derive(Clone, Copy, Debug)]
struct Object {
    size: u64,
    start: u64,
}

/// A segment.
#[derive(Clone, Debug, Default)]
struct Segment {
    /// Keys of the objects that were written to it, with their first blocks.
    written: Vec<(u64, u64)>,
    /// Number of the last access.
    accessed: u64,
}

/// Objects in a log.
#[derive(Debug)]
pub struct Log {
    /// Blocks of a segment.
    length: u64,
    policy: Policy,
    trim: bool,
    index: Index<Object>,
    segments: Vec<Segment>,
    current: usize,
    /// Blocks used in the current segment.
    used: u64,
    accesses: u64,
    bytes: u64,
}

impl Log {
    /// Creates a log of `count` segments of `length` blocks, both at least 1.
    pub fn new(count: u64, length: u64, policy: Policy, trim: bool) -> Log {
        let segments = vec![Segment::default(); count as usize];
        let index = Index::new(Policy::Fifo);
        Log { length, policy, trim, index, segments, current: 0, used: 0, accesses: 0, bytes: 0 }
    }

    fn touch(&mut self, segment: usize) {
        self.accesses += 1;
        self.segments[segment].accessed = self.accesses;
    }

    /// Evicts the objects of the next segment to write: the one that was written, or accessed, longest ago.
    fn advance(&mut self, effects: &mut Effects) {
        let next = (self.current + 1) % self.segments.len();
        let others = (0..self.segments.len()).filter(|segment| *segment != self.current);
        self.current = match self.policy {
            Policy::Fifo => next,
            Policy::Lru => others.min_by_key(|segment| self.segments[*segment].accessed).unwrap_or(next),
        };
        self.used = 0;
        let first = self.current as u64 * self.length;
        let written = std::mem::take(&mut self.segments[self.current].written);
        if self.trim && !written.is_empty() {
            effects.add(Operation::Trim, first, self.length);
        }
        for (key, start) in written {
            // Another copy of the object may have been written since.
            if self.index.peek(key).is_some_and(|object| object.start == start) {
                effects.counts.evictions += 1;
                self.forget(key);
            }
        }
    }

    fn forget(&mut self, key: u64) -> bool {
        let old = self.index.remove(key);
        self.bytes -= old.map_or(0, |old| old.size);
        old.is_some()
    }
}

impl Placement for Log {
    fn get(&mut self, key: u64, effects: &mut Effects) -> Option<u64> {
        let object = self.index.get(key)?;
        self.touch((object.start / self.length) as usize);
        effects.add(Operation::Read, object.start, object.size.div_ceil(BLOCK));
        Some(object.size)
    }

    fn set(&mut self, key: u64, size: u64, effects: &mut Effects) -> bool {
        self.forget(key);
        let blocks = size.div_ceil(BLOCK);
        if blocks > self.length {
            return false;
        }
        if self.used + blocks > self.length {
            self.advance(effects);
        }
        let start = self.current as u64 * self.length + self.used;
        self.used += blocks;
        self.segments[self.current].written.push((key, start));
        self.touch(self.current);
        self.index.insert(key, Object { size, start });
        self.bytes += size;
        effects.add(Operation::Write, start, blocks);
        true
    }

    fn delete(&mut self, key: u64, _: &mut Effects) -> bool {
        self.forget(key)
    }

    fn stored(&self) -> (u64, u64) {
        (self.index.len(), self.bytes)
    }
}
