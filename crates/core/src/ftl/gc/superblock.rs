//! Superblocks in garbage collection and in functional mode: victims of all planes of a pool, and programs of parity.
//!
//! A pool moves one superblock at a time: the job of each plane reads its own block, and programs the units in its
//! plane or, if that has no room in the open superblock, in another one. When the units of all blocks have been moved
//! and nothing depends on the old ones, all blocks are erased, so that a stripe is readable as a whole until then.

use super::job::Job;
use crate::ftl::Ftl;
use crate::ftl::space::{Role, Space};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::sim::table::Table;

impl Ftl {
    /// Assigns the blocks of a victim to the jobs of the pool of a plane, unless a superblock of the pool is being
    /// moved. `choose` takes the victim. Returns `true` if it did.
    pub(super) fn assign_superblock(
        &mut self,
        plane: PlaneId,
        jobs: &Table<PlaneId, Job>,
        choose: fn(&mut Space, PlaneId) -> Option<BlockId>,
    ) -> bool {
        let Some(pools) = &self.pools else { return false };
        let is_moving = |job: PlaneId| !jobs[job].moving.is_idle() || pools.assigned(job).is_some();
        if pools.of(plane).map(PlaneId).any(is_moving) {
            return false;
        }
        let Some(victim) = choose(&mut self.blocks, plane) else { return false };
        for block in self.blocks.erased_with(victim) {
            let job = self.blocks.plane_of(block).index();
            self.pools.iter_mut().for_each(|pools| pools.assigned[job].push_back(block));
        }
        true
    }

    /// Moves the valid units of a superblock and erases it. Returns `false` if none would free space.
    pub(super) fn collect_superblock(&mut self, plane: PlaneId) -> bool {
        let Some(victim) = self.blocks.take_superblock(plane) else { return false };
        for block in self.blocks.erased_with(victim) {
            if self.blocks.block(block).role == Role::Data {
                let plane = self.blocks.plane_of(block);
                self.note_victim(plane, block, 0);
                self.evacuate_now(plane, block);
            }
            self.blocks.await_erase(block);
        }
        for block in self.blocks.erased_with(victim) {
            self.erase_or_retire_now(block);
        }
        self.refresh_ready(plane);
        true
    }

    /// Counts the program of parity at an address.
    pub fn note_parity(&mut self, ppn: Ppn) {
        let shape = &self.shape;
        self.map.pad(ppn.0..ppn.0 + shape.units_per_program);
        self.counters.pages_programmed[ProgramCause::Parity as usize] += u64::from(shape.pages_per_program);
    }

    /// Programs the parity that is due without time, after units of a plane were bound.
    #[cold]
    pub(in crate::ftl) fn program_parity_now(&mut self, plane: PlaneId) {
        while let Some(ppn) = self.blocks.take_parity() {
            self.note_parity(ppn);
            self.blocks.note_parity(ppn);
        }
        self.refresh_ready(plane);
        self.blocks.forget_change();
    }
}
