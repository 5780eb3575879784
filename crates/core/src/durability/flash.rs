//! Flash contents across power cuts: events for every change, and the interface to the storage of the contents.
//!
//! A *durable* device emits a [`FlashEvent`] for every change of flash, and for accepted data that is to be programmed.
//! A program that stores payload applies the events, in order, before it reports completions to the host.
//! [`super::memory::MemoryFlash`] applies them in memory. A recovery reads only a [`FlashImage`].

pub use crate::ftl::faults::Bad;
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, Ppn};

/// Storage of the flash contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The program that runs the device. It takes the events with `Device::take_flash`.
    Outbox,
    /// The device itself, in memory. It stores sector versions instead of payload, for `Device::power_cut`.
    Memory,
}

/// Kind of a programmed unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Padding: the rest of a page or wordline.
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
    /// A mapping unit of the host that was uncorrectable when it was moved or partly overwritten.
    Lost,
}

impl RecordKind {
    /// All kinds, in the order of their numbers.
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

/// Out-of-band record of a programmed unit. The storage adds a checksum over the record and the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Kind of the unit.
    pub kind: RecordKind,
    /// Mapping unit; for a part of the map, the number of its translation page; otherwise 0.
    pub lpn: u32,
    /// Sequence number of the accepted write. Copies keep it, and the highest one is the newest.
    pub sequence: u64,
    /// Mask of the sectors that were ever written, as in the FTL; 0 for all.
    pub sectors: u64,
    /// Number of the opening of its block (as in YAFFS2, whose blocks have sequence numbers).
    pub opened: u64,
}

impl Record {
    /// Size of a stored record in bytes.
    pub const BYTES: usize = 29;

    /// Returns the record as bytes, little-endian.
    pub fn to_bytes(&self) -> [u8; Record::BYTES] {
        let mut bytes = [0; Record::BYTES];
        bytes[0] = self.kind as u8;
        bytes[1..5].copy_from_slice(&self.lpn.to_le_bytes());
        bytes[5..13].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[13..21].copy_from_slice(&self.sectors.to_le_bytes());
        bytes[21..29].copy_from_slice(&self.opened.to_le_bytes());
        bytes
    }

    /// Parses the bytes of [`Record::to_bytes`]. Returns `None` if they are not a record.
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

/// Source of the payload of a programmed unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Contents of the unit as of an accepted write.
    Write {
        /// Mapping unit.
        lpn: Lpn,
        /// Sequence number of the write.
        sequence: u64,
    },
    /// Contents of another physical address.
    Copy(Ppn),
    /// Bytes of the device itself: a range of [`Outbox::own`]. The rest of the unit is 0.
    Own {
        /// Offset of the first byte.
        start: usize,
        /// Number of bytes.
        len: usize,
    },
    /// Arbitrary contents, because the unit will not be read.
    Nothing,
}

/// Contents of a unit that the sectors of an accepted write are applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Zeros.
    Nothing,
    /// Contents of a physical address now.
    Flash(Ppn),
    /// An accepted write with this sequence number, which will be programmed separately too.
    Pending(u64),
    /// An accepted write with this sequence number, which will not be programmed.
    Merged(u64),
}

