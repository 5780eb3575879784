//! The checkpoint: while the host writes, accounts of closed blocks go to flash, and a recovery need not read these.
//!
//! A part of it is a mapping unit of the device's own, behind those of the journal. For so many units that the host
//! writes a part is written, as many at once as fill a program: the next, round and round, that is about a closed block
//! whose account is not in it. `account.rs` has what is in a part, docs/decisions/0025-checkpoint.md why.

use super::account::Layout;
use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::sim::id::{BlockId, TransactionId};
use crate::sim::table::Table;
use crate::state::{Reader, StateError, Writer};

/// Parts that are looked at for one to be written.
const LOOK: u32 = 256;

/// The writing of the checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpointing {
    /// Where its parts are, and what is in them.
    pub layout: Layout,
    /// Units of the host for each part.
    interval: u64,
    /// Units that the host writes before the next is due.
    left: u64,
    /// The part that is looked at next.
    cursor: u32,
    /// By block: how often it had been erased when its account was last written, plus one.
    noted: Table<BlockId, u32>,
    /// Parts on their way, and how many there may be.
    writing: Vec<u32>,
    most: usize,
    /// Those of them that found no room, by transaction.
    pub stalled: Vec<TransactionId>,
}

impl Checkpointing {
    /// Creates what writes the checkpoint of an empty device; `None` if the device keeps none.
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
            most: (config.total_planes() * config.units_per_program()) as usize,
            stalled: Vec::new(),
        })
    }

    /// No account is in flash.
    pub fn forget(&mut self) {
        self.noted.iter_mut().for_each(|noted| *noted = 0);
    }

    /// A recovery has found the accounts of these blocks.
    pub fn adopt(&mut self, accounted: &[BlockId], ftl: &Ftl) {
        for &block in accounted {
            self.noted[block] = mark(ftl, block);
        }
    }

    /// Whether a part is about a closed block whose account is not in it.
    fn is_behind(&self, part: u32, ftl: &Ftl) -> bool {
        let mut blocks = self.layout.parts.blocks_of(part).map(BlockId);
        blocks.any(|block| self.layout.has_account(ftl, block) && self.noted[block] != mark(ftl, block))
    }

    /// Counts a unit that the host wrote. Returns `true` if parts are due, and may be written.
    #[inline]
    pub fn count(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0 && self.writing.len() < self.most
    }

    /// Begins to write the next parts, and returns them.
    pub fn begin(&mut self, ftl: &Ftl) -> Vec<u32> {
        let parts = self.take(ftl);
        self.writing.extend_from_slice(&parts);
        self.left = self.interval.saturating_mul(parts.len().max(1) as u64);
        parts
    }

    /// Ends the writing of a part.
    pub fn end(&mut self, part: u32) {
        self.writing.retain(|writing| *writing != part);
    }

    /// The next parts to be written: of a block all of them.
    fn take(&mut self, ftl: &Ftl) -> Vec<u32> {
        let (count, most) = (self.layout.parts.count(), ftl.shape().units_per_program);
        let mut taken: Vec<u32> = Vec::new();
        for _ in 0..count.div_ceil(self.layout.parts.pieces).min(LOOK) {
            let part = self.cursor;
            self.cursor = (part + self.layout.parts.pieces) % count;
            let pieces = part..part + self.layout.parts.pieces;
            let is_written = self.writing.iter().any(|writing| pieces.contains(writing));
            if self.is_behind(part, ftl) && !is_written {
                for block in
                    self.layout.parts.blocks_of(part).map(BlockId).filter(|&block| self.layout.has_account(ftl, block))
                {
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

    /// Writes what is known of it for a saved state.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.u64(self.left)?;
        out.u32(self.cursor / self.layout.parts.pieces)?;
        self.noted.iter().try_for_each(|&noted| out.u32(noted))
    }

    /// Reads what [`Checkpointing::save`] wrote.
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

/// What stands for a block as it is now.
fn mark(ftl: &Ftl, block: BlockId) -> u32 {
    ftl.blocks.block(block).erases.wrapping_add(1)
}
