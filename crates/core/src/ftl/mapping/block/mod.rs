//! Pure block mapping: one map entry for each logical block, whose units keep their offsets (Gal and Toledo,
//! "Algorithms and data structures for flash memories", ACM Computing Surveys 37(2), 2005).
//!
//! A logical block has a *current* block, which is programmed in order. Until that block holds all units, it may also
//! have an *old* one, from which the rest is copied.

mod map;
mod programs;
mod recovery;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::own_blocks::{self, OwnBlocks};
use super::{
    Bound, Change, Context, Ended, KeptBlock, Mapping, Needs, Program, Recovering, SchemeOptions, SchemeReport, Step,
    Target, WholeBlocks, check_places, keep_found,
};
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::has_whole_map;
use crate::policy::Policy;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::sim::table::Table;
use crate::state::{Reader, StateError, Writer};
use crate::work::{Call, Kind};
use map::NOWHERE;
pub use map::{BlockMap, LogicalBlock};
use programs::{BYTES_OF_LOGICAL_BLOCK, Job, call};

/// Block mapping has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockConfig {}

impl SchemeOptions for BlockConfig {
    fn needs(&self, device: &DeviceConfig) -> Needs {
        Needs {
            whole_blocks: Some(WholeBlocks::of_planes(device)),
            // A recovery may need a free block while another one is taken, or has failed.
            no_power_loss: (Block::beyond(device) < 2 + u32::from(device.faults.is_some())).then_some(
                "a recovery needs one more free block in each plane: raise gc.soft_threshold or capacity.spare",
            ),
            no_classes: Some(
                "with block mapping the address determines the block of a unit; choose temperature = \"none\", or \
                 mapping.scheme = \"page\" or \"dftl\"",
            ),
            // A block that takes the place of a failed one leaves out pages.
            leaves_out_pages: device.faults.is_some(),
            ..Needs::default()
        }
    }

    fn bytes(&self, device: &DeviceConfig) -> u64 {
        let of_block = BYTES_OF_LOGICAL_BLOCK + size_of::<LogicalBlock>() as u64;
        of_block * device.logical_units().div_ceil(u64::from(device.data_units_per_block()))
    }
}

/// Pure block mapping.
#[derive(Clone, Debug)]
pub struct Block {
    /// The map of logical blocks.
    pub map: BlockMap,
    /// Outstanding work, indexed by logical block.
    jobs: Table<u32, Job>,
    /// Logical blocks that wait for a free block, indexed by plane.
    waiting: Table<PlaneId, VecDeque<u32>>,
    /// Logical block that is merged to free a block, indexed by plane.
    merging: Table<PlaneId, Option<u32>>,
    /// Number of blocks that await their erase, indexed by plane.
    awaiting_erase: Table<PlaneId, u32>,
    /// Reused memory for the writes of a program, with their offsets.
    writes: Vec<(u32, TransactionId)>,
    /// Blocks for the units of the device itself.
    own: OwnBlocks,
    /// Blocks that a recovery has found no place for. The device is read-only then.
    unplaced: Vec<BlockId>,
}

/// Tasks of the scheme.
mod step {
    /// Take the next step of a logical block.
    pub(super) const GO_ON: u8 = 0;
    /// Give free blocks of a plane to the logical blocks that wait for one.
    pub(super) const GIVE_BLOCKS: u8 = 1;
    /// Merge the two blocks of a logical block, if a plane has few free blocks.
    pub(super) const FREE_BLOCKS: u8 = 2;
}

impl Block {
    /// Returns the number of blocks of a plane in addition to one for each logical block.
    fn beyond(device: &DeviceConfig) -> u32 {
        let units = u64::from(device.data_units_per_block()).max(1);
        let logical = device.logical_units().div_ceil(units).div_ceil(u64::from(device.total_planes()).max(1));
        u64::from(device.good_blocks()).saturating_sub(logical + u64::from(device.own_blocks(1))) as u32
    }
}

/// Returns the plane of a logical block: its number modulo the number of planes, in the order of the allocation.
fn block_home(ftl: &Ftl, number: u32) -> PlaneId {
    ftl.allocation.order().plane(number % ftl.shape().planes)
}

impl Policy for Block {
    type Config = BlockConfig;

    fn check(_: &BlockConfig, device: &DeviceConfig) -> Result<(), String> {
        check_places(device)
    }

    fn new(_: &BlockConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let map = BlockMap::new(device);
        let planes = device.total_planes();
        Ok(Block {
            jobs: Table::new(map.logical.len() as u32, Job::default()),
            waiting: Table::new(planes, VecDeque::new()),
            merging: Table::new(planes, None),
            awaiting_erase: Table::new(planes, 0),
            writes: Vec::new(),
            own: OwnBlocks::new(device),
            unplaced: Vec::new(),
            map,
        })
    }
}

impl<C: Context + ?Sized> Mapping<C> for Block {
    has_whole_map!();

