//! Dense columns of closed blocks, which a policy of another program reads without a copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::block::Age;
use super::ranks::rank;
use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, PlaneId};
use crate::sim::memory::prefetch;

/// Columns of the closed blocks of all planes, in no particular order within a plane.
///
/// A program may keep them for longer than the device, and read them while the device runs: they are shared, and their
/// values are atomic. Relaxed stores cost as much as plain ones.
#[derive(Debug)]
pub struct Columns {
    /// Number of the block.
    pub block: Box<[AtomicU32]>,
    /// Number of valid units. Small, because most policies read the whole column.
    pub valid: Box<[AtomicU16]>,
    /// Number of erases.
    pub erases: Box<[AtomicU32]>,
    /// Time of its closing, in host writes.
    pub closed: Box<[AtomicU64]>,
    /// Time at which one of its units last became invalid, or of its closing.
    pub changed: Box<[AtomicU64]>,
    /// Rank in the order of `greedy`: by valid units, and among equally many by the change that led to this number.
    pub order: Box<[AtomicU64]>,
}

/// Closed blocks of a region in [`Columns`].
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    /// Columns of all regions of the role.
    pub columns: &'a Arc<Columns>,
    /// First row of the region.
    pub first: usize,
    /// Number of rows.
    pub count: usize,
}

fn column<N: Default>(rows: usize) -> Box<[N]> {
    (0..rows).map(|_| N::default()).collect()
}

impl Columns {
    fn new(rows: usize) -> Columns {
        Columns {
            block: column(rows),
            valid: column(rows),
            erases: column(rows),
            closed: column(rows),
            changed: column(rows),
            order: column(rows),
        }
    }

    /// Copies a row of `other`.
    fn copy(&self, to: usize, other: &Columns, from: usize) {
        self.block[to].store(other.block[from].load(Relaxed), Relaxed);
        self.valid[to].store(other.valid[from].load(Relaxed), Relaxed);
        self.erases[to].store(other.erases[from].load(Relaxed), Relaxed);
        self.closed[to].store(other.closed[from].load(Relaxed), Relaxed);
        self.changed[to].store(other.changed[from].load(Relaxed), Relaxed);
        self.order[to].store(other.order[from].load(Relaxed), Relaxed);
    }
}

/// Closed blocks of each plane or pool, in shared columns. Every change takes O(1).
#[derive(Debug)]
pub(super) struct Dense {
    columns: Arc<Columns>,
    /// Number of rows of each plane or pool.
    rows: usize,
    /// Number of closed blocks. Indexed by plane or pool.
    counts: Vec<u32>,
    /// Row of each block, if it is closed.
    positions: Vec<u32>,
    changes: u64,
}

impl Clone for Dense {
    /// Copies the columns, too, because another device changes them.
    fn clone(&self) -> Dense {
        let columns = Columns::new(self.columns.block.len());
        (0..self.columns.block.len()).for_each(|row| columns.copy(row, &self.columns, row));
        let (counts, positions) = (self.counts.clone(), self.positions.clone());
        Dense { columns: Arc::new(columns), counts, positions, ..*self }
    }
}

impl Dense {
    pub(super) fn new(device: &DeviceConfig, planes: u32) -> Dense {
        let blocks = device.total_blocks() as usize;
        Dense {
            columns: Arc::new(Columns::new(blocks)),
            rows: (device.geometry.blocks * planes) as usize,
            counts: vec![0; (device.total_planes() / planes) as usize],
            positions: vec![0; blocks],
            changes: 0,
        }
    }

    /// Returns the number of a change with which a block reaches `valid` units, as a rank.
    #[inline]
    fn next_rank(&mut self, valid: u32) -> u64 {
        self.changes += 1;
        rank(valid, self.changes)
    }

    pub(super) fn insert(&mut self, plane: PlaneId, block: BlockId, valid: u32, erases: u32, age: Age) {
        let rank = self.next_rank(valid);
        let count = &mut self.counts[plane.index()];
        let row = plane.index() * self.rows + *count as usize;
        *count += 1;
        self.positions[block.index()] = row as u32;
        let columns = &self.columns;
        columns.block[row].store(block.0, Relaxed);
        columns.valid[row].store(valid as u16, Relaxed);
        columns.erases[row].store(erases, Relaxed);
        columns.closed[row].store(age.closed, Relaxed);
        columns.changed[row].store(age.changed, Relaxed);
        columns.order[row].store(rank, Relaxed);
    }

    #[inline]
    pub(super) fn update(&mut self, block: BlockId, valid: u32, clock: u64) {
        let rank = self.next_rank(valid);
        let row = self.positions[block.index()] as usize;
        self.columns.valid[row].store(valid as u16, Relaxed);
        self.columns.changed[row].store(clock, Relaxed);
        self.columns.order[row].store(rank, Relaxed);
    }

    /// Prefetches the number of the row of a block.
    #[inline]
    pub(super) fn prefetch_row(&self, block: BlockId) {
        prefetch(&self.positions, block.index());
    }

    /// Prefetches the row of a block. Waits for its number, unless [`Dense::prefetch_row`] was called before.
    #[inline]
    pub(super) fn prefetch(&self, block: BlockId) {
        let row = self.positions[block.index()] as usize;
        prefetch(&self.columns.valid, row);
        prefetch(&self.columns.changed, row);
        prefetch(&self.columns.order, row);
    }

    /// Removes a block. The last one of its plane takes its row.
    pub(super) fn remove(&mut self, plane: PlaneId, block: BlockId) {
        let count = &mut self.counts[plane.index()];
        *count -= 1;
        let (row, last) = (self.positions[block.index()] as usize, plane.index() * self.rows + *count as usize);
        self.columns.copy(row, &self.columns, last);
        let moved = self.columns.block[row].load(Relaxed);
        self.positions[moved as usize] = row as u32;
    }

    pub(super) fn candidates(&self, plane: PlaneId) -> Candidates<'_> {
        let (first, count) = (plane.index() * self.rows, self.counts[plane.index()] as usize);
        Candidates { columns: &self.columns, first, count }
    }

    pub(super) fn age(&self, block: BlockId) -> Age {
        let row = self.positions[block.index()] as usize;
        let is_closed = self.columns.block[row].load(Relaxed) == block.0;
        let [closed, changed] = [&self.columns.closed, &self.columns.changed].map(|column| column[row].load(Relaxed));
        if is_closed { Age { closed, changed } } else { Age::default() }
    }

    pub(super) fn contains(&self, plane: PlaneId, block: BlockId) -> bool {
        let row = (self.positions[block.index()] as usize).checked_sub(plane.index() * self.rows);
        row.is_some_and(|row| self.at(plane, row) == Some(block))
    }

    pub(super) fn at(&self, plane: PlaneId, position: usize) -> Option<BlockId> {
        let Candidates { columns, first, count } = self.candidates(plane);
        (position < count).then(|| BlockId(columns.block[first + position].load(Relaxed)))
    }

    /// Returns the first block in the order of `greedy`.
    pub(super) fn first(&self, plane: PlaneId) -> Option<BlockId> {
        let Candidates { columns, first, count } = self.candidates(plane);
        let least = (first..first + count).min_by_key(|&row| columns.order[row].load(Relaxed))?;
        Some(BlockId(columns.block[least].load(Relaxed)))
    }
}
