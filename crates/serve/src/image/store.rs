//! Payload between the host and flash: applies the flash events of the device to the file, in their order.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;

use floatgate_core::flash::{Bad, Before, FlashEvent, Outbox, Place, Record, RecordKind, Source};
use floatgate_core::sim::id::{Lpn, Ppn};
use floatgate_core::sim::request::SECTOR;
use xxhash_rust::xxh3::xxh3_64;

use super::damage::Damage;
use super::flash::{Content, Flash, ReadError};
use super::saved::{Entry, SavedSlots};
use super::waiting::{Version, Waiting};
use crate::clock::Wall;
use crate::identity;
use crate::payload::{Extent, PayloadError};

/// Time between retries after a write to the file has failed.
const PATIENCE: Wall = Wall(50_000_000);

/// A write request that has just been submitted, with its payload.
#[derive(Debug)]
pub struct Arriving<'a> {
    /// Tag of the request.
    pub tag: u64,
    /// Payload. `None` writes zeros.
    pub data: Option<&'a [u8]>,
    /// Number of sectors.
    pub sectors: u32,
}

/// Remaining payload of a request that the device has accepted only in part.
#[derive(Debug, Default)]
enum Incoming {
    #[default]
    Nothing,
    Zeros,
    Bytes(Vec<u8>),
}

/// A unit of a program operation in progress.
#[derive(Debug)]
struct Captured {
    ppn: Ppn,
    record: Record,
    payload: Kept,
}

#[derive(Debug)]
enum Kept {
    Zeros,
    Bytes(Vec<u8>),
    Shared(Arc<[u8]>),
    Lost,
}

impl Kept {
    fn content(&self) -> Content<'_> {
        match self {
            Kept::Zeros => Content::Zeros,
            Kept::Bytes(bytes) => Content::Bytes(bytes),
            Kept::Shared(bytes) => Content::Bytes(bytes),
            Kept::Lost => Content::Lost,
        }
    }
}

/// Contents of an accept event.
struct Part {
    lpn: Lpn,
    /// Byte range within the mapping unit.
    range: Range<usize>,
    /// Offset of the range in the payload of the request.
    offset: usize,
    zeroes: bool,
    sequence: u64,
    before: Before,
}

/// Payload of a device that is stored in a flash image.
pub struct Store {
    pub(super) flash: Flash,
    pub(super) waiting: Waiting,
    pub(super) slots: SavedSlots,
    /// Number of units in memory that survive a power cut.
    pub(super) protected_units: usize,
    /// True if flushes wait for the machine's disk.
    pub(super) syncs: bool,
    /// Data of writes that have not been programmed, indexed by tag.
    incoming: BTreeMap<u64, Incoming>,
    /// Program operations in progress, by their first unit.
    begun: BTreeMap<u32, Vec<Captured>>,
    /// Key in `begun` of the program operation to which the next unit events belong.
    reported: u32,
    /// Slots to free once the collected trims are saved.
    freed: Vec<u32>,
    /// Slots to free once the data that replaced them are on the machine's disk.
    unsynced: Vec<u32>,
    breach: Option<String>,
    tried: Wall,
    unreadable: u64,
    /// Damage found by recoveries.
    pub(super) damage: Damage,
    /// True if recoveries continue although records cannot be read.
    pub(super) salvages: bool,
}

impl Store {
    /// Creates a store on a flash.
    pub(super) fn over(flash: Flash, protected_units: usize, syncs: bool) -> Store {
        Store {
            flash,
            waiting: Waiting::default(),
            slots: SavedSlots::default(),
            protected_units,
            syncs,
            incoming: BTreeMap::new(),
            begun: BTreeMap::new(),
            reported: 0,
            freed: Vec::new(),
            unsynced: Vec::new(),
            breach: None,
            tried: Wall(0),
            unreadable: 0,
            damage: Damage::default(),
            salvages: false,
        }
    }

    /// Returns the flash.
    pub fn flash(&self) -> &Flash {
        &self.flash
    }

    /// Returns the identity of the drive.
    pub fn identity(&self) -> u128 {
        identity::of_text(self.flash.identity())
    }

    fn unit(&self) -> usize {
        self.flash.layout().unit as usize
    }

