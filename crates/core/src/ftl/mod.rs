//! The flash translation layer (FTL): decides *what* is read and written, and where. It knows nothing of time.
//!
//! The FTL also runs by itself (functional mode). [`Ftl::write`], [`Ftl::trim`] and garbage collection then happen at
//! once, for preconditioning at tens of millions of page programs per second, and for checks against a reference model.
//! The router calls the same steps one by one in timed mode, as the flash array reaches them.

mod active;
pub mod allocation;
mod failing;
pub mod faults;
mod fold;
pub mod folding;
pub mod gc;
pub mod in_flight;
pub mod mapping;
pub mod mover;
pub mod partial;
pub mod rebuild;
pub mod refresh;
mod saving;
pub mod space;
pub mod temperature;

use std::collections::BTreeSet;

use allocation::active::Active;
use allocation::{Allocation, AllocationConfig, PlaneSet};
use faults::Faults;
use folding::Folding;
use gc::pools::Pools;
use gc::trigger::Trigger;
use mapping::{
    Change, Location, MappingScheme, MergeDefect, Outstanding, PADDING, PageMap, Place, Program, TRANSLATION,
};
use mover::copy::CopySource;
use partial::{PartialUnits, Update};
use refresh::Refresh;
use space::{FrontierId, Role, Space};
use temperature::Classes;

use crate::config::advanced::Waste;
use crate::config::cells::{BlockSize, CellMode};
use crate::config::units::BlockCount;
use crate::config::{BlockSummary, DeviceConfig, Frontiers, GcPace};
use crate::external::{Externals, Fault};
use crate::ftl::temperature::written::Written;
use crate::metrics::counters::{CopyCause, Counters, PoolUnits, ProgramCause, ReadCause};
use crate::nand::media::Media;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::sim::memory::Divider;

/// The FTL with its state.
#[derive(Clone, Debug)]
pub struct Ftl {
    /// The page map.
    pub map: PageMap,
    /// The mapping scheme; `None` while it is called.
    scheme: Option<Box<MappingScheme>>,
    /// True if the scheme is page mapping, which is inlined.
    has_page_map: bool,
    /// True if the scheme keeps all blocks of data.
    keeps_data: bool,
    /// True if each plane collects garbage by itself, with the usual pace.
    collects_simply: bool,
    /// Writes of functional mode to blocks that the scheme keeps.
    outstanding: Box<Outstanding>,
    /// The physical space.
    pub blocks: Space,
    /// Sector masks.
    pub partial: PartialUnits,
    /// Choice of planes for host writes.
    pub allocation: Allocation,
    /// Trigger of garbage collection.
    trigger: Trigger,
    /// State of garbage collection that planes share; `None` if each is collected by itself.
    pub pools: Option<Box<Pools>>,
    /// Temperature classes of units, if there are several.
    pub classes: Option<Box<Classes>>,
    /// Counters.
    pub counters: Counters,
    /// Units programmed in timed mode, indexed by pool of the allocation; empty if there is one pool.
    pub pool_units: Vec<PoolUnits>,
    /// Contents of flash, if they are verified.
    pub media: Option<Media>,
    /// Failures, if operations can fail.
    pub faults: Option<Box<Faults>>,
    /// Folding, if there is an SLC cache.
    pub folding: Option<Box<Folding>>,
    /// Blocks that wait for their refresh, if blocks are refreshed.
    pub refresh: Option<Box<Refresh>>,
    /// Number of writes and trims that have been numbered.
    pub sequence: u64,
    /// Number of logical units of the host. Those of the device itself follow them.
    pub host_units: u32,
    /// Expiry of blocks, during a lifetime in functional mode.
    pub life: Option<Life>,
    /// Test hook: a deliberate bug of merges.
    #[doc(hidden)]
    pub merge_defect: Option<MergeDefect>,
    shape: Shape,
    /// Limit of the active blocks of a pool, if there is one; otherwise each plane has one.
    pub active: Option<Box<Active>>,
    /// Planes that take host writes, by position in the order of the allocation. Used only if the scheme does not fix
    /// planes.
    ready: PlaneSet,
    /// Scratch space: the candidates whose next free block has the fewest erases.
    least_erased: PlaneSet,
    /// Plane of the last functional write, indexed by pool of the allocation and by class.
    filling: Vec<PlaneId>,
    /// Reused memory for the copies of functional garbage collection.
    copies: Vec<CopySource>,
}

/// Expiry of blocks, during a lifetime in functional mode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Life {
    /// Number of blocks that were erased beyond their endurance, or would have been.
    pub expired: u64,
    /// Units that the host had written at the first of them.
    pub first_expiry: Option<u64>,
    /// True if the good blocks can no longer hold all data of the host. Nothing may be written any more.
    pub is_worn_out: bool,
    /// Bytes that the host had written before the current unit.
    pub bytes_before: u64,
}

