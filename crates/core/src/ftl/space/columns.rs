//! Dense columns of closed blocks, which a policy of another program reads without a copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::closed::Age;
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
    /// Number of valid units.
    pub valid: Box<[AtomicU32]>,
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

/// Bits of [`Columns::order`] below the number of valid units. They count changes: enough for 2^47 of them.
const CHANGES: u32 = 47;

fn words(count: usize) -> Box<[AtomicU32]> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

fn longs(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

impl Columns {
    fn new(rows: usize) -> Columns {
        Columns {
            block: words(rows),
            valid: words(rows),
            erases: words(rows),
            closed: longs(rows),
            changed: longs(rows),
            order: longs(rows),
        }
    }

    /// Copies a row to another one.
    fn copy(&self, from: usize, to: usize) {
        for column in [&self.block, &self.valid, &self.erases] {
            column[to].store(column[from].load(Relaxed), Relaxed);
        }
        for column in [&self.closed, &self.changed, &self.order] {
            column[to].store(column[from].load(Relaxed), Relaxed);
        }
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
    /// Number of units of a full block.
    units: u32,
}

impl Clone for Dense {
    /// Copies the columns, too, because another device changes them.
    fn clone(&self) -> Dense {
        let columns = Columns::new(self.columns.block.len());
        let word = |to: &[AtomicU32], from: &[AtomicU32]| {
            to.iter().zip(from).for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
        };
        let long = |to: &[AtomicU64], from: &[AtomicU64]| {
            to.iter().zip(from).for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
        };
        word(&columns.block, &self.columns.block);
        word(&columns.valid, &self.columns.valid);
        word(&columns.erases, &self.columns.erases);
        long(&columns.closed, &self.columns.closed);
        long(&columns.changed, &self.columns.changed);
        long(&columns.order, &self.columns.order);
        let (counts, positions) = (self.counts.clone(), self.positions.clone());
        Dense { columns: Arc::new(columns), counts, positions, ..*self }
    }
}

impl Dense {
    pub(super) fn new(device: &DeviceConfig, units: u32, planes: u32) -> Dense {
        let blocks = device.total_blocks() as usize;
        Dense {
            columns: Arc::new(Columns::new(blocks)),
            rows: (device.geometry.blocks * planes) as usize,
            counts: vec![0; (device.total_planes() / planes) as usize],
            positions: vec![0; blocks],
            changes: 0,
            units,
        }
    }

    /// Returns the number of a change with which a block reaches `valid` units, as a rank.
    #[inline]
    fn next_rank(&mut self, valid: u32) -> u64 {
        self.changes += 1;
        u64::from(valid) << CHANGES | self.changes
    }

    pub(super) fn insert(&mut self, plane: PlaneId, block: BlockId, valid: u32, erases: u32, age: Age) {
        let rank = self.next_rank(valid);
        let count = &mut self.counts[plane.index()];
        let row = plane.index() * self.rows + *count as usize;
        *count += 1;
        self.positions[block.index()] = row as u32;
        let columns = &self.columns;
        columns.block[row].store(block.0, Relaxed);
        columns.valid[row].store(valid, Relaxed);
        columns.erases[row].store(erases, Relaxed);
        columns.closed[row].store(age.closed, Relaxed);
        columns.changed[row].store(age.changed, Relaxed);
        columns.order[row].store(rank, Relaxed);
    }

    #[inline]
    pub(super) fn update(&mut self, block: BlockId, valid: u32, clock: u64) {
        let rank = self.next_rank(valid);
        let row = self.positions[block.index()] as usize;
        self.columns.valid[row].store(valid, Relaxed);
        self.columns.changed[row].store(clock, Relaxed);
        self.columns.order[row].store(rank, Relaxed);
    }

    /// Prefetches the row of a block.
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
        self.columns.copy(last, row);
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

    pub(super) fn at(&self, plane: PlaneId, position: usize) -> Option<BlockId> {
        let Candidates { columns, first, count } = self.candidates(plane);
        (position < count).then(|| BlockId(columns.block[first + position].load(Relaxed)))
    }

    /// Returns the first block in the order of `greedy`, if it has an invalid unit.
    pub(super) fn least(&self, plane: PlaneId) -> Option<BlockId> {
        let Candidates { columns, first, count } = self.candidates(plane);
        let least = (first..first + count).min_by_key(|&row| columns.order[row].load(Relaxed))?;
        let [valid, block] = [&columns.valid, &columns.block].map(|column| column[least].load(Relaxed));
        (valid < self.units).then_some(BlockId(block))
    }
}
