//! Flash log: emits events for every change of flash, and has the data for this that the map lacks, such as sequence
//! numbers of writes.

use std::collections::BTreeMap;

use super::account::Layout;
use super::flash::{FlashEvent, Keep, Outbox, Record, RecordKind, Source};
use super::memory::MemoryFlash;
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::mapping::{PADDING, TRANSLATION};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Ppn, TransactionId};
use crate::sim::memory::zeroed_words;
use crate::sim::table::Table;

/// Write with a write slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Sequence number of the write.
    pub sequence: u64,
    /// True if this is the first slot with this version, and no copy of it is in flash.
    pub is_first: bool,
    /// Physical address of the old copy, once the write is bound.
    pub replaces: Option<Ppn>,
}

/// Unit in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffered {
    /// Sequence number of its last write.
    pub sequence: u64,
    /// True if a write slot has this version.
    pub taken: bool,
}

/// The flash log of a durable device.
#[derive(Clone, Debug)]
pub struct FlashLog {
    outbox: Outbox,
    memory: Option<Box<MemoryFlash>>,
    /// Sequence number of each programmed unit. Indexed by physical address.
    sequences: Vec<u64>,
    /// Masks of the sectors that were ever written, by physical address. Only for units that are not whole.
    sectors: BTreeMap<u32, u64>,
    /// Number of each block's opening, or 0 since its erase.
    pub opened: Vec<u64>,
    /// Number of openings so far.
    pub openings: u64,
    /// Write slots, indexed by transaction.
    slots: Table<TransactionId, Slot>,
    /// Indexed by entry of the buffer.
    buffered: Vec<Buffered>,
    /// Version of the next write that takes a slot or an entry of the buffer.
    pub coming: Slot,
    units_per_block: u32,
    /// Number of mapping units of the host.
    host_units: u32,
    /// First mapping unit of the checkpoint.
    checkpoint: u32,
}

impl FlashLog {
    /// Creates an empty log.
    pub fn new(device: &DeviceConfig, keep: Keep) -> FlashLog {
        let units = device.total_blocks() as usize * device.units_per_block() as usize;
        FlashLog {
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
            host_units: device.logical_units() as u32,
            checkpoint: Layout::of(device).map_or(u32::MAX, |layout| layout.first),
        }
    }

    /// Continues with flash contents in memory of an earlier device.
    pub fn adopt(&mut self, flash: MemoryFlash) {
        self.memory = Some(Box::new(flash));
    }

    /// Returns the flash contents, if they are kept in memory.
    pub fn memory(&self) -> Option<&MemoryFlash> {
        self.memory.as_deref()
    }

    /// Removes and returns the flash contents, if they are kept in memory.
    pub fn take_memory(&mut self) -> Option<MemoryFlash> {
        self.memory.take().map(|flash| *flash)
    }

    /// Emits an event, or applies it to the flash contents in memory.
    pub fn emit(&mut self, event: FlashEvent) {
        if let FlashEvent::EraseEnded { block, .. } = event {
            self.opened[block.index()] = 0;
        }
        match &mut self.memory {
            Some(memory) => memory.apply(&event, &self.outbox.own),
            None => self.outbox.events.push(event),
        }
    }

    /// Appends the events since the last call to `into`.
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

    /// Returns the sequence number of the write at a physical address.
    pub fn sequence(&self, ppn: Ppn) -> u64 {
        self.sequences[ppn.index()]
    }

    /// Returns the mask of the sectors at a physical address that were ever written; 0 for all.
    pub fn sectors(&self, ppn: Ppn) -> u64 {
        self.sectors.get(&ppn.0).copied().unwrap_or_default()
    }

    /// Records the out-of-band record of a physical address.
    pub fn set_record(&mut self, ppn: Ppn, record: &Record) {
        self.sequences[ppn.index()] = record.sequence;
        if record.sectors != 0 {
            self.sectors.insert(ppn.0, record.sectors);
        } else if !self.sectors.is_empty() {
            self.sectors.remove(&ppn.0);
        }
    }

    /// Sets the version of the next write that takes a slot or an entry of the buffer.
    pub fn set_coming(&mut self, sequence: u64, is_first: bool) {
        self.coming = Slot { sequence, is_first, replaces: None };
    }

