//! Garbage collection of pools: chooses victims for all planes of a pool (`gc.scope`), and the planes that their units
//! go to (`gc.destination`).
//!
//! Each plane has a job, which programs this plane only. A victim is assigned to a job: that of its own plane, or of
//! any plane of the pool. The rules for free pages of a plane therefore hold for pools, too.

use std::ops::Range;

use super::job::Job;
use crate::ftl::Ftl;
use crate::ftl::space::{Claim, InHand, Role};
use crate::sim::id::PlaneId;
use crate::sim::table::Table;

impl Ftl {
    /// Assigns a victim to a job of the pool of `plane`, if the pool, or a plane of it, is at its threshold. Returns
    /// the plane of the job.
    pub fn assign_victim(&mut self, plane: PlaneId, jobs: &Table<PlaneId, Job>) -> Option<PlaneId> {
        let pools = self.pools.as_deref()?;
        let (by_pool, planes) = (pools.by_pool, pools.of(plane));
        let coming = |ftl: &Ftl, plane| {
            let of_job = |job: PlaneId| jobs[job].is_evacuating(ftl, plane) + ftl.assigned_of(job, plane);
            let leaving: u32 = ftl.job_planes(plane).map(|job| of_job(PlaneId(job))).sum();
            jobs[plane].awaiting_erase - jobs[plane].held + leaving
        };
        let mut assigned = None;
        let mut lacks = false;
        for first in planes.clone().map(PlaneId) {
            let of = if by_pool { planes.clone() } else { first.0..first.0 + 1 };
            if self.blocks.free_together(first) > self.soft() {
                if by_pool { break } else { continue }
            }
            let free = self.blocks.free_together(first) + of.map(|plane| coming(self, PlaneId(plane))).sum::<u32>();
            if free <= self.soft() {
                assigned = self.choose_and_assign(first, free, jobs);
                lacks |= assigned.is_none();
            }
            if by_pool || assigned.is_some() {
                break;
            }
        }
        if let Some(pools) = &mut self.pools {
            let pool = (plane.0 / pools.planes) as usize;
            pools.lacks[pool] = lacks;
        }
        assigned
    }

    /// Chooses a victim of the pool or plane of `first`, which counts `free` free blocks, and assigns it to a job.
    fn choose_and_assign(&mut self, first: PlaneId, free: u32, jobs: &Table<PlaneId, Job>) -> Option<PlaneId> {
        if !self.wants_gc(first, free) {
            return None;
        }
        let target = match self.moves_anywhere() {
            true => Some(self.plane_for_copies(first, |plane| {
                let job = &jobs[plane];
                (job.moving.is_idle() && job.leaving == 0).then(|| job.in_hand(self, plane))
            })?),
            false => None,
        };
        // The erase of a victim may have to wait for trim records, and those for room.
        let least = if self.shape.trim_journal { self.shape.units_per_program } else { 0 };
        let victim = self.blocks.take_victim(self.blocks.collected_with(first), least)?;
        let job = target.unwrap_or_else(|| self.blocks.plane_of(victim));
        self.pools.as_mut()?.assigned[job.index()].push_back(victim);
        Some(job)
    }

    /// Returns the plane of the pool of `first` that the units of a victim are moved to: the one with the most free
    /// blocks among those that have room for a whole victim. `hand` returns the units that the job of a plane holds, or
    /// `None` if the job cannot take a victim.
    pub(super) fn plane_for_copies(&self, first: PlaneId, hand: impl Fn(PlaneId) -> Option<InHand>) -> Option<PlaneId> {
        let pools = self.pools.as_deref()?;
        let has_room = |&plane: &PlaneId| {
            let is_free = pools.assigned[plane.index()].is_empty() && !self.blocks.is_migrating(plane);
            let claim = hand(plane).filter(|_| is_free).map(Claim::Victim);
            claim.is_some_and(|claim| self.blocks.may_take(self.blocks.region(plane, Role::Data), claim))
        };
        let planes = pools.of(first).map(PlaneId).filter(has_room);
        planes.max_by_key(|&plane| (self.blocks.free_blocks(plane, Role::Data), std::cmp::Reverse(plane)))
    }

    /// Returns the planes whose garbage is collected together with that of a plane.
    pub(super) fn planes_together(&self, plane: PlaneId) -> Range<u32> {
        let pools = self.pools.as_deref().filter(|pools| pools.by_pool && !pools.anywhere);
        pools.map_or(plane.0..plane.0 + 1, |pools| pools.of(plane))
    }

    /// Returns the planes whose jobs may evacuate blocks of a plane.
    pub fn job_planes(&self, plane: PlaneId) -> Range<u32> {
        let pools = self.pools.as_deref().filter(|pools| pools.anywhere);
        pools.map_or(plane.0..plane.0 + 1, |pools| pools.of(plane))
    }

    /// Returns the number of blocks of a plane that were assigned to a job and have not been started.
    fn assigned_of(&self, job: PlaneId, plane: PlaneId) -> u32 {
        let assigned = self.pools.iter().flat_map(|pools| &pools.assigned[job.index()]);
        assigned.filter(|&&block| self.blocks.plane_of(block) == plane).count() as u32
    }

    /// Returns `true` if moved units may go to any plane of the pool.
    pub fn moves_anywhere(&self) -> bool {
        self.pools.as_ref().is_some_and(|pools| pools.anywhere)
    }

    /// Returns the soft threshold of a plane, or of its pool if garbage collection works by pool.
    #[inline]
    pub fn soft(&self) -> u32 {
        self.pools.as_ref().map_or(self.shape.soft, |pools| pools.soft)
    }

    /// Returns the hard threshold of a plane, or of its pool if garbage collection works by pool.
    #[inline]
    pub fn hard(&self) -> u32 {
        self.pools.as_ref().map_or(self.shape.hard, |pools| pools.hard)
    }
}
