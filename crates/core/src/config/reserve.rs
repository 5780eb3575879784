//! How many free blocks a full device can keep.
//!
//! Per plane let B be its blocks, D the data units of a block, U the units of a program, f the open blocks (frontiers)
//! and S the soft threshold. When the host has written its whole address space, a plane holds L units. Cleaning moves a
//! victim in whole programs and pads the last one, so it gains a block's U stale units or more and nothing of fewer.
//! With S blocks free, one of the B - S - f closed blocks has so many for certain if and only if they would hold L + 1
//! units with U - 1 stale ones in each: (B - S - f) (D - U + 1) >= L + 1. Without that, cleaning could go on forever
//! and gain nothing, so such a device is refused.
//!
//! Of the f open blocks one is that of cleaning, unless it shares the host's (`gc.frontiers`), and each class of what
//! the host writes has one (`temperature`). A write whose class has no open block, while only the reserve is free, goes
//! to that of another class, so that classes need no free blocks of their own beyond that; as do moved units where they
//! share the host's blocks, so that a victim's find room wherever there is any. Those devices program one unit at a
//! time, so that nothing is padded between classes.
//!
//! Translation pages have blocks of their own, M in each plane, and B above is what they leave. Of M one is the
//! frontier's and one is kept free for moving; a translation page is a whole program, of which a block holds P in the
//! cell mode of these blocks. With N translation pages in a plane, one of the others has a stale page if and only if
//! (M - 2) P >= N + 1. The share `map_spare` is kept free above that. Nothing that cleaning of these blocks does needs
//! any other block, and the translation pages that garbage collection of data needs can always be programmed, so that
//! the two cannot deadlock.
//!
//! Blocks that are bad (`faults`) are none of B.

use super::{DeviceConfig, Frontiers};
use crate::ftl::allocation::AllocationConfig;

impl DeviceConfig {
    /// The soft threshold in blocks of a plane. Where blocks may fail it is two at least: one is kept for what does.
    pub fn soft_threshold(&self) -> u32 {
        let soft = self.gc.soft_threshold.of(self.geometry.blocks);
        if self.faults.is_some() { soft.max(2) } else { soft }
    }

    /// Blocks of a plane that are bad when the device is new.
    pub fn factory_bad(&self) -> u32 {
        self.faults.as_ref().map_or(0, |faults| faults.factory_bad.of(self.geometry.blocks))
    }

    /// Blocks of a plane that are good when the device is new.
    fn good_blocks(&self) -> u32 {
        self.geometry.blocks.saturating_sub(self.factory_bad())
    }

    /// The hard threshold in blocks of a plane.
    pub fn hard_threshold(&self) -> u32 {
        self.gc.hard_threshold.of(self.geometry.blocks)
    }

    /// Blocks of a plane that are open for writing at a time.
    pub fn frontiers_per_plane(&self) -> u32 {
        let classes = self.temperature.classes();
        match self.gc.frontiers {
            Frontiers::Separate => classes + 1,
            Frontiers::Single => classes,
        }
    }

    /// Blocks of a plane that are kept for translation pages; 0 where the whole map is in memory.
    pub fn map_blocks(&self) -> u32 {
        self.map_blocks_for(self.logical_units())
    }

    fn map_blocks_for(&self, units: u64) -> u32 {
        let Some(translation) = self.mapping.scheme.needs(self).translation else { return 0 };
        let pages = units.div_ceil(u64::from(translation.entries_per_page)).div_ceil(u64::from(self.total_planes()));
        let size = self.block_size(translation.cells);
        let per_block = u64::from(size.data_units / size.program_units);
        // Shares are decimal numbers of a few digits: exact in billionths, the same on every machine.
        let used = 1_000_000_000u64.saturating_sub((translation.spare * 1e9 + 0.5) as u64);
        let blocks = ((pages + 1) * 1_000_000_000).div_ceil((per_block * used).max(1)) + 2;
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }

    /// The most mapping units that one plane must hold, on a full device.
    ///
    /// Flash pages' worth of units are dealt round the places that the address fixes: planes for a static scheme, the
    /// device or channels for a dynamic one. Inside those, a dynamic scheme can level to the unit.
    pub fn units_to_hold(&self) -> u64 {
        self.units_of_a_place().div_ceil(u64::from(self.total_planes()) / self.dealt().0)
    }

    /// The most mapping units that go to one of the places that the address fixes, on a full device.
    pub fn units_of_a_place(&self) -> u64 {
        let (places, dealt) = self.dealt();
        self.mapped_units().div_ceil(dealt).div_ceil(places) * dealt
    }