    fn changed(&mut self, cx: &mut C, lpn: Lpn, change: Change) {
        if change == Change::Trimmed && !cx.ftl().is_read_only() {
            let (number, _) = self.map.split(lpn);
            self.step_block(cx, number);
            let plane = block_home(cx.ftl(), number);
            cx.tasks().push(call(step::FREE_BLOCKS, plane.0));
        }
    }

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        if self.own.has(cx.ops()[id].lpn) {
            self.own.place(cx, id);
        } else {
            let number = self.await_offset(cx, id);
            self.step_block(cx, number);
        }
    }

    fn target(&self, ftl: &Ftl, of: Program) -> Target {
        let number = match of {
            Program::Write(lpn) if self.own.has(lpn) => own_blocks::NUMBER,
            Program::Write(lpn) => self.map.split(lpn).0,
            Program::Copies(number) => number,
        };
        if number == own_blocks::NUMBER {
            return Target { plane: None, place: self.own.target(ftl).into() };
        }
        let LogicalBlock { current, next, .. } = self.map.logical[number as usize];
        let replaced = &self.jobs[number].replaced;
        let next = if replaced.is_active() { replaced.next } else { next };
        let at = (current != NOWHERE).then(|| Ppn(ftl.blocks.first_unit(BlockId(current)).0 + next));
        Target { plane: Some(block_home(ftl, number)), place: at.into() }
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        let program = cx.ops()[id];
        match program.kind {
            Kind::Write if self.own.has(program.lpn) => self.own.bind_write(cx, id),
            Kind::Write => Some(self.bind_with_others(cx, id)),
            _ if program.logical_block() == own_blocks::NUMBER => self.own.bind_copies(cx, id),
            _ => self.bind_copies(cx, id),
        }
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        match end {
            Ended::CopyRead(own_blocks::NUMBER) => self.own.copy_read(cx),
            Ended::CopyRead(number) => self.finish_read(cx, number),
            Ended::Writes(lpn, start) if self.own.has(lpn) => self.own.program_ended(cx, start),
            Ended::Writes(lpn, start) => self.finish_in_block(cx, self.map.split(lpn).0, start),
            Ended::Copies(own_blocks::NUMBER, start) => self.own.program_ended(cx, start),
            Ended::Copies(number, start) => self.finish_in_block(cx, number, start),
            Ended::ProgramFailed(writes, number, _) => return self.program_failed(cx, writes, number),
            Ended::Erase(plane) | Ended::EraseFailed(plane) => {
                self.erase_ended(cx, plane, matches!(end, Ended::EraseFailed(_)))
            }
            Ended::MapRead(_) | Ended::MapWrite(_) | Ended::MapWriteFailed(_) => {
                unreachable!("the whole map is in memory")
            }
        }
        true
    }

    fn step(&mut self, cx: &mut C, step: Step) {
        match step {
            Step::ReadOnly => self.refuse_writes(cx),
            Step::Call(_) if cx.ftl().is_read_only() => {}
            Step::Call(Call { step: step::GO_ON, number, .. }) => self.step_block(cx, number),
            Step::Call(Call { step: step::GIVE_BLOCKS, number, .. }) => self.give_blocks(cx, PlaneId(number)),
            Step::Call(Call { number, .. }) => self.free_blocks(cx, PlaneId(number)),
            Step::MapProgrammed(..) | Step::Collected(_) | Step::Seal => {}
        }
    }

    fn recover(&mut self, recovery: &mut dyn Recovering) -> Result<(), String> {
        let found = keep_found(recovery, |ftl, found| self.merge_unfit(ftl, found))?;
        self.adopt_blocks(recovery.ftl(), &found)
    }

    fn blocks(&self, ftl: &Ftl, found: &mut dyn FnMut(KeptBlock)) {
        self.own.blocks(found);
        self.blocks_of_map(ftl, found);
    }

    fn report(&self, _: &Ftl) -> SchemeReport {
        let logical = (0..self.map.logical.len() as u32).filter(|&number| self.jobs[number].replaced.is_active());
        SchemeReport {
            unwritten: self.map.unwritten,
            dropped: self.map.dropped,
            replacing: logical.count() as u32 + u32::from(self.own.is_replacing()),
            merging: self.merges_in_progress(),
            ..SchemeReport::default()
        }
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.map.save(out)?;
        self.own.save(out)
    }

    fn load(&mut self, ftl: &mut Ftl, input: &mut Reader, written: &mut [u16]) -> Result<(), StateError> {
        let mut taken = vec![false; written.len()];
        let home = |number| block_home(ftl, number);
        let mut take = |block: BlockId, plane, units| {
            let can = ftl.blocks.is_logical(block) && ftl.blocks.plane_of(block) == plane && !taken[block.index()];
            if can {
                (taken[block.index()], written[block.index()]) = (true, units as u16);
            }
            can
        };
        self.map.load(input, ftl.shape().units_per_program, home, &mut take)?;
        self.own.load(input, &mut take)?;
        if taken.iter().filter(|taken| **taken).count() != ftl.blocks.logical().count() {
            return Err(input.damaged("a block that belongs to no logical block"));
        }
        let has_none = |plane| self.free_beyond_spare(ftl, plane) == 0;
        let stuck = |&plane: &PlaneId| has_none(plane) && self.map.pairs_of(plane) == 0;
        if let Some(plane) = (0..ftl.shape().planes).map(PlaneId).find(stuck) {
            return Err(input.damaged(format!("plane {} has no free block, and none can be freed", plane.0)));
        }
        Ok(())
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        self.recount_blocks(ftl)
    }
}
