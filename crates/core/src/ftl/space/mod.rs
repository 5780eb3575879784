//! The physical space: blocks, their states, the stock of free ones, and the frontiers that writes go to.

mod failing;
mod runs;
mod saving;

use std::collections::BTreeSet;

use super::gc::victim::Victim;
use crate::config::advanced::Waste;
use crate::config::{DeviceConfig, Frontiers};
use crate::external::{Fault, MAX_CLASSES, PlaneState};
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::sim::memory::{Divider, zeroed_words};

/// Where a block is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockState {
    /// Erased, in stock.
    #[default]
    Free,
    /// A frontier is in it, or its last program has not ended.
    Open,
    /// Full: cleaning may choose it.
    Closed,
    /// Chosen by cleaning; its valid units are being moved.
    Victim,
    /// All moved; waits for its dependants, then for its erase.
    Doomed,
    /// It belongs to a logical block (block mapping).
    Logical,
    /// A program of it has failed; its valid units are to be moved.
    Failed,
    /// It is never used again.
    Bad,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// Valid units.
    pub valid: u16,
    /// Reads of it, unfinished copies from it, and unfinished programs that supersede units of it: it is not erased
    /// while there are any (design decision 4).
    pub dependants: u16,
    /// Erases so far.
    pub erases: u32,
    /// Where it is in its life.
    pub state: BlockState,
    /// Whether it holds translation pages, from its opening to its erase.
    pub map: bool,
    /// Whether it is never erased and used again, when it is empty: a program or an erase of it has failed.
    pub failed: bool,
}

/// What kind of data a frontier takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Stream {
    /// The host's; those of class 0, where classes are told apart.
    Host,
    /// Moved by cleaning.
    Gc,
    /// Translation pages.
    Map,
    /// The host's of class 1.
    Class1,
    /// The host's of class 2.
    Class2,
    /// The host's of class 3.
    Class3,
}

impl Stream {
    /// How many there are.
    const COUNT: usize = 6;

    /// What the host writes, by class (`temperature`).
    pub const HOST: [Stream; MAX_CLASSES as usize] = [Stream::Host, Stream::Class1, Stream::Class2, Stream::Class3];
}

/// The place in an open block where the next unit goes: pages of a block are programmed in order by construction.
#[derive(Clone, Copy, Debug, Default)]
struct Frontier {
    next: u32,
    left: u32,
}

/// What is known of a plane.
#[derive(Clone, Debug, Default)]
struct Plane {
    /// Free blocks, first in, first out.
    first_free: u32,
    last_free: u32,
    stock: u32,
    /// Stale units of closed blocks: what cleaning could gain.
    stale: u32,
    /// Closed blocks.
    closed: u32,
    /// The same of the blocks that are kept for translation pages. Free blocks are in one list with the others.
    map_stock: u32,
    map_stale: u32,
    /// Free blocks that the host leaves to cleaning.
    kept: u32,
    /// Blocks that are bad, or will be when they are empty.
    bad: u32,
    frontiers: [Frontier; Stream::COUNT],
}

