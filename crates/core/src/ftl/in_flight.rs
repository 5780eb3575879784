//! Operations of the host in flight: the reads and writes of units, the data that writes keep, and the copies that they
//! replace.

use super::Ftl;
use super::mapping::Location;
use super::mover::copy::Copy;
use super::partial::Update;
use super::temperature::written::Written;
use crate::metrics::counters::{CopyCause, ReadCause};
use crate::sim::id::{BlockId, Lpn, Ppn, TransactionId};
use crate::work::{Class, Kind, Purpose, Transaction, Transactions};

/// Copies in flash of a unit that was removed from the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmapped {
    /// Valid copy, which the caller invalidates.
    pub valid: Option<Ppn>,
    /// Copy that a write in flight programs, or has replaced, if there is no valid one.
    pub in_flight: Option<Ppn>,
}

impl Ftl {
    /// Returns the read of the sectors from `first` to before `end` of a unit at an address. Its block is not erased
    /// before the read ends.
    #[inline(always)]
    pub fn host_read(&mut self, lpn: Lpn, ppn: Ppn, first: u32, end: u32) -> Transaction {
        let mut read = Transaction::new(Kind::HostRead, Class::HostRead);
        read.dependency = self.blocks.depend(ppn);
        read.plane = self.blocks.plane_of(read.dependency);
        (read.ppn, read.lpn) = (ppn, lpn);
        read.end = (end - first) as u16;
        let shape = &self.shape;
        if shape.pages_per_unit > 1 {
            let per_page = shape.sectors_per_unit / shape.pages_per_unit;
            read.units = (end.div_ceil(per_page) - first / per_page) as u16;
        }
        read
    }

    /// Returns the read of a whole unit at an address that the host has not requested yet.
    pub fn read_ahead(&mut self, lpn: Lpn, ppn: Ppn) -> Transaction {
        let mut read = self.host_read(lpn, ppn, 0, self.shape.sectors_per_unit);
        (read.kind, read.class) = (Kind::ReadAhead, Class::ReadAhead);
        read
    }

    /// Returns why the page at an address is read, as one of a victim, of a cold block, or of a block that is folded.
    #[inline(always)]
    pub fn reason_of_move(&self, ppn: Ppn) -> (ReadCause, Purpose) {
        if !self.blocks.moves_for_reasons() {
            return (ReadCause::Gc, Purpose::OfClass);
        }
        let block = self.blocks.block_of(ppn);
        (self.blocks.cause_of_read(block), self.blocks.purpose_of_move(block))
    }

    /// Returns the read of the sectors that a partial write keeps, which are at an address.
    pub fn rmw_read(&mut self, id: TransactionId, write: &Transaction, ppn: Ppn) -> Transaction {
        let mut read = Transaction::new(Kind::RmwRead, Class::RmwRead).of_write(id);
        read.dependency = self.blocks.depend(ppn);
        read.plane = self.blocks.plane_of(read.dependency);
        read.ppn = ppn;
        read.units = self.shape.pages_per_unit as u16;
        read.end = write.units;
        read
    }

    /// Returns a write of the sectors from `first` to before `end` of a unit, for a request that the temperature policy
    /// sees, and the location of the unit before it. Without sectors, the unit is rewritten unchanged, because it
    /// shares a logical page with units that the host writes.
    #[inline(always)]
    pub fn host_write(&mut self, lpn: Lpn, first: u32, end: u32, request: Written) -> (Transaction, Location) {
        let before = self.map.get(lpn);
        let update = self.partial.write(lpn.0, before != Location::Unmapped, first, end);
        let mut write = Transaction::new(Kind::Write, Class::HostProgram);
        write.lpn = lpn;
        (write.first, write.end) = (first as u16, end as u16);
        self.note_kept(&mut write, end - first, update);
        if first == end {
            self.counters.units_rewritten += 1;
            write.temperature = self.class_of(lpn.0);
        } else {
            self.note_update(update);
            self.note_host_unit(end - first);
            write.temperature = self.classify(lpn, before, request);
        }
        (write, before)
    }

