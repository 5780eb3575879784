//! Garbage collection of pools: chooses victims for all planes of a pool (`gc.scope`), and the planes that their units
//! go to (`gc.destination`).
//!
//! Each plane has a job, which programs this plane only. A victim is assigned to a job: that of its own plane, or of
//! any plane of the pool. The rules for free pages of a plane therefore hold for pools, too.

use std::collections::VecDeque;
use std::ops::Range;

use super::job::Job;
use crate::config::{DeviceConfig, GcScope};
use crate::ftl::Ftl;
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::space::{Claim, InHand, Role};
use crate::sim::id::{BlockId, PlaneId};
use crate::sim::table::Table;

/// State of garbage collection that is common to the planes of a pool.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Number of planes of a pool.
    planes: u32,
    /// True if thresholds and victims are those of the pool.
    by_pool: bool,
    /// True if moved units may go to any plane of the pool.
    anywhere: bool,
    /// Thresholds in blocks of a pool, or of a plane.
    soft: u32,
    hard: u32,
    /// Victims that were chosen and whose evacuation has not started, by the plane whose job takes them.
    assigned: Vec<VecDeque<BlockId>>,
    /// True if a pool at its threshold has found no victim, or no plane for the units of one. Indexed by pool.
    lacks: Vec<bool>,
}

impl Pools {
    /// Creates the state of a device. Returns `None` if planes are collected by themselves.
    pub fn new(device: &DeviceConfig) -> Option<Box<Pools>> {
        let AllocationConfig::Dynamic(options) = &device.allocation else { return None };
        let planes = options.planes_per_pool(device);
        let (by_pool, anywhere) = (device.gc.scope == GcScope::Pool, device.gc.destination == GcScope::Pool);
        if planes == 1 || !(by_pool || anywhere) {
            return None;
        }
        let all = device.total_planes();
        let (assigned, lacks) = (vec![VecDeque::new(); all as usize], vec![false; (all / planes) as usize]);
        let mut pools = Box::new(Pools { planes, by_pool, anywhere, soft: 0, hard: 0, assigned, lacks });
        pools.set_thresholds(device, false);
        Some(pools)
    }

    /// Sets the thresholds of a device. If garbage collection is held back, it starts at the hard threshold.
    pub fn set_thresholds(&mut self, device: &DeviceConfig, is_held: bool) {
        let (soft, hard) = match self.by_pool {
            true => device.thresholds_of_pool(self.planes),
            false => (device.soft_threshold(), device.hard_threshold()),
        };
        (self.soft, self.hard) = (if is_held { hard } else { soft }, hard);
    }

    /// Returns the planes of the pool of a plane.
    fn of(&self, plane: PlaneId) -> Range<u32> {
        let first = plane.0 / self.planes * self.planes;
        first..first + self.planes
    }

    /// Returns the number of free blocks that garbage collection keeps if a plane is to have `free_blocks` free.
    pub fn level(&self, free_blocks: u32, soft: u32) -> u32 {
        match (self.by_pool, free_blocks > soft) {
            (false, _) => free_blocks,
            (true, true) => self.soft + 1,
            (true, false) => free_blocks.saturating_sub(1) * self.planes + 1,
        }
    }

    /// Returns the victim that the job of a plane evacuates next.
    #[inline]
    pub fn assigned(&self, plane: PlaneId) -> Option<BlockId> {
        self.assigned[plane.index()].front().copied()
    }

    /// Takes the victim that the job of a plane evacuates next.
    pub fn take_assigned(&mut self, plane: PlaneId) -> Option<BlockId> {
        self.assigned[plane.index()].pop_front()
    }

    /// Returns `true` if the pool of a plane needs a victim, or room for one, and has found none.
    #[inline]
    pub fn lacks(&self, plane: PlaneId) -> bool {
        self.lacks[(plane.0 / self.planes) as usize]
    }
}

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
