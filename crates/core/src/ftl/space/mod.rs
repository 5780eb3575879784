//! The physical space: blocks, their states, free blocks, and the frontiers that writes go to.

mod block;
mod choice;
mod claim;
mod closed;
mod failing;
mod frontiers;
mod leveling;
mod may_take;
mod region;
mod runs;
mod saving;
mod victims;
mod view;
mod wear;

use std::collections::BTreeSet;

use crate::config::DeviceConfig;
use crate::config::advanced::Waste;
use crate::config::cells::{BlockSize, CellMode};
use crate::external::Fault;
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::sim::memory::{Divider, zeroed_words};
pub use block::{Block, BlockState};
pub use claim::{Claim, InHand, RESERVE};
pub use closed::Age;
use region::{Frontier, Layout, Region};
pub use region::{FrontierId, RegionId, Role};
use victims::Victims;
pub use view::{BlockView, RegionView};
use wear::Leveling;

/// State of a plane.
#[derive(Clone, Debug, Default)]
struct Plane {
    /// Free blocks of all regions, first in, first out.
    first_free: u32,
    last_free: u32,
    free: u32,
    /// Blocks that are bad, or will be when they are empty.
    bad: u32,
}

/// The physical space of the device.
#[derive(Clone, Debug)]
pub struct Space {
    blocks: Vec<Block>,
    next_free: Vec<u32>,
    planes: Vec<Plane>,
    /// By role, and then by plane.
    regions: Vec<Region>,
    /// By region.
    frontiers: Vec<Frontier>,
    layouts: [Layout; Role::ALL.len()],
    /// By role; `None` for one that has no blocks.
    victims: [Option<Victims>; Role::ALL.len()],
    /// `None` if wear is not leveled.
    wear: Option<Box<Leveling>>,
    /// One bit for each physical unit.
    valid: Vec<u64>,
    units_per_block: Divider,
    blocks_per_plane: Divider,
    /// True if the blocks of all regions are in native mode.
    is_native: bool,
    /// Planes that open blocks of equal addresses where they can, because only those are programmed together.
    group: u32,
    /// Frontiers of a region of data.
    data_frontiers: u32,
    /// Position among them of the frontier of moved units.
    gc_frontier: u32,
    /// Classes of what the host writes, each with a frontier of its own.
    classes: u32,
    /// Blocks in [`BlockState::AwaitingErase`], of which there are only a few per plane.
    awaiting_erase: BTreeSet<u32>,
    /// Counts host writes; the clock of victim policies.
    pub clock: u64,
    /// For tests of the tests: erase without waiting.
    #[doc(hidden)]
    pub ignore_dependants: bool,
}

/// How many of the oldest free blocks are looked at for one whose address suits the other planes of the die.
const LOOK_AHEAD: u32 = 8;

/// Planes that open blocks of equal addresses where they can.
fn opening_group(device: &DeviceConfig) -> u32 {
    let advanced = &device.nand.advanced;
    match (advanced.strict && advanced.multi_plane_program != Waste::Off, advanced.plane_pairs) {
        (false, _) => 1,
        (true, true) => 2,
        (true, false) => device.geometry.planes,
    }
}

/// Regions of all planes that have a role; all of their blocks are free.
fn regions(device: &DeviceConfig, layouts: &[Layout], role: Role) -> impl Iterator<Item = Region> {
    let layout = layouts[role as usize];
    // Translation pages are moved when their blocks fail, so that only data need another block for that.
    let fails = device.faults.is_some() && role == Role::Data;
    (0..device.total_planes()).map(move |plane| Region {
        free: layout.blocks,
        invalid: 0,
        closed: 0,
        reserve: RESERVE + u32::from(fails),
        first: layout.first + plane * layout.frontiers(),
        plane: PlaneId(plane),
        role,
    })
}

