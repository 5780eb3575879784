//! What a durable device remembers beside its map: the numbers of writes, and what it has told of flash.

use std::collections::BTreeMap;

use super::Ftl;
use super::flash::{FlashEvent, Keep, Outbox, Record, RecordKind, Source};
use super::mapping::{PADDING, TRANSLATION};
use super::memory::MemoryFlash;
use crate::config::DeviceConfig;
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, Ppn, TransactionId};
use crate::sim::memory::zeroed_words;
use crate::sim::table::Table;

/// A write that has a controller slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// The number of the write.
    pub sequence: u64,
    /// No other slot has the same write: what it programs is a version of its own.
    pub is_first: bool,
    /// What it supersedes, once it is bound.
    pub replaces: Option<Ppn>,
}

/// A unit in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffered {
    /// The number of its last write.
    pub sequence: u64,
    /// A slot has taken that one.
    pub taken: bool,
}

/// What a durable device remembers.
#[derive(Clone, Debug)]
pub struct Durable {
    outbox: Outbox,
    memory: Option<Box<MemoryFlash>>,
    /// By place: the number of the write that it holds.
    sequences: Vec<u64>,
    /// By place: which sectors were ever written, of units that are not whole.
    sectors: BTreeMap<u32, u64>,
    /// By block: the running number of its opening.
    pub opened: Vec<u64>,
    /// Openings so far.
    pub openings: u64,
    /// By transaction.
    slots: Table<TransactionId, Slot>,
    /// By entry of the buffer.
    buffered: Vec<Buffered>,
    /// The write that takes a slot next.
    pub coming: Slot,
    units_per_block: u32,
}

impl Durable {
    /// Nothing is told yet.
    pub fn new(device: &DeviceConfig, keep: Keep) -> Durable {
        let units = device.total_blocks() as usize * device.units_per_block() as usize;
        Durable {
            outbox: Outbox::default(),
            memory: (keep == Keep::Memory).then(|| Box::new(MemoryFlash::new(device))),
            sequences: zeroed_words(units),
            sectors: BTreeMap::new(),
            opened: zeroed_words(device.total_blocks() as usize),
            openings: 0,
            slots: Table::default(),
            buffered: vec![Buffered::default(); device.buffer_units() as usize],
            coming: Slot::default(),
            units_per_block: device.units_per_block(),
        }
    }

    /// Goes on with flash that a device kept in memory before.
    pub fn adopt(&mut self, flash: MemoryFlash) {
        self.memory = Some(Box::new(flash));
    }

    /// Flash in memory, where it is kept there.
    pub fn memory(&self) -> Option<&MemoryFlash> {
        self.memory.as_deref()
    }

    /// See [`Durable::memory`].
    pub fn take_memory(&mut self) -> Option<MemoryFlash> {
        self.memory.take().map(|flash| *flash)
    }

    /// Tells of something.
    pub fn tell(&mut self, event: FlashEvent) {
        match &mut self.memory {
            Some(memory) => memory.apply(&event, &self.outbox.own),
            None => self.outbox.events.push(event),
        }
    }

    /// Moves what was told behind what is in `into`.
    pub fn take(&mut self, into: &mut Outbox) {
        let before = into.own.len();
        into.own.append(&mut self.outbox.own);
        for mut event in self.outbox.events.drain(..) {
            if let FlashEvent::Unit { source: Source::Own { start, .. }, .. } = &mut event {
                *start += before;
            }
            into.events.push(event);
        }
    }

    /// The number of the write that a place holds.
    pub fn sequence(&self, place: Ppn) -> u64 {
        self.sequences[place.index()]
    }

    /// Which sectors of what a place holds were ever written; 0 for all.
    pub fn sectors(&self, place: Ppn) -> u64 {
        self.sectors.get(&place.0).copied().unwrap_or_default()
    }

    /// Notes what a place holds.
    pub fn set_record(&mut self, place: Ppn, record: &Record) {
        self.sequences[place.index()] = record.sequence;
        if record.sectors != 0 {
            self.sectors.insert(place.0, record.sectors);
        } else if !self.sectors.is_empty() {
            self.sectors.remove(&place.0);
        }
    }

