//! What the host wrote: the bytes themselves. What they mean to timing is the device's business; it never sees them.
//!
//! A request touches its payload at two instants. When it arrives, a write hands over its bytes, and a trim drops
//! some. When the device has decided its completion, a read fetches. Between these instants the device says where the
//! bytes lie, so that a store which keeps them at physical pages can take the place of the one in [`memory`].

pub mod memory;

use std::ops::Range;

/// Why payload cannot be kept or fetched. The host gets an error, and the store stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// There is no room for more, though the device has some.
    #[error("no room is left for payload")]
    NoRoom,
    /// What it is kept in cannot be read or written.
    #[error("payload cannot be read or written")]
    Failed,
    /// The image holds something else than was written.
    #[error("payload is damaged")]
    Damaged,
}

/// What a store knows of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It holds data.
    Data,
    /// It was never written, or was trimmed or zeroed: it reads as zeros.
    Hole,
}

/// Keeps the payload of a device. Ranges are in bytes, lie within the device and begin and end at sectors.
pub trait Payload: Send {
    /// A write of `data` at `offset` has arrived.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), PayloadError>;

    /// A trim has arrived, or a write of zeros that need not stay allocated: the range reads as zeros.
    fn discard(&mut self, range: Range<u64>);

    /// A write of zeros has arrived that is to stay allocated.
    fn zero(&mut self, range: Range<u64>) -> Result<(), PayloadError>;

    /// Fetches what a read at `offset` returns.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), PayloadError>;

    /// What is at the start of `range`, and up to where within it the same is. The range is not empty.
    fn extent(&self, range: Range<u64>) -> (Extent, u64);

    /// Bytes of memory that payload takes.
    fn bytes_held(&self) -> u64;
}
