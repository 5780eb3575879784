//! Checkpoint: writes accounts of closed blocks to flash while the host writes, so that recovery need not read these
//! blocks.
//!
//! A part of the checkpoint is a mapping unit of the device itself, with an address after those of the journal. One
//! part is due for each `durability.checkpoint` bytes that the host writes, and as many parts as fill a program are
//! written at once. The device cycles through the parts, and writes those that concern a closed block without an
//! account. `account.rs` has the contents of a part, docs/decisions/0025-checkpoint.md the reasons.

use super::account::{Filled, Layout};
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::sim::id::{BlockId, TransactionId};
use crate::sim::table::Table;
use crate::state::{Reader, StateError, Writer};

/// Limit of parts that are examined to find one that has to be written.
const LOOK_AHEAD: u32 = 256;

/// Writer of the checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpointing {
    /// Addresses and contents of the parts.
    pub layout: Layout,
    /// Number of host units for each part.
    interval: u64,
    /// Number of host units until the next part is due.
    left: u64,
    /// Part that is examined next.
    cursor: u32,
    /// Erase count of each block when its account was last written, plus 1. Zero if it has no account.
    noted: Table<BlockId, u32>,
    /// Parts in flight, and their maximum number.
    writing: Vec<u32>,
    max_writing: usize,
    /// Writes of parts that found no room.
    pub stalled: Vec<TransactionId>,
}

impl Checkpointing {
    /// Creates the writer of the checkpoint of an empty device. Returns `None` without `durability.checkpoint`.
    pub fn new(config: &DeviceConfig) -> Option<Checkpointing> {
        let interval = (config.durability.checkpoint?.0 / config.unit_bytes()).max(1);
        let layout = Layout::of(config)?;
        Some(Checkpointing {
            layout,
            interval,
            left: interval,
            cursor: 0,
            noted: Table::new(layout.parts.blocks, 0),
            writing: Vec::new(),
            max_writing: (config.total_planes() * config.units_per_program()) as usize,
            stalled: Vec::new(),
        })
    }

    /// Forgets all accounts, because none is in flash.
    pub fn forget(&mut self) {
        self.noted.iter_mut().for_each(|noted| *noted = 0);
    }

    /// Marks the accounts of these blocks, which a recovery has used, as up to date.
    pub fn adopt(&mut self, accounted: &[BlockId], ftl: &Ftl) {
        for &block in accounted {
            self.noted[block] = mark(ftl, block);
        }
    }

    /// Returns `true` if a part concerns a closed block whose current account it does not have.
    fn is_behind(&self, part: u32, ftl: &Ftl, filled: &Filled) -> bool {
        let mut blocks = self.layout.parts.blocks_of(part).map(BlockId);
        blocks.any(|block| self.layout.has_account(ftl, filled, block) && self.noted[block] != mark(ftl, block))
    }

    /// Counts a unit that the host wrote. Returns `true` if parts are due and may be written.
    #[inline]
    pub fn count(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0 && self.writing.len() < self.max_writing
    }

    /// Starts to write the next parts, and returns them.
    pub fn begin(&mut self, ftl: &Ftl) -> Vec<u32> {
        let parts = self.take(ftl);
        self.writing.extend_from_slice(&parts);
        self.left = self.interval.saturating_mul(parts.len().max(1) as u64);
        parts
    }

    /// Ends the write of a part.
    pub fn end(&mut self, part: u32) {
        self.writing.retain(|writing| *writing != part);
    }

    /// Returns the next parts to be written. All parts of a block are written together.
    fn take(&mut self, ftl: &Ftl) -> Vec<u32> {
        let count = self.layout.parts.count();
        let most = ftl.shape().units_per_program;
        let filled = Filled::of(ftl);
        let mut taken: Vec<u32> = Vec::new();
        for _ in 0..count.div_ceil(self.layout.parts.pieces).min(LOOK_AHEAD) {
            let part = self.cursor;
            self.cursor = (part + self.layout.parts.pieces) % count;
            let pieces = part..part + self.layout.parts.pieces;
            let is_written = self.writing.iter().any(|writing| pieces.contains(writing));
            if self.is_behind(part, ftl, &filled) && !is_written {
                let blocks = self.layout.parts.blocks_of(part).map(BlockId);
                for block in blocks.filter(|&block| self.layout.has_account(ftl, &filled, block)) {
                    self.noted[block] = mark(ftl, block);
                }
                taken.extend(pieces);
            }
            if taken.len() as u32 >= most {
                break;
            }
        }
        taken
    }

    /// Writes the progress of the checkpoint to a saved state.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.u64(self.left)?;
        out.u32(self.cursor / self.layout.parts.pieces)?;
        self.noted.iter().try_for_each(|&noted| out.u32(noted))
    }

    /// Reads the data that [`Checkpointing::save`] wrote.
    pub fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        self.left = input.count("units before the next part")?;
        self.cursor = input.below(self.layout.parts.count().div_ceil(self.layout.parts.pieces), "part")?
            * self.layout.parts.pieces;
        for noted in &mut self.noted {
            *noted = input.u32()?;
        }
        Ok(())
    }
}

/// Returns the mark of a block with its current erase count.
fn mark(ftl: &Ftl, block: BlockId) -> u32 {
    ftl.blocks.block(block).erases.wrapping_add(1)
}