    /// Records the number of the opening of a block that was found.
    pub fn note_opened(&mut self, block: BlockId, opened: u64) {
        self.opened[block.index()] = opened;
        self.openings = self.openings.max(opened);
    }

    /// Returns the write slot of a transaction.
    pub fn slot(&mut self, id: TransactionId) -> &mut Slot {
        self.slots.entry(id)
    }

    /// Returns the state of an entry of the buffer.
    pub fn buffered(&mut self, entry: u32) -> &mut Buffered {
        &mut self.buffered[entry as usize]
    }

    /// Records that an entry of the buffer has taken the write that was accepted last.
    pub fn note_in_buffer(&mut self, entry: u32) {
        *self.buffered(entry) = Buffered { sequence: self.coming.sequence, taken: false };
    }

    /// Reports that a program starts.
    pub fn begin(&mut self, ppn: Ppn, units: u32, cause: ProgramCause) {
        let block = ppn.0 / self.units_per_block;
        // The first page of a block may be left out.
        if self.opened[block as usize] == 0 {
            self.openings += 1;
            self.opened[block as usize] = self.openings;
        }
        if self.memory.is_some() {
            self.outbox.own.clear();
        }
        self.emit(FlashEvent::ProgramBegun { ppn, units, cause });
    }

    /// Reports a unit of the program that has started.
    pub fn unit(&mut self, ppn: Ppn, record: Record, source: Source) {
        let opened = self.opened[(ppn.0 / self.units_per_block) as usize];
        self.set_record(ppn, &record);
        self.emit(FlashEvent::Unit { ppn, record: Record { opened, ..record }, source });
    }

    /// Stores bytes of the device itself, for a unit that is reported next.
    pub fn own(&mut self, bytes: &[u8]) -> Source {
        let start = self.outbox.own.len();
        self.outbox.own.extend_from_slice(bytes);
        Source::Own { start, len: bytes.len() }
    }

    /// Reports units of a program that are padding.
    pub fn pad(&mut self, places: std::ops::Range<u32>) {
        places.for_each(|ppn| self.unit(Ppn(ppn), Record::default(), Source::Nothing));
    }

    /// Returns the kind of a mapping unit.
    pub fn kind_of(&self, lpn: u32) -> RecordKind {
        match lpn {
            lpn if lpn < self.host_units => RecordKind::Data,
            lpn if lpn < self.checkpoint => RecordKind::Journal,
            _ => RecordKind::Checkpoint,
        }
    }

    /// Returns the record of a mapping unit, or of a part of the map.
    fn record_of(&self, ftl: &Ftl, owner: u32, sequence: u64) -> Record {
        if owner & TRANSLATION != 0 {
            return Record { kind: RecordKind::Map, lpn: owner & !TRANSLATION, sequence, ..Record::default() };
        }
        let sectors = if owner < self.host_units { ftl.partial.mask(owner) } else { 0 };
        Record { kind: self.kind_of(owner), lpn: owner, sequence, sectors, opened: 0 }
    }

    /// Returns the record of a unit, which is [`RecordKind::Lost`] if the unit is uncorrectable.
    pub fn record_or_loss(&self, ftl: &Ftl, lpn: u32, sequence: u64, is_lost: bool) -> Record {
        let record = self.record_of(ftl, lpn, sequence);
        let kind = if is_lost && record.kind == RecordKind::Data { RecordKind::Lost } else { record.kind };
        Record { kind, ..record }
    }

    /// Reports that a program has ended.
    pub fn end(&mut self, ppn: Ppn, units: u32) {
        self.emit(FlashEvent::ProgramEnded { ppn, units });
    }

    /// Reports that the program of a translation page starts, with a sequence number.
    pub fn begin_map(&mut self, page: u32, ppn: Ppn, units: u32, sequence: u64) {
        self.begin(ppn, units, ProgramCause::Map);
        let record = Record { kind: RecordKind::Map, lpn: page, sequence, ..Record::default() };
        (ppn.0..ppn.0 + units).for_each(|ppn| self.unit(Ppn(ppn), record, Source::Nothing));
    }

