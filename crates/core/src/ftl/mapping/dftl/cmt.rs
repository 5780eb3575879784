//! Cached mapping table: the map entries that the controller holds, as a segmented LRU (Karedla, Love and Wherry,
//! "Caching strategies to improve disk system performance", IEEE Computer 27(3), 1994, as Gupta et al. 2009 use it).
//!
//! New entries join the probationary segment. An entry that is used again moves to the protected segment. If that has
//! too many, its least recently used entry moves back to the front of the probationary segment. The least recently used
//! probationary entry is evicted first.
//!
//! Entries are found by a hash table with chains. It grows with the cache and not with the device.

use crate::sim::id::Lpn;
use crate::sim::memory::Divider;
use crate::state::{Reader, StateError, Writer};

/// No entry.
const NONE: u32 = u32::MAX;

/// Segment of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// None yet: the entry is reserved, and its translation page is being read.
    Loading,
    /// Used once since it was loaded.
    Probationary,
    /// Used more than once.
    Protected,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    lpn: u32,
    /// Neighbors in the segment: more and less recently used.
    newer: u32,
    older: u32,
    /// Next entry of the hash chain. If the entry is free, the next free one.
    chain: u32,
    /// Neighbors among the dirty entries of its translation page.
    dirty_next: u32,
    dirty_prev: u32,
    segment: Segment,
    dirty: bool,
}

/// A segment: a list by recency of use.
#[derive(Clone, Copy, Debug)]
struct Recency {
    newest: u32,
    oldest: u32,
    len: u32,
}

/// Cached entries of a translation page: the first dirty one, and the number of loaded ones.
#[derive(Clone, Copy, Debug)]
struct OfPage {
    dirty: u32,
    resident: u32,
}

/// Entry that has been evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Logical unit of the entry.
    pub lpn: Lpn,
    /// True if the entry was newer than in flash.
    pub dirty: bool,
}

/// The cached mapping table.
#[derive(Clone, Debug)]
pub struct Cmt {
    entries: Vec<Entry>,
    free: u32,
    chains: Vec<u32>,
    /// 0: probationary; 1: protected.
    segments: [Recency; 2],
    max_protected: u32,
    capacity: u32,
    len: u32,
    pages: Vec<OfPage>,
    per_page: Divider,
}

impl Cmt {
    /// Creates an empty table for `capacity` entries, at most `protected` of them protected. The map has `pages`
    /// translation pages with `per_page` entries each.
    pub fn new(capacity: u32, protected: u32, pages: u32, per_page: u32) -> Cmt {
        let empty = Recency { newest: NONE, oldest: NONE, len: 0 };
        Cmt {
            entries: Vec::new(),
            free: NONE,
            chains: vec![NONE; (capacity as usize).next_power_of_two()],
            segments: [empty; 2],
            max_protected: protected,
            capacity,
            len: 0,
            pages: vec![OfPage { dirty: NONE, resident: 0 }; pages as usize],
            per_page: Divider::new(per_page),
        }
    }

    /// Returns the number of entries, including those that are being loaded.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the maximum number of entries.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns `true` if an entry can be reserved: there is room, or an entry can be evicted.
    pub fn can_take(&self) -> bool {
        self.len < self.capacity || self.segments.iter().any(|segment| segment.len > 0)
    }

    /// Returns `true` if an entry can be reserved without an eviction.
    pub fn has_room(&self) -> bool {
        self.len < self.capacity
    }

    /// Returns the number of loaded entries of a translation page.
    pub fn resident_of(&self, page: u32) -> u32 {
        self.pages[page as usize].resident
    }

    #[inline]
    fn chain_of(&self, lpn: Lpn) -> usize {
        // Multiplicative hashing (Knuth, TAOCP 3, Section 6.4): the top bits of the product.
        let bits = self.chains.len().trailing_zeros();
        (u64::from(lpn.0.wrapping_mul(2_654_435_769)) << bits >> 32) as usize
    }

    #[inline]
    fn index_of(&self, lpn: Lpn) -> Option<usize> {
        let mut at = self.chains[self.chain_of(lpn)];
        while at != NONE && self.entries[at as usize].lpn != lpn.0 {
            at = self.entries[at as usize].chain;
        }
        (at != NONE).then_some(at as usize)
    }

    /// Returns the segment of the entry of `lpn`, if the table has it.
    #[inline]
    pub fn segment(&self, lpn: Lpn) -> Option<Segment> {
        self.index_of(lpn).map(|index| self.entries[index].segment)
    }

    /// Returns `true` if the entry of `lpn` is newer than in flash.
    pub fn is_dirty(&self, lpn: Lpn) -> bool {
        self.index_of(lpn).is_some_and(|index| self.entries[index].dirty)
    }

