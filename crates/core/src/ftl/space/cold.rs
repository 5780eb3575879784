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
        // A block whose program fails is evacuated without having been closed.
        self.keys[block.index()] = clock;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_toml;

    const PLANE: PlaneId = PlaneId(0);
    const DEVICE: &str = r#"
        geometry = { channels = 1, chips = 1, dies = 1, planes = 1, blocks = 8, pages = 4, page_size = "4KiB" }
        capacity.spare = 0.5
        nand = { read = "25us", program = "200us", erase = "1500us" }
        bus.protocol.sdr = "25ns"
        gc.soft_threshold = 1
    "#;

    fn cold_blocks(order: ColdOrder) -> ColdBlocks {
        ColdBlocks::new(&from_toml(DEVICE, "test.toml", &[]).unwrap(), order)
    }

    fn listed(blocks: &ColdBlocks) -> Vec<u32> {
        blocks.of(PLANE).map(|block| block.0).collect()
    }

    #[test]
    fn temperature_travels_with_data_and_is_aggregated() {
        let mut blocks = cold_blocks(ColdOrder::Temperature);
        // The host writes blocks 0 and 1, which are closed after 100 and 200 writes.
        blocks.add(PLANE, BlockId(0), 0, 4, 100);
        blocks.add(PLANE, BlockId(1), 0, 4, 200);
        // Block 2 gets all units of block 0 much later, and keeps their temperature.
        blocks.note_moved(BlockId(0), BlockId(2), 4);
        blocks.add(PLANE, BlockId(2), 0, 4, 1000);
        // Block 3 gets a unit of block 0, a unit of block 1, and two units of the host: (100 + 200 + 2 x 1000) / 4.
        blocks.note_moved(BlockId(0), BlockId(3), 1);
        blocks.note_moved(BlockId(1), BlockId(3), 1);
        blocks.add(PLANE, BlockId(3), 0, 4, 1000);
        assert_eq!([0, 1, 2, 3].map(|block| blocks.keys[block]), [100, 200, 100, 575]);
        assert_eq!(listed(&blocks), [0, 2, 1, 3]);
        // An erase ends what a block has of others.
        blocks.remove(PLANE, BlockId(3));
        blocks.note_erased(BlockId(3), 1100);
        blocks.add(PLANE, BlockId(3), 1, 4, 1200);
        assert_eq!((blocks.keys[3], listed(&blocks)), (1200, vec![0, 2, 1, 3]));
    }

    #[test]
    fn blocks_are_ordered_by_their_erases_or_their_last_erase() {
        let mut by_erases = cold_blocks(ColdOrder::Erases);
        let mut by_time = cold_blocks(ColdOrder::LastErase);
        for (block, erases, erased) in [(0, 3, 50), (1, 1, 70), (2, 2, 10)] {
            for blocks in [&mut by_erases, &mut by_time] {
                blocks.note_erased(BlockId(block), erased);
                blocks.add(PLANE, BlockId(block), erases, 4, 100);
            }
        }
        assert_eq!((listed(&by_erases), listed(&by_time)), (vec![1, 2, 0], vec![2, 0, 1]));
        // A block that was passed over keeps its place.
        by_time.remove(PLANE, BlockId(2));
        by_time.put_back(PLANE, BlockId(2));
        assert_eq!((listed(&by_time), by_time.last_erase(BlockId(2))), (vec![2, 0, 1], 10));
    }
}
