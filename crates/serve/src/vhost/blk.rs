//! Requests and configuration space of the virtio block device.
//!
//! Source: "Virtual I/O Device (VIRTIO) Version 1.2", section 5.2. All numbers are little-endian.

use floatgate_core::sim::request::SECTOR;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_MQ, VIRTIO_BLK_F_RO,
    VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_SIZE_MAX, VIRTIO_BLK_F_TOPOLOGY, VIRTIO_BLK_F_WRITE_ZEROES, VIRTIO_BLK_ID_BYTES,
    VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID,
    VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES, VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP,
};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};
use vm_memory::{Address, GuestAddress, GuestMemory, Permissions};

use super::Memory;
use super::chain::{Broken, Chain, Piece, gather, part};

/// The virtio block device that clients see.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Name of the device. Clients see its first 20 bytes.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes of a logical block. Requests must consist of whole logical blocks.
    pub sector: u32,
    /// Bytes of a mapping unit.
    pub unit: u32,
    /// Number of queues that a client may use.
    pub queues: u16,
    /// True if the device no longer accepts writes.
    pub read_only: bool,
}

/// Maximum number of payload segments of a request.
const PIECES: u32 = 126;

/// Maximum number of bytes in a segment.
const PIECE_BYTES: u32 = 256 << 10;

/// Maximum payload of a request in bytes. Slightly more than clients send that comply with the two limits above.
pub const LONGEST_PAYLOAD: u64 = 32 << 20;

/// Maximum number of sectors in a request that writes zeroes and keeps them allocated. They are programmed like data.
const MAX_ZEROES: u32 = (LONGEST_PAYLOAD / SECTOR) as u32;

/// Bytes of a request header: type, reserved, sector.
pub const HEAD: u64 = 16;

/// Bytes of the description of a range to discard: sector, length, flags.
pub const RANGE: u64 = 16;

/// Bytes of the configuration space, up to and including the fields for discarding and writing zeroes.
pub const CONFIG: usize = 60;

/// Features of the device.
pub const FEATURES: u64 = 1 << VIRTIO_F_VERSION_1
    | 1 << VIRTIO_RING_F_INDIRECT_DESC
    | 1 << VIRTIO_RING_F_EVENT_IDX
    | 1 << VIRTIO_BLK_F_SIZE_MAX
    | 1 << VIRTIO_BLK_F_SEG_MAX
    | 1 << VIRTIO_BLK_F_BLK_SIZE
    | 1 << VIRTIO_BLK_F_FLUSH
    | 1 << VIRTIO_BLK_F_TOPOLOGY
    | 1 << VIRTIO_BLK_F_MQ
    | 1 << VIRTIO_BLK_F_DISCARD
    | 1 << VIRTIO_BLK_F_WRITE_ZEROES;

impl Disk {
    /// Returns the features that a client is offered.
    pub fn features(&self) -> u64 {
        FEATURES | u64::from(self.read_only) << VIRTIO_BLK_F_RO
    }

    fn sectors(&self) -> u64 {
        self.bytes / SECTOR
    }

    /// Returns the maximum number of sectors in a discard request, in whole mapping units.
    fn max_discarded(&self) -> u32 {
        let unit = u64::from(self.unit.max(self.sector)) / SECTOR;
        let most = self.sectors().min(u64::from(u32::MAX) / SECTOR);
        // A device smaller than a mapping unit does not make sense, but the limit must not be zero.
        (most - most % unit).max(1) as u32
    }

