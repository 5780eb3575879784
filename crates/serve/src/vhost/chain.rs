//! A chain of descriptors, as a client has laid it out in its memory.
//!
//! Everything in that memory may be wrong, and may change while it is read: each descriptor is read once.

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, Bytes, GuestAddress};

use super::Memory;

/// A piece of the client's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub at: GuestAddress,
    /// Its length.
    pub bytes: u32,
}

/// A chain cannot be followed to its end; what it asked for is not known, not even where its status belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A descriptor has a number that its table does not have.
    #[error("a descriptor lies outside of its table")]
    Outside,
    /// The chain has more descriptors than its table: it comes back to itself.
    #[error("a chain of descriptors is a loop")]
    Loop,
    /// A table within a table, of an odd size, or of no descriptors.
    #[error("an indirect table of descriptors is malformed")]
    Table,
    /// A table lies outside of the client's memory.
    #[error("a table of descriptors lies outside of the memory")]
    Memory,
    /// No byte of it may be written: nobody could be told how it ended.
    #[error("a chain of descriptors has no room for a status")]
    NoStatus,
}

/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 16;

/// A table of descriptors.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Where it begins.
    pub at: GuestAddress,
    /// Its descriptors.
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

    /// The table that a descriptor stands for.
    fn indirect(descriptor: &Descriptor) -> Result<Table, Broken> {
        let bytes = u64::from(descriptor.len());
        let size = u16::try_from(bytes / DESCRIPTOR).map_err(|_| Broken::Table)?;
        let is_whole = size > 0 && bytes.is_multiple_of(DESCRIPTOR);
        if is_whole { Ok(Table { at: descriptor.addr(), size }) } else { Err(Broken::Table) }
    }
}

/// What a chain is made of; pieces without bytes are left out.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// For the device to read.
    pub readable: Vec<Piece>,
    /// For the device to write.
    pub writable: Vec<Piece>,
    /// All that is readable comes first, as it has to.
    pub is_ordered: bool,
}

/// Descriptors of a chain that are looked at; longer ones are broken. No ring is as long.
const LONGEST: usize = 1024;

impl Chain {
    /// Follows the chain that begins at `head`, in place of what was there.
    pub fn read(&mut self, memory: &Memory, mut table: Table, head: u16) -> Result<(), Broken> {
        self.readable.clear();
        self.writable.clear();
        self.is_ordered = true;
        let (mut index, mut is_indirect, mut left) = (head, false, usize::from(table.size).min(LONGEST));
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

    /// Bytes for the device to read, and to write.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |pieces: &[Piece]| pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
        (sum(&self.readable), sum(&self.writable))
    }
}

/// The part of `pieces` from byte `skip` on, `bytes` long or as far as they go.
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

/// Reads pieces one behind the other; false where one of them lies outside of the memory.
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

/// Writes bytes into pieces one behind the other; false where one of them lies outside of the memory.
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