/// The physical space of the device.
#[derive(Clone, Debug)]
pub struct Space {
    blocks: Vec<Block>,
    next_free: Vec<u32>,
    planes: Vec<Plane>,
    /// One bit for each physical unit.
    valid: Vec<u64>,
    victim: Victim,
    /// Chooses among blocks of translation pages, where there are any.
    map_victim: Option<Victim>,
    units_per_block: Divider,
    data_units: u32,
    units_per_program: u32,
    blocks_per_plane: Divider,
    /// Planes that open blocks of equal addresses where they can, because only those are programmed together.
    group: u32,
    /// Index of the frontier for moved data; with a single one for it and the host's, where classes are told apart,
    /// that of class 0.
    gc_frontier: usize,
    /// Classes of what the host writes, each with a frontier of its own.
    classes: usize,
    /// Blocks in [`BlockState::Doomed`], of which there are only a few per plane.
    doomed: BTreeSet<u32>,
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

/// One block of stock is kept for cleaning: with it, any victim's valid units find room. Where blocks fail, one more
/// is ([`Space::kept`]).
pub const RESERVE: u32 = 1;

impl Space {
    /// All blocks erased.
    pub fn new(device: &DeviceConfig, seed: u64) -> Result<Space, String> {
        let (planes, per_plane) = (device.total_planes(), device.geometry.blocks);
        let for_map = device.map_blocks();
        let victim = || device.gc.victim.build(device, seed).map_err(|e| format!("gc.victim: {e}"));
        let plane = |p: u32| Plane {
            first_free: p * per_plane,
            last_free: (p + 1) * per_plane - 1,
            stock: per_plane - for_map,
            map_stock: for_map,
            kept: RESERVE + u32::from(device.faults.is_some()),
            ..Plane::default()
        };
        let total_units = device.total_blocks() as usize * device.units_per_block() as usize;
        Ok(Space {
            blocks: vec![Block::default(); device.total_blocks() as usize],
            next_free: (1..=device.total_blocks()).collect(),
            planes: (0..planes).map(plane).collect(),
            valid: zeroed_words(total_units.div_ceil(64)),
            doomed: BTreeSet::new(),
            victim: victim()?,
            map_victim: if for_map > 0 { Some(victim()?) } else { None },
            units_per_block: Divider::new(device.units_per_block()),
            data_units: device.data_units_per_block(),
            units_per_program: device.units_per_program(),
            blocks_per_plane: Divider::new(per_plane),
            group: opening_group(device),
            gc_frontier: match device.gc.frontiers {
                Frontiers::Separate => Stream::Gc as usize,
                Frontiers::Single => Stream::Host as usize,
            },
            classes: device.temperature.classes() as usize,
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

    /// Units of a block, its summary included.
    #[inline]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block.divisor()
    }

    /// Units of data in a block.
    #[inline]
    pub fn data_units(&self) -> u32 {
        self.data_units
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

    /// Free blocks of a plane.
    #[inline]
    pub fn stock(&self, plane: PlaneId) -> u32 {
        self.planes[plane.index()].stock
    }

    /// Free blocks of a plane that the host leaves to cleaning.
    #[inline]
    pub fn kept(&self, plane: PlaneId) -> u32 {
        self.planes[plane.index()].kept
    }

    /// Free blocks of a plane that are kept for translation pages.
    #[inline]
    pub fn map_stock(&self, plane: PlaneId) -> u32 {
        self.planes[plane.index()].map_stock
    }

    /// Valid units of data: without translation pages.
    pub fn valid_data(&self) -> u64 {
        self.blocks.iter().filter(|block| !block.map).map(|block| u64::from(block.valid)).sum()
    }

    /// Unwritten units of the open blocks of data of a plane.
    pub fn open_units(&self, plane: PlaneId) -> u32 {
        let frontiers = &self.planes[plane.index()].frontiers;
        let left = |of: &[Frontier]| of.iter().map(|f| f.left).sum::<u32>();
        left(frontiers) - frontiers[Stream::Map as usize].left
    }

    /// Units left in the open block that `stream` goes to.
    #[inline]
    pub fn room(&self, plane: PlaneId, stream: Stream) -> u32 {
        self.planes[plane.index()].frontiers[self.frontier_index(stream)].left
    }

    #[inline]
    fn frontier_index(&self, stream: Stream) -> usize {
        if stream == Stream::Gc { self.gc_frontier } else { stream as usize }
    }

    /// Whether a host write finds room in the plane: in its open block, or in one more from stock above the reserve.
    /// With a single frontier, room that cleaning took from the reserve is not the host's either.
    #[inline]
    pub fn takes_host_write(&self, plane: PlaneId) -> bool {
        let p = &self.planes[plane.index()];
        let open = p.frontiers[Stream::Host as usize].left > 0;
        if self.classes > 1 {
            let open = self.host_room(plane) > 0;
            return p.stock > p.kept || (open && (!self.is_single() || p.stock >= p.kept));
        }
        p.stock > p.kept || (open && (self.gc_frontier != Stream::Host as usize || p.stock >= p.kept))
    }

    /// Whether moved units go where the host's do.
    #[inline]
    fn is_single(&self) -> bool {
        self.gc_frontier == Stream::Host as usize
    }

    /// Units left in the open blocks that the host's writes go to.
    pub fn host_room(&self, plane: PlaneId) -> u32 {
        Stream::HOST[..self.classes]
            .iter()
            .map(|&stream| self.planes[plane.index()].frontiers[stream as usize].left)
            .sum()
    }

    /// Units left in the open blocks that moved units may go to.
    pub fn room_for_moved(&self, plane: PlaneId) -> u32 {
        if self.is_single() { self.host_room(plane) } else { self.room(plane, Stream::Gc) }
    }

    /// The frontier that a write of `class` goes to: its own. Where that has no room, and no block is to be had beyond
    /// the reserve, the one of another class that has most.
    #[inline]
    pub fn host_stream(&self, plane: PlaneId, class: u8) -> Stream {
        if self.classes == 1 { Stream::Host } else { self.stream_with_room(plane, class, self.kept(plane)) }
    }

    /// The frontier that a moved unit of `class` goes to: that of all moved units, or the host's of the class.
    #[inline]
    pub fn moved_stream(&self, plane: PlaneId, class: u8) -> Stream {
        let of_class = self.classes > 1 && self.is_single();
        if of_class { self.stream_with_room(plane, class, 0) } else { Stream::Gc }
    }

    fn stream_with_room(&self, plane: PlaneId, class: u8, kept: u32) -> Stream {
        let p = &self.planes[plane.index()];
        let left = |stream: Stream| p.frontiers[stream as usize].left;
        let own = Stream::HOST[usize::from(class)];
        if left(own) > 0 || p.stock > kept {
            return own;
        }
        Stream::HOST[..self.classes].iter().copied().max_by_key(|&stream| left(stream)).unwrap_or(own)
    }

    /// Units for translation pages in the plane, without the block that moving others needs.
    pub fn room_for_map(&self, plane: PlaneId) -> u32 {
        self.room_for_moved_map(plane).saturating_sub(RESERVE * self.data_units)
    }

    /// Units for translation pages that are moved.
    pub fn room_for_moved_map(&self, plane: PlaneId) -> u32 {
        let p = &self.planes[plane.index()];
        p.frontiers[Stream::Map as usize].left + p.map_stock * self.data_units
    }

    /// Takes the next `units` places of the frontier, in a new block when the open one is full. The caller has made
    /// sure that there is one. `units` divides what a block holds, so the places lie in one block.
    #[inline]
    pub fn advance(&mut self, plane: PlaneId, stream: Stream, units: u32) -> Ppn {
        let index = self.frontier_index(stream);
        if self.planes[plane.index()].frontiers[index].left == 0 {
            self.open_block(plane, index);
        }
        let frontier = &mut self.planes[plane.index()].frontiers[index];
        debug_assert!(frontier.left >= units);
        let place = Ppn(frontier.next);
        frontier.next += units;
        frontier.left -= units;
        place
    }

    #[cold]
    fn open_block(&mut self, plane: PlaneId, index: usize) {
        let map = index == Stream::Map as usize;
        let block = self.take_from_stock(plane, index, map);
        self.planes[plane.index()].frontiers[index] =
            Frontier { next: block.0 * self.units_per_block.divisor(), left: self.data_units };
        self.blocks[block.index()].state = BlockState::Open;
        self.blocks[block.index()].map = map;
    }

    /// Takes a free block for a logical block. The caller has made sure that there is one.
    pub fn open_logical(&mut self, plane: PlaneId) -> BlockId {
        let block = self.take_from_stock(plane, Stream::Host as usize, false);
        self.blocks[block.index()].state = BlockState::Logical;
        block
    }

    fn take_from_stock(&mut self, plane: PlaneId, frontier: usize, map: bool) -> BlockId {
        let p = &mut self.planes[plane.index()];
        let stock = if map { &mut p.map_stock } else { &mut p.stock };
        assert!(*stock > 0, "plane {} has no free block: the reserve was not kept", plane.0);
        let block = self.take_free(plane, frontier);
        let p = &mut self.planes[plane.index()];
        *(if map { &mut p.map_stock } else { &mut p.stock }) -= 1;
        debug_assert_eq!(self.blocks[block.index()].state, BlockState::Free);
        block
    }

    /// Takes the free block that a frontier goes on in: the oldest one; where blocks of equal addresses are opened
    /// together, one that a neighbour's frontier is in, or one that is free in all planes of the group. Only the oldest
    /// few are looked at, so that a large stock costs nothing.
    fn take_free(&mut self, plane: PlaneId, frontier: usize) -> BlockId {
        let before = if self.group > 1 { self.before_next(plane, frontier) } else { None };
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
    fn before_next(&self, plane: PlaneId, frontier: usize) -> Option<u32> {
        let neighbours = plane.0 / self.group * self.group..(plane.0 / self.group + 1) * self.group;
        let opened = |index| {
            let open = |&q: &u32| q != plane.0 && self.open_index(PlaneId(q), frontier) == Some(index);
            neighbours.clone().any(|q| open(&q))
        };
        let free_in_all = |index| neighbours.clone().all(|q| self.is_free(PlaneId(q), index));
        self.find_free(plane, opened).or_else(|| self.find_free(plane, free_in_all)).flatten()
    }

    /// The address within its plane of the block in which the frontier of `stream` would go on now, which has no room;
    /// none where no block is free.
    pub fn next_opened(&self, plane: PlaneId, stream: Stream) -> Option<u32> {
        let p = &self.planes[plane.index()];
        if p.stock + p.map_stock == 0 {
            return None;
        }
        let before = if self.group > 1 { self.before_next(plane, self.frontier_index(stream)) } else { None };
        let block = before.map_or(p.first_free, |before| self.next_free[before as usize]);
        Some(self.index_in_plane(BlockId(block)))
    }

    /// Returns how often the free block has been erased that has waited the longest in a plane; `u32::MAX` if none is
    /// free.
    pub fn erases_of_next(&self, plane: PlaneId) -> u32 {
        let p = &self.planes[plane.index()];
        if p.stock + p.map_stock == 0 { u32::MAX } else { self.blocks[p.first_free as usize].erases }
    }

    /// The first of the oldest free blocks of a plane whose address within the plane will do, by the one before it in
    /// line: `Some(None)` where it is the oldest of all.
    fn find_free(&self, plane: PlaneId, will_do: impl Fn(u32) -> bool) -> Option<Option<u32>> {
        let p = &self.planes[plane.index()];
        let (mut before, mut block) = (None, p.first_free);
        for _ in 0..(p.stock + p.map_stock).min(LOOK_AHEAD) {
            if will_do(self.index_in_plane(BlockId(block))) {
                return Some(before);
            }
            (before, block) = (Some(block), self.next_free[block as usize]);
        }
        None
    }

    /// The address within its plane of the block that a frontier is in, if that has room.
    fn open_index(&self, plane: PlaneId, frontier: usize) -> Option<u32> {
        let frontier = &self.planes[plane.index()].frontiers[frontier];
        (frontier.left > 0).then(|| self.index_in_plane(self.block_of(Ppn(frontier.next))))
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

    /// The next place of the frontier of `stream`, if its block has room.
    #[inline]
    pub fn next_place(&self, plane: PlaneId, stream: Stream) -> Option<Ppn> {
        let frontier = &self.planes[plane.index()].frontiers[self.frontier_index(stream)];
        (frontier.left > 0).then_some(Ppn(frontier.next))
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
            if block.map {
                return self.invalidate_map(id);
            }
            self.victim.on_invalidate(id, u32::from(block.valid), self.clock);
            let plane = self.plane_of(id);
            self.planes[plane.index()].stale += 1;
        }
    }

    /// Whether the frontier places up to and with the unit before `end` are the last of their block's data.
    #[inline]
    pub fn ends_data(&self, end: Ppn) -> bool {
        self.offset_in_block(Ppn(end.0 - 1)) + 1 == self.data_units
    }

    /// The last program of a block has ended: cleaning may choose it.
    pub fn close(&mut self, id: BlockId) {
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.state, BlockState::Open);
        block.state = BlockState::Closed;
        let stale = self.data_units - u32::from(block.valid);
        if block.map {
            return self.close_map(id, stale);
        }
        let plane = self.plane_of(id);
        self.planes[plane.index()].stale += stale;
        self.planes[plane.index()].closed += 1;
        let block = &self.blocks[id.index()];
        self.victim.on_erases(id, block.erases);
        self.victim.on_close(id, u32::from(block.valid), self.clock);
    }

    /// Chooses a victim of `plane`, if some block would gain anything.
    ///
    /// A victim's units are moved in whole programs, of which the last is padded. So a block gains only where a
    /// program's worth of its units is stale, which is so of one at least when each had one unit less and more are.
    ///
    /// Where it is to gain `least` units, those that the policy takes before such a one are passed over: they are
    /// candidates anew.
    pub fn take_victim(&mut self, plane: PlaneId, least: u32) -> Option<BlockId> {
        let p = &self.planes[plane.index()];
        if u64::from(p.stale) <= u64::from(p.closed) * u64::from(self.units_per_program - 1) {
            return None;
        }
        let mut id = self.victim.take(plane, self.clock)?;
        if self.gain_of(id) < least {
            id = self.take_gaining(plane, least, id)?;
        }
        let stale = self.data_units - u32::from(self.blocks[id.index()].valid);
        self.planes[plane.index()].stale -= stale;
        self.planes[plane.index()].closed -= 1;
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.state, BlockState::Closed);
        block.state = BlockState::Victim;
        Some(id)
    }

    /// Units that are free when a block has been moved, in whole programs.
    fn gain_of(&self, id: BlockId) -> u32 {
        self.data_units - u32::from(self.blocks[id.index()].valid).next_multiple_of(self.units_per_program)
    }

    #[cold]
    fn take_gaining(&mut self, plane: PlaneId, least: u32, first: BlockId) -> Option<BlockId> {
        let mut passed = vec![first];
        let found = loop {
            match self.victim.take(plane, self.clock) {
                Some(id) if self.gain_of(id) < least => passed.push(id),
                found => break found,
            }
        };
        for id in passed {
            self.victim.on_close(id, u32::from(self.blocks[id.index()].valid), self.clock);
        }
        found
    }

    #[cold]
    fn invalidate_map(&mut self, id: BlockId) {
        let plane = self.plane_of(id);
        self.planes[plane.index()].map_stale += 1;
        if let Some(victim) = &mut self.map_victim {
            victim.on_invalidate(id, u32::from(self.blocks[id.index()].valid), self.clock);
        }
    }

    #[cold]
    fn close_map(&mut self, id: BlockId, stale: u32) {
        let plane = self.plane_of(id);
        self.planes[plane.index()].map_stale += stale;
        if let Some(victim) = &mut self.map_victim {
            victim.on_erases(id, self.blocks[id.index()].erases);
            victim.on_close(id, u32::from(self.blocks[id.index()].valid), self.clock);
        }
    }

    /// Chooses a victim among the blocks of translation pages of `plane`, if some would gain anything. A translation
    /// page is a whole program, so each stale one is a gain.
    pub fn take_map_victim(&mut self, plane: PlaneId) -> Option<BlockId> {
        if self.planes[plane.index()].map_stale == 0 {
            return None;
        }
        let id = self.map_victim.as_mut()?.take(plane, self.clock)?;
        let stale = self.data_units - u32::from(self.blocks[id.index()].valid);
        self.planes[plane.index()].map_stale -= stale;
        debug_assert_eq!(self.blocks[id.index()].state, BlockState::Closed);
        self.blocks[id.index()].state = BlockState::Victim;
        Some(id)
    }

    /// What a trigger is told of a plane.
    pub fn plane_state(&self, plane: PlaneId) -> PlaneState {
        let &Plane { stock, closed, stale, .. } = &self.planes[plane.index()];
        PlaneState { plane: plane.0, stock, closed, stale, clock: self.clock }
    }

    /// What went wrong with a victim policy, if it came with another program.
    pub fn fault(&self) -> Option<&Fault> {
        self.victim.fault().or_else(|| self.map_victim.as_ref()?.fault())
    }

    /// Marks a victim whose valid units have all been read.
    pub fn doom(&mut self, id: BlockId) {
        self.blocks[id.index()].state = BlockState::Doomed;
        self.doomed.insert(id.0);
    }

    /// Returns the doomed blocks.
    pub fn doomed(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.doomed.iter().copied().map(BlockId)
    }

    /// Whether a doomed block has nothing left that depends on it.
    #[inline]
    pub fn can_erase(&self, id: BlockId) -> bool {
        let block = &self.blocks[id.index()];
        block.state == BlockState::Doomed && (block.dependants == 0 || self.ignore_dependants)
    }

    /// Notes one more dependant of the block of `ppn`.
    #[inline]
    pub fn depend(&mut self, ppn: Ppn) -> BlockId {
        let id = self.block_of(ppn);
        self.blocks[id.index()].dependants += 1;
        id
    }

    /// A dependant is done; whether the block can be erased now.
    #[inline]
    pub fn release(&mut self, id: BlockId) -> bool {
        let block = &mut self.blocks[id.index()];
        block.dependants -= 1;
        block.dependants == 0 && block.state == BlockState::Doomed && !self.ignore_dependants
    }

    /// A block has been erased: back to stock.
    pub fn erased(&mut self, id: BlockId) {
        let plane = self.plane_of(id);
        self.doomed.remove(&id.0);
        let block = &mut self.blocks[id.index()];
        debug_assert_eq!(block.valid, 0, "nothing valid is erased");
        block.state = BlockState::Free;
        block.erases += 1;
        let map = std::mem::take(&mut block.map);
        let p = &mut self.planes[plane.index()];
        if p.stock + p.map_stock == 0 {
            p.first_free = id.0;
        } else {
            self.next_free[p.last_free as usize] = id.0;
        }
        p.last_free = id.0;
        if map {
            p.map_stock += 1;
        } else {
            p.stock += 1;
        }
    }

    /// Places left until the frontier of `stream` stands at a multiple of `group` again, taken.
    pub fn align(&mut self, plane: PlaneId, stream: Stream, group: u32) -> Option<(Ppn, u32)> {
        let index = self.frontier_index(stream);
        let frontier = &mut self.planes[plane.index()].frontiers[index];
        let over = frontier.left % group;
        if over == 0 {
            return None;
        }
        let place = Ppn(frontier.next);
        frontier.next += over;
        frontier.left -= over;
        Some((place, over))
    }

    /// How many units of a block have been written; for devices at rest without logical blocks.
    pub fn written_of(&self, id: BlockId) -> u32 {
        match self.block(id).state {
            BlockState::Closed => self.data_units,
            BlockState::Open => {
                let plane = &self.planes[self.plane_of(id).index()];
                let of_block = |f: &&Frontier| f.left > 0 && self.block_of(Ppn(f.next)) == id;
                plane.frontiers.iter().find(of_block).map_or(0, |f| self.offset_in_block(Ppn(f.next)))
            }
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
        if block.state == BlockState::Closed {
            self.victim.prefetch(id, u32::from(block.valid).saturating_sub(1));
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
            while listed < plane.stock + plane.map_stock {
                let block = &self.blocks[next as usize];
                if block.state != BlockState::Free || block.failed {
                    return Err(format!("plane {p}: block {next} is in stock and not free, or has failed"));
                }
                listed += 1;
                next = self.next_free[next as usize];
            }
            if free != plane.stock + plane.map_stock {
                let (stock, map) = (plane.stock, plane.map_stock);
                return Err(format!("plane {p}: {free} blocks are free, {stock} in stock and {map} for the map"));
            }
        }
        Ok(())
    }
}
