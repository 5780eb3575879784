//! Placement of small objects in buckets by a hash of their keys, as in the cache of small objects of CacheLib:
//! `placement=sets`.
//!
//! A bucket is a block. A write reads the bucket, evicts its oldest objects until the new one fits, and writes it. A
//! filter in memory knows the misses, so that they read nothing.

use super::access::{BLOCK, Effects, Placement};
use crate::sim::request::Operation;

/// Objects in buckets.
#[derive(Debug)]
pub struct Sets {
    /// Keys and sizes of the objects of each bucket, from the oldest.
    buckets: Vec<Vec<(u64, u32)>>,
    objects: u64,
    bytes: u64,
}

impl Sets {
    /// Creates `count` buckets, at least 1.
    pub fn new(count: u64) -> Sets {
        Sets { buckets: vec![Vec::new(); count as usize], objects: 0, bytes: 0 }
    }

    fn bucket(&self, key: u64) -> usize {
        // Keys may be numbers in sequence.
        (xxhash_rust::xxh3::xxh3_64(&key.to_le_bytes()) % self.buckets.len() as u64) as usize
    }

    /// Removes an object from its bucket.
    fn remove(&mut self, bucket: usize, key: u64) -> bool {
        let found = self.buckets[bucket].iter().position(|(other, _)| *other == key);
        if let Some(at) = found {
            let (_, size) = self.buckets[bucket].remove(at);
            self.objects -= 1;
            self.bytes -= u64::from(size);
        }
        found.is_some()
    }
}

impl Placement for Sets {
    fn get(&mut self, key: u64, effects: &mut Effects) -> Option<u64> {
        let bucket = self.bucket(key);
        let (_, size) = self.buckets[bucket].iter().find(|(other, _)| *other == key)?;
        effects.add(Operation::Read, bucket as u64, 1);
        Some(u64::from(*size))
    }

    fn set(&mut self, key: u64, size: u64, effects: &mut Effects) -> bool {
        if size > BLOCK {
            self.delete(key, effects);
            return false;
        }
        let bucket = self.bucket(key);
        if !self.buckets[bucket].is_empty() {
            effects.add(Operation::Read, bucket as u64, 1);
        }
        self.remove(bucket, key);
        let used = |bucket: &[(u64, u32)]| bucket.iter().map(|(_, size)| u64::from(*size)).sum::<u64>();
        while used(&self.buckets[bucket]) + size > BLOCK {
            let (oldest, _) = self.buckets[bucket][0];
            self.remove(bucket, oldest);
            effects.counts.evictions += 1;
        }
        self.buckets[bucket].push((key, size as u32));
        self.objects += 1;
        self.bytes += size;
        effects.add(Operation::Write, bucket as u64, 1);
        true
    }

    fn delete(&mut self, key: u64, effects: &mut Effects) -> bool {
        let bucket = self.bucket(key);
        let removed = self.remove(bucket, key);
        if removed {
            effects.add(Operation::Read, bucket as u64, 1);
            effects.add(Operation::Write, bucket as u64, 1);
        }
        removed
    }

    fn stored(&self) -> (u64, u64) {
        (self.objects, self.bytes)
    }
}
