//! I/O commands: their checks, and their translation to requests of the device.

use floatgate_core::sim::request::{Operation, SECTOR};

use super::LONGEST_TRANSFER;
use super::identify::Drive;
use super::wire::{ALL_NAMESPACES, Command, Status, get, io};

/// Bytes of a range of Dataset Management.
const RANGE: usize = 16;

/// Effect of an I/O command on its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The command has no data, or the device stores them.
    None,
    /// The host receives the data that are read.
    Return,
    /// The data that are read are compared with those of the host.
    Compare,
    /// The data that are read are dropped.
    Verify,
}

/// An I/O command, as requests of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// Operation of all requests.
    pub operation: Operation,
    /// Sectors of the first request: the first one, and their number.
    pub range: (u64, u32),
    /// Sectors of further requests, of Dataset Management.
    pub more: Vec<(u64, u32)>,
    /// True if the requests may complete only when they are durable.
    pub fua: bool,
    /// True if the request writes the data of the command. Otherwise a write writes zeros.
    pub has_data: bool,
    /// Use of the data that are read.
    pub uses: Use,
}

impl Io {
    /// Returns the bytes of memory that the command takes until it completes.
    pub fn memory(&self) -> usize {
        let bytes = self.range.1 as usize * SECTOR as usize;
        match self.uses {
            Use::None => 0,
            Use::Return | Use::Verify => bytes,
            // The data of the host are kept as well.
            Use::Compare => 2 * bytes,
        }
    }
}

/// Returns the number of bytes that a command reads without transferring them.
pub fn verified(command: &Command, drive: &Drive) -> u64 {
    let blocks = u64::from(command.dword(12) as u16) + 1;
    if command.opcode() == io::VERIFY { blocks * u64::from(drive.block) } else { 0 }
}

/// Returns the number of bytes that a command transfers, at most. `None` if its opcode is unknown.
fn transfer(command: &Command, drive: &Drive) -> Option<u64> {
    let blocks = u64::from(command.dword(12) as u16) + 1;
    Some(match command.opcode() {
        io::READ | io::WRITE | io::COMPARE => blocks * u64::from(drive.block),
        io::DATASET_MANAGEMENT => (u64::from(command.dword(10) as u8) + 1) * RANGE as u64,
        io::FLUSH | io::WRITE_ZEROES | io::VERIFY => 0,
        _ => return None,
    })
}

/// Returns the requests of a command. `None` if there is nothing to do.
pub fn requests(command: &Command, data: &[u8], length: u32, drive: &Drive) -> Result<Option<Io>, Status> {
    let Some(bytes) = transfer(command, drive) else { return Err(Status::INVALID_OPCODE) };
    let opcode = command.opcode();
    let is_all = opcode == io::FLUSH && command.namespace() == ALL_NAMESPACES;
    if command.namespace() != 1 && !is_all {
        return Err(Status::INVALID_NAMESPACE);
    }
    if opcode == io::DATASET_MANAGEMENT {
        return deallocate(command, data, bytes as usize, drive);
    }
    if bytes.max(verified(command, drive)) > LONGEST_TRANSFER as u64 {
        return Err(Status::INVALID_FIELD);
    }
    if bytes != 0 && bytes != u64::from(length) {
        return Err(Status::DATA_LENGTH);
    }
    let mut fua = command.dword(12) >> 30 & 1 != 0;
    // Blocks have no protection information.
    if opcode != io::FLUSH && command.dword(12) >> 26 & 0xf != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let deallocates = command.dword(12) >> 25 & 1 != 0;
    let (operation, has_data, uses) = match opcode {
        io::READ => (Operation::Read, false, Use::Return),
        io::COMPARE => (Operation::Read, false, Use::Compare),
        io::VERIFY => (Operation::Read, false, Use::Verify),
        io::WRITE => (Operation::Write, true, Use::None),
        io::WRITE_ZEROES if deallocates => (Operation::WriteZeroes, false, Use::None),
        io::WRITE_ZEROES => (Operation::Write, false, Use::None),
        _ => (Operation::Flush, false, Use::None),
    };
    fua &= operation != Operation::Read;
    let range = if opcode == io::FLUSH {
        (0, 0)
    } else {
        sectors(command.qword(10), u64::from(command.dword(12) as u16) + 1, drive)?
    };
    Ok(Some(Io { operation, range, more: Vec::new(), fua, has_data, uses }))
}

/// Returns the sectors of a range of logical blocks.
fn sectors(first: u64, blocks: u64, drive: &Drive) -> Result<(u64, u32), Status> {
    if first.checked_add(blocks).is_none_or(|end| end > drive.blocks) {
        return Err(Status::LBA_RANGE);
    }
    let each = u64::from(drive.block) / SECTOR;
    Ok((first * each, u32::try_from(blocks * each).map_err(|_| Status::INVALID_FIELD)?))
}