    /// Returns the configuration space, `struct virtio_blk_config`.
    pub fn config(&self) -> [u8; CONFIG] {
        let unit = (u64::from(self.unit) / SECTOR).max(1);
        let blocks = (self.unit / self.sector).max(1);
        let exponent = if blocks.is_power_of_two() { blocks.trailing_zeros() as u8 } else { 0 };
        let mut space = [0; CONFIG];
        let mut put = |at: usize, bytes: &[u8]| space[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.sectors().to_le_bytes());
        put(8, &PIECE_BYTES.to_le_bytes());
        put(12, &PIECES.to_le_bytes());
        put(20, &self.sector.to_le_bytes());
        put(24, &[exponent, 0]);
        put(26, &u16::try_from(blocks).unwrap_or(1).to_le_bytes());
        put(28, &blocks.to_le_bytes());
        // Cache mode at offset 32: write-back. Clients must flush, because a cache of the host and the device's own
        // buffer are not distinguished.
        put(32, &[1]);
        put(34, &self.queues.to_le_bytes());
        let discard = [self.max_discarded(), 1, unit.max(u64::from(self.sector) / SECTOR) as u32];
        let zeroes = [self.max_discarded().min(MAX_ZEROES), 1];
        for (index, value) in discard.into_iter().chain(zeroes).enumerate() {
            put(36 + 4 * index, &value.to_le_bytes());
        }
        // Writing zeroes may unmap.
        put(56, &[1]);
        space
    }

    /// Returns the device ID, padded with zeros.
    fn id(&self) -> [u8; VIRTIO_BLK_ID_BYTES as usize] {
        let mut id = [0; VIRTIO_BLK_ID_BYTES as usize];
        for (place, byte) in id.iter_mut().zip(self.name.bytes()) {
            *place = byte;
        }
        id
    }
}

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read into the writable segments.
    Read,
    /// Write the gathered payload.
    Write,
    /// Make all completed writes durable.
    Flush,
    /// Discard a range.
    Discard,
    /// Make a range read as zeros. It need not stay allocated.
    Zero,
    /// Make a range read as zeros. It stays allocated.
    ZeroAllocated,
    /// Return the device ID.
    Id([u8; VIRTIO_BLK_ID_BYTES as usize]),
}

/// A valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Operation.
    pub kind: Kind,
    /// First sector.
    pub sector: u64,
    /// Number of sectors, 0 for a flush.
    pub sectors: u32,
}

/// Status of a request that cannot be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refused {
    /// The request is malformed, out of range, too long, or refers to addresses outside the memory.
    Error = VIRTIO_BLK_S_IOERR as u8,
    /// The request type is unknown.
    Unsupported = VIRTIO_BLK_S_UNSUPP as u8,
}

/// A parsed descriptor chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested {
    /// Address of the status byte.
    pub status: GuestAddress,
    /// The request, or the status with which it fails.
    pub what: Result<Request, Refused>,
}

/// Parses the request in a chain. Appends the payload of a write to `payload`, and leaves the destination of a read in
/// `chain.writable`.
pub fn request(memory: &Memory, disk: &Disk, chain: &mut Chain, payload: &mut Vec<u8>) -> Result<Requested, Broken> {
    let status = take_status(memory, &mut chain.writable)?;
    let before = payload.len();
    let what = parse(memory, disk, chain, payload);
    if what.is_err() {
        payload.truncate(before);
    }
    Ok(Requested { status, what })
}

/// Removes the status byte from the writable segments, and returns its address. It is the last byte that the device may
/// write.
fn take_status(memory: &Memory, writable: &mut Vec<Piece>) -> Result<GuestAddress, Broken> {
    let last = writable.last_mut().ok_or(Broken::NoStatus)?;
    last.bytes -= 1;
    let status = last.at.checked_add(u64::from(last.bytes)).ok_or(Broken::NoStatus)?;
    if last.bytes == 0 {
        writable.pop();
    }
    if memory.check_range(status, 1, Permissions::Write) { Ok(status) } else { Err(Broken::NoStatus) }
}

