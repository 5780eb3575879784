//! Requests that are read ahead: a ring, which a source fills in batches.

use crate::sim::request::{Operation, Request};
use crate::sim::source::{Source, SourceError};
use crate::sim::time::Time;

/// Places of the ring, a power of two.
const SIZE: usize = 64;

/// Requests that were read from a source and not issued, in their order.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    ring: [Request; SIZE],
    /// Number of requests that were removed.
    head: usize,
    /// Number of requests that were added.
    tail: usize,
}

impl Ahead {
    pub(super) fn new() -> Ahead {
        Ahead { ring: [Request::new(Time::ZERO, Operation::Flush, 0, 0); SIZE], head: 0, tail: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tail - self.head
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Returns the request at a position from the front, or `None` beyond the last one.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<&Request> {
        let at = self.head + position;
        (at < self.tail).then(|| &self.ring[at % SIZE])
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Request> {
        let first = *self.get(0)?;
        self.head += 1;
        Some(first)
    }

    /// Calls `change` for each request.
    pub(super) fn change<E>(&mut self, mut change: impl FnMut(&mut Request) -> Result<(), E>) -> Result<(), E> {
        (self.head..self.tail).try_for_each(|at| change(&mut self.ring[at % SIZE]))
    }

    /// Reads requests from a source into the free places up to the end of the array, and changes each of them. There
    /// must be a free place. Returns `false` at the end of the source.
    pub(super) fn read(
        &mut self,
        source: &mut dyn Source,
        mut change: impl FnMut(&mut Request) -> Result<(), SourceError>,
    ) -> Result<bool, SourceError> {
        let first = self.tail % SIZE;
        let free = (SIZE - self.len()).min(SIZE - first);
        let room = &mut self.ring[first..first + free];
        let count = source.fill(room)?;
        room[..count].iter_mut().try_for_each(&mut change)?;
        self.tail += count;
        Ok(count > 0)
    }
}
