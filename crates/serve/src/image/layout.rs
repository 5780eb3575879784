//! Layout of the file and format of its records. `docs/reference/image.md` describes both in words.

use floatgate_core::config::DeviceConfig;
use floatgate_core::config::checkpoint::Parts;
use floatgate_core::durability::flash::{Bad, Record};
use floatgate_core::sim::id::{BlockId, Ppn};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Version of the format. It is raised when older programs can no longer read new files.
pub const VERSION: u32 = 3;

/// Offset of the table of erase counts. The header takes the space before it, except the last grain.
pub const ROOM: u64 = 1 << 20;

/// Allocation granularity of files. Holes consist of whole grains.
pub const GRAIN: u64 = 4096;

/// Bytes of the record of a mapping unit, including the fields that the file adds.
pub const SLOT: usize = 64;

/// Bytes of a block's entry in the table of erase counts, and of a part's entry in the checkpoint table.
const ENTRY: u64 = 8;

/// Bytes of the head of a saved entry, before its payload.
pub const SAVED_HEAD: usize = 512;

/// Layout of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes per mapping unit.
    pub unit: u64,
    /// Mapping units per block.
    pub units: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of parts of a checkpoint, even if no checkpoint is kept.
    pub parts: u32,
    /// Bytes of a block's records, rounded up to whole grains.
    slots: u64,
    /// Bytes of a block in the file.
    stride: u64,
    /// Offset of the first block.
    first: u64,
}

impl Layout {
    /// Computes the layout for a device.
    pub fn of(config: &DeviceConfig) -> Layout {
        let (unit, units, blocks) = (config.unit_bytes(), config.units_per_block(), config.total_blocks());
        let grains = |bytes: u64| bytes.next_multiple_of(GRAIN);
        let slots = grains(u64::from(units) * SLOT as u64);
        let stride = slots + grains(u64::from(units) * unit);
        let parts = Parts::of(config).count();
        let tables = grains(u64::from(blocks) * ENTRY) + grains(u64::from(parts) * ENTRY);
        Layout { unit, units, blocks, parts, slots, stride, first: ROOM + tables }
    }

    /// Returns the offset of the state of the file: the last grain before the table.
    pub fn state(&self) -> u64 {
        ROOM - GRAIN
    }

    /// Returns the offset of a block's entry in the table.
    pub fn entry(&self, block: u32) -> u64 {
        ROOM + u64::from(block) * ENTRY
    }

    /// Returns the size of the table in bytes.
    pub fn table(&self) -> usize {
        (u64::from(self.blocks) * ENTRY) as usize
    }

    /// Returns the offset of the entry with the physical address of a part of the checkpoint, after the erase counts.
    pub fn anchor(&self, part: u32) -> u64 {
        self.entry(0) + (self.table() as u64).next_multiple_of(GRAIN) + u64::from(part) * ENTRY
    }

    /// Returns the offset and the size of a block.
    pub fn block(&self, block: u32) -> (u64, u64) {
        (self.first + u64::from(block) * self.stride, self.stride)
    }

    /// Returns the block that contains a physical address.
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(ppn.0 / self.units)
    }

    /// Returns the offset of the record at a physical address.
    pub fn slot(&self, ppn: u32) -> u64 {
        let (start, _) = self.block(ppn / self.units);
        start + u64::from(ppn % self.units) * SLOT as u64
    }

    /// Returns the offset of the payload at a physical address.
    pub fn payload(&self, ppn: u32) -> u64 {
        let (start, _) = self.block(ppn / self.units);
        start + self.slots + u64::from(ppn % self.units) * self.unit
    }

    /// Returns the end of the last block, which is the start of the saved entries.
    pub fn end(&self) -> u64 {
        self.block(self.blocks).0
    }

    /// Returns the offset of a slot for a saved entry.
    pub fn saved(&self, number: u32) -> u64 {
        self.end() + u64::from(number) * (SAVED_HEAD as u64 + self.unit)
    }

    /// Returns the number of slots for saved entries in a file of `size` bytes.
    pub fn places_saved(&self, size: u64) -> u32 {
        let places = size.saturating_sub(self.end()).div_ceil(SAVED_HEAD as u64 + self.unit);
        u32::try_from(places).unwrap_or(u32::MAX)
    }
}

