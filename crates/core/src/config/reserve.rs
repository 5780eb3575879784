//! Reserve: the number of free blocks that a full device can keep.
//!
//! Let B be the blocks of a plane, D the data units of a block, U the units of a program, f the open blocks (frontiers)
//! and S the soft threshold. When the host has written its whole address space, a plane holds L units. Garbage
//! collection moves a victim in whole programs and pads the last one, so it gains space only from blocks with U or more
//! invalid units. With S free blocks, B - S - f blocks are closed. One of these is certain to have U invalid units if
//! and only if L + 1 units would fit with U - 1 invalid ones in each: (B - S - f) (D - U + 1) >= L + 1. Otherwise
//! garbage collection could run forever and gain nothing, so the device is refused.
//!
//! Garbage collection has one of the f open blocks, unless it shares those of the host (`gc.frontiers`). Each class of
//! host writes has one (`temperature`). If only the reserve is free, a write whose class has no open block goes to the
//! block of another class. So do moved units that share the blocks of the host, so that the units of a victim find room
//! wherever there is any. Classes therefore need no further free blocks. With shared blocks, programs take one unit, so
//! nothing is padded between classes.
//!
//! Wear leveling that migrates data (`gc.wear`) has one more of the f open blocks: the worn block that is being filled
//! with cold data. A second worn block may be set aside while cold data are moved. It is taken only from blocks that
//! the host could use, and is given back if the migration has to wait, so nothing waits for it.
//!
//! Translation pages have blocks of their own, M in each plane, which B above does not include. One of the M is the
//! frontier, and one is kept free for moves. A translation page is a whole program, and a block holds P of them in the
//! cell mode of these blocks. With N translation pages in a plane, one of the other blocks has an invalid page if and
//! only if (M - 2) P >= N + 1. The share `map_spare` is kept free in addition. Garbage collection of these blocks needs
//! no other block. The translation pages that garbage collection of data changes can always be programmed. So the two
//! cannot deadlock.
//!
//! A lazy trigger (`gc.trigger`) may let garbage collection rest at the soft threshold. If a full device cannot keep S
//! free blocks, S stands for the free blocks at which garbage collection starts without the trigger: the hard
//! threshold, or the reserve if it is more. `gc.pace = "proportional"` does not allow this, because it keeps the free
//! space of S blocks. Nor do pools of garbage collection and migrations of wear leveling, which move units elsewhere.
//!
//! B does not include bad blocks (`faults`), nor the blocks of an SLC cache. Folding a block frees none of B. It leaves
//! the reserve, and host writes leave one more block than that, so that they do not take the block that folding has
//! found. So folding waits for garbage collection, which does not wait for it. Writes that wait for the cache wait for
//! folding, and thus for garbage collection of the same plane. Bad blocks of the cache count as if they were others.
//!
//! # Pools
//!
//! Pools of P planes that hold at most P L units have the same rule (`gc.scope`, `gc.destination`).
//!
//! 1. *Some plane can take a victim.* A job programs only its own plane, and starts a victim only if the plane has D
//!    units of room for copies. Host writes leave the last free block of a plane, and a job that takes it returns a
//!    block, to its own plane or to another one. When no job runs, the plane of the block that was erased last thus has
//!    a free block, or no block was erased yet and all planes have one. After a power cut, recovery erases the blocks
//!    that jobs had opened, because the victims still hold all units of these blocks.
//! 2. *Some victim gains space.* With F free blocks in the pool, P (B - f) - F blocks are closed. One of them has U
//!    invalid units if (P (B - f) - F) (D - U + 1) >= P L + 1. At the threshold, F <= P S, so the rule implies this.
//!    With `gc.scope = "plane"`, F counts the planes at their threshold. The others have more free blocks and take host
//!    writes. With `allocation.dynamic.active_blocks`, the host opens fewer blocks, so at least as many are closed.
//! 3. *The host finds room.* Above the threshold, the pool has more free blocks than the reserves of its planes
//!    together, so some plane takes host writes. With `gc.scope = "plane"`, a plane above its threshold does.
//!
//! # Superblocks
//!
//! A share of the blocks, one in n, holds parity (`superblock.parity`). The rule of pools holds for the others. Each
//! job pads its last program, so a superblock with Q blocks of data gains space if more than Q (U - 1) of its units are
//! invalid, and some superblock is certain to have these. A superblock is moved while another one is free, which has
//! room for Q D units, enough for any victim with padding. Host writes leave one superblock free, and the victim is
//! free after its erase.
//!
//! Host writes leave three superblocks with `[faults]`. If a superblock fails, it is not free after its units were
//! moved. Its units are moved while two others are free, so that one is left. If a superblock of host writes fails,
//! another one is opened while two are free. The device becomes read-only if a program fails while there are too few
//! for this. So one is left for garbage collection, or the open superblock of moved units has room for a victim.
//!
//! # Failing blocks
//!
//! Host writes leave two free blocks in each plane with `[faults]`, or three while a failed block of the plane waits
//! to be evacuated. The device becomes read-only if condition A or B of docs/model/gc.md is met. Otherwise the three
//! steps hold:
//!
//! 1. Without B, the plane of the last failure has room for the units of its job, and for D more when the job ends. A
//!    job takes the last but one free block, and the last one only if a program has failed. Its victim is then erased,
//!    in the same plane or in another one, or the erase fails, and B is checked for the plane of the block. So either
//!    the plane of the last erase has a free block, or the plane of the last failure has room for a victim. The
//!    evacuation of a failed block leaves room for two blocks, so it never takes this room.
//! 2. Whenever the host waits, each plane i has F_i <= 2 <= S free blocks. (With three, a failed block is evacuated,
//!    and the third is for the host.) So at least B_i - f - S of its B_i good blocks are closed. Without A, the sum of
//!    max(0, B_i - f - S) (D - U + 1) exceeds the units of the pool. If failed blocks hold units, closed blocks hold
//!    fewer. This does not depend on `gc.scope`: a pool whose planes have at most 2 free blocks each is at its
//!    threshold of 2 P or more, and so is each plane.
//! 3. A plane with more free blocks than its reserve takes host writes, as above.