    /// Applies the events of the device. `arriving` is the write that was just submitted. Returns the number of its
    /// sectors that the device has accepted.
    pub fn apply(&mut self, outbox: &Outbox, arriving: Option<&Arriving>) -> u32 {
        let mut accepted = 0;
        for event in &outbox.events {
            if let FlashEvent::Accepted { tag, first, end, .. } = event
                && arriving.is_some_and(|request| request.tag == *tag)
            {
                accepted += end - first;
            }
            self.event(*event, &outbox.own, arriving);
        }
        self.save_trims();
        accepted
    }

    /// Returns `true` if the contents of memory survive a power cut.
    pub fn protects(&self) -> bool {
        self.protected_units > 0
    }

    /// Returns the number of units that were accepted and are not in flash yet.
    pub fn units_waiting(&self) -> usize {
        self.waiting.count()
    }

    /// Applies one event. `own` holds the bytes that the device itself writes to flash.
    pub fn event(&mut self, event: FlashEvent, own: &[u8], arriving: Option<&Arriving>) {
        match event {
            FlashEvent::Accepted { tag, lpn, first, end, offset, zeroes, sequence, before } => {
                let bytes = |sectors: u32| sectors as usize * SECTOR as usize;
                let (range, offset) = (bytes(first)..bytes(end), bytes(offset));
                self.accept(tag, Part { lpn, range, offset, zeroes, sequence, before }, arriving);
            }
            FlashEvent::Trimmed { lpn, sequence } => self.trim(lpn, sequence),
            FlashEvent::Journalled { sequence } => {
                self.save_trims();
                let freed = self.slots.journalled(sequence);
                freed.into_iter().for_each(|number| self.release(number));
            }
            FlashEvent::ProgramBegun { ppn, units, .. } => {
                self.reported = ppn.0;
                self.begun.insert(ppn.0, Vec::with_capacity(units as usize));
            }
            FlashEvent::Unit { ppn, record, source } => {
                let payload = self.capture(source, own);
                if let Some(units) = self.begun.get_mut(&self.reported) {
                    units.push(Captured { ppn, record, payload });
                }
            }
            FlashEvent::ProgramEnded { ppn, .. } => self.program(ppn),
            FlashEvent::Anchored { part, ppn } => {
                let noted = self.flash.anchored(part, ppn);
                self.hold(noted);
            }
            FlashEvent::ProgramFailed { ppn, units } => {
                self.begun.remove(&ppn.0);
                let block = self.flash.layout().block_of(ppn);
                let failed = self.flash.fail(ppn, units).and_then(|()| self.flash.mark_bad(block, Bad::Grown));
                self.hold(failed);
            }
            FlashEvent::EraseFailed { block } => {
                let failed = self.flash.mark_bad(block, Bad::Grown);
                self.hold(failed);
            }
            FlashEvent::Retired { block } => {
                if self.syncs {
                    // Its data must be on the disk in other blocks before.
                    self.sync();
                }
                self.flash.count();
                let marked = self.flash.mark_bad(block, Bad::Retired);
                self.hold(marked);
            }
            FlashEvent::FactoryBad { block } => {
                let marked = self.flash.mark_bad(block, Bad::Factory);
                self.hold(marked);
            }
            FlashEvent::EraseBegun { block } => {
                let begun = self.flash.erase(block, self.syncs);
                self.hold(begun);
            }
            FlashEvent::EraseEnded { block, erases } => {
                let erased = self.flash.erased(block, erases);
                self.hold(erased);
            }
        }
    }

    /// Records a violation of the rules of flash by the device.
    fn hold(&mut self, kept: Result<(), String>) {
        if let Err(breach) = kept {
            self.breach.get_or_insert(breach);
        }
    }

    /// Returns the payload of a unit that is being programmed.
    fn capture(&mut self, source: Source, own: &[u8]) -> Kept {
        match source {
            Source::Write { lpn, sequence } => match self.waiting.get(lpn.0, sequence) {
                Some(version) => version.bytes.clone().map_or(Kept::Lost, Kept::Shared),
                None => {
                    self.hold(Err(format!("unit {} is programmed for the unknown write {sequence}", lpn.0)));
                    Kept::Lost
                }
            },
            Source::Copy(from) => {
                let mut bytes = vec![0; self.unit()];
                match self.flash.read(from, None, &mut bytes) {
                    Ok(true) => Kept::Bytes(bytes),
                    Ok(false) => Kept::Zeros,
                    Err(_) => {
                        self.unreadable += 1;
                        Kept::Lost
                    }
                }
            }
            Source::Own { start, len } => Kept::Bytes(own.get(start..start + len).unwrap_or_default().to_vec()),
            Source::Nothing => Kept::Zeros,
        }
    }