fn parse(memory: &Memory, disk: &Disk, chain: &Chain, payload: &mut Vec<u8>) -> Result<Request, Refused> {
    let (readable, writable) = chain.bytes();
    let mut head = [0; HEAD as usize];
    if !chain.is_ordered || !gather(memory, part(&chain.readable, 0, HEAD), &mut head) {
        return Err(Refused::Error);
    }
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let sector = u64::from(number(8)) | u64::from(number(12)) << 32;
    let out = readable - HEAD;
    match number(0) {
        VIRTIO_BLK_T_IN => {
            let is_there = |piece: &Piece| memory.check_range(piece.at, piece.bytes as usize, Permissions::Write);
            let sectors = payload_sectors(disk, sector, writable, &chain.writable)?;
            if !chain.writable.iter().all(is_there) {
                return Err(Refused::Error);
            }
            Ok(Request { kind: Kind::Read, sector, sectors })
        }
        VIRTIO_BLK_T_OUT => {
            let sectors = payload_sectors(disk, sector, out, &chain.readable)?;
            let before = payload.len();
            payload.resize(before + out as usize, 0);
            if !gather(memory, part(&chain.readable, HEAD, out), &mut payload[before..]) {
                return Err(Refused::Error);
            }
            Ok(Request { kind: Kind::Write, sector, sectors })
        }
        VIRTIO_BLK_T_FLUSH => Ok(Request { kind: Kind::Flush, sector: 0, sectors: 0 }),
        kind @ (VIRTIO_BLK_T_DISCARD | VIRTIO_BLK_T_WRITE_ZEROES) => {
            let mut range = [0; RANGE as usize];
            // A request has one range, as specified in the configuration space.
            if out != RANGE || !gather(memory, part(&chain.readable, HEAD, RANGE), &mut range) {
                return Err(Refused::Error);
            }
            forgotten(disk, kind == VIRTIO_BLK_T_DISCARD, &range)
        }
        VIRTIO_BLK_T_GET_ID if writable >= u64::from(VIRTIO_BLK_ID_BYTES) => {
            Ok(Request { kind: Kind::Id(disk.id()), sector: 0, sectors: 0 })
        }
        VIRTIO_BLK_T_GET_ID => Err(Refused::Error),
        _ => Err(Refused::Unsupported),
    }
}

/// Returns the number of sectors of a payload. Fails if it is not whole sectors within the device.
fn payload_sectors(disk: &Disk, sector: u64, bytes: u64, pieces: &[Piece]) -> Result<u32, Refused> {
    // The header of a write may be a separate segment.
    let is_fit = bytes > 0 && bytes.is_multiple_of(SECTOR) && bytes <= LONGEST_PAYLOAD;
    if !is_fit || pieces.len() > PIECES as usize + 1 {
        return Err(Refused::Error);
    }
    on_disk(disk, sector, (bytes / SECTOR) as u32)
}

/// Returns the number of sectors of a range. Fails if it is not whole logical blocks within the device.
fn on_disk(disk: &Disk, sector: u64, sectors: u32) -> Result<u32, Refused> {
    let end = sector.checked_add(u64::from(sectors)).filter(|end| *end <= disk.sectors());
    let per_block = u64::from(disk.sector) / SECTOR;
    let is_whole = sector.is_multiple_of(per_block) && u64::from(sectors).is_multiple_of(per_block);
    end.filter(|_| is_whole).map(|_| sectors).ok_or(Refused::Error)
}

/// Parses a request to discard or zero a range.
fn forgotten(disk: &Disk, discard: bool, range: &[u8; RANGE as usize]) -> Result<Request, Refused> {
    let number = |at: usize| u32::from_le_bytes([range[at], range[at + 1], range[at + 2], range[at + 3]]);
    let (sector, sectors, flags) = (u64::from(number(0)) | u64::from(number(4)) << 32, number(8), number(12));
    let unmap = flags & VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP != 0;
    if flags & !VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP != 0 || (discard && unmap) {
        return Err(Refused::Unsupported);
    }
    let (kind, most) = match (discard, unmap) {
        (true, _) => (Kind::Discard, disk.max_discarded()),
        (false, true) => (Kind::Zero, MAX_ZEROES),
        (false, false) => (Kind::ZeroAllocated, MAX_ZEROES),
    };
    if sectors == 0 || sectors > most {
        return Err(Refused::Error);
    }
    Ok(Request { kind, sector, sectors: on_disk(disk, sector, sectors)? })
}
