//! Sector contents for verification: tracks the versions of sectors in the controller.

use super::{Origin, View};
use crate::cache::{Buffer, Pick};
use crate::ftl::mapping::Location;
use crate::host::requests::Part;
use crate::nand::media::{BLANK, LOST, Media};
use crate::sim::id::{Ppn, RequestId, TransactionId};
use crate::sim::request::{Operation, Request};
use crate::sim::table::Table;
use crate::work::Transaction;

/// Version of a sector that has not been copied to its slot yet.
const UNKNOWN: u32 = u32::MAX;

/// Part of a read: sectors of a mapping unit in flash or in a slot, and their position in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRead {
    /// Physical address of the mapping unit.
    pub ppn: Ppn,
    /// Request that reads.
    pub request: RequestId,
    /// Number of sectors of the request before this part.
    pub offset: u32,
    /// First sector, within the unit.
    pub first: u32,
    /// Sector after the last one, within the unit.
    pub end: u32,
}

/// Versions of the sectors in write slots and in replies to reads.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Number of sectors of a mapping unit.
    per_unit: usize,
    /// Versions of all sectors of a write's mapping unit, indexed by write.
    slots: Table<TransactionId, Vec<u32>>,
    /// Parts that a read transfers, indexed by read.
    reads: Table<TransactionId, Vec<PartRead>>,
    /// Versions that were read so far, indexed by request.
    replies: Table<RequestId, Vec<u32>>,
    /// Versions that completed reads returned, with the tags of the requests.
    done: Vec<(u64, Vec<u32>)>,
}

impl Contents {
    /// Creates the contents of an idle controller, for mapping units of `per_unit` sectors.
    pub fn new(per_unit: u32) -> Contents {
        Contents {
            per_unit: per_unit as usize,
            slots: Table::default(),
            reads: Table::default(),
            replies: Table::default(),
            done: Vec::new(),
        }
    }

    /// Creates the empty reply to a request.
    #[inline(never)]
    pub fn enter(&mut self, id: RequestId, request: &Request) {
        let sectors = if request.operation == Operation::Read { request.sectors } else { 0 };
        *self.replies.entry(id) = vec![BLANK; sectors as usize];
    }

    /// Completes the reply to a request.
    pub fn answer(&mut self, id: RequestId, tag: u64) {
        self.done.push((tag, std::mem::take(&mut self.replies[id])));
    }

    /// Removes and returns the replies to completed requests, with their tags.
    pub fn take_done(&mut self) -> Vec<(u64, Vec<u32>)> {
        std::mem::take(&mut self.done)
    }

    /// Returns the versions of a slot.
    pub fn slot(&self, write: TransactionId) -> &[u32] {
        &self.slots[write]
    }

    /// Fills the slot of a write: with its own sectors, and with all others that are already known. `before` is the map
    /// entry of its unit.
    pub fn fill_slot(&mut self, view: &View, write: TransactionId, before: Location, origin: Origin) {
        let Transaction { first, end, version, complete, .. } = view.transactions[write];
        let held = match (before, &view.ftl.media) {
            _ if !complete => self.fill_unknown(write),
            // Sectors that a covered update leaves out were never written, so they stay blank.
            (Location::Flash(ppn), Some(media)) => self.fill_from_flash(write, Some(media.read(ppn))),
            (Location::Slot(older), _) => self.fill_from_slot(write, older),
            _ => self.fill_from_flash(write, None),
        };
        held[usize::from(first)..usize::from(end)].fill(version);
        if let (Some(buffer), Origin::Buffer(Pick { entry, .. })) = (view.buffer, origin)
            && entry != Pick::PADDING
        {
            for sector in (0..held.len()).filter(|&sector| buffer.holds(entry, sector as u32)) {
                held[sector] = buffer.versions(entry)[sector];
            }
        }
    }

    /// Marks all sectors in the slot of a write as unknown.
    pub fn fill_unknown(&mut self, write: TransactionId) -> &mut [u32] {
        self.fill(write, vec![UNKNOWN; self.per_unit])
    }

    /// Fills the slot of a write with the versions `held` of its unit in flash. `None`: with blank sectors.
    pub fn fill_from_flash(&mut self, write: TransactionId, held: Option<&[u32]>) -> &mut [u32] {
        // Uncorrectable sectors become blank.
        let version = |&version: &u32| if version == LOST { BLANK } else { version };
        let held = held.map_or_else(|| vec![BLANK; self.per_unit], |held| held.iter().map(version).collect());
        self.fill(write, held)
    }

    /// Fills the slot of a write from the slot of an older write of its unit. Unknown and uncorrectable sectors of the
    /// older slot become blank.
    pub fn fill_from_slot(&mut self, write: TransactionId, older: TransactionId) -> &mut [u32] {
        let version = |&version: &u32| if version == UNKNOWN || version == LOST { BLANK } else { version };
        let held = self.slots[older].iter().map(version).collect();
        self.fill(write, held)
    }

    fn fill(&mut self, write: TransactionId, held: Vec<u32>) -> &mut [u32] {
        let slot = self.slots.entry(write);
        *slot = held;
        slot
    }

