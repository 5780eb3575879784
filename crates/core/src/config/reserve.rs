//! How many free blocks a full device can keep.
//!
//! Per plane let B be its blocks, D the data units of a block, U the units of a program, f the open blocks (frontiers)
//! and S the soft threshold. When the host has written its whole address space, a plane holds L units. Cleaning moves a
//! victim in whole programs and pads the last one, so it gains a block's U stale units or more and nothing of fewer.
//! With S blocks free, one of the B - S - f closed blocks has so many for certain if and only if they would hold L + 1
//! units with U - 1 stale ones in each: (B - S - f) (D - U + 1) >= L + 1. Without that, cleaning could go on forever
//! and gain nothing, so such a device is refused.

use super::{DeviceConfig, Frontiers};
use crate::ftl::allocation::AllocationConfig;

impl DeviceConfig {
    /// The soft threshold in blocks of a plane.
    pub fn soft_threshold(&self) -> u32 {
        self.gc.soft_threshold.of(self.geometry.blocks)
    }

    /// The hard threshold in blocks of a plane.
    pub fn hard_threshold(&self) -> u32 {
        self.gc.hard_threshold.of(self.geometry.blocks)
    }

    /// Blocks of a plane that are open for writing at a time.
    pub fn frontiers_per_plane(&self) -> u32 {
        match self.gc.frontiers {
            Frontiers::Separate => 2,
            Frontiers::Single => 1,
        }
    }

    /// The most mapping units that one plane must hold, on a full device.
    ///
    /// Flash pages' worth of units are dealt round the places that the address fixes: planes for a static scheme, the
    /// device or channels for a dynamic one. Inside those, a dynamic scheme can level to the unit.
    pub fn units_to_hold(&self) -> u64 {
        let (places, dealt) = self.dealt();
        let units = self.logical_units().div_ceil(dealt).div_ceil(places) * dealt;
        units.div_ceil(u64::from(self.total_planes()) / places)
    }

    /// How many places the address tells apart, and the units that go to one of them together.
    fn dealt(&self) -> (u64, u64) {
        let per_page = u64::from(self.units_per_page());
        match &self.allocation {
            AllocationConfig::Static(_) => (u64::from(self.total_planes()), per_page),
            AllocationConfig::Dynamic(options) => match options.pools(self) {
                1 => (1, 1),
                pools => (u64::from(pools), per_page),
            },
        }
    }

    /// Units that a plane can hold while `stock` of its blocks are free and a program is under way.
    fn room(&self, stock: u32) -> u64 {
        let blocks = self.geometry.blocks.saturating_sub(stock).saturating_sub(self.frontiers_per_plane());
        (u64::from(blocks) * self.sure_units()).saturating_sub(1)
    }

    /// Mapping units that a plane can hold beyond its share of a full device.
    pub fn units_to_spare(&self) -> u64 {
        self.room(self.soft_threshold()).saturating_sub(self.units_to_hold())
    }

    /// Units that are valid in each closed block at least when none would gain anything: D - U + 1.
    fn sure_units(&self) -> u64 {
        u64::from(self.data_units_per_block()) - u64::from(self.units_per_program()) + 1
    }

    /// Whether a full device can reach its soft threshold.
    pub fn reserve_ok(&self) -> bool {
        self.units_to_hold() <= self.room(self.soft_threshold())
    }

    /// The highest soft threshold, in blocks, that this device can reach when it is full; `None` when not even one
    /// block can be kept free.
    pub fn max_soft_threshold(&self) -> Option<u32> {
        let needed = self.units_to_hold() + 1;
        let blocks = needed.div_ceil(self.sure_units()) + u64::from(self.frontiers_per_plane());
        u64::from(self.geometry.blocks).checked_sub(blocks).filter(|stock| *stock > 0).map(|stock| stock as u32)
    }

    /// The most mapping units that the host may see with this soft threshold.
    pub fn max_logical_units(&self) -> u64 {
        let (places, dealt) = self.dealt();
        let per_place = self.room(self.soft_threshold()) * (u64::from(self.total_planes()) / places);
        per_place / dealt * dealt * places
    }

    /// The least `capacity.spare` with which a full device reaches its soft threshold, in steps of 0.0001; `None` when
    /// it would have to be 1.
    pub fn min_spare(&self) -> Option<f64> {
        // capacity.spare is counted in billionths: kept units = physical (1e9 - spare) / 1e9, rounded down.
        let most = u128::from(self.max_logical_units());
        if most == 0 {
            return None;
        }
        // kept < most + 1 units, as bytes and solved for the spare share, rounded up to whole steps of 1e-4.
        let limit = (most + 1) * u128::from(self.unit_bytes());
        let kept = (limit * 1_000_000_000 - 1) / u128::from(self.physical_bytes());
        let steps = 1_000_000_000u128.saturating_sub(kept).div_ceil(100_000);
        (steps < 10_000).then(|| steps as f64 / 10_000.0)
    }
}