use super::units::BlockCount;
use super::{BurstAmount, DeviceConfig, Frontiers, GcPace, GcScope};
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::gc::trigger::TriggerConfig;

impl DeviceConfig {
    /// Returns the number of free blocks of a plane that host writes leave: one for garbage collection, one for
    /// failures if blocks may fail, one for the block that is folded if there is an SLC cache, and one for the rest of
    /// a superblock that has failed.
    pub fn reserve(&self) -> u32 {
        let of_failures = u32::from(self.faults.is_some()) + u32::from(self.keeps_superblock());
        1 + of_failures + u32::from(self.slc_cache.is_some())
    }

    /// Returns the soft threshold in blocks of a plane. It is at least the reserve, unless that is one block.
    pub fn soft_threshold(&self) -> u32 {
        let soft = self.gc.soft_threshold.of(self.geometry.blocks);
        if self.reserve() > 1 { soft.max(self.reserve()) } else { soft }
    }

    /// Returns the least number of free blocks of a plane that a full device has to be able to keep.
    fn min_threshold(&self) -> u32 {
        let gc = &self.gc;
        let by_plane = gc.scope == GcScope::Plane && gc.destination == GcScope::Plane;
        match gc.trigger {
            TriggerConfig::Lazy(_) if gc.pace == GcPace::Queued && by_plane && !gc.wear.migrates() => {
                self.hard_threshold().max(self.reserve())
            }
            _ => self.soft_threshold(),
        }
    }

    /// Returns the number of free blocks of a plane that a full device can keep: the soft threshold if possible.
    pub fn sure_threshold(&self) -> u32 {
        let soft = self.soft_threshold();
        let can_keep = self.units_to_hold() <= self.room(soft, self.map_blocks());
        if can_keep { soft } else { self.min_threshold() }
    }

