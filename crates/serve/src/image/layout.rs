//! Where everything is in the file, and how it is written down. `docs/reference/image.md` says the same in words.

use floatgate_core::config::DeviceConfig;
use floatgate_core::config::checkpoint::Parts;
use floatgate_core::durability::flash::{Bad, Record};
use floatgate_core::sim::id::{BlockId, Ppn};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The form of the file, raised when older programs cannot read it any more.
pub const VERSION: u32 = 2;

/// Where the table of erase counts begins. The header has the room before it but its last grain.
pub const ROOM: u64 = 1 << 20;

/// Files take room in pieces of this size, and holes are made of whole ones.
pub const GRAIN: u64 = 4096;

/// Bytes of the record of a unit, with what the file adds to it.
pub const SLOT: usize = 64;

/// Bytes of a block's entry in the table of erase counts, and of a part's in that of the checkpoint.
const ENTRY: u64 = 8;

/// Bytes before the payload of what is saved.
pub const SAVED_HEAD: usize = 512;

/// Where everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a unit.
    pub unit: u64,
    /// Units of a block.
    pub units: u32,
    /// Blocks.
    pub blocks: u32,
    /// Parts of a checkpoint, whether or not one is kept.
    pub parts: u32,
    /// Bytes of a block's records, in whole grains.
    slots: u64,
    /// Bytes of a block.
    stride: u64,
    /// Where the first block begins.
    first: u64,
}

impl Layout {
    /// Of a device.
    pub fn of(config: &DeviceConfig) -> Layout {
        let (unit, units, blocks) = (config.unit_bytes(), config.units_per_block(), config.total_blocks());
        let grains = |bytes: u64| bytes.next_multiple_of(GRAIN);
        let slots = grains(u64::from(units) * SLOT as u64);
        let stride = slots + grains(u64::from(units) * unit);
        let parts = Parts::of(config).count();
        let tables = grains(u64::from(blocks) * ENTRY) + grains(u64::from(parts) * ENTRY);
        Layout { unit, units, blocks, parts, slots, stride, first: ROOM + tables }
    }

    /// What the file says of its state: the last grain before the table.
    pub fn state(&self) -> u64 {
        ROOM - GRAIN
    }

    /// The entry of a block in the table.
    pub fn entry(&self, block: u32) -> u64 {
        ROOM + u64::from(block) * ENTRY
    }

    /// Bytes of the table.
    pub fn table(&self) -> usize {
        (u64::from(self.blocks) * ENTRY) as usize
    }

    /// Where it is written down where a part of the checkpoint is: behind the erase counts.
    pub fn anchor(&self, part: u32) -> u64 {
        self.entry(0) + (self.table() as u64).next_multiple_of(GRAIN) + u64::from(part) * ENTRY
    }

    /// A block: where it begins, and its bytes.
    pub fn block(&self, block: u32) -> (u64, u64) {
        (self.first + u64::from(block) * self.stride, self.stride)
    }

    /// The block of a unit.
    pub fn block_of(&self, place: Ppn) -> BlockId {
        BlockId(place.0 / self.units)
    }

    /// The record of a unit.
    pub fn slot(&self, place: u32) -> u64 {
        let (start, _) = self.block(place / self.units);
        start + u64::from(place % self.units) * SLOT as u64
    }

    /// The payload of a unit.
    pub fn payload(&self, place: u32) -> u64 {
        let (start, _) = self.block(place / self.units);
        start + self.slots + u64::from(place % self.units) * self.unit
    }

    /// Where the last block ends, and what is saved begins.
    pub fn end(&self) -> u64 {
        self.block(self.blocks).0
    }

    /// A place for what is saved.
    pub fn saved(&self, number: u32) -> u64 {
        self.end() + u64::from(number) * (SAVED_HEAD as u64 + self.unit)
    }

    /// Places for what is saved, in a file of so many bytes.
    pub fn places_saved(&self, size: u64) -> u32 {
        let places = size.saturating_sub(self.end()).div_ceil(SAVED_HEAD as u64 + self.unit);
        u32::try_from(places).unwrap_or(u32::MAX)
    }
}

/// What a block is, beside how often it was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// A good block.
    #[default]
    Good,
    /// It is just being erased.
    Erasing,
    /// A program or an erase of it has failed.
    GrownBad,
    /// It was bad when the device was new.
    FactoryBad,
}

impl Mark {
    /// All marks, by their numbers.
    const ALL: [Mark; 4] = [Mark::Good, Mark::Erasing, Mark::GrownBad, Mark::FactoryBad];

    /// Whether the block is bad.
    pub fn bad(self) -> Option<Bad> {
        match self {
            Mark::Good | Mark::Erasing => None,
            Mark::GrownBad => Some(Bad::Grown),
            Mark::FactoryBad => Some(Bad::Factory),
        }
    }
}

