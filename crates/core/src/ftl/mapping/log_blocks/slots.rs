//! Blocks that are being filled: log blocks, and the targets of merges. The planes of a set share a fixed number of
//! each, so a block has a *slot*.

use std::collections::VecDeque;

use crate::ftl::mapping::replacement::Replacement;
use crate::ftl::mover::Gather;
use crate::metrics::counters::MergeKind;
use crate::sim::id::BlockId;
use crate::work::Fifo;

/// No block, logical block or slot.
pub const NOWHERE: u32 = u32::MAX;

/// A block that is being filled, or one that is full and waits for its merge.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The block, or `NOWHERE` if the slot is empty.
    pub block: u32,
    /// Logical block that the slot belongs to, or `NOWHERE` for a log block of several logical blocks.
    pub number: u32,
    /// Next offset that is programmed.
    pub next: u32,
    /// Offset after the last write that waits, for a block of one logical block. For a block of consecutive units, the
    /// unit after it; `NOWHERE` if no write continues it.
    pub expected: u32,
    /// Time of the last write, in host writes; the time at which the block was opened, for a shared log block.
    pub used: u64,
    /// True if all units are at their offsets.
    pub ordered: bool,
    /// True if units were copied into the block.
    pub copied: bool,
    /// True if the block becomes the data block of its logical block.
    pub merging: bool,
    /// True if the log block takes no more writes, because it is reclaimed.
    pub closed: bool,
    /// True while a program of the block, or a read for it, is in flight.
    pub busy: bool,
    /// Writes that wait for their addresses.
    pub pending: Fifo,
    /// Units that the next program copies.
    pub gather: Gather,
    /// Failed blocks that the block takes the place of.
    pub replaced: Replacement,
}

impl Slot {
    /// An empty slot.
    pub const fn is_empty(&self) -> bool {
        self.block == NOWHERE
    }

    /// Empties the slot. Keeps its memory.
    pub fn clear(&mut self) {
        let gather = std::mem::take(&mut self.gather);
        *self = Slot { gather, ..Slot::default() };
    }
}

impl Default for Slot {
    fn default() -> Slot {
        Slot {
            block: NOWHERE,
            number: NOWHERE,
            next: 0,
            expected: 0,
            used: 0,
            ordered: true,
            copied: false,
            merging: false,
            closed: false,
            busy: false,
            pending: Fifo::default(),
            gather: Gather::default(),
            replaced: Replacement::default(),
        }
    }
}

/// Log blocks of a stream that any logical block may use.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// Writes that wait for an address.
    pub pending: Fifo,
    /// Slots of log blocks with room that are not busy, in the order in which they take writes.
    pub idle: VecDeque<u32>,
    /// Slots of log blocks that execute a program, in the order in which the programs were queued.
    pub busy: VecDeque<u32>,
    /// Number of log blocks with room.
    pub open: u32,
}

/// Merges of a set of planes.
#[derive(Clone, Debug, Default)]
pub struct Merging {
    /// Log blocks that are reclaimed.
    pub victims: Vec<u32>,
    /// Logical blocks that are still to be merged.
    pub todo: Vec<u32>,
    /// Number of merges in progress.
    pub running: u32,
    /// True if a full merge has started.
    pub copies: bool,
}

impl Merging {
    /// Returns `true` if log blocks are being reclaimed.
    pub fn is_active(&self) -> bool {
        self.running > 0 || !self.victims.is_empty()
    }
}

/// Planes that share log blocks.
#[derive(Clone, Debug, Default)]
pub struct Set {
    /// Position of the plane, or the channel, that is the next one to give a block.
    pub turn: u32,
    /// Number of free blocks.
    pub free: u32,
    /// Blocks that await their erase, with the kind of merge that has emptied them; `None` if the host has.
    pub given_up: Vec<(BlockId, Option<MergeKind>)>,
    /// Writes that wait for a log block of their logical block.
    pub waiting: Fifo,
    /// Shared log blocks, by stream.
    pub shared: Vec<Shared>,
    /// Merges in progress.
    pub merging: Merging,
}

/// Data blocks that take writes.
#[derive(Clone, Debug, Default)]
pub struct InPlace {
    /// Offset after the last page that was programmed or skipped, by logical block. Not kept while a slot has it.
    pub filled: Vec<u32>,
    /// Slot of the data block, by logical block.
    pub slot_of: Vec<u32>,
    /// Slots without a block.
    pub unused: Vec<u32>,
}

impl InPlace {
    /// Creates the state of `count` logical blocks without data.
    pub fn new(count: u32) -> InPlace {
        let each = |value| vec![value; count as usize];
        InPlace { filled: each(0), slot_of: each(NOWHERE), unused: Vec::new() }
    }
}
