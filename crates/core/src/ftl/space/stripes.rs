//! Superblocks of a device: the planes that they lie in, their parity, and the units of open stripes.

use std::ops::Range;

use crate::config::DeviceConfig;
use crate::sim::id::{PlaneId, Ppn};

/// Position of the frontier of moved units among those of a plane. The one of host writes is the first.
pub(super) const MOVED: u32 = 1;
/// Number of frontiers of a plane.
pub(super) const FRONTIERS: u32 = 2;

/// Superblocks of a device.
#[derive(Clone, Debug)]
pub(super) struct Superblocks {
    /// Number of planes of a pool.
    pub(super) planes: u32,
    /// Number of planes of a stripe, including the one with parity.
    pub(super) parity: Option<u32>,
    /// Number of units that stripes of parity hold: those of the programs of all planes but one.
    pub(super) units_per_stripe: u32,
    /// Number of programs of a block.
    rows: u32,
    /// Number of blocks with room in the open superblock of each frontier. Indexed by pool and frontier.
    pub(super) open: Vec<u32>,
    /// Number of units that have been bound in each stripe of the open superblocks. Indexed by pool, frontier, group of
    /// planes, and row.
    pub(super) filled: Vec<u32>,
    /// Addresses of parity that is due.
    pub(super) due: Vec<Ppn>,
    /// True if planes of a pool have come to take host writes, or take none any longer.
    pub(super) changed: bool,
}

impl Superblocks {
    /// Creates the superblocks of a device. Returns `None` if it has none.
    pub(super) fn new(device: &DeviceConfig) -> Option<Box<Superblocks>> {
        device.superblock.as_ref()?;
        let (planes, parity) = (device.planes_per_collection()?, device.parity());
        let open = vec![0; (device.total_planes() / planes * FRONTIERS) as usize];
        let units = device.units_per_program();
        let rows = device.data_units_per_block() / units;
        let stripes = parity.map_or(0, |parity| planes / parity);
        let filled = vec![0; open.len() * (stripes * rows) as usize];
        let units_per_stripe = parity.map_or(0, |parity| (parity - 1) * units);
        Some(Box::new(Superblocks {
            planes,
            parity,
            units_per_stripe,
            rows,
            open,
            filled,
            due: vec![],
            changed: false,
        }))
    }

    /// Returns the first plane of the pool of a plane.
    pub(super) fn first_plane(&self, plane: PlaneId) -> u32 {
        plane.0 / self.planes * self.planes
    }

    /// Returns the planes of the pool of a plane.
    pub(super) fn planes_of(&self, plane: PlaneId) -> Range<u32> {
        let first = self.first_plane(plane);
        first..first + self.planes
    }

    /// Returns the index of a frontier of the pool of a plane.
    pub(super) fn slot(&self, plane: PlaneId, frontier: u32) -> usize {
        (plane.0 / self.planes * FRONTIERS + frontier) as usize
    }

    /// Returns `true` if the block with this address in a plane is one of parity.
    pub(super) fn is_parity(&self, plane: PlaneId, index: u32) -> bool {
        self.parity.is_some_and(|parity| plane.0 % parity == index % parity)
    }

    /// Returns the index of the first row of the stripes of a plane.
    pub(super) fn stripe(&self, plane: PlaneId, frontier: u32) -> Option<usize> {
        let parity = self.parity?;
        let (stripes, stripe) = (self.planes / parity, plane.0 % self.planes / parity);
        Some(((self.slot(plane, frontier) as u32 * stripes + stripe) * self.rows) as usize)
    }
}