    /// Returns the number of programs of each plane in a burst of garbage collection; `None` without bursts.
    pub fn programs_of_burst(&self) -> Option<u32> {
        let GcPace::Burst(burst) = self.gc.pace else { return None };
        Some(match burst.amount {
            BurstAmount::Stripes(stripes) => stripes,
            BurstAmount::Units(units) => units.div_ceil(self.total_planes() * self.units_per_program()),
        })
    }

    /// Returns `true` if garbage collection keeps a level of free space that includes open blocks.
    pub fn keeps_level(&self) -> bool {
        matches!(self.gc.pace, GcPace::Proportional | GcPace::Burst(_))
    }

    /// Returns the number of planes whose blocks garbage collection considers together, if these are several.
    pub fn planes_per_collection(&self) -> Option<u32> {
        match &self.allocation {
            AllocationConfig::Dynamic(options) if self.gc.scope == GcScope::Pool => {
                Some(options.planes_per_pool(self)).filter(|planes| *planes > 1)
            }
            _ => None,
        }
    }

    /// Returns the soft and the hard threshold in blocks of a pool of this many planes. The soft threshold is at least
    /// the reserve of all planes, so that some plane has more than its reserve if the pool is above the threshold.
    pub fn thresholds_of_pool(&self, planes: u32) -> (u32, u32) {
        let reserve = planes * (1 + u32::from(self.faults.is_some()) + u32::from(self.keeps_superblock()));
        let of = |count| self.blocks_of_pool(count, planes);
        (of(self.gc.soft_threshold).max(reserve), of(self.gc.hard_threshold))
    }

    /// Returns the number of blocks of a pool that an option of garbage collection stands for: the sum of the numbers
    /// of its planes, or a share of all its blocks.
    pub fn blocks_of_pool(&self, count: BlockCount, planes: u32) -> u32 {
        match count {
            BlockCount::Blocks(blocks) => blocks * planes,
            share => share.of(self.geometry.blocks * planes),
        }
    }

    /// Returns the number of blocks of a plane that are bad when the device is new.
    pub fn factory_bad(&self) -> u32 {
        self.faults.as_ref().map_or(0, |faults| faults.factory_bad.of(self.geometry.blocks))
    }

    /// Returns the number of blocks of a plane that are good when the device is new.
    pub fn good_blocks(&self) -> u32 {
        self.geometry.blocks.saturating_sub(self.factory_bad())
    }

    /// Returns the hard threshold in blocks of a plane.
    pub fn hard_threshold(&self) -> u32 {
        self.gc.hard_threshold.of(self.geometry.blocks)
    }

    /// Returns the number of blocks of a plane that are open for writes at a time.
    pub fn frontiers_per_plane(&self) -> u32 {
        let classes = self.temperature.classes();
        let moved = match self.gc.frontiers {
            Frontiers::Separate => classes + 1,
            Frontiers::Single => classes,
        };
        moved + u32::from(self.gc.wear.migrates())
    }

    /// Returns the number of translation pages; 0 if the whole map is in memory.
    pub fn map_pages(&self) -> u32 {
        let translation = self.mapping.scheme.needs(self).translation;
        translation
            .map_or(0, |translation| self.logical_units().div_ceil(u64::from(translation.entries_per_page)) as u32)
    }

    /// Returns the number of blocks of a plane for translation pages; 0 if the whole map is in memory.
    pub fn map_blocks(&self) -> u32 {
        self.map_blocks_for(self.logical_units())
    }

    fn map_blocks_for(&self, units: u64) -> u32 {
        let Some(translation) = self.mapping.scheme.needs(self).translation else { return 0 };
        let pages = units.div_ceil(u64::from(translation.entries_per_page)).div_ceil(u64::from(self.total_planes()));
        let size = self.block_size(translation.cells);
        let per_block = u64::from(size.data_units / size.program_units);
        // Shares are decimal numbers of a few digits, so billionths are exact and the same on every machine.
        let used = 1_000_000_000u64.saturating_sub((translation.spare * 1e9 + 0.5) as u64);
        let blocks = ((pages + 1) * 1_000_000_000).div_ceil((per_block * used).max(1)) + 2;
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }

