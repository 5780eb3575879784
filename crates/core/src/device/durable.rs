//! A device whose flash outlives a power cut: it tells of everything that changes flash, before anything is answered
//! that depends on it. See docs/model/durability.md.

use super::{Device, Mutant};
use crate::ftl::durable::{Buffered, Durable};
use crate::ftl::flash::{Before, FlashEvent, Keep, Outbox, Place, Record, Source};
use crate::ftl::gc::job::Copy;
use crate::ftl::mapping::{Location, PADDING};
use crate::ftl::memory::MemoryFlash;
use crate::host::requests::Part;
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::sim::request::{Operation, Request};
use crate::work::Transaction;

impl Device {
    /// From now on all that changes flash is told. What is there already, such as what preconditioning has left, is
    /// told first. The device must be at rest.
    pub fn make_durable(&mut self, keep: Keep) -> Result<(), String> {
        self.begin_to_tell(keep)?;
        (0..self.config.total_blocks()).for_each(|block| self.tell_block(BlockId(block)));
        Ok(())
    }

    fn tell_block(&mut self, block: BlockId) {
        let journal = self.durability.as_ref().and_then(|durability| durability.journal.as_ref());
        self.ftl.tell_block(block, |lpn| journal.and_then(|journal| journal.page(lpn)));
    }

    fn begin_to_tell(&mut self, keep: Keep) -> Result<(), String> {
        if let Some(why) = self.config.mapping.scheme.needs(&self.config).no_power_loss {
            return Err(why.to_owned());
        }
        if !self.is_idle() || self.buffer().is_some_and(|buffer| !buffer.is_clean()) {
            return Err("a device is made durable at rest: advance until nothing is in progress".to_owned());
        }
        self.ftl.durable = Some(Box::new(Durable::new(&self.config, keep)));
        if let Some(checkpoint) = self.durability.as_mut().and_then(|durability| durability.checkpoint.as_mut()) {
            // What there is of it was not made of numbers.
            checkpoint.forget();
        }
        Ok(())
    }

    /// As [`Device::make_durable`] with [`Keep::Outbox`], where what preconditioning has left is told one by one.
    pub fn make_durable_with(&mut self, mut told: impl FnMut(&FlashEvent, &[u8])) -> Result<(), String> {
        self.begin_to_tell(Keep::Outbox)?;
        let mut outbox = Outbox::default();
        for block in 0..self.config.total_blocks() {
            self.tell_block(BlockId(block));
            self.take_flash(&mut outbox);
            outbox.events.iter().for_each(|event| told(event, &outbox.own));
            outbox.clear();
        }
        Ok(())
    }

    /// Whether it tells of what changes flash.
    #[inline]
    pub fn is_durable(&self) -> bool {
        self.ftl.durable.is_some()
    }

    /// What was told since the last call, behind what is in `into`. It must be applied before any completion that was
    /// decided by now is told to the host.
    pub fn take_flash(&mut self, into: &mut Outbox) {
        if let Some(durable) = &mut self.ftl.durable {
            durable.take(into);
        }
    }

    /// The flash of a device that keeps it in memory.
    pub fn flash(&self) -> Option<&MemoryFlash> {
        self.ftl.durable.as_ref()?.memory()
    }

    /// Cuts the power of a device that keeps its flash in memory: all that is left of it. `None` where it does not.
    pub fn power_cut(mut self, seed: u64) -> Option<MemoryFlash> {
        let mut flash = self.ftl.durable.as_mut()?.take_memory()?;
        flash.power_cut(seed);
        Some(flash)
    }

    /// Where the newest version of a unit is. What is pending was told as accepted.
    pub fn place_of(&self, lpn: Lpn) -> Place {
        if self.buffer().is_some_and(|buffer| buffer.is_pending(lpn)) {
            return Place::Pending;
        }
        match self.ftl.map.get(lpn) {
            Location::Unmapped => Place::Nothing,
            Location::Flash(place) => Place::Flash(place),
            Location::Slot(_) => Place::Pending,
        }
    }