    /// Uses the entry of `lpn`. Returns `true` if it is loaded.
    #[inline]
    pub fn touch(&mut self, lpn: Lpn) -> bool {
        match self.index_of(lpn) {
            Some(index) if self.entries[index].segment != Segment::Loading => {
                self.unlink(index);
                self.protect(index);
                true
            }
            _ => false,
        }
    }

    /// Makes an entry the most recently used of the protected segment.
    fn protect(&mut self, index: usize) {
        if self.max_protected == 0 {
            return self.link(index, Segment::Probationary);
        }
        self.link(index, Segment::Protected);
        if self.segments[1].len > self.max_protected {
            let demoted = self.segments[1].oldest as usize;
            self.unlink(demoted);
            self.link(demoted, Segment::Probationary);
        }
    }

    /// Reserves an entry for `lpn`, which has none. There must be room.
    pub fn reserve(&mut self, lpn: Lpn) {
        debug_assert!(self.has_room() && self.index_of(lpn).is_none());
        let chain = self.chain_of(lpn);
        let entry = Entry {
            lpn: lpn.0,
            newer: NONE,
            older: NONE,
            chain: self.chains[chain],
            dirty_next: NONE,
            dirty_prev: NONE,
            segment: Segment::Loading,
            dirty: false,
        };
        let index = self.free;
        self.chains[chain] = if index == NONE {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            self.free = self.entries[index as usize].chain;
            self.entries[index as usize] = entry;
            index
        };
        self.len += 1;
    }

    /// Loads the entry that is reserved for `lpn`.
    pub fn load(&mut self, lpn: Lpn) {
        let Some(index) = self.index_of(lpn) else { return };
        if self.entries[index].segment == Segment::Loading {
            self.link(index, Segment::Probationary);
            let page = self.per_page.divide(lpn.0);
            self.pages[page as usize].resident += 1;
        }
    }

    /// Marks the entry of `lpn` as dirty. Returns `true` if the table has it, loaded or reserved.
    pub fn change(&mut self, lpn: Lpn) -> bool {
        let Some(index) = self.index_of(lpn) else { return false };
        if !self.entries[index].dirty {
            let page = self.per_page.divide(lpn.0) as usize;
            let first = std::mem::replace(&mut self.pages[page].dirty, index as u32);
            if first != NONE {
                self.entries[first as usize].dirty_prev = index as u32;
            }
            let entry = &mut self.entries[index];
            (entry.dirty, entry.dirty_next, entry.dirty_prev) = (true, first, NONE);
        }
        true
    }

    /// Evicts the least recently used entry, a probationary one if there is any. Returns `None` if all are being
    /// loaded.
    pub fn evict(&mut self) -> Option<Evicted> {
        let index = self.segments.iter().map(|segment| segment.oldest).find(|&oldest| oldest != NONE)? as usize;
        let (lpn, dirty) = (Lpn(self.entries[index].lpn), self.entries[index].dirty);
        self.clean(index);
        self.unlink(index);
        let chain = self.chain_of(lpn);
        let next = self.entries[index].chain;
        if self.chains[chain] == index as u32 {
            self.chains[chain] = next;
        } else {
            let mut at = self.chains[chain] as usize;
            while self.entries[at].chain != index as u32 {
                at = self.entries[at].chain as usize;
            }
            self.entries[at].chain = next;
        }
        self.entries[index].chain = self.free;
        self.free = index as u32;
        self.len -= 1;
        let page = self.per_page.divide(lpn.0);
        self.pages[page as usize].resident -= 1;
        Some(Evicted { lpn, dirty })
    }

    /// Marks all entries of a translation page as clean, because the page is being written.
    pub fn clean_page(&mut self, page: u32) {
        while self.pages[page as usize].dirty != NONE {
            self.clean(self.pages[page as usize].dirty as usize);
        }
    }

    fn clean(&mut self, index: usize) {
        let Entry { lpn, dirty_next, dirty_prev, dirty, .. } = self.entries[index];
        if !dirty {
            return;
        }
        if dirty_prev == NONE {
            self.pages[self.per_page.divide(lpn) as usize].dirty = dirty_next;
        } else {
            self.entries[dirty_prev as usize].dirty_next = dirty_next;
        }
        if dirty_next != NONE {
            self.entries[dirty_next as usize].dirty_prev = dirty_prev;
        }
        self.entries[index].dirty = false;
    }

    fn segment_mut(&mut self, segment: Segment) -> &mut Recency {
        &mut self.segments[usize::from(segment == Segment::Protected)]
    }

