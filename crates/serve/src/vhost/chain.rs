//! A descriptor chain in the client's memory.
//!
//! The memory may contain anything, and may change while it is read. Therefore each descriptor is read only once.

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, Bytes, GuestAddress};

use super::Memory;

/// A segment of the client's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Start address.
    pub at: GuestAddress,
    /// Length in bytes.
    pub bytes: u32,
}

/// Error: a chain cannot be followed to its end. Its request is unknown, and so is the address of its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A descriptor index is outside the table.
    #[error("a descriptor is outside its table")]
    Outside,
    /// The chain has more descriptors than its table, so it contains a loop.
    #[error("a descriptor chain is a loop")]
    Loop,
    /// An indirect table is nested, empty, or has an invalid size.
    #[error("an indirect descriptor table is malformed")]
    Table,
    /// A table is outside the client's memory.
    #[error("a descriptor table is outside the memory")]
    Memory,
    /// The chain has no writable byte, so there is no place for a status.
    #[error("a descriptor chain has no room for the status")]
    NoStatus,
}

/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 16;

/// A descriptor table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Start address.
    pub at: GuestAddress,
    /// Number of descriptors.
    pub size: u16,
}

impl Table {
    fn get(&self, memory: &Memory, index: u16) -> Result<Descriptor, Broken> {
        if index >= self.size {
            return Err(Broken::Outside);
        }
        let at = self.at.checked_add(u64::from(index) * DESCRIPTOR).ok_or(Broken::Memory)?;
        memory.read_obj(at).map_err(|_| Broken::Memory)
    }

    /// Returns the table to which an indirect descriptor refers.
    fn indirect(descriptor: &Descriptor) -> Result<Table, Broken> {
        let bytes = u64::from(descriptor.len());
        let size = u16::try_from(bytes / DESCRIPTOR).map_err(|_| Broken::Table)?;
        let is_whole = size > 0 && bytes.is_multiple_of(DESCRIPTOR);
        if is_whole { Ok(Table { at: descriptor.addr(), size }) } else { Err(Broken::Table) }
    }
}

/// Segments of a chain, without empty ones.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Segments that the device reads.
    pub readable: Vec<Piece>,
    /// Segments that the device writes.
    pub writable: Vec<Piece>,
    /// True if all readable segments precede the writable ones, as required.
    pub is_ordered: bool,
}

/// Maximum number of descriptors of a chain. Longer chains are invalid. No ring is longer than this.
const LONGEST: usize = 1024;

impl Chain {
    /// Reads the chain that starts at `head`, and replaces the previous contents.
    pub fn read(&mut self, memory: &Memory, mut table: Table, head: u16) -> Result<(), Broken> {
        self.readable.clear();
        self.writable.clear();
        self.is_ordered = true;
        let mut index = head;
        let mut is_indirect = false;
        let mut left = usize::from(table.size).min(LONGEST);
        loop {
            let descriptor = table.get(memory, index)?;
            if descriptor.refers_to_indirect_table() {
                if is_indirect || descriptor.has_next() {
                    return Err(Broken::Table);
                }
                table = Table::indirect(&descriptor)?;
                (index, is_indirect, left) = (0, true, usize::from(table.size).min(LONGEST));
                continue;
            }
            let piece = Piece { at: descriptor.addr(), bytes: descriptor.len() };
            match (descriptor.is_write_only(), piece.bytes) {
                (_, 0) => {}
                (true, _) => self.writable.push(piece),
                (false, _) => {
                    self.is_ordered &= self.writable.is_empty();
                    self.readable.push(piece);
                }
            }
            if !descriptor.has_next() {
                return Ok(());
            }
            left -= 1;
            if left == 0 {
                return Err(Broken::Loop);
            }
            index = descriptor.next();
        }
    }

    /// Returns the total number of readable and of writable bytes.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |pieces: &[Piece]| pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
        (sum(&self.readable), sum(&self.writable))
    }
}

/// Returns up to `bytes` bytes of `pieces`, starting at offset `skip`.
pub fn part(pieces: &[Piece], mut skip: u64, mut bytes: u64) -> impl Iterator<Item = Piece> {
    pieces.iter().filter_map(move |piece| {
        let skipped = skip.min(u64::from(piece.bytes));
        skip -= skipped;
        let length = (u64::from(piece.bytes) - skipped).min(bytes);
        bytes -= length;
        let at = GuestAddress(piece.at.0.wrapping_add(skipped));
        (length > 0).then_some(Piece { at, bytes: length as u32 })
    })
}

/// Reads consecutive segments. Returns `false` if one of them is outside the memory.
pub fn gather(memory: &Memory, pieces: impl Iterator<Item = Piece>, into: &mut [u8]) -> bool {
    let mut rest = into;
    for piece in pieces {
        let Some((now, later)) = rest.split_at_mut_checked(piece.bytes as usize) else { return false };
        if memory.read_slice(now, piece.at).is_err() {
            return false;
        }
        rest = later;
    }
    rest.is_empty()
}

/// Writes bytes to consecutive segments. Returns `false` if one of them is outside the memory.
pub fn scatter(memory: &Memory, pieces: &[Piece], bytes: &[u8]) -> bool {
    let mut rest = bytes;
    for piece in pieces {
        let Some((now, later)) = rest.split_at_checked(piece.bytes as usize) else { return false };
        if memory.write_slice(now, piece.at).is_err() {
            return false;
        }
        rest = later;
    }
    rest.is_empty()
}
