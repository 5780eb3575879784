//! Garbage collection of pools: chooses victims for all planes of a pool (`gc.scope`), and the planes that their units
//! go to (`gc.destination`).
//!
//! Each plane has a job, which programs this plane only. A victim is assigned to a job: that of its own plane, or of
//! any plane of the pool. The rules for free pages of a plane therefore hold for pools, too.

use std::ops::Range;

use super::job::Job;
use crate::ftl::Ftl;
use crate::ftl::space::{Claim, InHand, Role, Space};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{BlockId, PlaneId};
use crate::sim::table::Table;

impl Ftl {
    /// Assigns a victim to a job of the pool of `plane`, if the pool, or a plane of it, is at its threshold, or below
    /// `gc.background.until` in idle time. Returns the planes of the jobs that have something to do.
    pub fn assign_victim(&mut self, plane: PlaneId, jobs: &Table<PlaneId, Job>) -> Option<Range<u32>> {
        if self.blocks.has_superblocks() && self.assign_superblock(plane, jobs, Space::take_failed_superblock) {
            return Some(self.planes_together(plane));
        }
        let pools = self.pools.as_deref()?;
        let (by_pool, planes) = (pools.by_pool, pools.of(plane));
        let coming = |ftl: &Ftl, plane| {
            let of_job = |job: PlaneId| jobs[job].is_evacuating(ftl, plane) + ftl.assigned_of(job, plane);
            let leaving: u32 = ftl.job_planes(plane).map(|job| of_job(PlaneId(job))).sum();
            jobs[plane].awaiting_erase - jobs[plane].held + leaving
        };
        let level = self.soft().max(pools.until.saturating_sub(1));
        let mut assigned = None;
        let mut lacks = false;
        for first in planes.clone().map(PlaneId) {
            let of = if by_pool { planes.clone() } else { first.0..first.0 + 1 };
            if self.blocks.free_together(first) > level {
                if by_pool { break } else { continue }
            }
            let free = self.blocks.free_together(first) + of.map(|plane| coming(self, PlaneId(plane))).sum::<u32>();
            if free <= level {
                assigned = self.choose_and_assign(first, free, jobs);
                // In idle time, the end of each collection is soon enough to try again.
                lacks |= assigned.is_none() && free <= self.soft();
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

    /// Chooses a victim of the pool or plane of `first`, which counts `free` free blocks, and assigns it to a job, or a
    /// superblock to all jobs of the pool.
    fn choose_and_assign(&mut self, first: PlaneId, free: u32, jobs: &Table<PlaneId, Job>) -> Option<Range<u32>> {
        let is_background = free > self.soft() || !self.wants_gc(first, free);
        if is_background && (free >= self.pools.as_deref()?.until || self.has_queued_victim(first, jobs)) {
            return None;
        }
        if self.blocks.has_superblocks() {
            return self.assign_superblock(first, jobs, Space::take_superblock).then(|| self.planes_together(first));
        }
        let target = if self.moves_anywhere() {
            Some(self.plane_for_copies(first, |plane| {
                let job = &jobs[plane];
                (job.moving.is_idle() && job.leaving == 0).then(|| job.in_hand(self, plane))
            })?)
        } else {
            None
        };
        // The erase of a victim may have to wait for trim records, and those for room.
        let least = if self.shape.trim_journal { self.shape.units_per_program } else { 0 };
        let gain = if is_background { self.shape.gain } else { 0 };
        let victim = self.blocks.take_victim(self.blocks.collected_with(first), least.max(gain))?;
        if is_background {
            self.blocks.move_for(victim, CopyCause::Background);
        }
        let job = target.unwrap_or_else(|| self.blocks.plane_of(victim));
        self.pools.as_mut()?.assigned[job.index()].push_back(victim);
        Some(job.0..job.0 + 1)
    }

    /// Returns `true` if a victim waits for the end of another one, in the pool of a plane. Then no further one is
    /// chosen in idle time, so that few are unfinished when this ends.
    fn has_queued_victim(&self, plane: PlaneId, jobs: &Table<PlaneId, Job>) -> bool {
        let Some(pools) = self.pools.as_deref() else { return false };
        let is_started = |plane: PlaneId| usize::from(jobs[plane].moving.block().is_some());
        pools.of(plane).map(PlaneId).any(|plane| pools.assigned[plane.index()].len() + is_started(plane) > 1)
    }

    /// Returns `true` if a job may leave a victim that was chosen in idle time to later idle time: a host request has
    /// ended idle time, and nothing waits for space that the job uses or that the victim frees.
    pub(super) fn can_leave(&self, job: PlaneId, victim: BlockId) -> bool {
        let (blocks, from) = (&self.blocks, self.blocks.plane_of(victim));
        self.shape.preempts
            && self.shape.until == 0
            && blocks.block(victim).moved_for == CopyCause::Background
            && blocks.takes_host_write(job)
            && blocks.takes_host_write(from)
            && !self.is_at_threshold(from)
    }

    /// Returns `true` if a plane is at its soft threshold, or the pool of the plane, or a plane of the pool that needs
    /// the same room for copies.
    fn is_at_threshold(&self, plane: PlaneId) -> bool {
        let mut planes = match self.pools.as_deref() {
            Some(pools) if !pools.by_pool => pools.of(plane),
            _ => plane.0..plane.0 + 1,
        };
        planes.any(|plane| self.blocks.free_together(PlaneId(plane)) <= self.soft())
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
