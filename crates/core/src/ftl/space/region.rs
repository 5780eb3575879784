//! Regions and write frontiers: the blocks of a plane by their contents, and the next unit of each open block.

use std::ops::Range;

use crate::config::cells::{BlockSize, CellMode};
use crate::config::slc_cache::WhenFull;
use crate::config::{DeviceConfig, Frontiers};
use crate::sim::id::PlaneId;

/// Contents of the blocks of a region. A new kind of block is one more role, with a row in `Layout::of`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Data of the host, and data that the device writes in the same way: trim journal and checkpoint.
    #[default]
    Data,
    /// Translation pages.
    Map,
    /// Data that the host has written to the SLC cache. These blocks have fixed addresses.
    Cache,
    /// Parity of a superblock. These blocks have no frontiers and no valid units.
    Parity,
}

impl Role {
    /// All roles, in the order of their numbers.
    pub const ALL: [Role; 4] = [Role::Data, Role::Map, Role::Cache, Role::Parity];

    /// Returns `true` if blocks of this role hold what those of another role do. The SLC cache holds data.
    pub fn holds(self, other: Role) -> bool {
        self == other || (self, other) == (Role::Cache, Role::Data)
    }
}

/// A region: the blocks of a plane that have one role, or the data blocks of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(pub(super) u32);

/// A write frontier: the position in an open block of a region where the next unit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontierId(pub(super) u32);

/// Position of a frontier. It only moves forward, so the pages of a block are programmed in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frontier {
    /// Next unit.
    pub(super) next: u32,
    /// Units of data left in the open block; 0 without one.
    pub(super) left: u32,
}

/// State of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    /// Number of free blocks. The list of free blocks is shared by the regions of a plane.
    pub(super) free: u32,
    /// Number of invalid units in closed blocks, which garbage collection could reclaim.
    pub(super) invalid: u32,
    /// Number of closed blocks.
    pub(super) closed: u32,
    /// Number of free blocks that writes leave to garbage collection.
    pub(super) reserve: u32,
    /// Number of the region's first frontier.
    pub(super) first: u32,
    /// Plane of the region, or the first plane of its pool.
    pub(super) plane: PlaneId,
    /// Number of planes of the region: 1, or those of a pool.
    pub(super) planes: u32,
    /// Contents of the region's blocks.
    pub(super) role: Role,
}

/// Properties that are common to the regions of a role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Number of blocks of each region.
    pub(super) blocks: u32,
    /// Cell mode of these blocks.
    pub(super) cells: CellMode,
    /// Capacity of each block.
    pub(super) size: BlockSize,
    /// Number of frontiers of writes, one for each class. They are the first of a region.
    pub(super) writes: u32,
    /// True if moved units go to the frontiers of writes. Otherwise, they have one of their own after those.
    pub(super) is_shared: bool,
    /// True if units that wear leveling migrates have a frontier of their own, after all others.
    pub(super) has_wear_frontier: bool,
    /// Number of units that are written, and become invalid, together.
    pub(super) granule: u32,
    /// Number of blocks whose room the evacuation of a failed block must leave.
    pub(super) beside_failed: u32,
    /// Number of the first frontier of the role's regions.
    pub(super) first: u32,
}

impl Layout {
    /// Returns the layout of each role on a device.
    pub(super) fn of(device: &DeviceConfig) -> [Layout; Role::ALL.len()] {
        let (blocks, for_map, cached) = (device.geometry.blocks, device.map_blocks(), device.cache_blocks());
        let [data_size, map_size, cache_size, _] = device.block_sizes();
        let data = Layout {
            blocks: blocks - for_map - cached,
            cells: CellMode::Native,
            size: data_size,
            writes: device.temperature.classes(),
            is_shared: device.gc.frontiers == Frontiers::Single,
            has_wear_frontier: device.gc.wear.migrates(),
            granule: 1,
            beside_failed: 2,
            first: 0,
        };
        let map = Layout {
            blocks: for_map,
            cells: device.map_cells(),
            size: map_size,
            writes: u32::from(for_map > 0),
            is_shared: true,
            has_wear_frontier: false,
            granule: map_size.program_units,
            beside_failed: 1,
            first: device.total_planes() * data.frontiers(),
        };
        let cache = Layout {
            blocks: cached,
            cells: if cached > 0 { CellMode::Slc } else { CellMode::Native },
            size: if cached > 0 { cache_size } else { data_size },
            writes: u32::from(cached > 0),
            granule: 1,
            first: map.first + device.total_planes() * map.frontiers(),
            ..map
        };
        let parity = Layout {
            blocks: 0,
            writes: 0,
            first: cache.first + device.total_planes() * cache.frontiers(),
            size: data_size,
            cells: CellMode::Native,
            ..map
        };
        [data, map, cache, parity]
    }

    /// Returns the number of frontiers of each region.
    pub(super) fn frontiers(&self) -> u32 {
        self.writes + u32::from(!self.is_shared) + u32::from(self.has_wear_frontier)
    }

    /// Returns the frontiers that moved units may go to, counted within a region.
    pub(super) fn for_moved(&self) -> Range<u32> {
        if self.is_shared { 0..self.writes } else { self.writes..self.writes + 1 }
    }
}

/// SLC cache of a device.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Number of blocks in each plane.
    pub(super) blocks: u32,
    /// True if host writes wait for room in the cache, instead of going to native blocks.
    pub(super) waits: bool,
    /// Address within its plane of the block that was opened last. Indexed by plane.
    pub(super) last: Vec<u32>,
}

impl Cache {
    /// Creates the cache of a device, or returns `None` if it has none.
    pub(super) fn new(device: &DeviceConfig) -> Option<Box<Cache>> {
        let options = device.slc_cache.as_ref()?;
        let (blocks, waits) = (device.cache_blocks(), options.when_full == WhenFull::Wait);
        Some(Box::new(Cache { blocks, waits, last: vec![blocks - 1; device.total_planes() as usize] }))
    }
}