    /// Returns the maximum number of mapping units that one plane must hold on a full device.
    ///
    /// The address selects a plane with static allocation, and a channel or the whole device with dynamic allocation.
    /// Consecutive flash pages of units cycle through these places. Inside a place, dynamic allocation can level single
    /// units.
    pub fn units_to_hold(&self) -> u64 {
        self.units_of_a_place().div_ceil(u64::from(self.total_planes()) / self.dealt().0)
    }

    /// Returns the maximum number of mapping units in one of the places that the address selects, on a full device.
    pub fn units_of_a_place(&self) -> u64 {
        let (places, dealt) = self.dealt();
        self.mapped_units().div_ceil(dealt).div_ceil(places) * dealt
    }

    /// Returns the number of places that the address selects from, and the number of consecutive units that go to one
    /// place.
    fn dealt(&self) -> (u64, u64) {
        let per_page = u64::from(self.units_per_stripe());
        match &self.allocation {
            AllocationConfig::Static(_) | AllocationConfig::External(_) => (u64::from(self.total_planes()), per_page),
            AllocationConfig::Dynamic(options) => match options.pools(self) {
                1 => (1, 1),
                pools => (u64::from(pools), per_page),
            },
        }
    }

    /// Returns the number of units that a plane can hold with `free_blocks` free blocks and `map` blocks of translation
    /// pages, such that garbage collection can still gain space.
    fn room(&self, free_blocks: u32, map: u32) -> u64 {
        self.room_of(self.good_blocks(), free_blocks, map)
    }

    /// Returns the result of `room` for a plane with `good` good blocks.
    fn room_of(&self, good: u32, free_blocks: u32, map: u32) -> u64 {
        let kept = free_blocks.saturating_add(self.frontiers_per_plane()).saturating_add(map);
        let blocks = good.saturating_sub(kept.saturating_add(self.cache_blocks()));
        let (of, data) = self.data_planes();
        (u64::from(blocks) * self.sure_units() * data / of).saturating_sub(1)
    }

    /// Returns the number of mapping units that a plane with `good` good blocks can hold and still find a
    /// victim.
    pub fn units_of_a_plane_with(&self, good: u32) -> u64 {
        self.room_of(good, self.sure_threshold(), self.map_blocks())
    }

    /// Returns the number of mapping units that a plane can hold and still find a victim.
    pub fn units_of_a_plane(&self) -> u64 {
        self.room(self.sure_threshold(), self.map_blocks())
    }

    /// Returns the number of mapping units that a plane can hold beyond its share of a full device.
    pub fn units_to_spare(&self) -> u64 {
        self.units_of_a_plane().saturating_sub(self.units_to_hold())
    }

    /// Returns D - U + 1: the minimum number of valid units in each closed block if collecting none of them would gain
    /// space.
    fn sure_units(&self) -> u64 {
        u64::from(self.data_units_per_block()) - u64::from(self.units_per_program()) + 1
    }

    /// Returns the maximum number of logical blocks whose blocks are in the same planes, and the number of blocks that
    /// these planes can give them; `None` if the scheme does not map whole blocks. Each logical block keeps one block.
    /// While it is rewritten it takes a second one, from the blocks that are kept for this.
    fn logical_blocks(&self) -> Option<(u64, u64)> {
        let needs = self.mapping.scheme.needs(self).whole_blocks?;
        let stripe = u64::from(needs.stripe);
        let blocks = self.logical_units().div_ceil(u64::from(self.data_units_per_block()) * stripe) * stripe;
        let all = u64::from(self.good_blocks()) * u64::from(needs.planes);
        let together = blocks.div_ceil(u64::from(self.total_planes() / needs.planes));
        Some((together, all.saturating_sub(u64::from(needs.kept))))
    }

    /// Returns the number of planes whose blocks a mapping scheme shares among its logical blocks, and the number of
    /// good blocks that they need; `None` if the scheme does not map whole blocks.
    pub fn blocks_of_set(&self) -> Option<(u32, u32)> {
        let needs = self.mapping.scheme.needs(self).whole_blocks?;
        let (logical, _) = self.logical_blocks()?;
        Some((needs.planes, logical as u32 + needs.kept))
    }

