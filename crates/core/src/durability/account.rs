//! Accounts of closed blocks, as the contents of checkpoint parts. See docs/model/durability.md.
//!
//! A closed block does not change until its erase, so an account is true as long as the block has the erase count of
//! the account. An account does not say which units are valid: sequence numbers of writes do.

use std::ops::Range;

use super::flash::{Record, RecordKind};
use super::log::FlashLog;
use crate::config::DeviceConfig;
use crate::config::checkpoint::Parts;
use crate::ftl::Ftl;
use crate::ftl::mapping::{PADDING, TRANSLATION};
use crate::ftl::space::BlockState;
use crate::sim::id::{BlockId, Lpn, Ppn};

/// Layout of the checkpoint of a device: addresses and contents of its parts.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Blocks of each part.
    pub parts: Parts,
    /// Mapping unit of the first part.
    pub first: u32,
    /// Test hook: uses accounts of blocks that have been erased since.
    #[doc(hidden)]
    pub trusts_erased: bool,
    /// Test hook: writes accounts of blocks that are still being written.
    #[doc(hidden)]
    pub takes_open: bool,
}

/// Account of a block, or of a piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Erase count of the block.
    pub erases: u32,
    /// Number of the opening of the block.
    pub opened: u64,
    /// Highest sequence number in the block, including translation pages.
    pub highest: u64,
    /// Records of its units, in order.
    pub records: Vec<Record>,
}

/// Marks a mapping unit that is followed by its sector mask. Numbers of mapping units are below this bit.
const PARTLY: u32 = 1 << 31;

impl Layout {
    /// Returns the layout of the checkpoint of a device, if it keeps one.
    pub fn of(device: &DeviceConfig) -> Option<Layout> {
        device.durability.checkpoint.as_ref()?;
        let first = (device.logical_units() + device.journal_units()) as u32;
        Some(Layout { parts: Parts::of(device), first, trusts_erased: false, takes_open: false })
    }

    /// Returns the number of the part in a mapping unit, if there is one.
    pub fn part(&self, lpn: Lpn) -> Option<u32> {
        lpn.0.checked_sub(self.first).filter(|part| *part < self.parts.count())
    }

    /// Returns the mapping unit of a part.
    pub fn unit(&self, part: u32) -> Lpn {
        Lpn(self.first + part)
    }

    fn head(&self, part: u32) -> [u8; Parts::HEAD] {
        let mut head = [0; Parts::HEAD];
        let figures = [part, self.parts.blocks, self.parts.units];
        head.chunks_exact_mut(4).zip(figures).for_each(|(into, figure)| into.copy_from_slice(&figure.to_le_bytes()));
        head
    }

    /// Parses the accounts in the contents of a part, one entry for each of its blocks. Returns `None` if the contents
    /// are not valid.
    pub fn accounts(&self, part: u32, bytes: &[u8]) -> Option<Vec<Option<Account>>> {
        let mut bytes = bytes.strip_prefix(&self.head(part)[..])?;
        let units = self.parts.units_of(part).len();
        self.parts.blocks_of(part).map(|_| read_account(&mut bytes, units)).collect()
    }

    /// Returns `true` if a mapping unit holds a part of the checkpoint.
    #[inline]
    pub fn has(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.first
    }

    /// Returns `true` if a block can have an account. An account cannot mark a unit as lost, so blocks with lost units
    /// are read.
    #[inline]
    pub fn has_account(&self, ftl: &Ftl, filled: &Filled, block: BlockId) -> bool {
        let state = ftl.blocks.block(block).state;
        let is_closed = match state {
            BlockState::Closed | BlockState::WornOut => true,
            BlockState::Logical => self.takes_open || filled.has(block),
            state => self.takes_open && state == BlockState::Open,
        };
        is_closed && !ftl.has_lost(block)
    }