/// Parameters of the device that the FTL often needs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// True if pages of blocks may be left out, also the first one.
    pub leaves_out_pages: bool,
    /// Sectors of a mapping unit.
    pub sectors_per_unit: u32,
    /// `sectors_per_unit` as a divisor.
    pub unit_sectors: Divider,
    /// Mapping units of a page.
    pub units_per_page: Divider,
    /// Mapping units of a page in each of the planes that are programmed together, which garbage collection reads
    /// together.
    pub units_per_row: Divider,
    /// Number of consecutive units that go to the same plane or pool.
    pub units_per_stripe: Divider,
    /// Number of units that host writes change together; 1 without logical pages.
    pub units_per_logical_page: u32,
    /// Pages of a mapping unit.
    pub pages_per_unit: u32,
    /// Mapping units that one program command fills.
    pub units_per_program: u32,
    /// `units_per_program` as a divisor.
    pub program_units: Divider,
    /// Pages that one program command fills.
    pub pages_per_program: u32,
    /// Number of free blocks of a plane at or below which garbage collection runs.
    pub soft: u32,
    /// Number of free blocks of a plane at or below which garbage collection takes priority.
    pub hard: u32,
    /// Number of free blocks of a plane below which garbage collection runs in idle time; 0 while the host is not idle.
    pub until: u32,
    /// Number of free blocks of a plane at or below which garbage collection runs now, from `soft` and `until`.
    pub due: u32,
    /// Number of units that a victim of idle time frees (`gc.background.gain`).
    pub gain: u32,
    /// True if a host request interrupts victims of idle time (`gc.background.preempt`).
    pub preempts: bool,
    /// True if each block ends with a summary.
    pub summary: bool,
    /// Planes of the device.
    pub planes: u32,
    /// True if moved units go to the blocks that host writes go to.
    pub single_frontier: bool,
    /// Copy-back of pages by garbage collection.
    pub copy_back: Waste,
    /// True if copy-back moves a page only to an odd page if it is odd, and to an even one if it is even.
    pub copy_back_parity: bool,
    /// Number of translation pages.
    pub map_pages: u32,
    /// Blocks of a plane that are kept for translation pages.
    pub map_blocks: u32,
    /// Blocks of a plane that are in the SLC cache.
    pub cache_blocks: u32,
    /// True if jobs evacuate blocks other than victims: failed, refreshed or cold ones, or those of the SLC cache.
    pub evacuates_others: bool,
    /// True if erases may wait for trim records, which need room.
    pub trim_journal: bool,
    /// Number of temperature classes.
    pub classes: u32,
    /// True if garbage collection keeps pace with the host (`gc.pace`).
    pub paces: bool,
    /// True if garbage collection works in bursts of the whole device (`gc.pace`).
    pub bursts: bool,
    /// True if garbage collection keeps a level of free space that includes open blocks.
    pub keeps_level: bool,
    /// True if garbage collection precedes the host and holds the channel (`gc.pace`).
    pub is_exclusive: bool,
    /// True if each write may go to any plane of the device (dynamic allocation).
    pub one_pool: bool,
}

impl Shape {
    /// Returns the parameters of a device, without thresholds that change.
    pub fn new(device: &DeviceConfig) -> Shape {
        Shape {
            leaves_out_pages: device.mapping.scheme.needs(device).leaves_out_pages,
            sectors_per_unit: device.sectors_per_unit(),
            unit_sectors: Divider::new(device.sectors_per_unit()),
            units_per_page: Divider::new(device.units_per_page()),
            units_per_row: Divider::new(device.units_per_page() * device.planes_together()),
            units_per_stripe: Divider::new(device.units_per_stripe()),
            units_per_logical_page: device.units_per_logical_page(),
            pages_per_unit: device.pages_per_unit(),
            units_per_program: device.units_per_program(),
            program_units: Divider::new(device.units_per_program()),
            pages_per_program: device.pages_per_program() * device.pages_per_unit(),
            soft: device.soft_threshold(),
            hard: device.gc.hard_threshold.of(device.geometry.blocks),
            until: 0,
            due: device.soft_threshold(),
            gain: device
                .gc
                .background
                .as_ref()
                .map_or(0, |background| libm::ceil(background.gain * f64::from(device.data_units_per_block())) as u32),
            preempts: device.gc.background.as_ref().is_some_and(|background| background.preempt),
            summary: device.mapping.block_summary != BlockSummary::None,
            planes: device.total_planes(),
            single_frontier: device.gc.frontiers == Frontiers::Single,
            copy_back: device.nand.advanced.copy_back,
            copy_back_parity: device.nand.advanced.copy_back_parity,
            map_pages: device.map_pages(),
            map_blocks: device.map_blocks(),
            cache_blocks: device.cache_blocks(),
            evacuates_others: device.faults.is_some() || device.slc_cache.is_some() || device.gc.wear.migrates(),
            trim_journal: device.durability.trim_journal,
            classes: device.temperature.classes(),
            paces: device.gc.pace == GcPace::Proportional,
            bursts: device.programs_of_burst().is_some(),
            keeps_level: device.keeps_level(),
            is_exclusive: device.gc.pace == GcPace::Exclusive,
            one_pool: matches!(&device.allocation, AllocationConfig::Dynamic(options) if options.pools(device) == 1),
        }
    }

    fn set_due(&mut self) {
        self.due = self.soft.max(self.until.saturating_sub(1));
    }
}

