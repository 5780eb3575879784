//! Records of mapping units in the file: 64 bytes each, stored together for each block.
//!
//! A record is bound to its physical address by its digest, and to the contents of its block by the erase count of the
//! block. A record that was moved within the file, or that comes from before an erase, is therefore detected.

use floatgate_core::flash::Record;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::layout::SLOT;

/// Record of a mapping unit in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Record of the device.
    pub record: Record,
    /// State of the payload.
    pub payload: Stored,
    /// Index of the unit within its program operation, and number of units of the operation.
    pub part: (u32, u32),
}

/// State of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The file contains no payload, and the unit reads as zeros.
    Zeros,
    /// The file contains bytes with this digest.
    Bytes(u64),
    /// The payload could not be read when the unit was moved to this address.
    Lost,
}

/// State of a unit's record in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// The slot has not been programmed since the last erase of the block.
    Erased,
    /// The program failed, or the power was cut during the program.
    Torn,
    /// The unit was left out: a later unit of the block was programmed first.
    Skipped,
    /// A programmed unit.
    Holds(Slot),
    /// The record is in none of the other states, or belongs to other contents of its block.
    Damaged,
}

/// Offset of the kind in a record: the state of the payload, or that of a unit without payload.
const KIND: usize = 32;

const ZEROS: u8 = 0;
const BYTES: u8 = 1;
const LOST: u8 = 2;
const TORN: u8 = 3;
const SKIPPED: u8 = 4;

/// Returns `true` if a record in the file's format has payload in the file.
pub fn has_payload(bytes: &[u8]) -> bool {
    bytes[KIND] == BYTES
}

/// Encodes a record for a physical address in a block with this erase count.
pub fn encode(state: SlotState, ppn: u32, erases: u32) -> [u8; SLOT] {
    let mut bytes = [0; SLOT];
    let (kind, digest) = match state {
        SlotState::Holds(Slot { record, payload, part }) => {
            bytes[..Record::BYTES].copy_from_slice(&record.to_bytes());
            bytes[36..40].copy_from_slice(&part.0.to_le_bytes());
            bytes[40..44].copy_from_slice(&part.1.to_le_bytes());
            match payload {
                Stored::Zeros => (ZEROS, 0),
                Stored::Bytes(digest) => (BYTES, digest),
                Stored::Lost => (LOST, 0),
            }
        }
        SlotState::Skipped => (SKIPPED, 0),
        SlotState::Torn | SlotState::Damaged => (TORN, 0),
        SlotState::Erased => return bytes,
    };
    bytes[KIND] = kind;
    bytes[44..48].copy_from_slice(&erases.to_le_bytes());
    bytes[48..56].copy_from_slice(&digest.to_le_bytes());
    let check = xxh3_64_with_seed(&bytes[..56], u64::from(ppn)).to_le_bytes();
    bytes[56..].copy_from_slice(&check);
    bytes
}

/// Returns the erase count that a record was written with. `None` if the record does not match its digest.
pub fn erases_of(ppn: u32, bytes: &[u8]) -> Option<u32> {
    let check = u64::from_le_bytes(bytes.get(56..SLOT)?.try_into().ok()?);
    (check == xxh3_64_with_seed(&bytes[..56], u64::from(ppn))).then(|| u32_at(bytes, 44))
}

/// Decodes the record at a physical address in a block with this erase count.
pub fn decode(ppn: u32, erases: u32, bytes: &[u8]) -> SlotState {
    match erases_of(ppn, bytes) {
        Some(written) if written == erases => decode_fields(bytes).unwrap_or(SlotState::Damaged),
        None if bytes.iter().all(|byte| *byte == 0) => SlotState::Erased,
        _ => SlotState::Damaged,
    }
}

fn decode_fields(bytes: &[u8]) -> Option<SlotState> {
    let payload = match bytes[KIND] {
        ZEROS => Stored::Zeros,
        BYTES => Stored::Bytes(u64::from_le_bytes(bytes[48..56].try_into().ok()?)),
        LOST => Stored::Lost,
        TORN => return Some(SlotState::Torn),
        SKIPPED => return Some(SlotState::Skipped),
        _ => return None,
    };
    let part = (u32_at(bytes, 36), u32_at(bytes, 40));
    let record = Record::from_bytes(&bytes[..Record::BYTES])?;
    (part.0 < part.1).then_some(SlotState::Holds(Slot { record, payload, part }))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::flash::RecordKind;

    #[test]
    fn records_are_valid_at_their_address_and_erase_count_only() {
        let record = Record { kind: RecordKind::Data, lpn: 7, sequence: 1 << 40, sectors: u64::MAX, opened: 3 };
        let held = [Stored::Zeros, Stored::Bytes(99), Stored::Lost]
            .map(|payload| SlotState::Holds(Slot { record, payload, part: (3, 4) }));
        for state in held.into_iter().chain([SlotState::Torn, SlotState::Skipped]) {
            let bytes = encode(state, 17, 5);
            assert_eq!(decode(17, 5, &bytes), state);
            assert_eq!((decode(18, 5, &bytes), erases_of(18, &bytes)), (SlotState::Damaged, None));
            assert_eq!((decode(17, 6, &bytes), erases_of(17, &bytes)), (SlotState::Damaged, Some(5)));
            for at in 0..SLOT {
                let mut wrong = bytes;
                wrong[at] ^= 4;
                assert_eq!(decode(17, 5, &wrong), SlotState::Damaged, "byte {at}");
                assert_eq!(erases_of(17, &bytes[..at]), None, "{at} bytes");
            }
        }
        assert_eq!(decode(17, 5, &[0; SLOT]), SlotState::Erased);
        assert_eq!(decode(17, 5, &[0xff; SLOT]), SlotState::Damaged);
    }
}