impl Space {
    /// Creates a space of erased blocks. `has_ages` is true if other policies than victims ask for ages of blocks.
    pub fn new(device: &DeviceConfig, seed: u64, has_ages: bool) -> Result<Space, String> {
        let (planes, per_plane) = (device.total_planes(), device.geometry.blocks);
        let layouts = Layout::of(device);
        let wear = Leveling::new(device, seed)?;
        let has_ages = has_ages || wear.as_ref().is_some_and(|wear| wear.policy.has_ages());
        let victim = |role: Role| match layouts[role as usize] {
            Layout { blocks: 0, .. } => Ok(None),
            Layout { size, .. } => Victims::new(device, seed, size.data_units, has_ages).map(Some),
        };
        let plane = |p: u32| Plane {
            first_free: p * per_plane,
            last_free: (p + 1) * per_plane - 1,
            free: per_plane,
            ..Plane::default()
        };
        let [data, map] = &layouts;
        let total_units = device.total_blocks() as usize * device.units_per_block() as usize;
        Ok(Space {
            blocks: vec![Block::default(); device.total_blocks() as usize],
            next_free: (1..=device.total_blocks()).collect(),
            planes: (0..planes).map(plane).collect(),
            regions: Role::ALL.into_iter().flat_map(|role| regions(device, &layouts, role)).collect(),
            frontiers: vec![Frontier::default(); (map.first + planes * map.frontiers()) as usize],
            valid: zeroed_words(total_units.div_ceil(64)),
            awaiting_erase: BTreeSet::new(),
            victims: [victim(Role::Data)?, victim(Role::Map)?],
            wear,
            units_per_block: Divider::new(device.units_per_block()),
            blocks_per_plane: Divider::new(per_plane),
            is_native: layouts.iter().all(|layout| layout.cells.is_native()),
            group: opening_group(device),
            data_frontiers: data.frontiers(),
            gc_frontier: if data.is_shared { 0 } else { data.writes },
            classes: data.writes,
            layouts,
            clock: 0,
            ignore_dependants: false,
        })
    }