    /// Fills the unknown sectors of a partial write with the versions that it keeps. `None`: with blank sectors.
    pub fn complete(&mut self, write: TransactionId, kept: Option<&[u32]>) {
        let unknown = self.slots[write].iter_mut().enumerate().filter(|(_, version)| **version == UNKNOWN);
        unknown.for_each(|(sector, version)| *version = kept.map_or(BLANK, |kept| kept[sector]));
    }

    /// Fills the unknown sectors of a partial write from the slot of the older write of its unit.
    pub fn complete_from_slot(&mut self, write: TransactionId, older: TransactionId) {
        let kept = std::mem::take(&mut self.slots[older]);
        self.complete(write, Some(&kept));
        self.slots[older] = kept;
    }

    /// Starts a read without parts.
    pub fn begin_read(&mut self, read: TransactionId) {
        self.reads.entry(read).clear();
    }

    /// Adds a part to a read, except for the sectors that the buffer holds. `ppn` is the physical address of its
    /// unit.
    pub fn add_to_read(&mut self, view: &View, read: TransactionId, part: Part, ppn: Ppn) {
        let request = view.transactions[read].request();
        for Part { first, end, offset, .. } in missing(view.buffer, part) {
            self.reads[read].push(PartRead { ppn, request, offset, first, end });
        }
    }

    /// Removes and returns the parts of a read that completes.
    pub fn take_read(&mut self, read: TransactionId) -> Vec<PartRead> {
        self.reads.get_mut(read).map(std::mem::take).unwrap_or_default()
    }

    /// Copies the data of a flash read to the replies of its requests.
    pub fn reply_from_flash(&mut self, read: TransactionId, media: &Media) {
        for PartRead { ppn, request, offset, first, end } in self.take_read(read) {
            self.reply(request, offset, &media.read(ppn)[first as usize..end as usize]);
        }
    }

    /// Copies the sectors of a part that the buffer holds to the reply to a request.
    pub fn reply_from_buffer(&mut self, view: &View, request: RequestId, part: Part) {
        let Some(buffer) = view.buffer else { return };
        let Some(entry) = buffer.entry_of(part.lpn) else { return };
        for sector in (part.first..part.end).filter(|&sector| buffer.holds(entry, sector)) {
            let version = &buffer.versions(entry)[sector as usize..][..1];
            self.reply(request, part.offset + sector - part.first, version);
        }
    }

    /// Copies versions to the reply to a request, starting at sector `offset` of the reply.
    fn reply(&mut self, request: RequestId, offset: u32, versions: &[u32]) {
        self.replies[request][offset as usize..][..versions.len()].copy_from_slice(versions);
    }

    /// Copies a part of a slot to the reply to a request.
    pub fn reply_from_slot(&mut self, request: RequestId, write: TransactionId, part: Part) {
        let held = &self.slots[write][part.first as usize..part.end as usize];
        self.replies[request][part.offset as usize..][..held.len()].copy_from_slice(held);
    }
}

/// Returns the runs of a part's sectors that the buffer does not hold.
fn missing(buffer: Option<&Buffer>, part: Part) -> Vec<Part> {
    let entry = buffer.and_then(|buffer| Some((buffer, buffer.entry_of(part.lpn)?)));
    let Some((buffer, entry)) = entry else { return vec![part] };
    let mut runs: Vec<Part> = Vec::new();
    for sector in (part.first..part.end).filter(|&sector| !buffer.holds(entry, sector)) {
        match runs.last_mut() {
            Some(run) if run.end == sector => run.end += 1,
            _ => runs.push(Part { first: sector, end: sector + 1, offset: part.offset + sector - part.first, ..part }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::id::Lpn;
    use crate::sim::time::Time;

    const OLD: TransactionId = TransactionId(0);
    const NEW: TransactionId = TransactionId(1);
    const READ: RequestId = RequestId(0);

    fn reply(contents: &mut Contents, write: TransactionId) -> Vec<u32> {
        let request = Request {
            tag: 7,
            arrival: Time::ZERO,
            operation: Operation::Read,
            lba: 0,
            sectors: 4,
            stream: 0,
            namespace: 1,
            placement: 0,
            fua: false,
            high_priority: false,
        };
        contents.enter(READ, &request);
        contents.reply_from_slot(READ, write, Part { lpn: Lpn(0), first: 0, end: 4, offset: 0 });
        contents.answer(READ, 7);
        contents.take_done().pop().map(|(_, versions)| versions).unwrap()
    }

    #[test]
    fn a_partial_write_keeps_what_the_older_one_has() {
        let mut contents = Contents::new(4);
        contents.fill_from_flash(OLD, Some(&[1, 2, LOST, 4]))[0] = 10;
        contents.fill_unknown(NEW)[3] = 20;
        contents.complete_from_slot(NEW, OLD);
        assert_eq!(reply(&mut contents, NEW), [10, 2, BLANK, 20]);
        assert_eq!(contents.slot(OLD), [10, 2, BLANK, 4], "the contents of the older write must not change");
    }

    #[test]
    fn sectors_that_were_never_written_are_blank() {
        let mut contents = Contents::new(4);
        contents.fill_unknown(OLD)[1] = 5;
        contents.fill_from_slot(NEW, OLD)[2] = 6;
        assert_eq!(reply(&mut contents, NEW), [BLANK, 5, 6, BLANK]);
        contents.complete(OLD, None);
        assert_eq!(reply(&mut contents, OLD), [BLANK, 5, BLANK, BLANK]);
    }
}
