//! Events of the flash log for the writes, copies and programs of a device in time.

use super::Durability;
use super::flash::{Before, FlashEvent, Record, Source};
use super::log::{Buffered, FlashLog, Slot};
use crate::cache::Buffer;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Location, PADDING};
use crate::ftl::mover::copy::Copy;
use crate::host::requests::Part;
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{Lpn, Ppn, TransactionId};
use crate::sim::request::{Operation, Request};
use crate::work::{Transaction, Transactions};

/// A program that starts.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// First physical address.
    pub first: Ppn,
    /// Number of units.
    pub units: u32,
    /// Cause of the program.
    pub cause: ProgramCause,
    /// First of its writes, or `NONE`.
    pub writes: TransactionId,
    /// Copies that it programs.
    pub copies: &'a [Copy],
    /// Test hook: new sequence number for all copies.
    pub renumbers: Option<u64>,
}

/// State that determines the locations of units.
#[derive(Clone, Copy, Debug)]
pub struct Units<'a> {
    /// Translation layer with the map.
    pub ftl: &'a Ftl,
    /// Outstanding writes.
    pub transactions: &'a Transactions,
}

impl FlashLog {
    /// Reports that a part of a write is accepted with a sequence number. `before` is the map entry of its unit. The
    /// write takes a slot next.
    pub fn accept(&mut self, units: Units, request: &Request, part: Part, before: Location, sequence: u64) {
        let before = self.before(units, part.lpn, before);
        self.emit_accepted(request, part, before, sequence);
    }

    /// Reports that the buffer is about to store a part of a write, with a sequence number.
    pub fn accept_in_buffer(&mut self, units: Units, buffer: &Buffer, request: &Request, part: Part, sequence: u64) {
        let pending = buffer.entry_of(part.lpn).filter(|_| buffer.is_pending(part.lpn));
        let before = match pending {
            Some(entry) => {
                let Buffered { sequence, taken } = *self.buffered(entry);
                let is_merged = buffer.is_dirty(entry) && !taken;
                if is_merged { Before::Merged(sequence) } else { self.before_of(units, part.lpn, sequence) }
            }
            None => self.before(units, part.lpn, units.ftl.map.get(part.lpn)),
        };
        self.emit_accepted(request, part, before, sequence);
    }

    fn before(&mut self, units: Units, lpn: Lpn, before: Location) -> Before {
        match before {
            Location::Unmapped => Before::Nothing,
            Location::Flash(ppn) => Before::Flash(ppn),
            Location::Slot(id) => {
                let sequence = self.slot(id).sequence;
                self.before_of(units, lpn, sequence)
            }
        }
    }

    fn emit_accepted(&mut self, request: &Request, part: Part, before: Before, sequence: u64) {
        self.emit(FlashEvent::Accepted {
            tag: request.tag,
            lpn: part.lpn,
            first: part.first,
            end: part.end,
            offset: part.offset,
            zeroes: request.operation == Operation::WriteZeroes,
            sequence,
            before,
        });
        self.set_coming(sequence, true);
    }

    /// Returns the location of the version of a unit with a sequence number, which is outstanding or in flash by now.
    fn before_of(&mut self, units: Units, lpn: Lpn, sequence: u64) -> Before {
        let ppn = match units.ftl.map.get(lpn) {
            Location::Unmapped => None,
            Location::Flash(ppn) => Some(ppn),
            Location::Slot(newest) => {
                let mut id = newest;
                while units.transactions[id].older.is_some() {
                    id = units.transactions[id].older;
                }
                units.transactions[id].source.get().or(self.slot(id).replaces)
            }
        };
        let held = ppn.filter(|&ppn| self.sequence(ppn) == sequence);
        held.map_or(Before::Pending(sequence), Before::Flash)
    }

    /// Sets the version of the next write of the buffer that takes a slot: of an entry, or of a unit that is only in
    /// flash.
    pub fn write_out(&mut self, entry: Option<u32>, before: Location) {
        match (entry, before) {
            (Some(entry), _) => {
                let buffered = self.buffered(entry);
                let is_first = !std::mem::replace(&mut buffered.taken, true);
                let sequence = buffered.sequence;
                self.set_coming(sequence, is_first);
            }
            (None, Location::Flash(ppn)) => self.set_coming(self.sequence(ppn), false),
            (None, _) => {}
        }
    }

    /// Assigns the version that was set last to the write that has taken a slot.
    pub fn take_slot(&mut self, id: TransactionId) {
        let coming = self.coming;
        *self.slot(id) = coming;
    }

    /// Records that a write is bound, and invalidates the copy at `old`.
    #[inline(never)]
    pub fn invalidate(&mut self, id: TransactionId, old: Ppn) {
        self.slot(id).replaces = Some(old);
    }

    /// Reports that a program starts.
    pub fn begin_program(&mut self, units: Units, durability: Option<&Durability>, program: &Program) {
        self.begin(program.first, program.units, program.cause);
        for ppn in (program.first.0..program.first.0 + program.units).map(Ppn) {
            let (record, source) = match units.ftl.map.owner(ppn) {
                PADDING => (Record::default(), Source::Nothing),
                lpn => match program.copies.iter().find(|copy| copy.to == ppn) {
                    Some(copy) => self.copied(units.ftl, lpn, copy.from, program.renumbers),
                    None => {
                        let own = durability.and_then(|durability| durability.page(lpn, units.ftl, self));
                        self.written(units, lpn, ppn, program.writes, own)
                    }
                },
            };
            self.unit(ppn, record, source);
        }
    }

    fn copied(&self, ftl: &Ftl, lpn: u32, from: Ppn, renumbers: Option<u64>) -> (Record, Source) {
        let sequence = renumbers.unwrap_or_else(|| self.sequence(from));
        let record = self.record_or_loss(ftl, lpn, sequence, ftl.is_lost(from));
        (Record { sectors: self.sectors(from), ..record }, Source::Copy(from))
    }

    fn written(
        &mut self,
        units: Units,
        lpn: u32,
        ppn: Ppn,
        first: TransactionId,
        own: Option<Vec<u8>>,
    ) -> (Record, Source) {
        let mut id = first;
        while units.transactions[id].ppn != ppn {
            id = units.transactions[id].next;
        }
        let Transaction { trimmed, uncorrectable, .. } = units.transactions[id];
        let Slot { sequence, is_first, replaces } = *self.slot(id);
        if trimmed && !is_first {
            // Another copy of this version has its contents.
            return (Record::default(), Source::Nothing);
        }
        let source = match (replaces.filter(|&old| self.sequence(old) == sequence), own) {
            _ if trimmed => Source::Nothing,
            (_, Some(own)) => self.own(&own),
            (Some(old), None) => Source::Copy(old),
            (None, None) => Source::Write { lpn: Lpn(lpn), sequence },
        };
        (self.record_or_loss(units.ftl, lpn, sequence, uncorrectable), source)
    }
}
