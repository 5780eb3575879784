//! Lines of waiting transactions: singly linked through the transactions themselves, so that joining one allocates
//! nothing.

/// No transaction.
pub const NONE: u32 = u32::MAX;

/// Where the link to the next one in line is kept.
pub trait Links {
    /// The one behind `id`.
    fn next(&self, id: u32) -> u32;
    /// Sets the one behind `id`.
    fn set_next(&mut self, id: u32, next: u32);
}

/// A line: first in, first out.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    first: u32,
    last: u32,
}

impl Default for Line {
    fn default() -> Self {
        Line { first: NONE, last: NONE }
    }
}

impl Line {
    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// The one that has waited longest, or [`NONE`].
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Joins at the end.
    #[inline]
    pub fn push(&mut self, links: &mut impl Links, id: u32) {
        links.set_next(id, NONE);
        if self.first == NONE {
            self.first = id;
        } else {
            links.set_next(self.last, id);
        }
        self.last = id;
    }

    /// Joins at the front.
    #[inline]
    pub fn push_front(&mut self, links: &mut impl Links, id: u32) {
        links.set_next(id, self.first);
        if self.first == NONE {
            self.last = id;
        }
        self.first = id;
    }

    /// Lets all of another line join at the front, in their order.
    pub fn put_before(&mut self, links: &mut impl Links, other: Line) {
        if other.first == NONE {
            return;
        }
        links.set_next(other.last, self.first);
        if self.first == NONE {
            self.last = other.last;
        }
        self.first = other.first;
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self, links: &mut impl Links) -> u32 {
        let id = self.first;
        if id != NONE {
            self.first = links.next(id);
        }
        id
    }

    /// Removes and returns the first transaction that `suits`, if it is among the `depth` oldest ones.
    #[inline]
    pub fn pop_suitable<L: Links>(&mut self, links: &mut L, depth: u32, suits: impl Fn(&L, u32) -> bool) -> u32 {
        let (mut before, mut id) = (NONE, self.first);
        for _ in 0..depth {
            if id == NONE {
                break;
            }
            if suits(links, id) {
                let next = links.next(id);
                match before {
                    NONE => self.first = next,
                    before => links.set_next(before, next),
                }
                if self.last == id {
                    self.last = before;
                }
                return id;
            }
            (before, id) = (id, links.next(id));
        }
        NONE
    }
}