    /// Records how many sectors of its unit a partial write keeps: those ever written, minus its `own`.
    #[inline]
    pub fn note_kept(&self, write: &mut Transaction, own: u32, update: Update) {
        write.complete = update != Update::Uncovered;
        if !write.complete {
            write.units = (self.partial.written(write.lpn.0) - own) as u16;
        }
    }

    /// Accepts a write of a unit at `before`: notes which copy or which older write it replaces.
    #[inline(always)]
    pub fn accept(&mut self, write: &mut Transaction, before: Location) {
        self.blocks.clock += 1;
        match before {
            Location::Unmapped => {}
            Location::Flash(ppn) => {
                write.source = ppn;
                self.blocks.prefetch(ppn);
                self.blocks.prefetch_candidate(ppn);
            }
            Location::Slot(older) => write.older = older,
        }
    }

    /// Binds a write to an address. Invalidates the old copy, and returns its address. The block of the old copy is not
    /// erased before the program ends.
    #[inline]
    pub fn bind_write(&mut self, write: &mut Transaction, ppn: Ppn) -> Option<Ppn> {
        write.ppn = ppn;
        self.map.set_owner(ppn, write.lpn.0);
        let old = std::mem::replace(&mut write.source, Ppn::NONE).get()?;
        self.blocks.invalidate(old);
        self.counters.units_invalidated += 1;
        write.dependency = self.blocks.depend(old);
        Some(old)
    }

    /// Ends the program of a write. Returns `true` if the map points at it now: if its unit was not trimmed, and no
    /// newer write was accepted. `moves_back` is a deliberate bug that ignores newer writes.
    #[inline(always)]
    pub fn end_write(&mut self, write: &Transaction, moves_back: bool) -> bool {
        if write.uncorrectable {
            self.mark_lost(write.ppn);
        }
        if write.trimmed {
            self.counters.units_trimmed += 1;
            return false;
        }
        self.blocks.validate(write.ppn);
        let is_newest = write.newer.is_none() || moves_back;
        if is_newest {
            self.map.set_flash(write.lpn, write.ppn);
        }
        is_newest
    }

    /// Removes a unit from the map, and marks its outstanding writes as trimmed. Returns `None` if it was not mapped.
    pub fn unmap(&mut self, lpn: Lpn, writes: &mut Transactions) -> Option<Unmapped> {
        let mut in_flight = None;
        let valid = match self.map.get(lpn) {
            Location::Unmapped => return None,
            Location::Flash(ppn) => Some(ppn),
            Location::Slot(newest) => {
                let mut id = newest;
                loop {
                    let write = &mut writes[id];
                    write.trimmed = true;
                    if write.older.is_none() {
                        in_flight = write.ppn.get().filter(|_| write.dependency.is_some());
                        break std::mem::replace(&mut write.source, Ppn::NONE).get();
                    }
                    id = write.older;
                }
            }
        };
        self.map.unmap(lpn);
        self.partial.forget(lpn.0);
        Some(Unmapped { valid, in_flight })
    }

    /// Ends the program of a copy by garbage collection. Returns the block that it comes from, and why it was moved.
    #[inline]
    pub fn copy_programmed(&mut self, copy: &Copy) -> (BlockId, CopyCause) {
        if let Some(media) = &mut self.media {
            media.copy(copy.from, copy.to);
        }
        self.copy_loss(copy.from, copy.to);
        let block = self.blocks.block_of(copy.from);
        if self.blocks.levels_wear() {
            self.blocks.note_copied(block, self.blocks.block_of(copy.to), 1);
        }
        (block, self.blocks.block(block).moved_for)
    }

    /// Ends a copy like `end_copy`. If writes of the unit are in flight, the oldest one replaces the copy.
    #[inline]
    pub fn end_copy_of(&mut self, copy: &Copy, cause: CopyCause, writes: &mut Transactions) -> Option<Location> {
        let before = self.end_copy(copy, cause)?;
        if let Location::Slot(newest) = before {
            let mut id = newest;
            while writes[id].older.is_some() {
                id = writes[id].older;
            }
            debug_assert_eq!(writes[id].source, copy.from);
            writes[id].source = copy.to;
        }
        Some(before)
    }
}