/// State of a block, in addition to its erase count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// A good block.
    #[default]
    Good,
    /// An erase is in progress.
    Erasing,
    /// A program or erase operation of the block has failed.
    GrownBad,
    /// The block was bad when the device was new.
    FactoryBad,
    /// A program of the block has failed, and its data have been moved.
    Retired,
}

impl Mark {
    /// All states, in the order of their numbers.
    const ALL: [Mark; 5] = [Mark::Good, Mark::Erasing, Mark::GrownBad, Mark::FactoryBad, Mark::Retired];

    /// Returns the kind of bad block. `None` for a good block.
    pub fn bad(self) -> Option<Bad> {
        match self {
            Mark::Good | Mark::Erasing => None,
            Mark::GrownBad => Some(Bad::Grown),
            Mark::FactoryBad => Some(Bad::Factory),
            Mark::Retired => Some(Bad::Retired),
        }
    }
}

/// Encodes the entry of a block: its erase count and state.
pub fn entry(block: u32, erases: u32, mark: Mark) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&erases.to_le_bytes());
    bytes[4] = mark as u8;
    let digest = xxh3_64_with_seed(&bytes[..5], u64::from(block)).to_le_bytes();
    bytes[5..].copy_from_slice(&digest[..3]);
    bytes
}

/// Decodes an [`entry`]. `None` if it is damaged. All zeros stand for a block that was never erased.
pub fn read_entry(block: u32, bytes: [u8; 8]) -> Option<(u32, Mark)> {
    if bytes == [0; 8] {
        return Some((0, Mark::Good));
    }
    let erases = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mark = *Mark::ALL.get(usize::from(bytes[4]))?;
    (entry(block, erases, mark) == bytes).then_some((erases, mark))
}

/// Encodes the entry of a part of the checkpoint: its physical address plus one, and a digest.
pub fn anchor(part: u32, ppn: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&(ppn + 1).to_le_bytes());
    let digest = xxh3_64_with_seed(&bytes[..4], u64::from(part)).to_le_bytes();
    bytes[4..].copy_from_slice(&digest[..4]);
    bytes
}

/// Decodes an [`anchor`]. `None` if it is damaged or was never written.
pub fn read_anchor(part: u32, bytes: [u8; 8]) -> Option<u32> {
    let ppn = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).checked_sub(1)?;
    (ppn < u32::MAX - 1 && anchor(part, ppn) == bytes).then_some(ppn)
}

/// Record of a mapping unit in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Record of the device.
    pub record: Record,
    /// State of the payload.
    pub payload: Stored,
    /// Index of the unit within its program operation, and number of units of the operation.
    pub part: (u32, u32),
}

/// State of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The file contains no payload, and the unit reads as zeros.
    Zeros,
    /// The file contains bytes with this digest.
    Bytes(u64),
    /// The payload could not be read when the unit was moved to this address.
    Lost,
}

impl Slot {
    /// Encodes the record for a physical address.
    pub fn bytes(&self, ppn: u32) -> [u8; SLOT] {
        let mut bytes = [0; SLOT];
        bytes[..Record::BYTES].copy_from_slice(&self.record.to_bytes());
        let (kind, digest) = match self.payload {
            Stored::Zeros => (0, 0),
            Stored::Bytes(digest) => (1, digest),
            Stored::Lost => (2, 0),
        };
        bytes[32] = kind;
        bytes[36..40].copy_from_slice(&self.part.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.part.1.to_le_bytes());
        bytes[48..56].copy_from_slice(&digest.to_le_bytes());
        let check = xxh3_64_with_seed(&bytes[..56], u64::from(ppn)).to_le_bytes();
        bytes[56..].copy_from_slice(&check);
        bytes
    }

    /// Decodes a record. `None` if it is damaged or belongs to another address.
    pub fn parse(ppn: u32, bytes: &[u8]) -> Option<Slot> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if long(56)? != xxh3_64_with_seed(bytes.get(..56)?, u64::from(ppn)) {
            return None;
        }
        let payload = match bytes[32] {
            0 => Stored::Zeros,
            1 => Stored::Bytes(long(48)?),
            2 => Stored::Lost,
            _ => return None,
        };
        let part = (short(36)?, short(40)?);
        let record = Record::from_bytes(&bytes[..Record::BYTES])?;
        (part.0 < part.1).then_some(Slot { record, payload, part })
    }
}

