//! Write frontiers of regions.

use std::ops::Range;

use super::region::{FrontierId, Layout, Region, RegionId, Role};
use super::{Claim, Space};
use crate::sim::id::{BlockId, PlaneId, Ppn};

impl Space {
    /// Returns the region of a plane that has a role.
    #[inline]
    pub fn region(&self, plane: PlaneId, role: Role) -> RegionId {
        RegionId(role as u32 * self.planes.len() as u32 + plane.0)
    }

    #[inline]
    pub(super) fn region_of(&self, plane: PlaneId, role: Role) -> &Region {
        &self.regions[self.region(plane, role).0 as usize]
    }

    #[inline]
    pub(super) fn region_mut(&mut self, plane: PlaneId, role: Role) -> &mut Region {
        let region = self.region(plane, role);
        &mut self.regions[region.0 as usize]
    }

    #[inline]
    pub(super) fn layout(&self, role: Role) -> &Layout {
        &self.layouts[role as usize]
    }

    /// Returns the region of a frontier.
    pub(super) fn region_at(&self, at: FrontierId) -> &Region {
        let of = |role: Role| {
            let layout = self.layout(role);
            Some((at.0.checked_sub(layout.first)?.checked_div(layout.frontiers())?, role))
        };
        let (within, role) = of(Role::Cache).or_else(|| of(Role::Map)).or_else(|| of(Role::Data)).unwrap_or_default();
        self.region_of(PlaneId(within), role)
    }

    /// Returns the frontier of writes of a class in the data of a plane.
    #[inline]
    pub fn host_frontier(&self, plane: PlaneId, class: u8) -> FrontierId {
        FrontierId(plane.0 * self.data_frontiers + u32::from(class))
    }

    /// Returns the frontier of moved units in the data of a plane. If moved units share the frontiers of writes, this
    /// is the one of class 0.
    #[inline]
    pub fn gc_frontier(&self, plane: PlaneId) -> FrontierId {
        FrontierId(plane.0 * self.data_frontiers + self.gc_frontier)
    }

    /// Returns the frontier of units that wear leveling migrates in a plane; only if there is one.
    #[inline]
    pub fn wear_frontier(&self, plane: PlaneId) -> FrontierId {
        FrontierId((plane.0 + 1) * self.data_frontiers - 1)
    }

    /// Returns `true` if the wear policy migrates data.
    #[inline]
    pub fn has_wear_frontier(&self) -> bool {
        self.layout(Role::Data).has_wear_frontier
    }

    /// Returns `true` if a frontier is that of migrated units.
    pub(super) fn is_wear_frontier(&self, at: FrontierId) -> bool {
        self.has_wear_frontier()
            && at.0 < self.layout(Role::Map).first
            && (at.0 + 1).is_multiple_of(self.data_frontiers)
    }

    /// Returns the frontier of translation pages in a plane; only if translation pages are kept in flash.
    #[inline]
    pub fn map_frontier(&self, plane: PlaneId) -> FrontierId {
        FrontierId(self.layout(Role::Map).first + plane.0)
    }

    /// Returns `true` if host writes go to a frontier.
    #[inline]
    pub fn takes_host(&self, at: FrontierId) -> bool {
        let data = self.layout(Role::Data);
        let is_of_data = at.0 < self.layout(Role::Map).first && at.0 % data.frontiers() < data.writes;
        is_of_data || self.is_cache_frontier(at)
    }

    /// Returns the units left in the open block of a frontier.
    #[inline]
    pub fn room(&self, at: FrontierId) -> u32 {
        self.frontiers[at.0 as usize].left
    }

    /// Returns the next address of a frontier, if its block has room.
    #[inline]
    pub fn next_ppn(&self, at: FrontierId) -> Option<Ppn> {
        let frontier = &self.frontiers[at.0 as usize];
        (frontier.left > 0).then_some(Ppn(frontier.next))
    }

    /// Returns the frontier whose open block is `block`, if there is one.
    pub fn frontier_in(&self, block: BlockId) -> Option<FrontierId> {
        let role = self.block(block).role;
        let first = self.region_of(self.plane_of(block), role).first;
        let mut frontiers = (first..first + self.layout(role).frontiers()).map(FrontierId);
        frontiers.find(|&at| self.next_ppn(at).is_some_and(|ppn| self.block_of(ppn) == block))
    }

