//! The closed blocks of the regions of a role, in the order that the victim policy needs.

use super::block::{Age, Block, BlockState};
use super::buckets::Buckets;
use super::columns::{Candidates, Dense};
use super::ranks::Ranks;
use crate::config::DeviceConfig;
use crate::ftl::gc::victim::Index;
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};

/// Closed blocks by plane, or by pool if garbage collection works by pool. A plane then stands for its pool. Every
/// change takes O(1), or O(log n) in the worst case.
#[derive(Clone, Debug)]
pub(super) struct ClosedBlocks {
    order: Order,
    /// Number of planes whose blocks are in one index.
    planes: u32,
    /// Indexed by block; empty if no policy needs ages, or if `order` has them.
    ages: Vec<Age>,
}

#[derive(Clone, Debug)]
enum Order {
    Array(Array),
    /// In the order of closing.
    Closing(Ranks),
    /// In the order of valid units.
    Valid(Ranks),
    Buckets(Buckets),
    Dense(Dense),
}

impl ClosedBlocks {
    /// Creates an index without blocks, for each group of `planes` planes. Each block holds `units` units of data.
    pub(super) fn new(device: &DeviceConfig, units: u32, index: Index, has_ages: bool, planes: u32) -> ClosedBlocks {
        let ranks = || Ranks::new(device.total_planes() / planes, device.geometry.blocks * planes);
        let order = match index {
            Index::Array => Order::Array(Array::new(device, planes)),
            Index::Closing => Order::Closing(ranks()),
            Index::Valid => Order::Valid(ranks()),
            Index::Buckets => Order::Buckets(Buckets::new(device, units)),
            Index::Columns => Order::Dense(Dense::new(device, planes)),
        };
        // The columns have the ages.
        let aged = if has_ages && index != Index::Columns { device.total_blocks() } else { 0 };
        ClosedBlocks { order, planes, ages: vec![Age::default(); aged as usize] }
    }

    /// Returns the number of planes whose blocks are in one index.
    pub(super) fn planes(&self) -> u32 {
        self.planes
    }

    /// Returns the plane that stands for all planes whose blocks are in one index with those of `plane`.
    #[inline]
    fn of_group(&self, plane: PlaneId) -> PlaneId {
        if self.planes == 1 { plane } else { PlaneId(plane.0 / self.planes) }
    }

    /// Adds a block that has been closed.
    pub(super) fn insert(&mut self, plane: PlaneId, block: BlockId, valid: u32, erases: u32, clock: u64) {
        self.add(plane, block, valid, erases, Age { closed: clock, changed: clock });
    }

    fn add(&mut self, plane: PlaneId, block: BlockId, valid: u32, erases: u32, age: Age) {
        if let Some(of_block) = self.ages.get_mut(block.index()) {
            *of_block = age;
        }
        let plane = self.of_group(plane);
        match &mut self.order {
            Order::Array(array) => array.insert(plane, block),
            Order::Closing(ranks) => ranks.insert(plane, block, 0),
            Order::Valid(ranks) => ranks.insert(plane, block, valid),
            Order::Buckets(buckets) => buckets.insert(plane, block, valid),
            Order::Dense(dense) => dense.insert(plane, block, valid, erases, age),
        }
    }

    /// Notes that a unit of a block has become invalid, and `valid` remain.
    #[inline]
    pub(super) fn update(&mut self, plane: PlaneId, block: BlockId, valid: u32, clock: u64) {
        let plane = self.of_group(plane);
        match &mut self.order {
            Order::Valid(ranks) => ranks.insert(plane, block, valid),
            Order::Buckets(buckets) => {
                buckets.remove(block);
                buckets.insert(plane, block, valid);
            }
            Order::Dense(dense) => dense.update(block, valid, clock),
            Order::Closing(_) | Order::Array(_) => {}
        }
        if let Some(age) = self.ages.get_mut(block.index()) {
            age.changed = clock;
        }
    }

    /// Returns `true` if each block has a row.
    pub(super) fn has_rows(&self) -> bool {
        matches!(self.order, Order::Dense(_))
    }

    /// Prefetches the number of the row that [`ClosedBlocks::prefetch`] reads.
    #[inline]
    pub(super) fn prefetch_row(&self, block: BlockId) {
        if let Order::Dense(dense) = &self.order {
            dense.prefetch_row(block);
        }
    }

