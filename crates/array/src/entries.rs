//! Entries of the stripe journal, and the parts of the members that they occupy.

use std::collections::VecDeque;

use floatgate_core::sim::request::SECTOR;
use xxhash_rust::xxh3::xxh3_64;

use crate::config::{JOURNAL_AREA, JOURNAL_HEADER};

/// First bytes of an entry.
const MAGIC: u64 = u64::from_le_bytes(*b"FGSTRIPE");

/// Sectors of the journal area of a member.
pub const AREA: u64 = JOURNAL_AREA / SECTOR;

/// Sectors of the header of an entry.
pub const HEADER: u32 = (JOURNAL_HEADER / SECTOR) as u32;

/// Number of words in the header: magic, sequence number, stripe, first sector, end, chunks, digest.
const WORDS: usize = 7;

/// State of a part of the journal area that must not be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The operation has not completed.
    Open,
    /// The operation has completed, and its writes may not be in flash.
    Done,
    /// A flush that started after the operation has not completed.
    Flushing,
}

/// Part of the journal area of a member with an entry that recovery needs.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub member: u32,
    pub start: u64,
    pub end: u64,
    pub operation: u32,
    pub state: Use,
}

/// Journal of an array.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// Sequence number of the last entry.
    pub sequence: u64,
    pub used: Vec<Used>,
    /// Operations that wait for room, in the order of their arrival.
    pub waiting: VecDeque<u32>,
    pub is_flushing: bool,
    /// Recovery after a restart: the number of its operations that have not completed. The host waits.
    pub recovery: Option<u32>,
    /// True if the recovery restores parity. Otherwise, it only finds the last entry.
    pub restores: bool,
}

/// Entry that was read from a member.
pub struct Entry {
    pub sequence: u64,
    pub row: u64,
    pub lo: u32,
    pub hi: u32,
    /// Data chunks whose data the entry has, a bit each.
    pub chunks: u64,
    /// Their data. Empty for zeros.
    pub data: Vec<u8>,
}

impl Entry {
    /// Returns the bytes of the entry.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = [MAGIC, self.sequence, self.row, self.lo.into(), self.hi.into(), self.chunks];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let digest = xxh3_64(&[&bytes[..], &self.data].concat());
        bytes.extend(digest.to_le_bytes());
        bytes.resize(JOURNAL_HEADER as usize, 0);
        bytes.extend(&self.data);
        bytes
    }

    /// Reads the entry at the start of `bytes`, if there is a whole one.
    pub fn of_bytes(bytes: &[u8]) -> Option<Entry> {
        let (words, _) = bytes.get(..WORDS * 8)?.as_chunks::<8>();
        let [magic, sequence, row, lo, hi, chunks, digest]: [u64; WORDS] =
            std::array::from_fn(|word| u64::from_le_bytes(words[word]));
        let length = hi.checked_sub(lo).filter(|sectors| magic == MAGIC && *sectors <= AREA)? * SECTOR;
        let data = bytes.get(JOURNAL_HEADER as usize..)?;
        let with_data = data.get(..(length * u64::from(chunks.count_ones())) as usize);
        let fits = |data: &&[u8]| xxh3_64(&[&bytes[..(WORDS - 1) * 8], *data].concat()) == digest;
        let data = with_data.into_iter().chain([&data[..0]]).find(fits)?.to_vec();
        Some(Entry { sequence, row, lo: lo as u32, hi: hi as u32, chunks, data })
    }

    /// Returns the sectors that the entry takes.
    pub fn sectors(&self) -> u64 {
        u64::from(HEADER) + (self.data.len() as u64 / SECTOR).next_multiple_of(8)
    }

    /// Returns the data of a chunk in the range `lo..hi`.
    pub fn data_of(&self, index: u32, lo: u32, hi: u32) -> Vec<u8> {
        let before = (self.chunks & ((1 << index) - 1)).count_ones();
        let at = |sector: u32| ((before * (self.hi - self.lo) + sector - self.lo) as u64 * SECTOR) as usize;
        let length = (u64::from(hi - lo) * SECTOR) as usize;
        if self.data.is_empty() { vec![0; length] } else { self.data[at(lo)..at(lo) + length].to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_again_if_they_are_whole() {
        let data: Vec<u8> = (0..2 * 3 * 512).map(|at: u32| (at / 7) as u8).collect();
        let entry = |chunks, data: &[u8]| Entry { sequence: 9, row: 4, lo: 2, hi: 5, chunks, data: data.to_vec() };
        let bytes = entry(0b1010, &data).to_bytes();
        let found = Entry::of_bytes(&bytes).unwrap();
        assert_eq!((found.sequence, found.row, found.lo, found.hi, found.sectors()), (9, 4, 2, 5, 16));
        assert_eq!(found.data_of(1, 3, 5), data[512..3 * 512]);
        assert_eq!(found.data_of(3, 2, 3), data[3 * 512..4 * 512]);
        let zeros = Entry::of_bytes(&entry(1, &[]).to_bytes()).unwrap();
        assert_eq!((zeros.data_of(0, 2, 4), zeros.sectors()), (vec![0; 1024], 8));
        for at in [0, 9, 50, bytes.len() - 1] {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert!(Entry::of_bytes(&torn).is_none(), "byte {at}");
        }
        assert!(Entry::of_bytes(&bytes[..bytes.len() - 512]).is_none() && Entry::of_bytes(&[0; 4096]).is_none());
    }
}
