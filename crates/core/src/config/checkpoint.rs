//! Layout of a checkpoint: the parts and the blocks in each of them. See docs/model/durability.md.

use super::DeviceConfig;

/// Layout of a checkpoint. A part is a mapping unit. It holds the accounts of several blocks. If a block has too many
/// units for a part, a part holds the account of some of them, a *piece*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Number of blocks in the device.
    pub blocks: u32,
    /// Number of units of data in a block.
    pub units: u32,
    /// Number of blocks in a part; 1 if a part holds one piece.
    pub blocks_per_part: u32,
    /// Number of pieces of a block, each in a part of its own.
    pub pieces: u32,
    /// Number of units in a piece. The last piece of a block may have fewer.
    pub units_per_piece: u32,
    /// Bytes of a part.
    pub bytes: usize,
}

impl Parts {
    /// Bytes at the start of a part: its number, the number of blocks in the device, and the number of units in a
    /// block.
    pub const HEAD: usize = 12;
    /// Bytes at the start of a piece: the erase count of its block, the number of its opening, and the lowest and the
    /// highest sequence number of its writes.
    pub const PIECE: usize = 28;
    /// Bytes of a unit: the logical unit, and the sequence number of its write relative to the lowest. A partly written
    /// unit takes [`Parts::MASK`] more. If there is no room for these, the block is not in the checkpoint.
    pub const UNIT: usize = 8;
    /// Additional bytes of a partly written unit: see [`Parts::UNIT`].
    pub const MASK: usize = 8;

    /// Returns the layout for a device.
    pub fn of(device: &DeviceConfig) -> Parts {
        let (units, bytes) = (device.data_units_per_block().max(1), device.unit_bytes() as usize);
        let room = bytes - Parts::HEAD;
        let most = ((room - Parts::PIECE) / Parts::UNIT) as u32;
        let pieces = units.div_ceil(most);
        let blocks_per_part = match pieces {
            1 => (room / (Parts::PIECE + units as usize * Parts::UNIT)) as u32,
            _ => 1,
        };
        let blocks = device.total_blocks();
        let units_per_piece = units.div_ceil(pieces);
        Parts { blocks, units, blocks_per_part, pieces, units_per_piece, bytes }
    }

    /// Returns the number of parts.
    pub fn count(&self) -> u32 {
        self.blocks.div_ceil(self.blocks_per_part) * self.pieces
    }

    /// Returns the blocks in a part.
    pub fn blocks_of(&self, part: u32) -> std::ops::Range<u32> {
        let first = part / self.pieces * self.blocks_per_part;
        first..(first + self.blocks_per_part).min(self.blocks)
    }

    /// Returns the parts of a block.
    pub fn parts_of(&self, block: u32) -> std::ops::Range<u32> {
        let first = block / self.blocks_per_part * self.pieces;
        first..first + self.pieces
    }

    /// Returns the units of a block that are in a part.
    pub fn units_of(&self, part: u32) -> std::ops::Range<u32> {
        let first = part % self.pieces * self.units_per_piece;
        first..(first + self.units_per_piece).min(self.units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn parts(overrides: &[&str]) -> Parts {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        Parts::of(&load("tiny", &overrides).expect("a device"))
    }

    #[test]
    fn small_blocks_share_parts_and_large_ones_have_several() {
        // Computed by hand: 4,084 bytes hold 3 blocks of 28 + 128 * 8 = 1,052 bytes.
        let few = parts(&["geometry.blocks=40", "geometry.pages=128", "geometry.page_size=4KiB"]);
        assert_eq!((few.blocks_per_part, few.pieces, few.units_per_piece), (3, 1, 128));
        assert_eq!(few.count(), few.blocks.div_ceil(3));
        assert_eq!((few.blocks_of(1), few.parts_of(5), few.units_of(1)), (3..6, 1..2, 0..128));
        // A part holds up to (4,084 - 28) / 8 = 507 units: 1,024 units take three parts, of 342, 342 and 340.
        let many = parts(&["geometry.blocks=40", "geometry.pages=1024", "geometry.page_size=4KiB"]);
        assert_eq!((many.blocks_per_part, many.pieces, many.count()), (1, 3, 3 * many.blocks));
        assert_eq!([0, 1, 2].map(|part| many.units_of(part)), [0..342, 342..684, 684..1024]);
        assert_eq!((many.blocks_of(5), many.parts_of(1)), (1..2, 3..6));
    }
}