/// The entry of a block: how often it was erased, and what it is.
pub fn entry(block: u32, erases: u32, mark: Mark) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&erases.to_le_bytes());
    bytes[4] = mark as u8;
    let digest = xxh3_64_with_seed(&bytes[..5], u64::from(block)).to_le_bytes();
    bytes[5..].copy_from_slice(&digest[..3]);
    bytes
}

/// What [`entry`] wrote; none where it is damaged. All zeros is a block that was never erased.
pub fn read_entry(block: u32, bytes: [u8; 8]) -> Option<(u32, Mark)> {
    if bytes == [0; 8] {
        return Some((0, Mark::Good));
    }
    let erases = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mark = *Mark::ALL.get(usize::from(bytes[4]))?;
    (entry(block, erases, mark) == bytes).then_some((erases, mark))
}

/// The entry of a part of the checkpoint: its place plus one, and the digest of that.
pub fn anchor(part: u32, place: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&(place + 1).to_le_bytes());
    let digest = xxh3_64_with_seed(&bytes[..4], u64::from(part)).to_le_bytes();
    bytes[4..].copy_from_slice(&digest[..4]);
    bytes
}

/// What [`anchor`] wrote; none where it is damaged, or was never written.
pub fn read_anchor(part: u32, bytes: [u8; 8]) -> Option<u32> {
    let place = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).checked_sub(1)?;
    (place < u32::MAX - 1 && anchor(part, place) == bytes).then_some(place)
}

/// What the file says of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The record of the device.
    pub record: Record,
    /// Its payload.
    pub payload: Stored,
    /// Which unit of its program it is, and how many there are.
    pub part: (u32, u32),
}

/// What is known of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// None is in the file: it reads as zeros.
    Zeros,
    /// Bytes with this digest.
    Bytes(u64),
    /// It could not be read when it was moved here.
    Lost,
}

impl Slot {
    /// The bytes of the slot of a unit.
    pub fn bytes(&self, place: u32) -> [u8; SLOT] {
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
        let check = xxh3_64_with_seed(&bytes[..56], u64::from(place)).to_le_bytes();
        bytes[56..].copy_from_slice(&check);
        bytes
    }

    /// What [`Slot::bytes`] wrote; none where it is damaged, or belongs elsewhere.
    pub fn parse(place: u32, bytes: &[u8]) -> Option<Slot> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if long(56)? != xxh3_64_with_seed(bytes.get(..56)?, u64::from(place)) {
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
    /// Nothing was programmed since the last erase of the block.
    Erased,
    /// The program failed, or the power was cut during the program: see [`TORN`].
    Torn,
    /// A record that fits its digest.
    Holds(Slot),
    /// Damaged: none of the others.
    Damaged,
}

/// The record of a unit whose program failed or was torn by a power cut.
pub const TORN: [u8; SLOT] = [0xff; SLOT];

impl SlotState {
    /// Reads the record of the unit at `place`. Records do not straddle pages of the kernel's page cache, so that a
    /// kill leaves each of them whole or unwritten: what fits none of the other states is damaged.
    pub fn parse(place: u32, bytes: &[u8]) -> SlotState {
        match Slot::parse(place, bytes) {
            Some(slot) => SlotState::Holds(slot),
            None if is_erased(bytes) => SlotState::Erased,
            None if bytes == TORN => SlotState::Torn,
            None => SlotState::Damaged,
        }
    }
}

/// Whether a slot was never written since its block was erased.
pub fn is_erased(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::config::load;
    use floatgate_core::durability::flash::RecordKind;

    #[test]
    fn blocks_lie_one_behind_the_other() {
        // 128 blocks of 128 units of 4 KiB, by hand: 8 KiB of records and 512 KiB of payload.
        let config = load(
            "tiny",
            &["geometry={ channels=2, chips=1, dies=1, planes=1, blocks=64, pages=128, page_size=\"4KiB\" }"
                .to_owned()],
        );
        let layout = Layout::of(&config.unwrap());
        assert_eq!((layout.unit, layout.units, layout.blocks), (4096, 128, 128));
        // Accounts of 128 units take 1,052 bytes: 3 blocks share a part, and 43 parts a grain.
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
    fn a_slot_is_read_as_it_was_written_and_nowhere_else() {
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
    fn an_entry_is_read_as_it_was_written() {
        assert_eq!(read_entry(5, [0; 8]), Some((0, Mark::Good)));
        for mark in Mark::ALL {
            assert_eq!(read_entry(5, entry(5, 1000, mark)), Some((1000, mark)));
        }
        assert_eq!(read_entry(6, entry(5, 1000, Mark::Erasing)), None);
        assert_eq!(read_entry(5, [1; 8]), None);
    }

    #[test]
    fn an_anchor_is_read_as_it_was_written() {
        assert_eq!(read_anchor(5, [0; 8]), None);
        assert_eq!(read_anchor(5, anchor(5, 0)), Some(0));
        assert_eq!(read_anchor(5, anchor(5, 1 << 30)), Some(1 << 30));
        assert_eq!(read_anchor(6, anchor(5, 1000)), None);
        assert_eq!(read_anchor(5, [0xff; 8]), None);
    }
}