    /// The block of a unit.
    #[inline]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.units_per_block.divide(ppn.0))
    }

    /// The number of a unit within its block.
    #[inline]
    pub fn offset_in_block(&self, ppn: Ppn) -> u32 {
        self.units_per_block.divide_with_rest(ppn.0).1
    }

    /// The plane of a block.
    #[inline]
    pub fn plane_of(&self, block: BlockId) -> PlaneId {
        PlaneId(self.blocks_per_plane.divide(block.0))
    }

    /// The first unit of a block.
    #[inline]
    pub fn first_unit(&self, block: BlockId) -> Ppn {
        Ppn(block.0 * self.units_per_block.divisor())
    }

    /// Physical addresses of a block: its units in native mode, its summary included. In another mode, it has only the
    /// first of them.
    #[inline]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block.divisor()
    }

    /// Returns what a block of a role holds.
    #[inline]
    pub fn size(&self, role: Role) -> &BlockSize {
        &self.layouts[role as usize].size
    }

    /// Returns what a block holds that has been opened. A free one counts as data.
    #[inline]
    pub fn size_of(&self, block: BlockId) -> &BlockSize {
        self.size(self.block(block).role)
    }

    /// Units of data in a block of data.
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

    /// What is known of a block.
    #[inline]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// All blocks.
    pub fn all(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks of a plane.
    pub fn of_plane(&self, plane: PlaneId) -> &[Block] {
        let count = self.blocks_per_plane.divisor() as usize;
        &self.blocks[plane.index() * count..][..count]
    }

    /// Returns the number of free blocks of a region.
    #[inline]
    pub fn free_blocks(&self, plane: PlaneId, role: Role) -> u32 {
        self.region_of(plane, role).free
    }

    /// Returns the number of free blocks that writes leave to garbage collection.
    #[inline]
    pub fn reserve(&self, plane: PlaneId, role: Role) -> u32 {
        self.region_of(plane, role).reserve
    }

    /// Valid units of data: without translation pages.
    pub fn valid_data(&self) -> u64 {
        self.blocks.iter().filter(|block| block.role == Role::Data).map(|block| u64::from(block.valid)).sum()
    }

    /// Returns `true` if a plane takes a write of the host.
    #[inline]
    pub fn takes_host_write(&self, plane: PlaneId) -> bool {
        self.may_take(self.region(plane, Role::Data), Claim::WRITE)
    }

    /// Takes the next `units` places of a frontier, in a new block if the open one is full. The caller has made sure
    /// that there is one. `units` divides the units of a block, so the places lie in one block.
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
        ppn
    }

    #[cold]
    fn open_block(&mut self, at: FrontierId) {
        let &Region { plane, role, first, .. } = self.region_at(at);
        let block = self.take_free_block(plane, role, at.0 - first);
        let left = self.size(role).data_units;
        self.frontiers[at.0 as usize] = Frontier { next: self.first_unit(block).0, left };
        self.blocks[block.index()].state = BlockState::Open;
        self.blocks[block.index()].role = role;
    }

    /// Takes a free block for a logical block. The caller has made sure that there is one.
    pub fn open_logical(&mut self, plane: PlaneId) -> BlockId {
        let block = self.take_free_block(plane, Role::Data, 0);
        self.blocks[block.index()].state = BlockState::Logical;
        block
    }

    /// Takes a free block for a frontier, which is counted within its region.
    fn take_free_block(&mut self, plane: PlaneId, role: Role, frontier: u32) -> BlockId {
        assert!(self.region_of(plane, role).free > 0, "plane {} has no free block: the reserve was not kept", plane.0);
        let block = self.take_free(plane, role, frontier);
        self.region_mut(plane, role).free -= 1;
        self.planes[plane.index()].free -= 1;
        debug_assert_eq!(self.blocks[block.index()].state, BlockState::Free);
        block
    }

    /// Takes the free block that a frontier goes on in: the oldest one; where blocks of equal addresses are opened
    /// together, one that a neighbour's frontier is in, or one that is free in all planes of the group. Only the oldest
    /// few are looked at, so that many free blocks cost nothing.
    fn take_free(&mut self, plane: PlaneId, role: Role, frontier: u32) -> BlockId {
        let before = match self.group {
            1 if self.wear.is_none() => None,
            1 => self.before_picked(plane, role),
            _ => self.before_next(plane, role, frontier),
        };
        let p = &mut self.planes[plane.index()];
        let Some(before) = before else {
            let block = p.first_free;
            p.first_free = self.next_free[block as usize];
            return BlockId(block);
        };
        let block = self.next_free[before as usize];
        self.next_free[before as usize] = self.next_free[block as usize];
        if p.last_free == block {
            p.last_free = before;
        }
        BlockId(block)
    }

    /// The one before that in which a frontier goes on, in the line of a plane's free blocks; none where that is the
    /// first.
    fn before_next(&self, plane: PlaneId, role: Role, frontier: u32) -> Option<u32> {
        let neighbours = plane.0 / self.group * self.group..(plane.0 / self.group + 1) * self.group;
        let opened = |index| {
            let sibling = |q: u32| FrontierId(self.region_of(PlaneId(q), role).first + frontier);
            let open = |&q: &u32| q != plane.0 && self.open_index(sibling(q)) == Some(index);
            neighbours.clone().any(|q| open(&q))
        };
        let free_in_all = |index| neighbours.clone().all(|q| self.is_free(PlaneId(q), index));
        self.find_free(plane, opened).or_else(|| self.find_free(plane, free_in_all)).flatten()
    }

    /// The address within its plane of the block in which a frontier would go on now, which has no room; none where no
    /// block is free.
    pub fn next_opened(&self, at: FrontierId) -> Option<u32> {
        let &Region { plane, role, first, .. } = self.region_at(at);
        let p = &self.planes[plane.index()];
        if p.free == 0 {
            return None;
        }
        let before = if self.group > 1 { self.before_next(plane, role, at.0 - first) } else { None };
        let block = before.map_or(p.first_free, |before| self.next_free[before as usize]);
        Some(self.index_in_plane(BlockId(block)))
    }

    /// Returns how often the free block has been erased that has waited the longest in a plane; `u32::MAX` if none is
    /// free.
    pub fn erases_of_next(&self, plane: PlaneId) -> u32 {
        let p = &self.planes[plane.index()];
        if p.free == 0 { u32::MAX } else { self.blocks[p.first_free as usize].erases }
    }

    /// The first of the oldest free blocks of a plane whose address within the plane will do, by the one before it in
    /// line: `Some(None)` where it is the oldest of all.
    fn find_free(&self, plane: PlaneId, will_do: impl Fn(u32) -> bool) -> Option<Option<u32>> {
        let p = &self.planes[plane.index()];
        let (mut before, mut block) = (None, p.first_free);
        for _ in 0..p.free.min(LOOK_AHEAD) {
            if will_do(self.index_in_plane(BlockId(block))) {
                return Some(before);
            }
            (before, block) = (Some(block), self.next_free[block as usize]);
        }
        None
    }

    /// The address within its plane of the block that a frontier is in, if that has room.
    fn open_index(&self, at: FrontierId) -> Option<u32> {
        self.next_ppn(at).map(|ppn| self.index_in_plane(self.block_of(ppn)))
    }

    /// The address of a block within its plane.
    #[inline]
    pub fn index_in_plane(&self, block: BlockId) -> u32 {
        self.blocks_per_plane.divide_with_rest(block.0).1
    }

    /// Whether the block with this address in a plane is free.
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
        self.blocks[block.index()].valid += 1;
    }

    /// Whether a unit is valid.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[(ppn.0 / 64) as usize] >> (ppn.0 % 64) & 1 == 1
    }

    /// Marks a valid unit as superseded, trimmed or moved.
    #[inline]
    pub fn invalidate(&mut self, ppn: Ppn) {
        let word = &mut self.valid[(ppn.0 / 64) as usize];
        debug_assert!(*word >> (ppn.0 % 64) & 1 == 1, "only a valid unit is superseded");
        *word &= !(1 << (ppn.0 % 64));
        let id = self.block_of(ppn);
        let block = &mut self.blocks[id.index()];
        block.valid -= 1;
        if block.state == BlockState::Closed {
            let (role, valid) = (block.role, u32::from(block.valid));
            let plane = self.plane_of(id);
            if let Some(victims) = &mut self.victims[role as usize] {
                victims.update(plane, id, valid, self.clock);
            }
            self.region_mut(plane, role).invalid += 1;
        }
    }

    /// Returns `true` if the unit before `end` is the last one of data in its block, which has a role.
    #[inline]
    pub fn ends_data(&self, end: Ppn, role: Role) -> bool {
        self.offset_in_block(Ppn(end.0 - 1)) + 1 == self.size(role).data_units
    }

    /// The last program of a block has ended: cleaning may choose it.
    pub fn close(&mut self, id: BlockId) {
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.state, BlockState::Open);
        block.state = BlockState::Closed;
        self.add_candidate(id);
    }

    /// What went wrong with a victim policy, if it came with another program.
    pub fn fault(&self) -> Option<&Fault> {
        let of_wear = || self.wear.as_ref()?.policy.fault();
        self.victims.iter().flatten().find_map(|victims| victims.fault()).or_else(of_wear)
    }

    /// Marks a victim whose valid units have all been read.
    pub fn await_erase(&mut self, id: BlockId) {
        self.blocks[id.index()].state = BlockState::AwaitingErase;
        self.awaiting_erase.insert(id.0);
    }

    /// Returns the doomed blocks.
    pub fn awaiting_erase(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.awaiting_erase.iter().copied().map(BlockId)
    }

    /// Whether a doomed block has nothing left that depends on it.
    #[inline]
    pub fn can_erase(&self, id: BlockId) -> bool {
        let block = &self.blocks[id.index()];
        block.state == BlockState::AwaitingErase && (block.dependants == 0 || self.ignore_dependants)
    }

    /// Notes one more dependant of the block of `ppn`.
    #[inline]
    pub fn depend(&mut self, ppn: Ppn) -> BlockId {
        let id = self.block_of(ppn);
        self.blocks[id.index()].dependants += 1;
        id
    }

    /// Notes more dependants of a block.
    #[inline]
    pub fn depend_on(&mut self, id: BlockId, dependants: u32) {
        self.blocks[id.index()].dependants += dependants as u16;
    }

    /// Ends what [`Space::depend_on`] noted. The block is in use.
    #[inline]
    pub fn release_from(&mut self, id: BlockId, dependants: u32) {
        self.blocks[id.index()].dependants -= dependants as u16;
    }

    /// A dependant is done; whether the block can be erased now.
    #[inline]
    pub fn release(&mut self, id: BlockId) -> bool {
        let block = &mut self.blocks[id.index()];
        block.dependants -= 1;
        block.dependants == 0 && block.state == BlockState::AwaitingErase && !self.ignore_dependants
    }

    /// Returns an erased block to the free blocks of its region.
    pub fn erased(&mut self, id: BlockId) {
        let plane = self.plane_of(id);
        self.awaiting_erase.remove(&id.0);
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.valid, 0, "nothing valid is erased");
        block.state = BlockState::Free;
        block.erases += 1;
        let role = std::mem::take(&mut block.role);
        let p = &mut self.planes[plane.index()];
        if p.free == 0 {
            p.first_free = id.0;
        } else {
            self.next_free[p.last_free as usize] = id.0;
        }
        p.last_free = id.0;
        p.free += 1;
        self.region_mut(plane, role).free += 1;
        if self.wear.is_some() {
            self.level_after(self.region(plane, role), id);
        }
    }

    /// Places left until a frontier stands at a multiple of `group` again, taken.
    pub fn align(&mut self, at: FrontierId, group: u32) -> Option<(Ppn, u32)> {
        let frontier = &mut self.frontiers[at.0 as usize];
        let over = frontier.left % group;
        if over == 0 {
            return None;
        }
        let ppn = Ppn(frontier.next);
        frontier.next += over;
        frontier.left -= over;
        Some((ppn, over))
    }

    /// How many units of a block have been written; for devices at rest without logical blocks.
    pub fn written_of(&self, id: BlockId) -> u32 {
        match self.block(id).state {
            BlockState::Closed => self.size_of(id).data_units,
            BlockState::Open => self.frontier_in(id).map_or(0, |at| self.size_of(id).data_units - self.room(at)),
            _ => 0,
        }
    }

    /// After a recovery: `closed` are the blocks with data, oldest first, and their valid units are marked; all others
    /// are free.
    pub fn restore(&mut self, closed: &[BlockId], erases: &[u32]) {
        for (block, &erases) in self.blocks.iter_mut().zip(erases) {
            block.erases = erases;
        }
        for &id in closed {
            self.blocks[id.index()].state = BlockState::Open;
        }
        for plane in 0..self.planes.len() as u32 {
            let per_plane = self.blocks_per_plane.divisor();
            self.list_free(plane * per_plane..(plane + 1) * per_plane);
        }
        closed
            .iter()
            .filter(|&&id| !self.block(id).failed)
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|id| self.close(id));
    }

    /// The arrays that superseding a unit will touch, asked for ahead of time.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        crate::sim::memory::prefetch(&self.valid, (ppn.0 / 64) as usize);
        crate::sim::memory::prefetch(&self.blocks, self.block_of(ppn).index());
    }

    /// Asks for what the victim policy touches when a unit is invalidated, ahead of time; after [`Space::prefetch`].
    #[inline]
    pub fn prefetch_candidate(&self, ppn: Ppn) {
        let id = self.block_of(ppn);
        let block = &self.blocks[id.index()];
        if block.state == BlockState::Closed
            && let Some(victims) = &self.victims[block.role as usize]
        {
            victims.prefetch(self.plane_of(id), id, u32::from(block.valid).saturating_sub(1));
        }
    }

    /// Checks everything that must hold against a count from scratch; for tests.
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
            let mut listed = 0;
            let mut next = plane.first_free;
            while listed < plane.free {
                let block = &self.blocks[next as usize];
                if block.state != BlockState::Free || block.failed {
                    return Err(format!("plane {p}: block {next} is listed and not free, or has failed"));
                }
                listed += 1;
                next = self.next_free[next as usize];
            }
            let counted = Role::ALL.map(|role| self.region_of(PlaneId(p as u32), role).free);
            if free != plane.free || free != counted.iter().sum::<u32>() {
                return Err(format!("plane {p}: {free} blocks are free, {} listed, {counted:?} by role", plane.free));
            }
        }
        Ok(())
    }
}
