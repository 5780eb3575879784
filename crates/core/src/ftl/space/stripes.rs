//! Superblocks of a device: the planes that they lie in, their parity, and the units of open stripes.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, PlaneId, Ppn};

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
    pub(super) rows: u32,
    /// Number of blocks of a plane.
    blocks: u32,
    /// Number of blocks with room in the open superblock of each frontier. Indexed by pool and frontier.
    pub(super) open: Vec<u32>,
    /// Number of units that have been bound in each stripe of the open superblocks. Indexed by pool, frontier, group of
    /// planes, and row.
    pub(super) filled: Vec<u32>,
    /// Addresses of parity that is due.
    pub(super) due: Vec<Ppn>,
    /// Number of programs of parity in flash. Indexed by pool, superblock, and group of planes.
    pub(super) protected: Vec<u32>,
    /// Stripes without parity, because a program has failed or power was cut: the position in `protected`, and the row.
    pub(super) unprotected: BTreeSet<(u32, u32)>,
    /// First blocks of the superblocks that have failed and are not retired.
    pub(super) doomed: Vec<BlockId>,
    /// True if a superblock of host writes has failed, and none was opened instead. Indexed by pool.
    pub(super) replaces: Vec<bool>,
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
        let protected = vec![0; (stripes * device.total_planes() / planes * device.geometry.blocks) as usize];
        let units_per_stripe = parity.map_or(0, |parity| (parity - 1) * units);
        Some(Box::new(Superblocks {
            planes,
            parity,
            units_per_stripe,
            rows,
            open,
            filled,
            due: vec![],
            protected,
            unprotected: BTreeSet::new(),
            doomed: vec![],
            replaces: vec![false; (device.total_planes() / planes) as usize],
            blocks: device.geometry.blocks,
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

    /// Returns the index of the pool of a plane.
    pub(super) fn pool(&self, plane: PlaneId) -> usize {
        (plane.0 / self.planes) as usize
    }

    /// Returns the planes of the stripe of a plane, the plane with the parity of superblock `index`, and the position
    /// in `protected`. `None` without parity.
    pub(super) fn group(&self, plane: PlaneId, index: u32) -> Option<(Range<u32>, u32, usize)> {
        let parity = self.parity?;
        let first = plane.0 / parity * parity;
        let (stripes, stripe) = (self.planes / parity, plane.0 % self.planes / parity);
        let place = (plane.0 / self.planes * self.blocks + index) * stripes + stripe;
        Some((first..first + parity, first + index % parity, place as usize))
    }

    /// Sets the number of programs of parity in flash, in all groups of superblock `index` of the pool of a plane.
    pub(super) fn set_protected(&mut self, plane: PlaneId, index: u32, rows: u32) {
        let planes = self.planes_of(plane);
        for first in planes.step_by(self.parity.unwrap_or(self.planes) as usize) {
            if let Some((.., place)) = self.group(PlaneId(first), index) {
                self.protected[place] = rows;
                (0..self.rows).for_each(|row| _ = self.unprotected.remove(&(place as u32, row)));
            }
        }
    }

    /// Notes that the stripes of open superblock `index` that are not whole have no parity.
    pub(super) fn give_up_stripes(&mut self, plane: PlaneId, frontier: u32, index: u32) {
        let Some(parity) = self.parity else { return };
        for plane in self.planes_of(plane).step_by(parity as usize).map(PlaneId) {
            let (Some(stripe), Some((.., place))) = (self.stripe(plane, frontier), self.group(plane, index)) else {
                continue;
            };
            let rows = (0..self.rows).filter(|row| self.filled[stripe + *row as usize] < self.units_per_stripe);
            self.unprotected.extend(rows.map(|row| (place as u32, row)));
        }
    }

    /// Counts the whole stripes of open superblock `index`, whose parity has been programmed.
    pub(super) fn count_protected(&mut self, first: PlaneId, frontier: u32, index: u32) {
        let Some(parity) = self.parity else { return };
        for plane in self.planes_of(first).step_by(parity as usize).map(PlaneId) {
            if let (Some(stripe), Some((.., place))) = (self.stripe(plane, frontier), self.group(plane, index)) {
                let rows = &self.filled[stripe..stripe + self.rows as usize];
                self.protected[place] = rows.iter().take_while(|&&units| units == self.units_per_stripe).count() as u32;
            }
        }
    }

    /// Returns the index of the first row of the stripes of a plane.
    pub(super) fn stripe(&self, plane: PlaneId, frontier: u32) -> Option<usize> {
        let parity = self.parity?;
        let (stripes, stripe) = (self.planes / parity, plane.0 % self.planes / parity);
        Some(((self.slot(plane, frontier) as u32 * stripes + stripe) * self.rows) as usize)
    }
}
