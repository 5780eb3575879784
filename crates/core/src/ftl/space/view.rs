//! Regions for policies: blocks, and the counts that follow from them.

use super::block::Age;
use super::closed::ClosedBlocks;
use super::cold::ColdBlocks;
use super::columns::Candidates;
use super::region::Region;
use super::{Block, Role};
use crate::config::cells::BlockSize;
use crate::sim::id::{BlockId, PlaneId};

/// A region as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct RegionView<'a> {
    pub(super) region: &'a Region,
    pub(super) free: u32,
    /// Blocks of the device, by number.
    pub(super) blocks: &'a [Block],
    /// Number of blocks of the region's planes.
    pub(super) count: u32,
    pub(super) closed: Option<&'a ClosedBlocks>,
    pub(super) size: BlockSize,
    pub(super) clock: u64,
    /// Sum of the erases of these blocks.
    pub(super) erases: u64,
    /// Only in views for a wear policy that looks for cold data.
    pub(super) cold: Option<&'a ColdBlocks>,
}

/// A block as policies see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockView {
    /// Number of the block, counted over the whole device, plane by plane.
    pub block: BlockId,
    /// Number of valid units.
    pub valid: u32,
    /// Number of erases since the device was new.
    pub erases: u32,
    /// Times of its closing and of its last change; 0 unless a policy needs ages.
    pub age: Age,
}

impl<'a> RegionView<'a> {
    /// Returns the plane of the region, or the first plane of its pool (`gc.scope`).
    #[inline]
    pub fn plane(&self) -> PlaneId {
        self.region.plane
    }

    /// Returns the contents of the blocks of the region.
    pub fn role(&self) -> Role {
        self.region.role
    }

    /// Returns the view with this number of free blocks, which includes victims that only have to be erased.
    pub(in crate::ftl) fn with_free(self, free: u32) -> RegionView<'a> {
        RegionView { free, ..self }
    }

    /// Returns the number of free blocks, including victims that only have to be erased.
    #[inline]
    pub fn free_blocks(&self) -> u32 {
        self.free
    }

    /// Returns the number of closed blocks.
    #[inline]
    pub fn closed_count(&self) -> u32 {
        self.region.closed
    }

    /// Returns the number of invalid units in closed blocks.
    #[inline]
    pub fn invalid_units(&self) -> u32 {
        self.region.invalid
    }

    /// Returns the number of host writes so far, in units.
    #[inline]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Returns the number of data units in a block.
    #[inline]
    pub fn units(&self) -> u32 {
        let BlockSize { data_units, .. } = self.size;
        data_units
    }

    /// Returns the fewest invalid units with which reclaiming a data block frees space.
    pub(in crate::ftl) fn min_reclaim(&self) -> u32 {
        self.size.program_units
    }

    /// Returns the number of valid units of a block.
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        u32::from(self.blocks[block.index()].valid)
    }

    /// Returns the number of erases of a block.
    #[inline]
    pub fn erases(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].erases
    }

    /// Returns the times at which a block was closed and last changed. Both are 0 unless a policy needs ages.
    #[inline]
    pub fn age(&self, block: BlockId) -> Age {
        self.closed.and_then(|closed| closed.age(block)).unwrap_or_default()
    }

    /// Returns the properties of a block.
    pub fn block(&self, block: BlockId) -> BlockView {
        BlockView { block, valid: self.valid(block), erases: self.erases(block), age: self.age(block) }
    }

    /// Returns the closed blocks in the order of the index.
    pub fn closed_blocks(&self) -> impl Iterator<Item = BlockId> + use<'a> {
        let plane = self.plane();
        self.closed.into_iter().flat_map(move |closed| closed.of(plane))
    }

    /// Returns `true` if a block is one of the closed blocks.
    pub fn is_closed(&self, block: BlockId) -> bool {
        let of_plane = self.count / self.region.planes;
        let planes = self.region.plane.0..self.region.plane.0 + self.region.planes;
        let is_member = |closed: &ClosedBlocks| closed.contains(self.plane(), block);
        planes.contains(&(block.0 / of_plane)) && self.closed.is_some_and(is_member)
    }

    /// Returns the closed block at a position; only with
    /// [`Index::Array`](crate::ftl::gc::victim::Index::Array) and
    /// [`Index::Columns`](crate::ftl::gc::victim::Index::Columns).
    pub fn closed_at(&self, position: usize) -> Option<BlockId> {
        self.closed?.at(self.plane(), position)
    }

    /// Returns the fewest valid units of any closed block, if one has an invalid unit; only with
    /// [`Index::Buckets`](crate::ftl::gc::victim::Index::Buckets).
    #[inline]
    pub fn fewest_valid(&self) -> Option<u32> {
        self.closed?.fewest_valid(self.plane())
    }

    /// Returns the closed block that has had exactly `valid` units for the longest time; only with
    /// [`Index::Buckets`](crate::ftl::gc::victim::Index::Buckets).
    #[inline]
    pub fn oldest_with(&self, valid: u32) -> Option<BlockId> {
        self.closed?.oldest_with(self.plane(), valid)
    }

    /// Returns the closed blocks that have exactly `valid` units, from the oldest to the newest; only with
    /// [`Index::Buckets`](crate::ftl::gc::victim::Index::Buckets).
    pub fn all_with(&self, valid: u32) -> impl Iterator<Item = BlockId> + use<'a> {
        let plane = self.plane();
        self.closed.into_iter().flat_map(move |closed| closed.all_with(plane, valid))
    }

    /// Returns the block that was closed first; only with [`Index::Closing`](crate::ftl::gc::victim::Index::Closing).
    pub fn first_closed(&self) -> Option<BlockId> {
        self.closed?.first(self.plane())
    }

    /// Returns the block that `greedy` chooses: of the blocks with the fewest valid units, the one that has had this
    /// number for the longest time. Only with [`Index::Valid`](crate::ftl::gc::victim::Index::Valid),
    /// [`Index::Buckets`](crate::ftl::gc::victim::Index::Buckets) and
    /// [`Index::Columns`](crate::ftl::gc::victim::Index::Columns).
    pub fn greediest(&self) -> Option<BlockId> {
        self.closed?.first(self.plane()).filter(|&block| self.valid(block) < self.units())
    }

    /// Returns the closed blocks in columns, without a copy; only with
    /// [`Index::Columns`](crate::ftl::gc::victim::Index::Columns).
    pub fn candidates(&self) -> Option<Candidates<'a>> {
        self.closed?.candidates(self.plane())
    }

    /// Returns the mean number of erases of the blocks of the plane or pool.
    pub fn mean_erases(&self) -> f64 {
        self.erases as f64 / f64::from(self.count)
    }

    /// Returns the closed data blocks of the plane, from the coldest to the hottest, in the order that the wear policy
    /// needs.
    pub fn cold_blocks(&self) -> impl Iterator<Item = BlockId> + use<'a> {
        let plane = self.plane();
        self.cold.into_iter().flat_map(move |cold| cold.of(plane))
    }

    /// Returns the time of the last erase of a block, in host writes; only in views for a wear policy that looks for
    /// cold data.
    pub fn last_erase(&self, block: BlockId) -> u64 {
        self.cold.map_or(0, |cold| cold.last_erase(block))
    }
}
