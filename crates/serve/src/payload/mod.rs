//! Payload: the bytes that the host wrote. The device, which models timing, never sees them.
//!
//! A request accesses its payload twice. On arrival, a write stores its bytes, and a trim drops some. When the device
//! has decided the completion, a read fetches its bytes. In between, the device reports the location of the bytes, so
//! that the store in [`memory`] can be replaced by a store that keeps them at physical addresses.

pub mod memory;

use std::ops::Range;

/// Reason why payload cannot be stored or fetched. The host gets an error, and the store does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// The store is full, although the device has free space.
    #[error("out of memory or disk space for payload")]
    NoRoom,
    /// The underlying storage cannot be read or written.
    #[error("payload cannot be read or written")]
    Failed,
    /// The image does not contain the data that were written.
    #[error("payload is damaged")]
    Damaged,
}

/// Kind of payload in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The range holds data.
    Data,
    /// The range was never written, or was trimmed or zeroed: it reads as zeros.
    Hole,
}

/// Stores the payload of a device. Ranges are in bytes, lie within the device, and start and end at sector boundaries.
pub trait Payload: Send {
    /// Stores the data of a write.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), PayloadError>;

    /// Discards a range, for a trim or for a write of zeros that need not stay allocated. The range then reads as
    /// zeros.
    fn discard(&mut self, range: Range<u64>);

    /// Writes zeros that stay allocated.
    fn zero(&mut self, range: Range<u64>) -> Result<(), PayloadError>;

    /// Reads the data at `offset`.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), PayloadError>;

    /// Returns the kind of payload at the start of `range`, and the end of the extent. The range must not be empty.
    fn extent(&self, range: Range<u64>) -> (Extent, u64);

    /// Returns the bytes of memory that the payload takes.
    fn bytes_held(&self) -> u64;
}