    /// Completes a program operation and writes its units to flash.
    fn program(&mut self, ppn: Ppn) {
        let Some(mut units) = self.begun.remove(&ppn.0) else {
            return self.hold(Err(format!("a program at unit {} ends without a start", ppn.0)));
        };
        units.sort_by_key(|unit| unit.ppn);
        if !units.iter().map(|unit| unit.ppn.0).eq((ppn.0..).take(units.len())) {
            self.hold(Err(format!("the units of the program at unit {} are not consecutive", ppn.0)));
        }
        let contents: Vec<(Record, Content)> = units.iter().map(|unit| (unit.record, unit.payload.content())).collect();
        let programmed = self.flash.program(ppn, &contents);
        self.hold(programmed);
        let mut replaced = Vec::new();
        let records = units.iter().map(|unit| unit.record);
        for record in records.filter(|record| matches!(record.kind, RecordKind::Data | RecordKind::Lost)) {
            self.waiting.forget(record.lpn, record.sequence, |number| replaced.push(number));
        }
        replaced.into_iter().for_each(|number| self.replaced(number));
    }

    /// Frees the slot of a saved entry whose data are in flash or in another slot.
    fn replaced(&mut self, number: u32) {
        if self.syncs {
            self.release(number);
        } else {
            self.slots.free(number);
            self.flash.free_by_erase(number);
        }
    }

    /// Frees the slot of a saved entry. If the machine's disk matters, waits with it until the data that replaced the
    /// entry are on the disk.
    pub(super) fn release(&mut self, number: u32) {
        if self.syncs {
            self.unsynced.push(number);
            self.limit_saved();
        } else {
            // A trim that is forgotten with this entry may also have dropped older ones.
            self.flash.write_freed();
            self.slots.free(number);
            self.flash.free(number);
        }
    }

    /// Keeps the saved entries to what the memory of the device can hold, because a recovery puts them there.
    fn limit_saved(&mut self) {
        if !self.unsynced.is_empty() && self.waiting.count() + self.unsynced.len() > self.protected_units {
            self.sync();
        }
    }

    /// Waits until all changes are on the machine's disk.
    fn sync(&mut self) {
        self.flash.sync();
        if self.flash.failure().is_none() && !self.unsynced.is_empty() {
            // The data that replaced the entries must be missed if they vanish.
            self.flash.count();
            for number in std::mem::take(&mut self.unsynced) {
                self.slots.free(number);
                self.flash.free(number);
            }
        }
    }

    /// Adds the version of a mapping unit that results from an accepted write.
    fn accept(&mut self, tag: u64, part: Part, arriving: Option<&Arriving>) {
        let incoming = self.incoming.get_mut(&tag).map(std::mem::take).unwrap_or_default();
        let data = match (arriving.filter(|request| request.tag == tag), &incoming) {
            (Some(request), _) => request.data,
            (None, Incoming::Bytes(bytes)) => Some(&bytes[..]),
            (None, _) => None,
        };
        let data = data.filter(|_| !part.zeroes).map(|data| &data[part.offset..part.offset + part.range.len()]);
        let merged = if let Before::Merged(older) = part.before { self.waiting.take(part.lpn.0, older) } else { None };
        let freed = merged.as_ref().and_then(|version| version.saved);
        let bytes = self.overlay(&part, merged, data);
        let saved = self.protects().then(|| {
            let number = self.slots.take();
            let entry = Entry::of_write(part.lpn, part.sequence, bytes.as_deref());
            self.flash.save(number, entry, bytes.as_deref());
            number
        });
        freed.into_iter().for_each(|number| self.replaced(number));
        self.waiting.add(part.lpn.0, Version { sequence: part.sequence, bytes, saved });
        self.limit_saved();
        if let Some(kept) = self.incoming.get_mut(&tag) {
            *kept = incoming;
        }
    }