    /// A write takes a slot next, or an entry of the buffer.
    pub fn set_coming(&mut self, sequence: u64, is_first: bool) {
        self.coming = Slot { sequence, is_first, replaces: None };
    }

    /// A block was found, with the running number of its opening.
    pub fn note_opened(&mut self, block: BlockId, opened: u64) {
        self.opened[block.index()] = opened;
        self.openings = self.openings.max(opened);
    }

    /// The write of a transaction.
    pub fn slot(&mut self, id: TransactionId) -> &mut Slot {
        self.slots.entry(id)
    }

    /// The unit in an entry of the buffer.
    pub fn buffered(&mut self, entry: u32) -> &mut Buffered {
        &mut self.buffered[entry as usize]
    }

    /// An entry of the buffer has taken the write that was accepted last.
    pub fn note_in_buffer(&mut self, entry: u32) {
        *self.buffered(entry) = Buffered { sequence: self.coming.sequence, taken: false };
    }

    /// A program begins.
    pub fn begin(&mut self, place: Ppn, units: u32, cause: ProgramCause) {
        let block = place.0 / self.units_per_block;
        if place.0.is_multiple_of(self.units_per_block) {
            self.openings += 1;
            self.opened[block as usize] = self.openings;
        }
        if self.memory.is_some() {
            self.outbox.own.clear();
        }
        self.tell(FlashEvent::ProgramBegun { place, units, cause });
    }

    /// A unit of the program that has begun.
    pub fn unit(&mut self, place: Ppn, record: Record, source: Source) {
        let opened = self.opened[(place.0 / self.units_per_block) as usize];
        self.set_record(place, &record);
        self.tell(FlashEvent::Unit { place, record: Record { opened, ..record }, source });
    }

    /// Bytes of the device itself, for a unit that is told of next.
    pub fn own(&mut self, bytes: &[u8]) -> Source {
        let start = self.outbox.own.len();
        self.outbox.own.extend_from_slice(bytes);
        Source::Own { start, len: bytes.len() }
    }

    /// A program of nothing but padding behind its first unit.
    pub fn pad(&mut self, places: std::ops::Range<u32>) {
        places.for_each(|place| self.unit(Ppn(place), Record::default(), Source::Nothing));
    }
}

impl Ftl {
    /// The number of the next write or trim.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The record of a place: of a logical unit, or of a part of the map.
    pub fn record_of(&self, owner: u32, sequence: u64) -> Record {
        if owner & TRANSLATION != 0 {
            return Record { kind: RecordKind::Map, lpn: owner & !TRANSLATION, sequence, ..Record::default() };
        }
        let lpn = owner;
        let kind = self.kind_of(lpn);
        let sectors = if lpn < self.host_units { self.partial.mask(lpn) } else { 0 };
        Record { kind, lpn, sequence, sectors, opened: 0 }
    }

    /// A program has ended.
    #[inline]
    pub fn told_end(&mut self, place: Ppn, units: u32) {
        if let Some(durable) = &mut self.durable {
            durable.tell(FlashEvent::ProgramEnded { place, units });
        }
    }

    /// The record of what takes the place of a unit that cannot be read, or of one that can.
    pub fn record_or_loss(&self, lpn: u32, sequence: u64, is_lost: bool) -> Record {
        let record = self.record_of(lpn, sequence);
        let kind = if is_lost && record.kind == RecordKind::Data { RecordKind::Lost } else { record.kind };
        Record { kind, ..record }
    }

    /// A program of a part of the map begins.
    pub fn told_map(&mut self, page: u32, place: Ppn, units: u32) {
        if self.durable.is_none() {
            return;
        }
        let sequence = self.next_sequence();
        let Some(durable) = &mut self.durable else { return };
        durable.begin(place, units, ProgramCause::Map);
        let record = Record { kind: RecordKind::Map, lpn: page, sequence, ..Record::default() };
        (place.0..place.0 + units).for_each(|place| durable.unit(Ppn(place), record, Source::Nothing));
    }

