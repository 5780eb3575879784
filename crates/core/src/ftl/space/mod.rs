//! The physical space: blocks, their states, free blocks, and write frontiers.

mod block;
mod buckets;
mod cache;
mod choice;
mod claim;
mod closed;
mod cold;
mod columns;
mod failing;
mod free;
mod frontiers;
mod leveling;
mod may_take;
mod pools;
mod ranks;
mod region;
mod reserve;
mod runs;
mod saving;
mod stripes;
mod superblocks;
mod victims;
mod view;
mod wear;

use std::collections::BTreeMap;

use crate::config::advanced::Waste;
use crate::config::cells::{BlockSize, CellMode};
use crate::config::{DeviceConfig, GcScope};
use crate::external::{Externals, Fault};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::sim::memory::{Divider, zeroed_words};
use crate::work::Purpose;
pub use block::{Block, BlockState};
pub use claim::{Claim, InHand, RESERVE};
pub use cold::ColdOrder;
pub use columns::{Candidates, Columns};
use free::FreeBlocks;
pub use free::FreeOrder;
pub(crate) use ranks::Ranks;
use region::{Cache, Frontier, Layout, Region};
pub use region::{FrontierId, RegionId, Role};
use stripes::Superblocks;
use victims::Victims;
pub use view::{BlockView, RegionView};
use wear::Leveling;

/// State of a plane.
#[derive(Clone, Debug, Default)]
struct Plane {
    /// Number of blocks that are bad, or will be when they are empty.
    bad: u32,
    /// Sum of the erases of all blocks.
    erases: u64,
}

/// The physical space of the device.
#[derive(Clone, Debug)]
pub struct Space {
    blocks: Vec<Block>,
    planes: Vec<Plane>,
    /// Free blocks of all regions.
    free: FreeBlocks,
    /// Indexed by role, and then by plane. The regions of pools follow, if garbage collection works by pool.
    regions: Vec<Region>,
    /// Number of planes of a pool, if garbage collection works by pool.
    pool_planes: Option<u32>,
    /// True if the units of victims of other planes may use the reserve of a plane (`gc.destination`).
    lends_reserve: bool,
    /// Number of free data blocks of each pool, if garbage collection works by pool.
    pool_free: Vec<u32>,
    /// Indexed by region.
    frontiers: Vec<Frontier>,
    layouts: [Layout; Role::ALL.len()],
    /// Indexed by role; `None` for a role without blocks.
    victims: [Option<Victims>; Role::ALL.len()],
    /// True if the victim policy has a row for each closed block, whose number is prefetched with the block.
    has_rows: bool,
    /// `None` if wear is not leveled.
    wear: Option<Box<Leveling>>,
    /// `None` without an SLC cache.
    cache: Option<Box<Cache>>,
    /// `None` if each block is used by itself.
    superblocks: Option<Box<Superblocks>>,
    /// Number of the first region of host writes: that of the cache, or of data.
    first_host_region: u32,
    /// True if wear is leveled, if blocks are refreshed, if there is an SLC cache, or if pages are rebuilt.
    moves_for_reasons: bool,
    /// True if all host writes of a plane go to the same frontier.
    has_one_host_frontier: bool,
    /// Valid physical units, a bit each.
    valid: Vec<u64>,
    units_per_block: Divider,
    blocks_per_plane: Divider,
    /// True if the blocks of all regions are in native mode.
    is_native: bool,
    /// Number of planes that open blocks of equal addresses if possible, because only those can be programmed together.
    group: u32,
    /// Number of frontiers of a data region.
    data_frontiers: u32,
    /// Position of the frontier of moved units among these.
    gc_frontier: u32,
    /// Number of temperature classes, each with a frontier of its own.
    classes: u32,
    /// Blocks in [`BlockState::AwaitingErase`], with the reasons for their erases. There are only a few per plane.
    awaiting_erase: BTreeMap<u32, Purpose>,
    /// True during a burst of garbage collection, in which no plane takes host writes.
    pub holds_host: bool,
    /// Units of the buffer that are dirty or in flight to flash, at which no more writes enter it. A burst of garbage
    /// collection may limit it.
    pub host_room: u64,
    /// Number of host writes, in units. It is the clock of victim policies.
    pub clock: u64,
    /// Number of erases after which a block that is closed is never collected again (`faults.wear_out = "exclude"`).
    excluded_after: Option<u32>,
    /// Test hook: erases blocks without waiting for their dependents.
    #[doc(hidden)]
    pub ignore_dependents: bool,
}

