//! Payload in memory, which is lost when the program ends.
//!
//! The store is sparse. Each unit that is a hole or holds zeros takes sixteen bytes in a leaf of 512 units. A leaf
//! without units takes sixteen bytes, so that a device of a terabyte starts immediately. The units are the mapping
//! units of the device, so that a unit is allocated here if it is mapped in the device.

use std::ops::Range;

use super::{Extent, Payload, PayloadError};

/// Units per leaf.
const LEAF: u64 = 512;

/// `None` for a hole. An empty slice for a unit that is known to hold zeros.
type Unit = Option<Box<[u8]>>;

/// A sparse store in memory.
#[derive(Debug)]
pub struct Memory {
    unit: u64,
    leaves: Vec<Option<Box<[Unit]>>>,
    held: u64,
    limit: u64,
}

impl Memory {
    /// Creates an empty store for `bytes`, with units of `unit` bytes, that holds at most `limit` bytes of payload.
    pub fn new(bytes: u64, unit: u32, limit: u64) -> Memory {
        let leaves = bytes.div_ceil(u64::from(unit) * LEAF);
        Memory { unit: u64::from(unit), leaves: (0..leaves).map(|_| None).collect(), held: 0, limit }
    }

    fn get(&self, unit: u64) -> Option<&[u8]> {
        let leaf = self.leaves.get((unit / LEAF) as usize)?.as_deref()?;
        leaf[(unit % LEAF) as usize].as_deref()
    }

    /// Returns the bytes of a unit. Allocates them as zeros if necessary.
    fn get_or_make(&mut self, unit: u64) -> Result<&mut [u8], PayloadError> {
        let (size, limit) = (self.unit, self.limit);
        let leaf = self.leaves.get_mut((unit / LEAF) as usize).ok_or(PayloadError::NoRoom)?;
        let leaf = leaf.get_or_insert_with(|| (0..LEAF).map(|_| None).collect());
        let place = leaf[(unit % LEAF) as usize].get_or_insert_default();
        if place.is_empty() {
            if self.held + size > limit {
                return Err(PayloadError::NoRoom);
            }
            self.held += size;
            *place = vec![0; size as usize].into_boxed_slice();
        }
        Ok(place)
    }

    /// Drops the bytes of a unit, and replaces them by a hole or by zeros without bytes.
    fn drop_bytes(&mut self, unit: u64, to: Unit) {
        let Some(leaf) = self.leaves.get_mut((unit / LEAF) as usize) else { return };
        if leaf.is_none() && to.is_none() {
            return;
        }
        let leaf = leaf.get_or_insert_with(|| (0..LEAF).map(|_| None).collect());
        let before = std::mem::replace(&mut leaf[(unit % LEAF) as usize], to);
        self.held -= before.map_or(0, |bytes| bytes.len() as u64);
    }

    fn has_bytes(&self, unit: u64) -> bool {
        self.get(unit).is_some_and(|bytes| !bytes.is_empty())
    }

    /// Returns the number of bytes that a write of a range would allocate.
    fn missing(&self, range: &Range<u64>) -> u64 {
        let units = range.start / self.unit..range.end.div_ceil(self.unit);
        units.filter(|unit| !self.has_bytes(*unit)).count() as u64 * self.unit
    }

    /// Splits a range by unit. Returns each unit with the byte range in it.
    fn parts(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> + use<> {
        let size = self.unit;
        let units = if range.is_empty() { 0..0 } else { range.start / size..range.end.div_ceil(size) };
        units.map(move |unit| {
            let start = unit * size;
            let first = range.start.max(start) - start;
            (unit, first as usize..(range.end.min(start + size) - start) as usize)
        })
    }

    /// Writes a whole range. On failure, changes nothing.
    fn fill(&mut self, range: Range<u64>, mut bytes: impl FnMut(&mut [u8])) -> Result<(), PayloadError> {
        if self.held + self.missing(&range) > self.limit {
            return Err(PayloadError::NoRoom);
        }
        for (unit, part) in self.parts(range) {
            bytes(&mut self.get_or_make(unit)?[part]);
        }
        Ok(())
    }
}

impl Payload for Memory {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), PayloadError> {
        let mut rest = data;
        self.fill(offset..offset + data.len() as u64, |place| {
            let (now, later) = rest.split_at(place.len());
            place.copy_from_slice(now);
            rest = later;
        })
    }

    fn discard(&mut self, range: Range<u64>) {
        let size = self.unit as usize;
        for (unit, part) in self.parts(range) {
            if part == (0..size) {
                self.drop_bytes(unit, None);
            } else if self.has_bytes(unit)
                && let Ok(bytes) = self.get_or_make(unit)
            {
                bytes[part].fill(0);
            }
        }
    }