    /// Prefetches the rank, list nodes or row that [`ClosedBlocks::update`] touches first. `of` is the block.
    #[inline]
    pub(super) fn prefetch(&self, plane: PlaneId, block: BlockId, of: &Block) {
        let plane = self.of_group(plane);
        match &self.order {
            Order::Valid(ranks) => ranks.prefetch(plane, block),
            Order::Buckets(buckets) if of.state == BlockState::Closed => {
                buckets.prefetch(plane, block, u32::from(of.valid).saturating_sub(1));
            }
            Order::Dense(dense) if of.state == BlockState::Closed => dense.prefetch(block),
            Order::Closing(_) | Order::Buckets(_) | Order::Dense(_) | Order::Array(_) => {}
        }
    }

    /// Removes a block.
    pub(super) fn remove(&mut self, plane: PlaneId, block: BlockId) {
        let plane = self.of_group(plane);
        match &mut self.order {
            Order::Array(array) => array.remove(plane, block),
            Order::Closing(ranks) | Order::Valid(ranks) => ranks.remove(plane, block),
            Order::Buckets(buckets) => buckets.remove(block),
            Order::Dense(dense) => dense.remove(plane, block),
        }
    }

    /// Raises the lower bound of valid units in a plane to the fewest of any block. Amortized O(1): the bound falls by
    /// one at most with an update, or to the count of a closed block.
    pub(super) fn settle(&mut self, plane: PlaneId) {
        let plane = self.of_group(plane);
        if let Order::Buckets(buckets) = &mut self.order {
            buckets.settle(plane);
        }
    }

    /// Returns the fewest valid units of any block of a plane, if some block has an invalid one; only for
    /// [`Index::Buckets`].
    pub(super) fn fewest_valid(&self, plane: PlaneId) -> Option<u32> {
        let Order::Buckets(buckets) = &self.order else { return None };
        buckets.fewest(self.of_group(plane))
    }

    /// Returns the block that has had exactly `valid` units for the longest time; only for [`Index::Buckets`].
    pub(super) fn oldest_with(&self, plane: PlaneId, valid: u32) -> Option<BlockId> {
        let Order::Buckets(buckets) = &self.order else { return None };
        buckets.oldest_with(self.of_group(plane), valid)
    }

    /// Returns the blocks that have exactly `valid` units, from the oldest to the newest; only for [`Index::Buckets`].
    pub(super) fn all_with(&self, plane: PlaneId, valid: u32) -> impl Iterator<Item = BlockId> {
        let plane = self.of_group(plane);
        let buckets = if let Order::Buckets(buckets) = &self.order { Some(buckets) } else { None };
        buckets.into_iter().flat_map(move |buckets| buckets.all_with(plane, valid))
    }

    /// Returns the first block of a plane in the order of the index, which for columns is that of valid units. Not for
    /// [`Index::Array`]. With [`Index::Buckets`], only a block with an invalid unit.
    pub(super) fn first(&self, plane: PlaneId) -> Option<BlockId> {
        let plane = self.of_group(plane);
        match &self.order {
            Order::Closing(ranks) | Order::Valid(ranks) => ranks.first(plane),
            Order::Buckets(buckets) => buckets.oldest_with(plane, buckets.fewest(plane)?),
            Order::Dense(dense) => dense.first(plane),
            Order::Array(_) => None,
        }
    }

    /// Returns `true` if a block of a plane is in the index.
    pub(super) fn contains(&self, plane: PlaneId, block: BlockId) -> bool {
        let plane = self.of_group(plane);
        match &self.order {
            Order::Array(array) => {
                array.members[plane.index()].get(array.positions[block.index()] as usize) == Some(&block)
            }
            Order::Closing(ranks) | Order::Valid(ranks) => ranks.contains(plane, block),
            Order::Buckets(buckets) => buckets.contains(block),
            Order::Dense(dense) => dense.contains(plane, block),
        }
    }

    /// Returns the block at a position; only for [`Index::Array`] and [`Index::Columns`].
    pub(super) fn at(&self, plane: PlaneId, position: usize) -> Option<BlockId> {
        let plane = self.of_group(plane);
        match &self.order {
            Order::Array(array) => array.members[plane.index()].get(position).copied(),
            Order::Dense(dense) => dense.at(plane, position),
            Order::Closing(_) | Order::Valid(_) | Order::Buckets(_) => None,
        }
    }

