//! Trims that the journal knows: the last one of each mapping unit, and those whose records are not being written yet.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::sim::id::{BlockId, Lpn};

/// The last trim of a mapping unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trim {
    /// Sequence number of the trim; 0 for none.
    pub sequence: u64,
    /// Journal unit that has its record.
    pub slot: u32,
}

/// Mapping units of a page of [`Trims`].
const PAGE: usize = 1024;

/// Last trim of each trimmed mapping unit, in pages that are allocated on demand.
///
/// A host may trim a whole device at once. With a search tree, most of the time for that was spent in the tree.
#[derive(Clone, Debug, Default)]
pub struct Trims {
    pages: Vec<Option<Box<Page>>>,
}

/// Fields of [`Trim`] in separate arrays, which take a quarter less memory.
#[derive(Clone, Debug)]
struct Page {
    sequences: [u64; PAGE],
    slots: [u32; PAGE],
}

impl Page {
    const EMPTY: Page = Page { sequences: [0; PAGE], slots: [0; PAGE] };

    fn trim(&self, index: usize) -> Option<Trim> {
        let (sequence, slot) = (self.sequences[index], self.slots[index]);
        (sequence > 0).then_some(Trim { sequence, slot })
    }
}

impl Trims {
    /// Returns the last trim of a unit, if it is trimmed.
    pub fn get(&self, lpn: Lpn) -> Option<Trim> {
        self.pages.get(lpn.index() / PAGE)?.as_ref()?.trim(lpn.index() % PAGE)
    }

    /// Sets the last trim of a unit, and returns the one before.
    pub fn insert(&mut self, lpn: Lpn, trim: Trim) -> Option<Trim> {
        let (page, index) = (lpn.index() / PAGE, lpn.index() % PAGE);
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new(Page::EMPTY));
        let before = page.trim(index);
        (page.sequences[index], page.slots[index]) = (trim.sequence, trim.slot);
        before
    }

    /// Sets the unit of the journal that has the record of a trim, if that is the last one of its unit. Returns `true`
    /// if it is.
    pub fn set_slot(&mut self, lpn: Lpn, trim: Trim, slot: u32) -> bool {
        let (page, index) = (lpn.index() / PAGE, lpn.index() % PAGE);
        let page = self.pages.get_mut(page).and_then(Option::as_mut).filter(|page| page.trim(index) == Some(trim));
        page.map(|page| page.slots[index] = slot).is_some()
    }

    /// Forgets the last trim of a unit, and returns it.
    pub fn remove(&mut self, lpn: Lpn) -> Option<Trim> {
        self.get(lpn)?;
        self.insert(lpn, Trim::default())
    }
}

/// A record that is not being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Sequence number of the trim.
    pub sequence: u64,
    /// Mapping unit that was trimmed; `NONE` once the record was removed.
    pub lpn: Lpn,
    /// Block that holds the trimmed data, or `NONE`.
    pub block: BlockId,
}

/// Number of records in a chunk of [`WaitingRecords`].
const CHUNK: usize = 1024;

/// Record, and the number of the next one of its block.
type Linked = (Waiting, u32);

/// Records that are not being written, oldest first. A record that is removed from the middle stays as a gap until it
/// is the oldest.
///
/// Records are numbered in order of arrival. The records of a block are linked by their numbers. With a separate list
/// for each block, a trim of a whole device took a third longer.
///
/// Records are stored in chunks, so that journal units are stored in the memory of records that they contain. With one
/// buffer for all records, a trim of a whole device took a third more memory for the journal.
#[derive(Clone, Debug, Default)]
pub struct WaitingRecords {
    /// Chunks of [`CHUNK`] records. The last one may have fewer.
    chunks: VecDeque<Vec<Linked>>,
    /// Number of records that were removed from the start of the first chunk.
    removed: usize,
    gone: usize,
    /// Number of the oldest record. Numbers wrap.
    oldest: u32,
}