    fn zero(&mut self, range: Range<u64>) -> Result<(), PayloadError> {
        // Do not allocate: one request may zero gigabytes, and no other request is served in the meantime.
        let size = self.unit as usize;
        for (unit, part) in self.parts(range) {
            if part == (0..size) || !self.has_bytes(unit) {
                self.drop_bytes(unit, Some(Box::default()));
            } else {
                self.get_or_make(unit)?[part].fill(0);
            }
        }
        Ok(())
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), PayloadError> {
        let mut rest = into;
        for (unit, part) in self.parts(offset..offset + rest.len() as u64) {
            let (now, later) = rest.split_at_mut(part.len());
            match self.get(unit) {
                Some(bytes) if !bytes.is_empty() => now.copy_from_slice(&bytes[part]),
                _ => now.fill(0),
            }
            rest = later;
        }
        Ok(())
    }

    fn extent(&self, range: Range<u64>) -> (Extent, u64) {
        let held = |unit| self.get(unit).is_some();
        let first = range.start / self.unit;
        let what = held(first);
        let mut unit = first + 1;
        while unit * self.unit < range.end && held(unit) == what {
            // Skip a leaf without units.
            let empty_leaf = !what && unit.is_multiple_of(LEAF) && self.leaf_is_absent(unit);
            unit += if empty_leaf { LEAF } else { 1 };
        }
        (if what { Extent::Data } else { Extent::Hole }, (unit * self.unit).min(range.end))
    }

    fn bytes_held(&self) -> u64 {
        self.held
    }
}

impl Memory {
    fn leaf_is_absent(&self, unit: u64) -> bool {
        matches!(self.leaves.get((unit / LEAF) as usize), Some(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: usize = 64 * 1024;

    #[test]
    fn a_partial_write_keeps_the_rest_of_the_unit() {
        let mut store = Memory::new(SIZE as u64, 4096, u64::MAX);
        store.write(4096, &[7; 4096]).unwrap();
        store.write(4096 + 512, &[9; 512]).unwrap();
        let mut bytes = vec![1; 3 * 4096];
        store.read(0, &mut bytes).unwrap();
        assert!(bytes[..4096].iter().all(|b| *b == 0) && bytes[8192..].iter().all(|b| *b == 0));
        assert!(bytes[4096..4608].iter().all(|b| *b == 7) && bytes[4608..5120].iter().all(|b| *b == 9));
        assert!(bytes[5120..8192].iter().all(|b| *b == 7));
        assert_eq!(store.extent(0..SIZE as u64), (Extent::Hole, 4096));
        assert_eq!(store.extent(4096..SIZE as u64), (Extent::Data, 8192));
        store.discard(4096..8192);
        assert_eq!((store.extent(0..SIZE as u64), store.bytes_held()), ((Extent::Hole, SIZE as u64), 0));
    }

    #[test]
    fn without_room_nothing_changes() {
        let mut store = Memory::new(SIZE as u64, 4096, 3 * 4096);
        store.write(0, &[1; 8192]).unwrap();
        assert_eq!(store.write(4096, &[2; 12288]), Err(PayloadError::NoRoom));
        store.zero(8192..16384).unwrap();
        assert_eq!((store.bytes_held(), store.extent(0..16384)), (8192, (Extent::Data, 16384)), "zeros take no room");
        let mut bytes = vec![0; 8192];
        store.read(0, &mut bytes).unwrap();
        assert!(bytes.iter().all(|b| *b == 1));
        store.write(4096, &[2; 8192]).unwrap();
        assert_eq!(store.bytes_held(), 3 * 4096);
    }

    #[test]
    fn a_terabyte_starts_immediately_and_holes_are_found_fast() {
        let bytes = 1 << 40;
        let mut store = Memory::new(bytes, 4096, 1 << 20);
        assert_eq!(store.extent(0..bytes), (Extent::Hole, bytes));
        store.write(bytes - 512, &[1; 512]).unwrap();
        assert_eq!(store.extent(0..bytes), (Extent::Hole, bytes - 4096));
        store.zero(0..4 << 30).unwrap();
        assert_eq!((store.extent(0..bytes), store.bytes_held()), ((Extent::Data, 4 << 30), 4096));
    }

    proptest! {
        /// The store behaves like a plain array of bytes for all requests, and holes read as zeros.
        #[test]
        fn behaves_like_an_array(steps in prop::collection::vec((0..4, 0..128u64, 1..24u64, any::<u8>()), 1..60)) {
            let mut store = Memory::new(SIZE as u64, 4096, u64::MAX);
            let mut model = vec![0u8; SIZE];
            for (operation, sector, sectors, byte) in steps {
                let start = sector * 512;
                let end = (start + sectors * 512).min(SIZE as u64);
                let (range, place) = (start..end, start as usize..end as usize);
                match operation {
                    0 => { store.write(start, &vec![byte; place.len()]).unwrap(); model[place].fill(byte); }
                    1 => { store.discard(range); model[place].fill(0); }
                    2 => { store.zero(range).unwrap(); model[place].fill(0); }
                    _ => {
                        let mut read = vec![0xee; place.len()];
                        store.read(start, &mut read).unwrap();
                        prop_assert_eq!(&read, &model[place]);
                    }
                }
                let mut at = 0;
                while at < SIZE as u64 {
                    let (what, end) = store.extent(at..SIZE as u64);
                    prop_assert!(end > at);
                    prop_assert!(what == Extent::Data || model[at as usize..end as usize].iter().all(|b| *b == 0));
                    at = end;
                }
            }
        }
    }
}