    /// How many places the address tells apart, and the units that go to one of them together.
    fn dealt(&self) -> (u64, u64) {
        let per_page = u64::from(self.units_per_page());
        match &self.allocation {
            AllocationConfig::Static(_) | AllocationConfig::External(_) => (u64::from(self.total_planes()), per_page),
            AllocationConfig::Dynamic(options) => match options.pools(self) {
                1 => (1, 1),
                pools => (u64::from(pools), per_page),
            },
        }
    }

    /// Units that a plane can hold while `free_blocks` of its blocks are free, `map` hold translation pages and a program is
    /// under way.
    fn room(&self, free_blocks: u32, map: u32) -> u64 {
        self.room_of(self.good_blocks(), free_blocks, map)
    }

    /// The same of a plane with so many good blocks.
    fn room_of(&self, good: u32, free_blocks: u32, map: u32) -> u64 {
        let blocks = good.saturating_sub(free_blocks).saturating_sub(self.frontiers_per_plane()).saturating_sub(map);
        (u64::from(blocks) * self.sure_units()).saturating_sub(1)
    }

    /// Mapping units that a plane with so many good blocks can hold and reach its soft threshold.
    pub fn units_of_a_plane_with(&self, good: u32) -> u64 {
        self.room_of(good, self.soft_threshold(), self.map_blocks())
    }

    /// Mapping units that a plane can hold and reach its soft threshold.
    pub fn units_of_a_plane(&self) -> u64 {
        self.room(self.soft_threshold(), self.map_blocks())
    }

    /// Mapping units that a plane can hold beyond its share of a full device.
    pub fn units_to_spare(&self) -> u64 {
        self.units_of_a_plane().saturating_sub(self.units_to_hold())
    }

    /// Units that are valid in each closed block at least when none would gain anything: D - U + 1.
    fn sure_units(&self) -> u64 {
        u64::from(self.data_units_per_block()) - u64::from(self.units_per_program()) + 1
    }

    /// With a scheme of whole blocks: the most logical blocks of a plane. Each keeps one block. While it is written
    /// anew, it has a second one of the free blocks, and copying the rest into it frees the first.
    fn logical_blocks_per_plane(&self) -> Option<u64> {
        if !self.mapping.scheme.needs(self).whole_blocks {
            return None;
        }
        let blocks = self.logical_units().div_ceil(u64::from(self.data_units_per_block()));
        Some(blocks.div_ceil(u64::from(self.total_planes())))
    }

    /// Whether a full device can reach its soft threshold.
    pub fn reserve_ok(&self) -> bool {
        if let Some(logical) = self.logical_blocks_per_plane() {
            return logical + u64::from(self.soft_threshold()) <= u64::from(self.geometry.blocks);
        }
        self.units_to_hold() <= self.units_of_a_plane()
    }

    /// The highest soft threshold, in blocks, that this device can reach when it is full; `None` when not even one
    /// block can be kept free.
    pub fn max_soft_threshold(&self) -> Option<u32> {
        if let Some(logical) = self.logical_blocks_per_plane() {
            let free = u64::from(self.geometry.blocks).checked_sub(logical);
            return free.filter(|free| *free > 0).map(|free| free as u32);
        }
        let needed = self.units_to_hold() + 1;
        let blocks = needed.div_ceil(self.sure_units()) + u64::from(self.frontiers_per_plane());
        let blocks = blocks + u64::from(self.map_blocks());
        u64::from(self.good_blocks())
            .checked_sub(blocks)
            .filter(|free_blocks| *free_blocks > 0)
            .map(|free_blocks| free_blocks as u32)
    }

    /// The most mapping units that the host may see with this soft threshold.
    pub fn max_logical_units(&self) -> u64 {
        if self.logical_blocks_per_plane().is_some() {
            let blocks = self.geometry.blocks.saturating_sub(self.soft_threshold());
            return u64::from(blocks) * u64::from(self.data_units_per_block()) * u64::from(self.total_planes());
        }
        // The more units the host sees, the more blocks their translation pages take and the fewer are left.
        let (mut least, mut most) = (0, self.logical_units_beside(0));
        while least < most {
            let units = (least + most).div_ceil(2);
            if units + self.own_units_for(units) <= self.logical_units_beside(self.map_blocks_for(units)) {
                least = units;
            } else {
                most = units - 1;
            }
        }
        least
    }

    /// The most mapping units that the host may see where so many blocks of a plane hold translation pages.
    fn logical_units_beside(&self, map: u32) -> u64 {
        let (places, dealt) = self.dealt();
        let per_place = self.room(self.soft_threshold(), map) * (u64::from(self.total_planes()) / places);
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