impl Ftl {
    /// Creates an empty device. With `verify`, it keeps the contents of every sector, to check reads.
    pub fn new(device: &DeviceConfig, seed: u64, verify: bool, externals: &Externals) -> Result<Ftl, String> {
        let allocation = device.allocation.build(device, seed, externals).map_err(|e| format!("allocation: {e}"))?;
        let scheme =
            device.mapping.scheme.build(device, seed, externals).map_err(|e| format!("mapping.scheme: {e}"))?;
        let trigger = device.gc.trigger.build(device, seed, externals).map_err(|e| format!("gc.trigger: {e}"))?;
        let planes = device.total_planes();
        let mut ready = PlaneSet::new(planes);
        (0..planes).for_each(|position| ready.set(position, true));
        let mut ftl = Ftl {
            map: PageMap::new(device),
            shape: Shape::new(device),
            has_page_map: scheme.is_page_map(),
            keeps_data: false,
            collects_simply: false,
            outstanding: Box::default(),
            scheme: Some(Box::new(scheme)),
            blocks: Space::new(device, seed, trigger.has_ages(), externals)?,
            partial: PartialUnits::new(device.logical_units() as u32, device.sectors_per_unit()),
            pool_units: if allocation.pools() > 1 {
                vec![PoolUnits::default(); allocation.pools() as usize]
            } else {
                vec![]
            },
            filling: vec![PlaneId(0); (allocation.pools() * device.temperature.classes()) as usize],
            allocation,
            trigger,
            pools: Pools::new(device),
            classes: Classes::new(device, seed, externals)?,
            counters: Counters::default(),
            media: verify.then(|| Media::new(device)),
            faults: Faults::new(device, seed).map(Box::new),
            folding: Folding::new(device),
            refresh: Refresh::new(device),
            sequence: 0,
            life: None,
            merge_defect: None,
            host_units: device.logical_units() as u32,
            active: Active::new(device).map(Box::new),
            least_erased: PlaneSet::new(planes),
            ready,
            copies: Vec::with_capacity(device.units_per_block() as usize),
        };
        ftl.keeps_data = ftl.target(Program::Write(Lpn(0))).place != Place::Frontier;
        let is_paced = ftl.shape.paces || ftl.shape.bursts || ftl.shape.is_exclusive;
        ftl.collects_simply = !ftl.keeps_data && ftl.pools.is_none() && !is_paced;
        ftl.mark_factory_bad(device);
        if ftl.active.is_some() || ftl.blocks.has_superblocks() {
            (0..planes).for_each(|plane| ftl.refresh_ready(PlaneId(plane)));
        }
        Ok(ftl)
    }

    /// Returns the parameters of the device.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Makes garbage collection start at the hard threshold, or ends this.
    pub fn hold_gc(&mut self, device: &DeviceConfig, is_held: bool) {
        self.shape.soft = if is_held { self.shape.hard } else { device.soft_threshold() };
        self.shape.set_due();
        if let Some(pools) = &mut self.pools {
            pools.set_thresholds(device, is_held);
        }
    }

    /// Sets the number of free blocks below which garbage collection runs, as in idle time, or 0 for none. The number
    /// is that of a plane; pools multiply it by their planes.
    pub fn collect_below(&mut self, device: &DeviceConfig, until: BlockCount) {
        self.shape.until = until.of(device.geometry.blocks);
        self.shape.set_due();
        if let Some(pools) = &mut self.pools {
            pools.collect_below(device, until);
        }
    }

    /// Returns the plane of a translation page: its number modulo the number of planes, in the order of the allocation.
    pub fn map_home(&self, page: u32) -> PlaneId {
        self.allocation.order().plane(page % self.shape.planes)
    }

    /// Returns the pool in which a write of `lpn` waits if no plane is fixed for it. Units of one flash page share a
    /// pool.
    #[inline]
    pub fn pool(&self, lpn: Lpn) -> u32 {
        self.allocation.pool(self.shape.units_per_stripe.divide(lpn.0))
    }

    /// Chooses the plane of a write of `pool` among `candidates`, a set of positions in the scheme's order.
    pub fn choose(&mut self, pool: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        if !self.allocation.by_erases() {
            return self.allocation.choose(pool, candidates);
        }
        self.least_erased.copy_from(candidates);
        let plane = |position| self.allocation.order().plane(position);
        self.least_erased.keep_least(
            |position| self.allocation.pool_of(plane(position)) == pool,
            |position| self.blocks.erases_of_next(plane(position)),
        );
        self.allocation.choose(pool, &self.least_erased)
    }

    /// Returns the planes that take host writes, by position. Used only if the scheme does not fix planes.
    pub fn ready(&self) -> &PlaneSet {
        &self.ready
    }

    /// Returns the erases of the next free block of a plane if dynamic allocation considers them, and 0 otherwise.
    pub fn erases_that_count(&self, plane: PlaneId) -> u32 {
        if self.allocation.by_erases() { self.blocks.erases_of_next(plane) } else { 0 }
    }

    /// Returns the number of the (first) page of a unit within its block.
    #[inline]
    pub fn page_in_block(&self, ppn: Ppn) -> u32 {
        self.shape.units_per_page.divide(self.blocks.offset_in_block(ppn)) * self.shape.pages_per_unit
    }

    /// Returns the cell mode of the block of a unit, and the number of its page in the block. Returns `None` in native
    /// mode.
    pub fn cells_of(&self, ppn: Ppn) -> Option<(CellMode, u32)> {
        let cells = self.blocks.cells_at(ppn);
        (!cells.is_native()).then(|| (cells, self.page_in_block(ppn)))
    }

    /// Returns the number of units of a program of host writes, or of copies, that a physical address is part of.
    #[inline]
    pub fn program_units_at(&self, ppn: Ppn) -> u32 {
        match &self.folding {
            Some(_) => self.blocks.size(self.blocks.role_at(ppn)).program_units,
            None => self.shape.units_per_program,
        }
    }

    /// Returns the first unit of the program of `units` units that a physical address is part of.
    #[inline]
    pub fn start_of_program(&self, ppn: Ppn, units: u32) -> Ppn {
        Ppn(ppn.0 - self.blocks.offset_in_block(ppn) % units)
    }

