//! What outlives a power cut: the contents of flash, and what is told of each change of it to whoever keeps them.
//!
//! A *durable* device tells of everything that changes flash, or is to come there, as [`FlashEvent`]s, in order. A
//! program that keeps payload applies them to its store before it answers the host; [`super::memory::MemoryFlash`]
//! does so in memory. A recovery reads a [`FlashImage`] and nothing else.

pub use crate::ftl::faults::Bad;
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, Ppn};

/// Who keeps the contents of flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The program that runs the device: it takes events with `Device::take_flash`.
    Outbox,
    /// The device itself, in memory: sector versions in the place of payload, for `Device::power_cut`.
    Memory,
}

/// What a programmed unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Nothing: the rest of a page or wordline.
    #[default]
    Padding,
    /// A mapping unit of the host.
    Data,
    /// Records of trims.
    Journal,
    /// A part of a checkpoint.
    Checkpoint,
    /// A part of a translation page.
    Map,
    /// The summary of its block.
    Summary,
    /// A mapping unit of the host that could not be read when it was moved or written over in part.
    Lost,
}

impl RecordKind {
    /// All kinds, by their numbers.
    pub const ALL: [RecordKind; 7] = [
        RecordKind::Padding,
        RecordKind::Data,
        RecordKind::Journal,
        RecordKind::Checkpoint,
        RecordKind::Map,
        RecordKind::Summary,
        RecordKind::Lost,
    ];
}

/// The out-of-band record of a programmed unit. Whoever keeps it adds a checksum over it and the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// What the unit is.
    pub kind: RecordKind,
    /// The logical unit; of a part of the map the number of its translation page; else 0.
    pub lpn: u32,
    /// The number of the accepted write. Copies keep it; a higher one is newer.
    pub sequence: u64,
    /// Which sectors were ever written, as the FTL's masks have them; 0 for all.
    pub sectors: u64,
    /// The running number of the opening of its block (as in YAFFS2, whose blocks have sequence numbers).
    pub opened: u64,
}

impl Record {
    /// Bytes of a record that is written down.
    pub const BYTES: usize = 29;

    /// The record as bytes, little-endian.
    pub fn to_bytes(&self) -> [u8; Record::BYTES] {
        let mut bytes = [0; Record::BYTES];
        bytes[0] = self.kind as u8;
        bytes[1..5].copy_from_slice(&self.lpn.to_le_bytes());
        bytes[5..13].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[13..21].copy_from_slice(&self.sectors.to_le_bytes());
        bytes[21..29].copy_from_slice(&self.opened.to_le_bytes());
        bytes
    }

    /// The record that [`Record::to_bytes`] wrote; none where the bytes are no record.
    pub fn from_bytes(bytes: &[u8]) -> Option<Record> {
        let number = |range: std::ops::Range<usize>| Some(u64::from_le_bytes(bytes.get(range)?.try_into().ok()?));
        Some(Record {
            kind: *RecordKind::ALL.get(usize::from(*bytes.first()?))?,
            lpn: u32::from_le_bytes(bytes.get(1..5)?.try_into().ok()?),
            sequence: number(5..13)?,
            sectors: number(13..21)?,
            opened: number(21..29)?,
        })
    }
}

/// Where the payload of a programmed unit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The unit as of an accepted write.
    Write {
        /// The logical unit.
        lpn: Lpn,
        /// The number of the write.
        sequence: u64,
    },
    /// What another place holds.
    Copy(Ppn),
    /// Bytes of the device itself: a range of [`Outbox::own`]. The rest of the unit is 0.
    Own {
        /// The first byte.
        start: usize,
        /// How many.
        len: usize,
    },
    /// Nobody will read it.
    Nothing,
}

/// What a unit holds before the sectors of an accepted write are put over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Zeros.
    Nothing,
    /// What a place holds now.
    Flash(Ppn),
    /// An accepted write with this number, which will be programmed by itself too.
    Pending(u64),
    /// An accepted write with this number, which will not.
    Merged(u64),
}