    /// A part of a write is accepted, and takes a slot next. `before` is what the map says of its unit.
    #[inline]
    pub(super) fn note_accepted(&mut self, request: &Request, part: Part, before: Location) {
        if self.ftl.durable.is_some() {
            let before = match before {
                Location::Unmapped => Before::Nothing,
                Location::Flash(place) => Before::Flash(place),
                Location::Slot(id) => {
                    let sequence = self.slot_sequence(id);
                    self.before_of(part.lpn, sequence)
                }
            };
            let sequence = self.tell_accepted(request, part, before);
            if let Some(durable) = &mut self.ftl.durable {
                durable.set_coming(sequence, true);
            }
        }
    }

    fn slot_sequence(&mut self, id: TransactionId) -> u64 {
        self.ftl.durable.as_mut().map_or(0, |durable| durable.slot(id).sequence)
    }

    fn tell_accepted(&mut self, request: &Request, part: Part, before: Before) -> u64 {
        let sequence = self.ftl.next_sequence();
        let Some(durable) = &mut self.ftl.durable else { return sequence };
        durable.tell(FlashEvent::Accepted {
            tag: request.tag,
            lpn: part.lpn,
            first: part.first,
            end: part.end,
            offset: part.offset,
            zeroes: request.operation == Operation::WriteZeroes,
            sequence,
            before,
        });
        sequence
    }

    /// Where the version of a unit with a number is that is on its way, or was and is in flash by now.
    fn before_of(&mut self, lpn: Lpn, sequence: u64) -> Before {
        let place = match self.ftl.map.get(lpn) {
            Location::Unmapped => None,
            Location::Flash(place) => Some(place),
            Location::Slot(newest) => {
                let mut id = newest;
                while self.transactions[id].older.is_some() {
                    id = self.transactions[id].older;
                }
                let source = self.transactions[id].source.get();
                source.or(self.ftl.durable.as_mut().and_then(|durable| durable.slot(id).replaces))
            }
        };
        let held = place.filter(|&place| self.ftl.durable.as_ref().is_some_and(|d| d.sequence(place) == sequence));
        held.map_or(Before::Pending(sequence), Before::Flash)
    }

    /// The buffer is about to take a part of a write.
    #[inline]
    pub(super) fn note_buffered(&mut self, request: &Request, part: Part) {
        if self.ftl.durable.is_some() {
            self.tell_buffered(request, part);
        }
    }

    fn tell_buffered(&mut self, request: &Request, part: Part) {
        let entry = self.buffer().and_then(|buffer| buffer.entry_of(part.lpn));
        let pending = entry.filter(|_| self.buffer().is_some_and(|buffer| buffer.is_pending(part.lpn)));
        let before = match (pending, self.ftl.map.get(part.lpn)) {
            (Some(entry), _) => {
                let Buffered { sequence, taken } = self.buffered(entry);
                let dirty = self.buffer().is_some_and(|buffer| buffer.is_dirty(entry));
                if dirty && !taken { Before::Merged(sequence) } else { self.before_of(part.lpn, sequence) }
            }
            (None, Location::Unmapped) => Before::Nothing,
            (None, Location::Flash(place)) => Before::Flash(place),
            (None, Location::Slot(id)) => {
                let sequence = self.slot_sequence(id);
                self.before_of(part.lpn, sequence)
            }
        };
        let sequence = self.tell_accepted(request, part, before);
        if let Some(durable) = &mut self.ftl.durable {
            durable.set_coming(sequence, true);
        }
    }

    fn buffered(&mut self, entry: u32) -> Buffered {
        self.ftl.durable.as_mut().map_or(Buffered::default(), |durable| *durable.buffered(entry))
    }

    /// A write of the buffer takes a slot next: of an entry, or of a unit that is in flash and not in the buffer.
    #[inline]
    pub(super) fn note_written_out(&mut self, entry: Option<u32>, before: Location) {
        let Some(durable) = &mut self.ftl.durable else { return };
        match (entry, before) {
            (Some(entry), _) => {
                let buffered = durable.buffered(entry);
                let is_first = !std::mem::replace(&mut buffered.taken, true);
                let sequence = buffered.sequence;
                durable.set_coming(sequence, is_first);
            }
            (None, Location::Flash(place)) => durable.set_coming(durable.sequence(place), false),
            (None, _) => {}
        }
    }

    /// A write has taken a slot.
    #[inline]
    pub(super) fn note_slot(&mut self, id: TransactionId) {
        if let Some(durable) = &mut self.ftl.durable {
            *durable.slot(id) = durable.coming;
        }
    }