    /// A program of a block's summary begins.
    pub fn told_summary(&mut self, place: Ppn) {
        if self.durable.is_none() {
            return;
        }
        let bytes = self.summary_of(self.blocks.block_of(place));
        let group = self.shape.units_per_program;
        let Some(durable) = &mut self.durable else { return };
        durable.begin(place, group, ProgramCause::Summary);
        let source = if bytes.is_empty() { Source::Nothing } else { durable.own(&bytes) };
        durable.unit(place, Record { kind: RecordKind::Summary, ..Record::default() }, source);
        durable.pad(place.0 + 1..place.0 + group);
    }

    /// What a block's summary holds: a record for each unit of data. Nothing where that does not fit a unit: it is as
    /// if there was no summary then.
    fn summary_of(&self, block: BlockId) -> Vec<u8> {
        let Some(durable) = &self.durable else { return Vec::new() };
        let (first, units) = (self.blocks.first_unit(block).0, self.blocks.data_units());
        let room = u64::from(self.shape.sectors_per_unit) * 512;
        if u64::from(units) * Record::BYTES as u64 > room {
            return Vec::new();
        }
        let mut bytes = Vec::with_capacity(units as usize * Record::BYTES);
        for place in (first..first + units).map(Ppn) {
            let (owner, sequence) = (self.map.owner(place), durable.sequence(place));
            let record = match owner {
                PADDING => Record::default(),
                _ if sequence == 0 => Record::default(),
                owner => {
                    let record = self.record_or_loss(owner, sequence, self.is_lost(place));
                    Record { sectors: durable.sectors(place), ..record }
                }
            };
            bytes.extend(Record { opened: durable.opened[block.index()], ..record }.to_bytes());
        }
        bytes
    }

    /// Tells what preconditioning has left in a block: how often it was erased, valid units with new numbers, and
    /// nothing of what is stale. `own` are the bytes of the device's own units.
    pub fn tell_block(&mut self, block: BlockId, own: impl Fn(u32) -> Option<Vec<u8>>) {
        self.tell_written(block, own);
        // What it holds is there all the same.
        if let (true, Some(durable)) = (self.blocks.block(block).failed, &mut self.durable) {
            durable.tell(FlashEvent::FactoryBad { block });
        }
    }

    fn tell_written(&mut self, block: BlockId, own: impl Fn(u32) -> Option<Vec<u8>>) {
        let group = self.shape.units_per_program;
        let (first, written) = (self.blocks.first_unit(block).0, self.blocks.written_of(block));
        let erases = self.blocks.block(block).erases;
        if let Some(durable) = self.durable.as_mut().filter(|_| erases > 0) {
            durable.tell(FlashEvent::EraseEnded { block, erases });
        }
        for place in (first..first + written).step_by(group as usize).map(Ppn) {
            self.tell_left(place, group, &own);
        }
        if self.shape.summary && written == self.blocks.data_units() && written > 0 {
            self.told_summary(Ppn(first + written));
            self.told_end(Ppn(first + written), group);
        }
    }

    fn tell_left(&mut self, first: Ppn, group: u32, own: &impl Fn(u32) -> Option<Vec<u8>>) {
        if let Some(durable) = &mut self.durable {
            durable.begin(first, group, ProgramCause::Host);
        }
        for place in (first.0..first.0 + group).map(Ppn) {
            let owner = self.map.owner(place);
            let sequence = self.next_sequence();
            let record = match owner {
                _ if !self.blocks.is_valid(place) => Record::default(),
                owner => self.record_or_loss(owner, sequence, self.is_lost(place)),
            };
            if let Some(durable) = &mut self.durable {
                let bytes = if record.kind == RecordKind::Journal { own(record.lpn) } else { None };
                let source = bytes.map_or(Source::Nothing, |bytes| durable.own(&bytes));
                durable.unit(place, record, source);
            }
        }
        self.told_end(first, group);
    }

    /// The place of the newest version of a unit in flash, if nothing newer is on its way.
    pub fn place_in_flash(&self, lpn: Lpn) -> Option<Ppn> {
        match self.map.get(lpn) {
            super::mapping::Location::Flash(place) => Some(place),
            _ => None,
        }
    }
}
