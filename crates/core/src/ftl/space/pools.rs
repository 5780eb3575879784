//! Sums over the planes of pools, for garbage collection by pool (`gc.scope`). Blocks belong to planes in any case.

use super::Space;
use super::region::{Region, RegionId, Role};
use crate::sim::id::PlaneId;

impl Space {
    /// Adds a region for each pool, if garbage collection works by pool.
    pub(super) fn add_pools(&mut self) {
        let Some(planes) = self.pool_planes else { return };
        let firsts = (0..self.planes.len() as u32).step_by(planes as usize).map(PlaneId);
        let pools: Vec<Region> = firsts.map(|first| Region { planes, ..*self.region_of(first, Role::Data) }).collect();
        self.pool_free = vec![0; pools.len()];
        self.regions.extend(pools);
        self.count_free();
    }

    /// Returns the region whose blocks are collected together with those of a plane: of its pool, or of the plane.
    #[inline]
    pub fn collected_with(&self, plane: PlaneId) -> RegionId {
        match self.pool_planes {
            Some(planes) => RegionId((Role::ALL.len() * self.planes.len()) as u32 + plane.0 / planes),
            None => self.region(plane, Role::Data),
        }
    }

    /// Returns the number of free data blocks of the pool of a plane, if garbage collection works by pool, or of the
    /// plane.
    #[inline]
    pub fn free_together(&self, plane: PlaneId) -> u32 {
        match self.pool_planes {
            Some(planes) => self.pool_free[(plane.0 / planes) as usize],
            None => self.free_blocks(plane, Role::Data),
        }
    }

    /// Adds up the counts of the planes of a pool, if the region is that of a pool. Called before its use.
    pub(in crate::ftl) fn sum_pool(&mut self, id: RegionId) {
        let Region { plane: first, planes, role, .. } = self.regions[id.0 as usize];
        if planes == 1 {
            return;
        }
        let (mut free, mut invalid, mut closed, mut reserve) = (0, 0, 0, 0);
        for plane in (first.0..first.0 + planes).map(PlaneId) {
            let region = self.region_of(plane, role);
            free += region.free;
            invalid += region.invalid;
            closed += region.closed;
            reserve += region.reserve;
        }
        let region = &mut self.regions[id.0 as usize];
        *region = Region { free, invalid, closed, reserve, ..*region };
    }

    /// Returns the number of erases of all blocks of the planes of a region.
    pub(super) fn erases_of(&self, region: &Region) -> u64 {
        let first = region.plane.index();
        self.planes[first..first + region.planes as usize].iter().map(|plane| plane.erases).sum()
    }

    /// Returns the number of erases of all blocks that are collected together with those of a plane, and the number of
    /// these blocks.
    pub(super) fn erases_with(&self, plane: PlaneId) -> (u64, u32) {
        let region = &self.regions[self.collected_with(plane).0 as usize];
        (self.erases_of(region), self.blocks_per_plane.divisor() * region.planes)
    }

    /// Counts a block of a plane that has become free.
    #[inline]
    pub(super) fn add_free(&mut self, plane: PlaneId, role: Role) {
        self.region_mut(plane, role).free += 1;
        if let (Some(planes), Role::Data) = (self.pool_planes, role) {
            self.pool_free[(plane.0 / planes) as usize] += 1;
        }
    }

    /// Counts a free block of a plane that has been taken.
    #[inline]
    pub(super) fn take_free(&mut self, plane: PlaneId, role: Role) {
        self.region_mut(plane, role).free -= 1;
        if let (Some(planes), Role::Data) = (self.pool_planes, role) {
            self.pool_free[(plane.0 / planes) as usize] -= 1;
        }
    }

    /// Counts the free data blocks of a pool.
    pub(super) fn count_free_of(&self, pool: u32) -> u32 {
        let planes = self.pool_planes.unwrap_or(1);
        (pool * planes..(pool + 1) * planes).map(|plane| self.free_blocks(PlaneId(plane), Role::Data)).sum()
    }

    /// Counts the free data blocks of all pools.
    pub(super) fn count_free(&mut self) {
        for pool in 0..self.pool_free.len() as u32 {
            self.pool_free[pool as usize] = self.count_free_of(pool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    #[test]
    fn the_mean_of_the_erases_is_that_of_the_blocks_that_are_collected_together() {
        for (scope, mean) in [("plane", 2.0), ("pool", 1.0)] {
            let overrides = [
                "geometry.channels=2",
                "geometry.chips=1",
                "geometry.dies=1",
                "geometry.planes=1",
                "allocation=dynamic",
                &format!("gc.scope={scope}"),
            ];
            let device = load("tiny", &overrides.map(str::to_owned)).unwrap();
            let mut space = Space::new(&device, 1, false, &Default::default()).unwrap();
            space.planes[0].erases = 2 * u64::from(device.geometry.blocks);
            let (erases, blocks) = space.erases_with(PlaneId(0));
            assert_eq!(erases as f64 / f64::from(blocks), mean, "{scope}");
        }
    }
}
