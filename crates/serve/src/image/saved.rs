//! Saved contents of a memory with power-loss protection, written to the file before the host gets its reply.
//!
//! In a real device, a capacitor supplies the memory until everything is in flash. A killed program has no such time,
//! so the contents are saved in advance. They are stored after the flash in the file, in slots of one size that are
//! allocated and freed individually. A slot has two copies of its head, before and after the payload. The head with the
//! higher generation counts, also if it says that the slot is free.

use std::collections::VecDeque;

use floatgate_core::sim::id::Lpn;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::layout::{COPIES, HEAD};

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
}

/// Contents of a head in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Entry in the slot. `None` if the slot is free.
    pub entry: Option<Entry>,
    /// Generation of the head. 0 if it was never written.
    pub generation: u64,
}

/// A copy of a head in the file's format.
pub type Encoded = [u8; HEAD];

impl Head {
    /// Encodes a copy of the head for the slot `number`.
    pub fn encode(&self, number: u32, copy: usize) -> Encoded {
        let (kind, lpn, count, sequence, digest) = match self.entry {
            None => (0, Lpn(0), 0, 0, 0),
            Some(Entry::Write { lpn, sequence, digest: Some(digest) }) => (1, lpn, 1, sequence, digest),
            Some(Entry::Write { lpn, sequence, digest: None }) => (2, lpn, 1, sequence, 0),
            Some(Entry::Trims { lpn, count, sequence }) => (3, lpn, count, sequence, 0),
        };
        let mut bytes = [0; HEAD];
        bytes[0] = kind;
        bytes[4..8].copy_from_slice(&lpn.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&u32::to_le_bytes(count));
        bytes[16..24].copy_from_slice(&sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&u64::to_le_bytes(digest));
        bytes[32..40].copy_from_slice(&self.generation.to_le_bytes());
        let check = xxh3_64_with_seed(&bytes[..56], u64::from(number) | (copy as u64) << 32).to_le_bytes();
        bytes[56..].copy_from_slice(&check);
        bytes
    }

    /// Encodes both copies.
    pub fn copies(&self, number: u32) -> [Encoded; COPIES] {
        [0, 1].map(|copy| self.encode(number, copy))
    }

    /// Decodes a copy of the head of the slot `number`. `None` if it is damaged. All zeros stand for a slot that was
    /// never used.
    pub fn decode(number: u32, copy: usize, bytes: &Encoded) -> Option<Head> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if *bytes == [0; HEAD] {
            return Some(Head { entry: None, generation: 0 });
        }
        let (lpn, count, sequence) = (Lpn(short(4)?), short(8)?, long(16)?);
        let entry = match bytes[0] {
            0 => None,
            1 => Some(Entry::Write { lpn, sequence, digest: long(24) }),
            2 => Some(Entry::Write { lpn, sequence, digest: None }),
            3 => Some(Entry::Trims { lpn, count, sequence }),
            _ => return None,
        };
        let head = Head { entry, generation: long(32)? };
        (head.encode(number, copy) == *bytes).then_some(head)
    }
}

/// Allocation of the slots.
#[derive(Debug, Default)]
pub struct SavedSlots {
    /// Free slots, in the order in which they are used again: the longest free first.
    free: VecDeque<u32>,
    /// Number of slots in the file.
    count: u32,
    /// Slots that hold trims, each with the last sequence number in the slot.
    trims: Vec<(u64, u32)>,
    /// Consecutive trims that are being collected into one entry.
    run: Option<(Lpn, u32, u64)>,
}

impl SavedSlots {
    /// Creates the allocation of an existing file. `count` is the number of slots, `taken` lists the used ones in
    /// ascending order, and `trims` lists the slots that hold trims, each with its last sequence number.
    pub fn found(count: u32, taken: &[u32], trims: Vec<(u64, u32)>) -> SavedSlots {
        let free = (0..count).filter(|number| taken.binary_search(number).is_err()).collect();
        SavedSlots { free, count, trims, run: None }
    }

    /// Allocates a slot.
    pub fn take(&mut self) -> u32 {
        self.free.pop_front().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// Frees a slot.
    pub fn free(&mut self, number: u32) {
        self.free.push_back(number);
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

    /// Returns the slots of trims up to a sequence number, because these trims are in flash.
    pub fn journalled(&mut self, up_to: u64) -> Vec<u32> {
        self.trims.extract_if(.., |(last, _)| *last <= up_to).map(|(_, number)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip_in_their_own_slot_and_copy_only() {
        for entry in [
            Some(Entry::of_write(Lpn(7), 1 << 40, Some(b"x"))),
            Some(Entry::of_write(Lpn(7), 9, None)),
            Some(Entry::Trims { lpn: Lpn(3), count: 100, sequence: 5 }),
            None,
        ] {
            let head = Head { entry, generation: 3 };
            let bytes = head.encode(4, 1);
            assert_eq!(Head::decode(4, 1, &bytes), Some(head));
            assert_eq!((Head::decode(5, 1, &bytes), Head::decode(4, 0, &bytes)), (None, None));
            for at in 0..HEAD {
                let mut wrong = bytes;
                wrong[at] ^= 1;
                assert_eq!(Head::decode(4, 1, &wrong), None, "byte {at}");
            }
        }
        assert_eq!(Head::decode(0, 0, &[0; HEAD]), Some(Head { entry: None, generation: 0 }));
    }

    #[test]
    fn slots_are_reused_and_trims_are_combined() {
        let mut slots = SavedSlots::found(3, &[1], Vec::new());
        assert_eq!([slots.take(), slots.take(), slots.take()], [0, 2, 3]);
        slots.free(1);
        assert_eq!(slots.trim(Lpn(5), 10), None);
        assert_eq!(slots.trim(Lpn(6), 11), None);
        let entry = slots.trim(Lpn(9), 12);
        assert_eq!(entry, Some(Entry::Trims { lpn: Lpn(5), count: 2, sequence: 10 }));
        assert_eq!(slots.take_for_trims(11), 1);
        assert_eq!(slots.end_run(), Some(Entry::Trims { lpn: Lpn(9), count: 1, sequence: 12 }));
        assert_eq!(slots.take_for_trims(12), 4);
        assert_eq!(slots.journalled(11), [1]);
        assert_eq!(slots.take(), 5, "it is free when its owner says so");
    }
}