    /// A write is bound, and supersedes what a place holds.
    #[inline]
    pub(super) fn note_bound(&mut self, id: TransactionId, old: Ppn) {
        if let Some(durable) = &mut self.ftl.durable {
            durable.slot(id).replaces = Some(old);
        }
    }

    /// A program of writes begins: those that are chained behind `id`, or none, beside `copies`.
    #[inline]
    pub(super) fn note_program(
        &mut self,
        first: Ppn,
        units: u32,
        cause: ProgramCause,
        id: TransactionId,
        copies: &[Copy],
    ) {
        if self.ftl.durable.is_some() {
            self.tell_program(first, units, cause, id, copies);
        }
    }

    /// A program of cleaning begins: through the controller, or within the plane.
    #[inline]
    pub(super) fn note_copies(&mut self, plane: PlaneId, first: Ppn, units: u32, back: bool) {
        if self.ftl.durable.is_some() {
            let job = &self.jobs[plane];
            let copies = if back { job.back.clone() } else { job.copies[..job.writing].to_vec() };
            self.tell_program(first, units, ProgramCause::Gc, TransactionId::NONE, &copies);
        }
    }

    fn tell_program(&mut self, first: Ppn, units: u32, cause: ProgramCause, id: TransactionId, copies: &[Copy]) {
        if let Some(durable) = &mut self.ftl.durable {
            durable.begin(first, units, cause);
        }
        for place in (first.0..first.0 + units).map(Ppn) {
            let owner = self.ftl.map.owner(place);
            let (record, source) = match owner {
                PADDING => (Record::default(), Source::Nothing),
                lpn => match copies.iter().find(|copy| copy.to == place) {
                    Some(copy) => self.copied(lpn, copy.from),
                    None => self.written(lpn, place, id),
                },
            };
            if let Some(durable) = &mut self.ftl.durable {
                durable.unit(place, record, source);
            }
        }
    }

    fn copied(&mut self, lpn: u32, from: Ppn) -> (Record, Source) {
        let kept = self.ftl.durable.as_ref().map_or(0, |durable| durable.sequence(from));
        let sequence = if self.options.mutant == Mutant::RenumberCopies { self.ftl.next_sequence() } else { kept };
        let sectors = self.ftl.durable.as_ref().map_or(0, |durable| durable.sectors(from));
        let record = self.ftl.record_or_loss(lpn, sequence, self.ftl.is_lost(from));
        (Record { sectors, ..record }, Source::Copy(from))
    }

    fn written(&mut self, lpn: u32, place: Ppn, first: TransactionId) -> (Record, Source) {
        let mut id = first;
        while self.transactions[id].place != place {
            id = self.transactions[id].next;
        }
        let Transaction { trimmed, spoiled, .. } = self.transactions[id];
        let own = self.own_page(lpn);
        let Some(durable) = &mut self.ftl.durable else { return (Record::default(), Source::Nothing) };
        let slot = *durable.slot(id);
        if trimmed && !slot.is_first {
            // The same version is elsewhere, with its contents.
            return (Record::default(), Source::Nothing);
        }
        let source = match slot.replaces.filter(|&old| durable.sequence(old) == slot.sequence) {
            _ if trimmed => Source::Nothing,
            _ if own.is_some() => durable.own(&own.unwrap_or_default()),
            Some(old) => Source::Copy(old),
            None => Source::Write { lpn: Lpn(lpn), sequence: slot.sequence },
        };
        (self.ftl.record_or_loss(lpn, slot.sequence, spoiled), source)
    }

    /// The bytes of a unit of the device's own; none where `lpn` is the host's.
    fn own_page(&self, lpn: u32) -> Option<Vec<u8>> {
        if !self.is_own(Lpn(lpn)) {
            return None;
        }
        self.checkpoint_page(lpn).or_else(|| self.durability.as_ref()?.journal.as_ref()?.page(lpn))
    }

    /// A unit is deallocated; returns the number of that.
    #[inline]
    pub(super) fn note_trimmed(&mut self, lpn: Lpn) -> u64 {
        if self.ftl.durable.is_none() && self.durability.is_none() {
            return 0;
        }
        let sequence = self.ftl.next_sequence();
        if let Some(durable) = &mut self.ftl.durable {
            durable.tell(FlashEvent::Trimmed { lpn, sequence });
        }
        sequence
    }
}
