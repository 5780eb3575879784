//! Layout of the file: the position of everything in it. `docs/reference/image.md` describes it in words.

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::CheckpointParts;
use floatgate_core::sim::id::{BlockId, Ppn};

/// Version of the format. It is raised when older programs can no longer read new files.
pub const VERSION: u32 = 5;

/// Bytes before the tables. Each half has a copy of the header and, in its last grain, a copy of the state.
pub const ROOM: u64 = 1 << 20;

/// Allocation granularity of files. Holes consist of whole grains.
pub const GRAIN: u64 = 4096;

/// Bytes of the record of a mapping unit, including the fields that the file adds.
pub const SLOT: usize = 64;

/// Bytes of the head of a saved entry.
pub const HEAD: usize = 64;

/// Number of copies of everything that is not a record or payload of a mapping unit.
pub const COPIES: usize = 2;

/// Bytes that the header may take.
pub const HEADER_ROOM: u64 = ROOM / COPIES as u64 - GRAIN;

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
    /// Bytes of a copy of both tables.
    tables: u64,
}

fn grains(bytes: u64) -> u64 {
    bytes.next_multiple_of(GRAIN)
}

impl Layout {
    /// Bytes of an entry of a table.
    pub const ENTRY: usize = 32;

    /// Computes the layout for a device.
    pub fn of(config: &DeviceConfig) -> Layout {
        let (unit, units, blocks) = (config.unit_bytes(), config.units_per_block(), config.total_blocks());
        let slots = grains(u64::from(units) * SLOT as u64);
        let stride = slots + grains(u64::from(units) * unit);
        let parts = CheckpointParts::of(config).count();
        let tables = [blocks, parts].map(|entries| grains(u64::from(entries) * Layout::ENTRY as u64));
        Layout { unit, units, blocks, parts, slots, stride, tables: tables.iter().sum() }
    }

    /// Returns the offset of a copy of the header.
    pub fn header(copy: usize) -> u64 {
        copy as u64 * (ROOM / COPIES as u64)
    }

    /// Returns the offset of a copy of the state.
    pub fn state(copy: usize) -> u64 {
        Layout::header(copy) + HEADER_ROOM
    }

    /// Returns the offset of a copy of the table of blocks.
    pub fn block_table(&self, copy: usize) -> u64 {
        ROOM + copy as u64 * self.tables
    }

    /// Returns the offset of a copy of the table of the checkpoint's parts.
    pub fn part_table(&self, copy: usize) -> u64 {
        self.block_table(copy) + grains(u64::from(self.blocks) * Layout::ENTRY as u64)
    }

    /// Returns the offset and the size of a block.
    pub fn block(&self, block: u32) -> (u64, u64) {
        (ROOM + COPIES as u64 * self.tables + u64::from(block) * self.stride, self.stride)
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

    /// Returns the offset of a slot for a saved entry. A slot holds a copy of the head, the payload, and the other copy
    /// of the head, each from the start of a grain.
    pub fn saved(&self, number: u32) -> u64 {
        self.end() + u64::from(number) * (GRAIN + grains(self.unit) + GRAIN)
    }

    /// Returns the offset of a copy of the head of a saved entry.
    pub fn saved_head(&self, number: u32, copy: usize) -> u64 {
        self.saved(number) + copy as u64 * (GRAIN + grains(self.unit))
    }

    /// Returns the offset of the payload of a saved entry. The second copy of its head follows the payload.
    pub fn saved_payload(&self, number: u32) -> u64 {
        self.saved(number) + GRAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::device_file::load;

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
        assert_eq!((layout.parts, layout.part_table(0)), (43, (1 << 20) + 4096));
        assert_eq!((layout.block_table(1), layout.part_table(1)), ((1 << 20) + 8192, (1 << 20) + 12288));
        let first = (1 << 20) + 4 * 4096;
        assert_eq!(layout.block(0), (first, 8192 + (512 << 10)));
        assert_eq!(layout.slot(129), first + 8192 + (512 << 10) + 64);
        assert_eq!(layout.payload(129), first + 8192 + (512 << 10) + 8192 + 4096);
        assert_eq!(layout.end(), first + 128 * (8192 + (512 << 10)));
        assert_eq!(layout.saved(2), layout.end() + 2 * (3 * 4096));
        assert_eq!(layout.saved_payload(2) + layout.unit, layout.saved_head(2, 1));
        assert_eq!(layout.block_of(Ppn(129)), BlockId(1));
    }

    #[test]
    fn copies_of_header_and_state_are_in_different_halves() {
        assert_eq!([0, 1].map(Layout::header), [0, 512 << 10]);
        assert_eq!([0, 1].map(Layout::state), [(512 << 10) - 4096, (1 << 20) - 4096]);
    }
}
