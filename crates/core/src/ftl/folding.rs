//! Times at which blocks of the SLC cache are folded: by water marks, in idle time, or because the cache has no room.

use super::space::{Role, Space};
use crate::config::DeviceConfig;
use crate::sim::id::PlaneId;
use crate::sim::time::Time;

/// Folding of a device with an SLC cache.
#[derive(Clone, Debug)]
pub struct Folding {
    /// Number of full blocks in the cache of a plane at or above which folding starts, and down to which it continues.
    water_marks: [u32; 2],
    /// Idle time after which all full blocks are folded.
    pub idle: Option<Time>,
    /// True while the device is idle, and has been for that time.
    pub is_idle: bool,
    /// True if functional writes go to native blocks.
    pub is_bypassed: bool,
    /// True if folding continues down to the low water mark. Indexed by plane.
    continues: Vec<bool>,
}

impl Folding {
    /// Creates the folding of a device, or returns `None` without an SLC cache.
    pub(super) fn new(device: &DeviceConfig) -> Option<Box<Folding>> {
        let cache = device.slc_cache.as_ref()?;
        Some(Box::new(Folding {
            water_marks: cache.water_marks(device.cache_blocks()),
            idle: cache.idle.map(|idle| idle.time()),
            is_idle: false,
            is_bypassed: false,
            continues: vec![false; device.total_planes() as usize],
        }))
    }

    /// Returns `true` if functional writes have begun a program in a plane and not filled it.
    pub(super) fn has_begun(&self, blocks: &Space, plane: PlaneId) -> bool {
        let native = blocks.host_frontier(plane, 0);
        let at = if self.is_bypassed { native } else { blocks.frontier_for_host(plane, 0) };
        !blocks.room(at).is_multiple_of(blocks.program_units_of(at, blocks.size(Role::Data).program_units))
    }

    /// Returns `true` if a block is to be folded in a plane whose cache has `full` full blocks.
    pub(super) fn is_due(&self, plane: PlaneId, full: u32, has_room: bool) -> bool {
        full > 0 && (self.is_idle || !has_room || self.continues[plane.index()] || full >= self.water_marks[0])
    }

    /// Notes the number of full blocks of a plane's cache, and whether it has room for a write. Returns `true` while
    /// folding continues down to the low water mark.
    pub(super) fn continues(&mut self, plane: PlaneId, full: u32, has_room: bool) -> bool {
        let [high, low] = self.water_marks;
        let continues = &mut self.continues[plane.index()];
        *continues = (*continues || full >= high || !has_room) && full > low;
        *continues
    }
}
