//! The block map: states of all blocks, summarized in a grid of bounded size.
//!
//! A device of a terabyte has millions of blocks. They are copied in slices. Each holds the lock for some
//! microseconds, and are summarized in cells. A row stands for one or several planes, a cell for some neighboring
//! blocks.

use floatgate_core::flash::{Block, BlockState, Role};
use floatgate_core::results::CopyCause;
use serde::{Deserialize, Serialize};

/// Maximum number of cells.
const MAX_CELLS: usize = 4096;

/// Maximum number of rows.
const MAX_ROWS: usize = 64;

/// Number of blocks copied at a time.
pub const SLICE: usize = 4096;

/// Value in place of a share if no block of the cell is in use.
pub const FREE: u8 = 255;

/// States of all blocks. Each list has one number per cell, row by row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockMap {
    /// Number of rows.
    pub rows: u32,
    /// Number of cells per row.
    pub columns: u32,
    /// Number of planes per row.
    pub planes_per_row: u32,
    /// Number of blocks per cell in each plane.
    pub blocks_per_cell: u32,
    /// Percentage of valid mapping units in the blocks that are in use. 255 if none is in use.
    pub valid: Vec<u8>,
    /// Mean erase count of the cell's blocks.
    pub erases: Vec<u32>,
    /// Mean number of mapping units with data programmed in the cell's blocks since the device was created or loaded.
    #[serde(default)]
    pub writes: Vec<u32>,
    /// Simulated time in seconds since a block of the cell was erased. -1 if none was erased since the monitor started.
    pub age_s: Vec<f32>,
    /// Percentage of free blocks.
    pub free: Vec<u8>,
    /// Sum of 1 if a block is being written, 2 if garbage collection is working on a block, 4 if a block was erased
    /// since the last block map, 8 if a block holds a part of the map, and 16 if wear leveling is migrating a block.
    pub marks: Vec<u8>,
    /// Kind of the cell: the last one of [`Info::block_kinds`](super::frame::Info::block_kinds) among its blocks. Empty
    /// without log blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<u8>,
    /// Number of blocks of each kind of `block_kinds`. Empty without log blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks_of_kind: Vec<u32>,
}

/// Kinds of blocks of a mapping scheme with log blocks. The kinds of log blocks follow. If a cell has blocks of several
/// kinds, the last one determines the kind of the cell.
const KINDS: [&str; 5] = ["free", "awaiting erase", "data", "bad", "target of a full merge"];

/// Returns the names of the kinds of blocks of a device; none if it has no log blocks.
pub fn kinds(logs: &[&str]) -> Vec<String> {
    let logs = logs.iter().map(|kind| if *kind == "all" { "log".to_owned() } else { format!("{kind} log") });
    let all: Vec<String> = KINDS.map(str::to_owned).into_iter().chain(logs).collect();
    if all.len() > KINDS.len() { all } else { Vec::new() }
}

