//! Table of outstanding items by number. Adding and removing take constant time, and allocate only to grow.

use crate::id::Id;

/// A table of small values that reuses its entries.
///
/// Unlike in the `slab` crate, entries carry no in-use flag, so that an entry can fill a cache line exactly. The number
/// of a removed entry must no longer be used.
#[derive(Clone, Debug)]
pub struct Slab<I, T> {
    entries: Vec<T>,
    free: Vec<I>,
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Slab { entries: Vec::new(), free: Vec::new() }
    }
}

impl<I: Id, T: Copy> Slab<I, T> {
    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns `true` if there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if an entry has, or has had, this number.
    pub fn has_had(&self, id: I) -> bool {
        (id.number() as usize) < self.entries.len()
    }

    /// Adds an entry. Returns its number.
    // Inlined, so that the entry is built in its place.
    #[inline(always)]
    pub fn insert(&mut self, entry: T) -> I {
        let id = self.free.pop().unwrap_or_else(|| self.grow(entry));
        self.entries[id.number() as usize] = entry;
        id
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, entry: T) -> I {
        self.entries.push(entry);
        I::new(self.entries.len() as u32 - 1)
    }

    /// Returns all entries, by number. Takes time for every entry that was ever in use at once.
    pub fn values(&self) -> Vec<T> {
        let mut is_free = vec![false; self.entries.len()];
        self.free.iter().for_each(|id| is_free[id.number() as usize] = true);
        self.entries.iter().zip(is_free).filter(|(_, is_free)| !is_free).map(|(entry, _)| *entry).collect()
    }

    /// Prefetches an entry.
    #[inline]
    pub fn prefetch(&self, id: I) {
        crate::memory::prefetch(&self.entries, id.number() as usize);
    }

    /// Removes and returns an entry.
    #[inline]
    pub fn remove(&mut self, id: I) -> T {
        self.free.push(id);
        self.entries[id.number() as usize]
    }
}

impl<I: Id, T> std::ops::Index<I> for Slab<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.entries[id.number() as usize]
    }
}

impl<I: Id, T> std::ops::IndexMut<I> for Slab<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.number() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RequestId;

    #[test]
    fn removed_entries_are_reused() {
        let mut slab: Slab<RequestId, char> = Slab::default();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((slab[a], slab[b], slab.len()), ('a', 'b', 2));
        assert_eq!(slab.remove(a), 'a');
        assert_eq!(slab.values(), ['b']);
        assert_eq!(slab.insert('c'), a);
        slab[b] = 'd';
        assert_eq!((slab[a], slab[b], slab.len(), slab.is_empty()), ('c', 'd', 2, false));
    }
}