    /// Makes an entry, which is in no segment, the most recently used one of a segment.
    fn link(&mut self, index: usize, segment: Segment) {
        let list = self.segment_mut(segment);
        let older = std::mem::replace(&mut list.newest, index as u32);
        list.len += 1;
        if older == NONE {
            list.oldest = index as u32;
        } else {
            self.entries[older as usize].newer = index as u32;
        }
        let entry = &mut self.entries[index];
        (entry.newer, entry.older, entry.segment) = (NONE, older, segment);
    }

    /// Removes an entry from its segment.
    fn unlink(&mut self, index: usize) {
        let Entry { newer, older, segment, .. } = self.entries[index];
        match newer {
            NONE => self.segment_mut(segment).newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.segment_mut(segment).oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        self.segment_mut(segment).len -= 1;
    }

    /// Returns the entries of a segment, most recently used first, for inspection.
    pub fn by_recency(&self, segment: Segment) -> Vec<Lpn> {
        let list = &self.segments[usize::from(segment == Segment::Protected)];
        let mut at = list.newest;
        std::iter::from_fn(|| {
            let entry = self.entries.get(at as usize)?;
            at = entry.older;
            Some(Lpn(entry.lpn))
        })
        .collect()
    }

    /// Returns the number of entries that are being loaded.
    pub fn loading(&self) -> u32 {
        self.len - self.segments[0].len - self.segments[1].len
    }

    /// Writes the entries of each segment, least recently used first, and which of them are dirty.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for segment in &self.segments {
            out.u32(segment.len)?;
            let mut at = segment.oldest;
            while let Some(entry) = self.entries.get(at as usize) {
                out.u32(entry.lpn)?;
                out.u8(u8::from(entry.dirty))?;
                at = entry.newer;
            }
        }
        Ok(())
    }

    /// Reads what [`Cmt::save`] wrote, into a new table, for a device with `units` units.
    pub fn load_from(&mut self, input: &mut Reader, units: u32) -> Result<(), StateError> {
        for segment in [Segment::Probationary, Segment::Protected] {
            let most = if segment == Segment::Protected { self.max_protected } else { self.capacity };
            let entries = input.below(most.min(self.capacity - self.len) + 1, "cached entries")?;
            for _ in 0..entries {
                let lpn = Lpn(input.below(units, "logical unit")?);
                if self.index_of(lpn).is_some() {
                    return Err(input.damaged(format!("two cached entries of unit {}", lpn.0)));
                }
                self.reserve(lpn);
                self.load(lpn);
                if segment == Segment::Protected {
                    self.touch(lpn);
                }
                match input.u8()? {
                    0 => {}
                    1 => _ = self.change(lpn),
                    other => return Err(input.damaged(format!("a flag {other} for dirty entries"))),
                }
            }
        }
        Ok(())
    }

    /// Test hook: checks all lists and numbers against a count from scratch.
    pub fn recount(&self) -> Result<(), String> {
        let mut resident = vec![0; self.pages.len()];
        let mut dirty = vec![0; self.pages.len()];
        let mut found = 0;
        for &chain in &self.chains {
            let mut at = chain;
            while let Some(entry) = self.entries.get(at as usize) {
                let page = self.per_page.divide(entry.lpn) as usize;
                resident[page] += u32::from(entry.segment != Segment::Loading);
                dirty[page] += u32::from(entry.dirty);
                (found, at) = (found + 1, entry.chain);
            }
        }
        for (number, page) in self.pages.iter().enumerate() {
            let mut listed = 0;
            let mut at = page.dirty;
            while let Some(entry) = self.entries.get(at as usize) {
                (listed, at) = (listed + 1, entry.dirty_next);
            }
            if (page.resident, listed) != (resident[number], dirty[number]) {
                return Err(format!("translation page {number}: {page:?}, counted {} of {found}", resident[number]));
            }
        }
        let in_segments = self.segments[0].len + self.segments[1].len;
        if found != self.len || in_segments > self.len || self.len > self.capacity {
            return Err(format!("{found} entries are cached, {} counted, {in_segments} in segments", self.len));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_entry_takes_36_bytes_at_most() {
        // The hash table has fewer than two heads for each entry.
        assert!(size_of::<Entry>() + 2 * size_of::<u32>() <= 36);
    }

    fn use_entry(cmt: &mut Cmt, lpn: u32) -> Option<Evicted> {
        if cmt.touch(Lpn(lpn)) {
            return None;
        }
        let evicted = if cmt.has_room() { None } else { cmt.evict() };
        cmt.reserve(Lpn(lpn));
        cmt.load(Lpn(lpn));
        evicted
    }

    fn lpns(cmt: &Cmt, segment: Segment) -> Vec<u32> {
        cmt.by_recency(segment).iter().map(|lpn| lpn.0).collect()
    }

    /// Entry that is used; probationary and protected entries afterwards; evicted entry.
    type Step = (u32, &'static [u32], &'static [u32], Option<u32>);

    #[test]
    fn segments_follow_the_definition_by_hand() {
        // Four entries, two of them protected. Worked by hand.
        let mut cmt = Cmt::new(4, 2, 1, 100);
        let steps: [Step; 12] = [
            (1, &[1], &[], None),
            (2, &[2, 1], &[], None),
            (3, &[3, 2, 1], &[], None),
            (1, &[3, 2], &[1], None),
            (4, &[4, 3, 2], &[1], None),
            (5, &[5, 4, 3], &[1], Some(2)),
            (3, &[5, 4], &[3, 1], None),
            (5, &[1, 4], &[5, 3], None),
            (6, &[6, 1], &[5, 3], Some(4)),
            (3, &[6, 1], &[3, 5], None),
            (1, &[5, 6], &[1, 3], None),
            (7, &[7, 5], &[1, 3], Some(6)),
        ];
        for (lpn, probationary, protected, evicted) in steps {
            let gone = use_entry(&mut cmt, lpn).map(|gone| gone.lpn.0);
            assert_eq!(gone, evicted, "{lpn}");
            assert_eq!(lpns(&cmt, Segment::Probationary), probationary, "{lpn}");
            assert_eq!(lpns(&cmt, Segment::Protected), protected, "{lpn}");
            cmt.recount().unwrap();
        }
    }

    #[test]
    fn a_table_without_protected_entries_is_lru() {
        let mut cmt = Cmt::new(2, 0, 1, 100);
        [1, 2, 1].into_iter().for_each(|lpn| assert_eq!(use_entry(&mut cmt, lpn), None));
        assert_eq!(use_entry(&mut cmt, 3), Some(Evicted { lpn: Lpn(2), dirty: false }));
    }

    #[test]
    fn entries_that_are_being_loaded_are_not_evicted() {
        let mut cmt = Cmt::new(2, 1, 2, 8);
        cmt.reserve(Lpn(1));
        cmt.reserve(Lpn(9));
        assert!(!cmt.can_take() && cmt.evict().is_none());
        assert!(!cmt.touch(Lpn(1)) && cmt.change(Lpn(1)), "not loaded yet, and already dirty");
        cmt.load(Lpn(1));
        assert!(cmt.can_take());
        assert_eq!(cmt.evict(), Some(Evicted { lpn: Lpn(1), dirty: true }));
        assert_eq!((cmt.segment(Lpn(1)), cmt.segment(Lpn(9))), (None, Some(Segment::Loading)));
        cmt.recount().unwrap();
    }

    #[test]
    fn the_dirty_entries_of_a_page_become_clean_together() {
        let mut cmt = Cmt::new(8, 4, 2, 4);
        for lpn in [0, 1, 2, 5] {
            use_entry(&mut cmt, lpn);
            assert!(cmt.change(Lpn(lpn)));
        }
        assert_eq!((cmt.resident_of(0), cmt.resident_of(1)), (3, 1));
        cmt.clean_page(0);
        let dirty: Vec<u32> = (0..8).filter(|&lpn| cmt.is_dirty(Lpn(lpn))).collect();
        assert_eq!(dirty, [5]);
        assert!(!cmt.change(Lpn(7)), "it is not in the table");
        cmt.recount().unwrap();
    }

    proptest::proptest! {
        #[test]
        fn the_table_behaves_like_a_list(uses in proptest::collection::vec((0u32..40, proptest::bool::ANY), 0..400),
            capacity in 1u32..12, protected in 0u32..8) {
            let protected = protected.min(capacity - 1);
            let mut cmt = Cmt::new(capacity, protected, 4, 10);
            let (mut probationary, mut kept): (Vec<u32>, Vec<u32>) = Default::default();
            for (lpn, write) in uses {
                let here = probationary.contains(&lpn) || kept.contains(&lpn);
                probationary.retain(|&other| other != lpn);
                kept.retain(|&other| other != lpn);
                if here && protected > 0 {
                    kept.insert(0, lpn);
                    if kept.len() > protected as usize {
                        probationary.insert(0, kept.pop().unwrap());
                    }
                } else {
                    if !here && probationary.len() + kept.len() == capacity as usize {
                        let _ = probationary.pop().or_else(|| kept.pop());
                    }
                    probationary.insert(0, lpn);
                }
                use_entry(&mut cmt, lpn);
                if write {
                    cmt.change(Lpn(lpn));
                }
                proptest::prop_assert_eq!(lpns(&cmt, Segment::Probationary), probationary.clone());
                proptest::prop_assert_eq!(lpns(&cmt, Segment::Protected), kept.clone());
                proptest::prop_assert_eq!(cmt.recount(), Ok(()));
            }
        }
    }
}