/// Returns the kind of a block, from the mapping scheme's kind.
fn kind_of(block: &Block, of_scheme: u8) -> u8 {
    match block.state {
        BlockState::Free => 0,
        BlockState::AwaitingErase => 1,
        BlockState::Failed | BlockState::Bad | BlockState::WornOut => 3,
        _ if of_scheme > 0 => of_scheme + 3,
        _ => 2,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    blocks: u32,
    free: u32,
    /// Capacity in mapping units of the blocks that are not free.
    units: u64,
    valid: u64,
    erases: u64,
    written: u64,
    marks: u8,
    kind: u8,
}

/// Creates block maps, one after the other.
pub struct Painter {
    planes: usize,
    blocks_per_plane: usize,
    /// Indexed by role.
    units_per_block: [u64; Role::ALL.len()],
    planes_per_row: usize,
    blocks_per_cell: usize,
    rows: usize,
    columns: usize,
    cells: Vec<Cell>,
    /// Number of blocks of each kind. Empty without log blocks.
    blocks_of_kind: Vec<u32>,
    /// Erase count of each cell in the last block map, and the time of its last increase. Indexed by cell.
    erased: Vec<(u64, f64)>,
    next: usize,
    pictures: u64,
}

impl Painter {
    /// Creates a painter for a device. `units_per_block` is the number of mapping units of a block, indexed by role.
    pub fn new(planes: u32, blocks_per_plane: u32, units_per_block: [u32; Role::ALL.len()]) -> Painter {
        let (planes, blocks_per_plane) = (planes.max(1) as usize, blocks_per_plane.max(1) as usize);
        let planes_per_row = planes.div_ceil(MAX_ROWS);
        let rows = planes.div_ceil(planes_per_row);
        let blocks_per_cell = blocks_per_plane.div_ceil(MAX_CELLS / rows);
        let columns = blocks_per_plane.div_ceil(blocks_per_cell);
        let cells = vec![Cell::default(); rows * columns];
        let erased = vec![(0, -1.0); cells.len()];
        let units_per_block = units_per_block.map(|units| u64::from(units.max(1)));
        Painter {
            planes,
            blocks_per_plane,
            units_per_block,
            planes_per_row,
            blocks_per_cell,
            rows,
            columns,
            cells,
            blocks_of_kind: Vec::new(),
            erased,
            next: 0,
            pictures: 0,
        }
    }

    /// Returns the first block that the current block map still needs.
    pub fn next(&self) -> usize {
        self.next
    }

    /// Adds blocks, starting at [`Painter::next`], with their kinds in the mapping scheme if it has log blocks. Returns
    /// the block map if these were the last blocks.
    pub fn add(&mut self, blocks: &[Block], kinds: &[u8], now_s: f64) -> Option<BlockMap> {
        for (number, block) in blocks.iter().enumerate() {
            let (plane, index) = (self.next / self.blocks_per_plane, self.next % self.blocks_per_plane);
            let cell = &mut self.cells[plane / self.planes_per_row * self.columns + index / self.blocks_per_cell];
            cell.blocks += 1;
            cell.free += u32::from(block.state == BlockState::Free);
            if block.state != BlockState::Free {
                cell.units += self.units_per_block[block.role as usize];
            }
            cell.valid += u64::from(block.valid);
            cell.erases += u64::from(block.erases);
            cell.written += u64::from(block.written);
            let of_scheme = kinds.get(number).copied();
            if let Some(kind) = of_scheme.map(|kind| kind_of(block, kind)) {
                cell.kind = cell.kind.max(kind);
                let count = usize::from(kind) + 1;
                self.blocks_of_kind.resize(self.blocks_of_kind.len().max(count), 0);
                self.blocks_of_kind[count - 1] += 1;
            }
            cell.marks |= match block.state {
                // Data blocks of a scheme with log blocks take no writes.
                BlockState::Logical if of_scheme == Some(0) => 0,
                BlockState::Open | BlockState::Logical => 1,
                BlockState::Victim if block.moved_for == CopyCause::Wear => 2 + 16,
                BlockState::Victim | BlockState::AwaitingErase => 2,
                BlockState::Free | BlockState::Closed | BlockState::Failed | BlockState::Bad | BlockState::WornOut => 0,
            };
            cell.marks |= if block.role == Role::Map { 8 } else { 0 };
            self.next += 1;
        }
        (self.next >= self.planes * self.blocks_per_plane).then(|| self.picture(now_s))
    }

    fn picture(&mut self, now_s: f64) -> BlockMap {
        let first = self.pictures == 0;
        let mut map = BlockMap {
            rows: self.rows as u32,
            columns: self.columns as u32,
            planes_per_row: self.planes_per_row as u32,
            blocks_per_cell: self.blocks_per_cell as u32,
            ..BlockMap::default()
        };
        for (cell, erased) in self.cells.iter_mut().zip(&mut self.erased) {
            let cell = std::mem::take(cell);
            let percent = |part: u64, of: u64| ((part * 100 + of / 2) / of).min(100) as u8;
            map.valid.push(if cell.units > 0 { percent(cell.valid, cell.units) } else { FREE });
            map.free.push(percent(u64::from(cell.free), u64::from(cell.blocks.max(1))));
            map.erases.push((cell.erases / u64::from(cell.blocks.max(1))) as u32);
            map.writes.push((cell.written / u64::from(cell.blocks.max(1))) as u32);
            if !self.blocks_of_kind.is_empty() {
                map.kinds.push(cell.kind);
            }
            let grown = cell.erases > erased.0 && !first;
            *erased = (cell.erases, if grown { now_s } else { erased.1 });
            map.age_s.push(if erased.1 < 0.0 { -1.0 } else { (now_s - erased.1) as f32 });
            map.marks.push(cell.marks | if grown { 4 } else { 0 });
        }
        map.blocks_of_kind = std::mem::take(&mut self.blocks_of_kind);
        (self.next, self.pictures) = (0, self.pictures + 1);
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(valid: u16, erases: u32, state: BlockState) -> Block {
        Block { valid, erases, state, ..Block::default() }
    }

    #[test]
    fn a_small_device_has_a_cell_for_each_block() {
        let mut painter = Painter::new(2, 2, [10, 5, 5, 10]);
        let mut blocks = vec![
            block(0, 3, BlockState::Free),
            block(5, 1, BlockState::Closed),
            block(10, 2, BlockState::Open),
            block(1, 7, BlockState::Victim),
        ];
        assert_eq!(painter.add(&blocks[..3], &[], 1.0), None);
        let map = painter.add(&blocks[3..], &[], 1.0).unwrap();
        assert_eq!((map.rows, map.columns, map.blocks_per_cell), (2, 2, 1));
        assert_eq!((map.valid, map.erases), (vec![FREE, 50, 100, 10], vec![3, 1, 2, 7]));
        assert_eq!((map.free, map.marks), (vec![100, 0, 0, 0], vec![0, 0, 1, 2]));
        assert_eq!(map.age_s, [-1.0; 4]);
        blocks[3] = block(0, 8, BlockState::Free);
        let map = painter.add(&blocks, &[], 2.0).unwrap();
        assert_eq!((map.marks[3], map.age_s[3], map.valid[3]), (4, 0.0, FREE));
        let map = painter.add(&blocks, &[], 3.5).unwrap();
        assert_eq!((map.marks[3], map.age_s[3]), (0, 1.5));
        // In this test, a block of the map holds half as many units as other blocks.
        blocks[1].role = Role::Map;
        let map = painter.add(&blocks, &[], 4.0).unwrap();
        assert_eq!((map.marks[1], map.valid[1]), (8, 100));
    }

    #[test]
    fn the_last_kind_of_a_cell_is_shown() {
        assert_eq!(kinds(&[]), [""; 0]);
        assert_eq!(kinds(&["sequential", "hot"])[4..], ["target of a full merge", "sequential log", "hot log"]);
        let states = [
            (BlockState::Free, 0, 0),
            (BlockState::AwaitingErase, 0, 1),
            (BlockState::Logical, 0, 2),
            (BlockState::Bad, 0, 3),
            (BlockState::Logical, 1, 4),
            (BlockState::Logical, 3, 6),
        ];
        let blocks = states.map(|(state, ..)| Block { state, written: 7, ..Block::default() });
        let of_scheme = states.map(|(_, of_scheme, _)| of_scheme);
        let map = Painter::new(1, 6, [10, 5, 5, 10]).add(&blocks, &of_scheme, 0.0).unwrap();
        assert_eq!(map.kinds, states.map(|(.., shown)| shown));
        assert_eq!((map.blocks_of_kind, map.writes), (vec![1, 1, 1, 1, 1, 0, 1], vec![7; 6]));
        assert_eq!(map.marks, [0, 2, 0, 0, 1, 1]);
        // Six blocks per cell. The counts of a second map start again.
        let mut painter = Painter::new(1, 6 * 4096, [10, 5, 5, 10]);
        let all: Vec<Block> = blocks.iter().copied().cycle().take(6 * 4096).collect();
        let of_all: Vec<u8> = of_scheme.iter().copied().cycle().take(all.len()).collect();
        for _ in 0..2 {
            let map = painter.add(&all, &of_all, 0.0).unwrap();
            assert!(map.kinds.iter().all(|kind| *kind == 6) && map.blocks_of_kind[6] == 4096);
        }
    }

    #[test]
    fn block_maps_are_bounded_and_complete() {
        for (planes, blocks) in [(1, 1), (1, 1_000_003), (3, 4097), (64, 64), (65, 7), (4096, 2), (1000, 999)] {
            let mut painter = Painter::new(planes, blocks, [4; 4]);
            let all = (planes * blocks) as usize;
            let mut picture = None;
            while picture.is_none() {
                let count = SLICE.min(all - painter.next());
                picture = painter.add(&vec![block(4, 1, BlockState::Closed); count], &[], 0.0);
            }
            let map = picture.unwrap();
            let cells = (map.rows * map.columns) as usize;
            assert!(cells <= MAX_CELLS && map.rows as usize <= MAX_ROWS, "{planes} {blocks}: {cells} cells");
            assert_eq!([map.valid.len(), map.erases.len(), map.age_s.len(), map.marks.len()], [cells; 4]);
            assert!(map.valid.iter().all(|share| *share == 100), "{planes} {blocks}");
            assert!(map.erases.iter().all(|mean| *mean == 1));
        }
    }
}
