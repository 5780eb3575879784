//! Closed data blocks of each plane, from the coldest to the hottest: candidates for migration by wear leveling.

use std::collections::BTreeSet;

use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};

/// Order of closed blocks in which a wear policy looks for cold data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColdOrder {
    /// Fewest erases first.
    Erases,
    /// Earliest last erase first.
    LastErase,
    /// Coldest contents first: those that the host wrote earliest, on average over the units of the block.
    Temperature,
}

/// Closed data blocks in order of their coldness. Every change takes O(log n).
#[derive(Clone, Debug)]
pub(super) struct ColdBlocks {
    order: ColdOrder,
    /// Keys and blocks, for each plane.
    planes: Vec<BTreeSet<(u64, u32)>>,
    /// Key of each closed block.
    keys: Vec<u64>,
    /// Time of the last erase of each block, in host writes.
    erased: Vec<u64>,
    /// Units that were moved into each block since its erase: their number, and the sum of their temperatures.
    moved: Vec<(u32, u64)>,
}

impl ColdBlocks {
    pub(super) fn new(device: &DeviceConfig, order: ColdOrder) -> ColdBlocks {
        let blocks = device.total_blocks() as usize;
        let has_heat = order == ColdOrder::Temperature;
        ColdBlocks {
            order,
            planes: vec![BTreeSet::new(); device.total_planes() as usize],
            keys: vec![0; blocks],
            erased: vec![0; blocks],
            moved: if has_heat { vec![(0, 0); blocks] } else { Vec::new() },
        }
    }

    /// Adds a block that is closed now, with `units` units of data.
    pub(super) fn add(&mut self, plane: PlaneId, block: BlockId, erases: u32, units: u32, clock: u64) {
        let key = match self.order {
            ColdOrder::Erases => u64::from(erases),
            ColdOrder::LastErase => self.erased[block.index()],
            ColdOrder::Temperature => self.temperature(block, units, clock),
        };
        self.insert(plane, block, key);
    }

    fn insert(&mut self, plane: PlaneId, block: BlockId, key: u64) {
        self.keys[block.index()] = key;
        self.planes[plane.index()].insert((key, block.0));
    }

    /// Returns the mean time at which the host wrote the units of a block that is closed now. Units of the host were
    /// written just now; moved units have the temperature of the block that they came from.
    fn temperature(&self, block: BlockId, units: u32, clock: u64) -> u64 {
        let (moved, sum) = self.moved[block.index()];
        let written = u64::from(units.saturating_sub(moved));
        (sum + written * clock) / u64::from(units.max(moved).max(1))
    }

    /// Puts a block back that was removed, and has not been erased since.
    pub(super) fn put_back(&mut self, plane: PlaneId, block: BlockId) {
        self.planes[plane.index()].insert((self.keys[block.index()], block.0));
    }

    /// Removes a block.
    pub(super) fn remove(&mut self, plane: PlaneId, block: BlockId) {
        self.planes[plane.index()].remove(&(self.keys[block.index()], block.0));
    }

    /// Notes that units were moved from a block, which keeps its key until it is erased.
    pub(super) fn note_moved(&mut self, from: BlockId, to: BlockId, units: u32) {
        if self.order == ColdOrder::Temperature {
            let (count, sum) = &mut self.moved[to.index()];
            *count += units;
            *sum += u64::from(units) * self.keys[from.index()];
        }
    }

    /// Notes that a block was erased.
    pub(super) fn note_erased(&mut self, block: BlockId, clock: u64) {
        self.erased[block.index()] = clock;
        if let Some(moved) = self.moved.get_mut(block.index()) {
            *moved = (0, 0);
        }
    }

    /// Returns the closed blocks of a plane, from the coldest to the hottest.
    pub(super) fn of(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> + '_ {
        self.planes[plane.index()].iter().map(|&(_, block)| BlockId(block))
    }

    /// Returns the time of the last erase of a block, in host writes.
    pub(super) fn last_erase(&self, block: BlockId) -> u64 {
        self.erased[block.index()]
    }

    /// Writes what does not follow from the blocks.
    pub(super) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.keys.iter().chain(&self.erased).try_for_each(|&value| out.u64(value))?;
        self.moved.iter().try_for_each(|&(count, sum)| {
            out.u32(count)?;
            out.u64(sum)
        })
    }

    /// Reads what [`ColdBlocks::save`] wrote. `closed` are the closed data blocks with their planes.
    pub(super) fn load(
        &mut self,
        closed: impl Iterator<Item = (PlaneId, BlockId)>,
        clock: u64,
        input: &mut Reader,
    ) -> Result<(), StateError> {
        for key in &mut self.keys {
            *key = input.u64()?;
        }
        for erased in &mut self.erased {
            *erased = input.u64()?;
            if *erased > clock {
                return Err(input.damaged("a block was erased in the future"));
            }
        }
        for (count, sum) in &mut self.moved {
            (*count, *sum) = (input.u32()?, input.u64()?);
            if u128::from(*sum) > u128::from(*count) * u128::from(clock) {
                return Err(input.damaged("data was written in the future"));
            }
        }
        for (plane, block) in closed {
            let key = self.keys[block.index()];
            self.insert(plane, block, key);
        }
        Ok(())
    }
}