/// A change of flash, or of accepted data that is to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashEvent {
    /// The device has accepted sectors of a unit.
    Accepted {
        /// Tag of the request.
        tag: u64,
        /// Mapping unit.
        lpn: Lpn,
        /// First sector within the unit.
        first: u32,
        /// End of the sectors within the unit, exclusive.
        end: u32,
        /// Number of sectors of the request before these.
        offset: u32,
        /// True if the sectors are zeros, and the request has no payload.
        zeroes: bool,
        /// Sequence number of the write.
        sequence: u64,
        /// Contents of the other sectors of the unit.
        before: Before,
    },
    /// A unit reads as zeros from now on.
    Trimmed {
        /// Mapping unit.
        lpn: Lpn,
        /// Sequence number of the trim, from the counter of writes.
        sequence: u64,
    },
    /// The records of all trims up to a sequence number are in flash.
    Journalled {
        /// Sequence number.
        sequence: u64,
    },
    /// A part of the checkpoint is at a physical address. The storage keeps this address with its erase counts.
    Anchored {
        /// Number of the part.
        part: u32,
        /// Physical address.
        ppn: Ppn,
    },
    /// A program starts. [`FlashEvent::Unit`] follows for each of its units. Before its end, a power cut leaves all
    /// units erased or all unreadable.
    ProgramBegun {
        /// First physical address.
        ppn: Ppn,
        /// Number of units.
        units: u32,
        /// Cause of the program.
        cause: ProgramCause,
    },
    /// A unit of the program that has just started.
    Unit {
        /// Physical address.
        ppn: Ppn,
        /// Out-of-band record.
        record: Record,
        /// Source of the payload.
        source: Source,
    },
    /// A program has ended.
    ProgramEnded {
        /// First physical address.
        ppn: Ppn,
        /// Number of units.
        units: u32,
    },
    /// A program has failed: its units are unreadable, and its block is bad from now on. The other units of the block
    /// are unchanged.
    ProgramFailed {
        /// First physical address.
        ppn: Ppn,
        /// Number of units.
        units: u32,
    },
    /// An erase has failed: the block is bad from now on, and its contents are lost.
    EraseFailed {
        /// The block.
        block: BlockId,
    },
    /// The data of a failed block of a mapping scheme that merges blocks, or of a superblock that has failed, are
    /// elsewhere: a recovery ignores its contents from now on.
    Retired {
        /// The block.
        block: BlockId,
    },
    /// A block was bad when the device was new.
    FactoryBad {
        /// The block.
        block: BlockId,
    },
    /// An erase starts. Before its end, a power cut leaves the block erased or unreadable.
    EraseBegun {
        /// The block.
        block: BlockId,
    },
    /// An erase has ended.
    EraseEnded {
        /// The block.
        block: BlockId,
        /// Erase count after this erase. It is kept when blocks are erased.
        erases: u32,
    },
}

/// Receiver of events, one by one, with the bytes that [`Source::Own`] refers to.
pub type Reported<'a> = &'a mut dyn FnMut(&FlashEvent, &[u8]);

/// Events that a device has emitted and that were not taken yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// Events in order.
    pub events: Vec<FlashEvent>,
    /// Bytes of the device itself that [`Source::Own`] refers to.
    pub own: Vec<u8>,
}

impl Outbox {
    /// Removes all events, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.own.clear();
    }
}

/// State of a physical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// The unit has not been programmed since the last erase.
    Erased,
    /// The checksum of the unit is wrong.
    Torn,
    /// The unit has this record.
    Holds(Record),
}

/// Contents of memory with power-loss protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// An accepted write, with its whole unit.
    Write {
        /// Mapping unit.
        lpn: Lpn,
        /// Sequence number of the write.
        sequence: u64,
    },
    /// A trim whose record may not be in flash.
    Trim {
        /// Mapping unit.
        lpn: Lpn,
        /// Sequence number of the trim.
        sequence: u64,
    },
}

/// Flash contents of a device whose power was cut. Errors are those of the storage.
pub trait FlashImage {
    /// Returns the erase count of a block. An erase counts from its start, even if the power cut interrupted it.
    fn erases(&mut self, block: BlockId) -> Result<u32, String>;
    /// Returns the last reported physical address of a part of the checkpoint.
    fn anchor(&mut self, part: u32) -> Result<Option<Ppn>, String>;
    /// Returns the kind of a bad block, or `None` if the block is good.
    fn bad(&mut self, block: BlockId) -> Result<Option<Bad>, String>;
    /// Returns the state of a physical address.
    fn unit(&mut self, ppn: Ppn) -> Result<UnitState, String>;
    /// Appends the payload of a unit that holds bytes of the device itself.
    fn own(&mut self, ppn: Ppn, into: &mut Vec<u8>) -> Result<(), String>;
    /// Returns the contents of memory with power-loss protection.
    fn saved(&mut self) -> Result<Vec<Saved>, String> {
        Ok(Vec::new())
    }
    /// Returns the versions of a unit's sectors, for verification.
    fn versions(&mut self, _: Ppn) -> Option<Vec<u32>> {
        None
    }
    /// Returns the versions of the sectors of a write in protected memory, by its sequence number.
    fn saved_versions(&mut self, _: Lpn, _sequence: u64) -> Option<Vec<u32>> {
        None
    }
}

/// Location of the newest version of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// No location: the unit reads as zeros.
    Nothing,
    /// In flash.
    Flash(Ppn),
    /// The controller: the version was accepted and is not programmed.
    Pending,
}