impl WaitingRecords {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.count() - self.gone
    }

    /// Returns `true` if there are no records.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Adds a record that is newer than all others, and returns its number.
    pub fn push(&mut self, record: Waiting) -> u32 {
        let count = self.count();
        debug_assert!(count == 0 || self.at(count - 1).0.sequence < record.sequence);
        self.append(record);
        self.oldest.wrapping_add(count as u32)
    }

    /// Adds a record at its place by age, before any are linked.
    pub fn adopt(&mut self, record: Waiting) {
        let place = self.position(record.sequence).unwrap_or_else(|place| place);
        self.append(record);
        for index in (place + 1..self.count()).rev() {
            *self.at_mut(index) = *self.at(index - 1);
        }
        *self.at_mut(place) = (record, 0);
    }

    /// Links a record to the next one of its block.
    pub fn link(&mut self, number: u32, next: u32) {
        let index = self.index(number);
        self.at_mut(index).1 = next;
    }

    /// Returns the sequence numbers and the numbers of `count` linked records.
    pub fn list(&self, first: u32, count: u32) -> impl Iterator<Item = (u64, u32)> + '_ {
        let mut next = first;
        (0..count).map(move |_| {
            let number = next;
            let &(record, after) = self.at(self.index(number));
            next = after;
            (record.sequence, number)
        })
    }

    /// Returns the oldest record.
    pub fn first(&self) -> Option<Waiting> {
        (!self.is_empty()).then(|| self.at(0).0)
    }

    /// Removes the oldest record. Returns it, and the number of the next one of its block.
    pub fn take_first(&mut self) -> Option<(Waiting, u32)> {
        let first = (!self.is_empty()).then(|| *self.at(0))?;
        self.drop_first();
        self.drop_gone();
        Some(first)
    }

    /// Removes a record. Returns it, and the number of the next one of its block.
    pub fn take(&mut self, number: u32) -> Option<(Waiting, u32)> {
        let index = self.index(number);
        let taken = (index < self.count()).then(|| *self.at(index)).filter(|(record, _)| record.lpn.is_some())?;
        self.at_mut(index).0.lpn = Lpn::NONE;
        self.gone += 1;
        self.drop_gone();
        Some(taken)
    }

    /// Returns the number of the record of a trim, if its block is `NONE`.
    pub fn without_block(&self, sequence: u64) -> Option<u32> {
        let index = self.position(sequence).ok()?;
        let (record, _) = self.at(index);
        (record.lpn.is_some() && record.block.is_none()).then(|| self.oldest.wrapping_add(index as u32))
    }

    fn drop_gone(&mut self) {
        while self.first().is_some_and(|record| record.lpn.is_none()) {
            self.drop_first();
            self.gone -= 1;
        }
    }

    fn drop_first(&mut self) {
        self.oldest = self.oldest.wrapping_add(1);
        self.removed += 1;
        if self.removed == CHUNK {
            self.chunks.pop_front();
            self.removed = 0;
        }
    }

    fn append(&mut self, record: Waiting) {
        match self.chunks.back_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => chunk.push((record, 0)),
            None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push((record, 0));
                self.chunks.push_back(chunk);
            }
        }
    }

    /// Returns the number of records, including gaps.
    fn count(&self) -> usize {
        self.chunks.back().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len() - self.removed)
    }

    fn at(&self, index: usize) -> &Linked {
        let index = index + self.removed;
        &self.chunks[index / CHUNK][index % CHUNK]
    }

    fn at_mut(&mut self, index: usize) -> &mut Linked {
        let index = index + self.removed;
        &mut self.chunks[index / CHUNK][index % CHUNK]
    }

    fn index(&self, number: u32) -> usize {
        number.wrapping_sub(self.oldest) as usize
    }

    /// Returns the index of the record of a trim, or the index at which it would be inserted.
    fn position(&self, sequence: u64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            match self.at(middle).0.sequence.cmp(&sequence) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sim::rng::Rng;

    #[test]
    fn trims_agree_with_a_map() {
        let (mut rng, mut trims, mut model) = (Rng::new(1, "trims"), Trims::default(), BTreeMap::new());
        for sequence in 1..5000 {
            let lpn = Lpn(rng.below(5) as u32 * PAGE as u32 + rng.below(9) as u32);
            let trim = Trim { sequence, slot: rng.below(3) as u32 };
            if rng.below(3) == 0 {
                assert_eq!(trims.remove(lpn), model.remove(&lpn));
            } else {
                assert_eq!(trims.insert(lpn, trim), model.insert(lpn, trim));
            }
            assert_eq!(trims.get(lpn), model.get(&lpn).copied());
        }
    }

    /// Records in the order of their sequence numbers, and lists of those of each of three blocks, with numbers that
    /// wrap. A quarter of the records have no block.
    #[test]
    fn waiting_records_agree_with_a_map() {
        let mut rng = Rng::new(1, "waiting records");
        let mut records = WaitingRecords { oldest: u32::MAX - 300, ..WaitingRecords::default() };
        let mut model = BTreeMap::new();
        for number in 0..1500u64 {
            let record = Waiting { sequence: 1 + number * 7 % 1500, lpn: Lpn(number as u32), block: BlockId::NONE };
            records.adopt(record);
            model.insert(record.sequence, record);
        }
        let mut lists = [(); 3].map(|()| VecDeque::new());
        for sequence in (1501..15_000).filter(|sequence| sequence % 5 > 0) {
            let of_block = rng.below(4) as usize;
            let block = if of_block < 3 { BlockId(of_block as u32) } else { BlockId::NONE };
            let record = Waiting { sequence, lpn: Lpn(sequence as u32), block };
            let number = records.push(record);
            model.insert(sequence, record);
            if let Some(list) = lists.get_mut(of_block) {
                if let Some(&(_, last)) = list.back() {
                    records.link(last, number);
                }
                list.push_back((sequence, number));
            }
            let any = sequence.saturating_sub(rng.below(60));
            let without_block = model.get(&any).filter(|record| record.block.is_none()).copied();
            assert_eq!(records.without_block(any).is_some(), without_block.is_some());
            let chosen = &lists[rng.below(3) as usize];
            let taken = match (rng.below(4), records.without_block(any), chosen.front()) {
                (0, Some(number), _) => records.take(number),
                (1, _, Some(&(_, number))) => records.take(number),
                (2, ..) => records.take_first(),
                _ => None,
            };
            if let Some((record, next)) = taken {
                assert_eq!(model.remove(&record.sequence), Some(record));
                if let Some(list) = lists.get_mut(record.block.0 as usize) {
                    assert_eq!(list.pop_front().map(|(sequence, _)| sequence), Some(record.sequence));
                    assert!(list.front().is_none_or(|&(_, number)| number == next));
                }
            }
            for list in lists.iter().filter(|list| !list.is_empty()) {
                assert!(records.list(list[0].1, list.len() as u32).eq(list.iter().copied()));
            }
            assert_eq!(records.first(), model.first_key_value().map(|(_, &record)| record));
            assert_eq!((records.len(), records.is_empty()), (model.len(), model.is_empty()));
        }
    }
}
