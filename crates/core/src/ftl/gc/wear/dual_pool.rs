//! Dual-pool wear leveling: blocks with hot data and blocks with cold data form two pools, and swap places.
//!
//! Source: L.-P. Chang, "On efficient wear leveling for large-scale flash-memory storage systems", SAC 2007.

use std::collections::BTreeSet;

use super::{Needs, WearPolicy};
use crate::config::DeviceConfig;
use crate::ftl::space::{ColdOrder, RegionView};
use crate::policy::Policy;
use crate::sim::id::BlockId;
use crate::state::{Reader, StateError, Writer};

/// Options of the policy.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DualPoolConfig {
    /// Difference of erases above which blocks change their pools.
    #[schemars(range(min = 1))]
    pub threshold: u32,
}

impl Default for DualPoolConfig {
    fn default() -> Self {
        DualPoolConfig { threshold: 16 }
    }
}

/// Block in one of the pools.
#[derive(Clone, Copy, Debug)]
struct Member {
    is_hot: bool,
    /// Erases since the block was new.
    erases: u32,
    /// Erases since the block joined its pool by a swap ("effective erase cycles").
    since_swap: u32,
}

/// A pool of a plane, in two orders: by the erases of its blocks, and by their erases since their swap.
#[derive(Clone, Debug, Default)]
struct Pool {
    by_erases: BTreeSet<(u32, u32)>,
    by_effective: BTreeSet<(u32, u32)>,
}

impl Pool {
    fn add(&mut self, block: u32, member: Member) {
        self.by_erases.insert((member.erases, block));
        self.by_effective.insert((member.since_swap, block));
    }

    fn remove(&mut self, block: u32, member: Member) {
        self.by_erases.remove(&(member.erases, block));
        self.by_effective.remove(&(member.since_swap, block));
    }
}

/// Keeps cold data in worn blocks.
///
/// If a block of the hot pool is erased more than `threshold` times more often than the least erased closed block of
/// the cold pool, it takes over the data, and the two blocks swap their pools. A block of the cold pool
/// that is erased often joins the hot pool, and a block of the hot pool that is erased seldom joins the cold pool.
#[derive(Clone, Debug)]
pub struct DualPool {
    threshold: u32,
    blocks_per_plane: u32,
    members: Vec<Member>,
    /// The cold and the hot pool of each plane.
    pools: Vec<[Pool; 2]>,
}

impl Policy for DualPool {
    type Config = DualPoolConfig;

    fn new(options: &DualPoolConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let blocks_per_plane = device.geometry.blocks;
        let mut policy = DualPool {
            threshold: options.threshold,
            blocks_per_plane,
            members: Vec::new(),
            pools: vec![Default::default(); device.total_planes() as usize],
        };
        // Each pool starts with half of the blocks.
        for block in 0..device.total_blocks() {
            let is_hot = block % blocks_per_plane < blocks_per_plane / 2;
            policy.members.push(Member { is_hot, erases: 0, since_swap: 0 });
        }
        policy.fill_pools();
        Ok(policy)
    }
}

impl DualPool {
    /// Puts all blocks into the pools that their members name.
    fn fill_pools(&mut self) {
        self.pools.iter_mut().for_each(|pools| *pools = Default::default());
        for (block, member) in (0..).zip(&self.members) {
            self.pools[(block / self.blocks_per_plane) as usize][usize::from(member.is_hot)].add(block, *member);
        }
    }

    /// Changes a block in its pool, or moves it to the other pool.
    fn change(&mut self, block: u32, change: impl FnOnce(&mut Member)) {
        let member = &mut self.members[block as usize];
        let pools = &mut self.pools[(block / self.blocks_per_plane) as usize];
        pools[usize::from(member.is_hot)].remove(block, *member);
        change(member);
        pools[usize::from(member.is_hot)].add(block, *member);
    }

    /// Moves a block of the cold pool that is erased often to the hot pool, and a block of the hot pool that is erased
    /// seldom to the cold pool.
    fn resize(&mut self, plane: usize) {
        let [cold, hot] = &self.pools[plane];
        let effective = (cold.by_effective.last().copied(), hot.by_effective.first().copied());
        if let (Some((most, block)), Some((fewest, _))) = effective
            && most > fewest.saturating_add(self.threshold)
        {
            self.change(block, |member| member.is_hot = true);
        }
        let [_, hot] = &self.pools[plane];
        let erases = (hot.by_erases.first().copied(), hot.by_erases.last().copied());
        if let (Some((fewest, block)), Some((most, _))) = erases
            && most > fewest.saturating_add(self.threshold.saturating_mul(2))
        {
            self.change(block, |member| member.is_hot = false);
        }
    }
}

impl WearPolicy for DualPool {
    fn needs(&self) -> Needs {
        Needs { cold: Some(ColdOrder::Erases), ..Needs::default() }
    }

    fn note_erased(&mut self, view: &RegionView, block: BlockId) {
        let erases = view.erases(block);
        self.change(block.0, |member| (member.erases, member.since_swap) = (erases, member.since_swap + 1));
        self.resize(view.plane().index());
    }

    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId> {
        let Member { is_hot, erases, .. } = self.members[block.index()];
        let coldest = view.cold_blocks().find(|cold| !self.members[cold.index()].is_hot)?;
        if !is_hot || erases - self.members[coldest.index()].erases.min(erases) <= self.threshold {
            return None;
        }
        self.change(block.0, |member| (member.is_hot, member.since_swap) = (false, 0));
        self.change(coldest.0, |member| (member.is_hot, member.since_swap) = (true, 0));
        Some(coldest)
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.members.iter().try_for_each(|member| {
            out.u8(u8::from(member.is_hot))?;
            out.u32(member.erases)?;
            out.u32(member.since_swap)
        })
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for member in &mut self.members {
            *member = Member { is_hot: input.u8()? != 0, erases: input.u32()?, since_swap: input.u32()? };
        }
        self.fill_pools();
        Ok(())
    }
}
