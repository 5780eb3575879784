//! Doubly linked lists of numbers. Inserting, removing and moving take constant time, and never allocate.

/// No member, or the end of a list.
pub const NONE: u32 = u32::MAX;

/// Storage of the neighbors of each number in its list: the previous and the next member, or [`NONE`]. Lists may share
/// a storage if each number is in at most one of them.
pub trait Linked {
    /// Returns the neighbors of a number.
    fn of(&self, id: u32) -> [u32; 2];
    /// Returns the neighbors of a number for modification.
    fn of_mut(&mut self, id: u32) -> &mut [u32; 2];

    /// Returns the member before `id`, or [`NONE`].
    #[inline]
    fn before(&self, id: u32) -> u32 {
        self.of(id)[0]
    }

    /// Returns the member after `id`, or [`NONE`].
    #[inline]
    fn behind(&self, id: u32) -> u32 {
        self.of(id)[1]
    }
}

/// A vector entry that contains its own neighbors.
pub trait Member {
    /// Returns the neighbors.
    fn links(&self) -> [u32; 2];
    /// Returns the neighbors for modification.
    fn links_mut(&mut self) -> &mut [u32; 2];
}

impl<M: Member> Linked for Vec<M> {
    #[inline]
    fn of(&self, id: u32) -> [u32; 2] {
        self[id as usize].links()
    }

    #[inline]
    fn of_mut(&mut self, id: u32) -> &mut [u32; 2] {
        self[id as usize].links_mut()
    }
}

/// Neighbors in a vector of their own.
#[derive(Clone, Debug)]
pub struct Links(Vec<[u32; 2]>);

impl Links {
    /// Creates the storage for the numbers `0..count`.
    pub fn new(count: u32) -> Links {
        Links(vec![[NONE; 2]; count as usize])
    }
}

impl Linked for Links {
    #[inline]
    fn of(&self, id: u32) -> [u32; 2] {
        self.0[id as usize]
    }

    #[inline]
    fn of_mut(&mut self, id: u32) -> &mut [u32; 2] {
        &mut self.0[id as usize]
    }
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        List { first: NONE, last: NONE }
    }
}

impl List {
    /// Returns the first member, or [`NONE`].
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Returns the last member, or [`NONE`].
    #[inline]
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Returns the member `steps` before the last, or [`NONE`].
    #[inline]
    pub fn nth_from_last(&self, links: &impl Linked, steps: u32) -> u32 {
        (0..steps).fold(self.last, |id, _| if id == NONE { NONE } else { links.before(id) })
    }

    /// Returns the member `steps` after the first, or [`NONE`].
    #[inline]
    pub fn nth_from_first(&self, links: &impl Linked, steps: u32) -> u32 {
        (0..steps).fold(self.first, |id, _| if id == NONE { NONE } else { links.behind(id) })
    }

    /// Returns `true` if the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Inserts `id` at the front.
    #[inline]
    pub fn push_first(&mut self, links: &mut impl Linked, id: u32) {
        self.insert(links, id, NONE, self.first);
    }

    /// Appends `id` at the end.
    #[inline]
    pub fn push_last(&mut self, links: &mut impl Linked, id: u32) {
        self.insert(links, id, self.last, NONE);
    }

    /// Inserts `id` before the member `behind`.
    #[inline]
    pub fn insert_before(&mut self, links: &mut impl Linked, id: u32, behind: u32) {
        self.insert(links, id, links.before(behind), behind);
    }

    fn insert(&mut self, links: &mut impl Linked, id: u32, before: u32, behind: u32) {
        *links.of_mut(id) = [before, behind];
        match before {
            NONE => self.first = id,
            before => links.of_mut(before)[1] = id,
        }
        match behind {
            NONE => self.last = id,
            behind => links.of_mut(behind)[0] = id,
        }
    }

    /// Removes the member `id`.
    #[inline]
    pub fn remove(&mut self, links: &mut impl Linked, id: u32) {
        let [before, behind] = links.of(id);
        match before {
            NONE => self.first = behind,
            before => links.of_mut(before)[1] = behind,
        }
        match behind {
            NONE => self.last = before,
            behind => links.of_mut(behind)[0] = before,
        }
        *links.of_mut(id) = [NONE; 2];
    }

    /// Moves the member `id` to the front.
    #[inline]
    pub fn move_first(&mut self, links: &mut impl Linked, id: u32) {
        if self.first != id {
            self.remove(links, id);
            self.push_first(links, id);
        }
    }

    /// Removes and returns the first member.
    #[inline]
    pub fn pop_first(&mut self, links: &mut impl Linked) -> Option<u32> {
        let id = self.first;
        (id != NONE).then(|| self.remove(links, id))?;
        Some(id)
    }

    /// Removes and returns the last member.
    #[inline]
    pub fn pop_last(&mut self, links: &mut impl Linked) -> Option<u32> {
        let id = self.last;
        (id != NONE).then(|| self.remove(links, id))?;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(list: &List, links: &Links) -> Vec<u32> {
        let mut members = Vec::new();
        let mut id = list.first();
        while id != NONE {
            members.push(id);
            id = links.behind(id);
        }
        members
    }

    #[test]
    fn members_stay_in_order() {
        let (mut list, mut links) = (List::default(), Links::new(6));
        for id in [1, 2, 3] {
            list.push_last(&mut links, id);
        }
        list.push_first(&mut links, 0);
        list.insert_before(&mut links, 5, 2);
        assert_eq!(members(&list, &links), [0, 1, 5, 2, 3]);
        assert_eq!([0, 1, 4, 5, 6].map(|steps| list.nth_from_last(&links, steps)), [3, 2, 0, NONE, NONE]);
        assert_eq!([0, 1, 4, 5, 6].map(|steps| list.nth_from_first(&links, steps)), [0, 1, 3, NONE, NONE]);
        list.move_first(&mut links, 3);
        list.move_first(&mut links, 3);
        list.remove(&mut links, 5);
        assert_eq!(members(&list, &links), [3, 0, 1, 2]);
        assert_eq!((list.pop_first(&mut links), list.pop_last(&mut links)), (Some(3), Some(2)));
        assert_eq!((list.pop_last(&mut links), list.pop_last(&mut links)), (Some(1), Some(0)));
        assert_eq!((list.pop_first(&mut links), list.pop_last(&mut links), list.is_empty()), (None, None, true));
    }
}