    /// Reports that the program of a block's summary begins.
    pub fn begin_summary(&mut self, ftl: &Ftl, ppn: Ppn) {
        let block = ftl.blocks.block_of(ppn);
        let bytes = self.summary_of(ftl, block);
        let group = ftl.blocks.size_of(block).program_units;
        self.begin(ppn, group, ProgramCause::Summary);
        let source = if bytes.is_empty() { Source::Nothing } else { self.own(&bytes) };
        self.unit(ppn, Record { kind: RecordKind::Summary, ..Record::default() }, source);
        self.pad(ppn.0 + 1..ppn.0 + group);
    }

    /// Returns the contents of a block's summary: a record for each data unit. Returns no bytes if they do not fit into
    /// a unit, so that recovery ignores the summary.
    fn summary_of(&self, ftl: &Ftl, block: BlockId) -> Vec<u8> {
        let (first, units) = (ftl.blocks.first_unit(block).0, ftl.blocks.size_of(block).data_units);
        let room = u64::from(ftl.shape().sectors_per_unit) * 512;
        if u64::from(units) * Record::BYTES as u64 > room {
            return Vec::new();
        }
        let mut bytes = Vec::with_capacity(units as usize * Record::BYTES);
        for ppn in (first..first + units).map(Ppn) {
            let owner = ftl.map.owner(ppn);
            let sequence = self.sequence(ppn);
            let record = match owner {
                PADDING => Record::default(),
                _ if sequence == 0 => Record::default(),
                owner => {
                    let record = self.record_or_loss(ftl, owner, sequence, ftl.is_lost(ppn));
                    Record { sectors: self.sectors(ppn), ..record }
                }
            };
            bytes.extend(Record { opened: self.opened[block.index()], ..record }.to_bytes());
        }
        bytes
    }

    /// Reports what preconditioning has left in a block: its erase count, valid units with new sequence numbers, and
    /// padding for invalid units, among the first `written` units. `own` returns the contents of units of the device
    /// itself.
    pub fn emit_block(&mut self, ftl: &mut Ftl, block: BlockId, written: u32, own: impl Fn(u32) -> Option<Vec<u8>>) {
        self.emit_written(ftl, block, written, own);
        // A bad block keeps its contents.
        if ftl.blocks.block(block).failed {
            self.emit(FlashEvent::FactoryBad { block });
        }
    }

    fn emit_written(&mut self, ftl: &mut Ftl, block: BlockId, written: u32, own: impl Fn(u32) -> Option<Vec<u8>>) {
        let (size, first) = (*ftl.blocks.size_of(block), ftl.blocks.first_unit(block).0);
        let erases = ftl.blocks.block(block).erases;
        if erases > 0 {
            self.emit(FlashEvent::EraseEnded { block, erases });
        }
        for ppn in (first..first + written).step_by(size.program_units as usize).map(Ppn) {
            self.emit_program(ftl, ppn, size.program_units, &own);
        }
        if ftl.shape().summary && written == size.data_units && written > 0 {
            self.emit_summary(ftl, Ppn(first + written));
        }
    }

    /// Reports the start and the end of the program of a block's summary.
    pub fn emit_summary(&mut self, ftl: &Ftl, ppn: Ppn) {
        self.begin_summary(ftl, ppn);
        self.end(ppn, ftl.blocks.size_of(ftl.blocks.block_of(ppn)).program_units);
    }

    fn emit_program(&mut self, ftl: &mut Ftl, first: Ppn, group: u32, own: &impl Fn(u32) -> Option<Vec<u8>>) {
        self.begin(first, group, ProgramCause::Host);
        for ppn in (first.0..first.0 + group).map(Ppn) {
            let owner = ftl.map.owner(ppn);
            let sequence = ftl.next_sequence();
            let record = match owner {
                _ if !ftl.blocks.is_valid(ppn) => Record::default(),
                owner => self.record_or_loss(ftl, owner, sequence, ftl.is_lost(ppn)),
            };
            let bytes = if record.kind == RecordKind::Journal { own(record.lpn) } else { None };
            let source = bytes.map_or(Source::Nothing, |bytes| self.own(&bytes));
            self.unit(ppn, record, source);
        }
        self.end(first, group);
    }
}
