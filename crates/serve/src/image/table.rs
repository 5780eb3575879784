//! Tables of the file: an entry for each block, and one for each part of the checkpoint.
//!
//! Each entry is stored in two copies, in different parts of the file. Both have a generation, so that the newer copy
//! replaces one that is damaged or out of date.

use std::io;

use floatgate_core::flash::Bad;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::disk::Disk;
use super::layout::{COPIES, Layout};

/// Bytes of the value of an entry.
const VALUE: usize = 16;

/// Contents of an entry.
pub type Value = [u8; VALUE];

/// An entry in the file's format.
pub type Encoded = [u8; Layout::ENTRY];

/// A table in the file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Offsets of the copies.
    starts: [u64; COPIES],
    /// Number of entries.
    count: u32,
    /// Number of the table, so that an entry is valid in its own table only.
    kind: u64,
}

/// Contents of a table.
#[derive(Debug, Default)]
pub struct Read {
    /// Value of each entry. Zeros if it was never written.
    pub values: Vec<Value>,
    /// Highest generation.
    pub generation: u64,
    /// Number of damaged copies that were restored.
    pub repaired: u64,
    /// First entry with two damaged copies.
    pub damaged: Option<u32>,
}

impl Table {
    /// Returns the table of blocks.
    pub fn of_blocks(layout: &Layout) -> Table {
        Table { starts: [0, 1].map(|copy| layout.block_table(copy)), count: layout.blocks, kind: 0 }
    }

    /// Returns the table of the checkpoint's parts.
    pub fn of_parts(layout: &Layout) -> Table {
        Table { starts: [0, 1].map(|copy| layout.part_table(copy)), count: layout.parts, kind: 1 }
    }

    /// Returns the offset of a copy of an entry.
    pub fn offset(&self, index: u32, copy: usize) -> u64 {
        self.starts[copy] + u64::from(index) * Layout::ENTRY as u64
    }

    /// Encodes a copy of an entry.
    pub fn encode(&self, index: u32, copy: usize, value: &Value, generation: u64) -> Encoded {
        let mut bytes = [0; Layout::ENTRY];
        bytes[..VALUE].copy_from_slice(value);
        bytes[VALUE..24].copy_from_slice(&generation.to_le_bytes());
        let seed = u64::from(index) | (copy as u64) << 32 | self.kind << 33;
        let check = xxh3_64_with_seed(&bytes[..24], seed).to_le_bytes();
        bytes[24..].copy_from_slice(&check);
        bytes
    }

    /// Decodes a copy of an entry: its value and generation. `None` if it is damaged. All zeros stand for an entry that
    /// was never written.
    pub fn decode(&self, index: u32, copy: usize, bytes: &Encoded) -> Option<(Value, u64)> {
        let value: Value = bytes[..VALUE].try_into().ok()?;
        let generation = u64::from_le_bytes(bytes[VALUE..24].try_into().ok()?);
        let is_valid = *bytes == [0; Layout::ENTRY] || self.encode(index, copy, &value, generation) == *bytes;
        is_valid.then_some((value, generation))
    }

    /// Reads the table. Restores copies that are damaged or older than the other copy.
    pub fn read(&self, disk: &mut dyn Disk) -> io::Result<Read> {
        let mut copies = [(); COPIES].map(|()| vec![0; self.count as usize * Layout::ENTRY]);
        for (start, bytes) in self.starts.into_iter().zip(&mut copies) {
            disk.read(start, bytes)?;
        }
        let mut read = Read::default();
        let [first, second] = &copies;
        let pairs = first.as_chunks::<{ Layout::ENTRY }>().0.iter().zip(second.as_chunks::<{ Layout::ENTRY }>().0);
        for (index, (first, second)) in (0..).zip(pairs) {
            let found = [self.decode(index, 0, first), self.decode(index, 1, second)];
            let Some((value, generation)) = found.into_iter().flatten().max_by_key(|(_, generation)| *generation)
            else {
                read.damaged.get_or_insert(index);
                read.values.push([0; VALUE]);
                continue;
            };
            for (copy, found) in found.into_iter().enumerate() {
                if found != Some((value, generation)) {
                    disk.write(self.offset(index, copy), &self.encode(index, copy, &value, generation))?;
                    read.repaired += u64::from(found.is_none());
                }
            }
            read.generation = read.generation.max(generation);
            read.values.push(value);
        }
        Ok(read)
    }
}

/// State of a block, in addition to its erase count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// A good block.
    #[default]
    Good,
    /// An erase is in progress.
    Erasing,
    /// A program or erase operation of the block has failed.
    GrownBad,
    /// The block was bad when the device was new.
    FactoryBad,
    /// A program of the block has failed, and its data have been moved.
    Retired,
}

impl Mark {
    /// All states, in the order of their numbers.
    const ALL: [Mark; 5] = [Mark::Good, Mark::Erasing, Mark::GrownBad, Mark::FactoryBad, Mark::Retired];

    /// Returns the state of a bad block.
    pub fn of(bad: Bad) -> Mark {
        match bad {
            Bad::Factory => Mark::FactoryBad,
            Bad::Grown => Mark::GrownBad,
            Bad::Retired => Mark::Retired,
        }
    }

