//! Trims that the journal knows: the last one of each mapping unit, and those whose records are not being written yet.

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

/// Records that are not being written, oldest first. A record that is removed from the middle stays as a gap until it
/// is the oldest.
#[derive(Clone, Debug, Default)]
pub struct WaitingRecords {
    records: VecDeque<Waiting>,
    gone: usize,
}

impl WaitingRecords {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len() - self.gone
    }

    /// Returns `true` if there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds a record.
    pub fn push(&mut self, record: Waiting) {
        let at = match self.records.back() {
            Some(last) if last.sequence > record.sequence => self.position(record.sequence).unwrap_or_else(|at| at),
            _ => self.records.len(),
        };
        self.records.insert(at, record);
    }

    /// Returns the oldest record.
    pub fn first(&self) -> Option<Waiting> {
        self.records.front().copied()
    }

    /// Returns the record of a trim.
    pub fn get(&self, sequence: u64) -> Option<Waiting> {
        let at = self.position(sequence).ok()?;
        Some(self.records[at]).filter(|record| record.lpn.is_some())
    }

    /// Removes and returns the record of a trim.
    pub fn remove(&mut self, sequence: u64) -> Option<Waiting> {
        let at = self.position(sequence).ok()?;
        let record = self.records[at];
        if record.lpn.is_none() {
            return None;
        }
        self.records[at].lpn = Lpn::NONE;
        self.gone += 1;
        while self.records.front().is_some_and(|record| record.lpn.is_none()) {
            self.records.pop_front();
            self.gone -= 1;
        }
        Some(record)
    }

    /// Returns the position of a record. The oldest one is looked up most often.
    fn position(&self, sequence: u64) -> Result<usize, usize> {
        match self.records.front() {
            Some(first) if first.sequence == sequence => Ok(0),
            _ => self.records.binary_search_by_key(&sequence, |record| record.sequence),
        }
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

    #[test]
    fn waiting_records_agree_with_a_map() {
        let (mut rng, mut records, mut model) =
            (Rng::new(1, "waiting records"), WaitingRecords::default(), BTreeMap::new());
        for number in 1..5000u64 {
            let sequence = if rng.below(9) == 0 { number.saturating_sub(rng.below(40)).max(1) } else { 5000 + number };
            let record = Waiting { sequence, lpn: Lpn(number as u32), block: BlockId::NONE };
            if !model.contains_key(&sequence) && records.position(sequence).is_err() {
                records.push(record);
                model.insert(sequence, record);
            }
            let oldest = model.first_key_value().map(|(&sequence, _)| sequence);
            let any = oldest.map(|oldest| oldest + rng.below(6000));
            for sequence in [oldest.filter(|_| rng.below(2) == 0), any].into_iter().flatten() {
                assert_eq!(records.remove(sequence), model.remove(&sequence));
            }
            assert_eq!(records.first(), model.first_key_value().map(|(_, &record)| record));
            assert_eq!((records.len(), records.is_empty()), (model.len(), model.is_empty()));
        }
    }
}