    /// Returns the number of mapping units that planes with these numbers of good blocks can hold, if the mapping
    /// scheme maps whole blocks. Each set of planes holds the same share of the data.
    pub fn units_of_sets_with(&self, good: &[u32]) -> Option<u64> {
        let needs = self.mapping.scheme.needs(self).whole_blocks?;
        let sets = good.chunks(needs.planes as usize);
        let (count, blocks) = (sets.len(), sets.map(|set| set.iter().sum::<u32>().saturating_sub(needs.kept)));
        Some(u64::from(blocks.min().unwrap_or(0)) * count as u64 * u64::from(self.data_units_per_block()))
    }

    /// Returns `true` if garbage collection of a full device finds a victim whenever it has to.
    pub fn reserve_ok(&self) -> bool {
        if let Some((logical, most)) = self.logical_blocks() {
            return logical <= most;
        }
        self.units_to_hold() <= self.units_of_a_plane()
    }

    /// Returns the highest soft threshold in blocks that this device can reach when it is full; `None` if it cannot
    /// keep a single block free.
    pub fn max_soft_threshold(&self) -> Option<u32> {
        if let Some((logical, _)) = self.logical_blocks() {
            let own = self.mapping.scheme.needs(self).whole_blocks.map_or(0, |needs| match needs.logs {
                [] => u64::from(needs.kept - self.soft_threshold()),
                _ => 0,
            });
            let free = u64::from(self.good_blocks()).checked_sub(logical + own);
            return free.filter(|free| *free > 0).map(|free| free as u32);
        }
        let (of, data) = self.data_planes();
        let needed = ((self.units_to_hold() + 1) * of).div_ceil(data);
        let blocks = needed.div_ceil(self.sure_units()) + u64::from(self.frontiers_per_plane());
        let blocks = blocks + u64::from(self.map_blocks()) + u64::from(self.cache_blocks());
        u64::from(self.good_blocks())
            .checked_sub(blocks)
            .filter(|free_blocks| *free_blocks > 0)
            .map(|free_blocks| free_blocks as u32)
    }

    /// Returns the maximum number of mapping units that the host may see with these thresholds.
    pub fn max_logical_units(&self) -> u64 {
        let whole = self.mapping.scheme.needs(self).whole_blocks;
        if let (Some((_, blocks)), Some(needs)) = (self.logical_blocks(), whole) {
            let (all, stripe) = (blocks * u64::from(self.total_planes() / needs.planes), u64::from(needs.stripe));
            return all / stripe * stripe * u64::from(self.data_units_per_block());
        }
        // More units need more blocks for translation pages, which leaves fewer blocks for data.
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

    /// Returns the maximum number of mapped units if `map` blocks of each plane hold translation pages.
    fn logical_units_beside(&self, map: u32) -> u64 {
        let (places, dealt) = self.dealt();
        let per_place = self.room(self.min_threshold(), map) * (u64::from(self.total_planes()) / places);
        per_place / dealt * dealt * places
    }

    /// Returns the smallest `capacity.spare` with which a full device is accepted, in steps of 0.0001;
    /// `None` if it would have to be 1.
    pub fn min_spare(&self) -> Option<f64> {
        // `capacity.spare` is used in billionths: kept units = physical (1e9 - spare) / 1e9, rounded down.
        let most = u128::from(self.max_logical_units());
        if most == 0 {
            return None;
        }
        // The condition kept < most + 1 units, in bytes, is solved for the spare share and rounded up to steps of 1e-4.
        let limit = (most + 1) * u128::from(self.unit_bytes());
        let kept = (limit * 1_000_000_000 - 1) / u128::from(self.physical_bytes());
        let steps = 1_000_000_000u128.saturating_sub(kept).div_ceil(100_000);
        (steps < 10_000).then(|| steps as f64 / 10_000.0)
    }
}