    /// Returns the contents of a part of the checkpoint as of now.
    pub fn page(&self, part: u32, ftl: &Ftl, log: &FlashLog) -> Vec<u8> {
        let (parts, filled) = (&self.parts, Filled::of(ftl));
        let mut bytes = Vec::with_capacity(parts.bytes);
        bytes.extend_from_slice(&self.head(part));
        let blocks = parts.blocks_of(part);
        for block in blocks.clone() {
            // Each of the later blocks needs room for at least an empty account.
            let room = parts.bytes - bytes.len() - 4 * (blocks.end - block - 1) as usize;
            let has_account = self.has_account(ftl, &filled, BlockId(block));
            let account = if has_account { self.account(BlockId(block), parts.units_of(part), ftl, log) } else { None };
            match account.filter(|account| account.len() <= room) {
                Some(account) => bytes.extend_from_slice(&account),
                None => bytes.extend_from_slice(&[0; 4]),
            }
        }
        bytes
    }

    fn account(&self, block: BlockId, units: Range<u32>, ftl: &Ftl, log: &FlashLog) -> Option<Vec<u8>> {
        let first = ftl.blocks.first_unit(block).0;
        let places = || (first + units.start..first + units.end).map(Ppn);
        // The units after the data of a smaller block have sequence numbers from before the last erase.
        let end = first + ftl.blocks.size_of(block).data_units;
        // So have pages that were left out.
        let is_programmed = |ppn: Ppn| ppn.0 < end && ftl.map.owner(ppn) != PADDING;
        let number = |ppn: Ppn| if is_programmed(ppn) { log.sequence(ppn) } else { 0 };
        let numbers = || places().map(number).filter(|&sequence| sequence > 0);
        let (lowest, highest) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
        u32::try_from(highest - lowest).ok()?;
        let mut bytes = ftl.blocks.block(block).erases.checked_add(1)?.to_le_bytes().to_vec();
        for figure in [log.opened[block.index()], lowest, highest] {
            bytes.extend_from_slice(&figure.to_le_bytes());
        }
        for ppn in places() {
            let (owner, sequence) = (ftl.map.owner(ppn), number(ppn));
            if owner & TRANSLATION != 0 || sequence == 0 {
                bytes.extend_from_slice(&PADDING.to_le_bytes());
                continue;
            }
            let sectors = log.sectors(ppn);
            let partly = if sectors == 0 { 0 } else { PARTLY };
            bytes.extend_from_slice(&(owner | partly).to_le_bytes());
            bytes.extend_from_slice(&((sequence - lowest) as u32).to_le_bytes());
            if sectors != 0 {
                bytes.extend_from_slice(&sectors.to_le_bytes());
            }
        }
        Some(bytes)
    }
}

/// Blocks of the mapping scheme that are filled, in ascending order.
#[derive(Debug)]
pub struct Filled(Vec<BlockId>);

impl Filled {
    /// Returns the filled blocks as of now.
    pub fn of(ftl: &Ftl) -> Filled {
        let mut filled = Vec::new();
        ftl.scheme().blocks(ftl, &mut |kept| filled.extend(kept.is_filled.then_some(kept.block)));
        filled.sort_unstable();
        Filled(filled)
    }

    fn has(&self, block: BlockId) -> bool {
        self.0.binary_search(&block).is_ok()
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

/// Parses an account, or an empty one. Returns `None` if the bytes are not valid.
fn read_account(bytes: &mut &[u8], units: usize) -> Option<Option<Account>> {
    let erases = u32::from_le_bytes(take(bytes)?);
    let Some(erases) = erases.checked_sub(1) else { return Some(None) };
    let [opened, lowest, highest] = [take(bytes)?, take(bytes)?, take(bytes)?].map(u64::from_le_bytes);
    let mut records = Vec::with_capacity(units);
    for _ in 0..units {
        let lpn = u32::from_le_bytes(take(bytes)?);
        if lpn == PADDING {
            records.push(Record { opened, ..Record::default() });
            continue;
        }
        let sequence = lowest.checked_add(u64::from(u32::from_le_bytes(take(bytes)?)))?;
        let sectors = if lpn & PARTLY == 0 { 0 } else { u64::from_le_bytes(take(bytes)?) };
        records.push(Record { kind: RecordKind::Data, lpn: lpn & !PARTLY, sequence, sectors, opened });
    }
    Some(Some(Account { erases, opened, highest, records }))
}
