//! Placement of each object in an extent of its own, as files of a cache: `placement=extent`.

use std::collections::BTreeMap;

use super::access::{BLOCK, Effects, Placement};
use super::order::{Index, Policy};
use crate::sim::request::Operation;

/// Search for a free extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// The first one that is large enough.
    #[default]
    First,
    /// The first one after the last allocation.
    Next,
    /// The first one for the size rounded up to a power of two, which leaves fewer holes of odd sizes.
    Class,
}

/// An object.
#[derive(Clone, Copy, Debug)]
struct Object {
    size: u64,
    start: u64,
    /// Number of allocated blocks.
    blocks: u64,
}

/// Objects in extents.
#[derive(Debug)]
pub struct Extents {
    capacity: u64,
    search: Search,
    /// True to trim freed extents.
    trim: bool,
    index: Index<Object>,
    /// Free extents: start and number of blocks. Neighbors are merged.
    free: BTreeMap<u64, u64>,
    /// End of the last allocation.
    cursor: u64,
    bytes: u64,
}

impl Extents {
    /// Creates a placement in `capacity` blocks.
    pub fn new(capacity: u64, search: Search, policy: Policy, trim: bool) -> Extents {
        let free = BTreeMap::from([(0, capacity)]);
        Extents { capacity, search, trim, index: Index::new(policy), free, cursor: 0, bytes: 0 }
    }

    /// Allocates an extent. `None` if no free one is large enough.
    fn allocate(&mut self, blocks: u64) -> Option<u64> {
        let fits = |(_, length): &(&u64, &u64)| **length >= blocks;
        let from = if self.search == Search::Next { self.cursor } else { 0 };
        let found = self.free.range(from..).find(fits).or_else(|| self.free.range(..from).find(fits));
        let (start, length) = found.map(|(start, length)| (*start, *length))?;
        self.free.remove(&start);
        if length > blocks {
            self.free.insert(start + blocks, length - blocks);
        }
        self.cursor = start + blocks;
        Some(start)
    }

    /// Frees the extent of a removed object.
    fn release(&mut self, object: Object, effects: &mut Effects) {
        self.bytes -= object.size;
        if self.trim {
            effects.add(Operation::Trim, object.start, object.blocks);
        }
        let (mut start, mut end) = (object.start, object.start + object.blocks);
        if let Some((before, length)) = self.free.range(..start).next_back().map(|(start, length)| (*start, *length))
            && before + length == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(length) = self.free.remove(&end) {
            end += length;
        }
        self.free.insert(start, end - start);
    }
}

impl Placement for Extents {
    fn get(&mut self, key: u64, effects: &mut Effects) -> Option<u64> {
        let object = self.index.get(key)?;
        effects.add(Operation::Read, object.start, object.size.div_ceil(BLOCK));
        Some(object.size)
    }

    fn set(&mut self, key: u64, size: u64, effects: &mut Effects) -> bool {
        let needed = size.div_ceil(BLOCK);
        let blocks = if self.search == Search::Class { needed.next_power_of_two() } else { needed };
        if blocks > self.capacity {
            self.delete(key, effects);
            return false;
        }
        let old = self.index.remove(key);
        let start = match old {
            // An object that fits is overwritten in place.
            Some(old) if old.blocks >= needed => {
                self.bytes -= old.size;
                self.index.insert(key, Object { size, ..old });
                old.start
            }
            old => {
                old.into_iter().for_each(|old| self.release(old, effects));
                let start = loop {
                    if let Some(start) = self.allocate(blocks) {
                        break start;
                    }
                    let Some(evicted) = self.index.evict() else { return false };
                    effects.counts.evictions += 1;
                    self.release(evicted, effects);
                };
                self.index.insert(key, Object { size, start, blocks });
                start
            }
        };
        self.bytes += size;
        effects.add(Operation::Write, start, needed);
        true
    }

    fn delete(&mut self, key: u64, effects: &mut Effects) -> bool {
        let old = self.index.remove(key);
        old.into_iter().for_each(|old| self.release(old, effects));
        old.is_some()
    }

    fn stored(&self) -> (u64, u64) {
        (self.index.len(), self.bytes)
    }
}