/// Returns the requests of Dataset Management. Attributes other than deallocation are hints without effect.
fn deallocate(command: &Command, data: &[u8], bytes: usize, drive: &Drive) -> Result<Option<Io>, Status> {
    if data.len() < bytes {
        return Err(Status::DATA_LENGTH);
    }
    let mut ranges = Vec::new();
    for range in data[..bytes].chunks_exact(RANGE) {
        let (blocks, first) = (u32::from_le_bytes(get(range, 4)), u64::from_le_bytes(get(range, 8)));
        let sectors = sectors(first, u64::from(blocks), drive)?;
        if blocks > 0 {
            ranges.push(sectors);
        }
    }
    let deallocates = command.dword(11) & 1 << 2 != 0;
    if ranges.is_empty() || !deallocates {
        return Ok(None);
    }
    let range = ranges.swap_remove(0);
    Ok(Some(Io { operation: Operation::Trim, range, more: ranges, fua: false, has_data: false, uses: Use::None }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::wire::{COMMAND, put};
    use floatgate_core::device_file;

    fn drive() -> Drive {
        Drive::new(&device_file::load("tiny", &["host.sector_size=4KiB".to_owned()]).unwrap(), "here")
    }

    fn command(opcode: u8, first: u64, blocks: u32) -> Command {
        let mut command = Command([0; COMMAND]);
        (command.0[0], command.0[4]) = (opcode, 1);
        put(&mut command.0, 40, first.to_le_bytes());
        put(&mut command.0, 48, (blocks - 1).to_le_bytes());
        command
    }

    #[test]
    fn ranges_are_checked_to_the_block() {
        let drive = drive();
        let of = |first, blocks| requests(&command(io::READ, first, blocks), &[], blocks * 4096, &drive);
        let read = of(drive.blocks - 2, 2).unwrap().unwrap();
        assert_eq!((read.operation, read.range), (Operation::Read, (8 * (drive.blocks - 2), 16)));
        assert_eq!(of(drive.blocks - 1, 2), Err(Status::LBA_RANGE));
        assert_eq!(of(u64::MAX, 2), Err(Status::LBA_RANGE));
        assert!(of(0, 256).is_ok());
        assert_eq!(of(0, 257), Err(Status::INVALID_FIELD));
        assert_eq!(requests(&command(io::READ, 0, 2), &[], 4096, &drive), Err(Status::DATA_LENGTH));
        let mut other = command(io::READ, 0, 1);
        other.0[4] = 2;
        assert_eq!(requests(&other, &[], 4096, &drive), Err(Status::INVALID_NAMESPACE));
        assert_eq!(requests(&command(0x0d, 0, 1), &[], 4096, &drive), Err(Status::INVALID_OPCODE));
    }

    #[test]
    fn zeroes_are_written_or_deallocated() {
        let mut zeroes = command(io::WRITE_ZEROES, 1, 1 << 12);
        let requested = requests(&zeroes, &[], 0, &drive()).unwrap().unwrap();
        assert_eq!((requested.operation, requested.has_data, requested.fua), (Operation::Write, false, false));
        zeroes.0[51] = 1 << 1 | 1 << 6;
        let requested = requests(&zeroes, &[], 0, &drive()).unwrap().unwrap();
        assert_eq!((requested.operation, requested.range, requested.fua), (Operation::WriteZeroes, (8, 1 << 15), true));
    }

    #[test]
    fn dataset_management_trims_all_its_ranges() {
        let drive = drive();
        let mut command = command(io::DATASET_MANAGEMENT, 0, 1);
        let mut data = vec![0; 48];
        for (index, (first, blocks)) in [(8_u64, 4_u32), (0, 0), (drive.blocks - 1, 1)].into_iter().enumerate() {
            put(&mut data, 16 * index + 4, blocks.to_le_bytes());
            put(&mut data, 16 * index + 8, first.to_le_bytes());
        }
        put(&mut command.0, 40, 2_u32.to_le_bytes());
        assert_eq!(requests(&command, &data, 48, &drive), Ok(None), "a hint");
        put(&mut command.0, 44, 4_u32.to_le_bytes());
        let requested = requests(&command, &data, 48, &drive).unwrap().unwrap();
        assert_eq!((requested.operation, requested.range), (Operation::Trim, (64, 32)));
        assert_eq!(requested.more, [(8 * (drive.blocks - 1), 8)]);
        assert_eq!(requests(&command, &data[..40], 40, &drive), Err(Status::DATA_LENGTH));
        put(&mut data, 36, 2_u32.to_le_bytes());
        assert_eq!(requests(&command, &data, 48, &drive), Err(Status::LBA_RANGE));
    }
}