    /// Returns the kind of bad block. `None` for a good block.
    pub fn bad(self) -> Option<Bad> {
        match self {
            Mark::Good | Mark::Erasing => None,
            Mark::GrownBad => Some(Bad::Grown),
            Mark::FactoryBad => Some(Bad::Factory),
            Mark::Retired => Some(Bad::Retired),
        }
    }
}

/// Entry of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockEntry {
    /// Erase count.
    pub erases: u32,
    /// Number of units, from the first, that are certainly programmed since that erase.
    pub programmed: u32,
    /// State.
    pub mark: Mark,
}

impl BlockEntry {
    /// Returns `true` if the block has no records, and no erase of it has to be completed.
    pub fn is_empty(self) -> bool {
        self.programmed == 0 && self.mark != Mark::Erasing
    }

    /// Encodes the entry.
    pub fn value(self) -> Value {
        let mut value = [0; VALUE];
        value[..4].copy_from_slice(&self.erases.to_le_bytes());
        value[4..8].copy_from_slice(&self.programmed.to_le_bytes());
        value[8] = self.mark as u8;
        value
    }

    /// Decodes an entry. `None` if it has an unknown state.
    pub fn parse(value: &Value) -> Option<BlockEntry> {
        let number = |at: usize| u32::from_le_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]]);
        let mark = *Mark::ALL.get(usize::from(value[8]))?;
        Some(BlockEntry { erases: number(0), programmed: number(4), mark })
    }
}

/// Encodes the entry of a part of the checkpoint: its physical address.
pub fn part_value(ppn: u32) -> Value {
    let mut value = [0; VALUE];
    value[..8].copy_from_slice(&(u64::from(ppn) + 1).to_le_bytes());
    value
}

/// Decodes a [`part_value`]. `None` if it was never written.
pub fn part_address(value: &Value) -> Option<u32> {
    let number = u64::from_le_bytes(value[..8].try_into().ok()?);
    number.checked_sub(1).and_then(|ppn| u32::try_from(ppn).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::disk::SystemFile;

    const TABLE: Table = Table { starts: [0, 4096], count: 4, kind: 0 };

    fn written(values: &[(u32, u32, u64)]) -> SystemFile {
        let mut disk = SystemFile::in_memory().unwrap();
        disk.resize(8192).unwrap();
        for (index, erases, generation) in values {
            let value = BlockEntry { erases: *erases, programmed: 9, mark: Mark::Retired }.value();
            for copy in 0..COPIES {
                disk.write(TABLE.offset(*index, copy), &TABLE.encode(*index, copy, &value, *generation)).unwrap();
            }
        }
        disk
    }

    #[test]
    fn values_round_trip() {
        for mark in Mark::ALL {
            let entry = BlockEntry { erases: 1000, programmed: 7, mark };
            assert_eq!(BlockEntry::parse(&entry.value()), Some(entry));
            assert_eq!(mark.bad().map(Mark::of), (mark.bad().is_some()).then_some(mark));
        }
        assert_eq!(BlockEntry::parse(&[9; VALUE]), None);
        assert_eq!([0, u32::MAX].map(|ppn| part_address(&part_value(ppn))), [Some(0), Some(u32::MAX)]);
        assert_eq!((part_address(&[0; VALUE]), part_address(&[9; VALUE])), (None, None));
    }

    /// Any damage of one copy of an entry, and an entry in the wrong place, is replaced by the other copy.
    #[test]
    fn a_damaged_or_old_copy_is_restored() {
        let mut disk = written(&[(1, 5, 2), (2, 6, 3)]);
        let good = TABLE.read(&mut disk).unwrap();
        assert_eq!((good.generation, good.repaired, good.damaged), (3, 0, None));
        assert_eq!(good.values.iter().map(|value| value[0]).collect::<Vec<_>>(), [0, 5, 6, 0]);
        let old = TABLE.encode(2, 0, &BlockEntry { erases: 4, ..BlockEntry::default() }.value(), 1);
        let elsewhere = TABLE.encode(1, 0, &good.values[1], 9);
        let other_copy = TABLE.encode(2, 1, &good.values[2], 9);
        let damages = [[0; 32], [0xff; 32], old, elsewhere, other_copy];
        for copy in 0..COPIES {
            for damage in damages {
                let damage = if damage == old { TABLE.encode(2, copy, &[0; 16], 1) } else { damage };
                disk.write(TABLE.offset(2, copy), &damage).unwrap();
                if copy == 1 && damage == other_copy {
                    continue;
                }
                let read = TABLE.read(&mut disk).unwrap();
                assert_eq!((&read.values, read.damaged), (&good.values, None), "{damage:?}");
                let again = TABLE.read(&mut disk).unwrap();
                assert_eq!((again.values, again.repaired), (read.values, 0));
            }
            disk = written(&[(1, 5, 2), (2, 6, 3)]);
        }
        for copy in 0..COPIES {
            disk.write(TABLE.offset(3, copy), &[7; 32]).unwrap();
        }
        assert_eq!(TABLE.read(&mut disk).unwrap().damaged, Some(3));
    }
}