    /// Returns the number of unwritten units in the open blocks of a region, without those for migrated units.
    pub fn open_units(&self, plane: PlaneId, role: Role) -> u32 {
        let layout = self.layout(role);
        self.units_left(self.region_of(plane, role), 0..layout.frontiers() - u32::from(layout.has_wear_frontier))
    }

    #[inline]
    pub(super) fn units_left(&self, region: &Region, frontiers: Range<u32>) -> u32 {
        let range = (region.first + frontiers.start) as usize..(region.first + frontiers.end) as usize;
        self.frontiers[range].iter().map(|frontier| frontier.left).sum()
    }

    /// Returns the frontier that a host write of `class` goes to: the one of its class. If that has no room, and no
    /// block can be opened beyond the reserve, it is the frontier with the most room of any class.
    #[inline]
    pub fn frontier_for_host(&self, plane: PlaneId, class: u8) -> FrontierId {
        if self.has_one_host_frontier { self.host_frontier(plane, 0) } else { self.choose_host_frontier(plane, class) }
    }

    #[inline(never)]
    fn choose_host_frontier(&self, plane: PlaneId, class: u8) -> FrontierId {
        if self.cache_takes_write(plane) {
            return self.cache_frontier(plane);
        }
        self.native_frontier_for_host(plane, class)
    }

    /// Returns the frontier that a host write of `class` goes to in native blocks.
    #[inline]
    pub fn native_frontier_for_host(&self, plane: PlaneId, class: u8) -> FrontierId {
        match self.classes {
            1 => self.host_frontier(plane, 0),
            _ => self.frontier_with_room(plane, class, Claim::WRITE),
        }
    }

    /// Returns the number of units of a program at a frontier of host writes, which is `native` in native blocks.
    #[inline]
    pub fn program_units_of(&self, at: FrontierId, native: u32) -> u32 {
        if self.is_cache_frontier(at) { self.size(Role::Cache).program_units } else { native }
    }

    /// Returns the frontier that a moved unit of `class` goes to: the one of all moved units, or the host's frontier of
    /// its class.
    #[inline]
    pub fn frontier_for_moved(&self, plane: PlaneId, class: u8) -> FrontierId {
        let of_class = self.classes > 1 && self.layout(Role::Data).is_shared;
        if of_class { self.frontier_with_room(plane, class, Claim::Move) } else { self.gc_frontier(plane) }
    }

    fn frontier_with_room(&self, plane: PlaneId, class: u8, claim: Claim) -> FrontierId {
        let own = self.host_frontier(plane, class);
        if self.room(own) > 0 || self.may_open(self.region_of(plane, Role::Data), claim) {
            return own;
        }
        let all = (0..self.classes as u8).map(|class| self.host_frontier(plane, class));
        all.max_by_key(|&at| self.room(at)).unwrap_or(own)
    }

    /// Returns `true` if the device has an SLC cache.
    #[inline]
    pub fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// Returns the role of the block of a programmed unit of the host or of the device itself.
    #[inline]
    pub fn role_at(&self, ppn: Ppn) -> Role {
        if self.has_cache() { self.block(self.block_of(ppn)).role } else { Role::Data }
    }

    /// Returns `true` if a frontier is that of the cache.
    #[inline]
    pub fn is_cache_frontier(&self, at: FrontierId) -> bool {
        self.has_cache() && at.0 >= self.layout(Role::Cache).first
    }

    /// Region whose room decides first whether a plane takes a host write.
    #[inline]
    pub(super) fn host_region(&self, plane: PlaneId) -> RegionId {
        RegionId(self.first_host_region + plane.0)
    }

    /// Returns `true` if the units of victims are moved for different reasons, so that each block has to be asked.
    #[inline]
    pub fn moves_for_reasons(&self) -> bool {
        self.moves_for_reasons
    }

    /// Sets whether the units of victims are moved for different reasons.
    pub fn set_moves_for_reasons(&mut self, moves: bool) {
        self.moves_for_reasons = moves;
    }
}