    /// Returns the contents of a unit after a partial or full write. `None` if the remaining part cannot be read.
    fn overlay(&mut self, part: &Part, merged: Option<Version>, data: Option<&[u8]>) -> Option<Arc<[u8]>> {
        let unit = self.unit();
        if part.range == (0..unit) {
            return Some(data.map_or_else(|| Arc::from(vec![0; unit]), Arc::from));
        }
        let mut bytes = match part.before {
            Before::Nothing => Arc::from(vec![0; unit]),
            Before::Flash(ppn) => {
                let mut bytes = vec![0; unit];
                match self.flash.read(ppn, Some(part.lpn), &mut bytes) {
                    Ok(_) => Arc::from(bytes),
                    Err(_) => {
                        self.unreadable += 1;
                        return None;
                    }
                }
            }
            Before::Pending(older) => self.expect(part.lpn, older, self.waiting.get(part.lpn.0, older).cloned())?,
            Before::Merged(older) => self.expect(part.lpn, older, merged)?,
        };
        let ppn = &mut Arc::make_mut(&mut bytes)[part.range.clone()];
        match data {
            Some(data) => ppn.copy_from_slice(data),
            None => ppn.fill(0),
        }
        Some(bytes)
    }

    fn expect(&mut self, lpn: Lpn, sequence: u64, version: Option<Version>) -> Option<Arc<[u8]>> {
        if version.is_none() {
            self.hold(Err(format!("the overwritten write {sequence} of unit {} is unknown", lpn.0)));
        }
        version?.bytes
    }

    /// Trims a mapping unit.
    fn trim(&mut self, lpn: Lpn, sequence: u64) {
        if self.protects()
            && let Some(complete) = self.slots.trim(lpn, sequence)
        {
            self.save(complete);
        }
        let Store { waiting, freed, .. } = self;
        waiting.forget(lpn.0, sequence, |number| freed.push(number));
    }

    /// Saves the collected trims, and frees the slots that became unnecessary.
    fn save_trims(&mut self) {
        if let Some(complete) = self.slots.end_run() {
            self.save(complete);
        }
        std::mem::take(&mut self.freed).into_iter().for_each(|number| self.release(number));
    }

    fn save(&mut self, entry: Entry) {
        let Entry::Trims { count, sequence, .. } = entry else { return };
        let number = self.slots.take_for_trims(sequence + u64::from(count) - 1);
        self.flash.save(number, entry, None);
    }

    /// Keeps the payload of a request that the device has not accepted completely.
    pub fn keep(&mut self, arriving: &Arriving, accepted: u32) {
        if accepted >= arriving.sectors {
            return;
        }
        let data = arriving.data.map_or(Incoming::Zeros, |data| Incoming::Bytes(data.to_vec()));
        self.incoming.insert(arriving.tag, data);
    }

    /// Drops the payload that was kept for a request.
    pub fn settle(&mut self, tag: u64) {
        self.incoming.remove(&tag);
    }

    /// Completes a flush: from now on, units in flash are missed if they vanish from the file. If the store was opened
    /// with `syncs`, waits until the file is on the machine's disk.
    pub fn flushed(&mut self) {
        if self.syncs {
            self.sync();
        }
        self.flash.count();
    }

