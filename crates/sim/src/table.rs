//! Tables indexed by ids, so that a table of planes cannot be indexed by a block.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use crate::id::Id;

/// A vector that is indexed by an id.
#[derive(Clone, Debug)]
pub struct Table<I, T> {
    entries: Vec<T>,
    id: PhantomData<fn(I)>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Table { entries: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T> Table<I, T> {
    /// Creates a table of `count` equal entries.
    pub fn new(count: u32, entry: T) -> Table<I, T>
    where
        T: Clone,
    {
        Table { entries: vec![entry; count as usize], id: PhantomData }
    }

    /// Returns the entry of an id. Adds default entries up to the id if necessary.
    #[inline(always)]
    pub fn entry(&mut self, id: I) -> &mut T
    where
        T: Clone + Default,
    {
        let index = id.number() as usize;
        if self.entries.len() <= index {
            self.grow(index);
        }
        &mut self.entries[index]
    }

    #[cold]
    fn grow(&mut self, index: usize)
    where
        T: Clone + Default,
    {
        self.entries.resize(index + 1, T::default());
    }

    /// Returns the entry of an id, if it has one.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.number() as usize)
    }

    /// Returns the entry of an id for modification, if it has one.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.number() as usize)
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns all entries in the order of their ids.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// Returns all entries for modification, in the order of their ids.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }

    /// Returns all ids with their entries.
    #[inline]
    pub fn pairs(&self) -> impl Iterator<Item = (I, &T)> {
        (0..).map(I::new).zip(&self.entries)
    }

    /// Prefetches the entry of an id.
    #[inline]
    pub fn prefetch(&self, id: I) {
        crate::memory::prefetch(&self.entries, id.number() as usize);
    }
}

impl<I: Id, T> FromIterator<T> for Table<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Table<I, T> {
        Table { entries: entries.into_iter().collect(), id: PhantomData }
    }
}

impl<'a, I: Id, T> IntoIterator for &'a Table<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, I: Id, T> IntoIterator for &'a mut Table<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.entries[id.number() as usize]
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.number() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PlaneId;

    #[test]
    fn entries_are_found_by_their_ids() {
        let mut table = Table::new(2, 'a');
        table[PlaneId(1)] = 'b';
        assert_eq!((table[PlaneId(0)], table.get(PlaneId(1)), table.get(PlaneId(2))), ('a', Some(&'b'), None));
        assert_eq!(table.pairs().last(), Some((PlaneId(1), &'b')));
        *table.entry(PlaneId(3)) = 'd';
        assert_eq!(table.iter().copied().collect::<Vec<_>>(), ['a', 'b', '\0', 'd']);
    }
}