    /// Prefetches the state that an invalidation of `lpn` will touch. Its map entry should be in the processor's cache
    /// by now.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        if let Location::Flash(ppn) = self.map.get(lpn) {
            self.blocks.prefetch(ppn);
        }
    }

    /// Prefetches the state of the victim policy that an invalidation of `lpn` will touch. Called after
    /// [`Ftl::prefetch`].
    #[inline]
    pub fn prefetch_candidate(&self, lpn: Lpn) {
        if let Location::Flash(ppn) = self.map.get(lpn) {
            self.blocks.prefetch_candidate(ppn);
        }
    }

    /// Adds a plane to the planes that take host writes, or removes it.
    #[inline]
    pub fn refresh_ready(&mut self, plane: PlaneId) {
        if self.active.is_some() {
            return self.refresh_active(plane);
        }
        let changed = if self.blocks.has_superblocks() { self.blocks.changed_with(plane) } else { None };
        for plane in changed.unwrap_or(plane.0..plane.0 + 1).map(PlaneId) {
            let position = self.allocation.order().position(plane);
            self.ready.set(position, self.blocks.takes_host_write(plane));
        }
    }

    /// Makes all host writes wait, or ends this.
    pub fn hold_host(&mut self, is_held: bool) {
        self.blocks.holds_host = is_held;
        (0..self.shape.planes).for_each(|plane| self.refresh_ready(PlaneId(plane)));
    }

    /// Returns the free units of a plane, open blocks included, that `gc.pace = "proportional"` and bursts keep: those
    /// of `gc.soft_threshold` free blocks, and of half a block for those that are open.
    #[inline]
    pub fn pace_level(&self) -> u32 {
        (2 * self.shape.soft + 1) * self.blocks.data_units() / 2
    }

    /// Returns the free units of the device below which a burst of garbage collection starts.
    #[inline]
    pub fn burst_level(&self) -> u64 {
        u64::from(self.pace_level()) * u64::from(self.shape.planes)
    }

    /// Counts a host write of some sectors of a unit.
    #[inline]
    pub fn note_update(&mut self, update: Update) {
        let counter = match update {
            Update::First => &mut self.counters.updates_first,
            Update::Covered => &mut self.counters.updates_covered,
            Update::Uncovered => &mut self.counters.updates_uncovered,
        };
        *counter += 1;
    }

    /// Counts a host write of `sectors` sectors of a unit.
    #[inline]
    pub fn note_host_unit(&mut self, sectors: u32) {
        self.counters.host_units += 1;
        self.counters.host_bytes += u64::from(sectors) * 512;
    }

    /// Counts one program command in a plane, which holds `units` units of data.
    #[inline]
    pub fn note_program_in(&mut self, plane: PlaneId, cause: ProgramCause, units: u32) {
        self.note_program(cause, units);
        self.note_in_pools(plane, cause, units);
    }

    #[inline]
    fn note_in_pools(&mut self, plane: PlaneId, cause: ProgramCause, units: u32) {
        if !self.pool_units.is_empty() {
            self.note_in_pool(plane, cause, units);
        }
    }

    #[cold]
    fn note_in_pool(&mut self, plane: PlaneId, cause: ProgramCause, units: u32) {
        let counts = &mut self.pool_units[self.allocation.pool_of(plane) as usize];
        let count = match cause {
            ProgramCause::Gc
            | ProgramCause::Wear
            | ProgramCause::Fold
            | ProgramCause::Rebuild
            | ProgramCause::Refresh => &mut counts.moved,
            _ => &mut counts.written,
        };
        *count += u64::from(units);
    }

    /// Counts a program of `count` writes of the host, or of the device itself, at a frontier. It is `lent` if it takes
    /// pages that are reserved for copies.
    #[inline(always)]
    pub fn note_writes(
        &mut self,
        plane: PlaneId,
        (at, lent): (FrontierId, bool),
        cause: ProgramCause,
        class: u8,
        count: u32,
    ) {
        let is_elsewhere = || lent || at != self.blocks.host_frontier(plane, class);
        if cause == ProgramCause::Host && self.classes.is_some() && is_elsewhere() {
            self.note_elsewhere(class, count);
        }
        if self.blocks.is_cache_frontier(at) {
            self.note_cache_program(plane, cause, count);
        } else {
            self.note_program_in(plane, cause, count);
        }
    }

    /// Counts one program command in a native block, which holds `units` units of data.
    #[inline]
    pub fn note_program(&mut self, cause: ProgramCause, units: u32) {
        let Shape { units_per_program: program_units, pages_per_program: program_pages, .. } = self.shape;
        self.note_program_of(&BlockSize { units: 0, data_units: 0, program_units, program_pages }, cause, units);
    }

    /// Counts one program command in a block of this size, which holds `units` units of data.
    #[inline(always)]
    fn note_program_of(&mut self, size: &BlockSize, cause: ProgramCause, units: u32) {
        let shape = &self.shape;
        let pages = size.program_pages;
        let with_data = if shape.pages_per_unit > 1 {
            pages
        } else {
            shape.units_per_page.divide(units + shape.units_per_page.divisor() - 1)
        };
        self.counters.program_commands += u64::from(shape.pages_per_unit);
        self.counters.pages_programmed[cause as usize] += u64::from(with_data);
        self.counters.pages_programmed[ProgramCause::Padding as usize] += u64::from(pages - with_data);
        self.counters.units_programmed += u64::from(units);
        self.counters.units_padded += u64::from(size.program_units - units);
    }

    /// Counts a page with `units` units of data of a victim that was moved within its plane.
    pub fn note_copy_back(&mut self, victim: BlockId, units: u32) {
        self.note_read(self.blocks.cause_of_read(victim), self.shape.pages_per_unit);
        self.note_program_in(self.blocks.plane_of(victim), self.blocks.cause_of_copy(victim), units);
        self.counters.copy_backs += u64::from(self.shape.pages_per_unit);
    }

    /// Programs the next `units` units of a frontier, which are whole pages, without data.
    pub fn waste(&mut self, at: FrontierId, units: u32, cause: ProgramCause) {
        let ppn = self.blocks.advance(at, units);
        for unit in ppn.0..ppn.0 + units {
            self.map.set_owner(Ppn(unit), PADDING);
        }
        let pages = self.shape.units_per_page.divide(units) * self.shape.pages_per_unit;
        self.counters.pages_programmed[cause as usize] += u64::from(pages);
        self.counters.units_padded += u64::from(units);
    }

    /// Counts a program of a summary page, in a block of this role.
    pub fn note_summary(&mut self, role: Role) {
        self.counters.program_commands += 1;
        let pages = u64::from(self.blocks.size(role).program_pages);
        self.counters.pages_programmed[ProgramCause::Summary as usize] += pages;
        self.counters.slc.pages_programmed[ProgramCause::Summary as usize] +=
            if self.blocks.cells(role).is_native() { 0 } else { pages };
    }

    /// Counts a read of `pages` pages.
    #[inline]
    pub fn note_read(&mut self, cause: ReadCause, pages: u32) {
        self.counters.read_commands += u64::from(pages);
        self.counters.pages_read[cause as usize] += u64::from(pages);
    }

    /// Counts the choice of a victim. `erasing` blocks of the plane hold no data any more: they await their erase or
    /// are being erased.
    pub fn note_victim(&mut self, plane: PlaneId, victim: BlockId, erasing: u32) {
        let is_background = self.blocks.block(victim).moved_for == CopyCause::Background;
        self.counters.background.victims += u64::from(is_background);
        self.counters.victims += 1;
        self.counters.victim_valid_units += u64::from(self.blocks.block(victim).valid);
        self.counters.free_blocks_at_choice += u64::from(self.blocks.free_blocks(plane, Role::Data) + erasing);
        self.counters.open_units_at_choice += u64::from(self.blocks.open_units(plane, Role::Data));
    }

    /// Counts a cold block whose data are moved into worn blocks.
    pub fn note_migration(&mut self) {
        self.counters.migrations += 1;
    }

    /// Writes a whole or a partial unit at once, in functional mode. Writes the sectors from `first` to before `end`.
    pub fn write(&mut self, lpn: Lpn, first: u32, end: u32, version: u32) {
        self.write_for(lpn, first, end, version, Written { sectors: end - first, ..Written::default() });
    }

    /// Writes a unit like [`Ftl::write`], for a request that the temperature policy sees.
    pub fn write_for(&mut self, lpn: Lpn, first: u32, end: u32, version: u32, request: Written) {
        self.settle(lpn);
        let old = self.map.get(lpn);
        let mapped = old != Location::Unmapped;
        let update = self.partial.write(lpn.0, mapped, first, end);
        self.note_update(update);
        if update == Update::Uncovered {
            self.note_read(ReadCause::Rmw, self.shape.pages_per_unit);
        }
        self.counters.host_bytes += u64::from(end - first) * 512;
        let class = self.classify(lpn, old, request);
        self.place_now(lpn, old, Some((first, end, version)), class);
    }

    /// Writes a unit again with the data that it holds, because a request writes other units of its logical page. Does
    /// nothing if the unit holds no data.
    pub fn rewrite(&mut self, lpn: Lpn) {
        self.settle(lpn);
        let old = self.map.get(lpn);
        if old == Location::Unmapped {
            return;
        }
        self.note_read(ReadCause::Rmw, self.shape.pages_per_unit);
        let class = self.class_of(lpn.0);
        let host_units = self.counters.host_units;
        self.place_now(lpn, old, Some((0, 0, 0)), class);
        self.counters.units_rewritten += self.counters.host_units - host_units;
        self.counters.host_units = host_units;
    }

    /// Classifies a unit that a request writes, and that is at `old`. Returns its class.
    #[inline]
    pub fn classify(&mut self, lpn: Lpn, old: Location, request: Written) -> u8 {
        let clock = self.blocks.clock;
        let written = Written { lpn: lpn.0, again: old != Location::Unmapped, clock, ..request };
        self.classes.as_mut().map_or(0, |classes| classes.classify(written))
    }

    /// Returns the class of a unit's last write.
    #[inline]
    pub fn class_of(&self, lpn: u32) -> u8 {
        self.classes.as_ref().map_or(0, |classes| classes.of(lpn))
    }

    /// Counts a unit that has been moved.
    #[inline]
    pub fn note_moved(&mut self, lpn: Lpn, cause: CopyCause) {
        let counted = if cause == CopyCause::Background { CopyCause::Gc } else { cause };
        self.counters.background.units_moved += u64::from(counted != cause);
        self.counters.moved[counted as usize] += 1;
        if let Some(classes) = &mut self.classes {
            classes.note_moved(lpn.0);
        }
    }

    /// Counts host units that go to a frontier of another class.
    #[inline]
    pub fn note_elsewhere(&mut self, class: u8, units: u32) {
        if let Some(classes) = &mut self.classes {
            classes.note_elsewhere(class, units);
        }
    }

    /// Writes a whole unit at once. This is the fast path of preconditioning.
    #[inline]
    pub fn write_whole(&mut self, lpn: Lpn) {
        self.settle(lpn);
        let old = self.map.get(lpn);
        let mapped = old != Location::Unmapped;
        let sectors = self.shape.sectors_per_unit;
        let update = self.partial.write(lpn.0, mapped, 0, sectors);
        self.note_update(update);
        self.counters.host_bytes += u64::from(sectors) * 512;
        let class = self.classify(lpn, old, Written { sectors, ..Written::default() });
        self.place_now(lpn, old, None, class);
    }

    /// Writes a whole, unmapped unit at once, to a plane that the caller chooses.
    pub fn write_to(&mut self, plane: PlaneId, lpn: Lpn) {
        debug_assert_eq!(self.map.get(lpn), Location::Unmapped);
        let sectors = self.shape.sectors_per_unit;
        let update = self.partial.write(lpn.0, false, 0, sectors);
        self.note_update(update);
        self.counters.host_bytes += u64::from(sectors) * 512;
        let class = self.classify(lpn, Location::Unmapped, Written { sectors, ..Written::default() });
        self.place_on(plane, lpn, Location::Unmapped, None, class);
    }

    #[inline]
    fn place_now(&mut self, lpn: Lpn, old: Location, contents: Option<(u32, u32, u32)>, class: u8) {
        if self.write_kept(lpn, contents) {
            return;
        }
        let plane = if self.shape.one_pool {
            self.choose_now(0, class)
        } else {
            self.home(lpn).or_else(|| self.choose_now(self.pool(lpn), class))
        };
        let Some(plane) = plane else { return };
        let plane = if self.pools.is_some() { self.with_room(plane, class) } else { Some(plane) };
        if let Some(plane) = plane {
            self.place_on(plane, lpn, old, contents, class);
        }
    }

    /// Returns a plane with room for a write after garbage collection of its pool: `plane`, or another one if copies
    /// have taken its room.
    #[cold]
    fn with_room(&mut self, plane: PlaneId, class: u8) -> Option<PlaneId> {
        if self.blocks.room(self.blocks.host_frontier(plane, class)) > 0 || !self.open_for_host(plane) {
            return Some(plane);
        }
        if self.blocks.takes_host_write(plane) {
            return Some(plane);
        }
        let pool = self.allocation.pool_of(plane);
        let chosen = self.choose_plane_now(pool)?;
        self.filling[(pool * self.shape.classes) as usize + usize::from(class)] = chosen;
        Some(chosen)
    }

    /// Writes a unit to a plane, unless the plane has no room because the device is worn out.
    #[inline]
    fn place_on(&mut self, plane: PlaneId, lpn: Lpn, old: Location, contents: Option<(u32, u32, u32)>, class: u8) {
        if self.folding.is_some() && self.place_in_cache(plane, lpn, old, contents) {
            return;
        }
        let own = self.blocks.host_frontier(plane, class);
        // Opening a block may start garbage collection, which may move `lpn` itself.
        if self.blocks.room(own) == 0 && !self.open_for_host(plane) {
            return;
        }
        let at = self.blocks.native_frontier_for_host(plane, class);
        if at != own {
            self.note_elsewhere(class, 1);
        }
        let ppn = self.program_now(at, ProgramCause::Host, lpn.0);
        self.written_now(lpn, old, ppn, contents);
        self.close_if_full(ppn, at, Role::Data);
        if self.blocks.has_superblocks() {
            self.program_parity_now(plane);
        }
        if self.shape.keeps_level && self.blocks.room(at).is_multiple_of(self.shape.units_per_program) {
            self.keep_pace(plane);
        } else if self.shape.single_frontier && self.blocks.offset_in_block(ppn) + 1 == self.shape.units_per_program {
            self.collect_until(plane, self.shape.soft + 1);
        }
    }

    /// Ends a host write that was programmed without time. `old` is the location of its unit when the write arrived.
    #[inline]
    pub fn written_now(&mut self, lpn: Lpn, old: Location, ppn: Ppn, contents: Option<(u32, u32, u32)>) {
        self.blocks.clock += 1;
        self.counters.host_units += 1;
        let old = if old == Location::Unmapped { old } else { self.map.get(lpn) };
        if let Some(media) = &mut self.media {
            let from = if let Location::Flash(ppn) = old { Some(ppn) } else { None };
            media.write(ppn, from, contents);
        }
        let keeps = contents.is_some_and(|(first, end, _)| end - first < self.shape.sectors_per_unit);
        if let (Location::Flash(old_ppn), true) = (old, keeps) {
            self.copy_loss(old_ppn, ppn);
        }
        if let Location::Flash(ppn) = old {
            self.blocks.invalidate(ppn);
            self.counters.units_invalidated += 1;
        }
        self.map.set_flash(lpn, ppn);
        self.changed_now(lpn, Change::Entry);
        self.blocks.validate(ppn);
    }

    /// Chooses a plane for a host write of a pool and class. The plane changes only when a program is full. Returns
    /// `None` if no plane has room because the device is worn out.
    fn choose_now(&mut self, pool: u32, class: u8) -> Option<PlaneId> {
        let index = (pool * self.shape.classes) as usize + usize::from(class);
        let filling = self.filling[index];
        let begun = match &self.folding {
            Some(folding) => folding.has_begun(&self.blocks, filling),
            None => {
                let room = self.blocks.room(self.blocks.host_frontier(filling, class));
                self.shape.program_units.divide_with_rest(room).1 != 0
            }
        };
        if begun && (self.shape.one_pool || self.allocation.pool_of(filling) == pool) {
            return Some(filling);
        }
        let chosen = self.choose_plane_now(pool)?;
        self.filling[index] = chosen;
        Some(chosen)
    }

    fn choose_plane_now(&mut self, pool: u32) -> Option<PlaneId> {
        if let Some(plane) = self.choose_ready(pool) {
            return Some(plane);
        }
        // At a low threshold, all planes may be down to their reserve before garbage is collected.
        let chosen = loop {
            let before = self.counters.victims;
            for plane in (0..self.shape.planes).map(PlaneId) {
                if self.allocation.pool_of(plane) == pool {
                    self.collect_until(plane, self.shape.soft + 1);
                    // Writes may wait for the SLC cache.
                    while self.blocks.waits_for_folding(plane) && self.fold_now(plane) {}
                }
            }
            let chosen = self.choose_ready(pool);
            // Copies of later planes may have filled earlier ones.
            if chosen.is_some() || !self.moves_anywhere() || self.counters.victims == before {
                break chosen;
            }
        };
        assert!(chosen.is_some() || self.life.is_some(), "an accepted device has a plane with room: config/check.rs");
        if chosen.is_none() {
            self.refuse_unit();
        }
        chosen
    }

    fn choose_ready(&mut self, pool: u32) -> Option<PlaneId> {
        let ready = std::mem::take(&mut self.ready);
        let chosen = self.choose(pool, &ready);
        self.ready = ready;
        chosen
    }

    /// Makes room for a host write, which takes a free block of the plane. Returns `false` if there is none because the
    /// device is worn out.
    ///
    /// If host writes and moved units have separate frontiers, garbage is collected before the block is opened. Moved
    /// units that share the host's block follow the host's first program in it, as in timed mode: the block is opened
    /// first, and garbage is collected after that program. The same order applies if garbage collection keeps a level
    /// of free space that includes open blocks.
    #[cold]
    fn open_for_host(&mut self, plane: PlaneId) -> bool {
        let shape = &self.shape;
        let collects_later = shape.single_frontier || shape.keeps_level;
        let free = if collects_later { self.blocks.reserve(plane, Role::Data) } else { shape.soft };
        self.collect_until(plane, free + 1);
        let finds_room = self.life.is_none() || self.blocks.takes_host_write(plane);
        if !finds_room {
            self.refuse_unit();
        }
        finds_room
    }

    /// Programs one unit at the next address of a frontier.
    #[inline]
    fn program_now(&mut self, at: FrontierId, cause: ProgramCause, lpn: u32) -> Ppn {
        let ppn = self.blocks.advance(at, 1);
        self.program_unit_now(ppn, cause, lpn);
        self.counters.units_programmed += 1;
        ppn
    }

    /// Programs one unit at an address. The caller counts the unit.
    #[inline]
    fn program_unit_now(&mut self, ppn: Ppn, cause: ProgramCause, lpn: u32) {
        self.map.set_owner(ppn, lpn);
        // A page is counted with its first unit.
        let (_, in_page) = self.shape.units_per_page.divide_with_rest(ppn.0);
        self.counters.pages_programmed[cause as usize] +=
            if in_page == 0 { u64::from(self.shape.pages_per_unit) } else { 0 };
    }

    /// Closes the block of `ppn`, which has this role, if that was its last unit of data. Counts its summary.
    #[inline(always)]
    fn close_if_full(&mut self, ppn: Ppn, at: FrontierId, role: Role) {
        if self.blocks.ends_data(Ppn(ppn.0 + 1), role) {
            self.close_full(self.blocks.block_of(ppn), at);
        }
    }

    fn close_full(&mut self, block: BlockId, at: FrontierId) {
        if self.shape.summary {
            self.note_summary(self.blocks.block(block).role);
        }
        if self.life.is_none() {
            self.blocks.close(block);
        } else if self.close(block) && !self.has_spare() {
            self.end_life();
        }
        if self.blocks.takes_host(at) {
            let plane = self.blocks.plane_of(block);
            self.refresh_ready(plane);
        }
    }

    /// Returns `true` if garbage of a plane, or of its pool, should be collected. `free_blocks` is its number
    /// of free blocks, including
    /// blocks that will be free soon. At the hard threshold, or at the reserve, the trigger is not called, because
    /// garbage collection needs a free block itself.
    #[inline]
    pub fn wants_gc(&mut self, plane: PlaneId, free_blocks: u32) -> bool {
        let region = self.blocks.collected_with(plane);
        self.blocks.sum_pool(region);
        free_blocks <= self.hard().max(self.blocks.reserve_of(region))
            || self.trigger.wants(&self.blocks.view(region).with_free(free_blocks))
    }

    /// Returns the fault of a policy that came with another program.
    pub fn fault(&self) -> Option<&Fault> {
        let classes = || self.classes.as_ref()?.fault();
        let scheme = || self.scheme.as_ref()?.fault();
        let space = self.blocks.fault().or_else(|| self.trigger.fault()).or_else(|| self.allocation.fault());
        space.or_else(classes).or_else(scheme)
    }

    /// Erases a block without dependents.
    pub fn erase_now(&mut self, block: BlockId) {
        if let Some(media) = &mut self.media {
            media.erase(block);
        }
        self.forget_lost(block);
        let cause = self.blocks.cause_of_erase(block);
        self.blocks.erased(block);
        if self.faults.is_some() {
            self.pay_map(self.blocks.plane_of(block));
        }
        self.counters.note_erase(cause);
    }

    /// Returns `true` if a mapping unit belongs to the device, not to the host.
    #[inline]
    pub fn is_own(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.host_units
    }

    /// Returns the number of the next write or trim.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Returns the address of the newest version of a unit in flash, if nothing newer is in flight.
    pub fn ppn_in_flash(&self, lpn: Lpn) -> Option<Ppn> {
        match self.map.get(lpn) {
            Location::Flash(ppn) => Some(ppn),
            _ => None,
        }
    }

    /// Returns the unit whose newest version in flash is at an address.
    pub fn newest_at(&self, ppn: Ppn) -> Option<Lpn> {
        let owner = self.map.owner(ppn);
        let is_unit = owner & TRANSLATION == 0;
        (is_unit && self.map.get(Lpn(owner)) == Location::Flash(ppn)).then_some(Lpn(owner))
    }

    /// Trims a unit at once, in functional mode.
    pub fn trim(&mut self, lpn: Lpn) {
        self.settle(lpn);
        if let Location::Flash(ppn) = self.map.get(lpn) {
            self.blocks.invalidate(ppn);
            self.map.unmap(lpn);
            self.changed_now(lpn, Change::Entry);
            self.partial.forget(lpn.0);
            self.counters.units_trimmed += 1;
            self.changed_now(lpn, Change::Trimmed);
        }
    }

    /// Completes the pages and wordlines that functional writes have started, so that timed writes start with whole
    /// ones.
    pub fn seal(&mut self) {
        if !self.keeps_data {
            self.seal_frontiers();
        }
        self.seal_kept(&mut |_, _, _| {});
    }

    fn seal_frontiers(&mut self) {
        let group = self.shape.units_per_program;
        for plane in (0..self.shape.planes).map(PlaneId) {
            for class in 0..self.shape.classes as u8 {
                self.pad(self.blocks.host_frontier(plane, class), group);
            }
            if self.folding.is_some() {
                self.seal_cache(plane);
            }
            // Timed garbage collection stops above the soft threshold. It would start at once in a plane left at the
            // threshold.
            if self.shape.keeps_level {
                self.keep_pace(plane);
            } else {
                self.collect_until(plane, self.shape.soft + 1);
            }
            self.pad(self.blocks.gc_frontier(plane), group);
            if self.blocks.has_wear_frontier() {
                self.pad(self.blocks.wear_frontier(plane), group);
            }
            self.refresh_ready(plane);
        }
        if self.shape.bursts {
            self.keep_level();
            for plane in (0..self.shape.planes).map(PlaneId) {
                self.pad(self.blocks.gc_frontier(plane), group);
                self.refresh_ready(plane);
            }
        }
        if self.moves_anywhere() {
            // Later planes may have moved units to earlier ones.
            (0..self.shape.planes).for_each(|plane| self.pad(self.blocks.gc_frontier(PlaneId(plane)), group));
        }
    }

    /// Pads a frontier to a multiple of `group` units.
    fn pad(&mut self, at: FrontierId, group: u32) {
        let Some((ppn, count)) = self.blocks.align(at, group) else { return };
        for unit in ppn.0..ppn.0 + count {
            self.map.set_owner(Ppn(unit), PADDING);
        }
        self.counters.units_padded += u64::from(count);
        // The page that was started is counted already.
        self.counters.pages_programmed[ProgramCause::Padding as usize] +=
            u64::from(self.shape.units_per_page.divide(count));
        self.close_if_full(Ppn(ppn.0 + count - 1), at, self.blocks.role_at(ppn));
        if self.blocks.has_superblocks() {
            self.program_parity_now(self.blocks.plane_of(self.blocks.block_of(ppn)));
        }
    }

    /// Returns the contents of the sectors `first..end` of a unit, in functional mode, for verification. Its
    /// writes must have been programmed: see [`Ftl::settle`].
    pub fn read_contents(&self, lpn: Lpn, first: u32, end: u32) -> Vec<u32> {
        match (self.map.get(lpn), &self.media) {
            (Location::Flash(ppn), Some(media)) => media.read(ppn)[first as usize..end as usize].to_vec(),
            _ => vec![0; (end - first) as usize],
        }
    }

    /// Test hook: checks the map and the blocks against a count from scratch. No write may be in flight. Writes that a
    /// read-only device cannot program are not, and the older version of such a unit may be in flash.
    pub fn recount(&self) -> Result<(), String> {
        self.blocks.recount()?;
        let mut mapped = 0u64;
        for lpn in 0..self.map.all() {
            if let Location::Flash(ppn) = self.map.get(Lpn(lpn)) {
                mapped += 1;
                if !self.blocks.is_valid(ppn) || self.map.owner(ppn) != lpn {
                    return Err(format!("LPN {lpn} is mapped to {}, which it does not own", ppn.0));
                }
            }
        }
        let valid = self.blocks.valid_data();
        let kept = self.count_kept()?;
        if valid != mapped + kept {
            return Err(format!(
                "{mapped} units are mapped, {kept} are kept for a read-only device, {valid} are valid"
            ));
        }
        self.scheme().recount(self)
    }

    /// Returns the number of units in flash whose newest version is only in the controller.
    fn count_kept(&self) -> Result<u64, String> {
        let blocks = self.blocks.all().iter().zip((0..).map(BlockId)).filter(|(block, _)| block.role != Role::Map);
        let units = blocks.flat_map(|(_, id)| (self.blocks.first_unit(id).0..).take(self.blocks.data_units() as usize));
        let mut kept = BTreeSet::new();
        for ppn in units.map(Ppn).filter(|&ppn| self.blocks.is_valid(ppn)) {
            let lpn = self.map.owner(ppn);
            if lpn >= self.map.all() {
                return Err(format!("padding is valid at {}", ppn.0));
            }
            if matches!(self.map.get(Lpn(lpn)), Location::Slot(_)) && !kept.insert(lpn) {
                return Err(format!("LPN {lpn} is valid at {} and at another address", ppn.0));
            }
        }
        Ok(kept.len() as u64)
    }
}