    /// Returns the blocks of a plane in columns; only for [`Index::Columns`].
    pub(super) fn candidates(&self, plane: PlaneId) -> Option<Candidates<'_>> {
        let Order::Dense(dense) = &self.order else { return None };
        Some(dense.candidates(self.of_group(plane)))
    }

    /// Returns the blocks of a plane in their order.
    pub(super) fn of(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> {
        let plane = self.of_group(plane);
        let (array, ranks, buckets, dense) = match &self.order {
            Order::Array(array) => (&array.members[plane.index()][..], None, None, None),
            Order::Closing(ranks) | Order::Valid(ranks) => (&[][..], Some(ranks), None, None),
            Order::Buckets(buckets) => (&[][..], None, Some(buckets), None),
            Order::Dense(dense) => (&[][..], None, None, Some(dense)),
        };
        let ranked = ranks.into_iter().flat_map(move |ranks| ranks.of(plane));
        let listed = buckets.into_iter().flat_map(move |buckets| buckets.of(plane));
        let dense = dense.into_iter().flat_map(move |dense| (0..).map_while(move |row| dense.at(plane, row)));
        array.iter().copied().chain(ranked).chain(listed).chain(dense)
    }

    /// Returns the times at which a block changed, if ages are kept.
    pub(super) fn age(&self, block: BlockId) -> Option<Age> {
        match &self.order {
            Order::Dense(dense) => Some(dense.age(block)),
            _ => self.ages.get(block.index()).copied(),
        }
    }

    /// Writes the blocks of the index of a plane in their order.
    pub(super) fn save(&self, plane: PlaneId, out: &mut Writer) -> Result<(), StateError> {
        self.of(plane).try_for_each(|block| {
            out.u32(block.0)?;
            let Some(Age { closed, changed }) = self.age(block) else { return Ok(()) };
            out.u64(closed)?;
            out.u64(changed)
        })
    }

    /// Reads what [`ClosedBlocks::save`] wrote, into an index without blocks. `closed` has the valid units and erases
    /// of the closed blocks of the planes whose blocks are in this index, starting with `plane`. Each of these blocks
    /// must occur once.
    pub(super) fn load(
        &mut self,
        plane: PlaneId,
        closed: &mut [Option<(u16, u32)>],
        clock: u64,
        input: &mut Reader,
    ) -> Result<(), StateError> {
        let first = self.of_group(plane).index() * closed.len();
        for _ in 0..closed.iter().flatten().count() {
            let block = BlockId(input.u32()?);
            let within = block.index().checked_sub(first).and_then(|index| closed.get_mut(index));
            let Some((units, erases)) = within.and_then(Option::take) else {
                return Err(input.damaged(format!("block {} among those that can be reclaimed", block.0)));
            };
            let mut age = Age::default();
            if self.age(block).is_some() {
                age = Age { closed: input.u64()?, changed: input.u64()? };
                if age.changed > clock || age.closed > age.changed {
                    return Err(input.damaged(format!("block {} has changed in the future", block.0)));
                }
            }
            self.add(plane, block, u32::from(units), erases, age);
        }
        Ok(())
    }
}

/// Blocks of each plane in a deterministic order, to draw from.
#[derive(Clone, Debug)]
struct Array {
    members: Vec<Vec<BlockId>>,
    /// Position of each block among those of its plane.
    positions: Vec<u32>,
}

impl Array {
    fn new(device: &DeviceConfig, planes: u32) -> Array {
        // A clone of an empty vector would have no capacity.
        let room = |_| Vec::with_capacity((device.geometry.blocks * planes) as usize);
        let positions = vec![0; device.total_blocks() as usize];
        Array { members: (0..device.total_planes() / planes).map(room).collect(), positions }
    }

    fn insert(&mut self, plane: PlaneId, block: BlockId) {
        let members = &mut self.members[plane.index()];
        self.positions[block.index()] = members.len() as u32;
        members.push(block);
    }

    /// Removes a block. The last one takes its position.
    fn remove(&mut self, plane: PlaneId, block: BlockId) {
        let (members, position) = (&mut self.members[plane.index()], self.positions[block.index()]);
        members.swap_remove(position as usize);
        if let Some(moved) = members.get(position as usize) {
            self.positions[moved.index()] = position;
        }
    }
}