/// Number of the first free blocks of a plane that are searched, or shown to the wear policy.
const LOOK_AHEAD: usize = 8;

/// Returns the number of planes that open blocks of equal addresses if possible.
fn opening_group(device: &DeviceConfig) -> u32 {
    let advanced = &device.nand.advanced;
    // Not by `nand.concurrency`, which may differ between the devices that load a saved state.
    match (advanced.strict && advanced.multi_plane_program != Waste::Off, advanced.plane_pairs) {
        (false, _) => 1,
        (true, true) => 2,
        (true, false) => device.geometry.planes,
    }
}

/// Returns the regions of all planes with a role. All of their blocks are free.
fn regions(device: &DeviceConfig, layouts: &[Layout], role: Role) -> impl Iterator<Item = Region> {
    let layout = layouts[role as usize];
    let reserve = match role {
        Role::Data => device.reserve(),
        // Translation pages are moved when their block fails.
        Role::Map => RESERVE,
        // Folding takes its room from data. Blocks of parity are those of superblocks.
        Role::Cache | Role::Parity => 0,
    };
    (0..device.total_planes()).map(move |plane| Region {
        free: layout.blocks,
        invalid: 0,
        closed: 0,
        reserve,
        first: layout.first + plane * layout.frontiers(),
        plane: PlaneId(plane),
        planes: 1,
        role,
    })
}

impl Space {
    /// Creates a space of erased blocks. `has_ages` is true if policies other than victim policies need ages of
    /// blocks.
    pub fn new(device: &DeviceConfig, seed: u64, has_ages: bool, externals: &Externals) -> Result<Space, String> {
        let planes = device.total_planes();
        let per_plane = device.geometry.blocks;
        let layouts = Layout::of(device);
        let wear = Leveling::new(device, seed, externals)?;
        let has_ages = has_ages || wear.as_ref().is_some_and(|wear| wear.needs.ages);
        let pool_planes = device.planes_per_collection();
        let victim = |role: Role| match layouts[role as usize] {
            Layout { blocks: 0, .. } => Ok(None),
            Layout { size, .. } => {
                let together = if role == Role::Data { pool_planes.unwrap_or(1) } else { 1 };
                Victims::new(device, seed, size.data_units, has_ages, together, externals).map(Some)
            }
        };
        let mut free =
            FreeBlocks::new(planes, per_plane, wear.as_ref().map(|wear| wear.needs.free).unwrap_or_default());
        let cached = device.cache_blocks();
        let role_of = |block: u32| if block % per_plane < cached { Role::Cache } else { Role::Data };
        for block in (0..device.total_blocks()).filter(|block| role_of(*block) == Role::Data) {
            free.add(PlaneId(block / per_plane), BlockId(block), 0);
        }
        // Folding takes the blocks of the cache in their order.
        let victims = [victim(Role::Data)?, victim(Role::Map)?, None, None];
        let [data, _, cache, _] = &layouts;
        let blocks = (0..device.total_blocks()).map(|block| Block { role: role_of(block), ..Block::default() });
        let total_units = device.total_blocks() as usize * device.units_per_block() as usize;
        let mut space = Space {
            blocks: blocks.collect(),
            planes: vec![Plane::default(); planes as usize],
            free,
            regions: Role::ALL.into_iter().flat_map(|role| regions(device, &layouts, role)).collect(),
            frontiers: vec![Frontier::default(); (cache.first + planes * cache.frontiers()) as usize],
            valid: zeroed_words(total_units.div_ceil(64)),
            awaiting_erase: BTreeMap::new(),
            has_rows: victims.iter().flatten().any(|victims| victims.closed.has_rows()),
            victims,
            moves_for_reasons: wear.is_some() || cached > 0 || device.refresh().is_some() || device.rebuilds(),
            wear,
            first_host_region: if cached > 0 { Role::Cache as u32 * planes } else { 0 },
            has_one_host_frontier: cached == 0 && data.writes == 1,
            cache: Cache::new(device),
            superblocks: Superblocks::new(device),
            units_per_block: Divider::new(device.units_per_block()),
            blocks_per_plane: Divider::new(per_plane),
            is_native: layouts.iter().all(|layout| layout.cells.is_native()),
            group: opening_group(device),
            data_frontiers: data.frontiers(),
            gc_frontier: if data.is_shared { 0 } else { data.writes },
            classes: data.writes,
            layouts,
            holds_host: false,
            host_room: u64::MAX,
            clock: 0,
            pool_planes,
            lends_reserve: device.gc.destination == GcScope::Pool,
            pool_free: Vec::new(),
            excluded_after: device.excluded_after(),
            ignore_dependents: false,
        };
        space.add_pools();
        Ok(space)
    }