/// Something that changes flash, or will come there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashEvent {
    /// The device has accepted some sectors of a unit.
    Accepted {
        /// The tag of the request.
        tag: u64,
        /// The unit.
        lpn: Lpn,
        /// Sectors within the unit, from and to before.
        first: u32,
        /// See `first`.
        end: u32,
        /// Sectors of the request before these.
        offset: u32,
        /// They are zeros; the request has no payload.
        zeroes: bool,
        /// The number of the write.
        sequence: u64,
        /// What the unit's other sectors are.
        before: Before,
    },
    /// A unit reads as zeros from now on.
    Trimmed {
        /// The unit.
        lpn: Lpn,
        /// The number of the trim, in one row with writes.
        sequence: u64,
    },
    /// The records of all trims up to a number are in flash.
    Journalled {
        /// The number.
        sequence: u64,
    },
    /// A part of the checkpoint is at a place. The medium notes it, beside its erase counts.
    Anchored {
        /// Which part.
        part: u32,
        /// Where.
        ppn: Ppn,
    },
    /// A program begins; as many [`FlashEvent::Unit`] follow as it has units. Until it has ended, a power cut leaves
    /// all of them erased or all unreadable.
    ProgramBegun {
        /// The first unit.
        ppn: Ppn,
        /// How many.
        units: u32,
        /// What it is for.
        cause: ProgramCause,
    },
    /// A unit of the program that has just begun.
    Unit {
        /// Where.
        ppn: Ppn,
        /// Its out-of-band record.
        record: Record,
        /// Its payload.
        source: Source,
    },
    /// A program has ended.
    ProgramEnded {
        /// The first unit.
        ppn: Ppn,
        /// How many.
        units: u32,
    },
    /// A program has failed: its units are unreadable, and its block is bad from now on. What it holds beside is there
    /// as before.
    ProgramFailed {
        /// The first unit.
        ppn: Ppn,
        /// How many.
        units: u32,
    },
    /// An erase has failed: the block is bad from now on, and what it holds is nothing.
    EraseFailed {
        /// The block.
        block: BlockId,
    },
    /// A block was bad when the device was new.
    FactoryBad {
        /// The block.
        block: BlockId,
    },
    /// An erase begins. Until it has ended, a power cut leaves the block erased or unreadable.
    EraseBegun {
        /// The block.
        block: BlockId,
    },
    /// An erase has ended.
    EraseEnded {
        /// The block.
        block: BlockId,
        /// How often it has been erased by now. This count outlives the erase.
        erases: u32,
    },
}

/// What a device has told and nobody has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// In order.
    pub events: Vec<FlashEvent>,
    /// Bytes of the device itself that [`Source::Own`] points at.
    pub own: Vec<u8>,
}

impl Outbox {
    /// Forgets all; its room serves the next time.
    pub fn clear(&mut self) {
        self.events.clear();
        self.own.clear();
    }
}

/// What is found at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// Nothing has been programmed since the last erase.
    Erased,
    /// Its checksum does not hold.
    Torn,
    /// A unit with this record.
    Holds(Record),
}

/// What memory with power-loss protection held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// An accepted write, with all of its unit.
    Write {
        /// The unit.
        lpn: Lpn,
        /// The number of the write.
        sequence: u64,
    },
    /// A trim that may not be journalled.
    Trim {
        /// The unit.
        lpn: Lpn,
        /// The number of the trim.
        sequence: u64,
    },
}

/// The flash of a device whose power was cut. Errors are those of whoever keeps it.
pub trait FlashImage {
    /// How often a block has been erased. An erase counts from its begin, so one that the power cut hit does.
    fn erases(&mut self, block: BlockId) -> Result<u32, String>;
    /// Where a part of the checkpoint was told to be last.
    fn anchor(&mut self, part: u32) -> Result<Option<Ppn>, String>;
    /// Whether a block is bad, by what was told of it.
    fn bad(&mut self, block: BlockId) -> Result<Option<Bad>, String>;
    /// What a unit holds.
    fn unit(&mut self, ppn: Ppn) -> Result<UnitState, String>;
    /// Appends the payload of a unit that holds bytes of the device itself.
    fn own(&mut self, ppn: Ppn, into: &mut Vec<u8>) -> Result<(), String>;
    /// With power-loss protection: what memory held.
    fn saved(&mut self) -> Result<Vec<Saved>, String> {
        Ok(Vec::new())
    }
    /// For verification: the versions of a unit's sectors. Of what memory held, by the number of the write.
    fn versions(&mut self, _: Ppn) -> Option<Vec<u32>> {
        None
    }
    /// See [`FlashImage::versions`].
    fn saved_versions(&mut self, _: Lpn, _sequence: u64) -> Option<Vec<u32>> {
        None
    }
}

/// Where the newest version of a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: it reads as zeros.
    Nothing,
    /// In flash.
    Flash(Ppn),
    /// In the controller: it was accepted and is not programmed.
    Pending,
}