/// State of a unit's record in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// The slot has not been programmed since the last erase of the block.
    Erased,
    /// The program failed, or the power was cut during the program: see [`TORN`].
    Torn,
    /// A record that matches its digest.
    Holds(Slot),
    /// The record is in none of the other states.
    Damaged,
}

/// The record of a unit whose program failed or was torn by a power cut.
pub const TORN: [u8; SLOT] = [0xff; SLOT];

impl SlotState {
    /// Decodes the record at `ppn`. Records never straddle pages of the kernel's page cache, so a kill leaves each
    /// record either whole or unwritten. A record in no other state is therefore damaged.
    pub fn parse(ppn: u32, bytes: &[u8]) -> SlotState {
        match Slot::parse(ppn, bytes) {
            Some(slot) => SlotState::Holds(slot),
            None if is_erased(bytes) => SlotState::Erased,
            None if bytes == TORN => SlotState::Torn,
            None => SlotState::Damaged,
        }
    }
}

/// Returns `true` if a record has not been written since its block was erased.
pub fn is_erased(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::config::load;
    use floatgate_core::durability::flash::RecordKind;

    #[test]
    fn blocks_are_contiguous() {
        // 128 blocks of 128 units of 4 KiB, computed by hand: 8 KiB of records and 512 KiB of payload.
        let config = load(
            "tiny",
            &["geometry={ channels=2, chips=1, dies=1, planes=1, blocks=64, pages=128, page_size=\"4KiB\" }"
                .to_owned()],
        );
        let layout = Layout::of(&config.unwrap());
        assert_eq!((layout.unit, layout.units, layout.blocks), (4096, 128, 128));
        // The checkpoint data of 128 units take 1,052 bytes: 3 blocks share a part, which makes 43 parts.
        assert_eq!((layout.parts, layout.anchor(2)), (43, (1 << 20) + 4096 + 16));
        let first = (1 << 20) + 2 * 4096;
        assert_eq!(layout.block(0), (first, 8192 + (512 << 10)));
        assert_eq!(layout.slot(129), first + 8192 + (512 << 10) + 64);
        assert_eq!(layout.payload(129), first + 8192 + (512 << 10) + 8192 + 4096);
        assert_eq!(layout.end(), first + 128 * (8192 + (512 << 10)));
        assert_eq!(layout.saved(2), layout.end() + 2 * (512 + 4096));
        assert_eq!([0, 1, 4608, 4609].map(|more| layout.places_saved(layout.end() + more)), [0, 1, 1, 2]);
        assert_eq!(layout.block_of(Ppn(129)), BlockId(1));
    }

    #[test]
    fn slots_round_trip_at_their_own_address_only() {
        let record = Record { kind: RecordKind::Data, lpn: 7, sequence: 1 << 40, sectors: u64::MAX, opened: 3 };
        for payload in [Stored::Zeros, Stored::Bytes(99), Stored::Lost] {
            let slot = Slot { record, payload, part: (3, 4) };
            let bytes = slot.bytes(17);
            assert_eq!(Slot::parse(17, &bytes), Some(slot));
            assert_eq!(Slot::parse(18, &bytes), None);
            for at in 0..SLOT {
                let mut wrong = bytes;
                wrong[at] ^= 4;
                assert_eq!(Slot::parse(17, &wrong), None, "byte {at}");
                assert_eq!(Slot::parse(17, &bytes[..at]), None, "{at} bytes");
            }
        }
    }

    #[test]
    fn entries_round_trip() {
        assert_eq!(read_entry(5, [0; 8]), Some((0, Mark::Good)));
        for mark in Mark::ALL {
            assert_eq!(read_entry(5, entry(5, 1000, mark)), Some((1000, mark)));
        }
        assert_eq!(read_entry(6, entry(5, 1000, Mark::Erasing)), None);
        assert_eq!(read_entry(5, [1; 8]), None);
    }

    #[test]
    fn anchors_round_trip() {
        assert_eq!(read_anchor(5, [0; 8]), None);
        assert_eq!(read_anchor(5, anchor(5, 0)), Some(0));
        assert_eq!(read_anchor(5, anchor(5, 1 << 30)), Some(1 << 30));
        assert_eq!(read_anchor(6, anchor(5, 1000)), None);
        assert_eq!(read_anchor(5, [0xff; 8]), None);
    }
}