    /// Checks that the file is complete. After a failure, writes the missing changes again, at most every 50 ms.
    pub fn check(&mut self, now: Wall) -> Result<(), PayloadError> {
        if self.flash.failure().is_some() && now.since(self.tried) >= PATIENCE {
            self.tried = now;
            self.flash.retry();
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// Returns the time that this thread has spent on the file since the last call of this function.
    pub fn take_disk_time(&mut self) -> Wall {
        self.flash.take_disk_time()
    }

    /// Returns the error that host requests get while the file is incomplete. `None` if it is complete.
    pub fn failure(&self) -> Option<PayloadError> {
        self.flash.failure().map(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => PayloadError::NoRoom,
            _ => PayloadError::Failed,
        })
    }

    /// Returns the reason why the file is incomplete, as text.
    pub fn failure_text(&self) -> Option<String> {
        self.flash.failure().map(ToString::to_string)
    }

    /// Returns a description of the first violation of the rules of flash by the device.
    pub fn breach(&self) -> Option<&str> {
        self.breach.as_deref()
    }

    /// Describes the damage found in the file.
    pub fn damage(&self) -> Vec<String> {
        let unreadable =
            "units of the image are damaged, and reads of them fail with an I/O error; check its disk".to_owned();
        self.damage.warnings().chain((self.unreadable > 0).then_some(unreadable)).collect()
    }

    /// Returns the number of units that could not be read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns the number of bytes that the file takes on its disk.
    pub fn bytes_held(&self) -> u64 {
        self.flash.disk().allocated().unwrap_or_default()
    }

    /// Reads the payload at `offset`. `place_of` returns the location of a mapping unit.
    pub fn read(&mut self, offset: u64, into: &mut [u8], place_of: impl Fn(Lpn) -> Place) -> Result<(), PayloadError> {
        let unit = self.unit();
        let mut at = 0;
        while at < into.len() {
            let position = offset + at as u64;
            let (lpn, skipped) = ((position / unit as u64) as u32, (position % unit as u64) as usize);
            let length = (unit - skipped).min(into.len() - at);
            let piece = &mut into[at..at + length];
            if let Some(version) = self.waiting.newest(lpn) {
                let Some(bytes) = &version.bytes else {
                    self.unreadable += 1;
                    return Err(PayloadError::Damaged);
                };
                piece.copy_from_slice(&bytes[skipped..skipped + length]);
                at += length;
                continue;
            }
            match place_of(Lpn(lpn)) {
                Place::Nothing => piece.fill(0),
                Place::Flash(ppn) if length == unit => {
                    let max = (into.len() - at) / unit;
                    let run = self.run(lpn, ppn, max, &place_of);
                    self.fetch(ppn, lpn, &mut into[at..at + run * unit])?;
                    at += (run - 1) * unit;
                }
                Place::Flash(ppn) => {
                    let mut whole = vec![0; unit];
                    self.fetch(ppn, lpn, &mut whole)?;
                    into[at..at + length].copy_from_slice(&whole[skipped..skipped + length]);
                }
                Place::Pending => {
                    self.hold(Err(format!("unit {lpn} was accepted but is missing")));
                    return Err(PayloadError::Failed);
                }
            }
            at += length;
        }
        Ok(())
    }

    /// Returns the number of units from `lpn` on, at most `max`, that are consecutive both in flash and in the address
    /// space.
    fn run(&self, lpn: u32, ppn: Ppn, max: usize, place_of: &impl Fn(Lpn) -> Place) -> usize {
        let units = self.flash.layout().units;
        let max = max.min((units - ppn.0 % units) as usize);
        let follows = |index: &u32| {
            self.waiting.newest(lpn + index).is_none() && place_of(Lpn(lpn + index)) == Place::Flash(Ppn(ppn.0 + index))
        };
        1 + (1..max as u32).take_while(follows).count()
    }

    fn fetch(&mut self, ppn: Ppn, lpn: u32, into: &mut [u8]) -> Result<(), PayloadError> {
        self.flash.read(ppn, Some(Lpn(lpn)), into).map(drop).map_err(|error| {
            self.unreadable += 1;
            match error {
                ReadError::Io(_) => PayloadError::Failed,
                ReadError::Unreadable(_) => PayloadError::Damaged,
            }
        })
    }

    /// Returns the kind of payload at the start of a range of bytes, and the end of the extent within the range.
    pub fn extent(&self, range: Range<u64>, place_of: impl Fn(Lpn) -> Place) -> (Extent, u64) {
        let unit = self.unit() as u64;
        let held = |lpn: u64| self.waiting.newest(lpn as u32).is_some() || place_of(Lpn(lpn as u32)) != Place::Nothing;
        let first = range.start / unit;
        let what = held(first);
        let end = (first + 1..range.end.div_ceil(unit)).find(|lpn| held(*lpn) != what);
        let end = end.map_or(range.end, |lpn| (lpn * unit).min(range.end));
        (if what { Extent::Data } else { Extent::Hole }, end)
    }

    /// Cuts the power. Everything in memory is lost, and some program operations in progress leave their units
    /// unreadable.
    pub(super) fn cut(&mut self, seed: u64) {
        let is_whole = self.flash.failure().is_none();
        self.flash.cut();
        let mut hit = None;
        for (ppn, units) in std::mem::take(&mut self.begun) {
            let luck = xxh3_64(&[seed.to_le_bytes(), u64::from(ppn).to_le_bytes()].concat());
            // Operations in one block run one after the other, so only the first has changed cells.
            let block = Some(self.flash.layout().block_of(Ppn(ppn)));
            if is_whole && hit != block && luck.is_multiple_of(2) && !units.is_empty() {
                self.flash.tear(Ppn(ppn), units.len() as u32);
            }
            hit = block;
        }
        self.waiting.clear();
        self.incoming.clear();
        self.freed.clear();
        self.unsynced.clear();
        self.slots = SavedSlots::default();
    }
}