    /// Returns the block of a unit.
    #[inline]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.units_per_block.divide(ppn.0))
    }

    /// Returns the offset of a unit in its block.
    #[inline]
    pub fn offset_in_block(&self, ppn: Ppn) -> u32 {
        self.units_per_block.divide_with_rest(ppn.0).1
    }

    /// Returns the plane of a block.
    #[inline]
    pub fn plane_of(&self, block: BlockId) -> PlaneId {
        PlaneId(self.blocks_per_plane.divide(block.0))
    }

    /// Returns the first unit of a block.
    #[inline]
    pub fn first_unit(&self, block: BlockId) -> Ppn {
        Ppn(block.0 * self.units_per_block.divisor())
    }

    /// Returns the number of physical addresses of a block: its units in native mode, including its summary. In another
    /// mode, the block has only the first of these units.
    #[inline]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block.divisor()
    }

    /// Returns the capacity of a block of a role.
    #[inline]
    pub fn size(&self, role: Role) -> &BlockSize {
        &self.layouts[role as usize].size
    }

    /// Returns the capacity of a block that has been opened. A free block counts as data.
    #[inline]
    pub fn size_of(&self, block: BlockId) -> &BlockSize {
        self.size(self.block(block).role)
    }

    /// Returns the number of data units in a data block.
    #[inline]
    pub fn data_units(&self) -> u32 {
        self.size(Role::Data).data_units
    }

    /// Returns `true` if all blocks are in native mode.
    #[inline]
    pub fn is_native(&self) -> bool {
        self.is_native
    }

    /// Returns the cell mode of the blocks of a role.
    #[inline]
    pub fn cells(&self, role: Role) -> CellMode {
        self.layouts[role as usize].cells
    }

    /// Returns the cell mode of the block of a unit.
    #[inline]
    pub fn cells_at(&self, ppn: Ppn) -> CellMode {
        if self.is_native { CellMode::Native } else { self.cells(self.block(self.block_of(ppn)).role) }
    }

    /// Returns the state of a block.
    #[inline]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// Returns all blocks.
    pub fn all(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the blocks of a plane.
    pub fn of_plane(&self, plane: PlaneId) -> &[Block] {
        let count = self.blocks_per_plane.divisor() as usize;
        &self.blocks[plane.index() * count..][..count]
    }

    /// Returns the number of free blocks of a region.
    #[inline]
    pub fn free_blocks(&self, plane: PlaneId, role: Role) -> u32 {
        self.region_of(plane, role).free
    }

    /// Returns how often the lists of free blocks have changed.
    pub fn free_changes(&self) -> u64 {
        self.free.changes
    }

    /// Returns the number of free blocks that writes leave to garbage collection.
    #[inline]
    pub fn reserve(&self, plane: PlaneId, role: Role) -> u32 {
        self.region_of(plane, role).reserve
    }

    /// Returns the number of free blocks of a region that writes leave to garbage collection.
    #[inline]
    pub fn reserve_of(&self, region: RegionId) -> u32 {
        self.regions[region.0 as usize].reserve
    }

    /// Returns the number of valid units of data, without translation pages.
    pub fn valid_data(&self) -> u64 {
        self.blocks.iter().filter(|block| block.role != Role::Map).map(|block| u64::from(block.valid)).sum()
    }

    /// Returns `true` if a plane takes a write of the host.
    #[inline]
    pub fn takes_host_write(&self, plane: PlaneId) -> bool {
        !self.holds_host && self.has_host_room(plane)
    }

    /// Returns `true` if a plane has room for a write of the host, which may have to wait for the end of a burst.
    #[inline]
    pub fn has_host_room(&self, plane: PlaneId) -> bool {
        self.may_take(self.host_region(plane), Claim::WRITE) || self.takes_elsewhere(plane)
    }

    /// Takes the next `units` units of a frontier, in a new block if the open one is full. The caller has made sure
    /// that there is one. `units` divides the units of a block, so all of them lie in one block.
    #[inline]
    pub fn advance(&mut self, at: FrontierId, units: u32) -> Ppn {
        if self.frontiers[at.0 as usize].left == 0 {
            self.open_block(at);
        }
        let frontier = &mut self.frontiers[at.0 as usize];
        debug_assert!(frontier.left >= units);
        let ppn = Ppn(frontier.next);
        frontier.next += units;
        frontier.left -= units;
        if self.superblocks.is_some() {
            self.note_bound(at, ppn, units);
        }
        ppn
    }

    #[cold]
    fn open_block(&mut self, at: FrontierId) {
        if self.superblocks.is_some() {
            return self.open_superblock(at);
        }
        let &Region { plane, role, first, .. } = self.region_at(at);
        if role == Role::Cache {
            let block = self.take_of_cache(plane);
            return self.open_at(at, block, role);
        }
        let set_aside = if self.is_wear_frontier(at) { self.take_set_aside(plane) } else { None };
        let block = set_aside.unwrap_or_else(|| self.take_free_block(plane, role, at.0 - first));
        self.open_at(at, block, role);
    }

    /// Opens a block at a frontier.
    fn open_at(&mut self, at: FrontierId, block: BlockId, role: Role) {
        let left = self.size(role).data_units;
        self.frontiers[at.0 as usize] = Frontier { next: self.first_unit(block).0, left };
        self.blocks[block.index()].state = BlockState::Open;
        self.blocks[block.index()].role = role;
    }

    /// Takes a free block for a logical block. The caller has made sure that there is one.
    pub fn open_logical(&mut self, plane: PlaneId) -> BlockId {
        let block = self.take_free_block(plane, Role::Data, 0);
        let opened = &mut self.blocks[block.index()];
        (opened.state, opened.moved_for) = (BlockState::Logical, CopyCause::Merge);
        block
    }

    /// Takes a free block for a frontier. `frontier` is counted within its region.
    fn take_free_block(&mut self, plane: PlaneId, role: Role, frontier: u32) -> BlockId {
        assert!(self.region_of(plane, role).free > 0, "plane {} has no free block: the reserve was not kept", plane.0);
        let position = self.position_of_next(plane, role, frontier);
        let block = self.free.take(plane, position);
        self.take_free(plane, role);
        debug_assert_eq!(self.blocks[block.index()].state, BlockState::Free);
        block
    }

    /// Returns the position, among the free blocks of a plane, of the one that a frontier opens next. This is the first
    /// one, unless the wear policy picks another.
    fn position_of_next(&mut self, plane: PlaneId, role: Role, frontier: u32) -> usize {
        match self.group {
            1 if self.wear.is_none() => 0,
            1 => self.picked(plane, role),
            _ => self.position_of_same(plane, role, frontier),
        }
    }

    /// Returns the position of the free block that a frontier opens next if blocks of equal addresses are opened
    /// together. Prefers a block that a neighbor's frontier is in, or one that is free in all planes of the group. Only
    /// the first blocks are searched, so that many free blocks cost nothing.
    fn position_of_same(&self, plane: PlaneId, role: Role, frontier: u32) -> usize {
        let neighbors = plane.0 / self.group * self.group..(plane.0 / self.group + 1) * self.group;
        let opened = |index| {
            let sibling = |q: u32| FrontierId(self.region_of(PlaneId(q), role).first + frontier);
            let open = |&q: &u32| q != plane.0 && self.open_index(sibling(q)) == Some(index);
            neighbors.clone().any(|q| open(&q))
        };
        let free_in_all = |index| neighbors.clone().all(|q| self.is_free(PlaneId(q), index));
        self.find_free(plane, opened).or_else(|| self.find_free(plane, free_in_all)).unwrap_or(0)
    }

    /// Returns the address within its plane of the block that a frontier without room would open now, or `None` if no
    /// block is free.
    pub fn next_opened(&self, at: FrontierId) -> Option<u32> {
        let &Region { plane, role, first, .. } = self.region_at(at);
        if role == Role::Cache {
            return self.next_of_cache(plane).map(|block| self.index_in_plane(block));
        }
        if let Some(block) = self.set_aside_for(at) {
            return Some(self.index_in_plane(block));
        }
        let position = if self.group > 1 { self.position_of_same(plane, role, at.0 - first) } else { 0 };
        self.free.of(plane).nth(position).map(|block| self.index_in_plane(block))
    }

    /// Returns the number of erases of the first free block of a plane, or `u32::MAX` if none is free.
    pub fn erases_of_next(&self, plane: PlaneId) -> u32 {
        self.free.first(plane).map_or(u32::MAX, |block| self.block(block).erases)
    }

    /// Returns the position of the first free block of a plane whose address within the plane `will_do`, among the
    /// blocks that are searched.
    fn find_free(&self, plane: PlaneId, will_do: impl Fn(u32) -> bool) -> Option<usize> {
        self.free.of(plane).take(LOOK_AHEAD).position(|block| will_do(self.index_in_plane(block)))
    }

    /// Returns the address within its plane of a frontier's block, if that has room.
    fn open_index(&self, at: FrontierId) -> Option<u32> {
        self.next_ppn(at).map(|ppn| self.index_in_plane(self.block_of(ppn)))
    }

    /// Returns the address of a block within its plane.
    #[inline]
    pub fn index_in_plane(&self, block: BlockId) -> u32 {
        self.blocks_per_plane.divide_with_rest(block.0).1
    }

    /// Returns `true` if the block with this address in a plane is free.
    #[inline]
    fn is_free(&self, plane: PlaneId, index: u32) -> bool {
        self.blocks[(plane.0 * self.blocks_per_plane.divisor() + index) as usize].state == BlockState::Free
    }

    /// Marks a programmed unit as valid.
    #[inline]
    pub fn validate(&mut self, ppn: Ppn) {
        let bit = 1 << (ppn.0 % 64);
        debug_assert!(self.valid[(ppn.0 / 64) as usize] & bit == 0, "a unit is programmed once between erases");
        self.valid[(ppn.0 / 64) as usize] |= bit;
        let block = self.block_of(ppn);
        let block = &mut self.blocks[block.index()];
        (block.valid, block.written) = (block.valid + 1, block.written.wrapping_add(1));
    }

    /// Returns `true` if a unit is valid.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[(ppn.0 / 64) as usize] >> (ppn.0 % 64) & 1 == 1
    }

    /// Marks a valid unit as invalid: it was overwritten, trimmed or moved.
    #[inline]
    pub fn invalidate(&mut self, ppn: Ppn) {
        let word = &mut self.valid[(ppn.0 / 64) as usize];
        debug_assert!(*word >> (ppn.0 % 64) & 1 == 1, "only a valid unit becomes invalid");
        *word &= !(1 << (ppn.0 % 64));
        let id = self.block_of(ppn);
        let block = &mut self.blocks[id.index()];
        block.valid -= 1;
        if block.state == BlockState::Closed {
            let role = block.role;
            let valid = u32::from(block.valid);
            let plane = self.plane_of(id);
            if let Some(victims) = &mut self.victims[role as usize] {
                victims.update(plane, id, valid, self.clock);
            }
            self.region_mut(plane, role).invalid += 1;
        }
    }

    /// Returns `true` if the unit before `end` is the last data unit of its block, which has this role.
    #[inline]
    pub fn ends_data(&self, end: Ppn, role: Role) -> bool {
        self.offset_in_block(Ppn(end.0 - 1)) + 1 == self.size(role).data_units
    }

    /// Closes a block whose last program has ended. Garbage collection may choose it.
    pub fn close(&mut self, id: BlockId) {
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.state, BlockState::Open);
        block.state = BlockState::Closed;
        self.add_candidate(id);
    }

    /// Returns the fault of a victim policy or wear policy that came with another program.
    pub fn fault(&self) -> Option<&Fault> {
        let of_wear = || self.wear.as_ref()?.policy.fault();
        self.victims.iter().flatten().find_map(|victims| victims.fault()).or_else(of_wear)
    }

    /// Has a block wait for its dependents and then for its erase. All of its valid units have been read.
    pub fn await_erase(&mut self, id: BlockId) {
        self.await_erase_for(id, Purpose::OfClass);
    }

    /// Does the same for a block that was emptied for a purpose which its class does not name.
    pub fn await_erase_for(&mut self, id: BlockId, purpose: Purpose) {
        self.blocks[id.index()].state = BlockState::AwaitingErase;
        self.awaiting_erase.insert(id.0, purpose);
    }

    /// Returns the reason for the erase of a block that awaits it.
    pub fn purpose_of_erase(&self, id: BlockId) -> Purpose {
        self.awaiting_erase.get(&id.0).copied().unwrap_or_default()
    }

    /// Returns `true` if the mapping scheme keeps a block: it holds translation pages, or the scheme has opened it.
    #[inline]
    pub fn is_kept(&self, id: BlockId) -> bool {
        let Block { role, moved_for, .. } = self.blocks[id.index()];
        role == Role::Map || moved_for == CopyCause::Merge
    }

    /// Returns the blocks that the mapping scheme has opened and not given up.
    pub fn logical(&self) -> impl Iterator<Item = BlockId> + '_ {
        let blocks = (0..self.blocks.len() as u32).map(BlockId);
        blocks.filter(|&block| self.block(block).state == BlockState::Logical)
    }

    /// Returns the blocks that await their erase.
    pub fn awaiting_erase(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.awaiting_erase.keys().copied().map(BlockId)
    }

    /// Returns `true` if a block awaits its erase and nothing depends on it.
    #[inline]
    pub fn can_erase(&self, id: BlockId) -> bool {
        let block = &self.blocks[id.index()];
        block.state == BlockState::AwaitingErase
            && (block.dependents == 0 || self.ignore_dependents)
            && (self.superblocks.is_none() || self.are_erasable(id))
    }

    /// Adds a dependent to the block of `ppn`. Returns the block.
    #[inline]
    pub fn depend(&mut self, ppn: Ppn) -> BlockId {
        let id = self.block_of(ppn);
        self.blocks[id.index()].dependents += 1;
        id
    }

    /// Adds dependents to a block.
    #[inline]
    pub fn depend_on(&mut self, id: BlockId, dependents: u32) {
        self.blocks[id.index()].dependents += dependents as u16;
    }

    /// Removes dependents that [`Space::depend_on`] has added, from a block that cannot be erased yet.
    #[inline]
    pub fn release_from(&mut self, id: BlockId, dependents: u32) {
        self.blocks[id.index()].dependents -= dependents as u16;
    }

    /// Removes a dependent. Returns `true` if the block can be erased now.
    #[inline]
    pub fn release(&mut self, id: BlockId) -> bool {
        let block = &mut self.blocks[id.index()];
        block.dependents -= 1;
        block.dependents == 0
            && block.state == BlockState::AwaitingErase
            && !self.ignore_dependents
            && (self.superblocks.is_none() || self.are_erasable(id))
    }

    /// Returns an erased block to the free blocks of its region, unless the wear policy fills it with cold data.
    pub fn erased(&mut self, id: BlockId) {
        let plane = self.plane_of(id);
        self.awaiting_erase.remove(&id.0);
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.valid, 0, "an erased block holds no valid units");
        block.erases += 1;
        self.planes[plane.index()].erases += 1;
        if self.superblocks.is_some() {
            return self.member_erased(id);
        }
        let block = &mut self.blocks[id.index()];
        block.state = BlockState::Free;
        let free = self.role_of_free(id);
        let role = std::mem::replace(&mut self.blocks[id.index()].role, free);
        self.add_free(plane, role);
        if free == Role::Cache {
            return;
        }
        if self.wear.is_some() && self.level_after(plane, role, id) {
            return;
        }
        self.free.add(plane, id, self.block(id).erases);
    }

    /// Takes the units of a frontier up to the next multiple of `group`. Returns the first one and their number.
    pub fn align(&mut self, at: FrontierId, group: u32) -> Option<(Ppn, u32)> {
        let frontier = &mut self.frontiers[at.0 as usize];
        let over = frontier.left % group;
        if over == 0 {
            return None;
        }
        let ppn = Ppn(frontier.next);
        frontier.next += over;
        frontier.left -= over;
        if self.superblocks.is_some() {
            self.note_bound(at, ppn, over);
        }
        Some((ppn, over))
    }

    /// Returns the number of units of a block that have been written. Only for devices at rest without logical blocks.
    pub fn written_of(&self, id: BlockId) -> u32 {
        match self.block(id).state {
            BlockState::Closed if self.block(id).role == Role::Parity => self.parity_units(id),
            BlockState::Closed | BlockState::WornOut => self.size_of(id).data_units,
            BlockState::Open => self.frontier_in(id).map_or(0, |at| self.size_of(id).data_units - self.room(at)),
            _ => 0,
        }
    }

    /// Restores the blocks after a recovery. `closed` are the blocks with data, oldest first; their valid units are
    /// marked. They are closed, or belong to the mapping scheme. All other blocks are free.
    pub fn restore(&mut self, closed: &[BlockId], erases: &[u32], state: BlockState) {
        for (block, &erases) in self.blocks.iter_mut().zip(erases) {
            block.erases = erases;
        }
        self.count_erases();
        let is_closed = state == BlockState::Closed;
        for &id in closed {
            let block = &mut self.blocks[id.index()];
            block.state = if is_closed { BlockState::Open } else { state };
            block.moved_for = if is_closed { block.moved_for } else { CopyCause::Merge };
        }
        for plane in 0..self.planes.len() as u32 {
            let per_plane = self.blocks_per_plane.divisor();
            self.list_free(plane * per_plane..(plane + 1) * per_plane);
        }
        closed
            .iter()
            .filter(|&&id| is_closed && !self.block(id).failed)
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|id| _ = self.close_or_exclude(id));
    }

    /// Prefetches the state that an invalidation of a unit will touch.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        let id = self.block_of(ppn);
        crate::sim::memory::prefetch(&self.valid, (ppn.0 / 64) as usize);
        crate::sim::memory::prefetch(&self.blocks, id.index());
        if self.has_rows
            && let Some(victims) = &self.victims[Role::Data as usize]
        {
            victims.closed.prefetch_row(id);
        }
    }

    /// Prefetches the state of the victim policy that an invalidation of a data unit will touch. Called after
    /// [`Space::prefetch`].
    #[inline]
    pub fn prefetch_candidate(&self, ppn: Ppn) {
        let id = self.block_of(ppn);
        if let Some(victims) = &self.victims[Role::Data as usize] {
            victims.closed.prefetch(self.plane_of(id), id, &self.blocks[id.index()]);
        }
    }

    /// Test hook: checks all invariants against a count from scratch.
    pub fn recount(&self) -> Result<(), String> {
        for (i, block) in self.blocks.iter().enumerate() {
            let id = BlockId(i as u32);
            let first = self.first_unit(id).0;
            let valid = (first..first + self.units_per_block.divisor()).filter(|&u| self.is_valid(Ppn(u))).count();
            if valid != usize::from(block.valid) {
                return Err(format!("block {i}: {} units are valid, {} counted", valid, block.valid));
            }
        }
        for (p, plane) in self.planes.iter().enumerate() {
            let range =
                p * self.blocks_per_plane.divisor() as usize..(p + 1) * self.blocks_per_plane.divisor() as usize;
            let free = self.blocks[range].iter().filter(|b| b.state == BlockState::Free).count() as u32;
            let id = PlaneId(p as u32);
            for listed in self.free.of(id) {
                let block = self.block(listed);
                if block.state != BlockState::Free || block.failed {
                    return Err(format!("plane {p}: block {} is listed and not free, or has failed", listed.0));
                }
            }
            let counted = Role::ALL.map(|role| self.region_of(id, role).free);
            let is_free = |block: &&Block| block.state == BlockState::Free && block.role == Role::Cache;
            let cached = self.of_plane(id).iter().filter(is_free).count() as u32;
            if free != self.free.count(id) + cached
                || cached != counted[Role::Cache as usize]
                || free != counted.iter().sum::<u32>()
            {
                let listed = self.free.count(id);
                return Err(format!("plane {p}: {free} blocks are free, {listed} listed, {counted:?} by role"));
            }
            let erases = self.of_plane(id).iter().map(|block| u64::from(block.erases)).sum::<u64>();
            if erases != plane.erases {
                return Err(format!("plane {p}: {erases} erases, {} counted", plane.erases));
            }
        }
        let counted = self.pool_free.clone();
        let pools = 0..counted.len() as u32;
        let free: Vec<u32> = pools.map(|pool| self.count_free_of(pool)).collect();
        if free != counted {
            return Err(format!("the pools have {free:?} free blocks, {counted:?} counted"));
        }
        Ok(())
    }
}
