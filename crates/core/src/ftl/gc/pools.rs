//! State of garbage collection that the planes of a pool share: thresholds, and victims that are assigned to jobs
//! (`gc/assign.rs`).

use std::collections::VecDeque;
use std::ops::Range;

use crate::config::units::BlockCount;
use crate::config::{DeviceConfig, GcScope};
use crate::ftl::allocation::AllocationConfig;
use crate::sim::id::{BlockId, PlaneId};

/// State of garbage collection that is common to the planes of a pool.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Number of planes of a pool.
    pub(super) planes: u32,
    /// True if thresholds and victims are those of the pool.
    pub(super) by_pool: bool,
    /// True if moved units may go to any plane of the pool.
    pub(super) anywhere: bool,
    /// Thresholds in blocks of a pool, or of a plane.
    pub(super) soft: u32,
    pub(super) hard: u32,
    /// Number of free blocks of a pool, or of a plane, below which garbage collection runs in idle time; 0 while the
    /// host is not idle.
    pub(super) until: u32,
    /// Victims that were chosen and whose evacuation has not started, by the plane whose job takes them.
    pub(super) assigned: Vec<VecDeque<BlockId>>,
    /// True if a pool at its threshold has found no victim, or no plane for the units of one. Indexed by pool.
    pub(super) lacks: Vec<bool>,
    /// True if a job of the pool may wait for more idle time (`gc.background.preempt`). Indexed by pool.
    resting: Vec<bool>,
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
        let resting = lacks.clone();
        let mut pools =
            Box::new(Pools { planes, by_pool, anywhere, soft: 0, hard: 0, until: 0, assigned, lacks, resting });
        pools.set_thresholds(device, false);
        Some(pools)
    }

    /// Sets the thresholds of a device. If garbage collection is held back, it starts at the hard threshold.
    pub fn set_thresholds(&mut self, device: &DeviceConfig, is_held: bool) {
        let (soft, hard) = if self.by_pool {
            device.thresholds_of_pool(self.planes)
        } else {
            (device.soft_threshold(), device.hard_threshold())
        };
        (self.soft, self.hard) = (if is_held { hard } else { soft }, hard);
    }

    /// Sets the number of free blocks below which garbage collection runs in idle time, or 0 for none.
    pub fn collect_below(&mut self, device: &DeviceConfig, until: BlockCount) {
        self.until =
            if self.by_pool { device.blocks_of_pool(until, self.planes) } else { until.of(device.geometry.blocks) };
    }

    /// Returns the planes of the pool of a plane.
    pub fn of(&self, plane: PlaneId) -> Range<u32> {
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

    /// Returns the index of the first plane whose job has a victim to evacuate next, if there is one.
    pub fn first_assigned(&self) -> Option<usize> {
        self.assigned.iter().position(|assigned| !assigned.is_empty())
    }

    /// Takes the victim that the job of a plane evacuates next.
    pub fn take_assigned(&mut self, plane: PlaneId) -> Option<BlockId> {
        self.assigned[plane.index()].pop_front()
    }

    /// Notes whether a job of the pool of a plane waits for more idle time. Returns whether one did.
    #[inline]
    pub fn set_resting(&mut self, plane: PlaneId, rests: bool) -> bool {
        std::mem::replace(&mut self.resting[(plane.0 / self.planes) as usize], rests)
    }

    /// Returns `true` if the pool of a plane needs a victim, or room for one, and has found none.
    #[inline]
    pub fn lacks(&self, plane: PlaneId) -> bool {
        self.lacks[(plane.0 / self.planes) as usize]
    }
}
