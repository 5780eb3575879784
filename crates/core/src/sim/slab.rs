//! Things in progress, by number: adding and removing take a step each and, once there is room, allocate nothing.

/// A table of small values whose places are used again.
///
/// Unlike those of the `slab` crate its entries carry no mark of being in use, so that one fits a cache line; a number
/// that was removed must not be used any more.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    entries: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Slab<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds one; returns its number.
    #[inline]
    pub fn insert(&mut self, entry: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }
    }

    /// Asks for one ahead of time.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        super::memory::prefetch(&self.entries, id as usize);
    }

    /// Takes one out.
    #[inline]
    pub fn remove(&mut self, id: u32) -> T {
        self.free.push(id);
        self.entries[id as usize]
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.entries[id as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.entries[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut slab = Slab::default();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((slab[a], slab[b], slab.len()), ('a', 'b', 2));
        assert_eq!(slab.remove(a), 'a');
        assert_eq!(slab.insert('c'), a);
        slab[b] = 'd';
        assert_eq!((slab[a], slab[b], slab.len(), slab.is_empty()), ('c', 'd', 2, false));
    }
}
