//! Saved contents of a memory with power-loss protection, written to the file before the host gets its reply.
//!
//! In a real device, a capacitor supplies the memory until everything is in flash. A killed program has no such time,
//! so the contents are saved in advance. They are stored after the flash in the file, in slots of one size that are
//! allocated and freed individually.

use std::collections::BTreeSet;

use floatgate_core::sim::id::Lpn;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::layout::SAVED_HEAD;

/// A saved entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Contents of a mapping unit after a write.
    Write {
        /// Mapping unit.
        lpn: Lpn,
        /// Sequence number of the write.
        sequence: u64,
        /// Digest of the contents. `None` if the contents were lost.
        digest: Option<u64>,
    },
    /// Trims of consecutive mapping units with consecutive sequence numbers.
    Trims {
        /// First mapping unit.
        lpn: Lpn,
        /// Number of units.
        count: u32,
        /// Sequence number of the first trim.
        sequence: u64,
    },
}

impl Entry {
    /// Creates the entry of a write.
    pub fn of_write(lpn: Lpn, sequence: u64, bytes: Option<&[u8]>) -> Entry {
        Entry::Write { lpn, sequence, digest: bytes.map(xxh3_64) }
    }

    /// Returns the head of the entry for the slot `number`.
    pub fn head(&self, number: u32) -> [u8; SAVED_HEAD] {
        let (kind, lpn, count, sequence, digest) = match *self {
            Entry::Write { lpn, sequence, digest: Some(digest) } => (1, lpn, 1, sequence, digest),
            Entry::Write { lpn, sequence, digest: None } => (2, lpn, 1, sequence, 0),
            Entry::Trims { lpn, count, sequence } => (3, lpn, count, sequence, 0),
        };
        let mut bytes = [0; SAVED_HEAD];
        bytes[0] = kind;
        bytes[4..8].copy_from_slice(&lpn.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&u32::to_le_bytes(count));
        bytes[16..24].copy_from_slice(&sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&u64::to_le_bytes(digest));
        let check = xxh3_64_with_seed(&bytes[..32], u64::from(number)).to_le_bytes();
        bytes[32..40].copy_from_slice(&check);
        bytes
    }

    /// Parses the head in the slot `number`. `None` if the slot is free, or if writing it was interrupted.
    pub fn parse(number: u32, bytes: &[u8]) -> Option<Entry> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if long(32)? != xxh3_64_with_seed(bytes.get(..32)?, u64::from(number)) {
            return None;
        }
        let (lpn, count, sequence) = (Lpn(short(4)?), short(8)?, long(16)?);
        match bytes[0] {
            1 => Some(Entry::Write { lpn, sequence, digest: long(24) }),
            2 => Some(Entry::Write { lpn, sequence, digest: None }),
            3 => Some(Entry::Trims { lpn, count, sequence }),
            _ => None,
        }
    }
}

/// Allocation of the slots.
#[derive(Debug, Default)]
pub struct SocketAddresses {
    free: BTreeSet<u32>,
    /// Number of slots in the file.
    count: u32,
    /// Slots that hold trims, each with the last sequence number in the slot.
    trims: Vec<(u64, u32)>,
    /// Consecutive trims that are being collected into one entry.
    run: Option<(Lpn, u32, u64)>,
}

impl SocketAddresses {
    /// Creates the allocation of an existing file. `count` is the number of slots, `taken` lists the used ones in
    /// ascending order, and `trims` lists the slots that hold trims, each with its last sequence number.
    pub fn found(count: u32, taken: &[u32], trims: Vec<(u64, u32)>) -> SocketAddresses {
        let free = (0..count).filter(|number| taken.binary_search(number).is_err()).collect();
        SocketAddresses { free, count, trims, run: None }
    }

    /// Allocates a slot.
    pub fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// Frees a slot.
    pub fn free(&mut self, number: u32) {
        self.free.insert(number);
    }

    /// Adds a trim to the collected ones if it is consecutive to them. Otherwise returns the collected ones as an entry
    /// and starts a new collection.
    pub fn trim(&mut self, lpn: Lpn, sequence: u64) -> Option<Entry> {
        if let Some((first, count, number)) = &mut self.run
            && (first.0 + *count, *number + u64::from(*count)) == (lpn.0, sequence)
        {
            *count += 1;
            return None;
        }
        let complete = self.end_run();
        self.run = Some((lpn, 1, sequence));
        complete
    }

    /// Returns the collected trims as an entry, and ends the collection.
    pub fn end_run(&mut self) -> Option<Entry> {
        self.run.take().map(|(lpn, count, sequence)| Entry::Trims { lpn, count, sequence })
    }

    /// Allocates a slot for trims up to the sequence number `last`.
    pub fn take_for_trims(&mut self, last: u64) -> u32 {
        let number = self.take();
        self.trims.push((last, number));
        number
    }

    /// Frees the slots of trims up to a sequence number, because these trims are in flash. Calls `freed` with each
    /// slot.
    pub fn journalled(&mut self, up_to: u64, mut freed: impl FnMut(u32)) {
        let SocketAddresses { trims, free, .. } = self;
        trims.retain(|(last, number)| {
            let is_done = *last <= up_to;
            if is_done {
                free.insert(*number);
                freed(*number);
            }
            !is_done
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip_in_their_own_slot_only() {
        for entry in [
            Entry::of_write(Lpn(7), 1 << 40, Some(b"x")),
            Entry::of_write(Lpn(7), 9, None),
            Entry::Trims { lpn: Lpn(3), count: 100, sequence: 5 },
        ] {
            let bytes = entry.head(4);
            assert_eq!(Entry::parse(4, &bytes), Some(entry));
            assert_eq!(Entry::parse(5, &bytes), None);
            for at in 0..40 {
                let mut wrong = bytes;
                wrong[at] ^= 1;
                assert_eq!(Entry::parse(4, &wrong), None, "byte {at}");
            }
        }
        assert_eq!(Entry::parse(0, &[0; SAVED_HEAD]), None);
    }

    #[test]
    fn slots_are_reused_and_trims_are_combined() {
        let mut places = SocketAddresses::found(3, &[1], Vec::new());
        assert_eq!([places.take(), places.take(), places.take()], [0, 2, 3]);
        places.free(1);
        assert_eq!(places.trim(Lpn(5), 10), None);
        assert_eq!(places.trim(Lpn(6), 11), None);
        let entry = places.trim(Lpn(9), 12);
        assert_eq!(entry, Some(Entry::Trims { lpn: Lpn(5), count: 2, sequence: 10 }));
        assert_eq!(places.take_for_trims(11), 1);
        assert_eq!(places.end_run(), Some(Entry::Trims { lpn: Lpn(9), count: 1, sequence: 12 }));
        assert_eq!(places.take_for_trims(12), 4);
        let mut freed = Vec::new();
        places.journalled(11, |number| freed.push(number));
        assert_eq!((freed, places.take()), (vec![1], 1));
    }
}
