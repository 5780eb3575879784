//! Read-ahead: tracks the units that are read ahead of sequential streams (`streams.rs`) into the buffer.
//!
//! A unit has an entry from the time at which its read is queued, so that the buffer has room for it. The entry holds
//! no sectors until the read ends. `device/read_ahead.rs` has the reads.

use super::Buffer;
use super::streams::State;
use crate::ftl::Ftl;
use crate::ftl::mapping::Location;
use crate::sim::id::{Lpn, Ppn, TransactionId};
use crate::sim::request::Request;
use crate::sim::time::Time;
use crate::work::Transaction;

impl Buffer {
    /// Adds a read to the stream that it continues. Returns the stream if units are to be read ahead of it.
    #[inline]
    pub fn follow(&mut self, request: &Request) -> Option<u32> {
        self.ahead.as_deref_mut()?.follow(request)
    }

    /// Returns the next unit to read ahead of a stream: see `ReadAhead::next`.
    pub fn next_ahead(&mut self, stream: u32, shares: impl FnOnce(Lpn) -> bool) -> Option<Lpn> {
        self.ahead.as_deref_mut()?.next(stream, shares)
    }

    /// Leaves the units of a stream from the last one of [`Buffer::next_ahead`] on to a later request.
    pub fn stop_ahead(&mut self, stream: u32) {
        if let Some(ahead) = &mut self.ahead {
            ahead.stop(stream);
        }
    }

    /// Makes room for a unit that the buffer does not hold and that is to be read ahead, and inserts it without
    /// sectors. Returns its entry, or `None` if there is no room. Host writes that wait for room take priority.
    pub fn reserve(&mut self, lpn: Lpn) -> Option<u32> {
        self.make_room_for_fill();
        (self.room() > 0 && self.waiting == 0).then(|| self.insert(lpn, false, true))
    }

    /// Notes that a read ahead brings the unit of an entry.
    pub fn begin_ahead(&mut self, entry: u32, read: TransactionId) {
        if let Some(ahead) = &mut self.ahead {
            ahead.states[entry as usize] = State::Reading(read);
            self.counts.ahead += 1;
        }
    }

    /// Returns the read ahead that brings a unit, if there is one.
    #[inline]
    pub fn ahead_of(&self, lpn: Lpn) -> Option<TransactionId> {
        let ahead = self.ahead.as_deref()?;
        match ahead.states[self.entry(lpn)? as usize] {
            State::Reading(read) => Some(read),
            State::Other | State::Held => None,
        }
    }

    /// Drops a unit that was read ahead, after a read of its sectors up to `end`, if that is its end and the buffer
    /// does not keep data that was read.
    #[inline]
    pub fn end_use(&mut self, lpn: Lpn, end: u32) {
        let Some(ahead) = self.ahead.as_deref().filter(|_| !self.keeps) else { return };
        let Some(entry) = self.entry(lpn) else { return };
        if end == ahead.sectors_per_unit && ahead.states[entry as usize] != State::Other {
            self.drop_clean(entry);
        }
    }

    /// Drops the unit of an entry that is clean and not chosen for eviction.
    fn drop_clean(&mut self, entry: u32) {
        let state = &self.entries[entry as usize];
        if !state.is_dirty() && state.flights == 0 && !state.leaving {
            self.eviction.on_remove(entry);
            self.release(entry);
        }
    }

    /// Ends a read ahead. Keeps the units that it has brought, except for those that were written back, moved or
    /// trimmed since it was queued, and all of them if it `fails`.
    pub fn end_ahead(&mut self, id: TransactionId, read: &Transaction, fails: bool, ftl: &Ftl, now: Time) {
        let per_page = ftl.shape().units_per_page;
        let first = per_page.divide(read.ppn.0) * per_page.divisor();
        let units = self.reads[id.index()];
        for in_page in (0..per_page.divisor()).filter(|unit| units >> unit & 1 == 1) {
            let ppn = Ppn(first + in_page);
            self.end_ahead_of(id, Lpn(ftl.map.owner(ppn)), ppn, fails, ftl, now);
        }
    }

    fn end_ahead_of(&mut self, id: TransactionId, lpn: Lpn, ppn: Ppn, fails: bool, ftl: &Ftl, now: Time) {
        if self.ahead_of(lpn) != Some(id) {
            return; // The unit was trimmed or evicted in the meantime.
        }
        let (Some(entry), Some(ahead)) = (self.entry(lpn), &mut self.ahead) else { return };
        let is_current = !fails && ftl.map.get(lpn) == Location::Flash(ppn) && !ftl.is_lost(ppn);
        let is_empty = match self.words {
            1 => self.entries[entry as usize].mask == 0,
            words => self.masks[entry as usize * words..][..words].iter().all(|word| *word == 0),
        };
        // A unit that the host wrote in the meantime is one of the host.
        ahead.states[entry as usize] = if is_current && is_empty { State::Held } else { State::Other };
        let sectors = ftl.shape().sectors_per_unit;
        if !is_current {
            if is_empty {
                self.drop_clean(entry);
            }
        } else if self.fill(lpn, 0, sectors, ftl.media.as_ref().map(|media| media.read(ppn))) {
            self.pass(sectors, now);
        }
    }
}
