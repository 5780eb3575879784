//! 4 KiB pages that a trace touches, and their dense numbering.

use std::collections::BTreeMap;

/// Sectors per page. Alignment below a page is preserved when pages are moved.
pub(super) const PAGE: u64 = 8;
/// Number of pages whose marks are stored together.
const CHUNK: u64 = 512;

/// Marks of the pages of a chunk, one bit each.
type Marks = [u64; (CHUNK / 64) as usize];

/// Pages touched so far, by device. Takes memory per touched chunk, not per request.
#[derive(Default)]
pub(super) struct Touched {
    chunks: BTreeMap<(u32, u64), Marks>,
}

impl Touched {
    /// Marks the pages of a request.
    pub(super) fn touch(&mut self, device: u32, lba: u64, sectors: u32) {
        let mut page = lba / PAGE;
        let end = (lba + u64::from(sectors)).div_ceil(PAGE);
        while sectors > 0 && page < end {
            let chunk = page / CHUNK;
            let chunk_end = end.min((chunk + 1) * CHUNK);
            let marks = self.chunks.entry((device, chunk)).or_default();
            while page < chunk_end {
                // The rest of this word, up to the end.
                let (word, bit) = ((page % CHUNK / 64) as usize, page % 64);
                let count = (64 - bit).min(chunk_end - page);
                marks[word] |= (u64::MAX >> (64 - count)) << bit;
                page += count;
            }
        }
    }

    /// Numbers the pages densely: by device in the order of `slot`, then by address.
    pub(super) fn pack(self, slot: impl Fn(u32) -> u32) -> Packed {
        let mut chunks: Vec<Chunk> = self
            .chunks
            .into_iter()
            .map(|((device, chunk), marks)| Chunk { key: (slot(device), chunk), before: 0, marks })
            .collect();
        chunks.sort_unstable_by_key(|chunk| chunk.key);
        let mut pages = 0;
        for chunk in &mut chunks {
            chunk.before = pages;
            pages += ones(&chunk.marks);
        }
        Packed { chunks, pages, recent: 0 }
    }
}

fn ones(marks: &[u64]) -> u64 {
    marks.iter().map(|word| u64::from(word.count_ones())).sum()
}

struct Chunk {
    /// Slot of the device, and number of the chunk in it.
    key: (u32, u64),
    /// Number of touched pages before this chunk.
    before: u64,
    marks: Marks,
}

/// Dense numbering of the touched pages.
pub(super) struct Packed {
    chunks: Vec<Chunk>,
    pages: u64,
    /// Chunk of the previous request, which is often that of the next one.
    recent: usize,
}

impl Packed {
    /// Returns the number of touched pages.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the new address of a sector, or `None` if its page was not touched.
    ///
    /// The sectors of a request stay adjacent: all its pages are touched, so their numbers are consecutive.
    pub(super) fn place(&mut self, slot: u32, lba: u64) -> Option<u64> {
        let page = lba / PAGE;
        let key = (slot, page / CHUNK);
        if self.chunks.get(self.recent).is_none_or(|chunk| chunk.key != key) {
            self.recent = self.chunks.binary_search_by_key(&key, |chunk| chunk.key).ok()?;
        }
        let chunk = &self.chunks[self.recent];
        let (word, bit) = ((page % CHUNK / 64) as usize, page % 64);
        if chunk.marks[word] >> bit & 1 == 0 {
            return None;
        }
        let below = chunk.marks[word] & ((1 << bit) - 1);
        let number = chunk.before + ones(&chunk.marks[..word]) + u64::from(below.count_ones());
        Some(number * PAGE + lba % PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn alignment_below_a_page_is_kept() {
        let mut touched = Touched::default();
        touched.touch(0, 1003, 2);
        touched.touch(0, 8_000_007, 2);
        touched.touch(0, 77, 0);
        let mut packed = touched.pack(|device| device);
        assert_eq!(packed.pages(), 3);
        assert_eq!(packed.place(0, 1003), Some(3));
        assert_eq!(packed.place(0, 8_000_007), Some(15));
        assert_eq!(packed.place(0, 77), None);
        assert_eq!(packed.place(1, 1003), None);
    }

    proptest! {
        /// Compares with a plain set of pages.
        #[test]
        fn pages_are_numbered_in_order(
            requests in proptest::collection::vec((0..3_u32, 0..40_000_u64, 1..9_000_u32), 1..40)
        ) {
            let mut touched = Touched::default();
            let mut set = BTreeSet::new();
            for (device, lba, sectors) in &requests {
                touched.touch(*device, *lba, *sectors);
                let end = lba + u64::from(*sectors);
                // Device 2 comes first.
                set.extend((lba / PAGE..end.div_ceil(PAGE)).map(|page| (2 - device, page)));
            }
            let mut packed = touched.pack(|device| 2 - device);
            prop_assert_eq!(packed.pages(), set.len() as u64);
            for (number, (slot, page)) in set.iter().enumerate() {
                prop_assert_eq!(packed.place(*slot, page * PAGE + 5), Some(number as u64 * PAGE + 5));
            }
            for (device, lba, sectors) in requests {
                let first = packed.place(2 - device, lba).unwrap();
                let last = packed.place(2 - device, lba + u64::from(sectors) - 1).unwrap();
                prop_assert_eq!(last - first, u64::from(sectors) - 1);
            }
        }
    }
}
